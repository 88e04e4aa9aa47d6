"""A machine that can be moved: its compiled code, shared by all machines of its shape, and its own numbers and state."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.control.controller import Measurement
from dynident.drive.drive import Drive
from dynident.errors import SimulationError
from dynident.friction.terms import TERMS
from dynident.graph.elementary import clip
from dynident.graph.expression import Graph
from dynident.graph.machine import SLOW
from dynident.graph.print_llvm import compile_routines
from dynident.mechanics.closure import close_positions
from dynident.mechanics.functions import node_values
from dynident.mechanism.mechanism import Mechanism
from dynident.simulate.drives import lumped_values, within_voltage
from dynident.simulate.dynamics import Dynamics
from dynident.simulate.friction import Law, joint_terms, owners_of, ramp_of, steep
from dynident.simulate.laws import fed_with_voltage, fill, reflected, shape_of, sticking
from dynident.simulate.layout import Field, Layout
from dynident.simulate.shape import FINE, DriveShape, Shape
from dynident.simulate.step import Step
from dynident.simulate.tick import Tick

KEPT = 128  # machines whose code is kept in memory
FASTEST = 1e6  # velocity [rad/s, m/s] or current [A] beyond which a run counts as unstable

log = logging.getLogger(__name__)
_codes: OrderedDict[Hashable, Code] = OrderedDict()
_lock = threading.RLock()


class Code:
    """Machine code of all machines of one shape."""

    def __init__(self, shape: Shape) -> None:
        start = perf_counter()
        self.shape, self.layout = shape, Layout(shape)
        graph = Graph()
        dynamics = Dynamics(shape, self.layout, graph)
        tick = Tick(dynamics)
        step = Step(dynamics, tick.control())
        routines = [step.run(), step.placed()]
        if shape.law.kind == "held":
            routines.append(tick.measure())
        self.functions = compile_routines(routines, f"the simulation of '{shape.mechanism.name}'")
        seconds = perf_counter() - start
        log.log(logging.INFO if seconds > SLOW else logging.DEBUG, "'%s': made in %.1f s", shape.mechanism.name, seconds)


def code_of(shape: Shape) -> Code:
    """Return the machine code for a shape, made once per process."""
    key = shape.key
    with _lock:
        found = _codes.get(key)
        if found is None:
            found = _codes[key] = Code(shape)
            while len(_codes) > KEPT:
                _codes.popitem(last=False)
        _codes.move_to_end(key)
        return found


class Tables(NamedTuple):
    """What some steps read: the reference, noise of the sensors and external forces, and where their first rows are."""

    table: Array  # one row per tick of the law
    noise: Array  # one row per tick of the sensors
    push: Array  # one row every `push_every` steps
    first: tuple[int, int, int] = (0, 0, 0)  # numbers of their first rows, counted from the start of time
    push_every: int = 1


class Machine:
    """One machine with its numbers and its state; not shared between threads."""

    def __init__(
        self,
        mechanism: Mechanism,
        drives: Sequence[Drive],
        law: Any,
        *,
        step: float,
        x: ArrayLike,
        v: ArrayLike | None = None,
        friction: Mapping[str, Law] | None = None,
        method: str = "coupled",
        loop: str = "exact",
        integrator: str = "rk4",
        pushed: bool = False,
        links: Sequence[str] = (),
    ) -> None:
        self.mechanism, self.drives, self.law, self.step = mechanism, tuple(drives), law, step
        self.shape = Shape(
            mechanism,
            tuple(DriveShape.of(drive, fed_with_voltage(law)) for drive in drives),
            tuple(owners_of(mechanism, friction or {}, self.drives)),
            shape_of(law, mechanism),
            loop if method == "decoupled" and loop != "exact" else "",
            integrator,
            pushed,
            tuple(links),
        )
        self.code = code_of(self.shape)
        self.layout = self.code.layout
        layout = self.layout
        sizes = {"p": layout.numbers.size, "w": layout.work.size, "m": layout.motion.size, "a": layout.call.size}
        self._arrays = {name: np.zeros(size) for name, size in sizes.items()}
        start = np.array(x, dtype=np.float64)
        self._fill(start)
        ring = (self.number(layout.numbers.late) + self.number(layout.numbers.late_wish)) * len(drives)
        self._arrays["s"] = np.zeros(layout.state.size + int(ring))
        self._given: Tables | None = None
        self.asked: dict[Any, Array] = {}  # the last reference as the law reads it, shared by fresh machines
        self._begin(start, np.zeros_like(start) if v is None else np.array(v, dtype=np.float64))

    def fresh(self) -> Machine:
        """Return another machine that is as this one is now."""
        other = copy(self)
        other._arrays, other._given = {name: array.copy() for name, array in self._arrays.items()}, None
        return other

    @property
    def state(self) -> Array:
        """All that is carried from step to step, and the commands on their way."""
        return self._arrays["s"]

    @property
    def numbers(self) -> Array:
        """All constants."""
        return self._arrays["p"]

    def of(self, field: Field) -> Array:
        """Return the numbers of a field; what is written into them acts."""
        return field.of(self._arrays[field.array])

    def number(self, field: Field) -> float:
        """Return the first number of a field."""
        return float(self._arrays[field.array][field.first])

    @property
    def stage(self) -> Array:
        """What the last evaluation looked at, in the order of the state."""
        return self.of(self.layout.work.stage)

    @property
    def tick(self) -> int:
        """Steps between two rows of the reference."""
        return int(self.number(self.layout.numbers.every))

    @property
    def done(self) -> int:
        """Steps made so far."""
        return int(self.number(self.layout.state.step))

    def _put(self, field: Field, values: Any) -> None:
        given, place = np.asarray(values, dtype=np.float64), self._arrays[field.array][field.first : field.first + field.count]
        place[: given.size if given.ndim else None] = given

    def _fill(self, x: Array) -> None:
        """Write the numbers."""
        put, p, drives, behind = self._put, self.layout.numbers, self.drives, reflected(self.drives)
        gears, motors = [drive.transmission for drive in drives], [drive.motor for drive in drives]
        put(p.step, self.step)
        put(p.limit, FASTEST)
        put(p.phi, node_values(self.mechanism, np.array(self.mechanism.parameters.values)))
        put(p.lumped, lumped_values(self.mechanism))
        put(p.ratio, [gear.ratio for gear in gears])
        put(p.efficiency, [gear.efficiency for gear in gears])
        put(p.play, [0.5 * gear.backlash for gear in gears])
        put(p.torque, [motor.torque_constant for motor in motors])
        put(p.emf, [motor.emf_constant for motor in motors])
        put(p.resistance, [motor.resistance for motor in motors])
        put(p.inductance, [motor.inductance for motor in motors])
        put(p.current_limit, [motor.current_limit for motor in motors])
        put(p.voltage_limit, [motor.voltage_limit for motor in motors])
        put(p.before, [drive.input_inertia for drive in drives])
        put(p.reflected, behind)
        put(p.joined, behind + self._rotors())
        shafts = [
            shaft
            for d in drives
            if not d.rigid
            for shaft in zip(
                (d.motor.inertia, *d.transmission.inertias[:-1]), d.transmission.stiffness, d.transmission.damping, strict=True
            )
        ]
        for field, values in zip((p.shaft_inertia, p.stiffness, p.damping), zip(*shafts, strict=True), strict=False):
            put(field, values)
        owners = self.shape.owners
        put(p.law, [x for owner in owners for x in owner.numbers])
        put(p.warm, 1.0)
        put(p.temperature, 20.0)
        if any(steep(owner) for owner in owners):
            slow = sticking(self.mechanism, x, owners, self.step, drives)
            put(p.ramp, [ramp_of(owner, float(s)) for owner, s in zip(owners, slow, strict=True)])
        fill(put, p, self.law, self.shape.law, drives, self.step, x)

    def _rotors(self) -> Array:
        """Return rotor inertias of driven joints at their actuators: in the decoupled form they turn with these."""
        found, left = np.zeros(len(self.drives)), dict[int, float]()
        for form, symbol, value in joint_terms(self.mechanism):
            used = np.flatnonzero(form)
            if TERMS[symbol].rotor and used.size == 1:
                left[int(used[0])] = left.get(int(used[0]), 0.0) + value * form[used[0]] ** 2
        for a, row in enumerate(self.shape.rows):
            used = np.flatnonzero(row)
            if used.size == 1:
                found[a] = left.pop(int(used[0]), 0.0) / row[used[0]] ** 2
        return found

    def _begin(self, x: Array, v: Array) -> None:
        """Write the state at the start."""
        for field, robot in ((self.layout.state.q, self.mechanism), (self.layout.state.pose, self.shape.law.model)):
            if robot.loops:
                self.of(field)[:] = robot.closure.home
        start, status = np.concatenate([x, v]), np.zeros(1)
        arrays = (*(self._arrays[name] for name in "spw"), start, status)
        self.code.functions["placed"](*[array.ctypes.data for array in arrays])
        if int(status[0]) != FINE:
            close_positions(self.mechanism, x[None])  # says where the loops cannot be closed
            raise SimulationError(f"robot '{self.mechanism.name}': the loops cannot be closed at the start")

    # ---- moving

    def _arguments(self, tables: Tables) -> None:
        if tables is self._given:
            return
        self._given, a, call = tables, self.layout.call, self._arrays["a"]
        call[a.table.first], call[a.noise.first], call[a.push.first] = tables.first
        call[a.table_rows.first], call[a.push_rows.first] = tables.table.shape[0], tables.push.shape[0]
        call[a.noise_rows.first], call[a.noise_width.first] = tables.noise.shape
        call[a.push_every.first] = tables.push_every

    def run(self, steps: int, tables: Tables, record: Array, first: int = 0, every: int = 1) -> tuple[int, int]:
        """Advance by a number of steps; can be called again to go on."""
        self._arguments(tables)
        a, call = self.layout.call, self._arrays["a"]
        call[a.steps.first], call[a.record.first] = steps, first
        call[a.record_rows.first], call[a.record_every.first] = record.shape[0], every
        own = [self._arrays[name] for name in "aspwm"]
        self.code.functions["run"](*[array.ctypes.data for array in (*own, *tables[:3], record)])
        return int(call[a.status.first]), int(call[a.index.first])

    def measure(self, tables: Tables) -> Measurement:
        """Read the sensors now, for a controller in Python; call it once per sensing tick."""
        self._arguments(tables)
        arrays = (*(self._arrays[name] for name in "spwa"), tables.noise)
        self.code.functions["measure"](*[array.ctypes.data for array in arrays])
        if int(self.number(self.layout.call.status)) != FINE:
            raise SimulationError(
                f"robot '{self.mechanism.name}': the sensed actuator positions belong to no pose at t = "
                f"{self.done * self.step:.6g} s; it is too close to a singularity"
            )
        s, w = self.layout.state, self.layout.work
        return Measurement(*(self.of(field).copy() for field in (s.sensed, s.sensed_v, w.x, w.v, s.sensed_current)))

    def hold(self, kind: str, values: ArrayLike) -> NDArray[np.bool_]:
        """Hold a command of a controller in Python, within the limits of motors and amplifiers; return which were cut."""
        wanted = np.array(values, dtype=np.float64)
        s, p = self.layout.state, self.layout.numbers
        fields = (p.ratio, p.torque, p.voltage_limit, p.current_limit, p.resistance, p.emf)
        ratio, torque, top, most, R, emf = (self.of(field) for field in fields)
        if kind == "torque":
            wanted = wanted / (ratio * torque)
        if kind == "voltage":
            held = clip(wanted, top)
        else:
            held, back = clip(wanted, most), emf * ratio * self.of(s.sensed_v)
            bound = (R > 0.0) & np.isfinite(top)
            ohm, reach = np.where(bound, R, 1.0), np.where(bound, top, 0.0)
            held = np.where(bound, within_voltage(held, back, reach, ohm), held)
        self.of(s.sent)[:], self.of(s.beyond)[:] = held, held != wanted
        if self.number(p.late) == 0.0:
            self.of(s.command)[:] = held
        return np.asarray(held != wanted)

    def warm(self, ratio: Array, temperature: Array) -> None:
        """Give all owners of friction another temperature: ratio of warm to cold friction, and degrees Celsius, per owner."""
        self._put(self.layout.numbers.warm, ratio)
        self._put(self.layout.numbers.temperature, temperature)
