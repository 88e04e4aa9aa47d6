"""Between motors and coordinates: rho_dot = A nu, f = A^T tau, and what is left when there are more motors than freedoms.

A tall A has a null space of A^T: motor torques there press the robot against itself (preload) and move nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.mechanics.closure import close_positions, projector
from dynident.mechanics.functions import coordinates
from dynident.mechanism.mechanism import Mechanism

Array = NDArray[np.float64]


def actuator_jacobian(mechanism: Mechanism, q: ArrayLike) -> Array:
    """Return A with rho_dot = A nu, motors on the joint side of their gears included.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates and k actuators.
    q : array_like, (N, n) or (n,)
        Positions of its coordinates.

    Returns
    -------
    ndarray, (N, k, n)
        Actuator Jacobian; constant for a robot without loops.
    """
    x = coordinates(mechanism, q, "q")
    N = mechanism.actuator_matrix[0]
    if not mechanism.loops:
        return np.broadcast_to(N, (x.shape[0], *N.shape)).copy()
    return np.asarray(N @ projector(mechanism, close_positions(mechanism, x)))


def generalised_efforts(mechanism: Mechanism, q: ArrayLike, torques: ArrayLike) -> Array:
    """Return what motor torques do on the robot's coordinates: f = A^T tau."""
    A = actuator_jacobian(mechanism, q)
    return np.asarray(np.einsum("tkn,tk->tn", A, _torques(mechanism, torques, A.shape[0])))


def actuator_torques(
    mechanism: Mechanism,
    q: ArrayLike,
    generalised: ArrayLike,
    preload: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """Return motor torques that give generalised forces: A^T tau = f, of minimum norm, plus a preload.

        tau = W^-1 A (A^T W^-1 A)^-1 f + U c,        U an orthonormal basis of the null space of A^T

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates and k actuators.
    q : array_like, (N, n)
        Positions.
    generalised : array_like, (N, n)
        Forces on the robot's coordinates, as from `inverse_dynamics`.
    preload : array_like (N, k) or (k,), optional
        Any motor torques; their internal part (U U^T preload) is added. None gives the unique or minimum-norm torques.
    weights : array_like (k,), optional
        Price of each motor, sum_i w_i tau_i^2 being least: 1 / limit^2 loads motors by their limits. All alike when omitted.

    Returns
    -------
    ndarray, (N, k)
        Motor torques [N m or N].
    """
    A = actuator_jacobian(mechanism, q)
    price = None if weights is None else prices(weights, A.shape[1])
    return least_torques(A, np.atleast_2d(np.asarray(generalised, dtype=np.float64)), preload, price)


def prices(weights: ArrayLike, count: int) -> Array:
    """Return the weights (k,) of a sharing of torques among actuators after checking that each is above zero."""
    price = numbers(weights, "weights")
    if price.shape != (count,) or not np.all(np.isfinite(price)) or not np.all(price > 0.0):
        raise DynidentError(
            f"weights are {price.tolist()}; give one number above zero for each of the {count} actuators: what the square of "
            "its torque costs"
        )
    return price


def least_torques(A: Array, f: Array, preload: ArrayLike | None = None, price: Array | None = None) -> Array:
    """Return torques with A^T tau = f of least (weighted) norm, plus the internal part of a preload; nothing is checked."""
    root = np.ones(A.shape[1]) if price is None else 1.0 / np.sqrt(price)
    tau = np.einsum("k,tnk,tn->tk", root, np.linalg.pinv(root[:, None] * A), f)
    if preload is None:
        return np.asarray(tau)
    u, inverse = np.broadcast_to(np.asarray(preload, dtype=np.float64), tau.shape), np.linalg.pinv(A)
    return np.asarray(tau + u - np.einsum("tkn,tn->tk", A, np.einsum("tnk,tk->tn", inverse, u)))


def preload(mechanism: Mechanism, q: ArrayLike, torques: ArrayLike) -> Array:
    """Return the internal part of motor torques, (1 - A A^+) tau: it presses the robot against itself and moves nothing.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates and k actuators.
    q : array_like, (N, n)
        Positions.
    torques : array_like, (N, k)
        Motor torques [N m or N].

    Returns
    -------
    ndarray, (N, k)
        Preload; zero for a robot with as many motors as degrees of freedom. ``torques - preload`` does the same with less.
    """
    A = actuator_jacobian(mechanism, q)
    return least_torques(A, np.zeros((A.shape[0], A.shape[2])), _torques(mechanism, torques, A.shape[0]))


def _torques(mechanism: Mechanism, torques: ArrayLike, samples: int) -> Array:
    """Return motor torques as (N, k) after checking their shape."""
    tau = np.atleast_2d(np.asarray(torques, dtype=np.float64))
    if tau.shape != (samples, len(mechanism.actuators)):
        raise DynidentError(
            f"torques have shape {tau.shape}; give ({samples}, {len(mechanism.actuators)}), one column for each motor of "
            f"'{mechanism.name}'"
        )
    return tau
