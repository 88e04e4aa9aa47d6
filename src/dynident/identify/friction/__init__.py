"""Identifying friction: laws in the fit of a robot, one axis, Kalman filter, LuGre protocol, thermal models, choice."""

from dynident.identify.friction.choice import (
    Choice,
    Contender,
    FrictionChoice,
    choose,
    choose_friction,
    choose_law,
    choose_thermal,
    effective_samples,
)
from dynident.identify.friction.kalman import FrictionFilter, KalmanResult
from dynident.identify.friction.lugre import LuGreFit, fit_lugre, fit_static
from dynident.identify.friction.result import AxisFit
from dynident.identify.friction.robot import fit_log, fit_robot
from dynident.identify.friction.separable import fit_axis
from dynident.identify.friction.temperature import TemperatureComparison, compare_temperature
from dynident.identify.friction.thermal import fit_thermal
from dynident.identify.friction.thermal_data import ThermalFit, ThermalTest

__all__ = [
    "AxisFit",
    "Choice",
    "Contender",
    "FrictionChoice",
    "FrictionFilter",
    "KalmanResult",
    "LuGreFit",
    "TemperatureComparison",
    "ThermalFit",
    "ThermalTest",
    "choose",
    "choose_friction",
    "choose_law",
    "choose_thermal",
    "compare_temperature",
    "effective_samples",
    "fit_axis",
    "fit_log",
    "fit_lugre",
    "fit_robot",
    "fit_static",
    "fit_thermal",
]
