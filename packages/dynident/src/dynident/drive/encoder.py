"""What the drive measures: encoder and current sensor.

Velocity from encoder counts, as a drive finds it at every cycle: only the past is used, along the first axis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import choice, finite_rows, number, numbers, whole
from dynident.errors import DescriptionError, DynidentError
from dynident.graph.elementary import floor, where

Array = NDArray[np.float64]
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


def quantise(values: ArrayLike, resolution: float) -> Array:
    """Round to whole counts, ``resolution * floor(values / resolution + 1/2)``."""
    return np.array(counted(numbers(values, "values"), number("resolution", resolution, least=0.0)))


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
        choice("encoder: side", self.side, SIDES)
        choice("encoder: velocity", self.velocity, VELOCITIES)

    @classmethod
    def lines(
        cls, count: int, *, quadrature: bool = True, side: str = "motor", noise: float = 0.0, filter: float = 0.0
    ) -> Encoder:
        """Incremental encoder from its number of lines."""
        per_turn = number("encoder: count", count, least=1.0) * (4 if quadrature else 1)
        return cls(2.0 * math.pi / per_turn, side, noise, filter=filter)

    def measure(self, position: ArrayLike, seed: int | np.random.Generator = 0) -> Array:
        """Position as sensed: noise added, then rounded to whole counts."""
        x = numbers(position, "position")
        return quantise(x + _noise(x, self.noise, seed), self.resolution)

    def estimate_velocity(self, position: ArrayLike, cycle: float) -> Array:
        """Velocity as the drive finds it: difference of sensed positions over a cycle, then the low-pass of `filter`."""
        if self.velocity == "exact":
            raise DescriptionError("encoder: velocity is 'exact', which no position gives; use velocity='difference'")
        return low_pass(difference(position, cycle), cycle, self.filter)

    def speed_resolution(self, cycle: float) -> float:
        """Speed of one count per cycle, the step in which the difference sees the velocity."""
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
        """Current as sensed."""
        i = numbers(current, "current")
        return np.asarray(sensed_current(i, _noise(i, self.noise, seed), self.resolution, 1.0 + self.gain_error))


def _noise(values: Array, deviation: float, seed: int | np.random.Generator) -> Array | float:
    return deviation * np.random.default_rng(seed).standard_normal(values.shape) if deviation else 0.0


def difference(position: ArrayLike, cycle: float, window: int = 1) -> Array:
    """Difference over a fixed window, ``(x_k - x_{k-n}) / (n cycle)``.

    A count more or less is an error of ``resolution / (n cycle)``; the estimate is ``n cycle / 2`` late.
    """
    x, h = _positions(position), number("cycle", cycle, above=0.0, unit="s")
    n = whole("window", window, least=1)
    index = np.arange(1, len(x))
    reach = np.minimum(index, n)
    ahead = (x[1:] - x[index - reach]) / (h * reach).reshape((-1,) + (1,) * (x.ndim - 1))
    return np.concatenate([ahead[:1], ahead])


def low_pass(signal: ArrayLike, cycle: float, corner: float) -> Array:
    """Exact first-order low-pass of inputs held over a cycle: ``y_k = y_{k-1} + (1 - exp(-2 pi f cycle)) (x_k - y_{k-1})``."""
    x, h = _positions(signal, "signal"), number("cycle", cycle, above=0.0, unit="s")
    f = number("corner", corner, least=0.0, unit="Hz")
    if f == 0.0:
        return x.copy()
    from scipy.signal import lfilter  # noqa: PLC0415 - scipy is loaded on first use

    share = -math.expm1(-2.0 * math.pi * f * h)
    return np.asarray(x[:1] + lfilter([share], [1.0, share - 1.0], x - x[:1], axis=0))


def adaptive_difference(position: ArrayLike, cycle: float, resolution: float, longest: int = 50) -> Array:
    """Difference over the longest window in which a straight line passes within one count of every sample.

    Slow motion gets a long window (smooth), fast change a short one (no delay): first-order adaptive windowing of
    Janabi-Sharifi, Hayward and Chen, end-fit form.
    """
    x, h = _positions(position), number("cycle", cycle, above=0.0, unit="s")
    # A count of tolerance, and rounding: samples exactly one count off the line must pass.
    band = number("resolution", resolution, above=0.0) * (1.0 + 1e-9)
    estimate = difference(x, h)
    lower, upper = np.full(x.shape, -np.inf), np.full(x.shape, np.inf)
    growing = np.ones(x.shape, dtype=bool)
    for n in range(1, min(whole("longest", longest, least=1), len(x) - 1) + 1):
        way = x[n:] - x[:-n]
        slope = way / (n * h)
        growing[:n] = False
        growing[n:] &= (slope >= lower[n:]) & (slope <= upper[n:])
        estimate[n:] = np.where(growing[n:], slope, estimate[n:])
        lower[n:] = np.maximum(lower[n:], (way - band) / (n * h))
        upper[n:] = np.minimum(upper[n:], (way + band) / (n * h))
    estimate[0] = estimate[1]
    return estimate


def tracking_observer(position: ArrayLike, cycle: float, bandwidth: float, damping: float = 1.0) -> Array:
    """Velocity state of a second-order observer that tracks the position, as in resolver converters.

    ``v = omega^2 s / (s^2 + 2 damping omega s + omega^2) x``, sampled by the trapezoidal rule. It follows a constant velocity
    without error; delay at low frequency is ``2 damping / omega``.
    """
    x, h = _positions(position), number("cycle", cycle, above=0.0, unit="s")
    omega = 2.0 * math.pi * number("bandwidth", bandwidth, above=0.0, unit="Hz")
    zeta = number("damping", damping, above=0.0)
    if omega * h >= math.pi:
        raise DynidentError(f"bandwidth is {bandwidth:g} Hz; give less than half the sampling frequency, {0.5 / h:g} Hz")
    from scipy.signal import lfilter  # noqa: PLC0415 - scipy is loaded on first use

    step = omega * h
    a = np.array([4.0 + 4.0 * zeta * step + step**2, 2.0 * step**2 - 8.0, 4.0 - 4.0 * zeta * step + step**2])
    return np.asarray(lfilter(2.0 * step**2 / h * np.array([1.0, 0.0, -1.0]) / a[0], a / a[0], x - x[:1], axis=0))


def _positions(values: ArrayLike, what: str = "position") -> Array:
    array = numbers(values, what)
    if array.ndim not in (1, 2) or len(array) < 2:
        raise DynidentError(f"{what} has the shape {array.shape}; give at least two samples along the first axis")
    return finite_rows(what, array)
