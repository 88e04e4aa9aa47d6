"""Compiled sticking: joints and rotors that dry friction holds, and the moments at which they stop or turn back.

An owner of friction with speed c nu sticks while the force that keeps it at rest stays within the levels of its jumps,

    c nu_dot = -c nu / h   with   -down <= f <= up,    or    f = up (down) and it slips,    M nu_dot = force - sum c^T f

which is solved with the accelerations of every stage (projected Gauss-Seidel, from the forces of the stage before): nothing
creeps, no elastic displacement, no matter what the inertias are. One that slides keeps its side for a whole step, so the
integrator sees a smooth force. If its speed has changed sign at the end, what friction did after the stop is made good: by an
impulse that stops it, if friction can, or else turns the friction round, and by the displacement that belongs to it. Stops and
reversals are then as accurate as a speed that is linear within the step.
"""

from __future__ import annotations

from dynident.mechanics.kernels import sample_kernel as kernel
from dynident.mechanics.packed import COUNT, FACTOR, MASS, SPEED
from dynident.mechanics.sample_kernels import factorise_symmetric, solve_symmetric
from dynident.simulate.layout import (
    BALLS,
    BEGIN,
    COUPLING,
    DOF,
    DOWN,
    DRIVE,
    DRIVE_WIDTH,
    FEED,
    FEED_WIDTH,
    FORM,
    FORM_ROWS,
    FORMS,
    FRONT,
    GENERAL,
    GIVES,
    GRIP,
    GRIP_WIDTH,
    HELD_FORCE,
    JUMPS,
    KEPT,
    MAP,
    METHOD,
    MODE,
    MOTORS,
    NOW,
    ONE,
    OTHER,
    OWNERS,
    RATE,
    RATIO,
    REPLY,
    RUB,
    S_RUB,
    S_TORQUE,
    SHAFT,
    SHAFTS,
    SIDE,
    SINGLE,
    STATE,
    TAIL,
    TREE,
    UP,
)
from dynident.simulate.skeleton_kernels import actuator_value, sandwich, tree_speeds

SWEEPS = 200  # at most; one or two while everything rests
SETTLED = 1e-14  # change of a force over its level
LEAST = 1e-12  # share of a level that is left when it counts as used up


@kernel
def form_value(K, F, f, x):
    """Return what friction form f makes of tree coordinates at F[x]."""
    d = K[K[FORM] + f]
    if d >= 0:
        return F[x + d]
    value, row = 0.0, K[FORM_ROWS] + f * K[COUNT]
    for j in range(K[COUNT]):
        value += F[row + j] * F[x + j]
    return value


@kernel
def rotor_speed(K, F, a):
    """Return the speed of rotor a at the state, from tree velocities SPEED or its own."""
    feed, d = K[FEED] + FEED_WIDTH * a, K[DRIVE] + DRIVE_WIDTH * a
    if K[feed + 1] > 0:
        return F[K[STATE] + K[COUNT] + K[DOF] + K[SHAFTS] + K[feed + 2]]
    if K[feed + 4] >= 0:
        return F[d + RATIO] * F[d + SINGLE] * F[K[SPEED] + K[feed + 4]]
    return F[d + RATIO] * actuator_value(K, F, a, K[SPEED])


@kernel
def owner_speed(K, F, o):
    """Return the speed of an owner at the state, from tree velocities SPEED."""
    return form_value(K, F, o, K[SPEED]) if o < K[FORMS] else rotor_speed(K, F, o - K[FORMS])


@kernel
def on_shaft(K, o):
    """Tell whether an owner is a rotor in front of an elastic shaft, which moves on its own."""
    return o >= K[FORMS] and K[K[FEED] + FEED_WIDTH * (o - K[FORMS]) + 1] > 0


@kernel
def sticks(K, F, o):
    """Tell whether an owner that moves with the mechanism is held."""
    grip = K[GRIP] + GRIP_WIDTH * o
    return F[grip + JUMPS] != 0.0 and F[grip + SIDE] == 0.0 and F[grip + UP] + F[grip + DOWN] > 0.0 and not on_shaft(K, o)


@kernel
def reply(K, F, o):
    """Write the row c of an owner, and what a unit force on it does, M^-1 c^T, from the factors at FACTOR."""
    n, nt, grip = K[DOF], K[COUNT], K[GRIP] + GRIP_WIDTH * o
    c, x = K[REPLY] + 2 * n * o, K[REPLY] + 2 * n * o + n
    row, scale = K[FORM_ROWS] + o * nt, 1.0
    if o >= K[FORMS]:
        a = o - K[FORMS]
        row, scale = K[COUPLING] + a * nt, F[K[DRIVE] + DRIVE_WIDTH * a + RATIO]
    for r in range(n):
        F[c + r] = 0.0
    for j in range(nt):
        value = scale * F[row + j]
        if value != 0.0:
            for r in range(n):
                F[c + r] += value * F[K[MAP] + j * n + r]
    for r in range(n):
        F[x + r] = F[c + r]
    solve_symmetric(F, K[FACTOR], x, n)
    if o >= K[FORMS]:  # behind a gear with losses arrives what it hands on
        kept = F[K[DRIVE] + DRIVE_WIDTH * (o - K[FORMS]) + KEPT]
        for r in range(n):
            F[x + r] *= kept
    gives = 0.0
    for r in range(n):
        gives += F[c + r] * F[x + r]
    F[grip + GIVES] = gives


@kernel
def along(K, F, o, nu):
    """Return c nu of an owner."""
    c, value = K[REPLY] + 2 * K[DOF] * o, 0.0
    for r in range(K[DOF]):
        value += F[c + r] * F[nu + r]
    return value


@kernel
def push(K, F, o, nu, force):
    """Subtract what a friction force or impulse on an owner does from accelerations or velocities at F[nu]."""
    x = K[REPLY] + 2 * K[DOF] * o + K[DOF]
    for r in range(K[DOF]):
        F[nu + r] -= force * F[x + r]


@kernel
def find_held(K, F):
    """Prepare `hold` for all owners that stick, with the factors at FACTOR."""
    for o in range(K[OWNERS]):
        F[K[GRIP] + GRIP_WIDTH * o + GIVES] = 0.0
        if sticks(K, F, o):
            reply(K, F, o)


@kernel
def hold(K, F, acceleration):
    """Let friction hold what it can: change the accelerations at F[acceleration] and keep the forces."""
    grips, rate = K[GRIP], F[K[GRIP] + GRIP_WIDTH * K[OWNERS] + RATE]
    for o in range(K[OWNERS]):
        grip = grips + GRIP_WIDTH * o
        if F[grip + GIVES] > 0.0:
            F[grip + HELD_FORCE] = min(max(F[grip + HELD_FORCE], -F[grip + DOWN]), F[grip + UP])
            push(K, F, o, acceleration, F[grip + HELD_FORCE])
    for _ in range(SWEEPS):
        change = 0.0
        for o in range(K[OWNERS]):
            grip = grips + GRIP_WIDTH * o
            if F[grip + GIVES] > 0.0:
                up, down, before = F[grip + UP], F[grip + DOWN], F[grip + HELD_FORCE]
                wanted = before + (F[grip + NOW] * rate + along(K, F, o, acceleration)) / F[grip + GIVES]
                F[grip + HELD_FORCE] = min(max(wanted, -down), up)
                push(K, F, o, acceleration, F[grip + HELD_FORCE] - before)
                change = max(change, abs(F[grip + HELD_FORCE] - before) / (up + down))
        if change < SETTLED:
            break


@kernel
def hold_rotor(K, F, o, tau, inertia):
    """Return the friction that holds a rotor in front of an elastic shaft, on which the torque tau acts."""
    grip = K[GRIP] + GRIP_WIDTH * o
    if F[grip + JUMPS] == 0.0 or F[grip + SIDE] != 0.0 or F[grip + UP] + F[grip + DOWN] <= 0.0:
        return 0.0
    wanted = inertia * F[grip + NOW] * F[K[GRIP] + GRIP_WIDTH * K[OWNERS] + RATE] + tau
    F[grip + HELD_FORCE] = min(max(wanted, -F[grip + DOWN]), F[grip + UP])
    return F[grip + HELD_FORCE]


@kernel
def held_signals(K, F, keep):
    """Add the forces that hold to the friction of joints and, with `keep`, to the signals of the drives."""
    for o in range(K[OWNERS]):
        grip = K[GRIP] + GRIP_WIDTH * o
        if F[grip + GIVES] > 0.0:
            if o < K[FORMS]:
                F[K[RUB] + o] += F[grip + HELD_FORCE]
            else:
                d = K[DRIVE] + DRIVE_WIDTH * (o - K[FORMS])
                F[d + FRONT] -= F[grip + HELD_FORCE]
                if keep:
                    F[d + S_RUB] += F[grip + HELD_FORCE]
                    F[d + S_TORQUE] -= F[d + RATIO] * F[d + KEPT] * F[grip + HELD_FORCE]


@kernel
def whole_inertia(K, F):
    """Write the factors of the inertia of mechanism and drives at the last evaluation to FACTOR; return a bad pivot or -1."""
    n, mass = K[DOF], K[MASS]
    if K[MODE] != TREE or K[METHOD] != ONE:
        mass = K[GENERAL]
        sandwich(K, F, K[MASS], mass)
        if K[METHOD] != ONE:
            sandwich(K, F, K[MOTORS], K[OTHER])
            for i in range(n * n):
                F[mass + i] += F[K[OTHER] + i]
    return factorise_symmetric(F, mass, K[FACTOR], n)


@kernel
def impulse_range(F, grip, h):
    """Return how far the impulse of friction over the last step may still be changed: after the stop, or of what sticks."""
    up, down, side = F[grip + UP], F[grip + DOWN], F[grip + SIDE]
    if side == 0.0:
        return -(down + F[grip + HELD_FORCE]) * h, (up - F[grip + HELD_FORCE]) * h
    most = (up + down) * F[grip + TAIL] * h
    return (-most, 0.0) if side > 0.0 else (0.0, most)


@kernel
def stop(K, F, h):
    """Make good what friction did to the mechanism after owners had stopped; their impulses are at NOW afterwards."""
    grips, nt, nu = K[GRIP], K[COUNT], K[STATE] + K[COUNT]
    if whole_inertia(K, F) >= 0:
        return
    last = 0.0
    for o in range(K[OWNERS]):
        grip = grips + GRIP_WIDTH * o
        F[grip + GIVES], F[grip + NOW] = 0.0, 0.0
        if (F[grip + TAIL] > 0.0 and not on_shaft(K, o)) or sticks(K, F, o):
            reply(K, F, o)
            last = max(last, F[grip + TAIL])
    for _ in range(SWEEPS):
        change = 0.0
        for o in range(K[OWNERS]):
            grip = grips + GRIP_WIDTH * o
            if F[grip + GIVES] > 0.0:
                low, high = impulse_range(F, grip, h)
                before = F[grip + NOW]
                F[grip + NOW] = min(max(before + along(K, F, o, nu) / F[grip + GIVES], low), high)
                push(K, F, o, nu, F[grip + NOW] - before)
                change = max(change, abs(F[grip + NOW] - before) / ((F[grip + UP] + F[grip + DOWN]) * h))
        if change < SETTLED:
            break
    if K[BALLS] == 0:
        n = K[DOF]
        for o in range(K[OWNERS]):
            grip = grips + GRIP_WIDTH * o
            if F[grip + GIVES] > 0.0:
                tail = F[grip + TAIL] if F[grip + TAIL] > 0.0 else last
                x, part = K[REPLY] + 2 * n * o + n, 0.5 * tail * h * F[grip + NOW]
                for j in range(nt):
                    for r in range(n):
                        F[K[STATE] + j] -= part * F[K[MAP] + j * n + r] * F[x + r]


@kernel
def stop_rotor(K, F, o, h):
    """Make good what friction did to a rotor in front of an elastic shaft after it had stopped."""
    grip, first = K[GRIP] + GRIP_WIDTH * o, K[K[FEED] + FEED_WIDTH * (o - K[FORMS]) + 2]
    theta = K[STATE] + K[COUNT] + K[DOF] + first
    omega, inertia = theta + K[SHAFTS], F[K[SHAFT] + 3 * first]
    low, high = impulse_range(F, grip, h)
    F[grip + NOW] = min(max(F[omega] * inertia, low), high)
    F[omega] -= F[grip + NOW] / inertia
    F[theta] -= 0.5 * F[grip + TAIL] * h * F[grip + NOW] / inertia


@kernel
def turn(F, grip, h, v):
    """Decide whether an owner sticks or slides in the next step, at whose start its speed is v."""
    up, down, side, force = F[grip + UP], F[grip + DOWN], F[grip + SIDE], F[grip + HELD_FORCE]
    if side != 0.0:
        if F[grip + TAIL] > 0.0:
            low, high = impulse_range(F, grip, h)
            through = F[grip + NOW] <= low if side > 0.0 else F[grip + NOW] >= high
            F[grip + SIDE], F[grip + HELD_FORCE] = -side if through else 0.0, 0.0
        elif v == 0.0:
            F[grip + SIDE], F[grip + HELD_FORCE] = 0.0, 0.0
    else:
        spare = LEAST * (up + down)
        if v > 0.0 and force >= up - spare:
            F[grip + SIDE] = 1.0
        elif v < 0.0 and force <= -down + spare:
            F[grip + SIDE] = -1.0


@kernel
def settle_owners(K, F, h):
    """Stop what `crosses` found, and decide for all owners whether they stick or slide."""
    stops = False
    for o in range(K[OWNERS]):
        grip = K[GRIP] + GRIP_WIDTH * o
        if F[grip + JUMPS] != 0.0 and F[grip + TAIL] > 0.0:
            if on_shaft(K, o):
                stop_rotor(K, F, o, h)
            else:
                stops = True
    if stops:
        stop(K, F, h)
        tree_speeds(K, F, K[STATE] + K[COUNT])
    for o in range(K[OWNERS]):
        grip = K[GRIP] + GRIP_WIDTH * o
        if F[grip + JUMPS] != 0.0:
            v = owner_speed(K, F, o)
            F[grip + BEGIN] = v
            if h > 0.0:
                turn(F, grip, h, v)
            else:
                F[grip + SIDE] = 1.0 if v > 0.0 else (-1.0 if v < 0.0 else 0.0)


@kernel
def crosses(F, grip, v):
    """Note the speed v of an owner at the end of a step; return whether it may stick or slide to the other side from now on."""
    begin, side = F[grip + BEGIN], F[grip + SIDE]
    F[grip + BEGIN], F[grip + TAIL] = v, 0.0
    if side * v < 0.0:
        F[grip + TAIL] = v / (v - begin) if begin * side > 0.0 else 1.0
    return side * v <= 0.0


@kernel
def settle(K, F, h):
    """Let owners stop, turn back, stick or slip at the end of a step; h = 0 starts a run. SPEED holds the speeds afterwards."""
    grip, changes = K[GRIP], False
    tree_speeds(K, F, K[STATE] + K[COUNT])
    for f in range(K[FORMS]):
        if F[grip + JUMPS] != 0.0 and crosses(F, grip, form_value(K, F, f, K[SPEED])):
            changes = True
        grip += GRIP_WIDTH
    for a in range(K[OWNERS] - K[FORMS]):
        if F[grip + JUMPS] != 0.0 and crosses(F, grip, rotor_speed(K, F, a)):
            changes = True
        grip += GRIP_WIDTH
    if changes:
        settle_owners(K, F, h)
