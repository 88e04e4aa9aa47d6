"""One run of a virtual robot: checks, tables, the compiled machine in one piece or in stretches, and what it leaves."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynident.checks import choice, numbers
from dynident.control.controller import Setpoint
from dynident.control.laws import OpenLoop
from dynident.errors import SimulationError, SimulationWarning, warn
from dynident.mechanics.motion import Motion
from dynident.simulate.inputs import Disturbance, Reference, wrench_tables
from dynident.simulate.laws import COMPILED, believed, fed_with_voltage
from dynident.simulate.machine import Machine, Tables
from dynident.simulate.record import NOTICEABLE, Run, Truth, energies, means, notes_of
from dynident.simulate.reference import table_of
from dynident.simulate.schedule import End, Options, Schedule, loop_cycles, schedule
from dynident.simulate.sensors import Readings, record, streams
from dynident.simulate.shape import FINE
from dynident.simulate.stability import check_step, limit_cycle, loop_gain, reason
from dynident.simulate.start import start_state
from dynident.simulate.thermal import Heat

if TYPE_CHECKING:
    from dynident.simulate.robot import VirtualRobot

Array = NDArray[np.float64]
COMMANDS = ("torque", "current", "voltage")
REPORTS = 20  # of the progress of a run, about
KEPT = 4_000_000  # numbers of a reference, 32 MB, up to which it is kept for the next run

log = logging.getLogger(__name__)


def run_machine(robot: VirtualRobot, reference: Reference, options: Options) -> Run:
    """Run a machine along a reference and record what a real one would have recorded."""
    return _Running(robot, reference, options).all()


def _machine(robot: VirtualRobot, x: Array, v: Array, **how: Any) -> Machine:
    """Return a machine at its start; many runs of one robot from one place prepare it once."""
    key = (x.tobytes(), v.tobytes(), *how.values())
    made = robot.prepared.get(key)
    if made is None:
        cycles, voltage = loop_cycles(robot.controller).values(), fed_with_voltage(robot.controller)
        check_step(robot.drives, robot.step, how["integrator"], voltage, min(cycles, default=robot.step))
        law = believed(robot.controller, robot.mechanism)
        made = Machine(robot.mechanism, robot.drives, law, step=robot.step, x=x, v=v, friction=robot.friction, **how)
        made.warm(np.ones(len(made.shape.owners)), np.full(len(made.shape.owners), robot.ambient))
        robot.prepared.clear()
        if made.shape.law.kind != "held":  # a controller in Python may have changed when it is asked again
            robot.prepared[key] = made
    return made.fresh()


def machine_of(robot: VirtualRobot, x: Array) -> Machine:
    """Return the compiled machine of a robot at rest at x."""
    return _machine(robot, x, np.zeros_like(x), method="coupled", loop="exact", integrator="rk4", pushed=False, links=())


class _Running:
    """One run, from its checks to what it leaves."""

    def __init__(self, robot: VirtualRobot, reference: Reference, options: Options) -> None:
        self.robot, self.reference, self.options = robot, reference, options
        mechanism, step = robot.mechanism, robot.step
        self.before = options.start if isinstance(options.start, End) else None
        self.first = 0 if self.before is None else round(self.before.time / step)
        self.plan: Schedule = schedule(robot, reference, options, self.first)
        start = options.start if self.before is None else {"q": self.before.origin}
        x, v = reference.begin
        if start is not None or not any(key[:2] == (x.tobytes(), v.tobytes()) for key in list(robot.prepared)):
            x, v = start_state(mechanism, start, (x, v))  # type: ignore[arg-type]
        self.x, self.v = x, v
        how = {"method": options.method, "loop": options.loop, "integrator": options.integrator}
        push = options.disturbance
        push = push if push is None or isinstance(push, Disturbance) else Disturbance(push)
        links = wrench_tables(mechanism, options.wrenches, np.zeros(1))  # checks them
        moving = tuple(link for link in links if mechanism.frame(link)[0] >= 0)
        self.machine = _machine(robot, x, v, pushed=push is not None, links=moving, **how)
        self.law = self.machine.law
        if self.before is not None:
            self._restore(self.before)
        if options.method == "decoupled" and options.loop != "exact":
            self._warn_of_loop()
        self.how, self.push, self.links = how, push, moving
        self.compiled = isinstance(robot.controller, COMPILED)
        self.streams = streams(options.seed)
        if self.before is not None:
            for name, state in self.before.noise.items():
                self.streams[name].go_on(state)
        self.heat = copy.deepcopy(self.before.heat) if self.before is not None else None
        if self.heat is None and robot.thermal:
            self.heat = Heat(robot)
        self.tables, self.readings = self._tables()

    def _restore(self, end: End) -> None:
        state = self._state()
        if {name: values.size for name, values in end.state.items()} != {name: values.size for name, values in state.items()}:
            raise SimulationError(
                f"start is the end of a run of another machine ({', '.join(end.state)}); start with the same drives, friction, "
                "controller and options as that run had"
            )
        for name, values in state.items():
            values[:] = end.state[name]
        self.machine.of(self.machine.layout.state.cut)[:] = 0.0

    def _state(self) -> dict[str, Array]:
        """Return views of everything that the machine carries from step to step."""
        state, fields = self.machine.state, self.machine.layout.state
        views = np.split(state, np.cumsum([field.count for field in vars(fields).values()]))
        return dict(zip((*vars(fields), "queue"), views, strict=True))

    # ---- tables

    def _tables(self) -> tuple[Tables, Readings | None]:
        """Return everything that is read on the way."""
        robot, step, tick = self.robot, self.robot.step, self.machine.tick
        last = self.first + self.plan.steps
        row = self.first // tick
        known, key = self.machine.asked, (self.reference, row, last // tick)
        table = known.get(key)
        if table is None:
            at = _grid(row, last // tick + 2, tick * step)
            command = self._command(at)
            table = table_of(robot.mechanism, self.law, self.reference.sample(at)) if command is None else command
            known.clear()
            if table.size < KEPT:  # the last one serves many runs
                known[key] = table
        pace = tick if self.plan.cycles else self.plan.every
        when = _grid(self.first // pace, last // pace + 3, pace * step)
        wrenches = wrench_tables(robot.mechanism, self.options.wrenches, when)
        push = np.concatenate([self._torques(when), *(wrenches[link] for link in self.links)], axis=1)
        noise, readings = self._noise(last)
        sense = int(self.machine.number(self.machine.layout.numbers.sense))
        return Tables(table, noise, np.ascontiguousarray(push), (row, self.first // sense, self.first // pace), pace), readings

    def _torques(self, when: Array) -> Array:
        """Return the torques on the actuators from outside, (M, k)."""
        count = len(self.robot.drives)
        return np.zeros((when.size, count)) if self.push is None else self.push.sample(when, count)

    def _noise(self, last: int) -> tuple[Array, Readings | None]:
        """Return the sensors' noise at every sensing tick: encoders, then current sensors at each tick of their loop.

        Encoders are read by every law, current sensors by current loops and by controllers in Python.
        """
        machine, drives, p = self.machine, self.robot.drives, self.machine.layout.numbers
        sense, current_every = int(machine.number(p.sense)), int(machine.number(p.current_every))
        k, cycle, width = len(drives), current_every or sense, machine.layout.noise_width(machine.numbers)
        deviation = np.array([drive.encoder.noise for drive in drives])
        current = np.array([drive.current_sensor.noise for drive in drives])
        reads = current_every > 0 or machine.shape.law.kind == "held"
        begun = -(-self.first // sense)  # ticks before this run
        now, more = -(-last // sense) - begun, 2
        rows = np.zeros((now + more, width))
        for name, part, size in (("loop", slice(0, k), deviation), ("loop_current", slice(k, width), current)):
            if not np.any(size) or (name == "loop_current" and not reads):
                continue
            count = rows[:, part].shape[1] // k
            drawn = self.streams[name].standard_normal(((now + more) * count, k), more * count) * size
            rows[:, part] = drawn.reshape(-1, count * k)
        if self.before is not None and self.before.last_noise is not None and self.first % sense:
            rows = np.concatenate([self.before.last_noise[None], rows])
        self.last_noise = rows[last // sense - self.first // sense] if last % sense else None
        readings = None
        if np.any(current) and reads:
            start = (self.first // sense) * (sense // cycle)
            readings = Readings(cycle * self.robot.step, rows[:, k:].reshape(-1, k), start)
        if not np.any(rows):
            rows = np.zeros((1, width))
        return np.ascontiguousarray(rows), readings

    def _command(self, at: Array) -> Array | None:
        """Return the table of an open loop at the ticks, held from each of its times to the next."""
        law, k, reference = self.law, len(self.robot.drives), self.reference
        if not isinstance(law, OpenLoop):
            return None
        table = law.table
        if table.shape[1] != k:
            raise SimulationError(f"open loop: {law.command} has {table.shape[1]} columns for {k} actuators; give one for each")
        if table.shape[0] == 1:
            return np.array(table)
        if reference.knots is None or reference.knots.size != table.shape[0]:
            count = "no samples of its own" if reference.knots is None else f"{reference.knots.size} samples"
            raise SimulationError(
                f"open loop: {law.command} has {table.shape[0]} rows but the reference has {count}; give a Motion with one "
                "sample per row"
            )
        here = np.searchsorted(reference.knots, at + 1e-9 * (at[1] - at[0]), side="right") - 1
        return np.ascontiguousarray(table[np.clip(here, 0, table.shape[0] - 1)])

    def _warn_of_loop(self) -> None:
        gain = loop_gain(self.machine, self.x)
        if gain >= 1.0:
            warn(
                f"robot '{self.robot.name or self.robot.mechanism.name}': the mechanism's inertia is {gain:.3g} times that of "
                f"the actuators, so the {self.options.loop} algebraic loop diverges; use loop='exact' or method='coupled'",
                SimulationWarning,
            )

    # ---- moving

    def all(self) -> Run:
        """Advance to the end."""
        machine, plan = self.machine, self.plan
        self.thin = plan.thinning(machine.layout.record.size)
        self.fine = plan.every // self.thin
        self.record = np.zeros(((plan.rows - 1) * self.thin + 1, machine.layout.record.size))
        self.signals = machine.layout.signals(self.record)
        if not self.compiled:
            self._reset()
        self.shown: list[tuple[float, dict[str, Array], Array]] = []  # times and temperatures
        last, chunk = self.first + plan.steps, plan.steps
        if self.heat is not None:
            chunk = max(1, round(self.options.thermal_cycle / (self.fine * machine.step))) * self.fine
        self._warm(self.first // chunk * chunk)  # temperatures are those of the last stretch that was over
        report = plan.steps if self.options.progress is None else max(1, plan.steps // REPORTS)
        while machine.done < last:
            here = machine.done
            steps = min(last, self.first + ((here - self.first) // report + 1) * report) - here
            if self.heat is not None:
                steps = min(steps, (here // chunk + 1) * chunk - here)
            self._some(steps)
            if self.heat is not None:
                self._heat_up(here)
                if machine.done % chunk == 0:
                    self.heat.advance(chunk * machine.step)
                    self._warm(machine.done)
            if self.options.progress is not None:
                self.options.progress((machine.done - self.first) * machine.step, plan.steps * machine.step)
        if not self.compiled:
            self._ask_if_due()
        end_state = {name: values.copy() for name, values in self._state().items()}
        self._step(1)  # the last row: it is evaluated, but what follows does not count
        return self._run(end_state, machine.of(machine.layout.state.cut) / (plan.steps + 1))

    def _warm(self, at: int) -> None:
        """Bring the friction to the present temperatures, which are those of a step."""
        if self.heat is not None:
            self.machine.warm(*self.heat.scales(self.machine.shape.owners))
            self.shown.append((at * self.machine.step, self.heat.zones(), self.heat.temperature))

    def _heat_up(self, begin: int) -> None:
        """Add the losses of the last steps to what will heat the robot."""
        if self.heat is None:
            return
        origin = self.first // self.fine
        rows = slice(-(-begin // self.fine) - origin, (self.machine.done - 1) // self.fine + 1 - origin)
        s = self.signals
        self.heat.add(s.joint_power[rows], s.friction[rows] * s.omega[rows], s.current[rows])

    def _some(self, steps: int) -> None:
        """Advance by some steps."""
        if self.compiled:
            self._step(steps)
            return
        machine, tick = self.machine, self.machine.tick
        end = machine.done + steps
        while machine.done < end:
            self._ask_if_due()
            self._step(min(tick - machine.done % tick, end - machine.done))

    def _step(self, steps: int) -> None:
        status, index = self.machine.run(steps, self.tables, self.record, self.first // self.fine, self.fine)
        if status != FINE:
            rows = (self.machine.done - self.first) // self.fine + 1
            x, v = self.signals.q[:rows], self.signals.v[:rows]
            raise SimulationError(reason(self.robot, self.machine, status, index, x, v, self.fine))

    # ---- controllers in Python ----

    def _reset(self) -> None:
        law: Any = self.robot.controller
        choice("controller: command", law.command, COMMANDS, SimulationError)
        self.asked = -1 if self.before is None else self.first  # one that goes on has its command already
        if self.before is None:
            law.reset(self.robot, self.machine.measure(self.tables))

    def _ask_if_due(self) -> None:
        """Let the controller in Python decide, once per tick."""
        machine = self.machine
        if machine.done % machine.tick or self.asked == machine.done:
            return
        self.asked = machine.done
        law: Any = self.robot.controller
        t, k, n = machine.done * machine.step, len(self.robot.drives), self.robot.mechanism.dof
        table = self.tables.table
        row = table[min(machine.done // machine.tick - self.tables.first[0], table.shape[0] - 1)]
        motion = row[2 * k :]
        wanted = Setpoint(motion[:n], motion[n : 2 * n], motion[2 * n :], row[:k], row[k : 2 * k])
        answer = law.update(t, wanted, machine.measure(self.tables))
        command = np.atleast_1d(numbers(answer, "what the controller returns"))
        if command.shape != (k,):
            raise SimulationError(
                f"controller returns shape {command.shape} at t = {t:.6g} s; give one number for each of {k} actuators"
            )
        if not np.all(np.isfinite(command)):
            name = self.robot.drives[int(np.argmin(np.isfinite(command)))].actuator
            raise SimulationError(
                f"instability: the controller's command for '{name}' is infinite or undefined at t = {t:.6g} s; check its gains"
            )
        machine.hold(law.command, command)

    # ---- what it leaves

    def _run(self, end_state: dict[str, Array], at_limit: Array) -> Run:
        """Return the run with its log; `at_limit` is the share of time that each motor was at a limit."""
        robot, plan, step, signals = self.robot, self.plan, self.robot.step, self.signals
        t = _grid(self.first // plan.every, self.first // plan.every + plan.rows, plan.every * step)
        electric = np.concatenate([signals.current, signals.voltage], axis=1)
        tail = np.zeros((0, electric.shape[1])) if self.before is None else self.before.tail
        mean = means(electric, self.thin, tail)
        cycle = self.fine * step
        energy = energies(robot.drives, cycle, signals.theta, signals.omega, signals.current, signals.voltage, signals.friction)
        energy["gear"] = np.asarray(np.trapezoid(signals.gear_loss * signals.rho_v, dx=cycle, axis=0))
        logged = {name: np.ascontiguousarray(values[:: self.thin]) for name, values in signals.by_name().items()}
        count = len(robot.drives)
        logged["mean_current"], logged["mean_voltage"] = mean[:, :count], mean[:, count:]
        truth = self._truth(t, logged)
        busy = np.flatnonzero(at_limit > NOTICEABLE)
        unstable = limit_cycle(robot, truth, at_limit, busy) if busy.size else ""
        if unstable:
            raise SimulationError(unstable)
        saturation = dict(zip([drive.actuator for drive in robot.drives], at_limit.tolist(), strict=True))
        notes = notes_of(robot, truth, saturation)
        seed: Any = self.options.seed
        if isinstance(seed, np.random.SeedSequence):
            seed = {"entropy": seed.entropy, "spawn_key": list(seed.spawn_key)}
        settings = {
            "seed": seed,
            "step": step,
            "duration": float(t[-1] - t[0]),
            "log_cycle": plan.every * step,
            "cycles": plan.cycles,
            **self.how,
            "controller": type(robot.controller).__name__,
            "start": {"q": self.x.tolist(), "v": self.v.tolist()} if self.before is None else {"t": self.before.time},
            "reference": dict(self.reference.source),
        }
        facts = {"saturation": saturation, "notes": [*notes, *robot.model_notes], "ambient": robot.ambient}
        log = record(robot, truth, self.streams, settings, facts, self.readings)
        noise = {name: stream.state for name, stream in self.streams.items()}  # after the recorder has drawn its own
        kept = electric[len(electric) - 1 - -(-self.thin // 2) : -1].copy()
        end = End((self.first + plan.steps) * step, end_state, self.x, noise, self.heat, kept, self.last_noise)
        return Run(log, truth, robot, self.reference.sample(t), saturation, energy, settings, notes, end)

    def _truth(self, t: Array, signals: Mapping[str, Array]) -> Truth:
        """Return the true signals at the times of the log."""
        if not np.isfinite(self.record).all():
            row = min(
                int(np.argmin(np.isfinite(x).all(axis=1))) for x in self.signals.by_name().values() if not np.isfinite(x).all()
            )
            bad = (self.first // self.fine + row) * self.fine * self.robot.step
            raise SimulationError(f"instability: signals are no longer finite at t = {bad:.6g} s; lower the gains or the step")
        zones, temperature = self._temperatures(t)
        return Truth(
            t=t,
            motion=Motion(t, *(signals[name] for name in "qva")),
            external=self._torques(t),
            parameters=self.robot.model.parameters,
            wrenches=wrench_tables(self.robot.mechanism, self.options.wrenches, t),
            temperature=temperature,
            zones=zones,
            **{name: values for name, values in signals.items() if name not in ("q", "v", "a", "joint_power")},
        )

    def _temperatures(self, t: Array) -> tuple[dict[str, Array], Array | None]:
        """Return the temperatures of all zones, and behind every actuator, at the times of the log."""
        if self.heat is None:
            return {}, None
        ahead, shown = copy.deepcopy(self.heat), list(self.shown)
        rest = self.machine.done - 1 - round(shown[-1][0] / self.machine.step)
        if rest > 0:  # what has not come to the end of a stretch
            ahead.advance(rest * self.machine.step)
            shown.append((shown[-1][0] + rest * self.machine.step, ahead.zones(), ahead.temperature))
        times = [time for time, _, _ in shown]

        def column(values: Array) -> Array:
            return np.column_stack([np.interp(t, times, values[:, j]) for j in range(values.shape[1])])

        zones = {name: column(np.array([zone[name] for _, zone, _ in shown])) for name in shown[0][1]}
        return zones, column(np.array([temperature for _, _, temperature in shown]))


def _grid(first: int, last: int, cycle: float) -> Array:
    """Return the times first cycle, (first + 1) cycle, ... before last cycle."""
    return np.asarray(np.arange(first, last) * cycle, dtype=np.float64)
