"""Limits of a motion: positions, rates, efforts, tool, loops, collisions, as numbers per sample that must not exceed zero.

    excess = (|x| - limit) / limit                                           rates and efforts
           = (x - upper) / half range                                        positions
           = (clearance + r_i + r_j - distance of the axes) / (r_i + r_j)    links covered by capsules of radius r

-excess is the margin. A limit depends on single samples, q, v, a and jerk, so derivatives by the trajectory's parameters follow
from derivatives by the state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.checks import number, numbers
from dynident.errors import DynidentError
from dynident.excitation.objective import inputs_of, per_coordinate, text
from dynident.graph.algebra import Vector, dot, either, maximum, minimum, plus, scale, sqrt, times, vector, where
from dynident.graph.compiled import Compiled, Evaluated
from dynident.graph.expression import Node
from dynident.mechanics.actuation import actuator_jacobian, actuator_torques
from dynident.mechanics.closure import close_positions, close_rates
from dynident.mechanics.dynamics import forward_kinematics, inverse_dynamics
from dynident.mechanics.equations import Equations
from dynident.mechanics.functions import Motion, Outputs, function_of
from dynident.mechanism.mechanism import Mechanism


class State(NamedTuple):
    """A motion with its jerk, (N, n) each."""

    q: Array
    v: Array
    a: Array
    j: Array


class Limit(ABC):
    """A limit of the motion; a custom one defines `names`, `excess` and `orders`, the derivatives of q that it depends on."""

    orders: ClassVar[tuple[int, ...]] = (0,)

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Name of each column, as in "velocity of joint1"."""

    @property
    def follows(self) -> bool:
        """True when samples must be given as a motion: loops are closed by continuity."""
        robot: Mechanism | None = getattr(self, "mechanism", None)
        return robot is not None and bool(robot.loops)

    @abstractmethod
    def excess(self, state: State) -> Array:
        """Return the excess of every sample over the limit, relative to the limit's size."""


@dataclass(frozen=True, eq=False)
class Box(Limit):
    """Lower and upper limits of q, v, a or jerk of each coordinate."""

    order: int  #: 0 for positions to 3 for the jerk
    lower: Array  #: (n,), infinite where there is no limit
    upper: Array  #: (n,), likewise
    coordinates: tuple[str, ...]  #: Names

    def __post_init__(self) -> None:
        for label in ("lower", "upper"):
            object.__setattr__(self, label, per_coordinate(getattr(self, label), len(self.coordinates), f"{label} limits"))
        for name, low, high in zip(self.coordinates, self.lower, self.upper, strict=True):
            if not low < high:
                raise DynidentError(
                    f"{KINDS[self.order]} of '{name}' is limited to {low:g} ... {high:g}, which is empty; swap or widen them"
                )

    @property
    def orders(self) -> tuple[int, ...]:  # type: ignore[override]
        """Its own order."""
        return (self.order,)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(f"{KINDS[self.order]} of {self.coordinates[i]}" for i in self.columns[0])

    @cached_property
    def columns(self) -> tuple[NDArray[np.int64], Array, Array]:
        """Coordinate of every column, the derivative of its excess by that coordinate, and the limit."""
        ends = np.array([self.upper, self.lower])
        known = np.isfinite(ends)
        if self.order == 0:  # margins are relative to half the range of positions, or to the larger limit of rates
            sizes = np.where(known.all(axis=0), 0.5 * (self.upper - self.lower), 1.0)
        else:
            largest = np.abs(np.where(known, ends, 0.0)).max(axis=0)
            sizes = np.where(largest > 0.0, largest, 1.0)
        side, coordinate = np.nonzero(known)
        return coordinate, np.array([1.0, -1.0])[side] / sizes[coordinate], ends[known]

    def excess(self, state: State) -> Array:
        """Return the excess of every column, (N, k)."""
        coordinate, gain, limit = self.columns
        return np.asarray((state[self.order][:, coordinate] - limit) * gain)


KINDS = ("position", "velocity", "acceleration", "jerk")


@dataclass(frozen=True, eq=False)
class Polygon(Limit):
    """Two coordinates stay inside a polygon, convex or not."""

    pair: tuple[int, int]  #: The two coordinates
    vertices: Array  #: (k, 2), corners in order
    label: str = "polygon"  #: Name

    def __post_init__(self) -> None:
        v = numbers(self.vertices, f"vertices of polygon '{self.label}'")
        if v.ndim != 2 or v.shape[1] != 2 or len(v) < 3 or not np.all(np.isfinite(v)):
            raise DynidentError(f"polygon '{self.label}' has vertices of shape {v.shape}; give at least three pairs of numbers")
        object.__setattr__(self, "vertices", v)

    @property
    def names(self) -> tuple[str, ...]:
        """One column."""
        return (self.label,)

    def excess(self, state: State) -> Array:
        """Return minus the distance to the border inside, plus it outside, over half the polygon's size, (N, 1)."""
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


@dataclass(frozen=True, eq=False)
class Effort(Limit):
    """Torque (or force) and power of the joints, or of the motors of a robot with loops, from the robot's prior parameters."""

    mechanism: Mechanism  #: Robot with prior parameters
    torque: Array  #: (k,), largest torques, infinite where there is none
    power: Array  #: (k,), largest mechanical power [W]
    orders = (0, 1, 2)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the joints or motors."""
        robot = self.mechanism
        return tuple(a.name for a in robot.actuators) if robot.loops else robot.coordinate_names

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(
            f"{what} of {label}"
            for what, limit in (("torque", self.torque), ("power", self.power))
            for label, x in zip(self.labels, limit, strict=True)
            if np.isfinite(x)
        )

    def excess(self, state: State) -> Array:
        """Return the excess of every column, (N, k)."""
        robot = self.mechanism
        motion = Motion(np.arange(float(len(state.q))), state.q, state.v, state.a)
        tau, speed = inverse_dynamics(robot, motion), state.v
        if robot.loops:
            tau = actuator_torques(robot, state.q, tau)
            speed = np.einsum("tkn,tn->tk", actuator_jacobian(robot, state.q), state.v)
        limited, powered = np.isfinite(self.torque), np.isfinite(self.power)
        out = np.abs(tau[:, limited]) / self.torque[limited] - 1.0
        if not powered.any():
            return np.asarray(out)
        power = tau[:, powered] * speed[:, powered]
        return np.hstack([out, np.abs(power) / self.power[powered] - 1.0])


@dataclass(frozen=True, eq=False)
class ToolBox(Limit):
    """A box in space for the origin of a link; a tool height is a box with a lower z only."""

    mechanism: Mechanism  #: Robot
    frame: str  #: Link
    lower: Array  #: (3,), corner in the base frame [m], infinite where there is no limit
    upper: Array  #: (3,), the opposite corner

    @cached_property
    def _box(self) -> Box:
        return Box(0, self.lower, self.upper, tuple(f"{self.frame}.{axis}" for axis in "xyz"))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self._box.names

    def excess(self, state: State) -> Array:
        """Return the excess of every column, (N, k)."""
        place = forward_kinematics(self.mechanism, state.q, self.frame)[1]
        return self._box.excess(State(place, place, place, place))


@dataclass(frozen=True, eq=False)
class Loops(Limit):
    """Passive joints stay inside their limits and the robot away from singularities."""

    mechanism: Mechanism  #: Robot with loops
    lower: Array  #: (n_tree,), of all tree coordinates, infinite where there is no limit
    upper: Array  #: (n_tree,), likewise
    #: Smallest ratio of pivots of the closure, and of singular values of the actuator Jacobian; 0 for no margin
    least: tuple[float, float] = (0.0, 0.0)
    follows = True

    @property
    def _box(self) -> Box:
        return Box(0, self.lower, self.upper, self.mechanism.tree.coordinates)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        extra = ("closure singularity", "actuation singularity") if min(self.least) > 0.0 else ()
        return (*self._box.names, *extra)

    def excess(self, state: State) -> Array:
        """Return the excess of every column, (N, k)."""
        tree = close_positions(self.mechanism, state.q)
        out = self._box.excess(State(tree, tree, tree, tree))
        if min(self.least) <= 0.0:
            return out
        return np.concatenate([out, 1.0 - _distances(self.mechanism, tree) / self.least], axis=1)

    @staticmethod
    def at_home(mechanism: Mechanism) -> list[float]:
        """Return the distances from singularities, of closure and actuation, at the home position."""
        return list(map(float, _distances(mechanism, mechanism.closure.home[None, :])[0]))


def _distances(mechanism: Mechanism, tree: Array) -> Array:
    """Return the ratios of pivots of the closure and of singular values of the actuator Jacobian, (N, 2)."""
    zero = np.zeros((len(tree), mechanism.dof))
    rates = close_rates(mechanism, tree, zero, zero)
    sizes = np.linalg.svd(mechanism.actuator_matrix[0] @ rates.G, compute_uv=False)
    return np.stack([rates.pivot, sizes[:, -1] / sizes[:, 0]], axis=1)


def all_names(limits: Sequence[Limit]) -> tuple[str, ...]:
    """Return the names of all columns."""
    return tuple(name for limit in limits for name in limit.names)


def least_margins(names: Sequence[str], excess: Array) -> dict[str, float]:
    """Return the smallest margin of every limit, as a share, by name, from the worst excess of all columns (k,)."""
    margins: dict[str, float] = {}
    for name, value in zip(names, excess, strict=True):
        margins[name] = min(margins.get(name, np.inf), -float(value))
    return margins


def all_excess(limits: Sequence[Limit], state: State) -> Array:
    """Return the excess of all limits side by side, (N, k)."""
    return np.concatenate([limit.excess(state) for limit in limits], axis=1) if limits else np.zeros((len(state.q), 0))


POSTURES = 200  # random positions at which bodies are compared
POINT = 1e-14  # squared length below which a segment is a point, or two segments are parallel [m^2, m^4]


@dataclass(frozen=True, eq=False)
class Capsule:
    """A segment with a radius, fixed to a link (or to the base, as an obstacle)."""

    link: str  #: Link that carries it
    start: Array  #: (3,), start of the segment in the link's frame [m]
    end: Array  #: (3,), its end
    radius: float  #: Radius [m]

    def __post_init__(self) -> None:
        for label in ("start", "end"):
            point = numbers(getattr(self, label), f"capsule of '{self.link}': {label}")
            if point.shape != (3,) or not np.all(np.isfinite(point)):
                raise DynidentError(
                    f"capsule of '{self.link}': {label} has shape {point.shape}; give three finite numbers in metres"
                )
            object.__setattr__(self, label, point)
        text(self.link, "link of a capsule")
        number(f"capsule of '{self.link}': radius", self.radius, above=0.0, unit="m")


def _ends(robot: Equations, capsule: Capsule) -> tuple[Vector, Vector]:
    """Return both ends of a capsule's axis in the base frame."""
    R, p = robot.pose(capsule.link)
    first, last = (plus(p, times(R, vector(robot.graph, point))) for point in (capsule.start, capsule.end))
    return first, last


def _axes(capsules: Sequence[Capsule]) -> tuple[tuple[object, ...], ...]:
    """Return the cache key of code for capsules: their links and axes."""
    return tuple((c.link, *c.start.tolist(), *c.end.tolist()) for c in capsules)


def _at(robot: Mechanism, function: Compiled | Evaluated, state: State, count: int) -> Array:
    """Return the `count` outputs (N, count) of a function of the positions."""
    x = close_positions(robot, state.q) if robot.loops else state.q
    out, still = np.empty((len(x), count)), np.zeros_like(state.q)
    function(len(x), {**inputs_of(robot, x, still, still), "out": out})
    return out


def segment_distance(a: tuple[Vector, Vector], b: tuple[Vector, Vector]) -> Node:
    """Return the distance of two segments, each given by its ends [Ericson2005, section 5.1.9]."""
    u, w = plus(a[1], scale(a[0], -1.0)), plus(b[1], scale(b[0], -1.0))
    r = plus(a[0], scale(b[0], -1.0))
    uu, uw, ur, ww, wr = dot(u, u), dot(u, w), dot(u, r), dot(w, w), dot(w, r)
    det = uu * ww - uw * uw
    graph = det.graph

    def within(x: Node) -> Node:
        result: Node = minimum(maximum(x, 0.0), 1.0)
        return result

    def over(x: Node, y: Node) -> Node:
        """Return x / y, or 0 where y is zero."""
        result: Node = where(y > POINT, x / maximum(y, POINT), graph.zero)
        return result

    s = within(over(uw * wr - ur * ww, det))
    t = over(uw * s + wr, ww)
    held = within(t)
    moved = either(t < 0.0, either(t > 1.0, ww <= POINT))  # the foot point on the second segment was clamped to an end
    s = where(moved, within(over(uw * held - ur, uu)), s)
    gap = plus(r, plus(scale(u, s), scale(w, -held)))
    distance: Node = sqrt(dot(gap, gap))
    return distance


@dataclass(frozen=True, eq=False)
class Floor(Limit):
    """Capsules stay above a horizontal plane."""

    mechanism: Mechanism  #: Robot
    capsules: Sequence[Capsule]  #: Links that move
    height: float  #: Height of the plane against gravity, in the base frame [m]

    def __post_init__(self) -> None:
        number("floor", self.height)
        if not self.capsules:
            raise DynidentError("the floor has no link to keep away: the description has no inertias; give capsules")

    def reachable(self, lower: Array, upper: Array) -> Floor:
        """Return the limit without bodies that are below the floor at all positions between two (n,), or with all."""
        n = self.mechanism.dof
        if np.shape(lower) != (n,) or np.shape(upper) != (n,):
            raise DynidentError(
                f"lower has shape {np.shape(lower)} and upper {np.shape(upper)}; give one number per coordinate"
            )
        if self.mechanism.loops or not np.isfinite([*lower, *upper]).all():
            return self
        q = np.random.default_rng(0).uniform(lower, upper, (POSTURES, self.mechanism.dof))
        above = np.any(self.excess(State(q, q, q, q)) < 0.0, axis=0).tolist()
        kept = tuple(capsule for capsule, keep in zip(self.capsules, above, strict=True) if keep)
        return Floor(self.mechanism, kept or self.capsules, self.height)

    @property
    def names(self) -> tuple[str, ...]:
        """One per capsule."""
        return tuple(f"floor under {capsule.link}" for capsule in self.capsules)

    @cached_property
    def _function(self) -> Compiled | Evaluated:
        """Height of the lower end of every capsule's axis."""
        g = self.mechanism.gravity
        up = -g / np.linalg.norm(g) if np.any(g) else np.array([0.0, 0.0, 1.0])

        def make(robot: Equations) -> Outputs:
            z = vector(robot.graph, up)
            ends = [_ends(robot, capsule) for capsule in self.capsules]
            return {"out": [minimum(dot(first, z), dot(last, z)) for first, last in ends]}

        return function_of(self.mechanism, "capsule_heights", make, (_axes(self.capsules), tuple(up.tolist())))

    def excess(self, state: State) -> Array:
        """Return the excess of every column, (N, k)."""
        heights = _at(self.mechanism, self._function, state, len(self.capsules))
        radius = np.array([capsule.radius for capsule in self.capsules])
        return np.asarray((self.height + radius - heights) / (2.0 * radius))


@dataclass(frozen=True, eq=False)
class Collision(Limit):
    """Capsules keep a clearance from each other."""

    mechanism: Mechanism  #: Robot
    capsules: Sequence[Capsule]  #: Links and obstacles
    clearance: float = 0.0  #: Smallest distance of surfaces [m]
    ignore: Sequence[tuple[str, str]] = ()  #: Pairs of links that may touch; links that share a joint may always

    def __post_init__(self) -> None:
        known = {body.name for body in self.mechanism.bodies}
        for capsule in self.capsules:
            if capsule.link not in known:
                raise DynidentError(f"capsule of unknown link '{capsule.link}'; links are {', '.join(sorted(known))}")
        if not self.pairs:
            raise DynidentError("no two capsules can collide; give capsules of links that do not share a joint, or obstacles")

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Capsules to compare."""
        allowed = {frozenset(pair) for pair in self.ignore}
        allowed |= {frozenset((joint.parent, joint.child)) for joint in self.mechanism.joints}
        return [
            (i, j)
            for (i, a), (j, b) in combinations(enumerate(self.capsules), 2)
            if a.link != b.link and frozenset((a.link, b.link)) not in allowed
        ]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the pairs."""
        return tuple(f"clearance of {self.capsules[i].link} and {self.capsules[j].link}" for i, j in self.pairs)

    @cached_property
    def _function(self) -> Compiled | Evaluated:
        """Distances of the axes of all pairs."""

        def make(robot: Equations) -> Outputs:
            ends = [_ends(robot, capsule) for capsule in self.capsules]
            return {"out": [segment_distance(ends[i], ends[j]) for i, j in self.pairs]}

        return function_of(self.mechanism, "capsule_gaps", make, (_axes(self.capsules), tuple(self.pairs)))

    def excess(self, state: State) -> Array:
        """Return the excess of every column, (N, k)."""
        gaps = _at(self.mechanism, self._function, state, len(self.pairs))
        reach = np.array([self.capsules[i].radius + self.capsules[j].radius for i, j in self.pairs])
        return np.asarray((self.clearance + reach - gaps) / reach)
