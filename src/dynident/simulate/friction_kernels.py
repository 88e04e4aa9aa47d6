"""Compiled friction of a simulation: every law is a few rows of one table, evaluated one number at a time.

    f(q, v, z) = sum over rows                       kind, way (0 both directions, +1 or -1 one of them), up to eight numbers

A jump sgn(v) is replaced by clip(v / v_s), with v_s (last number of the row) the speed that this friction alone takes away
within one step: a joint that should stick then comes to rest within a step or two instead of chattering. Slopes of smooth laws
are limited to the same 1 / v_s. Laws with memory keep a deflection and a mode per row; they are advanced once per step by their
exact solution (`dynident.friction.kernels`), and between the start of the step and a stage in the same way.
"""

from __future__ import annotations

from math import cosh, exp, tanh

from dynident.friction.kernels import _dahl_piece, _gap, _lugre_piece, _pieces, _slip
from dynident.mechanics.kernels import kernel

OFFSET, VISCOUS, COULOMB, POWER, STRIBECK, TANH, SMOOTH, SPRING, DAHL, LUGRE, MAXWELL = range(11)
WIDTH = 9  # numbers per row; the last is v_s


@kernel
def clip(x, limit):
    """Return x within +-limit."""
    return min(max(x, -limit), limit)


@kernel
def stribeck(speed, fc, fs, vs, delta):
    """Return the Stribeck curve fc + (fs - fc) exp(-(speed / vs)^delta) without sign."""
    return fc + (fs - fc) * exp(-min((speed / vs) ** delta, 745.0))


@kernel
def static_force(kind, law, r, q, v):
    """Return the force of row r of a law without memory, at position q and speed v."""
    a = law[r, 0]
    if kind == VISCOUS:
        return a * v
    if kind == COULOMB:
        return a * clip(v / law[r, 8], 1.0)
    if kind == OFFSET:
        return a
    if kind == SPRING:
        return a * q
    if kind == TANH:
        return a * tanh(law[r, 1] * v)
    if kind == STRIBECK:
        return clip(v / law[r, 8], 1.0) * stribeck(abs(v), a, law[r, 1], law[r, 2], law[r, 3])
    if kind == POWER:
        return a * v * abs(v) ** (law[r, 1] - 1.0)
    return (a + law[r, 1] / cosh(clip(law[r, 2] * v, 700.0))) * tanh(law[r, 3] * v)


@kernel
def memory_force(kind, law, r, z, mode, v):
    """Return the force of row r of a law with memory, at deflection z, mode and speed v."""
    if kind == DAHL:
        return law[r, 0] * z
    if kind == LUGRE:
        g = stribeck(abs(v), law[r, 2], law[r, 3], law[r, 4], law[r, 5])
        return law[r, 0] * z + law[r, 1] * (v - law[r, 0] * abs(v) * z / g)
    force = law[r, 0] * z
    if law[r, 2] != 0.0:
        rate = v
        if mode != 0.0:
            g = stribeck(abs(v), law[r, 4], law[r, 5], law[r, 6], law[r, 7])
            rate = law[r, 3] * (mode * law[r, 1] - law[r, 0] * z / g) / law[r, 0]
        force += law[r, 2] * rate
    return force


@kernel
def maxwell_piece(law, r, z, mode, v0, v1, dt):
    """Return deflection and mode of a Maxwell slip element after a piece in which the speed keeps its sign."""
    k, share, attraction, fc, fs, vs, delta = law[r, 0], law[r, 1], law[r, 3], law[r, 4], law[r, 5], law[r, 6], law[r, 7]
    way = 1.0 if v0 + v1 > 0.0 else -1.0
    if mode != way or v0 == 0.0:
        mode = 0.0
    a, rest = v0, dt
    if mode == 0.0:
        if _gap(1.0, z, v0, v1, dt, way, k, share, fc, fs, vs, delta) > 0.0:
            return z + 0.5 * (v0 + v1) * dt, 0.0
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = 0.5 * (low + high)
            if _gap(middle, z, v0, v1, dt, way, k, share, fc, fs, vs, delta) > 0.0:
                low = middle
            else:
                high = middle
        z += dt * high * (v0 + 0.5 * high * (v1 - v0))
        mode = way
        a, rest = v0 + high * (v1 - v0), dt * (1.0 - high)
    if rest > 0.0:
        z = _slip(z, a, v1, rest, way, k, share, attraction, fc, fs, vs, delta)
    return z, mode


@kernel
def memory_piece(kind, law, r, z, mode, v0, v1, dt):
    """Return deflection and mode after a piece in which the speed keeps its sign."""
    if kind == DAHL:
        return _dahl_piece(z, 0.5 * (v0 + v1) * dt, law[r, 0], law[r, 1], law[r, 2]), mode
    if kind == LUGRE:
        return _lugre_piece(z, v0, v1, dt, law[r, 0], law[r, 2], law[r, 3], law[r, 4], law[r, 5]), mode
    return maxwell_piece(law, r, z, mode, v0, v1, dt)


@kernel
def memory_step(kind, law, r, z, mode, v0, v1, dt):
    """Return deflection and mode after dt, the speed going linearly from v0 to v1."""
    vs = law[r, 4] if kind == LUGRE else (law[r, 6] if kind == MAXWELL else 1e30)
    count = _pieces(v0, v1, vs)
    dt, slope = dt / count, (v1 - v0) / count
    for i in range(count):
        a, b = v0 + slope * i, v0 + slope * (i + 1)
        if a * b < 0.0:
            part = dt * a / (a - b)
            z, mode = memory_piece(kind, law, r, z, mode, a, 0.0, part)
            z, mode = memory_piece(kind, law, r, z, mode, 0.0, b, dt - part)
        elif a + b != 0.0:
            z, mode = memory_piece(kind, law, r, z, mode, a, b, dt)
    return z, mode


@kernel
def force_of(first, last, kinds, ways, law, bristle, speed, dt, q, v):
    """Return the friction of rows first..last at position q and speed v, a time dt after the start of the step.

    `bristle` (rows, 2) and `speed` (rows,) hold deflection, mode and speed at the start of the step.
    """
    total = 0.0
    for r in range(first, last):
        kind = kinds[r]
        if kind < DAHL:
            if v * ways[r] >= 0.0:
                total += static_force(kind, law, r, q, v)
        else:
            z, mode = bristle[r, 0], bristle[r, 1]
            if dt > 0.0:
                z, mode = memory_step(kind, law, r, z, mode, speed[r], v, dt)
            total += memory_force(kind, law, r, z, mode, v)
    return total


@kernel
def advance_rows(first, last, kinds, law, bristle, speed, dt, v):
    """Move the bristles of rows first..last over a step dt at whose end the speed is v, and keep that speed.

    With dt = 0 the speed is kept only: that starts a run.
    """
    for r in range(first, last):
        if kinds[r] >= DAHL:
            if dt > 0.0:
                z, mode = memory_step(kinds[r], law, r, bristle[r, 0], bristle[r, 1], speed[r], v, dt)
                bristle[r, 0] = z
                bristle[r, 1] = mode
            speed[r] = v
