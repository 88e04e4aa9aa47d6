"""Small systems of linear equations on expressions, unrolled: every robot's own zeros are left out."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dynident.graph import Node, absolute, maximum, minimum, sign, total, where

Rows = list[list[Node]]


def reciprocal(x: Node) -> Node:
    """Return 1 / x; infinity where the robot's structure makes x zero, so that the caller's check of pivots sees it."""
    return x.graph.const(math.inf) if x.is_const(0.0) else 1.0 / x


def solve_symmetric(M: Sequence[Sequence[Node]], right: Sequence[Sequence[Node]]) -> tuple[Rows, list[Node]]:
    """Return M^-1 B and the pivots by M = L D L^T without square roots or row exchanges; reads the lower triangle of M."""
    n = len(M)
    zero = M[0][0].graph.zero
    L = [[zero] * n for _ in range(n)]
    LD = [[zero] * n for _ in range(n)]
    x = [list(row) for row in right]
    pivots, inverses = [], []
    for j in range(n):
        pivots.append(M[j][j] - total([zero, *(L[j][k] * LD[j][k] for k in range(j))]))
        inverses.append(reciprocal(pivots[j]))
        for c in range(len(x[j])):
            x[j][c] = x[j][c] - total([zero, *(L[j][k] * x[k][c] for k in range(j))])
        for i in range(j + 1, n):
            LD[i][j] = M[i][j] - total([zero, *(LD[i][k] * L[j][k] for k in range(j))])
            L[i][j] = LD[i][j] * inverses[j]
    for i in range(n - 1, -1, -1):
        for c in range(len(x[i])):
            x[i][c] = x[i][c] * inverses[i] - total([zero, *(L[k][i] * x[k][c] for k in range(i + 1, n))])
    return x, pivots


def solve_general(A: Sequence[Sequence[Node]], right: Sequence[Sequence[Node]]) -> tuple[Rows, Node]:
    """Return A^-1 B and the ratio of the smallest to the largest pivot with the sign of det A, with row exchanges.

    The largest entry of a column is brought up by comparing and exchanging rows one after the other, which suits code without
    branches. Rows whose entry is zero by the robot's structure are not compared.
    """
    n, width = len(A), len(right[0])
    rows = [[*a, *b] for a, b in zip(A, right, strict=True)]
    side = A[0][0].graph.one
    pivots: list[Node] = []
    for k in range(n):
        first = next((i for i in range(k, n) if not rows[i][k].is_const(0.0)), k)
        if first != k:
            rows[k], rows[first] = rows[first], rows[k]
            side = -side
        for i in range(first + 1, n):
            if rows[i][k].is_const(0.0):
                continue
            larger = absolute(rows[i][k]) > absolute(rows[k][k])
            side = where(larger, -side, side)
            for c in range(k, n + width):
                up, down = rows[k][c], rows[i][c]
                rows[k][c], rows[i][c] = where(larger, down, up), where(larger, up, down)
        side = side * sign(rows[k][k])
        pivots.append(absolute(rows[k][k]))
        inverse = reciprocal(rows[k][k])
        for i in range(k + 1, n):
            if rows[i][k].is_const(0.0):
                continue
            factor = rows[i][k] * inverse
            for c in range(k + 1, n + width):
                rows[i][c] = rows[i][c] - factor * rows[k][c]
    x: Rows = [[] for _ in range(n)]
    for i in range(n - 1, -1, -1):
        inverse = reciprocal(rows[i][i])
        for c in range(width):
            known = total([rows[i][n + c], *(-(rows[i][k] * x[k][c]) for k in range(i + 1, n))])
            x[i].append(known * inverse)
    least, most = pivots[0], pivots[0]
    for pivot in pivots[1:]:
        least, most = minimum(least, pivot), maximum(most, pivot)
    return x, side * (least / most)
