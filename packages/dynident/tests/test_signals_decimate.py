from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynident.errors import LogError
from dynident.signals.filters import Decimator


@pytest.mark.parametrize("factor", [2, 3, 10, 47])
def test_frequency_response(factor):
    d = Decimator(factor, 1000.0)
    f = np.linspace(0.0, 500.0, 4001)
    n = np.arange(d.taps.size) - d.taps.size // 2
    response = np.cos(2 * np.pi * np.outer(f, n) / 1000.0) @ d.taps
    nyquist = 500.0 / factor
    assert d.cutoff == pytest.approx(0.8 * nyquist)
    assert np.max(np.abs(response[f <= 0.5 * nyquist] - 1.0)) < 3e-3
    assert np.interp(d.cutoff, f, response) == pytest.approx(0.5, abs=5e-3)
    assert np.max(np.abs(response[f >= 1.12 * nyquist])) < 1e-3  # 60 dB
    np.testing.assert_array_equal(d.taps, d.taps[::-1])


@settings(max_examples=40, deadline=None)
@given(factor=st.integers(1, 12), extra=st.integers(0, 60), rows=st.integers(1, 30), seed=st.integers(0, 99))
def test_tiles_give_exactly_the_whole(factor, extra, rows, seed):
    d = Decimator(factor, 100.0)
    samples = d.taps.size + extra
    x = np.random.default_rng(seed).standard_normal((samples, 2, 3))
    whole = d.apply(x)
    assert whole.shape == (d.length(samples), 2, 3)
    expected = np.array([np.tensordot(d.taps, x[c - d.taps.size // 2 :][: d.taps.size], 1) for c in d.centres(samples)])
    np.testing.assert_allclose(whole, expected, atol=1e-12)
    seen = 0
    for inputs, outputs in d.tiles(samples, rows):
        assert outputs.start == seen
        np.testing.assert_array_equal(d.apply(x[inputs]), whole[outputs])
        seen = outputs.stop
    assert seen == d.length(samples)


def test_parallel_filtering_keeps_the_equation():
    rng = np.random.default_rng(0)
    W, phi = rng.standard_normal((700, 4, 9)), rng.standard_normal(9)
    d = Decimator(7, 1000.0)
    np.testing.assert_allclose(d.apply(W) @ phi, d.apply(W @ phi), atol=1e-12)


def test_factor_one_is_identity():
    x = np.random.default_rng(0).standard_normal((50, 2))
    d = Decimator(1, 100.0)
    np.testing.assert_array_equal(d.apply(x), x)
    assert d.cutoff == 50.0
    assert d.centres(50).tolist() == list(range(50))


def test_bad_input():
    for factor in (0, -1, 2.5, True, "3"):
        with pytest.raises(LogError, match="decimation factor"):
            Decimator(factor, 100.0)  # type: ignore[arg-type]
    for rate in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(LogError, match="rate"):
            Decimator(2, rate)
    with pytest.raises(LogError, match="20 samples are too few"):
        Decimator(5, 100.0).apply(np.zeros(20))
    with pytest.raises(LogError, match="rows per tile"):
        list(Decimator(5, 100.0).tiles(100, 0))


@pytest.mark.parametrize("factor", [1, 2, 7, 33])
def test_short_rows_are_filtered_like_columns(factor):
    d = Decimator(factor, 100.0)
    x = np.random.default_rng(0).standard_normal((3, d.taps.size + 5 * factor + 3))
    np.testing.assert_allclose(d.apply_rows(x), d.apply(x.T).T, atol=1e-14)
