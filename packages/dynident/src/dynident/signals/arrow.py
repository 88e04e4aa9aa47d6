"""Parquet files and tables of Arrow to columns; pyarrow is an extra, so this module is loaded on first use."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dynident.errors import LogError
from dynident.signals.tables import COLUMNS, LABELS, Content, Words, check_room, decoding, is_key, own_metadata, printable

DEPTH = 16


def open_parquet(source: Any, room: int, **options: Any) -> Any:
    """Open a Parquet file after checking that all of it fits into so many bytes when it is unpacked."""
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
        raise LogError(f"it has {file.metadata.num_columns} columns but types of {len(sizes)}; write it again")
    values = packed = 0
    texts = set[str]()
    for g in range(file.metadata.num_row_groups):  # one at a time: together they would take more memory than their rows
        with decoding("Parquet"):
            group = file.metadata.row_group(g)
            columns = [group.column(c) for c in range(group.num_columns)]
        for size, column in zip(sizes, columns, strict=True):
            values += column.num_values * size
            packed += column.total_uncompressed_size
            if column.physical_type == "BYTE_ARRAY":
                texts.add(column.path_in_schema)
    check_room(max(values, packed), room, "the table when unpacked")
    if texts:  # a text that is stored once for all rows stays once in memory
        with decoding("Parquet"):
            file = pq.ParquetFile(stream, read_dictionary=sorted(texts), **options)
    return file


def _sizes(kind: Any) -> Iterator[int]:
    """Yield the bytes of a value of every column that a type of Arrow is stored in; texts count like numbers.

    The schema of Parquet would tell them too, but it and the metadata of all row groups keep each other in memory.
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
        yield max(8, kind.bit_width // 8 if fixed else 0)  # a value that is stored once may stand in every row


def table_columns(table: Any) -> Content:
    """Columns of an Arrow table; lists of numbers become arrays, dates ns; texts are left out, and said."""
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
        content.notes.append(f"columns without numbers left out: {', '.join(left[:8])}{' ...' if len(left) > 8 else ''}")
    text = (table.schema.metadata or {}).get(b"dynident_log")
    content.metadata = None if text is None else own_metadata(text.decode("utf-8", "replace"))
    return content


def _cast(column: Any, kind: Any) -> Any:
    """Return a column in another type, which its values may not have."""
    with decoding("Parquet"):
        return column.cast(kind)


def _arrow_words(column: Any) -> Words | None:
    """A column of texts that may say what a row is of; a text that is stored once stays once in memory."""
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
