"""From a log to motion and effort for least squares; every decision is recorded with its numbers."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import LogError, SignalWarning, warn
from dynident.figures import over_time
from dynident.mechanics.functions import Motion
from dynident.results import Result
from dynident.signals.clock import stamps_are_noise, to_uniform
from dynident.signals.filters import (
    FEWEST_SAMPLES,
    HALF,
    RATIO,
    SHORT,
    UNIFORM,
    Cutoff,
    Decimator,
    Triple,
    automatic_cutoff,
    butterworth_part,
    check_cutoff,
    choose_cutoff,
    extremes,
    parts_of,
    rounding_span,
    stray,
)
from dynident.signals.log import Log
from dynident.signals.periodic import METHODS
from dynident.signals.quality import LONGEST_HOLE, Finding, Quality, Segment

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Fewest rows after decimation, for which the band may be widened: the 2 x 6 rows lost at the ends are then a small part.
FEWEST_ROWS = 80
#: Rows below which the shorter decimation filter is used.
FEW_ROWS = 40
#: Ratio of noise to motion in the accelerations above which a warning reports biased inertias.
BIASED = 0.03
PHASES = ("zero", "causal")
#: Samples at each end, in periods of the cut-off, with end effects of the filter.
SPOILED = 1.5
#: A joint rests while its speed stays below this many standard deviations of its noise ...
DEAD_ZONE = 3.0
#: ... for this many periods of the cut-off.
REST = 2.0
#: RMS motion relative to the largest one, below which a joint may be stationary.
SMALL = 0.01
#: Largest number of states of a log used to find its period.
STATES = 4096
#: Fingerprints of logs hold positions and efforts in 16 bits, that is, to 1.5e-5 of their range.
LEVELS = 65535
ROW = 0.08  # path per row at the usual speed: 70 rows for one oscillation, whose path is 4 sqrt(2)
REACH = 3  # half length of a fingerprint's low-pass in rows
PIECE = 512  # rows of a piece of a long log, and how many pieces are kept, evenly spaced
MOST_PIECES = 20
SNIPPETS, SNIPPET = 32, 64  # number of snippets of raw samples, for the noise, and samples of each
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Prepared(Result):
    """Motion and effort of one continuous, uniformly sampled stretch of a log."""

    joints: tuple[str, ...]  #: Channel names of the columns
    motion: Motion  #: t (N,), q, v, a (N, n) at the full rate, on the side where the positions were measured
    #: (N, n), Nm or N (effort times drive gain) at the same samples, not filtered, unless a causal filter makes the
    #: motion late
    effort: Array
    #: (N, n), efforts after the low-pass of the positions, harmless if both sides of ``tau = W phi`` are filtered
    #: equally. Without decimation the regressor is not filtered, and these are the efforts as logged.
    filtered: Array
    decimator: Decimator  #: The parallel filter to apply to both regressor columns and efforts, axis 0
    rate: float  #: Sampling rate of motion and effort in Hz
    cutoff: Cutoff  #: The low-pass frequency of the differentiation, and why
    #: (n,), standard deviation of the noise left in the velocities, rad/s or m/s. ``motion.v`` is zero where a joint
    #: rests, that is where its speed stays within three of these.
    velocity_noise: Array
    quality: Quality  #: Findings about the log
    explanation: str  #: Every decision, one per line
    method: str  #: Differentiation method
    position_side: str  #: As in the log
    temperature: Array | None = None  #: (N, n), degC at the same samples, if the log has it
    #: (N, n), False where a joint is too slow for its samples to be used; None when all are used (``standstill=0``)
    moving: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return int(self.motion.t.size)

    def summary(self) -> str:
        """Return every decision and finding about the log as text."""
        return f"{self.explanation}\n{self.quality.summary()}"

    def plot(self) -> Figure:
        """Draw positions, velocities and accelerations after the filter, and the efforts before it, one curve per joint."""
        m = self.motion
        panels = {
            "position [rad, m]": m.q,
            "velocity [1/s]": m.v,
            "acceleration [1/s\u00b2]": m.a,
            "effort [N m, N]": self.effort,
        }
        return over_time(m.t, panels, self.joints, f"low-pass {self.cutoff.frequency:.3g} Hz")


def prepare(
    log: Log,
    *,
    method: str = "butterworth",
    cutoff: float | str = "auto",
    decimation: int | str = "auto",
    resample: float | str = "auto",
    period: float | None = None,
    standstill: float = 0.0,
    band: float | str = "auto",
    order: int = 4,
    phase: str = "zero",
    like: Prepared | None = None,
) -> Prepared:
    """Check, resample, differentiate and choose the decimation.

    Parameters
    ----------
    log : Log
        Measured log.
    method : {"butterworth", "fourier"}
        How positions become velocities and accelerations; "fourier" needs `period`.
    cutoff : float or "auto"
        Low-pass frequency in Hz; "auto" reads it from the spectrum (`automatic_cutoff`).
    decimation : int or "auto"
        Factor of the parallel decimation; "auto" keeps the band of the motion.
    resample : float or "auto"
        New uniform rate in Hz; "auto" keeps the log's own rate and resamples only an irregular clock.
    period : float, optional
        Period in s of a periodic trial, for "fourier".
    standstill : float
        Leave out samples of a joint below this share of its RMS speed, 0 (use all) to below 1. Friction near standstill
        is not fc sign(v): a sticking joint carries any torque up to fc. 0.1 loses little of an exciting motion.
    band : float or "auto"
        Frequency in Hz up to which rows are kept by the parallel decimation; "auto" is the band of the motion.
    order : int
        Order of the "butterworth" filter in one direction, 1 to 10.
    phase : {"zero", "causal"}
        "zero" filters forward and backward; "causal" only forward, as a controller does on line: positions and efforts pass
        the same filter then and are late by the same delay.
    like : Prepared, optional
        Take cut-off and decimated band from another log wherever they are "auto", so that a fit is judged in the band it
        was made in.

    Returns
    -------
    Prepared
        With an explanation of every decision.
    """
    options = Options(method, cutoff, decimation, resample, period, standstill, band, order, phase, like)
    return Preparation(Segment(log), options).part()


@dataclass(frozen=True)
class Options:
    """Arguments of `prepare`, with the checks that need no log."""

    method: str = "butterworth"
    cutoff: float | str = "auto"
    decimation: int | str = "auto"
    resample: float | str = "auto"
    period: float | None = None
    standstill: float = 0.0
    band: float | str = "auto"
    order: int = 4
    phase: str = "zero"
    like: Prepared | None = None

    def __post_init__(self) -> None:
        for name in ("cutoff", "band", "decimation"):
            value = getattr(self, name)
            if isinstance(value, np.ndarray) and value.ndim == 0:  # result of NumPy functions
                object.__setattr__(self, name, value.item())
        if self.method not in METHODS:
            raise LogError(f"method is {self.method!r}; it must be one of {', '.join(METHODS)}")
        if self.method == "fourier" and self.period is None:
            raise LogError("method 'fourier' needs period=, the period of the motion in s")
        if self.phase not in PHASES:
            raise LogError(f"phase is {self.phase!r}; it must be one of {', '.join(PHASES)}")
        order, standstill = self.order, self.standstill
        if isinstance(order, bool) or not isinstance(order, int | np.integer) or not 1 <= order <= 10:
            raise LogError(f"order is {order!r}; give a whole number from 1 to 10")
        if self.method != "butterworth" and (order != 4 or self.phase != "zero"):
            raise LogError(f"order= and phase= belong to method 'butterworth', not to '{self.method}'")
        if isinstance(standstill, bool | str) or not 0.0 <= standstill < 1.0:
            raise LogError(f"standstill is {standstill!r}; give a share of the RMS speed, 0 to below 1 (0.1 is usual)")
        if self.like is not None and self.cutoff == "auto":
            object.__setattr__(self, "cutoff", self.like.cutoff.frequency)


class Preparation:
    """Every decision of `prepare` about a log; `part` computes motion and efforts of all or some samples.

    With `between`, first and last time [s], only samples between them are kept; samples around them are used by the filters.
    """

    def __init__(self, piece: Segment, options: Options, between: tuple[float, float] | None = None) -> None:
        whole, self.options, self.quality = piece.whole, options, piece.quality
        self._gain = whole.drive_gain()  # refuse a current without a gain before anything else
        _warn(self.quality)
        size = f"{len(whole)} samples, {whole.duration:.4g} s, {len(whole.joints)} channels"
        notes = [f"log '{whole.name}': {size}, {whole.effort_kind}"]
        notes += [f"{f.severity}: {f.channel} {f.sentence}" for f in self.quality.findings if f.severity != "info"]
        log, resampled = _one_clock(piece, options.resample, notes)
        self.log = log
        self._low, self._high = extremes(log.position) if resampled else piece.extremes
        samples, self.rate = log.t.size, (log.t.size - 1) / float(log.t[-1] - log.t[0])
        self.cutoff = chosen = _cutoff(piece, log, self.rate, options.cutoff, resampled, self._low < self._high, notes)
        spoiled = 0 if options.method == "fourier" else math.ceil(SPOILED * self.rate / chosen.frequency)
        if samples - 2 * spoiled < 4 * HALF:
            raise LogError(
                f"log '{log.name}' has {samples} samples, but the filter at {chosen.frequency:.4g} Hz removes {spoiled} at "
                f"each end; record longer or give a higher cutoff= (duration {log.duration:.3g} s)"
            )
        self.kept, count = slice(spoiled, samples - spoiled), samples - 2 * spoiled
        if between is not None:
            half, t = 0.5 / self.rate, log.t[self.kept]
            first, last = (spoiled + int(np.searchsorted(t, x)) for x in (between[0] - half, between[1] + half))
            self.kept = slice(first, last)
        #: Parts that are filtered at once; methods other than Butterworth's need the whole signal.
        self.parts = [slice(0, samples)]
        if options.method == "butterworth" and not options.standstill:
            self.parts = parts_of(samples, 1.0 / self.rate, check_cutoff(chosen.frequency, self.rate, samples), options.order)
        if log.velocity is not None or log.acceleration is not None:
            notes.append("logged velocities and accelerations are not used: they may be delayed or filtered, positions are not")
        notes.append(
            f"{options.method}: positions low-passed at {chosen.frequency:.4g} Hz, {spoiled} samples dropped at each end"
        )
        self._motion: Triple | None = None  # of all samples, if they are one part
        self._shortest_rest = math.ceil(REST * self.rate / chosen.frequency)
        self._look_at_noise(notes)
        self._look_at_rests(notes)
        self.slowest: Array | None = None
        self.moving: NDArray[np.bool_] | None = None
        if options.standstill:
            self.slowest, self.moving = _moving(self._samples(self.kept)[1], options.standstill, log.joints, notes)
        if chosen.noise > BIASED:
            text = (
                f"log '{log.name}': noise is {chosen.noise:.0%} of the accelerations below {chosen.band:.3g} Hz, so "
                f"inertias are too small by about {chosen.noise / (1.0 + chosen.noise):.0%}; move faster, or use IV or TLS"
            )
            notes.append(text)
            warn(text, SignalWarning)
        wanted = _band(options.band, self.rate, chosen.band if options.like is None else options.like.decimator.cutoff)
        self.decimator = _decimator(
            log.name, options.decimation, self.rate, wanted, chosen.frequency, count, options.band != "auto", notes
        )
        self.explanation = "\n".join(notes)
        if self.decimator.length(len(self)) < 1 and between is not None:
            raise LogError(
                f"between {between[0]:.6g} s and {between[1]:.6g} s {len(self)} samples can be used, fewer than the "
                f"{self.decimator.taps.size} that a row of the decimation needs; give a longer part"
            )

    def __len__(self) -> int:
        return self.kept.stop - self.kept.start

    @property
    def t(self) -> Array:
        """Times of the samples that are kept."""
        return self.log.t[self.kept]

    def measured(self, first: int, last: int) -> Array:
        """Return positions after the filter and efforts before it, side by side, of a piece of the kept samples."""
        own = slice(self.kept.start + first, self.kept.start + last)
        return np.hstack([self._samples(own)[0], self._effort(own)])

    def efforts(self, starts: Iterable[int], length: int) -> list[Array]:
        """Return efforts before the filter of pieces of the kept samples."""
        return [self._effort(slice(self.kept.start + first, self.kept.start + first + length)) for first in starts]

    def part(self, first: int = 0, last: int | None = None) -> Prepared:
        """Return the prepared data of the kept samples from `first` to `last` (exclusive)."""
        log, chosen = self.log, self.cutoff
        own = slice(self.kept.start + first, self.kept.stop if last is None else self.kept.start + last)
        effort = filtered = self._effort(own)
        # Without decimation the regressor is not low-passed: filtering only the effort would smooth the jumps of friction.
        if self.options.phase == "zero" and self.decimator.factor > 1:
            filtered = self._effort(own, low_passed=True)
        return Prepared(
            joints=log.joints,
            motion=Motion(log.t[own], *self._samples(own)),
            effort=effort,
            filtered=filtered,
            decimator=self.decimator,
            rate=self.rate,
            cutoff=chosen,
            velocity_noise=self.velocity_noise,
            quality=self.quality,
            explanation=self.explanation,
            method=self.options.method,
            position_side=log.position_side,
            temperature=None if log.temperature is None else log.temperature[own],
            moving=None if self.moving is None else self.moving[first:last],
        )

    def _effort(self, own: slice, low_passed: bool = False) -> Array:
        """Return efforts of some samples, delayed by a causal filter like the motion."""
        effort = self.log.effort[own]
        if low_passed or self.options.phase == "causal":
            effort = self._filtered(self.log.effort, own, derivatives=False)[0]
        return np.ascontiguousarray(effort if self._gain is None else effort * self._gain)

    def _filtered(self, values: Array, own: slice, causal: bool | None = None, derivatives: bool = True) -> Triple:
        """Return some samples of a signal (N, n) after the filter, and their derivatives."""
        o, frequency = self.options, self.cutoff.frequency
        if o.method == "butterworth":
            causal = o.phase == "causal" if causal is None else causal
            return butterworth_part(values, 1.0 / self.rate, frequency, own, int(o.order), causal, derivatives)
        more = {"period": o.period} if o.method == "fourier" else {}
        q, v, a = METHODS[o.method](self.rate, values, frequency, **more)
        return q[own], v[own], a[own]

    def _look_at_noise(self, notes: list[str]) -> None:
        """Find the noise of the velocities and the joints at rest, which move by no more than rounding or noise."""
        log, frequency = self.log, self.cutoff.frequency
        spread = _Spread()
        for part in self.parts:
            smooth = self._filtered(log.position, part, causal=False)  # the change by a causal filter is mostly delay
            if len(self.parts) == 1 and self.options.phase == "zero":
                self._motion = smooth
            spread.add(np.hstack([log.position[part], log.position[part] - smooth[0]]))
        variance, removed = np.split(spread.variance, 2)
        # sigma_v^2 = 4 pi^2 S fc^3 / 3, S: density of the removed noise
        density = removed / max(self.rate / 2.0 - frequency, 0.1 * self.rate)
        self.velocity_noise = np.asarray(np.sqrt(4.0 * np.pi**2 * density * frequency**3 / 3.0))
        share = frequency / self.rate  # cycles per sample
        noisy = removed >= 0.5 * (1.0 - 2.0 * share) * variance
        narrow = self._high - self._low <= rounding_span(self._low, self._high, share)
        self.still = narrow | (noisy & (variance < SMALL**2 * np.max(variance)))
        if np.any(self.still):
            names = ", ".join(joint for joint, held in zip(log.joints, self.still, strict=True) if held)
            notes.append(f"stationary, position changes within rounding and noise: {names}")

    def _look_at_rests(self, notes: list[str]) -> None:
        """Find the duration of rests, and select every `step`-th of the kept states."""
        samples, count, states = self.log.t.size, np.zeros(len(self.log.joints)), []
        self.step = -(-len(self) // STATES) or 1
        for part in self.parts:
            q, v, a, resting = self._at_rest(part)
            count += resting.sum(axis=0)
            self._motion = (q, v, a) if len(self.parts) == 1 else None
            first = max(self.kept.start - part.start, 0)
            own = slice(
                first + (self.kept.start - part.start - first) % self.step, max(self.kept.stop - part.start, 0), self.step
            )
            states.append((q[own].copy(), v[own].copy()))
        self.states = tuple(np.concatenate(each) for each in zip(*states, strict=True))
        if count.any():
            shares = [f"{j} {100 * c / samples:.1f} %" for j, c in zip(self.log.joints, count, strict=True) if c]
            runs = f"speed within its noise for at least {self._shortest_rest} samples"
            notes.append(f"at rest ({runs}): {', '.join(shares)} of the time")

    def _at_rest(self, own: slice) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
        """Return q, v, a of some samples and a mask of joints at rest; there v is 0, since its sign would be noise.

        A joint rests while its velocity stays within `DEAD_ZONE` standard deviations for longer than the filter memory;
        a zero crossing is not rest.
        """
        # Enough samples on both sides to see whether a run is long.
        wide = slice(max(own.start - self._shortest_rest, 0), min(own.stop + self._shortest_rest, self.log.t.size))
        q, v, a = self._motion or self._filtered(self.log.position, wide)
        if np.any(self.still):
            q[:, self.still] = 0.5 * (self._low + self._high)[self.still]
            v[:, self.still] = a[:, self.still] = 0.0
        resting = np.zeros(v.shape, dtype=bool)
        for j in range(v.shape[1]):
            slow = np.abs(v[:, j]) < DEAD_ZONE * self.velocity_noise[j]
            edges = np.flatnonzero(np.diff(np.concatenate([[False], slow, [False]]).astype(np.int8))).reshape(-1, 2)
            for first, last in edges[edges[:, 1] - edges[:, 0] >= self._shortest_rest]:
                resting[first:last, j] = True
        v[resting] = 0.0
        inner = slice(own.start - wide.start, own.stop - wide.start)
        return q[inner], v[inner], a[inner], resting[inner]

    def _samples(self, own: slice) -> Triple:
        """Return q, v, a of some samples, joints at rest held."""
        if self._motion is not None:
            q, v, a = (x[own] for x in self._motion)
        else:
            q, v, a, _ = self._at_rest(own)
        return np.ascontiguousarray(q), np.ascontiguousarray(v), np.ascontiguousarray(a)

    def period(self) -> float:
        """Return the number of samples after which the motion repeats itself; inf if never."""
        return self.step * period_of(*self.states)


class _Spread:
    """Variances of columns, accumulated part by part."""

    def __init__(self) -> None:
        self.count, self.mean, self.square = 0, np.zeros(()), np.zeros(())

    def add(self, x: Array) -> None:
        """Add rows."""
        count, apart = self.count + len(x), x.mean(axis=0) - self.mean
        self.square = self.square + x.var(axis=0) * len(x) + apart**2 * (self.count * len(x) / count)
        self.mean, self.count = self.mean + apart * (len(x) / count), count

    @property
    def variance(self) -> Array:
        """Variance of every column."""
        return np.asarray(self.square / self.count)


def common_cutoff(pieces: Sequence[Segment]) -> Cutoff:
    """Choose one low-pass frequency for all logs of a fit."""
    clocks = [_one_clock(piece, "auto", []) for piece in pieces]
    if len(pieces) == 1 and not clocks[0][1]:
        return pieces[0].cutoff
    rates = [(log.t.size - 1) / log.duration for log, _ in clocks]
    rate = min(rates)
    records = [
        (log if own <= 1.01 * rate else to_uniform(log, rate)).position for (log, _), own in zip(clocks, rates, strict=True)
    ]
    records = [q for q in records if q.shape[0] >= FEWEST_SAMPLES]
    if not records:
        name = pieces[0].whole.name
        raise LogError(f"log '{name}': too few samples for a spectrum ({FEWEST_SAMPLES} are needed); give cutoff=")
    return choose_cutoff(rate, records)


def _moving(v: Array, standstill: float, joints: tuple[str, ...], notes: list[str]) -> tuple[Array, NDArray[np.bool_]]:
    """Return the slowest used speeds, and where joints are used; one that never moves is: its friction columns are zero."""
    slowest = standstill * np.sqrt(np.mean(v**2, axis=0))
    slow = np.abs(v) < slowest
    shares = ", ".join(f"{joint} {100 * share:.1f} %" for joint, share in zip(joints, slow.mean(axis=0), strict=True))
    notes.append(
        f"excluded because slower than {standstill:g} of the RMS speed, where friction is undetermined: {shares} of the time"
    )
    return slowest, np.asarray(~slow)


def _warn(quality: Quality) -> None:
    """Warn about findings on used channels: clock, positions and efforts; logged velocities are not used."""
    serious = [f for f in quality.findings if f.severity != "info" and not f.channel.startswith(("velocity", "acceler"))]
    alike: dict[tuple[str, str], list[Finding]] = {}  # one unit is wrong for all joints: reported once
    for finding in serious:
        alike.setdefault((finding.kind, finding.channel.partition(":")[0]), []).append(finding)
    told = [
        f"{own[0].channel}{f' (and {len(own) - 1} more like it)' if len(own) > 1 else ''} {own[0].sentence}".lstrip()
        for own in alike.values()
    ]
    if told:
        more = f" (and {len(told) - 3} more, see .quality.summary())" if len(told) > 3 else ""
        warn(f"log '{quality.name}': {'; '.join(told[:3])}{more}", SignalWarning)


def _one_clock(piece: Segment, resample: float | str, notes: list[str]) -> tuple[Log, bool]:
    """Return the longest piece without gaps or long holes on a uniform clock, and whether its samples are new ones."""
    if resample not in piece.clocks:
        told: list[str] = []
        piece.clocks[resample] = (*_on_clock(piece, resample, told), told)
    log, resampled, told = piece.clocks[resample]
    notes += told
    return log, resampled


def _on_clock(piece: Segment, resample: float | str, notes: list[str]) -> tuple[Log, bool]:
    name = piece.whole.name
    if not piece.ranges:
        raise LogError(f"log '{name}' has no segment with finite positions and efforts; check the channels")
    if len(piece.ranges) > 1 or len(piece) < piece.whole.t.size:
        notes.append(
            f"gaps split the log into {len(piece.ranges)} pieces; the longest, samples {piece.start}:{piece.stop}, is used "
            "(split_at_gaps returns the others)"
        )
        if len(piece) < 4 * HALF:
            raise LogError(
                f"log '{name}': the longest segment without gaps has {len(piece)} samples, which is too few; record longer"
            )
    log, filled = piece.filled
    if filled:
        notes.append(f"{filled} missing values interpolated (runs up to {LONGEST_HOLE:g} s)")
    strays = stray(log.t)
    if resample != "auto":
        if isinstance(resample, str | bool) or not 0 < resample < math.inf:
            raise LogError(f"resample is {resample!r}; give 'auto' or a rate in Hz")
        notes.append(f"resampled from {log.rate:.6g} Hz to {resample:.6g} Hz as given")
        return to_uniform(log, float(resample)), True
    if strays <= UNIFORM:
        return log, False
    noise, ratio = stamps_are_noise(log)
    if noise:
        notes.append(
            f"time stamps deviate by up to {strays:.3g} steps, but uniform samples make positions {ratio:.3g} times "
            f"smoother: the stamps are replaced by {log.rate:.6g} Hz"
        )
        return replace(log, t=np.linspace(log.t[0], log.t[-1], log.t.size)), False
    notes.append(
        f"irregular clock (up to {strays:.3g} steps off): resampled to {log.rate:.6g} Hz by its time stamps, with which "
        f"positions are {1 / ratio:.3g} times smoother"
    )
    return to_uniform(log, log.rate), True


def _cutoff(
    piece: Segment, log: Log, rate: float, cutoff: float | str, resampled: bool, moving: NDArray[np.bool_], notes: list[str]
) -> Cutoff:
    if cutoff == "auto":
        chosen = automatic_cutoff(rate, log.position) if resampled else piece.cutoff
    elif isinstance(cutoff, str):
        raise LogError(f"cutoff is {cutoff!r}; give 'auto' or a frequency in Hz")
    else:
        frequency = check_cutoff(cutoff, rate, log.t.size)
        band = frequency / RATIO
        chosen = Cutoff(frequency, band, band, moving, f"cut-off {frequency:.4g} Hz as given")
    notes.append(chosen.explanation)
    return chosen


def _band(band: float | str, rate: float, found: float) -> float:
    if band == "auto":
        return found
    if isinstance(band, str | bool) or not 0.0 < band <= 0.5 * rate * (1.0 + 1e-9):
        raise LogError(f"band is {band!r}; give 'auto' or a frequency in Hz up to half the sampling rate of {rate:g} Hz")
    return float(band)


def _decimator(
    name: str, decimation: int | str, rate: float, band: float, cutoff: float, samples: int, exact: bool, notes: list[str]
) -> Decimator:
    """Return the decimation to a band, which may be widened up to the cut-off to keep more rows."""
    if decimation == "auto":
        wanted = max(1, round(0.4 * rate / band)) if band < 0.45 * rate else 1
        fewest = wanted if exact else min(wanted, max(1, math.ceil(0.4 * rate / cutoff)))
        factor = max(min(wanted, samples // FEWEST_ROWS), fewest)
    elif isinstance(decimation, bool) or not isinstance(decimation, int | np.integer) or decimation < 1:
        raise LogError(f"decimation is {decimation!r}; give 'auto' or a whole number, 1 or more")
    else:
        wanted = factor = int(decimation)
    lower = "a longer log or a higher band=" if decimation == "auto" else "a longer log or a lower decimation="
    if factor > samples:
        raise LogError(
            f"log '{name}': {samples} samples without filter transients cannot be decimated by {factor:.4g}; give {lower}"
        )
    decimator = Decimator(factor, rate)
    if decimator.length(samples) < FEW_ROWS:
        decimator = Decimator(factor, rate, SHORT)
    if decimator.length(samples) < 1:
        raise LogError(
            f"log '{name}': one row in the band up to {decimator.cutoff:.3g} Hz averages over "
            f"{decimator.taps.size / rate:.3g} s, but only {samples / rate:.3g} s remain without filter transients; give "
            f"{lower}"
        )
    short = f" (the band alone would allow {wanted}, but at least {FEWEST_ROWS} rows are kept)" if factor < wanted else ""
    notes.append(
        f"decimation by {factor}{short}: regressor columns and efforts pass the same low-pass of {decimator.cutoff:.4g} Hz; "
        f"rows cover the band 0 to {decimator.cutoff:.4g} Hz, {decimator.length(samples)} rows per channel"
    )
    return decimator


# ---------------------------------------------------------------------- fingerprints of logs
SAMPLES = 4096  # largest number of samples used to find the period of a motion
SAME = 0.01  # squared difference over the sum of squares of two periods: states within a seventh of their size are equal
FURTHER = 0.5  # the same where a motion has left its state, so that it can come back


def period_of(*states: Array) -> float:
    """Return the shortest time, in samples, after which states, arrays (N, k) such as q and v, are the same; inf if never.

        d(p) = sum |x(t + p) - x(t)|^2 / sum (|x(t + p)|^2 + |x(t)|^2),      x without mean, in units of its deviation

    is zero at multiples of the period. The first minimum below `SAME` is used, up to half of the samples, after the positions,
    the first half of the columns, have left their state: rates of held positions repeat themselves with every new value.
    """
    step = -(-len(states[0]) // SAMPLES)
    x = np.hstack([each[::step] for each in states])
    if len(x) < 8 or not np.isfinite(x).all():
        return float("inf")
    x = x - x.mean(axis=0)
    size = x.std(axis=0)
    x = x[:, size > 0.0] / size[size > 0.0]
    d = _distances(x)
    away = np.flatnonzero(_distances(x[:, : np.count_nonzero(size[: size.size // 2])]) > FURTHER)
    if not away.size:
        return float("inf")
    inner = np.arange(max(int(away[0]), 1), d.size - 1)
    for lag in inner[(d[inner] <= d[inner - 1]) & (d[inner] < d[inner + 1])]:
        period, depth = _lowest(d, int(lag))
        if depth < SAME:
            times = 1
            while 2.0 * times * period < d.size - 2:  # multiples of the period are more precise
                times *= 2
                near = round(times * period) + np.arange(-1, 2)
                period = _lowest(d, int(near[np.argmin(d[near])]))[0] / times
            return step * period
    return float("inf")


def _distances(x: Array) -> Array:
    """Return d(p) of `period_of` for p = 0, 1, ... up to half of the rows."""
    N = len(x)
    length = 1 << (2 * N - 1).bit_length()  # zeros behind the motion keep its ends apart
    spectrum = np.abs(np.fft.rfft(np.ascontiguousarray(x.T), length)) ** 2
    product = np.fft.irfft(spectrum.sum(axis=0), length)[: N // 2 + 2]
    energy = np.concatenate([[0.0], np.cumsum(np.sum(x**2, axis=1))])
    lags = np.arange(product.size)
    return np.asarray(1.0 - 2.0 * product / np.maximum(energy[N - lags] + energy[N] - energy[lags], 1e-300))


def _lowest(d: Array, lag: int) -> tuple[float, float]:
    """Return place and value of a minimum between samples, by a parabola through three of them."""
    left, middle, right = d[lag - 1], d[lag], d[min(lag + 1, d.size - 1)]
    curvature = left + right - 2.0 * middle
    if curvature <= 0.0:
        return float(lag), float(middle)
    # The vertex of a minimum is within half a sample; if it is further off, the parabola does not apply.
    offset = float(np.clip(0.5 * (left - right) / curvature, -0.5, 0.5))
    return lag + offset, float(middle - 0.5 * (left - right) * offset + 0.5 * curvature * offset**2)


def fingerprint(log: Preparation, efforts: bool = True) -> dict[str, Any]:
    """Return the fingerprint of a log, to recognise its samples in other logs (`signals.held_out`), in JSON types.

    Rows of low-passed positions and efforts, about 70 for one oscillation, and 32 snippets of 64 efforts as they were logged:
    for a robot with six joints about 55 kB for 20 s, and at most 0.4 MB for a long log. Without `efforts` (not
    measured), zeros are stored.
    """
    q, v = log.states
    speed = np.linalg.norm(v / scale_of(np.std(q, axis=0)), axis=1)
    usual = np.sum(speed**2) / max(np.sum(speed), 1e-300)  # mean along the path: standstill does not count
    low_pass = Decimator(int(np.clip(ROW / max(usual, 1e-300) * log.rate, 1.0, len(log) // 50 + 1)), log.rate, REACH)
    factor, taps, total, t = low_pass.factor, low_pass.taps.size, low_pass.length(len(log)), log.t
    first = _thinned(list(range(0, total, PIECE)), MOST_PIECES)
    places = np.linspace(0, len(log) - SNIPPET, min(SNIPPETS, len(log) // SNIPPET)).astype(int)
    snippets = log.efforts(places, SNIPPET)
    snippets = snippets if efforts else [np.zeros_like(each) for each in snippets]
    rows = []
    for i in first:
        piece = log.measured(i * factor, (min(i + PIECE, total) - 1) * factor + taps)
        piece[:, q.shape[1] :] *= efforts
        rows.append(_packed(float(t[taps // 2]) + i * factor / log.rate, factor / log.rate, low_pass.apply(piece)))
    samples = [_packed(float(t[i]), 1.0 / log.rate, snippet) for i, snippet in zip(places, snippets, strict=True)]
    return {"rows": rows, "total": total, "samples": samples}


def both(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fingerprint of two pieces of one log."""
    return {
        "rows": _thinned([*one["rows"], *other["rows"]], MOST_PIECES),
        "total": one["total"] + other["total"],
        "samples": _thinned([*one["samples"], *other["samples"]], SNIPPETS),
    }


def _thinned(pieces: list[T], most: int) -> list[T]:
    """Return a limited number of pieces, evenly spaced."""
    return [pieces[i] for i in np.unique(np.linspace(0, len(pieces) - 1, min(len(pieces), most)).astype(int))]


def _packed(start: float, step: float, rows: Array) -> dict[str, Any]:
    low, high = rows.min(axis=0), rows.max(axis=0)
    size = np.where(high > low, high - low, 1.0) / LEVELS
    text = base64.b64encode(np.rint((rows - low) / size).astype("<u2").tobytes()).decode("ascii")
    return {"start": start, "step": step, "low": low.tolist(), "size": size.tolist(), "levels": text}


def scale_of(spread: Array) -> Array:
    """Return the scale of positions; a joint that hardly moves counts less, because it shows only noise."""
    return np.asarray(np.sqrt(spread.size) * np.maximum(spread, max(0.01 * float(spread.max()), 1e-300)))
