"""Why a run stopped, in one sentence: which joint ran away and when, a singular pose, or a mass matrix without inertia."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynident.mechanics import mass_matrix
from dynident.mechanics.batch import at_rest, tree_motion

if TYPE_CHECKING:
    from dynident.simulate.plant import Assembly
    from dynident.simulate.robot import VirtualRobot

Array = NDArray[np.float64]

FASTEST = 1e6  # velocity [rad/s, m/s] or current [A] beyond which a run counts as unstable
RUNAWAY = 10.0  # times the largest wanted speed (and [rad/s, m/s]) above which a lost closure is blamed on the control
WEIGHTLESS = 1e-9  # inertia that a joint feels alone, over its own or the largest, below which the mass matrix is nearly singular


def reason(robot: VirtualRobot, assembly: Assembly, result: tuple[int, int, int], x: Array, wanted: float) -> str:
    """Return why a run stopped.

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    assembly : Assembly
        Its arrays, as the run left them.
    result : tuple of int
        Status, step and index of `Assembly.run`; the status is not FINE.
    x : ndarray, (n,)
        Position at the start.
    wanted : float
        Largest speed of the reference [rad/s, m/s].

    Returns
    -------
    str
        One sentence with the time, the joint and the remedy.
    """
    from dynident.simulate import layout as at  # noqa: PLC0415 - numba is imported on first use

    status, step, index = result
    K, F, n = assembly.plant.K, assembly.plant.F, robot.mechanism.dof
    t, name = f"t = {step * assembly.step:.6g} s", robot.name or robot.mechanism.name
    first = int(K[at.STAGE]) + len(robot.mechanism.tree.coordinates)
    speeds = np.abs(F[first : first + n])
    speeds[~np.isfinite(speeds)] = np.inf
    fastest = int(np.argmax(speeds))
    joint, unit = _joint(robot, fastest)
    if status == at.UNSTABLE:
        weak = weightless(robot, assembly, x)
        remedy = f"{weak}; give every moving link or its drive an inertia" if weak else "lower the gains or the step"
        if not weak and K[at.METHOD] not in (at.ONE, at.EXACT):
            remedy = "use loop='exact', or lower the gains"
        return f"instability: {culprit(robot, index)} at {t}; {remedy}"
    if speeds[fastest] > FASTEST:  # within one step: no closure and no pivot means anything any more
        return f"instability: joint '{joint}' passed {FASTEST:.0e} {unit} at {t}; lower the gains or the step"
    if status == at.SINGULAR_MASS:
        if K[at.METHOD] not in (at.ONE, at.EXACT):
            return (
                f"robot '{name}': its drives have no inertia in some direction at {t}, so the delayed and iterated loops cannot "
                "be solved; use loop='exact' or method='coupled'"
            )
        return f"robot '{name}': the mass matrix is singular at {t}; give every moving link or its drive an inertia"
    if speeds[fastest] > RUNAWAY * max(1.0, wanted):
        return (
            f"instability: joint '{joint}' reached {speeds[fastest]:.3g} {unit} at {t}, where the loops of robot '{name}' cannot "
            "be followed; lower the gains or the step"
        )
    return (
        f"robot '{name}': its loops cannot be followed further at {t}, with joint '{joint}' at {speeds[fastest]:.3g} {unit} (a "
        "singularity, or unstable control threw it there); stay away from it, or lower the gains"
    )


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


def weightless(robot: VirtualRobot, assembly: Assembly, x: Array) -> str:
    """Return a clause that names a joint with next to no inertia, or nothing.

    A joint that can be moved almost for nothing while the others are free makes the mass matrix nearly singular: the inertia
    that it feels, 1 / (M^-1)_jj, is far below M_jj, or below that of every other joint.

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    assembly : Assembly
        Its arrays; only constant ones are read.
    x : ndarray, (n,)
        Position.

    Returns
    -------
    str
        "the mass matrix is nearly singular, joint 'j3' feels only 1e-12 kg m^2", or "".
    """
    inertia = _inertia(robot, assembly, x)
    own = np.abs(np.diag(inertia))
    try:
        felt = 1.0 / np.abs(np.diag(np.linalg.inv(inertia)))
    except np.linalg.LinAlgError:
        felt = np.where(own == own.min(), 0.0, own)
    j = int(np.argmin(felt / own))
    if not felt[j] < WEIGHTLESS * own[j]:
        j = int(np.argmin(felt))
        if not felt[j] < WEIGHTLESS * own.max():
            return ""
    unit = "kg" if _joint(robot, j)[1] == "m/s" else "kg m^2"
    return f"the mass matrix is nearly singular, joint '{_joint(robot, j)[0]}' feels only {felt[j]:.2g} {unit}"


def _inertia(robot: VirtualRobot, assembly: Assembly, x: Array) -> Array:
    """Return the mass matrix of robot and drives, (n, n)."""
    from dynident.simulate import layout as at  # noqa: PLC0415 - numba is imported on first use
    from dynident.simulate.skeleton import joint_inertias  # noqa: PLC0415

    still = tree_motion(robot.mechanism, at_rest(robot.mechanism, x))
    G = np.eye(still.q.shape[1]) if still.G is None else (still.G if still.G.ndim == 2 else still.G[0])
    more = assembly.plant.base - joint_inertias(robot.mechanism)[0]  # of the drives, in what the kernels add to bodies
    if assembly.plant.K[at.METHOD] != at.ONE:
        more = more + assembly.plant.motors
    return np.asarray(mass_matrix(robot.mechanism, x)[0] + G.T @ more @ G)
