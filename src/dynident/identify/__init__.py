"""What can be known: evidence, base parameters, estimators, fits and their scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynident import callable_room
from dynident.arguments import guard
from dynident.identify.base import BaseParameters, columns_of, recover_standard
from dynident.identify.factor import triangle
from dynident.identify.fit import Fit
from dynident.identify.prediction import Prediction, model_errors
from dynident.identify.projection import actuation, projected, unprojected
from dynident.identify.regrouping import base_parameters
from dynident.identify.rows import Projection, Rows, check_projection
from dynident.identify.states import random_closed_motion
from dynident.identify.tables import Observability, Undetermined

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
    from dynident.identify.subsets import enumerate_subsets, individual_parameters
    from dynident.identify.wrist import payload_from_wrench, read_wrench

# What only some programs need is imported on first use: figures, friction laws, payloads, subsets.
_LATER = {
    "bayes": "MAP",
    "essential": "contributing_parameters essential_parameters",
    "estimators": "OLS WLS fit_of",
    "factorised": "JointReduction Reduction reduction",
    "friction": "AxisFit Choice FrictionChoice FrictionFilter choose choose_friction fit_axis fit_log",
    "gains": "DriveGains estimate_gains with_gain_uncertainty",
    "individual": "Individual Statistics",
    "load": "Payload",
    "matching": "Matched match",
    "methods": (
        "BiasDiagnosis DIDIM Entropic GLS IRLS IV Kalman ML OutputError "
        "PerJoint RLS SampledRegression Stretch TLS Visible diagnose_bias joint_estimates simulated_instruments"
    ),
    "metrics": "Metrics evaluate",
    "partitions": "Partition Partitions rank_partitions",
    "payload": "payload_of payload_on_arm payload_regression",
    "plots": "plot_parameters plot_score true_base_values",
    "population": "Population",
    "prior": "Knowledge",
    "regression": "Regression",
    "score": "Score",
    "subsets": "enumerate_subsets individual_parameters",
    "wrist": "payload_from_wrench read_wrench",
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
    "model_errors",
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
