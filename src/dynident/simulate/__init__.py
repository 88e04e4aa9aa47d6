"""The whole machine in time: drives, control loops and mechanism together, and the log that it would have written."""

from dynident.arguments import guard
from dynident.simulate.batch import Sweep, monte_carlo, simulate, sweep
from dynident.simulate.bode import SineResponse, actuators_alone, bandwidth
from dynident.simulate.closed_loop import ClosedLoop, reference_motion
from dynident.simulate.drives_file import read_drives
from dynident.simulate.fmu import torque_driven, write_fmu
from dynident.simulate.inputs import Disturbance, Reference, reference_of
from dynident.simulate.machine_fit import MachineFit, fit_machine
from dynident.simulate.record import Run, TrackingError, Truth, tool_of, tracking_error
from dynident.simulate.robot import VirtualRobot
from dynident.simulate.schedule import End
from dynident.simulate.sensors import Sensors
from dynident.simulate.sizing import MotorLoad, Sizing, size_motors
from dynident.simulate.split import TorqueSplit
from dynident.simulate.stability import Growth, small_motions
from dynident.simulate.standard import actuator_inertia, home_of, poses_of, standard_controller, standard_machine, with_noise
from dynident.simulate.steps import (
    StepMetrics,
    path_deviation,
    plot_step,
    radial_deviation,
    step_metrics,
    time_lag,
)
from dynident.simulate.stream import StreamedRun
from dynident.simulate.thermal import Heating

__all__ = [
    "ClosedLoop",
    "Disturbance",
    "End",
    "Growth",
    "Heating",
    "MachineFit",
    "MotorLoad",
    "Reference",
    "Run",
    "Sensors",
    "SineResponse",
    "Sizing",
    "StepMetrics",
    "StreamedRun",
    "Sweep",
    "TorqueSplit",
    "TrackingError",
    "Truth",
    "VirtualRobot",
    "actuator_inertia",
    "actuators_alone",
    "bandwidth",
    "fit_machine",
    "home_of",
    "monte_carlo",
    "path_deviation",
    "plot_step",
    "poses_of",
    "radial_deviation",
    "read_drives",
    "reference_motion",
    "reference_of",
    "simulate",
    "size_motors",
    "small_motions",
    "standard_controller",
    "standard_machine",
    "step_metrics",
    "sweep",
    "time_lag",
    "tool_of",
    "torque_driven",
    "tracking_error",
    "with_noise",
    "write_fmu",
]

guard(globals())
