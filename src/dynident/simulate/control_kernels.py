"""Compiled control laws of a simulation: what the drives are told at every tick of their cycles, from what the sensors say.

Between two ticks everything is held. Laws are those of `dynident.control`; HELD leaves the command as it is (a controller in
Python, or one that asks a model, sets it between two runs). K, F are the arrays of the plant, C, D those of the controller and
its model; `wanted` has the columns rho, rho_v, feed-forward (k each), x, v, a (n each).
"""

from __future__ import annotations

from math import floor

from dynident.mechanics.kernels import sample_kernel as kernel
from dynident.mechanics.packed import COUNT, SPEED
from dynident.simulate.friction_kernels import clip
from dynident.simulate.gear_kernels import within_voltage
from dynident.simulate.hold_kernels import rotor_speed
from dynident.simulate.layout import (
    ACTUATORS,
    ASKED,
    AT_LIMIT,
    BEYOND,
    BLEND,
    CASCADE,
    COMMAND,
    CURRENT,
    CURRENT_GAIN,
    CURRENT_LIMIT,
    CURRENT_STEP,
    CUT_STEPS,
    DOF,
    DRIVE,
    DRIVE_WIDTH,
    ELECTRIC,
    EMF,
    EXACT_SPEED,
    FEED,
    FEED_WIDTH,
    GAIN,
    IDEAL,
    INDUCTIVE,
    INNER,
    INTEGRAL,
    ISSUED,
    KD,
    KI,
    KIC,
    KP,
    KPC,
    LATE,
    LATE_WISH,
    LAW_OF,
    LOOP,
    OFFSETS,
    ON_MOTOR,
    OPEN,
    OPEN_TORQUE,
    OUTER,
    PID,
    PLAN,
    QUEUE,
    RATIO,
    RESISTANCE,
    RESOLUTION,
    RHO,
    RHO_V,
    SENSE,
    SENSED_CURRENT,
    SENSOR,
    SENSOR_WIDTH,
    SENT,
    SHAFTS,
    SHARE,
    SLOPE,
    SLOW_IN,
    SLOW_OUT,
    SPEED_LIMIT,
    STATE,
    TORQUE,
    TORQUES,
    VOLTAGE_LIMIT,
    WIDE,
    WINDUP,
    WISH,
    WISHES,
)
from dynident.simulate.skeleton_kernels import actuator_value, tree_speeds


@kernel
def loop_at(C, row):
    """Return where row `row` of the controller's memory begins in D."""
    return C[LOOP] + row * C[WIDE]


@kernel
def gain_at(C, row):
    """Return where row `row` of the gains begins in D."""
    return C[GAIN] + row * C[WIDE]


@kernel
def quantised(x, size):
    """Return x on a grid."""
    return size * floor(x / size + 0.5) if size > 0.0 else x


@kernel
def sensed_current(K, F, C, D, noise, step, a):
    """Return the motor current as its sensor sees it now; tree velocities must be those of the state.

    A row of `noise` has the encoders', then one number per actuator for every tick of the current loop up to the next row.
    """
    d, feed, sensor = K[DRIVE] + DRIVE_WIDTH * a, K[FEED] + FEED_WIDTH * a, C[SENSOR] + SENSOR_WIDTH * a
    k, plan = K[ACTUATORS], C[PLAN]
    current = F[d + COMMAND]
    if K[feed] == INDUCTIVE:
        current = F[K[STATE] + K[COUNT] + K[DOF] + 2 * K[SHAFTS] + K[feed + 3]]
    elif K[feed] == IDEAL:
        current = within_voltage(F, d, current, rotor_speed(K, F, a))
    else:
        current = (current - F[d + EMF] * rotor_speed(K, F, a)) / F[d + RESISTANCE]
    current *= D[sensor + CURRENT_GAIN]
    if noise.shape[1] > k:
        tick = step % C[plan + SENSE] // C[plan + CURRENT] if C[plan + CURRENT] > 0 else 0
        current += noise[min(step // C[plan + SENSE], noise.shape[0] - 1), (1 + tick) * k + a]
    return quantised(current, D[sensor + CURRENT_STEP])


@kernel
def send(F, C, D, d, a, command, beyond):
    """Give drive a a command, which reaches it after the delay of the law; `beyond` tells that a limit has cut it."""
    D[C[LOOP] + SENT * C[WIDE] + a] = command
    F[d + BEYOND] = 1.0 if beyond else 0.0
    if C[C[PLAN] + LATE] == 0:
        F[d + COMMAND] = command


@kernel
def sense(K, F, C, D, noise, step, h):
    """Write what the sensors of all drives say now; `h` is the step of the plant."""
    y, ticks = K[STATE], C[C[PLAN] + SENSE]
    tree_speeds(K, F, y + K[COUNT])
    for a in range(K[ACTUATORS]):
        ratio, s = F[K[DRIVE] + DRIVE_WIDTH * a + RATIO], C[SENSOR] + SENSOR_WIDTH * a
        rho, rate = actuator_value(K, F, a, y) + F[K[OFFSETS] + a], actuator_value(K, F, a, K[SPEED])
        scale = 1.0
        if D[s + ON_MOTOR] > 0.0:
            scale = ratio
            if K[K[FEED] + FEED_WIDTH * a + 1] > 0:
                rho = F[y + K[COUNT] + K[DOF] + K[K[FEED] + FEED_WIDTH * a + 2]] / ratio
                rate = rotor_speed(K, F, a) / ratio
        value = rho * scale
        if noise.shape[0] > 0:
            value += noise[min(step // ticks, noise.shape[0] - 1), a]
        seen = quantised(value, D[s + RESOLUTION]) / scale
        last, slow = loop_at(C, RHO) + a, loop_at(C, RHO_V) + a
        if step == 0:
            D[slow] = rate
        else:
            if D[s + EXACT_SPEED] == 0.0:
                rate = (seen - D[last]) / (ticks * h)
            D[slow] += D[s + BLEND] * (rate - D[slow])
        D[last] = seen
        D[loop_at(C, SENSED_CURRENT) + a] = sensed_current(K, F, C, D, noise, step, a)


@kernel
def limit_current(K, F, a, current, omega):
    """Return the current within the limits of motor and amplifier."""
    d = K[DRIVE] + DRIVE_WIDTH * a
    cut = clip(current, F[d + CURRENT_LIMIT])
    return within_voltage(F, d, cut, omega) if K[K[FEED] + FEED_WIDTH * a] == IDEAL else cut


@kernel
def hold_torque(K, F, C, D, a):
    """Hold the current that gives torque TORQUES[a] at the actuator coordinate, within the limits; return 1 when it was cut."""
    d = K[DRIVE] + DRIVE_WIDTH * a
    wanted = D[C[TORQUES] + a] / (F[d + RATIO] * F[d + TORQUE])
    current = limit_current(K, F, a, wanted, F[d + RATIO] * D[loop_at(C, RHO_V) + a])
    send(F, C, D, d, a, current, current != wanted)
    return current != wanted


@kernel
def open_tick(K, F, C, D, wanted, row):
    """Hold row `row` of the table."""
    k = K[ACTUATORS]
    for a in range(k):
        value, d = wanted[row, 2 * k + a], K[DRIVE] + DRIVE_WIDTH * a
        if C[C[PLAN] + OPEN_TORQUE] != 0:
            D[C[TORQUES] + a] = value
            hold_torque(K, F, C, D, a)
            continue
        if K[K[FEED] + FEED_WIDTH * a] == IDEAL:
            held = limit_current(K, F, a, value, F[d + RATIO] * D[loop_at(C, RHO_V) + a])
        else:
            held = clip(value, F[d + VOLTAGE_LIMIT])
        send(F, C, D, d, a, held, held != value)


@kernel
def velocity_tick(K, F, C, D, wanted, step, h, row, a):
    """Move the velocity loop of actuator a: its wanted current."""
    d, k, plan = K[DRIVE] + DRIVE_WIDTH * a, K[ACTUATORS], C[PLAN]
    ratio = F[d + RATIO]
    speed = ratio * D[loop_at(C, RHO_V) + a]
    error = ratio * D[loop_at(C, WISH) + a] - speed
    feed = wanted[row, 2 * k + a] / (ratio * F[d + TORQUE])
    store, asked = loop_at(C, INTEGRAL) + a, loop_at(C, ASKED) + a
    integral = D[store] + D[gain_at(C, KI) + a] * error * C[plan + INNER] * h
    share = D[gain_at(C, SLOW_IN) + a] if step > 0 else 1.0
    fixed = D[gain_at(C, KD) + a] * error + feed
    smooth = D[asked] + share * (fixed + integral - D[asked])
    current = limit_current(K, F, a, smooth, speed)
    cut = current != smooth
    if cut and C[plan + WINDUP] != 0 and (smooth - current) * error > 0.0:
        integral = D[store]  # conditional integration: not further into the limit
        current = limit_current(K, F, a, D[asked] + share * (fixed + integral - D[asked]), speed)
    D[store] = integral
    D[asked] = current
    F[d + BEYOND] = 1.0 if cut else 0.0
    if K[K[FEED] + FEED_WIDTH * a] == IDEAL:
        send(F, C, D, d, a, current, cut)


@kernel
def current_tick(K, F, C, D, noise, step, h, a):
    """Move the current loop of actuator a: its voltage."""
    d, plan, store = K[DRIVE] + DRIVE_WIDTH * a, C[PLAN], loop_at(C, ELECTRIC) + a
    error = D[loop_at(C, ASKED) + a] - sensed_current(K, F, C, D, noise, step, a)
    integral = D[store] + D[gain_at(C, KIC) + a] * error * C[plan + CURRENT] * h
    wanted = D[gain_at(C, KPC) + a] * error + integral
    voltage = clip(wanted, F[d + VOLTAGE_LIMIT])
    beyond = F[d + BEYOND] > 0.0
    if voltage != wanted:
        beyond = True
        if C[plan + WINDUP] != 0 and (wanted - voltage) * error > 0.0:
            integral = D[store]
            voltage = clip(D[gain_at(C, KPC) + a] * error + integral, F[d + VOLTAGE_LIMIT])
    D[store] = integral
    send(F, C, D, d, a, voltage, beyond)


@kernel
def cascade_tick(K, F, C, D, wanted, noise, step, h, row):
    """Move the loops that are due; a wanted speed reaches the velocity loop LATE_WISH of its ticks later."""
    plan, k = C[PLAN], K[ACTUATORS]
    if step % C[plan + OUTER] == 0:
        for a in range(k):
            error = wanted[row, a] - D[loop_at(C, RHO) + a]
            speed = D[gain_at(C, KP) + a] * error + D[gain_at(C, SHARE) + a] * wanted[row, k + a]
            wish = loop_at(C, ISSUED) + a
            share = D[gain_at(C, SLOW_OUT) + a] if step > 0 else 1.0
            D[wish] += share * (clip(speed, D[gain_at(C, SPEED_LIMIT) + a]) - D[wish])
    if step % C[plan + INNER] == 0:
        late = C[plan + LATE_WISH]
        slot = C[WISHES] + (step // C[plan + INNER] % late if late > 0 else 0) * C[WIDE]
        for a in range(k):
            new = D[loop_at(C, ISSUED) + a]
            D[loop_at(C, WISH) + a] = D[slot + a] if late > 0 else new
            D[slot + a] = new
            velocity_tick(K, F, C, D, wanted, step, h, row, a)
    if C[plan + CURRENT] > 0 and step % C[plan + CURRENT] == 0:
        tree_speeds(K, F, K[STATE] + K[COUNT])
        for a in range(k):
            current_tick(K, F, C, D, noise, step, h, a)


@kernel
def pid_torques(K, C, D, wanted, step, h, row):
    """Write torques from position and velocity errors of the actuators into TORQUES."""
    k, dt = K[ACTUATORS], C[C[PLAN] + OUTER] * h
    for a in range(k):
        error, slope = wanted[row, a] - D[loop_at(C, RHO) + a], wanted[row, k + a] - D[loop_at(C, RHO_V) + a]
        slow, store = loop_at(C, SLOPE) + a, loop_at(C, INTEGRAL) + a
        D[slow] += (D[gain_at(C, SLOW_OUT) + a] if step > 0 else 1.0) * (slope - D[slow])
        D[store] += error * dt
        feedback = D[gain_at(C, KP) + a] * error + D[gain_at(C, KD) + a] * D[slow] + D[gain_at(C, KI) + a] * D[store]
        D[C[TORQUES] + a] = feedback + wanted[row, 2 * k + a]


@kernel
def pid_hold(K, F, C, D, wanted, h, row):
    """Hold TORQUES; an actuator at its limit does not integrate further into it."""
    dt = C[C[PLAN] + OUTER] * h
    for a in range(K[ACTUATORS]):
        error = wanted[row, a] - D[loop_at(C, RHO) + a]
        if hold_torque(K, F, C, D, a) and D[C[TORQUES] + a] * error > 0.0:
            D[loop_at(C, INTEGRAL) + a] -= error * dt


@kernel
def control(K, F, C, D, wanted, noise, every, step, h):
    """Do what is due at this step; laws that ask a model are moved by `model_kernels.model_tick` between two runs."""
    plan = C[PLAN]
    law = C[plan + LAW_OF]
    if law == OPEN:
        if step % every == 0 and (step == 0 or step // every < wanted.shape[0]):  # the last row is held without asking again
            sense(K, F, C, D, noise, step, h)
            open_tick(K, F, C, D, wanted, step // every)
    elif law in (CASCADE, PID):
        row = min(step // every, wanted.shape[0] - 1)
        if step % C[plan + SENSE] == 0:
            sense(K, F, C, D, noise, step, h)
        if law == CASCADE:
            cascade_tick(K, F, C, D, wanted, noise, step, h, row)
        elif step % C[plan + OUTER] == 0:
            pid_torques(K, C, D, wanted, step, h, row)
            pid_hold(K, F, C, D, wanted, h, row)
    for a in range(K[ACTUATORS]):
        d = K[DRIVE] + DRIVE_WIDTH * a
        F[d + CUT_STEPS] += F[d + AT_LIMIT]  # of the step before
    late = C[plan + LATE]
    if late > 0:  # what was sent `late` steps ago arrives; nothing does before the first
        slot, sent = C[QUEUE] + step % late * C[WIDE], loop_at(C, SENT)
        for a in range(K[ACTUATORS]):
            F[K[DRIVE] + DRIVE_WIDTH * a + COMMAND] = D[slot + a]
            D[slot + a] = D[sent + a]
