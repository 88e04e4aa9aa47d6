"""Wanted motions and other signals of time: a motion, curve, plan or its file, and the state in which a robot starts."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import finite_times, numbers
from dynident.errors import DynidentError, SimulationError, SimulationWarning, require, warn
from dynident.mechanics.closure import close_positions, close_rates
from dynident.mechanics.functions import Motion
from dynident.mechanism.mechanism import Mechanism
from dynident.results import load
from dynident.trajectory.curves import Interpolated

Curve = Callable[[Array], tuple[Array, Array, Array]]
Signal = ArrayLike | Callable[[float], ArrayLike]
Start = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Reference:
    """Reference motion of the robot's coordinates."""

    curve: Curve  #: ``curve(t)`` with times (N,) since the start returns q, v, a (N, n); at rest outside its duration
    duration: float  #: Duration [s]
    dof: int  #: Number of coordinates n
    source: Mapping[str, Any] = field(default_factory=dict)  #: Source of the reference, for the log's provenance
    knots: Array | None = None  #: (N,), times of its source samples [s]
    _sampled: deque[tuple[Array, Motion]] = field(default_factory=lambda: deque(maxlen=3), repr=False)

    @cached_property
    def begin(self) -> tuple[Array, Array]:
        """Position and velocity at the start, (n,) each."""
        first = self.sample([0.0])
        return first.q[0], first.v[0]

    def sample(self, t: ArrayLike) -> Motion:
        """Return the reference motion at increasing times (N,) since the start [s]."""
        at = finite_times(t)
        for before, motion in list(self._sampled):  # many runs use the same times
            if np.array_equal(before, at):
                return motion
        motion = Motion(at, *self.curve(at))
        self._sampled.append((at, motion))
        return motion


def reference_of(source: object, mechanism: Mechanism) -> Reference:
    """Return a motion, trajectory, plan or plan file as a reference for a robot."""
    require(mechanism, Mechanism, "mechanism")
    if isinstance(source, Reference):
        reference = source
    elif isinstance(source, Motion):
        reference = _through(source)
    elif isinstance(source, str | os.PathLike):
        try:
            plan = load(source)
        except DynidentError as error:
            raise SimulationError(
                f"reference '{source}' cannot be read as a plan ({error}); make one with dynident excite"
            ) from error
        return reference_of(plan, mechanism)
    elif all(hasattr(source, name) for name in ("stages", "coordinates", "curve", "cycles")):
        found: Any = source  # a dynident.excitation.Plan, which is not imported here
        kind = {"kind": "plan", "plan": found.identity, "robot": found.robot}
        reference = _cycles(found.curve, found.coordinates, found.cycles, found.period, kind, mechanism)
    elif callable(source) and hasattr(source, "duration") and hasattr(source, "dof"):
        kind = {"kind": "curve", "curve": type(source).__name__}
        reference = Reference(source, float(source.duration), int(source.dof), kind)
    else:
        raise SimulationError(
            f"reference is a {type(source).__name__}; give a Motion, a trajectory of dynident.trajectory, or a plan or its file"
        )
    if reference.dof != mechanism.dof:
        raise SimulationError(
            f"reference moves {reference.dof} coordinates but robot '{mechanism.name}' has {mechanism.dof} "
            f"({', '.join(mechanism.coordinate_names)}); give one column for each"
        )
    return reference


@lru_cache(maxsize=4)  # shared by runs and machines that follow one motion
def _through(motion: Motion) -> Reference:
    """Return the curve through the samples of a motion; a single sample is held."""
    knots, still = motion.t - motion.t[0], np.zeros((2, motion.dof))
    curve = Interpolated(motion if len(motion) > 1 else Motion([0.0, 1.0], still + motion.q, still, still))
    return Reference(curve.at, float(knots[-1]), motion.dof, {"kind": "motion", "samples": len(motion)}, knots)


def _cycles(
    curve: Any, names: Sequence[str], cycles: int, period: float, kind: dict[str, Any], mechanism: Mechanism
) -> Reference:
    """Return one cycle of a plan in the order of the robot's coordinates; later times run the cycles that follow."""
    if set(names) != set(mechanism.coordinate_names) or len(names) != mechanism.dof:
        raise SimulationError(
            f"the plan moves {', '.join(names)} but robot '{mechanism.name}' has {', '.join(mechanism.coordinate_names)}; "
            "make a plan for this robot"
        )
    if kind["robot"] != mechanism.name:  # joint names alone do not identify a robot
        warn(
            f"the plan was made for robot '{kind['robot']}' but runs on '{mechanism.name}', whose limits it may violate; "
            "check it, or make a plan for this robot",
            SimulationWarning,
        )
    order = [list(names).index(name) for name in mechanism.coordinate_names]
    period, last = max(period, curve.duration), max(1, cycles) - 1

    def ordered(t: Array) -> tuple[Array, Array, Array]:
        at = finite_times(t)
        turn = np.clip(np.floor(at / period + 1e-12), 0, last)  # at rest between the end of a cycle and the next start
        q, v, a = curve(at - turn * period)
        return q[:, order], v[:, order], a[:, order]

    return Reference(ordered, float(curve.duration), len(order), kind)


def sampled(signal: Signal, t: ArrayLike | None, when: Array, width: int, what: str) -> Array:
    """Return a constant, table or function of time at given times."""
    if callable(signal):
        rows = [np.atleast_1d(numbers(signal(float(time)), what)) for time in when]
        wrong = next((row for row in rows if row.shape != (width,)), None)
        if wrong is not None:
            raise SimulationError(f"{what} returns shape {wrong.shape}; it must return {width} numbers for every time")
        out = np.array(rows).reshape(when.size, width)
    else:
        table = numbers(signal, what)
        if table.ndim <= 1 and t is None:
            if table.shape not in ((), (width,)):
                raise SimulationError(
                    f"{what} has shape {table.shape}; give {width} numbers, a table with times, or a function"
                )
            out = np.broadcast_to(table, (when.size, width)).copy()
        else:
            times = np.atleast_1d(numbers(() if t is None else t, f"{what}: t"))
            table = table[:, None] if table.ndim == 1 and width == 1 else table
            if table.shape != (times.size, width) or times.size == 0:
                raise SimulationError(
                    f"{what} has shape {table.shape} for {times.size} times; give one row of {width} numbers for each time"
                )
            if not np.all(np.isfinite(times)) or np.any(np.diff(times) <= 0.0):
                raise SimulationError(f"{what}: its times do not increase; sort them")
            out = np.column_stack([np.interp(when, times, table[:, j]) for j in range(width)])
    if not np.all(np.isfinite(out)):
        bad = int(np.argwhere(~np.isfinite(out))[0][0])
        raise SimulationError(f"{what} is not finite at t = {when[bad]:g} s; every number must be finite")
    return np.ascontiguousarray(out)


def start_state(mechanism: Mechanism, start: Start | None, first: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return positions and velocities at the start, after checking that they are possible."""
    if start is None:
        x, nu = np.array(first[0]), np.array(first[1])
        if mechanism.loops:
            _reachable(mechanism, x, "the reference's first position")
        return x, nu
    if not isinstance(start, Mapping):
        raise SimulationError(f"start is a {type(start).__name__}; give a mapping such as {{'q': [...]}}, or None")
    if "q" not in start or set(start) - {"q", "velocity"}:
        raise SimulationError(f"start has the keys {', '.join(map(str, start)) or '(none)'}; give q, and velocity if it moves")
    names, given = mechanism.coordinate_names, start["q"]
    if isinstance(given, Mapping):
        strange = [str(name) for name in given if name not in names]
        if strange:
            raise SimulationError(f"start: q names {', '.join(strange)}; coordinates are {', '.join(names)}")
        given = [given.get(name, value) for name, value in zip(names, first[0], strict=True)]
    x = _vector(given, "q", names)
    if mechanism.loops:
        _reachable(mechanism, x, "start: q")
    v = _vector(start.get("velocity", np.zeros(len(names))), "velocity", names)
    _within_limits(mechanism, x)
    return x, v


def _vector(values: ArrayLike, what: str, names: Sequence[str]) -> Array:
    """Return a finite vector with one number for each coordinate."""
    array = np.atleast_1d(numbers(values, f"start: {what}"))
    if array.shape != (len(names),):
        raise SimulationError(
            f"start: {what} has shape {array.shape}; give {len(names)} numbers, one for each of {', '.join(names)}"
        )
    if not np.isfinite(array).all():
        raise SimulationError(f"start: {what} is {array.tolist()}; every number must be finite")
    return np.array(array)


def _reachable(mechanism: Mechanism, x: Array, what: str) -> None:
    """Raise an error: the loops of a robot cannot close at x."""
    try:
        full = close_positions(mechanism, x[None])
        close_rates(mechanism, full, np.zeros((1, x.size)), np.zeros((1, x.size)))
    except DynidentError as error:
        where = ", ".join(f"{name} = {value:.6g}" for name, value in zip(mechanism.coordinate_names, x, strict=True))
        raise SimulationError(
            f"{what} ({where}): the loops of robot '{mechanism.name}' cannot close there, or only through a singularity; "
            "choose a position nearer to home"
        ) from error


def _within_limits(mechanism: Mechanism, x: Array) -> None:
    lower, upper = mechanism.position_limits
    outside = np.flatnonzero((x < lower - 1e-9) | (x > upper + 1e-9))
    if outside.size:
        j = int(outside[0])
        raise SimulationError(
            f"start: joint '{mechanism.coordinate_names[j]}' is at {x[j]:.6g}, outside its limits {lower[j]:.6g} to "
            f"{upper[j]:.6g}; start inside"
        )
