"""Files and tables in memory to named numeric columns; what they mean is decided in schema.py.

Every reader is bounded: what a file may become in memory is ``max(200 MB, 20 times its size)``, it may have 10 000 columns
and 16 levels, and it is refused with a sentence before that memory is taken.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynident.errors import LogError, MissingExtraError, missing_extra
from dynident.files import read_regular
from dynident.signals.matlab import read_matlab
from dynident.signals.text import COLUMNS, Content, own_metadata, printable, read_text

#: Bytes that any file may become in memory, how many times its own size, and the size up to which a file is read at once.
ROOM, GROWTH, LARGEST = 200 << 20, 20, 2 << 30
DEPTH = 16
#: Arrays of names, as npz, MATLAB and HDF5 files hold them.
_LABELS = ("name", "names", "joint_names", "joints", "jointnames", "joint_name")


@dataclass(frozen=True)
class Table:
    """Named columns of one file.

    Parameters
    ----------
    label : str
        The file's name, for messages.
    columns : mapping of str to ndarray, shape (N,) or (N, k)
        Numeric content, one entry per column (CSV, Parquet) or array (npz, mat, HDF5); float64, or int64 for long stamps.
    scalars : mapping of str to float
        Single numbers found beside the columns (gains, rates).
    metadata : mapping or None
        Metadata of a file that dynident wrote.
    sha256 : str
        Hash of the file's bytes.
    units : mapping of str to str
        Units the file states beside the names of its columns.
    labels : tuple of str
        Joint names the file states for the columns of its arrays.
    notes : tuple of str
        What was understood in reading.
    """

    label: str
    columns: Mapping[str, Any]
    scalars: Mapping[str, float] = field(default_factory=dict)
    metadata: Mapping[str, Any] | None = None
    sha256: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_table(path: str | os.PathLike[str], topics: list[str] | None = None) -> Table:
    """Read one file or bag into a `Table`, choosing the reader by the file name's ending."""
    file = Path(path)
    suffix = _suffix(file)
    if is_bag(file):
        from dynident.signals.bags import read_bag  # noqa: PLC0415  (its libraries are an extra)

        bag: Table = guarded(file, suffix or "a bag", lambda: read_bag(file, topics))
        return bag
    if not suffix and not file.exists():
        raise LogError(f"cannot read '{file}': it does not exist; give a file, a bag or the folder of a campaign")
    if suffix not in READERS:
        raise LogError(f"cannot read '{file}': ending '{suffix}' is not one of {', '.join(READERS)}, .mcap, .db3, .bag")
    try:
        if file.is_file() and (size := file.stat().st_size) > LARGEST:
            raise LogError(f"cannot read '{file}': it has {size >> 20} MB; at most {LARGEST >> 20} MB are read, split the file")
        data = read_regular(file)
    except OSError as error:
        raise LogError(f"cannot read '{file}': {error.strerror or error}") from error
    if not data:
        raise LogError(f"cannot read '{file}': the file is empty")
    room = max(ROOM, GROWTH * len(data))
    content: Content = guarded(file, suffix, lambda: READERS[suffix](data, room))
    return replace(_table(file.name, content, topics), sha256=hashlib.sha256(data).hexdigest())


def is_bag(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a ROS bag or MCAP file, by its ending."""
    return Path(path).is_dir() or _suffix(Path(path)) in (".mcap", ".db3", ".bag")


def guarded(file: Path, suffix: str, read: Callable[[], Any]) -> Any:
    """Read; turn whatever a damaged file makes a reader raise into a sentence."""
    try:
        return read()
    except MissingExtraError:
        raise
    except LogError as error:
        raise LogError(printable(f"cannot read '{file}': {error}", 2000)) from error
    except Exception as error:  # readers of damaged files raise almost anything: struct, zlib, Index, Key, Memory ...
        raise LogError(
            printable(f"cannot read '{file}': the file is damaged or not {suffix} ({_short(error)})", 2000)
        ) from error


def read_frame(frame: object) -> Table:
    """Take a table in memory: pandas, polars or Arrow, a structured array, or a mapping of names to arrays."""
    columns: dict[str, Any] = {}
    named: Any = frame
    if isinstance(frame, np.ndarray) and frame.dtype.names:
        columns = {name: frame[name] for name in frame.dtype.names}
    elif isinstance(frame, Mapping):
        columns = {str(name): values for name, values in frame.items()}
    elif hasattr(frame, "schema") and hasattr(frame, "column_names") and hasattr(frame, "to_pydict"):
        return _table("the table", _from_arrow(named))
    elif hasattr(frame, "columns") and hasattr(frame, "__getitem__"):
        index = getattr(frame, "index", None)
        if index is not None and (getattr(index, "name", None) or getattr(index.dtype, "kind", "") == "M"):
            columns[str(index.name or "time")] = index.to_numpy()
        columns |= {str(name): named[name].to_numpy() for name in named.columns}
    else:
        raise LogError(f"a log cannot be read from a {type(frame).__name__}; give a file, a DataFrame, or a mapping of arrays")
    for name, values in columns.items():
        array = np.asarray(values) if not isinstance(values, list) else _array_of(name, values)
        if array.dtype == object:
            array = _array_of(name, array.tolist())
        columns[name] = array
    return _table("the table", Content(columns))


def _array_of(name: str, values: list[Any]) -> Any:
    """A list of numbers, texts or equally long lists as an array; texts stay objects and are left out later."""
    try:
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    except (TypeError, ValueError):
        if any(isinstance(v, list | tuple | np.ndarray) for v in values):
            raise LogError(f"column '{name}' has lists of unequal length or without numbers; give one list length") from None
        if any(isinstance(v, int | float) and v is not None for v in values):
            raise LogError(f"column '{name}' mixes numbers with other things; numbers are needed") from None
        return np.array([str(v) for v in values])


def _table(label: str, content: Content, topics: list[str] | None = None) -> Table:
    """Keep the numbers; a topic keeps the columns of its path only (PlotJuggler names columns by topic)."""
    columns: dict[str, Any] = {}
    scalars: dict[str, float] = {}
    units, labels = dict(content.units), content.labels
    if len(content.columns) > COLUMNS:
        raise LogError(f"'{label}' has {len(content.columns)} columns; at most {COLUMNS} are read")
    for given, raw in content.columns.items():
        name, values = printable(given), np.asarray(raw)
        if given in units and name != given:
            units[name] = units[given]
        if values.dtype.kind in "Mm":  # datetime64, timedelta64
            values = values.astype(f"{'datetime' if values.dtype.kind == 'M' else 'timedelta'}64[ns]").astype(np.int64)
            units[name] = "ns"
        if values.dtype.kind in "US" and values.size > 1 and name.rpartition(".")[2].lower() in _LABELS:
            labels = labels or tuple(printable(str(v).strip()) for v in values.ravel()[:COLUMNS])
        if values.dtype.kind not in "biuf":
            continue
        if not (values.dtype.kind in "iu" and values.ndim == 1 and values.size and _beyond_float(values)):
            values = values.astype(np.float64)
        if values.ndim == 2 and 1 in values.shape and values.size > 1:
            values = values.ravel()
        if values.size == 1:
            scalars[name] = float(values.ravel()[0])
        elif values.ndim in (1, 2) and values.size > 1:
            columns[name] = values
    if topics is not None:
        paths = tuple(topic.rstrip("/") + "/" for topic in topics)
        kept = {n: v for n, v in columns.items() if n.startswith(paths) or not n.startswith("/")}
        if not any(n.startswith(paths) for n in kept):
            raise LogError(f"'{label}' has no columns of the topic {', '.join(topics)}; it has {', '.join(list(columns)[:12])}")
        columns = kept
    notes = tuple(printable(note, 1000) for note in content.notes)
    return Table(label, columns, scalars, content.metadata, "", units, tuple(map(printable, labels)), notes)


def _beyond_float(values: Any) -> bool:
    """Whether whole numbers are too large for a float to hold exactly."""
    return bool(max(abs(int(values.min())), abs(int(values.max()))) > 2**53)


def _short(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:160]}" if text else type(error).__name__


def _suffix(file: Path) -> str:
    parts = [s.lower() for s in file.suffixes]
    return "".join(parts[-2:]) if parts and parts[-1] == ".gz" else (parts[-1] if parts else "")


def check_room(needed: float, room: int, what: str) -> None:
    """Refuse what would need more memory than the file is allowed to become."""
    if not 0 <= needed <= room:
        raise LogError(f"{what} would take {needed / 2**20:.3g} MB in memory; a file of this size may take {room >> 20} MB")


# ---------------------------------------------------------------------- formats
def _gunzip(data: bytes, room: int) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            text = stream.read(room + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise LogError(f"the gzip stream is damaged or cut short ({_short(error)}); copy the file again") from error
    check_room(len(text), room, "the text when unpacked")
    return text


def _read_npz(data: bytes, room: int) -> Content:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            check_room(sum(entry.file_size for entry in archive.infolist()), room, "the archive when unpacked")
    except zipfile.BadZipFile as error:
        if data[:6] == b"\x93NUMPY":
            raise LogError("it is a single array, not an npz archive; save it with np.savez(t=..., positions=...)") from error
        raise LogError(f"the npz archive is damaged or cut short ({_short(error)}); copy the file again") from error
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
        raise LogError(f"the npz archive is damaged or cut short ({_short(error)}); copy the file again") from error
    text = arrays.pop("dynident_log", None)
    return Content(arrays, own_metadata(str(text)) if text is not None else None)


def _read_mat(data: bytes, room: int) -> Content:
    if data[:128].startswith(b"MATLAB 7.3") or data[:8] == b"\x89HDF\r\n\x1a\n":
        return _read_hdf5(data, room, transpose=True)  # 7.3 files are HDF5, column-major
    arrays: dict[str, Any] = {}

    def walk(prefix: str, value: object) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(f"{prefix}.{key}" if prefix else str(key), inner)
        elif not isinstance(value, list):
            arrays[prefix] = value
        elif value and all(isinstance(v, str) for v in value):
            arrays[prefix] = np.array(value)

    walk("", read_matlab(data, room))
    text = arrays.pop("dynident_log", None)
    return Content(arrays, own_metadata(str(text)) if text is not None else None)


def _read_hdf5(data: bytes, room: int, transpose: bool = False) -> Content:
    try:
        import h5py  # noqa: PLC0415
    except ImportError as error:
        raise missing_extra("h5py", "hdf5", "reading HDF5 and MATLAB 7.3 files") from error
    arrays: dict[str, Any] = {}
    needed = 0
    with h5py.File(io.BytesIO(data), "r") as file:
        for _, _ in _hdf5_items(file, h5py, follow=False):  # all links, before one of them is followed
            pass
        for place, item in _hdf5_items(file, h5py, follow=True):
            if item.dtype.kind in "biuf":
                needed += math.prod(item.shape or (1,)) * 8
                check_room(needed, room, f"dataset '{place[:60]}', with those before it,")
                values = item[()]
                arrays[place] = values.T if transpose else values
    return Content(dict(sorted(arrays.items())))


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
    try:
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise missing_extra("pyarrow", "parquet", "reading Parquet files") from error
    file = pq.ParquetFile(io.BytesIO(data))
    if file.metadata.num_columns > COLUMNS:
        raise LogError(f"it has {file.metadata.num_columns} columns; at most {COLUMNS} are read")
    groups = [file.metadata.row_group(g) for g in range(file.metadata.num_row_groups)]
    values = sum(g.column(c).num_values for g in groups for c in range(g.num_columns))
    packed = sum(g.column(c).total_uncompressed_size for g in groups for c in range(g.num_columns))
    check_room(max(8 * values, packed), room, "the table when unpacked")
    schema = file.metadata.schema
    texts = [schema.column(c).path for c in range(len(schema)) if schema.column(c).physical_type == "BYTE_ARRAY"]
    if texts:  # a text that is stored once for all rows stays once in memory
        file = pq.ParquetFile(io.BytesIO(data), read_dictionary=texts)
    return _from_arrow(file.read())


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
        else:
            left.append(f"{name} ({kind})")
    if left:
        content.notes.append(f"columns without numbers left out: {', '.join(left[:8])}{' ...' if len(left) > 8 else ''}")
    text = (table.schema.metadata or {}).get(b"dynident_log")
    content.metadata = None if text is None else own_metadata(text.decode())
    return content


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
        if name.rpartition(".")[2].lower() in _LABELS and rows and lengths[0]:
            table = np.concatenate(rows).reshape(-1, lengths[0])
            content.labels = tuple(column[0].as_py()) if (table == table[:1]).all() else content.labels
        return
    if lengths and lengths[0]:
        content.columns[name] = inner.cast(pa.float64()).to_numpy(zero_copy_only=False).reshape(-1, lengths[0])


def _packed_text(data: bytes, room: int) -> Content:
    return read_text(_gunzip(data, room), room)


READERS: dict[str, Callable[[bytes, int], Content]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), read_text),
    **dict.fromkeys((".csv.gz", ".tsv.gz", ".txt.gz"), _packed_text),
    ".npz": _read_npz,
    ".mat": _read_mat,
    ".parquet": _read_parquet,
    ".h5": _read_hdf5,
    ".hdf5": _read_hdf5,
}
