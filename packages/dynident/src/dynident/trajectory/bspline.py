"""Clamped B-splines from rest to rest: local control, and no velocity or acceleration at the ends by construction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.trajectory.family import Described, finite_times, positive

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BSpline(Described):
    """The family of clamped uniform B-splines whose first and last three control points coincide.

    A clamped spline starts with a velocity proportional to c1 - c0 and an acceleration in which only c0, c1, c2 take part, so
    three equal control points are rest.

    Parameters
    ----------
    duration : float
        How long it takes [s].
    points : int
        Free control points P >= 3: start, inner ones, end. They are the parameters [rad or m].
    degree : int
        3 or more; with 5 the jerk is smooth.
    """

    _kind = "bspline"

    duration: float
    points: int
    degree: int = 5

    def __post_init__(self) -> None:
        positive("duration", self.duration)
        if self.degree < 3:
            raise DynidentError(f"degree is {self.degree}; give at least 3, or the acceleration jumps")
        if self.points < 3:
            raise DynidentError(f"points is {self.points}; give at least 3 (start, one between, end)")

    @property
    def size(self) -> int:
        """Number of parameters of each coordinate."""
        return self.points

    @property
    def highest(self) -> float:
        """Frequency of an oscillation from one control point to the next [Hz]."""
        return 0.5 * (self.points - 1) / self.duration

    @cached_property
    def _spline(self) -> Any:
        from scipy.interpolate import BSpline as Spline  # noqa: PLC0415 - scipy is heavy

        control = np.zeros((self.points + 4, self.points))
        control[np.arange(self.points + 4), np.clip(np.arange(self.points + 4) - 2, 0, self.points - 1)] = 1.0
        degree = min(self.degree, self.points + 3)
        inner = self.points + 4 - degree
        knots = np.concatenate([np.zeros(degree), np.linspace(0.0, self.duration, inner + 1), np.full(degree, self.duration)])
        return Spline(knots, control, degree)

    def basis(self, t: ArrayLike, order: int = 0) -> Array:
        """Return a derivative of Phi."""
        time = finite_times(t)
        out = np.asarray(self._spline(np.clip(time, 0.0, self.duration), order))
        if order:
            out[(time < 0.0) | (time > self.duration)] = 0.0
        return out

    def constant(self) -> Array:
        """Return the parameters of q = 1: positions that hold before the coefficients add to them."""
        return np.ones(self.points)
