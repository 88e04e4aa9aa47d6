"""Ready-made plans: the complete test, runs without and with a payload, a motion for validation; and where joints can move."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.checks import number, shown, whole
from dynident.errors import DynidentError, require
from dynident.excitation.input_checks import fits, motion_curve, per_coordinate, text
from dynident.excitation.limits import State, all_excess, all_names, least_margins
from dynident.excitation.limits_file import MotionLimits
from dynident.excitation.optimise import Problem, feasible_start
from dynident.excitation.plan import Plan, Stage
from dynident.trajectory.family import Curve, Trajectory, positive, sample
from dynident.trajectory.joins import resting_place
from dynident.trajectory.moves import Strokes, cycloid_section, friction_plateaus, warming
from dynident.trajectory.sines import Multisine

CHECK_RATE = 100.0  # samples per second on which plans are checked
ENOUGH = 0.35  # room on either side of a posture, as a share of the range, with which it is taken
TRIED = 20  # postures
CROSSING = 1.0  # time in which a joint without a known speed crosses its range [s]
POINTS = 2000  # of a box that are looked at
SLICE = 0.04  # share of a joint's range that a box loses at a time
CLEAR = 0.01  # share of every limit that the points of a box leave


def rates_of(limits: MotionLimits) -> tuple[Array, Array]:
    """Return speeds and accelerations for joins; where none is known, what crosses the range in a few seconds."""
    span = limits.upper - limits.lower
    speed = np.where(np.isfinite(limits.velocity), limits.velocity, span / CROSSING)
    return speed, np.where(np.isfinite(limits.acceleration), limits.acceleration, 4.0 * span / CROSSING**2)


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


LEAST = 10.0  # shortest warming [s]
SPARE = 6.0  # of a cycle, for the joins around the warming [s]
PLATEAUS = (2.0, 1.5, 1.0, 0.75, 0.5, 0.4)  # lengths of friction plateaus that are tried so that the warming has its time [s]
SHRINK = (1.0, 0.97, 0.94, 0.9, 0.85, 0.7, 0.55, 0.4, 0.3, 0.2, 0.12)  # shares of ranges that are tried where limits interfere
WARMING = 0.8  # share of the ranges, section 2.4.1
TONES = 8  # sines of a validation motion


def plan_within(
    robot: str,
    limits: MotionLimits,
    stages: list[Stage],
    rate: float,
    cycles: int = 1,
    period: float = 0.0,
    home: ArrayLike | None = None,
    notes: Mapping[str, Any] | None = None,
) -> Plan:
    """Return a plan whose joins keep the limits of positions and rates, after checking all limits on all of it."""
    plan = _joined(robot, limits, stages, rate, home, cycles, period=period, notes={} if notes is None else notes)
    check_plan(plan, limits)
    return plan


def _joined(
    robot: str, limits: MotionLimits, stages: list[Stage], rate: float, home: ArrayLike | None, cycles: int = 1, **fields: Any
) -> Plan:
    """Return the plan of `plan_within` before it is checked."""
    require(limits, MotionLimits, "limits")
    if not isinstance(stages, list | tuple) or not stages or not all(isinstance(stage, Stage) for stage in stages):
        raise DynidentError(f"stages are {shown(stages)}; give a list of Stage")
    speed, push = rates_of(limits)
    rest = resting_place(stages[0].curve, push) if home is None else per_coordinate(home, len(limits.coordinates), "home")
    fields |= {"lower": limits.lower, "upper": limits.upper, "jerk": limits.jerk if np.isfinite(limits.jerk).any() else None}
    return Plan(robot, limits.coordinates, stages, cycles, rate, speed, push, rest, **fields)


def check_plan(plan: Plan, limits: MotionLimits) -> dict[str, float]:
    """Return the share of each of the `limits` that a whole cycle of `plan` leaves; a plan that breaks one is refused."""
    require(plan, Plan, "plan")
    require(limits, MotionLimits, "limits")
    t, excess = curve_excess(plan.curve, limits)
    names = all_names(limits.all)
    worst = np.unravel_index(int(np.argmax(excess)), excess.shape)
    if excess[worst] > _touch(names[worst[1]]):
        where = next((p for p in reversed(plan.entries()) if p.start <= t[worst[0]]), None)
        part = f"stage '{where.stage.name}'" if where is not None and where.stage is not None else "a join between stages"
        raise DynidentError(
            f"plan: {part} breaks limit '{names[worst[1]]}' by {excess[worst]:.3g} of its size at t = {t[worst[0]]:.2f} s; "
            "choose another posture or home, or relax the limit"
        )
    return least_margins(names, excess.max(axis=0))


def curve_excess(
    curve: Curve, limits: MotionLimits, rate: float = CHECK_RATE, what: str = "a cycle of the plan"
) -> tuple[Array, Array]:
    """Return times (N,) and the excess of all limits (N, k) along a curve; the jerk is by differences."""
    fits(curve.duration, rate, curve.dof, what)
    motion = sample(curve, rate)
    jerk = np.gradient(motion.a, motion.t, axis=0)
    return motion.t, all_excess(limits.all, State(motion.q, motion.v, motion.a, jerk))


def _touch(name: str) -> float:
    """Return by how much rounding may exceed a limit: differences make the jerk of a corner, and half of it, uncertain."""
    return 1e-2 if name.startswith("jerk of") else 1e-6


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
        worst = int(np.argmax(excess - [_touch(name) for name in names]))
        if excess[worst] <= _touch(names[worst]):
            return curve
        reason = f"limit '{names[worst]}' would be broken by {excess[worst]:.3g} of its size"
    raise DynidentError(f"no {what} around the posture keeps the limits: {reason}; choose another posture or slower speeds")


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
) -> Plan:
    """Return the complete test of [Pagani2022, section 2.4]: excitation, full speed, friction, warming; 24 cycles of 5 min."""
    require(limits, MotionLimits, "limits")
    motion_curve(excitation, "excitation")
    period, warming_time = number("period", period), number("warming_time", warming_time)
    keep = 1.0 - max(limits.margin, 0.01)
    rest = posture_of(limits, excitation) if posture is None else per_coordinate(posture, len(limits.coordinates), "posture")
    bounds, (speed, push) = reach(limits, rest), rates_of(limits)
    rates = (speed, keep * push)  # constant speeds are the largest ones themselves

    def plateaus(longest: float, share: float) -> Strokes:
        low, high = (rest + share * keep * (x - rest) for x in bounds)
        return friction_plateaus(low, high, *rates, longest=longest, posture=rest, jerk=keep * limits.jerk)

    stages = [Stage("excitation", "training", excitation, repetitions)]
    stages.append(Stage("full_speed", "training", _full_speed(limits, rest, rates, keep)))
    if validation is not None:
        stages.append(Stage("validation", "validation", validation))
    for longest in PLATEAUS:
        try:
            friction = plateaus(longest, SHRINK[0])  # checked below, once its length is known
        except DynidentError:  # too short for the speed: those that keep all limits, or the reason
            friction = _fitting(partial(plateaus, longest), limits, "friction plateaus")
        used = _joined(robot, limits, [*stages, Stage("friction", "friction", friction)], rate, rest).curve.duration
        left = min(warming_time, period - used - SPARE) if period else warming_time
        if left >= warming_time:
            break
    measured = [*stages, Stage("friction", "friction", _fitting(partial(plateaus, longest), limits, "friction plateaus"))]
    if left < LEAST:
        raise DynidentError(
            f"excitation and plateaus take {used:.0f} s of a cycle of {period:.0f} s; shorten them or lengthen the cycle"
        )
    warm = Stage("warming", "warming", _warming(limits, rest, rates, keep, left), record=False)
    over = _joined(robot, limits, [*measured, warm], rate, rest).curve.duration - period
    if period and over > 0.0:  # slow joints need more for the joins around the warming
        warm = replace(warm, curve=_warming(limits, rest, rates, keep, max(left - over, LEAST)))
    return plan_within(robot, limits, [*measured, warm], rate, cycles, period, rest, notes)


def complete_shares(plan: Plan, limits: MotionLimits) -> dict[str, dict[str, float]]:
    """Return how far a complete test goes: shares of the largest speeds and of the ranges, and lengths of plateaus."""
    stages = {stage.name: stage.curve for stage in plan.stages}
    friction, warm, full = (stages.get(name) for name in ("friction", "warming", "full_speed"))
    if not isinstance(friction, Strokes) or warm is None or full is None:
        raise DynidentError("the plan is no complete test; make one with complete_test")
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
        if np.all(excess <= [_touch(name) for name in all_names(limits.all)]):
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


def payload_plan(
    robot: str,
    limits: MotionLimits,
    excitation: Curve,
    rate: float,
    payload: str,
    repetitions: int = 3,
    validation: Curve | None = None,
    notes: Mapping[str, Any] | None = None,
) -> tuple[Plan, Plan]:
    """Return two plans with the same motion, without and with a payload, which separate it from the link that carries it.

    `robot`, `limits` (which must hold with the payload), `excitation`, `rate` [Hz] and `notes` are those of a `Plan`, `payload`
    is its name; the motion is averaged over `repetitions`, and `validation` is another motion, run with the payload.
    """
    if not text(payload, "payload"):
        raise DynidentError("payload has no name; name what is mounted")
    bare = [Stage("without", "payload", excitation, repetitions)]
    loaded = [Stage("with", "payload", excitation, repetitions, payload)]
    if validation is not None:
        loaded.append(Stage("validation", "validation", validation, 1, payload))
    first, second = (plan_within(robot, limits, stages, rate, notes=notes) for stages in (bare, loaded))
    return first, second


def validation_motion(problem: Problem, seed: int = 1, duration: float | None = None) -> Trajectory:
    """Return a motion for validation, different from any training motion: faded sines of random frequencies and phases."""
    require(problem, Problem, "problem")
    generator = np.random.default_rng([whole("seed", seed, least=0, most=np.inf), 20])
    T = problem.family.duration if duration is None else positive("duration", duration)
    lowest, highest = min(1.0 / T, 0.5 * problem.family.highest), problem.family.highest
    tones = np.sort(generator.uniform(lowest, highest, TONES))
    family = Multisine(tuple(tones.tolist()), tuple(generator.uniform(0.0, 2.0 * np.pi, TONES).tolist()), T, 0.2 * T)
    count = problem.objective.t.size
    other = replace(problem, objective=replace(problem.objective, family=family, t=np.arange(count) / count * T))
    for _ in range(10):
        x = other.shrink(feasible_start(other, generator))
        if x is not None:
            return Trajectory.from_vector(family, x)
    raise DynidentError("no motion for validation was found inside the limits; relax them, or give one of your own")
