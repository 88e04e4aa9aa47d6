"""Recursive least squares with forgetting, as a triangle that rows are folded into.

    R[k]^T R[k] = lambda R[k-1]^T R[k-1] + [w, y]^T [w, y] / sigma^2,       beta[k] from R[k]
    cov = P (sum_i lambda^(2 (k - i)) w_i^T w_i / sigma^2) P,     P = (sum_i lambda^(k - i) w_i^T w_i / sigma^2)^-1

lambda = exp(-dt / tau): what is older than the memory tau counts less than 1/e; an infinite one gives weighted least squares.
Reflections keep R triangular: no covariance is propagated, so none can lose its sign.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.checks import numbers, per_actuator
from dynident.errors import IdentificationError, require
from dynident.figures import BLUE, SKY, finish, label, new_figure
from dynident.identify.base import BaseParameters
from dynident.identify.estimators.least_squares import WLS, LeastSquares
from dynident.identify.regression.factor import RowGroup, Solution, solve, triangle
from dynident.identify.regression.regression import Regression, sampled
from dynident.identify.regression.rows import Rows
from dynident.mechanics.functions import Motion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 4  # of panels in a figure


@dataclass(kw_only=True, eq=False)
class RLS(LeastSquares):
    """Recursive least squares with exponential forgetting; off line by `fit`, on line by `start` and `update`.

        beta[k] = argmin sum_i lambda^(k - i) sum_g (y - W beta)_gi^2 / sigma_g^2,      lambda = exp(-dt / memory)

    Parameters
    ----------
    memory : float
        Time constant of forgetting [s]; infinite remembers everything.
    history : int
        Number of points, evenly spread over the log, at which `fit` keeps the estimate; 0 for none.
    recovery, tolerance
        As of `OLS`.

    Examples
    --------
    >>> rls = RLS(memory=60.0).start(base, sigma=[0.5, 0.5])       # doctest: +SKIP
    >>> rls.update(motion, effort).coef_                           # doctest: +SKIP
    """

    memory: float = math.inf
    history: int = 0
    recovery: str = "prior"
    tolerance: float = 1e-8

    def start(self, base: BaseParameters, sigma: ArrayLike = 1.0) -> RLS:
        """Begin on line, knowing nothing."""
        require(base, BaseParameters, "base")
        self._check()
        self.base_ = base
        self.rows_ = Rows(base.mechanism, "gls")
        self.sigma_ = per_actuator(sigma, len(self.rows_.names), "sigma")
        if not np.all(self.sigma_ > 0.0):
            raise IdentificationError(f"sigma is {self.sigma_.tolist()}; every standard deviation must be above zero")
        b = base.rank
        self.R_, self.twice_, self.last_ = np.zeros((0, b + 1)), np.zeros((0, b)), math.nan
        return self

    def update(self, motion: Motion, effort: ArrayLike) -> RLS:
        """Take N new, later samples, motion and efforts filtered alike; NaN in an effort skips its equations."""
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
        self.R_, self.twice_ = _folded(self.R_, self.twice_, flat, np.repeat(np.exp(-0.5 * ages), self.sigma_.size), since)
        self.last_ = float(motion.t[-1])
        solution = _solved(self.base_, self.R_, np.ones(self.base_.rank, dtype=bool), self.tolerance)
        self.coef_, self.covariance_, self.condition_ = solution.beta, _covariance(solution, self.twice_), solution.condition
        return self

    def plot(self) -> Figure:
        """Draw how the estimates of `fit` went on, one panel per base parameter, with two final standard deviations.

        Panels show what the estimates of the last four fifths cover: the first ones, of few samples, may leave them.
        """
        if not hasattr(self, "history_") or not self.times_.size:
            raise IdentificationError(f"RLS: history is {self.history}; fit with history=100 or so before plot()")
        names, spread = self.result_.base.names, 2.0 * np.sqrt(np.diag(self.covariance_))
        rows = -(-len(names) // COLUMNS)
        figure = new_figure(11.0, 1.5 * rows + 0.5)
        for i, name in enumerate(names):
            axes = figure.add_subplot(rows, COLUMNS, i + 1)
            if np.isfinite(spread[i]):
                axes.axhspan(self.coef_[i] - spread[i], self.coef_[i] + spread[i], color=SKY, linewidth=0.0)
            axes.plot(self.times_, self.history_[:, i], color=BLUE, linewidth=1.0)
            settled = self.history_[self.times_.size // 5 :, i]
            width = max(float(np.ptp(settled)), 2.0 * float(spread[i]) if np.isfinite(spread[i]) else 0.0)
            if width > 0.0:
                axes.set_ylim(settled.min() - width, settled.max() + width)
            finish(axes, "time [s]" if i >= len(names) - COLUMNS else "", "", label(name))
        figure.tight_layout()
        return figure

    def _check(self) -> None:
        if not self.memory > 0.0:
            raise IdentificationError(f"RLS: memory is {self.memory}; it must be a time above zero in s, or infinite")
        self._check_least(history=0)

    def _estimate(self, regression: Regression, active: NDArray[np.bool_]) -> tuple[Solution, Array]:
        evidence = sampled(regression, "RLS")
        self._check()
        _, sigma = WLS(tolerance=self.tolerance)._estimate(regression, active)
        b = regression.base.rank
        R, self.twice_ = np.zeros((0, b + 1)), np.zeros((0, b))
        times, history = [], []
        offset, last = 0.0, 0.0
        for part in evidence.stretches:  # logs follow each other, without the time between them
            blocks = []
            for group, W, y, s in zip(evidence.groups, part.W, part.y, sigma, strict=True):
                block = np.zeros((y.size, b + 1))
                block[:, group.columns], block[:, -1] = W / s, y / s
                blocks.append(block)
            rows = np.stack(blocks, axis=1)
            clock = offset + part.t - part.t[0]
            pieces = max(1, min(self.history // len(evidence.stretches), part.t.size))
            for piece in np.array_split(np.arange(part.t.size), pieces):
                now = clock[piece[-1]]
                fade, since = np.exp(-0.5 * (now - clock[piece]) / self.memory), (now - last) / self.memory
                flat = (rows[piece] * fade[:, None, None]).reshape(-1, b + 1)
                R, self.twice_ = _folded(R, self.twice_, flat, np.repeat(fade, rows.shape[1]), since)
                last = now
                if self.history:
                    times.append(now)
                    history.append(_solved(evidence.base, R, active, self.tolerance).beta)
            offset = clock[-1] + (part.t[-1] - part.t[0]) / max(part.t.size - 1, 1)
        self.times_, self.history_ = np.array(times), np.array(history).reshape(len(times), b)
        return _solved(evidence.base, R, active, self.tolerance), sigma

    def _covariance(self, regression: Regression, solution: Solution, sigma: Array) -> Array:
        return _covariance(solution, self.twice_)


def _folded(R: Array, twice: Array, rows: Array, fade: Array, since: float) -> tuple[Array, Array]:
    """Return both triangles, `since` times the memory older, with rows that have faded, and rows that have faded twice."""
    older = triangle(np.vstack([math.exp(-0.5 * since) * R, rows]))
    return older, triangle(np.vstack([math.exp(-since) * twice, rows[:, :-1] * fade[:, None]]))


def _solved(base: BaseParameters, R: Array, active: NDArray[np.bool_], tolerance: float) -> Solution:
    """Return the estimate that a triangle of all rows stands for."""
    group = RowGroup("all", np.arange(base.rank), R, R.shape[0])
    return solve(Regression(base, (group,)), np.ones(1), active, tolerance)


def _covariance(solution: Solution, twice: Array) -> Array:
    """Return P (sum lambda^2(k-i) w^T w) P of the solved parameters."""
    P = solution.covariance()
    spread = P @ twice.T
    return np.asarray(spread @ spread.T)
