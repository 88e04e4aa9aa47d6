"""Maximum likelihood with noise of the positions [Olsen2001] [Fuller1987].

    beta = argmin sum_k e_k^T V_k(beta)^-1 e_k,     e_k = y_k - W_k beta,     V_k = sum_j J_kj C_j J_kj^T + diag(sigma^2)
    J_kj = d (W beta) / d (q_j, v_j, a_j) at row k,     C_j (3, 3) = covariance of the filtered noise of joint j

What noise of q does to a row depends on where the robot is and on beta: V is computed row by row, joints together, and moves
with beta while the minimum is sought, which is what takes the bias away. True positions are unknowns without a prior, so no
log det V belongs to the cost [Fuller1987, sec. 3.2]. `TLS` is the same with one C for all rows of a joint.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.identify.estimators.least_squares import LeastSquares
from dynident.identify.estimators.statistics import EDGE, effort_share, embedded, influence_covariance
from dynident.identify.estimators.total import TLS
from dynident.identify.regression.factor import Solution
from dynident.identify.regression.logs import differentiated, robot_motion
from dynident.identify.regression.regression import Regression, Stretch, rows_along, sampled
from dynident.mechanics.functions import Motion

SMALL = 1e-5


@dataclass(kw_only=True, eq=False)
class ML(LeastSquares):
    """Maximum likelihood with noise of efforts and positions, each row by its own covariance.

        beta = argmin sum_k e_k^T V_k(beta)^-1 e_k,     V_k from the noise of q, v, a and of the efforts

    Parameters
    ----------
    iterations : int
        Largest number of Gauss-Newton steps.
    convergence : float
        Change of the parameters, in standard deviations, at which to stop.
    recovery, tolerance
        As of `OLS`.
    """

    iterations: int = 30
    convergence: float = 0.02
    recovery: str = "prior"
    tolerance: float = 1e-8

    def _estimate(self, regression: Regression, active: NDArray[np.bool_]) -> tuple[Solution, Array]:
        evidence = sampled(regression, "ML")
        self._check_least(iterations=1)
        plain, sigma = TLS(tolerance=self.tolerance)._estimate(regression, active)
        indep = np.sqrt([group.independence for group in evidence.groups])
        effort = (sigma * indep) ** 2 * effort_share(evidence, plain.beta)
        slopes = [_slopes(evidence, part) for part in evidence.stretches]
        beta, solved = plain.beta.copy(), plain.solved
        for i in range(self.iterations):
            hessian, gradient = np.zeros(2 * (solved.size,)), np.zeros(solved.size)
            self.influence_ = []
            for part, (D, variances) in zip(evidence.stretches, slopes, strict=True):
                curvature, slope, own = _derivatives(evidence, part, D, variances, effort, beta, solved)
                hessian += curvature
                gradient += slope
                self.influence_.append(own)
            size = np.sqrt(np.diag(hessian))
            inverse = np.linalg.inv(hessian / np.outer(size, size)) / np.outer(size, size)
            step = inverse @ gradient
            beta[solved] += step
            self.n_iter_ = i + 1
            if np.all(np.abs(step) <= self.convergence * np.sqrt(np.diag(inverse))):
                break
        self.influence_ = [[U @ inverse for U in part] for part in self.influence_]
        found = Solution(beta, plain.precision_root, plain.scale, solved, plain.combinations, plain.condition)
        return found, sigma

    def _covariance(self, regression: Regression, solution: Solution, sigma: Array) -> Array:
        evidence = sampled(regression, "ML")
        return embedded(influence_covariance(evidence, solution.beta, self.influence_), solution)


def _slopes(evidence: Regression, part: Stretch) -> tuple[list[list[Array]], Array]:
    """Return dW/d(q_j, v_j, a_j) of every group as 3 n arrays (M, k_g), and the covariances (n, 3, 3) of what noise is left."""
    n = part.measured.q.shape[1]
    variances = np.zeros((n, 3, 3))
    if part.cutoff <= 0.0 or not np.any(part.noise > 0.0):
        return [], variances
    extra = int(EDGE * part.rate / part.cutoff)
    white = np.random.default_rng(0).normal(size=(len(part.measured) + 2 * extra, 1))
    noise = [x[extra:-extra, 0] for x in differentiated(part.rate, white, part.cutoff, part.options)]
    rows = np.column_stack([part.decimator.apply(x) for x in noise])  # one draw is long enough: noise is stationary
    variances = np.einsum("j,ab->jab", part.noise**2, rows.T @ rows / rows.shape[0])
    found: list[list[Array]] = []
    m = part.measured
    # Slopes change slowly, so that the low-pass of the rows leaves them as they are; the noise went through it above.
    for which in range(3):
        for j in range(n):
            step = SMALL * max(float(np.ptp((m.q, m.v, m.a)[which][:, j])), 1e-3)
            sides = []
            for sign in (1.0, -1.0):
                state = [m.q.copy(), m.v.copy(), m.a.copy()]
                state[which][:, j] += sign * step
                if which == 1:  # the jump of dry friction is no slope
                    state[1][:, j] = np.where(np.sign(state[1][:, j]) == np.sign(m.v[:, j]), state[1][:, j], m.v[:, j])
                sides.append(rows_along(evidence, part, robot_motion(evidence.mechanism, Motion(m.t, *state))))
            found.append([(up - down) / (2.0 * step) for up, down in zip(*sides, strict=True)])
    return found, variances


def _derivatives(
    evidence: Regression,
    part: Stretch,
    D: list[list[Array]],
    variances: Array,
    effort: Array,
    beta: Array,
    solved: NDArray[np.int64],
) -> tuple[Array, Array, list[Array]]:
    """Return W^T V^-1 W, half the descent of the cost, and the influence V^-1 W of the rows of every group."""
    M, G, n = part.t.size, len(evidence.groups), variances.shape[0]
    W, y = np.zeros((M, G, beta.size)), np.column_stack(part.y)
    for g, group in enumerate(evidence.groups):
        W[:, g, group.columns] = part.W[g]
    W = W[:, :, solved]
    e = y - W @ beta[solved]
    V = np.zeros((M, G, G))
    V[:, range(G), range(G)] = effort
    J, C = np.zeros((3 * n, M, G)), np.zeros((3 * n, 3 * n))
    for s, slopes in enumerate(D):
        for g, group in enumerate(evidence.groups):
            J[s, :, g] = slopes[g] @ beta[group.columns]
    for j in range(n):
        own = [j, n + j, 2 * n + j]
        C[np.ix_(own, own)] = variances[j]
    V += np.einsum("smg,st,tmh->mgh", J, C, J, optimize=True)
    r = np.linalg.solve(V, e[:, :, None])[:, :, 0]
    # -d(e^T V^-1 e)/2 = W^T r + r^T (dJ C J^T) r: the second part is what takes the bias away.
    descent = np.zeros(beta.size)
    moved = np.einsum("st,tmh,mh->sm", C, J, r, optimize=True)
    for s, slopes in enumerate(D):
        for g, group in enumerate(evidence.groups):
            descent[group.columns] += (r[:, g] * moved[s]) @ slopes[g]
    influence = np.asarray(np.linalg.solve(V, W), dtype=np.float64)
    curvature = np.einsum("mga,mgb->ab", W, influence, optimize=True)
    return (
        curvature,
        np.einsum("mga,mg->a", W, r) + descent[solved],
        [influence[:, g] for g in range(G)],
    )
