"""Kinematics of DualV in closed form: positions (53)-(58), Jacobians (59)-(63), accelerations (10)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.robots.dualv.geometry import HALF_TURNS, Geometry
from dynident.robots.samples import columns

Array = NDArray[np.float64]


class Jacobians(NamedTuple):
    """Everything first order at N poses: A_p v + B_p q1_dot = 0 (11) and J_tk v = J_k q_dot (9).

    Parameters
    ----------
    A_p : ndarray, (N, 4, 3)
        Rows a_p^i (59).
    B_p : ndarray, (N, 4)
        Diagonal b_p^ii (60).
    J_tk, J_k : ndarray, (N, 4, 3, 3)
        Blocks of the legs (62), (63).
    """

    A_p: Array
    B_p: Array
    J_tk: Array
    J_k: Array

    @property
    def J_inv(self) -> Array:
        """J_p^inv = -B_p^-1 A_p with q1_dot = J_inv v (20), (N, 4, 3)."""
        return -self.A_p / self.B_p[:, :, None]

    @property
    def G(self) -> Array:
        """J_k^-1 J_tk with q_dot = G v for all joints, (N, 4, 3, 3)."""
        return _solve(self.J_k, self.J_tk)


def _solve(A: Array, B: Array) -> Array:
    try:
        return np.asarray(np.linalg.solve(A, B), dtype=np.float64)
    except np.linalg.LinAlgError as error:
        sample = int(np.argmin(np.min(np.abs(np.linalg.det(A)), axis=1)))
        raise DynidentError(f"DualV: a leg is stretched or folded at sample {sample} (serial singularity)") from error


def _turned(x: Array) -> Array:
    """Return phi_k = phi + k pi of every leg, (N, 4)."""
    return x[:, 2, None] + np.pi * HALF_TURNS


def _attachments(x: Array, r_p: float) -> Array:
    """Return C_i, (N, 4, 2); C_1 = C_2 and C_3 = C_4."""
    turned = _turned(x)
    return np.asarray(x[:, None, :2] + r_p * np.stack([-np.sin(turned), np.cos(turned)], axis=2))


def inverse_kinematics(x: ArrayLike, geometry: Geometry | None = None) -> Array:
    """Return the joint angles at platform poses, elbows by the working mode.

    Parameters
    ----------
    x : array_like, (N, 3)
        Poses x, y, phi [m, m, rad].
    geometry : Geometry, optional
        Lengths and working mode.

    Returns
    -------
    ndarray, (N, 4, 3)
        q_1i, q_2i, q_3i of every leg; q_1i is absolute, without jumps inside the workspace [rad].
    """
    g = geometry or Geometry()
    poses = columns(x, 3, "x")
    reach = _attachments(poses, g.r_p) - g.anchors
    c2 = (np.sum(reach**2, axis=2) - g.d2**2 - g.d3**2) / (2.0 * g.d2 * g.d3)
    if np.any(np.abs(c2) > 1.0):
        sample, leg = np.argwhere(np.abs(c2) > 1.0)[0]
        raise DynidentError(
            f"DualV: leg {leg + 1} cannot reach the platform at sample {sample} (x, y, phi = {poses[sample].tolist()}); "
            "keep the pose inside the workspace"
        )
    q2 = g.elbows * np.arccos(c2)
    # Legs 1 and 4 point to -x at home: counted from there, their angles do not jump by a turn inside the workspace.
    back = np.where(g.anchors[:, 0] > 0.0, -1.0, 1.0)
    pointing = np.arctan2(back * reach[:, :, 1], back * reach[:, :, 0]) + np.where(back < 0.0, np.pi, 0.0)
    q1 = pointing - np.arctan2(g.d3 * np.sin(q2), g.d2 + g.d3 * c2)
    q3 = poses[:, 2, None] + np.pi * (1 - HALF_TURNS) - q1 - q2
    return np.stack([q1, q2, q3], axis=2)


def _elbows(q1: Array, g: Geometry) -> Array:
    return np.asarray(g.anchors + g.d2 * np.stack([np.cos(q1), np.sin(q1)], axis=2))


def _meeting(first: Array, second: Array, g: Geometry) -> Array:
    """Return where two circles of radius d3 meet, (N, 2), on the side of the working mode.

    Same points as (56)-(57), without their division by x_B2 - x_B1 and with the misprint of k_j repaired by construction: the
    point lies at the middle of B_1 B_2, a height h to its right (inward) or left (outward), however the pair is turned.
    """
    gap = second - first
    length = np.linalg.norm(gap, axis=1)
    square = g.d3**2 - 0.25 * length**2
    bad = (square < 0.0) | (length == 0.0)
    if np.any(bad):
        raise DynidentError(
            f"DualV: the legs do not meet at sample {int(np.argmax(bad))}; these motor angles cannot be assembled"
        )
    side = g.elbows[0] * np.sqrt(square) / length
    return np.asarray(0.5 * (first + second) + side[:, None] * np.stack([-gap[:, 1], gap[:, 0]], axis=1))


def forward_kinematics(q1: ArrayLike, geometry: Geometry | None = None) -> Array:
    """Return the platform pose from the motor angles (55).

    Parameters
    ----------
    q1 : array_like, (N, 4)
        Motor angles [rad].
    geometry : Geometry, optional
        Lengths and working mode; r_p is not used, see `measured_radius`.

    Returns
    -------
    ndarray, (N, 3)
        x, y [m] and phi in (-pi, pi] (atan2; (58) prints arctan).
    """
    g = geometry or Geometry()
    B = _elbows(columns(q1, 4, "q1"), g)
    C1, C3 = _meeting(B[:, 0], B[:, 1], g), _meeting(B[:, 2], B[:, 3], g)
    across = C1 - C3
    return np.column_stack([0.5 * (C1 + C3), np.arctan2(-across[:, 0], across[:, 1])])


def measured_radius(q1: ArrayLike, geometry: Geometry | None = None) -> Array:
    """Return |C1 C3| / 2 from the motor angles: r_p as the data see it, and a check of their quality.

    Parameters
    ----------
    q1 : array_like, (N, 4)
        Motor angles [rad].
    geometry : Geometry, optional
        Lengths and working mode; r_p is not used.

    Returns
    -------
    ndarray, (N,)
        Radius [m].
    """
    g = geometry or Geometry()
    B = _elbows(columns(q1, 4, "q1"), g)
    return np.asarray(0.5 * np.linalg.norm(_meeting(B[:, 0], B[:, 1], g) - _meeting(B[:, 2], B[:, 3], g), axis=1))


def jacobians(x: ArrayLike, geometry: Geometry | None = None) -> Jacobians:
    """Return A_p, B_p, J_tk and J_k at platform poses (59)-(63).

    Parameters
    ----------
    x : array_like, (N, 3)
        Poses.
    geometry : Geometry, optional
        Lengths and working mode.

    Returns
    -------
    Jacobians
        With J_inv and G as properties.
    """
    g = geometry or Geometry()
    poses = columns(x, 3, "x")
    q = inverse_kinematics(poses, g)
    turned = _turned(poses)
    cp, sp = np.cos(turned), np.sin(turned)
    c1, s1 = np.cos(q[:, :, 0]), np.sin(q[:, :, 0])
    c12, s12 = np.cos(q[:, :, 0] + q[:, :, 1]), np.sin(q[:, :, 0] + q[:, :, 1])
    # Misprints: the third entry of (59) lacks r_p and has wrong signs; (60) has the opposite sign.
    A_p = g.d3 * np.stack([c12, s12, -g.r_p * (cp * c12 + sp * s12)], axis=2)
    B_p = -g.d2 * g.d3 * np.sin(q[:, :, 1])
    one, zero = np.ones_like(c1), np.zeros_like(c1)
    J_tk = _blocks([[one, zero, -g.r_p * cp], [zero, one, -g.r_p * sp], [zero, zero, one]])
    lower = [-g.d3 * s12, g.d3 * c12]
    J_k = _blocks([[lower[0] - g.d2 * s1, lower[0], zero], [lower[1] + g.d2 * c1, lower[1], zero], [one, one, one]])
    return Jacobians(A_p, B_p, J_tk, J_k)


def _blocks(rows: list[list[Array]]) -> Array:
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def actuator_jacobian(x: ArrayLike, geometry: Geometry | None = None) -> Array:
    """Return J_inv with q1_dot = J_inv v (20).

    Parameters
    ----------
    x : array_like, (N, 3)
        Poses.
    geometry : Geometry, optional
        Lengths and working mode.

    Returns
    -------
    ndarray, (N, 4, 3)
        Actuator Jacobian.
    """
    return jacobians(x, geometry).J_inv


def joint_motion(x: ArrayLike, v: ArrayLike, a: ArrayLike, geometry: Geometry | None = None) -> tuple[Array, Array, Array]:
    """Return the motion of all joints that goes with a motion of the platform (9), (10).

    Parameters
    ----------
    x, v, a : array_like, (N, 3)
        Pose, velocity and acceleration of the platform.
    geometry : Geometry, optional
        Lengths and working mode.

    Returns
    -------
    q, v, a : ndarray, (N, 4, 3)
        Angles, velocities and accelerations of joints 1 to 3 of every leg.
    """
    g = geometry or Geometry()
    poses, rates, accelerations = (columns(y, 3, label) for label, y in (("x", x), ("v", v), ("a", a)))
    q, J = inverse_kinematics(poses, g), jacobians(poses, g)
    qd = _solve(J.J_k, J.J_tk @ rates[:, None, :, None])[..., 0]
    push = (J.J_tk @ accelerations[:, None, :, None])[..., 0] + _bias(poses, rates, q, qd, g)
    return q, qd, _solve(J.J_k, push[..., None])[..., 0]


def _bias(x: Array, v: Array, q: Array, qd: Array, g: Geometry) -> Array:
    """Return b of J_k q_ddot = J_tk a + b, (N, 4, 3) (the paper prints only its name, (10))."""
    turned, spin = _turned(x), v[:, 2, None] ** 2
    first, both = q[:, :, 0], q[:, :, 0] + q[:, :, 1]
    w1, w12 = qd[:, :, 0] ** 2, (qd[:, :, 0] + qd[:, :, 1]) ** 2
    bx = g.r_p * np.sin(turned) * spin + g.d2 * np.cos(first) * w1 + g.d3 * np.cos(both) * w12
    by = -g.r_p * np.cos(turned) * spin + g.d2 * np.sin(first) * w1 + g.d3 * np.sin(both) * w12
    return np.stack([bx, by, np.zeros_like(bx)], axis=2)


def platform_motion(
    q1: ArrayLike, v1: ArrayLike, a1: ArrayLike, geometry: Geometry | None = None, solution: str = "joint"
) -> tuple[Array, Array, Array]:
    """Return the motion of the platform from measured motors, least squares over the four (21)-(25), (64).

    Parameters
    ----------
    q1, v1, a1 : array_like, (N, 4)
        Angles, velocities and accelerations of the motors.
    geometry : Geometry, optional
        Lengths and working mode.
    solution : {"joint", "closure"}
        v = J_inv^+ q1_dot (21), which weighs the motors alike, or v = -A_p^+ B_p q1_dot (64); equal on exact data.

    Returns
    -------
    x, v, a : ndarray, (N, 3)
        Pose, velocity and acceleration.
    """
    if solution not in ("joint", "closure"):
        raise DynidentError(f"DualV: solution is {solution!r}; it is 'joint' (21) or 'closure' (64)")
    g = geometry or Geometry()
    rates, accelerations = columns(v1, 4, "v1"), columns(a1, 4, "a1")
    x = forward_kinematics(q1, g)
    J = jacobians(x, g)
    scale = np.ones_like(J.B_p) if solution == "joint" else J.B_p
    inverse = np.linalg.pinv(scale[:, :, None] * J.J_inv)
    v = (inverse @ (scale * rates)[:, :, None])[..., 0]
    still = joint_motion(x, v, np.zeros_like(v), g)[2][:, :, 0]  # motors' accelerations without that of the platform
    return x, v, (inverse @ (scale * (accelerations - still))[:, :, None])[..., 0]
