"""Control in work spaces: the fast evaluator against the batch functions, and closed loops against the error they must have."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dynident.control import (
    Cascade,
    CoordinateSpace,
    CurrentLoop,
    MapSpace,
    TaskCascade,
    TaskComputedTorque,
    TaskPID,
    ToolSpace,
    actuator_rows,
    gains_for,
)
from dynident.control.evaluate import Evaluator, rotation_vector
from dynident.drive import Drive, Motor, Transmission
from dynident.errors import DynidentError
from dynident.mechanics import Motion, forward_dynamics, forward_kinematics, frame_motion, inverse_dynamics, jacobian
from dynident.mechanics.inverse_kinematics_damped import pose_error
from dynident.mechanism import Mechanism
from dynident.robots import dualv, rrr

RNG = np.random.default_rng(7)
W = 25.0  # natural frequency of the error [rad/s]


def _rrr() -> Mechanism:
    return rrr.mechanism().with_payload(2.0, (0.02, 0.01, 0.03), np.diag([0.01, 0.02, 0.015]))


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
    return dualv.mechanism()


def machine(mechanism: Mechanism, **motor: float) -> Any:
    drives = [Drive(a.name, Motor(0.1, inertia=1e-5, **motor), Transmission(10.0)) for a in mechanism.actuators]
    return SimpleNamespace(mechanism=mechanism, drives=drives[::-1])  # any order will do


def wish(x: np.ndarray, v: np.ndarray, a: np.ndarray, k: int) -> Any:
    return SimpleNamespace(q=x, v=v, a=a, rho=np.zeros(k), rho_v=np.zeros(k))


def sensed(mechanism: Mechanism, x: np.ndarray, v: np.ndarray) -> Any:
    rho_v = actuator_rows(mechanism, x)[0] @ v
    return SimpleNamespace(x=x, v=v, rho=np.zeros(rho_v.size), rho_v=rho_v, current=np.zeros(rho_v.size))


def follow(
    mechanism: Mechanism, law: Any, reference: Callable[[float], Any], x: np.ndarray, v: np.ndarray, end: float, torque: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return t and x of a closed loop: the command is held, the robot moves by RK4, one step per cycle."""
    law.reset(machine(mechanism), sensed(mechanism, x, v))
    steps = round(end / law.cycle)
    out, h = [x], law.cycle
    for step in range(steps):
        tau = torque(law.update(step * h, reference(step * h), sensed(mechanism, x, v)))

        def rate(x: np.ndarray, v: np.ndarray, tau: np.ndarray = tau) -> tuple[np.ndarray, np.ndarray]:
            return v, forward_dynamics(mechanism, x, v, actuator_rows(mechanism, x)[0].T @ tau)[0]

        k1 = rate(x, v)
        k2 = rate(x + 0.5 * h * k1[0], v + 0.5 * h * k1[1])
        k3 = rate(x + 0.5 * h * k2[0], v + 0.5 * h * k2[1])
        k4 = rate(x + h * k3[0], v + h * k3[1])
        x, v = (y + h / 6.0 * (a + 2.0 * b + 2.0 * c + d) for y, a, b, c, d in zip((x, v), k1, k2, k3, k4, strict=True))
        out.append(x)
    return np.arange(steps + 1) * h, np.array(out)


def critically_damped(t: np.ndarray) -> np.ndarray:
    return np.asarray((1.0 + W * t) * np.exp(-W * t))


@pytest.mark.parametrize("make", [_arm, _rrr, dualv.mechanism], ids=["6R", "RRR", "DualV"])
def test_the_evaluator_is_the_batch_functions(make: Callable[[], Mechanism]) -> None:
    robot = make()
    here = Evaluator(robot)
    link = robot.bodies[-1].name if not robot.loops else next(b.name for b in robot.bodies if "platform" in b.name)
    for _ in range(4):
        size = 0.05 if robot.loops else 1.0
        x, v, a = (size * RNG.normal(size=robot.dof) for _ in range(3))
        here.place(x, v)
        motion = Motion([0.0], x, v, a)
        np.testing.assert_allclose(here.torques(a), inverse_dynamics(robot, motion)[0], rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(here.actuator_rows(), actuator_rows(robot, x)[0], atol=1e-12)
        pose = here.pose(link)
        R, p = forward_kinematics(robot, x, link)
        np.testing.assert_allclose(pose.rotation, R[0], atol=1e-12)
        np.testing.assert_allclose(pose.position, p[0], atol=1e-12)
        np.testing.assert_allclose(pose.jacobian, jacobian(robot, x, link, "world")[0], atol=1e-11)
        twist, bias = frame_motion(robot, Motion([0.0], x, v, np.zeros_like(a)), link)
        for mine, theirs in ((pose.twist, twist[0]), (pose.bias, bias[0])):
            np.testing.assert_allclose(mine, np.concatenate([R[0] @ theirs[:3], R[0] @ theirs[3:]]), atol=1e-11)


def test_rotation_vectors_are_those_of_the_batch_function() -> None:
    from scipy.spatial.transform import Rotation

    vectors = [*RNG.normal(size=(20, 3)), np.array([np.pi, 0.0, 0.0]), np.array([0.0, -1e-9, 0.0]), np.zeros(3)]
    for vector in vectors:
        D = Rotation.from_rotvec(vector).as_matrix()
        batch = pose_error(D[None], np.zeros((1, 3)), np.eye(3)[None], np.zeros((1, 3)))[0, 3:]
        np.testing.assert_allclose(rotation_vector(D), batch, atol=1e-12)
        np.testing.assert_allclose(Rotation.from_rotvec(rotation_vector(D)).as_matrix(), D, atol=1e-12)


def test_computed_torque_of_the_tool_has_the_error_that_was_asked_for(arm: Mechanism) -> None:
    kp, kd = gains_for(W / (2.0 * np.pi), 1.0)
    q0, dq, rate = np.array([0.3, 0.8, -0.5, 0.4, 0.9, -0.3]), np.array([0.4, -0.3, 0.3, 0.5, 0.2, 0.6]), 5.0

    def reference(t: float) -> Any:
        s, c = np.sin(rate * t), np.cos(rate * t)
        return wish(q0 + dq * s * 0.2, dq * c * 0.2 * rate, -dq * s * 0.2 * rate**2, 6)

    law = TaskComputedTorque(ToolSpace(), arm, kp, kd, cycle=1e-3)
    start, first = reference(0.0), np.array([0.02, -0.03, 0.02, 0.03, -0.02, 0.04])
    t, x = follow(arm, law, reference, q0 + first, start.v, 0.25, lambda tau: tau)
    frame = arm.bodies[-1].name
    wanted = np.array([reference(s).q for s in t])
    (Rw, pw), (R, p) = forward_kinematics(arm, wanted, frame), forward_kinematics(arm, x, frame)
    e = pose_error(Rw, pw, R, p)
    # The velocities start as those of the joints, not of the tool: its error starts with a slope, too.
    J = [jacobian(arm, q, frame, "world")[0] for q in (q0, q0 + first)]
    slope = (J[0] - J[1]) @ start.v
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
        _, x = follow(arm, law, lambda t: wish(q0 + speed * t, speed, np.zeros(6), 6), q0, speed, 0.1, lambda tau: tau)
        errors.append(np.abs(x[-1] - q0 - 0.1 * speed).max())
    assert errors[0] < 1e-4
    assert errors[1] > 20.0 * errors[0]


def test_rows_of_the_tool_can_be_chosen() -> None:
    robot = _rrr()
    kp, kd = gains_for(W / (2.0 * np.pi), 1.0)
    law = TaskComputedTorque(ToolSpace(rows=("z", "x", "y")), robot, kp, kd, cycle=1e-3)
    q0, zero = np.array([0.2, -0.6, 1.0]), np.zeros(3)
    t, x = follow(robot, law, lambda t: wish(q0, zero, zero, 3), q0 + np.array([0.02, 0.03, -0.03]), zero, 0.2, lambda tau: tau)
    frame = robot.bodies[-1].name
    p = forward_kinematics(robot, x, frame)[1]
    goal = forward_kinematics(robot, q0, frame)[1]
    np.testing.assert_allclose(goal - p, critically_damped(t)[:, None] * (goal - p[0]), atol=0.02 * np.abs(goal - p[0]).max())


def test_the_platform_of_a_redundant_robot(parallel: Mechanism) -> None:
    kp, kd = gains_for(W / (2.0 * np.pi), 1.0)
    zero, offset = np.zeros(3), np.array([0.01, -0.02, 0.05])
    plain = TaskComputedTorque(CoordinateSpace(), parallel, kp, kd, cycle=1e-3)
    t, x = follow(parallel, plain, lambda t: wish(zero, zero, zero, 4), offset, zero, 0.06, lambda tau: tau)
    np.testing.assert_allclose(x, critically_damped(t)[:, None] * offset, atol=0.02 * 0.05)
    pressed = TaskComputedTorque(CoordinateSpace(), parallel, kp, kd, cycle=1e-3, preload=[3.0, -3.0, 3.0, -3.0])
    taus = []
    for law in (plain, pressed):
        law.reset(machine(parallel), sensed(parallel, offset, zero))
        taus.append(law.update(0.0, wish(zero, zero, zero, 4), sensed(parallel, offset, zero)))
    A = actuator_rows(parallel, offset)[0]
    np.testing.assert_allclose(A.T @ (taus[0] - taus[1]), 0.0, atol=1e-10)
    assert np.linalg.norm(taus[1]) > np.linalg.norm(taus[0]) + 0.1


def test_callables_define_a_work_space(parallel: Mechanism) -> None:
    """Polar coordinates of the platform; their J' v comes from differences and must be that of the closed form."""

    def polar(x: np.ndarray) -> np.ndarray:
        return np.array([np.hypot(x[0] + 1.0, x[1]), np.arctan2(x[1], x[0] + 1.0), x[2]])

    def matrix(x: np.ndarray) -> np.ndarray:
        r, a = polar(x)[:2]
        return np.array([[np.cos(a), np.sin(a), 0.0], [-np.sin(a) / r, np.cos(a) / r, 0.0], [0.0, 0.0, 1.0]])

    bound = MapSpace(polar, matrix).bind(parallel)
    x, v = np.array([0.02, 0.03, 0.1]), np.array([0.5, -0.8, 1.0])
    spot = bound.spot(Evaluator(parallel), x, v)
    r = polar(x)[0]
    dr, da, _ = matrix(x) @ v
    np.testing.assert_allclose(spot.velocity, matrix(x) @ v)
    np.testing.assert_allclose(spot.bias, [r * da**2, -2.0 * dr * da / r, 0.0], atol=1e-7)
    law = TaskComputedTorque(MapSpace(polar, matrix), parallel, 625.0, 50.0, cycle=1e-3)
    zero = np.zeros(3)
    t, path = follow(
        parallel, law, lambda t: wish(zero, zero, zero, 4), np.array([0.0, 0.04, 0.0]), zero, 0.05, lambda tau: tau
    )
    e = np.array([polar(zero) - polar(y) for y in path])
    np.testing.assert_allclose(e, critically_damped(t)[:, None] * e[0], atol=0.02 * np.abs(e[0]).max())


def test_forces_at_the_tool_go_to_the_motors_by_the_transposed_jacobian(arm: Mechanism) -> None:
    q, zero = np.array([0.3, 0.8, -0.5, 0.4, 0.9, -0.3]), np.zeros(6)
    law = TaskPID(ToolSpace(), [100.0, 200.0, 300.0, 10.0, 20.0, 30.0], 5.0, 50.0, cycle=1e-2)
    robot, here, there = machine(arm), sensed(arm, q, np.full(6, 0.1)), wish(q + 0.01, zero, zero, 6)
    law.reset(robot, here)
    frame = arm.bodies[-1].name
    (Rw, pw), (R, p) = forward_kinematics(arm, q + 0.01, frame), forward_kinematics(arm, q, frame)
    e, J = pose_error(Rw, pw, R, p)[0], jacobian(arm, q, frame, "world")[0]
    base = np.array([100.0, 200.0, 300.0, 10.0, 20.0, 30.0]) * e - 5.0 * (J @ np.full(6, 0.1))
    np.testing.assert_allclose(law.update(0.0, there, here), J.T @ (base + 50.0 * 1e-2 * e), atol=1e-10)
    np.testing.assert_allclose(law.update(1e-2, there, here), J.T @ (base + 50.0 * 2e-2 * e), atol=1e-10)
    fed = TaskPID(ToolSpace(), 0.0, 0.0, cycle=1e-2, feedforward=arm)
    fed.reset(robot, here)
    hold = inverse_dynamics(arm, Motion([0.0], q + 0.01, zero, zero))[0]
    np.testing.assert_allclose(fed.update(0.0, there, here), hold, atol=1e-9)


def test_a_pid_with_feedforward_holds_the_platform(parallel: Mechanism) -> None:
    zero = np.zeros(3)
    law = TaskPID(
        CoordinateSpace(), [6e3, 6e3, 60.0], [250.0, 250.0, 2.5], cycle=1e-3, feedforward=parallel, derivative_filter=200.0
    )
    _, x = follow(parallel, law, lambda t: wish(zero, zero, zero, 4), np.array([0.01, 0.0, 0.0]), zero, 0.18, lambda tau: tau)
    assert np.abs(x[-1]).max() < 1e-3


def test_an_actuator_at_its_limit_stops_the_integral(arm: Mechanism) -> None:
    q, zero = np.array([0.3, 0.8, -0.5, 0.4, 0.9, -0.3]), np.zeros(6)
    law = TaskPID(ToolSpace(), 1e5, 0.0, 1e5, cycle=1e-3)
    robot, here, there = machine(arm, current_limit=2.0), sensed(arm, q, zero), wish(q + 0.1, zero, zero, 6)
    law.reset(robot, here)
    first = law.update(0.0, there, here)
    assert np.abs(first).max() == pytest.approx(10.0 * 0.1 * 2.0)
    total = law._sum.copy()
    law.update(1e-3, there, here)
    np.testing.assert_array_equal(law._sum, total)


def test_the_cascade_of_the_work_space_commands_what_the_document_says(arm: Mechanism) -> None:
    q, qv, zero = np.array([0.3, 0.8, -0.5, 0.4, 0.9, -0.3]), np.full(6, 0.2), np.zeros(6)
    loops = Cascade(20.0, 0.3, 4.0, position_cycle=4e-3, velocity_cycle=1e-3, velocity_feedforward=1.0)
    law = TaskCascade(ToolSpace(), loops)
    assert (law.cycle, law.command) == (1e-3, "current")
    here, there = sensed(arm, q, zero), wish(q + 0.01, qv, zero, 6)
    law.reset(machine(arm), here)
    first = law.update(0.0, there, here)
    frame = arm.bodies[-1].name
    (Rw, pw), (R, p) = forward_kinematics(arm, q + 0.01, frame), forward_kinematics(arm, q, frame)
    Jw, J = (jacobian(arm, x, frame, "world")[0] for x in (q + 0.01, q))
    omega = 10.0 * np.linalg.solve(J, 20.0 * pose_error(Rw, pw, R, p)[0] + Jw @ qv)
    np.testing.assert_allclose(first, 0.3 * omega + 4.0 * 1e-3 * omega, rtol=1e-9)
    # The next three ticks keep the wanted speed although the place changes; only the PI moves.
    moved = sensed(arm, q + 0.005, zero)
    np.testing.assert_allclose(law.update(1e-3, there, moved), 0.3 * omega + 4.0 * 2e-3 * omega, rtol=1e-9)
    law.update(2e-3, there, moved)
    law.update(3e-3, there, moved)
    assert np.abs(law.update(4e-3, there, moved) - (0.3 + 4.0 * 5e-3) * omega).max() > 1e-3


def test_a_model_takes_the_load_off_the_integral(arm: Mechanism) -> None:
    q, zero = np.array([0.3, 0.8, -0.5, 0.4, 0.9, -0.3]), np.zeros(6)
    loops = Cascade(20.0, 0.3, 4.0, position_cycle=4e-3, velocity_cycle=1e-3, torque_feedforward=arm)
    law = TaskCascade(ToolSpace(), loops)
    here = sensed(arm, q, zero)
    law.reset(machine(arm), here)
    hold = inverse_dynamics(arm, Motion([0.0], q, zero, zero))[0]
    np.testing.assert_allclose(law.update(0.0, wish(q, zero, zero, 6), here), hold / (10.0 * 0.1), atol=1e-9)


def test_a_current_at_its_limit_stops_the_integral(arm: Mechanism) -> None:
    q, zero = np.array([0.3, 0.8, -0.5, 0.4, 0.9, -0.3]), np.zeros(6)
    here, far, back = sensed(arm, q, zero), wish(q + 0.2, zero, zero, 6), wish(q - 0.02, zero, zero, 6)
    first = []
    for free in (True, False):
        law = TaskCascade(ToolSpace(), Cascade(20.0, 0.3, 4.0, position_cycle=1e-3, velocity_cycle=1e-3, anti_windup=free))
        law.reset(machine(arm, current_limit=2.0), here)
        for k in range(200):
            assert np.abs(law.update(k * 1e-3, far, here)).max() <= 2.0
        first.append(law.update(0.2, back, here))
    assert np.all(first[0] < 0.0), "without wind-up the current turns at once"
    assert np.any(first[1] >= 2.0)


def test_the_cascade_of_the_work_space_reaches_its_place(parallel: Mechanism) -> None:
    zero = np.zeros(3)
    loops = Cascade(20.0, 8.0, 100.0, position_cycle=2e-3, velocity_cycle=1e-3, speed_limit=5.0)
    law = TaskCascade(CoordinateSpace(), loops)
    t, x = follow(parallel, law, lambda t: wish(zero, zero, zero, 4), np.array([0.01, 0.02, 0.0]), zero, 0.16, lambda i: i)
    assert np.abs(x[-1]).max() < 2e-3
    np.testing.assert_allclose(x[t > 0.1, 1], 0.02 * np.exp(-20.0 * t[t > 0.1]), atol=1e-3)


def test_a_current_loop_makes_voltages_at_its_own_cycle(arm: Mechanism) -> None:
    loops = Cascade(20.0, 0.3, 4.0, position_cycle=4e-3, velocity_cycle=1e-3, current=CurrentLoop(2.0, 100.0, 2.5e-4))
    law = TaskCascade(ToolSpace(), loops)
    assert (law.cycle, law.command) == (2.5e-4, "voltage")
    q, zero = np.array([0.3, 0.8, -0.5, 0.4, 0.9, -0.3]), np.zeros(6)
    here, there = sensed(arm, q, zero), wish(q + 0.001, zero, zero, 6)
    law.reset(machine(arm), here)
    ideal = TaskCascade(ToolSpace(), Cascade(20.0, 0.3, 4.0, position_cycle=4e-3, velocity_cycle=1e-3))
    ideal.reset(machine(arm), here)
    amps = ideal.update(0.0, there, here)
    for k in range(4):
        np.testing.assert_allclose(law.update(k * 2.5e-4, there, here), amps * (2.0 + 100.0 * 2.5e-4 * (k + 1)), rtol=1e-9)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda arm: ToolSpace(rows=("x", "w")), r"rows are \('x', 'w'\)"),
        (lambda arm: ToolSpace("nowhere").bind(arm), "has no link 'nowhere'"),
        (lambda arm: ToolSpace(arm.root).bind(arm), "does not move"),
        (lambda arm: MapSpace(1.0, 2.0), "position is a float"),
        (
            lambda arm: MapSpace(lambda x: x[:2], lambda x: np.eye(6)).bind(arm),
            r"position gives shape \(2,\) and jacobian \(6, 6\)",
        ),
        (lambda arm: TaskPID(ToolSpace(), -1.0, 1.0, cycle=1e-3), "task PID: kp = -1.0"),
        (lambda arm: TaskComputedTorque(ToolSpace(), "arm", 1.0, 1.0, cycle=1e-3), "model is a str"),
        (lambda arm: TaskCascade(ToolSpace(), None), "loops is a NoneType"),
        (
            lambda arm: TaskComputedTorque(ToolSpace(), _rrr(), 1.0, 1.0, cycle=1e-3).reset(machine(_rrr()), None),
            "the work space has 6 rows but robot .* has 3 coordinates; choose at most",
        ),
        (
            lambda arm: TaskComputedTorque(ToolSpace(), arm, [1.0, 2.0], 1.0, cycle=1e-3).reset(machine(arm), None),
            r"gain has shape \(2,\); give one number, or 6",
        ),
        (
            lambda arm: TaskComputedTorque(ToolSpace(), rrr.mechanism(), 1.0, 1.0, cycle=1e-3).reset(machine(arm), None),
            "the model has coordinates",
        ),
        (
            lambda arm: TaskPID(ToolSpace(), 1.0, 1.0, cycle=1e-3).reset(SimpleNamespace(mechanism=arm, drives=[]), None),
            "actuator 'joint_1' of robot .* has no drive",
        ),
    ],
)
def test_bad_input_is_refused(arm: Mechanism, call: Any, sentence: str) -> None:
    with pytest.raises(DynidentError, match=sentence):
        call(arm)


def test_a_singular_place_is_said_in_one_sentence() -> None:
    robot = Mechanism.from_dh([(0.5, 0, 0, 0), (0.5, 0, 0, 0)]).with_payload(1.0)
    law = TaskComputedTorque(ToolSpace(rows=("x", "y")), robot, 1.0, 1.0, cycle=1e-3)
    zero = np.zeros(2)
    here = sensed(robot, zero, zero)
    law.reset(machine(robot), here)
    with pytest.raises(DynidentError, match=r"the work space does not determine the coordinates .*singularity"):
        law.update(0.0, wish(zero, zero, zero, 2), here)
