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
from functools import cached_property

from dynident.graph import Function, Node, Routine, absolute, both, either, equal, maximum, opposite, total, where
from dynident.mechanics import NodeRows
from dynident.simulate.drives import within
from dynident.simulate.dynamics import Dynamics, solve

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
        self.speeds = dynamics.speeds

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

    def _ask(self, r: Routine, replies: Function, y: str, k: str) -> None:
        w = self.memory.work
        r.call(replies, y=y, s="s", p="p", k=k, m="m", x=w.place("X"), W=w.place("W"), u=w.place("speed"))

    def _sweep(
        self,
        r: Routine,
        on: Sequence[Node],
        low: Sequence[Node],
        high: Sequence[Node],
        force: str,
        speed: str,
        pull: Sequence[Node],
        slack: Node | float = 0.0,
    ) -> None:
        """Find the forces (or impulses) between limits that bring the speeds (or accelerations) of owners to -pull."""
        w, B = self.memory.work, self.B
        W = [[r.load("w", w.at("W", i * B + j)) for j in range(B)] for i in range(B)]
        inverse = [1.0 / where(W[o][o] > 0.0, W[o][o], 1.0) for o in range(B)]
        size = [high[o] - low[o] for o in range(B)]
        scale = [1.0 / where(high[o] > low[o], size[o], 1.0) for o in range(B)]
        with r.until(SWEEPS):
            f, u = (r.load_all("w", w.at(name), B) for name in (force, speed))
            change = self.graph.zero
            for o in range(B):
                wanted = within(f[o] + (u[o] + pull[o]) * inverse[o], low[o] - slack * size[o], high[o] + slack * size[o])
                step = where(on[o], wanted - f[o], 0.0)
                f[o] = where(on[o], wanted, f[o])
                u = [x - W[j][o] * step for j, x in enumerate(u)]
                change = maximum(change, absolute(step) * scale[o])
            r.store_all("w", w.at(force), f)
            r.store_all("w", w.at(speed), u)
            r.leave(change < SETTLED)

    def _states(self, r: Routine, count: int) -> tuple[list[Node], list[Node], list[Node], list[Node]]:
        """Return side, held force and both levels of some owners."""
        s, m = self.memory.state, self.memory.motion
        side, held = (r.load_all("s", s.at(name), count) for name in ("side", "held"))
        low, high = (r.load_all("m", m.at(name), count) for name in ("low", "high"))
        return side, held, low, high

    def hold(self) -> Routine:
        """Return what lets friction hold all it can: it changes the accelerations in k and keeps the forces."""
        r = Routine(self.graph, "hold", ("y", "k", *self.arrays))
        s, w, n, B = self.memory.state, self.memory.work, self.n, self.B
        self._ask(r, self._replies, "y", "k")
        side, held, low, high = self._states(r, B)
        now = r.load_all("m", self.memory.motion.at("now"), B)
        rate = 1.0 / r.load("p", self.memory.numbers.at("step"))
        on = [both(equal(side[o], 0.0), high[o] > low[o]) for o in range(B)]
        first = [where(on[o], within(held[o], low[o], high[o]), 0.0) for o in range(B)]
        slack = r.load("p", self.memory.numbers.at("slack"))
        u = r.load_all("w", w.at("speed"), B)
        for o in range(B):
            u = [x - r.load("w", w.at("W", j * B + o)) * first[o] for j, x in enumerate(u)]
        r.store_all("w", w.at("impulse"), first)
        r.store_all("w", w.at("speed"), u)
        self._sweep(r, on, low, high, "impulse", "speed", [x * rate for x in now], slack)
        found = r.load_all("w", w.at("impulse"), B)
        r.store_all("s", s.at("held"), [where(on[o], found[o], held[o]) for o in range(B)])
        at = s.at("v")
        a = r.load_all("k", at, n)
        for o in range(B):
            a = [x - r.load("w", w.at("X", o * n + j)) * found[o] for j, x in enumerate(a)]
        r.store_all("k", at, a)
        return r

    # ---- at the end of a step -----------------------------------------------------------------------------------------

    def _measure(self, r: Routine) -> None:
        r.call(self.speeds, y="s", s="s", p="p", u=self.memory.work.place("speed"))

    def settle(self) -> Routine:
        """Return what lets owners stop, turn back, stick or slip at the end of a step; their speeds are known afterwards."""
        r = Routine(self.graph, "settle", self.arrays)
        s, w, J = self.memory.state, self.memory.work, self.J
        self._measure(r)
        v, side = r.load_all("w", w.at("speed"), J), r.load_all("s", s.at("side"), J)
        begin = r.load_all("s", s.at("begin"), J)
        tail = [
            where(side[o] * v[o] < 0.0, where(begin[o] * side[o] > 0.0, v[o] / (v[o] - begin[o]), 1.0), 0.0) for o in range(J)
        ]
        r.store_all("s", s.at("begin"), v)
        r.store_all("w", w.at("tail"), tail)
        if J > self.B:
            place = self.memory.motion.at("held")
            r.store_all("s", s.at("held", self.B), r.load_all("m", place, J - self.B))
        change = self.graph.zero
        for o in range(J):
            change = either(change, side[o] * v[o] <= 0.0)
        with r.when(change):
            r.call(self._change(), s="s", p="p", w="w", m="m")
        return r

    def _ranges(self, side: Node, held: Node, low: Node, high: Node, tail: Node, h: Node) -> tuple[Node, Node]:
        """Return how far the impulse of friction over the last step may still be changed: after the stop, or of what sticks."""
        most = (high - low) * tail * h
        sticks = equal(side, 0.0)
        least = where(sticks, (low - held) * h, where(side > 0.0, -most, 0.0))
        return least, where(sticks, (high - held) * h, where(side > 0.0, 0.0, most))

    def _change(self) -> Routine:
        """Return what stops owners whose speed has changed its sign, and decides for all whether they stick or slide."""
        r = Routine(self.graph, "change", self.arrays)
        s, w, J, B = self.memory.state, self.memory.work, self.J, self.B
        h = r.load("p", self.memory.numbers.at("step"))
        side, held, low, high = self._states(r, J)
        tail = r.load_all("w", w.at("tail"), J)
        ranges = [self._ranges(side[o], held[o], low[o], high[o], tail[o], h) for o in range(J)]
        for o in range(B, J):
            self._stop_rotor(r, o, tail[o], ranges[o], h)
        stops = self.graph.zero
        for o in range(B):
            stops = either(stops, tail[o] > 0.0)
        if B:
            with r.when(stops):
                r.call(self._stop(), s="s", p="p", w="w", m="m")
        self._measure(r)
        v, impulse = r.load_all("w", w.at("speed"), J), r.load_all("w", w.at("impulse"), J)
        r.store_all("s", s.at("begin"), v)
        for o in range(J):
            least, most = ranges[o]
            through = where(side[o] > 0.0, impulse[o] <= least, impulse[o] >= most)
            slid = where(tail[o] > 0.0, where(through, -side[o], 0.0), where(equal(v[o], 0.0), 0.0, side[o]))
            spare = LEAST * (high[o] - low[o])
            up, down = both(v[o] > 0.0, held[o] >= high[o] - spare), both(v[o] < 0.0, held[o] <= low[o] + spare)
            loose = where(v[o] > 0.0, 1.0, where(v[o] < 0.0, -1.0, 0.0))
            stuck = where(high[o] > low[o], where(up, 1.0, where(down, -1.0, 0.0)), loose)
            new = where(equal(side[o], 0.0), stuck, slid)
            r.store("s", s.at("side", o), new)
            rests = both(equal(new, 0.0), opposite(equal(side[o], 0.0)))
            turned = both(tail[o] > 0.0, opposite(equal(side[o], 0.0)))
            r.store("s", s.at("held", o), where(either(rests, turned), 0.0, held[o]))
        return r

    def _stop_rotor(self, r: Routine, o: int, tail: Node, limits: tuple[Node, Node], h: Node) -> None:
        """Make good what friction did to a rotor in front of an elastic shaft after it had stopped."""
        s, w = self.memory.state, self.memory.work
        first = self.shape.shafts[self.shape.owners[self.shape.jumping[o]].motor]
        theta, omega = (r.load("s", s.at(name, first)) for name in ("theta", "omega"))
        inertia = r.load("p", self.memory.numbers.at("shaft_inertia", first))
        impulse = where(tail > 0.0, within(omega * inertia, *limits), 0.0)
        r.store("w", w.at("impulse", o), impulse)
        r.store("s", s.at("omega", first), omega - impulse / inertia)
        r.store("s", s.at("theta", first), theta - 0.5 * tail * h * impulse / inertia)

    def _stop(self) -> Routine:
        """Return what makes good what friction did to the mechanism after owners had stopped."""
        r = Routine(self.graph, "stop", self.arrays)
        s, w, n, B = self.memory.state, self.memory.work, self.n, self.B
        h = r.load("p", self.memory.numbers.at("step"))
        v = r.load_all("w", w.at("speed"), B)
        self._ask(r, self._whole, "s", "s")
        side, held, low, high = self._states(r, B)
        tail = r.load_all("w", w.at("tail"), B)
        sticks = [both(equal(side[o], 0.0), high[o] > low[o]) for o in range(B)]
        on = [either(tail[o] > 0.0, sticks[o]) for o in range(B)]
        ranges = [self._ranges(side[o], held[o], low[o], high[o], tail[o], h) for o in range(B)]
        r.store_all("w", w.at("impulse"), [0.0] * B)
        r.store_all("w", w.at("speed"), v)
        zero = [self.graph.zero] * B
        self._sweep(r, on, [x for x, _ in ranges], [x for _, x in ranges], "impulse", "speed", zero)
        found = r.load_all("w", w.at("impulse"), B)
        X = [r.load_all("w", w.at("X", o * n), n) for o in range(B)]
        rates = r.load_all("s", s.at("v"), n)
        for o in range(B):
            rates = [x - X[o][j] * found[o] for j, x in enumerate(rates)]
        r.store_all("s", s.at("v"), rates)
        if self.shape.balls:
            return r
        last = self.graph.zero
        for o in range(B):
            last = maximum(last, tail[o])
        shift = [self.graph.zero] * n
        for o in range(B):
            part = 0.5 * where(tail[o] > 0.0, tail[o], last) * h * found[o]
            shift = [x - X[o][j] * part for j, x in enumerate(shift)]
        r.store_all("w", w.at("trial"), shift)
        count = s.count("q")
        r.call(self._carried(), y="s", s="s", p="p", t=w.place("trial"), d=w.place("drift"))
        q, moved = r.load_all("s", s.at("q"), count), r.load_all("w", w.at("drift"), count)
        r.store_all("s", s.at("q"), [x + dx for x, dx in zip(q, moved, strict=True)])
        return r

    def _carried(self) -> Function:
        """Return G t: how the positions move with small steps t of the coordinates."""
        t = self.graph.symbols("t", self.n)
        G = self.dynamics.eq.G if self.shape.mechanism.loops else None
        moved = t if G is None else [total([self.graph.zero, *(g * x for g, x in zip(row, t, strict=True))]) for row in G]
        return Function("carried", {**self.dynamics.inputs(), "t": self.n}, {"d": moved})
