"""Segments: append-only files of samples, so that a crash loses no data already on the disk.

    magic | length crc32 header (JSON) | length crc32 rows | length crc32 rows | ...        little endian, rows are float64

A frame is valid if it is complete and its checksum is correct; bytes after the last valid frame are a torn tail.
"""

from __future__ import annotations

import io
import json
import os
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import DynidentError, LogError, MissingExtraError, missing_extra
from dynident.files import ContentError, parsed, read_regular, write_atomic
from dynident.results import stored
from dynident.signals.tables import GROWTH, ROOM, decoding

MAGIC = b"DYNSEG1\n"
KEY = "dynident_segment"  # of the header in Parquet files
LARGEST = 1 << 28  # bytes of one frame
FRAME = struct.Struct("<II")


@dataclass(frozen=True, eq=False)
class LogSegment:
    """Content of a segment."""

    header: Mapping[str, Any]  # Metadata; ``header["columns"]`` names the columns
    table: Array  # Rows
    size: int  # Bytes up to the end of the last valid frame
    torn: int  # Bytes after the last valid frame


def segment_start(header: Mapping[str, Any]) -> bytes:
    """Return the first bytes of a segment."""
    text = json.dumps(dict(header)).encode()
    return MAGIC + FRAME.pack(len(text), zlib.crc32(text)) + text


def segment_frame(rows: Array) -> bytes:
    """Return the bytes of a frame of rows."""
    body = np.ascontiguousarray(rows, dtype="<f8").tobytes()
    return FRAME.pack(len(body), zlib.crc32(body)) + body


def read_segment(path: str | os.PathLike[str]) -> LogSegment:
    """Read the valid frames of a segment, growing or complete."""
    if str(path).endswith(".parquet"):
        return _read_sealed(Path(path))
    data = read_regular(path)
    frames = _frames(data)
    head = next(frames, None)
    if head is None:
        raise LogError(f"segment '{path}' has no header because recording stopped before the first sample; delete it")
    header = _header(head[0], path)
    width = len(header["columns"])
    parts, size = [], head[1]
    for body, end in frames:
        if len(body) % (8 * width):
            break
        parts.append(body)
        size = end
    table = np.frombuffer(b"".join(parts), "<f8").reshape(-1, width).astype(np.float64)
    return LogSegment(header, table, size, len(data) - size)


def _frames(data: bytes) -> Any:
    """Yield the valid frames with the position of their end."""
    if not data.startswith(MAGIC):
        return
    at = len(MAGIC)
    while at + FRAME.size <= len(data):
        length, crc = FRAME.unpack_from(data, at)
        body = data[at + FRAME.size : at + FRAME.size + length]
        if length > LARGEST or len(body) < length or zlib.crc32(body) != crc:
            return
        at += FRAME.size + length
        yield body, at


def seal_segment(path: str | os.PathLike[str], facts: Mapping[str, Any] | None = None) -> Path:
    """Turn a segment into Parquet: write the whole file, read it back, then delete the segment."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise missing_extra("pyarrow", "parquet", "sealing a segment") from error
    source = Path(path)
    segment = read_segment(source)
    header = {**segment.header, **(facts or {}), "torn_bytes": segment.torn}
    columns = dict(zip(_names(segment.header), segment.table.T, strict=True))
    table = pa.table(columns).replace_schema_metadata({KEY: json.dumps(header)})
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    target = write_atomic(source.with_suffix(".parquet"), buffer.getvalue())
    if read_segment(target).table.shape != segment.table.shape:
        raise LogError(f"segment '{source}' cannot be closed: '{target}' cannot be read back; check the disk")
    source.unlink()
    return target


def _names(header: Mapping[str, Any]) -> Sequence[str]:
    return [str(name) for name in header["columns"]]


def _header(data: bytes, path: object) -> dict[str, Any]:
    """Return the metadata of a segment after checking that they name its columns."""
    try:
        header = parsed(json.loads, data)
        if not stored(header, "columns", list[str], "header"):
            raise LogError("its columns have no names")
    except (ContentError, DynidentError) as error:
        raise LogError(f"segment '{path}' has an unreadable header ({error}); restore it from a backup") from error
    return dict(header)


def _read_sealed(path: Path) -> LogSegment:
    from dynident.signals.formats import open_parquet  # noqa: PLC0415 - few programs read campaigns

    try:
        data = read_regular(path)
        file = open_parquet(data, max(ROOM, GROWTH * len(data)))
        with decoding("Parquet"):
            table = file.read()
            about = (table.schema.metadata or {})[KEY.encode()]
        header = _header(about, path)
        with decoding("Parquet"):
            columns = [np.asarray(table[name].to_numpy(), dtype=np.float64) for name in _names(header)]
    except (FileNotFoundError, MissingExtraError):
        raise
    except (OSError, LogError) as error:
        raise LogError(f"segment '{path}' cannot be read ({error}); restore it from a backup") from error
    block = np.column_stack(columns) if table.num_rows else np.empty((0, table.num_columns))
    return LogSegment(header, np.asarray(block, dtype=np.float64), path.stat().st_size, 0)
