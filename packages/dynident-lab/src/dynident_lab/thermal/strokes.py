"""Strokes of constant speed, cycloids at full speed and the warming motion [Pagani2022, section 2.4]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.trajectory.curves import positive
from dynident.trajectory.profiles import Move, Plateau, Strokes, stroke_profile

READABLE = 0.4  # length of a plateau required for reading friction [s]
MOST_STROKES = 1_000_000  # limit of pairs of one joint: years of warming
SPEEDS = (0.05, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Plateaus of [Pagani2022, section 2.4], as shares of the largest speed."""


def _ramp(speed: float, acceleration: float, jerk: float) -> float:
    """Return the shortest ramp to a speed [s]: accelerations reach 1.5 speed / ramp, jerks 6 speed / ramp^2."""
    return float(max(1.5 * speed / acceleration, np.sqrt(6.0 * speed / jerk)))


def _ranges(lower: ArrayLike, upper: ArrayLike, speed: ArrayLike, acceleration: ArrayLike) -> list[Array]:
    """Return four vectors after checking that ranges are finite and rates above zero."""
    low, high = np.atleast_1d(numbers(lower, "lower")), np.atleast_1d(numbers(upper, "upper"))
    top, push = (np.broadcast_to(numbers(x, w), low.shape) for x, w in ((speed, "speed"), (acceleration, "acceleration")))
    if low.shape != high.shape or not (np.all(np.isfinite(low) & np.isfinite(high)) and np.all(high > low)):
        raise DynidentError(f"ranges are {low.tolist()} to {high.tolist()}; give finite lower limits below the upper ones")
    if not (np.all((top > 0.0) & np.isfinite(top)) and np.all((push > 0.0) & np.isfinite(push))):
        raise DynidentError("speed and acceleration must be finite and above zero for every coordinate")
    return [low, high, np.array(top), np.array(push)]


def friction_plateaus(
    lower: ArrayLike,
    upper: ArrayLike,
    speed: ArrayLike,
    acceleration: ArrayLike,
    shares: Sequence[float] = SPEEDS,
    longest: float = 2.0,
    posture: ArrayLike | None = None,
    jerk: ArrayLike = np.inf,
    joints: Sequence[int] | None = None,
) -> Strokes:
    """Return strokes of one joint after the other at several speeds, forward and backward [Pagani2022, section 2.4].

    All plateaus of a joint have the same length, so slow strokes are short; if the range allows less than 0.4 s at the highest
    speed, plateaus at lower speeds last up to 0.4 s, so that friction can be read. Between strokes a joint moves along
    cycloids, which have no plateaus. The other joints stand at `posture`.

    Parameters
    ----------
    lower, upper : array_like, (n,)
        Range to use [rad or m].
    speed : array_like, (n,)
        Largest speeds.
    acceleration : array_like, (n,)
        Largest accelerations.
    shares : sequence of float
        Speeds as shares of the largest.
    longest : float
        Longest plateau [s]; shorter if the range requires it at the highest speed.
    posture : array_like (n,) or (n, n), optional
        Waiting position of the joints, around which they move as far as the range allows. Default: the middle of the ranges.
        Row j of (n, n) is the posture for joint j; between two postures all joints move at once.
    jerk : array_like, (n,)
        Largest jerk.
    joints : sequence of int, optional
        Numbers of the measured joints; all when omitted.
    """
    low, high, top, push = _ranges(lower, upper, speed, acceleration)
    hardest = np.broadcast_to(numbers(jerk, "jerk"), low.shape)
    if not shares or not all(0.0 < share <= 1.0 for share in shares):
        raise DynidentError(f"shares are {tuple(shares)}; give shares of the largest speed above 0 and up to 1")
    given = 0.5 * (low + high) if posture is None else np.array(numbers(posture, "posture"))
    postures = np.broadcast_to(given, (low.size, low.size))
    moves: list[Move] = []
    now = 0.0
    measured = list(range(low.size)) if joints is None else list(joints)
    for k, j in enumerate(measured):
        start, before = postures[j], postures[measured[k - 1]]
        if k and np.any(start != before):
            now = _all_at_once(moves, now, start - before, (top, push, hardest))
        room, fastest = high[j] - low[j], top[j] * max(shares)
        slowest = _ramp(fastest, push[j], hardest[j])
        flat = min(longest, room / fastest - slowest)
        if flat <= 0.0:
            raise DynidentError(
                f"joint {j} cannot reach {fastest:.4g} within its range around {start[j]:.4g}; lower the speeds, raise the "
                "acceleration or choose another posture"
            )
        at = start[j]
        for share in sorted(shares):
            V = share * top[j]
            ramp = _ramp(V, push[j], hardest[j])
            way = V * (max(flat, min(READABLE, longest, room / V - ramp)) + ramp)
            first = float(np.clip(start[j] - 0.5 * way, low[j], high[j] - way))
            for target, plateau in ((first, False), (first + way, True), (first, True)):
                if abs(target - at) < 1e-12:
                    continue
                move = (j, now, target - at, V, ramp) if plateau else _between(j, now, target - at, top[j], push[j], hardest[j])
                now += stroke_profile(*move[2:]).duration
                moves.append(move)
                at = target
        if abs(start[j] - at) > 1e-12:
            moves.append(_between(j, now, start[j] - at, top[j], push[j], hardest[j]))
            now += stroke_profile(*moves[-1][2:]).duration
    first, last = postures[measured[0]], postures[measured[-1]]
    if np.any(first != last):
        _all_at_once(moves, now, first - last, (top, push, hardest))
    return Strokes(first, moves)


def _all_at_once(moves: list[Move], now: float, ways: Array, rates: tuple[Array, Array, Array]) -> float:
    """Append cycloids along a straight line in joint space, with the duration of the slowest joint; return their end time."""
    alone = [_between(int(j), now, ways[j], *(rate[j] for rate in rates)) for j in np.flatnonzero(np.abs(ways) > 1e-12)]
    longest = max(stroke_profile(*move[2:]).duration for move in alone)
    moves += [(j, now, way, peak * stroke_profile(way, peak, ramp).duration / longest, ramp) for j, _, way, peak, ramp in alone]
    return now + longest


def _between(j: int, begin: float, way: float, speed: float, acceleration: float, jerk: float) -> Move:
    """Return the fastest cycloid over a distance: accelerations reach pi V^2 / (2 D), jerks pi^2 V^3 / (2 D^2)."""
    D = abs(way)
    peak = min(speed, np.sqrt(2.0 * acceleration * D / np.pi), (2.0 * jerk * D**2 / np.pi**2) ** (1.0 / 3.0))
    return j, begin, way, float(peak), 0.0


def cycloid_section(
    lower: ArrayLike,
    upper: ArrayLike,
    speed: ArrayLike,
    acceleration: ArrayLike,
    jerk: ArrayLike = np.inf,
    posture: ArrayLike | None = None,
) -> Strokes:
    """Return back-and-forth cycloids over the whole range at full speed [Pagani2022, section 2.3.3].

    An optimised motion need not reach the largest speeds, and friction must not be extrapolated to them. A joint with a shorter
    stroke repeats it until the longest one is back.
    """
    low, high, top, push = _ranges(lower, upper, speed, acceleration)
    hardest = np.broadcast_to(numbers(jerk, "jerk"), low.shape)
    ways = [_between(j, 0.0, float(high[j] - low[j]), top[j], push[j], hardest[j]) for j in range(low.size)]
    times = [stroke_profile(*move[2:]).duration for move in ways]
    moves: list[Move] = []
    if posture is None:
        total = 2.0 * max(times)
        for (j, _, way, peak, ramp), T in zip(ways, times, strict=True):
            pairs = int(total / (2.0 * T) + 1e-9)
            moves += [(j, k * T, way if k % 2 == 0 else -way, peak, ramp) for k in range(2 * pairs)]
        return Strokes(low, moves, total)
    rest, now = np.array(numbers(posture, "posture")), 0.0
    for j, _, way, peak, ramp in ways:
        to, back = float(low[j] - rest[j]), float(rest[j] - low[j])
        for part in (to, way, -way, back):
            if abs(part) > 1e-12:
                limits = (float(top[j]), float(push[j]), float(hardest[j]))
                moves.append((j, now, part, peak, ramp) if abs(part) == way else _between(j, now, part, *limits))
                now += stroke_profile(*moves[-1][2:]).duration
    return Strokes(rest, moves)


def warming(
    lower: ArrayLike,
    upper: ArrayLike,
    speed: ArrayLike,
    acceleration: ArrayLike,
    duration: float = 180.0,
    share: float = 0.8,
    jerk: ArrayLike = np.inf,
) -> Strokes:
    """Return the warming motion [Pagani2022, section 2.4.1]: all joints at full speed back and forth over a share of the range.

    Parameters
    ----------
    lower, upper, speed, acceleration, jerk : array_like, (n,)
        Range of each joint [rad or m] and largest rates.
    duration, share
        Duration and share of the range, 3 min and 0.8 in [Pagani2022]; every joint ends at its start.
    """
    low, high, top, push = _ranges(lower, upper, speed, acceleration)
    positive("duration", duration)
    if not 0.0 < share <= 1.0:
        raise DynidentError(f"share is {share}; give a share of the range above 0 and up to 1")
    hardest = np.broadcast_to(numbers(jerk, "jerk"), low.shape)
    moves = []
    for j in range(low.size):
        way, V = share * (high[j] - low[j]), top[j]
        while way / V < _ramp(V, push[j], hardest[j]):  # the range is too short for the full speed
            V *= 0.98
        stroke = Plateau(way, V, _ramp(V, push[j], hardest[j]))
        pairs = int(duration // (2.0 * stroke.duration))
        if pairs > MOST_STROKES:
            raise DynidentError(f"duration is {duration:g} s, more than {MOST_STROKES} strokes of a joint; give a shorter one")
        for k in range(2 * pairs):
            moves.append((j, k * stroke.duration, way if k % 2 == 0 else -way, V, stroke.ramp))
    return Strokes(0.5 * (low + high) - 0.5 * share * (high - low), moves, duration)
