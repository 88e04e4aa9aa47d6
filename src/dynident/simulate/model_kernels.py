"""Compiled pose and inverse dynamics of a controller's model: from sensed motors to coordinates, and back to motor torques."""

from __future__ import annotations

from dynident.mechanics.kernels import sample_kernel as kernel
from dynident.mechanics.packed import COUNT, FORCE, MASS, SPEED
from dynident.mechanics.sample_kernels import factorise_symmetric, solve_symmetric
from dynident.simulate.control_kernels import hold_torque, pid_hold, pid_torques, sense
from dynident.simulate.layout import (
    ACTUATORS,
    ASKED_A,
    COMPUTED,
    CONSTANT,
    COUPLING,
    CURVE,
    DOF,
    FINE,
    GAIN,
    GRAM,
    GRAM_FACTOR,
    INDEPENDENT,
    INTEGRAL,
    INVERSE,
    KD,
    KI,
    KP,
    LAW_OF,
    LOOP,
    LOOPED,
    LOST_CLOSURE,
    MAP,
    MAP_A,
    MEASURED,
    MODE,
    OFFSETS,
    ON_REFERENCE,
    OUTER,
    PART,
    PLAN,
    POSE,
    PRELOAD,
    REMOVE,
    RHO,
    RHO_V,
    SLOPE,
    SLOW_OUT,
    TORQUES,
    WIDE,
    WISH,
    ZERO,
)
from dynident.simulate.motion_kernels import motion_at
from dynident.simulate.plant_kernels import joint_friction
from dynident.simulate.skeleton_kernels import (
    actuator_value,
    add_mass_times,
    close_step,
    closure_map,
    generalised,
    tree_speeds,
)

POSES = 6  # Gauss-Newton steps from the last pose to the sensed one
NEAR = 1e-9  # step at which they have converged


@kernel
def actuator_map(C, D):
    """Write A = N G of the last pose and the factors of A^T A; return whether A has full rank."""
    nt, n, k, A = C[COUNT], C[DOF], C[ACTUATORS], C[MAP_A]
    for a in range(k):
        for c in range(n):
            value = 0.0
            for i in range(nt):
                value += D[C[COUPLING] + a * nt + i] * D[C[MAP] + i * n + c]
            D[A + a * n + c] = value
    for r in range(n):
        for c in range(r + 1):
            value = 0.0
            for a in range(k):
                value += D[A + a * n + r] * D[A + a * n + c]
            D[C[GRAM] + r * n + c] = value
    return factorise_symmetric(D, C[GRAM], C[GRAM_FACTOR], n) < 0


@kernel
def pose_map(C, D):
    """Write G and A of the model at POSE; return FINE or why not."""
    if (C[MODE] == LOOPED and closure_map(C, D, C[POSE]) == 0.0) or not actuator_map(C, D):
        return LOST_CLOSURE
    return FINE


@kernel
def least_squares(C, D, rate, out):
    """Write (A^T A)^-1 A^T rate (n,) from k numbers at D[rate]."""
    n = C[DOF]
    for c in range(n):
        value = 0.0
        for a in range(C[ACTUATORS]):
            value += D[C[MAP_A] + a * n + c] * D[rate + a]
        D[out + c] = value
    solve_symmetric(D, C[GRAM_FACTOR], out, n)


@kernel
def measured_pose(C, D):
    """Write coordinates and velocities into MEASURED (2 n) and tree positions into POSE that belong to the sensed actuators."""
    nt, n, k, x = C[COUNT], C[DOF], C[ACTUATORS], C[MEASURED]
    rho, rho_v, q = C[LOOP] + RHO * C[WIDE], C[LOOP] + RHO_V * C[WIDE], C[POSE]
    if C[MODE] != LOOPED:
        for c in range(n):
            position, speed = 0.0, 0.0
            for a in range(k):
                position += D[C[INVERSE] + c * k + a] * (D[rho + a] - D[C[ZERO] + a])
                speed += D[C[INVERSE] + c * k + a] * D[rho_v + a]
            D[x + c] = position
            D[x + n + c] = speed
        for i in range(nt):
            value = D[C[CONSTANT] + i]
            for c in range(n):
                value += D[C[MAP] + i * n + c] * D[x + c]
            D[q + i] = value
        return FINE
    for _ in range(POSES):  # all motors pull alike when there are more than freedoms
        if pose_map(C, D) != FINE:
            return LOST_CLOSURE
        for a in range(k):
            D[C[TORQUES] + a] = D[rho + a] - D[C[OFFSETS] + a] - actuator_value(C, D, a, q)
        least_squares(C, D, C[TORQUES], C[PART])
        size = 0.0
        for c in range(n):
            size = max(size, abs(D[C[PART] + c]))
        for i in range(nt):
            for c in range(n):
                D[q + i] += D[C[MAP] + i * n + c] * D[C[PART] + c]
        if close_step(C, D, q) == 0.0:
            return LOST_CLOSURE
        if size < NEAR:
            break
    for c in range(n):
        D[x + c] = D[q + C[C[INDEPENDENT] + c]]
    least_squares(C, D, rho_v, x + n)
    return FINE


@kernel
def distribute(C, D, project):
    """Add the internal part of the preload to TORQUES; with `project` their own internal part is removed before."""
    n, k, A, tau, part = C[DOF], C[ACTUATORS], C[MAP_A], C[TORQUES], C[PART]
    load = C[GAIN] + PRELOAD * C[WIDE]
    if project:
        least_squares(C, D, tau, part)
        for a in range(k):
            D[tau + a] = 0.0
            for c in range(n):
                D[tau + a] += D[A + a * n + c] * D[part + c]
    least_squares(C, D, load, part)
    for a in range(k):
        D[tau + a] += D[load + a]
        for c in range(n):
            D[tau + a] -= D[A + a * n + c] * D[part + c]


@kernel
def model_forces(C, D, q, v, a, out):
    """Write the generalised forces (n,) that give accelerations D[a] at tree positions D[q] and velocities D[v]."""
    nt, n, h, s = C[COUNT], C[DOF], C[FORCE], C[SPEED]
    if C[MODE] == LOOPED and closure_map(C, D, q) == 0.0:
        return LOST_CLOSURE
    tree_speeds(C, D, v)
    motion_at(C, D, q)
    joint_friction(C, D, q, 0.0)
    for i in range(nt):  # SPEED holds the accelerations of the tree from here on
        value = D[C[CURVE] + i]
        for c in range(n):
            value += D[C[MAP] + i * n + c] * D[a + c]
        D[s + i] = value
    add_mass_times(C, D, C[MASS], s, h)
    generalised(C, D, h, out)
    return FINE


@kernel
def computed_torque(C, D, wanted, row, first, dt, step):
    """Write the torques of the computed-torque law into TORQUES; columns x, v, a of `wanted` begin at `first`."""
    n, k, wide, x = C[DOF], C[ACTUATORS], C[WIDE], C[MEASURED]
    gain, loop, a, q = C[GAIN], C[LOOP], C[ASKED_A], C[POSE]
    for c in range(n):
        error, slope = wanted[row, first + c] - D[x + c], wanted[row, first + n + c] - D[x + n + c]
        slow, store = loop + SLOPE * wide + c, loop + INTEGRAL * wide + c
        D[slow] += (D[gain + SLOW_OUT * wide + c] if step > 0 else 1.0) * (slope - D[slow])
        D[store] += error * dt
        D[loop + WISH * wide + c] = error
        feedback = D[gain + KP * wide + c] * error + D[gain + KD * wide + c] * D[slow] + D[gain + KI * wide + c] * D[store]
        D[a + c] = wanted[row, first + 2 * n + c] + feedback
    if C[C[PLAN] + ON_REFERENCE] != 0:  # move the model to the wanted pose instead of the sensed one
        for c in range(n):
            D[x + n + c] = wanted[row, first + n + c]
            for i in range(C[COUNT]):
                D[q + i] += D[C[MAP] + i * n + c] * D[loop + WISH * wide + c]
        if close_step(C, D, q) == 0.0:
            return LOST_CLOSURE
    status = model_forces(C, D, q, x + n, a, C[PART])
    if status != FINE or not actuator_map(C, D):
        return LOST_CLOSURE
    solve_symmetric(D, C[GRAM_FACTOR], C[PART], n)
    for e in range(k):
        D[C[TORQUES] + e] = 0.0
        for c in range(n):
            D[C[TORQUES] + e] += D[C[MAP_A] + e * n + c] * D[C[PART] + c]
    distribute(C, D, False)
    return FINE


@kernel
def model_tick(K, F, C, D, wanted, noise, every, step, h):
    """Sense, and hold the command of a law that asks a model (COMPUTED, PROJECTED); return FINE or why not.

    It is called between two runs and not inside: the loops of robots without such a law then need not be compiled with it.
    """
    plan, k = C[PLAN], C[ACTUATORS]
    dt, row = C[plan + OUTER] * h, min(step // every, wanted.shape[0] - 1)
    sense(K, F, C, D, noise, step, h)
    if measured_pose(C, D) != FINE:
        return LOST_CLOSURE
    if C[plan + LAW_OF] == COMPUTED:
        if computed_torque(C, D, wanted, row, 3 * k, dt, step) != FINE:
            return LOST_CLOSURE
        cut = False
        for a in range(k):
            cut |= hold_torque(K, F, C, D, a)
        if cut:
            for c in range(C[DOF]):  # undo what this tick has integrated
                D[C[LOOP] + INTEGRAL * C[WIDE] + c] -= D[C[LOOP] + WISH * C[WIDE] + c] * dt
        return FINE
    if pose_map(C, D) != FINE:
        return LOST_CLOSURE
    pid_torques(K, C, D, wanted, step, h, row)
    distribute(C, D, C[plan + REMOVE] != 0)
    pid_hold(K, F, C, D, wanted, h, row)
    return FINE
