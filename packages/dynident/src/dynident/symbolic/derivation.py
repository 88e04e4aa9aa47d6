"""`derive`: from a robot to its closed forms, with numbers or symbols for its lengths.

Directions stay numbers, with right angles exact. Lengths that are not zero become symbols named after the joint that owns
them, `r_elbow_x`, or after the Denavit-Hartenberg table that the robot came from, `d2` and `a3`; gravity along an axis
becomes `g`. The quantities come from the robot's equations (`mechanics.Equations`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from dynident.arrays import Array
from dynident.errors import DescriptionError, DynidentError
from dynident.graph.algebra import matrix, plus, scale, snapped, solve_symmetric, vector
from dynident.graph.expression import Graph, Node, substitute, total
from dynident.graph.printing import identifiers
from dynident.mechanics.equations import Equations
from dynident.mechanism.elements import Joint
from dynident.mechanism.force import Columns
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.tree import FIXED, Geometry, Pose, compose
from dynident.symbolic.program import Program, Quantity, Regrouping, regroup

NEGLIGIBLE = 1e-12  # [m]


def read_geometry(graph: Graph, mechanism: Mechanism, symbolic: bool, snap: float) -> Geometry:
    """Return the geometry of a robot as expressions; direction cosines closer than `snap` to 0, 1, 1/2, ... become exact.

    Lengths are numbers or symbols ``geometry[i]``, whose names and numbers are then in `Geometry.symbols`.
    """
    arrays, tree = mechanism.tree.arrays, mechanism.tree
    node_of = {tree.coordinates[int(first)]: i for i, first in enumerate(arrays.dof) if arrays.kind[i] != FIXED}
    apart = {body.name for body in mechanism.bodies if body.separate}
    names = [joint.name for joint in mechanism.joints]
    labels = dict(zip(names, identifiers(names), strict=True))
    lengths = {joint.name: _lengths(mechanism, joint, labels[joint.name]) for joint in mechanism.joints} if symbolic else {}
    order = _natural({name: size for own in lengths.values() for _, name, size in own})
    gravity, along = mechanism.gravity, np.flatnonzero(mechanism.gravity)
    one_axis = symbolic and along.size == 1  # gravity along an axis is one symbol
    if one_axis:
        order["g" if "g" not in order else "g0"] = float(np.abs(gravity[along[0]]))
    symbol = dict(zip(order, graph.symbols("geometry", len(order)), strict=True))
    down = vector(graph, gravity)
    if one_axis:
        down = scale(vector(graph, np.sign(gravity)), list(symbol.values())[-1])
    identity = matrix(graph, np.eye(3))
    still: Pose = (identity, vector(graph, np.zeros(3)))
    frames: dict[str, tuple[int, Pose]] = {mechanism.root: (-1, still)}
    placements: list[Pose] = [still] * arrays.parent.size
    children: dict[str, list[Joint]] = {}
    for joint in mechanism.joints:
        children.setdefault(joint.parent, []).append(joint)
    owners = _owners(mechanism)
    waiting = [mechanism.root]
    while waiting:
        body = waiting.pop()
        node, pose = frames[body]
        for joint in children.get(body, []):
            R = matrix(graph, snapped(joint.placement.rotation, snap))
            t = vector(graph, np.zeros(3) if symbolic else joint.placement.translation)
            for direction, name, _ in lengths.get(joint.name, ()):
                t = plus(t, scale(vector(graph, snapped(direction, 1e-9)), symbol[name]))
            whole = compose(pose, (R, t))
            if joint.kind == "fixed" and joint.child not in apart:
                frames[joint.child] = (node, whole)
            elif joint.kind == "fixed":  # a node without coordinates
                first = tree.frames[joint.child][0]
                placements[first], frames[joint.child] = whole, (first, still)
            else:
                first = node_of[joint.coordinates[0]]
                placements[first] = whole
                last = max(i for i, name in enumerate(owners) if name == joint.name)
                frames[joint.child] = (last, still)
            waiting.append(joint.child)
    axes = [vector(graph, axis) for axis in snapped(arrays.axis, snap)]
    return Geometry(placements, axes, frames, down, order)


def _owners(mechanism: Mechanism) -> list[str]:
    """Return the joint of each tree node; an empty string for a node without coordinates."""
    joint_of = {coordinate: joint.name for joint in mechanism.joints for coordinate in joint.coordinates}
    tree = mechanism.tree.arrays
    names = [*mechanism.tree.coordinates, ""]  # such a node may come last
    return [
        joint_of.get(names[int(first)], "") if kind != FIXED else "" for kind, first in zip(tree.kind, tree.dof, strict=True)
    ]


def _lengths(mechanism: Mechanism, joint: Joint, label: str) -> list[tuple[Array, str, float]]:
    """Return direction, name and size of every length in the translation of a joint."""
    t = joint.placement.translation
    named = _dh_names(mechanism, joint) or [(row, f"r_{label}_{axis}") for row, axis in zip(np.eye(3), "xyz", strict=True)]
    sizes = [(direction, name, float(t @ direction)) for direction, name in named]
    return [found for found in sizes if abs(found[2]) > NEGLIGIBLE]


def _dh_names(mechanism: Mechanism, joint: Joint) -> list[tuple[Array, str]] | None:
    """Return the directions of `a` and `d` with their names when the robot came from a DH table and they explain the joint."""
    R, t = joint.placement.rotation, joint.placement.translation
    standard = mechanism.source.startswith("standard DH table")
    if not standard and not mechanism.source.startswith("modified DH table"):
        return None
    body = joint.child if joint.child.startswith("link_") else ""
    number = body.removeprefix("link_")
    if not number.isdigit():
        return None
    # standard: T = Rz(theta) Tz(d) Tx(a) Rx(alpha); modified: T = Rx(alpha) Tx(a) Rz(theta) Tz(d)
    along_a, along_d = (R[:, 0], np.eye(3)[2]) if standard else (np.eye(3)[0], R[:, 2])
    if np.max(np.abs(t - (t @ along_a) * along_a - (t @ along_d) * along_d)) > NEGLIGIBLE:
        return None
    return [(along_a, f"a{number}"), (along_d, f"d{number}")]


def _natural(symbols: dict[str, float]) -> dict[str, float]:
    """Return the symbols sorted so that a2 comes before a10."""

    def key(label: str) -> tuple[int, str]:
        digits = "".join(c for c in label if c.isdigit())
        return (int(digits) if digits and label[0] in "ad" else 0, label)

    return dict(sorted(symbols.items(), key=lambda item: key(item[0])))


Rows = Sequence[Sequence[Node]]
Entries = Sequence[Node] | Rows

TORQUES = "torques and forces tau of the independent coordinates"


def _quantity(name: str, result: str, meaning: str, entries: Entries) -> Quantity:
    """Return a vector or a matrix with its shape."""
    rows = [row if isinstance(row, Sequence) else (row,) for row in entries]
    shape = (len(rows), len(rows[0])) if any(isinstance(row, Sequence) for row in entries) else (len(rows),)
    return Quantity(name, result, shape, tuple(x for row in rows for x in row), meaning)


def _accelerations(equations: Equations, _: str) -> Entries:
    """Return a = M^-1 (tau - h), h the torques without acceleration."""
    graph, n = equations.graph, equations.mechanism.dof
    still = substitute(equations.torques(), dict.fromkeys(equations.a, graph.zero))
    right = [[tau - h] for tau, h in zip(graph.symbols("tau", n), still, strict=True)]
    return [row[0] for row in solve_symmetric(equations.mass_matrix(), right)[0]]


# Name of the result, its meaning, and its entries.
_FORMS: dict[str, tuple[str, str, Callable[[Equations, str], Entries]]] = {
    "inverse_dynamics": ("tau", TORQUES, lambda e, _: e.torques()),
    "forward_dynamics": ("acc", "accelerations that the torques tau cause", _accelerations),
    "regressor": ("Y", "regressor Y, tau = Y phi", lambda e, _: e.regressor()),
    "mass_matrix": ("M", "mass matrix M", lambda e, _: e.mass_matrix()),
    "coriolis_matrix": ("C", "Coriolis matrix C of the Christoffel symbols", lambda e, _: e.coriolis_matrix()),
    "gravity": ("g", "gravity torques g", lambda e, _: e.gravity()),
    "forward_kinematics": ("T", "pose T of link '{}' in the base frame", Equations.pose_matrix),
    "jacobian": ("J", "Jacobian J of link '{}' in its own axes", lambda e, link: e.jacobian(link)),
    "energies": ("E", "kinetic and potential energy", lambda e, _: e.energies()),
}


def quantity(equations: Equations, name: str, link: str) -> Quantity:
    """Return a quantity independent of base parameters; kinematics are those of the given link."""
    result, meaning, make = _FORMS[name]
    return _quantity(name, result, meaning.format(link), make(equations, link))


def base_quantity(equations: Equations, name: str, regressor: Quantity, columns: Sequence[int], K: Rows) -> Quantity:
    """Return a quantity in base parameters: the columns of the leaders, or the others at zero; K (b, p) regroups them."""
    n, p = regressor.shape
    if name == "base_regressor":
        rows = [[regressor.entries[d * p + c] for c in columns] for d in range(n)]
        return _quantity(name, "W", "base regressor W, tau = W beta", rows)
    if name == "base_parameters":
        beta = [total([k * x for k, x in zip(row, equations.phi, strict=True)]) for row in K]
        return _quantity(name, "beta", "base parameters beta of the standard parameters", beta)
    phi = [equations.graph.zero] * p
    for i, c in enumerate(columns):
        phi[c] = equations.graph.symbol(f"beta[{i}]")
    return _quantity(name, "tau", TORQUES, equations.torques(phi))


MAX_NODES = 500_000
MAX_SECONDS = 60.0

QUANTITIES: tuple[str, ...] = (
    "inverse_dynamics",
    "forward_dynamics",
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

LATER = ("forward_dynamics", "base_inverse_dynamics", "base_parameters")  # derived when asked for
DEFAULT: tuple[str, ...] = tuple(name for name in QUANTITIES if name not in LATER)


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
    """Return closed forms of a robot: recursive Newton-Euler on expressions that share everything.

    ``inverse_dynamics`` tau(q, v, a, phi) (n,), joint and motor terms included; ``forward_dynamics`` acc(q, v, tau, phi) (n,);
    ``regressor`` Y (n, p) with tau = Y phi; ``mass_matrix`` M (n, n); ``coriolis_matrix`` C (n, n) of the Christoffel symbols;
    ``gravity`` g (n,); ``forward_kinematics`` T (4, 4) and ``jacobian`` J (6, n) (linear rows first, link axes) of `frame`;
    ``base_regressor`` (n, b); ``base_inverse_dynamics`` tau(q, v, a, beta); ``base_parameters`` beta(phi) (b,); ``energies``
    kinetic and potential (2,).

    Parameters
    ----------
    mechanism, quantities
        Tree without loops; a selection of the quantities above. Couplings are linear, or functions of expressions.
    geometry : {"numeric", "symbolic"}
        Lengths as numbers, or as symbols where they are not zero; directions are numbers in both cases.
    parameters : {"symbolic", "numeric"}
        Standard parameters as inputs ``phi``, or the robot's own numbers folded in.
    columns, frame
        Columns that lead the base parameters; link of the kinematics, the last one when omitted.
    snap
        Direction cosines closer than this to 0, 1, 1/2, sqrt(1/2) or sqrt(3/4) count as exact, as files round right angles.
    max_nodes, max_seconds
        Limits on the number of sub-expressions and the time [s].

    Examples
    --------
    >>> import dynident as di
    >>> from dynident.symbolic import derive
    >>> arm = di.Mechanism.from_dh([(0.3, 0, 0, 0), (0.2, 0, 0, 0)], gravity=(0, -9.81, 0)).with_terms(())
    >>> derive(arm, ["mass_matrix"]).operations().total < 60
    True
    """
    _check(mechanism, quantities, geometry, parameters)
    graph = Graph(max_nodes, max_seconds)
    values = mechanism.parameters.values
    phi = graph.symbols("phi", values.size) if parameters == "symbolic" else [graph.const(float(x)) for x in values]
    places = read_geometry(graph, mechanism, geometry == "symbolic", snap)
    equations = Equations(mechanism, graph, places, phi)
    link = frame if frame is not None else list(mechanism.tree.frames)[-1]
    mechanism.frame(link)
    wanted = tuple(dict.fromkeys(quantities))
    forms = {name: quantity(equations, name, link) for name in wanted if not name.startswith("base_")}
    regrouping = None
    if any(name.startswith("base_") for name in wanted):
        regressor = forms.get("regressor") or quantity(equations, "regressor", link)
        if columns is not None:  # a known parameter enters the closed form like any other
            first = len(mechanism.parameters) - len(mechanism.own_columns)
            known = [first + i for i, own in enumerate(mechanism.own_columns) if own.kind in ("known", "settled")]
            columns = [*columns, *(c for c in known if c not in columns)]
        regrouping = regroup(_program(equations, {"regressor": regressor}), mechanism, columns)
        for name in wanted:
            if name.startswith("base_"):
                forms[name] = base_quantity(equations, name, regressor, regrouping.columns, regrouping.nodes)
    return _program(equations, {name: forms[name] for name in wanted}, regrouping)


def _program(equations: Equations, forms: Mapping[str, Quantity], regrouping: Regrouping | None = None) -> Program:
    """Return a program of quantities with the inputs and numbers of the robot."""
    mechanism, lengths = equations.mechanism, equations.geometry.symbols
    inputs: dict[str, tuple[str, ...]] = dict.fromkeys(("q", "v", "a", "tau"), mechanism.coordinate_names)
    inputs["phi"] = mechanism.parameters.names
    if lengths:
        inputs["geometry"] = tuple(lengths)
    if regrouping is not None:
        inputs["beta"] = regrouping.names
    values = {"phi": mechanism.parameters.values, "geometry": np.array(list(lengths.values()))}
    return Program(mechanism.name, equations.graph, MappingProxyType(inputs), values, MappingProxyType(dict(forms)), regrouping)


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
    opaque = [force for force in mechanism.forces if isinstance(force, Columns)]
    if opaque:
        raise DescriptionError(f"columns {', '.join(opaque[0].names[:3])} ... are numeric and have no closed form")
    if mechanism.dof == 0:
        raise DescriptionError(f"robot '{mechanism.name}' has no moving joint, so it has no equations of motion")
