"""Packed and binary files (gzip, npz, MATLAB, HDF5, Parquet) and tables in memory, as named columns."""

from __future__ import annotations

import gzip
import io
import math
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from dynident.errors import LogError, missing_extra
from dynident.signals.matlab import Unread, first_notes, read_matlab
from dynident.signals.records import read_json
from dynident.signals.rows import read_text
from dynident.signals.tables import (
    COLUMNS,
    LABELS,
    TEXT,
    Content,
    Table,
    Words,
    check_room,
    is_key,
    own_metadata,
    printable,
    short,
    table_of,
)

DEPTH = 16
HDF5 = b"\x89HDF\r\n\x1a\n"  #: how such files begin


def read_frame(frame: object) -> Table:
    """Take a table in memory: pandas, polars or Arrow, a structured array, or a mapping of names to arrays."""
    columns: dict[str, Any] = {}
    named: Any = frame
    for whole in ("collect", "read_all"):  # a lazy frame of polars, a reader of Arrow
        if hasattr(frame, whole):
            return read_frame(getattr(frame, whole)())
    if isinstance(frame, np.ndarray) and frame.dtype.names:
        columns = {name: frame[name] for name in frame.dtype.names}
    elif isinstance(frame, Mapping):
        columns = {str(name): values for name, values in frame.items()}
    elif hasattr(frame, "schema") and hasattr(frame, "column_names") and hasattr(frame, "to_pydict"):
        return table_of("the table", _from_arrow(named))
    elif hasattr(frame, "columns") and hasattr(frame, "__getitem__"):
        index = getattr(frame, "index", None)
        if index is not None and (getattr(index, "name", None) or getattr(index.dtype, "kind", "") in "Mmf"):
            columns[str(index.name or "time")] = _values(index)
        columns |= {"/".join(map(str, n)) if isinstance(n, tuple) else str(n): _values(named[n]) for n in named.columns}
    else:
        raise LogError(f"a log cannot be read from a {type(frame).__name__}; give a file, a DataFrame, or a mapping of arrays")
    for name, values in columns.items():
        array = np.asarray(values) if not isinstance(values, list) else _array_of(name, values)
        if array.dtype == object:
            array = _array_of(name, array.tolist())
        columns[name] = array
    return table_of("the table", Content(columns))


def _values(column: Any) -> Any:
    """A column as an array; times with a zone become UTC."""
    return column.to_numpy("datetime64[ns]") if getattr(column.dtype, "tz", None) is not None else column.to_numpy()


def _array_of(name: str, values: list[Any]) -> Any:
    """A list of numbers, texts or equally long lists as an array; texts stay objects and are left out later."""
    if not isinstance(values, Iterable):
        raise LogError(f"column '{name}' is a {type(values).__name__}; give a list or an array of numbers")
    try:
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    except (TypeError, ValueError):
        if any(isinstance(v, list | tuple | np.ndarray) for v in values):
            raise LogError(f"column '{name}' has lists of unequal length or without numbers; give one list length") from None
        if any(isinstance(v, int | float) and v is not None for v in values):
            raise LogError(f"column '{name}' mixes numbers with other things; numbers are needed") from None
        return np.array([str(v) for v in values])


def _gunzip(data: bytes, room: int) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            text = stream.read(room + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise LogError(f"the gzip stream is damaged or cut short ({short(error)}); copy the file again") from error
    check_room(len(text), room, "the text when unpacked")
    return text


def _read_npz(data: bytes, room: int) -> Content:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            check_room(sum(entry.file_size for entry in archive.infolist()), room, "the archive when unpacked")
    except zipfile.BadZipFile as error:
        if data[:6] == b"\x93NUMPY":
            raise LogError("it is a single array, not an npz archive; save it with np.savez(t=..., positions=...)") from error
        raise LogError(f"the npz archive is damaged or cut short ({short(error)}); copy the file again") from error
    arrays: dict[str, Any] = {}
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            for name in archive.files:
                try:
                    arrays[name] = archive[name]
                except ValueError as error:
                    if "pickle" in str(error).lower():
                        raise LogError(
                            f"array '{name}' is a pickled object, which is never loaded; save plain numeric arrays"
                        ) from error
                    raise
    except (zipfile.BadZipFile, EOFError) as error:
        raise LogError(f"the npz archive is damaged or cut short ({short(error)}); copy the file again") from error
    text = arrays.pop("dynident_log", None)
    return Content(arrays, own_metadata(str(text)) if text is not None else None)


def _read_mat(data: bytes, room: int) -> Content:
    if HDF5 in (data[:8], data[512:520]):
        return _read_hdf5(data, room, transpose=True)  # 7.3 files are HDF5 behind MATLAB's own header, column-major
    arrays: dict[str, Any] = {}
    notes: list[str] = []

    def walk(prefix: str, value: object) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(f"{prefix}.{key}" if prefix else str(key), inner)
        elif isinstance(value, Unread):
            notes.append(value.note(prefix))
        elif not isinstance(value, list):
            arrays[prefix] = value
        elif value and all(isinstance(v, str) for v in value):
            arrays[prefix] = np.array(value)

    walk("", read_matlab(data, room))
    text = arrays.pop("dynident_log", None)
    return Content(arrays, own_metadata(str(text)) if text is not None else None, notes=first_notes(notes))


def _read_hdf5(data: bytes, room: int, transpose: bool = False) -> Content:
    try:
        import h5py  # noqa: PLC0415
    except ImportError as error:
        raise missing_extra("h5py", "hdf5", "reading HDF5 and MATLAB 7.3 files") from error
    arrays: dict[str, Any] = {}
    notes: dict[str, None] = {}
    needed = 0
    with h5py.File(io.BytesIO(data), "r") as file:
        for _, _ in _hdf5_items(file, h5py, follow=False):  # all links, before one of them is followed
            pass
        for place, item in _hdf5_items(file, h5py, follow=True):
            unread = _unread(item, h5py) if transpose else None
            if unread is not None:
                notes[unread.note((place if unread.count == 1 else place.rpartition("/")[0]).replace("/", "."))] = None
            elif item.dtype.kind in "biuf":
                # A chunk is unpacked as a whole, however few of its numbers are in the dataset.
                needed += max(math.prod(item.shape or (1,)), math.prod(item.chunks or (1,))) * 8
                check_room(needed, room, f"dataset '{place[:60]}', with those before it,")
                values = item[()]
                arrays[place] = values.T if transpose else values
    return Content(dict(sorted(arrays.items())), notes=first_notes(notes))


def _unread(item: Any, h5py: Any) -> Unread | None:
    """What a dataset of MATLAB stands for when it is no array: an object, a text, a field of an array of structures."""
    given = item.attrs.get("MATLAB_class", b"")
    class_ = given.decode("latin-1") if isinstance(given, bytes) else ""
    if class_ == "char" or "MATLAB_empty" in item.attrs:
        return Unread("string")
    if "MATLAB_object_decode" in item.attrs:
        return Unread(class_)
    if not class_ and item.size > 1 and h5py.check_ref_dtype(item.dtype):
        return Unread("struct", item.size)
    return None


def _hdf5_items(file: Any, h5py: Any, follow: bool) -> Iterator[tuple[str, Any]]:
    """The datasets of an HDF5 file with their paths; what lies outside, too deep or in too great a number is refused."""
    pending, count = [("", file, 0)], 0
    while pending:
        prefix, group, depth = pending.pop()
        for name in group:
            place, link = f"{prefix}{name}", group.get(name, getlink=True)
            count += 1
            if count > COLUMNS:
                raise LogError(f"it has more than {COLUMNS} groups and datasets")
            if isinstance(link, h5py.ExternalLink):
                raise _outside(place)
            item = group.get(name) if follow or isinstance(link, h5py.HardLink) else None
            if isinstance(item, h5py.Group) and not name.startswith("#"):
                if depth >= DEPTH:
                    raise LogError(f"group '{place[:60]}' is more than {DEPTH} levels deep")
                pending.append((place + "/", item, depth + 1))
            elif isinstance(item, h5py.Dataset):
                if item.external or item.is_virtual:  # a virtual one that refers to itself ends the process
                    raise _outside(place)
                yield place, item


def _outside(place: str) -> LogError:
    return LogError(f"'{place[:60]}' has its data in another file or dataset, which is never read; copy them into this one")


def _read_parquet(data: bytes, room: int) -> Content:
    return _from_arrow(open_parquet(data, room).read())


def open_parquet(source: Any, room: int, **options: Any) -> Any:
    """Open a Parquet file after checking that all of it fits into so many bytes when it is unpacked."""
    try:
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise missing_extra("pyarrow", "parquet", "reading Parquet files") from error
    if not (isinstance(source, bytes | str | os.PathLike) or hasattr(source, "read")):
        raise LogError(f"source is a {type(source).__name__}; give a path, bytes or an open file")
    stream = io.BytesIO(source) if isinstance(source, bytes) else source
    file = pq.ParquetFile(stream, **options)
    if file.metadata.num_columns > COLUMNS:
        raise LogError(f"it has {file.metadata.num_columns} columns; at most {COLUMNS} are read")
    sizes = [size for field in file.schema_arrow for size in _sizes(field.type)]
    if len(sizes) != file.metadata.num_columns:
        raise LogError(f"it has {file.metadata.num_columns} columns but types of {len(sizes)}; write it again")
    values = packed = 0
    texts = set[str]()
    for g in range(file.metadata.num_row_groups):  # one at a time: together they would take more memory than their rows
        group = file.metadata.row_group(g)
        for c in range(group.num_columns):
            column = group.column(c)
            values += column.num_values * sizes[c]
            packed += column.total_uncompressed_size
            if column.physical_type == "BYTE_ARRAY":
                texts.add(column.path_in_schema)
    check_room(max(values, packed), room, "the table when unpacked")
    if texts:  # a text that is stored once for all rows stays once in memory
        file = pq.ParquetFile(stream, read_dictionary=sorted(texts), **options)
    return file


def _sizes(kind: Any) -> Iterator[int]:
    """Yield the bytes of a value of every column that a type of Arrow is stored in; texts count like numbers.

    The schema of Parquet would tell them too, but it and the metadata of all row groups keep each other in memory.
    """
    import pyarrow as pa  # noqa: PLC0415

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


def _from_arrow(table: Any) -> Content:
    """Columns of an Arrow table; lists of numbers become arrays, dates ns; texts are left out, and said."""
    import pyarrow as pa  # noqa: PLC0415

    content = Content({})
    for _ in range(DEPTH):
        if not any(pa.types.is_struct(kind) for kind in table.schema.types):
            break
        table = table.flatten()
    left = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        texts = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)
        column = column.cast(kind) if kind is not column.type and not texts else column  # noqa: PLW2901
        if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind):
            _arrow_lists(name, column, content)
        elif pa.types.is_integer(kind) and not column.null_count:
            content.columns[name] = column.to_numpy()
        elif any(test(kind) for test in (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal)):
            content.columns[name] = column.cast(pa.float64()).to_numpy()
        elif pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
            if column.null_count:
                raise LogError(f"column '{name}' has {column.null_count} empty times; remove those rows")
            exact = pa.timestamp("ns") if pa.types.is_timestamp(kind) else pa.duration("ns")
            content.columns[name] = column.cast(exact).to_numpy()
        elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or isinstance(column.type, pa.BaseExtensionType):
            raise LogError(f"column '{name}' holds objects ({kind}), which are never loaded; save plain numeric columns")
        elif texts and is_key(name) and (words := _arrow_words(column)):
            content.texts[name] = words
        else:
            left.append(f"{name} ({kind})")
    if left:
        content.notes.append(f"columns without numbers left out: {', '.join(left[:8])}{' ...' if len(left) > 8 else ''}")
    text = (table.schema.metadata or {}).get(b"dynident_log")
    content.metadata = None if text is None else own_metadata(text.decode())
    return content


def _arrow_words(column: Any) -> Words | None:
    """A column of texts that may say what a row is of; a text that is stored once stays once in memory."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    if column.null_count or not len(column):
        return None
    coded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    chunks = coded.unify_dictionaries().chunks
    known = tuple(printable(str(text)) for text in chunks[0].dictionary[: COLUMNS + 1].to_pylist())
    rows = np.concatenate([chunk.indices.to_numpy() for chunk in chunks]).astype(np.int64)
    return Words(rows, known) if len(known) <= COLUMNS else None


def _arrow_lists(name: str, column: Any, content: Content) -> None:
    """A column of lists: one (N, k) array, or the unchanging names of the joints."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    lengths = pc.unique(pc.list_value_length(column)).to_pylist()
    if len(lengths) > 1 or None in lengths:
        raise LogError(f"column '{name}' has lists of different lengths {sorted(str(x) for x in lengths)[:4]}; one is needed")
    inner = pc.list_flatten(column)
    kind = inner.type.value_type if pa.types.is_dictionary(inner.type) else inner.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise LogError(f"column '{name}' holds objects ({column.type}), which are never loaded; save plain numeric columns")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        codes = pc.dictionary_encode(inner) if kind is inner.type else inner
        rows = [chunk.indices.to_numpy() for chunk in codes.unify_dictionaries().chunks]
        if name.rpartition(".")[2].lower() in LABELS and rows and lengths[0]:
            table = np.concatenate(rows).reshape(-1, lengths[0])
            content.labels = tuple(column[0].as_py()) if (table == table[:1]).all() else content.labels
        return
    if lengths and lengths[0]:
        content.columns[name] = inner.cast(pa.float64()).to_numpy(zero_copy_only=False).reshape(-1, lengths[0])


def _packed_text(data: bytes, room: int) -> Content:
    return read_text(_gunzip(data, room), room)


READERS: dict[str, Callable[[bytes, int], Content]] = {
    **dict.fromkeys((f"{ending}.gz" for ending in TEXT), _packed_text),
    ".npz": _read_npz,
    ".mat": _read_mat,
    ".parquet": _read_parquet,
    ".json": read_json,
    ".jsonl": read_json,
    ".h5": _read_hdf5,
    ".hdf5": _read_hdf5,
}
