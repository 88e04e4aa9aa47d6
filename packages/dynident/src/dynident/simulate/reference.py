"""The reference as a control law reads it: one row per tick, made of the wanted motion of the coordinates.

    loops on actuators       rho, rho_v, feed-forward torques
    computed torque          q, v, a
    laws in a work space     q, v, a, place, rate and curve there, feed-forward
    controllers in Python    rho, rho_v, q, v, a

`table_of` makes all rows of a motion at once. C code, where the motion becomes known sample after sample, calls the functions
of the same parts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dynident.control.feedforward import (
    coupling_rows,
    feedforward_function,
    feedforward_key,
    feedforward_numbers,
    friction_laws,
    refuse_singular,
)
from dynident.control.laws import PID, Cascade, ComputedTorque
from dynident.control.task import TaskCascade, TaskComputedTorque, TaskPID, bound_space
from dynident.graph.compiled import Compiled
from dynident.graph.expression import Function
from dynident.graph.vectors import along, dot
from dynident.mechanics.equations import Equations
from dynident.mechanics.functions import cached, declared, entering, geometry_key, node_values
from dynident.mechanics.motion import Motion
from dynident.mechanism.mechanism import Mechanism
from dynident.simulate.layout import Field, Record, placed
from dynident.simulate.shape import LawShape

Array = NDArray[np.float64]
T = TypeVar("T")


class Part(NamedTuple):
    """Neighbouring columns that follow from a model."""

    model: Mechanism
    first: int  # column
    key: Hashable  # of its code, beside the geometry of the model
    make: Callable[[], Function]  # of q, v, a of the model, to `row` (and `ok`, above zero where there is one)
    numbers: Mapping[str, Array]  # what the function takes for all samples

    def fill(self, table: Array, arrays: Mapping[str, Array]) -> None:
        """Write the columns of all samples."""
        code = cached(self.model, self.key, lambda: Compiled(self.make()))
        ok = np.ones((len(table), 1))
        width = len(code.function.outputs["row"])
        code(len(table), {**arrays, **self.numbers, "row": table[:, self.first : self.first + width], "ok": ok})
        refuse_singular(~(ok[:, 0] > 0.0))


class Reference(NamedTuple):
    """The columns of the reference of a control law."""

    width: int
    copied: int | None  # column from which on q, v, a are copied; None where they are not
    parts: tuple[Part, ...]

    def table(self, motion: Motion) -> Array:
        """Return one row per sample."""
        table = np.zeros((len(motion), self.width))
        if self.copied is not None:
            table[:, self.copied : self.copied + 3 * motion.dof] = np.concatenate([motion.q, motion.v, motion.a], axis=1)
        closed: dict[Hashable, Array] = {}
        for part in self.parts:
            key = geometry_key(part.model)
            arrays = entering(part.model, motion, closed.get(key))
            closed[key] = arrays["q"]
            part.fill(table, arrays)
        return table


def reference_of(mechanism: Mechanism, law: Any) -> Reference:
    """Return the columns that a control law reads."""
    k, n = len(mechanism.actuators), mechanism.dof
    if isinstance(law, ComputedTorque):
        return Reference(3 * n, 0, ())
    if isinstance(law, TaskPID | TaskComputedTorque | TaskCascade):
        model = law.model if isinstance(law, TaskComputedTorque) else mechanism
        fields = task_fields(model, law.space, k)
        parts = [_task_part(model, law.space, fields.place.first)]
        if isinstance(law, TaskCascade):
            parts += _feed(law.loops.torque_feedforward, fields.feed.first)
        elif isinstance(law, TaskPID) and law.feedforward is not None:
            parts.append(_forces(law.feedforward, fields.feed.first))
        return Reference(fields.size, 0, tuple(parts))
    actuators = Part(mechanism, 0, "wanted_actuators", lambda: _actuators(mechanism), _numbers(mechanism))
    if isinstance(law, Cascade):
        return Reference(3 * k, None, (actuators, *_feed(law.torque_feedforward, 2 * k)))
    if isinstance(law, PID):
        return Reference(3 * k, None, (actuators, *_feed(law.feedforward, 2 * k, law.friction)))
    return Reference(2 * k + 3 * n, 2 * k, (actuators,))


def table_of(mechanism: Mechanism, law: Any, motion: Motion) -> Array:
    """Return the reference as a law reads it, one row per sample of the motion."""
    return reference_of(mechanism, law).table(motion)


def table_width(law: LawShape, actuators: int) -> int:
    """Return how many columns the reference of a compiled law has."""
    if law.space is not None:
        return task_fields(law.model, law.space, actuators).size
    return actuators if law.kind == "open" else 3 * (law.model.dof if law.kind == "computed" else actuators)


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
    """Return where the columns are."""
    n, bound = model.dof, bound_space("task", space, model)
    return placed(TaskRow, "t", n, place=bound.size, rate=bound.rows, curve=bound.rows, feed=max(n, actuators))


def task_jacobian(model: Mechanism, space: Any, x: Array) -> Array:
    """Return J (m, n) of a work space at a pose."""
    n, fields = model.dof, task_fields(model, space, 0)
    at = Motion(np.arange(n, dtype=np.float64), np.tile(x, (n, 1)), np.eye(n), np.zeros((n, n)))
    return fields.rate.of(Reference(fields.size, None, (_task_part(model, space, fields.place.first),)).table(at).T)


def _numbers(model: Mechanism) -> dict[str, Array]:
    return {"phi": node_values(model, model.parameters.values)}


def _actuators(mechanism: Mechanism) -> Function:
    """Return positions and speeds of the actuators behind the gears."""
    eq, rows = Equations(mechanism), coupling_rows(mechanism)
    return declared(mechanism, "wanted_actuators", {"row": [along(row, x) for x in (eq.tree_q, eq.tree_v) for row in rows]})


def _feed(model: Mechanism | None, first: int, friction: Any = None) -> list[Part]:
    """Return the feed-forward torques of the actuators; none without a model."""
    if model is None:
        return []
    laws = friction_laws(friction, model)
    return [
        Part(model, first, feedforward_key(laws), lambda: feedforward_function(model, laws), feedforward_numbers(model, laws))
    ]


def _forces(model: Mechanism, first: int) -> Part:
    """Return the feed-forward forces on the coordinates."""

    def make() -> Function:
        return declared(model, "wanted_forces", {"row": Equations(model).torques()}, parameters=True)

    return Part(model, first, "wanted_forces", make, _numbers(model))


def _task_part(model: Mechanism, space: Any, first: int) -> Part:
    """Return place, velocity and acceleration in a work space."""

    def make() -> Function:
        eq = Equations(model)
        a, eq.a = eq.a, [eq.graph.zero] * model.dof
        spot = bound_space("task", space, model).look(eq)
        rate = [dot(row, eq.v) for row in spot.jacobian]
        curve = [dot(row, a) + b for row, b in zip(spot.jacobian, spot.bias, strict=True)]
        return declared(model, "task_reference", {"row": [*spot.place, *rate, *curve]}, parameters=True)

    return Part(model, first, ("task_reference", space), make, _numbers(model))
