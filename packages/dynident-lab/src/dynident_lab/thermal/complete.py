"""The complete test of [Pagani2022, section 2.4]: excitation, full speed, friction plateaus and warming."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.checks import number
from dynident.errors import DynidentError, require
from dynident.excitation import Design, MotionLimits, Plan, Stage
from dynident.excitation.designs import CHECK_RATE, check_plan, curve_excess, joined_plan, plan_within, rates_of, rounding
from dynident.excitation.limits import State, all_excess, all_names
from dynident.excitation.objective import motion_curve, per_coordinate
from dynident.mechanics import forward_kinematics
from dynident.mechanism import Joint, Mechanism
from dynident.trajectory import sample
from dynident.trajectory.curves import Curve
from dynident.trajectory.profiles import Strokes
from dynident_lab.thermal.strokes import cycloid_section, friction_plateaus, warming

ENOUGH = 0.35  # room on either side of a posture, as a share of the range, with which it is taken
TRIED = 20  # postures
POINTS = 2000  # of a box that are looked at
SLICE = 0.04  # share of a joint's range that a box loses at a time
CLEAR = 0.01  # share of every limit that the points of a box leave
LEAST = 10.0  # shortest warming [s]
SPARE = 6.0  # of a cycle, for the joins around the warming [s]
PLATEAUS = (2.0, 1.5, 1.0, 0.75, 0.5, 0.4)  # lengths of friction plateaus that are tried so that the warming has its time [s]
SHRINK = (1.0, 0.97, 0.94, 0.9, 0.85, 0.7, 0.55, 0.4, 0.3, 0.2, 0.12)  # shares of ranges that are tried where limits interfere
UPRIGHT = 1e-5  # sin^2 of the angle between a joint's axis and gravity up to which it is upright
POSTURES = 8  # random starts of the search for an upright axis
STILL = 0.1  # at a posture between two stages [s]
WARMING = 0.8  # share of the ranges, section 2.4.1


def reach(limits: MotionLimits, posture: ArrayLike) -> tuple[Array, Array]:
    """Return how far each joint can go from a posture, alone and slowly, before any limit is broken."""
    rest = np.asarray(posture, dtype=np.float64)
    ends = np.array([limits.lower, limits.upper])
    found = np.tile(rest, (2, 1))
    for side, j in np.ndindex(ends.shape):
        for furthest in (1.0, 0.5, 0.25, 0.1):  # a robot with loops may be unable to follow the whole way
            share = np.linspace(0.0, furthest, 21)
            q = np.tile(rest, (share.size, 1))
            q[:, j] += share * (ends[side, j] - rest[j])
            zero = np.zeros_like(q)
            try:
                inside = np.all(all_excess(limits.all, State(q, zero, zero, zero)) <= 1e-9, axis=1)
            except DynidentError:
                continue
            last = share.size if inside.all() else int(np.argmin(inside))
            found[side, j] = q[max(last - 1, 0), j]
            break
    return found[0], found[1]


def posture_of(limits: MotionLimits, excitation: Curve) -> Array:
    """Return the middle of the ranges when every joint has room around it, or the place where the tightest one has most."""
    middle = 0.5 * (limits.lower + limits.upper)
    motion = sample(excitation, CHECK_RATE).q
    anywhere = np.random.default_rng(0).uniform(limits.lower, limits.upper, (TRIED, middle.size))
    best, room = middle, -1.0
    for q in (middle, motion.mean(axis=0), *motion[:: max(1, len(motion) // TRIED)], *anywhere):
        low, high = reach(limits, q)
        free = float(np.min(np.minimum(high - q, q - low) / (limits.upper - limits.lower)))
        if free > room:
            best, room = np.asarray(q), free
        if room > ENOUGH:
            break
    return best


def _free_way(limits: MotionLimits, start: Array, end: Array) -> bool:
    """Return whether a straight line in joint space stays clear of all limits."""
    q = start + np.linspace(0.0, 1.0, 41)[:, None] * (end - start)
    zero = np.zeros_like(q)
    return bool(np.all(all_excess(limits.all, State(q, zero, zero, zero)) <= -CLEAR))


def upright_postures(mechanism: Mechanism, limits: MotionLimits, rest: Array) -> Array:
    """Return one posture (n, n) per joint, in which its axis is upright where the joints before it allow that.

    Gravity then has no moment about the joint, so that its friction is the same in both directions [Pagani2022, section 2.4].
    Among such postures the one that leaves the joint most room is taken; where there is none, `rest`.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - slow to import

    postures = np.tile(rest, (rest.size, 1))
    size = float(np.linalg.norm(mechanism.gravity))
    if mechanism.loops or size == 0.0 or tuple(j.name for j in mechanism.joints if j.kind != "fixed") != limits.coordinates:
        return postures
    generator = np.random.default_rng(0)
    for j, joint in enumerate(x for x in mechanism.joints if x.kind != "fixed"):
        if joint.kind not in ("revolute", "continuous"):
            continue

        def tilt(before: Array, joint: Joint = joint) -> float:
            q = np.concatenate([before, rest[before.size :]])[None]
            axis = forward_kinematics(mechanism, q, joint.child)[0][0] @ joint.axis
            return 1.0 - float(axis @ mechanism.gravity / size) ** 2

        if tilt(rest[:j]) < UPRIGHT or j == 0:
            continue
        box = list(zip(limits.lower[:j], limits.upper[:j], strict=True))
        starts = [rest[:j], *generator.uniform(limits.lower[:j], limits.upper[:j], (POSTURES, j))]
        room = 0.0
        for found in (minimize(tilt, start, bounds=box) for start in starts):
            q = np.concatenate([found.x, rest[j:]])
            if found.fun > UPRIGHT or not (_free_way(limits, postures[j - 1], q) and _free_way(limits, q, rest)):
                continue
            low, high = reach(limits, q)
            if min(high[j] - q[j], q[j] - low[j]) > room:
                postures[j], room = q, float(min(high[j] - q[j], q[j] - low[j]))
    return postures


def free_box(limits: MotionLimits, lower: ArrayLike, upper: ArrayLike, least: ArrayLike) -> tuple[Array, Array] | None:
    """Return the part of a box, `least` wide or more, in which all joints may move at once; None where there is none."""
    low, high, least = (np.array(x, dtype=np.float64) for x in (lower, upper, least))
    step = SLICE * (high - low)
    generator = np.random.default_rng(0)
    while True:
        q = generator.uniform(low, high, (POINTS, low.size))
        zero = np.zeros_like(q)
        try:
            bad = np.any(all_excess(limits.all, State(q, zero, zero, zero)) > -CLEAR, axis=1)
        except DynidentError:  # a robot with loops cannot follow everywhere
            return None
        if not bad.any():
            return low, high
        while bad.any():  # slices go where most of their points break a limit: joints that break none keep their range
            best: tuple[float, int, NDArray[np.bool_], bool] | None = None
            for j in np.flatnonzero(high - low - step >= least):
                for slab, below in ((q[:, j] < low[j] + step[j], True), (q[:, j] > high[j] - step[j], False)):
                    share = float(bad[slab].mean()) if slab.any() else 0.0
                    if share > 0.0 and (best is None or share > best[0]):
                        best = share, int(j), slab, below
            if best is None:
                return None
            _, cut, slab, below = best
            if below:
                low[cut] += step[cut]
            else:
                high[cut] -= step[cut]
            q, bad = q[~slab], bad[~slab]


def _fitting(make: Callable[[float], Strokes], limits: MotionLimits, what: str) -> Strokes:
    """Return strokes over the largest share of the ranges that keeps all limits."""
    reason = ""
    for share in SHRINK:
        try:
            curve = make(share)
            excess = curve_excess(curve, limits)[1].max(axis=0)
        except DynidentError as error:  # too short for the speed, or the robot cannot follow
            reason = reason or str(error)
            continue
        names = all_names(limits.all)
        worst = int(np.argmax(excess - [rounding(name) for name in names]))
        if excess[worst] <= rounding(names[worst]):
            return curve
        reason = f"limit '{names[worst]}' would be exceeded by {excess[worst]:.3g}"
    raise DynidentError(f"no {what} around the posture satisfies the limits: {reason}; choose another posture or lower speeds")


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
    repetitions: int = 1,
    notes: Mapping[str, Any] | None = None,
    mechanism: Mechanism | None = None,
) -> Plan:
    """Return the complete test of [Pagani2022, section 2.4]: excitation, full speed, friction, warming; 24 cycles of 5 min.

    With the `mechanism` friction is measured about upright axes, where joints can be turned so.
    """
    require(limits, MotionLimits, "limits")
    motion_curve(excitation, "excitation")
    period, warming_time = number("period", period), number("warming_time", warming_time)
    keep = 1.0 - max(limits.margin, 0.01)
    rest = posture_of(limits, excitation) if posture is None else per_coordinate(posture, len(limits.coordinates), "posture")
    speed, push = rates_of(limits)
    rates = (speed, keep * push)  # constant speeds are the largest ones themselves
    postures = np.tile(rest, (rest.size, 1)) if mechanism is None else upright_postures(mechanism, limits, rest)
    bounds = np.array([[ends[j] for ends in reach(limits, q)] for j, q in enumerate(postures)]).T

    def plateaus(longest: float, share: float) -> Strokes:
        low, high = (rest + share * keep * (x - rest) for x in bounds)
        return friction_plateaus(low, high, *rates, longest=longest, posture=postures, jerk=keep * limits.jerk)

    stages = [Stage("excitation", "training", excitation, repetitions)]
    stages.append(Stage("full_speed", "training", _full_speed(limits, rest, rates, keep)))
    if validation is not None:
        stages.append(Stage("validation", "validation", validation))
    try:
        check_plan(joined_plan(robot, limits, stages, rate, rest), limits)
    except DynidentError:  # a straight way between them breaks a limit: go over the posture
        between = [Stage(f"rest_{k}", "warming", Strokes(rest, [], STILL), record=False) for k in range(1, len(stages))]
        stages = [stage for pair in zip(stages, between, strict=False) for stage in pair] + stages[-1:]
    for longest in PLATEAUS:
        try:
            friction = plateaus(longest, SHRINK[0])  # checked below, once its length is known
        except DynidentError:  # too short for the speed: those that keep all limits, or the reason
            friction = _fitting(partial(plateaus, longest), limits, "friction plateaus")
        used = joined_plan(robot, limits, [*stages, Stage("friction", "friction", friction)], rate, rest).curve.duration
        left = min(warming_time, period - used - SPARE) if period else warming_time
        if left >= warming_time:
            break
    measured = [*stages, Stage("friction", "friction", _fitting(partial(plateaus, longest), limits, "friction plateaus"))]
    if left < LEAST:
        raise DynidentError(
            f"excitation and plateaus take {used:.0f} s of a cycle of {period:.0f} s; shorten them or lengthen the cycle"
        )
    warm = Stage("warming", "warming", _warming(limits, rest, rates, keep, left), record=False)
    over = joined_plan(robot, limits, [*measured, warm], rate, rest).curve.duration - period
    if period and over > 0.0:  # slow joints need more for the joins around the warming
        warm = replace(warm, curve=_warming(limits, rest, rates, keep, max(left - over, LEAST)))
    return plan_within(robot, limits, [*measured, warm], rate, cycles, period, rest, notes)


def complete_plan(found: Design, validation: Curve | None = None, repetitions: int = 1) -> Plan:
    """Return the complete test of a designed motion: ``excite --complete``.

    Parameters
    ----------
    found : Design
        The designed motion.
    validation : Curve, optional
        Another motion, for validation.
    repetitions : int
        Periods of the designed motion in a row.

    Returns
    -------
    Plan
        Its notes have the numbers of the design and, as ``complete``, what each joint reaches (`complete_shares`).
    """
    limits = found.problem.limits
    robot = "robot" if found.mechanism is None else found.mechanism.name
    make = partial(complete_test, robot, limits, found.trajectory, found.rate, validation, repetitions=repetitions)
    try:
        plan = make(mechanism=found.mechanism)
    except DynidentError:  # no way between upright postures keeps the limits
        plan = make()
    return replace(plan, notes={**found.numbers(short=True), "complete": complete_shares(plan, limits)})


def complete_shares(plan: Plan, limits: MotionLimits) -> dict[str, dict[str, float]]:
    """Return how far a complete test goes: shares of the largest speeds and of the ranges, and lengths of plateaus."""
    stages = {stage.name: stage.curve for stage in plan.stages}
    friction, warm, full = (stages.get(name) for name in ("friction", "warming", "full_speed"))
    if not isinstance(friction, Strokes) or warm is None or full is None:
        raise DynidentError("the plan is not a complete test; create one with complete_test")
    speed, _ = rates_of(limits)
    cycloids, heat = sample(full, CHECK_RATE), sample(warm, CHECK_RATE)
    found = {}
    for j, name in enumerate(plan.coordinates):
        lengths = [(abs(v), end - begin) for k, v, begin, end in friction.plateaus if k == j]
        found[name] = {
            "full_speed": float(np.abs(cycloids.v[:, j]).max() / speed[j]),
            "plateau": max(length for _, length in lengths),
            "fastest_plateau": max(lengths)[1],
            "warming_speed": float(np.abs(heat.v[:, j]).max() / speed[j]),
            "warming_range": float(np.ptp(heat.q[:, j]) / (limits.upper[j] - limits.lower[j])),
        }
    return found


def _inside(low: Array, high: Array, share: float) -> tuple[Array, Array]:
    """Return a share of a box about its middle."""
    middle, half = 0.5 * (low + high), 0.5 * share * (high - low)
    return middle - half, middle + half


def _full_speed(limits: MotionLimits, rest: Array, rates: tuple[Array, Array], keep: float) -> Strokes:
    """Return cycloids at full speed: all joints at once where there is room for that, else one after the other."""
    speed, push = rates
    jerk = keep * limits.jerk
    least = np.maximum(0.5 * np.pi * speed**2 / push, np.pi * np.sqrt(0.5 * speed**3 / jerk))  # ways on which speed is reached
    box = free_box(limits, *_inside(limits.lower, limits.upper, keep), least)
    if box is not None:
        curve = cycloid_section(*box, speed, push, jerk)
        excess = curve_excess(curve, limits)[1].max(axis=0)
        if np.all(excess <= [rounding(name) for name in all_names(limits.all)]):
            return curve
    low, high = reach(limits, rest)

    def alone(share: float) -> Strokes:
        ends = [rest + share * keep * (x - rest) for x in (low, high)]
        return cycloid_section(ends[0], ends[1], speed, push, jerk, rest)

    return _fitting(alone, limits, "section at full speed")


def _warming(limits: MotionLimits, rest: Array, rates: tuple[Array, Array], keep: float, duration: float) -> Strokes:
    """Return the warming motion over 80 % of the ranges, or what other limits leave of them."""
    speed, push = rates
    jerk = keep * limits.jerk
    wanted = _inside(limits.lower, limits.upper, WARMING)
    least = speed * np.maximum(1.5 * speed / push, np.sqrt(6.0 * speed / jerk))  # ways on which the speed is reached
    box = free_box(limits, *wanted, np.minimum(least, wanted[1] - wanted[0]))
    if box is None:
        box = _inside(*reach(limits, rest), WARMING)

    def moves(share: float) -> Strokes:
        return warming(*_inside(*box, share), speed, push, duration=duration, share=1.0, jerk=jerk)

    return _fitting(moves, limits, "warming")
