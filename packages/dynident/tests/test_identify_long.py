"""Long logs are filtered and compressed part by part: band, notes, regression data and fit are those of the whole log."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from identify_cases import PLANAR, RRR, UR10, arm, simulated_log

import dynident as di
from dynident.cli import options, run
from dynident.identify.regression import factor
from dynident.signals import filters, quality, stream
from dynident.signals.filters import butterworth_part, differences, filter_columns, low_passed, padded, parts_of
from dynident.signals.held_out import unpacked

pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

SMALL = 1500  # samples of a part


def logs_of(robot) -> di.Log:
    """Return a log with noise, a pause and a drive gain."""
    log = simulated_log(robot, 40.0, 3, noise=0.05)
    rng = np.random.default_rng(1)
    pause = np.minimum(log.t, 17.0) + np.maximum(log.t - 19.0, 0.0)  # two seconds at rest
    signals = {
        name: np.stack([np.interp(pause, log.t, x) for x in getattr(log, name).T], axis=1) for name in ("position", "effort")
    }
    noisy = signals["position"] + 1e-5 * rng.standard_normal(log.position.shape)
    return replace(log, position=noisy, effort=signals["effort"] / 2.0, gain=2.0, effort_kind="joint_torque")


@pytest.mark.parametrize("rows", [RRR, PLANAR, UR10], ids=["RRR", "planar", "UR10"])
def test_the_parts_of_a_log_give_band_regression_data_and_fit_of_the_whole(rows, monkeypatch) -> None:
    robot = arm(rows)
    log = logs_of(robot)
    whole = di.Regression.from_logs(robot, [log])
    monkeypatch.setattr(filters, "PART", SMALL)
    monkeypatch.setattr(factor, "PART", SMALL)
    parts = di.Regression.from_logs(robot, [log])
    assert parts.notes == whole.notes
    assert any("at rest" in note.sentence for note in parts.notes)
    for a, b in zip(parts.groups, whole.groups, strict=True):
        assert a.counts == b.counts
        np.testing.assert_allclose(a.products, b.products, atol=1e-11 * np.abs(b.products).max(), rtol=0.0)
    one, other = (di.MAP().fit(data).result_ for data in (parts, whole))
    np.testing.assert_allclose(one.values, other.values, atol=1e-7 * np.abs(other.values).max(), rtol=0.0)
    np.testing.assert_allclose(one.sigma, other.sigma, rtol=1e-9)
    for mine, theirs in zip(parts.sources[0]["motion"]["rows"], whole.sources[0]["motion"]["rows"], strict=True):
        np.testing.assert_allclose(unpacked(mine)[1], unpacked(theirs)[1], atol=1e-6)


def test_usual_values_of_some_samples_find_the_faults_of_the_whole_log(monkeypatch) -> None:
    log = simulated_log(arm(RRR), 40.0, 3, noise=0.05)
    position, effort = log.position.copy(), log.effort.copy()
    effort[500::1000, 0] += 300.0  # spikes
    effort[:, 1] = np.clip(effort[:, 1], *np.percentile(effort[:, 1], (10, 90)))
    effort[:, 2] = 1.5
    velocity = np.roll(np.gradient(position, log.t, axis=0), 40, axis=0)  # late
    rows = np.delete(np.arange(len(log)), np.arange(50, len(log), 100))  # lost, and the stamps rewritten
    faulty = replace(log, t=log.t[: rows.size], position=position[rows], effort=effort[rows], velocity=velocity[rows])
    whole = di.signals.diagnose(faulty)
    assert {"outliers", "saturated", "dead", "lost_rows", "delayed"} <= {each.kind for each in whole.findings}
    monkeypatch.setattr(quality, "ENOUGH", 500)
    monkeypatch.setattr(quality, "STEPS", 100)
    some = di.signals.diagnose(faulty)
    assert [(f.kind, f.channel, f.severity) for f in some.findings] == [(f.kind, f.channel, f.severity) for f in whole.findings]
    for one, other in zip(some.findings, whole.findings, strict=True):
        assert one.value == pytest.approx(other.value, rel=0.02)


def test_a_length_that_is_transformed_quickly_gives_the_cutoff_of_the_whole(monkeypatch) -> None:
    log = logs_of(arm(RRR))
    position = log.position[: len(log) // 2 * 2 - 1]
    whole = di.signals.automatic_cutoff(log.rate, position)
    monkeypatch.setattr(filters, "LONG", 1000)
    assert filters._fast_length(1_000_003) == 999_424
    assert di.signals.automatic_cutoff(log.rate, position).frequency == pytest.approx(whole.frequency, rel=0.01)


@pytest.mark.parametrize("lines", [1, 700, 1001])
def test_a_long_spectrum_put_together_from_short_ones_is_that_of_the_whole(lines: int, monkeypatch) -> None:
    x = np.random.default_rng(0).standard_normal(2000)
    whole = np.abs(np.fft.rfft(x)[:lines]) ** 2 / (100.0 * 3.0) * np.where(np.arange(lines) % 1000 == 0, 1.0, 2.0)
    monkeypatch.setattr(filters, "LONG", 1000)
    monkeypatch.setattr(filters, "STRETCH", 300)
    np.testing.assert_allclose(filters._periodogram(x, 100.0, 3.0, lines), whole, rtol=1e-9)


def test_the_longest_run_of_equal_values() -> None:
    assert quality._longest_run(np.array([1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 1.0])) == (3, 3)
    assert quality._longest_run(np.array([5.0, 5.0, 1.0, 2.0])) == (0, 2)
    assert quality._longest_run(np.array([5.0, 1.0, 7.0])) == (0, 1)


@pytest.mark.parametrize("order", [1, 3, 4, 10])
@pytest.mark.parametrize("causal", [False, True])
def test_parts_of_a_signal_are_filtered_like_the_whole(order: int, causal: bool, monkeypatch) -> None:
    rng = np.random.default_rng(order)
    q = np.cumsum(rng.standard_normal((6000, 3)), axis=0) / 30.0
    whole = di.signals.butterworth(1000.0, q, 20.0, order=order, causal=causal)
    for first, last in ((0, 700), (2500, 4000), (5300, 6000)):
        found = butterworth_part(q, 1e-3, 20.0, slice(first, last), order, causal)
        for x, y in zip(found, whole, strict=True):
            np.testing.assert_allclose(x, y[first:last], atol=1e-9 * np.abs(y).max(), rtol=0.0)
    monkeypatch.setattr(filters, "PART", 1000)
    assert len(parts_of(6000, 1e-3, 20.0)) > 1
    v = low_passed(q, 1e-3, 20.0, order, causal, derivative=1)
    np.testing.assert_allclose(v, whole[1], atol=1e-9 * np.abs(v).max(), rtol=0.0)


@pytest.mark.parametrize("channels", [1, 2, 3, 6, 7, 9])
def test_compiled_recursions_and_differences_are_the_sums_of_their_definition(channels: int) -> None:
    rng = np.random.default_rng(channels)
    x = rng.standard_normal((40, channels))
    sections = filters.low_pass_sections(3, 0.1)
    y = padded(x)
    filter_columns(sections, y)
    expected = x - x[0]
    for b, a in sections:
        source, expected = expected, np.zeros_like(expected)
        for i in range(len(x)):
            expected[i] = sum(b[k] * source[i - k] for k in range(min(i + 1, b.size)))
            expected[i] -= sum(a[k] * expected[i - k] for k in range(1, min(i + 1, a.size)))
    np.testing.assert_allclose(y[:, :channels], expected + x[0], atol=1e-14)
    odd, even = rng.standard_normal((2, 3))
    first, second = differences(odd, even, padded(x))
    middle = range(3, len(x) - 3)
    sums = [sum(odd[k - 1] * (x[i + k] - x[i - k]) for k in (1, 2, 3)) for i in middle]
    np.testing.assert_allclose(first[:, :channels], sums, atol=1e-13)
    sums = [sum(even[k - 1] * (x[i + k] - 2.0 * x[i] + x[i - k]) for k in (1, 2, 3)) for i in middle]
    np.testing.assert_allclose(second[:, :channels], sums, atol=1e-13)


# ---- files that are read piece by piece --------------------------------------------------------------------------------


def written(log: di.Log, path, clock) -> None:
    """Write a table of another program, in row groups that no piece fits."""
    columns = {"time": clock} if clock is not None else {}
    for j, name in enumerate(log.joints):
        columns |= {f"q_{name}": log.position[:, j], f"tau_{name}": log.effort[:, j]}
    pq.write_table(pa.table(columns), path, row_group_size=700)


@pytest.mark.parametrize("clock", ["seconds", "nanoseconds", "none"])
def test_pieces_of_a_parquet_file_are_the_file(clock, tmp_path) -> None:
    log = simulated_log(arm(RRR), 20.0, 3, noise=0.05)
    stamps = 1_700_000_000_123_456_789 + np.round(1e9 * log.t).astype(np.int64)
    written(log, path := tmp_path / "run.parquet", {"seconds": 5.0 + log.t, "nanoseconds": stamps, "none": None}[clock])
    rate = {"rate": log.rate} if clock == "none" else {}
    whole = di.Log.read(path, "joint_torque", **rate)
    pieces = list(di.Log.stream(path, "joint_torque", samples=450, **rate))
    assert [len(piece) for piece in pieces[:-1]] == [450] * (len(log) // 450)
    for field in ("position", "effort"):
        np.testing.assert_array_equal(np.concatenate([getattr(piece, field) for piece in pieces]), getattr(whole, field))
    np.testing.assert_allclose(np.concatenate([piece.t for piece in pieces]), whole.t, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("ending", ["parquet", "mcap"])
def test_identify_reads_a_long_file_in_pieces_and_holds_some_out(ending, tmp_path, monkeypatch) -> None:
    robot = arm(RRR)
    logs_of(robot).save(tmp_path / f"run.{ending}")
    robot.save(tmp_path / "robot.urdf")
    words = ["identify", tmp_path / "robot.urdf", tmp_path / f"run.{ending}", "-q", "-o"]
    assert run([str(word) for word in (*words, tmp_path / "whole")]) == 0
    monkeypatch.setattr(stream, "LONG", 0)
    monkeypatch.setattr(options, "PIECE", len(di.Log.read(tmp_path / f"run.{ending}")) // 7)
    monkeypatch.setattr(di.Log, "read", None)  # the file is never in memory as a whole
    assert run([str(word) for word in (*words, tmp_path / "pieces")]) == 0
    pieces, whole = (di.Fit.load(tmp_path / name / "fit.json") for name in ("pieces", "whole"))
    assert any("band is that of its first piece" in note.sentence for note in pieces.notes)
    assert sum(source["samples"] for source in pieces.sources) < 0.75 * len(logs_of(robot))
    apart = np.abs(pieces.values - whole.values) / np.hypot(pieces.std, whole.std)
    assert np.max(apart[np.isfinite(apart)]) < 4.0
    verdict = json.loads((tmp_path / "pieces" / "verdict.json").read_text())
    assert {check["name"] for check in verdict["checks"] if not check["ok"]} == {"new_motion"}  # it repeats itself
    assert len(verdict["scores"]) == 2


def test_a_file_is_long_by_its_numbers_and_not_by_its_packed_bytes(tmp_path, monkeypatch) -> None:
    path, rows = tmp_path / "run.parquet", 20_000
    pq.write_table(pa.table({name: np.zeros(rows) for name in ("time", "q_a", "tau_a")}), path, row_group_size=7000)
    assert path.stat().st_size < rows
    monkeypatch.setattr(stream, "LONG", 3 * 8 * rows)
    assert not stream.is_long(path)
    monkeypatch.setattr(stream, "LONG", 3 * 8 * rows - 1)
    assert stream.is_long(path)
    assert di.Log.stream(path, "joint_torque", samples=1000).pieces == 3  # about twenty numbers per sample are usual
