"""Possible bodies from a free fit: base parameters and covariance in, standard parameters out.

    minimise   (K phi - beta)^T C^-1 (K phi - beta) + (phi - phi0)^T D^-1 (phi - phi0)
    subject to P_i(phi) >= margin > 0 for every body,   viscous, Coulomb and rotor terms >= 0

The first term is the exact log-likelihood of the data (base parameters and covariance are sufficient), the second the
description with a spread of its own size (`natural_spread`); joint terms have a spread of their estimated size, since a
description seldom tells friction: the pull towards it stays below one standard deviation of what data tell.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynident.identify.base import BaseParameters, natural_spread
from dynident.identify.factor import triangle
from dynident.identify.physical import cone_of, consistent
from dynident.mechanism.parameters import Parameters

Array = NDArray[np.float64]

FLOOR = 1e-10  # of a correlation matrix


def physical_parameters(
    base: BaseParameters, values: Array, covariance: Array, combinations: Array, solved: NDArray[np.bool_]
) -> Parameters:
    """Return the most probable standard parameters that are physically possible."""
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
    """Return how far each standard parameter may plausibly be from the description; joint terms as far as their estimate."""
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
