"""Essential parameters: those with a significant contribution to the efforts.

The parameter with the largest relative standard deviation is dropped and the rest estimated again, until the largest is
no more than `ratio` times the smallest [Pham1991]. With precise data that rule alone drops parameters that are needed (one
known to 1 % may be ten times worse than the best). So every removal must pass an F-test against the full model: with n rows
that count, b parameters and r of them removed,

    F = (RSS_r / RSS - 1) (n - b) / r    must stay below the quantile of F(r, n - b).

`contributing_parameters` applies the other common rule: keep parameters that contribute to the torques.

Deviations of kept parameters include the bias due to the removals, at least as F shows it for all parameters together:

    std^2 = std_r^2 + max((beta_r - beta)^2, F (std_full^2 - std_r^2))
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast

from dynident.arrays import Array
from dynident.errors import DynidentWarning, IdentificationError, warn
from dynident.identify.estimators.least_squares import OLS, WLS
from dynident.identify.fit import Fit
from dynident.identify.posterior.posterior import inflation
from dynident.identify.regression.regression import Regression
from dynident.signals.quality import Finding, note


def essential_parameters(
    regression: Regression, estimator: OLS | WLS | None = None, ratio: float = 10.0, level: float = 0.05
) -> Fit:
    """Return the fit of the essential parameters alone; the others are zero and marked as dropped, and notes list each removal.

    Removals from the `regression`, fitted by `estimator` (`WLS()`), stop at the `ratio` of the worst to the best relative
    standard deviation, or if an F-test at `level` shows that the residuals grow (0: no test).
    """
    if not ratio > 1.0:
        raise IdentificationError(f"ratio is {ratio}; it must be above 1 (10 is usual)")

    def next_one(fit: Fit) -> int | None:
        relative = np.where(fit.active, fit.relative_std, -np.inf)
        relative = np.where(np.isnan(relative), np.inf, relative)
        done = np.max(relative) < ratio * np.min(relative[fit.active])
        return None if done else int(np.argmax(relative))

    return _reduced(regression, estimator or WLS(), next_one, level, f"ratio {ratio:g}")


def contributing_parameters(
    regression: Regression, estimator: OLS | WLS | None = None, share: float = 0.01, level: float = 0.05
) -> Fit:
    """Return the fit of the parameters that contribute to the torques, the rule of the ER3A study.

    A parameter is dropped when its largest contribution to any joint, root mean square over the motion, is below a `share` of
    the effort of that joint, the smallest first. `regression`, `estimator` and `level` are those of `essential_parameters`.
    """
    if not 0.0 < share < 1.0:
        raise IdentificationError(f"share is {share}; it must be between 0 and 1 (0.01 is usual)")

    def next_one(fit: Fit) -> int | None:
        parts = np.where(fit.active, contributions(regression, fit.values), np.inf)
        smallest = int(np.argmin(parts))
        return smallest if parts[smallest] < share else None

    return _reduced(regression, estimator or WLS(), next_one, level, f"share {share:g}")


def contributions(regression: Regression, beta: Array) -> Array:
    """Return the largest contribution of every base parameter to a joint, over the effort of that joint, (b,)."""
    result = np.zeros(regression.base.rank)
    for group in regression.groups:
        size = np.sqrt(group.effort_square)
        if size > 0.0:
            own = np.linalg.norm(group.R[:, :-1] * beta[group.columns], axis=0) / size
            result[group.columns] = np.maximum(result[group.columns], own)
    return result


def _reduced(regression: Regression, chosen: OLS | WLS, next_one: Callable[[Fit], int | None], level: float, rule: str) -> Fit:
    """Drop one parameter after the other until the rule is met or the F-test rejects."""
    if not 0.0 <= level < 1.0:
        raise IdentificationError(f"level is {level}; it must be 0 or more and below 1 (0.05 is usual)")
    fit = full = chosen.fit(regression).result_
    sigma, b = chosen.sigma_, int(np.count_nonzero(fit.solved))
    dependent = inflation(regression.groups, fit.values, sigma)[0]
    rows = sum(group.count * group.independence for group in regression.groups) / dependent
    freedom = max(rows - b, 1.0)
    removed: list[str] = []
    log: list[Finding] = []

    def residual(beta: Array) -> float:
        return float(sum(group.residual(beta) / s**2 for group, s in zip(regression.groups, sigma, strict=True)))

    whole = residual(fit.values)
    ended = f"{rule} is reached"
    while np.count_nonzero(fit.active) > 1 and (worst := next_one(fit)) is not None:
        active = fit.active.copy()
        active[worst] = False
        smaller = chosen.fit(regression, active=active).result_
        count = len(removed) + 1
        F = max(residual(smaller.values) / whole - 1.0, 0.0) * freedom / count if whole > 0.0 else np.inf
        if level > 0.0 and scipy.stats.f.isf(level, count, freedom) < F:
            ended = f"removing {fit.base.names[worst]} as well would make the residuals grow (F = {F:.3g})"
            break
        removed.append(fit.base.names[worst])
        grown = 100.0 * (np.sqrt(residual(smaller.values) / whole) - 1.0) if whole > 0.0 else 0.0
        dropped = f"{removed[-1]} = {fit.values[worst]:.3g} +- {100 * fit.relative_std[worst]:.3g} %"
        log.append(note("removal", f"removal {count}: {dropped}; residuals {grown:+.2g} %, F = {F:.2g}"))
        fit = smaller
    if removed:  # removals bias the others
        kept, own = fit.active & fit.solved & full.solved, np.diag(fit.covariance)
        F = max(residual(fit.values) / whole - 1.0, 0.0) * freedom / len(removed) if whole > 0.0 else 0.0
        gained = F * np.maximum(np.diag(full.covariance) - own, 0.0)
        bias = np.maximum(np.square(fit.values - full.values), gained)
        fit = fit.altered(marginal_std=np.where(kept, np.sqrt(own + bias), 0.0))
    growth = np.sqrt(residual(fit.values) / whole) - 1.0 if whole > 0.0 else 0.0
    head = f"{len(removed)} of {full.base.rank} base parameters removed, residuals {100 * growth:+.2g} %"
    text = f"{head}: {', '.join(removed)}; {ended}"
    if not ended.startswith(rule):
        warn(f"essential parameters: {ended}; the rule is not met", DynidentWarning)
    elif level > 0.0 and removed and freedom < b:  # the full model fits much of the noise: hardly any growth contradicts it
        weak = (
            f"correlated residuals leave about {max(rows, 0.0):.0f} independent rows for {b} parameters, so the F-test is "
            f"weak; residuals {100 * growth:+.2g} %: check held-out data or record longer"
        )
        warn(f"essential parameters: {weak}", DynidentWarning)
        text = f"{text}; {weak}"
    return fit.noted(*log, note("essential", text, "info" if ended.startswith(rule) else "warning"))
