"""What a robot is: bodies, joints, loops, couplings, actuators and parameters, with readers and writers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dynident.mechanism.coupling import Coupling
from dynident.mechanism.elements import Actuator, Body, Joint, Limits, Loop, Placement
from dynident.mechanism.inertia import Consistency, check_consistency
from dynident.mechanism.loops import DOT, LINEAR, POINT, SLIDE, Closure, LoopArrays
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import Parameters
from dynident.mechanism.tree import FIXED, FREE, NODE_DOF, PRISMATIC, REVOLUTE, SPHERICAL, Tree

if TYPE_CHECKING:
    from dynident.mechanism.dh import read_dh
    from dynident.mechanism.mjcf import read_mjcf
    from dynident.mechanism.mjcf_writer import write_mjcf
    from dynident.mechanism.sidecar import apply_sidecar, write_sidecar
    from dynident.mechanism.urdf import read_urdf
    from dynident.mechanism.urdf_writer import write_urdf

# Readers and writers are imported on first use: most programs need one of them.
_LATER = {
    "apply_sidecar": "sidecar",
    "read_dh": "dh",
    "read_mjcf": "mjcf",
    "read_urdf": "urdf",
    "write_mjcf": "mjcf_writer",
    "write_sidecar": "sidecar",
    "write_urdf": "urdf_writer",
}

__all__ = [
    "DOT",
    "FIXED",
    "FREE",
    "LINEAR",
    "NODE_DOF",
    "POINT",
    "PRISMATIC",
    "REVOLUTE",
    "SLIDE",
    "SPHERICAL",
    "Actuator",
    "Body",
    "Closure",
    "Consistency",
    "Coupling",
    "Joint",
    "Limits",
    "Loop",
    "LoopArrays",
    "Mechanism",
    "Parameters",
    "Placement",
    "Tree",
    "apply_sidecar",
    "check_consistency",
    "read_dh",
    "read_mjcf",
    "read_urdf",
    "write_mjcf",
    "write_sidecar",
    "write_urdf",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"dynident.mechanism.{_LATER[name]}"), name)
    raise AttributeError(f"module 'dynident.mechanism' has no attribute '{name}'")
