"""Motion and forces of the tree: `MovingTree`, wrenches and momentum of its bodies, torques, regressor, matrices, energies.

All coordinates of the tree follow from the independent ones, also with couplings and loops (positions of loops are
closed beforehand, see `branch`). With S = [alpha]x + [omega]x^2, computed once and shared by all its users,

    v_t = G nu,    a_t = G nu_dot + b
    f = m a + S h,                                        a_child = R^T (a + S r)
    n = h x a + column by column of the inertia tensor,   written with the entries of S:
        n_x = Ixx al_x - Ixy S_zx + Ixz S_yx + (Izz - Iyy) w_y w_z + Iyz (w_y^2 - w_z^2),   and so on cyclically.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property

import numpy as np

from dynident.arrays import Array
from dynident.errors import DescriptionError
from dynident.graph.algebra import NodeRows, Vector, back, cross, dot, eliminate, matrix, plus, scale, times, vector, where
from dynident.graph.expression import Function, Graph, Node, derivative_matrix, forward, total
from dynident.graph.printing import numpy_callable
from dynident.mechanism.elements import Coupling
from dynident.mechanism.loops import LoopArrays, LoopEquations
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import Inertia, moved, tensor
from dynident.mechanism.tree import FREE, NODE_DOF, SPHERICAL, Geometry, Pose, TreeState, Twist, compose, numeric_geometry, spin


def body_wrench(phi: Inertia, w: Vector, al: Vector, ac: Vector) -> Twist:
    """Return moment and force of a body's motion, at its origin and in its frame."""
    S = spin(w, al)
    h: Vector = (phi[1], phi[2], phi[3])
    force = plus(scale(ac, phi[0]), times(S, h))
    xx, xy, xz, yy, yz, zz = phi[4:]
    p00, p11, p22 = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    euler = (
        total([xx * al[0], (zz - yy) * (w[1] * w[2]), xz * S[1][0], -(xy * S[2][0]), yz * (p11 - p22)]),
        total([yy * al[1], (xx - zz) * (w[0] * w[2]), xy * S[2][1], -(yz * S[0][1]), xz * (p22 - p00)]),
        total([zz * al[2], (yy - xx) * (w[0] * w[1]), yz * S[0][2], -(xz * S[1][2]), xy * (p00 - p11)]),
    )
    return plus(euler, cross(h, ac)), force


def momentum(phi: Inertia, w: Vector, u: Vector) -> Twist:
    """Return (n, f) = M_i (w, u): f = m u + w x h, n = h x u + I w."""
    h: Vector = (phi[1], phi[2], phi[3])
    return plus(cross(h, u), times(tensor(phi), w)), plus(scale(u, phi[0]), cross(w, h))


def joint_wrenches(x: TreeState, bodies: Sequence[Inertia | None], external: Mapping[int, Twist] | None = None) -> list[Twist]:
    """Return the joint wrench on every node, at the node's origin and in its axes.

    `external` are external wrenches on nodes, at their origins and in their axes.
    """
    wrenches: list[Twist] = [(x.zero, x.zero)] * x.nodes
    for i in range(x.nodes - 1, -1, -1):
        n, f = wrenches[i]
        phi = bodies[i]
        if phi is not None:
            moment, force = body_wrench(phi, *x.motions[i])
            n, f = plus(n, moment), plus(f, force)
        if external is not None and i in external:
            moment, force = external[i]
            n, f = plus(n, scale(moment, -1.0)), plus(f, scale(force, -1.0))
        wrenches[i] = n, f
        p, (R, r) = int(x.tree.parent[i]), x.poses[i]
        if p >= 0:
            above, f = wrenches[p], times(R, f)
            wrenches[p] = plus(above[0], plus(times(R, n), cross(r, f))), plus(above[1], f)
    return wrenches


def inverse_dynamics(x: TreeState, bodies: Sequence[Inertia | None]) -> list[Node]:
    """Return the torques of the tree coordinates by the Newton-Euler recursion."""
    tau = [x.graph.zero] * len(x.q)
    for i, (n, f) in enumerate(joint_wrenches(x, bodies)):
        for d, (w, u) in x.own_columns(i).items():
            tau[d] = dot(w, n) + dot(u, f)
    return tau


def wrench_columns(w: Vector, al: Vector, ac: Vector, twists: Sequence[Twist]) -> list[Inertia]:
    """Return the power of `body_wrench` in every twist per unit of the ten inertial parameters."""
    S = spin(w, al)
    p = [[w[j] * w[k] for k in range(3)] for j in range(3)]
    # Columns of n with respect to Ixx, Ixy, Ixz, Iyy, Iyz, Izz.
    moments: tuple[Vector, ...] = (
        (al[0], p[0][2], -p[0][1]),
        (-S[2][0], S[2][1], p[0][0] - p[1][1]),
        (S[1][0], p[2][2] - p[0][0], -S[1][2]),
        (-p[1][2], al[1], p[0][1]),
        (p[1][1] - p[2][2], -S[0][1], S[0][2]),
        (p[1][2], -p[0][2], al[2]),
    )
    return [(dot(u, ac), *plus(back(S, u), cross(ac, turn)), *(dot(turn, column) for column in moments)) for turn, u in twists]


def body_regressor(w: Array, al: Array, a: Array) -> Array:
    """Return Y (N, 6, 10) of (force, moment) = Y phi for a body's motion in its frame; a is the acceleration less gravity."""
    return np.asarray(_body_regressor()(w, al, a))


@cache
def _body_regressor() -> Callable[[Array, Array, Array], Array]:
    graph = Graph()
    w, al, a = (vector(graph, graph.symbols(name, 3)) for name in ("w", "al", "a"))
    zero, units = vector(graph, (0.0, 0.0, 0.0)), matrix(graph, np.eye(3))
    rows = wrench_columns(w, al, a, [*((zero, unit) for unit in units), *((unit, zero) for unit in units)])
    function = Function("body_regressor", {"w": 3, "al": 3, "a": 3}, {"Y": [entry for row in rows for entry in row]})
    return numpy_callable(function, {"Y": (6, 10)})


def regressor(x: TreeState, i: int) -> dict[int, Inertia]:
    """Return the ten columns of a node's body in every coordinate that moves it."""
    columns = x.columns[i]
    return dict(zip(columns, wrench_columns(*x.motions[i], list(columns.values())), strict=True))


def mass_matrix(x: TreeState, bodies: Sequence[Inertia | None]) -> list[list[Node]]:
    """Return M of the tree coordinates by composite bodies."""
    n, zero = len(x.q), x.graph.zero
    composite: list[Inertia] = [body if body is not None else (zero,) * 10 for body in bodies]
    M = [[zero] * n for _ in range(n)]
    for i in range(x.nodes - 1, -1, -1):
        first, p = int(x.tree.dof[i]), int(x.tree.parent[i])
        for e in range(first, first + NODE_DOF[int(x.tree.kind[i])]):
            w, u = x.columns[i][e]
            moment, force = momentum(composite[i], w, u)
            j = i
            while j >= 0:
                start = int(x.tree.dof[j])
                for d in range(start, start + NODE_DOF[int(x.tree.kind[j])]):
                    if d <= e:
                        cw, cu = x.columns[j][d]
                        M[d][e] = M[e][d] = dot(cw, moment) + dot(cu, force)
                R, r = x.poses[j]
                force = times(R, force)
                moment = plus(times(R, moment), cross(r, force))
                j = int(x.tree.parent[j])
        if p >= 0:
            seen = moved(composite[i], *x.poses[i])
            composite[p] = tuple(own + more for own, more in zip(composite[p], seen, strict=True))
    return M


def coriolis_matrix(x: TreeState, bodies: Sequence[Inertia | None]) -> list[list[Node]]:
    """Return C of the Christoffel symbols [Echeandia2021]."""
    n, zero = len(x.q), x.graph.zero
    C = [[zero] * n for _ in range(n)]
    derivatives: list[dict[int, Twist]] = []
    for i in range(x.nodes):
        p, (R, r) = int(x.tree.parent[i]), x.poses[i]
        wj, vj = x.rates(i, x.v)
        rate: dict[int, Twist] = {}
        for d, (w, u) in x.columns[i].items():
            if p < 0 or d not in derivatives[p]:
                rate[d] = (x.zero, x.zero)
                continue
            wd, ld = derivatives[p][d]
            ld = plus(ld, cross(wd, r))
            rate[d] = (plus(back(R, wd), cross(w, wj)), plus(back(R, ld), plus(cross(w, vj), cross(u, wj))))
        derivatives.append(rate)
        phi = bodies[i]
        if phi is None:
            continue
        om, nu = x.velocities[i]
        n0, f0 = momentum(phi, om, nu)
        for e, (w, u) in x.columns[i].items():
            n1, f1 = momentum(phi, w, u)
            n2, f2 = momentum(phi, cross(om, w), plus(cross(om, u), cross(nu, w)))
            n3, f3 = momentum(phi, *rate[e])
            moment = plus(plus(n2, plus(cross(om, n1), cross(nu, f1))), plus(cross(w, n0), cross(u, f0)))
            force = plus(f2, plus(cross(om, f1), cross(w, f0)))
            moment, force = plus(n3, scale(moment, 0.5)), plus(f3, scale(force, 0.5))
            for d, (cw, cu) in x.columns[i].items():
                C[d][e] = C[d][e] + (dot(cw, moment) + dot(cu, force))
    return C


def energies(x: TreeState, bodies: Sequence[Inertia | None]) -> tuple[Node, Node]:
    """Return kinetic energy sum m v.v/2 + h.(v x w) + w.I w/2 and potential energy -sum g.(m p + R h)."""
    kinetic = potential = x.graph.zero
    for i, phi in enumerate(bodies):
        if phi is None:
            continue
        w, u = x.velocities[i]
        n, f = momentum(phi, w, u)
        kinetic = kinetic + 0.5 * (dot(w, n) + dot(u, f))
        R, p = x.world(i)
        place = plus(scale(p, phi[0]), times(R, (phi[1], phi[2], phi[3])))
        potential = potential - dot(x.gravity, place)
    return kinetic, potential


def ball_joints(mechanism: Mechanism) -> list[tuple[bool, int]]:
    """Return (is free, index of its first position) of every spherical and free joint; with loops, a tree position."""
    arrays, names = mechanism.tree.arrays, mechanism.tree.coordinates
    found = []
    for kind, d in zip(arrays.kind, arrays.dof, strict=True):
        if int(kind) in (SPHERICAL, FREE):
            first = int(d) if mechanism.loops else mechanism.coordinate_names.index(names[int(d)])
            found.append((int(kind) == FREE, first))
    return found


def position_rates(mechanism: Mechanism, q: Sequence[Node], rates: Sequence[Node]) -> list[Node]:
    """Return the rates of positions from velocities; those of spherical and free joints are quasi-velocities.

    dr/dt = Jr(r)^-1 w with Jr^-1 = 1 + [r]x / 2 + (1/t^2 - cot(t/2) / (2 t)) [r]x^2, t = |r|, and dp/dt = exp([r]x) v.
    """
    out = list(rates)
    for free, first in ball_joints(mechanism):
        turn = first + 3 if free else first
        r, w = (q[turn], q[turn + 1], q[turn + 2]), (out[turn], out[turn + 1], out[turn + 2])
        square = dot(r, r)
        f, g = square.graph.call("sinc", square), square.graph.cosc(square)
        near = square < 1e-4
        e = where(near, 1.0 / 12.0 + square / 720.0, (1.0 - 0.5 * f / g) / where(near, 1.0, square))
        once = cross(r, w)
        out[turn : turn + 3] = plus(w, plus(scale(once, 0.5), scale(cross(r, once), e)))
        if free:
            x = (out[first], out[first + 1], out[first + 2])
            once = cross(r, x)
            out[first : first + 3] = plus(x, plus(scale(once, f), scale(cross(r, once), g)))
    return out


class MovingTree:
    """The tree of one robot in one state, with its links; every quantity is computed on first use."""

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
        """Ratio of the smallest to the largest pivot of the closure, 1 without loops; near zero at a singularity."""
        return self._closed[2] if self.mechanism.loops else self.graph.one

    @property
    def branch(self) -> Node:
        """Sign of the determinant of the closure: each sign belongs to other assembly modes of the robot."""
        return self._closed[3]

    @property
    def correction(self) -> list[Node]:
        """Step of Newton's method that closes the loops by moving the dependent coordinates, (n_tree,)."""
        return self._closed[4]

    @cached_property
    def _closed(self) -> tuple[NodeRows, list[Node], Node, Node, list[Node], list[Node]]:
        """G, b, pivot ratio, branch, correction and G nu of a robot with loops."""
        graph, closure = self.graph, self.mechanism.closure
        free, bound = [int(i) for i in closure.independent], [int(i) for i in closure.dependent]
        loops = self.loops(closure.selected)
        J = loops.jacobian
        block, driven = [[row[i] for i in bound] for row in J], [[-row[i] for i in free] for row in J]
        right = [[*row, dot(row, self.v), -phi] for row, phi in zip(driven, loops.residuals, strict=True)]
        projector, pivot, branch = eliminate(block, right)
        G: NodeRows = [[graph.zero] * len(free) for _ in self.x]
        gap, rates, b = ([graph.zero] * len(self.x) for _ in range(3))
        for k, i in enumerate(free):
            G[i][k], rates[i] = graph.one, self.v[k]
        for i, (*row, rate, step) in zip(bound, projector, strict=True):
            G[i], rates[i], gap[i] = row, rate, step
        # The bias needs velocities that satisfy the closure; the same elimination is repeated with the bias on the right.
        moving = self._tree_state(self.x, rates, [graph.zero] * len(self.x), self.geometry.gravity)
        biases = [[x] for x in LoopEquations(moving, closure.selected).biases]
        for i, (bias,) in zip(bound, eliminate(block, biases)[0], strict=True):
            b[i] = bias
        return G, b, pivot, branch, gap, rates

    def loops(self, equations: LoopArrays) -> LoopEquations:
        """Return closure equations at the positions alone, velocities zero."""
        still = [self.graph.zero] * len(self.x)
        return LoopEquations(self._tree_state(self.x, still, still, None), equations)

    @cached_property
    def tree_v(self) -> list[Node]:
        """Velocities of all tree coordinates."""
        if self.mechanism.loops:
            return self._closed[5]
        return self.v if self.G is None else [dot(row, self.v) for row in self.G]

    @cached_property
    def tree_a(self) -> list[Node]:
        """Accelerations of all tree coordinates."""
        if self.G is None:
            return self.a
        return [dot(row, self.a) + b for row, b in zip(self.G, self.bias, strict=True)]

    def _tree_state(self, q: Sequence[Node], v: Sequence[Node], a: Sequence[Node], down: Vector | None) -> TreeState:
        return TreeState(self.graph, self.mechanism.tree.arrays, self.geometry, q, v, a, down)

    @cached_property
    def state(self) -> TreeState:
        """The tree in motion, with gravity."""
        return self._tree_state(self.tree_q, self.tree_v, self.tree_a, self.geometry.gravity)

    @cached_property
    def free_motion(self) -> TreeState:
        """The tree in motion, without gravity."""
        return self._tree_state(self.tree_q, self.tree_v, self.tree_a, None)

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
    """Return the number of positions in the equations: all tree coordinates if these are found by iteration."""
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
            f"coupling of joint '{coupling.joint}' cannot be differentiated ({error}); use only + - * / **, sin, cos, tan, "
            "sqrt, exp, tanh and arctan2 of NumPy"
        ) from error
