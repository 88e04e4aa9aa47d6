"""The compliant 3-PRS stage for micro-milling: three radial sliders raise (z) and tilt (psi, theta) a small platform.

Source: [Ruiz2016]. Numbers in brackets are the paper's equations, its misprints are in docs/references.md. Arrays are
batched: poses (N, 3) as z, psi, theta with R = Ry(theta) Rx(psi) Rz(phi); sliders (N, 3).
"""

from __future__ import annotations

from typing import Any

from dynident.control import Cascade
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.friction import Coulomb, Viscous
from dynident.mechanism import Mechanism
from dynident.simulate import VirtualRobot
from dynident_papers.robots.prs3.closed_forms import *
from dynident_papers.robots.prs3.compliant import REVOLUTE_HINGE, SPHERICAL_HINGE, CompliantPose, compliant_pose
from dynident_papers.robots.prs3.data import *
from dynident_papers.robots.shared import without_terms
from dynident_papers.robots.tripod import Mode
from dynident_papers.robots.tripod_dynamics import FORMULATIONS, Bodies

__all__ = [
    "ALPHA_0", "ASSUMPTIONS", "BENDING_STIFFNESS", "BODIES", "BOX", "DENSITY", "FORMULATIONS", "GEAR", "HEIGHT", "LEG",
    "MOTOR_RATIO", "NEEDED", "NEEDED_SLIDERS", "NOTES", "OFFSET", "PITCH", "RADIUS",
    "REVOLUTE_FLEXURE", "REVOLUTE_HINGE", "REVOLUTE_STIFFNESS",
    "SECTION", "SPHERICAL_FLEXURE", "SPHERICAL_HINGE", "TABLE_2", "TABLE_3_ACTUATORS", "TABLE_3_BASES", "TABLE_3_GUIDES",
    "TABLE_3_LEGS", "TABLE_4", "TILT", "TORQUE_CONSTANT", "TORSION_STIFFNESS", "TRAVEL", "TRIPOD", "WORKING_MODES", "Bodies",
    "CompliantPose", "assembly_modes", "compliant_pose", "forward_kinematics", "inverse_dynamics", "inverse_kinematics",
    "jacobians", "leg_angles", "machine", "mass_matrix", "mechanism", "parasitic_motion", "platform_motion", "singularity",
    "slider_motion", "spherical_angles",
]  # fmt: skip


STEP = 2.5e-4  # s


def mechanism(
    coordinates: str = "platform",
    working_mode: Mode = None,
    passive: str = "modelled",
    bodies: Bodies | None = None,
    motor_ratio: float = 1.0,
) -> Mechanism:
    """Return the 3-PRS, level at home."""
    return ROBOT.mechanism(coordinates, working_mode, passive, bodies, motor_ratio)


def machine(
    position_gain: float = POSITION_GAIN,
    position_cycle: float = POSITION_CYCLE,
    velocity_cycle: float = VELOCITY_CYCLE,
    *,
    velocity_feedforward: float = 0.0,
    coordinates: str = "platform",
    passive: str = "modelled",
    controller: Any = None,
    step: float = STEP,
) -> VirtualRobot:
    """Return the stage on its belt drives with the paper's loops and flexures; unprinted values are in `ASSUMPTIONS`.

    Drives carry rotor, gear, carriage and the friction of the guides; legs, platform and flexures are the mechanism.
    """
    robot = without_terms(mechanism(coordinates, passive=passive), ("s_1", "s_2", "s_3"))
    inertia, coulomb, viscous = (ASSUMPTIONS[name].value for name in ("drive_inertia", "coulomb", "viscous"))
    motor = Motor(TORQUE_CONSTANT, inertia=inertia / MOTOR_RATIO**2, current_limit=ASSUMPTIONS["current_limit"].value)
    law = (Coulomb() + Viscous()).using(fc=coulomb / MOTOR_RATIO, fv=viscous / MOTOR_RATIO**2)
    belt = Transmission.belt(PITCH, GEAR)
    loops = controller or Cascade(
        position_gain,
        *VELOCITY_PI,
        position_cycle=position_cycle,
        velocity_cycle=velocity_cycle,
        velocity_feedforward=velocity_feedforward,
    )
    drives = tuple(Drive(f"motor_{i}", motor, belt, law, Encoder()) for i in (1, 2, 3))
    return VirtualRobot(robot, drives, loops, step=step, name="3-PRS")
