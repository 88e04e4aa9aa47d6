"""Compiled equation of motion of a robot with its drives: dy/dt of one state vector, and the bristles at the end of a step.

    y = [q_t (nt), nu (n), theta (c), omega (c), i (e)]        tree positions, velocities, shaft masses, winding currents
    (G^T M G) nu_dot = G^T [ N^T (tau_rho + push) + J^T w - h - friction - M b ]

tau_rho is ratio times the torque tau_g in front of the gear, times what its efficiency leaves: tau_g is the torque of the last
shaft of an elastic drive, K_t i - friction - J theta'' of a rigid one (J theta'' stands on the left, with M).
"""

from __future__ import annotations

from dynident.mechanics.kernels import sample_kernel as kernel
from dynident.mechanics.packed import COUNT, FACTOR, FORCE, MASS, MOTION, SPEED
from dynident.mechanics.sample_kernels import factorise_symmetric, pose_tree, solve_symmetric
from dynident.simulate.friction_kernels import advance_owner, clip, force_of
from dynident.simulate.gear_kernels import gear, rigid_gear, within_voltage
from dynident.simulate.hold_kernels import (
    find_held,
    form_value,
    held_signals,
    hold,
    hold_rotor,
    owner_speed,
    settle,
)
from dynident.simulate.layout import (
    ACTUATORS,
    ASKS_LOAD,
    AT_LIMIT,
    BALLS,
    BEYOND,
    COMMAND,
    COUPLING,
    CURVE,
    DIRECT,
    DOF,
    DRIVE,
    DRIVE_WIDTH,
    EFFICIENCY,
    EMF,
    EXACT,
    FEED,
    FEED_WIDTH,
    FINE,
    FORM,
    FORM_ROWS,
    FORMS,
    FRONT,
    GENERAL,
    GRIP,
    GRIP_WIDTH,
    IDEAL,
    INDUCTANCE,
    INDUCTIVE,
    ITERATED,
    KEPT,
    LAST,
    LAW_FIRST,
    LOADED,
    LOOPED,
    LOST_CLOSURE,
    MEMORY,
    METHOD,
    MODE,
    MOTORS,
    OFFSETS,
    ONE,
    OTHER,
    OWNERS,
    PLACED,
    PLAY,
    RATES,
    RATIO,
    RESISTANCE,
    RESISTIVE,
    RUB,
    S_CURRENT,
    S_LOSS,
    S_MOTOR,
    S_OMEGA,
    S_RHO,
    S_RHO_V,
    S_RUB,
    S_THETA,
    S_TORQUE,
    SHAFT,
    SHAFTS,
    SINGLE,
    SINGULAR_MASS,
    SIZE,
    STATE,
    STUCK,
    TORQUE,
    TREE,
    TRIAL,
)
from dynident.simulate.motion_kernels import motion_at, solve_at
from dynident.simulate.skeleton_kernels import (
    actuator_force,
    actuator_value,
    add_mass_times,
    closure_map,
    coordinate_rates,
    generalised,
    link_force,
    pull_back,
    sandwich,
    tree_speeds,
)

SINGULAR = 1e-7  # pivot ratio of the closure below which the coordinates no longer determine the other joints
FAR = 1e-3  # correction of a dependent coordinate [rad or m] after a step at which the closure counts as lost
TURNS = 50  # of the iterated algebraic loop
EVEN = 1e-12  # relative change at which it has converged


@kernel
def shaft_torque(k, c, play, twist, rate):
    """Return the torque of a shaft; `play` is half its backlash."""
    if play > 0.0:
        twist = twist - clip(twist, play)
        if twist == 0.0:
            return 0.0
    return k * twist + c * rate


@kernel
def first_shaft(K, F, y, a, rho, rate):
    """Return the torque of the shaft behind the rotor of drive a."""
    d, feed = K[DRIVE] + DRIVE_WIDTH * a, K[FEED] + FEED_WIDTH * a
    theta = y + K[COUNT] + K[DOF] + K[feed + 2]
    omega, s = theta + K[SHAFTS], K[SHAFT] + 3 * K[feed + 2]
    if K[feed + 1] > 1:
        return shaft_torque(F[s + 1], F[s + 2], 0.0, F[theta] - F[theta + 1], F[omega] - F[omega + 1])
    ratio = F[d + RATIO]
    return shaft_torque(F[s + 1], F[s + 2], F[d + PLAY], F[theta] - ratio * rho, F[omega] - ratio * rate)


@kernel
def shaft_forces(K, F, y, out, a, tau, rho, rate):
    """Write the rates of the shaft masses of drive a, whose rotor feels tau, at F[out]; return the last shaft's torque."""
    d, feed, c = K[DRIVE] + DRIVE_WIDTH * a, K[FEED] + FEED_WIDTH * a, K[SHAFTS]
    th = K[COUNT] + K[DOF]
    om = th + c
    first = K[feed + 2]
    last = first + K[feed + 1] - 1
    for e in range(first, last + 1):
        behind, speed, play = F[d + RATIO] * rho, F[d + RATIO] * rate, F[d + PLAY]
        if e < last:
            behind, speed, play = F[y + th + e + 1], F[y + om + e + 1], 0.0
        s = K[SHAFT] + 3 * e
        twisted = shaft_torque(F[s + 1], F[s + 2], play, F[y + th + e] - behind, F[y + om + e] - speed)
        F[out + th + e] = F[y + om + e]
        F[out + om + e] = (tau - twisted) / F[s]
        tau = twisted
    return tau


@kernel
def drive_forces(K, F, y, dt, out, keep):
    """Add the torques of all drives to tree forces; write rates of their own states at F[out] and, with `keep`, signals."""
    th, c, h, v = K[COUNT] + K[DOF], K[SHAFTS], K[FORCE], K[SPEED]
    drive, feeds, forms, laws, offsets = K[DRIVE], K[FEED], K[FORMS], K[LAW_FIRST] + K[FORMS], K[OFFSETS]
    for a in range(K[ACTUATORS]):
        d, feed = drive + DRIVE_WIDTH * a, feeds + FEED_WIDTH * a
        if F[d + DIRECT] != 0.0 and not keep:
            F[h + K[feed + 4]] -= F[d + DIRECT] * F[d + COMMAND]
            continue
        ratio, kind, count, j = F[d + RATIO], K[feed], K[feed + 1], K[feed + 4]
        rate, rho = F[d + SINGLE] * F[v + j] if j >= 0 else actuator_value(K, F, a, v), 0.0
        rubs = K[laws + a] < K[laws + a + 1]
        if keep or count > 0 or K[PLACED] != 0:
            rho = actuator_value(K, F, a, y) + F[offsets + a]
        theta, omega = ratio * rho, ratio * rate
        if count > 0:
            theta, omega = F[y + th + K[feed + 2]], F[y + th + c + K[feed + 2]]
        current = F[d + COMMAND]
        if kind == IDEAL:
            current = within_voltage(F, d, current, omega)
        elif kind == RESISTIVE:
            current = (current - F[d + EMF] * omega) / F[d + RESISTANCE]
        elif kind == INDUCTIVE:
            i = th + 2 * c + K[feed + 3]
            volts, current = current, F[y + i]
            F[out + i] = (volts - F[d + RESISTANCE] * current - F[d + EMF] * omega) / F[d + INDUCTANCE]
        rub = force_of(K, F, forms + a, dt, theta, omega) if rubs else 0.0
        tau = F[d + TORQUE] * current - rub
        if count > 0:
            if rubs:
                held = hold_rotor(K, F, forms + a, tau - first_shaft(K, F, y, a, rho, rate), F[K[SHAFT] + 3 * K[feed + 2]])
                rub, tau = rub + held, tau - held
            tau = shaft_forces(K, F, y, out, a, tau, rho, rate)
        loss = 0.0
        if F[d + EFFICIENCY] != 1.0:
            kept = rigid_gear(K, F, a, omega) if count == 0 else gear(F, d, tau, ratio * rate)
            F[d + KEPT] = kept
            F[d + FRONT] = tau
            loss = (1.0 - kept) * ratio * tau
        tau = ratio * tau - loss
        if j >= 0:
            F[h + j] -= F[d + SINGLE] * tau
        else:
            actuator_force(K, F, a, -tau, h)
        if keep:
            beyond = F[d + BEYOND] > 0.0 or (kind == IDEAL and current != F[d + COMMAND])
            F[d + AT_LIMIT] = 1.0 if beyond else 0.0
            F[d + S_TORQUE] = tau
            F[d + S_LOSS] = loss
            F[d + S_MOTOR] = F[d + TORQUE] * current
            F[d + S_CURRENT] = current
            F[d + S_RUB] = rub
            F[d + S_RHO] = rho
            F[d + S_RHO_V] = rate
            F[d + S_THETA] = theta
            F[d + S_OMEGA] = omega


@kernel
def joint_friction(K, F, y, dt):
    """Add the friction of the forms to the bias, but not the forces that hold them."""
    h, nt = K[FORCE], K[COUNT]
    F[K[GRIP] + GRIP_WIDTH * K[OWNERS] + STUCK] = 0.0
    for f in range(K[FORMS]):
        rub = force_of(K, F, f, dt, form_value(K, F, f, y), form_value(K, F, f, K[SPEED]))
        F[K[RUB] + f] = rub
        d = K[K[FORM] + f]
        if d >= 0:
            F[h + d] += rub
        else:
            for j in range(nt):
                F[h + j] += F[K[FORM_ROWS] + f * nt + j] * rub


@kernel
def external_forces(K, F, outside, carried, time):
    """Subtract external torques and wrenches from the bias; `time` counts in rows of `outside`, which is linear in between.

    Columns of `outside`: torques on the actuator coordinates, then (force, moment) on each of the nodes `carried`.
    """
    rows, h, k = outside.shape[0], K[FORCE], K[ACTUATORS]
    i = min(int(time), rows - 1)
    j, share = min(i + 1, rows - 1), time - i
    for a in range(k):
        actuator_force(K, F, a, -(outside[i, a] + share * (outside[j, a] - outside[i, a])), h)
    for e in range(carried.size):
        c, s = k + 6 * e, 1.0 - share
        x = -s * outside[i, c] - share * outside[j, c]
        y = -s * outside[i, c + 1] - share * outside[j, c + 1]
        z = -s * outside[i, c + 2] - share * outside[j, c + 2]
        a = -s * outside[i, c + 3] - share * outside[j, c + 3]
        b = -s * outside[i, c + 4] - share * outside[j, c + 4]
        g = -s * outside[i, c + 5] - share * outside[j, c + 5]
        link_force(K, F, carried[e], (x, y, z), (a, b, g), h)


@kernel
def decoupled(K, F, out, stuck):
    """Solve (motors + mechanism) nu_dot = force as document 4 does: the mechanism acts on the motors as a disturbance.

    Force is at TRIAL; accelerations go to F[out], which must not overlap it. Return a bad pivot or -1.
    """
    n, M, A, force, trial = K[DOF], K[GENERAL], K[OTHER], K[TRIAL], K[TRIAL] + K[DOF]
    method = K[METHOD]
    sandwich(K, F, K[MASS], M)
    sandwich(K, F, K[MOTORS], A)
    if method == EXACT:
        for i in range(n * n):
            F[A + i] += F[M + i]
    bad = factorise_symmetric(F, A, K[FACTOR], n)
    if bad >= 0:
        return bad
    if stuck:
        find_held(K, F)
    for r in range(n):
        F[out + r] = F[K[LAST] + r]
    for _ in range(TURNS if method == ITERATED else 1):
        for r in range(n):
            F[trial + r] = F[force + r]
        if method != EXACT:
            for r in range(n):
                for c in range(r + 1):
                    F[trial + r] -= F[M + r * n + c] * F[out + c]
                    if c < r:
                        F[trial + c] -= F[M + r * n + c] * F[out + r]
        solve_symmetric(F, K[FACTOR], trial, n)
        if stuck:
            hold(K, F, trial)
        change, size = 0.0, 0.0
        for r in range(n):
            change, size = max(change, abs(F[trial + r] - F[out + r])), max(size, abs(F[trial + r]))
            F[out + r] = F[trial + r]
        if not change > EVEN * size:
            break
    return bad


@kernel
def derivative(K, F, outside, carried, y, time, dt, row):
    """Write dy/dt at the state F[y], dt seconds after the start of the step, into row `row` of RATES; return FINE or why not.

    `time` counts in rows of `outside`.
    """
    nt, n, h = K[COUNT], K[DOF], K[FORCE]
    out = K[RATES] + row * K[SIZE]
    mode, method = K[MODE], K[METHOD]
    if mode == LOOPED:
        side, last = closure_map(K, F, y), K[LAST] + n
        if abs(side) < SINGULAR or side * F[last] < 0.0:
            return LOST_CLOSURE
        F[last] = side  # the sign of the closure's determinant tells the branches apart
        if row == 0 and pull_back(K, F, K[STATE]) > FAR:
            return LOST_CLOSURE
    tree_speeds(K, F, y + nt)
    motion_at(K, F, y)
    if mode == LOOPED:
        add_mass_times(K, F, K[MASS], K[CURVE], h)
        if method != ONE:
            add_mass_times(K, F, K[MOTORS], K[CURVE], h)
    joint_friction(K, F, y, dt)
    drive_forces(K, F, y, dt, out, row == 0)
    if outside.shape[0] > 0:
        if carried.size > 0 and K[MOTION] != 0:
            pose_tree(K, F, y)
        external_forces(K, F, outside, carried, time)
    stuck, force = F[K[GRIP] + GRIP_WIDTH * K[OWNERS] + STUCK] > 0.0, out + nt if method == ONE else K[TRIAL]
    if mode != TREE:
        generalised(K, F, h, force)
        h = force
    for r in range(n):
        F[force + r] = -F[h + r]
    if method == ONE:
        mass = K[MASS]
        if mode != TREE:
            mass = K[GENERAL]
            sandwich(K, F, K[MASS], mass)
        bad = solve_at(K, F, mass, force)
        if stuck and bad < 0:
            factorise_symmetric(F, mass, K[FACTOR], n)
            find_held(K, F)
            hold(K, F, force)
    else:
        bad = decoupled(K, F, out + nt, stuck)
    if bad >= 0:
        return SINGULAR_MASS
    if stuck:
        held_signals(K, F, row == 0)
    for i in range(nt):
        F[out + i] = F[K[SPEED] + i]
    if K[BALLS] != 0:
        coordinate_rates(K, F, y, out)
    return FINE


@kernel
def joint_load(K, F, f):
    """Return what the drives left of the joint of form f at the start of the step after its friction: the load of its links."""
    d, load = K[K[FORM] + f], -F[K[RUB] + f]
    for a in range(K[ACTUATORS]):
        load += F[K[COUPLING] + a * K[COUNT] + d] * F[K[DRIVE] + DRIVE_WIDTH * a + S_TORQUE]
    return load


@kernel
def advance_bristles(K, F, dt):
    """Move what friction remembers over a step, with the state at its end (dt = 0: only keep the speeds, to start a run).

    Loads, too, are those of the step that ends: friction that grows with the load is one step late.
    """
    settle(K, F, dt)
    for f in range(K[FORMS]):
        if F[K[GRIP] + GRIP_WIDTH * f + ASKS_LOAD] != 0.0:
            F[K[GRIP] + GRIP_WIDTH * f + LOADED] = joint_load(K, F, f)
    for a in range(K[ACTUATORS]):
        grip, d = K[GRIP] + GRIP_WIDTH * (K[FORMS] + a), K[DRIVE] + DRIVE_WIDTH * a
        if F[grip + ASKS_LOAD] != 0.0:
            F[grip + LOADED] = F[d + S_TORQUE] / F[d + RATIO]
    if K[MEMORY] > 1:
        for o in range(K[OWNERS]):
            advance_owner(K, F, o, dt, owner_speed(K, F, o))
