"""What the drive measures: encoder and current sensor."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.drive.checks import number
from dynident.drive.velocity import difference, low_pass
from dynident.errors import DescriptionError

Array = NDArray[np.float64]

SIDES = ("motor", "joint")
VELOCITIES = ("difference", "exact")


def quantise(values: ArrayLike, resolution: float) -> Array:
    """Round to whole counts, ``resolution * round(values / resolution)``.

    Parameters
    ----------
    values : array_like, (...)
        Exact values.
    resolution : float
        Size of a count, in the unit of the values; zero leaves them as they are.

    Returns
    -------
    ndarray, (...)
        Values on the grid; the error is at most half a count, and resolution / sqrt(12) RMS in motion.
    """
    array, size = numbers(values, "values"), number("resolution", resolution, least=0.0)
    return array.copy() if size == 0.0 else np.asarray(size * np.round(array / size))


@dataclass(frozen=True)
class Encoder:
    """Position sensor of a drive, and how the drive finds its velocity.

    Parameters
    ----------
    resolution : float
        Size of a count: rad (on the motor) or the unit of the actuator coordinate (on the joint); zero is perfect.
    side : str
        "motor" or "joint": where it sits.
    noise : float
        Standard deviation of the position before it is rounded, in the unit of the resolution.
    velocity : str
        "difference" of two positions over a cycle, or "exact" as from an ideal tachometer.
    filter : float
        Corner of a first-order low-pass on the velocity [Hz]; zero is none.
    """

    resolution: float = 0.0
    side: str = "motor"
    noise: float = 0.0
    velocity: str = "difference"
    filter: float = 0.0

    def __post_init__(self) -> None:
        for name in ("resolution", "noise", "filter"):
            object.__setattr__(self, name, number(f"encoder: {name}", getattr(self, name), least=0.0))
        if self.side not in SIDES:
            raise DescriptionError(f"encoder: side is {self.side!r}; give 'motor' or 'joint'")
        if self.velocity not in VELOCITIES:
            raise DescriptionError(f"encoder: velocity is {self.velocity!r}; give 'difference' or 'exact'")

    @classmethod
    def lines(
        cls, count: int, *, quadrature: bool = True, side: str = "motor", noise: float = 0.0, filter: float = 0.0
    ) -> Encoder:
        """Incremental encoder from its number of lines.

        Parameters
        ----------
        count : int
            Lines (periods) per turn.
        quadrature : bool
            Whether both edges of both channels count, which makes four counts of a line.
        side : str
            "motor" or "joint".
        noise : float
            Standard deviation of the position [rad].
        filter : float
            Corner of the velocity's low-pass [Hz].

        Returns
        -------
        Encoder
            With the resolution in rad.
        """
        per_turn = number("encoder: count", count, least=1.0) * (4 if quadrature else 1)
        return cls(2.0 * math.pi / per_turn, side, noise, filter=filter)

    def measure(self, position: ArrayLike, seed: int | np.random.Generator = 0) -> Array:
        """Position as sensed: noise added, then rounded to whole counts.

        Parameters
        ----------
        position : array_like, (...)
            Exact positions.
        seed : int or numpy.random.Generator
            Source of the noise.

        Returns
        -------
        ndarray, (...)
            Sensed positions, in the unit given.
        """
        return quantise(_noisy(numbers(position, "position"), self.noise, seed), self.resolution)

    def estimate_velocity(self, position: ArrayLike, cycle: float) -> Array:
        """Velocity as the drive finds it: difference of sensed positions over a cycle, then the low-pass of `filter`.

        Parameters
        ----------
        position : array_like, (N,) or (N, k)
            Sensed positions at every cycle.
        cycle : float
            Sampling time [s].

        Returns
        -------
        ndarray, (N,) or (N, k)
            Velocities.
        """
        if self.velocity == "exact":
            raise DescriptionError("encoder: velocity is 'exact', which no position gives; use velocity='difference'")
        return low_pass(difference(position, cycle), cycle, self.filter)

    def speed_resolution(self, cycle: float) -> float:
        """Speed of one count per cycle, the step in which the difference sees the velocity.

        Parameters
        ----------
        cycle : float
            Sampling time [s].

        Returns
        -------
        float
            ``resolution / cycle``.
        """
        return self.resolution / number("cycle", cycle, above=0.0, unit="s")


@dataclass(frozen=True)
class CurrentSensor:
    """Current sensor of a drive: ``measured = round((1 + gain_error) i + noise)``.

    Parameters
    ----------
    resolution : float
        Size of a count [A]; zero is perfect.
    noise : float
        Standard deviation [A].
    gain_error : float
        Relative error of the gain, above -1.
    """

    resolution: float = 0.0
    noise: float = 0.0
    gain_error: float = 0.0

    def __post_init__(self) -> None:
        for name in ("resolution", "noise"):
            object.__setattr__(self, name, number(f"current sensor: {name}", getattr(self, name), least=0.0, unit="A"))
        object.__setattr__(self, "gain_error", number("current sensor: gain_error", self.gain_error, above=-1.0))

    def measure(self, current: ArrayLike, seed: int | np.random.Generator = 0) -> Array:
        """Current as sensed.

        Parameters
        ----------
        current : array_like, (...)
            Exact currents [A].
        seed : int or numpy.random.Generator
            Source of the noise.

        Returns
        -------
        ndarray, (...)
            Sensed currents [A].
        """
        scaled = (1.0 + self.gain_error) * numbers(current, "current")
        return quantise(_noisy(scaled, self.noise, seed), self.resolution)


def _noisy(values: Array, deviation: float, seed: int | np.random.Generator) -> Array:
    if deviation == 0.0:
        return values
    return np.asarray(values + deviation * np.random.default_rng(seed).standard_normal(values.shape))
