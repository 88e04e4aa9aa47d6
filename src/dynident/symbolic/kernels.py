"""Compiled helpers of generated kernels: samples in lanes, sines and cosines as vector instructions.

One call of the C library's sine per number would cost more than all the rest of a generated kernel. Here the reduction to
[-pi/4, pi/4] (Cody and Waite, three parts of pi/2) and the polynomials (fdlibm's) run over the lanes without a branch. The
result is within 2 units in the last place for |x| <= LARGEST; beyond it the library is called.
"""

from __future__ import annotations

from math import cos, sin, sqrt

import numpy as np
from numba import njit

kernel = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
inlined = njit(cache=True, nogil=True, error_model="numpy", inline="always")

LANES = 32
LARGEST = 1e5

TWO_OVER_PI = 6.36619772367581382433e-01
PART1 = 1.57079632673412561417e00  # first 33 bits of pi/2
PART2 = 6.07710050630396597660e-11  # next 33 bits
PART3 = 2.02226624879595063154e-21  # the rest
ROUND = 6755399441055744.0  # 1.5 * 2^52: adding and subtracting it rounds to the nearest integer


@kernel
def gather(x, s, X, first):
    """Write LANES samples of x (N, n) from sample s on into X, one row per column from row `first` on."""
    last = x.shape[0] - 1
    for d in range(x.shape[1]):
        for k in range(LANES):
            X[(first + d) * LANES + k] = x[min(s + k, last), d]


@kernel
def sine_cosine(X, source, sine, cosine):
    """Write sine and cosine of row `source` into rows `sine` and `cosine`."""
    o, a, b = np.uint64(source * LANES), np.uint64(sine * LANES), np.uint64(cosine * LANES)
    biggest = 0.0
    for k in range(np.uint64(LANES)):
        biggest = max(biggest, abs(X[o + k]))
    if not biggest <= LARGEST:
        for k in range(np.uint64(LANES)):
            x = X[o + k]
            X[a + k] = sin(x)
            X[b + k] = cos(x)
        return
    for k in range(np.uint64(LANES)):
        x = X[o + k]
        turns = (x * TWO_OVER_PI + ROUND) - ROUND
        r = ((x - turns * PART1) - turns * PART2) - turns * PART3
        z = r * r
        p = 1.58969099521155010221e-10 * z - 2.50507602534068634195e-08
        p = (p * z + 2.75573137070700676789e-06) * z - 1.98412698298579493134e-04
        p = (p * z + 8.33333333332248946124e-03) * z - 1.66666666666666324348e-01
        s = r + r * z * p
        p = -1.13596475577881948265e-11 * z + 2.08757232129817482790e-09
        p = (p * z - 2.75573143513906633035e-07) * z + 2.48015872894767294178e-05
        p = (p * z - 1.38888888888741095749e-03) * z + 4.16666666666666019037e-02
        c = 1.0 - (0.5 * z - z * z * p)
        quarter = turns - 4.0 * ((turns * 0.25 + ROUND) - ROUND)  # -2, -1, 0, 1 or 2
        odd = quarter * quarter == 1.0
        half = 1.0 - abs(quarter)
        X[a + k] = quarter * c if odd else half * s
        X[b + k] = -quarter * s if odd else half * c


@inlined
def sinc(square):
    """Return sin(x)/x of x^2."""
    if square > 1e-12:
        angle = sqrt(square)
        return sin(angle) / angle
    return 1.0 - square / 6.0


@inlined
def cosc(square):
    """Return (1 - cos x)/x^2 of x^2."""
    if square > 1e-12:
        return (1.0 - cos(sqrt(square))) / square
    return 0.5 - square / 24.0
