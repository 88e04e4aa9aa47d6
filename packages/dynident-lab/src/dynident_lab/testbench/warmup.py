"""Warm-up: settling of friction, or any parameter, while the robot warms up, and its duration.

    y(t) = y_settled + sum_i c_i exp(-t / tau_i)        i = 1..order, slow first

At constant power this is exactly the solution of thermal models of the first and second order [Pagani2022, eqs. 110 and 122],
and [Pagani2022, eq. 158] as a curve: the time constants are those of the closed loop of heat and friction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


GRID = 24
#: Samples of the parameters for the uncertainty of a warm-up time.
DRAWS = 300
#: Two time constants with a smaller ratio are not distinguished.
APART = 2.0


@dataclass(frozen=True, eq=False)
class Warmup(Result):
    """A drift that settles."""

    order: int  # Number of exponentials, 0 for none
    settled: float  # Value after a long time
    settled_std: float  # Its standard deviation
    amplitudes: Array  # c_i, in the unit of the values
    time_constants: Array  # tau_i, slow first [s]
    time_constants_std: Array  # Their standard deviations [s]
    covariance: Array  # Covariance of (settled, amplitudes, log time constants)
    t: Array  # Fitted times [s]
    y: Array  # Fitted values
    aicc: float  # Information criterion, corrected for estimated noise; the lowest of several orders is the best
    derived: ClassVar[tuple[str, ...]] = ("change", "change_std", "errors", "complete")

    def __call__(self, t: ArrayLike) -> Array:
        """Return the value at given times."""
        times = np.asarray(t, dtype=np.float64)[..., None]
        return np.asarray(self.settled + np.exp(-times / self.time_constants) @ self.amplitudes)

    @property
    def change(self) -> float:
        """Drift from the first measured time on, (first - settled) / settled; without extrapolation before it."""
        return float((self(self.t[0]) - self.settled) / self.settled)

    @property
    def change_std(self) -> float:
        """Standard deviation of `change`."""
        t, left = float(self.t[0]), np.exp(-self.t[0] / self.time_constants)
        slow = self.amplitudes * left * t / self.time_constants
        slope = np.concatenate([[-self.change], left, slow]) / self.settled
        return float(np.sqrt(max(float(slope @ self.covariance @ slope), 0.0)))

    @property
    def errors(self) -> tuple[float, float, float]:
        """Mean, largest and final error relative to the local value, in the form of [Pagani2022, Table 6]."""
        e = np.abs((self.y - self(self.t)) / self.y)
        return float(e.mean()), float(e.max()), float(e[-max(1, e.size // 10) :].mean())

    @property
    def complete(self) -> bool:
        """Whether the test lasted long enough for the settled value: twice the slow time constant."""
        return self.order == 0 or bool(self.t[-1] >= 2.0 * self.time_constants[0])

    def warmup_time(self, tolerance: float = 0.02) -> float:
        """Return the time after which the drift stays within a tolerance of the settled value."""
        _check_tolerance(tolerance)
        return float(_settling(np.array([self._vector()]), self.order, tolerance)[0])

    def warmup_time_std(self, tolerance: float = 0.02) -> float:
        """Return the standard deviation of `warmup_time`, from samples of the parameters."""
        _check_tolerance(tolerance)
        if self.order == 0:
            return 0.0
        count = self._vector().size
        if np.shape(self.covariance) != (count, count):
            raise IdentificationError(f"covariance has shape {np.shape(self.covariance)}; give ({count}, {count})")
        draws = np.random.default_rng(0).multivariate_normal(self._vector(), self.covariance, DRAWS, check_valid="ignore")
        low, high = np.percentile(_settling(draws, self.order, tolerance), [15.87, 84.13])
        return float(0.5 * (high - low))

    def _vector(self) -> Array:
        return np.concatenate([[self.settled], self.amplitudes, np.log(self.time_constants)])

    def summary(self) -> str:
        """Return the drift as text."""
        taus = ", ".join(
            f"{tau / 60:.3g} +- {std / 60:.2g}" for tau, std in zip(self.time_constants, self.time_constants_std, strict=True)
        )
        mean, worst, last = (100 * e for e in self.errors)
        text = f"order {self.order}: settles at {self.settled:.5g} +- {self.settled_std:.2g}"
        if self.order:
            begun = f"{100 * self.change:+.1f} +- {100 * self.change_std:.2g} % at {self.t[0] / 60:.3g} min"
            text += f" from {begun}, time constants {taus} min"
        text += f"; error mean {mean:.2f} %, max {worst:.2f} %, end {last:.2f} %"
        return text if self.complete else text + "; the test was too short to see the end of the drift"

    def plot(self) -> Figure:
        """Draw the values and the fit over time."""
        from dynident_lab.testbench.plots import plot_warmup  # noqa: PLC0415 - matplotlib is an extra

        return plot_warmup([self])


def fit_warmup(t: ArrayLike, y: ArrayLike, orders: Sequence[int] = (0, 1, 2), std: ArrayLike | None = None) -> Warmup:
    """Fit settling drifts of several orders and return the one with the lowest information criterion.

    Without the standard deviations `std` of the values, the noise is estimated from the residuals, and AICc prefers a
    single exponential for few points. With them, a drift with residuals above the noise is recognised.
    """
    times, values = np.asarray(t, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if times.ndim != 1 or times.shape != values.shape or not (np.isfinite(times).all() and np.isfinite(values).all()):
        raise IdentificationError(
            f"warm-up: t has shape {times.shape} and y {values.shape}; give two vectors of finite numbers with equal length"
        )
    if not orders or any(order not in (0, 1, 2) for order in orders):
        raise IdentificationError(f"warm-up: orders = {tuple(orders)}; give some of 0, 1 and 2")
    possible = [order for order in orders if times.size >= 2 * order + 3 and (order == 0 or np.unique(times).size > 3)]
    if not possible or times.min(initial=0.0) < 0.0:
        raise IdentificationError(
            f"warm-up: {times.size} points from t = {times.min(initial=0.0):g} s are too few for a drift of order "
            f"{min(orders)}; give at least {2 * min(orders) + 3} points since the cold start"
        )
    noise = 0.0 if std is None else float(np.sqrt(np.mean(np.square(np.asarray(std, dtype=np.float64)))))
    return min((_fit(times, values, order, noise) for order in possible), key=lambda fit: fit.aicc)


def _check_tolerance(tolerance: float) -> None:
    if not 0.0 < tolerance < 1.0:
        raise IdentificationError(
            f"tolerance = {tolerance} of a warm-up must be between 0 and 1, as a part of the settled value"
        )


def _columns(t: Array, tau: Array) -> Array:
    return np.column_stack([np.ones_like(t), *(np.exp(-t / x) for x in tau)])


def _fit(t: Array, y: Array, order: int, noise: float = 0.0) -> Warmup:
    """Search the logarithms of the time constants, which are the only nonlinear parameters; a grid first against local minima.

    A known `noise` is the least variance of the values; larger residuals widen the covariance.
    """
    from scipy.optimize import least_squares  # noqa: PLC0415 - slow to import

    span = float(np.ptp(t))
    low, high = np.log(0.3 * float(np.median(np.diff(np.unique(t)))) if order else 1.0), np.log(5.0 * max(span, 1e-9))
    scale = float(np.abs(y).max()) or 1.0

    def residual(eta: Array) -> Array:
        X = _columns(t, np.exp(eta))
        return np.asarray((X @ np.linalg.lstsq(X, y, rcond=None)[0] - y) / scale)

    best = np.zeros(0)
    if order:
        grid = np.linspace(low, high, GRID)
        starts = [np.array(c[::-1]) for c in combinations(grid, order)]
        starts.sort(key=lambda eta: float(np.sum(residual(eta) ** 2)))
        found = [least_squares(residual, s, bounds=(low - 1e-9, high + 1e-9), x_scale=1.0) for s in starts[:3]]
        best = np.sort(min(found, key=lambda f: float(f.cost)).x)[::-1]
    tau = np.exp(best)
    X = _columns(t, tau)
    c: Array = np.asarray(np.linalg.lstsq(X, y, rcond=None)[0], dtype=np.float64)
    e = y - X @ c
    full = np.column_stack([X, *(c[i + 1] * np.exp(-t / tau[i]) * t / tau[i] for i in range(order))])
    p = full.shape[1]
    square = max(float(e @ e), 1e-24 * float(y @ y))
    covariance = max(square / max(t.size - p, 1), noise**2) * np.linalg.pinv(full.T @ full)
    k = p + 1
    if noise > 0.0:
        aicc = square / noise**2 + 2.0 * p
    else:
        aicc = t.size * np.log(square / t.size) + 2.0 * k + (2.0 * k * (k + 1) / (t.size - k - 1) if t.size > k + 1 else np.inf)
    if order == 2 and tau[0] < APART * tau[1]:
        aicc = np.inf  # two terms of the same exponential
    std = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return Warmup(order, float(c[0]), float(std[0]), c[1:], tau, tau * std[1 + order :], covariance, t, y, float(aicc))


def _settling(vectors: Array, order: int, tolerance: float) -> Array:
    """Last time at which each drift is outside its tolerance; the largest time examined is 20 time constants."""
    if order == 0:
        return np.zeros(len(vectors))
    settled, c, tau = vectors[:, 0], vectors[:, 1 : 1 + order], np.exp(np.clip(vectors[:, 1 + order :], -20.0, 20.0))
    last = 20.0 * tau.max(axis=1)
    grid = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 4000)])
    t = last[:, None] * grid
    drift = sum(c[:, i, None] * np.exp(-t / tau[:, i, None]) for i in range(order))
    outside = np.abs(np.asarray(drift)) > tolerance * np.abs(settled)[:, None]
    index = np.where(outside.any(axis=1), outside.shape[1] - 1 - np.argmax(outside[:, ::-1], axis=1), 0)
    return np.asarray(np.take_along_axis(t, index[:, None], axis=1)[:, 0])
