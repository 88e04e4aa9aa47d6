"""First-order low-pass and integrator as a controller runs them, once per cycle.

Low-pass    y += share (u - y),     share = 1 - exp(-2 pi f T): the exact step response, sampled
Integrator  z += T e                the sum with the present error in it (backward rectangle)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.errors import DynidentError

Array = NDArray[np.float64]


def low_pass_share(frequency: ArrayLike, cycle: float) -> Array:
    """Return how much of the way to its input a sampled first-order low-pass goes in one cycle.

    Parameters
    ----------
    frequency : array_like, (...)
        Corner frequency [Hz]; 0 is no filter.
    cycle : float
        Cycle time [s].

    Returns
    -------
    ndarray, (...)
        1 - exp(-2 pi f T), and 1 where there is no filter.
    """
    corner = numbers(frequency, "frequency")
    if not (np.isfinite(cycle) and cycle > 0.0):
        raise DynidentError(f"cycle is {cycle}; give the cycle time in seconds, above zero")
    if not np.all(corner >= 0.0):
        raise DynidentError(f"frequency is {float(np.min(corner))} Hz; give zero (no filter) or a corner above it")
    return np.where(corner > 0.0, -np.expm1(-2.0 * np.pi * corner * cycle), 1.0)
