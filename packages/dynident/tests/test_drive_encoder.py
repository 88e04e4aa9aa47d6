"""Encoders, sensed speeds and current sensors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from dynident.control.tick import sensed_speed
from dynident.drive import CurrentSensor, Encoder
from dynident.drive.encoder import low_pass_coefficient, quantise
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


def test_the_sensed_speed_is_a_low_passed_difference() -> None:
    counts = ENCODER.measure(X)
    speeds = sensed_speed(counts[1:], counts[:-1], V[1:], False, 0.0, H, 1.0)
    np.testing.assert_allclose(speeds, np.diff(counts) / H)
    np.testing.assert_allclose(speeds / math.pi, np.round(speeds / math.pi), atol=1e-9)  # whole counts per cycle
    np.testing.assert_array_equal(sensed_speed(counts[1:], counts[:-1], V[1:], True, 0.0, H, 1.0), V[1:])
    coefficient, smooth = float(low_pass_coefficient(30.0, H)), [0.0]
    for now, last in zip(counts[1:], counts[:-1], strict=True):
        smooth.append(float(sensed_speed(now, last, 0.0, False, smooth[-1], H, coefficient)))
    expected = lfilter([coefficient], [1.0, coefficient - 1.0], speeds)
    np.testing.assert_allclose(smooth[1:], expected, atol=1e-9)
    errors = [float(np.sqrt(np.mean((estimate - V[1:])[200:] ** 2))) for estimate in (speeds, np.array(smooth[1:]))]
    assert errors[1] < 0.25 * errors[0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: quantise([1.0], -1.0), "resolution is -1"),
        (lambda: quantise(["a"], 1.0), "not an array of real numbers"),
        (lambda: ENCODER.measure([[1.0], [1.0, 2.0]]), "not an array"),
    ],
)
def test_wrong_signals_are_one_sentence(call: object, words: str) -> None:
    with pytest.raises(DynidentError, match=words) as caught:
        call()  # type: ignore[operator]
    assert "\n" not in str(caught.value)
