"""Vectors and matrices of expressions, three by three, as tuples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynident.errors import DynidentError
from dynident.graph.expression import Graph, Node, total

Vector = tuple[Node, Node, Node]
Matrix = tuple[Vector, Vector, Vector]
Inertia = tuple[Node, ...]
"""m, hx, hy, hz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz."""

EXACT = tuple(sign * value for value in (0.0, 1.0, 0.5, np.sqrt(0.5), np.sqrt(0.75)) for sign in (1.0, -1.0))


def snapped(values: ArrayLike, snap: float) -> np.ndarray:
    """Return direction cosines with the exact 0, 1, 1/2, sqrt(1/2), sqrt(3/4) where they are closer than `snap`."""
    array = np.array(values, dtype=np.float64)
    for exact in EXACT:
        array[np.abs(array - exact) <= snap] = exact
    return array


def vector(graph: Graph, values: Iterable[Node | float]) -> Vector:
    """Return a vector of numbers or expressions."""
    nodes = [graph.node(value if isinstance(value, Node) else float(value)) for value in values]
    if len(nodes) != 3:
        raise DynidentError(f"values are {len(nodes)}; a vector has three")
    return nodes[0], nodes[1], nodes[2]


def matrix(graph: Graph, rows: Iterable[Iterable[Node | float]]) -> Matrix:
    """Return a matrix of numbers or expressions."""
    x, y, z = (vector(graph, row) for row in rows)
    return x, y, z


def dot(x: Sequence[Node], y: Sequence[Node]) -> Node:
    """Return x . y."""
    return total([a * b for a, b in zip(x, y, strict=True)])


def plus(x: Vector, y: Vector) -> Vector:
    """Return x + y."""
    return x[0] + y[0], x[1] + y[1], x[2] + y[2]


def scale(x: Vector, factor: Node | float) -> Vector:
    """Return factor x."""
    return x[0] * factor, x[1] * factor, x[2] * factor


def cross(x: Vector, y: Vector) -> Vector:
    """Return x cross y."""
    return x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]


def times(R: Matrix, x: Vector) -> Vector:
    """Return R x."""
    return dot(R[0], x), dot(R[1], x), dot(R[2], x)


def transposed(R: Matrix) -> Matrix:
    """Return R^T."""
    return (R[0][0], R[1][0], R[2][0]), (R[0][1], R[1][1], R[2][1]), (R[0][2], R[1][2], R[2][2])


def back(R: Matrix, x: Vector) -> Vector:
    """Return R^T x."""
    return times(transposed(R), x)


def product(A: Matrix, B: Matrix) -> Matrix:
    """Return A B."""
    columns = transposed(B)
    x, y, z = ((dot(row, columns[0]), dot(row, columns[1]), dot(row, columns[2])) for row in A)
    return x, y, z


def tensor(phi: Inertia) -> Matrix:
    """Return the inertia tensor of ten parameters."""
    return (phi[4], phi[5], phi[6]), (phi[5], phi[7], phi[8]), (phi[6], phi[8], phi[9])


def moved(phi: Inertia, R: Matrix, r: Vector) -> Inertia:
    """Return inertial parameters seen from another frame: x' = R x + r.

    h' = R h + m r,   I' = R I R^T + (2 r.Rh + m r.r) 1 - r (Rh)^T - (Rh) r^T - m r r^T
    """
    m, h = phi[0], times(R, (phi[1], phi[2], phi[3]))
    turned = product(product(R, tensor(phi)), transposed(R))
    first = plus(h, scale(r, m))
    # With b = Rh + h': r.b and r b^T hold all three shifts at once.
    b = plus(h, first)
    diagonal = (r[0] * b[0], r[1] * b[1], r[2] * b[2])

    def product_of(i: int, j: int) -> Node:
        return turned[i][j] - (r[i] * first[j] + h[i] * r[j])

    return (
        m,
        *first,
        turned[0][0] + (diagonal[1] + diagonal[2]),
        product_of(0, 1),
        product_of(0, 2),
        turned[1][1] + (diagonal[0] + diagonal[2]),
        product_of(1, 2),
        turned[2][2] + (diagonal[0] + diagonal[1]),
    )
