"""How much the samples of a series depend on each other: autocorrelation, and how many independent samples they are worth.

N_eff = N / (1 + 2 sum_k rho_k), the sum ending at the first pair of lags whose sum is not positive [Geyer1992].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import numbers


def autocorrelation(errors: ArrayLike, lags: int | None = None) -> Array:
    """Return the autocorrelation rho_0 = 1, rho_1, ... of a series `errors` (N,) without its mean, (lags + 1,).

    `lags` is the largest lag, N - 1 when omitted; a series that does not change gives zeros.
    """
    x = numbers(errors, "errors")
    x = x - x.mean()
    power = float(x @ x)
    most = x.size - 1 if lags is None else min(lags, x.size - 1)
    if power == 0.0:
        return np.zeros(most + 1)
    length = 1 << (2 * x.size - 1).bit_length()  # zeros behind the signal keep its ends apart
    spectrum = np.fft.rfft(x, length)
    return np.asarray(np.fft.irfft(np.abs(spectrum) ** 2, length)[: most + 1] / power)


def effective_samples(errors: ArrayLike) -> float:
    """Effective number of independent samples of a series of errors."""
    rho = autocorrelation(errors)
    if rho.size < 4 or not rho[0]:
        return float(rho.size)
    pairs = rho[1 : 1 + 2 * ((rho.size - 1) // 2)].reshape(-1, 2).sum(axis=1)
    stop = int(np.argmax(pairs <= 0.0)) if (pairs <= 0.0).any() else pairs.size
    return float(np.clip(rho.size / (1.0 + 2.0 * pairs[:stop].sum()), 1.0, rho.size))
