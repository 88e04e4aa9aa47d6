"""Where joints can move: rates of joins, how far each joint gets from a posture, and a box in which all move at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.excitation.limits import State, all_excess
from dynident.excitation.limits_file import MotionLimits
from dynident.trajectory.family import Curve, sample

Array = NDArray[np.float64]

CHECK_RATE = 100.0  # samples per second on which plans are checked
ENOUGH = 0.35  # room on either side of a posture, as a share of the range, with which it is taken
TRIED = 20  # postures
CROSSING = 1.0  # time in which a joint without a known speed crosses its range [s]
POINTS = 2000  # of a box that are looked at
SLICE = 0.04  # share of a joint's range that a box loses at a time
CLEAR = 0.01  # share of every limit that the points of a box leave


def rates_of(limits: MotionLimits) -> tuple[Array, Array]:
    """Return speeds and accelerations for joins; where none is known, what crosses the range in a few seconds."""
    span = limits.upper - limits.lower
    speed = np.where(np.isfinite(limits.velocity), limits.velocity, span / CROSSING)
    return speed, np.where(np.isfinite(limits.acceleration), limits.acceleration, 4.0 * span / CROSSING**2)


def reach(limits: MotionLimits, posture: ArrayLike) -> tuple[Array, Array]:
    """Return how far each joint can go from a posture, alone and slowly, before any limit is broken."""
    rest = np.asarray(posture, dtype=np.float64)
    ends = np.array([limits.lower, limits.upper])
    found = np.tile(rest, (2, 1))
    for side, j in np.ndindex(ends.shape):
        for furthest in (1.0, 0.5, 0.25, 0.1):  # a robot with loops may be unable to follow the whole way
            share = np.linspace(0.0, furthest, 21)
            q = np.tile(rest, (share.size, 1))
            q[:, j] += share * (ends[side, j] - rest[j])
            zero = np.zeros_like(q)
            try:
                inside = np.all(all_excess(limits.all, State(q, zero, zero, zero)) <= 1e-9, axis=1)
            except DynidentError:
                continue
            last = share.size if inside.all() else int(np.argmin(inside))
            found[side, j] = q[max(last - 1, 0), j]
            break
    return found[0], found[1]


def posture_of(limits: MotionLimits, excitation: Curve) -> Array:
    """Return the middle of the ranges when every joint has room around it, or the place where the tightest one has most."""
    middle = 0.5 * (limits.lower + limits.upper)
    motion = sample(excitation, CHECK_RATE).q
    anywhere = np.random.default_rng(0).uniform(limits.lower, limits.upper, (TRIED, middle.size))
    best, room = middle, -1.0
    for q in (middle, motion.mean(axis=0), *motion[:: max(1, len(motion) // TRIED)], *anywhere):
        low, high = reach(limits, q)
        free = float(np.min(np.minimum(high - q, q - low) / (limits.upper - limits.lower)))
        if free > room:
            best, room = np.asarray(q), free
        if room > ENOUGH:
            break
    return best


def free_box(limits: MotionLimits, lower: ArrayLike, upper: ArrayLike, least: ArrayLike) -> tuple[Array, Array] | None:
    """Return the part of a box, `least` wide or more, in which all joints may move at once; None where there is none."""
    low, high, least = (np.array(x, dtype=np.float64) for x in (lower, upper, least))
    step = SLICE * (high - low)
    generator = np.random.default_rng(0)
    while True:
        q = generator.uniform(low, high, (POINTS, low.size))
        zero = np.zeros_like(q)
        try:
            bad = np.any(all_excess(limits.all, State(q, zero, zero, zero)) > -CLEAR, axis=1)
        except DynidentError:  # a robot with loops cannot follow everywhere
            return None
        if not bad.any():
            return low, high
        while bad.any():  # slices go where most of their points break a limit: joints that break none keep their range
            best: tuple[float, int, NDArray[np.bool_], bool] | None = None
            for j in np.flatnonzero(high - low - step >= least):
                for slab, below in ((q[:, j] < low[j] + step[j], True), (q[:, j] > high[j] - step[j], False)):
                    share = float(bad[slab].mean()) if slab.any() else 0.0
                    if share > 0.0 and (best is None or share > best[0]):
                        best = share, int(j), slab, below
            if best is None:
                return None
            _, cut, slab, below = best
            if below:
                low[cut] += step[cut]
            else:
                high[cut] -= step[cut]
            q, bad = q[~slab], bad[~slab]
