"""Motors, gears, shafts and friction of a machine at one state, as expressions.

A gear transmits the share e of its input torque tau_g: eta while power flows to the output, 1 / eta when power comes from
the output. At rest it holds any load between the two. For a rigid drive, tau_g = tau - J ratio rho'' with the inertia J in
front of the gear, so

    tau_rho = ratio e (tau - J ratio rho'')          linear in the accelerations once the direction of power is known
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

from dynident.drive.drive import accelerations, gear_share, resistive_current, shaft_torque, winding_rate
from dynident.friction.terms import TERMS
from dynident.graph.algebra import NodeRows, along, both, clip, dot, equal, maximum, minimum, where
from dynident.graph.expression import Graph, Node
from dynident.mechanics.equations import Equations
from dynident.mechanics.functions import lumped_symbols
from dynident.mechanics.newton_euler import inverse_dynamics, position_rates
from dynident.simulate.friction import Given, Owner, Side, force_of, starts
from dynident.simulate.layout import INDUCTIVE, RESISTIVE, Layout, Moving, Numbers, State, each


class DriveTerms(NamedTuple):
    """Signals and rates of one drive, as expressions."""

    theta: Node
    omega: Node
    current: Node
    voltage: Node
    motor: Node  # K_t i
    friction: Node  # of the rotor
    front: Node  # torque in front of the gear, without the inertia of a rigid drive
    kept: Node  # share transmitted by the gear
    torque: Node  # behind the gear, before subtraction of the load held by a gear at rest
    rates: dict[str, list[Node]]  # of its own states


def within(x: Any, low: Any, high: Any) -> Any:
    """Return x between two limits, of expressions or arrays."""
    return minimum(maximum(x, low), high)


def within_voltage(current: Any, back: Any, top: Any, ohm: Any) -> Any:
    """Return the current limited by the voltage of an ideal source against a back-EMF: |R i + K_E omega| <= limit."""
    return within(current, (-top - back) / ohm, (top - back) / ohm)


def inertial_torques(eq: Equations) -> list[Node]:
    """Return the torques of bodies, rotors and force elements on the tree's coordinates."""
    tree = inverse_dynamics(eq.state, eq.bodies(eq.phi))
    for column, symbol, d, _ in eq.joint_columns:
        if TERMS[symbol].rotor:
            tree[d] = tree[d] + eq.phi[column] * eq.tree_a[d]
    for column, symbol, row, _ in eq.motor_columns:
        if TERMS[symbol].rotor:
            more = eq.phi[column] * dot(row, eq.tree_a)
            tree = [x + more * c for x, c in zip(tree, row, strict=True)]
    return [x + y for x, y in zip(tree, eq.forces(), strict=True)]


class Drives:
    """Kinematics, friction and drives of a machine at the state y, with memory (s) and constants (p)."""

    def __init__(self, layout: Layout, graph: Graph) -> None:
        self.layout, self.graph = layout, graph
        s = layout.state
        self.y: Moving[list[Node]] = Moving(*(f.symbols(graph, "y") for f in (s.q, s.v, s.theta, s.omega, s.coil)))
        self.s: State[list[Node]] = each(s, lambda field: field.symbols(graph))
        self.p: Numbers[list[Node]] = each(layout.numbers, lambda field: field.symbols(graph))
        self.n, self.k = layout.n, layout.k
        self.eq = Equations(layout.mechanism, graph)
        self.eq.x, self.eq.v = self.y.q, self.y.v
        self.eq.a = [graph.zero] * self.n
        self.eq.tree_a = [graph.zero] * len(layout.mechanism.tree.coordinates)  # `Dynamics.force` adds the rest
        self.eq.phi = lumped_symbols(layout.mechanism, self.p.lumped)

    # ---- reading

    def inputs(self, *more: str) -> dict[str, int]:
        """Return the input arrays of a function of the state."""
        sizes = {
            "y": self.layout.moving,
            "s": self.layout.state.size,
            "p": self.layout.numbers.size,
            "z": self.layout.state.memory.count,
            "e": self.layout.work.push.count,
            "k": self.layout.moving,
        }
        return {name: sizes[name] for name in ("y", "s", "p", *more)}

    # ---- kinematics -------------------------------------------------------------------------------------------------

    @cached_property
    def A(self) -> NodeRows:
        """Actuator rows (k, n)."""
        return [self.eq.times_G(row) for row in self.layout.rows]

    @cached_property
    def rho(self) -> list[Node]:
        """Actuator coordinates."""
        return [along(row, self.eq.tree_q) for row in self.layout.rows]

    @cached_property
    def rate(self) -> list[Node]:
        """Velocities of the actuator coordinates."""
        return [along(row, self.eq.tree_v) for row in self.layout.rows]

    @property
    def position_rates(self) -> list[Node]:
        """Rates of the integrated positions."""
        robot = self.layout.mechanism
        return position_rates(robot, self.y.q, self.eq.tree_v if robot.loops else self.eq.v)

    # ---- friction ---------------------------------------------------------------------------------------------------

    def owner_speed(self, owner: Owner) -> Node:
        """Return the speed of an owner."""
        if owner.motor < 0:
            return along(owner.form, self.eq.tree_v)
        return self.rate[owner.motor] if owner.gear else self._rotor(owner.motor)[1]

    def _rotor(self, a: int) -> tuple[Node, Node]:
        """Return angle and speed of a rotor."""
        if self.layout.shaft_counts[a]:
            first = self.layout.shafts[a]
            return self.y.theta[first], self.y.omega[first]
        ratio = self.p.ratio[a]
        return ratio * self.rho[a], ratio * self.rate[a]

    @cached_property
    def forces(self) -> list[Side]:
        """Friction of every owner in a direction, laws only."""
        first, kept = starts(self.layout.owners, "numbers"), starts(self.layout.owners, "states")
        numbers, z = self.p.law, [self.graph.symbol(f"z[{i}]") for i in range(kept[-1])]
        found = []
        for i, owner in enumerate(self.layout.owners):
            place = along(owner.form, self.eq.tree_q) if owner.motor < 0 else self._rotor(owner.motor)[0]
            speed = self.owner_speed(owner)
            given = Given(speed, place, self.s.load[i], self.p.warm[i], self.p.temperature[i], self.p.ramp[i])
            found.append(force_of(owner, given, numbers[first[i] : first[i + 1]], z[kept[i] : kept[i + 1]]))
        return found

    def side(self, i: int) -> Node | None:
        """Return the sliding direction of an owner, 0 while it sticks; None for an owner that never sticks."""
        return self.s.side[self.layout.jumping.index(i)] if i in self.layout.jumping else None

    def slid(self, i: int, force: Side) -> Node:
        """Return the friction of a sliding owner, 0 while it sticks."""
        side = self.side(i)
        if side is None:
            return force(1.0)
        result: Node = where(equal(side, 0.0), 0.0, where(side > 0.0, force(1.0), force(-1.0)))
        return result

    def _owner(self, a: int, gear: bool) -> int | None:
        return next((i for i, o in enumerate(self.layout.owners) if o.motor == a and o.gear == gear), None)

    # ---- drives

    @cached_property
    def drives(self) -> list[DriveTerms]:
        """All drives."""
        return [self._drive(a) for a in range(self.k)]

    def _current(self, a: int, omega: Node) -> tuple[Node, Node, dict[str, list[Node]]]:
        """Return current and voltage of a motor, and the rate of its winding."""
        feed, command = self.layout.feeds[a], self.s.command[a]
        R, L, emf = self.p.resistance[a], self.p.inductance[a], self.p.emf[a]
        if feed == RESISTIVE:
            return resistive_current(command, omega, R, emf), command, {}
        if feed == INDUCTIVE:
            current = self.y.coil[self.layout.windings[a]]
            return current, command, {"coil": [winding_rate(command, current, omega, (R, L, emf))]}
        back = emf * omega
        if not self.layout.limited[a]:
            return command, R * command + back, {}
        top = self.p.voltage_limit[a]
        current = within_voltage(command, back, top, R)
        return current, clip(R * current + back, top), {}

    def _drive(self, a: int) -> DriveTerms:
        ratio, eta = self.p.ratio[a], self.p.efficiency[a]
        theta, omega = self._rotor(a)
        current, voltage, rates = self._current(a, omega)
        motor = self.p.torque[a] * current
        i, j = self._owner(a, False), self._owner(a, True)
        kept, loss = self.graph.one, self.graph.zero
        if self.layout.shaft_counts[a]:
            friction = self.graph.zero if i is None else self._shaft_friction(i, motor)
            front, more = self._shafts(a, motor - friction)
            rates |= more
            loss = loss if j is None else self.slid(j, self.gear_loss(a, front))
        else:
            friction = self.graph.zero if i is None else self.slid(i, self.forces[i])
            front = motor - friction
        side = None if i is None else self.side(i)
        if self.layout.loses_rigidly(a) and side is not None:
            kept = gear_share(self.s.through[a], side, eta)
        return DriveTerms(theta, omega, current, voltage, motor, friction, front, kept, ratio * kept * front - loss, rates)

    def gear_loss(self, a: int, front: Node) -> Side:
        """Return the loss of the gear of an elastic drive in a direction, as a torque behind it."""
        ratio, eta = self.p.ratio[a], self.p.efficiency[a]

        def loss(way: float) -> Node:
            lost: Node = ratio * front * (1.0 - gear_share(ratio * front, way, eta))
            return lost

        return loss

    def limits(self, i: int) -> tuple[Node, Node]:
        """Return the lowest and highest holding force of a sticking owner."""
        owner = self.layout.owners[i]
        if owner.gear:
            loss = self.gear_loss(owner.motor, self.drives[owner.motor].front)
            return loss(-1.0), loss(1.0)
        low, high = self.forces[i](-1.0), self.forces[i](1.0)
        if owner.motor < 0 or not self.layout.loses_rigidly(owner.motor):
            return low, high
        # Sum of rotor friction and loss of the gear behind it, at the motor.
        motor, eta = self.drives[owner.motor].motor, self.p.efficiency[owner.motor]
        ahead, back = motor - high, motor - low
        return motor - back * gear_share(back, -1.0, eta), motor - ahead * gear_share(ahead, 1.0, eta)

    def _twists(self, a: int) -> list[Node]:
        """Return the torques of the shafts of a drive, from the rotor outward."""
        count, first, ratio = self.layout.shaft_counts[a], self.layout.shafts[a], self.p.ratio[a]
        last = first + count
        theta = [*self.y.theta[first:last], ratio * self.rho[a]]
        omega = [*self.y.omega[first:last], ratio * self.rate[a]]
        found = []
        for e in range(count):
            k, c = self.p.stiffness[first + e], self.p.damping[first + e]
            twist, rate = theta[e] - theta[e + 1], omega[e] - omega[e + 1]
            play = self.p.play[a] if self.layout.play[a] and e == count - 1 else None
            found.append(shaft_torque(twist, rate, k, c, play))
        return found

    def _shaft_friction(self, i: int, motor: Node) -> Node:
        """Return the friction of a rotor in front of a shaft, sliding or held."""
        if self.side(i) is None:
            return self.forces[i](1.0)
        return self.slid(i, self.forces[i]) + self.shaft_held(i, motor)

    def shaft_held(self, i: int, motor: Node) -> Node:
        """Return the force that holds a rotor in front of a shaft: it stops the rotor within the step, if friction can."""
        owner = self.layout.owners[i]
        first = self.layout.shafts[owner.motor]
        low, high = self.forces[i](-1.0), self.forces[i](1.0)
        more = self.p.slack[0] * (high - low)
        net = motor - self._twists(owner.motor)[0]
        wanted = self.p.shaft_inertia[first] * self.y.omega[first] / self.p.step[0] + net
        sticks = both(equal(self.side(i), 0.0), high > low)
        result: Node = where(sticks, within(wanted, low - more, high + more), 0.0)
        return result

    def _shafts(self, a: int, torque: Node) -> tuple[Node, dict[str, list[Node]]]:
        """Return the torque of the last shaft and the rates of the shaft masses; `torque` acts on the rotor."""
        first, twists = self.layout.shafts[a], self._twists(a)
        own = slice(first, first + len(twists))
        rates = accelerations([torque, *twists], self.p.shaft_inertia[own])
        return twists[-1], {"theta": self.y.omega[own], "omega": rates}
