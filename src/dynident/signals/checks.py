"""The single checks behind `diagnose`; each returns findings and changes nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.signals import resample as rs
from dynident.signals.cutoff import automatic_cutoff, stands_still
from dynident.signals.differentiate import butterworth
from dynident.signals.log import FIELDS, Log
from dynident.signals.quality import Finding

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Fewer samples show nothing.
FEWEST = 64
#: An effort that keeps one exact value on this part of the samples where its joint moves is dead.
DEAD = 0.5
#: A live channel that keeps one exact value this long (s) while its joint moves is stuck.
STUCK = 0.1
#: Largest believable joint angle (rad) and speed (rad/s or m/s) on the joint side.
LARGEST_ANGLE = 4.0 * np.pi
LARGEST_SPEED = 50.0
#: Logged velocity over differentiated position, and what the ratio means.
RATIOS = {
    180.0 / np.pi: "velocity is in deg/s or position in rad was taken for deg",
    np.pi / 180.0: "position is in degrees while velocity is in rad/s",
    30.0 / np.pi: "velocity is in rpm",
    np.pi / 30.0: "position is in units 9.55 times too large for the velocity",
    1e3: "velocity is in mm/s, or the clock is in ms",
    1e-3: "position is in mm, or the clock runs in ms",
}


class View:
    """The longest piece of a log without gaps, holes filled, with its cut-off and derivatives; `prepare` uses them too."""

    def __init__(self, log: Log, piece: rs.Piece) -> None:
        self.usable = len(piece) >= FEWEST
        self.log = log
        if not self.usable:
            return
        self.raw, _ = piece.filled
        self.rate = (len(self.raw) - 1) / self.raw.duration
        self.cutoff = automatic_cutoff(self.rate, self.raw.position)
        self.derivatives = butterworth(self.rate, self.raw.position, self.cutoff.frequency)
        self.velocity = self.derivatives[1]
        # A joint moves where it is faster than 5 % of its top speed; only there can an effort or velocity be judged.
        speed = np.abs(self.velocity)
        self.still: Mask = stands_still(self.raw.position)
        self.moves: Mask = (speed > 0.05 * np.percentile(speed, 99, axis=0)) & ~self.still


def clock(log: Log) -> list[Finding]:
    """Jitter and gaps of the time stamps."""
    findings = []
    step = np.diff(log.t)
    median = float(np.median(step))
    gaps = np.flatnonzero(step > rs.GAP * median)
    inside = step[step <= rs.GAP * median]
    jitter = float(np.max(np.abs(inside / median - 1.0))) if inside.size else 0.0
    if jitter > rs.JITTER:
        text = f"steps differ from their median {median:.4g} s by up to {jitter:.1%}; prepare decides how to resample"
        findings.append(Finding("irregular_clock", "time", "info", text, jitter))
    if gaps.size:
        longest = float(step.max())
        lost = float(np.sum(step[gaps] / median - 1.0))
        text = (
            f"{gaps.size} gaps, the longest {longest:.4g} s after sample {int(np.argmax(step))}, about {lost:.0f} samples "
            "missing; short ones are interpolated, long ones cut the log"
        )
        findings.append(Finding("gap", "time", "warning", text, longest))
    return findings


def missing(log: Log) -> list[Finding]:
    """NaN and infinity."""
    findings = []
    for name in FIELDS:
        values = getattr(log, name)
        if values is None:
            continue
        for j, joint in enumerate(log.joints):
            bad = ~np.isfinite(values[:, j])
            if bad.any():
                runs = np.flatnonzero(np.diff(np.concatenate([[0], bad.astype(np.int8), [0]]))).reshape(-1, 2)
                longest = int(np.max(runs[:, 1] - runs[:, 0]))
                text = f"{int(bad.sum())} of {bad.size} samples are missing, the longest run {longest} samples"
                severity = "error" if bad.all() else "warning"
                findings.append(Finding("nan", f"{name}:{joint}", severity, text, float(bad.mean())))
    return findings


def _mode(values: Array) -> tuple[float, float]:
    """Most frequent exact value and its share."""
    unique, counts = np.unique(values, return_counts=True)
    return float(unique[np.argmax(counts)]), float(counts.max() / values.size)


def _longest_run(values: Array) -> tuple[int, int]:
    """Start and length of the longest run of equal values."""
    change = np.flatnonzero(np.concatenate([[True], np.diff(values) != 0.0, [True]]))
    lengths = np.diff(change)
    k = int(np.argmax(lengths))
    return int(change[k]), int(lengths[k])


def constant(view: View) -> list[Finding]:
    """Dead channels (one value nearly always) and stuck ones (one value for a while, in the middle of a motion)."""
    if not view.usable:
        return []
    findings = []
    log, shortest = view.raw, max(5, int(np.ceil(STUCK * view.rate)))
    for j, joint in enumerate(log.joints):
        if view.still[j]:
            span = float(np.ptp(log.position[:, j]))
            text = f"stays within {span:.2g}: the joint stands still or its sensor is dead, nothing can be learned about it"
            findings.append(Finding("still", f"position:{joint}", "info", text, span))
            continue
        findings += _frozen_position(log.position[:, j], joint, shortest)
        moves = view.moves[:, j]
        for name in ("effort", "velocity"):
            values = getattr(log, name)
            if values is None or moves.sum() < shortest:
                continue
            value, share = _mode(values[moves, j])
            if share > DEAD:
                text = f"is exactly {value:g} on {share:.0%} of the samples where the joint moves; leave the channel out"
                findings.append(Finding("dead", f"{name}:{joint}", "error", text, share))
                continue
            start, length = _longest_run(values[:, j])
            # A coarse channel repeats values anyway: the run must be far longer than its usual ones.
            usual = 1.0 / max(np.mean(np.diff(values[moves, j]) != 0.0), 1e-9)
            inside = moves[start : start + length].mean() > 0.5
            if inside and length >= shortest and length > 20.0 * usual and not _at_limit(values[:, j], start):
                text = f"keeps {values[start, j]:g} for {length} samples from sample {start} on while the joint moves"
                findings.append(Finding("stuck", f"{name}:{joint}", "warning", text, length / view.rate))
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
    text = f"keeps {q[start]:g} for {length} samples from sample {start} on and then jumps by {jump:.3g}"
    return [Finding("stuck", f"position:{joint}", "error", text, float(length))]


def _at_limit(values: Array, k: int) -> bool:
    return bool(values[k] in (values.max(), values.min()))


def saturated(view: View) -> list[Finding]:
    """Efforts (and logged velocities) that pile up at exactly their largest or smallest value."""
    if not view.usable:
        return []
    findings = []
    for name in ("effort", "velocity"):
        values = getattr(view.raw, name)
        if values is None:
            continue
        for j, joint in enumerate(view.raw.joints):
            x = values[view.moves[:, j], j]
            unique, counts = np.unique(x, return_counts=True)
            if unique.size < 20:
                continue
            for index, beside in ((0, 1), (-1, -2)):
                # Levels thin out towards the extremes; a limiter makes a heap there, in unbroken runs.
                run = _run_of(values[:, j], float(unique[index]))
                if counts[index] >= 10 and counts[index] > 5 * counts[beside] and run >= 5 and abs(unique[index]) > 0:
                    share = float(counts[index] / x.size)
                    text = f"stays at its limit {unique[index]:.4g} on {share:.1%} of the moving samples (runs up to {run})"
                    findings.append(Finding("saturated", f"{name}:{joint}", "warning", text, share))
    return findings


def _run_of(values: Array, level: float) -> int:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], (values == level).astype(np.int8), [0]]))).reshape(-1, 2)
    return int(np.max(edges[:, 1] - edges[:, 0])) if edges.size else 0


def quantised(view: View) -> list[Finding]:
    """Channels with so few levels that the quantum matters."""
    if not view.usable:
        return []
    findings = []
    for name, fewest in (("position", 200), ("effort", 50)):
        values = getattr(view.raw, name)
        for j, joint in enumerate(view.raw.joints):
            x = values[view.moves[:, j], j]
            levels = np.unique(x).size
            _, share = _mode(x) if x.size else (0.0, 1.0)
            if x.size > 4 * fewest and 1 < levels < fewest and share <= DEAD:
                text = f"takes only {levels} different values over {x.size} moving samples; its quantum will show in the fit"
                findings.append(Finding("quantised", f"{name}:{joint}", "info", text, float(levels)))
    return findings


def units(view: View) -> list[Finding]:
    """Degrees, millimetres, rpm and encoder counts taken for SI."""
    log = view.log
    findings = []
    for j, joint in enumerate(log.joints):
        q = log.position[np.isfinite(log.position[:, j]), j]
        largest = float(np.max(np.abs(q))) if q.size else 0.0
        channel = f"position:{joint}"
        if largest > 1e3 and np.all(q == np.round(q)):
            text = f"holds whole numbers up to {largest:.0f}; these look like encoder counts, give unit 'counts'"
            findings.append(Finding("unit_suspect", channel, "error", text, largest))
        elif log.position_side == "joint" and largest > LARGEST_ANGLE:
            text = f"reaches {largest:.4g}, too much for rad or m; give unit 'deg' or 'mm' (or position_side='motor')"
            findings.append(Finding("unit_suspect", channel, "error", text, largest))
    if not view.usable:
        return findings
    speeds = np.percentile(np.abs(view.velocity), 99, axis=0)
    for j, joint in enumerate(log.joints):
        known = any(f.channel == f"position:{joint}" for f in findings)
        if log.position_side == "joint" and speeds[j] > LARGEST_SPEED and not known:
            text = f"moves at {speeds[j]:.4g} per second, too fast for a joint; check its unit and that of the clock"
            findings.append(Finding("unit_suspect", f"position:{joint}", "error", text, float(speeds[j])))
    return findings + _velocity_ratio(view)


def _velocity_ratio(view: View) -> list[Finding]:
    logged = view.raw.velocity
    if logged is None:
        return []
    findings = []
    for j, joint in enumerate(view.raw.joints):
        moves = view.moves[:, j] & np.isfinite(logged[:, j])
        if moves.sum() < FEWEST:
            continue
        # Medians of the magnitudes do not care for a delay, and little for spikes.
        ratio = float(np.median(np.abs(logged[moves, j])) / np.median(np.abs(view.velocity[moves, j])))
        if 0.5 < ratio < 2.0 or ratio == 0.0:
            continue
        near = [text for value, text in RATIOS.items() if abs(ratio / value - 1.0) < 0.15]
        what = near[0] if near else "one of the two has another unit or another joint"
        text = f"is {ratio:.4g} times the differentiated position; {what}"
        findings.append(Finding("unit_suspect", f"velocity:{joint}", "error", text, ratio))
    return findings


def delayed(view: View) -> list[Finding]:
    """Logged velocities that come later (or earlier) than the differentiated positions."""
    if not view.usable or view.raw.velocity is None:
        return []
    findings = []
    for j, joint in enumerate(view.raw.joints):
        logged = view.raw.velocity[:, j]
        if view.still[j] or not np.all(np.isfinite(logged)) or np.ptp(logged) == 0.0:
            continue
        result = delay_between(view.velocity[:, j], logged, view.rate)
        if result is None:
            continue
        if result.significant:
            word = "later" if result.delay > 0 else "earlier"
            text = (
                f"comes {abs(result.delay):.4g} s ({abs(result.delay) * view.rate:.1f} samples) {word} than the "
                f"differentiated position (correlation {result.correlation:.3f} shifted, {result.at_zero:.3f} as it is); "
                "prepare does not use it"
            )
            findings.append(Finding("delayed", f"velocity:{joint}", "warning", text, result.delay))
    return findings


def rate(view: View) -> list[Finding]:
    """Sampling too slow for the motion: still moving at the highest frequency that can be differentiated."""
    if not view.usable:
        return []
    if view.rate < 20.0:
        text = f"{view.rate:.3g} Hz is slow for a robot; accelerations will be poor, check the unit of the clock"
        return [Finding("too_slow_rate", "time", "warning", text, view.rate)]
    band = view.cutoff.motion_band
    if band <= 0.2 * view.rate:
        return []
    text = f"the motion has accelerations up to {band:.3g} Hz, under 5 samples per period at {view.rate:.4g} Hz"
    return [Finding("too_slow_rate", "time", "warning", text, view.rate)]


# ---------------------------------------------------------------------- the delay between two records of one signal
#: Largest delay looked for, s.
LONGEST = 0.5
#: Smallest delay worth reporting, samples: a backward difference has half a sample of its own.
SMALLEST = 0.75
#: Smallest delay worth reporting, as a velocity error: omega times delay.
PHASE = 0.02
#: Part of the difference in power between the two signals that the shift must take away.
EXPLAINED = 0.1


@dataclass(frozen=True)
class Delay:
    """Delay of the second signal behind the first.

    Parameters
    ----------
    delay : float
        s, positive if the second signal comes later.
    deviation : float
        Standard deviation of the delay, s.
    correlation, at_zero : float
        Correlation with and without the shift.
    significant : bool
        More than 3 deviations, more than 0.75 samples, a phase error of more than 2 % at the signal's mean frequency, and at
        least a tenth of the difference between the signals.
    """

    delay: float
    deviation: float
    correlation: float
    at_zero: float
    significant: bool


def delay_between(first: Array, second: Array, rate: float) -> Delay | None:
    """Find the shift that aligns `second` with `first`.

    The peak of the cross-correlation is refined by the parabola through its three highest points. For correlation r at
    the peak, root mean square frequency omega and 2 B T independent samples, the deviation of the delay is
    ``sqrt((1 - r^2) / (2 B T)) / (r omega)``.
    """
    x, y = first - first.mean(), second - second.mean()
    if not (np.any(x) and np.any(y)):
        return None
    reach = min(int(LONGEST * rate), x.size // 4)
    lags = np.arange(-reach, reach + 1)
    # Each shift is normalised by what overlaps: in a short record the samples shifted out would hide the peak.
    begin, end = np.maximum(-lags, 0), x.size - np.maximum(lags, 0)
    power = [np.concatenate([[0.0], np.cumsum(z * z)]) for z in (x, y)]
    norm = np.sqrt((power[0][end] - power[0][begin]) * (power[1][end + lags] - power[1][begin + lags]))
    length = 1 << (x.size + y.size).bit_length()  # zeros behind the signals keep their ends apart
    circular = np.fft.irfft(np.fft.rfft(y, length) * np.conj(np.fft.rfft(x, length)), length)
    window = circular[lags] / np.maximum(norm, np.finfo(float).tiny)
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
