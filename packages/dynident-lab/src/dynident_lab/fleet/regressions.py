"""Regression data of every log: one band per type, then a map over the logs; long logs are mapped piece by piece and merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from dynident.errors import DynidentError, IdentificationError, LogError
from dynident.identify import Regression
from dynident.parallel import completed, gathered
from dynident_lab.fleet.catalog import LogEntry
from dynident_lab.fleet.engine import engine_failure
from dynident_lab.fleet.session import Session
from dynident_lab.fleet.split import SPLIT, Layout
from dynident_lab.fleet.storage import StorageError, fingerprint, size_of
from dynident_lab.fleet.store import task_of
from dynident_lab.fleet.tasks import BAND_LOGS, Job, choose_band, log_layout, log_regression, merge, part_regression

TOGETHER = 16  # factors that one task merges; a power of two keeps the tree the same
BYTES = 96  # smallest size of a sample (q and tau of six joints): larger files are opened to count their samples


def choose_bands(session: Session, entries: Sequence[LogEntry]) -> dict[str, dict[str, float]]:
    """Fix the band of every type: from the options, an earlier run, or the first logs."""
    known, found = session.store.types(), {}
    for name, job in session.jobs.items():
        own = [entry.log for entry in entries if entry.robot == name]
        if not own or job.options.get("cutoff", "auto") != "auto":
            continue
        label = fingerprint(name, task_of(job.base(), job.reading, job.options))
        if label not in known:
            session.progress(f"choosing the band of {name}", 0, 1)
            band = _band(session, job, own)
            if isinstance(band, str):
                raise DynidentError(f"no log of robot '{name}' can be used; the last: {band}")
            known[label] = band
            session.store.keep_type(label, band)
        found[name] = known[label]
        session.jobs[name] = replace(job, options={**job.options, **known[label]})
    return found


def _band(session: Session, job: Job, logs: Sequence[str]) -> dict[str, float] | str:
    """Return the band of the first usable logs that fit into memory, or of the beginnings of long logs."""
    small = [log for log in logs if not _long(job, log)]
    tried = small or logs
    for first in range(0, len(tried), 4 * BAND_LOGS):
        _, future = next(completed(session.client, choose_band, [(job, tried[first : first + 4 * BAND_LOGS], not small)]))
        found: dict[str, float] | str = future.result()
        if not isinstance(found, str):
            break
    return found


def collect_regressions(session: Session, entries: Sequence[LogEntry], signatures: Mapping[str, str]) -> None:
    """Compute the factors of all logs that are missing in the store."""
    new = []
    for entry in entries:
        job = session.jobs[entry.robot]
        task = task_of(job.base(), job.reading, job.options)
        record = session.store.known(entry.log, signatures[entry.log], task)
        if record is None:
            new.append((entry, job, task))
        elif record.get("sentence"):
            session.refuse(entry, record["sentence"])
        else:
            session.counters["logs_reused"] += 1
            session.count(entry, record)
    short = [(entry, job, task) for entry, job, task in new if not _long(job, entry.log)]
    # Closed at once when a run is cancelled, while the client can still cancel the tasks in progress.
    with closing(completed(session.client, log_regression, ((job, entry.log) for entry, job, _ in short))) as tasks:
        for done, (number, future) in enumerate(tasks):
            entry, _, task = short[number]
            receipt = _receipt(session, entry, future, signatures[entry.log], task)
            if receipt is not None:
                _store(session, entry, signatures[entry.log], task, fingerprint(receipt["sha256"], task), receipt)
            session.progress("logs", done + 1, len(short))
    _long_logs(session, [(entry, job, task) for entry, job, task in new if _long(job, entry.log)], signatures)


def _long(job: Job, path: str) -> bool:
    return path.lower().endswith(SPLIT) and size_of(path) > BYTES * job.piece


def _receipt(session: Session, entry: LogEntry, future: Any, sign: str, task: str) -> dict[str, Any] | None:
    """Return the result of a task, or record its failure; a log with errors of its own is not tried again."""
    try:
        receipt: dict[str, Any] = future.result()
    except DynidentError as error:
        session.refuse(entry, str(error))
        if isinstance(error, LogError | IdentificationError) and not isinstance(error, StorageError):
            sentence = session.records[entry.log].sentence
            session.store.remember({"path": entry.log, "signature": sign, "task": task, "key": "", "sentence": sentence})
        return None
    except Exception as error:  # engines raise any error when workers die or run out of memory
        session.refuse(entry, engine_failure(error))
        return None
    session.counters["bytes_up"] += len(receipt["factors"])
    session.counters["samples_read"] += receipt["samples"]
    session.counters["worker_seconds"] += receipt["seconds"]
    return receipt


def _store(session: Session, entry: LogEntry, sign: str, task: str, key: str, receipt: Mapping[str, Any]) -> None:
    session.store.put(key, receipt["factors"])
    record = {
        "path": entry.log,
        "signature": sign,
        "task": task,
        "key": key,
        **{name: receipt[name] for name in ("sha256", "rows", "samples")},
    }
    session.store.remember(record)
    session.counters["logs_read"] += 1
    session.count(entry, record)


def _long_logs(session: Session, new: Sequence[tuple[LogEntry, Job, str]], signatures: Mapping[str, str]) -> None:
    """Compute the missing factors of long logs, with the pieces of all of them in one map."""
    layouts = _layouts(session, new)
    keys, missing = dict[int, list[str]](), list[tuple[int, int]]()
    for log, layout in layouts.items():
        keys[log] = [fingerprint(layout.content, new[log][2], number, span) for number, span in enumerate(layout.tasks)]
        missing += [(log, number) for number, key in enumerate(keys[log]) if not session.store.has(key)]
    failed = set[int]()

    def work() -> Iterable[tuple[Any, ...]]:
        for log, number in missing:
            yield new[log][1], new[log][0].log, layouts[log], number

    with closing(completed(session.client, part_regression, work())) as tasks:
        for done, (k, part) in enumerate(tasks):
            log, number = missing[k]
            entry, _, task = new[log]
            receipt = None if log in failed else _receipt(session, entry, part, signatures[entry.log], task)
            if receipt is None:
                failed.add(log)
            else:
                session.store.put(keys[log][number], receipt["factors"])
            session.progress("pieces of long logs", done + 1, len(missing))
    for log in sorted(set(layouts) - failed):
        entry, job, task = new[log]
        layout, whole = layouts[log], _merged(session, job, keys[log])
        rows = Regression.from_bytes(whole, job.robot, job.base()).rows
        receipt = {"factors": whole, "sha256": layout.content, "rows": rows, "samples": layout.samples}
        _store(session, entry, signatures[entry.log], task, fingerprint(layout.content, task), receipt)


def _layouts(session: Session, new: Sequence[tuple[LogEntry, Job, str]]) -> dict[int, Layout]:
    """Return the division of long logs, by their number; indivisible ones are refused."""
    found = {}
    with closing(completed(session.client, log_layout, ((job, entry.log) for entry, job, _ in new))) as tasks:
        for log, future in tasks:
            try:
                found[log] = future.result()
            except DynidentError as error:
                session.refuse(new[log][0], str(error))
            except Exception as error:  # engines raise any error when workers die or run out of memory
                session.refuse(new[log][0], engine_failure(error))
    return dict(sorted(found.items()))


def _merged(session: Session, job: Job, keys: Sequence[str]) -> bytes:
    """Return the sum of stored factors by a tree of tasks; its shape depends on the number of parts only."""

    def work(count: int, part: Callable[[int], bytes]) -> Iterable[tuple[Job, list[bytes]]]:
        for first in range(0, count, TOGETHER):
            group = [part(i) for i in range(first, min(first + TOGETHER, count))]
            session.counters["bytes_down"] += sum(map(len, group))
            yield job, group

    level: list[bytes] = gathered(session.client, merge, work(len(keys), lambda i: session.store.get(keys[i])))
    while len(level) > 1:
        level = gathered(session.client, merge, work(len(level), level.__getitem__))
    session.counters["bytes_up"] += sum(map(len, level))
    return level[0]


def count_once(session: Session, entries: Sequence[LogEntry]) -> None:
    """Count identical content once, regardless of its names."""
    seen: dict[str, LogEntry] = {}
    for entry in entries:
        record = session.records[entry.log]
        if not record.counted:
            continue
        first = seen.setdefault(record.sha256, entry)
        if first is not entry:
            whose = "" if first.serial == entry.serial else f" of robot '{first.serial}'"
            session.refuse(entry, f"it has the same content as '{first.log}'{whose}; it is counted once")
