"""Writing logs: CSV for people, npz for speed, Parquet for tables; all carry the metadata and come back exactly."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynident.errors import LogError, missing_extra
from dynident.files import write_atomic
from dynident.signals.log import FIELDS, Log

Array = NDArray[np.float64]

MARK = "dynident-log"
VERSION = 1
KEY = "dynident_log"  # of the metadata in npz and Parquet files


def _plain(value: object) -> object:
    """Turn arrays and numpy scalars into JSON values; anything else that JSON cannot say becomes its text."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def metadata(log: Log) -> str:
    """Everything of the log except the samples, as one line of JSON (floats by repr, hence exact)."""
    content = {
        "format": MARK,
        "version": VERSION,
        "name": log.name,
        "effort_kind": log.effort_kind,
        "joints": list(log.joints),
        "gain": None if log.gain is None else log.gain.tolist(),
        "position_side": log.position_side,
        "fields": [name for name in FIELDS if getattr(log, name) is not None],
        "units": "SI: s, rad or m, rad/s or m/s, rad/s2 or m/s2, degC; effort Nm, N, A or V after its kind",
        "provenance": _plain(log.provenance),
        "truth": _plain(log.truth),
    }
    return json.dumps(content, ensure_ascii=True)


def _table(log: Log) -> tuple[list[str], Array]:
    """Return the columns' names and the samples, one column per field and joint."""
    fields = [name for name in FIELDS if getattr(log, name) is not None]
    header = ["t"] + [f"{FIELDS[name]}_{joint}" for name in fields for joint in log.joints]
    return header, np.column_stack([log.t, *(getattr(log, name) for name in fields)])


def write_csv(log: Log, path: str | os.PathLike[str]) -> Path:
    """Write `log` as CSV: one comment line of metadata, a header, then repr-exact numbers."""
    for joint in log.joints:
        if any(c in joint for c in ',"\n\r'):
            raise LogError(f"joint name {joint!r} has a comma, quote or line break; rename it or write npz")
    header, block = _table(log)
    lines = [f"# {metadata(log)}", ",".join(header)]
    lines += [",".join(map(repr, row)) for row in block.tolist()]
    data = ("\n".join(lines) + "\n").encode("utf-8")
    # mtime=0: the same log gives the same bytes.
    return write_atomic(path, gzip.compress(data, mtime=0) if str(path).endswith(".gz") else data)


def write_npz(log: Log, path: str | os.PathLike[str]) -> Path:
    """Write `log` as compressed npz: one array per field, metadata as a text array (no pickle)."""
    if not str(path).endswith(".npz"):
        raise LogError(f"cannot write '{path}' as npz; the name must end in .npz")
    arrays = {name: values for name in FIELDS if (values := getattr(log, name)) is not None}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, t=log.t, **arrays, **{KEY: np.array(metadata(log))})
    return write_atomic(path, buffer.getvalue())


def write_parquet(log: Log, path: str | os.PathLike[str]) -> Path:
    """Write `log` as Parquet: one column per field and joint as in CSV, metadata in the file's schema."""
    try:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise missing_extra("pyarrow", "parquet", "writing Parquet files") from error
    if not str(path).endswith(".parquet"):
        raise LogError(f"cannot write '{path}' as Parquet; the name must end in .parquet")
    header, block = _table(log)
    table = pa.table(dict(zip(header, block.T, strict=True))).replace_schema_metadata({KEY: metadata(log)})
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return write_atomic(path, buffer.getvalue())
