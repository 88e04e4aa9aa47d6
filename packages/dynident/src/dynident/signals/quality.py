"""Faults visible in the signals of a log, as sentences: clock, holes, stuck or saturated channels, units, delays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import LogError, require
from dynident.results import Result, stored
from dynident.signals.filters import UNIFORM, Cutoff, automatic_cutoff, extremes, low_passed, stands_still
from dynident.signals.log import FIELDS, Log

Mask = NDArray[np.bool_]

KINDS = (
    *("irregular_clock", "gap", "nan", "outliers", "lost_rows", "still", "dead", "stuck", "held", "saturated", "quantised"),
    *("unit_suspect", "delayed", "too_slow_rate"),
)
#: Steps longer than this many median steps are gaps.
GAP = 1.75
#: Missing stretches up to this long (s) are interpolated; longer ones cut the log.
LONGEST_HOLE = 0.05
#: Fewest samples for a check.
FEWEST = 64
#: Fewest evenly spaced samples of a long log for percentiles and medians.
ENOUGH = 65_536
#: An effort of fewer levels is worth a warning.
COARSE = 16
#: An effort that keeps one exact value on this part of the samples where its joint moves is dead.
DEAD = 0.5
#: A live channel that keeps one exact value this long (s) while its joint moves is stuck.
STUCK = 0.1
#: Outliers: times the usual distance, share of the range, ranges, and share of a channel's samples at most.
FAR, SMALL, BEYOND, MOST = 6.0, 0.1, 20.0, 0.05
#: Share of the moving samples at a limit that shows a limiter without long runs; a sine has one sample per period at its peak.
LIMITED = 0.05
#: Share of the usual step of a joint up to which it is slow, and its friction may break away.
SLOW_STEP = 0.1
#: Runs of a channel that is refreshed slowly: how many at least, and how many of them have the same length.
FEWEST_RUNS, ALIKE = 20, 0.9
#: Lost rows: fewest, smallest share of the rows, and smallest ratio of steps to noise for detection.
FEWEST_LOST, RARE, PRECISE = 5, 0.003, 20.0
#: Steps per block in the search for lost rows, and largest relative difference of steps of an even clock.
STEPS, EVEN = 4096, 1e-6
#: Share of lost rows from which on the clock is an error: speeds are then wrong by 2 %, inertia torques by 4 %.
HARMFUL = 0.02
#: Largest plausible joint angle (rad) and speed (rad/s or m/s) on the joint side.
LARGEST_ANGLE = 4.0 * np.pi
LARGEST_SPEED = 50.0


@dataclass(frozen=True)
class Finding:
    """A finding about a log, or a decision or warning of a fit."""

    kind: str  #: Short code that does not change between versions, as "saturated" or "dead_effort"
    channel: str  #: "time", or quantity and joint as "effort:arm_5_joint"; empty if it concerns no single channel
    severity: str  #: {"info", "warning", "error"}: "info" is dealt with by `prepare`; "warning" may spoil a fit; "error" will
    sentence: str  #: Finding with its number, and remedy
    value: float | None = None  #: The number the decision rests on (s, steps, ratio or fraction)


def note(kind: str, sentence: str, severity: str = "info", channel: str = "") -> Finding:
    """Return a finding that consists of a sentence and its code."""
    return Finding(kind, channel, severity, sentence)


def read_notes(entries: Iterable[Any]) -> tuple[Finding, ...]:
    """Return the notes of a file; up to schema 2 of fits they were sentences, and those of faults began with "suspicion: "."""
    found = []
    for entry in entries:
        if isinstance(entry, Mapping):
            texts = {name: stored(entry, name, str, "note") for name in ("kind", "channel", "severity", "sentence")}
            found.append(Finding(**texts, value=stored(entry, "value", float | None, "note")))
        else:
            fault = str(entry).startswith("suspicion: ")
            sentence = str(entry).removeprefix("suspicion: ")
            found.append(note("fault", sentence, "error") if fault else note("note", sentence))
    return tuple(found)


@dataclass(frozen=True)
class Quality(Result):
    """All findings of one log."""

    name: str  #: Name of the log
    findings: tuple[Finding, ...] = ()  #: Findings in the order of the checks
    derived: ClassVar[tuple[str, ...]] = ("ok",)

    @property
    def ok(self) -> bool:
        """Whether nothing worse than "info" was found."""
        return all(f.severity == "info" for f in self.findings)

    def of(self, kind: str) -> tuple[Finding, ...]:
        """Return the findings of one kind."""
        return tuple(f for f in self.findings if f.kind == kind)

    def summary(self) -> str:
        """Return the findings as text. One line per finding."""
        if not self.findings:
            return f"log '{self.name}': nothing suspicious"
        lines = [f"  {f.severity:8}{f.kind:16}{f.channel}{': ' if f.channel else ''}{f.sentence}" for f in self.findings]
        count = "1 finding" if len(lines) == 1 else f"{len(lines)} findings"
        return "\n".join([f"log '{self.name}': {count}", *lines])


def diagnose(log: Log) -> Quality:
    """Return findings on clock, holes, dead, stuck, saturated or delayed channels and units of a `log`; not a proof."""
    require(log, Log, "log")
    return Segment(log).quality


# ---------------------------------------------------------------------- usable parts of a log
def pieces_without_gaps(log: Log) -> list[tuple[int, int]]:
    """Return the sample ranges between gaps of the clock and long runs of missing values.

    A gap is a step longer than both 1.75 median steps and 0.05 s; a long run is one in position or effort over 0.05 s, or one
    at either end of the log.
    """
    step, samples = np.diff(log.t), log.t.size
    median = float(np.median(step))
    limit = max(GAP * median, LONGEST_HOLE)
    cut = np.zeros(samples, dtype=bool)
    bad = ~np.all(np.isfinite(log.position) & np.isfinite(log.effort), axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], bad.astype(np.int8), [0]])))
    for start, stop in edges.reshape(-1, 2):
        # Runs at the very ends cannot be interpolated, whatever their length.
        if (stop - start) * median > LONGEST_HOLE or start == 0 or stop == samples:
            cut[start:stop] = True
    breaks = np.concatenate([[0], np.flatnonzero(step > limit) + 1, [samples]])
    ranges = []
    for a, b in pairwise(breaks):
        good = np.concatenate([[0], (~cut[a:b]).astype(np.int8), [0]])
        ranges += [(int(a + i), int(a + j)) for i, j in np.flatnonzero(np.diff(good)).reshape(-1, 2)]
    return ranges


#: Findings of logs in use: to examine a log takes as long as to fit it
_found: WeakKeyDictionary[Log, Quality] = WeakKeyDictionary()


class Segment:
    """The longest piece of a log without gaps and long holes, with cached results."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.whole, self._outliers = without_outliers(log)
        self._missing = _missing(log)
        self.ranges = pieces_without_gaps(self.whole)
        self.start, self.stop = max(self.ranges, key=lambda r: r[1] - r[0]) if self.ranges else (0, 0)
        #: The piece on uniform clocks by the rate asked for, whether its samples are new ones, and notes (`preparation`)
        self.clocks: dict[float | str, tuple[Log, bool, list[str]]] = {}

    def __len__(self) -> int:
        return self.stop - self.start

    @cached_property
    def filled(self) -> tuple[Log, int]:
        """The piece with its holes filled, and the number of filled values."""
        everything = (self.start, self.stop) == (0, self.whole.t.size)
        return fill_holes(self.whole if everything else self.whole.rows(self.start, self.stop))

    @cached_property
    def rate(self) -> float:
        """Mean sampling rate [Hz]."""
        t = self.filled[0].t
        return float((t.size - 1) / (t[-1] - t[0]))

    @cached_property
    def extremes(self) -> tuple[Array, Array]:
        """Smallest and largest position of every channel."""
        return extremes(self.filled[0].position)

    @cached_property
    def cutoff(self) -> Cutoff:
        """The automatic cut-off of the positions."""
        return automatic_cutoff(self.rate, self.filled[0].position)

    @property
    def quality(self) -> Quality:
        """Findings about the log, from the clock to the single channels of this piece."""
        if self.log not in _found:
            _found[self.log] = self._examined()
        return _found[self.log]

    def _examined(self) -> Quality:
        log = self.whole
        findings = _clock(log) + self._missing + self._outliers
        if log.t.size < FEWEST or np.isfinite(log.position).mean() <= 0.5:
            return Quality(log.name, tuple(findings))
        findings += _units(log)
        if len(self) < FEWEST:
            return Quality(log.name, tuple(findings))
        suspected = {each.channel for each in findings if each.kind == "unit_suspect"}
        still = stands_still(*self.extremes)
        checks = (_constant, _held, _saturated, _quantised, _too_fast, _other_unit, _delayed)

        def look(j: int) -> list[list[Finding]]:
            channel, known = Channel(self, j, bool(still[j])), f"position:{log.joints[j]}" in suspected
            return [[] if check is _too_fast and known else check(channel) for check in checks]

        found = chain.from_iterable(zip(*map(look, range(len(log.joints))), strict=True))  # check by check
        return Quality(log.name, (*findings, *_lost_rows(self, still), *chain.from_iterable(found), *_rate(self)))


def split_at_gaps(log: Log, shortest: int = 64) -> tuple[Log, ...]:
    """Return the pieces of a `log` between its gaps and long holes, in time order, that have at least `shortest` samples."""
    pieces = [(a, b) for a, b in pieces_without_gaps(log) if b - a >= shortest]
    return (log,) if pieces == [(0, log.t.size)] else tuple(log.rows(a, b) for a, b in pieces)


def fill_holes(log: Log) -> tuple[Log, int]:
    """Interpolate missing positions (cubic spline) and efforts (linear) over the time of a log."""
    filled = 0
    arrays = {}
    for name in ("position", "effort"):
        values = getattr(log, name)
        for j in np.flatnonzero(~np.isfinite(values).all(axis=0)):
            bad = ~np.isfinite(values[:, j])
            values = values if values.flags.writeable else values.copy()
            if (~bad).sum() < 4:
                raise LogError(f"{name} of '{log.joints[j]}' has {int((~bad).sum())} finite samples; at least 4 are needed")
            filled += int(bad.sum())
            if name == "position":
                values[bad, j] = scipy.interpolate.CubicSpline(log.t[~bad], values[~bad, j])(log.t[bad])
            else:
                values[bad, j] = np.interp(log.t[bad], log.t[~bad], values[~bad, j])
        arrays[name] = values
    return (replace(log, **arrays), filled) if filled else (log, 0)


class Channel:
    """One channel of the longest piece of a log, with its speed; channels are processed one by one to save memory."""

    def __init__(self, piece: Segment, j: int, still: bool) -> None:
        log, _ = piece.filled
        self.joint, self.rate, self.still, self.side = log.joints[j], piece.rate, still, log.position_side
        self.position, self.effort = (np.ascontiguousarray(x[:, j]) for x in (log.position, log.effort))
        self.logged = None if log.velocity is None else log.velocity[:, j]
        velocity = low_passed(self.position[:, None], 1.0 / piece.rate, piece.cutoff.frequency, derivative=1)[:, 0]
        self.velocity = np.zeros(0) if self.logged is None else velocity  # only compared with the logged one
        # A joint moves where it is faster than 5 % of its top speed; only there can an effort or velocity be judged.
        speed = np.abs(velocity)
        self.fastest = float(np.percentile(_spaced(speed), 99))
        self.moves: Mask = (speed > 0.05 * self.fastest) & (not still)

    def measured(self, *names: str) -> list[tuple[str, Array]]:
        """Return name and values of those quantities in `names` that were logged."""
        logged = {"position": self.position, "effort": self.effort, "velocity": self.logged}
        return [(name, values) for name in names if (values := logged[name]) is not None]


# ---------------------------------------------------------------------- single samples
def without_outliers(log: Log) -> tuple[Log, list[Finding]]:
    """Return a log in which samples that cannot be measurements are missing, and the finding that counts them.

    A sample is an outlier if it differs from the medians of the three samples before and after it by more than `FAR` times the
    95th percentile of the distance to the mean of both neighbours, which counts as at most four times the 85th percentile
    (`MOST` outliers and their neighbours do not reach it), by three quanta, by `SMALL` of the range of the
    channel and by four times the difference of these medians; or if it is `BEYOND` ranges away. Efforts near standstill, where
    friction breaks away, must differ by the range. A number that is repeatedly an outlier stands for missing values: all
    rows in which every joint has it are missing. Channels with more than `MOST` outliers remain unchanged. Runs of one number
    to which a channel repeatedly jumps while its joint moves are missing too.
    """
    if log.t.size < FEWEST:
        return log, []
    places = [np.flatnonzero(_outliers(x, None)) for x in log.position.T]
    places += [np.flatnonzero(_outliers(x, _near_rest(q))) for x, q in zip(log.effort.T, log.position.T, strict=True)]
    counts = np.array([place.size for place in places])
    if not counts.any():
        return log, []
    bad = {name: np.zeros(log.position.shape, dtype=bool) for name in ("position", "effort")}
    for marked, own in zip(bad.values(), (places[: counts.size // 2], places[counts.size // 2 :]), strict=True):
        for j, place in enumerate(own):
            marked[place, j] = True
    rows = np.zeros(log.t.size, dtype=bool)
    for name, marked in bad.items():
        values, times = np.unique(getattr(log, name)[marked], return_counts=True)
        for value in values[times >= max(FEWEST_LOST, 0.2 * marked.sum())]:
            rows |= np.all(getattr(log, name) == value, axis=1)
    if rows.mean() <= MOST:
        for marked in bad.values():
            marked[rows] = True
    every = np.hstack(list(bad.values()))
    channels = [f"{name}:{joint}" for name in bad for joint in log.joints]
    worst = channels[int(np.argmax(counts))]
    share = float(np.mean(every.any(axis=1)))
    text = (
        f"{int(every.any(axis=1).sum())} of {log.t.size} samples are outliers ({int(rows.sum())} whole rows), most in "
        f"{worst}, and are excluded; check if 0 or -999 marks missing values"
    )
    position, effort = (np.where(marked, np.nan, getattr(log, name)) for name, marked in bad.items())
    found = Finding("outliers", worst if np.count_nonzero(counts) == 1 else "", "warning", text, share)
    return replace(log, position=position, effort=effort), [found]


def _near_rest(position: Array) -> Mask:
    """Mark the samples within three of one at which a joint is slow."""
    slow = np.full(position.size, np.isfinite(position[-1]))
    step = np.abs(np.diff(position))
    some = _spaced(step)
    slow[:-1] = step <= SLOW_STEP * (np.nanpercentile(some, 95) if np.isfinite(some).any() else 0.0)
    near = slow.copy()
    for k in range(1, 4):
        near[k:] |= slow[:-k]
        near[:-k] |= slow[k:]
    return near


def _outliers(x: Array, exempt: Mask | None) -> Mask:
    """Mark the samples of one channel that cannot be measurements; exempt samples only if they are a range away."""
    x = np.ascontiguousarray(x)
    few = x[:: max(x.size // 20_000, 1)]
    low, middle, high = np.nanpercentile(few, (5, 50, 95)) if np.isfinite(few).any() else (0.0, 0.0, 0.0)
    marked = np.zeros(x.size, dtype=bool)
    if not high > low:
        return marked
    off = np.zeros(x.size)
    np.add(x[:-2], x[2:], out=off[1:-1])  # in place, to limit memory
    off[1:-1] *= -0.5
    off[1:-1] += x[1:-1]
    np.abs(off, out=off)
    steps = np.diff(x)
    np.abs(steps, out=steps)
    quantum = float(np.min(steps, where=steps > 0.0, initial=np.inf))
    del steps
    most, usual = np.nanpercentile(_spaced(off), (100.0 * (1.0 - MOST), 100.0 * (1.0 - 3.0 * MOST)))
    limit = max(FAR * float(min(most, 4.0 * usual)), 3.0 * quantum, SMALL * (high - low))
    with np.errstate(invalid="ignore"):
        far = (x > middle + BEYOND * (high - low)) | (x < middle - BEYOND * (high - low))
        seen = np.flatnonzero((off > 0.5 * limit) | far)
        if seen.size:
            at = np.unique(np.clip(seen[:, None] + np.arange(-1, 2), 3, x.size - 4))
            before, after = (np.nanmedian(x[at[:, None] + side], axis=1) for side in (np.arange(-3, 0), np.arange(1, 4)))
            least = np.minimum(np.abs(x[at] - before), np.abs(x[at] - after))
            marked[at] = least > np.maximum(limit, 4.0 * np.abs(after - before))
            marked[at] &= True if exempt is None else ~exempt[at] | (least > high - low)
        marked |= far
    return _dropouts(x, limit, exempt) | (marked if marked.mean() <= MOST else False)


def _dropouts(x: Array, limit: float, exempt: Mask | None) -> Mask:
    """Mark runs of three samples or more of a number to and from which the channel jumps by more than a limit, repeatedly."""
    equal = np.concatenate([[False], x[1:] == x[:-1], [False]])
    start, last = np.flatnonzero(equal[1:] != equal[:-1]).reshape(-1, 2).T
    inner = (last - start >= 2) & (start > 0) & (last < x.size - 1)
    if exempt is not None:  # a joint at rest may need exactly the same effort again
        inner &= ~exempt[(start + last) // 2]
    start, last = start[inner], last[inner]
    with np.errstate(invalid="ignore"):
        jumps = np.minimum(np.abs(x[start - 1] - x[start]), np.abs(x[last + 1] - x[start])) > limit
    values, times = np.unique(x[start[jumps]], return_counts=True)
    marked = np.zeros(x.size, dtype=bool)
    known = np.isin(x[start], values[times >= FEWEST_LOST])
    for a, b in zip(start[known], last[known], strict=True):
        marked[a : b + 1] = True
    return marked


def _lost_rows(piece: Segment, still: Mask) -> list[Finding]:
    """Rows missing or doubled without a trace in the clock: all joints take two steps at once, or none.

    r is the step of all joints over the step of neighbouring samples, with even and with logged stamps, where it is known
    to 0.05. Lost rows give a cluster at r = 2, doubled ones at 0; other disturbances of a clock fill the space between.
    """
    log, moving = piece.filled[0], np.flatnonzero(~still)
    if moving.size == 0 or len(piece) < 4 * FEWEST:
        return []
    dt = np.diff(log.t)
    mean = np.full(dt.size, dt.mean())
    found: dict[int, float] = {1: np.inf, 0: np.inf}
    known = 0
    for interval in (mean,) if np.ptp(dt) < EVEN * mean[0] else (mean, dt):

        def speeds(first: int, last: int, interval: Array = interval) -> tuple[Array, Array]:
            """Return the speeds of some steps, and the medians of the six around them."""
            v = np.diff(log.position[first : last + 7, moving], axis=0) / interval[first : last + 6, None]
            return v[3:-3], _median_of_six([v[k : len(v) - 6 + k] for k in (0, 1, 2, 4, 5, 6)])

        parts = [(first, min(first + STEPS, dt.size - 6)) for first in range(0, dt.size - 6, STEPS)]
        some = [speeds(*part) for part in parts[:: max(dt.size // ENOUGH, 1)]]
        noise = 1.4826 * np.median(np.concatenate([np.abs(own - around) for own, around in some]), axis=0)
        fastest = np.max([np.max(np.abs(own), axis=0) for own, _ in some], axis=0)
        weight = 1.0 / np.maximum(noise, 1e-6 * fastest) ** 2
        counts = np.zeros(4, dtype=int)
        for part in parts:
            own, around = speeds(*part)
            power = around**2 @ weight
            sure = power > PRECISE**2
            r = ((own * around) @ weight)[sure] / power[sure]
            between = (np.abs(r - 1.5) < 0.15) | (np.abs(r - 0.5) < 0.15) | (r < -0.3) | (r > 4.5)
            counts += [np.count_nonzero(x) for x in (sure, between, np.abs(r) < 0.2, np.abs(r - 2.0) < 0.2)]
        known = int(counts[0])
        if known < FEWEST:
            return []
        for lost, before in found.items():
            count = float(counts[2 + lost])
            heap = count >= max(FEWEST_LOST, RARE * known) and count > 5 * counts[1]
            found[lost] = min(before, count if heap else 0.0)
    findings = []
    for lost, times in found.items():
        if times:
            what, how = ("lost", "two steps at once") if lost else ("doubled", "no step")
            text = (
                f"all joints make {how} in {times:.0f} of {known} samples: about {times / known:.1%} of the rows seem "
                f"{what} and restamped; use the time stamps of the controller"
            )
            severity = "error" if times >= HARMFUL * known else "warning"
            findings.append(Finding("lost_rows", "time", severity, text, times / known))
    return findings


def _median_of_six(x: list[Array]) -> Array:
    """Return the medians of six arrays by a network of comparisons, much faster than sorting few values many times."""
    for i, j in ((0, 1), (2, 3), (4, 5), (0, 2), (1, 4), (3, 5), (0, 1), (2, 3), (4, 5), (1, 2), (3, 4), (2, 3)):
        x[i], x[j] = np.minimum(x[i], x[j]), np.maximum(x[i], x[j])
    return np.asarray(0.5 * (x[2] + x[3]))


# ---------------------------------------------------------------------- the single checks
def _clock(log: Log) -> list[Finding]:
    """Jitter and gaps of the time stamps."""
    findings = []
    step = np.diff(log.t)
    median = float(np.median(step))
    gaps = np.flatnonzero(step > GAP * median)
    inside = step[step <= GAP * median]
    jitter = float(np.max(np.abs(inside / median - 1.0))) if inside.size else 0.0
    if jitter > UNIFORM:
        text = f"time steps differ from their median {median:.4g} s by up to {jitter:.1%}; prepare resamples if necessary"
        findings.append(Finding("irregular_clock", "time", "info", text, jitter))
    if gaps.size:
        longest = float(step.max())
        lost = float(np.sum(step[gaps] / median - 1.0))
        text = (
            f"{gaps.size} gaps, the longest {longest:.4g} s after sample {int(np.argmax(step))}, about {lost:.0f} samples "
            "missing; short gaps are interpolated, long ones split the log"
        )
        findings.append(Finding("gap", "time", "warning", text, longest))
    return findings


def _missing(log: Log) -> list[Finding]:
    """NaN and infinity."""
    findings = []
    for name in FIELDS:
        values = getattr(log, name)
        if values is None:
            continue
        for j in np.flatnonzero(~np.isfinite(values).all(axis=0)):
            bad = ~np.isfinite(values[:, j])
            runs = np.flatnonzero(np.diff(np.concatenate([[0], bad.astype(np.int8), [0]]))).reshape(-1, 2)
            longest = int(np.max(runs[:, 1] - runs[:, 0]))
            text = f"{int(bad.sum())} of {bad.size} samples are missing, the longest run {longest} samples"
            severity = "error" if bad.all() else "warning"
            findings.append(Finding("nan", f"{name}:{log.joints[j]}", severity, text, float(bad.mean())))
    return findings


def _constant(channel: Channel) -> list[Finding]:
    """Dead channels (one value nearly always) and stuck ones (one value for a while, in the middle of a motion)."""
    joint, moves, shortest = channel.joint, channel.moves, max(5, int(np.ceil(STUCK * channel.rate)))
    if channel.still:
        span = float(np.ptp(channel.position))
        text = f"stays within {span:.2g}: the joint does not move or its sensor is dead, so its parameters cannot be identified"
        return [Finding("still", f"position:{joint}", "info", text, span)]
    findings = _frozen_position(channel.position, joint, shortest)
    if moves.sum() < shortest:
        return findings
    for name, values in channel.measured("effort", "velocity"):
        x = values[moves]
        value, share = _mode(x)
        if share > DEAD:
            text = f"is exactly {value:g} on {share:.0%} of the samples where the joint moves; exclude the channel"
            findings.append(Finding("dead", f"{name}:{joint}", "error", text, share))
            continue
        # A coarse channel repeats values anyway: the run must be far longer than its usual ones, and end with more than a step.
        usual = 1.0 / max(np.mean(x[1:] != x[:-1]), 1e-9)
        del x
        start, length = _longest_run(values)
        if length < shortest or length <= 20.0 * usual:
            continue
        steps = np.abs(np.diff(values))
        jumps = steps[start + length - 1 : start + length].sum() > 1.5 * np.min(steps[steps > 0.0], initial=np.inf)
        inside = jumps and moves[start : start + length].mean() > 0.5
        if inside and values.min() < values[start] < values.max():
            text = f"is constant at {values[start]:g} for {length} samples from sample {start} while the joint moves"
            findings.append(Finding("stuck", f"{name}:{joint}", "warning", text, length / channel.rate))
    return findings


def _held(channel: Channel) -> list[Finding]:
    """Channels that change only at every k-th sample: all their runs of equal values have the same length.

    Runs of a coarse channel depend on the speed, and its steps are one or two quanta.
    """
    findings = []
    for name, values in () if channel.still else channel.measured("position", "effort"):
        change = np.flatnonzero(values[1:] != values[:-1])
        if not FEWEST_RUNS <= change.size < values.size / 2.5:
            continue
        runs, steps = np.diff(change), np.abs(np.diff(values)[change])
        usual = float(np.median(runs))
        alike = float(np.mean(np.abs(runs - usual) <= 1.0 + 0.1 * usual))
        if usual >= 3.0 and alike > ALIKE and np.median(steps) > 5.0 * steps.min():
            text = (
                f"changes only every {usual:.0f}th sample ({channel.rate / usual:.3g} Hz), which delays it by half of that; "
                f"keep every {usual:.0f}th row, or log it faster"
            )
            findings.append(Finding("held", f"{name}:{channel.joint}", "error", text, usual))
    return findings


def _frozen_position(q: Array, joint: str, shortest: int) -> list[Finding]:
    """A frozen sensor jumps when it wakes up; a joint at rest starts and stops smoothly."""
    start, length = _longest_run(q)
    stop = start + length
    if length < shortest or stop >= q.size:
        return []
    steps = np.abs(np.diff(q))
    usual = float(np.percentile(steps, 99))
    jump = float(steps[stop - 1])
    if jump <= 3.0 * usual or jump == 0.0:
        return []
    text = f"is constant at {q[start]:g} for {length} samples from sample {start} and then jumps by {jump:.3g}"
    return [Finding("stuck", f"position:{joint}", "error", text, float(length))]


def _mode(x: Array) -> tuple[float, float]:
    """The value on more than half of the samples, if there is one, and its share: such a value is the median."""
    value = float(np.median(_spaced(x)))
    return value, float(np.mean(x == value))


def _spaced(x: Array) -> Array:
    """Rows of a long array, evenly spaced and at least `ENOUGH`; a short one as it is."""
    return x[:: max(len(x) // ENOUGH, 1)]


def _levels(x: Array, enough: int) -> int:
    """Number of different values, or some number of at least `enough`."""
    few = np.unique(x[:: max(x.size // 4096, 1)]).size
    return few if few >= enough else np.unique(x).size


def _longest_run(values: Array) -> tuple[int, int]:
    """Start and length of the longest run of equal values."""
    equal = np.concatenate([[False], values[1:] == values[:-1], [False]])
    runs = np.flatnonzero(equal[1:] != equal[:-1]).reshape(-1, 2)  # few, where the values are not coarse
    first, last = max(runs.tolist(), key=lambda run: run[1] - run[0], default=(0, 0))
    return first, last - first + 1


def _saturated(channel: Channel) -> list[Finding]:
    """Efforts (and logged velocities) that pile up at exactly their largest or smallest value."""
    findings = []
    for name, values in channel.measured("effort", "velocity"):
        x = values[channel.moves & np.isfinite(values)]
        if _levels(x, 20) < 20:
            continue
        for level, others, extreme in ((x.min(), np.inf, np.min), (x.max(), -np.inf, np.max)):
            # Levels are rare near the extremes; a limiter produces many there, in unbroken runs.
            count = int(np.count_nonzero(x == level))
            if count < 10 or not level or count <= 5 * np.count_nonzero(x == extreme(x, where=x != level, initial=others)):
                continue
            if (run := _run_of(values, float(level))) >= 5 or count > LIMITED * x.size:
                text = f"stays at its limit {level:.4g} on {count / x.size:.1%} of the moving samples (runs up to {run})"
                findings.append(Finding("saturated", f"{name}:{channel.joint}", "warning", text, float(count / x.size)))
    return findings


def _run_of(values: Array, level: float) -> int:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], (values == level).astype(np.int8), [0]]))).reshape(-1, 2)
    return int(np.max(edges[:, 1] - edges[:, 0])) if edges.size else 0


def _quantised(channel: Channel) -> list[Finding]:
    """Channels with so few levels that the quantum matters."""
    findings = []
    for name, values in channel.measured("position", "effort"):
        x, fewest = values[channel.moves], {"position": 200, "effort": 50}[name]
        if x.size > 4 * fewest and 1 < (levels := _levels(x, fewest)) < fewest and _mode(x)[1] <= DEAD:
            text = f"takes only {levels} different values over {x.size} moving samples; quantisation will be visible in the fit"
            severity = "warning" if name == "effort" and levels < COARSE else "info"
            findings.append(Finding("quantised", f"{name}:{channel.joint}", severity, text, float(levels)))
    return findings


def _units(log: Log) -> list[Finding]:
    """Degrees, millimetres, rpm and encoder counts taken for SI."""
    findings = []
    for j, joint in enumerate(log.joints):
        q = np.ascontiguousarray(log.position[:, j])
        q = q[np.isfinite(q)]
        largest = float(np.max(np.abs(q))) if q.size else 0.0
        channel = f"position:{joint}"
        if largest > 1e3 and np.all(q == np.round(q)):
            text = f"holds whole numbers up to {largest:.0f}; these look like counts, give units={{'position': 'counts'}}"
            findings.append(Finding("unit_suspect", channel, "error", text, largest))
        elif log.position_side == "joint" and largest > LARGEST_ANGLE:
            text = f"reaches {largest:.4g}, too much for rad or m; give unit 'deg' or 'mm' (or position_side='motor')"
            findings.append(Finding("unit_suspect", channel, "error", text, largest))
    return findings


def _too_fast(channel: Channel) -> list[Finding]:
    """Speeds that no joint reaches."""
    if channel.side != "joint" or channel.fastest <= LARGEST_SPEED:
        return []
    text = f"moves at {channel.fastest:.4g} per second, too fast for a joint; check its unit and that of the clock"
    return [Finding("unit_suspect", f"position:{channel.joint}", "error", text, channel.fastest)]


def _rate(piece: Segment) -> list[Finding]:
    """Sampling too slow for the motion: still moving at the highest frequency that can be differentiated."""
    if piece.rate < 20.0:
        text = f"{piece.rate:.3g} Hz is slow for a robot; accelerations will be poor, check the unit of the clock"
        return [Finding("too_slow_rate", "time", "warning", text, piece.rate)]
    band = piece.cutoff.motion_band
    if band <= 0.2 * piece.rate:
        return []
    text = f"the motion has accelerations up to {band:.3g} Hz, under 5 samples per period at {piece.rate:.4g} Hz"
    return [Finding("too_slow_rate", "time", "warning", text, piece.rate)]


#: Logged velocity over differentiated position, and the meaning of the ratio.
RATIOS = {
    180.0 / np.pi: "velocity is in deg/s or position in rad was taken for deg",
    np.pi / 180.0: "position is in degrees while velocity is in rad/s",
    30.0 / np.pi: "velocity is in rpm",
    np.pi / 30.0: "position is in units 9.55 times too large for the velocity",
    1e3: "velocity is in mm/s, or the clock is in ms",
    1e-3: "position is in mm, or the clock runs in ms",
}
#: Largest delay looked for, s.
LONGEST = 0.5
#: Smallest delay worth reporting, samples: a backward difference has half a sample of its own.
SMALLEST = 0.75
#: Smallest delay worth reporting, as a velocity error: omega times delay.
PHASE = 0.02
#: Share of the difference in power between the two signals that the shift must remove.
EXPLAINED = 0.1


def _other_unit(channel: Channel) -> list[Finding]:
    """Logged velocities in another unit than the positions."""
    if channel.logged is None:
        return []
    moves = channel.moves & np.isfinite(channel.logged)
    if moves.sum() < FEWEST:
        return []
    # Medians of magnitudes are independent of delay and robust against spikes.
    ratio = float(np.median(np.abs(channel.logged[moves])) / np.median(np.abs(channel.velocity[moves])))
    if 0.5 < ratio < 2.0 or ratio == 0.0:
        return []
    near = [text for value, text in RATIOS.items() if abs(ratio / value - 1.0) < 0.15]
    what = near[0] if near else "one of the two has another unit or another joint"
    text = f"is {ratio:.4g} times the differentiated position; {what}"
    return [Finding("unit_suspect", f"velocity:{channel.joint}", "error", text, ratio)]


def _delayed(channel: Channel) -> list[Finding]:
    """Logged velocities that come later (or earlier) than the differentiated positions."""
    logged = channel.logged
    if logged is None or channel.still or not np.all(np.isfinite(logged)) or np.ptp(logged) == 0.0:
        return []
    result = delay_between(channel.velocity, logged, channel.rate)
    if result is None or not result.significant:
        return []
    word = "later" if result.delay > 0 else "earlier"
    text = (
        f"comes {abs(result.delay):.4g} s ({abs(result.delay) * channel.rate:.1f} samples) {word} than the "
        f"differentiated position (correlation {result.correlation:.3f} shifted, {result.at_zero:.3f} as it is); "
        "prepare does not use it"
    )
    return [Finding("delayed", f"velocity:{channel.joint}", "warning", text, result.delay)]


@dataclass(frozen=True)
class Delay:
    """Delay of the second signal behind the first."""

    delay: float  # s, positive if the second signal comes later
    deviation: float  # Standard deviation of the delay, s
    correlation: float  # Correlation with the shift
    at_zero: float  # Correlation without the shift
    significant: bool


def delay_between(first: Array, second: Array, rate: float) -> Delay | None:
    """Find the shift that aligns `second` with `first`."""
    x, y = first - first.mean(), second - second.mean()
    if not (np.any(x) and np.any(y)):
        return None
    reach = min(int(LONGEST * rate), x.size // 4)
    lags = np.arange(-reach, reach + 1)
    # Each shift is normalised by its overlap: in a short record the samples shifted out would hide the peak.
    begin, end = np.maximum(-lags, 0), x.size - np.maximum(lags, 0)
    power = [np.concatenate([[0.0], np.cumsum(z * z)]) for z in (x, y)]
    norm = np.sqrt((power[0][end] - power[0][begin]) * (power[1][end + lags] - power[1][begin + lags]))
    product = np.zeros(lags.size)
    beside = np.pad(y, reach)
    block = max(ENOUGH, 8 * reach)
    for at in range(0, x.size, block):
        own, around = x[at : at + block], beside[at : at + block + 2 * reach]
        length = 1 << (own.size + around.size).bit_length()  # zeros behind the signals keep their ends apart
        product += np.fft.irfft(np.fft.rfft(around, length) * np.conj(np.fft.rfft(own, length)), length)[: lags.size]
    window = product / np.maximum(norm, np.finfo(float).tiny)
    k = int(np.argmax(window))
    best = float(window[k])
    if best < 0.5 or k in (0, window.size - 1):
        return None
    left, right = float(window[k - 1]), float(window[k + 1])
    shift = float(lags[k] + 0.5 * (left - right) / (left - 2.0 * best + right))
    derivative = np.diff(x)
    omega = math.sqrt(float(derivative @ derivative) / float(x @ x)) * rate
    independent = max(omega * x.size / rate / math.pi, 1.0)  # 2 B T with B taken as the mean frequency
    deviation = math.sqrt(max(1.0 - best**2, 1e-12) / independent) / (best * omega)
    delay = shift / rate
    at_zero = float(window[reach])
    explains = 1.0 - best**2 < (1.0 - EXPLAINED) * (1.0 - max(at_zero, 0.0) ** 2)
    significant = abs(delay) > 3.0 * deviation and abs(shift) > SMALLEST and omega * abs(delay) > PHASE and explains
    return Delay(delay, deviation, best, at_zero, bool(significant))
