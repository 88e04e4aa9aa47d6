"""From a recording back to its plan: which stretch of a log is which stage, and the average over periods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers, whole
from dynident.errors import DynidentError
from dynident.excitation.plan import Plan
from dynident.signals.log import Log

Array = NDArray[np.float64]


def refer(log: Log, plan: Plan, cycle: int = 0) -> Log:
    """Return a log that says which plan, and which cycle of it, it is a recording of.

    Parameters
    ----------
    log : Log
        Recording that starts with the cycle.
    plan : Plan
        What was run.
    cycle : int
        Which cycle, from 0 on.

    Returns
    -------
    Log
        The same signals; ``provenance["plan"]`` holds the plan's identity.
    """
    origin = {"sha256": log.checksum(), **log.provenance}
    return replace(log, provenance={**origin, "plan": plan.identity, "cycle": cycle})


def stage_logs(log: Log, plan: Plan, start: float | None = None) -> dict[str, list[Log]]:
    """Return the stretches of a log that the plan records, by stage and repetition.

    Parameters
    ----------
    log : Log
        Recording of one cycle.
    plan : Plan
        What was run; a log that refers to another plan is refused.
    start : float, optional
        When the cycle started, in the log's clock [s]; its first sample when omitted.

    Returns
    -------
    dict of str to list of Log
        One log per repetition of every stage with ``record``; stages that end after the log are left out.
    """
    named = _identity(log)
    if named is not None and named != plan.identity:
        raise DynidentError(
            f"log '{log.name}' refers to plan {named}, not to {plan.identity}; give the plan it was recorded with"
        )
    zero = float(log.t[0]) if start is None else start
    slack = 0.5 * float(np.median(np.diff(log.t)))
    found: dict[str, list[Log]] = {}
    for entry in plan.schedule():
        begin, end = zero + entry["start"], zero + entry["end"]
        if entry["record"] and end <= log.t[-1] + 2.0 * slack and begin >= log.t[0] - 2.0 * slack:
            part = log.between(begin - slack, end - slack)  # the last instant is the first one of what follows
            found.setdefault(entry["name"], []).append(replace(part, name=f"{log.name}/{entry['name']}"))
    if not found:
        raise DynidentError(
            f"log '{log.name}' of {log.duration:.1f} s holds no whole stage of the plan, whose cycle lasts "
            f"{plan.curve.duration:.1f} s; give the whole recording"
        )
    return found


def _identity(log: Log) -> str | None:
    """Return the plan a log refers to, as a recorder or a virtual robot wrote it."""
    named = log.provenance.get("plan")
    if named is None:
        source = log.provenance.get("reference")
        named = source.get("plan") if isinstance(source, Mapping) else None
    return named if isinstance(named, str) and named else None


def average_periods(samples: ArrayLike, period: int, skip: int = 1) -> tuple[Array, Array]:
    """Return the mean over periods of a periodic motion, and the standard deviation of that mean."""
    x = np.atleast_1d(numbers(samples, "samples"))
    count = x.shape[0] // period - skip if whole("period", period) > 0 and whole("skip", skip) >= 0 else 0
    if x.ndim != 2 or count < 1:
        raise DynidentError(f"{x.shape[0]} samples hold less than {skip + 1} periods of {period}; record more periods")
    stacked = x[skip * period : (skip + count) * period].reshape(count, period, x.shape[1])
    spread = stacked.std(axis=0, ddof=1) / np.sqrt(count) if count > 1 else np.zeros(stacked.shape[1:])
    return stacked.mean(axis=0), spread


def average_log(log: Log, plan: Plan, stage: str = "excitation", skip: int = 0) -> Log:
    """Return the mean over the repetitions of a stage: noise falls with the root of their number, the motion does not.

    Parameters
    ----------
    log : Log
        Recording of one cycle at the plan's rate.
    plan : Plan
        What was run.
    stage : str
        Stage with repetitions.
    skip : int
        Repetitions at the start that are left out (transients).

    Returns
    -------
    Log
        One repetition; ``provenance["averaged"]`` says over how many.
    """
    parts = stage_logs(log, plan).get(stage, [])[skip:]
    if not parts:
        raise DynidentError(f"log '{log.name}' holds no repetition of stage '{stage}' after the first {skip}; record more")
    count = min(len(part) for part in parts)
    if max(len(part) for part in parts) > count + 1:
        raise DynidentError(f"repetitions of stage '{stage}' have different numbers of samples; record at one steady rate")
    means: dict[str, Any] = {}
    for key in ("position", "effort", "velocity", "acceleration", "temperature"):
        arrays = [getattr(part, key) for part in parts]
        means[key] = None if arrays[0] is None else np.mean([array[:count] for array in arrays], axis=0)
    first = parts[0].rows(0, count)
    return replace(first, provenance={**first.provenance, "averaged": len(parts)}, **means)
