"""Is it true: hold-out, cross-validation over time, the verdict, the proof in closed loop; does it stay true: repeatability."""

from dynident.validate.crossvalidation import CrossValidation, cross_validate, time_blocks
from dynident.validate.holdout import HoldOut, hold_out, split
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
from dynident.validate.verdict import Check, Verdict, judge

__all__ = [
    "Check",
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
    "cross_validate",
    "estimates_of",
    "feedback_alone",
    "hold_out",
    "identify_friction",
    "identify_machine",
    "judge",
    "split",
    "time_blocks",
    "tracking_proof",
    "with_model",
]
