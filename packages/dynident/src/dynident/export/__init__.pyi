from .robot import Exported as Exported
from .robot import export_robot as export_robot
