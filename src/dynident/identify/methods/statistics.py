"""Statistics that several estimators share: free rows, scores, long-run covariance, autoregression.

    S = sum_{|l| <= L} (1 - |l| / (L + 1)) sum_k s[k] s[k - l]^T        [Newey1987]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynident.identify.regression import Regression
from dynident.identify.solve import Solution

Array = NDArray[np.float64]


def free_rows(regression: Regression, solution: Solution) -> Array:
    """Return the independent rows of every group less its share of the parameters, at least one."""
    seen = np.zeros((len(regression.groups), regression.base.rank))
    for i, group in enumerate(regression.groups):
        seen[i, np.intersect1d(group.columns, solution.solved)] = group.count
    share = np.sum(seen / np.maximum(seen.sum(axis=0), 1.0), axis=1)
    rows = np.array([group.count * group.independence for group in regression.groups])
    return np.asarray(np.maximum(rows - share, 1.0))


def lag_of(rows: int) -> int:
    """Return the number of lags of a long-run covariance of some rows."""
    return int(4.0 * (rows / 100.0) ** (2.0 / 9.0)) + 2


def long_run(scores: Sequence[Array], lags: int) -> Array:
    """Return the long-run covariance of sums of scores (M, b), stretch by stretch, Bartlett's weights."""
    total = np.zeros(2 * (scores[0].shape[1],))
    for s in scores:
        total += s.T @ s
        for lag in range(1, min(lags, s.shape[0] - 1) + 1):
            cross = s[lag:].T @ s[:-lag]
            total += (1.0 - lag / (lags + 1.0)) * (cross + cross.T)
    return total


def autocovariance(parts: Sequence[tuple[Array, NDArray[np.bool_]]], lags: int) -> Array:
    """Return the autocovariance at lags 0 ... `lags`, from pairs of rows that are both used."""
    found = np.zeros(lags + 1)
    for lag in range(lags + 1):
        pairs, total = 0, 0.0
        for e, used in parts:
            both = used[lag:] & used[: used.size - lag]
            pairs += int(both.sum())
            total += float(np.sum((e[lag:] * e[: e.size - lag])[both]))
        found[lag] = total / max(pairs, 1) if lag == 0 else total / max(pairs + lag, 1)
    return found


def autoregression(covariance: Array, rows: int, order: int | None = None) -> tuple[Array, float]:
    """Return the coefficients a of e[k] + a_1 e[k-1] + ... = w[k] and the variance of w, by Levinson's recursion.

    Without an `order` the one with the least Bayesian information criterion is taken.
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


def ljung_box(covariance: Array, rows: float) -> tuple[float, int]:
    """Return Ljung and Box's statistic of an autocovariance and its degrees of freedom [Ljung1978]."""
    r = covariance[1:] / covariance[0] if covariance[0] > 0.0 else np.zeros(covariance.size - 1)
    lags = np.arange(1, covariance.size)
    return float(rows * (rows + 2.0) * np.sum(r**2 / np.maximum(rows - lags, 1.0))), covariance.size - 1
