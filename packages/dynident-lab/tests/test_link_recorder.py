"""The recorder: what is acknowledged is there after any crash; torn tails are cut, gaps and repetitions marked."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest

from dynident.errors import LogError
from dynident_lab.campaigns import GAP, REPEATED, read_journal, read_segment
from dynident_lab.link import DiskFullError, Recorder, Samples
from dynident_lab.link.recorder import Journal

CHANNELS = ("a", "b")


def samples(first: int, count: int) -> Samples:
    index = np.arange(first, first + count)
    table = np.column_stack([index, 0.004 * index, 0.004 * index, np.outer(index, np.arange(1, 9))]).astype(float)
    return Samples.from_table(table)


def test_every_cut_of_the_file_leaves_whole_frames(tmp_path) -> None:
    recorder = Recorder(tmp_path, CHANNELS, interval=0.0)
    path = recorder.open("cycle", 0, 0, "0")
    ends = []
    for k in range(4):
        recorder.append(100.0 + k, samples(10 * k, 10))
        ends.append(path.stat().st_size)
    assert recorder.acknowledged == 40
    whole = path.read_bytes()
    copy = tmp_path / "copy.seg"
    for size in range(ends[0], len(whole) + 1, 7):
        copy.write_bytes(whole[:size])
        found = read_segment(copy)
        frames = sum(end <= size for end in ends)
        assert len(found.table) == 10 * frames
        assert found.torn == size - ends[frames - 1]
        np.testing.assert_array_equal(found.table[:, 1], np.arange(10 * frames))
    for place in range(ends[1], len(whole), 97):  # a damaged byte ends what can be trusted, and nothing crashes
        broken = bytearray(whole)
        broken[place] ^= 0x40
        copy.write_bytes(bytes(broken))
        assert len(read_segment(copy).table) == 10 * sum(end <= place for end in ends)


def test_a_torn_tail_is_cut_and_told(tmp_path) -> None:
    recorder = Recorder(tmp_path, CHANNELS, interval=0.0)
    path = recorder.open("cycle", 0, 0, "0")
    recorder.append(100.0, samples(0, 10))
    with path.open("ab") as file:
        file.write(b"half a frame")
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(b'{"event": "half a li')
    Recorder(tmp_path, CHANNELS).close()
    events = [e for e in read_journal(tmp_path) if e["event"] == "torn tail cut"]
    assert [(e["bytes"], e["samples"]) for e in events] == [(12, 10)]
    sealed = tmp_path / path.with_suffix(".parquet").name
    assert not path.exists()
    np.testing.assert_array_equal(read_segment(sealed).table[:, 1], np.arange(10))


def test_a_line_of_the_journal_that_was_changed_ends_what_is_read(tmp_path) -> None:
    journal = Journal(tmp_path)
    for name in ("one", "two", "three"):
        journal.note("cycle begun", cycle=name)
    journal.close()
    path = tmp_path / "journal.jsonl"
    whole = read_journal(tmp_path)
    assert [e["cycle"] for e in whole if "cycle" in e] == ["one", "two", "three"]
    path.write_bytes(path.read_bytes().replace(b'"two"', b'"six"'))  # JSON as good as before
    assert [e["cycle"] for e in read_journal(tmp_path) if "cycle" in e] == ["one"]


def test_gaps_and_repetitions_are_marked(tmp_path) -> None:
    recorder = Recorder(tmp_path, CHANNELS)
    path = recorder.open("cycle", 0, 0, "0")
    for first, count in ((0, 5), (3, 2), (8, 2)):
        recorder.append(1.0, samples(first, count))
    recorder.close()
    table = read_segment(path.with_suffix(".parquet")).table
    np.testing.assert_array_equal(table[:, 4], [0, 0, 0, 0, 0, REPEATED, REPEATED, GAP, 0])
    assert (recorder.gaps, recorder.repeated) == (1, 2)


def test_samples_are_kept_exactly_with_both_clocks(tmp_path) -> None:
    recorder = Recorder(tmp_path, CHANNELS)
    path = recorder.open("cycle", 3, 1, "7")
    rows = Samples.from_table(np.random.default_rng(0).standard_normal((6, 11)) * np.array([0.0] + [1.0] * 10))
    rows = Samples.from_table(np.column_stack([np.arange(6.0), rows.table[:, 1:]]))
    recorder.append(1234.5678, rows)
    growing = read_segment(path)
    recorder.close()
    sealed = read_segment(path.with_suffix(".parquet"))
    for found in (growing, sealed):
        np.testing.assert_array_equal(found.table[:, 0], 1234.5678)
        np.testing.assert_array_equal(np.delete(found.table, [0, 4], axis=1), rows.table)
        assert (found.header["cycle"], found.header["attempt"], found.header["session"]) == (3, 1, "7")


def test_a_full_disk_takes_back_what_does_not_fit(tmp_path, monkeypatch) -> None:
    recorder = Recorder(tmp_path, CHANNELS, interval=0.0)
    path = recorder.open("cycle", 0, 0, "0")
    recorder.append(1.0, samples(0, 10))
    size, write, calls = path.stat().st_size, os.write, []

    def half(handle: int, data: bytes) -> int:
        calls.append(handle)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(handle, data[:50])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(DiskFullError, match="free some space"):
        recorder.append(1.0, samples(10, 10))
    assert path.stat().st_size == size
    assert len(calls) == 2  # a part of it was on the disk
    monkeypatch.setattr(os, "write", write)
    recorder.append(1.0, samples(10, 10))
    assert recorder.acknowledged == 20
    np.testing.assert_array_equal(read_segment(path).table[:, 1], np.arange(20))


def test_a_file_without_a_header_is_told(tmp_path) -> None:
    (tmp_path / "x.seg").write_bytes(b"DYNSEG1\n\x10")
    with pytest.raises(LogError, match="no header"):
        read_segment(tmp_path / "x.seg")
