"""Residuals that are larger at rest: what is said about them must be what was put into the data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynident as di
from dynident.identify.regression.factor import shares
from dynident.identify.regression.logs import compressed_log
from dynident.signals.matching import match
from dynident.validate import judge

RATE, MOVE, REST = 200.0, 1.0, 0.5


@pytest.fixture(scope="module")
def robot() -> di.Mechanism:
    return di.Mechanism.from_dh([(0.4, 0, 0, 0), (0.3, 0, 0, 0)], gravity=(0, -9.81, 0)).with_terms(("ia", "fv"))


def moves(seed: int, rests: bool) -> di.Motion:
    """Quintic moves between random points, with or without rests between them."""
    rng, parts = np.random.default_rng(seed), []
    q = rng.uniform(-1, 1, 2)
    for _ in range(40):
        then, s = rng.uniform(-1, 1, 2), np.arange(int(MOVE * RATE)) / (MOVE * RATE)
        p, v, a = 10 * s**3 - 15 * s**4 + 6 * s**5, 30 * s**2 * (1 - s) ** 2, 60 * s * (1 - s) * (1 - 2 * s)
        parts.append([q + np.outer(p, then - q), np.outer(v, then - q) / MOVE, np.outer(a, then - q) / MOVE**2])
        if rests:
            still = np.zeros((int(REST * RATE), 2))
            parts.append([still + then, still, still])
        q = then
    q, v, a = (np.concatenate(x) for x in zip(*parts, strict=True))
    return di.Motion(np.arange(len(q)) / RATE, q, v, a)


def log_of(robot: di.Mechanism, motion: di.Motion, seed: int, moving: float, resting: float) -> di.Log:
    """Torques of a robot with unit terms, noise of two sizes, constant for a move, a rest or 0.1 s."""
    phi = 0.5 + 0.1 * np.arange(len(robot.parameters))
    rng, rest = np.random.default_rng(seed), np.all(motion.v == 0.0, axis=1)
    edges = np.cumsum(np.diff(rest, prepend=rest[:1])) if rest.any() else np.arange(len(rest)) // 20
    level = rng.normal(size=(edges[-1] + 1, 2))[edges]
    tau = di.inverse_dynamics(robot, motion, phi) + level * np.where(rest, resting, moving)[:, None]
    return di.Log(t=motion.t, joints=robot.coordinate_names, position=motion.q, effort=tau, effort_kind="joint_torque")


def test_residuals_at_rest_and_in_motion_are_told_apart(robot: di.Mechanism) -> None:
    (source,) = di.Regression.from_log(robot, log_of(robot, moves(1, True), 1, 0.5, 1.0)).sources
    for name in robot.coordinate_names:
        a, b = shares([source], name)  # 40 moves, a third of the time at rest: 0.25 and 0.75 over a mean of 0.5
        assert a == pytest.approx(0.5, abs=0.2)
        assert b == pytest.approx(1.5, abs=0.6)


def test_without_rests_all_residuals_are_alike(robot: di.Mechanism) -> None:
    (source,) = di.Regression.from_log(robot, log_of(robot, moves(2, False), 2, 0.1, 0.1)).sources
    for name in robot.coordinate_names:
        assert shares([source], name)[0] > 0.75


def test_bands_in_motion_are_not_those_at_rest(robot: di.Mechanism) -> None:
    fit = di.MAP().fit(di.Regression.from_logs(robot, [log_of(robot, moves(1, True), 1, 0.2, 1.0)])).result_
    other = moves(3, True)
    score = fit.score(log_of(robot, other, 3, 0.2, 1.0))
    v = np.array([np.interp(score.t, other.t, other.v[:, j]) for j in range(2)]).T
    moving = np.abs(v) > 0.3
    assert np.median(score.std[moving]) < 0.5 * np.median(score.std[v == 0.0])
    within = np.abs(score.measured - score.predicted) <= 2 * score.std
    assert np.mean(within[moving]) > 0.85 and np.mean(within) < 1.0


def test_pieces_of_a_log_add(robot: di.Mechanism) -> None:
    log = log_of(robot, moves(1, True), 1, 0.2, 1.0)
    base = di.base_parameters(robot)
    one, other = (
        compressed_log(match(robot, log), log, base, "gls", (), {"cutoff": 10.0}, between=own)
        for own in ((0.0, 12.0), (12.0, 40.0))
    )
    whole = one + other
    (joined,) = whole.joined().sources
    assert joined["samples"] == sum(source["samples"] for source in whole.sources)
    for name in robot.coordinate_names:
        np.testing.assert_allclose(joined["resting"][name], sum(np.array(s["resting"][name]) for s in whole.sources))


def test_a_joint_that_sticks_within_its_band_is_not_refused() -> None:
    """The second joint rests for most of the time and carries anything up to its friction; in motion it is predicted."""
    robot = di.Mechanism.from_dh([(0.4, 0, 0, 0), (0.3, 0, 0, 0)], gravity=(0, 0, 0))
    values = dict.fromkeys(robot.parameters.names, 0.0)
    values |= {"m_link_1": 2.0, "Izz_link_1": 0.5, "m_link_2": 0.2, "Izz_link_2": 0.02}
    values |= {f"{symbol}_{joint}": 1.0 for symbol in ("fv", "fc") for joint in robot.coordinate_names}

    def sticking(seed: int) -> di.Log:
        motion = moves(seed, True)
        rng, rest = np.random.default_rng(seed), motion.v[:, 1] == 0.0
        tau = di.inverse_dynamics(robot, motion, robot.parameters.replace(values)) + 0.01 * rng.normal(size=motion.q.shape)
        tau[rest, 1] = rng.uniform(-1.0, 1.0, 200)[np.cumsum(np.diff(rest, prepend=False))[rest] % 200]
        return di.Log(t=motion.t, joints=robot.coordinate_names, position=motion.q, effort=tau, effort_kind="joint_torque")

    fit = di.MAP().fit(di.Regression.from_log(robot, sticking(1))).result_
    score = fit.score(sticking(2))
    assert score.resting is not None
    assert 0.2 < np.mean(score.resting[:, 1]) < 0.6

    def accepted(predicted: np.ndarray, error: float) -> bool:
        metrics = replace(score.metrics, relative_per_joint=np.array([0.1, error]), rmse=np.array([0.1, 10.0]))
        checks = judge(fit, [replace(score, predicted=predicted, metrics=metrics)]).checks
        return next(each.ok for each in checks if each.name == "joints")

    assert accepted(score.predicted, 0.6)
    assert not accepted(score.predicted * [1.0, -1.0], 2.0)
