from .controller import Controller as Controller
from .controller import Measurement as Measurement
from .controller import Setpoint as Setpoint
from .feedforward import feedforward_torques as feedforward_torques
from .feedforward import minimum_norm as minimum_norm
from .feedforward import with_preload as with_preload
from .gains import gains_for as gains_for
from .gains import pi_gains as pi_gains
from .laws import PID as PID
from .laws import Cascade as Cascade
from .laws import ComputedTorque as ComputedTorque
from .laws import CurrentLoop as CurrentLoop
from .laws import OpenLoop as OpenLoop
from .task import CoordinateSpace as CoordinateSpace
from .task import MapSpace as MapSpace
from .task import TaskCascade as TaskCascade
from .task import TaskComputedTorque as TaskComputedTorque
from .task import TaskPID as TaskPID
from .task import ToolSpace as ToolSpace
from .task import Workspace as Workspace

__all__ = [
    "PID",
    "Cascade",
    "ComputedTorque",
    "Controller",
    "CoordinateSpace",
    "CurrentLoop",
    "MapSpace",
    "Measurement",
    "OpenLoop",
    "Setpoint",
    "TaskCascade",
    "TaskComputedTorque",
    "TaskPID",
    "ToolSpace",
    "Workspace",
    "feedforward_torques",
    "gains_for",
    "minimum_norm",
    "pi_gains",
    "with_preload",
]
