"""The friction command: curves per temperature, warm-up, time constants and robots compared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import dynident as di
from dynident.cli.shared import (
    Arg,
    AsJson,
    Debug,
    Effort,
    Gain,
    Joints,
    LogRate,
    Quiet,
    Robot,
    Schema,
    Search,
    Sidecar,
    Topic,
    Trust,
    Unit,
    app,
    check_output,
    log_reader,
    out,
    print_json,
    progress,
    robot_of,
)
from dynident.files import write_atomic
from dynident.outputs import output_set


@app.command(epilog="Example: dynident friction robot.urdf cold.csv warm.csv --effort joint_torque -o friction/")
def friction(
    robot: Robot,
    logs: Annotated[
        list[Path], typer.Argument(help="Logs with constant-speed plateaus in time order, or a campaign.", show_default=False)
    ],
    effort: Effort = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for friction.html and friction.json.")] = Path(
        "friction"
    ),
    robots: Annotated[str | None, typer.Option(help="Robot of each log, by commas, to compare several of one kind.")] = None,
    by: Annotated[str, typer.Option(help="How plateaus make curves: auto, temperature, time or all.")] = "auto",
    level: Annotated[float, typer.Option(help="Speed followed over time, as a part of the top speed.")] = 0.6,
    tolerance: Annotated[float, typer.Option(help="Drift that the recommended warm-up may leave.")] = 0.02,
    sidecar: Sidecar = None,
    search: Search = None,
    arg: Arg = None,
    trust: Trust = False,
    schema: Schema = None,
    joints: Joints = None,
    gain: Gain = None,
    topic: Topic = None,
    unit: Unit = None,
    log_rate: LogRate = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Study friction: against speed per temperature, over time with warm-up models, time constants, robots compared."""
    from dynident.identify import friction_study  # noqa: PLC0415 - only this command needs it
    from dynident.report import write_friction_report  # noqa: PLC0415 - matplotlib
    from dynident.signals import CampaignLog  # noqa: PLC0415

    check_output(output, folder=True)
    read_log = log_reader(effort, schema, joints, gain, topic, unit, log_rate)
    with progress(len(logs) + 3, quiet) as step:
        step("reading the robot")
        mechanism = robot_of(robot, sidecar, search, arg, trust)
        read: list[di.Log] = []
        for path in logs:
            step(f"reading {path.name}")
            found = read_log(path)
            read += list(found.cycles().values()) if isinstance(found, CampaignLog) else [found]
        step("finding plateaus and fitting")
        owners = None if robots is None else [name.strip() for name in robots.split(",")]
        study = friction_study(mechanism, read, robots=owners, by=by, level=level, tolerance=tolerance)
        step("writing the report")
        with output_set(output, ("friction.html", "friction.json")) as stage:
            write_friction_report(stage / "friction.html", study)
            write_atomic(stage / "friction.json", study.to_json())
    if as_json:
        print_json(study.to_json())
    elif not quiet:
        out.print(study.summary())
        out.print(f"\nwritten: {output / 'friction.html'}, {output / 'friction.json'}")
    return 0
