"""Identifying friction: separable least squares, Kalman filter, LuGre protocol, thermal models, choice of model."""

from dynident.identify.friction.result import AxisFit, RobotFit, SeparableFit
from dynident.identify.friction.separable import fit_axis, fit_log, fit_robot

__all__ = ["AxisFit", "RobotFit", "SeparableFit", "fit_axis", "fit_log", "fit_robot"]
