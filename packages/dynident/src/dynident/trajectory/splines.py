"""Curves in pieces: sampled motions, clamped B-splines.

Between two samples, with u = (t - t_k) / h, the six quintic Hermite polynomials carry q, v, a of both ends, so that all three
are continuous.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import finite_times
from dynident.errors import DynidentError
from dynident.mechanics.motion import Motion
from dynident.trajectory.family import CurveBase, Described, State, positive

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


@dataclass(frozen=True, eq=False)
class Interpolated(CurveBase):
    """The curve through a motion's samples, with its q, v and a; between them the error falls with the sixth power of the step.

    Motions from inverse kinematics (lines, circles, letters, sines in the workspace) enter joins and plans in this form.
    """

    _kind = "interpolated"

    motion: Motion  #: Samples, at least two, in increasing time

    def __post_init__(self) -> None:
        if not isinstance(self.motion, Motion) or self.motion.t.size < 2 or not np.all(np.diff(self.motion.t) > 0.0):
            raise DynidentError("motion must have at least two samples in increasing time")

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return float(self.motion.t[-1] - self.motion.t[0])

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return self.motion.dof

    def at(self, t: Array) -> State:
        """Return q, v, a at checked times."""
        m = self.motion
        knots = m.t - m.t[0]
        time = np.clip(t, 0.0, knots[-1])
        k = np.clip(np.searchsorted(knots, time, side="right") - 1, 0, knots.size - 2)
        h = np.diff(knots)[k][:, None]
        u = (time - knots[k]) / h[:, 0]
        ends = [m.q[k], m.v[k] * h, m.a[k] * h**2, m.q[k + 1], m.v[k + 1] * h, m.a[k + 1] * h**2]
        out = []
        for order in range(3):
            weights, total = hermite(u, order), np.zeros_like(ends[0])
            for i, x in enumerate(ends):
                total += weights[:, i : i + 1] * x
            out.append(total / h**order)
        outside = np.abs(t - time) > 1e-9 * (1.0 + knots[-1])
        out[1][outside] = out[2][outside] = 0.0
        return out[0], out[1], out[2]

    def _plain(self) -> dict[str, Any]:
        return {key: getattr(self.motion, key).tolist() for key in ("t", "q", "v", "a")}


@dataclass(frozen=True)
class BSpline(Described):
    """The family of clamped uniform B-splines from rest to rest: their first and last three control points coincide.

    A clamped spline starts with a velocity proportional to c1 - c0 and an acceleration in which only c0, c1, c2 take part, so
    three equal control points are rest.
    """

    _kind = "bspline"

    duration: float  #: How long it takes [s]
    points: int  #: Free control points P >= 3: start, inner ones, end. They are the parameters [rad or m].
    degree: int = 5  #: 3 or more; with 5 the jerk is smooth

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
        control = np.zeros((self.points + 4, self.points))
        control[np.arange(self.points + 4), np.clip(np.arange(self.points + 4) - 2, 0, self.points - 1)] = 1.0
        degree = min(self.degree, self.points + 3)
        inner = self.points + 4 - degree
        knots = np.concatenate([np.zeros(degree), np.linspace(0.0, self.duration, inner + 1), np.full(degree, self.duration)])
        return scipy.interpolate.BSpline(knots, control, degree)

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
