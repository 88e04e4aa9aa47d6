"""A fleet from its logs to its answers: map the logs, merge per robot, fit, compare.

    logs --map--> factors (stored by content) --tree of merges--> one factor per robot --fit--> estimates --> answers

Only names go to the workers, only factors and estimates come back; one process, this one, writes. Evidence is merged in the
order of (robot, serial, date, path), so that the result does not depend on who computed what, or when.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from inspect import signature as signature_of
from pathlib import Path
from typing import Any

import numpy as np

from dynident.errors import DynidentError, IdentificationError, LogError
from dynident.files import read_regular, write_atomic
from dynident.fleet.alarms import check_rate
from dynident.fleet.catalog import LogEntry, entries_of
from dynident.fleet.engine import check_workers, connect, versions
from dynident.fleet.population import questions
from dynident.fleet.results import FleetResult, FleetType, LogRecord, RobotEstimate, file_name
from dynident.fleet.split import PIECE, SPLIT, Layout
from dynident.fleet.storage import StorageError, fingerprint, signature, size_of
from dynident.fleet.store import Store, task_of
from dynident.fleet.tasks import (
    BAND_LOGS,
    Job,
    choose_band,
    log_evidence,
    log_layout,
    merge,
    part_evidence,
    reference,
    relative_errors,
    robot_estimate,
)
from dynident.identify import Regression
from dynident.mechanism import Mechanism
from dynident.parallel import completed, gathered
from dynident.signals import prepare

Progress = Callable[[str, int, int], object]
"""Called with what is done, and how many of how many."""

REFERENCES = 15  # logs of a type whose own models tell a log of another robot
TOGETHER = 16  # factors that one task merges; a power of two keeps the tree the same
BYTES = 96  # of a sample in a file at least, from which a file is asked how many samples it has: q and tau of six joints
READ = ("effort", "topic", "schema", "joints", "units", "counts_per_unit", "gain", "rate", "position_side")


def identify(
    robots: Mechanism | Mapping[str, Mechanism],
    logs: Any,
    output: str | os.PathLike[str] | None = None,
    *,
    client: Any = None,
    reading: Mapping[str, Any] | None = None,
    false_alarms: float = 0.01,
    periods: str = "month",
    piece: int = PIECE,
    progress: Progress | None = None,
    **options: Any,
) -> FleetResult:
    """Identify all robots of a fleet, and answer what only a fleet can.

    Parameters
    ----------
    robots : Mechanism or mapping of str to Mechanism
        The type of the robots, or several types by name.
    logs : path-like, pattern, DataFrame, sequence of mappings or of LogEntry
        A CSV table with the columns serial and log, and optionally robot, date, temperature, load and use; or patterns such as
        ``"data/{serial}/{date}_*.parquet"``; or the rows themselves.
    output : path-like, optional
        Folder of factors, fits and results. A later run with the same folder reads new logs only. Nothing is kept when omitted.
    client : dask.distributed.Client or concurrent.futures.Executor, optional
        Where to compute; local processes, one per core, when omitted.
    reading : mapping, optional
        Options of `Log.read`, such as ``{"effort": "joint_torque"}``.
    false_alarms : float
        Probability of one false alarm or more in a type in which no robot deviates; mean share of false alarms among the
        robots named when some do.
    periods : {"month", "day", "year"}
        What logs are put together in for drift.
    piece : int
        Samples above which a Parquet or MCAP log is cut into several tasks.
    progress : callable, optional
        ``progress(what, done, of)`` as the work goes on.
    **options
        Options of `dynident.signals.prepare`. The band is chosen for each type by its first logs unless `cutoff` is given.

    Returns
    -------
    FleetResult
        Estimates, verdicts, deviations and drift of all robots, and what became of every log.

    Examples
    --------
    >>> result = di.fleet.identify(robot, "logs.csv", "out", reading={"effort": "joint_torque"})   # doctest: +SKIP
    """
    types = {robots.name: robots} if isinstance(robots, Mechanism) else dict(robots)
    if not types or not all(isinstance(robot, Mechanism) for robot in types.values()):
        raise DynidentError("robots is empty or holds something else; give a Mechanism, or several by name")
    entries = entries_of(logs, types)
    _check_options(reading or {}, periods, piece, options)
    check_rate(false_alarms)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dynident-")) if output is None else output)
        store = Store(folder)
        stack.callback(store.close)
        client = client if client is not None else stack.enter_context(connect())
        check_workers(client)
        run = _Run(store, client, types, dict(reading or {}), dict(options), false_alarms, periods, piece, progress)
        run.state("running", 0, len(entries))
        try:
            result = run.all(entries)
        except BaseException as error:
            run.state("stopped", run.done, len(entries))
            if type(error).__module__.startswith(("distributed", "concurrent")):
                raise DynidentError(f"the run stopped: {_engine_failure(error)}; the next run goes on from here") from error
            raise
        if output is None:
            return result
        result = replace(result, folder=str(folder))
        _light(result).save(folder / "fleet.json")
        run.state("done", run.done, len(entries))
        return result


def _light(result: FleetResult) -> FleetResult:
    """Return the result without what files of the robots hold: normal equations, and periods of robots that do not drift."""
    drifting = {drift.serial for own in result.types for drift in own.drifts}
    robots = (
        replace(r, information=np.zeros((0, 0)), score=np.zeros(0), periods=r.periods if r.serial in drifting else ())
        for r in result.robots
    )
    return replace(result, robots=tuple(robots))


def _check_options(reading: Mapping[str, Any], periods: str, piece: int, options: Mapping[str, Any]) -> None:
    unknown = [key for key in reading if key not in READ]
    if unknown:
        raise DynidentError(f"reading has an unknown option '{unknown[0]}'; it may have {', '.join(READ)}")
    if periods not in _LENGTH:
        raise DynidentError(f"periods is {periods!r}; it must be one of {', '.join(_LENGTH)}")
    if isinstance(piece, bool) or not isinstance(piece, int) or piece < 1024:
        raise DynidentError(f"piece is {piece!r}; give a number of samples, 1024 or more")
    known = [name for name in signature_of(prepare).parameters if name not in ("log", "like")]
    unknown = [key for key in options if key not in known]
    if unknown:
        raise DynidentError(f"unknown option '{unknown[0]}'; options of prepare for a fleet are {', '.join(known)}")


_LENGTH = {"day": 10, "month": 7, "year": 4}  # characters of a date


class _Run:
    """One run: the store, the engine, the options, and what became of every log."""

    def __init__(
        self,
        store: Store,
        client: Any,
        types: Mapping[str, Mechanism],
        reading: dict[str, Any],
        options: dict[str, Any],
        false_alarms: float,
        periods: str,
        piece: int,
        progress: Progress | None,
    ) -> None:
        self.store, self.client, self.false_alarms, self.periods = store, client, false_alarms, periods
        self.progress = progress or (lambda *_: None)
        self.jobs = {name: Job(name, robot, reading, options, versions(), piece) for name, robot in types.items()}
        self.records: dict[str, LogRecord] = {}
        self.done = 0
        names = ("logs_read", "logs_reused", "samples_read", "worker_seconds", "bytes_up", "bytes_down")
        self.counters = dict.fromkeys(names, 0.0)

    def state(self, what: str, done: int, of: int) -> None:
        """Write how far the run is, for people and for the next run."""
        content = {"state": what, "logs_done": done, "logs": of, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        write_atomic(self.store.folder / "state.json", json.dumps(content, indent=1))

    def all(self, entries: Sequence[LogEntry]) -> FleetResult:
        """Do everything."""
        started = time.perf_counter()
        signatures: dict[str, str] = {}
        for entry in entries:
            try:
                signatures[entry.log] = signature(entry.log)
            except LogError as error:
                self._refuse(entry, str(error))
        present = [entry for entry in entries if entry.log in signatures]
        bands = self._bands(present)
        self._evidence(present, signatures)
        self._once(present)
        robots, failed = self._robots(present)
        answers = tuple(self._questions(name, robots) for name in self.jobs if any(e.robot == name for e in entries))
        self.counters["seconds"] = time.perf_counter() - started
        logs = tuple(self.records[entry.log] for entry in entries)
        return FleetResult(tuple(robots), logs, answers, bands, failed, dict(self.counters))

    def _questions(self, name: str, robots: Sequence[RobotEstimate]) -> FleetType:
        own = questions([r for r in robots if r.robot == name], self.jobs[name].base(), self.false_alarms)
        if own.population is not None:
            own.population.save(self.store.folder / f"population_{file_name(name)}.json")
        return replace(own, robot=name)

    def _refuse(self, entry: LogEntry, sentence: str) -> None:
        old = self.records.get(entry.log) or LogRecord(entry.log, entry.robot, entry.serial, False)
        self.records[entry.log] = replace(old, counted=False, sentence=" ".join(sentence.split()))

    # ---- one band per type ----------------------------------------------------------------------------------------------

    def _bands(self, entries: Sequence[LogEntry]) -> dict[str, dict[str, float]]:
        """Fix the band of every type: as asked, as chosen by an earlier run, or by the first logs."""
        known, found = self.store.types(), {}
        for name, job in self.jobs.items():
            own = [entry.log for entry in entries if entry.robot == name]
            if not own or job.options.get("cutoff", "auto") != "auto":
                continue
            label = fingerprint(name, task_of(job.base(), job.reading, job.options))
            if label not in known:
                self.progress(f"choosing the band of {name}", 0, 1)
                band = self._band(job, own)
                if isinstance(band, str):
                    raise DynidentError(f"no log of robot '{name}' can be used; the last: {band}")
                known[label] = band
                self.store.keep_type(label, band)
            found[name] = known[label]
            self.jobs[name] = replace(job, options={**job.options, **known[label]})
        return found

    def _band(self, job: Job, logs: Sequence[str]) -> dict[str, float] | str:
        """Return the band of the first logs that can be used and fit into memory."""
        small = [log for log in logs if not self._long(job, log)]
        if not small:
            raise DynidentError(f"all logs of robot '{job.name}' are cut into pieces, which need one cut-off; give cutoff=")
        for first in range(0, len(small), 4 * BAND_LOGS):
            _, future = next(completed(self.client, choose_band, [(job, small[first : first + 4 * BAND_LOGS])]))
            found: dict[str, float] | str = future.result()
            if not isinstance(found, str):
                break
        return found

    # ---- evidence of every log ------------------------------------------------------------------------------------------

    def _evidence(self, entries: Sequence[LogEntry], signatures: Mapping[str, str]) -> None:
        """Compute the factors of all logs that the store does not have."""
        new = []
        for entry in entries:
            job = self.jobs[entry.robot]
            task = task_of(job.base(), job.reading, job.options)
            record = self.store.known(entry.log, signatures[entry.log], task)
            if record is None:
                new.append((entry, job, task))
            elif record.get("sentence"):
                self._refuse(entry, record["sentence"])
            else:
                self.counters["logs_reused"] += 1
                self._count(entry, record)
        short = [(entry, job, task) for entry, job, task in new if not self._long(job, entry.log)]
        # Closed at once when a run is cancelled: the client is still there to cancel what is under way.
        with closing(completed(self.client, log_evidence, ((job, entry.log) for entry, job, _ in short))) as tasks:
            for done, (number, future) in enumerate(tasks):
                entry, _, task = short[number]
                receipt = self._receipt(entry, future, signatures[entry.log], task)
                if receipt is not None:
                    self._store(entry, signatures[entry.log], task, fingerprint(receipt["sha256"], task), receipt)
                self.progress("logs", done + 1, len(short))
        for entry, job, task in new:
            if self._long(job, entry.log):
                self._long_log(entry, job, task, signatures[entry.log])

    def _long(self, job: Job, path: str) -> bool:
        return path.lower().endswith(SPLIT) and size_of(path) > BYTES * job.piece

    def _receipt(self, entry: LogEntry, future: Any, sign: str, task: str) -> dict[str, Any] | None:
        """Return what a task brought, or write down why it failed; what is wrong with the log itself is not tried again."""
        try:
            receipt: dict[str, Any] = future.result()
        except DynidentError as error:
            self._refuse(entry, str(error))
            if isinstance(error, LogError | IdentificationError) and not isinstance(error, StorageError):
                sentence = self.records[entry.log].sentence
                self.store.remember({"path": entry.log, "signature": sign, "task": task, "key": "", "sentence": sentence})
            return None
        except Exception as error:  # what engines raise when workers die or run out of memory
            self._refuse(entry, _engine_failure(error))
            return None
        self.counters["bytes_up"] += len(receipt["factors"])
        self.counters["samples_read"] += receipt["samples"]
        self.counters["worker_seconds"] += receipt["seconds"]
        return receipt

    def _store(self, entry: LogEntry, sign: str, task: str, key: str, receipt: Mapping[str, Any]) -> None:
        self.store.put(key, receipt["factors"])
        record = {
            "path": entry.log,
            "signature": sign,
            "task": task,
            "key": key,
            **{name: receipt[name] for name in ("sha256", "rows", "samples")},
        }
        self.store.remember(record)
        self.counters["logs_read"] += 1
        self._count(entry, record)

    def _count(self, entry: LogEntry, record: Mapping[str, Any]) -> None:
        self.done += 1
        self.records[entry.log] = LogRecord(
            entry.log,
            entry.robot,
            entry.serial,
            True,
            record["rows"],
            record["samples"],
            record["sha256"],
            record["key"],
            date=entry.date,
        )

    def _long_log(self, entry: LogEntry, job: Job, task: str, sign: str) -> None:
        """Compute the factors of a long log by its pieces, those that an earlier run stored left out."""
        _, future = next(completed(self.client, log_layout, [(job, entry.log)]))
        try:
            layout: Layout = future.result()
        except DynidentError as error:
            return self._refuse(entry, str(error))
        keys = [fingerprint(layout.content, task, number, span) for number, span in enumerate(layout.tasks)]
        missing = [number for number, key in enumerate(keys) if not self.store.has(key)]
        rows, samples = 0, layout.samples
        with closing(completed(self.client, part_evidence, ((job, entry.log, layout, n) for n in missing))) as tasks:
            for done, (k, part) in enumerate(tasks):
                receipt = self._receipt(entry, part, sign, task)
                if receipt is None:
                    return None
                self.store.put(keys[missing[k]], receipt["factors"])
                self.progress(f"pieces of {Path(entry.log).name}", done + 1, len(missing))
        whole = self._merged(job, keys)
        rows = Regression.from_bytes(whole, job.robot, job.base()).rows
        receipt = {"factors": whole, "sha256": layout.content, "rows": rows, "samples": samples}
        return self._store(entry, sign, task, fingerprint(layout.content, task), receipt)

    def _merged(self, job: Job, keys: Sequence[str]) -> bytes:
        """Return the sum of stored factors by a tree of tasks; its shape depends on the number of parts only."""

        def work(count: int, part: Callable[[int], bytes]) -> Iterable[tuple[Job, list[bytes]]]:
            for first in range(0, count, TOGETHER):
                group = [part(i) for i in range(first, min(first + TOGETHER, count))]
                self.counters["bytes_down"] += sum(map(len, group))
                yield job, group

        level: list[bytes] = gathered(self.client, merge, work(len(keys), lambda i: self.store.get(keys[i])))
        while len(level) > 1:
            level = gathered(self.client, merge, work(len(level), level.__getitem__))
        self.counters["bytes_up"] += sum(map(len, level))
        return level[0]

    def _once(self, entries: Sequence[LogEntry]) -> None:
        """Count the same content once, whatever its names."""
        seen: dict[str, LogEntry] = {}
        for entry in entries:
            record = self.records[entry.log]
            if not record.counted:
                continue
            first = seen.setdefault(record.sha256, entry)
            if first is not entry:
                whose = "" if first.serial == entry.serial else f" of robot '{first.serial}'"
                self._refuse(entry, f"it has the same content as '{first.log}'{whose}; it is counted once")

    # ---- every robot ----------------------------------------------------------------------------------------------------

    def _robots(self, entries: Sequence[LogEntry]) -> tuple[list[RobotEstimate], dict[str, str]]:
        """Merge, fit and judge every robot; robots whose logs have not changed are read back."""
        groups: dict[str, list[LogEntry]] = {}
        for entry in entries:
            if self.records[entry.log].counted:
                groups.setdefault(entry.serial, []).append(entry)
        lost = {e.serial: "none of its logs could be used" for e in entries if e.serial not in groups}
        references = {name: self._references(name, groups) for name in self.jobs}
        found: dict[str, RobotEstimate] = {}
        waiting = []
        for serial, own in groups.items():
            key = self._robot_key(own, references[own[0].robot])
            old = self._old(serial, key)
            if old is None:
                waiting.append((serial, own, key))
            else:
                found[serial] = old
        self._refit(waiting, references, found, lost)
        order = sorted(found.values(), key=lambda r: (r.robot, r.serial))
        return order, lost

    def _refit(
        self,
        waiting: Sequence[tuple[str, list[LogEntry], str]],
        references: Mapping[str, tuple[list[Any], float]],
        found: dict[str, RobotEstimate],
        lost: dict[str, str],
    ) -> None:
        def work() -> Iterable[tuple[Any, ...]]:
            for serial, own, _ in waiting:
                factors = [self.store.get(self.records[entry.log].key) for entry in own]
                self.counters["bytes_down"] += sum(map(len, factors))
                yield self.jobs[own[0].robot], serial, [self._about(e) for e in own], factors, *references[own[0].robot]

        with closing(completed(self.client, robot_estimate, work())) as tasks:
            for done, (number, future) in enumerate(tasks):
                serial, own, key = waiting[number]
                self.progress("robots", done + 1, len(waiting))
                try:
                    estimate, fit, refused = future.result()
                except DynidentError as error:
                    lost[serial] = str(error)
                    continue
                except Exception as error:
                    lost[serial] = _engine_failure(error)
                    continue
                for path, sentence in refused:
                    self._refuse(next(entry for entry in own if entry.log == path), sentence)
                found[serial] = estimate
                place = self.store.folder / "robots" / file_name(serial)
                write_atomic(f"{place}.fit.json", fit)
                estimate.save(f"{place}.json")
                write_atomic(f"{place}.key", json.dumps({"key": key, "refused": refused}))

    def _about(self, entry: LogEntry) -> dict[str, Any]:
        return {
            "path": entry.log,
            "use": entry.use,
            "period": entry.date[: _LENGTH[self.periods]],
            "day": entry.day,
            "temperature": entry.temperature,
            "load": entry.load,
        }

    def _robot_key(self, own: Sequence[LogEntry], references: tuple[list[Any], float]) -> str:
        parts = [(self.records[e.log].key, *self._about(e).values()) for e in own]
        return fingerprint(parts, [np.asarray(beta).tobytes() for beta in references[0]], references[1])

    def _old(self, serial: str, key: str) -> RobotEstimate | None:
        """Return the estimate of an earlier run if nothing that it depends on has changed."""
        place = self.store.folder / "robots" / file_name(serial)
        try:
            written = json.loads(read_regular(f"{place}.key"))
            if written["key"] != key:
                return None
            estimate = RobotEstimate.load(f"{place}.json")
            refused = {path: replace(self.records[path], counted=False, sentence=why) for path, why in written["refused"]}
        except (OSError, ValueError, KeyError, TypeError):
            return None
        self.records.update(refused)
        return estimate

    def _references(self, name: str, groups: Mapping[str, Sequence[LogEntry]]) -> tuple[list[Any], float]:
        """Return the models of some logs of a type and the error that logs usually have under them; none with few robots."""
        first = [own[0].log for own in groups.values() if own[0].robot == name]
        if len(first) < 4:
            return [], math.nan
        job = self.jobs[name]
        label = fingerprint("references", name, task_of(job.base(), job.reading, job.options))
        known = self.store.types().get(label)
        if known is not None and all(len(model) == job.base().rank for model in known["models"]):
            return [np.array(beta) for beta in known["models"]], float(known["usual"])
        chosen = [first[i] for i in np.unique(np.linspace(0, len(first) - 1, REFERENCES).astype(int))]
        factors = [self.store.get(self.records[log].key) for log in chosen]
        betas = gathered(self.client, reference, ((job, part) for part in factors))
        usual = float(np.median([relative_errors(job, part, betas) for part in factors]))
        self.store.keep_type(label, {"models": [beta.tolist() for beta in betas], "usual": usual})
        return betas, usual


def _engine_failure(error: BaseException) -> str:
    """Return the sentence about a task that the engine gave up."""
    if type(error).__name__ == "KilledWorker":
        died = getattr(error, "allowed_failures", 0) + 1
        return f"its task was given up after {died} workers died under it; is their memory limit too low, or a node lost?"
    text = " ".join(str(error).split())[:160]
    return f"its task was given up by the engine ({type(error).__name__}: {text})"
