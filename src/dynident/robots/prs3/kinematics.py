"""Kinematics of the 3-PRS [Ruiz2016, sections 3.1 to 3.4]: positions, passive angles, Jacobians, parasitic motions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.mechanics import Motion
from dynident.robots.mast import assembly, tripod
from dynident.robots.mast.tripod import LegMotion, three
from dynident.robots.prs3.data import ALPHA_0, LEG, RADIUS, TRIPOD

Array = NDArray[np.float64]
Mode = str | Sequence[int]


def parasitic_motion(x: ArrayLike) -> Array:
    """Return what the platform moves beside z, psi, theta (13), (14), (15).

        phi = atan(sin psi sin theta / (cos psi + cos theta)),   p_x = (b/2)(u_x - v_y),   p_y = -b cos psi sin phi

    Parameters
    ----------
    x : array_like, (N, 3)
        z [m], psi, theta [rad].

    Returns
    -------
    ndarray, (N, 3)
        p_x, p_y [m], phi [rad].
    """
    (pose,) = three(x=x)
    cp, sp, ct, st = np.cos(pose[:, 1]), np.sin(pose[:, 1]), np.cos(pose[:, 2]), np.sin(pose[:, 2])
    phi = np.arctan(sp * st / (cp + ct))
    p_x = 0.5 * RADIUS * (ct * np.cos(phi) + sp * st * np.sin(phi) - cp * np.cos(phi))
    return np.column_stack([p_x, -RADIUS * cp * np.sin(phi), phi])


def inverse_kinematics(x: ArrayLike, working_mode: Mode = "inward") -> Array:
    """Return the slider positions (20): s_i = (s_i0 . A_iB_i) -+ sqrt((s_i0 . A_iB_i)^2 - |A_iB_i|^2 + L^2).

    Parameters
    ----------
    x : array_like, (N, 3)
        z [m] (`HEIGHT` at home), psi, theta [rad].
    working_mode : {"inward", "outward"} or three signs
        Way each leg leans: minus or plus of the root.

    Returns
    -------
    ndarray, (N, 3)
        s [m], positive inward, which raises the platform.
    """
    return leg_angles(x, working_mode).slider


def leg_angles(
    x: ArrayLike, working_mode: Mode = "inward", v: ArrayLike | None = None, a: ArrayLike | None = None
) -> LegMotion:
    """Return legs and sliders with two derivatives; `gamma` is alpha of (22), which prints a degenerate fraction.

    Parameters
    ----------
    x : array_like, (N, 3)
        z, psi, theta.
    working_mode : {"inward", "outward"} or three signs
        Working mode.
    v, a : array_like (N, 3), optional
        Derivatives of x; zero when omitted.

    Returns
    -------
    LegMotion
        Angles, sliders, points of each leg.
    """
    (pose,) = three(x=x)
    zero = np.zeros_like(pose)
    pose, v_, a_ = three(x=pose, v=zero if v is None else v, a=zero if a is None else a)
    return tripod.leg_motion(TRIPOD, pose, v_, a_, TRIPOD.signs(working_mode))


def spherical_angles(x: ArrayLike, working_mode: Mode = "inward") -> Array:
    """Return the angles of the spherical joints, R_iR^T R R_im = R_m(beta_m) R_n(beta_n) R_l(beta_l) (24), (32), (33).

    Parameters
    ----------
    x : array_like, (N, 3)
        z, psi, theta.
    working_mode : {"inward", "outward"} or three signs
        Working mode.

    Returns
    -------
    ndarray, (N, 3, 3)
        Leg; beta_m and beta_n (bending), beta_l (torsion) [rad]; zero at home.
    """
    (pose,) = three(x=x)
    zero = np.zeros_like(pose)
    alpha = leg_angles(pose, working_mode).gamma
    R = tripod.platform_motion(TRIPOD, pose, zero, zero).R
    S = np.swapaxes(_leg_frames(alpha), 2, 3) @ (R[:, None] @ _leg_frames(np.full((1, 3), ALPHA_0)))
    m, n = np.arctan2(-S[..., 1, 2], S[..., 2, 2]), np.arcsin(np.clip(S[..., 0, 2], -1.0, 1.0))
    return np.stack([m, n, np.arctan2(-S[..., 0, 1], S[..., 0, 0])], axis=2)


def _leg_frames(alpha: Array) -> Array:
    """Return [m n l] of each leg, (N, 3, 3, 3): m along the pin (25), l along the leg, n = l x m (26)."""
    e, up = TRIPOD.outward, np.array([0.0, 0.0, 1.0])
    l_ = -np.cos(alpha)[..., None] * e + np.sin(alpha)[..., None] * up
    m = np.broadcast_to(np.cross(e, up), l_.shape)
    return np.stack([m, np.cross(l_, m), l_], axis=-1)


def forward_kinematics(s: ArrayLike, working_mode: Mode = "inward", start: ArrayLike | None = None) -> Array:
    """Return the pose on the branch of a start pose (A.3), (A.7), (A.11); `assembly_modes` gives all.

    Parameters
    ----------
    s : array_like, (N, 3)
        Slider positions [m].
    working_mode : {"inward", "outward"} or three signs
        Working mode at the start pose.
    start : array_like (3,), optional
        z, psi, theta of a pose on the wanted branch; home when omitted.

    Returns
    -------
    ndarray, (N, 3)
        z [m], psi, theta [rad].
    """
    origin = TRIPOD.home if start is None else start
    return assembly.forward_kinematics(TRIPOD, s, origin, TRIPOD.signs(working_mode))


def assembly_modes(s: ArrayLike) -> Array:
    """Return every pose with these slider positions and phi of (13); they come in pairs above and below the sliders.

    Parameters
    ----------
    s : array_like, (N, 3)
        Slider positions [m].

    Returns
    -------
    ndarray, (N, 16, 3)
        z, psi, theta, highest first; NaN where there are fewer.
    """
    return assembly.assembly_modes(TRIPOD, s)


def jacobians(x: ArrayLike, working_mode: Mode = "inward") -> tuple[Array, Array]:
    """Return J_x and J_q from the derivative of (35): l_i . B_i_dot = s_i_dot (l_i . s_i0).

    Parameters
    ----------
    x : array_like, (N, 3)
        z, psi, theta.
    working_mode : {"inward", "outward"} or three signs
        Working mode.

    Returns
    -------
    J_x, J_q : ndarray, (N, 3, 3)
        J_x v = J_q s_dot; J_q = L diag(cos alpha_i).
    """
    (pose,) = three(x=x)
    alpha = leg_angles(pose, working_mode).gamma
    bar = np.stack([-np.cos(alpha), np.sin(alpha)], axis=2)
    zero = np.zeros_like(pose)
    legs = [tripod.leg_motion(TRIPOD, pose, zero + u, zero, TRIPOD.signs(working_mode)).joint_dot for u in np.eye(3)]
    J_x = LEG * np.stack([np.sum(bar * column, axis=2) for column in legs], axis=2)
    return J_x, LEG * np.cos(alpha)[:, :, None] * np.eye(3)


def singularity(x: ArrayLike, working_mode: Mode = "inward") -> tuple[Array, Array]:
    """Return how far the robot is from its singularities, 0 on one.

    Parameters
    ----------
    x : array_like, (N, 3)
        z, psi, theta.
    working_mode : {"inward", "outward"} or three signs
        Working mode.

    Returns
    -------
    parallel : ndarray, (N,)
        |det J_x| / (3 sqrt(3)/2 L^3 b^2), 1 for upright legs and a level platform; at 0 the sliders do not hold the platform.
    serial : ndarray, (N,)
        Smallest |cos alpha_i|; at 0 a slider does not move the platform.
    """
    J_x, J_q = jacobians(x, working_mode)
    parallel = np.abs(np.linalg.det(J_x)) / (1.5 * np.sqrt(3.0) * LEG**3 * RADIUS**2)
    return np.asarray(parallel), np.min(np.abs(np.diagonal(J_q, axis1=1, axis2=2)), axis=1) / LEG


def slider_motion(motion: Motion, working_mode: Mode = "inward") -> Motion:
    """Return the motion of the sliders from that of the platform.

    Parameters
    ----------
    motion : Motion
        N samples of z, psi, theta.
    working_mode : {"inward", "outward"} or three signs
        Working mode.

    Returns
    -------
    Motion
        N samples of s_1 to s_3.
    """
    legs = leg_angles(motion.q, working_mode, motion.v, motion.a)
    return Motion(motion.t, legs.slider, legs.slider_dot, legs.slider_ddot)


def platform_motion(motion: Motion, working_mode: Mode = "inward", start: ArrayLike | None = None) -> Motion:
    """Return the motion of the platform from that of the sliders.

    Parameters
    ----------
    motion : Motion
        N samples of s_1 to s_3.
    working_mode : {"inward", "outward"} or three signs
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
