"""Why a run stopped, in one sentence: which joint ran away and when, a singular pose, or a mass matrix without inertia."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError
from dynident.mechanics import mass_matrix
from dynident.mechanics.batch import at_rest, tree_motion

if TYPE_CHECKING:
    from dynident.simulate.plant import Assembly
    from dynident.simulate.robot import VirtualRobot

Array = NDArray[np.float64]

FASTEST = 1e6  # velocity [rad/s, m/s] or current [A] beyond which a run counts as unstable
RUNAWAY = 100.0  # velocity [rad/s, m/s] that no robot has: above it a lost closure is blamed on the control
LATEST = 300  # rows of the record in which the reason is looked for
WEIGHTLESS = 1e-9  # a joint's inertia over the largest one, below which the mass matrix is nearly singular
CANCELLED = 3e-3  # smallest eigenvalue of the mass matrix, scaled to a unit diagonal, below which it is nearly singular
ROUNDING = 1e-12  # below zero, of that eigenvalue


def reason(robot: VirtualRobot, assembly: Assembly, result: tuple[int, int, int], record: Array, every: int) -> str:
    """Return why a run stopped.

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    assembly : Assembly
        Its arrays, as the run left them.
    result : tuple of int
        Status, step and index of `Assembly.run`; the status is not FINE.
    record : ndarray, (N, width)
        True signals so far.
    every : int
        Steps between its rows.

    Returns
    -------
    str
        One sentence with the time, the joint and the remedy.
    """
    from dynident.simulate import layout as at  # noqa: PLC0415 - numba is imported on first use

    status, step, index = result
    K, n = assembly.plant.K, robot.mechanism.dof
    when, name = f"t = {step * assembly.step:.6g} s", robot.name or robot.mechanism.name
    first = int(K[at.STAGE]) + len(robot.mechanism.tree.coordinates)
    speeds = np.abs(assembly.plant.F[first : first + n])
    speeds[~np.isfinite(speeds)] = np.inf
    fastest = int(np.argmax(speeds))
    joint, unit = _joint(robot, fastest)
    at_once = K[at.METHOD] in (at.ONE, at.EXACT)
    if status == at.SINGULAR_MASS and speeds[fastest] <= FASTEST:
        if at_once:
            return f"robot '{name}': the mass matrix is singular at {when}; give every moving link or its drive an inertia"
        return (
            f"robot '{name}': the mass matrix of its drives alone is singular at {when}, so the delayed and iterated loops "
            "cannot be solved; use loop='exact' or method='coupled'"
        )
    if status == at.LOST_CLOSURE and speeds[fastest] <= RUNAWAY:
        return (
            f"robot '{name}': its loops cannot be followed further at {when}, with joint '{joint}' at {speeds[fastest]:.3g} "
            f"{unit} (a singularity, or unstable control threw it there); stay away from it, or lower the gains"
        )
    what = f"joint '{joint}' passed {FASTEST:.0e} {unit}"
    if status == at.UNSTABLE:
        what = culprit(robot, index)
    elif speeds[fastest] <= FASTEST:
        what = f"joint '{joint}' at {speeds[fastest]:.3g} {unit} tears the loops of robot '{name}'"
    rows = np.flatnonzero(np.abs(record[: step // every + 1, assembly.columns.v]).max(axis=1) <= RUNAWAY)[-LATEST:]
    rows = np.unique(np.append(rows, 0))
    weak = weightless(robot, assembly, record[rows, assembly.columns.x], np.asarray(rows * every * assembly.step))
    remedy = "lower the gains or the step" if at_once else "use loop='exact', or lower the gains"
    return f"instability: {what} at {when}; " + (f"{weak}: give links or drives their inertia" if weak else remedy)


def _joint(robot: VirtualRobot, index: int) -> tuple[str, str]:
    """Return name and unit of velocity of a coordinate."""
    mechanism = robot.mechanism
    name = mechanism.coordinate_names[index]
    slides = {c for joint in mechanism.joints for c in joint.coordinates if joint.kind == "prismatic"}
    slides |= {c for joint in mechanism.joints for c in joint.coordinates if c.endswith((".x", ".y", ".z"))}
    return name, "m/s" if name in slides else "rad/s"


def culprit(robot: VirtualRobot, index: int) -> str:
    """Return the velocity or current that ran away.

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    index : int
        Coordinate, then shaft masses (counted from twice their number), then windings.

    Returns
    -------
    str
        "joint 'elbow' passed 1e+06 rad/s".
    """
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


def weightless(robot: VirtualRobot, assembly: Assembly, path: Array, t: Array) -> str:
    """Return a clause that names a joint with next to no inertia, or nothing.

    Joints that can move together almost for nothing make the mass matrix nearly singular: the smallest eigenvalue of M, scaled
    to a unit diagonal, is the share of their inertia that is left. It is negative where a published or identified model is not
    physical.

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    assembly : Assembly
        Its arrays; only constant ones are read.
    path : ndarray, (N, n)
        Positions on the way.
    t : ndarray, (N,)
        Their times [s].

    Returns
    -------
    str
        "the mass matrix is nearly singular at t = 0 s (joint 'j3' has only 1e-12 kg m^2)", or "".
    """
    try:
        inertia = inertia_of(robot, assembly, path)
    except DynidentError:  # the loops do not close there: what was lost is not the inertia
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


def inertia_of(robot: VirtualRobot, assembly: Assembly, path: Array) -> Array:
    """Return the mass matrix of robot and drives along a path.

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    assembly : Assembly
        Its arrays; only constant ones are read.
    path : ndarray, (N, n)
        Poses.

    Returns
    -------
    ndarray, (N, n, n)
        Mass matrices.
    """
    from dynident.simulate import layout as at  # noqa: PLC0415 - numba is imported on first use
    from dynident.simulate.skeleton import joint_inertias  # noqa: PLC0415

    still = tree_motion(robot.mechanism, at_rest(robot.mechanism, path))
    G = np.eye(still.q.shape[1]) if still.G is None else still.G
    more = assembly.plant.base - joint_inertias(robot.mechanism)[0]  # of the drives, in what the kernels add to bodies
    if assembly.plant.K[at.METHOD] != at.ONE:
        more = more + assembly.plant.motors
    return np.asarray(mass_matrix(robot.mechanism, path) + np.swapaxes(G, -1, -2) @ more @ G)
