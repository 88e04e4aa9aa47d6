"""Control in work spaces: first commands against closed forms, and closed loops against the error they must have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from small_robots import arm3, platform

from dynident.control import (
    Cascade,
    CoordinateSpace,
    CurrentLoop,
    TaskCascade,
    TaskComputedTorque,
    TaskPID,
    ToolSpace,
    gains_for,
)
from dynident.control.feedforward import actuator_rows
from dynident.control.task import rotation_vector
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.errors import DynidentError, SimulationError, SimulationWarning
from dynident.graph import Graph
from dynident.mechanics import Motion, forward_kinematics, inverse_dynamics, jacobian
from dynident.mechanics.inverse_kinematics_damped import pose_error
from dynident.mechanism import Mechanism
from dynident.simulate import VirtualRobot

RNG = np.random.default_rng(7)
REST = Motion([0.0, 0.1], np.zeros((2, 6)), np.zeros((2, 6)), np.zeros((2, 6)))
W = 25.0  # natural frequency of the error [rad/s]


def _arm() -> Mechanism:
    """A 6R arm with a payload on its tool and rotor inertias."""
    rows = [
        (0, np.pi / 2, 0.3, 0),
        (0.5, 0, 0, 0),
        (0.1, np.pi / 2, 0, 0),
        (0, -np.pi / 2, 0.4, 0),
        (0, np.pi / 2, 0, 0),
        (0, 0, 0.1, 0),
    ]
    arm = Mechanism.from_dh(rows).with_payload(2.0, (0.01, 0.02, 0.05), np.diag([0.01, 0.02, 0.015])).with_terms(("ia", "fv"))
    values = arm.parameters.values.copy()
    for i, name in enumerate(arm.parameters.names):
        if name.startswith(("ia_", "fv_")):
            values[i] = 0.2
    return arm.with_parameters(arm.parameters.replace(dict(zip(arm.parameters.names, values, strict=True))))


@pytest.fixture(scope="module")
def arm() -> Mechanism:
    return _arm()


@pytest.fixture(scope="module")
def parallel() -> Mechanism:
    return platform()


def machine(mechanism: Mechanism, law: Any, ratio: float = 1.0, step: float = 1e-3, **motor: float) -> VirtualRobot:
    """Return a machine whose motors give K_t ratio = 1 N m per ampere and whose sensors are exact."""
    gear, constant = Transmission(ratio), motor.pop("constant", 1.0 / ratio)
    drives = [Drive(a.name, Motor(constant, **motor), gear, encoder=Encoder(velocity="exact")) for a in mechanism.actuators]
    return VirtualRobot(mechanism, drives, law, step=step)


def moving(q: np.ndarray, v: np.ndarray, a: np.ndarray, end: float, cycle: float = 1e-3) -> Motion:
    """Return a reference that begins with q, v and a."""
    t = np.arange(round(end / cycle) + 1)[:, None] * cycle
    return Motion(t[:, 0], q + v * t + 0.5 * a * t**2, v + a * t, np.tile(a, (len(t), 1)))


def commands(robot: VirtualRobot, motion: Motion, x: np.ndarray, v: np.ndarray, ticks: int = 1, **options: Any) -> np.ndarray:
    """Return the torques behind the gears that a law asks for at its first ticks."""
    run = robot.simulate(motion, start={"q": x, "velocity": v}, duration=max(ticks, 5) * robot.controller.cycle, **options)
    return run.truth.motor_torque[:ticks] * np.array([drive.transmission.ratio for drive in robot.drives])


def follow(
    mechanism: Mechanism, law: Any, reference: Callable[[float], Any], x: np.ndarray, v: np.ndarray, end: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return t and x of a closed loop, one step per tick."""
    t = np.arange(round(end / law.cycle) + 1) * law.cycle
    motion = Motion(t, *(np.array([part[i] for part in map(reference, t)]) for i in range(3)))
    run = machine(mechanism, law).simulate(motion, start={"q": x, "velocity": v}, log_cycle=1e-3)
    return run.truth.t, run.truth.motion.q


def critically_damped(t: np.ndarray) -> np.ndarray:
    return np.asarray((1.0 + W * t) * np.exp(-W * t))


def test_rotation_vectors_are_those_of_the_batch_function() -> None:
    from scipy.spatial.transform import Rotation

    vectors = [*RNG.normal(size=(20, 3)), np.array([np.pi, 0.0, 0.0]), np.array([0.0, -1e-9, 0.0]), np.zeros(3)]
    for vector in vectors:
        D = Rotation.from_rotvec(vector).as_matrix()
        batch = pose_error(D[None], np.zeros((1, 3)), np.eye(3)[None], np.zeros((1, 3)))[0, 3:]
        graph = Graph()
        found = np.array([node.value for node in rotation_vector([[graph.const(float(y)) for y in row] for row in D])])
        np.testing.assert_allclose(found, batch, atol=1e-12)
        np.testing.assert_allclose(Rotation.from_rotvec(found).as_matrix(), D, atol=1e-12)


def test_computed_torque_of_the_tool_has_the_error_that_was_asked_for(arm: Mechanism) -> None:
    kp, kd = gains_for(W / (2.0 * np.pi), 1.0)
    q0, dq, rate = np.array([0.3, 0.8, -0.5, 0.4, 0.9, -0.3]), np.array([0.4, -0.3, 0.3, 0.5, 0.2, 0.6]), 5.0

    def reference(t: float) -> Any:
        s, c = np.sin(rate * t), np.cos(rate * t)
        return q0 + dq * s * 0.2, dq * c * 0.2 * rate, -dq * s * 0.2 * rate**2

    law = TaskComputedTorque(ToolSpace(), arm, kp, kd, cycle=1e-3)
    start, first = reference(0.0), np.array([0.02, -0.03, 0.02, 0.03, -0.02, 0.04])
    t, x = follow(arm, law, reference, q0 + first, start[1], 0.25)
    frame = arm.bodies[-1].name
    wanted = np.array([reference(s)[0] for s in t])
    (Rw, pw), (R, p) = forward_kinematics(arm, wanted, frame), forward_kinematics(arm, x, frame)
    e = pose_error(Rw, pw, R, p)
    # The velocities start as those of the joints, not of the tool: its error starts with a slope, too.
    J = [jacobian(arm, q, frame, "world")[0] for q in (q0, q0 + first)]
    slope = (J[0] - J[1]) @ start[1]
    model = critically_damped(t)[:, None] * e[0] + (t * np.exp(-W * t))[:, None] * slope
    np.testing.assert_allclose(e[:, :3], model[:, :3], atol=0.02 * np.abs(e[0, :3]).max())
    # The derivative of a rotation vector is the difference of the angular velocities to first order in the error only.
    np.testing.assert_allclose(e[:, 3:], model[:, 3:], atol=0.04 * np.abs(e[0, 3:]).max())


def test_computed_torque_needs_the_rotors(arm: Mechanism) -> None:
    """A model without actuator inertia and friction leaves a following error."""
    poor = Mechanism(
        **{name: getattr(arm, name) for name in ("name", "bodies", "joints", "loops", "couplings", "actuators", "gravity")}
    ).with_terms(())
    kp, kd = gains_for(W / (2.0 * np.pi), 1.0)
    q0, speed = np.array([0.3, 0.8, -0.5, 0.4, 0.9, -0.3]), np.full(6, 0.5)
    errors = []
    for model in (arm, poor):
        law = TaskComputedTorque(ToolSpace(), model, kp, kd, cycle=1e-3)
        _, x = follow(arm, law, lambda t: (q0 + speed * t, speed, np.zeros(6)), q0, speed, 0.1)
        errors.append(np.abs(x[-1] - q0 - 0.1 * speed).max())
    assert errors[0] < 1e-4
    assert errors[1] > 20.0 * errors[0]


def test_rows_of_the_tool_can_be_chosen() -> None:
    robot = arm3()
    kp, kd = gains_for(W / (2.0 * np.pi), 1.0)
    law = TaskComputedTorque(ToolSpace(rows=("z", "x", "y")), robot, kp, kd, cycle=1e-3)
    q0, zero = np.array([0.2, -0.6, 1.0]), np.zeros(3)
    t, x = follow(robot, law, lambda t: (q0, zero, zero), q0 + np.array([0.02, 0.03, -0.03]), zero, 0.2)
    frame = robot.bodies[-1].name
    p = forward_kinematics(robot, x, frame)[1]
    goal = forward_kinematics(robot, q0, frame)[1]
    np.testing.assert_allclose(goal - p, critically_damped(t)[:, None] * (goal - p[0]), atol=0.02 * np.abs(goal - p[0]).max())


def test_the_platform_of_a_redundant_robot(parallel: Mechanism) -> None:
    kp, kd = gains_for(W / (2.0 * np.pi), 1.0)
    zero, offset = np.zeros(3), np.array([0.01, -0.02, 0.05])
    plain = TaskComputedTorque(CoordinateSpace(), parallel, kp, kd, cycle=1e-3)
    t, x = follow(parallel, plain, lambda t: (zero, zero, zero), offset, zero, 0.06)
    np.testing.assert_allclose(x, critically_damped(t)[:, None] * offset, atol=0.02 * 0.05)
    pressed = TaskComputedTorque(CoordinateSpace(), parallel, kp, kd, cycle=1e-3, preload=[3.0, -3.0, 3.0, -3.0])
    still = moving(zero, zero, zero, 0.01)
    taus = [commands(machine(parallel, law), still, offset, zero)[0] for law in (plain, pressed)]
    A = actuator_rows(parallel, offset)[0]
    np.testing.assert_allclose(A.T @ (taus[0] - taus[1]), 0.0, atol=1e-10)
    assert np.linalg.norm(taus[1]) > np.linalg.norm(taus[0]) + 0.1


@pytest.mark.parametrize("cycle", [1e-2, 2e-2])
def test_forces_at_the_tool_go_to_the_motors_by_the_transposed_jacobian(arm: Mechanism, cycle: float) -> None:
    q, zero, speed = np.array([0.3, 0.8, -0.5, 0.4, 0.9, -0.3]), np.zeros(6), np.full(6, 0.1)
    stiff = np.array([100.0, 200.0, 300.0, 10.0, 20.0, 30.0])
    law, still = TaskPID(ToolSpace(), stiff, 5.0, 50.0, cycle=cycle), moving(q + 0.01, zero, zero, 0.1)
    frame = arm.bodies[-1].name
    (Rw, pw), (R, p) = forward_kinematics(arm, q + 0.01, frame), forward_kinematics(arm, q, frame)
    e, J = pose_error(Rw, pw, R, p)[0], jacobian(arm, q, frame, "world")[0]
    wanted = J.T @ (stiff * e - 5.0 * (J @ speed) + 50.0 * cycle * e)
    np.testing.assert_allclose(commands(machine(arm, law, 10.0), still, q, speed)[0], wanted, atol=1e-10)
    fed = TaskPID(ToolSpace(), 0.0, 0.0, cycle=cycle, feedforward=arm)
    hold = inverse_dynamics(arm, Motion([0.0], q + 0.01, zero, zero))[0]
    np.testing.assert_allclose(commands(machine(arm, fed, 10.0), still, q, speed)[0], hold, atol=1e-9)


def test_a_pid_with_feedforward_holds_the_platform(parallel: Mechanism) -> None:
    zero = np.zeros(3)
    law = TaskPID(
        CoordinateSpace(), [6e3, 6e3, 60.0], [250.0, 250.0, 2.5], cycle=1e-3, feedforward=parallel, derivative_filter=200.0
    )
    _, x = follow(parallel, law, lambda t: (zero, zero, zero), np.array([0.01, 0.0, 0.0]), zero, 0.18)
    assert np.abs(x[-1]).max() < 1e-3


def test_an_actuator_at_its_limit_stops_the_integral(arm: Mechanism) -> None:
    q, zero = np.array([0.3, 0.8, -0.5, 0.4, 0.9, -0.3]), np.zeros(6)
    law = TaskPID(ToolSpace(), 1e5, 0.0, 1e5, cycle=1e-3)
    weak = machine(arm, law, 10.0, current_limit=2.0, inertia=1e4)  # nothing moves
    with pytest.warns(SimulationWarning, match="at its current limit"):
        run = weak.simulate(moving(q + 0.1, zero, zero, 0.01), start={"q": q})
    assert np.abs(run.truth.motor_torque).max() == pytest.approx(0.1 * 2.0)
    assert run.end is not None
    np.testing.assert_array_equal(run.end.state["integral"], 0.0)


def test_the_cascade_of_the_work_space_commands_what_the_document_says(arm: Mechanism) -> None:
    q, qv, zero = np.array([0.3, 0.8, -0.5, 0.4, 0.9, -0.3]), np.full(6, 0.2), np.zeros(6)
    loops = Cascade(20.0, 0.3, 4.0, position_cycle=4e-3, velocity_cycle=1e-3, velocity_feedforward=1.0)
    robot = machine(arm, TaskCascade(ToolSpace(), loops), 10.0, inertia=1e6)  # nothing moves
    found = commands(robot, moving(q + 0.01, qv, zero, 0.02), q, zero, 5, log_cycle=1e-3)
    frame = arm.bodies[-1].name
    (Rw, pw), (R, p) = forward_kinematics(arm, q + 0.01, frame), forward_kinematics(arm, q, frame)
    Jw, J = (jacobian(arm, x, frame, "world")[0] for x in (q + 0.01, q))
    omega = 10.0 * np.linalg.solve(J, 20.0 * pose_error(Rw, pw, R, p)[0] + Jw @ qv)
    # Four ticks keep the wanted speed although the reference goes on; only the PI moves.
    for tick in range(4):
        np.testing.assert_allclose(found[tick], (0.3 + 4.0 * 1e-3 * (tick + 1)) * omega, rtol=1e-6)
    assert np.abs(found[4] - (0.3 + 4.0 * 5e-3) * omega).max() > 1e-3


def test_a_model_takes_the_load_off_the_integral(arm: Mechanism) -> None:
    q, zero = np.array([0.3, 0.8, -0.5, 0.4, 0.9, -0.3]), np.zeros(6)
    loops = Cascade(20.0, 0.3, 4.0, position_cycle=4e-3, velocity_cycle=1e-3, torque_feedforward=arm)
    hold = inverse_dynamics(arm, Motion([0.0], q, zero, zero))[0]
    found = commands(machine(arm, TaskCascade(ToolSpace(), loops), 10.0), moving(q, zero, zero, 0.02), q, zero)[0]
    np.testing.assert_allclose(found, hold, atol=1e-9)


def test_a_current_at_its_limit_stops_the_integral(arm: Mechanism) -> None:
    q, zero = np.array([0.3, 0.8, -0.5, 0.4, 0.9, -0.3]), np.zeros((202, 6))
    motion = Motion(np.arange(202) * 1e-3, np.where(np.arange(202)[:, None] < 200, q + 0.2, q - 0.02), zero, zero)
    last = []
    for waits in (True, False):
        law = TaskCascade(ToolSpace(), Cascade(20.0, 0.3, 4.0, position_cycle=1e-3, velocity_cycle=1e-3, anti_windup=waits))
        with pytest.warns(SimulationWarning, match="at its current limit"):
            run = machine(arm, law, 10.0, current_limit=2.0, inertia=1e6).simulate(motion, start={"q": q}, log_cycle=1e-3)
        assert np.abs(run.truth.current).max() <= 2.0
        last.append(run.truth.current[200])
    assert np.all(last[0] < 0.0), "without wind-up the current turns at once"
    assert np.any(last[1] >= 2.0)


def test_the_cascade_of_the_work_space_reaches_its_place(parallel: Mechanism) -> None:
    zero = np.zeros(3)
    loops = Cascade(20.0, 80.0, 1000.0, position_cycle=2e-3, velocity_cycle=1e-3, speed_limit=5.0)
    law = TaskCascade(CoordinateSpace(), loops)
    t, x = follow(parallel, law, lambda t: (zero, zero, zero), np.array([0.01, 0.02, 0.0]), zero, 0.16)
    assert np.abs(x[-1]).max() < 2e-3
    np.testing.assert_allclose(x[t > 0.1, 1], 0.02 * np.exp(-20.0 * t[t > 0.1]), atol=1e-3)


def test_a_current_loop_makes_voltages_at_its_own_cycle(arm: Mechanism) -> None:
    q, zero = np.array([0.3, 0.8, -0.5, 0.4, 0.9, -0.3]), np.zeros(6)
    ideal = Cascade(20.0, 0.3, 4.0, position_cycle=4e-3, velocity_cycle=1e-3)
    still, loops = moving(q + 0.001, zero, zero, 0.02), replace(ideal, current=CurrentLoop(2.0, 100.0, 2.5e-4))
    amps = commands(machine(arm, TaskCascade(ToolSpace(), ideal), 10.0, inertia=1e6), still, q, zero)[0]
    idle = {"inertia": 1e6, "resistance": 1.0, "inductance": 1e9}  # no current flows, nothing moves
    robot = machine(arm, TaskCascade(ToolSpace(), loops), 10.0, step=2.5e-4, **idle)
    run = robot.simulate(still, start={"q": q}, duration=4e-3, log_cycle=2.5e-4)
    for k in range(4):
        np.testing.assert_allclose(run.truth.voltage[k], amps * (2.0 + 100.0 * 2.5e-4 * (k + 1)), rtol=1e-6)


def test_bad_input_is_refused(arm: Mechanism, subtests: pytest.Subtests) -> None:
    for call, sentence in [
        (lambda arm: ToolSpace(rows=("x", "w")), r"rows are \('x', 'w'\)"),
        (lambda arm: ToolSpace("nowhere").bind(arm), "has no link 'nowhere'"),
        (lambda arm: ToolSpace(arm.root).bind(arm), "does not move"),
        (lambda arm: TaskPID(ToolSpace(), -1.0, 1.0, cycle=1e-3), "task PID: kp = -1.0"),
        (lambda arm: TaskComputedTorque(ToolSpace(), "arm", 1.0, 1.0, cycle=1e-3), "model is a str"),
        (lambda arm: TaskCascade(ToolSpace(), None), "loops is a NoneType"),
        (
            lambda arm: machine(arm3(), TaskComputedTorque(ToolSpace(), arm3(), 1.0, 1.0, cycle=1e-3)),
            "the task space has 6 rows but robot .* has 3 coordinates; choose fewer",
        ),
        (
            lambda arm: machine(arm, TaskComputedTorque(ToolSpace(), arm, [1.0, 2.0], 1.0, cycle=1e-3)).simulate(REST),
            r"task computed torque: gain has shape \(2,\); give one number, or 6",
        ),
        (
            lambda arm: machine(arm, TaskComputedTorque(ToolSpace(rows="xyz"), arm3(), 1.0, 1.0, cycle=1e-3)).simulate(REST),
            "its model .* has the coordinates",
        ),
    ]:
        with subtests.test(str(sentence)), pytest.raises(DynidentError, match=sentence):
            call(arm)


def test_a_singular_place_is_said_in_one_sentence() -> None:
    robot = Mechanism.from_dh([(0.5, 0, 0, 0), (0.5, 0, 0, 0)]).with_payload(1.0)
    law, zero = TaskComputedTorque(ToolSpace(rows=("x", "y")), robot, 1.0, 1.0, cycle=1e-3), np.zeros(2)
    with pytest.raises(SimulationError, match=r"the task space is singular"):
        machine(robot, law).simulate(moving(zero, zero, zero, 0.1))
