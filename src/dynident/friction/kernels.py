"""Compiled loops of the friction room: bristle states over time, and affine recursions.

The velocity is taken as linear between samples. Every step is cut where the velocity changes its sign, so that each piece
goes one way; there the bristle equations are linear in the distance gone, and are advanced by their exact exponential.
That is stable for any stiffness and any step, keeps |z| within its bounds, and is of second order in the step.
"""

from __future__ import annotations

import math

import numpy as np
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
def _pieces(v0, v1, vs):
    """Number of equal pieces that resolve the Stribeck curve between two velocities."""
    wanted = abs(v1 - v0) / (FINE * vs)
    return MOST if wanted >= MOST else int(wanted) + 1


@njit(cache=True)
def _lugre_piece(z, v0, v1, dt, sigma0, fc, fs, vs, delta):
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
def lugre_sweep(t, v, z0, sigma0, fc, fs, vs, delta):
    """Bristle deflection of the LuGre law, ``dz/dt = v - sigma0 |v| z / g(v)``, at every sample.

    Parameters
    ----------
    t, v : ndarray, shape (N,)
        Times and velocities.
    z0 : float
        Deflection at the first sample.
    sigma0, fc, fs, vs, delta : float
        Stiffness and Stribeck curve g.

    Returns
    -------
    ndarray, shape (N,)
        Deflections.
    """
    z = np.empty(t.size)
    z[0] = z0
    x = z0
    for k in range(1, t.size):
        count = _pieces(v[k - 1], v[k], vs)
        dt = (t[k] - t[k - 1]) / count
        slope = (v[k] - v[k - 1]) / count
        for i in range(count):
            a = v[k - 1] + slope * i
            b = v[k - 1] + slope * (i + 1)
            if a * b < 0.0:
                part = dt * a / (a - b)
                x = _lugre_piece(x, a, 0.0, part, sigma0, fc, fs, vs, delta)
                x = _lugre_piece(x, 0.0, b, dt - part, sigma0, fc, fs, vs, delta)
            elif a + b != 0.0:
                x = _lugre_piece(x, a, b, dt, sigma0, fc, fs, vs, delta)
        z[k] = x
    return z


@njit(cache=True)
def _dahl_piece(z, distance, sigma0, fc, exponent):
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
def dahl_sweep(t, v, z0, sigma0, fc, exponent):
    """Deflection of Dahl's law, ``dz/dx = |1 - sigma0 z sgn(v) / fc|^i``, at every sample.

    Parameters
    ----------
    t, v : ndarray, shape (N,)
        Times and velocities.
    z0 : float
        Deflection at the first sample.
    sigma0, fc, exponent : float
        Stiffness, Coulomb friction and i.

    Returns
    -------
    ndarray, shape (N,)
        Deflections.
    """
    z = np.empty(t.size)
    z[0] = z0
    x = z0
    for k in range(1, t.size):
        a, b, dt = v[k - 1], v[k], t[k] - t[k - 1]
        if a * b < 0.0:
            part = dt * a / (a - b)
            x = _dahl_piece(x, 0.5 * a * part, sigma0, fc, exponent)
            x = _dahl_piece(x, 0.5 * b * (dt - part), sigma0, fc, exponent)
        elif a + b != 0.0:
            x = _dahl_piece(x, 0.5 * (a + b) * dt, sigma0, fc, exponent)
        z[k] = x
    return z


@njit(cache=True)
def _gap(theta, z, v0, v1, dt, way, stiffness, share, fc, fs, vs, delta):
    """Force that a sticking element still lacks to slip, after the part theta of a piece."""
    distance = dt * theta * (v0 + 0.5 * theta * (v1 - v0))
    speed = abs(v0 + theta * (v1 - v0))
    return share * _stribeck(speed, fc, fs, vs, delta) - way * stiffness * (z + distance)


@njit(cache=True)
def _slip(z, v0, v1, dt, way, stiffness, share, attraction, fc, fs, vs, delta):
    """Advance a slipping element: its force goes to its share of the Stribeck curve."""
    g0, g1 = _stribeck(abs(v0), fc, fs, vs, delta), _stribeck(abs(v1), fc, fs, vs, delta)
    gm = _stribeck(0.5 * abs(v0 + v1), fc, fs, vs, delta)
    decay, first, last = _blend(attraction * dt / 6.0 * (1.0 / g0 + 4.0 / gm + 1.0 / g1))
    return decay * z + way * share * (first * g0 + last * g1) / stiffness


@njit(cache=True)
def _gms_piece(z, mode, v0, v1, dt, stiffness, share, attraction, fc, fs, vs, delta):
    """Advance all elements, in place, over a piece in which the velocity keeps its sign."""
    way = math.copysign(1.0, v0 + v1)
    for i in range(z.size):
        if mode[i] != way or v0 == 0.0:
            mode[i] = 0.0
        a, rest = v0, dt
        if mode[i] == 0.0:
            if _gap(1.0, z[i], v0, v1, dt, way, stiffness[i], share[i], fc, fs, vs, delta) > 0.0:
                z[i] += 0.5 * (v0 + v1) * dt
                continue
            low, high = 0.0, 1.0
            for _ in range(50):
                middle = 0.5 * (low + high)
                if _gap(middle, z[i], v0, v1, dt, way, stiffness[i], share[i], fc, fs, vs, delta) > 0.0:
                    low = middle
                else:
                    high = middle
            z[i] += dt * high * (v0 + 0.5 * high * (v1 - v0))
            mode[i] = way
            a, rest = v0 + high * (v1 - v0), dt * (1.0 - high)
        if rest > 0.0:
            z[i] = _slip(z[i], a, v1, rest, way, stiffness[i], share[i], attraction, fc, fs, vs, delta)


@njit(cache=True)
def gms_sweep(t, v, start, stiffness, share, attraction, fc, fs, vs, delta):
    """Elements of the generalised Maxwell slip law at every sample.

    Parameters
    ----------
    t, v : ndarray, shape (N,)
        Times and velocities.
    start : ndarray, shape (2 n,)
        Deflections and modes (0 sticks, +1 or -1 slips that way) at the first sample.
    stiffness, share : ndarray, shape (n,)
        Stiffness of each element and its share of the friction.
    attraction, fc, fs, vs, delta : float
        Rate at which slipping forces go to the Stribeck curve, and that curve.

    Returns
    -------
    ndarray, shape (N, 2 n)
        Deflections and modes.
    """
    n = stiffness.size
    states = np.empty((t.size, 2 * n))
    states[0] = start
    z, mode = start[:n].copy(), start[n:].copy()
    for k in range(1, t.size):
        count = _pieces(v[k - 1], v[k], vs)
        dt = (t[k] - t[k - 1]) / count
        slope = (v[k] - v[k - 1]) / count
        for i in range(count):
            a = v[k - 1] + slope * i
            b = v[k - 1] + slope * (i + 1)
            if a * b < 0.0:
                part = dt * a / (a - b)
                _gms_piece(z, mode, a, 0.0, part, stiffness, share, attraction, fc, fs, vs, delta)
                _gms_piece(z, mode, 0.0, b, dt - part, stiffness, share, attraction, fc, fs, vs, delta)
            elif a + b != 0.0:
                _gms_piece(z, mode, a, b, dt, stiffness, share, attraction, fc, fs, vs, delta)
        states[k, :n] = z
        states[k, n:] = mode
    return states


@njit(cache=True)
def affine_recursion(transition, drive, start):
    """States of ``x[k+1] = transition[k] x[k] + drive[k]``; real or complex (complex-step derivatives).

    Parameters
    ----------
    transition : ndarray, shape (N - 1, n, n)
        Transition of each step.
    drive : ndarray, shape (N - 1, n)
        Drive of each step.
    start : ndarray, shape (n,)
        First state.

    Returns
    -------
    ndarray, shape (N, n)
        States.
    """
    steps, n = drive.shape
    x = np.empty((steps + 1, n), dtype=drive.dtype)
    x[0] = start
    for k in range(steps):
        for i in range(n):
            total = drive[k, i]
            for j in range(n):
                total += transition[k, i, j] * x[k, j]
            x[k + 1, i] = total
    return x


@njit(cache=True)
def caputo_sweep(t, gain, drive, start, nu, scale):
    """Solve the fractional equation ``d^nu x / dt^nu = gain x + drive`` (Caputo) on any increasing times.

    L1 scheme, implicit: x is linear between samples, gain and drive of step k hold from t[k] to t[k+1].

    Parameters
    ----------
    t : ndarray, shape (N,)
        Times.
    gain, drive : ndarray, shape (N - 1,)
        Coefficients of each step.
    start : float
        First value.
    nu : float
        Order, above 0 and up to 1.
    scale : float
        ``Gamma(2 - nu)``.

    Returns
    -------
    ndarray, shape (N,)
        Values.
    """
    x = np.empty(t.size)
    x[0] = start
    slopes = np.empty(t.size)
    for n in range(1, t.size):
        memory = 0.0
        before = (t[n] - t[0]) ** (1.0 - nu)
        for j in range(1, n):
            after = (t[n] - t[j]) ** (1.0 - nu)
            memory += slopes[j] * (before - after)
            before = after
        dt = t[n] - t[n - 1]
        weight = dt ** (-nu) / scale
        x[n] = (weight * x[n - 1] + drive[n - 1] - memory / scale) / (weight - gain[n - 1])
        slopes[n] = (x[n] - x[n - 1]) / dt
    return x
