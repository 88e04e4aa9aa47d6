"""Small motions of a controlled robot about a pose: how they grow over one period of its control.

Motors that swing between their limits stop an unstable loop from growing, so that a run ends although its loops cannot work.
Where motors were at their limits the loops are looked at without limits:

    z' = P z,    z = (positions, velocities, shafts, windings, memory of the controller),    unstable where |eig P| > 1

P is the derivative of the compiled machine itself over a period, without friction, limits, counts and losses of gears. A law in
Python has no such map.
"""

from __future__ import annotations

from math import lcm
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.control import OpenLoop, coupling_rows
from dynident.mechanics import Motion, actuator_jacobian, at_rest, tree_motion
from dynident.simulate.failure import inertia_of
from dynident.simulate.laws import COMPILED, believed, table_of
from dynident.simulate.machine import Machine, Tables

if TYPE_CHECKING:
    from dynident.simulate.record import Truth
    from dynident.simulate.robot import VirtualRobot

Array = NDArray[np.float64]

POSES = 32  # samples at a limit that are looked at
GROWTH = 10.0  # of a small motion over a run, from which its loops count as unstable
AT = 0.999  # of a limit
TURNS = 4  # changes from one limit to the other that make a swing
SMALL = 1e-4  # size of the motions that are compared
#: What small motions are free of: friction, limits, counts, losses and play.
FREE_OF = {"warm": 0.0, "resolution": 0.0, "current_step": 0.0, "efficiency": 1.0, "play": 0.0}
FREE_OF |= {"current_limit": np.inf, "voltage_limit": np.inf, "speed_limit": np.inf}
MOVING = (
    *("v", "theta", "omega", "coil", "sensed", "sensed_v", "integral", "slope", "issued", "wish", "asked", "electric", "sent"),
    "command",
)
HELD = 0.9  # mean current over a cycle of the log, over that at the sample, below which it turned in between


class Growth(NamedTuple):
    """How small motions of a machine grow.

    Parameters
    ----------
    factor : float
        Over one period; the machine is unstable where it is above 1.
    period : float
        Cycle of the control, of its position loop in a cascade [s].
    shape : ndarray, (n,)
        Velocities of the motion that grows most.
    """

    factor: float
    period: float
    shape: Array


def small_motions(robot: VirtualRobot, q: ArrayLike) -> Growth | None:
    """Return how small motions of a machine about a pose grow over a cycle of its control, without friction and limits.

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    q : array_like, (n,)
        Pose, at which it is asked to rest.

    Returns
    -------
    Growth or None
        The motion that grows most; None for an open loop, and for a controller in Python, of which only commands are known.
    """
    law, mechanism, x = robot.controller, robot.mechanism, np.array(q, dtype=np.float64)
    if not isinstance(law, COMPILED) or isinstance(law, OpenLoop):
        return None
    machine = Machine(mechanism, robot.drives, believed(law, mechanism), step=robot.step, x=x, friction=robot.friction)
    for name, value in FREE_OF.items():
        machine.memory.numbers.view(machine.numbers, name)[:] = value
    n, late = mechanism.dof, [int(machine.number(name)) for name in ("late", "late_wish")]
    period = lcm(int(machine.number("outer")), max(late[0], 1), int(machine.number("inner")) * max(late[1], 1))
    still = Motion([0.0], x[None], np.zeros((1, n)), np.zeros((1, n)))
    noise = np.zeros((1, machine.memory.noise_width(machine.numbers)))
    tables = Tables(table_of(mechanism, machine.law, still), noise, np.zeros((1, machine.memory.work.count("push"))))
    machine.of("step")[0] = 1000.0 * period  # not the first tick, which has no past
    machine.of("sensed")[:] = coupling_rows(mechanism) @ tree_motion(mechanism, at_rest(mechanism, x)).q[0]
    G = tree_motion(mechanism, at_rest(mechanism, x)).G
    start, record = machine.state.copy(), np.zeros((0, machine.memory.record.size))
    fields = machine.memory.state
    places = [fields.at(name, i) for name in MOVING for i in range(fields.count(name))]
    places += range(fields.size, start.size)
    lift = np.zeros((start.size, n + len(places)))  # the positions of loops move together
    lift[: fields.count("q"), :n] = np.eye(n) if not mechanism.loops or G is None else (G if G.ndim == 2 else G[0])
    lift[places, n + np.arange(len(places))] = 1.0
    own = [int(i) for i in mechanism.closure.independent] if mechanism.loops else list(range(n))

    def end(z: Array) -> Array:
        machine.state[:] = start + z
        machine.run(period, tables, record)
        return machine.state[own + places]

    P = np.column_stack([(end(SMALL * column) - end(-SMALL * column)) / (2.0 * SMALL) for column in lift.T])
    values, vectors = np.linalg.eig(np.where(np.isfinite(P), P, 0.0))
    worst = int(np.argmax(np.abs(values)))
    cycle = float(machine.number("outer") * robot.step)
    factor = float(np.abs(values[worst])) ** (cycle / (period * robot.step))
    return Growth(factor, cycle, np.abs(vectors[n : 2 * n, worst]))


def _swings(truth: Truth, actuator: int, hit: NDArray[np.bool_]) -> bool:
    """Tell whether a motor went from one limit to the other and back, or did so between two samples of the log."""
    if not np.any(hit):
        return True  # its limits were hit between two samples alone
    current, mean = truth.current[hit, actuator], truth.mean_current[hit, actuator]
    turns = int(np.count_nonzero(np.diff(np.sign(current))))
    return turns >= TURNS or bool(np.median(np.abs(mean) / np.maximum(np.abs(current), 1e-300)) < HELD)


def _stiff(robot: VirtualRobot, inertia: Array, x: Array) -> Array:
    """Return mass matrices (N, n, n) with the masses that shafts carry, as if these were rigid."""
    masses = [np.sum([d.motor.inertia, *d.transmission.inertias][: d.states]) for d in robot.drives]
    reflected = np.array([d.transmission.ratio**2 for d in robot.drives]) * np.array(masses)
    A = actuator_jacobian(robot.mechanism, x)
    return np.asarray(inertia + np.swapaxes(A, -1, -2) @ (reflected[:, None] * A))


def limit_cycle(robot: VirtualRobot, machine: Machine, truth: Truth, at_limit: Array, noticeable: float) -> str:
    """Return in one sentence that motors were at their limits because the loops are unstable there, or nothing.

    `at_limit` (k,) is the share of time at a limit, `noticeable` the share from which it counts.
    """
    busy = np.flatnonzero(at_limit > noticeable)
    if not busy.size:
        return ""
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
    inertia = _stiff(robot, inertia_of(robot.mechanism, machine.reflected, x), x)
    for i, row in enumerate(found):
        case = small_motions(robot, x[i])
        if case is not None and span / case.period * np.log(max(case.factor, 1e-300)) >= np.log(GROWTH):
            joint = robot.mechanism.coordinate_names[int(np.argmax(case.shape * np.sqrt(np.abs(np.diag(inertia[i])))))]
            worst = int(np.argmax(at_limit))
            return (
                f"instability: joint '{joint}' swings between the limits of the motors from t = {truth.t[row]:.6g} s on (motor "
                f"of '{robot.drives[worst].actuator}' at its limit {100.0 * at_limit[worst]:.3g} % of the time), as its loops "
                f"grow by {case.factor:.4g} per cycle of {case.period:g} s there; lower the gains or the cycle times"
            )
    return ""
