"""Is it true: hold-out, cross-validation over time, the verdict, the proof in closed loop; does it stay true: repeatability."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dynident.validate.crossvalidation import CrossValidation, cross_validate, time_blocks
from dynident.validate.holdout import HoldOut, hold_out, split
from dynident.validate.verdict import Check, Verdict, judge

if TYPE_CHECKING:
    from dynident.validate.comparison import Comparison, ComparisonRow, compare, standard_estimators
    from dynident.validate.maintenance import FaultDetector, Maintenance
    from dynident.validate.repeatability import Estimate, ParameterRepeatability, Repeatability, estimates_of
    from dynident.validate.tracking import (
        Known,
        catalogue_model,
        feedback_alone,
        identify_friction,
        identify_machine,
        tracking_proof,
        with_model,
    )
    from dynident.validate.tracking_result import TrackingProof, Trial

# The closed loop and the statistics of many logs bring the simulation with them: imported on first use.
_LATER = {
    "standard_estimators": "comparison",
    "compare": "comparison",
    "ComparisonRow": "comparison",
    "Comparison": "comparison",
    "Estimate": "repeatability",
    "FaultDetector": "maintenance",
    "Known": "tracking",
    "Maintenance": "maintenance",
    "ParameterRepeatability": "repeatability",
    "Repeatability": "repeatability",
    "TrackingProof": "tracking_result",
    "Trial": "tracking_result",
    "catalogue_model": "tracking",
    "estimates_of": "repeatability",
    "feedback_alone": "tracking",
    "identify_friction": "tracking",
    "identify_machine": "tracking",
    "tracking_proof": "tracking",
    "with_model": "tracking",
}

__all__ = [
    "Check",
    "Comparison",
    "ComparisonRow",
    "CrossValidation",
    "Estimate",
    "FaultDetector",
    "HoldOut",
    "Known",
    "Maintenance",
    "ParameterRepeatability",
    "Repeatability",
    "TrackingProof",
    "Trial",
    "Verdict",
    "catalogue_model",
    "compare",
    "cross_validate",
    "estimates_of",
    "feedback_alone",
    "hold_out",
    "identify_friction",
    "identify_machine",
    "judge",
    "split",
    "standard_estimators",
    "time_blocks",
    "tracking_proof",
    "with_model",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"dynident.validate.{_LATER[name]}"), name)
    raise AttributeError(f"module 'dynident.validate' has no attribute '{name}'")
