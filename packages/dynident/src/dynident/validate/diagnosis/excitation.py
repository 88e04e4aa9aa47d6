"""Sufficiency of a log: samples, motion, and equations for the base parameters of a robot."""

from __future__ import annotations

import warnings
from typing import Any

from dynident.errors import DynidentWarning, IdentificationError
from dynident.identify.base import BaseParameters
from dynident.identify.estimators.least_squares import WLS
from dynident.identify.regression.logs import slow_clock
from dynident.identify.regression.regression import Regression
from dynident.mechanism.mechanism import Mechanism
from dynident.signals.log import Log
from dynident.signals.quality import FEWEST, Finding, Quality
from dynident.validate.verdict import SHARE_GOOD_LIMIT

REMEDY = "record a longer or richer motion (dynident excite plans one)"
MOST = 0.5  # of the base parameters: if more are unidentifiable, a fit is mostly the description


def motion_findings(log: Log, quality: Quality) -> list[Finding]:
    """Return the finding about a log that is too short for any filter, has a wrong clock, or has no moving joint."""
    if len(log) < FEWEST:
        said = f"the log has {len(log)} samples, fewer than the {FEWEST} from which a spectrum can be seen; {REMEDY}"
        return [Finding("excitation", "time", "error", said, float(len(log)))]
    if said := slow_clock(log):
        return [Finding("clock", "time", "error", said, log.rate)]
    if len(quality.of("still")) == len(log.joints):
        return [Finding("excitation", "position", "error", f"no joint moves; {REMEDY}", 0.0)]
    return []


def short_finding(log: Log, rows: float, rank: int) -> Finding:
    """Return the finding about a log that gives a joint fewer independent equations than the robot has base parameters."""
    said = (
        f"{log.duration:.3g} s of this motion give each joint {rows:.0f} independent equations, and the robot has {rank} base "
        f"parameters: other findings may be chance; {REMEDY}"
    )
    return Finding("excitation", "position", "warning", said, rows / rank)


def parameter_findings(robot: Mechanism, log: Log, base: BaseParameters, **options: Any) -> list[Finding]:
    """Return the finding about base parameters of a robot that least squares of a log cannot determine.

    It is an error if most of them are hidden, or if some are and each joint has fewer independent equations than the robot
    has parameters: a fit would then repeat the description.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DynidentWarning)  # other findings report it
            data = Regression.from_log(robot, log, base, **options)
        fit = WLS().fit(data).result_
    except IdentificationError as error:
        return [Finding("excitation", "effort", "error", str(error), 1.0)]
    rows = sum(group.count * group.independence for group in data.groups)
    table = fit.observability()
    hidden = [row.name for row in table if row.verdict == "not excited"]
    good = sum(row.verdict == "good" for row in table) / len(table)
    severity = "error" if len(hidden) > MOST * base.rank or rows < len(data.groups) * base.rank else "warning"
    if rows < base.rank:
        said = f"{log.duration:.3g} s of this motion give {rows:.0f} independent equations for {base.rank} base parameters"
        return [Finding("excitation", "position", "error", f"{said}; {REMEDY}", rows / base.rank)]
    if hidden:
        listed = ", ".join(hidden[:6]) + (" ..." if len(hidden) > 6 else "")
        said = f"{len(hidden)} of {base.rank} base parameters are not excited ({listed})"
        dead = sorted(set(robot.coordinate_names) - {group.name for group in data.groups} if not robot.loops else ())
        remedy = f"no usable efforts of {', '.join(dead)}: log them before a richer motion" if dead else REMEDY
        return [Finding("excitation", "position", severity, f"{said}; {remedy}", len(hidden) / base.rank)]
    if good < SHARE_GOOD_LIMIT:
        said = f"least squares determine {good:.0%} of the base parameters to 10 % or better ({SHARE_GOOD_LIMIT:.0%} wanted)"
        return [Finding("excitation", "position", "warning", f"{said}; {REMEDY}", good)]
    return []
