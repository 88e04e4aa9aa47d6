"""Velocity from encoder counts, as a drive finds it at every cycle: only the past is used, along the first axis."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.drive.checks import number
from dynident.errors import DynidentError

Array = NDArray[np.float64]


def difference(position: ArrayLike, cycle: float, window: int = 1) -> Array:
    """Difference over a fixed window, ``(x_k - x_{k-n}) / (n cycle)``.

    A count more or less is an error of ``resolution / (n cycle)``; the estimate is ``n cycle / 2`` late.

    Parameters
    ----------
    position : array_like, (N,) or (N, k)
        Positions at every cycle.
    cycle : float
        Sampling time [s].
    window : int
        Number n of cycles.

    Returns
    -------
    ndarray, (N,) or (N, k)
        Velocities; the window grows at the start, and the first sample repeats the second.
    """
    x, h = _positions(position), number("cycle", cycle, above=0.0, unit="s")
    n = _whole("window", window)
    index = np.arange(1, len(x))
    reach = np.minimum(index, n)
    ahead = (x[1:] - x[index - reach]) / (h * reach).reshape((-1,) + (1,) * (x.ndim - 1))
    return np.concatenate([ahead[:1], ahead])


def low_pass(signal: ArrayLike, cycle: float, corner: float) -> Array:
    """First-order low-pass, exact for inputs held over a cycle: ``y_k = y_{k-1} + (1 - exp(-2 pi f cycle)) (x_k - y_{k-1})``.

    Parameters
    ----------
    signal : array_like, (N,) or (N, k)
        Samples at every cycle.
    cycle : float
        Sampling time [s].
    corner : float
        Corner frequency f [Hz]; zero is no filter.

    Returns
    -------
    ndarray, (N,) or (N, k)
        Filtered samples, starting settled on the first one.
    """
    x, h = _positions(signal, "signal"), number("cycle", cycle, above=0.0, unit="s")
    f = number("corner", corner, least=0.0, unit="Hz")
    if f == 0.0:
        return x.copy()
    from scipy.signal import lfilter  # noqa: PLC0415 - scipy is loaded on first use

    share = -math.expm1(-2.0 * math.pi * f * h)
    return np.asarray(x[:1] + lfilter([share], [1.0, share - 1.0], x - x[:1], axis=0))


def adaptive_difference(position: ArrayLike, cycle: float, resolution: float, longest: int = 50) -> Array:
    """Difference over the longest window in which a straight line passes within one count of every sample.

    Slow motion gets a long window (smooth), fast change a short one (no delay): first-order adaptive windowing of
    Janabi-Sharifi, Hayward and Chen, end-fit form.

    Parameters
    ----------
    position : array_like, (N,) or (N, k)
        Positions at every cycle, on the grid of the encoder.
    cycle : float
        Sampling time [s].
    resolution : float
        Size of a count, in the unit of the positions.
    longest : int
        Largest number of cycles in a window.

    Returns
    -------
    ndarray, (N,) or (N, k)
        Velocities; the first sample repeats the second.
    """
    x, h = _positions(position), number("cycle", cycle, above=0.0, unit="s")
    # A count of tolerance, and rounding: samples exactly one count off the line must pass.
    band = number("resolution", resolution, above=0.0) * (1.0 + 1e-9)
    estimate = difference(x, h)
    lower, upper = np.full(x.shape, -np.inf), np.full(x.shape, np.inf)
    growing = np.ones(x.shape, dtype=bool)
    for n in range(1, min(_whole("longest", longest), len(x) - 1) + 1):
        way = x[n:] - x[:-n]
        slope = way / (n * h)
        growing[:n] = False
        growing[n:] &= (slope >= lower[n:]) & (slope <= upper[n:])
        estimate[n:] = np.where(growing[n:], slope, estimate[n:])
        lower[n:] = np.maximum(lower[n:], (way - band) / (n * h))
        upper[n:] = np.minimum(upper[n:], (way + band) / (n * h))
    estimate[0] = estimate[1]
    return estimate


def tracking_observer(position: ArrayLike, cycle: float, bandwidth: float, damping: float = 1.0) -> Array:
    """Velocity state of a second-order observer that tracks the position, as in resolver converters.

    ``v = omega^2 s / (s^2 + 2 damping omega s + omega^2) x``, sampled by the trapezoidal rule. It follows a constant velocity
    without error; delay at low frequency is ``2 damping / omega``.

    Parameters
    ----------
    position : array_like, (N,) or (N, k)
        Positions at every cycle.
    cycle : float
        Sampling time [s].
    bandwidth : float
        omega / (2 pi) [Hz], below half the sampling frequency.
    damping : float
        Damping ratio of the observer.

    Returns
    -------
    ndarray, (N,) or (N, k)
        Velocities, starting at rest.
    """
    x, h = _positions(position), number("cycle", cycle, above=0.0, unit="s")
    omega = 2.0 * math.pi * number("bandwidth", bandwidth, above=0.0, unit="Hz")
    zeta = number("damping", damping, above=0.0)
    if omega * h >= math.pi:
        raise DynidentError(f"bandwidth is {bandwidth:g} Hz; give less than half the sampling frequency, {0.5 / h:g} Hz")
    from scipy.signal import lfilter  # noqa: PLC0415 - scipy is loaded on first use

    step = omega * h
    a = np.array([4.0 + 4.0 * zeta * step + step**2, 2.0 * step**2 - 8.0, 4.0 - 4.0 * zeta * step + step**2])
    return np.asarray(lfilter(2.0 * step**2 / h * np.array([1.0, 0.0, -1.0]) / a[0], a / a[0], x - x[:1], axis=0))


def _positions(values: ArrayLike, what: str = "position") -> Array:
    array = numbers(values, what)
    if array.ndim not in (1, 2) or len(array) < 2:
        raise DynidentError(f"{what} has the shape {array.shape}; give at least two samples along the first axis")
    if not np.isfinite(array).all():
        raise DynidentError(f"{what} is not finite at sample {int(np.argwhere(~np.isfinite(array))[0][0])}; remove it")
    return array


def _whole(what: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise DynidentError(f"{what} is {value!r}; give a whole number of cycles, at least 1")
    return int(value)
