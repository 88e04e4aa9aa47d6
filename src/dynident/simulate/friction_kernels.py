"""Compiled friction of a simulation: every law is a few rows of one table, evaluated one number at a time.

    f(q, v, z) = sum over rows                       kind, way (0 both directions, +1 or -1 one of them), up to eight numbers

Jumps sgn(v) of one owner add up to a level each way. Within a step an owner slides to one side, with that level, or sticks:
then the level is only the limit of a force that is solved for together with the accelerations (`hold_kernels`). A controller's
model has no such memory, there sgn(v) is clip(v / v_s) with v_s the speed that the friction takes away within one cycle. Slopes
of smooth laws are limited to what it takes away within one step.
Laws with memory keep a deflection and a mode per row; they are advanced once per step by their exact solution
(`bristle_kernels`), and from the start of the step to a stage in the same way.
"""

from __future__ import annotations

from math import cos, cosh, exp, sin, tanh

from dynident.mechanics.kernels import sample_kernel as kernel
from dynident.simulate.bristle_kernels import dahl_piece, gap, lugre_piece, pieces, slip
from dynident.simulate.layout import (
    COSINE,
    COULOMB,
    DAHL,
    DEFLECTION,
    DOWN,
    GRIP,
    GRIP_WIDTH,
    JUMPS,
    LAST_SPEED,
    LAW,
    LAW_FIRST,
    LAW_KIND,
    LAW_WIDTH,
    LOADED,
    LUGRE,
    MAXWELL,
    MEMORY_MODE,
    NOW,
    OFFSET,
    OWNERS,
    POWER,
    SIDE,
    SINE,
    SOFT,
    SPRING,
    STRIBECK,
    STUCK,
    TANH,
    UP,
    VISCOUS,
    WAVE_NUMBER,
    WAVED,
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
    """Return the force of a law without memory, whose numbers are at F[r], at position q and speed v; of a jump its level."""
    a = F[r]
    if kind == VISCOUS:
        return a * v
    if kind == COULOMB:
        return a
    if kind == OFFSET:
        return a
    if kind == SPRING:
        return a * q
    if kind == TANH:
        return a * tanh(F[r + 1] * v)
    if kind == STRIBECK:
        return stribeck(abs(v), a, F[r + 1], F[r + 2], F[r + 3])
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
        if gap(1.0, z, v0, v1, dt, way, k, share, fc, fs, vs, delta) > 0.0:
            return z + 0.5 * (v0 + v1) * dt, 0.0
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = 0.5 * (low + high)
            if gap(middle, z, v0, v1, dt, way, k, share, fc, fs, vs, delta) > 0.0:
                low = middle
            else:
                high = middle
        z += dt * high * (v0 + 0.5 * high * (v1 - v0))
        mode = way
        a, rest = v0 + high * (v1 - v0), dt * (1.0 - high)
    if rest > 0.0:
        z = slip(z, a, v1, rest, way, k, share, attraction, fc, fs, vs, delta)
    return z, mode


@kernel
def memory_piece(F, r, kind, z, mode, v0, v1, dt):
    """Return deflection and mode after a piece in which the speed keeps its sign."""
    if kind == DAHL:
        return dahl_piece(z, 0.5 * (v0 + v1) * dt, F[r], F[r + 1], F[r + 2]), mode
    if kind == LUGRE:
        return lugre_piece(z, v0, v1, dt, F[r], F[r + 2], F[r + 3], F[r + 4], F[r + 5]), mode
    return maxwell_piece(F, r, z, mode, v0, v1, dt)


@kernel
def memory_step(F, r, kind, v1, dt):
    """Return deflection and mode dt after the start of the step, the speed going linearly from what it was then to v1."""
    z, mode, v0 = F[r + DEFLECTION], F[r + MEMORY_MODE], F[r + LAST_SPEED]
    vs = F[r + 4] if kind == LUGRE else (F[r + 6] if kind == MAXWELL else 1e30)
    count = pieces(v0, v1, vs)
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
def wave_of(F, r, wave, q, load):
    """Return what a row is multiplied by: a harmonic of the position, or a power of the load."""
    if wave == COSINE:
        return cos(F[r + WAVE_NUMBER] * q)
    if wave == SINE:
        return sin(F[r + WAVE_NUMBER] * q)
    return abs(load) ** F[r + WAVE_NUMBER]


@kernel
def jump_force(K, F, owner, up, down, v):
    """Return the force of the jumps of an owner, whose levels are up and down, unless it is held."""
    grip = K[GRIP] + GRIP_WIDTH * owner
    soft = F[grip + SOFT]
    if soft > 0.0:
        level = up if v > 0.0 else down
        return clip(v * soft, level) if level > 0.0 else -clip(v * soft, -level)
    F[grip + UP], F[grip + DOWN], F[grip + NOW] = up, down, v
    side = F[grip + SIDE]
    if side == 0.0:
        F[K[GRIP] + GRIP_WIDTH * K[OWNERS] + STUCK] += 1.0
        return 0.0
    return up if side > 0.0 else -down


@kernel
def row_force(K, F, owner, i, dt, q, v):
    """Return the force of row i of an owner, and its levels both ways if it jumps."""
    kind, way, r = K[K[LAW_KIND] + 2 * i], K[K[LAW_KIND] + 2 * i + 1], K[LAW] + LAW_WIDTH * i
    if kind >= DAHL:
        z, mode = F[r + DEFLECTION], F[r + MEMORY_MODE]
        if dt > 0.0:
            z, mode = memory_step(F, r, kind, v, dt)
        return memory_force(F, r, kind, z, mode, v), 0.0, 0.0
    force = static_force(F, r, kind, q, v)
    if way > 1:
        wave = (way + 1) // WAVED
        way -= WAVED * wave
        force *= wave_of(F, r, wave, q, F[K[GRIP] + GRIP_WIDTH * owner + LOADED])
    if kind in (COULOMB, STRIBECK):
        return 0.0, force if way >= 0 else 0.0, force if way <= 0 else 0.0
    return force if v * way >= 0.0 else 0.0, 0.0, 0.0


@kernel
def force_of(K, F, owner, dt, q, v):
    """Return the friction of an owner at position q and speed v, a time dt after the start of the step; not what holds it."""
    total, up, down, first, kinds = 0.0, 0.0, 0.0, K[LAW_FIRST] + owner, K[LAW_KIND]
    for i in range(K[first], K[first + 1]):
        kind, way = K[kinds + 2 * i], K[kinds + 2 * i + 1]
        if kind == VISCOUS and way == 0:
            total += F[K[LAW] + LAW_WIDTH * i] * v
        elif kind == COULOMB and way == 0:
            up += F[K[LAW] + LAW_WIDTH * i]
            down += F[K[LAW] + LAW_WIDTH * i]
        else:
            force, more_up, more_down = row_force(K, F, owner, i, dt, q, v)
            total, up, down = total + force, up + more_up, down + more_down
    if F[K[GRIP] + GRIP_WIDTH * owner + JUMPS] != 0.0:
        total += jump_force(K, F, owner, up, down, v)
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
