"""Step metrics, path deviation, lag and tracking error against responses whose numbers are known in closed form."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from dynident.errors import DynidentError
from dynident.mechanics import Motion
from dynident.simulate import tracking_error
from dynident_lab.servo import path_deviation, radial_deviation, step_metrics, time_lag

T = np.linspace(0.0, 8.0, 16001)


def second_order(zeta: float, w: float = 5.0) -> np.ndarray:
    wd = w * np.sqrt(1.0 - zeta**2)
    return 1.0 - np.exp(-zeta * w * T) * (np.cos(wd * T) + zeta * w / wd * np.sin(wd * T))


@pytest.mark.parametrize("zeta", [0.2, 0.5, 0.8])
def test_second_order_response_has_the_textbook_numbers(zeta: float) -> None:
    w, m = 5.0, step_metrics(T, second_order(zeta))
    wd = w * np.sqrt(1.0 - zeta**2)
    assert m.overshoot == pytest.approx(np.exp(-np.pi * zeta / np.sqrt(1.0 - zeta**2)), rel=1e-6)
    assert m.peak_time == pytest.approx(np.pi / wd, abs=5e-4)
    assert m.rise == pytest.approx((np.pi - np.arccos(zeta)) / wd, rel=1e-5)  # first time at the command
    inside = np.abs(second_order(zeta) - 1.0)
    assert np.all(inside[m.settling + 1e-3 < T] <= 0.02)
    assert inside[np.searchsorted(T, m.settling) - 1] > 0.02 - 1e-4
    assert m.error == pytest.approx(0.0, abs=1e-3)


def test_first_order_response_never_exceeds_the_command() -> None:
    m = step_metrics(T, 1.0 - np.exp(-T / 0.3), band=0.05)
    assert np.isnan(m.rise)
    assert m.rise_10_90 == pytest.approx(0.3 * np.log(9.0), rel=1e-5)
    assert m.settling == pytest.approx(0.3 * np.log(20.0), rel=1e-5)
    assert m.overshoot == 0.0
    assert "rise nan s" in m.summary()


def test_a_step_down_that_comes_later_counts_from_there() -> None:
    y = np.where(T < 1.0, 3.0, 3.0 - 2.0 * np.interp(T - 1.0, T, second_order(0.5)))
    m, plain = step_metrics(T, y, 1.0, at=1.0), step_metrics(T, second_order(0.5))
    assert m.overshoot == pytest.approx(plain.overshoot, rel=1e-4)
    assert m.settling == pytest.approx(plain.settling, abs=1e-3)
    assert m.peak_time == pytest.approx(plain.peak_time, abs=1e-3)


def test_a_response_that_does_not_settle_has_no_settling_time() -> None:
    assert np.isnan(step_metrics(T, 1.0 + 0.5 * np.sin(T), before=0.0).settling)


@pytest.mark.parametrize(
    "call",
    [
        lambda: step_metrics([0.0, 1.0], [0.0, 1.0]),
        lambda: step_metrics(T, T * np.nan),
        lambda: step_metrics(T, T, 1.0, at=9.0),
        lambda: step_metrics(T, T, 1.0, band=2.0),
        lambda: step_metrics(T, 1.0 + 0.0 * T, 1.0),
        lambda: path_deviation(np.zeros((3, 2)), np.zeros((1, 2))),
        lambda: radial_deviation(np.zeros((3, 2)), np.zeros(3), 1.0),
        lambda: time_lag(T, 0.0 * T, T),
        lambda: time_lag(T, T, T, longest=0.0),
    ],
)
def test_bad_input_is_one_sentence(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DynidentError) as error:
        call()
    assert "\n" not in str(error.value)


def test_path_deviation_is_the_distance_to_the_polygon() -> None:
    path = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    points = np.array([[0.5, 0.1], [1.2, 0.5], [-0.3, 0.4], [1.0, 0.0], [0.9, 0.2], [1.3, 1.4]])
    np.testing.assert_allclose(path_deviation(points, path), [0.1, 0.2, 0.5, 0.0, 0.1, 0.5], atol=1e-15)
    many = np.random.default_rng(0).normal(size=(500, 3))
    curve = np.column_stack([np.cos(T[::20]), np.sin(T[::20]), T[::20]])
    brute = [min(_to_segment(p, a, b) for a, b in pairwise(curve)) for p in many[:5]]
    np.testing.assert_allclose(path_deviation(many, curve)[:5], brute, rtol=1e-12)


def _to_segment(p: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    s = np.clip((p - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
    return float(np.linalg.norm(p - a - s * (b - a)))


def test_radial_deviation_has_a_sign() -> None:
    at = np.array([[1.0, 2.3], [1.0, 2.1]])
    np.testing.assert_allclose(radial_deviation(at, [1.0, 2.0], 0.2), [0.1, -0.1])


@pytest.mark.parametrize("lag", [0.0, 0.0123, 0.25, -0.08])
def test_time_lag_finds_a_shift_to_a_fraction_of_a_sample(lag: float) -> None:
    def signal(t: np.ndarray) -> np.ndarray:
        return np.sin(2.1 * t) + 0.5 * np.sin(5.3 * t + 1.0)

    t = T[::10]
    assert time_lag(t, signal(t), 0.8 * signal(t - lag)) == pytest.approx(lag, abs=5e-4)


def test_time_lag_of_a_first_order_loop_is_its_time_constant_at_low_speed() -> None:
    t = np.linspace(0.0, 20.0, 20001)
    w, tau = 1.0, 0.05
    response = np.sin(w * t - np.arctan(w * tau)) / np.hypot(1.0, w * tau)
    assert time_lag(t, np.sin(w * t), response) == pytest.approx(np.arctan(w * tau) / w, rel=1e-3)


def test_tracking_error_of_known_errors() -> None:
    t = np.linspace(0.0, 1.0, 101)
    q = np.column_stack([t, t**2])
    off = np.column_stack([0.3 * np.ones_like(t), np.where(t == 0.5, -2.0, 0.0)])
    still = np.zeros_like(q)
    found = tracking_error(Motion(t, q, still, still), Motion(t, q + off, still, still), ("a", "b"))
    assert found.largest == pytest.approx((0.3, 2.0))
    assert found.rms == pytest.approx((0.3, 2.0 / np.sqrt(101)))
    assert found.when[1] == pytest.approx(0.5)
    assert "largest" in found.summary()
    with pytest.raises(DynidentError, match="sample both at equal times"):
        tracking_error(Motion(t, q, still, still), Motion(t + 0.5, q, still, still))


def test_a_response_that_settles_on_the_command_has_not_risen_by_rounding() -> None:
    response = np.minimum(1.0 - np.exp(-5.0 * T), 1.0)
    response[-50:] = 1.0 + 4e-16  # what a simulated loop leaves
    assert np.isnan(step_metrics(T, response).rise)
    response[-50:] = 1.0 + 1e-6
    assert step_metrics(T, response).rise == pytest.approx(T[-50], abs=1e-3)
