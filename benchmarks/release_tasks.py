"""Timed tasks that run both on this tree and on the last release, on request. Used by `benchmarks.release`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

import dynident as di
from dynident.mechanics import actuator_torques

try:
    from dynident_papers.robots import dualv
except ImportError:  # the last release was one package
    from dynident.robots import dualv

URDF = Path(__file__).parent / "arm.urdf"


def arm_motion(samples: int) -> tuple[di.Mechanism, di.Motion]:
    robot = di.Mechanism.from_urdf(URDF)
    rng = np.random.default_rng(0)
    q, v, a = (rng.uniform(-2.0, 2.0, (samples, robot.dof)) for _ in range(3))
    return robot, di.Motion(np.arange(samples) * 1e-3, q, v, a)


def platform(samples: int) -> di.Motion:
    t = np.arange(samples) * 1e-3
    rates, sizes, phases = np.array([3.0, 5.0, 4.0]), np.array([0.05, 0.04, 0.4]), np.array([0.0, 1.0, 0.5])
    angle = t[:, None] * rates + phases
    q = sizes * (np.sin(angle) - np.sin(phases))
    return di.Motion(t, q, sizes * rates * np.cos(angle), -sizes * rates**2 * np.sin(angle))


def tasks(samples: int) -> dict[str, Callable[[], object]]:
    robot, motion = arm_motion(samples)
    base = di.base_parameters(robot)
    rng = np.random.default_rng(1)
    tau = di.inverse_dynamics(robot, motion) + rng.normal(0.0, 0.5, motion.q.shape)
    parallel, run = dualv.mechanism(), platform(samples)
    known = di.base_parameters(parallel)
    torques = actuator_torques(parallel, run.q, di.inverse_dynamics(parallel, run))
    torques = torques + rng.normal(0.0, 0.05, torques.shape)
    machine, wanted = dualv.machine(), platform(10_001)
    few = motion[: samples // 4]
    return {
        "inverse dynamics": lambda: di.inverse_dynamics(robot, motion),
        "regressor": lambda: di.regressor(robot, few),
        "motion and torque to WLS": lambda: di.WLS().fit(di.Regression.from_motion(robot, motion, tau, base)),
        "DualV: closure, regression data and WLS": lambda: di.WLS().fit(
            di.Regression.from_motion(parallel, run, torques, known)
        ),
        "DualV: computed torque, 10 s": lambda: machine.simulate(wanted),
    }


def main() -> None:
    """Write the names of the tasks; then, for every name read, run it and write its processor and clock time."""
    work = tasks(int(sys.argv[1]))
    print(json.dumps(list(work)), flush=True)
    for line in sys.stdin:
        processor, clock = process_time(), perf_counter()
        work[line.strip()]()
        print(json.dumps([process_time() - processor, perf_counter() - clock]), flush=True)


if __name__ == "__main__":
    main()
