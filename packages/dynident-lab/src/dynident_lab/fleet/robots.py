"""Every robot: merge the factors of its logs, fit, judge; unchanged robots are read back."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from dynident.errors import DynidentError
from dynident.files import read_regular, write_atomic
from dynident.parallel import completed, gathered
from dynident_lab.fleet.catalog import LogEntry
from dynident_lab.fleet.engine import engine_failure
from dynident_lab.fleet.results import RobotEstimate, file_name
from dynident_lab.fleet.session import PERIODS, Session
from dynident_lab.fleet.storage import fingerprint
from dynident_lab.fleet.store import task_of
from dynident_lab.fleet.tasks import reference, relative_errors, robot_estimate

REFERENCES = 15  # logs of a type with models that detect a log of another robot


def fit_robots(session: Session, entries: Sequence[LogEntry]) -> tuple[list[RobotEstimate], dict[str, str]]:
    """Merge, fit and judge every robot; robots with unchanged logs are read back."""
    groups: dict[str, list[LogEntry]] = {}
    for entry in entries:
        if session.records[entry.log].counted:
            groups.setdefault(entry.serial, []).append(entry)
    lost = {e.serial: "none of its logs could be used" for e in entries if e.serial not in groups}
    references = {name: _references(session, name, groups) for name in session.jobs}
    found: dict[str, RobotEstimate] = {}
    waiting = []
    for serial, own in groups.items():
        key = _robot_key(session, own, references[own[0].robot])
        old = _old(session, serial, key)
        if old is None:
            waiting.append((serial, own, key))
        else:
            found[serial] = old
    _refit(session, waiting, references, found, lost)
    order = sorted(found.values(), key=lambda r: (r.robot, r.serial))
    return order, lost


def _refit(
    session: Session,
    waiting: Sequence[tuple[str, list[LogEntry], str]],
    references: Mapping[str, tuple[list[Any], float]],
    found: dict[str, RobotEstimate],
    lost: dict[str, str],
) -> None:
    def work() -> Iterable[tuple[Any, ...]]:
        for serial, own, _ in waiting:
            factors = [session.store.get(session.records[entry.log].key) for entry in own]
            session.counters["bytes_down"] += sum(map(len, factors))
            yield session.jobs[own[0].robot], serial, [_about(session, e) for e in own], factors, *references[own[0].robot]

    with closing(completed(session.client, robot_estimate, work())) as tasks:
        for done, (number, future) in enumerate(tasks):
            serial, own, key = waiting[number]
            session.progress("robots", done + 1, len(waiting))
            try:
                estimate, fit, refused = future.result()
            except DynidentError as error:
                lost[serial] = str(error)
                continue
            except Exception as error:
                lost[serial] = engine_failure(error)
                continue
            for path, sentence in refused:
                session.refuse(next(entry for entry in own if entry.log == path), sentence)
            found[serial] = estimate
            place = session.store.folder / "robots" / file_name(serial)
            write_atomic(f"{place}.fit.json", fit)
            estimate.save(f"{place}.json")
            write_atomic(f"{place}.key", json.dumps({"key": key, "refused": refused}))


def _about(session: Session, entry: LogEntry) -> dict[str, Any]:
    return {
        "path": entry.log,
        "use": entry.use,
        "period": entry.date[: PERIODS[session.periods]],
        "day": entry.day,
        "temperature": entry.temperature,
        "load": entry.load,
    }


def _robot_key(session: Session, own: Sequence[LogEntry], references: tuple[list[Any], float]) -> str:
    parts = [(session.records[e.log].key, *_about(session, e).values()) for e in own]
    return fingerprint(parts, [np.asarray(beta).tobytes() for beta in references[0]], references[1])


def _old(session: Session, serial: str, key: str) -> RobotEstimate | None:
    """Return the estimate of an earlier run if none of its inputs have changed."""
    place = session.store.folder / "robots" / file_name(serial)
    try:
        written = json.loads(read_regular(f"{place}.key"))
        if written["key"] != key:
            return None
        estimate = RobotEstimate.load(f"{place}.json")
        refused = {path: replace(session.records[path], counted=False, sentence=why) for path, why in written["refused"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    session.records.update(refused)
    return estimate


def _references(session: Session, name: str, groups: Mapping[str, Sequence[LogEntry]]) -> tuple[list[Any], float]:
    """Return models of some logs of a type and the usual error of logs under them; empty with few robots."""
    first = [own[0].log for own in groups.values() if own[0].robot == name]
    if len(first) < 4:
        return [], math.nan
    job = session.jobs[name]
    label = fingerprint("references", name, task_of(job.base(), job.reading, job.options))
    known = session.store.types().get(label)
    if known is not None and all(len(model) == job.base().rank for model in known["models"]):
        return [np.array(beta) for beta in known["models"]], float(known["usual"])
    chosen = [first[i] for i in np.unique(np.linspace(0, len(first) - 1, REFERENCES).astype(int))]
    factors = [session.store.get(session.records[log].key) for log in chosen]
    betas = gathered(session.client, reference, ((job, part) for part in factors))
    usual = float(np.median([relative_errors(job, part, betas) for part in factors]))
    session.store.keep_type(label, {"models": [beta.tolist() for beta in betas], "usual": usual})
    return betas, usual
