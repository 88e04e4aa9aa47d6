"""A machine in simulation: code shared by all machines of its layout, and its own numbers and state."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from math import gcd, inf
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.checks import number, per_actuator
from dynident.control.feedforward import actuator_rows
from dynident.control.laws import PID, Cascade, ComputedTorque, Measurement, OpenLoop
from dynident.control.task import TaskCascade, TaskComputedTorque, TaskPID, bound_space
from dynident.drive.drive import Drive, linear_drive, low_pass_coefficient
from dynident.drive.joint_terms import joint_side
from dynident.errors import SimulationError
from dynident.friction.terms import TERMS
from dynident.graph.algebra import clip
from dynident.graph.expression import Graph
from dynident.graph.machine import SLOW
from dynident.graph.print_llvm import compile_routines
from dynident.mechanics.actuation import coupling_rows
from dynident.mechanics.closure import close_positions
from dynident.mechanics.dynamics import mass_matrix
from dynident.mechanics.functions import at_rest, lumped_values, node_values, tree_motion
from dynident.mechanism.mechanism import Mechanism
from dynident.simulate.drives import within_voltage
from dynident.simulate.dynamics import Dynamics
from dynident.simulate.friction import Owner, joint_terms, owners_of, ramp_of, steep
from dynident.simulate.layout import FINE, IDEAL, INDUCTIVE, RESISTIVE, Field, Layout
from dynident.simulate.reference import task_jacobian
from dynident.simulate.step import Step
from dynident.simulate.tick import Tick

if TYPE_CHECKING:
    from dynident.simulate.robot import VirtualRobot

T = TypeVar("T")
Functions = dict[str, Callable[..., Any]]

COMPILED = (Cascade, PID, ComputedTorque, OpenLoop, TaskPID, TaskComputedTorque, TaskCascade)
KEPT = 128  # layouts whose code is kept in memory
SHARED = 512  # objects derived from parts of machines that are kept in memory
FASTEST = 1e6  # velocity [rad/s, m/s] or current [A] beyond which a run counts as unstable
WHOLE = 1e-6  # tolerance of a whole number of steps in a cycle
NONE = 1e-6  # growth of a drive's own motion per step that counts as none: round-off of a rigid-body mode
MARGIN = 0.8  # of the largest stable step, for the proposed step

log = logging.getLogger(__name__)
_codes: OrderedDict[Hashable, tuple[Layout, Functions]] = OrderedDict()
_made: OrderedDict[Hashable, tuple[tuple[object, ...], Any]] = OrderedDict()
_lock = threading.RLock()


# ---- code ------------------------------------------------------------------------------------------------------------


def code_of(layout: Layout) -> tuple[Layout, Functions]:
    """Return the layout and the machine code shared by all its machines, compiled once per process."""
    key = layout.key
    with _lock:
        if key not in _codes:
            _codes[key] = layout, _compiled(layout)
            while len(_codes) > KEPT:
                _codes.popitem(last=False)
        _codes.move_to_end(key)
        return _codes[key]


def _compiled(layout: Layout) -> Functions:
    start, name = perf_counter(), layout.mechanism.name
    dynamics = Dynamics(layout, Graph())
    tick = Tick(dynamics)
    step = Step(dynamics, tick.control())
    routines = [step.run(), step.placed()]
    if layout.law == "held":
        routines.append(tick.measure())
    functions = compile_routines(routines, f"the simulation of '{name}'")
    seconds = perf_counter() - start
    log.log(logging.INFO if seconds > SLOW else logging.DEBUG, "'%s': made in %.1f s", name, seconds)
    return functions


def remembered(key: Hashable, parts: Sequence[object], make: Callable[[], T]) -> T:
    """Return the cached result of `make` for the same objects: machines of a study share unchanged parts."""
    whole = (key, *map(id, parts))
    with _lock:
        if whole not in _made:
            _made[whole] = tuple(parts), make()  # kept parts keep their id
            while len(_made) > SHARED:
                _made.popitem(last=False)
        _made.move_to_end(whole)
        found: T = _made[whole][1]
        return found


# ---- structure -------------------------------------------------------------------------------------------------------


def loops_of(controller: object) -> Cascade | None:
    """Return the loops of a cascade, in a work space or not."""
    loops = controller.loops if isinstance(controller, TaskCascade) else controller
    return loops if isinstance(loops, Cascade) else None


def fed_with_voltage(controller: object) -> bool:
    """Return whether a controller feeds the motors with voltages."""
    loops = loops_of(controller)
    if loops is not None:
        return loops.current is not None
    return getattr(controller, "command", "torque") == "voltage"


def believed(controller: Any, mechanism: Mechanism) -> Any:
    """Return a controller whose models have the robot's actuator coordinates, after checking that they fit."""
    if isinstance(controller, TaskCascade):
        return replace(controller, loops=believed(controller.loops, mechanism))
    fields = {Cascade: "torque_feedforward", PID: "feedforward", TaskPID: "feedforward"}
    fields |= {ComputedTorque: "model", TaskComputedTorque: "model"}
    label = fields.get(type(controller))
    model = None if label is None else getattr(controller, label)
    if model is None or label is None:
        return controller
    motors = [actuator.name for actuator in mechanism.actuators]
    theirs = [actuator.name for actuator in model.actuators]
    if model.coordinate_names != mechanism.coordinate_names or theirs != motors:
        raise SimulationError(
            f"controller: its model '{model.name}' has the coordinates {', '.join(model.coordinate_names)} and motors "
            f"{', '.join(theirs)}, the robot {', '.join(mechanism.coordinate_names)} and {', '.join(motors)}; they must agree"
        )
    if len(motors) < mechanism.dof:
        raise SimulationError(
            f"controller: a model needs a motor per degree of freedom, but robot '{mechanism.name}' has {len(motors)} "
            f"({', '.join(motors)}) for {mechanism.dof}; omit the model (PID, Cascade) or add actuators"
        )
    own = joint_side(model)
    return controller if own is model else replace(controller, **{label: own})


def _law_structure(law: object, mechanism: Mechanism) -> dict[str, Any]:
    """Return the properties that determine the compiled tick of a law, by the names of `Layout`."""
    if isinstance(law, Cascade):
        return {"law": "cascade", "model": mechanism, "current_loop": law.current is not None}
    if isinstance(law, PID):
        # A robot with as many motors as degrees of freedom has no internal torques to remove.
        internal = len(mechanism.actuators) > mechanism.dof and (law.project or bool(np.any(law.preload)))
        return {"law": "projected" if internal else "pid", "model": mechanism}
    if isinstance(law, ComputedTorque | TaskComputedTorque):
        known = {"model": law.model, "model_owners": tuple(owners_of(law.model, {}, ()))}
        if isinstance(law, TaskComputedTorque):
            return {"law": "task computed", **known, "space": law.space}
        return {"law": "computed", **known, "on_reference": law.on == "reference"}
    if isinstance(law, OpenLoop):
        return {"law": "open", "model": mechanism, "torque": law.command == "torque"}
    if isinstance(law, TaskPID):
        return {"law": "task forces", "model": mechanism, "space": law.space}
    if isinstance(law, TaskCascade):
        current = law.loops.current is not None
        return {"law": "task cascade", "model": mechanism, "current_loop": current, "space": law.space}
    return {"law": "held", "model": mechanism}


def _feed(drive: Drive, voltage: bool) -> str:
    """Return the kind of electrical input of a drive: ideal current, or voltage on resistance or winding."""
    motor = drive.motor
    if motor.torque_constant == 0.0:
        raise SimulationError(f"drive '{drive.actuator}': motor.torque_constant is 0; give it in N m/A")
    if not voltage:
        return IDEAL
    if motor.inductance > 0.0:
        return INDUCTIVE
    if motor.resistance == 0.0:
        raise SimulationError(
            f"drive '{drive.actuator}' is fed with a voltage but its motor has no resistance or inductance; give them"
        )
    return RESISTIVE


# ---- cycles and steps ------------------------------------------------------------------------------------------------


def whole_steps(cycle: float, step: float) -> int:
    """Return the whole number of steps in a cycle; 0 if not whole."""
    ratio = cycle / step
    return round(ratio) if 1.0 - WHOLE <= ratio < inf and abs(ratio - round(ratio)) <= WHOLE * ratio else 0


def steps_in(cycle: float, step: float, what: str) -> int:
    """Return the whole number of steps in a cycle; raise an error if not whole."""
    count = whole_steps(cycle, step)
    if not count:
        raise SimulationError(f"{what} = {cycle:g} s is {cycle / step:.6g} times the step {step:g} s; make it a whole multiple")
    return count


def step_growth(A: Array, step: float) -> float:
    """Return the growth factor per step of the fastest growing motion of dy/dt = A y."""
    if A.size == 0:
        return 0.0
    one, z = np.eye(A.shape[0]), step * A
    P = one + z @ (one + z / 2.0 @ (one + z / 3.0 @ (one + z / 4.0)))
    return float(np.abs(np.linalg.eigvals(P)).max()) if np.isfinite(P).all() else np.inf


def check_step(drives: Sequence[Drive], step: float, voltage: bool, fastest: float) -> None:
    """Refuse a step that is too long for the shafts or windings of a drive, and propose a shorter one."""
    for drive in drives:
        motor = drive.motor
        if not voltage and motor.resistance > 0.0 and np.isfinite(motor.voltage_limit):
            # At the voltage limit an ideal current falls with the speed, like that of a winding without inductance.
            motor, fed = replace(motor, inductance=0.0), True
        else:
            fed = voltage
        if drive.rigid and not fed:  # one mass that integrates its torque
            continue
        # A load on the last mass only slows a drive down: its own fastest eigenvalue bounds that of the robot.
        A = linear_drive(drive.chain if drive.inertia > 0.0 else None, motor, fed)[0]
        if step_growth(A, step) <= 1.0 + NONE:
            continue
        low, high = 1e-6 * step, step
        if step_growth(A, low) > 1.0 + NONE:
            raise SimulationError(f"drive '{drive.actuator}' is unstable at any step; check its shafts and its winding")
        for _ in range(60):
            middle = np.sqrt(low * high)
            low, high = (middle, high) if step_growth(A, middle) <= 1.0 + NONE else (low, middle)
        rate = np.abs(np.linalg.eigvals(A)).max()
        what = "winding" if drive.rigid else f"shafts ({rate / (2.0 * np.pi):.4g} Hz)"
        raise SimulationError(
            f"step = {step:g} s is too long for the {what} of drive '{drive.actuator}' (time constant {1.0 / rate:.3g} s); "
            f"give VirtualRobot(step={fastest / np.ceil(fastest / (MARGIN * low)):.9g}) or less"
        )


# ---- numbers ---------------------------------------------------------------------------------------------------------


def _drive_numbers(drive: Drive) -> tuple[float, ...]:
    """Return the numbers of a drive in the order of `Machine._fill_drives`."""
    motor, gear, encoder, meter = drive.motor, drive.transmission, drive.encoder, drive.current_sensor
    return (
        gear.ratio,
        gear.efficiency,
        0.5 * gear.backlash,
        motor.torque_constant,
        motor.emf_constant,
        motor.resistance,
        motor.inductance,
        motor.current_limit,
        motor.voltage_limit,
        drive.input_inertia,
        drive.output_inertia,
        encoder.resolution,
        float(encoder.side == "motor"),
        float(encoder.velocity == "exact"),
        meter.resolution,
        1.0 + meter.gain_error,
        encoder.filter,
    )


class Machine:
    """One virtual robot with its numbers and its state; not shared between threads."""

    def __init__(
        self,
        robot: VirtualRobot,
        x: ArrayLike,
        v: ArrayLike | None = None,
        *,
        method: str = "coupled",
        loop: str = "exact",
        pushed: bool = False,
        links: Sequence[str] = (),
    ) -> None:
        mechanism, drives = robot.mechanism, tuple(robot.drives)
        self.mechanism, self.drives, self.step = mechanism, drives, robot.step
        self.law = believed(robot.controller, mechanism)
        parts = (mechanism, *drives, *robot.friction.values())
        owners = remembered(("owners", *robot.friction), parts, lambda: owners_of(mechanism, robot.friction, drives))
        feeds = tuple([_feed(drive, fed_with_voltage(self.law)) for drive in drives])
        motors, gears = [drive.motor for drive in drives], [drive.transmission for drive in drives]
        law = _law_structure(self.law, mechanism)
        self.model: Mechanism = law["model"]
        layout = Layout(
            mechanism,
            tuple(owners),
            feeds,
            tuple([f == IDEAL and m.resistance > 0.0 and m.voltage_limit < inf for f, m in zip(feeds, motors, strict=True)]),
            tuple([len(gear.stiffness) for gear in gears]),
            tuple([gear.backlash > 0.0 for gear in gears]),
            tuple([gear.efficiency < 1.0 for gear in gears]),
            **law,
            loop=loop if method == "decoupled" and loop != "exact" else "",
            pushed=pushed,
            links=tuple(links),
        )
        self.layout, self._functions = code_of(layout)
        start = np.array(x, dtype=np.float64)
        self._arrays = {name: np.zeros(size) for name, size in self.layout.sizes.items()}
        self._fill(owners, law.get("model_owners", ()), start, robot.ambient)
        ring = (self.number(self.layout.numbers.late) + self.number(self.layout.numbers.late_wish)) * len(drives)
        self._arrays["s"] = np.zeros(self.layout.state.size + int(ring))
        self.asked: dict[Any, Array] = {}  # the last reference table, shared by new machines
        self._begin(start, np.zeros_like(start) if v is None else np.array(v, dtype=np.float64))

    def fresh(self) -> Machine:
        """Return a copy of this machine in its present state."""
        other = copy(self)
        other._arrays = {name: array.copy() for name, array in self._arrays.items()}
        return other

    @property
    def state(self) -> Array:
        """Complete memory between steps, with the delayed commands."""
        return self._arrays["s"]

    @property
    def numbers(self) -> Array:
        """All constants."""
        return self._arrays["p"]

    def of(self, field: Field) -> Array:
        """Return a writable view of the numbers of a field."""
        return field.of(self._arrays[field.array])

    def number(self, field: Field) -> float:
        """Return the first number of a field."""
        return float(self._arrays[field.array][field.first])

    @property
    def stage(self) -> Array:
        """State of the last evaluation, in the order of the state."""
        return self.of(self.layout.work.stage)

    @property
    def tick(self) -> int:
        """Steps between two rows of the reference."""
        return int(self.number(self.layout.numbers.every))

    @property
    def done(self) -> int:
        """Completed steps."""
        return int(self.number(self.layout.state.step))

    @property
    def noise_width(self) -> int:
        """Numbers of a row of sensor noise: encoders, then currents at every tick of their loop."""
        sense, cycle = (int(self.number(field)) for field in (self.layout.numbers.sense, self.layout.numbers.current_every))
        return len(self.drives) * (1 + sense // (cycle or sense))

    # ---- numbers

    def _put(self, field: Field, values: Any) -> None:
        given, place = np.asarray(values, dtype=np.float64), self._arrays[field.array][field.first : field.first + field.count]
        place[: given.size if given.ndim else None] = given

    def _fill(self, owners: Sequence[Owner], model_owners: Sequence[Owner], x: Array, ambient: float) -> None:
        """Write all numbers; x is the pose at the start."""
        put, p, mechanism = self._put, self.layout.numbers, self.mechanism
        put(p.step, self.step)
        put(p.limit, FASTEST)
        put(p.phi, node_values(mechanism, np.array(mechanism.parameters.values)))
        put(p.lumped, lumped_values(mechanism))
        self._fill_law(model_owners, x)
        self._fill_drives()
        put(p.law, [x for owner in owners for own in owner.numbers for x in own])
        put(p.warm, 1.0)
        put(p.temperature, ambient)
        if any(steep(owner) for owner in owners):
            slow = sticking(mechanism, x, owners, self.step, self.drives, self.of(p.reflected))
            put(p.ramp, [ramp_of(owner, float(s)) for owner, s in zip(owners, slow, strict=True)])

    def _fill_drives(self) -> None:
        """Write the numbers of motors, gears, shafts and sensors."""
        p, drives = self.layout.numbers, self.drives
        rows = [remembered("drive", (drive,), partial(_drive_numbers, drive)) for drive in drives]
        *columns, low_pass = zip(*rows, strict=True)
        fields = (
            *(p.ratio, p.efficiency, p.play, p.torque, p.emf, p.resistance, p.inductance, p.current_limit, p.voltage_limit),
            *(p.before, p.reflected, p.resolution, p.on_motor, p.exact_speed, p.current_step, p.current_gain),
        )
        for field, values in zip(fields, columns, strict=True):
            self.of(field)[:] = values
        self.of(p.blend)[:] = low_pass_coefficient(low_pass, self.number(p.sense) * self.step)
        self.of(p.joined)[:] = self.of(p.reflected) + self._rotors()
        shafts = [
            shaft
            for d in drives
            if not d.rigid
            for shaft in zip(
                (d.motor.inertia, *d.transmission.inertias[:-1]), d.transmission.stiffness, d.transmission.damping, strict=True
            )
        ]
        for field, values in zip((p.shaft_inertia, p.stiffness, p.damping), zip(*shafts, strict=True), strict=False):
            self.of(field)[:] = values

    def _rotors(self) -> Array:
        """Return rotor inertias of driven joints at their actuators, with which they turn in the decoupled form."""
        found, left = np.zeros(len(self.drives)), dict[int, float]()
        if not self.layout.loop:
            return found
        for form, symbol, value in joint_terms(self.mechanism):
            used = np.flatnonzero(form)
            if TERMS[symbol].rotor and used.size == 1:
                left[int(used[0])] = left.get(int(used[0]), 0.0) + value * form[used[0]] ** 2
        for a, row in enumerate(self.layout.rows):
            used = np.flatnonzero(row)
            if used.size == 1:
                found[a] = left.pop(int(used[0]), 0.0) / row[used[0]] ** 2
        return found

    def _fill_law(self, owners: Sequence[Owner], x: Array) -> None:
        """Write the numbers of the control law and of its model, whose friction is that of the owners."""
        space = self.layout.space
        p, law, step, k, model = self.layout.numbers, self.law, self.step, self.layout.k, self.model
        delay = number("controller: delay", getattr(law, "delay", 0.0), least=0.0, unit="s", kind=SimulationError)
        late = steps_in(delay, step, "delay") if delay > 0.0 else 0
        gains: dict[Field, Any] = {p.slow_out: 1.0, p.slow_in: 1.0, p.speed_limit: np.inf, p.late: late, p.inner: 1}
        outer = sense = 1
        loops = loops_of(law)
        rows = k if space is None else bound_space(law.owner, space, model).rows
        if loops is not None:
            name = law.owner if isinstance(law, TaskCascade) else "cascade"
            outer = steps_in(loops.position_cycle, step, "position_cycle")
            inner = steps_in(loops.velocity_cycle, step, "velocity_cycle")
            sense = gcd(outer, inner)
            gains |= {p.inner: inner, p.windup: float(loops.anti_windup), p.late_wish: loops.late_ticks}
            gains[p.kp] = per_actuator(loops.position_gain, rows, f"{name}: position_gain")
            gains[p.share] = per_actuator(loops.velocity_feedforward, rows, f"{name}: velocity_feedforward")
            gains[p.kd] = per_actuator(loops.velocity_gain, k, f"{name}: velocity_gain")
            gains[p.ki] = per_actuator(loops.velocity_integral, k, f"{name}: velocity_integral")
            gains[p.speed_limit] = per_actuator(loops.speed_limit, k, f"{name}: speed_limit")
            if loops.current is not None:
                gains[p.current_every] = steps_in(loops.current.cycle, step, "cycle of the current loop")
                gains[p.kpc] = per_actuator(loops.current.gain, k, f"{name}: kpc")
                gains[p.kic] = per_actuator(loops.current.integral, k, f"{name}: kic")
            slow = per_actuator(loops.position_filter, rows, f"{name}: position_filter")
            gains[p.slow_out] = low_pass_coefficient(slow, loops.position_cycle)
            slow = per_actuator(loops.velocity_filter, k, "velocity_filter")
            gains[p.slow_in] = low_pass_coefficient(slow, loops.velocity_cycle)
        elif isinstance(law, PID | ComputedTorque | TaskPID | TaskComputedTorque):
            count = model.dof if isinstance(law, ComputedTorque) else rows
            name = getattr(law, "owner", "PID" if isinstance(law, PID) else "computed torque")
            gain = f"{name}: gain" if space is not None else f"gain of the {name}"
            outer = sense = steps_in(law.cycle, step, f"cycle of the {name}")
            gains[p.remove] = float(getattr(law, "project", False))
            gains |= {field: per_actuator(x, count, gain) for field, x in ((p.kp, law.kp), (p.kd, law.kd), (p.ki, law.ki))}
            gains[p.preload] = per_actuator(law.preload, k, f"{name}: preload")
            slow = per_actuator(law.derivative_filter, count, f"{name}: derivative_filter")
            gains[p.slow_out] = low_pass_coefficient(slow, law.cycle)
        elif not isinstance(law, OpenLoop):
            outer = sense = steps_in(float(getattr(law, "cycle", step)), step, "cycle of the controller")
        for field, values in {**gains, p.outer: outer, p.sense: sense, p.every: sense}.items():
            self._put(field, values)
        if space is not None:
            self._fill_posture(x)
        if self.layout.law in ("open", "cascade", "pid"):  # laws without a model
            return
        self._put(p.model_phi, lumped_values(model))
        N = coupling_rows(model)
        if not model.loops and all(c.function is None for c in model.couplings):
            G, g0 = model.coupling_map
            self._put(p.model_inverse, np.linalg.pinv(N @ G).ravel())
            self._put(p.model_zero, N @ g0)
        if owners:
            self._put(p.model_law, [x for owner in owners for own in owner.numbers for x in own])
            self._put(p.model_slope, 1.0 / sticking(model, x, owners, outer * step))

    def _fill_posture(self, x: Array) -> None:
        """Write the posture gains of a law in a work space with fewer rows than coordinates."""
        p, law, model = self.layout.numbers, self.law, self.model
        rotors = np.array([drive.reflected_inertia for drive in self.drives])
        self._put(p.task_inertia, rotors)
        if bound_space(law.owner, self.layout.space, model).rows == model.dof:
            return
        A = actuator_rows(model, x)[0]
        M = mass_matrix(model, x)[0] + (A.T @ (rotors[:, None] * A) if self.layout.law != "task computed" else 0.0)
        if np.linalg.eigvalsh(M)[0] <= 0.0:
            raise SimulationError(
                f"robot '{model.name}': the controller's mass matrix is not positive definite; give every moving link an "
                "inertia"
            )
        if isinstance(law, TaskCascade):
            self._put(p.posture, [law.posture, 0.0])
            self._put(p.posture_share, float(np.min(law.loops.velocity_feedforward)))
        elif law.posture is not None:
            self._put(p.posture, law.posture)
        elif isinstance(law, TaskComputedTorque):
            self._put(p.posture, [float(np.min(law.kp)), float(np.min(law.kd))])
        else:
            J = task_jacobian(model, self.layout.space, x)
            kp = float(np.min(np.asarray(law.kp) * np.einsum("ij,ji->i", J, np.linalg.solve(M, J.T))))
            self._put(p.posture, [kp, 2.0 * np.sqrt(kp)])

    def warm(self, ratio: Array, temperature: Array) -> None:
        """Set ratio of warm to cold friction, and temperature in degrees Celsius, of every owner of friction."""
        self._put(self.layout.numbers.warm, ratio)
        self._put(self.layout.numbers.temperature, temperature)

    # ---- moving

    def _call(self, function: str, *arrays: Array) -> None:
        self._functions[function](*[array.ctypes.data for array in arrays])

    def _begin(self, x: Array, v: Array) -> None:
        """Write the state at the start."""
        for field, robot in ((self.layout.state.q, self.mechanism), (self.layout.state.pose, self.model)):
            if robot.loops:
                self.of(field)[:] = robot.closure.home
        status = np.zeros(1)
        self._call("placed", *(self._arrays[name] for name in "spw"), np.concatenate([x, v]), status)
        if int(status[0]) != FINE:
            close_positions(self.mechanism, x[None])  # raises an error that names the loop
            raise SimulationError(f"robot '{self.mechanism.name}': the loops cannot be closed at the start")

    def read(self, table: Array, noise: Array, push: Array, first: Sequence[int] = (0, 0, 0), push_every: int = 1) -> None:
        """Set the input tables of the next steps.

        `table` has one row per tick of the law, `noise` one per tick of the sensors, `push` one every `push_every` steps;
        `first` are the indices of their first rows, counted from the start of the first run.
        """
        a, call = self.layout.call, self._arrays["a"]
        self.tables, self.first_row = (table, noise, push), first[0]
        call[a.table.first], call[a.noise.first], call[a.push.first] = first
        call[a.table_rows.first], call[a.push_rows.first] = table.shape[0], push.shape[0]
        call[a.noise_rows.first], call[a.noise_width.first] = noise.shape
        call[a.push_every.first] = push_every

    def run(self, steps: int, record: Array, first: int = 0, every: int = 1) -> tuple[int, int]:
        """Advance by a number of steps; repeated calls continue."""
        a, call = self.layout.call, self._arrays["a"]
        call[a.steps.first], call[a.record.first] = steps, first
        call[a.record_rows.first], call[a.record_every.first] = record.shape[0], every
        self._call("run", *(self._arrays[name] for name in "aspwm"), *self.tables, record)
        return int(call[a.status.first]), int(call[a.index.first])

    def measure(self) -> Measurement:
        """Read the sensors now, for a controller in Python; call it once per sensing tick."""
        self._call("measure", *(self._arrays[name] for name in "spwa"), self.tables[1])
        if int(self.number(self.layout.call.status)) != FINE:
            raise SimulationError(
                f"robot '{self.mechanism.name}': the sensed actuator positions belong to no pose at t = "
                f"{self.done * self.step:.6g} s; it is too close to a singularity"
            )
        s, w = self.layout.state, self.layout.work
        return Measurement(*(self.of(field).copy() for field in (s.sensed, s.sensed_v, w.x, w.v, s.sensed_current)))

    def hold(self, kind: str, values: ArrayLike) -> NDArray[np.bool_]:
        """Hold a command of a controller in Python, within the limits of motors and amplifiers; return the limited ones."""
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


def sticking(
    mechanism: Mechanism,
    x: Array,
    owners: Sequence[Owner],
    step: float,
    drives: Sequence[Drive] = (),
    reflected: Array | None = None,
) -> Array:
    """Return the reduction of each owner's speed by a unit force within one step, for a robot with or without its drives.

        v_s = f h / J,      J = 1 / (c M^-1 c^T) the inertia of form c at the pose x

    When several coupled forms stick at once, all are made softer by their common gain, so that the combined slopes stay
    stable for one step. A rotor in front of an elastic shaft moves independently.
    """
    still = tree_motion(mechanism, at_rest(mechanism, x))
    G = np.eye(still.q.shape[1]) if still.G is None else (still.G if still.G.ndim == 2 else still.G[0])
    M, rows = mass_matrix(mechanism, x)[0], np.array([owner.form for owner in owners]) @ G
    alone = np.zeros(len(owners))
    if reflected is not None:
        A = coupling_rows(mechanism) @ G
        M = M + A.T @ (reflected[:, None] * A)
        for i, owner in enumerate(owners):
            if owner.motor >= 0 and not owner.gear:
                drive = drives[owner.motor]
                rows[i] *= drive.transmission.ratio
                alone[i] = 0.0 if drive.rigid else drive.motor.inertia
    compliance = rows @ np.linalg.pinv(M) @ rows.T
    inverse, free = np.abs(np.diagonal(compliance)).copy(), alone > 0.0
    inverse[free] = 1.0 / alone[free]
    inverse[inverse == 0.0] = 1.0
    scaled = compliance / np.sqrt(np.outer(inverse, inverse))
    scaled[free, :] = scaled[:, free] = 0.0
    common = max(1.0, float(np.abs(np.linalg.eigvalsh(scaled)).max(initial=0.0)))
    return np.asarray(step * inverse * common)
