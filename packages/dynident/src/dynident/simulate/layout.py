"""Where every number of a machine is: records of the fields of the arrays that compiled code reads and writes.

A record such as `State` names quantities; what stands behind the names depends on its user. `State[Field]` says where they are
in the array, `State[list[Node]]` has their symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

from dynident.arrays import Array
from dynident.graph.elementary import absolute, maximum, opposite
from dynident.graph.expression import Function, Graph, Node
from dynident.graph.routine import Place, Routine
from dynident.mechanics.moving_tree import positions_of
from dynident.simulate.shape import Shape, starts

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class Field:
    """Neighbouring numbers of an array."""

    array: str
    first: int
    count: int

    @property
    def places(self) -> range:
        """Where its numbers are."""
        return range(self.first, self.first + self.count)

    def symbols(self, graph: Graph, array: str = "") -> list[Node]:
        """Return its numbers as inputs of a `Function`, of this array or of another one that is arranged alike."""
        return [graph.symbol(f"{array or self.array}[{i}]") for i in self.places]

    def of(self, values: Array) -> Array:
        """Return a view of its numbers."""
        return values[self.first : self.first + self.count]


class Record(Generic[T]):
    """Something for every field of an array."""

    @property
    def size(self: Record[Field]) -> int:
        """Numbers of the array."""
        last = list(vars(self).values())[-1]
        return int(last.first + last.count)

    def by_name(self) -> dict[str, T]:
        """Return all of it by name, in the order of the array."""
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class Moving(Record[T]):
    """What is integrated."""

    q: T  # positions of the robot, of its tree where it has loops
    v: T  # velocities of the coordinates
    theta: T  # angles of shaft masses
    omega: T  # their speeds
    coil: T  # currents of windings with inductance


@dataclass(frozen=True, eq=False)
class State(Moving[T]):
    """All that is carried from step to step, array s; commands on their way (`late`, then `late_wish` rows) stand behind."""

    acceleration: T
    branch: T  # way in which the loops are assembled
    side: T  # to which owners of friction slide, 0 while they stick
    held: T  # force that holds those that stick
    begin: T  # their speeds at the start of the step
    through: T  # torques through rigid gears with losses
    load: T  # of owners whose friction grows with it
    memory: T  # inner states of friction laws
    command: T  # what the drives are fed with
    beyond: T  # whether a limit has cut the command
    cut: T  # steps at a limit so far
    sensed: T  # actuator positions
    sensed_v: T
    sensed_current: T
    sent: T  # last command of the law
    issued: T  # speeds that the position loop asks for
    wish: T  # speeds that have reached the velocity loop
    asked: T  # currents that the velocity loop asks for
    electric: T  # integrals of the current loops
    integral: T
    slope: T  # filtered rates of errors
    pose: T  # of the model of the law
    step: T  # steps made so far


@dataclass(frozen=True, eq=False)
class Numbers(Record[T]):
    """Constants of a run, array p."""

    step: T
    limit: T  # velocity or current beyond which a run counts as unstable
    slack: T  # widens the levels of friction that sticks, in ranges: 0, or much for solvers that find the moment of slip
    phi: T  # parameters in node frames
    lumped: T  # the same with what parents can carry moved there
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
    joined: T  # that and the joint's rotor
    shaft_inertia: T
    stiffness: T
    damping: T
    law: T  # parameters of all friction
    warm: T  # ratio of warm to cold friction
    temperature: T
    ramp: T  # speed below which a steep smooth law is a straight line
    every: T  # steps between two rows of the reference
    sense: T  # steps between two looks at the sensors, and so on
    outer: T
    inner: T
    current_every: T
    windup: T
    remove: T  # whether internal torques are taken out
    late: T  # steps from a command to the motor
    late_wish: T  # ticks from the position loop to the velocity loop
    kp: T
    kd: T
    ki: T
    share: T  # of the wanted speed that is fed forward
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
    stuck: T  # how many owners stick
    pivot: T
    branch: T
    fix: T  # correction that closes the loops
    high: T  # levels of friction
    low: T
    now: T  # speeds of owners
    held: T  # forces that hold rotors on shafts
    other: T  # mass matrix less that of the actuators
    whole_factors: T  # factors of mechanism and drives together, where a stage joins them step by step
    whole_inverses: T


@dataclass(frozen=True, eq=False)
class Work(Record[T]):
    """Scratch, array w."""

    stage: T
    rates: T  # of all stages
    push: T  # torques on the actuators and wrenches from outside
    dt: T
    z: T  # states of friction laws within the step
    speed: T  # of owners that may stick, then of those with memory
    acceleration: T  # of owners that move with the mechanism
    X: T  # M^-1 c^T of those
    W: T  # c M^-1 c^T
    tail: T  # share of the step after the stop
    force: T  # that holds owners within a stage
    impulse: T  # that stops owners at the end of a step
    shift: T  # of the coordinates by that impulse
    through: T
    agree: T
    load: T
    status: T
    index: T  # of the number that is beyond its limit
    limited: T  # which drives are at a limit
    torque: T  # that the law asks for
    shared: T  # the same without internal torques
    error: T
    x: T  # measured coordinates
    v: T
    a: T  # accelerations that the law asks for
    wanted: T  # velocities
    task: T  # output of a law in a work space
    task_speed: T  # speeds of the actuators that it asks for
    rate: T  # of the error
    rho: T
    rho_v: T
    current: T
    theta: T
    omega: T
    drift: T  # rates or changes of positions
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
    """Arguments of a stretch of steps and what came of it, array a; first rows of tables are counted from the start of time."""

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
    """Return a record of the same kind with something made of every field."""
    return type(record)(**{name: make(field) for name, field in vars(record).items()})


def placed(kind: Callable[..., R], array: str, usual: int, **counts: int) -> R:
    """Return the fields of an array, one after the other; those without a count have the usual one."""
    names, found, first = [field.name for field in fields(kind)], dict[str, Field](), 0  # type: ignore[arg-type]
    if not set(counts) <= set(names):
        raise ValueError(f"no fields: {sorted(set(counts) - set(names))}")
    for name in names:
        found[name] = Field(array, first, counts.get(name, usual))
        first += found[name].count
    return kind(**found)


class Layout:
    """The arrays of all machines of one shape."""

    def __init__(self, shape: Shape) -> None:
        n, k, nq = shape.mechanism.dof, len(shape.drives), positions_of(shape.mechanism)
        c, e = shape.shafts[-1], shape.windings[-1]
        owners, J, B = len(shape.owners), len(shape.jumping), shape.bound
        model, wide = shape.law.model, max(n, k)
        nt, inner = len(shape.mechanism.tree.coordinates), starts(shape.owners, "states")[-1]
        self.moving = nq + n + 2 * c + e  # numbers that are integrated
        moving = {"q": nq, "v": n, "theta": c, "omega": c, "coil": e}
        self.state: State[Field] = placed(
            State,
            "s",
            k,
            **moving,
            **dict.fromkeys(("side", "held", "begin"), J),
            **{"acceleration": n, "branch": 1, "load": owners, "memory": inner},
            **{"integral": wide, "slope": wide, "pose": positions_of(model), "step": 1},
        )
        gains = ("kp", "kd", "ki", "share", "slow_out", "slow_in", "speed_limit", "kpc", "kic", "preload")
        cycles = ("every", "sense", "outer", "inner", "current_every", "windup", "remove", "late", "late_wish")
        self.numbers: Numbers[Field] = placed(
            Numbers,
            "p",
            k,
            **dict.fromkeys(("step", "limit", "slack", "posture_share", *cycles), 1),
            **dict.fromkeys(("phi", "lumped"), len(shape.mechanism.parameters)),
            **dict.fromkeys(("shaft_inertia", "stiffness", "damping"), c),
            **dict.fromkeys(("warm", "temperature", "ramp"), owners),
            **dict.fromkeys(gains, wide),
            **{"law": starts(shape.owners, "numbers")[-1], "posture": 2},
            **{"model_phi": len(model.parameters), "model_inverse": n * k},
            **{"model_law": starts(shape.law.frictions, "numbers")[-1], "model_slope": len(shape.law.frictions)},
        )
        looped, joined, solves = int(bool(shape.mechanism.loops)), int(bool(shape.loop)), int(bool(B or shape.loop))
        self.motion: Evaluation[Field] = placed(
            Evaluation,
            "m",
            J,
            **{"solid": 1, "L": n * n * solves, "D": n * solves, "force": n * joined, "stuck": int(B > 0), "held": J - B},
            **{"pivot": looped, "branch": looped, "fix": nq * looped},
            **{"other": n * n * joined, "whole_factors": n * n * joined, "whole_inverses": n * joined},
        )
        self.work: Work[Field] = placed(
            Work,
            "w",
            k,
            **dict.fromkeys(("x", "v", "a", "wanted", "task", "rate", "shift"), n),
            **dict.fromkeys(("dt", "agree", "status", "index", "ok"), 1),
            **{"stage": self.moving, "rates": 4 * self.moving, "push": k + 6 * len(shape.links), "z": inner, "drift": nq},
            **{
                "speed": J + len(shape.remembering),
                "acceleration": B,
                "X": B * n,
                "W": B * B,
                "force": B,
                "tail": J,
                "impulse": J,
            },
            **{"load": owners, "error": wide, "correction": positions_of(model)},
        )
        self.record: Signals[Field] = placed(
            Signals, "record", k, **dict.fromkeys("qva", n), joint_friction=nt, joint_power=nt, energy=2
        )
        self.call: Call[Field] = placed(Call, "a", 1)

    def signals(self, record: Array) -> Signals[Array]:
        """Return the signals (N, count) of a record of N rows: one block of rows after the other."""
        rows = record.shape[0]
        blocks, fields = record.reshape(-1, rows or 1), vars(self.record)
        return Signals(**{name: blocks[f.first : f.first + f.count].reshape(rows, -1) for name, f in fields.items()})

    def noise_width(self, numbers: Array) -> int:
        """Return how many numbers a row of sensor noise has: encoders, then currents at every tick of their loop."""
        sense, cycle = (int(field.of(numbers)[0]) for field in (self.numbers.sense, self.numbers.current_every))
        return self.state.command.count * (1 + sense // (cycle or sense))


class MachineRoutine(Routine):
    """A routine on the arrays of a machine; `s` are the fields of its state, and so on."""

    def __init__(self, layout: Layout, graph: Graph, name: str, arrays: Sequence[str]) -> None:
        super().__init__(graph, name, arrays)
        self.s, self.p, self.w, self.m, self.a = layout.state, layout.numbers, layout.work, layout.motion, layout.call

    def at(self, field: Field, index: int = 0) -> Place:
        """Return array and index of a number, as `call` takes them."""
        return field.array, field.first + index

    def get(self, field: Field, index: int = 0) -> Node:
        """Return a number of a field."""
        return self.load(*self.at(field, index))

    def get_all(self, field: Field, count: int | None = None, first: int = 0) -> list[Node]:
        """Return neighbouring numbers of a field, all of them when no count is given."""
        return self.load_all(*self.at(field, first), field.count if count is None else count)

    def put(self, field: Field, value: Node | float, index: int = 0) -> None:
        """Write a number of a field."""
        self.store(*self.at(field, index), value)

    def put_all(self, field: Field, values: Sequence[Node | float], first: int = 0) -> None:
        """Write neighbouring numbers of a field."""
        self.store_all(*self.at(field, first), values)

    def call(self, what: Function | Routine, **places: str | Place) -> None:
        """Call a function or routine; arrays of it without a place are ours of the same name."""
        super().call(what, **{name: name for name in what.arrays if name in self.arrays} | places)

    def stop_unless_ok(self, status: int) -> None:
        """Set the status of the step where the last function did not find what it should (w.ok)."""
        with self.when(opposite(self.get(self.w.ok) > 0.0)):
            self.put(self.w.status, status)


def largest(graph: Graph, values: Sequence[Node]) -> Node:
    """Return the largest absolute value, 0 of none."""
    size = graph.zero
    for x in values:
        size = maximum(size, absolute(x))
    return size
