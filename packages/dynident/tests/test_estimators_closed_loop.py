"""Estimators that simulate the closed loop, on virtual robots whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identify_cases import DOWN_Y, PLANAR, arm
from small_robots import arm6_machine

import dynident as di
from dynident.control import ComputedTorque
from dynident.errors import DynidentWarning, IdentificationError, LogError, SimulationError
from dynident.identify import DIDIM, IV, TLS, WLS, Fit, OutputError, Regression, base_parameters, simulated_instruments
from dynident.mechanics import Motion
from dynident.signals import Log
from dynident.simulate import ClosedLoop, VirtualRobot, reference_motion, standard_machine
from dynident.trajectory import random_motion

GAINS = ("gain:joint_1", "gain:joint_2")


@pytest.fixture(scope="module")
def robot():
    return arm(PLANAR, ("ia", "fv"), DOWN_Y)


@pytest.fixture(scope="module")
def machine(robot):
    """PD control, encoder noise of 1 mrad and effort noise in the log."""
    bare = standard_machine(robot, controller="pd", bandwidth=4.0, step=5e-4)
    sensors = replace(bare.sensors, position_noise=1e-3, effort_noise=0.05, averaged=True)
    return replace(bare, sensors=sensors)


@pytest.fixture(scope="module")
def run(machine):
    return machine.simulate(random_motion([0.3, -0.5], [0.8, 0.8], duration=4.0), seed=1)


@pytest.fixture(scope="module")
def evidence(robot, run):
    """Evidence about a robot that is described 20 % too heavy."""
    described = robot.with_parameters(robot.parameters.replace(1.2 * robot.parameters.values))
    return Regression.from_log(described, run.log, cutoff=30.0, keep_rows=True)


@pytest.fixture(scope="module")
def beta(robot):
    return base_parameters(robot).values(robot.parameters.values)


def test_the_loop_of_the_true_model_is_the_machine(robot, machine, run):
    found = ClosedLoop(machine, run.reference).motion(robot, 0, run.truth.motion.t)
    np.testing.assert_allclose(found.q, run.truth.motion.q, atol=2e-6)


def test_drives_hand_their_inertia_and_friction_to_the_model():
    machine = arm6_machine()
    loop = ClosedLoop(machine, Motion([0.0, 1.0], *(np.zeros((2, machine.mechanism.dof)) for _ in range(3))))
    bare = loop.machine_of(machine.model)
    assert all(drive.motor.inertia == 0.0 and drive.friction is None for drive in bare.drives)
    np.testing.assert_allclose(bare.model.parameters.values, machine.model.parameters.values, rtol=1e-12)


def test_encoder_noise_biases_least_squares_but_not_those_that_simulate(machine, run, evidence, beta):
    """In the band of 30 Hz WLS is off by ten of its deviations under IV's; DIDIM and simulated instruments are right."""
    loop = ClosedLoop(machine, run.reference)
    plain = WLS().fit(evidence).result_
    didim = DIDIM(loop=loop).fit(evidence)
    simulated = IV(instruments=simulated_instruments(loop, plain)).fit(evidence).result_
    asked = IV(instruments=run.reference).fit(evidence).result_
    for fit in (didim.result_, simulated, asked, TLS().fit(evidence).result_):
        assert np.max(np.abs(fit.values - beta) / fit.std) < 4.5
    assert didim.converged_
    assert np.max(np.abs(plain.values - beta) / didim.result_.std) > 10.0
    assert np.all(np.abs(didim.coef_ - beta) < 0.01 * np.abs(beta) + 0.002)  # from 20 % off


def test_output_error_finds_the_truth_from_efforts_and_positions(machine, run, evidence, beta):
    loop = ClosedLoop(machine, run.reference)
    start = DIDIM(loop=loop).fit(evidence).result_
    found = OutputError(loop=loop, start=start, iterations=3).fit(evidence)
    assert found.converged_
    assert np.max(np.abs(found.coef_ - beta) / found.result_.std) < 4.0
    assert found.result_.estimator.startswith("OutputError")
    assert not found.contradiction_


def test_output_error_says_when_the_simulated_controller_is_not_that_of_the_robot(machine, run, evidence, beta):
    """Instrumental variables know no controller; a velocity that it sees late by 20 ms looks like another robot."""
    late = [replace(drive, encoder=replace(drive.encoder, filter=8.0)) for drive in machine.drives]
    loop = ClosedLoop(replace(machine, drives=late), run.reference)
    start = WLS().fit(evidence).result_
    with pytest.warns(DynidentWarning, match="contradicts the measured efforts .* of the loop, or use IV"):
        found = OutputError(loop=loop, start=start, iterations=2).fit(evidence)
    assert found.contradiction_
    assert np.max(np.abs(found.coef_ - beta) / found.result_.std) < 4.0  # the deviations allow for it


@pytest.fixture(scope="module")
def without(robot, run):
    """The same log without efforts."""
    return Regression.without_effort(robot, replace(run.log, effort=None, effort_kind="none"), cutoff=30.0)


def test_a_file_without_efforts_is_read_and_says_what_it_is_good_for(robot, run, without, tmp_path):
    path = tmp_path / "positions.csv"
    table = np.column_stack([run.log.t, run.log.position])
    np.savetxt(path, table, delimiter=",", header="t,q_joint_1,q_joint_2", comments="", fmt="%.12g")
    log = Log.read(path, "none", joints=["joint_1", "joint_2"])
    assert log.effort_kind == "none"
    found = Regression.without_effort(robot, log, cutoff=30.0)
    np.testing.assert_allclose(found.stretches[0].positions, without.stretches[0].positions, atol=1e-9)
    with pytest.raises(LogError, match="has no effort"):
        Regression.from_log(robot, log, keep_rows=True)
    with pytest.raises(LogError, match=r"no position columns|no effort columns"):
        Log.read({"t": log.t, "x": log.t}, "none")
    assert Log(t=log.t, joints=log.joints, position=log.position, effort=None, effort_kind="none").effort.shape == (4001, 2)


def test_positions_alone_are_enough_where_gains_are_known(machine, run, without, beta):
    found = OutputError(loop=ClosedLoop(machine, run.reference), outputs=("position",), iterations=2).fit(without)
    z = (found.coef_ - beta) / found.result_.std
    assert np.sqrt(np.mean(z**2)) < 2.0
    assert np.all(np.isnan(found.result_.sigma))  # nothing is known of the noise of efforts


def test_before_the_fit_it_is_said_what_positions_can_show(machine, run, without):
    """All masses and all gains times one number: no position changes, and exactly that direction is hidden."""
    known = OutputError(loop=ClosedLoop(machine, run.reference), outputs=("position",)).visible(without)
    assert not known.hidden
    assert "assumed drive gains" in known.summary()
    estimator = OutputError(loop=ClosedLoop(machine, run.reference, GAINS), outputs=("position",))
    found = estimator.visible(without)
    assert found.names[-2:] == GAINS
    (direction,) = found.hidden
    assert direction[GAINS[0]] == pytest.approx(direction[GAINS[1]], rel=1e-3)
    assert direction["fv_joint_2"] == pytest.approx(direction[GAINS[0]], rel=1e-3)
    assert "only up to one common factor" in found.summary()


def test_one_of_the_gains_is_found_relative_to_the_other(robot, machine, run, without, beta):
    """The machine believes that drive 1 gives 10 % more than it does: masses and that gain are found, measured by drive 2."""
    law = machine.controller
    believed = replace(machine, controller=replace(law, kp=law.kp * np.array([1.1, 1.0]), kd=law.kd * np.array([1.1, 1.0])))
    loop = ClosedLoop(believed, run.reference, GAINS)
    found = OutputError(loop=loop, outputs=("position",), iterations=3).fit(without)
    assert found.held_ == GAINS[1:]
    note = found.result_.notes[-1].sentence
    assert note.startswith(f"loop: {GAINS[0]} is ")
    assert f"{GAINS[1]} is fixed at the value of the loop" in note
    assert note in found.result_.summary()
    again = Fit.from_dict(found.result_.to_dict())  # no effort, so no deviation of efforts
    assert np.isnan(again.sigma).all()
    np.testing.assert_array_equal(again.values, found.result_.values)
    assert found.factors_[GAINS[1]] == 1.0
    assert abs(found.factors_[GAINS[0]] - 1.0 / 1.1) < 4.0 * found.factors_std_[GAINS[0]]
    assert found.factors_std_[GAINS[0]] < 0.03


def test_bad_input_gets_a_sentence(robot, machine, run, evidence, without):
    loop = ClosedLoop(machine, run.reference)
    with pytest.raises(SimulationError, match="unknown names 'gain:wrist'"):
        ClosedLoop(machine, run.reference, ("gain:wrist",))
    with pytest.raises(SimulationError, match="references is empty"):
        ClosedLoop(machine, ())
    with pytest.raises(SimulationError, match="has no reference"):
        reference_motion(run.log)
    with pytest.raises(SimulationError, match="cannot be varied"):
        ClosedLoop(replace(machine, controller=ComputedTorque(robot, 100.0, 20.0, cycle=1e-3)), run.reference, GAINS)
    with pytest.raises(IdentificationError, match="1 references for 2 logs"):
        DIDIM(loop=loop).fit(evidence + evidence)
    with pytest.raises(IdentificationError, match="outputs is"):
        OutputError(loop=loop, outputs=("speed",)).fit(evidence)
    with pytest.raises(IdentificationError, match="iterations is 0"):
        OutputError(loop=loop, iterations=0).fit(evidence)
    with pytest.raises(IdentificationError, match="iterations is 0"):
        DIDIM(loop=loop, iterations=0).fit(evidence)
    asked = reference_motion(replace(run.log, reference=run.reference.q))
    np.testing.assert_allclose(asked.v, run.reference.v, atol=1e-3)


# ---- servos that report positions only ---------------------------------------------------------------------------------


def pendulum(rotor: float, viscous: float, dry: float) -> di.Mechanism:
    """A bar of 0.3 kg, centre of mass at 0.15 m, on a servo."""
    bar = di.Mechanism.from_dh([(0.0, 0.0, 0.0, 0.0)], gravity=(0.0, -9.81, 0.0)).with_terms(("ia", "fv", "fc"))
    numbers = {"m_link_1": 0.3, "mx_link_1": 0.045, "Izz_link_1": 0.00675}
    return bar.with_parameters(
        bar.parameters.replace({**numbers, "ia_joint_1": rotor, "fv_joint_1": viscous, "fc_joint_1": dry})
    )


def servo(robot: di.Mechanism, kp: float, kd: float) -> VirtualRobot:
    machine = standard_machine(robot, controller="pd", cycle=2e-3, step=1e-3)
    return replace(machine, controller=replace(machine.controller, kp=np.array([kp]), kd=np.array([kd])))


def test_delay_and_bias_of_a_servo_are_found_with_gains_inertia_and_friction():
    true, guess = pendulum(0.012, 0.05, 0.04), pendulum(0.005, 0.02, 0.02)
    truth, unknown = {"delay": 0.018, "bias:joint_1": 0.04}, ("controller.kp", "controller.kd", "delay", "bias:joint_1")
    rows, commands = [], []
    for seed in (1, 2):
        command = random_motion([0.3], [1.2], seed=seed, duration=3.0, harmonics=5).sample(200.0)
        motion = ClosedLoop(servo(true, 4.0, 0.25), command, tuple(truth)).motion(true, 0, command.t, truth)
        shown = motion.q + truth["bias:joint_1"] + np.random.default_rng(seed).normal(0.0, 1e-3, motion.q.shape)
        log = di.Log(command.t, guess.joint_names, shown, 0.0 * shown, "none", reference=command.q)
        rows.append(di.Regression.without_effort(guess, log, cutoff=20.0))
        commands.append(command)
    loop = ClosedLoop(servo(guess, 3.0, 0.15), commands, unknown)
    found = OutputError(loop=loop, outputs=("position",), known=("mx_link_1", "my_link_1")).fit(rows[0] + rows[1])
    fit = found.result_
    expected = dict(zip(unknown, (4.0 / 3.0, 0.25 / 0.15, 0.018, 0.04), strict=True))
    z = [(found.factors_[name] - value) / found.factors_std_[name] for name, value in expected.items()]
    moved = np.flatnonzero(fit.std > 0.0)
    assert [fit.base.leaders[k] for k in moved] == ["Izz_link_1", "fv_joint_1", "fc_joint_1"]
    z += ((fit.values - fit.base.values(true.parameters.values)) / np.where(fit.std > 0.0, fit.std, 1.0))[moved].tolist()
    assert np.abs(z).max() < 4.0
    assert found.factors_std_["delay"] < 5e-4
    np.testing.assert_allclose(fit.values[1:3], [0.045, 0.0], atol=1e-12)  # the known weight
    assert "delay is 0.01" in fit.notes[-1].sentence
    with pytest.raises(SimulationError, match="unknown names 'bias:elbow'"):
        ClosedLoop(loop.machine, commands, ("bias:elbow",))
    with pytest.raises(IdentificationError, match="known names 'mass'"):
        OutputError(loop=loop, outputs=("position",), known=("mass",)).fit(rows[0] + rows[1])
