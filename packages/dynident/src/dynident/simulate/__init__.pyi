from .batch import Sweep as Sweep
from .batch import monte_carlo as monte_carlo
from .batch import simulate as simulate
from .batch import sweep as sweep
from .closed_loop import ClosedLoop as ClosedLoop
from .closed_loop import reference_motion as reference_motion
from .drives_file import read_drives as read_drives
from .record import Run as Run
from .record import TrackingError as TrackingError
from .record import tracking_error as tracking_error
from .reference import Disturbance as Disturbance
from .robot import VirtualRobot as VirtualRobot
from .sensors import Sensors as Sensors
from .stability import small_motions as small_motions
from .standard import standard_controller as standard_controller
from .standard import standard_machine as standard_machine
from .standard import with_noise as with_noise
from .thermal import Heating as Heating

__all__ = [
    "ClosedLoop",
    "Disturbance",
    "Heating",
    "Run",
    "Sensors",
    "Sweep",
    "TrackingError",
    "VirtualRobot",
    "monte_carlo",
    "read_drives",
    "reference_motion",
    "simulate",
    "small_motions",
    "standard_controller",
    "standard_machine",
    "sweep",
    "tracking_error",
    "with_noise",
]
