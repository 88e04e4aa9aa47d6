"""Long bags as logs one after the other: whatever the length, only one piece is in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dynident.errors import LogError
from dynident.signals.channels import rules_of
from dynident.signals.log import MINIMUM_SAMPLES, Log
from dynident.signals.reading import bags, is_bag, log_of, naming, read_log, topics_of
from dynident.signals.tables import Table

FEWEST = 100


@dataclass(frozen=True)
class LogStream:
    """A recording as pieces with one clock; iterating reads it anew. Made by `Log.stream`."""

    path: str | os.PathLike[str]  #: Bag, MCAP file, or any other file of `Log.read`, which is read at once and cut
    samples: int  #: Samples of a piece
    schema: str | os.PathLike[str] | Mapping[str, object] | None  #: See `Log.read`
    options: Mapping[str, object]  #: Other arguments of `Log.read` by the names of a schema

    def __post_init__(self) -> None:
        if isinstance(self.samples, bool) or not isinstance(self.samples, int) or self.samples < FEWEST:
            raise LogError(f"samples is {self.samples!r}; give the samples of a piece, a whole number of at least {FEWEST}")

    def __iter__(self) -> Iterator[Log]:
        rules, _ = rules_of(self.schema, self.options)
        if not is_bag(self.path) or rules.get("files") is not None:
            log = read_log(self.path, self.schema, self.options)
            for start in range(0, len(log), self.samples):
                if len(log) - start >= MINIMUM_SAMPLES:
                    yield log.rows(start, min(start + self.samples, len(log)))
            return
        begun: int | None = None
        file, tables = Path(self.path), self._tables(topics_of(rules))
        while True:
            with naming(file):
                table = next(tables, None)
            if table is None:
                return
            rows = len(next(iter(table.columns.values())))
            if rows < MINIMUM_SAMPLES:
                continue
            log = log_of([table], {}, rules, own=self.schema is None)
            if table.metadata is None:  # every piece has begun at zero
                stamp = int(table.columns["header.stamp"][0])
                begun = stamp if begun is None else begun
                log = replace(log, t=log.t + (stamp - begun) * 1e-9)
            yield log

    def _tables(self, topics: list[str] | None) -> Iterator[Table]:
        tables: Iterator[Table] = bags(Path(self.path)).bag_tables(Path(self.path), topics, self.samples)
        return tables
