"""What was computed once: factors of every log by their content, in a folder that one process writes and everyone can read.

``out/index.jsonl`` has one line per log: path, signature, sha256, key, rows, or why it cannot be used. The regression of a log,
or of a piece of a long one, is ``out/factors/ab/abcd....npz``, named by the hash of all it depends on. ``out/types.json`` has
what is chosen once for every type, its band and the models that tell a log of another robot: tomorrow's logs are put into
yesterday's band.
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
LARGEST = 1 << 30  # bytes of an index: some million logs
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
            except ContentError:  # the last line of a run that was killed
                continue
            if _is_record(record):  # damaged records are computed again
                self.index[record["path"]] = record
        if text and not text.endswith("\n"):
            self._stream.write("\n")

    def close(self) -> None:
        """Let others write."""
        self._stream.close()
        if self._lock is not None:
            os.close(self._lock)

    def known(self, path: str, signature: str, task: str) -> dict[str, Any] | None:
        """Return what is known of a log that has not changed and whose regression data are here."""
        record = self.index.get(path)
        if record is None or record["signature"] != signature or record["task"] != task:
            return None
        return record if record.get("sentence") or self.has(record["key"]) else None

    def remember(self, record: dict[str, Any]) -> None:
        """Write down what is known of a log."""
        self.index[record["path"]] = record
        self._stream.write(json.dumps(record) + "\n")
        self._stream.flush()

    def _place(self, key: str) -> Path:
        return self.folder / "factors" / key[:2] / f"{key}.npz"

    def has(self, key: str) -> bool:
        """Return whether regression data are stored."""
        return self._place(key).is_file()

    def put(self, key: str, factors: bytes) -> None:
        """Store regression data; the same key means the same data, so writing them twice counts once."""
        write_atomic(self._place(key), factors)

    def get(self, key: str) -> bytes:
        """Return stored regression data."""
        try:
            return read_regular(self._place(key))
        except OSError as error:
            raise DynidentError(f"cannot read the factors '{self._place(key)}': {error.strerror or error}") from error

    def types(self) -> dict[str, Any]:
        """Return what was chosen once for every type, by type and options."""
        file = self.folder / "types.json"
        try:
            found = parsed(json.loads, read_regular(file, LARGEST)) if file.exists() else {}
        except (OSError, ContentError) as error:
            raise DynidentError(f"'{file}' is damaged ({error}); remove it to choose the bands again") from error
        if not isinstance(found, dict) or not all(_is_choice(chosen) for chosen in found.values()):
            raise DynidentError(f"'{file}' is not a table of bands and models; remove it to choose the bands again")
        return found

    def keep_type(self, name: str, chosen: Any) -> None:
        """Store what was chosen for a type."""
        write_atomic(self.folder / "types.json", json.dumps({**self.types(), name: chosen}, indent=1))


def _is_record(record: Any) -> bool:
    """Return whether a line of the index is one that `remember` wrote; its key names a file."""
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
    """Return the hash of everything that regression data depend on besides the log: robot, reading, preparation, program."""
    robot = (base.mechanism.parameters.names, base.columns.tolist(), [f"{x:.6g}" for x in base.fingerprint()])
    texts = (json.dumps(x, sort_keys=True, default=str) for x in (reading, options))
    return fingerprint(FORMAT, __version__, robot, *texts)
