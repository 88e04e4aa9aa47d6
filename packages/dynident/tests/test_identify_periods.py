"""Motions that repeat themselves: their period, the stretches of their evidence, and what repetition does not teach."""

from __future__ import annotations

import numpy as np
import pytest
from identify_cases import DOWN_Y, PLANAR, arm

import dynident as di
from dynident.identify import MAP, Regression
from dynident.identify.regression.factor import stretches_of
from dynident.mechanics import inverse_dynamics
from dynident.signals.preparation import _lowest, period_of

RATE, BASE = 100.0, 0.2


def harmonic(periods, seed=0, dof=2):
    """Return a sum of five harmonics of 0.2 Hz."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(periods * RATE / BASE)) / RATE
    w = 2 * np.pi * BASE * np.arange(1, 6)
    size, phase = rng.normal(size=(dof, 5)) * 0.4, rng.uniform(0, 2 * np.pi, (dof, 5))
    angle = t[:, None, None] * w + phase
    parts = (size * np.sin(angle), size * w * np.cos(angle), -size * w**2 * np.sin(angle))
    return di.Motion(t, *(each.sum(axis=2) for each in parts))


def states(motion):
    """Return positions and velocities."""
    return motion.q, motion.v


@pytest.mark.parametrize("periods", [2.2, 5.0, 31.7])
def test_the_period_of_a_motion_is_found(periods):
    assert period_of(*states(harmonic(periods))) == pytest.approx(RATE / BASE, rel=1e-4)


def test_a_motion_that_is_not_repeated_has_no_period():
    t = np.arange(4000) / RATE
    q = np.sin(2 * np.pi * 0.01 * t**2)[:, None]  # a sweep
    assert period_of(q, np.gradient(q, t, axis=0)) == np.inf
    assert period_of(*states(harmonic(1.9))) == np.inf
    assert period_of(0 * q) == np.inf


@pytest.mark.parametrize(
    ("rows", "asked", "period"), [(600, None, 100.0), (600, None, 33.3), (599, 12, 250.2), (50, None, 3.0)]
)
def test_stretches_hold_every_row_once(rows, asked, period):
    found = stretches_of(np.arange(float(rows)), asked, period)
    assert found.edges[0] == 0
    assert found.edges[-1] == rows
    assert np.all(np.diff(found.edges) > 0)
    assert sum(found.rows()) == rows
    held = np.full(rows, -1)
    for first in range(0, rows, 64):
        for stretch, a, b in found.parts(slice(first, min(first + 64, rows))):
            held[first + a : first + b] = stretch
    assert tuple(np.bincount(held, minlength=found.count).tolist()) == found.rows()
    if 2 * period <= rows and period >= found.count:
        phase = np.array(found.phases)[held]
        whole = np.arange(int(rows - period))
        same = phase[whole] == phase[(whole + period).astype(int)]
        assert same.mean() > 0.9  # but for the rows at which rounding moves an edge


def test_repeating_a_motion_does_not_make_errors_of_the_model_smaller():
    """Ripple that the model does not have is the same in every period: twelve of them know no more about it than three."""
    robot = arm(PLANAR, gravity=DOWN_Y, terms=("ia", "fv", "fc", "off"))

    def deviations(periods):
        motion = harmonic(periods)
        tau = inverse_dynamics(robot, motion) + 0.5 * np.sin(9.0 * motion.q)
        tau = tau + 0.005 * np.random.default_rng(1).normal(size=tau.shape)
        return MAP().fit(Regression.from_motion(robot, motion, tau)).result_.std

    few, many = deviations(3.0), deviations(12.0)
    assert np.median(many / few) > 0.75  # the square root of a quarter for independent errors


def test_phases_survive_files_and_merging(tmp_path):
    robot = arm(PLANAR, gravity=DOWN_Y)
    one, other = (
        Regression.from_motion(robot, motion, inverse_dynamics(robot, motion)) for motion in (harmonic(4.0), harmonic(1.5, 1))
    )
    both = one + other
    back = Regression.load(both.save(tmp_path / "both.npz"), robot)
    for group, read in zip(both.groups, back.groups, strict=True):
        assert group.phases == read.phases
        assert len(group.phases) == len(group.counts)
        assert len(set(group.phases)) < len(group.phases)
        assert not set(group.phases[: len(one.groups[0].counts)]) & set(group.phases[len(one.groups[0].counts) :])


@pytest.mark.parametrize("vertex", [6.6, 7.0, 7.4])
def test_the_minimum_of_a_parabola_is_found_between_its_samples(vertex):
    place, depth = _lowest(0.01 + 0.3 * (np.arange(15.0) - vertex) ** 2, 7)
    assert place == pytest.approx(vertex, abs=1e-12)
    assert depth == pytest.approx(0.01, abs=1e-12)


@pytest.mark.parametrize("periods", [3.37, 7.81])
def test_a_period_between_two_samples_is_found(periods):
    """The samples of no period repeat those of another: only the minimum between them is deep enough."""
    t = np.arange(int(periods * 61.43))
    angle = 2 * np.pi * t[:, None] / 61.43 * np.arange(1, 6)
    q = np.column_stack([np.sin(angle + 0.3).sum(axis=1), np.cos(angle * [1, 2, 1, 2, 1]).sum(axis=1)])
    assert period_of(q, np.gradient(q, axis=0)) == pytest.approx(61.43, abs=0.05)


@pytest.mark.parametrize("period", [60.29, 60.71])
def test_the_second_period_halves_the_error_of_the_first(period):
    """A parabola misses the minimum of 1 - cos(w p), at d samples from the nearest, by w^2 d (1 - 4 d^2) / 12 <= 0.016 w^2."""
    w = 2.0 * np.pi / period
    t = np.arange(int(4.6 * period))[:, None]
    assert abs(period_of(np.sin(w * t), np.cos(w * t)) - period) < 0.5 * 0.0161 * w**2


@pytest.mark.parametrize("hold", [2, 5, 10, 25])
def test_held_positions_have_the_period_of_the_motion(hold):
    motion = harmonic(6.3)
    held = np.arange(len(motion.t)) // hold * hold
    assert period_of(motion.q[held], motion.v[held]) == pytest.approx(RATE / BASE, rel=1e-3)


@pytest.mark.parametrize("hold", [6, 12])
def test_rates_of_held_positions_do_not_pass_for_the_motion(hold):
    """A held position has a peak of its rate with every new value: these peaks repeat before the motion does."""
    angle = 2.0 * np.pi * (np.arange(4000) // hold * hold)[:, None] / 1500.0
    q = np.hstack([np.sin(angle), np.cos(2.0 * angle)])
    assert period_of(q, np.gradient(q, axis=0)) == pytest.approx(1500.0, rel=0.02)


def test_infinite_samples_have_no_period_and_no_warning():
    motion = harmonic(6.3)
    q = motion.q.copy()
    q[100] = np.inf
    with np.errstate(all="raise"):
        assert period_of(q, motion.v) == np.inf


def test_a_motion_that_is_run_twice_has_a_period_of_half_its_samples():
    angle = 2.0 * np.pi * np.arange(200)[:, None] / 100.0
    q = np.hstack([np.sin(angle), np.cos(2.0 * angle + 0.4)])
    assert period_of(q, np.roll(q, -1, axis=0) - np.roll(q, 1, axis=0)) == pytest.approx(100.0, abs=1e-6)
