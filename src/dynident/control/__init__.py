"""How the robot is made to follow: cascades, PID, computed torque, feed-forward, distribution over actuators, tuning."""

from dynident.arguments import guard
from dynident.checks import per_actuator
from dynident.control.checks import ControlWarning, check_preload
from dynident.control.controller import Controller, Machine, Measurement, Setpoint
from dynident.control.distribution import (
    actuator_rows,
    coupling_rows,
    internal_basis,
    minimum_norm,
    remove_internal,
    with_preload,
)
from dynident.control.feedforward import actuator_motion, feedforward_torques, friction_laws, motor_currents, motor_torques
from dynident.control.gains import gains_for, pi_gains
from dynident.control.laws import PID, Cascade, ComputedTorque, CurrentLoop, OpenLoop
from dynident.control.linear import Axis
from dynident.control.margins import Margins, cutoff_frequency, delayed_integrator, margins
from dynident.control.task import TaskCascade, TaskComputedTorque, TaskPID, bound_space
from dynident.control.tick import clip, current_loop, low_pass_share, low_pass_step, pid_law, velocity_loop
from dynident.control.tuning import pi_poles, tune_cascade
from dynident.control.workspace import Bound, CoordinateSpace, MapSpace, ToolSpace, Workspace, own_coordinates
from dynident.control.zone import Gains, Trial, ZoneTuning, zone_tune_cascade, zone_tuning

__all__ = [
    "PID",
    "Axis",
    "Bound",
    "Cascade",
    "ComputedTorque",
    "ControlWarning",
    "Controller",
    "CoordinateSpace",
    "CurrentLoop",
    "Gains",
    "Machine",
    "MapSpace",
    "Margins",
    "Measurement",
    "OpenLoop",
    "Setpoint",
    "TaskCascade",
    "TaskComputedTorque",
    "TaskPID",
    "ToolSpace",
    "Trial",
    "Workspace",
    "ZoneTuning",
    "actuator_motion",
    "actuator_rows",
    "bound_space",
    "check_preload",
    "clip",
    "coupling_rows",
    "current_loop",
    "cutoff_frequency",
    "delayed_integrator",
    "feedforward_torques",
    "friction_laws",
    "gains_for",
    "internal_basis",
    "low_pass_share",
    "low_pass_step",
    "margins",
    "minimum_norm",
    "motor_currents",
    "motor_torques",
    "own_coordinates",
    "per_actuator",
    "pi_gains",
    "pi_poles",
    "pid_law",
    "remove_internal",
    "tune_cascade",
    "velocity_loop",
    "with_preload",
    "zone_tune_cascade",
    "zone_tuning",
]

guard(globals())
