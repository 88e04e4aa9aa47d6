"""CFT-transposer: proof that the printed parameters are only a torque fit, by two properties of every robot.

M(q, theta) > 0 everywhere,   f(v, theta) v >= 0 for every joint and speed
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident_papers.robots.cft.cartesian import joint_from_cartesian
from dynident_papers.robots.cft.closed_forms import _theta, friction, mass_matrix
from dynident_papers.robots.cft.data import EXCITATION_OFFSET, JOINTS, LIMITS, THETA


@dataclass(frozen=True)
class FrictionVerdict:
    """Passivity of a joint's friction."""

    joint: str  # Joint
    terms: tuple[tuple[float, float], tuple[float, float]]
    coulomb: float  # Net Coulomb level B_1 + B_2 at high speed [N or N m]
    slope: float  # Slope at zero velocity; a negative one supplies energy
    feeds_below: float  # Largest speed below which f(v) v < 0 [m/s or rad/s]; 0 when the friction is passive
    worst: float  # Most negative friction at positive speed [N or N m]; 0 when passive

    @property
    def passive(self) -> bool:
        """True when f(v) v >= 0 at every speed."""
        return self.feeds_below == 0.0


def friction_report(theta: ArrayLike = THETA) -> tuple[FrictionVerdict, ...]:
    """Return for each joint whether f(v) v >= 0, found on a fine grid of speeds and refined by bisection."""
    values = _theta(theta, 32)
    Bv, *rest = values[12:].reshape(5, 4)
    B, w = np.array(rest[:2]) * np.sign(rest[2:]), np.abs(rest[2:])
    speeds = np.geomspace(1e-8, 1e3, 20001)
    grid = friction(np.tile(speeds[:, None], (1, 4)), values)
    verdicts = []
    for j, joint in enumerate(JOINTS):
        negative = np.flatnonzero(grid[:, j] < 0.0)
        below = 0.0
        if negative.size:
            low, high = speeds[negative[-1]], speeds[min(negative[-1] + 1, speeds.size - 1)]
            for _ in range(80):
                middle = 0.5 * (low + high)
                active = friction(np.full(4, middle), values)[0, j] < 0.0
                low, high = (middle, high) if active else (low, middle)
            below = float(high)
        pairs = ((float(B[0, j]), float(w[0, j])), (float(B[1, j]), float(w[1, j])))
        slope = float(Bv[j] + B[0, j] * w[0, j] + B[1, j] * w[1, j])
        worst = min(float(grid[:, j].min()), 0.0)
        verdicts.append(FrictionVerdict(joint, pairs, float(B[:, j].sum()), slope, below, worst))
    return tuple(verdicts)


@dataclass(frozen=True, eq=False)
class Definiteness:
    """Eigenvalues of M on a grid of the workspace."""

    xc: Array  # Grid points
    smallest: Array  # Smallest eigenvalue of M at each

    @property
    def indefinite(self) -> float:
        """Share of points at which M is not positive definite."""
        return float(np.mean(self.smallest <= 0.0))

    @property
    def worst(self) -> tuple[Array, float]:
        """The point with the smallest eigenvalue, and that eigenvalue."""
        i = int(np.argmin(self.smallest))
        return self.xc[i], float(self.smallest[i])


def definiteness(
    theta: ArrayLike = THETA, grid: tuple[int, int, int] = (31, 31, 13), added_inertia: float = 0.0
) -> Definiteness:
    """Return the smallest eigenvalue of M(q, theta) over the limits of xc1, xc2 and xc3; M does not depend on the rail."""
    axes = [np.linspace(low, high, count) for (low, high), count in zip(LIMITS[:3], grid, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    xc = np.column_stack([points, np.full(len(points), EXCITATION_OFFSET[3])])
    M = mass_matrix(joint_from_cartesian(xc), theta) + np.diag([0.0, 0.0, added_inertia, added_inertia])
    return Definiteness(xc, np.asarray(np.linalg.eigvalsh(M)[:, 0], dtype=np.float64))
