"""The compliant 3-PRS stage for micro-milling: three radial sliders raise (z) and tilt (psi, theta) a small platform.

Source: [Ruiz2016]. Numbers in brackets are the paper's equations, its misprints are in docs/references.md. Arrays are
batched: poses (N, 3) as z, psi, theta with R = Ry(theta) Rx(psi) Rz(phi); sliders (N, 3).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.mechanism import Mechanism
from dynident.robots.mast import dynamics as _dynamics
from dynident.robots.mast.dynamics import FORMULATIONS, Bodies
from dynident.robots.mast.model import Design, Leg, build
from dynident.robots.mast.tripod import actuator_jacobian as _actuator_jacobian
from dynident.robots.mast.tripod import check_parallel as _check_parallel
from dynident.robots.mast.tripod import three as _three
from dynident.robots.prs3.data import (
    ALPHA_0,
    BENDING_STIFFNESS,
    DENSITY,
    GEAR,
    HEIGHT,
    LEG,
    MOTOR_RATIO,
    NEEDED,
    OFFSET,
    PITCH,
    RADIUS,
    REVOLUTE_FLEXURE,
    REVOLUTE_STIFFNESS,
    SECTION,
    SPHERICAL_FLEXURE,
    TABLE_2,
    TABLE_3_GUIDES,
    TABLE_4,
    TILT,
    TORQUE_CONSTANT,
    TORSION_STIFFNESS,
    TRAVEL,
    TRIPOD,
    WORKING_MODES,
)
from dynident.robots.prs3.kinematics import (
    assembly_modes,
    forward_kinematics,
    inverse_kinematics,
    jacobians,
    leg_angles,
    parasitic_motion,
    platform_motion,
    singularity,
    slider_motion,
    spherical_angles,
)

Array = NDArray[np.float64]

_LEG_MASS = DENSITY * SECTION**2 * LEG  # 30.7 g
_TILTING = 0.25 * RADIUS**2 + SECTION**2 / 12.0
_PLATFORM_MASS = DENSITY * np.pi * RADIUS**2 * SECTION  # 203 g
BODIES = Bodies(
    bar_mass=_LEG_MASS,
    bar_inertia=_LEG_MASS * (LEG**2 + SECTION**2) / 12.0,
    platform_mass=float(_PLATFORM_MASS),
    platform_inertia=_PLATFORM_MASS * np.diag([_TILTING, _TILTING, 0.5 * RADIUS**2]),
)
"""Legs from section and density of the paper; the platform is NOT printed: a disc of radius b, thick as the legs, stands in."""

_DRIVE = {"ia": 0.0, "fv": 0.0, "fc": 0.0, "off": 0.0}
_PIN = {"fv": 0.0, "k": REVOLUTE_STIFFNESS}
_BEND, _TWIST = {"fv": 0.0, "k": BENDING_STIFFNESS}, {"fv": 0.0, "k": TORSION_STIFFNESS}
# (25): m is against the bar frame's y, n = l x m against its z; rotations in the order m, n, l (32).
_BALL = Leg("spherical", (("beta_m", 1, -1.0, _BEND), ("beta_n", 2, -1.0, _BEND), ("beta_l", 0, 1.0, _TWIST)))
_DESIGN = Design(
    slider="s",
    pin="alpha",
    pin_zero=float(ALPHA_0),
    legs=(_BALL, _BALL, _BALL),
    slider_terms=_DRIVE,
    pin_terms=_PIN,
    stroke=(-0.02, 0.02),
    source="[Ruiz2016]",
)


def mechanism(
    coordinates: str = "platform",
    working_mode: str | Sequence[int] = "inward",
    passive: str = "modelled",
    bodies: Bodies = BODIES,
    motor_ratio: float = 1.0,
) -> Mechanism:
    """Return the 3-PRS, level at home.

    Sliders ``s_i`` (positive inward), revolute flexures ``alpha_i`` (turn from 45 degrees) and spherical flexures ``beta_m_i``,
    ``beta_n_i``, ``beta_l_i``, all with the stiffness of the paper as prior of their spring term ``k``. Platform ``z``,
    ``psi``, ``theta``, with parasitic ``x``, ``y``, ``phi``. No constraint is too many.

    Parameters
    ----------
    coordinates : {"platform", "actuators"}
        Independent coordinates: z, psi, theta; or s_1, s_2, s_3.
    working_mode : {"inward", "outward"} or three signs
        Way the legs lean; the flexures are unstrained in ``"inward"``.
    passive : {"modelled", "ideal"}
        Spherical joints with stiffness and friction, or cut (then only the revolute flexures are springs).
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
    working_mode: str | Sequence[int] = "inward",
    formulation: str = "energy",
) -> Array:
    """Return the slider forces that move the bodies, without flexures, friction and drives (`mechanism` has them).

    Parameters
    ----------
    x, v, a : array_like, (N, 3)
        z, psi, theta and derivatives.
    bodies : Bodies
        Masses.
    working_mode : {"inward", "outward"} or three signs
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


def mass_matrix(x: ArrayLike, bodies: Bodies = BODIES, working_mode: str | Sequence[int] = "inward") -> Array:
    """Return the mass matrix in slider coordinates.

    Parameters
    ----------
    x : array_like, (N, 3)
        z, psi, theta.
    bodies : Bodies
        Masses.
    working_mode : {"inward", "outward"} or three signs
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
    "ALPHA_0",
    "BENDING_STIFFNESS",
    "BODIES",
    "DENSITY",
    "FORMULATIONS",
    "GEAR",
    "HEIGHT",
    "LEG",
    "MOTOR_RATIO",
    "NEEDED",
    "OFFSET",
    "PITCH",
    "RADIUS",
    "REVOLUTE_FLEXURE",
    "REVOLUTE_STIFFNESS",
    "SECTION",
    "SPHERICAL_FLEXURE",
    "TABLE_2",
    "TABLE_3_GUIDES",
    "TABLE_4",
    "TILT",
    "TORQUE_CONSTANT",
    "TORSION_STIFFNESS",
    "TRAVEL",
    "TRIPOD",
    "WORKING_MODES",
    "Bodies",
    "assembly_modes",
    "forward_kinematics",
    "inverse_dynamics",
    "inverse_kinematics",
    "jacobians",
    "leg_angles",
    "mass_matrix",
    "mechanism",
    "parasitic_motion",
    "platform_motion",
    "singularity",
    "slider_motion",
    "spherical_angles",
]
