"""The quantities of `derive`, one after the other, from the recursion to the independent coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError
from dynident.mechanics.joint_terms import motor_columns
from dynident.mechanism import Mechanism
from dynident.mechanism.tree import FREE, NODE_DOF, SPHERICAL
from dynident.symbolic.coupling import derivative, tree_positions
from dynident.symbolic.expression import Graph, Node
from dynident.symbolic.geometry import Geometry, compose, read_geometry
from dynident.symbolic.matrices import coriolis_matrix, energies, mass_matrix
from dynident.symbolic.program import Program, Quantity
from dynident.symbolic.recursion import Recursion
from dynident.symbolic.vectors import Inertia, back, cross, dot, moved, plus, total, vector

Array = NDArray[np.float64]
Rows = list[list[Node]]


class Maker:
    """One derivation: the inputs and the recursions they enter.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    lengths : bool
        Symbols for the lengths.
    phi : bool
        Symbols for the parameters.
    snap : float
        As in `derive`.
    graph : Graph
        Where the expressions live.
    """

    def __init__(self, mechanism: Mechanism, lengths: bool, phi: bool, snap: float, graph: Graph) -> None:
        self.mechanism, self.graph = mechanism, graph
        self.geometry: Geometry = read_geometry(graph, mechanism, lengths, snap)
        n, tree = mechanism.dof, mechanism.tree
        self.inputs: dict[str, tuple[str, ...]] = dict.fromkeys(("q", "v", "a"), mechanism.coordinate_names)
        self.inputs["phi"] = mechanism.parameters.names
        if self.geometry.symbols:
            self.inputs["geometry"] = tuple(self.geometry.symbols)
        values = mechanism.parameters.values
        self.q, self.v, self.a = ([graph.symbol(f"{key}[{i}]") for i in range(n)] for key in ("q", "v", "a"))
        self.phi = [graph.symbol(f"phi[{i}]") if phi else graph.const(float(x)) for i, x in enumerate(values)]
        self.tree_q = tree_positions(graph, mechanism, self.q)
        self.G, self.rate = self._projector()
        self.tree_v, self.tree_a = self.v, self.a
        if self.G is not None:
            self.tree_v = [dot(row, self.v) for row in self.G]
            self.tree_a = [dot(row, self.a) + dot(rate, self.v) for row, rate in zip(self.G, self.rate, strict=True)]
        self.node_of = {int(c): i for i, c in enumerate(tree.arrays.column) if c >= 0}
        self.recursion = self._recursion(self.tree_v, self.tree_a, True)

    def program(self, forms: dict[str, Quantity]) -> Program:
        """Return the quantities made so far as a program.

        Parameters
        ----------
        forms : dict of str to Quantity
            Quantities by name.

        Returns
        -------
        Program
            With the inputs and numbers of the robot.
        """
        symbols = {name: ("geometry", i) for i, name in enumerate(self.geometry.symbols)}
        for group in ("q", "v", "a", "phi", "beta"):
            symbols |= {f"{group}[{i}]": (group, i) for i in range(len(self.inputs.get(group, ())))}
        values = {"phi": self.mechanism.parameters.values, "geometry": np.array(list(self.geometry.symbols.values()))}
        inputs = MappingProxyType(dict(self.inputs))
        return Program(self.mechanism.name, self.graph, inputs, symbols, values, MappingProxyType(forms))

    def _projector(self) -> tuple[Rows | None, Rows]:
        """Return G = dq_tree/dq and its rate Gdot; None without couplings."""
        if not self.mechanism.couplings:
            return None, []
        G = [[derivative(x, y) for y in self.q] for x in self.tree_q]
        pairs = list(zip(self.q, self.v, strict=True))
        return G, [[total([derivative(entry, y) * v for y, v in pairs]) for entry in row] for row in G]

    def _recursion(self, v: Sequence[Node], a: Sequence[Node], gravity: bool) -> Recursion:
        down = self.geometry.gravity if gravity else vector(self.graph, np.zeros(3))
        return Recursion(self.graph, self.mechanism, self.geometry, self.tree_q, v, a, down)

    def _bodies(self, phi: Sequence[Node]) -> list[Inertia | None]:
        """Return the inertial parameters of every node, in its own frame."""
        found: list[Inertia | None] = [None] * self.recursion.nodes
        for k, body in enumerate(self.mechanism.tree.bodies):
            node, pose = self.geometry.frames[body]
            found[node] = moved(tuple(phi[10 * k : 10 * k + 10]), *pose)
        return found

    def _independent(self, tau: Sequence[Node]) -> list[Node]:
        """Return G^T tau."""
        if self.G is None:
            return list(tau)
        return [total([x * row[j] for x, row in zip(tau, self.G, strict=True)]) for j in range(self.mechanism.dof)]

    # ---- the quantities -----------------------------------------------------------------------------------------

    def make(self, name: str, link: str) -> Quantity:
        """Return a quantity that does not need base parameters.

        Parameters
        ----------
        name : str
            One of `derive.QUANTITIES`.
        link : str
            Link of the kinematics.

        Returns
        -------
        Quantity
            The closed form.
        """
        makers: dict[str, Callable[[str], Quantity]] = {
            "inverse_dynamics": lambda _: self._torques("inverse_dynamics", self.phi),
            "regressor": self._regressor,
            "mass_matrix": self._mass,
            "coriolis_matrix": self._coriolis,
            "gravity": self._gravity,
            "forward_kinematics": self._kinematics,
            "jacobian": self._jacobian,
            "energies": self._energies,
        }
        return makers[name](link)

    def make_base(self, name: str, regressor: Quantity, columns: Sequence[int], K: Sequence[Sequence[Node]]) -> Quantity:
        """Return a quantity in base parameters: the columns of the leaders, or the others at zero.

        Parameters
        ----------
        name : str
            ``base_regressor``, ``base_parameters`` or ``base_inverse_dynamics``.
        regressor : Quantity
            The regressor of all standard parameters.
        columns : sequence of int
            Leaders.
        K : sequence of sequence of Node, (b, p)
            Regrouping.

        Returns
        -------
        Quantity
            The closed form.
        """
        n, p = regressor.shape
        if name == "base_regressor":
            entries = tuple(regressor.entries[d * p + c] for d in range(n) for c in columns)
            return Quantity(name, "W", (n, len(columns)), entries, "base regressor W, tau = W beta")
        if name == "base_parameters":
            beta = tuple(dot(row, self.phi) for row in K)
            return Quantity(name, "beta", (len(columns),), beta, "base parameters beta of the standard parameters")
        phi = [self.graph.zero] * p
        for i, c in enumerate(columns):
            phi[c] = self.graph.symbol(f"beta[{i}]")
        return self._torques(name, phi)

    def _torques(self, name: str, phi: Sequence[Node]) -> Quantity:
        tau = self.recursion.inverse_dynamics(self._bodies(phi))
        for column, d, node in self._joint_columns():
            tau[d] = tau[d] + node * phi[column]
        for column, row, node in self._motor_columns():
            tau = [x + node * phi[column] * float(c) for x, c in zip(tau, row, strict=True)]
        own = self._independent(tau)
        text = "torques and forces tau of the independent coordinates"
        return Quantity(name, "tau", (len(own),), tuple(own), text)

    def _regressor(self, _: str) -> Quantity:
        n, p = self.mechanism.dof, len(self.phi)
        wide = len(self.tree_q)
        Y = [[self.graph.zero] * p for _ in range(wide)]
        unit = [[self.graph.one if i == j else self.graph.zero for i in range(10)] for j in range(10)]
        for k, body in enumerate(self.mechanism.tree.bodies):
            node, pose = self.geometry.frames[body]
            columns = [moved(tuple(x), *pose) for x in unit]
            for d, block in self.recursion.regressor(node).items():
                for j, column in enumerate(columns):
                    Y[d][10 * k + j] = dot(block, column)
        for place, d, entry in self._joint_columns():
            Y[d][place] = entry
        for place, turn, entry in self._motor_columns():
            for d in range(wide):
                Y[d][place] = entry * float(turn[d])
        rows = [self._independent([Y[d][j] for d in range(wide)]) for j in range(p)]
        entries = tuple(rows[j][i] for i in range(n) for j in range(p))
        return Quantity("regressor", "Y", (n, p), entries, "regressor Y, tau = Y phi")

    def _project(self, M: Rows, right: Rows | None) -> Rows:
        """Return G^T M right; M itself without couplings."""
        if right is None:
            return M
        wide = [[dot(row, [other[j] for other in right]) for j in range(self.mechanism.dof)] for row in M]
        columns = [self._independent([row[j] for row in wide]) for j in range(self.mechanism.dof)]
        return [[column[i] for column in columns] for i in range(self.mechanism.dof)]

    def _tree_mass(self) -> Rows:
        """Return the mass matrix of the tree with rotors and motors."""
        M = mass_matrix(self.recursion, self._bodies(self.phi))
        for column, (coordinate, symbol) in enumerate(self.mechanism.joint_columns, self.mechanism.tree.inertias.size):
            if symbol == "ia":
                d = self.mechanism.tree.coordinates.index(coordinate)
                M[d][d] = M[d][d] + self.phi[column]
        for column, symbol, row in self._motors():
            if symbol == "ia":
                ia = self.phi[column]
                M = [[x + ia * float(row[i] * row[j]) for j, x in enumerate(line)] for i, line in enumerate(M)]
        return M

    def _mass(self, _: str) -> Quantity:
        own = self._project(self._tree_mass(), self.G)
        return Quantity("mass_matrix", "M", (len(own),) * 2, tuple(x for row in own for x in row), "mass matrix M")

    def _coriolis(self, _: str) -> Quantity:
        own = self._project(coriolis_matrix(self.recursion, self._bodies(self.phi)), self.G)
        if self.G is not None:  # C = G^T (C_t G + M_t Gdot)
            extra = self._project(self._tree_mass(), self.rate)
            own = [[x + y for x, y in zip(*rows, strict=True)] for rows in zip(own, extra, strict=True)]
        text = "Coriolis matrix C of the Christoffel symbols"
        return Quantity("coriolis_matrix", "C", (len(own),) * 2, tuple(x for row in own for x in row), text)

    def _gravity(self, _: str) -> Quantity:
        zero = [self.graph.zero] * len(self.tree_q)
        tau = self._independent(self._recursion(zero, zero, True).inverse_dynamics(self._bodies(self.phi)))
        return Quantity("gravity", "g", (len(tau),), tuple(tau), "gravity torques g")

    def _kinematics(self, link: str) -> Quantity:
        node, pose = self.geometry.frames[link]
        R, p = compose(self.recursion.world(node), pose)
        last = (self.graph.zero,) * 3
        entries = tuple(x for row, shift in zip((*R, last), (*p, self.graph.one), strict=True) for x in (*row, shift))
        return Quantity("forward_kinematics", "T", (4, 4), entries, f"pose T of link '{link}' in the base frame")

    def _jacobian(self, link: str) -> Quantity:
        node, (P, lever) = self.geometry.frames[link]
        n = len(self.tree_q)
        columns: list[list[Node]] = [[self.graph.zero] * 6 for _ in range(n)]
        for d, (w, u) in (self.recursion.columns[node] if node >= 0 else {}).items():
            columns[d] = [*back(P, plus(u, cross(w, lever))), *back(P, w)]
        rows = [self._independent([columns[d][i] for d in range(n)]) for i in range(6)]
        entries = tuple(x for row in rows for x in row)
        return Quantity("jacobian", "J", (6, self.mechanism.dof), entries, f"Jacobian J of link '{link}' in its own axes")

    def _energies(self, _: str) -> Quantity:
        kinetic, potential = energies(self.recursion, self._bodies(self.phi))
        arrays = self.mechanism.tree.arrays
        kind = {int(f) + k: int(c) for c, f in zip(arrays.kind, arrays.dof, strict=True) for k in range(NODE_DOF[int(c)])}
        for column, (coordinate, symbol) in enumerate(self.mechanism.joint_columns, self.mechanism.tree.inertias.size):
            d = self.mechanism.tree.coordinates.index(coordinate)
            q, v, value = self.tree_q[d], self.tree_v[d], self.phi[column]
            if symbol == "ia":
                kinetic = kinetic + 0.5 * (v * v) * value
            elif symbol == "k" and kind[d] != FREE:
                potential = potential + 0.5 * (q * q) * value
            elif symbol == "off" and kind[d] < SPHERICAL:
                potential = potential + q * value
        for column, symbol, row in self._motors():
            if symbol == "ia":
                v = dot(self.tree_v, _constants(self.graph, row))
                kinetic = kinetic + 0.5 * (v * v) * self.phi[column]
        return Quantity("energies", "E", (2,), (kinetic, potential), "kinetic and potential energy")

    # ---- joint and motor terms ----------------------------------------------------------------------------------

    def _joint_columns(self) -> list[tuple[int, int, Node]]:
        """Return column, tree coordinate and regressor entry of every joint term."""
        found, first = [], self.mechanism.tree.inertias.size
        index = {name: i for i, name in enumerate(self.mechanism.tree.coordinates)}
        for j, (coordinate, symbol) in enumerate(self.mechanism.joint_columns):
            d = index[coordinate]
            found.append((first + j, d, term(self.graph, symbol, self.tree_q[d], self.tree_v[d], self.tree_a[d])))
        return found

    def _motors(self) -> list[tuple[int, str, Array]]:
        """Return column, term and joint-side coupling row (n_tree,) of every motor term."""
        return [(column, term.symbol, row) for column, term, row in motor_columns(self.mechanism)]

    def _motor_columns(self) -> list[tuple[int, Array, Node]]:
        """Return column, joint-side row and entry of every motor term."""
        found = []
        for column, symbol, row in self._motors():
            turn = _constants(self.graph, row)
            q, v, a = (dot(x, turn) for x in (self.tree_q, self.tree_v, self.tree_a))
            found.append((column, row, term(self.graph, symbol, q, v, a)))
        return found


def _constants(graph: Graph, row: Array) -> list[Node]:
    return [graph.const(float(x)) for x in row]


def term(graph: Graph, symbol: str, q: Node, v: Node, a: Node) -> Node:
    """Return the regressor entry of a joint term, as `dynident.friction.TERMS`.

    Parameters
    ----------
    graph : Graph
        Where the expression lives.
    symbol : str
        Term.
    q, v, a : Node
        Motion of the joint or motor.

    Returns
    -------
    Node
        The entry.
    """
    makers: dict[str, Callable[[], Node]] = {
        "ia": lambda: a,
        "fv": lambda: v,
        "fc": lambda: graph.call("sign", v),
        "off": lambda: graph.one,
        "k": lambda: q,
        "fvp": lambda: graph.call("positive", v),
        "fvn": lambda: -graph.call("positive", -v),
        "fcp": lambda: graph.call("step", v),
        "fcn": lambda: -graph.call("step", -v),
        "f2": lambda: v * v * graph.call("sign", v),
        "f3": lambda: v * v * v,
    }
    if symbol not in makers:
        raise DynidentError(f"joint term '{symbol}' has no closed form; use one of {', '.join(makers)}")
    return makers[symbol]()
