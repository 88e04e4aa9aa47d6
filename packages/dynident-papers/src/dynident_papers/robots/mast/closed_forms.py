"""MAST: the printed closed forms of [Roldan2017, section 4.2 and appendix B.2], corrected.

(B.28): J_x (z_dot, psi_dot, theta_dot) = J_q (rho_1_dot, rho_2_dot, rho_3_dot). Poses x are (N, 3) as z, psi, theta. The
common part of robots with three PR legs is in `dynident_papers.robots.tripod_robot`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident_papers.robots.mast.data import BAR, BAR_INERTIA, BAR_MASS, PLATFORM_MASS, RADIUS, STROKE, TRIPOD
from dynident_papers.robots.shared import samples_of
from dynident_papers.robots.tripod import Mode, check_parallel
from dynident_papers.robots.tripod_dynamics import Bodies
from dynident_papers.robots.tripod_robot import FRICTION, Design, Leg, TripodRobot, turn

BODIES = Bodies(
    bar_mass=BAR_MASS,
    bar_inertia=BAR_INERTIA,
    platform_mass=PLATFORM_MASS,
    platform_inertia=0.25 * PLATFORM_MASS * RADIUS**2 * np.diag([1.0, 1.0, 2.0]),
)
"""Masses of section 4.2. I_mp is NOT printed: a thin disc of radius r is assumed; sliders belong to the drives there."""
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
ROBOT = TripodRobot(TRIPOD, BODIES, _DESIGN)
assembly_modes = ROBOT.assembly_modes
forward_kinematics = ROBOT.forward_kinematics
inverse_dynamics = ROBOT.inverse_dynamics
inverse_kinematics = ROBOT.inverse_kinematics
leg_angles = ROBOT.leg_angles
mass_matrix = ROBOT.mass_matrix
platform_motion = ROBOT.platform_motion
singularity = ROBOT.singularity
slider_motion = ROBOT.slider_motion


def parasitic_motion(x: ArrayLike) -> Array:
    """Return the parasitic motion of the platform's centre, x_p = -r sin(psi) sin(theta); y_p and phi are zero."""
    (pose,) = samples_of(3, x=x)
    return np.asarray(-RADIUS * np.sin(pose[:, 1]) * np.sin(pose[:, 2]))


def jacobians(x: ArrayLike, working_mode: Mode = None) -> tuple[Array, Array]:
    """Return J_x and J_q of J_x (z, psi, theta)_dot = J_q rho_dot [Roldan2017, eqs. B.28-B.38], corrected."""
    (pose,) = samples_of(3, x=x)
    g = ROBOT.leg_angles(pose, working_mode).gamma
    (cg1, cg2, cg3), (sg1, sg2, sg3) = np.cos(g).T, np.sin(g).T
    theta, cp, sp = pose[:, 2], np.cos(pose[:, 1]), np.sin(pose[:, 1])
    ct, st, r = np.cos(theta), np.sin(theta), RADIUS
    J_x = np.zeros((len(pose), 3, 3))
    J_x[:, :, 0] = np.stack([sg1, sg2, sg3], axis=1)
    J_x[:, 0, 1], J_x[:, 0, 2] = r * st * cp * cg1, r * (ct * sp * cg1 + np.sin(theta - g[:, 0]))
    J_x[:, 1, 1], J_x[:, 1, 2] = r * (sp * cg2 + ct * cp * sg2), -r * st * sp * sg2  # (B.34) prints + ... sin gamma_1
    J_x[:, 2, 1], J_x[:, 2, 2] = -r * st * cp * cg3, r * (-ct * sp * cg3 + np.sin(theta + g[:, 2]))
    return BAR * J_x, BAR * np.sin(g)[:, :, None] * np.eye(3)


def bar_jacobians(x: ArrayLike, working_mode: Mode = None) -> Array:
    """Return the Jacobians of the bars' middles with respect to the sliders [Roldan2017, eqs. B.51, B.55, B.56], corrected."""
    (pose,) = samples_of(3, x=x)
    J_x, J_q = jacobians(pose, working_mode)
    check_parallel(TRIPOD, np.asarray(np.linalg.solve(J_q, J_x)), pose)
    J = np.linalg.solve(J_x, J_q)
    g = ROBOT.leg_angles(pose, working_mode).gamma
    cp, sp, ct, st = np.cos(pose[:, 1]), np.sin(pose[:, 1]), np.cos(pose[:, 2]), np.sin(pose[:, 2])
    r, lever = RADIUS, BAR * np.sin(g)
    E, F = np.zeros((len(pose), 3, 3, 3)), np.zeros((3, 3, 3))
    E[:, 0, 0, 1], E[:, 0, 0, 2] = -0.5 * r * st * cp, -0.5 * r * (st + ct * sp)
    E[:, 0, 2, 1], E[:, 0, 2, 2] = -r * st * cp / lever[:, 0], -r * (st + ct * sp) / lever[:, 0]
    E[:, 1, 0, 1], E[:, 1, 1, 1] = -0.5 * r * sp, -0.5 * r * sp * np.cos(g[:, 1]) / np.sin(g[:, 1])
    E[:, 1, 2, 1] = -r * sp / lever[:, 1]
    # (B.56) prints - (sin theta - cos theta sin psi)/2 in the first row and sin theta + cos theta sin psi in the last
    E[:, 2, 0, 1], E[:, 2, 0, 2] = -0.5 * r * st * cp, 0.5 * r * (st - ct * sp)
    E[:, 2, 2, 1], E[:, 2, 2, 2] = r * st * cp / lever[:, 2], -r * (st - ct * sp) / lever[:, 2]
    E[:, [0, 2], 1, 0] = 0.5
    E[:, 0, 1, 2], E[:, 2, 1, 2] = -0.5 * r * ct, 0.5 * r * ct
    F[0, 1, 0], F[1, 1, 1], F[2, 1, 2] = 0.5, 1.0, 0.5
    return np.asarray(E @ J[:, None] + F)


def platform_jacobians(x: ArrayLike, working_mode: Mode = None) -> tuple[Array, Array]:
    """Return the Jacobians of the platform with respect to the sliders: J_G (not printed) and J_R [Roldan2017, eq. B.59]."""
    (pose,) = samples_of(3, x=x)
    J_x, J_q = jacobians(pose, working_mode)
    check_parallel(TRIPOD, np.asarray(np.linalg.solve(J_q, J_x)), pose)
    J = np.linalg.solve(J_x, J_q)
    cp, sp, ct, st = np.cos(pose[:, 1]), np.sin(pose[:, 1]), np.cos(pose[:, 2]), np.sin(pose[:, 2])
    centre, turning = np.zeros((len(pose), 3, 3)), np.zeros((len(pose), 3, 3))
    centre[:, 0, 1], centre[:, 0, 2], centre[:, 2, 0] = -RADIUS * st * cp, -RADIUS * ct * sp, 1.0
    turning[:, 0, 1], turning[:, 1, 2], turning[:, 2, 2] = 1.0, cp, -sp
    return np.asarray(centre @ J), np.asarray(turning @ J)
