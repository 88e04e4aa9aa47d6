from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from dynident.errors import LogError
from dynident.signals import butterworth, fourier
from dynident.signals.filters import FIRST, SECOND, differences, padded

RATE = 1000.0
T = np.arange(5000) / RATE
LINES = ((1.4, 1.0, 0.4), (3.2, 0.3, 0.0), (0.6, -2.0, 1.0))
ALL = [butterworth, partial(fourier, period=5.0)]


def motion(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    w = [2 * np.pi * f for f, _, _ in LINES]
    q = sum(a * np.sin(k * t + p) for k, (_, a, p) in zip(w, LINES, strict=True))
    v = sum(a * k * np.cos(k * t + p) for k, (_, a, p) in zip(w, LINES, strict=True))
    a = sum(-a * k**2 * np.sin(k * t + p) for k, (_, a, p) in zip(w, LINES, strict=True))
    return q, v, a


def error(estimate: np.ndarray, truth: np.ndarray, part: slice) -> float:
    return float(np.max(np.abs(estimate - truth)[part]) / np.std(truth))


@pytest.mark.parametrize("method", ALL)
def test_exact_motion(method):
    q, v, a = motion(T)
    estimate = method(RATE, np.column_stack([q, -q]), 40.0)
    inner = slice(250, -250)
    for got, truth in zip(estimate, (q, v, a), strict=True):
        assert got.shape == (5000, 2)
        assert error(got[:, 0], truth, inner) < 2e-4
        np.testing.assert_allclose(got[:, 1], -got[:, 0], atol=1e-9 * np.std(truth))  # every coordinate is treated


def test_ends_are_not_spoiled():
    q, v, a = motion(T)
    _, got_v, got_a = butterworth(T, q, 40.0)
    for part in (slice(0, 100), slice(-100, None)):
        assert error(got_v, v, part) < 1e-3
        assert error(got_a, a, part) < 0.03


@pytest.mark.parametrize("method", ALL)
def test_noise_is_removed(method):
    q, v, a = motion(T)
    noisy = q + 1e-4 * np.random.default_rng(0).standard_normal(q.size)
    _, got_v, got_a = method(RATE, noisy, 20.0)
    inner = slice(500, -500)
    assert error(got_v, v, inner) < 2e-3
    assert error(got_a, a, inner) < 2e-2
    raw = np.gradient(np.gradient(noisy, 1 / RATE), 1 / RATE)
    assert error(raw, a, inner) > 1.0  # what happens without a filter


def test_amplitude_is_one_half_at_the_cutoff():
    fc = 20.0
    for ratio, low, high in ((0.5, 0.97, 1.001), (1.0, 0.45, 0.55), (2.0, -0.12, 0.12)):
        q = np.sin(2 * np.pi * ratio * fc * T)
        filtered = butterworth(RATE, q, fc)[0][500:-500]
        gain = float(filtered @ q[500:-500] / (q[500:-500] @ q[500:-500]))
        assert low < gain < high
        # Zero phase: nothing in quadrature.
        assert abs(float(filtered @ np.cos(2 * np.pi * ratio * fc * T)[500:-500])) < 1e-3 * 2000


def test_central_differences_are_of_order_eight():
    h = 0.01
    t = np.arange(60) * h
    v, a = (x[:, 0] for x in differences(FIRST / h, SECOND / h**2, padded((t**8)[:, None])))
    np.testing.assert_allclose(v, 8 * t[4:-4] ** 7, atol=1e-10)
    np.testing.assert_allclose(a, 56 * t[4:-4] ** 6, atol=1e-8)


def test_fourier_is_exact_and_takes_irregular_times():
    rng = np.random.default_rng(1)
    t = np.sort(rng.uniform(0.0, 10.0, 3000))
    q, v, a = motion(t)
    got = fourier(t, q, 4.0, period=5.0)
    for x, truth in zip(got, (q, v, a), strict=True):
        np.testing.assert_allclose(x, truth, atol=1e-9 * np.std(truth))
    for options, words in (
        ({"period": 11.0}, "at least one period"),
        ({"period": -1.0}, "period"),
        ({"period": 0.1}, "first harmonic"),
    ):
        with pytest.raises(LogError, match=words):
            fourier(t, q, 4.0, **options)


def test_butterworth_needs_uniform_times():
    t = np.cumsum(np.random.default_rng(2).uniform(0.5e-3, 1.5e-3, 5000))
    with pytest.raises(LogError, match="resample"):
        butterworth(t, motion(t)[0], 40.0)


def test_bad_input(subtests):
    for method in ALL:
        with subtests.test(str(method)):
            q = motion(T)[0]
            for cutoff, words in ((500.0, "Nyquist frequency 500"), (0.0, "positive"), (np.nan, "positive"), ("x", "positive")):
                with pytest.raises(LogError, match=words):
                    method(RATE, q, cutoff)
            bad = q.copy()
            bad[77] = np.nan
            with pytest.raises(LogError, match="sample 77"):
                method(RATE, bad, 20.0)
            with pytest.raises(LogError, match="times have shape"):
                method(T[:-1], q, 20.0)
            with pytest.raises(LogError, match="shape"):
                method(RATE, q[:10], 20.0)
            with pytest.raises(LogError, match="positive number of Hz"):
                method(-1.0, q, 20.0)
