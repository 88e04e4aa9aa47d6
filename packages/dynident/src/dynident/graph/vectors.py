"""Vectors and matrices, three by three, as tuples of expressions or of plain numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dynident.errors import DynidentError
from dynident.graph.expression import Graph, Node, total

S = TypeVar("S", Node, float)
Triple = tuple[S, S, S]
Square = tuple[Triple[S], Triple[S], Triple[S]]
Vector = Triple[Node]
Matrix = Square[Node]

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


def dot(x: Sequence[S], y: Sequence[S]) -> S:
    """Return x . y."""
    result = x[0] * y[0]
    for a, b in zip(x[1:], y[1:], strict=True):
        result = result + a * b
    return result


def along(row: Sequence[float], x: Sequence[Node]) -> Node:
    """Return c . x of numbers c and expressions x."""
    return total([x[0].graph.zero, *(x[i] * float(c) for i, c in enumerate(row) if c)])


def plus(x: Triple[S], y: Triple[S]) -> Triple[S]:
    """Return x + y."""
    return x[0] + y[0], x[1] + y[1], x[2] + y[2]


def scale(x: Triple[S], factor: S | float) -> Triple[S]:
    """Return factor x."""
    return x[0] * factor, x[1] * factor, x[2] * factor


def cross(x: Triple[S], y: Triple[S]) -> Triple[S]:
    """Return x cross y."""
    return x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]


def times(R: Square[S], x: Triple[S]) -> Triple[S]:
    """Return R x."""
    return dot(R[0], x), dot(R[1], x), dot(R[2], x)


def transposed(R: Square[S]) -> Square[S]:
    """Return R^T."""
    return (R[0][0], R[1][0], R[2][0]), (R[0][1], R[1][1], R[2][1]), (R[0][2], R[1][2], R[2][2])


def back(R: Square[S], x: Triple[S]) -> Triple[S]:
    """Return R^T x."""
    return times(transposed(R), x)


def product(A: Square[S], B: Square[S]) -> Square[S]:
    """Return A B."""
    columns = transposed(B)
    return times(columns, A[0]), times(columns, A[1]), times(columns, A[2])
