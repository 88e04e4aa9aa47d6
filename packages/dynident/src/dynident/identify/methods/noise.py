"""What noise of the measured positions does to the rows, and to least squares.

    q + n  ->  filter, derivatives  ->  W + D,       C_g = E[D_g^T D_g] per row of group g
    E[beta_LS] - beta = -(sum_g W_g^T W_g / s_g^2)^-1 (sum_g N_g C_g / s_g^2) beta      to first order

Noise in W pulls least squares towards zero. C comes from draws of white noise that pass through the filter of this very log
and the equations of this very robot.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynident.friction.terms import JointTerm, term_of
from dynident.identify.factor import Solution
from dynident.identify.methods.sampled import SampledRegression, Stretch, differentiated, rows_along
from dynident.identify.regression import robot_motion
from dynident.mechanics.motion import Motion

Array = NDArray[np.float64]

DRAWS = 3
LEAST = 1e-2  # part of the residual variance that is noise of efforts at least
EDGE = 3.0  # periods of the cut-off before the first sample, so that the filter has forgotten its beginning


def noisy_motion(stretch: Stretch, rng: np.random.Generator) -> Motion:
    """Return the measured motion of a stretch with one more draw of the noise of its positions."""
    rate, extra = stretch.rate, int(EDGE * stretch.rate / stretch.cutoff)
    white = rng.normal(size=(len(stretch.measured) + 2 * extra, stretch.noise.size)) * stretch.noise
    dq, dv, da = (x[extra : x.shape[0] - extra] for x in differentiated(rate, white, stretch.cutoff, stretch.options))
    m = stretch.measured
    still = ~np.any(m.v, axis=0)  # a joint that is held still stays so
    dq[:, still], dv[:, still], da[:, still] = 0.0, 0.0, 0.0
    return Motion(m.t, m.q + dq, m.v + dv, m.a + da)


def row_noise(regression: SampledRegression, draws: int = DRAWS) -> list[Array]:
    """Return C_g (k_g, k_g), the covariance of the noise in the rows of every group; zero where nothing is known of q's."""
    rng = np.random.default_rng(0)
    totals = [np.zeros(2 * (group.columns.size,)) for group in regression.groups]
    for part in regression.stretches:
        if part.cutoff <= 0.0 or not np.any(part.noise > 0.0):
            continue
        clean = rows_along(regression, part, robot_motion(regression.mechanism, part.measured))
        for _ in range(draws):
            moved = rows_along(regression, part, robot_motion(regression.mechanism, noisy_motion(part, rng)))
            for g, (W, D) in enumerate(zip(clean, moved, strict=True)):
                totals[g] += (D - W).T @ (D - W) / draws
    return [total / max(group.count, 1) for total, group in zip(totals, regression.groups, strict=True)]


def noise_bias(regression: SampledRegression, solution: Solution, sigma: Array, noise: list[Array]) -> tuple[Array, Array]:
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


def effort_share(regression: SampledRegression, beta: Array) -> Array:
    """Return the part of each group's residual variance, (groups,), that noise of the positions leaves to that of efforts.

    Where a joint turns round, noise changes the sign of dry friction. That is no small error of a row, and stays with efforts.
    """
    smooth, share = np.where(jumping(regression), 0.0, beta), []
    for group, C in zip(regression.groups, row_noise(regression), strict=True):
        own = smooth[group.columns]
        share.append(group.count * float(own @ C @ own) / max(group.residual(beta), 1e-300))
    return np.clip(1.0 - np.array(share), LEAST, 1.0)


def jumping(regression: SampledRegression) -> NDArray[np.bool_]:
    """Return which base parameters (b,) are factors of a friction that jumps at standstill."""
    robot = regression.mechanism
    laws = {own.name for own in robot.own_columns if own.coordinate}
    names = [robot.parameters.names[c] for c in regression.base.columns]
    return np.array([name in laws or ((t := term_of(name)) is not None and _jumps(t)) for name in names], dtype=bool)


def _jumps(term: JointTerm) -> bool:
    """Return whether a joint term has another value on the other side of standstill."""
    still, sides = np.zeros(2), np.array([-1e-9, 1e-9])
    return bool(np.ptp(term.column(still, sides, still)) > 1e-6)
