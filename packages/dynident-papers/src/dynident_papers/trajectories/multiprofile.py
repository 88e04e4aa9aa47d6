"""The velocity multi-profile of [Roldan2017]: a curve of one axis from its velocity."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.trajectory.curves import CurveBase, State, positive

RPM = 2.0 * np.pi / 60.0
MOST_KNOTS = 1_000_000  # of a stage


@dataclass(frozen=True, eq=False)
class VelocityProfile(CurveBase):
    """One axis whose velocity is a monotone curve between given values.

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
        """Duration [s]."""
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

    def at(self, t: Array) -> State:
        """Return q, v, a at checked times."""
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
        Number of increasing speeds.
    rounding : float
        Time over which corners of the speed are rounded [s]; friction about rest is visible there, within the band of a log.
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
    speeds = np.convolve(speeds, window / window.sum(), mode="same")  # a mean with positive weights does not exceed the limits
    speeds[[0, -1]] = 0.0
    return VelocityProfile(np.asarray(np.arange(speeds.size) * knot, dtype=np.float64), speeds, start)
