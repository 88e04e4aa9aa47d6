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
    """Kaiser-windowed sinc with cut-off 0.8 of the new Nyquist frequency and unit sum; as steep for any half."""
    if factor == 1:
        return np.ones(1)
    attenuation = 8.0 + 9.0 * half
    beta = (
        0.1102 * (attenuation - 8.7)
        if attenuation > 50.0
        else 0.5842 * (attenuation - 21) ** 0.4 + 0.07886 * (attenuation - 21)
    )
    n = np.arange(-half * factor, half * factor + 1)
    window = np.i0(beta * np.sqrt(1.0 - (n / (half * factor)) ** 2)) / np.i0(beta)
    taps = np.sinc(0.8 * n / factor) * window
    return np.asarray(taps / taps.sum())
