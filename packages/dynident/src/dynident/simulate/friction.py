"""Friction sources of a machine: joints, rotors and lossy gears, as expressions of their speeds.

An owner of friction is a row c of the tree's coordinates (a joint, or motors that turn with several), a rotor, or a gear. Its
force is a sum of joint terms, static laws and laws with memory. Where that jumps with the sign of the speed, the owner slides
to one side for a whole step, F(+1) or F(-1), or sticks with any force in between (`sticking`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from dynident.arrays import Array
from dynident.control.feedforward import coupling_rows
from dynident.drive.drive import Drive
from dynident.errors import SimulationError
from dynident.friction.dynamic import DynamicLaw
from dynident.friction.law import Friction, FrictionLaw, Point, State, directed
from dynident.friction.laws import Offset
from dynident.friction.terms import TERMS
from dynident.graph.elementary import absolute, maximum, sign, where
from dynident.graph.expression import Graph, Node, reachable, substitute, total
from dynident.mechanism.mechanism import Mechanism

Law = Friction | DynamicLaw
Side = Callable[[float], Node]  # the force of one direction

_jumps: dict[Hashable, bool] = {}  # by the shapes of owners
SLOW = State(np.logspace(-9, 3, 481), np.zeros(481), np.zeros(481), np.full(481, 20.0))  # where smooth laws are looked at
COLDEST = 0.05  # smallest ratio of warm to cold friction that is simulated: below it a linear law has left its range


@dataclass(frozen=True, eq=False)
class Part:
    """One addend of an owner's friction, with its numbers: a joint term, a static law or a law with memory."""

    what: str | FrictionLaw | DynamicLaw
    numbers: tuple[float, ...]
    scaled: bool = True  # by the friction ratio of a thermal model

    @property
    def shape(self) -> Hashable:
        """What compiled code depends on."""
        what = self.what.structure if isinstance(self.what, DynamicLaw) else self.what
        return what, len(self.numbers), self.scaled

    @property
    def asks_load(self) -> bool:
        """Whether it looks at the load of its owner."""
        return isinstance(self.what, FrictionLaw) and "tau" in self.what.looks_at

    @property
    def states(self) -> int:
        """Numbers that it remembers: inner states and the speed at the start of the step."""
        return self.what.states + 1 if isinstance(self.what, DynamicLaw) else 0


@dataclass(frozen=True, eq=False)
class Owner:
    """Whose friction it is."""

    name: str  # "joint elbow", "motor elbow", "gear elbow"
    form: tuple[float, ...]  # row c with the owner's speed c v_t; of a rotor or gear the actuator's row, without its ratio
    motor: int = -1  # actuator of a rotor or gear; -1 of a joint
    gear: bool = False  # true for the loss of an elastic drive's gear, which acts on the actuator coordinate behind it
    parts: tuple[Part, ...] = ()  # what its friction is

    @cached_property
    def shape(self) -> Hashable:
        """What compiled code depends on."""
        return self.form, self.motor, self.gear, tuple([part.shape for part in self.parts])

    @property
    def numbers(self) -> list[float]:
        """Parameters of all parts."""
        return [x for part in self.parts for x in part.numbers]

    @property
    def joint(self) -> int:
        """The only tree coordinate that a joint's friction acts on; -1 for others."""
        used = np.flatnonzero(self.form)
        return int(used[0]) if self.motor < 0 and used.size == 1 else -1


def law_parts(law: Law, owner: str) -> list[Part]:
    """Return a law with numbers as parts; offsets do not change with the temperature by a ratio."""
    if isinstance(law, DynamicLaw):
        return [Part(law, tuple(law.parameters.values()))]
    if not isinstance(law, Friction):
        raise SimulationError(f"friction of '{owner}' is a {type(law).__name__}; give a law with numbers (law.using(...))")
    return [
        Part(part.law, tuple(part.values.tolist()), not isinstance(part.law, Offset) and "T" not in part.law.looks_at)
        for part in law.parts
    ]


def joint_terms(mechanism: Mechanism) -> list[tuple[Array, str, float]]:
    """Return form, symbol and value of all joint and motor terms that are not zero; rotor inertias `ia` among them."""
    values, count = mechanism.parameters.values, len(mechanism.tree.coordinates)
    index = {name: i for i, name in enumerate(mechanism.tree.coordinates)}
    first, unit = mechanism.tree.inertias.size, np.eye(count)
    found = [
        (unit[index[coordinate]], symbol, float(values[first + j]))
        for j, (coordinate, symbol) in enumerate(mechanism.joint_columns)
    ]
    first += len(mechanism.joint_columns)
    rows = dict(zip([a.name for a in mechanism.actuators], coupling_rows(mechanism), strict=True))
    found += [(rows[name], symbol, float(values[first + j])) for j, (name, symbol) in enumerate(mechanism.actuator_columns)]
    return [term for term in found if term[2] != 0.0]


def owners_of(mechanism: Mechanism, friction: Mapping[str, Law], drives: Sequence[Drive]) -> list[Owner]:
    """Return all owners: joints first, with laws beside their own, then rotors, then gears of elastic drives."""
    names, rows = mechanism.tree.coordinates, coupling_rows(mechanism)[: len(drives)]
    joints: dict[tuple[float, ...], list[Part]] = {}
    for form, symbol, value in joint_terms(mechanism):
        if not TERMS[symbol].rotor:
            joints.setdefault(tuple(form.tolist()), []).append(Part(symbol, (value,), TERMS[symbol].friction))
    for coordinate, law in (*mechanism.friction.items(), *friction.items()):
        if coordinate not in names:
            raise SimulationError(
                f"friction names '{coordinate}', which is no joint of '{mechanism.name}'; they are {', '.join(names)}"
            )
        j, more = names.index(coordinate), law_parts(law, coordinate)
        if any(part.asks_load for part in more) and not rows[:, j].any():
            raise SimulationError(
                f"friction of '{coordinate}' grows with its load, but no drive loads that joint; give it a law without load"
            )
        joints.setdefault(tuple(np.eye(len(names))[j].tolist()), []).extend(more)
    owners = []
    for shape, parts in joints.items():
        used = [names[i] for i in np.flatnonzero(shape)]
        title = f"joint {used[0]}" if len(used) == 1 else "motor of " + " and ".join(used)
        owners.append(Owner(title, shape, parts=tuple(parts)))
    lossy = [drive.transmission.efficiency < 1.0 for drive in drives]
    for a, (row, drive) in enumerate(zip(rows, drives, strict=True)):
        if drive.friction is not None or (lossy[a] and drive.rigid):
            own = tuple(law_parts(drive.friction, drive.actuator)) if drive.friction is not None else ()
            owners.append(Owner(f"motor {drive.actuator}", tuple(row.tolist()), a, parts=own))
    for a, (row, drive) in enumerate(zip(rows, drives, strict=True)):
        if lossy[a] and not drive.rigid:
            owners.append(Owner(f"gear {drive.actuator}", tuple(row.tolist()), a, True))
    return owners


class Given(NamedTuple):
    """What the force of an owner depends on, as expressions."""

    v: Node
    q: Node
    load: Node
    ratio: Node  # warm over cold friction
    T: Node
    ramp: Node  # speed below which a steep smooth law is replaced by a straight line


def force_of(owner: Owner, given: Given, numbers: Sequence[Node], memory: Sequence[Node]) -> Side:
    """Return the friction of an owner in a direction, F(+1) and F(-1); `memory` holds the states of its laws with memory."""
    graph = given.v.graph

    def force(way: float) -> Node:
        first = kept = 0
        parts = [graph.zero]
        for part in owner.parts:
            own, first = numbers[first : first + len(part.numbers)], first + len(part.numbers)
            states, kept = memory[kept : kept + part.states], kept + part.states
            value = _part_force(part, given, own, states, way)
            parts.append(given.ratio * value if part.scaled else value)
        return total(parts)

    return force


def _part_force(part: Part, given: Given, numbers: Sequence[Node], states: Sequence[Node], way: float) -> Node:
    graph, v = given.v.graph, given.v
    if isinstance(part.what, DynamicLaw):
        return graph.node(part.what.force(states[:-1], v, part.what.named(graph, numbers)))
    own = graph.symbol("own speed")  # the two sides differ in this symbol, whatever expression the speed is
    if isinstance(part.what, str):
        value = graph.node(numbers[0] * TERMS[part.what].expression(given.q, own, graph.zero))
    else:
        point = Point(own, given.q, given.load, given.T)
        value = graph.node(part.what.torque(point, dict(zip(part.what.parameters, numbers, strict=True))))
    sides = [directed(value, own, side) for side in (1.0, -1.0)]
    levels = substitute(sides, {own: graph.zero})
    if levels[0] is not levels[1]:  # it jumps at rest; what only bends there needs no side
        value = sides[0] if way > 0.0 else sides[1]
    here, rest = substitute([value], {own: v})[0], substitute([value], {own: graph.zero})[0]
    if not _has_tanh(value):
        return here
    # Smooth friction that is steeper than a step can follow is a straight line up to the speed `ramp`.
    edge = substitute([value], {own: given.ramp * sign(v)})[0]
    line = rest + (edge - rest) * (absolute(v) / maximum(given.ramp, 1e-300))
    result: Node = where(absolute(v) < given.ramp, line, here)
    return result


def _has_tanh(node: Node) -> bool:
    return any(part.op == "tanh" for part in reachable([node]))


@lru_cache(maxsize=512)
def _is_steep(law: FrictionLaw) -> bool:
    return _has_tanh(law.expression(Graph()))


def steep(owner: Owner) -> list[Part]:
    """Return the parts of an owner's friction that are smooth but may be steeper than a step can follow."""
    return [part for part in owner.parts if isinstance(part.what, FrictionLaw) and _is_steep(part.what)]


def jumps(owner: Owner) -> bool:
    """Tell whether the friction of an owner jumps at rest."""
    key = owner.shape
    if key not in _jumps:
        graph = Graph()
        given = Given(*(graph.symbol(name) for name in Given._fields))
        numbers = graph.symbols("p", sum(len(part.numbers) for part in owner.parts))
        force = force_of(owner, given, numbers, graph.symbols("z", sum(part.states for part in owner.parts)))
        _jumps[key] = force(1.0) is not force(-1.0)
    return _jumps[key]


def softened(owner: Owner, given: Given, numbers: Sequence[Node], slope: Node, wanted: Node) -> Node:
    """Return the friction of a controller's model; its jumps follow the `wanted` speed and set in with a slope [N m s/rad]."""
    force = force_of(owner, given, numbers, ())
    up, down = force(1.0), -force(-1.0)
    if up is -down:
        return up
    middle, level = 0.5 * (up - down), 0.5 * (up + down)
    result: Node = middle + where(slope * absolute(wanted) < level, slope * wanted, level * sign(wanted))
    return result


@lru_cache(maxsize=512)
def _slow_forces(law: Any, numbers: tuple[float, ...]) -> Array:
    """Return the sizes of a law's friction at the speeds of `SLOW`: many machines share their laws."""
    return np.asarray(np.abs(law.value(SLOW, np.array(numbers))))


def ramp_of(owner: Owner, stick: float) -> float:
    """Return the speed up to which smooth friction is a straight line, so that it takes away at most its speed in one step.

    `stick` is the speed that a unit force takes away within one step.
    """
    fastest = 0.0
    for part in steep(owner):
        above = np.flatnonzero(_slow_forces(part.what, part.numbers) * stick > SLOW.v)
        fastest = max(fastest, float(SLOW.v[min(above[-1] + 1, SLOW.v.size - 1)]) if above.size else 0.0)
    return fastest
