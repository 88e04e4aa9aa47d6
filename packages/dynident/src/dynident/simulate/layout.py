"""The structure of a machine, and the layout of its numbers: records of the fields of the arrays in compiled code.

A record such as `State` names quantities; its type parameter gives the kind of values: `State[Field]` has their positions in
the array, `State[list[Node]]` their symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from dynident.arrays import Array
from dynident.graph.algebra import absolute, maximum, opposite
from dynident.graph.expression import Function, Graph, Node
from dynident.graph.routine import Place, Routine
from dynident.mechanics.actuation import coupling_rows
from dynident.mechanics.functions import geometry_key
from dynident.mechanics.newton_euler import ball_joints, positions_of
from dynident.mechanism.mechanism import Mechanism
from dynident.simulate.friction import Owner, asks_load, jumps, starts, states_of

T = TypeVar("T")
R = TypeVar("R")
IDEAL, RESISTIVE, INDUCTIVE = "current", "resistance", "winding"  # kinds of electrical input of a drive
FINE, SINGULAR_MASS, LOST_CLOSURE, UNSTABLE, LOST_TASK = 0, 1, 2, 3, 4


@dataclass(frozen=True, eq=False)
class Field:
    """Contiguous numbers of an array."""

    array: str
    first: int
    count: int

    @property
    def places(self) -> range:
        """Indices of its numbers."""
        return range(self.first, self.first + self.count)

    def symbols(self, graph: Graph, array: str = "") -> list[Node]:
        """Return its numbers as inputs of a `Function`, of this array or of another one with the same layout."""
        return [graph.symbol(f"{array or self.array}[{i}]") for i in self.places]

    def of(self, values: Array) -> Array:
        """Return a view of its numbers."""
        return values[self.first : self.first + self.count]


class Record(Generic[T]):
    """One value for every field of an array."""

    @property
    def size(self: Record[Field]) -> int:
        """Size of the array."""
        last = list(vars(self).values())[-1]
        return int(last.first + last.count)

    def by_name(self) -> dict[str, T]:
        """Return all values by name, in the order of the array."""
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class Moving(Record[T]):
    """Integrated quantities."""

    q: T  # positions of the robot, of its tree for a robot with loops
    v: T  # velocities of the coordinates
    theta: T  # angles of shaft masses
    omega: T  # speeds of shaft masses
    coil: T  # currents of windings with inductance


@dataclass(frozen=True, eq=False)
class State(Moving[T]):
    """Memory between steps, array s; delayed commands (`late`, then `late_wish` rows) follow it."""

    acceleration: T
    branch: T  # assembly of the loops
    side: T  # sliding direction of owners of friction, 0 while they stick
    held: T  # holding force of sticking owners
    begin: T  # their speeds at the start of the step
    through: T  # torques through rigid gears with losses
    load: T  # of owners with load-dependent friction
    memory: T  # inner states of friction laws
    command: T  # inputs of the drives
    beyond: T  # whether the command is limited
    cut: T  # steps at a limit so far
    sensed: T  # actuator positions
    sensed_v: T
    sensed_current: T
    sent: T  # last command of the law
    issued: T  # speed setpoints of the position loop
    wish: T  # speed setpoints at the velocity loop
    asked: T  # current setpoints of the velocity loop
    electric: T  # integrals of the current loops
    integral: T
    slope: T  # filtered rates of errors
    pose: T  # of the model of the law
    step: T  # completed steps


@dataclass(frozen=True, eq=False)
class Numbers(Record[T]):
    """Constants of a run, array p."""

    step: T
    limit: T  # velocity or current beyond which a run counts as unstable
    slack: T  # widens the levels of sticking friction, in ranges: 0, or large for solvers that find the time of slip
    phi: T  # parameters in node frames
    lumped: T  # parameters regrouped to parent bodies
    ratio: T
    efficiency: T
    torque: T  # constants of the motors
    emf: T
    resistance: T
    inductance: T
    current_limit: T
    voltage_limit: T
    play: T
    before: T  # inertia in front of the gear
    reflected: T  # all inertia that moves with rho
    joined: T  # the same with the joint's rotor
    shaft_inertia: T
    stiffness: T
    damping: T
    law: T  # parameters of all friction
    warm: T  # ratio of warm to cold friction
    temperature: T
    ramp: T  # speed below which a steep smooth law is a straight line
    every: T  # steps between two rows of the reference
    sense: T  # steps between two sensor ticks, and so on
    outer: T
    inner: T
    current_every: T
    windup: T
    remove: T  # whether internal torques are removed
    late: T  # steps from a command to the motor
    late_wish: T  # ticks from the position loop to the velocity loop
    kp: T
    kd: T
    ki: T
    share: T  # share of the reference speed that is fed forward
    slow_out: T  # coefficients of low-passes
    slow_in: T
    speed_limit: T
    kpc: T
    kic: T
    preload: T
    resolution: T
    on_motor: T  # whether the encoder is in front of the gear
    exact_speed: T
    blend: T
    current_step: T
    current_gain: T
    model_phi: T
    model_zero: T
    model_inverse: T
    model_law: T
    model_slope: T
    task_inertia: T
    posture: T
    posture_share: T


@dataclass(frozen=True, eq=False)
class Evaluation(Record[T]):
    """Results of one evaluation of the equation of motion, array m."""

    solid: T  # above zero where the mass matrix is positive definite
    L: T  # factors of the matrix that gives the accelerations
    D: T
    force: T
    stuck: T  # number of sticking owners
    pivot: T
    branch: T
    fix: T  # correction that closes the loops
    high: T  # levels of friction
    low: T
    now: T  # speeds of owners
    held: T  # forces that hold rotors on shafts
    other: T  # mass matrix less that of the actuators
    whole_factors: T  # factors of mechanism and drives together, for iterative coupling
    whole_inverses: T


@dataclass(frozen=True, eq=False)
class Work(Record[T]):
    """Scratch, array w."""

    stage: T
    rates: T  # of all stages
    push: T  # external torques on the actuators and wrenches
    dt: T
    z: T  # states of friction laws within the step
    speed: T  # of owners that may stick, then of those with memory
    acceleration: T  # of owners that move with the mechanism
    stop_speed: T  # of these owners at the end of a step with a stop
    X: T  # M^-1 c^T of these owners
    W: T  # c M^-1 c^T
    tail: T  # share of the step after the stop
    force: T  # that holds owners within a stage
    impulse: T  # that stops owners at the end of a step
    shift: T  # of the coordinates by that impulse
    through: T
    agree: T
    load: T
    status: T
    index: T  # of the number beyond its limit
    limited: T  # which drives are at a limit
    torque: T  # commanded by the law
    shared: T  # the same without internal torques, with the preload
    error: T
    x: T  # measured coordinates
    v: T
    a: T  # accelerations commanded by the law
    wanted: T  # velocities
    task: T  # output of a law in a work space
    task_speed: T  # actuator speeds commanded by the law
    rate: T  # of the error
    rho: T
    rho_v: T
    current: T
    theta: T
    omega: T
    moved: T  # changes of positions by that impulse
    correction: T  # of the model's pose
    ok: T


@dataclass(frozen=True, eq=False)
class Signals(Record[T]):
    """True signals over time."""

    q: T
    v: T
    a: T
    torques: T
    motor_torque: T
    current: T
    friction: T
    rho: T
    rho_v: T
    theta: T
    omega: T
    voltage: T
    gear_loss: T
    joint_friction: T
    joint_power: T
    energy: T


@dataclass(frozen=True, eq=False)
class Call(Record[T]):
    """Arguments and results of a stretch of steps, array a; first rows of tables count from the start of the first run."""

    steps: T
    table: T
    table_rows: T
    noise: T
    noise_rows: T
    noise_width: T
    push: T
    push_rows: T
    push_every: T
    record: T
    record_rows: T
    record_every: T
    status: T
    index: T


def each(record: Record[Field], make: Callable[[Field], Any]) -> Any:
    """Return a record of the same kind with a function of every field."""
    return type(record)(**{name: make(field) for name, field in vars(record).items()})


def placed(kind: Callable[..., R], array: str, usual: int, **counts: int) -> R:
    """Return the fields of an array in order; those without a count have the default count."""
    names, found, first = [field.name for field in fields(kind)], dict[str, Field](), 0  # type: ignore[arg-type]
    if not set(counts) <= set(names):
        raise ValueError(f"no fields: {sorted(set(counts) - set(names))}")
    for name in names:
        found[name] = Field(array, first, counts.get(name, usual))
        first += found[name].count
    return kind(**found)


@dataclass(frozen=True, eq=False)
class Layout:
    """The structure of a machine and the arrays of its numbers; machines that differ only in numbers share it and its code."""

    mechanism: Mechanism  # the robot; only its geometry counts
    owners: tuple[Owner, ...]  # friction of joints, rotors and gears
    feeds: tuple[str, ...]  # kind of electrical input of every drive
    limited: tuple[bool, ...]  # whether the amplifier's voltage limits its current
    shaft_counts: tuple[int, ...]  # masses with a separate coordinate
    play: tuple[bool, ...]
    lossy: tuple[bool, ...]  # whether its gear has losses
    # Kind of the control law: "held" (a controller in Python), "open", "cascade", "pid", "projected", "computed",
    # "task forces", "task computed" or "task cascade"
    law: str
    model: Mechanism  # robot model of the law
    model_owners: tuple[Owner, ...] = ()  # friction of that model
    current_loop: bool = False  # whether a cascade has a current loop
    torque: bool = False  # whether an open loop commands torques
    on_reference: bool = False  # whether computed torque evaluates its model on the reference
    space: Any = None  # controlled quantities of a law in a work space
    loop: str = ""  # "" if mechanism and drives are solved together, otherwise "iterated" or "delayed"
    pushed: bool = False  # whether disturbances act on the actuators
    links: tuple[str, ...] = ()  # links with external wrenches

    @property
    def key(self) -> Hashable:
        """Key that identifies the code of a machine."""
        space, known = self.space is not None, self.law not in ("open", "cascade", "pid")
        model = geometry_key(self.model, frames=space) if known else None
        owners = tuple([tuple([owner.structure for owner in own]) for own in (self.owners, self.model_owners)])
        drives = self.feeds, self.limited, self.shaft_counts, self.play, self.lossy
        law = self.law, model, self.current_loop, self.torque, self.on_reference, self.space
        robot = geometry_key(self.mechanism, frames=space or bool(self.links))
        return robot, owners, drives, law, self.loop, self.pushed, self.links

    # ---- structure

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return self.mechanism.dof

    @property
    def k(self) -> int:
        """Number of drives."""
        return len(self.feeds)

    @cached_property
    def rows(self) -> Array:
        """N (k, n_tree) with rho = N q_t."""
        return coupling_rows(self.mechanism)

    @cached_property
    def shafts(self) -> list[int]:
        """First shaft mass of every drive, and their number at the end."""
        return [int(x) for x in np.cumsum([0, *self.shaft_counts])]

    @cached_property
    def windings(self) -> list[int]:
        """First winding of every drive, and their number at the end."""
        return [int(x) for x in np.cumsum([0, *(feed == INDUCTIVE for feed in self.feeds)])]

    def loses_rigidly(self, a: int) -> bool:
        """Return whether a drive has a rigid gear with losses."""
        return self.lossy[a] and not self.shaft_counts[a]

    @cached_property
    def balls(self) -> list[tuple[bool, int]]:
        """Type (True: free) and first coordinate of every ball and free joint in the state."""
        return ball_joints(self.mechanism)

    def on_shaft(self, owner: Owner) -> bool:
        """Return whether an owner is a rotor in front of an elastic shaft, which moves independently."""
        return owner.motor >= 0 and not owner.gear and self.shaft_counts[owner.motor] > 0

    @cached_property
    def jumping(self) -> list[int]:
        """Owners whose friction jumps at rest: first those that move with the mechanism, then rotors on shafts."""
        lossy = [owner.gear or (owner.motor >= 0 and self.loses_rigidly(owner.motor)) for owner in self.owners]
        found = [i for i, owner in enumerate(self.owners) if lossy[i] or jumps(owner)]
        return sorted(found, key=lambda i: (self.on_shaft(self.owners[i]), i))

    @cached_property
    def bound(self) -> int:
        """Number of jumping owners that move with the mechanism."""
        return sum(not self.on_shaft(self.owners[i]) for i in self.jumping)

    @cached_property
    def remembering(self) -> list[int]:
        """Owners with laws that have memory."""
        return [i for i, owner in enumerate(self.owners) if any(states_of(law) for law in owner.laws)]

    @cached_property
    def loading(self) -> list[int]:
        """Owners with load-dependent friction."""
        return [i for i, owner in enumerate(self.owners) if any(asks_load(law) for law in owner.laws)]

    @cached_property
    def moving(self) -> int:
        """Number of integrated quantities."""
        return positions_of(self.mechanism) + self.n + 2 * self.shafts[-1] + self.windings[-1]

    # ---- arrays

    @cached_property
    def state(self) -> State[Field]:
        """Fields of the state."""
        wide, J = max(self.n, self.k), len(self.jumping)
        c, e = self.shafts[-1], self.windings[-1]
        return placed(
            State,
            "s",
            self.k,
            **{"q": positions_of(self.mechanism), "v": self.n, "theta": c, "omega": c, "coil": e},
            **dict.fromkeys(("side", "held", "begin"), J),
            **{"acceleration": self.n, "branch": 1, "load": len(self.owners), "memory": starts(self.owners, "states")[-1]},
            **{"integral": wide, "slope": wide, "pose": positions_of(self.model), "step": 1},
        )

    @cached_property
    def numbers(self) -> Numbers[Field]:
        """Fields of the constants."""
        gains = ("kp", "kd", "ki", "share", "slow_out", "slow_in", "speed_limit", "kpc", "kic", "preload")
        cycles = ("every", "sense", "outer", "inner", "current_every", "windup", "remove", "late", "late_wish")
        return placed(
            Numbers,
            "p",
            self.k,
            **dict.fromkeys(("step", "limit", "slack", "posture_share", *cycles), 1),
            **dict.fromkeys(("phi", "lumped"), len(self.mechanism.parameters)),
            **dict.fromkeys(("shaft_inertia", "stiffness", "damping"), self.shafts[-1]),
            **dict.fromkeys(("warm", "temperature", "ramp"), len(self.owners)),
            **dict.fromkeys(gains, max(self.n, self.k)),
            **{"law": starts(self.owners, "numbers")[-1], "posture": 2},
            **{"model_phi": len(self.model.parameters), "model_inverse": self.n * self.k},
            **{"model_law": starts(self.model_owners, "numbers")[-1], "model_slope": len(self.model_owners)},
        )

    @cached_property
    def motion(self) -> Evaluation[Field]:
        """Fields of an evaluation of the equation of motion."""
        n, nq, J, B = self.n, positions_of(self.mechanism), len(self.jumping), self.bound
        looped, joined, solves = int(bool(self.mechanism.loops)), int(bool(self.loop)), int(bool(B or self.loop))
        return placed(
            Evaluation,
            "m",
            J,
            **{"solid": 1, "L": n * n * solves, "D": n * solves, "force": n * joined, "stuck": int(B > 0), "held": J - B},
            **{"pivot": looped, "branch": looped, "fix": nq * looped},
            **{"other": n * n * joined, "whole_factors": n * n * joined, "whole_inverses": n * joined},
        )

    @cached_property
    def work(self) -> Work[Field]:
        """Fields of the scratch."""
        n, nq, J, B, moving = self.n, positions_of(self.mechanism), len(self.jumping), self.bound, self.moving
        return placed(
            Work,
            "w",
            self.k,
            **dict.fromkeys(("x", "v", "a", "wanted", "task", "rate", "shift"), n),
            **dict.fromkeys(("dt", "agree", "status", "index", "ok"), 1),
            **dict.fromkeys(("acceleration", "stop_speed", "force"), B),
            **{"stage": moving, "rates": 4 * moving, "push": self.k + 6 * len(self.links), "moved": nq},
            **{"speed": J + len(self.remembering), "tail": J, "impulse": J, "X": B * n, "W": B * B},
            **{"z": starts(self.owners, "states")[-1], "load": len(self.owners)},
            **{"error": max(n, self.k), "correction": positions_of(self.model)},
        )

    @cached_property
    def record(self) -> Signals[Field]:
        """Fields of a row of the record."""
        wide = len(self.mechanism.tree.coordinates)
        counts = {**dict.fromkeys("qva", self.n), "joint_friction": wide, "joint_power": wide, "energy": 2}
        return placed(Signals, "record", self.k, **counts)

    @cached_property
    def call(self) -> Call[Field]:
        """Fields of the arguments of a stretch of steps."""
        return placed(Call, "a", 1)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Sizes of all arrays except the state, which is followed by delayed commands."""
        return {"p": self.numbers.size, "w": self.work.size, "m": self.motion.size, "a": self.call.size}

    def signals(self, record: Array) -> Signals[Array]:
        """Return the signals (N, count) of a record of N rows: one block of rows after the other."""
        rows = record.shape[0]
        blocks, fields = record.reshape(-1, rows or 1), vars(self.record)
        return Signals(**{name: blocks[f.first : f.first + f.count].reshape(rows, -1) for name, f in fields.items()})


def own_positions(mechanism: Mechanism) -> list[int]:
    """Return the indices of the robot's coordinates in the integrated positions, those of the tree for loops."""
    return [int(i) for i in mechanism.closure.independent] if mechanism.loops else list(range(mechanism.dof))


class MachineRoutine(Routine):
    """A routine on the arrays of a machine; `s` are the fields of its state, and so on."""

    def __init__(self, layout: Layout, graph: Graph, name: str, arrays: Sequence[str]) -> None:
        super().__init__(graph, name, arrays)
        self.s, self.p, self.w, self.m, self.a = layout.state, layout.numbers, layout.work, layout.motion, layout.call

    def at(self, field: Field, index: int = 0) -> Place:
        """Return array and index of a number, as arguments of `call`."""
        return field.array, field.first + index

    def get(self, field: Field, index: int = 0) -> Node:
        """Return a number of a field."""
        return self.load(*self.at(field, index))

    def get_all(self, field: Field, count: int | None = None, first: int = 0) -> list[Node]:
        """Return contiguous numbers of a field, all of them when no count is given."""
        return self.load_all(*self.at(field, first), field.count if count is None else count)

    def put(self, field: Field, value: Node | float, index: int = 0) -> None:
        """Write a number of a field."""
        self.store(*self.at(field, index), value)

    def put_all(self, field: Field, values: Sequence[Node | float], first: int = 0) -> None:
        """Write contiguous numbers of a field."""
        self.store_all(*self.at(field, first), values)

    def call(self, what: Function | Routine, **places: str | Place) -> None:
        """Call a function or routine; its arrays without a place are those of the same name here."""
        super().call(what, **{name: name for name in what.arrays if name in self.arrays} | places)

    def stop_unless_ok(self, status: int) -> None:
        """Set the status of the step if the last function failed (w.ok)."""
        with self.when(opposite(self.get(self.w.ok) > 0.0)):
            self.put(self.w.status, status)


def largest(graph: Graph, values: Sequence[Node]) -> Node:
    """Return the largest absolute value, 0 if there are no values."""
    size = graph.zero
    for x in values:
        size = maximum(size, absolute(x))
    return size
