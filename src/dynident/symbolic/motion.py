"""The equation of motion of one robot's tree for its own compiled code: what `mechanics.sample_kernels` computes for any tree.

    motion     q, v -> M (lower triangle, on top of constant inertias) and h; of loops also -Phi_dot_dot without accelerations
    closure    q    -> Phi and dPhi/dq of the independent closure equations
    solve      M, f -> M^-1 f by L D L^T

Parameters stay inputs, so one robot's code serves all its copies with other masses; only the geometry is built in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from dynident.mechanism import Mechanism
from dynident.mechanism.loops import DOT, LINEAR, POINT, LoopArrays
from dynident.mechanism.tree import NODE_DOF
from dynident.symbolic.bodies import Twist
from dynident.symbolic.expression import Graph, Node
from dynident.symbolic.geometry import Geometry, Pose, compose
from dynident.symbolic.matrices import mass_matrix
from dynident.symbolic.recursion import Recursion
from dynident.symbolic.vectors import Vector, cross, dot, matrix, plus, scale, snapped, times, total, vector

SNAP = 1e-12  # direction cosines closer than this to 0, 1, 1/2, ... are taken as exact: the decimals a file was printed with


@dataclass(frozen=True)
class Entry:
    """One number that the code writes.

    Parameters
    ----------
    array : str
        Array it goes to.
    index : int
        Where in that array.
    value : Node
        What.
    """

    array: str
    index: int
    value: Node


@dataclass(frozen=True)
class Task:
    """One function to compile.

    Parameters
    ----------
    name : str
        Its name.
    inputs : tuple of str
        Arrays it reads; symbol ``q[3]`` is entry 3 of array ``q``.
    outputs : tuple of str
        Arrays it writes.
    entries : tuple of Entry
        What it writes; other entries are left as they are.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    entries: tuple[Entry, ...]


def motion_tasks(mechanism: Mechanism, max_nodes: int) -> list[Task]:
    """Return the functions of a robot: ``motion``, ``solve`` and, with loops, ``closure``.

    motion(q, v, p, b, M, h, r) reads tree coordinates and velocities, inertial parameters and constant inertias b (n, n) and
    writes the entries of M (n, n) below and on the diagonal that are not those of b, h (n,) and, of loops, column 0 of r (m, w)
    with w = dof + 1. closure(q, J, r) writes the entries of J (m, n) that are not zero and the last column of r. solve(M, x, d)
    overwrites x (dof,) by M^-1 x and writes the pivots into d (dof,).

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    max_nodes : int
        Size of the expressions at which to give up with a `DynidentError`.

    Returns
    -------
    list of Task
        Two or three functions.
    """
    graph, arrays = Graph(max_nodes=max_nodes), mechanism.tree.arrays
    n, width = len(mechanism.tree.coordinates), mechanism.tree.inertias.size
    turns = [matrix(graph, rotation) for rotation in snapped(arrays.rotation, SNAP)]
    shifts = [vector(graph, translation) for translation in arrays.translation]
    axes = [vector(graph, axis) for axis in snapped(arrays.axis, SNAP)]
    geometry = Geometry(list(zip(turns, shifts, strict=True)), axes, {}, vector(graph, arrays.gravity))
    q, v, p = ([graph.symbol(f"{key}[{i}]") for i in range(size)] for key, size in (("q", n), ("v", n), ("p", width)))
    state = Recursion(graph, mechanism, geometry, q, v, [graph.zero] * n, geometry.gravity)
    bodies = [tuple(p[c : c + 10]) if c >= 0 else None for c in map(int, arrays.column)]
    M = mass_matrix(state, bodies)
    entries = [Entry("h", i, value) for i, value in enumerate(state.inverse_dynamics(bodies))]
    for i in range(n):
        for j in range(i + 1):
            if not M[i][j].is_const(0.0):
                entries.append(Entry("M", i * n + j, M[i][j] + graph.symbol(f"b[{i * n + j}]")))
    inputs, outputs = ("q", "v", "p", "b"), ("M", "h", "r")
    if not mechanism.loops:
        return [Task("motion", inputs, outputs, tuple(entries)), _solve(graph, mechanism.dof)]
    cuts, wide = mechanism.closure.selected, mechanism.dof + 1
    loops = Loops(state, cuts)
    entries += [Entry("r", i * wide, value) for i, value in enumerate(loops.biases)]
    closing = [Entry("r", i * wide + wide - 1, value) for i, value in enumerate(loops.residuals)]
    for i, row in enumerate(loops.jacobian):
        closing += [Entry("J", i * n + d, value) for d, value in enumerate(row) if not value.is_const(0.0)]
    motion, closure = Task("motion", inputs, outputs, tuple(entries)), Task("closure", ("q",), ("J", "r"), tuple(closing))
    return [motion, closure, _solve(graph, mechanism.dof)]


def _solve(graph: Graph, n: int) -> Task:
    """Return the solution of M x = f by M = L D L^T, reading the lower triangle of M; no square roots, M may be indefinite."""
    M = [[graph.symbol(f"M[{i * n + j}]") for j in range(i + 1)] for i in range(n)]
    x = [graph.symbol(f"x[{i}]") for i in range(n)]
    L: list[list[Node]] = [[graph.zero] * n for _ in range(n)]
    LD: list[list[Node]] = [[graph.zero] * n for _ in range(n)]
    pivots, inverses = [], []
    for j in range(n):
        pivots.append(M[j][j] - total([graph.zero, *(L[j][k] * LD[j][k] for k in range(j))]))
        inverses.append(graph.one / pivots[j])
        x[j] = x[j] - total([graph.zero, *(L[j][k] * x[k] for k in range(j))])
        for i in range(j + 1, n):
            LD[i][j] = M[i][j] - total([graph.zero, *(LD[i][k] * L[j][k] for k in range(j))])
            L[i][j] = LD[i][j] * inverses[j]
    for i in range(n - 1, -1, -1):
        x[i] = x[i] * inverses[i] - total([graph.zero, *(L[k][i] * x[k] for k in range(i + 1, n))])
    entries = [Entry("x", i, value) for i, value in enumerate(x)] + [Entry("d", i, value) for i, value in enumerate(pivots)]
    return Task("solve", ("M",), ("x", "d"), tuple(entries))


class Loops:
    """Closure equations of a tree in base axes, from the twists of its coordinates at the base origin.

    Parameters
    ----------
    state : Recursion
        Tree at q, v.
    cuts : LoopArrays
        Closure equations.
    """

    def __init__(self, state: Recursion, cuts: LoopArrays) -> None:
        self.state, self.cuts, self.graph = state, cuts, state.graph

    @cached_property
    def _worlds(self) -> dict[int, Pose]:
        """Pose of every node and of the base, -1, from the base outward: what a branch shares is computed once."""
        found: dict[int, Pose] = {-1: self.state.world(-1)}
        for i in range(self.state.nodes):
            found[i] = compose(found[int(self.state.tree.parent[i])], self.state.poses[i])
        return found

    def _constant(self, values: Sequence[float], direction: bool = False) -> Vector:
        return vector(self.graph, snapped(values, SNAP) if direction else values)

    def _turned(self, node: int, values: Sequence[float]) -> Vector:
        """Return a direction of a node in base axes."""
        return times(self._worlds[node][0], self._constant(values, True))

    def _point(self, node: int, values: Sequence[float]) -> Vector:
        """Return a point of a node in base axes."""
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

    @cached_property
    def _motions(self) -> dict[int, tuple[Twist, Twist]]:
        """Twist and acceleration without joint accelerations of every node and of the base, -1."""
        zero = self.state.zero
        found: dict[int, tuple[Twist, Twist]] = {-1: ((zero, zero), (zero, zero))}
        for i in range(self.state.nodes):
            (om, li), (al, ac) = found[int(self.state.tree.parent[i])]
            w, u = zero, zero
            first = int(self.state.tree.dof[i])
            for d in range(first, first + NODE_DOF[int(self.state.tree.kind[i])]):
                axis, shift = self._twists[d]
                w, u = plus(w, scale(axis, self.state.v[d])), plus(u, scale(shift, self.state.v[d]))
            bias = plus(al, cross(om, w)), plus(ac, plus(cross(om, u), cross(li, w)))
            found[i] = (plus(om, w), plus(li, u)), bias
        return found

    def _row(self, i: int) -> tuple[Node, list[Node], Node]:
        """Return Phi, dPhi/dq and -Phi_dot_dot without accelerations of equation i."""
        cuts, zero, count = self.cuts, self.graph.zero, len(self.state.q)
        kind, a, b = int(cuts.kind[i]), int(cuts.node_a[i]), int(cuts.node_b[i])
        jacobian = [zero] * count
        if kind == LINEAR:
            jacobian = [self.graph.node(float(c)) for c in cuts.linear[i]]
            return (
                total([*(c * x for c, x in zip(jacobian, self.state.q, strict=True))]) - float(cuts.offset[i]),
                jacobian,
                zero,
            )
        if kind == DOT:
            u, e = self._turned(a, cuts.vector_a[i]), self._turned(b, cuts.vector_b[i])
            (u1, u2), (e1, e2) = self._turning(a, u), self._turning(b, e)
            self._add(jacobian, a, cross(u, e), self.state.zero, 1.0)
            self._add(jacobian, b, cross(u, e), self.state.zero, -1.0)
            return dot(u, e), jacobian, -(dot(u2, e) + 2.0 * dot(u1, e1) + dot(u, e2))
        xa, xb = self._point(a, cuts.point_a[i]), self._point(b, cuts.point_b[i])
        (va, aa), (vb, ab) = self._moving(a, xa), self._moving(b, xb)
        gap = plus(xa, scale(xb, -1.0))
        if kind == POINT:
            e = self._constant(cuts.vector_b[i], True)
            self._add(jacobian, a, cross(xa, e), e, 1.0)
            self._add(jacobian, b, cross(xb, e), e, -1.0)
            return dot(e, gap), jacobian, -dot(e, plus(aa, scale(ab, -1.0)))
        u = self._turned(a, cuts.vector_a[i])  # SLIDE
        u1, u2 = self._turning(a, u)
        moment, force = cross(u, xb), scale(u, -1.0)
        self._add(jacobian, a, moment, force, 1.0)
        self._add(jacobian, b, moment, force, -1.0)
        relative = dot(u1, plus(va, scale(vb, -1.0)))
        return -dot(u, gap), jacobian, dot(u2, gap) + 2.0 * relative + dot(u, plus(aa, scale(ab, -1.0)))

    def _add(self, row: list[Node], node: int, moment: Vector, force: Vector, sign: float) -> None:
        """Add sign (moment . w_d + force . l_d) for all coordinates d that move a node."""
        if node < 0:
            return
        for d in self.state.support(node):
            w, u = self._twists[d]
            row[d] = row[d] + (dot(moment, w) + dot(force, u)) * sign

    def _turning(self, node: int, u: Vector) -> tuple[Vector, Vector]:
        """Return first and second derivative of a direction fixed in a node."""
        (om, _), (al, _) = self._motions[node]
        first = cross(om, u)
        return first, plus(cross(al, u), cross(om, first))

    def _moving(self, node: int, x: Vector) -> tuple[Vector, Vector]:
        """Return velocity and acceleration of a point fixed in a node."""
        (om, li), (al, ac) = self._motions[node]
        v = plus(li, cross(om, x))
        return v, plus(ac, plus(cross(al, x), cross(om, v)))

    @cached_property
    def _rows(self) -> list[tuple[Node, list[Node], Node]]:
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
    def biases(self) -> list[Node]:
        """-Phi_dot_dot at joint accelerations zero."""
        return [bias for _, _, bias in self._rows]
