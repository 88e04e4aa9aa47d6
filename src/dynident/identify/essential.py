"""Essential parameters: the few that the data really need.

The parameter with the largest relative standard deviation is dropped and the rest estimated again, until the largest is
no more than `ratio` times the smallest [Pham1991]. With precise data that rule can drop parameters that are needed
(one known to 1 % may be ten times worse than the best); `loss` stops it before the residuals grow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynident.errors import IdentificationError
from dynident.identify.estimators import OLS, WLS
from dynident.identify.fit import Fit
from dynident.identify.regression import Regression


def essential_parameters(
    regression: Regression, estimator: OLS | WLS | None = None, ratio: float = 10.0, loss: float | None = None
) -> Fit:
    """Return the fit of the essential parameters alone.

    Parameters
    ----------
    regression : Regression
        Evidence.
    estimator : OLS or WLS, optional
        Estimator; `WLS()` when omitted.
    ratio : float
        Ratio of the worst to the best relative standard deviation at which to stop.
    loss : float, optional
        Largest allowed growth of the residuals (weighted by the noise of every joint) over those of the full fit, as in
        0.02; no limit when omitted.

    Returns
    -------
    Fit
        Fit where the other base parameters are zero and marked as dropped.
    """
    if not ratio > 1.0:
        raise IdentificationError(f"ratio is {ratio}; it must be above 1 (10 is usual)")
    if loss is not None and not loss >= 0.0:
        raise IdentificationError(f"loss is {loss}; it must be 0 or more (0.02 is 2 %)")
    chosen = estimator or WLS()
    fit = chosen.fit(regression).result_
    sigma = chosen.sigma_

    def residual(beta: NDArray[np.float64]) -> float:
        return float(sum(group.residual(beta) / s**2 for group, s in zip(regression.groups, sigma, strict=True)))

    limit = np.inf if loss is None else (1.0 + loss) ** 2 * residual(fit.values)
    while True:
        relative = np.where(fit.active, fit.relative_std, -np.inf)
        relative = np.where(np.isnan(relative), np.inf, relative)
        best = np.min(relative[fit.active])
        if np.max(relative) < ratio * best or np.count_nonzero(fit.active) == 1:
            return fit
        active = fit.active.copy()
        active[int(np.argmax(relative))] = False
        smaller = chosen.fit(regression, active=active).result_
        if residual(smaller.values) > limit:
            return fit
        fit = smaller
