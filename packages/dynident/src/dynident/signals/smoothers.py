"""Positions to velocities and accelerations by other ways than the Butterworth filter, with its signature.

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

The two sweeps of the Rauch-Tung-Striebel smoother, whose gains are given, are machine code::

    forward    x := F x, then x := x + K (q - x_0)                F = [[1, w, w^2/2], [0, 1, w], [0, 0, 1]]
    backward   x_k := x_k + G (x_{k+1} - F x_k)

The state is ``(q, q', q'')`` in natural time, one step is w.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import LogError
from dynident.graph.elementary import minimum
from dynident.graph.expression import Graph, Node, total
from dynident.graph.print_llvm import compile_routines
from dynident.graph.routine import Routine
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


def kalman_smoother(t: ArrayLike, q: ArrayLike, cutoff: float) -> Triple:
    """Return q, v, a of the Rauch-Tung-Striebel smoother of the model "jerk is white noise", measured with white noise.

    Only the ratio of the two noises matters; the position then has the amplitude ``1 / (1 + (f/fc)^6)`` with
    ``(2 pi fc)^6 = S_jerk / (sigma^2 h)``: the `cutoff` fc [Hz] (see `automatic_cutoff`) states the noises.
    `t` holds uniform times (N,) [s] or is the rate [Hz], `q` positions (N,) or (N, n) [rad or m].
    """
    _, values, step = checked_inputs(t, q)
    check_cutoff(cutoff, 1.0 / step, values.shape[0])
    w = 2.0 * np.pi * cutoff * step  # natural unit of time: the state is (q, v / omega_c, a / omega_c^2)
    window = min(values.shape[0], max(8, math.ceil(1.0 / (cutoff * step))))
    powers = (w * np.arange(window))[:, None] ** np.arange(3)
    start = np.linalg.lstsq(powers, values[:window], rcond=None)[0] * np.array([1.0, 1.0, 2.0])[:, None]
    states = _rts_sweeps(np.ascontiguousarray(values), w, start, *_gains(w, values.shape[0]))
    omega = w / step
    return shaped_like(q, states[0], states[1] * omega, states[2] * omega**2)


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


def _rts_sweeps(values: Array, w: float, start: Array, forward: Array, backward: Array) -> Array:
    """Return smoothed states (3, N, n) of measured positions (N, n) from a state (3, n) before the first.

    Kalman gains (m, 3) and smoother gains (m, 3, 3) are those of the first m samples; the last ones hold for the rest.
    """
    count, channels = values.shape
    states = np.empty((channels, count, 3))
    head = np.array([float(channels), float(count), float(len(forward) - 1), w])
    given = [np.ascontiguousarray(array) for array in (values.T, start.T, forward, backward)]
    _sweeps()(*(array.ctypes.data for array in (head, *given, states)))
    return states.transpose(2, 1, 0)


@lru_cache(maxsize=1)
def _sweeps() -> Any:
    graph = Graph()
    sweeps = Routine(graph, "sweeps", ("head", "values", "start", "forward", "backward", "states"))
    channels, count, last, w = sweeps.load_all("head", 0, 4)

    def ahead(x: list[Node]) -> list[Node]:
        return [x[0] + w * x[1] + 0.5 * w * w * x[2], x[1] + w * x[2], x[2]]

    with sweeps.repeat(channels) as c:
        x = sweeps.local("x", 3)
        sweeps.store_all(x, 0, sweeps.load_all("start", 3.0 * c, 3))
        with sweeps.repeat(count) as k:
            here, m = c * count + k, minimum(k, last)
            with sweeps.when(k > 0.0):
                sweeps.store_all(x, 0, ahead(sweeps.load_all(x, 0, 3)))
            known, gain = sweeps.load_all(x, 0, 3), sweeps.load_all("forward", 3.0 * m, 3)
            innovation = sweeps.load("values", here) - known[0]
            filtered = [known[i] + gain[i] * innovation for i in range(3)]
            sweeps.store_all(x, 0, filtered)
            sweeps.store_all("states", 3.0 * here, filtered)
        with sweeps.repeat(count - 1.0) as back:
            k = count - 2.0 - back
            here, m = c * count + k, minimum(k, last)
            filtered, G = sweeps.load_all("states", 3.0 * here, 3), sweeps.load_all("backward", 9.0 * m, 9)
            later = zip(sweeps.load_all("states", 3.0 * here + 3.0, 3), ahead(filtered), strict=True)
            change = [smoothed - predicted for smoothed, predicted in later]
            smoothed = [total([filtered[i], *(G[3 * i + j] * change[j] for j in range(3))]) for i in range(3)]
            sweeps.store_all("states", 3.0 * here, smoothed)
    return compile_routines([sweeps], "smoother")["sweeps"]


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
    "kalman_smoother": kalman_smoother,
    "fourier": fourier,
}
