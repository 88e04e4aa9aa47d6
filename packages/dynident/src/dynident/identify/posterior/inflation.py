"""What contiguous stretches of time tell beside their sum: how dependent residuals are, and how well held-out stretches fit.

With g_b = W_b^T e_b the score of stretch b of a joint and G = sum_b W_b^T W_b, residuals that are independent have

    E sum_b g_b^T G^-1 g_b = sigma^2 (k - sum_b tr (G^-1 G_b)^2);

the ratio of the two sides, the inflation c, is by how much information about parameters is smaller than a count of rows says.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.identify.regression.factor import RowGroup
from dynident.identify.regression.stretches import FEWEST_BLOCKS, FEWEST_ROWS

ENOUGH_ROWS = FEWEST_BLOCKS * FEWEST_ROWS  # from which on stretches tell how dependent residuals are
RANK = 1e-9  # eigenvalues of the scaled products below this part of the largest are round-off
# Quantile of Student's distribution over that of Gauss at two deviations, by powers of 1/nu (Cornish and Fisher's expansion).
STUDENT = (0.9218, 1.4297, 1.53125, 1.25, 1.0)


def inflation(groups: Sequence[RowGroup], beta: Array, sigma: Array, correction: float = 1.0, by_phase: bool = False) -> Array:
    """Return c >= 1 of every joint: all alike, since the joints are weighed against each other by their residuals.

    `by_phase` takes stretches at the same phase of a periodic motion together: their errors of the model are the same ones.

    The stretches of a very short log tell of its estimates' scatter (see `jackknife`) but are too short to tell of dependence.
    """
    found, expected = 0.0, 0.0
    for group, deviation in zip(groups, sigma, strict=True):
        if len(group.counts) >= FEWEST_BLOCKS and group.count >= ENOUGH_ROWS and group.columns.size:
            own, wanted = _scores(_by_phase(group) if by_phase else group.products, beta[group.columns])
            found, expected = found + own / deviation**2, expected + wanted
    return np.full(len(sigma), max(1.0, correction * found / expected) if expected >= 1.0 else 1.0)


def _by_phase(group: RowGroup) -> Array:
    """Return the cross products of every phase, the sums over its stretches."""
    phase = np.unique(group.phases, return_inverse=True)[1]
    result = np.zeros((int(phase.max()) + 1, *group.products.shape[1:]))
    np.add.at(result, phase, group.products)
    return result


def _scores(products: Array, beta: Array) -> tuple[float, float]:
    """Return sum_b g_b^T G^-1 g_b of one joint, and what it would be for independent residuals of variance 1."""
    G = products[:, :-1, :-1]
    score = G @ beta - products[:, :-1, -1]
    size = np.sqrt(np.diagonal(G.sum(axis=0)))
    size = np.where(size > 0.0, size, 1.0)
    values, vectors = np.linalg.eigh(G.sum(axis=0) / np.outer(size, size))
    kept = values > RANK * values[-1]
    root = vectors[:, kept] / np.sqrt(values[kept]) / size[:, None]  # root root^T = G^-1
    z = score @ root
    shares = root.T @ G @ root
    return float(np.sum(z**2)), float(kept.sum() - np.sum(shares * shares.transpose(0, 2, 1)))


def stretch_products(groups: Sequence[RowGroup], b: int, weights: Array) -> Array:
    """Return sum_g weight_g [W, tau]^T [W, tau] of every stretch on all b parameters, (K, b + 1, b + 1)."""
    K = max(len(group.counts) for group in groups)
    total = np.zeros((K, b + 1, b + 1))
    for group, weight in zip(groups, weights, strict=True):
        at = np.append(group.columns, b)
        total[np.ix_(np.arange(len(group.counts)), at, at)] += weight * group.products
    return total


def squares(group: RowGroup, betas: Array) -> Array:
    """Return ||W_b beta_b - tau_b||^2 of every stretch of a joint under its own parameters, (K, b) -> (K,)."""
    full = np.concatenate([betas[:, group.columns], np.full((len(betas), 1), -1.0)], axis=1)
    return np.asarray(np.clip(np.einsum("ki,kij,kj->k", full, group.products, full), 0.0, None))


def jackknife(left_out: Array) -> Array:
    """Return the variances (K - 1)/K sum_b (beta_b - mean)^2 (t/2)^2 of estimates without each stretch, (K, b) -> (b,).

    t, the quantile of Student's distribution, accounts for a variance that is known to K - 1 degrees of freedom only.
    """
    K = len(left_out)
    student = float(np.polyval(STUDENT, 1.0 / max(K - 1, 1)))
    return np.asarray((K - 1) / K * np.sum((left_out - left_out.mean(axis=0)) ** 2, axis=0) * student**2)


def at_least_jackknife(covariance: Array, left_out: Array) -> Array:
    """Return the covariance with no deviation below that of the jackknife.

    One number c for all parameters does not tell that some rest on a few stretches only, as where motors of a robot with loops
    pass a singularity, or where a log is a single move; the estimates without each stretch do.
    """
    if len(left_out) < FEWEST_BLOCKS:
        return covariance
    spread = jackknife(left_out)
    own = np.diag(covariance)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.sqrt(np.where(own > 0.0, np.maximum(1.0, spread / own), 1.0))
    return np.asarray(covariance * np.outer(scale, scale))


def least_squares_left_out(groups: Sequence[RowGroup], b: int, sigma: Array, solved: NDArray[np.int64]) -> Array:
    """Return the b parameters of weighted least squares without each stretch of time, (K, b)."""
    parts = stretch_products(groups, b, 1.0 / sigma**2)
    whole = parts.sum(axis=0)
    at = np.ix_(solved, solved)
    result = np.zeros((len(parts), b))
    for k, part in enumerate(parts):
        rest = whole - part
        size = np.sqrt(np.diagonal(rest)[solved])
        size = np.where(size > 0.0, size, 1.0)
        x = np.linalg.lstsq(rest[at] / np.outer(size, size), rest[solved, b] / size, rcond=None)[0]
        result[k, solved] = x / size
    return result
