"""Positions to velocities and accelerations of a periodic motion, by its Fourier series: no phase shift, sharp cut-off."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import ArrayLike

from dynident.errors import LogError
from dynident.signals.filters import Triple, butterworth, check_cutoff, checked_inputs, shaped_like

#: Largest Fourier basis, in numbers.
LARGEST_BASIS = 10**8


def fourier(t: ArrayLike, q: ArrayLike, cutoff: float, *, period: float) -> Triple:
    """Differentiate a periodic motion exactly, by its Fourier series over the whole record.

    ``q(t) = a_0 + sum_k a_k cos(2 pi k t / T) + b_k sin(2 pi k t / T)``, all k/T <= cutoff, by least squares; over whole
    periods this is the average over the periods, without noise between the harmonics. Times may be irregular.

    Parameters
    ----------
    t, q, cutoff
        As for `butterworth`; harmonics above `cutoff` are left out.
    period : float
        Period T of the motion in s; the record must hold at least one.

    Returns
    -------
    q, v, a : ndarray
        The series and its derivatives at the times given, shaped like `q`.
    """
    clock, values, step = checked_inputs(t, q, uniform=False)
    check_cutoff(cutoff, 1.0 / step, values.shape[0])
    span = step * clock.size
    if not (isinstance(period, int | float | np.number) and math.isfinite(period) and period > 0.0):
        raise LogError(f"period is {period!r}; give the period of the motion in s")
    if span < period * (1.0 - 0.5 / clock.size):
        raise LogError(f"period is {period:g} s but the record lasts {span:g} s; at least one period is needed")
    harmonics = math.floor(cutoff * period * (1.0 + 1e-9))
    if harmonics < 1:
        raise LogError(f"cut-off frequency {cutoff:g} Hz is below the first harmonic {1 / period:g} Hz; raise it")
    if 2 * harmonics * clock.size > LARGEST_BASIS:
        raise LogError(
            f"{harmonics} harmonics at {clock.size} samples are too many; lower the cut-off, {cutoff:g} Hz, or cut the log"
        )
    omega = 2.0 * np.pi / period
    order = np.arange(1, harmonics + 1)
    phase = np.outer((clock - clock[0]) * omega, order)
    cosine, sine = np.cos(phase), np.sin(phase)
    basis = np.hstack([np.ones((clock.size, 1)), cosine, sine])
    # Close to orthogonal over whole periods, hence the normal equations are safe.
    coefficients = scipy.linalg.solve(basis.T @ basis, basis.T @ values, assume_a="pos")
    a, b = coefficients[1 : harmonics + 1], coefficients[harmonics + 1 :]
    w = (omega * order)[:, None]
    return shaped_like(q, basis @ coefficients, cosine @ (w * b) - sine @ (w * a), -(cosine @ (w**2 * a)) - sine @ (w**2 * b))


METHODS: dict[str, Callable[..., Triple]] = {"butterworth": butterworth, "fourier": fourier}
