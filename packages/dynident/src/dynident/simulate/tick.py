"""The control tick of a machine: from sensor readings to drive commands, at every tick of their cycles.

Between two ticks everything is held. The reference is a table with one row every `every` steps: rho, rho_v and feed-forward
of the actuators for actuator loops, q, v, a for computed torque, the command itself for an open loop, the place in a work
space and more for laws there (`reference`).

A law computes the pose from the sensed motors, and the torques of its model at this pose:

    A = N G,    x += (A^T A)^-1 A^T (rho - N q_t)  until convergence
    A^T tau = f = ID_model(x, v, a),    tau = A (A^T A)^-1 f + internal part of the preload
    J dx = u    square,    dx = dp + M^-1 J^T (J M^-1 J^T)^-1 (u - J dp)  with a posture dp
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from dynident.control.task import Bound, bound_space, independent_coordinates
from dynident.control.tick import current_loop, low_pass_step, pid_law, position_loop, sensed_speed, velocity_loop
from dynident.drive.drive import sensed_current, sensed_position
from dynident.graph.algebra import (
    NodeRows,
    both,
    clip,
    dot,
    either,
    equal,
    floor,
    minimum,
    opposite,
    solve_general,
    solve_symmetric,
    where,
)
from dynident.graph.expression import Function, Node, total
from dynident.graph.routine import Place
from dynident.mechanics.actuation import coupling_rows, internal, least_norm, least_squares
from dynident.mechanics.branch import closing_routine, motor_step, newton_step
from dynident.mechanics.equations import Equations
from dynident.mechanics.functions import lumped_symbols
from dynident.mechanics.newton_euler import positions_of
from dynident.simulate.drives import inertial_torques, within_voltage
from dynident.simulate.dynamics import Dynamics
from dynident.simulate.friction import Given, asks_load, softened, starts
from dynident.simulate.layout import IDEAL, LOST_CLOSURE, LOST_TASK, Field, MachineRoutine, each, own_positions
from dynident.simulate.reference import TaskRow, table_width, task_fields

SINGULAR = 1e-9  # least independent share of a row of the work space


class Model:
    """The model of a control law: functions of the pose ``q``, velocities ``v`` and accelerations ``a``."""

    def __init__(self, dynamics: Dynamics) -> None:
        self.graph, self.layout, self.p = dynamics.graph, dynamics.layout, dynamics.p
        self.mechanism = self.layout.model
        self.n, self.k, self.nq = self.mechanism.dof, self.layout.k, positions_of(self.mechanism)
        self.rows = coupling_rows(self.mechanism)
        self.eq = Equations(self.mechanism, self.graph)
        self.eq.phi = self.eq.load_phi = lumped_symbols(self.mechanism, self.p.model_phi)
        # Without loops and with linear couplings A is constant.
        self.straight = not self.mechanism.loops and all(c.function is None for c in self.mechanism.couplings)

    @cached_property
    def A(self) -> NodeRows:
        """Actuator rows (k, n)."""
        return [self.eq.times_G(row) for row in self.rows]

    def _held(self, ok: Node) -> Node:
        """Return `ok`, above zero only if the loops are far from a singularity too."""
        return minimum(ok, where(self.eq.pivot > 0.0, 1.0, -1.0)) if self.mechanism.loops else ok

    def _fitted(self, rho: Sequence[Node]) -> tuple[list[Node], Node]:
        """Return A^+ rho: least squares with equal weights of all motors."""
        found, ok = least_squares(self.A, rho)
        return found, self._held(ok)

    def _carried(self, step: Sequence[Node]) -> list[Node]:
        G = self.eq.G if self.mechanism.loops else None
        return list(step) if G is None else [dot(row, step) for row in G]

    def _inputs(self, **more: int) -> dict[str, int]:
        return {"q": self.nq, "p": self.layout.numbers.size, **more}

    # ---- pose

    def _close(self, r: MachineRoutine, step: Function, name: str, far: bool, **places: Place) -> None:
        """Repeat a step of the pose until the loops are closed."""
        r.call(closing_routine(step, name, far), q=r.at(r.s.pose), result=r.at(r.w.ok), **places)
        with r.when(equal(r.get(r.w.ok), 0.0)):
            r.put(r.w.status, LOST_CLOSURE)

    @cached_property
    def measured(self) -> MachineRoutine:
        """Routine that computes coordinates x, velocities v and the pose from the sensed actuators."""
        r, n = MachineRoutine(self.layout, self.graph, "measured_pose", ("s", "p", "w")), self.n
        sensed = {"rho": r.at(r.s.sensed), "rate": r.at(r.s.sensed_v)}
        if self.straight:
            zero, inverse = self.p.model_zero, self.p.model_inverse
            rho, rate = self.graph.symbols("rho", self.k), self.graph.symbols("rate", self.k)
            gap = [x - z for x, z in zip(rho, zero, strict=True)]
            rows = [inverse[c * self.k : (c + 1) * self.k] for c in range(n)]
            outputs = {"x": [dot(row, gap) for row in rows], "v": [dot(row, rate) for row in rows]}
            inputs = {"rho": self.k, "rate": self.k, "p": self.layout.numbers.size}
            r.call(Function("model_pose", inputs, outputs), **sensed, x=r.at(r.w.x), v=r.at(r.w.v))
            r.put_all(r.s.pose, r.get_all(r.w.x, n))
            return r
        step = motor_step(self.eq, self.rows, 0.0 * self.rows[:, 0], "model_motors")
        self._close(r, step, "model_pose", True, rho=sensed["rho"])
        speed, _ = self._fitted(self.graph.symbols("rate", self.k))
        rates = Function("model_rates", self._inputs(rate=self.k), {"v": speed})
        r.call(rates, q=r.at(r.s.pose), rate=sensed["rate"], v=r.at(r.w.v))
        r.put_all(r.w.x, [r.get(r.s.pose, i) for i in own_positions(self.mechanism)])
        return r

    def moved(self) -> MachineRoutine:
        """Return the correction of the model pose from its coordinate errors."""
        r = MachineRoutine(self.layout, self.graph, "model_moved", ("s", "p", "w"))
        carried = self._carried(self.graph.symbols("t", self.n))
        carry = Function("model_carried", self._inputs(t=self.n), {"d": carried})
        r.call(carry, q=r.at(r.s.pose), t=r.at(r.w.error), d=r.at(r.w.correction))
        q, d = r.get_all(r.s.pose), r.get_all(r.w.correction)
        r.put_all(r.s.pose, [x + dx for x, dx in zip(q, d, strict=True)])
        if self.mechanism.loops:
            bound = [int(i) for i in self.mechanism.closure.dependent]
            self._close(r, newton_step(self.eq, bound, "model_newton"), "model_close", False)
        return r

    # ---- torques

    def shared(self, force: Sequence[Node]) -> tuple[list[Node], Node]:
        """Return the minimum-norm motor torques for forces on the coordinates, with the preload, and whether they exist."""
        torque, ok = least_norm(self.A, force)
        if self.k > self.n:
            load = internal(self.A, self.p.preload[: self.k])[0]
            torque = [x + y for x, y in zip(torque, load, strict=True)]
        return torque, self._held(ok)

    def torques(self) -> Function:
        """Return the motor torques for accelerations at a pose, with the preload, and whether they exist."""
        eq, owners = self.eq, self.layout.model_owners
        tree, wanted = inertial_torques(eq), self.graph.symbols("r", self.n)
        if eq.G is not None:
            wanted = [dot(row, wanted) for row in eq.G]
        first, numbers, one, zero = starts(owners, "numbers"), self.p.model_law, self.graph.one, self.graph.zero
        for i, owner in enumerate(owners):
            form = [self.graph.const(float(c)) for c in owner.form]
            load = dot(form, eq.loads) if any(map(asks_load, owner.laws)) else zero
            given = Given(dot(form, eq.tree_v), dot(form, eq.tree_q), load, one, zero, zero)
            friction = softened(owner, given, numbers[first[i] : first[i + 1]], self.p.model_slope[i], dot(form, wanted))
            tree = [x + friction * c for x, c in zip(tree, form, strict=True)]
        torque, ok = self.shared(eq.project(tree))
        return Function("model_torques", self._inputs(v=self.n, a=self.n, r=self.n), {"t": torque, "ok": [ok]})

    def distribute(self) -> MachineRoutine:
        """Return the routine that removes internal torques, if the law requires it, and adds those of the preload."""
        r = MachineRoutine(self.layout, self.graph, "model_distribute", ("s", "p", "w"))
        asked, load = self.graph.symbols("t", self.k), self.p.preload[: self.k]
        remove = self.p.remove[0] > 0.0
        inner, ok = internal(self.A, asked)
        own = [x - where(remove, y, 0.0) for x, y in zip(asked, inner, strict=True)]
        shared = Function(
            "model_shared",
            self._inputs(t=self.k),
            {"d": [x + y for x, y in zip(own, internal(self.A, load)[0], strict=True)], "ok": [self._held(ok)]},
        )
        r.call(shared, q=r.at(r.s.pose), t=r.at(r.w.torque), d=r.at(r.w.shared), ok=r.at(r.w.ok))
        r.stop_unless_ok(LOST_CLOSURE)
        return r


class TaskModel(Model):
    """The model of a law in a work space of m rows: functions of the pose ``q`` and a row ``t`` of the reference."""

    def __init__(self, dynamics: Dynamics) -> None:
        super().__init__(dynamics)
        self.space: Bound = bound_space("task", self.layout.space, self.mechanism)
        self.table = task_fields(self.mechanism, self.layout.space, self.k)
        self.t: TaskRow[list[Node]] = each(self.table, lambda field: field.symbols(self.graph))
        self.still = Equations(self.mechanism, self.graph)
        self.still.phi, self.still.a = self.eq.phi, [self.graph.zero] * self.n
        self.spot = self.space.look(self.still)
        self.left = self.space.rows < self.n

    def _given(self, **more: int) -> dict[str, int]:
        return self._inputs(v=self.n, t=self.table.size, **more)

    @cached_property
    def seen(self) -> Function:
        """The error (m,) and its rate (m,)."""
        error = self.space.error(self.t.place, self.spot.place)
        now = [dot(row, self.still.v) for row in self.spot.jacobian]
        rate = [x - y for x, y in zip(self.t.rate, now, strict=True)]
        return Function("task_seen", self._given(), {"e": error, "d": rate})

    @cached_property
    def _mass(self) -> NodeRows:
        """Inertia that weights the coordinates; a law without a separate model adds the inertia of the drives."""
        M = [list(row) for row in self.still.mass_matrix()]
        if self.layout.law != "task computed":
            for a, row in enumerate(self.A):
                for i in range(self.n):
                    for j in range(self.n):
                        M[i][j] = M[i][j] + self.p.task_inertia[a] * (row[i] * row[j])
        return M

    def _pull(self) -> list[Node]:
        """Return kp (q_ref - q) + kd (v_ref - v)."""
        kp, kd = self.p.posture
        pairs = zip(self.t.q, independent_coordinates(self.still), self.t.v, self.still.v, strict=True)
        return [kp * (wanted - x) + kd * (fast - v) for wanted, x, fast, v in pairs]

    def _weighted(self, right: Sequence[Node]) -> tuple[list[Node], NodeRows, Node]:
        """Return (J M^-1 J^T)^-1 right, M^-1 J^T, and whether the robot can move along all rows."""
        J, zero = self.spot.jacobian, self.graph.zero
        X, _ = solve_symmetric(self._mass, [[row[i] for row in J] for i in range(self.n)])
        square = [[total([zero, *(row[i] * X[i][c] for i in range(self.n))]) for c in range(len(J))] for row in J]
        found, pivots = solve_symmetric(square, [[x] for x in right])
        ok = self.graph.one
        for i, pivot in enumerate(pivots):
            ok = minimum(ok, pivot - SINGULAR**2 * square[i][i])
        return [x[0] for x in found], X, ok

    def _moved(self, u: Sequence[Node], posture: Sequence[Node]) -> tuple[list[Node], Node]:
        """Return dx with J dx = u nearest to the posture, and whether it exists."""
        J = self.spot.jacobian
        if not self.left:
            found, ratio = solve_general(J, [[x] for x in u])
            return [x[0] for x in found], ratio - SINGULAR
        part, X, ok = self._weighted([x - dot(row, posture) for x, row in zip(u, J, strict=True)])
        return [x + dot(row, part) for x, row in zip(posture, X, strict=True)], ok

    def accelerations(self) -> Function:
        """Return the accelerations that give u in the work space."""
        u = [x + y - b for x, y, b in zip(self.graph.symbols("u", self.space.rows), self.t.curve, self.spot.bias, strict=True)]
        posture = [x + y for x, y in zip(self.t.a, self._pull(), strict=True)] if self.left else []
        a, ok = self._moved(u, posture)
        return Function("task_accelerations", self._given(u=self.space.rows), {"a": a, "ok": [ok]})

    def forces(self) -> Function:
        """Return the motor torques for the forces u in the work space."""
        u, J, n = self.graph.symbols("u", self.space.rows), self.spot.jacobian, range(self.n)
        f = [total([x, *(row[i] * y for row, y in zip(J, u, strict=True))]) for i, x in enumerate(self.t.feed[: self.n])]
        ok = self.graph.one
        if self.left:  # N^T M a = M a - J^T (J M^-1 J^T)^-1 J a
            pull = self._pull()
            part, _, ok = self._weighted([dot(row, pull) for row in J])
            f = [f[i] + dot(self._mass[i], pull) - dot([row[i] for row in J], part) for i in n]
        torque, held = self.shared(f)
        return Function("task_forces", self._given(u=self.space.rows), {"torque": torque, "ok": [minimum(ok, held)]})

    def speeds(self) -> Function:
        """Return the speeds of the actuators that give u in the work space."""
        follow = self.p.posture_share[0]
        posture = [x + follow * v for x, v in zip(self._pull(), self.t.v, strict=True)] if self.left else []
        dx, ok = self._moved(self.graph.symbols("u", self.space.rows), posture)
        outputs = {"rate": [dot(row, dx) for row in self.A], "ok": [ok]}
        return Function("task_speeds", self._given(u=self.space.rows), outputs)


ARRAYS = ("s", "p", "w", "a", "table", "noise")
SENSING = ("s", "p", "w", "a", "noise")


class Tick:
    """The routines of one control law."""

    def __init__(self, dynamics: Dynamics) -> None:
        self.dynamics, self.graph, self.layout = dynamics, dynamics.graph, dynamics.layout
        self.k, self.n, self.law = dynamics.k, dynamics.n, dynamics.layout.law
        self.task = TaskModel(dynamics) if self.layout.space is not None else None
        self.model = self.task or (Model(dynamics) if self.law not in ("open", "cascade", "pid") else None)
        self.senses = dynamics.senses
        self.sense = self._sense()

    @staticmethod
    def _due(step: Node, every: Node) -> Node:
        result: Node = equal(floor(step / every) * every, step)
        return result

    def _place(self, r: MachineRoutine) -> Node:
        """Return the start of the current row of the reference."""
        rows, first = r.get(r.a.table_rows), r.get(r.a.table)
        row: Node = minimum(floor(r.get(r.s.step) / r.get(r.p.every)) - first, rows - 1.0)
        return row * float(table_width(self.layout))

    def _row(self, r: MachineRoutine) -> Callable[[int], Node]:
        """Return a reader of the current row of the reference."""
        place = self._place(r)
        return lambda column: r.load("table", place + float(column))

    # ---- sensors

    def _noise(self, r: MachineRoutine) -> Callable[[Node | int], Node]:
        """Return a reader of the noise of this tick: encoders first, then current sensors at every tick of their loop."""
        step, rows, first = r.get(r.s.step), r.get(r.a.noise_rows), r.get(r.a.noise)
        row = minimum(floor(step / r.get(r.p.sense)) - first, rows - 1.0) * r.get(r.a.noise_width)
        return lambda column: r.load("noise", row + column)

    def _sensed_currents(self, r: MachineRoutine) -> list[Node]:
        """Return the current readings of the current sensors."""
        step, sense, every = r.get(r.s.step), r.get(r.p.sense), r.get(r.p.current_every)
        tick = where(every > 0.0, floor((step - floor(step / sense) * sense) / every), 0.0)
        noise, first, found = self._noise(r), (1.0 + tick) * float(self.k), []
        for a in range(self.k):
            numbers = r.get(r.p.current_step, a), r.get(r.p.current_gain, a)
            found.append(sensed_current(r.get(r.w.current, a), noise(first + float(a)), *numbers))
        return found

    def _sense(self) -> MachineRoutine:
        """Return the routine that reads the sensors of all drives."""
        r = MachineRoutine(self.layout, self.graph, "sense", SENSING)
        self.dynamics.sense(r)
        step = r.get(r.s.step)
        time = r.get(r.p.sense) * r.get(r.p.step)
        noise, sensed, slow = self._noise(r), list[Node](), list[Node]()
        for a in range(self.k):
            ratio, motor = r.get(r.p.ratio, a), r.get(r.p.on_motor, a) > 0.0
            seen = sensed_position(r.get(r.w.theta, a), r.get(r.w.rho, a), noise(a), r.get(r.p.resolution, a), motor, ratio)
            true = where(motor, r.get(r.w.omega, a) / ratio, r.get(r.w.rho_v, a))
            last, before, exact = r.get(r.s.sensed, a), r.get(r.s.sensed_v, a), r.get(r.p.exact_speed, a) > 0.0
            smooth = sensed_speed(seen, last, true, exact, before, time, r.get(r.p.blend, a))
            sensed.append(seen)
            slow.append(where(equal(step, 0.0), true, smooth))
        currents = self._sensed_currents(r)
        r.put_all(r.s.sensed, sensed)
        r.put_all(r.s.sensed_v, slow)
        r.put_all(r.s.sensed_current, currents)
        return r

    def measure(self) -> MachineRoutine:
        """Return the measurement routine of a controller in Python: sensors and corresponding coordinates."""
        if self.model is None:
            raise ValueError("only a controller in Python measures")
        r = MachineRoutine(self.layout, self.graph, "measure", SENSING)
        r.put(r.w.status, 0.0)
        r.call(self.sense)
        r.call(self.model.measured)
        r.put(r.a.status, r.get(r.w.status))
        return r

    # ---- commands

    def _limited(self, r: MachineRoutine, a: int, current: Node, omega: Node) -> Node:
        """Return a current within the limits of motor and amplifier."""
        cut: Node = clip(current, r.get(r.p.current_limit, a))
        if not self.layout.limited[a]:
            return cut
        top, ohm = r.get(r.p.voltage_limit, a), r.get(r.p.resistance, a)
        held: Node = within_voltage(cut, r.get(r.p.emf, a) * omega, top, ohm)
        return held

    def _send(self, r: MachineRoutine, a: int, command: Node, beyond: Node) -> None:
        """Send a drive a command, which arrives after the delay of the law; `beyond` marks a limited command."""
        r.put(r.s.sent, command, a)
        r.put(r.s.beyond, beyond, a)
        r.put(r.s.command, where(equal(r.get(r.p.late), 0.0), command, r.get(r.s.command, a)), a)

    def _hold_torque(self, r: MachineRoutine, a: int, torque: Node) -> Node:
        """Hold the current for a torque behind the gear, within the limits; return whether it was limited."""
        ratio = r.get(r.p.ratio, a)
        wanted = torque / (ratio * r.get(r.p.torque, a))
        current = self._limited(r, a, wanted, ratio * r.get(r.s.sensed_v, a))
        cut: Node = opposite(equal(current, wanted))
        self._send(r, a, current, cut)
        return cut

    # ---- laws

    def control(self) -> MachineRoutine:
        """Return the control routine of the start of a step."""
        r = MachineRoutine(self.layout, self.graph, "control", ARRAYS)
        step = r.get(r.s.step)
        kind = self.law
        if kind in ("cascade", "task cascade"):
            with r.when(self._due(step, r.get(r.p.sense))):
                r.call(self.sense)
            self._cascade(r, step)
        elif kind != "held":
            with r.when(self._due(step, r.get(r.p.outer))):
                # An open loop needs the sensors only if the speed limits the current.
                if kind != "open" or any(self.layout.limited):
                    r.call(self.sense)
                laws = {"open": self._open, "pid": self._pid, "projected": self._pid, "computed": self._computed}
                laws.get(kind, self._task_torques)(r)
        late = r.get(r.p.late)
        with r.when(late > 0.0):  # commands sent `late` steps ago arrive; none before the first
            self._queue(r, step - floor(step / late) * late, r.s.sent, r.s.command)
        return r

    def _queue(self, r: MachineRoutine, row: Node, sent: Field, arrived: Field) -> None:
        """Take a row out of the queue behind the state, and store the sent values in its place."""
        slot, first = row * float(self.k), self.layout.state.size
        for a in range(self.k):
            r.put(arrived, r.load("s", slot + float(first + a)), a)
            r.store("s", slot + float(first + a), r.get(sent, a))

    def _open(self, r: MachineRoutine) -> None:
        row = self._row(r)
        for a in range(self.k):
            value = row(a)
            if self.layout.torque:
                self._hold_torque(r, a, value)
                continue
            if self.layout.feeds[a] == IDEAL:
                held = self._limited(r, a, value, r.get(r.p.ratio, a) * r.get(r.s.sensed_v, a))
            else:
                held = clip(value, r.get(r.p.voltage_limit, a))
            self._send(r, a, held, opposite(equal(held, value)))

    def _first(self, r: MachineRoutine, share: Field, a: int) -> Node:
        """Return the coefficient of a low-pass, 1 at the first tick."""
        result: Node = where(equal(r.get(r.s.step), 0.0), 1.0, r.get(share, a))
        return result

    def _cascade(self, r: MachineRoutine, step: Node) -> None:
        k, row = self.k, self._row(r)
        feed = 2 * k if self.task is None else self.task.table.feed.first
        with r.when(self._due(step, r.get(r.p.outer))):
            if self.task is not None:
                self._task_speeds(r, self.task)
            for a in range(k if self.task is None else 0):
                gains = r.get(r.p.kp, a), r.get(r.p.share, a), self._first(r, r.p.slow_out, a)
                error, before = row(a) - r.get(r.s.sensed, a), r.get(r.s.issued, a)
                r.put(r.s.issued, position_loop(error, row(k + a), before, gains, r.get(r.p.speed_limit, a)), a)
        inner = r.get(r.p.inner)
        with r.when(self._due(step, inner)):
            self._wishes(r, step / inner)
            for a in range(k):
                self._velocity(r, a, row(feed + a))
        if self.layout.current_loop:
            with r.when(self._due(step, r.get(r.p.current_every))):
                currents = Function("currents", self.senses.inputs, {"current": self.senses.outputs["current"]})
                r.call(currents, y="s", current=r.at(r.w.current))
                for a, current in enumerate(self._sensed_currents(r)):
                    self._current(r, a, current)

    def _look(self, r: MachineRoutine, task: TaskModel) -> dict[str, str | Place]:
        """Find error and its rate in the work space, and return the inputs of the law's functions."""
        if self.model is not None:
            r.call(self.model.measured)
        here = "table", self._place(r)
        given: dict[str, str | Place] = {"q": r.at(r.s.pose), "v": r.at(r.w.v), "t": here}
        r.call(task.seen, **given, e=r.at(r.w.error), d=r.at(r.w.rate))
        return given

    def _task_speeds(self, r: MachineRoutine, task: TaskModel) -> None:
        """Compute the actuator speeds commanded by a position loop in a work space."""
        given, row = self._look(r, task), self._row(r)
        for i in range(task.space.rows):
            wanted = r.get(r.p.kp, i) * r.get(r.w.error, i) + r.get(r.p.share, i) * row(task.table.rate.first + i)
            slow = low_pass_step(r.get(r.s.slope, i), wanted, self._first(r, r.p.slow_out, i))
            r.put(r.s.slope, slow, i)
            r.put(r.w.task, slow, i)
        r.call(task.speeds(), **given, u=r.at(r.w.task), rate=r.at(r.w.task_speed), ok=r.at(r.w.ok))
        r.stop_unless_ok(LOST_TASK)
        for a in range(self.k):
            r.put(r.s.issued, clip(r.get(r.w.task_speed, a), r.get(r.p.speed_limit, a)), a)

    def _task_torques(self, r: MachineRoutine) -> None:
        if self.task is None or self.model is None:
            raise ValueError("a law in a work space needs one")
        task = self.task
        given = self._look(r, task)
        errors = [r.get(r.w.error, i) for i in range(task.space.rows)]
        for i, error in enumerate(errors):
            r.put(r.w.task, self._feedback(r, error, r.get(r.w.rate, i), i), i)
        if self.law == "task forces":
            r.call(task.forces(), **given, u=r.at(r.w.task), torque=r.at(r.w.torque), ok=r.at(r.w.ok))
        else:
            r.call(task.accelerations(), **given, u=r.at(r.w.task), a=r.at(r.w.a), ok=r.at(r.w.ok))
        r.stop_unless_ok(LOST_TASK)
        if self.law == "task computed":
            self._needed(r, self.model, self._row(r), task.table.v.first)
        self._hold_all(r, errors)

    def _wishes(self, r: MachineRoutine, tick: Node) -> None:
        """Send speed setpoints to the velocity loops, `late_wish` of their ticks later."""
        late = r.get(r.p.late_wish)
        with r.when(late > 0.0):
            self._queue(r, r.get(r.p.late) + tick - floor(tick / late) * late, r.s.issued, r.s.wish)
        with r.otherwise():
            r.put_all(r.s.wish, r.get_all(r.s.issued))

    def _velocity(self, r: MachineRoutine, a: int, feed: Node) -> None:
        ratio = r.get(r.p.ratio, a)
        speed = ratio * r.get(r.s.sensed_v, a)
        error = ratio * r.get(r.s.wish, a) - speed
        moved = velocity_loop(
            error,
            feed / (ratio * r.get(r.p.torque, a)),
            r.get(r.s.integral, a),
            r.get(r.s.asked, a),
            (r.get(r.p.kd, a), r.get(r.p.ki, a), self._first(r, r.p.slow_in, a)),
            r.get(r.p.inner) * r.get(r.p.step),
            lambda x: self._limited(r, a, x, speed),
            r.get(r.p.windup),
        )
        r.put(r.s.integral, moved.integral, a)
        r.put(r.s.asked, moved.output, a)
        if self.layout.feeds[a] == IDEAL:
            self._send(r, a, moved.output, moved.cut)
        else:
            r.put(r.s.beyond, moved.cut, a)

    def _current(self, r: MachineRoutine, a: int, sensed: Node) -> None:
        moved = current_loop(
            r.get(r.s.asked, a) - sensed,
            r.get(r.s.electric, a),
            (r.get(r.p.kpc, a), r.get(r.p.kic, a)),
            r.get(r.p.current_every) * r.get(r.p.step),
            r.get(r.p.voltage_limit, a),
            r.get(r.p.windup),
        )
        r.put(r.s.electric, moved.integral, a)
        # A limit stays marked until the next tick of the velocity loop.
        self._send(r, a, moved.output, either(r.get(r.s.beyond, a) > 0.0, moved.cut))

    def _feedback(self, r: MachineRoutine, error: Node, rate: Node, i: int) -> Node:
        """Update filter and integral of a PID; return its output."""
        dt = r.get(r.p.outer) * r.get(r.p.step)
        slow = low_pass_step(r.get(r.s.slope, i), rate, self._first(r, r.p.slow_out, i))
        integral = r.get(r.s.integral, i) + error * dt
        r.put(r.s.slope, slow, i)
        r.put(r.s.integral, integral, i)
        result: Node = pid_law(error, slow, integral, tuple(r.get(gain, i) for gain in (r.p.kp, r.p.kd, r.p.ki)))
        return result

    def _pid(self, r: MachineRoutine) -> None:
        k, row = self.k, self._row(r)
        dt = r.get(r.p.outer) * r.get(r.p.step)
        errors = []
        for a in range(k):
            place, speed, wanted, slope = r.get(r.s.sensed, a), r.get(r.s.sensed_v, a), row(a), row(k + a)
            errors.append(wanted - place)
            r.put(r.w.torque, self._feedback(r, errors[a], slope - speed, a) + row(2 * k + a), a)
        asked = r.w.torque
        if self.law == "projected" and self.model is not None:
            r.call(self.model.measured)
            r.call(self.model.distribute())
            asked = r.w.shared
        for a in range(k):
            torque = r.get(asked, a)
            cut = self._hold_torque(r, a, torque)  # anti-windup: no further integration into a limit
            into = both(cut, torque * errors[a] > 0.0)
            r.put(r.s.integral, r.get(r.s.integral, a) - where(into, errors[a] * dt, 0.0), a)

    def _computed(self, r: MachineRoutine) -> None:
        n, row, model = self.n, self._row(r), self.model
        if model is None:
            raise ValueError("computed torque needs a model")
        r.call(model.measured)
        errors = []
        for c in range(n):
            wanted, slope, place, speed = row(c), row(n + c), r.get(r.w.x, c), r.get(r.w.v, c)
            errors.append(wanted - place)
            feedback = self._feedback(r, errors[c], slope - speed, c)
            r.put(r.w.a, row(2 * n + c) + feedback, c)
        if self.layout.on_reference:
            r.put_all(r.w.error, errors)
            r.call(model.moved())
        self._needed(r, model, row, n, on_reference=self.layout.on_reference)
        self._hold_all(r, errors)

    def _needed(
        self, r: MachineRoutine, model: Model, row: Callable[[int], Node], first: int, on_reference: bool = False
    ) -> None:
        """Find the torques of a model for the accelerations a; reference velocities start at column `first`."""
        r.put_all(r.w.wanted, [row(first + c) for c in range(self.n)])
        speed = r.w.wanted if on_reference else r.w.v
        places = {"q": r.at(r.s.pose), "v": r.at(speed), "a": r.at(r.w.a), "r": r.at(r.w.wanted)}
        r.call(model.torques(), **places, t=r.at(r.w.torque), ok=r.at(r.w.ok))
        r.stop_unless_ok(LOST_CLOSURE)

    def _hold_all(self, r: MachineRoutine, errors: Sequence[Node]) -> None:
        """Hold all torques; if one is limited, undo the integration of this tick."""
        cut, dt = self.graph.zero, r.get(r.p.outer) * r.get(r.p.step)
        for a in range(self.k):
            cut = either(cut, self._hold_torque(r, a, r.get(r.w.torque, a)))
        for c, error in enumerate(errors):
            r.put(r.s.integral, r.get(r.s.integral, c) - where(cut, error * dt, 0.0), c)
