"""3-PRS: its specific closed forms of [Ruiz2016, sections 3.1 to 3.4]; the others are shared by robots with three PR legs.

Sliders s_i, positive inward, raise the platform: s_i = (s_i0 . A_iB_i) -+ sqrt((s_i0 . A_iB_i)^2 - |A_iB_i|^2 + L^2) (20), with
minus for legs that lean inward. Its forward problem is (A.3), (A.7), (A.11); alpha of (22), which prints a degenerate fraction,
is the angle gamma of a leg. Poses x are (N, 3) as z, psi, theta.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident_papers.robots.prs3.data import (
    ALPHA_0,
    BENDING_STIFFNESS,
    DENSITY,
    LEG,
    RADIUS,
    REVOLUTE_STIFFNESS,
    SECTION,
    TORSION_STIFFNESS,
    TRIPOD,
)
from dynident_papers.robots.shared import samples_of
from dynident_papers.robots.tripod import Mode
from dynident_papers.robots.tripod import platform_motion as tripod_motion
from dynident_papers.robots.tripod_dynamics import Bodies
from dynident_papers.robots.tripod_robot import Design, Leg, TripodRobot

_LEG_MASS = DENSITY * SECTION**2 * LEG  # 30.7 g
_TILTING = 0.25 * RADIUS**2 + SECTION**2 / 12.0
_PLATFORM_MASS = DENSITY * np.pi * RADIUS**2 * SECTION  # 203 g
BODIES = Bodies(
    bar_mass=_LEG_MASS,
    bar_inertia=_LEG_MASS * (LEG**2 + SECTION**2) / 12.0,
    platform_mass=float(_PLATFORM_MASS),
    platform_inertia=_PLATFORM_MASS * np.diag([_TILTING, _TILTING, 0.5 * RADIUS**2]),
)
"""Legs from section and density of the paper; the platform is NOT printed: assumed is a disc of radius b, thick as the legs."""
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
ROBOT = TripodRobot(TRIPOD, BODIES, _DESIGN)
assembly_modes = ROBOT.assembly_modes
forward_kinematics = ROBOT.forward_kinematics
inverse_dynamics = ROBOT.inverse_dynamics
inverse_kinematics = ROBOT.inverse_kinematics
jacobians = ROBOT.jacobians
leg_angles = ROBOT.leg_angles
mass_matrix = ROBOT.mass_matrix
platform_motion = ROBOT.platform_motion
singularity = ROBOT.singularity
slider_motion = ROBOT.slider_motion


def parasitic_motion(x: ArrayLike) -> Array:
    """Return the parasitic motion p_x, p_y, phi of the platform [Ruiz2016, eqs. 13-15].

        phi = atan(sin psi sin theta / (cos psi + cos theta)),   p_x = (b/2)(u_x - v_y),   p_y = -b cos psi sin phi

    u and v are the first two axes of the platform in the base frame.
    """
    (pose,) = samples_of(3, x=x)
    cp, sp, ct, st = np.cos(pose[:, 1]), np.sin(pose[:, 1]), np.cos(pose[:, 2]), np.sin(pose[:, 2])
    phi = np.arctan(sp * st / (cp + ct))
    p_x = 0.5 * RADIUS * (ct * np.cos(phi) + sp * st * np.sin(phi) - cp * np.cos(phi))
    return np.column_stack([p_x, -RADIUS * cp * np.sin(phi), phi])


def spherical_angles(x: ArrayLike, working_mode: Mode = None) -> Array:
    """Return the spherical joints' angles, R_iR^T R R_im = R_m(beta_m) R_n(beta_n) R_l(beta_l) [Ruiz2016, eqs. 24, 32, 33]."""
    (pose,) = samples_of(3, x=x)
    zero = np.zeros_like(pose)
    alpha = ROBOT.leg_angles(pose, working_mode).gamma
    R = tripod_motion(TRIPOD, pose, zero, zero).R
    S = np.swapaxes(_leg_frames(alpha), 2, 3) @ (R[:, None] @ _leg_frames(np.full((1, 3), ALPHA_0)))
    m, n = np.arctan2(-S[..., 1, 2], S[..., 2, 2]), np.arcsin(np.clip(S[..., 0, 2], -1.0, 1.0))
    return np.stack([m, n, np.arctan2(-S[..., 0, 1], S[..., 0, 0])], axis=2)


def _leg_frames(alpha: Array) -> Array:
    """Return [m n l] of each leg, (N, 3, 3, 3): m along the pin (25), l along the leg, n = l x m (26)."""
    e, up = TRIPOD.outward, np.array([0.0, 0.0, 1.0])
    l_ = -np.cos(alpha)[..., None] * e + np.sin(alpha)[..., None] * up
    m = np.broadcast_to(np.cross(e, up), l_.shape)
    return np.stack([m, np.cross(l_, m), l_], axis=-1)
