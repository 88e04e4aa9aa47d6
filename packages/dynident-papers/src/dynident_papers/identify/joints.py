"""Least squares joint by joint: each from its own torque alone, or the last joint first [Pagani2022, eqs. 60-61].

    Y_j pi_j = tau_j        parameters of later joints are known:  A beta_new = tau_j - B beta_known

Errors of one joint's torque do not affect other joints' parameters, but information of earlier joints is not used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident.identify import Regression
from dynident.identify.estimators.least_squares import LeastSquares
from dynident.identify.regression.factor import CONTAINED, ROUND_OFF, Solution, group_sigma


def _independent(A: Array, tolerance: float) -> tuple[NDArray[np.int64], float]:
    """Return the columns identifiable individually, not in combination with others, and their condition number."""
    from scipy.linalg import qr, solve_triangular  # noqa: PLC0415 - scipy.linalg costs import time

    length = np.linalg.norm(A, axis=0)
    some = np.flatnonzero(length > ROUND_OFF * np.max(length, initial=0.0))
    if not some.size:
        return some, 1.0
    _, R, order = qr(A[:, some] / length[some], mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(R))
    rank = int(np.count_nonzero(diagonal > tolerance * diagonal[0]))
    mixed = np.abs(solve_triangular(R[:rank, :rank], R[:rank, rank:])) > CONTAINED
    alone = order[:rank][~mixed.any(axis=1)] if rank < order.size else order[:rank]
    chosen = np.sort(some[alone])
    if not chosen.size:
        return chosen, 1.0
    s = np.linalg.svd(A[:, chosen] / length[chosen], compute_uv=False)
    return chosen, float(s[0] / s[-1])


@dataclass(kw_only=True, eq=False)
class PerJoint(LeastSquares):
    """Least squares joint by joint, the last one first: parameters estimated at a joint are known for earlier joints.

    Parameters
    ----------
    recovery : {"prior", "minimum_norm", "physical"}
        How standard parameters are recovered, see `OLS`.
    tolerance : float
        Relative size below which a column counts as not excited by the data.
    """

    def _estimate(self, regression: Regression, active: NDArray[np.bool_]) -> tuple[Solution, Array]:
        b = regression.base.rank
        starts = np.concatenate([[0], np.cumsum([group.R.shape[0] for group in regression.groups])])
        y = np.concatenate([group.R[:, -1] for group in regression.groups])
        gain, known, condition = np.zeros((b, y.size)), np.zeros(b, dtype=bool), 1.0
        for i in reversed(range(len(regression.groups))):
            group = regression.groups[i]
            block = np.zeros((group.R.shape[0], b))
            block[:, group.columns] = group.R[:, :-1]
            unknown = np.flatnonzero(active & ~known & np.any(block != 0.0, axis=0))
            if not unknown.size:
                continue
            alone, worst = _independent(block[:, unknown], self.tolerance)
            new = unknown[alone]
            if not new.size:
                continue
            own = np.zeros((block.shape[0], y.size))
            own[:, starts[i] : starts[i + 1]] = np.eye(block.shape[0])
            rest = np.setdiff1d(unknown, new)  # not identifiable here: fitted together with `new`, but not kept
            A = block[:, np.concatenate([new, rest])]
            gain[new] = np.linalg.pinv(A, rcond=1e-12)[: new.size] @ (own - block[:, known] @ gain[known])
            known[new] = True
            condition = max(condition, worst)
        if not known.any():
            raise IdentificationError("no parameter is excited by these data: nothing moves, or all efforts are unusable")
        self.gain_ = gain  # (b, rows): parameters from the targets of the triangles
        solved = np.flatnonzero(known)
        combinations = np.eye(b)[solved]
        solution = Solution(gain @ y, np.eye(solved.size), np.ones(solved.size), solved, combinations, condition)
        return solution, group_sigma(regression, solution)

    def _covariance(self, regression: Regression, solution: Solution, sigma: Array) -> Array:
        rows = np.concatenate([np.full(group.R.shape[0], s) for group, s in zip(regression.groups, sigma, strict=True)])
        weighted = self.gain_ * rows
        return np.asarray(weighted @ weighted.T)


def joint_estimates(regression: Regression, tolerance: float = 1e-8) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the estimates of base parameters from the torque of each joint alone."""
    if not isinstance(regression, Regression):
        raise IdentificationError(f"joint_estimates got a {type(regression).__name__}; give a dynident.Regression")
    found = {}
    for group in regression.groups:
        W, y = group.R[:, :-1], group.R[:, -1]
        alone, _ = _independent(W, tolerance)
        inverse = np.linalg.pinv(W, rcond=1e-12)[alone]
        beta = np.linalg.pinv(W, rcond=1e-12) @ y
        free = max(group.count * group.independence - alone.size, 1.0)
        sigma = float(np.linalg.norm(y - W @ beta)) / np.sqrt(free)
        names = [regression.base.names[c] for c in group.columns[alone]]
        std = sigma * np.linalg.norm(inverse, axis=1)
        found[group.name] = {n: (float(v), float(d)) for n, v, d in zip(names, beta[alone], std, strict=True)}
    return found
