from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import small_robots
from identify_cases import DOWN_Y, PLANAR, RRR, UR10, arm, dense, evidence, resting, simulated_log, smooth

import dynident as di
from dynident.errors import DynidentError, DynidentWarning, IdentificationError, LogError
from dynident.friction import Tanh, Viscous
from dynident.friction.terms import ASYMMETRIC
from dynident.identify import OLS, WLS, Fit, Regression, essential_parameters, evaluate
from dynident.mechanics import inverse_dynamics
from dynident.mechanism import Actuator
from dynident.signals import Log, prepare
from dynident.signals.matching import match


@pytest.fixture(scope="module")
def robot():
    return arm(RRR)


@pytest.fixture(scope="module")
def log(robot):
    return simulated_log(robot, seconds=40.0, noise=[0.3, 0.3, 0.1], provenance={"sha256": "f" * 64})


@pytest.fixture(scope="module")
def fit(robot, log) -> Fit:
    return WLS().fit(Regression.from_log(robot, log.rows(0, 5000))).result_


def test_predict_is_regressor_times_base_parameters(fit):
    motion = smooth(3, 2500, seed=6)  # more than two tiles
    prediction = fit.predict(motion)
    W = dense(fit.mechanism, motion, fit.base)
    np.testing.assert_allclose(prediction.effort, W @ fit.values, rtol=1e-11, atol=1e-11)
    variance = np.einsum("tnb,bc,tnc->tn", W, fit.covariance, W, optimize=True) + fit.sigma**2
    np.testing.assert_allclose(prediction.std, np.sqrt(variance), rtol=1e-8)
    np.testing.assert_array_equal(prediction.t, motion.t)
    assert len(fit.predict(motion[:1]).effort) == 1
    with pytest.raises(DynidentError, match="2"):
        fit.predict(smooth(2, 5))


# ---- storing ---------------------------------------------------------------------------------------------------------


def same_fit(one: Fit, other: Fit) -> None:
    for name in ("values", "covariance", "solved", "active", "combinations", "sigma"):
        np.testing.assert_array_equal(getattr(one.posterior, name), getattr(other.posterior, name), err_msg=name)
    np.testing.assert_array_equal(one.standard.values, other.standard.values)
    for name in ("groups", "rows", "condition", "estimator", "notes", "training_relative"):
        assert getattr(one, name) == getattr(other, name), name
    assert [dict(s) for s in one.sources] == [dict(s) for s in other.sources]
    assert dict(one.options) == dict(other.options)
    np.testing.assert_array_equal(one.base.columns, other.base.columns)
    np.testing.assert_array_equal(one.base.regrouping, other.base.regrouping)
    assert one.summary() == other.summary()


def strict(text: str) -> dict:
    def refuse(token: str) -> None:
        raise AssertionError(f"{token} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_json_is_exact(robot, fit, tmp_path):
    text = fit.save(tmp_path / "fit.json").read_text()
    data = strict(text)
    assert data["kind"] == "dynident.identify.Fit"
    assert {row["verdict"] for row in data["base_parameters"]} <= {"good", "poor", "insignificant", "not excited", "dropped"}
    for again in (Fit.load(tmp_path / "fit.json", robot), Fit.load(tmp_path / "fit.json"), di.load(tmp_path / "fit.json")):
        same_fit(fit, again)


def test_json_of_partial_fits_is_exact(robot, tmp_path):
    motion = resting(smooth(3, 600), 1)
    tau = inverse_dynamics(robot, motion) + 0.1 * np.random.default_rng(0).normal(size=(600, 3))
    hidden = OLS().fit(Regression.from_motion(robot, motion, tau, skip=("joint_3",))).result_
    assert not hidden.solved.all()
    with pytest.warns(DynidentWarning, match="would make the residuals grow"):
        few = essential_parameters(evidence(robot, 600, noise=0.3)[0])
    assert not few.active.all()
    for one in (hidden, few):
        strict(one.save(tmp_path / "fit.json").read_text())
        same_fit(one, Fit.load(tmp_path / "fit.json", robot))


def test_json_finds_the_joints_and_terms_again():
    whole = arm(UR10)
    part = whole.with_terms(ASYMMETRIC).keep(["joint_2", "joint_4"])
    fit = OLS().fit(evidence(part, noise=0.1)[0]).result_
    same_fit(fit, Fit.from_dict(fit.to_dict(), whole))
    # A joint may have terms of its own, beyond the robot's.
    joints = tuple(replace(j, terms={**j.terms, "k": 3.0}) if j.name == "joint_2" else j for j in arm(RRR).joints)
    sprung = replace(arm(RRR), joints=joints)
    assert "k_joint_2" in sprung.parameters
    fit = OLS().fit(evidence(sprung, 800, noise=0.1)[0]).result_
    same_fit(fit, Fit.from_dict(fit.to_dict(), sprung))


def test_json_of_another_robot_is_refused(fit):
    data = fit.to_dict()
    Fit.from_dict(data, arm(RRR, prior=4))
    for other in (arm([RRR[0], (0.25, 0.0, 0.169, 0.0), RRR[2]]), arm(RRR, gravity=(0, 0, -3.7)), arm(PLANAR)):
        with pytest.raises(DynidentError, match=r"does not belong|has no joint"):
            Fit.from_dict(data, other)


def test_json_that_is_no_fit_is_refused(robot, tmp_path, subtests):
    for text in ["", "[]", "{}", "nonsense", '{"kind": "identify.Score"}', '{"kind": "identify.Fit"}']:
        with subtests.test(str(text)):
            (tmp_path / "fit.json").write_text(text)
            with pytest.raises(DynidentError, match=r"not a fit written by dynident|cannot read a fit from"):
                Fit.load(tmp_path / "fit.json", robot)


# ---- scoring ---------------------------------------------------------------------------------------------------------


def test_score_is_the_metrics_of_the_prediction(fit, log):
    held = log.rows(5000, 8000)
    score = fit.score(held)
    source = fit.sources[0]
    prepared = prepare(held, cutoff=source["cutoff"], decimation=round(0.4 * held.rate / source["bandwidth"]))
    prediction = fit.predict(prepared.motion)
    low = prepared.decimator.apply
    expected = evaluate(low(prepared.filtered), low(prediction.effort), fit.mechanism.coordinate_names)
    assert score.metrics.relative == pytest.approx(expected.relative, rel=1e-12)
    np.testing.assert_allclose(score.metrics.rmse, expected.rmse, rtol=1e-12)
    every = evaluate(prepared.effort, prediction.effort, fit.mechanism.coordinate_names)
    assert score.all_samples.relative == pytest.approx(every.relative, rel=1e-12)
    assert score.all_samples.samples == len(prepared) > score.metrics.samples
    assert score.metrics.relative < score.all_samples.relative
    assert score.measured.shape == score.predicted.shape == score.std.shape == (score.t.size, 3)
    assert not score.training
    assert "(held out)" in score.summary()
    assert "all samples, not low-passed" in score.summary()
    np.testing.assert_allclose(every.rmse, [0.3, 0.3, 0.1], rtol=0.1)  # the noise that was put in


def test_coverage_of_a_right_model_is_right(robot):
    log = simulated_log(robot, seconds=400.0, noise=[0.3, 0.3, 0.1], provenance={"sha256": "f" * 64})
    fit = WLS().fit(Regression.from_log(robot, log.rows(0, 40000))).result_
    score = fit.score(log.rows(40000, 80000))
    n = score.measured.size
    assert n > 1000  # enough to tell two standard deviations from three, 0.9973
    assert abs(score.coverage - 0.9545) < 4.0 * np.sqrt(0.9545 * 0.0455 / n) + 0.01


@pytest.mark.parametrize("rows", [(0, 8000), (0, 5000), (4000, 8000), (1000, 3000)])
def test_training_data_are_refused(fit, log, rows):
    with pytest.raises(IdentificationError, match="was used for the fit"):
        fit.score(log.rows(*rows))
    score = fit.score(log.rows(*rows), allow_training=True)
    assert score.training
    assert "TRAINING DATA" in score.summary()


def test_disjoint_slices_of_one_file_are_accepted(fit, log):
    assert not fit.score(log.rows(5000, 8000)).training
    assert not fit.score(log.rows(6500, 8000)).training


def test_slices_of_a_log_in_memory_are_known_again(robot):
    log = simulated_log(robot, seconds=20.0, noise=[0.3, 0.3, 0.1])
    fit = WLS().fit(Regression.from_log(robot, log.rows(0, 2500))).result_
    for part in (log, log.rows(2000, 4000), log.rows(1000, 4000).rows(500, 2500)):
        with pytest.raises(IdentificationError, match="was used for the fit"):
            fit.score(part)
    assert not fit.score(log.rows(2500, 4000)).training


def test_training_data_are_refused_after_reading_files(tmp_path, robot):
    log = Log.read(simulated_log(robot, noise=0.1).save(tmp_path / "run.csv"))
    fit = OLS().fit(Regression.from_log(robot, log)).result_
    with pytest.raises(IdentificationError, match="was used for the fit"):
        Fit.from_dict(fit.to_dict(), robot).score(Log.read(tmp_path / "run.csv"))
    memory = simulated_log(robot, seed=4, noise=0.1)
    kept = OLS().fit(Regression.from_log(robot, memory)).result_
    with pytest.raises(IdentificationError, match="was used for the fit"):
        kept.score(replace(memory, name="renamed"))
    both = OLS().fit(Regression.from_log(robot, log) + Regression.from_log(robot, memory)).result_
    for one in (log, memory):
        with pytest.raises(IdentificationError, match="was used for the fit"):
            both.score(one)
    assert both.score(simulated_log(robot, seed=5, noise=0.1)).metrics.relative < 0.1


def test_a_log_of_other_joints_is_refused(fit):
    two = simulated_log(arm(PLANAR), noise=0.1)
    with pytest.raises(DynidentError, match="do not move the same joints"):
        fit.score(two)
    with pytest.raises(LogError, match=r"robot .* lacks"):
        fit.score(replace(two, joints=("a", "b")))


def test_channels_of_joints_that_the_robot_does_not_have_are_left_out(robot, log):
    def wider(array):
        return None if array is None else np.column_stack([array[:, :1], array])

    bare = replace(log, velocity=None, acceleration=None, temperature=None, reference=None)
    more = replace(bare, joints=("mimic", *log.joints), position=wider(log.position), effort=wider(log.effort), velocity=None)
    matched = match(robot, more)
    np.testing.assert_array_equal(matched.log.position, bare.position)
    np.testing.assert_array_equal(matched.log.effort, bare.effort)
    assert any("left out" in note.sentence and "mimic moved" in note.sentence for note in matched.notes)


# ---- explaining ------------------------------------------------------------------------------------------------------


def test_a_summary_says_that_numbered_channels_were_taken_in_order(robot, log):
    numbered = replace(log, joints=tuple(f"axis{k + 1}" for k in range(len(log.joints))))
    said = WLS().fit(Regression.from_log(robot, numbered)).result_.summary()
    assert f"channels axis1 ... axis{robot.dof} are taken for {', '.join(robot.coordinate_names)}, in this order" in said
    assert "are taken for" not in WLS().fit(Regression.from_log(robot, log)).result_.summary()


def test_observability_follows_the_numbers(robot):
    fit = OLS().fit(evidence(robot, 600, noise=0.3)[0]).result_
    b = fit.base.rank
    values, active, solved = np.ones(b), np.ones(b, dtype=bool), np.ones(b, dtype=bool)
    std = np.full(b, 0.05)
    std[1], std[2], values[3] = 0.3, 0.7, 0.0
    active[4] = solved[4] = solved[5] = False
    made = fit.altered(values=values, covariance=np.diag(std**2), active=active, solved=solved)
    rows = made.observability()
    wanted = ["good", "poor", "insignificant", "insignificant", "dropped", "not excited", "good"]
    assert [row.verdict for row in rows[:7]] == wanted
    assert (rows[0].value, rows[0].relative, rows[0].unit) == (1.0, pytest.approx(0.05), fit.base.units[0])
    assert rows[5].std == rows[5].relative == np.inf
    text = made.summary().splitlines()
    assert text[0].startswith(f"arm: {b} base parameters from {fit.rows} equations, condition")
    assert len(text) >= b + 3
    for row, line in zip(rows, text[2 : 2 + b], strict=True):
        assert line.split()[0] == row.name
        assert line.endswith(row.verdict)
    assert f"verdicts: {b - 5} good, 1 poor, 2 insignificant, 1 dropped, 1 not excited" in text


def test_impossible_bodies_are_said(robot, fit):
    bad = fit.standard.replace({"m_link_2": -1.0})
    made = fit.altered(standard=bad)
    assert next(c.name for c in made.consistency() if not c.ok) == "link_2"
    assert "physically impossible" in made.summary()
    assert "link_2" in made.summary().splitlines()[-1]


def test_exported_is_what_the_standard_parameters_say(robot, fit):
    np.testing.assert_allclose(fit.exported().values, fit.values, rtol=1e-9, atol=1e-9)
    moved = fit.altered(standard=fit.standard.replace(1.1 * fit.standard.values))
    np.testing.assert_allclose(moved.exported().values, 1.1 * fit.values, rtol=1e-8, atol=1e-8)
    motion = smooth(3, 20)
    np.testing.assert_allclose(
        moved.exported().predict(motion).effort, inverse_dynamics(moved.model, motion), rtol=1e-8, atol=1e-8
    )


# ---- robots and logs -------------------------------------------------------------------------------------------------


def geared(robot):
    motors = [
        Actuator("m1", {"joint_1": 1.0}, ratio=50.0, offset=0.2, gain=0.1),
        Actuator("m2", {"joint_2": 1.0}, ratio=-80.0, gain=0.2),
        Actuator("m3", {"joint_2": 1.0, "joint_3": 1.0}, ratio=30.0, gain=0.3),
    ]
    return replace(robot, actuators=tuple(motors))


def test_motor_logs_come_to_the_joints():
    robot = geared(arm(RRR))
    joint = simulated_log(arm(RRR))
    N = np.array([[50.0, 0, 0], [0, -80.0, 0], [0, 30.0, 30.0]])
    motor_q = joint.position @ N.T + [0.2, 0, 0]
    motor_tau = joint.effort @ np.linalg.inv(N)  # tau_joint = N^T tau_motor
    np.testing.assert_allclose(motor_tau @ N, joint.effort, atol=1e-9)
    shuffle = [2, 0, 1]
    given = {"t": joint.t, "joints": ("m3", "m1", "m2"), "position": motor_q[:, shuffle], "position_side": "motor"}
    torque = Log(effort=motor_tau[:, shuffle], effort_kind="motor_torque", **given)
    current = Log(effort=(motor_tau / [0.1, 0.2, 0.3])[:, shuffle], effort_kind="motor_current", **given)
    for log in (torque, current):
        matched = match(robot, log)
        assert matched.log.joints == ("joint_1", "joint_2", "joint_3")
        np.testing.assert_allclose(matched.log.position, joint.position, atol=1e-9)
        np.testing.assert_allclose(matched.log.effort, joint.effort, atol=1e-9)
        assert any("gear and coupling" in note.sentence for note in matched.notes)
    mixed = Log(effort=joint.effort[:, shuffle], effort_kind="joint_torque", **given)
    with pytest.raises(LogError, match="no channel for joint 'joint_3'"):
        match(robot, mixed)
    square = replace(robot, actuators=(*robot.actuators[:2], replace(robot.actuators[2], coupling={"joint_3": 1.0})))
    np.testing.assert_allclose(match(square, mixed).log.effort, joint.effort, atol=1e-12)  # not in the order of the file


def test_motor_currents_beside_joint_positions_are_named_after_either():
    """Most controllers log joint angles and motor currents; the columns are numbered, or have names of joints or of motors."""
    motors = {"m1": ("joint_1", 50.0), "m2": ("joint_2", -80.0), "m3": ("joint_3", 30.0)}
    robot = replace(arm(RRR), actuators=tuple(Actuator(m, {j: 1.0}, ratio=r) for m, (j, r) in motors.items()))
    joint = simulated_log(arm(RRR))
    current = joint.effort / [50.0, -80.0, 30.0] / 0.1
    for names in (("1", "2", "3"), ("m1", "m2", "m3"), ("joint_1", "joint_2", "joint_3")):
        log = Log(joint.t, names, joint.position, current, "motor_current", gain=0.1)
        matched = match(robot, log)
        np.testing.assert_allclose(matched.log.position, joint.position, atol=1e-12)
        np.testing.assert_allclose(matched.log.effort, joint.effort, atol=1e-9)
    plain = match(arm(RRR), Log(joint.t, ("1", "2", "3"), joint.position, joint.effort, "motor_torque"))
    assert any("no gear ratios" in note.sentence for note in plain.notes)
    coupled = Log(joint.t, ("m1", "m2", "m3"), joint.position, current, "motor_current", gain=0.1)
    with pytest.raises(LogError, match=r"no channel for joint 'joint_3'.*position_side = 'motor'"):
        match(geared(arm(RRR)), coupled)


def test_joints_missing_in_the_log_are_held():
    robot = arm(UR10)
    log = simulated_log(robot.keep(["joint_4", "joint_5"]))
    matched = match(robot, log)
    assert matched.mechanism.joint_names == ("joint_4", "joint_5")
    assert "joint_1, joint_2, joint_3, joint_6" in matched.notes[0].sentence
    swapped = match(robot, log.select(["joint_5", "joint_4"]))
    np.testing.assert_array_equal(swapped.log.position, matched.log.position)
    with pytest.raises(LogError, match="channels wheel"):
        match(robot, replace(log, joints=("joint_4", "wheel")))
    with pytest.raises(LogError, match="motor channel 'wheel'"):
        match(robot, replace(log, joints=("joint_4", "wheel"), effort_kind="motor_torque"))


def test_currents_without_a_gain_are_refused():
    robot = arm(PLANAR, gravity=DOWN_Y)
    log = simulated_log(robot, effort_kind="motor_current")
    with pytest.raises(LogError, match="no drive gain"):
        Regression.from_log(robot, log)
    gains = tuple(Actuator(n, {n: 1.0}, gain=2.0) for n in robot.joint_names)
    with_gains = replace(robot, actuators=gains)
    np.testing.assert_allclose(match(with_gains, log).log.effort, 2.0 * log.effort)


# ---- the file of a fit holds the complete robot -----------------------------------------------------------------------------


def _platform_fit():
    machine = small_robots.platform_machine(ideal=True)
    logs = [machine.simulate(small_robots.platform_motion(seed, 2.0)).log for seed in (1, 2)]
    return di.MAP().fit(di.Regression.from_logs(small_robots.platform(), logs[:1], cutoff=20.0)).result_, logs[1]


def _arm_fit():
    robot = small_robots.arm3().with_gravity((0.0, 4.0, -8.0)).with_friction({"waist": Tanh() + Viscous()})
    robot = robot.lock({robot.joint_names[2]: [0.3]})
    logs = [simulated_log(robot, 8.0, seed, noise=0.05) for seed in (1, 2)]
    return di.WLS().fit(di.Regression.from_log(robot, logs[0])).result_, logs[1]


@pytest.mark.parametrize("case", [_platform_fit, _arm_fit], ids=["loops and redundant motors", "law, gravity, locked joint"])
def test_a_loaded_fit_scores_without_a_description_as_before(case, tmp_path):
    fit, log = case()
    loaded = di.load(fit.save(tmp_path / "fit.json"))
    before, after = fit.score(log), loaded.score(log)
    np.testing.assert_allclose(after.predicted, before.predicted, rtol=1e-12, atol=1e-12 * np.abs(before.predicted).max())
    assert after.metrics.relative == pytest.approx(before.metrics.relative, rel=1e-9)
    q = np.zeros((1, fit.mechanism.dof)) if not fit.mechanism.loops else None
    if q is not None:
        np.testing.assert_allclose(di.gravity(loaded.model, q), di.gravity(fit.model, q), rtol=1e-12)
    assert [a.name for a in loaded.model.actuators] == [a.name for a in fit.model.actuators]
    for own, stored in zip(fit.data.groups, loaded.data.groups, strict=True):
        np.testing.assert_array_equal(stored.R, own.R)


def test_files_of_a_newer_version_are_refused_and_older_ones_are_read(tmp_path):
    fit, log = _arm_fit()
    path = fit.save(tmp_path / "fit.json")
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "schema": data["schema"] + 1}))
    with pytest.raises(DynidentError, match=r"newer dynident \(schema 4, known up to 3\); update dynident"):
        di.load(path)
    path.write_text(json.dumps({key: value for key, value in data.items() if key not in ("schema", "factors")}))
    with pytest.warns(DynidentWarning, match="older dynident.* regression data are missing"):
        old = di.load(path)
    assert old.rows == fit.rows and old.groups == fit.groups
    assert old.score(log).metrics.relative == pytest.approx(fit.score(log).metrics.relative, rel=1e-9)
    path.write_text(json.dumps({key: value for key, value in data.items() if key not in ("schema", "mechanism")}))
    with pytest.raises(DynidentError, match=r"is not stored by older versions; give the mechanism"):
        di.load(path)
    path.write_text(json.dumps({**data, "schema": 2, "notes": ["a decision", "suspicion: joints look exchanged"]}))
    kinds = [(note.kind, note.severity, note.sentence) for note in di.load(path).notes]
    assert kinds == [("note", "info", "a decision"), ("fault", "error", "joints look exchanged")]


def test_the_summary_has_the_error_of_all_samples_in_percent(fit, log):
    held = log.rows(5000, 8000)
    said = fit.score(held).summary().partition("all samples, not low-passed: ")[2].split()[0]
    noise, size = np.sqrt(0.3**2 + 0.3**2 + 0.1**2), np.sqrt(np.mean(np.sum(held.effort**2, axis=1)))
    assert float(said) == pytest.approx(100.0 * noise / size, rel=0.1)  # the noise that was put in
