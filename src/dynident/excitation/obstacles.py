"""Collision by capsules: links are covered by segments with a radius, and pairs of them keep a clearance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError
from dynident.excitation.limits import State
from dynident.mechanics.batch import at_rest
from dynident.mechanics.kinematics import body_motions
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
    """Return the distance of segments, sample by sample.

    Parameters
    ----------
    a0, a1, b0, b1 : ndarray, (N, 3)
        Ends of the two segments.

    Returns
    -------
    ndarray, (N,)
        Distances.
    """
    from dynident.excitation.kernels import segment_gap  # noqa: PLC0415 - numba is imported on first use

    T = np.stack([np.stack([a0, a1], axis=1), np.stack([b0, b1], axis=1)], axis=1)  # (N, 2, 2, 3)
    return np.array([segment_gap(x, 0, 1) for x in T])


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
    def _arrays(self) -> tuple[NDArray[np.int64], Array, NDArray[np.int64], Array]:
        """Nodes that carry the capsules, ends in those nodes' frames, pairs, and the sums of their radii."""
        places = [self.mechanism.frame(capsule.link) for capsule in self.capsules]
        ends = np.array(
            [
                [place.rotation @ x + place.translation for x in (capsule.start, capsule.end)]
                for capsule, (_, place) in zip(self.capsules, places, strict=True)
            ]
        )
        reach = np.array([self.capsules[i].radius + self.capsules[j].radius for i, j in self.pairs])
        return np.array([node for node, _ in places]), ends, np.array(self.pairs), reach

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
        from dynident.excitation.kernels import capsule_gaps  # noqa: PLC0415 - numba is imported on first use

        node, ends, pairs, reach = self._arrays
        R, p, _, _ = body_motions(self.mechanism, at_rest(self.mechanism, state.q))
        gaps = np.empty((len(state.q), len(pairs)))
        capsule_gaps(R, p, node, ends, pairs, gaps)
        return np.asarray((self.clearance + reach - gaps) / reach)
