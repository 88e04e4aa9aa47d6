"""Work spaces: what a task controller controls, as expressions of the robot's coordinates x.

w = W(x),    w' = J v,    w'' = J a + J' v

A tool's pose with its rotation error taken as a rotation vector, the robot's own coordinates (platforms of parallel robots,
J = 1), or any function of the coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import pi
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError
from dynident.graph.calculus import derivative_matrix, forward
from dynident.graph.elementary import arctan2, both, sqrt, where
from dynident.graph.expression import Node
from dynident.graph.vectors import dot, times
from dynident.mechanics.equations import Equations
from dynident.mechanics.kinematics import end_frame
from dynident.mechanics.solving import NodeRows
from dynident.mechanism.mechanism import Mechanism

Array = NDArray[np.float64]

ROWS = ("x", "y", "z", "rx", "ry", "rz")
STILL = 1e-8  # sine of an angle below which it counts as none, or as half a turn


class Spot(NamedTuple):
    """Where a robot is in a work space of m rows: the place itself, J (m, n) and J' v (m,), as expressions."""

    place: list[Node]
    jacobian: NodeRows
    bias: list[Node]


class Bound(NamedTuple):
    """A work space of one robot: m rows, places told by `size` numbers."""

    rows: int
    size: int
    look: Callable[[Equations], Spot]  # of a robot whose accelerations are zero
    error: Callable[[Sequence[Node], Sequence[Node]], list[Node]]  # (m,), of the wanted and the actual place


class Workspace(Protocol):
    """What a task controller controls."""

    def bind(self, mechanism: Mechanism) -> Bound:
        """Return the work space of a robot after checking that it has one."""


@dataclass(frozen=True)
class ToolSpace:
    """Pose of a link, in base axes: position, and orientation by the rotation vector of R* R^T.

    Parameters
    ----------
    frame : str, optional
        Link name; the only end when omitted.
    rows : sequence of str
        Which of x, y, z, rx, ry, rz are controlled.

    Examples
    --------
    >>> from dynident.control import ToolSpace
    >>> ToolSpace("tool", rows=("x", "y", "z")).rows
    ('x', 'y', 'z')
    """

    frame: str | None = None
    rows: Sequence[str] = ROWS

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(self.rows))
        if not self.rows or not set(self.rows) <= set(ROWS) or len(set(self.rows)) != len(self.rows):
            raise DynidentError(f"tool space: rows are {self.rows}; give some of {', '.join(ROWS)}, each once")

    def bind(self, mechanism: Mechanism) -> Bound:
        """Return the tool space of a robot: errors (p* - p, log(R* R^T)) in base axes [m, rad]."""
        name = end_frame(mechanism, self.frame)
        if mechanism.frame(name)[0] < 0:
            raise DynidentError(f"tool space: link '{name}' does not move; name a link that the joints move")
        pick = [ROWS.index(row) for row in self.rows]

        def look(eq: Equations) -> Spot:
            R, p = eq.pose(name)
            J, columns = eq.jacobian(name), range(mechanism.dof)
            turned = [times(R, (half[0][j], half[1][j], half[2][j])) for half in (J[:3], J[3:]) for j in columns]
            rows = [[turned[j + half * len(columns)][i] for j in columns] for half in range(2) for i in range(3)]
            _, _, linear, angular = eq.link_motion(name)
            bias = [*times(R, linear), *times(R, angular)]
            return Spot([*(x for row in R for x in row), *p], [rows[i] for i in pick], [bias[i] for i in pick])

        def error(wanted: Sequence[Node], actual: Sequence[Node]) -> list[Node]:
            rows = [[list(place[3 * i : 3 * i + 3]) for i in range(3)] for place in (wanted, actual)]
            turn = rotation_vector([[dot(a, b) for b in rows[1]] for a in rows[0]]) if max(pick) > 2 else []
            e = [*(a - b for a, b in zip(wanted[9:], actual[9:], strict=True)), *turn]
            return [e[i] for i in pick]

        return Bound(len(pick), 12, look, error)


@dataclass(frozen=True)
class CoordinateSpace:
    """The robot's own coordinates: for parallel robots whose coordinates are the platform's, J = 1."""

    def bind(self, mechanism: Mechanism) -> Bound:
        """Return the space of a robot's n coordinates."""
        n = mechanism.dof

        def look(eq: Equations) -> Spot:
            one, zero = eq.graph.one, eq.graph.zero
            return Spot(own_coordinates(eq), [[one if i == j else zero for j in range(n)] for i in range(n)], [zero] * n)

        return Bound(n, n, look, _difference)


@dataclass(frozen=True)
class MapSpace:
    """A work space given by a function of the coordinates.

    Parameters
    ----------
    position : callable
        ``position(x)`` returns w (m,) of the coordinates x (n,): sums, products, quotients, powers, sin, cos, tan, sqrt, exp,
        tanh and arctan2 of NumPy. J and J' v follow from it.
    """

    position: Callable[[Array], Array]

    def __post_init__(self) -> None:
        if not callable(self.position):
            raise DynidentError(f"map space: position is a {type(self.position).__name__}; give a function of x")

    def bind(self, mechanism: Mechanism) -> Bound:
        """Return the work space of a robot after trying the function on its coordinates."""
        rows = len(self._traced(Equations(mechanism)))

        def look(eq: Equations) -> Spot:
            w, x = self._traced(eq), own_coordinates(eq)
            J = derivative_matrix(w, x)
            rates = forward([entry for row in J for entry in row], dict(zip(x, eq.v, strict=True)))
            n = len(x)
            return Spot(w, J, [dot(rates[i * n : (i + 1) * n], eq.v) for i in range(len(w))])

        return Bound(rows, rows, look, _difference)

    def _traced(self, eq: Equations) -> list[Node]:
        x = np.empty(eq.mechanism.dof, dtype=object)
        x[:] = own_coordinates(eq)
        try:
            w: Any = np.asarray(self.position(x), dtype=object)
            if w.ndim != 1 or not w.size:
                raise TypeError(f"it returns shape {w.shape}, not (m,)")
            return [eq.graph.node(y if isinstance(y, Node) else float(y)) for y in w]
        except (TypeError, AttributeError, ValueError, IndexError) as error:
            raise DynidentError(
                f"map space: position cannot be written as an expression of the {x.size} coordinates of robot "
                f"'{eq.mechanism.name}' ({error}); write it with sums, products, quotients, powers, sin, cos, tan, sqrt, exp, "
                "tanh and arctan2 of NumPy"
            ) from error


def own_coordinates(eq: Equations) -> list[Node]:
    """Return the independent coordinates of a robot among the positions that its equations take."""
    return [eq.x[int(i)] for i in eq.mechanism.closure.independent] if eq.mechanism.loops else list(eq.x)


def _difference(wanted: Sequence[Node], actual: Sequence[Node]) -> list[Node]:
    return [a - b for a, b in zip(wanted, actual, strict=True)]


def rotation_vector(D: Sequence[Sequence[Node]]) -> list[Node]:
    """Return axis times angle [rad] of a rotation matrix, up to half a turn."""
    x = [0.5 * (D[(i + 2) % 3][(i + 1) % 3] - D[(i + 1) % 3][(i + 2) % 3]) for i in range(3)]
    sine, cosine = sqrt(dot(x, x)), 0.5 * (D[0][0] + D[1][1] + D[2][2] - 1.0)
    scale = where(sine > STILL, arctan2(sine, cosine) / where(sine > STILL, sine, 1.0), 1.0)
    # Half a turn: the axis is the largest column of D + 1.
    columns = [[D[i][j] + (1.0 if i == j else 0.0) for i in range(3)] for j in range(3)]
    largest = [
        where(D[1][1] > D[0][0], where(D[2][2] > D[1][1], c, b), where(D[2][2] > D[0][0], c, a))
        for a, b, c in zip(*columns, strict=True)
    ]
    size = dot(largest, largest)
    turned = pi / sqrt(where(size > 0.0, size, 1.0))
    half = both(sine <= STILL, cosine < 0.0)
    return [where(half, turned * axis, scale * y) for axis, y in zip(largest, x, strict=True)]
