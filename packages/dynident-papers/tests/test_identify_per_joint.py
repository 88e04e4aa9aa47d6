"""Truth of least squares joint by joint: the same claims as of the estimators of the core (`test_estimators_conformance`)."""

from __future__ import annotations

import numpy as np
import pytest
from identify_cases import DOWN_Y, PLANAR, RRR, arm, resting, smooth

from dynident.identify import Fit, Regression, base_parameters
from dynident.mechanics import inverse_dynamics
from dynident_papers.identify import PerJoint

SIGMA = np.array([2.0, 0.5, 0.1])
RUNS = 24


@pytest.fixture(scope="module")
def case():
    robot = arm(RRR)
    base = base_parameters(robot)
    motion = smooth(3, 300, seed=3, rate=25.0)
    return robot, base, motion, inverse_dynamics(robot, motion), base.values(robot.parameters.values)


def fitted(case, effort, piece=slice(None)) -> Fit:
    robot, base, motion, _, _ = case
    return PerJoint().fit(Regression.from_motion(robot, motion[piece], effort[piece], base)).result_


def test_exact_data_give_the_exact_parameters(case) -> None:
    fit = fitted(case, case[3])
    np.testing.assert_allclose(fit.values, case[-1], rtol=1e-8, atol=1e-9)
    assert fit.training_relative < 1e-10


def test_covariance_is_calibrated_on_white_noise(case) -> None:
    tau, beta, rng = case[3], case[-1], np.random.default_rng(0)
    fits = [fitted(case, tau + rng.normal(size=tau.shape) * SIGMA) for _ in range(RUNS)]
    z = np.array([(fit.values - beta) / fit.std for fit in fits])
    spread = 1.0 / np.sqrt(2.0 * RUNS * beta.size / 2.0)  # parameters of a run are correlated, so half of them count
    assert abs(np.sqrt(np.mean(z**2)) - 1.0) < 4.0 * spread
    assert np.max(np.abs(z.mean(axis=0))) < 4.5 / np.sqrt(RUNS)


def test_units_of_efforts_do_not_matter(case) -> None:
    effort = case[3] + np.random.default_rng(5).normal(size=case[3].shape) * SIGMA
    one, thousand = (fitted(case, k * effort) for k in (1.0, 1e3))
    np.testing.assert_allclose(thousand.values, 1e3 * one.values, rtol=1e-7, atol=1e-6)
    np.testing.assert_allclose(thousand.std, 1e3 * one.std, rtol=1e-6)


def test_logs_are_merged_by_adding(case) -> None:
    robot, base, motion, tau, _ = case
    effort = tau + np.random.default_rng(6).normal(size=tau.shape) * SIGMA
    first, second = (
        Regression.from_motion(robot, motion[piece], effort[piece], base) for piece in (slice(0, 150), slice(150, 300))
    )
    whole, both, alone = fitted(case, effort), PerJoint().fit(first + second).result_, PerJoint().fit(first).result_
    assert both.rows == whole.rows
    np.testing.assert_allclose(both.values, whole.values, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(both.std, whole.std, rtol=1e-6)
    assert np.median(alone.std / both.std) > 1.2


def test_what_is_not_excited_is_said() -> None:
    robot = arm(RRR)
    base = base_parameters(robot)
    motion = resting(smooth(3, 400, seed=2, rate=50.0), 1)
    tau = inverse_dynamics(robot, motion) + np.random.default_rng(1).normal(size=(400, 3)) * 0.05
    fit = PerJoint().fit(Regression.from_motion(robot, motion, tau, base)).result_
    verdicts = {row.name: row.verdict for row in fit.observability()}
    assert verdicts["fv_joint_2"] == verdicts["fc_joint_2"] == "not excited"
    beta = base.values(robot.parameters.values)
    assert 0 < np.count_nonzero(fit.solved) < base.rank
    assert np.all(np.abs(fit.values - beta)[fit.solved] <= 6.0 * fit.std[fit.solved])
    assert np.all(np.isinf(fit.std[~fit.solved]))


def test_rows_near_standstill_can_be_left_out() -> None:
    robot = arm(PLANAR, ("fv", "fc"), DOWN_Y)
    base = base_parameters(robot)
    motion = smooth(2, 600, seed=1, rate=50.0)
    moving = np.abs(motion.v) > 0.3
    tau = np.where(moving, inverse_dynamics(robot, motion), 50.0)
    fit = PerJoint().fit(Regression.from_motion(robot, motion, tau, base, moving=moving)).result_
    np.testing.assert_allclose(fit.values, base.values(robot.parameters.values), rtol=1e-7, atol=1e-8)
    assert fit.rows == int(moving.sum())
