"""Kinematics of the 2PRU-1PRS (thesis appendix B.2, corrected): positions, Jacobians, parasitic motion, singularities.

(B.28): J_x (z_dot, psi_dot, theta_dot) = J_q (rho_1_dot, rho_2_dot, rho_3_dot).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.mechanics import Motion
from dynident.robots.mast import assembly, tripod
from dynident.robots.mast.data import BAR, RADIUS, TRIPOD
from dynident.robots.mast.tripod import LegMotion, three

Array = NDArray[np.float64]
Mode = str | Sequence[int]


def parasitic_motion(x: ArrayLike) -> Array:
    """Return how far the platform's centre moves along x by tilting: x_p = -r sin(psi) sin(theta); y_p and phi stay zero.

    Parameters
    ----------
    x : array_like, (N, 3)
        z, psi, theta.

    Returns
    -------
    ndarray, (N,)
        x_p [m].
    """
    (pose,) = three(x=x)
    return np.asarray(-RADIUS * np.sin(pose[:, 1]) * np.sin(pose[:, 2]))


def inverse_kinematics(x: ArrayLike, working_mode: Mode = "below") -> Array:
    """Return the slider positions: rho_i = B_iz - L sin(gamma_i), L cos(gamma_i) = H - B_i outward.

    Parameters
    ----------
    x : array_like, (N, 3)
        z [m], psi, theta [rad].
    working_mode : {"below", "above"} or three signs
        Side of the platform joint on which each slider is.

    Returns
    -------
    ndarray, (N, 3)
        rho [m].
    """
    return leg_angles(x, working_mode).slider


def leg_angles(x: ArrayLike, working_mode: Mode = "below", v: ArrayLike | None = None, a: ArrayLike | None = None) -> LegMotion:
    """Return bars and sliders with two derivatives.

    Parameters
    ----------
    x : array_like, (N, 3)
        z, psi, theta.
    working_mode : {"below", "above"} or three signs
        Working mode.
    v, a : array_like (N, 3), optional
        Derivatives of x; zero when omitted.

    Returns
    -------
    LegMotion
        Angles gamma, sliders rho, points of each leg.
    """
    (pose,) = three(x=x)
    zero = np.zeros_like(pose)
    pose, v_, a_ = three(x=pose, v=zero if v is None else v, a=zero if a is None else a)
    return tripod.leg_motion(TRIPOD, pose, v_, a_, TRIPOD.signs(working_mode))


def forward_kinematics(rho: ArrayLike, working_mode: Mode = "below", start: ArrayLike | None = None) -> Array:
    """Return the pose on the branch of a start pose; `assembly_modes` gives all.

    Parameters
    ----------
    rho : array_like, (N, 3)
        Slider positions [m].
    working_mode : {"below", "above"} or three signs
        Working mode at the start pose.
    start : array_like (3,), optional
        z, psi, theta of a pose on the wanted branch; the level platform when omitted.

    Returns
    -------
    ndarray, (N, 3)
        z, psi, theta.
    """
    origin = TRIPOD.home if start is None else start
    return assembly.forward_kinematics(TRIPOD, rho, origin, TRIPOD.signs(working_mode))


def assembly_modes(rho: ArrayLike) -> Array:
    """Return every pose with these slider positions and phi = 0.

    Parameters
    ----------
    rho : array_like, (N, 3)
        Slider positions [m].

    Returns
    -------
    ndarray, (N, 16, 3)
        z, psi, theta, highest first; NaN where there are fewer.
    """
    return assembly.assembly_modes(TRIPOD, rho)


def jacobians(x: ArrayLike, working_mode: Mode = "below") -> tuple[Array, Array]:
    """Return J_x and J_q of (B.28) to (B.38).

    Parameters
    ----------
    x : array_like, (N, 3)
        z, psi, theta.
    working_mode : {"below", "above"} or three signs
        Working mode.

    Returns
    -------
    J_x, J_q : ndarray, (N, 3, 3)
        J_x v = J_q rho_dot.
    """
    (pose,) = three(x=x)
    g = leg_angles(pose, working_mode).gamma
    (cg1, cg2, cg3), (sg1, sg2, sg3) = np.cos(g).T, np.sin(g).T
    theta, cp, sp = pose[:, 2], np.cos(pose[:, 1]), np.sin(pose[:, 1])
    ct, st, r = np.cos(theta), np.sin(theta), RADIUS
    J_x = np.zeros((len(pose), 3, 3))
    J_x[:, :, 0] = np.stack([sg1, sg2, sg3], axis=1)
    J_x[:, 0, 1], J_x[:, 0, 2] = r * st * cp * cg1, r * (ct * sp * cg1 + np.sin(theta - g[:, 0]))
    J_x[:, 1, 1], J_x[:, 1, 2] = r * (sp * cg2 + ct * cp * sg2), -r * st * sp * sg2  # (B.34) prints + ... sin gamma_1
    J_x[:, 2, 1], J_x[:, 2, 2] = -r * st * cp * cg3, r * (-ct * sp * cg3 + np.sin(theta + g[:, 2]))
    return BAR * J_x, BAR * np.sin(g)[:, :, None] * np.eye(3)


def bar_jacobians(x: ArrayLike, working_mode: Mode = "below") -> Array:
    """Return the Jacobians of the bars' middles with respect to the sliders (B.51), (B.55), (B.56).

    Parameters
    ----------
    x : array_like, (N, 3)
        z, psi, theta.
    working_mode : {"below", "above"} or three signs
        Working mode.

    Returns
    -------
    ndarray, (N, 3, 3, 3)
        Bar; rows x (y for bar 2), z, gamma; columns rho_1 to rho_3.
    """
    (pose,) = three(x=x)
    J_x, J_q = jacobians(pose, working_mode)
    tripod.check_parallel(TRIPOD, np.asarray(np.linalg.solve(J_q, J_x)), pose)
    J = np.linalg.solve(J_x, J_q)
    g = leg_angles(pose, working_mode).gamma
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


def platform_jacobians(x: ArrayLike, working_mode: Mode = "below") -> tuple[Array, Array]:
    """Return the Jacobians of the platform with respect to the sliders: J_G (not printed) and J_R (B.59).

    Parameters
    ----------
    x : array_like, (N, 3)
        z, psi, theta.
    working_mode : {"below", "above"} or three signs
        Working mode.

    Returns
    -------
    J_G : ndarray, (N, 3, 3)
        Velocity of the centre, base axes.
    J_R : ndarray, (N, 3, 3)
        Angular velocity, platform axes.
    """
    (pose,) = three(x=x)
    J_x, J_q = jacobians(pose, working_mode)
    tripod.check_parallel(TRIPOD, np.asarray(np.linalg.solve(J_q, J_x)), pose)
    J = np.linalg.solve(J_x, J_q)
    cp, sp, ct, st = np.cos(pose[:, 1]), np.sin(pose[:, 1]), np.cos(pose[:, 2]), np.sin(pose[:, 2])
    centre, turning = np.zeros((len(pose), 3, 3)), np.zeros((len(pose), 3, 3))
    centre[:, 0, 1], centre[:, 0, 2], centre[:, 2, 0] = -RADIUS * st * cp, -RADIUS * ct * sp, 1.0
    turning[:, 0, 1], turning[:, 1, 2], turning[:, 2, 2] = 1.0, cp, -sp
    return np.asarray(centre @ J), np.asarray(turning @ J)


def singularity(x: ArrayLike, working_mode: Mode = "below") -> tuple[Array, Array]:
    """Return how far the robot is from its singularities, 0 on one.

    Parameters
    ----------
    x : array_like, (N, 3)
        z, psi, theta.
    working_mode : {"below", "above"} or three signs
        Working mode.

    Returns
    -------
    parallel : ndarray, (N,)
        |det J_x| / (2 L^3 r^2), 1 for upright bars and a level platform; at 0 the sliders do not hold the platform.
    serial : ndarray, (N,)
        Smallest |sin gamma_i|; at 0 a slider does not move the platform.
    """
    J_x, J_q = jacobians(x, working_mode)
    parallel = np.abs(np.linalg.det(J_x)) / (2.0 * BAR**3 * RADIUS**2)
    return np.asarray(parallel), np.min(np.abs(np.diagonal(J_q, axis1=1, axis2=2)), axis=1) / BAR


def slider_motion(motion: Motion, working_mode: Mode = "below") -> Motion:
    """Return the motion of the sliders from that of the platform.

    Parameters
    ----------
    motion : Motion
        N samples of z, psi, theta.
    working_mode : {"below", "above"} or three signs
        Working mode.

    Returns
    -------
    Motion
        N samples of rho_1 to rho_3.
    """
    legs = leg_angles(motion.q, working_mode, motion.v, motion.a)
    return Motion(motion.t, legs.slider, legs.slider_dot, legs.slider_ddot)


def platform_motion(motion: Motion, working_mode: Mode = "below", start: ArrayLike | None = None) -> Motion:
    """Return the motion of the platform from that of the sliders.

    Parameters
    ----------
    motion : Motion
        N samples of rho_1 to rho_3.
    working_mode : {"below", "above"} or three signs
        Working mode at the start pose.
    start : array_like (3,), optional
        Pose on the wanted branch.

    Returns
    -------
    Motion
        N samples of z, psi, theta.
    """
    x = forward_kinematics(motion.q, working_mode, start)
    v, a = tripod.platform_from_sliders(TRIPOD, x, motion.v, motion.a, TRIPOD.signs(working_mode))
    return Motion(motion.t, x, v, a)
