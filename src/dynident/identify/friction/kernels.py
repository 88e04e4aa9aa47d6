"""Compiled steps of the continuous-discrete extended Kalman filter of one axis (document 0 eqs. 30-38).

Parameters p = [m, Qa, Qb, off, Bv, Bf_1 .. Bf_n, log w_1 .. log w_n]; the acceleration is

    a = [tau - Qa cos q + Qb sin q - off - Bv v - sum_i Bf_i tanh(w_i v)] / m.

State x = [q, v, p[free]]. Only the first two rows of its transition differ from the unit matrix, so one step costs a few
hundred operations.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: Product of the stiffness |da/dv| and the step of integration, and the largest number of such steps per sample.
STIFF = 0.3
MOST = 64

compiled = njit(cache=True, nogil=True, error_model="numpy")


@compiled
def acceleration(q, v, tau, p, terms, grad):
    """Acceleration; grad is filled with its derivatives [da/dq, da/dv, da/dp]."""
    inverse = 1.0 / p[0]
    cos, sin = np.cos(q), np.sin(q)
    force = tau - p[1] * cos + p[2] * sin - p[3] - p[4] * v
    slope = p[4]
    grad[3], grad[4], grad[5], grad[6] = -cos * inverse, sin * inverse, -inverse, -v * inverse
    for i in range(terms):
        w = np.exp(p[5 + terms + i])
        th = np.tanh(w * v)
        bell = 1.0 - th * th
        force -= p[5 + i] * th
        slope += p[5 + i] * w * bell
        grad[7 + i] = -th * inverse
        grad[7 + terms + i] = -p[5 + i] * v * w * bell * inverse
    a = force * inverse
    grad[0] = (p[1] * sin + p[2] * cos) * inverse
    grad[1] = -slope * inverse
    grad[2] = -a * inverse
    return a


@compiled
def predict(x, P, p, free, terms, Q, tau, dt, grad):
    """Advance state and covariance by dt with the effort held: dx/dt = f, dP/dt = F P + P F^T + Q."""
    n = x.size
    acceleration(x[0], x[1], tau, p, terms, grad)
    steps = min(MOST, 1 + int(abs(grad[1]) * dt / STIFF))
    h = dt / steps
    top = np.empty(n)
    low = np.empty(n)
    for _ in range(steps):
        a0 = acceleration(x[0], x[1], tau, p, terms, grad)
        qm, vm = x[0] + 0.5 * h * x[1], x[1] + 0.5 * h * a0
        am = acceleration(qm, vm, tau, p, terms, grad)
        x[0] += h * vm
        x[1] += h * am
        # Transition rows of q and v to second order, F = [[0, 1, 0], [aq, av, ap], [0, 0, 0]] at the middle of the step.
        aq, av = grad[0], grad[1]
        f00, f01 = 1.0 + 0.5 * h * h * aq, h + 0.5 * h * h * av
        f10, f11 = h * aq + 0.5 * h * h * av * aq, 1.0 + h * av + 0.5 * h * h * (aq + av * av)
        s0, s1 = 0.5 * h * h, h + 0.5 * h * h * av
        for j in range(n):  # half of the noise enters before the transition and half after it: second order
            P[j, j] += 0.5 * h * Q[j]
        for j in range(n):
            u0, u1 = f00 * P[0, j] + f01 * P[1, j], f10 * P[0, j] + f11 * P[1, j]
            for k in range(free.size):
                g = grad[2 + free[k]]
                u0 += s0 * g * P[2 + k, j]
                u1 += s1 * g * P[2 + k, j]
            top[j], low[j] = u0, u1
        t0, t1, l1 = f00 * top[0] + f01 * top[1], f10 * top[0] + f11 * top[1], f10 * low[0] + f11 * low[1]
        for k in range(free.size):
            g = grad[2 + free[k]]
            t0 += s0 * g * top[2 + k]
            t1 += s1 * g * top[2 + k]
            l1 += s1 * g * low[2 + k]
        for j in range(2, n):
            P[0, j], P[j, 0], P[1, j], P[j, 1] = top[j], top[j], low[j], low[j]
        P[0, 0], P[0, 1], P[1, 0], P[1, 1] = t0, t1, t1, l1
        for j in range(n):
            P[j, j] += 0.5 * h * Q[j]


@compiled
def correct(x, P, i, y, R, gain):
    """Measurement of state i, Joseph form; returns the innovation over its standard deviation."""
    n = x.size
    S = P[i, i] + R
    e = y - x[i]
    for j in range(n):
        gain[j] = P[j, i] / S
    for j in range(n):
        x[j] += gain[j] * e
    # (1 - K H) P (1 - K H)^T + K R K^T, written out for one measured state.
    for j in range(n):
        if j != i:
            for k in range(j, n):
                if k != i:
                    P[j, k] += gain[j] * gain[k] * S - gain[j] * P[i, k] - P[j, i] * gain[k]
                    P[k, j] = P[j, k]
    for j in range(n):
        if j != i:
            P[j, i] = (1.0 - gain[i]) * (P[j, i] - gain[j] * P[i, i]) + gain[j] * gain[i] * R
            P[i, j] = P[j, i]
    P[i, i] = (1.0 - gain[i]) ** 2 * P[i, i] + gain[i] * gain[i] * R
    return e / np.sqrt(S)


@compiled
def sample(x, P, p, free, terms, Q, tau, dt, q, v, Rq, Rv, limit, grad, gain):
    """One sample: predict over dt, correct with the position and, where Rv > 0, the velocity."""
    if dt > 0.0:
        predict(x, P, p, free, terms, Q, tau, dt, grad)
    score = correct(x, P, 0, q, Rq, gain)
    if Rv > 0.0:
        correct(x, P, 1, v, Rv, gain)
    for k in range(free.size):
        j = free[k]
        value = x[2 + k]
        if j >= 5 + terms:  # transitions stay within the speeds that the data can show
            value = min(max(value, limit[0]), limit[1])
        elif j == 0:
            value = max(value, limit[2])
        x[2 + k] = value
        p[j] = value
    return score


@compiled
def run(t, tau, q, v, x, P, p, free, terms, Q, Rq, Rv, limit, every, history, spread, scores):
    """All samples of a record; the effort between two samples is their mean."""
    grad = np.zeros(7 + 2 * terms)
    gain = np.zeros(x.size)
    row = 0
    for k in range(t.size):
        dt = t[k] - t[k - 1] if k > 0 else 0.0
        held = 0.5 * (tau[k] + tau[k - 1]) if k > 0 else tau[k]
        scores[k] = sample(x, P, p, free, terms, Q, held, dt, q[k], v[k], Rq, Rv, limit, grad, gain)
        if not np.isfinite(x).all():
            return k
        if k % every == 0:
            history[row] = x
            for j in range(x.size):
                spread[row, j] = np.sqrt(max(P[j, j], 0.0))
            row += 1
    return -1
