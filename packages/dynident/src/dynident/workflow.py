"""The whole workflow in one call: ``di.identify(robot, run)`` divides the data, fits, scores and judges."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence

import dynident as di  # its names are loaded on first use

TYPE_CHECKING = False  # as of `typing`, which takes longer to import than the rest of ``import dynident``
if TYPE_CHECKING:
    from typing import Any

    from dynident.signals.quality import Finding
    from dynident.signals.stream import LogStream

SCORED = 4  # most held-out pieces of a stream that are kept and scored
File = str | os.PathLike[str]


def identify(
    robot: di.Mechanism | File,
    logs: di.Log | LogStream | File | Sequence[di.Log | File],
    validate: float | di.Log | File | Sequence[di.Log | File] = 1 / 3,
    *,
    effort: str | None = None,
    laws: Any = None,
    estimator: Any = None,
    data: di.Regression | None = None,
    base: di.BaseParameters | None = None,
    projection: str | tuple[str, ...] = "gls",
    essential: float | None = None,
    contributing: float | None = None,
    refit: bool = False,
    accept: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> di.report.Identification:
    """Identify a robot from logs and judge the result on data that were not fitted.

    Recordings of a plan (`dynident.excitation.refer`, campaigns) are divided by it: stages for training are fitted, stages for
    validation judge the fit.

    Parameters
    ----------
    robot : Mechanism or path-like
        The robot, or its file.
    logs : Log, LogStream, path-like, data frame or sequence of these
        Logs to fit. Pieces of a stream are held out, and a few of them, evenly spread, are scored.
    validate : float, Log, path-like, data frame or sequence of these
        Held-out logs. A number is the held-out share of `logs` if no stage of a plan validates: whole logs of several, the end
        of a single one; 0 for none, which the verdict reports.
    effort : str, optional
        Effort kind of logs that are given as files or data frames, as in `Log.read`.
    laws : friction laws, optional
        As in `fit_friction`, such as "auto"; the joint terms of the robot when omitted.
    estimator : estimator, optional
        Such as ``di.WLS()``; ``di.MAP()`` when omitted.
    data : Regression, optional
        Regression data of `logs`, which are then fitted as a whole; computed when omitted.
    base : BaseParameters, optional
        Base parameters to fit; found when omitted.
    projection : str or tuple of str
        Robots with loops, as in `Regression.from_log`.
    essential, contributing : float, optional
        Drop parameters by `essential_parameters` or `contributing_parameters` with this limit.
    refit : bool
        Fit once more to all data after validation; scores and verdict are those of the first fit.
    accept : sequence of str
        Codes of findings that do not fail the verdict, as in `judge`.
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
    from dynident.identify.estimators.essential import contributing_parameters  # noqa: PLC0415 - `import dynident` loads this module
    from dynident.identify.estimators.least_squares import Estimator, fit_of  # noqa: PLC0415
    from dynident.signals.matching import with_drive_gains  # noqa: PLC0415
    from dynident.signals.quality import note  # noqa: PLC0415
    from dynident.signals.stream import LogStream  # noqa: PLC0415
    from dynident.validate.diagnosis.inspection import with_findings, without_contacts  # noqa: PLC0415

    def fitted(training: Sequence[di.Log] | Iterator[di.Log], given: di.Regression | None) -> di.Fit:
        if laws is not None:
            if not isinstance(training, Sequence):
                raise di.DynidentError("friction laws cannot be fitted to a stream; give a log that fits into memory")
            return di.fit_friction(mechanism, training, laws, options, None if projection == "gls" else projection, solver)
        if given is None:
            rows = isinstance(solver, Estimator) and not isinstance(solver, di.MAP | di.WLS | di.OLS)
            given = di.Regression.from_logs(mechanism, training, base, projection, keep_rows=rows, **options)
        if essential is not None:
            return di.essential_parameters(given, solver, essential)
        return fit_of(solver, given) if contributing is None else contributing_parameters(given, solver, contributing)

    step = progress or (lambda text: None)
    mechanism = robot if isinstance(robot, di.Mechanism) else di.mechanism.read_robot(robot)
    solver: Any = di.MAP() if estimator is None else estimator
    share = float(validate) if isinstance(validate, int | float) else 0.0
    others = [] if isinstance(validate, int | float) else _read(validate, effort)
    if isinstance(logs, LogStream):
        pieces = _Pieces(logs, 0.0 if others else share, step)
        mechanism = with_drive_gains(mechanism, next(iter(logs)))
        fit = with_findings(fitted(iter(pieces), data))
        training, held_out, how = pieces.first, [*pieces.held_out, *others], pieces.how or ", ".join(log.name for log in others)
    else:
        runs = _read(logs, effort)
        mechanism = with_drive_gains(mechanism, runs[0])
        training, held_out, how = (runs, others, "") if data is not None else divide(runs, others, share)
        step("estimating")
        pushed: tuple[Finding, ...] = ()
        if data is None:
            kept, pushed = without_contacts([*training, *held_out], mechanism, base, **options)
            training, held_out = kept[: len(training)], kept[len(training) :]
        fit = with_findings(fitted(training, data).noted(*pushed))
    scores = []
    for log in held_out:
        step(f"validating on {log.name}")
        scores.append(fit.score(log))
    verdict = di.judge(fit, scores, accept)
    for log in training:
        if log.effort_kind != "none":
            step(f"comparing with {log.name}")
            scores.append(fit.score(log, allow_training=True))
    if refit:
        if not held_out or data is not None:
            raise di.DynidentError("refit=True (--refit) needs held-out data; hold out a part, or omit it")
        step("fitting all data")
        again = "fitted again to all data after validation; scores and verdict belong to the fit without the held-out data"
        fit = with_findings(fitted([*training, *held_out], None)).noted(note("refit", again))
    return di.report.Identification(fit, tuple(scores), verdict, how)


def _read(given: Any, effort: str | None) -> list[di.Log]:
    """Return the logs given as logs, files or data frames, one or several."""
    several = [given] if isinstance(given, di.Log | str | os.PathLike) or hasattr(given, "columns") else given
    if not isinstance(several, Iterable):
        raise di.DynidentError(f"a log is {given!r}; give a Log, a file, a data frame, or a list of these")
    return [each if isinstance(each, di.Log) else di.Log.read(each, effort=effort) for each in several]


class _Pieces:
    """Pieces of a stream to fit; a few held-out pieces are kept, evenly spread for any length."""

    def __init__(self, stream: LogStream, share: float, step: Callable[[str], None]) -> None:
        self.stream, self.share, self.step = stream, share, step
        self.first: list[di.Log] = []
        self.held_out: list[di.Log] = []
        self.how = ""

    def __iter__(self) -> Iterator[di.Log]:
        from dataclasses import replace  # noqa: PLC0415 - `import dynident` loads this module

        samples, apart, every = 0, 0, 1
        for k, piece in enumerate(self.stream):
            samples += len(piece)
            self.step(f"{piece.name}: {samples:,} samples")
            self.first = self.first or [piece]
            if int((k + 1) * self.share) == int(k * self.share):
                yield piece
                continue
            if apart % every == 0:
                self.held_out.append(replace(piece, name=f"{piece.name} from {piece.t[0]:.1f} s"))
            if len(self.held_out) > SCORED:
                del self.held_out[1::2]
                every *= 2
            apart += 1
        if apart:
            self.how = f"{apart} of {k + 1} pieces, of which {len(self.held_out)} are scored"


def divide(runs: Sequence[di.Log], others: Sequence[di.Log], share: float) -> tuple[list[di.Log], list[di.Log], str]:
    """Return logs to fit, held-out logs, and a description of the held-out data.

    Stages of plans decide, then the `others`; if neither holds data out, a `share` of the `runs` by time: whole logs of
    several, otherwise the end of the only one.
    """
    from dataclasses import replace  # noqa: PLC0415 - `import dynident` loads this module

    from dynident.excitation.plan import purpose_logs  # noqa: PLC0415
    from dynident.validate.holdout import split  # noqa: PLC0415

    if not 0.0 <= share < 1.0:
        raise di.DynidentError(f"validate is {share:g}; give the held-out share (--hold-out) as a number from 0 to below 1")
    training: list[di.Log] = []
    held_out: list[di.Log] = []
    for run in runs:
        stages = purpose_logs(run)
        if stages and "training" not in stages:
            known = ", ".join(stages)
            raise di.DynidentError(f"log '{run.name}' contains no complete training stage of its plan (it contains {known})")
        training += stages.get("training", [run])
        held_out += stages.get("validation", [])
    words = [f"stage {log.name}" for log in held_out]
    for other in others:
        found = purpose_logs(other).get("validation", [other])
        held_out += found
        words += [log.name for log in found]
    if held_out or share == 0.0 or any(log.effort_kind == "none" for log in training):
        return training, held_out, ", ".join(words[:3]) + (f" and {len(words) - 3} more" if len(words) > 3 else "")
    if len(training) > 1:
        total = sum(log.duration for log in training)
        last = [sum(log.duration for log in training[k:]) for k in range(1, len(training))]
        cut = 1 + min(range(len(last)), key=lambda k: abs(last[k] - share * total))
        return training[:cut], training[cut:], ", ".join(log.name for log in training[cut:])
    first, end = split(training[0], 1.0 - share)
    named = replace(end, name=f"{end.name} from {end.t[0]:.1f} s")
    return [first], [named], f"last {end.duration:.1f} s"
