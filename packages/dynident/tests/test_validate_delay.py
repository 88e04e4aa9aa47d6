"""Late efforts: reported with the right delay, and never when they are not late."""

from __future__ import annotations

import numpy as np
import pytest
from identify_cases import PLANAR, arm, smooth, truth

import dynident as di
from dynident.identify import base_parameters
from dynident.identify.regression.rows import Rows
from dynident.signals import prepare
from dynident.signals.quality import Finding
from dynident.validate.diagnosis.delay import Windows

LATE = 0.01  # [s]; from about 15 ms on it is a suspicion, see test_validate_inspection


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


def said(robot: di.Mechanism, log: di.Log) -> list[Finding]:
    return [finding for finding in di.inspect(log, robot).findings if finding.kind == "delay"]


@pytest.mark.parametrize("late", [LATE, -LATE])
def test_a_delay_is_said_with_its_size_and_sign(robot, late):
    (finding,) = said(robot, log_of(robot, 1, late))
    assert ("late" if late > 0 else "early") in finding.sentence
    assert finding.value == pytest.approx(late, abs=0.003)
    assert f"delay={finding.value:.3g}" in finding.sentence


def test_the_notes_of_an_identification_say_it(robot):
    done = di.identify(robot, log_of(robot, 1, LATE), validate=0)
    (finding,) = (note for note in done.fit.notes if note.kind == "delay")
    assert finding.value == pytest.approx(LATE, abs=0.001)


def test_punctual_efforts_say_nothing(robot):
    assert not any(said(robot, log_of(robot, seed, 0.0)) for seed in range(4))


def test_the_advice_mends_it(robot):
    late = [log_of(robot, seed, 2 * LATE) for seed in (1, 2)]
    tables = [{"t": log.t, "q": log.position, "tau": log.effort} for log in late]
    mended = [di.Log.read(table, "joint_torque", joints=robot.coordinate_names, delay=2 * LATE) for table in tables]
    punctual = [log_of(robot, seed, 0.0) for seed in (1, 2)]
    errors = []
    for train, test in (mended, late, punctual):
        fit = di.MAP().fit(di.Regression.from_logs(robot, [train], cutoff=5.0)).result_
        errors.append(fit.score(test).metrics.relative)
    assert not any(said(robot, log) for log in mended)
    assert errors[0] == pytest.approx(errors[2], rel=0.02)
    assert errors[1] > 1.1 * errors[0]


@pytest.mark.parametrize(("frequency", "longest"), [(1.0, 0.5 / 3.0), (2.0, 0.25 / 3.0), (0.2, 0.2)])
def test_delays_are_searched_up_to_half_a_period_of_the_band_and_a_fifth_of_a_second(robot, frequency, longest):
    """The band is three times the RMS frequency of the motion, here a sine."""
    t = np.arange(6000) / 200.0
    position = 0.5 * np.sin(2.0 * np.pi * frequency * t[:, None] + np.arange(robot.dof))
    log = di.Log(t, robot.coordinate_names, position, np.cos(position), effort_kind="joint_torque")
    windows = Windows(Rows(robot), base_parameters(robot), prepare(log), (), False)
    assert windows.reach == pytest.approx(longest, rel=0.02)
