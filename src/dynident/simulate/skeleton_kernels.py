"""Compiled kinematics of a robot in a simulation, one sample at a time: tree, linear couplings and loops alike.

    v_t = G nu,    a_t = G nu_dot + b          G = 1 (tree), constant (couplings), or of the pose (loops)

All tree positions q_t are integrated with v_t and pulled back on the closure once per step. That costs one evaluation per stage
instead of a Newton solve, and keeps the order of the method: off the closure by a stage's error, G is as smooth as on it.
"""

from __future__ import annotations

from math import cos, pi, sin, sqrt, tan

import numpy as np

from dynident.mechanics.kernels import add, cross, dot, scale
from dynident.mechanics.kernels import sample_kernel as kernel
from dynident.mechanics.packed import COUNT, NODE, NODES, ORIGIN, RECORD, RECORDS, SPEED, SUPPORT, TWISTS
from dynident.mechanics.sample_kernels import U1, U3, U6, place, slot, vector
from dynident.mechanism.tree import FREE, SPHERICAL
from dynident.simulate.closure_kernels import factorise, substitute
from dynident.simulate.layout import (
    CONSTANT,
    COUPLING,
    DEPENDENT,
    DOF,
    DRIVEN,
    INDEPENDENT,
    JACOBIAN,
    LOOPED,
    LU,
    MAP,
    MISSING,
    MODE,
    RIGHT,
    SWAP,
    TREE,
    WORK,
)
from dynident.simulate.motion_kernels import closure_at

REACH = 0.5  # largest correction of a dependent coordinate within one step [rad or m]
CLOSED = 1e-7  # correction after which the next one would be of the order of rounding errors


@kernel
def closure_map(K, F, q):
    """Write G at the tree positions F[q]; return the signed pivot ratio of the closure, 0 when it is singular."""
    nt, n, m = K[COUNT], K[DOF], K[MISSING]
    closure_at(K, F, q)
    for row in range(m):
        jac, lu, right = K[JACOBIAN] + row * nt, K[LU] + row * m, K[RIGHT] + row * (n + 1)
        for c in range(m):
            F[lu + c] = F[jac + K[K[DEPENDENT] + c]]
        for c in range(n):
            F[right + c] = -F[jac + K[K[INDEPENDENT] + c]]
    ratio = factorise(F, K, K[LU], K[SWAP], m)
    if ratio == 0.0:
        return 0.0
    substitute(F, K, K[LU], K[SWAP], m, K[RIGHT], n + 1, n)
    for row in range(m):
        g, right = K[MAP] + K[K[DEPENDENT] + row] * n, K[RIGHT] + row * (n + 1)
        for c in range(n):
            F[g + c] = F[right + c]
    return ratio


@kernel
def pull_back(K, F, q):
    """Correct positions at F[q] with the factors and residuals of the last `closure_map` there; return the largest correction.

    One chord step: what a step of the integrator adds to the gap is of the order of its error, so nothing is left of it.
    """
    nt, n, m, work = K[COUNT], K[DOF], K[MISSING], K[WORK]
    for row in range(m):
        F[K[RIGHT] + row * (n + 1)] = -F[K[RIGHT] + row * (n + 1) + n]
    substitute(F, K, K[LU], K[SWAP], m, K[RIGHT], n + 1, 1)
    size = 0.0
    for i in range(nt):
        F[work + i] = 0.0
    for row in range(m):
        F[work + K[K[DEPENDENT] + row]] = F[K[RIGHT] + row * (n + 1)]
        size = max(size, abs(F[K[RIGHT] + row * (n + 1)]))
    coordinate_rates(K, F, q, work)
    for i in range(nt):
        F[q + i] += F[work + i]
    return size


@kernel
def close_loops(K, F, q):
    """Close the loops by moving the dependent ones of the positions at F[q]; return the signed pivot ratio, 0 when lost."""
    moved = 0.0
    for _ in range(20):
        ratio = closure_map(K, F, q)
        if ratio == 0.0:
            return 0.0
        step = pull_back(K, F, q)
        moved += step
        if not moved < REACH:
            return 0.0
        if step < CLOSED:
            return ratio
    return 0.0


@kernel
def close_step(K, F, q):
    """Put tree positions back on the closure after a step, keeping the robot's own; return the pivot ratio, 0 when lost."""
    if K[MODE] == TREE:
        return 1.0
    if K[MODE] == LOOPED:
        return close_loops(K, F, q)
    for i in range(K[MISSING]):
        d = K[K[DEPENDENT] + i]
        value = F[K[CONSTANT] + d]
        for c in range(K[DOF]):
            value += F[K[MAP] + d * K[DOF] + c] * F[q + K[K[INDEPENDENT] + c]]
        F[q + d] = value
    return 1.0


@kernel
def tree_speeds(K, F, nu):
    """Write SPEED = G nu from the velocities at F[nu]."""
    v, nt, n = K[SPEED], K[COUNT], K[DOF]
    if K[MODE] == TREE:
        for i in range(nt):
            F[v + i] = F[nu + i]
        return
    for i in range(nt):
        value, g = 0.0, K[MAP] + i * n
        for c in range(n):
            value += F[g + c] * F[nu + c]
        F[v + i] = value


@kernel
def generalised(K, F, force, out):
    """Write out = G^T force (n,) from tree forces at F[force]."""
    nt, n = K[COUNT], K[DOF]
    for c in range(n):
        F[out + c] = 0.0
    for i in range(nt):
        g, x = K[MAP] + i * n, F[force + i]
        for c in range(n):
            F[out + c] += F[g + c] * x


@kernel
def add_mass_times(K, F, mass, x, out):
    """Add M x to `out`, reading the lower triangle of M."""
    n = K[COUNT]
    for i in range(n):
        row = mass + i * n
        value = F[out + i] + F[row + i] * F[x + i]
        for j in range(i):
            value += F[row + j] * F[x + j]
            F[out + j] += F[row + j] * F[x + i]
        F[out + i] = value


@kernel
def sandwich(K, F, mass, out):
    """Write the lower triangle of G^T M G, reading the lower triangle of M."""
    nt, n, work, G = np.uint64(K[COUNT]), np.uint64(K[DOF]), place(K, WORK), place(K, MAP)
    mass, out = np.uint64(mass), np.uint64(out)
    for i in range(nt):
        row, a, g = mass + i * nt, work + i * n, G + i * n
        for c in range(n):
            F[a + c] = F[row + i] * F[g + c]
        for j in range(i):
            x = F[row + j]
            if x != 0.0:  # branches of a tree do not feel each other
                for c in range(n):
                    F[a + c] += x * F[G + j * n + c]
                    F[work + j * n + c] += x * F[g + c]
    for r in range(n):
        for c in range(r + U1):
            F[out + r * n + c] = 0.0
    for i in range(nt):
        for r in range(n):
            x = F[G + i * n + r]
            for c in range(r + U1):
                F[out + r * n + c] += x * F[work + i * n + c]


@kernel
def coordinate_rates(K, F, q, out):
    """Overwrite the quasi-velocities of balls and free bodies at F[out] by rates of their coordinates, at positions F[q].

    dr/dt = Jr(r)^-1 w with Jr^-1 = 1 + [r]x / 2 + (1/t^2 - cot(t/2) / (2 t)) [r]x^2, t = |r|, and dp/dt = exp([r]x) v.
    """
    for i in range(K[NODES]):
        kind, d = K[K[NODE] + 6 * i + 1], K[K[NODE] + 6 * i + 2]
        if kind not in (SPHERICAL, FREE):
            continue
        turn = d + 3 if kind == FREE else d
        r, w = vector(F, np.uint64(q + turn)), vector(F, np.uint64(out + turn))
        square = dot(r, r)
        e, f, g = 1.0 / 12.0 + square / 720.0, 1.0 - square / 6.0, 0.5 - square / 24.0
        if square > 1e-4:
            angle = sqrt(square)
            e = 1.0 / square - 0.5 / (angle * tan(0.5 * angle))
            f, g = sin(angle) / angle, (1.0 - cos(angle)) / square
        once = cross(r, w)
        rate = add(w, add(scale(once, 0.5), scale(cross(r, once), e)))
        for c in range(3):
            F[out + turn + c] = rate[c]
        if kind == FREE:
            x = vector(F, np.uint64(out + d))
            once = cross(r, x)
            moved = add(x, add(scale(once, f), scale(cross(r, once), g)))
            for c in range(3):
                F[out + d + c] = moved[c]


@kernel
def wrap_rotations(K, F, q):
    """Take whole turns out of rotation vectors before they reach their singularity at |r| = 2 pi."""
    for i in range(K[NODES]):
        kind, d = K[K[NODE] + 6 * i + 1], K[K[NODE] + 6 * i + 2]
        if kind in (SPHERICAL, FREE):
            o = q + (d + 3 if kind == FREE else d)
            angle = sqrt(F[o] * F[o] + F[o + 1] * F[o + 1] + F[o + 2] * F[o + 2])
            if angle > 1.5 * pi:
                for c in range(3):
                    F[o + c] *= 1.0 - 2.0 * pi / angle


@kernel
def actuator_value(K, F, a, x):
    """Return N_a x: what actuator a makes of tree coordinates at F[x]."""
    d, row = K[K[DRIVEN] + a], K[COUPLING] + a * K[COUNT]
    if d >= 0:
        return F[row + d] * F[x + d]
    value = 0.0
    for j in range(K[COUNT]):
        value += F[row + j] * F[x + j]
    return value


@kernel
def actuator_force(K, F, a, tau, out):
    """Add N_a^T tau to tree forces at F[out]."""
    d, row = K[K[DRIVEN] + a], K[COUPLING] + a * K[COUNT]
    if d >= 0:
        F[out + d] += F[row + d] * tau
        return
    for j in range(K[COUNT]):
        F[out + j] += F[row + j] * tau


@kernel
def link_force(K, F, i, force, moment, out):
    """Add to tree forces at F[out] what a wrench on node i does, given at its origin and in its axes."""
    o = place(K, RECORDS) + slot(i + 1, RECORD)
    a, b, c = vector(F, o), vector(F, o + U3), vector(F, o + U6)
    f = (dot(a, force), dot(b, force), dot(c, force))
    n = add((dot(a, moment), dot(b, moment), dot(c, moment)), cross(vector(F, o + ORIGIN), f))
    for e in range(K[K[NODE] + 6 * i + 5]):
        d = K[K[SUPPORT] + i * K[COUNT] + e]
        t = place(K, TWISTS) + slot(d, 6)
        F[out + d] += dot(n, vector(F, t)) + dot(f, vector(F, t + U3))
