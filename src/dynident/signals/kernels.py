"""Compiled loops of the signals room."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]


@njit(cache=True)
def rts_sweeps(values: Array, w: float, start: Array, forward: Array, backward: Array) -> Array:
    """Run the two sweeps of a Rauch-Tung-Striebel smoother with given gains.

    The state is ``(q, q', q'')`` in natural time, one step is w: ``q+ = q + w q' + w^2/2 q''``, ``q'+ = q' + w q''``.

    Parameters
    ----------
    values : ndarray, shape (N, n)
        Measured positions.
    w : float
        Step in natural time.
    start : ndarray, shape (3, n)
        State before the first measurement.
    forward : ndarray, shape (m, 3)
        Kalman gains of the first m samples; the last one holds for the rest.
    backward : ndarray, shape (m, 3, 3)
        Smoother gains of the first m samples; the last one holds for the rest.

    Returns
    -------
    ndarray, shape (3, N, n)
        Smoothed states.
    """
    count, channels = values.shape
    last = forward.shape[0] - 1
    states = np.empty((3, count, channels))
    for c in range(channels):
        x0, x1, x2 = start[0, c], start[1, c], start[2, c]
        for k in range(count):
            if k > 0:
                x0 += w * x1 + 0.5 * w * w * x2
                x1 += w * x2
            m = min(k, last)
            innovation = values[k, c] - x0
            x0 += forward[m, 0] * innovation
            x1 += forward[m, 1] * innovation
            x2 += forward[m, 2] * innovation
            states[0, k, c], states[1, k, c], states[2, k, c] = x0, x1, x2
        for k in range(count - 2, -1, -1):
            m = min(k, last)
            p0, p1, p2 = states[0, k, c], states[1, k, c], states[2, k, c]
            x0 -= p0 + w * p1 + 0.5 * w * w * p2
            x1 -= p1 + w * p2
            x2 -= p2
            p0 += backward[m, 0, 0] * x0 + backward[m, 0, 1] * x1 + backward[m, 0, 2] * x2
            p1 += backward[m, 1, 0] * x0 + backward[m, 1, 1] * x1 + backward[m, 1, 2] * x2
            p2 += backward[m, 2, 0] * x0 + backward[m, 2, 1] * x1 + backward[m, 2, 2] * x2
            x0, x1, x2 = p0, p1, p2
            states[0, k, c], states[1, k, c], states[2, k, c] = x0, x1, x2
    return states
