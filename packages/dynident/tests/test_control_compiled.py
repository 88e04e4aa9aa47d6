"""Compiled functions of one sample against Pinocchio, the batch functions and Lagrange's equations of loops."""

from __future__ import annotations

import pickle
import threading
import tracemalloc

import loop_cases
import numpy as np
import pytest
import small_robots

import dynident as di
from dynident.control import feedforward_torques
from dynident.control.compiled import QUANTITIES

CLOSE = {"rtol": 1e-12, "atol": 1e-11}


def state(robot: di.Mechanism, seed: int = 0) -> list[np.ndarray]:
    """Return random positions near home, velocities and accelerations (or torques)."""
    rng = np.random.default_rng(seed)
    home = robot.closure.home[robot.closure.independent] if robot.loops else np.zeros(robot.dof)
    return [home + rng.normal(0.0, 0.05, robot.dof), rng.normal(0.0, 1.0, robot.dof), rng.normal(0.0, 3.0, robot.dof)]


def batch(robot: di.Mechanism, name: str, q: np.ndarray, v: np.ndarray, a: np.ndarray, frame: str) -> np.ndarray:
    """Return the same quantity from the batch functions."""
    motion = di.Motion([0.0], q, v, a)
    if name == "frame_pose":
        R, p = di.forward_kinematics(robot, q, frame)
        return np.block([[R[0], p[0][:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])
    return {
        "inverse_dynamics": lambda: di.inverse_dynamics(robot, motion),
        "forward_dynamics": lambda: di.forward_dynamics(robot, q, v, a),
        "feedforward": lambda: feedforward_torques(robot, motion),
        "gravity": lambda: di.gravity(robot, q),
        "mass_matrix": lambda: di.mass_matrix(robot, q),
        "coriolis_matrix": lambda: di.coriolis_matrix(robot, q, v),
        "regressor": lambda: di.regressor(robot, motion),
        "jacobian": lambda: di.jacobian(robot, q, frame),
    }[name]()[0]


@pytest.mark.parametrize("make", [small_robots.arm6, small_robots.five_bar, small_robots.platform], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", list(QUANTITIES))
def test_single_calls_equal_the_batch_functions(make, name: str) -> None:
    robot = make()
    frame = robot.bodies[-1].name if QUANTITIES[name].framed else None
    f = robot.compiled(name, frame)
    for seed in range(3):
        q, v, a = state(robot, seed)
        given = {"q": q, "v": v, "a": a, "tau": a}
        np.testing.assert_allclose(f(*(given[x] for x in f.inputs)), batch(robot, name, q, v, a, frame), **CLOSE)


def test_single_calls_equal_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio")
    robot = small_robots.arm6()
    model = robot.with_terms(()).to_pinocchio()
    data = model.createData()
    q, v, a = state(robot)
    bare = robot.with_terms(())
    np.testing.assert_allclose(bare.compiled("inverse_dynamics")(q, v, a), pin.rnea(model, data, q, v, a), **CLOSE)
    np.testing.assert_allclose(bare.compiled("forward_dynamics")(q, v, a), pin.aba(model, data, q, v, a), rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(bare.compiled("gravity")(q), pin.computeGeneralizedGravity(model, data, q), **CLOSE)


def test_accelerations_of_a_loop_equal_lagrange_multipliers() -> None:
    robot = loop_cases.four_bar()
    motion = loop_cases.states(robot, samples=5)
    f = robot.compiled("forward_dynamics")
    tau = np.random.default_rng(1).normal(0.0, 2.0, motion.q.shape)
    for q, v, t in zip(motion.q, motion.v, tau, strict=True):
        np.testing.assert_allclose(f(q, v, t), di.forward_dynamics(robot, q, v, t)[0], rtol=1e-10, atol=1e-9)


def test_coriolis_matrix_of_a_loop_keeps_mdot_minus_2c_skew() -> None:
    robot = small_robots.five_bar()
    q, v, _ = state(robot)
    h = 1e-6
    mass, C = robot.compiled("mass_matrix"), robot.compiled("coriolis_matrix")(q, v)
    rate = (mass(q + h * v) - mass(q - h * v)) / (2.0 * h)
    np.testing.assert_allclose(rate, C + C.T, atol=1e-7 * np.abs(C).max())


def test_out_is_written_without_allocation_and_checked() -> None:
    robot = small_robots.arm3()
    f, (q, v, a), out = robot.compiled("inverse_dynamics"), state(robot), np.empty(3)
    assert f(q, v, a, out=out) is out
    tracemalloc.start()
    f(q, v, a, out=out)
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(100):
        f(q, v, a, out=out)
    assert tracemalloc.get_traced_memory()[0] - before < 1000
    tracemalloc.stop()
    for bad in (np.empty(4), np.empty(3, dtype=np.float32), np.empty(6)[::2]):
        with pytest.raises(di.DynidentError, match="contiguous float64 array of shape"):
            f(q, v, a, out=bad)
    with pytest.raises(di.DynidentError, match="takes vectors of 3 numbers"):
        f(q, v[:2], a)
    with pytest.raises(di.DynidentError, match="takes the vectors q, v, a"):
        f(q, v)


def test_numbers_change_without_compiling() -> None:
    robot = small_robots.arm3()
    f, (q, v, a) = robot.compiled("inverse_dynamics"), state(robot)
    loaded = robot.with_payload(2.0)
    f.update(loaded)
    np.testing.assert_allclose(f(q, v, a), di.inverse_dynamics(loaded, di.Motion([0.0], q, v, a))[0], **CLOSE)
    with pytest.raises(di.DynidentError, match="different geometry"):
        f.update(small_robots.arm6())


def test_pickled_functions_compile_again() -> None:
    robot = small_robots.arm3()
    f, x = robot.compiled("inverse_dynamics"), state(robot)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(f))(*x), f(*x))  # noqa: S301 - our own bytes


def test_one_object_per_thread() -> None:
    robot = small_robots.arm3()
    expected = {seed: robot.compiled("inverse_dynamics")(*state(robot, seed)) for seed in range(4)}
    wrong: list[int] = []

    def work(seed: int) -> None:
        f, x = robot.compiled("inverse_dynamics"), state(robot, seed)
        for _ in range(500):
            if not np.array_equal(f(*x), expected[seed]):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_unreachable_positions_of_a_loop_leave_the_output() -> None:
    robot = small_robots.five_bar("platform")
    f, (q, v, a) = robot.compiled("inverse_dynamics"), state(robot)
    out = f(q, v, a)
    kept = out.copy()
    with pytest.raises(di.DynidentError, match="cannot reach"):
        f(q + 10.0, v, a, out=out)
    np.testing.assert_array_equal(out, kept)
    np.testing.assert_allclose(f(q, v, a), kept, **CLOSE)


def test_wrong_names_are_answered() -> None:
    robot = small_robots.arm3()
    with pytest.raises(di.DynidentError, match="cannot be compiled; use one of inverse_dynamics"):
        robot.compiled("inverse")
    with pytest.raises(di.DynidentError, match="give frame="):
        robot.compiled("jacobian")
    with pytest.raises(di.DynidentError, match="omit frame="):
        robot.compiled("gravity", "link1")


def test_feedforward_of_a_fit() -> None:
    robot = small_robots.arm3()
    t = np.arange(500)[:, None] * 1e-2
    w = np.array([2.0, 3.0, 5.0])
    motion = di.Motion(t[:, 0], np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t))
    effort = di.inverse_dynamics(robot, motion) + np.random.default_rng(0).normal(0.0, 0.01, (500, 3))
    fit = di.WLS().fit(di.Regression.from_motion(robot, motion, effort)).result_
    q, v, a = motion.q[7], motion.v[7], motion.a[7]
    np.testing.assert_allclose(fit.compiled("feedforward")(q, v, a), feedforward_torques(fit.model, (q, v, a))[0], **CLOSE)
