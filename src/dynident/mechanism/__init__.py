"""What a robot is: bodies, joints, loops, couplings, actuators and parameters, with readers and writers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynident.arguments import guard
from dynident.mechanism.coupling import Coupling
from dynident.mechanism.elements import Actuator, Body, Joint, Limits, Loop, Placement, rotation_exp
from dynident.mechanism.force import Columns, Force
from dynident.mechanism.inertia import SYMBOLS as INERTIA_SYMBOLS
from dynident.mechanism.inertia import Consistency, check_consistency, from_com, from_principal, principal, pseudo_inertia
from dynident.mechanism.loops import DOT, LINEAR, POINT, SLIDE, Closure, LoopArrays
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import Parameters
from dynident.mechanism.tree import FIXED, FREE, NODE_DOF, PRISMATIC, REVOLUTE, SPHERICAL, Tree

if TYPE_CHECKING:
    from dynident.mechanism.additions import own_parts, with_own_parts
    from dynident.mechanism.describe import description, description_text, effort_units
    from dynident.mechanism.dh import read_dh
    from dynident.mechanism.files import is_mjcf, is_sdf, read_robot, write_robot
    from dynident.mechanism.graph import write_svg
    from dynident.mechanism.mjcf import read_mjcf
    from dynident.mechanism.mjcf_writer import write_mjcf
    from dynident.mechanism.sdf import read_sdf
    from dynident.mechanism.sidecar import apply_sidecar, write_sidecar
    from dynident.mechanism.texts import mjcf_text, urdf_text
    from dynident.mechanism.urdf import read_urdf
    from dynident.mechanism.urdf_extensions import drake_rotors, gazebo_springs
    from dynident.mechanism.urdf_writer import write_urdf

# Readers and writers are imported on first use: most programs need one of them.
_LATER = {
    "apply_sidecar": "sidecar",
    "description": "describe",
    "description_text": "describe",
    "drake_rotors": "urdf_extensions",
    "effort_units": "describe",
    "gazebo_springs": "urdf_extensions",
    "is_mjcf": "files",
    "is_sdf": "files",
    "mjcf_text": "texts",
    "own_parts": "additions",
    "read_dh": "dh",
    "read_mjcf": "mjcf",
    "read_robot": "files",
    "read_sdf": "sdf",
    "read_urdf": "urdf",
    "urdf_text": "texts",
    "with_own_parts": "additions",
    "write_mjcf": "mjcf_writer",
    "write_robot": "files",
    "write_sidecar": "sidecar",
    "write_svg": "graph",
    "write_urdf": "urdf_writer",
}

__all__ = [
    "DOT",
    "FIXED",
    "FREE",
    "INERTIA_SYMBOLS",
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
    "Columns",
    "Consistency",
    "Coupling",
    "Force",
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
    "description",
    "description_text",
    "drake_rotors",
    "effort_units",
    "from_com",
    "from_principal",
    "gazebo_springs",
    "is_mjcf",
    "is_sdf",
    "mjcf_text",
    "own_parts",
    "principal",
    "pseudo_inertia",
    "read_dh",
    "read_mjcf",
    "read_robot",
    "read_sdf",
    "read_urdf",
    "rotation_exp",
    "urdf_text",
    "with_own_parts",
    "write_mjcf",
    "write_robot",
    "write_sidecar",
    "write_svg",
    "write_urdf",
]

guard(globals(), later=_LATER)
