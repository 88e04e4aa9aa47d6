"""Drift over months: the slope of every parameter of every robot over the periods of its logs.

    d_pt = s_p (t - mean t) + c_p (theta_t - mean theta) + noise of variance 1 / w_pt

d_pt is the change of parameter p alone that explains period t, w_pt its precision, theta the temperature. c_p is
common to the fleet and comes from differences within robots; the slope is tested against the remaining scatter, by
Student's t. z is the standard normal deviate of the same probability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.friction.terms import term_of
from dynident.identify import BaseParameters
from dynident_lab.fleet.alarms import MEDIAN, limits_of, normal, probability, step_up
from dynident_lab.fleet.effect import RANGE
from dynident_lab.fleet.results import Deviation, RobotEstimate, alike

PERIODS = 3  # of a robot: fewer determine no slope
MANY = 50  # robots above which the fleet's own scatter of slopes is used
YEAR = 365.25


def drifts_of(
    robots: Sequence[RobotEstimate], base: BaseParameters, false_alarms: float, nominal: Array
) -> tuple[tuple[Deviation, ...], float, dict[str, float]]:
    """Return the drifts beyond the limit, the limit, and the change of joint terms per degree within robots."""
    told = [robot for robot in robots if len(robot.periods) >= PERIODS]
    if not told:
        return (), math.nan, {}
    parameters = base.mechanism.parameters
    slopes = _temperature_slopes(told, parameters.names)
    rows = [_slope(robot, slopes) for robot in told]
    freedom = np.array([len(robot.periods) - 2 for robot in told])
    scatter = _scatter(np.array([row[2] for row in rows]), freedom)
    slope, std = np.array([row[0] for row in rows]), np.array([row[1] for row in rows]) * np.sqrt(scatter)
    seen = np.isfinite(std) & (std > 0.0)
    t = np.divide(slope, std, out=np.zeros_like(slope), where=seen)
    if len(told) >= MANY:
        wider = np.maximum(1.0, 1.4826 * np.median(np.abs(t), axis=0))
        t, std = t / wider, std * wider
    z = normal(t, MEDIAN * float(freedom.sum()))
    largest, tests = np.max(np.abs(z), axis=1), float(np.any(seen, axis=0).sum())
    limits = limits_of(false_alarms, len(told), tests)
    limit = float(limits[max(step_up(largest, limits), 1) - 1])
    found = []
    for robot, own, s, e in zip(told, z, slope, std, strict=True):
        best = int(np.argmax(np.abs(own)))
        if abs(own[best]) > limit:
            found.append(
                Deviation(
                    robot.serial,
                    robot.robot,
                    parameters.names[best],
                    parameters.units[best],
                    float(s[best]),
                    float(e[best]),
                    float(nominal[best]),
                    float(own[best]),
                    tuple(parameters.names[k] for k in alike(own, best)),
                    probability(own[best], tests),
                )
            )
    known = {name: float(c) for name, c in zip(parameters.names, slopes, strict=True) if c != 0.0}
    return tuple(sorted(found, key=lambda d: -abs(d.z))), limit, known


def _scatter(rest: Array, freedom: NDArray[np.int_]) -> Array:
    """Return the variance about the lines over that of the data (p,), at least 1, by the median: one robot may have a step."""
    from scipy.special import gammaincinv  # noqa: PLC0415 - scipy costs import time

    middle = 2.0 * gammaincinv(freedom / 2.0, 0.5) / freedom  # median of chi^2 divided by its degrees of freedom
    return np.asarray(np.maximum(1.0, np.median(rest / middle[:, None], axis=0)))


def _centred(values: Array, weights: Array) -> Array:
    """Return values (T, p) minus their weighted mean over the periods."""
    total = weights.sum(axis=0)
    mean = np.divide((weights * values).sum(axis=0), total, out=np.zeros_like(total), where=total > 0.0)
    return np.asarray(values - mean)


def _temperature_slopes(robots: Sequence[RobotEstimate], names: Sequence[str]) -> Array:
    """Return the change of every joint term per degree, from differences within robots; zero if unknown."""
    up, down = np.zeros(len(names)), np.zeros(len(names))
    widest = 0.0
    for robot in robots:
        theta = np.array([period.temperature for period in robot.periods])
        if not np.all(np.isfinite(theta)):
            return np.zeros(len(names))
        widest = max(widest, float(np.ptp(theta)))
        d, w = np.array([x.change for x in robot.periods]), np.array([x.precision for x in robot.periods])
        day = np.array([x.day for x in robot.periods])[:, None] * np.ones_like(d)
        # Growth with time is drift: only the rest of the temperature determines its effect.
        time = _centred(day, w)
        square = (w * time**2).sum(axis=0)
        warm = _centred(theta[:, None] * np.ones_like(d), w)
        own, warm = (
            x - time * np.divide((w * x * time).sum(axis=0), square, out=np.zeros_like(square), where=square > 0.0)
            for x in (_centred(d, w), warm)
        )
        up += (w * warm * own).sum(axis=0)
        down += (w * warm**2).sum(axis=0)
    joint_terms = np.array([term_of(name) is not None for name in names])
    if widest < RANGE:
        return np.zeros(len(names))
    return np.where(joint_terms & (down > 0.0), up / np.where(down > 0.0, down, 1.0), 0.0)


def _slope(robot: RobotEstimate, temperature: Array) -> tuple[Array, Array, Array]:
    """Return slope per year, its standard deviation, and the scatter about the line per degree of freedom, each (p,)."""
    d, w = np.array([x.change for x in robot.periods]), np.array([x.precision for x in robot.periods])
    theta = np.array([x.temperature for x in robot.periods])
    if np.any(temperature):
        d = d - (theta - theta.mean())[:, None] * temperature
    time = _centred(np.array([x.day for x in robot.periods])[:, None] / YEAR * np.ones_like(d), w)
    d = _centred(d, w)
    square = (w * time**2).sum(axis=0)
    seen = square > 0.0
    slope = np.divide((w * time * d).sum(axis=0), square, out=np.zeros_like(square), where=seen)
    rest = (w * (d - slope * time) ** 2).sum(axis=0) / max(len(d) - 2, 1)
    return slope, np.where(seen, 1.0 / np.sqrt(np.where(seen, square, 1.0)), np.inf), rest
