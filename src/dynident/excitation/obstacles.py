"""Collision by capsules: links are covered by segments with a radius, and pairs of them keep a clearance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError
from dynident.excitation.limits import State
from dynident.mechanics import forward_kinematics
from dynident.mechanism import Mechanism

Array = NDArray[np.float64]


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
            point = np.asarray(getattr(self, label), dtype=np.float64)
            if point.shape != (3,) or not np.all(np.isfinite(point)):
                raise DynidentError(
                    f"capsule of '{self.link}': {label} has shape {point.shape}; give three finite numbers in metres"
                )
            object.__setattr__(self, label, point)
        if not (np.isfinite(self.radius) and self.radius > 0.0):
            raise DynidentError(f"capsule of '{self.link}': radius is {self.radius}; give a radius above zero in metres")


def segment_distance(a0: Array, a1: Array, b0: Array, b1: Array) -> Array:
    """Return the distance of segments, sample by sample (Ericson, Real-Time Collision Detection, 5.1.9).

    Parameters
    ----------
    a0, a1, b0, b1 : ndarray, (N, 3)
        Ends of the two segments.

    Returns
    -------
    ndarray, (N,)
        Distances.
    """
    d1, d2, r = a1 - a0, b1 - b0, a0 - b0
    a, e, f = np.sum(d1 * d1, axis=1), np.sum(d2 * d2, axis=1), np.sum(d2 * r, axis=1)
    b, c = np.sum(d1 * d2, axis=1), np.sum(d1 * r, axis=1)
    tiny = 1e-14
    det = a * e - b * b
    s = np.where(det > tiny, np.clip((b * f - c * e) / np.where(det > tiny, det, 1.0), 0.0, 1.0), 0.0)
    t = np.where(e > tiny, (b * s + f) / np.where(e > tiny, e, 1.0), 0.0)
    held = np.clip(t, 0.0, 1.0)
    s = np.where((t != held) | (e <= tiny), np.clip((b * held - c) / np.where(a > tiny, a, 1.0), 0.0, 1.0), s)
    s = np.where(a > tiny, s, 0.0)
    return np.asarray(np.linalg.norm(a0 + s[:, None] * d1 - b0 - held[:, None] * d2, axis=1))


@dataclass(frozen=True, eq=False)
class Collision:
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
    orders = (0,)

    def __post_init__(self) -> None:
        known = {body.name for body in self.mechanism.bodies}
        for capsule in self.capsules:
            if capsule.link not in known:
                raise DynidentError(f"capsule of unknown link '{capsule.link}'; links are {', '.join(sorted(known))}")
        if not self.pairs:
            raise DynidentError("no two capsules can collide; give capsules of links that do not share a joint, or obstacles")

    @property
    def follows(self) -> bool:
        """True with loops."""
        return bool(self.mechanism.loops)

    @property
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

    def excess(self, state: State) -> Array:
        """Return (clearance - distance) over the sum of the radii of each pair.

        Parameters
        ----------
        state : State
            Motion.

        Returns
        -------
        ndarray, (N, k)
            Not above zero without collision.
        """
        poses = {link: forward_kinematics(self.mechanism, state.q, link) for link in {c.link for c in self.capsules}}
        tips = []
        for capsule in self.capsules:
            R, p = poses[capsule.link]
            tips.append((p + R @ capsule.start, p + R @ capsule.end))
        columns = []
        for i, j in self.pairs:
            reach = self.capsules[i].radius + self.capsules[j].radius
            columns.append((self.clearance + reach - segment_distance(*tips[i], *tips[j])) / reach)
        return np.stack(columns, axis=1)
