"""Every estimator keeps one protocol: options, evidence, `Fit`, covariance; what it says is true where the truth is known."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest
from identify_cases import DOWN_Y, PLANAR, RRR, arm, resting, smooth

from dynident.errors import IdentificationError
from dynident.identify import (
    DIDIM,
    GLS,
    IRLS,
    IV,
    MAP,
    OLS,
    TLS,
    WLS,
    Fit,
    OutputError,
    Regression,
    base_parameters,
    least_squares_bias,
)
from dynident.identify.estimators.bias import LeastSquaresBias
from dynident.mechanics import inverse_dynamics, regressor
from dynident.signals import Log
from dynident.signals.filters import Decimator

SIGMA = np.array([2.0, 0.5, 0.1])
RUNS = 24


def instruments(_, part):
    """The measured motion: valid instruments where positions are exact."""
    return part.motion


ESTIMATORS = {
    "OLS": OLS,
    "WLS": WLS,
    "GLS": GLS,
    "Huber": IRLS,
    "Tukey": lambda **options: IRLS(**{"loss": "tukey", **options}),
    "TLS": TLS,
    "IV": lambda **options: IV(**{"instruments": instruments, **options}),
}
CLASSES = [MAP, OLS, WLS, GLS, IRLS, TLS, IV, DIDIM, OutputError]
every = pytest.mark.parametrize("name", ESTIMATORS)


@pytest.fixture(scope="module")
def case():
    robot = arm(RRR)
    base = base_parameters(robot)
    motion = smooth(3, 300, seed=3, rate=25.0)
    return robot, base, motion, inverse_dynamics(robot, motion), base.values(robot.parameters.values)


@pytest.fixture(scope="module")
def noisy(case):
    """Evidence of runs with white noise, another one each time."""
    robot, base, motion, tau, _ = case
    rng = np.random.default_rng(0)
    return [
        Regression.from_motion(robot, motion, tau + rng.normal(size=tau.shape) * SIGMA, base, keep_rows=True)
        for _ in range(RUNS)
    ]


# ---- protocol ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("Estimator", CLASSES)
def test_options_are_stored_as_given_and_nothing_else_is(Estimator):
    options = {k: p.default for k, p in inspect.signature(Estimator.__init__).parameters.items() if k != "self"}
    assert all(default is not inspect.Parameter.empty for default in options.values())
    estimator = Estimator()
    assert estimator.get_params() == options == vars(estimator)
    odd = {name: object() for name in options}
    assert Estimator(**odd).get_params() == odd
    assert Estimator().set_params(**odd).get_params() == odd
    with pytest.raises(IdentificationError, match="no option 'nonsense'"):
        estimator.set_params(nonsense=1)


@every
def test_a_fit_is_a_fit(name, noisy, tmp_path):
    evidence = noisy[0]
    estimator = ESTIMATORS[name]()
    options = estimator.get_params()
    assert estimator.fit(evidence) is estimator
    assert estimator.get_params() == options
    b, fit = evidence.base.rank, estimator.result_
    assert isinstance(fit, Fit)
    assert {k for k in vars(estimator) if k not in options} >= {"coef_", "covariance_", "sigma_", "condition_", "result_"}
    assert all(k.endswith("_") and not k.startswith("_") for k in vars(estimator) if k not in options)
    assert estimator.coef_.shape == (b,)
    assert np.all(np.linalg.eigvalsh(estimator.covariance_ / np.outer(fit.std, fit.std)) > 0.0)
    assert estimator.sigma_.shape == (3,)
    np.testing.assert_array_equal(estimator.fit(evidence).coef_, fit.values)
    only = np.arange(b) < 4
    part = estimator.fit(evidence, active=only).result_
    assert np.all(part.values[4:] == 0.0)
    np.testing.assert_array_equal(part.active, only)
    again = Fit.load(fit.save(tmp_path / "fit.json"))
    assert again.estimator.startswith(type(estimator).__name__)
    np.testing.assert_array_equal(again.values, fit.values)


@every
def test_bad_input_gets_a_sentence(name, noisy):
    estimator = ESTIMATORS[name]()
    for wrong in (None, "log.csv", np.ones((5, 3))):
        with pytest.raises(IdentificationError, match=r"give a dynident\.Regression"):
            estimator.fit(wrong)
    with pytest.raises(IdentificationError, match=r"active has shape \(3,\)"):
        estimator.fit(noisy[0], active=np.ones(3, dtype=bool))
    few = replace(noisy[0], groups=tuple(replace(group, count=1) for group in noisy[0].groups))
    with pytest.raises(IdentificationError, match=r"3 equations cannot determine \d+ base parameters"):
        estimator.fit(few)
    with pytest.raises(IdentificationError, match="recovery is 'guess'"):
        ESTIMATORS[name](recovery="guess").fit(noisy[0])


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name not in ("OLS", "WLS")])
def test_who_needs_rows_says_so(name, noisy):
    bare = Regression(noisy[0].base, noisy[0].groups)
    with pytest.raises(IdentificationError, match=r"Regression\.from_log"):
        ESTIMATORS[name]().fit(bare)


def test_bad_options_get_a_sentence(noisy, subtests):
    for estimator, sentence in [
        (IRLS(loss="cauchy"), "loss is 'cauchy'"),
        (IRLS(iterations=0), "iterations is 0"),
        (GLS(order=-1), "order is -1"),
        (TLS(iterations=0), "iterations is 0"),
        (IV(), "no reference"),
        (IV(instruments="others"), "instruments is 'others'"),
        (IV(instruments="periods"), "period is None"),
        (IV(instruments="periods", period=100.0), "at least twice"),
        (IV(instruments=smooth(3, 100)), "must cover the log"),
        (DIDIM(), "simulates the closed loop"),
        (OutputError(), "simulates the closed loop"),
    ]:
        with subtests.test(str(sentence)), pytest.raises(IdentificationError, match=sentence):
            estimator.fit(noisy[0])


# ---- truth -------------------------------------------------------------------------------------------------------------


@every
def test_exact_data_give_the_exact_parameters(name, case):
    robot, base, motion, tau, beta = case
    fit = ESTIMATORS[name]().fit(Regression.from_motion(robot, motion, tau, base, keep_rows=True)).result_
    np.testing.assert_allclose(fit.values, beta, rtol=1e-8, atol=1e-9)
    assert fit.training_relative < 1e-10


@every
def test_covariance_is_calibrated_on_white_noise(name, case, noisy):
    beta = case[-1]
    z = np.array([(f.values - beta) / f.std for f in (ESTIMATORS[name]().fit(e).result_ for e in noisy)])
    # b parameters of 24 runs; those of a run are correlated, so half of them count. OLS has one sigma for unequal joints.
    spread = 1.0 / np.sqrt(2.0 * RUNS * beta.size / 2.0)
    assert abs(np.sqrt(np.mean(z**2)) - 1.0) < 4.0 * spread + (0.15 if name == "OLS" else 0.0)
    assert np.max(np.abs(z.mean(axis=0))) < 4.5 / np.sqrt(RUNS)


@pytest.mark.parametrize("name", ["WLS", "TLS", "IV"])
def test_covariance_is_calibrated_on_few_rows_of_which_some_are_left_out(name, case):
    """Sixty rows a joint, decimated, a third of them unused at different times: no colour is seen where there is none."""
    robot, base, _, _, beta = case
    motion = smooth(3, 360, seed=3, rate=30.0)
    tau, rng, decimator = inverse_dynamics(robot, motion), np.random.default_rng(1), Decimator(5, 30.0)
    moving = np.abs(motion.v) > 0.05
    z = []
    for _ in range(RUNS):
        noisy = tau + rng.normal(size=tau.shape) * 0.1 * SIGMA
        fit = (
            ESTIMATORS[name]()
            .fit(Regression.from_motion(robot, motion, noisy, base, decimator, moving=moving, keep_rows=True))
            .result_
        )
        z.append(((fit.values - beta) / fit.std)[fit.solved])
    assert fit.rows < 180
    spread = 1.0 / np.sqrt(RUNS * beta.size)  # half of the numbers are independent
    assert abs(np.sqrt(np.mean(np.square(z))) - 1.0) < 4.0 * spread + 0.1  # sigma itself is known from few rows


@every
def test_units_of_efforts_do_not_matter(name, case, noisy):
    """Efforts and noise a thousand times as large: parameters and deviations are so too."""
    robot, base, motion, tau, _ = case
    error = np.random.default_rng(5).normal(size=tau.shape) * SIGMA
    one, thousand = (
        ESTIMATORS[name]().fit(Regression.from_motion(robot, motion, k * (tau + error), base, keep_rows=True)).result_
        for k in (1.0, 1e3)
    )
    np.testing.assert_allclose(thousand.values, 1e3 * one.values, rtol=1e-7, atol=1e-6)
    np.testing.assert_allclose(thousand.std, 1e3 * one.std, rtol=1e-6)


@every
def test_logs_are_merged_by_adding(name, case, noisy):
    """Two halves know as much as the whole; estimators with filters lose a few rows at the cut."""
    robot, base, motion, tau, _ = case
    error = np.random.default_rng(6).normal(size=tau.shape) * SIGMA
    halves = [
        Regression.from_motion(robot, motion[piece], (tau + error)[piece], base, keep_rows=True)
        for piece in (slice(0, 150), slice(150, 300))
    ]
    whole = ESTIMATORS[name]().fit(Regression.from_motion(robot, motion, tau + error, base, keep_rows=True)).result_
    both = ESTIMATORS[name]().fit(halves[0] + halves[1]).result_
    assert both.rows == whole.rows
    if name == "GLS":
        assert np.all(np.abs(both.values - whole.values) < 0.5 * whole.std)
        np.testing.assert_allclose(both.std, whole.std, rtol=0.1)
    else:
        np.testing.assert_allclose(both.values, whole.values, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(both.std, whole.std, rtol=1e-6)
    alone = ESTIMATORS[name]().fit(halves[0]).result_
    assert np.median(alone.std / both.std) > 1.2
    with pytest.raises(IdentificationError, match="keep the rows of both"):
        halves[0] + Regression(base, halves[1].groups)


@every
def test_what_is_not_excited_is_said(name):
    robot = arm(RRR)
    base = base_parameters(robot)
    motion = resting(smooth(3, 400, seed=2, rate=50.0), 1)
    tau = inverse_dynamics(robot, motion) + np.random.default_rng(1).normal(size=(400, 3)) * 0.05
    fit = ESTIMATORS[name]().fit(Regression.from_motion(robot, motion, tau, base, keep_rows=True)).result_
    verdicts = {row.name: row.verdict for row in fit.observability()}
    assert verdicts["fv_joint_2"] == verdicts["fc_joint_2"] == "not excited"
    beta = base.values(robot.parameters.values)
    assert 0 < np.count_nonzero(fit.solved) < base.rank
    assert np.all(np.abs(fit.values - beta)[fit.solved] <= 6.0 * fit.std[fit.solved])
    assert np.all(np.isinf(fit.std[~fit.solved]))


@every
def test_rows_near_standstill_can_be_left_out(name):
    """Coulomb friction that is wrong below a speed spoils nothing when those rows are not used."""
    robot = arm(PLANAR, ("fv", "fc"), DOWN_Y)
    base = base_parameters(robot)
    motion = smooth(2, 600, seed=1, rate=50.0)
    moving = np.abs(motion.v) > 0.3
    tau = np.where(moving, inverse_dynamics(robot, motion), 50.0)
    evidence = Regression.from_motion(robot, motion, tau, base, moving=moving, keep_rows=True)
    fit = ESTIMATORS[name]().fit(evidence).result_
    np.testing.assert_allclose(fit.values, base.values(robot.parameters.values), rtol=1e-7, atol=1e-8)
    assert fit.rows == int(moving.sum())


# ---- what each is for --------------------------------------------------------------------------------------------------


def test_bad_rows_do_not_move_robust_estimates(case):
    robot, base, motion, tau, beta = case
    rng = np.random.default_rng(3)
    spoilt = tau + rng.normal(size=tau.shape) * SIGMA
    spoilt[rng.random(tau.shape) < 0.05] += 40.0
    evidence = Regression.from_motion(robot, motion, spoilt, base, keep_rows=True)
    z = {name: np.sqrt(np.mean(((fit.values - beta) / clean) ** 2)) for name, fit, clean in _fits(evidence, case)}
    assert z["WLS"] > 3.0  # in standard deviations of the clean case
    assert z["Huber"] < 2.0
    assert z["Tukey"] < 1.3
    weights = IRLS(loss="tukey").fit(evidence).weights_
    assert np.mean(np.concatenate([w for part in weights for w in part]) == 0.0) > 0.02


def _fits(evidence, case):
    robot, base, motion, tau, _ = case
    noise = np.random.default_rng(4).normal(size=tau.shape) * SIGMA
    clean = WLS().fit(Regression.from_motion(robot, motion, tau + noise, base, keep_rows=True)).result_.std
    return [(name, ESTIMATORS[name]().fit(evidence).result_, clean) for name in ("WLS", "Huber", "Tukey")]


def test_coloured_noise_is_allowed_for(case):
    """Noise with a memory of ten samples: GLS reaches the bound of Gauss and Markov, and all but WLS know how good they are."""
    robot, base, motion, tau, beta = case
    rng = np.random.default_rng(7)
    runs = 24
    z, error = ({name: [] for name in ("WLS", "GLS", "TLS", "IV")} for _ in range(2))
    for _ in range(runs):
        e = rng.normal(size=tau.shape) * SIGMA
        for k in range(1, e.shape[0]):
            e[k] += 0.9 * e[k - 1]
        evidence = Regression.from_motion(robot, motion, tau + e, base, keep_rows=True)
        for name, found in z.items():
            fit = ESTIMATORS[name]().fit(evidence).result_
            found.append((fit.values - beta) / fit.std)
            error[name].append(fit.values - beta)
    rms = {name: np.sqrt(np.mean(np.square(values))) for name, values in z.items()}
    # The bound, from the noise as it is: rows filtered by 1 - 0.9 / z are white.
    W = regressor(robot, motion)[:, :, base.columns]
    white = (W[1:] - 0.9 * W[:-1]) / SIGMA[:, None]
    bound = np.sqrt(np.diag(np.linalg.inv(np.einsum("knb,knc->bc", white, white))))
    slack = 4.0 / np.sqrt(runs * beta.size)  # four deviations of an rms of which half the numbers are independent
    reached = {name: np.sqrt(np.mean(np.square(values / bound))) for name, values in error.items()}
    assert abs(reached["GLS"] - 1.0) < slack
    assert reached["WLS"] > 1.0 + slack
    assert abs(rms["GLS"] - 1.0) < slack
    assert rms["WLS"] > 2.0  # as if its rows were independent
    assert rms["TLS"] < 0.75 * rms["WLS"]
    assert rms["IV"] < 0.75 * rms["WLS"]


@pytest.fixture(scope="module")
def encoders():
    """Runs with 2 mrad of white noise in the positions, fitted in a band of 40 Hz, much wider than the motion's."""
    robot = arm(RRR, ("fv", "off"))
    base = base_parameters(robot)
    motion = smooth(3, 4000, seed=3, rate=200.0)
    tau, rng = inverse_dynamics(robot, motion), np.random.default_rng(0)
    logs = [
        Log(
            t=motion.t,
            joints=robot.coordinate_names,
            position=motion.q + rng.normal(size=tau.shape) * 2e-3,
            effort=tau + rng.normal(size=tau.shape) * 0.1,
            effort_kind="joint_torque",
            reference=motion.q,
            name=f"run{i}",
        )
        for i in range(6)
    ]
    return (
        robot,
        [Regression.from_log(robot, log, base, cutoff=30.0, keep_rows=True) for log in logs],
        base.values(robot.parameters.values),
    )


def test_noise_of_the_positions_is_found(encoders):
    _, evidence, _ = encoders
    noise = np.mean([e.stretches[0].noise for e in evidence], axis=0)
    np.testing.assert_allclose(noise, 2e-3, rtol=0.05)


def test_encoder_noise_biases_least_squares_but_not_instruments(encoders, tmp_path):
    _, evidence, beta = encoders
    mean, spread = {}, {}
    for name, estimator in (("WLS", WLS()), ("TLS", TLS()), ("IV", IV())):
        fits = [estimator.fit(e).result_ for e in evidence]
        mean[name] = np.mean([f.values for f in fits], axis=0) - beta
        spread[name] = np.mean([f.std for f in fits], axis=0) / np.sqrt(len(fits))
    worst = int(np.argmax(np.abs(mean["WLS"] / spread["TLS"])))
    assert mean["WLS"][worst] / spread["TLS"][worst] < -10.0  # towards zero: the inertia about the first axis
    assert abs(mean["TLS"][worst]) < 0.15 * abs(mean["WLS"][worst])
    assert abs(mean["IV"][worst]) < 0.15 * abs(mean["WLS"][worst])
    # The predicted bias is the one that happens.
    found = [least_squares_bias(e) for e in evidence[:3]]
    assert np.mean([d.bias[worst] for d in found]) == pytest.approx(mean["WLS"][worst], rel=0.15)
    assert all(d.biased for d in found)
    assert "biases least squares by" in found[0].summary()
    assert found[0].probability < 1e-6
    assert found[0].to_dict()["biased"] is True
    again = LeastSquaresBias.load(found[0].save(tmp_path / "bias.json"))
    assert again.summary() == found[0].summary()
    assert max(found[0].noise_share.values()) > 0.5


def test_good_data_are_not_called_biased(case):
    robot = case[0]
    motion = smooth(3, 4000, seed=3, rate=200.0)
    tau = inverse_dynamics(robot, motion) + np.random.default_rng(2).normal(size=(4000, 3)) * SIGMA
    noise = np.random.default_rng(3).normal(size=(4000, 3)) * 1e-6
    log = Log(
        t=motion.t,
        joints=robot.coordinate_names,
        position=motion.q + noise,
        effort=tau,
        effort_kind="joint_torque",
        reference=motion.q,
    )
    found = least_squares_bias(Regression.from_log(robot, log, cutoff=10.0, keep_rows=True))
    assert not found.biased
    assert np.max(np.abs(found.bias) / found.std) < 0.1
    assert "nothing to do" in found.summary()
    assert all(p > 1e-4 for _, p in found.whiteness.values())
    with pytest.raises(IdentificationError, match="give an IV"):
        least_squares_bias(Regression.from_log(robot, log, cutoff=10.0, keep_rows=True), WLS())


def test_other_periods_are_instruments(encoders):
    """Three periods of one motion: the mean of the other two has the same motion and other noise."""
    robot = arm(PLANAR, ("fv", "off"), DOWN_Y)
    base = base_parameters(robot)
    period, rate = 1.0 / 0.15, 300.0  # 2000 samples
    motion = smooth(2, 6000, seed=3, rate=rate)
    tau, rng = inverse_dynamics(robot, motion), np.random.default_rng(1)
    beta = base.values(robot.parameters.values)
    error = {"WLS": [], "IV": []}
    for _ in range(4):
        log = Log(
            t=motion.t,
            joints=robot.coordinate_names,
            position=motion.q + rng.normal(size=tau.shape) * 2e-3,
            effort=tau + rng.normal(size=tau.shape) * 0.02,
            effort_kind="joint_torque",
        )
        evidence = Regression.from_log(robot, log, base, cutoff=30.0, keep_rows=True)
        error["WLS"].append(WLS().fit(evidence).coef_ - beta)
        error["IV"].append(IV(instruments="periods", period=period).fit(evidence).coef_ - beta)
    mean = {name: np.abs(np.mean(values, axis=0)) for name, values in error.items()}
    worst = int(np.argmax(mean["WLS"] / np.abs(beta)))
    assert mean["IV"][worst] < 0.25 * mean["WLS"][worst]


def test_decimated_rows_are_kept_as_they_were_compressed(case):
    robot, base, _, _, _ = case
    motion = smooth(3, 2000, seed=5, rate=100.0)
    tau = inverse_dynamics(robot, motion) + np.random.default_rng(2).normal(size=(2000, 3))
    decimator = Decimator(5, 100.0)
    kept = Regression.from_motion(robot, motion, tau, base, decimator, keep_rows=True)
    (part,) = kept.stretches
    for group, W, y in zip(kept.groups, part.W, part.y, strict=True):
        rows = np.column_stack([W, y])
        np.testing.assert_allclose(rows.T @ rows, group.R.T @ group.R, rtol=1e-9, atol=1e-6)
    assert len(part.t) == decimator.length(2000)
