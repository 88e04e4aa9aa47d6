"""Piecewise quintic polynomials through via points, with position, velocity and acceleration free at each of them.

On each span, u = (t - t_k) / h, the six Hermite polynomials carry q, v, a of both ends, so q, v and a are continuous whatever
the parameters; at the first and the last point v = a = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.trajectory.family import Described, finite_times

Array = NDArray[np.float64]
MOST = 100_000  # points of one curve

# Columns: value, slope and curvature at u = 0, then at u = 1; rows: powers u^0 ... u^5.
_ENDS = np.array(
    [[1.0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 2, 0, 0, 0], [1, 1, 1, 1, 1, 1], [0, 1, 2, 3, 4, 5], [0, 0, 2, 6, 12, 20]]
)
HERMITE = np.linalg.inv(_ENDS)


def hermite(u: Array, order: int = 0) -> Array:
    """Return a derivative by u of the six quintic Hermite polynomials."""
    powers = np.zeros((u.size, 6))
    for k in range(order, 6):
        powers[:, k] = np.prod(np.arange(k - order + 1, k + 1, dtype=np.float64)) * u ** (k - order)
    return np.asarray(powers @ HERMITE)


@dataclass(frozen=True)
class Quintics(Described):
    """The family of piecewise quintics.

    Parameters of a coordinate: q at the start; q, v, a at each inner point; q at the end.

    Parameters
    ----------
    knots : sequence of float
        Times of the points [s], from 0 upward, at least two.
    """

    _kind = "quintics"

    knots: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "knots", tuple(float(k) for k in self.knots))
        gaps = np.diff(self.knots)
        if len(self.knots) < 2 or self.knots[0] != 0.0 or not np.all(np.isfinite(self.knots)) or not np.all(gaps > 0.0):
            raise DynidentError(f"knots are {self.knots}; give at least two increasing times that start at 0")

    @classmethod
    def uniform(cls, duration: float, points: int) -> Quintics:
        """Return the family with evenly spaced points."""
        if not 2 <= points <= MOST:
            raise DynidentError(f"points is {points}; give 2 to {MOST} of them")
        return cls(tuple(np.linspace(0.0, duration, points).tolist()))

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return self.knots[-1]

    @property
    def size(self) -> int:
        """Number of parameters of each coordinate."""
        return 3 * len(self.knots) - 4

    @property
    def highest(self) -> float:
        """Frequency of an oscillation from one point to the next [Hz]."""
        return 0.5 / float(np.min(np.diff(self.knots)))

    def basis(self, t: ArrayLike, order: int = 0) -> Array:
        """Return a derivative of Phi."""
        time = finite_times(t)
        knots = np.array(self.knots)
        inside = np.clip(time, 0.0, self.duration)
        span = np.clip(np.searchsorted(knots, inside, side="right") - 1, 0, knots.size - 2)
        h = np.diff(knots)[span]
        weights = hermite((inside - knots[span]) / h, order) / h[:, None] ** order
        states = np.zeros((time.size, 3 * knots.size))  # q, v, a at every knot
        for k in range(6):
            states[np.arange(time.size), 3 * span + k] = weights[:, k] * h ** (k % 3)
        if order:
            states[(time < 0.0) | (time > self.duration)] = 0.0
        keep = [0, *range(3, 3 * knots.size - 3), 3 * knots.size - 3]
        return states[:, keep]

    def constant(self) -> Array:
        """Return the parameters of q = 1: positions that hold before the coefficients add to them."""
        one = np.zeros(self.size)
        one[[0, *range(1, self.size - 1, 3), self.size - 1]] = 1.0
        return one


def through(points: ArrayLike, knots: Sequence[float]) -> tuple[Quintics, Array]:
    """Return the quintics that rest at every point.

    Parameters
    ----------
    points : array_like, (k, n)
        Where to rest [rad or m].
    knots : sequence of float
        When [s], starting at 0.

    Returns
    -------
    family : Quintics
        The family.
    coefficients : ndarray, (n, size)
        Its parameters.
    """
    q = np.asarray(points, dtype=np.float64)
    family = Quintics(tuple(knots))
    if q.ndim != 2 or q.shape[0] != len(family.knots):
        raise DynidentError(f"points have shape {q.shape} but there are {len(family.knots)} knots; give one row each")
    c = np.zeros((q.shape[1], family.size))
    c[:, 0], c[:, -1] = q[0], q[-1]
    c[:, 1:-1:3] = q[1:-1].T
    return family, c
