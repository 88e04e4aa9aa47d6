"""Recursive least squares with forgetting, in a triangular factor updated with rows.

    R[k]^T R[k] = lambda R[k-1]^T R[k-1] + [w, y]^T [w, y] / sigma^2,       beta[k] from R[k]
    cov = P (sum_i lambda^(2 (k - i)) w_i^T w_i / sigma^2) P,     P = (sum_i lambda^(k - i) w_i^T w_i / sigma^2)^-1

lambda = exp(-dt / tau): samples older than the memory tau have weights below 1/e; tau = inf gives weighted least squares.
Reflections keep R triangular: no covariance is propagated, so none can become indefinite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.checks import numbers, per_actuator
from dynident.errors import IdentificationError, require
from dynident.identify.base import BaseParameters
from dynident.identify.regression.factor import RowGroup, solve, triangle
from dynident.identify.regression.regression import Regression
from dynident.identify.regression.rows import Rows
from dynident.mechanics.functions import Motion


@dataclass(kw_only=True, eq=False)
class RLS:
    """Recursive least squares with exponential forgetting: `start`, then `update` with every piece of a log.

        beta[k] = argmin sum_i lambda^(k - i) sum_g (y - W beta)_gi^2 / sigma_g^2,      lambda = exp(-dt / memory)

    Parameters
    ----------
    memory : float
        Time constant of forgetting [s]; infinite for no forgetting.
    tolerance : float
        Relative size below which a column counts as not excited by the data.

    Examples
    --------
    >>> rls = RLS(memory=60.0).start(base, sigma=[0.5, 0.5])       # doctest: +SKIP
    >>> rls.update(motion, effort).coef_                           # doctest: +SKIP
    """

    memory: float = math.inf
    tolerance: float = 1e-8

    def start(self, base: BaseParameters, sigma: ArrayLike = 1.0) -> RLS:
        """Start recursive estimation without prior information."""
        require(base, BaseParameters, "base")
        if not self.memory > 0.0:
            raise IdentificationError(f"RLS: memory is {self.memory}; it must be a time above zero in s, or infinite")
        self.base_ = base
        self.rows_ = Rows(base.mechanism, "gls")
        self.sigma_ = per_actuator(sigma, len(self.rows_.names), "sigma")
        if not np.all(self.sigma_ > 0.0):
            raise IdentificationError(f"sigma is {self.sigma_.tolist()}; every standard deviation must be above zero")
        b = base.rank
        self.R_, self.twice_, self.last_ = np.zeros((0, b + 1)), np.zeros((0, b)), math.nan
        return self

    def update(self, motion: Motion, effort: ArrayLike) -> RLS:
        """Process N new, later samples, with motion and efforts filtered equally; NaN in an effort skips its equations."""
        if not hasattr(self, "R_"):
            raise IdentificationError("RLS: call start(base, sigma) before update(motion, effort)")
        require(motion, Motion, "motion")
        tau, wanted = numbers(effort, "effort"), (len(motion), len(self.rows_.efforts))
        tau = tau.reshape(wanted) if tau.size == wanted[0] * wanted[1] else tau
        if tau.shape != wanted or np.isinf(tau).any():
            raise IdentificationError(
                f"effort has shape {np.shape(effort)} for {len(motion)} samples; give {len(self.rows_.efforts)} finite numbers "
                "for each"
            )
        if len(motion) and motion.t[0] <= self.last_:
            raise IdentificationError(f"the sample at {motion.t[0]:g} s is not later than the last one at {self.last_:g} s")
        W, y = self.rows_.equations(motion, tau, self.base_.columns)
        assert y is not None, "efforts were given"
        ages = (motion.t[-1] - motion.t) / self.memory
        known = np.isfinite(y)
        fade = np.where(known.T, np.exp(-0.5 * ages)[:, None] / self.sigma_, 0.0)
        since = 0.0 if math.isnan(self.last_) else (motion.t[-1] - self.last_) / self.memory
        rows = np.concatenate([W, np.where(known, y, 0.0)[:, None]], axis=1).transpose(2, 0, 1) * fade[:, :, None]
        flat = rows.reshape(-1, W.shape[1] + 1)
        faded = flat[:, :-1] * np.repeat(np.exp(-0.5 * ages), self.sigma_.size)[:, None]  # second application
        self.R_ = triangle(np.vstack([math.exp(-0.5 * since) * self.R_, flat]))
        self.twice_ = triangle(np.vstack([math.exp(-since) * self.twice_, faded]))
        self.last_ = float(motion.t[-1])
        group = RowGroup("all", np.arange(self.base_.rank), self.R_, self.R_.shape[0])
        solution = solve(Regression(self.base_, (group,)), np.ones(1), np.ones(self.base_.rank, dtype=bool), self.tolerance)
        spread = solution.covariance() @ self.twice_.T
        self.coef_, self.covariance_, self.condition_ = solution.beta, spread @ spread.T, solution.condition
        return self
