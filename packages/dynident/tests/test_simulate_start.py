"""Starts of a virtual robot: joints, motors and poses give the same state; what cannot be is refused in one sentence."""

from __future__ import annotations

import numpy as np
import pytest
from small_robots import arm3, five_bar, platform

import dynident as di
from dynident.errors import SimulationError
from dynident.mechanics import actuator_jacobian, close_motion, forward_kinematics, jacobian
from dynident.simulate.reference import start_state


def arm() -> di.Mechanism:
    """Three axes of which the last two are parallel, with 2 kg at the tool."""
    rows = [(0.0, np.pi / 2, 0.3, 0.0), (0.4, 0.0, 0.0, 0.0), (0.35, 0.0, 0.0, 0.0)]
    return di.Mechanism.from_dh(rows, name="arm").with_payload(2.0, com=(-0.1, 0.0, 0.0))


FIRST = (np.array([0.3, 0.5, -0.9]), np.array([0.1, 0.0, -0.2]))


def test_without_a_start_the_run_begins_on_the_reference() -> None:
    x, nu = start_state(arm(), None, FIRST)
    assert np.array_equal(x, FIRST[0])
    assert np.array_equal(nu, FIRST[1])


def test_joint_starts_take_vectors_and_names() -> None:
    x, nu = start_state(arm(), {"q": [0.1, 0.2, 0.3], "velocity": [1.0, 2.0, 3.0]}, FIRST)
    assert x.tolist() == [0.1, 0.2, 0.3]
    assert nu.tolist() == [1.0, 2.0, 3.0]
    name = arm().coordinate_names[1]
    x, nu = start_state(arm(), {"q": {name: 0.7}}, FIRST)
    assert x.tolist() == [0.3, 0.7, -0.9]
    assert not nu.any()


def test_a_pose_is_reached_on_the_branch_nearest_to_the_reference() -> None:
    robot = arm()
    frame = "payload"
    _, p = forward_kinematics(robot, FIRST[0], frame)
    twist = jacobian(robot, FIRST[0], frame, "world")[0] @ np.array([0.3, -0.2, 0.5])
    x, nu = start_state(robot, {"pose": p[0], "frame": frame, "velocity": twist[:3]}, (FIRST[0] + 0.05, FIRST[1]))
    assert np.allclose(x, FIRST[0], atol=1e-9)
    assert np.allclose(nu, [0.3, -0.2, 0.5], atol=1e-8)
    other, _ = start_state(robot, {"pose": (None, p[0])}, (np.array([0.3, 0.0, 0.9]), FIRST[1]))
    assert np.allclose(forward_kinematics(robot, other, frame)[1], p, atol=1e-9)
    assert other[2] > 0.0  # the other elbow


def test_a_pose_of_a_six_axis_arm_needs_no_closed_form() -> None:
    rows = [
        (0.0, np.pi / 2, 0.1, 0.0),
        (0.4, 0.0, 0.0, 0.0),
        (0.4, 0.0, 0.0, 0.0),
        (0.0, np.pi / 2, 0.1, 0.0),
        (0.0, -np.pi / 2, 0.1, 0.0),
        (0.0, 0.0, 0.1, 0.0),
    ]
    robot = di.Mechanism.from_dh(rows)
    q = np.array([0.1, -0.7, 0.9, 0.4, 0.5, 0.6])
    frame = robot.bodies[-1].name
    R, p = forward_kinematics(robot, q, frame)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = R[0], p[0]
    x, _ = start_state(robot, {"pose": pose}, (q + 0.02, np.zeros(6)))
    reached = forward_kinematics(robot, x, frame)
    assert np.allclose(reached[0], R, atol=1e-8)
    assert np.allclose(reached[1], p, atol=1e-8)


def test_actuators_of_a_robot_with_loops_give_its_coordinates() -> None:
    robot = five_bar("platform")
    x0, nu0 = np.array([0.05, 0.95]), np.array([0.2, -0.1])
    closed = close_motion(robot, di.Motion([0.0], x0, nu0, np.zeros(2)))
    N, n0 = robot.actuator_matrix
    rho, speed = N @ closed.q[0] + n0, N @ closed.v[0]
    x, nu = start_state(robot, {"actuators": rho, "velocity": speed}, (x0, nu0))
    assert np.allclose(x, x0, atol=1e-9)
    assert np.allclose(nu, nu0, atol=1e-9)


def test_all_tree_coordinates_may_be_given_if_they_close() -> None:
    robot = five_bar("platform")
    x0, nu0 = np.array([0.05, 0.95]), np.array([0.2, -0.1])
    closed = close_motion(robot, di.Motion([0.0], x0, nu0, np.zeros(2)))
    x, nu = start_state(robot, {"q": closed.q[0], "velocity": closed.v[0]}, (x0, nu0))
    assert np.allclose(x, x0)
    assert np.allclose(nu, nu0)
    wrong = closed.q[0].copy()
    wrong[2] += 0.2
    with pytest.raises(SimulationError, match="the loops close with it at"):
        start_state(robot, {"q": wrong}, (x0, nu0))
    fast = closed.v[0].copy()
    fast[3] += 1.0
    with pytest.raises(SimulationError, match="the loops allow only"):
        start_state(robot, {"q": closed.q[0], "velocity": fast}, (x0, nu0))


def test_redundant_motors_must_agree() -> None:
    robot = platform()
    x0 = np.array([0.02, -0.01, 0.1])
    closed = close_motion(robot, di.Motion([0.0], x0, np.zeros(3), np.zeros(3)))
    rho = robot.actuator_matrix[0] @ closed.q[0]
    x, _ = start_state(robot, {"actuators": rho}, (x0, np.zeros(3)))
    assert np.allclose(x, x0, atol=1e-8)
    off = rho.copy()
    off[1] += 0.05
    with pytest.raises(SimulationError, match="can only be at"):
        start_state(robot, {"actuators": off}, (x0, np.zeros(3)))
    speeds = actuator_jacobian(robot, x0)[0] @ np.array([0.1, 0.2, 0.3])
    _, nu = start_state(robot, {"actuators": rho, "velocity": speeds}, (x0, np.zeros(3)))
    assert np.allclose(nu, [0.1, 0.2, 0.3], atol=1e-6)
    speeds[0] += 1.0
    with pytest.raises(SimulationError, match="the loops allow only"):
        start_state(robot, {"actuators": rho, "velocity": speeds}, (x0, np.zeros(3)))


def test_the_pose_of_a_platform_is_solved_through_the_loops() -> None:
    robot = five_bar()
    home = five_bar().closure.home
    q0 = home[robot.closure.independent]
    p = forward_kinematics(robot, q0, "platform")[1][0]
    target = p + np.array([0.03, -0.02, 0.0])
    x, _ = start_state(robot, {"pose": target, "frame": "platform"}, (q0, np.zeros(2)))
    assert np.allclose(forward_kinematics(robot, x, "platform")[1][0], target, atol=1e-8)


def test_impossible_starts_are_refused_in_one_sentence(subtests: pytest.Subtests) -> None:
    for start, sentence in [
        ([0.0, 0.0, 0.0], "give a mapping"),
        ({}, "give one of q, actuators, pose"),
        ({"q": [0, 0, 0], "pose": [0, 0, 0]}, "give one of"),
        ({"q": [0, 0, 0], "speed": [0, 0, 0]}, "give one of"),
        ({"q": [0.0, 0.0]}, "give 3 numbers"),
        ({"q": [0.0, np.nan, 0.0]}, "must be finite"),
        ({"q": {"nobody": 1.0}}, "coordinates are"),
        ({"q": [0, 0, 0], "velocity": [1.0]}, "velocity has shape"),
        ({"q": [0, 0, 0], "frame": "payload"}, "without a pose"),
        ({"actuators": [0.0, 0.0]}, "give 3 numbers"),
        ({"pose": [5.0, 0.0, 0.0]}, "outside the reach"),
        ({"pose": np.eye(3)}, "give a position"),
        ({"pose": [0.3, 0.1, 0.4], "velocity": [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]}, "cannot move"),
    ]:
        with subtests.test(str(sentence)):
            with pytest.raises(SimulationError, match=sentence) as caught:
                start_state(arm(), start, FIRST)  # type: ignore[arg-type]
            assert "\n" not in str(caught.value)


def test_starts_outside_the_limits_or_where_loops_cannot_close_are_refused() -> None:
    robot = five_bar("platform")
    with pytest.raises(SimulationError, match="cannot close"):
        start_state(robot, {"q": [0.0, 9.0]}, (np.zeros(2), np.zeros(2)))
    with pytest.raises(SimulationError, match="cannot close"):
        start_state(robot, None, (np.array([0.0, 9.0]), np.zeros(2)))
    limited = arm3()
    from dataclasses import replace

    joints = tuple(replace(j, limits=di.Limits(lower=-1.0, upper=1.0)) if j.kind == "revolute" else j for j in limited.joints)
    with pytest.raises(SimulationError, match="outside its limits"):
        start_state(replace(limited, joints=joints), {"q": [2.0, 0.0, 0.0]}, (np.zeros(3), np.zeros(3)))
