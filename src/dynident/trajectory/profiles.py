"""Velocity profiles: how far along a path at time t, from rest to rest, with exact derivatives.

A profile is called with times and returns (s, s', s''); before its start it stands at 0, after its end at `distance`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError

Array = NDArray[np.float64]


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


def _positive(what: str, value: float) -> None:
    if not (np.isfinite(value) and value > 0.0):
        raise DynidentError(f"{what} is {value}; give a finite number above zero")


def _at_least_zero(what: str, value: float) -> None:
    if not (np.isfinite(value) and value >= 0.0):
        raise DynidentError(f"{what} is {value}; give a finite number that is not negative")


@dataclass(frozen=True)
class Quintic:
    """The polynomial of degree five that rests at both ends: s = D (10 u^3 - 15 u^4 + 6 u^5), u = t / T.

    Parameters
    ----------
    distance : float
        D [m or rad].
    duration : float
        T [s].
    """

    distance: float
    duration: float

    def __post_init__(self) -> None:
        _at_least_zero("distance", self.distance)
        _positive("duration", self.duration)

    def __call__(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return s, s', s''.

        Parameters
        ----------
        t : array_like, (N,)
            Time since the start [s].

        Returns
        -------
        s, v, a : ndarray, (N,)
            Distance, speed and acceleration.
        """
        u = np.clip(np.asarray(t, dtype=np.float64) / self.duration, 0.0, 1.0)
        D, T = self.distance, self.duration
        speed, change = 30.0 * u**2 * (1.0 - u) ** 2, 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u)
        return D * u**3 * (10.0 - 15.0 * u + 6.0 * u**2), D / T * speed, D / T**2 * change

    @classmethod
    def within(cls, distance: float, speed: float, acceleration: float) -> Quintic:
        """Return the fastest one that keeps both limits: T = max(15/8 D/v, sqrt(10/sqrt(3) D/a)).

        Parameters
        ----------
        distance : float
            D [m or rad].
        speed : float
            Largest speed.
        acceleration : float
            Largest acceleration.

        Returns
        -------
        Quintic
            The profile.
        """
        _positive("speed", speed)
        _positive("acceleration", acceleration)
        return cls(distance, _time(distance, 15.0 / 8.0 / speed, 10.0 / np.sqrt(3.0) / acceleration))


@dataclass(frozen=True)
class Cycloid:
    """The cycloid: s = D (u - sin(2 pi u) / (2 pi)), u = t / T; acceleration is one period of a sine.

    Parameters
    ----------
    distance : float
        D [m or rad].
    duration : float
        T [s].
    """

    distance: float
    duration: float

    def __post_init__(self) -> None:
        _at_least_zero("distance", self.distance)
        _positive("duration", self.duration)

    def __call__(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return s, s', s''.

        Parameters
        ----------
        t : array_like, (N,)
            Time since the start [s].

        Returns
        -------
        s, v, a : ndarray, (N,)
            Distance, speed and acceleration.
        """
        u = np.clip(np.asarray(t, dtype=np.float64) / self.duration, 0.0, 1.0)
        D, T, turn = self.distance, self.duration, 2.0 * np.pi
        return (
            D * (u - np.sin(turn * u) / turn),
            D / T * (1.0 - np.cos(turn * u)),
            D / T**2 * turn * np.sin(turn * u),
        )

    @classmethod
    def within(cls, distance: float, speed: float, acceleration: float) -> Cycloid:
        """Return the fastest one that keeps both limits: T = max(2 D/v, sqrt(2 pi D/a)).

        Parameters
        ----------
        distance : float
            D [m or rad].
        speed : float
            Largest speed.
        acceleration : float
            Largest acceleration.

        Returns
        -------
        Cycloid
            The profile.
        """
        _positive("speed", speed)
        _positive("acceleration", acceleration)
        return cls(distance, _time(distance, 2.0 / speed, 2.0 * np.pi / acceleration))


@dataclass(frozen=True)
class Trapezoid:
    """Constant acceleration, constant speed, constant deceleration; a triangle when the way is short.

    Parameters
    ----------
    distance : float
        D [m or rad].
    speed : float
        Largest speed, reached when D >= speed^2 / acceleration.
    acceleration : float
        Acceleration and deceleration.
    """

    distance: float
    speed: float
    acceleration: float

    def __post_init__(self) -> None:
        _at_least_zero("distance", self.distance)
        _positive("speed", self.speed)
        _positive("acceleration", self.acceleration)

    @property
    def peak(self) -> float:
        """Speed that is reached."""
        return float(min(self.speed, np.sqrt(self.distance * self.acceleration)))

    @property
    def duration(self) -> float:
        """How long it takes [s]: D / peak + peak / acceleration."""
        return self.distance / self.peak + self.peak / self.acceleration if self.distance else 0.0

    def __call__(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return s, s', s''; where the acceleration jumps, the value after the jump (0 at the end).

        Parameters
        ----------
        t : array_like, (N,)
            Time since the start [s].

        Returns
        -------
        s, v, a : ndarray, (N,)
            Distance, speed and acceleration.
        """
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
        """Return the profile with these limits; the same as the constructor, for use beside the other profiles.

        Parameters
        ----------
        distance : float
            D [m or rad].
        speed : float
            Largest speed.
        acceleration : float
            Largest acceleration.

        Returns
        -------
        Trapezoid
            The profile.
        """
        return cls(distance, speed, acceleration)


def _time(distance: float, per_distance: float, per_distance_squared: float) -> float:
    """Return the time that both limits need; a rest of a microsecond where there is no way to go."""
    _at_least_zero("distance", distance)
    return max(float(distance * per_distance), float(np.sqrt(distance * per_distance_squared)), 1e-6)
