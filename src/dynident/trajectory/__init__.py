"""How a robot is asked to move: families with exact derivatives, plateaus, paths, letters, and joining them smoothly."""

from dynident.arguments import guard
from dynident.trajectory.bspline import BSpline
from dynident.trajectory.export import (
    REPETITIONS,
    bound_from_spec,
    cycle_from_spec,
    from_spec,
    to_csv,
    to_ros,
    to_ros_controller,
    to_ros_json,
)
from dynident.trajectory.family import Curve, Family, Trajectory, finite_times, positive, sample
from dynident.trajectory.four_bar import FourBar
from dynident.trajectory.fourier import Fourier, random_motion
from dynident.trajectory.interpolated import Interpolated
from dynident.trajectory.join import Bridge, Joined, join
from dynident.trajectory.lead import Lead, cycle, leads, resting_place
from dynident.trajectory.letters import strokes, write
from dynident.trajectory.moves import Moves
from dynident.trajectory.multisine import Multisine, harmonic_sines, random_multisine, sines_within
from dynident.trajectory.paths import Arc, Hop, Line, Spline
from dynident.trajectory.plateaus import Plateau, Strokes, cycloid_section, friction_plateaus, warming
from dynident.trajectory.polynomial import Quintics, through
from dynident.trajectory.profile import VelocityProfile, velocity_multiprofile
from dynident.trajectory.profiles import Cycloid, Quintic, Trapezoid
from dynident.trajectory.task import Segment, Task, TipMotion, along, joint_motion
from dynident.trajectory.workspace import workspace_sines

__all__ = [
    "REPETITIONS",
    "Arc",
    "BSpline",
    "Bridge",
    "Curve",
    "Cycloid",
    "Family",
    "FourBar",
    "Fourier",
    "Hop",
    "Interpolated",
    "Joined",
    "Lead",
    "Line",
    "Moves",
    "Multisine",
    "Plateau",
    "Quintic",
    "Quintics",
    "Segment",
    "Spline",
    "Strokes",
    "Task",
    "TipMotion",
    "Trajectory",
    "Trapezoid",
    "VelocityProfile",
    "along",
    "bound_from_spec",
    "cycle",
    "cycle_from_spec",
    "cycloid_section",
    "finite_times",
    "friction_plateaus",
    "from_spec",
    "harmonic_sines",
    "join",
    "joint_motion",
    "leads",
    "positive",
    "random_motion",
    "random_multisine",
    "resting_place",
    "sample",
    "sines_within",
    "strokes",
    "through",
    "to_csv",
    "to_ros",
    "to_ros_controller",
    "to_ros_json",
    "velocity_multiprofile",
    "warming",
    "workspace_sines",
    "write",
]

guard(globals())
