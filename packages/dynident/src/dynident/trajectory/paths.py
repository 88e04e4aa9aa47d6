"""Paths in space: position as a function of the way s, with exact first and second derivatives.

A path is called with s in [0, length] and returns (x, x', x''), each (N, 3). Lines, arcs and splines are parametrised by
arc length (|x'| = 1), so that the profile's speed is the tip's speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.errors import DynidentError

Array = NDArray[np.float64]


class Path(Protocol):
    """What a path can do."""

    @property
    def length(self) -> float:
        """Range of the parameter, for most paths the length [m]."""

    def __call__(self, s: ArrayLike) -> tuple[Array, Array, Array]:
        """Return x, x', x'' at s."""


def _point(value: ArrayLike, what: str) -> Array:
    point = numbers(value, what)
    if point.shape != (3,) or not np.isfinite(point).all():
        raise DynidentError(f"{what} is {np.asarray(value).tolist()}; give three finite numbers in metres")
    return point


def _direction(value: ArrayLike, what: str) -> Array:
    vector = _point(value, what)
    size = float(np.linalg.norm(vector))
    if size < 1e-12:
        raise DynidentError(f"{what} is {vector.tolist()}; give a direction that is not zero")
    return vector / size


class Line:
    """A straight line from one point to another.

    Parameters
    ----------
    start, end : array_like, (3,)
        Points [m].
    """

    def __init__(self, start: ArrayLike, end: ArrayLike) -> None:
        self.start, self.end = _point(start, "start"), _point(end, "end")
        self.length = float(np.linalg.norm(self.end - self.start))

    def __call__(self, s: ArrayLike) -> tuple[Array, Array, Array]:
        """Return x, x', x''."""
        way = np.atleast_1d(np.asarray(s, dtype=np.float64))[:, None]
        along = (self.end - self.start) / self.length if self.length else np.zeros(3)
        return self.start + way * along, np.tile(along, (len(way), 1)), np.zeros((len(way), 3))


class Arc:
    """An arc of a circle; a whole circle by default.

    Parameters
    ----------
    start : array_like, (3,)
        Where it starts [m].
    centre : array_like, (3,)
        Centre of the circle [m].
    normal : array_like, (3,)
        Axis of the turn, right-handed; it must be across the radius.
    angle : float
        How far to turn [rad], negative for the other way.
    """

    def __init__(self, start: ArrayLike, centre: ArrayLike, normal: ArrayLike, angle: float = 2.0 * np.pi) -> None:
        self.start, self.centre = _point(start, "start"), _point(centre, "centre")
        self.normal = _direction(normal, "normal")
        spoke = self.start - self.centre
        self.radius = float(np.linalg.norm(spoke))
        if self.radius < 1e-12 or abs(spoke @ self.normal) > 1e-9 * self.radius:
            raise DynidentError(f"normal is {self.normal.tolist()}; it must be across the radius {spoke.tolist()}, not zero")
        if not (np.isfinite(angle) and angle != 0.0):
            raise DynidentError(f"angle is {angle}; give a finite angle that is not zero")
        self.angle = float(angle)
        self.length = self.radius * abs(self.angle)

    def __call__(self, s: ArrayLike) -> tuple[Array, Array, Array]:
        """Return x, x', x''."""
        sense = np.sign(self.angle)
        phi = (np.atleast_1d(np.asarray(s, dtype=np.float64)) * sense / self.radius)[:, None]
        e = (self.start - self.centre) / self.radius
        f = np.cross(self.normal, e)
        out = np.cos(phi) * e + np.sin(phi) * f
        return self.centre + self.radius * out, sense * (np.cos(phi) * f - np.sin(phi) * e), -out / self.radius


class Spline:
    """A smooth curve through points (cubic, twice continuously differentiable), parametrised by arc length.

    The curve itself is c(u), cubic between points; the way is s(u) = integral |c'|, by Gauss-Legendre quadrature on
    short spans and inverted by Newton, so that s is exact to rounding.

    Parameters
    ----------
    points : array_like, (k, 3)
        Points in order [m], at least two; a closed curve ends at the point where it starts.
    """

    def __init__(self, points: ArrayLike) -> None:
        from scipy.interpolate import CubicSpline  # noqa: PLC0415 - scipy is heavy

        nodes = numbers(points, "points")
        if nodes.ndim != 2 or nodes.shape[1] != 3 or len(nodes) < 2 or not np.isfinite(nodes).all():
            raise DynidentError(f"points have shape {nodes.shape}; give at least two finite points of three coordinates")
        gaps = np.linalg.norm(np.diff(nodes, axis=0), axis=1)
        if not np.all(gaps > 0.0):
            raise DynidentError(f"point {int(np.argmin(gaps)) + 1} equals the one before it; remove it")
        closed = bool(np.all(nodes[0] == nodes[-1])) and len(nodes) > 3
        # Centripetal parameters keep the curve free of loops between unevenly spaced points.
        u = np.concatenate([[0.0], np.cumsum(np.sqrt(gaps))])
        self._curve = CubicSpline(u, nodes, bc_type="periodic" if closed else "natural")
        self._breaks = np.unique(np.concatenate([np.linspace(a, b, 17) for a, b in pairwise(u)]))
        self._ways = np.concatenate([[0.0], np.cumsum(self._way(self._breaks[:-1], self._breaks[1:]))])
        self.length = float(self._ways[-1])

    def _way(self, a: ArrayLike, b: ArrayLike) -> Array:
        """Return the length of the curve from parameter a to parameter b, both in one span."""
        knots, weights = np.polynomial.legendre.leggauss(12)
        low, half = np.asarray(a, dtype=np.float64), 0.5 * (np.asarray(b, dtype=np.float64) - np.asarray(a, dtype=np.float64))
        u = low[..., None] + half[..., None] * (1.0 + knots)
        return np.asarray(half * (np.linalg.norm(self._curve(u, 1), axis=-1) @ weights))

    def __call__(self, s: ArrayLike) -> tuple[Array, Array, Array]:
        """Return x, x', x''."""
        way = np.clip(np.atleast_1d(np.asarray(s, dtype=np.float64)), 0.0, self.length)
        i = np.clip(np.searchsorted(self._ways, way, side="right") - 1, 0, len(self._breaks) - 2)
        a, b = self._breaks[i], self._breaks[i + 1]
        u = a + (b - a) * (way - self._ways[i]) / (self._ways[i + 1] - self._ways[i])
        for _ in range(6):  # |c'| hardly changes within a span, so Newton converges at once
            u = u - (self._ways[i] + self._way(a, u) - way) / np.linalg.norm(self._curve(u, 1), axis=1)
        c, d, e = (np.asarray(self._curve(u, k)) for k in range(3))
        speed = np.linalg.norm(d, axis=1, keepdims=True)
        tangent = d / speed
        return c, tangent, (e - np.sum(e * tangent, axis=1, keepdims=True) * tangent) / speed**2


class Hop:
    """From one point to another over a hump, with the pen lifted: x = a + (b - a) f(u) + h n 64 u^3 (1 - u)^3.

    f is the quintic of `Quintic`; the curve leaves and meets its ends along n, and u = s / length, which is not arc length.
    """

    def __init__(self, start: ArrayLike, end: ArrayLike, normal: ArrayLike, height: float) -> None:
        self.start, self.end = _point(start, "start"), _point(end, "end")
        self.normal = _direction(normal, "normal")
        if not (np.isfinite(height) and height > 0.0):
            raise DynidentError(f"height is {height}; give a height above zero in metres")
        self.height = float(height)
        self.length = float(np.linalg.norm(self.end - self.start)) + 2.0 * self.height

    def __call__(self, s: ArrayLike) -> tuple[Array, Array, Array]:
        """Return x, x', x''."""
        u = (np.atleast_1d(np.asarray(s, dtype=np.float64)) / self.length)[:, None]
        w, L = u * (1.0 - u), self.length
        shift = self.end - self.start
        hump = 64.0 * self.height * self.normal
        x = self.start + shift * (u**3 * (10.0 - 15.0 * u + 6.0 * u**2)) + hump * w**3
        dx = shift * (30.0 * w**2) + hump * (3.0 * w**2 * (1.0 - 2.0 * u))
        ddx = shift * (60.0 * w * (1.0 - 2.0 * u)) + hump * (6.0 * w * (1.0 - 2.0 * u) ** 2 - 6.0 * w**2)
        return x, dx / L, ddx / L**2


def joined(paths: Sequence[Path]) -> list[bool]:
    """Return for each path whether it starts where the one before it ends, so that the pen may stay down."""
    ends = [(path(0.0)[0][0], path(path.length)[0][0]) for path in paths]
    return [False] + [bool(np.linalg.norm(b[0] - a[1]) < 1e-9) for a, b in pairwise(ends)]
