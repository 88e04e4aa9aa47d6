"""Positions to velocities and accelerations by other ways than the Butterworth filter, with its signature.

Every method is a zero-phase low-pass with amplitude 1/2 at the cut-off, followed by a differentiation that is exact far
beyond it; so the cut-off means the same thing whatever the method::

    q_filtered, v, a = method(t, q, cutoff)

`t` is the vector of times (s) or the sampling rate (Hz), `q` has shape (N,) or (N, n). Amplitude at frequency f:

==================  ==========================================
butterworth         1 / (1 + (f/fc)^8)   (order 4, forward and backward)
savitzky_golay      local polynomials, window chosen so that it is 1/2 at fc
smoothing_spline    1 / (1 + (f/fc)^6)   (quintic, penalty on the third derivative)
fourier             1 up to fc, 0 above  (periodic trials)
==================  ==========================================
"""

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
HIGHEST = 20  # order of a polynomial in a window: higher ones are round-off


def savitzky_golay(t: ArrayLike, q: ArrayLike, cutoff: float, *, order: int = 5) -> Triple:
    """Return q, v, a by a polynomial of the given `order` in a sliding window, whose amplitude is 1/2 at the `cutoff` [Hz].

    `t` holds uniform times (N,) [s] or is the rate [Hz], `q` positions (N,) or (N, n) [rad or m].
    """
    _, values, step = checked_inputs(t, q)
    check_cutoff(cutoff, 1.0 / step, values.shape[0])
    if not 1 <= order <= HIGHEST:
        raise LogError(f"order is {order}; give a whole number from 1 to {HIGHEST}")
    window = _window(cutoff * step, order)
    if window > values.shape[0]:
        raise LogError(
            f"cut-off frequency {cutoff:g} Hz needs a window of {window} samples but there are {values.shape[0]}; raise it"
        )
    results = [scipy.signal.savgol_filter(values, window, order, deriv=d, delta=step, axis=0, mode="interp") for d in range(3)]
    return shaped_like(q, *results)


def _window(cutoff: float, order: int) -> int:
    """Odd window length with amplitude 1/2 at `cutoff` (cycles per sample), by bisection."""

    def amplitude(half: int) -> float:
        h = scipy.signal.savgol_coeffs(2 * half + 1, order)
        return float(np.cos(2 * np.pi * cutoff * np.arange(-half, half + 1)) @ h)

    low = order // 2 + 1
    if amplitude(low) < 0.5:
        return 2 * low + 1
    high = low + 1
    while amplitude(high) > 0.5:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if amplitude(middle) > 0.5 else (low, middle)
    return 2 * low + 1


def smoothing_spline(t: ArrayLike, q: ArrayLike, cutoff: float) -> Triple:
    """Return q, v, a of a quintic smoothing spline; also for irregular times.

    It minimises ``sum (q - s)^2 + lambda int (d^3 s / dt^3)^2 dt``, and ``lambda = f / (2 pi fc)^6`` puts the amplitude
    1/2 at the `cutoff` fc [Hz] (the mean rate f turns the sum into an integral). Knots lie 16 per period of the cut-off, close
    enough not to limit the spline; on equal knots the integral is the third difference of the coefficients [Eilers1996].
    `t` holds times (N,) [s] or is the rate [Hz], `q` positions (N,) or (N, n) [rad or m].
    """
    clock, values, step = checked_inputs(t, q, uniform=False)
    check_cutoff(cutoff, 1.0 / step, values.shape[0])
    x = (clock - clock[0]) * cutoff  # in periods of the cut-off, which keeps the equations well scaled
    pieces = max(1, math.ceil(16.0 * float(x[-1])))
    spacing = float(x[-1]) / pieces
    knots = spacing * np.arange(-5, pieces + 6)
    design = scipy.interpolate.BSpline.design_matrix(np.clip(x, 0.0, np.nextafter(x[-1], 0.0)), knots, 5)
    third = scipy.sparse.diags_array([-1.0, 3.0, -3.0, 1.0], offsets=[0, 1, 2, 3], shape=(pieces + 2, pieces + 5))
    penalty = 1.0 / (step * cutoff * (2.0 * np.pi) ** 6 * spacing**5)
    gram = design.T @ design + penalty * (third.T @ third)
    banded = np.zeros((6, pieces + 5))
    for k in range(6):
        banded[5 - k, k:] = gram.diagonal(k)
    spline = scipy.interpolate.BSpline(knots, scipy.linalg.solveh_banded(banded, design.T @ values), 5)
    return shaped_like(q, spline(x), spline(x, nu=1) * cutoff, spline(x, nu=2) * cutoff**2)


def fourier(t: ArrayLike, q: ArrayLike, cutoff: float, *, period: float) -> Triple:
    """Differentiate a periodic motion exactly, by its Fourier series over the whole record.

    ``q(t) = a_0 + sum_k a_k cos(2 pi k t / T) + b_k sin(2 pi k t / T)``, all k/T <= cutoff, by least squares; over whole
    periods this is the average over the periods, and noise between the harmonics is gone. Irregular times are fine.

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


METHODS: dict[str, Callable[..., Triple]] = {
    "butterworth": butterworth,
    "savitzky_golay": savitzky_golay,
    "smoothing_spline": smoothing_spline,
    "fourier": fourier,
}
