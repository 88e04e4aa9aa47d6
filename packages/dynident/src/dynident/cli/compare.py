"""The command that compares estimators."""

from __future__ import annotations

from pathlib import Path

import dynident as di
from dynident.cli.consoles import out, print_json
from dynident.cli.estimators import AS_NEEDED, NO_LOOP, FilterOptions, LoopOptions
from dynident.cli.options import AS_LOGGED, AS_WRITTEN, AsJson, LogOptions, Robot, RobotOptions
from dynident.cli.progress import progress
from dynident.cli.words import in_options
from dynident.errors import DynidentError


def compare(
    robot: Robot,
    logs: list[Path],
    /,
    *,
    logged: LogOptions = AS_LOGGED,
    validate: list[Path] | None = None,
    looped: LoopOptions = NO_LOOP,
    described: RobotOptions = AS_WRITTEN,
    filtered: FilterOptions = AS_NEEDED,
    as_json: AsJson = False,
) -> int:
    """Fit every estimator to the same logs: errors, coverage, time, and whether least squares is biased.

    Example: dynident compare robot.urdf run.csv --effort joint_torque --validate other.csv

    Parameters
    ----------
    logs
        Logs to fit, all of the same robot.
    validate
        Log that is not fitted, to judge the models on; several times. The last third of the logs when omitted.
    """
    looped.check_loop()
    read = logged.reader()
    with progress(3) as step:
        step("reading the robot and its logs")
        mechanism = described.robot(robot)
        training, held_out = [read(path) for path in logs], [read(path) for path in validate or []]
        step("fitting all estimators")
        if any(log.effort_kind == "none" for log in training):
            raise DynidentError(
                f"log '{training[0].name}' has no efforts; fit its positions with identify --estimator output-error"
            )
        closed, options = looped.closed(mechanism, training), filtered.options()
        found = di.compare(mechanism, training, held_out or None, period=looped.period, loop=closed, **options)
        step("done")
    if as_json:
        print_json(found.table())
    else:
        out.print(in_options(found.summary()))
    return 0
