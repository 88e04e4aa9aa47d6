"""The control tick of a machine: what the drives are told at every tick of their cycles, from what the sensors say.

Between two ticks everything is held. The reference is a table with one row every `every` steps: rho, rho_v and feed-forward
of the actuators for loops on those, q, v, a for computed torque, the command itself for an open loop, the place in a work
space and more for laws there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dynident.control import clip, current_loop, low_pass_step, pid_law, velocity_loop
from dynident.graph import Function, Node, Place, Routine, both, either, equal, floor, minimum, opposite, where
from dynident.simulate.drives import within_voltage
from dynident.simulate.dynamics import Dynamics
from dynident.simulate.shape import IDEAL, LOST_CLOSURE, LOST_TASK
from dynident.simulate.tick_model import Model, TaskModel

ARRAYS = ("s", "p", "w", "a", "table", "noise")


class Tick:
    """The routines of one control law."""

    def __init__(self, dynamics: Dynamics) -> None:
        self.d, self.graph, self.shape, self.memory = dynamics, dynamics.graph, dynamics.shape, dynamics.memory
        self.k, self.n, self.law = dynamics.k, dynamics.n, dynamics.shape.law
        self.task = TaskModel(dynamics) if self.law.space is not None else None
        self.model = self.task or (Model(dynamics) if self.law.asks else None)
        self.senses = dynamics.senses
        self.sense = self._sense()

    # ---- reading and writing ----------------------------------------------------------------------------------------------

    def _p(self, r: Routine, name: str, i: int = 0) -> Node:
        return r.load("p", self.memory.numbers.at(name, i))

    def _s(self, r: Routine, name: str, i: int = 0) -> Node:
        return r.load("s", self.memory.state.at(name, i))

    def _put(self, r: Routine, name: str, i: int, value: Node | float) -> None:
        r.store("s", self.memory.state.at(name, i), value)

    def _w(self, r: Routine, name: str, i: int = 0) -> Node:
        return r.load("w", self.memory.work.at(name, i))

    @staticmethod
    def _due(step: Node, every: Node) -> Node:
        result: Node = equal(floor(step / every) * every, step)
        return result

    def _place(self, r: Routine, width: int) -> Node:
        """Return where the row of the reference that holds now begins."""
        a = self.memory.call
        rows, first = r.load("a", a.at("table_rows")), r.load("a", a.at("table"))
        row: Node = minimum(floor(self._s(r, "step") / self._p(r, "every")) - first, rows - 1.0)
        return row * float(width)

    def _row(self, r: Routine, width: int) -> Callable[[int], Node]:
        """Return a reader of that row."""
        place = self._place(r, width)
        return lambda column: r.load("table", place + float(column))

    # ---- sensors

    def _noise(self, r: Routine) -> Callable[[Node | int], Node]:
        """Return a reader of the noise of this tick: encoders first, then current sensors at every tick of their loop."""
        a, step = self.memory.call, self._s(r, "step")
        rows, first = r.load("a", a.at("noise_rows")), r.load("a", a.at("noise"))
        row = minimum(floor(step / self._p(r, "sense")) - first, rows - 1.0) * r.load("a", a.at("noise_width"))
        return lambda column: r.load("noise", row + column)

    @staticmethod
    def _quantised(x: Node, size: Node) -> Node:
        result: Node = where(size > 0.0, size * floor(x / size + 0.5), x)
        return result

    def _sensed_currents(self, r: Routine) -> list[Node]:
        """Return the motor currents as their sensors see them now."""
        step, sense, every = self._s(r, "step"), self._p(r, "sense"), self._p(r, "current_every")
        tick = where(every > 0.0, floor((step - floor(step / sense) * sense) / every), 0.0)
        noise, first, found = self._noise(r), (1.0 + tick) * float(self.k), []
        for a in range(self.k):
            seen = self._w(r, "current", a) * self._p(r, "current_gain", a) + noise(first + float(a))
            found.append(self._quantised(seen, self._p(r, "current_step", a)))
        return found

    def _sense(self) -> Routine:
        """Return what writes what the sensors of all drives say now."""
        r = Routine(self.graph, "sense", ("s", "p", "w", "a", "noise"))
        w = self.memory.work
        places = {"rho": "rho", "rate": "rho_v", "theta": "theta", "omega": "omega", "current": "current"}
        r.call(self.senses, y="s", s="s", p="p", **{name: w.place(field) for name, field in places.items()})
        step = self._s(r, "step")
        time = self._p(r, "sense") * self._p(r, "step")
        noise, sensed, slow = self._noise(r), list[Node](), list[Node]()
        for a in range(self.k):
            ratio, motor = self._p(r, "ratio", a), self._p(r, "on_motor", a) > 0.0
            value = where(motor, self._w(r, "theta", a), self._w(r, "rho", a)) + noise(a)
            seen = self._quantised(value, self._p(r, "resolution", a)) / where(motor, ratio, 1.0)
            true = where(motor, self._w(r, "omega", a) / ratio, self._w(r, "rho_v", a))
            rate = where(self._p(r, "exact_speed", a) > 0.0, true, (seen - self._s(r, "sensed", a)) / time)
            smooth = low_pass_step(self._s(r, "sensed_v", a), rate, self._p(r, "blend", a))
            sensed.append(seen)
            slow.append(where(equal(step, 0.0), true, smooth))
        found = {"sensed": sensed, "sensed_v": slow, "sensed_current": self._sensed_currents(r)}
        for name, values in found.items():
            r.store_all("s", self.memory.state.at(name), values)
        return r

    def measure(self) -> Routine:
        """Return what a controller in Python calls: the sensors, and the coordinates that belong to them."""
        if self.model is None:
            raise ValueError("only a controller in Python measures")
        r = Routine(self.graph, "measure", ("s", "p", "w", "a", "noise"))
        r.store("w", self.memory.work.at("status"), 0.0)
        r.call(self.sense, **{name: name for name in self.sense.arrays})
        r.call(self.model.measured, s="s", p="p", w="w")
        r.store("a", self.memory.call.at("status"), r.load("w", self.memory.work.at("status")))
        return r

    # ---- commands

    def _limited(self, r: Routine, a: int, current: Node, omega: Node) -> Node:
        """Return a current within the limits of motor and amplifier."""
        cut: Node = clip(current, self._p(r, "current_limit", a))
        if not self.shape.drives[a].limited:
            return cut
        top, ohm = self._p(r, "voltage_limit", a), self._p(r, "resistance", a)
        held: Node = within_voltage(cut, self._p(r, "emf", a) * omega, top, ohm)
        return held

    def _send(self, r: Routine, a: int, command: Node, beyond: Node) -> None:
        """Give a drive a command, which reaches it after the delay of the law; `beyond` tells that a limit has cut it."""
        self._put(r, "sent", a, command)
        self._put(r, "beyond", a, beyond)
        self._put(r, "command", a, where(equal(self._p(r, "late"), 0.0), command, self._s(r, "command", a)))

    def _hold_torque(self, r: Routine, a: int, torque: Node) -> Node:
        """Hold the current that gives a torque behind the gear, within the limits; return whether it was cut."""
        ratio = self._p(r, "ratio", a)
        wanted = torque / (ratio * self._p(r, "torque", a))
        current = self._limited(r, a, wanted, ratio * self._s(r, "sensed_v", a))
        cut: Node = opposite(equal(current, wanted))
        self._send(r, a, current, cut)
        return cut

    # ---- laws

    def control(self) -> Routine:
        """Return what is due at the start of a step."""
        r = Routine(self.graph, "control", ARRAYS)
        step = self._s(r, "step")
        bound = {name: name for name in ("s", "p", "w", "a", "noise")}
        kind = self.law.kind
        if kind in ("cascade", "task cascade"):
            with r.when(self._due(step, self._p(r, "sense"))):
                r.call(self.sense, **bound)
            self._cascade(r, step)
        elif kind != "held":
            with r.when(self._due(step, self._p(r, "outer"))):
                # An open loop asks the sensors only where the speed limits the current.
                if kind != "open" or any(drive.limited for drive in self.shape.drives):
                    r.call(self.sense, **bound)
                laws = {"open": self._open, "pid": self._pid, "projected": self._pid, "computed": self._computed}
                laws.get(kind, self._task_torques)(r)
        self._arrive(r, step)
        return r

    def _arrive(self, r: Routine, step: Node) -> None:
        """Let arrive what was sent `late` steps ago; nothing does before the first."""
        late, first = self._p(r, "late"), self.memory.state.size
        with r.when(late > 0.0):
            slot = (step - floor(step / late) * late) * float(self.k)
            for a in range(self.k):
                self._put(r, "command", a, r.load("s", slot + float(first + a)))
                r.store("s", slot + float(first + a), self._s(r, "sent", a))

    def _open(self, r: Routine) -> None:
        row = self._row(r, self.k)
        for a in range(self.k):
            value = row(a)
            if self.law.torque:
                self._hold_torque(r, a, value)
                continue
            if self.shape.drives[a].feed == IDEAL:
                held = self._limited(r, a, value, self._p(r, "ratio", a) * self._s(r, "sensed_v", a))
            else:
                held = clip(value, self._p(r, "voltage_limit", a))
            self._send(r, a, held, opposite(equal(held, value)))

    def _first(self, r: Routine, name: str, a: int) -> Node:
        """Return the share of a low-pass, 1 at the first tick."""
        result: Node = where(equal(self._s(r, "step"), 0.0), 1.0, self._p(r, name, a))
        return result

    def _cascade(self, r: Routine, step: Node) -> None:
        k, feed = self.k, 2 * self.k if self.task is None else self.task.table.at("feed")
        row = self._row(r, 3 * self.k if self.task is None else self.task.table.size)
        with r.when(self._due(step, self._p(r, "outer"))):
            if self.task is not None:
                self._task_speeds(r, self.task)
            for a in range(k if self.task is None else 0):
                speed = self._p(r, "kp", a) * (row(a) - self._s(r, "sensed", a)) + self._p(r, "share", a) * row(k + a)
                wanted = clip(speed, self._p(r, "speed_limit", a))
                self._put(r, "issued", a, low_pass_step(self._s(r, "issued", a), wanted, self._first(r, "slow_out", a)))
        inner = self._p(r, "inner")
        with r.when(self._due(step, inner)):
            self._wishes(r, step / inner)
            for a in range(k):
                self._velocity(r, a, row(feed + a))
        if self.law.current_loop:
            with r.when(self._due(step, self._p(r, "current_every"))):
                r.call(self._currents(), y="s", s="s", p="p", current=self.memory.work.place("current"))
                for a, current in enumerate(self._sensed_currents(r)):
                    self._current(r, a, current)

    def _look(self, r: Routine, task: TaskModel) -> dict[str, str | Place]:
        """Find error and its rate in the work space, and return what functions of the law take."""
        if self.model is not None:
            r.call(self.model.measured, s="s", p="p", w="w")
        w = self.memory.work
        pose, here = self.memory.state.place("pose"), ("table", self._place(r, task.table.size))
        given: dict[str, str | Place] = {"q": pose, "p": "p", "v": w.place("v"), "t": here}
        r.call(task.seen, **given, e=w.place("error"), d=w.place("rate"))
        return given

    def _found(self, r: Routine) -> None:
        """Stop where a work space does not determine what to do."""
        with r.when(opposite(self._w(r, "ok") > 0.0)):
            r.store("w", self.memory.work.at("status"), LOST_TASK)

    def _task_speeds(self, r: Routine, task: TaskModel) -> None:
        """Make the speeds that a position loop in a work space asks of the actuators."""
        given, w, row = self._look(r, task), self.memory.work, self._row(r, task.table.size)
        for i in range(task.space.rows):
            wanted = self._p(r, "kp", i) * self._w(r, "error", i) + self._p(r, "share", i) * row(task.table.at("rate", i))
            slow = low_pass_step(self._s(r, "slope", i), wanted, self._first(r, "slow_out", i))
            self._put(r, "slope", i, slow)
            r.store("w", w.at("task", i), slow)
        r.call(task.speeds(), **given, u=w.place("task"), rate=w.place("rho_v"), ok=w.place("ok"))
        self._found(r)
        for a in range(self.k):
            self._put(r, "issued", a, clip(self._w(r, "rho_v", a), self._p(r, "speed_limit", a)))

    def _task_torques(self, r: Routine) -> None:
        if self.task is None or self.model is None:
            raise ValueError("a law in a work space needs one")
        task, w = self.task, self.memory.work
        given, dt = self._look(r, task), self._p(r, "outer") * self._p(r, "step")
        errors = [self._w(r, "error", i) for i in range(task.space.rows)]
        for i, error in enumerate(errors):
            r.store("w", w.at("task", i), self._feedback(r, error, self._w(r, "rate", i), i))
        if self.law.kind == "task forces":
            r.call(task.forces(), **given, u=w.place("task"), torque=w.place("torque"), ok=w.place("ok"))
            self._found(r)
        else:
            r.call(task.accelerations(), **given, u=w.place("task"), a=w.place("a"), ok=w.place("ok"))
            self._found(r)
            self._needed(r, self.model, self._row(r, task.table.size), task.table.at("v"))
        self._hold_all(r, errors, dt)

    def _wishes(self, r: Routine, tick: Node) -> None:
        """Hand wanted speeds to the velocity loops, `late_wish` of their ticks later."""
        k, late, first = self.k, self._p(r, "late_wish"), self.memory.state.size
        with r.when(late > 0.0):
            slot = (self._p(r, "late") + tick - floor(tick / late) * late) * float(k)
            for a in range(k):
                self._put(r, "wish", a, r.load("s", slot + float(first + a)))
                r.store("s", slot + float(first + a), self._s(r, "issued", a))
        with r.otherwise():
            for a in range(k):
                self._put(r, "wish", a, self._s(r, "issued", a))

    def _velocity(self, r: Routine, a: int, feed: Node) -> None:
        ratio = self._p(r, "ratio", a)
        speed = ratio * self._s(r, "sensed_v", a)
        error = ratio * self._s(r, "wish", a) - speed
        moved = velocity_loop(
            error,
            feed / (ratio * self._p(r, "torque", a)),
            self._s(r, "integral", a),
            self._s(r, "asked", a),
            (self._p(r, "kd", a), self._p(r, "ki", a), self._first(r, "slow_in", a)),
            self._p(r, "inner") * self._p(r, "step"),
            lambda x: self._limited(r, a, x, speed),
            self._p(r, "windup"),
        )
        self._put(r, "integral", a, moved.integral)
        self._put(r, "asked", a, moved.output)
        if self.shape.drives[a].feed == IDEAL:
            self._send(r, a, moved.output, moved.cut)
        else:
            self._put(r, "beyond", a, moved.cut)

    def _currents(self) -> Function:
        """Return the motor currents alone."""
        outputs = {"current": self.senses.outputs["current"]}
        return Function("currents", self.senses.inputs, outputs)

    def _current(self, r: Routine, a: int, sensed: Node) -> None:
        moved = current_loop(
            self._s(r, "asked", a) - sensed,
            self._s(r, "electric", a),
            (self._p(r, "kpc", a), self._p(r, "kic", a)),
            self._p(r, "current_every") * self._p(r, "step"),
            self._p(r, "voltage_limit", a),
            self._p(r, "windup"),
        )
        self._put(r, "electric", a, moved.integral)
        # What was cut stays noted until the next tick of the velocity loop.
        self._send(r, a, moved.output, either(self._s(r, "beyond", a) > 0.0, moved.cut))

    def _errors(self, r: Routine, wanted: Node, slope: Node, place: Node, speed: Node, i: int) -> tuple[Node, Node]:
        """Move filter and integral of a PID; return its output and the error."""
        error = wanted - place
        return self._feedback(r, error, slope - speed, i), error

    def _feedback(self, r: Routine, error: Node, rate: Node, i: int) -> Node:
        """Move filter and integral of a PID; return its output."""
        dt = self._p(r, "outer") * self._p(r, "step")
        slow = low_pass_step(self._s(r, "slope", i), rate, self._first(r, "slow_out", i))
        integral = self._s(r, "integral", i) + error * dt
        self._put(r, "slope", i, slow)
        self._put(r, "integral", i, integral)
        result: Node = pid_law(error, slow, integral, tuple(self._p(r, name, i) for name in ("kp", "kd", "ki")))
        return result

    def _pid(self, r: Routine) -> None:
        k, row, w = self.k, self._row(r, 3 * self.k), self.memory.work
        dt = self._p(r, "outer") * self._p(r, "step")
        errors = []
        for a in range(k):
            sensed, speed = self._s(r, "sensed", a), self._s(r, "sensed_v", a)
            feedback, error = self._errors(r, row(a), row(k + a), sensed, speed, a)
            errors.append(error)
            r.store("w", w.at("torque", a), feedback + row(2 * k + a))
        if self.law.kind == "projected" and self.model is not None:
            r.call(self.model.measured, s="s", p="p", w="w")
            r.call(self.model.distribute(), s="s", p="p", w="w")
        for a in range(k):
            torque = self._w(r, "torque", a)
            cut = self._hold_torque(r, a, torque)  # at its limit an actuator does not integrate further into it
            into = both(cut, torque * errors[a] > 0.0)
            self._put(r, "integral", a, self._s(r, "integral", a) - where(into, errors[a] * dt, 0.0))

    def _computed(self, r: Routine) -> None:
        n, row, w = self.n, self._row(r, 3 * self.n), self.memory.work
        model = self.model
        if model is None:
            raise ValueError("computed torque needs a model")
        r.call(model.measured, s="s", p="p", w="w")
        dt = self._p(r, "outer") * self._p(r, "step")
        errors = []
        for c in range(n):
            feedback, error = self._errors(r, row(c), row(n + c), self._w(r, "x", c), self._w(r, "v", c), c)
            errors.append(error)
            r.store("w", w.at("a", c), row(2 * n + c) + feedback)
        if self.law.on_reference:
            r.store_all("w", w.at("error"), errors)
            r.store_all("w", w.at("v"), [row(n + c) for c in range(n)])
            r.call(model.moved(), s="s", p="p", w="w")
        self._needed(r, model, row, n)
        self._hold_all(r, errors, dt)

    def _needed(self, r: Routine, model: Model, row: Callable[[int], Node], first: int) -> None:
        """Find the torques that a model needs for the accelerations a; wanted velocities begin in a column of the reference."""
        n, w = self.n, self.memory.work
        r.store_all("w", w.at("wanted"), [row(first + c) for c in range(n)])
        places = {"q": self.memory.state.place("pose"), "v": w.place("v"), "a": w.place("a"), "r": w.place("wanted")}
        r.call(model.torques(), **places, p="p", t=w.place("torque"), ok=w.place("ok"))
        with r.when(opposite(self._w(r, "ok") > 0.0)):
            r.store("w", w.at("status"), LOST_CLOSURE)

    def _hold_all(self, r: Routine, errors: Sequence[Node], dt: Node) -> None:
        """Hold all torques; where a limit has cut one, undo what this tick has integrated."""
        cut = self.graph.zero
        for a in range(self.k):
            cut = either(cut, self._hold_torque(r, a, self._w(r, "torque", a)))
        for c, error in enumerate(errors):
            self._put(r, "integral", c, self._s(r, "integral", c) - where(cut, error * dt, 0.0))
