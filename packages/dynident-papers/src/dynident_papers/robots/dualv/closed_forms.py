"""DualV: the closed forms of [Briot2015]: kinematics, legs (51), platform (52), projections (30), (36).

Platform poses x, v, a are (N, 3) as x, y, phi [m, m, rad]; joints (N, 4, 3) as leg, joint; torques (N, 4). A `Geometry` holds
lengths and working mode; the default is Table 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident_papers.robots.dualv.data import HALF_TURNS, Geometry
from dynident_papers.robots.shared import columns


class Jacobians(NamedTuple):
    """First-order kinematics at N poses: A_p v + B_p q1_dot = 0 (11) and J_tk v = J_k q_dot (9)."""

    A_p: Array  # Rows a_p^i (59)
    B_p: Array  # Diagonal b_p^ii (60)
    J_tk: Array  # Blocks of the legs (62), (63)
    J_k: Array  # Blocks of the legs (62), (63)

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
    """Return the joint angles at platform poses by atan2, elbows by the working mode."""
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
    # Legs 1 and 4 point to -x at home: measured from there, their angles do not jump by a turn inside the workspace.
    back = np.where(g.anchors[:, 0] > 0.0, -1.0, 1.0)
    pointing = np.arctan2(back * reach[:, :, 1], back * reach[:, :, 0]) + np.where(back < 0.0, np.pi, 0.0)
    q1 = pointing - np.arctan2(g.d3 * np.sin(q2), g.d2 + g.d3 * c2)
    q3 = poses[:, 2, None] + np.pi * (1 - HALF_TURNS) - q1 - q2
    return np.stack([q1, q2, q3], axis=2)


def _elbows(q1: Array, g: Geometry) -> Array:
    return np.asarray(g.anchors + g.d2 * np.stack([np.cos(q1), np.sin(q1)], axis=2))


def _meeting(first: Array, second: Array, g: Geometry) -> Array:
    """Return the intersection of two circles of radius d3, (N, 2), on the side of the working mode.

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
    """Return the platform pose of motor angles: C_1, C_3 where circles of radius d3 meet [Briot2015, eqs. 55-58]."""
    g = geometry or Geometry()
    B = _elbows(columns(q1, 4, "q1"), g)
    C1, C3 = _meeting(B[:, 0], B[:, 1], g), _meeting(B[:, 2], B[:, 3], g)
    across = C1 - C3
    return np.column_stack([0.5 * (C1 + C3), np.arctan2(-across[:, 0], across[:, 1])])


def measured_radius(q1: ArrayLike, geometry: Geometry | None = None) -> Array:
    """Return |C_1 C_3| / 2 from the motor angles: r_p from the data, and a check of their quality."""
    g = geometry or Geometry()
    B = _elbows(columns(q1, 4, "q1"), g)
    return np.asarray(0.5 * np.linalg.norm(_meeting(B[:, 0], B[:, 1], g) - _meeting(B[:, 2], B[:, 3], g), axis=1))


def jacobians(x: ArrayLike, geometry: Geometry | None = None) -> Jacobians:
    """Return A_p, B_p, J_tk and J_k with A_p v + B_p q1_dot = 0, J_tk v = J_k q_dot [Briot2015, eqs. 59-63]."""
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
    """Return J_inv = -B_p^-1 A_p with q1_dot = J_inv v [Briot2015, eq. 20]."""
    return jacobians(x, geometry).J_inv


def joint_motion(x: ArrayLike, v: ArrayLike, a: ArrayLike, geometry: Geometry | None = None) -> tuple[Array, Array, Array]:
    """Return the motion of all joints, J_k q_dot = J_tk v and J_k q_ddot = J_tk a + b [Briot2015, eqs. 9, 10]."""
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
    """Return the motion of the platform from measured motors, least squares over the four [Briot2015, eqs. 21-25, 64]."""
    if solution not in ("joint", "closure"):
        raise DynidentError(f"DualV: solution is {solution!r}; it is 'joint' (21) or 'closure' (64)")
    g = geometry or Geometry()
    rates, accelerations = columns(v1, 4, "v1"), columns(a1, 4, "a1")
    x = forward_kinematics(q1, g)
    J = jacobians(x, g)
    scale = np.ones_like(J.B_p) if solution == "joint" else J.B_p
    inverse = np.linalg.pinv(scale[:, :, None] * J.J_inv)
    v = (inverse @ (scale * rates)[:, :, None])[..., 0]
    still = joint_motion(x, v, np.zeros_like(v), g)[2][:, :, 0]  # motors' accelerations at zero platform acceleration
    return x, v, (inverse @ (scale * (accelerations - still))[:, :, None])[..., 0]


PLATFORM = ("Izz_platform", "mx_platform", "my_platform", "m_platform")
LEG = (
    *("Izz_link1_{0}", "ia_q1_{0}", "Izz_link2_{0}", "mx_link2_{0}", "my_link2_{0}", "m_link2_{0}"),
    *("fv_q1_{0}", "fv_q2_{0}", "fv_q3_{0}", "fc_q1_{0}", "fc_q2_{0}", "fc_q3_{0}"),
)
COLUMNS: tuple[str, ...] = (*PLATFORM, *(name.format(leg) for name in LEG for leg in range(1, 5)))
"""The 52 parameters of (51)-(52) in the symmetric order (43): platform first, then each parameter for the four legs."""


def leg_regressor(q: ArrayLike, v: ArrayLike, a: ArrayLike, geometry: Geometry | None = None) -> Array:
    """Return Y with tau_i = Y_i chi_i of the opened legs, every joint as if it had a motor [Briot2015, eq. 51]."""
    d2 = (geometry or Geometry()).d2
    angles, rates, accelerations = (np.asarray(x, dtype=np.float64) for x in (q, v, a))
    c2, s2 = np.cos(angles[..., 1]), np.sin(angles[..., 1])
    v1, v2 = rates[..., 0], rates[..., 1]
    a1, a2 = accelerations[..., 0], accelerations[..., 1]
    Y = np.zeros((*angles.shape, len(LEG)))
    Y[..., 0, 0] = Y[..., 0, 1] = a1
    Y[..., 0, 5] = d2**2 * a1
    Y[..., 0, 2] = Y[..., 1, 2] = a1 + a2
    # Misprints of (51): velocities in the factors (2 a1 + a2), and + on both groups of my2.
    Y[..., 0, 3] = d2 * ((2.0 * a1 + a2) * c2 - v2 * (2.0 * v1 + v2) * s2)
    Y[..., 0, 4] = -d2 * ((2.0 * a1 + a2) * s2 + v2 * (2.0 * v1 + v2) * c2)
    Y[..., 1, 3] = d2 * (a1 * c2 + v1**2 * s2)
    Y[..., 1, 4] = -d2 * (a1 * s2 - v1**2 * c2)
    for joint in range(3):
        Y[..., joint, 6 + joint] = rates[..., joint]
        Y[..., joint, 9 + joint] = np.sign(rates[..., joint])
    return Y


def platform_regressor(x: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Return Y with tau_p = Y (zz, mx, my, m) of the platform, or of a payload fixed to it [Briot2015, eq. 52]."""
    poses, rates, accelerations = (columns(y, 3, label) for label, y in (("x", x), ("v", v), ("a", a)))
    c, s, w = np.cos(poses[:, 2]), np.sin(poses[:, 2]), rates[:, 2]
    ax, ay, alpha = accelerations.T
    Y = np.zeros((poses.shape[0], 3, 4))
    Y[:, 2, 0] = alpha
    Y[:, 0, 1], Y[:, 1, 1], Y[:, 2, 1] = -alpha * s - w**2 * c, alpha * c - w**2 * s, ay * c - ax * s
    Y[:, 0, 2], Y[:, 1, 2], Y[:, 2, 2] = -alpha * c + w**2 * s, -alpha * s - w**2 * c, -ay * s - ax * c
    Y[:, 0, 3], Y[:, 1, 3] = ax, ay
    return Y


def _opened(x: ArrayLike, v: ArrayLike, a: ArrayLike, g: Geometry) -> tuple[Jacobians, Array, Array]:
    """Return Jacobians, leg regressor (N, 4, 3, 52) and platform regressor (N, 3, 52) in the columns of `COLUMNS`."""
    legs = leg_regressor(*joint_motion(x, v, a, g), g)
    Y_t = np.zeros((*legs.shape[:3], len(COLUMNS)))
    for leg in range(4):
        Y_t[:, leg, :, len(PLATFORM) + leg :: 4] = legs[:, leg]
    Y_p = np.zeros((legs.shape[0], 3, len(COLUMNS)))
    Y_p[:, :, : len(PLATFORM)] = platform_regressor(x, v, a)
    return jacobians(x, g), Y_t, Y_p


def case_1(x: ArrayLike, v: ArrayLike, a: ArrayLike, geometry: Geometry | None = None) -> tuple[Array, Array]:
    """Return the model projected on the platform, J_inv^T tau = IDM_1 chi [Briot2015, eq. 30]."""
    J, Y_t, Y_p = _opened(x, v, a, geometry or Geometry())
    return np.swapaxes(J.J_inv, 1, 2), np.einsum("nlij,nlip->njp", J.G, Y_t, optimize=True) + Y_p


def case_2(
    x: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    geometry: Geometry | None = None,
    kept: Sequence[int] = (1, 2, 3),
) -> tuple[Array, Array]:
    """Return the model projected on three motors, tau^kept - J^T tau^other = IDM_2 chi [Briot2015, eqs. 32-36].

    It equals J_r^-T times case 1, with J_r the rows of J_inv kept: only the weights of the equations differ.
    The sub-robot of the motors kept must be away from ITS parallel singularities too, which the paper does not state.
    """
    stay = [int(i) - 1 for i in kept]
    if len(set(stay)) != 3 or not set(stay) <= set(range(4)):
        raise DynidentError(f"DualV: motors kept are {tuple(kept)}; name three different ones of 1, 2, 3, 4")
    go = next(i for i in range(4) if i not in stay)
    J, Y_t, Y_p = _opened(x, v, a, geometry or Geometry())
    samples = Y_p.shape[0]
    # (33): multipliers of the twelve closure equations of the legs, then of the four reduced ones (54).
    A = np.zeros((samples, 16, 16))
    A[:, 0, 12 + go] = -J.B_p[:, go]  # misprint: the block B_p^{1:r} belongs to the motors kept
    for leg in range(4):
        rows = slice(3 * leg, 3 * leg + 3)
        A[:, 1 + 3 * leg : 4 + 3 * leg, rows] = np.swapaxes(J.J_k[:, leg], 1, 2)
        A[:, 13:, rows] = -np.swapaxes(J.J_tk[:, leg], 1, 2)
    A[:, 13:, 12:] = np.swapaxes(J.A_p, 1, 2)
    B = np.zeros((samples, 3, 16))  # (32)
    for row, motor in enumerate(stay):
        B[:, row, 12 + motor] = -J.B_p[:, motor]
    try:
        maps = np.swapaxes(np.linalg.solve(np.swapaxes(A, 1, 2), np.swapaxes(B, 1, 2)), 1, 2)  # B A^-1 = [J1, J2, J3] (35)
    except np.linalg.LinAlgError as error:
        raise DynidentError(
            f"DualV: motors {tuple(kept)} alone do not hold the platform at some sample; keep others"
        ) from error
    projector = np.zeros((samples, 3, 4))
    projector[:, np.arange(3), stay] = 1.0
    projector[:, :, go] = -maps[:, :, 0]
    legs = Y_t.reshape(samples, 12, -1)
    return projector, maps[:, :, 1:13] @ legs + maps[:, :, 13:] @ Y_p
