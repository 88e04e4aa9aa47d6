"""Compiled loops for any tree: kinematics, inverse dynamics, its regressor, mass and Coriolis matrices.

Everything of a body is written in its own node frame, with classical (not spatial) accelerations and gravity entered as
an upward acceleration of the base:

    f = m a + (alpha x + omega x omega x) h,      n = h x a + I alpha + omega x (I omega)     wrench of body i at its origin
    tau_d = w_d . n + l_d . f                                                       (w_d, l_d) = column d of its Jacobian

so the regressor block of coordinate d and body i is the gradient of that last line with respect to phi_i.

Why it looks like this: samples are taken LANES at a time and every quantity is stored as rows of LANES numbers in one flat
array, so that the innermost loop runs over samples and the compiler turns it into vector instructions (20 times faster than
one sample after the other). The compiler does so only when it sees constant row offsets, few distinct arrays and unsigned
indices; hence flat arrays, `at`, and the packing of w, alpha, a into `kin` and of w, l into `J`. Lanes beyond the last sample
repeat it; nothing is allocated inside the loops.
"""

from __future__ import annotations

from hashlib import sha256
from math import cos, sin, sqrt
from pathlib import Path

import numpy as np
from numba import njit, types

from dynident.mechanism.tree import FIXED, FREE, PRISMATIC, REVOLUTE, SPHERICAL

_OPTIONS = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"contract"}, "no_cfunc_wrapper": True}
_PACKAGE = Path(__file__).parents[1]
_CONSTANTS = ("mechanism/tree.py", "mechanism/loops.py", "mechanics/packed.py")


def _stamp():
    """Return a digest of everything that compiled code is made of: all kernels, and the constants they read."""
    whole = sha256()
    for path in sorted({*_PACKAGE.rglob("*kernels.py"), *(_PACKAGE / name for name in _CONSTANTS)}):
        whole.update(path.read_bytes())
    return whole.hexdigest()


STAMP = _stamp()


def kernel(function, **options):
    """Compile a function, cached on disk.

    Numba's cache looks at the file of the function only and would keep the old code of what it calls in other files; a
    simulation with half of its memory layout of yesterday is worse than waiting. Hence one stamp for all.
    """
    dispatcher = njit(**_OPTIONS, **options)(function)
    cache = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)  # absent when compilation is switched off
    if cache is not None:
        cache._source_stamp = STAMP
        template = dispatcher.get_call_template  # by itself it compiles anew for every constant that a caller writes
        dispatcher.get_call_template = lambda given, names: template(tuple(map(types.unliteral, given)), names)
    return dispatcher


def sample_kernel(function):
    """Compile a function that is called for one sample at a time, as `kernel`; it must not allocate.

    Numba counts references to the arrays of every call with locked instructions, which cost as much as the work of a short
    function. Nothing is allocated or kept here, so nothing needs counting.
    """
    return kernel(function, _nrt=False)


LANES = 32
ROW0, ROW1, ROW2, ROW3, ROW4, ROW5, ROW6, ROW7, ROW8, ROW9 = (np.uint64(i * LANES) for i in range(10))


@kernel
def at(index, rows):
    """Return the offset of block `index` in an array of blocks of `rows` rows."""
    return np.uint64(index * rows * LANES)


@kernel
def load(A, b, k):
    """Return the vector in rows 0..2 of the block at b, lane k."""
    return A[b + k], A[b + ROW1 + k], A[b + ROW2 + k]


@kernel
def store(A, b, k, x):
    """Write the vector into rows 0..2 of the block at b, lane k."""
    A[b + k] = x[0]
    A[b + ROW1 + k] = x[1]
    A[b + ROW2 + k] = x[2]


@kernel
def rotate(R, b, k, x):
    """Return R x."""
    return (
        R[b + k] * x[0] + R[b + ROW1 + k] * x[1] + R[b + ROW2 + k] * x[2],
        R[b + ROW3 + k] * x[0] + R[b + ROW4 + k] * x[1] + R[b + ROW5 + k] * x[2],
        R[b + ROW6 + k] * x[0] + R[b + ROW7 + k] * x[1] + R[b + ROW8 + k] * x[2],
    )


@kernel
def rotate_back(R, b, k, x):
    """Return R^T x."""
    return (
        R[b + k] * x[0] + R[b + ROW3 + k] * x[1] + R[b + ROW6 + k] * x[2],
        R[b + ROW1 + k] * x[0] + R[b + ROW4 + k] * x[1] + R[b + ROW7 + k] * x[2],
        R[b + ROW2 + k] * x[0] + R[b + ROW5 + k] * x[1] + R[b + ROW8 + k] * x[2],
    )


@kernel
def cross(a, b):
    """Return a x b."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@kernel
def add(a, b):
    """Return a + b."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@kernel
def dot(a, b):
    """Return a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def scale(a, s):
    """Return s a."""
    return (s * a[0], s * a[1], s * a[2])


@kernel
def inertia_times(phi, c, x):
    """Return I x, I from the ten parameters that start at phi[c]."""
    return (
        phi[c + 4] * x[0] + phi[c + 5] * x[1] + phi[c + 6] * x[2],
        phi[c + 5] * x[0] + phi[c + 7] * x[1] + phi[c + 8] * x[2],
        phi[c + 6] * x[0] + phi[c + 8] * x[1] + phi[c + 9] * x[2],
    )


@kernel
def gather(x, s, X):
    """Write LANES samples of x (N, n) from sample s on into rows, one per coordinate."""
    last = x.shape[0] - 1
    for d in range(x.shape[1]):
        for k in range(LANES):
            X[d * LANES + k] = x[min(s + k, last), d]


@kernel
def turn_row(K, i, c, s):
    """Return row i of the rotation K[0] + cos K[1] + sin K[2]."""
    return (
        K[0, i, 0] + c * K[1, i, 0] + s * K[2, i, 0],
        K[0, i, 1] + c * K[1, i, 1] + s * K[2, i, 1],
        K[0, i, 2] + c * K[1, i, 2] + s * K[2, i, 2],
    )


@kernel
def place(tree, i, Q, R, r):
    """Write node i's orientation R and origin r in its parent's frame."""
    kind = tree.kind[i]
    d = at(tree.dof[i], 1)
    o, b = at(i, 9), at(i, 3)
    P, t, u = tree.rotation[i], tree.translation[i], tree.axis[i]
    if kind == REVOLUTE:
        K = tree.turn[i]
        for k in range(ROW1):
            c, s = cos(Q[d + k]), sin(Q[d + k])
            R[o + k] = c  # kept here for a moment: the next loop has no calls and can be vectorised
            R[o + ROW1 + k] = s
        for k in range(ROW1):
            c, s = R[o + k], R[o + ROW1 + k]
            store(R, o, k, turn_row(K, 0, c, s))
            store(R, o + ROW3, k, turn_row(K, 1, c, s))
            store(R, o + ROW6, k, turn_row(K, 2, c, s))
            store(r, b, k, (t[0], t[1], t[2]))
        return
    for k in range(ROW1):
        x = (0.0, 0.0, 0.0)
        if kind == PRISMATIC:
            x = (u[0] * Q[d + k], u[1] * Q[d + k], u[2] * Q[d + k])
        elif kind == FREE:
            x = load(Q, d, k)
        store(
            r,
            b,
            k,
            (
                t[0] + P[0, 0] * x[0] + P[0, 1] * x[1] + P[0, 2] * x[2],
                t[1] + P[1, 0] * x[0] + P[1, 1] * x[1] + P[1, 2] * x[2],
                t[2] + P[2, 0] * x[0] + P[2, 1] * x[1] + P[2, 2] * x[2],
            ),
        )
        f, g, c = 0.0, 0.0, 1.0
        if kind not in (PRISMATIC, FIXED):  # R = P exp[x]x, Rodrigues with Taylor series near zero
            x = load(Q, d if kind == SPHERICAL else d + ROW3, k)
            square = dot(x, x)
            f, g = 1.0 - square / 6.0, 0.5 - square / 24.0
            if square > 1e-12:
                angle = sqrt(square)
                f, g = sin(angle) / angle, (1.0 - cos(angle)) / square
            c = 1.0 - g * square
        for row in range(3):
            p = (P[row, 0], P[row, 1], P[row, 2])
            turned = add(add(scale(p, c), scale(cross(p, x), f)), scale(x, g * dot(p, x)))
            store(R, o + np.uint64(3 * row * LANES), k, turned)


@kernel
def rates(tree, i, X, k):
    """Return the joint's own angular and linear rate in the child frame, from the rows X of velocities or accelerations."""
    kind = tree.kind[i]
    d = at(tree.dof[i], 1)
    zero = (0.0, 0.0, 0.0)
    axis = (tree.axis[i, 0], tree.axis[i, 1], tree.axis[i, 2])
    if kind == REVOLUTE:
        return scale(axis, X[d + k]), zero
    if kind == PRISMATIC:
        return zero, scale(axis, X[d + k])
    if kind == SPHERICAL:
        return load(X, d, k), zero
    if kind == FIXED:
        return zero, zero
    return load(X, d + ROW3, k), load(X, d, k)


@kernel
def move(tree, i, V, A, R, r, kin):
    """Write omega, alpha and origin acceleration (less gravity) of node i into the nine rows kin[i]."""
    p = tree.parent[i]
    o, b, n = at(i, 9), at(i, 3), at(i, 9)
    g = (-tree.gravity[0], -tree.gravity[1], -tree.gravity[2])
    for k in range(ROW1):
        wj, vj = rates(tree, i, V, k)
        aj, lj = rates(tree, i, A, k)
        w0, al0, ac0 = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), g
        if p >= 0:
            m = at(p, 9)
            w0, al0, rr = load(kin, m, k), load(kin, m + ROW3, k), load(r, b, k)
            ac0 = add(load(kin, m + ROW6, k), add(cross(al0, rr), cross(w0, cross(w0, rr))))
            w0, al0 = rotate_back(R, o, k, w0), rotate_back(R, o, k, al0)
        ac0 = rotate_back(R, o, k, ac0)
        store(kin, n, k, add(w0, wj))
        store(kin, n + ROW3, k, add(add(al0, aj), cross(w0, wj)))
        store(kin, n + ROW6, k, add(add(ac0, lj), cross(add(scale(w0, 2.0), wj), vj)))


@kernel
def own_columns(tree, i, n, J):
    """Write the Jacobian columns of node i's own coordinates: its constant motion subspace (w, l)."""
    kind = tree.kind[i]
    count = 1 if kind < SPHERICAL else (3 if kind == SPHERICAL else (6 if kind == FREE else 0))
    for e in range(count):
        b = at(i * n + tree.dof[i] + e, 6)
        for row in range(6):
            value = 0.0
            if kind == REVOLUTE and row < 3:
                value = tree.axis[i, row]
            elif kind == PRISMATIC and row >= 3:
                value = tree.axis[i, row - 3]
            elif (kind == SPHERICAL and row == e) or (kind == FREE and row == (e + 3) % 6):
                value = 1.0  # free coordinates are linear, then angular
            for k in range(ROW1):
                J[b + np.uint64(row * LANES) + k] = value


@kernel
def jacobian_columns(tree, i, n, R, r, J):
    """Write the Jacobian columns J[i, d] = (w, l) of node i, in its own frame, from its parent's."""
    p = tree.parent[i]
    o, rb = at(i, 9), at(i, 3)
    if p >= 0:
        for s in range(tree.support_count[p]):
            d = tree.support[p, s]
            b, m = at(i * n + d, 6), at(p * n + d, 6)
            for k in range(ROW1):
                w = load(J, m, k)
                lin = add(load(J, m + ROW3, k), cross(w, load(r, rb, k)))
                store(J, b, k, rotate_back(R, o, k, w))
                store(J, b + ROW3, k, rotate_back(R, o, k, lin))
    own_columns(tree, i, n, J)


@kernel
def inverse_dynamics(tree, phi, q, v, a, tau):
    """Write tau (N, n) from phi (10 per body): recursive Newton-Euler."""
    n, nodes = q.shape[1], tree.parent.size
    Q, V, A, T = np.empty(n * LANES), np.empty(n * LANES), np.empty(n * LANES), np.empty(n * LANES)
    R, r = np.empty(nodes * 9 * LANES), np.empty(nodes * 3 * LANES)
    kin, F = np.empty(nodes * 9 * LANES), np.empty(nodes * 6 * LANES)
    for s in range(0, q.shape[0], LANES):
        gather(q, s, Q)
        gather(v, s, V)
        gather(a, s, A)
        for i in range(nodes):
            place(tree, i, Q, R, r)
            move(tree, i, V, A, R, r, kin)
            body_wrench(tree, i, phi, kin, F)
        for i in range(nodes - 1, -1, -1):
            joint_torque(tree, i, F, T)
            pass_wrench(tree, i, R, r, F)
        for k in range(min(LANES, q.shape[0] - s)):
            for d in range(n):
                tau[s + k, d] = T[d * LANES + k]


@kernel
def body_wrench(tree, i, phi, kin, F):
    """Write force and moment (f, n) that move body i, at its origin and in its frame."""
    c, o, b = tree.column[i], at(i, 9), at(i, 6)
    if c < 0:
        for k in range(ROW6):
            F[b + k] = 0.0
        return
    m, h = phi[c], (phi[c + 1], phi[c + 2], phi[c + 3])
    for k in range(ROW1):
        w, al, ac = load(kin, o, k), load(kin, o + ROW3, k), load(kin, o + ROW6, k)
        store(F, b, k, add(scale(ac, m), add(cross(al, h), cross(w, cross(w, h)))))
        moment = add(cross(h, ac), add(inertia_times(phi, c, al), cross(w, inertia_times(phi, c, w))))
        store(F, b + ROW3, k, moment)


@kernel
def joint_torque(tree, i, F, T):
    """Write the torques of node i's coordinates: its motion subspace times its wrench."""
    kind, b, d = tree.kind[i], at(i, 6), at(tree.dof[i], 1)
    axis = (tree.axis[i, 0], tree.axis[i, 1], tree.axis[i, 2])
    if kind < SPHERICAL:
        b = b + ROW3 if kind == REVOLUTE else b
        for k in range(ROW1):
            T[d + k] = dot(axis, load(F, b, k))
        return
    if kind == FIXED:
        return
    start, count = (b + ROW3, ROW3) if kind == SPHERICAL else (b, ROW6)
    for k in range(count):
        T[d + k] = F[start + k]


@kernel
def pass_wrench(tree, i, R, r, F):
    """Add node i's wrench to its parent's."""
    p = tree.parent[i]
    if p < 0:
        return
    o, rb, b, m = at(i, 9), at(i, 3), at(i, 6), at(p, 6)
    for k in range(ROW1):
        force = rotate(R, o, k, load(F, b, k))
        moment = add(rotate(R, o, k, load(F, b + ROW3, k)), cross(load(r, rb, k), force))
        store(F, m, k, add(load(F, m, k), force))
        store(F, m + ROW3, k, add(load(F, m + ROW3, k), moment))


@kernel
def regressor_block(J, b, kin, o, Y, y):
    """Write the ten rows at Y[y]: gradient of w . n + l . f with respect to phi, for one body and one coordinate."""
    for k in range(ROW1):
        w, lin = load(J, b, k), load(J, b + ROW3, k)
        om, al, ac = load(kin, o, k), load(kin, o + ROW3, k), load(kin, o + ROW6, k)
        u = cross(w, om)  # w . (omega x I omega) = u . I omega
        h = add(cross(lin, al), add(cross(om, cross(om, lin)), cross(ac, w)))
        Y[y + k] = dot(lin, ac)
        store(Y, y + ROW1, k, h)
        Y[y + ROW4 + k] = w[0] * al[0] + u[0] * om[0]
        Y[y + ROW5 + k] = w[0] * al[1] + w[1] * al[0] + u[0] * om[1] + u[1] * om[0]
        Y[y + ROW6 + k] = w[0] * al[2] + w[2] * al[0] + u[0] * om[2] + u[2] * om[0]
        Y[y + ROW7 + k] = w[1] * al[1] + u[1] * om[1]
        Y[y + ROW8 + k] = w[1] * al[2] + w[2] * al[1] + u[1] * om[2] + u[2] * om[1]
        Y[y + ROW9 + k] = w[2] * al[2] + u[2] * om[2]


@kernel
def outward(tree, s, q, v, a, Q, V, A, R, r, kin, J):
    """Write kinematics and Jacobian columns of all nodes for LANES samples from sample s on."""
    gather(q, s, Q)
    gather(v, s, V)
    gather(a, s, A)
    for i in range(tree.parent.size):
        place(tree, i, Q, R, r)
        move(tree, i, V, A, R, r, kin)
        jacobian_columns(tree, i, q.shape[1], R, r, J)


@kernel
def regressor(tree, q, v, a, Y):
    """Write the inertial columns of Y (N, n, p); entries that are zero for the tree are left untouched."""
    n, nodes = q.shape[1], tree.parent.size
    Q, V, A = np.empty(n * LANES), np.empty(n * LANES), np.empty(n * LANES)
    R, r = np.empty(nodes * 9 * LANES), np.empty(nodes * 3 * LANES)
    kin, J = np.empty(nodes * 9 * LANES), np.empty(nodes * n * 6 * LANES)
    B = np.empty(10 * LANES)
    for s in range(0, q.shape[0], LANES):
        outward(tree, s, q, v, a, Q, V, A, R, r, kin, J)
        valid = min(LANES, q.shape[0] - s)
        for i in range(nodes):
            c = tree.column[i]
            if c < 0:
                continue
            for j in range(tree.support_count[i]):
                d = tree.support[i, j]
                regressor_block(J, at(i * n + d, 6), kin, at(i, 9), B, ROW0)
                for k in range(valid):
                    for e in range(10):
                        Y[s + k, d, c + e] = B[e * LANES + k]


@kernel
def regressor_rows(tree, q, v, a, slot, W):
    """Write inertial column c as rows of samples into W[:, slot[c]] (n, m, N); left out when slot[c] < 0."""
    n, nodes = q.shape[1], tree.parent.size
    Q, V, A = np.empty(n * LANES), np.empty(n * LANES), np.empty(n * LANES)
    R, r = np.empty(nodes * 9 * LANES), np.empty(nodes * 3 * LANES)
    kin, J = np.empty(nodes * 9 * LANES), np.empty(nodes * n * 6 * LANES)
    B = np.empty(10 * LANES)
    for s in range(0, q.shape[0], LANES):
        outward(tree, s, q, v, a, Q, V, A, R, r, kin, J)
        valid = min(LANES, q.shape[0] - s)
        for i in range(nodes):
            c = tree.column[i]
            if c < 0:
                continue
            for j in range(tree.support_count[i]):
                d = tree.support[i, j]
                regressor_block(J, at(i * n + d, 6), kin, at(i, 9), B, ROW0)
                for e in range(10):
                    if slot[c + e] >= 0:
                        W[d, slot[c + e], s : s + valid] = B[e * LANES : e * LANES + valid]
