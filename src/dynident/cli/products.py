"""Commands that put an identified model to work: monitor, payload."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import dynident as di
from dynident.cli.shared import (
    NOT_OK,
    AsJson,
    Debug,
    Effort,
    FitFile,
    Gain,
    Joints,
    LogRate,
    Robot,
    Schema,
    Search,
    Sidecar,
    Strict,
    Topic,
    Trust,
    Unit,
    app,
    check_output,
    log_reader,
    note,
    out,
    print_json,
    robot_of,
)
from dynident.files import read_text


@app.command(epilog="Example: dynident monitor robot.urdf out/fit.json run.csv --effort joint_torque --plot run.png")
def monitor(
    robot: Robot,
    fit: FitFile,
    logs: Annotated[list[Path], typer.Argument(help="Logs to watch.", show_default=False)],
    effort: Effort = None,
    bandwidth: Annotated[float | None, typer.Option(help="Of the observer [Hz]; that of the fit when omitted.")] = None,
    false_alarms: Annotated[float, typer.Option(help="False alarms per hour for noise like that of the fit.")] = 0.01,
    hold: Annotated[float, typer.Option(help="Time for which the flag stays [s].")] = 0.25,
    rest: Annotated[float, typer.Option(help="Speed below which a joint counts as standing [rad/s, m/s].")] = 0.02,
    healthy: Annotated[
        list[Path] | None, typer.Option(help="Run in which nothing touched the robot: raises thresholds to its noise.")
    ] = None,
    absent: Annotated[list[str] | None, typer.Option(help="Body of the fit that the robot does not carry.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw torques and thresholds to this file (one log).")] = None,
    c: Annotated[Path | None, typer.Option("--c", help="Write the monitor as C99 to this folder.")] = None,
    sidecar: Sidecar = None,
    search: Search = None,
    trust: Trust = False,
    schema: Schema = None,
    joints: Joints = None,
    gain: Gain = None,
    topic: Topic = None,
    unit: Unit = None,
    rate: LogRate = None,
    strict: Strict = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Watch logs with an identified model: external torques, their thresholds, and when something touched the robot."""
    del debug
    for path, folder in ((plot, False), (c, True)):
        if path is not None:
            check_output(path, folder)
    mechanism = robot_of(robot, sidecar, search, None, trust)
    model = di.Fit.from_json(read_text(fit, "a fit"), mechanism)
    read = log_reader(effort, schema, joints, gain, topic, unit, rate)
    options: dict[str, Any] = {"false_alarms": false_alarms, "hold": hold, "rest": rest, "absent": tuple(absent or ())}
    watching = di.monitor.Monitor(model, bandwidth=bandwidth, **options)
    for path in healthy or []:
        watching = watching.calibrated(read(path))
    if c is not None:
        watching.to_c(c)
        note(f"C99 of the monitor written to {c}")
    records = [watching.run(read(path)) for path in logs]
    if plot is not None:
        records[0].plot().savefig(plot, dpi=120)
    if as_json:
        print_json({"format": "dynident-monitor-1", "logs": [record.to_dict() for record in records]})
    else:
        out.print("\n\n".join(record.summary() for record in records))
    return NOT_OK if strict and any(record.events for record in records) else 0
