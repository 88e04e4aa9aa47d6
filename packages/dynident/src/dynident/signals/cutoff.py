"""Where the motion ends and the noise begins: the cut-off frequency, read from the spectrum of the positions.

The principle. The acceleration density ``S_a = (2 pi f)^4 S_q`` of a motion falls with frequency (accelerations are
bounded, so at least like f^-2), while that of position noise rises (white noise like f^4, random-walk noise like f^2).
Between the two lies a valley: below it is motion, above it noise. From that:

* band: 99.9 % of the acceleration power below the valley lies inside it (fastest channel). Rows are decimated to it.
* cut-off: 2.5 times the band, so that the filter changes nothing inside it (amplitude 0.9993 at its edge).
* but noise in the accelerations pulls inertias towards zero by the ratio (noise variance / motion variance), so the
  cut-off goes beyond the valley at most until the variance picked up there, taken as pure noise, is 1 % of the motion's;
  decimation then leaves 1/100 (white noise) to 2/5 of that.
* IDIM practice asks for 5 times the band of the positions (99.99 % of their variance). With clean positions the rules above
  give more than that; with noisy ones it would lie in the noise, so it is only `highest`: how far up a choice by the error of
  the model itself may look (`Regression.from_logs`).

Several records of one fit are read together, as if they were one: they must share one band.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.errors import LogError
from dynident.signals.filters import SECOND

#: Variance picked up beyond the valley, over that of the motion (accelerations).
BIAS = 1e-2
#: A band is motion if the acceleration density falls by this factor somewhere above it; noise only rises.
FALL = 30.0
#: Part of the acceleration power of the motion that the band holds.
POWER = 0.999
#: Part that the narrowest band worth trying holds.
MOST_POWER = 0.9
#: Cut-off over band: the amplitude of the filter at the edge of the band is 1 / (1 + 2.5^-8) = 0.9993.
RATIO = 2.5
#: Cut-off over the band of the positions that practice asks for ([Gautier1997]: omega_f >= 5 omega_dyn).
SLOW = 5.0
#: Cut-off over band, at least, where noise leaves no room for `RATIO`: efforts pass the same filter, so the band stays true.
EDGE = 1.25
#: A second hump of the density with less than this part of the power may be low-passed noise, and is left out.
HUMP = 0.1
#: Such a hump rises at least by this factor (white noise does in less than an octave).
RISE = 10.0
#: The cut-off stays below this part of the sampling rate: central differences are exact to 0.3 % there.
HIGHEST = 0.25
#: Decimation to the band should leave about this many rows per channel.
ROWS = 150
#: Bins of the smoothed spectrum: this many per octave, each with at least this many lines.
PER_OCTAVE = 3
LINES = 4
#: A channel that moves less than this (rad or m) and less than this part of the widest motion stands still.
STILL = 1e-3
#: Spacings of float64 by which rounding may move a position on its way here (units, gears, resampling).
ROUNDINGS = 16.0
#: Fewer samples show no spectrum.
SHORTEST = 64


@dataclass(frozen=True, eq=False)
class Cutoff:
    """A cut-off frequency and why.

    Parameters
    ----------
    frequency : float
        Cut-off in Hz, one for all channels.
    band : float
        Frequency in Hz up to which the motion is known and worth keeping; frequency / 2.5, or the band of the motion where
        noise keeps the cut-off closer to it.
    motion_band : float
        Frequency in Hz below which 99.9 % of the acceleration power of the motion lies (fastest channel).
    valley : float
        Frequency in Hz of the lowest acceleration density, between motion and noise.
    moving : ndarray of bool, shape (n,)
        Channels with a motion above the noise; only these decide.
    explanation : str
        The choice in words and numbers.
    lowest, highest : float
        Smallest and largest cut-off in Hz that may be worth trying: 2.5 times the band that holds 90 % of the acceleration
        power, and 5 times the band of the positions; `frequency` itself where they would not be.
    noise : float
        Variance of noise over that of the motion in the accelerations inside the band: inertias come out too small by about
        this share.
    """

    frequency: float
    band: float
    motion_band: float
    valley: float
    moving: NDArray[np.bool_]
    explanation: str
    lowest: float = 0.0
    highest: float = 0.0
    noise: float = 0.0


def acceleration_spectrum(rate: float, *records: Array) -> tuple[Array, Array]:
    """One-sided density of the acceleration, ``(2 pi f)^4 S_q``, from second differences of one or more records.

    Differencing first flattens the spectrum, so the strong slow motion does not leak into the weak noise; the taper is
    short because the accelerations of a single move lie at the ends of its record. It also joins records without a jump.
    """
    tapers = [_taper(q.shape[0] - 2) for q in records]
    second = np.concatenate([np.diff(q, 2, axis=0) * w[:, None] for q, w in zip(records, tapers, strict=True)])
    f, density = _periodogram(second, rate, sum(float(w @ w) for w in tapers))
    f, density = f[1:], density[1:]
    gain = rate**4 * (np.pi * f / (rate * np.sin(np.pi * f / rate))) ** 4
    return np.asarray(f), np.asarray(density * gain[:, None])


def _hann(size: int) -> Array:
    """One period of a raised cosine."""
    return np.asarray(0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(size) / size))


def _taper(size: int) -> Array:
    """Tukey's window: a raised cosine over the first and the last twentieth, one between."""
    edge = np.minimum(np.arange(size), size - np.arange(size)) / (0.05 * size)
    return np.asarray(0.5 - 0.5 * np.cos(np.pi * np.minimum(edge, 1.0)))


def _periodogram(x: Array, rate: float, power: float) -> tuple[Array, Array]:
    """Frequencies and one-sided power density of windowed columns; `power` is the sum of the window's squares."""
    density = np.abs(np.fft.rfft(x, axis=0)) ** 2 / (rate * power)
    density[1 : (x.shape[0] + 1) // 2] *= 2.0  # what lies at negative frequencies; none for zero and half the rate
    return np.asarray(np.fft.rfftfreq(x.shape[0], 1.0 / rate), dtype=np.float64), density


def automatic_cutoff(t: ArrayLike, q: ArrayLike) -> Cutoff:
    """Return the low-pass frequency for differentiation, chosen from the positions `q` (N,) or (N, n) [rad or m] alone.

    `t` holds uniform times (N,) [s], or is the sampling rate [Hz]. All channels share one frequency, so that all columns of a
    regressor see the same filter.
    """
    values = np.asarray(q, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    clock = np.asarray(t, dtype=np.float64)
    if clock.ndim > 1 or (clock.ndim == 1 and not (clock.size > 1 and clock[-1] > clock[0])):
        raise LogError(f"t has shape {clock.shape}; give a rate in Hz, or times that grow")
    rate = float(clock) if clock.ndim == 0 else (clock.size - 1) / float(clock[-1] - clock[0])
    if values.shape[0] < SHORTEST:
        raise LogError(
            f"{values.shape[0]} samples are too few to see a spectrum ({SHORTEST} are needed); give a cut-off frequency"
        )
    if not np.all(np.isfinite(values)):
        raise LogError("positions have missing values; interpolate or cut them out before choosing a cut-off")
    return choose_cutoff(rate, [values])


def choose_cutoff(rate: float, records: list[Array]) -> Cutoff:
    """Return one cut-off for all records (N, n) of a fit, sampled at the same rate."""
    values = records[0] if len(records) == 1 else np.concatenate(records)
    top = HIGHEST * rate
    f, density = acceleration_spectrum(rate, *records)
    slices = _bins(f[f <= top])
    still = np.all([stands_still(q) for q in records], axis=0)
    smooth = np.array([density[s].mean(axis=0) for s in slices])
    valleys = [None if still[j] else _valley(smooth[:, j]) for j in range(values.shape[1])]
    moving = np.array([v is not None for v in valleys])
    if not np.any(moving):
        return _from_positions(rate, records)
    step = float(f[1] - f[0])
    centres = np.array([math.sqrt(f[s.start] * f[s.stop - 1]) for s in slices])
    power = np.array([density[f <= centres[v], j].sum() * step for j, v in enumerate(valleys) if v is not None])
    # Every moving channel counts alike, whatever its unit: densities over the variance of its own motion.
    relative = density[:, moving] / power
    pooled = relative.mean(axis=1)
    together = np.array([pooled[s].mean() for s in slices])
    found = _valley(together)
    index = max(v for v in valleys if v is not None) if found is None else found
    index = _shoulder(together, np.array([pooled[s].sum() for s in slices]), index)
    valley = float(centres[index])
    kept = np.cumsum(relative[f <= valley], axis=0)
    fast = float(np.max(f[np.argmax(kept >= POWER * kept[-1], axis=0)]))
    band = max(fast, 0.4 * ROWS * rate / values.shape[0])
    beyond = np.cumsum(np.where(f > valley, pooled, 0.0)) * step
    allowed = int(np.searchsorted(beyond, BIAS))
    limit = top if allowed >= f.size else max(valley, float(f[max(allowed - 1, 0)]))
    slow = max(float(np.max(_position_band(rate, q[:, moving]))) for q in records)
    frequency = min(RATIO * band, limit, top)
    reasons = {
        RATIO * band: f"{RATIO:g} times "
        + ("the band of the motion" if band == fast else f"the {band:.3g} Hz that give {ROWS} rows"),
        limit: f"the limit where noise adds {BIAS:.0%} to the variance of the accelerations",
        top: f"{HIGHEST:g} of the sampling rate",
    }
    inside = min(max(frequency / RATIO, min(fast, frequency / EDGE)), frequency)
    noise = _noise_share(f, pooled, float(together[index]), valley, inside)
    explanation = (
        f"cut-off {frequency:.4g} Hz, {reasons[frequency]}: {POWER:.1%} of the acceleration power of the motion lies below "
        f"{fast:.4g} Hz, the acceleration density has its valley between motion and noise at {valley:.4g} Hz, noise would "
        f"add {BIAS:.0%} at {limit:.4g} Hz; {int(moving.sum())} of {moving.size} channels move"
    )
    most = float(np.max(f[np.argmax(kept >= MOST_POWER * kept[-1], axis=0)]))
    lowest = min(frequency, RATIO * max(most, 0.4 * ROWS * rate / values.shape[0]))
    highest = min(max(frequency, SLOW * slow), top)
    return Cutoff(frequency, inside, fast, valley, moving, explanation, lowest, highest, noise)


def _noise_share(f: Array, density: Array, lowest: float, valley: float, band: float) -> float:
    """Return the variance of noise below `band` over that of the motion, taking position noise as white below the valley."""
    below = lowest * min(band, valley) / 5.0 * (min(band, valley) / valley) ** 4
    step = float(f[1] - f[0])
    return float(below + np.sum(density[(f > valley) & (f <= band)]) * step)


def stands_still(q: Array) -> NDArray[np.bool_]:
    """Channels that move by no more than rounding, or less than 1 mrad or 1 mm and a thousandth of the widest motion."""
    span = np.ptp(q, axis=0)
    return np.asarray((span <= rounding_span(q, HIGHEST)) | ((span < STILL) & (span < STILL * span.max())))


def rounding_span(q: Array, cutoff: float) -> Array:
    """Widest motion (n,) whose accelerations rounding could have made; `cutoff` is in cycles per sample, `q` (N, n)."""
    u = ROUNDINGS * np.spacing(np.maximum(1.0, np.max(np.abs(q), axis=0)))
    return np.asarray(2.0 * u * np.sum(np.abs(SECOND)) / (2.0 * np.pi * cutoff) ** 2)


def _from_positions(rate: float, records: list[Array]) -> Cutoff:
    """Without accelerations above the noise (slow ramps), only the band of the positions is known."""
    moving = ~np.all([stands_still(q) for q in records], axis=0)
    top = HIGHEST * rate
    slow = max(float(np.max(_position_band(rate, q[:, moving]))) for q in records) if np.any(moving) else top
    frequency = min(SLOW * slow, top)
    text = (
        f"cut-off {frequency:.4g} Hz, {SLOW:g} times the {slow:.3g} Hz band of the positions: no channel has accelerations "
        "above its noise, so inertias cannot be seen in this log"
    )
    return Cutoff(frequency, frequency / RATIO, slow, frequency, moving, text, frequency, frequency)


def _position_band(rate: float, q: Array) -> Array:
    """Frequency below which 99.99 % of the variance of the positions lies, per channel."""
    window = _hann(q.shape[0])
    f, density = _periodogram((q - q.mean(axis=0)) * window[:, None], rate, float(window @ window))
    total = np.cumsum(density[1:], axis=0)
    return np.asarray(f[1:][np.argmax(total >= 0.9999 * total[-1], axis=0)])


def _bins(f: Array) -> list[slice]:
    """Slices of equal frequency ratio, with at least `LINES` lines each."""
    slices = []
    start = 0
    ratio = 2.0 ** (1.0 / PER_OCTAVE)
    while start < f.size:
        stop = max(start + LINES, int(np.searchsorted(f, f[start] * ratio)))
        stop = f.size if stop + LINES > f.size else stop
        slices.append(slice(start, stop))
        start = stop
    return slices


def _valley(smooth: Array) -> int | None:
    """Bin of the lowest density above the motion; None if the density nowhere falls, that is, nothing moves.

    The motion reaches up to the last bin from which the density still falls by `FALL`; gaps between the lines of a
    multisine lie below that bin and are not mistaken for the valley.
    """
    if smooth.size < 3 or not np.all(np.isfinite(smooth)):
        return None
    lowest_after = np.minimum.accumulate(smooth[::-1])[::-1]
    motion = np.flatnonzero(smooth[:-1] > FALL * lowest_after[1:])
    if motion.size == 0:
        return None
    start = int(motion[-1]) + 1
    return start + int(np.argmin(smooth[start:]))


def _shoulder(smooth: Array, power: Array, valley: int) -> int:
    """Move the valley down to where noise begins, if the noise itself was low-passed."""
    below = np.cumsum(power)
    highest_after = np.maximum.accumulate(smooth[: valley + 1][::-1])[::-1]
    noise = (highest_after >= RISE * smooth[: valley + 1]) & (below[valley] - below[: valley + 1] <= HUMP * below[: valley + 1])
    candidates = np.flatnonzero(noise)
    return int(candidates[np.argmin(smooth[candidates])]) if candidates.size else valley
