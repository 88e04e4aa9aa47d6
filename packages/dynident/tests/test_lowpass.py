"""The low-pass, the spectra and the delay that no longer need scipy.signal, against scipy.signal."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from scipy import signal

from dynident.signals.filters import acceleration_spectrum, filter_columns, low_pass_sections, padded


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("cutoff", [0.002, 0.03, 0.2, 0.45])
def test_butterworth_passes_are_those_of_scipy(order: int, cutoff: float) -> None:
    x = 3.0 + np.cumsum(np.random.default_rng(order).normal(size=(700, 3)), axis=0)
    sos = signal.butter(order, 2.0 * cutoff, output="sos")
    start = signal.sosfilt_zi(sos)[:, :, None] * x[0]
    sections = low_pass_sections(order, cutoff)
    for found, expected in zip(zip(*sections, strict=True), signal.butter(order, 2.0 * cutoff), strict=True):
        np.testing.assert_allclose(reduce(np.polymul, found), expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
    size = np.abs(x).max()
    y = padded(x)
    filter_columns(sections, y)
    np.testing.assert_allclose(y[:, :3], signal.sosfilt(sos, x, axis=0, zi=start)[0], atol=1e-9 * size, rtol=0.0)
    filter_columns(sections, y, backward=True)
    np.testing.assert_allclose(y[:, :3], signal.sosfiltfilt(sos, x, axis=0, padtype=None), atol=1e-9 * size, rtol=0.0)


@pytest.mark.parametrize("size", [601, 602])
def test_spectra_are_those_of_scipy(size: int) -> None:
    rng, rate = np.random.default_rng(size), 50.0
    q = np.cumsum(rng.normal(size=(size, 2)), axis=0)
    taper = signal.windows.tukey(size - 2, 0.1, sym=False)
    f, density = signal.periodogram(
        np.diff(q, 2, axis=0) * taper[:, None], fs=rate, window="boxcar", detrend=False, axis=0, scaling="density"
    )
    gain = rate**4 * (np.pi * f[1:] / (rate * np.sin(np.pi * f[1:] / rate))) ** 4
    found_f, found = acceleration_spectrum(rate, q)
    np.testing.assert_allclose(found_f, f[1:], rtol=1e-13)
    np.testing.assert_allclose(found, density[1:] * gain[:, None] * (size - 2) / (taper @ taper), rtol=1e-9)
