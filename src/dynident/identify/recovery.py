"""Possible bodies from a free fit: base parameters and covariance in, standard parameters out.

    minimise   (K phi - beta)^T C^-1 (K phi - beta) + (phi - phi0)^T D^-1 (phi - phi0)
    subject to P_i(phi) >= margin > 0 for every body,   viscous, Coulomb and rotor terms >= 0

The first term is the exact log-likelihood of the data (base parameters and covariance are sufficient), the second the
description with a spread of its own size (`natural_spread`); joint terms have a spread of their estimated size, since a
description seldom tells friction: the pull towards it stays below one standard deviation of what data tell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.identify.base import BaseParameters
from dynident.identify.factor import triangle
from dynident.identify.physical import cone_of, consistent
from dynident.identify.solve import natural_spread
from dynident.mechanism import Parameters

Array = NDArray[np.float64]


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


def physical_parameters(
    base: BaseParameters, values: Array, covariance: Array, combinations: Array, solved: NDArray[np.bool_]
) -> Physical:
    """Return the most probable standard parameters that are physically possible."""
    robot = base.mechanism
    spread = natural_spread(robot)
    inertial = robot.tree.inertias.size
    terms = [i for i, column in enumerate(base.columns) if column >= inertial and solved[i]]
    columns = base.columns[terms]
    spread[columns] = np.maximum(spread[columns], np.abs(values[terms]))
    prior = robot.parameters
    E = combinations
    whitening = np.linalg.inv(_cholesky(E @ covariance @ E.T))
    K = whitening @ E @ base.regrouping * spread
    target = whitening @ (E @ values) - whitening @ E @ base.regrouping @ prior.values
    p = len(prior)
    R = triangle(np.vstack([np.column_stack([K, target]), np.eye(p, p + 1)]))
    root, goal = R[:p, :p], R[:p, p]
    cone = cone_of(robot, prior.values, spread, spread, np.ones(p, dtype=bool))
    x = consistent(root, goal, cone, np.asarray(np.linalg.solve(root, goal), dtype=np.float64))
    residual = K @ x - target
    parameters = prior.replace(prior.values + spread * x, provenance="identified, physically consistent")
    return Physical(parameters, float(np.sqrt(residual @ residual / max(E.shape[0], 1))))


def _cholesky(covariance: Array) -> Array:
    """Return a square root of the covariance, with a floor for data made without noise."""
    scale = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(scale, scale)
    return np.asarray(scale[:, None] * np.linalg.cholesky(correlation + 1e-10 * np.eye(scale.size)))
