"""Weighted least squares on factors: a few hundred rows instead of a few hundred thousand samples.

    minimise  sum_g ||W_g beta - tau_g||^2 / sigma_g^2          over the active base parameters

Then back to standard parameters: the same torques, and the missing directions from a stated rule.

    minimise  (phi - phi0)^T D^-1 (phi - phi0)   subject to   K phi = beta
    phi = phi0 + D K^T (K D K^T)^-1 (beta - K phi0)

"prior": phi0 is the description and D its natural spread; "minimum_norm": phi0 = 0 and D = 1. Neither asks whether a body can
exist; `dynident.identify.physical` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynident.errors import IdentificationError
from dynident.identify.base import BaseParameters
from dynident.mechanism import Mechanism, Parameters

if TYPE_CHECKING:
    from dynident.identify.regression import Regression

Array = NDArray[np.float64]

ROUND_OFF = 1e-12  # relative length below which a column is zero but for round-off
RECOVERIES = ("prior", "minimum_norm")
CONTAINED = 1e-6  # part of a column of unit length below which it is round-off


@dataclass(frozen=True, eq=False)
class Solution:
    """Result of one weighted solve: cov(beta_solved) = S^-1 (T^T T)^-1 S^-1 times the variance of unit weight."""

    beta: Array  # (b,) base parameters; zero where not active or not excited
    precision_root: Array  # (k, k) upper triangle T of the scaled, weighted stack of the solved columns
    scale: Array  # (k,) column lengths S
    solved: NDArray[np.int64]  # (k,) base parameters that were solved for
    #: (k, b) E with E beta_true = beta[solved]: what the data determine. Identity where a parameter stands alone; other entries
    #: where one that was not solved for acts on these data just like solved ones and is contained in their values.
    combinations: Array
    condition: float  # of the scaled stack of the solved columns

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


def recover_standard(base: BaseParameters, beta: Array, combinations: Array, recovery: str = "prior") -> Parameters:
    """Return standard parameters that give the estimated base parameters.

    Parameters
    ----------
    base : BaseParameters
        Base parameters.
    beta : ndarray, (b,)
        Their estimated values.
    combinations : ndarray, (k, b)
        E: what is known of them is E beta; the unit matrix when all were estimated.
    recovery : {"prior", "minimum_norm"}
        Rule for the directions that torques do not show.

    Returns
    -------
    result : Parameters
        Standard parameters with E K phi = E beta.
    """
    if recovery not in RECOVERIES:
        raise IdentificationError(f"recovery is '{recovery}'; it must be one of {', '.join(RECOVERIES)}")
    prior = base.mechanism.parameters
    K = combinations @ base.regrouping
    phi0 = prior.values if recovery == "prior" else np.zeros(len(prior))
    spread = natural_spread(base.mechanism) if recovery == "prior" else np.ones(len(prior))
    root = K * spread  # K D^(1/2)
    x, _, rank, singular = np.linalg.lstsq(root, combinations @ beta - K @ phi0, rcond=None)
    phi = phi0 + spread * x
    if rank:
        # Rounding leaves an error of up to p eps cond(K D^(1/2)) ||x|| in every x: a smaller parameter is zero, and its sign
        # (of a mass, say) would depend on the processor. A prior value that the data left alone is exact and stays.
        error = len(prior) * np.finfo(float).eps * singular[0] / singular[rank - 1] * np.linalg.norm(x)
        phi = np.where((np.abs(phi) <= spread * error) & (phi != phi0), 0.0, phi)
    return prior.replace(phi, provenance=f"identified, {recovery} recovery")


def natural_spread(mechanism: Mechanism) -> Array:
    """Return how much each prior value may plausibly be off: mass m, first moment m r, inertia m r^2, r the radius of gyration.

    A body without a prior gets the mean mass of those that have one, and a size from its robot's geometry when there is none.
    """
    phi = mechanism.tree.inertias.reshape(-1, 10)
    mass = phi[:, 0]
    gyration = 0.5 * (phi[:, 4] + phi[:, 7] + phi[:, 9])  # tr(Sigma) = tr(I)/2
    known = (mass > 0.0) & (gyration > 0.0)
    typical = float(np.mean(mass[known])) if known.any() else 1.0
    length = float(np.sqrt(np.mean(gyration[known] / mass[known]))) if known.any() else _size(mechanism)
    m = np.where(known, mass, typical)
    r = np.where(known, np.sqrt(np.where(known, gyration, 1.0) / m), length)
    spread = np.empty_like(phi)
    spread[:, 0], spread[:, 1:4], spread[:, 4:] = m, (m * r)[:, None], (m * r**2)[:, None]
    joint_terms = np.full(len(mechanism.parameters) - spread.size, typical * length**2)
    return np.concatenate([spread.ravel(), joint_terms])


def _size(mechanism: Mechanism) -> float:
    """Return how far the mass of a body is from its origin, as the distances between joints suggest [m]."""
    distances = np.linalg.norm(mechanism.tree.arrays.translation, axis=1)
    distances = distances[distances > 0.0]
    return 0.5 * float(np.mean(distances)) if distances.size else 0.1
