"""`MAP`: the default estimator, weighted least squares with the description as a belief that the data weigh."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident.identify.estimators.least_squares import WLS, Estimator
from dynident.identify.fit import Fit
from dynident.identify.posterior.physical import cone_of, consistent
from dynident.identify.posterior.posterior import (
    EXACT,
    UNDESCRIBED,
    Knowledge,
    MapEstimate,
    Posterior,
    Prior,
    at_least_jackknife,
    estimate,
    inflation,
    jackknife,
    prior_of,
)
from dynident.identify.regression.factor import relative_error, training_columns, training_std, typical_speeds
from dynident.identify.regression.regression import Regression
from dynident.parallel import one_blas_thread
from dynident.signals.quality import Finding, note

DETERMINED = 0.5  # of the deviation before the data: a parameter that is known better than this is determined by them
DOUBTED = 3.0  # deviations below zero at which a term is not called zero
RECOVERIES = ("auto", "physical", "prior")


class MAP(Estimator):
    """Most probable parameters: weighted least squares, the description as a belief, possible bodies.

        minimise  sum_g ||W_g K phi - tau_g||^2 / (c_g sigma_g^2) + sum_k ((phi_k - phi0_k) / (s_f d_k))^2
        subject to  P_i(phi) > 0 for every body,  friction and rotor terms >= 0

    d are the robot's own units (m, m r, m r^2 of each body), s_f maximises the evidence of the data, c_g is the inflation by
    dependent residuals. With good data the belief vanishes; where the data say nothing, the description stays. Base parameters,
    predictions and exported descriptions are those of the same standard parameters.

    Parameters
    ----------
    recovery : {"auto", "physical", "prior"}
        "physical" for parameters that bodies can have, "prior" without that condition; "auto" for possible bodies unless the
        data refute them beyond doubt, which is said.
    known : Knowledge, optional
        Weighed masses, total mass, known centres, bodies without parameters.
    """

    def __init__(self, *, recovery: str = "auto", known: Knowledge | None = None) -> None:
        self.recovery = recovery
        self.known = known

    def fit(self, regression: Regression, active: NDArray[np.bool_] | None = None) -> Self:
        """Estimate the `active` base parameters (all); with others held at zero, bodies may be impossible."""
        chosen = self._chosen(regression, active)
        if self.recovery not in RECOVERIES:
            raise IdentificationError(f"recovery is '{self.recovery}'; it must be one of {', '.join(RECOVERIES)}")
        base, robot = regression.base, regression.mechanism
        free = WLS().fit(regression, active)
        prior = prior_of(regression, self.known)
        if not chosen.all():
            prior = _dropping(prior, base.regrouping[~chosen])
        with one_blas_thread():
            posterior = estimate(regression, prior, free.sigma_)
            spread = posterior.covariance() * _repeated(regression, posterior)
            x, notes = posterior.x, regression.notes
            if self.recovery != "prior" and chosen.all():
                always = self.recovery == "physical"
                x, said = _possible(regression, posterior, _deviations(posterior, spread, base.columns), always)
                notes = (*notes, *said)
        phi = posterior.standard(x)
        K = base.regrouping
        covariance = at_least_jackknife(K @ spread @ K.T, posterior.left_out)
        believed = K**2 @ (prior.unit * posterior.scale) ** 2
        known = training_std(regression, covariance)
        values = base.values(phi)
        values[~chosen] = 0.0
        covariance[~chosen] = covariance[:, ~chosen] = 0.0
        std = np.sqrt(np.clip(np.diag(spread), 0.0, None))
        how = "prior recovery" if x is posterior.x else "physically consistent"
        self.coef_, self.covariance_, self.sigma_, self.condition_ = values, covariance, posterior.sigma, free.condition_
        found = Posterior(
            values=values,
            covariance=covariance,
            solved=chosen & (np.diag(covariance) < DETERMINED**2 * believed),
            active=chosen,
            combinations=np.eye(base.rank),
            sigma=_noise(regression, posterior, known),
            condition=free.condition_,
            standard=robot.parameters.replace(phi, provenance=f"identified, {how}"),
            estimator=str(self),
            training_relative=relative_error(regression, values),
            free=free.coef_,
            free_relative=relative_error(regression, free.coef_),
            description_relative=relative_error(regression, base.values(base.mechanism.parameters.values)),
            standard_std=std,
            determined=std < DETERMINED * prior.unit * posterior.scale,
            scales=posterior.scales,
            inflation=posterior.inflation,
            training_std=known,
            training_columns=training_columns(regression),
            speeds=typical_speeds(regression),
        )
        self.result_ = Fit(regression, found, notes)
        return self


def _noise(regression: Regression, posterior: MapEstimate, known: Array) -> Array:
    """Return the deviation per row (groups,) without the parameter uncertainty `known` (groups,), which predictions add."""
    white = posterior.sigma * np.sqrt([group.independence for group in regression.groups])
    return np.asarray(np.sqrt(np.maximum(posterior.held_out**2 - known**2, white**2)))


def _repeated(regression: Regression, posterior: MapEstimate) -> float:
    """Return by how much variances grow because a periodic motion meets the same errors of the model again and again."""
    beta = regression.base.values(posterior.standard())
    by_phase = inflation(regression.groups, beta, posterior.sigma, by_phase=True)
    return float(max(1.0, by_phase[0] / posterior.inflation[0]))


def _deviations(posterior: MapEstimate, spread: Array, columns: NDArray[np.int64]) -> Array:
    """Return the deviations of the standard parameters, none of a base parameter below that of the jackknife."""
    std = np.sqrt(np.diag(spread))
    std[columns] = np.maximum(std[columns], np.sqrt(jackknife(posterior.left_out)))
    return std


def _possible(regression: Regression, posterior: MapEstimate, std: Array, always: bool) -> tuple[Array, tuple[Finding, ...]]:
    """Return the parameters that bodies can have, unless the data refute that, and notes about what was refuted."""
    robot, prior = regression.mechanism, posterior.prior
    undescribed = np.array([each == UNDESCRIBED for each in (*prior.families, "")])[prior.family]
    size = prior.unit * np.where(undescribed, posterior.scale, 1.0)
    cone = cone_of(robot, prior.mean, prior.unit, size, posterior.free)
    phi, said = posterior.standard(), list[Finding]()
    told_beside = prior.values.size > 0 or bool(np.any(prior.family[: robot.tree.inertias.size] < 0))
    contradicted = (phi[cone.signed] < -DOUBTED * std[cone.signed]) & (not always)
    if negative := [f"{robot.parameters.names[k]} {phi[k]:.3g} +- {std[k]:.2g}" for k in cone.signed[contradicted]]:
        text = (
            f"negative beyond doubt, by a delay, a wrong sign or a missing term in the data, and left so: {', '.join(negative)}"
        )
        said.append(note("negative_terms", text, "warning"))
    signed = replace(cone, signed=cone.signed[~contradicted], lowest=cone.lowest[~contradicted])
    bodies = replace(cone, signed=cone.signed[:0], lowest=cone.lowest[:0])
    conditions = (
        (signed, "impossible_terms", "friction and rotor terms without a negative sign"),
        (bodies, "impossible_bodies", "bodies that can exist"),
    )
    for each, code, refuted in conditions:
        x = consistent(posterior.root, posterior.target, each, posterior.x)
        cost = posterior.cost(x) - posterior.cost(posterior.x)
        active = each.active(x)
        if always or cost <= active + 4.0 * np.sqrt(2.0 * max(active, 1)):
            return x.copy(), tuple(said)  # possible, even where the free optimum was so already
        told = ", or what is told beside the description (masses, centres, bodies left out)" if told_beside else ""
        text = (
            f"these data refute {refuted} (chi2 grows by {cost:.0f} for {active} inequalities): sign, scale or "
            f"order of the efforts may be wrong{told}; parameters are given without that condition "
            "(recovery='physical' imposes it)"
        )
        said.append(note(code, text, "warning"))
    return posterior.x, tuple(said)


def _dropping(prior: Prior, rows: Array) -> Prior:
    """Return the belief with combinations that are known to be zero."""
    sharp = rows / (EXACT * np.linalg.norm(rows * prior.unit, axis=1))[:, None]
    return replace(prior, rows=np.vstack([prior.rows, sharp]), values=np.append(prior.values, np.zeros(len(rows))))
