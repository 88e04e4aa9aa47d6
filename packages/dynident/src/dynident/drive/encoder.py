"""Sensors of a drive: encoder and current sensor. `control.tick.sensed_speed` is the velocity estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import choice, number, numbers
from dynident.errors import DynidentError
from dynident.graph.elementary import floor, where

SIDES = ("motor", "joint")
VELOCITIES = ("difference", "exact")


def counted(x: Any, size: Any) -> Any:
    """Return x in whole counts, x itself where a count has no size; for expressions, numbers and arrays."""
    count = where(size > 0.0, size, 1.0)
    return where(size > 0.0, count * floor(x / count + 0.5), x)


def sensed_position(theta: Any, rho: Any, noise: Any, resolution: Any, motor: Any, ratio: Any) -> Any:
    """Return rho as an encoder reads it, on the motor or behind the gear; for expressions, numbers and arrays."""
    return counted(where(motor, theta, rho) + noise, resolution) / where(motor, ratio, 1.0)


def sensed_current(current: Any, noise: Any, resolution: Any, gain: Any) -> Any:
    """Return a current as its sensor reads it; for expressions, numbers and arrays."""
    return counted(current * gain + noise, resolution)


def low_pass_coefficient(frequency: ArrayLike, cycle: float) -> Array:
    """Return the coefficient of a sampled first-order low-pass, 1 - exp(-2 pi f T); 1 (no filter) where f is 0."""
    corner = numbers(frequency, "frequency")
    if not (np.isfinite(cycle) and cycle > 0.0):
        raise DynidentError(f"cycle is {cycle}; give the cycle time in seconds, above zero")
    if not np.all(corner >= 0.0):
        raise DynidentError(f"frequency is {float(np.min(corner))} Hz; give zero (no filter) or a corner above it")
    return np.where(corner > 0.0, -np.expm1(-2.0 * np.pi * corner * cycle), 1.0)


@dataclass(frozen=True)
class Encoder:
    """Position sensor of a drive, and how the drive finds its velocity."""

    #: Size of a count: rad (on the motor) or the unit of the actuator coordinate (on the joint); zero is perfect
    resolution: float = 0.0
    side: str = "motor"  #: "motor" or "joint": where it sits
    noise: float = 0.0  #: Standard deviation of the position before it is rounded, in the unit of the resolution
    velocity: str = "difference"  #: "difference" of two positions over a cycle, or "exact" as from an ideal tachometer
    filter: float = 0.0  #: Corner of a first-order low-pass on the velocity [Hz]; zero is none

    def __post_init__(self) -> None:
        for name in ("resolution", "noise", "filter"):
            object.__setattr__(self, name, number(f"encoder: {name}", getattr(self, name), least=0.0))
        choice("encoder: side", self.side, SIDES)
        choice("encoder: velocity", self.velocity, VELOCITIES)

    @classmethod
    def lines(cls, count: int) -> Encoder:
        """Incremental encoder on the motor from its number of lines, each of which gives four counts."""
        return cls(0.5 * math.pi / number("encoder: count", count, least=1.0))


@dataclass(frozen=True)
class CurrentSensor:
    """Current sensor of a drive: ``measured = round((1 + gain_error) i + noise)``."""

    resolution: float = 0.0  #: Size of a count [A]; zero is perfect
    noise: float = 0.0  #: Standard deviation [A]
    gain_error: float = 0.0  #: Relative error of the gain, above -1

    def __post_init__(self) -> None:
        for name in ("resolution", "noise"):
            object.__setattr__(self, name, number(f"current sensor: {name}", getattr(self, name), least=0.0, unit="A"))
        object.__setattr__(self, "gain_error", number("current sensor: gain_error", self.gain_error, above=-1.0))
