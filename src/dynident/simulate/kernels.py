"""The compiled simulation: control ticks, integration steps, records, until the end or until something breaks."""

from __future__ import annotations

import numpy as np

from dynident.mechanics.kernels import kernel
from dynident.mechanics.sample_kernels import INERTIA, U1, U2, U3
from dynident.simulate.control_kernels import RHO, RHO_V, control
from dynident.simulate.plant_kernels import (
    COUPLED,
    EMF,
    FINE,
    IDEAL,
    LOST_CLOSURE,
    PLAY,
    RATIO,
    RESISTANCE,
    S_CURRENT,
    S_OMEGA,
    S_RHO,
    SINGULAR_MASS,
    UNSTABLE,
    advance_bristles,
    derivative,
)
from dynident.simulate.friction_kernels import SPRING, clip
from dynident.simulate.skeleton_kernels import SINGULAR, close_step, coordinate_rates, wrap_rotations

RK4, MIDPOINT, EULER = 0, 1, 2


@kernel
def energy(P, X):
    """Return kinetic and potential energy at the state of the last evaluation: bodies, motors, shaft masses, shafts, springs."""
    k, y, laws = P.body, X.y, P.laws
    nt, n = k.G.shape
    c = P.shaft.shape[0]
    kinetic = 0.0
    for i in range(nt):
        for j in range(i + 1):
            value = k.M[i, j]
            if P.method[0] != COUPLED:
                value += k.motors[i, j]
            kinetic += (0.5 if i == j else 1.0) * value * k.v[i] * k.v[j]
    g, W = k.tree.gravity, k.sample.record
    potential = -(g[0] * W[INERTIA + U1] + g[1] * W[INERTIA + U2] + g[2] * W[INERTIA + U3])
    for f in range(laws.form.size):
        for r in range(laws.first[f], laws.first[f + 1]):
            if laws.kind[r] == SPRING:
                q = 0.0
                for j in range(nt):
                    q += laws.rows[f, j] * y[j]
                potential += 0.5 * laws.values[r, 0] * q * q
    for a in range(P.drive.shape[0]):
        first, last = P.feed[a, 2], P.feed[a, 2] + P.feed[a, 1]
        for e in range(first, last):
            kinetic += 0.5 * P.shaft[e, 0] * y[nt + n + c + e] ** 2
            behind = y[nt + n + e + 1] if e < last - 1 else P.drive[a, RATIO] * P.signal[S_RHO, a]
            twist = y[nt + n + e] - behind
            if e == last - 1:
                twist -= clip(twist, P.drive[a, PLAY])
            potential += 0.5 * P.shaft[e, 1] * twist * twist
    return kinetic, potential


@kernel
def write_record(P, X, K, rates, out, i):
    """Write row i of the record: what is true at the start of this step (columns as in `simulate.plant.Columns`)."""
    k = P.body
    nt, n = k.G.shape
    m, forms = P.drive.shape[0], P.rub.size
    for c in range(n):
        out[i, c] = X.y[k.independent[c]]
        out[i, n + c] = X.y[nt + c]
        out[i, 2 * n + c] = rates[0, nt + c]
    o = 3 * n
    for j in range(nt):
        out[i, o + j] = X.y[j]
    o += nt
    for row in range(P.signal.shape[0]):
        for a in range(m):
            out[i, o + a] = P.signal[row, a]
        o += m
    for a in range(m):
        voltage = X.command[a]
        if P.feed[a, 0] == IDEAL:
            voltage = P.drive[a, RESISTANCE] * P.signal[S_CURRENT, a] + P.drive[a, EMF] * P.signal[S_OMEGA, a]
        out[i, o + a] = voltage
        out[i, o + m + a] = K.loop[RHO, a]
        out[i, o + 2 * m + a] = K.loop[RHO_V, a]
    o += 3 * m
    for f in range(forms):
        out[i, o + f] = P.rub[f]
    o += forms
    out[i, o], out[i, o + 1] = energy(P, X)


@kernel
def finish_euler(P, X, rates, h):
    """Make a semi-implicit Euler step: velocities first, then positions with the new velocities."""
    k, y = P.body, X.y
    nt, n = k.G.shape
    c = P.shaft.shape[0]
    for r in range(nt, nt + n):
        y[r] += h * rates[0, r]
    for i in range(nt):
        value = 0.0
        for e in range(n):
            value += k.G[i, e] * y[nt + e]
        rates[0, i] = value
    if k.mode[1] != 0:
        coordinate_rates(k, y, rates, 0)
    for i in range(nt):
        y[i] += h * rates[0, i]
    for e in range(nt + n + c, nt + n + 2 * c):
        y[e] += h * rates[0, e]
        y[e - c] += h * y[e]
    for e in range(nt + n + 2 * c, y.size):
        y[e] += h * rates[0, e]


@kernel
def run(P, X, inputs, C, K, W, steps, h, integrator, stage, rates, every, record, limit):
    """Advance the robot by `steps` steps of length h; return (FINE or why it stopped, step, coordinate).

    `stage` (size,) and `rates` (4, size) are work space. Every `every` steps the truth at the start of the step goes into row
    step / every of `record`, if there is one. Velocities beyond `limit`, or not finite, count as unstable.
    """
    nt, n = P.body.G.shape
    size, c = X.y.size, P.shaft.shape[0]
    first = int(X.last[n + 1])
    memory = X.bristle.shape[0] > 0
    stages = 4 if integrator == RK4 else (2 if integrator == MIDPOINT else 1)
    y = X.y
    for step in range(first, first + steps):
        status = control(P, X, C, K, W, step, h)
        if status != FINE:
            return status, step, -1
        if memory and step == 0:
            advance_bristles(P, X, 0.0)
        for j in range(stages):
            share = 0.0 if j == 0 else (1.0 if j == 3 else 0.5)
            for i in range(size):
                stage[i] = y[i] + (share * h * rates[j - 1, i] if j > 0 else 0.0)
            status = derivative(P, X, inputs, stage, step + share, share * h, j, rates)
            if status != FINE:
                return status, step, -1
            if j == 0 and step % every == 0 and step // every < record.shape[0]:
                write_record(P, X, K, rates, record, step // every)
        for r in range(n):
            X.last[r] = rates[0, nt + r]
        if integrator == RK4:
            for i in range(size):
                y[i] += h / 6.0 * (rates[0, i] + 2.0 * (rates[1, i] + rates[2, i]) + rates[3, i])
        elif integrator == MIDPOINT:
            for i in range(size):
                y[i] += h * rates[1, i]
        else:
            finish_euler(P, X, rates, h)
        for i in range(nt, size):
            if (i < nt + n or i >= nt + n + c) and not abs(y[i]) < limit:
                return UNSTABLE, step, i - nt
        side = close_step(P.body, y)
        if abs(side) < SINGULAR or side * X.last[n] < 0.0:
            return LOST_CLOSURE, step, -1
        X.last[n] = side
        if P.body.mode[1] != 0:
            wrap_rotations(P.body, y)
        if memory:
            advance_bristles(P, X, h)
        X.last[n + 1] = step + 1
    return FINE, first + steps, -1
