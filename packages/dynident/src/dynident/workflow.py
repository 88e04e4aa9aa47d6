"""The whole workflow in one call: ``di.identify(robot, run, validate=other)``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynident.mechanism.mechanism import Mechanism
    from dynident.report.report import Identification
    from dynident.signals.log import Log

File = str | os.PathLike[str]


def identify(
    robot: Mechanism | File,
    logs: Log | File | Sequence[Log | File],
    validate: Log | File | Sequence[Log | File] = (),
    *,
    effort: str | None = None,
    laws: Any = None,
    estimator: Any = None,
    **options: Any,
) -> Identification:
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
    # Imported here because `import dynident` loads this module.
    from dynident.identify.estimators.least_squares import fit_of  # noqa: PLC0415
    from dynident.identify.estimators.map import MAP  # noqa: PLC0415
    from dynident.identify.friction.robot import fit_log  # noqa: PLC0415
    from dynident.identify.regression.regression import Regression  # noqa: PLC0415
    from dynident.mechanism.files import read_robot  # noqa: PLC0415
    from dynident.mechanism.mechanism import Mechanism  # noqa: PLC0415
    from dynident.report.report import Identification  # noqa: PLC0415
    from dynident.signals.log import Log  # noqa: PLC0415
    from dynident.validate.diagnosis.inspection import with_findings  # noqa: PLC0415
    from dynident.validate.verdict import judge  # noqa: PLC0415

    def read(given: Log | File) -> Log:
        return given if isinstance(given, Log) else Log.read(given, effort=effort)

    def several(given: Log | File | Sequence[Log | File]) -> Sequence[Log | File]:
        return [given] if isinstance(given, Log | str | os.PathLike) else given

    mechanism = robot if isinstance(robot, Mechanism) else read_robot(robot)
    runs, others = ([read(each) for each in several(given)] for given in (logs, validate))
    solver = MAP() if estimator is None else estimator
    if laws is None:
        fit = fit_of(solver, Regression.from_logs(mechanism, runs, **options))
    else:
        fit = fit_log(mechanism, runs, laws, options, None, solver)
    fit = with_findings(fit)
    scores = [fit.score(log) for log in others]
    verdict = judge(fit, scores)
    return Identification(fit, (*scores, *(fit.score(log, allow_training=True) for log in runs)), verdict)
