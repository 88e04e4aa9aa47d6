"""Friction that grows with the load of the model's own bodies: identified, scored, saved, written, exported and simulated."""

import warnings
from typing import Any

import identify_cases
import numpy as np
import pytest

import dynident as di
from dynident.control import feedforward_torques
from dynident.errors import DynidentWarning
from dynident.excitation import MotionLimits
from dynident.friction import law_of
from dynident.identify import fit_friction
from dynident.monitor import Monitor
from dynident.simulate import standard_machine
from dynident.symbolic.controller import ControllerCode
from dynident.trajectory import random_motion

LAW = "coulomb + viscous + load(powers=(1.0,))"
SHARE = 0.12  # of the load


@pytest.fixture(scope="module")
def robots():
    """Return an arm as described, and the true one, whose gears lose a share of what they transmit."""
    bare = identify_cases.arm(identify_cases.RRR, terms=("ia", "fv", "fc"))
    true = bare.with_parameters(bare.parameters.replace(identify_cases.truth(bare)))
    law = law_of(LAW)
    numbers = dict.fromkeys(law.parameters, 0.0) | {"coulomb.fc": 0.8, "viscous.fv": 0.5, "load.fc_tau1": SHARE}
    return bare, true.with_friction(dict.fromkeys(true.coordinate_names, law.using(numbers)))


def log_of(true, seed, noise=0.02, gain=1.0):
    motion = identify_cases.smooth(3, 4000, seed=seed)
    effort = di.inverse_dynamics(true, motion) + noise * np.random.default_rng(seed).normal(size=motion.q.shape)
    return di.Log(
        t=motion.t,
        joints=true.coordinate_names,
        position=motion.q,
        effort=gain * effort,
        effort_kind="joint_torque",
        name=str(seed),
    )


@pytest.fixture(scope="module")
def fit(robots):
    bare, true = robots
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)
        return fit_friction(bare, log_of(true, 1), LAW, estimator=di.MAP())


def test_inverse_dynamics_has_the_friction_of_the_load(robots):
    bare, true = robots
    motion = identify_cases.smooth(3, 50, seed=3)
    values = dict(zip(true.parameters.names, true.parameters.values, strict=True))
    without = {name: values.get(name, 0.0) for name in bare.parameters.names}
    without |= {f"{symbol}_{joint}": 0.0 for symbol in ("fv", "fc") for joint in bare.coordinate_names}
    inert = di.inverse_dynamics(bare, motion, bare.parameters.replace(without))
    rotors = np.array([values[f"ia_{name}"] for name in bare.coordinate_names]) * motion.a
    expected = inert + 0.8 * np.sign(motion.v) + 0.5 * motion.v + SHARE * np.abs(inert - rotors) * np.sign(motion.v)
    np.testing.assert_allclose(di.inverse_dynamics(true, motion), expected, rtol=1e-10, atol=1e-10)


def test_forward_dynamics_inverts_inverse_dynamics(robots):
    _, true = robots
    motion = identify_cases.smooth(3, 50, seed=4)
    a = di.forward_dynamics(true, motion.q, motion.v, di.inverse_dynamics(true, motion))
    np.testing.assert_allclose(a, motion.a, atol=1e-4 * np.abs(motion.a).max())


def test_the_share_of_the_load_is_found_and_held_out_efforts_are_honest(robots, fit):
    _, true = robots
    for joint in true.coordinate_names:  # rotor and body of the first axis are told apart by the description alone
        at = fit.base.leaders.index(f"load.fc_tau1_{joint}")
        assert fit.values[at] == pytest.approx(SHARE, abs=3 * fit.std[at])
        assert fit.std[at] < 0.2 * SHARE
    score = fit.score(log_of(true, 2))
    assert score.metrics.relative < 0.01
    assert fit.score(log_of(true, 2, gain=1.7)).metrics.relative > 0.3  # the measured effort is no input of the model


def test_a_large_share_of_the_load_does_not_bias_bodies(robots):
    bare, true = robots
    law = law_of(LAW)
    lossy = true.with_friction(
        {name: law.using(own.parameters | {"load.fc_tau1": 0.35}) for name, own in true.friction.items()}
    )
    fit = fit_friction(bare, log_of(lossy, 3), LAW, estimator=di.MAP())
    known = dict(zip(lossy.parameters.names, lossy.parameters.values, strict=True))
    z = (fit.values - fit.base.values([known.get(name, 0.0) for name in fit.mechanism.parameters.names])) / fit.std
    assert np.sqrt(np.mean(z**2)) < 1.6  # 2.1 and 5.9 with two fits
    assert np.abs(z).max() < 4.0


def test_a_fit_with_load_friction_is_saved_written_and_exported(robots, fit, tmp_path):
    motion = identify_cases.smooth(3, 40, seed=6)
    fit.save(tmp_path / "fit.json")
    again = di.load(tmp_path / "fit.json")
    np.testing.assert_allclose(again.predict(motion).effort, fit.predict(motion).effort, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(di.inverse_dynamics(again.model, motion), fit.predict(motion).effort, rtol=1e-6, atol=1e-6)
    pytest.importorskip("pinocchio")
    exported = fit.export(tmp_path / "out", "pinocchio")
    assert exported.difference < 1e-9


def test_a_description_does_not_keep_the_friction_that_a_law_replaces(fit, tmp_path):
    pytest.importorskip("mujoco")  # it counts damping and frictionloss of the file itself
    assert fit.export(tmp_path / "out", "mujoco").difference < 1e-9
    fit.model.save(tmp_path / "arm.urdf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)  # the sidecar, which has the laws, is not read
        described = di.Mechanism.from_urdf(tmp_path / "arm.urdf").parameters
    assert not any(described[f"{symbol}_{joint}"] for symbol in ("fv", "fc") for joint in fit.model.coordinate_names)


@pytest.mark.parametrize("controller", ["pd", "computed_torque"])
def test_simulated_drives_give_the_torque_of_inverse_dynamics(robots, controller):
    true = robots[1]
    curve = random_motion([0.0] * 3, [0.7] * 3, seed=4, duration=3.0)
    truth = standard_machine(true, controller=controller).simulate(curve).truth
    tau, moving = di.inverse_dynamics(true, truth.motion), np.abs(truth.motion.v) > 0.02
    assert np.sqrt(np.mean((truth.torques - tau)[moving] ** 2)) < 1e-3 * np.sqrt(np.mean(tau**2))  # the load is one step late
    if controller == "computed_torque":  # its model is exact
        error = truth.motion.q - np.array([curve.at(np.array([t]))[0][0] for t in truth.t])
        assert np.abs(error).max() < 2e-3


def test_feed_forward_with_laws_beside_the_model_is_inverse_dynamics(robots):
    true, motion = robots[1], identify_cases.smooth(3, 50, seed=7)
    feed = feedforward_torques(true.without_friction(), motion, friction=dict(true.friction))
    np.testing.assert_allclose(feed, di.inverse_dynamics(true, motion), rtol=1e-12, atol=1e-12)


def test_the_monitor_is_quiet_on_a_healthy_run_and_sees_a_push(robots):
    bare, true = robots

    def slowly(seed, push=0.0):
        motion = identify_cases.smooth(3, 4000, seed=seed)
        motion = di.Motion(motion.t / 0.4, motion.q, 0.4 * motion.v, 0.16 * motion.a)
        effort = di.inverse_dynamics(true, motion) + 0.2 * np.random.default_rng(seed).normal(size=motion.q.shape)
        effort[2000:2200, 1] -= push
        return di.Log(motion.t, true.coordinate_names, motion.q, effort, "joint_torque", name=str(seed))

    watch = Monitor(fit_friction(bare, slowly(1), LAW, estimator=di.MAP()))
    assert not watch.run(slowly(2)).events
    (event,) = watch.run(slowly(2, push=4.0)).events
    assert 25.0 < event.start < 26.0


def test_a_motion_is_designed_for_the_terms_of_joints_whose_friction_has_a_load(robots):
    true, one = robots[1], np.ones(3)
    limits = MotionLimits(true.coordinate_names, -2.0 * one, 2.0 * one, 2.0 * one, 8.0 * one, np.inf * one)
    found = di.excite(true, limits, iterations=1, starts=1)
    assert "fc_joint_2" in found.design.exact.names
    assert any("not for laws of their load" in note for note in found.notes)


def test_controller_code_takes_the_load_from_the_acceleration(robots):
    robot, space = robots[1], dict[str, Any]()
    exec(ControllerCode(robot).numpy, space)
    motion = identify_cases.smooth(3, 40, seed=6)
    q, v, a = motion.q, motion.v, motion.a
    tau = space["inverse_dynamics"](q, v, a) + space["friction"](q, v, a)
    np.testing.assert_allclose(tau, di.inverse_dynamics(robot, motion), rtol=1e-12, atol=1e-12)
    found = space["forward_dynamics"](q, v, tau)
    np.testing.assert_allclose(found, di.forward_dynamics(robot, q, v, tau), rtol=1e-9, atol=1e-9)
