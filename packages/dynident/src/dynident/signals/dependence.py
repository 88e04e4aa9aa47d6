"""Dependence of the samples of a series: autocorrelation and effective number of independent samples.

N_eff = N / (1 + 2 sum_k rho_k), the sum ending at the first pair of lags whose sum is not positive [Geyer1992].
Autocovariance and autoregression of residuals of several logs allow for unused rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.checks import numbers


def autocorrelation(errors: ArrayLike, lags: int | None = None) -> Array:
    """Return the autocorrelation rho_0 = 1, rho_1, ... of a series `errors` (N,) without its mean, (lags + 1,).

    `lags` is the largest lag, N - 1 when omitted; a constant series gives zeros.
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


def autocovariance(parts: Sequence[tuple[Array, NDArray[np.bool_]]], lags: int) -> Array:
    """Return the autocovariance at lags 0 ... `lags`, from pairs of rows that are both used."""
    found = np.zeros(lags + 1)
    for lag in range(lags + 1):
        pairs, total = 0, 0.0
        for e, used in parts:
            both = used[lag:] & used[: used.size - lag]
            pairs += int(both.sum())
            total += float(np.sum((e[lag:] * e[: e.size - lag])[both]))
        found[lag] = total / max(pairs + lag, 1)
    return found


def autoregression(covariance: Array, rows: int, order: int | None = None) -> tuple[Array, float]:
    """Return the coefficients a of e[k] + a_1 e[k-1] + ... = w[k] and the variance of w, by Levinson's recursion.

    Without `order`, the order with the least Bayesian information criterion is used.
    """
    a, variance = np.ones(1), float(covariance[0])
    best, criterion = (a[1:], variance), rows * np.log(max(variance, 1e-300))
    for p in range(1, covariance.size if order is None else order + 1):
        if variance <= 1e-12 * covariance[0]:
            break
        reflection = -float(a @ covariance[p:0:-1]) / variance
        if abs(reflection) >= 1.0:
            break
        a = np.append(a, 0.0) + reflection * np.append(a, 0.0)[::-1]
        variance *= 1.0 - reflection**2
        value = rows * np.log(variance) + p * np.log(max(rows, 2))
        if order is not None or value < criterion:
            best, criterion = (a[1:], variance), value
    return best


def ljung_box(covariance: Array, rows: float, known: Array) -> tuple[float, int]:
    """Return the statistic of an autocovariance against a known autocorrelation, and its degrees of freedom [Ljung1978]."""
    r = covariance / covariance[0] if covariance[0] > 0.0 else known
    lags = np.arange(1, covariance.size)
    spread = 1.0 + 2.0 * float(np.sum(known[1:] ** 2))  # Bartlett's variance of a correlation
    return float(rows * (rows + 2.0) * np.sum((r - known)[1:] ** 2 / np.maximum(rows - lags, 1.0)) / spread), lags.size
