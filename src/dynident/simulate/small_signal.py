"""Small motions of a controlled robot about a pose: the control code of one period on linear rows, all joints together.

Motors that swing between their limits stop an unstable loop from growing, so that a run ends although its loops cannot work.
Where motors were at their limits the loops are looked at without limits:

    z' = P z,    z = (q, v, memory of the controller),    unstable where an eigenvalue of P is outside the unit circle

Drives are rigid and their currents those that are wanted; gravity, friction and the velocity of the motion are left out. One
axis with its winding, current loop and shafts is looked at by `control.Axis`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.control import PID, Axis, Cascade, ComputedTorque
from dynident.control.filters import low_pass_share
from dynident.control.task_law import TaskErrorPID
from dynident.mechanics import actuator_jacobian, mass_matrix
from dynident.simulate.failure import inertia_of
from dynident.simulate.model import joint_side

if TYPE_CHECKING:
    from dynident.simulate.machine import Machine
    from dynident.simulate.record import Truth
    from dynident.simulate.robot import VirtualRobot

Array = NDArray[np.float64]

POSES = 32  # samples at a limit that are looked at
GROWTH = 10.0  # of a small motion over a run, from which its loops count as unstable
AT = 0.999  # of a limit
TURNS = 4  # changes from one limit to the other that make a swing
HELD = 0.9  # mean current over a cycle of the log, over that at the sample, below which it turned in between


class Growth(NamedTuple):
    """How small motions grow.

    Parameters
    ----------
    factor : float
        Over one period.
    period : float
        Period of the control [s].
    shape : ndarray, (n,)
        Velocities of the motion that grows most.
    """

    factor: float
    period: float
    shape: Array


class _Rows:
    """Signals as rows over the state at the start of a period: blocks of n or k rows by name."""

    def __init__(self, sizes: dict[str, int]) -> None:
        ends = np.cumsum(list(sizes.values())).tolist()
        self.at = {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}
        self.Z: Array = np.eye(ends[-1])

    def __getitem__(self, name: str) -> Array:
        return np.asarray(self.Z[self.at[name]].copy())

    def __setitem__(self, name: str, rows: Array) -> None:
        self.Z[self.at[name]] = rows


def growth(robot: VirtualRobot, inertia: Array, x: Array) -> Growth | None:
    """Return how small motions of a robot and its controller grow about a pose.

    Parameters
    ----------
    robot : VirtualRobot
        The machine, with a `Cascade`, `PID`, `ComputedTorque`, `TaskPID` or `TaskComputedTorque`; the last two after a run.
    inertia : ndarray, (n, n)
        Mass matrix at the pose, drives included.
    x : ndarray, (n,)
        Pose.

    Returns
    -------
    Growth or None
        None for a controller whose rows are not known.
    """
    law: Any = robot.controller
    if not isinstance(law, Cascade | PID | ComputedTorque | TaskErrorPID):
        return None
    A = actuator_jacobian(robot.mechanism, x[None])[0]
    k, n = A.shape
    tick = law.velocity_cycle if isinstance(law, Cascade) else law.cycle
    delay = float(getattr(law, "delay", 0.0))
    whole = int(np.floor(delay / tick + 1e-9))
    part = max(delay - whole * tick, 0.0)
    late = round(float(getattr(law, "position_delay", 0.0)) / tick)
    force, wide = _law(robot, law, A, x)
    sizes = {"q": n, "v": n, "last": k, "speed": k, "sum": wide, "slow": wide, "wish": k}
    sizes |= {f"way{i}": k for i in range(late)} | {f"force{i}": n for i in range(whole + 2)}
    rows = _Rows(sizes)
    turn = np.linalg.inv(inertia)
    exact = np.array([drive.encoder.velocity == "exact" for drive in robot.drives])[:, None]
    blend = np.array([float(low_pass_share(drive.encoder.filter, tick)) for drive in robot.drives])[:, None]
    ticks = law.velocity_ticks if isinstance(law, Cascade) else 1
    for i in range(ticks):
        rho = A @ rows["q"]
        speed = np.where(exact, A @ rows["v"], (rho - rows["last"]) / tick)
        rows["speed"] = rows["speed"] + blend * (speed - rows["speed"])
        rows["last"] = rho
        for j in range(whole + 1, 0, -1):
            rows[f"force{j}"] = rows[f"force{j - 1}"]
        rows["force0"] = force(rows, rho, i == 0, late)
        for h, held in ((part, whole + 1), (tick - part, whole)):
            a = turn @ rows[f"force{held}"]
            rows["q"] = rows["q"] + h * rows["v"] + 0.5 * h**2 * a
            rows["v"] = rows["v"] + h * a
    values, vectors = np.linalg.eig(rows.Z)
    worst = int(np.argmax(np.abs(values)))
    return Growth(float(np.abs(values[worst])), ticks * tick, np.abs(vectors[rows.at["v"], worst]))


def _law(robot: VirtualRobot, law: Cascade | PID | ComputedTorque | TaskErrorPID, A: Array, x: Array) -> tuple[Any, int]:
    """Return a function that moves the controller's rows by one tick and gives the forces without limits, and its width."""

    def column(values: ArrayLike, size: int) -> Array:
        return np.broadcast_to(np.asarray(values, dtype=np.float64), (size,))[:, None]

    k, n = A.shape
    if isinstance(law, Cascade):
        ratio = np.array([drive.transmission.ratio for drive in robot.drives])[:, None]
        torque = ratio * np.array([drive.motor.torque_constant for drive in robot.drives])[:, None]
        kv, kP, kI = (column(g, k) for g in (law.position_gain, law.velocity_gain, law.velocity_integral))
        outer = column(low_pass_share(law.position_filter, law.position_cycle), k)
        inner = column(low_pass_share(law.velocity_filter, law.velocity_cycle), k)

        def cascade(rows: _Rows, rho: Array, first: bool, late: int) -> Array:
            if first:
                rows["wish"] = rows["wish"] + outer * (-kv * rho - rows["wish"])
            wish = rows[f"way{late - 1}"] if late else rows["wish"]
            for j in range(late - 1, 0, -1):
                rows[f"way{j}"] = rows[f"way{j - 1}"]
            if late:
                rows["way0"] = rows["wish"]
            error = ratio * (wish - rows["speed"])
            rows["sum"] = rows["sum"] + law.velocity_cycle * error
            rows["slow"] = rows["slow"] + inner * (kP * error + kI * rows["sum"] - rows["slow"])
            return np.asarray(A.T @ (torque * rows["slow"]))

        return cascade, k
    # Errors are those of J times what is measured; forces S of the PID, and P, D of the posture.
    see, J, S, P, D = np.eye(k), np.eye(k), np.asarray(A.T), np.zeros((n, k)), np.zeros((n, k))
    if not isinstance(law, PID):
        see = np.asarray(np.linalg.pinv(A), dtype=np.float64)
        J, P, D = np.eye(n), np.zeros((n, n)), np.zeros((n, n))
    if isinstance(law, ComputedTorque):
        S = mass_matrix(joint_side(law.model), x[None])[0]
    elif isinstance(law, TaskErrorPID):
        J, S, P, D = law.feedback(x)
    wide = J.shape[0]
    kp, kd, ki = (column(g, wide) for g in (law.kp, law.kd, law.ki))
    share = column(low_pass_share(law.derivative_filter, law.cycle), wide)

    def pid(rows: _Rows, rho: Array, first: bool, late: int) -> Array:
        place, rate = see @ rho, see @ rows["speed"]
        error = -J @ place
        rows["slow"] = rows["slow"] + share * (-J @ rate - rows["slow"])
        rows["sum"] = rows["sum"] + law.cycle * error
        return np.asarray(S @ (kp * error + kd * rows["slow"] + ki * rows["sum"]) - P @ place - D @ rate)

    return pid, wide


def axis_growth(robot: VirtualRobot, inertia: Array, x: Array, actuator: int) -> Growth | None:
    """Return how small motions of one axis with winding, current loop and shafts grow, the other motors being slack.

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    inertia : ndarray, (n, n)
        Mass matrix at the pose, drives included.
    x : ndarray, (n,)
        Pose.
    actuator : int
        Which axis.

    Returns
    -------
    Growth or None
        None where `growth` says as much: without cascade, or with a rigid drive and an ideal current.
    """
    law, drive = robot.controller, robot.drives[actuator]
    if not isinstance(law, Cascade) or (law.current is None and drive.rigid):
        return None
    A = actuator_jacobian(robot.mechanism, x[None])[0]
    felt = 1.0 / float(A[actuator] @ np.linalg.solve(inertia, A[actuator]))
    load = max(felt / drive.transmission.ratio**2 - drive.inertia, 0.0)
    poles = Axis(drive, law, load, actuator=actuator).loop("position", sampled=True).poles
    return Growth(float(np.abs(poles).max()), law.position_cycle, np.abs(A[actuator]))


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

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    machine : Machine
        Its numbers.
    truth : Truth
        What happened.
    at_limit : ndarray, (k,)
        Share of time at a limit.
    noticeable : float
        Share from which a limit counts.

    Returns
    -------
    str
        "instability: joint 'j1' ...", or "".
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
        cases = [growth(robot, inertia[i], x[i])]
        cases += [axis_growth(robot, inertia[i], x[i], int(j)) for j in busy] if i == 0 else []
        for case in cases:
            if case is None or span / case.period * np.log(max(case.factor, 1e-300)) < np.log(GROWTH):
                continue
            joint = robot.mechanism.coordinate_names[int(np.argmax(case.shape * np.sqrt(np.abs(np.diag(inertia[i])))))]
            worst = int(np.argmax(at_limit))
            return (
                f"instability: joint '{joint}' swings between the limits of the motors from t = {truth.t[row]:.6g} s on (motor "
                f"of '{robot.drives[worst].actuator}' at its limit {100.0 * at_limit[worst]:.3g} % of the time), as its loops "
                f"grow by {case.factor:.4g} per cycle of {case.period:g} s there; lower the gains or the cycle times"
            )
    return ""
