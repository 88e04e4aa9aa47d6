"""DualV: preload of the four motors, which does not act on the platform (internal stress) [Briot2015, eq. 50]."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident_papers.robots.dualv.closed_forms import COLUMNS, _opened, jacobians
from dynident_papers.robots.dualv.data import Geometry
from dynident_papers.robots.shared import columns


def preload_direction(x: ArrayLike, geometry: Geometry | None = None) -> Array:
    """Return the unit vector u of the preload, J_inv^T u = 0, continuous along a motion."""
    J = jacobians(x, geometry).J_inv
    u = np.stack([(-1.0) ** i * np.linalg.det(np.delete(J, i, axis=1)) for i in range(4)], axis=1)
    return np.asarray(u / np.linalg.norm(u, axis=1, keepdims=True))


def internal_stress(tau: ArrayLike, x: ArrayLike, geometry: Geometry | None = None) -> Array:
    """Return the preload in torques, u . tau with u of `preload_direction`."""
    return np.asarray(np.sum(preload_direction(x, geometry) * columns(tau, 4, "tau"), axis=1))


def remove_internal_stress(tau: ArrayLike, x: ArrayLike, geometry: Geometry | None = None) -> Array:
    """Return tau - (u . tau) u, the torque of least norm with the same motion [Briot2015, eq. 50]."""
    u = preload_direction(x, geometry)
    return np.asarray(columns(tau, 4, "tau") - np.sum(u * columns(tau, 4, "tau"), axis=1)[:, None] * u)


def idle_torques(
    x: ArrayLike, v: ArrayLike, a: ArrayLike, chi: ArrayLike, geometry: Geometry | None = None, smallest: str = "torque"
) -> Array:
    """Return motor torques without preload, in one of the two definitions mixed in [Briot2015, eqs. 26, 50]."""
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
