"""A fleet from its logs to its answers: map the logs, merge per robot, fit, compare.

    logs --map--> factors (stored by content) --tree of merges--> one factor per robot --fit--> estimates --> answers

Workers receive names only and return factors and estimates; only this process writes. Regression data are merged in the
order of (robot, serial, date, path), so that the result is independent of the distribution and order of tasks.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from inspect import signature as signature_of
from pathlib import Path
from typing import Any

import numpy as np

from dynident.errors import DynidentError, LogError
from dynident.mechanism import Mechanism
from dynident.signals import prepare
from dynident_lab.fleet.alarms import check_rate
from dynident_lab.fleet.catalog import LogEntry, entries_of
from dynident_lab.fleet.engine import check_workers, connect, engine_failure, versions
from dynident_lab.fleet.population import questions
from dynident_lab.fleet.regressions import choose_bands, collect_regressions, count_once
from dynident_lab.fleet.results import FleetResult, FleetType, RobotEstimate, file_name
from dynident_lab.fleet.robots import fit_robots
from dynident_lab.fleet.session import PERIODS, Progress, Session
from dynident_lab.fleet.split import PIECE
from dynident_lab.fleet.storage import signature
from dynident_lab.fleet.store import Store
from dynident_lab.fleet.tasks import Job

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
    """Identify all robots of a fleet, and compute fleet statistics.

    Parameters
    ----------
    robots : Mechanism or mapping of str to Mechanism
        The type of the robots, or several types by name.
    logs : path-like, pattern, DataFrame, sequence of mappings or of LogEntry
        A CSV table with the columns serial and log, and optionally robot, date, temperature, load and use; or patterns such as
        ``"data/{serial}/{date}_*.parquet"``; or the rows themselves.
    output : path-like, optional
        Folder of factors, fits and results. A later run with the same folder reads new logs only. Nothing is kept if omitted.
    client : dask.distributed.Client or concurrent.futures.Executor, optional
        Client that computes; local processes, one per core, when omitted.
    reading : mapping, optional
        Options of `Log.read`, such as ``{"effort": "joint_torque"}``.
    false_alarms : float
        Probability of one false alarm or more in a type in which no robot deviates; mean share of false alarms among the
        robots named when some do.
    periods : {"month", "day", "year"}
        Period of the estimates in the drift test.
    piece : int
        Samples above which a Parquet or MCAP log is cut into several tasks.
    progress : callable, optional
        ``progress(what, done, of)``, called as the work proceeds.
    **options
        Options of `dynident.signals.prepare`. The band is chosen for each type by its first logs unless `cutoff` is given.

    Returns
    -------
    FleetResult
        Estimates, verdicts, deviations and drift of all robots, and a record of every log.

    Examples
    --------
    >>> result = identify(robot, "logs.csv", "out", reading={"effort": "joint_torque"})   # doctest: +SKIP
    """
    types = {robots.name: robots} if isinstance(robots, Mechanism) else dict(robots)
    if not types or not all(isinstance(robot, Mechanism) for robot in types.values()):
        raise DynidentError("robots is empty or has another type; give a Mechanism, or a dict of several")
    entries = entries_of(logs, types)
    _check_options(reading or {}, periods, piece, options)
    check_rate(false_alarms)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dynident-")) if output is None else output)
        store = Store(folder)
        stack.callback(store.close)
        client = client if client is not None else stack.enter_context(connect())
        check_workers(client)
        jobs = {name: Job(name, robot, dict(reading or {}), options, versions(), piece) for name, robot in types.items()}
        session = Session(store, client, jobs, periods, progress or (lambda *_: None))
        session.state("running", 0, len(entries))
        try:
            result = _everything(session, entries, false_alarms)
        except BaseException as error:
            session.state("stopped", session.done, len(entries))
            if type(error).__module__.startswith(("distributed", "concurrent")):
                raise DynidentError(f"the run stopped: {engine_failure(error)}; the next run continues from here") from error
            raise
        if output is None:
            return result
        result = replace(result, folder=str(folder))
        _light(result).save(folder / "fleet.json")
        session.state("done", session.done, len(entries))
        return result


def _everything(session: Session, entries: Sequence[LogEntry], false_alarms: float) -> FleetResult:
    """Read, merge, fit and compare."""
    started = time.perf_counter()
    signatures: dict[str, str] = {}
    for entry in entries:
        try:
            signatures[entry.log] = signature(entry.log)
        except LogError as error:
            session.refuse(entry, str(error))
    present = [entry for entry in entries if entry.log in signatures]
    bands = choose_bands(session, present)
    collect_regressions(session, present, signatures)
    count_once(session, present)
    robots, failed = fit_robots(session, present)
    types = [name for name in session.jobs if any(entry.robot == name for entry in entries)]
    answers = tuple(_answers(session, name, robots, false_alarms) for name in types)
    session.counters["seconds"] = time.perf_counter() - started
    logs = tuple(session.records[entry.log] for entry in entries)
    return FleetResult(tuple(robots), logs, answers, bands, failed, dict(session.counters))


def _answers(session: Session, name: str, robots: Sequence[RobotEstimate], false_alarms: float) -> FleetType:
    """Compute the statistics of the robots of one type, and store the population as a prior for new ones."""
    own = questions([r for r in robots if r.robot == name], session.jobs[name].base(), false_alarms)
    if own.population is not None:
        own.population.save(session.store.folder / f"population_{file_name(name)}.json")
    return replace(own, robot=name)


def _light(result: FleetResult) -> FleetResult:
    """Return the result without data in the robots' files: normal equations, and periods of robots without drift."""
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
    if periods not in PERIODS:
        raise DynidentError(f"periods is {periods!r}; it must be one of {', '.join(PERIODS)}")
    if isinstance(piece, bool) or not isinstance(piece, int) or piece < 1024:
        raise DynidentError(f"piece is {piece!r}; give a number of samples, 1024 or more")
    known = [name for name in signature_of(prepare).parameters if name not in ("log", "like")]
    unknown = [key for key in options if key not in known]
    if unknown:
        raise DynidentError(f"unknown option '{unknown[0]}'; options of prepare for a fleet are {', '.join(known)}")
