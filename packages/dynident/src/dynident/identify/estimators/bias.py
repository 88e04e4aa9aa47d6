"""Is least squares biased? Noise in the regressor, instruments against least squares, colour of the residuals.

    H = d^T cov(d)^-1 d,   d = beta_IV - beta_WLS      about chi^2(k) where both are consistent [Hausman1978]

cov(d) comes from the influence of every row on the difference, under coloured noise, so it cannot lose its sign.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast

from dynident.arrays import Array
from dynident.errors import DynidentError, IdentificationError, require
from dynident.identify.estimators.instrumental import IV
from dynident.identify.estimators.least_squares import WLS
from dynident.identify.estimators.statistics import (
    coloured_covariance,
    influence_covariance,
    least_squares_influence,
    noise_bias,
    row_noise,
)
from dynident.identify.regression.factor import Solution
from dynident.identify.regression.regression import Regression
from dynident.results import Result
from dynident.signals.dependence import autocovariance, ljung_box
from dynident.signals.filters import Decimator

LAGS = 10
SURE = 1e-3  # probability of chance below which a test is significant
CERTAIN = 1e-12  # relative eigenvalue of cov(d) below which a direction has no difference
NEVER = 1e-12  # probability below which no test is so exact
SMALL, LARGE = 0.5, 2.0  # bias, in standard deviations, that can be ignored; that decides


@dataclass(frozen=True, eq=False)
class LeastSquaresBias(Result):
    """Evidence for and against a bias of least squares on some regression data."""

    names: tuple[str, ...]  # Base parameters
    bias: Array  # Bias of WLS that noise of the positions explains
    std: Array  # Standard deviation of WLS under coloured noise
    noise_share: dict[str, float]  # Part of the residual variance of every joint that noise of the positions explains
    whiteness: dict[str, tuple[float, float]]  # Correlation of neighbouring residuals by joint, and probability of chance
    difference: Array  # Estimate of WLS less that of the instruments; NaN where there are none
    hausman: float  # Statistic of instruments against least squares; NaN where there are none
    degrees: int  # Its degrees of freedom, or 0
    probability: float  # Its probability of chance, or NaN
    sentences: tuple[str, ...] = ()  # Summary in plain words
    derived = ("biased",)

    def __post_init__(self) -> None:
        for name in ("bias", "std", "difference"):
            if np.shape(getattr(self, name)) != (len(self.names),):
                raise IdentificationError(f"{name} has shape {np.shape(getattr(self, name))}; give one number per parameter")

    @property
    def biased(self) -> bool:
        """True if noise or instruments indicate a bias of least squares of two standard deviations or more."""
        by_noise, by_instruments = (self._largest(x)[1] for x in (self.bias, self.difference))
        return bool(by_noise >= LARGE or (by_instruments >= LARGE and self.probability < SURE))

    def _largest(self, values: Array) -> tuple[int, float]:
        """Return the parameter with the largest value in standard deviations, and that number."""
        ratio = np.nan_to_num(np.abs(values)) / np.where(self.std > 0.0, self.std, np.inf)
        worst = int(np.argmax(ratio))
        return worst, float(ratio[worst])

    def summary(self) -> str:
        """Return the result as text, one sentence a line."""
        return "\n".join(self.sentences)


def least_squares_bias(regression: Regression, instruments: IV | None = None) -> LeastSquaresBias:
    """Test the bias of least squares on some regression data.

    Parameters
    ----------
    regression : Regression
        Regression data with its rows.
    instruments : IV, optional
        Instruments to compare with; the logs' reference when omitted, none where there is none.

    Returns
    -------
    LeastSquaresBias
        Numbers and sentences.
    """
    require(regression, Regression, "regression")
    solution, sigma = WLS()._estimate(regression, np.ones(regression.base.rank, dtype=bool))
    bias, explained = noise_bias(regression, solution, sigma, row_noise(regression))
    share = {group.name: float(x) for group, x in zip(regression.groups, explained, strict=True)}
    whiteness = _whiteness(regression, solution)
    std = np.sqrt(np.diag(coloured_covariance(regression, solution, sigma)))
    difference, hausman, degrees, probability, reason = _hausman(regression, instruments, solution, sigma)
    found = LeastSquaresBias(
        regression.base.names,
        bias,
        std,
        share,
        whiteness,
        difference,
        hausman,
        degrees,
        probability,
    )
    return replace(found, sentences=(*_noise_words(found), *_test_words(found, reason)))


def _whiteness(regression: Regression, solution: Solution) -> dict[str, tuple[float, float]]:
    residuals, found = regression.residuals(solution.beta), {}
    for g, group in enumerate(regression.groups):
        parts = [(part[g], s.used[g]) for part, s in zip(residuals, regression.stretches, strict=True)]
        covariance = autocovariance(parts, min(LAGS, max(1, min(s.t.size for s in regression.stretches) // 4)))
        own = _decimated(regression.stretches[0].decimator, covariance.size)
        statistic, degrees = ljung_box(covariance, group.count, own)
        first = float(covariance[1] / covariance[0]) if covariance[0] > 0.0 else 0.0
        found[group.name] = (first, float(scipy.stats.chi2.sf(statistic, degrees)))
    return found


def _decimated(decimator: Decimator, lags: int) -> Array:
    """Return the autocorrelation of white noise after the filter of a decimation."""
    h, n = decimator.taps, decimator.factor
    own = [float(h[lag * n :] @ h[: max(h.size - lag * n, 0)]) if lag * n < h.size else 0.0 for lag in range(lags)]
    return np.array(own) / own[0]


def _hausman(
    regression: Regression, instruments: IV | None, plain: Solution, sigma: Array
) -> tuple[Array, float, int, float, str]:
    """Return the differences, the statistic, its degrees of freedom, the probability of chance, and the reason if none."""
    estimator = instruments or IV()
    if not isinstance(estimator, IV):
        raise IdentificationError(f"instruments is a {type(estimator).__name__}; give an IV(...) or nothing")
    try:
        other, _ = estimator._estimate(regression, np.ones(regression.base.rank, dtype=bool))
    except DynidentError as error:
        if instruments is not None:
            raise
        return np.full(regression.base.rank, np.nan), float("nan"), 0, float("nan"), str(error)
    if estimator.weakness_:
        return np.full(regression.base.rank, np.nan), float("nan"), 0, float("nan"), estimator.weakness_
    both = np.intersect1d(plain.solved, other.solved)
    mine, theirs = (
        np.flatnonzero(np.isin(s.solved, both))[np.argsort(s.solved[np.isin(s.solved, both)])] for s in (plain, other)
    )
    influence = [
        [theirs_g[:, theirs] - mine_g[:, mine] for theirs_g, mine_g in zip(*parts, strict=True)]
        for parts in zip(estimator.influence_, least_squares_influence(regression, plain, sigma), strict=True)
    ]
    spread = influence_covariance(regression, other.beta, influence)
    every = np.full(plain.beta.size, np.nan)
    every[both] = (plain.beta - other.beta)[both]
    difference = every[both]
    size = np.sqrt(np.diag(plain.covariance())[both])
    values, vectors = np.linalg.eigh(spread / np.outer(size, size))
    keep = values > max(CERTAIN, 1e-6 * values[-1])
    if not keep.any():
        return every, 0.0, 0, 1.0, "the instruments are the measured motion itself"
    z = vectors[:, keep].T @ (difference / size) / np.sqrt(values[keep])
    statistic = float(z @ z)
    return every, statistic, int(keep.sum()), float(scipy.stats.chi2.sf(statistic, int(keep.sum()))), ""


def _noise_words(found: LeastSquaresBias) -> list[str]:
    worst, size = found._largest(found.bias)
    strongest = max(found.noise_share, key=lambda name: found.noise_share[name])
    percent = 100.0 * min(found.noise_share[strongest], 1.0)
    meant = "do not use OLS or WLS in this band: lower cutoff=, or use IV or TLS"
    if size < LARGE:
        meant = "similar to its uncertainty; lower cutoff=, or use IV or TLS" if size >= SMALL else "nothing to do"
    return [
        f"position noise contributes up to {percent:.0f} % of the residual variance (joint '{strongest}')",
        f"it biases least squares by up to {size:.2g} standard deviations ('{found.names[worst]}': {found.bias[worst]:+.3g}): "
        f"{meant}",
    ]


def _test_words(found: LeastSquaresBias, reason: str) -> list[str]:
    words = [f"instruments against least squares: not tested; {reason}"]
    if found.degrees:
        worst, size = found._largest(found.difference)
        chance = f"p = {found.probability:.2g}" if found.probability > NEVER else f"p < {NEVER:g}"
        test = f"Hausman {found.hausman:.0f} for {found.degrees} degrees of freedom, {chance}"
        apart = f"by up to {size:.2g} standard deviations ('{found.names[worst]}': {found.difference[worst]:+.3g}; {test})"
        meant = "more than chance, but within the uncertainty"
        if size >= LARGE:
            meant = (
                "regressor noise or a model error biases least squares; if the noise above is small, look for missing terms "
                "(friction=)"
            )
        words = [f"instruments and least squares differ {apart}: {meant}"]
        if found.probability >= SURE:
            words = [f"instruments and least squares agree ({test})"]
    coloured = {name: r for name, (r, p) in found.whiteness.items() if p < SURE}
    if not coloured:
        return [*words, "residuals are white apart from the low-pass of the rows"]
    joint = max(coloured, key=lambda name: abs(coloured[name]))
    return [
        *words,
        f"residuals of {len(coloured)} of {len(found.whiteness)} joints are coloured (correlation up to "
        f"{coloured[joint]:+.2f}, '{joint}'): standard deviations of OLS and WLS are unreliable; use GLS, IV or TLS",
    ]
