"""Bristle states of `dynident.friction` within a step of the simulation, each piece going one way."""

from __future__ import annotations

import math

from numba import njit

#: A step is cut so that the velocity changes by at most this part of the Stribeck speed per piece, but into MOST at most.
FINE = 0.25
MOST = 64


@njit(cache=True)
def _stribeck(speed, fc, fs, vs, delta):
    """Stribeck curve without sign, ``fc + (fs - fc) exp(-(speed/vs)^delta)``."""
    return fc + (fs - fc) * math.exp(-((speed / vs) ** delta))


@njit(cache=True)
def _blend(a):
    """Weights of the exact solution of ``dx/ds = target(s) - x`` over s = a with a target that is linear in s.

    ``x(a) = decay x(0) + first target(0) + last target(a)``; all three are in [0, 1] and add to one.
    """
    decay = math.exp(-a)
    if a < 1e-3:
        last = a / 2.0 - a * a / 6.0 + a**3 / 24.0
        first = a / 2.0 - a * a / 3.0 + a**3 / 8.0
    else:
        mean = -math.expm1(-a) / a
        last = 1.0 - mean
        first = mean - decay
    return decay, first, last


@njit(cache=True)
def pieces(v0, v1, vs):
    """Number of equal pieces that resolve the Stribeck curve between two velocities."""
    wanted = abs(v1 - v0) / (FINE * vs)
    return MOST if wanted >= MOST else int(wanted) + 1


@njit(cache=True)
def lugre_piece(z, v0, v1, dt, sigma0, fc, fs, vs, delta):
    """Advance z over a piece in which the velocity keeps its sign."""
    way = math.copysign(1.0, v0 + v1)
    s0, s1 = abs(v0), abs(v1)
    sm = 0.5 * (s0 + s1)
    g0, gm, g1 = _stribeck(s0, fc, fs, vs, delta), _stribeck(sm, fc, fs, vs, delta), _stribeck(s1, fc, fs, vs, delta)
    # Simpson: the number of relaxation lengths gone in this piece.
    gone = sigma0 * dt / 6.0 * (s0 / g0 + 4.0 * sm / gm + s1 / g1)
    decay, first, last = _blend(gone)
    return decay * z + way * (first * g0 + last * g1) / sigma0


@njit(cache=True)
def dahl_piece(z, distance, sigma0, fc, exponent):
    """Advance z over a signed distance: exact solution of Dahl's law in the distance."""
    way = math.copysign(1.0, distance)
    gap = 1.0 - way * sigma0 * z / fc
    size = abs(gap)
    travel = sigma0 * abs(distance) / fc
    if exponent == 1.0:
        size *= math.exp(-travel)
    elif size > 0.0:
        power = size ** (1.0 - exponent) + (exponent - 1.0) * travel
        size = power ** (1.0 / (1.0 - exponent)) if power > 0.0 else 0.0
    return way * fc / sigma0 * (1.0 - math.copysign(size, gap))


@njit(cache=True)
def gap(theta, z, v0, v1, dt, way, stiffness, share, fc, fs, vs, delta):
    """Force that a sticking element still lacks to slip, after the part theta of a piece."""
    distance = dt * theta * (v0 + 0.5 * theta * (v1 - v0))
    speed = abs(v0 + theta * (v1 - v0))
    return share * _stribeck(speed, fc, fs, vs, delta) - way * stiffness * (z + distance)


@njit(cache=True)
def slip(z, v0, v1, dt, way, stiffness, share, attraction, fc, fs, vs, delta):
    """Advance a slipping element: its force goes to its share of the Stribeck curve."""
    g0, g1 = _stribeck(abs(v0), fc, fs, vs, delta), _stribeck(abs(v1), fc, fs, vs, delta)
    gm = _stribeck(0.5 * abs(v0 + v1), fc, fs, vs, delta)
    decay, first, last = _blend(attraction * dt / 6.0 * (1.0 / g0 + 4.0 / gm + 1.0 / g1))
    return decay * z + way * share * (first * g0 + last * g1) / stiffness
