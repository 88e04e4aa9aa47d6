"""The equations of one robot as expressions of its independent coordinates, with couplings and loops.

    tau = G^T [ Y_tree(q_t, v_t, a_t) phi + joint terms + motor terms ]

The kinematics of the tree (q_t, v_t, a_t, G) are in `newton_euler.MovingTree`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from dynident.arrays import Array
from dynident.errors import DescriptionError
from dynident.friction.terms import TERMS
from dynident.graph.algebra import NodeRows, absolute, dot, vector, where
from dynident.graph.expression import Graph, Node, derivative, derivative_matrix, forward, substitute, total
from dynident.mechanics.newton_euler import MovingTree, coriolis_matrix, energies, inverse_dynamics, mass_matrix, regressor
from dynident.mechanism.force import Force
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import Inertia, moved
from dynident.mechanism.tree import FREE, NODE_DOF, SPHERICAL, Geometry


class Equations(MovingTree):
    """One robot in one state; every quantity is computed on first use.

    Defaults: a new graph, numeric placements of the robot, and symbols ``phi[i]`` as standard parameters. Given parameters
    are in link frames; symbols are in link frames with `links`, else in node frames (`functions.node_values`), which avoids the
    change of frame at every sample.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        graph: Graph | None = None,
        geometry: Geometry | None = None,
        phi: Sequence[Node] | None = None,
        links: bool = False,
    ) -> None:
        super().__init__(mechanism, graph, geometry)
        self._in_links = links or phi is not None
        self.width: Node | None = None  # speed over which jumps of friction are smoothed, for optimisers; None for true jumps
        self.rest: float | None = None  # speed below which dry friction counts as zero, for observers that see noise at rest
        self.phi = self.graph.symbols("phi", len(mechanism.parameters)) if phi is None else list(phi)
        # Arguments of the columns of friction laws: numbers of the laws, and the temperature and load of their joints.
        numbers = mechanism.law_values
        compiled = phi is None and graph is None  # alone in its graph: the numbers are inputs of the code
        self.law = self.graph.symbols("law", numbers.size) if compiled else [self.graph.const(x) for x in numbers.tolist()]
        self.channels: Mapping[str, list[Node]] = {}
        self.load_phi = self.phi  # parameters of the bodies whose torque loads the gears

    # ---- parameters -------------------------------------------------------------------------------------------------

    def bodies(self, phi: Sequence[Node]) -> list[Inertia | None]:
        """Return the inertial parameters of every node, in its own frame."""
        found: list[Inertia | None] = [None] * self.state.nodes
        for k, body in enumerate(self.mechanism.tree.bodies):
            node, pose = self.geometry.frames[body]
            own = tuple(phi[10 * k : 10 * k + 10])
            found[node] = moved(own, *pose) if self._in_links else own
        return found

    def _term(self, symbol: str, q: Node, v: Node, a: Node) -> Node:
        """Return the regressor entry of a joint term."""
        if self.width is not None:
            return self.graph.node(TERMS[symbol].smooth(q, v, a, self.width))
        if self.rest is not None and TERMS[symbol].jumps:
            v = where(absolute(v) < self.rest, self.graph.zero, v)
        return self.graph.node(TERMS[symbol].expression(q, v, a))

    @cached_property
    def joint_columns(self) -> list[tuple[int, str, int, Node]]:
        """Column, term, tree coordinate and regressor entry of every joint term."""
        found, first = [], self.mechanism.tree.inertias.size
        index = {name: i for i, name in enumerate(self.mechanism.tree.coordinates)}
        for j, (coordinate, symbol) in enumerate(self.mechanism.joint_columns):
            d = index[coordinate]
            found.append((first + j, symbol, d, self._term(symbol, self.tree_q[d], self.tree_v[d], self.tree_a[d])))
        return found

    @cached_property
    def motor_columns(self) -> list[tuple[int, str, list[Node], Node]]:
        """Column, term, joint-side coupling row and entry of the terms of motors coupled to several joints."""
        found = []
        first = self.mechanism.tree.inertias.size + len(self.mechanism.joint_columns)
        index = {name: i for i, name in enumerate(self.mechanism.tree.coordinates)}
        coupling = {actuator.name: actuator.coupling for actuator in self.mechanism.actuators}
        for j, (name, symbol) in enumerate(self.mechanism.actuator_columns):
            row = [self.graph.zero] * len(index)
            for coordinate, coefficient in coupling[name].items():
                row[index[coordinate]] = self.graph.const(coefficient)
            q, v, a = (dot(x, row) for x in (self.tree_q, self.tree_v, self.tree_a))
            found.append((first + j, symbol, row, self._term(symbol, q, v, a)))
        return found

    def _states(self) -> dict[str, tuple[Node, Node, Node]]:
        own = zip(self.tree_q, self.tree_v, self.tree_a, strict=True)
        return dict(zip(self.mechanism.tree.coordinates, own, strict=True))

    def _friction(self, k: int, numbers: Sequence[Node]) -> Node:
        """Return the torque of the friction law number k, given the nodes of its parameters."""
        from dynident.friction.law import Point  # noqa: PLC0415 - most robots have linear terms alone
        from dynident.friction.text import reference_temperature  # noqa: PLC0415 - most robots have linear terms alone

        coordinate, law = list(self.mechanism.friction.items())[k]
        d = self.mechanism.tree.coordinates.index(coordinate)
        warm = reference_temperature(law.law)
        T: Node | float = self.channels["T"][k] if "T" in self.channels else (20.0 if warm is None else warm)
        load = self.graph.zero
        if "tau" in law.law.looks_at:
            load = self.channels["load"][k] if "load" in self.channels else self.loads[d]
        point = Point(self.tree_v[d], self.tree_q[d], load, T)
        torque: Node = law.law.expression(
            self.graph, point, dict(zip(law.law.parameters, numbers, strict=True)), width=self.width
        )
        return torque

    @cached_property
    def loads(self) -> list[Node]:
        """Torques of the bodies on all tree coordinates: the gear loads, without rotors and friction."""
        if self.mechanism.loops:
            raise DescriptionError(
                f"friction of robot '{self.mechanism.name}' depends on the load of its joints, which is for trees only; leave "
                "that law out of a robot with loops"
            )
        return inverse_dynamics(self.state, self.bodies(self.load_phi))

    @cached_property
    def law_columns(self) -> list[tuple[int, int, list[Node], dict[tuple[int, int], Node]]]:
        """First column, tree coordinate, columns and their derivatives by shape parameters of every friction law.

        Columns belong to the linear parameters, then to the shape parameters at the law's own numbers; the last, known column
        makes the sum of all columns times the law's numbers equal to its torque. Derivatives are by (linear, shape).
        """
        found = []
        first = len(self.mechanism.parameters) - len(self.mechanism.own_columns)
        start = 0
        for k, (coordinate, friction) in enumerate(self.mechanism.friction.items()):
            law = friction.law
            own = [self.graph.symbol(f"own {name}") for name in law.parameters]
            at = dict(zip(own, self.law[start : start + len(own)], strict=True))
            linear, shape = own[: len(law.linear)], own[len(law.linear) :]
            torque = self._friction(k, own)
            slopes = [derivative(torque, x) for x in own]
            bends = {(i, j): derivative(slopes[i], x) for i in range(len(linear)) for j, x in enumerate(shape)}
            bends = {pair: node for pair, node in bends.items() if not node.is_const(0.0)}
            *columns, rest = substitute(
                [*slopes, -total([self.graph.zero, *(slopes[len(linear) + j] * x for j, x in enumerate(shape))])], at
            )
            moved = substitute(list(bends.values()), at)
            d = self.mechanism.tree.coordinates.index(coordinate)
            found.append((first, d, [*columns, rest] if shape else columns, dict(zip(bends, moved, strict=True))))
            first += len(own) + bool(shape)
            start += len(own)
        return found

    @cached_property
    def force_columns(self) -> list[tuple[int, list[Node]]]:
        """Column and entries on all tree coordinates of every force element."""
        found: list[tuple[int, list[Node]]] = []
        coordinates = self.mechanism.tree.coordinates
        column = len(self.mechanism.parameters) - sum(len(force.names) for force in self.mechanism.forces)
        given = self.graph.symbols("F", opaque_columns(self.mechanism))
        opaque = 0
        for force in self.mechanism.forces:
            if isinstance(force, Force):
                entries = force.columns(self.graph, self._states())
                found.append((column, [entries.get(name, self.graph.zero) for name in coordinates]))
                column += 1
                continue
            for _ in force.names:
                found.append((column, [given[opaque + i] for i in range(self.mechanism.dof)]))
                column, opaque = column + 1, opaque + self.mechanism.dof
        return found

    # ---- quantities -------------------------------------------------------------------------------------------------

    def torques(self, phi: Sequence[Node] | None = None) -> list[Node]:
        """Return tau (n,) of the motion."""
        return self.project(self.tree_torques(phi))

    def tree_torques(self, phi: Sequence[Node] | None = None) -> list[Node]:
        """Return the torques of all tree coordinates."""
        values = self.phi if phi is None else phi
        tau = inverse_dynamics(self.state, self.bodies(values))
        return [x + y for x, y in zip(tau, self.tree_terms(values), strict=True)]

    def tree_terms(self, values: Sequence[Node], *kinds: str) -> list[Node]:
        """Return the torques of joint and motor terms on all tree coordinates: all of them, or "rotor", "friction", "other".

        "other": offsets, springs and force elements.
        """
        tau = [self.graph.zero] * len(self.tree_q)
        for column, kind, entries in self._terms():
            if not kinds or kind in kinds:
                for d, entry in entries.items():
                    tau[d] = tau[d] + entry * values[column]
        return tau

    def _terms(self) -> Iterator[tuple[int, str, dict[int, Node]]]:
        """Yield all columns except inertial ones: number, kind, and entries by tree coordinate."""
        for column, symbol, d, entry in self.joint_columns:
            yield column, TERMS[symbol].kind, {d: entry}
        for column, symbol, row, entry in self.motor_columns:
            yield column, TERMS[symbol].kind, {d: entry * c for d, c in enumerate(row)}
        for first, d, columns, _ in self.law_columns:
            yield from ((column, "friction", {d: entry}) for column, entry in enumerate(columns, first))
        yield from ((column, "other", dict(enumerate(entries))) for column, entries in self.force_columns)

    def forces(self) -> list[Node]:
        """Return the torques of the force elements alone, on all tree coordinates."""
        tau = [self.graph.zero] * len(self.tree_q)
        for column, entries in self.force_columns:
            tau = [x + entry * self.phi[column] for x, entry in zip(tau, entries, strict=True)]
        return tau

    def regressor(self, columns: Sequence[int] | None = None) -> NodeRows:
        """Return Y (n, m) of tau = Y phi for standard parameters in link frames, all of them or some columns."""
        wanted = range(len(self.mechanism.parameters)) if columns is None else columns
        made = self._columns({int(c) for c in wanted})
        empty = [self.graph.zero] * len(self.tree_q)
        projected = [self.project(made.get(int(c), empty)) for c in wanted]
        return [[column[i] for column in projected] for i in range(self.mechanism.dof)]

    def _columns(self, wanted: set[int]) -> dict[int, list[Node]]:
        """Return the wanted columns of the tree's regressor, by number."""
        width, zero = len(self.tree_q), self.graph.zero
        made: dict[int, list[Node]] = {}
        for k, body in enumerate(self.mechanism.tree.bodies):
            own = [c for c in range(10 * k, 10 * k + 10) if c in wanted]
            if not own:
                continue
            node, pose = self.geometry.frames[body]
            units = {c: moved(tuple(self.graph.const(float(i == c - 10 * k)) for i in range(10)), *pose) for c in own}
            made |= {c: [zero] * width for c in own}
            for d, block in regressor(self.state, node).items():
                for c in own:
                    made[c][d] = dot(block, units[c])
        for column, _, entries in self._terms():
            if column in wanted:
                made[column] = [entries.get(d, zero) for d in range(width)]
        return made

    def tree_mass(self) -> NodeRows:
        """Return the mass matrix of the tree with rotors and motors."""
        heavy = [force.name for force in self.mechanism.forces if isinstance(force, Force) and "a" in force.looks_at]
        if heavy:
            raise DescriptionError(
                f"force '{heavy[0]}' depends on accelerations, which the mass matrix does not include; describe it as a rotor "
                "inertia ('ia') or as a body"
            )
        M = mass_matrix(self.state, self.bodies(self.phi))
        for column, symbol, d, _ in self.joint_columns:
            if TERMS[symbol].rotor:
                M[d][d] = M[d][d] + self.phi[column]
        for column, symbol, row, _ in self.motor_columns:
            if TERMS[symbol].rotor:
                ia = self.phi[column]
                M = [[x + ia * (row[i] * row[j]) for j, x in enumerate(line)] for i, line in enumerate(M)]
        return M

    def mass_matrix(self, tree: NodeRows | None = None) -> NodeRows:
        """Return M(q) of the tree's; entries below the diagonal are copied by symmetry, which halves the operations."""
        M, n = self.sandwich(tree or self.tree_mass()), range(self.mechanism.dof)
        return [[M[min(i, j)][max(i, j)] for j in n] for i in n]

    def coriolis_matrix(self) -> NodeRows:
        """Return C(q, v) of the Christoffel symbols: G^T (C_t G + M_t Gdot) where G depends on q, dh/dv / 2 with loops.

        The velocity torques h = C(q, v) v are quadratic in v and C(v) w = C(w) v, hence the derivative.
        """
        if self.mechanism.loops:
            bodies = inverse_dynamics(self.state, self.bodies(self.phi))
            tau = [x + y for x, y in zip(bodies, self.tree_terms(self.phi, "rotor"), strict=True)]
            return [[0.5 * entry for entry in row] for row in derivative_matrix(self.project(tau), self.v)]
        C = self.sandwich(coriolis_matrix(self.state, self.bodies(self.phi)))
        if self.G is None or all(c.function is None for c in self.mechanism.couplings):
            return C
        rates = forward([x for row in self.G for x in row], dict(zip(self.x, self.v, strict=True)))
        n = self.mechanism.dof
        extra = self.sandwich(self.tree_mass(), [rates[i * n : (i + 1) * n] for i in range(len(self.tree_q))])
        return [[x + y for x, y in zip(*lines, strict=True)] for lines in zip(C, extra, strict=True)]

    def gravity(self, down: Array | None = None) -> list[Node]:
        """Return g(q), bodies only, with the gravity `down` (3,) in the root frame; with the described one when omitted."""
        zero = [self.graph.zero] * len(self.tree_q)
        acting = self.geometry.gravity if down is None else vector(self.graph, down)
        still = self._tree_state(self.tree_q, zero, zero, acting)
        return self.project(inverse_dynamics(still, self.bodies(self.phi)))

    def energies(self) -> tuple[Node, Node]:
        """Return kinetic and potential energy of bodies, rotors, springs and constant torques."""
        kinetic, potential = energies(self.state, self.bodies(self.phi))
        arrays = self.mechanism.tree.arrays
        kind = {int(f) + k: int(c) for c, f in zip(arrays.kind, arrays.dof, strict=True) for k in range(NODE_DOF[int(c)])}
        for column, symbol, d, _ in self.joint_columns:
            value, q = self.phi[column], self.tree_q[d]
            if symbol == "k" and kind[d] != FREE:  # the quasi-velocities of a free joint have no such potential
                potential = potential + 0.5 * (q * q) * value
            elif symbol == "off" and kind[d] < SPHERICAL:  # nor has a torque fixed in the child of a spherical one
                potential = potential + q * value
        return kinetic + self.rotor_energy(), potential + self.force_energy()

    def rotor_energy(self) -> Node:
        """Return the kinetic energy of the rotors alone."""
        speeds = [(column, symbol, self.tree_v[d]) for column, symbol, d, _ in self.joint_columns]
        speeds += [(column, symbol, dot(self.tree_v, row)) for column, symbol, row, _ in self.motor_columns]
        return total([self.graph.zero, *(0.5 * (v * v) * self.phi[c] for c, symbol, v in speeds if TERMS[symbol].rotor)])

    def force_energy(self) -> Node:
        """Return the potential energy of the conservative force elements."""
        own = [force for force in self.mechanism.forces if isinstance(force, Force)]
        column = {name: c for c, name in enumerate(self.mechanism.parameters.names)}
        parts = [force.potential(self.graph, self._states()) * self.phi[column[force.name]] for force in own if force.energy]
        return total([self.graph.zero, *parts])


def opaque_columns(mechanism: Mechanism) -> int:
    """Return the number of values per sample of the columns that are known only numerically."""
    return mechanism.dof * sum(len(force.names) for force in mechanism.forces if not isinstance(force, Force))
