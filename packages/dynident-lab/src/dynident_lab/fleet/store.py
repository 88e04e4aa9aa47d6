"""Cached results: factors of every log by their content, in a folder that one process writes and all processes can read.

``out/index.jsonl`` has one line per log: path, signature, sha256, key, rows, or why it was refused. The regression of a log,
or of a piece of a long one, is ``out/factors/ab/abcd....npz``, named by the hash of all its inputs. ``out/types.json`` has
the choices made once per type: its band and the models that detect logs of other robots. Later logs use the band of earlier
ones.
"""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path
from typing import Any

from dynident import __version__
from dynident.errors import DynidentError
from dynident.files import ContentError, parsed, read_regular, try_lock, write_atomic
from dynident.identify import BaseParameters
from dynident_lab.fleet.storage import fingerprint

FORMAT = 1
LARGEST = 1 << 30  # largest index in bytes: some million logs
_KEY = re.compile(r"[0-9a-f]{64}")


class Store:
    """Folder of factors."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            (folder / "factors").mkdir(parents=True, exist_ok=True)
            self._lock = try_lock(folder / "factors")
        except OSError as error:
            raise DynidentError(f"cannot write to '{folder}': {error.strerror or error}") from error
        if self._lock is None and os.name == "posix":
            raise DynidentError(f"another run writes to '{folder}'; wait for it, or give another folder")
        self.index: dict[str, dict[str, Any]] = {}
        self._file = folder / "index.jsonl"
        try:
            text = read_regular(self._file, LARGEST).decode("utf-8", "replace") if self._file.exists() else ""
            self._stream = self._file.open("a", encoding="utf-8")
        except OSError as error:
            raise DynidentError(f"cannot use '{self._file}': {error.strerror or error}; remove it") from error
        for line in text.splitlines():
            try:
                record = parsed(json.loads, line)
            except ContentError:  # the last line of a killed run
                continue
            if _is_record(record):  # results of damaged records are computed again
                self.index[record["path"]] = record
        if text and not text.endswith("\n"):
            self._stream.write("\n")

    def close(self) -> None:
        """Release the lock of the store."""
        self._stream.close()
        if self._lock is not None:
            os.close(self._lock)

    def known(self, path: str, signature: str, task: str) -> dict[str, Any] | None:
        """Return the record of an unchanged log if its regression data are stored."""
        record = self.index.get(path)
        if record is None or record["signature"] != signature or record["task"] != task:
            return None
        return record if record.get("sentence") or self.has(record["key"]) else None

    def remember(self, record: dict[str, Any]) -> None:
        """Write the record of a log."""
        self.index[record["path"]] = record
        self._stream.write(json.dumps(record) + "\n")
        self._stream.flush()

    def _place(self, key: str) -> Path:
        return self.folder / "factors" / key[:2] / f"{key}.npz"

    def has(self, key: str) -> bool:
        """Return whether regression data are stored."""
        return self._place(key).is_file()

    def put(self, key: str, factors: bytes) -> None:
        """Store regression data; equal keys mean equal data, so writing twice is harmless."""
        write_atomic(self._place(key), factors)

    def get(self, key: str) -> bytes:
        """Return stored regression data."""
        try:
            return read_regular(self._place(key))
        except OSError as error:
            raise DynidentError(f"cannot read the factors '{self._place(key)}': {error.strerror or error}") from error

    def types(self) -> dict[str, Any]:
        """Return the choices made once per type, by type and options."""
        file = self.folder / "types.json"
        try:
            found = parsed(json.loads, read_regular(file, LARGEST)) if file.exists() else {}
        except (OSError, ContentError) as error:
            raise DynidentError(f"'{file}' is damaged ({error}); remove it to choose the bands again") from error
        if not isinstance(found, dict) or not all(_is_choice(chosen) for chosen in found.values()):
            raise DynidentError(f"'{file}' is not a table of bands and models; remove it to choose the bands again")
        return found

    def keep_type(self, name: str, chosen: Any) -> None:
        """Store the choices for a type."""
        write_atomic(self.folder / "types.json", json.dumps({**self.types(), name: chosen}, indent=1))


def _is_record(record: Any) -> bool:
    """Return whether a line of the index was written by `remember`; its key names a file."""
    if not isinstance(record, dict) or not all(
        isinstance(record.get(key), str) for key in ("path", "signature", "task", "key")
    ):
        return False
    if isinstance(record.get("sentence"), str) and record["sentence"]:
        return True
    counts = (record.get("rows"), record.get("samples"))
    return (
        _KEY.fullmatch(record["key"]) is not None
        and isinstance(record.get("sha256"), str)
        and "sentence" not in record
        and all(isinstance(count, int) and count >= 0 for count in counts)
    )


def _is_choice(chosen: Any) -> bool:
    """Return whether an entry of types.json is a band, or reference models and their usual error."""
    if not isinstance(chosen, dict):
        return False
    lists = chosen.get("models", [])
    if not isinstance(lists, list) or not all(isinstance(model, list) and len(model) == len(lists[0]) for model in lists):
        return False
    wanted = {"models", "usual"} if "models" in chosen else {"cutoff", "band"}
    numbers = [*(value for key, value in chosen.items() if key != "models"), *(value for model in lists for value in model)]
    return set(chosen) == wanted and all(
        isinstance(x, float | int) and not isinstance(x, bool) and math.isfinite(x) and (x > 0.0 or "models" in chosen)
        for x in numbers
    )


def task_of(base: BaseParameters, reading: Any, options: Any) -> str:
    """Return the hash of all inputs of regression data besides the log: robot, reading, preparation, program."""
    robot = (base.mechanism.parameters.names, base.columns.tolist(), [f"{x:.6g}" for x in base.fingerprint()])
    texts = (json.dumps(x, sort_keys=True, default=str) for x in (reading, options))
    return fingerprint(FORMAT, __version__, robot, *texts)
