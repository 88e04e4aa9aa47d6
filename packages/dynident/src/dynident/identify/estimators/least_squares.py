"""Estimators with the scikit-learn protocol: options in `__init__`, data in `fit`, learned attributes end in _."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import ConditionWarning, DynidentError, IdentificationError, warn
from dynident.identify.base import BaseParameters
from dynident.identify.fit import Fit
from dynident.identify.posterior.physical import physical_parameters
from dynident.identify.posterior.posterior import Posterior, at_least_jackknife, least_squares_left_out
from dynident.identify.regression.factor import (
    Solution,
    constrained_sigma,
    group_sigma,
    relative_error,
    solve,
    training_std,
)
from dynident.identify.regression.regression import Regression
from dynident.mechanism.parameters import Parameters, natural_spread
from dynident.parallel import one_blas_thread

BAD_CONDITION = 1e6
RECOVERIES = ("prior", "minimum_norm")


def fit_of(estimator: Any, evidence: Any, what: str = "estimator") -> Fit:
    """Return ``estimator.fit(evidence).result_``; custom estimators are allowed, and `what` names the argument in errors."""
    if isinstance(estimator, type) or not callable(getattr(estimator, "fit", None)):
        raise DynidentError(f"{what} is {estimator!r}; give an estimator such as MAP() or WLS()")
    fit: Fit = estimator.fit(evidence).result_
    return fit


def recover_standard(base: BaseParameters, beta: Array, combinations: Array, recovery: str = "prior") -> Parameters:
    """Return standard parameters phi with E K phi = E beta, for the values `beta` (b,) of `base` parameters.

    `combinations` (k, b) is E, the unit matrix if all were estimated; unidentifiable directions follow the rule
    `recovery`, "prior" or "minimum_norm".
    """
    if recovery not in RECOVERIES:
        raise IdentificationError(f"recovery is '{recovery}'; it must be one of {', '.join(RECOVERIES)}")
    prior = base.mechanism.parameters
    K = combinations @ base.regrouping
    phi0 = prior.values if recovery == "prior" else np.zeros(len(prior))
    spread = natural_spread(base.mechanism) if recovery == "prior" else np.ones(len(prior))
    root = K * spread  # K D^(1/2)
    x, _, rank, singular = np.linalg.lstsq(root, combinations @ beta - K @ phi0, rcond=None)
    phi = phi0 + spread * x
    if rank:
        # Rounding leaves an error of up to p eps cond(K D^(1/2)) ||x|| in every x: a smaller parameter is zero, and its sign
        # (of a mass, say) would depend on the processor. A prior value that the data left alone is exact and stays.
        error = len(prior) * np.finfo(float).eps * singular[0] / singular[rank - 1] * np.linalg.norm(x)
        phi = np.where((np.abs(phi) <= spread * error) & (phi != phi0), 0.0, phi)
    return prior.replace(phi, provenance=f"identified, {recovery} recovery")


class Estimator:
    """Common base of all estimators: options by name and results of a fit."""

    coef_: Array
    covariance_: Array
    sigma_: Array
    condition_: float
    n_iter_: int
    result_: Fit

    def __getattr__(self, name: str) -> Any:
        """Raise an error for a missing attribute; names that end in an underscore are results of `fit`."""
        missing = "call fit first" if name.endswith("_") and not name.startswith("_") else "there is none"
        raise AttributeError(f"{type(self).__name__} has no attribute '{name}'; {missing}", name=name, obj=self)

    def get_params(self) -> dict[str, Any]:
        """Return the options by name, as given to `__init__`."""
        return {k: v for k, v in vars(self).items() if not k.endswith("_")}

    def set_params(self, **params: Any) -> Self:
        """Change options."""
        for name, value in params.items():
            if name not in self.get_params():
                raise IdentificationError(
                    f"{type(self).__name__} has no option '{name}'; it has {', '.join(self.get_params())}"
                )
            setattr(self, name, value)
        return self

    def _chosen(self, regression: Regression, active: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        """Return the mask of base parameters to estimate, after checking that estimation is possible."""
        if not isinstance(regression, Regression):
            raise IdentificationError(
                f"fit got a {type(regression).__name__}; give a dynident.Regression, as from Regression.from_log(robot, log)"
            )
        b = regression.base.rank
        chosen = np.ones(b, dtype=bool) if active is None else np.asarray(active, dtype=bool)
        if chosen.shape != (b,):
            raise IdentificationError(f"active has shape {chosen.shape} but there are {b} base parameters; they must agree")
        if regression.rows <= int(chosen.sum()):
            raise IdentificationError(
                f"{regression.rows} equations cannot determine {int(chosen.sum())} base parameters; record a longer log"
            )
        return chosen

    def __str__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.get_params().items())})"


@dataclass(kw_only=True, eq=False)
class LeastSquares(Estimator):
    """Common base of base-parameter estimators: active set, checks of options, iterations and construction of the `Fit`."""

    recovery: str = "prior"
    tolerance: float = 1e-8

    def fit(self, regression: Regression, active: NDArray[np.bool_] | None = None) -> Self:
        """Estimate the base parameters."""
        chosen = self._chosen(regression, active)
        b = regression.base.rank
        with one_blas_thread():
            solution, sigma = self._estimate(regression, chosen)
            covariance = self._covariance(regression, solution, sigma)
            if regression.projection != "gls":  # their noise is neither white nor equal, even if that of the motors is
                left_out = least_squares_left_out(regression.groups, b, sigma, solution.solved)
                covariance = at_least_jackknife(covariance, left_out)
        if solution.condition > BAD_CONDITION:
            warn(
                f"the regression is badly conditioned ({solution.condition:.2g}): some combinations of parameters are barely "
                "visible in these data; see Fit.observability() and excite the robot better",
                ConditionWarning,
            )
        self.sigma_, self.condition_ = sigma, solution.condition
        self.covariance_ = covariance
        solved = np.zeros(b, dtype=bool)
        solved[solution.solved] = np.count_nonzero(solution.combinations, axis=1) == 1
        base, free = regression.base, solution.beta
        values = free.copy()
        if self.recovery == "physical":
            standard = physical_parameters(base, free, covariance, solution.combinations, solved)
            values = base.values(standard.values)
            values[~chosen] = 0.0
            self.sigma_ = sigma = constrained_sigma(regression, sigma, free, values)
        else:
            known = np.vstack([solution.combinations, np.eye(b)[~chosen]])  # dropped parameters are known to be zero
            standard = recover_standard(base, free, known, self.recovery)
            if np.any(hidden := ~solved & chosen):
                values[hidden] = base.values(standard.values)[hidden]
        self.coef_ = values
        independence = np.array([group.independence for group in regression.groups])
        posterior = Posterior(
            values=values,
            covariance=covariance,
            solved=solved,
            active=chosen,
            combinations=solution.combinations,
            sigma=sigma * np.sqrt(independence),
            condition=solution.condition,
            standard=standard,
            estimator=str(self),
            training_relative=relative_error(regression, values),
            free=free,
            free_relative=relative_error(regression, free),
            description_relative=relative_error(regression, base.described),
            training_std=training_std(regression, covariance),
        )
        self.result_ = Fit(regression, posterior, regression.notes)
        return self

    def _estimate(self, regression: Regression, active: NDArray[np.bool_]) -> tuple[Solution, Array]:
        """Return the solution and the standard deviation of every group's rows."""
        raise AssertionError("every estimator has its own")

    def _covariance(self, regression: Regression, solution: Solution, sigma: Array) -> Array:
        """Return the covariance of the base parameters for rows divided by their deviation."""
        return solution.covariance()

    def _reweighted(
        self, regression: Regression, sigma: Array, solved: Callable[[Array], Solution], iterations: int, convergence: float
    ) -> tuple[Solution, Array]:
        """Solve with the deviations of the groups and estimate these again until they converge."""
        for i in range(iterations):
            solution = solved(sigma)
            previous, sigma = sigma, group_sigma(regression, solution)
            self.n_iter_ = i + 1
            if np.max(np.abs(sigma / previous - 1.0)) < convergence:
                break
        return solution, sigma

    def _check_least(self, **least: float) -> None:
        """Refuse options below their minimum."""
        for name, low in least.items():
            value = getattr(self, name)
            if value is not None and not value >= low:
                raise IdentificationError(f"{type(self).__name__}: {name} is {value}; it must be {low:g} or more")


@dataclass(kw_only=True, eq=False)
class OLS(LeastSquares):
    """Ordinary least squares: all equations have the same variance.

        beta = argmin ||W beta - tau||^2,      cov = sigma^2 (W^T W)^-1,   sigma^2 = RSS / (N - b)

    Parameters
    ----------
    recovery : {"prior", "minimum_norm", "physical"}
        How standard parameters are recovered from the base ones: closest to the description's, shortest, or the most
        probable that are physically possible; the base parameters of the fit are then theirs, `Fit.free` keeps the estimates.
    tolerance : float
        Relative size below which a column counts as not excited by the data.

    Examples
    --------
    >>> OLS().get_params()
    {'recovery': 'prior', 'tolerance': 1e-08}
    """

    def _estimate(self, regression: Regression, active: NDArray[np.bool_]) -> tuple[Solution, Array]:
        solution = solve(regression, np.ones(len(regression.groups)), active, self.tolerance)
        return solution, group_sigma(regression, solution)

    def _covariance(self, regression: Regression, solution: Solution, sigma: Array) -> Array:
        rss = sum(group.residual(solution.beta) for group in regression.groups)
        independent = sum(group.count * group.independence for group in regression.groups)
        return solution.covariance(rss / max(independent - solution.solved.size, 1.0))


@dataclass(kw_only=True, eq=False)
class WLS(LeastSquares):
    """Weighted least squares: every joint has its own variance, estimated from its own residuals.

        beta = argmin sum_g ||W_g beta - tau_g||^2 / sigma_g^2,     sigma_g^2 = RSS_g / (N_g - b_g)
        cov = (sum_g W_g^T W_g / sigma_g^2)^-1

    Parameters
    ----------
    iterations : int
        Largest number of re-weightings; 1 is the classical two-step IDIM-WLS.
    convergence : float
        Relative change of the standard deviations at which to stop.
    recovery, tolerance
        As of `OLS`.
    """

    iterations: int = 20
    convergence: float = 1e-6

    def _estimate(self, regression: Regression, active: NDArray[np.bool_]) -> tuple[Solution, Array]:
        self._check_least(iterations=1)
        solved = partial(solve, regression, active=active, tolerance=self.tolerance)
        first = group_sigma(regression, solved(np.ones(len(regression.groups))))
        return self._reweighted(regression, first, solved, self.iterations, self.convergence)
