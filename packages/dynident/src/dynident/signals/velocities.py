"""Logged velocities against the differentiated positions: another unit, or another time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.signals.quality import FEWEST, Finding, View

Array = NDArray[np.float64]

#: Logged velocity over differentiated position, and what the ratio means.
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
#: Part of the difference in power between the two signals that the shift must take away.
EXPLAINED = 0.1


def check_velocities(view: View, logged: Array) -> list[Finding]:
    """Return what logged velocities (N, n) have of another unit, and which come late."""
    return _other_units(view, logged) + _delayed(view, logged)


def _other_units(view: View, logged: Array) -> list[Finding]:
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


def _delayed(view: View, logged: Array) -> list[Finding]:
    """Logged velocities that come later (or earlier) than the differentiated positions."""
    findings = []
    for j, joint in enumerate(view.raw.joints):
        if view.still[j] or not np.all(np.isfinite(logged[:, j])) or np.ptp(logged[:, j]) == 0.0:
            continue
        result = delay_between(view.velocity[:, j], logged[:, j], view.rate)
        if result is not None and result.significant:
            word = "later" if result.delay > 0 else "earlier"
            text = (
                f"comes {abs(result.delay):.4g} s ({abs(result.delay) * view.rate:.1f} samples) {word} than the "
                f"differentiated position (correlation {result.correlation:.3f} shifted, {result.at_zero:.3f} as it is); "
                "prepare does not use it"
            )
            findings.append(Finding("delayed", f"velocity:{joint}", "warning", text, result.delay))
    return findings


@dataclass(frozen=True)
class Delay:
    """Delay of the second signal behind the first."""

    delay: float  # s, positive if the second signal comes later
    deviation: float  # Standard deviation of the delay, s
    correlation: float  # Correlation with and without the shift
    at_zero: float  # Correlation with and without the shift
    significant: bool


def delay_between(first: Array, second: Array, rate: float) -> Delay | None:
    """Find the shift that aligns `second` with `first`."""
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
