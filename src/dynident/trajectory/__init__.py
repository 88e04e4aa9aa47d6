"""How a robot is asked to move: paths, velocity profiles, letters, and the joint motions that follow them."""

from dynident.trajectory.letters import strokes
from dynident.trajectory.paths import Arc, Hop, Line, Spline
from dynident.trajectory.profiles import Cycloid, Quintic, Trapezoid
from dynident.trajectory.task import Segment, Task, TipMotion, along, joint_motion, write

__all__ = [
    "Arc",
    "Cycloid",
    "Hop",
    "Line",
    "Quintic",
    "Segment",
    "Spline",
    "Task",
    "TipMotion",
    "Trapezoid",
    "along",
    "joint_motion",
    "strokes",
    "write",
]
