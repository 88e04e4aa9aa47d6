"""Files to tables: every format becomes named numeric columns; what they mean is decided in schema.py."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.errors import LogError, MissingExtraError, missing_extra
from dynident.files import read_regular

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """Named columns of one file.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    columns : mapping of str to ndarray, shape (N,) or (N, k)
        Numeric content, one entry per column (CSV, Parquet) or array (npz, mat, HDF5).
    scalars : mapping of str to float
        Single numbers found beside the columns (gains, rates).
    metadata : mapping or None
        Metadata of a file written by `Log.to_csv` or `Log.to_npz`.
    sha256 : str
        Digest of the file's bytes.
    """

    path: Path
    columns: Mapping[str, Array]
    scalars: Mapping[str, float] = field(default_factory=dict)
    metadata: Mapping[str, Any] | None = None
    sha256: str = ""


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read one file into a `Table`, choosing the reader by the file name's ending."""
    file = Path(path)
    suffix = _suffix(file)
    if suffix not in READERS:
        raise LogError(f"cannot read '{file}': ending '{suffix}' is not one of {', '.join(READERS)}")
    try:
        data = read_regular(file)
    except OSError as error:
        raise LogError(f"cannot read '{file}': {error.strerror or error}") from error
    if not data:
        raise LogError(f"cannot read '{file}': the file is empty")
    try:
        arrays, metadata = READERS[suffix](data)
    except (LogError, MissingExtraError) as error:
        if isinstance(error, MissingExtraError):
            raise
        raise LogError(f"cannot read '{file}': {error}") from error
    except Exception as error:  # readers of damaged files raise almost anything: struct, zlib, Index, Key, Memory ...
        raise LogError(f"cannot read '{file}': the file is damaged or not {suffix} ({_short(error)})") from error
    columns, scalars = _numeric(arrays)
    return Table(file, columns, scalars, metadata, hashlib.sha256(data).hexdigest())


def _short(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:160]}" if text else type(error).__name__


def _suffix(file: Path) -> str:
    parts = [s.lower() for s in file.suffixes]
    return "".join(parts[-2:]) if parts and parts[-1] == ".gz" else (parts[-1] if parts else "")


def _numeric(arrays: Mapping[str, object]) -> tuple[dict[str, Array], dict[str, float]]:
    """Split into (N,) or (N, k) columns and single numbers; text and higher ranks are left out."""
    columns: dict[str, Array] = {}
    scalars: dict[str, float] = {}
    for name, raw in arrays.items():
        values = np.asarray(raw)
        if values.dtype.kind == "M":
            values = values.astype("datetime64[ns]").astype(np.int64).astype(np.float64) * 1e-9
        if values.dtype.kind not in "biuf":
            continue
        values = values.astype(np.float64)
        if values.ndim == 2 and 1 in values.shape and values.size > 1:
            values = values.ravel()
        if values.size == 1:
            scalars[name] = float(values.ravel()[0])
        elif values.ndim in (1, 2) and values.size > 1:
            columns[name] = values
    return columns, scalars


# ---------------------------------------------------------------------- text
def _gunzip(data: bytes) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise LogError(f"the gzip stream is damaged or cut short ({_short(error)}); copy the file again") from error


def _read_text(data: bytes) -> tuple[dict[str, object], Mapping[str, Any] | None]:
    """Read delimited text: comma, semicolon, tab or spaces; with or without a header line; '#' comments."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LogError(f"byte {error.start} is not UTF-8 text; is it really a CSV file?") from error
    lines = [line for line in text.splitlines() if line.strip()]
    metadata = _text_metadata(lines[0]) if lines else None
    lines = [line for line in lines if not line.lstrip().startswith("#")]
    if not lines:
        raise LogError("there are no rows in it")
    delimiter = next((d for d in ("\t", ";", ",") if d in lines[0]), None)
    header = [c.strip().strip('"').strip() for c in lines[0].split(delimiter)]
    if all(_is_number(c) for c in header):
        names = [str(k + 1) for k in range(len(header))]
    else:
        names, lines = header, lines[1:]
    if not lines:
        raise LogError(f"it has a header ({', '.join(names[:6])} ...) but no rows")
    repeated = sorted({n for n in names if names.count(n) > 1})
    if repeated:
        raise LogError(f"column names {repeated} are repeated; every column needs its own name")
    if delimiter == ";" and "," in lines[0]:
        lines = [line.replace(",", ".") for line in lines]  # decimal comma of European spreadsheets
    try:
        block = np.loadtxt(lines, delimiter=delimiter, ndmin=2, comments=None)
        if block.shape[1] != len(names):
            raise ValueError
    except ValueError:
        block = _slow_rows(lines, delimiter, names)
    return {name: block[:, k] for k, name in enumerate(names)}, metadata


def _text_metadata(line: str) -> Mapping[str, Any] | None:
    if '"format": "dynident-log"' not in line:
        return None
    try:
        content = json.loads(line.lstrip("# "))
    except json.JSONDecodeError as error:
        raise LogError(f"the metadata line is damaged ({error.msg}); write the log again") from error
    return content if isinstance(content, dict) else None


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def _slow_rows(lines: list[str], delimiter: str | None, names: list[str]) -> Array:
    """Parse row by row to accept empty cells (NaN), true/false and text columns, and to name the bad row."""
    block = np.full((len(lines), len(names)), np.nan)
    for i, line in enumerate(lines):
        cells = [c.strip().strip('"') for c in line.split(delimiter)]
        if len(cells) == len(names) + 1 and not cells[-1]:
            cells.pop()  # a trailing delimiter
        if len(cells) != len(names):
            raise LogError(f"data row {i + 1} has {len(cells)} cells but there are {len(names)} columns; is it cut short?")
        for k, cell in enumerate(cells):
            if cell and cell.lower() not in ("nan", "na", "null", "none", "-"):
                try:
                    block[i, k] = float(cell)
                except ValueError as error:
                    if cell.lower() in ("true", "false"):
                        block[i, k] = cell.lower() == "true"
                        continue
                    raise LogError(
                        f"data row {i + 1}, column '{names[k]}' is {cell[:40]!r}; numbers are needed (empty means missing)"
                    ) from error
    return block


# ---------------------------------------------------------------------- binary
def _read_npz(data: bytes) -> tuple[dict[str, object], Mapping[str, Any] | None]:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise LogError("it is a single array, not an npz archive; save it with np.savez(t=..., positions=...)")
            arrays: dict[str, object] = {}
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
    metadata = _text_metadata(str(text)) if text is not None else None
    return arrays, metadata


def _read_mat(data: bytes) -> tuple[dict[str, object], Mapping[str, Any] | None]:
    if data[:128].startswith(b"MATLAB 7.3") or data[:8] == b"\x89HDF\r\n\x1a\n":
        return _read_hdf5(data, transpose=True)  # 7.3 files are HDF5, column-major
    from scipy.io import loadmat  # noqa: PLC0415

    content = loadmat(io.BytesIO(data), simplify_cells=True)
    arrays: dict[str, object] = {}

    def walk(prefix: str, value: object) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(f"{prefix}.{key}" if prefix else str(key), inner)
        else:
            arrays[prefix] = value

    walk("", {k: v for k, v in content.items() if not k.startswith("__")})
    return arrays, None


def _read_hdf5(data: bytes, transpose: bool = False) -> tuple[dict[str, object], Mapping[str, Any] | None]:
    try:
        import h5py  # noqa: PLC0415
    except ImportError as error:
        raise missing_extra("h5py", "hdf5", "reading HDF5 and MATLAB 7.3 files") from error
    arrays: dict[str, object] = {}
    with h5py.File(io.BytesIO(data), "r") as file:

        def outside(item: Any) -> bool:
            if isinstance(item, h5py.Dataset):
                return bool(item.external) or (item.is_virtual and any(s.file_name != "." for s in item.virtual_sources()))
            return isinstance(item, h5py.ExternalLink)

        for search in (file.visititems_links, file.visititems):
            name = search(lambda name, item: name if outside(item) else None)
            if name is not None:
                raise LogError(f"'{name}' has its data in another file, which is never read; copy them into this one")

        def visit(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset) and item.dtype.kind in "biuf" and not name.startswith("#"):
                values = item[()]
                arrays[name] = values.T if transpose else values

        file.visititems(visit)
    return arrays, None


def _read_parquet(data: bytes) -> tuple[dict[str, object], Mapping[str, Any] | None]:
    try:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise missing_extra("pyarrow", "parquet", "reading Parquet files") from error
    table = pq.read_table(io.BytesIO(data))
    arrays: dict[str, object] = {}
    for name in table.column_names:
        column = table.column(name)
        kind = column.type
        is_list = pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind)
        inner = kind.value_type if is_list else kind
        binary = pa.types.is_binary(inner) or pa.types.is_large_binary(inner) or pa.types.is_fixed_size_binary(inner)
        if binary or pa.types.is_nested(inner) or isinstance(inner, pa.BaseExtensionType):
            raise LogError(f"column '{name}' holds objects ({kind}), which are never loaded; save plain numeric columns")
        if is_list:
            arrays[name] = np.array(column.to_pylist(), dtype=np.float64)
        elif pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
            arrays[name] = column.cast(pa.float64()).to_numpy()
        elif pa.types.is_timestamp(kind):
            arrays[name] = column.cast(pa.timestamp("ns")).cast(pa.int64()).to_numpy() * 1e-9
    text = (table.schema.metadata or {}).get(b"dynident_log")
    return arrays, None if text is None else _text_metadata(text.decode())


_Reader = Callable[[bytes], tuple[dict[str, object], Mapping[str, Any] | None]]

READERS: dict[str, _Reader] = {
    ".csv": _read_text,
    ".tsv": _read_text,
    ".txt": _read_text,
    ".csv.gz": lambda data: _read_text(_gunzip(data)),
    ".tsv.gz": lambda data: _read_text(_gunzip(data)),
    ".txt.gz": lambda data: _read_text(_gunzip(data)),
    ".npz": _read_npz,
    ".mat": _read_mat,
    ".parquet": _read_parquet,
    ".h5": _read_hdf5,
    ".hdf5": _read_hdf5,
}
