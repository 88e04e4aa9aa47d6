"""Which torque each actuator gives when there are more of them than freedoms: A^T tau = f, A (k, n) tall.

Minimum norm    tau = A (A^T A)^-1 f
Weighted        tau = W^-1 A (A^T W^-1 A)^-1 f         least sum_i w_i tau_i^2: strong motors take more
Preload         tau = minimum norm + (1 - A A^+) u     only the internal part of u, so that f stays
Projection      tau* = minimum norm of f = A^T tau     [Briot2015, eq. 50]: the internal stress is removed, f stays
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import finite_rows, numbers
from dynident.errors import DynidentError
from dynident.mechanics.actuation import actuator_jacobian, least_torques, prices
from dynident.mechanism.mechanism import Mechanism

Array = NDArray[np.float64]

SINGULAR = 1e-9  # smallest over largest singular value of A below which the actuators do not hold the robot


def actuator_rows(mechanism: Mechanism, q: ArrayLike) -> Array:
    """Return A with rho_v = A v on the joint side: the actuator Jacobian without the gear ratios of `Actuator`."""
    ratio = np.array([actuator.ratio for actuator in mechanism.actuators])
    return np.asarray(actuator_jacobian(mechanism, q) / ratio[:, None])


def coupling_rows(mechanism: Mechanism) -> Array:
    """Return c with rho = c q_tree, the actuator coordinates behind the gears."""
    index = {name: i for i, name in enumerate(mechanism.tree.coordinates)}
    rows = np.zeros((len(mechanism.actuators), len(index)))
    for row, actuator in zip(rows, mechanism.actuators, strict=True):
        for coordinate, coefficient in actuator.coupling.items():
            row[index[coordinate]] = coefficient
    return rows


def minimum_norm(A: ArrayLike, f: ArrayLike, weights: ArrayLike | None = None) -> Array:
    """Return the smallest torques that give the generalised forces: A^T tau = f.

    Parameters
    ----------
    A : array_like, (N, k, n) or (k, n)
        Actuator Jacobian, rho_v = A v, k >= n.
    f : array_like, (N, n) or (n,)
        Generalised forces, as from `inverse_dynamics`.
    weights : array_like (k,), optional
        Price of each actuator, sum_i w_i tau_i^2 being least; 1 / limit^2 loads them by their limits. All alike when omitted.

    Returns
    -------
    ndarray, (N, k), or (k,) when both are of one sample
        Torques of the actuators.

    Examples
    --------
    >>> from dynident.control import minimum_norm
    >>> minimum_norm([[1.0], [1.0]], [4.0])
    array([2., 2.])
    >>> minimum_norm([[1.0], [1.0]], [4.0], weights=[3.0, 1.0])
    array([1., 3.])
    """
    return with_preload(A, f, 0.0, weights)


def with_preload(A: ArrayLike, f: ArrayLike, u: ArrayLike, weights: ArrayLike | None = None) -> Array:
    """Return the torques that give the generalised forces and a preload: minimum norm plus the internal part of u.

    Parameters
    ----------
    A : array_like, (N, k, n) or (k, n)
        Actuator Jacobian, k >= n.
    f : array_like, (N, n) or (n,)
        Generalised forces.
    u : array_like, (N, k), (k,) or scalar
        Any torques; only their internal part is added, so that A^T tau = f stays. Refused (but for zeros) when k = n.
    weights : array_like (k,), optional
        As in `minimum_norm`.

    Returns
    -------
    ndarray, (N, k), or (k,) when A and f are of one sample
        Torques of the actuators.
    """
    matrix, push = _matrix(A), numbers(u, "u")
    forces = _forces(matrix, f)
    samples, count = max(matrix.shape[0], forces.shape[0]), matrix.shape[1]
    if push.shape not in ((), (count,), (samples, count)):
        raise DynidentError(f"u has shape {push.shape}; give one torque for each of the {count} actuators")
    if count == matrix.shape[2] and np.any(push):
        raise DynidentError(f"u is a preload, but {count} actuators for as many freedoms leave no room for it; leave it out")
    price = None if weights is None else prices(weights, count)
    tau = least_torques(matrix, forces, push if np.any(push) else None, price)
    return tau[0] if np.ndim(A) == 2 and np.ndim(f) <= 1 else tau


def _matrix(A: ArrayLike) -> Array:
    """Return A as (N, k, n) after checking that the actuators hold the robot."""
    matrix = numbers(A, "A")
    if matrix.ndim not in (2, 3) or matrix.shape[-1] == 0 or matrix.shape[-2] < matrix.shape[-1]:
        raise DynidentError(
            f"A has shape {matrix.shape}; give (samples, actuators, coordinates) with at least as many actuators"
        )
    matrix = matrix if matrix.ndim == 3 else matrix[None]
    sizes = np.linalg.svd(finite_rows("A", matrix), compute_uv=False)
    bad = sizes[:, -1] <= SINGULAR * sizes[:, 0]
    if bad.any():
        raise DynidentError(
            f"the actuators do not hold the robot at sample {int(np.argmax(bad))} (A loses rank: a parallel singularity); "
            "keep the motion away from it"
        )
    return matrix


def _forces(matrix: Array, f: ArrayLike) -> Array:
    """Return generalised forces as (N, n) after checking them against A (N, k, n)."""
    forces = np.atleast_2d(numbers(f, "f"))
    if forces.ndim != 2 or forces.shape[1] != matrix.shape[2]:
        raise DynidentError(f"f has shape {forces.shape}; give {matrix.shape[2]} columns, as A has shape {matrix.shape}")
    if 1 not in (matrix.shape[0], forces.shape[0]) and matrix.shape[0] != forces.shape[0]:
        raise DynidentError(f"f has {forces.shape[0]} samples but A has {matrix.shape[0]}; they must agree")
    return finite_rows("f", forces)
