"""From positions to velocities and accelerations: five methods with one signature.

Every method is a zero-phase low-pass with amplitude 1/2 at the cut-off, followed by a differentiation that is exact far
beyond it; so the cut-off means the same thing whatever the method::

    q_filtered, v, a = method(t, q, cutoff)

`t` is the vector of times (s) or the sampling rate (Hz), `q` has shape (N,) or (N, n). Amplitude at frequency f:

==================  ==========================================
butterworth         1 / (1 + (f/fc)^8)   (order 4, forward and backward)
savitzky_golay      local polynomials, window chosen so that it is 1/2 at fc
smoothing_spline    1 / (1 + (f/fc)^6)   (quintic, penalty on the third derivative)
kalman_smoother     1 / (1 + (f/fc)^6)   (white-jerk model, Rauch-Tung-Striebel)
fourier             1 up to fc, 0 above  (periodic trials)
==================  ==========================================
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import ArrayLike, NDArray

from dynident.errors import LogError
from dynident.signals.kernels import rts_sweeps
from dynident.signals.lowpass import both_ways, forward, low_pass_sections

Array = NDArray[np.float64]
Triple = tuple[Array, Array, Array]

#: Central differences of order 8: exact to 0.1 % up to 0.2 of the sampling rate, where the 3-point one loses 25 %.
_FIRST = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0.0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
SECOND = np.array([-1 / 560, 8 / 315, -1 / 5, 8 / 5, -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560])
#: A clock that strays from uniform by more than this part of a step is not uniform.
UNIFORM = 0.02
#: A record must hold at least this part of a period of the cut-off.
SHORTEST = 0.1
#: Largest Fourier basis, in numbers.
LARGEST_BASIS = 10**8


def _inputs(t: ArrayLike, q: ArrayLike, uniform: bool = True) -> tuple[Array, Array, float]:
    """Return times, positions (N, n) and step, or say what is wrong with them."""
    values = np.asarray(q, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or values.shape[0] < 2 * _FIRST.size:
        raise LogError(f"positions have shape {values.shape}; at least {2 * _FIRST.size} samples (samples, joints) are needed")
    clock = np.asarray(t, dtype=np.float64)
    if clock.ndim == 0:
        if not 0 < float(clock) < math.inf:
            raise LogError(f"sampling rate is {float(clock)}; it must be a positive number of Hz")
        clock = np.arange(values.shape[0]) / float(clock)
    if clock.shape != (values.shape[0],):
        raise LogError(f"times have shape {clock.shape} but positions have {values.shape[0]} samples")
    if not np.all(np.isfinite(values)):
        bad = np.argwhere(~np.isfinite(values))[0]
        raise LogError(f"position channel {bad[1]} is not finite at sample {bad[0]}; interpolate or cut it out first")
    step = float(clock[-1] - clock[0]) / (clock.size - 1)
    if not step > 0.0:
        raise LogError("times do not increase; sort them first")
    stray = float(np.max(np.abs(clock - clock[0] - step * np.arange(clock.size)))) / step
    if uniform and stray > UNIFORM:
        raise LogError(f"times stray from a uniform clock by {stray:.3g} steps; resample first (prepare does it)")
    return clock, values, step


def check_cutoff(cutoff: float, rate: float, samples: int) -> float:
    """Return `cutoff` if it lies below the Nyquist frequency and not far below one period in the record."""
    if not (isinstance(cutoff, int | float | np.number) and math.isfinite(cutoff) and cutoff > 0.0):
        raise LogError(f"cut-off frequency is {cutoff!r}; give a positive number of Hz")
    if cutoff >= 0.5 * rate:
        raise LogError(f"cut-off frequency {cutoff:g} Hz is not below the Nyquist frequency {rate / 2:g} Hz; lower it")
    if cutoff * samples < SHORTEST * rate:  # filters reach over some periods of the cut-off: this bounds their memory
        raise LogError(
            f"a period of the cut-off frequency {cutoff:g} Hz is {rate / (cutoff * samples):.3g} times as long as the record "
            f"({samples} samples at {rate:g} Hz); check the unit of the clock, or raise the cut-off"
        )
    return float(cutoff)


def _like(q: ArrayLike, *arrays: Array) -> Triple:
    """Give the results the shape of the input."""
    flat = np.asarray(q).ndim == 1
    a, b, c = (np.ascontiguousarray(x[:, 0]) if flat else np.ascontiguousarray(x) for x in arrays)
    return a, b, c


def central_differences(q: ArrayLike, step: float) -> tuple[Array, Array]:
    """First and second derivative by central differences of order 8, shape (N - 8, ...): 4 samples go at each end."""
    values = np.asarray(q, dtype=np.float64)
    n = values.shape[0] - _FIRST.size + 1
    v, a = np.zeros((n, *values.shape[1:])), np.zeros((n, *values.shape[1:]))
    for k in range(_FIRST.size):
        v += _FIRST[k] * values[k : k + n]
        a += SECOND[k] * values[k : k + n]
    return v / step, a / step**2


def _extend(values: Array, pad: int, window: int) -> Array:
    """Prolong both ends by the cubic that fits the last `window` samples, so that v and a do not jump there."""
    n = values.shape[0]
    window = min(max(window, 8), n)
    x = np.arange(window) / window
    ahead = 1.0 + np.arange(pad) / window
    powers = np.arange(4)
    fit = np.linalg.pinv(x[:, None] ** powers)
    after = (ahead[:, None] ** powers) @ (fit @ values[n - window :])
    before = ((ahead[:, None] ** powers) @ (fit @ values[:window][::-1]))[::-1]
    return np.concatenate([before, values, after])


def butterworth(t: ArrayLike, q: ArrayLike, cutoff: float, *, order: int = 4, causal: bool = False) -> Triple:
    """Zero-phase Butterworth low-pass, then central differences of order 8.

    Parameters
    ----------
    t : array, shape (N,), or float
        Uniform times in s, or the sampling rate in Hz.
    q : array, shape (N,) or (N, n)
        Positions in rad or m; every coordinate is treated.
    cutoff : float
        Frequency in Hz where the amplitude (forward and backward together) is 1/2.
    order : int
        Order of the filter in one direction.
    causal : bool
        True to filter forward only, as on line: what comes out is late.

    Returns
    -------
    q, v, a : ndarray
        Filtered positions, velocities and accelerations, shaped like `q`.
    """
    _, values, step = _inputs(t, q)
    check_cutoff(cutoff, 1.0 / step, values.shape[0])
    # Forward and backward the amplitude is 1/2 at the cut-off because each pass has 1/sqrt(2) there.
    sections = low_pass_sections(order, cutoff * step)
    margin = _FIRST.size // 2
    pad = margin + math.ceil(3.0 / (cutoff * step))  # the impulse response has died out after 3 periods of the cut-off
    extended = _extend(values, pad, math.ceil(1.0 / (cutoff * step)))
    filtered = forward(sections, extended) if causal else both_ways(sections, extended)
    v, a = central_differences(filtered, step)
    keep = slice(pad - margin, pad - margin + values.shape[0])
    return _like(q, filtered[pad : pad + values.shape[0]], v[keep], a[keep])


def savitzky_golay(t: ArrayLike, q: ArrayLike, cutoff: float, *, order: int = 5) -> Triple:
    """Fit a polynomial of the given order to a sliding window and differentiate it.

    The window is the one whose amplitude is 1/2 at the cut-off.

    Parameters
    ----------
    t : array, shape (N,), or float
        Uniform times in s, or the sampling rate in Hz.
    q : array, shape (N,) or (N, n)
        Positions in rad or m; every coordinate is treated.
    cutoff : float
        Frequency in Hz where the amplitude is 1/2.
    order : int
        Order of the polynomial.

    Returns
    -------
    q, v, a : ndarray, shape of q
        Smoothed positions, velocities and accelerations at the same times.
    """
    _, values, step = _inputs(t, q)
    check_cutoff(cutoff, 1.0 / step, values.shape[0])
    window = _window(cutoff * step, order)
    if window > values.shape[0]:
        raise LogError(
            f"cut-off frequency {cutoff:g} Hz needs a window of {window} samples but there are {values.shape[0]}; raise it"
        )
    results = [scipy.signal.savgol_filter(values, window, order, deriv=d, delta=step, axis=0, mode="interp") for d in range(3)]
    return _like(q, *results)


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
    """Quintic smoothing spline, least squares with a penalty on the third derivative; also for irregular times.

    It minimises ``sum (q - s)^2 + lambda int (d^3 s / dt^3)^2 dt``, and ``lambda = f / (2 pi fc)^6`` puts the amplitude
    1/2 at the cut-off (the mean rate f turns the sum into an integral). Knots lie 16 per period of the cut-off, close
    enough not to limit the spline; on equal knots the integral is the third difference of the coefficients
    [Eilers1996].

    Parameters
    ----------
    t : array, shape (N,), or float
        Times in s, which need not be uniform, or the sampling rate in Hz.
    q : array, shape (N,) or (N, n)
        Positions in rad or m; every coordinate is treated.
    cutoff : float
        Frequency in Hz where the amplitude is 1/2.

    Returns
    -------
    q, v, a : ndarray, shape of q
        Smoothed positions, velocities and accelerations at the same times.
    """
    clock, values, step = _inputs(t, q, uniform=False)
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
    return _like(q, spline(x), spline(x, nu=1) * cutoff, spline(x, nu=2) * cutoff**2)


def kalman_smoother(t: ArrayLike, q: ArrayLike, cutoff: float) -> Triple:
    """Rauch-Tung-Striebel smoother of the model "jerk is white noise", measured with white noise.

    Only the ratio of the two noises matters; the position then has the amplitude ``1 / (1 + (f/fc)^6)`` with
    ``(2 pi fc)^6 = S_jerk / (sigma^2 h)``: giving the frequency where motion and noise are equally strong, which
    `automatic_cutoff` reads from the data, is giving the noises.

    Parameters
    ----------
    t : array, shape (N,), or float
        Uniform times in s, or the sampling rate in Hz.
    q : array, shape (N,) or (N, n)
        Positions in rad or m; every coordinate is treated.
    cutoff : float
        Frequency in Hz where the amplitude is 1/2.

    Returns
    -------
    q, v, a : ndarray, shape of q
        Smoothed positions, velocities and accelerations at the same times.
    """
    _, values, step = _inputs(t, q)
    check_cutoff(cutoff, 1.0 / step, values.shape[0])
    w = 2.0 * np.pi * cutoff * step  # natural unit of time: the state is (q, v / omega_c, a / omega_c^2)
    window = min(values.shape[0], max(8, math.ceil(1.0 / (cutoff * step))))
    powers = (w * np.arange(window))[:, None] ** np.arange(3)
    start = np.linalg.lstsq(powers, values[:window], rcond=None)[0] * np.array([1.0, 1.0, 2.0])[:, None]
    states = rts_sweeps(np.ascontiguousarray(values), w, start, *_gains(w, values.shape[0]))
    omega = w / step
    return _like(q, states[0], states[1] * omega, states[2] * omega**2)


def _gains(w: float, samples: int) -> tuple[Array, Array]:
    """Kalman and smoother gains of the white-jerk model in natural time, until they no longer change."""
    F = np.array([[1.0, w, w * w / 2.0], [0.0, 1.0, w], [0.0, 0.0, 1.0]])
    # Jerk of density w against a measurement noise of variance 1, that is density w too: equal at omega = 1.
    Q = w * np.array([[w**5 / 20, w**4 / 8, w**3 / 6], [w**4 / 8, w**3 / 3, w**2 / 2], [w**3 / 6, w**2 / 2, w]])
    P = 1e4 * np.eye(3)
    forward, backward = [], []
    for _ in range(samples):
        gain = P[:, 0] / (P[0, 0] + 1.0)
        filtered = P - np.outer(gain, P[0])
        ahead = F @ filtered @ F.T + Q
        forward.append(gain)
        backward.append(np.linalg.solve(ahead, F @ filtered).T)
        settled = np.allclose(ahead, P, rtol=1e-12, atol=0.0)
        P = 0.5 * (ahead + ahead.T)
        if settled:
            break
    return np.array(forward), np.array(backward)


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
    clock, values, step = _inputs(t, q, uniform=False)
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
    return _like(q, basis @ coefficients, cosine @ (w * b) - sine @ (w * a), -(cosine @ (w**2 * a)) - sine @ (w**2 * b))


METHODS: dict[str, Callable[..., Triple]] = {
    "butterworth": butterworth,
    "savitzky_golay": savitzky_golay,
    "smoothing_spline": smoothing_spline,
    "kalman_smoother": kalman_smoother,
    "fourier": fourier,
}
