"""Actuator Jacobian A: rho_dot = A nu, f = A^T tau, and the preload of over-actuated robots.

With more motors than degrees of freedom A^T has a null space: motor torques in it (preload) cause no motion.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.graph.algebra import NodeRows, absolute, dot, minimum, solve_general, solve_symmetric
from dynident.graph.compiled import Compiled
from dynident.graph.expression import Function, Graph, Node, total
from dynident.mechanics.closure import close_positions, projector
from dynident.mechanics.equations import Equations
from dynident.mechanics.functions import coordinates
from dynident.mechanism.mechanism import Mechanism

TINY = 1e-13  # relative size of a pivot below which only rounding errors remain


def least_squares(A: NodeRows, x: Sequence[Node]) -> tuple[list[Node], Node]:
    """Return y of least |A y - x|, A (m, n) with m >= n, and a number above zero where A has full rank."""
    columns = _transposed(A)
    if len(A) == len(columns):
        found, ratio = solve_general(A, [[entry] for entry in x])
        return [entry[0] for entry in found], ratio - TINY
    return _normal(A, A, [dot(column, x) for column in columns])


def least_norm(A: NodeRows, f: Sequence[Node], price: Sequence[Node] | None = None) -> tuple[list[Node], Node]:
    """Return tau = W^-1 A (A^T W^-1 A)^-1 f of least sum_i w_i tau_i^2 with A^T tau = f, and a number above zero if it exists.

    With fewer actuators than coordinates, tau minimises |A^T tau - f|.
    """
    if len(A) <= len(A[0]):
        return least_squares(_transposed(A), f)
    cheap = A if price is None else [[x / w for x in row] for row, w in zip(A, price, strict=True)]
    part, ok = _normal(A, cheap, f)
    return [dot(row, part) for row in cheap], ok


def internal(A: NodeRows, tau: Sequence[Node]) -> tuple[list[Node], Node]:
    """Return the internal part (preload) of torques, (1 - A A^+) tau, and whether A has full rank."""
    part, ok = least_squares(A, tau)
    return [x - dot(row, part) for x, row in zip(tau, A, strict=True)], ok


def actuation(x: Equations) -> NodeRows:
    """Return A = N G (k, n) of a robot with loops, n coordinates and k motors, rho_dot = A nu."""
    N, G = x.mechanism.actuator_matrix[0], x.G or []
    turning = [[(int(i), float(line[i])) for i in np.flatnonzero(line)] for line in N]
    return [[total([x.graph.zero, *(G[i][j] * c for i, c in line)]) for j in range(x.mechanism.dof)] for line in turning]


def _transposed(A: NodeRows) -> NodeRows:
    return [list(column) for column in zip(*A, strict=True)]


def _normal(A: NodeRows, B: NodeRows, right: Sequence[Node]) -> tuple[list[Node], Node]:
    """Return (A^T B)^-1 times a vector, and a number above zero where the pivots exceed rounding errors."""
    graph, n = A[0][0].graph, range(len(A[0]))
    square = [[total([graph.zero, *(a[i] * b[j] for a, b in zip(A, B, strict=True))]) for j in n] for i in n]
    found, pivots = solve_symmetric(square, [[x] for x in right])
    ok = graph.one
    for i, pivot in enumerate(pivots):
        ok = minimum(ok, absolute(pivot) - TINY * absolute(square[i][i]))
    return [x[0] for x in found], ok


def coupling_rows(mechanism: Mechanism) -> Array:
    """Return c with rho = c q_tree, the actuator coordinates behind the gears."""
    index = {name: i for i, name in enumerate(mechanism.tree.coordinates)}
    rows = np.zeros((len(mechanism.actuators), len(index)))
    for row, actuator in zip(rows, mechanism.actuators, strict=True):
        for coordinate, coefficient in actuator.coupling.items():
            row[index[coordinate]] = coefficient
    return rows


def actuator_jacobian(mechanism: Mechanism, q: ArrayLike) -> Array:
    """Return A (N, k, n) with rho_dot = A nu of the k actuators of a `mechanism` at positions `q` (N, n).

    Motor coordinates are on the joint side of their gears; A is constant for a robot without loops.
    """
    x = coordinates(mechanism, q, "q")
    N = mechanism.actuator_matrix[0]
    if not mechanism.loops:
        return np.broadcast_to(N, (x.shape[0], *N.shape)).copy()
    return np.asarray(N @ projector(mechanism, close_positions(mechanism, x)))


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
        Weights w_i of the minimised sum_i w_i tau_i^2: 1 / limit^2 loads motors by their limits. All 1 when omitted.

    Returns
    -------
    ndarray, (N, k)
        Motor torques [N m or N].
    """
    A = actuator_jacobian(mechanism, q)
    price = None if weights is None else prices(weights, A.shape[1])
    return least_torques(A, np.atleast_2d(np.asarray(generalised, dtype=np.float64)), preload, price)


def prices(weights: ArrayLike, count: int) -> Array:
    """Return the weights (k,) of a torque distribution after checking that each is above zero."""
    price = numbers(weights, "weights")
    if price.shape != (count,) or not np.all(np.isfinite(price)) or not np.all(price > 0.0):
        raise DynidentError(
            f"weights are {price.tolist()}; give one number above zero for each of the {count} actuators: what the square of "
            "its torque costs"
        )
    return price


def least_torques(A: Array, f: Array, preload: ArrayLike | None = None, price: Array | None = None) -> Array:
    """Return torques with A^T tau = f of least (weighted) norm, plus the internal part of a preload; inf if none exist."""
    samples, (k, n) = max(len(A), len(f)), A.shape[1:]
    pushed = preload is not None and k > n
    given = {"A": np.broadcast_to(A.reshape(len(A), k * n), (samples, k * n)), "f": np.broadcast_to(f, (samples, n))}
    if pushed:
        given["u"] = np.broadcast_to(np.asarray(preload, dtype=np.float64), (samples, k))
    arrays = {name: np.ascontiguousarray(x, dtype=np.float64) for name, x in given.items()}
    if price is not None:
        arrays["w"] = price
    tau, ok = np.empty((samples, k)), np.empty((samples, 1))
    _sharing(k, n, price is not None, pushed)(samples, {**arrays, "tau": tau, "ok": ok})
    return np.where(ok > 0.0, tau, np.inf)


@lru_cache(maxsize=64)
def _sharing(k: int, n: int, priced: bool, pushed: bool) -> Compiled:
    """Return `least_norm` plus `internal` as machine code, for matrices A (k, n)."""
    graph = Graph()
    flat, inputs = graph.symbols("A", k * n), {"A": k * n, "f": n}
    A = [flat[i * n : (i + 1) * n] for i in range(k)]
    tau, ok = least_norm(A, graph.symbols("f", n), graph.symbols("w", k) if priced else None)
    if pushed:
        inputs["u"] = k
        tau = [x + y for x, y in zip(tau, internal(A, graph.symbols("u", k))[0], strict=True)]
    return Compiled(Function("least_torques", inputs, {"tau": tau, "ok": [ok]}, {"w": k} if priced else {}))


def preload(mechanism: Mechanism, q: ArrayLike, torques: ArrayLike) -> Array:
    """Return the internal part (1 - A A^+) tau of motor `torques` (N, k) of a `mechanism` at `q` (N, n) [N m or N].

    The preload causes no motion and is zero unless over-actuated; ``torques - preload`` has the same effect as `torques`.
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
