"""Compiled forward dynamics: the articulated-body algorithm, one sample after the other, O(n).

Spatial vectors are (angular, linear) in node frames (Featherstone 2008, chapter 7). Samples are not taken in lanes here:
simulation calls this with one sample at a time.
"""

from __future__ import annotations

from math import cos, sin, sqrt

import numpy as np

from dynident.mechanics.kernels import kernel
from dynident.mechanism.tree import FIXED, FREE, PRISMATIC, REVOLUTE, SPHERICAL


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
def motion_transform(R, r, X):
    """Write X (6, 6) that takes a motion vector from the parent's frame to the child's: (R^T w, R^T (l + w x r))."""
    for row in range(3):
        for col in range(3):
            X[row, col] = X[row + 3, col + 3] = R[col, row]
            X[row, col + 3] = 0.0
        X[row + 3, 0] = R[1, row] * -r[2] + R[2, row] * r[1]
        X[row + 3, 1] = R[2, row] * -r[0] + R[0, row] * r[2]
        X[row + 3, 2] = R[0, row] * -r[1] + R[1, row] * r[0]


@kernel
def subspace(tree, i, S):
    """Write the motion subspace S (6, 6), first `count` columns used; return count."""
    kind = tree.kind[i]
    S[:, :] = 0.0
    if kind == REVOLUTE:
        S[:3, 0] = tree.axis[i]
        return 1
    if kind == PRISMATIC:
        S[3:, 0] = tree.axis[i]
        return 1
    if kind == FIXED:
        return 0
    for e in range(3):
        if kind == FREE:
            S[3 + e, e] = 1.0
            S[e, 3 + e] = 1.0
        else:
            S[e, e] = 1.0
    return 6 if kind == FREE else 3


@kernel
def spatial_inertia(phi, c, M):
    """Write the spatial inertia (6, 6) of the ten parameters at phi[c]."""
    M[:, :] = 0.0
    if c < 0:
        return
    m, x, y, z = phi[c], phi[c + 1], phi[c + 2], phi[c + 3]
    M[0, 0], M[0, 1], M[0, 2] = phi[c + 4], phi[c + 5], phi[c + 6]
    M[1, 0], M[1, 1], M[1, 2] = phi[c + 5], phi[c + 7], phi[c + 8]
    M[2, 0], M[2, 1], M[2, 2] = phi[c + 6], phi[c + 8], phi[c + 9]
    M[3, 3] = M[4, 4] = M[5, 5] = m
    M[0, 4], M[0, 5], M[1, 3], M[1, 5], M[2, 3], M[2, 4] = -z, y, z, -x, -y, x
    M[4, 0], M[5, 0], M[3, 1], M[5, 1], M[3, 2], M[4, 2] = -z, y, z, -x, -y, x


@kernel
def cross_motion(v, x, out):
    """Write v x x of motion vectors."""
    for k in range(3):
        a, b = (k + 1) % 3, (k + 2) % 3
        out[k] = v[a] * x[b] - v[b] * x[a]
        out[k + 3] = v[a] * x[b + 3] - v[b] * x[a + 3] + v[a + 3] * x[b] - v[b + 3] * x[a]


@kernel
def cross_force(v, f, out):
    """Write v x* f of a motion and a force vector (moment, force)."""
    for k in range(3):
        a, b = (k + 1) % 3, (k + 2) % 3
        out[k] = v[a] * f[b] - v[b] * f[a] + v[a + 3] * f[b + 3] - v[b + 3] * f[a + 3]
        out[k + 3] = v[a] * f[b + 3] - v[b] * f[a + 3]


@kernel
def solve(D, B, count, width, smallest):
    """Overwrite B (count, width) with D^-1 B, Gaussian elimination with row pivoting; False when a pivot is too small."""
    for c in range(count):
        pivot = c
        for e in range(c + 1, count):
            if abs(D[e, c]) > abs(D[pivot, c]):
                pivot = e
        if not abs(D[pivot, c]) > smallest:
            return False
        for e in range(count):
            D[c, e], D[pivot, e] = D[pivot, e], D[c, e]
        for e in range(width):
            B[c, e], B[pivot, e] = B[pivot, e], B[c, e]
        for row in range(count):
            if row != c:
                f = D[row, c] / D[c, c]
                for e in range(c, count):
                    D[row, e] -= f * D[c, e]
                for e in range(width):
                    B[row, e] -= f * B[c, e]
    for c in range(count):
        for e in range(width):
            B[c, e] /= D[c, c]
    return True


@kernel
def body_size(phi, c, size):
    """Write |m|, |h| and the trace of |I| of the ten parameters at phi[c]; rotations do not change their meaning."""
    size[:] = 0.0
    if c >= 0:
        size[0] = abs(phi[c])
        size[1] = sqrt(phi[c + 1] ** 2 + phi[c + 2] ** 2 + phi[c + 3] ** 2)
        size[2] = abs(phi[c + 4]) + abs(phi[c + 7]) + abs(phi[c + 9])


@kernel
def add_size(child, arm, size):
    """Add to `size` a bound of what the child's bodies have in the parent's frame, an `arm` away (Steiner)."""
    size[0] += child[0]
    size[1] += child[1] + child[0] * arm
    size[2] += child[2] + 4.0 * child[1] * arm + 2.0 * child[0] * arm * arm


@kernel
def forward_dynamics(tree, phi, rotor, q, v, tau, singular, out):
    """Write accelerations (N, n) from torques; return the first sample with a singular joint inertia, or -1.

    `rotor` (n,) is added to the joint inertia of each coordinate. A joint inertia is singular when it is smaller than
    `singular` times the inertia of all bodies it carries: then only rounding errors are left of it.
    """
    k = tree.parent.size
    R, r = np.empty((3, 3)), np.empty(3)
    X, S, IA = np.empty((k, 6, 6)), np.empty((k, 6, 6)), np.empty((k, 6, 6))
    U, W = np.empty((k, 6, 6)), np.empty((k, 6, 7))
    vel, bias, pA, acc = np.empty((k, 6)), np.empty((k, 6)), np.empty((k, 6)), np.empty((k, 6))
    D, Ia, x6, y6 = np.empty((6, 6)), np.empty((6, 6)), np.empty(6), np.empty(6)
    count, arm, size = np.empty(k, dtype=np.int64), np.empty(k), np.empty((k, 3))
    for s in range(q.shape[0]):
        for i in range(k):
            pose(tree, i, q[s], R, r)
            motion_transform(R, r, X[i])
            arm[i] = sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2])
            body_size(phi, tree.column[i], size[i])
            count[i] = subspace(tree, i, S[i])
            p, d = tree.parent[i], tree.dof[i]
            for row in range(6):
                joint = 0.0
                for e in range(count[i]):
                    joint += S[i, row, e] * v[s, d + e]
                x6[row] = joint
                vel[i, row] = joint
                if p >= 0:
                    for e in range(6):
                        vel[i, row] += X[i, row, e] * vel[p, e]
            cross_motion(vel[i], x6, bias[i])
            spatial_inertia(phi, tree.column[i], IA[i])
            for row in range(6):
                y6[row] = 0.0
                for e in range(6):
                    y6[row] += IA[i, row, e] * vel[i, e]
            cross_force(vel[i], y6, pA[i])
        for i in range(k - 1, -1, -1):
            p, d, c = tree.parent[i], tree.dof[i], count[i]
            for e in range(c):
                for row in range(6):
                    U[i, row, e] = 0.0
                    for g in range(6):
                        U[i, row, e] += IA[i, row, g] * S[i, g, e]
            for e in range(c):  # W = D^-1 [U^T, u] with D = S^T U + rotor, u = tau - S^T pA
                for g in range(c):
                    D[e, g] = rotor[d + e] if e == g else 0.0
                    for row in range(6):
                        D[e, g] += S[i, row, e] * U[i, row, g]
                W[i, e, 6] = tau[s, d + e]
                for row in range(6):
                    W[i, e, row] = U[i, row, e]
                    W[i, e, 6] -= S[i, row, e] * pA[i, row]
            kind = tree.kind[i]
            least = size[i, 2] if kind in (REVOLUTE, SPHERICAL) else size[i, 0]
            least = min(size[i, 0], size[i, 2]) if kind == FREE else least
            if not solve(D, W[i], c, 7, singular * least):
                return s
            if p < 0:
                continue
            add_size(size[i], arm[i], size[p])
            for row in range(6):
                y6[row] = pA[i, row]
                for g in range(6):
                    Ia[row, g] = IA[i, row, g]
                    for e in range(c):
                        Ia[row, g] -= U[i, row, e] * W[i, e, g]
                for e in range(c):
                    y6[row] += U[i, row, e] * W[i, e, 6]
            for row in range(6):
                for g in range(6):
                    y6[row] += Ia[row, g] * bias[i, g]
            for row in range(6):
                for g in range(6):
                    D[row, g] = 0.0
                    for e in range(6):
                        D[row, g] += Ia[row, e] * X[i, e, g]
            for row in range(6):
                for e in range(6):
                    pA[p, row] += X[i, e, row] * y6[e]
                    for g in range(6):
                        IA[p, row, g] += X[i, e, row] * D[e, g]
        for i in range(k):
            p, d, c = tree.parent[i], tree.dof[i], count[i]
            for row in range(6):
                acc[i, row] = bias[i, row]
                for e in range(6):
                    if p >= 0:
                        acc[i, row] += X[i, row, e] * acc[p, e]
                    elif e >= 3:  # the base accelerates upward instead of gravity pulling down
                        acc[i, row] -= X[i, row, e] * tree.gravity[e - 3]
            for e in range(c):
                value = W[i, e, 6]
                for row in range(6):
                    value -= W[i, e, row] * acc[i, row]
                out[s, d + e] = value
            for row in range(6):
                for e in range(c):
                    acc[i, row] += S[i, row, e] * out[s, d + e]
    return -1
