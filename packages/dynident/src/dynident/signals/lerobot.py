"""The folder of a LeRobot data set: the file with the numbers, and the names of the joints in `meta/info.json`."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from dynident.errors import LogError
from dynident.files import read_regular
from dynident.signals.tables import COLUMNS, Table, printable, read_table

LARGEST = 16 << 20  #: bytes of meta/info.json


def is_data_set(path: str | os.PathLike[str]) -> bool:
    """Whether a path is the folder of a LeRobot data set."""
    return (Path(path) / "meta" / "info.json").is_file() and (Path(path) / "data").is_dir()


def read_data_set(path: str | os.PathLike[str]) -> Table:
    """Read the only file of numbers that a data set has; where there are several one of them has to be named."""
    folder = Path(path)
    files = sorted(folder.glob("data/*/*.parquet"))
    if not files:
        raise LogError(f"cannot read '{folder}': it has no file data/*/*.parquet; download its data too")
    if len(files) > 1:
        some = ", ".join(str(f.relative_to(folder)) for f in files[:3])
        raise LogError(f"cannot read '{folder}': it has {len(files)} files of numbers ({some} ...); give one of them")
    return replace(read_table(files[0]), labels=_joints(folder / "meta" / "info.json"))


def _joints(info: Path) -> tuple[str, ...]:
    """Names of the entries of observation.state: "elbow.pos" is the joint elbow. None where it has other words."""
    if info.stat().st_size > LARGEST:
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
