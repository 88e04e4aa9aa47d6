"""Dynamics of DualV in closed form: legs (51), platform (52), the two projections (30) and (36), internal stress (50)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.robots.dualv.geometry import Geometry
from dynident.robots.dualv.kinematics import Jacobians, jacobians, joint_motion
from dynident.robots.samples import columns

Array = NDArray[np.float64]

PLATFORM = ("Izz_platform", "mx_platform", "my_platform", "m_platform")
LEG = (
    *("Izz_link1_{0}", "ia_q1_{0}", "Izz_link2_{0}", "mx_link2_{0}", "my_link2_{0}", "m_link2_{0}"),
    *("fv_q1_{0}", "fv_q2_{0}", "fv_q3_{0}", "fc_q1_{0}", "fc_q2_{0}", "fc_q3_{0}"),
)
COLUMNS: tuple[str, ...] = (*PLATFORM, *(name.format(leg) for name in LEG for leg in range(1, 5)))
"""The 52 parameters of (51)-(52) in the symmetric order (43): platform first, then each parameter for the four legs."""


def leg_regressor(q: ArrayLike, v: ArrayLike, a: ArrayLike, geometry: Geometry | None = None) -> Array:
    """Return the regressor of the opened legs (51), every joint as if it had a motor.

    Parameters
    ----------
    q, v, a : array_like, (N, 4, 3)
        Motion of the joints.
    geometry : Geometry, optional
        Lengths.

    Returns
    -------
    ndarray, (N, 4, 3, 12)
        tau_ij = Y chi_i with chi_i = zz1, ia1, zz2, mx2, my2, m2, fv1, fv2, fv3, fs1, fs2, fs3 of leg i.
    """
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
    """Return the regressor of the platform (52), also that of a payload fixed to it.

    Parameters
    ----------
    x, v, a : array_like, (N, 3)
        Motion of the platform.

    Returns
    -------
    ndarray, (N, 3, 4)
        tau_p = Y (zz, mx, my, m).
    """
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
    """Return the model projected on the platform: J_inv^T tau = IDM_1 chi (30).

    Parameters
    ----------
    x, v, a : array_like, (N, 3)
        Motion of the platform.
    geometry : Geometry, optional
        Lengths and working mode.

    Returns
    -------
    projector : ndarray, (N, 3, 4)
        J_inv^T.
    regressor : ndarray, (N, 3, 52)
        IDM_1, columns `COLUMNS`.
    """
    J, Y_t, Y_p = _opened(x, v, a, geometry or Geometry())
    return np.swapaxes(J.J_inv, 1, 2), np.einsum("nlij,nlip->njp", J.G, Y_t, optimize=True) + Y_p


def case_2(
    x: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    geometry: Geometry | None = None,
    kept: Sequence[int] = (1, 2, 3),
) -> tuple[Array, Array]:
    """Return the model projected on three motors: tau^kept - J^T tau^other = IDM_2 chi (36), from (32)-(35).

    It equals J_r^-T times case 1, with J_r the rows of J_inv kept: only the weights of the equations differ.
    It needs the sub-robot of the motors kept away from ITS parallel singularities too, which the paper does not say.

    Parameters
    ----------
    x, v, a : array_like, (N, 3)
        Motion of the platform.
    geometry : Geometry, optional
        Lengths and working mode.
    kept : sequence of int
        Three of the motors 1 to 4.

    Returns
    -------
    projector : ndarray, (N, 3, 4)
        [1, -J^T] in the columns of the four motors.
    regressor : ndarray, (N, 3, 52)
        IDM_2, columns `COLUMNS`.
    """
    stay = [int(i) - 1 for i in kept]
    if len(set(stay)) != 3 or not set(stay) <= set(range(4)):
        raise DynidentError(f"DualV: motors kept are {tuple(kept)}; name three different ones of 1, 2, 3, 4")
    go = next(i for i in range(4) if i not in stay)
    J, Y_t, Y_p = _opened(x, v, a, geometry or Geometry())
    samples = Y_p.shape[0]
    # (33): multipliers of the twelve closure equations of the legs, then of the four reduced ones (54).
    A = np.zeros((samples, 16, 16))
    A[:, 0, 12 + go] = -J.B_p[:, go]  # misprint: the block B_p^{1:r} is that of the motors kept
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


def partitions(x: ArrayLike, geometry: Geometry | None = None) -> list[tuple[tuple[int, ...], float]]:
    """Rank the choices of three motors for case 2 by the worst conditioning of J_r along a motion.

    Parameters
    ----------
    x : array_like, (N, 3)
        Poses.
    geometry : Geometry, optional
        Lengths and working mode.

    Returns
    -------
    list of (tuple of int, float)
        Motors kept and the largest condition number of their rows (rotation scaled by 0.1 m), best first.
    """
    J = jacobians(x, geometry).J_inv / np.array([1.0, 1.0, 0.1])
    ranked = [
        (tuple(i + 1 for i in kept), float(np.max(np.linalg.cond(J[:, list(kept)])))) for kept in combinations(range(4), 3)
    ]
    return sorted(ranked, key=lambda item: item[1])


def preload_direction(x: ArrayLike, geometry: Geometry | None = None) -> Array:
    """Return the unit vector of torques that only stress the robot, J_inv^T u = 0, continuous along a motion.

    Parameters
    ----------
    x : array_like, (N, 3)
        Poses.
    geometry : Geometry, optional
        Lengths and working mode.

    Returns
    -------
    ndarray, (N, 4)
        u; its sign follows from the minors of J_inv and does not jump.
    """
    J = jacobians(x, geometry).J_inv
    u = np.stack([(-1.0) ** i * np.linalg.det(np.delete(J, i, axis=1)) for i in range(4)], axis=1)
    return np.asarray(u / np.linalg.norm(u, axis=1, keepdims=True))


def internal_stress(tau: ArrayLike, x: ArrayLike, geometry: Geometry | None = None) -> Array:
    """Return the preload in torques: their component along `preload_direction`.

    Parameters
    ----------
    tau : array_like, (N, 4)
        Motor torques [N m].
    x : array_like, (N, 3)
        Poses.
    geometry : Geometry, optional
        Lengths and working mode.

    Returns
    -------
    ndarray, (N,)
        u . tau [N m].
    """
    return np.asarray(np.sum(preload_direction(x, geometry) * columns(tau, 4, "tau"), axis=1))


def remove_internal_stress(tau: ArrayLike, x: ArrayLike, geometry: Geometry | None = None) -> Array:
    """Return the torques without their preload (50): the smallest ||tau|| that moves the robot alike.

    Parameters
    ----------
    tau : array_like, (N, 4)
        Motor torques [N m].
    x : array_like, (N, 3)
        Poses.
    geometry : Geometry, optional
        Lengths and working mode.

    Returns
    -------
    ndarray, (N, 4)
        tau - (u . tau) u.
    """
    u = preload_direction(x, geometry)
    return np.asarray(columns(tau, 4, "tau") - np.sum(u * columns(tau, 4, "tau"), axis=1)[:, None] * u)


def idle_torques(
    x: ArrayLike, v: ArrayLike, a: ArrayLike, chi: ArrayLike, geometry: Geometry | None = None, smallest: str = "torque"
) -> Array:
    """Return motor torques without preload, in one of the two senses that the paper mixes, (26) and (50).

    Parameters
    ----------
    x, v, a : array_like, (N, 3)
        Motion of the platform.
    chi : array_like, (52,)
        Parameters in the order of `COLUMNS`.
    geometry : Geometry, optional
        Lengths and working mode.
    smallest : {"torque", "multipliers"}
        The smallest ||tau||, which (50) gives, or the smallest ||lambda||, which (26) with c = 0 gives.

    Returns
    -------
    ndarray, (N, 4)
        Torques; both move the robot alike.
    """
    if smallest not in ("torque", "multipliers"):
        raise DynidentError(f"DualV: smallest is {smallest!r}; it is 'torque' (50) or 'multipliers' (26)")
    g = geometry or Geometry()
    values = np.asarray(chi, dtype=np.float64)
    if values.shape != (len(COLUMNS),):
        raise DynidentError(f"DualV: chi has shape {values.shape}; give the {len(COLUMNS)} parameters of COLUMNS")
    J, Y_t, Y_p = _opened(x, v, a, g)
    legs = (Y_t @ values)[..., None]
    if smallest == "torque":
        wrench = np.sum(np.swapaxes(J.G, 2, 3) @ legs, axis=1) + (Y_p @ values)[..., None]
        return np.asarray((np.linalg.pinv(np.swapaxes(J.J_inv, 1, 2)) @ wrench)[..., 0])
    samples = legs.shape[0]
    A = np.zeros((samples, 15, 16))  # (16), wide: the multipliers of minimum norm are A^+ (tau_t, tau_pr) (26)-(27)
    for leg in range(4):
        rows = slice(3 * leg, 3 * leg + 3)
        A[:, rows, rows] = np.swapaxes(J.J_k[:, leg], 1, 2)
        A[:, 12:, rows] = -np.swapaxes(J.J_tk[:, leg], 1, 2)
    A[:, 12:, 12:] = np.swapaxes(J.A_p, 1, 2)
    right = np.concatenate([legs.reshape(samples, 12, 1), (Y_p @ values)[..., None]], axis=1)
    multipliers = (np.linalg.pinv(A) @ right)[..., 0]
    return np.asarray(-J.B_p * multipliers[:, 12:])
