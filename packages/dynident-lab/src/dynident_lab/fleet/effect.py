"""Robots of one type as a random effect: mean, effect of temperature and load, and spread, from normal equations.

    beta_r = mu + B x_r + u_r,  u_r ~ N(0, T),        regression of robot r:  H_r beta_r = h_r + noise of covariance H_r

x_r are temperature and load if known. mu, B and T maximise the likelihood by expectation and maximisation, in
the form of normal equations, so that a robot with poorly observable parameters needs no special case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.friction.terms import term_of
from dynident.identify import BaseParameters
from dynident_lab.fleet.results import RobotEstimate

Flags = NDArray[np.bool_]

FEWEST = 5  # robots: fewer determine no spread
STEPS, CONVERGED = 60, 0.01
SURE = 10.0  # robots per parameter for reliable correlations
USUAL = 3.0  # deviations within which a robot's own factor of dependent residuals counts as scatter
RANGE = 2.0  # degree Celsius: a smaller range does not determine the effect of temperature
AT_ONCE = 256  # robots per batch of scores


@dataclass(frozen=True, eq=False)
class Fleet:
    """Normal equations of all robots, in units with a mean information of 1 for every parameter.

    `X` (R, k) are the covariates of the robots, the first equal to 1; `acts` (k, b) marks the parameters that they affect.
    """

    H: Array
    h: Array
    unit: Array
    X: Array
    acts: Flags

    def part(self, kept: Flags) -> Fleet:
        """Return a subset of the robots."""
        return replace(self, H=self.H[kept], h=self.h[kept], X=self.X[kept])


@dataclass(frozen=True, eq=False)
class Effect:
    """Coefficients (k, b) of the covariates, the first being the mean, and spread T (b, b)."""

    coefficients: Array
    T: Array

    @property
    def precision(self) -> Array:
        """One over the spread."""
        return np.asarray(np.linalg.inv(self.T), dtype=np.float64)


def scaled(robots: Sequence[RobotEstimate], base: BaseParameters, notes: list[str]) -> Fleet:
    """Return the robots in common units, with their covariates; compensated effects are added to the notes."""
    H, h = np.array([r.information for r in robots]), np.array([r.score for r in robots])
    factor = _own_inflation(np.array([r.inflation for r in robots]))
    H, h = H * factor[:, None, None], h * factor[:, None]
    diagonal = np.einsum("rii->i", H) / len(robots)
    unit = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    names = base.mechanism.parameters.names
    joint_terms = np.array([term_of(name) is not None for name in names])
    acts = [np.ones(base.rank, dtype=bool)]
    columns = [np.ones(len(robots))]
    for label, least, mask in (
        ("temperature", RANGE, np.any((base.regrouping != 0.0) & joint_terms, axis=1)),
        ("payload", 1e-6, np.ones(base.rank, dtype=bool)),
    ):
        x = np.array([getattr(r, label) for r in robots])
        if np.all(np.isfinite(x)) and np.ptp(x) > least and len(robots) >= 2 * FEWEST:
            columns.append((x - np.median(x)) / max(float(np.std(x)), 1e-12))
            acts.append(mask)
            notes.append(f"{label} is compensated, {np.min(x):.3g} to {np.max(x):.3g} over the robots")
    return Fleet(H * np.outer(unit, unit), h * unit, unit, np.column_stack(columns), np.array(acts))


def _own_inflation(c: Array) -> Array:
    """Return the factor that replaces a robot's uncertain c by the fleet's; 1 for an unusual c, which is kept."""
    usual = float(np.median(c))
    scatter = 1.4826 * float(np.median(np.abs(np.log(c / usual))))
    return np.asarray(np.where(np.abs(np.log(c / usual)) <= USUAL * scatter, c / usual, 1.0))


def start(fleet: Fleet) -> Effect:
    """Return medians over the robots, so that an outlying robot does not inflate the spread and hide itself."""
    H, h = fleet.H, fleet.h
    R, b = h.shape
    middle = np.linalg.solve(H.sum(axis=0) + R * 1e-9 * np.eye(b), h.sum(axis=0))
    weak = 1e-3 * np.eye(b)
    spread = np.linalg.inv(H + weak)
    free = np.asarray(np.einsum("rij,rj->ri", spread, h + weak @ middle), dtype=np.float64)
    middle = np.median(free, axis=0)
    found = (1.4826 * np.median(np.abs(free - middle), axis=0)) ** 2
    # The scatter due to the data alone is subtracted: from above the steps of `estimate` approach a small spread very slowly.
    T = np.diag(np.maximum(found - np.median(np.einsum("rii->ri", spread), axis=0), 0.02 * found) + 1e-6)
    near = np.sum((free - middle) ** 2 / np.diag(T), axis=1)
    return Effect(_regressed(fleet, free, (near <= np.median(near)).astype(float)), T)


def estimate(fleet: Fleet, begin: Effect) -> Effect:
    """Maximise the likelihood of mean and spread; all robots have the same weight, so that tests have one distribution."""
    H, h = fleet.H, fleet.h
    R, b = h.shape
    B, T = begin.coefficients, begin.T
    # A robot contributes to the spread that it is compared with: with few robots, correlations would explain its deviation.
    believed = min(1.0, R / (SURE * b))
    for _ in range(STEPS):
        P = np.linalg.inv(T)
        C = np.linalg.inv(H + P)
        m = np.einsum("rij,rj->ri", C, h + fleet.X @ B @ P)
        B = _regressed(fleet, m, np.ones(R))
        u = m - fleet.X @ B
        S = (C.sum(axis=0) + u.T @ u) / R
        new = believed * S + (1.0 - believed) * np.diag(np.diag(S)) + 1e-12 * np.eye(b)
        change = float(np.max(np.abs(np.log(np.diag(new) / np.diag(T)))))
        T = new
        if change < CONVERGED:
            break
    return Effect(B, T)


def _regressed(fleet: Fleet, m: Array, weights: Array) -> Array:
    """Return coefficients (k, b) of the regression of the robots' parameters on their covariates."""
    B = np.zeros((fleet.X.shape[1], m.shape[1]))
    root = np.sqrt(weights)[:, None]
    for columns in {tuple(own) for own in fleet.acts.T.tolist()}:
        own = np.all(np.array(columns) == fleet.acts.T, axis=1)
        used = np.flatnonzero(columns)
        B[np.ix_(used, np.flatnonzero(own))] = np.linalg.lstsq(fleet.X[:, used] * root, m[:, own] * root, rcond=None)[0]
    return B


def precision(H: Array, P: Array) -> Array:
    """Return S^-1 = (H^-1 + T)^-1 = H - H (H + T^-1)^-1 H of robots, (..., b, b); H need not be invertible."""
    return np.asarray(H - H @ np.linalg.solve(H + P, H))


def scores(fleet: Fleet, effect: Effect, K: Array) -> tuple[Array, Array]:
    """Return k_p^T S^-1 (beta_r - mu) and its variance k_p^T S^-1 k_p, both (R, p); zero if unobservable."""
    pull, size = (np.concatenate(parts) for parts in zip(*_scored(fleet, effect, K), strict=True))
    return pull, size


def _scored(fleet: Fleet, effect: Effect, K: Array) -> Iterator[tuple[Array, Array]]:
    P = effect.precision
    for first in range(0, len(fleet.h), AT_ONCE):
        at = slice(first, first + AT_ONCE)
        H, mean = fleet.H[at], fleet.X[at] @ effect.coefficients
        g = fleet.h[at] - np.einsum("rij,rj->ri", H, mean)
        own = g - np.einsum("rij,rj->ri", H, np.linalg.solve(H + P, g[..., None])[..., 0])
        size = np.einsum("ip,rip->rp", K, precision(H, P) @ K)
        seen = (np.einsum("ip,rip->rp", K, H @ K) > 1e-9) & (size > 0.0)
        yield np.where(seen, own @ K, 0.0), np.where(seen, size, 0.0)
