"""The equation of motion of a machine as expressions: mechanism, drives, gears and friction at one state.

    (G^T M G + sum_a J_a A_a^T A_a) nu_dot = sum_a A_a^T (tau_a + push_a) - sum_o c_o^T f_o + J^T w - G^T (h + M b)

A_a = N_a G is the row of actuator a, tau_a the torque behind its gear: ratio times the torque tau_g in front of it, times what
its efficiency leaves. tau_g is the torque of the last shaft of an elastic drive, K_t i - friction - J theta'' of a rigid one. J_a
is the inertia that moves with rho.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from dynident.graph import Function, Graph, Node, absolute, both, equal, maximum, minimum, opposite, total, where
from dynident.mechanics.equations import Equations
from dynident.mechanics.matrices import energies
from dynident.mechanics.solving import Rows, factor_symmetric, solve_factored
from dynident.mechanics.vectors import cross, dot, plus, scale
from dynident.simulate.friction import Given, Owner, Side, force_of
from dynident.simulate.shape import INDUCTIVE, RESISTIVE, Memory, Shape, starts

TINY = 1e-13  # pivot of the mass matrix over its diagonal entry that is made of rounding errors


class Drive(NamedTuple):
    """What one drive does, as expressions."""

    rho: Node
    rate: Node
    theta: Node
    omega: Node
    current: Node
    voltage: Node
    motor: Node  # K_t i
    friction: Node  # of the rotor
    front: Node  # torque in front of the gear, without the inertia of a rigid drive
    kept: Node  # share that the gear hands on
    torque: Node  # behind the gear, what a gear at rest holds not yet taken away
    rates: dict[str, list[Node]]  # of its own states


def clip(x: Node, limit: Node) -> Node:
    """Return x within +-limit."""
    result: Node = minimum(maximum(x, -limit), limit)
    return result


class Dynamics:
    """All expressions of a machine at the state y, with what is remembered (s) and its numbers (p)."""

    def __init__(self, shape: Shape, memory: Memory, graph: Graph) -> None:
        self.shape, self.memory, self.graph = shape, memory, graph
        self.n, self.k = shape.mechanism.dof, len(shape.drives)
        self.eq = Equations(shape.mechanism, graph)
        self.eq.x, self.eq.v = self.y("q"), self.y("v")
        self.eq.a, self.eq.phi = [graph.zero] * self.n, self.p("phi")

    # ---- reading ----------------------------------------------------------------------------------------------------

    def y(self, name: str) -> list[Node]:
        """Return integrated numbers."""
        first = self.memory.state.at(name)
        return [self.graph.symbol(f"y[{first + i}]") for i in range(self.memory.state.count(name))]

    def s(self, name: str) -> list[Node]:
        """Return remembered numbers."""
        return self.memory.state.symbols(self.graph, name)

    def p(self, name: str) -> list[Node]:
        """Return constants of the machine."""
        return self.memory.numbers.symbols(self.graph, name)

    def inputs(self, *more: str) -> dict[str, int]:
        """Return the arrays that a function of the state takes."""
        sizes = {
            "y": self.memory.moving,
            "s": self.memory.state.size,
            "p": self.memory.numbers.size,
            "z": self.memory.state.count("memory"),
            "e": self.memory.work.count("push"),
            "k": self.memory.moving,
        }
        return {name: sizes[name] for name in ("y", "s", "p", *more)}

    # ---- kinematics -------------------------------------------------------------------------------------------------

    def _forms(self, row: Sequence[float]) -> list[Node]:
        """Return c G of a row of tree coordinates."""
        G = self.eq.G
        if G is None:
            return [self.graph.const(float(x)) for x in row]
        return [total([self.graph.zero, *(G[i][j] * x for i, x in enumerate(row) if x)]) for j in range(self.n)]

    def _along(self, row: Sequence[float], x: Sequence[Node]) -> Node:
        """Return c x of tree quantities."""
        return total([self.graph.zero, *(x[i] * c for i, c in enumerate(row) if c)])

    @cached_property
    def A(self) -> Rows:
        """Actuator rows (k, n)."""
        return [self._forms(row) for row in self.shape.rows]

    @cached_property
    def rho(self) -> list[Node]:
        """Actuator coordinates."""
        return [self._along(row, self.eq.tree_q) for row in self.shape.rows]

    @cached_property
    def rate(self) -> list[Node]:
        """Their velocities."""
        return [self._along(row, self.eq.tree_v) for row in self.shape.rows]

    def coordinate_rates(self, rates: Sequence[Node]) -> list[Node]:
        """Return the rates of positions from velocities; those of balls and free bodies are quasi-velocities.

        dr/dt = Jr(r)^-1 w with Jr^-1 = 1 + [r]x / 2 + (1/t^2 - cot(t/2) / (2 t)) [r]x^2, t = |r|, and dp/dt = exp([r]x) v.
        """
        out, q, graph = list(rates), self.y("q"), self.graph
        for free, first in self.shape.balls:
            turn = first + 3 if free else first
            r, w = (q[turn], q[turn + 1], q[turn + 2]), (out[turn], out[turn + 1], out[turn + 2])
            square = dot(r, r)
            f, g = graph.call("sinc", square), graph.cosc(square)
            near = square < 1e-4
            e = where(near, 1.0 / 12.0 + square / 720.0, (1.0 - 0.5 * f / g) / where(near, 1.0, square))
            once = cross(r, w)
            out[turn : turn + 3] = plus(w, plus(scale(once, 0.5), scale(cross(r, once), e)))
            if free:
                x = (out[first], out[first + 1], out[first + 2])
                once = cross(r, x)
                out[first : first + 3] = plus(x, plus(scale(once, f), scale(cross(r, once), g)))
        return out

    @property
    def position_rates(self) -> list[Node]:
        """Rates of the positions that are integrated."""
        return self.coordinate_rates(self.eq.tree_v if self.shape.mechanism.loops else self.eq.v)

    # ---- friction ---------------------------------------------------------------------------------------------------

    def owner_speed(self, owner: Owner) -> Node:
        """Return the speed of an owner."""
        if owner.motor < 0:
            return self._along(owner.form, self.eq.tree_v)
        return self.rate[owner.motor] if owner.gear else self._rotor(owner.motor)[1]

    def _rotor(self, a: int) -> tuple[Node, Node]:
        """Return angle and speed of a rotor."""
        if self.shape.drives[a].shafts:
            first = self.shape.shafts[a]
            return self.y("theta")[first], self.y("omega")[first]
        ratio = self.p("ratio")[a]
        return ratio * self.rho[a], ratio * self.rate[a]

    @cached_property
    def forces(self) -> list[Side]:
        """Friction of every owner in a direction, laws only."""
        first, kept = starts(self.shape.owners, "numbers"), starts(self.shape.owners, "states")
        numbers, z = self.p("law"), [self.graph.symbol(f"z[{i}]") for i in range(kept[-1])]
        found = []
        for i, owner in enumerate(self.shape.owners):
            place = self._along(owner.form, self.eq.tree_q) if owner.motor < 0 else self._rotor(owner.motor)[0]
            speed = self.owner_speed(owner)
            given = Given(speed, place, self.s("load")[i], *(self.p(name)[i] for name in ("warm", "temperature", "ramp")))
            found.append(force_of(owner, given, numbers[first[i] : first[i + 1]], z[kept[i] : kept[i + 1]]))
        return found

    def side(self, i: int) -> Node | None:
        """Return the side to which an owner slides, 0 while it sticks; None for one that never does."""
        return self.s("side")[self.shape.jumping.index(i)] if i in self.shape.jumping else None

    def slid(self, i: int, force: Side) -> Node:
        """Return the force of an owner that slides, and nothing where it sticks."""
        side = self.side(i)
        if side is None:
            return force(1.0)
        result: Node = where(equal(side, 0.0), 0.0, where(side > 0.0, force(1.0), force(-1.0)))
        return result

    def _owner(self, a: int, gear: bool) -> int | None:
        return next((i for i, o in enumerate(self.shape.owners) if o.motor == a and o.gear == gear), None)

    # ---- drives -----------------------------------------------------------------------------------------------------

    @cached_property
    def drives(self) -> list[Drive]:
        """All drives."""
        return [self._drive(a) for a in range(self.k)]

    def _current(self, a: int, omega: Node) -> tuple[Node, Node, dict[str, list[Node]]]:
        """Return current and voltage of a motor, and the rate of its winding."""
        shape, command = self.shape.drives[a], self.s("command")[a]
        R, L, emf = (self.p(name)[a] for name in ("resistance", "inductance", "emf"))
        back = emf * omega
        if shape.feed == RESISTIVE:
            return (command - back) / R, command, {}
        if shape.feed == INDUCTIVE:
            current = self.y("coil")[self.shape.windings[a]]
            return current, command, {"coil": [(command - R * current - back) / L]}
        if not shape.limited:
            return command, R * command + back, {}
        current = self.within_voltage(a, command, omega)
        return current, clip(R * current + back, self.p("voltage_limit")[a]), {}

    def within_voltage(self, a: int, current: Node, omega: Node) -> Node:
        """Return what an ideal source can hold of a current: |R i + K_E omega| is within the voltage limit."""
        top, ohm, back = self.p("voltage_limit")[a], self.p("resistance")[a], self.p("emf")[a] * omega
        result: Node = minimum(maximum(current, (-top - back) / ohm), (top - back) / ohm)
        return result

    def _drive(self, a: int) -> Drive:
        shape = self.shape.drives[a]
        ratio, eta = self.p("ratio")[a], self.p("efficiency")[a]
        theta, omega = self._rotor(a)
        current, voltage, rates = self._current(a, omega)
        motor = self.p("torque")[a] * current
        i = self._owner(a, False)
        one, zero = self.graph.one, self.graph.zero
        if shape.shafts:
            friction = zero if i is None else self._shaft_friction(a, i, motor)
            front, more = self._shafts(a, motor - friction)
            rates |= more
            loss = zero
            j = self._owner(a, True)
            if j is not None:
                loss = self.slid(j, self.gear_loss(a, front))
            return Drive(
                self.rho[a],
                self.rate[a],
                theta,
                omega,
                current,
                voltage,
                motor,
                friction,
                front,
                one,
                ratio * front - loss,
                rates,
            )
        friction = zero if i is None else self.slid(i, self.forces[i])
        front, kept = motor - friction, one
        if shape.lossy and i is not None:
            side = self.s("side")[self.shape.jumping.index(i)]
            ahead = equal(self.s("through")[a] > 0.0, side > 0.0)
            kept = where(equal(side, 0.0), 1.0, where(ahead, eta, 1.0 / eta))
        return Drive(
            self.rho[a], self.rate[a], theta, omega, current, voltage, motor, friction, front, kept, ratio * kept * front, rates
        )

    def gear_loss(self, a: int, front: Node) -> Side:
        """Return what the gear of an elastic drive takes from the torque behind it, in a direction."""
        ratio, eta = self.p("ratio")[a], self.p("efficiency")[a]

        def loss(way: float) -> Node:
            forward = ratio * front * way > 0.0
            return ratio * front * (1.0 - where(forward, eta, 1.0 / eta))

        return loss

    def limits(self, i: int) -> tuple[Node, Node]:
        """Return the forces between which an owner that sticks is held: lowest and highest."""
        owner = self.shape.owners[i]
        if owner.gear:
            loss = self.gear_loss(owner.motor, self.drives[owner.motor].front)
            return loss(-1.0), loss(1.0)
        low, high = self.forces[i](-1.0), self.forces[i](1.0)
        if owner.motor < 0 or not self.shape.drives[owner.motor].lossy or self.shape.drives[owner.motor].shafts:
            return low, high
        # Friction of the rotor and loss of the gear behind it together, at the motor.
        motor, eta = self.drives[owner.motor].motor, self.p("efficiency")[owner.motor]
        ahead, back = motor - high, motor - low
        return motor - back * where(back > 0.0, 1.0 / eta, eta), motor - ahead * where(ahead > 0.0, eta, 1.0 / eta)

    def _shaft_torque(self, e: int, play: Node | None, twist: Node, rate: Node) -> Node:
        k, c = self.p("stiffness")[e], self.p("damping")[e]
        if play is None:
            return k * twist + c * rate
        rest = twist - clip(twist, play)
        result: Node = where(equal(rest, 0.0), 0.0, k * rest + c * rate)
        return result

    def _twists(self, a: int) -> list[Node]:
        """Return the torques of the shafts of a drive, from the rotor outward."""
        shape, first, ratio = self.shape.drives[a], self.shape.shafts[a], self.p("ratio")[a]
        last = first + shape.shafts
        theta = [*self.y("theta")[first:last], ratio * self.rho[a]]
        omega = [*self.y("omega")[first:last], ratio * self.rate[a]]
        play = self.p("play")[a] if shape.play else None
        return [
            self._shaft_torque(
                first + e, play if e == shape.shafts - 1 else None, theta[e] - theta[e + 1], omega[e] - omega[e + 1]
            )
            for e in range(shape.shafts)
        ]

    def _shaft_friction(self, a: int, i: int, motor: Node) -> Node:
        """Return the friction of a rotor in front of a shaft, sliding or held."""
        if self.side(i) is None:
            return self.forces[i](1.0)
        return self.slid(i, self.forces[i]) + self.shaft_held(i, motor)

    def shaft_held(self, i: int, motor: Node) -> Node:
        """Return the force that holds a rotor in front of a shaft: what brings it to rest within the step, if friction can."""
        owner = self.shape.owners[i]
        first = self.shape.shafts[owner.motor]
        low, high = self.forces[i](-1.0), self.forces[i](1.0)
        net = motor - self._twists(owner.motor)[0]
        wanted = self.p("shaft_inertia")[first] * self.y("omega")[first] / self.p("step")[0] + net
        sticks = both(equal(self.side(i), 0.0), high > low)
        result: Node = where(sticks, minimum(maximum(wanted, low), high), 0.0)
        return result

    def _shafts(self, a: int, torque: Node) -> tuple[Node, dict[str, list[Node]]]:
        """Return the torque of the last shaft and the rates of the shaft masses, of which the rotor feels a torque."""
        first, twists = self.shape.shafts[a], self._twists(a)
        omega, J = self.y("omega"), self.p("shaft_inertia")
        before = [torque, *twists]
        rates = [(before[e] - before[e + 1]) / J[first + e] for e in range(len(twists))]
        return twists[-1], {"theta": omega[first : first + len(twists)], "omega": rates}

    # ---- equation of motion -----------------------------------------------------------------------------------------

    @cached_property
    def mass(self) -> Rows:
        """Inertia of mechanism and drives (n, n), with what the losses of rigid gears make of it."""
        M = [list(row) for row in self.eq.mass_matrix()]
        for a in range(self.k):
            self._add(M, self.A[a], self.p("reflected")[a] + self._lossy_inertia(a))
        return M

    def _lossy_inertia(self, a: int) -> Node:
        """Return (e - 1) ratio^2 J: the share e that a rigid gear hands on acts on the inertia in front of it too."""
        if not self.shape.drives[a].lossy or self.shape.drives[a].shafts:
            return self.graph.zero
        ratio = self.p("ratio")[a]
        return (self.drives[a].kept - 1.0) * (ratio * ratio) * self.p("before")[a]

    @staticmethod
    def _add(M: Rows, row: Sequence[Node], inertia: Node) -> None:
        for i in range(len(row)):
            for j in range(len(row)):
                M[i][j] = M[i][j] + inertia * (row[i] * row[j])

    @cached_property
    def motors(self) -> Rows:
        """Inertia of the actuators alone, for the loops that join them to the mechanism step by step."""
        M = [[self.graph.zero] * self.n for _ in range(self.n)]
        for a in range(self.k):
            self._add(M, self.A[a], self.p("joined")[a])
        return M

    @cached_property
    def force(self) -> list[Node]:
        """Right-hand side of the equation of motion, without what holds owners that stick."""
        graph, eq = self.graph, self.eq
        tree = eq.recursion.inverse_dynamics(eq.bodies(eq.phi))
        for column, symbol, d, _ in eq.joint_columns:
            if symbol == "ia":
                tree[d] = tree[d] + eq.phi[column] * eq.tree_a[d]
        for column, symbol, row, _ in eq.motor_columns:
            if symbol == "ia":
                more = eq.phi[column] * dot(row, eq.tree_a)
                tree = [x + more * c for x, c in zip(tree, row, strict=True)]
        for i, owner in enumerate(self.shape.owners):
            if owner.motor < 0:
                rub = self.slid(i, self.forces[i])
                tree = [x + rub * c if c else x for x, c in zip(tree, owner.form, strict=True)]
        out = [-x for x in eq.project(tree)]
        push = [graph.symbol(f"e[{i}]") for i in range(self.memory.work.count("push"))]
        for a, drive in enumerate(self.drives):
            bend = self._along(self.shape.rows[a], eq.bias) if self.shape.mechanism.loops or eq.G is not None else graph.zero
            torque = drive.torque - (self.p("reflected")[a] + self._lossy_inertia(a)) * bend
            if self.shape.pushed:
                torque = torque + push[a]
            out = [x + torque * c for x, c in zip(out, self.A[a], strict=True)]
        for e, link in enumerate(self.shape.links):
            J = eq.jacobian(link)
            wrench = push[self.k + 6 * e : self.k + 6 * e + 6]
            out = [x + dot(wrench, [row[j] for row in J]) for j, x in enumerate(out)]
        return out

    def motion(self) -> Function:
        """Return dy/dt, and all that sticking, closure and the checks of a step need."""
        graph, m = self.graph, self.memory.motion
        M, shape = self.mass, self.shape
        whole = factor_symmetric(M)
        used = factor_symmetric(self.motors) if shape.loop else whole
        L, pivots, inverses = used
        force = self.force
        if shape.loop:
            acceleration = [graph.zero] * self.n  # `decoupled` finds them
        else:
            acceleration = [x[0] for x in solve_factored(L, inverses, [[x] for x in force])]
        diagonal = self.motors if shape.loop else M
        solid = [absolute(d) - TINY * absolute(diagonal[i][i]) for i, d in enumerate(pivots)]
        worst = solid[0]
        for x in solid[1:]:
            worst = minimum(worst, x)
        jumping = [shape.owners[i] for i in shape.jumping]
        limits = [self.limits(i) for i in shape.jumping]
        stuck = [both(equal(self.side(i), 0.0), high > low) for i, (low, high) in zip(shape.jumping, limits, strict=True)]
        values: dict[str, Sequence[Node | float | None]] = {
            "L": [L[i][j] if j < i else None for i in range(self.n) for j in range(self.n)],
            "D": inverses,
            "force": force if shape.loop else [None] * self.n,
            "solid": [worst],
            "pivot": [self.eq.pivot if shape.mechanism.loops else 1.0],
            "branch": [self.eq.branch if shape.mechanism.loops else 1.0],
            "fix": self.coordinate_rates(self.eq.correction) if shape.mechanism.loops else [None] * m.count("fix"),
            "stuck": [total([graph.zero, *stuck[: shape.bound]])],
            "at_limit": [self._at_limit(a) for a in range(self.k)],
            "high": [high for _, high in limits],
            "low": [low for low, _ in limits],
            "now": [self.owner_speed(owner) for owner in jumping],
            "held": [self.shaft_held(i, self.drives[shape.owners[i].motor].motor) for i in shape.jumping[shape.bound :]],
        }
        if shape.loop:
            values["other"] = [x - y for row, more in zip(M, self.motors, strict=True) for x, y in zip(row, more, strict=True)]
            values["L2"] = [whole[0][i][j] if j < i else None for i in range(self.n) for j in range(self.n)]
            values["D2"] = whole[2]
        return Function(
            "motion",
            self.inputs("z", "e"),
            {"k": self._rates(acceleration), "m": [self._node(x) for name in m for x in values.get(name, ())]},
        )

    def _node(self, x: Node | float | None) -> Node | None:
        return None if x is None else self.graph.node(x)

    def _rates(self, acceleration: Sequence[Node]) -> list[Node]:
        own = {name: [x for d in self.drives for x in d.rates.get(name, [])] for name in ("theta", "omega", "coil")}
        return [*self.position_rates, *acceleration, *own["theta"], *own["omega"], *own["coil"]]

    def _at_limit(self, a: int) -> Node:
        beyond = self.s("beyond")[a] > 0.0
        if not self.shape.drives[a].limited:
            return beyond
        result: Node = where(beyond, 1.0, opposite(equal(self.drives[a].current, self.s("command")[a])))
        return result

    def owner_form(self, owner: Owner) -> list[Node]:
        """Return the row c of an owner's speed c nu."""
        row = self._forms(owner.form)
        if owner.motor >= 0 and not owner.gear:
            row = [self.p("ratio")[owner.motor] * x for x in row]
        return row

    def forms(self) -> Function:
        """Return the rows c of all owners that may stick and move with the mechanism."""
        rows = [self.owner_form(self.shape.owners[i]) for i in self.shape.jumping[: self.shape.bound]]
        return Function("forms", self.inputs(), {"c": [x for row in rows for x in row]})

    def speeds(self) -> Function:
        """Return the speeds of owners that may stick, then of those with memory."""
        owners = [self.shape.owners[i] for i in (*self.shape.jumping, *self.shape.remembering)]
        return Function("speeds", self.inputs(), {"u": [self.owner_speed(owner) for owner in owners]})

    def senses(self) -> Function:
        """Return what sensors can see: rho and its velocity, the rotor, the current."""
        current = [self._current(a, self._rotor(a)[1])[0] for a in range(self.k)]
        turned = [self._rotor(a) for a in range(self.k)]
        outputs = {
            "rho": self.rho,
            "rate": self.rate,
            "theta": [theta for theta, _ in turned],
            "omega": [omega for _, omega in turned],
            "current": current,
        }
        return Function("senses", self.inputs(), outputs)

    def drift(self) -> Function:
        """Return the rates of the positions."""
        return Function("drift", self.inputs(), {"d": self.position_rates})

    # ---- after the accelerations are known -----------------------------------------------------------------------------

    @cached_property
    def acceleration(self) -> list[Node]:
        """Accelerations of the coordinates that were found."""
        first = self.memory.state.at("v")
        return [self.graph.symbol(f"k[{first + i}]") for i in range(self.n)]

    def gears(self) -> Function:
        """Return the torque through every rigid gear with losses, and whether all have the assumed directions."""
        through, agree = [], self.graph.one
        for a, drive in enumerate(self.drives):
            old = self.s("through")[a]
            i = self._owner(a, False)
            if not self.shape.drives[a].lossy or self.shape.drives[a].shafts or i is None:
                through.append(old)
                continue
            bend = self._along(self.shape.rows[a], self.eq.bias) if self.eq.G is not None else self.graph.zero
            turned = self.p("ratio")[a] * (dot(self.A[a], self.acceleration) + bend)
            new = drive.front - self.p("before")[a] * turned
            through.append(new)
            same = equal(new > 0.0, old > 0.0)
            agree = where(equal(self.side(i), 0.0), agree, both(agree, same))
        return Function("gears", self.inputs("z", "k"), {"t": through, "agree": [agree]})

    def _total(self, i: int, slid: Node) -> Node:
        """Return the force of an owner that moves with the mechanism, held or sliding."""
        if i not in self.shape.jumping:
            return slid
        side, held = self.side(i), self.s("held")[self.shape.jumping.index(i)]
        low, high = self.limits(i)
        result: Node = where(equal(side, 0.0), where(high > low, held, 0.0), slid)
        return result

    @cached_property
    def joint_forces(self) -> dict[int, Node]:
        """Friction of the joints by owner."""
        return {i: self._total(i, self.slid(i, self.forces[i])) for i, owner in enumerate(self.shape.owners) if owner.motor < 0}

    def seen(self, a: int) -> tuple[Node, Node, Node]:
        """Return friction of a rotor, loss of its gear and torque behind it, with what holds them."""
        drive, shape, ratio = self.drives[a], self.shape.drives[a], self.p("ratio")[a]
        i, j = self._owner(a, False), self._owner(a, True)
        if j is not None:
            loss = self._total(j, self.slid(j, self.gear_loss(a, drive.front)))
            return drive.friction, loss, ratio * drive.front - loss
        if shape.shafts or i is None:
            return drive.friction, self.graph.zero, drive.torque
        whole = self._total(i, drive.friction)
        if not shape.lossy:
            return whole, self.graph.zero, ratio * (drive.motor - whole)
        rests = equal(self.side(i), 0.0)
        rub = minimum(maximum(whole, self.forces[i](-1.0)), self.forces[i](1.0))
        friction = where(rests, rub, drive.friction)
        loss = ratio * where(rests, whole - rub, (1.0 - drive.kept) * self.s("through")[a])
        return friction, loss, ratio * (drive.motor - friction) - loss

    def loads(self) -> Function:
        """Return what the drives leave of every owner after its friction: the load of its links."""
        torque = [self.seen(a)[2] for a in range(self.k)]
        found: list[Node | None] = []
        for i, owner in enumerate(self.shape.owners):
            if i not in self.shape.loading:
                found.append(None)
            elif owner.motor >= 0:
                found.append(torque[owner.motor] / self.p("ratio")[owner.motor])
            else:
                given = [t * float(self.shape.rows[a][owner.joint]) for a, t in enumerate(torque)]
                found.append(total(given) - self.joint_forces[i])
        return Function("loads", self.inputs("z", "k"), {"load": found})

    def record(self) -> Function:
        """Return one row of true signals."""
        eq, graph, shape = self.eq, self.graph, self.shape
        seen = [self.seen(a) for a in range(self.k)]
        nt = len(shape.mechanism.tree.coordinates)
        friction, power = [graph.zero] * nt, [graph.zero] * nt
        for i, force in self.joint_forces.items():
            owner = shape.owners[i]
            friction = [x + force * c if c else x for x, c in zip(friction, owner.form, strict=True)]
            if owner.joint >= 0:
                power[owner.joint] = power[owner.joint] + force * self.owner_speed(owner)
        own = [shape.mechanism.tree.coordinates.index(name) for name in shape.mechanism.coordinate_names]
        x = [self.y("q")[i] for i in own] if shape.mechanism.loops else self.y("q")
        values = {
            "q": x,
            "v": self.y("v"),
            "a": self.acceleration,
            "torque": [t for _, _, t in seen],
            "motor": [d.motor for d in self.drives],
            "current": [d.current for d in self.drives],
            "friction": [f for f, _, _ in seen],
            "rho": self.rho,
            "rho_v": self.rate,
            "theta": [d.theta for d in self.drives],
            "omega": [d.omega for d in self.drives],
            "voltage": [d.voltage for d in self.drives],
            "sensed": self.s("sensed"),
            "sensed_v": self.s("sensed_v"),
            "loss": [loss for _, loss, _ in seen],
            "joint_friction": friction,
            "joint_power": power,
            "energy": self._energy(eq),
        }
        return Function("record", self.inputs("z", "k"), {"r": [node for name in self.memory.record for node in values[name]]})

    def _energy(self, eq: Equations) -> tuple[Node, Node]:
        """Return kinetic and potential energy: bodies, rotors, shaft masses, shafts, springs."""
        kinetic, potential = energies(eq.recursion, eq.bodies(eq.phi))
        for column, symbol, d, _ in eq.joint_columns:
            if symbol == "ia":
                kinetic = kinetic + 0.5 * eq.phi[column] * (eq.tree_v[d] * eq.tree_v[d])
        for column, symbol, row, _ in eq.motor_columns:
            if symbol == "ia":
                v = dot(row, eq.tree_v)
                kinetic = kinetic + 0.5 * eq.phi[column] * (v * v)
        first, numbers = starts(self.shape.owners, "numbers"), self.p("law")
        for i, owner in enumerate(self.shape.owners):
            at = first[i]
            for part in owner.parts:
                if part.what == "k" and owner.motor < 0:
                    x = self._along(owner.form, eq.tree_q)
                    potential = potential + 0.5 * numbers[at] * (x * x)
                at += len(part.numbers)
        for a, shape in enumerate(self.shape.drives):
            kinetic = kinetic + 0.5 * self.p("reflected")[a] * (self.rate[a] * self.rate[a])
            masses = self.shape.shafts[a]
            theta = [*self.y("theta")[masses : masses + shape.shafts], self.p("ratio")[a] * self.rho[a]]
            for e in range(shape.shafts):
                speed, twist = self.y("omega")[masses + e], theta[e] - theta[e + 1]
                if shape.play and e == shape.shafts - 1:
                    twist = twist - clip(twist, self.p("play")[a])
                kinetic = kinetic + 0.5 * self.p("shaft_inertia")[masses + e] * (speed * speed)
                potential = potential + 0.5 * self.p("stiffness")[masses + e] * (twist * twist)
        return kinetic, potential
