"""Physically consistent standard parameters: the most probable ones that bodies can have.

    minimise   (K phi - beta)^T C^-1 (K phi - beta) + (phi - phi0)^T D^-1 (phi - phi0)
    subject to P_i(phi) >= margin > 0 for every body,   viscous, Coulomb and rotor terms >= 0

The first term is the exact log-likelihood of the data (base parameters and covariance are sufficient), the second the prior:
the description with a spread of its own size (`natural_spread`), joint terms with a spread of their estimated size, since a
description seldom tells friction: the pull towards the prior stays below one standard deviation of what data tell.
P_i is the pseudo-inertia, with Sigma = tr(I)/2 1 - I.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.errors import IdentificationError, missing_extra
from dynident.friction import term_of
from dynident.identify.fit import Fit
from dynident.identify.standard import natural_spread
from dynident.mechanism import Parameters, pseudo_inertia

Array = NDArray[np.float64]

MARGIN = 1e-5  # smallest eigenvalue of the pseudo-inertia, in units of the body's own mass and radius of gyration


@dataclass(frozen=True, eq=False)
class Physical:
    """Physically consistent parameters and what consistency costs.

    Parameters
    ----------
    parameters : Parameters
        Standard parameters; every body is possible.
    shift : float
        sqrt((K phi - beta)^T C^-1 (K phi - beta) / b): how far the base parameters had to move, in standard deviations.
        Values around 1 or below say that the data do not contradict a possible robot.
    """

    parameters: Parameters
    shift: float


def physical_parameters(fit: Fit) -> Physical:
    """Return the most probable standard parameters that are physically possible (extra `physical`)."""
    try:
        import cvxpy as cp  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise missing_extra("cvxpy", "physical", "physically consistent parameters") from error
    spread = _spread(fit)
    prior = fit.mechanism.parameters
    E = fit.combinations
    K = E @ fit.base.regrouping * spread
    whitening = np.linalg.inv(_cholesky(E @ fit.covariance @ E.T))
    target = whitening @ (E @ fit.values)
    x = cp.Variable(len(prior))  # phi in units of its natural spread
    # The root of the cost has the same minimum and numbers of a moderate size, which the solver needs.
    cost = cp.norm2(cp.hstack([whitening @ K @ x - target, x - prior.values / spread]))
    problem = cp.Problem(cp.Minimize(cost), _constraints(cp, fit, x, spread))
    try:
        problem.solve(solver=cp.CLARABEL)
    except cp.error.SolverError as error:
        raise IdentificationError(f"the solver found no physically possible parameters: {error}") from error
    if x.value is None:
        raise IdentificationError(f"the solver found no physically possible parameters (status: {problem.status})")
    phi = np.asarray(x.value * spread)
    parameters = prior.replace(phi, provenance="identified, physically consistent")
    impossible = [c for c in fit.mechanism.check_consistency(parameters) if not c.ok]
    if impossible:  # a solver may call a point optimal that is slightly outside
        raise IdentificationError(f"the solver's answer is not physically possible: {impossible[0].sentence}")
    residual = whitening @ K @ x.value - target
    return Physical(parameters, float(np.sqrt(residual @ residual / E.shape[0])))


def _spread(fit: Fit) -> Array:
    """Return how far each standard parameter may plausibly be from the description; joint terms as far as their estimate."""
    spread = natural_spread(fit.mechanism)
    inertial = fit.mechanism.tree.inertias.size
    terms = [i for i, column in enumerate(fit.base.columns) if column >= inertial and fit.solved[i]]
    columns = fit.base.columns[terms]
    spread[columns] = np.maximum(spread[columns], np.abs(fit.values[terms]))
    return spread


def _cholesky(covariance: Array) -> Array:
    """Return a square root of the covariance, with a floor for data made without noise."""
    scale = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(scale, scale)
    return np.asarray(scale[:, None] * np.linalg.cholesky(correlation + 1e-10 * np.eye(scale.size)))


def _constraints(cp: Any, fit: Fit, x: Any, spread: Array) -> list[Any]:
    """Return the matrix inequality of every body and the signs of the dissipative joint terms."""
    units = np.stack([pseudo_inertia(unit) for unit in np.eye(10)])
    constraints = []
    for i in range(len(fit.mechanism.tree.bodies)):
        m, mr, mrr = spread[10 * i], spread[10 * i + 1], spread[10 * i + 4]
        r = mr / m
        scaling = np.array([1.0 / r, 1.0 / r, 1.0 / r, 1.0]) / np.sqrt(m)
        # P in units of m and r, so that one margin fits a gripper finger and a base axis alike.
        basis = units * np.outer(scaling, scaling) * np.array([m, mr, mr, mr, *(mrr,) * 6])[:, None, None]
        P = sum(x[10 * i + k] * basis[k] for k in range(10))
        constraints.append(P >> MARGIN * np.eye(4))
    names = fit.mechanism.parameters.names[10 * len(fit.mechanism.tree.bodies) :]
    first = 10 * len(fit.mechanism.tree.bodies)
    signed = [first + j for j, name in enumerate(names) if (term := term_of(name)) is not None and term.passive]
    if signed:
        constraints.append(x[signed] >= 0.0)
    return constraints
