"""From the robot's coordinates to the equations of a projection, and back to coordinates and motors.

    rows = S y,    y = A^T tau,    A = N G          S = 1, J_r^-T of named motors, or R^-T with A = Q R ("gls")
    tau_least = B rows,    B = A (A^T A)^-1 S^-1      (N, k, n)

tau_least is the least torque that does the same: a preload, and noise that looks like one, are left out on both sides of a
comparison.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynident.graph.elementary import absolute, maximum, minimum, sqrt
from dynident.graph.expression import Node, total
from dynident.mechanics.actuation import actuator_jacobian
from dynident.mechanics.equations import Equations
from dynident.mechanics.motion import Motion
from dynident.mechanics.solving import solve_general

if TYPE_CHECKING:
    from dynident.identify.rows import Rows

Array = NDArray[np.float64]
NodeRows = list[list[Node]]


def actuation(x: Equations) -> NodeRows:
    """Return A = N G (k, n) of a robot with loops, n coordinates and k motors, rho_dot = A nu."""
    N, G = x.mechanism.actuator_matrix[0], x.G or []
    turning = [[(int(i), float(line[i])) for i in np.flatnonzero(line)] for line in N]
    return [[total([x.graph.zero, *(G[i][j] * c for i, c in line)]) for j in range(x.mechanism.dof)] for line in turning]


def projected(x: Equations, rows: Rows, right: NodeRows) -> tuple[NodeRows, Node]:
    """Return S `right` (n, m), and the smallest over the largest pivot of the projection, 1 without one.

    R^-T makes alike, independent noise of the motors white.
    """
    if rows.projection == "independent":
        return right, x.graph.one
    A = actuation(x)
    if rows.projection != "gls":
        block = [A[rows.efforts.index(name)] for name in rows.projection]
        solved, ratio = solve_general([list(column) for column in zip(*block, strict=True)], right)
        return solved, absolute(ratio)
    R = gram_schmidt(A)
    out = [list(row) for row in right]
    for j, line in enumerate(R):  # forward substitution
        out[j] = [b / line[j] for b in out[j]]
        for k in range(j + 1, len(R)):
            out[k] = [b - line[k] * c for b, c in zip(out[k], out[j], strict=True)]
    lengths = [line[j] for j, line in enumerate(R)]
    return out, reduce(minimum, lengths) / reduce(maximum, lengths)


def gram_schmidt(A: NodeRows) -> NodeRows:
    """Return R of A = Q R, its diagonal positive, by Gram and Schmidt."""
    vectors, zero = [list(column) for column in zip(*A, strict=True)], A[0][0].graph.zero
    R = [[zero] * len(vectors) for _ in vectors]
    for j, vector in enumerate(vectors):
        R[j][j] = sqrt(total([a * a for a in vector]))
        unit = [a / R[j][j] for a in vector]
        for k in range(j + 1, len(vectors)):
            R[j][k] = total([a * u for a, u in zip(vectors[k], unit, strict=True)])
            vectors[k] = [a - R[j][k] * u for a, u in zip(vectors[k], unit, strict=True)]
    return R


def unprojected(x: Equations, rows: Rows) -> NodeRows:
    """Return S^-1 (n, n), which brings errors of the equations back to the robot's coordinates."""
    if rows.projection == "independent":
        n = rows.mechanism.dof
        return [[x.graph.const(float(i == j)) for j in range(n)] for i in range(n)]
    A = actuation(x)
    block = gram_schmidt(A) if rows.projection == "gls" else [A[rows.efforts.index(name)] for name in rows.projection]
    return [list(column) for column in zip(*block, strict=True)]


def motor_map(rows: Rows, motion: Motion) -> Array:
    """Return B of every sample, (N, k, n), k motors for n equations."""
    A = actuator_jacobian(rows.mechanism, motion.q)
    if rows.projection == "gls":  # A = Q R with a positive diagonal, as in the equations: B = Q
        Q, R = np.linalg.qr(A)
        return np.asarray(Q * np.sign(np.diagonal(R, axis1=1, axis2=2))[:, None, :])
    B = np.swapaxes(np.linalg.pinv(A), 1, 2)
    if rows.projection == "independent":
        return np.asarray(B)
    kept = [rows.efforts.index(name) for name in rows.projection]
    return np.asarray(B @ np.swapaxes(A[:, kept], 1, 2))
