"""Faults of a log or a description are named, with their cause first; healthy logs are not accused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from benchmarks.fault_kinds import KINDS, Subject
from benchmarks.population import population
from benchmarks.shared_logs import lbr_med7
from identify_cases import RRR, arm, simulated_log, smooth

import dynident as di
from dynident.identify.regression.logs import prepared_for
from dynident.identify.regression.rows import Rows
from dynident.mechanics.dynamics import unit_gravity
from dynident.signals.quality import Finding, diagnose
from dynident.validate.diagnosis import left_out
from dynident.validate.diagnosis.faults import Data, errors_of, times
from dynident.validate.diagnosis.inspection import FAULTS, findings_of, with_findings
from dynident.validate.diagnosis.left_out import (
    FALL,
    Flexible,
    estimated,
    fall_of,
    falls,
    judged,
    left_out_errors,
    only_noise,
)
from dynident.validate.diagnosis.sample import Sample, fault, has_masses

pytestmark = pytest.mark.filterwarnings("ignore::dynident.DynidentWarning")


@cache
def healthy() -> Subject:
    """Return a three-axis arm and two logs with some noise."""
    robot = arm(RRR)
    logs = [simulated_log(robot, 15.0, seed, noise=0.02) for seed in (0, 1)]
    return Subject("arm", robot, logs[:1], logs[1:], robot)


def found(subject: Subject, **options) -> di.Verdict:
    return di.identify(subject.robot, subject.train, subject.test, **options).verdict


@pytest.mark.parametrize(
    "name",
    [
        *("gain 1.2", "one gain for all motors", "gravity compensated", "gravity half compensated"),
        *("effort clipped at 60 %, noisy", "effort drifts", "rows of zeros", "-999 for missing positions", "contacts"),
        *("effort 48 ms late", "clock 10 % slow", "clock twice too fast", "5 % of rows lost, stamps rewritten"),
        *("efforts refreshed at a tenth of the rate", "zero off by pi", "two zeros off", "positions in turns"),
        *("wrong axis", "axis turned", "joint fixed in the description", "joint coupled in the description"),
        *("lengths in millimetres", "mounted on a wall", "position turned", "efforts without sign", "efforts of another run"),
    ],
)
def test_the_cause_of_a_fault_comes_first(name):
    kind, subject = KINDS[name], healthy()
    joint = 2 if "clipped" in name else 1
    verdict = found(kind.apply(subject, joint, np.random.default_rng(0)))
    assert verdict.findings, verdict.summary()
    first = verdict.findings[0]
    assert first.kind in kind.causes, verdict.summary()
    assert not kind.joint or f"joint_{joint + 1}" in first.sentence
    assert first.severity == "warning" or not verdict.ok, verdict.summary()
    assert first.sentence in verdict.summary()  # nobody has to open a file
    assert first.kind in FAULTS


@pytest.mark.parametrize(
    "change",
    [
        lambda log: log,
        lambda log: log.rows(0, 1500),
        lambda log: log.rows(1000, 1240),
        lambda log: replace(log, position=np.round(log.position * 4096 / (2 * np.pi)) * 2 * np.pi / 4096),
        lambda log: replace(log, t=log.t + 0.1 / log.rate * np.random.default_rng(1).uniform(-1.0, 1.0, log.t.size)),
        lambda log: replace(log, effort=log.effort + 0.1 * np.random.default_rng(1).normal(size=log.effort.shape)),
    ],
    ids=["as recorded", "short", "1.2 s", "coarse encoder", "jitter", "noise"],
)
def test_healthy_logs_are_not_accused(change):
    subject = healthy()
    verdict = found(replace(subject, train=[change(subject.train[0])]))
    assert verdict.findings == (), verdict.summary()


def test_an_accepted_finding_is_recorded_and_fails_nothing(tmp_path):
    subject = KINDS["gain 1.2"].apply(healthy(), 1, np.random.default_rng(0))
    verdict = found(subject, accept=["gain"])
    assert next(check for check in verdict.checks if check.name == "suspicions").ok
    assert "accepted (gain): the efforts of joint_" in verdict.summary()
    read = di.load(verdict.save(tmp_path / "verdict.json"))
    assert (read.accepted, read.findings, read.ok) == (("gain",), verdict.findings, verdict.ok)
    with pytest.raises(di.DynidentError, match="accept names luck; codes of findings are axis, "):
        found(subject, accept=["luck"])


def test_efforts_that_change_during_the_log_are_named_with_their_growth():
    """Gain or load change with time; so may friction, when a robot warms up, which is healthy."""
    subject = healthy()
    log = subject.train[0]
    time, v = np.linspace(0.0, 1.0, len(log))[:, None], np.gradient(log.position, log.t, axis=0)
    efforts = {
        "gradually": log.effort * (1.0 + 0.2 * time),
        "at about 7.5 s": np.where(time < 0.5, log.effort, 1.2 * log.effort),
        "never": log.effort - time * (2.0 * np.sign(v) + 0.5 * v),
    }
    for when, effort in efforts.items():
        findings = di.inspect(replace(log, effort=effort), subject.robot).findings
        if when == "never":
            assert findings == ()
        else:
            assert (findings[0].kind, findings[0].severity) == ("changes", "error")
            assert when in findings[0].sentence
            assert findings[0].value == pytest.approx(0.2, abs=0.02)


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_errors_of_a_model_that_depend_on_the_pose_are_no_change_where_no_motion_repeats(seed):
    """A cogging torque that the model lacks, on a motion that moves on from pose to pose."""
    robot, small = arm(RRR), smooth(3, 3000, seed)
    speed = np.array([0.2, -0.13, 0.27])
    motion = di.Motion(small.t, 0.3 * small.q + small.t[:, None] * speed, 0.3 * small.v + speed, 0.3 * small.a)
    noise = 0.02 * np.random.default_rng(seed).normal(size=(3000, 3))
    effort = di.inverse_dynamics(robot, motion) + 2.0 * np.sin(3.0 * motion.q) + noise
    log = di.Log(motion.t, robot.coordinate_names, motion.q, effort, "joint_torque")
    assert di.inspect(log, robot, excitation=False).findings == ()


def test_efforts_of_the_description_without_noise_are_computed_ones():
    subject = healthy()
    made = [simulated_log(subject.robot, 15.0, seed) for seed in (0, 1)]
    assert [finding.kind for finding in found(replace(subject, train=made[:1], test=made[1:])).findings] == ["computed"]
    lighter = subject.robot.with_parameters(subject.robot.parameters.replace(0.9 * subject.robot.parameters.values))
    assert found(replace(subject, robot=lighter, train=made[:1], test=made[1:])).findings == ()


def test_efforts_times_a_factor_are_those_of_a_heavier_robot():
    """One wrong gain of all joints cannot be seen in a log: the robot that makes such efforts exists."""
    subject = healthy()
    heavier = subject.robot.with_parameters(subject.robot.parameters.replace(1.3 * subject.robot.parameters.values))
    assert all(body.ok for body in heavier.check_consistency(heavier.parameters))
    motion = smooth(3, 500)
    np.testing.assert_allclose(
        di.inverse_dynamics(heavier, motion), 1.3 * di.inverse_dynamics(subject.robot, motion), rtol=1e-12
    )
    assert found(KINDS["all gains 1.3"].apply(subject, 0, np.random.default_rng(0))).findings == ()


def test_a_wrong_clock_without_gravity_is_a_robot_of_other_inertia():
    """Stamps that are c times too long: c^2 times the inertia, c times the viscous friction, and the same efforts."""
    c, robot, motion = 1.1, arm(RRR, gravity=(0.0, 0.0, 0.0)), smooth(3, 500)
    slow = di.Motion(c * motion.t, motion.q, motion.v / c, motion.a / c**2)
    power = np.array([{"fv": 1, "fc": 0, "off": 0}.get(name.split("_")[0], 2) for name in robot.parameters.names])
    other = robot.with_parameters(robot.parameters.replace(robot.parameters.values * c**power))
    assert all(body.ok for body in other.check_consistency(other.parameters))
    np.testing.assert_allclose(di.inverse_dynamics(other, slow), di.inverse_dynamics(robot, motion), rtol=1e-9, atol=1e-9)


def test_a_gain_of_the_last_joint_is_friction_rotor_and_body_of_its_own():
    """A single axis shares no parameter with another joint: times 1.2 it is another possible axis."""
    robot = arm(RRR[:1])
    other = robot.with_parameters(robot.parameters.replace(1.2 * robot.parameters.values))
    motion = smooth(1, 500)
    np.testing.assert_allclose(di.inverse_dynamics(other, motion), 1.2 * di.inverse_dynamics(robot, motion), rtol=1e-12)


def test_half_of_gravity_is_another_robot_only_if_no_other_torque_has_its_first_moments():
    """An arm of one axis with half of its first moments and all of its inertia has half of its gravity torque, no other change.

    In RRR the first moments of the outer bodies couple the joints too: gravity torques are outside of what bodies and friction
    can make, g(q) != Y(q, v, a) phi for every phi, so half of them contradict the rest.
    """
    motion = {n: smooth(n, 500) for n in (1, 3)}
    robot, half = arm(RRR[:1], gravity=(0.0, -9.81, 0.0)), []
    for name, value in zip(robot.parameters.names, robot.parameters.values, strict=True):
        half.append(0.5 * value if name.startswith(("mx", "my", "mz")) else value)
    other = robot.with_parameters(robot.parameters.replace(half))
    assert all(body.ok for body in other.check_consistency(other.parameters))
    compensated = di.inverse_dynamics(robot, motion[1]) - 0.5 * di.gravity(robot, motion[1].q)
    np.testing.assert_allclose(di.inverse_dynamics(other, motion[1]), compensated, atol=1e-12)
    assert np.abs(di.gravity(robot, motion[1].q)).max() > 0.1
    robot = arm(RRR)
    Y, g = di.regressor(robot, motion[3]).reshape(-1, len(robot.parameters)), di.gravity(robot, motion[3].q).ravel()
    left = g - Y @ np.linalg.lstsq(Y, g, rcond=1e-10)[0]
    assert np.linalg.norm(left) > 0.01 * np.linalg.norm(g)


def test_a_share_of_gravity_that_description_and_data_doubt_is_named():
    """The share of gravity is sure by its own deviation; the description alone would not suffice."""
    case = list(population(2, 15, ("rrr",)))[1]
    subject = Subject("rrr", case.described, [case.train], [], case.true)
    compensated = KINDS["gravity half compensated"].apply(subject, 0, np.random.default_rng(0))
    first = di.inspect(compensated.train[0], case.described).findings[0]
    assert (first.kind, first.severity) == ("clock", "error")  # bodies of this description are too light for either
    assert "efforts contain only 53% of the gravity torques" in first.sentence
    assert di.inspect(case.train, case.described).usable


def test_gravity_within_a_tenth_of_the_described_is_no_finding(shared_data):
    """The description doubts a third of the gravity torques, the data 4 % of them."""
    shared = lbr_med7(shared_data)
    half = replace(shared.train[0], effort=-shared.train[0].effort).rows(0, len(shared.train[0]) // 2)  # opposite signs
    fit = di.MAP().fit(di.Regression.from_logs(shared.robot, [half])).result_
    assert not {"clock", "gravity"} & {finding.kind for finding in findings_of(with_findings(fit))}


def test_a_finding_that_the_description_suggests_is_tested_by_left_out_stretches():
    data = data_of(KINDS["gain 1.2"].apply(healthy(), 1, np.random.default_rng(0)))
    said = fault("gain", "effort", "said")

    def tested(*factors):
        mended = times(np.array(factors))(data)
        return [each.severity for each in judged(said, errors_of(data), errors_of(mended), 1)]

    assert tested(1.0, 1.0 / 1.2, 1.0) == ["error"]  # it proves
    assert tested(1.0, 1.0, 1.0) == ["warning"]  # it neither proves nor refutes
    assert tested(1.0, 2.0, 1.0) == []


def test_efforts_held_on_one_side_by_gravity_are_no_magnitudes():
    case = list(population(2, 31))[1]
    assert np.all(case.slow.effort > 0.0)
    assert di.inspect(case.slow, case.described).usable


def test_masses_of_round_off_are_no_description():
    """Bodies that are fixed to each other leave 1e-17 kg m^2 of a robot without masses, which accused all signs."""
    robot = arm(RRR)
    tiny = robot.with_parameters(robot.parameters.replace(1e-17 * robot.parameters.values))
    assert (has_masses(robot), has_masses(tiny)) == (True, False)


def test_unit_gravity_is_the_gravity_of_robots_with_other_gravity():
    robot, motion = arm(RRR), smooth(3, 50)
    each = [di.gravity(robot.with_gravity(axis), motion.q) for axis in np.eye(3)]
    np.testing.assert_allclose(unit_gravity(robot, motion.q), np.stack(each, axis=2), atol=1e-12)


def test_outliers_are_counted_and_left_out():
    log = healthy().train[0]
    effort = np.array(log.effort)
    effort[500::500, 1] = -999.0
    (finding,) = diagnose(replace(log, effort=effort)).of("outliers")
    count = len(effort[500::500])
    assert finding.sentence.startswith(f"{count} of {log.t.size} samples are outliers (0 whole rows), most in effort:joint_2")
    assert finding.channel == "effort:joint_2"
    spoiled, clean = (
        di.MAP().fit(di.Regression.from_logs(healthy().robot, [each])).result_ for each in (replace(log, effort=effort), log)
    )
    np.testing.assert_allclose(spoiled.values, clean.values, atol=0.02 * np.abs(clean.values).max())


def test_rows_of_zeros_in_a_fortieth_of_the_log_are_outliers_whatever_the_zero_of_the_positions():
    """Each spoils the distances of three samples to their neighbours: more than one in twenty."""
    log = healthy().train[0]
    kept = np.random.default_rng(0).random(len(log)) >= 0.025
    spoiled = replace(log, position=(log.position + 9.0) * kept[:, None], effort=log.effort * kept[:, None])
    (finding,) = diagnose(spoiled).of("outliers")
    assert f"({np.sum(~kept)} whole rows)" in finding.sentence


def test_the_noise_floor_is_that_of_the_log():
    """White noise of 0.2 N m at 200 Hz, of which the band of the fit has its share; a true model has no larger error."""
    robot = healthy().robot
    run, other = (simulated_log(robot, 15.0, seed, noise=0.2) for seed in (0, 1))
    done = di.identify(robot, run, other)
    floor, band = done.verdict.noise_floor, done.fit.sources[0]["bandwidth"]
    size = np.sqrt(np.mean(np.sum(run.effort**2, axis=1)))
    assert floor == pytest.approx(0.2 * np.sqrt(3.0 * band / 100.0) / size, rel=0.3)
    assert 0.7 < done.scores[0].metrics.relative / floor < 2.0
    assert "noise floor" in done.summary()


def test_the_noise_floor_is_no_larger_than_the_training_error():
    """Ripple above the band of the motion is no noise within it."""
    robot = healthy().robot
    run, other = (simulated_log(robot, 15.0, seed, noise=0.02) for seed in (0, 1))
    ripple = 0.5 * np.std(run.effort, axis=0) * np.sin(2.0 * np.pi * 60.0 * run.t + np.sin(7.0 * run.t))[:, None]
    done = di.identify(robot, replace(run, effort=run.effort + ripple), other)
    assert done.verdict.noise_floor <= done.fit.training_relative < 0.01


PAGE = Path(__file__).parents[3] / "docs" / "howto" / "verdict_fails.md"


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not here")
def test_the_documentation_lists_every_code():
    page = PAGE.read_text(encoding="utf-8")
    assert [code for code in FAULTS if f"| `{code}` |" not in page] == []
    assert all(set(kind.causes) - {"check efforts", "unit_suspect"} <= set(FAULTS) for kind in KINDS.values())


def test_a_link_of_another_length_is_named_with_its_number():
    case = list(population(4, 11, ("rrr", "elbow 4", "six axes")))[3]
    subject = Subject("elbow", case.described, [case.train], [case.like], case.true)
    spoiled = KINDS["a link 30 % longer"].apply(subject, 0, np.random.default_rng(0))
    first = di.inspect(spoiled.train[0], spoiled.robot).findings[0]
    assert first.kind == "lengths", first
    assert first.value == pytest.approx(1.0 / 1.3, rel=0.02)


def test_one_gain_of_all_motors_and_heavier_bodies_give_the_same_efforts():
    """No log can tell them apart, so that the message names both and accuses nothing."""
    robot = arm(RRR)
    log = simulated_log(robot, 15.0, 0, noise=0.02)
    heavier = robot.with_parameters(robot.parameters.replace(2.0 * np.asarray(robot.parameters.values)))
    motion = smooth(robot.dof, 200)
    np.testing.assert_allclose(
        2.0 * di.inverse_dynamics(robot, motion), di.inverse_dynamics(heavier, motion), rtol=1e-12, atol=1e-9
    )
    inspected = di.inspect(replace(log, effort=2.0 * np.asarray(log.effort)), robot)
    masses = next(finding for finding in inspected.findings if finding.kind == "masses")
    assert inspected.usable
    assert "masses" in masses.sentence and "gain" in masses.sentence


def test_errors_of_left_out_stretches_do_not_depend_on_units_nor_on_what_moves_nothing():
    motion, rng = smooth(2, 800), np.random.default_rng(4)
    W = rng.normal(size=(2, 3, 800))
    effort = np.einsum("nbt,b->tn", W, [1.0, -2.0, 0.5]) + 0.1 * rng.normal(size=(800, 2))
    expected = left_out_errors(W, effort, motion)
    other = np.concatenate([W * np.array([1e6, 1.0, 1e-6])[:, None], np.zeros((2, 1, 800))], axis=1)
    np.testing.assert_allclose(left_out_errors(other, effort, motion), expected, rtol=1e-6)


def data_of(subject: Subject) -> Data:
    log, robot = subject.train[0], subject.robot
    rows, base = Rows(robot, "gls"), di.base_parameters(robot)
    prepared = prepared_for(rows, log, {})
    return Data.of(Sample.of(rows, base.columns, prepared.motion, prepared.effort, None, ()))


@pytest.mark.parametrize("name", ["gain 1.2", "effort turned", "clock 10 % slow", "zero off by pi", "gravity half compensated"])
def test_the_search_ends_at_the_noise_but_not_with_a_fault(name):
    """No fault can lower the errors of left-out stretches below the noise, the second differences of neighbouring windows."""
    robot = healthy().robot
    noisy = Subject("arm", robot, [simulated_log(robot, 15.0, 0, noise=0.4)], [], robot)
    well = data_of(noisy)
    assert well.sample.adjacent
    assert only_noise(well.rows(), well.right(), well.motion)
    spoiled = data_of(KINDS[name].apply(noisy, 1, np.random.default_rng(0)))
    assert not only_noise(spoiled.rows(), spoiled.right(), spoiled.motion)


def test_the_fall_of_is_that_of_a_believed_fault_in_one_joint():
    """Errors of three joints, of which one falls: the mean of g_k reaches its limit exactly there."""
    after = np.ones((10, 3))
    before = after * [1.0, 1.0, np.exp(fall_of(3))]
    assert falls(before, after)[0] == pytest.approx(FALL)


def test_contradicted_friction_is_a_warning_of_the_verdict():
    """`test_identify_map` makes the note; here a fit that has it is judged."""
    subject = healthy()
    fit = di.MAP().fit(di.Regression.from_logs(subject.robot, subject.train)).result_
    said = Finding("negative_terms", "", "warning", "the data contradict non-negative friction: fv_joint_2 = -1 +- 0.1")
    verdict = di.judge(fit.noted(said), [fit.score(subject.test[0])])
    assert verdict.ok
    assert [finding.sentence for finding in verdict.findings] == [said.sentence]
    assert said.sentence in verdict.summary()


def test_a_dead_effort_comes_before_a_richer_motion():
    subject = healthy()
    dead = replace(subject.train[0], effort=subject.train[0].effort * [1.0, 0.0, 1.0])
    first, *others = di.inspect(dead, subject.robot).findings
    assert (first.kind, first.channel) == ("dead", "effort:joint_2")
    (hidden,) = [finding for finding in others if finding.kind == "excitation"]
    assert "no usable efforts of joint_2" in hidden.sentence


def test_rows_with_a_share_of_gravity_are_between_those_without_and_with_it():
    robot, motion = arm(RRR), smooth(3, 4000)
    columns = np.arange(len(robot.parameters))

    def torque(robot, share):
        sample = Sample.of(Rows(robot), columns, motion, np.zeros((4000, 3)), None, ())
        return np.einsum("nbt,b->tn", replace(Data.of(sample), gravity=share).rows(), robot.parameters.values)

    weightless, heavy = torque(robot.with_gravity((0.0, 0.0, 0.0)), 1.0), torque(robot, 1.0)
    share = torque(robot, 0.25)
    assert np.abs(heavy - weightless).max() > 1.0
    np.testing.assert_allclose(share, weightless + 0.25 * (heavy - weightless), atol=0.01 * np.abs(heavy).max())


def test_the_first_weights_of_left_out_stretches_do_not_depend_on_the_length_of_the_log(monkeypatch):
    """They count a log as one sample: friction has the same prior in a log and in that log recorded twice."""
    monkeypatch.setattr(left_out, "PASSES", 1)
    rng = np.random.default_rng(0)
    W, effort, v = rng.normal(size=(2, 3, 50)), rng.normal(size=(50, 2)), rng.normal(size=(50, 2))

    def solved(times: int) -> np.ndarray:
        motion = di.Motion(np.arange(50.0 * times), *(np.tile(v, (times, 1)) for _ in range(3)))
        columns = Flexible.of(np.tile(W, (1, 1, times)), np.tile(effort, (times, 1)), motion)
        return columns._solved(columns.Z.transpose(0, 2, 1) @ columns.Z)[0][:, 3:-1]  # of friction

    np.testing.assert_allclose(solved(2), solved(1), rtol=1e-9, atol=1e-12)


def test_a_gain_is_sure_where_the_squared_error_of_all_joints_falls_little():
    """The value and its deviation are those of the planted gain; left-out stretches alone accept no hypothesis here."""
    case = list(population(5, 13, ("rrr", "elbow 4", "six axes")))[3]
    subject = Subject("elbow", case.described, [case.train], [], case.true)
    spoiled = KINDS["gain 1.3"].apply(subject, 2, np.random.default_rng(0))
    first = di.inspect(spoiled.train[0], spoiled.robot, excitation=False).findings[0]
    assert (first.kind, first.channel) == ("gain", "effort:joint_3")
    assert first.value == pytest.approx(1.3, rel=0.1)


def test_the_coefficient_of_a_column_has_the_deviation_of_its_estimates():
    """Over many draws of white noise the estimates spread as the jackknife says of each."""
    rng, count, found = np.random.default_rng(0), 400, list[tuple[float, float]]()
    t = np.linspace(0.0, 20.0, count)
    q = np.column_stack([np.sin(1.3 * t) + np.sin(2.9 * t + 1.0), np.cos(1.9 * t) + np.sin(3.7 * t)])
    v = np.gradient(q, t, axis=0)
    moved = di.Motion(t, q, v, np.gradient(v, t, axis=0))
    W, column = rng.normal(size=(2, 3, count)), rng.normal(size=(count, 2))
    exact = np.einsum("nbt,b->tn", W, [1.0, 2.0, 3.0]) + 0.5 * column
    for _ in range(40):
        found.append(estimated(W, exact + rng.normal(size=(count, 2)), moved, column))
    values, deviations = np.array(found).T
    assert abs(values.mean() - 0.5) < 4.0 * np.std(values) / np.sqrt(40.0)
    assert np.mean(deviations) == pytest.approx(np.std(values, ddof=1), rel=0.4)


def test_deviations_are_finite_where_possible_bodies_limit_the_fit():
    """Near these limits the stated covariance may be smaller than that of the noise; their difference was negative."""
    case = list(population(5, 14, ("rrr", "elbow 4", "six axes")))[1]
    subject = Subject("rrr", case.described, [case.train], [case.like], case.true)
    spoiled = KINDS["gain 2"].apply(subject, 1, np.random.default_rng(0))
    fit = di.MAP().fit(di.Regression.from_logs(spoiled.robot, spoiled.train)).result_
    assert np.all(np.isfinite(fit.std))
