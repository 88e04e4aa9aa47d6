"""Encoders, velocity estimates and current sensors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynident.drive import CurrentSensor, Encoder
from dynident.drive.encoder import adaptive_difference, difference, low_pass, quantise, tracking_observer
from dynident.errors import DynidentError

H = 1e-3
T = np.arange(0.0, 4.0, H)
X, V = 2.0 * np.sin(np.pi * T), 2.0 * np.pi * np.cos(np.pi * T)
ENCODER = Encoder.lines(500)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20), st.floats(1e-6, 1.0))
def test_quantisation(values: list[float], resolution: float) -> None:
    x = np.array(values)
    counts = quantise(x, resolution)
    assert np.all(np.abs(counts - x) <= 0.5 * resolution * (1.0 + 1e-6))
    np.testing.assert_allclose(counts / resolution, np.round(counts / resolution), atol=1e-6)
    np.testing.assert_array_equal(quantise(counts, resolution), counts)
    np.testing.assert_array_equal(quantise(x, 0.0), x)


def test_encoder_lines_and_noise() -> None:
    assert ENCODER.resolution == pytest.approx(2.0 * math.pi / 2000.0)
    assert Encoder.lines(500, quadrature=False).resolution == pytest.approx(2.0 * math.pi / 500.0)
    assert ENCODER.speed_resolution(H) == pytest.approx(math.pi)
    error = ENCODER.measure(X) - X
    assert np.std(error) == pytest.approx(ENCODER.resolution / math.sqrt(12.0), rel=0.05)
    noisy = Encoder(noise=0.01)
    assert np.std(noisy.measure(X, seed=1) - X) == pytest.approx(0.01, rel=0.05)
    np.testing.assert_array_equal(noisy.measure(X, seed=1), noisy.measure(X, seed=1))
    assert np.any(noisy.measure(X, seed=1) != noisy.measure(X, seed=2))


def test_current_sensor() -> None:
    np.testing.assert_allclose(CurrentSensor(resolution=0.1, gain_error=0.05).measure([1.02, -2.03]), [1.1, -2.1], atol=1e-12)
    np.testing.assert_array_equal(CurrentSensor().measure([1.0]), [1.0])
    assert np.std(CurrentSensor(noise=0.2).measure(np.zeros(4000))) == pytest.approx(0.2, rel=0.05)


def test_difference_and_window() -> None:
    np.testing.assert_allclose(difference([0.0, 1.0, 3.0, 6.0], 0.5), [2.0, 2.0, 4.0, 6.0])
    np.testing.assert_allclose(difference([0.0, 1.0, 3.0, 6.0], 0.5, window=2), [2.0, 2.0, 3.0, 5.0])
    both = np.column_stack([X, -X])
    np.testing.assert_array_equal(difference(both, H, 5)[:, 1], -difference(X, H, 5))
    steps = difference(ENCODER.measure(X), H)
    np.testing.assert_allclose(steps / math.pi, np.round(steps / math.pi), atol=1e-9)  # whole counts per cycle


def test_low_pass_is_the_sampled_step_response() -> None:
    step = np.r_[0.0, np.ones(200)]
    k = np.arange(1, 201)
    np.testing.assert_allclose(low_pass(step, H, 20.0)[1:], 1.0 - np.exp(-2.0 * np.pi * 20.0 * H * k), rtol=1e-10)
    np.testing.assert_allclose(low_pass(np.full(10, 3.0), H, 20.0), 3.0)
    np.testing.assert_array_equal(low_pass(X, H, 0.0), X)
    both = low_pass(np.column_stack([X, 2.0 * X]), H, 20.0)
    np.testing.assert_allclose(both[:, 1], 2.0 * both[:, 0])


def test_what_the_drive_sees_is_difference_then_low_pass() -> None:
    counts = ENCODER.measure(X)
    drive = Encoder.lines(500, filter=30.0)
    np.testing.assert_array_equal(drive.estimate_velocity(counts, H), low_pass(difference(counts, H), H, 30.0))
    np.testing.assert_array_equal(ENCODER.estimate_velocity(counts, H), difference(counts, H))


def test_adaptive_window_by_its_definition() -> None:
    """Against the definition, sample by sample: grow while every sample lies within a count of the line."""
    counts = quantise(X[:600], ENCODER.resolution)
    found = adaptive_difference(counts, H, ENCODER.resolution, longest=30)
    for k in range(1, 600):
        best = 0.0
        for n in range(1, min(k, 30) + 1):
            slope = (counts[k] - counts[k - n]) / n
            inside = all(abs(counts[k] - i * slope - counts[k - i]) <= ENCODER.resolution * (1 + 1e-8) for i in range(1, n))
            if not inside:
                break
            best = slope / H
        assert found[k] == pytest.approx(best, abs=1e-9)


def test_estimates_that_look_longer_are_better() -> None:
    counts = ENCODER.measure(X)

    def rms(estimate: np.ndarray) -> float:
        return float(np.sqrt(np.mean((estimate - V)[200:] ** 2)))

    raw = rms(difference(counts, H))
    better = {
        "window": difference(counts, H, 10),
        "low-pass": low_pass(difference(counts, H), H, 30.0),
        "adaptive": adaptive_difference(counts, H, ENCODER.resolution),
        "observer": tracking_observer(counts, H, 30.0),
    }
    for name, estimate in better.items():
        assert rms(estimate) < 0.25 * raw, name
    slow = adaptive_difference(quantise(0.4 * T, ENCODER.resolution), H, ENCODER.resolution)
    assert np.std(slow[100:]) < 0.05 * np.std(difference(quantise(0.4 * T, ENCODER.resolution), H))


def test_the_observer_is_its_transfer_function() -> None:
    ramp = tracking_observer(3.0 * T, H, 30.0)
    assert ramp[-1] == pytest.approx(3.0, rel=1e-9)
    # A sine of 5 Hz: amplitude and delay of omega^2 s / (s^2 + 2 omega s + omega^2).
    s, omega = 2j * np.pi * 5.0, 2.0 * np.pi * 30.0
    gain = omega**2 * s / (s + omega) ** 2
    settled = tracking_observer(np.sin(2.0 * np.pi * 5.0 * T), H, 30.0)[2000:]
    expected = np.imag(gain * np.exp(s * T))[2000:]
    np.testing.assert_allclose(settled, expected, atol=0.01 * abs(gain))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: quantise([1.0], -1.0), "resolution is -1"),
        (lambda: quantise(["a"], 1.0), "not an array of real numbers"),
        (lambda: difference([1.0], H), "at least two samples"),
        (lambda: difference([1.0, np.nan], H), "not finite at sample 1"),
        (lambda: difference(X, 0.0), "cycle is 0"),
        (lambda: difference(X, H, 0), "window is 0"),
        (lambda: low_pass(X, H, -1.0), "corner is -1"),
        (lambda: adaptive_difference(X, H, 0.0), "resolution is 0"),
        (lambda: tracking_observer(X, H, 500.0), "less than half the sampling frequency"),
        (lambda: ENCODER.measure([[1.0], [1.0, 2.0]]), "not an array"),
    ],
)
def test_wrong_signals_are_one_sentence(call: object, words: str) -> None:
    with pytest.raises(DynidentError, match=words) as caught:
        call()  # type: ignore[operator]
    assert "\n" not in str(caught.value)
