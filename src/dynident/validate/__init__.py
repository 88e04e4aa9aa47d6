"""Is it true: hold-out, cross-validation over time, the verdict; properties that every robot has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynident.arguments import guard
from dynident.validate.verdict import Check, Verdict, judge

if TYPE_CHECKING:
    from dynident.validate.comparison import (
        Comparison,
        ComparisonRow,
        compare,
        standard_estimators,
    )
    from dynident.validate.crossvalidation import CrossValidation, cross_validate, time_blocks
    from dynident.validate.holdout import HoldOut, hold_out, split
    from dynident.validate.properties import RobotCheck, check

# Imported on first use: a verdict needs no log.
_LATER = {
    "comparison": "Comparison ComparisonRow compare standard_estimators",
    "crossvalidation": "CrossValidation cross_validate time_blocks",
    "holdout": "HoldOut hold_out split",
    "properties": "RobotCheck check",
}

__all__ = [
    "Check",
    "Comparison",
    "ComparisonRow",
    "CrossValidation",
    "HoldOut",
    "RobotCheck",
    "Verdict",
    "check",
    "compare",
    "cross_validate",
    "hold_out",
    "judge",
    "split",
    "standard_estimators",
    "time_blocks",
]

guard(globals(), later=_LATER)
