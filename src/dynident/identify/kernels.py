"""Compiled streaming QR: rows are folded into a triangle and forgotten."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numba import njit

# Sums of squares may be added in any order: that is what lets the compiler vectorise them.
reorder = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})

STRETCH = 128  # samples folded at a time: the columns of one joint then stay in the first-level cache


@reorder
def fold(R, W, columns, y):
    """Add the rows [W[columns]^T, y] to the triangle R (k + 1, k + 4): R^T R grows by [W[columns]^T, y]^T [W[columns]^T, y].

    Householder reflections of [R; rows]. The one for column j changes row j of R only, so that a short stretch of rows
    costs no more per row than a long one. Four columns are reflected at a time, hence three columns of zeros at the end.
    """
    last = columns.size
    B = np.zeros((last + 4, STRETCH))
    for s in range(0, y.size, STRETCH):
        valid = min(STRETCH, y.size - s)
        B[:, valid:] = 0.0
        for j in range(last):
            B[j, :valid] = W[columns[j], s : s + valid]
        B[last, :valid] = y[s : s + valid]
        for j in range(last + 1):
            x = B[j]
            square = 0.0
            for k in range(STRETCH):
                square += x[k] * x[k]
            if square == 0.0:
                continue
            old = R[j, j]
            new = -sqrt(old * old + square) if old > 0.0 else sqrt(old * old + square)
            R[j, j] = new
            g, f = 1.0 - old / new, 1.0 / (old - new)
            for k in range(STRETCH):
                x[k] *= f
            for c in range(j + 1, last + 1, 4):
                y0, y1, y2, y3 = B[c], B[c + 1], B[c + 2], B[c + 3]
                d0, d1, d2, d3 = R[j, c], R[j, c + 1], R[j, c + 2], R[j, c + 3]
                for k in range(STRETCH):
                    d0 += x[k] * y0[k]
                    d1 += x[k] * y1[k]
                    d2 += x[k] * y2[k]
                    d3 += x[k] * y3[k]
                d0, d1, d2, d3 = g * d0, g * d1, g * d2, g * d3
                R[j, c] -= d0
                R[j, c + 1] -= d1
                R[j, c + 2] -= d2
                R[j, c + 3] -= d3
                for k in range(STRETCH):
                    y0[k] -= d0 * x[k]
                    y1[k] -= d1 * x[k]
                    y2[k] -= d2 * x[k]
                    y3[k] -= d3 * x[k]
