"""dynident: from a robot's description and its logs to a validated dynamic model.

Names are loaded on first use, so that ``import dynident`` stays fast (scipy and the compiler come with the first computation).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dynident.errors import DynidentError, DynidentWarning
    from dynident.identify import OLS, WLS, BaseParameters, Fit, Regression, Score, base_parameters, essential_parameters
    from dynident.mechanics import (
        Motion,
        coriolis_matrix,
        energy_regressor,
        forward_dynamics,
        forward_kinematics,
        frame_motion,
        gravity,
        inverse_dynamics,
        jacobian,
        mass_matrix,
        momentum_regressor,
        regressor,
    )
    from dynident.mechanism import Actuator, Body, Coupling, Joint, Limits, Loop, Mechanism, Parameters, Placement
    from dynident.signals import Log, diagnose, prepare

_HOME = {
    "dynident.errors": ("DynidentError", "DynidentWarning"),
    "dynident.mechanism": (
        "Actuator",
        "Body",
        "Coupling",
        "Joint",
        "Limits",
        "Loop",
        "Mechanism",
        "Parameters",
        "Placement",
    ),
    "dynident.mechanics": (
        "Motion",
        "coriolis_matrix",
        "energy_regressor",
        "forward_dynamics",
        "forward_kinematics",
        "frame_motion",
        "gravity",
        "inverse_dynamics",
        "jacobian",
        "mass_matrix",
        "momentum_regressor",
        "regressor",
    ),
    "dynident.signals": ("Log", "diagnose", "prepare"),
    "dynident.identify": (
        "OLS",
        "WLS",
        "BaseParameters",
        "Fit",
        "Regression",
        "Score",
        "base_parameters",
        "essential_parameters",
    ),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "OLS",
    "WLS",
    "Actuator",
    "BaseParameters",
    "Body",
    "Coupling",
    "DynidentError",
    "DynidentWarning",
    "Fit",
    "Joint",
    "Limits",
    "Log",
    "Loop",
    "Mechanism",
    "Motion",
    "Parameters",
    "Placement",
    "Regression",
    "Score",
    "__version__",
    "base_parameters",
    "coriolis_matrix",
    "diagnose",
    "energy_regressor",
    "essential_parameters",
    "forward_dynamics",
    "forward_kinematics",
    "frame_motion",
    "gravity",
    "inverse_dynamics",
    "jacobian",
    "mass_matrix",
    "momentum_regressor",
    "prepare",
    "regressor",
]


def __getattr__(name: str) -> object:
    if name in _MODULE:
        return getattr(import_module(_MODULE[name]), name)
    raise AttributeError(f"module 'dynident' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
