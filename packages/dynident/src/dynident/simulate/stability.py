"""Stability of a machine: growth of small motions, and reasons why a run stopped.

Saturation of the motors bounds the oscillation of an unstable loop, so a run ends although its loops are unstable. Where
motors were at their limits the loops are analysed without limits:

    z' = P z,    z = (positions, velocities, shafts, windings, memory of the controller),    unstable where |eig P| > 1

P is the derivative of the compiled machine over a period, without friction, limits, quantisation and losses of gears. A law
in Python has no such map.
"""

from __future__ import annotations

from math import lcm
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.control.feedforward import actuator_rows
from dynident.control.laws import OpenLoop
from dynident.errors import DynidentError
from dynident.mechanics.actuation import coupling_rows
from dynident.mechanics.dynamics import mass_matrix
from dynident.mechanics.functions import Motion, at_rest, tree_motion
from dynident.mechanism.describe import effort_units
from dynident.mechanism.mechanism import Mechanism
from dynident.simulate.layout import LOST_CLOSURE, LOST_TASK, SINGULAR_MASS, UNSTABLE, own_positions
from dynident.simulate.machine import COMPILED, FASTEST, Machine
from dynident.simulate.reference import table_of

if TYPE_CHECKING:
    from dynident.simulate.record import Truth
    from dynident.simulate.robot import VirtualRobot

POSES = 32  # samples at a limit that are analysed
GROWTH = 10.0  # growth of a small motion over a run that counts as unstable
AT = 0.999  # of a limit
TURNS = 4  # fewest changes between limits of an oscillation
SMALL = 1e-4  # size of the motions that are compared
HELD = 0.9  # ratio of mean to sampled current over a cycle of the log, below which the sign changed in between
RUNAWAY = 100.0  # velocity [rad/s, m/s] beyond any robot: a lost closure above it is attributed to the control
LATEST = 300  # last rows of the record in which the reason is sought
WEIGHTLESS = 1e-9  # a joint's inertia over the largest one, below which the mass matrix is nearly singular
CANCELLED = 3e-3  # smallest eigenvalue of the mass matrix, scaled to a unit diagonal, below which it is nearly singular
ROUNDING = 1e-12  # below zero, of that eigenvalue


class Growth(NamedTuple):
    """Growth of small motions of a machine."""

    factor: float  # Over one period; unstable above 1
    period: float  # Cycle of the control, of its position loop in a cascade [s]
    shape: Array  # Velocities of the motion that grows most


def small_motions(robot: VirtualRobot, q: ArrayLike) -> Growth | None:
    """Return the growth of small motions about a pose over a cycle of the control, without friction and limits.

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    q : array_like, (n,)
        Pose of rest.

    Returns
    -------
    Growth or None
        Motion of largest growth; None for an open loop, and for a controller in Python, whose equations are unknown.
    """
    law, mechanism, x = robot.controller, robot.mechanism, np.array(q, dtype=np.float64)
    if not isinstance(law, COMPILED) or isinstance(law, OpenLoop):
        return None
    machine = Machine(robot, x)
    s, p = machine.layout.state, machine.layout.numbers
    # Small motions have no friction, limits, counts, losses and play.
    free_of = {p.warm: 0.0, p.resolution: 0.0, p.current_step: 0.0, p.efficiency: 1.0, p.play: 0.0}
    for field, value in (free_of | dict.fromkeys((p.current_limit, p.voltage_limit, p.speed_limit), np.inf)).items():
        machine.of(field)[:] = value
    n = mechanism.dof
    outer, inner, late, late_wish = (int(machine.number(field)) for field in (p.outer, p.inner, p.late, p.late_wish))
    period = lcm(outer, max(late, 1), inner * max(late_wish, 1))
    still = Motion([0.0], x[None], np.zeros((1, n)), np.zeros((1, n)))
    push = np.zeros((1, machine.layout.work.push.count))
    machine.read(table_of(mechanism, machine.law, still), np.zeros((1, machine.noise_width)), push)
    machine.of(s.step)[0] = 1000.0 * period  # not the first tick, which has no history
    rest = tree_motion(mechanism, at_rest(mechanism, x))
    machine.of(s.sensed)[:], G = coupling_rows(mechanism) @ rest.q[0], rest.G
    start, record = machine.state.copy(), np.zeros((0, machine.layout.record.size))
    moving = (s.v, s.theta, s.omega, s.coil, s.sensed, s.sensed_v, s.integral, s.slope, s.issued, s.wish, s.asked)
    places = [i for field in (*moving, s.electric, s.sent, s.command) for i in field.places]
    places += range(s.size, start.size)
    lift = np.zeros((start.size, n + len(places)))  # the positions of loops move together
    lift[: s.q.count, :n] = np.eye(n) if not mechanism.loops or G is None else (G if G.ndim == 2 else G[0])
    lift[places, n + np.arange(len(places))] = 1.0

    def end(z: Array) -> Array:
        machine.state[:] = start + z
        machine.run(period, record)
        return machine.state[own_positions(mechanism) + places]

    P = np.column_stack([(end(SMALL * column) - end(-SMALL * column)) / (2.0 * SMALL) for column in lift.T])
    values, vectors = np.linalg.eig(np.where(np.isfinite(P), P, 0.0))
    worst = int(np.argmax(np.abs(values)))
    cycle = outer * robot.step
    factor = float(np.abs(values[worst])) ** (cycle / (period * robot.step))
    return Growth(factor, cycle, np.abs(vectors[n : 2 * n, worst]))


def _swings(truth: Truth, actuator: int, hit: NDArray[np.bool_]) -> bool:
    """Return whether a motor oscillates between its limits, possibly faster than the log samples."""
    if not np.any(hit):
        return True  # limits reached only between samples
    current, mean = truth.current[hit, actuator], truth.mean_current[hit, actuator]
    turns = int(np.count_nonzero(np.diff(np.sign(current))))
    return turns >= TURNS or bool(np.median(np.abs(mean) / np.maximum(np.abs(current), 1e-300)) < HELD)


def limit_cycle(robot: VirtualRobot, truth: Truth, at_limit: Array, busy: NDArray[np.intp]) -> str:
    """Return a sentence if `busy` motors were at their limits because the loops are unstable there, otherwise ""."""
    motors = [drive.motor for drive in robot.drives]
    amperes, volts = np.array([m.current_limit for m in motors]), np.array([m.voltage_limit for m in motors])
    hit = (np.abs(truth.current) >= AT * amperes) | (np.abs(truth.voltage) >= AT * volts)
    busy = np.array([j for j in busy if _swings(truth, int(j), hit[:, j])], dtype=np.int64)
    if not busy.size:
        return ""
    found = np.flatnonzero(hit[:, busy].any(axis=1))
    found = found if found.size else np.arange(truth.t.size)  # all of them between two samples
    found = found[np.unique(np.linspace(0, found.size - 1, POSES).astype(int))]
    x, span = truth.motion.q[found], float(truth.t[-1] - truth.t[0])
    stiff = np.array([drive.reflected_inertia for drive in robot.drives])  # as if shafts were rigid
    inertia = inertia_of(robot.mechanism, stiff, x)
    for i, row in enumerate(found):
        case = small_motions(robot, x[i])
        if case is not None and span / case.period * np.log(max(case.factor, 1e-300)) >= np.log(GROWTH):
            joint = robot.mechanism.coordinate_names[int(np.argmax(case.shape * np.sqrt(np.abs(np.diag(inertia[i])))))]
            worst = int(np.argmax(at_limit))
            return (
                f"instability: joint '{joint}' oscillates between motor limits from t = {truth.t[row]:.6g} s on (motor "
                f"'{robot.drives[worst].actuator}' {100.0 * at_limit[worst]:.3g} % of the time, growth {case.factor:.4g} "
                f"per {case.period:g} s); lower gains or cycles"
            )
    return ""


def reason(robot: VirtualRobot, machine: Machine, status: int, index: int, x: Array, v: Array, every: int) -> str:
    """Return the reason of a stop as a sentence; x and v are positions and velocities so far, one row every `every` steps."""
    s = machine.layout.state
    when, name = f"t = {machine.done * machine.step:.6g} s", robot.name or robot.mechanism.name
    speeds = np.abs(np.maximum(np.abs(machine.of(s.v)), np.abs(s.v.of(machine.stage))))
    speeds[~np.isfinite(speeds)] = np.inf
    fastest = int(np.argmax(speeds))
    joint, unit = _joint(robot, fastest)
    at_once = not machine.layout.loop
    if status == SINGULAR_MASS and speeds[fastest] <= FASTEST:
        if at_once:
            now = np.array([machine.done * machine.step])
            # The states at the start of the step and at the last evaluation of the integrator.
            for q in (machine.of(s.q), s.q.of(machine.stage)):
                weak = weightless(robot, q[own_positions(robot.mechanism)][None], now)
                if "not positive" in weak:
                    return (
                        f"robot '{name}': {weak}, so accelerations are undefined; identify consistent bodies, or give links "
                        "or drives more inertia"
                    )
            return f"robot '{name}': the mass matrix is singular at {when}; give every moving link or its drive an inertia"
        return (
            f"robot '{name}': the mass matrix of its drives alone is singular at {when}, so the delayed and iterated loops "
            "cannot be solved; use loop='exact' or method='coupled'"
        )
    if status == LOST_CLOSURE and speeds[fastest] <= RUNAWAY:
        return (
            f"robot '{name}': its loops cannot be closed at {when} with joint '{joint}' at {speeds[fastest]:.3g} {unit} "
            "(singularity or unstable control); avoid it, or lower the gains"
        )
    if status == LOST_TASK and speeds[fastest] <= RUNAWAY:
        return f"robot '{name}': the task space is singular at {when}; keep the reference away from it, or omit rows"
    what = f"joint '{joint}' passed {FASTEST:.0e} {unit}"
    if status == UNSTABLE:
        what = culprit(robot, index)
    elif speeds[fastest] <= FASTEST:
        what = f"joint '{joint}' at {speeds[fastest]:.3g} {unit} tears the loops of robot '{name}'"
    start = machine.done * machine.step - (x.shape[0] - 1) * every * machine.step
    rows = np.flatnonzero(np.abs(v).max(axis=1) <= RUNAWAY)[-LATEST:]
    rows = np.unique(np.append(rows, 0))
    weak = weightless(robot, x[rows], np.asarray(start + rows * every * machine.step))
    remedy = "lower the gains or the step" if at_once else "use loop='exact', or lower the gains"
    return f"instability: {what} at {when}; " + (f"{weak}: give links or drives their inertia" if weak else remedy)


def _joint(robot: VirtualRobot, index: int) -> tuple[str, str]:
    """Return name and unit of velocity of a coordinate."""
    mechanism = robot.mechanism
    name = mechanism.coordinate_names[index]
    return name, "m/s" if effort_units(mechanism)[name] == "N" else "rad/s"


def culprit(robot: VirtualRobot, index: int) -> str:
    """Return the unbounded velocity or current by its index in the state: "joint 'elbow' passed 1e+06 rad/s"."""
    if index < robot.mechanism.dof:
        name, unit = _joint(robot, index)
        return f"joint '{name}' passed {FASTEST:.0e} {unit}"
    masses = sum(drive.states for drive in robot.drives)
    index -= robot.mechanism.dof + masses
    if index < masses:
        owner = np.repeat([drive.actuator for drive in robot.drives], [drive.states for drive in robot.drives])
        return f"the rotor or shaft of drive '{owner[index]}' passed {FASTEST:.0e} rad/s"
    wound = [d.actuator for d in robot.drives if d.motor.inductance > 0.0]
    return f"the current of drive '{wound[index - masses]}' passed {FASTEST:.0e} A"


def weightless(robot: VirtualRobot, path: Array, t: Array) -> str:
    """Return a clause that names a joint with nearly zero inertia, or "" if none."""
    try:
        inertia = inertia_of(robot.mechanism, np.array([drive.output_inertia for drive in robot.drives]), path)
    except DynidentError:  # the loops do not close there: inertia is not the cause
        return ""
    own = np.abs(np.diagonal(inertia, axis1=1, axis2=2))
    scale = np.sqrt(np.where(own > 0.0, own, 1.0))
    values, vectors = np.linalg.eigh(inertia / scale[:, :, None] / scale[:, None, :])
    i = int(np.argmax(values[:, 0] <= 0.0)) if values[:, 0].min() <= 0.0 else int(np.argmin(values[:, 0]))
    j = int(np.argmax(np.abs(vectors[i, :, 0])))
    when, joint = f"t = {t[i]:.6g} s", f"joint '{_joint(robot, j)[0]}'"
    if values[i, 0] < -ROUNDING:
        return f"the mass matrix is not positive definite at {when} (of {joint}, a model that is not physical)"
    if values[i, 0] < CANCELLED:
        share = 100.0 * max(values[i, 0], 0.0)
        return f"the mass matrix is nearly singular at {when} ({joint} can move with {share:.2g} % of its inertia)"
    i, j = (int(k) for k in np.unravel_index(np.argmin(own), own.shape))
    if own[i, j] < WEIGHTLESS * own[i].max():
        name, unit = _joint(robot, j)
        unit = "kg" if unit == "m/s" else "kg m^2"
        return f"the mass matrix is nearly singular at t = {t[i]:.6g} s (joint '{name}' has only {own[i, j]:.2g} {unit})"
    return ""


def inertia_of(mechanism: Mechanism, drives: Array, path: Array) -> Array:
    """Return the mass matrices (N, n, n) of a robot with `drives` (inertias behind the gears) along a path."""
    A = actuator_rows(mechanism, path)
    return np.asarray(mass_matrix(mechanism, path) + np.swapaxes(A, -1, -2) @ (drives[:, None] * A))


def loop_gain(machine: Machine, x: ArrayLike) -> float:
    """Return the spectral radius of J_act^-1 M at a pose: the delayed and iterated algebraic loops diverge when it passes 1.

    It is the inertia of the mechanism over that of the actuators in the worst direction; infinite when a coordinate has no
    actuator.
    """
    A = actuator_rows(machine.mechanism, x)[0]
    joined = machine.of(machine.layout.numbers.joined)
    actuators = A.T @ (joined[:, None] * A)
    moved = inertia_of(machine.mechanism, machine.of(machine.layout.numbers.reflected), np.atleast_2d(x))[0] - actuators
    if np.linalg.matrix_rank(actuators) < actuators.shape[0]:
        return float("inf")
    return float(np.abs(np.linalg.eigvals(np.linalg.solve(actuators, moved))).max())
