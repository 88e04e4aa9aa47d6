"""The command that compares estimators."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import dynident as di
from dynident.cli.core import _options
from dynident.cli.machines import ready_machine
from dynident.cli.shared import (
    AS_LOGGED,
    AS_WRITTEN,
    AsJson,
    Debug,
    Effort,
    LogOptions,
    Robot,
    RobotOptions,
    Terms,
    app,
    out,
    print_json,
    progress,
)
from dynident.errors import DynidentError

if TYPE_CHECKING:
    from dynident.simulate import ClosedLoop


@app.command(epilog="Example: dynident compare robot.urdf run.csv --effort joint_torque --validate other.csv")
def compare(
    robot: Robot,
    logs: Annotated[list[Path], typer.Argument(help="Logs to fit, all of the same robot.", show_default=False)],
    effort: Effort = None,
    validate: Annotated[
        list[Path] | None, typer.Option(help="Held-out log; may be given several times. The last third of the logs if none.")
    ] = None,
    period: Annotated[float | None, typer.Option(help="Period of the motion in s: other periods serve as instruments.")] = None,
    loop: Annotated[
        str | None,
        typer.Option(
            help="Closed loop, for DIDIM and OutputError: a ready machine, or pd, feedforward, computed_torque or cascade with "
            "ideal drives. The logs must have a reference."
        ),
    ] = None,
    bandwidth: Annotated[float, typer.Option(help="Bandwidth of such a controller [Hz].")] = 10.0,
    described: RobotOptions = AS_WRITTEN,
    logged: LogOptions = AS_LOGGED,
    terms: Terms = None,
    cutoff: Annotated[str, typer.Option(help="Low-pass frequency in Hz, or auto.")] = "auto",
    decimation: Annotated[str, typer.Option(help="Factor of the parallel decimation, or auto.")] = "auto",
    standstill: Annotated[
        float, typer.Option(help="Leave out speeds below this share of a joint's RMS speed, where it may stick (0.1 is usual).")
    ] = 0.0,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Fit every estimator to the same logs: errors, coverage, time, and whether least squares is biased."""
    options = _options(cutoff, decimation, standstill)
    read = logged.reader(effort)
    with progress(3) as step:
        step("reading the robot and its logs")
        mechanism = described.robot(robot, terms)
        training, held_out = [read(path) for path in logs], [read(path) for path in validate or []]
        step("fitting all estimators")
        closed = None if loop is None else _closed_loop(mechanism, loop, bandwidth, training)
        found = di.compare(mechanism, training, held_out or None, period=period, loop=closed, **options)
        step("done")
    if as_json:
        print_json(found.table())
    else:
        out.print(found.summary())
    return 0


def _closed_loop(mechanism: di.Mechanism, name: str, bandwidth: float, logs: list[di.Log]) -> ClosedLoop:
    """Return the loop that was named, with the references of the logs."""
    from dynident.robots import ROBOTS  # noqa: PLC0415 - rarely needed
    from dynident.simulate import ClosedLoop, reference_motion, standard_machine  # noqa: PLC0415

    if mechanism.loops:
        raise DynidentError(f"--loop: robot '{mechanism.name}' has loops; estimators that simulate are for trees")
    references = [reference_motion(log) for log in logs]
    if name in ROBOTS:
        return ClosedLoop(ready_machine(name), references)
    return ClosedLoop(standard_machine(mechanism, references[0].q, controller=name, bandwidth=bandwidth), references)
