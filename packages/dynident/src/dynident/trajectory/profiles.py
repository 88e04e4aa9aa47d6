"""Velocity profiles: distance along a path over time, from rest to rest, and curves of one axis from its velocity.

A profile is called with times and returns s, s', s'' (exact); before its start s is 0, after its end `distance`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.trajectory.family import CurveBase, State, positive


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

    Parameters
    ----------
    distance : float
        D [m or rad].
    duration : float
        T [s].
    """

    peaks = (15.0 / 8.0, 10.0 / math.sqrt(3.0))

    @staticmethod
    def _shape(u: Array) -> tuple[Array, Array, Array]:
        speed, change = 30.0 * u**2 * (1.0 - u) ** 2, 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u)
        return u**3 * (10.0 - 15.0 * u + 6.0 * u**2), speed, change


class Cycloid(_Stretched):
    """The cycloid: s = D (u - sin(2 pi u) / (2 pi)), u = t / T; acceleration is one period of a sine.

    Parameters
    ----------
    distance : float
        D [m or rad].
    duration : float
        T [s].
    """

    peaks = (2.0, 2.0 * math.pi)

    @staticmethod
    def _shape(u: Array) -> tuple[Array, Array, Array]:
        turn = 2.0 * math.pi
        return u - np.sin(turn * u) / turn, 1.0 - np.cos(turn * u), turn * np.sin(turn * u)


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


RPM = 2.0 * np.pi / 60.0
MOST_KNOTS = 1_000_000  # of a stage


@dataclass(frozen=True, eq=False)
class VelocityProfile(CurveBase):
    """One axis whose velocity is a curve through given values that never leaves the range between neighbours.

    It is a cubic Hermite spline with the slopes of [Fritsch1980], at rest at both ends; the position is its integral and the
    acceleration its derivative, both exact.
    """

    _kind = "profile"

    knots: Array  # Times [s], from 0 upward
    speeds: Array  # Velocities there [rad/s or m/s]; zero first and last
    start: float = 0.0  # Position at the start

    def __post_init__(self) -> None:
        t, v = np.array(numbers(self.knots, "knots")), np.array(numbers(self.speeds, "speeds"))
        if t.ndim != 1 or t.shape != v.shape or t.size < 3 or t[0] != 0.0 or not np.all(np.diff(t) > 0.0):
            raise DynidentError(
                f"knots have shape {t.shape} and speeds {v.shape}; give three or more increasing times from 0 on"
            )
        if v[0] != 0.0 or v[-1] != 0.0 or not np.all(np.isfinite(v)):
            raise DynidentError(f"speeds start with {v[0]} and end with {v[-1]}; they must be finite, and zero at both ends")
        object.__setattr__(self, "knots", t)
        object.__setattr__(self, "speeds", v)

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return float(self.knots[-1])

    @property
    def dof(self) -> int:
        """One axis."""
        return 1

    @cached_property
    def _spline(self) -> Any:
        slopes = scipy.interpolate.PchipInterpolator(self.knots, self.speeds)(self.knots, 1)
        slopes[[0, -1]] = 0.0
        return scipy.interpolate.CubicHermiteSpline(self.knots, self.speeds, slopes)

    @cached_property
    def _way(self) -> Any:
        return self._spline.antiderivative()

    def _at(self, t: Array) -> State:
        time = np.clip(t, 0.0, self.duration)
        q = self.start + np.asarray(self._way(time))
        return q[:, None], np.asarray(self._spline(time))[:, None], np.asarray(self._spline(time, 1))[:, None]


def velocity_multiprofile(
    lowest: float = 10.0 * RPM,
    highest: float = 3700.0 * RPM,
    stage: float = 20.0,
    steps: int = 6,
    rounding: float = 0.3,
    start: float = 0.0,
) -> VelocityProfile:
    """Return the velocity multi-profile: growing sines, steps, ramps, exponentials ([Roldan2017] prints no durations).

    (1) 0.1 + 0.3 + 0.5 Hz with growing amplitude; (2) steps up and down, forward and backward; (3) constant acceleration and
    deceleration, both ways; (4) exponential rise and decay, both ways. The speed stays within `highest`.

    Parameters
    ----------
    lowest, highest : float
        Slowest and fastest speed [rad/s]; 10 and 3700 rpm in [Roldan2017].
    stage : float
        Duration of each of the seven stages [s].
    steps : int
        Speeds on the way up.
    rounding : float
        Time over which corners of the speed are rounded [s]; friction about rest is seen there, within the band of a log.
    start : float
        Position at the start.
    """
    positive("lowest", lowest)
    positive("stage", stage)
    if not highest > lowest:
        raise DynidentError(f"highest speed is {highest} but lowest is {lowest}; give a higher one")
    knot = positive("rounding", rounding) / 6.0
    if stage > MOST_KNOTS * knot:
        raise DynidentError(f"a stage of {stage} s rounded over {rounding} s has more than {MOST_KNOTS} knots; round more")
    n = round(stage / knot)
    if n < 12 * steps:
        raise DynidentError(
            f"a stage of {stage} s is short for {steps} steps rounded over {rounding} s; round less or lengthen the stage"
        )
    u = np.arange(n) / n
    waves = np.sum([np.sin(2.0 * np.pi * f * stage * u) for f in (0.1, 0.3, 0.5)], axis=0)
    waves = waves / np.max(np.abs(waves)) * (lowest + (highest - lowest) * u)
    ladder = np.linspace(lowest, highest, steps)
    stairs = np.concatenate([ladder, ladder[::-1]])[np.minimum((u * 2 * steps).astype(int), 2 * steps - 1)]
    ramp = highest * (1.0 - np.abs(2.0 * u - 1.0))
    full = 1.0 - np.exp(-5.0)
    rise = np.where(u < 0.5, 1.0 - np.exp(-10.0 * u), full * np.exp(-10.0 * (u - 0.5))) / full * highest
    rest = np.zeros(8)
    speeds = np.concatenate([rest, waves, rest, stairs, -stairs, ramp, -ramp, rise, -rise, rest])
    window = np.hanning(9)[1:-1]
    speeds = np.convolve(speeds, window / window.sum(), mode="same")  # a mean with positive weights: nothing grows
    speeds[[0, -1]] = 0.0
    return VelocityProfile(np.asarray(np.arange(speeds.size) * knot, dtype=np.float64), speeds, start)
