"""Detection of intervals with constant speed: the search behind `find_plateaus`.

A plateau is a longest interval whose speed stays within a narrow band AND ends at corners: doubling the band must not make
it much longer. The second rule distinguishes a trapezoid from the rounded top of a sine, whose length grows like the square
root of the band.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.signals import Log
from dynident.signals.quality import fill_holes

#: Smoothing window of the speed, as a share of the shortest plateau.
WINDOW = 0.25
#: Largest relative growth of a plateau when its band is doubled.
ROUND = 0.25
#: A rounded interval may be a plateau with more servo ripple: it is tried again with wider bands.
SCALES = (1.0, 2.0, 4.0)
#: Share of a plateau dropped at each end, where the servo settles.
SETTLE = 0.05


def smooth_speeds(log: Log, shortest: float) -> tuple[Array, Array]:
    """Return smoothed speeds and the standard deviation of their noise."""
    from scipy.signal import savgol_filter  # noqa: PLC0415 - slow to import

    log, _ = fill_holes(log)
    window = max(5, 2 * round(0.5 * WINDOW * shortest * log.rate) + 1)
    uniform = np.linspace(log.t[0], log.t[-1], len(log))
    q = np.column_stack([np.interp(uniform, log.t, log.position[:, k]) for k in range(len(log.joints))])
    v = savgol_filter(q, window, 2, deriv=1, delta=float(uniform[1] - uniform[0]), axis=0)
    # A smooth motion has nearly no third difference: the remainder is noise (variance 20 sigma^2).
    sigma = np.percentile(np.abs(np.diff(q, 3, axis=0)), 68.3, axis=0) / np.sqrt(20.0)
    return np.asarray(v), np.asarray(sigma * np.sqrt(12.0 / window**3) * log.rate)


def constant_speeds(
    v: Array, rate: float, shortest: float, tolerance: float, admitted: float, rest: float
) -> tuple[list[tuple[int, int]], int]:
    """Find intervals of constant speed."""
    window = max(5, round(WINDOW * shortest * rate))
    stride = max(1, window // 4)
    coarse = np.ascontiguousarray(v[::stride])
    kept = np.zeros(coarse.size, dtype=bool)
    found: list[tuple[int, int]] = []
    rounded = 0
    for scale in SCALES:
        flat, rounded = _search(
            coarse, kept, scale * tolerance, scale * admitted, rest, shortest * rate / stride, window / stride
        )
        for a, b in flat:
            kept[a:b] = True
            start, stop = _without_ramps(v, a * stride, min(b * stride, v.size))
            trim = round(SETTLE * (stop - start)) + window // 2
            first, last = start + trim, stop - trim
            if last - first >= max(8, round(0.5 * shortest * rate)):
                found.append((first, last))
    return sorted(found), rounded


def _search(
    v: Array, kept: NDArray[np.bool_], tolerance: float, admitted: float, rest: float, shortest: float, window: float
) -> tuple[list[tuple[int, int]], int]:
    """Return flat intervals outside the kept ones, longest first, and the number of rounded ones."""
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
    """Return, for every sample i, the start of the longest window that ends there within its band; i + 1 if none.

    Every part of such a window is also within its band, so its length is found bit by bit: try 2^k more samples, k decreasing.
    """
    tops, bottoms = [v], [v]  # extrema of 2^k samples from each one on
    while 2 ** len(tops) <= v.size:
        half = 2 ** (len(tops) - 1)
        tops.append(np.maximum(tops[-1][:-half], tops[-1][half:]))
        bottoms.append(np.minimum(bottoms[-1][:-half], bottoms[-1][half:]))
    left = np.arange(1, v.size + 1)
    top, bottom = np.full(v.size, -np.inf), np.full(v.size, np.inf)
    for k in reversed(range(len(tops))):
        longer = np.flatnonzero(left >= 2**k)
        start = left[longer] - 2**k
        high, low = np.maximum(top[longer], tops[k][start]), np.minimum(bottom[longer], bottoms[k][start])
        band = 2.0 * np.maximum(tolerance * np.minimum(np.abs(high), np.abs(low)), admitted)
        good = (high - low <= band) & ((low > rest) | (high < -rest))
        kept = longer[good]
        left[kept], top[kept], bottom[kept] = start[good], high[good], low[good]
    return left


def _is_round(v: Array, a: int, b: int, tolerance: float, admitted: float, slack: float) -> bool:
    """Return whether [a, b) grows much longer in a wider band."""
    middle = 0.5 * (v[a:b].max() + v[a:b].min())
    outside = np.abs(v - middle) > 3.0 * max(tolerance * abs(middle), admitted)
    before, after = np.flatnonzero(outside[:a]), np.flatnonzero(outside[b:])
    first = before[-1] + 1 if before.size else 0
    last = b + after[0] if after.size else v.size
    return bool((last - first) - (b - a) > ROUND * (b - a) + slack)


def _without_ramps(v: Array, a: int, b: int) -> tuple[int, int]:
    """Cut the ends with speeds that differ from the middle of the plateau by more than the variation there.

    The tail of a ramp lies within the band, and the inertial torque of its few samples would bias the gravity fit.
    """
    quarter = (b - a) // 4
    inner = v[a + quarter : b - quarter]
    centre = float(np.median(inner))
    inside = np.flatnonzero(np.abs(v[a:b] - centre) <= 2.0 * float(inner.std()) + 1e-4 * abs(centre))
    return a + int(inside[0]), a + int(inside[-1]) + 1
