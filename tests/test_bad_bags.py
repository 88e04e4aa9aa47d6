"""Crafted recordings and options: what would take hours or gigabytes gets a sentence."""

from __future__ import annotations

import struct
import threading
from pathlib import Path

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
        (CHANNEL * 100_001, "over 100000 that are no messages"),
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


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("schedule", "er3a_c60", "--joint", "joint_4", "--interval", "1e-300", "-o", "x"), "a time of at least 1 s"),
        (("track", "mast", "--seed=-1"), "--seed is -1"),
        (("controller", "mast", "--duration", "1e308"), "--duration is 1e.308; give 0 to"),
        (("controller", "mast", "--watchdog", "nan"), "--watchdog is nan"),
        (("reproduce", "cft-table-6", "--workers", "99999999999999999999"), "1 to 1024"),
    ],
)
def test_options_beyond_sense(tmp_path, monkeypatch, words, sentence):
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


def test_reproduce_leaves_files_of_others_alone(tmp_path, capsys):
    for name in ("fit.json", "notes.txt", "cft-jk.json"):
        (tmp_path / name).write_text("mine")
    assert run(["reproduce", "rrr-ik", "-o", str(tmp_path)]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fit.json", "notes.txt", "reproduce.html", "rrr-ik.json"]
