"""Crafted recordings and options: what would take hours or gigabytes gets a sentence."""

from __future__ import annotations

import sqlite3
import struct
import threading
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.cli import run
from dynident.errors import DynidentError
from dynident.files import write_atomic
from dynident.outputs import output_set


def record(code: int, body: bytes) -> bytes:
    return struct.pack("<BQ", code, len(body)) + body


def text(value: bytes) -> bytes:
    return struct.pack("<I", len(value)) + value


SCHEMA = record(3, struct.pack("<H", 1) + text(b"sensor_msgs/msg/JointState") + text(b"ros2msg") + text(b"#" * (2 << 20)))
CHANNEL = record(4, struct.pack("<HH", 1, 1) + text(b"/js") + text(b"cdr") + struct.pack("<I", 0))


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        (SCHEMA + CHANNEL, "a definition of a message has 2097152 bytes"),
        (CHANNEL * 100_001, "over 100000 that are not messages"),
        (record(5, b"xx"), "a message of 2 bytes"),
    ],
)
def test_chunks_that_would_take_minutes(tmp_path, records, sentence):
    zstandard = pytest.importorskip("zstandard")
    packed = zstandard.ZstdCompressor().compress(records)
    chunk = record(6, struct.pack("<QQQI", 0, 0, len(records), 0) + text(b"zstd") + struct.pack("<Q", len(packed)) + packed)
    (tmp_path / "log.mcap").write_bytes(b"\x89MCAP0\r\n" + chunk)
    with pytest.raises(DynidentError, match=sentence):
        di.Log.read(tmp_path / "log.mcap")


def test_an_old_bag_that_unpacks_beyond_measure(tmp_path, monkeypatch):
    rosbag1 = pytest.importorskip("rosbags.rosbag1")
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    monkeypatch.setattr("dynident.signals.bags.CHUNK", 1 << 16)
    writer = rosbag1.Writer(tmp_path / "log.bag")
    writer.set_compression(writer.CompressionFormat.BZ2)
    with writer:
        topic = writer.add_connection("/a", "std_msgs/msg/String", typestore=store)
        writer.write(topic, 1, bytes(1 << 18))
    assert (tmp_path / "log.bag").stat().st_size < 1 << 14
    with pytest.raises(DynidentError, match="a chunk"):
        di.Log.read(tmp_path / "log.bag")


def test_the_index_of_an_mcap_is_not_believed(tmp_path):
    pytest.importorskip("mcap")
    t = np.arange(20) * 0.1
    log = di.Log(t, ("j",), np.sin(t)[:, None], np.cos(t)[:, None], effort_kind="joint_torque")
    log.save(tmp_path / "good.mcap")
    good = (tmp_path / "good.mcap").read_bytes()
    place, indices, damaged = 8, 0, bytearray(good)
    while place < len(good) - 8:
        code, length = struct.unpack_from("<BQ", good, place)
        place += 9
        if code in (7, 8, 11, 14):  # indices of messages and chunks, statistics, offsets of the summary
            damaged[place : place + length] = b"\xff" * length
            indices += 1
        place += length
    assert indices
    for name, data in (("index.mcap", bytes(damaged)), ("endless.mcap", good[:8] + struct.pack("<BQ", 8, 1 << 62) + good[8:])):
        (tmp_path / name).write_bytes(data)
    read = di.Log.read(tmp_path / "index.mcap")
    assert (read.position == di.Log.read(tmp_path / "good.mcap").position).all()
    with pytest.raises(DynidentError):
        di.Log.read(tmp_path / "endless.mcap")


TOPICS = "CREATE TABLE topics(id INTEGER, name TEXT, type TEXT, serialization_format TEXT)"


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        ("CREATE VIEW messages AS SELECT 1 AS topic_id, 2 AS timestamp, zeroblob(900000000) AS data", "no tables"),
        (
            "CREATE TABLE messages(topic_id INTEGER, timestamp INTEGER, x, data AS (zeroblob(900000000)))",
            "computed columns, which are never run",
        ),
    ],
)
def test_a_database_runs_nothing(tmp_path, tables, sentence):
    pytest.importorskip("rosbags", reason="bags are an extra: pip install 'dynident[ros]'")
    base = sqlite3.connect(tmp_path / "log.db3")
    base.executescript(f"{TOPICS}; {tables}; INSERT INTO topics VALUES (1, '/j', 'sensor_msgs/msg/JointState', 'cdr')")
    base.close()
    with pytest.raises(DynidentError, match=sentence):
        di.Log.read(tmp_path / "log.db3")


def test_options_beyond_sense(tmp_path, monkeypatch, subtests):
    for words, sentence in [
        (("describe", "nothing.urdf", "--rank-tolerance", "1e308"), "--rank-tolerance is 1e.308; give a number of a plausible"),
        (("identify", "nothing.urdf", "run.csv", "--period", "2", "-o", "x"), "--period is for the estimator iv"),
    ]:
        with subtests.test(str(sentence)):
            monkeypatch.chdir(tmp_path)
            with pytest.raises(DynidentError, match=sentence):
                run(words)


def test_files_that_are_not_locked_yet_are_made_again(tmp_path, monkeypatch):
    """Another run may remove a temporary file or folder as stale between its making and its lock."""
    import dynident.files
    import dynident.outputs

    for module, name in ((dynident.files, "mkstemp"), (dynident.outputs, "mkdtemp")):
        make, lost = getattr(module.tempfile, name), threading.Event()

        def once(*args, make=make, lost=lost, **options):
            made = make(*args, **options)
            if not lost.is_set():
                lost.set()
                Path(made).rmdir() if isinstance(made, str) else Path(made[1]).unlink()
            return made

        monkeypatch.setattr(module.tempfile, name, once)
    assert write_atomic(tmp_path / "a.txt", "whole").read_text() == "whole"
    with output_set(tmp_path / "set", ("*.txt",)) as stage:
        (stage / "b.txt").write_text("whole")
    assert (tmp_path / "set" / "b.txt").read_text() == "whole"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "set"]
