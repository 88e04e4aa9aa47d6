"""MAST, the 2PRU-1PRS shaking table: three vertical guides carry a platform that heaves (z) and tilts (psi, theta).

Sources: [Roldan2017, section 4.2 and appendix B.2] and [Roldan2016], which calls it 3PRS. Numbers in brackets are the thesis'
equations, its misprints are in docs/references.md. Arrays are batched: poses (N, 3) as z, psi, theta with
R = Ry(theta) Rx(psi); sliders (N, 3).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.mechanism import Mechanism
from dynident.robots.mast import dynamics as _dynamics
from dynident.robots.mast.data import (
    BANDWIDTH_ACTUATORS,
    BANDWIDTH_MAST,
    BANDWIDTHS,
    BAR,
    BAR_INERTIA,
    BAR_MASS,
    BODE,
    COULOMB_ADJUSTED,
    COULOMB_CATALOGUE,
    GEAR,
    J_1,
    J_1_ADJUSTED,
    J_2,
    LARGEST_TILT,
    MOTOR_RATIO,
    OFFSET,
    PITCH,
    PLATFORM_MASS,
    RADIUS,
    STROKE,
    TABLE_4_2,
    TRIPOD,
    WORKING_MODES,
)
from dynident.robots.mast.dynamics import FORMULATIONS, Bodies
from dynident.robots.mast.kinematics import (
    assembly_modes,
    bar_jacobians,
    forward_kinematics,
    inverse_kinematics,
    jacobians,
    leg_angles,
    parasitic_motion,
    platform_jacobians,
    platform_motion,
    singularity,
    slider_motion,
)
from dynident.robots.mast.machine import ASSUMPTIONS, BANDWIDTH_NOTES, machine, unloaded
from dynident.robots.mast.model import FRICTION, Design, Leg, build, turn
from dynident.robots.mast.tripod import actuator_jacobian as _actuator_jacobian
from dynident.robots.mast.tripod import check_parallel as _check_parallel
from dynident.robots.mast.tripod import three as _three

Array = NDArray[np.float64]

BODIES = Bodies(
    bar_mass=BAR_MASS,
    bar_inertia=BAR_INERTIA,
    platform_mass=PLATFORM_MASS,
    platform_inertia=0.25 * PLATFORM_MASS * RADIUS**2 * np.diag([1.0, 1.0, 2.0]),
)
"""Masses of section 4.2. I_mp is NOT printed: that of a thin disc of radius r stands in; sliders belong to the drives there."""

_DRIVE = {"ia": 0.0, "fv": 0.0, "fc": 0.0, "off": 0.0}
_BACK = turn(1, -np.pi)  # so that the first axis of the joint at the platform turns by theta - gamma
_CROSS = Leg("universal", (("beta_m", 1, 1.0, FRICTION), ("beta_l", 0, 1.0, FRICTION)), _BACK)
_BALL = Leg("spherical", (("beta_m", 1, 1.0, FRICTION), ("beta_n", 2, 1.0, FRICTION), ("beta_l", 0, 1.0, FRICTION)), _BACK)
_DESIGN = Design(
    slider="rho",
    pin="gamma",
    pin_zero=0.0,
    legs=(_CROSS, _BALL, _CROSS),
    slider_terms=_DRIVE,
    pin_terms=FRICTION,
    stroke=(-0.5 * STROKE, 0.5 * STROKE),
    source="[Roldan2017, section 4.2]",
)


def mechanism(
    coordinates: str = "platform",
    working_mode: str | Sequence[int] = "below",
    passive: str = "modelled",
    bodies: Bodies = BODIES,
    motor_ratio: float = 1.0,
) -> Mechanism:
    """Return the shaking table, level at home.

    Sliders ``rho_i``, pins ``gamma_i``, and at the platform ``beta_m_i``, ``beta_l_i`` (universal joints of legs 1 and 3:
    parallel to the pin, along the platform's x axis) and ``beta_m_2``, ``beta_n_2``, ``beta_l_2`` (spherical joint of leg 2).
    Platform ``z``, ``psi``, ``theta``, with parasitic ``x``, ``y``, ``phi``. The robot has two constraints too many.

    Parameters
    ----------
    coordinates : {"platform", "actuators"}
        Independent coordinates: z, psi, theta; or rho_1, rho_2, rho_3.
    working_mode : {"below", "above"} or three signs
        Side of the platform joints on which the sliders are.
    passive : {"modelled", "ideal"}
        Joints at the platform with friction, or cut.
    bodies : Bodies
        Masses.
    motor_ratio : float
        `MOTOR_RATIO` for motors in rad and N m; 1 for sliders in m and N.

    Returns
    -------
    Mechanism
        The robot with 3 degrees of freedom and 3 motors.
    """
    return build(TRIPOD, bodies, _DESIGN, TRIPOD.signs(working_mode), coordinates, passive, motor_ratio)


def inverse_dynamics(
    x: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    bodies: Bodies = BODIES,
    working_mode: str | Sequence[int] = "below",
    formulation: str = "energy",
) -> Array:
    """Return the slider forces t_rho of (4.32), without friction and drives.

    Parameters
    ----------
    x, v, a : array_like, (N, 3)
        z, psi, theta and derivatives.
    bodies : Bodies
        Masses.
    working_mode : {"below", "above"} or three signs
        Working mode.
    formulation : {"energy", "boltzmann-hamel"}
        How the rotation of the platform is written.

    Returns
    -------
    ndarray, (N, 3)
        Forces on the sliders [N].
    """
    pose, rate, acceleration = _three(x=x, v=v, a=a)
    signs = TRIPOD.signs(working_mode)
    parts = _dynamics.contributions(TRIPOD, pose, rate, acceleration, signs, bodies, formulation)
    total = sum(parts.values(), np.zeros_like(pose))
    return _dynamics.slider_forces(TRIPOD, pose, total, _actuator_jacobian(TRIPOD, pose, signs))


def mass_matrix(x: ArrayLike, bodies: Bodies = BODIES, working_mode: str | Sequence[int] = "below") -> Array:
    """Return the mass matrix in slider coordinates, I_Ls + I_G + I_mp of (4.32).

    Parameters
    ----------
    x : array_like, (N, 3)
        z, psi, theta.
    bodies : Bodies
        Masses.
    working_mode : {"below", "above"} or three signs
        Working mode.

    Returns
    -------
    ndarray, (N, 3, 3)
        Mass matrix [kg].
    """
    (pose,) = _three(x=x)
    signs = TRIPOD.signs(working_mode)
    A = _actuator_jacobian(TRIPOD, pose, signs)
    _check_parallel(TRIPOD, A, pose)
    J = np.linalg.inv(A)
    return np.asarray(np.swapaxes(J, 1, 2) @ _dynamics.mass_matrix(TRIPOD, pose, signs, bodies) @ J)


__all__ = [
    "ASSUMPTIONS",
    "BANDWIDTHS",
    "BANDWIDTH_ACTUATORS",
    "BANDWIDTH_MAST",
    "BANDWIDTH_NOTES",
    "BAR",
    "BAR_INERTIA",
    "BAR_MASS",
    "BODE",
    "BODIES",
    "COULOMB_ADJUSTED",
    "COULOMB_CATALOGUE",
    "FORMULATIONS",
    "GEAR",
    "J_1",
    "J_1_ADJUSTED",
    "J_2",
    "LARGEST_TILT",
    "MOTOR_RATIO",
    "OFFSET",
    "PITCH",
    "PLATFORM_MASS",
    "RADIUS",
    "STROKE",
    "TABLE_4_2",
    "TRIPOD",
    "WORKING_MODES",
    "Bodies",
    "assembly_modes",
    "bar_jacobians",
    "forward_kinematics",
    "inverse_dynamics",
    "inverse_kinematics",
    "jacobians",
    "leg_angles",
    "machine",
    "mass_matrix",
    "mechanism",
    "parasitic_motion",
    "platform_jacobians",
    "platform_motion",
    "singularity",
    "slider_motion",
    "unloaded",
]
