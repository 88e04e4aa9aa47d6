"""Low-pass filters: Butterworth's, without phase, and the parallel decimation of both sides of an equation.

Butterworth's filter is a chain of second-order sections, without scipy.signal (0.8 s of import for one recursion).
With w = tan(pi f_c / f_s) and z^-1 the delay, the pole pair k of order n gives, by the bilinear transform,

    H_k = w^2 (1 + z^-1)^2 / [(1 + c_k w + w^2) + 2 (w^2 - 1) z^-1 + (1 - c_k w + w^2) z^-2],
    c_k = 2 sin(pi (2 k + 1) / (2 n)),

and an odd order one section w (1 + z^-1) / [(1 + w) + (w - 1) z^-1] more. A section's recursion A y = B x is a banded
triangular system; LAPACK solves it by substitution, which is that recursion.

Filtering both sides of ``tau = W phi`` with the same linear filter keeps the equation true; torque ripple and noise above the
band of the motion go away, and down-sampling leaves residuals that are close to independent (IDIM practice, [Gautier1997]:
cut-off 0.8 f / (2 n_d)).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.checks import plain
from dynident.errors import LogError

Triple = tuple[Array, Array, Array]
Section = tuple[Array, Array]  # numerator and denominator in powers of z^-1, denominator with a leading 1

MOST_SAMPLES = 10**9  # of one log
LONGEST = 100  # half length of a decimating filter in output samples
HIGHEST = 20  # order of Butterworth's filter
#: Central differences of order 8: exact to 0.1 % up to 0.2 of the sampling rate, where the 3-point one loses 25 %.
_FIRST = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0.0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
SECOND = np.array([-1 / 560, 8 / 315, -1 / 5, 8 / 5, -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560])
#: A clock that strays from uniform by more than this part of a step is not uniform.
UNIFORM = 0.02
#: A record must hold at least this part of a period of the cut-off.
SHORTEST = 0.1
#: Half length of the filter in output samples: with a Kaiser window this reaches 62 dB.
HALF = 6
#: Half length for records that would lose too much at their ends: 35 dB.
SHORT = 3
MOST = 10**6  # times fewer rows; a filter of more taps is longer than any record
#: Weight of samples that must not be used, over that of all samples of a row, up to which the row is used.
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
        Filter forward only, as on line: the result is late.
    """
    _, values, step = checked_inputs(t, q)
    check_cutoff(cutoff, 1.0 / step, values.shape[0])
    if not 1 <= order <= HIGHEST:
        raise LogError(f"order is {order}; give 1 to {HIGHEST}")
    # Forward and backward the amplitude is 1/2 at the cut-off because each pass has 1/sqrt(2) there.
    sections = low_pass_sections(order, cutoff * step)
    margin = _FIRST.size // 2
    pad = margin + math.ceil(3.0 / (cutoff * step))  # the impulse response has died out after 3 periods of the cut-off
    extended = _extend(values, pad, math.ceil(1.0 / (cutoff * step)))
    filtered = forward(sections, extended) if causal else both_ways(sections, extended)
    v, a = central_differences(filtered, step)
    keep = slice(pad - margin, pad - margin + values.shape[0])
    return shaped_like(q, filtered[pad : pad + values.shape[0]], v[keep], a[keep])


def checked_inputs(t: ArrayLike, q: ArrayLike, uniform: bool = True) -> tuple[Array, Array, float]:
    """Return times, positions (N, n) and step, or say what is wrong with them."""
    values = np.asarray(q, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or values.shape[0] < 2 * _FIRST.size:
        raise LogError(f"positions have shape {values.shape}; at least {2 * _FIRST.size} samples (samples, joints) are needed")
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
        raise LogError(f"times stray from a uniform clock by {strays:.3g} steps; resample first (prepare does it)")
    return clock, values, step


def stray(t: Array) -> float:
    """Largest distance of a clock from uniform, in steps."""
    step = (t[-1] - t[0]) / (t.size - 1)
    return float(np.max(np.abs(t - t[0] - step * np.arange(t.size))) / step)


def check_cutoff(cutoff: float, rate: float, samples: int) -> float:
    """Return `cutoff` if it lies below the Nyquist frequency and not far below one period in the record."""
    cutoff = plain(cutoff)
    if not (isinstance(cutoff, int | float | np.number) and math.isfinite(cutoff) and cutoff > 0.0):
        raise LogError(f"cut-off frequency is {cutoff!r}; give a positive number of Hz")
    if cutoff >= 0.5 * rate:
        raise LogError(f"cut-off frequency {cutoff:g} Hz is not below the Nyquist frequency {rate / 2:g} Hz; lower it")
    if cutoff * samples < SHORTEST * rate:  # filters reach over some periods of the cut-off: this bounds their memory
        raise LogError(
            f"a period of the cut-off frequency {cutoff:g} Hz is {rate / (cutoff * samples):.3g} times as long as the record "
            f"({samples} samples at {rate:g} Hz); check the unit of the clock, or raise the cut-off"
        )
    return float(cutoff)


def shaped_like(q: ArrayLike, *arrays: Array) -> Triple:
    """Give the results the shape of the input."""
    flat = np.asarray(q).ndim == 1
    a, b, c = (np.ascontiguousarray(x[:, 0]) if flat else np.ascontiguousarray(x) for x in arrays)
    return a, b, c


def central_differences(q: ArrayLike, step: float) -> tuple[Array, Array]:
    """First and second derivative by central differences of order 8, shape (N - 8, ...): 4 samples go at each end."""
    values = np.asarray(q, dtype=np.float64)
    n = values.shape[0] - _FIRST.size + 1
    v, a = np.zeros((n, *values.shape[1:])), np.zeros((n, *values.shape[1:]))
    for k in range(_FIRST.size):
        v += _FIRST[k] * values[k : k + n]
        a += SECOND[k] * values[k : k + n]
    return v / step, a / step**2


def _extend(values: Array, pad: int, window: int) -> Array:
    """Prolong both ends by the cubic that fits the last `window` samples, so that v and a do not jump there."""
    n = values.shape[0]
    window = min(max(window, 8), n)
    x = np.arange(window) / window
    ahead = 1.0 + np.arange(pad) / window
    powers = np.arange(4)
    fit = np.linalg.pinv(x[:, None] ** powers)
    after = (ahead[:, None] ** powers) @ (fit @ values[n - window :])
    before = ((ahead[:, None] ** powers) @ (fit @ values[:window][::-1]))[::-1]
    return np.concatenate([before, values, after])


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


def forward(sections: list[Section], x: Array) -> Array:
    """Filter columns (N, n) forward, as if they had rested at their first value before."""
    y = np.asfortranarray(x - x[0])  # every section passes constants unchanged
    for b, a in sections:
        right = b[0] * y
        for lag in range(1, b.size):
            right[lag:] += b[lag] * y[:-lag]
        bands = np.repeat(a[:, None], y.shape[0], axis=1)
        y, info = scipy.linalg.lapack.dtbtrs(bands, right, uplo="L", diag="U", overwrite_b=True)
        if info:
            raise ValueError(f"LAPACK's dtbtrs refused its argument {-info}")
    return np.asarray(y + x[0])


def both_ways(sections: list[Section], x: Array) -> Array:
    """Filter columns (N, n) forward and backward: no delay, the squared amplitude."""
    return forward(sections, forward(sections, x)[::-1])[::-1]


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
        object.__setattr__(self, "factor", plain(self.factor))
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

    def apply_rows(self, x: Array, out: Array) -> Array:
        """Filter and down-sample signals with samples last."""
        # Sixteen outputs at a time are one product with a small banded matrix; BLAS makes up for the zeros in it.
        block = 16
        span = (block - 1) * self.factor + self.taps.size
        band = np.zeros((span, block))
        for k in range(block):
            band[k * self.factor : k * self.factor + self.taps.size, k] = self.taps
        count = self.length(x.shape[1])
        for first in range(0, count, block):
            last = min(first + block, count)
            begin = first * self.factor
            end = begin + (last - first - 1) * self.factor + self.taps.size
            out[:, first:last] = x[:, begin:end] @ band[: end - begin, : last - first]
        return out

    def usable(self, samples: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which outputs can be used when some inputs must not be."""
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
        """Cut the work into pieces that never need the whole signal.

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
HIGHEST_CUTOFF = 0.25
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
FEWEST_SAMPLES = 64


@dataclass(frozen=True, eq=False)
class Cutoff:
    """A cut-off frequency and why."""

    frequency: float  #: Cut-off in Hz, one for all channels
    #: Frequency in Hz up to which the motion is known and worth keeping; frequency / 2.5, or the band of the motion
    #: where noise keeps the cut-off closer to it
    band: float
    motion_band: float  #: Frequency in Hz below which 99.9 % of the acceleration power of the motion lies (fastest channel)
    valley: float  #: Frequency in Hz of the lowest acceleration density, between motion and noise
    moving: NDArray[np.bool_]  #: (n,), channels with a motion above the noise; only these decide
    explanation: str  #: The choice in words and numbers
    #: Smallest cut-off in Hz that may be worth trying: 2.5 times the band that holds 90 % of the acceleration power
    lowest: float = 0.0
    highest: float = 0.0  #: Largest cut-off in Hz that may be worth trying: 5 times the band of the positions
    #: Variance of noise over that of the motion in the accelerations inside the band: inertias come out too small by
    #: about this share
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
    if values.shape[0] < FEWEST_SAMPLES:
        raise LogError(
            f"{values.shape[0]} samples are too few to see a spectrum ({FEWEST_SAMPLES} are needed); give a cut-off frequency"
        )
    if not np.all(np.isfinite(values)):
        raise LogError("positions have missing values; interpolate or cut them out before choosing a cut-off")
    return choose_cutoff(rate, [values])


def choose_cutoff(rate: float, records: list[Array]) -> Cutoff:
    """Return one cut-off for all records (N, n) of a fit, sampled at the same rate."""
    values = records[0] if len(records) == 1 else np.concatenate(records)
    top = HIGHEST_CUTOFF * rate
    f, density = acceleration_spectrum(rate, *records)
    slices = _bins(f[f <= top])
    if not slices:
        raise LogError(f"{len(values)} samples are too few to see a spectrum; give a cut-off frequency, or longer logs")
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
        top: f"{HIGHEST_CUTOFF:g} of the sampling rate",
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
    return np.asarray((span <= rounding_span(q, HIGHEST_CUTOFF)) | ((span < STILL) & (span < STILL * span.max())))


def rounding_span(q: Array, cutoff: float) -> Array:
    """Widest motion (n,) whose accelerations rounding could have made; `cutoff` is in cycles per sample, `q` (N, n)."""
    u = ROUNDINGS * np.spacing(np.maximum(1.0, np.max(np.abs(q), axis=0)))
    return np.asarray(2.0 * u * np.sum(np.abs(SECOND)) / (2.0 * np.pi * cutoff) ** 2)


def _from_positions(rate: float, records: list[Array]) -> Cutoff:
    """Without accelerations above the noise (slow ramps), only the band of the positions is known."""
    moving = ~np.all([stands_still(q) for q in records], axis=0)
    top = HIGHEST_CUTOFF * rate
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
