"""One sample of the observer, and a whole record, as machine code; the same routines are printed as C.

    x'' + 2 d w x' + w^2 x = w^2 y                                 y: position or effort; x' of the position is v
    o = (o + K (p - p_before - dt (u + tau - f))) / (1 + K dt)      do/dt = K (tau_ext - o), means of both ends
    r'' + K r' + K^2 r = K^2 o                                     o and this together are Butterworth's filter of third order
    b = 3/2 (K / (s + K))^3 limit                                  friction of standing joints, anywhere within its limits
    e^2 = max(sigma^2, sum_k eta_k^2 o_k^2)                        o_k: the same observer for term k of the model
    threshold = z sqrt(c^2 e^2 + sum_j o_j^2) + b                  o_j: the same observer for direction j of the model

Positions and efforts pass the same low-pass, so both have the same delay and velocities need not be measured. `state`
holds the values kept from sample to sample: four counters, b, the filters, and (o, p, u) of the model, of every uncertain
direction and of every term with an error of its own.

A sample with an entry that is not a number is skipped. After a step that is too long, or backward in time,
the observer restarts and has no result until the low-pass has settled.

For mechanisms with loops only motors are measured. After the low-pass the loops are closed from the previous sample,
or from home at the first, by Newton's method with bounded steps; where that fails, or ends on another branch, there is no
result and the observer restarts. c is 1, or the factor of a calibration run.

The observer computes from one sample:

    L = T - V,    p = dL/dv = M(q) v,    dp/dt = u + tau + tau_ext,    u = dL/dq - f = C^T v - g - f

f are the resistances of joints and motors: friction, springs, offsets. No acceleration is needed, and p and u are linear in the
standard parameters, so that one function serves the model and every uncertain direction.

With loops the same holds in the robot's coordinates nu, after closing the positions q_t of the tree:

    T(q_t, nu) = T_tree(q_t, G nu),    p = dT/dnu = G^T M_t G nu,    u = G^T d(T - V)/dq_t - G^T f,    tau = A^T tau_motor
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynident.arrays import Array
from dynident.errors import DescriptionError
from dynident.files import write_atomic
from dynident.friction.law import Friction, Point
from dynident.friction.terms import TERMS
from dynident.graph.algebra import absolute, dot, either, maximum, opposite, solve_symmetric, sqrt, where
from dynident.graph.expression import Function, Graph, Node, reachable, reverse, total
from dynident.graph.print_c import c_files, c_self_test, c_table
from dynident.graph.print_llvm import compile_routines
from dynident.graph.printing import comment, identifier
from dynident.graph.routine import Place, Routine
from dynident.identify.regression.rows import Rows, unprojected
from dynident.mechanics.actuation import actuation, least_squares
from dynident.mechanics.branch import closing_routine, motor_step
from dynident.mechanics.closure import close_positions, random_closed_motion
from dynident.mechanics.dynamics import LOAD_STEPS
from dynident.mechanics.equations import Equations
from dynident.mechanics.newton_euler import energies, inverse_dynamics, mass_matrix
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.tree import FREE, SPHERICAL

if TYPE_CHECKING:
    from dynident.monitor.monitor import Monitor


@dataclass(frozen=True, eq=False)
class Terms:
    """The functions of one robot for one sample."""

    momentum: Function  # ``momentum(q, v, phi)`` gives p and u
    friction: Function
    warm: Mapping[str, int]  # Channels of the joints whose law needs a temperature
    closing: Function | None = None
    drive: Function | None = None


def terms_of(rows: Rows, laws: Mapping[str, Friction], rest: float) -> Terms:
    """Return the functions of a robot; friction jumps are zero below the speed `rest`, `laws` add to the joint terms."""
    mechanism = rows.mechanism
    check_monitored(mechanism, laws)
    loops: tuple[Function, ...] = ()
    if mechanism.loops:
        loops = (motor_step(Equations(mechanism, Graph()), *mechanism.actuator_matrix, "closing"), _drive(rows))
    return Terms(_momentum(mechanism, rest), *_friction(rows, laws, rest), *loops)


def check_monitored(mechanism: Mechanism, laws: Mapping[str, Friction]) -> None:
    """Refuse robots whose momentum is not one expression of measured quantities."""
    name = mechanism.name
    if mechanism.loops and any(len(actuator.coupling) > 1 for actuator in mechanism.actuators):
        raise DescriptionError(
            f"robot '{name}' has loops and motors that act on several joints, which the monitor does not support"
        )
    if np.isin(mechanism.tree.arrays.kind, (SPHERICAL, FREE)).any():
        raise DescriptionError(
            f"robot '{name}' has a spherical or free joint; the monitor supports revolute and prismatic joints"
        )
    known = mechanism.tree.coordinates if mechanism.loops else mechanism.coordinate_names
    unknown = [joint for joint in laws if joint not in known]
    if unknown:
        joints = ", ".join(known)
        raise DescriptionError(f"friction of '{unknown[0]}': robot '{name}' has no such joint; its joints are {joints}")


def _momentum(mechanism: Mechanism, rest: float) -> Function:
    x = Equations(mechanism, Graph())
    x.rest, x.a = rest, [x.graph.zero] * mechanism.dof
    kinetic, _ = x.energies()
    _, potential = energies(x.state, x.bodies(x.phi))
    p = reverse([kinetic], [1.0], x.v)
    u = reverse([kinetic - potential], [1.0], x.x)
    u = x.project(u) if mechanism.loops else u  # along the closure, q_t depends on the coordinates by G
    u = [a - f for a, f in zip(u, x.project(x.tree_terms(x.phi, "friction", "other")), strict=True)]
    inputs = {"q": len(x.x), "v": mechanism.dof}
    return Function("momentum", inputs, {"p": p, "u": u}, {"phi": len(mechanism.parameters)})


def _friction(rows: Rows, laws: Mapping[str, Friction], rest: float) -> tuple[Function, dict[str, int]]:
    """Return torques of laws and limits of friction at rest, and the channels of joints with a temperature-dependent law."""
    mechanism = rows.mechanism
    n = mechanism.dof
    x = Equations(mechanism, Graph())
    graph, zero = x.graph, x.graph.zero
    channels = len(rows.efforts)
    tau, T = graph.symbols("tau", channels), graph.symbols("T", channels)
    f, limit = [zero] * n, [zero] * n
    warm: dict[str, int] = {}
    loads = _loads(x, laws, tau, T, rest)
    for joint, friction in laws.items():
        v, q, row, c = _friction_state(x, rows, joint)
        stands = absolute(v) < rest
        at = Point(v, q, *((zero, zero) if c is None else (loads[c], T[c])))
        torque = where(stands, zero, friction.expression(graph, at))
        levels = [friction.expression(graph, at._replace(v=zero), way=way) for way in (-1.0, 1.0)]
        held = where(stands, _largest(levels), zero)
        f = [a + g * torque for a, g in zip(f, row, strict=True)]
        limit = [a + absolute(g) * held for a, g in zip(limit, row, strict=True)]
        if c is not None and any(node.name == T[c].name for node in reachable([torque])):
            warm[joint] = c
    ends: dict[int, list[Node]] = {}  # both levels of every tree coordinate with dry friction
    for column, symbol, d, _ in x.joint_columns:
        if TERMS[symbol].jumps:
            own = [x.phi[column] * TERMS[symbol].directed(x.tree_q[d], zero, zero, way) for way in (-1.0, 1.0)]
            ends[d] = [a + b for a, b in zip(ends.get(d, [zero, zero]), own, strict=True)]
    for d, levels in ends.items():
        held = where(absolute(x.tree_v[d]) < rest, _largest(levels), zero)
        row = [graph.const(float(j == d)) for j in range(n)] if x.G is None else x.G[d]
        limit = [own + absolute(g) * held for own, g in zip(limit, row, strict=True)]
    motors: dict[int, tuple[list[Node], list[Node]]] = {}
    for column, symbol, row, _ in x.motor_columns:
        if TERMS[symbol].jumps:
            q, v = (total([a * c for a, c in zip(y, row, strict=True)]) for y in (x.tree_q, x.tree_v))
            own = [x.phi[column] * TERMS[symbol].directed(q, zero, zero, way) for way in (-1.0, 1.0)]
            known = motors.get(v.index, (row, [zero, zero]))[1]
            motors[v.index] = row, [where(absolute(v) < rest, a + b, zero) for a, b in zip(known, own, strict=True)]
    for row, levels in motors.values():
        limit = [own + absolute(g) * _largest(levels) for own, g in zip(limit, x.project(row), strict=True)]
    inputs = {"q": len(x.x), "v": n, "tau": channels, "T": channels}
    return Function("friction", inputs, {"f": f, "limit": limit}, {"phi": len(mechanism.parameters)}), warm


def _loads(x: Equations, laws: Mapping[str, Friction], tau: list[Node], T: list[Node], rest: float) -> list[Node]:
    """Return the loads of the gears of a tree: the torques of its bodies at the accelerations that the efforts cause."""
    if x.mechanism.loops or not any("tau" in friction.law.looks_at for friction in laws.values()):
        return tau
    x.a = [x.graph.zero] * x.mechanism.dof
    M, bias, loads = x.mass_matrix(), x.torques(), tau
    bodies = x.project(inverse_dynamics(x.state, x.bodies(x.phi)))
    inertia = x.sandwich(mass_matrix(x.state, x.bodies(x.phi)))
    for _ in range(LOAD_STEPS):
        drive = [t - b for t, b in zip(tau, bias, strict=True)]
        for joint, friction in laws.items():
            i = x.mechanism.coordinate_names.index(joint)
            rub = friction.expression(x.graph, Point(x.v[i], x.x[i], loads[i], T[i]))
            drive[i] = drive[i] - where(absolute(x.v[i]) < rest, x.graph.zero, rub)
        a = [row[0] for row in solve_symmetric(M, [[torque] for torque in drive])[0]]
        loads = [own + dot(row, a) for own, row in zip(bodies, inertia, strict=True)]
    return loads


def _friction_state(x: Equations, rows: Rows, joint: str) -> tuple[Node, Node, list[Node], int | None]:
    """Return velocity, position and Jacobian row of a joint, and its channel or None."""
    robot = x.mechanism
    if not robot.loops:
        i = robot.coordinate_names.index(joint)
        return x.v[i], x.x[i], [x.graph.const(float(j == i)) for j in range(robot.dof)], i
    assert x.G is not None
    d = robot.tree.coordinates.index(joint)
    motor = next((c for c, actuator in enumerate(robot.actuators) if joint in actuator.coupling), None)
    return x.tree_v[d], x.tree_q[d], x.G[d], motor


def _drive(rows: Rows) -> Function:
    """Return nu of A nu = w (least squares), A^T tau, and the squared entries of S^-1 of the fit's equations."""
    n = rows.mechanism.dof
    x = Equations(rows.mechanism, Graph())
    A = actuation(x)
    w, tau = x.graph.symbols("w", len(A)), x.graph.symbols("tau", len(A))
    push = [total([row[i] * x for row, x in zip(A, tau, strict=True)]) for i in range(n)]
    weights = [entry * entry for row in unprojected(x, rows) for entry in row]
    outputs = {"v": least_squares(A, w)[0], "push": push, "weights": weights}
    return Function("drive", {"q": len(x.x), "w": len(A), "tau": len(A)}, outputs)


def _largest(levels: list[Node]) -> Node:
    """Return the larger absolute value of both levels."""
    larger: Node = maximum(absolute(levels[0]), absolute(levels[1]))
    return larger


#: Places in `state` before the arrays: time since the start, time beyond the threshold, remaining time of the flag, time since
#: the last sample that was a number [s].
AGE, BEYOND, LEFT, SINCE, HEAD = 0, 1, 2, 3, 4
#: Places in `setting` before the arrays: z, time to confirm, time to hold, longest step [s], w of the filter [rad/s].
LEVEL, CONFIRM, HOLD, GAP, FILTER, SETTINGS = 0, 1, 2, 3, 4, 5
HUGE = 1e300
FLAT = 0.7071067811865476  # damping of a maximally flat filter of second order
THIRD = 0.5  # damping of the second-order part of a maximally flat filter of third order
WORST = 1.5  # the response of r to a push is at most this factor times that of three equal poles, at any time after it
TINY = 1e-300  # age after the first sample
SETTLED = 20.0  # times 1/w until the unknown initial velocity has decayed


class Layout:
    """Positions of all quantities in the arrays of one monitor."""

    def __init__(
        self, dof: int, parameters: int, directions: int, channels: int, tree: int, terms: int = 0, warm: tuple[int, ...] = ()
    ) -> None:
        self.n, self.p, self.k, self.m, self.tree, self.e, self.warm = dof, parameters, directions, channels, tree, terms, warm
        n, m = dof, channels
        self.now = {"dt": 0, "q": 1, "tau": 1 + m, "T": 1 + 2 * m}
        self.setting = {name: SETTINGS + i * n for i, name in enumerate(("K", "variance", "factor", "error"))}
        self.filters = {"r": HEAD + 3 * n, "q": HEAD + 6 * n, "tau": HEAD + 6 * n + 3 * m}  # input, output and its rate
        self.pose = HEAD + 6 * n + 6 * m  # closed positions of a robot with loops, and the sign of its branch
        self.first = self.pose + tree + (tree > 0)
        self.state_size = self.first + 3 * n * (1 + directions + terms)
        self.now_size, self.setting_size = 1 + 3 * m, SETTINGS + (3 + terms) * n
        self.result = {"r": 0, "threshold": n, "flag": 2 * n, "share": 2 * n + 1}
        self.result_size = 2 * n + 2

    def observer(self, j: int | Node) -> int | Node:
        """Return where r, p, u of direction j begin; 0 is the model itself, terms come after the directions."""
        return self.first + 3 * self.n * j


ARRAYS = ("now", "setting", "phi", "state", "result")


def routines(terms: Terms, layout: Layout, home: Array | None, prefix: str = "monitor") -> tuple[Routine, Routine]:
    """Return ``sample(now, setting, phi, state, result)`` and ``run(count, ...)``, which repeats it over a record.

    `home` are closed positions of a robot with loops, the start of the first closure.
    """
    graph = Graph()
    sample = _Sample(graph, terms, layout, home, f"{prefix}_sample").routine
    run = Routine(graph, f"{prefix}_run", ("count", *ARRAYS))
    with run.repeat(run.load("count")) as k:
        places: dict[str, str | Place] = {name: name for name in ARRAYS}
        places |= {"now": ("now", k * layout.now_size), "result": ("result", k * layout.result_size)}
        run.call(sample, **places)
    return sample, run


class _Sample:
    """The statements of one sample."""

    def __init__(self, graph: Graph, terms: Terms, layout: Layout, home: Array | None, name: str) -> None:
        self.graph, self.terms, self.at, self.n, self.home = graph, terms, layout, layout.n, home
        one = self.routine = Routine(graph, name, ARRAYS)
        for array in ("v", "p", "u", "f", "limit", "spread", *(("error",) if layout.e else ())):
            one.local(array, self.n)
        for array in ("q", "tau"):
            one.local(array, layout.m)
        self.dt = one.load("now", 0) + one.load("state", SINCE)
        warm = [one.load("now", layout.now["T"] + c) for c in layout.warm]
        size = total([absolute(x) for x in (*one.load_all("now", 1, 2 * layout.m), *warm)])
        finite = size < HUGE  # false where anything is not a number
        with one.when(either(opposite(self.dt > 0.0), self.dt > one.load("setting", GAP))):
            one.store("state", AGE, 0.0)
        one.store("state", SINCE, where(finite, 0.0, self.dt))
        with one.when(finite):
            self._observe()
        with one.otherwise():
            self._nothing()

    def _nothing(self) -> None:
        """Store an empty result for a sample."""
        one, nan = self.routine, self.graph.const(float("nan"))
        one.store_all("result", 0, [nan] * (2 * self.n))
        one.store_all("result", 2 * self.n, [one.load("state", LEFT) > 0.0, nan])

    def _observe(self) -> None:
        one, n, at = self.routine, self.n, self.at
        began = one.load("state", AGE) > 0.0  # the first sample has no preceding step
        w = [one.load("setting", FILTER)] * at.m
        q, rate = self._filtered("q", one.load_all("now", at.now["q"], at.m), w, FLAT, began)
        tau, _ = self._filtered("tau", one.load_all("now", at.now["tau"], at.m), w, FLAT, began)
        one.store_all("q", 0, q)
        one.store_all("tau", 0, tau)
        variance = one.load_all("setting", at.setting["variance"], n)
        if not at.tree:
            one.store_all("v", 0, rate)
            self._judge(tau, variance, "q")
            return
        closed = self._close(began)
        with one.when(closed):
            one.local("w", at.m)
            one.local("push", n)
            one.local("weights", n * n)
            one.store_all("w", 0, rate)
            assert self.terms.drive is not None
            pose = "state", at.pose
            one.call(self.terms.drive, q=pose, w="w", tau="tau", v="v", push="push", weights="weights")
            weights = one.load_all("weights", 0, n * n)
            noise = [total([weights[i * n + k] * variance[k] for k in range(n)]) for i in range(n)]
            self._judge(one.load_all("push", 0, n), noise, pose)
        with one.otherwise():
            one.store("state", AGE, 0.0)
            self._nothing()

    def _close(self, began: Node) -> Node:
        """Close the loops at the filtered motor positions, in `state`; return whether it could be done on this branch."""
        one, at, w = self.routine, self.at, self.at.tree
        assert self.terms.closing is not None and self.home is not None
        one.local("next", w)
        one.local("report", 2)
        one.local("closed", 1)
        places: dict[str, str | Place] = {"q": ("state", at.pose), "rho": "q"}
        with one.when(opposite(began)):
            one.store_all("state", at.pose, self.home.tolist())
            one.call(self.terms.closing, **places, next="next", report="report")
            one.store("state", at.pose + w, one.load("report", 0))
        one.call(closing_routine(self.terms.closing, f"{one.name}_close", far=True), **places, result="closed")
        return one.load("closed", 0) * one.load("state", at.pose + w) > 0.0

    def _judge(self, tau: list[Node], variance: list[Node], pose: str | Place) -> None:
        """Feed a sample behind the low-pass to the observers, and store torques, thresholds and the flag."""
        one, n, at = self.routine, self.n, self.at
        self.pose = pose
        age = one.load("state", AGE)
        began = age > 0.0
        ready = age * one.load("setting", FILTER) > SETTLED
        gain = one.load_all("setting", at.setting["K"], n)
        places: dict[str, str | Place] = {"q": pose, "v": "v", "tau": "tau", "T": ("now", at.now["T"])}
        one.call(self.terms.friction, **places, phi="phi", f="f", limit="limit")
        f = one.load_all("f", 0, n)
        seen = self._advance(0, ready, gain, [a - b for a, b in zip(tau, f, strict=True)])
        r, _ = self._filtered("r", seen, gain, THIRD, ready)
        error = self._error(variance, gain, ready)
        factor = one.load_all("setting", at.setting["factor"], n)
        one.store_all("spread", 0, [c * x for c, x in zip(factor, error, strict=True)])
        if at.k:
            with one.repeat(at.k) as k:
                before = one.load_all("spread", 0, n)
                side = self._advance(k + 1.0, ready, gain, [self.graph.zero] * n)
                one.store_all("spread", 0, [s + x * x for s, x in zip(before, side, strict=True)])
        bound = self._rest(one.load_all("limit", 0, n), gain, ready)
        z, spread = one.load("setting", LEVEL), one.load_all("spread", 0, n)
        threshold = [z * sqrt(s) + b for s, b in zip(spread, bound, strict=True)]
        one.store_all("result", at.result["r"], [where(ready, x, float("nan")) for x in (*r, *threshold)])
        self._flag(r, threshold, began, ready)
        one.store("state", AGE, age + where(began, self.dt, TINY))

    def _error(self, variance: list[Node], gain: list[Node], ready: Node) -> list[Node]:
        """Return the variance of the model error: that of the training, or more where the model's terms have grown."""
        one, n, at = self.routine, self.n, self.at
        if not at.e:
            return variance
        one.store_all("error", 0, [self.graph.zero] * n)
        with one.repeat(at.e) as k:
            before = one.load_all("error", 0, n)
            side = self._advance(k + (1.0 + at.k), ready, gain, [self.graph.zero] * n)
            share = [one.load("setting", k * n + (at.setting["error"] + i)) for i in range(n)]
            one.store_all("error", 0, [s + w * x * x for s, w, x in zip(before, share, side, strict=True)])
        return [maximum(a, b) for a, b in zip(variance, one.load_all("error", 0, n), strict=True)]

    def _rest(self, limit: list[Node], gain: list[Node], ready: Node) -> list[Node]:
        """Return a bound on the residual due to friction at rest, for any course of friction within its limits."""
        one, n = self.routine, self.n
        stage = limit
        for i in range(3):
            old = one.load_all("state", HEAD + i * n, n)
            stage = [
                where(ready, (b + k * self.dt * x) / (1.0 + k * self.dt), x) for b, k, x in zip(old, gain, stage, strict=True)
            ]
            one.store_all("state", HEAD + i * n, stage)
        return [WORST * x for x in stage]

    def _filtered(
        self, name: str, new: list[Node], w: list[Node], damping: float, began: Node
    ) -> tuple[list[Node], list[Node]]:
        """Advance the low-pass of second order by the trapezoidal rule; return its output and its rate."""
        one, n, dt = self.routine, len(new), self.dt
        old, x, y = (one.load_all("state", self.at.filters[name] + i * n, n) for i in range(3))
        out, rate = [], []
        for i in range(n):
            half, quarter = damping * w[i] * dt, 0.25 * w[i] * w[i] * dt * dt
            push = w[i] * w[i] * dt * (0.5 * (new[i] + old[i]) - x[i])
            after = where(began, ((1.0 - half - quarter) * y[i] + push) / (1.0 + half + quarter), 0.0)
            rate.append(after)
            out.append(where(began, x[i] + 0.5 * dt * (y[i] + after), new[i]))
        one.store_all("state", self.at.filters[name], [*new, *out, *rate])
        return out, rate

    def _advance(self, j: int | Node, ready: Node, gain: list[Node], torque: list[Node]) -> list[Node]:
        """Feed a sample to the observer of direction j and return its residual."""
        one, n, first = self.routine, self.n, self.at.observer(j)
        one.call(self.terms.momentum, q=self.pose, v="v", phi=("phi", j * self.at.p), p="p", u="u")
        p = one.load_all("p", 0, n)
        u = [a + b for a, b in zip(one.load_all("u", 0, n), torque, strict=True)]
        r, p0, u0 = (one.load_all("state", first + i * n, n) for i in range(3))
        new = [
            where(ready, (r[i] + gain[i] * (p[i] - p0[i] - 0.5 * self.dt * (u[i] + u0[i]))) / (1.0 + gain[i] * self.dt), 0.0)
            for i in range(n)
        ]
        one.store_all("state", first, [*new, *p, *u])
        return new

    def _flag(self, r: list[Node], threshold: list[Node], began: Node, ready: Node) -> None:
        """Raise the flag when the residual has been above its threshold for long enough, and hold it."""
        one, zero = self.routine, self.graph.zero
        share = zero
        for x, level in zip(r, threshold, strict=True):
            share = maximum(share, absolute(x) / level)
        over = share > 1.0
        beyond = where(over, one.load("state", BEYOND) + where(began, self.dt, 0.0), zero)
        left = maximum(one.load("state", LEFT) - where(began, self.dt, 0.0), 0.0)
        sure = where(over, opposite(beyond < one.load("setting", CONFIRM)), zero)
        left = where(sure, one.load("setting", HOLD), left)
        one.store("state", BEYOND, beyond)
        one.store("state", LEFT, left)
        told = where(ready, share, float("nan"))
        one.store_all("result", self.at.result["flag"], [either(sure, left > 0.0), told])


class Machine:
    """The routines of one monitor as machine code."""

    def __init__(self, terms: Terms, layout: Layout, home: Array | None) -> None:
        sample, run = routines(terms, layout, home)
        code = compile_routines([sample, run], "monitor")
        self.sample, self._run = code[sample.name], code[run.name]

    def run(self, now: Array, setting: Array, phi: Array, state: Array, result: Array) -> None:
        """Process all samples of a record, (N, ...) each of `now` and `result`; `state` continues."""
        count = np.array([float(now.shape[0])])
        self._run(*(array.ctypes.data for array in (count, now, setting, phi, state, result)))


SAMPLES = 60  # of the self-test
STEP = 0.15  # length of each in periods of the cut-off: the low-pass settles in a third of the test


def write_c(monitor: Monitor, folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Write header, source and self-test; `Monitor.to_c` is the short way."""
    prefix, at = identifier(name).lower(), monitor.layout
    sample, _ = routines(monitor.terms, at, monitor.home, prefix)
    about = f"Monitor of robot '{comment(monitor.mechanism.name)}'"
    files = c_files(prefix, [sample], about)
    files[f"{prefix}.h"] = _header(monitor, prefix, files[f"{prefix}.h"])
    files[f"{prefix}.c"] += _numbers(monitor, prefix)
    files[f"{prefix}_test.c"] = _test(monitor, prefix)
    return [write_atomic(Path(folder) / file, text) for file, text in files.items()]


def _header(monitor: Monitor, prefix: str, text: str) -> str:
    at, upper = monitor.layout, prefix.upper()
    joints = ", ".join(comment(joint) for joint in monitor.joints)
    lines = [
        f"/* Joints: {joints}. Measured: {', '.join(comment(name) for name in monitor.channels)}. SI units.",
        " * now:    time since the last sample; positions, efforts, temperatures (0 where no law needs them) as measured;",
        " * state:  zeros at the start;",
        " * result: external torques, thresholds, flag (0 or 1), largest share of a threshold; NaN where nothing can be said.",
        f" * Thresholds at {monitor.settings.level:.3f} deviations: {monitor.false_alarms:.3g} false alarms per hour. */",
        *(
            f"#define {upper}_{what} {size}"
            for what, size in (
                ("JOINTS", at.n),
                ("MEASURED", at.m),
                ("NOW", at.now_size),
                ("STATE", at.state_size),
                ("RESULT", at.result_size),
            )
        ),
        f"{_prototype(monitor, prefix)};",
        "",
    ]
    return text.replace(f"\n#endif /* {upper}_H */", "\n".join(["", *lines, f"#endif /* {upper}_H */"]))


def _prototype(monitor: Monitor, prefix: str) -> str:
    at = monitor.layout
    return (
        f"void {prefix}_step(const double now[{at.now_size}], double state[{at.state_size}], double result[{at.result_size}])"
    )


def _numbers(monitor: Monitor, prefix: str) -> str:
    """Return the C code of settings and parameters, and the function that uses them."""
    return "\n".join(
        [
            "",
            c_table(f"{prefix}_setting", monitor.setting),
            c_table(f"{prefix}_phi", monitor.model.values),
            _prototype(monitor, prefix),
            "{",
            f"    {prefix}_sample(now, {prefix}_setting, {prefix}_phi, state, result);",
            "}",
            "",
        ]
    )


def _samples(monitor: Monitor) -> Array:
    """Return a motion with an external push, in the layout of `now`."""
    robot, at = monitor.mechanism, monitor.layout
    step = min(STEP / monitor.settings.cutoff, monitor.settings.gap)
    t = step * np.arange(SAMPLES)[:, None]
    now = np.zeros((SAMPLES, at.now_size))
    now[1:, 0] = step
    q = 0.3 * np.sin((3.0 + np.arange(at.n)) * 0.3 * t / t[-1])
    if robot.loops:  # a small motion about home
        states = random_closed_motion(robot, 2)  # its first state is reachable
        home = states.q[1]
        tree = close_positions(robot, home + 0.2 * (states.q[0] - home) * q / 0.3)
        q = tree @ robot.actuator_matrix[0].T + robot.actuator_matrix[1]
    now[:, at.now["q"] : at.now["q"] + at.m] = q
    now[:, at.now["tau"] : at.now["tau"] + at.m] = 10.0 * (t > 0.5 * t[-1]) + np.arange(at.m)
    now[:, at.now["T"] :] = 30.0
    return now


def _test(monitor: Monitor, prefix: str) -> str:
    now, at = _samples(monitor), monitor.layout
    expected, state = np.empty((SAMPLES, at.result_size)), np.zeros(at.state_size)
    monitor.machine.run(now, monitor.setting, monitor.model.values, state, expected)
    declared = [f"    static double state[{at.state_size}];", f"    double result[{at.result_size}];", "    int k;"]
    body = [
        f"    for (k = 0; k < {SAMPLES}; k++)",
        "    {",
        f"        {prefix}_step(&now[k * {at.now_size}], state, result);",
        f"        (void)compare(&expected[k * {at.result_size}], result, {at.result_size});",
        "    }",
    ]
    tables = [c_table("now", now), c_table("expected", expected)]
    return c_self_test(prefix, f"on {SAMPLES} samples", tables, declared, body)
