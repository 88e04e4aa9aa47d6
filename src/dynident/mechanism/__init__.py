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
    from dynident.mechanism.urdf_extensions import drake_rotors, gazebo_base, gazebo_springs
    from dynident.mechanism.urdf_writer import write_urdf

# Readers and writers are imported on first use: most programs need one of them.
_LATER = {
    "additions": "own_parts with_own_parts",
    "describe": "description description_text effort_units",
    "dh": "read_dh",
    "files": "is_mjcf is_sdf read_robot write_robot",
    "graph": "write_svg",
    "mjcf": "read_mjcf",
    "mjcf_writer": "write_mjcf",
    "sdf": "read_sdf",
    "sidecar": "apply_sidecar write_sidecar",
    "texts": "mjcf_text urdf_text",
    "urdf": "read_urdf",
    "urdf_extensions": "drake_rotors gazebo_base gazebo_springs",
    "urdf_writer": "write_urdf",
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
    "gazebo_base",
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
