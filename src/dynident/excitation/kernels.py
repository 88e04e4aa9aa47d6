"""The adjoint of the regressor recursion: derivatives of sum_dc B[d, c] Y[d, c] by q, v and a in one backward sweep.

Forward (mechanics.kernels): from parent to child, with R = P exp(u q) and r the child's pose in the parent's frame,

    w0 = R^T omega_p,   al0 = R^T alpha_p,   ac0 = R^T (a_p + alpha_p x r + omega_p x (omega_p x r))
    omega = w0 + u v,   alpha = al0 + u a + w0 x u v,   a = ac0 (+ u a + 2 w0 x u v for a sliding joint)
    w_d = R^T w_d,p,    l_d = R^T (l_d,p + w_d,p x r)                    Jacobian column of coordinate d

and the wanted sum is, with B[d, body] taken as the ten parameters of a make-believe body, sum_d w_d . n(B_d) + l_d . f(B_d).
Backward: a bar is the derivative of that sum. A turned vector x = R^T y has dx/dq = x x u, which is all that q does on a
turning joint; on a sliding one it moves r. Same layout in lanes of samples as the forward kernels.

At the end: distances of capsules along a motion.
"""

from __future__ import annotations

import numpy as np

from dynident.mechanics.kernels import (
    LANES,
    ROW1,
    ROW2,
    ROW3,
    ROW4,
    ROW5,
    ROW6,
    ROW7,
    ROW8,
    ROW9,
    add,
    at,
    cross,
    dot,
    gather,
    jacobian_columns,
    kernel,
    load,
    move,
    place,
    rotate,
    scale,
)
from dynident.mechanism.tree import PRISMATIC, REVOLUTE


@kernel
def raise_by(A, b, k, x):
    """Add a vector to rows 0..2 of the block at b, lane k."""
    A[b + k] += x[0]
    A[b + ROW1 + k] += x[1]
    A[b + ROW2 + k] += x[2]


@kernel
def tensor_times(B, k, x):
    """Return I x with I in rows 4..9 of B."""
    xx, xy, xz = B[ROW4 + k], B[ROW5 + k], B[ROW6 + k]
    yy, yz, zz = B[ROW7 + k], B[ROW8 + k], B[ROW9 + k]
    return (
        xx * x[0] + xy * x[1] + xz * x[2],
        xy * x[0] + yy * x[1] + yz * x[2],
        xz * x[0] + yz * x[1] + zz * x[2],
    )


@kernel
def body_bars(B, J, j, kin, o, Jbar, kinbar):
    """Add what one body with parameters B (ten rows) and one Jacobian column contribute to the bars."""
    for k in range(ROW1):
        w, lin = load(J, j, k), load(J, j + ROW3, k)
        om, al, ac = load(kin, o, k), load(kin, o + ROW3, k), load(kin, o + ROW6, k)
        m, h = B[k], load(B, ROW1, k)
        inner = tensor_times(B, k, om)
        force = add(scale(ac, m), add(cross(al, h), cross(om, cross(om, h))))
        moment = add(cross(h, ac), add(tensor_times(B, k, al), cross(om, inner)))
        raise_by(Jbar, j, k, moment)
        raise_by(Jbar, j + ROW3, k, force)
        bar = add(cross(cross(om, h), lin), cross(h, cross(lin, om)))
        bar = add(bar, add(cross(inner, w), tensor_times(B, k, cross(w, om))))
        raise_by(kinbar, o, k, bar)
        raise_by(kinbar, o + ROW3, k, add(cross(h, lin), tensor_times(B, k, w)))
        raise_by(kinbar, o + ROW6, k, add(scale(lin, m), cross(w, h)))


@kernel
def node_bars(tree, i, n, V, A, R, r, kin, J, kinbar, Jbar, Qbar, Vbar, Abar):
    """Pass the bars of node i to its coordinate and to its parent."""
    kind, p = tree.kind[i], tree.parent[i]
    d, o, ro, rb = at(tree.dof[i], 1), at(i, 9), at(i, 9), at(i, 3)
    u = (tree.axis[i, 0], tree.axis[i, 1], tree.axis[i, 2])
    P = tree.rotation[i]
    slide = (
        P[0, 0] * u[0] + P[0, 1] * u[1] + P[0, 2] * u[2],
        P[1, 0] * u[0] + P[1, 1] * u[1] + P[1, 2] * u[2],
        P[2, 0] * u[0] + P[2, 1] * u[1] + P[2, 2] * u[2],
    )
    turning, sliding = kind == REVOLUTE, kind == PRISMATIC
    for k in range(ROW1):
        w0, al0, ac0 = load(kin, o, k), load(kin, o + ROW3, k), load(kin, o + ROW6, k)
        bw, bal, bac = load(kinbar, o, k), load(kinbar, o + ROW3, k), load(kinbar, o + ROW6, k)
        qbar, rbar = 0.0, (0.0, 0.0, 0.0)
        if turning:
            wj = scale(u, V[d + k])
            w0 = add(w0, scale(wj, -1.0))
            al0 = add(add(al0, scale(u, -A[d + k])), cross(wj, w0))
            Vbar[d + k] = dot(u, add(bw, cross(bal, w0)))
            Abar[d + k] = dot(u, bal)
            bw = add(bw, cross(wj, bal))
            qbar = dot(bw, cross(w0, u)) + dot(bal, cross(al0, u)) + dot(bac, cross(ac0, u))
        elif sliding:
            vj = scale(u, V[d + k])
            Vbar[d + k] = 2.0 * dot(u, cross(bac, w0))
            Abar[d + k] = dot(u, bac)
            bw = add(bw, scale(cross(vj, bac), 2.0))
        if p >= 0:
            m = at(p, 9)
            om, al, way = load(kin, m, k), load(kin, m + ROW3, k), load(r, rb, k)
            e = rotate(R, ro, k, bac)
            raise_by(kinbar, m + ROW6, k, e)
            raise_by(kinbar, m + ROW3, k, add(rotate(R, ro, k, bal), cross(way, e)))
            bar = add(cross(cross(om, way), e), cross(way, cross(e, om)))
            raise_by(kinbar, m, k, add(rotate(R, ro, k, bw), bar))
            rbar = add(cross(e, al), cross(om, cross(om, e)))
        if turning:
            Qbar[d + k] = qbar
        elif sliding:
            Qbar[d + k] = dot(slide, rbar)
    if p < 0:
        return
    for s in range(tree.support_count[p]):
        c = tree.support[p, s]
        b, m = at(i * n + c, 6), at(p * n + c, 6)
        for k in range(ROW1):
            bw, bl = load(Jbar, b, k), load(Jbar, b + ROW3, k)
            w = load(J, m, k)
            g = rotate(R, ro, k, bl)
            if turning:
                Qbar[d + k] += dot(bw, cross(load(J, b, k), u)) + dot(bl, cross(load(J, b + ROW3, k), u))
            elif sliding:
                Qbar[d + k] += dot(slide, cross(g, w))
            raise_by(Jbar, m + ROW3, k, g)
            raise_by(Jbar, m, k, add(rotate(R, ro, k, bw), cross(load(r, rb, k), g)))


@kernel
def regressor_pullback(tree, q, v, a, slot, W, Qout, Vout, Aout):
    """Write the derivatives of sum W[d, slot[c], s] Y[s, d, c] by q, v, a into (N, n) arrays; slot[c] < 0 leaves a column out.

    For trees of turning, sliding and fixed nodes.
    """
    n, nodes = q.shape[1], tree.parent.size
    Q, V, A = np.empty(n * LANES), np.empty(n * LANES), np.empty(n * LANES)
    Qbar, Vbar, Abar = np.zeros(n * LANES), np.zeros(n * LANES), np.zeros(n * LANES)
    R, r = np.empty(nodes * 9 * LANES), np.empty(nodes * 3 * LANES)
    kin, J = np.empty(nodes * 9 * LANES), np.empty(nodes * n * 6 * LANES)
    kinbar, Jbar = np.empty(nodes * 9 * LANES), np.empty(nodes * n * 6 * LANES)
    B = np.zeros(10 * LANES)
    for s in range(0, q.shape[0], LANES):
        gather(q, s, Q)
        gather(v, s, V)
        gather(a, s, A)
        valid = min(LANES, q.shape[0] - s)
        kinbar[:] = 0.0
        Jbar[:] = 0.0
        for i in range(nodes):
            place(tree, i, Q, R, r)
            move(tree, i, V, A, R, r, kin)
            jacobian_columns(tree, i, n, R, r, J)
        for i in range(nodes - 1, -1, -1):
            c = tree.column[i]
            if c >= 0:
                for j in range(tree.support_count[i]):
                    d = tree.support[i, j]
                    for e in range(10):
                        if slot[c + e] >= 0:
                            B[e * LANES : e * LANES + valid] = W[d, slot[c + e], s : s + valid]
                        else:
                            B[e * LANES : e * LANES + valid] = 0.0
                    body_bars(B, J, at(i * n + d, 6), kin, at(i, 9), Jbar, kinbar)
            node_bars(tree, i, n, V, A, R, r, kin, J, kinbar, Jbar, Qbar, Vbar, Abar)
        for k in range(valid):
            for d in range(n):
                Qout[s + k, d] = Qbar[d * LANES + k]
                Vout[s + k, d] = Vbar[d * LANES + k]
                Aout[s + k, d] = Abar[d * LANES + k]


@kernel
def segment_gap(T, i, j):
    """Return the distance of segments i and j of T (capsules, two ends, 3) (Ericson, Real-Time Collision Detection, 5.1.9)."""
    a = b = c = e = f = 0.0
    for k in range(3):
        u, w, r = T[i, 1, k] - T[i, 0, k], T[j, 1, k] - T[j, 0, k], T[i, 0, k] - T[j, 0, k]
        a += u * u
        b += u * w
        c += u * r
        e += w * w
        f += w * r
    tiny = 1e-14
    s = t = 0.0
    det = a * e - b * b
    if det > tiny:
        s = min(max((b * f - c * e) / det, 0.0), 1.0)
    if e > tiny:
        t = (b * s + f) / e
    held = min(max(t, 0.0), 1.0)
    if a <= tiny:
        s = 0.0
    elif t != held or e <= tiny:
        s = min(max((b * held - c) / a, 0.0), 1.0)
    square = 0.0
    for k in range(3):
        x = T[i, 0, k] + s * (T[i, 1, k] - T[i, 0, k]) - T[j, 0, k] - held * (T[j, 1, k] - T[j, 0, k])
        square += x * x
    return np.sqrt(square)


@kernel
def capsule_gaps(R, p, node, ends, pairs, out):
    """Write the distance of the axes of every pair of capsules (N, pairs); ends (k, 2, 3) are in the frames of their nodes."""
    T = np.empty_like(ends)
    for s in range(R.shape[0]):
        for i in range(ends.shape[0]):
            n = node[i]
            for h in range(2):
                for k in range(3):
                    if n < 0:
                        T[i, h, k] = ends[i, h, k]
                    else:
                        x = p[s, n, k] + R[s, n, k, 0] * ends[i, h, 0] + R[s, n, k, 1] * ends[i, h, 1]
                        T[i, h, k] = x + R[s, n, k, 2] * ends[i, h, 2]
        for m in range(pairs.shape[0]):
            out[s, m] = segment_gap(T, pairs[m, 0], pairs[m, 1])
