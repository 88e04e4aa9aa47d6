"""One robot in motion: all coordinates of its tree from the independent ones, for trees, couplings and loops alike.

    v_t = G nu,    a_t = G nu_dot + b

Without loops the positions that enter are the independent ones; with loops they are those of all tree coordinates, closed
beforehand (`closure`), and G and b follow from the closure equations here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from dynident.errors import DescriptionError
from dynident.graph.expression import Graph, Node, derivative_matrix, forward, total
from dynident.graph.vectors import Vector, back, cross, dot, plus, vector
from dynident.mechanics.solving import NodeRows, eliminate
from dynident.mechanism.elements import Coupling
from dynident.mechanism.loops import LoopArrays, LoopEquations
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.tree import Geometry, Pose, TreeState, compose, numeric_geometry


class MovingTree:
    """The tree of one robot in one state, with its links; every quantity is made when first asked for."""

    def __init__(self, mechanism: Mechanism, graph: Graph | None = None, geometry: Geometry | None = None) -> None:
        self.mechanism = mechanism
        self.graph = Graph() if graph is None else graph
        self.geometry = numeric_geometry(self.graph, mechanism.tree) if geometry is None else geometry
        self.x = self.graph.symbols("q", positions_of(mechanism))
        self.v, self.a = self.graph.symbols("v", mechanism.dof), self.graph.symbols("a", mechanism.dof)

    # ---- the tree's motion ------------------------------------------------------------------------------------------

    @cached_property
    def tree_q(self) -> list[Node]:
        """Positions of all tree coordinates."""
        if self.mechanism.loops:
            return self.x
        return follow(self.graph, self.mechanism, self.x)

    @cached_property
    def G(self) -> NodeRows | None:
        """dv_t/dnu, (n_tree, n); None for a plain tree, where it is the identity."""
        if self.mechanism.loops:
            return self._closed[0]
        return derivative_matrix(self.tree_q, self.x) if self.mechanism.couplings else None

    @cached_property
    def bias(self) -> list[Node]:
        """B with a_t = G nu_dot + b."""
        zero = self.graph.zero
        if self.mechanism.loops:
            return self._closed[1]
        if self.G is None or all(c.function is None for c in self.mechanism.couplings):
            return [zero] * len(self.tree_q)
        rates = forward([entry for row in self.G for entry in row], dict(zip(self.x, self.v, strict=True)))
        n = self.mechanism.dof
        return [dot(rates[i * n : (i + 1) * n], self.v) for i in range(len(self.tree_q))]

    @cached_property
    def pivot(self) -> Node:
        """Ratio of the smallest to the largest pivot of the closure; near zero at a singularity of the chosen coordinates."""
        return self._closed[2]

    @property
    def branch(self) -> Node:
        """Sign of the determinant of the closure: another one is another way of assembling the robot."""
        return self._closed[3]

    @property
    def correction(self) -> list[Node]:
        """Step of Newton's method that closes the loops by moving the dependent coordinates, (n_tree,)."""
        return self._closed[4]

    @cached_property
    def _closed(self) -> tuple[NodeRows, list[Node], Node, Node, list[Node]]:
        """G, b, pivot ratio, branch and correction of a robot with loops."""
        graph, closure = self.graph, self.mechanism.closure
        free, bound = [int(i) for i in closure.independent], [int(i) for i in closure.dependent]
        loops = self.loops(closure.selected)
        J = loops.jacobian
        right = [[*(-row[i] for i in free), -phi] for row, phi in zip(J, loops.residuals, strict=True)]
        projector, pivot, branch = eliminate([[row[i] for i in bound] for row in J], right)
        G: NodeRows = [[graph.zero] * len(free) for _ in self.x]
        for k, i in enumerate(free):
            G[i][k] = graph.one
        gap = [graph.zero] * len(self.x)
        for i, row in zip(bound, projector, strict=True):
            G[i], gap[i] = row[:-1], row[-1]
        # The bias belongs to velocities on the closure; the same elimination is made again with it on the right.
        rates = [dot(row, self.v) for row in G]
        moving = self._tree_state(self.x, rates, [graph.zero] * len(self.x), False)
        biases = LoopEquations(moving, closure.selected).biases
        both, _, _ = eliminate([[row[i] for i in bound] for row in J], [[*r, b] for r, b in zip(right, biases, strict=True)])
        b = [graph.zero] * len(self.x)
        for i, row in zip(bound, both, strict=True):
            b[i] = row[-1]
        return G, b, pivot, branch, gap

    def loops(self, equations: LoopArrays) -> LoopEquations:
        """Return closure equations at the positions alone, velocities zero."""
        still = [self.graph.zero] * len(self.x)
        return LoopEquations(self._tree_state(self.x, still, still, False), equations)

    @cached_property
    def tree_v(self) -> list[Node]:
        """Velocities of all tree coordinates."""
        return self.v if self.G is None else [dot(row, self.v) for row in self.G]

    @cached_property
    def tree_a(self) -> list[Node]:
        """Accelerations of all tree coordinates."""
        if self.G is None:
            return self.a
        return [dot(row, self.a) + b for row, b in zip(self.G, self.bias, strict=True)]

    def _tree_state(self, q: Sequence[Node], v: Sequence[Node], a: Sequence[Node], gravity: bool) -> TreeState:
        down = self.geometry.gravity if gravity else None
        return TreeState(self.graph, self.mechanism.tree.arrays, self.geometry, q, v, a, down)

    @cached_property
    def state(self) -> TreeState:
        """The tree in motion, with gravity."""
        return self._tree_state(self.tree_q, self.tree_v, self.tree_a, True)

    @cached_property
    def free_motion(self) -> TreeState:
        """The tree in motion, without gravity."""
        return self._tree_state(self.tree_q, self.tree_v, self.tree_a, False)

    def project(self, rows: Sequence[Node]) -> list[Node]:
        """Return G^T x: forces of the tree coordinates on the independent ones."""
        if self.G is None:
            return list(rows)
        return [total([x * row[j] for x, row in zip(rows, self.G, strict=True)]) for j in range(self.mechanism.dof)]

    def times_G(self, row: Sequence[float]) -> list[Node]:
        """Return c G of a row c of the tree's coordinates: c v_t = (c G) nu."""
        G = self.G
        if G is None:
            return [self.graph.const(float(x)) for x in row]
        entries = [(i, float(x)) for i, x in enumerate(row) if x]
        return [total([self.graph.zero, *(G[i][j] * x for i, x in entries)]) for j in range(self.mechanism.dof)]

    def sandwich(self, M: NodeRows, right: NodeRows | None = None) -> NodeRows:
        """Return G^T M G, or G^T M right."""
        if self.G is None:
            return M
        other, n = self.G if right is None else right, self.mechanism.dof
        wide = [[dot(row, [line[j] for line in other]) for j in range(n)] for row in M]
        columns = [self.project([row[j] for row in wide]) for j in range(n)]
        return [[column[i] for column in columns] for i in range(n)]

    # ---- links ------------------------------------------------------------------------------------------------------

    def pose(self, link: str) -> Pose:
        """Return the pose of a link in the base frame."""
        node, own = self.geometry.frames[link]
        return compose(self.state.world(node), own)

    def pose_matrix(self, link: str) -> NodeRows:
        """Return the homogeneous matrix (4, 4) of a link in the base frame."""
        R, p = self.pose(link)
        zero, one = self.graph.zero, self.graph.one
        return [*([*row, shift] for row, shift in zip(R, p, strict=True)), [zero, zero, zero, one]]

    def tree_jacobian(self, link: str) -> NodeRows:
        """Return J_t (6, n_tree) of a link's origin in its own axes by all tree coordinates, linear rows first."""
        node, (P, lever) = self.geometry.frames[link]
        columns: list[tuple[Node, ...]] = [(self.graph.zero,) * 6] * len(self.tree_q)
        for d, (w, u) in (self.state.columns[node] if node >= 0 else {}).items():
            columns[d] = *back(P, plus(u, cross(w, lever))), *back(P, w)
        return [list(row) for row in zip(*columns, strict=True)]

    def jacobian(self, link: str) -> NodeRows:
        """Return J (6, n) of a link's origin in its own axes, linear rows first."""
        return [self.project(row) for row in self.tree_jacobian(link)]

    def link_motion(self, link: str) -> tuple[Vector, Vector, Vector, Vector]:
        """Return linear and angular velocity, linear and angular acceleration (without gravity) of a link, in its axes."""
        node, (P, lever) = self.geometry.frames[link]
        if node < 0:
            zero = vector(self.graph, (0.0, 0.0, 0.0))
            return zero, zero, zero, zero
        w, u = self.free_motion.velocities[node]
        _, al, ac = self.free_motion.motions[node]
        shift = plus(cross(al, lever), cross(w, cross(w, lever)))
        return back(P, plus(u, cross(w, lever))), back(P, w), back(P, plus(ac, shift)), back(P, al)


def positions_of(mechanism: Mechanism) -> int:
    """Return how many positions enter the equations: all tree coordinates where they are found by iteration."""
    return len(mechanism.tree.coordinates) if mechanism.loops else mechanism.dof


def follow(graph: Graph, mechanism: Mechanism, q: Sequence[Node]) -> list[Node]:
    """Return all tree coordinates as expressions of the independent ones, by running the couplings' own functions."""
    known = dict(zip(mechanism.coordinate_names, q, strict=True))
    waiting = list(mechanism.couplings)
    while waiting:
        ready = next(c for c in waiting if all(name in known for name in c.of))
        waiting.remove(ready)
        known[ready.joint] = _followed(graph, ready, [known[name] for name in ready.of])
    return [known[name] for name in mechanism.tree.coordinates]


def _followed(graph: Graph, coupling: Coupling, x: Sequence[Node]) -> Node:
    if coupling.function is None:
        terms = [node * ratio for node, ratio in zip(x, coupling.of.values(), strict=True)]
        return total([*terms, graph.const(coupling.offset)])
    row = np.empty((1, len(x)), dtype=object)
    row[0, :] = list(x)
    try:
        result = np.ravel(np.asarray(coupling.function(row), dtype=object))[0]
        return graph.node(result if isinstance(result, Node) else float(result)) + coupling.offset
    except (TypeError, AttributeError, ValueError, IndexError) as error:
        raise DescriptionError(
            f"coupling of joint '{coupling.joint}' has no closed form that can be differentiated ({error}); write its function "
            "with sums, products, quotients, powers, sin, cos, tan, sqrt, exp, tanh and arctan2 of NumPy"
        ) from error
