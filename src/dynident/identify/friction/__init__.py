"""Identifying friction laws: separable least squares, Kalman filter, choice of law."""

from dynident.identify.friction.choice import Choice, Contender, choose, choose_law, effective_samples
from dynident.identify.friction.kalman import FrictionFilter, KalmanResult
from dynident.identify.friction.result import AxisFit, RobotFit, SeparableFit
from dynident.identify.friction.separable import fit_axis, fit_log, fit_robot

__all__ = [
    "AxisFit",
    "Choice",
    "Contender",
    "FrictionFilter",
    "KalmanResult",
    "RobotFit",
    "SeparableFit",
    "choose",
    "choose_law",
    "effective_samples",
    "fit_axis",
    "fit_log",
    "fit_robot",
]
