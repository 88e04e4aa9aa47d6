from __future__ import annotations

import numpy as np
import pytest
from test_signals_motions import PLANT, clean_log, columns, multisine

from dynident.errors import LogError, SignalWarning
from dynident.signals import Log, Prepared, prepare, split_at_gaps
from dynident.signals.preparation import Options


def fit(p: Prepared) -> np.ndarray:
    W, y = p.decimator.apply(columns(p.motion.v, p.motion.a)), p.decimator.apply(p.effort)
    return np.array([np.linalg.lstsq(W[:, j], y[:, j], rcond=None)[0] for j in range(len(p.joints))])


def test_known_plant_is_recovered():
    p = prepare(clean_log(noise=1e-5, torque_noise=0.05))
    np.testing.assert_allclose(fit(p), np.tile(PLANT, (3, 1)), rtol=0.02)
    assert p.effort.shape == p.motion.q.shape == (len(p), 3)
    assert p.rate == pytest.approx(500.0)


def test_fourier_needs_and_uses_the_period():
    log = clean_log(noise=1e-4, torque_noise=0.05)
    with pytest.raises(LogError, match="period="):
        prepare(log, method="fourier")
    p = prepare(log, method="fourier", period=10.0, cutoff=0.55)
    assert len(p) == len(log)
    np.testing.assert_allclose(fit(p), np.tile(PLANT, (3, 1)), rtol=0.02)


def test_explanation_tells_every_decision():
    p = prepare(clean_log(noise=1e-5))
    for words in (
        "cut-off",
        "motion and noise meet",
        "decimation by",
        "samples dropped",
        "velocities and accelerations are not used",
        "rows",
    ):
        assert words in p.explanation
    assert f"{p.decimator.cutoff:.4g} Hz" in p.explanation
    assert p.decimator.length(len(p)) >= 60


def test_options_are_honoured():
    log = clean_log(noise=1e-5)
    p = prepare(log, cutoff=12.0, decimation=7, resample=250.0)
    assert (p.cutoff.frequency, p.decimator.factor, p.rate) == (12.0, 7, pytest.approx(250.0))
    other = prepare(clean_log(rate=1000.0, noise=1e-5), like=p)
    assert other.cutoff.frequency == 12.0
    assert other.decimator.cutoff == pytest.approx(p.decimator.cutoff, rel=0.05)
    for options, words in (
        ({"method": "magic"}, "butterworth"),
        ({"cutoff": 250.0}, "Nyquist"),
        ({"cutoff": "low"}, "'auto'"),
        ({"decimation": 0}, "decimation"),
        ({"decimation": 2000}, "lower decimation="),
        ({"decimation": "x"}, "decimation"),
        ({"resample": -1.0}, "resample"),
        ({"cutoff": 0.1}, "record longer"),
    ):
        with pytest.raises(LogError, match=words):
            prepare(log, **options)


def test_current_without_gain_is_refused():
    with pytest.raises(LogError, match="drive gain"):
        prepare(clean_log(effort_kind="motor_current"))
    log = clean_log()
    p = prepare(clean_log(effort_kind="motor_current", effort=log.effort / 4.0, gain=[4.0] * 3))
    np.testing.assert_allclose(fit(p), np.tile(PLANT, (3, 1)), rtol=0.02)


def test_noisy_stamps_are_replaced_and_true_jitter_is_resampled():
    rng = np.random.default_rng(0)
    rate = 200.0
    t, q, v, a = multisine(rate, 20.0)
    tau = columns(v, a) @ PLANT
    stamps = t + rng.uniform(-0.3, 0.3, t.size) / rate
    stamps[[0, -1]] = t[[0, -1]]
    common = {"joints": ["a", "b", "c"], "effort_kind": "joint_torque"}
    p = prepare(Log(t=stamps, position=q, effort=tau, **common))
    assert "the stamps are replaced" in p.explanation
    np.testing.assert_allclose(fit(p), np.tile(PLANT, (3, 1)), rtol=0.01)
    # The same stamps, but now the samples were really taken at those times.
    fine_t, fine_q, fine_v, fine_a = multisine(20 * rate, 20.0)
    exact = [np.column_stack([np.interp(stamps, fine_t, x[:, j]) for j in range(3)]) for x in (fine_q, fine_v, fine_a)]
    p = prepare(Log(t=stamps, position=exact[0], effort=columns(exact[1], exact[2]) @ PLANT, **common))
    assert "resampled to" in p.explanation
    np.testing.assert_allclose(fit(p), np.tile(PLANT, (3, 1)), rtol=0.02)


def test_lost_samples_are_resampled():
    log = clean_log(rate=200.0, noise=1e-6)
    keep = np.random.default_rng(1).uniform(size=len(log)) > 0.02
    part = {name: getattr(log, name)[keep] for name in ("t", "position", "effort", "velocity")}
    with pytest.warns(SignalWarning, match="gaps"):
        p = prepare(clean_log(rate=200.0, **part))
    assert "resampled to" in p.explanation
    assert p.rate == pytest.approx(200.0, rel=1e-3)
    np.testing.assert_allclose(fit(p), np.tile(PLANT, (3, 1)), rtol=0.03)


def test_short_holes_are_filled_and_long_ones_cut():
    log = clean_log(noise=1e-6)
    q, tau = log.position.copy(), log.effort.copy()
    q[2000:2005, 1] = np.nan
    tau[5000:5003, 0] = np.nan
    with pytest.warns(SignalWarning, match="missing"):
        p = prepare(clean_log(position=q, effort=tau))
    assert "8 missing values interpolated" in p.explanation
    np.testing.assert_allclose(fit(p), np.tile(PLANT, (3, 1)), rtol=0.02)
    q[7000:7500, 2] = np.nan
    holed = clean_log(position=q, effort=tau)
    with pytest.warns(SignalWarning, match="missing"):
        p = prepare(holed)
    assert "samples 0:7000" in p.explanation
    assert [len(x) for x in split_at_gaps(holed)] == [7000, 2500]
    q[:, 0] = np.nan
    with pytest.raises(LogError, match="no segment"), pytest.warns(SignalWarning):
        prepare(clean_log(position=q))


def test_velocity_noise_is_the_noise_left():
    rate, noise = 500.0, 1e-4
    _, _, v, _ = multisine(rate, 20.0)
    p = prepare(clean_log(rate=rate, noise=noise))
    start = round(p.motion.t[0] * rate)
    actual = np.std(p.motion.v - v[start : start + len(p)], axis=0)
    np.testing.assert_allclose(p.velocity_noise, actual, rtol=0.5)


def test_too_short_logs_are_refused():
    with pytest.raises(LogError, match="too few"):
        prepare(clean_log(duration=0.08))


@pytest.mark.parametrize("method", ["butterworth", "fourier"])
@pytest.mark.parametrize("cutoff", ["auto", 1.0])
def test_rounding_is_no_motion(method, cutoff):
    """A joint whose last bits flicker stands exactly still, beside one that moves as if it were alone."""
    t, rng = np.arange(3000) / 500.0, np.random.default_rng(0)
    moving = np.sin(2.0 * np.pi * 0.5 * t)
    period = {"period": 2.0} if method == "fourier" else {}
    for place in (0.0, 1e-300, 0.5, -1.0 / 3.0, 7.7):
        flicker = place + np.spacing(place) * rng.integers(-3, 4, t.size)
        log = Log(t, ("a", "b"), np.column_stack([flicker, moving]), rng.normal(size=(t.size, 2)), "joint_torque")
        found = prepare(log, method=method, cutoff=cutoff, **period)
        assert not np.any(found.motion.v[:, 0]) and not np.any(found.motion.a[:, 0])
        assert np.ptp(found.motion.q[:, 0]) == 0.0 and found.motion.q[0, 0] == pytest.approx(place, rel=1e-14)
        assert np.max(np.abs(found.motion.v[:, 1])) == pytest.approx(np.pi, rel=0.05)
        assert "within rounding and noise: a" in found.explanation


def test_what_is_wrong_with_all_channels_is_told_once():
    t = np.arange(3000) / 500.0
    q = 90.0 * np.sin(2.0 * np.pi * 0.5 * t[:, None] + np.arange(4.0))  # degrees
    log = Log(t, ("a", "b", "c", "d"), q, np.cos(q), "joint_torque")
    with pytest.warns(SignalWarning, match=r"position:a \(and 3 more like it\) reaches 90") as found:
        prepare(log)
    assert str(found[0].message).count("give unit") == 1


@pytest.mark.parametrize("phase", ["zero", "causal"])
@pytest.mark.parametrize("rate", [500.0, 20.0])
def test_noise_is_no_motion(phase, rate):
    """A joint whose encoder is noisy stands exactly still; one that moves by some deviations of the noise does not."""
    t, rng = np.arange(int(40.0 * rate)) / rate, np.random.default_rng(0)
    moving = np.sin(2.0 * np.pi * 0.5 * t)
    noise = 1e-3 * rng.normal(size=(t.size, 2))
    q = np.column_stack([0.3 + noise[:, 0], 5e-3 * np.cos(2.0 * np.pi * 0.5 * t) + noise[:, 1], moving])
    log = Log(t, ("still", "little", "much"), q, rng.normal(size=(t.size, 3)), "joint_torque")
    found = prepare(log, phase=phase)
    assert not np.any(found.motion.v[:, 0]) and not np.any(found.motion.a[:, 0])
    assert np.ptp(found.motion.q[:, 0]) == 0.0 and found.motion.q[0, 0] == pytest.approx(0.3, abs=2e-3)
    assert np.std(found.motion.q[:, 1]) == pytest.approx(5e-3 / np.sqrt(2.0), rel=0.2)
    assert any(line.endswith("rounding and noise: still") for line in found.explanation.splitlines())


@pytest.mark.parametrize("step", [2.0 * np.pi / 2**32, 2.0**-24])
def test_the_finest_sensors_still_see_motion(step):
    """A swing of some counts of a 32-bit encoder, or of some spacings of single precision, is motion."""
    t = np.arange(3000) / 500.0
    q = 0.5 + step * np.round(20.0 * np.sin(2.0 * np.pi * 2.0 * t))
    log = Log(t, ("a",), q[:, None], np.random.default_rng(0).normal(size=(t.size, 1)), "joint_torque")
    found = prepare(log, cutoff=10.0)
    assert np.max(np.abs(found.motion.a)) == pytest.approx(20.0 * step * (4.0 * np.pi) ** 2, rel=0.1)
    assert "rounding" not in found.explanation


@pytest.mark.parametrize("name", ["cutoff", "band", "decimation"])
def test_an_array_without_dimensions_is_a_number(name):
    assert type(getattr(Options(**{name: np.array(8)}), name)) is int
