"""From a log to motion and effort ready for least squares; every decision is written down with its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.checks import plain
from dynident.errors import LogError, SignalWarning, warn
from dynident.figures import over_time
from dynident.mechanics.motion import Motion
from dynident.results import Result
from dynident.signals.clock import stamps_are_noise, to_uniform
from dynident.signals.filters import (
    HALF,
    RATIO,
    SHORT,
    SHORTEST,
    UNIFORM,
    Cutoff,
    Decimator,
    automatic_cutoff,
    check_cutoff,
    choose_cutoff,
    rounding_span,
    stray,
)
from dynident.signals.log import Log
from dynident.signals.quality import LONGEST_HOLE, Finding, Quality, Segment, examine
from dynident.signals.smoothers import METHODS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Rows after decimation, at least, if the band may be wider for it: most of the record remains with the 2 x 6 lost at the ends.
FEWEST_ROWS = 80
#: Rows below which the shorter decimation filter is used.
FEW_ROWS = 40
#: Noise over motion in the accelerations from which on a warning says that inertias are biased.
BIASED = 0.03
PHASES = ("zero", "causal")
#: Samples at each end, in periods of the cut-off, where a filter has too little on one side.
SPOILED = 1.5
#: A joint rests while its speed stays below this many standard deviations of its noise ...
DEAD_ZONE = 3.0
#: ... for this many periods of the cut-off.
REST = 2.0
#: Motion beside the widest one, root mean square, below which a joint may be standing.
SMALL = 0.01


@dataclass(frozen=True, eq=False)
class Prepared(Result):
    """Motion and effort of one continuous, uniformly sampled stretch of a log."""

    joints: tuple[str, ...]  #: Channel names of the columns
    motion: Motion  #: t (N,), q, v, a (N, n) at the full rate, on the side where the positions were measured
    #: (N, n), Nm or N (effort times drive gain) at the same samples, not filtered, unless a causal filter makes the
    #: motion late
    effort: Array
    #: (N, n), the same through the low-pass of the positions: what that removes from both sides of ``tau = W phi`` does
    #: no harm. Without decimation nothing low-passes both sides alike, and these are the efforts as logged.
    filtered: Array
    decimator: Decimator  #: The parallel filter to apply to regressor columns and efforts alike, axis 0
    rate: float  #: Sampling rate of motion and effort in Hz
    cutoff: Cutoff  #: The low-pass frequency of the differentiation, and why
    #: (n,), standard deviation of the noise left in the velocities, rad/s or m/s. ``motion.v`` is zero where a joint
    #: rests, that is where its speed stays within three of these.
    velocity_noise: Array
    quality: Quality  #: What was found wrong with the log
    explanation: str  #: Every decision, one per line
    method: str  #: Differentiation method
    position_side: str  #: As in the log
    temperature: Array | None = None  #: (N, n), degC at the same samples, if the log has it
    #: (N, n), False where a joint is too slow for its samples to be used; None when all are used (``standstill=0``)
    moving: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return int(self.motion.t.size)

    def summary(self) -> str:
        """Return every decision, and what was found wrong with the log, as text."""
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
        What was measured.
    method : {"butterworth", "savitzky_golay", "smoothing_spline", "fourier"}
        How positions become velocities and accelerations; "fourier" needs `period`.
    cutoff : float or "auto"
        Low-pass frequency in Hz; "auto" reads it from the spectrum (`automatic_cutoff`).
    decimation : int or "auto"
        Factor of the parallel decimation; "auto" keeps the band of the motion.
    resample : float or "auto"
        New uniform rate in Hz; "auto" keeps the log's own rate and resamples only where the clock asks for it.
    period : float, optional
        Period in s of a periodic trial, for "fourier".
    standstill : float
        Leave out what a joint does below this share of its RMS speed, 0 (use everything) to below 1. Friction near standstill
        is not fc sign(v): a joint that sticks carries anything up to fc. 0.1 loses little of a motion that excites.
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
    cutoff, band, decimation = plain(cutoff), plain(band), plain(decimation)
    if method not in METHODS:
        raise LogError(f"method is {method!r}; it must be one of {', '.join(METHODS)}")
    if method == "fourier" and period is None:
        raise LogError("method 'fourier' needs period=, the period of the motion in s")
    if phase not in PHASES:
        raise LogError(f"phase is {phase!r}; it must be one of {', '.join(PHASES)}")
    if isinstance(order, bool) or not isinstance(order, int | np.integer) or not 1 <= order <= 10:
        raise LogError(f"order is {order!r}; give a whole number from 1 to 10")
    if method != "butterworth" and (order != 4 or phase != "zero"):
        raise LogError(f"order= and phase= belong to method 'butterworth', not to '{method}'")
    if like is not None:
        cutoff = like.cutoff.frequency if cutoff == "auto" else cutoff
    log.torque()  # refuse a current without a gain before anything else
    piece = Segment(log)
    quality, view = examine(log, piece)
    _warn(quality)
    notes = [f"log '{log.name}': {len(log)} samples, {log.duration:.4g} s, {len(log.joints)} channels, {log.effort_kind}"]
    notes += [f"{f.severity}: {f.channel} {f.sentence}" for f in quality.findings if f.severity != "info"]
    log, resampled = _one_clock(piece, resample, notes)
    samples, rate = log.t.size, (log.t.size - 1) / log.duration
    seen = None if resampled else view  # what the examination computed holds for the same samples
    chosen = _cutoff(log, rate, cutoff, None if seen is None else seen.cutoff, notes)
    spoiled = 0 if method == "fourier" else math.ceil(SPOILED * rate / chosen.frequency)
    if samples - 2 * spoiled < 4 * HALF:
        raise LogError(
            f"log '{log.name}' has {samples} samples and the filter at {chosen.frequency:.4g} Hz spoils {spoiled} at each "
            f"end; record longer or give a higher cutoff= (it lasts {log.duration:.3g} s: is that right?)"
        )
    options: dict[str, object] = {"period": period} if method == "fourier" else {}
    if method == "butterworth":
        options = {"order": int(order), "causal": phase == "causal"}
    if seen is not None and method == "butterworth" and chosen is seen.cutoff and order == 4 and phase == "zero":
        q, v, a = seen.derivatives
    else:
        q, v, a = METHODS[method](rate, log.position, chosen.frequency, **options)
    effort = log.torque()
    filtered = METHODS[method](rate, effort, chosen.frequency, **options)[0]
    if log.velocity is not None or log.acceleration is not None:
        notes.append("logged velocities and accelerations are not used: they may be delayed or filtered, positions are not")
    keep = slice(spoiled, samples - spoiled)
    notes.append(f"{method}: positions low-passed at {chosen.frequency:.4g} Hz, {spoiled} samples dropped at each end")
    # What a causal filter changes is mostly its delay, which is no noise.
    smooth = q if phase == "zero" else METHODS[method](rate, log.position, chosen.frequency, order=int(order))[0]
    noise = velocity_noise(rate, log.position, smooth, chosen.frequency)
    q, v, a = _held(log, chosen.frequency / rate, smooth, (q, v, a), notes)
    v = _rest(v, noise, math.ceil(REST * rate / chosen.frequency), log.joints, notes)
    motion = Motion(log.t[keep], q[keep], v[keep], a[keep])
    moving = _moving(motion.v, standstill, log.joints, notes)
    if chosen.noise > BIASED:
        text = (
            f"log '{log.name}': noise makes {chosen.noise:.0%} of the accelerations below {chosen.band:.3g} Hz, so that "
            f"inertias come out too small by about {chosen.noise / (1.0 + chosen.noise):.0%}; move faster, or use an estimator "
            "that allows for noise in the positions"
        )
        notes.append(text)
        warn(text, SignalWarning)
    wanted = chosen.band if like is None else like.decimator.cutoff
    wanted = _band(band, rate, wanted)
    decimator = _decimator(log.name, decimation, rate, wanted, chosen.frequency, len(motion.t), band != "auto", notes)
    if phase == "causal":  # efforts must be late where the motion is
        effort = filtered
    elif decimator.factor == 1:  # nothing low-passes both sides alike: a filtered effort would round off the jumps of friction
        filtered = effort
    return Prepared(
        joints=log.joints,
        motion=motion,
        effort=np.ascontiguousarray(effort[keep]),
        filtered=np.ascontiguousarray(filtered[keep]),
        decimator=decimator,
        rate=rate,
        cutoff=chosen,
        velocity_noise=noise,
        quality=quality,
        explanation="\n".join(notes),
        method=method,
        position_side=log.position_side,
        temperature=None if log.temperature is None else log.temperature[keep],
        moving=moving,
    )


def common_cutoff(logs: Sequence[Log]) -> Cutoff:
    """Choose one low-pass frequency for all logs of a fit."""
    uniform = [_one_clock(Segment(log), "auto", [])[0] for log in logs]
    rates = [(len(log) - 1) / log.duration for log in uniform]
    rate = min(rates)
    records = [(log if own <= 1.01 * rate else to_uniform(log, rate)).position for log, own in zip(uniform, rates, strict=True)]
    records = [q for q in records if q.shape[0] >= SHORTEST]
    if not records:
        raise LogError(f"log '{logs[0].name}': too few samples to see a spectrum ({SHORTEST} are needed); give cutoff=")
    return choose_cutoff(rate, records)


def _held(
    log: Log, cutoff: float, smooth: Array, motion: tuple[Array, Array, Array], notes: list[str]
) -> tuple[Array, Array, Array]:
    """Return q, v, a with joints that move by no more than rounding or noise held at rest; `cutoff` in cycles per sample."""
    low, high = np.min(log.position, axis=0), np.max(log.position, axis=0)
    variance = np.var(log.position, axis=0)
    noisy = np.var(log.position - smooth, axis=0) >= 0.5 * (1.0 - 2.0 * cutoff) * variance
    still = (high - low <= rounding_span(log.position, cutoff)) | (noisy & (variance < SMALL**2 * np.max(variance)))
    if not np.any(still):
        return motion
    q, v, a = (x.copy() for x in motion)
    q[:, still], v[:, still], a[:, still] = 0.5 * (low + high)[still], 0.0, 0.0
    names = ", ".join(joint for joint, held in zip(log.joints, still, strict=True) if held)
    notes.append(f"stands still, its position changes by no more than rounding and noise: {names}")
    return q, v, a


def _moving(v: Array, standstill: float, joints: tuple[str, ...], notes: list[str]) -> NDArray[np.bool_] | None:
    """Return where joints are fast enough to be used; a joint that never moves has no friction to mistake and is kept."""
    if isinstance(standstill, bool | str) or not 0.0 <= standstill < 1.0:
        raise LogError(f"standstill is {standstill!r}; give a share of the RMS speed, 0 to below 1 (0.1 is usual)")
    if standstill == 0.0:
        return None
    slow = np.abs(v) < standstill * np.sqrt(np.mean(v**2, axis=0))
    shares = ", ".join(f"{joint} {100 * share:.1f} %" for joint, share in zip(joints, slow.mean(axis=0), strict=True))
    notes.append(
        f"slower than {standstill:g} of the RMS speed, where friction is not known, and left out: {shares} of the time"
    )
    return np.asarray(~slow)


def _rest(v: Array, noise: Array, shortest: int, joints: tuple[str, ...], notes: list[str]) -> Array:
    """Return the velocities with joints at rest at exactly zero: there the sign, which Coulomb friction follows, is noise.

    A joint rests while its velocity stays within `DEAD_ZONE` standard deviations for longer than the filter remembers
    (`shortest` samples); passing through zero on the way is no rest.
    """
    result = v.copy()
    resting = []
    for j, joint in enumerate(joints):
        still = np.abs(v[:, j]) < DEAD_ZONE * noise[j]
        edges = np.flatnonzero(np.diff(np.concatenate([[False], still, [False]]).astype(np.int8))).reshape(-1, 2)
        runs = [(first, last) for first, last in edges if last - first >= shortest]
        for first, last in runs:
            result[first:last, j] = 0.0
        if runs:
            resting.append(f"{joint} {100 * sum(last - first for first, last in runs) / v.shape[0]:.1f} %")
    if resting:
        notes.append(f"at rest (speed within its noise for at least {shortest} samples): {', '.join(resting)} of the time")
    return result


def _warn(quality: Quality) -> None:
    """Warn about what is used: clock, positions and efforts; logged velocities are not."""
    serious = [f for f in quality.findings if f.severity != "info" and not f.channel.startswith(("velocity", "acceler"))]
    alike: dict[tuple[str, str], list[Finding]] = {}  # one unit is wrong for all joints: it is told once
    for finding in serious:
        alike.setdefault((finding.kind, finding.channel.partition(":")[0]), []).append(finding)
    told = [
        f"{own[0].channel}{f' (and {len(own) - 1} more like it)' if len(own) > 1 else ''} {own[0].sentence}"
        for own in alike.values()
    ]
    if told:
        more = f" (and {len(told) - 3} more, see .quality.summary())" if len(told) > 3 else ""
        warn(f"log '{quality.name}': {'; '.join(told[:3])}{more}", SignalWarning)


def _one_clock(piece: Segment, resample: float | str, notes: list[str]) -> tuple[Log, bool]:
    """Return the longest piece without gaps or long holes on a uniform clock, and whether its samples are new ones."""
    name = piece.whole.name
    if not piece.ranges:
        raise LogError(f"log '{name}' has no stretch where all positions and efforts are finite; check the channels")
    if len(piece.ranges) > 1 or len(piece) < len(piece.whole):
        notes.append(
            f"gaps or long missing stretches cut the log into {len(piece.ranges)} pieces; the longest, samples "
            f"{piece.start}:{piece.stop}, is used (split_at_gaps gives the others)"
        )
        if len(piece) < 4 * HALF:
            raise LogError(f"log '{name}': the longest stretch without gaps has {len(piece)} samples, too few")
    log, filled = piece.filled
    if filled:
        notes.append(f"{filled} missing values interpolated (runs up to {LONGEST_HOLE:g} s)")
    strays = stray(log.t)
    if resample != "auto":
        if isinstance(resample, str | bool) or not 0 < resample < math.inf:
            raise LogError(f"resample is {resample!r}; give 'auto' or a rate in Hz")
        notes.append(f"resampled from {log.rate:.6g} Hz to {resample:.6g} Hz as asked")
        return to_uniform(log, float(resample)), True
    if strays <= UNIFORM:
        return log, False
    noise, ratio = stamps_are_noise(log)
    if noise:
        notes.append(
            f"the stamps stray by up to {strays:.3g} steps, but the positions are {ratio:.3g} times smoother taken as uniform "
            f"samples: the sampling is uniform, the stamps are noise and are replaced by {log.rate:.6g} Hz"
        )
        return replace(log, t=np.linspace(log.t[0], log.t[-1], len(log))), False
    notes.append(
        f"irregular clock (up to {strays:.3g} steps off): resampled to {log.rate:.6g} Hz by its stamps, which make the "
        f"positions {1 / ratio:.3g} times smoother"
    )
    return to_uniform(log, log.rate), True


def _cutoff(log: Log, rate: float, cutoff: float | str, known: Cutoff | None, notes: list[str]) -> Cutoff:
    if cutoff == "auto":
        chosen = known or automatic_cutoff(rate, log.position)
    elif isinstance(cutoff, str):
        raise LogError(f"cutoff is {cutoff!r}; give 'auto' or a frequency in Hz")
    else:
        frequency = check_cutoff(cutoff, rate, len(log))
        moving = np.ptp(log.position, axis=0) > 0.0
        band = frequency / RATIO
        chosen = Cutoff(frequency, band, band, frequency, moving, f"cut-off {frequency:.4g} Hz as asked")
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
    """Return the decimation to a band; it may be wider for the sake of more rows, but never above the cut-off."""
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
            f"log '{name}': {samples} samples between the spoiled ends cannot be decimated by {factor:.4g}; give {lower}"
        )
    decimator = Decimator(factor, rate)
    if decimator.length(samples) < FEW_ROWS:
        decimator = Decimator(factor, rate, SHORT)
    if decimator.length(samples) < 1:
        raise LogError(
            f"log '{name}': one row in the band up to {decimator.cutoff:.3g} Hz is a mean over "
            f"{decimator.taps.size / rate:.3g} s, but {samples / rate:.3g} s are left between the spoiled ends; give {lower}"
        )
    short = f" (the band alone would allow {wanted}, but at least {FEWEST_ROWS} rows are kept)" if factor < wanted else ""
    notes.append(
        f"decimation by {factor}{short}: regressor columns and efforts are low-passed alike at {decimator.cutoff:.4g} Hz; "
        f"what is fitted and judged on decimated rows is the band 0 to {decimator.cutoff:.4g} Hz, "
        f"{decimator.length(samples)} rows per channel"
    )
    return decimator


def velocity_noise(rate: float, raw: Array, filtered: Array, cutoff: float) -> Array:
    """Return the std of the velocity noise per channel, sigma_v^2 = 4 pi^2 S fc^3 / 3 (S: density of the removed noise)."""
    removed = np.var(raw - filtered, axis=0) / max(rate / 2.0 - cutoff, 0.1 * rate)
    return np.asarray(np.sqrt(4.0 * np.pi**2 * removed * cutoff**3 / 3.0))
