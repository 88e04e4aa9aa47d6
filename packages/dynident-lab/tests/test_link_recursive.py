"""Recursive least squares: the same as the batch without forgetting, and after a robot that changes with it."""

from __future__ import annotations

import numpy as np
import pytest
from identify_cases import DOWN_Y, PLANAR, RRR, arm, smooth

from dynident.errors import IdentificationError
from dynident.identify import WLS, Regression, base_parameters
from dynident.mechanics import Motion, inverse_dynamics
from dynident_lab.link import RLS

SIGMA = np.array([2.0, 0.5, 0.1])


def test_recursive_least_squares_on_line_is_weighted_least_squares():
    robot = arm(RRR)
    base = base_parameters(robot)
    motion = smooth(3, 300, seed=3, rate=25.0)
    tau, beta = inverse_dynamics(robot, motion), base.values(robot.parameters.values)
    measured = tau + np.random.default_rng(8).normal(size=tau.shape) * SIGMA
    whole = WLS(iterations=1).fit(Regression.from_motion(robot, motion, measured, base))
    rls = RLS().start(base, SIGMA)
    for first in range(0, 300, 7):
        rls.update(motion[first : first + 7], measured[first : first + 7])
    known = [np.linalg.norm((rls.coef_ - beta) / np.sqrt(np.diag(rls.covariance_))), np.sqrt(2.0 * beta.size)]
    assert known[0] < known[1]
    assert np.all(np.abs(rls.coef_ - whole.coef_) < 0.7 * np.sqrt(np.diag(whole.covariance_)))
    rows = np.array([[0.0, 1.0, 2.0]])
    with pytest.raises(IdentificationError, match="not later"):
        rls.update(Motion([0.0], rows, rows, rows), rows)
    with pytest.raises(IdentificationError, match="call start"):
        RLS().update(motion, tau)
    with pytest.raises(IdentificationError, match="effort has shape"):
        rls.update(Motion([99.0], rows, rows, rows), np.ones((1, 2)))
    with pytest.raises(IdentificationError, match="sigma is"):
        RLS().start(base, [1.0, 0.0, 1.0])
    with pytest.raises(IdentificationError, match="memory is 0"):
        RLS(memory=0.0).start(base)


def test_forgetting_follows_a_robot_that_changes():
    """Viscous friction doubles half way: a memory of two seconds has forgotten the first half, an infinite one has not."""
    robot = arm(PLANAR, ("fv",), DOWN_Y)
    base = base_parameters(robot)
    motion = smooth(2, 2000, seed=4, rate=100.0)
    warm = robot.with_parameters(robot.parameters.replace({n: 2.0 * robot.parameters[n] for n in ("fv_joint_1", "fv_joint_2")}))
    tau = np.where((np.arange(2000) < 1000)[:, None], inverse_dynamics(robot, motion), inverse_dynamics(warm, motion))
    tau = tau + np.random.default_rng(0).normal(size=tau.shape) * 0.02
    fast, slow = RLS(memory=2.0).start(base, 0.02), RLS().start(base, 0.02)
    history = []
    for first in range(0, 2000, 50):
        for rls in (fast, slow):
            rls.update(motion[first : first + 50], tau[first : first + 50])
        history.append(fast.coef_)
    truth = base.values(warm.parameters.values)
    own = [base.leaders.index(f"fv_joint_{j}") for j in (1, 2)]
    left = np.exp(-10.0 / 2.0) * np.abs(truth - base.values(robot.parameters.values))[own]  # of the first half, after 10 s
    assert np.all(np.abs(fast.coef_ - truth)[own] < 1.2 * left + 4.0 * np.sqrt(np.diag(fast.covariance_))[own])
    assert np.all(np.abs(slow.coef_ - truth)[own] > 0.1 * np.abs(truth[own]))
    np.testing.assert_allclose(history[18][own], base.values(robot.parameters.values)[own], rtol=0.05)
