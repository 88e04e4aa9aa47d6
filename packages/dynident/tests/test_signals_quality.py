from __future__ import annotations

import json

import numpy as np
import pytest
from test_signals_motions import clean_log, multisine

from dynident.signals import Log, diagnose
from dynident.signals.quality import KINDS, Segment, delay_between, fill_holes, split_at_gaps, without_outliers


def changed(name: str, column: int, change, **options: float) -> Log:
    log = clean_log(noise=1e-6, torque_noise=0.05, **options)
    values = getattr(log, name).copy()
    values[:, column] = change(values[:, column].copy())
    return clean_log(noise=1e-6, torque_noise=0.05, **options, **{name: values})


@pytest.mark.parametrize("rate", [100.0, 500.0, 2000.0])
@pytest.mark.parametrize("noise", [0.0, 1e-6, 1e-4])
def test_clean_logs_give_no_alarm(rate, noise):
    quality = diagnose(clean_log(rate=rate, noise=noise, torque_noise=0.05))
    assert quality.ok, quality.summary()
    assert not quality.findings, quality.summary()
    assert "nothing suspicious" in quality.summary()


def test_clean_quantised_log_with_standstill_gives_no_alarm():
    t, q, v, _ = multisine(1000.0, 10.0)
    hold = lambda x: np.vstack([np.repeat(x[:1], 500, 0), x, np.repeat(x[-1:], 500, 0)])  # noqa: E731
    t = np.arange(11000) / 1000.0
    q = np.round(hold(q) / 1e-4) * 1e-4
    effort = np.round(hold(v) / 0.01) * 0.01
    quality = diagnose(Log(t=t, joints=["a", "b", "c"], position=q, effort=effort, effort_kind="motor_current"))
    assert quality.ok, quality.summary()


def stuck(x):
    x[3000:3400] = x[3000]
    return x


def saturated(x):
    limit = np.percentile(np.abs(x), 90)
    return np.clip(x, -limit, limit)


def dead(x):
    x[: int(0.9 * x.size)] = 0.0
    return x


@pytest.mark.parametrize(
    ("name", "change", "kind", "severity"),
    [
        ("effort", dead, "dead", "error"),
        ("effort", stuck, "stuck", "warning"),
        ("position", stuck, "stuck", "error"),
        ("effort", saturated, "saturated", "warning"),
        ("velocity", lambda x: x * 180 / np.pi, "unit_suspect", "error"),
        ("velocity", lambda x: x * 30 / np.pi, "unit_suspect", "error"),
        ("position", lambda x: x * 1000 / np.max(np.abs(x)), "unit_suspect", "error"),
        ("position", lambda x: np.round(x * 1e5), "unit_suspect", "error"),
        ("velocity", lambda x: np.roll(x, 25), "delayed", "warning"),
        ("effort", lambda x: np.where(np.arange(x.size) % 100 == 3, np.nan, x), "nan", "warning"),
        ("effort", lambda x: np.round(x / 3) * 3, "quantised", "warning"),
    ],
)
def test_faults_are_found_on_their_channel(name, change, kind, severity):
    quality = diagnose(changed(name, 1, change))
    found = quality.of(kind)
    assert found, quality.summary()
    assert {f.channel.partition(":")[2] for f in found} == {"b"}
    assert found[0].severity == severity
    assert quality.ok == (severity == "info")


def test_degrees_in_position_are_found_by_the_velocity():
    log = clean_log()
    quality = diagnose(clean_log(position=log.position * 180 / np.pi * 0.1, velocity=log.velocity * 0.1))
    assert any("degrees" in f.sentence for f in quality.of("unit_suspect")), quality.summary()


@pytest.mark.parametrize("shift", [0.0004, 0.0037, 0.05, 0.18, -0.03])
def test_delay_to_a_fraction_of_a_sample(shift):
    rate = 100.0
    t = np.arange(4000) / rate
    wave = lambda x: np.sin(2 * np.pi * 0.4 * x) + 0.5 * np.sin(2 * np.pi * 1.1 * x + 1)  # noqa: E731
    rng = np.random.default_rng(0)
    result = delay_between(wave(t), wave(t - shift) + 0.01 * rng.standard_normal(t.size), rate)
    assert result is not None
    assert result.delay == pytest.approx(shift, abs=max(4 * result.deviation, 3e-4))
    assert result.significant == (abs(shift) * rate > 0.75)
    assert delay_between(wave(t), rng.standard_normal(t.size), rate) is None
    assert delay_between(wave(t), np.ones(t.size), rate) is None


def test_a_delay_is_known_to_a_fraction_of_a_sample():
    t = np.arange(4000) / 200.0
    result = delay_between(np.sin(2 * np.pi * 2.0 * t), np.sin(2 * np.pi * 2.0 * (t - 0.0518)), 200.0)
    assert result is not None
    assert result.delay == pytest.approx(0.0518, abs=0.03 / 200.0)  # 10.36 samples


def test_delay_in_a_short_slow_record():
    t = np.arange(2000) / 200.0  # one period: a shift by 36 samples moves much of it out of the record
    result = delay_between(np.sin(2 * np.pi * t / 10.0), np.sin(2 * np.pi * (t - 0.18) / 10.0), 200.0)
    assert result is not None and result.significant
    assert result.delay == pytest.approx(0.18, abs=0.005)


def test_a_shift_that_explains_nothing_is_no_delay():
    t = np.arange(2000) / 200.0
    held = np.where((t > 0.5) & (t < 2.0), 0.0, np.sin(2 * np.pi * t / 2.5))
    result = delay_between(held, np.sin(2 * np.pi * t / 2.5), 200.0)
    assert result is not None and not result.significant


def test_clock_faults():
    log = clean_log(rate=100.0)
    jitter = log.t + np.random.default_rng(0).uniform(-0.001, 0.001, log.t.size)
    assert diagnose(clean_log(rate=100.0, t=jitter)).of("irregular_clock")
    gap = log.t + np.where(np.arange(log.t.size) > 700, 1.0, 0.0)
    found = diagnose(clean_log(rate=100.0, t=gap)).of("gap")
    assert found[0].value == pytest.approx(1.01)
    assert "sample 700" in found[0].sentence
    assert diagnose(clean_log(rate=10.0)).of("too_slow_rate")


def test_still_joint_is_only_information():
    log = clean_log()
    q = log.position.copy()
    q[:, 2] = 0.3
    quality = diagnose(clean_log(position=q, velocity=None))
    assert [f.kind for f in quality.findings] == ["still"]
    assert quality.ok


def test_all_missing_channel_is_an_error():
    log = clean_log()
    q = log.position.copy()
    q[:, 0] = np.nan
    quality = diagnose(clean_log(position=q))
    assert quality.of("nan")[0].severity == "error"


def test_report_is_plain():
    quality = diagnose(changed("effort", 0, dead))
    content = json.loads(json.dumps(quality.to_dict()))
    assert content["ok"] is False
    for finding in content["findings"]:
        assert finding["kind"] in KINDS
        assert finding["severity"] in ("info", "warning", "error")
        assert finding["channel"] in quality.summary()


def test_the_longest_run_of_missing_samples_is_counted():
    log = clean_log()
    effort = log.effort.copy()
    effort[100:103, 1] = effort[200:207, 1] = effort[300, 1] = np.nan
    (found,) = diagnose(clean_log(effort=effort)).of("nan")
    assert found.sentence == "11 of 10000 samples are missing, the longest run 7 samples"
    assert found.value == pytest.approx(11 / 10000)


@pytest.mark.parametrize(("missing", "pieces"), [(0.04, 1), (0.06, 2), (0.1, 2)])
@pytest.mark.parametrize("fault", ["values", "rows"])
def test_holes_up_to_a_twentieth_of_a_second_are_bridged_and_longer_ones_cut_the_log(missing, pieces, fault):
    rate = 500.0
    log = clean_log(rate=rate)
    first, last = 5000, 5000 + round(missing * rate)
    if fault == "values":
        effort = log.effort.copy()
        effort[first:last, 2] = np.nan
        log = clean_log(rate=rate, effort=effort)
    else:
        kept = np.r_[0:first, last - 1 : len(log)]  # a step of `missing` seconds
        log = Log(
            t=log.t[kept], joints=log.joints, position=log.position[kept], effort=log.effort[kept], effort_kind="joint_torque"
        )
    found = split_at_gaps(log)
    assert len(found) == pieces
    if pieces == 2:
        assert [len(found[0]), found[1].t[0]] == [first, pytest.approx(last / rate if fault == "values" else (last - 1) / rate)]


def test_missing_values_come_back_from_their_neighbours():
    """Efforts on a line and positions on a cubic are what the interpolation must return exactly."""
    t = np.arange(200) / 100.0
    q, tau = (t**3 - t)[:, None], (3.0 - 2.0 * t)[:, None]
    position, effort = q.copy(), tau.copy()
    position[50:54] = effort[70:74] = effort[120] = np.nan
    log, count = fill_holes(Log(t=t, joints=["a"], position=position, effort=effort, effort_kind="joint_torque"))
    assert count == 9
    np.testing.assert_allclose(log.effort, tau, rtol=0, atol=1e-12)
    np.testing.assert_allclose(log.position, q, rtol=0, atol=1e-9)


def test_a_log_without_one_whole_sample_has_no_segment():
    log = clean_log(rate=100.0)
    assert len(Segment(clean_log(rate=100.0, effort=np.full_like(log.effort, np.nan)))) == 0
    effort = log.effort.copy()
    effort[:50] = np.nan
    assert len(Segment(clean_log(rate=100.0, effort=effort))) == len(log) - 50


def crawl(effort: np.ndarray, speed: float = 1.0) -> Log:
    """Return a log of one joint that moves steadily."""
    t = np.arange(effort.size) / 200.0
    return Log(t=t, joints=["a"], position=speed * t[:, None], effort=effort[:, None], effort_kind="joint_torque")


def test_dropouts_of_an_effort_are_missing_where_they_jump_and_where_they_do_not():
    """Twelve runs of 0; in one of them the true effort is near 0, so that only the number shows it."""
    effort = 10.0 * np.cos(0.0013 * np.arange(4000.0))
    lost = np.zeros(4000, dtype=bool)
    for start in (*range(150, 3750, 300), 1205):
        lost[start : start + 8] = True
    log, (finding,) = without_outliers(crawl(np.where(lost, 0.0, effort)))
    np.testing.assert_array_equal(np.isnan(log.effort[:, 0]), lost)
    assert finding.sentence.startswith(f"{lost.sum()} of 4000 samples are outliers")


def test_equal_efforts_of_a_joint_at_rest_or_in_few_runs_are_measurements():
    """Friction jumps when a joint stops, and the effort of every rest may be the same; four runs may be chance."""
    moving = np.tile(np.repeat([1.0, 0.0], 200), 10)
    effort = np.where(moving > 0.0, 3.0 + np.sin(0.01 * np.arange(4000.0)), 0.0)
    t = np.arange(4000) / 200.0
    rests = Log(
        t=t, joints=["a"], position=np.cumsum(moving)[:, None] / 200.0, effort=effort[:, None], effort_kind="joint_torque"
    )
    assert without_outliers(rests)[1] == []
    effort = 10.0 * np.cos(0.0013 * np.arange(4000.0))
    for start in (100, 1000, 2000, 3000):
        effort[start : start + 8] = 0.5
    assert without_outliers(crawl(effort))[1] == []
