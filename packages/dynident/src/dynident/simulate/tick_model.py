"""What a control law believes: the pose of the sensed motors, the torques that a model needs there, and work spaces.

    A = N G,    x += (A^T A)^-1 A^T (rho - N q_t)  until it fits and the loops are closed
    A^T tau = f = ID_model(x, v, a),    tau = A (A^T A)^-1 f + internal part of the preload
    J dx = u    square,    dx = dp + M^-1 J^T (J M^-1 J^T)^-1 (u - J dp)  with a posture dp

The reference is known beforehand: its place, velocity and acceleration in a work space are columns of the law's table.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from dynident.control.feedforward import coupling_rows
from dynident.control.task import Bound, bound_space, independent_coordinates
from dynident.graph.elementary import equal, minimum, where
from dynident.graph.expression import Function, Node, total
from dynident.graph.routine import Place
from dynident.graph.vectors import dot
from dynident.mechanics.actuation import internal, least_norm, least_squares
from dynident.mechanics.branch import closing_routine, motor_step, newton_step
from dynident.mechanics.equations import Equations
from dynident.mechanics.moving_tree import positions_of
from dynident.mechanics.solving import NodeRows, solve_general, solve_symmetric
from dynident.simulate.drives import inertial_torques
from dynident.simulate.dynamics import Dynamics
from dynident.simulate.friction import Given, softened
from dynident.simulate.lumping import lumped_symbols
from dynident.simulate.reference import task_fields
from dynident.simulate.shape import LOST_CLOSURE, MachineRoutine, own_positions, starts

SINGULAR = 1e-9  # share of a row of the work space that the robot must be able to make on its own


class Model:
    """The model of a control law: functions of the pose ``q``, velocities ``v`` and accelerations ``a``."""

    def __init__(self, dynamics: Dynamics) -> None:
        self.graph, self.shape, self.memory = dynamics.graph, dynamics.shape, dynamics.memory
        self.mechanism = self.shape.law.model
        self.n, self.k, self.nq = self.mechanism.dof, len(self.shape.drives), positions_of(self.mechanism)
        self.rows = coupling_rows(self.mechanism)
        self.eq = Equations(self.mechanism, self.graph)
        self.eq.phi = lumped_symbols(self.mechanism, self.p("model_phi"))
        # Without loops and with linear couplings A is constant.
        self.straight = not self.mechanism.loops and all(c.function is None for c in self.mechanism.couplings)

    def p(self, name: str) -> list[Node]:
        """Return constants of the law."""
        return self.memory.numbers.symbols(self.graph, name)

    @cached_property
    def A(self) -> NodeRows:
        """Actuator rows (k, n)."""
        return [self.eq.times_G(row) for row in self.rows]

    def _held(self, ok: Node) -> Node:
        """Return a number above zero where loops are far from a singularity too."""
        return minimum(ok, where(self.eq.pivot > 0.0, 1.0, -1.0)) if self.mechanism.loops else ok

    def _fitted(self, rho: Sequence[Node]) -> tuple[list[Node], Node]:
        """Return A^+ x: all motors pull alike when there are more than freedoms."""
        found, ok = least_squares(self.A, rho)
        return found, self._held(ok)

    def _carried(self, step: Sequence[Node]) -> list[Node]:
        G = self.eq.G if self.mechanism.loops else None
        return list(step) if G is None else [dot(row, step) for row in G]

    def _inputs(self, **more: int) -> dict[str, int]:
        return {"q": self.nq, "p": self.memory.numbers.size, **more}

    # ---- pose

    def _close(self, r: MachineRoutine, step: Function, name: str, far: bool, **places: Place) -> None:
        """Repeat a step of the pose until the loops are closed."""
        r.call(closing_routine(step, name, far), q=r.at("s.pose"), result=r.at("w.ok"), **places)
        with r.when(equal(r.get("w.ok"), 0.0)):
            r.put("w.status", LOST_CLOSURE)

    @cached_property
    def measured(self) -> MachineRoutine:
        """What writes coordinates x and velocities v, and the pose, that belong to the sensed actuators."""
        r, n = MachineRoutine(self.memory, self.graph, "measured_pose", ("s", "p", "w")), self.n
        sensed = {"rho": r.at("s.sensed"), "rate": r.at("s.sensed_v")}
        if self.straight:
            zero, inverse = self.p("model_zero"), self.p("model_inverse")
            rho, rate = self.graph.symbols("rho", self.k), self.graph.symbols("rate", self.k)
            gap = [x - z for x, z in zip(rho, zero, strict=True)]
            rows = [inverse[c * self.k : (c + 1) * self.k] for c in range(n)]
            outputs = {"x": [dot(row, gap) for row in rows], "v": [dot(row, rate) for row in rows]}
            inputs = {"rho": self.k, "rate": self.k, "p": self.memory.numbers.size}
            r.call(Function("model_pose", inputs, outputs), **sensed, x=r.at("w.x"), v=r.at("w.v"))
            r.put_all("s.pose", r.get_all("w.x", n))
            return r
        step = motor_step(self.eq, self.rows, 0.0 * self.rows[:, 0], "model_motors")
        self._close(r, step, "model_pose", True, rho=sensed["rho"])
        speed, _ = self._fitted(self.graph.symbols("rate", self.k))
        rates = Function("model_rates", self._inputs(rate=self.k), {"v": speed})
        r.call(rates, q=r.at("s.pose"), rate=sensed["rate"], v=r.at("w.v"))
        r.put_all("w.x", [r.get("s.pose", i) for i in own_positions(self.mechanism)])
        return r

    def moved(self) -> MachineRoutine:
        """Return what moves the model to the wanted pose, by the errors of its coordinates."""
        r = MachineRoutine(self.memory, self.graph, "model_moved", ("s", "p", "w"))
        carried = self._carried(self.graph.symbols("t", self.n))
        carry = Function("model_carried", self._inputs(t=self.n), {"d": carried})
        r.call(carry, q=r.at("s.pose"), t=r.at("w.error"), d=r.at("w.correction"))
        q, d = r.get_all("s.pose"), r.get_all("w.correction")
        r.put_all("s.pose", [x + dx for x, dx in zip(q, d, strict=True)])
        if self.mechanism.loops:
            bound = [int(i) for i in self.mechanism.closure.dependent]
            self._close(r, newton_step(self.eq, bound, "model_newton"), "model_close", False)
        return r

    # ---- torques

    def shared(self, force: Sequence[Node]) -> tuple[list[Node], Node]:
        """Return the least motor torques for forces on the coordinates, with the preload, and whether there are any."""
        torque, ok = least_norm(self.A, force)
        if self.k > self.n:
            load = internal(self.A, self.p("preload")[: self.k])[0]
            torque = [x + y for x, y in zip(torque, load, strict=True)]
        return torque, self._held(ok)

    def torques(self) -> Function:
        """Return the motor torques that give accelerations at a pose, with the preload, and whether there are any."""
        eq, owners = self.eq, self.shape.law.frictions
        tree, wanted = inertial_torques(eq), self.graph.symbols("r", self.n)
        if eq.G is not None:
            wanted = [dot(row, wanted) for row in eq.G]
        first, numbers, one, zero = starts(owners, "numbers"), self.p("model_law"), self.graph.one, self.graph.zero
        for i, owner in enumerate(owners):
            form = [self.graph.const(float(c)) for c in owner.form]
            given = Given(dot(form, eq.tree_v), dot(form, eq.tree_q), zero, one, zero, zero)
            rub = softened(owner, given, numbers[first[i] : first[i + 1]], self.p("model_slope")[i], dot(form, wanted))
            tree = [x + rub * c for x, c in zip(tree, form, strict=True)]
        torque, ok = self.shared(eq.project(tree))
        return Function("model_torques", self._inputs(v=self.n, a=self.n, r=self.n), {"t": torque, "ok": [ok]})

    def distribute(self) -> MachineRoutine:
        """Return what takes the internal part out of the torques, where the law says so, and adds that of the preload."""
        r = MachineRoutine(self.memory, self.graph, "model_distribute", ("s", "p", "w"))
        asked, load = self.graph.symbols("t", self.k), self.p("preload")[: self.k]
        remove = self.p("remove")[0] > 0.0
        inner, ok = internal(self.A, asked)
        own = [x - where(remove, y, 0.0) for x, y in zip(asked, inner, strict=True)]
        shared = Function(
            "model_shared",
            self._inputs(t=self.k),
            {"d": [x + y for x, y in zip(own, internal(self.A, load)[0], strict=True)], "ok": [self._held(ok)]},
        )
        r.call(shared, q=r.at("s.pose"), t=r.at("w.torque"), d=r.at("w.rho"), ok=r.at("w.ok"))
        r.put_all("w.torque", r.get_all("w.rho"))
        r.stop_unless_ok(LOST_CLOSURE)
        return r


class TaskModel(Model):
    """The model of a law in a work space of m rows: functions of the pose ``q`` and a row ``t`` of the reference."""

    def __init__(self, dynamics: Dynamics) -> None:
        super().__init__(dynamics)
        law = self.shape.law
        self.space: Bound = bound_space("task", law.space, self.mechanism)
        self.table = task_fields(law.model, law.space, self.k)
        self.still = Equations(self.mechanism, self.graph)
        self.still.phi, self.still.a = self.eq.phi, [self.graph.zero] * self.n
        self.spot = self.space.look(self.still)
        self.left = self.space.rows < self.n

    def _t(self, name: str) -> list[Node]:
        return self.table.symbols(self.graph, name)

    def _given(self, **more: int) -> dict[str, int]:
        return self._inputs(v=self.n, t=self.table.size, **more)

    @cached_property
    def seen(self) -> Function:
        """The error (m,) and its rate (m,)."""
        error = self.space.error(self._t("place"), self.spot.place)
        now = [dot(row, self.still.v) for row in self.spot.jacobian]
        rate = [x - y for x, y in zip(self._t("rate"), now, strict=True)]
        return Function("task_seen", self._given(), {"e": error, "d": rate})

    @cached_property
    def _mass(self) -> NodeRows:
        """Inertia that weighs the freedoms; without a model of its own a law knows that of the drives."""
        M = [list(row) for row in self.still.mass_matrix()]
        if self.shape.law.kind != "task computed":
            for a, row in enumerate(self.A):
                for i in range(self.n):
                    for j in range(self.n):
                        M[i][j] = M[i][j] + self.p("task_inertia")[a] * (row[i] * row[j])
        return M

    def _pull(self) -> list[Node]:
        """Return kp (q_ref - q) + kd (v_ref - v)."""
        kp, kd = self.p("posture")
        pairs = zip(self._t("q"), independent_coordinates(self.still), self._t("v"), self.still.v, strict=True)
        return [kp * (wanted - x) + kd * (fast - v) for wanted, x, fast, v in pairs]

    def _weighted(self, right: Sequence[Node]) -> tuple[list[Node], NodeRows, Node]:
        """Return (J M^-1 J^T)^-1 of some rows, M^-1 J^T, and whether the robot can move along all rows."""
        J, zero = self.spot.jacobian, self.graph.zero
        X, _ = solve_symmetric(self._mass, [[row[i] for row in J] for i in range(self.n)])
        square = [[total([zero, *(row[i] * X[i][c] for i in range(self.n))]) for c in range(len(J))] for row in J]
        found, pivots = solve_symmetric(square, [[x] for x in right])
        ok = self.graph.one
        for i, pivot in enumerate(pivots):
            ok = minimum(ok, pivot - SINGULAR**2 * square[i][i])
        return [x[0] for x in found], X, ok

    def _moved(self, u: Sequence[Node], posture: Sequence[Node]) -> tuple[list[Node], Node]:
        """Return dx with J dx = u, as near to the posture as that allows, and whether there is one."""
        J = self.spot.jacobian
        if not self.left:
            found, ratio = solve_general(J, [[x] for x in u])
            return [x[0] for x in found], ratio - SINGULAR
        part, X, ok = self._weighted([x - dot(row, posture) for x, row in zip(u, J, strict=True)])
        return [x + dot(row, part) for x, row in zip(posture, X, strict=True)], ok

    def accelerations(self) -> Function:
        """Return the accelerations that give u in the work space."""
        u = [
            x + y - b
            for x, y, b in zip(self.graph.symbols("u", self.space.rows), self._t("curve"), self.spot.bias, strict=True)
        ]
        posture = [x + y for x, y in zip(self._t("a"), self._pull(), strict=True)] if self.left else []
        a, ok = self._moved(u, posture)
        return Function("task_accelerations", self._given(u=self.space.rows), {"a": a, "ok": [ok]})

    def forces(self) -> Function:
        """Return the motor torques that put the forces u on the work space."""
        u, J, n = self.graph.symbols("u", self.space.rows), self.spot.jacobian, range(self.n)
        f = [total([x, *(row[i] * y for row, y in zip(J, u, strict=True))]) for i, x in enumerate(self._t("feed")[: self.n])]
        ok = self.graph.one
        if self.left:  # N^T M a = M a - J^T (J M^-1 J^T)^-1 J a
            pull = self._pull()
            part, _, ok = self._weighted([dot(row, pull) for row in J])
            f = [f[i] + dot(self._mass[i], pull) - dot([row[i] for row in J], part) for i in n]
        torque, held = self.shared(f)
        return Function("task_forces", self._given(u=self.space.rows), {"torque": torque, "ok": [minimum(ok, held)]})

    def speeds(self) -> Function:
        """Return the speeds of the actuators that give u in the work space."""
        follow = self.p("posture_share")[0]
        posture = [x + follow * v for x, v in zip(self._pull(), self._t("v"), strict=True)] if self.left else []
        dx, ok = self._moved(self.graph.symbols("u", self.space.rows), posture)
        outputs = {"rate": [dot(row, dx) for row in self.A], "ok": [ok]}
        return Function("task_speeds", self._given(u=self.space.rows), outputs)
