"""What can be known: evidence, base parameters, estimators, fits and their scores."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dynident.identify.base import BaseParameters, base_parameters, columns_of
from dynident.identify.bayes import MAP
from dynident.identify.essential import contributing_parameters, essential_parameters
from dynident.identify.estimators import OLS, WLS
from dynident.identify.factor import triangle
from dynident.identify.fit import Fit
from dynident.identify.matching import Matched, match
from dynident.identify.metrics import Metrics, evaluate
from dynident.identify.prior import Knowledge
from dynident.identify.regression import Regression
from dynident.identify.rows import Projection, Rows, check_projection, projected
from dynident.identify.score import Score
from dynident.identify.standard import recover_standard
from dynident.identify.tables import Observability, Prediction, Undetermined

if TYPE_CHECKING:
    from dynident.identify.experiments import (
        Compensation,
        FrictionHistory,
        FrictionStudy,
        JointStudy,
        Spread,
        Warmup,
        fit_warmup,
        friction_study,
        nested_spread,
    )
    from dynident.identify.experiments.plots import draw_warmup, plot_torques
    from dynident.identify.friction import fit_log
    from dynident.identify.payload import Payload, payload_of, payload_regression
    from dynident.identify.plots import plot_parameters, plot_score, true_base_values
    from dynident.identify.subsets import Individual, Statistics, enumerate_subsets, individual_parameters

# What only some programs need is imported on first use: figures, friction experiments, payloads, subsets.
_LATER = {
    "Compensation": "experiments",
    "FrictionHistory": "experiments",
    "FrictionStudy": "experiments",
    "Individual": "subsets",
    "JointStudy": "experiments",
    "Payload": "payload",
    "Spread": "experiments",
    "Statistics": "subsets",
    "Warmup": "experiments",
    "draw_warmup": "experiments.plots",
    "enumerate_subsets": "subsets",
    "fit_log": "friction",
    "fit_warmup": "experiments",
    "friction_study": "experiments",
    "individual_parameters": "subsets",
    "nested_spread": "experiments",
    "payload_of": "payload",
    "payload_regression": "payload",
    "plot_parameters": "plots",
    "plot_score": "plots",
    "plot_torques": "experiments.plots",
    "true_base_values": "plots",
}

__all__ = [
    "MAP",
    "OLS",
    "WLS",
    "BaseParameters",
    "Compensation",
    "Fit",
    "FrictionHistory",
    "FrictionStudy",
    "Individual",
    "JointStudy",
    "Knowledge",
    "Matched",
    "Metrics",
    "Observability",
    "Payload",
    "Prediction",
    "Projection",
    "Regression",
    "Rows",
    "Score",
    "Spread",
    "Statistics",
    "Undetermined",
    "Warmup",
    "base_parameters",
    "check_projection",
    "columns_of",
    "contributing_parameters",
    "draw_warmup",
    "enumerate_subsets",
    "essential_parameters",
    "evaluate",
    "fit_log",
    "fit_warmup",
    "friction_study",
    "individual_parameters",
    "match",
    "nested_spread",
    "payload_of",
    "payload_regression",
    "plot_parameters",
    "plot_score",
    "plot_torques",
    "projected",
    "recover_standard",
    "triangle",
    "true_base_values",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"dynident.identify.{_LATER[name]}"), name)
    raise AttributeError(f"module 'dynident.identify' has no attribute '{name}'")
