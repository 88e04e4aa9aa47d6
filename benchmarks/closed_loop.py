"""Print the least processor time [s] of 10 s of DualV in closed loop; `baseline` runs it with two versions of the package."""

from __future__ import annotations

import importlib
import sys
from time import process_time

import numpy as np

import dynident as di
from dynident.control import ComputedTorque, gains_for
from dynident.drive import Drive, Encoder, Motor
from dynident.simulate import VirtualRobot


def main(package: str, repeats: int) -> None:
    """Simulate DualV of a package with a computed torque at 1 kHz and steps at 8 kHz."""
    robot = importlib.import_module(f"{package}.robots.dualv").mechanism()
    home = robot.closure.home[robot.closure.independent]
    drives = [Drive(a.name, Motor(1.0), encoder=Encoder(2.0 * np.pi / 20000)) for a in robot.actuators]
    machine = VirtualRobot(robot, drives, ComputedTorque(robot, *gains_for(15.0, 0.7), cycle=1e-3), step=1.25e-4)
    t, one = np.arange(10_001) * 1e-3, np.ones(home.size)
    q, v, a = 0.02 * (1.0 - np.cos(np.pi * t)), 0.02 * np.pi * np.sin(np.pi * t), 0.02 * np.pi**2 * np.cos(np.pi * t)
    motion = di.Motion(t, home + q[:, None] * one, v[:, None] * one, a[:, None] * one)
    machine.simulate(motion)
    best = float("inf")
    for _ in range(repeats):
        start = process_time()
        machine.simulate(motion)
        best = min(best, process_time() - start)
    print(best)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
