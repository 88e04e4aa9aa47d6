"""Ready-made plans: the complete test of document 3, runs without and with a payload; and averaging over periods."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.excitation.limits_file import MotionLimits
from dynident.excitation.plan import Plan, Stage
from dynident.trajectory import Curve, friction_plateaus, warming

Array = NDArray[np.float64]


def rates_of(limits: MotionLimits) -> tuple[Array, Array]:
    """Return speeds and accelerations for joins; where none is known, what crosses the range in a few seconds.

    Parameters
    ----------
    limits : MotionLimits
        Limits.

    Returns
    -------
    speed, acceleration : ndarray, (n,)
        Finite rates.
    """
    span = limits.upper - limits.lower
    return np.minimum(limits.velocity, span), np.where(np.isfinite(limits.acceleration), limits.acceleration, 4.0 * span)


def complete_test(
    robot: str,
    limits: MotionLimits,
    excitation: Curve,
    rate: float,
    validation: Curve | None = None,
    cycles: int = 24,
    period: float = 300.0,
    warming_time: float = 180.0,
    posture: ArrayLike | None = None,
) -> Plan:
    """Return the complete test of document 3: excitation, friction plateaus, warming; 24 cycles of 5 min.

    Warming is shortened when excitation and plateaus leave less time in the cycle.

    Parameters
    ----------
    robot : str
        Name.
    limits : MotionLimits
        Limits of the joints; collisions of plateaus and warming are NOT checked here, see
        `dynident.excitation.check_motion`.
    excitation : Curve
        Training motion.
    rate : float
        Samples per second [Hz].
    validation : Curve, optional
        Another motion, for validation only.
    cycles : int
        How many cycles.
    period : float
        Length of a cycle [s].
    warming_time : float
        Longest warming [s].
    posture : array_like (n,), optional
        Where joints wait while others are measured.

    Returns
    -------
    Plan
        The plan.
    """
    speed, push = rates_of(limits)
    keep = 1.0 - max(limits.margin, 0.01)
    middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * keep * (limits.upper - limits.lower)
    home = middle if posture is None else np.asarray(posture, dtype=np.float64)
    box = (middle - half, middle + half, keep * speed, keep * push)
    stages = [Stage("excitation", "training", excitation), Stage("friction", "friction", friction_plateaus(*box, posture=home))]
    if validation is not None:
        stages.insert(1, Stage("validation", "validation", validation))
    used = Plan(robot, limits.coordinates, stages, 1, rate, keep * speed, keep * push, home).curve.duration
    left = min(warming_time, period - used - 15.0) if period else warming_time
    if left < 10.0:
        raise DynidentError(
            f"excitation and plateaus take {used:.0f} s of a cycle of {period:.0f} s; shorten them or lengthen the cycle"
        )
    stages.append(Stage("warming", "warming", warming(*box, duration=left), record=False))
    return Plan(robot, limits.coordinates, stages, cycles, rate, keep * speed, keep * push, home, period)


def payload_plan(
    robot: str,
    limits: MotionLimits,
    excitation: Curve,
    rate: float,
    payload: str,
    repetitions: int = 3,
    validation: Curve | None = None,
) -> tuple[Plan, Plan]:
    """Return two plans with the same motion, without and with a payload: together they tell it from the link that carries it.

    Parameters
    ----------
    robot : str
        Name.
    limits : MotionLimits
        Limits; they must hold with the payload.
    excitation : Curve
        Motion.
    rate : float
        Samples per second [Hz].
    payload : str
        Name of the payload.
    repetitions : int
        Periods to average over.
    validation : Curve, optional
        Another motion, run with the payload.

    Returns
    -------
    without, with_payload : Plan
        The two runs.
    """
    if not payload:
        raise DynidentError("payload has no name; name what is mounted")
    speed, push = rates_of(limits)
    home = 0.5 * (limits.lower + limits.upper)
    bare = [Stage("without", "payload", excitation, repetitions)]
    loaded = [Stage("with", "payload", excitation, repetitions, payload)]
    if validation is not None:
        loaded.append(Stage("validation", "validation", validation, 1, payload))
    first, second = (Plan(robot, limits.coordinates, stages, 1, rate, speed, push, home) for stages in (bare, loaded))
    return first, second


def average_periods(samples: ArrayLike, period: int, skip: int = 1) -> tuple[Array, Array]:
    """Return the mean over periods of a periodic motion, and the standard deviation of that mean.

    Parameters
    ----------
    samples : array_like, (N, k)
        Measured signals.
    period : int
        Samples per period.
    skip : int
        Periods at the start that are left out (transients).

    Returns
    -------
    mean, deviation : ndarray, (period, k)
        Averages; deviations are zero with a single period.
    """
    x = np.asarray(samples, dtype=np.float64)
    count = x.shape[0] // period - skip if period > 0 else 0
    if x.ndim != 2 or count < 1:
        raise DynidentError(f"{x.shape[0]} samples hold less than {skip + 1} periods of {period}; record more periods")
    stacked = x[skip * period : (skip + count) * period].reshape(count, period, x.shape[1])
    spread = stacked.std(axis=0, ddof=1) / np.sqrt(count) if count > 1 else np.zeros(stacked.shape[1:])
    return stacked.mean(axis=0), spread
