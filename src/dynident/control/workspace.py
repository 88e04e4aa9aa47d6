"""Work spaces: what a task controller controls, as a function of the robot's coordinates x.

w = W(x),    w' = J v,    w'' = J a + J' v

A tool's pose with its rotation error taken as a rotation vector, the robot's own coordinates (platforms of parallel robots,
J = 1), or any pair of callables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dynident.control.evaluate import Evaluator, rotation_vector
from dynident.errors import DynidentError
from dynident.mechanics import end_frame
from dynident.mechanism import Mechanism

Array = NDArray[np.float64]

ROWS = ("x", "y", "z", "rx", "ry", "rz")
STEP = 1e-5  # change of a coordinate [rad or m] over which a callable's Jacobian is differenced


class Spot(NamedTuple):
    """A place in a work space of m rows.

    Parameters
    ----------
    where : Any
        The place itself, which its work space knows to compare.
    velocity : ndarray, (m,)
        w'.
    bias : ndarray, (m,)
        J' v.
    jacobian : ndarray, (m, n)
        J.
    """

    where: Any
    velocity: Array
    bias: Array
    jacobian: Array


class Bound(NamedTuple):
    """A work space of one robot.

    Parameters
    ----------
    rows : int
        m.
    placed : bool
        True when `spot` looks at the robot, which must have been placed; False when x and v are enough.
    spot : callable
        ``spot(robot, x, v)`` returns the `Spot` of an `Evaluator`.
    error : callable
        ``error(wanted, actual)`` returns the difference (m,) of two spots.
    """

    rows: int
    placed: bool
    spot: Callable[[Evaluator, Array, Array], Spot]
    error: Callable[[Spot, Spot], Array]


class Workspace(Protocol):
    """What a task controller controls."""

    def bind(self, mechanism: Mechanism) -> Bound:
        """Return the work space of a robot after checking that it has one.

        Parameters
        ----------
        mechanism : Mechanism
            Robot.

        Returns
        -------
        Bound
            Its number of rows and its functions.
        """


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
        """Return the tool space of a robot.

        Parameters
        ----------
        mechanism : Mechanism
            Robot that moves the link.

        Returns
        -------
        Bound
            Its rows, with errors (p* - p, log(R* R^T)) in base axes [m, rad].
        """
        name = end_frame(mechanism, self.frame)
        if mechanism.frame(name)[0] < 0:
            raise DynidentError(f"tool space: link '{name}' does not move; name a link that the joints move")
        pick = np.array([ROWS.index(row) for row in self.rows])
        turns, whole, still = bool(np.any(pick > 2)), self.rows == ROWS, np.zeros(3)

        def spot(robot: Evaluator, x: Array, v: Array) -> Spot:
            pose = robot.pose(name)
            where = pose.rotation, pose.position
            if whole:
                return Spot(where, pose.twist, pose.bias, pose.jacobian)
            return Spot(where, pose.twist[pick], pose.bias[pick], pose.jacobian[pick])

        def error(wanted: Spot, actual: Spot) -> Array:
            turn = rotation_vector(wanted.where[0] @ actual.where[0].T) if turns else still
            e = np.concatenate([wanted.where[1] - actual.where[1], turn])
            return e if whole else e[pick]

        return Bound(pick.size, True, spot, error)


@dataclass(frozen=True)
class CoordinateSpace:
    """The robot's own coordinates: for parallel robots whose coordinates are the platform's, J = 1."""

    def bind(self, mechanism: Mechanism) -> Bound:
        """Return the space of a robot's coordinates.

        Parameters
        ----------
        mechanism : Mechanism
            Robot.

        Returns
        -------
        Bound
            n rows.
        """
        one, zero = np.eye(mechanism.dof), np.zeros(mechanism.dof)
        return Bound(mechanism.dof, False, lambda robot, x, v: Spot(x, v, zero, one), _difference)


@dataclass(frozen=True)
class MapSpace:
    """A work space given by two callables.

    Parameters
    ----------
    position : callable
        ``position(x)`` returns w (m,) of the coordinates x (n,).
    jacobian : callable
        ``jacobian(x)`` returns J (m, n).
    """

    position: Callable[[Array], Array]
    jacobian: Callable[[Array], Array]

    def __post_init__(self) -> None:
        for name in ("position", "jacobian"):
            if not callable(getattr(self, name)):
                raise DynidentError(f"map space: {name} is a {type(getattr(self, name)).__name__}; give a function of x")

    def bind(self, mechanism: Mechanism) -> Bound:
        """Return the work space of a robot after trying the callables at its home (or zero) position.

        Parameters
        ----------
        mechanism : Mechanism
            Robot.

        Returns
        -------
        Bound
            m rows; J' v is a central difference of J along v.
        """
        home = np.zeros(mechanism.dof)
        if mechanism.loops:
            home = np.asarray(mechanism.closure.home[mechanism.closure.independent], dtype=np.float64)
        w, J = np.shape(self.position(home)), np.shape(self.jacobian(home))
        if len(w) != 1 or (w[0], mechanism.dof) != J:
            raise DynidentError(
                f"map space: position gives shape {w} and jacobian {J}; give (m,) and (m, {mechanism.dof}) for robot "
                f"'{mechanism.name}'"
            )

        def spot(robot: Evaluator, x: Array, v: Array) -> Spot:
            matrix = np.asarray(self.jacobian(x), dtype=np.float64)
            fastest = float(np.abs(v).max(initial=0.0))
            bias = np.zeros(w[0])
            if fastest > 0.0:
                step = STEP / fastest
                change = np.asarray(self.jacobian(x + step * v)) - np.asarray(self.jacobian(x - step * v))
                bias = np.asarray(change @ v / (2.0 * step))
            return Spot(np.asarray(self.position(x), dtype=np.float64), matrix @ v, bias, matrix)

        return Bound(w[0], False, spot, _difference)


def _difference(wanted: Spot, actual: Spot) -> Array:
    return np.asarray(wanted.where - actual.where)
