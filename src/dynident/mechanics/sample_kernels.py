"""Compiled equation of motion of one sample, for simulation: M and the bias h in one sweep, then L D L^T.

Everything is written at the base origin and in base axes, so the inertias of a subtree simply add (ten numbers each, no
transforms and no 6 x 6 matrices):

    M_ij = S_i . (Ic_j S_j)                                       i carries j, Ic_j inertia of all bodies that j moves
    h_j  = S_j . sum_k [I_k (A_k - g) + T_k x* I_k T_k]           k over those bodies

with the twist S of every coordinate, body twists T and accelerations A without joint accelerations. Velocities of balls and
free bodies are the quasi-velocities of `kernels.rates`.

Why it looks like this: one sample gives the compiler no loop to vectorise, so what counts is that indices cost nothing. All
numbers of a node lie together in one flat array at constant, unsigned offsets, record 0 is the base (so nothing asks whether a
node has a parent), and functions take few arrays, since every array is nine words on the stack. Nothing is allocated inside.
"""

from __future__ import annotations

from math import cos, sin, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynident.mechanics.kernels import add, cross, dot, kernel, scale
from dynident.mechanism.tree import FREE, NODE_DOF, PRISMATIC, REVOLUTE, SPHERICAL, TreeArrays

Array = NDArray[np.float64]

TINY = 1e-13  # pivot of L D L^T, relative to the diagonal entry it is left of, below which only rounding errors remain
U0, U1, U2, U3, U4, U5, U6, U7, U8, U9 = (np.uint64(i) for i in range(10))
RECORD = 80  # numbers per node; R (9) comes first
ORIGIN, TWIST, BIAS, INERTIA, WRENCH, TURN, SHIFT, AXIS = (np.uint64(i) for i in (9, 12, 18, 24, 34, 40, 67, 70))


class Sample(NamedTuple):
    """A tree packed for one sample, with its work space: k nodes, n coordinates.

    Parameters
    ----------
    node : ndarray of int, (6 k,)
        Record of the parent, kind, first coordinate, number of coordinates, inertial column, number of supporting coordinates.
    support : ndarray of int, (k n,)
        Coordinates that move each node, in order from the base.
    record : ndarray, (80 k + 80,)
        For the base and every node: orientation R (9) and ORIGIN (3) in the base frame; TWIST and BIAS (6, angular and linear:
        velocity, and acceleration without joint accelerations, less gravity); INERTIA m, h, I (10) and WRENCH (6, moment and
        force) of its subtree; and of its joint TURN (27, as in `TreeArrays`), SHIFT (3) and AXIS (3).
    S : ndarray, (6 n,)
        Twist (angular, linear) of every coordinate at the base origin, base axes.
    """

    node: NDArray[np.int64]
    support: NDArray[np.int64]
    record: Array
    S: Array


def sample_space(tree: TreeArrays) -> Sample:
    """Return the tree packed for one sample, with its work space.

    Parameters
    ----------
    tree : TreeArrays
        Flat tree of k nodes and n coordinates.

    Returns
    -------
    Sample
        Arrays of its own; use one per thread.
    """
    k, n = tree.support.shape
    count = np.array(NODE_DOF, dtype=np.int64)[tree.kind]
    node = np.stack([tree.parent + 1, tree.kind, tree.dof, count, tree.column, tree.support_count], axis=1)
    record = np.zeros((k + 1, RECORD))
    record[0, :9] = np.eye(3).ravel()
    record[0, 21:24] = -tree.gravity  # the base accelerates upward instead of gravity pulling down
    record[1:, 40:67], record[1:, 67:70], record[1:, 70:73] = tree.turn.reshape(k, 27), tree.translation, tree.axis
    other = np.flatnonzero(tree.kind != REVOLUTE) + 1
    record[other, 40:49] = tree.rotation[other - 1].reshape(-1, 9)
    return Sample(np.ascontiguousarray(node.ravel()), np.ascontiguousarray(tree.support.ravel()), record.ravel(), np.zeros(6 * n))


@kernel
def slot(i, width):
    """Return the offset of block i in an array of blocks of `width` numbers."""
    return np.uint64(i * width)


@kernel
def vector(x, o):
    """Return the three numbers at x[o]."""
    return x[o], x[o + U1], x[o + U2]


@kernel
def put(x, o, v):
    """Write three numbers at x[o]."""
    x[o] = v[0]
    x[o + U1] = v[1]
    x[o + U2] = v[2]


@kernel
def turned(W, o, x):
    """Return R x with R at W[o]."""
    return dot(vector(W, o), x), dot(vector(W, o + U3), x), dot(vector(W, o + U6), x)


@kernel
def attach(W, o, m, a, b, c, t):
    """Write orientation R_m [a; b; c] (rows) and origin p_m + R_m t into record o, whose parent is record m."""
    for row in (U0, U3, U6):
        x, y, z = vector(W, m + row)
        put(W, o + row, (x * a[0] + y * b[0] + z * c[0], x * a[1] + y * b[1] + z * c[1], x * a[2] + y * b[2] + z * c[2]))
    put(W, o + ORIGIN, add(vector(W, m + ORIGIN), turned(W, m, t)))


@kernel
def turn_row(W, o, c, s):
    """Return a row of T0 + c T1 + s T2, the row of T0 being at W[o]."""
    return add(vector(W, o), add(scale(vector(W, o + U9), c), scale(vector(W, o + U9 + U9), s)))


@kernel
def exponential_row(p, x, f, g, c):
    """Return a row p of a rotation times exp [x]x, from f = sin t / t, g = (1 - cos t) / t^2, c = cos t, t = |x|."""
    return add(add(scale(p, c), scale(cross(p, x), f)), scale(x, g * dot(p, x)))


@kernel
def pose_other(node, W, S, i, q):
    """Write frame and twists of a node that is not revolute."""
    n = slot(i, 6)
    o, m, kind, d = slot(i + 1, RECORD), slot(node[n], RECORD), node[n + U1], node[n + U2]
    t, x = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    if kind == PRISMATIC:
        t = scale(vector(W, o + AXIS), q[d])
    elif kind == SPHERICAL:
        x = (q[d], q[d + 1], q[d + 2])
    elif kind == FREE:
        t, x = (q[d], q[d + 1], q[d + 2]), (q[d + 3], q[d + 4], q[d + 5])
    square = dot(x, x)
    f, g = 1.0 - square / 6.0, 0.5 - square / 24.0
    if square > 1e-12:
        angle = sqrt(square)
        f, g = sin(angle) / angle, (1.0 - cos(angle)) / square
    c = 1.0 - g * square
    shift = add(vector(W, o + SHIFT), turned(W, o + TURN, t))
    first = exponential_row(vector(W, o + TURN), x, f, g, c)
    second = exponential_row(vector(W, o + TURN + U3), x, f, g, c)
    attach(W, o, m, first, second, exponential_row(vector(W, o + TURN + U6), x, f, g, c), shift)
    for e in range(node[n + U3]):
        k, b = np.uint64(e % 3), slot(d + e, 6)
        axis = turned(W, o, vector(W, o + AXIS)) if kind == PRISMATIC else (W[o + k], W[o + U3 + k], W[o + U6 + k])
        if kind == SPHERICAL or (kind == FREE and e >= 3):
            put(S, b, axis)
            put(S, b + U3, cross(vector(W, o + ORIGIN), axis))
        else:
            put(S, b, (0.0, 0.0, 0.0))
            put(S, b + U3, axis)


@kernel
def pose_tree(s, q):
    """Write frames of all nodes and twists of all coordinates at positions q (n,)."""
    node, W, S = s.node, s.record, s.S
    for i in range(node.size // 6):
        n = slot(i, 6)
        if node[n + U1] != REVOLUTE:
            pose_other(node, W, S, i, q)
            continue
        o, m, d = slot(i + 1, RECORD), slot(node[n], RECORD), slot(node[n + U2], 1)
        cosine, sine = cos(q[d]), sin(q[d])
        a, b = turn_row(W, o + TURN, cosine, sine), turn_row(W, o + TURN + U3, cosine, sine)
        attach(W, o, m, a, b, turn_row(W, o + TURN + U6, cosine, sine), vector(W, o + SHIFT))
        axis = turned(W, o, vector(W, o + AXIS))
        d = slot(node[n + U2], 6)
        put(S, d, axis)
        put(S, d + U3, cross(vector(W, o + ORIGIN), axis))


@kernel
def move_node(node, W, S, i, v):
    """Write twist and acceleration (no joint accelerations) of node i from its parent's."""
    n = slot(i, 6)
    o, m, d = slot(i + 1, RECORD), slot(node[n], RECORD), node[n + U2]
    om, li = vector(W, m + TWIST), vector(W, m + TWIST + U3)
    w, lin = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for e in range(d, d + node[n + U3]):
        t, x = slot(e, 6), v[slot(e, 1)]
        w, lin = add(w, scale(vector(S, t), x)), add(lin, scale(vector(S, t + U3), x))
    put(W, o + TWIST, add(om, w))
    put(W, o + TWIST + U3, add(li, lin))
    # T_parent x (S v): the subspace turns with the child, and what it adds to the twist drops out
    put(W, o + BIAS, add(vector(W, m + BIAS), cross(om, w)))
    put(W, o + BIAS + U3, add(vector(W, m + BIAS + U3), add(cross(om, lin), cross(li, w))))


@kernel
def world_inertia(W, o, phi, c):
    """Write m, h, I of the body of record o at the base origin in base axes, from its ten parameters at phi[c]."""
    a, b, z = vector(W, o), vector(W, o + U3), vector(W, o + U6)
    m, h = phi[c], vector(phi, c + U1)
    x = vector(phi, c + U4)
    y = (phi[c + U5], phi[c + U7], phi[c + U8])
    w = (phi[c + U6], phi[c + U8], phi[c + U9])
    h = (dot(a, h), dot(b, h), dot(z, h))
    p = vector(W, o + ORIGIN)
    f = add(h, scale(p, m))  # first moment about the base origin
    # rows of R I
    ia, ib, iz = (dot(a, x), dot(a, y), dot(a, w)), (dot(b, x), dot(b, y), dot(b, w)), (dot(z, x), dot(z, y), dot(z, w))
    # Steiner: I + (p.h + p.f) 1 - p h^T - f p^T
    sx, sy, sz = p[0] * (h[0] + f[0]), p[1] * (h[1] + f[1]), p[2] * (h[2] + f[2])
    k = o + INERTIA
    W[k] = m
    put(W, k + U1, f)
    W[k + U4] = dot(ia, a) + sy + sz
    W[k + U5] = dot(ia, b) - p[0] * h[1] - f[0] * p[1]
    W[k + U6] = dot(ia, z) - p[0] * h[2] - f[0] * p[2]
    W[k + U7] = dot(ib, b) + sx + sz
    W[k + U8] = dot(ib, z) - p[1] * h[2] - f[1] * p[2]
    W[k + U9] = dot(iz, z) + sx + sy


@kernel
def times(W, o, w, lin):
    """Return (moment, force) of the ten inertial numbers at W[o] times the twist (w, lin)."""
    m, h = W[o], vector(W, o + U1)
    xx, xy, xz, yy, yz, zz = W[o + U4], W[o + U5], W[o + U6], W[o + U7], W[o + U8], W[o + U9]
    n = (xx * w[0] + xy * w[1] + xz * w[2], xy * w[0] + yy * w[1] + yz * w[2], xz * w[0] + yz * w[1] + zz * w[2])
    return add(n, cross(h, lin)), add(scale(lin, m), cross(w, h))


@kernel
def weigh_node(W, i, phi, c):
    """Write own inertia and own wrench of node i, from its frame, twist and acceleration; c < 0 without mass."""
    o = slot(i + 1, RECORD)
    if c < 0:
        for k in range(16):
            W[o + INERTIA + np.uint64(k)] = 0.0
        return
    world_inertia(W, o, phi, np.uint64(c))
    om, li = vector(W, o + TWIST), vector(W, o + TWIST + U3)
    n, f = times(W, o + INERTIA, om, li)
    na, fa = times(W, o + INERTIA, vector(W, o + BIAS), vector(W, o + BIAS + U3))
    put(W, o + WRENCH, add(na, add(cross(om, n), cross(li, f))))
    put(W, o + WRENCH + U3, add(fa, cross(om, f)))


@kernel
def gather_node(s, i, M, h):
    """Write the rows of node i's coordinates in M and h, then add its subtree to its parent's."""
    node, W, S = s.node, s.record, s.S
    n, o = slot(i, 6), slot(i + 1, RECORD)
    d, supports = node[n + U2], slot(i, h.size)
    for j in range(d, d + node[n + U3]):
        w, lin = vector(S, slot(j, 6)), vector(S, slot(j, 6) + U3)
        h[j] = dot(w, vector(W, o + WRENCH)) + dot(lin, vector(W, o + WRENCH + U3))
        moment, force = times(W, o + INERTIA, w, lin)
        for e in range(node[n + U5]):
            c = s.support[supports + np.uint64(e)]
            if c > j:
                break
            M[j, c] += dot(moment, vector(S, slot(c, 6))) + dot(force, vector(S, slot(c, 6) + U3))
    m = slot(node[n], RECORD)
    for k in range(16):  # inertia and wrench lie side by side
        W[m + INERTIA + np.uint64(k)] += W[o + INERTIA + np.uint64(k)]


@kernel
def mass_and_bias(s, phi, base, v, M, h):
    """Write M (n, n), lower triangle, on top of `base` and h (n,), at the pose of the last `pose_tree`.

    Record 0 then holds inertia and wrench of the whole tree.
    """
    nodes = s.node.size // 6
    for i in range(nodes):
        move_node(s.node, s.record, s.S, i, v)
        weigh_node(s.record, i, phi, s.node[slot(i, 6) + U4])
    for k in range(16):
        s.record[INERTIA + np.uint64(k)] = 0.0
    for row in range(h.size):
        for col in range(row + 1):
            M[row, col] = base[row, col]
    for i in range(nodes - 1, -1, -1):
        gather_node(s, i, M, h)


@kernel
def equation_of_motion(s, phi, base, q, v, M, h):
    """Write M (n, n), lower triangle, and h (n,): M a + h = tau of the tree.

    `phi` are the inertial parameters in node frames, `base` (n, n) is added to M (rotor inertias), `s` is a `Sample`.
    """
    pose_tree(s, q)
    mass_and_bias(s, phi, base, v, M, h)


@kernel
def factorise_symmetric(M, n, L):
    """Write the factors of M = U^T D U into L (n, n); return the first pivot that is only rounding errors, or -1.

    Below the diagonal the entries of the unit triangle U^T, above it those of D U, on it 1/D. Only the lower triangle of M is
    read. No square roots: published mass matrices may be indefinite.
    """
    for j in range(n):
        pivot = M[j, j]
        for k in range(j):
            pivot -= L[j, k] * L[k, j]
        if not abs(pivot) > TINY * abs(M[j, j]):
            return j
        inverse = 1.0 / pivot
        L[j, j] = inverse
        for i in range(j + 1, n):
            value = M[i, j]
            for k in range(j):
                value -= L[i, k] * L[k, j]
            L[j, i] = value
            L[i, j] = value * inverse
    return -1


@kernel
def solve_symmetric(L, n, x):
    """Overwrite x (n,) with M^-1 x, where L holds what `factorise_symmetric` left."""
    for i in range(n):
        value = x[i]
        for k in range(i):
            value -= L[i, k] * x[k]
        x[i] = value
    for i in range(n - 1, -1, -1):
        value = x[i] * L[i, i]
        for k in range(i + 1, n):
            value -= L[k, i] * x[k]
        x[i] = value
