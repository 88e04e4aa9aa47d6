"""The time loop of a machine: control tick, stages of the integrator, record, stops and reversals, again and again.

With loops all tree positions are integrated with v_t = G nu and pulled back on the closure once per step. That costs one
evaluation per stage instead of a Newton solve, and keeps the order of the method: off the closure by a stage's error, G is as
smooth as on it.
"""

from __future__ import annotations

import math
from functools import cached_property

from dynident.friction import DynamicLaw
from dynident.graph import (
    Node,
    Place,
    Routine,
    absolute,
    both,
    either,
    equal,
    floor,
    maximum,
    minimum,
    opposite,
    sqrt,
    where,
)
from dynident.simulate.dynamics import Dynamics, solve
from dynident.simulate.shape import FINE, LOST_CLOSURE, SINGULAR_MASS, UNSTABLE, starts
from dynident.simulate.sticking import Sticking

SINGULAR = 1e-7  # pivot ratio of the closure below which the coordinates no longer determine the other joints
FAR = 1e-3  # correction of a dependent coordinate [rad or m] after a step at which the closure counts as lost
TRIES = 4  # to find the directions of power through gears with losses; one or two do
TURNS = 50  # of the iterated algebraic loop
EVEN = 1e-12  # relative change at which it has converged
STAGES = {"rk4": (0.0, 0.5, 0.5, 1.0), "midpoint": (0.0, 0.5), "euler": (0.0,)}


class Step:
    """The routines that move one machine."""

    def __init__(self, dynamics: Dynamics, control: Routine | None) -> None:
        self.d, self.graph, self.shape, self.memory = dynamics, dynamics.graph, dynamics.shape, dynamics.memory
        self.control = control
        self.sticking = Sticking(dynamics) if self.shape.jumping or self.shape.remembering else None
        self.hold = self.sticking.hold() if self.sticking is not None and self.shape.bound else None
        self.motion = dynamics.motion()
        self.lossy = any(drive.lossy and not drive.shafts for drive in self.shape.drives)
        self.gears = dynamics.gears() if self.lossy else None
        self._steps: dict[object, Routine] = {}

    # ---- one evaluation -------------------------------------------------------------------------------------------------

    def _remember(self, r: Routine, dt: Node | None) -> None:
        """Bring the states of laws with memory to a time dt after the start of the step (None: its end, for good)."""
        s, w, p = self.memory.state, self.memory.work, self.memory.numbers
        first, kept = starts(self.shape.owners, "numbers"), starts(self.shape.owners, "states")
        motion = r.local("motion", 3)
        for place, i in enumerate(self.shape.remembering):
            speed = r.load("w", w.at("speed", len(self.shape.jumping) + place))
            number, at = first[i], kept[i]
            for part in self.shape.owners[i].parts:
                if isinstance(part.what, DynamicLaw):
                    key = part.shape
                    if key not in self._steps:
                        self._steps[key] = part.what.step(self.graph)
                    last = r.load("s", s.at("memory", at + part.states - 1))
                    length = r.load("p", p.at("step")) if dt is None else dt
                    r.store_all(motion, 0, [last, speed, length])
                    where_to = s.place("memory", at) if dt is None else w.place("z", at)
                    r.call(self._steps[key], state=where_to, motion=motion, numbers=p.place("law", number))
                    if dt is None:
                        r.store("s", s.at("memory", at + part.states - 1), speed)
                number, at = number + len(part.numbers), at + part.states

    @cached_property
    def derivative(self) -> Routine:
        """dy/dt at the state y, a time dt after the start of the step; status tells whether there is one."""
        r = Routine(self.graph, "derivative", ("y", "k", "s", "p", "w", "m"))
        w, m = self.memory.work, self.memory.motion
        if self.shape.remembering and self.sticking is not None:
            count = w.count("z")
            r.store_all("w", w.at("z"), r.load_all("s", self.memory.state.at("memory"), count))
            dt = r.load("w", w.at("dt"))
            with r.when(dt > 0.0):
                r.call(self.sticking.speeds, y="y", s="s", p="p", u=w.place("speed"))
                self._remember(r, dt)
        if self.gears is None:
            self._evaluate(r)
        else:
            gears = self.gears
            with r.until(TRIES):
                self._evaluate(r)
                t, agree = w.place("through"), w.place("agree")
                r.call(gears, y="y", s="s", p="p", z=w.place("z"), k="k", t=t, agree=agree)
                # For given directions of power the losses are linear in the accelerations; those of the last one come first.
                r.store_all("s", self.memory.state.at("through"), r.load_all("w", w.at("through"), self.d.k))
                r.leave(r.load("w", w.at("agree")) > 0.0)
        status = where(r.load("m", m.at("solid")) > 0.0, FINE, SINGULAR_MASS)
        if self.shape.mechanism.loops:
            branch, before = r.load("m", m.at("branch")), r.load("s", self.memory.state.at("branch"))
            lost = either(opposite(r.load("m", m.at("pivot")) >= SINGULAR), branch * before < 0.0)
            status = where(lost, LOST_CLOSURE, status)
            r.store("s", self.memory.state.at("branch"), branch)  # it tells the ways of assembling the loops apart
        r.store("w", w.at("status"), status)
        return r

    def _evaluate(self, r: Routine) -> None:
        w, m = self.memory.work, self.memory.motion
        r.call(self.motion, y="y", s="s", p="p", z=w.place("z"), e=w.place("push"), k="k", m="m")
        if self.shape.loop:
            self._decoupled(r)
        elif self.hold is not None:
            with r.when(r.load("m", m.at("stuck")) > 0.0):
                r.call(self.hold, y="y", k="k", s="s", p="p", w="w", m="m")

    def _decoupled(self, r: Routine) -> None:
        """Solve (motors + mechanism) nu_dot = force with the mechanism as a disturbance of the motors [Roldan2017]."""
        n, m, at = self.d.n, self.memory.motion, self.memory.state.at("v")
        L = [[r.load("m", m.at("L", i * n + j)) if j < i else self.graph.zero for j in range(n)] for i in range(n)]
        D, force = r.load_all("m", m.at("D"), n), r.load_all("m", m.at("force"), n)
        r.store_all("k", at, r.load_all("s", self.memory.state.at("acceleration"), n))
        with r.until(TURNS if self.shape.loop == "iterated" else 1):
            last = r.load_all("k", at, n)
            right = []
            for i in range(n):
                terms = [r.load("m", m.at("other", i * n + j)) * last[j] for j in range(n)]
                right.append([force[i] - sum(terms[1:], terms[0])])
            r.store_all("k", at, [x[0] for x in solve(L, D, right)])
            if self.hold is not None:
                with r.when(r.load("m", m.at("stuck")) > 0.0):
                    r.call(self.hold, y="y", k="k", s="s", p="p", w="w", m="m")
            new = r.load_all("k", at, n)
            change, size = self.graph.zero, self.graph.zero
            for x, old in zip(new, last, strict=True):
                change, size = maximum(change, absolute(x - old)), maximum(size, absolute(x))
            r.leave(opposite(change > EVEN * size))

    # ---- the loop

    def run(self) -> Routine:
        """Return the time loop: ``a`` says how many steps, and receives why it stopped."""
        arrays = ("a", "s", "p", "w", "m", "table", "noise", "push", "record")
        r = Routine(self.graph, "run", arrays)
        s, w, p, a = self.memory.state, self.memory.work, self.memory.numbers, self.memory.call
        size, shares = self.memory.moving, STAGES[self.shape.integrator]
        derivative = self.derivative
        h = r.load("p", p.at("step"))
        r.store("w", w.at("status"), FINE)
        r.store("w", w.at("index"), -1.0)
        with r.repeat(r.load("a", a.at("steps"))):
            step = r.load("s", s.at("step"))
            if self.control is not None:
                bound = {"s": "s", "p": "p", "w": "w", "a": "a", "table": "table", "noise": "noise"}
                r.call(self.control, **{name: bound[name] for name in self.control.arrays})
                r.leave(r.load("w", w.at("status")) > 0.0)
            for j, share in enumerate(shares):
                self._push(r, step + share)
                r.store("w", w.at("dt"), share * h)
                y = "s"
                if j > 0:
                    state = r.load_all("s", 0, size)
                    last = r.load_all("w", w.at("rates", (j - 1) * size), size)
                    r.store_all("w", w.at("stage"), [x + share * h * k for x, k in zip(state, last, strict=True)])
                    y = "w"
                place = ("s", 0) if y == "s" else w.place("stage")
                r.call(derivative, y=place, k=w.place("rates", j * size), s="s", p="p", w="w", m="m")
                r.leave(r.load("w", w.at("status")) > 0.0)
                if j == 0:
                    self._first(r, step)
                    r.leave(r.load("w", w.at("status")) > 0.0)
            self._finish(r, h)
            self._check(r)
            r.leave(r.load("w", w.at("status")) > 0.0)
            if self.shape.loading:
                self._keep_loads(r)
            if self.sticking is not None:
                r.call(self.sticking.settle(), s="s", p="p", w="w", m="m")
                self._remember(r, None)
            r.store("s", s.at("step"), step + 1.0)
        for name in ("status", "index"):
            r.store("a", a.at(name), r.load("w", w.at(name)))
        return r

    def _push(self, r: Routine, time: Node) -> None:
        """Bring external torques and wrenches up to date; they are linear between the rows of their table."""
        width, a, w = self.memory.work.count("push"), self.memory.call, self.memory.work
        if not self.shape.pushed and not self.shape.links:
            return
        rows = r.load("a", a.at("push_rows"))
        at = time / r.load("a", a.at("push_every")) - r.load("a", a.at("push"))
        i = minimum(floor(at), rows - 1.0)
        j, share = minimum(i + 1.0, rows - 1.0), at - i
        for c in range(width):
            low, high = r.load("push", i * width + c), r.load("push", j * width + c)
            r.store("w", w.at("push", c), low + share * (high - low))

    def _first(self, r: Routine, step: Node) -> None:
        """Do what belongs to the start of the step: count limits, pull the loops together, note loads, write the record."""
        s, w, m, a = self.memory.state, self.memory.work, self.memory.motion, self.memory.call
        k, n = self.d.k, self.d.n
        r.call(self.d.at_limit(), y="s", s="s", p="p", cut=w.place("current"))
        cut, now = r.load_all("s", s.at("cut"), k), r.load_all("w", w.at("current"), k)
        r.store_all("s", s.at("cut"), [x + y for x, y in zip(cut, now, strict=True)])
        r.store_all("s", s.at("acceleration"), r.load_all("w", w.at("rates", s.at("v")), n))
        inputs: dict[str, str | Place] = {"y": "s", "s": "s", "p": "p", "z": w.place("z"), "k": w.place("rates")}
        if self.shape.loading:
            r.call(self.d.loads(), **inputs, load=w.place("load"))
        if self.shape.mechanism.loops:
            count = s.count("q")
            q, fix = r.load_all("s", s.at("q"), count), r.load_all("m", m.at("fix"), count)
            r.store_all("s", s.at("q"), [x + dx for x, dx in zip(q, fix, strict=True)])
            far = self.graph.zero
            for dx in fix:
                far = maximum(far, absolute(dx))
            r.store("w", w.at("status"), where(far > FAR, LOST_CLOSURE, FINE))
        every, rows = r.load("a", a.at("record_every")), r.load("a", a.at("record_rows"))
        row = floor(step / every)
        due = both(equal(row * every, step), row - r.load("a", a.at("record")) < rows)
        with r.when(due):
            here, fields = row - r.load("a", a.at("record")), self.memory.record
            places = {name: ("record", rows * float(fields.at(name)) + here * float(fields.count(name))) for name in fields}
            r.call(self.d.record, **inputs, **places)

    def _keep_loads(self, r: Routine) -> None:
        """Loads are those of the step that ends: friction that grows with the load is one step late."""
        for i in self.shape.loading:
            r.store("s", self.memory.state.at("load", i), r.load("w", self.memory.work.at("load", i)))

    def _finish(self, r: Routine, h: Node) -> None:
        """Make the step from the rates of all stages."""
        s, w, size = self.memory.state, self.memory.work, self.memory.moving
        y = r.load_all("s", 0, size)
        k = [r.load_all("w", w.at("rates", j * size), size) for j in range(len(STAGES[self.shape.integrator]))]
        if self.shape.integrator == "rk4":
            rows = zip(y, *k, strict=True)
            r.store_all("s", 0, [x + h / 6.0 * (a + 2.0 * (b + c) + d) for x, a, b, c, d in rows])
        elif self.shape.integrator == "midpoint":
            r.store_all("s", 0, [x + h * b for x, b in zip(y, k[1], strict=True)])
        else:  # velocities first, then positions with the new velocities
            first, last = s.at("v"), s.at("v") + self.d.n
            r.store_all("s", first, [y[i] + h * k[0][i] for i in range(first, last)])
            r.call(self.d.drift(), y="s", s="s", p="p", d=w.place("drift"))
            drift, count = r.load_all("w", w.at("drift"), s.count("q")), s.count("theta")
            r.store_all("s", 0, [y[i] + h * dx for i, dx in enumerate(drift)])
            theta, omega = s.at("theta"), s.at("omega")
            speeds = [y[omega + e] + h * k[0][omega + e] for e in range(count)]
            r.store_all("s", omega, speeds)
            r.store_all("s", theta, [y[theta + e] + h * v for e, v in enumerate(speeds)])
            coil = s.at("coil")
            r.store_all("s", coil, [y[coil + e] + h * k[0][coil + e] for e in range(s.count("coil"))])

    def _check(self, r: Routine) -> None:
        """Stop where a velocity or current is beyond its limit, and take whole turns out of rotation vectors."""
        s, w, size = self.memory.state, self.memory.work, self.memory.moving
        limit = r.load("p", self.memory.numbers.at("limit"))
        y = r.load_all("s", 0, size)
        index = self.graph.const(-1.0)
        angles = range(s.at("theta"), s.at("theta") + s.count("theta"))
        for i in reversed(range(s.at("v"), size)):
            if i not in angles:
                index = where(absolute(y[i]) < limit, index, float(i - s.at("v")))
        r.store("w", w.at("index"), index)
        r.store("w", w.at("status"), where(index < 0.0, FINE, UNSTABLE))
        for free, first in self.shape.balls:
            turn = first + 3 if free else first
            x = y[turn : turn + 3]
            angle = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])
            wound = angle > 1.5 * math.pi
            factor = where(wound, 1.0 - 2.0 * math.pi / where(wound, angle, 1.0), 1.0)
            r.store_all("s", turn, [c * factor for c in x])
