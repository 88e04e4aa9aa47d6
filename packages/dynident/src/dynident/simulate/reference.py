"""Reference motion of a virtual robot (`Reference`), external loads, and the reference table of a control law.

A law reads one row per tick (`Columns`), computed from the reference motion of the coordinates:

    loops on actuators       rho, rho_v, feed-forward torques
    computed torque          q, v, a
    laws in a work space     q, v, a, place, rate and curve there, feed-forward
    controllers in Python    rho, rho_v, q, v, a

`table_of` computes all rows of a motion at once. C code, which gets the motion sample by sample, calls the functions of the
same parts.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import finite_times, numbers
from dynident.control.feedforward import (
    feedforward_function,
    feedforward_key,
    feedforward_numbers,
    friction_laws,
    refuse_singular,
)
from dynident.control.laws import PID, Cascade, ComputedTorque
from dynident.control.task import TaskCascade, TaskComputedTorque, TaskPID, bound_space
from dynident.errors import DynidentError, SimulationError, SimulationWarning, require, warn
from dynident.graph.algebra import along, dot
from dynident.graph.compiled import Compiled
from dynident.graph.expression import Function
from dynident.mechanics.actuation import coupling_rows
from dynident.mechanics.closure import close_positions, close_rates
from dynident.mechanics.equations import Equations
from dynident.mechanics.functions import Motion, cached, declared, entering, geometry_key, node_values
from dynident.mechanism.mechanism import Mechanism
from dynident.results import load
from dynident.simulate.layout import Field, Layout, Record, placed
from dynident.trajectory.curves import Interpolated

T = TypeVar("T")
Curve = Callable[[Array], tuple[Array, Array, Array]]
Signal = ArrayLike | Callable[[float], ArrayLike]


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


@dataclass(frozen=True, eq=False)
class Disturbance:
    """Torques on the actuator coordinates in addition to those of the motors.

    Examples
    --------
    >>> from dynident.simulate import Disturbance
    >>> push = Disturbance([[0.0], [5.0], [0.0]], t=[0.0, 0.5, 1.0])
    >>> push.sample([0.25, 2.0], 1).ravel().tolist()
    [2.5, 0.0]
    """

    #: (k,) or (N, k), constant torques; a table over `t`, linear in between and held outside; or a function of time [N m, N]
    torque: Signal
    t: ArrayLike | None = None  #: (N,), times of a table [s]

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


# ---- table of a control law -------------------------------------------------------------------------------------------


class ModelColumns(NamedTuple):
    """Adjacent columns computed from a model."""

    model: Mechanism
    first: int  # column
    key: Hashable  # of its code, in addition to the geometry of the model
    make: Callable[[], Function]  # from q, v, a of the model to `row` (and `ok`, above zero if valid)
    numbers: Mapping[str, Array]  # constant inputs of the function
    frames: bool = False  # whether the function uses a frame of a link

    def fill(self, table: Array, arrays: Mapping[str, Array]) -> None:
        """Write the columns of all samples."""
        code = cached(self.model, self.key, lambda: Compiled(self.make()), self.frames)
        ok = np.ones((len(table), 1))
        width = len(code.function.outputs["row"])
        code(len(table), {**arrays, **self.numbers, "row": table[:, self.first : self.first + width], "ok": ok})
        if not ok.min() > 0.0:
            refuse_singular(~(ok[:, 0] > 0.0))


class Columns(NamedTuple):
    """The columns of the reference of a control law."""

    width: int
    copied: int | None  # first column of the copied q, v, a; None if not copied
    parts: tuple[ModelColumns, ...]

    def table(self, motion: Motion) -> Array:
        """Return one row per sample."""
        table = np.zeros((len(motion), self.width))
        if self.copied is not None:
            table[:, self.copied : self.copied + 3 * motion.dof] = np.concatenate([motion.q, motion.v, motion.a], axis=1)
        closed: dict[Hashable, Array] = {}
        for part in self.parts:
            key = geometry_key(part.model, frames=False)
            arrays = entering(part.model, motion, closed.get(key))
            closed[key] = arrays["q"]
            part.fill(table, arrays)
        return table


def columns_of(mechanism: Mechanism, law: Any) -> Columns:
    """Return the reference columns of a control law."""
    k, n = len(mechanism.actuators), mechanism.dof
    if isinstance(law, ComputedTorque):
        return Columns(3 * n, 0, ())
    if isinstance(law, TaskPID | TaskComputedTorque | TaskCascade):
        model = law.model if isinstance(law, TaskComputedTorque) else mechanism
        fields = task_fields(model, law.space, k)
        parts = [_task_part(model, law.space, fields.place.first)]
        if isinstance(law, TaskCascade):
            parts += _feed(law.loops.torque_feedforward, fields.feed.first)
        elif isinstance(law, TaskPID) and law.feedforward is not None:
            parts.append(_forces(law.feedforward, fields.feed.first))
        return Columns(fields.size, 0, tuple(parts))
    actuators = ModelColumns(mechanism, 0, "wanted_actuators", lambda: _actuators(mechanism), _numbers(mechanism))
    if isinstance(law, Cascade):
        return Columns(3 * k, None, (actuators, *_feed(law.torque_feedforward, 2 * k)))
    if isinstance(law, PID):
        return Columns(3 * k, None, (actuators, *_feed(law.feedforward, 2 * k, law.friction)))
    return Columns(2 * k + 3 * n, 2 * k, (actuators,))


def table_of(mechanism: Mechanism, law: Any, motion: Motion) -> Array:
    """Return the reference table of a law, one row per sample of the motion."""
    return columns_of(mechanism, law).table(motion)


def table_width(layout: Layout) -> int:
    """Return the number of reference columns of a compiled law."""
    if layout.space is not None:
        return task_fields(layout.model, layout.space, layout.k).size
    return layout.k if layout.law == "open" else 3 * (layout.n if layout.law == "computed" else layout.k)


@dataclass(frozen=True, eq=False)
class TaskRow(Record[T]):
    """Columns of the reference of a law in a work space."""

    q: T
    v: T
    a: T
    place: T
    rate: T
    curve: T
    feed: T


def task_fields(model: Mechanism, space: Any, actuators: int) -> TaskRow[Field]:
    """Return the positions of the columns."""
    n, bound = model.dof, bound_space("task", space, model)
    return placed(TaskRow, "t", n, place=bound.size, rate=bound.rows, curve=bound.rows, feed=max(n, actuators))


def task_jacobian(model: Mechanism, space: Any, x: Array) -> Array:
    """Return J (m, n) of a work space at a pose."""
    n, fields = model.dof, task_fields(model, space, 0)
    at = Motion(np.arange(n, dtype=np.float64), np.tile(x, (n, 1)), np.eye(n), np.zeros((n, n)))
    return fields.rate.of(Columns(fields.size, None, (_task_part(model, space, fields.place.first),)).table(at).T)


def _numbers(model: Mechanism) -> dict[str, Array]:
    return {"phi": node_values(model, model.parameters.values)}


def _actuators(mechanism: Mechanism) -> Function:
    """Return positions and speeds of the actuators behind the gears."""
    eq, rows = Equations(mechanism), coupling_rows(mechanism)
    return declared(mechanism, "wanted_actuators", {"row": [along(row, x) for x in (eq.tree_q, eq.tree_v) for row in rows]})


def _feed(model: Mechanism | None, first: int, friction: Any = None) -> list[ModelColumns]:
    """Return the feed-forward torques of the actuators; none without a model."""
    if model is None:
        return []
    laws = friction_laws(friction, model)
    return [
        ModelColumns(
            model, first, feedforward_key(laws), lambda: feedforward_function(model, laws), feedforward_numbers(model, laws)
        )
    ]


def _forces(model: Mechanism, first: int) -> ModelColumns:
    """Return the feed-forward forces on the coordinates."""

    def make() -> Function:
        return declared(model, "wanted_forces", {"row": Equations(model).torques()}, parameters=True)

    return ModelColumns(model, first, "wanted_forces", make, _numbers(model))


def _task_part(model: Mechanism, space: Any, first: int) -> ModelColumns:
    """Return place, velocity and acceleration in a work space."""

    def make() -> Function:
        eq = Equations(model)
        a, eq.a = eq.a, [eq.graph.zero] * model.dof
        spot = bound_space("task", space, model).look(eq)
        rate = [dot(row, eq.v) for row in spot.jacobian]
        curve = [dot(row, a) + b for row, b in zip(spot.jacobian, spot.bias, strict=True)]
        return declared(model, "task_reference", {"row": [*spot.place, *rate, *curve]}, parameters=True)

    return ModelColumns(model, first, ("task_reference", space), make, _numbers(model), frames=True)


Start = Mapping[str, Any]


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
