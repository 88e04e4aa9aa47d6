"""Triangular factors: the regression data of one row group, compressed from many samples to one small matrix.

For the rows [W, tau] of a joint (or of a projected equation) the factor is the R of their QR decomposition,

    [W, tau]^T [W, tau] = R^T R,

so ||W beta - tau|| = ||R[:, :k] beta - R[:, k]|| for every beta, and two logs are merged by one QR of their stacked factors.
Samples pass in tiles and are never stored. Cross products square the condition number, so they are used only if the summed
matrix is well conditioned; otherwise Householder reflections fold the rows. Weighted least squares on factors,

    minimise  sum_g ||W_g beta - tau_g||^2 / sigma_g^2          over the active base parameters,

has a few hundred rows instead of a few hundred thousand samples.

Stretches of time are kept apart. Errors of a model are functions of the state, so they repeat where the motion repeats. A
stretch whose twin stays in the fit is predicted as well as a fitted one, and R twins determine the parameters hardly better
than one: noise averages out, the error of the model does not (the design effect of sampling in clusters,
1 + (R - 1) times the correlation of twins).

* Logs with at most a fifth of new motion (`repeated_stretches`): a piece of time that returns to earlier states is counted
  with these, and stretches are cut along the new motion.
* A log of a few periods (`period_of`): its stretches are the phases of a period, and stretches of the same phase are marked;
  the deviations of parameters allow for this.
* All others are cut by time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import IdentificationError, SignalWarning, warn
from dynident.graph.compiled import Products
from dynident.identify.base import BaseParameters, random_motion
from dynident.identify.regression.rows import CompiledRows, Relation, Rows, Signals, Writer
from dynident.mechanics.closure import closure_starts
from dynident.mechanics.functions import Motion
from dynident.parallel import cores, one_blas_thread
from dynident.signals.filters import PART, Cutoff, Decimator
from dynident.signals.log import Log
from dynident.signals.preparation import period_of

if TYPE_CHECKING:
    from dynident.identify.regression.regression import Regression

T = TypeVar("T")
ROWS = 1024  # samples per tile at most
FEW_TILES = 4  # starting threads takes longer than computing them
CACHE = 260_000  # bytes of rows of a tile: they are read soon after they are written, and should still be in the cache
SHORTEST = 128  # fewest samples of a tile, because of its overhead
FEWEST = 160  # rows per tile after decimation: the filter's ends are computed for every tile
ROUND_OFF = 1e-12  # relative length below which a column is zero but for round-off
CONTAINED = 1e-6  # part of a column of unit length below which it is round-off
SAFE = 1e-7  # smallest over largest eigenvalue of scaled cross products: estimates then agree with reflections to about 1e-9
KEPT = 1_000_000  # numbers in decimated rows up to which they are kept: reflections need them a second time
BLOCKS = 12  # stretches per log ...
FEWEST_ROWS = 12  # ... each with at least this many rows, ...
FEWEST_BLOCKS = 4  # ... but this number for a short log: fewer do not show correlation and scatter of estimates, ...
SHORT_ROWS = 4  # ... each of at least this many rows
MOST_BLOCKS = 48  # of a fit; neighbours are merged beyond

CLOSE = 0.25  # of the deviation of its positions and of its RMS speed: closer states of a joint are the same
NEW = 0.2  # share of new pieces above which logs are cut by time or phase
WINDOWS = 4000  # means of positions that are compared, at most ...
PER_BAND = 5.0  # ... per period of the band
PIECES = 500  # of all logs, at most
DECIMATED = 2.5  # rows per period of the band after decimation

GROUPS = 2  # of periods, which show changes between periods
Tile = Callable[["Workspace"], Array]
"""Rows of one tile, (height, T): those of [W, y] of all row groups."""


def triangle(rows: Array) -> Array:
    """Return R (min(m, n), n) of the QR decomposition of rows (m, n), R^T R = rows^T rows; its diagonal may be negative."""
    return np.asarray(np.linalg.qr(rows, mode="r"))


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Regression data of one row group: a joint of a tree robot, or a projected row."""

    name: str
    columns: NDArray[np.int64]  # (k,) base parameters that occur in this row
    R: Array  # (m, k + 1), m <= k + 1: triangular factor of [W, tau] over all samples
    count: int  # number of rows
    independence: float = 1.0  # independent rows per row; below 1 when the rows were low-passed together
    products: Array = None  # type: ignore[assignment]  # (K, k + 1, k + 1) of stretches of time, adding up to R^T R
    counts: tuple[int, ...] = ()  # rows of each stretch
    phases: tuple[int, ...] = ()  # stretches of one number saw the same states of a periodic motion; empty: each its own

    def __post_init__(self) -> None:
        if self.products is None:
            object.__setattr__(self, "products", (self.R.T @ self.R)[None])
            object.__setattr__(self, "counts", (self.count,))
        if not self.phases:
            object.__setattr__(self, "phases", tuple(range(len(self.counts))))

    def residual(self, beta: Array) -> float:
        """Return ||W beta - tau||^2."""
        e = self.R[:, :-1] @ beta[self.columns] - self.R[:, -1]
        return float(e @ e)

    @property
    def effort_square(self) -> float:
        """||tau||^2 of this group's rows."""
        return float(self.R[:, -1] @ self.R[:, -1])

    def merge(self, other: RowGroup) -> RowGroup:
        """Return the merged regression data."""
        R = triangle(np.vstack([self.R, other.R]))
        count = self.count + other.count
        independence = (self.count * self.independence + other.count * other.independence) / max(count, 1)
        products = np.concatenate([self.products, other.products])
        counts = (*self.counts, *other.counts)
        phases = (*self.phases, *(max(self.phases) + 1 + each for each in other.phases))  # of another log, so other states
        return RowGroup(self.name, self.columns, R, count, independence, products, counts, phases)

    def empty(self, stretches: int) -> RowGroup:
        """Return regression data of this joint without rows, for logs in which its effort is missing."""
        size = self.R.shape[1]
        products = np.zeros((stretches, size, size))
        return RowGroup(self.name, self.columns, np.zeros((0, size)), 0, 1.0, products, (0,) * stretches)

    def fewer(self, most: int = MOST_BLOCKS) -> RowGroup:
        """Return the same regression data with neighbouring stretches merged until there are at most `most`."""
        K = len(self.counts)
        if most >= K:
            return self
        first = np.unique(np.linspace(0, K, most, endpoint=False).astype(int))
        counts = tuple(int(c) for c in np.add.reduceat(self.counts, first))
        return replace(self, products=np.add.reduceat(self.products, first, axis=0), counts=counts, phases=())


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
        first, found = max(bisect_right(self.edges, rows.start) - 1, 0), []
        if self.edges[first] <= rows.start and first < len(self.owner) and rows.stop <= self.edges[first + 1]:  # mostly
            return [(self.owner[first], 0, rows.stop - rows.start)]
        for segment in range(first, len(self.owner)):
            begin, end = max(self.edges[segment], rows.start), min(self.edges[segment + 1], rows.stop)
            if begin >= rows.stop:
                break
            if begin < end:
                found.append((self.owner[segment], begin - rows.start, end - rows.start))
        return found

    def rows(self, used: NDArray[np.bool_] | None = None) -> tuple[int, ...]:
        """Return the number of used rows of each stretch."""
        stretch = np.repeat(self.owner, np.diff(self.edges))
        return tuple(np.bincount(stretch if used is None else stretch[used], minlength=self.count).tolist())


def stretches_of(times: Array, asked: int | Repeats | None = None, period: float = np.inf) -> Stretches:
    """Return the stretches of rows at these times: as given, or in this number; phases if rows repeat every `period` rows."""
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


def repeated_stretches(logs: Sequence[Log], found: Cutoff, count: int) -> tuple[Repeats, ...] | None:
    """Return about `count` stretches of all logs together, one cut per log; None if little is repeated."""
    total = sum(log.duration for log in logs)
    if not (np.any(found.moving) and total > 0.0):
        return None
    window = max(1.0 / (PER_BAND * found.band), total / WINDOWS)
    half = max(1, round(0.5 * max(SHORT_ROWS / (DECIMATED * found.band), total / PIECES) / window))
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
    first, last = float(log.t[0]), float(log.t[-1])
    if not period < NEW * (last - first):
        return None
    # Errors within one period of the fastest motion are correlated: shorter stretches would not be independent.
    count = int(np.clip(round(period * band), FEWEST_BLOCKS, BLOCKS))
    edges = np.arange(first, last, period / count)
    return Repeats(np.append(edges, last), np.arange(edges.size) % count, count)


def _states(log: Log, window: float, moving: NDArray[np.bool_]) -> Array:
    """Return window means of the positions and their rates of change, (windows, 2 n); NaN where samples are missing."""
    index = ((log.t - log.t[0]) / window).astype(np.int64)
    number = np.bincount(index)
    with np.errstate(invalid="ignore", divide="ignore"):
        # One joint at a time: a long log is not copied.
        each = (np.where(np.isfinite(q), q, np.nan) for q in (log.position[:, j] for j in np.flatnonzero(moving)))
        mean = np.stack([np.bincount(index, q) / number for q in each], axis=1)
    if len(mean) < 3:
        return np.empty((0, 2 * mean.shape[1]))
    return np.concatenate([mean, np.gradient(mean, window, axis=0)], axis=1)


def _origins(x: Array, middle: NDArray[np.int64], half: int) -> NDArray[np.int64]:
    """Return for every piece the first piece with the same motion: itself if the motion is new.

    Same motion: at the middle of the piece the robot returns to an earlier state that it had left in between, and half a piece
    earlier and later the states agree too.
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
SLOW = 0.05  # of the RMS speed in training; below this speed friction is unknown
RESTING = 15.0  # fewest samples at rest for the residual variance there
LARGER = 0.5  # of the variance in motion: smallest significant increase at rest
CALMEST = 0.1  # of the mean variance: residuals in motion are not assumed to be smaller


def resting(names: Sequence[str], v: Array, W: Array, effort: Array) -> dict[str, list[float]]:
    """Return the sums of 1, w, w^2, e^2 and e^2 w of joints that move and rest; v and effort (S, n), W (n, b, S)."""
    w = nearness(v, np.sqrt(np.mean(v**2, axis=0)))
    some = _rest(v) & np.any(effort, axis=0)
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


def _rest(v: Array) -> NDArray[np.bool_]:
    """Return which joints move and rest at samples of their velocities (S, n)."""
    w = nearness(v, np.sqrt(np.mean(v**2, axis=0)))
    return np.asarray((w.sum(axis=0) >= RESTING) & np.any(v, axis=0))


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
    """Return a and b over the mean variance of a joint's residuals: (1, 0) if the logs do not determine them."""
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


#: Share of usable rows of a joint below which the exclusion of rows near standstill gives a warning.
FEW = 1.0 / 3.0


def moving_rows(moving: NDArray[np.bool_], decimator: Decimator, names: Sequence[str]) -> NDArray[np.bool_]:
    """Return the mask of decimated rows without standstill samples, and warn where few are left."""
    usable = decimator.usable(moving)
    share = usable.mean(axis=0)
    if np.any(share < FEW):
        worst = int(np.argmin(share))
        text = (
            f"standstill= leaves {int(usable[:, worst].sum())} of {usable.shape[0]} rows of '{names[worst]}', because a row "
            f"averages over {decimator.taps.size / decimator.rate:.2g} s; give decimation=1, a higher cutoff= or a smaller "
            "standstill="
        )
        if share[worst] == 0.0:
            raise IdentificationError(text)
        warn(text, SignalWarning)
    return usable


class Workspace:
    """Per-thread scratch memory, reused for every tile: new pages cost more than the computation."""

    def __init__(self) -> None:
        self._memory: dict[str, Array] = {}
        self._made: dict[Hashable, Any] = {}
        self._part: object = None

    def enter(self, part: object) -> None:
        """Clear the cached objects of another part of the samples."""
        if part is not self._part:
            self._made.clear()
            self._part = part

    def rows(self, name: str, height: int, width: int) -> Array:
        """Return a reused array (height, width) whose rows do not map to the same cache lines."""
        stride = width + 8 + (-width) % 8
        size = height * stride
        if name not in self._memory or self._memory[name].size < size:
            self._memory[name] = np.empty(size)
            self._made.clear()  # cached objects use the old memory
        return self.once((name, height, width), lambda: self._memory[name][:size].reshape(height, stride)[:, :width])

    def once(self, key: Hashable, make: Callable[..., T], *given: object) -> T:
        """Return the cached object of this key in this thread, or create it."""
        if key not in self._made:
            self._made[key] = make(*given)
        found: T = self._made[key]
        return found


class Part(NamedTuple):
    """Consecutive samples: motion, efforts (N, k) and the other signals of friction laws."""

    motion: Motion
    effort: Array
    signals: Signals | None


@dataclass(frozen=True, eq=False)
class Samples:
    """Motion and efforts to be compressed, one part at a time."""

    t: Array  # (N,) times [s]
    decimator: Decimator
    part: Callable[[int, int], Part]  # from a first to a last sample (not included)
    period: float  # samples after which the motion repeats itself; inf if never, or where other stretches are given
    longest: int | None = None  # most samples of a part unless cores lack tiles; half of `PART` if None
    moving: NDArray[np.bool_] | None = None  # (N, k) False where a joint stands

    @classmethod
    def of(
        cls,
        motion: Motion,
        tau: Array,
        signals: Signals | None,
        decimator: Decimator,
        moving: NDArray[np.bool_] | None,
        period: float | None = None,
    ) -> Samples:
        """Return samples in memory, as one part; their `period` is detected unless given."""

        def part(first: int, last: int) -> Part:
            own = slice(first, last)
            return Part(motion[own], tau[own], signals and {name: x[own] for name, x in signals.items()})

        found = period_of(motion.q, motion.v) if period is None else period
        return cls(motion.t, decimator, part, found, len(motion), moving)


def factors_of(
    rows: Rows,
    base: BaseParameters,
    given: Samples,
    skip: Sequence[str] = (),
    stretches: int | Repeats | None = None,
    rests: bool = True,
) -> tuple[tuple[RowGroup, ...], dict[str, list[float]]]:
    """Return the factors of a robot's equations along a motion with its efforts; for a tree, residuals at rest on request.

    See `Regression.from_motion` and `resting`, which uses a few hundred samples.
    """
    mechanism, names, filter_ = rows.mechanism, rows.names, given.decimator
    compiled = rows.compiled(base.columns)
    used = [i for i, name in enumerate(names) if name not in skip]
    usable = None
    if given.moving is not None:
        usable = moving_rows(rows.usable(given.moving)[:, used], filter_, [names[i] for i in used])
    seen = rows.seen(base.seen)
    columns = [np.intersect1d(compiled.seen[i], np.flatnonzero(seen[i])) for i in used]
    places = [
        compiled.first[i] + np.append(np.flatnonzero(np.isin(compiled.seen[i], mine)), compiled.seen[i].size)
        for i, mine in zip(used, columns, strict=True)
    ]
    tiles = Tiles(rows, base, compiled, given, used, usable, rests and not mechanism.loops)

    def relation(k: int) -> Relation:
        count = 2 * max(c.size for c in columns) + 8
        return compiled.relation(used[k], columns[k], lambda: random_motion(mechanism, count))

    kept = stretches_of(given.t[filter_.centres(given.t.size)], stretches, given.period / filter_.factor)
    related, labels = None if tiles.gone.size else relation, [names[i] for i in used]
    groups = accumulate(labels, columns, tiles, filter_.independence, related, places, tiles.outputs, kept)
    if usable is not None:
        inside = [kept.rows(own) for own in usable.T]
        groups = tuple(replace(group, count=sum(n), counts=n) for group, n in zip(groups, inside, strict=True))
    for group in groups:
        check_finite(group.R, group.name)
    if not (tiles.speeds.size and _rest(tiles.speeds).any()):
        return groups, {}
    tiles.looked_at[tiles.gone] = 0.0
    W, y = compiled.unpacked(tiles.looked_at, base.rank)
    alive = np.isin(np.arange(len(names)), used)
    return groups, resting(mechanism.coordinate_names, tiles.speeds, W * alive[:, None, None], y.T * alive)


def check_finite(values: Array, joint: str) -> None:
    """Refuse equations that a user's expression makes NaN or infinite."""
    if not np.isfinite(values).all():
        raise IdentificationError(
            f"the equations of joint '{joint}' are not finite along this motion; check its friction and forces, such as log "
            "or sqrt of negative values"
        )


class Tiles:
    """Rows of samples, tile by tile; the samples of a part, some tiles, are in memory."""

    def __init__(
        self,
        rows: Rows,
        base: BaseParameters,
        compiled: CompiledRows,
        given: Samples,
        used: Sequence[int],
        usable: NDArray[np.bool_] | None,
        look: bool,
    ) -> None:
        samples, loops, self.filter = given.t.size, bool(rows.mechanism.loops), given.decimator
        self.compiled, self.given, self.usable, self.loops = compiled, given, usable, loops
        self.whole = [slice(compiled.first[i], compiled.first[i] + compiled.seen[i].size + 1) for i in used]
        self.wide = int(np.clip(CACHE // (8 * compiled.height) // 32 * 32, SHORTEST, ROWS))  # samples evaluated at once
        height = self.wide
        if self.filter.factor > 1 or loops:  # few tiles, because the filter's ends are computed for each, but several per part
            height = max(ROWS // self.filter.factor, min(FEWEST, PART // (2 * self.filter.factor)), SHORTEST // 4)
        spans = list(self.filter.tiles(samples, height))
        self.inputs, self.outputs = [piece for piece, _ in spans], [outputs for _, outputs in spans]
        self.starts: Sequence[Array | None] = [None] * len(spans)
        if loops:  # the branch is followed once through all samples; tiles are then independent
            q = given.part(0, samples).motion.q
            self.starts = closure_starts(rows.mechanism, q, [piece.start for piece in self.inputs])
        absent = np.flatnonzero(np.isin(base.columns, rows.absent))
        zero = [first + np.flatnonzero(np.isin(own, absent)) for own, first in zip(compiled.seen, compiled.first, strict=True)]
        self.gone = np.concatenate(zero)
        few = self.filter.factor > 1 and self.filter.length(samples) * compiled.height <= KEPT
        self._kept: dict[int, Array] | None = {} if few else None  # rows by tile number
        self.every = max(samples // REST_SAMPLES, 1)
        some = -(-samples // self.every) if look else 0  # samples used for the residuals at rest
        self.looked_at, self.speeds = np.zeros((compiled.height, some)), np.zeros((some, rows.mechanism.dof))

    def parts(self) -> Iterator[Sequence[Tile]]:
        """Yield the tiles of each part of the samples in turn; they are valid until the next part is requested."""
        kept = self._kept or {}
        if len(kept) == len(self.inputs):
            yield [partial(lambda rows, _: rows, kept[number]) for number in range(len(kept))]
            return
        first = 0
        while first < len(self.inputs):
            begin, last = self.inputs[first].start, first + 1
            while last < len(self.inputs) and (
                self.inputs[last].stop - begin <= (self.given.longest or PART // 2)
                or last - first < cores()  # all cores have a tile
            ):
                last += 1
            part = self.given.part(begin, self.inputs[last - 1].stop)
            into = self.compiled.over(part.motion, part.effort, begin, part.signals)
            yield [partial(self._rows, k, begin, part.motion, into) for k in range(first, last)]
            del part, into  # before the next one is created
            first = last

    def _rows(self, number: int, begin: int, motion: Motion, into: Callable[[Array], Writer], work: Workspace) -> Array:
        """Return the rows of a tile; its part begins at sample `begin`."""
        piece, outputs, height, every = self.inputs[number], self.outputs[number], self.compiled.height, self.every
        work.enter(into)
        filtered = self.filter.factor > 1
        result = work.rows("filtered", height, outputs.stop - outputs.start if filtered else 0)
        result[:] = 0.0
        # For mechanisms with loops, only the first sample of a tile is closed.
        step = piece.stop - piece.start if self.loops else self.wide
        for at in range(piece.start, piece.stop, step):
            own = slice(at - begin, min(at + step, piece.stop) - begin)
            flat = work.rows("rows", height, own.stop - own.start)
            work.once(("write", own.stop - own.start), into, flat)(own, self.starts[number])
            if self.speeds.size:
                first = -(-at // every)  # the first of the samples to evaluate
                seen_here = flat[:, first * every - at :: every]
                last = first + seen_here.shape[1]
                self.looked_at[:, first:last] = seen_here
                self.speeds[first:last] = motion.v[first * every - begin : own.stop : every]
            if filtered:
                self.filter.add_rows(flat, at - piece.start, result)
        result = result if filtered else flat
        if self.gone.size:
            result[self.gone] = 0.0
        if self.usable is not None:
            for k, group in enumerate(self.whole):
                result[group] *= self.usable[outputs, k]
        if self._kept is not None:
            self._kept[number] = result.copy()
        return result


def accumulate(
    names: Iterable[str],
    columns: list[NDArray[np.int64]],
    tiles: Sequence[Tile] | Tiles,
    independence: float = 1.0,
    relations: Callable[[int], Relation] | None = None,
    places: list[NDArray[np.int64]] | None = None,
    outputs: Sequence[slice] | None = None,
    stretches: Stretches | None = None,
) -> tuple[RowGroup, ...]:
    """Reduce tiles of rows to one factor per group, on all cores; `places` are the rows of each group, in order if None.

    `outputs` are the rows of each tile in time; with `stretches` of them their cross products are kept too.
    """
    labels = tuple(names)
    sizes = [c.size + 1 for c in columns]
    if places is None:
        places = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    gram, workers = Products.of(places), cores() if isinstance(tiles, Tiles) or len(tiles) > FEW_TILES else 1
    work = [Workspace() for _ in range(workers)]
    sums = [gram.sums(stretches.count if stretches else 1) for _ in range(workers)]

    def products(worker: int, share: list[tuple[int, Tile]]) -> int:
        rows, count = np.empty((0, 0)), 0
        for t, tile in share:
            found = tile(work[worker])
            if found is not rows:  # otherwise the memory is reused
                rows, add = found, gram.adding(found, sums[worker])
            width = rows.shape[1]
            for own in stretches.parts(outputs[t]) if stretches and outputs else [(0, 0, width)]:
                add(*own)
            count += width
        work[worker].enter(None)
        return count

    def reflections(worker: int, share: list[tuple[int, Tile]]) -> None:
        for _, tile in share:
            rows = tile(work[worker])
            for i in unsafe:
                folded[worker][i] = triangle(np.vstack([folded[worker][i], rows[places[i]].T]))

    # BLAS threads do not help on matrices this small; tiles run in parallel instead.
    with one_blas_thread(), ThreadPoolExecutor(workers) if workers > 1 else nullcontext() as pool:
        every = map if pool is None else pool.map
        total = sum(sum(every(products, range(workers), shares)) for shares in _shared(tiles, workers))
        kept = gram.matrices(np.sum(sums, axis=0))
        whole = [each.sum(axis=0) for each in kept]
        found = [_triangle_of(each) for each in whole]
        for i, R in enumerate(found):
            if R is None and relations is not None:
                found[i] = _related_triangle(whole[i], *relations(i))
        unsafe = [i for i, R in enumerate(found) if R is None]
        if unsafe:
            folded = [{i: np.zeros((0, sizes[i])) for i in unsafe} for _ in range(workers)]
            for shares in _shared(tiles, workers):
                list(every(reflections, range(workers), shares))
            for i in unsafe:
                found[i] = triangle(np.vstack([own[i] for own in folded]))
    counts = stretches.rows() if stretches else (total,)
    groups = zip(labels, columns, found, kept, strict=True)
    phases = stretches.phases if stretches else ()
    return tuple(RowGroup(label, c, R, total, independence, P, counts, phases) for label, c, R, P in groups if R is not None)


def _shared(tiles: Sequence[Tile] | Tiles, workers: int) -> Iterator[list[list[tuple[int, Tile]]]]:
    """Yield the numbered tiles of each part of the samples in turn, shared between workers."""
    first = 0
    for part in tiles.parts() if isinstance(tiles, Tiles) else [tiles]:
        numbered = list(enumerate(part, first))
        first += len(part)
        shares = [numbered[i::workers] for i in range(workers)]
        del part, numbered
        yield shares
        for own in shares:
            own.clear()


def _related_triangle(products: Array, kept: NDArray[np.int64], T: Array) -> Array | None:
    """Return R if the columns not kept are W[:, kept] T; None if rounding would be visible."""
    if kept.size == products.shape[0] - 1:
        return None
    own = np.append(kept, products.shape[0] - 1)
    inner = _triangle_of(products[np.ix_(own, own)])
    if inner is None:
        return None
    R = np.zeros((own.size, products.shape[0]))
    R[:, own] = inner
    R[:, np.setdiff1d(np.arange(products.shape[0]), own)] = inner[:, :-1] @ T
    return R


def _triangle_of(products: Array) -> Array | None:
    """Return R with R^T R = products, or None if rounding of the products would be visible.

    Columns are scaled to length 1 first. Noise-free efforts lie in the span of the columns and are refused too:
    their tiny residual would be lost.
    """
    size = np.sqrt(np.diagonal(products))
    seen = size > 0.0
    scaled = products[np.ix_(seen, seen)] / np.outer(size[seen], size[seen])
    if scaled.size == 0 or not np.isfinite(scaled).all():
        return None
    spectrum = np.linalg.eigvalsh(scaled)
    if spectrum[0] < SAFE * spectrum[-1]:
        return None
    R = np.zeros_like(products)
    kept = np.flatnonzero(seen)
    R[np.ix_(kept, kept)] = np.linalg.cholesky(scaled).T * size[seen]
    return R


@dataclass(frozen=True, eq=False)
class Solution:
    """Result of one weighted solve: cov(beta_solved) = S^-1 (T^T T)^-1 S^-1 times the variance of unit weight."""

    beta: Array  # (b,) base parameters; zero where not active or not excited
    precision_root: Array  # (k, k) upper triangle T of the scaled, weighted stack of the solved columns
    scale: Array  # (k,) column lengths S
    solved: NDArray[np.int64]  # (k,) base parameters solved for
    #: (k, b) E with E beta_true = beta[solved], the identifiable combinations. Identity for single parameters; other entries
    #: for unsolved parameters that act on these data like solved ones and are contained in their values.
    combinations: Array
    condition: float  # of the scaled stack of the solved columns

    def covariance(self, variance: float = 1.0) -> Array:
        """Return the covariance of all base parameters; zero for parameters that were not solved for."""
        inverse = np.linalg.solve(self.precision_root, np.eye(self.solved.size)) / self.scale[:, None]
        result = np.zeros((self.beta.size, self.beta.size))
        result[np.ix_(self.solved, self.solved)] = variance * inverse @ inverse.T
        return result


def weighted_rows(groups: Sequence[RowGroup], weights: Array, b: int) -> Array:
    """Return the factors of all groups, each with its weight, as rows of [W, tau] on all b parameters."""
    rows = [np.zeros((group.R.shape[0], b + 1)) for group in groups]
    for block, group, weight in zip(rows, groups, weights, strict=True):
        block[:, [*group.columns, b]] = weight * group.R
    return np.vstack(rows)


def solve(regression: Regression, sigma: Array, active: NDArray[np.bool_], tolerance: float) -> Solution:
    """Solve for the active base parameters with one standard deviation per row group.

    Columns whose part orthogonal to more visible columns is below `tolerance` of their length are not excited by the data
    and are left at zero; they are missing from ``solved``.
    """
    b = regression.base.rank
    rows = weighted_rows(regression.groups, 1.0 / sigma, b)
    W, y = rows[:, :b], rows[:, b]
    length = np.linalg.norm(W, axis=0)
    candidates = np.flatnonzero(active & (length > ROUND_OFF * np.max(length)))
    if not candidates.size:
        raise IdentificationError("no parameter is excited by these data: nothing moves, or all efforts are unusable")
    scaled = W[:, candidates] / length[candidates]
    Q, R = np.linalg.qr(scaled)
    singular, rank, order = np.linalg.svd(R, compute_uv=False), candidates.size, np.arange(candidates.size)
    if len(R) < rank or singular[-1] <= tolerance:  # all pivots of these unit columns are at least the smallest singular value
        with one_blas_thread():
            Q, R, order = scipy.linalg.qr(scaled, mode="economic", pivoting=True)
        diagonal = np.abs(np.diag(R))
        rank = int(np.count_nonzero(diagonal > tolerance * diagonal[0]))
        singular = np.linalg.svd(R[:rank, :rank], compute_uv=False)
    solved = candidates[order[:rank]]
    T = R[:rank, :rank]
    combinations = np.zeros((rank, b))
    combinations[np.arange(rank), solved] = 1.0
    hidden = candidates[order[rank:]]
    contained = np.linalg.solve(T, R[:rank, rank:])
    contained[np.abs(contained) < CONTAINED] = 0.0
    combinations[:, hidden] = contained * length[hidden] / length[solved][:, None]
    x = np.linalg.solve(T, Q[:, :rank].T @ y)
    beta = np.zeros(b)
    beta[solved] = x / length[solved]
    return Solution(beta, T, length[solved], solved, combinations, float(singular[0] / singular[-1]))


# ---- residuals of a solution -----------------------------------------------------------------------------------------------


def group_sigma(regression: Regression, solution: Solution) -> Array:
    """Return the noise standard deviation of each row group, sigma_g^2 = RSS_g / free rows."""
    # A residual of exactly zero (data from the model, a joint at rest) must not give an infinite weight.
    typical = sum(group.effort_square for group in regression.groups) / sum(group.count for group in regression.groups)
    floor = [1e-26 * (group.effort_square / group.count or typical or 1.0) for group in regression.groups]
    square = np.array([group.residual(solution.beta) for group in regression.groups])
    return np.asarray(np.sqrt(np.maximum(square / free_rows(regression, solution), floor)))


def free_rows(regression: Regression, solution: Solution) -> Array:
    """Return the independent rows of every group less its share of the parameters, at least one.

    A parameter is charged to the groups in proportion to their rows that show it: shares add up to the number of parameters.
    """
    seen = np.zeros((len(regression.groups), regression.base.rank))
    for i, group in enumerate(regression.groups):
        seen[i, np.intersect1d(group.columns, solution.solved)] = group.count
    share = np.sum(seen / np.maximum(seen.sum(axis=0), 1.0), axis=1)
    rows = np.array([group.count * group.independence for group in regression.groups])
    return np.asarray(np.maximum(rows - share, 1.0))


def constrained_sigma(regression: Regression, sigma: Array, free: Array, values: Array) -> Array:
    """Return the row deviations about constrained parameters, enlarged in proportion to the residuals of every group."""
    floor = [1e-26 * (group.effort_square or 1.0) for group in regression.groups]
    before, after = (np.array([group.residual(beta) for group in regression.groups]) for beta in (free, values))
    return np.asarray(sigma * np.sqrt(np.maximum(after, floor) / np.maximum(np.minimum(before, after), floor)))


def relative_error(regression: Regression, beta: Array) -> float:
    """Return ||W beta - tau|| / ||tau|| over all rows."""
    total = sum(group.effort_square for group in regression.groups)
    return float(np.sqrt(sum(group.residual(beta) for group in regression.groups) / total)) if total > 0 else float("nan")


def training_std(regression: Regression, covariance: Array) -> Array:
    """Return the root mean square of w cov w^T over the training rows of every joint."""
    parts = []
    for group in regression.groups:
        W = group.R[:, :-1]
        C = covariance[np.ix_(group.columns, group.columns)]
        parts.append(np.sqrt(max(float(np.einsum("ti,ij,tj->", W, C, W)), 0.0) / max(group.count, 1)))
    return np.array(parts)


def training_columns(regression: Regression) -> Array:
    """Return the root mean square of every column over the training rows of every joint, (groups, b)."""
    result = np.zeros((len(regression.groups), regression.base.rank))
    for own, group in zip(result, regression.groups, strict=True):
        own[group.columns] = np.linalg.norm(group.R[:, :-1], axis=0) / np.sqrt(max(group.count, 1))
    return result


def typical_speeds(regression: Regression) -> dict[str, float]:
    """Return the root mean square speed of the joints with a visible viscous term."""
    speeds = {}
    leaders = regression.base.leaders
    for group in regression.groups:
        for k, column in enumerate(group.columns):
            if leaders[column] == f"fv_{group.name}":
                speeds[group.name] = float(np.linalg.norm(group.R[:, k]) / np.sqrt(max(group.count, 1)))
    return speeds
