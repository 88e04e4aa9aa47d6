"""`MAP`: the default estimator, weighted least squares with the description as a prior."""

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
    DESCRIBED,
    DETERMINED,
    EXACT,
    UNDESCRIBED,
    Knowledge,
    MapEstimate,
    Posterior,
    Prior,
    base_covariance,
    estimate,
    parameter_covariance,
    prior_of,
)
from dynident.identify.prediction import calibration, growing
from dynident.identify.regression.factor import relative_error, training_columns, training_std, typical_speeds
from dynident.identify.regression.regression import Regression
from dynident.parallel import one_blas_thread
from dynident.signals.quality import Finding, note

NEGLIGIBLE = 1e-3  # of the effort: smaller errors are those of a simulation, and contradict nothing
DOUBTED = 5.0  # deviations below zero that contradict a sign: 1 % by Student for twenty terms and six stretches of time
MISFIT = 2.0  # times the error of left-out stretches, up to which possible bodies may raise the error of a joint
DISAGREE = 1.0  # relative to efforts and body size: tolerated error of a description; an empty description is not worse
RECOVERIES = ("physical", "prior")


class MAP(Estimator):
    """Most probable parameters: weighted least squares, the description as a prior, physically consistent bodies.

        minimise  sum_g ||W_g K phi - tau_g||^2 / (c_g sigma_g^2) + sum_k ((phi_k - phi0_k) / (s_f d_k))^2
        subject to  P_i(phi) > 0 for every body,  friction and rotor terms >= 0

    d are the natural sizes of the parameters (m, m r, m r^2 of each body), s_f maximises the marginal likelihood of the data,
    c_g is the variance inflation due to correlated residuals. With good data the prior has no influence; where the data
    determine nothing, the description stays. Base parameters, predictions and exported descriptions are those of the same
    standard parameters.

    Parameters
    ----------
    recovery : {"physical", "prior"}
        "physical" for physically consistent parameters, "prior" without this condition. Terms and joints whose data
        contradict the condition are named in the notes, and the misfit widens the bands of predictions.
    known : Knowledge, optional
        Weighed masses, total mass, known centres, bodies without parameters.
    """

    def __init__(self, *, recovery: str = "physical", known: Knowledge | None = None) -> None:
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
            spread = parameter_covariance(regression, posterior)
            covariance, determined = base_covariance(regression, posterior)
            std = np.sqrt(np.clip(np.diag(spread), 0.0, None))
            x, notes = posterior.x, regression.notes
            if self.recovery != "prior" and chosen.all():
                x, said = _possible(regression, posterior, std)
                notes = (*notes, *said)
        phi = posterior.standard(x)
        known = training_std(regression, covariance)
        misfit = _misfit(regression, posterior, x)
        values = base.values(phi)
        values[~chosen] = 0.0
        covariance[~chosen] = covariance[:, ~chosen] = 0.0
        how = "prior recovery" if x is posterior.x else "physically consistent"
        self.coef_, self.covariance_, self.sigma_, self.condition_ = values, covariance, posterior.sigma, free.condition_
        self.standard_covariance_ = spread
        found = Posterior(
            values=values,
            covariance=covariance,
            solved=chosen & determined,
            active=chosen,
            combinations=np.eye(base.rank),
            unconstrained=base.values(posterior.standard()),
            sigma=_noise(regression, posterior, misfit),
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
        fit = Fit(regression, found, notes)
        fit = fit.altered(growing=growing(fit))
        self.result_ = fit.altered(calibration=calibration(fit, posterior, misfit))
        return self


def _noise(regression: Regression, posterior: MapEstimate, misfit: Array) -> Array:
    """Return the deviation per row (groups,): errors of left-out stretches without the uncertainty of their parameters."""
    result = []
    for group, held_out, white, more in zip(regression.groups, posterior.held_out, posterior.sigma, misfit, strict=True):
        spread = posterior.left_out_covariance[: len(group.counts)][:, group.columns][:, :, group.columns]
        known = float(np.sum(group.products[:, :-1, :-1] * spread)) / max(group.count, 1)
        result.append(np.sqrt(max(held_out**2 - known, white**2 * group.independence) + more))
    return np.array(result)


def _possible(regression: Regression, posterior: MapEstimate, std: Array) -> tuple[Array, tuple[Finding, ...]]:
    """Return physically consistent parameters, and notes about terms and joints whose data contradict them.

    `std` counts the model error that left-out stretches show. A contradiction is reported, and the conditions stay: a friction
    model that is wrong by a few per cent contradicts them too, and impossible bodies extrapolate worse.
    """
    robot, prior = regression.mechanism, posterior.prior
    undescribed = np.array([each == UNDESCRIBED for each in (*prior.families, "")])[prior.family]
    size = prior.unit * np.where(undescribed, posterior.scale, 1.0)
    cone = cone_of(robot, prior.mean, prior.unit, size, posterior.free)
    x = consistent(posterior.root, posterior.target, cone, posterior.x).copy()
    phi, said = posterior.standard(), list[Finding]()
    sizes = np.array([np.sqrt(group.effort_square / max(group.count, 1)) for group in regression.groups])
    exact = bool(np.all(posterior.held_out < NEGLIGIBLE * sizes))
    negative_ones = (phi[cone.signed] < -DOUBTED * std[cone.signed]) & (not exact)
    below, others = cone.signed[negative_ones], x
    if negative := [f"{robot.parameters.names[k]} = {phi[k]:.3g} +- {std[k]:.2g}" for k in below]:
        text = f"the data contradict non-negative friction and rotor inertia: {', '.join(negative)} without that condition"
        said.append(note("negative_terms", f"{text}; a delay, a wrong sign or a missing term is possible", "warning"))
        left = replace(cone, signed=cone.signed[~negative_ones], lowest=cone.lowest[~negative_ones])
        others = consistent(posterior.root, posterior.target, left, posterior.x)  # their error is not that of bodies
    rms = np.sqrt(posterior.held_out**2 + _misfit(regression, posterior, others))
    if apart := [
        f"{group.name} ({out:.3g} -> {now:.3g})"
        for group, out, now, size in zip(regression.groups, posterior.held_out, rms, sizes, strict=True)
        if now > MISFIT * out and now > NEGLIGIBLE * size
    ]:
        told_beside = prior.values.size > 0 or bool(np.any(prior.family[: robot.tree.inertias.size] < 0))
        told = ", and the masses, centres and bodies given as known" if told_beside else ""
        text = f"the data contradict physically consistent bodies: the error grows more than {MISFIT:g} times in "
        said.append(
            note(
                "impossible_bodies",
                f"{text}{', '.join(apart)}; check sign, scale and order of the efforts{told} (recovery='prior' fits without)",
                "warning",
            )
        )
    if DESCRIBED in posterior.scales:
        scale, wrong = posterior.scales[DESCRIBED], relative_error(regression, regression.base.described)
        if max(scale, wrong) > DISAGREE:
            text = f"the data contradict the description: its torques are wrong by {100 * wrong:.0f} % of the efforts, its "
            text += f"bodies by {scale:.2g} times their own size; check masses, centres, gravity, sign and scale of the efforts"
            said.append(note("description", text, "warning"))
    return x, tuple(said)


def _misfit(regression: Regression, posterior: MapEstimate, x: Array) -> Array:
    """Return by how much the mean squared residual of every joint grows from the free optimum to x."""
    free, values = (regression.base.values(posterior.standard(each)) for each in (posterior.x, x))
    more = [(group.residual(values) - group.residual(free)) / max(group.count, 1) for group in regression.groups]
    return np.asarray(np.maximum(more, 0.0))


def _dropping(prior: Prior, rows: Array) -> Prior:
    """Return the prior with combinations that are known to be zero."""
    sharp = rows / (EXACT * np.linalg.norm(rows * prior.unit, axis=1))[:, None]
    return replace(prior, rows=np.vstack([prior.rows, sharp]), values=np.append(prior.values, np.zeros(len(rows))))
