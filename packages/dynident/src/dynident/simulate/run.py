"""Runs of a virtual robot: cycles, tables, the compiled machine in stretches, results."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.arrays import Array
from dynident.checks import choice, number, numbers
from dynident.control.laws import OpenLoop, Setpoint
from dynident.errors import SimulationError, SimulationWarning, warn
from dynident.mechanics.functions import Motion
from dynident.signals.log import MINIMUM_SAMPLES
from dynident.simulate.layout import FINE
from dynident.simulate.machine import COMPILED, Machine, check_step, fed_with_voltage, loops_of, whole_steps
from dynident.simulate.record import NOTICEABLE, End, Noise, Run, Truth, energies, heat_of, means, notes_of, record
from dynident.simulate.reference import Disturbance, table_of, wrench_tables
from dynident.simulate.stability import limit_cycle, loop_gain, reason
from dynident.trajectory.reference import Reference, Start, start_state

if TYPE_CHECKING:
    from dynident.simulate.robot import VirtualRobot

Progress = Callable[[float, float], object]
METHODS = ("coupled", "decoupled")
LOOPS = ("exact", "iterated", "delayed")
LOG_CYCLE = 1e-3  # recorders are rarely faster [s]
LONGEST_CYCLE = 1e9  # steps between two samples of a log
MOST_NUMBERS = 50_000_000  # of a record, 400 MB
MOST_STEPS = 2e8  # of one run: minutes
MOST_WANTED = 250_000_000  # of the reference at every control cycle, 2 GB
COMMANDS = ("torque", "current", "voltage")
REPORTS = 20  # of the progress of a run, about
THERMAL_CYCLE = 1.0  # time between two steps of the thermal models [s]
KEPT = 4_000_000  # numbers of a reference, 32 MB, up to which it is kept for the next run


def ticks(cycles: Mapping[str, float], step: float) -> dict[str, int]:
    """Return the number of steps of each cycle, all of them whole."""
    for name, cycle in cycles.items():
        if not whole_steps(cycle, step):
            better = _common(list(cycles.values()), step)
            what = f"give VirtualRobot(step={better:.9g})" if better else "make the cycle times multiples of each other"
            raise SimulationError(
                f"{name} = {cycle:g} s is {cycle / step:.6g} times the step {step:g} s, not a whole multiple; {what}"
            )
    return {name: round(cycle / step) for name, cycle in cycles.items()}


def log_every(robot: VirtualRobot, log_cycle: float | None) -> int:
    """Return the whole number of steps between two samples of the log."""
    step, fastest = robot.step, min(loop_cycles(robot.controller).values(), default=robot.step)
    usual = fastest * max(1, round(np.ceil(LOG_CYCLE / fastest - 1e-9)))
    cycle = float(usual if log_cycle is None else log_cycle)
    count, ratio = whole_steps(cycle, step), cycle / step
    if not ratio < LONGEST_CYCLE:
        raise SimulationError(f"log_cycle = {cycle:g} s is {ratio:.6g} steps of {step:g} s; give fewer than {LONGEST_CYCLE:g}")
    if not count:
        near = max(1, round(ratio)) * step
        raise SimulationError(
            f"log_cycle = {cycle:g} s is {ratio:.6g} steps of {step:g} s, not a whole number; give log_cycle={near:.9g}"
        )
    return count


def _common(cycles: Sequence[float], step: float) -> float:
    """Return the step nearest to `step` that divides all cycles; 0 if there is none."""
    fastest = min(cycles)
    first = max(1, round(fastest / step))
    for offset in range(1000):
        for count in {first - offset, first + offset}:
            if count < 1:
                continue
            if all(whole_steps(cycle, fastest / count) for cycle in cycles):
                return fastest / count
    return 0.0


def loop_cycles(controller: Any) -> dict[str, float]:
    """Return the cycle times of a controller by name [s]; none of an open loop."""
    if isinstance(controller, OpenLoop):
        return {}
    loops = loops_of(controller)
    if loops is not None:
        inner = {} if loops.current is None else {"current.cycle": loops.current.cycle}
        return {"position_cycle": loops.position_cycle, "velocity_cycle": loops.velocity_cycle, **inner}
    return {"cycle": number("controller: cycle", controller.cycle, above=0.0, unit="s", kind=SimulationError)}


def thinning(rows: int, every: int, finest: int, width: int) -> int:
    """Return the number of rows of some width recorded per sample of the log, for averaging of efforts.

    One row for every change of the currents (`finest` steps) if memory allows, otherwise fewer.
    """
    if rows * width > MOST_NUMBERS:
        raise SimulationError(
            f"{rows} samples of {width} signals are too many for memory; simulate it in pieces (start=run.end), or give a "
            "longer log_cycle="
        )
    parts = [k for k in range(1, every + 1) if every % k == 0 and every // k >= finest]
    return max((k for k in parts if k * rows * width <= MOST_NUMBERS // 5), default=1)


def rhythm(robot: VirtualRobot, log_cycle: float | None = None) -> tuple[dict[str, float], int, int]:
    """Return the cycle times of the controller [s], the steps between two samples of the log, and between two commands."""
    cycles = loop_cycles(robot.controller)
    counts, every = ticks(cycles, robot.step), log_every(robot, log_cycle)
    return cycles, every, min((count for name, count in counts.items() if name != "current.cycle"), default=every)


def machine_of(robot: VirtualRobot, x: Array, v: Array | None = None, **how: Any) -> Machine:
    """Return the compiled machine of a robot at its start; runs from the same start share its numbers."""
    speed = np.zeros_like(x) if v is None else v
    key = (x.tobytes() + speed.tobytes(), *how.values())
    made = robot.prepared.get(key)
    if made is None:
        cycles, voltage = loop_cycles(robot.controller).values(), fed_with_voltage(robot.controller)
        check_step(robot.drives, robot.step, voltage, min(cycles, default=robot.step))
        made = Machine(robot, x, speed, **how)
        robot.prepared.clear()
        if made.layout.law != "held":  # a controller in Python may change between runs
            robot.prepared[key] = made
    return made.fresh()


@dataclass(eq=False)
class Runner:
    """One run, from its checks to its results; see `VirtualRobot.simulate` for its options."""

    robot: VirtualRobot
    reference: Reference
    start: Start | End | None = None
    duration: float | None = None
    method: str = "coupled"
    loop: str = "exact"
    seed: int | np.random.SeedSequence = 0
    log_cycle: float | None = None
    disturbance: Any = None
    wrenches: Any = None
    thermal_cycle: float = THERMAL_CYCLE
    progress: Progress | None = None

    def __post_init__(self) -> None:
        for label, choices in (("method", METHODS), ("loop", LOOPS)):
            choice(label, getattr(self, label), choices, SimulationError)
        for label in ("duration", "log_cycle", "thermal_cycle"):
            if getattr(self, label) is not None:
                number(label, getattr(self, label), above=0.0, unit="s", kind=SimulationError)
        if self.progress is not None and not callable(self.progress):
            raise SimulationError(f"progress is a {type(self.progress).__name__}; give a function of (seconds done, seconds)")
        robot, mechanism = self.robot, self.robot.mechanism
        self.before = self.start if isinstance(self.start, End) else None
        self.first = 0 if self.before is None else round(self.before.time / robot.step)
        self.cycles, self.every, self.finest = rhythm(robot, self.log_cycle)
        self.rows = self._samples()
        self.steps = (self.rows - 1) * self.every  # from the first sample of the log to the last
        start = self.start if self.before is None else {"q": self.before.origin}
        self.x, self.v = self.reference.begin
        if start is not None or all(self.x.tobytes() + self.v.tobytes() != known for known, *_ in list(robot.prepared)):
            self.x, self.v = start_state(mechanism, start, self.reference.begin)  # type: ignore[arg-type]
        push = self.disturbance
        self.push = push if push is None or isinstance(push, Disturbance) else Disturbance(push)
        links = wrench_tables(mechanism, self.wrenches, np.zeros(1))  # checks them
        self.links = tuple(link for link in links if mechanism.frame(link)[0] >= 0)
        self.how = {"method": self.method, "loop": self.loop}
        self.machine = machine_of(robot, self.x, self.v, pushed=push is not None, links=self.links, **self.how)
        if self.before is not None:
            self._restore(self.before)
        if self.method == "decoupled" and self.loop != "exact":
            self._warn_of_loop()
        self.compiled = isinstance(robot.controller, COMPILED)
        self.noise = Noise(self.seed)
        if self.before is not None:
            self.noise.go_on(self.before.noise)
        self.heat = copy.deepcopy(self.before.heat) if self.before is not None else None
        if self.heat is None:
            self.heat = heat_of(robot)
        self._read_tables()

    def _samples(self) -> int:
        """Return the number of samples of the log."""
        robot, first, every, step = self.robot, self.first, self.every, self.robot.step
        if first % every:
            raise SimulationError(
                f"start is at t = {first * step:g} s, which is not a sample of a log of {every * step:g} s; give another "
                "log_cycle="
            )
        rest = self.reference.duration - first * step
        duration = rest if self.duration is None else float(self.duration)
        if duration < step * (1.0 - 1e-9):
            raise SimulationError(f"duration = {duration:g} s is shorter than one step of {step:g} s; give duration=")
        total = int(np.floor(duration / step * (1.0 + 1e-12) + 1e-9))
        width = 3 * self.reference.dof + 2 * len(robot.drives)
        most = MOST_WANTED // width * min([round(cycle / step) for cycle in self.cycles.values()], default=every)
        if total > most:
            raise SimulationError(
                f"duration = {duration:g} s is more than memory holds at this cycle; simulate up to {most * step:.3g} s at "
                "a time (start=run.end)"
            )
        if total > MOST_STEPS:
            raise SimulationError(
                f"duration = {duration:g} s has {duration / step:.3g} steps of {step:g} s, more than the {MOST_STEPS:g} of one "
                "run; give a longer step, or simulate it in pieces"
            )
        rows = total // every + 1
        if rows < MINIMUM_SAMPLES:
            raise SimulationError(
                f"log_cycle = {every * step:g} s leaves {rows} samples in {duration:g} s; a log needs at least 4"
            )
        return rows

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
        """Return views of the complete memory of the machine."""
        state, fields = self.machine.state, self.machine.layout.state
        views = np.split(state, np.cumsum([field.count for field in vars(fields).values()]))
        return dict(zip((*vars(fields), "queue"), views, strict=True))

    # ---- tables

    def _read_tables(self) -> None:
        """Set the input tables of the machine."""
        robot, step, tick = self.robot, self.robot.step, self.machine.tick
        last = self.first + self.steps
        row = self.first // tick
        known, key = self.machine.asked, (self.reference, row, last // tick)
        table = known.get(key)
        if table is None:
            at = _grid(row, last // tick + 2, tick * step)
            command = self._command(at)
            table = command
            if table is None:
                table = table_of(robot.mechanism, self.machine.law, self.reference.sample(at))
            known.clear()
            if table.size < KEPT:  # the last table serves many runs
                known[key] = table
        pace = tick if self.cycles else self.every
        when = _grid(self.first // pace, last // pace + 3, pace * step)
        wrenches = wrench_tables(robot.mechanism, self.wrenches, when)
        push = np.concatenate([self._torques(when), *(wrenches[link] for link in self.links)], axis=1)
        sense = int(self.machine.number(self.machine.layout.numbers.sense))
        first = row, self.first // sense, self.first // pace
        self.machine.read(table, self._sensor_noise(last), np.ascontiguousarray(push), first, pace)

    def _torques(self, when: Array) -> Array:
        """Return the external torques on the actuators, (M, k)."""
        count = len(self.robot.drives)
        return np.zeros((when.size, count)) if self.push is None else self.push.sample(when, count)

    def _sensor_noise(self, last: int) -> Array:
        """Return the sensors' noise at every sensing tick: encoders, then current sensors at each tick of their loop.

        Encoders are read by every law, current sensors by current loops and by controllers in Python.
        """
        machine, drives, p = self.machine, self.robot.drives, self.machine.layout.numbers
        sense, current_every = int(machine.number(p.sense)), int(machine.number(p.current_every))
        k, cycle, width = len(drives), current_every or sense, machine.noise_width
        deviation = np.array([drive.encoder.noise for drive in drives])
        current = np.array([drive.current_sensor.noise for drive in drives])
        reads = current_every > 0 or machine.layout.law == "held"
        begun = -(-self.first // sense)  # ticks before this run
        now, more = -(-last // sense) - begun, 2
        rows = np.zeros((now + more, width))
        for name, part, size in (("loop", slice(0, k), deviation), ("loop_current", slice(k, width), current)):
            if not np.any(size) or (name == "loop_current" and not reads):
                continue
            count = rows[:, part].shape[1] // k
            drawn = self.noise.normal(name, ((now + more) * count, k), more * count) * size
            rows[:, part] = drawn.reshape(-1, count * k)
        if self.before is not None and self.before.last_noise is not None and self.first % sense:
            rows = np.concatenate([self.before.last_noise[None], rows])
        self.last_noise = rows[last // sense - self.first // sense] if last % sense else None
        if np.any(current) and reads:
            start = (self.first // sense) * (sense // cycle)
            self.noise.readings = cycle * self.robot.step, rows[:, k:].reshape(-1, k), start
        if not np.any(rows):
            rows = np.zeros((1, width))
        return np.ascontiguousarray(rows)

    def _command(self, at: Array) -> Array | None:
        """Return the table of an open loop at the ticks, held from each of its times to the next."""
        law, k, reference = self.machine.law, len(self.robot.drives), self.reference
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
                f"robot '{self.robot.name or self.robot.mechanism.name}' has {gain:.3g} times the inertia of its actuators, "
                f"so the {self.loop} algebraic loop diverges; use loop='exact' or method='coupled'",
                SimulationWarning,
            )

    # ---- moving

    def run(self) -> Run:
        """Advance to the end."""
        machine = self.machine
        self.thin = thinning(self.rows, self.every, self.finest, machine.layout.record.size)
        self.fine = self.every // self.thin
        self.record = np.zeros(((self.rows - 1) * self.thin + 1, machine.layout.record.size))
        self.signals = machine.layout.signals(self.record)
        if not self.compiled:
            self._reset()
        self.shown: list[tuple[float, dict[str, Array], Array]] = []  # times and temperatures
        last, chunk = self.first + self.steps, self.steps
        if self.heat is not None:
            chunk = max(1, round(self.thermal_cycle / (self.fine * machine.step))) * self.fine
        self._warm(self.first // chunk * chunk)  # temperatures of the last completed stretch
        report = self.steps if self.progress is None else max(1, self.steps // REPORTS)
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
            if self.progress is not None:
                self.progress((machine.done - self.first) * machine.step, self.steps * machine.step)
        if not self.compiled:
            self._ask_if_due()
        end_state = {name: values.copy() for name, values in self._state().items()}
        self._step(1)  # the last row is evaluated, but later steps do not count
        return self._run(end_state, machine.of(machine.layout.state.cut) / (self.steps + 1))

    def _warm(self, at: int) -> None:
        """Update friction with the present temperatures."""
        if self.heat is not None:
            self.machine.warm(*self.heat.scales(self.machine.layout.owners))
            self.shown.append((at * self.machine.step, self.heat.zones(), self.heat.temperature))

    def _heat_up(self, begin: int) -> None:
        """Add the losses of the last steps to the heat input."""
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
        status, index = self.machine.run(steps, self.record, self.first // self.fine, self.fine)
        if status != FINE:
            rows = (self.machine.done - self.first) // self.fine + 1
            x, v = self.signals.q[:rows], self.signals.v[:rows]
            raise SimulationError(reason(self.robot, self.machine, status, index, x, v, self.fine))

    # ---- controllers in Python ----

    def _reset(self) -> None:
        law: Any = self.robot.controller
        choice("controller: command", law.command, COMMANDS, SimulationError)
        self.asked = -1 if self.before is None else self.first  # a continued run already has its command
        if self.before is None:
            law.reset(self.robot, self.machine.measure())

    def _ask_if_due(self) -> None:
        """Call the controller in Python once per tick."""
        machine = self.machine
        if machine.done % machine.tick or self.asked == machine.done:
            return
        self.asked = machine.done
        law: Any = self.robot.controller
        t, k, n = machine.done * machine.step, len(self.robot.drives), self.robot.mechanism.dof
        table = machine.tables[0]
        row = table[min(machine.done // machine.tick - machine.first_row, table.shape[0] - 1)]
        motion = row[2 * k :]
        wanted = Setpoint(motion[:n], motion[n : 2 * n], motion[2 * n :], row[:k], row[k : 2 * k])
        answer = law.update(t, wanted, machine.measure())
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

    # ---- results

    def _run(self, end_state: dict[str, Array], at_limit: Array) -> Run:
        """Return the run with its log; `at_limit` is the share of time that each motor was at a limit."""
        robot, step, signals = self.robot, self.robot.step, self.signals
        t = _grid(self.first // self.every, self.first // self.every + self.rows, self.every * step)
        electric = np.concatenate([signals.current, signals.voltage], axis=1)
        tail = np.zeros((0, electric.shape[1])) if self.before is None else self.before.tail
        mean = means(electric, self.thin, tail)
        p, of = self.machine.layout.numbers, self.machine.of
        energy = energies(signals, (of(p.resistance), of(p.inductance), of(p.torque), of(p.emf)), self.fine * step)
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
        seed: Any = self.seed
        if isinstance(seed, np.random.SeedSequence):
            seed = {"entropy": seed.entropy, "spawn_key": list(seed.spawn_key)}
        settings = {
            "seed": seed,
            "step": step,
            "duration": float(t[-1] - t[0]),
            "log_cycle": self.every * step,
            "cycles": self.cycles,
            **self.how,
            "controller": type(robot.controller).__name__,
            "start": {"q": self.x.tolist(), "v": self.v.tolist()} if self.before is None else {"t": self.before.time},
            "reference": dict(self.reference.source),
        }
        facts = {"saturation": saturation, "notes": [*notes, *robot.model_notes], "ambient": robot.ambient}
        log = record(robot, truth, self.noise, settings, facts)
        kept = electric[len(electric) - 1 - -(-self.thin // 2) : -1].copy()
        end = End(
            (self.first + self.steps) * step, end_state, self.x, dict(self.noise.states), self.heat, kept, self.last_noise
        )
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
            motion=Motion.unchecked(t, *[signals[name] for name in "qva"]),
            external=self._torques(t),
            parameters=self.robot.model.parameters,
            wrenches=wrench_tables(self.robot.mechanism, self.wrenches, t),
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
        if rest > 0:  # an incomplete stretch
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
