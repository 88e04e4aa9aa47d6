"""Is it true: hold-out, cross-validation over time, the verdict."""

from dynident.validate.crossvalidation import CrossValidation, cross_validate, time_blocks
from dynident.validate.holdout import HoldOut, hold_out, split
from dynident.validate.verdict import Check, Verdict, judge

__all__ = [
    "Check",
    "CrossValidation",
    "HoldOut",
    "Verdict",
    "cross_validate",
    "hold_out",
    "judge",
    "split",
    "time_blocks",
]
