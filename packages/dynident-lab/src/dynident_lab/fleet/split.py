"""One log larger than memory: many tasks, each a range of decimated rows, read by Parquet row groups or MCAP chunks.

Row k of a decimated log belongs to the samples s + k n ... s + k n + taps - 1 (s: samples lost at the begin, n: factor),
regardless of the samples read around them. A zero-phase filter has a short memory: in a Butterworth filter of order 4 at f_c,
a sample p periods away has the weight exp(-2.4 p). With 16 periods on both sides, e^-38, the rows of a piece equal those of
the whole log up to rounding.
"""

from __future__ import annotations

import struct
import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dynident.errors import LogError, missing_extra
from dynident.identify import BaseParameters, Regression
from dynident.identify.regression.logs import compressed_log
from dynident.mechanism import Mechanism
from dynident.signals import Log, prepare
from dynident.signals.formats import open_parquet
from dynident.signals.matching import match
from dynident.signals.reading import naming
from dynident.signals.tables import decoding
from dynident_lab.fleet.storage import fingerprint, opened

PIECE = 1 << 18  # smallest number of samples of a task
BLOCK = 1 << 16  # samples prepared at once
STRETCHES = 12  # smallest number per log
PERIODS = 16.0  # of the cut-off, overlap on both sides
SPLIT = (".parquet", ".mcap")
GROWTH = 20  # largest ratio of unpacked to packed size
GROUP = 1 << 30  # largest row group or chunk in bytes
MESSAGE = 31  # smallest message of MCAP in bytes


@dataclass(frozen=True)
class Layout:
    """Division of a long log into tasks, by rows after decimation."""

    samples: int  # Samples of the log
    lost: int  # Samples lost at each end
    factor: int  # Factor of the decimation
    taps: int  # Length of the decimation filter
    margin: int  # Overlap
    tasks: tuple[tuple[int, int], ...]  # First and last decimated row (exclusive) of each task
    content: str  # sha256 of the file's index: its footer with sizes, places and statistics of all parts


def layout_of(path: str, robot: Mechanism, reading: Mapping[str, Any], options: Mapping[str, Any], piece: int) -> Layout:
    """Return the division of a log, from its index and its first block."""
    if options.get("cutoff", "auto") == "auto":
        raise LogError(f"log '{path}' is read in pieces, which need one common cut-off; give cutoff= in [prepare]")
    if options.get("method", "butterworth") != "butterworth" or robot.loops or options.get("phase", "zero") != "zero":
        raise LogError(
            f"log '{path}' exceeds one piece of {piece} samples; pieces need a robot without loops, filter "
            "butterworth and no delay: raise piece="
        )
    with _reader(path, reading) as reader:
        first = match(robot, reader.log(0, min(BLOCK, reader.samples))).log
        prepared = prepare(first, **options)
        lost = int(np.searchsorted(first.t, prepared.motion.t[0] - 0.5 / prepared.rate))
        factor, taps = prepared.decimator.factor, prepared.decimator.taps.size
        margin = int(np.ceil(PERIODS * prepared.rate / prepared.cutoff.frequency)) + 8
        rows = prepared.decimator.length(reader.samples - 2 * lost)
        count = max(1, reader.samples // max(piece, reader.largest))
        edges = np.linspace(0, rows, count + 1).astype(int).tolist()
        return Layout(reader.samples, lost, factor, taps, margin, tuple(pairwise(edges)), reader.content)


def beginning(path: str, reading: Mapping[str, Any]) -> Log:
    """Return the first block of a long log."""
    with _reader(path, reading) as reader:
        return reader.log(0, min(BLOCK, reader.samples))  # type: ignore[no-any-return]


def piece_regression(
    path: str,
    layout: Layout,
    number: int,
    robot: Mechanism,
    base: BaseParameters,
    reading: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Regression:
    """Return the regression data of one task of a long log, block by block."""
    first, last = layout.tasks[number]
    blocks = max(1, -(-(last - first) * layout.factor // BLOCK))
    edges = np.linspace(first, last, blocks + 1).astype(int).tolist()
    fixed = {**options, "decimation": layout.factor}
    whole: Regression | None = None
    with _reader(path, reading) as reader:
        for k, end in pairwise(edges):
            begin = layout.lost + k * layout.factor
            stop = min(layout.lost + (end - 1) * layout.factor + layout.taps, layout.samples)
            low, high = max(0, begin - layout.margin), min(layout.samples, stop + layout.margin)
            log = reader.log(low, high)
            log = replace(log, name=Path(path).name, provenance={**log.provenance, "sha256": layout.content})
            between = (float(log.t[begin - low]), float(log.t[min(stop - low, len(log)) - 1]))
            own = compressed_log(match(robot, log), log, base, "gls", (), fixed, 1, between)
            whole = own if whole is None else whole + own
    assert whole is not None
    kept = max(1, -(-STRETCHES // len(layout.tasks)))  # time intervals of this piece with separate regression data
    return one_source(replace(whole, groups=tuple(group.fewer(kept) for group in whole.groups)))


def one_source(regression: Regression) -> Regression:
    """Return regression data whose pieces of the same log are one source; with the notes of the first piece."""
    return replace(regression.joined(), notes=regression.notes[:12])


# ---- readers -------------------------------------------------------------------------------------------------------------


@contextmanager
def _reader(path: str, reading: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the reader of a format."""
    with opened(path) as stream:
        yield (_Parquet if path.lower().endswith(".parquet") else _Mcap)(path, stream, reading)


@contextmanager
def _decoding(path: str, form: str) -> Iterator[None]:
    """Convert decoder errors for a damaged file into a message; the block must contain only calls of the decoder."""
    with naming(Path(path)), decoding(form):
        yield


class _Parquet:
    """Rows of a Parquet file, forward only, with no more than some batches in memory."""

    def __init__(self, path: str, stream: Any, reading: Mapping[str, Any]) -> None:
        self.path, self.reading = path, {**reading, "name": Path(path).name}
        size = stream.seek(0, 2)
        with naming(Path(path)):
            self.file = open_parquet(stream, GROWTH * size, pre_buffer=False, buffer_size=1 << 20)
        with _decoding(path, "Parquet"):
            metadata = self.file.metadata
            sizes = [(g.num_rows, g.total_byte_size) for g in map(metadata.row_group, range(metadata.num_row_groups))]
        widest = max((size for _, size in sizes), default=0)
        if widest > GROUP:
            raise LogError(
                f"cannot read '{path}' by row groups: one has {widest >> 20} MB, at most {GROUP >> 20} are read; write row "
                "groups of 64 k to 256 k rows"
            )
        self.first = np.concatenate([[0], np.cumsum([rows for rows, _ in sizes])]).astype(int).tolist()
        self.samples, self.largest = self.first[-1], max((rows for rows, _ in sizes), default=0)
        if self.samples < 1:
            raise LogError(f"cannot read '{path}': the table has no rows")
        stream.seek(-8, 2)
        length = int.from_bytes(stream.read(4), "little")
        stream.seek(-8 - length, 2)
        self.content = fingerprint(self.samples, stream.read(length))
        self._batches: Iterator[Any] | None = None
        self._held: list[Any] = []
        self._start = self._end = 0

    def log(self, low: int, high: int) -> Log:
        """Return the log of a range of rows; ranges must increase."""
        import pyarrow as pa  # noqa: PLC0415

        if self._batches is None or low < self._start:
            group = bisect_right(self.first, low) - 1
            self._batches = self.file.iter_batches(BLOCK, row_groups=range(group, len(self.first) - 1), use_threads=False)
            self._held, self._start = [], self.first[group]
            self._end = self._start
        while self._end < high:
            with _decoding(self.path, "Parquet"):
                batch = next(self._batches)
            self._held.append(batch)
            self._end += batch.num_rows
            while self._held and self._start + self._held[0].num_rows <= low:
                self._start += self._held.pop(0).num_rows
        while self._held and self._start + self._held[0].num_rows <= low:
            self._start += self._held.pop(0).num_rows
        with _decoding(self.path, "Parquet"):
            table = pa.Table.from_batches(self._held, self.file.schema_arrow)
        return Log.read(table.slice(low - self._start, high - low), **self.reading)


class _Mcap:
    """Messages of one topic of an MCAP file, by the chunks in its index."""

    def __init__(self, path: str, stream: Any, reading: Mapping[str, Any]) -> None:
        try:
            from mcap.reader import make_reader  # noqa: PLC0415
        except ImportError as error:
            raise missing_extra("mcap", "ros", "reading MCAP files") from error
        self.path, self.stream, self.reading = path, stream, {**reading, "name": Path(path).name}
        with _decoding(path, "MCAP"):
            reader = make_reader(stream)
            summary = reader.get_summary()
            self.metadata = list(reader.iter_metadata())
        if summary is None or not summary.chunk_indexes:
            raise LogError(f"cannot read '{path}' in chunks: it has no chunk index; repair it with mcap recover")
        self.summary = summary
        self.chunks = sorted(summary.chunk_indexes, key=lambda c: c.chunk_start_offset)
        channel = self._channel()
        counts = [self._messages(c, channel) for c in self.chunks]
        self.first = np.concatenate([[0], np.cumsum(counts)]).astype(int).tolist()
        self.samples, self.largest = self.first[-1], max(counts)
        index = [(c.chunk_start_offset, c.chunk_length, c.message_start_time, c.message_end_time) for c in self.chunks]
        self.content = fingerprint(self.samples, index, *(self._checksum(c) for c in self.chunks))

    def _channel(self) -> int:
        wanted = self.reading.get("topic")
        topics = [wanted] if isinstance(wanted, str) else list(wanted or [])
        found = []
        for number, channel in self.summary.channels.items():
            schema = self.summary.schemas.get(channel.schema_id)
            joint_state = schema is not None and schema.name.endswith("/JointState")
            if channel.topic in topics or (not topics and joint_state):
                found.append(int(number))
        if len(found) != 1:
            raise LogError(f"'{self.path}' is read in chunks, which needs one topic, not {len(found)}; give topic=")
        return found[0]

    def _messages(self, chunk: Any, channel: int) -> int:
        """Number of messages of a channel in a chunk, from the length of its message index."""
        offset = chunk.message_index_offsets.get(channel)
        if offset is None:
            return 0
        count = self._number(offset + 9 + 2) // 16
        if count * MESSAGE > chunk.uncompressed_size or chunk.uncompressed_size > GROUP:
            raise LogError(
                f"cannot read '{self.path}': its index states {count} messages in a chunk of {chunk.uncompressed_size} bytes; "
                "repair it with  mcap recover"
            )
        return count

    def _checksum(self, chunk: Any) -> int:
        """CRC of a chunk's content, stored in its header."""
        return self._number(chunk.chunk_start_offset + 9 + 24)

    def _number(self, place: int) -> int:
        with _decoding(self.path, "MCAP"):
            self.stream.seek(place)
            return int(struct.unpack("<I", self.stream.read(4))[0])

    def log(self, low: int, high: int) -> Log:
        """Return the log of a range of messages: a small MCAP file of their chunks, read like any other."""
        from mcap.data_stream import RecordBuilder  # noqa: PLC0415
        from mcap.records import DataEnd, Footer, Header  # noqa: PLC0415

        begin, end = bisect_right(self.first, low) - 1, bisect_right(self.first, high - 1)
        builder: Any = RecordBuilder()
        Header("ros2", "dynident").write(builder)
        with _decoding(self.path, "MCAP"):
            for record in (*self.summary.schemas.values(), *self.summary.channels.values(), *self.metadata):
                record.write(builder)
            parts = [b"\x89MCAP0\r\n", builder.end()]
            for chunk in self.chunks[begin:end]:
                self.stream.seek(chunk.chunk_start_offset)
                parts.append(self.stream.read(chunk.chunk_length))
        DataEnd(0).write(builder)
        Footer(0, 0, 0).write(builder)
        parts += [builder.end(), b"\x89MCAP0\r\n"]
        with tempfile.TemporaryDirectory(prefix="dynident-") as folder:
            file = Path(folder) / "piece.mcap"
            with file.open("wb") as target:
                target.writelines(parts)
            log = Log.read(file, **self.reading)
        return log.rows(low - self.first[begin], high - self.first[begin])
