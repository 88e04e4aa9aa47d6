"""CFT-transposer: where in the workspace the mass matrix is positive definite."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.robots.cft.data import EXCITATION_OFFSET, LIMITS, THETA, Array
from dynident.robots.cft.dynamics import mass_matrix
from dynident.robots.cft.kinematics import joint_from_cartesian


@dataclass(frozen=True, eq=False)
class Definiteness:
    """Eigenvalues of M on a grid of the workspace.

    Parameters
    ----------
    xc : ndarray, (N, 4)
        Grid points.
    smallest : ndarray, (N,)
        Smallest eigenvalue of M at each.
    """

    xc: Array
    smallest: Array

    @property
    def indefinite(self) -> float:
        """Part of the points at which M is not positive definite."""
        return float(np.mean(self.smallest <= 0.0))

    @property
    def worst(self) -> tuple[Array, float]:
        """The point with the smallest eigenvalue, and that eigenvalue."""
        i = int(np.argmin(self.smallest))
        return self.xc[i], float(self.smallest[i])


def definiteness(
    theta: ArrayLike = THETA, grid: tuple[int, int, int] = (31, 31, 13), added_inertia: float = 0.0
) -> Definiteness:
    """Return the smallest eigenvalue of M over the limits of xc1, xc2 and xc3 (M does not depend on the rail).

    Parameters
    ----------
    theta : array_like, (32,) or (12,)
        Parameters of Table 4.
    grid : tuple of int
        Points along xc1, xc2 and xc3.
    added_inertia : float
        Inertia added to q4 and q5 [kg m^2].

    Returns
    -------
    Definiteness
        Grid and eigenvalues.
    """
    axes = [np.linspace(low, high, count) for (low, high), count in zip(LIMITS[:3], grid, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    xc = np.column_stack([points, np.full(len(points), EXCITATION_OFFSET[3])])
    M = mass_matrix(joint_from_cartesian(xc), theta) + np.diag([0.0, 0.0, added_inertia, added_inertia])
    return Definiteness(xc, np.asarray(np.linalg.eigvalsh(M)[:, 0], dtype=np.float64))
