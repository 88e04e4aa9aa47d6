"""Compiled loop closure on the packed arrays: residuals, Jacobian and velocity bias of every cut, and the factors it needs.

The equations are those of `mechanics.loop_kernels`, which follows whole motions; here they are read from the frames and twists
that the equation of motion of one sample has just written, so that a simulation computes them once.
"""

from __future__ import annotations

import numpy as np

from dynident.mechanics.kernels import add, cross, dot, scale
from dynident.mechanics.kernels import sample_kernel as kernel
from dynident.mechanics.packed import BIAS, COUNT, NODE, ORIGIN, RECORD, RECORDS, SUPPORT, TWIST, TWISTS
from dynident.mechanics.sample_kernels import U1, U3, place, slot, turned, vector
from dynident.mechanism.loops import LINEAR as LINEAR_ROW
from dynident.mechanism.loops import POINT, SLIDE
from dynident.simulate.layout import (
    CUT,
    CUT_WIDTH,
    CUTS,
    DOF,
    JACOBIAN,
    LINEAR,
    MISSING,
    RIGHT,
)


@kernel
def minus(a, b):
    """Return a - b."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@kernel
def point_of(F, o, x):
    """Return where the point x of record o is; record 0 is the base."""
    return add(vector(F, o + ORIGIN), turned(F, o, x))


@kernel
def add_row(K, F, jac, node, moment, force, sign):
    """Add sign (moment . w_d + force . l_d) to the Jacobian row of all coordinates d that move a node."""
    if node < 0:
        return
    for e in range(K[K[NODE] + 6 * node + 5]):
        d = K[K[SUPPORT] + node * K[COUNT] + e]
        t = place(K, TWISTS) + slot(d, 6)
        F[jac + d] += sign * (dot(moment, vector(F, t)) + dot(force, vector(F, t + U3)))


@kernel
def closure_jacobian(K, F, q):
    """Write dPhi/dq into JACOBIAN and Phi into the last column of RIGHT, at the last pose (positions at F[q])."""
    nt, n = K[COUNT], K[DOF]
    xa, xb = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for i in range(K[MISSING]):
        cut = K[CUT] + 4 * i
        kind, a, b = K[cut], K[cut + 1], K[cut + 2]
        jac, residual = K[JACOBIAN] + i * nt, K[RIGHT] + i * (n + 1) + n
        c = np.uint64(K[CUTS] + CUT_WIDTH * i)
        if kind == LINEAR_ROW:
            value = -F[K[CUTS] + CUT_WIDTH * i + 12]
            for d in range(nt):
                x = F[K[LINEAR] + i * nt + d]
                F[jac + d] = x
                value += x * F[q + d]
            F[residual] = value
            continue
        for d in range(nt):
            F[jac + d] = 0.0
        oa, ob = place(K, RECORDS) + slot(a + 1, RECORD), place(K, RECORDS) + slot(b + 1, RECORD)
        if K[cut + 3] == 0:  # else the points are those of the row before
            xa, xb = point_of(F, oa, vector(F, c)), point_of(F, ob, vector(F, c + U3))
        if kind == POINT:
            e = vector(F, c + U3 + U3 + U3)
            F[residual] = dot(e, minus(xa, xb))
            ma, mb, f = cross(xa, e), cross(xb, e), e
        elif kind == SLIDE:
            u = turned(F, oa, vector(F, c + U3 + U3))
            F[residual] = dot(u, minus(xb, xa))
            ma = cross(u, xb)
            mb, f = ma, scale(u, -1.0)
        else:
            u, e = turned(F, oa, vector(F, c + U3 + U3)), turned(F, ob, vector(F, c + U3 + U3 + U3))
            F[residual] = dot(u, e)
            ma = cross(u, e)
            mb, f = ma, (0.0, 0.0, 0.0)
        add_row(K, F, jac, a, ma, f, 1.0)
        add_row(K, F, jac, b, mb, f, -1.0)


@kernel
def acceleration(K, F, o):
    """Return the acceleration bias (angular, linear) of record o, less the base's, which stands for gravity."""
    return vector(F, o + BIAS), minus(vector(F, o + BIAS + U3), vector(F, place(K, RECORDS) + BIAS + U3))


@kernel
def point_motion(K, F, o, x):
    """Return velocity and classical acceleration of the point x (base axes) of record o."""
    om, (al, ac) = vector(F, o + TWIST), acceleration(K, F, o)
    v = add(vector(F, o + TWIST + U3), cross(om, x))
    return v, add(ac, add(cross(al, x), cross(om, v)))


@kernel
def vector_motion(K, F, o, u):
    """Return first and second derivative of a vector u (base axes) fixed in record o."""
    om, (al, _) = vector(F, o + TWIST), acceleration(K, F, o)
    first = cross(om, u)
    return first, add(cross(al, u), cross(om, first))


@kernel
def closure_bias(K, F):
    """Write -Phi_dot_dot without accelerations into column 0 of RIGHT, from the motion of the last `mass_and_bias`."""
    n, m = K[DOF], K[MISSING]
    zero = (0.0, 0.0, 0.0)
    xa, va, aa, xb, vb, ab = zero, zero, zero, zero, zero, zero
    for i in range(m):
        cut = K[CUT] + 4 * i
        kind, a, b = K[cut], K[cut + 1], K[cut + 2]
        right = K[RIGHT] + i * (n + 1)
        F[right] = 0.0
        if kind == LINEAR_ROW:
            continue
        c = np.uint64(K[CUTS] + CUT_WIDTH * i)
        oa, ob = place(K, RECORDS) + slot(a + 1, RECORD), place(K, RECORDS) + slot(b + 1, RECORD)
        if K[cut + 3] == 0:
            xa, xb = point_of(F, oa, vector(F, c)), point_of(F, ob, vector(F, c + U3))
            va, aa = point_motion(K, F, oa, xa)
            vb, ab = point_motion(K, F, ob, xb)
        e = vector(F, c + U3 + U3 + U3)
        if kind == POINT:
            F[right] = -dot(e, minus(aa, ab))
            continue
        u = turned(F, oa, vector(F, c + U3 + U3))
        u1, u2 = vector_motion(K, F, oa, u)
        if kind == SLIDE:
            F[right] = -dot(u2, minus(xb, xa)) - 2.0 * dot(u1, minus(vb, va)) - dot(u, minus(ab, aa))
        else:
            e = turned(F, ob, e)
            e1, e2 = vector_motion(K, F, ob, e)
            F[right] = -dot(u2, e) - 2.0 * dot(u1, e1) - dot(u, e2)


@kernel
def factorise(F, K, lu, swap, n):
    """Overwrite the n x n matrix at F[lu] with its factors L U and write which row was swapped with each at K[swap].

    Behind those n integers lie n more: where the diagonal block of each row ends (the legs of a robot share no joint).
    Return the ratio of the smallest to the largest pivot with the sign of the determinant, 0 when singular.
    """
    lu, swap, n = np.uint64(lu), np.uint64(swap), np.uint64(n)
    smallest, largest, sign = np.inf, 0.0, 1.0
    for c in range(n):
        top, pivot, size, end = lu + c * n, c, abs(F[lu + c * n + c]), np.uint64(K[swap + n + c])
        for row in range(c + U1, end):
            if abs(F[lu + row * n + c]) > size:
                pivot, size = row, abs(F[lu + row * n + c])
        smallest, largest = min(smallest, size), max(largest, size)
        if not size > 1e-14:
            return 0.0
        K[swap + c] = np.int64(pivot)
        if pivot != c:
            sign = -sign
            other = lu + pivot * n
            for e in range(end):
                F[top + e], F[other + e] = F[other + e], F[top + e]
        if F[top + c] < 0.0:
            sign = -sign
        inverse = 1.0 / F[top + c]
        for row in range(c + U1, end):
            here = lu + row * n
            f = F[here + c]
            if f != 0.0:  # a cut is felt by few joints
                f *= inverse
                F[here + c] = f
                for e in range(c + U1, end):
                    F[here + e] -= f * F[top + e]
    return sign * smallest / largest


@kernel
def substitute(F, K, lu, swap, n, b, stride, width):
    """Overwrite `width` columns of the n rows at F[b], `stride` apart, with D^-1 times them, D as `factorise` left it."""
    lu, swap, n = np.uint64(lu), np.uint64(swap), np.uint64(n)
    b, stride, width = np.uint64(b), np.uint64(stride), np.uint64(width)
    for c in range(n):
        other = np.uint64(K[swap + c])
        if other != c:
            for e in range(width):
                F[b + c * stride + e], F[b + other * stride + e] = F[b + other * stride + e], F[b + c * stride + e]
    for c in range(n):
        for row in range(c + U1, np.uint64(K[swap + n + c])):
            f = F[lu + row * n + c]
            if f != 0.0:
                for e in range(width):
                    F[b + row * stride + e] -= f * F[b + c * stride + e]
    for r in range(n):
        c = n - U1 - r
        here = b + c * stride
        for g in range(c + U1, np.uint64(K[swap + n + c])):
            f = F[lu + c * n + g]
            if f != 0.0:
                for e in range(width):
                    F[here + e] -= f * F[b + g * stride + e]
        inverse = 1.0 / F[lu + c * n + c]
        for e in range(width):
            F[here + e] *= inverse
