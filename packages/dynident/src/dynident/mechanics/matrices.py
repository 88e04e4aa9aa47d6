"""Mass and Coriolis matrix and energies of the tree, from one state of the recursion."""

from __future__ import annotations

from collections.abc import Sequence

from dynident.graph.expression import Node
from dynident.mechanics.bodies import Twist, momentum
from dynident.mechanics.recursion import Recursion
from dynident.mechanics.vectors import Inertia, back, cross, dot, moved, plus, scale, times
from dynident.mechanism.tree import NODE_DOF


def mass_matrix(x: Recursion, bodies: Sequence[Inertia | None]) -> list[list[Node]]:
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


def coriolis_matrix(x: Recursion, bodies: Sequence[Inertia | None]) -> list[list[Node]]:
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


def energies(x: Recursion, bodies: Sequence[Inertia | None]) -> tuple[Node, Node]:
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
