"""The compiled simulation: control ticks, integration steps, records, until the end or until something breaks."""

from __future__ import annotations

from dynident.mechanics.kernels import sample_kernel as kernel
from dynident.mechanics.packed import BIAS, COUNT, MASS, MOTION, RECORDS, SPEED
from dynident.mechanics.sample_kernels import U3, first_moment, place, pose_tree, vector
from dynident.simulate.control_kernels import control
from dynident.simulate.friction_kernels import clip
from dynident.simulate.gear_kernels import forget_losses, gears_agree
from dynident.simulate.hold_kernels import form_value
from dynident.simulate.layout import (
    ACTUATORS,
    BALLS,
    BEFORE,
    COMMAND,
    COUPLED,
    DOF,
    DRIVE,
    DRIVE_WIDTH,
    EMF,
    FEED,
    FEED_WIDTH,
    FINE,
    FORMS,
    IDEAL,
    INDEPENDENT,
    KEPT,
    LAST,
    LAW,
    LAW_FIRST,
    LAW_KIND,
    LAW_WIDTH,
    LOOP,
    LOOPED,
    LOSSY,
    MEMORY,
    METHOD,
    MIDPOINT,
    MODE,
    MOTORS,
    ONE,
    PLAY,
    RATES,
    RATIO,
    RESISTANCE,
    RHO,
    RHO_V,
    RK4,
    RUB,
    S_CURRENT,
    S_LOSS,
    S_OMEGA,
    S_RHO,
    S_RHO_V,
    S_TORQUE,
    SHAFT,
    SHAFTS,
    SIZE,
    SPRING,
    STAGE,
    STATE,
    UNSTABLE,
    VOLTAGE_LIMIT,
    WIDE,
)
from dynident.simulate.plant_kernels import advance_bristles, derivative
from dynident.simulate.skeleton_kernels import close_step, coordinate_rates, tree_speeds, wrap_rotations

TRIES = 4  # to find the directions of power through gears with losses; one or two do


@kernel
def energy(K, F):
    """Return kinetic and potential energy at the last evaluation: bodies, motors, shaft masses, shafts, springs."""
    nt, n, c, y, v = K[COUNT], K[DOF], K[SHAFTS], K[STATE], K[SPEED]
    kinetic = 0.0
    for i in range(nt):
        for j in range(i + 1):
            value = F[K[MASS] + i * nt + j]
            if K[METHOD] != ONE:
                value += F[K[MOTORS] + i * nt + j]
            kinetic += (0.5 if i == j else 1.0) * value * F[v + i] * F[v + j]
    if K[MOTION] != 0:
        pose_tree(K, F, y)
    up = vector(F, place(K, RECORDS) + BIAS + U3)  # the base's upward acceleration, which stands for gravity
    moment = first_moment(K, F)
    potential = up[0] * moment[0] + up[1] * moment[1] + up[2] * moment[2]
    for f in range(K[FORMS]):
        for r in range(K[K[LAW_FIRST] + f], K[K[LAW_FIRST] + f + 1]):
            if K[K[LAW_KIND] + 2 * r] == SPRING:
                potential += 0.5 * F[K[LAW] + LAW_WIDTH * r] * form_value(K, F, f, y) ** 2
    for a in range(K[ACTUATORS]):
        first, d = K[K[FEED] + FEED_WIDTH * a + 2], K[DRIVE] + DRIVE_WIDTH * a
        last = first + K[K[FEED] + FEED_WIDTH * a + 1]
        if first == last:  # what the gear's loss has added to the mass matrix is no inertia
            kinetic -= 0.5 * (F[d + KEPT] - 1.0) * F[d + BEFORE] * (F[d + RATIO] * F[d + S_RHO_V]) ** 2
        for e in range(first, last):
            kinetic += 0.5 * F[K[SHAFT] + 3 * e] * F[y + nt + n + c + e] ** 2
            behind = F[y + nt + n + e + 1] if e < last - 1 else F[d + RATIO] * F[d + S_RHO]
            twist = F[y + nt + n + e] - behind
            if e == last - 1:
                twist -= clip(twist, F[d + PLAY])
            potential += 0.5 * F[K[SHAFT] + 3 * e + 1] * twist * twist
    return kinetic, potential


@kernel
def write_record(K, F, C, D, out, i):
    """Write row i of the record: what is true at the start of this step (columns as in `plant.Columns`)."""
    nt, n, k, y = K[COUNT], K[DOF], K[ACTUATORS], K[STATE]
    for c in range(n):
        out[i, c] = F[y + K[K[INDEPENDENT] + c]]
        out[i, n + c] = F[y + nt + c]
        out[i, 2 * n + c] = F[K[RATES] + nt + c]
    for j in range(nt):
        out[i, 3 * n + j] = F[y + j]
    o = 3 * n + nt
    for a in range(k):
        d = K[DRIVE] + DRIVE_WIDTH * a
        for signal in range(8):
            out[i, o + signal * k + a] = F[d + S_TORQUE + signal]
        voltage = F[d + COMMAND]
        if K[K[FEED] + FEED_WIDTH * a] == IDEAL:
            voltage = F[d + RESISTANCE] * F[d + S_CURRENT] + F[d + EMF] * F[d + S_OMEGA]
            if F[d + RESISTANCE] > 0.0:
                voltage = clip(voltage, F[d + VOLTAGE_LIMIT])  # rounding
        out[i, o + 8 * k + a] = voltage
        out[i, o + 9 * k + a] = D[C[LOOP] + RHO * C[WIDE] + a]
        out[i, o + 10 * k + a] = D[C[LOOP] + RHO_V * C[WIDE] + a]
        out[i, o + 11 * k + a] = F[d + S_LOSS]
    o += 12 * k
    for f in range(K[FORMS]):
        out[i, o + f] = F[K[RUB] + f]
    o += K[FORMS]
    out[i, o], out[i, o + 1] = energy(K, F)


@kernel
def finish_euler(K, F, h):
    """Make a semi-implicit Euler step: velocities first, then positions with the new velocities."""
    nt, n, c, y, out = K[COUNT], K[DOF], K[SHAFTS], K[STATE], K[RATES]
    for r in range(nt, nt + n):
        F[y + r] += h * F[out + r]
    tree_speeds(K, F, y + nt)
    for i in range(nt):
        F[out + i] = F[K[SPEED] + i]
    if K[BALLS] != 0:
        coordinate_rates(K, F, y, out)
    for i in range(nt):
        F[y + i] += h * F[out + i]
    for e in range(nt + n + c, nt + n + 2 * c):
        F[y + e] += h * F[out + e]
        F[y + e - c] += h * F[y + e]
    for e in range(nt + n + 2 * c, K[SIZE]):
        F[y + e] += h * F[out + e]


@kernel
def finish_step(K, F, h, integrator):
    """Make the step from the rates of all stages."""
    size, y, out = K[SIZE], K[STATE], K[RATES]
    if integrator == RK4:
        for i in range(size):
            middle = F[out + size + i] + F[out + 2 * size + i]
            F[y + i] += h / 6.0 * (F[out + i] + 2.0 * middle + F[out + 3 * size + i])
    elif integrator == MIDPOINT:
        for i in range(size):
            F[y + i] += h * F[out + size + i]
    else:
        finish_euler(K, F, h)


@kernel
def check_step(K, F, limit):
    """Put coupled joints back in their place; return FINE, or UNSTABLE and which velocity."""
    nt, n, c, y = K[COUNT], K[DOF], K[SHAFTS], K[STATE]
    for i in range(nt, K[SIZE]):
        if (i < nt + n or i >= nt + n + c) and not abs(F[y + i]) < limit:
            return UNSTABLE, i - nt
    if K[MODE] == COUPLED:
        close_step(K, F, y)
    if K[BALLS] != 0:
        wrap_rotations(K, F, y)
    return FINE, -1


@kernel
def run(K, F, C, D, wanted, noise, every, outside, carried, beat, steps, h, integrator, record, log_every, limit):
    """Advance the robot by `steps` steps of length h; return (FINE or why it stopped, step, velocity).

    K, F are the plant's arrays, C, D the controller's; `wanted` has one row every `every` steps, `outside` every `beat` steps.
    Every `log_every` steps the truth at the start of the step goes into row step / log_every of `record`, if there is one.
    Velocities beyond `limit`, or not finite, count as unstable.
    """
    n, size, y, stage, out, looped = K[DOF], K[SIZE], K[STATE], K[STAGE], K[RATES], K[MODE] == LOOPED
    lossy = K[LOSSY] != 0
    first = int(F[K[LAST] + n + 1])
    stages = 4 if integrator == RK4 else (2 if integrator == MIDPOINT else 1)
    for step in range(first, first + steps):
        control(K, F, C, D, wanted, noise, every, step, h)
        if K[MEMORY] != 0 and step == 0:
            advance_bristles(K, F, 0.0)
        for j in range(stages):
            share = 0.0 if j == 0 else (1.0 if j == 3 else 0.5)
            part, last, here = share * h, out + max(j - 1, 0) * size, stage if j > 0 or looped else y
            if here == stage:  # the first evaluation of loops, too, needs a copy: it pulls the state back on the closure
                for i in range(size):
                    F[stage + i] = F[y + i] + part * F[last + i]
            for _ in range(TRIES):
                if lossy:
                    forget_losses(K, F)
                status = derivative(K, F, outside, carried, here, (step + share) / beat, part, j)
                # For given directions of power the losses are linear in the accelerations; those of the last one come first.
                if not lossy or status != FINE or gears_agree(K, F, j, j == 0):
                    break
            if status != FINE:
                return status, step, -1
            if j == 0 and step % log_every == 0 and step // log_every < record.shape[0]:
                write_record(K, F, C, D, record, step // log_every)
        for r in range(n):
            F[K[LAST] + r] = F[out + K[COUNT] + r]
        finish_step(K, F, h, integrator)
        status, which = check_step(K, F, limit)
        if status != FINE:
            return status, step, which
        if K[MEMORY] != 0:
            advance_bristles(K, F, h)
        F[K[LAST] + n + 1] = step + 1
    return FINE, first + steps, -1
