"""Compiled loops for poses, body motions, Jacobians, mass and Coriolis matrices, with the lanes of `kernels`.

    M = sum_i J_i^T M_i J_i                                   M_i (w, l) = (n, f),  f = m l + w x h,  n = h x l + I w
    C = sum_i J_i^T (M_i Jdot_i + B_i J_i)                    B_i = (M_i v_i x + v_i x* M_i + (M_i v_i) xbar*) / 2

B_i is skew-symmetric, hence so is Mdot - 2 C, and C is the one of the Christoffel symbols (Echeandia, Wensing 2021).
"""

from __future__ import annotations

from math import cos, sin, sqrt

import numpy as np

from dynident.mechanics.kernels import (
    LANES,
    ROW0,
    ROW1,
    ROW3,
    ROW6,
    add,
    at,
    cross,
    dot,
    gather,
    inertia_times,
    jacobian_columns,
    kernel,
    load,
    move,
    place,
    rates,
    rotate_back,
    scale,
    store,
)
from dynident.mechanism.tree import FREE, PRISMATIC, REVOLUTE, SPHERICAL


@kernel
def body_motions(tree, q, v, a, orientation, position, velocity, acceleration):
    """Write, per node: pose in the base frame (N, k, 3, 3), (N, k, 3); (v, omega) and (a, alpha) in the node frame (N, k, 6).

    `a` is the classical acceleration of the node's origin, gravity not included when `tree.gravity` is zero.
    """
    n, nodes = q.shape[1], tree.parent.size
    Q, V, A = np.empty(n * LANES), np.empty(n * LANES), np.empty(n * LANES)
    R, r = np.empty(nodes * 9 * LANES), np.empty(nodes * 3 * LANES)
    kin, lin = np.empty(nodes * 9 * LANES), np.empty(nodes * 3 * LANES)
    for s in range(0, q.shape[0], LANES):
        gather(q, s, Q)
        gather(v, s, V)
        gather(a, s, A)
        valid = min(LANES, q.shape[0] - s)
        for i in range(nodes):
            place(tree, i, Q, R, r)
            move(tree, i, V, A, R, r, kin)
            p = tree.parent[i]
            for k in range(ROW1):
                u = (0.0, 0.0, 0.0)
                if p >= 0:
                    u = add(load(lin, at(p, 3), k), cross(load(kin, at(p, 9), k), load(r, at(i, 3), k)))
                store(lin, at(i, 3), k, add(rotate_back(R, at(i, 9), k, u), rates(tree, i, V, k)[1]))
            for k in range(valid):
                for c in range(3):
                    velocity[s + k, i, c] = lin[(i * 3 + c) * LANES + k]
                    velocity[s + k, i, 3 + c] = kin[(i * 9 + c) * LANES + k]
                    acceleration[s + k, i, c] = kin[(i * 9 + 6 + c) * LANES + k]
                    acceleration[s + k, i, 3 + c] = kin[(i * 9 + 3 + c) * LANES + k]
                world_pose(p, i, s, k, R, r, orientation, position)


@kernel
def pose(tree, i, q, R, r):
    """Write node i's orientation R (3, 3) and origin r (3,) in its parent's frame."""
    kind, d = tree.kind[i], tree.dof[i]
    P, u = tree.rotation[i], tree.axis[i]
    for row in range(3):
        r[row] = tree.translation[i, row]
    if kind == REVOLUTE:
        c, s = cos(q[d]), sin(q[d])
        for row in range(3):
            for col in range(3):  # written out: an array expression would allocate
                R[row, col] = tree.turn[i, 0, row, col] + c * tree.turn[i, 1, row, col] + s * tree.turn[i, 2, row, col]
        return
    for row in range(3):
        for col in range(3):
            R[row, col] = P[row, col]
    if kind in (PRISMATIC, FREE):
        for row in range(3):
            for e in range(3):
                r[row] += P[row, e] * (u[e] * q[d] if kind == PRISMATIC else q[d + e])
    if kind in (SPHERICAL, FREE):
        o = d if kind == SPHERICAL else d + 3
        x, y, z = q[o], q[o + 1], q[o + 2]
        square = x * x + y * y + z * z
        f, g = 1.0 - square / 6.0, 0.5 - square / 24.0
        if square > 1e-12:
            angle = sqrt(square)
            f, g = sin(angle) / angle, (1.0 - cos(angle)) / square
        c = 1.0 - g * square
        for row in range(3):
            a, b, t = P[row, 0], P[row, 1], P[row, 2]
            along = g * (a * x + b * y + t * z)
            R[row, 0] = c * a + f * (b * z - t * y) + along * x
            R[row, 1] = c * b + f * (t * x - a * z) + along * y
            R[row, 2] = c * t + f * (a * y - b * x) + along * z


@kernel
def world_pose(p, i, s, k, R, r, orientation, position):
    """Write node i's pose in the base frame from its parent's."""
    for row in range(3):
        origin = r[(i * 3 + row) * LANES + k]
        if p >= 0:
            origin = position[s + k, p, row]
            for e in range(3):
                origin += orientation[s + k, p, row, e] * r[(i * 3 + e) * LANES + k]
        position[s + k, i, row] = origin
        for col in range(3):
            value = R[(i * 9 + row * 3 + col) * LANES + k]
            if p >= 0:
                value = 0.0
                for e in range(3):
                    value += orientation[s + k, p, row, e] * R[(i * 9 + e * 3 + col) * LANES + k]
            orientation[s + k, i, row, col] = value


@kernel
def jacobians(tree, q, out):
    """Write the Jacobian of every node, out (N, k, 6, n), (linear, angular) in the node frame; zeros are left untouched."""
    n, nodes = q.shape[1], tree.parent.size
    Q = np.empty(n * LANES)
    R, r, J = np.empty(nodes * 9 * LANES), np.empty(nodes * 3 * LANES), np.empty(nodes * n * 6 * LANES)
    for s in range(0, q.shape[0], LANES):
        gather(q, s, Q)
        for i in range(nodes):
            place(tree, i, Q, R, r)
            jacobian_columns(tree, i, n, R, r, J)
            for j in range(tree.support_count[i]):
                d = tree.support[i, j]
                for k in range(min(LANES, q.shape[0] - s)):
                    for c in range(6):
                        out[s + k, i, (c + 3) % 6, d] = J[((i * n + d) * 6 + c) * LANES + k]


@kernel
def momentum(phi, c, w, lin):
    """Return (n, f) = M_i (w, l)."""
    h = (phi[c + 1], phi[c + 2], phi[c + 3])
    return add(cross(h, lin), inertia_times(phi, c, w)), add(scale(lin, phi[c]), cross(w, h))


@kernel
def project(tree, i, n, e, J, H, triangle, M):
    """Add J_d . H to M[d, e] for the coordinates d that move node i (d up to e only when `triangle`)."""
    for j in range(tree.support_count[i]):
        d = tree.support[i, j]
        b, m = at(i * n + d, 6), at(d * n + e, 1)
        for k in range(ROW1):
            M[m + k] += dot(load(J, b, k), load(H, ROW0, k)) + dot(load(J, b + ROW3, k), load(H, ROW3, k))
        if triangle and d == e:
            return


@kernel
def mass_matrix(tree, phi, q, out):
    """Write M (N, n, n)."""
    n, nodes = q.shape[1], tree.parent.size
    Q = np.empty(n * LANES)
    R, r, J = np.empty(nodes * 9 * LANES), np.empty(nodes * 3 * LANES), np.empty(nodes * n * 6 * LANES)
    H, M = np.empty(6 * LANES), np.empty(n * n * LANES)
    for s in range(0, q.shape[0], LANES):
        gather(q, s, Q)
        M[:] = 0.0
        for i in range(nodes):
            place(tree, i, Q, R, r)
            jacobian_columns(tree, i, n, R, r, J)
            c = tree.column[i]
            if c < 0:
                continue
            for j in range(tree.support_count[i]):
                e = tree.support[i, j]
                b = at(i * n + e, 6)
                for k in range(ROW1):
                    moment, force = momentum(phi, c, load(J, b, k), load(J, b + ROW3, k))
                    store(H, ROW0, k, moment)
                    store(H, ROW3, k, force)
                project(tree, i, n, e, J, H, True, M)
        for k in range(min(LANES, q.shape[0] - s)):
            for d in range(n):
                for e in range(n):  # supports run from the base outward, so exactly one of (d, e), (e, d) was filled
                    both = M[(d * n + e) * LANES + k] + M[(e * n + d) * LANES + k]
                    out[s + k, d, e] = M[(d * n + d) * LANES + k] if d == e else both


@kernel
def jacobian_rates(tree, i, n, V, R, r, J, D):
    """Write D[i, d] = d/dt J[i, d] in the node frame, from the parent's."""
    p = tree.parent[i]
    o, rb = at(i, 9), at(i, 3)
    for s in range(tree.support_count[i]):
        d = tree.support[i, s]
        b = at(i * n + d, 6)
        inherited = p >= 0 and s < tree.support_count[p]
        m = at(p * n + d, 6) if inherited else b
        for k in range(ROW1):
            if not inherited:
                store(D, b, k, (0.0, 0.0, 0.0))
                store(D, b + ROW3, k, (0.0, 0.0, 0.0))
                continue
            wj, vj = rates(tree, i, V, k)
            spin = scale(wj, -1.0)
            w, lin = load(J, b, k), load(J, b + ROW3, k)
            wd = load(D, m, k)
            ld = add(load(D, m + ROW3, k), cross(wd, load(r, rb, k)))
            store(D, b, k, add(rotate_back(R, o, k, wd), cross(spin, w)))
            store(D, b + ROW3, k, add(rotate_back(R, o, k, ld), add(cross(w, vj), cross(spin, lin))))


@kernel
def body_velocity(tree, i, n, V, J, vel):
    """Write (omega, v) of node i: J_i times the velocities."""
    for k in range(ROW6):
        vel[k] = 0.0
    for j in range(tree.support_count[i]):
        d = tree.support[i, j]
        b, x = at(i * n + d, 6), at(d, 1)
        for k in range(ROW1):
            store(vel, ROW0, k, add(load(vel, ROW0, k), scale(load(J, b, k), V[x + k])))
            store(vel, ROW3, k, add(load(vel, ROW3, k), scale(load(J, b + ROW3, k), V[x + k])))


@kernel
def coriolis_matrix(tree, phi, q, v, out):
    """Write C (N, n, n) of the Christoffel symbols."""
    n, nodes = q.shape[1], tree.parent.size
    Q, V, vel = np.empty(n * LANES), np.empty(n * LANES), np.empty(6 * LANES)
    R, r, H = np.empty(nodes * 9 * LANES), np.empty(nodes * 3 * LANES), np.empty(6 * LANES)
    J, D, C = np.empty(nodes * n * 6 * LANES), np.empty(nodes * n * 6 * LANES), np.empty(n * n * LANES)
    for s in range(0, q.shape[0], LANES):
        gather(q, s, Q)
        gather(v, s, V)
        C[:] = 0.0
        for i in range(nodes):
            place(tree, i, Q, R, r)
            jacobian_columns(tree, i, n, R, r, J)
            jacobian_rates(tree, i, n, V, R, r, J, D)
            c = tree.column[i]
            if c < 0:
                continue
            body_velocity(tree, i, n, V, J, vel)
            for j in range(tree.support_count[i]):
                e = tree.support[i, j]
                b = at(i * n + e, 6)
                for k in range(ROW1):
                    w, lin = load(J, b, k), load(J, b + ROW3, k)
                    om, nu = load(vel, ROW0, k), load(vel, ROW3, k)
                    n0, f0 = momentum(phi, c, om, nu)
                    n1, f1 = momentum(phi, c, w, lin)
                    n2, f2 = momentum(phi, c, cross(om, w), add(cross(om, lin), cross(nu, w)))
                    n3, f3 = momentum(phi, c, load(D, b, k), load(D, b + ROW3, k))
                    moment = add(add(n2, add(cross(om, n1), cross(nu, f1))), add(cross(w, n0), cross(lin, f0)))
                    force = add(f2, add(cross(om, f1), cross(w, f0)))
                    store(H, ROW0, k, add(n3, scale(moment, 0.5)))
                    store(H, ROW3, k, add(f3, scale(force, 0.5)))
                project(tree, i, n, e, J, H, False, C)
        for k in range(min(LANES, q.shape[0] - s)):
            for d in range(n):
                for e in range(n):
                    out[s + k, d, e] = C[(d * n + e) * LANES + k]


@kernel
def to_links(T, Y):
    """Overwrite the inertial columns of Y (N, n, p) by Y T, T block-diagonal: parameters in link instead of node frames."""
    z = np.empty(10)
    for s in range(Y.shape[0]):
        for d in range(Y.shape[1]):
            for c in range(0, T.shape[0], 10):
                z[:] = 0.0
                for i in range(10):
                    y = Y[s, d, c + i]
                    if y != 0.0:  # most blocks are empty: a joint moves only the bodies behind it
                        for e in range(10):
                            z[e] += y * T[c + i, c + e]
                for e in range(10):
                    Y[s, d, c + e] = z[e]


@kernel
def to_links_rows(T, W):
    """Overwrite the inertial rows of W (n, p, N) by T^T W, as `to_links`."""
    samples = W.shape[2]
    x = np.empty((10, samples))
    for d in range(W.shape[0]):
        for c in range(0, T.shape[0], 10):
            for e in range(10):
                for s in range(samples):
                    x[e, s] = W[d, c + e, s]
                    W[d, c + e, s] = 0.0
            for i in range(10):
                for e in range(10):
                    t = T[c + i, c + e]
                    if t != 0.0:
                        for s in range(samples):
                            W[d, c + e, s] += x[i, s] * t


@kernel
def project_rows(G, W, out):
    """Write G^T W of every sample, samples last: out (n, p, N) from G (k, n, N) and W (k, p, N).

    Most rows of a tree regressor are zero, since a joint does not feel the bodies that it does not carry.
    """
    out[:, :, :] = 0.0
    for i in range(W.shape[0]):
        for c in range(W.shape[1]):
            row = W[i, c]
            first = 0
            while first < row.size and row[first] == 0.0:
                first += 1
            if first == row.size:
                continue
            for j in range(G.shape[1]):
                g, y = G[i, j], out[j, c]
                for s in range(first, row.size):
                    y[s] += g[s] * row[s]
