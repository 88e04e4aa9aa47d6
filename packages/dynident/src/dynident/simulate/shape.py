"""What the code of a machine depends on (`Shape`), and the names of all numbers that it reads and writes (`Memory`).

Numbers of masses, gains, friction and motors are no part of a shape: machines that differ only in those share their code.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.control.feedforward import coupling_rows
from dynident.drive.drive import Drive
from dynident.errors import SimulationError
from dynident.graph.elementary import absolute, maximum, opposite
from dynident.graph.expression import Function, Graph, Node
from dynident.graph.routine import Place, Routine
from dynident.mechanics.functions import geometry_key
from dynident.mechanics.moving_tree import positions_of
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.tree import FREE, SPHERICAL
from dynident.simulate.friction import Owner, Part, jumps

Array = NDArray[np.float64]

IDEAL, RESISTIVE, INDUCTIVE = "current", "resistance", "winding"  # what a drive is fed with, and what that meets
FINE, SINGULAR_MASS, LOST_CLOSURE, UNSTABLE, LOST_TASK = 0, 1, 2, 3, 4


def own_positions(mechanism: Mechanism) -> list[int]:
    """Return where the robot's coordinates are among the positions that are integrated: those of the tree with loops."""
    return [int(i) for i in mechanism.closure.independent] if mechanism.loops else list(range(mechanism.dof))


@dataclass(frozen=True)
class DriveShape:
    """How a drive is built: its feed, whether the amplifier's voltage limits the current, its shafts, play and losses."""

    feed: str
    limited: bool
    shafts: int
    play: bool
    lossy: bool

    @classmethod
    def of(cls, drive: Drive, voltage: bool) -> DriveShape:
        """Return the shape of a drive that is fed with a voltage or with a current."""
        motor, gear = drive.motor, drive.transmission
        if motor.torque_constant == 0.0:
            raise SimulationError(f"drive '{drive.actuator}': motor.torque_constant is 0; give it in N m/A")
        feed = IDEAL
        if voltage:
            feed = INDUCTIVE if motor.inductance > 0.0 else RESISTIVE
            if feed == RESISTIVE and motor.resistance == 0.0:
                raise SimulationError(
                    f"drive '{drive.actuator}' is fed with a voltage but its motor has no resistance or inductance; give them"
                )
        limited = feed == IDEAL and motor.resistance > 0.0 and motor.voltage_limit < np.inf
        return cls(feed, limited, drive.states, gear.backlash > 0.0, gear.efficiency < 1.0)

    @property
    def loses_rigidly(self) -> bool:
        """Whether a rigid gear has losses."""
        return self.lossy and not self.shafts


@dataclass(frozen=True)
class LawShape:
    """How a control law is built: its kind, and what of it the code needs to know."""

    # "held" (a controller in Python), "open", "cascade", "pid", "projected", "computed", "task forces", "task computed" or
    # "task cascade"
    kind: str
    model: Mechanism  # what the law believes the robot to be
    frictions: tuple[Owner, ...] = ()  # friction of that model
    current_loop: bool = False  # whether a cascade has one
    torque: bool = False  # whether an open loop commands torques
    on_reference: bool = False  # whether computed torque evaluates its model on the reference
    space: Any = None  # what a law in a work space controls

    @property
    def asks(self) -> bool:
        """Whether the law needs to know where the robot is, not only its motors."""
        return self.kind not in ("open", "cascade", "pid")

    @property
    def key(self) -> Hashable:
        """The same without numbers."""
        model = geometry_key(self.model) if self.asks else None
        owners = tuple(owner.shape for owner in self.frictions)
        return self.kind, model, owners, self.current_loop, self.torque, self.on_reference, self.space


@dataclass(frozen=True, eq=False)
class Shape:
    """A machine without its numbers."""

    mechanism: Mechanism  # the robot; only its geometry counts
    drives: tuple[DriveShape, ...]  # one per actuator
    owners: tuple[Owner, ...]  # friction of joints, rotors and gears
    law: LawShape  # the control law
    loop: str = ""  # "" where mechanism and drives are solved together, else "iterated" or "delayed"
    integrator: str = "rk4"  # "rk4", "midpoint" or "euler"
    pushed: bool = False  # whether disturbances act on the actuators
    links: tuple[str, ...] = ()  # links with external wrenches

    def __post_init__(self) -> None:
        if self.mechanism.has_opaque_couplings:
            names = ", ".join(c.joint for c in self.mechanism.couplings if c.gradient is not None)
            raise SimulationError(
                f"robot '{self.mechanism.name}': the couplings of {names} are known by their numbers only (gradient= and "
                "hessian=); write their functions with NumPy and leave those out, so that they can be compiled"
            )

    @property
    def key(self) -> Hashable:
        """What tells the code of two machines apart."""
        owners = tuple(owner.shape for owner in self.owners)
        rest = (self.loop, self.integrator, self.pushed, self.links)
        return geometry_key(self.mechanism), self.drives, owners, self.law.key, *rest

    @cached_property
    def rows(self) -> Array:
        """N (k, n_tree) with rho = N q_t."""
        return coupling_rows(self.mechanism)

    @property
    def shafts(self) -> list[int]:
        """First shaft mass of every drive, and their number at the end."""
        return [int(x) for x in np.cumsum([0, *(drive.shafts for drive in self.drives)])]

    @property
    def windings(self) -> list[int]:
        """First winding of every drive, and their number at the end."""
        return [int(x) for x in np.cumsum([0, *(drive.feed == INDUCTIVE for drive in self.drives)])]

    @cached_property
    def balls(self) -> list[tuple[bool, int]]:
        """Whether it is free, and the first coordinate of every ball and free joint in the state."""
        arrays, names = self.mechanism.tree.arrays, self.mechanism.tree.coordinates
        found = []
        for kind, d in zip(arrays.kind, arrays.dof, strict=True):
            if int(kind) in (SPHERICAL, FREE):
                first = int(d) if self.mechanism.loops else self.mechanism.coordinate_names.index(names[int(d)])
                found.append((int(kind) == FREE, first))
        return found

    def on_shaft(self, owner: Owner) -> bool:
        """Tell whether an owner is a rotor in front of an elastic shaft, which moves on its own."""
        return owner.motor >= 0 and not owner.gear and self.drives[owner.motor].shafts > 0

    @cached_property
    def jumping(self) -> list[int]:
        """Owners whose friction jumps at rest: first those that move with the mechanism, then rotors on shafts."""
        lossy = [owner.gear or (owner.motor >= 0 and self.drives[owner.motor].loses_rigidly) for owner in self.owners]
        found = [i for i, owner in enumerate(self.owners) if lossy[i] or jumps(owner)]
        return sorted(found, key=lambda i: (self.on_shaft(self.owners[i]), i))

    @property
    def bound(self) -> int:
        """How many of them move with the mechanism."""
        return sum(not self.on_shaft(self.owners[i]) for i in self.jumping)

    @property
    def remembering(self) -> list[int]:
        """Owners with laws that have memory."""
        return [i for i, owner in enumerate(self.owners) if any(part.states for part in owner.parts)]

    @property
    def loading(self) -> list[int]:
        """Owners whose friction looks at their load."""
        return [i for i, owner in enumerate(self.owners) if any(part.asks_load for part in owner.parts)]


def starts(owners: Sequence[Owner], what: str) -> list[int]:
    """Return where the ``numbers`` or ``states`` of every owner begin, and how many there are at the end."""
    sizes = [sum(len(p.numbers) if what == "numbers" else p.states for p in owner.parts) for owner in owners]
    return [int(x) for x in np.cumsum([0, *sizes])]


def parts_of(owners: Sequence[Owner]) -> Iterator[tuple[int, Part, int, int]]:
    """Yield all parts of the owners' friction: whose it is, the part, and where its numbers and its states begin."""
    number = state = 0
    for i, owner in enumerate(owners):
        for part in owner.parts:
            yield i, part, number, state
            number, state = number + len(part.numbers), state + part.states


class Fields:
    """The fields of one array, one after the other."""

    def __init__(self, array: str, **counts: int) -> None:
        self.array, self.size = array, 0
        self._places: dict[str, tuple[int, int]] = {}
        self.add(**counts)

    def add(self, **counts: int) -> None:
        """Append fields of so many numbers."""
        for name, count in counts.items():
            if name in self._places:
                raise ValueError(f"field '{name}' is there already")
            self._places[name] = (self.size, count)
            self.size += count

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def count(self, name: str) -> int:
        """Return how many numbers a field has."""
        return self._places[name][1]

    def at(self, name: str, index: int = 0) -> int:
        """Return where a number of a field is."""
        return self._places[name][0] + index

    def symbol(self, graph: Graph, name: str, index: int = 0) -> Node:
        """Return a number as the input of a `Function`."""
        return graph.symbol(f"{self.array}[{self._places[name][0] + index}]")

    def symbols(self, graph: Graph, name: str) -> list[Node]:
        """Return a whole field as inputs of a `Function`."""
        return [self.symbol(graph, name, i) for i in range(self.count(name))]

    def view(self, values: Array, name: str) -> Array:
        """Return the part of an array of numbers that is a field."""
        first, count = self._places[name]
        return values[first : first + count]


class Memory:
    """The names of everything that compiled code reads and writes.

    ``state`` (array s) is all that is carried from step to step: who has it can go on. ``numbers`` (p) are constants of a run,
    ``work`` (w) and ``motion`` (m, results of one evaluation) are scratch, ``record`` are signals over time, ``call`` (a) are
    the arguments of one stretch of steps and what came of it.
    """

    def __init__(self, shape: Shape) -> None:
        n, k, nq = shape.mechanism.dof, len(shape.drives), positions_of(shape.mechanism)
        c, e = shape.shafts[-1], shape.windings[-1]
        owners, J, B = len(shape.owners), len(shape.jumping), shape.bound
        model, wide = shape.law.model, max(n, k)
        nt = len(shape.mechanism.tree.coordinates)

        def each(names: Sequence[str], count: int) -> dict[str, int]:
            return dict.fromkeys(names, count)

        self.moving = nq + n + 2 * c + e  # numbers that are integrated; they stand first
        self.state = Fields("s", q=nq, v=n, theta=c, omega=c, coil=e, acceleration=n, branch=1, side=J, held=J, begin=J)
        self.state.add(through=k, load=owners, memory=starts(shape.owners, "states")[-1])
        self.state.add(**each(("command", "beyond", "cut", "sensed", "sensed_v", "sensed_current", "sent"), k))
        self.state.add(**each(("issued", "wish", "asked", "electric"), k), integral=wide, slope=wide)
        self.state.add(pose=positions_of(model), step=1)
        # Behind the state come commands on their way, `late` rows of k, and `late_wish` rows of wanted speeds.
        # `slack` widens the levels of friction that sticks, in ranges: 0, or much for solvers that find the moment of slip.
        self.numbers = Fields("p", step=1, limit=1, slack=1, **each(("phi", "lumped"), len(shape.mechanism.parameters)))
        self.numbers.add(**each(DRIVE_NUMBERS, k), **each(("shaft_inertia", "stiffness", "damping"), c))
        self.numbers.add(law=starts(shape.owners, "numbers")[-1], **each(("warm", "temperature", "ramp"), owners))
        self.numbers.add(**each(CONTROL_NUMBERS, 1), **each(GAINS, wide), **each(SENSOR_NUMBERS, k))
        self.numbers.add(model_phi=len(model.parameters), model_zero=k, model_inverse=n * k)
        self.numbers.add(model_law=starts(shape.law.frictions, "numbers")[-1], model_slope=len(shape.law.frictions))
        self.numbers.add(task_inertia=k, posture=2, posture_share=1)
        looped, joined, solves = int(bool(shape.mechanism.loops)), int(bool(shape.loop)), int(bool(B or shape.loop))
        self.motion = Fields("m", solid=1, L=n * n * solves, D=n * solves, force=n * joined, stuck=int(B > 0))
        self.motion.add(pivot=looped, branch=looped, fix=nq * looped, high=J, low=J, now=J, held=J - B)
        self.motion.add(other=n * n * joined, L2=n * n * joined, D2=n * joined)
        self.work = Fields("w", stage=self.moving, rates=4 * self.moving, push=k + 6 * len(shape.links), dt=1)
        self.work.add(z=self.state.count("memory"), speed=J + len(shape.remembering), X=B * n, W=B * B)
        self.work.add(tail=J, impulse=J, trial=n, through=k, agree=1, load=owners, status=1, index=1, torque=k, error=wide)
        self.work.add(**each(("x", "v", "a", "wanted", "task", "rate"), n))
        self.work.add(**each(("rho", "rho_v", "current", "theta", "omega"), k), drift=nq)
        self.work.add(correction=positions_of(model), ok=1)
        self.record = Fields("record", q=n, v=n, a=n, **each(RECORDED, k), joint_friction=nt, joint_power=nt, energy=2)
        self.call = Fields("a", steps=1, table=1, table_rows=1, noise=1, noise_rows=1, noise_width=1, push=1, push_rows=1)
        self.call.add(**each(("push_every", "record", "record_rows", "record_every", "status", "index"), 1))

    def signals(self, record: Array) -> dict[str, Array]:
        """Return the signals (N, count) of a record of N rows, by name: one block of rows after the other."""
        rows = record.shape[0]
        return {name: self.record.view(record.reshape(-1, rows or 1), name).reshape(rows, -1) for name in self.record}

    def noise_width(self, numbers: Array) -> int:
        """Return how many numbers a row of sensor noise has: encoders, then currents at every tick of their loop."""
        sense, cycle = (int(self.numbers.view(numbers, name)[0]) for name in ("sense", "current_every"))
        return self.state.count("command") * (1 + sense // (cycle or sense))


class MachineRoutine(Routine):
    """A routine on the arrays of a machine; ``s.pose`` is the field `pose` of its state, ``w.ok`` one of its scratch."""

    def __init__(self, memory: Memory, graph: Graph, name: str, arrays: Sequence[str]) -> None:
        super().__init__(graph, name, arrays)
        self._fields = {f.array: f for f in (memory.state, memory.numbers, memory.work, memory.motion, memory.call)}

    def at(self, name: str, index: int = 0) -> Place:
        """Return array and index of a number, as `call` takes them."""
        array, _, field = name.partition(".")
        return array, self._fields[array].at(field, index)

    def get(self, name: str, index: int = 0) -> Node:
        """Return a number of a field."""
        return self.load(*self.at(name, index))

    def get_all(self, name: str, count: int | None = None, first: int = 0) -> list[Node]:
        """Return neighbouring numbers of a field, all of them when no count is given."""
        array, _, field = name.partition(".")
        return self.load_all(*self.at(name, first), self._fields[array].count(field) if count is None else count)

    def put(self, name: str, value: Node | float, index: int = 0) -> None:
        """Write a number of a field."""
        self.store(*self.at(name, index), value)

    def put_all(self, name: str, values: Sequence[Node | float], first: int = 0) -> None:
        """Write neighbouring numbers of a field."""
        self.store_all(*self.at(name, first), values)

    def call(self, what: Function | Routine, **places: str | Place) -> None:
        """Call a function or routine; arrays of it without a place are ours of the same name."""
        super().call(what, **{name: name for name in what.arrays if name in self.arrays} | places)

    def stop_unless_ok(self, status: int) -> None:
        """Set the status of the step where the last function did not find what it should (w.ok)."""
        with self.when(opposite(self.get("w.ok") > 0.0)):
            self.put("w.status", status)


def largest(graph: Graph, values: Sequence[Node]) -> Node:
    """Return the largest absolute value, 0 of none."""
    size = graph.zero
    for x in values:
        size = maximum(size, absolute(x))
    return size


DRIVE_NUMBERS = (
    *("ratio", "efficiency", "torque", "emf", "resistance", "inductance", "current_limit", "voltage_limit", "play"),
    *("before", "reflected", "joined"),  # inertia in front of the gear; all that moves with rho; that and the joint's rotor
)
CONTROL_NUMBERS = ("every", "sense", "outer", "inner", "current_every", "windup", "remove", "late", "late_wish")
GAINS = ("kp", "kd", "ki", "share", "slow_out", "slow_in", "speed_limit", "kpc", "kic", "preload")
SENSOR_NUMBERS = ("resolution", "on_motor", "exact_speed", "blend", "current_step", "current_gain")
RECORDED = ("torques", "motor_torque", "current", "friction", "rho", "rho_v", "theta", "omega", "voltage", "gear_loss")
