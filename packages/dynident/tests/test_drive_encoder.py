"""Encoders, sensed speeds and current sensors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from dynident.control.tick import sensed_speed
from dynident.drive import Encoder
from dynident.drive.drive import counted, low_pass_coefficient, sensed_current, sensed_position

H = 1e-3
T = np.arange(0.0, 4.0, H)
X, V = 2.0 * np.sin(np.pi * T), 2.0 * np.pi * np.cos(np.pi * T)
ENCODER = Encoder.lines(500)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20), st.floats(1e-6, 1.0))
def test_quantisation(values: list[float], resolution: float) -> None:
    x = np.array(values)
    counts = counted(x, resolution)
    assert np.all(np.abs(counts - x) <= 0.5 * resolution * (1.0 + 1e-6))
    np.testing.assert_allclose(counts / resolution, np.round(counts / resolution), atol=1e-6)
    np.testing.assert_array_equal(counted(counts, resolution), counts)
    np.testing.assert_array_equal(counted(x, 0.0), x)


def test_an_encoder_rounds_on_its_side_of_the_gear() -> None:
    assert ENCODER.resolution == pytest.approx(2.0 * math.pi / 2000.0)
    error = sensed_position(X, 0.0, 0.0, ENCODER.resolution, True, 1.0) - X
    assert np.std(error) == pytest.approx(ENCODER.resolution / math.sqrt(12.0), rel=0.05)
    np.testing.assert_allclose(sensed_position(X, X / 50.0, 0.0, np.float64(0.0), True, 50.0), X / 50.0)


def test_current_sensor() -> None:
    np.testing.assert_allclose(sensed_current(np.array([1.02, -2.03]), 0.0, np.float64(0.1), 1.05), [1.1, -2.1], atol=1e-12)
    np.testing.assert_array_equal(sensed_current(np.array([1.0]), 0.2, np.float64(0.0), 1.0), [1.2])


def test_the_sensed_speed_is_a_low_passed_difference() -> None:
    counts = counted(X, ENCODER.resolution)
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
