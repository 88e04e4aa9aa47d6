"""Repeatability: variance components against a balanced oracle and against truth, drift, warm-up."""

from __future__ import annotations

import numpy as np
import pytest

from dynident.errors import DynidentError
from dynident_lab.testbench import Estimate, FrictionHistory, estimates_of, nested_spread, repeatability
from dynident_lab.thermal import SecondOrder

AXIS4 = SecondOrder(alpha=-0.0141, beta=0.9971, K1=4.41, K2=4.57, C1=737.61, C2=9163.45)


def test_balanced_components_are_those_of_the_textbook():
    rng = np.random.default_rng(0)
    y = 10.0 + rng.normal(0, 2, (3, 1, 1)) + rng.normal(0, 1, (3, 4, 1)) + rng.normal(0, 0.5, (3, 4, 6))
    found = nested_spread([list(robot) for robot in y])
    e = y.var(axis=2, ddof=1).mean()
    tests = y.mean(axis=2).var(axis=1, ddof=1).mean() - e / 6
    robots = y.mean(axis=(1, 2)).var(ddof=1) - (tests + e / 6) / 4
    np.testing.assert_allclose([found.cycles, found.tests, found.robots], np.sqrt([e, tests, robots]), rtol=1e-12)
    assert found.mean == pytest.approx(y.mean())
    assert found.tests_p < 1e-6


def test_components_of_unbalanced_data_are_unbiased():
    rng = np.random.default_rng(1)
    squares = []
    for _ in range(600):
        groups = []
        for sizes in ((3, 8), (5, 4, 6), (10,), (2, 7, 3)):
            robot = rng.normal(0, 1.5)
            groups.append([robot + rng.normal(0, 1.0) + rng.normal(0, 0.7, n) for n in sizes])
        s = nested_spread(groups)
        squares.append((s.cycles**2, s.tests**2, s.robots**2))
    # Negative variances are cut at zero, which biases upwards a little.
    np.testing.assert_allclose(np.mean(squares, axis=0), [0.49, 1.0, 2.25], rtol=0.15)


def test_equal_robots_are_called_different_as_often_as_stated():
    rng = np.random.default_rng(2)
    p = [
        nested_spread([[rng.normal(0, 1.0) + rng.normal(0, 0.5, 6) for _ in range(4)] for _ in range(2)]).robots_p
        for _ in range(400)
    ]
    assert np.mean(np.array(p) < 0.1) == pytest.approx(0.1, abs=0.045)


def history(rng, robot, test, gain):
    t = 300.0 * np.arange(24)
    f = (
        21.4
        * gain
        * AXIS4.simulate(t, 97.65).ratio
        * (1 + 0.01 * rng.standard_normal())
        * (1 + 0.003 * rng.standard_normal(24))
    )
    return FrictionHistory(t=t, friction=f, robot=robot, name=test)


@pytest.fixture(scope="module")
def campaign():
    """[Pagani2022, chapter 5]: two robots, four tests each, 24 cycles of 5 min."""
    rng = np.random.default_rng(3)
    return [
        entry
        for robot, gain in (("robot 1", 1.0), ("robot 2", 1.08))
        for k in range(4)
        for entry in estimates_of(history(rng, robot, f"test {k + 1}", gain))
    ]


def test_drift_warm_up_and_spread_of_a_campaign(campaign):
    found = repeatability(campaign, tolerance=0.05)
    entry = found["friction"]
    assert len(entry.drifts) == 8 and entry.settled
    assert entry.mix is not None and entry.mix.order == 2
    cold = float(AXIS4.simulate([0.0, 1.0], 97.65).ratio[0] / AXIS4.steady_ratio(97.65)) - 1.0
    assert entry.mix.change == pytest.approx(cold, abs=0.02)
    # True drift: within 5 % after tau ln(0.16498 / (0.05 0.61797)) of the slow mode.
    true = 28.5513 * 60 * np.log(0.16498 / (0.05 * 0.61797))
    assert found.warmup == pytest.approx(true, rel=0.2)
    s = entry.spread
    assert s.cycles / s.mean == pytest.approx(0.003, rel=0.4)
    assert 0.003 < s.tests / s.mean < 0.02
    assert s.robots / s.mean == pytest.approx(0.08 / np.sqrt(2) / 1.04, rel=0.4)
    assert s.robots_p < 0.01
    assert "robots differ" in found.summary()
    assert found.to_dict()["parameters"][0]["name"] == "friction"


def test_a_steady_parameter_needs_no_warm_up(campaign):
    rng = np.random.default_rng(4)
    rows = [Estimate(e.robot, e.test, e.t, {**e.values, "inertia": 2.0 + 0.01 * rng.standard_normal()}) for e in campaign]
    found = repeatability(rows)
    assert found["inertia"].mix is not None and abs(found["inertia"].mix.change) < 0.01
    assert found["inertia"].warmup == 0.0 or found["inertia"].warmup < 0.2 * found["friction"].warmup
    assert found.warmup == found["friction"].warmup


def test_estimates_of_fits_are_their_base_parameters():
    import dynident as di
    from dynident.mechanics import Motion

    robot = di.Mechanism.from_dh([{"a": 0.0, "alpha": 0.0, "d": 0.0, "theta": 0.0, "joint": "j"}])
    t = np.arange(400) / 100
    motion = Motion(t, np.sin(t)[:, None], np.cos(t)[:, None], -np.sin(t)[:, None])
    effort = (2.0 * motion.a + 0.3 * motion.v + np.sign(motion.v)) + 0.01 * np.random.default_rng(0).standard_normal((400, 1))
    fit = di.WLS().fit(di.Regression.from_motion(robot, motion, effort)).result_
    estimate = Estimate.of(fit, "robot", "test", 60.0)
    assert estimate.values and set(estimate.values) <= set(fit.base.names)


def test_what_cannot_be_said_is_said(campaign):
    one = repeatability([e for e in campaign if e.robot == "robot 1"])
    assert any("only one robot" in note for note in one.notes)
    assert np.isnan(one["friction"].spread.robots)
    few = repeatability([e for e in campaign if e.t < 1000.0])
    assert any("fewer than 5 cycles" in note for note in few.notes)
    cut = repeatability([e for e in campaign if e.t < 3000.0], tolerance=0.01)
    assert any("the spread covers all cycles" in note for note in cut.notes)
    with pytest.raises(DynidentError, match="no estimates"):
        repeatability([])
    with pytest.raises(DynidentError, match="tolerance = 3"):
        repeatability(campaign, tolerance=3.0)
    with pytest.raises(DynidentError, match="no parameter is in all"):
        repeatability([Estimate("r", "t", 0.0, {"a": 1.0}), Estimate("r", "t", 1.0, {"b": 1.0})])
    with pytest.raises(DynidentError, match="no parameter 'x'"):
        one["x"]


def test_a_study_draws_itself(campaign):
    pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'dynident[report]'")
    assert repeatability(campaign).plot().axes
