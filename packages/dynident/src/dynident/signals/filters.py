"""Low-pass filters: Butterworth's, without phase, and the parallel decimation of both sides of an equation.

Butterworth's filter is a chain of second-order sections, without scipy.signal (0.8 s of import for one recursion).
With w = tan(pi f_c / f_s) and z^-1 the delay, the pole pair k of order n gives, by the bilinear transform,

    H_k = w^2 (1 + z^-1)^2 / [(1 + c_k w + w^2) + 2 (w^2 - 1) z^-1 + (1 - c_k w + w^2) z^-2],
    c_k = 2 sin(pi (2 k + 1) / (2 n)),

and an odd order one section w (1 + z^-1) / [(1 + w) + (w - 1) z^-1] more. Their machine code works on several
channels at a time, whose recursions are independent: LAPACK's banded substitution, the same recursion, takes thirty
times as long.

Filtering both sides of ``tau = W phi`` with the same linear filter keeps the equation valid; torque ripple and noise above the
band of the motion are removed, and down-sampling makes residuals nearly independent (IDIM practice, [Gautier1997]:
cut-off 0.8 f / (2 n_d)).
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.errors import LogError
from dynident.graph.machine import MachineCode, vector_width

Triple = tuple[Array, Array, Array]
Section = tuple[Array, Array]  # numerator and denominator in powers of z^-1, denominator with a leading 1

MOST_SAMPLES = 10**9  # of one log
LONGEST = 100  # half length of a decimating filter in output samples
HIGHEST = 20  # order of Butterworth's filter
#: Central differences of order 8, weights of x[i + k] -+ x[i - k]: exact to 0.1 % up to 0.2 of the sampling rate, where the
#: 3-point one loses 25 %.
FIRST = np.array([4 / 5, -1 / 5, 4 / 105, -1 / 280])
SECOND = np.array([8 / 5, -1 / 5, 8 / 315, -1 / 560])
MARGIN = FIRST.size  # samples at each end that have no derivatives
FEWEST_VALUES = 18  # samples of a signal that is differentiated
#: Time constants of the slowest pole over 2 pi after which the impulse response is below round-off, exp(-2 pi 6.2) = 1e-17;
#: the default filter of order 4 needs 16 periods of its cut-off for that.
REACH = 6.2
#: Logs up to this number of samples are filtered at once, longer ones in parts of half this length.
PART = 65_536
#: Above this number of samples, spectra omit up to 1 % at the end, for a length with a fast transform.
LONG = 131_072
SPLIT, STRETCH = 8, 8192  # transforms per longer signal, and lines combined at once
#: Largest deviation of a uniform clock, as a share of a step.
UNIFORM = 0.02
#: A record must hold at least this part of a period of the cut-off.
SHORTEST = 0.1
#: Half length of the filter in output samples: with a Kaiser window this reaches 62 dB.
HALF = 6
#: Half length for records that would lose too much at their ends: 35 dB.
SHORT = 3
MOST = 10**6  # times fewer rows; a filter of more taps is longer than any record
#: Largest share of filter weight on excluded samples for which a row is used.
SPOILT = 0.01


# ---------------------------------------------------------------------- positions to velocities and accelerations
def butterworth(t: ArrayLike, q: ArrayLike, cutoff: float, *, order: int = 4, causal: bool = False) -> Triple:
    """Return q, v, a after a zero-phase Butterworth low-pass and central differences of order 8, shaped like `q`.

    Parameters
    ----------
    t, q
        Uniform times (N,) [s] or the sampling rate [Hz]; positions (N,) or (N, n) [rad or m].
    cutoff, order
        Frequency [Hz] at which the amplitude (forward and backward together) is 1/2; order in one direction.
    causal
        Filter forward only, as on line: the result is delayed.
    """
    _, values, step = checked_inputs(t, q)
    check_cutoff(cutoff, 1.0 / step, values.shape[0])
    if not 1 <= order <= HIGHEST:
        raise LogError(f"order is {order}; give 1 to {HIGHEST}")
    return shaped_like(q, *butterworth_part(values, step, cutoff, slice(0, values.shape[0]), order, causal))


def butterworth_part(
    values: Array, step: float, cutoff: float, part: slice, order: int = 4, causal: bool = False, derivatives: bool = True
) -> Triple:
    """Return q, v, a of some samples of a long signal (N, n), equal to `butterworth` of the whole up to round-off.

    Samples within the length of the impulse response are used. Without `derivatives` v and a are empty.
    """
    # Forward and backward the amplitude is 1/2 at the cut-off because each pass has 1/sqrt(2) there.
    sections, period = low_pass_sections(order, cutoff * step), 1.0 / (cutoff * step)
    reach = math.ceil(REACH * period / math.sin(math.pi / (2 * order)))
    first, last = max(part.start - reach, 0), min(part.stop + reach, values.shape[0])
    # Beyond the ends of the signal the impulse response has died out after 3 periods.
    pad, window = MARGIN + math.ceil(3.0 * period), min(max(math.ceil(period), 8), values.shape[0])
    parts = [values[first:last]]
    if first == 0:
        parts.insert(0, _prolonged(values[:window][::-1], pad)[::-1])
    if last == values.shape[0]:
        parts.append(_prolonged(values[last - window :], pad))
    x = padded(parts[0] if len(parts) == 1 else np.concatenate(parts))
    filter_columns(sections, x)
    if not causal:
        filter_columns(sections, x, backward=True)
    start, count, channels = part.start - first + (pad if first == 0 else 0), part.stop - part.start, values.shape[1]
    own = slice(start, start + count)
    if not derivatives:
        return x[own, :channels], np.empty((0, channels)), np.empty((0, channels))
    v, a = differences(FIRST / step, SECOND / step**2, x[start - MARGIN : start + count + MARGIN])
    return x[own, :channels], v[:, :channels], a[:, :channels]


def parts_of(samples: int, step: float, cutoff: float, order: int = 4) -> list[slice]:
    """Return the parts in which a long signal is filtered, each longer than the settling time of the filter."""
    length = max(
        PART if samples <= PART else PART // 2, math.ceil(4.0 * REACH / (cutoff * step * math.sin(math.pi / (2 * order))))
    )
    return [slice(first, min(first + length, samples)) for first in range(0, samples, length)]


def low_passed(values: Array, step: float, cutoff: float, order: int = 4, causal: bool = False, derivative: int = 0) -> Array:
    """Return one derivative (0, 1 or 2) of a signal (N, n) as from `butterworth`, part by part in little memory."""
    result = np.empty(values.shape)
    for part in parts_of(len(values), step, cutoff, order):
        result[part] = butterworth_part(values, step, cutoff, part, order, causal, derivative > 0)[derivative]
    return result


def checked_inputs(t: ArrayLike, q: ArrayLike, uniform: bool = True) -> tuple[Array, Array, float]:
    """Return times, positions (N, n) and step; raise LogError for invalid input."""
    values = np.asarray(q, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or values.shape[0] < FEWEST_VALUES:
        raise LogError(f"positions have shape {values.shape}; at least {FEWEST_VALUES} samples (samples, joints) are needed")
    clock = np.asarray(t, dtype=np.float64)
    if clock.ndim == 0:
        if not 0 < float(clock) < math.inf:
            raise LogError(f"sampling rate is {float(clock)}; it must be a positive number of Hz")
        clock = np.arange(values.shape[0]) / float(clock)
    if clock.shape != (values.shape[0],):
        raise LogError(f"times have shape {clock.shape} but positions have {values.shape[0]} samples")
    if not np.all(np.isfinite(values)):
        bad = np.argwhere(~np.isfinite(values))[0]
        raise LogError(f"position channel {bad[1]} is not finite at sample {bad[0]}; interpolate or cut it out first")
    step = float(clock[-1] - clock[0]) / (clock.size - 1)
    if not step > 0.0:
        raise LogError("times do not increase; sort them first")
    if uniform and (strays := stray(clock)) > UNIFORM:
        raise LogError(f"times deviate from a uniform clock by {strays:.3g} steps; resample first (prepare does it)")
    return clock, values, step


def stray(t: Array) -> float:
    """Largest distance of a clock from uniform, in steps."""
    step = (t[-1] - t[0]) / (t.size - 1)
    return float(np.max(np.abs(t - t[0] - step * np.arange(t.size))) / step)


def check_cutoff(cutoff: float, rate: float, samples: int) -> float:
    """Return `cutoff` if it lies below the Nyquist frequency and not far below one period in the record."""
    if not (isinstance(cutoff, int | float | np.number) and math.isfinite(cutoff) and cutoff > 0.0):
        raise LogError(f"cut-off frequency is {cutoff!r}; give a positive number of Hz")
    if cutoff >= 0.5 * rate:
        raise LogError(f"cut-off frequency {cutoff:g} Hz is not below the Nyquist frequency {rate / 2:g} Hz; lower it")
    if cutoff * samples < SHORTEST * rate:  # filters reach over some periods of the cut-off: this bounds their memory
        raise LogError(
            f"one period of the cut-off {cutoff:g} Hz is {rate / (cutoff * samples):.3g} times the record ({samples} "
            f"samples at {rate:g} Hz); check the unit of the clock, or raise the cut-off"
        )
    return float(cutoff)


def shaped_like(q: ArrayLike, *arrays: Array) -> Triple:
    """Give the results the shape of the input."""
    flat = np.asarray(q).ndim == 1
    a, b, c = (np.ascontiguousarray(x[:, 0]) if flat else np.ascontiguousarray(x) for x in arrays)
    return a, b, c


def _prolonged(values: Array, pad: int) -> Array:
    """Return `pad` samples behind a signal, extrapolated by a fitted cubic, so that v and a do not jump there."""
    window = values.shape[0]
    ahead, powers = 1.0 + np.arange(pad) / window, np.arange(4)
    fit = np.linalg.pinv((np.arange(window) / window)[:, None] ** powers)
    return np.asarray((ahead[:, None] ** powers) @ (fit @ values))


def low_pass_sections(order: int, cutoff: float) -> list[Section]:
    """Return the sections of a low-pass whose amplitude is 1/sqrt(2) at a cut-off in cycles per sample."""
    w = np.tan(np.pi * cutoff)
    sections = []
    for k in range(order // 2):
        damping = 2.0 * np.sin(np.pi * (2 * k + 1) / (2 * order)) * w
        a = np.array([1.0 + damping + w * w, 2.0 * (w * w - 1.0), 1.0 - damping + w * w])
        sections.append((w * w / a[0] * np.array([1.0, 2.0, 1.0]), a / a[0]))
    if order % 2:
        sections.append((w / (1.0 + w) * np.ones(2), np.array([1.0, (w - 1.0) / (1.0 + w)])))
    return sections


# ---------------------------------------------------------------------- regressor columns and efforts to fewer rows
@dataclass(frozen=True, eq=False)
class Decimator:
    """Zero-phase low-pass and down-sampling by an integer.

    ``y[k] = sum_i h[i] x[k n_d + i]``, h symmetric with unit sum, so y[k] belongs to input sample ``k n_d + half n_d``.
    In parts of the new Nyquist frequency, the pass band is flat to 0.5 (0.3 %), the amplitude is 1/2 at 0.8 (the cut-off)
    and from 1.12 on at least 60 dB are removed. A longer filter would be steeper, but lose more of the record's ends.
    """

    factor: int  # Down-sampling factor n_d >= 1; 1 leaves everything as it is
    rate: float  # Sampling rate of the input in Hz
    half: int = HALF
    taps: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.factor, bool) or not isinstance(self.factor, int | np.integer) or not 1 <= self.factor <= MOST:
            raise LogError(f"decimation factor is {self.factor!r}; it must be a whole number from 1 to {MOST}")
        if not (isinstance(self.rate, int | float | np.number) and 0 < self.rate < math.inf):
            raise LogError(f"decimation rate is {self.rate!r}; it must be a positive number of Hz")
        if not 1 <= self.half <= LONGEST:
            raise LogError(f"half is {self.half}; it must be a whole number from 1 to {LONGEST}")
        object.__setattr__(self, "factor", int(self.factor))
        object.__setattr__(self, "rate", float(self.rate))
        taps = _taps(self.factor, self.half)
        taps.flags.writeable = False
        object.__setattr__(self, "taps", taps)

    @property
    def cutoff(self) -> float:
        """Frequency in Hz where the amplitude is 1/2: 0.8 f / (2 n_d); the Nyquist frequency when the factor is 1."""
        return self.rate / 2.0 if self.factor == 1 else 0.8 * self.rate / (2.0 * self.factor)

    @property
    def independence(self) -> float:
        """Effective number of independent rows per row, n_d sum h^2 <= 1, by which row variances must be divided."""
        return float(self.factor * np.sum(self.taps**2))

    def length(self, samples: int) -> int:
        """Return the number of fully supported outputs."""
        return max(0, (samples - self.taps.size) // self.factor + 1)

    def centres(self, samples: int) -> NDArray[np.intp]:
        """Return the input sample each output belongs to."""
        if not samples <= MOST_SAMPLES:
            raise LogError(f"samples is {samples}; at most {MOST_SAMPLES} are numbered at once")
        return np.arange(self.length(samples), dtype=np.intp) * self.factor + self.taps.size // 2

    def apply(self, x: ArrayLike) -> Array:
        """Filter and down-sample along axis 0."""
        return self._filter(np.asarray(x, dtype=np.float64), self.taps)

    def add_rows(self, x: Array, at: int, out: Array) -> None:
        """Add the contribution of inputs (m, n) to outputs (m, count), samples last; `at` is the index of the first input."""
        wide = max(2 * self.taps.size, 512)  # a full matrix would be mostly zeros
        if x.shape[1] > wide:
            for begin in range(0, x.shape[1], wide):
                self.add_rows(x[:, begin : begin + wide], at + begin, out)
            return
        first = max(-((self.taps.size - 1 - at) // self.factor), 0)
        last = min((at + x.shape[1] - 1) // self.factor + 1, out.shape[1])
        if first >= last:
            return
        # The weight of input i in output k is taps[i - k n_d], zero outside: a small matrix, and BLAS is fast.
        ends = np.zeros(x.shape[1] + (last - first) * self.factor)
        taps = np.concatenate([ends, self.taps, ends])
        start, stride = ends.size + at - first * self.factor, taps.strides[0]
        shape, strides = (x.shape[1], last - first), (stride, -stride * self.factor)
        out[:, first:last] += x @ np.lib.stride_tricks.as_strided(taps[start:], shape, strides)

    def apply_rows(self, x: Array) -> Array:
        """Filter and down-sample rows (m, n), samples last; same as `apply`, in one product for a few short rows."""
        if self.factor == 1:
            return x
        parts, count = 2 * self.half, self.length(x.shape[1])
        blocks = np.ascontiguousarray(x[:, : (count - 1 + parts) * self.factor]).reshape(len(x), -1, self.factor)
        products = blocks @ self.taps[:-1].reshape(parts, self.factor).T
        row, block, part = products.strides
        diagonals = np.lib.stride_tricks.as_strided(products, (len(x), count, parts), (row, block, block + part))
        tail = self.taps[-1] * x[:, parts * self.factor :: self.factor][:, :count]
        return np.asarray(diagonals.sum(axis=2) + tail)

    def usable(self, samples: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which outputs are usable if some inputs are excluded."""
        weights = np.abs(self.taps)
        return np.asarray(self._filter(np.where(samples, 0.0, 1.0), weights / weights.sum()) <= SPOILT)

    def _filter(self, values: Array, taps: Array) -> Array:
        count = self.length(values.shape[0]) if values.ndim else 0
        if count < 1:
            raise LogError(
                f"{values.shape[0] if values.ndim else 0} samples are too few for a decimation by {self.factor}, "
                f"which needs at least {self.taps.size}"
            )
        if self.factor == 1:
            return values
        # Blocks of n_d samples times all taps at once (one small matrix product), then the diagonals are summed:
        # y[k] = sum_b H[b] . X[k + b]. This costs taps / n_d operations per input value, the least possible.
        parts = 2 * self.half
        flat = values[: (count - 1 + parts) * self.factor].reshape(count - 1 + parts, self.factor, -1)
        products = taps[:-1].reshape(parts, self.factor) @ flat
        # The last tap of the odd-length filter falls on the first sample of the next block.
        tail = values[parts * self.factor :: self.factor][:count].reshape(count, -1)
        result: Array = taps[-1] * tail
        for b in range(parts):
            result += products[b : b + count, b, :]
        return np.asarray(result.reshape(count, *values.shape[1:]))

    def tiles(self, samples: int, rows: int) -> Iterator[tuple[slice, slice]]:
        """Yield pairs of input and output slices, to filter a signal piece by piece.

        ``apply(x)[output] == apply(x[input])`` for every pair.
        """
        if rows < 1:
            raise LogError(f"rows per tile is {rows}; it must be 1 or more")
        if samples > MOST_SAMPLES:
            raise LogError(f"samples is {samples}; give {MOST_SAMPLES:g} at most")
        count = self.length(samples)
        for start in range(0, count, rows):
            stop = min(start + rows, count)
            yield slice(start * self.factor, (stop - 1) * self.factor + self.taps.size), slice(start, stop)


def _taps(factor: int, half: int) -> Array:
    """Return the weights of a decimator, with unit sum."""
    if factor == 1:
        return np.ones(1)
    taps = low_pass_weights(np.arange(-half * factor, half * factor + 1) / factor, half)
    return np.asarray(taps / taps.sum())


def low_pass_weights(x: Array, half: int) -> Array:
    """Kaiser-windowed sinc over `x` in new samples, with cut-off 0.8 of their Nyquist frequency; as steep for any half."""
    attenuation = 8.0 + 9.0 * half
    beta = (
        0.1102 * (attenuation - 8.7)
        if attenuation > 50.0
        else 0.5842 * (attenuation - 21) ** 0.4 + 0.07886 * (attenuation - 21)
    )
    window = np.i0(beta * np.sqrt(np.maximum(1.0 - (x / half) ** 2, 0.0))) / np.i0(beta)
    return np.asarray(np.where(np.abs(x) <= half, np.sinc(0.8 * x) * window, 0.0))


#: Acceleration variance gained beyond the valley, relative to the variance of the motion.
BIAS = 1e-2
#: A band is motion if the acceleration density falls by this factor somewhere above it; noise only rises.
FALL = 30.0
#: Share of the acceleration power of the motion inside the band.
POWER = 0.999
#: The same share for the narrowest band worth trying.
MOST_POWER = 0.9
#: Cut-off over band: the amplitude of the filter at the edge of the band is 1 / (1 + 2.5^-8) = 0.9993.
RATIO = 2.5
#: Usual ratio of cut-off to the band of the positions ([Gautier1997]: omega_f >= 5 omega_dyn).
SLOW = 5.0
#: Smallest ratio of cut-off to band if noise prevents `RATIO`: efforts pass the same filter, so the band stays unbiased.
EDGE = 1.25
#: A second hump of the density below this share of the power may be low-passed noise and is excluded.
HUMP = 0.1
#: Such a hump rises at least by this factor (white noise does in less than an octave).
RISE = 10.0
#: The cut-off stays below this part of the sampling rate: central differences are exact to 0.3 % there.
HIGHEST_CUTOFF = 0.25
#: Decimation to the band should leave about this many rows per channel.
ROWS = 150
#: Bins of the smoothed spectrum: this many per octave, each with at least this many lines.
PER_OCTAVE = 3
LINES = 4
#: A channel that moves less than this (rad or m) and less than this part of the widest motion stands still.
STILL = 1e-3
#: Sum of the magnitudes of the weights of the second difference.
SECOND_SIZE = float(2.0 * abs(np.sum(SECOND)) + 2.0 * np.sum(np.abs(SECOND)))
#: Largest accumulated rounding error of a position (units, gears, resampling), in spacings of float64.
ROUNDINGS = 16.0
#: Fewest samples for a spectrum.
FEWEST_SAMPLES = 64


@dataclass(frozen=True, eq=False)
class Cutoff:
    """A cut-off frequency and its explanation."""

    frequency: float  #: Cut-off in Hz, one for all channels
    #: Frequency in Hz up to which the motion is known and worth keeping; frequency / 2.5, or the band of the motion
    #: where noise keeps the cut-off closer to it
    band: float
    motion_band: float  #: Frequency in Hz below which 99.9 % of the acceleration power of the motion lies (fastest channel)
    moving: NDArray[np.bool_]  #: (n,), channels with a motion above the noise; only these decide
    explanation: str  #: The choice in words and numbers
    #: Smallest cut-off in Hz that may be worth trying: 2.5 times the band that holds 90 % of the acceleration power
    lowest: float = 0.0
    highest: float = 0.0  #: Largest cut-off in Hz that may be worth trying: 5 times the band of the positions
    #: Noise variance over motion variance of the accelerations inside the band: inertias are underestimated by
    #: about this share
    noise: float = 0.0
    position_band: float = float("inf")  #: Frequency in Hz below which 99.99 % of the variance of the positions lies


def acceleration_spectrum(rate: float, *records: Array, highest: float = 0.5) -> tuple[Array, Array]:
    """One-sided density of the acceleration, ``(2 pi f)^4 S_q``, up to a frequency in parts of the rate.

    It is computed from second differences of one or more records.

    Differencing first flattens the spectrum, so the strong slow motion does not leak into the weak noise; the taper is
    short because the accelerations of a single move lie at the ends of its record. The taper also joins records without a jump.
    """
    records = tuple(q[: _fast_length(len(q) - 2) + 2] for q in records)
    count = sum(q.shape[0] - 2 for q in records)
    f = rate / count * np.arange(1, 1 + int(highest * count))
    gain = rate**4 * (np.pi * f / (rate * np.sin(np.pi * f / rate))) ** 4
    density = np.empty((records[0].shape[1], f.size))
    second = np.empty(count)
    for j, own in enumerate(density):  # channel by channel, to limit memory
        at, power = 0, 0.0
        for q in records:
            x = second[at : at + q.shape[0] - 2]
            first = np.diff(q[:, j])
            np.subtract(first[1:], first[:-1], out=x)
            del first
            power += _tapered(x)
            at += x.size
        np.multiply(_periodogram(second, rate, power, f.size + 1)[1:], gain, out=own)
    return f, density.T


def _fast_length(samples: int) -> int:
    """Return the transformed length of a long signal, without large prime factors, which are slow."""
    spare = max(samples.bit_length() - 8, 0) if samples > LONG else 0
    return samples >> spare << spare


def _tapered(x: Array) -> float:
    """Multiply a signal by Tukey's window, a raised cosine over a twentieth of the samples at each end; return its power."""
    edge = 0.5 - 0.5 * np.cos(np.pi * np.arange(math.ceil(0.05 * x.size)) / (0.05 * x.size))
    x[: edge.size] *= edge
    x[x.size - edge.size + 1 :] *= edge[:0:-1]
    return float(x.size + 2.0 * (edge @ edge) - (2 * edge.size - 1))


def _periodogram(x: Array, rate: float, power: float, lines: int) -> Array:
    """The first lines of the one-sided power density of a windowed signal; `power` is the sum of the window's squares.

    X[k] = sum_r w^(k r) F_r[k], w = exp(-2 pi i / N), F_r the transforms of every `SPLIT`-th sample from the r-th on: a
    transform of a long signal at once needs several times its memory.
    """
    parts = SPLIT if x.size > LONG and x.size % SPLIT == 0 else 1
    F, period = [np.fft.rfft(x[r::parts]) for r in range(parts)], x.size // parts
    density = np.empty(lines)
    for first in range(0, lines, STRETCH):
        k = np.arange(first, min(first + STRETCH, lines))
        turn, at, found = np.exp(-2j * np.pi / x.size * k), k % period, np.zeros(k.size, dtype=complex)
        mirrored = 2 * at > period  # F_r of a real signal is symmetric
        at = np.where(mirrored, period - at, at)
        for r in reversed(range(parts)):
            found *= turn
            found += np.where(mirrored, F[r][at].conj(), F[r][at])
        density[k] = found.real**2 + found.imag**2
    density /= rate * power
    density[1 : (x.size + 1) // 2] *= 2.0  # add negative frequencies; zero and half the rate have none
    return density


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
    if values.shape[0] < FEWEST_SAMPLES:
        raise LogError(
            f"{values.shape[0]} samples are too few to choose a cut-off frequency ({FEWEST_SAMPLES} are needed); give a longer "
            "log, or the frequency (cutoff=, --cutoff)"
        )
    if not np.all(np.isfinite(values)):
        raise LogError("positions have missing values; interpolate or cut them out before choosing a cut-off")
    return choose_cutoff(rate, [values])


def choose_cutoff(rate: float, records: list[Array]) -> Cutoff:
    """Return one cut-off for all records (N, n) of a fit, sampled at the same rate."""
    samples, top = sum(q.shape[0] for q in records), HIGHEST_CUTOFF * rate
    longest = max(len(q) for q in records)  # further records of the same motion do not make the band narrower
    still = np.all([stands_still(*extremes(q)) for q in records], axis=0)
    slowest = np.max([_position_bands(rate, q, ~still) for q in records], axis=0)
    f, density = acceleration_spectrum(rate, *records, highest=HIGHEST_CUTOFF)
    slices = _bins(f)
    if not slices:
        raise LogError(f"{samples} samples are too few to choose a cut-off frequency; give longer logs, or cutoff= (--cutoff)")
    smooth = np.array([density[s].mean(axis=0) for s in slices])
    valleys = [None if still[j] else _valley(smooth[:, j]) for j in range(still.size)]
    moving = np.array([v is not None for v in valleys])
    if not np.any(moving):
        return _from_positions(rate, slowest)
    step = float(f[1] - f[0])
    centres = np.array([math.sqrt(f[s.start] * f[s.stop - 1]) for s in slices])
    # Equal weight for all moving channels, independent of units: densities over the variance of the channel's motion.
    for j, v in enumerate(valleys):
        if v is not None:
            density[:, j] /= density[: np.searchsorted(f, centres[v], "right"), j].sum() * step
    pooled = density.mean(axis=1, where=moving)
    together = np.array([pooled[s].mean() for s in slices])
    found = _valley(together)
    index = max(v for v in valleys if v is not None) if found is None else found
    index = _shoulder(together, np.array([pooled[s].sum() for s in slices]), index)
    valley = float(centres[index])
    kept = [np.cumsum(density[: np.searchsorted(f, valley, "right"), j]) for j in np.flatnonzero(moving)]
    fast, most = (float(max(f[np.argmax(own >= share * own[-1])] for own in kept)) for share in (POWER, MOST_POWER))
    del density, kept  # as large as the log
    band = max(fast, 0.4 * ROWS * rate / longest)
    beyond = np.cumsum(np.where(f > valley, pooled, 0.0)) * step
    allowed = int(np.searchsorted(beyond, BIAS))
    limit = top if allowed >= f.size else max(valley, float(f[max(allowed - 1, 0)]))
    slow = float(np.max(slowest[moving]))
    frequency = min(RATIO * band, limit, top)
    reasons = {
        RATIO * band: f"{RATIO:g} times "
        + ("the band of the motion" if band == fast else f"the {band:.3g} Hz that give {ROWS} rows"),
        limit: f"the limit where noise adds {BIAS:.0%} to the variance of the accelerations",
        top: f"{HIGHEST_CUTOFF:g} of the sampling rate",
    }
    inside = min(max(frequency / RATIO, min(fast, frequency / EDGE)), frequency)
    noise = _noise_share(f, pooled, float(together[index]), valley, inside)
    explanation = (
        f"cut-off {frequency:.4g} Hz, {reasons[frequency]}: {POWER:.1%} of the acceleration power is below {fast:.4g} Hz, "
        f"motion and noise meet at {valley:.4g} Hz, noise adds {BIAS:.0%} at {limit:.4g} Hz; {int(moving.sum())} of "
        f"{moving.size} channels move"
    )
    lowest = min(frequency, RATIO * max(most, 0.4 * ROWS * rate / samples))
    highest = min(max(frequency, SLOW * slow), top)
    return Cutoff(frequency, inside, fast, moving, explanation, lowest, highest, noise, slow)


def _noise_share(f: Array, density: Array, lowest: float, valley: float, band: float) -> float:
    """Return the variance of noise below `band` over that of the motion, taking position noise as white below the valley."""
    below = lowest * min(band, valley) / 5.0 * (min(band, valley) / valley) ** 4
    step = float(f[1] - f[0])
    return float(below + np.sum(density[(f > valley) & (f <= band)]) * step)


def kept_samples(signals: Sequence[Array], most: int) -> NDArray[np.int64]:
    """Return the samples to keep, including the extremes of every signal in every stretch of time."""
    size = signals[0].size
    if size <= most:
        return np.arange(size)
    length = -(-size * 2 * len(signals) // most)  # samples of a stretch; each signal keeps two of them
    starts = np.arange(0, size, length)
    kept = [np.array([0, size - 1])]
    for y in signals:
        stretches = np.pad(y, (0, starts.size * length - size), mode="edge").reshape(-1, length)
        kept += [starts + np.argmin(stretches, axis=1), starts + np.argmax(stretches, axis=1)]
    return np.unique(np.minimum(np.concatenate(kept), size - 1))


def extremes(q: Array) -> tuple[Array, Array]:
    """Smallest and largest position (n,) of every channel of contiguous `q` (N, n), many samples at a time."""
    whole, n = len(q) // 64, q.shape[1]
    blocks, rest = q[: 64 * whole].reshape(whole, 64 * n), q[64 * whole :]
    low, high = (
        reduce(np.concatenate([reduce(blocks, axis=0).reshape(64, n) if whole else rest, rest]), axis=0)
        for reduce in (np.minimum.reduce, np.maximum.reduce)
    )
    return low, high


def stands_still(low: Array, high: Array) -> NDArray[np.bool_]:
    """Channels that move by no more than rounding, or less than 1 mrad or 1 mm and a thousandth of the widest motion."""
    span = high - low
    return np.asarray((span <= rounding_span(low, high, HIGHEST_CUTOFF)) | ((span < STILL) & (span < STILL * span.max())))


def rounding_span(low: Array, high: Array, cutoff: float) -> Array:
    """Widest motion (n,) whose accelerations could be rounding errors; `cutoff` is in cycles per sample."""
    u = ROUNDINGS * np.spacing(np.maximum(1.0, np.maximum(high, -low)))
    return np.asarray(2.0 * u * SECOND_SIZE / (2.0 * np.pi * cutoff) ** 2)


def _from_positions(rate: float, bands: Array) -> Cutoff:
    """Without accelerations above the noise (slow ramps), only the bands of the positions are known."""
    moving, top = bands > 0.0, HIGHEST_CUTOFF * rate
    slow = float(np.max(bands)) if np.any(moving) else top
    frequency = min(SLOW * slow, top)
    text = (
        f"cut-off {frequency:.4g} Hz, {SLOW:g} times the {slow:.3g} Hz band of the positions: accelerations are below the "
        "noise, so inertias cannot be identified"
    )
    return Cutoff(frequency, frequency / RATIO, slow, moving, text, frequency, frequency)


def _position_bands(rate: float, q: Array, moving: NDArray[np.bool_]) -> Array:
    """Frequency (n,) below which 99.99 % of the variance of each position channel lies, 0 for channels at rest."""
    q = q[: _fast_length(len(q))]
    angle, bands = 2.0 * np.pi / len(q), np.zeros(moving.size)
    for j in np.flatnonzero(moving):
        x = q[:, j] - q[:, j].mean()
        for first in range(0, len(x), STRETCH):  # Hann window in parts: it is as large as the signal
            x[first : first + STRETCH] *= 0.5 - 0.5 * np.cos(angle * np.arange(first, min(first + STRETCH, len(x))))
        total = _periodogram(x, rate, 0.375 * len(q), len(q) // 2 + 1)[1:]
        np.cumsum(total, out=total)
        bands[j] = (1 + int(np.argmax(total >= 0.9999 * total[-1]))) * rate / len(q)
        del x, total  # free memory before the next channel
    return bands


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
    """Bin of the lowest density above the motion; None if the density falls nowhere (no motion).

    The motion reaches up to the last bin from which the density still falls by `FALL`; gaps between the lines of a
    multisine lie below the valley and cannot be confused with it.
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


# ---------------------------------------------------------------------- machine code of columns (samples, channels)
def padded(values: Array) -> Array:
    """Return columns (N, n) as a new array, padded to a number of columns that this module supports."""
    samples, channels = values.shape
    width = _width(channels)
    result = np.zeros((samples, -(-channels // width) * width))
    result[:, :channels] = values
    return result


def filter_columns(sections: Sequence[tuple[Array, Array]], x: Array, backward: bool = False) -> None:
    """Filter `padded` columns in place by second-order sections, starting in steady state at the first value.

    A section is the numerator and the denominator in powers of z^-1, the denominator with a leading 1; its gain at zero
    frequency must be 1, that is, the sums of both are equal.
    """
    samples, channels = x.shape
    table = np.zeros((len(sections), 5))
    for row, (b, a) in zip(table, sections, strict=True):
        row[: b.size], row[3], row[4] = b, b.sum(), a[2] if a.size > 2 else 0.0
    width, first, stride = _width(channels), samples - 1 if backward else 0, -channels if backward else channels
    call = _code(width, len(sections), 0)[0]
    for channel in range(0, channels, width):
        call(samples, stride, x.ctypes.data + 8 * (first * channels + channel), table.ctypes.data)


def differences(odd: Array, even: Array, x: Array) -> tuple[Array, Array]:
    """Return sum_k odd[k] (x[i + k] - x[i - k]) and sum_k even[k] (x[i + k] - 2 x[i] + x[i - k]), k = 1, 2, ..., of columns.

    `padded` columns (N, n) give (N - 2 m, n) for m coefficients each.
    """
    samples, channels = x.shape
    shape = (samples - 2 * odd.size, channels)
    first, second, width = np.empty(shape), np.empty(shape), _width(channels)
    table = np.concatenate([odd, even])
    call = _code(width, 0, odd.size)[1]
    middle = x.ctypes.data + 8 * odd.size * channels
    call(first.size // width, channels, middle, table.ctypes.data, first.ctypes.data, second.ctypes.data)
    return first, second


def _width(channels: int) -> int:
    """Return the number of channels processed at a time; one alone needs no vector."""
    return 1 if channels == 1 else vector_width()


@lru_cache(maxsize=32)
def _code(width: int, sections: int, reach: int) -> tuple[Any, Any]:
    """Return the machine code of the filter (None without sections) and of the differences (None with sections)."""
    number, place = ctypes.c_int64, ctypes.c_void_p
    text = _filter_text(width, sections) if sections else _difference_text(width, reach)
    machine = MachineCode(text, "filters of columns")
    if sections:
        return machine.function("sections", [number, number, place, place]), None
    return None, machine.function("differences", [number, number, place, place, place, place])


def _numbers(names: Iterable[str], width: int) -> list[str]:
    """Return the lines that load neighbouring numbers of %table, one vector of equal numbers each."""
    V, lines = f"<{width} x double>" if width > 1 else "double", list[str]()
    for k, name in enumerate(names):
        lines.append(f"  %at.{name} = getelementptr double, ptr %table, i64 {k}")
        if width == 1:
            lines.append(f"  %{name} = load double, ptr %at.{name}")
            continue
        lines += [
            f"  %one.{name} = load double, ptr %at.{name}",
            f"  %in.{name} = insertelement {V} poison, double %one.{name}, i32 0",
            f"  %{name} = shufflevector {V} %in.{name}, {V} poison, <{width} x i32> zeroinitializer",
        ]
    return lines


def _filter_text(width: int, sections: int) -> str:
    """Return the code of the recursions y = b0 u + b1 u' + b2 u'' - a1 y' - a2 y'', u the input and ' the sample before.

    They are evaluated as changes d, which have less round-off at low cut-offs; s = b0 + b1 + b2 = 1 + a1 + a2:

    d = b0 u + b1 u' + b2 u'' - s y' + a2 d',      y = y' + d
    """
    V, zero = (f"<{width} x double>", "zeroinitializer") if width > 1 else ("double", "0.0")
    lines = [
        "define void @sections(i64 %steps, i64 %stride, ptr %x, ptr %table) {",
        "entry:",
        f"  %rest = load {V}, ptr %x, align 8",
        *_numbers((f"{name}.{i}" for i in range(sections) for name in ("b0", "b1", "b2", "sum", "a2")), width),
        "  br label %step",
        "step:",
        "  %k = phi i64 [0, %entry], [%k1, %step]",
    ]
    for i in range(sections + 1):  # inputs of section i and output of the last one, one and two samples ago
        lines.append(f"  %one.{i} = phi {V} [{zero}, %entry], [%now.{i}, %step]")
        lines.append(f"  %two.{i} = phi {V} [{zero}, %entry], [%one.{i}, %step]")
    lines += [f"  %before.{i} = phi {V} [{zero}, %entry], [%change.{i}, %step]" for i in range(sections)]
    lines += [
        "  %offset = mul i64 %k, %stride",
        "  %at = getelementptr double, ptr %x, i64 %offset",
        f"  %raw = load {V}, ptr %at, align 8",
        f"  %now.0 = fsub {V} %raw, %rest",
    ]
    for i in range(sections):
        lines.append(f"  %s.{i}.b0 = fmul {V} %b0.{i}, %now.{i}")
        last = f"%s.{i}.b0"
        for name, value in (("b1", "one"), ("b2", "two"), ("a2", "before"), ("sum", "")):
            result, other = (f"%s.{i}.{name}", f"%{value}.{i}") if value else (f"%change.{i}", f"%one.{i + 1}")
            lines.append(f"  %m.{i}.{name} = fmul contract {V} %{name}.{i}, {other}")
            lines.append(f"  {result} = {'fadd' if value else 'fsub'} contract {V} {last}, %m.{i}.{name}")
            last = result
        lines.append(f"  %now.{i + 1} = fadd {V} %one.{i + 1}, %change.{i}")
    lines += [
        f"  %y = fadd {V} %now.{sections}, %rest",
        f"  store {V} %y, ptr %at, align 8",
        "  %k1 = add i64 %k, 1",
        "  %more = icmp slt i64 %k1, %steps",
        "  br i1 %more, label %step, label %end",
    ]
    return "\n".join([*lines, "end:", "  ret void", "}", ""])


def _difference_text(width: int, reach: int) -> str:
    """Return the code of both differences; %x is the first sample that has `reach` others before it."""
    V = f"<{width} x double>" if width > 1 else "double"
    lines = [
        "define void @differences(i64 %steps, i64 %stride, ptr %x, ptr %table, ptr %first, ptr %second) {",
        "entry:",
        *_numbers([*(f"c{k}" for k in range(reach)), *(f"d{k}" for k in range(reach))], width),
        *(f"  %far.{k} = mul i64 %stride, {k + 1}" for k in range(reach)),
        "  br label %step",
        "step:",
        "  %k = phi i64 [0, %entry], [%k1, %step]",
        f"  %i = mul i64 %k, {width}",
        "  %at = getelementptr double, ptr %x, i64 %i",
        f"  %now = load {V}, ptr %at, align 8",
    ]
    sums = {"f": "", "s": ""}
    for k in range(reach):
        lines += [
            f"  %to.{k} = getelementptr double, ptr %at, i64 %far.{k}",
            f"  %back.{k} = sub i64 0, %far.{k}",
            f"  %from.{k} = getelementptr double, ptr %at, i64 %back.{k}",
            f"  %after.{k} = load {V}, ptr %to.{k}, align 8",
            f"  %before.{k} = load {V}, ptr %from.{k}, align 8",
            f"  %up.{k} = fsub {V} %after.{k}, %now",  # small differences first: the rounding of large positions cancels
            f"  %down.{k} = fsub {V} %before.{k}, %now",
            f"  %df.{k} = fsub {V} %up.{k}, %down.{k}",
            f"  %ds.{k} = fadd {V} %up.{k}, %down.{k}",
        ]
        for sum_, factor in (("f", "c"), ("s", "d")):
            lines.append(f"  %m{sum_}.{k} = fmul contract {V} %{factor}{k}, %d{sum_}.{k}")
            if k:
                lines.append(f"  %{sum_}.{k} = fadd contract {V} {sums[sum_]}, %m{sum_}.{k}")
            sums[sum_] = f"%{sum_}.{k}" if k else f"%m{sum_}.{k}"
    for sum_, name in (("f", "first"), ("s", "second")):
        lines.append(f"  %out.{sum_} = getelementptr double, ptr %{name}, i64 %i")
        lines.append(f"  store {V} {sums[sum_]}, ptr %out.{sum_}, align 8")
    lines += ["  %k1 = add i64 %k, 1", "  %more = icmp slt i64 %k1, %steps", "  br i1 %more, label %step, label %end"]
    return "\n".join([*lines, "end:", "  ret void", "}", ""])
