"""`di.identify(robot, run, validate=other)`: read, fit, validate and judge in one call."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynident.identify import MAP, Fit, Regression, Score, fit_log, fit_of
from dynident.mechanism import Mechanism, read_robot
from dynident.report.report import write_report
from dynident.results import Result
from dynident.signals import Log
from dynident.tables import Tabular
from dynident.validate import Verdict, judge

File = str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class Identification(Tabular, Result):
    """All that identifying a robot gives.

    Parameters
    ----------
    fit : Fit
        The identified model.
    scores : tuple of Score
        On the held-out logs, then on the training logs.
    verdict : Verdict
        Whether it can be trusted.
    """

    fit: Fit
    scores: tuple[Score, ...]
    verdict: Verdict

    def __repr__(self) -> str:
        errors = [f"'{score.name}' {100 * score.metrics.relative:.2f} %" for score in self.scores if not score.training]
        held_out = f"held out: {', '.join(errors)}" if errors else "NOT VALIDATED"
        return f"Identification({self.fit.mechanism.name}: {held_out}; fit, scores, verdict; report(path) writes the page)"

    @property
    def robot(self) -> Mechanism:
        """The robot with its identified parameters."""
        return self.fit.identified

    def summary(self) -> str:
        """Return fit, held-out scores and verdict as text.

        Returns
        -------
        str
            Text.
        """
        held_out = (score.summary() for score in self.scores if not score.training)
        return "\n\n".join([self.fit.summary(), *held_out, self.verdict.summary()])

    def plot(self) -> Any:
        """Draw measured and predicted efforts of the first log, a held-out one if there is any.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        return self.scores[0].plot()

    def report(self, path: File = "report.html") -> Path:
        """Write the HTML report.

        Parameters
        ----------
        path : path-like
            File to write.

        Returns
        -------
        pathlib.Path
            The file.
        """
        return write_report(path, self.fit, self.scores, self.verdict)

    def _columns(self) -> Any:
        return self.fit._columns()

    def _head(self) -> str:
        return repr(self)


def identify_robot(
    robot: Mechanism | File,
    logs: Log | File | Sequence[Log | File],
    validate: Log | File | Sequence[Log | File] = (),
    *,
    effort: str | None = None,
    laws: Any = None,
    estimator: Any = None,
    **options: Any,
) -> Identification:
    """Identify a robot from logs and judge the result on others; ``di.identify`` is the short name.

    Parameters
    ----------
    robot : Mechanism or path-like
        The robot, or its URDF, xacro or MJCF file.
    logs : Log, path-like or sequence of these
        What to fit.
    validate : Log, path-like or sequence of these
        Held-out logs; without any nothing is validated, and the verdict says so.
    effort : str, optional
        Effort kind of logs that are given as files, as in `Log.read`.
    laws : friction laws, optional
        As in `fit_log`, such as "auto"; the joint terms of the robot when omitted.
    estimator : estimator, optional
        Such as ``di.WLS()``; ``di.MAP()`` when omitted.
    **options
        Options of `dynident.signals.prepare`.

    Returns
    -------
    Identification
        Fit, scores and verdict.

    Examples
    --------
    >>> import dynident as di
    >>> arm = di.examples.arm6()
    >>> done = di.identify(arm.robot, arm.run, validate=arm.other)
    >>> done.verdict.ok
    True
    """
    mechanism = robot if isinstance(robot, Mechanism) else read_robot(robot)
    runs, others = ([_log(each, effort) for each in _several(given)] for given in (logs, validate))
    solver = MAP() if estimator is None else estimator
    if laws is None:
        fit = fit_of(solver, Regression.from_logs(mechanism, runs, **options))
    else:
        fit = fit_log(mechanism, runs, laws, options, None, solver)
    scores = [fit.score(log) for log in others]
    verdict = judge(fit, scores)
    return Identification(fit, (*scores, *(fit.score(log, allow_training=True) for log in runs)), verdict)


def _several(given: Log | File | Sequence[Log | File]) -> Sequence[Log | File]:
    return [given] if isinstance(given, Log | str | os.PathLike) else given


def _log(given: Log | File, effort: str | None) -> Log:
    return given if isinstance(given, Log) else Log.read(given, effort=effort)
