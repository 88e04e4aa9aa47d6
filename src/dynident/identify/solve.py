"""Weighted least squares on factors: a few hundred rows instead of a few hundred thousand samples.

minimise  sum_g ||W_g beta - tau_g||^2 / sigma_g^2          over the active base parameters
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.errors import IdentificationError
from dynident.identify.regression import Regression

Array = NDArray[np.float64]

ROUND_OFF = 1e-12  # relative length below which a column is zero but for round-off
CONTAINED = 1e-6  # part of a column of unit length below which it is round-off


@dataclass(frozen=True, eq=False)
class Solution:
    """Result of one weighted solve.

    Parameters
    ----------
    beta : ndarray, (b,)
        Base parameters; zero where not active or not excited.
    precision_root : ndarray, (k, k)
        Upper triangle T of the scaled, weighted stack of the solved columns.
    scale : ndarray, (k,)
        Column lengths, so that cov(beta_solved) = S^-1 (T^T T)^-1 S^-1 times the variance of unit weight.
    solved : ndarray of int, (k,)
        Base parameters that were solved for.
    combinations : ndarray, (k, b)
        E with E beta_true = beta[solved]: what the data determine. Identity where a parameter stands alone; other entries
        where one that was not solved for acts on these data just like solved ones and is contained in their values.
    condition : float
        Condition number of the scaled stack of the solved columns.
    """

    beta: Array
    precision_root: Array
    scale: Array
    solved: NDArray[np.int64]
    combinations: Array
    condition: float

    def covariance(self, variance: float = 1.0) -> Array:
        """Return the covariance of all base parameters; zero for parameters that were not solved for."""
        inverse = np.linalg.solve(self.precision_root, np.eye(self.solved.size)) / self.scale[:, None]
        result = np.zeros((self.beta.size, self.beta.size))
        result[np.ix_(self.solved, self.solved)] = variance * inverse @ inverse.T
        return result


def solve(regression: Regression, sigma: Array, active: NDArray[np.bool_], tolerance: float) -> Solution:
    """Solve for the active base parameters with one standard deviation per row group.

    Columns whose part orthogonal to better visible ones is below `tolerance` of their length are not excited by the data
    and are left at zero; they are missing from ``solved``.
    """
    from scipy.linalg import qr, solve_triangular  # noqa: PLC0415 - scipy.linalg costs import time

    b = regression.base.rank
    blocks, targets = [], []
    for group, s in zip(regression.groups, sigma, strict=True):
        block = np.zeros((group.R.shape[0], b))
        block[:, group.columns] = group.R[:, :-1] / s
        blocks.append(block)
        targets.append(group.R[:, -1] / s)
    W, y = np.vstack(blocks), np.concatenate(targets)
    length = np.linalg.norm(W, axis=0)
    candidates = np.flatnonzero(active & (length > ROUND_OFF * np.max(length)))
    if not candidates.size:
        raise IdentificationError("no parameter is excited by these data: nothing moves, or all efforts are unusable")
    scaled = W[:, candidates] / length[candidates]
    Q, R, order = qr(scaled, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(R))
    rank = int(np.count_nonzero(diagonal > tolerance * diagonal[0]))
    kept = order[:rank]
    solved = candidates[kept]
    T = R[:rank, :rank]
    combinations = np.zeros((rank, b))
    combinations[np.arange(rank), solved] = 1.0
    hidden = candidates[order[rank:]]
    contained = solve_triangular(T, R[:rank, rank:])
    contained[np.abs(contained) < CONTAINED] = 0.0
    combinations[:, hidden] = contained * length[hidden] / length[solved][:, None]
    x = solve_triangular(T, Q[:, :rank].T @ y)
    beta = np.zeros(b)
    beta[solved] = x / length[solved]
    singular = np.linalg.svd(T, compute_uv=False)
    return Solution(beta, T, length[solved], solved, combinations, float(singular[0] / singular[-1]))
