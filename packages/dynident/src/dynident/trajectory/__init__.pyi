from .export import from_spec as from_spec
from .export import to_csv as to_csv
from .export import to_ros as to_ros
from .export import to_ros_json as to_ros_json
from .family import Trajectory as Trajectory
from .family import sample as sample
from .joins import cycle as cycle
from .joins import join as join
from .moves import Moves as Moves
from .moves import friction_plateaus as friction_plateaus
from .moves import warming as warming
from .profiles import Cycloid as Cycloid
from .profiles import Quintic as Quintic
from .profiles import Trapezoid as Trapezoid
from .profiles import velocity_multiprofile as velocity_multiprofile
from .sines import Fourier as Fourier
from .sines import Multisine as Multisine
from .sines import harmonic_sines as harmonic_sines
from .sines import random_motion as random_motion
from .sines import random_multisine as random_multisine
from .sines import sines_within as sines_within
from .splines import BSpline as BSpline
from .splines import Interpolated as Interpolated
from .splines import Quintics as Quintics
from .splines import through as through
from .task import Arc as Arc
from .task import Line as Line
from .task import Spline as Spline
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
