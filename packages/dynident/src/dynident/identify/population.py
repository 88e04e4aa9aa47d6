"""What robots of one type have in common, as a belief about the next one.

    beta ~ N(mean, covariance),      covariance = spread of the robots + uncertainty of the mean

With W^T W = covariance^-1 the belief is b rows W K phi = W mean of unit deviation, beside those of the description.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.errors import IdentificationError
from dynident.identify.base import BaseParameters
from dynident.results import Result

Array = NDArray[np.float64]

SMALLEST = 1e-12  # eigenvalues of the scaled covariance: none is known better than this


@dataclass(frozen=True, eq=False)
class Population(Result):
    """Base parameters of robots of one type: mean and spread.

    `dynident.fleet.identify` finds it; ``MAP(known=Knowledge(population=...))`` uses it for a robot with little data.

    Parameters
    ----------
    robot : str
        Name of the type.
    names : tuple of str, length b
        Base parameters.
    mean : ndarray, (b,)
        Those of the nominal robot.
    covariance : ndarray, (b, b)
        Covariance of a new robot's parameters about the mean.
    robots : int
        Number of robots it rests on.
    fingerprint : ndarray
        What tells the robot's geometry (`BaseParameters.fingerprint`).
    """

    robot: str
    names: tuple[str, ...]
    mean: Array
    covariance: Array
    robots: int
    fingerprint: Array

    @property
    def spread(self) -> Array:
        """Standard deviation of each base parameter from robot to robot, (b,)."""
        return np.asarray(np.sqrt(np.clip(np.diag(self.covariance), 0.0, None)))

    def summary(self) -> str:
        """Return the nominal parameters with their spread as text. One line per base parameter."""
        width = max(map(len, self.names), default=0)
        rows = zip(self.names, self.mean, self.spread, strict=True)
        lines = [f"{name:<{width}}  {value:>12.5g}  +- {deviation:.3g}" for name, value, deviation in rows]
        return "\n".join([f"{self.robot}: {self.robots} robots, nominal parameters and their spread", *lines])

    def rows(self, base: BaseParameters) -> tuple[Array, Array]:
        """Return the belief as rows of unit deviation about the standard parameters."""
        if base.names != self.names or not base.fits(self.fingerprint):
            raise IdentificationError(
                f"the population is of robot '{self.robot}' with {len(self.names)} base parameters, which is another robot "
                f"than '{base.mechanism.name}' (joints, geometry, gravity or terms differ); use that of the same type"
            )
        size = np.where(self.spread > 0.0, self.spread, 1.0)
        values, vectors = np.linalg.eigh(self.covariance / np.outer(size, size))
        W = (vectors / np.sqrt(np.maximum(values, SMALLEST * max(values[-1], SMALLEST)))).T / size
        return W @ base.regrouping, W @ self.mean
