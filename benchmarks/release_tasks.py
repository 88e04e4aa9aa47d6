"""Timed tasks that run on this tree and on the last release alike; prints one line of JSON. Used by `benchmarks.release`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np

import dynident as di
from dynident.mechanics import actuator_torques
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


def best(work: Callable[[], object], repeats: int) -> float:
    work()
    times = []
    for _ in range(repeats):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


def tasks(samples: int, repeats: int) -> dict[str, float]:
    robot, motion = arm_motion(samples)
    base = di.base_parameters(robot)
    rng = np.random.default_rng(1)
    tau = di.inverse_dynamics(robot, motion) + rng.normal(0.0, 0.5, motion.q.shape)
    found = {
        "inverse dynamics": best(lambda: di.inverse_dynamics(robot, motion), repeats),
        "regressor": best(lambda: di.regressor(robot, motion[: samples // 4]), repeats),
        "motion and torque to WLS": best(lambda: di.WLS().fit(di.Regression.from_motion(robot, motion, tau, base)), repeats),
    }
    parallel, run = dualv.mechanism(), platform(samples)
    known = di.base_parameters(parallel)
    torques = actuator_torques(parallel, run.q, di.inverse_dynamics(parallel, run))
    torques = torques + rng.normal(0.0, 0.05, torques.shape)
    found["DualV: closure, evidence and WLS"] = best(
        lambda: di.WLS().fit(di.Regression.from_motion(parallel, run, torques, known)), repeats
    )
    machine, wanted = dualv.machine(), platform(10_001)
    found["DualV: computed torque, 10 s"] = best(lambda: machine.simulate(wanted), max(1, repeats - 1))
    return found


if __name__ == "__main__":
    print(json.dumps(tasks(int(sys.argv[1]), int(sys.argv[2]))))
