"""Generalised least squares with autoregressive noise of every joint [Cochrane1949].

    a_g(z) (y_g - W_g beta) = w_g white,        a_g(z) = 1 + a_1 z^-1 + ... + a_p z^-p
    beta = argmin sum_g ||a_g(z) (W_g beta - y_g)||^2 / sigma_g^2,      cov = (sum_g (a_g W_g)^T (a_g W_g) / sigma_g^2)^-1

The residuals of least squares give a_g, the filtered rows give beta, and so on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.identify.estimators import WLS, LeastSquares, free_rows, group_sigma
from dynident.identify.factor import Solution, solve
from dynident.identify.methods.sampled import SampledRegression, sampled
from dynident.identify.methods.statistics import ORDER, noise_filters
from dynident.identify.regression import Regression

Array = NDArray[np.float64]


@dataclass(kw_only=True, eq=False)
class GLS(LeastSquares):
    """Generalised least squares: the noise of every joint is autoregressive, its filter estimated from the residuals.

        beta = argmin sum_g ||a_g(z) (W_g beta - y_g)||^2 / sigma_g^2

    Parameters
    ----------
    order : int, optional
        Order of the noise filter; the one with the least Bayesian information criterion up to `largest` when omitted.
    largest : int
        Largest order to try.
    iterations : int
        Largest number of estimations of the filters.
    convergence : float
        Change of the parameters, in standard deviations, at which to stop.
    recovery : {"prior", "minimum_norm", "physical"}
        How standard parameters are recovered, see `OLS`.
    tolerance : float
        Relative size below which a column counts as not excited by the data.
    """

    order: int | None = None
    largest: int = ORDER
    iterations: int = 20
    convergence: float = 1e-3
    recovery: str = "prior"
    tolerance: float = 1e-8

    def _estimate(self, regression: Regression, active: NDArray[np.bool_]) -> tuple[Solution, Array]:
        evidence = sampled(regression, "GLS")
        self._check_least(order=0, largest=1, iterations=1)
        solution, _ = WLS(tolerance=self.tolerance)._estimate(regression, active)
        for i in range(self.iterations):
            previous = solution
            self.filters_ = noise_filters(evidence, solution.beta, self.largest, self.order)
            solution = self._solve(evidence, solution, active)
            self.n_iter_ = i + 1
            step = (solution.beta - previous.beta)[solution.solved]
            if np.all(np.abs(step) <= self.convergence * np.sqrt(np.diag(solution.covariance()))[solution.solved]):
                break
        return solution, group_sigma(regression, solution)

    def _solve(self, evidence: SampledRegression, before: Solution, active: NDArray[np.bool_]) -> Solution:
        """Solve with the filtered rows, every group with the variance of its white noise."""
        rows, counts = [], np.zeros(len(evidence.groups), dtype=int)
        for part in evidence.stretches:
            own = []
            for g, a in enumerate(self.filters_):
                W, y, used = filtered(part.W[g], part.y[g], part.used[g], a)
                own.append((W, y))
                counts[g] += int(used.sum())
            rows.append(own)
        white = evidence.with_rows(rows, counts.tolist())
        if any(a.size for a in self.filters_):  # filtered rows are independent, whatever the decimation did to them
            groups = [
                group if not a.size else type(group)(group.name, group.columns, group.R, group.count)
                for group, a in zip(white.groups, self.filters_, strict=True)
            ]
            white = Regression(white.base, tuple(groups), projection=white.projection)
        solution, free = before, free_rows(white, before)
        for _ in range(2):
            floor = [1e-26 * (group.effort_square / max(group.count, 1) or 1.0) for group in white.groups]
            rss = [group.residual(solution.beta) for group in white.groups]
            solution = solve(white, np.sqrt(np.maximum(np.array(rss) / free, floor)), active, self.tolerance)
        return solution


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
