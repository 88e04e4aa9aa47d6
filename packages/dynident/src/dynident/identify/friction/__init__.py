"""Identifying friction laws: in the fit of a robot, one axis, Kalman filter, choice of law."""

from dynident.identify.friction.axis import AxisFit, fit_axis
from dynident.identify.friction.choice import Choice, Contender, choose
from dynident.identify.friction.laws import FrictionChoice, choose_friction, choose_law
from dynident.identify.friction.robot import fit_log, fit_robot
from dynident_lab.testbench import FrictionFilter, KalmanResult

__all__ = [
    "AxisFit",
    "Choice",
    "Contender",
    "FrictionChoice",
    "FrictionFilter",
    "KalmanResult",
    "choose",
    "choose_friction",
    "choose_law",
    "fit_axis",
    "fit_log",
    "fit_robot",
]
