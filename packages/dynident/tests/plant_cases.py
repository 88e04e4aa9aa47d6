"""Robots, drives and runs that the tests of the compiled machine share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import dynident as di
from dynident.control import OpenLoop
from dynident.drive import Drive, Motor
from dynident.mechanism import from_com
from dynident.simulate import Run, VirtualRobot


def plain(robot: di.Mechanism, **motor: float) -> list[Drive]:
    """Return drives without anything of their own: the current is the torque."""
    return [Drive(a.name, Motor(1.0, **motor)) for a in robot.actuators]


def bare_motors(robot: di.Mechanism) -> di.Mechanism:
    """Return the robot with its actuators behind their gears, which are the drives' own here."""
    return replace(robot, actuators=tuple(replace(actuator, ratio=1.0, offset=0.0) for actuator in robot.actuators))


def machine(
    robot: di.Mechanism, drives: list[Drive] | None = None, law: object = None, step: float = 1e-3, **options: object
) -> VirtualRobot:
    """Return a machine; with plain drives and without torques when nothing else is said."""
    chosen = plain(robot) if drives is None else drives
    bare = bare_motors(robot)
    return VirtualRobot(bare, chosen, law or OpenLoop(torque=np.zeros(len(chosen))), step=step, **options)


def go(
    robot: VirtualRobot, rows: int, x: object = None, v: object = None, motion: object = None, every: int = 1, **options: object
) -> Run:
    """Run from (x, v) and return the run, one sample every so many steps; without a motion it is asked to rest at x."""
    n = robot.mechanism.dof
    place = np.zeros(n) if x is None else np.asarray(x, dtype=float)
    start = {"q": place} if v is None else {"q": place, "velocity": np.asarray(v, dtype=float)}
    still = motion or di.Motion([0.0], place[None], np.zeros((1, n)), np.zeros((1, n)))
    rest = {"duration": (rows - 1) * every * robot.step, "log_cycle": every * robot.step}
    return robot.simulate(still, start=start, **rest, **options)


def home(robot: di.Mechanism) -> np.ndarray:
    """Return the coordinates of the pose in which the loops of a robot were described; zeros without loops."""
    return robot.closure.home[robot.closure.independent] if robot.loops else np.zeros(robot.dof)


def chain(links: int = 3) -> di.Mechanism:
    """Return a pendulum of several links that all swing, in three dimensions."""
    rows = [(0.0, np.pi / 2, 0.2, 0.0), (0.4, 0.0, 0.0, 0.0), (0.3, 0.4, 0.1, 0.0)][:links]
    robot = di.Mechanism.from_dh(rows, name="pendulum")
    values = np.zeros(len(robot.parameters))
    for i in range(links):
        values[10 * i : 10 * i + 10] = from_com(2.0 - 0.5 * i, np.array([-0.2, 0.03, 0.02]), np.diag([0.02, 0.03, 0.025]))
    return robot.with_parameters(robot.parameters.replace(values))


def without_terms(robot: di.Mechanism) -> di.Mechanism:
    """Return the robot without friction, offsets and springs."""
    values = robot.parameters.values.copy()
    names = np.array([name.split("_")[0] for name in robot.parameters.names])
    values[np.isin(names, ("fv", "fc", "off", "k", "fvp", "fvn", "fcp", "fcn"))] = 0.0
    return robot.with_parameters(robot.parameters.replace(values))


def slide(mass: float = 3.0, **terms: float) -> di.Mechanism:
    """Return one mass on a slide."""
    body = di.Body("load", from_com(mass, np.zeros(3), 0.01 * np.eye(3)))
    joint = di.Joint("s", "prismatic", "base", "load", terms=terms)
    return di.Mechanism("slide", (di.Body("base"), body), (joint,), terms=(), gravity=(0.0, -9.81, 0.0))
