"""External loads of a virtual robot, and the table of its reference motion (`trajectory/reference.py`) for a control law.

A law reads one row per tick (`Columns`), computed from the reference motion of the coordinates:

    loops on actuators       rho, rho_v, feed-forward torques
    computed torque          q, v, a
    laws in a work space     q, v, a, place, rate and curve there, feed-forward
    controllers in Python    rho, rho_v, q, v, a

`table_of` computes all rows of a motion at once. C code, which gets the motion sample by sample, calls the functions of the
same parts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.control.feedforward import (
    feedforward_function,
    feedforward_key,
    feedforward_numbers,
    friction_laws,
    refuse_singular,
)
from dynident.control.laws import PID, Cascade, ComputedTorque
from dynident.control.task import TaskCascade, TaskComputedTorque, TaskPID, bound_space
from dynident.errors import SimulationError
from dynident.graph.algebra import along, dot
from dynident.graph.compiled import Compiled
from dynident.graph.expression import Function
from dynident.mechanics.actuation import coupling_rows
from dynident.mechanics.equations import Equations
from dynident.mechanics.functions import Motion, cached, declared, entering, geometry_key, node_values
from dynident.mechanism.mechanism import Mechanism
from dynident.simulate.layout import Field, Layout, Record, placed
from dynident.trajectory.reference import Signal, sampled

T = TypeVar("T")


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
