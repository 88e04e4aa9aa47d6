"""From base parameters back to standard ones: the same torques, and the missing directions from a stated rule.

    minimise  (phi - phi0)^T D^-1 (phi - phi0)   subject to   K phi = beta
    phi = phi0 + D K^T (K D K^T)^-1 (beta - K phi0)

"prior": phi0 is the description and D its natural spread; "minimum_norm": phi0 = 0 and D = 1. Neither asks whether a body can
exist; `dynident.identify.physical` does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynident.errors import IdentificationError
from dynident.identify.base import BaseParameters
from dynident.mechanism import Mechanism, Parameters

Array = NDArray[np.float64]

RECOVERIES = ("prior", "minimum_norm")


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
