"""Total least squares: the rows are noisy too [Fuller1987] [VanHuffel1991].

    beta = argmin sum_g ||W_g beta - y_g||^2 / (beta^T C_g beta + sigma_g^2)
    (sum_g (W_g^T W_g - mu N_g C_g) / s_g^2) beta = sum_g W_g^T y_g / s_g^2,        s_g^2 = beta^T C_g beta + sigma_g^2

C_g is the covariance of the noise in the rows due to noise of the positions (`statistics.py`). mu = 1 unless the noise is so
strong that the matrix would lose its sign; then mu stays below the smallest eigenvalue [Fuller1987, sec. 2.5].
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.identify.estimators.least_squares import WLS, LeastSquares
from dynident.identify.estimators.statistics import coloured_covariance, row_noise
from dynident.identify.regression.factor import Solution, solve
from dynident.identify.regression.regression import Regression, sampled

SAFE = 0.8  # part of the smallest eigenvalue that mu may reach


@dataclass(kw_only=True, eq=False)
class TLS(LeastSquares):
    """Total least squares: noise of the positions is in the regressor, and its mean effect is removed.

        (W^T W - N C) beta = W^T y,     C = covariance of the noise in the rows, from the noise of the positions

    Parameters
    ----------
    iterations : int
        Largest number of re-weightings.
    convergence : float
        Relative change of the standard deviations at which to stop.
    recovery, tolerance
        As of `OLS`.
    """

    iterations: int = 20
    convergence: float = 1e-4

    def _estimate(self, regression: Regression, active: NDArray[np.bool_]) -> tuple[Solution, Array]:
        evidence = sampled(regression, "TLS")
        self._check_least(iterations=1)
        noise = row_noise(evidence)
        _, first = WLS(tolerance=self.tolerance)._estimate(regression, active)

        def compensated(sigma: Array) -> Solution:
            return self._compensated(regression, noise, solve(regression, sigma, active, self.tolerance), sigma)

        return self._reweighted(regression, first, compensated, self.iterations, self.convergence)

    def _compensated(self, regression: Regression, noise: list[Array], plain: Solution, sigma: Array) -> Solution:
        """Return a least-squares solution with the mean effect of the noise removed."""
        NC = np.zeros(2 * (plain.beta.size,))
        for group, C, s in zip(regression.groups, noise, sigma, strict=True):
            NC[np.ix_(group.columns, group.columns)] += group.count * C / s**2
        kept = plain.solved
        inverse = np.linalg.inv(plain.precision_root) / plain.scale[:, None]  # S^-1 = inverse inverse^T
        ratio = inverse.T @ NC[np.ix_(kept, kept)] @ inverse
        largest = float(np.linalg.eigvalsh(ratio)[-1]) if kept.size else 0.0
        self.mu_ = min(1.0, SAFE / largest) if largest > 0.0 else 1.0
        # (S - mu NC) beta = S beta_LS, in the coordinates in which S = 1: exact where there is no noise.
        start = np.linalg.solve(inverse, plain.beta[kept])
        root = np.linalg.cholesky(np.eye(kept.size) - self.mu_ * ratio)
        beta = np.zeros_like(plain.beta)
        beta[kept] = plain.beta[kept] + inverse @ np.linalg.solve(root.T, np.linalg.solve(root, self.mu_ * ratio @ start))
        self.inverse_ = inverse @ np.linalg.inv(root).T  # (S - mu NC)^-1 = inverse inverse^T
        return replace(plain, beta=beta)

    def _covariance(self, regression: Regression, solution: Solution, sigma: Array) -> Array:
        """Return the covariance from the influence of every time on the estimate."""
        evidence = sampled(regression, "TLS")
        return coloured_covariance(evidence, solution, sigma, self.inverse_ @ self.inverse_.T)
