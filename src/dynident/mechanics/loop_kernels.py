"""Compiled loop closure: positions by Newton with continuation, then G and the velocity bias, one sample after the other.

    Phi(q_t) = 0,    J_d dq_d + J_i dq_i = 0   =>   v_t = G nu,   G = [1; -J_d^-1 J_i]
    a_t = G nu_dot + b,   b_d = -J_d^-1 Jdot v_t

Samples are sequential because the branch is followed by continuity: every sample starts from the one before. Twists are
taken at the base origin and in base axes: a point x of a body moves with l_d + w_d x x for coordinate d.
"""

from __future__ import annotations

from math import cos, sin, sqrt

import numpy as np

from dynident.mechanics.kernels import cross, dot, kernel
from dynident.mechanics.matrix_kernels import pose
from dynident.mechanics.solve_kernels import factorise, substitute
from dynident.mechanism.loops import DOT, LINEAR, POINT, SLIDE
from dynident.mechanism.tree import FREE, PRISMATIC, REVOLUTE, SPHERICAL


@kernel
def coordinates_of(kind):
    """Return how many coordinates a node of this kind has."""
    return 1 if kind < SPHERICAL else (3 if kind == SPHERICAL else (6 if kind == FREE else 0))


@kernel
def revolute_frame(tree, i, m, c, s, R, p):
    """Write orientation and origin of revolute node i, whose parent is node m: R_i = R_m (T0 + c T1 + s T2)."""
    x, y, z = tree.translation[i, 0], tree.translation[i, 1], tree.translation[i, 2]
    a, b, d = R[m, 0, 0], R[m, 0, 1], R[m, 0, 2]
    e, f, g = R[m, 1, 0], R[m, 1, 1], R[m, 1, 2]
    h, k, n = R[m, 2, 0], R[m, 2, 1], R[m, 2, 2]
    p[i, 0] = p[m, 0] + a * x + b * y + d * z
    p[i, 1] = p[m, 1] + e * x + f * y + g * z
    p[i, 2] = p[m, 2] + h * x + k * y + n * z
    for col in range(3):
        u = tree.turn[i, 0, 0, col] + c * tree.turn[i, 1, 0, col] + s * tree.turn[i, 2, 0, col]
        v = tree.turn[i, 0, 1, col] + c * tree.turn[i, 1, 1, col] + s * tree.turn[i, 2, 1, col]
        w = tree.turn[i, 0, 2, col] + c * tree.turn[i, 1, 2, col] + s * tree.turn[i, 2, 2, col]
        R[i, 0, col] = a * u + b * v + d * w
        R[i, 1, col] = e * u + f * v + g * w
        R[i, 2, col] = h * u + k * v + n * w


@kernel
def world_frames(tree, q, R, p, rel, r3):
    """Write orientation R (k, 3, 3) and origin p (k, 3) of every node in the base frame."""
    for i in range(tree.parent.size):
        m = tree.parent[i]
        if tree.kind[i] == REVOLUTE and m >= 0:  # most joints: products in registers, nothing written in between
            revolute_frame(tree, i, m, cos(q[tree.dof[i]]), sin(q[tree.dof[i]]), R, p)
            continue
        pose(tree, i, q, rel, r3)
        for row in range(3):
            if m < 0:
                p[i, row] = r3[row]
                R[i, row, 0], R[i, row, 1], R[i, row, 2] = rel[row, 0], rel[row, 1], rel[row, 2]
            else:
                a, b, c = R[m, row, 0], R[m, row, 1], R[m, row, 2]
                p[i, row] = p[m, row] + a * r3[0] + b * r3[1] + c * r3[2]
                for col in range(3):
                    R[i, row, col] = a * rel[0, col] + b * rel[1, col] + c * rel[2, col]


@kernel
def turned(R, i, v):
    """Return R[i] v, or v itself for the base."""
    if i < 0:
        return (v[0], v[1], v[2])
    return (
        R[i, 0, 0] * v[0] + R[i, 0, 1] * v[1] + R[i, 0, 2] * v[2],
        R[i, 1, 0] * v[0] + R[i, 1, 1] * v[1] + R[i, 1, 2] * v[2],
        R[i, 2, 0] * v[0] + R[i, 2, 1] * v[1] + R[i, 2, 2] * v[2],
    )


@kernel
def placed(R, p, i, v):
    """Return p[i] + R[i] v, or v itself for the base."""
    x = turned(R, i, v)
    if i < 0:
        return x
    return (x[0] + p[i, 0], x[1] + p[i, 1], x[2] + p[i, 2])


@kernel
def minus(a, b):
    """Return a - b."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@kernel
def twists(tree, R, p, w, lin):
    """Write the twist (w, lin) (n, 3) of every coordinate, at the base origin and in base axes."""
    for i in range(tree.parent.size):
        kind, d = tree.kind[i], tree.dof[i]
        origin = (p[i, 0], p[i, 1], p[i, 2])
        count = coordinates_of(kind)
        for e in range(count):
            axis = turned(R, i, tree.axis[i]) if kind < SPHERICAL else (R[i, 0, e % 3], R[i, 1, e % 3], R[i, 2, e % 3])
            sliding = kind == PRISMATIC or (kind == FREE and e < 3)
            moment = cross(origin, axis)
            for k in range(3):
                w[d + e, k] = 0.0 if sliding else axis[k]
                lin[d + e, k] = axis[k] if sliding else moment[k]


@kernel
def equations(tree, loops, q, R, p, w, lin, phi, J):
    """Write residuals phi (m,) and Jacobian J (m, n)."""
    J[:, :] = 0.0
    for i in range(loops.kind.size):
        kind, a, b = loops.kind[i], loops.node_a[i], loops.node_b[i]
        if kind == LINEAR:
            phi[i] = -loops.offset[i]
            for d in range(q.size):
                J[i, d] = loops.linear[i, d]
                phi[i] += loops.linear[i, d] * q[d]
            continue
        xa, xb = placed(R, p, a, loops.point_a[i]), placed(R, p, b, loops.point_b[i])
        if kind == POINT:
            e = (loops.vector_b[i, 0], loops.vector_b[i, 1], loops.vector_b[i, 2])
            phi[i] = dot(e, minus(xa, xb))
            ma, mb = cross(xa, e), cross(xb, e)
            fa, fb = e, e
        elif kind == SLIDE:
            u = turned(R, a, loops.vector_a[i])
            phi[i] = dot(u, minus(xb, xa))
            # (w_a x u).(x_b - x_a) + u.(v_b - v_a), sorted by w_a, l_a, w_b, l_b
            ma = cross(u, xb)
            mb = ma
            fa = (-u[0], -u[1], -u[2])
            fb = fa
        else:
            u, e = turned(R, a, loops.vector_a[i]), turned(R, b, loops.vector_b[i])
            phi[i] = dot(u, e)
            ma = cross(u, e)
            mb = ma
            fa, fb = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        if a >= 0:
            for s in range(tree.support_count[a]):
                d = tree.support[a, s]
                J[i, d] += dot(ma, (w[d, 0], w[d, 1], w[d, 2])) + dot(fa, (lin[d, 0], lin[d, 1], lin[d, 2]))
        if b >= 0:
            for s in range(tree.support_count[b]):
                d = tree.support[b, s]
                J[i, d] -= dot(mb, (w[d, 0], w[d, 1], w[d, 2])) + dot(fb, (lin[d, 0], lin[d, 1], lin[d, 2]))


@kernel
def body_twists(tree, w, lin, v, T, A):
    """Write twist T (k, 6) and spatial acceleration A (k, 6) without joint accelerations, (angular, linear), of every node."""
    for i in range(tree.parent.size):
        p, kind, d = tree.parent[i], tree.kind[i], tree.dof[i]
        count = coordinates_of(kind)
        for k in range(6):
            T[i, k] = T[p, k] if p >= 0 else 0.0
            A[i, k] = A[p, k] if p >= 0 else 0.0
        for e in range(count):
            for k in range(3):
                T[i, k] += w[d + e, k] * v[d + e]
                T[i, 3 + k] += lin[d + e, k] * v[d + e]
        om, li = (T[i, 0], T[i, 1], T[i, 2]), (T[i, 3], T[i, 4], T[i, 5])
        for e in range(count):
            wd, ld = (w[d + e, 0], w[d + e, 1], w[d + e, 2]), (lin[d + e, 0], lin[d + e, 1], lin[d + e, 2])
            turn, slide, lever = cross(om, wd), cross(om, ld), cross(li, wd)
            for k in range(3):
                A[i, k] += turn[k] * v[d + e]
                A[i, 3 + k] += (slide[k] + lever[k]) * v[d + e]


@kernel
def point_motion(T, A, i, x):
    """Return velocity and classical acceleration of the point x of node i."""
    if i < 0:
        return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    om, al = (T[i, 0], T[i, 1], T[i, 2]), (A[i, 0], A[i, 1], A[i, 2])
    c = cross(om, x)
    v = (T[i, 3] + c[0], T[i, 4] + c[1], T[i, 5] + c[2])
    e, g = cross(al, x), cross(om, v)
    return v, (A[i, 3] + e[0] + g[0], A[i, 4] + e[1] + g[1], A[i, 5] + e[2] + g[2])


@kernel
def vector_motion(T, A, i, u):
    """Return first and second derivative of a vector u fixed in node i."""
    if i < 0:
        return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    om, al = (T[i, 0], T[i, 1], T[i, 2]), (A[i, 0], A[i, 1], A[i, 2])
    first = cross(om, u)
    e, g = cross(al, u), cross(om, first)
    return first, (e[0] + g[0], e[1] + g[1], e[2] + g[2])


@kernel
def biases(loops, R, p, T, A, out):
    """Write Jdot v of every equation: its second derivative without joint accelerations."""
    for i in range(loops.kind.size):
        kind, a, b = loops.kind[i], loops.node_a[i], loops.node_b[i]
        if kind == LINEAR:
            out[i] = 0.0
            continue
        xa, xb = placed(R, p, a, loops.point_a[i]), placed(R, p, b, loops.point_b[i])
        va, aa = point_motion(T, A, a, xa)
        vb, ab = point_motion(T, A, b, xb)
        if kind == POINT:
            e = (loops.vector_b[i, 0], loops.vector_b[i, 1], loops.vector_b[i, 2])
            out[i] = dot(e, minus(aa, ab))
            continue
        u = turned(R, a, loops.vector_a[i])
        u1, u2 = vector_motion(T, A, a, u)
        if kind == SLIDE:
            out[i] = dot(u2, minus(xb, xa)) + 2.0 * dot(u1, minus(vb, va)) + dot(u, minus(ab, aa))
        else:
            e = turned(R, b, loops.vector_b[i])
            e1, e2 = vector_motion(T, A, b, e)
            out[i] = dot(u2, e) + 2.0 * dot(u1, e1) + dot(u, e2)


@kernel
def to_coordinates(tree, q, J, rel, r3):
    """Turn the columns of J (m, n) from quasi-velocities of balls and free bodies to rates of their coordinates.

    w = Jr(r) dr/dt with Jr = 1 - (1 - cos t)/t^2 [r]x + (t - sin t)/t^3 [r]x^2, t = |r|, and v = exp([r]x)^T dp/dt.
    Newton steps move coordinates: with the other columns they would converge slowly, and stop too early.
    """
    for i in range(tree.parent.size):
        kind = tree.kind[i]
        if kind not in (SPHERICAL, FREE):
            continue
        d = tree.dof[i]
        if kind == FREE:
            pose(tree, i, q, rel, r3)
            P = tree.rotation[i]
            for row in range(J.shape[0]):
                a = (J[row, d], J[row, d + 1], J[row, d + 2])
                b = (
                    rel[0, 0] * a[0] + rel[0, 1] * a[1] + rel[0, 2] * a[2],
                    rel[1, 0] * a[0] + rel[1, 1] * a[1] + rel[1, 2] * a[2],
                    rel[2, 0] * a[0] + rel[2, 1] * a[1] + rel[2, 2] * a[2],
                )
                for k in range(3):
                    J[row, d + k] = P[0, k] * b[0] + P[1, k] * b[1] + P[2, k] * b[2]
            d += 3
        r = (q[d], q[d + 1], q[d + 2])
        square = dot(r, r)
        f, g = 0.5 - square / 24.0, 1.0 / 6.0 - square / 120.0
        if square > 1e-6:
            angle = sqrt(square)
            f, g = (1.0 - cos(angle)) / square, (angle - sin(angle)) / (square * angle)
        for row in range(J.shape[0]):
            a = (J[row, d], J[row, d + 1], J[row, d + 2])
            first = cross(a, r)  # a^T [r]x
            second = cross(first, r)
            for k in range(3):
                J[row, d + k] = a[k] - f * first[k] + g * second[k]


@kernel
def newton(tree, loops, dependent, q, R, p, rel, r3, w, lin, phi, J, D, swap, B, reach):
    """Close the loops by moving the dependent coordinates of q, by less than `reach`.

    Return the signed pivot ratio of the last step, 0 when they did not close.
    """
    n = dependent.size
    moved = 0.0
    for _ in range(20):
        world_frames(tree, q, R, p, rel, r3)
        twists(tree, R, p, w, lin)
        equations(tree, loops, q, R, p, w, lin, phi, J)
        to_coordinates(tree, q, J, rel, r3)
        for row in range(n):
            B[row, 0] = -phi[row]
            for c in range(n):
                D[row, c] = J[row, dependent[c]]
        ratio = factorise(D, swap, n)
        if ratio == 0.0:
            return 0.0
        substitute(D, swap, B, n, 1)
        step = 0.0
        for c in range(n):
            step = max(step, abs(B[c, 0]))
        moved += step
        if not moved < reach:
            return 0.0
        for c in range(n):
            q[dependent[c]] += B[c, 0]
        if step < 1e-7:  # quadratic convergence: the next step would be of order 1e-14
            return ratio
    return 0.0


@kernel
def close_positions(tree, loops, independent, dependent, given, start, reach, out):
    """Write the tree coordinates out (N, n) for given independent ones (N, r); return the first sample that fails, or -1.

    `start` (n,) is a closed configuration. Between two samples the independent coordinates are walked in halves as often
    as Newton would have to reach far, so that the branch cannot change unnoticed. The determinant of the dependent columns
    keeps its sign on a branch: where it changes, the motion has passed through a singularity, and which branch it took there
    is chance.
    """
    n, r, k = start.size, independent.size, tree.parent.size
    R, p, rel, r3 = np.empty((k, 3, 3)), np.empty((k, 3)), np.empty((3, 3)), np.empty(3)
    w, lin = np.empty((n, 3)), np.empty((n, 3))
    m = dependent.size
    phi, J, D, B = np.empty(m), np.empty((m, n)), np.empty((m, m)), np.empty((m, 1))
    swap = np.empty(m, np.int64)
    last, trial = start.copy(), start.copy()
    side = newton(tree, loops, dependent, trial, R, p, rel, r3, w, lin, phi, J, D, swap, B, reach)
    for s in range(given.shape[0]):
        done, share = 0.0, 1.0
        smooth = s >= 4  # four samples behind us predict the next one to fourth order
        while done < 1.0:
            target = min(1.0, done + share)
            for c in range(n):
                trial[c] = last[c]
                if smooth:
                    trial[c] = 4.0 * (out[s - 1, c] + out[s - 3, c]) - 6.0 * out[s - 2, c] - out[s - 4, c]
                    # A far prediction is none: it could lead to another branch.
                    smooth = abs(trial[c] - last[c]) < 0.2 * reach
            if not smooth:
                for c in range(n):
                    trial[c] = last[c]
            for c in range(r):
                i = independent[c]
                origin = start[i] if s == 0 else out[s - 1, i]
                trial[i] = given[s, c] if target == 1.0 else origin + target * (given[s, c] - origin)
            ratio = newton(tree, loops, dependent, trial, R, p, rel, r3, w, lin, phi, J, D, swap, B, reach)
            if ratio != 0.0 and ratio * side >= 0.0:
                side = ratio
                for c in range(n):
                    last[c] = trial[c]
                done = target
                share *= 2.0
            else:
                smooth = False
                share *= 0.5
                if share < 1e-4:
                    return s
        for c in range(n):
            out[s, c] = last[c]
    return -1


@kernel
def close_rates(tree, loops, independent, dependent, q, v, a, G, vt, at, pivot):
    """Write G (N, n, r), tree velocities and accelerations (N, n), and the pivot ratio (N,), at closed q (N, n)."""
    n, r, k = q.shape[1], independent.size, tree.parent.size
    R, p, rel, r3 = np.empty((k, 3, 3)), np.empty((k, 3)), np.empty((3, 3)), np.empty(3)
    w, lin, T, A = np.empty((n, 3)), np.empty((n, 3)), np.empty((k, 6)), np.empty((k, 6))
    m = dependent.size
    phi, J, D, B, bias = np.empty(m), np.empty((m, n)), np.empty((m, m)), np.empty((m, r + 1)), np.empty(m)
    swap = np.empty(m, np.int64)
    for s in range(q.shape[0]):
        world_frames(tree, q[s], R, p, rel, r3)
        twists(tree, R, p, w, lin)
        equations(tree, loops, q[s], R, p, w, lin, phi, J)
        for row in range(m):
            for c in range(m):
                D[row, c] = J[row, dependent[c]]
            for c in range(r):
                B[row, c] = -J[row, independent[c]]
        pivot[s] = abs(factorise(D, swap, m))
        substitute(D, swap, B, m, r)
        for c in range(r):
            for row in range(r):
                G[s, independent[row], c] = 1.0 if row == c else 0.0
            for row in range(m):
                G[s, dependent[row], c] = B[row, c]
        for d in range(n):
            vt[s, d] = 0.0
            at[s, d] = 0.0
            for c in range(r):
                vt[s, d] += G[s, d, c] * v[s, c]
                at[s, d] += G[s, d, c] * a[s, c]
        body_twists(tree, w, lin, vt[s], T, A)
        biases(loops, R, p, T, A, bias)
        for row in range(m):
            B[row, 0] = -bias[row]
        substitute(D, swap, B, m, 1)
        for row in range(m):
            at[s, dependent[row]] += B[row, 0]


@kernel
def gap(tree, loops, q):
    """Return the largest residual of all equations at one configuration q (n,)."""
    n, k = q.size, tree.parent.size
    R, p, rel, r3 = np.empty((k, 3, 3)), np.empty((k, 3)), np.empty((3, 3)), np.empty(3)
    w, lin, phi, J = np.empty((n, 3)), np.empty((n, 3)), np.zeros(loops.kind.size), np.empty((loops.kind.size, n))
    world_frames(tree, q, R, p, rel, r3)
    twists(tree, R, p, w, lin)
    equations(tree, loops, q, R, p, w, lin, phi, J)
    return np.max(np.abs(phi))


@kernel
def constraint_jacobians(tree, loops, q, out):
    """Write dPhi/dq (N, m, n) of all equations."""
    n, k = q.shape[1], tree.parent.size
    R, p, rel, r3 = np.empty((k, 3, 3)), np.empty((k, 3)), np.empty((3, 3)), np.empty(3)
    w, lin, phi = np.empty((n, 3)), np.empty((n, 3)), np.empty(loops.kind.size)
    for s in range(q.shape[0]):
        world_frames(tree, q[s], R, p, rel, r3)
        twists(tree, R, p, w, lin)
        equations(tree, loops, q[s], R, p, w, lin, phi, out[s])


@kernel
def row_wrenches(tree, loops, q, out):
    """Write (force, moment) on body a at its point, base axes, of a unit multiplier of every equation, out (N, m, 6)."""
    k = tree.parent.size
    R, p, rel, r3 = np.empty((k, 3, 3)), np.empty((k, 3)), np.empty((3, 3)), np.empty(3)
    for s in range(q.shape[0]):
        world_frames(tree, q[s], R, p, rel, r3)
        for i in range(loops.kind.size):
            kind, a, b = loops.kind[i], loops.node_a[i], loops.node_b[i]
            force, moment = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
            if kind == POINT:
                force = (loops.vector_b[i, 0], loops.vector_b[i, 1], loops.vector_b[i, 2])
            elif kind == SLIDE:
                u = turned(R, a, loops.vector_a[i])
                force = (-u[0], -u[1], -u[2])
                moment = cross(u, minus(placed(R, p, b, loops.point_b[i]), placed(R, p, a, loops.point_a[i])))
            elif kind == DOT:
                moment = cross(turned(R, a, loops.vector_a[i]), turned(R, b, loops.vector_b[i]))
            for c in range(3):
                out[s, i, c] = force[c]
                out[s, i, 3 + c] = moment[c]
