"""Clocks and holes: bring a log to one uniform clock, knowingly."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import NDArray

from dynident.errors import LogError
from dynident.signals.log import Log

Array = NDArray[np.float64]

#: Steps longer than this many median steps are gaps.
GAP = 1.75
#: A clock closer to uniform than this part of a step needs nothing.
JITTER = 0.02
#: Missing stretches up to this long (s) are interpolated; longer ones cut the log.
LONGEST_HOLE = 0.05


def pieces_without_gaps(log: Log) -> list[tuple[int, int]]:
    """Sample ranges [start, stop) between gaps of the clock and long runs of missing values.

    A gap is a step longer than both 1.75 median steps and 0.05 s; a long run is one in position or effort over 0.05 s.
    """
    step = np.diff(log.t)
    median = float(np.median(step))
    limit = max(GAP * median, LONGEST_HOLE)
    cut = np.zeros(len(log), dtype=bool)
    bad = ~np.all(np.isfinite(log.position) & np.isfinite(log.effort), axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], bad.astype(np.int8), [0]])))
    for start, stop in edges.reshape(-1, 2):
        # Runs at the very ends cannot be interpolated, whatever their length.
        if (stop - start) * median > LONGEST_HOLE or start == 0 or stop == len(log):
            cut[start:stop] = True
    breaks = np.concatenate([[0], np.flatnonzero(step > limit) + 1, [len(log)]])
    ranges = []
    for a, b in pairwise(breaks):
        good = np.concatenate([[0], (~cut[a:b]).astype(np.int8), [0]])
        ranges += [(int(a + i), int(a + j)) for i, j in np.flatnonzero(np.diff(good)).reshape(-1, 2)]
    return ranges


class Piece:
    """The longest piece of a log without gaps and long holes; its short holes are filled when it is first used."""

    def __init__(self, log: Log) -> None:
        self.whole = log
        self.ranges = pieces_without_gaps(log)
        self.start, self.stop = max(self.ranges, key=lambda r: r[1] - r[0]) if self.ranges else (0, 0)

    def __len__(self) -> int:
        return self.stop - self.start

    @cached_property
    def filled(self) -> tuple[Log, int]:
        """The piece with its holes filled, and how many values that were."""
        everything = (self.start, self.stop) == (0, len(self.whole))
        return fill_holes(self.whole if everything else self.whole.rows(self.start, self.stop))


def split_at_gaps(log: Log, shortest: int = 64) -> tuple[Log, ...]:
    """Cut a log at its gaps and long holes.

    Regressions are additive, so every piece can be prepared and fitted together with the others.

    Parameters
    ----------
    log : Log
        Log with gaps.
    shortest : int
        Pieces with fewer samples are left out.

    Returns
    -------
    tuple of Log
        The pieces, in time order.
    """
    return tuple(log.rows(a, b) for a, b in pieces_without_gaps(log) if b - a >= shortest)


def fill_holes(log: Log) -> tuple[Log, int]:
    """Interpolate missing positions (cubic) and efforts (linear) inside the log; return it and how many were filled."""
    filled = 0
    arrays = {}
    for name in ("position", "effort"):
        values = getattr(log, name).copy()
        for j in range(values.shape[1]):
            bad = ~np.isfinite(values[:, j])
            if not bad.any():
                continue
            if (~bad).sum() < 4:
                raise LogError(f"{name} of '{log.joints[j]}' has {int((~bad).sum())} finite samples; at least 4 are needed")
            filled += int(bad.sum())
            if name == "position":
                values[bad, j] = scipy.interpolate.CubicSpline(log.t[~bad], values[~bad, j])(log.t[bad])
            else:
                values[bad, j] = np.interp(log.t[bad], log.t[~bad], values[~bad, j])
        arrays[name] = values
    return (replace(log, **arrays), filled) if filled else (log, 0)


def stray(t: Array) -> float:
    """Largest distance of a clock from uniform, in steps."""
    step = (t[-1] - t[0]) / (t.size - 1)
    return float(np.max(np.abs(t - t[0] - step * np.arange(t.size))) / step)


def roughness(q: Array) -> Array:
    """Third differences (std, per channel): what remains of a smooth motion at the highest frequencies is noise."""
    return np.asarray(np.sqrt(np.mean(np.diff(q, 3, axis=0) ** 2, axis=0)))


def stamps_are_noise(log: Log) -> tuple[bool, float]:
    """Decide whether the sampling was uniform and only the time stamps jitter.

    Stamps are often taken when a message arrives, not when the encoder was read; believing them would shift a smooth
    motion to and fro by v dt. The positions tell: taken as uniform samples they are smoother than resampled by
    their stamps, or not.
    """
    uniform = np.linspace(log.t[0], log.t[-1], len(log))
    as_stamped = scipy.interpolate.CubicSpline(log.t, log.position, axis=0)(uniform)
    even, stamped = roughness(log.position), roughness(as_stamped)
    use = (even > 0.0) & (stamped > 0.0)
    ratio = float(np.median(stamped[use] / even[use])) if use.any() else 1.0
    return ratio >= 1.0, ratio


def to_uniform(log: Log, rate: float) -> Log:
    """Interpolate to a uniform clock: positions by a cubic spline, the other channels linearly."""
    if log.duration * rate > max(100 * len(log), 10**6):
        raise LogError(f"{rate:g} Hz would make {log.duration * rate:.3g} samples of {len(log)}; give a lower rate")
    count = int(np.floor(log.duration * rate * (1.0 + 1e-12))) + 1
    t = log.t[0] + np.arange(count) / rate
    t[-1] = min(t[-1], log.t[-1])

    def linear(values: Array) -> Array:
        return np.column_stack([np.interp(t, log.t, values[:, j]) for j in range(values.shape[1])])

    return replace(
        log,
        t=t,
        position=scipy.interpolate.CubicSpline(log.t, log.position, axis=0)(t),
        effort=linear(log.effort),
        velocity=None if log.velocity is None else linear(log.velocity),
        acceleration=None if log.acceleration is None else linear(log.acceleration),
        temperature=None if log.temperature is None else linear(log.temperature),
        reference=None if log.reference is None else linear(log.reference),
    )
