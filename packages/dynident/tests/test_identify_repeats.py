"""Motions that repeat themselves: an error of the model is the same every time, so that repeating must not make it a fact."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from identify_cases import PLANAR, simulated_log
from identify_cases import arm as arm_of

import dynident as di
from dynident.identify.regression.factor import repeated_stretches
from dynident.signals.preparation import period_of

RATE = 100.0
TABLE = [(0.0, np.pi / 2, 0.4, 0.0), (0.5, 0.0, 0.0, 0.0), (0.4, 0.0, 0.0, 0.0)]


def arm(scale: float = 1.0) -> di.Mechanism:
    """Three axes with friction; the masses are `scale` times the true ones."""
    robot = di.Mechanism.from_dh(TABLE, name="rrr")
    values = np.zeros(len(robot.parameters))
    for i, (m, c) in enumerate([(8.0, (0.0, -0.2, 0.02)), (5.0, (-0.25, 0.01, 0.03)), (3.0, (-0.2, 0.02, -0.01))]):
        x = np.array(c)
        tensor = 0.02 * m * np.eye(3) + m * (x @ x * np.eye(3) - np.outer(x, x))
        values[10 * i : 10 * i + 10] = scale * np.array([m, *(m * x), *tensor[np.triu_indices(3)]])
    known = {"ia": 0.3, "fv": 3.0, "fc": 4.0}
    for k in range(30, values.size):
        values[k] = known.get(robot.parameters.names[k].split("_")[0], 0.0) if scale == 1.0 else 0.0
    return robot.with_parameters(robot.parameters.replace(values))


def recorded(q: np.ndarray, rng: np.random.Generator, name: str) -> di.Log:
    """The log of positions (N, 3) of the true arm, whose friction grows with the load and sticks: no column says so."""
    t = np.arange(len(q)) / RATE
    v = np.gradient(q, t, axis=0)
    a = np.gradient(v, t, axis=0)
    effort = di.inverse_dynamics(arm(), (q, v, a))
    gravity = di.inverse_dynamics(arm(), (q, 0 * v, 0 * a))
    effort = effort + (3.0 * np.exp(-((v / 0.1) ** 2)) + 0.15 * np.abs(gravity)) * np.tanh(v / 0.01)
    effort = effort + 0.1 * rng.normal(size=effort.shape)
    position = q + 1e-5 * rng.normal(size=q.shape)
    return di.Log(t=t, joints=arm().coordinate_names, position=position, effort=effort, effort_kind="joint_torque", name=name)


def pick_and_place(cycles: int, rng: np.random.Generator) -> np.ndarray:
    """Positions of moves to and fro between two points with rests of different length."""
    a, b = np.array([0.6, 0.9, -0.8]), np.array([-0.5, 0.3, -0.1])
    s = np.linspace(0.0, 1.0, int(1.1 * RATE))[:, None]
    s = 10 * s**3 - 15 * s**4 + 6 * s**5
    parts = []
    for _ in range(cycles):
        for first, last in ((a, b), (b, a)):
            parts += [np.repeat(first[None], int(rng.uniform(0.3, 0.9) * RATE), axis=0), first + (last - first) * s]
    return np.vstack(parts)


def exciting(rng: np.random.Generator) -> np.ndarray:
    """Positions of sums of harmonics over one period of 15 s."""
    t = np.arange(int(15 * RATE)) / RATE
    w = 2 * np.pi * np.arange(1, 6) / 15.0
    return np.sum(0.3 * rng.normal(size=(3, 5)) * np.sin(t[:, None, None] * w + rng.uniform(0, 6.0, (3, 5))), axis=2)


@pytest.fixture(scope="module")
def held_out() -> di.Log:
    return recorded(exciting(np.random.default_rng(1)), np.random.default_rng(2), "exciting")


def fitted(log: di.Log) -> di.Fit:
    return di.MAP().fit(di.Regression.from_logs(arm(1.15), [log])).result_


def test_repeating_a_motion_makes_no_error_of_the_model_a_fact(held_out: di.Log) -> None:
    few, many = (
        fitted(recorded(pick_and_place(n, np.random.default_rng(3)), np.random.default_rng(4), f"{n} cycles")) for n in (1, 15)
    )
    score = many.score(held_out)
    assert any("the motion repeats" in note.sentence for note in many.notes)
    assert score.metrics.relative < 1.2 * few.score(held_out).metrics.relative < score.description
    assert score.coverage > 0.85
    assert np.median(many.std / few.std) > 0.7  # independent errors would fall to 0.26
    # Moves of 1.1 s do not pass 3 Hz: rows made there are explained only by models of such rows.
    assert many.sources[0]["cutoff"] > 5.0


def test_twins_in_other_logs_are_found(held_out: di.Log) -> None:
    logs = [recorded(pick_and_place(1, np.random.default_rng(k)), np.random.default_rng(k), f"run {k}") for k in range(8)]
    evidence = di.Regression.from_logs(arm(1.15), logs)
    assert any("the motion repeats" in note.sentence for note in evidence.notes)
    for group in evidence.groups:
        assert sum(group.counts) == group.count
        np.testing.assert_allclose(group.products.sum(axis=0), group.R.T @ group.R, rtol=1e-6, atol=1e-6)
    assert di.MAP().fit(evidence).result_.score(held_out).coverage > 0.85


def test_an_exciting_motion_repeats_nothing() -> None:
    evidence = di.Regression.from_logs(
        arm(1.15), [recorded(exciting(np.random.default_rng(5)), np.random.default_rng(6), "one")]
    )
    assert not any("the motion repeats" in note.sentence for note in evidence.notes)


@pytest.mark.parametrize("mass", [1e-17, 1e-9, 1e-6])
def test_masses_that_only_stand_in_for_a_description_are_none(held_out: di.Log, mass: float) -> None:
    train = recorded(exciting(np.random.default_rng(7)), np.random.default_rng(8), "train")
    robot = di.Mechanism.from_dh(TABLE, name="rrr")
    values = np.zeros(len(robot.parameters))
    values[[0, 10, 20]] = mass
    values[[4, 7, 9, 14, 17, 19, 24, 27, 29]] = 1e-3 * mass
    robot = robot.with_parameters(robot.parameters.replace(values))
    score = di.MAP().fit(di.Regression.from_logs(robot, [train])).result_.score(held_out)
    assert score.metrics.relative < 1.1 * score.free


@pytest.mark.parametrize("hold", [3, 7, 10, 25])
def test_periods_of_signals_that_are_held_are_within_the_samples(hold):
    """Sample and hold makes steps, whose differences have minima that a parabola does not describe."""
    rng = np.random.default_rng(hold)
    for _ in range(60):
        N, period = int(rng.integers(300, 2500)), float(rng.uniform(60.0, 900.0))
        t = np.arange(N)
        x = sum(np.sin(2 * np.pi * k * t / period + rng.uniform(0, 6)) / k for k in (1, 2, 3))
        held = np.repeat(x[::hold], hold)[:N, None]
        found = period_of(held, np.gradient(held, axis=0))
        assert found == np.inf or 0.0 < found <= N / 2 + 2


def test_pieces_of_several_logs_in_the_same_states_belong_to_one_stretch():
    log = simulated_log(arm_of(PLANAR), 20.0)
    band = SimpleNamespace(moving=np.array([True, True]), band=2.0, motion_band=0.75)
    first, *others = repeated_stretches([log] * 8, band, 80)
    assert sorted(set(first.labels.tolist())) == list(range(first.count))
    for cut in others:
        np.testing.assert_array_equal(cut.labels, first.labels)
        np.testing.assert_allclose(cut.edges, first.edges, atol=1e-12)
