from __future__ import annotations

import warnings

import numpy as np
import pytest
from identify_cases import DOWN_Y, LWR, PLANAR, RRR, UR10, arm, check_estimator, evidence, resting, smooth, truth

from dynident.errors import ConditionWarning, DynidentWarning, IdentificationError
from dynident.friction.terms import ASYMMETRIC, SYMMETRIC
from dynident.identify import IRLS, OLS, WLS, Regression, base_parameters, essential_parameters
from dynident.mechanics import Motion, inverse_dynamics
from dynident.signals.filters import Decimator

SIGMA = np.array([2.0, 0.5, 0.1])


@pytest.mark.parametrize("Estimator", [OLS, WLS])
def test_conformance(Estimator):
    check_estimator(Estimator)


@pytest.mark.parametrize("Estimator", [OLS, WLS])
@pytest.mark.parametrize("rows", [UR10, LWR], ids=["6 axes", "7 axes"])
def test_truth_without_noise_is_recovered(Estimator, rows):
    regression, beta = evidence(arm(rows, SYMMETRIC), samples=1500)
    fit = Estimator().fit(regression).result_
    assert np.max(np.abs(fit.values - beta)) <= 1e-8 * np.max(np.abs(beta))
    np.testing.assert_allclose(fit.values, beta, rtol=1e-8, atol=1e-9)
    assert fit.training_relative < 1e-11
    assert {"fv_joint_1", "fc_joint_6", "off_joint_2"} <= set(fit.base.leaders)


@pytest.mark.parametrize("terms", [ASYMMETRIC, (*SYMMETRIC, "k"), ("ia", "fvp", "fvn", "fcp", "fcn", "k")])
def test_asymmetric_friction_and_springs_are_recovered(terms):
    robot = arm(RRR, terms)
    regression, beta = evidence(robot, samples=800, noise=1e-3)
    fit = WLS().fit(regression).result_
    own = [i for i, name in enumerate(fit.base.leaders) if name.startswith(("fvp", "fvn", "fcp", "fcn", "k_"))]
    assert len(own) >= 3
    assert np.all(np.abs(fit.values - beta)[own] < 5 * fit.std[own])
    assert all(fit.observability()[i].verdict == "good" for i in own)


# ---- with noise: many runs of one three-axis arm ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs():
    """80 noisy runs of one motion, estimated by OLS and WLS."""
    robot = arm(RRR)
    base = base_parameters(robot)
    motion = smooth(3, 300, seed=3, rate=25.0)
    tau, rng = inverse_dynamics(robot, motion), np.random.default_rng(0)
    fits = {"OLS": [], "WLS": []}
    for _ in range(80):
        r = Regression.from_motion(robot, motion, tau + rng.normal(size=tau.shape) * SIGMA, base)
        fits["OLS"].append(OLS().fit(r).result_)
        fits["WLS"].append(WLS().fit(r).result_)
    return robot, base.values(robot.parameters.values), fits


def chi_square(fits, beta):
    return np.array([(f.values - beta) @ np.linalg.solve(f.covariance, f.values - beta) for f in fits])


def test_errors_lie_inside_the_predicted_covariance(runs):
    _, beta, fits = runs
    b = beta.size
    mean = np.mean(chi_square(fits["WLS"], beta)) / b
    assert abs(mean - 1.0) < 4.0 * np.sqrt(2.0 / (80 * b)) + 2.0 / 250  # 4 sigma, and sigma is estimated too
    z = np.array([(f.values - beta) / f.std for f in fits["WLS"]])
    assert np.max(np.abs(z.mean(axis=0))) < 4.5 / np.sqrt(80)  # unbiased, every parameter
    assert np.all(np.abs(z.std(axis=0) - 1.0) < 4.5 / np.sqrt(160))


def test_noise_of_every_joint_is_recovered(runs):
    _, _, fits = runs
    for name, slack in (("WLS", 0.005), ("OLS", 0.5)):  # OLS drags the errors of a noisy joint into the others
        sigma = np.array([f.sigma for f in fits[name]])
        spread = sigma.std(axis=0) / np.sqrt(80)
        assert np.all(np.abs(sigma.mean(axis=0) - SIGMA) < 4.0 * spread + slack * SIGMA)


def test_weights_help_where_the_noise_differs(runs):
    _, beta, fits = runs
    scale = np.mean([f.std for f in fits["WLS"]], axis=0)
    error = {name: np.mean([((f.values - beta) / scale) ** 2 for f in fits[name]]) for name in fits}
    assert error["OLS"] > 3.0 * error["WLS"]


def test_the_band_covers_new_measurements(runs):
    robot, _, fits = runs
    new = smooth(3, 200, seed=8, rate=25.0)
    tau, rng = inverse_dynamics(robot, new), np.random.default_rng(1)
    inside = []
    for fit in fits["WLS"][:60]:
        prediction = fit.predict(new)
        measured = tau + rng.normal(size=tau.shape) * SIGMA
        inside.append(np.abs(measured - prediction.effort) <= 2.0 * prediction.std)
    share, n = np.mean(inside), np.size(inside)
    # Errors of one run share its parameters and its sigma, so a run, not a sample, is the unit of the binomial bound.
    per_run = np.mean(inside, axis=(1, 2))
    assert abs(share - 0.9545) < 4.0 * per_run.std() / np.sqrt(60) + 2.0 / np.sqrt(n) * 0.21 + 0.003


def test_decimated_rows_have_honest_covariances():
    robot = arm(RRR, ("fv", "fc"))
    base = base_parameters(robot)
    motion = smooth(3, 2000, seed=5, rate=100.0)
    tau, rng, decimator = inverse_dynamics(robot, motion), np.random.default_rng(2), Decimator(5, 100.0)
    beta = base.values(robot.parameters.values)
    fits = []
    for _ in range(40):
        noisy = tau + rng.normal(size=tau.shape) * SIGMA
        fits.append(WLS().fit(Regression.from_motion(robot, motion, noisy, base, decimator)).result_)
    mean = np.mean(chi_square(fits, beta)) / beta.size
    # Without the correction of the transition band (independence 0.77) the mean would be 1.3.
    assert abs(mean - 1.0) < 4.0 * np.sqrt(2.0 / (40 * beta.size)) + 0.05
    low = decimator.apply(rng.normal(size=(20000, 3)) * SIGMA).std(axis=0)
    assert np.mean([f.sigma for f in fits], axis=0) == pytest.approx(low, rel=0.05)  # sigma is that of the fitted rows


# ---- what the data do not show ---------------------------------------------------------------------------------------


def estimate(robot: object, motion: Motion, noise: float = 0.0, skip: tuple[str, ...] = ()):
    tau = inverse_dynamics(robot, motion)
    tau = tau + np.random.default_rng(0).normal(size=tau.shape) * noise
    base = base_parameters(robot)
    return WLS().fit(Regression.from_motion(robot, motion, tau, base, skip=skip)).result_, base.values(robot.parameters.values)


@pytest.mark.parametrize("still", [(0,), (1,), (3,), (5,), (4, 5), (1, 3)])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_a_resting_joint_spoils_nothing_else(still, noise):
    robot = arm(UR10)
    motion = resting(smooth(6, 1500, seed=2), *still)
    fit, beta = estimate(robot, motion, noise)
    verdicts = {row.name: row.verdict for row in fit.observability()}
    for j in still:
        assert verdicts[f"fv_joint_{j + 1}"] == verdicts[f"fc_joint_{j + 1}"] == "not excited"
    assert 0 < np.count_nonzero(fit.solved) < fit.base.rank
    error = np.abs(fit.values - beta)[fit.solved]
    assert np.all(error <= 6.0 * fit.std[fit.solved] + 1e-8)  # whatever is called known is right
    assert np.all(np.isinf(fit.std[~fit.solved]))
    tau = inverse_dynamics(robot, motion)
    for model in (fit, fit.exported()):  # and base as well as standard parameters explain these data
        prediction = model.predict(motion)
        assert np.sqrt(np.mean((prediction.effort - tau) ** 2)) < 1e-8 + 0.5 * noise
        assert np.max(prediction.std) < 1e-6 + 1.5 * noise  # hidden parameters do not blur what was seen


def test_sums_of_parameters_are_not_passed_off_as_parameters():
    """With joint 2 at rest, the inertia about axis 1 is known only together with what joint 2 would move."""
    robot, motion = arm(UR10), resting(smooth(6, 1500), 1)
    tau, beta = inverse_dynamics(robot, motion), base_parameters(robot).values(robot.parameters.values)
    fit = WLS().fit(Regression.from_motion(arm(UR10, prior=3), motion, tau)).result_  # described by other bodies
    mixed = np.flatnonzero(~fit.solved & (fit.values != 0.0))
    assert mixed.size
    assert np.any(np.abs(fit.values - beta)[mixed] > 0.1)  # wrong taken alone ...
    E = fit.posterior.combinations
    np.testing.assert_allclose(E @ fit.values, E @ beta, atol=1e-8)  # ... right as a sum
    assert {fit.observability()[i].verdict for i in mixed} == {"not excited"}


def test_a_joint_without_torque_or_motion_is_no_accident():
    """A vertical axis that rests has a column of zeros and a torque of zeros: no weight may become infinite."""
    robot = arm(PLANAR, ("fv",), (0, 0, 0))
    motion = resting(smooth(2, 300), 0, 1)
    moving = smooth(2, 300)
    lone = Motion(motion.t, *(np.column_stack([getattr(motion, k)[:, 0], getattr(moving, k)[:, 1]]) for k in "qva"))
    tau = inverse_dynamics(robot, lone) * [0.0, 1.0]
    fit = WLS().fit(Regression.from_motion(robot, lone, tau)).result_
    assert np.all(np.isfinite(fit.values))
    with pytest.raises(IdentificationError, match="no parameter is excited"):
        WLS().fit(Regression.from_motion(robot, motion, np.zeros((300, 2))))


def test_rows_that_were_skipped_are_not_needed():
    robot = arm(UR10)
    motion = smooth(6, 1500)
    fit, beta = estimate(robot, motion, skip=("joint_5", "joint_6"))
    assert fit.groups == ("joint_1", "joint_2", "joint_3", "joint_4")
    np.testing.assert_allclose(fit.values[fit.solved], beta[fit.solved], rtol=1e-7, atol=1e-8)
    assert np.all(np.isnan(fit.predict(motion).std[:, 4:]))


def test_bad_conditioning_is_said():
    robot = arm(PLANAR, ("fv", "off"), DOWN_Y)
    q = 0.3 + 1e-7 * smooth(2, 200).q  # gravity terms hardly change, so they look like offsets
    motion = smooth(2, 200)
    crawl = Motion(motion.t, q, 1e-7 * motion.v, 1e-7 * motion.a)
    r = Regression.from_motion(robot, crawl, inverse_dynamics(robot, crawl))
    with pytest.warns(ConditionWarning, match="badly conditioned"):
        OLS(tolerance=1e-12).fit(r)


# ---- essential parameters --------------------------------------------------------------------------------------------


def test_essential_parameters_drop_what_is_useless():
    robot = arm(RRR, (*SYMMETRIC, "k"))
    none = {f"{s}_joint_{i}": 0.0 for s in ("off", "k") for i in (1, 2, 3)}
    robot = robot.with_parameters(robot.parameters.replace(none))
    regression, _ = evidence(robot, samples=600, noise=0.05)
    full = WLS().fit(regression).result_
    with pytest.warns(DynidentWarning, match="would make the residuals grow"):
        few = essential_parameters(regression)
    dropped = {name for name, active in zip(few.base.leaders, few.active, strict=True) if not active}
    assert set(none) <= dropped
    assert few.training_relative < 1.1 * full.training_relative
    assert np.count_nonzero(few.active) <= 0.8 * few.base.rank
    assert np.all(few.values[~few.active] == 0.0)
    assert {row.verdict for row, active in zip(few.observability(), few.active, strict=True) if not active} == {"dropped"}
    motion = smooth(3, 100, seed=9)  # standard parameters stand for the same model
    np.testing.assert_allclose(few.exported().predict(motion).effort, few.predict(motion).effort, atol=1e-9)
    # on new data the smaller model is no worse
    new = inverse_dynamics(robot, motion)
    assert np.std(few.predict(motion).effort - new) < 1.5 * np.std(full.predict(motion).effort - new) + 0.01
    with pytest.raises(IdentificationError, match="ratio is 1"):
        essential_parameters(regression, ratio=1.0)
    with pytest.raises(IdentificationError, match="level is -1"):
        essential_parameters(regression, level=-1.0)
    assert few.notes[-1].sentence.startswith(f"{np.count_nonzero(~few.active)} of {few.base.rank} base parameters removed")
    assert all(name in few.notes[-1].sentence for name, active in zip(few.base.names, few.active, strict=True) if not active)
    coarse = essential_parameters(regression, ratio=10.0, level=0.0)  # the ratio alone, as first published
    own = np.sqrt(np.diag(coarse.covariance))  # without the bias of what is gone
    relative = own[coarse.active] / np.abs(coarse.values[coarse.active])
    assert relative.max() < 10.0 * relative.min()
    assert coarse.training_relative > 10.0 * full.training_relative  # which is why residuals are watched


def test_deviations_of_essential_parameters_include_the_bias_of_what_was_dropped():
    """With strong noise many small parameters are dropped, and act on those that stay."""
    robot = arm(RRR)
    phi, stated, alone = truth(robot), [], []
    for seed in range(6):
        motion = smooth(3, 1500, seed=seed)
        effort = inverse_dynamics(robot, motion, phi) + 1.5 * np.random.default_rng(seed).normal(size=motion.q.shape)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DynidentWarning)
            fit = essential_parameters(Regression.from_motion(robot, motion, effort))
        error = (fit.values - fit.base.values(phi))[fit.active]
        stated.append(error / fit.std[fit.active])
        alone.append(error / np.sqrt(np.diag(fit.covariance))[fit.active])
    assert np.sqrt(np.mean(np.concatenate(stated) ** 2)) < 1.2  # 1.26 with the difference from the full fit alone
    assert np.sqrt(np.mean(np.concatenate(alone) ** 2)) > 2.0


def test_essential_parameters_survive_what_is_not_excited():
    robot = arm(RRR)
    motion = resting(smooth(3, 500), 2)
    r = Regression.from_motion(robot, motion, inverse_dynamics(robot, motion) + 0.01 * smooth(3, 500, seed=4).q)
    few = essential_parameters(r, OLS(), ratio=30.0, level=0.0)
    assert 0 < np.count_nonzero(few.active) < few.base.rank
    assert np.all(few.solved == few.active)


def test_iterations_must_be_positive_and_two_steps_are_classical():
    regression, _ = evidence(arm(PLANAR, gravity=DOWN_Y), noise=[0.5, 0.01])
    with pytest.raises(IdentificationError, match="iterations is 0"):
        WLS(iterations=0).fit(regression)
    first = OLS().fit(regression)
    two = WLS(iterations=1).fit(regression)
    assert two.n_iter_ == 1
    motion = smooth(2, 400)
    rows = Regression.from_motion(regression.mechanism, motion, inverse_dynamics(regression.mechanism, motion), keep_rows=True)
    assert IRLS(iterations=1).fit(rows).n_iter_ == 1
    W = [np.zeros((g.R.shape[0], regression.base.rank)) for g in regression.groups]
    for w, g, s in zip(W, regression.groups, first.sigma_, strict=True):
        w[:, g.columns] = g.R[:, :-1] / s
    y = np.concatenate([g.R[:, -1] / s for g, s in zip(regression.groups, first.sigma_, strict=True)])
    np.testing.assert_allclose(two.coef_, np.linalg.lstsq(np.vstack(W), y, rcond=None)[0], rtol=1e-9)


def test_a_wrong_joint_order_would_be_noticed():
    """Rows and columns keep their joints when the robot lists the same joints in another order (branches swapped)."""
    robot = arm(RRR)
    motion = smooth(3, 300)
    tau = inverse_dynamics(robot, motion)
    good = OLS().fit(Regression.from_motion(robot, motion, tau)).result_
    bad = OLS().fit(Regression.from_motion(robot, motion, tau[:, [1, 0, 2]])).result_
    assert good.training_relative < 1e-10
    assert bad.training_relative > 0.1


def test_options_reach_the_fit():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        regression, beta = evidence(arm(RRR), samples=500, noise=0.1)
        fit = WLS(recovery="minimum_norm", iterations=3).fit(regression).result_
    assert "recovery='minimum_norm'" in fit.estimator
    assert "iterations=3" in fit.estimator
    assert fit.rows == regression.rows == 1500
    assert fit.condition == pytest.approx(WLS().fit(regression).condition_, rel=0.2)
    assert fit.values.shape == beta.shape


def test_an_f_test_that_can_refuse_nothing_is_told():
    """Sixty rows that are worth eleven: every removal passes, although the residuals grow by far."""
    rng = np.random.default_rng(3)
    Y, beta = rng.normal(size=(60, 10)), np.linspace(1.0, 0.05, 10)
    tau = Y @ beta + 0.02 * rng.normal(size=60)
    names = [f"p{k}" for k in range(10)]
    with pytest.warns(DynidentWarning, match="about 11 independent rows for 10 parameters, so the F-test"):
        few = essential_parameters(Regression.from_rows(Y, tau, names, independence=0.18), OLS(), ratio=3.0)
    assert len(few.removals) > 0
    assert "check held-out data" in few.notes[-1].sentence
    with pytest.warns(DynidentWarning, match="would make the residuals grow"):
        essential_parameters(Regression.from_rows(Y, tau, names), OLS(), ratio=3.0)
