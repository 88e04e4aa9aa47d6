from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from identify_cases import PLANAR, RRR, arm, evidence, resting, simulated_log, smooth

from dynident.errors import DynidentError
from dynident.identify import MAP, OLS, WLS, Regression, base_parameters, evaluate
from dynident.mechanics import inverse_dynamics, regressor
from dynident.signals import prepare
from dynident.signals.quality import note
from dynident.validate import cross_validate, judge, split, time_blocks
from dynident.validate.verdict import _misfit


@pytest.fixture(scope="module")
def robot():
    return arm(RRR)


@pytest.fixture(scope="module")
def log(robot):
    return simulated_log(robot, seconds=40.0, noise=[0.3, 0.3, 0.1])


def test_split_cuts_in_time(log):
    first, last = split(log, 0.6, gap=1.0)
    assert (len(first), len(last)) == (4800, 8000 - 4800 - 200)
    assert first.t[-1] + 1.0 < last.t[0]
    for fraction in (0.0, 1.0, -0.1, np.nan):
        with pytest.raises(DynidentError, match="fraction is"):
            split(log, fraction)
    with pytest.raises(DynidentError, match="too short to split"):
        split(log, 0.9, gap=100.0)


@pytest.mark.parametrize("estimator", [OLS(), WLS()], ids=["OLS", "WLS"])
def test_cross_validation_is_refitting_with_stored_data(robot, log, estimator):
    blocks = time_blocks(robot, log, folds=4)
    result = cross_validate(blocks, estimator)
    base, whole = base_parameters(robot), prepare(log)
    W, tau = [], []
    for k in range(4):
        p = prepare(log.rows(2000 * k, 2000 * (k + 1)), cutoff=whole.cutoff.frequency, decimation=whole.decimator.factor)
        W.append(p.decimator.apply(regressor(robot, p.motion)[:, :, base.columns]))
        tau.append(p.decimator.apply(p.filtered))
    squares, efforts = [], []
    for k in range(4):
        rows = np.concatenate([w for i, w in enumerate(W) if i != k])
        y = np.concatenate([x for i, x in enumerate(tau) if i != k])
        sigma = np.ones(3)
        if isinstance(estimator, WLS):
            sigma = WLS().fit(_merged(blocks, k)).sigma_
        flat = (rows / sigma[:, None]).reshape(-1, base.rank)
        beta = np.linalg.lstsq(flat, (y / sigma).ravel(), rcond=None)[0]
        e = tau[k] - W[k] @ beta
        assert result.relative[k] == pytest.approx(np.linalg.norm(e) / np.linalg.norm(tau[k]), rel=1e-5)
        np.testing.assert_allclose(result.rmse[k], np.sqrt(np.mean(e**2, axis=0)), rtol=1e-5)
        squares.append(np.sum(e**2))
        efforts.append(np.sum(tau[k] ** 2))
    assert result.overall == pytest.approx(np.sqrt(sum(squares) / sum(efforts)), rel=1e-5)
    assert result.joints == robot.joint_names
    assert f"4-fold cross-validation over time: {100 * result.overall:.2f} %" in result.summary()


def _merged(blocks, left_out):
    others = [b for i, b in enumerate(blocks) if i != left_out]
    result = others[0]
    for other in others[1:]:
        result = result + other
    return result


def test_blocks_must_be_comparable(robot, log):
    with pytest.raises(DynidentError, match="got 1 block"):
        cross_validate([evidence(robot)[0]])
    with pytest.raises(DynidentError, match="cannot cut 100 samples into 5 blocks"):
        time_blocks(robot, log.rows(0, 100))
    with pytest.raises(DynidentError, match="at least 2"):
        time_blocks(robot, log, folds=1)
    motion = smooth(3, 300)
    tau, base = inverse_dynamics(robot, motion), base_parameters(robot)
    part = Regression.from_motion(robot, motion, tau, base, skip=("joint_1",))
    with pytest.raises(DynidentError, match="block 1 has other joints"):
        cross_validate([Regression.from_motion(robot, motion, tau, base), part])


# ---- the verdict -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def other(robot, log):
    """Return the log whose last third has another motion: `log` is periodic, and its end would show repeatability only."""
    new, cut = simulated_log(robot, seconds=40.0, seed=5, noise=[0.3, 0.3, 0.1]), 2 * len(log) // 3
    position, effort = (np.vstack([x[:cut], y[cut:]]) for x, y in ((log.position, new.position), (log.effort, new.effort)))
    return replace(log, position=position, effort=effort)


def held_out(robot, log, estimator):
    """Return the fit to the first two thirds of a log, and its score on the rest."""
    first, last = split(log)
    fit = estimator.fit(Regression.from_logs(robot, [first])).result_
    return SimpleNamespace(fit=fit, score=fit.score(last))


@pytest.fixture(scope="module")
def result(robot, other):
    return held_out(robot, other, MAP())


@pytest.fixture(scope="module")
def plain(robot, other):
    return held_out(robot, other, WLS(recovery="physical"))


def by_name(verdict):
    return {check.name: check for check in verdict.checks}


COMMON = {
    "held_out_error",
    "generalisation",
    "joints",
    "coverage",
    "against_description",
    "leverage",
    "suspicions",
    "efforts",
    "passivity",
    "possible_bodies",
}


def test_a_good_model_is_validated(result, plain):
    for found, more in ((result, {"against_least_squares"}), (plain, {"condition", "excitation", "precision"})):
        verdict = judge(found.fit, [found.score])
        assert verdict.validated
        assert set(by_name(verdict)) == COMMON | more
    robot = result.fit.mechanism  # this description is the truth but for its friction: nothing is better on held-out data
    failed = {check.name for check in verdict.checks if not check.ok}
    assert failed <= {"against_description"}, verdict.summary()
    worse = replace(result.score, description=2.0 * result.score.metrics.relative)
    assert robot.dof == 3
    good = judge(result.fit, [worse])
    assert good.ok, good.summary()
    assert "validated and all checks passed" in good.summary()


def test_json_of_a_verdict(result):
    data = judge(result.fit, [result.score]).to_dict()
    assert set(data) == {"kind", "robot", "ok", "validated", "checks", "scores", "findings", "accepted", "noise_floor"}
    assert (data["kind"], data["validated"], data["robot"]) == ("dynident.validate.Verdict", True, "arm")
    for check in data["checks"]:
        assert set(check) == {"name", "ok", "value", "limit", "sentence", "next_step"}
        assert isinstance(check["ok"], bool)
        assert isinstance(check["value"], float)
    (score,) = data["scores"]
    assert score["relative"] == result.score.metrics.relative
    assert score["all_samples_relative"] == result.score.all_samples.relative
    assert score["training"] is False
    assert {"log", "coverage", "joints", "samples", "rmse", "nrms", "r2", "worst"} <= set(score)


def test_nothing_is_validated_without_held_out_data(result, robot, log):
    for scores in ([], [replace(result.score, training=True)]):
        verdict = judge(result.fit, scores)
        assert not verdict.validated
        assert not verdict.ok
        assert "NOT VALIDATED" in verdict.summary()
        assert "held_out_error" not in by_name(verdict)
        assert verdict.to_dict()["ok"] is False


def test_every_check_of_the_default_can_fail(result):
    fit, score = result.fit, result.score
    metrics = replace(score.metrics, relative_per_joint=np.array([0.1, 0.9, 0.1]), rmse=10.0 * fit.sigma)
    worse = replace(score.metrics, relative=5.0 * score.metrics.relative)  # by far more than noise makes of the parameters
    assert 2.0 * score.open_share < 0.5 * worse.relative
    for check, wrong in {
        "joints": replace(score, metrics=metrics),
        "coverage": replace(score, coverage=0.6),
        "against_description": replace(score, metrics=worse, description=0.5 * worse.relative),
        "against_least_squares": replace(score, metrics=worse),
        "leverage": replace(score, leverage=np.array([30.0, 1.0, 1.0]), open_share=0.4),
    }.items():
        assert not by_name(judge(fit, [score, wrong]))[check].ok, check
    assert "joint_2 90 %" in by_name(judge(fit, [replace(score, metrics=metrics)]))["joints"].sentence
    far = by_name(judge(fit, [replace(score, leverage=np.array([3.0, 1.0, 1.0]), open_share=0.4)]))["leverage"]
    assert (far.value, far.limit, far.shown) == (0.4, 0.1, ("40.00 %", "10.00 %"))  # what is shown is what decides
    doubtful = replace(fit.noted(note("order", "the columns look exchanged", "error")), data=replace(fit.data, logs=()))
    assert by_name(judge(doubtful))["suspicions"].sentence == "the columns look exchanged [order]"
    fewer = replace(fit, data=replace(fit.data, groups=fit.data.groups[:2]))
    fewer = fewer.altered(sigma=fit.sigma[:2], training_std=fit.posterior.training_std[:2])
    assert "joint_3" in by_name(judge(fewer))["efforts"].sentence
    k = fit.standard.index("ia_joint_2")
    turned = fit.altered(standard=fit.standard.replace({"ia_joint_2": -5.0 * fit.standard_std[k]}))
    assert "ia_joint_2" in by_name(judge(turned))["passivity"].sentence
    doubt = fit.altered(standard=fit.standard.replace({"ia_joint_2": -1.0 * fit.standard_std[k]}))
    assert by_name(judge(doubt))["passivity"].ok  # by chance below zero


def test_joints_whose_effort_is_noise_are_not_called_predicted(result):
    fit, score = result.fit, result.score
    metrics = replace(score.metrics, relative_per_joint=np.array([0.1, 0.9, 0.1]), rmse=fit.sigma)
    check = by_name(judge(fit, [replace(score, metrics=metrics)]))["joints"]
    assert check.ok
    assert check.sentence == "every joint is predicted but for noise, which is most of the effort of: joint_2 90 %"


def test_a_constant_is_not_taken_for_a_gain(result):
    """Friction of a motion in one direction is an effort that hardly varies: more of it is no other gain."""
    fit, score = result.fit, result.score
    rng = np.random.default_rng(0)
    size = 50.0 * np.max(fit.sigma)

    def judged(predicted, measured):
        one = np.broadcast_to(predicted[:, None], score.measured.shape)
        two = measured[:, None] + rng.normal(size=one.shape) * fit.sigma
        told = replace(score, predicted=one, measured=two, metrics=evaluate(two, one, score.joints, score.t))
        return by_name(judge(fit, [told]))

    wave = np.sin(score.t)
    assert "gains" not in judged(size * (2.0 + 0.1 * wave), size * (3.0 + 0.1 * wave))
    assert "1.5 times those of the model" in judged(size * wave, 1.5 * size * wave)["gains"].sentence


@pytest.mark.parametrize(("noise", "ok"), [(1.0, True), (4.0, False)])
def test_noise_does_not_shrink_with_the_efforts(result, noise, ok):
    """A held-out motion with a tenth of the efforts has the same noise: ten times the relative error."""
    fit, score = result.fit, result.score
    weak = 0.1 * score.predicted
    told = weak + noise * (score.measured - score.predicted)
    metrics = evaluate(told, weak, score.joints, score.t)
    check = by_name(judge(fit, [replace(score, predicted=weak, measured=told, metrics=metrics)]))["generalisation"]
    assert metrics.relative > 5.0 * score.metrics.relative
    assert check.ok == ok


def test_every_check_can_fail(plain):
    fit, score = plain.fit, plain.score
    poor = replace(score, metrics=replace(score.metrics, relative=0.3))
    checks = by_name(judge(fit, [score, poor]))  # the worst log counts
    assert not checks["held_out_error"].ok
    assert checks["held_out_error"].value == 0.3
    assert not checks["generalisation"].ok
    assert not by_name(judge(fit.altered(condition=5e3), [score]))["condition"].ok
    assert checks["precision"].value == np.mean(fit.std / np.abs(fit.values) <= 0.1) > 0.0
    few = fit.altered(covariance=1e6 * fit.covariance)
    assert not by_name(judge(few, [score]))["precision"].ok
    i = fit.base.leaders.index("fv_joint_2")
    negative = fit.altered(values=np.where(np.arange(fit.base.rank) == i, -9.0 * fit.std[i], fit.values))
    check = by_name(judge(negative, [score]))["passivity"]
    assert not check.ok
    assert "fv_joint_2" in check.sentence
    for bad in (negative, few):
        verdict = judge(bad, [score])
        assert verdict.validated
        assert not verdict.ok
        assert "some checks failed" in verdict.summary()


def test_hidden_parameters_fail_the_excitation_check(robot, tmp_path):
    motion = resting(smooth(3, 600), 1)
    tau = inverse_dynamics(robot, motion) + 0.05 * np.random.default_rng(0).normal(size=(600, 3))
    fit = WLS().fit(Regression.from_motion(robot, motion, tau)).result_
    check = by_name(judge(fit))["excitation"]
    assert not check.ok
    assert check.value == np.count_nonzero(~fit.solved)
    assert "not excited" in check.sentence
    silent = Regression.from_motion(arm(PLANAR), smooth(2, 300), np.zeros((300, 2)))
    text = judge(OLS().fit(silent).result_).save(tmp_path / "verdict.json").read_text()  # even then a verdict is JSON
    json.loads(text, parse_constant=lambda token: pytest.fail(f"{token} is not JSON"))


@pytest.mark.parametrize(
    ("error", "floor", "warned"),
    [(0.015, 1e-4, False), (0.03, 1e-4, True), (0.03, 0.0066, True), (0.03, 0.0067, False), (0.3, 0.07, False)],
)
def test_an_error_of_two_per_cent_that_is_mostly_not_noise_is_warned_of(error, floor, warned):
    """A ratio of 4.5 leaves 95 % of the squared error to the model."""
    metrics = SimpleNamespace(relative=error)
    score = SimpleNamespace(metrics=metrics, measured=np.eye(2), predicted=np.diag([1.0, 0.9]), joints=("one", "two"))
    found = _misfit([score], floor)
    assert [(each.kind, each.severity, each.value) for each in found] == [("misfit", "warning", error / floor)] * warned
    assert all("of the squared held-out error is not noise" in each.sentence and "in two" in each.sentence for each in found)
