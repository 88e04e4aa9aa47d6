"""Detection of training data that a validation log repeats.

Samples are compared with fingerprints of the training logs (`signals.preparation.fingerprint`), not files. All logs have been
matched to the robot and converted to SI units before, so that names, order and units do not matter.

**Same motion.** Windows of the validation log are found in the training log by the path that the joints take, over arc length,
which does not depend on the clock. A candidate is refined to T = a t + b by least squares, with the same low-pass at the same
instants for both logs. A window repeats the training motion if the positions differ by less than 2 % of the motion in the
window: a model error is a smooth function of the state and differs by about as little, so such a window has no new information
about it. Windows with the same clock form a chain.

**Another motion** nevertheless, if speeds or accelerations differ: the model explains the efforts of the validation log by its
own motion, but the efforts of the training log do not agree (mean squares differ by a factor of more than 4).

**Copy or another run?** Let x1 and x2 be the efforts of both logs at the same instants. Both contain the same motion and the
same model error s. A copy contains the same noise as well, even if processed; another run has independent noise:

    copy:         x2 = x1 + w                      1 - beta = 0
    another run:  x1 = s + n1,  x2 = s + n2        1 - beta = |n1|^2 / |x1|^2 = phi / 2  if both are equally noisy

with beta = <x1, x2> / |x1|^2 and phi = |x2 - x1|^2 / |x1|^2 for every joint and group of frequencies. For a copy, 1 - beta has
mean 0 and variance phi / N + 0.1^2, with N independent values and 0.1 for the imperfections of interpolation. The logarithm of
the likelihood ratio of both hypotheses, summed over joints and frequencies, is expected to be I for another run and -I for a
copy with noise; the log is a copy below -I / 2 and if it hardly differs (mean phi below 0.1). A path too short to tell motions
apart counts only if its samples are certainly copied (below -10, or mean phi below 0.1). A low-pass acts equally on
all joints: its gain is divided out; frequencies removed by it or below the rounding of the fingerprint are not used.
Snippets show the noise above the motion band, rows the noise inside it. Noise added to a copy is in the residual
of the model as well, so a difference larger than this residual is not added noise.

A run with another speed (a != 1), or backwards, is another motion if its efforts differ by what the model says of the speed
(regression coefficient above 1/2), unless they show a copy. More than 5 % of copied motion refuse a log as validation: the rest
is not scored alone, since a log with training data in it is a mistake to be fixed. If at least half of the motion repeats the
training motion, the log shows repeatability only. Not recognised: pieces of less path than a window, a seventh of an
oscillation; positions changed by more than 2 % of the motion.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.results import stored
from dynident.signals.filters import Decimator, low_pass_weights
from dynident.signals.preparation import REACH, Prepared, scale_of

SAME = 0.02  # distance of positions over the motion in the window
GROUPS = 16  # of frequencies, up to half the rate
FAINT = 0.7  # amplitude ratio to the training log, below which a filter has removed these frequencies
SLACK = 0.1  # tolerance of beta for interpolation, filters and rounding of a copy
ALIKE = 0.1  # phi of logs that differ by less than another run would
ADDED, EXPLAINED = 1.3, 4.0  # limits of `explained`: upper for a copy (expected 1), lower for another motion (expected 2)
CERTAIN = 10.0  # ln of the likelihood ratio of a copy by which a short stretch counts
DROWNED = 10.0  # phi of noise in which a copy cannot be recognised
ROUNDED = 100.0  # smallest ratio of power to rounding power of the fingerprint for a comparison
LARGEST = 1e100  # stored numbers, so that products of the unpacked ones stay finite
NOTHING = (0.0, 0.0, np.inf)  # result of `another_run` if no frequency can be compared
Triple = tuple[Array, Array, Array]  # efforts (rows, n): training log, validation log, model


def distance(triples: list[Triple]) -> float:
    """Return the distance of both logs, relative to the effort of each joint."""
    if not triples:
        return 0.0
    there, here, _ = (np.concatenate(parts) for parts in zip(*triples, strict=True))
    return float(np.sum(np.sum((there - here) ** 2, axis=0) / np.maximum(np.sum(here**2, axis=0), 1e-300)))


def explained(triples: list[Triple]) -> float:
    """Return the mean over joints of squared difference of both logs over squared residual of the validation log.

    Noise added to a copy is in both: at most 1; another run with equal noise gives at most 2; a larger ratio is
    explained by the motion: speeds or accelerations differ.
    """
    if not triples:
        return 0.0
    one, other, product, _ = _cells([(there, here) for there, here, _ in triples], 1.0)
    model, _, like = _cells([(p, here) for _, here, p in triples], 1.0)[:3]
    kept = other > FAINT**2 * one  # not removed by a filter
    apart, own, size = (
        np.sum(np.where(kept, x, 0.0), axis=0) for x in (one + other - 2.0 * product, model + other - 2.0 * like, other)
    )
    return float(np.mean(apart / np.maximum(own + SAME**2 * size, 1e-300)))


def is_copy(rows: list[Triple], snippets: list[Triple], rounding: Array, short: bool = False) -> bool:
    """Return whether efforts in the band of the motion and raw samples have the same noise; certain if `short`."""
    if max(explained(rows), explained(snippets)) > ADDED:
        return False
    slow = another_run([(there - p, here - p, p) for there, here, p in rows], 0.3, np.zeros(1))
    # Second differences keep the slow motion from leaking into the frequencies of the noise.
    rough = [(np.diff(there, 2, axis=0), np.diff(here, 2, axis=0), p) for there, here, p in snippets]
    units = [np.diff(np.eye(len(here)), 2, axis=0) for _, here, _ in snippets]  # all impulses have the power of white noise
    white = np.sum([_cells([(unit, unit)], 1.0)[0].sum(axis=1, keepdims=True) for unit in units], axis=0)
    fast = another_run(rough, 0.75, rounding, white) if snippets else NOTHING
    if short and fast is NOTHING:
        return False
    phi = slow[2] if fast is NOTHING else fast[2]
    return slow[0] + fast[0] < (-CERTAIN if short else -0.5 * (slow[1] + fast[1])) or phi < ALIKE


def another_run(
    triples: list[Triple], independent: float, rounding: Array, white: Array | None = None
) -> tuple[float, float, float]:
    """Return ln(likelihood of another run / likelihood of a copy), its expectation for another run, and phi.

    Frequencies removed by a filter, or with less power than rounding (variance `rounding`), are not used. If efforts contain
    the motion, their noise is at most the `white` noise of the quietest frequencies: another run repeats the rest.
    """
    one, other, product, values = _cells([(there, here) for there, here, _ in triples], independent)
    power = np.mean([np.sum(np.hanning(len(there) + 2) ** 2) for there, _, _ in triples])  # of the taper
    faintest = ROUNDED * rounding * power * values / (2.0 * independent)
    with np.errstate(divide="ignore", invalid="ignore"):
        amplitude = np.sqrt(other / one)
        amplitude[np.isnan(amplitude).all(axis=1)] = 0.0
        gain = np.nanmedian(amplitude, axis=1, keepdims=True)  # a filter acts equally on all joints
        passed = gain > FAINT
        gain = np.minimum(gain, 1.0)
        beta, phi = product / one / gain, other / one / gain**2 - 2.0 * product / one / gain + 1.0
        seen = (one > faintest) & (values > 0.0) & passed & (phi < DROWNED)
        quiet = one if white is None else white * np.min(one / white, axis=0, where=one > faintest, initial=np.inf)
        noise = np.minimum(quiet / one, 1.0)  # share
        expected, variance = np.minimum(0.5 * phi, noise), phi / values + SLACK**2
        evidence = expected / variance * (1.0 - beta - 0.5 * expected)
        information = 0.5 * expected**2 / variance
    if not seen.any():
        return NOTHING
    weights = (values * noise)[seen]
    return float(np.sum(evidence[seen])), float(np.sum(information[seen])), float(np.average(phi[seen], weights=weights))


def _cells(pairs: list[tuple[Array, Array]], independent: float) -> Array:
    """Return |x1|^2, |x2|^2, <x1, x2> and the number of independent values, per group of frequencies and joint."""
    sums = np.zeros((4, GROUPS, pairs[0][0].shape[1]))
    for pair in pairs:
        size = len(pair[0])
        taper = np.hanning(size + 2)[1:-1, None]
        one, other = (np.fft.rfft(taper * (x - x.mean(axis=0)), axis=0)[1:] for x in pair)
        group = np.minimum(np.arange(1, len(one) + 1) * 2 * GROUPS // size, GROUPS - 1)
        parts = (np.abs(one) ** 2, np.abs(other) ** 2, (one.conj() * other).real, np.full(one.shape, 2.0 * independent))
        for total, part in zip(sums, parts, strict=True):
            np.add.at(total, group, part)
    return sums


FINE = 8  # samples of the validation log per row of the training log: enough for clocks that are twice as fast
WINDOW = 0.8  # path of a window
MARKS = 9  # compared points of the path of a window
STEP = 0.1  # path between windows of the training log
NEAR = 0.15  # root mean square distance of a candidate; linear interpolation and unknown ends make up to 0.1
MOST = 8  # number of candidates tried per window
BLOCKS, BLOCK = 5, 20  # number of compared blocks of a long validation log, and windows in each
FEWEST = 6  # rows of a window
OSCILLATION = 5.6  # path of one joint, or of all together, that distinguishes motions
SHORT = 1.6  # path that several joints need at least
LEAST = 16  # fewest samples of a slower log in a snippet
LAG = 0.02  # rows by which the clock may be wrong after positions have been compared
COPIED = 0.05  # largest share of copied motion
GRID = np.linspace(0.0, REACH, 1025)
WEIGHTS = low_pass_weights(GRID, REACH)  # table of the low-pass: ten times faster than its formula


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows of a training log: positions z over their scale, and efforts."""

    name: str
    t: Array
    z: Array
    effort: Array
    snippets: list[tuple[Array, Array]]
    rounding: Array  # variance that rounding adds to second differences of the snippets
    own: bool  # the log is another part of the same recording, which cannot be a copy
    back: bool = False  # time runs backwards
    step: float = field(init=False)
    speed: Array = field(init=False)
    length: Array = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", float(self.t[1] - self.t[0]))
        object.__setattr__(self, "speed", np.gradient(self.z, self.step, axis=0))
        object.__setattr__(self, "length", _length(self.z))

    def backwards(self) -> Piece:
        """Return the piece with time reversed."""
        snippets = [(-T[::-1], y[::-1]) for T, y in self.snippets]
        return replace(self, t=-self.t[::-1], z=self.z[::-1], effort=self.effort[::-1], snippets=snippets, back=True)


class Samples:
    """A validation log: positions over their scale, measured and predicted efforts, on a grid finer than the training rows."""

    def __init__(self, t: Array, signals: Array, factor: int) -> None:
        first = Decimator(factor, (t.size - 1) / float(t[-1] - t[0]))
        self.signals, self.start = first.apply(signals), float(t[first.taps.size // 2])
        self.dt = factor / first.rate
        self.t = self.start + self.dt * np.arange(len(self.signals))

    def at(self, times: Array, step: float) -> tuple[Array, NDArray[np.bool_]]:
        """Return the signals at some times, low-passed like rows with this step, and a mask of times inside the log."""
        centre, width = (times - self.start) / self.dt, step / self.dt
        reach = int(np.ceil(REACH * width))
        index = np.floor(centre).astype(np.intp)[:, None] + np.arange(-reach, reach + 2)
        inside = (index[:, 0] >= 0) & (index[:, -1] < self.t.size)
        index = index[inside]
        weights = np.interp(np.abs(index - centre[inside, None]) / width, GRID, WEIGHTS)
        weights /= weights.sum(axis=1, keepdims=True)
        return np.einsum("rk,rkc->rc", weights, self.signals[index]), inside


class Window(NamedTuple):
    """A window of the validation log that takes the path of training rows."""

    a: float
    b: float
    t: Array  # its ends [s]
    efforts: Triple


@dataclass(frozen=True)
class Chain:
    """Windows of one clock T = a t + b."""

    piece: Piece
    windows: list[Window]

    def goes_on(self, window: Window) -> bool:
        """Return whether a window continues the clock of the last one."""
        last, middle = self.windows[-1], float(np.mean(window.t))
        near = abs((last.a - window.a) * middle + last.b - window.b) < 0.25 * self.piece.step
        return near and abs(last.a / window.a - 1.0) < SAME and window.t[0] <= last.t[1] + 1e-9

    def snippets(self, t: Array, effort: Array, predicted: Array) -> list[Triple]:
        """Return efforts at the samples of the validation log that lie in snippets of the training log."""
        middle = np.array([np.mean(w.t) for w in self.windows])
        clock = np.array([w.a * at + w.b for w, at in zip(self.windows, middle, strict=True)])
        a = float(np.median([w.a for w in self.windows]))
        if len(self.windows) > 2:
            a = float(np.sum((middle - middle.mean()) * clock) / np.sum((middle - middle.mean()) ** 2))
        b = float(clock.mean() - a * middle.mean())
        start, end = self.windows[0].t[0], self.windows[-1].t[1]
        dt = (t[1] - t[0]) * a
        lags = max(LAG * self.piece.step, dt) * np.linspace(-1.0, 1.0, 9 if LAG * self.piece.step < dt else 41)
        tried: list[list[Triple]] = [[] for _ in lags]
        for T, logged in self.piece.snippets:
            first, last = (T[[0, -1]] - b) / a
            own = slice(int(np.searchsorted(t, first)), int(np.searchsorted(t, last, side="right")))
            if first < start or last > end or own.stop - own.start < LEAST:
                continue
            x = np.linspace(-1.0, 1.0, own.stop - own.start)
            smooth = np.linalg.qr(np.stack([x**0, x, x**2], axis=1))[0]
            here, p = (y - smooth @ (smooth.T @ y) for y in (effort[own], predicted[own]))
            for lag, found in zip(lags, tried, strict=True):
                y = np.stack([np.interp(a * t[own] + b + lag, T, column) for column in logged.T], axis=1)
                found.append((y - smooth @ (smooth.T @ y), here, p))
        return min(tried, key=distance)

    def own_speed(self, t: Array, effort: Array, predicted: Callable[[float], Array]) -> bool:
        """Return whether efforts differ from those of the training log by what the model says of the other speed."""
        speed = (-1.0 if self.piece.back else 1.0) / float(np.median([w.a for w in self.windows]))
        if abs(speed - 1.0) < SAME:
            return False
        own = [np.flatnonzero((t >= w.t[0]) & (t <= w.t[1])) for w in self.windows]
        clock = np.concatenate([w.a * t[rows] + w.b for w, rows in zip(self.windows, own, strict=True)])
        change = (predicted(1.0) - predicted(round(speed, 2)))[np.concatenate(own)]
        there = np.stack([np.interp(clock, self.piece.t, column) for column in self.piece.effort.T], axis=1)
        each = np.sum(change * (effort[np.concatenate(own)] - there - 0.5 * change), axis=0)
        return bool(np.sum(each / np.maximum(np.var(effort, axis=0), 1e-300)) > 0.0)

    def verdict(self, t: Array, effort: Array, predicted: Callable[[float], Array], short: bool) -> str:
        """Return "copy", "repeat" or "new" (see the top of this module); a short path is never "repeat"."""
        rows, snippets = [w.efforts for w in self.windows], self.snippets(t, effort, predicted(1.0))
        again = "new" if short or self.own_speed(t, effort, predicted) else "repeat"
        if not any(np.any(there) for there, _, _ in rows):  # a fit to positions alone
            return again
        if max(explained(rows), explained(snippets)) > EXPLAINED:
            return "new"
        return "copy" if not self.piece.own and is_copy(rows, snippets, self.piece.rounding, short) else again


class Overlap(NamedTuple):
    """Overlap of a validation log with the training logs, as shares of its motion, and its place."""

    copied: float = 0.0
    repeated: float = 0.0
    where: str = ""


def overlap(
    sources: Iterable[Mapping[str, Any]], checksum: str, prepared: Prepared, predicted: Callable[[float], Array]
) -> Overlap:
    """Return the overlap of a prepared log with the sources of a fit.

    `predicted` returns the model's efforts at its samples for velocities multiplied by a factor. A source with the same
    `checksum` is another part of the same recording: its later periods are other runs, not copies.
    """
    q, n = prepared.motion.q, prepared.motion.q.shape[1]
    stored, total = [], 0
    for own, source in ((source["motion"], source) for source in sources if "motion" in source):
        total += own["total"]
        snippets = [unpacked(each) for each in own["samples"]]
        rounding = np.max([np.square(each["size"]) for each in own["samples"]] or [np.zeros(n)], axis=0) / 2.0
        stored += [
            (str(source["name"]), *unpacked(each), snippets, rounding, source["sha256"] == checksum) for each in own["rows"]
        ]
    stored = [each for each in stored if each[2].shape[1] == 2 * n and len(each[1]) >= FEWEST]
    if not stored:
        return Overlap()
    spread = np.sqrt(np.var(q, axis=0) + np.var(np.vstack([rows[:, :n] for _, _, rows, *_ in stored]), axis=0))
    scale = scale_of(spread)
    pieces = [Piece(name, t, rows[:, :n] / scale, rows[:, n:], *noise) for name, t, rows, *noise in stored]
    step = min(piece.step for piece in pieces)
    factor = max(1, min(int(step * prepared.rate) // FINE, len(prepared) // 50))
    samples = Samples(prepared.motion.t, np.hstack([q / scale, prepared.effort, predicted(1.0)]), factor)
    every = max(1, round(step / samples.dt))
    t, z = samples.t[::every], samples.signals[::every, :n]
    length = _length(z)
    starts = np.arange(0.0, length[-1] - WINDOW, WINDOW / 2.0)
    if not starts.size:
        return Overlap()
    if starts.size > BLOCKS * BLOCK:
        first = np.linspace(0, starts.size - BLOCK, BLOCKS).astype(int)
        starts = starts[(first[:, None] + np.arange(BLOCK)).ravel()]
    ends = np.interp(np.stack([starts, starts + WINDOW]), length, t).T
    chains: list[Chain] = []
    for piece in (*pieces, *(piece.backwards() for piece in pieces)):
        chains += _chains(piece, samples, ends, _paths(length, z, starts), n)
    kept = sum(piece.t.size for piece in pieces) / max(total, 1)  # fingerprints of long logs are incomplete
    copied, repeated, where = _shares(chains, ends, prepared, predicted)
    return Overlap(min(copied / kept, 1.0), min(repeated / kept, 1.0), where)


def _length(z: Array) -> Array:
    """Return the length of the path at every row."""
    return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(z, axis=0), axis=1))])


def _paths(length: Array, z: Array, starts: Array) -> Array:
    """Return the paths of windows: positions at equal distances, one row per window."""
    at = starts[:, None] + np.linspace(0.0, WINDOW, MARKS)
    return np.stack([np.interp(at, length, column) for column in z.T], axis=-1).reshape(starts.size, -1)


def _chains(piece: Piece, samples: Samples, ends: Array, paths: Array, n: int) -> list[Chain]:
    """Return the windows of a validation log that repeat a piece of a training log."""
    last = piece.length[-1] - WINDOW
    if last <= 0.0:
        return []
    starts = np.append(np.arange(0.0, last, STEP), last)
    trained = _paths(piece.length, piece.z, starts)
    square = (paths**2).sum(axis=1)[:, None] + (trained**2).sum(axis=1) - 2.0 * paths @ trained.T
    distance = np.sqrt(np.maximum(square, 0.0) / MARKS)
    chains: list[Chain] = []
    for own, row in zip(ends, distance, strict=True):
        around = np.concatenate([[np.inf], row, [np.inf]])
        near = np.flatnonzero((row <= around[:-2]) & (row < around[2:]) & (row < NEAR))
        for place in near[np.argsort(row[near])][:MOST]:
            there = np.interp([starts[place], starts[place] + WINDOW], piece.length, piece.t)
            window = _refined(piece, samples, own, there, n)
            if window is None:
                continue
            chain = next((chain for chain in chains if chain.goes_on(window)), None)
            if chain is None:
                chains.append(Chain(piece, [window]))
            elif chain.windows[-1].t[0] < window.t[0]:
                chain.windows.append(window)
    return chains


def _refined(piece: Piece, samples: Samples, own: Array, there: Array, n: int) -> Window | None:
    """Return a window after fitting its clock T = a t + b to the positions; None if these differ."""
    a = (there[1] - there[0]) / (own[1] - own[0])
    b = there[0] - a * own[0]
    converged = False
    for left in reversed(range(6)):
        if not 0.1 < a < 10.0:
            return None
        rows = np.flatnonzero((piece.t >= a * own[0] + b) & (piece.t <= a * own[1] + b))
        found, inside = samples.at((piece.t[rows] - b) / a, piece.step / a)
        rows = rows[inside]
        if rows.size < FEWEST:
            return None
        z, T = piece.z[rows], piece.t[rows]
        error = found[:, :n] - z
        misfit = float(np.sum(error**2) / max(np.sum((z - z.mean(axis=0)) ** 2), 1e-300))
        if converged or left == 0 or (left < 4 and misfit > 1.0):
            break
        middle = T.mean()
        slope = np.stack([piece.speed[rows], piece.speed[rows] * (T - middle)[:, None]], axis=-1).reshape(-1, 2)
        gram = slope.T @ slope
        if gram[0, 0] * gram[1, 1] <= 1.0001 * gram[0, 1] ** 2:  # no motion
            return None
        shift, stretch = np.linalg.solve(gram, slope.T @ error.reshape(-1))
        a, b = a * (1.0 + stretch), b + shift + stretch * (b - middle)
        converged = abs(shift) + abs(stretch) * (T[-1] - T[0]) < 0.1 * piece.step
    if misfit > SAME**2:
        return None
    return Window(float(a), float(b), own, (piece.effort[rows], found[:, n : 2 * n], found[:, 2 * n :]))


def _shares(chains: Sequence[Chain], ends: Array, prepared: Prepared, predicted: Callable[[float], Array]) -> Overlap:
    """Return the shares of windows covered by copies and by other runs of the same motion, and their places."""
    n = prepared.motion.q.shape[1]
    copied, repeated = np.zeros(len(ends), dtype=bool), np.zeros(len(ends), dtype=bool)
    spans: dict[str, list[tuple[str, float, float]]] = {"copy": [], "repeat": []}
    for chain in chains:
        short = len(chain.windows) + 1 < min(2.0 * max(SHORT, OSCILLATION / n) / WINDOW, 0.5 * len(ends))
        kind = chain.verdict(prepared.motion.t, prepared.effort, predicted, short)
        if kind == "new":
            continue
        covered = np.isin(ends[:, 0], [w.t[0] for w in chain.windows])
        (copied if kind == "copy" else repeated)[covered] = True
        first, last = chain.windows[0], chain.windows[-1]
        span = first.a * first.t[0] + first.b, last.a * last.t[1] + last.b
        spans[kind].append((chain.piece.name, *((-span[1], -span[0]) if chain.piece.back else span)))
    where = _listed(spans["copy"] or spans["repeat"], 2.0 * float(np.mean(ends[:, 1] - ends[:, 0])))
    return Overlap(float(np.mean(copied)), float(np.mean(copied | repeated)), where)


def _listed(spans: list[tuple[str, float, float]], gap: float) -> str:
    """Return stretches of training logs in words; stretches closer than `gap` are merged."""
    joined: list[tuple[str, float, float]] = []
    for name, start, end in sorted(spans):
        if joined and joined[-1][0] == name and start < joined[-1][2] + gap:
            joined[-1] = (name, joined[-1][1], max(end, joined[-1][2]))
        else:
            joined.append((name, start, end))
    listed = [f"'{name}' from {start:.4g} s to {end:.4g} s" for name, start, end in joined]
    return ", ".join(listed[:3]) + (" ..." if len(listed) > 3 else "")


def unpacked(piece: Mapping[str, Any]) -> tuple[Array, Array]:
    """Return times and rows of a stored piece."""
    low, size = np.asarray(piece["low"], dtype=float), np.asarray(piece["size"], dtype=float)
    levels = np.frombuffer(base64.b64decode(piece["levels"], validate=True), dtype="<u2").reshape(-1, low.size)
    t = float(piece["start"]) + float(piece["step"]) * np.arange(len(levels))
    return t.astype(np.float64), np.asarray(low + size * levels)


def is_whole(found: Any) -> bool:
    """Return whether a stored fingerprint can be compared with a log."""
    try:
        parts = [stored(found, key, list[dict[str, Any]], "motion") for key in ("rows", "samples")]
        if stored(found, "total", int, "motion") <= 0 or not all(_is_piece(each) for part in parts for each in part):
            return False
    except DynidentError:  # a file that was edited
        return False
    return all(len({len(each["low"]) for each in part}) <= 1 for part in parts)


def _is_piece(each: dict[str, Any]) -> bool:
    """Return whether a stored piece can be unpacked."""
    low, size = (stored(each, name, Array, "piece") for name in ("low", "size"))
    step, start = (stored(each, name, float, "piece") for name in ("step", "start"))
    text = stored(each, "levels", str, "piece").encode("utf-8", "replace")
    try:
        levels = base64.b64decode(text, validate=True)
    except binascii.Error:
        return False
    if low.ndim != 1 or low.shape != size.shape or not low.size or not step > 0.0:
        return False
    return bool(np.abs([*low, *size, step, start]).max() < LARGEST) and len(levels) % (2 * low.size) == 0
