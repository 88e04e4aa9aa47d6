"""Velocity profiles: distance along a path over time, from rest to rest.

A profile is called with times and returns s, s', s'' (exact); before its start s is 0, after its end `distance`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.trajectory.family import positive


class Profile(Protocol):
    """What a velocity profile can do."""

    @property
    def distance(self) -> float:
        """How far it goes."""

    @property
    def duration(self) -> float:
        """How long it takes [s]."""

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
        """Return the fastest one that keeps both limits: T = max(c_v D/v, sqrt(c_a D/a))."""
        _at_least_zero("distance", distance)
        positive("speed", speed)
        positive("acceleration", acceleration)
        fast, hard = cls.peaks
        needed = max(float(distance * (fast / speed)), float(np.sqrt(distance * (hard / acceleration))))
        return cls(distance, max(needed, 1e-6))  # a rest of a microsecond where there is no way to go


class Quintic(_Stretched):
    """The polynomial of degree five that rests at both ends: s = D (10 u^3 - 15 u^4 + 6 u^5), u = t / T.

    D is the `distance` [m or rad], T the `duration` [s].
    """

    peaks = (15.0 / 8.0, 10.0 / math.sqrt(3.0))

    @staticmethod
    def _shape(u: Array) -> tuple[Array, Array, Array]:
        speed, change = 30.0 * u**2 * (1.0 - u) ** 2, 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u)
        return u**3 * (10.0 - 15.0 * u + 6.0 * u**2), speed, change


class Cycloid(_Stretched):
    """The cycloid: s = D (u - sin(2 pi u) / (2 pi)), u = t / T; acceleration is one period of a sine.

    D is the `distance` [m or rad], T the `duration` [s].
    """

    peaks = (2.0, 2.0 * math.pi)

    @staticmethod
    def _shape(u: Array) -> tuple[Array, Array, Array]:
        turn = 2.0 * math.pi
        return u - np.sin(turn * u) / turn, 1.0 - np.cos(turn * u), turn * np.sin(turn * u)


@dataclass(frozen=True)
class Trapezoid:
    """Constant acceleration, constant speed, constant deceleration; a triangle when the way is short."""

    distance: float  #: D [m or rad]
    speed: float  #: Largest speed, reached when D >= speed^2 / acceleration
    acceleration: float  #: Acceleration and deceleration

    def __post_init__(self) -> None:
        _at_least_zero("distance", self.distance)
        positive("speed", self.speed)
        positive("acceleration", self.acceleration)

    @property
    def peak(self) -> float:
        """Speed that is reached."""
        return float(min(self.speed, np.sqrt(self.distance * self.acceleration)))

    @property
    def duration(self) -> float:
        """How long it takes [s]: D / peak + peak / acceleration."""
        return self.distance / self.peak + self.peak / self.acceleration if self.distance else 0.0

    def __call__(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return s, s', s''; where the acceleration jumps, the value after the jump (0 at the end)."""
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
        """Return the profile with these limits; the same as the constructor, for use beside the other profiles."""
        return cls(distance, speed, acceleration)
