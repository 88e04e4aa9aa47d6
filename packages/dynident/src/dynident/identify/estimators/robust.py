"""Robust regression: rows that the model cannot explain count less [Huber1964] [Beaton1974].

    beta = argmin sum_g sum_k rho((y - W beta)_gk / s_g),       w(u) = rho'(u) / u
    Huber  w = min(1, c / |u|)            Tukey  w = (1 - (u/c)^2)^2 for |u| < c, else 0
    cov = A^-1 B A^-1,   A = sum_g mean(psi') W_g^T W_g / s_g^2,   B = sum_g mean(psi^2) W_g^T W_g / s_g^2

s_g is the median absolute residual of joint g times 1.4826, so that a minority of bad rows does not move it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident.identify.estimators.least_squares import WLS, LeastSquares
from dynident.identify.regression.factor import Solution, free_rows, solve
from dynident.identify.regression.regression import Regression, sampled

CONSTANTS = {"huber": 1.345, "tukey": 4.685}  # 95 % efficiency where the noise is normal
MAD = 1.4826  # standard deviation over median absolute value of normal noise


@dataclass(kw_only=True, eq=False)
class IRLS(LeastSquares):
    """Iteratively re-weighted least squares: rows with large residuals count less.

        beta = argmin sum_g sum_k rho((y - W beta)_gk / s_g)

    Parameters
    ----------
    loss : {"huber", "tukey"}
        Residuals above 1.345 standard deviations count linearly, or those above 4.685 not at all (95 % efficient both).
    iterations : int
        Largest number of re-weightings.
    convergence : float
        Change of the parameters, in standard deviations, at which to stop.
    recovery, tolerance
        As of `OLS`.
    """

    loss: str = "huber"
    iterations: int = 50
    convergence: float = 1e-3

    def _estimate(self, regression: Regression, active: NDArray[np.bool_]) -> tuple[Solution, Array]:
        evidence = sampled(regression, "IRLS")
        if self.loss not in CONSTANTS:
            raise IdentificationError(f"IRLS: loss is {self.loss!r}; it must be one of {', '.join(CONSTANTS)}")
        self._check_least(iterations=1)
        solution, _ = WLS(tolerance=self.tolerance)._estimate(regression, active)
        if self.loss == "tukey":  # its loss has many minima: start from the unique minimum of Huber's loss
            first = IRLS(loss="huber", iterations=self.iterations, tolerance=self.tolerance)
            solution, _ = first._estimate(regression, active)
        for i in range(self.iterations):
            scale = self._scale(evidence, solution)
            self.weights_ = [
                [self._weight(e / s) for e, s in zip(part, scale, strict=True)] for part in evidence.residuals(solution.beta)
            ]
            rows = [
                [(W * np.sqrt(w)[:, None], y * np.sqrt(w)) for W, y, w in zip(part.W, part.y, weights, strict=True)]
                for part, weights in zip(evidence.stretches, self.weights_, strict=True)
            ]
            previous, solution = solution, solve(evidence.with_rows(rows), scale, active, self.tolerance)
            self.n_iter_ = i + 1
            step = (solution.beta - previous.beta)[solution.solved]
            if np.all(np.abs(step) <= self.convergence * np.sqrt(np.diag(solution.covariance()))[solution.solved]):
                break
        return solution, self._scale(evidence, solution) / np.sqrt([group.independence for group in regression.groups])

    def _covariance(self, regression: Regression, solution: Solution, sigma: Array) -> Array:
        evidence = sampled(regression, "IRLS")
        c = CONSTANTS[self.loss]
        bread, meat = np.zeros(2 * (solution.beta.size,)), np.zeros(2 * (solution.beta.size,))
        residuals = evidence.residuals(solution.beta)
        for g, group in enumerate(evidence.groups):
            scale = sigma[g] * np.sqrt(group.independence)
            used = [part.used[g] for part in evidence.stretches]
            u = np.concatenate([e[g][keep] / scale for e, keep in zip(residuals, used, strict=True)])
            w = self._weight(u)
            slope = np.where(np.abs(u) < c, 1.0 if self.loss == "huber" else (1 - (u / c) ** 2) * (1 - 5 * (u / c) ** 2), 0.0)
            S = group.R[:, :-1].T @ group.R[:, :-1] / sigma[g] ** 2
            own = np.ix_(group.columns, group.columns)
            free = free_rows(evidence, solution)[g] / (group.count * group.independence)
            bread[own] += np.mean(slope) * S
            meat[own] += np.mean((w * u) ** 2) / free * S
        result = np.zeros_like(bread)
        own = np.ix_(solution.solved, solution.solved)
        size = np.sqrt(np.diag(bread)[solution.solved])
        inverse = np.linalg.inv(bread[own] / np.outer(size, size)) / np.outer(size, size)
        result[own] = inverse @ meat[own] @ inverse
        return result

    def _weight(self, u: Array) -> Array:
        c = CONSTANTS[self.loss]
        if self.loss == "huber":
            return np.asarray(c / np.maximum(np.abs(u), c))
        return np.asarray(np.where(np.abs(u) < c, (1.0 - (u / c) ** 2) ** 2, 0.0))

    @staticmethod
    def _scale(evidence: Regression, solution: Solution) -> Array:
        """Return the robust standard deviation of the rows of every group, corrected for degrees of freedom."""
        residuals, scale = evidence.residuals(solution.beta), []
        free = free_rows(evidence, solution)
        for g, group in enumerate(evidence.groups):
            e = np.concatenate([part[g][s.used[g]] for part, s in zip(residuals, evidence.stretches, strict=True)])
            floor = 1e-13 * np.sqrt(group.effort_square / max(group.count, 1) or 1.0)
            paid = np.sqrt(group.count * group.independence / free[g])
            scale.append(max(paid * MAD * float(np.median(np.abs(e))), floor))
        return np.array(scale)
