"""Generalised least squares with autoregressive noise of every joint [Cochrane1949].

    a_g(z) (y_g - W_g beta) = w_g white,        a_g(z) = 1 + a_1 z^-1 + ... + a_p z^-p
    beta = argmin sum_g ||a_g(z) (W_g beta - y_g)||^2 / sigma_g^2,      cov = (sum_g (a_g W_g)^T (a_g W_g) / sigma_g^2)^-1

The residuals of least squares give a_g, the filtered rows give beta, and so on. This is correct for noise. Model error is
coloured too and depends on the motion: a filter fitted to it removes the band in which the robot moved and keeps the noise
of the rows. Left-out stretches distinguish noise from model error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import DynidentWarning, warn
from dynident.identify.estimators.least_squares import WLS, LeastSquares
from dynident.identify.estimators.statistics import coloured_covariance, noise_filters
from dynident.identify.regression.factor import Solution, free_rows, group_sigma, solve
from dynident.identify.regression.regression import Regression, Stretch, sampled

BLOCKS = 6  # stretches of time that are left out in turn
WORSE = 1.1  # squared error of left-out stretches over that of WLS, from which on a filter does harm


@dataclass(kw_only=True, eq=False)
class GLS(LeastSquares):
    """Generalised least squares: the noise of every joint is autoregressive, its filter estimated from the residuals.

        beta = argmin sum_g ||a_g(z) (W_g beta - y_g)||^2 / sigma_g^2

    Where filtered rows predict most stretches of time that were left out of the fit worse than those of `WLS` do, the coloured
    residuals are an error of the model. Then a warning is given, rows are not filtered, and the estimate is that of `WLS` with
    the covariance of coloured residuals.

    Parameters
    ----------
    order : int, optional
        Order of the noise filter, used without test; the order up to 12 with the least Bayesian information criterion when
        omitted.
    iterations : int
        Largest number of estimations of the filters.
    convergence : float
        Change of the parameters, in standard deviations, at which to stop.
    recovery, tolerance
        As of `OLS`.
    """

    order: int | None = None
    iterations: int = 20
    convergence: float = 1e-3

    def _estimate(self, regression: Regression, active: NDArray[np.bool_]) -> tuple[Solution, Array]:
        evidence = sampled(regression, "GLS")
        self._check_least(order=0, iterations=1)
        plain, sigma = WLS(tolerance=self.tolerance)._estimate(regression, active)
        solution = plain
        for i in range(self.iterations):
            previous = solution
            self.filters_ = noise_filters(evidence, solution.beta, self.order)
            solution = self._solve(evidence, solution, active, self.filters_)
            self.n_iter_ = i + 1
            step = (solution.beta - previous.beta)[solution.solved]
            if np.all(np.abs(step) <= self.convergence * np.sqrt(np.diag(solution.covariance()))[solution.solved]):
                break
        self.refused_ = False
        if self.order is None and any(a.size for a in self.filters_):
            ratio = self._held_out(evidence, plain, sigma, active)
            if ratio > WORSE:
                warn(
                    f"GLS: coloured residuals are model error (filtered rows predict held-out segments {np.sqrt(ratio):.2g} "
                    "times worse than WLS); rows are not filtered: add a missing term",
                    DynidentWarning,
                )
                self.filters_ = [np.empty(0) for _ in self.filters_]
                self.refused_, solution = True, plain
        return solution, group_sigma(regression, solution)

    def _covariance(self, regression: Regression, solution: Solution, sigma: Array) -> Array:
        return coloured_covariance(sampled(regression, "GLS"), solution, sigma) if self.refused_ else solution.covariance()

    def _held_out(self, evidence: Regression, plain: Solution, sigma: Array, active: NDArray[np.bool_]) -> float:
        """Return the median ratio of squared left-out errors to those of WLS; the median is robust to one unusual stretch."""
        none = [np.empty(0) for _ in self.filters_]
        error = np.zeros((2, BLOCKS))
        for k in range(BLOCKS):
            rest = replace(evidence, stretches=tuple(_without(part, k) for part in evidence.stretches))
            for own, filters in zip(error, (none, self.filters_), strict=True):
                beta = self._solve(rest, plain, active, filters).beta
                for residuals in evidence.residuals(beta):
                    for e, s in zip(residuals, sigma, strict=True):
                        own[k] += float(np.sum(e[_block(e.size, k)] ** 2)) / s**2
        return float(np.median(error[1] / np.maximum(error[0], 1e-300)))

    def _solve(self, evidence: Regression, before: Solution, active: NDArray[np.bool_], filters: Sequence[Array]) -> Solution:
        """Solve with the filtered rows, every group with the variance of its white noise."""
        rows, counts = [], np.zeros(len(evidence.groups), dtype=int)
        for part in evidence.stretches:
            own = []
            for g, a in enumerate(filters):
                W, y, used = filtered(part.W[g], part.y[g], part.used[g], a)
                own.append((W, y))
                counts[g] += int(used.sum())
            rows.append(own)
        white = evidence.with_rows(rows, counts.tolist())
        if any(a.size for a in filters):  # filtered rows are independent, also after decimation
            groups = [
                group if not a.size else type(group)(group.name, group.columns, group.R, group.count)
                for group, a in zip(white.groups, filters, strict=True)
            ]
            white = Regression(white.base, tuple(groups), projection=white.projection)
        solution, free = before, free_rows(white, before)
        for _ in range(2):
            floor = [1e-26 * (group.effort_square / max(group.count, 1) or 1.0) for group in white.groups]
            rss = [group.residual(solution.beta) for group in white.groups]
            solution = solve(white, np.sqrt(np.maximum(np.array(rss) / free, floor)), active, self.tolerance)
        return solution


def _block(rows: int, k: int) -> slice:
    """Return the rows of one of the stretches of time that are left out."""
    return slice(k * rows // BLOCKS, (k + 1) * rows // BLOCKS)


def _without(part: Stretch, k: int) -> Stretch:
    """Return a stretch without the rows of one block."""
    kept = np.ones(part.t.size, dtype=bool)
    kept[_block(part.t.size, k)] = False
    return replace(
        part,
        W=tuple(W * kept[:, None] for W in part.W),
        y=tuple(y * kept for y in part.y),
        used=tuple(used & kept for used in part.used),
    )


def filtered(W: Array, y: Array, used: NDArray[np.bool_], a: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return rows filtered by 1 + a_1 z^-1 + ..., zero where one of the rows needed is not used."""
    p = a.size
    if p == 0:
        return W, y, used
    M = y.size
    keep = np.array(used[p:])
    out, target = W[p:].copy(), y[p:].copy()
    for lag, c in enumerate(a, start=1):
        out += c * W[p - lag : M - lag]
        target += c * y[p - lag : M - lag]
        keep &= used[p - lag : M - lag]
    return out * keep[:, None], target * keep, keep
