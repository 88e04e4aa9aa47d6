"""dynident: from a robot's description and its logs to a validated dynamic model.

Names and rooms (``di.robots``, ``di.simulate``, ...) are loaded on first use, so that ``import dynident`` stays fast (scipy and
the compiler come with the first computation).
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from dynident import control as control
    from dynident import drive as drive
    from dynident import examples as examples
    from dynident import excitation as excitation
    from dynident import export as export
    from dynident import fleet as fleet
    from dynident import friction as friction
    from dynident import graph as graph
    from dynident import identify as identify
    from dynident import link as link
    from dynident import mechanics as mechanics
    from dynident import mechanism as mechanism
    from dynident import monitor as monitor
    from dynident import report as report
    from dynident import reproduce as reproduce
    from dynident import robots as robots
    from dynident import signals as signals
    from dynident import simulate as simulate
    from dynident import symbolic as symbolic
    from dynident import testbench as testbench
    from dynident import trajectory as trajectory
    from dynident import validate as validate
    from dynident.errors import DynidentError, DynidentWarning
    from dynident.excitation import Plan, design, limits_of
    from dynident.identify import (
        MAP,
        OLS,
        WLS,
        BaseParameters,
        Fit,
        Knowledge,
        Regression,
        Score,
        base_parameters,
        choose_friction,
        essential_parameters,
        fit_log,
    )
    from dynident.mechanics import (
        Motion,
        coriolis_matrix,
        energy_regressor,
        forward_dynamics,
        forward_kinematics,
        frame_motion,
        gravity,
        inverse_dynamics,
        inverse_kinematics,
        jacobian,
        mass_matrix,
        momentum_regressor,
        regressor,
    )
    from dynident.mechanism import (
        Actuator,
        Body,
        Columns,
        Coupling,
        Force,
        Joint,
        Limits,
        Loop,
        Mechanism,
        Parameters,
        Placement,
        write_mjcf,
        write_urdf,
    )
    from dynident.report import write_report
    from dynident.results import load
    from dynident.signals import Log, diagnose, prepare
    from dynident.simulate import VirtualRobot
    from dynident.symbolic import derive
    from dynident.testbench import friction_study, tracking_proof
    from dynident.validate import check, compare, cross_validate, hold_out, judge

ROOMS = (
    "control",
    "drive",
    "examples",
    "excitation",
    "export",
    "fleet",
    "friction",
    "graph",
    "identify",
    "link",
    "mechanics",
    "mechanism",
    "monitor",
    "report",
    "reproduce",
    "robots",
    "signals",
    "simulate",
    "symbolic",
    "testbench",
    "trajectory",
    "validate",
)
_HOME = {
    "dynident.errors": (
        "DynidentError",
        "DynidentWarning",
    ),
    "dynident.results": ("load",),
    "dynident.mechanism": (
        "Actuator",
        "Body",
        "Columns",
        "Coupling",
        "Force",
        "Joint",
        "Limits",
        "Loop",
        "Mechanism",
        "Parameters",
        "Placement",
        "write_mjcf",
        "write_urdf",
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
        "inverse_kinematics",
        "jacobian",
        "mass_matrix",
        "momentum_regressor",
        "regressor",
    ),
    "dynident.signals": (
        "Log",
        "diagnose",
        "prepare",
    ),
    "dynident.symbolic": ("derive",),
    "dynident.identify": (
        "MAP",
        "OLS",
        "WLS",
        "BaseParameters",
        "Fit",
        "Knowledge",
        "Regression",
        "Score",
        "base_parameters",
        "choose_friction",
        "essential_parameters",
        "fit_log",
    ),
    "dynident.validate": (
        "check",
        "compare",
        "cross_validate",
        "hold_out",
        "judge",
    ),
    "dynident.simulate": ("VirtualRobot",),
    "dynident.excitation": (
        "Plan",
        "design",
        "limits_of",
    ),
    "dynident.testbench": (
        "friction_study",
        "tracking_proof",
    ),
    "dynident.report": ("write_report",),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "MAP",
    "OLS",
    "WLS",
    "Actuator",
    "BaseParameters",
    "Body",
    "Columns",
    "Coupling",
    "DynidentError",
    "DynidentWarning",
    "Fit",
    "Force",
    "Joint",
    "Knowledge",
    "Limits",
    "Log",
    "Loop",
    "Mechanism",
    "Motion",
    "Parameters",
    "Placement",
    "Plan",
    "Regression",
    "Score",
    "VirtualRobot",
    "__version__",
    "base_parameters",
    "check",
    "choose_friction",
    "compare",
    "coriolis_matrix",
    "cross_validate",
    "derive",
    "design",
    "diagnose",
    "energy_regressor",
    "essential_parameters",
    "fit_log",
    "forward_dynamics",
    "forward_kinematics",
    "frame_motion",
    "friction_study",
    "gravity",
    "hold_out",
    "inverse_dynamics",
    "inverse_kinematics",
    "jacobian",
    "judge",
    "limits_of",
    "load",
    "mass_matrix",
    "momentum_regressor",
    "prepare",
    "regressor",
    "tracking_proof",
    "write_mjcf",
    "write_report",
    "write_urdf",
]


def __getattr__(name: str) -> Any:
    if name in ROOMS:
        return import_module(f"dynident.{name}")
    if name in _MODULE:
        thing = globals()[name] = getattr(import_module(_MODULE[name]), name)
        return thing
    raise AttributeError(f"module 'dynident' has no attribute '{name}'")


class Verb(ModuleType):
    """A room whose name is a verb can be called: ``di.identify(robot, run)`` is ``di.report.identify_robot(robot, run)``."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return import_module("dynident.report").identify_robot(*args, **kwargs)


def callable_room(name: str) -> None:
    """Let a room be called; the room says so itself when it is loaded, in whatever way."""
    sys.modules[name].__class__ = Verb


def __dir__() -> list[str]:
    return sorted((*__all__, *ROOMS))
