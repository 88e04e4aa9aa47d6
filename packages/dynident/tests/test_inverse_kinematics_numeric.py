"""Numeric inverse kinematics: it reaches what can be reached, keeps limits, follows paths, and says when it fails."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynident as di
from dynident.mechanics import inverse_kinematics, inverse_kinematics_numeric
from dynident.mechanics.inverse_kinematics_damped import pose_error

pi = np.pi
UR10 = di.Mechanism.from_dh(
    [
        (0, pi / 2, 0.1273, 0),
        (-0.612, 0, 0, 0),
        (-0.5723, 0, 0, 0),
        (0, pi / 2, 0.1639, 0),
        (0, -pi / 2, 0.1157, 0),
        (0, 0, 0.0922, 0),
    ],
    name="ur10",
)
RRR = di.Mechanism.from_dh([(0, pi / 2, 0.56, 0), (0.2, 0, 0.169, 0), (0.415, 0, 0.09, 0)])


@pytest.mark.parametrize("robot", [UR10, RRR, di.Mechanism.from_dh([(0.1, 1, 0.2, 0)] * 7)], ids=["ur10", "rrr", "7R"])
def test_it_reaches_reachable_poses(robot: di.Mechanism) -> None:
    frame = f"link_{robot.dof}"
    R, p = di.forward_kinematics(robot, np.random.default_rng(0).uniform(-2, 2, (40, robot.dof)), frame)
    wanted = R if robot.dof > 3 else None
    q = inverse_kinematics_numeric(robot, wanted, p)
    R2, p2 = di.forward_kinematics(robot, q, frame)
    assert np.abs(p2 - p).max() < 1e-9
    assert robot.dof == 3 or np.abs(R2 - R).max() < 1e-9


def test_it_finds_a_branch_of_the_closed_form() -> None:
    p = [[0.4, 0.2, 0.5], [-0.3, 0.3, 0.8]]
    q = inverse_kinematics_numeric(RRR, None, p)
    branches = inverse_kinematics(RRR, None, p)
    assert np.abs((branches - q[:, None] + pi) % (2 * pi) - pi).max(axis=2).min(axis=1).max() < 1e-9


def test_limits_are_kept() -> None:
    joints = tuple(replace(j, limits=di.Limits(-1.0, 1.0)) if j.kind == "revolute" else j for j in UR10.joints)
    robot = replace(UR10, joints=joints)
    q = np.random.default_rng(4).uniform(-1, 1, (20, 6))
    R, p = di.forward_kinematics(robot, q, "link_6")
    found = inverse_kinematics_numeric(robot, R, p, restarts=60)
    assert np.all(np.abs(found) <= 1.0)
    assert np.abs(di.forward_kinematics(robot, found, "link_6")[1] - p).max() < 1e-9


def test_paths_are_continuous() -> None:
    t = np.linspace(0, 1, 60)
    q = np.array([0.3, -1.2, 1.3, -1.5, -1.5, 0.2]) + 0.4 * np.sin(2 * pi * t[:, None] * np.arange(1, 7) / 6)
    R, p = di.forward_kinematics(UR10, q, "link_6")
    found = inverse_kinematics_numeric(UR10, R, p, start=q[0], path=True)
    assert np.abs(found - q).max() < 1e-8


def test_couplings_are_respected() -> None:
    robot = replace(RRR, couplings=(di.Coupling("joint_3", {"joint_2": -1.0}, 0.5),), actuators=())
    R, p = di.forward_kinematics(robot, [[0.4, 0.9]], "link_3")
    q = inverse_kinematics_numeric(robot, None, p, start=[0.1, 0.5])
    assert q.shape == (1, 2)
    assert np.abs(di.forward_kinematics(robot, q, "link_3")[1] - p).max() < 1e-10
    assert R.shape == (1, 3, 3)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 1.0, 3.0, pi - 1e-9, pi])
def test_pose_error_at_every_angle(angle: float) -> None:
    axis = np.array([2.0, -1.0, 0.5]) / np.linalg.norm([2.0, -1.0, 0.5])
    K = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    R = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
    e = pose_error(R[None], np.zeros((1, 3)), np.eye(3)[None], np.ones((1, 3)))[0]
    assert e[:3] == pytest.approx([-1, -1, -1])
    assert min(np.abs(e[3:] - angle * axis).max(), np.abs(e[3:] + angle * axis).max() if angle > 3.1 else 9.0) < 1e-7


def test_failure_says_how_near_it_came() -> None:
    with pytest.raises(di.DynidentError, match=r"target 1 of 2 .*nearest pose 0\.2833 m away, 0 more") as caught:
        inverse_kinematics_numeric(RRR, None, [[0.3, 0.3, 0.5], [0.9, 0.3, 0.5]], restarts=3)
    assert "failure='nan'" in str(caught.value)
    q = inverse_kinematics_numeric(RRR, None, [[0.3, 0.3, 0.5], [0.9, 0.3, 0.5]], restarts=3, failure="nan")
    assert np.isfinite(q[0]).all() and np.isnan(q[1]).all()
    joints = tuple(replace(j, limits=di.Limits(-0.1, 0.1)) if j.name == "joint_1" else j for j in RRR.joints)
    with pytest.raises(di.DynidentError, match="with joint_1 at the limit"):
        inverse_kinematics_numeric(replace(RRR, joints=joints), None, [0.0, 0.5, 0.5], restarts=2)


def test_bad_input() -> None:
    with pytest.raises(di.DynidentError, match="failure is 'ignore'"):
        inverse_kinematics_numeric(RRR, None, [0.3, 0.3, 0.5], failure="ignore")
    with pytest.raises(di.DynidentError, match="start has 3 rows but there are 1 targets"):
        inverse_kinematics_numeric(RRR, None, [0.3, 0.3, 0.5], start=np.zeros((3, 3)))
    with pytest.raises(di.DynidentError, match=r"start has shape \(1, 2\)"):
        inverse_kinematics_numeric(RRR, None, [0.3, 0.3, 0.5], start=[0, 0])
    two = di.Mechanism(
        "two hands",
        (di.Body("base"), di.Body("left", np.ones(10)), di.Body("right", np.ones(10))),
        (di.Joint("a", "revolute", "base", "left"), di.Joint("b", "revolute", "base", "right")),
    )
    with pytest.raises(di.DynidentError, match=r"has 2 ends \(left, right\); name one as frame"):
        inverse_kinematics_numeric(two, None, [0.3, 0.3, 0.5])
