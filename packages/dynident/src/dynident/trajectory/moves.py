"""Motions in joint space beside the excitation: point to point, strokes of constant speed, cycloids and warming moves.

    q = p + (p' - p) s(t / T),    T = max over coordinates of  c_v |p' - p| / speed  and  sqrt(c_a |p' - p| / acceleration)

Speeds of strokes and trapezoids rise and fall along 3 u^2 - 2 u^3, because the acceleration of a plain trapezoid jumps.
A cycloid over D that peaks at the speed V takes T = 2 D / V [Pagani2022, eqs. 81-83].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import finite_times, numbers
from dynident.errors import DynidentError
from dynident.trajectory.family import CurveBase, State, positive
from dynident.trajectory.profiles import Cycloid, Profile, Quintic

Move = tuple[int, float, float, float, float]

READABLE = 0.4  # length of a plateau at which friction can be read [s]
MOST_STROKES = 1_000_000  # pairs of one joint: years of warming
SPEEDS = (0.05, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Plateaus of [Pagani2022, section 2.4], as shares of the largest speed."""


@dataclass(frozen=True)
class Plateau:
    """From rest to rest with constant speed in between: v rises in `ramp` seconds along 3 u^2 - 2 u^3."""

    distance: float  # How far, in either direction [rad or m]
    speed: float  # Speed of the plateau, above zero; the ramp's peak acceleration is 1.5 speed / ramp
    ramp: float  # Time to reach it [s]. The plateau lasts |distance| / speed - ramp

    def __post_init__(self) -> None:
        positive("speed", self.speed)
        positive("ramp", self.ramp)
        if self.flat < -1e-12:
            raise DynidentError(
                f"a stroke of {self.distance} cannot reach a speed of {self.speed} in {self.ramp} s; lengthen it or go slower"
            )

    @property
    def flat(self) -> float:
        """How long the speed is constant [s]."""
        return abs(self.distance) / self.speed - self.ramp

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return abs(self.distance) / self.speed + self.ramp

    def __call__(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return s, s', s''."""
        r, V, T = self.ramp, self.speed, self.duration
        now = np.clip(finite_times(t), 0.0, T)
        half = now > 0.5 * T
        u = np.clip(np.where(half, T - now, now) / r, 0.0, 1.0)  # the second half mirrors the first
        late = np.where(half, T - now, now) - r
        s = V * r * (u**3 - 0.5 * u**4) + V * np.maximum(late, 0.0)
        s = np.where(half, abs(self.distance) - s, s)
        a = np.where(half, -1.0, 1.0) * V / r * 6.0 * u * (1.0 - u)
        sense = 1.0 if self.distance >= 0.0 else -1.0
        return sense * s, sense * V * u**2 * (3.0 - 2.0 * u), sense * a


@dataclass(frozen=True)
class _Swing:
    """A cycloid of either sense whose speed peaks at a given value."""

    distance: float
    speed: float

    @property
    def duration(self) -> float:
        return max(2.0 * abs(self.distance) / self.speed, 1e-6)

    def __call__(self, t: Array) -> tuple[Array, Array, Array]:
        sense = 1.0 if self.distance >= 0.0 else -1.0
        s, v, a = Cycloid(abs(self.distance), self.duration)(t)
        return sense * s, sense * v, sense * a


def _profile(distance: float, speed: float, ramp: float) -> Plateau | _Swing:
    """Return the profile of a stroke: a cycloid without a ramp, a plateau with one."""
    return Plateau(distance, speed, ramp) if ramp else _Swing(distance, positive("speed", speed))


@dataclass(frozen=True, eq=False)
class Strokes(CurveBase):
    """Strokes of each coordinate, one after the other, each coordinate at its own times."""

    _kind = "strokes"

    start: Array  # Where it starts [rad or m]
    moves: Sequence[Move]
    total: float = 0.0  # How long it takes [s]; the end of the last stroke when omitted

    def __post_init__(self) -> None:
        q = np.array(numbers(self.start, "start"))
        object.__setattr__(self, "start", q)
        object.__setattr__(self, "moves", tuple((int(m[0]), *(float(x) for x in m[1:])) for m in self.moves))
        last = np.zeros(q.size)
        for j, begin, distance, speed, ramp in sorted(self.moves, key=lambda m: m[1]):
            if not 0 <= j < q.size:
                raise DynidentError(f"a stroke moves coordinate {j} but there are {q.size}")
            if begin < last[j] - 1e-9:
                raise DynidentError(f"strokes of coordinate {j} overlap at t = {begin:.6g} s; start the next one later")
            last[j] = begin + _profile(distance, speed, ramp).duration
        object.__setattr__(self, "total", max(float(self.total), float(last.max(initial=0.0))))

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return self.total

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return int(self.start.size)

    @property
    def plateaus(self) -> list[tuple[int, float, float, float]]:
        """Coordinate, signed speed, first and last time of every stretch of constant speed."""
        found = []
        for j, begin, distance, speed, ramp in self.moves:
            flat = Plateau(distance, speed, ramp).flat if ramp else 0.0
            if flat > 1e-9:
                found.append((j, float(np.sign(distance)) * speed, begin + ramp, begin + ramp + flat))
        return found

    def at(self, t: Array) -> State:
        """Return q, v, a at checked times."""
        q, v, a = np.tile(self.start, (t.size, 1)), np.zeros((t.size, self.dof)), np.zeros((t.size, self.dof))
        for j, begin, distance, speed, ramp in self.moves:
            profile = _profile(distance, speed, ramp)
            q[t >= begin + profile.duration, j] += distance
            mine = (t >= begin) & (t < begin + profile.duration)
            if mine.any():
                s, ds, dds = profile(t[mine] - begin)
                q[mine, j] += s
                v[mine, j], a[mine, j] = ds, dds
        return q, v, a


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

    All plateaus of a joint last equally long, so slow strokes are short; where the range allows less than 0.4 s at the highest
    speed, those at lower speeds last up to that, so that friction can be read there. Between strokes a joint moves along
    cycloids, which nothing takes for plateaus. The other joints stand at `posture`.

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
        Longest plateau [s]; shorter where the range does not allow it at the highest speed.
    posture : array_like (n,), optional
        Where joints wait; they move around it as far as their range allows. The middle of the ranges when omitted.
    jerk : array_like, (n,)
        Largest jerk.
    joints : sequence of int, optional
        Which joints are measured, by number; all when omitted.
    """
    low, high, top, push = _ranges(lower, upper, speed, acceleration)
    hardest = np.broadcast_to(numbers(jerk, "jerk"), low.shape)
    if not shares or not all(0.0 < share <= 1.0 for share in shares):
        raise DynidentError(f"shares are {tuple(shares)}; give shares of the largest speed above 0 and up to 1")
    start = 0.5 * (low + high) if posture is None else np.array(numbers(posture, "posture"))
    moves: list[Move] = []
    now = 0.0
    for j in range(start.size) if joints is None else joints:
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
                now += _profile(*move[2:]).duration
                moves.append(move)
                at = target
        if abs(start[j] - at) > 1e-12:
            moves.append(_between(j, now, start[j] - at, top[j], push[j], hardest[j]))
            now += _profile(*moves[-1][2:]).duration
    return Strokes(start, moves)


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
    """Return cycloids to and fro over the whole range at full speed [Pagani2022, section 2.3.3].

    An optimised motion need not reach the largest speeds, and friction must not be extrapolated to them. A joint whose way is
    shorter goes to and fro more often, until the longest one is back.
    """
    low, high, top, push = _ranges(lower, upper, speed, acceleration)
    hardest = np.broadcast_to(numbers(jerk, "jerk"), low.shape)
    ways = [_between(j, 0.0, float(high[j] - low[j]), top[j], push[j], hardest[j]) for j in range(low.size)]
    times = [_profile(*move[2:]).duration for move in ways]
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
                now += _profile(*moves[-1][2:]).duration
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
    """Return the warming motion [Pagani2022, section 2.4.1]: all joints to and fro at full speed over a share of their range.

    Parameters
    ----------
    lower, upper, speed, acceleration, jerk : array_like, (n,)
        Range of each joint [rad or m] and largest rates.
    duration, share
        3 min and 0.8 in [Pagani2022]; every joint ends where it started.
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


UNITS: dict[str, tuple[Profile, float, float]] = {
    "quintic": (Quintic(1.0, 1.0), *Quintic.peaks),
    "cycloid": (Cycloid(1.0, 1.0), *Cycloid.peaks),
    "trapezoid": (Plateau(1.0, 1.5, 1.0 / 3.0), 1.5, 6.75),
}
"""Profiles of unit distance and time with their peaks of speed c_v and acceleration c_a."""


def _unit(profile: str) -> tuple[Profile, float, float]:
    if profile not in UNITS:
        raise DynidentError(f"profile is {profile!r}; use one of {', '.join(UNITS)}")
    return UNITS[profile]


@dataclass(frozen=True, eq=False)
class Moves(CurveBase):
    """Point-to-point moves through points, with rest and no pause at each; all coordinates leave and arrive together."""

    _kind = "moves"

    points: Array  #: (k, n), where to rest [rad or m], in order
    durations: Array  #: (k - 1,), how long each move takes [s]
    profile: str = "quintic"  #: How the speed goes: "quintic", "cycloid" or "trapezoid"

    def __post_init__(self) -> None:
        p, T = np.array(numbers(self.points, "points")), np.array(numbers(self.durations, "durations"))
        if p.ndim != 2 or len(p) < 2 or not np.all(np.isfinite(p)):
            raise DynidentError(f"points have shape {p.shape}; give at least two rows of finite coordinates")
        if T.shape != (len(p) - 1,) or not np.all(np.isfinite(T) & (T > 0.0)):
            raise DynidentError(f"durations are {T.tolist()}; give {len(p) - 1} times above zero in seconds")
        _unit(self.profile)
        object.__setattr__(self, "points", p)
        object.__setattr__(self, "durations", T)

    @classmethod
    def within(cls, points: ArrayLike, speed: ArrayLike, acceleration: ArrayLike, profile: str = "quintic") -> Moves:
        """Return the fastest moves that keep both limits."""
        way = np.abs(np.diff(numbers(points, "points"), axis=0))
        _, fast, hard = _unit(profile)
        top, push = numbers(speed, "speed"), numbers(acceleration, "acceleration")
        if not (np.all(top > 0.0) and np.all(push > 0.0)):
            raise DynidentError("speed and acceleration must be above zero for every coordinate")
        T = np.max(np.maximum(fast * way / top, np.sqrt(hard * way / push)), axis=1)
        return cls(np.asarray(points, dtype=np.float64), T, profile)

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return float(np.sum(self.durations))

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return int(self.points.shape[1])

    def at(self, t: Array) -> State:
        """Return q, v, a at checked times."""
        begin = np.concatenate([[0.0], np.cumsum(self.durations)[:-1]])
        which = np.clip(np.searchsorted(begin, t, side="right") - 1, 0, len(begin) - 1)
        T = self.durations[which]
        s, ds, dds = UNITS[self.profile][0]((t - begin[which]) / T)
        way = np.diff(self.points, axis=0)[which]
        return self.points[which] + way * s[:, None], way * (ds / T)[:, None], way * (dds / T**2)[:, None]
