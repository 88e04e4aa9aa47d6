"""Delays and gains of efforts in logs of virtual robots whose friction the model lacks: found with their size or not at all."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import dynident as di
from dynident.cli.published import published_limits
from dynident.cli.robots import find_machine, find_robot
from dynident.trajectory import random_motion, sample
from dynident_papers.robots import rrr

NOISE, WITHIN = 0.01, 0.3  # of the RMS effort; of the delay
NAMES = ("rrr", "er3a_c60", "dualv", "cft_cartesian")


@cache
def run(name: str, seed: int) -> tuple[di.Mechanism, di.Log]:
    """Return the model that is fitted, without the friction laws of the machine, and a log of it."""
    machine = find_machine(name)
    if name == "rrr":  # no friction at all in the model, sums of tanh in the log
        motion = sample(random_motion([0.3, 0.2, 0.4], [1.5, 1.0, 1.5], seed, 12.0, 8), 500.0)
        return rrr.mechanism(), machine.simulate(motion, seed=seed).log
    # Coulomb and viscous friction; cubic that warms up, Stribeck, and sums of tanh in the logs
    designed = find_robot(name).mechanism()
    known = published_limits(name, designed)
    made = di.excite(designed, known.limits, family=known.family, base=known.base, iterations=8, starts=1, seed=seed)
    plan = made.plans["plan"]
    convert = find_robot(name).reference
    log = machine.simulate(plan if convert is None else convert(plan), seed=seed).log
    return machine.model if name == "cft_cartesian" else designed, log


def inspected(
    name: str, seed: int, late: float, channels: list[int] | None = None
) -> tuple[tuple[str, ...], list[tuple[str, float | None]]]:
    """Return the channels of a log, and channel and size of the delays found when efforts are late and noisy."""
    robot, log = run(name, seed)
    effort = log.effort.copy()
    for j in range(effort.shape[1]) if channels is None else channels:
        effort[:, j] = np.interp(log.t - late, log.t, effort[:, j])
    effort += NOISE * np.sqrt(np.mean(effort**2, axis=0)) * np.random.default_rng(seed).normal(size=effort.shape)
    found = di.inspect(replace(log, effort=effort), robot).of("delay")
    return log.joints, [(finding.channel, finding.value) for finding in found]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_punctual_efforts_are_not_called_late(name, seed):
    assert inspected(name, seed, 0.0)[1] == []


@pytest.mark.parametrize("late", [0.005, 0.01, 0.02, -0.01])
@pytest.mark.parametrize("name", NAMES)
def test_a_delay_of_all_joints_is_estimated_and_reported_once(name, late):
    ((channel, value),) = inspected(name, 1, late)[1]
    assert channel == "effort"
    assert value == pytest.approx(late, rel=WITHIN)


@pytest.mark.parametrize("name", NAMES)
def test_one_late_joint_is_named(name):
    joints, found = inspected(name, 1, 0.048, [1])
    ((channel, value),) = found
    assert channel == f"effort:{joints[1]}"
    assert value == pytest.approx(0.048, rel=WITHIN)


def test_a_delay_is_found_in_one_second():
    """DualV's own plan takes one second: fewer windows of the usual length than a delay and smooth friction need."""
    robot, log = run("dualv", 1)
    short = log.rows(0, round(log.rate))
    late = replace(short, effort=np.stack([np.interp(short.t - 0.005, short.t, x) for x in short.effort.T], axis=1))
    assert not di.inspect(short, robot).of("delay")
    (found,) = di.inspect(late, robot).of("delay")
    assert found.value == pytest.approx(0.005, rel=WITHIN)


@pytest.mark.parametrize("gain", [0.5, 2.0])
def test_one_gain_is_named_in_one_second(gain):
    """Smooth friction alone would leave only noise in these efforts; the gain still predicts left-out stretches better."""
    robot, log = run("dualv", 1)
    short = log.rows(0, round(log.rate))
    spoiled = replace(short, effort=short.effort * np.where(np.arange(4) == 2, gain, 1.0))
    assert not di.inspect(short, robot).of("gain")
    first = di.inspect(spoiled, robot).findings[0]
    assert (first.kind, first.channel) == ("gain", f"effort:{log.joints[2]}")
    assert first.value == pytest.approx(gain, rel=0.1)
