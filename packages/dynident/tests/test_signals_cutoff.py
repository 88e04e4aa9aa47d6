from __future__ import annotations

import numpy as np
import pytest
from test_signals_motions import PLANT, clean_log, columns, multisine

from dynident.errors import LogError
from dynident.signals import automatic_cutoff, butterworth, prepare
from dynident.signals.filters import choose_cutoff


def acceleration_error(rate: float, q: np.ndarray, a: np.ndarray, cutoff: float) -> float:
    inner = slice(a.shape[0] // 10, -a.shape[0] // 10)
    estimate = butterworth(rate, q, cutoff)[2]
    return float(np.linalg.norm((estimate - a)[inner]) / np.linalg.norm(a[inner]))


@pytest.mark.parametrize("rate", [100.0, 500.0])
@pytest.mark.parametrize("noise", [1e-6, 1e-5, 1e-4, 1e-3])
def test_close_to_the_best_cutoff(rate, noise):
    _, q, _, a = multisine(rate, 20.0)
    q = q + noise * np.random.default_rng(0).standard_normal(q.shape)
    chosen = automatic_cutoff(rate, q)
    grid = np.geomspace(0.5, 0.45 * rate, 12)
    best = min(acceleration_error(rate, q, a, fc) for fc in grid)
    got = acceleration_error(rate, q, a, chosen.frequency)
    # The band is also kept wide enough for 150 rows, so it may let in more noise, but never enough to bias.
    assert got < max(4.0 * best, 0.1)
    assert acceleration_error(rate, q, a, 0.45 * rate) > 3.0 * got or noise < 1e-5
    assert chosen.frequency >= 5 * 0.3
    assert f"{chosen.frequency:.4g} Hz" in chosen.explanation


def test_inertia_is_not_biased_by_encoder_noise():
    for noise in (1e-5, 1e-4, 1e-3):
        p = prepare(clean_log(noise=noise, torque_noise=0.02))
        W = p.decimator.apply(columns(p.motion.v, p.motion.a))
        y = p.decimator.apply(p.effort)
        for j in range(3):
            fit = np.linalg.lstsq(W[:, j], y[:, j], rcond=None)[0]
            np.testing.assert_allclose(fit, PLANT, rtol=0.02)


def test_quantised_encoder():
    rate, quantum = 1000.0, 2 * np.pi / 8192
    _, q, _, a = multisine(rate, 20.0)
    chosen = automatic_cutoff(rate, np.round(q / quantum) * quantum)
    assert acceleration_error(rate, np.round(q / quantum) * quantum, a, chosen.frequency) < 0.08


def test_noise_that_was_low_passed_is_still_noise():
    from scipy.signal import butter, sosfiltfilt

    rate = 1000.0
    _, q, _, a = multisine(rate, 20.0)
    noise = sosfiltfilt(butter(4, 60.0, fs=rate, output="sos"), np.random.default_rng(0).standard_normal(q.shape), axis=0)
    chosen = automatic_cutoff(rate, q + 1e-5 * noise)
    assert chosen.frequency < 30.0
    assert acceleration_error(rate, q + 1e-5 * noise, a, chosen.frequency) < 0.05


def test_gap_between_two_bands_of_motion_is_not_the_valley():
    rate = 500.0
    t = np.arange(20000) / rate
    q = (
        np.sin(2 * np.pi * 0.05 * t)
        + 0.008 * np.sin(2 * np.pi * 3.0 * t)
        + 1e-6 * np.random.default_rng(0).standard_normal(t.size)
    )
    assert automatic_cutoff(rate, q).motion_band > 2.9


def test_standing_channels_do_not_decide():
    rate = 500.0
    _, q, _, _ = multisine(rate, 20.0)
    still = 1e-5 * np.random.default_rng(0).standard_normal(q.shape[0])
    alone, together = automatic_cutoff(rate, q), automatic_cutoff(rate, np.column_stack([q, still, 0 * still]))
    assert together.moving.tolist() == [True, True, True, False, False]
    assert together.frequency == pytest.approx(alone.frequency)


def test_degenerate_input():
    rng = np.random.default_rng(0)
    assert 0 < automatic_cutoff(100.0, rng.standard_normal((500, 2))).frequency <= 25.0
    assert automatic_cutoff(100.0, np.zeros((500, 2))).frequency == 25.0
    assert 0 < automatic_cutoff(100.0, np.linspace(0, 1, 500)).frequency <= 25.0
    with pytest.raises(LogError, match="too few"):
        automatic_cutoff(100.0, np.zeros(20))
    with pytest.raises(LogError, match="missing values"):
        automatic_cutoff(100.0, np.full(100, np.nan))


def test_records_that_show_no_spectrum_are_refused():
    with pytest.raises(LogError, match="4 samples are too few for a spectrum"):
        choose_cutoff(100.0, [np.zeros((4, 2))])
