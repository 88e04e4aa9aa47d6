"""Friction sources of a machine: joints, rotors and lossy gears, as expressions of their speeds.

An owner of friction is a row c of the tree's coordinates (a joint, or motors that turn with several), a rotor, or a gear. Its
force is a sum of joint terms, static laws and laws with memory. If it jumps with the sign of the speed, the owner slides
in one direction for a whole step, F(+1) or F(-1), or sticks with any force in between (`sticking`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from dynident.arrays import Array
from dynident.drive.drive import Drive
from dynident.drive.joint_terms import Law
from dynident.errors import SimulationError
from dynident.friction.dynamic import DynamicLaw
from dynident.friction.law import Friction, FrictionLaw, Point, directed
from dynident.friction.laws import Offset
from dynident.friction.terms import TERMS
from dynident.graph.algebra import absolute, maximum, sign, where
from dynident.graph.expression import Graph, Node, reachable, substitute, total
from dynident.mechanics.actuation import coupling_rows
from dynident.mechanism.mechanism import Mechanism

Addend = str | FrictionLaw | DynamicLaw  # a joint term by its symbol, or a law
Side = Callable[[float], Node]  # the force of one direction

_jumps: dict[Hashable, bool] = {}  # by the structure of owners
SLOW = Point(np.logspace(-9, 3, 481), 0.0, 0.0, 20.0)  # where smooth laws are evaluated
COLDEST = 0.05  # smallest simulated ratio of warm to cold friction: below it a linear law is outside its range


@dataclass(frozen=True, eq=False)
class Owner:
    """A friction source and its sum of joint terms, static laws and laws with memory."""

    name: str  # "joint elbow", "motor elbow", "gear elbow"
    form: tuple[float, ...]  # row c with the owner's speed c v_t; for a rotor or gear the actuator's row, without its ratio
    motor: int = -1  # actuator of a rotor or gear; -1 for a joint
    gear: bool = False  # true for the loss of an elastic drive's gear, which acts on the actuator coordinate behind it
    laws: tuple[Addend, ...] = ()
    numbers: tuple[tuple[float, ...], ...] = ()  # parameters of each law

    @cached_property
    def structure(self) -> Hashable:
        """Properties on which compiled code depends."""
        laws = [law.structure if isinstance(law, DynamicLaw) else law for law in self.laws]
        return self.form, self.motor, self.gear, tuple(laws), tuple([len(own) for own in self.numbers])

    @property
    def joint(self) -> int:
        """The only tree coordinate that a joint's friction acts on; -1 for others."""
        used = np.flatnonzero(self.form)
        return int(used[0]) if self.motor < 0 and used.size == 1 else -1


def states_of(law: Addend) -> int:
    """Return the number of memory values of a law: inner states and the speed at the start of the step."""
    return law.states + 1 if isinstance(law, DynamicLaw) else 0


def asks_load(law: Addend) -> bool:
    """Return whether a law depends on the load of its owner."""
    return isinstance(law, FrictionLaw) and "tau" in law.looks_at


def _scaled(law: Addend) -> bool:
    """Return whether the friction ratio of a thermal model acts on a law: not on offsets and laws of the temperature."""
    if isinstance(law, str):
        return TERMS[law].friction
    return isinstance(law, DynamicLaw) or (not isinstance(law, Offset) and "T" not in law.looks_at)


def starts(owners: Sequence[Owner], what: str) -> list[int]:
    """Return the index of the first of the ``numbers`` or ``states`` of every owner, and their total at the end."""
    sizes = [sum(map(len, owner.numbers) if what == "numbers" else map(states_of, owner.laws)) for owner in owners]
    return [int(x) for x in np.cumsum([0, *sizes])]


def laws_of(owners: Sequence[Owner]) -> Iterator[tuple[int, Addend, int, int]]:
    """Yield all laws of the owners' friction: owner, law, and first index of its numbers and of its states."""
    number = state = 0
    for i, owner in enumerate(owners):
        for law, own in zip(owner.laws, owner.numbers, strict=True):
            yield i, law, number, state
            number, state = number + len(own), state + states_of(law)


def law_parts(law: Law, owner: str) -> list[tuple[Addend, tuple[float, ...]]]:
    """Return the addends of a law with their values."""
    if isinstance(law, DynamicLaw):
        return [(law, tuple(law.parameters.values()))]
    if not isinstance(law, Friction):
        raise SimulationError(f"friction of '{owner}' is a {type(law).__name__}; give a law with numbers (law.using(...))")
    return [(part.law, tuple(part.values.tolist())) for part in law.parts]


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
    """Return all owners: joints first, with additional laws, then rotors, then gears of elastic drives."""
    names, rows = mechanism.tree.coordinates, coupling_rows(mechanism)[: len(drives)]
    joints: dict[tuple[float, ...], list[tuple[Addend, tuple[float, ...]]]] = {}
    for row, symbol, value in joint_terms(mechanism):
        if not TERMS[symbol].rotor:
            joints.setdefault(tuple(row.tolist()), []).append((symbol, (value,)))
    for coordinate, law in (*mechanism.friction.items(), *friction.items()):
        if coordinate not in names:
            raise SimulationError(
                f"friction names '{coordinate}', which is not a joint of '{mechanism.name}'; they are {', '.join(names)}"
            )
        j, more = names.index(coordinate), law_parts(law, coordinate)
        if drives and any(asks_load(part) for part, _ in more) and not rows[:, j].any():
            raise SimulationError(
                f"friction of '{coordinate}' depends on its load, but no drive acts on that joint; give a law without load"
            )
        joints.setdefault(tuple(np.eye(len(names))[j].tolist()), []).extend(more)
    owners = []
    for form, parts in joints.items():
        used = [names[i] for i in np.flatnonzero(form)]
        title = f"joint {used[0]}" if len(used) == 1 else "motor of " + " and ".join(used)
        owners.append(Owner(title, form, -1, False, *zip(*parts, strict=True)))
    lossy = [drive.transmission.efficiency < 1.0 for drive in drives]
    for a, (row, drive) in enumerate(zip(rows.tolist(), drives, strict=True)):
        if drive.friction is not None or (lossy[a] and drive.rigid):
            parts = law_parts(drive.friction, drive.actuator) if drive.friction is not None else []
            owners.append(Owner(f"motor {drive.actuator}", tuple(row), a, False, *zip(*parts, strict=True)))
    for a, (row, drive) in enumerate(zip(rows.tolist(), drives, strict=True)):
        if lossy[a] and not drive.rigid:
            owners.append(Owner(f"gear {drive.actuator}", tuple(row), a, True))
    return owners


class Given(NamedTuple):
    """Inputs of the force of an owner, as expressions."""

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
        for law, values in zip(owner.laws, owner.numbers, strict=True):
            own, first = numbers[first : first + len(values)], first + len(values)
            states, kept = memory[kept : kept + states_of(law)], kept + states_of(law)
            value = _law_force(law, given, own, states, way)
            parts.append(given.ratio * value if _scaled(law) else value)
        return total(parts)

    return force


def _law_force(law: Addend, given: Given, numbers: Sequence[Node], states: Sequence[Node], way: float) -> Node:
    graph, v = given.v.graph, given.v
    if isinstance(law, DynamicLaw):
        return graph.node(law.force(states[:-1], v, law.named(graph, numbers)))
    own = graph.symbol("own speed")  # the two sides differ in this symbol, for any expression of the speed
    if isinstance(law, str):
        value = graph.node(numbers[0] * TERMS[law].expression(given.q, own, graph.zero))
    else:
        point = Point(own, given.q, given.load, given.T)
        value = graph.node(law.torque(point, dict(zip(law.parameters, numbers, strict=True))))
    sides = [directed(value, own, side) for side in (1.0, -1.0)]
    levels = substitute(sides, {own: graph.zero})
    if levels[0] is not levels[1]:  # it jumps at rest; a law that only bends there needs no side
        value = sides[0] if way > 0.0 else sides[1]
    here, rest = substitute([value], {own: v})[0], substitute([value], {own: graph.zero})[0]
    if not _has_tanh(value):
        return here
    # Smooth friction that is too steep for the step is a straight line up to the speed `ramp`.
    edge = substitute([value], {own: given.ramp * sign(v)})[0]
    line = rest + (edge - rest) * (absolute(v) / maximum(given.ramp, 1e-300))
    result: Node = where(absolute(v) < given.ramp, line, here)
    return result


def _has_tanh(node: Node) -> bool:
    return any(part.op == "tanh" for part in reachable([node]))


@lru_cache(maxsize=512)
def _is_steep(law: FrictionLaw) -> bool:
    return _has_tanh(law.expression(Graph()))


def steep(owner: Owner) -> list[tuple[FrictionLaw, tuple[float, ...]]]:
    """Return the smooth laws of an owner, with values, that may be too steep for the step."""
    laws = zip(owner.laws, owner.numbers, strict=True)
    return [(law, own) for law, own in laws if isinstance(law, FrictionLaw) and _is_steep(law)]


def jumps(owner: Owner) -> bool:
    """Return whether the friction of an owner jumps at rest."""
    key = owner.structure
    if key not in _jumps:
        graph = Graph()
        given = Given(*(graph.symbol(name) for name in Given._fields))
        numbers, states = graph.symbols("p", sum(map(len, owner.numbers))), graph.symbols("z", sum(map(states_of, owner.laws)))
        force = force_of(owner, given, numbers, states)
        _jumps[key] = force(1.0) is not force(-1.0)
    return _jumps[key]


def softened(owner: Owner, given: Given, numbers: Sequence[Node], slope: Node, wanted: Node) -> Node:
    """Return the friction of a controller's model; its jumps follow the `wanted` speed with a finite slope [N m s/rad]."""
    force = force_of(owner, given, numbers, ())
    up, down = force(1.0), -force(-1.0)
    if up is -down:
        return up
    middle, level = 0.5 * (up - down), 0.5 * (up + down)
    result: Node = middle + where(slope * absolute(wanted) < level, slope * wanted, level * sign(wanted))
    return result


@lru_cache(maxsize=512)
def _slow_forces(law: FrictionLaw, numbers: tuple[float, ...]) -> Array:
    """Return the magnitudes of a law's friction at the speeds of `SLOW`: many machines share their laws."""
    torque = law.torque(SLOW, dict(zip(law.parameters, numbers, strict=True)))
    return np.asarray(np.abs(np.broadcast_to(torque, SLOW.v.shape)))


def ramp_of(owner: Owner, stick: float) -> float:
    """Return the speed up to which smooth friction is a straight line, so that one step reduces the speed at most to zero.

    `stick` is the reduction of speed by a unit force within one step.
    """
    fastest = 0.0
    for law, numbers in steep(owner):
        above = np.flatnonzero(_slow_forces(law, numbers) * stick > SLOW.v)
        fastest = max(fastest, float(SLOW.v[min(above[-1] + 1, SLOW.v.size - 1)]) if above.size else 0.0)
    return fastest
