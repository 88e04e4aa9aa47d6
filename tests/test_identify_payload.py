"""Payload identification: runs without and with the load in one fit, for a serial arm."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.errors import DynidentError
from dynident.identify import Payload, payload_of, payload_regression

MASS, COM, INERTIA = 1.7, np.array([0.04, -0.02, 0.08]), np.diag([0.02, 0.015, 0.01])


def arm() -> di.Mechanism:
    rows = [(0.0, np.pi / 2, 0.3, 0.0), (0.4, 0.0, 0.0, 0.0), (0.3, np.pi / 2, 0.0, 0.0)]
    robot = di.Mechanism.from_dh(rows, convention="standard")
    rng = np.random.default_rng(0)
    values = {}
    for body in robot.tree.bodies:
        values |= {f"m_{body}": 5.0, f"mx_{body}": -0.6, f"Ixx_{body}": 0.2, f"Iyy_{body}": 0.3, f"Izz_{body}": 0.25}
    for joint in robot.joint_names:
        values |= {f"fv_{joint}": rng.uniform(0.5, 1.0), f"fc_{joint}": rng.uniform(0.5, 1.0), f"ia_{joint}": 0.1}
    return robot.with_parameters(robot.parameters.replace(values))


def record(robot: di.Mechanism, seed: int, noise: float) -> di.Log:
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, 12.0, 0.004)
    w = 2.0 * np.pi * 0.2 * np.arange(1, 5)[:, None]
    q, v, a = [], [], []
    for _ in range(robot.dof):
        size, phase = rng.uniform(0.2, 0.6, (4, 1)) / np.arange(1, 5)[:, None], rng.uniform(0, 6, (4, 1))
        q.append((size * np.sin(w * t + phase)).sum(0))
        v.append((size * w * np.cos(w * t + phase)).sum(0))
        a.append((-size * w**2 * np.sin(w * t + phase)).sum(0))
    motion = di.Motion(t, np.stack(q, 1), np.stack(v, 1), np.stack(a, 1))
    effort = di.inverse_dynamics(robot, motion) + rng.normal(0.0, noise, (t.size, robot.dof))
    return di.Log(t, robot.joint_names, motion.q, effort, "joint_torque", name=f"run{seed}")


@pytest.fixture(scope="module")
def found() -> Payload:
    robot = arm()
    loaded = robot.with_payload(MASS, COM, INERTIA)
    evidence = payload_regression(robot, [record(robot, 1, 0.1), record(robot, 2, 0.1)], [record(loaded, 3, 0.1)])
    return payload_of(di.WLS().fit(evidence).result_)


def test_the_load_is_found_within_its_uncertainty(found: Payload) -> None:
    assert abs(found.mass - MASS) < 4.0 * found.mass_std
    seen = np.isfinite(found.com)
    assert seen.any()
    assert np.all(np.abs(found.com - COM)[seen] < 4.0 * found.com_std[seen] + 1e-3)
    assert "payload" in found.summary()


def test_loaded_runs_alone_add_nothing_and_both_add_the_load() -> None:
    robot = arm()
    loaded = robot.with_payload(MASS, separate=True)
    alone = di.base_parameters(loaded).rank
    assert alone == di.base_parameters(robot).rank
    assert di.base_parameters(loaded, removable=("payload",)).rank > alone


def test_a_separate_load_moves_like_one_that_is_part_of_its_link() -> None:
    robot = arm()
    rng = np.random.default_rng(5)
    q, v, a = rng.uniform(-1.0, 1.0, (3, 40, robot.dof))
    motion = di.Motion(np.arange(40.0), q, v, a)
    one, two = robot.with_payload(MASS, COM, INERTIA), robot.with_payload(MASS, COM, INERTIA, separate=True)
    np.testing.assert_allclose(di.inverse_dynamics(two, motion), di.inverse_dynamics(one, motion), atol=1e-12)
    np.testing.assert_allclose(di.mass_matrix(two, q), di.mass_matrix(one, q), atol=1e-12)
    tau = di.inverse_dynamics(two, motion)
    np.testing.assert_allclose(di.forward_dynamics(two, q, v, tau), a, atol=1e-9)


def test_bad_calls_are_one_sentence() -> None:
    robot = arm()
    log = record(robot, 1, 0.1)
    with pytest.raises(DynidentError, match="runs without it and runs with it"):
        payload_regression(robot, [log], [])
    with pytest.raises(DynidentError, match="no parameters of its own"):
        di.base_parameters(robot, removable=("tool",))
    with pytest.raises(DynidentError, match="no parameters of a body"):
        payload_of(di.WLS().fit(di.Regression.from_log(robot, log)).result_)
