"""Small systems of linear equations on expressions, unrolled: every robot's own zeros are left out."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dynident.graph.algebra import absolute, maximum, minimum, where
from dynident.graph.expression import Node, total

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
    """Return M^-1 B from what `factor_symmetric` gave."""
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

    The largest entry of a column is brought up by comparing and exchanging rows one after the other, which suits code without
    branches. NodeRows whose entry is zero by the robot's structure are not compared.
    """
    n, width = len(A), len(right[0])
    rows = [[*a, *b] for a, b in zip(A, right, strict=True)]
    side = A[0][0].graph.one
    pivots: list[Node] = []
    for k in range(n):
        first = next((i for i in range(k, n) if not rows[i][k].is_const(0.0)), k)
        if first != k:
            rows[k], rows[first], side = rows[first], rows[k], -side
        for i in range(max(k, first) + 1, n):
            if rows[i][k].is_const(0.0):
                continue
            larger = absolute(rows[i][k]) > absolute(rows[k][k])
            side = where(larger, -side, side)
            for c in range(k, n + width):
                up, down = rows[k][c], rows[i][c]
                rows[k][c], rows[i][c] = where(larger, down, up), where(larger, up, down)
        pivots.append(absolute(rows[k][k]))
        side = where(rows[k][k] < 0.0, -side, side)
        inverse = reciprocal(rows[k][k])
        for i in range(k + 1, n):
            if rows[i][k].is_const(0.0):
                continue
            factor = rows[i][k] * inverse
            for c in range(k + 1, n + width):
                rows[i][c] = rows[i][c] - factor * rows[k][c]
    x: NodeRows = [[] for _ in range(n)]
    for i in range(n - 1, -1, -1):
        inverse = reciprocal(rows[i][i])
        for c in range(width):
            known = total([rows[i][n + c], *(-(rows[i][k] * x[k][c]) for k in range(i + 1, n))])
            x[i].append(known * inverse)
    least, most = pivots[0], pivots[0]
    for pivot in pivots[1:]:
        least, most = minimum(least, pivot), maximum(most, pivot)
    return x, least / most, side
