"""Control laws and references as the arrays that the compiled simulation runs on."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynident.control import PID, Cascade, ComputedTorque, OpenLoop, feedforward_torques
from dynident.control.checks import per_actuator
from dynident.control.filters import low_pass_share
from dynident.drive import Drive
from dynident.errors import SimulationError
from dynident.mechanics import Motion
from dynident.mechanics.batch import at_rest, tree_motion
from dynident.mechanics.packed import Arena
from dynident.mechanism import Mechanism
from dynident.simulate import layout as code
from dynident.simulate.skeleton import actuator_rows, add_skeleton, joint_inertias, rubbing_of, sticking

Array = NDArray[np.float64]

WHOLE = 1e-6  # how far a cycle time may be from a whole number of steps


class Controller(NamedTuple):
    """A control law and what it remembers, as arrays (all views of K and F).

    Parameters
    ----------
    K, F : ndarray
        Packed arrays of the law and its model.
    plan : ndarray of int, (11,)
        Law, steps between the ticks of its cycles, flags; see `layout`.
    loop : ndarray, (10, max(k, n))
        Memory: sensed values, integrators, filters, steps spent at a limit.
    measured : ndarray, (2, n)
        Coordinates and velocities that belong to the sensed actuators.
    """

    K: NDArray[np.int64]
    F: Array
    plan: NDArray[np.int64]
    loop: Array
    measured: Array


class Wanted(NamedTuple):
    """The reference as the law reads it, one row every `every` steps; the last row is held. All but noise are views of `table`.

    Parameters
    ----------
    table : ndarray, (T, 3 k + 3 n)
        Everything side by side.
    rho, rho_v, feed : ndarray, (T, k)
        Wanted actuator positions and velocities, and feed-forward torques (or the command itself of an open loop).
    x, v, a : ndarray, (T, n)
        Wanted coordinates.
    noise : ndarray, (S, k) or (S, k + m k)
        Noise of the position sensors at every sensing tick, then that of the current sensors at the m ticks of the current
        loop until the next row (or at the sensing tick alone); no rows for none.
    every : ndarray of int, (1,)
        Steps between two rows.
    """

    table: Array
    rho: Array
    rho_v: Array
    feed: Array
    x: Array
    v: Array
    a: Array
    noise: Array
    every: NDArray[np.int64]


def ticks(cycle: float, step: float, what: str) -> int:
    """Return the whole number of steps in a cycle.

    Parameters
    ----------
    cycle, step : float
        Times [s].
    what : str
        How to name the cycle in an error.

    Returns
    -------
    int
        At least 1.
    """
    ratio = cycle / step
    if round(ratio) < 1 or abs(ratio - round(ratio)) > WHOLE * ratio:
        raise SimulationError(f"{what} = {cycle:g} s is {ratio:.6g} times the step {step:g} s; make it a whole multiple")
    return round(ratio)


def delay_steps(law: object, step: float) -> int:
    """Return the steps that a command needs from its tick to the motor.

    Parameters
    ----------
    law : Cascade, PID, ComputedTorque, OpenLoop or Controller
        Control law; what has no `delay` acts at once.
    step : float
        Step of the plant [s].

    Returns
    -------
    int
        delay / step.
    """
    delay = getattr(law, "delay", 0.0)
    if isinstance(delay, bool) or not isinstance(delay, int | float | np.number) or not 0.0 <= delay < np.inf:
        raise SimulationError(f"controller: delay is {delay!r}; give a time in seconds, zero or above it")
    return ticks(float(delay), step, "delay") if delay > 0.0 else 0


def controller_of(mechanism: Mechanism, drives: Sequence[Drive], law: object, step: float, x: Array, tree: Array) -> Controller:
    """Return a control law as arrays, with empty integrators.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates and k actuators.
    drives : sequence of Drive
        Its drives.
    law : Cascade, PID, ComputedTorque, OpenLoop or Controller
        Control law.
    step : float
        Step of the plant [s].
    x, tree : ndarray, (n,), (n_tree,)
        Start position, in the robot's coordinates and in those of the tree.

    Returns
    -------
    Controller
        The law; use one per thread.
    """
    k, n = len(drives), mechanism.dof
    wide = max(k, n)
    gain, plan = np.zeros((10, wide)), np.ones(11, dtype=np.int64)
    plan[[code.CURRENT, code.WINDUP, code.REMOVE, code.ON_REFERENCE, code.OPEN_TORQUE, code.LATE_WISH]] = 0
    plan[code.LATE] = delay_steps(law, step)
    gain[[code.SLOW_OUT, code.SLOW_IN]] = 1.0
    gain[code.SPEED_LIMIT] = np.inf
    model = mechanism
    if isinstance(law, Cascade):
        _cascade(law, gain, plan, step, k)
    elif isinstance(law, PID):
        plan[code.LAW_OF] = code.PID
        plan[code.OUTER] = plan[code.SENSE] = ticks(law.cycle, step, "cycle of the PID")
        for row, values in ((code.KP, law.kp), (code.KD, law.kd), (code.KI, law.ki), (code.PRELOAD, law.preload)):
            gain[row, :k] = per_actuator(values, k, "gain of the PID")
        gain[code.SLOW_OUT, :k] = low_pass_share(per_actuator(law.derivative_filter, k, "derivative_filter"), law.cycle)
        # A robot with as many motors as freedoms has no internal torques: nothing to remove.
        plan[code.REMOVE] = int(law.project)
        if k > n and (law.project or np.any(gain[code.PRELOAD])):
            plan[code.LAW_OF] = code.PROJECTED
    elif isinstance(law, ComputedTorque):
        model = law.model
        if model.coordinate_names != mechanism.coordinate_names or len(model.actuators) != k:
            raise SimulationError(
                f"computed torque: its model '{model.name}' has the coordinates {', '.join(model.coordinate_names)} and "
                f"{len(model.actuators)} motors, the robot {', '.join(mechanism.coordinate_names)} and {k}; they must agree"
            )
        plan[code.LAW_OF] = code.COMPUTED
        plan[code.OUTER] = plan[code.SENSE] = ticks(law.cycle, step, "cycle of the computed torque")
        for row, values in ((code.KP, law.kp), (code.KD, law.kd), (code.KI, law.ki)):
            gain[row, :n] = per_actuator(values, n, "gain of the computed torque")
        gain[code.SLOW_OUT, :n] = low_pass_share(per_actuator(law.derivative_filter, n, "derivative_filter"), law.cycle)
        gain[code.PRELOAD, :k] = per_actuator(law.preload, k, "preload")
        plan[code.ON_REFERENCE] = int(law.on == "reference")
    elif isinstance(law, OpenLoop):
        plan[code.LAW_OF] = code.OPEN
        plan[code.OPEN_TORQUE] = int(law.command == "torque")
    else:
        plan[code.LAW_OF] = code.HELD
        plan[code.SENSE] = ticks(float(getattr(law, "cycle", step)), step, "cycle of the controller")
    return _assemble(model, drives, gain, plan, step, x, tree)


def _cascade(law: Cascade, gain: Array, plan: NDArray[np.int64], step: float, k: int) -> None:
    """Fill in a cascade."""
    plan[code.LAW_OF], plan[code.WINDUP] = code.CASCADE, int(law.anti_windup)
    plan[code.OUTER] = ticks(law.position_cycle, step, "position_cycle")
    plan[code.INNER] = ticks(law.velocity_cycle, step, "velocity_cycle")
    plan[code.SENSE] = gcd(int(plan[code.OUTER]), int(plan[code.INNER]))
    plan[code.LATE_WISH] = law.late_ticks
    rows = {
        code.KP: law.position_gain,
        code.KD: law.velocity_gain,
        code.KI: law.velocity_integral,
        code.SHARE: law.velocity_feedforward,
        code.SPEED_LIMIT: law.speed_limit,
    }
    if law.current is not None:
        plan[code.CURRENT] = ticks(law.current.cycle, step, "cycle of the current loop")
        rows |= {code.KPC: law.current.gain, code.KIC: law.current.integral}
    for row, values in rows.items():
        gain[row, :k] = per_actuator(values, k, "gain of the cascade")
    gain[code.SLOW_OUT, :k] = low_pass_share(per_actuator(law.position_filter, k, "position_filter"), law.position_cycle)
    gain[code.SLOW_IN, :k] = low_pass_share(per_actuator(law.velocity_filter, k, "velocity_filter"), law.velocity_cycle)


def _assemble(
    model: Mechanism, drives: Sequence[Drive], gain: Array, plan: NDArray[np.int64], step: float, x: Array, tree: Array
) -> Controller:
    """Return the law with its model's arrays."""
    k, n = len(drives), model.dof
    base, rows = joint_inertias(model)
    rubbing = rubbing_of(model, rows, {}, [])
    period = float(plan[code.OUTER]) * step
    forms = np.array(rubbing.forms).reshape(len(rubbing.forms), base.shape[0])
    sensor = np.zeros((k, code.SENSOR_WIDTH))
    for a, drive in enumerate(drives):
        e, c = drive.encoder, drive.current_sensor
        blend = float(low_pass_share(np.array(e.filter), float(plan[code.SENSE]) * step))
        sensor[a] = e.resolution, e.side == "motor", e.velocity == "exact", blend, c.resolution, 1.0 + c.gain_error
    N = actuator_rows(model)
    inverse, offset = np.zeros((n, k)), np.array(model.actuator_matrix[1], dtype=np.float64)
    if not model.loops:
        G, g0 = model.coupling_map
        inverse[:], offset = np.linalg.pinv(N @ G), offset + N @ g0
    start = tree if tree.size == base.shape[0] else tree_motion(model, at_rest(model, x)).q[0]
    arena = Arena()
    add_skeleton(arena, model, base, np.zeros_like(base))
    rubbing.add(arena, base.shape[0])
    arena.number(code.WIDE, gain.shape[1])
    arena.integers(code.PLAN, plan)
    numbers = {code.GAIN: gain, code.SENSOR: sensor, code.INVERSE: inverse, code.ZERO: offset, code.POSE: start}
    for key, values in numbers.items():
        arena.floats(key, values)
    for key, shape in ((code.MAP_A, (k, n)), (code.GRAM, (n, n)), (code.GRAM_FACTOR, (n, n)), (code.MEASURED, (2, n))):
        arena.floats(key, np.zeros(shape))
    for key, size in ((code.ASKED_A, n), (code.TORQUES, k), (code.PART, n)):
        arena.floats(key, np.zeros(size))
    arena.floats(code.LOOP, np.zeros((10, gain.shape[1])))
    for key, late in ((code.QUEUE, code.LATE), (code.WISHES, code.LATE_WISH)):
        arena.floats(key, np.zeros((max(int(plan[late]), 1), gain.shape[1])))
    K, F = arena.pack()
    rubbing.settle(arena, sticking(arena, code.POSE, forms, np.zeros(len(forms)), period, rubbing.jumps))
    return Controller(K, F, arena.integer_view(code.PLAN), arena.view(code.LOOP), arena.view(code.MEASURED))


def tick_steps(controller: Controller) -> int:
    """Return how many steps lie between two rows that a law reads of its reference.

    Parameters
    ----------
    controller : Controller
        The law.

    Returns
    -------
    int
        Common divisor of its cycles.
    """
    plan = controller.plan
    if plan[code.LAW_OF] == code.CASCADE:
        return gcd(int(plan[code.OUTER]), int(plan[code.INNER]))
    return int(plan[code.SENSE] if plan[code.LAW_OF] == code.HELD else plan[code.OUTER])


def tables(
    mechanism: Mechanism,
    law: object,
    motion: Motion,
    every: int,
    noise: Array | None = None,
    command: Array | None = None,
) -> Wanted:
    """Return the reference as the law reads it.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates and k actuators.
    law : Cascade, PID, ComputedTorque, OpenLoop or Controller
        Control law.
    motion : Motion
        Wanted motion at the ticks, one sample every `every` steps.
    every : int
        As from `tick_steps`.
    noise : ndarray (S, k) or (S, k + m k), optional
        Noise of the encoders at every sensing tick [rad of the motor, or unit of rho], and of the current sensors [A].
    command : ndarray (T, k), optional
        Table of an open loop at the ticks.

    Returns
    -------
    Wanted
        Tables.
    """
    k, count = len(mechanism.actuators), len(motion)
    N, n0 = actuator_rows(mechanism), mechanism.actuator_matrix[1]
    moved = tree_motion(mechanism, motion)
    rho, rho_v = moved.q @ N.T + n0, moved.v @ N.T
    feed = np.zeros((count, k)) if command is None else np.ascontiguousarray(command, dtype=np.float64)
    model = law.torque_feedforward if isinstance(law, Cascade) else (law.feedforward if isinstance(law, PID) else None)
    if model is not None:
        rub = law.friction if isinstance(law, PID) else None
        feed = feedforward_torques(model, motion, friction=rub)
    parts = [rho, rho_v, feed, motion.q, motion.v, motion.a]
    table = np.ascontiguousarray(np.concatenate(parts, axis=1))
    views = np.split(table, np.cumsum([part.shape[1] for part in parts])[:-1], axis=1)
    rows = np.zeros((0, k)) if noise is None else np.ascontiguousarray(noise, dtype=np.float64)
    first, second, third, x, v, a = views
    return Wanted(table, first, second, third, x, v, a, rows, np.array([every], dtype=np.int64))
