"""Stretches of time whose evidence is kept apart, and the period of a motion that repeats itself.

Errors of a model are functions of the state: a motion that is repeated P times meets the same ones P times and learns nothing
new about them. Who takes periods for independent witnesses states deviations that are too small by up to sqrt(P). The stretches
of a periodic motion are therefore the phases of its period, each of some periods, and it is kept which are of the same phase.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.mechanics import Motion

Array = NDArray[np.float64]

BLOCKS = 12  # stretches per log ...
FEWEST_ROWS = 12  # ... each with at least this many rows, ...
FEWEST_BLOCKS = 4  # ... but so many of a short log: fewer tell nothing about dependence and the scatter of estimates, ...
SHORT_ROWS = 4  # ... each of at least this many rows
GROUPS = 2  # of periods, which tell of changes from period to period
SAMPLES = 4096  # of a motion, at the most, whose period is looked for
SAME = 0.01  # squared difference over the sum of squares of two periods: states within a seventh of their size are the same
FURTHER = 0.5  # the same where a motion has left its state, so that it can come back


@dataclass(frozen=True, eq=False)
class Stretches:
    """Segments of rows in the order of time, each with the stretch that it belongs to."""

    edges: tuple[int, ...]  # (S + 1,) where segments begin and end
    owner: tuple[int, ...]  # (S,)
    phases: tuple[int, ...]  # (count,) stretches of one number saw the same states

    @property
    def count(self) -> int:
        """Number of stretches."""
        return len(self.phases)

    def parts(self, rows: slice) -> list[tuple[int, int, int]]:
        """Return the stretches that rows belong to, each with the first and the last (not included) row from rows.start on."""
        found = []
        for segment in range(max(bisect_right(self.edges, rows.start) - 1, 0), len(self.owner)):
            begin, end = max(self.edges[segment], rows.start), min(self.edges[segment + 1], rows.stop)
            if begin >= rows.stop:
                break
            if begin < end:
                found.append((self.owner[segment], begin - rows.start, end - rows.start))
        return found

    def sums(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum of values of every row, (rows, k), over each stretch, (count, k)."""
        result = np.zeros((self.count, *values.shape[1:]), dtype=np.int64)
        np.add.at(result, np.array(self.owner), np.add.reduceat(values, self.edges[:-1], axis=0))
        return result


def stretches_of(rows: int, asked: int | None = None, period: float = np.inf) -> Stretches:
    """Return the stretches of a log of so many rows, phases where it repeats itself every `period` rows."""
    own = max(rows // FEWEST_ROWS, min(rows // SHORT_ROWS, FEWEST_BLOCKS), 1)
    count = min(asked or min(BLOCKS, own), max(rows, 1))
    if count < FEWEST_BLOCKS or period < count or 2.0 * period > rows:
        edges = np.linspace(0, rows, count + 1).astype(np.int64)
        return Stretches(tuple(edges.tolist()), tuple(range(count)), tuple(range(count)))
    phases = max(count // GROUPS, FEWEST_BLOCKS)
    edges = np.arange(0.0, rows, period / phases).astype(np.int64)
    segment = np.arange(edges.size)
    group = segment * (count // phases) // segment.size
    return Stretches(
        (*edges.tolist(), rows), tuple((group * phases + segment % phases).tolist()), (*range(phases),) * (count // phases)
    )


def period_of(motion: Motion) -> float:
    """Return the shortest time, in samples, after which positions and velocities are the same again; inf if never.

        d(p) = sum |x(t + p) - x(t)|^2 / sum (|x(t + p)|^2 + |x(t)|^2),      x = (q, v) without mean, in units of its deviation

    is zero at multiples of the period. Its first minimum is looked for that is below `SAME`, up to half of the motion.
    """
    step = -(-len(motion) // SAMPLES)
    x = np.hstack([motion.q[::step], motion.v[::step]])
    x = x - x.mean(axis=0)
    size = x.std(axis=0)
    x = x[:, size > 0.0] / size[size > 0.0]
    N = len(x)
    if x.size == 0 or N < 8:
        return float("inf")
    length = 1 << (2 * N - 1).bit_length()  # zeros behind the motion keep its ends apart
    spectrum = np.abs(np.fft.rfft(np.ascontiguousarray(x.T), length)) ** 2
    product = np.fft.irfft(spectrum.sum(axis=0), length)[: N // 2 + 2]
    energy = np.concatenate([[0.0], np.cumsum(np.sum(x**2, axis=1))])
    lags = np.arange(product.size)
    both = energy[N - lags] + energy[N] - energy[lags]
    d = 1.0 - 2.0 * product / both
    away = np.flatnonzero(d > FURTHER)
    if not away.size:
        return float("inf")
    left, middle, right = d[:-2], d[1:-1], d[2:]
    lowest = np.flatnonzero((middle <= left) & (middle < right) & (np.arange(1, d.size - 1) > away[0]))
    # The true minimum lies between samples: that of a parabola through three of them.
    curvature = left + right - 2.0 * middle
    shift = 0.5 * (left - right) / np.where(curvature > 0.0, curvature, 1.0)
    depth = middle - 0.125 * (left - right) ** 2 / np.where(curvature > 0.0, curvature, 1.0)
    same = lowest[depth[lowest] < SAME]
    return float(step * (same[0] + 1 + shift[same[0]])) if same.size else float("inf")
