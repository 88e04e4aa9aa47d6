"""Parallel decimation: one symmetric low-pass and down-sampling for regressor columns and torques alike.

Filtering both sides of ``tau = W phi`` with the same linear filter keeps the equation true; torque ripple and noise
above the band of the motion go away, and down-sampling leaves residuals that are close to independent (IDIM practice,
[Gautier1997]: cut-off 0.8 f / (2 n_d)).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import LogError

Array = NDArray[np.float64]

#: Half length of the filter in output samples: with a Kaiser window this reaches 62 dB.
HALF = 6
#: Half length for records that would lose too much at their ends: 35 dB.
SHORT = 3
#: Weight of samples that must not be used, over that of all samples of a row, up to which the row is used.
SPOILT = 0.01


@dataclass(frozen=True, eq=False)
class Decimator:
    """Zero-phase low-pass and down-sampling by an integer.

    ``y[k] = sum_i h[i] x[k n_d + i]``, h symmetric with unit sum, so y[k] belongs to input sample ``k n_d + half n_d``.
    In parts of the new Nyquist frequency, the pass band is flat to 0.5 (0.3 %), the amplitude is 1/2 at 0.8 (the cut-off)
    and from 1.12 on at least 60 dB are removed. A longer filter would be steeper, but lose more of the record's ends.

    Parameters
    ----------
    factor : int
        Down-sampling factor n_d >= 1; 1 leaves everything as it is.
    rate : float
        Sampling rate of the input in Hz.
    half : int
        Half length of the filter in output samples, 6; with less, fewer samples are lost at the ends of a short record and
        less is removed (at 3, 35 dB).

    Examples
    --------
    >>> import numpy as np
    >>> d = Decimator(5, 1000.0)
    >>> d.cutoff, d.output_rate
    (80.0, 200.0)
    >>> bool(np.allclose(d.apply(np.ones(500)), 1.0))
    True
    """

    factor: int
    rate: float
    half: int = HALF
    taps: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.factor, bool) or not isinstance(self.factor, int | np.integer) or self.factor < 1:
            raise LogError(f"decimation factor is {self.factor!r}; it must be a whole number, 1 or more")
        if not (isinstance(self.rate, int | float | np.number) and 0 < self.rate < math.inf):
            raise LogError(f"decimation rate is {self.rate!r}; it must be a positive number of Hz")
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
    def output_rate(self) -> float:
        """Sampling rate after decimation, in Hz."""
        return self.rate / self.factor

    @property
    def independence(self) -> float:
        """Effective number of independent rows per row, n_d sum h^2 <= 1.

        White noise of density S leaves the filter with the variance S n_d sum h^2 per unit of bandwidth, less than S because
        of the transition band. Parameters see the full density S, so row variances must be divided by this share.
        """
        return float(self.factor * np.sum(self.taps**2))

    def length(self, samples: int) -> int:
        """Return the number of fully supported outputs.

        Parameters
        ----------
        samples : int
            Number of input samples.

        Returns
        -------
        int
            Rows after decimation.
        """
        return max(0, (samples - self.taps.size) // self.factor + 1)

    def centres(self, samples: int) -> NDArray[np.intp]:
        """Return the input sample each output belongs to.

        Parameters
        ----------
        samples : int
            Number of input samples.

        Returns
        -------
        ndarray of int, shape (length(samples),)
            Index of the input in the middle of the filter.
        """
        return np.arange(self.length(samples), dtype=np.intp) * self.factor + self.taps.size // 2

    def apply(self, x: ArrayLike) -> Array:
        """Filter and down-sample along axis 0.

        Parameters
        ----------
        x : array, shape (N, ...)
            Any signals with samples first.

        Returns
        -------
        ndarray, shape (length(N), ...)
            Only outputs whose whole window lies inside the input.
        """
        return self._filter(np.asarray(x, dtype=np.float64), self.taps)

    def apply_rows(self, x: Array, out: Array) -> Array:
        """Filter and down-sample signals with samples last.

        Parameters
        ----------
        x : ndarray, (m, N)
            Signals.
        out : ndarray, (m, length(N))
            Where to write.

        Returns
        -------
        ndarray, (m, length(N))
            `out`.
        """
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
        """Return which outputs can be used when some inputs must not be.

        Parameters
        ----------
        samples : ndarray of bool, shape (N, ...)
            False for samples that must not be used.

        Returns
        -------
        ndarray of bool, shape (length(N), ...)
            True where such samples have less than 1 % of the weight, sum of the magnitudes of h over them against all.
        """
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

        Parameters
        ----------
        samples : int
            Number of input samples.
        rows : int
            Largest number of outputs per piece.

        Yields
        ------
        input, output : slice
            Samples to compute and the outputs they give.
        """
        if rows < 1:
            raise LogError(f"rows per tile is {rows}; it must be 1 or more")
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
