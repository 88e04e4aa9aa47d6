"""Work spaces of fewer rows than coordinates: operational-space control as Pinocchio has it, and the posture that is left."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from posture_cases import CENTRE, arm, seven_axes
from small_robots import platform

from dynident.control import Cascade, TaskCascade, TaskComputedTorque, TaskPID, ToolSpace
from dynident.control.feedforward import actuator_rows
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.errors import DynidentError
from dynident.mechanics import Motion, forward_dynamics, frame_motion, jacobian, mass_matrix
from dynident.mechanism import Mechanism
from dynident.simulate import VirtualRobot

RNG = np.random.default_rng(11)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("arms")
    for count in (4, 6, 7):
        (folder / f"{count}.urdf").write_text(seven_axes(count))
    return folder


def machine(mechanism: Mechanism, law: Any) -> VirtualRobot:
    drives = [Drive(a.name, Motor(1.0), encoder=Encoder(velocity="exact")) for a in mechanism.actuators]
    return VirtualRobot(mechanism, drives, law, step=1e-3)


def asked(robot: Mechanism, law: Any, want: Any, see: Any) -> np.ndarray:
    """Return the first command of a law that wants q, v, a and sees x, v."""
    t = np.arange(6)[:, None] * 1e-3
    motion = Motion(t[:, 0], want.q + want.v * t + 0.5 * want.a * t**2, want.v + want.a * t, np.tile(want.a, (6, 1)))
    run = machine(robot, law).simulate(motion, start={"q": see.x, "velocity": see.v}, log_cycle=1e-3)
    return run.truth.current[0]


def wish(n: int) -> tuple[Any, Any]:
    q, v, a = CENTRE[:n] + 0.1 * RNG.normal(size=n), RNG.normal(size=n), RNG.normal(size=n)
    x, w = q + 0.05 * RNG.normal(size=n), v + 0.1 * RNG.normal(size=n)
    return SimpleNamespace(q=q, v=v, a=a), SimpleNamespace(x=x, v=w)


class Oracle:
    """Khatib's operational space with Pinocchio: task force, bias and null-space torque, term by term."""

    def __init__(self, path: Path, rows: list[int]) -> None:
        self.pin = pytest.importorskip("pinocchio")
        self.model = self.pin.buildModelFromUrdf(str(path))
        self.data, self.rows = self.model.createData(), rows
        self.frame = self.model.getFrameId(f"l{self.model.nq}")

    def at(self, q: np.ndarray, v: np.ndarray) -> tuple[Any, ...]:
        pin, model, data, axes = self.pin, self.model, self.data, self.pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        h = pin.nonLinearEffects(model, data, q, v)
        M = np.triu(pin.crba(model, data, q))
        M = M + np.triu(M, 1).T
        pin.forwardKinematics(model, data, q, v, np.zeros(q.size))
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        J = pin.getFrameJacobian(model, data, self.frame, axes)[self.rows]
        bias = pin.getFrameClassicalAcceleration(model, data, self.frame, axes).vector[self.rows]
        place = data.oMf[self.frame]
        return M, h, J, bias, place.rotation.copy(), place.translation.copy()

    def error(self, wanted: tuple[Any, ...], actual: tuple[Any, ...]) -> np.ndarray:
        return np.concatenate([wanted[5] - actual[5], self.pin.log3(wanted[4] @ actual[4].T)])[self.rows]


CASES = [(7, ("x", "y", "z", "rx", "ry", "rz")), (6, ("x", "y", "z")), (7, ("z",)), (4, ("x", "z"))]


@pytest.mark.parametrize(("count", "names"), CASES)
def test_computed_torque_is_operational_space_control(files: Path, count: int, names: tuple[str, ...]) -> None:
    rows = ["xyz".index(r) if len(r) == 1 else 3 + "xyz".index(r[1]) for r in names]
    oracle, robot = Oracle(files / f"{count}.urdf", rows), arm(files, count)
    kp, kd = 900.0 + 100.0 * np.arange(len(rows)), 50.0 + np.arange(len(rows))
    for posture, used in ((None, (900.0, 50.0)), ((40.0, 9.0), (40.0, 9.0))):
        law = TaskComputedTorque(ToolSpace(rows=names), robot, kp, kd, cycle=1e-3, posture=posture)
        for _ in range(3):
            want, see = wish(count)
            there, here = oracle.at(want.q, want.v), oracle.at(see.x, see.v)
            M, h, J, bias = here[:4]
            u = there[2] @ want.a + there[3] + kp * oracle.error(there, here) + kd * (there[2] @ want.v - J @ see.v)
            back = np.linalg.inv(M)
            Lambda = np.linalg.inv(J @ back @ J.T)
            null = np.eye(count) - J.T @ Lambda @ J @ back  # N^T
            posture_a = want.a + used[0] * (want.q - see.x) + used[1] * (want.v - see.v)
            tau = J.T @ (Lambda @ (u - bias + J @ back @ h)) + null @ (M @ posture_a + h)
            np.testing.assert_allclose(asked(robot, law, want, see), tau, rtol=1e-7, atol=1e-7 * np.abs(tau).max())


def test_forces_of_the_posture_do_not_move_the_tool(files: Path) -> None:
    oracle, robot = Oracle(files / "7.urdf", [0, 1, 2]), arm(files)
    law = TaskPID(ToolSpace(rows="xyz"), 3000.0, 200.0, cycle=1e-3)
    want, see = wish(7)
    there, here = oracle.at(want.q, want.v), oracle.at(see.x, see.v)
    M, _, J, _ = here[:4]
    F = 3000.0 * oracle.error(there, here) + 200.0 * (there[2] @ want.v - J @ see.v)
    rest = asked(robot, law, want, see) - J.T @ F
    assert np.abs(J @ np.linalg.solve(M, rest)).max() < 1e-8 * np.abs(np.linalg.solve(M, rest)).max()
    kp = 3000.0 * np.diag(J @ np.linalg.solve(M, J.T)).min()
    pull = kp * (want.q - see.x) + 2.0 * np.sqrt(kp) * (want.v - see.v)
    free = np.linalg.svd(J)[2][3:]  # motions that leave the tool where it is
    np.testing.assert_allclose(free @ rest, free @ (M @ pull), rtol=1e-7)


def test_the_cascade_moves_the_tool_as_asked_and_the_rest_with_least_energy(files: Path) -> None:
    oracle, robot = Oracle(files / "7.urdf", [0, 1, 2]), arm(files)
    loops = Cascade(20.0, 1.0, 0.0, position_cycle=1e-3, velocity_cycle=1e-3, velocity_feedforward=1.0)
    law = TaskCascade(ToolSpace(rows="xyz"), loops, posture=5.0)
    want, see = wish(7)
    v = asked(robot, law, want, see) + see.v  # kP = 1, ratio = 1: the current is the error of the speed
    there, here = oracle.at(want.q, want.v), oracle.at(see.x, see.v)
    M, J = here[0], here[2]
    np.testing.assert_allclose(J @ v, 20.0 * oracle.error(there, here) + there[2] @ want.v, rtol=1e-8)
    drift = 5.0 * (want.q - see.x) + want.v
    free = np.linalg.svd(J)[2][3:]
    np.testing.assert_allclose(free @ M @ v, free @ M @ drift, rtol=1e-7)  # least energy of v - drift


def test_a_platform_with_fewer_rows_than_freedoms() -> None:
    robot = platform()
    law = TaskComputedTorque(ToolSpace("platform", rows=("x", "y")), robot, 400.0, 30.0, cycle=1e-3, posture=(50.0, 10.0))
    x, v, q, w, a = (0.05 * RNG.normal(size=3) for _ in range(5))
    A = actuator_rows(robot, x)[0]
    tau = asked(robot, law, SimpleNamespace(q=q, v=w, a=a), SimpleNamespace(x=x, v=v))
    found = forward_dynamics(robot, x, v, A.T @ tau)[0]
    J = jacobian(robot, x, "platform", "world")[0][:2]
    e, rate = q[:2] - x[:2], w[:2] - v[:2]  # the coordinates of the robot are those of its platform
    still = frame_motion(robot, Motion([0.0], x, v, np.zeros(3)), "platform")[1][0, :2]
    np.testing.assert_allclose(J @ found + still, a[:2] + 400.0 * e + 30.0 * rate, atol=1e-8)
    pull = a + 50.0 * (q - x) + 10.0 * (w - v)
    free = np.linalg.svd(J)[2][2:]
    np.testing.assert_allclose(free @ mass_matrix(robot, x)[0] @ (found - pull), 0.0, atol=1e-8)


def test_in_a_run_the_tool_and_the_posture_come_to_the_reference(files: Path) -> None:
    robot = arm(files)
    drives = [Drive(a.name, Motor(1.0), Transmission(), encoder=Encoder(velocity="exact")) for a in robot.actuators]
    law = TaskComputedTorque(ToolSpace(rows="xyz"), robot, 900.0, 60.0, cycle=1e-3, posture=(100.0, 20.0))
    rest = Motion([0.0, 1.2], np.tile(CENTRE, (2, 1)), np.zeros((2, 7)), np.zeros((2, 7)))
    run = VirtualRobot(robot, drives, law, step=5e-4).simulate(rest, start={"q": CENTRE + 0.02})
    error = np.abs(run.truth.motion.q - CENTRE).max(axis=1)
    assert error[0] == pytest.approx(0.02)
    assert error[600] < 5e-3  # the tool is there long since: the joints still come back, as exp(-10 t)
    assert error[-1] < 5e-5


def test_what_cannot_be_is_said_in_one_sentence(files: Path) -> None:
    robot = arm(files)
    with pytest.raises(DynidentError, match=r"posture has shape \(3,\); give two numbers"):
        TaskPID(ToolSpace(), 1.0, 1.0, cycle=1e-3, posture=[1.0, 2.0, 3.0])
    with pytest.raises(DynidentError, match="posture is -1; give a number"):
        TaskCascade(ToolSpace(), Cascade(1.0, 1.0, 1.0, position_cycle=1e-3, velocity_cycle=1e-3), posture=-1.0)
    few = arm(files, 4)
    with pytest.raises(DynidentError, match="has 6 rows but robot 'seven' has 4 coordinates; choose fewer"):
        machine(few, TaskComputedTorque(ToolSpace(), few, 1.0, 1.0, cycle=1e-3))
    stretched = TaskComputedTorque(ToolSpace(), robot, 1.0, 1.0, cycle=1e-3)
    rest = Motion([0.0, 0.1], np.zeros((2, 7)), np.zeros((2, 7)), np.zeros((2, 7)))
    with pytest.raises(DynidentError, match="the task space is singular"):
        machine(robot, stretched).simulate(rest)
