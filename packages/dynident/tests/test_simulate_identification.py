"""From the log of a virtual robot back to its truth: what was wrong near standstill, and what is recovered now."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_robots import GEAR, arm6_machine, five_bar_machine

import dynident as di
from dynident.control import ComputedTorque, gains_for
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.drive.joint_terms import terms_of
from dynident.errors import IdentificationError, LogError, SignalWarning
from dynident.friction import Coulomb, Friction, Polynomial, Tanh, Viscous
from dynident.identify import fit_friction
from dynident.mechanism import from_com
from dynident.signals.filters import Decimator
from dynident.simulate import VirtualRobot, with_noise
from dynident.trajectory import random_motion

STANDSTILL = 0.1


def arm() -> VirtualRobot:
    """Return a three-axis arm with Coulomb friction, coarse gears and computed torque."""
    table = [
        {"a": 0.0, "alpha": 0.0, "d": 0.3, "joint": "a"},
        {"a": 0.0, "alpha": np.pi / 2, "d": 0.0, "joint": "b"},
        {"a": 0.4, "alpha": 0.0, "d": 0.0, "joint": "c"},
    ]
    robot = di.Mechanism.from_dh(table, "modified", "three axes").with_terms(())
    bodies = [from_com(m, (0.1, 0.02, 0.01), np.diag([0.02, 0.03, 0.04])) for m in (4.0, 3.0, 1.5)]
    robot = robot.with_parameters(robot.parameters.replace(np.concatenate(bodies)))
    friction = (Coulomb() + Viscous()).using(fc=0.01, fv=1e-4)
    gear = Transmission.gear(100.0)
    drives = [Drive(name, Motor(0.1, inertia=1e-5), gear, friction, Encoder.lines(4096)) for name in robot.joint_names]
    first = VirtualRobot(robot, drives, ComputedTorque(robot, *gains_for(8.0, 0.7), cycle=1e-3))
    loops = ComputedTorque(first.model, *gains_for(8.0, 0.7), cycle=1e-3, derivative_filter=100.0)
    return VirtualRobot(robot, drives, loops, step=2.5e-4)


def deviations(robot: di.Mechanism, fit: di.Fit) -> np.ndarray:
    """Return (found - true) / std of the base parameters."""
    return np.asarray((fit.values - fit.base.values(robot.parameters.values)) / fit.std)


def body_deviations(robot: di.Mechanism, fit) -> np.ndarray:
    """Return the same of the bodies and terms in a fit with friction laws."""
    known = dict(zip(robot.parameters.names, robot.parameters.values, strict=True))
    names = fit.mechanism.parameters.names
    truth = fit.base.values(np.array([known.get(name, fit.standard[name]) for name in names]))
    own = [i for i, leader in enumerate(fit.base.leaders) if leader in known]
    return np.asarray((fit.values[own] - truth[own]) / fit.std[own])


@pytest.fixture(scope="module")
def five_bar_logs():
    machine = five_bar_machine()
    home = [machine.mechanism.home[name] for name in machine.mechanism.coordinate_names]
    motions = [random_motion(home, [0.15, 0.15], seed=s, duration=t) for s, t in ((1, 8.0), (2, 4.0))]
    noisy = with_noise(machine, motions[0], 0.01)
    return machine, machine.simulate(motions[0]).log, noisy.simulate(motions[0], seed=0).log, machine.simulate(motions[1]).log


def test_the_model_is_exact_wherever_joints_do_not_stick():
    machine = arm()
    run = machine.simulate(random_motion([0.1] * 3, [0.9] * 3, seed=1, duration=4.0))
    tau = di.inverse_dynamics(machine.model, run.truth.motion)
    error = np.abs(run.truth.current * 0.1 * 100.0 - tau)
    fast = np.abs(run.truth.motion.v) > 0.02
    assert error[fast].max() < 1e-9  # no unit, side or timing is wrong ...
    assert error[~fast].max() > 0.5  # ... but a joint that sticks carries less than fc = 1 N m


def test_standard_deviations_cover_the_truth_without_noise_once_sticking_is_left_out():
    machine = arm()
    log = machine.simulate(random_motion([0.1] * 3, [0.9] * 3, seed=1, duration=8.0)).log
    default = di.WLS().fit(di.Regression.from_log(machine.model, log, cutoff=100.0)).result_
    moving = di.WLS().fit(di.Regression.from_log(machine.model, log, cutoff=100.0, standstill=STANDSTILL)).result_
    whole, left = (float(np.abs(deviations(machine.model, fit)).max()) for fit in (default, moving))
    assert left < 1.0 and whole > 2.0, "what a joint that sticks carries is no friction of the model, and is seen as such"
    other = machine.simulate(random_motion([0.1] * 3, [0.9] * 3, seed=2, duration=4.0)).log
    assert moving.score(other).metrics.relative < 2e-3
    assert any("excluded because slower than" in note.sentence for note in moving.notes)


def test_five_bar_by_linear_terms_and_by_its_own_law(five_bar_logs):
    machine, clean, noisy, other = five_bar_logs
    motors = ["motor1", "motor4"]
    default = di.WLS().fit(di.Regression.from_log(machine.model, noisy)).result_
    assert any(note.kind == "standstill" for note in default.notes)  # rows at which joints stick are left out by default
    assert default.score(other).metrics.relative < 0.01
    assert default.score(other).all_samples.relative > 0.05  # ... but counted here
    moving = di.WLS().fit(di.Regression.from_log(machine.model, noisy, projection=motors, standstill=STANDSTILL)).result_
    assert np.abs(deviations(machine.model, moving)).max() < 4.0
    assert moving.score(other).metrics.relative < 0.01
    assert moving.score(other).all_samples.relative > 0.05  # what is left out is still told
    law = fit_friction(machine.model, noisy, Viscous() + Tanh())
    assert np.abs(body_deviations(machine.model, law)).max() < 4.0
    assert law.score(other).metrics.relative < 0.02
    sharp = fit_friction(machine.model, clean, Viscous() + Tanh())
    ratio = machine.drives[0].transmission.ratio  # a law of the joint turns as much faster as the motor
    assert sharp.friction["alpha1"].parameters["tanh.beta"] == pytest.approx(ratio * 10.0, rel=1e-3)
    assert sharp.score(other).metrics.relative < 1e-3


def test_arm_with_cubic_friction_by_its_own_law():
    machine = arm6_machine(noise=False)
    train, test = (random_motion([0.0] * 6, [0.6] * 3 + [1.0] * 3, seed=s, duration=4.0, periods=2) for s in (1, 2))
    log, other = machine.simulate(train).log, machine.simulate(test, duration=4.0).log
    fit = fit_friction(machine.model, log, Polynomial(3), options={"standstill": STANDSTILL})
    assert np.abs(body_deviations(machine.model, fit)).max() < 4.0
    for joint, friction in machine.friction.items():
        for name, value in zip(("a0", "a1", "a2", "a3"), friction.values, strict=True):
            at = fit.base.leaders.index(f"{name}_{joint}")
            assert abs(fit.values[at] - value) < 4.0 * fit.std[at]
    assert fit.score(other).metrics.relative < 2e-3


def test_five_bar_with_elastic_drives():
    rigid = five_bar_machine()
    shaft = Transmission.gear(GEAR, inertias=(2e-4,), stiffness=(200.0,), damping=(0.05,))  # first mode at 90 Hz
    machine = replace(rigid, drives=tuple(replace(drive, transmission=shaft) for drive in rigid.drives), step=1.25e-4)
    home = [machine.mechanism.home[name] for name in machine.mechanism.coordinate_names]
    train, test = (random_motion(home, [0.15, 0.15], seed=s, duration=8.0) for s in (1, 2))
    log = with_noise(machine, train, 0.01).simulate(train, seed=0).log
    options = {
        "projection": ["motor1", "motor4"],
        "standstill": STANDSTILL,
        "cutoff": 30.0,
    }  # rows shorter than the time between reversals
    fit = di.WLS().fit(di.Regression.from_log(machine.model, log, **options)).result_
    assert np.abs(deviations(machine.model, fit)).max() < 4.0
    assert fit.score(machine.simulate(test, duration=6.0).log).metrics.relative < 0.01


def test_rows_and_masks_agree_with_a_direct_count():
    rng = np.random.default_rng(0)
    moving = rng.random((500, 2)) > 0.01
    for decimator in (Decimator(1, 100.0), Decimator(4, 100.0)):
        weights = np.abs(decimator.taps) / np.abs(decimator.taps).sum()
        spans = [slice(c - weights.size // 2, c + weights.size // 2 + 1) for c in decimator.centres(500)]
        expected = np.array([weights @ ~moving[span] <= 0.01 for span in spans])
        np.testing.assert_array_equal(decimator.usable(moving), expected)
    machine = arm()
    motion = random_motion([0.1] * 3, [0.9] * 3, duration=2.0).sample(200.0)
    tau = di.inverse_dynamics(machine.model, motion)
    still = np.abs(motion.v) < 0.05
    wrong = np.where(still, 1e3, tau)  # nonsense where the joint stands must not reach the estimate
    evidence = di.Regression.from_motion(machine.model, motion, wrong, moving=~still)
    assert [group.count for group in evidence.groups] == (~still).sum(axis=0).tolist()
    fit = di.OLS().fit(evidence).result_
    truth = fit.base.values(machine.model.parameters.values)
    np.testing.assert_allclose(fit.values, truth, atol=1e-8 * np.abs(truth).max())


def test_too_little_left_is_told(five_bar_logs):
    machine, clean, _, _ = five_bar_logs
    with pytest.raises(LogError, match=r"standstill is 1\.5"):
        di.Regression.from_log(machine.model, clean, standstill=1.5)
    with pytest.warns(SignalWarning, match="standstill= leaves"):
        di.Regression.from_log(machine.model, clean, standstill=0.9)
    with pytest.warns(SignalWarning, match="standstill= leaves"):  # rows that never move are cut into single samples
        di.Regression.from_log(machine.model, replace(clean, name="short"), standstill=0.9, cutoff=2.0)
    motion = random_motion([0.0] * 3, [0.5] * 3, duration=1.0).sample(100.0)
    with pytest.raises(IdentificationError, match="leaves 0 of"):
        di.Regression.from_motion(arm().model, motion, motion.q, moving=np.zeros_like(motion.q, dtype=bool))
    with pytest.raises(IdentificationError, match="moving has shape"):
        di.Regression.from_motion(arm().model, motion, motion.q, moving=np.ones((3, 3), dtype=bool))


def test_tanh_friction_with_a_negative_slope_is_coulomb_friction_of_the_same_curve():
    """(fc, beta) and (-fc, -beta) are the same curve, so their Coulomb terms must be the same."""
    plain, turned = (Friction(Tanh() + Viscous(), [k * 4.0, 0.5, k * 20.0]) for k in (1.0, -1.0))
    v = np.array([-2.0, 0.3, 1.5])
    np.testing.assert_allclose(plain(v), turned(v))
    assert terms_of(plain)[0] == terms_of(turned)[0] == {"fc": 4.0, "fv": 0.5}
