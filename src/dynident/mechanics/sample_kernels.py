"""Compiled equation of motion of one sample, for simulation: M and the bias h in one sweep, then L D L^T.

Everything is written at the base origin and in base axes, so the inertias of a subtree simply add (ten numbers each, no
transforms and no 6 x 6 matrices):

    M_ij = S_i . (Ic_j S_j)                                       i carries j, Ic_j inertia of all bodies that j moves
    h_j  = S_j . sum_k [I_k (A_k - g) + T_k x* I_k T_k]           k over those bodies

with the twist S of every coordinate, body twists T and accelerations A without joint accelerations. Velocities of balls and
free bodies are the quasi-velocities of `kernels.rates`.

Why it looks like this: one sample gives the compiler no loop to vectorise, so what counts is that calls and indices cost
nothing. Everything lies in two arrays, integers K and floats F (`packed.Arena`); K[KEY] says where region KEY begins, a node's
numbers lie together at constant, unsigned offsets, and record 0 is the base, so that nothing asks whether a node has a parent.
Two arrays instead of many keep calls cheap and compilation short: every array is eight words of every call.
"""

from __future__ import annotations

from math import cos, sin, sqrt

import numpy as np

from dynident.mechanics.kernels import add, cross, dot, scale
from dynident.mechanics.kernels import sample_kernel as kernel
from dynident.mechanics.packed import (
    AXIS,
    BASE,
    BIAS,
    COUNT,
    FORCE,
    INERTIA,
    MASS,
    NODE,
    NODES,
    ORIGIN,
    PHI,
    RECORD,
    RECORDS,
    SHIFT,
    SPEED,
    SUPPORT,
    TURN,
    TWIST,
    TWISTS,
    WRENCH,
)
from dynident.mechanism.tree import FREE, PRISMATIC, REVOLUTE, SPHERICAL

TINY = 1e-13  # pivot of L D L^T, relative to the diagonal entry it is left of, below which only rounding errors remain
U0, U1, U2, U3, U4, U5, U6, U7, U8, U9 = (np.uint64(i) for i in range(10))


@kernel
def place(K, key):
    """Return where region `key` begins, unsigned."""
    return np.uint64(K[key])


@kernel
def slot(i, width):
    """Return the offset of block i in blocks of `width` numbers."""
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
def turned(F, o, x):
    """Return R x with R at F[o]."""
    return dot(vector(F, o), x), dot(vector(F, o + U3), x), dot(vector(F, o + U6), x)


@kernel
def attach(F, o, m, a, b, c, t):
    """Write orientation R_m [a; b; c] (rows) and origin p_m + R_m t into record o, whose parent is record m."""
    for row in (U0, U3, U6):
        x, y, z = vector(F, m + row)
        put(F, o + row, (x * a[0] + y * b[0] + z * c[0], x * a[1] + y * b[1] + z * c[1], x * a[2] + y * b[2] + z * c[2]))
    put(F, o + ORIGIN, add(vector(F, m + ORIGIN), turned(F, m, t)))


@kernel
def turn_row(F, o, c, s):
    """Return a row of T0 + c T1 + s T2, the row of T0 being at F[o]."""
    return add(vector(F, o), add(scale(vector(F, o + U9), c), scale(vector(F, o + U9 + U9), s)))


@kernel
def exponential_row(p, x, f, g, c):
    """Return a row p of a rotation times exp [x]x, from f = sin t / t, g = (1 - cos t) / t^2, c = cos t, t = |x|."""
    return add(add(scale(p, c), scale(cross(p, x), f)), scale(x, g * dot(p, x)))


@kernel
def pose_other(K, F, n, o, m, q):
    """Write frame (record o, parent m) and twists of a node that is not revolute; its integers are at K[n]."""
    kind, d = K[n + U1], np.uint64(K[n + U2])
    q = q + d
    t, x = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    if kind == PRISMATIC:
        t = scale(vector(F, o + AXIS), F[q])
    elif kind == SPHERICAL:
        x = vector(F, q)
    elif kind == FREE:
        t, x = vector(F, q), vector(F, q + U3)
    square = dot(x, x)
    f, g = 1.0 - square / 6.0, 0.5 - square / 24.0
    if square > 1e-12:
        angle = sqrt(square)
        f, g = sin(angle) / angle, (1.0 - cos(angle)) / square
    c = 1.0 - g * square
    shift = add(vector(F, o + SHIFT), turned(F, o + TURN, t))
    first = exponential_row(vector(F, o + TURN), x, f, g, c)
    second = exponential_row(vector(F, o + TURN + U3), x, f, g, c)
    attach(F, o, m, first, second, exponential_row(vector(F, o + TURN + U6), x, f, g, c), shift)
    for e in range(K[n + U3]):
        k, b = np.uint64(e % 3), place(K, TWISTS) + (d + np.uint64(e)) * U6
        axis = turned(F, o, vector(F, o + AXIS)) if kind == PRISMATIC else (F[o + k], F[o + U3 + k], F[o + U6 + k])
        if kind == SPHERICAL or (kind == FREE and e >= 3):
            put(F, b, axis)
            put(F, b + U3, cross(vector(F, o + ORIGIN), axis))
        else:
            put(F, b, (0.0, 0.0, 0.0))
            put(F, b + U3, axis)


@kernel
def pose_tree(K, F, q):
    """Write frames of all nodes and twists of all coordinates at the positions that begin at F[q]."""
    q, records, twists = np.uint64(q), place(K, RECORDS), place(K, TWISTS)
    for i in range(K[NODES]):
        n, o = place(K, NODE) + slot(i, 6), records + slot(i + 1, RECORD)
        m = records + slot(K[n], RECORD)
        if K[n + U1] != REVOLUTE:
            pose_other(K, F, n, o, m, q)
            continue
        d = np.uint64(K[n + U2])
        c, s = cos(F[q + d]), sin(F[q + d])
        a, b = turn_row(F, o + TURN, c, s), turn_row(F, o + TURN + U3, c, s)
        attach(F, o, m, a, b, turn_row(F, o + TURN + U6, c, s), vector(F, o + SHIFT))
        axis = turned(F, o, vector(F, o + AXIS))
        d = twists + d * U6
        put(F, d, axis)
        put(F, d + U3, cross(vector(F, o + ORIGIN), axis))


@kernel
def move_node(F, o, m, t, v, count):
    """Write twist and acceleration (no joint accelerations) of record o from those of its parent m.

    Its `count` coordinates have their twists at F[t] and their velocities at F[v].
    """
    om, li = vector(F, m + TWIST), vector(F, m + TWIST + U3)
    w, lin = scale(vector(F, t), F[v]), scale(vector(F, t + U3), F[v])
    if count != 1:
        w, lin = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        for e in range(count):
            u, x = t + slot(e, 6), F[v + np.uint64(e)]
            w, lin = add(w, scale(vector(F, u), x)), add(lin, scale(vector(F, u + U3), x))
    put(F, o + TWIST, add(om, w))
    put(F, o + TWIST + U3, add(li, lin))
    # T_parent x (S v): the subspace turns with the child, and what it adds to the twist drops out
    put(F, o + BIAS, add(vector(F, m + BIAS), cross(om, w)))
    put(F, o + BIAS + U3, add(vector(F, m + BIAS + U3), add(cross(om, lin), cross(li, w))))


@kernel
def world_inertia(F, o, c):
    """Write m, h, I of the body of record o at the base origin in base axes, from its ten parameters at F[c]."""
    a, b, z = vector(F, o), vector(F, o + U3), vector(F, o + U6)
    m, h = F[c], vector(F, c + U1)
    x = vector(F, c + U4)
    y = (F[c + U5], F[c + U7], F[c + U8])
    w = (F[c + U6], F[c + U8], F[c + U9])
    h = (dot(a, h), dot(b, h), dot(z, h))
    p = vector(F, o + ORIGIN)
    f = add(h, scale(p, m))  # first moment about the base origin
    # rows of R I
    ia, ib, iz = (dot(a, x), dot(a, y), dot(a, w)), (dot(b, x), dot(b, y), dot(b, w)), (dot(z, x), dot(z, y), dot(z, w))
    # Steiner: I + (p.h + p.f) 1 - p h^T - f p^T
    sx, sy, sz = p[0] * (h[0] + f[0]), p[1] * (h[1] + f[1]), p[2] * (h[2] + f[2])
    k = o + INERTIA
    F[k] = m
    put(F, k + U1, f)
    F[k + U4] = dot(ia, a) + sy + sz
    F[k + U5] = dot(ia, b) - p[0] * h[1] - f[0] * p[1]
    F[k + U6] = dot(ia, z) - p[0] * h[2] - f[0] * p[2]
    F[k + U7] = dot(ib, b) + sx + sz
    F[k + U8] = dot(ib, z) - p[1] * h[2] - f[1] * p[2]
    F[k + U9] = dot(iz, z) + sx + sy


@kernel
def first_moment(K, F):
    """Return m c of the whole tree in the base frame, at the last pose."""
    whole = (0.0, 0.0, 0.0)
    for i in range(K[NODES]):
        column = K[place(K, NODE) + slot(i, 6) + U4]
        if column >= 0:
            o, c = place(K, RECORDS) + slot(i + 1, RECORD), place(K, PHI) + np.uint64(column)
            whole = add(whole, add(scale(vector(F, o + ORIGIN), F[c]), turned(F, o, vector(F, c + U1))))
    return whole


@kernel
def times(F, o, w, lin):
    """Return (moment, force) of the ten inertial numbers at F[o] times the twist (w, lin)."""
    m, h = F[o], vector(F, o + U1)
    xx, xy, xz, yy, yz, zz = F[o + U4], F[o + U5], F[o + U6], F[o + U7], F[o + U8], F[o + U9]
    n = (xx * w[0] + xy * w[1] + xz * w[2], xy * w[0] + yy * w[1] + yz * w[2], xz * w[0] + yz * w[1] + zz * w[2])
    return add(n, cross(h, lin)), add(scale(lin, m), cross(w, h))


@kernel
def weigh_node(F, o, c):
    """Write own inertia and own wrench of record o, from its frame, twist and acceleration; its parameters are at F[c]."""
    world_inertia(F, o, c)
    om, li = vector(F, o + TWIST), vector(F, o + TWIST + U3)
    n, f = times(F, o + INERTIA, om, li)
    na, fa = times(F, o + INERTIA, vector(F, o + BIAS), vector(F, o + BIAS + U3))
    put(F, o + WRENCH, add(na, add(cross(om, n), cross(li, f))))
    put(F, o + WRENCH + U3, add(fa, cross(om, f)))


@kernel
def gather_row(K, F, o, S, j, row, support, count):
    """Add S_c . (I S_j) to row j of M at F[row], I of record o, for the `count` coordinates c up to j at K[support]."""
    moment, force = times(F, o + INERTIA, vector(F, S + j * U6), vector(F, S + j * U6 + U3))
    for g in range(count):
        c = np.uint64(K[support + np.uint64(g)])
        if c > j:
            break
        t = S + c * U6
        F[row + c] += dot(moment, vector(F, t)) + dot(force, vector(F, t + U3))


@kernel
def mass_and_bias(K, F):
    """Write M (lower triangle, on top of BASE) into MASS and h into FORCE, at velocities SPEED and the last pose.

    Record 0 then holds inertia and wrench of the whole tree.
    """
    # Places are read once: for all the compiler knows, every number written might change them.
    nodes, size, base, node = K[NODES], np.uint64(K[COUNT]), place(K, RECORDS), place(K, NODE)
    S, speed, phi, mass, force = place(K, TWISTS), place(K, SPEED), place(K, PHI), place(K, MASS), place(K, FORCE)
    start, supports = place(K, BASE), place(K, SUPPORT)
    for i in range(nodes):
        n, o = node + slot(i, 6), base + slot(i + 1, RECORD)
        d = np.uint64(K[n + U2])
        move_node(F, o, base + slot(K[n], RECORD), S + d * U6, speed + d, K[n + U3])
        if K[n + U4] >= 0:
            weigh_node(F, o, phi + np.uint64(K[n + U4]))
        else:
            for k in range(16):
                F[o + INERTIA + np.uint64(k)] = 0.0
    for k in range(16):
        F[base + INERTIA + np.uint64(k)] = 0.0
    for k in range(size * size):
        F[mass + k] = F[start + k]
    for j in range(nodes):
        i = nodes - 1 - j
        n, o = node + slot(i, 6), base + slot(i + 1, RECORD)
        d, m = np.uint64(K[n + U2]), base + slot(K[n], RECORD)
        for e in range(K[n + U3]):
            c = d + np.uint64(e)
            t = S + c * U6
            F[force + c] = dot(vector(F, t), vector(F, o + WRENCH)) + dot(vector(F, t + U3), vector(F, o + WRENCH + U3))
            gather_row(K, F, o, S, c, mass + c * size, supports + np.uint64(i) * size, K[n + U5])
        for k in range(16):  # inertia and wrench lie side by side
            F[m + INERTIA + np.uint64(k)] += F[o + INERTIA + np.uint64(k)]


@kernel
def factorise_symmetric(F, m, factor, n):
    """Write the factors of M = U^T D U (n x n at F[m]) to F[factor]; return the first pivot of rounding errors only, or -1.

    Below the diagonal the entries of the unit triangle U^T, above it those of D U, on it 1/D. Only the lower triangle of M is
    read. No square roots: published mass matrices may be indefinite.
    """
    m, f, n = np.uint64(m), np.uint64(factor), np.uint64(n)
    for j in range(n):
        row = f + j * n
        pivot = F[m + j * n + j]
        size = abs(pivot)
        for k in range(j):
            pivot -= F[row + k] * F[f + k * n + j]
        if not abs(pivot) > TINY * size:
            return np.int64(j)
        inverse = 1.0 / pivot
        F[row + j] = inverse
        for i in range(j + U1, n):
            value = F[m + i * n + j]
            for k in range(j):
                value -= F[f + i * n + k] * F[f + k * n + j]
            F[row + i] = value
            F[f + i * n + j] = value * inverse
    return np.int64(-1)


@kernel
def solve_symmetric(F, factor, x, n):
    """Overwrite the n numbers at F[x] with M^-1 x, from what `factorise_symmetric` left at F[factor]."""
    f, x, n = np.uint64(factor), np.uint64(x), np.uint64(n)
    for i in range(n):
        value = F[x + i]
        for k in range(i):
            value -= F[f + i * n + k] * F[x + k]
        F[x + i] = value
    for j in range(n):
        i = n - U1 - j
        value = F[x + i] * F[f + i * n + i]
        for k in range(i + U1, n):
            value -= F[f + k * n + i] * F[x + k]
        F[x + i] = value
