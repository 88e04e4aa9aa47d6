"""Essential parameters: the few that the data really need.

The parameter with the largest relative standard deviation is dropped and the rest estimated again, until the largest is
no more than `ratio` times the smallest (Pham, Gautier 1991). What is left predicts as well with fewer numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynident.errors import IdentificationError
from dynident.identify.estimators import OLS, WLS
from dynident.identify.fit import Fit
from dynident.identify.regression import Regression


def essential_parameters(regression: Regression, estimator: OLS | WLS | None = None, ratio: float = 10.0) -> Fit:
    """Return the fit of the essential parameters alone.

    Parameters
    ----------
    regression : Regression
        Evidence.
    estimator : OLS or WLS, optional
        Estimator; `WLS()` when omitted.
    ratio : float
        Largest allowed ratio of the worst to the best relative standard deviation.

    Returns
    -------
    Fit
        Fit where the other base parameters are zero and marked as dropped.
    """
    if not ratio > 1.0:
        raise IdentificationError(f"ratio is {ratio}; it must be above 1 (10 is usual)")
    chosen = estimator or WLS()
    active: NDArray[np.bool_] = np.ones(regression.base.rank, dtype=bool)
    fit = chosen.fit(regression).result_
    while True:
        relative = np.where(fit.active, fit.relative_std, -np.inf)
        relative = np.where(np.isnan(relative), np.inf, relative)
        best = np.min(relative[fit.active])
        if np.max(relative) < ratio * best or np.count_nonzero(fit.active) == 1:
            return fit
        active = fit.active.copy()
        active[int(np.argmax(relative))] = False
        fit = chosen.fit(regression, active=active).result_
