"""Most probable physically consistent standard parameters.

    minimise   ||T x - t||^2      subject to   P_i(phi) >= margin,   friction and rotor terms >= 0,     phi = phi0 + d x

T and t are the combined triangle of data and prior (`posterior.py`), P_i is the pseudo-inertia of a body, with
Sigma = tr(I)/2 1 - I. The programme is solved by Newton's method on ||T x - t||^2 / 2 - mu log det P_i - mu log x_k, with mu
decreasing to zero: bodies have ten parameters each, so a step costs no more than a least-squares solution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident.identify.base import BaseParameters, joint_terms
from dynident.identify.regression.factor import triangle
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import Parameters, natural_spread, pseudo_inertia

MARGIN = 1e-5  # smallest eigenvalue of the pseudo-inertia, in units of the body's own mass and radius of gyration
LAST = 1e-6  # weight of the barrier at the end; the cost is then within this times the number of inequalities of its minimum
FALL = 0.1
STEPS = 40
SMALL = 1e-3  # start of a nonnegative term, in its unit
AT_LIMIT = 1e-5  # distance that the barrier keeps from zero, in the unit of a term; there its cost is LAST
ROUND_OFF = 1e-12  # of the unit of a parameter


@dataclass(frozen=True, eq=False)
class Cone:
    """The inequalities of a robot, in the units x of its parameters."""

    basis: Array  # P_i = offset_i + sum_k x_ik basis_ik, in units of the body's mass and size
    offset: Array  # P_i of x = 0
    columns: NDArray[np.int64]  # Indices of the bodies' parameters in x
    signed: NDArray[np.int64]  # Terms that must not be negative
    lowest: Array  # ... which is x >= lowest

    def slack(self, x: Array) -> tuple[Array, Array]:
        """Return P_i - margin of every body and x - lowest."""
        P = self.offset + np.einsum("ik,ikab->iab", x[self.columns], self.basis)
        return P - MARGIN * np.eye(4), x[self.signed] - self.lowest

    def inside(self, x: Array) -> bool:
        """Return whether every inequality holds, up to a hundredth of the margin."""
        P, y = self.slack(x)
        return bool(np.all(y >= 0.0) and (not len(P) or np.min(np.linalg.eigvalsh(P)) > -0.01 * MARGIN))


def cone_of(robot: Mechanism, mean: Array, unit: Array, size: Array, free: NDArray[np.bool_]) -> Cone:
    """Return the inequalities of a robot; `size` (p,) is the magnitude of its parameters; held bodies are excluded."""
    units = np.stack([pseudo_inertia(one) for one in np.eye(10)])
    bases, offsets, columns = [], [], []
    for i in range(len(robot.tree.bodies)):
        own = np.arange(10 * i, 10 * i + 10)
        if not np.all(free[own]):
            continue
        m, mr = size[own[0]], size[own[1]]
        scaling = np.array([m / mr, m / mr, m / mr, 1.0]) / np.sqrt(m)
        scaled = units * np.outer(scaling, scaling)  # one margin fits both a gripper finger and a base axis
        bases.append(scaled * unit[own][:, None, None])
        offsets.append(np.einsum("k,kab->ab", mean[own], scaled))
        columns.append(own)
    passive = [k for k, term in joint_terms(robot).items() if term is not None and term.passive]
    opposed = _opposed(robot)
    signed = np.array([k for k in passive if free[k] and robot.parameters.names[k] not in opposed], dtype=np.int64)
    return Cone(
        np.array(bases).reshape(-1, 10, 4, 4),
        np.array(offsets).reshape(-1, 4, 4),
        np.array(columns, dtype=np.int64).reshape(-1, 10),
        signed,
        -mean[signed] / unit[signed],
    )


def _opposed(robot: Mechanism) -> set[str]:
    """Return the parameters of friction laws that sum several terms of a kind: one may be negative, their sum must not be."""
    alike: dict[tuple[str, str], list[str]] = {}
    for own in robot.own_columns:
        if own.coordinate:
            kind = own.name.removesuffix(f"_{own.coordinate}").rpartition(".")[2]
            alike.setdefault((own.coordinate, kind), []).append(own.name)
    return {name for names in alike.values() if len(names) > 1 for name in names}


def consistent(root: Array, target: Array, cone: Cone, x: Array) -> Array:
    """Return the x inside the cone with the smallest ||root x - target||; `x` is the minimum without the cone."""
    if cone.inside(x):
        return _settled(x, cone)
    start = _inside(cone, x)
    inverse = np.asarray(np.linalg.inv(root), dtype=np.float64)  # in y = root x the quadratic part has condition 1
    found = start
    inequalities = 4 * len(cone.columns) + cone.signed.size
    mu = max(1.0, 0.5 * float(np.sum((root @ start - target) ** 2)) / inequalities)
    try:
        while True:
            found = _centre(found, root, target, inverse, cone, mu)
            if mu <= LAST:
                break
            mu = max(FALL * mu, LAST)
    except np.linalg.LinAlgError:  # too far from consistency for round-off; the last iterate is consistent
        pass
    if not (np.all(np.isfinite(found)) and cone.inside(found)):
        raise IdentificationError("no physically possible parameters were found; check the masses and centres given as known")
    return _settled(found, cone)


def _settled(x: Array, cone: Cone) -> Array:
    """Return x with zero for round-off, and with terms at their limit if only the barrier keeps them from it."""
    settled = np.where(np.abs(x) < ROUND_OFF, 0.0, x)
    at_limit = settled[cone.signed] - cone.lowest < AT_LIMIT
    settled[cone.signed[at_limit]] = cone.lowest[at_limit]
    return settled if cone.inside(settled) else x


def _inside(cone: Cone, x: Array) -> Array:
    """Return an interior point: every body of x if possible, otherwise moved towards a spherical one."""
    start = x.copy()
    start[cone.signed] = np.maximum(x[cone.signed], cone.lowest + SMALL)
    round_one = np.zeros((4, 4))
    round_one[[0, 1, 2, 3], [0, 1, 2, 3]] = 1 / 3, 1 / 3, 1 / 3, 1.0
    for own, basis, offset in zip(cone.columns, cone.basis, cone.offset, strict=True):
        inner = np.linalg.lstsq(basis.reshape(10, 16).T, (round_one - offset).ravel(), rcond=None)[0]
        best = x[own]
        for share in (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1e4):
            # P of the sum is P of x plus `share` times the spherical one, positive definite for a large enough share
            P = offset + np.einsum("k,kab->ab", best, basis) + share * round_one
            if np.linalg.eigvalsh(P)[0] > max(0.1 * share, 1e-3):
                inner = np.linalg.lstsq(basis.reshape(10, 16).T, (P - offset).ravel(), rcond=None)[0]
                break
        start[own] = inner
    return start


def _centre(x: Array, root: Array, target: Array, inverse: Array, cone: Cone, mu: float) -> Array:
    """Return the minimum of the quadratic part plus mu times the barrier, by Newton's method with a shortened step."""
    cost = _cost(x, root, target, cone, mu)
    for _ in range(STEPS):
        gradient, hessian = _derivatives(x, cone)
        g = (root @ x - target) + mu * (inverse.T @ gradient)
        H = np.eye(x.size) + mu * (inverse.T @ hessian @ inverse)
        step = np.linalg.solve(H, -g)
        decrease = float(-g @ step)
        if decrease < 1e-3 * mu or decrease < 1e-12:
            break
        ahead, length = inverse @ step, 1.0
        while length > 1e-8:
            trial = _cost(x + length * ahead, root, target, cone, mu)
            if trial <= cost - 0.1 * length * decrease:
                break
            length *= 0.5
        else:
            break
        x, cost = x + length * ahead, trial
    return x


def _cost(x: Array, root: Array, target: Array, cone: Cone, mu: float) -> float:
    P, above = cone.slack(x)
    if np.any(above <= 0.0):
        return float("inf")
    try:
        logs = 2.0 * np.sum(np.log(np.diagonal(np.linalg.cholesky(P), axis1=1, axis2=2))) if len(P) else 0.0
    except np.linalg.LinAlgError:
        return float("inf")
    return float(0.5 * np.sum((root @ x - target) ** 2) - mu * (logs + np.sum(np.log(above))))


def _derivatives(x: Array, cone: Cone) -> tuple[Array, Array]:
    """Return gradient and Hessian of the barrier."""
    P, above = cone.slack(x)
    gradient, hessian = np.zeros(x.size), np.zeros((x.size, x.size))
    if len(P):
        B = np.linalg.inv(P)[:, None] @ cone.basis
        gradient[cone.columns] = -np.einsum("ikaa->ik", B)
        hessian[cone.columns[:, :, None], cone.columns[:, None, :]] = np.einsum("ikab,ilba->ikl", B, B)
    gradient[cone.signed] -= 1.0 / above
    hessian[cone.signed, cone.signed] += 1.0 / above**2
    return gradient, hessian


FLOOR = 1e-10  # of a correlation matrix


def physical_parameters(
    base: BaseParameters, values: Array, covariance: Array, combinations: Array, solved: NDArray[np.bool_]
) -> Parameters:
    """Return the most probable physically consistent standard parameters."""
    robot = base.mechanism
    spread = spread_beside(base, values, solved)
    prior = robot.parameters
    E = combinations
    whitening = whitener(E @ covariance @ E.T)
    K = whitening @ E @ base.regrouping * spread
    target = whitening @ (E @ values) - whitening @ E @ base.regrouping @ prior.values
    p = len(prior)
    R = triangle(np.vstack([np.column_stack([K, target]), np.eye(p, p + 1)]))
    root, goal = R[:p, :p], R[:p, p]
    cone = cone_of(robot, prior.values, spread, spread, np.ones(p, dtype=bool))
    x = consistent(root, goal, cone, np.asarray(np.linalg.solve(root, goal), dtype=np.float64))
    return prior.replace(prior.values + spread * x, provenance="identified, physically consistent")


def spread_beside(base: BaseParameters, values: Array, solved: NDArray[np.bool_]) -> Array:
    """Return the plausible error of each standard parameter of the description; for joint terms the size of the estimate."""
    spread = natural_spread(base.mechanism)
    terms = [i for i, column in enumerate(base.columns) if column >= base.mechanism.tree.inertias.size and solved[i]]
    columns = base.columns[terms]
    spread[columns] = np.maximum(spread[columns], np.abs(values[terms]))
    return spread


def whitener(covariance: Array) -> Array:
    """Return V with V covariance V^T = 1, with a floor for data made without noise."""
    scale = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(scale, scale)
    return np.asarray(np.linalg.inv(scale[:, None] * np.linalg.cholesky(correlation + FLOOR * np.eye(scale.size))))
