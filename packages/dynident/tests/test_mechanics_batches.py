"""A batch is the same as its samples one by one, to the last bit, on any number of cores and in any stretches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from random_mechanisms import BRANCHED, build, close, coupled, every_kind, random_motion

from dynident import parallel
from dynident.errors import DynidentError
from dynident.mechanics import (
    Motion,
    coriolis_matrix,
    energy_regressor,
    forward_dynamics,
    forward_kinematics,
    frame_motion,
    gravity,
    inverse_dynamics,
    jacobian,
    mass_matrix,
    regressor,
)
from dynident.mechanism import Mechanism

ROBOTS = {
    "plain": build([(kind, parent, False) for kind, parent, _ in BRANCHED], 3, ("ia", "fv", "fc")),
    "every kind": every_kind(),
    "coupled": coupled(),
}
WRENCH = {"L1": np.arange(6.0)}

FUNCTIONS: dict[str, Callable[[Mechanism, Motion], np.ndarray]] = {
    "inverse_dynamics": lambda r, m: inverse_dynamics(r, m, wrenches=WRENCH),
    "forward_dynamics": lambda r, m: forward_dynamics(r, m.q, m.v, m.a, wrenches=WRENCH),
    "mass_matrix": lambda r, m: mass_matrix(r, m.q),
    "coriolis_matrix": lambda r, m: coriolis_matrix(r, m.q, m.v),
    "gravity": lambda r, m: gravity(r, m.q),
    "regressor": regressor,
    "kinetic": lambda r, m: energy_regressor(r, m)[0],
    "potential": lambda r, m: energy_regressor(r, m)[1],
    "orientation": lambda r, m: forward_kinematics(r, m.q, "L5")[0],
    "position": lambda r, m: forward_kinematics(r, m.q, "L5")[1],
    "velocity": lambda r, m: frame_motion(r, m, "L5")[0],
    "acceleration": lambda r, m: frame_motion(r, m, "L5")[1],
    "jacobian": lambda r, m: jacobian(r, m.q, "L5"),
    "jacobian in world": lambda r, m: jacobian(r, m.q, "L5", "world"),
}


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_one_sample_equals_its_place_in_a_batch(function: str, name: str) -> None:
    robot, f = ROBOTS[name], FUNCTIONS[function]
    motion = random_motion(robot, 71)  # two full groups of lanes and a rest
    whole = f(robot, motion)
    for s in (0, 1, 31, 32, 63, 64, 70):
        np.testing.assert_array_equal(f(robot, motion[s : s + 1])[0], whole[s])
    for cut in (5, 33, 64):
        parts = np.concatenate([f(robot, motion[:cut]), f(robot, motion[cut:])])
        np.testing.assert_array_equal(parts, whole)


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_results_do_not_depend_on_the_number_of_cores(function: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    robot, f = ROBOTS[name], FUNCTIONS[function]
    monkeypatch.setattr(parallel, "SMALL", 64)  # so that a small batch is spread too; the real limit is tested below
    motion = random_motion(robot, 203)
    monkeypatch.setattr(parallel, "cores", lambda: 1)
    whole = f(robot, motion)
    for workers in (2, 3, 7):
        monkeypatch.setattr(parallel, "cores", lambda workers=workers: workers)
        np.testing.assert_array_equal(f(robot, motion), whole)


@pytest.mark.parametrize("samples", [parallel.SMALL - 1, parallel.SMALL, parallel.SMALL + 37])
def test_around_the_size_where_threads_start(samples: int) -> None:
    robot = ROBOTS["plain"]
    motion = random_motion(robot, samples)
    for function in ("inverse_dynamics", "forward_dynamics", "mass_matrix", "velocity"):
        f = FUNCTIONS[function]
        whole = f(robot, motion)
        parts = [f(robot, motion[i : i + 1000]) for i in range(0, samples, 1000)]
        np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_layout_of_the_input_does_not_matter() -> None:
    robot = ROBOTS["every kind"]
    motion = random_motion(robot, 40)
    twisted = Motion(motion.t, *(np.asfortranarray(x) for x in (motion.q, motion.v, motion.a)))
    for name, f in FUNCTIONS.items():
        np.testing.assert_array_equal(f(robot, twisted), f(robot, motion), err_msg=name)


def test_a_motion_may_be_its_arrays() -> None:
    robot = ROBOTS["plain"]
    motion = random_motion(robot, 4)
    arrays = (motion.q, motion.v, motion.a)
    for function in (inverse_dynamics, regressor):
        assert np.array_equal(function(robot, arrays), function(robot, motion))
    for ours, theirs in zip(energy_regressor(robot, arrays), energy_regressor(robot, motion), strict=True):
        assert np.array_equal(ours, theirs)
    assert np.array_equal(inverse_dynamics(robot, tuple(x[0] for x in arrays)), inverse_dynamics(robot, motion[:1]))
    with pytest.raises(DynidentError, match=r"Motion, or its arrays as \(q, v, a\)"):
        regressor(robot, arrays[:2])


def test_no_sample_gives_no_row() -> None:
    robot = ROBOTS["every kind"]
    motion = random_motion(robot, 3)[:0]
    for name, f in FUNCTIONS.items():
        assert f(robot, motion).shape[0] == 0, name


def test_vectors_are_a_batch_of_one() -> None:
    robot = ROBOTS["plain"]
    motion = random_motion(robot, 4)
    q, v, a = motion.q[3], motion.v[3], motion.a[3]
    one = Motion(0.0, q, v, a)
    np.testing.assert_array_equal(inverse_dynamics(robot, one)[0], inverse_dynamics(robot, motion)[3])
    np.testing.assert_array_equal(mass_matrix(robot, q)[0], mass_matrix(robot, motion.q)[3])
    np.testing.assert_array_equal(forward_dynamics(robot, q, v, a)[0], forward_dynamics(robot, q[None], v[None], a[None])[0])


def test_a_robot_that_cannot_move() -> None:
    robot = build([("fixed", -1, False), ("fixed", 0, False)], 1)
    motion = Motion([0.0, 1.0], np.zeros((2, 0)), np.zeros((2, 0)), np.zeros((2, 0)))
    assert robot.dof == 0
    assert inverse_dynamics(robot, motion).shape == (2, 0)
    assert regressor(robot, motion).shape == (2, 0, 0)
    assert mass_matrix(robot, motion.q).shape == (2, 0, 0)
    assert forward_dynamics(robot, motion.q, motion.v, motion.a).shape == (2, 0)
    close(forward_kinematics(robot, motion.q, "L0")[1][1], robot.joints[0].placement.translation, 0.0)
