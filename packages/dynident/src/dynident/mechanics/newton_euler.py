"""Newton and Euler on the tree: wrenches and momentum of its bodies, torques, regressor, mass and Coriolis matrix, energies.

With S = [alpha]x + [omega]x^2, computed once and shared by everything that uses it,

    f = m a + S h,                                        a_child = R^T (a + S r)
    n = h x a + column by column of the inertia tensor,   written with the entries of S:
        n_x = Ixx al_x - Ixy S_zx + Ixz S_yx + (Izz - Iyy) w_y w_z + Iyz (w_y^2 - w_z^2),   and so on cyclically.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np

from dynident.arrays import Array
from dynident.graph.expression import Function, Graph, Node, total
from dynident.graph.print_python import numpy_callable
from dynident.graph.vectors import Vector, back, cross, dot, matrix, plus, scale, times, vector
from dynident.mechanism.inertia import Inertia, moved, tensor
from dynident.mechanism.tree import NODE_DOF, TreeState, Twist, spin


def body_wrench(phi: Inertia, w: Vector, al: Vector, ac: Vector) -> Twist:
    """Return moment and force that move a body, at its origin and in its frame."""
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
    """Return the wrench that the joint of every node puts on it, at the node's origin and in its axes.

    `external` are wrenches from outside on nodes, at their origins and in their axes.
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
