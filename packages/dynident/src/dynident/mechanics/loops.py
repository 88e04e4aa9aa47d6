"""Loop closure on expressions: Phi, dPhi/dq and the bias, and what the independent coordinates make of all others.

Phi(q_t) = 0,    J = dPhi/dq_t = [J_i J_d],    v_d = -J_d^-1 J_i nu,    a_d = J_d^-1 (-J_i nu_dot - Jdot v_t)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from dynident.graph.expression import Node, total
from dynident.mechanics.bodies import Twist
from dynident.mechanics.geometry import SNAP, Pose, compose
from dynident.mechanics.recursion import Recursion
from dynident.mechanics.vectors import Vector, cross, dot, plus, scale, snapped, times, vector
from dynident.mechanism.loops import DOT, LINEAR, POINT, LoopArrays
from dynident.mechanism.tree import NODE_DOF


class Loops:
    """Closure equations Phi(q_t) = 0 of a tree at q, v, from the twists of its coordinates at the base origin, in base axes."""

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

    def _row(self, i: int) -> tuple[Node, list[Node], Node, tuple[Vector, Vector]]:
        """Return Phi, dPhi/dq, -Phi_dot_dot without accelerations, and the wrench of a unit multiplier of equation i."""
        cuts, zero, none, count = self.cuts, self.graph.zero, self.state.zero, len(self.state.q)
        kind, a, b = int(cuts.kind[i]), int(cuts.node_a[i]), int(cuts.node_b[i])
        jacobian = [zero] * count
        if kind == LINEAR:
            jacobian = [self.graph.node(float(c)) for c in cuts.linear[i]]
            value = total([*(c * x for c, x in zip(jacobian, self.state.q, strict=True))]) - float(cuts.offset[i])
            return value, jacobian, zero, (none, none)
        if kind == DOT:
            u, e = self._turned(a, cuts.vector_a[i]), self._turned(b, cuts.vector_b[i])
            (u1, u2), (e1, e2) = self._turning(a, u), self._turning(b, e)
            self._add(jacobian, a, cross(u, e), none, 1.0)
            self._add(jacobian, b, cross(u, e), none, -1.0)
            return dot(u, e), jacobian, -(dot(u2, e) + 2.0 * dot(u1, e1) + dot(u, e2)), (none, cross(u, e))
        xa, xb = self._point(a, cuts.point_a[i]), self._point(b, cuts.point_b[i])
        (va, aa), (vb, ab) = self._moving(a, xa), self._moving(b, xb)
        gap = plus(xa, scale(xb, -1.0))
        if kind == POINT:
            e = self._constant(cuts.vector_b[i], True)
            self._add(jacobian, a, cross(xa, e), e, 1.0)
            self._add(jacobian, b, cross(xb, e), e, -1.0)
            return dot(e, gap), jacobian, -dot(e, plus(aa, scale(ab, -1.0))), (e, none)
        u = self._turned(a, cuts.vector_a[i])  # SLIDE
        u1, u2 = self._turning(a, u)
        moment, force = cross(u, xb), scale(u, -1.0)
        self._add(jacobian, a, moment, force, 1.0)
        self._add(jacobian, b, moment, force, -1.0)
        relative = dot(u1, plus(va, scale(vb, -1.0)))
        bias = dot(u2, gap) + 2.0 * relative + dot(u, plus(aa, scale(ab, -1.0)))
        return -dot(u, gap), jacobian, bias, (force, cross(u, plus(xb, scale(xa, -1.0))))

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
    def _rows(self) -> list[tuple[Node, list[Node], Node, tuple[Vector, Vector]]]:
        return [self._row(i) for i in range(int(self.cuts.kind.size))]

    @property
    def residuals(self) -> list[Node]:
        """Phi."""
        return [phi for phi, _, _, _ in self._rows]

    @property
    def jacobian(self) -> list[list[Node]]:
        """Rows of dPhi/dq."""
        return [jacobian for _, jacobian, _, _ in self._rows]

    @property
    def biases(self) -> list[Node]:
        """-Phi_dot_dot at joint accelerations zero."""
        return [bias for _, _, bias, _ in self._rows]

    @property
    def wrenches(self) -> list[tuple[Vector, Vector]]:
        """(force, moment) on body a at its point, base axes, of a unit multiplier of every equation."""
        return [wrench for _, _, _, wrench in self._rows]
