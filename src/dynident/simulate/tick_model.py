"""What a control law believes: the pose that belongs to the sensed motors, and the torques that a model needs there.

A = N G,    x += (A^T A)^-1 A^T (rho - N q_t)  until it fits
A^T tau = f = ID_model(x, v, a),    tau = A (A^T A)^-1 f + internal part of the preload
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from dynident.control import coupling_rows
from dynident.graph import Function, Node, Routine, absolute, maximum, minimum, opposite, total, where
from dynident.mechanics import Equations, NodeRows, dot, positions_of, solve_symmetric
from dynident.simulate.drives import inertial_torques
from dynident.simulate.dynamics import Dynamics
from dynident.simulate.friction import Given, softened
from dynident.simulate.shape import LOST_CLOSURE, starts

POSES = 6  # Gauss-Newton steps from the last pose to the sensed one
NEAR = 1e-9  # step at which they have converged
REACH = 0.5  # largest correction of a dependent coordinate while loops are closed [rad or m]
CLOSED = 1e-7  # correction after which the next one would be of the order of rounding errors
TINY = 1e-13  # pivot over the diagonal entry that is made of rounding errors


class Model:
    """The model of a control law: functions of the pose ``q``, velocities ``v`` and accelerations ``a``."""

    def __init__(self, dynamics: Dynamics) -> None:
        self.graph, self.shape, self.memory = dynamics.graph, dynamics.shape, dynamics.memory
        self.mechanism = self.shape.law.model
        self.n, self.k, self.nq = self.mechanism.dof, len(self.shape.drives), positions_of(self.mechanism)
        self.rows = coupling_rows(self.mechanism)
        self.eq = Equations(self.mechanism, self.graph)
        self.eq.phi = self.p("model_phi")
        # Without loops and with linear couplings A is constant.
        self.straight = not self.mechanism.loops and all(c.function is None for c in self.mechanism.couplings)

    def p(self, name: str) -> list[Node]:
        """Return constants of the law."""
        return self.memory.numbers.symbols(self.graph, name)

    @cached_property
    def A(self) -> NodeRows:
        """Actuator rows (k, n)."""
        G, zero = self.eq.G, self.graph.zero
        if G is None:
            return [[self.graph.const(float(x)) for x in row] for row in self.rows]
        columns = range(self.n)
        return [[total([zero, *(G[i][j] * float(x) for i, x in enumerate(row) if x)]) for j in columns] for row in self.rows]

    def _divided(self, right: Sequence[Node]) -> tuple[list[Node], Node]:
        """Return (A^T A)^-1 x and how far its pivots are from rounding errors."""
        zero, n = self.graph.zero, self.n
        gram = [[total([zero, *(row[i] * row[j] for row in self.A)]) for j in range(n)] for i in range(n)]
        found, pivots = solve_symmetric(gram, [[x] for x in right])
        ok = self.graph.one
        for i, pivot in enumerate(pivots):
            ok = minimum(ok, absolute(pivot) - TINY * absolute(gram[i][i]))
        if self.mechanism.loops:
            ok = minimum(ok, where(self.eq.pivot > 0.0, 1.0, -1.0))
        return [x[0] for x in found], ok

    def _fitted(self, rho: Sequence[Node]) -> tuple[list[Node], Node]:
        """Return (A^T A)^-1 A^T x: all motors pull alike when there are more than freedoms."""
        zero = self.graph.zero
        return self._divided([total([zero, *(row[j] * x for row, x in zip(self.A, rho, strict=True))]) for j in range(self.n)])

    def _carried(self, step: Sequence[Node]) -> list[Node]:
        G = self.eq.G if self.mechanism.loops else None
        return list(step) if G is None else [dot(row, step) for row in G]

    def _inputs(self, **more: int) -> dict[str, int]:
        return {"q": self.nq, "p": self.memory.numbers.size, **more}

    # ---- pose

    @cached_property
    def _closing(self) -> Function:
        """The correction that closes the loops, its size, and whether there is one."""
        correction, size = self.eq.correction, self.graph.zero
        for x in correction:
            size = maximum(size, absolute(x))
        ok = where(self.eq.pivot > 0.0, 1.0, -1.0)
        return Function("model_closing", self._inputs(), {"d": correction, "size": [size], "ok": [ok]})

    def _close(self, r: Routine) -> None:
        """Close the loops of the pose."""
        if not self.mechanism.loops:
            return
        s, w = self.memory.state, self.memory.work
        moved = r.local("moved", 1)
        r.store(moved, 0, 0.0)
        closing = self._closing
        with r.until(20):
            places = {"d": w.place("correction"), "size": w.place("size"), "ok": w.place("ok")}
            r.call(closing, q=s.place("pose"), p="p", **places)
            self._step(r)
            size = r.load("w", w.at("size"))
            far = r.load(moved, 0) + size
            r.store(moved, 0, far)
            good = where(r.load("w", w.at("ok")) > 0.0, far < REACH, 0.0)
            with r.when(opposite(good)):
                r.store("w", w.at("status"), LOST_CLOSURE)
            r.leave(opposite(good))
            r.leave(size < CLOSED)

    def _step(self, r: Routine) -> None:
        s, w = self.memory.state, self.memory.work
        q, d = r.load_all("s", s.at("pose"), self.nq), r.load_all("w", w.at("correction"), self.nq)
        r.store_all("s", s.at("pose"), [x + dx for x, dx in zip(q, d, strict=True)])

    @cached_property
    def measured(self) -> Routine:
        """What writes coordinates x and velocities v, and the pose, that belong to the sensed actuators."""
        r = Routine(self.graph, "measured_pose", ("s", "p", "w"))
        s, w, n = self.memory.state, self.memory.work, self.n
        sensed = {"rho": s.place("sensed"), "rate": s.place("sensed_v")}
        if self.straight:
            zero, inverse = self.p("model_zero"), self.p("model_inverse")
            rho, rate = self.graph.symbols("rho", self.k), self.graph.symbols("rate", self.k)
            gap = [x - z for x, z in zip(rho, zero, strict=True)]
            rows = [inverse[c * self.k : (c + 1) * self.k] for c in range(n)]
            outputs = {"x": [dot(row, gap) for row in rows], "v": [dot(row, rate) for row in rows]}
            inputs = {"rho": self.k, "rate": self.k, "p": self.memory.numbers.size}
            r.call(Function("model_pose", inputs, outputs), **sensed, p="p", x=w.place("x"), v=w.place("v"))
            r.store_all("s", s.at("pose"), r.load_all("w", w.at("x"), n))
            return r
        rho = self.graph.symbols("rho", self.k)
        gap = [
            x - total([self.graph.zero, *(self.eq.tree_q[i] * float(c) for i, c in enumerate(row) if c)])
            for x, row in zip(rho, self.rows, strict=True)
        ]
        step, ok = self._fitted(gap)
        size = self.graph.zero
        for x in step:
            size = maximum(size, absolute(x))
        fit = Function("model_fit", self._inputs(rho=self.k), {"d": self._carried(step), "size": [size], "ok": [ok]})
        left = r.local("left", 1)
        with r.until(POSES):
            places = {"d": w.place("correction"), "size": w.place("size"), "ok": w.place("ok")}
            r.call(fit, q=s.place("pose"), p="p", rho=sensed["rho"], **places)
            r.store(left, 0, r.load("w", w.at("size")))
            with r.when(opposite(r.load("w", w.at("ok")) > 0.0)):
                r.store("w", w.at("status"), LOST_CLOSURE)
            self._step(r)
            self._close(r)
            r.leave(r.load("w", w.at("status")) > 0.0)
            r.leave(r.load(left, 0) < NEAR)
        speed, _ = self._fitted(self.graph.symbols("rate", self.k))
        rates = Function("model_rates", self._inputs(rate=self.k), {"v": speed})
        r.call(rates, q=s.place("pose"), p="p", rate=sensed["rate"], v=w.place("v"))
        own = [int(i) for i in self.mechanism.closure.independent] if self.mechanism.loops else range(n)
        r.store_all("w", w.at("x"), [r.load("s", s.at("pose", i)) for i in own])
        return r

    def moved(self) -> Routine:
        """Return what moves the model to the wanted pose, by the errors of its coordinates."""
        r = Routine(self.graph, "model_moved", ("s", "p", "w"))
        s, w = self.memory.state, self.memory.work
        error = self.graph.symbols("t", self.n)
        moved = Function("model_carried", self._inputs(t=self.n), {"d": self._carried(error)})
        r.call(moved, q=s.place("pose"), p="p", t=w.place("error"), d=w.place("correction"))
        self._step(r)
        self._close(r)
        return r

    # ---- torques

    def _internal(self, load: Sequence[Node]) -> list[Node]:
        """Return the part of motor torques that presses the robot against itself."""
        part, _ = self._fitted(load)
        return [x - dot(row, part) for x, row in zip(load, self.A, strict=True)]

    def shared(self, force: Sequence[Node]) -> tuple[list[Node], Node]:
        """Return the least motor torques for forces on the coordinates, with the preload, and whether there are any."""
        part, ok = self._divided(force)
        internal = self._internal(self.p("preload")[: self.k]) if self.k > self.n else [self.graph.zero] * self.k
        return [dot(row, part) + x for row, x in zip(self.A, internal, strict=True)], ok

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

    def distribute(self) -> Routine:
        """Return what takes the internal part out of the torques, where the law says so, and adds that of the preload."""
        r = Routine(self.graph, "model_distribute", ("s", "p", "w"))
        s, w = self.memory.state, self.memory.work
        asked, load = self.graph.symbols("t", self.k), self.p("preload")[: self.k]
        remove = self.p("remove")[0] > 0.0
        own = [x - where(remove, y, 0.0) for x, y in zip(asked, self._internal(asked), strict=True)]
        shared = Function(
            "model_shared",
            self._inputs(t=self.k),
            {"d": [x + y for x, y in zip(own, self._internal(load), strict=True)], "ok": [self._fitted(asked)[1]]},
        )
        r.call(shared, q=s.place("pose"), p="p", t=w.place("torque"), d=w.place("rho"), ok=w.place("ok"))
        r.store_all("w", w.at("torque"), r.load_all("w", w.at("rho"), self.k))
        with r.when(opposite(r.load("w", w.at("ok")) > 0.0)):
            r.store("w", w.at("status"), LOST_CLOSURE)
        return r
