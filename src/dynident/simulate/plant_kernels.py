"""Compiled equation of motion of a robot with its drives: dy/dt of one state vector, and the end of a step.

    y = [q_t (nt), nu (n), theta (c), omega (c), i (e)]        tree positions, velocities, shaft masses, winding currents
    (G^T M G) nu_dot = G^T [ N^T (tau_rho + push) + J^T w - h - friction - M b ]

tau_rho is ratio (K_t i - friction) of a rigid drive, ratio times the torque of the last shaft of an elastic one, and what the
gear's efficiency leaves of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynident.mechanics.kernels import kernel
from dynident.mechanics.sample_kernels import factorise_symmetric, mass_and_bias, pose_tree, solve_symmetric
from dynident.simulate.friction_kernels import advance_rows, clip, force_of
from dynident.simulate.skeleton_kernels import (
    LOOPED,
    TREE,
    Skeleton,
    actuator_force,
    actuator_value,
    add_mass_times,
    closure_bias,
    closure_map,
    coordinate_rates,
    link_force,
    sandwich,
)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

IDEAL, RESISTIVE, INDUCTIVE = 0, 1, 2  # how a drive is fed: with a current, or with a voltage without or with inductance
COUPLED, EXACT, ITERATED, DELAYED = 0, 1, 2, 3  # mechanism and drives as one, or joined by an algebraic loop
FINE, SINGULAR_MASS, LOST_CLOSURE, UNSTABLE = 0, 1, 2, 3
TURNS = 50  # of the iterated algebraic loop
EVEN = 1e-12  # relative change at which it has converged
RATIO, EFFICIENCY, TORQUE, EMF, RESISTANCE, INDUCTANCE, CURRENT_LIMIT, VOLTAGE_LIMIT, PLAY, STICK = range(10)
# rows of Plant.signal
S_TORQUE, S_MOTOR, S_CURRENT, S_RUB, S_RHO, S_RHO_V, S_THETA, S_OMEGA = range(8)


class Laws(NamedTuple):
    """Friction rows, of F forms of the tree's coordinates first and then of k rotors.

    Parameters
    ----------
    first : ndarray of int, (F + k + 1,)
        First row of each; the last entry is the number of rows.
    kind, way : ndarray of int, (rows,)
        As in `friction_kernels`.
    values : ndarray, (rows, 9)
        Numbers of each row; may be changed between two calls of `run`.
    form : ndarray of int, (F,)
        The only tree coordinate of a form, or -1.
    rows : ndarray, (F, nt)
        Form as a row: its speed is rows[f] . v_t.
    """

    first: Integers
    kind: Integers
    way: Integers
    values: Array
    form: Integers
    rows: Array


class Inputs(NamedTuple):
    """What acts from outside, linear between rows and held after the last.

    Parameters
    ----------
    push : ndarray, (P, k)
        Torques on the actuator coordinates; no rows for none.
    node : ndarray of int, (W,)
        Tree nodes with a wrench.
    wrench : ndarray, (Q, W, 6)
        (force, moment) at each node's origin and in its axes.
    every : ndarray of int, (2,)
        Steps between two rows of `push` and of `wrench`.
    """

    push: Array
    node: Integers
    wrench: Array
    every: Integers


class Plant(NamedTuple):
    """A robot with its drives, n coordinates and k actuators.

    Parameters
    ----------
    body : Skeleton
        The mechanism.
    laws : Laws
        Friction of joints and rotors.
    feed : ndarray of int, (k, 4)
        IDEAL, RESISTIVE or INDUCTIVE; number of shaft masses; the first of them; winding.
    drive : ndarray, (k, 10)
        Numbers of each drive, RATIO ... STICK.
    shaft : ndarray, (c, 3)
        Inertia of each mass, stiffness and damping of the shaft behind it.
    method : ndarray of int, (1,)
        COUPLED, EXACT, ITERATED or DELAYED.
    Mx, Ax, L, MG : ndarray
        Projected mass matrices of mechanism and motors, factors, work space.
    force, trial : ndarray, (n,)
        Work space.
    signal : ndarray, (8, k)
        What the drives did in the last evaluation, rows S_TORQUE ... S_OMEGA.
    rub : ndarray, (F,)
        Friction of the forms in the last evaluation.
    """

    body: Skeleton
    laws: Laws
    feed: Integers
    drive: Array
    shaft: Array
    method: Integers
    Mx: Array
    Ax: Array
    L: Array
    MG: Array
    force: Array
    trial: Array
    signal: Array
    rub: Array


class State(NamedTuple):
    """Everything a plant remembers; a run can go on from it.

    Parameters
    ----------
    y : ndarray
        State vector.
    bristle, speed : ndarray, (rows, 2), (rows,)
        Deflection and mode of friction rows with memory, and their speed at the start of the step.
    command : ndarray, (k,)
        Held current [A] or voltage [V] of every drive.
    last : ndarray, (n + 2,)
        Accelerations at the start of the last step, for the delayed algebraic loop; side of the closure; step counter.
    """

    y: Array
    bristle: Array
    speed: Array
    command: Array
    last: Array


@kernel
def gear(drive, a, tau, omega):
    """Return the torque at the actuator coordinate from the torque tau on the motor side of the gear, at motor speed omega.

    Losses are friction that grows with the load; like Coulomb friction they set in over a small speed.
    """
    eta = drive[a, EFFICIENCY]
    if eta == 1.0:
        return drive[a, RATIO] * tau
    loss = (1.0 / eta - 1.0) * abs(tau)
    share = clip(omega / max(loss * drive[a, STICK], 1e-300), 1.0)
    share = share if tau > 0.0 else -share
    return drive[a, RATIO] * tau * (1.0 - (1.0 - eta) * share if share > 0.0 else 1.0 - (1.0 / eta - 1.0) * share)


@kernel
def shaft_torque(k, c, play, twist, rate):
    """Return the torque of a shaft with half its play."""
    if play > 0.0:
        twist = twist - clip(twist, play)
        if twist == 0.0:
            return 0.0
    return k * twist + c * rate


@kernel
def drive_forces(P, X, y, dt, out, row):
    """Write currents and torques of all drives, the rates of their own states into out[row], and add to tree forces."""
    k, drive, laws = P.body, P.drive, P.laws
    nt, n = k.G.shape
    c = P.shaft.shape[0]
    th, om, cu = nt + n, nt + n + c, nt + n + 2 * c
    forms = laws.form.size
    for a in range(drive.shape[0]):
        rho, rate = actuator_value(k, a, y) + k.n0[a], actuator_value(k, a, k.v)
        ratio = drive[a, RATIO]
        count, first = P.feed[a, 1], P.feed[a, 2]
        theta, omega = ratio * rho, ratio * rate
        if count > 0:
            theta, omega = y[th + first], y[om + first]
        current = X.command[a]
        if P.feed[a, 0] == RESISTIVE:
            current = (X.command[a] - drive[a, EMF] * omega) / drive[a, RESISTANCE]
        elif P.feed[a, 0] == INDUCTIVE:
            i = cu + P.feed[a, 3]
            current = y[i]
            out[row, i] = (X.command[a] - drive[a, RESISTANCE] * current - drive[a, EMF] * omega) / drive[a, INDUCTANCE]
        rub = 0.0
        if laws.first[forms + a] < laws.first[forms + a + 1]:
            rub = force_of(
                laws.first[forms + a],
                laws.first[forms + a + 1],
                laws.kind,
                laws.way,
                laws.values,
                X.bristle,
                X.speed,
                dt,
                theta,
                omega,
            )
        motor = drive[a, TORQUE] * current
        tau = motor - rub
        for e in range(first, first + count):
            behind, speed = ratio * rho, ratio * rate
            play = drive[a, PLAY]
            if e < first + count - 1:
                behind, speed, play = y[th + e + 1], y[om + e + 1], 0.0
            twisted = shaft_torque(P.shaft[e, 1], P.shaft[e, 2], play, y[th + e] - behind, y[om + e] - speed)
            out[row, th + e] = y[om + e]
            out[row, om + e] = (tau - twisted) / P.shaft[e, 0]
            tau = twisted
        tau = gear(drive, a, tau, ratio * rate)
        P.signal[S_TORQUE, a] = tau
        P.signal[S_MOTOR, a] = motor
        P.signal[S_CURRENT, a] = current
        P.signal[S_RUB, a] = rub
        P.signal[S_RHO, a] = rho
        P.signal[S_RHO_V, a] = rate
        P.signal[S_THETA, a] = theta
        P.signal[S_OMEGA, a] = omega
        actuator_force(k, a, -tau, k.h)


@kernel
def joint_friction(P, X, y, dt):
    """Add the friction of the forms to the bias."""
    k, laws = P.body, P.laws
    for f in range(laws.form.size):
        d = laws.form[f]
        if d >= 0:
            q, v = y[d], k.v[d]
        else:
            q, v = 0.0, 0.0
            for j in range(k.v.size):
                q += laws.rows[f, j] * y[j]
                v += laws.rows[f, j] * k.v[j]
        first, last = laws.first[f], laws.first[f + 1]
        rub = force_of(first, last, laws.kind, laws.way, laws.values, X.bristle, X.speed, dt, q, v)
        P.rub[f] = rub
        if d >= 0:
            k.h[d] += rub
        else:
            for j in range(k.v.size):
                k.h[j] += laws.rows[f, j] * rub


@kernel
def external_forces(P, inputs, time):
    """Subtract external torques and wrenches from the bias; `time` counts in steps."""
    k = P.body
    rows = inputs.push.shape[0]
    if rows > 0:
        x = time / inputs.every[0]
        i = min(int(x), rows - 1)
        j, share = min(i + 1, rows - 1), x - i
        for a in range(inputs.push.shape[1]):
            actuator_force(k, a, -(inputs.push[i, a] + share * (inputs.push[j, a] - inputs.push[i, a])), k.h)
    rows = inputs.wrench.shape[0]
    if rows > 0:
        x = time / inputs.every[1]
        i = min(int(x), rows - 1)
        j, share = min(i + 1, rows - 1), x - i
        w, t = inputs.wrench, 1.0 - share
        for e in range(inputs.node.size):
            force = (
                -t * w[i, e, 0] - share * w[j, e, 0],
                -t * w[i, e, 1] - share * w[j, e, 1],
                -t * w[i, e, 2] - share * w[j, e, 2],
            )
            moment = (
                -t * w[i, e, 3] - share * w[j, e, 3],
                -t * w[i, e, 4] - share * w[j, e, 4],
                -t * w[i, e, 5] - share * w[j, e, 5],
            )
            link_force(k.sample, inputs.node[e], force, moment, k.h)


@kernel
def decoupled(P, X, row, out):
    """Solve (motors + mechanism) nu_dot = force as document 4 does: the mechanism acts on the motors as a disturbance."""
    k = P.body
    nt, n = k.G.shape
    sandwich(k.M, k.G, P.MG, P.Mx)
    sandwich(k.motors, k.G, P.MG, P.Ax)
    if P.method[0] == EXACT:
        for r in range(n):
            for c in range(r + 1):
                P.Ax[r, c] += P.Mx[r, c]
    bad = factorise_symmetric(P.Ax, n, P.L)
    if bad >= 0:
        return bad
    for r in range(n):
        out[row, nt + r] = X.last[r]
    for _ in range(TURNS if P.method[0] == ITERATED else 1):
        for r in range(n):
            P.trial[r] = 0.0
        if P.method[0] != EXACT:
            for r in range(n):
                for c in range(r + 1):
                    P.trial[r] -= P.Mx[r, c] * out[row, nt + c]
                    if c < r:
                        P.trial[c] -= P.Mx[r, c] * out[row, nt + r]
        for r in range(n):
            P.trial[r] += P.force[r]
        solve_symmetric(P.L, n, P.trial)
        change, size = 0.0, 0.0
        for r in range(n):
            change, size = max(change, abs(P.trial[r] - out[row, nt + r])), max(size, abs(P.trial[r]))
            out[row, nt + r] = P.trial[r]
        if not change > EVEN * size:
            break
    return -1


@kernel
def derivative(P, X, inputs, y, time, dt, row, out):
    """Write dy/dt into out[row] at state y, dt seconds after the start of the step and at `time` steps; return FINE or why not."""
    k = P.body
    nt, n = k.G.shape
    mode = k.mode[0]
    pose_tree(k.sample, y)
    if mode == LOOPED and closure_map(k, y) == 0.0:
        return LOST_CLOSURE
    if mode == TREE:
        for i in range(nt):
            k.v[i] = y[nt + i]
    else:
        for i in range(nt):
            value = 0.0
            for c in range(n):
                value += k.G[i, c] * y[nt + c]
            k.v[i] = value
    mass_and_bias(k.sample, k.phi, k.base, k.v, k.M, k.h)
    if mode == LOOPED:
        closure_bias(k)
        add_mass_times(k.M, k.b, k.h)
        if P.method[0] != COUPLED:
            add_mass_times(k.motors, k.b, k.h)
    joint_friction(P, X, y, dt)
    drive_forces(P, X, y, dt, out, row)
    external_forces(P, inputs, time)
    bad = -1
    if mode == TREE and P.method[0] == COUPLED:
        bad = factorise_symmetric(k.M, n, P.L)
        for r in range(n):
            P.force[r] = -k.h[r]
    else:
        for r in range(n):
            value = 0.0
            for i in range(nt):
                value -= k.G[i, r] * k.h[i]
            P.force[r] = value
        if P.method[0] == COUPLED:
            sandwich(k.M, k.G, P.MG, P.Mx)
            bad = factorise_symmetric(P.Mx, n, P.L)
        else:
            bad = decoupled(P, X, row, out)
    if bad >= 0:
        return SINGULAR_MASS
    if P.method[0] == COUPLED:
        solve_symmetric(P.L, n, P.force)
        for r in range(n):
            out[row, nt + r] = P.force[r]
    for i in range(nt):
        out[row, i] = k.v[i]
    if k.mode[1] != 0:
        coordinate_rates(k, y, out, row)
    return FINE


@kernel
def advance_bristles(P, X, dt):
    """Move the bristles of all friction rows over a step, with the speeds at its end (dt = 0: only keep the speeds)."""
    k, laws, y = P.body, P.laws, X.y
    nt, n = k.G.shape
    c, forms = P.shaft.shape[0], laws.form.size
    for i in range(nt):
        value = 0.0
        for e in range(n):
            value += k.G[i, e] * y[nt + e]
        k.v[i] = value
    for f in range(forms):
        v = 0.0
        for j in range(nt):
            v += laws.rows[f, j] * k.v[j]
        advance_rows(laws.first[f], laws.first[f + 1], laws.kind, laws.values, X.bristle, X.speed, dt, v)
    for a in range(P.drive.shape[0]):
        v = P.drive[a, RATIO] * actuator_value(k, a, k.v)
        if P.feed[a, 1] > 0:
            v = y[nt + n + c + P.feed[a, 2]]
        f = forms + a
        advance_rows(laws.first[f], laws.first[f + 1], laws.kind, laws.values, X.bristle, X.speed, dt, v)
