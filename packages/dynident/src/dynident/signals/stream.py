"""Long recordings as logs one after the other, with only one piece in memory."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from dynident.errors import LogError
from dynident.signals.channels import rules_of
from dynident.signals.formats import arrow
from dynident.signals.log import MINIMUM_SAMPLES, Log
from dynident.signals.reading import bags, has_pieces, is_bag, log_of, naming, read_log, topics_of
from dynident.signals.tables import Table, table_of

FEWEST = 100
TYPICAL = 20  # numbers per sample for six joints
LONG = 256 << 20  # bytes of a recording in memory from which on the command identify reads it piece by piece


def is_long(path: Path) -> bool:
    """Whether a file is long enough to be read piece by piece, and of a format that allows it."""
    return has_pieces(path) and _size(path) > LONG


def _size(path: Path) -> int:
    """Return the bytes of a recording in memory, approximately."""
    with naming(path):
        return arrow().unpacked_size(path) if path.suffix.lower() == ".parquet" else path.stat().st_size


@dataclass(frozen=True)
class LogStream:
    """A recording as pieces with one clock; iterating reads it again. Made by `Log.stream`."""

    path: str | os.PathLike[str]  #: Bag, MCAP or Parquet file; any other file of `Log.read` is read at once and cut
    samples: int  #: Samples of a piece
    schema: str | os.PathLike[str] | Mapping[str, object] | None  #: See `Log.read`
    options: Mapping[str, object]  #: Other arguments of `Log.read` by the names of a schema

    def __post_init__(self) -> None:
        if isinstance(self.samples, bool) or not isinstance(self.samples, int) or self.samples < FEWEST:
            raise LogError(f"samples is {self.samples!r}; give the samples of a piece, a whole number of at least {FEWEST}")

    @property
    def pieces(self) -> int:
        """Approximate number of pieces, from the size of the recording."""
        return max(1, _size(Path(self.path)) // (8 * TYPICAL * self.samples))

    @cached_property
    def _sha256(self) -> str:
        """Checksum of the file; takes seconds for a long file."""
        with Path(self.path).open("rb") as whole:
            return hashlib.file_digest(whole, "sha256").hexdigest()

    def __iter__(self) -> Iterator[Log]:
        rules, _ = rules_of(self.schema, self.options)
        file = Path(self.path)
        if not (is_bag(file) or has_pieces(file)) or rules.get("files") is not None:
            log = read_log(self.path, self.schema, self.options)
            for start in range(0, len(log), self.samples):
                if len(log) - start >= MINIMUM_SAMPLES:
                    yield log.rows(start, min(start + self.samples, len(log)))
            return
        tables, begun = self._tables(file, topics_of(rules)), _Begun()
        while True:
            with naming(file):
                table = next(tables, None)
            if table is None:
                return
            if len(next(iter(table.columns.values()), ())) >= MINIMUM_SAMPLES:
                log = begun.on_one_clock(log_of([table], {}, rules, own=self.schema is None), table)
                del table  # only the log is in memory while it is used
                yield log
                del log

    def _tables(self, file: Path, topics: list[str] | None) -> Iterator[Table]:
        if is_bag(file):
            yield from bags(file).bag_tables(file, topics, self.samples)
            return
        for content in arrow().pieces(file, self.samples):
            yield replace(table_of(file.name, content, topics), sha256=self._sha256)


class _Begun:
    """The clock of a recording: pieces that begin at zero, as with stamps since 1970, are counted from the first one."""

    def __init__(self) -> None:
        self.stamp: Any = None
        self.rows = 0

    def on_one_clock(self, log: Log, table: Table) -> Log:
        """Return the next piece at its time in the recording."""
        if table.metadata is not None:  # written by dynident, in seconds
            return log
        name = "header.stamp" if "header.stamp" in table.columns else str(log.provenance.get("time_column") or "")
        if name and name not in table.columns:
            raise LogError(f"'{table.label}' has its time in several columns, which cannot be read in pieces; write it as one")
        stamps = table.columns[name] if name else range(self.rows, self.rows + len(log))
        self.stamp = stamps[0] if self.stamp is None else self.stamp
        self.rows += len(log)
        scale = 1e-9 if name == "header.stamp" else log.duration / float(stamps[-1] - stamps[0])
        if abs(float(stamps[0]) * scale - log.t[0]) < 0.1 * log.duration:
            return log
        return replace(log, t=log.t + float(stamps[0] - self.stamp) * scale)
