"""Friction experiments: plateaus, curves per temperature, warm-up, and the multi-profile test of an actuator."""

from dynident.identify.experiments.curves import CurveFit, FrictionCurve, FrictionCurves, friction_curves
from dynident.identify.experiments.gravity import Gravity, SingleAxis, plateau_gravity, single_axis
from dynident.identify.experiments.history import FrictionHistory
from dynident.identify.experiments.multi_profile import MultiProfile, multi_profile_motion, multi_profile_test
from dynident.identify.experiments.plateaus import Plateau, Plateaus, find_plateaus
from dynident.identify.experiments.warmup import Warmup, fit_warmup

__all__ = [
    "CurveFit",
    "FrictionCurve",
    "FrictionCurves",
    "FrictionHistory",
    "Gravity",
    "MultiProfile",
    "Plateau",
    "Plateaus",
    "SingleAxis",
    "Warmup",
    "find_plateaus",
    "fit_warmup",
    "friction_curves",
    "multi_profile_motion",
    "multi_profile_test",
    "plateau_gravity",
    "single_axis",
]
