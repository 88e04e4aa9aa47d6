"""Stretches of time whose evidence is kept apart: what happens in the same states belongs together.

Errors of a model are functions of the state, so they repeat where the motion repeats. A stretch whose twin stays in the fit is
predicted as if it had been in the fit itself, and R twins tell hardly more about the parameters than one: noise averages out,
the error of the model does not (the design effect of sampling in clusters, 1 + (R - 1) times the correlation of twins).

* Logs of which at most a fifth is new (`repeated_stretches`): a piece of time in which the robot comes back to states of before
  is counted with those, and stretches are cut along what is new.
* A log of a few periods (`period_of`): its stretches are the phases of a period, and it is kept which are of the same phase;
  the deviations of parameters allow for that.
* All others are cut by time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.identify.base import BaseParameters
from dynident.identify.regression.rows import Rows, Signals
from dynident.mechanics.motion import Motion
from dynident.signals.filters import Cutoff
from dynident.signals.log import Log

BLOCKS = 12  # stretches per log ...
FEWEST_ROWS = 12  # ... each with at least this many rows, ...
FEWEST_BLOCKS = 4  # ... but so many of a short log: fewer tell nothing about dependence and the scatter of estimates, ...
SHORT_ROWS = 4  # ... each of at least this many rows
MOST_BLOCKS = 48  # of a fit; neighbours are merged beyond

CLOSE = 0.25  # of the deviation of its positions and of its RMS speed: closer states of a joint are the same
NEW = 0.2  # share of new pieces above which logs are cut by time or phase
WINDOWS = 4000  # means of positions that are compared, at most ...
PER_BAND = 5.0  # ... per period of the band
PIECES = 500  # of all logs, at most
ROWS = 2.5  # per period of the band, that decimation leaves

GROUPS = 2  # of periods, which tell of changes from period to period
SAMPLES = 4096  # of a motion, at the most, whose period is looked for
SAME = 0.01  # squared difference over the sum of squares of two periods: states within a seventh of their size are the same
FURTHER = 0.5  # the same where a motion has left its state, so that it can come back


@dataclass(frozen=True, eq=False)
class Repeats:
    """Pieces of the time of one log and the stretch that each belongs to."""

    edges: Array  # (P + 1,) where pieces begin and end [s]
    labels: NDArray[np.int64]  # (P,) stretch of each piece
    count: int  # stretches of all logs of the fit


@dataclass(frozen=True, eq=False)
class Stretches:
    """Segments of the rows of a log in the order of time, each with the stretch that it belongs to."""

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

    def rows(self, used: NDArray[np.bool_] | None = None) -> tuple[int, ...]:
        """Return the number of rows of each stretch, of those that are used."""
        stretch = np.repeat(self.owner, np.diff(self.edges))
        return tuple(np.bincount(stretch if used is None else stretch[used], minlength=self.count).tolist())


def stretches_of(times: Array, asked: int | Repeats | None = None, period: float = np.inf) -> Stretches:
    """Return the stretches of rows at these times: as told, or so many; phases if it repeats itself every `period` rows."""
    rows = times.size
    if isinstance(asked, Repeats):
        inner = np.searchsorted(times, asked.edges[1:-1]).tolist()
        return Stretches((0, *inner, rows), tuple(asked.labels.tolist()), tuple(range(asked.count)))
    own = max(rows // FEWEST_ROWS, min(rows // SHORT_ROWS, FEWEST_BLOCKS), 1)
    count = min(asked or min(BLOCKS, own), max(rows, 1))
    if count < FEWEST_BLOCKS or period < count or 2.0 * period > rows:
        edges = np.linspace(0, rows, count + 1).astype(np.int64)
        return Stretches(tuple(edges.tolist()), tuple(range(count)), tuple(range(count)))
    phases = max(count // GROUPS, FEWEST_BLOCKS)
    edges = np.arange(0.0, rows, period / phases).astype(np.int64)
    segment = np.arange(edges.size)
    group = segment * (count // phases) // segment.size
    owner = tuple((group * phases + segment % phases).tolist())
    return Stretches((*edges.tolist(), rows), owner, (*range(phases),) * (count // phases))


def period_of(*states: Array) -> float:
    """Return the shortest time, in samples, after which states, arrays (N, k) such as q and v, are the same; inf if never.

        d(p) = sum |x(t + p) - x(t)|^2 / sum (|x(t + p)|^2 + |x(t)|^2),      x without mean, in units of its deviation

    is zero at multiples of the period. Its first minimum is looked for that is below `SAME`, up to half of the samples.
    """
    step = -(-len(states[0]) // SAMPLES)
    x = np.hstack([each[::step] for each in states])
    x = x - x.mean(axis=0)
    size = x.std(axis=0)
    x = x[:, size > 0.0] / size[size > 0.0]
    N = len(x)
    if x.size == 0 or N < 8 or not np.isfinite(x).all():
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
    inner = np.arange(max(int(away[0]), 1), d.size - 1)
    for lag in inner[(d[inner] <= d[inner - 1]) & (d[inner] < d[inner + 1])]:
        period, depth = _lowest(d, int(lag))
        if depth < SAME:
            times = 1
            while 2.0 * times * period < d.size - 2:  # multiples tell it more precisely
                times *= 2
                near = round(times * period) + np.arange(-1, 2)
                period = _lowest(d, int(near[np.argmin(d[near])]))[0] / times
            return step * period
    return float("inf")


def _lowest(d: Array, lag: int) -> tuple[float, float]:
    """Return place and value of a minimum between samples, by a parabola through three of them."""
    left, middle, right = d[lag - 1], d[lag], d[min(lag + 1, d.size - 1)]
    curvature = left + right - 2.0 * middle
    if curvature <= 0.0:
        return float(lag), float(middle)
    # The vertex of a minimum is within half a sample; beside one that is further off, the parabola says nothing.
    offset = float(np.clip(0.5 * (left - right) / curvature, -0.5, 0.5))
    return lag + offset, float(middle - 0.5 * (left - right) * offset + 0.5 * curvature * offset**2)


def repeated_stretches(logs: Sequence[Log], found: Cutoff, count: int) -> tuple[Repeats, ...] | None:
    """Return about `count` stretches of all logs together, one cut per log; None where little is repeated."""
    total = sum(log.duration for log in logs)
    if not (np.any(found.moving) and total > 0.0):
        return None
    window = max(1.0 / (PER_BAND * found.band), total / WINDOWS)
    half = max(1, round(0.5 * max(SHORT_ROWS / (ROWS * found.band), total / PIECES) / window))
    states = [_states(log, window, found.moving) for log in logs]
    if len(logs) == 1 and (exact := _phases(logs[0], window * period_of(states[0]), found.motion_band)) is not None:
        return (exact,)
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
        cuts.append(Repeats(edges, own[begin] if own.size else np.zeros(1, dtype=np.int64), count))
    return tuple(cuts)


def _phases(log: Log, period: float, band: float) -> Repeats | None:
    """Return the phases of a log that repeats itself every `period` seconds, often enough that little of it is new."""
    if not period < NEW * log.duration:
        return None
    # Errors within one period of the motion's fastest part belong together: shorter stretches would not be independent.
    count = int(np.clip(round(period * band), FEWEST_BLOCKS, BLOCKS))
    edges = np.arange(log.t[0], log.t[-1], period / count)
    return Repeats(np.append(edges, log.t[-1]), np.arange(edges.size) % count, count)


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
        same = np.flatnonzero(np.abs(x[:i, 0] - x[i, 0]) < CLOSE)
        for k in range(1, x.shape[1]):
            same = same[np.abs(x[same, k] - x[i, k]) < CLOSE]
        staying = same - np.arange(same.size) == i - same.size  # without a break up to now
        same = same[~staying]
        for step in ends:
            same = same[(same + step >= 0) & (same + step < i)]
            same = same[np.all(np.abs(x[same + step] - x[i + step]) < 2.0 * CLOSE, axis=1)]
        if same.size:
            earlier = min(int(np.searchsorted(middle, same[0] - half + 1)), p)
            origin[p] = origin[earlier]
    return origin


REST_SAMPLES = 300
SLOW = 0.05  # of the RMS speed in training: below, friction is not known
RESTING = 15.0  # samples at rest that tell something about residuals there
LARGER = 0.5  # of the variance in motion: what rests add at least to be told from chance
CALMEST = 0.1  # of the mean variance: residuals in motion are not believed to be smaller


def resting_of(
    rows: Rows, base: BaseParameters, motion: Motion, effort: Array, signals: Signals | None, dead: Sequence[str]
) -> dict[str, list[float]]:
    """Return `resting` of some hundred samples of a prepared log of a tree; `dead` are joints without usable efforts."""
    step = slice(0, None, max(len(motion) // REST_SAMPLES, 1))
    own = None if signals is None else {name: x[step] for name, x in signals.items()}
    part, names = motion[step], rows.mechanism.coordinate_names
    alive = np.array([name not in dead for name in names])
    W, y = rows.equations(part, effort[step], base.columns, signals=own)
    return resting(names, part.v, W * alive[:, None, None], y.T * alive)


def resting(names: Sequence[str], v: Array, W: Array, effort: Array) -> dict[str, list[float]]:
    """Return the sums of 1, w, w^2, e^2 and e^2 w of joints that move and rest; v and effort (S, n), W (n, b, S)."""
    w = nearness(v, np.sqrt(np.mean(v**2, axis=0)))
    some = (w.sum(axis=0) >= RESTING) & np.any(v, axis=0) & np.any(effort, axis=0)
    n, b, samples = W.shape
    if not some.any() or b >= 0.5 * n * samples:
        return {}
    size = np.sqrt(np.mean(effort**2, axis=0))
    weight = np.where(size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)
    A = (W * weight[:, None, None]).transpose(2, 0, 1).reshape(-1, b)
    scale = np.linalg.norm(A, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    x = np.linalg.lstsq(A / scale, (effort * weight).ravel(), rcond=1e-9)[0] / scale
    square = (effort - np.einsum("nbt,b->tn", W, x)) ** 2
    sums = np.stack([np.ones_like(w), w, w**2, square, square * w]).sum(axis=1)
    return {name: sums[:, j].tolist() for j, name in enumerate(names) if some[j]}


def nearness(v: Array, rms: Array) -> Array:
    """Return w = exp(-(v / v0)^2), v0 a twentieth of the RMS speed: 1 at rest, 0 in motion."""
    slow = SLOW * rms
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(slow > 0.0, np.exp(-((v / slow) ** 2)), np.asarray(v == 0.0, dtype=float))


def added(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return the sums of two pieces of a log, given as sources."""
    a, b = one.get("resting", {}), other.get("resting", {})
    return {name: np.sum([each[name] for each in (a, b) if name in each], axis=0).tolist() for name in {**a, **b}}


def shares(sources: Iterable[Mapping[str, Any]], name: str) -> tuple[float, float]:
    """Return a and b over the mean variance of a joint's residuals: (1, 0) where logs do not tell."""
    sums = np.sum([s["resting"][name] for s in sources if name in s.get("resting", {})] or [np.zeros(5)], axis=0)
    count, w, ww, square, rested = sums
    spread = ww * count - w * w
    if w < RESTING or square <= 0.0 or spread <= 0.0:
        return 1.0, 0.0
    mean = square / count
    b = (rested * count - square * w) / spread
    a = max((square - b * w) / count, CALMEST * mean)
    if b < LARGER * a:
        return 1.0, 0.0
    return float(a / mean), float(b / mean)
