"""Characteristics of a response: step metrics, deviation from a path and time lag, as defined in [Roldan2017]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.errors import SimulationError
from dynident.results import Result

ROUNDING = 1e-9  # of the step: a settled response exceeds the command by rounding errors, which is no rise
CHUNK = 400_000  # point-segment pairs at a time: about 20 MB


@dataclass(frozen=True)
class StepMetrics(Result):
    """Characteristics of a step response [Roldan2017, section 2.2.1]; times count from the step."""

    rise: float  # T_r [s]: time until the response first exceeds the command; NaN if never
    rise_10_90: float
    settling: float  # T_s [s]: after it the response stays within the band about the command; NaN if outside at the end
    overshoot: float  # Peak beyond the command, over the step's height; 0 without overshoot
    peak_time: float  # T_p [s]: time of the largest response in the direction of the step
    error: float  # Command minus response at the end, over the step's height
    band: float  # Band of the settling time, over the step's height

    def summary(self) -> str:
        """Return the numbers as one line of text."""
        return (
            f"rise {self.rise:.4g} s (10-90 % {self.rise_10_90:.4g} s), settled ({100 * self.band:g} %) {self.settling:.4g} s, "
            f"overshoot {100 * self.overshoot:.2f} % at {self.peak_time:.4g} s, last error {100 * self.error:.2g} %"
        )

    __str__ = summary


def step_metrics(
    t: ArrayLike,
    response: ArrayLike,
    target: float = 1.0,
    *,
    before: float | None = None,
    at: float | None = None,
    band: float = 0.02,
) -> StepMetrics:
    """Return the metrics of a response to a step."""
    time, y = _pair(t, response, "response")
    begin = float(time[0] if at is None else at)
    if not time[0] <= begin < time[-1]:
        raise SimulationError(f"the step is at {begin:g} s but times are {time[0]:g} to {time[-1]:g} s; choose inside")
    if not 0.0 < band < 1.0:
        raise SimulationError(f"band is {band}; give a part of the step's height between 0 and 1, such as 0.02")
    level = float(np.interp(begin, time, y) if before is None else before)
    height = float(target) - level
    if not np.isfinite(height) or abs(height) < 1e-300:
        raise SimulationError(f"the step goes from {level} to {target}; give two different finite levels")
    after = time > begin
    time = np.concatenate([[begin], time[after]]) - begin
    u = (np.concatenate([[np.interp(begin, *_pair(t, response, "response"))], y[after]]) - level) / height
    peak = int(np.argmax(u))
    outside = np.flatnonzero(np.abs(u - 1.0) > band)
    settling = 0.0 if not outside.size else np.nan
    if outside.size and outside[-1] + 1 < u.size:
        last = int(outside[-1])
        edge = 1.0 + band if u[last] > 1.0 else 1.0 - band
        settling = _crossing(time, u, last + 1, edge)
    low, high = _first(time, u, 0.1), _first(time, u, 0.9)
    return StepMetrics(
        _first(time, u, 1.0 + ROUNDING),
        high - low,
        settling,
        max(0.0, float(u[peak] - 1.0)),
        float(time[peak]),
        float(1.0 - u[-1]),
        band,
    )


def _crossing(time: Array, u: Array, i: int, level: float) -> float:
    """Return the time at which a signal crosses a level between the samples i - 1 and i."""
    return float(time[i - 1] + (time[i] - time[i - 1]) * (level - u[i - 1]) / (u[i] - u[i - 1]))


def _first(time: Array, u: Array, level: float) -> float:
    """Return the time at which a signal first exceeds a level, NaN if never."""
    above = np.flatnonzero(u > level)
    if not above.size:
        return float("nan")
    i = int(above[0])
    return _crossing(time, u, i, level) if i else 0.0


def _pair(t: ArrayLike, values: ArrayLike, what: str) -> tuple[Array, Array]:
    time, y = numbers(t, "t"), numbers(values, what)
    if time.ndim != 1 or y.shape != time.shape or time.size < 3:
        raise SimulationError(f"t has shape {time.shape} and {what} {y.shape}; give two vectors of equal length, at least 3")
    if not (np.all(np.isfinite(time)) and np.all(np.isfinite(y))) or np.any(np.diff(time) <= 0.0):
        raise SimulationError(f"t or {what} is not finite, or time does not increase; give finite samples sorted by time")
    return time, y


# ------------------------------------------------------------------------------------------------------------------- paths
def path_deviation(points: ArrayLike, path: ArrayLike) -> Array:
    """Return the distances of points from the polygon of a programmed path, regardless of time."""
    at, line = numbers(points, "points"), numbers(path, "path")
    if at.ndim != 2 or line.ndim != 2 or at.shape[1] != line.shape[1] or len(line) < 2:
        raise SimulationError(f"points have shape {at.shape} and path {line.shape}; give (N, d) and (M, d) with M at least 2")
    start, edge = line[:-1], np.diff(line, axis=0)
    square = np.maximum(np.sum(edge**2, axis=1), 1e-300)
    out = np.empty(len(at))
    size = max(1, CHUNK // len(start))
    for i in range(0, len(at), size):
        away = at[i : i + size, None, :] - start
        share = np.clip(np.sum(away * edge, axis=2) / square, 0.0, 1.0)
        out[i : i + size] = np.sqrt(np.min(np.sum((away - share[..., None] * edge) ** 2, axis=2), axis=1))
    return out


def radial_deviation(points: ArrayLike, centre: ArrayLike, radius: float) -> Array:
    """Return the signed distance of points from a programmed circle, |P - centre| - radius: positive outside."""
    at, middle = numbers(points, "points"), numbers(centre, "centre")
    if at.ndim != 2 or middle.shape != at.shape[1:]:
        raise SimulationError(f"points have shape {at.shape} and centre {middle.shape}; give (N, d) and (d,)")
    return np.asarray(np.linalg.norm(at - middle, axis=1) - radius)


def time_lag(t: ArrayLike, command: ArrayLike, response: ArrayLike, longest: float = 0.5) -> float:
    """Return the delay between command and response: the shift of the largest cross-correlation."""
    time, wanted = _pair(t, command, "command")
    _, actual = _pair(t, response, "response")
    if not longest > 0.0:
        raise SimulationError(f"longest is {longest} s; give the largest lag to look for, above zero")
    step = float(np.median(np.diff(time)))
    even = np.arange(time[0], time[-1] + 0.5 * step, step)
    x, y = (np.interp(even, time, z) for z in (wanted, actual))
    x, y = x - x.mean(), y - y.mean()
    if not (np.any(np.abs(x) > 1e-300) and np.any(np.abs(y) > 1e-300)):
        raise SimulationError("command or response is constant, so the lag is undefined; give signals that change")
    reach = max(1, min(int(np.ceil(longest / step)), x.size // 2))
    lags = np.arange(-reach, reach + 1)
    size = 1 << (2 * x.size).bit_length()
    full = np.fft.irfft(np.conj(np.fft.rfft(x, size)) * np.fft.rfft(y, size), size)
    # Mean and power of the overlap at each shift; otherwise samples shifted out would bias the peak.
    begin, end = np.maximum(-lags, 0), x.size - np.maximum(lags, 0)
    many = (end - begin).astype(np.float64)

    def total(z: Array, shift: Array | int) -> Array:
        sums = np.concatenate([[0.0], np.cumsum(z)])
        return np.asarray(sums[end + shift] - sums[begin + shift])

    first, second = total(x, 0), total(y, lags)
    spread = (total(x * x, 0) - first**2 / many) * (total(y * y, lags) - second**2 / many)
    score = (full[lags] - first * second / many) / np.sqrt(np.maximum(spread, np.finfo(float).tiny))
    best = int(np.clip(np.argmax(score), 1, score.size - 2))
    left, top, right = score[best - 1 : best + 2]
    bend = left - 2.0 * top + right
    return float((lags[best] + (0.5 * (left - right) / bend if bend < 0.0 else 0.0)) * step)
