"""Compiled controllers of a simulation: what the drives are told at every tick of their cycles, from what the sensors say.

Between two ticks everything is held. Laws are those of `dynident.control`; HELD leaves the command as it is (a controller in
Python sets it between two calls).
"""

from __future__ import annotations

from math import floor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynident.mechanics.kernels import kernel
from dynident.mechanics.sample_kernels import factorise_symmetric, mass_and_bias, pose_tree, solve_symmetric
from dynident.simulate.friction_kernels import clip, force_of
from dynident.simulate.plant_kernels import (
    CURRENT_LIMIT,
    EMF,
    FINE,
    IDEAL,
    INDUCTIVE,
    LOST_CLOSURE,
    RATIO,
    RESISTANCE,
    TORQUE,
    VOLTAGE_LIMIT,
    Laws,
)
from dynident.simulate.skeleton_kernels import (
    LOOPED,
    Skeleton,
    actuator_value,
    add_mass_times,
    close_step,
    closure_bias,
    closure_map,
)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

HELD, OPEN, CASCADE, PID, COMPUTED = 0, 1, 2, 3, 4
# rows of Controller.plan
LAW, SENSE, OUTER, INNER, CURRENT, WINDUP, PROJECT, ON_REFERENCE, OPEN_TORQUE = range(9)
# rows of Controller.gain
KP, KD, KI, SHARE, SLOW_OUT, SLOW_IN, SPEED, KPC, KIC, PRELOAD = range(10)
# rows of Memory.loop
RHO, RHO_V, WANTED, INTEGRAL, ASKED, ELECTRIC, SLOPE, FLAG, COUNT, SENSED_CURRENT = range(10)
RESOLUTION, ON_MOTOR, EXACT_SPEED, BLEND, CURRENT_STEP, CURRENT_GAIN = range(6)


class Controller(NamedTuple):
    """A control law for k actuators and n coordinates.

    Parameters
    ----------
    plan : ndarray of int, (9,)
        LAW; steps between two ticks of SENSE, OUTER (position loop, or the law itself), INNER (velocity) and CURRENT; and flags.
    gain : ndarray, (10, max(k, n))
        KP ... PRELOAD; kv, kP, kI of a cascade are KP, KD, KI; low-passes are the share of the new value per tick.
    sensor : ndarray, (k, 6)
        RESOLUTION ... CURRENT_GAIN.
    model, laws : Skeleton, Laws
        What the controller believes, and its friction.
    inverse, offset : ndarray, (n, k), (k,)
        Without loops: x = inverse (rho - offset).
    A, AA, L : ndarray, (k, n), (n, n), (n, n)
        Actuator Jacobian, A^T A and its factors.
    x, v, a, tau, f : ndarray
        Measured coordinates and velocities, asked accelerations (n,), torques (k,), work space (n,).
    """

    plan: Integers
    gain: Array
    sensor: Array
    model: Skeleton
    laws: Laws
    inverse: Array
    offset: Array
    A: Array
    AA: Array
    L: Array
    x: Array
    v: Array
    a: Array
    tau: Array
    f: Array


class Memory(NamedTuple):
    """Everything a controller remembers.

    Parameters
    ----------
    loop : ndarray, (10, max(k, n))
        RHO ... SENSED_CURRENT; COUNT is the number of steps at a limit.
    q : ndarray, (nt,)
        Tree positions of the measured pose.
    bristle, speed : ndarray
        Empty: the model's friction has no memory.
    """

    loop: Array
    q: Array
    bristle: Array
    speed: Array


class Wanted(NamedTuple):
    """Tables over the ticks, one row every `every` steps; the last row is held.

    Parameters
    ----------
    rho, rho_v, feed : ndarray, (T, k)
        Wanted actuator positions and velocities, and feed-forward torques (or the command itself of an open loop).
    x, v, a : ndarray, (T, n)
        Wanted coordinates.
    noise : ndarray, (S, k)
        Noise of the position sensors at every sensing tick; no rows for none.
    every : ndarray of int, (1,)
        Steps between two rows.
    """

    rho: Array
    rho_v: Array
    feed: Array
    x: Array
    v: Array
    a: Array
    noise: Array
    every: Integers


@kernel
def quantised(x, size):
    """Return x on a grid."""
    return size * floor(x / size + 0.5) if size > 0.0 else x


@kernel
def sense(P, X, C, K, W, step, h):
    """Write what the sensors of all drives say now; `h` is the step of the plant."""
    k, y = P.body, X.y
    nt, n = k.G.shape
    c = P.shaft.shape[0]
    for i in range(nt):
        value = 0.0
        for e in range(n):
            value += k.G[i, e] * y[nt + e]
        k.v[i] = value
    for a in range(P.drive.shape[0]):
        ratio = P.drive[a, RATIO]
        rho, rate = actuator_value(k, a, y) + k.n0[a], actuator_value(k, a, k.v)
        omega = ratio * rate
        if P.feed[a, 1] > 0:
            omega = y[nt + n + c + P.feed[a, 2]]
        scale = 1.0
        if C.sensor[a, ON_MOTOR] > 0.0:
            scale = ratio
            if P.feed[a, 1] > 0:
                rho, rate = y[nt + n + P.feed[a, 2]] / ratio, omega / ratio
        noise = 0.0
        if W.noise.shape[0] > 0:
            noise = W.noise[min(step // C.plan[SENSE], W.noise.shape[0] - 1), a]
        seen = quantised(rho * scale + noise, C.sensor[a, RESOLUTION]) / scale
        estimate = rate
        if C.sensor[a, EXACT_SPEED] == 0.0 and step > 0:
            estimate = (seen - K.loop[RHO, a]) / (C.plan[SENSE] * h)
        if step > 0:
            estimate = K.loop[RHO_V, a] + C.sensor[a, BLEND] * (estimate - K.loop[RHO_V, a])
        K.loop[RHO, a] = seen
        K.loop[RHO_V, a] = estimate
        current = X.command[a]
        if P.feed[a, 0] == INDUCTIVE:
            current = y[nt + n + 2 * c + P.feed[a, 3]]
        elif P.feed[a, 0] != IDEAL:
            current = (X.command[a] - P.drive[a, EMF] * omega) / P.drive[a, RESISTANCE]
        K.loop[SENSED_CURRENT, a] = quantised(current * C.sensor[a, CURRENT_GAIN], C.sensor[a, CURRENT_STEP])


@kernel
def limit_current(P, X, a, current, omega):
    """Return the current within the limits of motor and amplifier, and 1 when it was cut."""
    cut = clip(current, P.drive[a, CURRENT_LIMIT])
    top, ohm = P.drive[a, VOLTAGE_LIMIT], P.drive[a, RESISTANCE]
    if P.feed[a, 0] == IDEAL and ohm > 0.0 and top < np.inf:
        back = P.drive[a, EMF] * omega
        cut = min(max(cut, (-top - back) / ohm), (top - back) / ohm)
    return cut, 1.0 if cut != current else 0.0


@kernel
def command_torque(P, X, C, K, a):
    """Hold the current that gives torque C.tau[a] at the actuator coordinate, within the limits; return 1 when it was cut."""
    ratio = P.drive[a, RATIO]
    wanted = C.tau[a] / (ratio * P.drive[a, TORQUE])
    current, cut = limit_current(P, X, a, wanted, ratio * K.loop[RHO_V, a])
    X.command[a] = current
    K.loop[FLAG, a] = cut
    return cut


@kernel
def open_tick(P, X, C, K, W, row):
    """Hold row `row` of the table."""
    for a in range(P.drive.shape[0]):
        if C.plan[OPEN_TORQUE] != 0:
            C.tau[a] = W.feed[row, a]
            command_torque(P, X, C, K, a)
        elif P.feed[a, 0] == IDEAL:
            X.command[a], K.loop[FLAG, a] = limit_current(P, X, a, W.feed[row, a], P.drive[a, RATIO] * K.loop[RHO_V, a])
        else:
            X.command[a] = clip(W.feed[row, a], P.drive[a, VOLTAGE_LIMIT])
            K.loop[FLAG, a] = 1.0 if X.command[a] != W.feed[row, a] else 0.0


@kernel
def cascade_tick(P, X, C, K, W, step, h, row):
    """Move position, velocity and current loops that are due."""
    plan, gain, loop = C.plan, C.gain, K.loop
    for a in range(P.drive.shape[0]):
        ratio = P.drive[a, RATIO]
        if step % plan[OUTER] == 0:
            wanted = gain[KP, a] * (W.rho[row, a] - loop[RHO, a]) + gain[SHARE, a] * W.rho_v[row, a]
            wanted = clip(wanted, gain[SPEED, a])
            share = gain[SLOW_OUT, a] if step > 0 else 1.0
            loop[WANTED, a] += share * (wanted - loop[WANTED, a])
        if step % plan[INNER] == 0:
            loop[FLAG, a] = 0.0
            error = ratio * (loop[WANTED, a] - loop[RHO_V, a])
            feed = W.feed[row, a] / (ratio * P.drive[a, TORQUE])
            integral = loop[INTEGRAL, a] + gain[KI, a] * error * plan[INNER] * h
            wanted = gain[KD, a] * error + integral + feed
            share = gain[SLOW_IN, a] if step > 0 else 1.0
            smooth = loop[ASKED, a] + share * (wanted - loop[ASKED, a])
            current, cut = limit_current(P, X, a, smooth, ratio * loop[RHO_V, a])
            if cut > 0.0 and plan[WINDUP] != 0 and (smooth - current) * error > 0.0:
                integral = loop[INTEGRAL, a]  # conditional integration: not further into the limit
                smooth = loop[ASKED, a] + share * (gain[KD, a] * error + integral + feed - loop[ASKED, a])
                current, cut = limit_current(P, X, a, smooth, ratio * loop[RHO_V, a])
                cut = 1.0
            loop[INTEGRAL, a] = integral
            loop[ASKED, a] = current
            loop[FLAG, a] = cut
            if P.feed[a, 0] == IDEAL:
                X.command[a] = current
        if P.feed[a, 0] != IDEAL and step % plan[CURRENT] == 0:
            error = loop[ASKED, a] - winding_current(P, X, C, a)
            integral = loop[ELECTRIC, a] + gain[KIC, a] * error * plan[CURRENT] * h
            wanted = gain[KPC, a] * error + integral
            voltage = clip(wanted, P.drive[a, VOLTAGE_LIMIT])
            if voltage != wanted:
                loop[FLAG, a] = 1.0
                if plan[WINDUP] != 0 and (wanted - voltage) * error > 0.0:
                    integral = loop[ELECTRIC, a]
                    voltage = clip(gain[KPC, a] * error + integral, P.drive[a, VOLTAGE_LIMIT])
            loop[ELECTRIC, a] = integral
            X.command[a] = voltage


@kernel
def winding_current(P, X, C, a):
    """Return the current of a voltage-fed drive as its sensor sees it now."""
    nt, n = P.body.G.shape
    c, y = P.shaft.shape[0], X.y
    if P.feed[a, 0] == INDUCTIVE:
        current = y[nt + n + 2 * c + P.feed[a, 3]]
    else:
        omega = 0.0
        if P.feed[a, 1] > 0:
            omega = y[nt + n + c + P.feed[a, 2]]
        else:
            for i in range(nt):
                for e in range(n):
                    omega += P.body.N[a, i] * P.body.G[i, e] * y[nt + e]
            omega *= P.drive[a, RATIO]
        current = (X.command[a] - P.drive[a, EMF] * omega) / P.drive[a, RESISTANCE]
    return quantised(current * C.sensor[a, CURRENT_GAIN], C.sensor[a, CURRENT_STEP])


@kernel
def actuator_map(C):
    """Write A = N G and the factors of A^T A of the model at its last pose; return whether A has full rank."""
    k = C.model
    nt, n = k.G.shape
    for a in range(k.N.shape[0]):
        for c in range(n):
            value = 0.0
            for i in range(nt):
                value += k.N[a, i] * k.G[i, c]
            C.A[a, c] = value
    for r in range(n):
        for c in range(r + 1):
            value = 0.0
            for a in range(k.N.shape[0]):
                value += C.A[a, r] * C.A[a, c]
            C.AA[r, c] = value
    return factorise_symmetric(C.AA, n, C.L) < 0


@kernel
def least_squares(C, rate, out):
    """Write (A^T A)^-1 A^T rate."""
    for c in range(out.size):
        value = 0.0
        for a in range(C.A.shape[0]):
            value += C.A[a, c] * rate[a]
        out[c] = value
    solve_symmetric(C.L, out.size, out)


@kernel
def measured_pose(C, K):
    """Write coordinates C.x, velocities C.v and tree positions K.q that belong to the sensed actuators; return FINE or why not."""
    k = C.model
    nt, n = k.G.shape
    if k.mode[0] != LOOPED:
        for c in range(n):
            x, v = 0.0, 0.0
            for a in range(k.N.shape[0]):
                x += C.inverse[c, a] * (K.loop[RHO, a] - C.offset[a])
                v += C.inverse[c, a] * K.loop[RHO_V, a]
            C.x[c] = x
            C.v[c] = v
        for i in range(nt):
            value = k.g0[i]
            for c in range(n):
                value += k.G[i, c] * C.x[c]
            K.q[i] = value
        return FINE
    for _ in range(6):  # Gauss-Newton from the last pose; all motors pull alike when there are more than freedoms
        pose_tree(k.sample, K.q)
        if closure_map(k, K.q) == 0.0 or not actuator_map(C):
            return LOST_CLOSURE
        for a in range(k.N.shape[0]):
            C.tau[a] = K.loop[RHO, a] - k.n0[a] - actuator_value(k, a, K.q)
        least_squares(C, C.tau, C.f)
        size = 0.0
        for c in range(n):
            size = max(size, abs(C.f[c]))
        for i in range(nt):
            for c in range(n):
                K.q[i] += k.G[i, c] * C.f[c]
        if close_step(k, K.q) == 0.0:
            return LOST_CLOSURE
        if size < 1e-9:
            break
    for c in range(n):
        C.x[c] = K.q[k.independent[c]]
    least_squares(C, K.loop[RHO_V], C.v)
    return FINE


@kernel
def distribute(C, project):
    """Overwrite C.tau: with `project` by its part that moves the robot, else by the least torques with A^T tau = f; add preload."""
    k = C.model
    n = k.G.shape[1]
    if project:
        least_squares(C, C.tau, C.f)
    else:
        solve_symmetric(C.L, n, C.f)
    for a in range(k.N.shape[0]):
        value = 0.0
        for c in range(n):
            value += C.A[a, c] * C.f[c]
        C.tau[a] = value
    least_squares(C, C.gain[PRELOAD], C.f)
    for a in range(k.N.shape[0]):
        value = C.gain[PRELOAD, a]
        for c in range(n):
            value -= C.A[a, c] * C.f[c]
        C.tau[a] += value


@kernel
def pid_tick(P, X, C, K, W, step, h, row):
    """Torques from position and velocity errors of the actuators; return FINE or why not."""
    gain, loop = C.gain, K.loop
    dt = C.plan[OUTER] * h
    if C.plan[PROJECT] != 0:
        if measured_pose(C, K) != FINE:
            return LOST_CLOSURE
        pose_tree(C.model.sample, K.q)
        if C.model.mode[0] == LOOPED and closure_map(C.model, K.q) == 0.0:
            return LOST_CLOSURE
        if not actuator_map(C):
            return LOST_CLOSURE
    for a in range(P.drive.shape[0]):
        error, slope = W.rho[row, a] - loop[RHO, a], W.rho_v[row, a] - loop[RHO_V, a]
        share = gain[SLOW_OUT, a] if step > 0 else 1.0
        loop[SLOPE, a] += share * (slope - loop[SLOPE, a])
        loop[INTEGRAL, a] += error * dt
        C.tau[a] = gain[KP, a] * error + gain[KD, a] * loop[SLOPE, a] + gain[KI, a] * loop[INTEGRAL, a] + W.feed[row, a]
    if C.plan[PROJECT] != 0:
        distribute(C, True)
    for a in range(P.drive.shape[0]):
        error = W.rho[row, a] - loop[RHO, a]
        if command_torque(P, X, C, K, a) > 0.0 and C.tau[a] * error > 0.0:
            loop[INTEGRAL, a] -= error * dt
    return FINE


@kernel
def model_torques(C, K, q, v, a):
    """Write into C.f the generalised forces that give acceleration a at tree positions q and velocities v; return FINE or why not."""
    k, laws = C.model, C.laws
    nt, n = k.G.shape
    pose_tree(k.sample, q)
    if k.mode[0] == LOOPED and closure_map(k, q) == 0.0:
        return LOST_CLOSURE
    for i in range(nt):
        value = 0.0
        for c in range(n):
            value += k.G[i, c] * v[c]
        k.v[i] = value
    mass_and_bias(k.sample, k.phi, k.base, k.v, k.M, k.h)
    for f in range(laws.form.size):
        x, s = 0.0, 0.0
        for i in range(nt):
            x += laws.rows[f, i] * q[i]
            s += laws.rows[f, i] * k.v[i]
        first, last = laws.first[f], laws.first[f + 1]
        rub = force_of(first, last, laws.kind, laws.way, laws.values, K.bristle, K.speed, 0.0, x, s)
        for i in range(nt):
            k.h[i] += laws.rows[f, i] * rub
    if k.mode[0] == LOOPED:
        closure_bias(k)
    for i in range(nt):
        value = k.b[i] if k.mode[0] == LOOPED else 0.0
        for c in range(n):
            value += k.G[i, c] * a[c]
        k.v[i] = value  # accelerations of the tree from here on
    add_mass_times(k.M, k.v, k.h)
    for c in range(n):
        value = 0.0
        for i in range(nt):
            value += k.G[i, c] * k.h[i]
        C.f[c] = value
    return FINE


@kernel
def computed_tick(P, X, C, K, W, step, h, row):
    """Torques of the model for the reference's acceleration plus a PID of the coordinates; return FINE or why not."""
    gain, loop = C.gain, K.loop
    n, dt = C.x.size, C.plan[OUTER] * h
    if measured_pose(C, K) != FINE:
        return LOST_CLOSURE
    for c in range(n):
        error, slope = W.x[row, c] - C.x[c], W.v[row, c] - C.v[c]
        share = gain[SLOW_OUT, c] if step > 0 else 1.0
        loop[SLOPE, c] += share * (slope - loop[SLOPE, c])
        loop[INTEGRAL, c] += error * dt
        C.a[c] = W.a[row, c] + gain[KP, c] * error + gain[KD, c] * loop[SLOPE, c] + gain[KI, c] * loop[INTEGRAL, c]
    status = FINE
    if C.plan[ON_REFERENCE] != 0:
        for c in range(n):
            C.v[c] = W.v[row, c]
            error = W.x[row, c] - C.x[c]
            for i in range(K.q.size):
                K.q[i] += C.model.G[i, c] * error
        if close_step(C.model, K.q) == 0.0:
            return LOST_CLOSURE
    status = model_torques(C, K, K.q, C.v, C.a)
    if status != FINE or not actuator_map(C):
        return LOST_CLOSURE
    distribute(C, False)
    cut = 0.0
    for a in range(P.drive.shape[0]):
        cut += command_torque(P, X, C, K, a)
    if cut > 0.0:
        for c in range(n):
            loop[INTEGRAL, c] -= (W.x[row, c] - C.x[c]) * dt
    return FINE


@kernel
def control(P, X, C, K, W, step, h):
    """Do what is due at this step; return FINE or why not."""
    plan = C.plan
    if plan[LAW] == HELD:
        return FINE
    row = min(step // W.every[0], W.feed.shape[0] - 1)
    if step % plan[SENSE] == 0:
        sense(P, X, C, K, W, step, h)
    status = FINE
    if plan[LAW] == CASCADE:
        cascade_tick(P, X, C, K, W, step, h, row)
    elif step % plan[OUTER] == 0:
        if plan[LAW] == PID:
            status = pid_tick(P, X, C, K, W, step, h, row)
        elif plan[LAW] == COMPUTED:
            status = computed_tick(P, X, C, K, W, step, h, row)
        else:
            open_tick(P, X, C, K, W, row)
    for a in range(P.drive.shape[0]):
        K.loop[COUNT, a] += K.loop[FLAG, a]
    return status
