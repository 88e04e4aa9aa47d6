"""The whole workflow in one call: ``di.identify(robot, run, validate=other)``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import dynident as di  # its names are loaded on first use

File = str | os.PathLike[str]


def identify(
    robot: di.Mechanism | File,
    logs: di.Log | File | Sequence[di.Log | File],
    validate: di.Log | File | Sequence[di.Log | File] = (),
    *,
    effort: str | None = None,
    laws: Any = None,
    estimator: Any = None,
    **options: Any,
) -> di.report.Identification:
    """Identify a robot from logs and judge the result on others.

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
    from dynident.identify.estimators.least_squares import fit_of  # noqa: PLC0415 - `import dynident` loads this module
    from dynident.validate.diagnosis.inspection import with_findings  # noqa: PLC0415 - `import dynident` loads this module

    def read(given: di.Log | File) -> di.Log:
        return given if isinstance(given, di.Log) else di.Log.read(given, effort=effort)

    def several(given: di.Log | File | Sequence[di.Log | File]) -> Sequence[di.Log | File]:
        return [given] if isinstance(given, di.Log | str | os.PathLike) else given

    mechanism = robot if isinstance(robot, di.Mechanism) else di.mechanism.read_robot(robot)
    runs, others = ([read(each) for each in several(given)] for given in (logs, validate))
    solver = di.MAP() if estimator is None else estimator
    if laws is None:
        fit = fit_of(solver, di.Regression.from_logs(mechanism, runs, **options))
    else:
        fit = di.fit_log(mechanism, runs, laws, options, None, solver)
    fit = with_findings(fit)
    scores = [fit.score(log) for log in others]
    verdict = di.judge(fit, scores)
    return di.report.Identification(fit, (*scores, *(fit.score(log, allow_training=True) for log in runs)), verdict)
