from .comparison import Comparison as Comparison
from .comparison import compare as compare
from .comparison import standard_estimators as standard_estimators
from .diagnosis.inspection import Inspection as Inspection
from .diagnosis.inspection import inspect as inspect
from .holdout import CrossValidation as CrossValidation
from .holdout import HoldOut as HoldOut
from .holdout import cross_validate as cross_validate
from .holdout import hold_out as hold_out
from .holdout import split as split
from .holdout import time_blocks as time_blocks
from .properties import RobotCheck as RobotCheck
from .properties import check as check
from .verdict import Check as Check
from .verdict import Verdict as Verdict
from .verdict import judge as judge

__all__ = [
    "Check",
    "Comparison",
    "CrossValidation",
    "HoldOut",
    "Inspection",
    "RobotCheck",
    "Verdict",
    "check",
    "compare",
    "cross_validate",
    "hold_out",
    "inspect",
    "judge",
    "split",
    "standard_estimators",
    "time_blocks",
]
