"""Physically consistent parameters near the description in the entropic sense [Lee2020] [Wensing2018].

    phi = argmin 1/2 (K phi - beta)^T C^-1 (K phi - beta) + gamma sum_i D(P_i || P0_i) + 1/2 sum_t ((phi_t - phi0_t) / s_t)^2
    D(P || P0) = tr(P P0^-1) - log det(P P0^-1) - 4          P pseudo-inertia of a body, P0 that of its description

D does not depend on frames or units, is infinite for impossible bodies, and near P0 is half the squared relative change: with
gamma = 1 the description may be wrong by its own size. The cost is convex and smooth, so Newton's method solves it; terms that
dissipate are kept above zero by a small barrier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident.friction.terms import term_of
from dynident.identify.base import natural_spread
from dynident.identify.estimators.least_squares import WLS, Estimator
from dynident.identify.fit import Fit
from dynident.identify.posterior.physical import spread_beside, whitener
from dynident.identify.regression.factor import constrained_sigma, relative_error, triangle
from dynident.identify.regression.regression import Regression
from dynident.mechanism.parameters import pseudo_inertia

UNITS = np.stack([pseudo_inertia(unit) for unit in np.eye(10)])
BARRIER = 1e-6
STEPS = 200
SHORTEST = 1e-10  # part of Newton's step
ROUNDING = 1e-10  # of the cost
DONE = 1e-10  # Newton decrement, of a cost whose unit is half a squared standard deviation


@dataclass(kw_only=True, eq=False)
class Entropic(Estimator):
    """Weighted least squares with the entropic prior: every body is possible, and near the description where data say little.

        phi = argmin 1/2 |K phi - beta|^2_(C^-1) + gamma sum_i D(P_i || P0_i)

    Parameters
    ----------
    gamma : float
        Weight of the prior: 1 says that the description may be wrong by its own size, 100 by a tenth of it.
    tolerance : float
        Relative size below which a column counts as not excited by the data.
    """

    gamma: float = 1.0
    tolerance: float = 1e-8

    def fit(self, regression: Regression, active: NDArray[np.bool_] | None = None) -> Self:
        """Estimate possible bodies; `active` must be all base parameters, since a body has all its parameters.

        `result_` has the base parameters of its standard ones: what is scored is what is exported.
        """
        if not (np.isfinite(self.gamma) and self.gamma > 0.0):
            raise IdentificationError(f"Entropic: gamma is {self.gamma}; it must be above zero (1 is usual)")
        if active is not None and not np.all(active):
            raise IdentificationError("Entropic: active leaves parameters out, but a possible body has all of them")
        free = WLS(tolerance=self.tolerance).fit(regression, active)
        phi, covariance = _newton(free.result_, self.gamma)
        base = regression.base
        self.coef_, self.covariance_ = base.values(phi), covariance
        self.sigma_, self.condition_ = constrained_sigma(regression, free.sigma_, free.coef_, self.coef_), free.condition_
        self.result_ = free.result_.altered(
            values=self.coef_,
            covariance=covariance,
            sigma=self.sigma_ * np.sqrt([group.independence for group in regression.groups]),
            standard=base.mechanism.parameters.replace(phi, provenance="identified, entropic prior"),
            estimator=str(self),
            training_relative=relative_error(regression, self.coef_),
        )
        return self


def _newton(fit: Fit, gamma: float) -> tuple[Array, Array]:
    """Return the minimum and the posterior covariance of the base parameters."""
    mechanism, E = fit.mechanism, fit.posterior.combinations
    bodies = len(mechanism.tree.bodies)
    spread, prior = spread_beside(fit.base, fit.values, fit.solved), mechanism.parameters.values
    whitening = whitener(E @ fit.covariance @ E.T)
    A, target = whitening @ E @ fit.base.regrouping * spread, whitening @ (E @ fit.values)
    P0 = _priors(fit)
    inverse0 = np.asarray(np.linalg.inv(P0), dtype=np.float64)
    basis = UNITS[None] * spread[: 10 * bodies].reshape(bodies, 10)[:, :, None, None]
    pull = gamma * np.einsum("ikab,iba->ik", basis, inverse0).ravel()
    names = mechanism.parameters.names
    terms = np.arange(10 * bodies, len(prior))
    signed = np.array([i for i in terms if (term := term_of(names[i])) is not None and term.passive], dtype=int)
    x = np.zeros(len(prior))
    x[: 10 * bodies] = (np.stack([_phi(P) for P in P0]) / spread[: 10 * bodies].reshape(bodies, 10)).ravel()
    x[terms] = prior[terms] / spread[terms]
    x[signed] = np.maximum(x[signed], 1e-3)
    centre = prior[terms] / spread[terms]

    def cost(x: Array) -> float:
        P = np.einsum("ik,ikab->iab", x[: 10 * bodies].reshape(bodies, 10), basis)
        sign, size = np.linalg.slogdet(P)
        if np.any(np.linalg.eigvalsh(P)[:, 0] <= 0.0) or np.any(sign <= 0.0) or np.any(x[signed] <= 0.0):
            return np.inf
        e, off = A @ x - target, x[terms] - centre
        barrier = BARRIER * float(np.sum(np.log(x[signed]))) if signed.size else 0.0
        return float(0.5 * e @ e + pull @ x[: 10 * bodies] - gamma * np.sum(size) + 0.5 * off @ off - barrier)

    for _ in range(STEPS):
        P = np.einsum("ik,ikab->iab", x[: 10 * bodies].reshape(bodies, 10), basis)
        inverse = np.linalg.inv(P)
        gradient = A.T @ (A @ x - target)
        gradient[: 10 * bodies] += pull - gamma * np.einsum("ikab,iba->ik", basis, inverse).ravel()
        gradient[terms] += x[terms] - centre
        gradient[signed] -= BARRIER / x[signed]
        hessian = _curvature(basis, inverse, terms, gamma)
        hessian[signed, signed] += BARRIER / x[signed] ** 2
        step = _solve(A, hessian, gradient)
        decrement = float(gradient @ step)
        if decrement < DONE * (1.0 + gamma):
            break
        now, length = cost(x), 1.0
        while cost(x - length * step) > now - 0.1 * length * decrement and length > SHORTEST:
            length *= 0.5
        if length <= SHORTEST and decrement < ROUNDING * max(abs(now), 1.0):
            break  # what is left to gain is rounding of the cost
        x = x - length * step
    else:
        raise IdentificationError(f"Entropic: no minimum was found in {STEPS} steps; the data contradict every possible robot")
    phi = x * spread
    K = fit.base.regrouping * spread
    # The spread of the prior is that about the description. Near a bound (an impossible body, friction of zero) the curvature
    # of the cost is that of the wall, and says nothing about how well a parameter is known.
    covariance = K @ _solve(A, _curvature(basis, inverse0, terms, gamma), K.T)
    return phi, 0.5 * (covariance + covariance.T)


def _curvature(basis: Array, inverse: Array, terms: NDArray[np.intp], gamma: float) -> Array:
    """Return the second derivatives of the prior: gamma tr(P^-1 E_k P^-1 E_l) per body, 1 per term."""
    bodies = basis.shape[0]
    hessian = np.zeros((10 * bodies + terms.size, 10 * bodies + terms.size))
    for i in range(bodies):
        moved = inverse[i] @ basis[i]
        hessian[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] = gamma * np.einsum("kab,lba->kl", moved, moved)
    hessian[terms, terms] = 1.0
    return hessian


def _solve(A: Array, prior: Array, right: Array) -> Array:
    """Return (A^T A + prior)^-1 right by reflections: A may be larger than the prior by many decades."""
    root = np.linalg.cholesky(prior).T
    R = triangle(np.vstack([A, root]))
    return np.asarray(np.linalg.solve(R, np.linalg.solve(R.T, right)))


def _priors(fit: Fit) -> Array:
    """Return the pseudo-inertia of every body as described; a ball of natural size where the description has none."""
    bodies = len(fit.mechanism.tree.bodies)
    described = fit.mechanism.parameters.values[: 10 * bodies].reshape(bodies, 10)
    natural = natural_spread(fit.mechanism)[: 10 * bodies].reshape(bodies, 10)
    found = []
    for phi, size in zip(described, natural, strict=True):
        P, m, mrr = pseudo_inertia(phi), size[0], size[4]
        ball = np.diag([mrr / 3.0, mrr / 3.0, mrr / 3.0, m])
        scale = np.sqrt(np.diag(ball))
        possible = np.linalg.eigvalsh(P / np.outer(scale, scale))[0] > 1e-6
        found.append(P if possible else ball)
    return np.stack(found)


def _phi(P: Array) -> Array:
    """Return the ten parameters of a pseudo-inertia."""
    return np.asarray(np.linalg.lstsq(UNITS.reshape(10, 16).T, P.ravel(), rcond=None)[0], dtype=np.float64)
