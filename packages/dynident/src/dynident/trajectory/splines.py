"""Curves in pieces: quintics through via points, sampled motions, clamped B-splines.

On each span of a quintic, u = (t - t_k) / h, the six Hermite polynomials carry q, v, a of both ends, so that q, v and a are
continuous for all parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.mechanics.motion import Motion
from dynident.trajectory.family import CurveBase, Described, State, finite_times, positive

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
    """The family of piecewise quintics; v = a = 0 at the first and the last point.

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
    """Return the quintics (family and coefficients (n, size)) that rest at `points` (k, n) [rad or m].

    `knots` are the times of the points [s], starting at 0.
    """
    q = np.asarray(points, dtype=np.float64)
    family = Quintics(tuple(knots))
    if q.ndim != 2 or q.shape[0] != len(family.knots):
        raise DynidentError(f"points have shape {q.shape} but there are {len(family.knots)} knots; give one row each")
    c = np.zeros((q.shape[1], family.size))
    c[:, 0], c[:, -1] = q[0], q[-1]
    c[:, 1:-1:3] = q[1:-1].T
    return family, c


@dataclass(frozen=True, eq=False)
class Interpolated(CurveBase):
    """The curve through a motion's samples, with its q, v and a; between them the error falls with the sixth power of the step.

    Motions from inverse kinematics (lines, circles, letters, sines in the workspace) enter joins and plans in this form.

    Parameters
    ----------
    motion : Motion
        Samples, at least two, in increasing time.
    """

    _kind = "interpolated"

    motion: Motion

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

    def _at(self, t: Array) -> State:
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
