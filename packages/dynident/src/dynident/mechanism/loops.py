"""Loop closure: constraint equations and independent coordinates.

Every cut joint becomes scalar equations Phi(q_tree) = 0 of three kinds, with point x and frame axes of the two bodies a and b:

    POINT    e . (x_a - x_b)          e fixed in the base
    SLIDE    u_a . (x_b - x_a)        u fixed in body a
    DOT      u_a . e_b                u fixed in body a, e fixed in body b

and every coupling a LINEAR one, c . q - offset. Cut joints of planar robots give dependent equations; the rank of dPhi/dq at
closed configurations is the number of independent ones, hence the degrees of freedom, and selects the rows to solve.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, pivoted
from dynident.errors import DescriptionError
from dynident.graph.algebra import Vector, cross, dot, plus, scale, snapped, times, vector
from dynident.graph.expression import Function, Graph, Node, derivative_matrix
from dynident.graph.printing import numpy_callable
from dynident.mechanism.elements import Loop, Placement, perpendicular
from dynident.mechanism.tree import (
    FREE,
    NODE_DOF,
    REVOLUTE,
    SNAP,
    SPHERICAL,
    Pose,
    Tree,
    TreeState,
    Twist,
    compose,
    numeric_geometry,
    spin,
)

if TYPE_CHECKING:
    from dynident.mechanism.mechanism import Mechanism


POINT, SLIDE, DOT, LINEAR = 0, 1, 2, 3
CLOSED = 1e-10  # residual of a closed configuration [m, or dot product of unit vectors]
RANK = 1e-7  # relative size below which a pivot of the constraint Jacobian counts as zero
REACH = 0.5  # largest change of a coordinate [rad or m] in one solution


class LoopArrays(NamedTuple):
    """Closure equations as flat arrays, one entry per row."""

    kind: NDArray[np.int64]  # POINT, SLIDE, DOT or LINEAR
    node_a: NDArray[np.int64]  # Tree nodes of the two bodies, -1 for the base
    node_b: NDArray[np.int64]  # Tree nodes of the two bodies, -1 for the base
    point_a: Array  # The point in each node's frame
    point_b: Array  # The point in each node's frame
    vector_a: Array  # u in node a's frame; e in node b's frame (DOT) or in the base frame (POINT)
    vector_b: Array  # u in node a's frame; e in node b's frame (DOT) or in the base frame (POINT)
    linear: Array  # c of LINEAR rows
    offset: Array  # Offset of LINEAR rows

    def take(self, rows: Sequence[int]) -> LoopArrays:
        """Return a subset of the rows."""
        index = np.asarray(rows, dtype=np.int64)
        return self._replace(**{name: np.ascontiguousarray(array[index]) for name, array in self._asdict().items()})


@dataclass(frozen=True, eq=False)
class Closure:
    """Independent coordinates and equations of a mechanism with loops."""

    arrays: LoopArrays  # All closure equations
    names: tuple[str, ...]  # Loop (or coupled joint) of each equation
    selected: LoopArrays  # Independent equations, as many as dependent coordinates
    independent: NDArray[np.int64]  # Independent tree coordinates
    dependent: NDArray[np.int64]  # Dependent tree coordinates
    home: Array  # A closed configuration; it selects the assembly and working mode
    dof: int  # Degrees of freedom, n_tree - rank
    redundant_equations: int  # Redundant equations (over-constraint), rows - rank


def loop_arrays(mechanism: Mechanism) -> tuple[LoopArrays, tuple[str, ...]]:
    """Return the closure equations of a mechanism and the loop of each."""
    tree = mechanism.tree
    n = len(tree.coordinates)
    rows: list[tuple[int, int, int, Array, Array, Array, Array]] = []
    names: list[str] = []
    for loop in mechanism.loops:
        node_a, frame_a = tree.frames[loop.body_a]
        node_b, frame_b = tree.frames[loop.body_b]
        A, B = frame_a @ loop.placement_a, frame_b @ loop.placement_b
        for kind, u, e in _equations(loop, A, B):
            rows.append((kind, node_a, node_b, A.translation, B.translation, u, e))
            names.append(loop.name)
    linear, offset = np.zeros((len(rows) + len(mechanism.couplings), n)), np.zeros(len(rows) + len(mechanism.couplings))
    for i, coupling in enumerate(mechanism.couplings, len(rows)):
        linear[i, tree.coordinates.index(coupling.joint)] = 1.0
        for name, ratio in coupling.of.items():
            linear[i, tree.coordinates.index(name)] -= ratio
        offset[i] = coupling.offset
        names.append(coupling.joint)
    zero = np.zeros(3)
    rows += [(LINEAR, -1, -1, zero, zero, zero, zero)] * len(mechanism.couplings)
    kinds, first, second = (np.array([row[i] for row in rows], dtype=np.int64) for i in range(3))
    vectors = [np.array([row[i] for row in rows], dtype=np.float64).reshape(-1, 3) for i in range(3, 7)]
    return LoopArrays(kinds, first, second, vectors[0], vectors[1], vectors[2], vectors[3], linear, offset), tuple(names)


def _equations(loop: Loop, A: Placement, B: Placement) -> list[tuple[int, Array, Array]]:
    """Return (kind, u, e) of each equation of a cut joint, vectors in node frames."""
    zero, base = np.zeros(3), np.eye(3)
    points = [(POINT, zero, axis) for axis in base]
    axes = [(DOT, A.rotation @ base[i], B.rotation @ base[(i + 1) % 3]) for i in range(3)]
    first, second = perpendicular(loop.axis)
    if loop.kind in ("point", "spherical"):
        return points
    if loop.kind == "revolute":
        return points + [(DOT, A.rotation @ loop.axis, B.rotation @ e) for e in (first, second)]
    if loop.kind == "universal":
        return [*points, (DOT, A.rotation @ loop.axis, B.rotation @ loop.axis2)]
    if loop.kind == "prismatic":
        return [(SLIDE, A.rotation @ u, zero) for u in (first, second)] + axes
    return points + axes


class LoopEquations:
    """Closure equations Phi(q_t) = 0 of a tree at q, v, from the twists of its coordinates at the base origin, in base axes."""

    def __init__(self, state: TreeState, cuts: LoopArrays) -> None:
        self.state, self.cuts, self.graph = state, cuts, state.graph

    @cached_property
    def _worlds(self) -> dict[int, Pose]:
        """Pose of every node and of the base, -1, computed from the base outward to share common branches."""
        found: dict[int, Pose] = {-1: self.state.world(-1)}
        for i in range(self.state.nodes):
            found[i] = compose(found[int(self.state.tree.parent[i])], self.state.poses[i])
        return found

    def _constant(self, values: Sequence[float], direction: bool = False) -> Vector:
        return vector(self.graph, snapped(values, SNAP) if direction else values)

    def _turned(self, node: int, values: Sequence[float]) -> Vector:
        """Return a direction fixed in a node, in base axes."""
        return times(self._worlds[node][0], self._constant(values, True))

    def _point(self, node: int, values: Sequence[float]) -> Vector:
        """Return a point fixed in a node, in base axes."""
        R, p = self._worlds[node]
        return plus(p, times(R, self._constant(values)))

    @cached_property
    def _twists(self) -> dict[int, Twist]:
        """Twist (angular, linear at the base origin) of every coordinate."""
        found: dict[int, Twist] = {}
        for i in range(self.state.nodes):
            R, p = self._worlds[i]
            first = int(self.state.tree.dof[i])
            for d in range(first, first + NODE_DOF[int(self.state.tree.kind[i])]):
                w, u = self.state.columns[i][d]
                axis = times(R, w)
                found[d] = axis, plus(times(R, u), cross(p, axis))
        return found

    def _row(self, i: int) -> tuple[Node, list[Node], tuple[Vector, Vector]]:
        """Return Phi, dPhi/dq and the wrench of a unit multiplier of equation i."""
        cuts, none = self.cuts, self.state.zero
        kind, a, b = int(cuts.kind[i]), int(cuts.node_a[i]), int(cuts.node_b[i])
        jacobian = [self.graph.zero] * len(self.state.q)
        if kind == LINEAR:
            jacobian = [self.graph.node(float(c)) for c in cuts.linear[i]]
            return dot(jacobian, self.state.q) - float(cuts.offset[i]), jacobian, (none, none)
        if kind == DOT:
            u, e = self._turned(a, cuts.vector_a[i]), self._turned(b, cuts.vector_b[i])
            self._add(jacobian, a, cross(u, e), none, 1.0)
            self._add(jacobian, b, cross(u, e), none, -1.0)
            return dot(u, e), jacobian, (none, cross(u, e))
        xa, xb = self._point(a, cuts.point_a[i]), self._point(b, cuts.point_b[i])
        gap = plus(xa, scale(xb, -1.0))
        if kind == POINT:
            e = self._constant(cuts.vector_b[i], True)
            self._add(jacobian, a, cross(xa, e), e, 1.0)
            self._add(jacobian, b, cross(xb, e), e, -1.0)
            return dot(e, gap), jacobian, (e, none)
        u = self._turned(a, cuts.vector_a[i])  # SLIDE
        moment, force = cross(u, xb), scale(u, -1.0)
        self._add(jacobian, a, moment, force, 1.0)
        self._add(jacobian, b, moment, force, -1.0)
        return -dot(u, gap), jacobian, (force, cross(u, plus(xb, scale(xa, -1.0))))

    def _bias(self, i: int) -> Node:
        """Return -Phi_dot_dot of equation i at joint accelerations zero."""
        cuts = self.cuts
        kind, a, b = int(cuts.kind[i]), int(cuts.node_a[i]), int(cuts.node_b[i])
        if kind == LINEAR:
            return self.graph.zero
        if kind == DOT:
            u, e = self._turned(a, cuts.vector_a[i]), self._turned(b, cuts.vector_b[i])
            (wa, la), (wb, lb) = self._spun(a), self._spun(b)
            w, turned = plus(wa, scale(wb, -1.0)), dot(plus(la, scale(lb, -1.0)), cross(u, e))
            return dot(w, e) * dot(wb, u) - dot(w, u) * dot(wa, e) + dot(w, w) * dot(u, e) - turned
        xa, xb = self._point(a, cuts.point_a[i]), self._point(b, cuts.point_b[i])
        (va, aa), (vb, ab) = (self._moving(n, self._constant(x)) for n, x in ((a, cuts.point_a[i]), (b, cuts.point_b[i])))
        if kind == POINT:
            return -dot(self._constant(cuts.vector_b[i], True), plus(aa, scale(ab, -1.0)))
        u = self._turned(a, cuts.vector_a[i])  # SLIDE
        w, al = self._spun(a)
        u1, u2 = cross(w, u), times(spin(w, al), u)
        relative = dot(u1, plus(va, scale(vb, -1.0)))
        return dot(u2, plus(xa, scale(xb, -1.0))) + 2.0 * relative + dot(u, plus(aa, scale(ab, -1.0)))

    def _add(self, row: list[Node], node: int, moment: Vector, force: Vector, sign: float) -> None:
        """Add sign (moment . w_d + force . l_d) for all coordinates d that move a node."""
        if node < 0:
            return
        for d in self.state.support(node):
            w, u = self._twists[d]
            row[d] = row[d] + (dot(moment, w) + dot(force, u)) * sign

    def _spun(self, node: int) -> tuple[Vector, Vector]:
        """Return angular velocity and acceleration of a node in base axes."""
        if node < 0:
            return self.state.zero, self.state.zero
        (R, _), (w, al, _) = self._worlds[node], self.state.motions[node]
        return times(R, w), times(R, al)

    def _moving(self, node: int, x: Vector) -> tuple[Vector, Vector]:
        """Return velocity and acceleration less gravity of a point fixed in a node, in base axes."""
        if node < 0:
            return self.state.zero, scale(self.state.gravity, -1.0)
        if int(self.state.tree.kind[node]) in (REVOLUTE, SPHERICAL) and all(entry.is_const(0.0) for entry in x):
            return self._moving(int(self.state.tree.parent[node]), self.state.poses[node][1])  # a joint turns about its origin
        (R, _), (w, al, ac) = self._worlds[node], self.state.motions[node]
        v = plus(self.state.velocities[node][1], cross(w, x))
        return times(R, v), times(R, plus(ac, times(spin(w, al), x)))

    @cached_property
    def _rows(self) -> list[tuple[Node, list[Node], tuple[Vector, Vector]]]:
        return [self._row(i) for i in range(int(self.cuts.kind.size))]

    @property
    def residuals(self) -> list[Node]:
        """Phi."""
        return [phi for phi, _, _ in self._rows]

    @property
    def jacobian(self) -> list[list[Node]]:
        """Rows of dPhi/dq."""
        return [jacobian for _, jacobian, _ in self._rows]

    @property
    def derivatives(self) -> list[list[Node]]:
        """Rows of dPhi by the coordinates; their rates differ from the velocities of spherical and free joints."""
        if np.isin(self.state.tree.kind, (SPHERICAL, FREE)).any():
            return derivative_matrix(self.residuals, self.state.q)
        return self.jacobian

    @property
    def biases(self) -> list[Node]:
        """-Phi_dot_dot at joint accelerations zero."""
        return [self._bias(i) for i in range(int(self.cuts.kind.size))]

    @property
    def wrenches(self) -> list[tuple[Vector, Vector]]:
        """(force, moment) on body a at its point, base axes, of a unit multiplier of every equation."""
        return [wrench for _, _, wrench in self._rows]


def closure_function(tree: Tree, cuts: LoopArrays) -> Callable[[Array], tuple[Array, Array]]:
    """Return Phi (m,) and dPhi/dq (m, n) as a function of q (n,), without machine code."""
    graph, n = Graph(), len(tree.coordinates)
    q, still = graph.symbols("q", n), [graph.zero] * n
    loops = LoopEquations(TreeState(graph, tree.arrays, numeric_geometry(graph, tree), q, still, still), cuts)
    outputs = {"phi": loops.residuals, "J": [entry for row in loops.derivatives for entry in row]}
    return numpy_callable(Function("closure", {"q": n}, outputs), {"J": (len(loops.residuals), n)})


def assemble(closure: Callable[[Array], tuple[Array, Array]], start: Array) -> tuple[Array, Array, Array]:
    """Close the loops from a guess by damped Gauss-Newton steps of minimum length; return q, Phi and dPhi/dq."""
    q = start
    phi, J = closure(q)
    for _ in range(100):
        if np.max(np.abs(phi), initial=0.0) < 1e-13:
            break
        step = -np.linalg.lstsq(J, phi, rcond=1e-8)[0]
        step *= min(1.0, REACH / max(float(np.max(np.abs(step))), 1e-300))
        for _ in range(12):
            trial = closure(q + step)
            if np.linalg.norm(trial[0]) < np.linalg.norm(phi):
                break
            step = 0.5 * step
        else:
            break
        q, (phi, J) = q + step, trial
    return q, phi, J


_found: dict[Hashable, Closure] = {}  # by geometry: robots with other numbers share it
KEPT = 64


def find_closure(mechanism: Mechanism, independent: Sequence[str]) -> Closure:
    """Close the loops near home, determine the degrees of freedom and choose the equations to solve, once per geometry."""
    arrays, names = loop_arrays(mechanism)
    guess = np.array([float(mechanism.home.get(name, 0.0)) for name in mechanism.tree.coordinates])
    driven = tuple(tuple(actuator.coupling) for actuator in mechanism.actuators)
    parts = tuple((part.shape, part.tobytes()) for part in (*mechanism.tree.arrays, *arrays, guess))
    key = parts, names, mechanism.tree.coordinates, tuple(independent), driven
    if key not in _found:
        if len(_found) >= KEPT:
            _found.clear()
        _found[key] = _closure(mechanism, independent, arrays, names, guess)
    return _found[key]


def _closure(
    mechanism: Mechanism, independent: Sequence[str], arrays: LoopArrays, names: tuple[str, ...], guess: Array
) -> Closure:
    """Return the closure of equations that are solved near a guess."""
    tree = mechanism.tree
    equations = closure_function(tree, arrays)
    home, phi, J = assemble(equations, guess)
    error = np.max(np.abs(phi), initial=0.0)
    if error > CLOSED:
        worst = names[int(np.argmax(np.abs(phi)))]
        raise DescriptionError(
            f"robot '{mechanism.name}': no configuration near home closes loop '{worst}' (gap {error:.3g}); "
            "check its frames, or give a better home (home = { joint = position } in a sidecar)"
        )
    generator = np.random.default_rng(0)
    stack = [J]
    for _ in range(4):  # generic configurations near home, because home may be singular
        _, phi, J = assemble(equations, home + generator.uniform(-0.1, 0.1, home.size))
        if np.max(np.abs(phi), initial=0.0) < CLOSED:
            stack.append(J)
    ranks = [int(np.linalg.matrix_rank(J, tol=RANK * np.linalg.norm(J, 2))) for J in stack]
    rank, J = max(ranks), stack[int(np.argmax(ranks))]
    free = tree.arrays.support.shape[1] - rank
    rows = sorted(pivoted(J.T)[1][:rank].tolist())  # well-conditioned ones
    wanted = [_coordinate(mechanism, name) for name in independent]
    if wanted and len(wanted) != free:
        raise DescriptionError(
            f"robot '{mechanism.name}' has {free} degrees of freedom but {len(wanted)} independent coordinates are named; "
            f"name {free} of {', '.join(tree.coordinates)}"
        )
    if not wanted:
        driven = [tree.coordinates.index(c) for a in mechanism.actuators for c in a.coupling if c in tree.coordinates]
        rest = [i for i in range(home.size) if i not in driven]
        # Columns NOT needed to span the constraints are independent: actuated ones are the last choice for pivots.
        dependent = _greedy(J[rows], [*rest, *dict.fromkeys(driven)], rank)
        wanted = [i for i in range(home.size) if i not in dependent]
    dependent = [i for i in range(home.size) if i not in wanted]
    if not _spans(J[np.ix_(rows, dependent)], rank):
        listed = ", ".join(tree.coordinates[i] for i in wanted)
        if any(_spans(other[:, dependent], rank) for other in stack):
            raise DescriptionError(
                f"robot '{mechanism.name}' is singular at home (dead point of {listed}); give another home, or choose other "
                "independent coordinates"
            )
        raise DescriptionError(
            f"robot '{mechanism.name}': {listed} do not determine the other joints; choose other independent ones"
        )
    return Closure(
        arrays,
        names,
        arrays.take(rows),
        np.array(wanted, dtype=np.int64),
        np.array(dependent, dtype=np.int64),
        home,
        free,
        int(arrays.kind.size - rank),
    )


def _spans(J: Array, rank: int) -> bool:
    """Return whether J has this rank."""
    return bool(np.linalg.matrix_rank(J, tol=RANK * max(float(np.linalg.norm(J, 2)), 1e-300)) >= rank)


def _coordinate(mechanism: Mechanism, name: str) -> int:
    if name not in mechanism.tree.coordinates:
        raise DescriptionError(
            f"robot '{mechanism.name}': independent coordinate '{name}' is not one of {', '.join(mechanism.tree.coordinates)}"
        )
    return mechanism.tree.coordinates.index(name)


def _greedy(J: Array, order: Sequence[int], rank: int) -> list[int]:
    """Return `rank` independent columns of J, preferring those early in `order`."""
    kept: list[int] = []
    Q = np.zeros((J.shape[0], 0))
    # A coordinate that moves no loop, such as one of a free base, has a column of rounding errors only.
    noise = RANK * max(float(np.linalg.norm(J, 2)), 1e-300)
    for c in order:
        w = J[:, c] - Q @ (Q.T @ J[:, c])
        w = w - Q @ (Q.T @ w)
        if np.linalg.norm(w) > max(1e-6 * float(np.linalg.norm(J[:, c])), noise) and len(kept) < rank:
            Q = np.column_stack([Q, w / np.linalg.norm(w)])
            kept.append(c)
    return kept
