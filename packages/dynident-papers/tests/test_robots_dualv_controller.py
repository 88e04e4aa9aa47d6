"""Controller code of DualV in C: four motors for three freedoms, on the platform (case 1) and on three motors (case 2)."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.control import feedforward_torques
from dynident.mechanics import close_positions
from dynident.mechanics.actuation import actuator_jacobian
from dynident.symbolic.controller import ControllerCode
from dynident_papers.robots import dualv

GCC = shutil.which("gcc")
STATES = 1000


@pytest.mark.skipif(GCC is None, reason="gcc is not installed")
def test_cases_1_and_2_at_random_states(tmp_path: Path) -> None:
    assert GCC
    robot = dualv.mechanism()
    code = ControllerCode(robot)
    for file, text in code.c_files.items():
        (tmp_path / file).write_text(text)
    command = [GCC, "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O2", "-fPIC", "-shared", "dualv.c", "-lm"]
    subprocess.run([*command, "-o", "model.so"], cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "model.so"))

    rng, size = np.random.default_rng(4), np.array([0.05, 0.04, 0.2])  # home is 0, 0, 0
    q, v, a = (scale * rng.uniform(-1.0, 1.0, (STATES, 3)) for scale in (size, 1.0, 5.0))
    start = q + np.deg2rad(2.0) * rng.uniform(-0.5, 0.5, q.shape)
    between = [np.zeros((2 * STATES, 3)) for _ in range(3)]  # every second sample is home, from which the branch is followed
    for array, values in zip(between, (q, v, a), strict=True):
        array[1::2] = values
    motion = di.Motion(np.arange(2.0 * STATES), *between)
    platform = di.inverse_dynamics(robot, motion)[1::2]
    least = feedforward_torques(robot, motion)[1::2] / np.array([motor.ratio for motor in robot.actuators])
    A = actuator_jacobian(robot, motion.q)[1::2]
    three = np.linalg.solve(np.swapaxes(A[:, :3], 1, 2), platform[:, :, None])[:, :, 0]
    there = np.zeros((2 * STATES, 3))
    there[1::2] = start
    poses = close_positions(robot, there)[1::2]

    def call(name: str, s: int, width: int, *arrays: np.ndarray | None) -> np.ndarray:
        out, pose = np.zeros(width), poses[s].copy()
        given = [None if x is None else np.ascontiguousarray(x) for x in (pose, q[s], *arrays, out)]
        assert library[f"dualv_{name}"](*(ctypes.c_void_p(None if x is None else x.ctypes.data) for x in given)) == 0
        return out

    free = np.array([1.0, 1.0, 1.0, np.inf])  # the fourth motor carries nothing
    found = {"case 1": np.empty((STATES, 3)), "least": np.empty((STATES, 4)), "case 2": np.empty((STATES, 4))}
    for s in range(STATES):
        found["case 1"][s] = call("inverse_dynamics", s, 3, v[s], a[s]) + call("friction", s, 3, v[s])
        found["least"][s] = call("feedforward", s, 4, v[s], a[s], None, None)
        found["case 2"][s] = call("feedforward", s, 4, v[s], a[s], free, None)
    ratio = np.array([motor.ratio for motor in robot.actuators])
    expected = {"case 1": platform, "least": least, "case 2": np.column_stack([three / ratio[:3], np.zeros(STATES)])}
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12, atol=1e-12 * np.abs(values).max(), err_msg=name)
