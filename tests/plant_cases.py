"""Robots, drives and runs that the tests of the compiled plant share."""

from __future__ import annotations

import numpy as np

import dynident as di
from dynident.control import OpenLoop
from dynident.drive import Drive, Motor
from dynident.friction import TERMS
from dynident.mechanics.batch import at_rest
from dynident.mechanism.inertia import from_com
from dynident.simulate.controllers import tables, tick_steps
from dynident.simulate.plant import FINE, Assembly, build, no_inputs


def plain(robot: di.Mechanism, **motor: float) -> list[Drive]:
    """Return drives without anything of their own: the current is the torque."""
    return [Drive(a.name, Motor(1.0, **motor)) for a in robot.actuators]


def free(robot: di.Mechanism, x: np.ndarray, v: np.ndarray | None = None, step: float = 1e-3, **options: object) -> Assembly:
    """Return a robot that nothing drives."""
    drives = options.pop("drives", plain(robot))
    return build(robot, drives, OpenLoop(torque=np.zeros(len(drives))), step=step, x=x, v=v, **options)


def go(
    assembly: Assembly, steps: int, law: object = None, motion: di.Motion | None = None, every: int = 1, **more: object
) -> np.ndarray:
    """Run and return the record; without a reference everything wanted is zero."""
    robot, k = assembly.mechanism, assembly.plant.drive.shape[0]
    if motion is None:
        x = np.array([assembly.plant.y[robot.tree.coordinates.index(name)] for name in robot.coordinate_names])
        motion = at_rest(robot, x)
    inputs = more.pop("inputs", no_inputs(k))
    wanted = tables(robot, law, motion, tick_steps(assembly.controller), more.pop("noise", None), more.pop("command", None))
    record = np.zeros((steps // every + 1, assembly.columns.width))
    status, done, _ = assembly.run(steps, wanted, inputs, record, every)
    assert status == FINE
    assert done == assembly.done
    return record[: -(-steps // every)]


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
    values[np.isin(names, [symbol for symbol, term in TERMS.items() if not term.rotor])] = 0.0
    return robot.with_parameters(robot.parameters.replace(values))


def slide(mass: float = 3.0, **terms: float) -> di.Mechanism:
    """Return one mass on a slide."""
    body = di.Body("load", from_com(mass, np.zeros(3), 0.01 * np.eye(3)))
    joint = di.Joint("s", "prismatic", "base", "load", terms=terms)
    return di.Mechanism("slide", (di.Body("base"), body), (joint,), terms=(), gravity=(0.0, -9.81, 0.0))
