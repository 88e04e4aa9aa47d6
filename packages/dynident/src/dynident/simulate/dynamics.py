"""The equation of motion of a machine as expressions: mechanism, drives, gears and friction at one state.

    (G^T M G + sum_a J_a A_a^T A_a) nu_dot = sum_a A_a^T (tau_a + push_a) - sum_o c_o^T f_o + J^T w - G^T (h + M b)

A_a = N_a G is the row of actuator a, tau_a the torque behind its gear: ratio times the torque tau_g in front of it, times
its efficiency. tau_g is the torque of the last shaft of an elastic drive, K_t i - friction - J theta'' of a rigid one.
J_a is the inertia that moves with rho.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce

from dynident.friction.terms import TERMS
from dynident.graph.algebra import (
    NodeRows,
    absolute,
    along,
    both,
    clip,
    dot,
    equal,
    factor_symmetric,
    minimum,
    opposite,
    solve_factored,
    where,
)
from dynident.graph.expression import Function, Node, total
from dynident.mechanics.equations import Equations
from dynident.mechanics.newton_euler import energies, position_rates
from dynident.simulate.drives import Drives, inertial_torques, within
from dynident.simulate.friction import Owner, laws_of
from dynident.simulate.layout import Evaluation, MachineRoutine, Signals, own_positions

TINY = 1e-13  # ratio of a pivot of the mass matrix to its diagonal entry that counts as round-off


def factor(M: NodeRows) -> tuple[NodeRows, list[Node], list[Node]]:
    """Return L, pivots and inverse pivots of a mass matrix with its rows in reverse, from the tips to the base (no fill-in)."""
    return factor_symmetric([row[::-1] for row in M[::-1]])


def solve(L: NodeRows, inverses: Sequence[Node], right: NodeRows) -> NodeRows:
    """Return M^-1 B from the result of `factor`."""
    return solve_factored(L, inverses, right[::-1])[::-1]


class Dynamics(Drives):
    """The equation of motion of a machine, and quantities that depend on its accelerations."""

    # ---- equation of motion -----------------------------------------------------------------------------------------

    @cached_property
    def tree_mass(self) -> NodeRows:
        """Inertia of mechanism and drives on all tree coordinates, with the effect of the losses of rigid gears."""
        M = self.eq.tree_mass()
        for a, row in enumerate(self.layout.rows.tolist()):
            inertia = self.p.reflected[a] + self._lossy_inertia(a)
            for i, j in ((i, j) for i, x in enumerate(row) if x for j, y in enumerate(row) if y):
                M[i][j] = M[i][j] + inertia * (row[i] * row[j])
        return M

    @cached_property
    def mass(self) -> NodeRows:
        """Inertia of mechanism and drives (n, n)."""
        return self.eq.mass_matrix(self.tree_mass)

    def _lossy_inertia(self, a: int) -> Node:
        """Return (e - 1) ratio^2 J: the share e transmitted by a rigid gear applies to the inertia in front of it too."""
        if not self.layout.loses_rigidly(a):
            return self.graph.zero
        ratio = self.p.ratio[a]
        return (self.drives[a].kept - 1.0) * (ratio * ratio) * self.p.before[a]

    def _turned(self, row: Sequence[float]) -> Node:
        """Return the computed acceleration along a row of tree coordinates."""
        turned = dot(self.eq.times_G(row), self.acceleration)
        return turned if self.eq.G is None else turned + along(row, self.eq.bias)

    @cached_property
    def motors(self) -> NodeRows:
        """Inertia of the actuators alone, for iterative coupling with the mechanism."""
        M = [[self.graph.zero] * self.n for _ in range(self.n)]
        for inertia, row in zip(self.p.joined, self.A, strict=True):
            M = [[m + inertia * (x * y) for m, y in zip(line, row, strict=True)] for line, x in zip(M, row, strict=True)]
        return M

    @cached_property
    def force(self) -> list[Node]:
        """Right-hand side of the equation of motion, without holding forces of sticking owners."""
        graph, eq = self.graph, self.eq
        tree = inertial_torques(eq)
        if eq.G is not None:  # torques of velocity-dependent accelerations
            tree = [x + dot(row, eq.bias) for x, row in zip(tree, self.tree_mass, strict=True)]
        for i, owner in enumerate(self.layout.owners):
            if owner.motor < 0:
                opposing = self.slid(i, self.forces[i])
                tree = [x + opposing * c if c else x for x, c in zip(tree, owner.form, strict=True)]
        push = [graph.symbol(f"e[{i}]") for i in range(self.layout.work.push.count)]
        for a, (drive, row) in enumerate(zip(self.drives, self.layout.rows.tolist(), strict=True)):
            torque = drive.torque + push[a] if self.layout.pushed else drive.torque
            tree = [x - torque * c if c else x for x, c in zip(tree, row, strict=True)]
        out = [-x for x in eq.project(tree)]
        for e, link in enumerate(self.layout.links):
            J = eq.jacobian(link)
            wrench = push[self.k + 6 * e : self.k + 6 * e + 6]
            out = [x + dot(wrench, [row[j] for row in J]) for j, x in enumerate(out)]
        return out

    def motion(self) -> Function:
        """Return dy/dt, and all quantities for sticking, closure and the checks of a step."""
        graph, M, layout = self.graph, self.mass, self.layout
        whole = factor(M)
        L, pivots, inverses = factor(self.motors) if layout.loop else whole
        force = self.force
        # With iterative coupling of drives and mechanism, `decoupled` finds the accelerations.
        acceleration = [graph.zero] * self.n if layout.loop else [x[0] for x in solve(L, inverses, [[x] for x in force])]
        diagonal = self.motors if layout.loop else M
        # Without row exchanges all pivots are positive if and only if the matrix is positive definite.
        solid = [d - TINY * absolute(diagonal[i][i]) for i, d in enumerate(pivots[::-1])]
        limits = [self.limits(i) for i in layout.jumping]
        stuck = [both(equal(self.side(i), 0.0), high > low) for i, (low, high) in zip(layout.jumping, limits, strict=True)]
        loops, inner = bool(layout.mechanism.loops), range(self.n)
        found = Evaluation[Sequence[Node | None]](
            solid=[reduce(minimum, solid)],
            L=[L[i][j] if j < i else None for i in inner for j in inner],
            D=inverses,
            force=force,
            stuck=[total([graph.zero, *stuck[: layout.bound]])],
            pivot=[self.eq.pivot] if loops else [],
            branch=[self.eq.branch] if loops else [],
            fix=position_rates(self.layout.mechanism, self.y.q, self.eq.correction) if loops else [],
            high=[high for _, high in limits],
            low=[low for low, _ in limits],
            now=[self.owner_speed(layout.owners[i]) for i in layout.jumping],
            held=[self.shaft_held(i, self.drives[layout.owners[i].motor].motor) for i in layout.jumping[layout.bound :]],
            other=[M[i][j] - self.motors[i][j] for i in inner for j in inner] if layout.loop else [],
            whole_factors=[whole[0][i][j] if j < i else None for i in inner for j in inner],
            whole_inverses=whole[2],
        ).by_name()
        fields = self.layout.motion.by_name().items()
        return Function(
            "motion",
            self.inputs("z", "e"),
            {"k": self._rates(acceleration), "m": [x for name, field in fields if field.count for x in found[name]]},
        )

    def _rates(self, acceleration: Sequence[Node]) -> list[Node]:
        own = {name: [x for d in self.drives for x in d.rates.get(name, [])] for name in ("theta", "omega", "coil")}
        return [*self.position_rates, *acceleration, *own["theta"], *own["omega"], *own["coil"]]

    def at_limit(self) -> Function:
        """Return the mask of drives at a limit: limited command, or current beyond the amplifier's voltage."""
        found = []
        for a, drive in enumerate(self.drives):
            beyond = self.s.beyond[a] > 0.0
            held = equal(drive.current, self.s.command[a])
            found.append(where(beyond, 1.0, opposite(held)) if self.layout.limited[a] else beyond)
        return Function("at_limit", self.inputs(), {"cut": found})

    def owner_form(self, owner: Owner) -> list[Node]:
        """Return the row c of an owner's speed c nu."""
        row = self.eq.times_G(owner.form)
        if owner.motor >= 0 and not owner.gear:
            row = [self.p.ratio[owner.motor] * x for x in row]
        return row

    @cached_property
    def speeds(self) -> Function:
        """Speeds of owners that may stick, then of those with memory."""
        owners = [self.layout.owners[i] for i in (*self.layout.jumping, *self.layout.remembering)]
        return Function("speeds", self.inputs(), {"u": [self.owner_speed(owner) for owner in owners]})

    @cached_property
    def senses(self) -> Function:
        """Measurable quantities: rho and its velocity, rotor angle and speed, current."""
        current = [self._current(a, self._rotor(a)[1])[0] for a in range(self.k)]
        theta, omega = (list(x) for x in zip(*map(self._rotor, range(self.k)), strict=True))
        outputs = {"rho": self.rho, "rho_v": self.rate, "theta": theta, "omega": omega, "current": current}
        return Function("senses", self.inputs(), outputs)

    def sense(self, r: MachineRoutine) -> None:
        """Write the measurable quantities at the state."""
        places = {"rho": r.w.rho, "rho_v": r.w.rho_v, "theta": r.w.theta, "omega": r.w.omega, "current": r.w.current}
        r.call(self.senses, y="s", **{name: r.at(field) for name, field in places.items()})

    # ---- with known accelerations --------------------------------------------------------------------------------------

    @cached_property
    def acceleration(self) -> list[Node]:
        """Computed accelerations of the coordinates."""
        first = self.layout.state.v.first
        return [self.graph.symbol(f"k[{first + i}]") for i in range(self.n)]

    def gears(self) -> Function:
        """Return the torque through every rigid gear with losses, and whether all have the assumed directions."""
        through, agree = [], self.graph.one
        for a, drive in enumerate(self.drives):
            old = self.s.through[a]
            i = self._owner(a, False)
            if not self.layout.loses_rigidly(a) or i is None:
                through.append(old)
                continue
            turned = self.p.ratio[a] * self._turned(self.layout.rows[a])
            new = drive.front - self.p.before[a] * turned
            through.append(new)
            same = equal(new > 0.0, old > 0.0)
            agree = where(equal(self.side(i), 0.0), agree, both(agree, same))
        return Function("gears", self.inputs("z", "k"), {"t": through, "agree": [agree]})

    def _total(self, i: int, slid: Node) -> Node:
        """Return the force of an owner that moves with the mechanism, held or sliding."""
        if i not in self.layout.jumping:
            return slid
        side, held = self.side(i), self.s.held[self.layout.jumping.index(i)]
        low, high = self.limits(i)
        result: Node = where(equal(side, 0.0), where(high > low, held, 0.0), slid)
        return result

    @cached_property
    def joint_forces(self) -> dict[int, Node]:
        """Friction of the joints by owner."""
        return {
            i: self._total(i, self.slid(i, self.forces[i])) for i, owner in enumerate(self.layout.owners) if owner.motor < 0
        }

    def seen(self, a: int) -> tuple[Node, Node, Node]:
        """Return friction of a rotor, loss of its gear and torque behind it, including holding forces."""
        drive, ratio = self.drives[a], self.p.ratio[a]
        i, j = self._owner(a, False), self._owner(a, True)
        if j is not None:
            loss = self._total(j, self.slid(j, self.gear_loss(a, drive.front)))
            return drive.friction, loss, ratio * drive.front - loss
        if self.layout.shaft_counts[a] or i is None:
            return drive.friction, self.graph.zero, drive.torque
        whole = self._total(i, drive.friction)
        if not self.layout.lossy[a]:
            return whole, self.graph.zero, ratio * (drive.motor - whole)
        rests = equal(self.side(i), 0.0)
        opposing = within(whole, self.forces[i](-1.0), self.forces[i](1.0))
        friction = where(rests, opposing, drive.friction)
        loss = ratio * where(rests, whole - opposing, (1.0 - drive.kept) * self.s.through[a])
        return friction, loss, ratio * (drive.motor - friction) - loss

    def loads(self) -> Function:
        """Return the load of the links of every owner: drive torque less friction, rotors and force elements."""
        rotors = [(self.p.reflected[a] + self._lossy_inertia(a)) * self._turned(row) for a, row in enumerate(self.layout.rows)]
        torque = [self.seen(a)[2] - rotors[a] for a in range(self.k)]
        found: list[Node | None] = []
        for i, owner in enumerate(self.layout.owners):
            if i not in self.layout.loading:
                found.append(None)
            elif owner.motor >= 0:
                found.append(torque[owner.motor] / self.p.ratio[owner.motor])
            else:
                own = [t * float(self.layout.rows[a][owner.joint]) for a, t in enumerate(torque)]
                inertia = [self.eq.phi[c] for c, s, d, _ in self.eq.joint_columns if d == owner.joint and TERMS[s].rotor]
                own += [-x * self._turned(owner.form) for x in inertia]
                found.append(total(own) - self.joint_forces[i] - self.eq.forces()[owner.joint])
        return Function("loads", self.inputs("z", "k"), {"load": found})

    @cached_property
    def record(self) -> Function:
        """One row of true signals."""
        eq, graph, layout = self.eq, self.graph, self.layout
        seen = [self.seen(a) for a in range(self.k)]
        nt = len(layout.mechanism.tree.coordinates)
        friction, power = [graph.zero] * nt, [graph.zero] * nt
        for i, force in self.joint_forces.items():
            owner = layout.owners[i]
            friction = [x + force * c if c else x for x, c in zip(friction, owner.form, strict=True)]
            if owner.joint >= 0:
                power[owner.joint] = power[owner.joint] + force * self.owner_speed(owner)
        signals = Signals[Sequence[Node]](
            q=[self.y.q[i] for i in own_positions(layout.mechanism)],
            v=self.y.v,
            a=self.acceleration,
            torques=[t for _, _, t in seen],
            motor_torque=[d.motor for d in self.drives],
            current=[d.current for d in self.drives],
            friction=[f for f, _, _ in seen],
            rho=self.rho,
            rho_v=self.rate,
            theta=[d.theta for d in self.drives],
            omega=[d.omega for d in self.drives],
            voltage=[d.voltage for d in self.drives],
            gear_loss=[loss for _, loss, _ in seen],
            joint_friction=friction,
            joint_power=power,
            energy=self._energy(eq),
        )
        return Function("record", self.inputs("z", "k"), signals.by_name())

    def _energy(self, eq: Equations) -> tuple[Node, Node]:
        """Return kinetic and potential energy: bodies, rotors, shaft masses, shafts, springs."""
        kinetic, potential = energies(eq.state, eq.bodies(self.p.phi))
        kinetic, potential = kinetic + eq.rotor_energy(), potential + eq.force_energy()
        for i, law, number, _ in laws_of(self.layout.owners):
            if law == "k" and self.layout.owners[i].motor < 0:
                x = along(self.layout.owners[i].form, eq.tree_q)
                potential = potential + 0.5 * self.p.law[number] * (x * x)
        for a, count in enumerate(self.layout.shaft_counts):
            kinetic = kinetic + 0.5 * self.p.reflected[a] * (self.rate[a] * self.rate[a])
            masses = self.layout.shafts[a]
            theta = [*self.y.theta[masses : masses + count], self.p.ratio[a] * self.rho[a]]
            for e in range(count):
                speed, twist = self.y.omega[masses + e], theta[e] - theta[e + 1]
                if self.layout.play[a] and e == count - 1:
                    twist = twist - clip(twist, self.p.play[a])
                kinetic = kinetic + 0.5 * self.p.shaft_inertia[masses + e] * (speed * speed)
                potential = potential + 0.5 * self.p.stiffness[masses + e] * (twist * twist)
        return kinetic, potential
