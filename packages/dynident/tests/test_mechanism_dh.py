"""DH tables against a plain product of 4x4 matrices, in both conventions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mechanism_oracles import poses, random_motion

from dynident.errors import DescriptionError
from dynident.mechanics import forward_kinematics, inverse_dynamics
from dynident.mechanism import Actuator, Coupling, Mechanism, from_com
from dynident.mechanism.dh import read_dh

RNG = np.random.default_rng(5)
ROWS = [(*RNG.normal(size=4), kind) for kind in ("revolute", "prismatic", "revolute", "revolute", "prismatic")]


def rot(axis: int, angle: float) -> np.ndarray:
    i, j = (axis + 1) % 3, (axis + 2) % 3
    T = np.eye(4)
    T[i, i] = T[j, j] = np.cos(angle)
    T[i, j], T[j, i] = -np.sin(angle), np.sin(angle)
    return T


def shift(axis: int, distance: float) -> np.ndarray:
    T = np.eye(4)
    T[axis, 3] = distance
    return T


def dh_product(rows, q, convention) -> list[np.ndarray]:
    frames, T = [], np.eye(4)
    for (a, alpha, d0, theta0, kind), x in zip(rows, q, strict=True):
        theta, d = (theta0 + x, d0) if kind == "revolute" else (theta0, d0 + x)
        if convention == "standard":
            T = T @ rot(2, theta) @ shift(2, d) @ shift(0, a) @ rot(0, alpha)
        else:
            T = T @ rot(0, alpha) @ shift(0, a) @ rot(2, theta) @ shift(2, d)
        frames.append(T)
    return frames


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_fixed_rows_are_constant_transforms(convention):
    rows = [ROWS[0], (0.3, -0.7, 0.2, 0.4, "fixed"), ROWS[1], (0.1, 0.5, -0.3, 1.1, "fixed")]
    robot = read_dh(rows, convention)
    assert robot.dof == 2
    q = np.array([0.6, -0.2])
    wanted = dh_product(rows, (q[0], 0.0, q[1], 0.0), convention)  # a fixed row is a prismatic one that does not move
    for i, T in enumerate(wanted, 1):
        R, p = forward_kinematics(robot, q, f"link_{i}")
        np.testing.assert_allclose(R[0], T[:3, :3], atol=1e-14)
        np.testing.assert_allclose(p[0], T[:3, 3], atol=1e-14)


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_frames_are_the_dh_frames(convention):
    robot = Mechanism.from_dh(ROWS, convention)
    assert robot.joint_names == tuple(f"joint_{i}" for i in range(1, 6))
    assert robot.tree.bodies == tuple(f"link_{i}" for i in range(1, 6))
    q = np.random.default_rng(1).normal(size=5)
    here = poses(robot, dict(zip(robot.joint_names, q, strict=True)))
    for i, T in enumerate(dh_product(ROWS, q, convention), 1):
        assert np.allclose(here[f"link_{i}"].rotation, T[:3, :3], atol=1e-12)
        assert np.allclose(here[f"link_{i}"].translation, T[:3, 3], atol=1e-12)


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_parameters_are_in_the_dh_frames(convention):
    """Torques of point masses given in DH frames equal the gradient of their potential energy, by plain DH products."""
    robot = read_dh(ROWS, convention, gravity=[0.3, -1.0, -9.0])
    masses, points = RNG.uniform(1.0, 2.0, 5), RNG.normal(size=(5, 3))
    phi = np.concatenate([from_com(m, c, np.zeros((3, 3))) for m, c in zip(masses, points, strict=True)])
    parameters = robot.parameters.replace(np.concatenate([phi, np.zeros(len(robot.parameters) - 50)]))
    motion = random_motion(robot, samples=4)
    still = type(motion)(motion.t, motion.q, 0.0 * motion.v, 0.0 * motion.a)

    def energy(q):
        places = [T[:3, :3] @ c + T[:3, 3] for T, c in zip(dh_product(ROWS, q, convention), points, strict=True)]
        return -sum(m * robot.gravity @ x for m, x in zip(masses, places, strict=True))

    h = 1e-6
    slope = [[(energy(q + h * e) - energy(q - h * e)) / (2.0 * h) for e in np.eye(5)] for q in motion.q]
    assert np.allclose(inverse_dynamics(robot, still, parameters), slope, atol=1e-7)


def test_the_two_conventions_describe_one_robot():
    """Standard rows (theta, d, a, alpha)_i are modified rows with a and alpha shifted by one: same axes, same tool."""
    standard = read_dh(ROWS, "standard")
    shifted = [(*(ROWS[i - 1][:2] if i else (0.0, 0.0)), *ROWS[i][2:]) for i in range(5)]
    modified = read_dh(shifted, "modified")
    q = dict(zip(standard.joint_names, np.random.default_rng(2).normal(size=5), strict=True))
    end_standard = poses(standard, q)["link_5"]
    tool = rot(0, ROWS[4][1]) @ shift(0, ROWS[4][0])
    end_modified = poses(modified, q)["link_5"]
    assert np.allclose(end_modified.rotation @ tool[:3, 3] + end_modified.translation, end_standard.translation)


def test_mappings_trees_and_limits():
    rows = [
        {"a": 0.1, "joint": "waist", "limits": (-1.0, 1.0)},
        {"d": 0.2, "alpha": np.pi / 2, "kind": "prismatic"},
        {"antecedent": 1, "gamma": 0.7, "b": 0.4, "alpha": 0.3, "a": 0.5, "theta": 0.2, "d": 0.6},
    ]
    robot = read_dh(rows, "modified", name="tree")
    assert robot.joint_names == ("waist", "joint_2", "joint_3")
    assert robot.joint("waist").limits.upper == 1.0
    assert robot.joint("joint_3").parent == "link_1"
    T = (
        shift(0, 0.1)
        @ rot(2, 0.9)
        @ rot(2, 0.7)
        @ shift(2, 0.4)
        @ rot(0, 0.3)
        @ shift(0, 0.5)
        @ rot(2, 0.2 - 0.4)
        @ shift(2, 0.6)
    )
    here = poses(robot, {"waist": 0.9, "joint_3": -0.4})["link_3"]
    assert np.allclose(here.rotation, T[:3, :3])
    assert np.allclose(here.translation, T[:3, 3])


def test_wrong_tables_are_refused_in_one_sentence(subtests):
    for rows, convention, word in [
        ([], "standard", "one row per joint"),
        ("abcd", "standard", "one row per joint"),
        ([(1, 2, 3)], "standard", "DH row 1"),
        (["abcd"], "standard", "DH row 1"),
        ([5], "standard", "DH row 1"),
        ([(1, 2, 3, "x")], "standard", "theta is 'x'"),
        ([(1, 2, np.nan, 0)], "standard", "d is nan"),
        ([(1, 2, 3, 4, "screw")], "standard", "kind is 'screw'"),
        ([{"r": 1.0}], "modified", "unknown key 'r'"),
        ([{"gamma": 1.0}], "standard", "need convention='modified'"),
        ([{"antecedent": 1}], "modified", "antecedent is 1"),
        ([{"antecedent": "base"}], "modified", "antecedent is 'base'"),
        ([{"limits": 3}], "modified", "limits is 3"),
        ([{"limits": (1, -1)}], "modified", "swap"),
        ([{"joint": "a"}, {"joint": "a"}], "modified", "twice"),
        ([(0, 0, 0, 0)], "khalil", "'standard' or 'modified'"),
    ]:
        with subtests.test(str(word)):
            with pytest.raises(DescriptionError, match=word) as caught:
                read_dh(rows, convention)
            assert "\n" not in str(caught.value)


def test_joints_of_a_table_follow_others():
    """Couplings given to a copy, whose follower loses the direct drive that every joint had."""
    rows = [(0.4, 0, 0, 0), (0.3, 0, 0, 0), (0.2, 0, 0, 0)]
    follows = (Coupling("joint_3", {"joint_2": -1.0}),)
    plain = Mechanism.from_dh(rows, name="palletiser")
    robot = replace(plain, couplings=follows)
    assert robot.coordinate_names == ("joint_1", "joint_2")
    assert [actuator.name for actuator in robot.actuators] == ["joint_1", "joint_2"]
    geared = replace(plain, actuators=(Actuator("motor", {"joint_3": 1.0}, 50.0),))
    with pytest.raises(DescriptionError, match="actuator 'motor' drives 'joint_3', which is not an independent joint"):
        replace(geared, couplings=follows)
