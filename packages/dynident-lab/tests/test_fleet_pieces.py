"""A log larger than one piece: the evidence of its pieces is that of the whole log, seams included."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fleet_cases import log_of
from identify_cases import arm

import dynident as di
from dynident.errors import DynidentError
from dynident.identify.regression.logs import compressed_log
from dynident.signals.matching import match
from dynident_lab.fleet import identify

CUTOFF = 4.3  # 1.5 periods at 100 Hz are 34.88 samples: not close to a whole number
PIECE = 1024


@pytest.fixture(scope="module")
def robot():
    return arm()


@pytest.fixture(scope="module")
def log(robot):
    return log_of(robot, robot.parameters.values, 60.0, 5)


def agree(pieces, whole, tolerance=1e-10) -> None:
    assert pieces.rows == whole.rows
    for a, b in zip(pieces.groups, whole.groups, strict=True):
        expected = b.R.T @ b.R
        np.testing.assert_allclose(a.R.T @ a.R, expected, atol=tolerance * np.abs(expected).max())


def test_parts_of_a_log_between_times_add_up_to_the_whole(robot, log):
    whole = di.Regression.from_log(robot, log, cutoff=CUTOFF)
    prepared = di.prepare(log, cutoff=CUTOFF)
    n, taps = prepared.decimator.factor, prepared.decimator.taps.size
    rows = prepared.decimator.length(len(prepared))
    overlap = int(16 * 100 / CUTOFF) + 8
    parts = []
    for first, last in ((0, rows // 3), (rows // 3, rows)):
        begin, end = first * n, (last - 1) * n + taps - 1
        t = prepared.motion.t[[begin, end]]
        low, high = np.searchsorted(log.t, t)
        piece = log.rows(max(0, low - overlap), min(len(log), high + 1 + overlap))
        options = {"cutoff": CUTOFF, "decimation": n}
        parts.append(compressed_log(match(robot, piece), piece, whole.base, "gls", (), options, between=tuple(t)))
    agree(parts[0] + parts[1], whole)
    # Without the overlap the ends of the filter are seen: the proof above is one.
    bare = di.Regression.from_log(robot, log.rows(low, len(log)), whole.base, cutoff=CUTOFF, decimation=n)
    assert bare.rows < parts[1].rows
    with pytest.raises(DynidentError, match="give a longer part"):
        compressed_log(match(robot, log), log, whole.base, "gls", (), {"cutoff": CUTOFF}, between=(30.0, 30.1))


@pytest.mark.parametrize("ending", ["parquet", "mcap"])
def test_a_long_log_is_many_tasks_and_gives_the_fit_of_the_whole(robot, log, tmp_path, ending):
    path = tmp_path / f"long.{ending}"
    if ending == "parquet":  # in row groups that no piece ends with
        log.save(tmp_path / "one.parquet")
        pq.write_table(pq.read_table(tmp_path / "one.parquet"), path, row_group_size=700, compression="none")
    else:
        log.save(path)
        rewrite_in_small_chunks(path)
    told = []
    with ThreadPoolExecutor(2) as pool:
        found = identify(
            robot,
            [{"serial": "A", "log": str(path)}],
            tmp_path / "out",
            client=pool,
            piece=PIECE,
            cutoff=CUTOFF,
            progress=lambda what, done, of: told.append((what, of)),
        )
    assert found.refused == ()
    assert ("pieces of long logs", 6000 // PIECE) in told
    whole = di.Regression.from_log(robot, di.Log.read(path), cutoff=CUTOFF)
    pieces = found.regression(robot, "A")
    agree(pieces, whole)
    assert len(pieces.sources) == 1
    np.testing.assert_allclose(di.WLS().fit(pieces).coef_, di.WLS().fit(whole).coef_, rtol=1e-7, atol=1e-9)
    with ThreadPoolExecutor(1) as pool:  # a second run takes the pieces from the store
        again = identify(robot, [{"serial": "A", "log": str(path)}], tmp_path / "out", client=pool, piece=PIECE, cutoff=CUTOFF)
    assert again.counters["logs_read"] == 0


def rewrite_in_small_chunks(path) -> None:
    from mcap.reader import make_reader
    from mcap.writer import Writer

    data = path.read_bytes()
    with path.open("wb") as target, path.with_name("copy").open("w+b") as source:
        source.write(data)
        source.seek(0)
        reader, writer = make_reader(source), Writer(target, chunk_size=50_000)
        writer.start("ros2", "test")
        for found in reader.iter_metadata():
            writer.add_metadata(found.name, found.metadata)
        channels = {}
        for schema, channel, message in reader.iter_messages():
            if channel.id not in channels:
                number = writer.register_schema(schema.name, schema.encoding, schema.data)
                channels[channel.id] = writer.register_channel(channel.topic, channel.message_encoding, number)
            writer.add_message(channels[channel.id], message.log_time, message.data, message.publish_time, message.sequence)
        writer.finish()


def test_the_band_of_long_logs_alone_is_chosen_by_their_beginnings(robot, log, tmp_path):
    """All of this log is its first block: the band is that of the log itself."""
    log.save(tmp_path / "long.parquet")
    with ThreadPoolExecutor(1) as pool:
        rows = [{"serial": "A", "log": str(tmp_path / "long.parquet")}]
        found = identify(robot, rows, tmp_path / "out", client=pool, piece=PIECE)
    assert found.refused == ()
    (source,) = found.regression(robot, "A").sources
    (chosen,) = di.Regression.from_logs(robot, [log]).sources
    assert source["cutoff"] == chosen["cutoff"]


def test_what_cannot_be_cut_is_said(robot, tmp_path):
    path = tmp_path / "long.parquet"
    pq.write_table(pa.table({"t": np.arange(40000.0), "x": np.random.default_rng(0).normal(size=40000)}), path)
    options = {"cutoff": CUTOFF, "method": "fourier", "period": 10.0}
    with ThreadPoolExecutor(1) as pool:
        found = identify(robot, [{"serial": "A", "log": str(path)}], client=pool, piece=PIECE, **options)
    assert "pieces need a robot without loops" in found.refused[0].sentence


def test_a_long_log_that_would_unpack_beyond_all_measure_is_refused(robot, tmp_path):
    path = tmp_path / "long.parquet"  # 120 kB whose table of 1e6 equal rows takes 16 MB
    table = pa.table({"t": np.zeros(1_000_000), "x": np.zeros(1_000_000)})
    pq.write_table(table.replace_schema_metadata({"padding": "".join(map(chr, range(33, 127))) * 900}), path)
    with ThreadPoolExecutor(1) as pool:
        found = identify(robot, [{"serial": "A", "log": str(path)}], client=pool, piece=PIECE, cutoff=CUTOFF)
    assert "the table when unpacked would take 15.3 MB in memory" in found.refused[0].sentence


def test_a_damaged_long_log_is_named(robot, log, tmp_path):
    log.save(tmp_path / "log.parquet")
    data = (tmp_path / "log.parquet").read_bytes()
    (tmp_path / "log.parquet").write_bytes(data[: len(data) // 2])
    with ThreadPoolExecutor(1) as pool:
        found = identify(
            robot, [{"serial": "A", "log": str(tmp_path / "log.parquet")}], client=pool, piece=PIECE, cutoff=CUTOFF
        )
    assert "damaged" in found.refused[0].sentence
    assert found.failed == {"A": "none of its logs could be used"}
