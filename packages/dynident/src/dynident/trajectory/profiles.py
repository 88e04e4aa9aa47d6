"""Velocity profiles from rest to rest, and motions made of them: point to point (`Moves`), strokes at constant speed.

    q = p + (p' - p) s(t / T),    T = max over coordinates of  c_v |p' - p| / speed  and  sqrt(c_a |p' - p| / acceleration)

A profile called with times returns s, s', s'' (exact); s is 0 before its start and `distance` after its end. The speeds of
strokes and trapezoids rise and fall along 3 u^2 - 2 u^3, because the acceleration of a plain trapezoid jumps. A cycloid over D
that peaks at the speed V takes T = 2 D / V [Pagani2022, eqs. 81-83].
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import finite_times, numbers
from dynident.errors import DynidentError
from dynident.trajectory.curves import CurveBase, State, positive


class Profile(Protocol):
    """Interface of a velocity profile."""

    @property
    def distance(self) -> float:
        """Distance covered."""

    @property
    def duration(self) -> float:
        """Duration [s]."""

    def __call__(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return s, s', s'' at times t."""


def _at_least_zero(what: str, value: float) -> None:
    if not (np.isfinite(value) and value >= 0.0):
        raise DynidentError(f"{what} is {value}; give a finite number that is not negative")


@dataclass(frozen=True)
class _Stretched(ABC):
    """A shape of unit distance and time, stretched to D and T: s = D shape(t / T)."""

    distance: float
    duration: float

    peaks: ClassVar[tuple[float, float]]
    """Largest speed c_v and acceleration c_a of the shape itself."""

    def __post_init__(self) -> None:
        _at_least_zero("distance", self.distance)
        positive("duration", self.duration)

    def __call__(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return s, s', s''."""
        D, T = self.distance, self.duration
        way, speed, change = self._shape(np.clip(np.asarray(t, dtype=np.float64) / T, 0.0, 1.0))
        return D * way, D / T * speed, D / T**2 * change

    @staticmethod
    @abstractmethod
    def _shape(u: Array) -> tuple[Array, Array, Array]: ...  # the shape at u from 0 to 1 and its two derivatives

    @classmethod
    def within(cls, distance: float, speed: float, acceleration: float) -> Self:
        """Return the fastest profile that keeps both limits: T = max(c_v D/v, sqrt(c_a D/a))."""
        _at_least_zero("distance", distance)
        positive("speed", speed)
        positive("acceleration", acceleration)
        fast, hard = cls.peaks
        needed = max(float(distance * (fast / speed)), float(np.sqrt(distance * (hard / acceleration))))
        return cls(distance, max(needed, 1e-6))  # a rest of a microsecond for zero distance


class Quintic(_Stretched):
    """Polynomial of degree five, at rest at both ends: s = D (10 u^3 - 15 u^4 + 6 u^5), u = t / T.

    D is the `distance` [m or rad], T the `duration` [s].
    """

    peaks = (15.0 / 8.0, 10.0 / math.sqrt(3.0))

    @staticmethod
    def _shape(u: Array) -> tuple[Array, Array, Array]:
        speed, change = 30.0 * u**2 * (1.0 - u) ** 2, 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u)
        return u**3 * (10.0 - 15.0 * u + 6.0 * u**2), speed, change


class Cycloid(_Stretched):
    """Cycloid: s = D (u - sin(2 pi u) / (2 pi)), u = t / T; acceleration is one period of a sine.

    D is the `distance` [m or rad], T the `duration` [s].
    """

    peaks = (2.0, 2.0 * math.pi)

    @staticmethod
    def _shape(u: Array) -> tuple[Array, Array, Array]:
        turn = 2.0 * math.pi
        return u - np.sin(turn * u) / turn, 1.0 - np.cos(turn * u), turn * np.sin(turn * u)


@dataclass(frozen=True)
class Trapezoid:
    """Constant acceleration, constant speed, constant deceleration; a triangle for short distances."""

    distance: float  #: D [m or rad]
    speed: float  #: Largest speed, reached when D >= speed^2 / acceleration
    acceleration: float  #: Acceleration and deceleration

    def __post_init__(self) -> None:
        _at_least_zero("distance", self.distance)
        positive("speed", self.speed)
        positive("acceleration", self.acceleration)

    @property
    def peak(self) -> float:
        """Largest speed reached."""
        return float(min(self.speed, np.sqrt(self.distance * self.acceleration)))

    @property
    def duration(self) -> float:
        """Duration [s]: D / peak + peak / acceleration."""
        return self.distance / self.peak + self.peak / self.acceleration if self.distance else 0.0

    def __call__(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return s, s', s''; at a jump of the acceleration, its value after the jump (0 at the end)."""
        T, peak, acceleration = self.duration, self.peak, self.acceleration
        ramp = peak / acceleration
        now = np.asarray(t, dtype=np.float64)
        u = np.clip(now, 0.0, T)
        rising, falling = u < ramp, u > T - ramp
        left = T - u
        s = np.where(rising, 0.5 * acceleration * u**2, peak * (u - 0.5 * ramp))
        s = np.where(falling & ~rising, self.distance - 0.5 * acceleration * left**2, s)
        v = np.where(rising, acceleration * u, np.where(falling, acceleration * left, peak))
        a = np.where(rising, acceleration, np.where(u >= T - ramp, -acceleration, 0.0))
        return s, v, np.where((now < 0.0) | (now >= T), 0.0, a)

    @classmethod
    def within(cls, distance: float, speed: float, acceleration: float) -> Trapezoid:
        """Return the profile with these limits, like the constructor; same interface as the other profiles."""
        return cls(distance, speed, acceleration)


Move = tuple[int, float, float, float, float]


@dataclass(frozen=True)
class Plateau:
    """Motion from rest to rest with a constant speed in between: v rises in `ramp` seconds along 3 u^2 - 2 u^3."""

    distance: float  # Signed distance [rad or m]
    speed: float  # Speed of the plateau, above zero; the ramp's peak acceleration is 1.5 speed / ramp
    ramp: float  # Time to reach the speed [s]. The plateau lasts |distance| / speed - ramp

    def __post_init__(self) -> None:
        positive("speed", self.speed)
        positive("ramp", self.ramp)
        if self.flat < -1e-12:
            raise DynidentError(
                f"a stroke of {self.distance} cannot reach a speed of {self.speed} in {self.ramp} s; lengthen it or go slower"
            )

    @property
    def flat(self) -> float:
        """Duration of the constant speed [s]."""
        return abs(self.distance) / self.speed - self.ramp

    @property
    def duration(self) -> float:
        """Duration [s]."""
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
    """A cycloid in either direction with a given peak speed."""

    distance: float
    speed: float

    @property
    def duration(self) -> float:
        return max(2.0 * abs(self.distance) / self.speed, 1e-6)

    def __call__(self, t: Array) -> tuple[Array, Array, Array]:
        sense = 1.0 if self.distance >= 0.0 else -1.0
        s, v, a = Cycloid(abs(self.distance), self.duration)(t)
        return sense * s, sense * v, sense * a


def stroke_profile(distance: float, speed: float, ramp: float) -> Plateau | _Swing:
    """Return the profile of a stroke: a cycloid without a ramp, a plateau with a ramp."""
    return Plateau(distance, speed, ramp) if ramp else _Swing(distance, positive("speed", speed))


@dataclass(frozen=True, eq=False)
class Strokes(CurveBase):
    """Strokes of all coordinates, one after the other, each coordinate at its own times."""

    _kind = "strokes"

    start: Array  # Start position [rad or m]
    moves: Sequence[Move]
    total: float = 0.0  # Duration [s]; the end of the last stroke when omitted

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
            last[j] = begin + stroke_profile(distance, speed, ramp).duration
        object.__setattr__(self, "total", max(float(self.total), float(last.max(initial=0.0))))

    @property
    def duration(self) -> float:
        """Duration [s]."""
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
            profile = stroke_profile(distance, speed, ramp)
            q[t >= begin + profile.duration, j] += distance
            mine = (t >= begin) & (t < begin + profile.duration)
            if mine.any():
                s, ds, dds = profile(t[mine] - begin)
                q[mine, j] += s
                v[mine, j], a[mine, j] = ds, dds
        return q, v, a


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
    """Point-to-point moves with rest but no pause at each point; all coordinates start and stop together."""

    _kind = "moves"

    points: Array  #: (k, n), points of rest [rad or m], in order
    durations: Array  #: (k - 1,), duration of each move [s]
    profile: str = "quintic"  #: Velocity profile: "quintic", "cycloid" or "trapezoid"

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
        """Duration [s]."""
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
