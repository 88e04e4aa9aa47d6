"""Postures along a path: the branch that is named, whole turns within the limits, and errors with distances."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynident as di
from dynident.mechanics import arm_structure, inverse_kinematics
from dynident_lab.postures import choose_posture

pi = np.pi
RRR = di.Mechanism.from_dh([(0, pi / 2, 0.56, 0), (0.2, 0, 0.169, 0), (0.415, 0, 0.09, 0)], name="rrr")
PUMA = di.Mechanism.from_dh(
    [
        (0, pi / 2, 0.67, 0),
        (0.4318, 0, 0, 0),
        (0.0203, -pi / 2, 0.15, 0),
        (0, pi / 2, 0.4318, 0),
        (0, -pi / 2, 0, 0),
        (0, 0, 0.1, 0),
    ]
)


def test_up_is_against_gravity_also_for_a_hanging_robot() -> None:
    standing, hanging = RRR, replace(RRR, gravity=np.array([0, 0, 9.81]))
    target = [0.4, 0.2, 0.5]
    assert np.allclose(choose_posture(hanging, None, target, "up"), choose_posture(standing, None, target, "down"))


def test_planar_elbow_left_and_right() -> None:
    robot = di.Mechanism.from_dh([(0.5, 0, 0, 0), (0.5, 0, 0, 0)])
    left, right = (choose_posture(robot, None, [0.7, 0, 0], name)[0] for name in ("left", "right"))
    assert 0.5 * np.sin(left[0]) > 0 > 0.5 * np.sin(right[0])


def test_words_left_out_are_those_of_the_first_branch_and_paths_are_unwrapped() -> None:
    robot = PUMA
    R, p = di.forward_kinematics(robot, [[0.1, 0.5, -0.7, 0.4, 0.8, 0.2]], "link_6")
    branches, names = inverse_kinematics(robot, R, p)[0], arm_structure(robot).postures
    assert np.allclose(choose_posture(robot, R, p, "flip")[0], branches[names.index("front up flip")])
    assert np.allclose(choose_posture(robot, R, p, "back noflip")[0], branches[names.index("back up noflip")])
    turn = np.linspace(0, 4 * pi, 100)
    circle = np.column_stack([0.45 * np.cos(turn), 0.45 * np.sin(turn), np.full(100, 0.7)])
    q = choose_posture(RRR, None, circle, "front up")
    assert q[-1, 0] - q[0, 0] == pytest.approx(4 * pi, abs=1e-9)


def test_limits_shift_whole_turns_or_refuse() -> None:
    robot = di.Mechanism.from_dh([{"a": 0.5, "limits": (pi, 3 * pi)}, {"a": 0.5, "limits": (-3, 3)}])
    q = choose_posture(robot, None, [0.7, 0.1, 0])
    assert pi <= q[0, 0] <= 3 * pi
    narrow = di.Mechanism.from_dh([{"a": 0.5, "limits": (-0.1, 0.1)}, {"a": 0.5}])
    with pytest.raises(di.DynidentError, match=r"target 0 of 1 needs joint 'joint_1' at 0\.9.* limits -0\.1 to 0\.1"):
        choose_posture(narrow, None, [0.7, 0.1, 0])


def test_bad_input() -> None:
    with pytest.raises(di.DynidentError, match=r"posture is 'sideways'; this elbow arm .* knows 'front up'"):
        choose_posture(RRR, None, [0.3, 0.3, 0.5], "sideways")
    with pytest.raises(di.DynidentError, match=r"target 1 of 2 .* is 0\.2833 m out of reach"):
        choose_posture(RRR, None, [[0.3, 0.3, 0.5], [0.9, 0.3, 0.5]])
