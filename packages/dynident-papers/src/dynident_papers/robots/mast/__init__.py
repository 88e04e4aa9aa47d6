"""MAST, the 2PRU-1PRS shaking table: three vertical guides carry a platform that heaves (z) and tilts (psi, theta).

Sources: [Roldan2017, section 4.2 and appendix B.2] and [Roldan2016], which calls it 3PRS. Numbers in brackets are the thesis'
equations, its misprints are in docs/references.md. Arrays are batched: poses (N, 3) as z, psi, theta with
R = Ry(theta) Rx(psi); sliders (N, 3).
"""

from __future__ import annotations

from typing import Any

from dynident.control import Cascade
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.errors import DynidentError
from dynident.friction import Coulomb, Friction
from dynident.mechanism import Mechanism
from dynident.simulate import VirtualRobot
from dynident_papers.robots.mast.closed_forms import *
from dynident_papers.robots.mast.data import *
from dynident_papers.robots.shared import without_terms
from dynident_papers.robots.tripod import Mode
from dynident_papers.robots.tripod_dynamics import FORMULATIONS, Bodies

__all__ = [
    "ASSUMPTIONS", "BANDWIDTHS", "BANDWIDTH_ACTUATORS", "BANDWIDTH_MAST", "BANDWIDTH_NOTES", "BAR", "BAR_INERTIA", "BAR_MASS",
    "BODE", "BODIES", "COULOMB_ADJUSTED", "COULOMB_CATALOGUE", "FORMULATIONS", "GEAR", "J_1", "J_1_ADJUSTED", "J_2",
    "LARGEST_TILT", "MOTOR_RATIO", "OFFSET", "PITCH", "PLATFORM_MASS", "RADIUS", "STROKE", "TABLE_4_2", "TRIPOD",
    "WORKING_MODES", "Bodies", "assembly_modes", "bar_jacobians", "forward_kinematics", "inverse_dynamics",
    "inverse_kinematics", "jacobians", "leg_angles", "machine", "mass_matrix", "mechanism", "parasitic_motion",
    "platform_jacobians", "platform_motion", "singularity", "slider_motion", "unloaded",
]  # fmt: skip


def mechanism(
    coordinates: str = "platform",
    working_mode: Mode = None,
    passive: str = "modelled",
    bodies: Bodies | None = None,
    motor_ratio: float = 1.0,
) -> Mechanism:
    """Return the shaking table, level at home."""
    return ROBOT.mechanism(coordinates, working_mode, passive, bodies, motor_ratio)


STEP = 1.25e-4  # s


def drives(parameters: str = "catalogue", elastic: bool = True, load: float = LOAD) -> tuple[Drive, ...]:
    """Return the three belt drives (Table 4.2): rotor, gear and coupling J_1 on a shaft k_t, c_t to the carriage J_2."""
    if parameters not in PARAMETERS:
        raise DynidentError(f"MAST: parameters is {parameters!r}; it is one of {', '.join(PARAMETERS)}")
    inertia, loaded = PARAMETERS[parameters]
    coulomb = loaded + FRICTION_PER_LOAD * (load - LOAD)
    shaft = {"stiffness": (TABLE_4_2["k_t"],), "damping": (ASSUMPTIONS["damping"].value,)} if elastic else {}
    belt = Transmission.belt(PITCH, GEAR, inertias=(J_2,), **shaft)
    motor = Motor(ASSUMPTIONS["torque_constant"].value, inertia=inertia, current_limit=ASSUMPTIONS["current_limit"].value)
    law: Friction = Coulomb().using(fc=coulomb)
    return tuple(Drive(f"motor_{i}", motor, belt, law, Encoder()) for i in (1, 2, 3))


def machine(
    position_gain: float = ASSUMPTIONS["position_gain"].value,
    position_cycle: float = ASSUMPTIONS["position_cycle"].value,
    velocity_cycle: float = ASSUMPTIONS["velocity_cycle"].value,
    *,
    position_delay: float = ASSUMPTIONS["position_delay"].value,
    velocity_gain: float = ASSUMPTIONS["velocity_gain"].value,
    velocity_integral: float = ASSUMPTIONS["velocity_integral"].value,
    parameters: str = "catalogue",
    elastic: bool = True,
    load: float = LOAD,
    coordinates: str = "platform",
    controller: Any = None,
    step: float = STEP,
) -> VirtualRobot:
    """Return the shaking table with its drives and loops; unprinted values are in `ASSUMPTIONS`.

    Sliders and gears are in the drives only (J_1, J_2); bars and platform are the mechanism.
    """
    robot = without_terms(mechanism(coordinates, passive="ideal"), ("rho_1", "rho_2", "rho_3"))
    loops = controller or Cascade(
        position_gain,
        velocity_gain,
        velocity_integral,
        position_cycle=position_cycle,
        velocity_cycle=velocity_cycle,
        position_delay=position_delay,
    )
    return VirtualRobot(robot, drives(parameters, elastic, load), loops, step=step, name="MAST")


def unloaded() -> VirtualRobot:
    """Return the machine with the guide friction measured without the mechanism ("actuators alone")."""
    return machine(load=TABLE_4_2["M"])
