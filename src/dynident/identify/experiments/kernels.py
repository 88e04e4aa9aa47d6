"""Compiled loops of the plateau search."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True)
def longest_windows(v, tolerance, admitted, rest):
    """Return, for every sample, the start of the longest window that ends there and stays in its band; i + 1 if none.

    The largest and smallest value of the sliding window are kept in two monotonic queues, so every sample is touched a
    fixed number of times.

    Parameters
    ----------
    v : ndarray, (n,)
        Speed.
    tolerance, admitted : float
        Half width of the band: the larger of tolerance times the speed, and admitted.
    rest : float
        Speeds up to this are rest.

    Returns
    -------
    ndarray of int, (n,)
        First sample of each window.
    """
    n = v.size
    left = np.empty(n, dtype=np.int64)
    high, low = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    h0, h1, l0, l1, a = 0, 0, 0, 0, 0
    for i in range(n):
        while h1 > h0 and v[high[h1 - 1]] <= v[i]:
            h1 -= 1
        high[h1] = i
        h1 += 1
        while l1 > l0 and v[low[l1 - 1]] >= v[i]:
            l1 -= 1
        low[l1] = i
        l1 += 1
        while a <= i:
            top, bottom = v[high[h0]], v[low[l0]]
            band = 2.0 * max(tolerance * min(abs(top), abs(bottom)), admitted)
            if top - bottom <= band and (bottom > rest or top < -rest):
                break
            a += 1
            if h1 > h0 and high[h0] < a:
                h0 += 1
            if l1 > l0 and low[l0] < a:
                l0 += 1
        left[i] = a
    return left


@numba.njit(cache=True)
def extent(v, a, b, middle, half):
    """Return how far the range [a, b) can be widened while ``|v - middle| <= half``.

    Parameters
    ----------
    v : ndarray, (n,)
        Speed.
    a, b : int
        Range to start from.
    middle, half : float
        Band.

    Returns
    -------
    a, b : int
        The widened range.
    """
    while a > 0 and abs(v[a - 1] - middle) <= half:
        a -= 1
    while b < v.size and abs(v[b] - middle) <= half:
        b += 1
    return a, b
