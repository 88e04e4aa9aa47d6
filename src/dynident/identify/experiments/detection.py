"""Where a speed is constant: the search behind `find_plateaus`.

A plateau is a longest stretch whose speed stays within a narrow band AND ends at corners: doubling the band must not make
it much longer. The second rule tells a trapezoid from the rounded top of a sine, whose length grows like the square root
of the band.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from dynident.signals import Log
from dynident.signals.resample import fill_holes

Array = NDArray[np.float64]

#: Smoothing window of the speed, as a part of the shortest plateau.
WINDOW = 0.25
#: A plateau may grow by this part of its length when its band is doubled.
ROUND = 0.25
#: A stretch that looks round may be a plateau with more servo ripple: it is tried again with wider bands.
SCALES = (1.0, 2.0, 4.0)
#: Part of a plateau dropped at each end, where the servo settles.
SETTLE = 0.05


def smooth_speeds(log: Log, shortest: float) -> tuple[Array, Array]:
    """Return smoothed speeds and the standard deviation of their noise.

    Parameters
    ----------
    log : Log
        A piece without gaps, N samples of n joints.
    shortest : float
        Shortest plateau that must survive the smoothing [s].

    Returns
    -------
    v : ndarray, (N, n)
        Speeds [rad/s or m/s].
    sigma : ndarray, (n,)
        Standard deviation of their noise.
    """
    from scipy.signal import savgol_filter  # noqa: PLC0415 - slow to import

    log, _ = fill_holes(log)
    window = max(5, 2 * round(0.5 * WINDOW * shortest * log.rate) + 1)
    uniform = np.linspace(log.t[0], log.t[-1], len(log))
    q = np.column_stack([np.interp(uniform, log.t, log.position[:, k]) for k in range(len(log.joints))])
    v = savgol_filter(q, window, 2, deriv=1, delta=float(uniform[1] - uniform[0]), axis=0)
    # A smooth motion has nearly no third difference: what is left is noise (variance 20 sigma^2).
    sigma = np.percentile(np.abs(np.diff(q, 3, axis=0)), 68.3, axis=0) / np.sqrt(20.0)
    return np.asarray(v), np.asarray(sigma * np.sqrt(12.0 / window**3) * log.rate)


def constant_speeds(
    v: Array, rate: float, shortest: float, tolerance: float, admitted: float, rest: float
) -> tuple[list[tuple[int, int]], int]:
    """Find stretches of constant speed.

    Parameters
    ----------
    v : ndarray, (N,)
        Smoothed speed.
    rate : float
        Samples per second.
    shortest : float
        Shortest stretch [s].
    tolerance : float
        Half width of the band as a part of the speed.
    admitted : float
        Half width that the band always has [unit of v].
    rest : float
        Speeds up to this are rest.

    Returns
    -------
    found : list of (int, int)
        Sample ranges [start, stop), without the ends where the servo settles, in time order.
    rounded : int
        How many stretches were passed over because their speed rounds off.
    """
    window = max(5, round(WINDOW * shortest * rate))
    stride = max(1, window // 4)
    coarse = v[::stride]
    kept = np.zeros(coarse.size, dtype=bool)
    found: list[tuple[int, int]] = []
    rounded = 0
    for scale in SCALES:
        flat, rounded = _search(
            coarse, kept, scale * tolerance, scale * admitted, rest, shortest * rate / stride, window / stride
        )
        for a, b in flat:
            kept[a:b] = True
            trim = round(SETTLE * (b - a) * stride) + window // 2
            first, last = a * stride + trim, min(b * stride, v.size) - trim
            if last - first >= 8:
                found.append((first, last))
    return sorted(found), rounded


def _search(
    v: Array, kept: NDArray[np.bool_], tolerance: float, admitted: float, rest: float, shortest: float, window: float
) -> tuple[list[tuple[int, int]], int]:
    """Return flat stretches outside those that are kept already, longest first, and the number of round ones."""
    left = _longest_windows(v, tolerance, admitted, rest)
    length = np.arange(v.size) - left + 1
    ends = np.flatnonzero(np.append(np.diff(left) > 0, True) & (length >= shortest))
    taken = kept.copy()
    flat, rounded = [], 0
    for i in ends[np.argsort(-length[ends], kind="stable")]:
        a, b = int(left[i]), int(i) + 1
        free = np.flatnonzero(~taken[a:b])
        if not free.size:
            continue
        a, b = a + int(free[0]), a + int(free[-1]) + 1
        if taken[a:b].any() or b - a < shortest:
            continue
        taken[a:b] = True
        if _is_round(v, a, b, tolerance, admitted, 0.5 * window):
            rounded += 1
        else:
            flat.append((a, b))
    return flat, rounded


def _longest_windows(v: Array, tolerance: float, admitted: float, rest: float) -> NDArray[np.int64]:
    """Return, for every sample, the start of the longest window that ends there and stays in its band; i + 1 if none."""
    left = np.empty(v.size, dtype=np.int64)
    high: deque[int] = deque()
    low: deque[int] = deque()
    a = 0
    values = v.tolist()
    for i, x in enumerate(values):
        while high and values[high[-1]] <= x:
            high.pop()
        high.append(i)
        while low and values[low[-1]] >= x:
            low.pop()
        low.append(i)
        while a <= i:
            top, bottom = values[high[0]], values[low[0]]
            band = max(2.0 * tolerance * min(abs(top), abs(bottom)), 2.0 * admitted)
            if top - bottom <= band and (bottom > rest or top < -rest):
                break
            a += 1
            if high and high[0] < a:
                high.popleft()
            if low and low[0] < a:
                low.popleft()
        left[i] = a
    return left


def _is_round(v: Array, a: int, b: int, tolerance: float, admitted: float, slack: float) -> bool:
    middle = 0.5 * (v[a:b].max() + v[a:b].min())
    half = max(tolerance * abs(middle), admitted)
    outside = np.abs(v - middle) > 3.0 * half
    before, after = np.flatnonzero(outside[:a]), np.flatnonzero(outside[b:])
    wide_a = int(before[-1]) + 1 if before.size else 0
    wide_b = b + int(after[0]) if after.size else v.size
    return (wide_b - wide_a) - (b - a) > ROUND * (b - a) + slack
