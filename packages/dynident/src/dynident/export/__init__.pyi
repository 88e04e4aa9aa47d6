from .robot import Exported as Exported
from .robot import export_robot as export_robot

__all__ = [
    "Exported",
    "export_robot",
]
