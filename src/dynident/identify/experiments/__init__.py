"""Friction experiments: plateaus, curves per temperature, warm-up, and the multi-profile test of an actuator."""

from dynident.identify.experiments.compensation import (
    Compensation,
    MeasuredTemperature,
    NoCompensation,
    ThermalPrediction,
    WarmupTime,
)
from dynident.identify.experiments.curve import CurveFit, FrictionCurve
from dynident.identify.experiments.curves import FrictionCurves, friction_curves
from dynident.identify.experiments.gravity import Gravity, SingleAxis, plateau_gravity, single_axis
from dynident.identify.experiments.history import FrictionHistory
from dynident.identify.experiments.multi_profile import MultiProfile, multi_profile_motion, multi_profile_test
from dynident.identify.experiments.plateaus import Plateau, Plateaus, find_plateaus
from dynident.identify.experiments.study import FrictionStudy, JointStudy, friction_study
from dynident.identify.experiments.variance import Spread, nested_spread
from dynident.identify.experiments.warmup import Warmup, fit_warmup

__all__ = [
    "Compensation",
    "CurveFit",
    "FrictionCurve",
    "FrictionCurves",
    "FrictionHistory",
    "FrictionStudy",
    "Gravity",
    "JointStudy",
    "MeasuredTemperature",
    "MultiProfile",
    "NoCompensation",
    "Plateau",
    "Plateaus",
    "SingleAxis",
    "Spread",
    "ThermalPrediction",
    "Warmup",
    "WarmupTime",
    "find_plateaus",
    "fit_warmup",
    "friction_curves",
    "friction_study",
    "multi_profile_motion",
    "multi_profile_test",
    "nested_spread",
    "plateau_gravity",
    "single_axis",
]
