"""Parquet files and tables of Arrow to columns; pyarrow is an extra, so this module is loaded on first use."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dynident.errors import LogError
from dynident.signals.tables import (
    COLUMNS,
    GROWTH,
    LABELS,
    ROOM,
    Content,
    Words,
    check_room,
    decoded,
    decoding,
    is_key,
    own_metadata,
    printable,
)

DEPTH = 16


def open_parquet(source: Any, room: int, **options: Any) -> Any:
    """Open a Parquet file after checking the size of its unpacked content."""
    if not (isinstance(source, bytes | str | os.PathLike) or hasattr(source, "read")):
        raise LogError(f"source is a {type(source).__name__}; give a path, bytes or an open file")
    stream = io.BytesIO(source) if isinstance(source, bytes) else source
    with decoding("Parquet"):
        file = pq.ParquetFile(stream, **options)
    if file.metadata.num_columns > COLUMNS:
        raise LogError(f"it has {file.metadata.num_columns} columns; at most {COLUMNS} are read")
    with decoding("Parquet"):
        schema = file.schema_arrow
    sizes = [size for field in schema for size in _sizes(field.type)]
    if len(sizes) != file.metadata.num_columns:
        raise LogError(f"it has {file.metadata.num_columns} columns but {len(sizes)} types; write it again")
    values = packed = 0
    texts = set[str]()
    for columns in _column_chunks(stream):
        if len(columns) != len(sizes) or any(min(count, unpacked) < 0 for _, _, count, unpacked in columns):
            raise LogError("its metadata are damaged; write it again")
        for size, (kind, path, count, unpacked) in zip(sizes, columns, strict=True):
            values += count * size
            packed += unpacked
            if kind == BYTE_ARRAY:
                texts.add(path)
    check_room(max(values, packed), room, "the table when unpacked")
    if texts:  # repeated texts are stored once
        with decoding("Parquet"):
            file = pq.ParquetFile(stream, read_dictionary=sorted(texts), **options)
    return file


def unpacked_size(path: Path) -> int:
    """Return the bytes of all values of a Parquet file as float64; packed ones may take a tenth."""
    return sum(8 * count for columns in _column_chunks(path) for _, _, count, _ in columns)


def whole_table(file: Any) -> Any:
    """Return the table of a file, read column by column: reading all at once takes twice the memory."""
    with decoding("Parquet"):
        names = file.schema_arrow.names
        if len(set(names)) < len(names):
            return file.read()
        columns = {name: file.read(columns=[name], use_threads=False)[name] for name in names}
        return pa.table(columns).replace_schema_metadata(file.schema_arrow.metadata)


def pieces(path: Path, samples: int) -> Iterator[Content]:
    """Yield the columns of a Parquet file, `samples` rows at a time (the last piece has fewer); one piece is in memory."""
    file = open_parquet(path, max(ROOM, GROWTH * path.stat().st_size), buffer_size=BUFFER, pre_buffer=False)
    held: list[Any] = []
    for batch in decoded(file.iter_batches(min(samples, BATCH)), "Parquet"):  # the last batch of a row group may be shorter
        held.append(batch)
        if sum(map(len, held)) >= samples:
            whole = pa.Table.from_batches(held)
            held, piece = whole[samples:].to_batches(), table_columns(whole[:samples])
            del batch, whole  # frees memory: the piece is a copy
            yield piece
            del piece
    if held:
        yield table_columns(pa.Table.from_batches(held))


BUFFER, BATCH = 1 << 16, 1 << 14  # bytes of a column read at once, and rows decoded at once
BYTE_ARRAY, DEEPEST = 6, 16  # a type of Parquet; levels of its metadata


def _column_chunks(stream: Any) -> list[list[tuple[int, str, int, int]]]:
    """Return type, path, number of values and unpacked size of every column of every row group, from the footer.

    pyarrow's own ``row_group(g).column(c)`` ends the process where the statistics of a column are damaged, because a C++
    exception escapes (pyarrow 26.0.1).
    """
    if isinstance(stream, str | os.PathLike):
        with Path(stream).open("rb") as file:
            return _column_chunks(file)
    stream.seek(-8, 2)
    length = int.from_bytes(stream.read(4), "little")
    stream.seek(-8 - length, 2)
    groups = _Thrift(stream.read(length)).struct().get((4, 9), [])
    return [[_chunk(column) for column in _fields(group).get((1, 9), [])] for group in groups]


def _chunk(column: Any) -> tuple[int, str, int, int]:
    about = _fields(_fields(column).get((3, 12)))
    path = b".".join(part for part in about.get((3, 9), []) if isinstance(part, bytes)).decode("utf-8", "replace")
    return about.get((1, 5), 0), path, about.get((5, 6), 0), about.get((6, 6), 0)


def _fields(value: Any) -> dict[tuple[int, int], Any]:
    """Return a structure, or an empty one for another type."""
    return value if isinstance(value, dict) else {}


class _Thrift:
    """Structures in Thrift's compact protocol, as dictionaries by number and type of their fields."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        self.place += count
        if not 0 <= count <= len(self.data) or self.place > len(self.data):
            raise LogError("its metadata are damaged or cut short; write it again")
        return self.data[self.place - count : self.place]

    def varint(self) -> int:
        """Return a number of seven bits per byte."""
        found = shift = 0
        while shift < 70:
            byte = self.take(1)[0]
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        return found

    def whole(self) -> int:
        """Return a number with its sign in the last bit."""
        found = self.varint()
        return (found >> 1) ^ -(found & 1)

    def struct(self, depth: int = 0) -> dict[tuple[int, int], Any]:
        """Return the fields of a structure."""
        fields: dict[tuple[int, int], Any] = {}
        number = 0
        while (head := self.take(1)[0]) != 0:
            number = number + (head >> 4) if head >> 4 else self.whole()
            kind = head & 15
            fields[number, kind] = kind == 1 if kind in (1, 2) else self.value(kind, depth)
        return fields

    def value(self, kind: int, depth: int) -> Any:
        """Return the value of a field or list entry."""
        if depth > DEEPEST:
            raise LogError(f"its metadata are more than {DEEPEST} levels deep; write it again")
        match kind:
            case 1 | 2 | 3:
                return self.take(1)[0]
            case 4 | 5 | 6:
                return self.whole()
            case 7:
                return self.take(8)
            case 8:
                return self.take(self.varint())
            case 9 | 10:
                head = self.take(1)[0]
                return self.entries(head & 15, head >> 4 if head >> 4 < 15 else self.varint(), depth)
            case 12:
                return self.struct(depth + 1)
        raise LogError(f"its metadata have a field of the unknown type {kind}; write it again")

    def entries(self, kind: int, count: int, depth: int) -> list[Any]:
        """Return the entries of a list; every entry has at least one byte."""
        if count > len(self.data) - self.place:
            raise LogError("its metadata are damaged or cut short; write it again")
        return [self.value(kind, depth + 1) for _ in range(count)]


def _sizes(kind: Any) -> Iterator[int]:
    """Yield the bytes per value of every column that stores an Arrow type; texts count like numbers.

    The Parquet schema has them too, but it and the metadata of all row groups keep each other in memory.
    """
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_nested(kind):
        for k in range(kind.num_fields):
            yield from _sizes(kind.field(k).type)
    else:
        fixed = pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind)
        yield max(8, kind.bit_width // 8 if fixed else 0)  # a value stored once may occur in every row


def table_columns(table: Any) -> Content:
    """Columns of an Arrow table; lists of numbers become arrays, dates ns; a note lists omitted texts."""
    content = Content({})
    with decoding("Parquet"):
        for _ in range(DEPTH):
            if not any(pa.types.is_struct(kind) for kind in table.schema.types):
                break
            table = table.flatten()
        columns = list(zip(table.column_names, table.columns, strict=True))
    left = []
    for name, column in columns:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        texts = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)
        if kind is not column.type and not texts:
            column = _cast(column, kind)  # noqa: PLW2901
        if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind):
            _arrow_lists(name, column, content)
        elif pa.types.is_integer(kind) and not column.null_count:
            content.columns[name] = _cast(column, kind).to_numpy()
        elif any(test(kind) for test in (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal)):
            content.columns[name] = _cast(column, pa.float64()).to_numpy()
        elif pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
            if column.null_count:
                raise LogError(f"column '{name}' has {column.null_count} empty times; remove those rows")
            exact = pa.timestamp("ns") if pa.types.is_timestamp(kind) else pa.duration("ns")
            content.columns[name] = _cast(column, exact).to_numpy()
        elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or isinstance(column.type, pa.BaseExtensionType):
            raise LogError(f"column '{name}' holds objects ({kind}), which are never loaded; save plain numeric columns")
        elif texts and is_key(name) and (words := _arrow_words(column)):
            content.texts[name] = words
        else:
            left.append(f"{name} ({kind})")
    if left:
        content.notes.append(f"non-numeric columns ignored: {', '.join(left[:8])}{' ...' if len(left) > 8 else ''}")
    text = (table.schema.metadata or {}).get(b"dynident_log")
    content.metadata = None if text is None else own_metadata(text.decode("utf-8", "replace"))
    return content


def _cast(column: Any, kind: Any) -> Any:
    """Return a column converted to another type, or raise LogError."""
    with decoding("Parquet"):
        return column.cast(kind)


def _arrow_words(column: Any) -> Words | None:
    """A text column that may be a row key; equal texts are stored once."""
    if column.null_count or not len(column):
        return None
    with decoding("Parquet"):
        coded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        chunks = coded.unify_dictionaries().chunks
    known = tuple(printable(str(text)) for text in chunks[0].dictionary[: COLUMNS + 1].to_pylist())
    rows = np.concatenate([chunk.indices.to_numpy() for chunk in chunks]).astype(np.int64)
    return Words(rows, known) if len(known) <= COLUMNS else None


def _arrow_lists(name: str, column: Any, content: Content) -> None:
    """A column of lists: one (N, k) array, or the unchanging names of the joints."""
    with decoding("Parquet"):
        lengths = pc.unique(pc.list_value_length(column)).to_pylist()
        inner = pc.list_flatten(column)
    if len(lengths) > 1 or None in lengths:
        raise LogError(f"column '{name}' has lists of different lengths {sorted(str(x) for x in lengths)[:4]}; one is needed")
    kind = inner.type.value_type if pa.types.is_dictionary(inner.type) else inner.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise LogError(f"column '{name}' holds objects ({column.type}), which are never loaded; save plain numeric columns")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        with decoding("Parquet"):
            codes = pc.dictionary_encode(inner) if kind is inner.type else inner
            rows = [chunk.indices.to_numpy() for chunk in codes.unify_dictionaries().chunks]
        if name.rpartition(".")[2].lower() in LABELS and rows and lengths[0]:
            table = np.concatenate(rows).reshape(-1, lengths[0])
            content.labels = tuple(column[0].as_py()) if (table == table[:1]).all() else content.labels
        return
    if lengths and lengths[0]:
        content.columns[name] = _cast(inner, pa.float64()).to_numpy(zero_copy_only=False).reshape(-1, lengths[0])
