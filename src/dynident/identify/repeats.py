"""Stretches of time that a fit leaves out in turn: what happens in the same states belongs to the same stretch.

The error of a model repeats where the motion repeats. A stretch whose twin stays in the fit is predicted as if it had been in
the fit itself, and R twins tell hardly more about the parameters than one: noise averages out, the error of the model does not
(the design effect of sampling in clusters, 1 + (R - 1) times the correlation of twins). So a piece of time in which the robot
comes back to states of before is counted with those, and stretches are cut along what is new. Logs of which more than a fifth
is new are cut by time (`factor.Cut`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynident.identify.factor import FEWEST_BLOCKS, MOST_BLOCKS, SHORT_ROWS, Stretches
from dynident.signals import Cutoff, Log

Array = NDArray[np.float64]

SAME = 0.25  # of the deviation of its positions and of its RMS speed: closer states of a joint are the same
NEW = 0.2  # share of new pieces above which logs are cut by time: a few periods of an exciting motion do little harm
WINDOWS = 4000  # means of positions that are compared, at most ...
PER_BAND = 5.0  # ... per period of the band
PIECES = 500  # of all logs, at most
ROWS = 2.5  # per period of the band, that decimation leaves


def repeated_stretches(logs: Sequence[Log], found: Cutoff, count: int) -> tuple[Stretches, ...] | None:
    """Return about `count` stretches of all logs together, one cut per log; None where little is repeated."""
    total = sum(log.duration for log in logs)
    if not (np.any(found.moving) and total > 0.0):
        return None
    window = max(1.0 / (PER_BAND * found.band), total / WINDOWS)
    half = max(1, round(0.5 * max(SHORT_ROWS / (ROWS * found.band), total / PIECES) / window))
    states = [_states(log, window, found.moving) for log in logs]
    counts = [len(each) // (2 * half) for each in states]  # pieces of 2 half windows
    x = np.concatenate(states)
    n = x.shape[1] // 2
    with np.errstate(invalid="ignore"):
        size = np.append(np.nanstd(x[:, :n], axis=0), np.sqrt(np.nanmean(x[:, n:] ** 2, axis=0)))
    x = x / np.where(size > 0.0, size, 1.0)
    first = np.append(0, np.cumsum([len(each) for each in states]))
    middle = np.concatenate([a + half + 2 * half * np.arange(c) for a, c in zip(first[:-1], counts, strict=True)])
    origin = _origins(x, middle, half)
    new = np.flatnonzero(origin == np.arange(origin.size))
    count = min(count, MOST_BLOCKS, new.size)
    if new.size > NEW * origin.size or count < FEWEST_BLOCKS:
        return None
    block = np.zeros(origin.size, dtype=np.int64)
    block[new] = np.arange(new.size) * count // new.size
    labels = np.split(block[origin], np.cumsum(counts)[:-1])
    cuts = []
    for log, own in zip(logs, labels, strict=True):
        kept = np.flatnonzero(np.diff(own)) + 1  # neighbours of one stretch are one piece
        begin = np.append(0, kept)
        edges = log.t[0] + 2 * half * window * np.append(begin, max(own.size, 1))
        edges[-1] = max(edges[-1], log.t[-1])
        cuts.append(Stretches(edges, own[begin] if own.size else np.zeros(1, dtype=np.int64), count))
    return tuple(cuts)


def _states(log: Log, window: float, moving: NDArray[np.bool_]) -> Array:
    """Return means of the positions in windows of time and their rates of change, (windows, 2 n); NaN where samples miss."""
    q = log.position[:, moving]
    index = ((log.t - log.t[0]) / window).astype(np.int64)
    number = np.bincount(index)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.stack([np.bincount(index, each) / number for each in q.T], axis=1)
    if len(mean) < 3:
        return np.empty((0, 2 * q.shape[1]))
    return np.concatenate([mean, np.gradient(mean, window, axis=0)], axis=1)


def _origins(x: Array, middle: NDArray[np.int64], half: int) -> NDArray[np.int64]:
    """Return for every piece the first one with the same motion: itself where it is new.

    The same motion: at its middle the robot is where it was before, it had left in between, and half a piece earlier and later
    it is where it was then, too.
    """
    origin = np.arange(middle.size)
    ends = (-(half - 1), half - 1)
    for p, i in enumerate(middle):
        same = np.flatnonzero(np.abs(x[:i, 0] - x[i, 0]) < SAME)
        for k in range(1, x.shape[1]):
            same = same[np.abs(x[same, k] - x[i, k]) < SAME]
        staying = same - np.arange(same.size) == i - same.size  # without a break up to now
        same = same[~staying]
        for step in ends:
            same = same[(same + step >= 0) & (same + step < i)]
            same = same[np.all(np.abs(x[same + step] - x[i + step]) < 2.0 * SAME, axis=1)]
        if same.size:
            earlier = min(int(np.searchsorted(middle, same[0] - half + 1)), p)
            origin[p] = origin[earlier]
    return origin
