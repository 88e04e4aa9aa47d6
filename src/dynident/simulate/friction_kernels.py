"""Compiled friction of a simulation: every law is a few rows of one table, evaluated one number at a time.

    f(q, v, z) = sum over rows                       kind, way (0 both directions, +1 or -1 one of them), up to eight numbers

A jump sgn(v) is replaced by clip(v / v_s), with v_s (1 / v_s is the ninth number) the speed that this friction alone takes
away within one step: a joint that should stick then stands within a step or two instead of chattering; under a load it
creeps, at most with v_s (laws with memory do not). Slopes of smooth laws are limited to the same 1 / v_s. Laws with memory
keep a deflection and a mode per row; they are advanced once per step by their exact solution (`dynident.friction.kernels`),
and from the start of the step to a stage in the same way.
"""

from __future__ import annotations

from math import cosh, exp, tanh

from dynident.friction.kernels import _dahl_piece, _gap, _lugre_piece, _pieces, _slip
from dynident.mechanics.kernels import sample_kernel as kernel
from dynident.simulate.layout import (
    COULOMB,
    DAHL,
    DEFLECTION,
    LAST_SPEED,
    LAW,
    LAW_FIRST,
    LAW_KIND,
    LAW_WIDTH,
    LUGRE,
    MAXWELL,
    MEMORY_MODE,
    OFFSET,
    POWER,
    SPRING,
    STICK_SLOPE,
    STRIBECK,
    TANH,
    VISCOUS,
)


@kernel
def clip(x, limit):
    """Return x within +-limit."""
    return min(max(x, -limit), limit)


@kernel
def stribeck(speed, fc, fs, vs, delta):
    """Return the Stribeck curve fc + (fs - fc) exp(-(speed / vs)^delta) without sign."""
    return fc + (fs - fc) * exp(-min((speed / vs) ** delta, 745.0))


@kernel
def static_force(F, r, kind, q, v):
    """Return the force of a law without memory, whose numbers are at F[r], at position q and speed v."""
    a = F[r]
    if kind == VISCOUS:
        return a * v
    if kind == COULOMB:
        return a * clip(v * F[r + STICK_SLOPE], 1.0)
    if kind == OFFSET:
        return a
    if kind == SPRING:
        return a * q
    if kind == TANH:
        return a * tanh(F[r + 1] * v)
    if kind == STRIBECK:
        return clip(v * F[r + STICK_SLOPE], 1.0) * stribeck(abs(v), a, F[r + 1], F[r + 2], F[r + 3])
    if kind == POWER:
        return a * v * abs(v) ** (F[r + 1] - 1.0)
    return (a + F[r + 1] / cosh(clip(F[r + 2] * v, 700.0))) * tanh(F[r + 3] * v)


@kernel
def memory_force(F, r, kind, z, mode, v):
    """Return the force of a law with memory at deflection z, mode and speed v."""
    force = F[r] * z
    if kind == LUGRE:
        force += F[r + 1] * (v - F[r] * abs(v) * z / stribeck(abs(v), F[r + 2], F[r + 3], F[r + 4], F[r + 5]))
    elif kind == MAXWELL and F[r + 2] != 0.0:
        rate = v
        if mode != 0.0:
            g = stribeck(abs(v), F[r + 4], F[r + 5], F[r + 6], F[r + 7])
            rate = F[r + 3] * (mode * F[r + 1] - F[r] * z / g) / F[r]
        force += F[r + 2] * rate
    return force


@kernel
def maxwell_piece(F, r, z, mode, v0, v1, dt):
    """Return deflection and mode of a Maxwell slip element after a piece in which the speed keeps its sign."""
    k, share, attraction, fc, fs, vs, delta = F[r], F[r + 1], F[r + 3], F[r + 4], F[r + 5], F[r + 6], F[r + 7]
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
def memory_piece(F, r, kind, z, mode, v0, v1, dt):
    """Return deflection and mode after a piece in which the speed keeps its sign."""
    if kind == DAHL:
        return _dahl_piece(z, 0.5 * (v0 + v1) * dt, F[r], F[r + 1], F[r + 2]), mode
    if kind == LUGRE:
        return _lugre_piece(z, v0, v1, dt, F[r], F[r + 2], F[r + 3], F[r + 4], F[r + 5]), mode
    return maxwell_piece(F, r, z, mode, v0, v1, dt)


@kernel
def memory_step(F, r, kind, v1, dt):
    """Return deflection and mode dt after the start of the step, the speed going linearly from what it was then to v1."""
    z, mode, v0 = F[r + DEFLECTION], F[r + MEMORY_MODE], F[r + LAST_SPEED]
    vs = F[r + 4] if kind == LUGRE else (F[r + 6] if kind == MAXWELL else 1e30)
    count = _pieces(v0, v1, vs)
    dt, slope = dt / count, (v1 - v0) / count
    for i in range(count):
        a, b = v0 + slope * i, v0 + slope * (i + 1)
        if a * b < 0.0:
            part = dt * a / (a - b)
            z, mode = memory_piece(F, r, kind, z, mode, a, 0.0, part)
            z, mode = memory_piece(F, r, kind, z, mode, 0.0, b, dt - part)
        elif a + b != 0.0:
            z, mode = memory_piece(F, r, kind, z, mode, a, b, dt)
    return z, mode


@kernel
def force_of(K, F, owner, dt, q, v):
    """Return the friction of an owner at position q and speed v, a time dt after the start of the step."""
    total, first, kinds, laws = 0.0, K[LAW_FIRST] + owner, K[LAW_KIND], K[LAW]
    for i in range(K[first], K[first + 1]):
        kind, r = K[kinds + 2 * i], laws + LAW_WIDTH * i
        if kind < DAHL:
            if v * K[kinds + 2 * i + 1] >= 0.0:
                total += static_force(F, r, kind, q, v)
        elif dt > 0.0:
            z, mode = memory_step(F, r, kind, v, dt)
            total += memory_force(F, r, kind, z, mode, v)
        else:
            total += memory_force(F, r, kind, F[r + DEFLECTION], F[r + MEMORY_MODE], v)
    return total


@kernel
def advance_owner(K, F, owner, dt, v):
    """Move the bristles of an owner over a step dt at whose end its speed is v; dt = 0 keeps the speed only, to start a run."""
    for i in range(K[K[LAW_FIRST] + owner], K[K[LAW_FIRST] + owner + 1]):
        kind, r = K[K[LAW_KIND] + 2 * i], K[LAW] + LAW_WIDTH * i
        if kind >= DAHL:
            if dt > 0.0:
                F[r + DEFLECTION], F[r + MEMORY_MODE] = memory_step(F, r, kind, v, dt)
            F[r + LAST_SPEED] = v
