"""Collision by capsules: links are covered by segments with a radius, and pairs of them keep a clearance.

excess = (clearance + r_i + r_j - distance of the axes) / (r_i + r_j)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dynident.checks import number, numbers
from dynident.errors import DynidentError
from dynident.excitation.checks import text
from dynident.excitation.equations import inputs_of
from dynident.excitation.limits import Limit, State
from dynident.graph.compiled import Compiled
from dynident.graph.elementary import either, maximum, minimum, sqrt, where
from dynident.graph.expression import Node
from dynident.graph.vectors import Vector, dot, plus, scale, times, vector
from dynident.mechanics.closure import close_positions
from dynident.mechanics.equations import Equations
from dynident.mechanics.functions import Outputs, function_of
from dynident.mechanism.mechanism import Mechanism

Array = NDArray[np.float64]

POSTURES = 200  # random positions at which bodies are compared
POINT = 1e-14  # squared length below which a segment is a point, or two segments are parallel [m^2, m^4]


@dataclass(frozen=True, eq=False)
class Capsule:
    """A segment with a radius, fixed to a link (or to the base, as an obstacle).

    Parameters
    ----------
    link : str
        Link that carries it.
    start, end : array_like, (3,)
        Ends of the segment in the link's frame [m].
    radius : float
        Radius [m].
    """

    link: str
    start: Array
    end: Array
    radius: float

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
    """Return what code about capsules depends on: their links and axes."""
    return tuple((c.link, *c.start.tolist(), *c.end.tolist()) for c in capsules)


def _at(robot: Mechanism, function: Compiled, state: State, count: int) -> Array:
    """Return the `count` numbers (N, count) that a function of the positions gives."""
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
        """Return x / y, and 0 where y vanishes."""
        result: Node = where(y > POINT, x / maximum(y, POINT), graph.zero)
        return result

    s = within(over(uw * wr - ur * ww, det))
    t = over(uw * s + wr, ww)
    held = within(t)
    moved = either(t < 0.0, either(t > 1.0, ww <= POINT))  # the foot on the second segment had to go to one of its ends
    s = where(moved, within(over(uw * held - ur, uu)), s)
    gap = plus(r, plus(scale(u, s), scale(w, -held)))
    distance: Node = sqrt(dot(gap, gap))
    return distance


@dataclass(frozen=True, eq=False)
class Floor(Limit):
    """Capsules stay above a horizontal plane.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    capsules : sequence of Capsule
        Links that move.
    height : float
        Of the plane along the opposite of gravity, in the base frame [m].
    """

    mechanism: Mechanism
    capsules: Sequence[Capsule]
    height: float

    def __post_init__(self) -> None:
        number("floor", self.height)
        if not self.capsules:
            raise DynidentError("the floor has no link to keep away: the description has no inertias; give capsules")

    def reachable(self, lower: Array, upper: Array) -> Floor:
        """Return the limit without bodies that no motion between two positions (n,) brings above the floor, or with all."""
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
    def _function(self) -> Compiled:
        """Height of the lower end of every capsule's axis."""
        g = self.mechanism.gravity
        up = -g / np.linalg.norm(g) if np.any(g) else np.array([0.0, 0.0, 1.0])

        def make(robot: Equations) -> Outputs:
            z = vector(robot.graph, up)
            ends = [_ends(robot, capsule) for capsule in self.capsules]
            return {"out": [minimum(dot(first, z), dot(last, z)) for first, last in ends]}

        return function_of(self.mechanism, "capsule_heights", make, (_axes(self.capsules), tuple(up.tolist())))

    def _excess(self, state: State) -> Array:
        heights = _at(self.mechanism, self._function, state, len(self.capsules))
        radius = np.array([capsule.radius for capsule in self.capsules])
        return np.asarray((self.height + radius - heights) / (2.0 * radius))


@dataclass(frozen=True, eq=False)
class Collision(Limit):
    """Capsules keep a clearance from each other.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    capsules : sequence of Capsule
        Links and obstacles.
    clearance : float
        Smallest distance of surfaces [m].
    ignore : sequence of tuple of str
        Pairs of links that may touch; links that share a joint may always.
    """

    mechanism: Mechanism
    capsules: Sequence[Capsule]
    clearance: float = 0.0
    ignore: Sequence[tuple[str, str]] = ()

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
    def _function(self) -> Compiled:
        """Distances of the axes of all pairs."""

        def make(robot: Equations) -> Outputs:
            ends = [_ends(robot, capsule) for capsule in self.capsules]
            return {"out": [segment_distance(ends[i], ends[j]) for i, j in self.pairs]}

        return function_of(self.mechanism, "capsule_gaps", make, (_axes(self.capsules), tuple(self.pairs)))

    def _excess(self, state: State) -> Array:
        gaps = _at(self.mechanism, self._function, state, len(self.pairs))
        reach = np.array([self.capsules[i].radius + self.capsules[j].radius for i, j in self.pairs])
        return np.asarray((self.clearance + reach - gaps) / reach)
