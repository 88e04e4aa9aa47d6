"""Swings of the tool: they hold the rows that they can, and bandwidths are measured along them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from posture_cases import CENTRE, arm, seven_axes

from dynident.errors import DynidentError
from dynident.simulate import standard_machine
from dynident_lab.servo import bandwidth
from dynident_lab.servo.stepped_sines import Swing
from dynident_lab.tool_paths import TipMotion, joint_motion


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("arms")
    for count in (4, 6, 7):
        (folder / f"{count}.urdf").write_text(seven_axes(count))
    return folder


@pytest.mark.parametrize(("count", "axis", "rows"), [(7, 2, 6), (6, 0, 6), (4, 1, 4)])
def test_a_swing_holds_the_rows_that_it_can_and_stays_near(files: Path, count: int, axis: int, rows: int) -> None:
    pin = pytest.importorskip("pinocchio")
    robot, centre, A = arm(files, count), CENTRE[:count], 0.01
    swing = Swing.along(robot, f"l{count}", axis, A, centre)
    assert len(swing.held) == rows and swing.held[0] == axis
    w, t = 7.0, np.linspace(0.0, 1.0, 400)
    motion = swing.motion(t, A * np.array([np.cos(w * t), -w * np.sin(w * t), -(w**2) * np.cos(w * t)]))
    model = pin.buildModelFromUrdf(str(files / f"{count}.urdf"))
    data, frame = model.createData(), model.getFrameId(f"l{count}")

    def pose(q: np.ndarray) -> Any:
        pin.framesForwardKinematics(model, data, q)
        return data.oMf[frame].copy()

    start, M = pose(centre), np.triu(pin.crba(model, data, centre))
    M = M + np.triu(M, 1).T
    for q in motion.q[::40]:
        here = pose(q)
        moved = np.concatenate([here.translation - start.translation, pin.log3(here.rotation @ start.rotation.T)])
        wanted = np.zeros(6)
        wanted[axis] = A * np.cos(w * t[np.argmin(np.abs(motion.q - q).sum(axis=1))])
        np.testing.assert_allclose(moved[list(swing.held)], wanted[list(swing.held)], atol=1e-9)
        J = pin.computeFrameJacobian(model, data, q, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)[list(swing.held)]
        free = np.linalg.svd(J)[2][len(swing.held) :]
        np.testing.assert_allclose(free @ M @ (q - centre), 0.0, atol=1e-8)  # no motion that the tool does not feel is left
    h = t[1] - t[0]
    np.testing.assert_allclose((motion.q[2:] - motion.q[:-2]) / (2.0 * h), motion.v[1:-1], atol=2e-5)
    np.testing.assert_allclose((motion.v[2:] - motion.v[:-2]) / (2.0 * h), motion.a[1:-1], atol=2e-4)


def test_a_swing_of_six_axes_is_that_of_inverse_kinematics(files: Path) -> None:
    robot, centre, A = arm(files, 6), CENTRE[:6], 5e-3
    swing = Swing.along(robot, "l6", 2, A, centre)
    t = np.linspace(0.0, 0.5, 50)
    wave = A * np.array([np.cos(9.0 * t), -9.0 * np.sin(9.0 * t), -81.0 * np.cos(9.0 * t)])
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromUrdf(str(files / "6.urdf"))
    data = model.createData()
    pin.framesForwardKinematics(model, data, centre)
    start = data.oMf[model.getFrameId("l6")]
    tip = np.zeros((3, t.size, 3))
    tip[0] += start.translation
    tip[:, :, 2] += wave
    path = TipMotion(t, tip[0], tip[1], tip[2], np.ones(t.size, dtype=np.bool_))
    other = joint_motion(robot, path, start.rotation, start=centre, frame="l6")
    motion = swing.motion(t, wave)
    np.testing.assert_allclose(motion.q, other.q, atol=1e-9)
    np.testing.assert_allclose(motion.a, other.a, atol=1e-6)


def test_the_bandwidth_of_a_redundant_arm_along_its_tool(files: Path) -> None:
    robot = standard_machine(arm(files), CENTRE, controller="pd")
    found = bandwidth(robot, "tool.z", 1e-3, [2.0], centre=CENTRE, cycles=2, settle=1.0)
    assert found.magnitude[0] == pytest.approx(1.0, abs=0.1)


def test_swings_that_cannot_be_are_said_in_one_sentence(files: Path) -> None:
    robot = arm(files)
    with pytest.raises(DynidentError, match=r"centre is singular: .* 5 of 6 pose coordinates"):
        bandwidth(standard_machine(robot), "tool.z", 1e-3, [1.0])
    with pytest.raises(DynidentError, match="amplitude = 2 m along z is out of reach"):
        bandwidth(standard_machine(robot), "tool.z", 2.0, [1.0], centre=CENTRE)
