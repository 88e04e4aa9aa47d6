"""What a virtual robot is asked to do (`Reference`), and what acts on it from outside: torques on actuators, wrenches."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.errors import SimulationError, SimulationWarning, require, warn
from dynident.files import read_json
from dynident.mechanics.motion import Motion
from dynident.mechanism.mechanism import Mechanism
from dynident.trajectory.export import cycle_from_spec
from dynident.trajectory.family import finite_times
from dynident.trajectory.splines import Interpolated

Array = NDArray[np.float64]
Curve = Callable[[Array], tuple[Array, Array, Array]]
PLAN_FORMAT = "dynident-plan-1"  # of dynident.excitation.Plan, which stands above this room
Signal = ArrayLike | Callable[[float], ArrayLike]


@dataclass(frozen=True, eq=False)
class Reference:
    """A wanted motion of the robot's coordinates.

    Parameters
    ----------
    curve : callable
        ``curve(t)`` with times (N,) since the start returns q, v, a (N, n); at rest outside its duration.
    duration : float
        How long it takes [s].
    dof : int
        Number of coordinates n.
    source : mapping
        What it was made from, for the log's provenance.
    knots : ndarray (N,), optional
        Times of the samples it was made from [s].
    """

    curve: Curve
    duration: float
    dof: int
    source: Mapping[str, Any] = field(default_factory=dict)
    knots: Array | None = None
    _sampled: deque[tuple[Array, Motion]] = field(default_factory=lambda: deque(maxlen=3), repr=False)

    @cached_property
    def begin(self) -> tuple[Array, Array]:
        """Position and velocity at the start, (n,) each."""
        first = self.sample([0.0])
        return first.q[0], first.v[0]

    def sample(self, t: ArrayLike) -> Motion:
        """Return the wanted motion at given times.

        Parameters
        ----------
        t : array_like, (N,)
            Times since the start [s], increasing.

        Returns
        -------
        Motion
            Positions, velocities and accelerations.
        """
        at = finite_times(t)
        for before, motion in list(self._sampled):  # many runs ask for the same times
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
        knots = source.t - source.t[0]
        kind = {"kind": "motion", "samples": len(source)}
        reference = Reference(_through(source), float(knots[-1]), source.dof, kind, knots)
    elif isinstance(source, str | os.PathLike):
        reference = _from_plan_file(source, mechanism)
    elif all(hasattr(source, name) for name in ("stages", "coordinates", "curve", "cycles")):
        plan: Any = source  # known by what it has, because its room stands above this one
        kind = {"kind": "plan", "plan": plan.identity, "robot": plan.robot}
        reference = _cycles(plan.curve, plan.coordinates, plan.cycles, plan.period, kind, mechanism)
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


def _through(motion: Motion) -> Interpolated:
    """Return the curve through the samples of a motion; one alone is held."""
    if len(motion) > 1:
        return Interpolated(motion)
    still = np.zeros((2, motion.dof))
    return Interpolated(Motion([0.0, 1.0], still + motion.q, still, still))


def _from_plan_file(path: str | os.PathLike[str], mechanism: Mechanism) -> Reference:
    try:
        data = read_json(path, "a plan")
        if not isinstance(data, dict) or data.get("format") != PLAN_FORMAT:
            raise SimulationError(f"reference '{path}' is not a plan; make one with dynident excite, or give a Motion")
        curve = cycle_from_spec(data)
        kind = {"kind": "plan", "plan": str(data.get("identity", "")), "robot": str(data["robot"]), "file": Path(path).name}
        names, cycles, period = tuple(data["coordinates"]), int(data["cycles"]), float(data["period"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        if isinstance(error, SimulationError):
            raise
        raise SimulationError(
            f"reference '{path}' cannot be read as a plan ({error}); make one with dynident excite"
        ) from error
    return _cycles(curve, names, cycles, period, kind, mechanism)


def _cycles(
    curve: Any, names: Sequence[str], cycles: int, period: float, kind: dict[str, Any], mechanism: Mechanism
) -> Reference:
    """Return one cycle of a plan in the order of the robot's coordinates; later times run the cycles that follow."""
    if set(names) != set(mechanism.coordinate_names) or len(names) != mechanism.dof:
        raise SimulationError(
            f"the plan moves {', '.join(names)} but robot '{mechanism.name}' has {', '.join(mechanism.coordinate_names)}; "
            "make a plan for this robot"
        )
    if kind["robot"] != mechanism.name:  # names of joints alone do not tell two arms apart
        warn(
            f"the plan was made for robot '{kind['robot']}' and runs on '{mechanism.name}', whose limits it may not keep; "
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


@dataclass(frozen=True, eq=False)
class Disturbance:
    """Torques that act on the actuator coordinates beside those of the motors.

    Parameters
    ----------
    torque : array_like (k,), array_like (N, k), or callable
        Constant torques; a table over `t`, linear in between and held outside; or a function of time [N m, N].
    t : array_like (N,), optional
        Times of a table [s].

    Examples
    --------
    >>> from dynident.simulate import Disturbance
    >>> push = Disturbance([[0.0], [5.0], [0.0]], t=[0.0, 0.5, 1.0])
    >>> push.sample([0.25, 2.0], 1).ravel().tolist()
    [2.5, 0.0]
    """

    torque: Signal
    t: ArrayLike | None = None

    def sample(self, when: ArrayLike, count: int) -> Array:
        """Return the torques at given times."""
        return sampled(self.torque, self.t, np.asarray(when, dtype=np.float64), count, "disturbance")


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


def wrench_tables(mechanism: Mechanism, wrenches: Mapping[str, Any] | None, when: Array) -> dict[str, Array]:
    """Return the external wrenches on links at given times."""
    if wrenches is None:
        return {}
    if not isinstance(wrenches, Mapping):
        raise SimulationError(f"wrenches is a {type(wrenches).__name__}; give a mapping of link name to (force, moment)")
    tables = {}
    for link, value in wrenches.items():
        mechanism.frame(link)
        what = f"wrench on '{link}'"
        if isinstance(value, tuple) and len(value) == 2 and not callable(value):
            tables[link] = sampled(value[1], value[0], when, 6, what)
        else:
            tables[link] = sampled(value, None, when, 6, what)
    return tables
