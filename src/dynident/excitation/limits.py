"""Limits of a motion: each is a number per sample that must not exceed zero, relative to the limit's own size.

excess = (|x| - limit) / limit for rates and efforts, (x - upper) / half range for positions; -excess is the margin. A limit
sees one sample at a time, q, v, a and jerk, so derivatives by the trajectory's parameters follow from derivatives by the state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError

Array = NDArray[np.float64]


class State(NamedTuple):
    """A motion with its jerk, (N, n) each."""

    q: Array
    v: Array
    a: Array
    j: Array


class Limit(Protocol):
    """What a limit can do."""

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each column, as in "velocity of joint1"."""

    @property
    def orders(self) -> tuple[int, ...]:
        """Which of q, v, a, jerk (0 to 3) it depends on."""

    @property
    def follows(self) -> bool:
        """True when samples must be given as a motion (loops are closed by continuity)."""

    def excess(self, state: State) -> Array:
        """Return (N, k), not above zero where the limit is kept.

        Parameters
        ----------
        state : object
            Motion on the grid, with what the limits need of it.

        Returns
        -------
        ndarray
            How far each sample is beyond the limit; negative inside.
        """


@dataclass(frozen=True, eq=False)
class Box:
    """Lower and upper limits of q, v, a or jerk of each coordinate.

    Parameters
    ----------
    order : int
        0 for positions to 3 for the jerk.
    lower, upper : ndarray, (n,)
        Limits, infinite where there is none.
    coordinates : tuple of str
        Names.
    """

    order: int
    lower: Array
    upper: Array
    coordinates: tuple[str, ...]
    follows = False

    def __post_init__(self) -> None:
        for name, low, high in zip(self.coordinates, self.lower, self.upper, strict=True):
            if not low < high:
                raise DynidentError(
                    f"{KINDS[self.order]} of '{name}' is limited to {low:g} ... {high:g}, which is empty; swap or widen them"
                )

    @property
    def orders(self) -> tuple[int, ...]:
        """Its own order."""
        return (self.order,)

    @cached_property
    def sides(self) -> list[tuple[int, float, float]]:
        """Coordinate, sign and limit of every column: sign * x <= sign * limit."""
        both = [(i, 1.0, float(x)) for i, x in enumerate(self.upper)] + [(i, -1.0, float(x)) for i, x in enumerate(self.lower)]
        return [side for side in both if np.isfinite(side[2])]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(f"{KINDS[self.order]} of {self.coordinates[i]}" for i, _, _ in self.sides)

    def size(self, i: int) -> float:
        """Return what margins of a coordinate are relative to.

        Parameters
        ----------
        i : int
            Coordinate.

        Returns
        -------
        float
            Half the range of positions; the larger limit of rates.
        """
        low, high = self.lower[i], self.upper[i]
        if self.order == 0:
            return float(0.5 * (high - low)) if np.isfinite(low) and np.isfinite(high) else 1.0
        return float(max((abs(x) for x in (low, high) if np.isfinite(x)), default=1.0)) or 1.0

    def excess(self, state: State) -> Array:
        """Return (N, k).

        Parameters
        ----------
        state : State
            Motion.

        Returns
        -------
        ndarray, (N, k)
            Not above zero inside.
        """
        chosen, gain, limit = self._columns
        return np.asarray((state[self.order][:, chosen] - limit) * gain)

    @property
    def gains(self) -> tuple[NDArray[np.int64], Array]:
        """Coordinate of every column, and the derivative of its excess by that coordinate."""
        return self._columns[:2]

    @cached_property
    def _columns(self) -> tuple[NDArray[np.int64], Array, Array]:
        """Coordinate, sign over size, and limit of every column."""
        sides = self.sides
        gains = [sign / self.size(i) for i, sign, _ in sides]
        return np.array([i for i, _, _ in sides], dtype=np.int64), np.array(gains), np.array([x for _, _, x in sides])


KINDS = ("position", "velocity", "acceleration", "jerk")


@dataclass(frozen=True, eq=False)
class TaskBox:
    """Limits of any function of the position, such as the Cartesian coordinates of document 0.

    Parameters
    ----------
    function : callable
        ``function(q)`` with (N, n) returns (N, m).
    lower, upper : ndarray, (m,)
        Limits.
    coordinates : tuple of str
        Names of the m numbers.
    """

    function: Callable[[Array], Array]
    lower: Array
    upper: Array
    coordinates: tuple[str, ...]
    orders = (0,)
    follows = True

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return Box(0, self.lower, self.upper, self.coordinates).names

    def excess(self, state: State) -> Array:
        """Return (N, k).

        Parameters
        ----------
        state : State
            Motion.

        Returns
        -------
        ndarray, (N, k)
            Not above zero inside.
        """
        x = self.function(state.q)
        return Box(0, self.lower, self.upper, self.coordinates).excess(State(x, x, x, x))


@dataclass(frozen=True, eq=False)
class Polygon:
    """Two coordinates stay inside a polygon, convex or not.

    Parameters
    ----------
    pair : tuple of int
        The two coordinates.
    vertices : ndarray, (k, 2)
        Corners in order.
    label : str
        Name.
    """

    pair: tuple[int, int]
    vertices: Array
    label: str = "polygon"
    orders = (0,)
    follows = False

    def __post_init__(self) -> None:
        v = np.asarray(self.vertices, dtype=np.float64)
        if v.ndim != 2 or v.shape[1] != 2 or len(v) < 3 or not np.all(np.isfinite(v)):
            raise DynidentError(f"polygon '{self.label}' has vertices of shape {v.shape}; give at least three pairs of numbers")
        object.__setattr__(self, "vertices", v)

    @property
    def names(self) -> tuple[str, ...]:
        """One column."""
        return (self.label,)

    def excess(self, state: State) -> Array:
        """Return minus the distance to the border inside, plus it outside, over half the polygon's size.

        Parameters
        ----------
        state : State
            Motion.

        Returns
        -------
        ndarray, (N, 1)
            Not above zero inside.
        """
        x = state.q[:, list(self.pair)]
        a = self.vertices
        b = np.roll(a, -1, axis=0)
        edge, out = b - a, x[:, None] - a
        along = np.clip(np.sum(out * edge, axis=2) / np.sum(edge * edge, axis=1), 0.0, 1.0)
        distance = np.min(np.linalg.norm(out - along[:, :, None] * edge, axis=2), axis=1)
        above, cross = x[:, None, 1] >= a[:, 1], edge[:, 0] * out[:, :, 1] - edge[:, 1] * out[:, :, 0]
        before = x[:, None, 1] < b[:, 1]
        winding = np.sum(above & before & (cross > 0.0), axis=1) - np.sum(~above & ~before & (cross < 0.0), axis=1)
        half = 0.5 * float(np.max(np.ptp(a, axis=0)))
        return np.asarray(np.where(winding != 0, -distance, distance) / half)[:, None]


def all_names(limits: Sequence[Limit]) -> tuple[str, ...]:
    """Return the names of all columns.

    Parameters
    ----------
    limits : sequence of Limit
        Limits.

    Returns
    -------
    tuple of str
        Names.
    """
    return tuple(name for limit in limits for name in limit.names)


def all_excess(limits: Sequence[Limit], state: State) -> Array:
    """Return the excess of all limits.

    Parameters
    ----------
    limits : sequence of Limit
        Limits.
    state : State
        Motion.

    Returns
    -------
    ndarray, (N, k)
        Columns of all limits side by side.
    """
    return np.concatenate([limit.excess(state) for limit in limits], axis=1) if limits else np.zeros((len(state.q), 0))
