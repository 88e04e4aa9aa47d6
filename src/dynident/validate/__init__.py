"""Is it true: hold-out, cross-validation over time, the verdict; does it stay true: repeatability, maintenance."""

from dynident.validate.crossvalidation import CrossValidation, cross_validate, time_blocks
from dynident.validate.holdout import HoldOut, hold_out, split
from dynident.validate.maintenance import FaultDetector, Maintenance
from dynident.validate.repeatability import Estimate, ParameterRepeatability, Repeatability, estimates_of
from dynident.validate.verdict import Check, Verdict, judge

__all__ = [
    "Check",
    "CrossValidation",
    "Estimate",
    "FaultDetector",
    "HoldOut",
    "Maintenance",
    "ParameterRepeatability",
    "Repeatability",
    "Verdict",
    "cross_validate",
    "estimates_of",
    "hold_out",
    "judge",
    "split",
    "time_blocks",
]
