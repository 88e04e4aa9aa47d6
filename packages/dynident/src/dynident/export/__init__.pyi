from .robot import TARGETS as TARGETS
from .robot import Exported as Exported
from .robot import export_robot as export_robot

__all__ = [
    "TARGETS",
    "Exported",
    "export_robot",
]
