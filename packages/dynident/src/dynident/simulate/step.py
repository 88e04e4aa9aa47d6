"""The time loop of a machine: control tick, stages of the integrator, record, stops and reversals, again and again.

With loops all tree positions are integrated with v_t = G nu and pulled back on the closure once per step. That costs one
evaluation per stage instead of a Newton solve, and keeps the order of the method: off the closure by a stage's error, G is as
smooth as on it.
"""

from __future__ import annotations

import math
from functools import cached_property

from dynident.friction.dynamic import DynamicLaw
from dynident.graph.elementary import absolute, both, either, equal, floor, minimum, opposite, sign, sqrt, where
from dynident.graph.expression import Node
from dynident.graph.routine import Place, Routine
from dynident.mechanics.branch import branch_routine
from dynident.mechanics.functions import geometry_key
from dynident.mechanism.mechanism import Mechanism
from dynident.simulate.dynamics import Dynamics, solve
from dynident.simulate.shape import FINE, LOST_CLOSURE, SINGULAR_MASS, UNSTABLE, MachineRoutine, largest, parts_of
from dynident.simulate.sticking import Sticking

SINGULAR = 1e-7  # pivot ratio of the closure below which the coordinates no longer determine the other joints
FAR = 1e-3  # correction of a dependent coordinate [rad or m] after a step at which the closure counts as lost
TRIES = 4  # to find the directions of power through gears with losses; one or two do
TURNS = 50  # of the iterated algebraic loop
EVEN = 1e-12  # relative change at which it has converged
STAGES = {"rk4": (0.0, 0.5, 0.5, 1.0), "midpoint": (0.0, 0.5), "euler": (0.0,)}


class Step:
    """The routines that move one machine."""

    def __init__(self, dynamics: Dynamics, control: Routine) -> None:
        self.d, self.graph, self.shape, self.memory = dynamics, dynamics.graph, dynamics.shape, dynamics.memory
        self.control = control
        self.sticking = Sticking(dynamics) if self.shape.jumping or self.shape.remembering else None
        self.hold = self.sticking.hold() if self.sticking is not None and self.shape.bound else None
        self.motion = dynamics.motion()
        self._steps: dict[object, Routine] = {}

    # ---- one evaluation -------------------------------------------------------------------------------------------------

    def _remember(self, r: MachineRoutine, dt: Node | None) -> None:
        """Bring the states of laws with memory to a time dt after the start of the step (None: its end, for good)."""
        motion = r.local("motion", 3)
        for i, part, number, at in parts_of(self.shape.owners):
            if not isinstance(part.what, DynamicLaw):
                continue
            if part.shape not in self._steps:
                self._steps[part.shape] = part.what.step(self.graph)
            speed = r.get("w.speed", len(self.shape.jumping) + self.shape.remembering.index(i))
            last = r.get("s.memory", at + part.states - 1)
            r.store_all(motion, 0, [last, speed, r.get("p.step") if dt is None else dt])
            state = r.at("s.memory", at) if dt is None else r.at("w.z", at)
            r.call(self._steps[part.shape], state=state, motion=motion, numbers=r.at("p.law", number))
            if dt is None:
                r.put("s.memory", speed, at + part.states - 1)

    @cached_property
    def derivative(self) -> MachineRoutine:
        """dy/dt at the state y, a time dt after the start of the step; status tells whether there is one."""
        r = MachineRoutine(self.memory, self.graph, "derivative", ("y", "k", "s", "p", "w", "m"))
        if self.shape.remembering:
            r.put_all("w.z", r.get_all("s.memory"))
            dt = r.get("w.dt")
            with r.when(dt > 0.0):
                r.call(self.d.speeds, u=r.at("w.speed"))
                self._remember(r, dt)
        if not any(drive.loses_rigidly for drive in self.shape.drives):
            self._evaluate(r)
        else:
            gears = self.d.gears()
            with r.until(TRIES):
                self._evaluate(r)
                r.call(gears, z=r.at("w.z"), t=r.at("w.through"), agree=r.at("w.agree"))
                # For given directions of power the losses are linear in the accelerations; those of the last one come first.
                r.put_all("s.through", r.get_all("w.through"))
                r.leave(r.get("w.agree") > 0.0)
        status = where(r.get("m.solid") > 0.0, FINE, SINGULAR_MASS)
        if self.shape.mechanism.loops:
            branch, before = r.get("m.branch"), r.get("s.branch")
            lost = either(opposite(r.get("m.pivot") >= SINGULAR), branch * before < 0.0)
            status = where(lost, LOST_CLOSURE, status)
            r.put("s.branch", branch)  # it tells the ways of assembling the loops apart
        r.put("w.status", status)
        return r

    def _evaluate(self, r: MachineRoutine) -> None:
        r.call(self.motion, z=r.at("w.z"), e=r.at("w.push"))
        if self.shape.loop:
            self._decoupled(r)
        else:
            self._hold(r)

    def _hold(self, r: MachineRoutine) -> None:
        """Let friction hold what it can."""
        if self.hold is not None:
            with r.when(r.get("m.stuck") > 0.0):
                r.call(self.hold)

    def _decoupled(self, r: MachineRoutine) -> None:
        """Solve (motors + mechanism) nu_dot = force with the mechanism as a disturbance of the motors [Roldan2017]."""
        n, at = self.d.n, self.memory.state.at("v")
        L = [[r.get("m.L", i * n + j) if j < i else self.graph.zero for j in range(n)] for i in range(n)]
        D, force = r.get_all("m.D"), r.get_all("m.force")
        r.store_all("k", at, r.get_all("s.acceleration"))
        with r.until(TURNS if self.shape.loop == "iterated" else 1):
            last = r.load_all("k", at, n)
            right = []
            for i in range(n):
                terms = [r.get("m.other", i * n + j) * last[j] for j in range(n)]
                right.append([force[i] - sum(terms[1:], terms[0])])
            r.store_all("k", at, [x[0] for x in solve(L, D, right)])
            self._hold(r)
            new = r.load_all("k", at, n)
            change = largest(self.graph, [x - old for x, old in zip(new, last, strict=True)])
            r.leave(opposite(change > EVEN * largest(self.graph, new)))

    # ---- the loop

    def run(self) -> MachineRoutine:
        """Return the time loop: ``a`` says how many steps, and receives why it stopped."""
        arrays = ("a", "s", "p", "w", "m", "table", "noise", "push", "record")
        r = MachineRoutine(self.memory, self.graph, "run", arrays)
        size, shares = self.memory.moving, STAGES[self.shape.integrator]
        h = r.get("p.step")
        r.put("w.status", FINE)
        r.put("w.index", -1.0)
        with r.repeat(r.get("a.steps")):
            step = r.get("s.step")
            r.call(self.control)
            r.leave(r.get("w.status") > 0.0)
            for j, share in enumerate(shares):
                self._push(r, step + share)
                r.put("w.dt", share * h)
                if j > 0:
                    state = r.load_all("s", 0, size)
                    last = r.get_all("w.rates", size, (j - 1) * size)
                    r.put_all("w.stage", [x + share * h * k for x, k in zip(state, last, strict=True)])
                r.call(self.derivative, y=r.at("w.stage") if j > 0 else "s", k=r.at("w.rates", j * size))
                r.leave(r.get("w.status") > 0.0)
                if j == 0:
                    self._first(r, step)
                    r.leave(r.get("w.status") > 0.0)
            self._finish(r, h)
            self._check(r)
            r.leave(r.get("w.status") > 0.0)
            for i in self.shape.loading:  # those of the step that ends: friction that grows with the load is one step late
                r.put("s.load", r.get("w.load", i), i)
            if self.sticking is not None:
                r.call(self.sticking.settle())
                self._remember(r, None)
            r.put("s.step", step + 1.0)
        for name in ("status", "index"):
            r.put(f"a.{name}", r.get(f"w.{name}"))
        return r

    def _push(self, r: MachineRoutine, time: Node) -> None:
        """Bring external torques and wrenches up to date; they are linear between the rows of their table."""
        width = self.memory.work.count("push")
        if not self.shape.pushed and not self.shape.links:
            return
        rows = r.get("a.push_rows")
        at = time / r.get("a.push_every") - r.get("a.push")
        i = minimum(floor(at), rows - 1.0)
        j, share = minimum(i + 1.0, rows - 1.0), at - i
        for c in range(width):
            low, high = r.load("push", i * width + c), r.load("push", j * width + c)
            r.put("w.push", low + share * (high - low), c)

    def _first(self, r: MachineRoutine, step: Node) -> None:
        """Do what belongs to the start of the step: count limits, pull the loops together, note loads, write the record."""
        r.call(self.d.at_limit(), y="s", cut=r.at("w.current"))
        r.put_all("s.cut", [x + y for x, y in zip(r.get_all("s.cut"), r.get_all("w.current"), strict=True)])
        r.put_all("s.acceleration", r.get_all("w.rates", self.d.n, self.memory.state.at("v")))
        inputs: dict[str, str | Place] = {"y": "s", "z": r.at("w.z"), "k": r.at("w.rates")}
        if self.shape.loading:
            r.call(self.d.loads(), **inputs, load=r.at("w.load"))
        if self.shape.mechanism.loops:
            q, fix = r.get_all("s.q"), r.get_all("m.fix")
            r.put_all("s.q", [x + dx for x, dx in zip(q, fix, strict=True)])
            r.put("w.status", where(largest(self.graph, fix) > FAR, LOST_CLOSURE, FINE))
        every, rows = r.get("a.record_every"), r.get("a.record_rows")
        row = floor(step / every)
        due = both(equal(row * every, step), row - r.get("a.record") < rows)
        with r.when(due):
            here, fields = row - r.get("a.record"), self.memory.record
            places = {name: ("record", rows * float(fields.at(name)) + here * float(fields.count(name))) for name in fields}
            r.call(self.d.record, **inputs, **places)

    def _finish(self, r: MachineRoutine, h: Node) -> None:
        """Make the step from the rates of all stages."""
        s, size = self.memory.state, self.memory.moving
        y = r.load_all("s", 0, size)
        k = [r.get_all("w.rates", size, j * size) for j in range(len(STAGES[self.shape.integrator]))]
        if self.shape.integrator == "rk4":
            rows = zip(y, *k, strict=True)
            r.store_all("s", 0, [x + h / 6.0 * (a + 2.0 * (b + c) + d) for x, a, b, c, d in rows])
        elif self.shape.integrator == "midpoint":
            r.store_all("s", 0, [x + h * b for x, b in zip(y, k[1], strict=True)])
        else:  # velocities first, then positions with the new velocities
            r.put_all("s.v", [y[i] + h * k[0][i] for i in range(s.at("v"), size)])
            r.call(self.d.drift(), y="s", d=r.at("w.drift"))
            r.put_all("s.q", [x + h * dx for x, dx in zip(y, r.get_all("w.drift"), strict=False)])
            r.put_all("s.theta", [y[s.at("theta", e)] + h * speed for e, speed in enumerate(r.get_all("s.omega"))])

    def _check(self, r: MachineRoutine) -> None:
        """Stop where a velocity or current is beyond its limit, and take whole turns out of rotation vectors."""
        s, size = self.memory.state, self.memory.moving
        limit = r.get("p.limit")
        y = r.load_all("s", 0, size)
        index = self.graph.const(-1.0)
        angles = range(s.at("theta"), s.at("theta") + s.count("theta"))
        for i in reversed(range(s.at("v"), size)):
            if i not in angles:
                index = where(absolute(y[i]) < limit, index, float(i - s.at("v")))
        r.put("w.index", index)
        r.put("w.status", where(index < 0.0, FINE, UNSTABLE))
        for free, first in self.shape.balls:
            turn = first + 3 if free else first
            x = y[turn : turn + 3]
            angle = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])
            wound = angle > 1.5 * math.pi
            factor = where(wound, 1.0 - 2.0 * math.pi / where(wound, angle, 1.0), 1.0)
            r.store_all("s", turn, [c * factor for c in x])

    # ---- start ----------------------------------------------------------------------------------------------------------

    def placed(self) -> MachineRoutine:
        """Return what writes the state at the coordinates x[:n] and velocities x[n:], following loops from where they are."""
        r = MachineRoutine(self.memory, self.graph, "placed", ("s", "p", "w", "x", "status"))
        mechanism, model, shape, n = self.shape.mechanism, self.shape.law.model, self.shape, self.d.n
        r.store("status", 0, FINE)
        if mechanism.loops:
            follow_branch(r, mechanism, "", r.at("s.q"), ("x", 0), ("status", 0))
        else:
            r.put_all("s.q", r.load_all("x", 0, n))
        r.put_all("s.v", r.load_all("x", n, n))
        r.call(self.d.senses, y="s", **{name: r.at(f"w.{name}") for name in self.d.senses.outputs})
        for a, first in enumerate(shape.shafts[:-1]):
            ratio = r.get("p.ratio", a)
            for e in range(first, shape.shafts[a + 1]):
                r.put("s.theta", ratio * r.get("w.rho", a), e)
                r.put("s.omega", ratio * r.get("w.rho_v", a), e)
        jumping = len(shape.jumping)
        if shape.jumping or shape.remembering:
            r.call(self.d.speeds, y="s", u=r.at("w.speed"))
            speed = r.get_all("w.speed")
            r.put_all("s.begin", speed[:jumping])
            r.put_all("s.side", [sign(v) for v in speed[:jumping]])
            for i, part, _, at in parts_of(shape.owners):
                if part.states:
                    r.put("s.memory", speed[jumping + shape.remembering.index(i)], at + part.states - 1)
        if not model.loops:
            r.put_all("s.pose", r.load_all("x", 0, n))
        elif geometry_key(model) == geometry_key(mechanism):
            r.put_all("s.pose", r.get_all("s.q"))
        else:
            follow_branch(r, model, "_model", r.at("s.pose"), ("x", 0), ("status", 0))
        return r


def follow_branch(r: Routine, robot: Mechanism, label: str, pose: Place, given: Place, status: Place) -> None:
    """Bring the closed positions of a robot with loops to given coordinates, or set the status."""
    walk, width = branch_routine(robot, label), len(robot.tree.coordinates)
    head, work, out = r.local(f"head{label}", 2), r.local(f"work{label}", 3 * width + 8), r.local(f"out{label}", width)
    r.store_all(head, 0, [1.0, -1.0])
    r.call(walk, head=head, given=given, start=pose, work=work, out=out)
    lost = r.load(head, 1) >= 0.0
    with r.when(lost):
        r.store(*status, LOST_CLOSURE)
    with r.otherwise():
        r.store_all(*pose, r.load_all(out, 0, width))
