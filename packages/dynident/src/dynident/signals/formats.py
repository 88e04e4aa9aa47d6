"""Contents of files to columns: gzip, npz, MATLAB, HDF5, Parquet, LeRobot's information; and tables in memory."""

from __future__ import annotations

import gzip
import io
import json
import math
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from dynident.errors import LogError, missing_extra
from dynident.files import read_regular
from dynident.signals.matlab import Unread, first_notes, read_matlab
from dynident.signals.tables import (
    COLUMNS,
    Content,
    Table,
    check_room,
    decoding,
    own_metadata,
    printable,
    short,
    table_of,
)
from dynident.signals.text import read_json, read_text

DEPTH = 16
#: Endings of files with text.
TEXT = (".csv", ".tsv", ".txt", ".dat", ".log", ".lvm", ".yaml", ".yml")
HDF5 = b"\x89HDF\r\n\x1a\n"  #: first bytes of such files


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
        return table_of("the table", arrow().table_columns(named))
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
    """A list of numbers, texts or equally long lists as an array; texts are dropped later."""
    if not isinstance(values, Iterable):
        raise LogError(f"column '{name}' is a {type(values).__name__}; give a list or an array of numbers")
    try:
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    except (TypeError, ValueError):
        if any(isinstance(v, list | tuple | np.ndarray) for v in values):
            raise LogError(f"column '{name}' has lists of unequal length or without numbers; give one list length") from None
        if any(isinstance(v, int | float) and v is not None for v in values):
            raise LogError(f"column '{name}' mixes numbers with other values; give numbers only") from None
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
    if data[:6] == b"\x93NUMPY":
        raise LogError("it is a single array, not an npz archive; save it with np.savez(t=..., positions=...)")
    with decoding(".npz"), zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    check_room(size, room, "the archive when unpacked")
    arrays: dict[str, Any] = {}
    with decoding(".npz"):
        loaded = np.load(io.BytesIO(data), allow_pickle=False)
        for name in loaded.files:
            try:
                arrays[name] = loaded[name]
            except ValueError as error:
                if "pickle" not in str(error).lower():
                    raise
                raise LogError(
                    f"array '{name}' is a pickled object, which is never loaded; save plain numeric arrays"
                ) from error
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
    with decoding("HDF5"):
        file = h5py.File(io.BytesIO(data), "r")
    with file:
        for _, _ in _hdf5_items(file, h5py, follow=False):  # all links, before one of them is followed
            pass
        for place, item in _hdf5_items(file, h5py, follow=True):
            with decoding("HDF5"):
                # A chunk is unpacked as a whole, even for a few numbers.
                kind, cells = item.dtype.kind, max(math.prod(item.shape or ()), math.prod(item.chunks or ()))
            unread = _unread(item, h5py) if transpose else None
            if unread is not None:
                notes[unread.note((place if unread.count == 1 else place.rpartition("/")[0]).replace("/", "."))] = None
            elif kind in "biuf":
                needed += cells * 8
                check_room(needed, room, f"dataset '{place[:60]}', with those before it,")
                with decoding("HDF5"):
                    values = item[()]
                arrays[place] = values.T if transpose else values
    return Content(dict(sorted(arrays.items())), notes=first_notes(notes))


def _unread(item: Any, h5py: Any) -> Unread | None:
    """Description of a MATLAB dataset that is not an array: object, text or field of a structure array; else None."""
    with decoding("HDF5"):
        given, size = item.attrs.get("MATLAB_class", b""), item.size or 0
        empty, opaque = ("MATLAB_" + what in item.attrs for what in ("empty", "object_decode"))
        refers = h5py.check_ref_dtype(item.dtype)
    class_ = given.decode("latin-1") if isinstance(given, bytes) else ""
    if class_ == "char" or empty:
        return Unread("string")
    if opaque:
        return Unread(class_)
    if not class_ and size > 1 and refers:
        return Unread("struct", size)
    return None


def _hdf5_items(file: Any, h5py: Any, follow: bool) -> Iterator[tuple[str, Any]]:
    """Datasets of an HDF5 file with their paths; external links, deep nesting and too many items raise LogError."""
    pending, count = [("", file, 0)], 0
    while pending:
        prefix, group, depth = pending.pop()
        with decoding("HDF5"):
            links = [(name, group.get(name, getlink=True)) for name in islice(group, COLUMNS + 1)]
        for name, link in links:
            place = f"{prefix}{name}"
            count += 1
            if count > COLUMNS:
                raise LogError(f"it has more than {COLUMNS} groups and datasets")
            if isinstance(link, h5py.ExternalLink):
                raise _outside(place)
            with decoding("HDF5"):
                item = group.get(name) if follow or isinstance(link, h5py.HardLink) else None
                outside = isinstance(item, h5py.Dataset) and (item.external or item.is_virtual)
            if isinstance(item, h5py.Group) and not name.startswith("#"):
                if depth >= DEPTH:
                    raise LogError(f"group '{place[:60]}' is more than {DEPTH} levels deep")
                pending.append((place + "/", item, depth + 1))
            elif isinstance(item, h5py.Dataset):
                if outside:  # a virtual dataset that refers to itself crashes the process
                    raise _outside(place)
                yield place, item


def _outside(place: str) -> LogError:
    return LogError(f"'{place[:60]}' has its data in another file or dataset, which is not read; copy them into this file")


def _read_parquet(data: bytes, room: int) -> Content:
    file = open_parquet(data, room, pre_buffer=False)  # the bytes are in memory already
    content: Content = arrow().table_columns(arrow().whole_table(file))
    return content


def open_parquet(source: Any, room: int, **options: Any) -> Any:
    """Open a Parquet file after checking that its unpacked content fits into `room` bytes."""
    return arrow().open_parquet(source, room, **options)


def arrow() -> ModuleType:
    """Return the module that reads Parquet files and Arrow tables, whose library is an extra."""
    try:
        from dynident.signals import arrow as module  # noqa: PLC0415 - pyarrow is an extra
    except ImportError as error:
        raise missing_extra("pyarrow", "parquet", "reading Parquet files") from error
    return module


READERS: dict[str, Callable[[bytes, int], Content]] = {
    **dict.fromkeys(TEXT, read_text),
    **dict.fromkeys((f"{ending}.gz" for ending in TEXT), lambda data, room: read_text(_gunzip(data, room), room)),
    ".npz": _read_npz,
    ".mat": _read_mat,
    ".parquet": _read_parquet,
    ".h5": _read_hdf5,
    ".hdf5": _read_hdf5,
    ".json": read_json,
    ".jsonl": read_json,
}


LARGEST_INFO = 16 << 20  #: bytes of meta/info.json


def joints_of(info: Path) -> tuple[str, ...]:
    """Names of the entries of observation.state: "elbow.pos" is the joint elbow. None where it has other words."""
    if info.stat().st_size > LARGEST_INFO:
        return ()
    try:
        content: Any = json.loads(read_regular(info))
        names = content["features"]["observation.state"]["names"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ()
    names = next(iter(names.values()), None) if isinstance(names, dict) else names
    if not isinstance(names, list) or not names or not all(isinstance(n, str) and n for n in names[:COLUMNS]):
        return ()
    return tuple(printable(n.removesuffix(".pos")) for n in names[:COLUMNS])
