"""Payload identification: runs without and with the load in one fit, for a serial arm."""

from __future__ import annotations

import ast
import json
from dataclasses import replace

import numpy as np
import pytest
from optional import optional
from random_mechanisms import PinRobot, pin_inertia
from scipy.interpolate import CubicSpline
from scipy.signal import lfilter
from scipy.spatial.transform import Rotation
from small_robots import ARM3, two_pushes

import dynident as di
from dynident.errors import DescriptionError, DynidentError, IdentificationError
from dynident.identify import (
    DriveGains,
    Payload,
    estimate_gains,
    payload_from_wrench,
    payload_of,
    payload_on_arm,
    payload_regression,
    read_wrench,
    with_gain_uncertainty,
)
from dynident.identify.payload.compliance import _solved
from dynident.mechanism import from_com
from dynident.monitor import Monitor

pin = optional("pinocchio")

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
    with pytest.raises(DynidentError, match="no separate parameters"):
        di.base_parameters(robot, removable=("tool",))
    with pytest.raises(DynidentError, match="no parameters of a body"):
        payload_of(di.WLS().fit(di.Regression.from_log(robot, log)).result_)


# ---- a known arm ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def known_arm() -> di.Fit:
    robot = arm()
    return di.WLS().fit(di.Regression.from_log(robot, record(robot, 1, 0.1))).result_


def test_with_a_known_arm_loaded_runs_are_enough(known_arm: di.Fit) -> None:
    """The arm's own uncertainty is part of the load's: without it the deviations would be too small."""
    loaded = arm().with_payload(MASS, COM, INERTIA)
    loads = [payload_on_arm(known_arm, [record(loaded, seed, 0.1)]) for seed in (3, 4, 5)]
    for load in loads:
        seen = np.isfinite(load.com)
        assert abs(load.mass - MASS) < 4.0 * load.mass_std
        assert np.all(np.abs(load.com - COM)[seen] < 4.0 * load.com_std[seen])
        assert load.plausible
        assert 0.0005 < load.mass_std < 0.1
    exact = known_arm.altered(covariance=0.0 * known_arm.covariance)
    assert payload_on_arm(exact, [record(loaded, 3, 0.1)]).mass_std < loads[0].mass_std
    with pytest.raises(IdentificationError, match="runs with it"):
        payload_on_arm(known_arm, [])


def test_no_load_is_called_doubtful(known_arm: di.Fit) -> None:
    load = payload_on_arm(known_arm, [record(arm(), 7, 0.1)])
    assert not load.plausible
    assert "kg" in load.findings[0]
    assert "doubtful" in load.summary()
    assert load.to_dict()["conventions"] == {}


def test_a_loaded_fit_is_scored_on_unloaded_logs_without_its_load() -> None:
    robot = arm()
    loaded = robot.with_payload(MASS, COM, INERTIA)
    evidence = payload_regression(robot, [record(robot, 1, 0.1)], [record(loaded, 3, 0.1)])
    fit = di.WLS().fit(evidence).result_
    empty, full = record(robot, 8, 0.1), record(loaded, 9, 0.1)
    with pytest.warns(di.DynidentWarning, match="without 'payload', which is therefore omitted"):
        found = fit.score(empty)
    right = fit.without("payload").score(empty)
    assert right.metrics.relative < 0.02
    assert found.metrics.relative == right.metrics.relative
    assert "with it" in found.notes[-1]
    assert fit.score(full).metrics.relative < 0.02
    with pytest.raises(DynidentError, match="no separate parameters"):
        fit.without("tool")
    again = di.Fit.from_dict(fit.to_dict(), robot)  # a stored fit brings its load
    np.testing.assert_array_equal(again.values, fit.values)
    assert payload_of(again).mass == payload_of(fit).mass
    assert not Monitor(fit, absent=("payload",)).run(empty).events
    assert Monitor(fit).run(empty).events


# ---- a wrist sensor ------------------------------------------------------------------------------------------------------


def wrist() -> di.Mechanism:
    rows = [(0.0, np.pi / 2, 0.3, 0.0), (0.4, np.pi / 2, 0.0, 0.0), (0.3, np.pi / 2, 0.0, 0.0)]
    return di.Mechanism.from_dh(rows, convention="standard", gravity=(0.0, 0.0, -9.81)).with_terms(())


def sensed(robot: di.Mechanism, motion: di.Motion, gravity: np.ndarray, load: np.ndarray) -> np.ndarray:
    """Return what the load does to the sensor, by Pinocchio's spatial algebra."""
    oracle, body = PinRobot(robot), pin_inertia(load)
    out = []
    for q, v, a in zip(motion.q, motion.v, motion.a, strict=True):
        x = oracle.state(q, v, a)
        pin.forwardKinematics(oracle.model, oracle.data, x.q, x.v, x.a)
        pin.updateFramePlacements(oracle.model, oracle.data)
        frame = oracle.model.getFrameId("link_3")
        velocity = pin.getFrameVelocity(oracle.model, oracle.data, frame, pin.LOCAL)
        acceleration = pin.getFrameAcceleration(oracle.model, oracle.data, frame, pin.LOCAL)
        acceleration.linear -= oracle.data.oMf[frame].rotation.T @ gravity
        force = body * acceleration + velocity.cross(body * velocity)
        out.append(-force.vector)
    return np.array(out)


def test_poses_at_rest_show_mass_centre_bias_and_the_tilt_of_the_base() -> None:
    robot, rng = wrist(), np.random.default_rng(0)
    tilt = Rotation.from_rotvec([0.05, -0.08, 0.0]).apply([0.0, 0.0, -9.81])
    load, offset = from_com(MASS, COM, INERTIA), np.array([3.0, -2.0, 5.0, 0.1, -0.2, 0.05])
    q = rng.uniform(-2.0, 2.0, (40, 3))
    still = di.Motion(np.arange(40.0), q, 0.0 * q, 0.0 * q)
    noise = rng.normal(size=(40, 6)) * np.repeat([0.05, 0.002], 3)
    y = sensed(robot, still, tilt, load) + offset + noise
    found = payload_from_wrench(robot, q, y, "link_3", gravity=True)
    assert abs(found.mass - MASS) < 4.0 * found.mass_std < 0.02
    assert np.all(np.abs(found.com - COM) < 4.0 * found.com_std + 1e-12)
    assert np.all(np.abs(found.bias - offset) < 4.0 * found.bias_std)
    assert np.linalg.norm(found.gravity - tilt) < 0.05
    assert np.isnan(found.inertia).all()
    assert "not determined" in found.summary()
    level = payload_from_wrench(robot, q, y, "link_3")  # a base that is believed to be level spoils it
    assert abs(level.com[2] - COM[2]) > abs(found.com[2] - COM[2])
    turned = payload_from_wrench(robot, q, -y, "link_3", sense="reaction", gravity=True)
    assert turned.mass == pytest.approx(found.mass, rel=1e-6)
    assert payload_from_wrench(robot, q, -y, "link_3").findings[0].startswith("its mass is -")


def test_noisy_moments_do_not_spoil_the_mass() -> None:
    """With the noise of forces alone, three of them per pose, the mass is known to sigma / (g sqrt(N))."""
    robot, rng = wrist(), np.random.default_rng(4)
    q = rng.uniform(-2.0, 2.0, (60, 3))
    y = sensed(robot, di.Motion(np.arange(60.0), q, 0.0 * q, 0.0 * q), np.asarray(robot.gravity), from_com(MASS, COM, INERTIA))
    noisy = y + rng.normal(size=y.shape) * np.repeat([0.05, 1.0], 3)
    found = payload_from_wrench(robot, q, noisy, "link_3")
    assert found.mass_std == pytest.approx(0.05 / (9.81 * np.sqrt(60.0)), rel=0.6)
    assert abs(found.mass - MASS) < 4.0 * found.mass_std


def test_a_motion_shows_the_inertia_too() -> None:
    robot, rng = wrist(), np.random.default_rng(1)
    t = np.arange(0.0, 3.0, 0.01)
    phase, w = rng.uniform(0, 6, (2, 3)), np.array([3.0, 4.0, 5.0])
    swing = [
        np.sin(w * t[:, None] + phase[0]),
        w * np.cos(w * t[:, None] + phase[0]),
        -(w**2) * np.sin(w * t[:, None] + phase[0]),
    ]
    motion = di.Motion(t, *swing)
    load = from_com(MASS, COM, INERTIA)
    clean = sensed(robot, motion, np.asarray(robot.gravity), load)
    exact = payload_from_wrench(robot, motion, clean, "link_3")
    np.testing.assert_allclose(exact.parameters, load, atol=1e-9)
    noisy = payload_from_wrench(robot, motion, clean + rng.normal(size=clean.shape) * np.repeat([0.2, 0.01], 3), "link_3")
    assert np.all(np.abs(noisy.inertia - INERTIA) < 4.0 * noisy.inertia_std)
    assert noisy.inertia_known
    assert noisy.plausible
    with pytest.raises(IdentificationError, match="wrench has shape"):
        payload_from_wrench(robot, motion, clean[:, :3], "link_3")
    with pytest.raises(IdentificationError, match=r"gravity of robot .* is zero"):
        payload_from_wrench(replace(robot, gravity=np.zeros(3)), motion.q, clean, "link_3")


def test_a_moving_sensor_whose_noise_has_a_memory_states_honest_deviations() -> None:
    """Bias and tilt unknown, noise correlated over 0.3 s: deviations of white noise were 2.8 times too small."""
    robot, rng = wrist(), np.random.default_rng(3)
    t = np.arange(0.0, 20.0, 0.02)
    w, phase = np.array([[3.1, 1.3], [4.3, 0.9], [5.2, 1.7]]), rng.uniform(0, 6, (3, 2))
    angle = t[:, None, None] * w + phase
    swing = (np.sin(angle).sum(2), (w * np.cos(angle)).sum(2), (-(w**2) * np.sin(angle)).sum(2))
    motion, tilt = di.Motion(t, *swing), Rotation.from_rotvec([0.1, -0.2, 0.0]).apply([0.0, 0.0, -9.81])
    load, offset = from_com(MASS, COM, INERTIA), np.array([3.0, -2.0, 5.0, 0.1, -0.2, 0.05])
    clean, z, keep = sensed(robot, motion, tilt, load) + offset, [], np.exp(-0.02 / 0.3)
    for _ in range(12):
        slow = lfilter([np.sqrt(1 - keep**2)], [1.0, -keep], rng.normal(size=clean.shape), axis=0)
        found = payload_from_wrench(robot, motion, clean + slow * np.repeat([0.2, 0.01], 3), "link_3", gravity=True)
        assert found.bias is not None
        assert found.bias_std is not None
        z += [(found.parameters - load) / np.sqrt(np.diag(found.covariance)), (found.bias - offset) / found.bias_std]
        assert found.gravity_std is not None
        off = np.arccos(found.gravity @ tilt / 9.81**2)
        assert off < 5.0 * found.gravity_std < 0.02
    assert 0.6 < np.sqrt(np.mean(np.concatenate(z) ** 2)) < 1.3


@pytest.mark.parametrize("drift", ["none", "walk", "ramp"])
def test_poses_of_a_sensor_that_drifts_state_honest_deviations(drift) -> None:
    """The mass was 6 % off and claimed 0.3 %: poses counted as independent and the bias as constant."""
    robot, z = wrist(), []
    size, offset = np.repeat([0.05, 0.002], 3), np.array([3.0, -2.0, 5.0, 0.1, -0.2, 0.05])
    for seed in range(15):
        rng = np.random.default_rng(seed)
        q = rng.uniform(-3.0, 3.0, (60, 3))
        still = di.Motion(np.arange(60.0), q, 0.0 * q, 0.0 * q)
        steps = {"none": np.zeros((60, 6)), "walk": 0.7 * rng.normal(size=(60, 6)), "ramp": np.full((60, 6), 0.5)}[drift]
        y = sensed(robot, still, np.asarray(robot.gravity), from_com(MASS, COM, INERTIA)) + offset
        found = payload_from_wrench(robot, q, y + (rng.normal(size=(60, 6)) + np.cumsum(steps, axis=0)) * size, "link_3")
        z.append(np.append(found.mass - MASS, found.com - COM) / np.append(found.mass_std, found.com_std))
        assert found.mass_std < 0.003
        assert any("drifts: fx by" in text for text in found.notes) == (drift != "none")
    assert 0.7 < np.sqrt(np.mean(np.square(z))) < 1.2
    assert np.abs(z).max() < 4.0


def elastic_run(robot: di.Mechanism, seed: int, compliance: np.ndarray) -> di.Log:
    """Return a run whose encoders sit on the motors, in front of elastic shafts: q_motor = q + c tau_bodies(q)."""
    log = record(robot, seed, 0.0)
    curve = CubicSpline(log.t, log.position)
    q, v, a = (curve(log.t, k) for k in range(3))
    shaft = di.inverse_dynamics(robot.with_terms(()), di.Motion(log.t, q, v, a))
    turned = CubicSpline(log.t, q + compliance * shaft)
    motor = di.Motion(log.t, *(turned(log.t, k) for k in range(3)))
    rotor = robot.with_parameters(
        robot.parameters.replace({n: 0.0 for n in robot.parameters.names if n[:2] not in ("ia", "fv", "fc")})
    )
    tau = shaft + di.inverse_dynamics(rotor, motor) + np.random.default_rng(seed).normal(0.0, 0.1, q.shape)
    return di.Log(log.t, robot.joint_names, motor.q, tau, "joint_torque", name=log.name)


def test_elastic_drives_that_bias_a_load_are_reported() -> None:
    robot, compliance = arm(), np.array([2e-4, 0.0, 4e-4])
    loaded = robot.with_payload(4.0, COM, INERTIA)
    for given, seen in ((compliance, True), (0.0 * compliance, False)):
        runs = [elastic_run(r, seed, given) for seed, r in enumerate((robot, robot, loaded, loaded), start=1)]
        found = payload_of(di.WLS().fit(payload_regression(robot, runs[:2], runs[2:])).result_)
        told = [text for text in found.notes if text.startswith("elastic drives")]
        assert bool(told) == seen
        assert ("note: elastic" in found.summary()) == seen
        assert np.all(np.abs(found.parameters - from_com(4.0, COM, INERTIA)) < 4.0 * np.sqrt(np.diag(found.covariance)))


def test_elastic_drives_that_are_hardly_seen_widen_the_deviations() -> None:
    robot, compliance, z = arm(), np.array([1e-5, 0.0, 2e-5]), []
    loaded = robot.with_payload(4.0, COM, INERTIA)
    for seed in range(3):
        runs = [elastic_run(r, 10 * seed + k, compliance) for k, r in enumerate((robot, robot, loaded, loaded))]
        found = payload_of(di.WLS().fit(payload_regression(robot, runs[:2], runs[2:])).result_)
        z.append((found.parameters - from_com(4.0, COM, INERTIA)) / np.sqrt(np.diag(found.covariance)))
    assert np.sqrt(np.mean(np.square(z))) < 1.25  # 1.34 and 4.7 if only significant compliances count
    assert np.abs(z).max() < 3.5


# ---- what controllers want -----------------------------------------------------------------------------------------------


def test_conventions_of_controllers_describe_the_same_body() -> None:
    turn = Rotation.from_euler("ZYX", [20.0, -10.0, 5.0], degrees=True).as_matrix()
    inertia = turn @ np.diag([0.03, 0.02, 0.04]) @ turn.T
    load = Payload(from_com(MASS, COM, inertia), 1e-12 * np.eye(10), frame="flange", reach=1.0)
    ur, franka, kuka = (load.convention(maker) for maker in ("ur", "franka", "kuka"))
    assert ur["m"] == franka["load_mass"] == kuka["M"] == MASS
    np.testing.assert_allclose(ur["cog"], COM)
    np.testing.assert_allclose(ur["inertia"], inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]])
    np.testing.assert_allclose(franka["F_x_Cload"], COM)
    np.testing.assert_allclose(np.reshape(franka["load_inertia"], (3, 3), order="F"), inertia)
    np.testing.assert_allclose([kuka[x] for x in "XYZ"], 1000.0 * COM)
    np.testing.assert_allclose([kuka[x] for x in "ABC"], [20.0, -10.0, 5.0], atol=1e-6)
    np.testing.assert_allclose([kuka[x] for x in ("JX", "JY", "JZ")], [0.03, 0.02, 0.04])
    desk = load.convention("franka_desk")
    assert list(desk) == ["mass", "centerOfMass", "inertia", "transformation"] and desk["centerOfMass"] == franka["F_x_Cload"]
    assert desk["inertia"] == franka["load_inertia"] and desk["transformation"] == np.eye(4).ravel().tolist()
    with pytest.raises(DescriptionError, match="maker is 'abb'"):
        load.convention("abb")
    assert load.plausible
    assert load.to_dict()["conventions"]["kuka"]["M"] == MASS


def test_impossible_loads_are_told_apart_from_unseen_ones() -> None:
    sure = 1e-12 * np.eye(10)
    impossible = Payload(from_com(1.0, COM, np.diag([0.1, 0.01, 0.01])), sure, frame="flange", reach=1.0)
    assert "principal moments" in impossible.findings[0]
    unsure = Payload(impossible.parameters, np.diag([1e-6, *[1e-6] * 3, *[0.01] * 6]), frame="flange", reach=1.0)
    assert unsure.plausible
    assert not unsure.inertia_known
    assert unsure.convention("ur")["inertia"] == [0.0] * 6
    far = Payload(from_com(0.002, [5.0, 0.0, 0.0], np.eye(3)), sure, frame="flange", reach=1.2)
    assert "centre of mass is 5 +-" in far.findings[0]
    unseen = Payload(np.full(10, np.nan), np.full((10, 10), np.nan))
    assert "not determined" in unseen.findings[0]


# ---- drive gains ---------------------------------------------------------------------------------------------------------


def by_nominal_gains(log: di.Log, factors: np.ndarray) -> di.Log:
    """Return a log read with nominal gains; the true ones are so many times larger."""
    return replace(log, effort=log.effort / factors)


def test_gains_are_found_from_a_load_of_known_mass() -> None:
    robot, factors = arm(), np.array([1.1, 0.93, 1.05])
    loaded = robot.with_payload(4.0, COM, INERTIA)
    logs = [
        [by_nominal_gains(record(r, seed, 0.1), factors) for seed in seeds] for r, seeds in ((robot, (1, 2)), (loaded, (3, 4)))
    ]
    found = estimate_gains(payload_regression(robot, *logs), 4.0, COM, INERTIA)
    assert isinstance(found, DriveGains)
    assert np.all(np.abs(found.factors - factors) < 4.0 * found.std)
    assert found.std[1] < 0.01  # the joint that lifts the load
    assert "true over nominal" in found.summary()
    assert found.to_dict()["factors"] == found.factors.tolist()
    right = found.correct(logs[0][0])
    np.testing.assert_allclose(right.effort, logs[0][0].effort * found.factors)
    current = replace(logs[0][0], effort_kind="motor_current", gain=np.ones(3))
    np.testing.assert_allclose(found.correct(current).gain, found.factors)
    with pytest.raises(IdentificationError, match="one motor per joint"):
        estimate_gains(payload_regression(replace(robot, actuators=robot.actuators[:2]), *logs), 4.0)


def test_gains_from_a_mass_alone_are_honest_and_carry_over_to_a_load() -> None:
    """A point mass at the link's origin was assumed: gains were off by 30 to 70 standard deviations."""
    robot, factors = arm(), np.array([1.1, 0.93, 1.05])
    known, other = (
        robot.with_payload(4.0, (0.2, -0.05, 0.08), np.diag([0.05, 0.06, 0.04])),
        robot.with_payload(MASS, COM, INERTIA),
    )
    z, loads = [], []
    for seed in range(0, 100, 10):
        runs = [by_nominal_gains(record(r, seed + k, 0.1), factors) for k, r in enumerate((robot, robot, known, other))]
        gains = estimate_gains(payload_regression(robot, runs[:2], runs[2:3]), 4.0)
        z.append((gains.factors - factors) / gains.std)
        right = [gains.correct(log) for log in runs]
        load = payload_of(with_gain_uncertainty(di.WLS(), payload_regression(robot, right[:2], right[3:]), gains))
        loads.append((load.mass - MASS) / load.mass_std)
    assert gains.std.max() < 0.01
    assert 0.6 < np.sqrt(np.mean(np.square(z))) < 1.3
    assert 0.5 < np.sqrt(np.mean(np.square(loads))) < 1.5
    with pytest.raises(IdentificationError, match="without its centre of mass"):
        estimate_gains(payload_regression(robot, runs[:2], runs[2:3]), 4.0, inertia=INERTIA)


def test_a_load_knows_how_well_the_gains_are_known() -> None:
    """Ten per cent of gain are ten per cent of mass; noise alone would claim a hundredth of that."""
    robot = arm()
    loaded = robot.with_payload(MASS, COM, INERTIA)
    factors = np.array([1.05, 1.06, 0.95])
    runs = [by_nominal_gains(record(r, seed, 0.1), factors) for r, seed in ((robot, 1), (loaded, 3))]
    evidence = payload_regression(robot, runs[:1], runs[1:])
    blind = payload_of(di.WLS().fit(evidence).result_)
    honest = payload_of(with_gain_uncertainty(di.WLS(), evidence, 0.05))
    assert abs(blind.mass - MASS) > 4.0 * blind.mass_std
    assert abs(honest.mass - MASS) < 3.0 * honest.mass_std
    assert 0.02 < honest.mass_std / MASS < 0.1
    one = payload_of(with_gain_uncertainty(di.WLS(), evidence, {"joint_1": 0.05}))
    assert one.mass_std < honest.mass_std
    with pytest.raises(IdentificationError, match="'elbow' is not a joint"):
        with_gain_uncertainty(di.WLS(), evidence, {"elbow": 0.1})


# ---- redundant motors without loops ----------------------------------------------------------------------------------------


def test_two_motors_on_one_joint_are_identified_like_any_robot() -> None:
    """The first example of the DualV paper: f1 + f2 = m a, whatever the motors do against each other."""
    robot, rng = two_pushes(2.0), np.random.default_rng(0)
    t = np.arange(2500) / 500.0
    q, v, a = (x[:, None] for x in (np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)))
    preload = 5.0 + np.sin(t)
    forces = np.column_stack([a[:, 0] + preload, a[:, 0] - preload]) + 0.1 * rng.normal(size=(2500, 2))
    fit = di.WLS().fit(di.Regression.from_motion(robot, di.Motion(t, q, v, a), forces)).result_
    assert abs(fit.values[0] - 2.0) < 4.0 * fit.std[0] < 0.01
    log = di.Log(t, ["f1", "f2"], np.hstack([q, q]), forces, "motor_torque", position_side="motor")
    fit = di.WLS().fit(di.Regression.from_log(robot, log)).result_
    assert fit.values[0] == pytest.approx(2.0, rel=0.01)
    assert fit.score(log, allow_training=True).metrics.relative < 0.05
    torn = replace(log, position=np.hstack([q, 1.1 * q]))
    with pytest.raises(DynidentError, match="the motor position of"):
        di.Regression.from_log(robot, torn)


# ---- the command ---------------------------------------------------------------------------------------------------------


def test_a_load_is_written_as_a_line_of_urscript(tmp_path, monkeypatch) -> None:
    from dynident.cli import run

    monkeypatch.chdir(tmp_path)
    robot = di.Mechanism.from_urdf(ARM3)
    q = np.random.default_rng(0).uniform(-1.5, 1.5, (20, robot.dof))
    weight = di.forward_kinematics(robot, q, robot.tree.bodies[-1])[0].transpose(0, 2, 1) @ [0.0, 0.0, -3.0 * 9.81]
    table = np.hstack([q, weight, np.cross(COM, weight)])
    head = ",".join([*robot.coordinate_names, "fx", "fy", "fz", "tx", "ty", "tz"])
    np.savetxt("poses.csv", table, delimiter=",", header=head, comments="")
    words = ["payload", str(ARM3), "--wrench", "poses.csv", "--link", robot.tree.bodies[-1], "-o", "load.script"]
    assert run(words) == 0
    line = (tmp_path / "load.script").read_text(encoding="utf-8").strip()
    mass, com, inertia = ast.literal_eval(line.removeprefix("set_target_payload"))
    assert mass == pytest.approx(3.0, rel=1e-4)
    np.testing.assert_allclose(com, COM, atol=1e-4)
    assert inertia == [0.0] * 6  # poses at rest do not tell it
    with pytest.raises(DynidentError, match="no configuration of a controller is written"):
        run([*words, "--reaction"])


def test_the_command_knows_all_three_ways(tmp_path, capsys, monkeypatch) -> None:
    from dynident.cli import run

    monkeypatch.chdir(tmp_path)
    demo, robot = str(ARM3), di.Mechanism.from_urdf(ARM3)
    tool = robot.tree.bodies[-1]
    loaded = robot.with_payload(3.0, COM, INERTIA, body=tool)
    record(robot, 1, 0.1).save("empty.csv")
    record(loaded, 3, 0.1).save("full.csv")
    fit = di.WLS().fit(di.Regression.from_log(robot, di.Log.read("empty.csv"))).result_
    fit.save(tmp_path / "fit.json")
    rng = np.random.default_rng(0)
    q = rng.uniform(-1.5, 1.5, (20, robot.dof))
    weight = di.forward_kinematics(robot, q, tool)[0].transpose(0, 2, 1) @ [0.0, 0.0, -3.0 * 9.81]
    table = np.hstack([q, weight, np.cross(COM, weight)]) + 1e-3 * rng.normal(size=(20, robot.dof + 6))
    head = ",".join([*robot.coordinate_names, "fx", "fy", "fz", "tx", "ty", "tz"])
    np.savetxt("poses.csv", table, delimiter=",", header=head, comments="")
    ways = {
        "both": ["--unloaded", "empty.csv", "--loaded", "full.csv", "--gain-std", "0.01"],
        "arm": ["--fit", "fit.json", "--loaded", "full.csv"],
        "wrist": ["--wrench", "poses.csv"],
    }
    for way, options in ways.items():
        assert run(["payload", demo, *options, "--link", tool, "--json", "--strict", "-o", "load.json"]) == 0
        data = json.loads(capsys.readouterr().out)
        assert abs(data["mass"] - 3.0) < 4.0 * data["mass_std"], way
        assert data["conventions"]["kuka"]["M"] == data["mass"]
        assert json.loads((tmp_path / "load.json").read_text(encoding="utf-8")) == data
    moved = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.1, 1.0]
    (tmp_path / "desk.json").write_text(json.dumps({"transformation": moved}), encoding="utf-8")
    assert run(["payload", demo, *ways["wrist"], "--link", tool, "--franka-desk", "desk.json"]) == 0
    desk = json.loads((tmp_path / "desk.json").read_text(encoding="utf-8"))
    assert desk["mass"] == data["mass"] and desk["transformation"] == moved and len(desk["inertia"]) == 9
    assert run(["payload", demo, *ways["both"], "--link", tool, "--save-fit", "both.json"]) == 0
    record(robot, 8, 0.1).save("other.csv")
    capsys.readouterr()
    assert run(["validate", "both.json", "other.csv", "--absent", "payload", "--json"]) == 0
    assert "payload" not in capsys.readouterr().err
    assert run(["monitor", "both.json", "other.csv", "--absent", "payload", "--strict"]) == 0
    capsys.readouterr()
    assert run(["monitor", "both.json", "other.csv", "--strict"]) == 3
    assert "without 'payload'; give --absent payload" in " ".join(capsys.readouterr().err.split())
    known = ["--mass", "3", "--com", "0.04,-0.02,0.08", "--inertia", "0.02,0.015,0.01", "--link", tool]
    capsys.readouterr()
    assert run(["gains", demo, *ways["both"][:4], *known, "--json"]) == 0
    factors = json.loads(capsys.readouterr().out)["joints"]
    assert all(abs(x["factor"] - 1.0) < 4.0 * x["std"] for x in factors.values())
    assert run(["gains", demo, *ways["both"][:4], "--mass", "3", "--link", tool, "--json"]) == 0
    wider = json.loads(capsys.readouterr().out)["joints"]
    assert all(abs(x["factor"] - 1.0) < 4.0 * x["std"] for x in wider.values())
    assert all(wider[joint]["std"] > factors[joint]["std"] for joint in factors)
    assert run(["payload", demo, *ways["wrist"], "--link", tool, "--reaction", "--strict"]) == 3
    assert "doubtful" in capsys.readouterr().out
    assert run(["payload", demo, *ways["wrist"], "--link", tool]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("set_target_payload(", "F_x_Cload", "$LOAD"))
    with pytest.raises(DynidentError, match="no input is given"):
        run(["payload", demo, "--loaded", "full.csv"])
    with pytest.raises(DynidentError, match="--com is '1,2'; give three numbers"):
        run(["gains", demo, *ways["both"][:4], "--mass", "3", "--com", "1,2"])
    with pytest.raises(DynidentError, match="no column of the fx"):
        run(["payload", demo, "--wrench", "empty.csv", "--link", tool])


def test_a_moving_sensor_is_read_with_its_clock(tmp_path) -> None:
    robot, rng = wrist(), np.random.default_rng(1)
    t = np.arange(0.0, 8.0, 0.005)
    phase, w = rng.uniform(0, 6, 3), np.array([3.0, 4.0, 5.0])
    q = np.sin(w * t[:, None] + phase)
    motion = di.Motion(t, q, w * np.cos(w * t[:, None] + phase), -(w**2) * q)
    y = sensed(robot, motion, np.asarray(robot.gravity), from_com(MASS, COM, INERTIA)) + 0.02 * rng.normal(size=(t.size, 6))
    head = ",".join(["t", *(f"q_{j}" for j in robot.coordinate_names), "fx", "fy", "fz", "tx", "ty", "tz"])
    np.savetxt(tmp_path / "run.csv", np.column_stack([t, q, y]), delimiter=",", header=head, comments="")
    moving, wrench, independence = read_wrench(robot, tmp_path / "run.csv")
    assert isinstance(moving, di.Motion)
    assert 0.0 < independence < 1.0
    inner = slice(100, -100)  # the filter's ends
    load = payload_from_wrench(robot, moving[inner], wrench[inner], "link_3", independence=independence)
    assert load.mass == pytest.approx(MASS, rel=0.01)
    np.testing.assert_allclose(load.com, COM, atol=2e-3)
    np.testing.assert_allclose(load.inertia, INERTIA, atol=3e-3)


def test_a_base_that_is_not_level_is_doubted():
    """Poses of a sensor whose base is tilted by five degrees, read as if it were level."""
    robot = di.Mechanism.from_dh([(0.0, np.pi / 2, 0.3, 0.0), (0.4, 0.0, 0.0, 0.0), (0.3, np.pi / 2, 0.0, 0.0)])
    rng = np.random.default_rng(4)
    q = rng.uniform(-2, 2, (20, 3))
    R = di.forward_kinematics(robot, q, "link_3")[0].transpose(0, 2, 1)
    for tilt, doubted in ((0.0, False), (np.radians(5.0), True)):
        force = R @ (2.0 * 9.81 * np.array([np.sin(tilt), 0.0, -np.cos(tilt)]))
        noise = rng.normal(size=(20, 6)) * ([0.1] * 3 + [0.01] * 3)
        wrench = np.hstack([force, np.cross([0.0, 0.0, 0.1], force)]) + noise
        found = payload_from_wrench(robot, q, wrench, "link_3")
        assert any("is probably not level" in text for text in found.findings) == doubted


def test_compliances_do_not_depend_on_the_units_of_their_columns() -> None:
    rng = np.random.default_rng(5)
    A = rng.normal(size=(200, 4))
    y = A @ [1.0, -2.0, 0.5, 3.0] + 0.1 * rng.normal(size=200)
    unit = np.array([1.0, 1e-9, 1e6, 1e-8])  # two base parameters, two compliances
    rows = np.column_stack([A * unit, y])
    x, std = _solved(rows.T @ rows, 2, [0, 1], 4.0)
    expected, inverse = np.linalg.lstsq(A, y, rcond=None)[0], np.linalg.inv(A.T @ A)
    np.testing.assert_allclose(x * unit, expected, rtol=1e-6)
    np.testing.assert_allclose(std * unit, 2.0 * np.sqrt(np.diag(inverse)), rtol=1e-6)
    alone, _ = _solved(rows.T @ rows, 2, [1], 4.0)
    used = [0, 1, 3]
    np.testing.assert_allclose(alone[used] * unit[used], np.linalg.lstsq(A[:, used], y, rcond=None)[0], rtol=1e-6)
    assert alone[2] == 0.0
