from .designs import Design as Design
from .designs import design as design
from .experiment import Experiment as Experiment
from .experiment import excite as excite
from .limits import Box as Box
from .limits import Capsule as Capsule
from .limits import Collision as Collision
from .limits import Effort as Effort
from .limits import Floor as Floor
from .limits import Loops as Loops
from .limits import Polygon as Polygon
from .limits import TaskBox as TaskBox
from .limits import ToolBox as ToolBox
from .limits_file import MotionLimits as MotionLimits
from .limits_file import assume_limits as assume_limits
from .limits_file import capsules_of as capsules_of
from .limits_file import collision_of as collision_of
from .limits_file import limits_of as limits_of
from .limits_file import read_limits as read_limits
from .plan import Plan as Plan
from .plan import Stage as Stage
from .plan import average_log as average_log
from .plan import refer as refer
from .plan import stage_logs as stage_logs
from .stages import check_plan as check_plan
from .stages import payload_plan as payload_plan

__all__ = [
    "Box",
    "Capsule",
    "Collision",
    "Design",
    "Effort",
    "Experiment",
    "Floor",
    "Loops",
    "MotionLimits",
    "Plan",
    "Polygon",
    "Stage",
    "TaskBox",
    "ToolBox",
    "assume_limits",
    "average_log",
    "capsules_of",
    "check_plan",
    "collision_of",
    "design",
    "excite",
    "limits_of",
    "payload_plan",
    "read_limits",
    "refer",
    "stage_logs",
]
