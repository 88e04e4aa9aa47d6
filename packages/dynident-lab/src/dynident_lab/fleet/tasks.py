"""Functions of the workers: each runs in another process with plain arguments, and returns the same bytes everywhere.

A log, or a piece of one, becomes the bytes of its factors; a tree of merges combines them; a robot's factors give an estimate.
"""

from __future__ import annotations

import hashlib
import math
import pickle
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import DynidentError, DynidentWarning, IdentificationError
from dynident.identify import MAP, WLS, BaseParameters, Regression, base_parameters
from dynident.identify.regression.logs import compressed_log
from dynident.mechanism import Mechanism
from dynident.parallel import one_core
from dynident.signals import Log
from dynident.signals.matching import match
from dynident.validate import Check, Verdict, judge
from dynident_lab.fleet.engine import keep_freed_memory, refuse_other, worker_memory
from dynident_lab.fleet.results import RobotEstimate, RobotPeriod
from dynident_lab.fleet.split import Layout, beginning, layout_of, one_source, piece_regression
from dynident_lab.fleet.storage import local_copy, size_of

STRETCHES = 4  # parts of a log with separate regression data: three logs of a robot have twelve
BAND_LOGS = 3  # logs that choose the band of a type
HELD_OUT = 0.15  # relative error on held-out logs of a good model
REFUTED, OFTEN = 0.5, 5.0  # relative error of a log under other robots' models, absolute and over the usual one
NEEDED = 3.0  # smallest ratio of memory to file size of a log; it is 8 for binary numbers
ODD, SIBLINGS = 0.2, 2  # absolute error if at least this number of logs of the same robot look like their type


@dataclass(frozen=True, eq=False)
class Job:
    """Shared data of all tasks of one type of robot."""

    name: str  # Name of the type
    robot: Mechanism  # The type
    reading: Mapping[str, Any] = field(default_factory=dict)  # Options of `Log.read`
    options: Mapping[str, Any] = field(default_factory=dict)  # Options of `prepare`
    versions: Mapping[str, str] = field(default_factory=dict)  # Versions of the client; a worker with other versions refuses
    piece: int = 0  # Samples above which a log is divided

    def base(self) -> BaseParameters:
        """Return the base parameters, computed once per process."""
        if self.versions:
            refuse_other(dict(self.versions), "the client")
        key = pickle.dumps(self.robot)
        if key not in _BASES:
            keep_freed_memory()
            _BASES[key] = base_parameters(self.robot)
        return _BASES[key]


_BASES: dict[bytes, BaseParameters] = {}


def options_at(options: Mapping[str, Any], rate: float) -> dict[str, Any]:
    """Return the options of `prepare` for a log at a sampling rate: the band of its type, limited by the rate."""
    fixed = dict(options)
    if isinstance(fixed.get("cutoff"), float | int):
        fixed["cutoff"] = min(float(fixed["cutoff"]), 0.4 * rate)
    if isinstance(fixed.get("band"), float | int):
        fixed["band"] = min(float(fixed["band"]), 0.5 * rate)
    return fixed


def read(path: str, reading: Mapping[str, Any]) -> Log:
    """Read a log from disk or storage."""
    with local_copy(path) as file:
        return Log.read(file, **{**reading, "name": Path(path).name})


def choose_band(job: Job, paths: Sequence[str], long: bool = False) -> dict[str, float] | str:
    """Return the band that explains the first logs of a type best, or the message of the last log that was refused.

    For long logs the first block is used.
    """
    base, logs, said = job.base(), [], "no log"
    with one_core(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)
        for path in paths:
            try:
                log = beginning(path, job.reading) if long else read(path, job.reading)
                Regression.from_log(job.robot, log, base, **job.options)
                logs.append(log)
            except DynidentError as error:
                said = str(error)
            if len(logs) == BAND_LOGS:
                break
        if not logs:
            return said
        sources = Regression.from_logs(job.robot, logs, base, **job.options).sources
    return {"cutoff": max(float(s["cutoff"]) for s in sources), "band": max(float(s["bandwidth"]) for s in sources)}


def log_regression(job: Job, path: str) -> dict[str, Any]:
    """Return the factors of one log as bytes, with its hash and counts."""
    started, base = time.perf_counter(), job.base()
    _check_memory(path)
    with one_core(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)  # the notes contain them
        log = read(path, job.reading)
        options = options_at(job.options, log.rate)
        regression = compressed_log(match(job.robot, log), log, base, "gls", (), options, STRETCHES)
        content = regression.to_bytes()
    content_sum = hashlib.sha256(log.checksum().encode()).hexdigest()
    return _receipt(regression, content, content_sum, len(log), started)


def _check_memory(path: str) -> None:
    """Refuse a log too large for this worker: the engine would kill it, and all workers that try the log again."""
    limit, size = worker_memory(), size_of(path)
    if limit and NEEDED * size > limit:
        raise DynidentError(
            f"it has {size / 1e6:.0f} MB and needs about {NEEDED * size / 1e6:.0f} MB of memory, but a worker has "
            f"{limit / 1e6:.0f} MB; raise --memory or save it as .parquet or .mcap"
        )


def log_layout(job: Job, path: str) -> Layout:
    """Return the division of a long log."""
    with one_core(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)
        return layout_of(path, job.robot, job.reading, job.options, job.piece)


def part_regression(job: Job, path: str, layout: Layout, number: int) -> dict[str, Any]:
    """Return the factors of one piece of a long log as bytes."""
    started, base = time.perf_counter(), job.base()
    with one_core(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)
        regression = piece_regression(path, layout, number, job.robot, base, job.reading, job.options)
        content = regression.to_bytes()
    first, last = layout.tasks[number]
    return _receipt(regression, content, layout.content, (last - first) * layout.factor, started)


def _receipt(regression: Regression, content: bytes, content_sum: str, samples: int, started: float) -> dict[str, Any]:
    return {
        "factors": content,
        "sha256": content_sum,
        "rows": regression.rows,
        "samples": samples,
        "seconds": time.perf_counter() - started,
        "notes": [note.sentence for note in regression.notes],
    }


def tree(parts: Sequence[Regression]) -> Regression:
    """Return the sum of regression data by neighbours, then neighbours of neighbours: an order given by the parts only."""
    level = list(parts)
    while len(level) > 1:
        level = [level[i] + level[i + 1] if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)]
    return level[0]


def merge(job: Job, parts: Sequence[bytes]) -> bytes:
    """Return the merged factors of pieces of a log."""
    base = job.base()
    with one_core():
        return one_source(tree([Regression.from_bytes(part, job.robot, base) for part in parts])).to_bytes()


def reference(job: Job, factors: bytes) -> Array:
    """Return the base parameters of the fit of one log, a reference for other logs."""
    base = job.base()
    with one_core():
        return np.asarray(MAP().fit(Regression.from_bytes(factors, job.robot, base)).coef_)


def robot_estimate(
    job: Job,
    serial: str,
    logs: Sequence[Mapping[str, Any]],
    factors: Sequence[bytes],
    references: Sequence[Array],
    usual: float,
) -> tuple[RobotEstimate, str, list[tuple[str, str]]]:
    """Return the estimate of one robot, its fit as text, and the logs of other robots with the reasons."""
    base = job.base()
    with one_core(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)
        regression = [Regression.from_bytes(part, job.robot, base) for part in factors]
        kept, refused = [], list[tuple[str, str]]()
        errors = [foreign(own, references) for own in regression]
        alike = sum(error <= OFTEN * usual for error in errors) >= SIBLINGS
        most = max(ODD if alike else REFUTED, OFTEN * usual) if math.isfinite(usual) else math.inf
        for about, own, error in zip(logs, regression, errors, strict=True):
            if error > most:
                refused.append((about["path"], _not_of_it(serial, error, usual)))
            else:
                kept.append((about, own))
        fitted = [(about, own) for about, own in kept if about["use"] == "fit"]
        if not fitted:
            raise IdentificationError(f"robot '{serial}' has no usable log to fit")
        whole = tree([own for _, own in fitted])
        estimator = MAP().fit(whole)
        fit = estimator.result_
        inflation = np.ones(len(whole.groups)) if fit.posterior.inflation is None else fit.posterior.inflation
        validation = [own for about, own in kept if about["use"] == "validate"]
        error = _held_out(validation, [own for _, own in fitted], estimator.coef_)
        verdict = _verdict(judge(fit), serial, error)
        weights = 1.0 / (np.asarray(estimator.sigma_) ** 2 * inflation)
        information, score = normal_equations(whole, weights)
        estimate = RobotEstimate(
            serial=serial,
            robot=job.name,
            logs=tuple(about["path"] for about, _ in kept),
            rows=whole.rows,
            information=information,
            score=score,
            values=fit.values,
            std=fit.std,
            training=fit.training_relative,
            held_out=error,
            verdict=verdict,
            temperature=_mean([(about["temperature"], own.rows) for about, own in fitted]),
            payload=_mean([(about["load"], own.rows) for about, own in fitted]),
            periods=_periods(fitted, weights, np.asarray(WLS().fit(whole).coef_)),
            inflation=float(inflation[0]),
        )
        with tempfile.TemporaryDirectory(prefix="dynident-") as folder:
            text = fit.save(Path(folder) / "fit.json").read_text(encoding="utf-8")
    return estimate, text, refused


def foreign(regression: Regression, references: Sequence[Array]) -> float:
    """Return the median relative error of a log under the models of other logs of its type."""
    size = sum(group.effort_square for group in regression.groups)
    errors = [math.sqrt(sum(group.residual(beta) for group in regression.groups) / size) for beta in references if size > 0.0]
    return float(np.median(errors)) if errors else 0.0


def relative_errors(job: Job, factors: bytes, references: Sequence[Array]) -> float:
    """Return `foreign` of stored factors."""
    return foreign(Regression.from_bytes(factors, job.robot, job.base()), references)


def _not_of_it(serial: str, error: float, usual: float) -> str:
    return (
        f"it does not match robot '{serial}': {100 * error:.0f} % of its effort is unexplained, {100 * usual:.1f} % is "
        "usual; left out: check serial, effort unit and signs"
    )


def normal_equations(regression: Regression, weights: Array) -> tuple[Array, Array]:
    """Return sum_g w_g W_g^T W_g (b, b) and sum_g w_g W_g^T tau_g (b,)."""
    b = regression.base.rank
    information, score = np.zeros((b, b)), np.zeros(b)
    for group, weight in zip(regression.groups, weights, strict=True):
        W, y = group.R[:, :-1], group.R[:, -1]
        information[np.ix_(group.columns, group.columns)] += weight * W.T @ W
        score[group.columns] += weight * W.T @ y
    return information, score


def _held_out(validation: Sequence[Regression], fitted: Sequence[Regression], coef: Array) -> float:
    """Return ||e|| / ||tau|| of logs not fitted: those for validation, else the newest under a fit of the others."""
    if not validation:
        if len(fitted) < 2:
            return math.nan
        validation, coef = fitted[-1:], MAP().fit(tree(fitted[:-1])).coef_
    wrong = sum(group.residual(coef) for own in validation for group in own.groups)
    return math.sqrt(wrong / sum(group.effort_square for own in validation for group in own.groups))


def _verdict(found: Verdict, serial: str, error: float) -> Verdict:
    """Return the verdict of a fit with the error on held-out factors."""
    if not math.isfinite(error):
        return replace(found, robot=serial)
    sentence = f"relative error on held-out logs is {100 * error:.2f} % (limit {100 * HELD_OUT:.0f} %)"
    check = Check("held_out_error", error <= HELD_OUT, error, HELD_OUT, sentence)
    return replace(found, robot=serial, validated=True, checks=(check, *found.checks))


def _mean(pairs: Sequence[tuple[float | None, int]]) -> float:
    known = [(value, rows) for value, rows in pairs if value is not None]
    return float(np.average([v for v, _ in known], weights=[r for _, r in known])) if known else math.nan


def _periods(fitted: Sequence[tuple[Mapping[str, Any], Regression]], weights: Array, coef: Array) -> tuple[RobotPeriod, ...]:
    """Return, for every period, the change of each standard parameter alone that explains the difference from all periods.

    With g = h - H beta of the period and k the column of a parameter in K: d = k^T g / k^T H k, with the precision k^T H k.
    """
    names = sorted({str(about["period"]) for about, _ in fitted if about["period"]})
    found = []
    for name in names if len(names) > 1 else ():
        own = [(about, part) for about, part in fitted if about["period"] == name]
        joint = tree([part for _, part in own])
        if len(joint.groups) != len(weights):
            continue
        information, score = normal_equations(joint, weights)
        K = joint.base.regrouping
        precision = np.einsum("ip,ij,jp->p", K, information, K)
        pull = K.T @ (score - information @ coef)
        change = np.divide(pull, precision, out=np.zeros_like(pull), where=precision > 0.0)
        day = _mean([(float(about["day"]), part.rows) for about, part in own])
        temperature = _mean([(about["temperature"], part.rows) for about, part in own])
        found.append(RobotPeriod(name, day, temperature, change, precision))
    return tuple(found)
