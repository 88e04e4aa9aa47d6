"""RRR robot: geometry, forward and inverse kinematics in closed form, (4) to (6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.errors import DynidentError

Array = NDArray[np.float64]

JOINTS = ("waist", "shoulder", "elbow")
POSTURES = ("front up", "front down", "back up", "back down")


@dataclass(frozen=True)
class Geometry:
    """Lengths of the standard Denavit-Hartenberg table (Table I), alpha = (pi/2, 0, 0).

    Parameters
    ----------
    d1, d2, d3 : float
        Link offsets C0C1, C1P1, C2P2 [m].
    a2, a3 : float
        Link lengths P1C2, P2C3 [m], not zero.
    """

    d1: float
    d2: float
    d3: float
    a2: float
    a3: float

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int | float | np.floating) or not np.isfinite(value):
                raise DynidentError(f"geometry: {field.name} is {value!r}; give a finite length in metres")
        if self.a2 <= 0.0 or self.a3 <= 0.0:
            raise DynidentError(f"geometry: a2 is {self.a2} and a3 is {self.a3}; both must be above zero")

    @property
    def offset(self) -> float:
        """Lateral offset d = d2 + d3 of the tip from the waist [m]."""
        return self.d2 + self.d3


EXAMPLE = Geometry(d1=0.56, d2=0.169, d3=0.09, a2=0.2, a3=0.415)
"""Lengths for examples and tests: about those of later papers of the group, NOT printed in [Kostic2002]."""


def columns(values: ArrayLike, what: str) -> Array:
    """Return (N, 3) numbers after checking them; one sample may be a plain vector."""
    array = numbers(values, what)
    array = array[None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[1] != 3:
        raise DynidentError(f"{what} has shape {np.shape(values)}; give (samples, 3)")
    return array


def states(**given: ArrayLike) -> list[Array]:
    """Return several (N, 3) arrays, by name, after checking that they have as many samples."""
    arrays = [columns(values, what) for what, values in given.items()]
    if len({len(array) for array in arrays}) > 1:
        sizes = ", ".join(f"{what} {len(array)}" for what, array in zip(given, arrays, strict=True))
        raise DynidentError(f"numbers of samples differ ({sizes}); give as many of each")
    return arrays


def forward_kinematics(q: ArrayLike, geometry: Geometry) -> Array:
    """Return the position of the tip (5).

    Parameters
    ----------
    q : array_like, (N, 3)
        Joint angles [rad].
    geometry : Geometry
        Lengths.

    Returns
    -------
    ndarray, (N, 3)
        x(q) in the base frame [m].
    """
    (angles,) = states(q=q)
    g, (q1, q2, q3) = geometry, angles.T
    reach = g.a3 * np.cos(q2 + q3) + g.a2 * np.cos(q2)
    x = np.cos(q1) * reach + g.offset * np.sin(q1)
    y = np.sin(q1) * reach - g.offset * np.cos(q1)
    return np.stack([x, y, g.a3 * np.sin(q2 + q3) + g.a2 * np.sin(q2) + g.d1], axis=1)


def orientation(q: ArrayLike) -> Array:
    """Return the orientation of the tip (4).

    Parameters
    ----------
    q : array_like, (N, 3)
        Joint angles [rad].

    Returns
    -------
    ndarray, (N, 3, 3)
        O(q), columns are the tip's axes in the base frame.
    """
    (angles,) = states(q=q)
    q1, q23 = angles[:, 0], angles[:, 1] + angles[:, 2]
    c1, s1, c23, s23 = np.cos(q1), np.sin(q1), np.cos(q23), np.sin(q23)
    rows = [[c1 * c23, -c1 * s23, s1], [s1 * c23, -s1 * s23, -c1], [s23, c23, np.zeros_like(c1)]]
    return np.moveaxis(np.array(rows), 2, 0)


def postures(x: Any, y: Any, z: Any, geometry: Any, root: Callable[..., Any]) -> list[tuple[Any, Any, Any]]:
    """Return the angles of all postures: the one formula for numbers and for expressions (generated code)."""
    g, d, z = geometry, geometry.offset, z - geometry.d1
    radius = np.sqrt(x * x + y * y)
    depth = root((radius - d) * (radius + d), radius - d, radius + d)
    square = depth * depth + z * z
    span = np.sqrt(square)
    long, short, twice = g.a2 + g.a3, g.a2 - g.a3, 2.0 * g.a2 * g.a3
    # |sin q3| by Heron's factors: exact also where the arm is nearly stretched or folded.
    product = (long - span) * (long + span) * ((span - short) * (span + short))
    sine = root(product, long - span, span - short, span + short) / twice
    c3 = (square - (g.a2 * g.a2 + g.a3 * g.a3)) / twice
    near, side = g.a2 + g.a3 * c3, g.a3 * sine
    turned = [np.arctan2(x * d + y * depth, x * depth - y * d), np.arctan2(x * d - y * depth, -(x * depth) - y * d)]
    bent = np.arctan2(sine, c3)
    angles = []
    for front, elbow in ((1.0, -1.0), (1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0)):
        reach, far = front * depth, elbow * side
        lifted = np.arctan2(near * z - far * reach, near * reach + far * z)
        angles.append((turned[int(front < 0.0)], lifted, elbow * bent))
    return angles


def inverse_kinematics(x: ArrayLike, geometry: Geometry) -> Array:
    """Return all joint angles that bring the tip to x: (6) with both signs of the reach and of the elbow.

    Parameters
    ----------
    x : array_like, (N, 3)
        Positions of the tip [m].
    geometry : Geometry
        Lengths.

    Returns
    -------
    ndarray, (N, 4, 3)
        Angles in (-pi, pi], branches in the order of `POSTURES`; NaN where a branch does not exist, that is where the tip
        would be nearer to the waist axis than the offset d2 + d3, or beyond what a2 and a3 span.
    """
    (tip,) = states(x=x)
    g = geometry
    # Targets that overstep the reach by rounding only count as stretched.
    touch = 4e-13 * (g.a2 + g.a3 + abs(g.offset) + abs(g.d1))

    def root(value: Array, *margins: Array) -> Array:
        with np.errstate(invalid="ignore"):
            beyond = np.any(np.array(margins) < -touch, axis=0)
        return np.where(beyond, np.nan, np.sqrt(np.maximum(value, 0.0)))

    out = np.stack([np.stack(q, axis=1) for q in postures(tip[:, 0], tip[:, 1], tip[:, 2], g, root)], axis=1)
    out[~np.isfinite(out).all(axis=2)] = np.nan
    return out


def jacobian_determinant(q: ArrayLike, geometry: Geometry) -> Array:
    """Return det J = -a2 a3 sin(q3) (a2 cos q2 + a3 cos(q2 + q3)): zero when stretched, folded or over the waist offset.

    Parameters
    ----------
    q : array_like, (N, 3)
        Joint angles [rad].
    geometry : Geometry
        Lengths.

    Returns
    -------
    ndarray, (N,)
        Determinant [m^3].
    """
    (angles,) = states(q=q)
    g, (_, q2, q3) = geometry, angles.T
    return np.asarray(-g.a2 * g.a3 * np.sin(q3) * (g.a2 * np.cos(q2) + g.a3 * np.cos(q2 + q3)))
