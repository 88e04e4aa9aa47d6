"""Why a run stopped, in one sentence: which joint ran away and when, a singular pose, or a mass matrix without inertia."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.control import actuator_rows
from dynident.errors import DynidentError
from dynident.mechanics import mass_matrix
from dynident.mechanism import Mechanism
from dynident.simulate.machine import FASTEST, Machine
from dynident.simulate.shape import LOST_CLOSURE, LOST_TASK, SINGULAR_MASS, UNSTABLE

if TYPE_CHECKING:
    from dynident.simulate.robot import VirtualRobot

Array = NDArray[np.float64]

RUNAWAY = 100.0  # velocity [rad/s, m/s] that no robot has: above it a lost closure is blamed on the control
LATEST = 300  # rows of the record in which the reason is looked for
WEIGHTLESS = 1e-9  # a joint's inertia over the largest one, below which the mass matrix is nearly singular
CANCELLED = 3e-3  # smallest eigenvalue of the mass matrix, scaled to a unit diagonal, below which it is nearly singular
ROUNDING = 1e-12  # below zero, of that eigenvalue


def reason(robot: VirtualRobot, machine: Machine, status: int, index: int, x: Array, v: Array, every: int) -> str:
    """Return in one sentence why a run stopped; x and v are positions and velocities so far, one row every `every` steps."""
    first = machine.memory.state.at("v")
    when, name = f"t = {machine.done * machine.step:.6g} s", robot.name or robot.mechanism.name
    speeds = np.abs(np.maximum(np.abs(machine.of("v")), np.abs(machine.stage[first : first + robot.mechanism.dof])))
    speeds[~np.isfinite(speeds)] = np.inf
    fastest = int(np.argmax(speeds))
    joint, unit = _joint(robot, fastest)
    at_once = not machine.shape.loop
    if status == SINGULAR_MASS and speeds[fastest] <= FASTEST:
        if at_once:
            return f"robot '{name}': the mass matrix is singular at {when}; give every moving link or its drive an inertia"
        return (
            f"robot '{name}': the mass matrix of its drives alone is singular at {when}, so the delayed and iterated loops "
            "cannot be solved; use loop='exact' or method='coupled'"
        )
    if status == LOST_CLOSURE and speeds[fastest] <= RUNAWAY:
        return (
            f"robot '{name}': its loops cannot be followed further at {when}, with joint '{joint}' at {speeds[fastest]:.3g} "
            f"{unit} (a singularity, or unstable control threw it there); stay away from it, or lower the gains"
        )
    if status == LOST_TASK and speeds[fastest] <= RUNAWAY:
        return (
            f"robot '{name}': the work space does not determine the coordinates at {when} (a singularity): the tool "
            "cannot move along all of its rows; keep the reference away from it, or leave rows out"
        )
    what = f"joint '{joint}' passed {FASTEST:.0e} {unit}"
    if status == UNSTABLE:
        what = culprit(robot, index)
    elif speeds[fastest] <= FASTEST:
        what = f"joint '{joint}' at {speeds[fastest]:.3g} {unit} tears the loops of robot '{name}'"
    start = machine.done * machine.step - (x.shape[0] - 1) * every * machine.step
    rows = np.flatnonzero(np.abs(v).max(axis=1) <= RUNAWAY)[-LATEST:]
    rows = np.unique(np.append(rows, 0))
    weak = weightless(robot, machine, x[rows], np.asarray(start + rows * every * machine.step))
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
    """Return the velocity or current that ran away, "joint 'elbow' passed 1e+06 rad/s", by its number in the state."""
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


def weightless(robot: VirtualRobot, machine: Machine, path: Array, t: Array) -> str:
    """Return a clause that names a joint with next to no inertia, or nothing.

    Joints that can move together almost for nothing make the mass matrix nearly singular: the smallest eigenvalue of M, scaled
    to a unit diagonal, is the share of their inertia that is left. It is negative where a published or identified model is not
    physical.
    """
    try:
        inertia = inertia_of(robot.mechanism, machine.reflected, path)
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


def inertia_of(mechanism: Mechanism, reflected: Array, path: Array) -> Array:
    """Return the mass matrices (N, n, n) of a robot and its drives, whose inertias behind the gears are given, along a path."""
    A = actuator_rows(mechanism, path)
    return np.asarray(mass_matrix(mechanism, path) + np.swapaxes(A, -1, -2) @ (reflected[:, None] * A))


def loop_gain(machine: Machine, x: ArrayLike) -> float:
    """Return the spectral radius of J_act^-1 M at a pose: the delayed and iterated algebraic loops diverge when it passes 1.

    It is the inertia of the mechanism over that of the actuators in the worst direction; infinite when a coordinate has no
    actuator.
    """
    A = actuator_rows(machine.mechanism, x)[0]
    joined = machine.memory.numbers.view(machine.numbers, "joined")
    actuators = A.T @ (joined[:, None] * A)
    moved = inertia_of(machine.mechanism, machine.reflected, np.atleast_2d(x))[0] - actuators
    if np.linalg.matrix_rank(actuators) < actuators.shape[0]:
        return float("inf")
    return float(np.abs(np.linalg.eigvals(np.linalg.solve(actuators, moved))).max())
