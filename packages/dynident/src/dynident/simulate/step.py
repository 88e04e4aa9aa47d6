"""The time loop of a machine: control tick, stages of the integrator, record, stops and reversals.

An owner of friction with speed c nu sticks while the force that keeps it at rest stays between its levels F(-1) and F(+1),

    c nu_dot = -c nu / h   with   F(-1) <= f <= F(+1),    or    f at a level and it slips,    M nu_dot = force - sum c^T f

which is solved with the accelerations of every stage (projected Gauss-Seidel on W = C M^-1 C^T, from the forces of the stage
before): no creep and no elastic displacement, for any inertias. A sliding owner keeps its side for a whole step, so the
integrator sees a smooth force. If its speed has changed sign at the end, friction applied after the stop is corrected: by an
impulse that stops it, if friction can, or otherwise reverses the friction, and by the corresponding displacement. Stops and
reversals are then as accurate as a speed that is linear within the step.

With loops all tree positions are integrated with v_t = G nu and projected onto the closure once per step. This costs one
evaluation per stage instead of a Newton solve, and keeps the order of the method: G is also smooth at a stage's distance
from the closure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, reduce

from dynident.friction.dynamic import DynamicLaw
from dynident.graph.algebra import NodeRows, absolute, both, either, equal, floor, maximum, minimum, opposite, sign, sqrt, where
from dynident.graph.expression import Function, Node, total
from dynident.graph.routine import Place, Routine
from dynident.mechanics.branch import branch_routine
from dynident.mechanics.functions import geometry_key
from dynident.mechanism.mechanism import Mechanism
from dynident.simulate.drives import within
from dynident.simulate.dynamics import Dynamics, solve
from dynident.simulate.friction import laws_of
from dynident.simulate.layout import FINE, LOST_CLOSURE, SINGULAR_MASS, UNSTABLE, Field, MachineRoutine, largest

SWEEPS = 200  # at most; one or two at rest
SETTLED = 1e-14  # change of a force relative to the range between its levels
LEAST = 1e-12  # remaining share of a range that counts as none


class Sticking:
    """The routines of one machine: `hold` within a stage, `settle` at the end of a step."""

    arrays = ("s", "p", "w", "m")

    def __init__(self, dynamics: Dynamics) -> None:
        self.dynamics, self.graph = dynamics, dynamics.graph
        self.layout = dynamics.layout
        self.n, self.B, self.J = dynamics.n, self.layout.bound, len(self.layout.jumping)

    @cached_property
    def _replies(self) -> Function:
        """Responses to unit forces on owners in a stage."""
        m = self.layout.motion
        return self._made("replies", m.L, m.D, self.dynamics.motors if self.layout.loop else self.dynamics.mass)

    @cached_property
    def _whole(self) -> Function:
        """Responses of mechanism and drives together, also if a stage joins them iteratively."""
        m, mass = self.layout.motion, self.dynamics.mass
        return self._made("whole_replies", m.whole_factors, m.whole_inverses, mass) if self.layout.loop else self._replies

    def _made(self, name: str, factors: Field, inverses: Field, mass: NodeRows) -> Function:
        """Return M^-1 c^T of every owner that moves with the mechanism, W, and their accelerations c nu_dot."""
        d, n, graph = self.dynamics, self.n, self.graph
        C = [d.owner_form(self.layout.owners[i]) for i in self.layout.jumping[: self.B]]
        zero = graph.zero
        M = [row[::-1] for row in mass[::-1]]
        # Branches of a tree are decoupled: structural zeros of M that stay zero are left out.
        filled = [[not M[i][j].is_const(0.0) for j in range(n)] for i in range(n)]
        for j in range(n):
            for i in range(j + 1, n):
                for e in range(j + 1, i):
                    filled[i][e] = filled[i][e] or (filled[i][j] and filled[e][j])
        known = factors.symbols(graph)
        L: NodeRows = [[known[i * n + j] if j < i and filled[i][j] else zero for j in range(n)] for i in range(n)]
        X = solve(L, inverses.symbols(graph), [[row[i] for row in C] for i in range(n)])  # (n, B)
        W = [[total([zero, *(c * X[r][o] for r, c in enumerate(row))]) for o in range(self.B)] for row in C]
        u = [total([zero, *(c * a for c, a in zip(row, d.acceleration, strict=True))]) for row in C]
        columns = [X[r][o] for o in range(self.B) for r in range(n)]
        inputs = {**d.inputs("k"), "m": self.layout.motion.size}
        return Function(name, inputs, {"x": columns, "W": [x for row in W for x in row], "u": u})

    def _ask(self, r: MachineRoutine, replies: Function, y: str, k: str, u: Field) -> None:
        """Find the responses at the state y, and the rates u of owners from the rates k of the coordinates."""
        r.call(replies, y=y, k=k, x=r.at(r.w.X), W=r.at(r.w.W), u=r.at(u))

    def _sweep(
        self,
        r: MachineRoutine,
        loads: Field,
        rates: Field,
        on: Sequence[Node],
        low: Sequence[Node],
        high: Sequence[Node],
        pull: Sequence[Node],
        slack: Node | float = 0.0,
    ) -> None:
        """Find loads (forces or impulses) between limits that bring the rates (accelerations or speeds) of owners to -pull."""
        B = self.B
        W = [[r.get(r.w.W, i * B + j) for j in range(B)] for i in range(B)]
        inverse = [1.0 / where(W[o][o] > 0.0, W[o][o], 1.0) for o in range(B)]
        size = [high[o] - low[o] for o in range(B)]
        scale = [1.0 / where(high[o] > low[o], size[o], 1.0) for o in range(B)]
        with r.until(SWEEPS):
            f, u = r.get_all(loads, B), r.get_all(rates, B)
            change = self.graph.zero
            for o in range(B):
                wanted = within(f[o] + (u[o] + pull[o]) * inverse[o], low[o] - slack * size[o], high[o] + slack * size[o])
                step = where(on[o], wanted - f[o], 0.0)
                f[o] = where(on[o], wanted, f[o])
                u = [x - W[j][o] * step for j, x in enumerate(u)]
                change = maximum(change, absolute(step) * scale[o])
            r.put_all(loads, f)
            r.put_all(rates, u)
            r.leave(change < SETTLED)

    def _states(self, r: MachineRoutine, count: int) -> tuple[list[Node], list[Node], list[Node], list[Node]]:
        """Return side, held force and both levels of some owners."""
        side, held, low, high = (r.get_all(field, count) for field in (r.s.side, r.s.held, r.m.low, r.m.high))
        return side, held, low, high

    def hold(self) -> MachineRoutine:
        """Return the routine of holding friction: it corrects the accelerations in k and stores the forces."""
        r = MachineRoutine(self.layout, self.graph, "hold", ("y", "k", *self.arrays))
        n, B = self.n, self.B
        self._ask(r, self._replies, "y", "k", r.w.acceleration)
        side, held, low, high = self._states(r, B)
        now = r.get_all(r.m.now, B)
        rate = 1.0 / r.get(r.p.step)
        on = [both(equal(side[o], 0.0), high[o] > low[o]) for o in range(B)]
        first = [where(on[o], within(held[o], low[o], high[o]), 0.0) for o in range(B)]
        slack = r.get(r.p.slack)
        u = r.get_all(r.w.acceleration)
        for o in range(B):
            u = [x - r.get(r.w.W, j * B + o) * first[o] for j, x in enumerate(u)]
        r.put_all(r.w.force, first)
        r.put_all(r.w.acceleration, u)
        self._sweep(r, r.w.force, r.w.acceleration, on, low, high, [x * rate for x in now], slack)
        found = r.get_all(r.w.force)
        r.put_all(r.s.held, [where(on[o], found[o], held[o]) for o in range(B)])
        at = self.layout.state.v.first
        a = r.load_all("k", at, n)
        for o in range(B):
            a = [x - r.get(r.w.X, o * n + j) * found[o] for j, x in enumerate(a)]
        r.store_all("k", at, a)
        return r

    # ---- at the end of a step -----------------------------------------------------------------------------------------

    def settle(self) -> MachineRoutine:
        """Return the routine of stops, reversals, sticking and slip at the end of a step; it also updates the speeds."""
        r = MachineRoutine(self.layout, self.graph, "settle", self.arrays)
        J = self.J
        r.call(self.dynamics.speeds, y="s", u=r.at(r.w.speed))
        v, side, begin = r.get_all(r.w.speed, J), r.get_all(r.s.side), r.get_all(r.s.begin)
        tail = [
            where(side[o] * v[o] < 0.0, where(begin[o] * side[o] > 0.0, v[o] / (v[o] - begin[o]), 1.0), 0.0) for o in range(J)
        ]
        r.put_all(r.s.begin, v)
        r.put_all(r.w.tail, tail)
        r.put_all(r.s.held, r.get_all(r.m.held), self.B)  # of rotors on shafts
        with r.when(reduce(either, [side[o] * v[o] <= 0.0 for o in range(J)], self.graph.zero)):
            r.call(self._change())
        return r

    def _ranges(self, side: Node, held: Node, low: Node, high: Node, tail: Node, h: Node) -> tuple[Node, Node]:
        """Return the limits of the change of the friction impulse over the last step, after a stop or while sticking."""
        most = (high - low) * tail * h
        sticks = equal(side, 0.0)
        least = where(sticks, (low - held) * h, where(side > 0.0, -most, 0.0))
        return least, where(sticks, (high - held) * h, where(side > 0.0, 0.0, most))

    def _change(self) -> MachineRoutine:
        """Return the routine that stops owners after a change of sign of their speed, and sets all to sticking or sliding."""
        r = MachineRoutine(self.layout, self.graph, "change", self.arrays)
        J, B = self.J, self.B
        h = r.get(r.p.step)
        side, held, low, high = self._states(r, J)
        tail = r.get_all(r.w.tail)
        ranges = [self._ranges(side[o], held[o], low[o], high[o], tail[o], h) for o in range(J)]
        for o in range(B, J):
            self._stop_rotor(r, o, tail[o], ranges[o], h)
        if B:
            with r.when(reduce(either, [tail[o] > 0.0 for o in range(B)])):
                r.call(self._stop())
        r.call(self.dynamics.speeds, y="s", u=r.at(r.w.speed))
        v, impulse = r.get_all(r.w.speed, J), r.get_all(r.w.impulse)
        r.put_all(r.s.begin, v)
        for o in range(J):
            least, most = ranges[o]
            through = where(side[o] > 0.0, impulse[o] <= least, impulse[o] >= most)
            slid = where(tail[o] > 0.0, where(through, -side[o], 0.0), where(equal(v[o], 0.0), 0.0, side[o]))
            spare = LEAST * (high[o] - low[o])
            up, down = both(v[o] > 0.0, held[o] >= high[o] - spare), both(v[o] < 0.0, held[o] <= low[o] + spare)
            loose = where(v[o] > 0.0, 1.0, where(v[o] < 0.0, -1.0, 0.0))
            stuck = where(high[o] > low[o], where(up, 1.0, where(down, -1.0, 0.0)), loose)
            new = where(equal(side[o], 0.0), stuck, slid)
            r.put(r.s.side, new, o)
            rests = both(equal(new, 0.0), opposite(equal(side[o], 0.0)))
            r.put(r.s.held, where(rests, 0.0, held[o]), o)
        return r

    def _stop_rotor(self, r: MachineRoutine, o: int, tail: Node, limits: tuple[Node, Node], h: Node) -> None:
        """Correct friction applied to a rotor in front of an elastic shaft after it had stopped within the step."""
        first = self.layout.shafts[self.layout.owners[self.layout.jumping[o]].motor]
        theta, omega = r.get(r.s.theta, first), r.get(r.s.omega, first)
        inertia = r.get(r.p.shaft_inertia, first)
        impulse = where(tail > 0.0, within(omega * inertia, *limits), 0.0)
        r.put(r.w.impulse, impulse, o)
        r.put(r.s.omega, omega - impulse / inertia, first)
        r.put(r.s.theta, theta - 0.5 * tail * h * impulse / inertia, first)

    def _stop(self) -> MachineRoutine:
        """Return the routine that corrects friction applied to the mechanism after owners had stopped within the step."""
        r = MachineRoutine(self.layout, self.graph, "stop", self.arrays)
        n, B = self.n, self.B
        h = r.get(r.p.step)
        self._ask(r, self._whole, "s", "s", r.w.stop_speed)
        side, held, low, high = self._states(r, B)
        tail = r.get_all(r.w.tail, B)
        sticks = [both(equal(side[o], 0.0), high[o] > low[o]) for o in range(B)]
        on = [either(tail[o] > 0.0, sticks[o]) for o in range(B)]
        ranges = [self._ranges(side[o], held[o], low[o], high[o], tail[o], h) for o in range(B)]
        r.put_all(r.w.impulse, [0.0] * B)
        zero = [self.graph.zero] * B
        self._sweep(r, r.w.impulse, r.w.speed, on, [x for x, _ in ranges], [x for _, x in ranges], zero)
        found = r.get_all(r.w.impulse, B)
        X = [r.get_all(r.w.X, n, o * n) for o in range(B)]
        rates = r.get_all(r.s.v)
        for o in range(B):
            rates = [x - X[o][j] * found[o] for j, x in enumerate(rates)]
        r.put_all(r.s.v, rates)
        if self.layout.balls:
            return r
        last = reduce(maximum, tail)
        shift = [self.graph.zero] * n
        for o in range(B):
            part = 0.5 * where(tail[o] > 0.0, tail[o], last) * h * found[o]
            shift = [x - X[o][j] * part for j, x in enumerate(shift)]
        r.put_all(r.w.shift, shift)
        r.call(self._carried(), y="s", t=r.at(r.w.shift), d=r.at(r.w.moved))
        r.put_all(r.s.q, [x + dx for x, dx in zip(r.get_all(r.s.q), r.get_all(r.w.moved), strict=True)])
        return r

    def _carried(self) -> Function:
        """Return G t, the change of the positions with small steps t of the coordinates."""
        t = self.graph.symbols("t", self.n)
        G = self.dynamics.eq.G if self.layout.mechanism.loops else None
        moved = t if G is None else [total([self.graph.zero, *(g * x for g, x in zip(row, t, strict=True))]) for row in G]
        return Function("carried", {**self.dynamics.inputs(), "t": self.n}, {"d": moved})


SINGULAR = 1e-7  # pivot ratio of the closure below which the coordinates do not determine the other joints
FAR = 1e-3  # correction of a dependent coordinate [rad or m] after a step at which the closure counts as lost
TRIES = 4  # to find the directions of power through gears with losses; one or two suffice
TURNS = 50  # of the iterated algebraic loop
EVEN = 1e-12  # relative change at which it has converged
STAGES = (0.0, 0.5, 0.5, 1.0)  # of the classical method of Runge and Kutta, in steps


class Step:
    """The routines that move one machine."""

    def __init__(self, dynamics: Dynamics, control: Routine) -> None:
        self.d, self.graph, self.layout = dynamics, dynamics.graph, dynamics.layout
        self.control = control
        self.sticking = Sticking(dynamics) if self.layout.jumping or self.layout.remembering else None
        self.hold = self.sticking.hold() if self.sticking is not None and self.layout.bound else None
        self.motion = dynamics.motion()
        self._steps: dict[object, Routine] = {}

    # ---- one evaluation -------------------------------------------------------------------------------------------------

    def _remember(self, r: MachineRoutine, dt: Node | None) -> None:
        """Advance the states of laws with memory to a time dt after the start of the step (None: accept its end)."""
        motion = r.local("motion", 3)
        for i, law, number, at in laws_of(self.layout.owners):
            if not isinstance(law, DynamicLaw):
                continue
            if law.structure not in self._steps:
                self._steps[law.structure] = law.step(self.graph)
            speed = r.get(r.w.speed, len(self.layout.jumping) + self.layout.remembering.index(i))
            last = r.get(r.s.memory, at + law.states)
            r.store_all(motion, 0, [last, speed, r.get(r.p.step) if dt is None else dt])
            state = r.at(r.s.memory, at) if dt is None else r.at(r.w.z, at)
            r.call(self._steps[law.structure], state=state, motion=motion, numbers=r.at(r.p.law, number))
            if dt is None:
                r.put(r.s.memory, speed, at + law.states)

    @cached_property
    def derivative(self) -> MachineRoutine:
        """dy/dt at the state y, a time dt after the start of the step; status shows whether it exists."""
        r = MachineRoutine(self.layout, self.graph, "derivative", ("y", "k", "s", "p", "w", "m"))
        if self.layout.remembering:
            r.put_all(r.w.z, r.get_all(r.s.memory))
            dt = r.get(r.w.dt)
            with r.when(dt > 0.0):
                r.call(self.d.speeds, u=r.at(r.w.speed))
                self._remember(r, dt)
        if not any(map(self.layout.loses_rigidly, range(self.d.k))):
            self._evaluate(r)
        else:
            gears = self.d.gears()
            with r.until(TRIES):
                self._evaluate(r)
                r.call(gears, z=r.at(r.w.z), t=r.at(r.w.through), agree=r.at(r.w.agree))
                # For given directions of power the losses are linear in the accelerations; the last directions are tried first.
                r.put_all(r.s.through, r.get_all(r.w.through))
                r.leave(r.get(r.w.agree) > 0.0)
        status = where(r.get(r.m.solid) > 0.0, FINE, SINGULAR_MASS)
        if self.layout.mechanism.loops:
            branch, before = r.get(r.m.branch), r.get(r.s.branch)
            lost = either(opposite(r.get(r.m.pivot) >= SINGULAR), branch * before < 0.0)
            status = where(lost, LOST_CLOSURE, status)
            r.put(r.s.branch, branch)  # it distinguishes the assemblies of the loops
        r.put(r.w.status, status)
        return r

    def _evaluate(self, r: MachineRoutine) -> None:
        r.call(self.motion, z=r.at(r.w.z), e=r.at(r.w.push))
        if self.layout.loop:
            self._decoupled(r)
        else:
            self._hold(r)

    def _hold(self, r: MachineRoutine) -> None:
        """Apply holding friction."""
        if self.hold is not None:
            with r.when(r.get(r.m.stuck) > 0.0):
                r.call(self.hold)

    def _decoupled(self, r: MachineRoutine) -> None:
        """Solve (motors + mechanism) nu_dot = force with the mechanism as a disturbance of the motors [Roldan2017]."""
        n, at = self.d.n, self.layout.state.v.first
        L = [[r.get(r.m.L, i * n + j) if j < i else self.graph.zero for j in range(n)] for i in range(n)]
        D, force = r.get_all(r.m.D), r.get_all(r.m.force)
        r.store_all("k", at, r.get_all(r.s.acceleration))
        with r.until(TURNS if self.layout.loop == "iterated" else 1):
            last = r.load_all("k", at, n)
            right = []
            for i in range(n):
                terms = [r.get(r.m.other, i * n + j) * last[j] for j in range(n)]
                right.append([force[i] - sum(terms[1:], terms[0])])
            r.store_all("k", at, [x[0] for x in solve(L, D, right)])
            self._hold(r)
            new = r.load_all("k", at, n)
            change = largest(self.graph, [x - old for x, old in zip(new, last, strict=True)])
            r.leave(opposite(change > EVEN * largest(self.graph, new)))

    # ---- the loop

    def run(self) -> MachineRoutine:
        """Return the time loop: ``a`` has the number of steps, and receives the reason of a stop."""
        arrays = ("a", "s", "p", "w", "m", "table", "noise", "push", "record")
        r = MachineRoutine(self.layout, self.graph, "run", arrays)
        size, h = self.layout.moving, r.get(r.p.step)
        r.put(r.w.status, FINE)
        r.put(r.w.index, -1.0)
        with r.repeat(r.get(r.a.steps)):
            step = r.get(r.s.step)
            r.call(self.control)
            r.leave(r.get(r.w.status) > 0.0)
            for j, share in enumerate(STAGES):
                self._push(r, step + share)
                r.put(r.w.dt, share * h)
                if j > 0:
                    state = r.load_all("s", 0, size)
                    last = r.get_all(r.w.rates, size, (j - 1) * size)
                    r.put_all(r.w.stage, [x + share * h * k for x, k in zip(state, last, strict=True)])
                r.call(self.derivative, y=r.at(r.w.stage) if j > 0 else "s", k=r.at(r.w.rates, j * size))
                r.leave(r.get(r.w.status) > 0.0)
                if j == 0:
                    self._first(r, step)
                    r.leave(r.get(r.w.status) > 0.0)
            self._finish(r, h)
            self._check(r)
            r.leave(r.get(r.w.status) > 0.0)
            for i in self.layout.loading:  # loads of the ending step: load-dependent friction is one step late
                r.put(r.s.load, r.get(r.w.load, i), i)
            if self.sticking is not None:
                r.call(self.sticking.settle())
                self._remember(r, None)
            r.put(r.s.step, step + 1.0)
        r.put(r.a.status, r.get(r.w.status))
        r.put(r.a.index, r.get(r.w.index))
        return r

    def _push(self, r: MachineRoutine, time: Node) -> None:
        """Update external torques and wrenches, linear between the rows of their table."""
        width = self.layout.work.push.count
        if not self.layout.pushed and not self.layout.links:
            return
        rows = r.get(r.a.push_rows)
        at = time / r.get(r.a.push_every) - r.get(r.a.push)
        i = minimum(floor(at), rows - 1.0)
        j, share = minimum(i + 1.0, rows - 1.0), at - i
        for c in range(width):
            low, high = r.load("push", i * width + c), r.load("push", j * width + c)
            r.put(r.w.push, low + share * (high - low), c)

    def _first(self, r: MachineRoutine, step: Node) -> None:
        """Do the tasks at the start of the step: count limits, close the loops, store loads, write the record."""
        r.call(self.d.at_limit(), y="s", cut=r.at(r.w.limited))
        r.put_all(r.s.cut, [x + y for x, y in zip(r.get_all(r.s.cut), r.get_all(r.w.limited), strict=True)])
        r.put_all(r.s.acceleration, r.get_all(r.w.rates, self.d.n, self.layout.state.v.first))
        inputs: dict[str, str | Place] = {"y": "s", "z": r.at(r.w.z), "k": r.at(r.w.rates)}
        if self.layout.loading:
            r.call(self.d.loads(), **inputs, load=r.at(r.w.load))
        if self.layout.mechanism.loops:
            q, fix = r.get_all(r.s.q), r.get_all(r.m.fix)
            r.put_all(r.s.q, [x + dx for x, dx in zip(q, fix, strict=True)])
            r.put(r.w.status, where(largest(self.graph, fix) > FAR, LOST_CLOSURE, FINE))
        every, rows = r.get(r.a.record_every), r.get(r.a.record_rows)
        row = floor(step / every)
        due = both(equal(row * every, step), row - r.get(r.a.record) < rows)
        with r.when(due):
            here, fields = row - r.get(r.a.record), self.layout.record.by_name()
            places = {name: ("record", rows * float(f.first) + here * float(f.count)) for name, f in fields.items()}
            r.call(self.d.record, **inputs, **places)

    def _finish(self, r: MachineRoutine, h: Node) -> None:
        """Complete the step from the rates of all stages."""
        size = self.layout.moving
        rates = [r.get_all(r.w.rates, size, j * size) for j in range(len(STAGES))]
        rows = zip(r.load_all("s", 0, size), *rates, strict=True)
        r.store_all("s", 0, [x + h / 6.0 * (a + 2.0 * (b + c) + d) for x, a, b, c, d in rows])

    def _check(self, r: MachineRoutine) -> None:
        """Stop if a velocity or current is beyond its limit, and remove whole turns from rotation vectors."""
        s, size = self.layout.state, self.layout.moving
        limit = r.get(r.p.limit)
        y = r.load_all("s", 0, size)
        index = self.graph.const(-1.0)
        for i in reversed(range(s.v.first, size)):
            if i not in s.theta.places:
                index = where(absolute(y[i]) < limit, index, float(i - s.v.first))
        r.put(r.w.index, index)
        r.put(r.w.status, where(index < 0.0, FINE, UNSTABLE))
        for free, first in self.layout.balls:
            turn = first + 3 if free else first
            x = y[turn : turn + 3]
            angle = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])
            wound = angle > 1.5 * math.pi
            factor = where(wound, 1.0 - 2.0 * math.pi / where(wound, angle, 1.0), 1.0)
            r.store_all("s", turn, [c * factor for c in x])

    # ---- start ----------------------------------------------------------------------------------------------------------

    def placed(self) -> MachineRoutine:
        """Return the routine that sets the state to coordinates x[:n] and velocities x[n:], following loops from their pose."""
        r = MachineRoutine(self.layout, self.graph, "placed", ("s", "p", "w", "x", "status"))
        layout, mechanism, model, n = self.layout, self.layout.mechanism, self.layout.model, self.d.n
        r.store("status", 0, FINE)
        if mechanism.loops:
            follow_branch(r, mechanism, "", r.at(r.s.q), ("x", 0), ("status", 0))
        else:
            r.put_all(r.s.q, r.load_all("x", 0, n))
        r.put_all(r.s.v, r.load_all("x", n, n))
        self.d.sense(r)
        for a, first in enumerate(layout.shafts[:-1]):
            ratio = r.get(r.p.ratio, a)
            for e in range(first, layout.shafts[a + 1]):
                r.put(r.s.theta, ratio * r.get(r.w.rho, a), e)
                r.put(r.s.omega, ratio * r.get(r.w.rho_v, a), e)
        jumping = len(layout.jumping)
        if layout.jumping or layout.remembering:
            r.call(self.d.speeds, y="s", u=r.at(r.w.speed))
            speed = r.get_all(r.w.speed)
            r.put_all(r.s.begin, speed[:jumping])
            r.put_all(r.s.side, [sign(v) for v in speed[:jumping]])
            for i, law, _, at in laws_of(layout.owners):
                if isinstance(law, DynamicLaw):
                    r.put(r.s.memory, speed[jumping + layout.remembering.index(i)], at + law.states)
        if not model.loops:
            r.put_all(r.s.pose, r.load_all("x", 0, n))
        elif geometry_key(model, frames=False) == geometry_key(mechanism, frames=False):
            r.put_all(r.s.pose, r.get_all(r.s.q))
        else:
            follow_branch(r, model, "_model", r.at(r.s.pose), ("x", 0), ("status", 0))
        return r


def follow_branch(r: Routine, robot: Mechanism, label: str, pose: Place, given: Place, status: Place) -> None:
    """Move the closed positions of a robot with loops to given coordinates, or set the status."""
    walk, width = branch_routine(robot, label), len(robot.tree.coordinates)
    head, work, out = r.local(f"head{label}", 2), r.local(f"work{label}", 3 * width + 8), r.local(f"out{label}", width)
    r.store_all(head, 0, [1.0, -1.0])
    r.call(walk, head=head, given=given, start=pose, work=work, out=out)
    lost = r.load(head, 1) >= 0.0
    with r.when(lost):
        r.store(*status, LOST_CLOSURE)
    with r.otherwise():
        r.store_all(*pose, r.load_all(out, 0, width))
