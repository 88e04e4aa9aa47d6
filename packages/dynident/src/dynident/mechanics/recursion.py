"""The recursion over the tree as expressions: kinematics, Newton-Euler, regressor.

What a single body does is in `bodies`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from dynident.graph.expression import Graph, Node
from dynident.mechanics.bodies import Twist, body_wrench, spin
from dynident.mechanics.geometry import Geometry, Pose
from dynident.mechanics.vectors import Inertia, Matrix, Vector, back, cross, dot, matrix, plus, product, scale, times, vector
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.tree import FIXED, FREE, NODE_DOF, PRISMATIC, REVOLUTE, SPHERICAL


class Recursion:
    """All quantities of one state (q, v, a) of the tree, each computed when first asked for."""

    def __init__(
        self,
        graph: Graph,
        mechanism: Mechanism,
        geometry: Geometry,
        q: Sequence[Node],
        v: Sequence[Node],
        a: Sequence[Node],
        gravity: Vector,
    ) -> None:
        self.graph, self.geometry, self.q, self.v, self.a, self.gravity = graph, geometry, q, v, a, gravity
        self.tree = mechanism.tree.arrays
        self.nodes = int(self.tree.parent.size)
        self.zero = vector(graph, (0.0, 0.0, 0.0))

    def support(self, i: int) -> list[int]:
        """Return the coordinates that move a node, from the base outward."""
        return [int(d) for d in self.tree.support[i, : self.tree.support_count[i]]]

    # ---- kinematics -------------------------------------------------------------------------------------------------

    @cached_property
    def poses(self) -> list[Pose]:
        """Pose of every node in its parent's frame."""
        return [self._pose(i) for i in range(self.nodes)]

    def _pose(self, i: int) -> Pose:
        kind, d = int(self.tree.kind[i]), int(self.tree.dof[i])
        (P, t), u, q = self.geometry.placements[i], self.geometry.axes[i], self.q
        one = self.graph.one
        if kind == REVOLUTE:
            c, s = self.graph.call("cos", q[d]), self.graph.call("sin", q[d])
            return product(P, self._turn(u, c, s, one - c)), t
        if kind == PRISMATIC:
            return P, plus(t, scale(times(P, u), q[d]))
        if kind == FIXED:
            return P, t
        shift = plus(t, times(P, (q[d], q[d + 1], q[d + 2]))) if kind == FREE else t
        first = d + 3 if kind == FREE else d
        x: Vector = (q[first], q[first + 1], q[first + 2])
        square = dot(x, x)
        f, g = self.graph.call("sinc", square), self.graph.cosc(square)
        return product(P, self._turn(x, one - g * square, f, g)), shift

    def _turn(self, x: Vector, c: Node, s: Node, g: Node) -> Matrix:
        """Return c 1 + s [x]x + g x x^T; a unit axis along x, y or z gives entries without 1 - cos."""
        lone = [i for i in range(3) if x[i].is_const(1.0) or x[i].is_const(-1.0)]
        rows: list[list[Node]] = []
        for i in range(3):
            row = []
            for j in range(3):
                if i == j:
                    row.append(self.graph.one if i in lone else c + g * x[i] * x[i])
                else:
                    k = 3 - i - j
                    sign = -1.0 if (j - i) % 3 == 1 else 1.0
                    row.append(g * x[i] * x[j] + s * x[k] * sign)
            rows.append(row)
        return matrix(self.graph, rows)

    def rates(self, i: int, x: Sequence[Node] | Mapping[int, Node]) -> Twist:
        """Return the joint's own angular and linear rate in the child frame."""
        kind, d = int(self.tree.kind[i]), int(self.tree.dof[i])
        if kind == FIXED:
            return self.zero, self.zero
        if kind == REVOLUTE:
            return scale(self.geometry.axes[i], x[d]), self.zero
        if kind == PRISMATIC:
            return self.zero, scale(self.geometry.axes[i], x[d])
        if kind == SPHERICAL:
            return (x[d], x[d + 1], x[d + 2]), self.zero
        return (x[d + 3], x[d + 4], x[d + 5]), (x[d], x[d + 1], x[d + 2])

    @cached_property
    def motions(self) -> list[tuple[Vector, Vector, Vector]]:
        """Angular velocity, angular acceleration and origin acceleration less gravity, in each node's frame."""
        found: list[tuple[Vector, Vector, Vector]] = []
        for i in range(self.nodes):
            p, (R, r) = int(self.tree.parent[i]), self.poses[i]
            (wj, vj), (aj, lj) = self.rates(i, self.v), self.rates(i, self.a)
            w, al, ac = self.zero, self.zero, scale(self.gravity, -1.0)
            if p >= 0:
                w, al, ac = found[p]
                ac = plus(ac, times(spin(w, al), r))
                w, al = back(R, w), back(R, al)
            ac = back(R, ac)
            alpha = plus(plus(al, aj), cross(w, wj))
            found.append((plus(w, wj), alpha, plus(plus(ac, lj), cross(plus(scale(w, 2.0), wj), vj))))
        return found

    @cached_property
    def velocities(self) -> list[Twist]:
        """Angular and linear velocity of every node, in its own frame."""
        found: list[Twist] = []
        for i in range(self.nodes):
            p, (R, r) = int(self.tree.parent[i]), self.poses[i]
            w, u = found[p] if p >= 0 else (self.zero, self.zero)
            wj, vj = self.rates(i, self.v)
            found.append((plus(back(R, w), wj), plus(back(R, plus(u, cross(w, r))), vj)))
        return found

    @cached_property
    def columns(self) -> list[dict[int, Twist]]:
        """Jacobian columns (w, l) of every node by coordinate, in its own frame."""
        found: list[dict[int, Twist]] = []
        for i in range(self.nodes):
            p, (R, r) = int(self.tree.parent[i]), self.poses[i]
            passed: dict[int, Twist] = {}
            for e, (w, u) in (found[p] if p >= 0 else {}).items():
                passed[e] = (back(R, w), back(R, plus(u, cross(w, r))))
            found.append(passed | self.own_columns(i))
        return found

    def own_columns(self, i: int) -> dict[int, Twist]:
        """Return the columns of a node's own joint by coordinate."""
        d = int(self.tree.dof[i])
        own: dict[int, Twist] = {}
        for k in range(NODE_DOF[int(self.tree.kind[i])]):
            unit = dict.fromkeys(range(d, d + 6), self.graph.zero) | {d + k: self.graph.one}
            own[d + k] = self.rates(i, unit)
        return own

    def world(self, i: int) -> Pose:
        """Return the pose of a node in the base frame."""
        R, p = matrix(self.graph, ((1, 0, 0), (0, 1, 0), (0, 0, 1))), self.zero
        while i >= 0:
            r, t = self.poses[i]
            R, p = product(r, R), plus(times(r, p), t)
            i = int(self.tree.parent[i])
        return R, p

    # ---- dynamics ---------------------------------------------------------------------------------------------------

    def inverse_dynamics(self, bodies: Sequence[Inertia | None]) -> list[Node]:
        """Return the torques of the tree coordinates by the Newton-Euler recursion."""
        wrench: list[Twist] = [(self.zero, self.zero)] * self.nodes
        tau = [self.graph.zero] * len(self.q)
        for i in range(self.nodes - 1, -1, -1):
            phi = bodies[i]
            n, f = wrench[i]
            if phi is not None:
                moment, force = body_wrench(phi, *self.motions[i])
                n, f = plus(n, moment), plus(f, force)
            for d, (w, u) in self.own_columns(i).items():
                tau[d] = dot(w, n) + dot(u, f)
            p, (R, r) = int(self.tree.parent[i]), self.poses[i]
            if p >= 0:
                f = times(R, f)
                above = wrench[p]
                wrench[p] = (plus(above[0], plus(times(R, n), cross(r, f))), plus(above[1], f))
        return tau

    def regressor(self, i: int) -> dict[int, Inertia]:
        """Return the ten columns of a node's body in every coordinate that moves it."""
        om, al, ac = self.motions[i]
        S = spin(om, al)
        p = [[om[j] * om[k] for k in range(3)] for j in range(3)]
        # Columns of n with respect to Ixx, Ixy, Ixz, Iyy, Iyz, Izz.
        moments: tuple[Vector, ...] = (
            (al[0], p[0][2], -p[0][1]),
            (-S[2][0], S[2][1], p[0][0] - p[1][1]),
            (S[1][0], p[2][2] - p[0][0], -S[1][2]),
            (-p[1][2], al[1], p[0][1]),
            (p[1][1] - p[2][2], -S[0][1], S[0][2]),
            (p[1][2], -p[0][2], al[2]),
        )
        blocks: dict[int, Inertia] = {}
        for d, (w, u) in self.columns[i].items():
            first = plus(back(S, u), cross(ac, w))
            blocks[d] = (dot(u, ac), *first, *(dot(w, column) for column in moments))
        return blocks
