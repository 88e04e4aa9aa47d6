"""Efforts that are late beside the positions: said when they are, with the right number, and never when they are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynident as di
from dynident.errors import LogError
from identify_cases import PLANAR, arm, smooth, truth

LATE = 0.02  # [s]


def log_of(robot: di.Mechanism, seed: int, late: float) -> di.Log:
    """Return a log with correlated noise of 2 % and friction that the model does not have; its efforts are late."""
    motion, rng = smooth(robot.dof, 6000, seed), np.random.default_rng(seed)
    effort = di.inverse_dynamics(robot.with_parameters(robot.parameters.replace(truth(robot, 5))), motion)
    size = np.sqrt(np.mean(effort**2, axis=0))
    effort = effort + 0.05 * size * np.sign(motion.v) * np.exp(-((motion.v / 0.1) ** 2))
    effort = effort + 0.02 * size * np.repeat(rng.normal(size=(300, robot.dof)), 20, axis=0)
    effort = np.stack([np.interp(motion.t - late, motion.t, column) for column in effort.T], axis=1)
    return di.Log(motion.t, robot.coordinate_names, motion.q, effort, effort_kind="joint_torque", name=f"run {seed}")


@pytest.fixture(scope="module")
def robot() -> di.Mechanism:
    return arm(PLANAR, gravity=(0.0, -9.81, 0.0))


def said(robot: di.Mechanism, logs: list[di.Log]) -> list[str]:
    return [note for note in di.Regression.from_logs(robot, logs).notes if note.startswith("delay: efforts are")]


@pytest.mark.parametrize("late", [LATE, -LATE])
def test_a_delay_is_said_with_its_size_and_sign(robot, late):
    (note,) = said(robot, [log_of(robot, seed, late) for seed in (1, 2)])
    assert ("late" if late > 0 else "early") in note
    assert float(note.split("delay=")[1].split()[0]) == pytest.approx(late, abs=0.003)


def test_the_summary_of_a_fit_says_it(robot):
    fit = di.MAP().fit(di.Regression.from_logs(robot, [log_of(robot, 1, LATE)])).result_
    assert "delay: efforts are 20" in fit.summary()


def test_punctual_efforts_say_nothing(robot):
    assert not any(said(robot, [log_of(robot, seed, 0.0)]) for seed in range(4))


def test_delay_shifts_efforts_in_fit_and_score(robot):
    train, test = (log_of(robot, seed, LATE) for seed in (1, 2))
    punctual = [log_of(robot, seed, 0.0) for seed in (1, 2)]
    fits = [
        di.MAP().fit(di.Regression.from_logs(robot, [log], cutoff=5.0, **options)).result_
        for log, options in ((train, {"delay": LATE}), (train, {}), (punctual[0], {}))
    ]
    shifted, late, right = (fit.score(log).metrics.relative for fit, log in zip(fits, (test, test, punctual[1]), strict=True))
    assert shifted == pytest.approx(right, rel=0.02)
    assert late > 1.1 * shifted


@pytest.mark.parametrize("delay", [np.nan, np.inf, "auto", None, True, 4.0])
def test_a_wrong_delay_gets_a_sentence(robot, delay):
    with pytest.raises(LogError, match="delay is"):
        di.prepare(log_of(robot, 1, 0.0), delay=delay)


def test_the_shift_is_exact_for_whole_samples(robot):
    log = log_of(robot, 1, 0.0)
    moved = replace(log, effort=np.roll(log.effort, 4, axis=0))
    found, wanted = di.prepare(moved, cutoff=5.0, delay=4 / log.rate), di.prepare(log, cutoff=5.0)
    assert np.allclose(found.effort[:-4], wanted.effort[:-4], rtol=0.0, atol=1e-9)
