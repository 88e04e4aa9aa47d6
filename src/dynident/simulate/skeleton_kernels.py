"""Compiled kinematics of a robot in a simulation, one sample at a time: tree, linear couplings and loops alike.

    v_t = G nu,    a_t = G nu_dot + b          G = 1 (tree), constant (couplings), or of the pose (loops)

All tree positions q_t are integrated with v_t, and put back on the closure once per step. That costs one evaluation per stage
instead of a Newton solve, and keeps the order of the method: off the closure by a stage's error, G is as smooth as on it.
"""

from __future__ import annotations

from math import cos, sin, sqrt, tan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynident.mechanics.kernels import add, cross, dot, kernel, scale
from dynident.mechanics.loop_kernels import biases, equations, newton
from dynident.mechanics.matrix_kernels import factorise, substitute
from dynident.mechanics.sample_kernels import BIAS, ORIGIN, RECORD, TWIST, U1, U2, U3, U6, Sample, put, slot, vector
from dynident.mechanism.loops import LoopArrays
from dynident.mechanism.tree import FREE, SPHERICAL, TreeArrays

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

TREE, COUPLED, LOOPED = 0, 1, 2
SINGULAR = 1e-7  # pivot ratio of the closure below which the coordinates no longer determine the other joints
REACH = 0.5  # largest correction of a dependent coordinate within one step [rad or m]


class Skeleton(NamedTuple):
    """A mechanism for one sample at a time: k nodes, nt tree coordinates, n coordinates, m closure equations, a actuators.

    Parameters
    ----------
    mode : ndarray of int, (2,)
        TREE, COUPLED or LOOPED; and whether there are balls or free bodies.
    sample : Sample
        Tree packed for one sample.
    phi : ndarray
        Inertial parameters in node frames.
    base, motors : ndarray, (nt, nt)
        Constant inertias on top of the bodies': those of the joints, and those that belong to actuators.
    N, n0 : ndarray, (a, nt), (a,)
        rho = N q_t + n0.
    driven : ndarray of int, (a,)
        The only tree coordinate of an actuator, or -1 when it turns with several.
    G, g0 : ndarray, (nt, n), (nt,)
        v_t = G nu and, without loops, q_t = G x + g0.
    M, h, v, b : ndarray, (nt, nt), (nt,), (nt,), (nt,)
        Mass matrix and bias of the tree, tree velocities, closure bias.
    tree, loops : TreeArrays, LoopArrays
        For robots with loops.
    independent, dependent : ndarray of int
        Tree coordinates that are the robot's own, and those that follow.
    R, p, w, lin, T, A : ndarray
        Frames and twists as `loop_kernels` wants them.
    rel, r3, residual, J, D, B, swap : ndarray
        Work space of the closure.
    """

    mode: Integers
    sample: Sample
    phi: Array
    base: Array
    motors: Array
    N: Array
    n0: Array
    driven: Integers
    G: Array
    g0: Array
    M: Array
    h: Array
    v: Array
    b: Array
    tree: TreeArrays
    loops: LoopArrays
    independent: Integers
    dependent: Integers
    R: Array
    p: Array
    w: Array
    lin: Array
    T: Array
    A: Array
    rel: Array
    r3: Array
    residual: Array
    J: Array
    D: Array
    B: Array
    swap: Integers


@kernel
def unpack_pose(W, S, R, p, w, lin):
    """Copy frames and twists of the sample into the arrays of `loop_kernels`."""
    for i in range(p.shape[0]):
        o = slot(i + 1, RECORD)
        for row in range(3):
            p[i, row] = W[o + ORIGIN + np.uint64(row)]
            for col in range(3):
                R[i, row, col] = W[o + np.uint64(3 * row + col)]
    for d in range(w.shape[0]):
        for c in range(3):
            w[d, c] = S[slot(d, 6) + np.uint64(c)]
            lin[d, c] = S[slot(d, 6) + U3 + np.uint64(c)]


@kernel
def unpack_motion(W, gravity, T, A):
    """Copy twists and accelerations of the sample into the arrays of `loop_kernels`, which know no gravity."""
    for i in range(T.shape[0]):
        o = slot(i + 1, RECORD)
        for c in range(6):
            T[i, c] = W[o + TWIST + np.uint64(c)]
            A[i, c] = W[o + BIAS + np.uint64(c)]
        for c in range(3):
            A[i, 3 + c] += gravity[c]


@kernel
def closure_map(k, q):
    """Write G at the pose of the last `pose_tree`; return the signed pivot ratio of the closure, 0 when it is singular."""
    unpack_pose(k.sample.record, k.sample.S, k.R, k.p, k.w, k.lin)
    equations(k.tree, k.loops, q, k.R, k.p, k.w, k.lin, k.residual, k.J)
    m, n = k.dependent.size, k.independent.size
    for row in range(m):
        for c in range(m):
            k.D[row, c] = k.J[row, k.dependent[c]]
        for c in range(n):
            k.B[row, c] = -k.J[row, k.independent[c]]
    ratio = factorise(k.D, k.swap, m)
    if ratio == 0.0:
        return 0.0
    substitute(k.D, k.swap, k.B, m, n)
    for row in range(m):
        for c in range(n):
            k.G[k.dependent[row], c] = k.B[row, c]
    return ratio


@kernel
def closure_bias(k):
    """Write b of a robot with loops, from the motion of the last `mass_and_bias`."""
    unpack_motion(k.sample.record, k.tree.gravity, k.T, k.A)
    m = k.dependent.size
    biases(k.loops, k.R, k.p, k.T, k.A, k.residual)
    for row in range(m):
        k.B[row, 0] = -k.residual[row]
    substitute(k.D, k.swap, k.B, m, 1)
    for row in range(m):
        k.b[k.dependent[row]] = k.B[row, 0]


@kernel
def add_mass_times(M, x, out):
    """Add M x to `out`, reading the lower triangle of M."""
    n = x.size
    for i in range(n):
        value = out[i] + M[i, i] * x[i]
        for j in range(i):
            value += M[i, j] * x[j]
            out[j] += M[i, j] * x[i]
        out[i] = value


@kernel
def sandwich(M, G, work, out):
    """Write the lower triangle of G^T M G, reading the lower triangle of M; `work` is of the shape of G."""
    nt, n = G.shape
    for i in range(nt):
        for c in range(n):
            work[i, c] = M[i, i] * G[i, c]
        for j in range(i):
            x = M[i, j]
            if x != 0.0:  # branches of a tree do not feel each other
                for c in range(n):
                    work[i, c] += x * G[j, c]
                    work[j, c] += x * G[i, c]
    for r in range(n):
        for c in range(r + 1):
            value = 0.0
            for i in range(nt):
                value += G[i, r] * work[i, c]
            out[r, c] = value


@kernel
def coordinate_rates(k, q, out, row):
    """Overwrite the quasi-velocities of balls and free bodies in out[row] by rates of their coordinates.

    dr/dt = Jr(r)^-1 w with Jr^-1 = 1 + [r]x / 2 + (1/t^2 - cot(t/2) / (2 t)) [r]x^2, t = |r|, and dp/dt = exp([r]x) v.
    """
    node = k.sample.node
    for i in range(node.size // 6):
        kind, d = node[slot(i, 6) + U1], node[slot(i, 6) + U2]
        if kind not in (SPHERICAL, FREE):
            continue
        if kind == FREE:
            d += 3
        r, w = (q[d], q[d + 1], q[d + 2]), (out[row, d], out[row, d + 1], out[row, d + 2])
        square = dot(r, r)
        g = 1.0 / 12.0 + square / 720.0
        if square > 1e-4:
            angle = sqrt(square)
            g = 1.0 / square - 0.5 / (angle * tan(0.5 * angle))
        once = cross(r, w)
        rate = add(w, add(scale(once, 0.5), scale(cross(r, once), g)))
        for c in range(3):
            out[row, d + c] = rate[c]
        if kind == FREE:
            e = d - 3
            x = (out[row, e], out[row, e + 1], out[row, e + 2])
            f, g = 1.0 - square / 6.0, 0.5 - square / 24.0
            if square > 1e-12:
                angle = sqrt(square)
                f, g = sin(angle) / angle, (1.0 - cos(angle)) / square
            once = cross(r, x)
            moved = add(x, add(scale(once, f), scale(cross(r, once), g)))
            for c in range(3):
                out[row, e + c] = moved[c]


@kernel
def wrap_rotations(k, q):
    """Take whole turns out of rotation vectors before they reach their singularity at |r| = 2 pi."""
    node = k.sample.node
    for i in range(node.size // 6):
        kind, d = node[slot(i, 6) + U1], node[slot(i, 6) + U2]
        if kind in (SPHERICAL, FREE):
            d += 3 if kind == FREE else 0
            angle = sqrt(q[d] * q[d] + q[d + 1] * q[d + 1] + q[d + 2] * q[d + 2])
            if angle > 1.5 * np.pi:
                for c in range(3):
                    q[d + c] *= 1.0 - 2.0 * np.pi / angle


@kernel
def close_step(k, q):
    """Put tree positions back on the closure after a step, keeping the robot's own; return the pivot ratio, 0 when lost."""
    if k.mode[0] == TREE:
        return 1.0
    if k.mode[0] == LOOPED:
        return newton(
            k.tree, k.loops, k.dependent, q, k.R, k.p, k.rel, k.r3, k.w, k.lin, k.residual, k.J, k.D, k.swap, k.B, REACH
        )
    for i in range(k.dependent.size):
        d = k.dependent[i]
        value = k.g0[d]
        for c in range(k.independent.size):
            value += k.G[d, c] * q[k.independent[c]]
        q[d] = value
    return 1.0


@kernel
def actuator_value(k, a, x):
    """Return N_a x: what actuator a makes of tree coordinates x."""
    d = k.driven[a]
    if d >= 0:
        return k.N[a, d] * x[d]
    value = 0.0
    for j in range(k.N.shape[1]):
        value += k.N[a, j] * x[j]
    return value


@kernel
def actuator_force(k, a, tau, out):
    """Add N_a^T tau to tree forces `out`."""
    d = k.driven[a]
    if d >= 0:
        out[d] += k.N[a, d] * tau
        return
    for j in range(k.N.shape[1]):
        out[j] += k.N[a, j] * tau


@kernel
def link_force(s, i, force, moment, out):
    """Add to tree forces `out` what a wrench on node i does, given at its origin and in its axes."""
    W, o = s.record, slot(i + 1, RECORD)
    a, b, c = vector(W, o), vector(W, o + U3), vector(W, o + U6)
    f = (dot(a, force), dot(b, force), dot(c, force))
    n = add((dot(a, moment), dot(b, moment), dot(c, moment)), cross(vector(W, o + ORIGIN), f))
    for e in range(s.node[slot(i, 6) + np.uint64(5)]):
        d = s.support[slot(i, out.size) + np.uint64(e)]
        out[d] += dot(n, vector(s.S, slot(d, 6))) + dot(f, vector(s.S, slot(d, 6) + U3))
