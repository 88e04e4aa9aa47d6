"""What can be known: evidence, base parameters, estimators, fits and their scores."""

from dynident.identify.base import BaseParameters, base_parameters
from dynident.identify.essential import essential_parameters
from dynident.identify.estimators import OLS, WLS
from dynident.identify.fit import Fit, Observability, Prediction
from dynident.identify.matching import Matched, match
from dynident.identify.metrics import Metrics, evaluate
from dynident.identify.payload import Payload, payload_of, payload_regression
from dynident.identify.regression import Regression
from dynident.identify.rows import Projection, Rows, projected
from dynident.identify.score import Score
from dynident.identify.standard import recover_standard
from dynident.identify.subsets import Individual, Statistics, enumerate_subsets, individual_parameters

__all__ = [
    "OLS",
    "WLS",
    "BaseParameters",
    "Fit",
    "Individual",
    "Matched",
    "Metrics",
    "Observability",
    "Payload",
    "Prediction",
    "Projection",
    "Regression",
    "Rows",
    "Score",
    "Statistics",
    "base_parameters",
    "enumerate_subsets",
    "essential_parameters",
    "evaluate",
    "individual_parameters",
    "match",
    "payload_of",
    "payload_regression",
    "projected",
    "recover_standard",
]
