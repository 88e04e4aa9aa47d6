"""`derive`: from a robot to its closed forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DescriptionError, DynidentError
from dynident.mechanism import Coupling, Mechanism
from dynident.mechanism.tree import FREE, NODE_DOF, SPHERICAL
from dynident.symbolic.expression import MAX_NODES, MAX_SECONDS, Graph, Node
from dynident.symbolic.geometry import Geometry, compose, read_geometry
from dynident.symbolic.names import identifiers
from dynident.symbolic.program import Program, Quantity
from dynident.symbolic.recursion import Recursion
from dynident.symbolic.regroup import regroup
from dynident.symbolic.vectors import Inertia, dot, moved, plus, cross, back, times, total, vector

Array = NDArray[np.float64]

QUANTITIES: tuple[str, ...] = (
    "inverse_dynamics",
    "regressor",
    "mass_matrix",
    "coriolis_matrix",
    "gravity",
    "forward_kinematics",
    "jacobian",
    "base_regressor",
    "base_inverse_dynamics",
    "base_parameters",
    "energies",
)

DEFAULT: tuple[str, ...] = tuple(name for name in QUANTITIES if name not in ("base_inverse_dynamics", "base_parameters"))


def derive(
    mechanism: Mechanism,
    quantities: Sequence[str] = DEFAULT,
    *,
    geometry: str = "numeric",
    parameters: str = "symbolic",
    columns: Sequence[int] | None = None,
    frame: str | None = None,
    snap: float = 1e-9,
    max_nodes: int = MAX_NODES,
    max_seconds: float = MAX_SECONDS,
) -> Program:
    """Derive closed forms of a robot: recursive Newton-Euler on expressions that share everything.

    Parameters
    ----------
    mechanism : Mechanism
        Tree of any joints, with linear couplings; no loops.
    quantities : sequence of str
        Which of `QUANTITIES`:

        ``inverse_dynamics`` tau(q, v, a, phi) (n,), joint and motor terms included; ``regressor`` Y (n, p) with tau = Y phi;
        ``mass_matrix`` M (n, n); ``coriolis_matrix`` C (n, n) of the Christoffel symbols; ``gravity`` g (n,);
        ``forward_kinematics`` T (4, 4) and ``jacobian`` J (6, n) (linear rows first, link axes) of `frame`;
        ``base_regressor`` (n, b); ``base_inverse_dynamics`` tau(q, v, a, beta); ``base_parameters`` beta(phi) (b,);
        ``energies`` kinetic and potential (2,).
    geometry : {"numeric", "symbolic"}
        Lengths as numbers, or as symbols where they are not zero; directions are numbers in both cases.
    parameters : {"symbolic", "numeric"}
        Standard parameters as inputs ``phi``, or the robot's own numbers folded in.
    columns : sequence of int, optional
        Standard parameters that lead the base parameters (``base_parameters(mechanism).columns``); found here when omitted.
    frame : str, optional
        Link of the kinematics; the last one of the tree when omitted.
    snap : float
        Direction cosines closer than this to 0, 1, 1/2, sqrt(1/2) or sqrt(3/4) are taken as exact: descriptions write right
        angles with a dozen digits.
    max_nodes : int
        Number of sub-expressions at which to give up.
    max_seconds : float
        Time at which to give up.

    Returns
    -------
    Program
        The closed forms.

    Examples
    --------
    >>> import dynident as di
    >>> from dynident.symbolic import derive
    >>> arm = di.Mechanism.from_dh([(0.3, 0, 0, 0), (0.2, 0, 0, 0)], gravity=(0, -9.81, 0)).with_terms(())
    >>> derive(arm, ["mass_matrix"]).operations().total < 60
    True
    """
    _check(mechanism, quantities, geometry, parameters)
    maker = _Maker(mechanism, geometry == "symbolic", parameters == "symbolic", snap, Graph(max_nodes, max_seconds))
    link = frame if frame is not None else list(mechanism.tree.frames)[-1]
    mechanism.frame(link)
    wanted = tuple(dict.fromkeys(quantities))
    forms = {name: maker.make(name, link) for name in wanted if not name.startswith("base_")}
    regrouping = None
    if any(name.startswith("base_") for name in wanted):
        regressor = forms.get("regressor") or maker.make("regressor", link)
        regrouping = regroup(maker.program({"regressor": regressor}), mechanism, columns)
        maker.inputs["beta"] = regrouping.names
        for name in wanted:
            if name.startswith("base_"):
                forms[name] = maker.make_base(name, regressor, regrouping.columns, regrouping.nodes)
    return replace(maker.program({name: forms[name] for name in wanted}), regrouping=regrouping)


def _check(mechanism: Mechanism, quantities: Sequence[str], geometry: str, parameters: str) -> None:
    if isinstance(quantities, str):
        raise DynidentError(f"quantities is the text {quantities!r}; give a list, as in [{quantities!r}]")
    for name in quantities:
        if name not in QUANTITIES:
            raise DynidentError(f"unknown quantity '{name}'; known quantities are {', '.join(QUANTITIES)}")
    for label, value in (("geometry", geometry), ("parameters", parameters)):
        if value not in ("numeric", "symbolic"):
            raise DynidentError(f"{label} is {value!r}; give 'numeric' or 'symbolic'")
    if mechanism.loops:
        names = ", ".join(loop.name for loop in mechanism.loops)
        raise DescriptionError(
            f"closed forms are derived for trees, but robot '{mechanism.name}' has loops ({names}); "
            "remove them to get the forms of its spanning tree"
        )
    if mechanism.dof == 0:
        raise DescriptionError(f"robot '{mechanism.name}' has no moving joint, so it has no equations of motion")
    for coupling in mechanism.couplings:
        # Closed forms need the derivative of a coupling; only the linear one of the data model is known to have one.
        if type(coupling) is not Coupling:
            raise DescriptionError(
                f"coupling of joint '{coupling.joint}' is a {type(coupling).__name__}, whose derivative is not known; "
                "closed forms take linear couplings only"
            )


class _Maker:
    """One derivation: the inputs and the recursions they enter."""

    def __init__(self, mechanism: Mechanism, lengths: bool, phi: bool, snap: float, graph: Graph) -> None:
        self.mechanism, self.graph = mechanism, graph
        self.geometry: Geometry = read_geometry(graph, mechanism, lengths, snap)
        n, tree = mechanism.dof, mechanism.tree
        self.inputs: dict[str, tuple[str, ...]] = {key: identifiers(mechanism.coordinate_names) for key in ("q", "v", "a")}
        self.inputs["phi"] = mechanism.parameters.names
        if self.geometry.symbols:
            self.inputs["geometry"] = tuple(self.geometry.symbols)
        values = mechanism.parameters.values
        self.q, self.v, self.a = ([graph.symbol(f"{key}[{i}]") for i in range(n)] for key in ("q", "v", "a"))
        self.phi = [graph.symbol(f"phi[{i}]") if phi else graph.const(float(x)) for i, x in enumerate(values)]
        self.tree_q, self.tree_v, self.tree_a = (self._tree(x, i == 0) for i, x in enumerate((self.q, self.v, self.a)))
        self.node_of = {int(c): i for i, c in enumerate(tree.arrays.column) if c >= 0}
        self.recursion = self._recursion(self.tree_v, self.tree_a, True)

    def program(self, forms: dict[str, Quantity]) -> Program:
        symbols = {name: ("geometry", i) for i, name in enumerate(self.geometry.symbols)}
        for group in ("q", "v", "a", "phi", "beta"):
            symbols |= {f"{group}[{i}]": (group, i) for i in range(len(self.inputs.get(group, ())))}
        values = {"phi": self.mechanism.parameters.values, "geometry": np.array(list(self.geometry.symbols.values()))}
        inputs = MappingProxyType(dict(self.inputs))
        return Program(self.mechanism.name, self.graph, inputs, symbols, values, MappingProxyType(forms))

    def _tree(self, x: Sequence[Node], offset: bool) -> list[Node]:
        """Return all tree coordinates from the independent ones."""
        if not self.mechanism.couplings:
            return list(x)
        G, g0 = self.mechanism.coupling_map
        return [total([*(x[j] * float(row[j]) for j in range(len(x))), self.graph.const(g if offset else 0.0)])
                for row, g in zip(G, g0, strict=True)]

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
        if not self.mechanism.couplings:
            return list(tau)
        G = self.mechanism.coupling_map[0]
        return [total([tau[i] * float(G[i, j]) for i in range(len(tau))]) for j in range(G.shape[1])]

    # ---- the quantities -----------------------------------------------------------------------------------------

    def make(self, name: str, link: str) -> Quantity:
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
        """Return a quantity in base parameters: the columns of the leaders, or the others at zero."""
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
        own = self._independent(tau)
        for column, row, node in self._motor_columns():
            own = [x + node * phi[column] * float(c) for x, c in zip(own, row, strict=True)]
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
        for column, d, entry in self._joint_columns():
            Y[d][column] = entry
        rows = [self._independent([Y[d][j] for d in range(wide)]) for j in range(p)]
        for column, row, entry in self._motor_columns():
            rows[column] = [entry * float(c) for c in row]
        entries = tuple(rows[j][i] for i in range(n) for j in range(p))
        return Quantity("regressor", "Y", (n, p), entries, "regressor Y, tau = Y phi")

    def _project(self, M: Sequence[Sequence[Node]]) -> list[list[Node]]:
        columns = [self._independent(row) for row in M]
        rows = [self._independent([row[j] for row in columns]) for j in range(self.mechanism.dof)]
        return [[rows[j][i] for j in range(len(rows))] for i in range(len(rows))]

    def _mass(self, _: str) -> Quantity:
        M = self.recursion.mass_matrix(self._bodies(self.phi))
        for column, (coordinate, symbol) in enumerate(self.mechanism.joint_columns, self.mechanism.tree.inertias.size):
            if symbol == "ia":
                d = self.mechanism.tree.coordinates.index(coordinate)
                M[d][d] = M[d][d] + self.phi[column]
        own = self._project(M)
        for column, symbol, row in self._motors():
            if symbol == "ia":
                own = [[x + self.phi[column] * float(row[i] * row[j]) for j, x in enumerate(line)] for i, line in enumerate(own)]
        return Quantity("mass_matrix", "M", (len(own),) * 2, tuple(x for row in own for x in row), "mass matrix M")

    def _coriolis(self, _: str) -> Quantity:
        own = self._project(self.recursion.coriolis_matrix(self._bodies(self.phi)))
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
        kinetic, potential = self.recursion.energies(self._bodies(self.phi))
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
                v = dot(self.v, vectorised(self.graph, row))
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
        first = self.mechanism.tree.inertias.size + len(self.mechanism.joint_columns)
        matrix = self.mechanism.actuator_matrix[0]
        rows = {actuator.name: matrix[i] / actuator.ratio for i, actuator in enumerate(self.mechanism.actuators)}
        return [(first + j, symbol, rows[name]) for j, (name, symbol) in enumerate(self.mechanism.actuator_columns)]

    def _motor_columns(self) -> list[tuple[int, Array, Node]]:
        """Return column, joint-side row and entry of every motor term."""
        found = []
        for column, symbol, row in self._motors():
            c = vectorised(self.graph, row)
            found.append((column, row, term(self.graph, symbol, dot(self.q, c), dot(self.v, c), dot(self.a, c))))
        return found


def vectorised(graph: Graph, row: Array) -> list[Node]:
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
    }
    if symbol not in makers:
        raise DynidentError(f"joint term '{symbol}' has no closed form; use one of {', '.join(makers)}")
    return makers[symbol]()
