"""All estimators on the same logs: errors, coverage, time, and whether least squares is biased."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.errors import DynidentError, DynidentWarning, require
from dynident.identify.base import base_parameters
from dynident.identify.estimators.bias import LeastSquaresBias, least_squares_bias
from dynident.identify.estimators.direct import DIDIM, simulated_instruments
from dynident.identify.estimators.gls import GLS
from dynident.identify.estimators.instrumental import IV
from dynident.identify.estimators.least_squares import OLS, WLS, fit_of
from dynident.identify.estimators.map import MAP
from dynident.identify.estimators.output_error import OutputError
from dynident.identify.estimators.robust import IRLS
from dynident.identify.estimators.total import TLS
from dynident.identify.fit import Fit
from dynident.identify.regression.regression import Regression
from dynident.mechanism.mechanism import Mechanism
from dynident.parallel import gathered
from dynident.results import Frozen, Result
from dynident.signals.log import Log
from dynident.signals.matching import match
from dynident.simulate.closed_loop import ClosedLoop
from dynident.validate.holdout import split

MOST = 24  # most base parameters for output error by default


@dataclass(frozen=True, eq=False)
class ComparisonRow(Frozen):
    """One estimator."""

    name: str  # Name of the estimator
    fit: Fit | None  # Its result
    training: float
    error: float
    coverage: float
    seconds: float  # Time of the fit, without the common preparation
    note: str = ""  # Reason of failure, or warnings


@dataclass(frozen=True, eq=False)
class Comparison(Result):
    """All estimators on the same logs."""

    robot: str  #: Name of the robot
    logs: tuple[str, ...]  #: Logs of the fits
    held_out: tuple[str, ...]  #: Logs of the errors
    rows: tuple[ComparisonRow, ...]  #: One per estimator
    bias: LeastSquaresBias  #: Whether least squares is biased
    description: float  #: Held-out error of the untouched description

    def __getitem__(self, name: str) -> ComparisonRow:
        """Return the row of an estimator."""
        for row in self.rows:
            if row.name == name:
                return row
        raise DynidentError(f"no estimator is called '{name}'; there are {', '.join(row.name for row in self.rows)}")

    @property
    def best(self) -> ComparisonRow:
        """The estimator with the least held-out error."""
        return min(self.rows, key=lambda row: row.error if np.isfinite(row.error) else np.inf)

    def summary(self) -> str:
        """Return the comparison as text: table, and bias of least squares."""
        width = max(len(row.name) for row in self.rows)
        lines = [
            f"{self.robot}: fitted to {', '.join(self.logs)}; errors on {', '.join(self.held_out)} (held out)",
            f"{'estimator':<{width}}  {'training':>9}  {'held out':>9}  {'coverage':>8}  {'time':>8}",
        ]
        for row in self.rows:
            if row.fit is None:
                lines.append(f"{row.name:<{width}}  not possible: {row.note}")
                continue
            numbers = (
                f"{100 * row.training:>8.2f} %  {100 * row.error:>8.2f} %  {100 * row.coverage:>6.1f} %  {row.seconds:>6.2f} s"
            )
            lines.append(f"{row.name:<{width}}  {numbers}" + (f"  {row.note}" if row.note else ""))
        if np.isfinite(self.description):
            lines.append(f"{'description':<{width}}  {'-':>9}  {100 * self.description:>8.2f} %")
        return "\n".join([*lines, "", *self.bias.sentences])

    def table(self) -> dict[str, Any]:
        """Return everything except the fits, ready for JSON; `to_dict` and `save` include the fits."""
        return {
            "robot": self.robot,
            "logs": list(self.logs),
            "held_out": list(self.held_out),
            "estimators": [
                {
                    "name": row.name,
                    "training": row.training,
                    "error": row.error,
                    "coverage": row.coverage,
                    "seconds": row.seconds,
                    "note": row.note,
                }
                for row in self.rows
            ],
            "description": self.description,
            "best": self.best.name,
            "bias": self.bias.to_dict(),
        }


def standard_estimators(evidence: Regression, period: float | None = None, loop: ClosedLoop | None = None) -> dict[str, Any]:
    """Return the default estimators of a comparison.

    Parameters
    ----------
    evidence : Regression
        Regression data to fit; instruments from the reference need logs with a reference.
    period : float, optional
        Period of the motion [s], for instruments from other periods.
    loop : ClosedLoop, optional
        The closed loop of the robot, for estimators that simulate it. `OutputError` is among them up to 24 base parameters:
        it takes two simulations per parameter and step, minutes for six axes.

    Returns
    -------
    dict of str to estimator
        By name, not fitted.
    """
    found: dict[str, Any] = {
        "OLS": OLS(),
        "WLS": WLS(),
        "GLS": GLS(),
        "IRLS Huber": IRLS(),
        "IRLS Tukey": IRLS(loss="tukey"),
        "TLS": TLS(),
    }
    if all(part.reference is not None for part in evidence.stretches):
        found["IV reference"] = IV()
    if period is not None:
        found["IV periods"] = IV(instruments="periods", period=period)
    if loop is not None:
        possible = MAP(recovery="physical").fit(evidence).result_  # the least-squares model may be impossible to simulate
        found["IV simulated"] = IV(instruments=simulated_instruments(loop, possible))
        found["DIDIM"] = DIDIM(loop=loop)
        if evidence.base.rank <= MOST:
            found["OutputError"] = OutputError(loop=loop, start=possible, iterations=4)
    found["WLS physical"] = WLS(recovery="physical")
    found["MAP"] = MAP()
    return found


def compare(
    robot: Mechanism,
    logs: Log | Sequence[Log],
    validate: Log | Sequence[Log] | None = None,
    *,
    estimators: Mapping[str, Any] | None = None,
    period: float | None = None,
    loop: ClosedLoop | None = None,
    client: Any = None,
    **options: Any,
) -> Comparison:
    """Return errors, coverage, time and bias of all estimators, fitted to the same logs and judged on others.

    Parameters
    ----------
    robot, logs
        Robot, and one or more logs to fit.
    validate : Log or sequence of Log, optional
        Held-out logs; the last third of every log when omitted.
    estimators : mapping of str to estimator, optional
        `standard_estimators` when omitted. Physically consistent ones are judged as exported.
    period : float, optional
        Period of the motion [s], for instruments from other periods.
    loop : ClosedLoop, optional
        The closed loop of the robot, for DIDIM, output error and simulated instruments; its references are those of the logs.
    client
        A dask client or executor; this process when omitted.
    **options
        Passed to `dynident.signals.prepare`.
    """
    require(robot, Mechanism, "robot")
    training = _several(logs, "logs")
    held_out = [] if validate is None else _several(validate, "validate")
    if not held_out:
        parts = [split(log) for log in training]
        training, held_out = [first for first, _ in parts], [last for _, last in parts]
    base = base_parameters(match(robot, training[0]).mechanism)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)  # every other command reports the quality of the log
        evidence = Regression.from_logs(robot, training, base, **options, keep_rows=True)
    chosen = standard_estimators(evidence, period, loop) if estimators is None else estimators
    items = [(name, estimator, evidence, held_out) for name, estimator in chosen.items()]
    rows = tuple(_row(*item) for item in items) if client is None else tuple(gathered(client, _row, items))
    if not any(row.fit for row in rows):
        raise DynidentError(f"no estimator could be fitted: {rows[0].note if rows else 'none was given'}")
    found = next(row.fit for row in rows if row.fit is not None)
    instruments = IV(instruments="periods", period=period) if period is not None else None
    return Comparison(
        robot.name,
        tuple(log.name for log in training),
        tuple(log.name for log in held_out),
        rows,
        least_squares_bias(evidence, instruments),
        _description(found, held_out),
    )


def _several(logs: Log | Sequence[Log], name: str) -> list[Log]:
    found = [logs] if isinstance(logs, Log) else list(logs)
    if not found or not all(isinstance(log, Log) for log in found):
        raise DynidentError(f"{name} is {type(logs).__name__}; give one Log or several")
    return found


def _row(name: str, estimator: Any, evidence: Regression, held_out: Sequence[Log]) -> ComparisonRow:
    """Fit one estimator and judge it; an error gives a row too."""
    nothing = float("nan")
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", DynidentWarning)
        try:
            fit = fit_of(estimator, evidence, f"estimators[{name!r}]")
        except DynidentError as error:
            return ComparisonRow(name, None, nothing, nothing, nothing, time.perf_counter() - started, str(error))
    seconds = time.perf_counter() - started
    texts = [str(w.message) for w in told if issubclass(w.category, DynidentWarning)]
    note = "; ".join(
        {re.sub(r"[\d.]+", "", text): text for text in texts}.values()
    )  # simulations repeat warnings with other numbers
    relative, coverage = _judged(fit, held_out)
    return ComparisonRow(name, fit, _training(fit, evidence), relative, coverage, seconds, note)


def _judged(fit: Fit, held_out: Sequence[Log]) -> tuple[float, float]:
    """Return relative error and coverage over all held-out logs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)
        scores = [fit.score(log) for log in held_out]
    wrong = sum(float(np.sum((s.measured - s.predicted) ** 2)) for s in scores)
    size = sum(float(np.sum(s.measured**2)) for s in scores)
    samples = np.array([s.measured.size for s in scores], dtype=float)
    return float(np.sqrt(wrong / size)), float(np.average([s.coverage for s in scores], weights=samples))


def _training(fit: Fit, evidence: Regression) -> float:
    total = sum(group.effort_square for group in evidence.groups)
    return float(np.sqrt(sum(group.residual(fit.values) for group in evidence.groups) / total))


def _description(fit: Fit, held_out: Sequence[Log]) -> float:
    """Return the held-out error of the robot as described; NaN if the description has no bodies with mass."""
    values = fit.described
    return _judged(fit.altered(values=values), held_out)[0] if np.any(values) else float("nan")
