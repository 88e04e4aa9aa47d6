"""Compiled linear systems: L U of one matrix with pivoting, and L D L^T of many mass matrices in the lanes of `kernels`."""

from __future__ import annotations

import numpy as np

from dynident.mechanics.kernels import LANES, ROW1, at, gather, kernel


@kernel
def factorise(D, swap, n):
    """Overwrite D (n, n) with its factors L U and write which row was swapped with each.

    Return the ratio of the smallest to the largest pivot with the sign of the determinant, 0 when singular.
    """
    smallest, largest, sign = np.inf, 0.0, 1.0
    for c in range(n):
        pivot = c
        for row in range(c + 1, n):
            if abs(D[row, c]) > abs(D[pivot, c]):
                pivot = row
        size = abs(D[pivot, c])
        smallest, largest = min(smallest, size), max(largest, size)
        if not size > 1e-14:
            return 0.0
        swap[c] = pivot
        if pivot != c:
            sign = -sign
            for e in range(n):
                D[c, e], D[pivot, e] = D[pivot, e], D[c, e]
        if D[c, c] < 0.0:
            sign = -sign
        inverse = 1.0 / D[c, c]
        for row in range(c + 1, n):
            f = D[row, c] * inverse
            D[row, c] = f
            if f != 0.0:
                for e in range(c + 1, n):
                    D[row, e] -= f * D[c, e]
    return sign * smallest / largest


@kernel
def substitute(D, swap, B, n, width):
    """Overwrite B (n, width) with D^-1 B, where D holds what `factorise` left."""
    for c in range(n):
        if swap[c] != c:
            for e in range(width):
                B[c, e], B[swap[c], e] = B[swap[c], e], B[c, e]
    for c in range(n):
        for row in range(c + 1, n):
            f = D[row, c]
            if f != 0.0:
                for e in range(width):
                    B[row, e] -= f * B[c, e]
    for c in range(n - 1, -1, -1):
        inverse = 1.0 / D[c, c]
        for e in range(width):
            value = B[c, e]
            for g in range(c + 1, n):
                value -= D[c, g] * B[g, e]
            B[c, e] = value * inverse


@kernel
def solve_lanes(n, L, X, size, definite, singular):
    """Overwrite the rows X (n) with M^-1 X, M being the lower triangle of the rows L (n, n), for LANES samples.

    L ends as the unit triangle below the diagonal, D times it above and 1/D on it; `size` is scratch. Where a pivot is not
    above `singular` times the diagonal entry it is left of, M is not positive definite: `definite` becomes 0, X is of no use.
    """
    for k in range(ROW1):
        definite[k] = 1.0
    for j in range(n):
        o, x = at(j * n + j, 1), at(j, 1)
        for k in range(ROW1):
            size[k] = L[o + k]
        for i in range(j):
            a, b, y = at(j * n + i, 1), at(i * n + j, 1), at(i, 1)
            for k in range(ROW1):
                L[o + k] -= L[a + k] * L[b + k]
                X[x + k] -= L[a + k] * X[y + k]
        for k in range(ROW1):
            definite[k] = definite[k] if L[o + k] > singular * size[k] else 0.0
            L[o + k] = 1.0 / L[o + k]
        for row in range(j + 1, n):
            below, above = at(row * n + j, 1), at(j * n + row, 1)
            for i in range(j):
                a, b = at(row * n + i, 1), at(i * n + j, 1)
                for k in range(ROW1):
                    L[below + k] -= L[a + k] * L[b + k]
            for k in range(ROW1):
                L[above + k] = L[below + k]
                L[below + k] *= L[o + k]
    for j in range(n):
        row = n - 1 - j
        o, x = at(row * n + row, 1), at(row, 1)
        for k in range(ROW1):
            X[x + k] *= L[o + k]
        for i in range(row + 1, n):
            a, y = at(i * n + row, 1), at(i, 1)
            for k in range(ROW1):
                X[x + k] -= L[a + k] * X[y + k]


@kernel
def solve_definite(M, b, singular, out, definite):
    """Write M^-1 b (N, n) by L D L^T, M (N, n, n), and where M was positive definite (N,); elsewhere `out` is of no use."""
    n, last = b.shape[1], b.shape[0] - 1
    L, X, size, fine = np.empty(n * n * LANES), np.empty(n * LANES), np.empty(LANES), np.empty(LANES)
    for s in range(0, b.shape[0], LANES):
        gather(b, s, X)
        for i in range(n):
            for j in range(i + 1):
                for k in range(LANES):
                    L[(i * n + j) * LANES + k] = M[min(s + k, last), i, j]
        solve_lanes(n, L, X, size, fine, singular)
        for k in range(min(LANES, b.shape[0] - s)):
            definite[s + k] = fine[k] > 0.0
            for d in range(n):
                out[s + k, d] = X[d * LANES + k]
