"""Shared state of all stages of one run: the store, the engine, the options, and the records of all logs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dynident.files import write_atomic
from dynident_lab.fleet.catalog import LogEntry
from dynident_lab.fleet.results import LogRecord
from dynident_lab.fleet.store import Store
from dynident_lab.fleet.tasks import Job

Progress = Callable[[str, int, int], object]
"""Called with the name of a stage, the number done, and the total number."""

PERIODS = {"day": 10, "month": 7, "year": 4}  # characters of a date
COUNTERS = ("logs_read", "logs_reused", "samples_read", "worker_seconds", "bytes_up", "bytes_down")


@dataclass(eq=False)
class Session:
    """One run; `jobs` are the types by name, `records` the outcome of every log, by path."""

    store: Store
    client: Any
    jobs: dict[str, Job]
    periods: str
    progress: Progress
    records: dict[str, LogRecord] = field(default_factory=dict)
    counters: dict[str, float] = field(default_factory=lambda: dict.fromkeys(COUNTERS, 0.0))
    done: int = 0

    def state(self, what: str, done: int, of: int) -> None:
        """Write the progress of the run, for users and for the next run."""
        content = {"state": what, "logs_done": done, "logs": of, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        write_atomic(self.store.folder / "state.json", json.dumps(content, indent=1))

    def refuse(self, entry: LogEntry, sentence: str) -> None:
        """Record why a log is not counted."""
        old = self.records.get(entry.log) or LogRecord(entry.log, entry.robot, entry.serial, False)
        self.records[entry.log] = replace(old, counted=False, sentence=" ".join(sentence.split()))

    def count(self, entry: LogEntry, record: Mapping[str, Any]) -> None:
        """Record that the regression data of a log are in the store."""
        self.done += 1
        numbers = (record["rows"], record["samples"], record["sha256"], record["key"])
        self.records[entry.log] = LogRecord(entry.log, entry.robot, entry.serial, True, *numbers, date=entry.date)
