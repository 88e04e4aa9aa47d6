"""Work spaces and their control laws; redundant robots keep their posture.

    w = W(x),    w' = J v,    w'' = J a + J' v

is a tool's pose with its rotation error as a rotation vector, or the robot's own coordinates (platforms of parallel robots,
J = 1).

    TaskPID             F = kp e + kd e' + ki int e dt,      A^T tau = J^T F + ID_model(reference) + N^T M a_posture
    TaskComputedTorque  w'' = w_ref'' + kp e + kd e' + ki int e dt,    a = J^-1 (w'' - J' v),    A^T tau = ID_model(x, v, a)
    TaskCascade         w_v0 = kv e + share w_ref',          rho_v0 = A J^-1 w_v0,   then the loops of every actuator

[Roldan2017, figs. 2.23, 3.14 and 3.15, section 3.3.3; Callegari2006]. With fewer rows than coordinates

    J^-1 becomes J+ = M^-1 J^T (J M^-1 J^T)^-1,    N = 1 - J+ J

the inverse of least kinetic energy. N projects onto the null space of the work space, for motions (J N = 0) and for inertial
forces (J M^-1 N^T = 0): there the posture follows the reference, a_posture = kd (v_ref - v) + kp (q_ref - q), plus a_ref in
laws that command accelerations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from math import pi
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dynident.checks import gain, number
from dynident.control.laws import Cascade, check_gains, optional_model
from dynident.errors import DynidentError, require
from dynident.graph.algebra import NodeRows, arctan2, both, dot, sqrt, times, where
from dynident.graph.expression import Node
from dynident.mechanics.dynamics import end_frame
from dynident.mechanics.equations import Equations
from dynident.mechanism.mechanism import Mechanism

ROWS = ("x", "y", "z", "rx", "ry", "rz")
STILL = 1e-8  # sine below which an angle counts as zero, or as half a turn


class Spot(NamedTuple):
    """State of a robot in a work space of m rows: place, J (m, n) and J' v (m,), as expressions."""

    place: list[Node]
    jacobian: NodeRows
    bias: list[Node]


class Bound(NamedTuple):
    """A work space of one robot: m rows, a place has `size` numbers."""

    rows: int
    size: int
    look: Callable[[Equations], Spot]  # of a robot whose accelerations are zero
    error: Callable[[Sequence[Node], Sequence[Node]], list[Node]]  # (m,), of the reference and the actual place


class Workspace(Protocol):
    """The controlled quantities of a task controller."""

    def bind(self, mechanism: Mechanism) -> Bound:
        """Return the work space of a robot, after checking that it is possible."""


@dataclass(frozen=True)
class ToolSpace:
    """Pose of a link, in base axes: position, and orientation by the rotation vector of R* R^T.

    Examples
    --------
    >>> from dynident.control import ToolSpace
    >>> ToolSpace("tool", rows=("x", "y", "z")).rows
    ('x', 'y', 'z')
    """

    frame: str | None = None  #: Link name; the only end when omitted
    rows: Sequence[str] = ROWS  #: Which of x, y, z, rx, ry, rz are controlled

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
    """Coordinates of the robot as work space, J = 1; for parallel robots with platform coordinates."""

    def bind(self, mechanism: Mechanism) -> Bound:
        """Return the space of a robot's n coordinates."""
        n = mechanism.dof

        def look(eq: Equations) -> Spot:
            one, zero = eq.graph.one, eq.graph.zero
            return Spot(
                independent_coordinates(eq), [[one if i == j else zero for j in range(n)] for i in range(n)], [zero] * n
            )

        return Bound(n, n, look, _difference)


def independent_coordinates(eq: Equations) -> list[Node]:
    """Return the independent coordinates of a robot among the positions in its equations."""
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


def bound_space(owner: str, space: Workspace, mechanism: Mechanism) -> Bound:
    """Return the work space of a robot, or refuse one with more rows than coordinates."""
    bound = space.bind(mechanism)
    if bound.rows > mechanism.dof:
        raise DynidentError(
            f"{owner}: the task space has {bound.rows} rows but robot '{mechanism.name}' has {mechanism.dof} coordinates; "
            "choose fewer rows, as in ToolSpace(rows=('x', 'y'))"
        )
    return bound


def _check_space(space: object) -> None:
    if not callable(getattr(space, "bind", None)):
        raise DynidentError(f"space is a {type(space).__name__}; give a ToolSpace or CoordinateSpace")


def _check(law: TaskPID | TaskComputedTorque) -> None:
    """Check the common fields of the two laws that command torques."""
    _check_space(law.space)
    check_gains(law.owner, law)
    if law.posture is not None:
        values = np.asarray(gain(law.owner, "posture", law.posture))
        if values.shape != (2,):
            raise DynidentError(f"{law.owner}: posture has shape {values.shape}; give two numbers, kp [1/s^2] and kd [1/s]")
        object.__setattr__(law, "posture", tuple(values.tolist()))


@dataclass(frozen=True)
class TaskPID:
    """PID in a work space of m rows, at most as many as the robot has coordinates; gains are scalars, or one per row."""

    owner: ClassVar[str] = "task PID"

    space: Workspace  #: Controlled quantities: ``ToolSpace("tool")`` or ``CoordinateSpace()``
    kp: ArrayLike  #: (m,), stiffness [N/m, N m/rad]
    kd: ArrayLike  #: (m,), damping [N s/m, N m s/rad]
    ki: ArrayLike = 0.0  #: (m,), integral gain [N/(m s), N m/(rad s)]; it waits while an actuator is at its limit
    _: KW_ONLY
    cycle: float  #: Cycle time [s]
    #: (m,), corner frequency of a first-order low-pass on the velocity error [Hz]; 0 is none
    derivative_filter: ArrayLike = 0.0
    feedforward: Mechanism | None = None  #: Model whose inverse dynamics on the reference is added
    preload: ArrayLike = 0.0  #: (k,), torques whose internal part is added [N m, N]; over-actuated robots only
    #: Time from the sampling of the sensors to the command at the motors [s], a whole multiple of the simulation's step
    delay: float = 0.0
    #: (2,), gains kp [1/s^2] and kd [1/s] of the posture in the null space of a work space with fewer rows than
    #: coordinates; when omitted as fast as the slowest row at the start of the run, kp = min_i kp_i (J M^-1 J^T)_ii, and
    #: critically damped
    posture: ArrayLike | None = None

    def __post_init__(self) -> None:
        _check(self)
        optional_model(self.owner, "feedforward", self.feedforward)


@dataclass(frozen=True)
class TaskComputedTorque:
    """Computed torque in a work space with at most as many rows as the robot has coordinates.

    The model must contain everything that the motors move, including rotor and gear inertia and friction as joint terms
    (ia, fv, fc), omitted in [Roldan2017, section 3.3.3]. Its dry friction has the sign of the reference velocity.
    """

    owner: ClassVar[str] = "task computed torque"

    space: Workspace  #: As of `TaskPID`
    model: Mechanism  #: Model of the controller, kinematics and dynamics; its coordinates are those of the robot
    kp: ArrayLike  #: (m,), gain of the position error [1/s^2]
    kd: ArrayLike  #: (m,), gain of the velocity error [1/s]
    ki: ArrayLike = 0.0  #: (m,), gain of the error's integral [1/s^3]; it waits while an actuator is at its limit
    _: KW_ONLY
    cycle: float  #: As of `TaskPID`
    derivative_filter: ArrayLike = 0.0  #: As of `TaskPID`
    preload: ArrayLike = 0.0  #: As of `TaskPID`
    delay: float = 0.0  #: As of `TaskPID`
    #: (2,), gains kp [1/s^2] and kd [1/s] of the posture in the null space of a work space with fewer rows than
    #: coordinates; the smallest of the task when omitted
    posture: ArrayLike | None = None

    def __post_init__(self) -> None:
        require(self.model, Mechanism, f"{self.owner}: model")
        _check(self)


@dataclass(frozen=True)
class TaskCascade:
    """P position loop in a work space, PI velocity and current loops of every actuator."""

    owner: ClassVar[str] = "task cascade"

    space: Workspace  #: Controlled quantities, with at most as many rows as the robot has coordinates
    #: Gains, cycles, filters, delays and limits. Position gain, filter and feed-forward share are per row of the work
    #: space; all others per actuator.
    loops: Cascade
    _: KW_ONLY
    #: Gain [1/s] of the posture in the null space of a work space with fewer rows than coordinates, in addition to
    #: the smallest share of its velocity; the smallest position gain when omitted
    posture: float | None = None

    def __post_init__(self) -> None:
        require(self.loops, Cascade, f"{self.owner}: loops")
        _check_space(self.space)
        posture = float(np.min(self.loops.position_gain)) if self.posture is None else self.posture
        object.__setattr__(self, "posture", number(f"{self.owner}: posture", posture, least=0.0, unit="1/s"))

    @property
    def delay(self) -> float:
        """Time from the sampling of the innermost loop to its command at the motor [s]."""
        return self.loops.delay

    @property
    def cycle(self) -> float:
        """Cycle time of the position loop [s]."""
        return self.loops.cycle
