"""The zone rule of tuning on simulated steps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from dynident.errors import DynidentError
from dynident_papers.servo import Gains, zone_tune_cascade, zone_tuning


def _second_order(gains: Gains, lag: float = 5e-3, h: float = 5e-4, end: float = 1.0) -> tuple[np.ndarray, list[float]]:
    """Return the step of PID control of 1 / (0.1 s + 1) behind a first-order drive."""
    t, y, drive, total, out = np.arange(round(end / h)) * h, 0.0, 0.0, 0.0, []
    for _ in t:
        e = 1.0 - y
        total += e * h
        slope = (drive - y) / 0.1
        drive += (gains.kp * e + gains.ki * total - gains.kd * slope - drive) * (1.0 - np.exp(-h / lag))
        y += (drive - y) * (1.0 - np.exp(-h / 0.1))
        out.append(y)
    return t, out


def test_the_zone_rule_finds_the_limit_of_no_overshoot_and_then_three_per_cent() -> None:
    found = zone_tuning(_second_order)
    # 1 / ((0.1 s + 1)(0.005 s + 1)) with P: zeta = 1 / (2 sqrt(1 + kp)) * (tau1 + tau2) / sqrt(tau1 tau2); quiet = 0.1 %
    # means zeta = 0.91, that is kp = 5.65; the sampled loop is a little less damped.
    assert found.gains.kp == pytest.approx(5.4, rel=0.1)
    assert 0.02 <= found.overshoot <= 0.04
    assert found.gains.kd == 0.0
    zones = [trial.zone for trial in found.history]
    assert zones.index("integral") > zones.index("proportional")
    assert "proportional" not in zones[zones.index("integral") :], "one zone after the other"
    assert found.note == "kp at the limit of overshoot"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the trial loops explode, as they may
def test_the_derivative_is_used_only_when_it_is_needed() -> None:
    plain = zone_tuning(_second_order, integral=False)
    same = zone_tuning(_second_order, integral=False, rise_time=2.0 * plain.rise_time)
    assert same.gains == plain.gains
    quick = zone_tuning(_second_order, integral=False, rise_time=0.7 * plain.rise_time)
    assert quick.gains.kd > 0.0
    assert quick.gains.kp > plain.gains.kp
    assert quick.rise_time <= 0.7 * plain.rise_time
    assert quick.overshoot < 2e-3


def test_a_cascade_is_tuned_from_the_inside_out() -> None:
    order: list[str] = []

    def velocity(gains: Gains, inner: Mapping[str, Gains]) -> tuple[np.ndarray, list[float]]:
        order.append("velocity")
        assert not inner
        return _second_order(gains)

    def position(gains: Gains, inner: Mapping[str, Gains]) -> tuple[np.ndarray, list[float]]:
        order.append("position")
        h, pi = 1e-3, inner["velocity"]
        t, x, v, drive, total, out = np.arange(2000) * h, 0.0, 0.0, 0.0, 0.0, []
        for _ in t:
            e = gains.kp * (1.0 - x) - v
            total += e * h
            drive += (pi.kp * e + pi.ki * total - drive) * (1.0 - np.exp(-h / 5e-3))
            v += (drive - v) * (1.0 - np.exp(-h / 0.1))
            x += v * h
            out.append(x)
        return t, out

    found = zone_tune_cascade([("velocity", velocity, {}), ("position", position, {"integral": False})])
    assert order.index("position") > len([name for name in order if name == "velocity"]) - 1
    assert found["position"].gains.ki == 0.0
    assert found["position"].overshoot <= 2e-3
    assert 5.0 < found["position"].gains.kp < 40.0


def test_a_first_order_plant_never_overshoots() -> None:
    t = np.linspace(0.0, 1.0, 200)
    found = zone_tuning(lambda g: (t, g.kp / (1.0 + g.kp) * -np.expm1(-(1.0 + g.kp) * t)), integral=False)
    assert "40 doublings" in found.note


def test_instability_is_a_limit_even_without_overshoot_seen() -> None:
    """A loop that explodes or goes to infinity must not look like a good one."""
    t = np.linspace(0.0, 1.0, 500)

    def step(gains: Gains) -> tuple[np.ndarray, np.ndarray]:
        growth = gains.kp - 10.0
        if growth > 5.0:
            return t, np.full(t.size, np.nan)
        return t, 1.0 - np.exp(np.minimum(growth, 3.0) * t) * np.cos(60.0 * t) * (np.exp(-8.0 * t) if growth < 0.0 else 1.0)

    with pytest.raises(DynidentError, match="no gain down to"):
        zone_tuning(step)  # it rings from the start, so nothing is without overshoot


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"start": 0.0}, "start is 0; give a number above 0"),
        ({"target": 0.0}, "target = 0.0"),
        ({"tolerance": 0.0}, "tolerance = 0.0"),
        ({"overshoot": (0.05, 0.02)}, "give 0 < least < most"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(DynidentError, match=sentence):
        zone_tuning(_second_order, **options)  # type: ignore[arg-type]


def test_a_bad_step_function_is_refused() -> None:
    with pytest.raises(DynidentError, match="simulate_step is a float"):
        zone_tuning(1.0)  # type: ignore[arg-type]
    with pytest.raises(DynidentError, match=r"the step response has shapes \(3,\) and \(2,\)"):
        zone_tuning(lambda gains: ([0.0, 1.0, 2.0], [0.0, 1.0]))
