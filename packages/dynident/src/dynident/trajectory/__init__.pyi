from .bspline import BSpline as BSpline
from .export import from_spec as from_spec
from .export import to_csv as to_csv
from .export import to_ros as to_ros
from .export import to_ros_json as to_ros_json
from .family import Trajectory as Trajectory
from .family import sample as sample
from .fourier import Fourier as Fourier
from .fourier import random_motion as random_motion
from .interpolated import Interpolated as Interpolated
from .join import join as join
from .lead import cycle as cycle
from .moves import Moves as Moves
from .multisine import Multisine as Multisine
from .multisine import harmonic_sines as harmonic_sines
from .multisine import random_multisine as random_multisine
from .multisine import sines_within as sines_within
from .paths import Arc as Arc
from .paths import Line as Line
from .paths import Spline as Spline
from .plateaus import friction_plateaus as friction_plateaus
from .plateaus import warming as warming
from .polynomial import Quintics as Quintics
from .polynomial import through as through
from .profile import velocity_multiprofile as velocity_multiprofile
from .profiles import Cycloid as Cycloid
from .profiles import Quintic as Quintic
from .profiles import Trapezoid as Trapezoid
from .task import along as along
from .task import joint_motion as joint_motion

__all__ = [
    "Arc",
    "BSpline",
    "Cycloid",
    "Fourier",
    "Interpolated",
    "Line",
    "Moves",
    "Multisine",
    "Quintic",
    "Quintics",
    "Spline",
    "Trajectory",
    "Trapezoid",
    "along",
    "cycle",
    "friction_plateaus",
    "from_spec",
    "harmonic_sines",
    "join",
    "joint_motion",
    "random_motion",
    "random_multisine",
    "sample",
    "sines_within",
    "through",
    "to_csv",
    "to_ros",
    "to_ros_json",
    "velocity_multiprofile",
    "warming",
]
