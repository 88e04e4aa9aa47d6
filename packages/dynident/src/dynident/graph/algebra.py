"""Elementary functions, vectors and matrices of three, and small linear systems, for expressions, numbers and arrays.

tanh(x) is a node of a graph if x is one, and numpy's tanh(x) otherwise. Linear systems are unrolled, without zeros.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import mul
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dynident.errors import DynidentError
from dynident.graph.expression import Graph, Node, total
from dynident.graph.operations import OPERATIONS


def _apply(op: str, *x: Any) -> Any:
    """Return an operation of expressions where one is among the arguments, of numbers and arrays otherwise."""
    owner = None
    for value in x:
        if isinstance(value, Node):
            owner = value.graph
            break
    if owner is None:
        try:
            return OPERATIONS[op].numpy(*x)
        except TypeError:
            kinds = " and ".join(type(value).__name__ for value in x)
            raise DynidentError(f"{op} cannot be taken of {kinds}; give numbers, arrays of them or expressions") from None
    return owner.make(op, *(owner.node(value) for value in x))


def sin(x: Any) -> Any:
    """Return sin(x) of an expression, a number or an array."""
    return _apply("sin", x)


def cos(x: Any) -> Any:
    """Return cos(x) of an expression, a number or an array."""
    return _apply("cos", x)


def sqrt(x: Any) -> Any:
    """Return the square root of an expression, a number or an array."""
    return _apply("sqrt", x)


def exp(x: Any) -> Any:
    """Return e^x of an expression, a number or an array."""
    return _apply("exp", x)


def log(x: Any) -> Any:
    """Return the natural logarithm of an expression, a number or an array."""
    return _apply("log", x)


def tanh(x: Any) -> Any:
    """Return tanh(x) of an expression, a number or an array."""
    return _apply("tanh", x)


def sign(x: Any) -> Any:
    """Return -1, 0 or 1 by the sign of an expression, a number or an array."""
    return _apply("sign", x)


def absolute(x: Any) -> Any:
    """Return |x| of an expression, a number or an array."""
    return _apply("abs", x)


def floor(x: Any) -> Any:
    """Return the largest whole number not above an expression, a number or an array."""
    return _apply("floor", x)


def minimum(x: Any, y: Any) -> Any:
    """Return the smaller of two expressions, numbers or arrays."""
    return _apply("min", x, y)


def maximum(x: Any, y: Any) -> Any:
    """Return the larger of two expressions, numbers or arrays."""
    return _apply("max", x, y)


def power(x: Any, exponent: Any) -> Any:
    """Return x to a power, for expressions, numbers or arrays."""
    return _apply("pow", x, exponent)


def arctan2(y: Any, x: Any) -> Any:
    """Return the angle of the point (x, y), for expressions, numbers or arrays."""
    return _apply("atan2", y, x)


def equal(x: Any, y: Any) -> Any:
    """Return 1 where two expressions, numbers or arrays are equal, else 0."""
    return _apply("eq", x, y)


def where(condition: Any, x: Any, y: Any) -> Any:
    """Return x where the condition holds, else y, for expressions, numbers or arrays."""
    return _apply("select", condition, x, y)


def both(x: Any, y: Any) -> Any:
    """Return 1 where two conditions hold, else 0."""
    return _apply("select", x, y, 0.0)


def either(x: Any, y: Any) -> Any:
    """Return 1 where one of two conditions holds, else 0."""
    return _apply("select", x, 1.0, y)


def opposite(x: Any) -> Any:
    """Return 1 where a condition does not hold, else 0."""
    return _apply("select", x, 0.0, 1.0)


def clip(x: Any, limit: Any) -> Any:
    """Return x within +-limit."""
    return minimum(maximum(x, -1.0 * limit), limit)


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


NodeRows = list[list[Node]]


def reciprocal(x: Node) -> Node:
    """Return 1 / x; infinity where the robot's structure makes x zero, so that the caller's check of pivots sees it."""
    return x.graph.const(math.inf) if x.is_const(0.0) else 1.0 / x


def factor_symmetric(M: Sequence[Sequence[Node]]) -> tuple[NodeRows, list[Node], list[Node]]:
    """Return L, the pivots and their inverses of M = L D L^T, without row exchanges; only the lower triangle of M is read."""
    n, zero = len(M), M[0][0].graph.zero
    L, LD = [[zero] * n for _ in range(n)], [[zero] * n for _ in range(n)]
    pivots: list[Node] = []
    inverses: list[Node] = []
    for j in range(n):
        pivots.append(M[j][j] - total([zero, *(L[j][k] * LD[j][k] for k in range(j))]))
        inverses.append(reciprocal(pivots[j]))
        for i in range(j + 1, n):
            LD[i][j] = M[i][j] - total([zero, *(LD[i][k] * L[j][k] for k in range(j))])
            L[i][j] = LD[i][j] * inverses[j]
    return L, pivots, inverses


def solve_factored(L: NodeRows, inverses: Sequence[Node], right: Sequence[Sequence[Node]]) -> NodeRows:
    """Return M^-1 B from the factors of `factor_symmetric`."""
    n, zero = len(inverses), inverses[0].graph.zero
    x = [list(row) for row in right]
    for j in range(n):
        for c in range(len(x[j])):
            x[j][c] = x[j][c] - total([zero, *(L[j][k] * x[k][c] for k in range(j))])
    for i in range(n - 1, -1, -1):
        for c in range(len(x[i])):
            x[i][c] = x[i][c] * inverses[i] - total([zero, *(L[k][i] * x[k][c] for k in range(i + 1, n))])
    return x


def solve_symmetric(M: Sequence[Sequence[Node]], right: Sequence[Sequence[Node]]) -> tuple[NodeRows, list[Node]]:
    """Return M^-1 B and the pivots by M = L D L^T without square roots or row exchanges; reads the lower triangle of M."""
    L, pivots, inverses = factor_symmetric(M)
    return solve_factored(L, inverses, right), pivots


def solve_general(A: Sequence[Sequence[Node]], right: Sequence[Sequence[Node]]) -> tuple[NodeRows, Node]:
    """Return A^-1 B and the ratio of the smallest to the largest pivot, by `eliminate`."""
    x, ratio, _ = eliminate(A, right)
    return x, ratio


def eliminate(A: Sequence[Sequence[Node]], right: Sequence[Sequence[Node]]) -> tuple[NodeRows, Node, Node]:
    """Return A^-1 B, the ratio of the smallest to the largest pivot and the sign of det A, by elimination with row exchanges.

    Columns with the fewest structural entries come first, which limits fill-in. The largest entry of a
    column is moved up by comparing and exchanging rows one after the other, which suits code without branches.
    """
    n, zero, side = len(A), A[0][0].graph.zero, A[0][0].graph.one
    rows, order = [[*a, *b] for a, b in zip(A, right, strict=True)], list(range(n))
    pivots: list[Node] = []
    for k in range(n):
        found = {c: [i for i in range(k, n) if rows[i][c] is not zero] for c in range(k, n)}
        column = min(found, key=lambda c: len(found[c]))
        for row in rows if column != k else ():
            row[k], row[column] = row[column], row[k]
        order[k], order[column] = order[column], order[k]
        first, *others = found[column] or [k]
        rows[k], rows[first] = rows[first], rows[k]
        side = -side if (column != k) != (first != k) else side
        for i in others:
            larger = absolute(rows[i][k]) > absolute(rows[k][k])
            side = where(larger, -side, side)
            for c in range(k, len(rows[k])):
                up, down = rows[k][c], rows[i][c]
                rows[k][c], rows[i][c] = where(larger, down, up), where(larger, up, down)
        pivot = rows[k][k]
        pivots.append(pivot)
        inverse = reciprocal(pivot)
        rows[k] = [x / pivot if x in (pivot, -pivot) else x * inverse for x in rows[k]]
        for i in others:
            rows[i] = [x - rows[i][k] * y if c > k else zero for c, (x, y) in enumerate(zip(rows[i], rows[k], strict=True))]
    x: NodeRows = [[] for _ in range(n)]
    for i in range(n - 1, -1, -1):
        known = [(rows[i][k], x[order[k]]) for k in range(i + 1, n)]
        x[order[i]] = [total([b, *(-(entry * row[c]) for entry, row in known)]) for c, b in enumerate(rows[i][n:])]
    for some in (pivots[i : i + 8] for i in range(0, n, 8)):  # products of more could underflow
        side = where(reduce(mul, some) < 0.0, -side, side)
    sizes = [absolute(pivot) for pivot in pivots]
    return x, reduce(minimum, sizes) / reduce(maximum, sizes), side


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
