"""What can be known: evidence, base parameters, estimators, fits and their scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynident import callable_room
from dynident.arguments import guard
from dynident.identify.base import BaseParameters, base_parameters, columns_of
from dynident.identify.factor import triangle
from dynident.identify.fit import Fit
from dynident.identify.manifold import random_closed_motion
from dynident.identify.projection import actuation, projected, unprojected
from dynident.identify.rows import Projection, Rows, check_projection
from dynident.identify.tables import Observability, Prediction, Undetermined

if TYPE_CHECKING:
    from dynident.identify.bayes import MAP
    from dynident.identify.essential import contributing_parameters, essential_parameters
    from dynident.identify.estimators import OLS, WLS, fit_of
    from dynident.identify.factorised import JointReduction, Reduction, reduction
    from dynident.identify.friction import (
        AxisFit,
        Choice,
        FrictionChoice,
        FrictionFilter,
        choose,
        choose_friction,
        fit_axis,
        fit_log,
    )
    from dynident.identify.gains import DriveGains, estimate_gains, with_gain_uncertainty
    from dynident.identify.individual import Individual, Statistics
    from dynident.identify.load import Payload
    from dynident.identify.matching import Matched, match
    from dynident.identify.methods import (
        DIDIM,
        GLS,
        IRLS,
        IV,
        ML,
        RLS,
        TLS,
        BiasDiagnosis,
        Entropic,
        Kalman,
        OutputError,
        PerJoint,
        SampledRegression,
        Stretch,
        Visible,
        diagnose_bias,
        joint_estimates,
        simulated_instruments,
    )
    from dynident.identify.metrics import Metrics, evaluate
    from dynident.identify.partitions import Partition, Partitions, rank_partitions
    from dynident.identify.payload import payload_of, payload_on_arm, payload_regression
    from dynident.identify.plots import plot_parameters, plot_score, true_base_values
    from dynident.identify.population import Population
    from dynident.identify.prior import Knowledge
    from dynident.identify.regression import Regression
    from dynident.identify.score import Score
    from dynident.identify.solve import recover_standard
    from dynident.identify.subsets import enumerate_subsets, individual_parameters
    from dynident.identify.wrist import payload_from_wrench, read_wrench

# What only some programs need is imported on first use: figures, friction laws, payloads, subsets.
_LATER = {
    "Knowledge": "prior",
    "Population": "population",
    "MAP": "bayes",
    "contributing_parameters": "essential",
    "simulated_instruments": "methods",
    "diagnose_bias": "methods",
    "joint_estimates": "methods",
    "PerJoint": "methods",
    "JointReduction": "factorised",
    "Reduction": "factorised",
    "reduction": "factorised",
    "Visible": "methods",
    "Stretch": "methods",
    "SampledRegression": "methods",
    "OutputError": "methods",
    "Kalman": "methods",
    "Entropic": "methods",
    "BiasDiagnosis": "methods",
    "TLS": "methods",
    "RLS": "methods",
    "ML": "methods",
    "IV": "methods",
    "IRLS": "methods",
    "GLS": "methods",
    "DIDIM": "methods",
    "Matched": "matching",
    "Metrics": "metrics",
    "OLS": "estimators",
    "Regression": "regression",
    "Score": "score",
    "WLS": "estimators",
    "essential_parameters": "essential",
    "evaluate": "metrics",
    "match": "matching",
    "recover_standard": "solve",
    "AxisFit": "friction",
    "Choice": "friction",
    "FrictionChoice": "friction",
    "FrictionFilter": "friction",
    "Individual": "individual",
    "Payload": "load",
    "Statistics": "individual",
    "choose": "friction",
    "choose_friction": "friction",
    "enumerate_subsets": "subsets",
    "fit_axis": "friction",
    "fit_log": "friction",
    "fit_of": "estimators",
    "individual_parameters": "subsets",
    "Partition": "partitions",
    "Partitions": "partitions",
    "payload_of": "payload",
    "rank_partitions": "partitions",
    "payload_regression": "payload",
    "plot_parameters": "plots",
    "plot_score": "plots",
    "true_base_values": "plots",
    "DriveGains": "gains",
    "estimate_gains": "gains",
    "payload_from_wrench": "wrist",
    "payload_on_arm": "payload",
    "read_wrench": "wrist",
    "with_gain_uncertainty": "gains",
}

__all__ = [
    "DIDIM",
    "GLS",
    "IRLS",
    "IV",
    "MAP",
    "ML",
    "OLS",
    "RLS",
    "TLS",
    "WLS",
    "AxisFit",
    "BaseParameters",
    "BiasDiagnosis",
    "Choice",
    "DriveGains",
    "Entropic",
    "Fit",
    "FrictionChoice",
    "FrictionFilter",
    "Individual",
    "JointReduction",
    "Kalman",
    "Knowledge",
    "Matched",
    "Metrics",
    "Observability",
    "OutputError",
    "Partition",
    "Partitions",
    "Payload",
    "PerJoint",
    "Population",
    "Prediction",
    "Projection",
    "Reduction",
    "Regression",
    "Rows",
    "SampledRegression",
    "Score",
    "Statistics",
    "Stretch",
    "Undetermined",
    "Visible",
    "actuation",
    "base_parameters",
    "check_projection",
    "choose",
    "choose_friction",
    "columns_of",
    "contributing_parameters",
    "diagnose_bias",
    "enumerate_subsets",
    "essential_parameters",
    "estimate_gains",
    "evaluate",
    "fit_axis",
    "fit_log",
    "fit_of",
    "individual_parameters",
    "joint_estimates",
    "match",
    "payload_from_wrench",
    "payload_of",
    "payload_on_arm",
    "payload_regression",
    "plot_parameters",
    "plot_score",
    "projected",
    "random_closed_motion",
    "rank_partitions",
    "read_wrench",
    "recover_standard",
    "reduction",
    "simulated_instruments",
    "triangle",
    "true_base_values",
    "unprojected",
    "with_gain_uncertainty",
]

guard(globals(), later=_LATER)
callable_room(__name__)
