"""The whole workflow in one call: ``di.identify(robot, run, validate=other)``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import dynident as di  # its names are loaded on first use

TYPE_CHECKING = False  # as of `typing`, which takes longer to import than the rest of ``import dynident``
if TYPE_CHECKING:
    from typing import Any

File = str | os.PathLike[str]


def identify(
    robot: di.Mechanism | File,
    logs: di.Log | File | Sequence[di.Log | File],
    validate: di.Log | File | Sequence[di.Log | File] = (),
    *,
    effort: str | None = None,
    laws: Any = None,
    estimator: Any = None,
    data: di.Regression | None = None,
    base: di.BaseParameters | None = None,
    projection: str | tuple[str, ...] = "gls",
    essential: float | None = None,
    contributing: float | None = None,
    progress: Callable[[str], None] | None = None,
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
        As in `fit_friction`, such as "auto"; the joint terms of the robot when omitted.
    estimator : estimator, optional
        Such as ``di.WLS()``; ``di.MAP()`` when omitted.
    data : Regression, optional
        Regression data of `logs`; computed when omitted.
    base : BaseParameters, optional
        Base parameters to fit; found when omitted.
    projection : str or tuple of str
        Robots with loops, as in `Regression.from_log`.
    essential, contributing : float, optional
        Drop parameters, as `essential_parameters` or `contributing_parameters` do with this limit.
    progress : callable, optional
        Called with a few words before each step.
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
    from dynident.identify.estimators.entropic import Entropic  # noqa: PLC0415 - `import dynident` loads this module
    from dynident.identify.estimators.essential import contributing_parameters  # noqa: PLC0415
    from dynident.identify.estimators.least_squares import Estimator, fit_of  # noqa: PLC0415
    from dynident.validate.diagnosis.inspection import with_findings  # noqa: PLC0415

    def read(given: di.Log | File) -> di.Log:
        return given if isinstance(given, di.Log) else di.Log.read(given, effort=effort)

    def several(given: di.Log | File | Sequence[di.Log | File]) -> Sequence[di.Log | File]:
        return [given] if isinstance(given, di.Log | str | os.PathLike) else given

    step = progress or (lambda text: None)
    mechanism = robot if isinstance(robot, di.Mechanism) else di.mechanism.read_robot(robot)
    runs, others = ([read(each) for each in several(given)] for given in (logs, validate))
    solver: Any = di.MAP() if estimator is None else estimator
    step("estimating")
    if laws is not None:
        fit = di.fit_friction(mechanism, runs, laws, options, None if projection == "gls" else projection, solver)
    else:
        if data is None:
            rows = isinstance(solver, Estimator) and not isinstance(solver, di.MAP | di.WLS | di.OLS | Entropic)
            data = di.Regression.from_logs(mechanism, runs, base, projection, keep_rows=rows, **options)
        if essential is not None:
            fit = di.essential_parameters(data, solver, essential)
        elif contributing is not None:
            fit = contributing_parameters(data, solver, contributing)
        else:
            fit = fit_of(solver, data)
    fit, scores = with_findings(fit), []
    for log in others:
        step(f"validating on {log.name}")
        scores.append(fit.score(log))
    verdict = di.judge(fit, scores)
    for log in runs:
        if log.effort_kind != "none":
            step(f"comparing with {log.name}")
            scores.append(fit.score(log, allow_training=True))
    return di.report.Identification(fit, tuple(scores), verdict)
