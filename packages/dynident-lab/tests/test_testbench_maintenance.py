"""Fault detection: a fault of 30 % behind a change of 70 % by temperature, and false alarms as often as stated."""

from __future__ import annotations

import numpy as np
import pytest

from dynident.errors import DynidentError
from dynident_lab.testbench import (
    FaultDetector,
    FrictionHistory,
    MeasuredTemperature,
    NoCompensation,
    ThermalPrediction,
    WarmupTime,
    maintenance,
)
from dynident_lab.thermal import SecondOrder

# Axis 4 of [Pagani2022] with a steeper friction, so that cold is 70 % above hot.
MODEL = SecondOrder(alpha=-0.0165, beta=1.0, K1=4.41, K2=4.57, C1=737.61, C2=9163.45)
POWER = 97.65


def simulated(rng, fault=0.0, onset=3600.0, day=0.02, cycle=0.01, n=24, ambient=20.0, name="test"):
    """One test: two hours from cold, day-to-day spread, cycle noise, a noisy sensor, perhaps a step in the friction."""
    t = 300.0 * np.arange(n)
    wrong = np.where(t >= onset, 1.0 + fault, 1.0)
    warming = MODEL.simulate(t, POWER * wrong, ambient=ambient)  # the fault heats the joint, too
    f = 21.4 * warming.ratio * (1 + day * rng.standard_normal()) * (1 + cycle * rng.standard_normal(n))
    return FrictionHistory(
        t=t,
        friction=f * wrong,
        temperature=warming.temperature + 0.5 * rng.standard_normal(n),
        power=np.full(n, POWER),
        joint="joint 1",
        name=name,
    )


@pytest.fixture
def few_draws(monkeypatch):
    monkeypatch.setattr(maintenance, "DRAWS", 4000)


def test_the_thermal_change_hides_the_fault():
    healthy = simulated(np.random.default_rng(0), day=0.0, cycle=0.0)
    assert healthy.friction[0] / healthy.friction[-1] == pytest.approx(1.70, abs=0.05)
    # With the fault the friction is still below that of the healthy cold joint: no fixed limit can tell them apart.
    assert np.all(simulated(np.random.default_rng(0), fault=0.3, day=0.0, cycle=0.0).friction[12:] < healthy.friction[0])


@pytest.mark.parametrize(
    ("make", "least"), [(MeasuredTemperature, 0.26), (lambda: ThermalPrediction(MODEL), 0.26), (WarmupTime, 0.15)]
)
def test_a_fault_of_30_percent_is_found_with_size_and_onset(make, least):
    """Time alone does not know that the fault heats the joint: it finds the fault, but smaller than it is."""
    rng = np.random.default_rng(1)
    detector = FaultDetector(make(), false_alarm=0.01).fit([simulated(rng) for _ in range(5)])
    found = detector.check(simulated(rng, fault=0.30))
    assert found.alarm and found.probability < 0.01
    assert least < found.size < (0.34 if least > 0.2 else 0.26)
    assert found.onset == pytest.approx(3600.0, abs=301.0)
    assert 0.0 < found.detectable < 0.30
    assert "ALARM" in found.summary()
    assert not detector.check(simulated(rng)).alarm


def test_without_compensation_the_same_fault_is_missed():
    rng = np.random.default_rng(1)
    healthy = [simulated(rng) for _ in range(5)]
    blind = FaultDetector(NoCompensation(), false_alarm=0.01).fit(healthy)
    seeing = FaultDetector(MeasuredTemperature(), false_alarm=0.01).fit(healthy)
    faults = [simulated(rng, fault=0.30) for _ in range(12)]
    assert sum(seeing.check(h).alarm for h in faults) == 12
    assert sum(blind.check(h).alarm for h in faults) <= 3
    assert blind.check(faults[0]).detectable > 0.30


@pytest.mark.parametrize(("tests", "day"), [(1, 0.02), (3, 0.02), (5, 0.0)])
def test_the_deviation_of_a_change_is_about_its_error(tests, day, few_draws):
    """The deviation of the step alone is 2 to 120 times too small: it leaves out the level of the healthy tests."""
    ratios = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        healthy = [simulated(rng, day=day, cycle=0.002) for _ in range(tests)]
        found = FaultDetector(MeasuredTemperature()).fit(healthy).check(simulated(rng, fault=0.32, day=day, cycle=0.002))
        ratios.append((found.size - 0.32) / found.size_std)
    assert 0.4 < np.sqrt(np.mean(np.square(ratios))) < 1.8


@pytest.mark.parametrize("tests", [3, 8])
def test_false_alarms_are_as_frequent_as_stated(tests, few_draws):
    rng = np.random.default_rng(tests)
    alarms, low = [], []
    for _ in range(150):
        detector = FaultDetector(ThermalPrediction(MODEL), false_alarm=0.1).fit([simulated(rng) for _ in range(tests)])
        found = detector.check(simulated(rng))
        alarms.append(found.alarm)
        low.append(found.probability < 0.1)
    assert 0.03 < np.mean(alarms) < 0.18
    assert np.mean(low) == pytest.approx(np.mean(alarms), abs=0.01)


def test_a_fault_of_the_detectable_size_is_found_nine_times_of_ten(few_draws):
    rng = np.random.default_rng(5)
    found = []
    for _ in range(120):
        detector = FaultDetector(ThermalPrediction(MODEL), false_alarm=0.05).fit([simulated(rng) for _ in range(8)])
        size = detector.check(simulated(rng)).detectable
        found.append(detector.check(simulated(rng, fault=size, onset=6300.0)).alarm)
    assert 0.8 < np.mean(found) < 1.0


def test_a_lower_friction_is_a_change_too():
    rng = np.random.default_rng(6)
    detector = FaultDetector(MeasuredTemperature()).fit([simulated(rng) for _ in range(5)])
    found = detector.check(simulated(rng, fault=-0.3, onset=0.0))
    assert found.alarm and found.size == pytest.approx(-0.3, abs=0.06) and found.onset == 0.0


def test_limits_of_the_answer_are_stated():
    rng = np.random.default_rng(7)
    alone = FaultDetector(MeasuredTemperature()).fit([simulated(rng)])
    assert any("only one healthy test" in note for note in alone.check(simulated(rng)).notes)
    assert any("extrapolated" in note for note in alone.check(simulated(rng, ambient=-5.0)).notes)
    data = alone.check(simulated(rng)).to_dict()
    assert data["false_alarm"] == 0.01 and len(data["residual"]) == 24


def test_wrong_input_is_named():
    rng = np.random.default_rng(8)
    healthy = simulated(rng)
    plain = FrictionHistory(t=healthy.t, friction=healthy.friction)
    with pytest.raises(DynidentError, match="call fit first"):
        FaultDetector(WarmupTime()).check(healthy)
    with pytest.raises(DynidentError, match=r"false_alarm = 0\.9"):
        FaultDetector(WarmupTime(), false_alarm=0.9).fit([healthy])
    with pytest.raises(DynidentError, match="window = 0"):
        FaultDetector(WarmupTime(), window=0).fit([healthy])
    with pytest.raises(DynidentError, match="0 healthy tests with 0 points"):
        FaultDetector(WarmupTime()).fit([])
    with pytest.raises(DynidentError, match="no temperature"):
        FaultDetector(MeasuredTemperature()).fit([plain])
    with pytest.raises(DynidentError, match="no friction power"):
        FaultDetector(ThermalPrediction(MODEL)).fit([plain])


def test_a_check_draws_itself():
    pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'dynident[report]'")
    rng = np.random.default_rng(9)
    detector = FaultDetector(MeasuredTemperature()).fit([simulated(rng) for _ in range(3)])
    assert len(detector.check(simulated(rng, fault=0.3)).plot().axes) == 2
