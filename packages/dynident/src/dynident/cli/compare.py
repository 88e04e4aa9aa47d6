"""The command that compares estimators."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import dynident as di
from dynident.cli.consoles import out, print_json, progress
from dynident.cli.core import AS_NEEDED, NO_LOOP
from dynident.cli.estimators import FilterOptions, LoopOptions
from dynident.cli.shared import AS_LOGGED, AS_WRITTEN, START, AsJson, Debug, Effort, LogOptions, Robot, RobotOptions, Terms, app
from dynident.cli.words import in_options
from dynident.errors import DynidentError


@app.command(panel=START, epilog="Example: dynident compare robot.urdf run.csv --effort joint_torque --validate other.csv")
def compare(
    robot: Robot,
    logs: Annotated[list[Path], typer.Argument(help="Logs to fit, all of the same robot.", show_default=False)],
    effort: Effort = None,
    validate: Annotated[
        list[Path] | None,
        typer.Option(
            help="Log that is not fitted, to judge the models on; several times. The last third of the logs when omitted."
        ),
    ] = None,
    looped: LoopOptions = NO_LOOP,
    described: RobotOptions = AS_WRITTEN,
    logged: LogOptions = AS_LOGGED,
    terms: Terms = None,
    filtered: FilterOptions = AS_NEEDED,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Fit every estimator to the same logs: errors, coverage, time, and whether least squares is biased."""
    looped.check_loop()
    read = logged.reader(effort)
    with progress(3) as step:
        step("reading the robot and its logs")
        mechanism = described.robot(robot, terms)
        training, held_out = [read(path) for path in logs], [read(path) for path in validate or []]
        step("fitting all estimators")
        if any(log.effort_kind == "none" for log in training):
            raise DynidentError(
                f"log '{training[0].name}' has no efforts to compare with; identify --estimator output-error fits its positions"
            )
        closed, options = looped.closed(mechanism, training), filtered.options()
        found = di.compare(mechanism, training, held_out or None, period=looped.period, loop=closed, **options)
        step("done")
    if as_json:
        print_json(found.table())
    else:
        out.print(in_options(found.summary()))
    return 0
