"""What is known about bodies and other terms while the friction of a joint is searched, as rows of least squares.

    ||T beta - t||^2,    beta ~ N(K phi, K C K^T),    phi, C = mean and covariance by the description and the other joints

A joint alone shows most bodies badly: errors of data that were left out would then be those of bodies that were invented, not
those of the friction. The strength of the description is the one that the data chose (`dynident.identify.posterior`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynident.errors import ConditionWarning
from dynident.identify.base import BaseParameters
from dynident.identify.estimators import WLS
from dynident.identify.posterior import estimate
from dynident.identify.prior import Knowledge, prior_of
from dynident.identify.regression import Regression
from dynident.parallel import one_blas_thread

Array = NDArray[np.float64]

SHARPEST = 1e-6  # of the deviation of a typical combination: none is believed more sharply, so that all can be inverted


class Belief:
    """The belief of the default estimator, without the data of some row groups."""

    def __init__(self, evidence: Regression, known: Knowledge | None = None) -> None:
        self.evidence, self.prior = evidence, prior_of(evidence, known)
        with one_blas_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConditionWarning)  # the fit says it
            found = estimate(evidence, self.prior, WLS().fit(evidence).sigma_)
        self.spread = self.prior.unit * found.scale
        self.weights = 1.0 / (found.sigma**2 * found.inflation)

    def rows(self, base: BaseParameters, without: Sequence[str]) -> tuple[Array, Array]:
        """Return T (b, b) and t (b,) for base parameters of the robot without its friction laws.

        `without` names the row groups whose data are not used, since they enter the search themselves.
        """
        K, rank = self.evidence.base.regrouping, self.evidence.base.rank
        H, h = np.zeros((rank, rank)), np.zeros(rank)
        for group, weight in zip(self.evidence.groups, self.weights, strict=True):
            if group.name not in without:
                W, y = group.R[:, :-1], group.R[:, -1]
                H[np.ix_(group.columns, group.columns)] += weight * (W.T @ W)
                h[group.columns] += weight * (W.T @ y)
        mean, S = self.prior.mean, self.spread
        told, values = self.prior.rows * S, self.prior.values - self.prior.rows @ mean
        M = K * S
        inverse = np.linalg.inv(np.eye(S.size) + M.T @ H @ M + told.T @ told)
        phi = mean + S * (inverse @ (M.T @ (h - H @ (K @ mean)) + told.T @ values))
        names = self.evidence.mechanism.parameters.names
        own = [names.index(name) for name in base.mechanism.parameters.names]
        L = base.regrouping * S[own]
        return _rows(base.values(phi[own]), L @ inverse[np.ix_(own, own)] @ L.T)


def _rows(mean: Array, covariance: Array) -> tuple[Array, Array]:
    """Return T and t with ||T x - t||^2 = (x - mean)^T covariance^-1 (x - mean)."""
    size = np.sqrt(np.diag(covariance))
    size = np.where(size > 0.0, size, SHARPEST * np.max(size, initial=1.0))
    w, V = np.linalg.eigh(covariance / np.outer(size, size))
    T = V.T / np.sqrt(np.maximum(w, SHARPEST**2))[:, None] / size
    return T, T @ mean
