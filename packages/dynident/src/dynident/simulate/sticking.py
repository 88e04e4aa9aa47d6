"""Joints and rotors that dry friction holds, and the moments at which they stop or turn back.

An owner of friction with speed c nu sticks while the force that keeps it at rest stays between its levels F(-1) and F(+1),

    c nu_dot = -c nu / h   with   F(-1) <= f <= F(+1),    or    f at a level and it slips,    M nu_dot = force - sum c^T f

which is solved with the accelerations of every stage (projected Gauss-Seidel on W = C M^-1 C^T, from the forces of the stage
before): nothing creeps, no elastic displacement, no matter what the inertias are. One that slides keeps its side for a whole
step, so the integrator sees a smooth force. If its speed has changed sign at the end, what friction did after the stop is made
good: by an impulse that stops it, if friction can, or else turns the friction round, and by the displacement of that. Stops
and reversals are then as accurate as a speed that is linear within the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce

from dynident.graph.elementary import absolute, both, either, equal, maximum, opposite, where
from dynident.graph.expression import Function, Node, total
from dynident.mechanics.solving import NodeRows
from dynident.simulate.drives import within
from dynident.simulate.dynamics import Dynamics, solve
from dynident.simulate.shape import MachineRoutine

SWEEPS = 200  # at most; one or two while everything rests
SETTLED = 1e-14  # change of a force over the range between its levels
LEAST = 1e-12  # share of a range that is left when it counts as used up


class Sticking:
    """The routines of one machine: `hold` within a stage, `settle` at the end of a step."""

    arrays = ("s", "p", "w", "m")

    def __init__(self, dynamics: Dynamics) -> None:
        self.dynamics, self.graph = dynamics, dynamics.graph
        self.shape, self.memory = dynamics.shape, dynamics.memory
        self.n, self.B, self.J = dynamics.n, dynamics.shape.bound, len(dynamics.shape.jumping)

    @cached_property
    def _replies(self) -> Function:
        """Replies to unit forces on owners in a stage."""
        return self._made("", "replies")

    @cached_property
    def _whole(self) -> Function:
        """Replies of mechanism and drives together, also where a stage joins them step by step."""
        return self._made("2", "whole_replies") if self.shape.loop else self._replies

    def _made(self, which: str, name: str) -> Function:
        """Return M^-1 c^T of every owner that moves with the mechanism, W, and their accelerations c nu_dot."""
        d, n = self.dynamics, self.n
        m, graph = self.memory.motion, self.graph
        C = [d.owner_form(self.shape.owners[i]) for i in self.shape.jumping[: self.B]]
        zero = graph.zero
        M = [row[::-1] for row in (d.motors if self.shape.loop and not which else d.mass)[::-1]]
        # Branches of a tree do not feel each other: what is zero in M by its structure and stays so is left out here too.
        filled = [[not M[i][j].is_const(0.0) for j in range(n)] for i in range(n)]
        for j in range(n):
            for i in range(j + 1, n):
                for e in range(j + 1, i):
                    filled[i][e] = filled[i][e] or (filled[i][j] and filled[e][j])
        L: NodeRows = [
            [m.symbol(graph, "L" + which, i * n + j) if j < i and filled[i][j] else zero for j in range(n)] for i in range(n)
        ]
        D = m.symbols(graph, "D" + which)
        X = solve(L, D, [[row[i] for row in C] for i in range(n)])  # (n, B)
        W = [[total([zero, *(c * X[r][o] for r, c in enumerate(row))]) for o in range(self.B)] for row in C]
        u = [total([zero, *(c * a for c, a in zip(row, d.acceleration, strict=True))]) for row in C]
        columns = [X[r][o] for o in range(self.B) for r in range(n)]
        inputs = {**d.inputs("k"), "m": m.size}
        return Function(name, inputs, {"x": columns, "W": [x for row in W for x in row], "u": u})

    def _ask(self, r: MachineRoutine, replies: Function, y: str, k: str) -> None:
        r.call(replies, y=y, k=k, x=r.at("w.X"), W=r.at("w.W"), u=r.at("w.speed"))

    def _sweep(
        self,
        r: MachineRoutine,
        on: Sequence[Node],
        low: Sequence[Node],
        high: Sequence[Node],
        pull: Sequence[Node],
        slack: Node | float = 0.0,
    ) -> None:
        """Find the forces (w.impulse) between limits that bring the accelerations or speeds (w.speed) of owners to -pull."""
        B = self.B
        W = [[r.get("w.W", i * B + j) for j in range(B)] for i in range(B)]
        inverse = [1.0 / where(W[o][o] > 0.0, W[o][o], 1.0) for o in range(B)]
        size = [high[o] - low[o] for o in range(B)]
        scale = [1.0 / where(high[o] > low[o], size[o], 1.0) for o in range(B)]
        with r.until(SWEEPS):
            f, u = r.get_all("w.impulse", B), r.get_all("w.speed", B)
            change = self.graph.zero
            for o in range(B):
                wanted = within(f[o] + (u[o] + pull[o]) * inverse[o], low[o] - slack * size[o], high[o] + slack * size[o])
                step = where(on[o], wanted - f[o], 0.0)
                f[o] = where(on[o], wanted, f[o])
                u = [x - W[j][o] * step for j, x in enumerate(u)]
                change = maximum(change, absolute(step) * scale[o])
            r.put_all("w.impulse", f)
            r.put_all("w.speed", u)
            r.leave(change < SETTLED)

    def _states(self, r: MachineRoutine, count: int) -> tuple[list[Node], list[Node], list[Node], list[Node]]:
        """Return side, held force and both levels of some owners."""
        side, held, low, high = (r.get_all(name, count) for name in ("s.side", "s.held", "m.low", "m.high"))
        return side, held, low, high

    def hold(self) -> MachineRoutine:
        """Return what lets friction hold all it can: it changes the accelerations in k and keeps the forces."""
        r = MachineRoutine(self.memory, self.graph, "hold", ("y", "k", *self.arrays))
        n, B = self.n, self.B
        self._ask(r, self._replies, "y", "k")
        side, held, low, high = self._states(r, B)
        now = r.get_all("m.now", B)
        rate = 1.0 / r.get("p.step")
        on = [both(equal(side[o], 0.0), high[o] > low[o]) for o in range(B)]
        first = [where(on[o], within(held[o], low[o], high[o]), 0.0) for o in range(B)]
        slack = r.get("p.slack")
        u = r.get_all("w.speed", B)
        for o in range(B):
            u = [x - r.get("w.W", j * B + o) * first[o] for j, x in enumerate(u)]
        r.put_all("w.impulse", first)
        r.put_all("w.speed", u)
        self._sweep(r, on, low, high, [x * rate for x in now], slack)
        found = r.get_all("w.impulse", B)
        r.put_all("s.held", [where(on[o], found[o], held[o]) for o in range(B)])
        at = self.memory.state.at("v")
        a = r.load_all("k", at, n)
        for o in range(B):
            a = [x - r.get("w.X", o * n + j) * found[o] for j, x in enumerate(a)]
        r.store_all("k", at, a)
        return r

    # ---- at the end of a step -----------------------------------------------------------------------------------------

    def _measure(self, r: MachineRoutine) -> None:
        r.call(self.dynamics.speeds, y="s", u=r.at("w.speed"))

    def settle(self) -> MachineRoutine:
        """Return what lets owners stop, turn back, stick or slip at the end of a step; their speeds are known afterwards."""
        r = MachineRoutine(self.memory, self.graph, "settle", self.arrays)
        J = self.J
        self._measure(r)
        v, side, begin = r.get_all("w.speed", J), r.get_all("s.side"), r.get_all("s.begin")
        tail = [
            where(side[o] * v[o] < 0.0, where(begin[o] * side[o] > 0.0, v[o] / (v[o] - begin[o]), 1.0), 0.0) for o in range(J)
        ]
        r.put_all("s.begin", v)
        r.put_all("w.tail", tail)
        r.put_all("s.held", r.get_all("m.held"), self.B)  # of rotors on shafts
        with r.when(reduce(either, [side[o] * v[o] <= 0.0 for o in range(J)], self.graph.zero)):
            r.call(self._change())
        return r

    def _ranges(self, side: Node, held: Node, low: Node, high: Node, tail: Node, h: Node) -> tuple[Node, Node]:
        """Return how far the impulse of friction over the last step may still be changed: after the stop, or of what sticks."""
        most = (high - low) * tail * h
        sticks = equal(side, 0.0)
        least = where(sticks, (low - held) * h, where(side > 0.0, -most, 0.0))
        return least, where(sticks, (high - held) * h, where(side > 0.0, 0.0, most))

    def _change(self) -> MachineRoutine:
        """Return what stops owners whose speed has changed its sign, and decides for all whether they stick or slide."""
        r = MachineRoutine(self.memory, self.graph, "change", self.arrays)
        J, B = self.J, self.B
        h = r.get("p.step")
        side, held, low, high = self._states(r, J)
        tail = r.get_all("w.tail")
        ranges = [self._ranges(side[o], held[o], low[o], high[o], tail[o], h) for o in range(J)]
        for o in range(B, J):
            self._stop_rotor(r, o, tail[o], ranges[o], h)
        if B:
            with r.when(reduce(either, [tail[o] > 0.0 for o in range(B)])):
                r.call(self._stop())
        self._measure(r)
        v, impulse = r.get_all("w.speed", J), r.get_all("w.impulse")
        r.put_all("s.begin", v)
        for o in range(J):
            least, most = ranges[o]
            through = where(side[o] > 0.0, impulse[o] <= least, impulse[o] >= most)
            slid = where(tail[o] > 0.0, where(through, -side[o], 0.0), where(equal(v[o], 0.0), 0.0, side[o]))
            spare = LEAST * (high[o] - low[o])
            up, down = both(v[o] > 0.0, held[o] >= high[o] - spare), both(v[o] < 0.0, held[o] <= low[o] + spare)
            loose = where(v[o] > 0.0, 1.0, where(v[o] < 0.0, -1.0, 0.0))
            stuck = where(high[o] > low[o], where(up, 1.0, where(down, -1.0, 0.0)), loose)
            new = where(equal(side[o], 0.0), stuck, slid)
            r.put("s.side", new, o)
            rests = both(equal(new, 0.0), opposite(equal(side[o], 0.0)))
            turned = both(tail[o] > 0.0, opposite(equal(side[o], 0.0)))
            r.put("s.held", where(either(rests, turned), 0.0, held[o]), o)
        return r

    def _stop_rotor(self, r: MachineRoutine, o: int, tail: Node, limits: tuple[Node, Node], h: Node) -> None:
        """Make good what friction did to a rotor in front of an elastic shaft after it had stopped."""
        first = self.shape.shafts[self.shape.owners[self.shape.jumping[o]].motor]
        theta, omega = r.get("s.theta", first), r.get("s.omega", first)
        inertia = r.get("p.shaft_inertia", first)
        impulse = where(tail > 0.0, within(omega * inertia, *limits), 0.0)
        r.put("w.impulse", impulse, o)
        r.put("s.omega", omega - impulse / inertia, first)
        r.put("s.theta", theta - 0.5 * tail * h * impulse / inertia, first)

    def _stop(self) -> MachineRoutine:
        """Return what makes good what friction did to the mechanism after owners had stopped."""
        r = MachineRoutine(self.memory, self.graph, "stop", self.arrays)
        n, B = self.n, self.B
        h = r.get("p.step")
        v = r.get_all("w.speed", B)
        self._ask(r, self._whole, "s", "s")
        side, held, low, high = self._states(r, B)
        tail = r.get_all("w.tail", B)
        sticks = [both(equal(side[o], 0.0), high[o] > low[o]) for o in range(B)]
        on = [either(tail[o] > 0.0, sticks[o]) for o in range(B)]
        ranges = [self._ranges(side[o], held[o], low[o], high[o], tail[o], h) for o in range(B)]
        r.put_all("w.impulse", [0.0] * B)
        r.put_all("w.speed", v)
        zero = [self.graph.zero] * B
        self._sweep(r, on, [x for x, _ in ranges], [x for _, x in ranges], zero)
        found = r.get_all("w.impulse", B)
        X = [r.get_all("w.X", n, o * n) for o in range(B)]
        rates = r.get_all("s.v")
        for o in range(B):
            rates = [x - X[o][j] * found[o] for j, x in enumerate(rates)]
        r.put_all("s.v", rates)
        if self.shape.balls:
            return r
        last = reduce(maximum, tail)
        shift = [self.graph.zero] * n
        for o in range(B):
            part = 0.5 * where(tail[o] > 0.0, tail[o], last) * h * found[o]
            shift = [x - X[o][j] * part for j, x in enumerate(shift)]
        r.put_all("w.trial", shift)
        r.call(self._carried(), y="s", t=r.at("w.trial"), d=r.at("w.drift"))
        r.put_all("s.q", [x + dx for x, dx in zip(r.get_all("s.q"), r.get_all("w.drift"), strict=True)])
        return r

    def _carried(self) -> Function:
        """Return G t: how the positions move with small steps t of the coordinates."""
        t = self.graph.symbols("t", self.n)
        G = self.dynamics.eq.G if self.shape.mechanism.loops else None
        moved = t if G is None else [total([self.graph.zero, *(g * x for g, x in zip(row, t, strict=True))]) for row in G]
        return Function("carried", {**self.dynamics.inputs(), "t": self.n}, {"d": moved})
