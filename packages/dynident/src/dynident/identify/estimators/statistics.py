"""Statistics that several estimators share: noise filters, covariance under coloured noise, noise of the rows.

e_g = w_g / a_g(z),   cov(w_g, w_h) = Omega_gh        noise of joint g is autoregressive, joints are noisy together
cov(sum_g U_g^T e_g) = sum_gh Omega_gh V_g^T V_h,     V_g = U_g / a_g(z^-1), filtered backwards in time
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.identify.regression.factor import Solution
from dynident.identify.regression.logs import differentiated, robot_motion
from dynident.identify.regression.regression import Regression, Stretch, rows_along
from dynident.mechanics.functions import Motion
from dynident.signals.dependence import autocovariance, autoregression

ORDER = 12  # largest order of a noise filter
ENOUGH = 40  # rows per coefficient of a noise filter: the fit itself leaves residuals of few rows correlated
RING = 200  # rows before the first one whose noise passes the filter


def noise_filters(evidence: Regression, beta: Array, order: int | None = None) -> list[Array]:
    """Return the coefficients a of the noise filter of every group, from its residuals."""
    residuals, filters = evidence.residuals(beta), []
    lags = min(ORDER if order is None else order, min(s.t.size for s in evidence.stretches) // 4)
    for g, group in enumerate(evidence.groups):
        parts = [(part[g], s.used[g]) for part, s in zip(residuals, evidence.stretches, strict=True)]
        exact = group.residual(beta) <= 1e-24 * group.effort_square  # rounding is no noise to be filtered
        most = lags if order is not None else min(lags, group.count // ENOUGH)
        covariance = autocovariance(parts, 0 if exact else most)
        filters.append(autoregression(covariance, group.count, None if order is None else covariance.size - 1)[0])
    return filters


def influence_covariance(evidence: Regression, beta: Array, influence: Sequence[Sequence[Array]]) -> Array:
    """Return the covariance (k, k) of sum_g U_g^T e_g from the influence U_g (M, k) of every row, under coloured noise."""
    filters = noise_filters(evidence, beta)
    k = influence[0][0].shape[1]
    innovations: list[list[Array]] = []
    valid: list[list[NDArray[np.bool_]]] = []
    spread: list[list[Array]] = []
    for part, residuals, U in zip(evidence.stretches, evidence.residuals(beta), influence, strict=True):
        innovations.append([scipy.signal.lfilter(np.append(1.0, a), [1.0], e) for a, e in zip(filters, residuals, strict=True)])
        valid.append([_whole(used, a.size) for a, used in zip(filters, part.used, strict=True)])
        back = []
        for a, u in zip(filters, U, strict=True):
            padded = np.vstack([np.zeros((RING if a.size else 0, k)), u])
            back.append(scipy.signal.lfilter([1.0], np.append(1.0, a), padded[::-1], axis=0)[::-1] if a.size else padded)
        spread.append(back)
    white = _innovation_covariance(evidence, filters, innovations, valid, k)
    result = np.zeros((k, k))
    for back in spread:
        for g in range(len(filters)):
            for h in range(len(filters)):
                n = min(back[g].shape[0], back[h].shape[0])
                result += white[g, h] * back[g][-n:].T @ back[h][-n:]
    return 0.5 * (result + result.T)


def _whole(used: NDArray[np.bool_], order: int) -> NDArray[np.bool_]:
    """Return the rows whose filter covers used rows only."""
    whole = used.copy()
    whole[:order] = False
    for lag in range(1, order + 1):
        whole[lag:] &= used[:-lag]
    return whole


def _innovation_covariance(
    evidence: Regression,
    filters: Sequence[Array],
    innovations: Sequence[Sequence[Array]],
    valid: Sequence[Sequence[NDArray[np.bool_]]],
    parameters: int,
) -> Array:
    """Return Omega: variances from the rows of each group, correlations from rows that two groups share, if enough."""
    G = len(filters)
    variances, correlation = np.zeros(G), np.eye(G)
    for g, group in enumerate(evidence.groups):
        values = np.concatenate([w[g][ok[g]] for w, ok in zip(innovations, valid, strict=True)])
        independent = values.size * (1.0 if filters[g].size else group.independence)
        free = independent - parameters * group.count / evidence.rows
        variances[g] = float(values @ values) / max(free, 1.0)
        for h in range(g):
            pairs = [(w[g][ok[g] & ok[h]], w[h][ok[g] & ok[h]]) for w, ok in zip(innovations, valid, strict=True)]
            one, other = (np.concatenate(x) for x in zip(*pairs, strict=True))
            size = float(np.linalg.norm(one) * np.linalg.norm(other))
            if one.size >= ENOUGH and size > 0.0:
                correlation[g, h] = correlation[h, g] = float(one @ other) / size
    values, vectors = np.linalg.eigh(correlation)  # estimated from different rows, it may be indefinite
    correlation = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.asarray(correlation * np.sqrt(np.outer(variances, variances)))


def embedded(covariance: Array, solution: Solution) -> Array:
    """Return the covariance (b, b) of all base parameters from that of the solved ones."""
    result = np.zeros(2 * (solution.beta.size,))
    result[np.ix_(solution.solved, solution.solved)] = covariance
    return result


def placed(evidence: Regression, rows: Sequence[Array], sigma: Array) -> list[Array]:
    """Return rows of every group on all base parameters, (M, b), divided by the deviation of the group."""
    found = [np.zeros((own.shape[0], evidence.base.rank)) for own in rows]
    for full, group, own, s in zip(found, evidence.groups, rows, sigma, strict=True):
        full[:, group.columns] = own / s
    return found


def least_squares_influence(
    evidence: Regression, solution: Solution, sigma: Array, inverse: Array | None = None
) -> list[list[Array]]:
    """Return the influence of every row on the solved parameters of weighted least squares, (W^T W)^-1 w / sigma^2."""
    P = solution.covariance()[np.ix_(solution.solved, solution.solved)] if inverse is None else inverse
    return [[own[:, solution.solved] @ P for own in placed(evidence, part.W, sigma**2)] for part in evidence.stretches]


def coloured_covariance(evidence: Regression, solution: Solution, sigma: Array, inverse: Array | None = None) -> Array:
    """Return the covariance (b, b) of weighted least squares under coloured noise."""
    influence = least_squares_influence(evidence, solution, sigma, inverse)
    return embedded(influence_covariance(evidence, solution.beta, influence), solution)


DRAWS = 3
EDGE = 3.0  # periods of the cut-off before the first sample: the transient of the filter has decayed


def noisy_motion(stretch: Stretch, rng: np.random.Generator) -> Motion:
    """Return the measured motion of a stretch with one more draw of the noise of its positions."""
    rate, extra = stretch.rate, int(EDGE * stretch.rate / stretch.cutoff)
    white = rng.normal(size=(len(stretch.measured) + 2 * extra, stretch.noise.size)) * stretch.noise
    dq, dv, da = (x[extra : x.shape[0] - extra] for x in differentiated(rate, white, stretch.cutoff, stretch.options))
    m = stretch.measured
    still = ~np.any(m.v, axis=0)  # a joint that is held still stays so
    dq[:, still], dv[:, still], da[:, still] = 0.0, 0.0, 0.0
    return Motion(m.t, m.q + dq, m.v + dv, m.a + da)


def row_noise(regression: Regression) -> list[Array]:
    """Return C_g (k_g, k_g), the covariance of the noise in the rows of every group; zero if the noise of q is unknown."""
    rng = np.random.default_rng(0)
    totals = [np.zeros(2 * (group.columns.size,)) for group in regression.groups]
    for part in regression.stretches:
        if part.cutoff <= 0.0 or not np.any(part.noise > 0.0):
            continue
        clean = rows_along(regression, part, robot_motion(regression.mechanism, part.measured))
        for _ in range(DRAWS):
            moved = rows_along(regression, part, robot_motion(regression.mechanism, noisy_motion(part, rng)))
            for g, (W, D) in enumerate(zip(clean, moved, strict=True)):
                totals[g] += (D - W).T @ (D - W) / DRAWS
    return [total / max(group.count, 1) for total, group in zip(totals, regression.groups, strict=True)]


def noise_bias(regression: Regression, solution: Solution, sigma: Array, noise: list[Array]) -> tuple[Array, Array]:
    """Return the bias (b,) that noise of the rows gives to weighted least squares, and its share of each group's variance."""
    b = solution.beta.size
    S, NC = np.zeros((b, b)), np.zeros((b, b))
    share = []
    for group, s, C in zip(regression.groups, sigma, noise, strict=True):
        own = np.ix_(group.columns, group.columns)
        S[own] += group.R[:, :-1].T @ group.R[:, :-1] / s**2
        NC[own] += group.count * C / s**2
        beta = solution.beta[group.columns]
        share.append(group.count * float(beta @ C @ beta) / max(group.residual(solution.beta), 1e-300))
    bias = np.zeros(b)
    kept = solution.solved
    size = np.sqrt(np.diag(S)[kept])
    scaled = (S - NC)[np.ix_(kept, kept)] / np.outer(size, size)
    force = (NC @ solution.beta)[kept] / size
    bias[kept] = -np.linalg.lstsq(scaled, force, rcond=None)[0] / size
    return bias, np.array(share)
