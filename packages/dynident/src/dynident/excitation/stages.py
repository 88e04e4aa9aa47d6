"""Plans whose joins keep the limits: with any stages, without and with a payload; and a motion for validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import shown, whole
from dynident.errors import DynidentError, require
from dynident.excitation.input_checks import fits, per_coordinate, text
from dynident.excitation.limits import State, all_excess, all_names, least_margins
from dynident.excitation.limits_file import MotionLimits
from dynident.excitation.optimise import Problem, feasible_start
from dynident.excitation.plan import Plan, Stage
from dynident.trajectory.family import Curve, Trajectory, positive, sample
from dynident.trajectory.joins import resting_place
from dynident.trajectory.sines import Multisine

CHECK_RATE = 100.0  # samples per second on which plans are checked
CROSSING = 1.0  # time in which a joint without a known speed crosses its range [s]


def rates_of(limits: MotionLimits) -> tuple[Array, Array]:
    """Return speeds and accelerations for joins; where none is known, what crosses the range in a few seconds."""
    span = limits.upper - limits.lower
    speed = np.where(np.isfinite(limits.velocity), limits.velocity, span / CROSSING)
    return speed, np.where(np.isfinite(limits.acceleration), limits.acceleration, 4.0 * span / CROSSING**2)


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
    plan = joined_plan(robot, limits, stages, rate, home, cycles, period=period, notes={} if notes is None else notes)
    check_plan(plan, limits)
    return plan


def joined_plan(
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
    if excess[worst] > rounding(names[worst[1]]):
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


def rounding(name: str) -> float:
    """Return by how much rounding may exceed a limit: differences make the jerk of a corner, and half of it, uncertain."""
    return 1e-2 if name.startswith("jerk of") else 1e-6


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
