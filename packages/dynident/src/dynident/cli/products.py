"""Commands that put an identified model to work: monitor, payload, gains."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import dynident as di
from dynident.cli.consoles import note, out, print_json
from dynident.cli.shared import (
    AS_LOGGED,
    AS_WRITTEN,
    MODEL,
    NOT_OK,
    Absent,
    AsJson,
    Debug,
    Effort,
    Essential,
    FitFile,
    LogOptions,
    Order,
    Projection,
    Robot,
    RobotOptions,
    app,
    check_output,
    column_order,
    projection_of,
    three_numbers,
)
from dynident.cli.words import in_options
from dynident.errors import DynidentError
from dynident.files import to_json, write_atomic
from dynident.identify import (
    DriveGains,
    Payload,
    estimate_gains,
    payload_from_wrench,
    payload_of,
    payload_on_arm,
    payload_regression,
    read_wrench,
    with_gain_uncertainty,
)
from dynident.mechanism.inertia import SYMBOLS as INERTIA_SYMBOLS


@app.command(
    panel=MODEL, epilog="Example: dynident monitor robot.urdf out/fit.json run.csv --effort joint_torque --plot run.png"
)
def monitor(
    robot: Robot,
    fit: FitFile,
    logs: Annotated[list[Path], typer.Argument(help="Logs to watch.", show_default=False)],
    effort: Effort = None,
    bandwidth: Annotated[
        float | None, typer.Option(help="Bandwidth of the observer [Hz]; that of the fit when omitted.")
    ] = None,
    cutoff: Annotated[
        float | None,
        typer.Option(help="Cut-off of the low-pass of positions and efforts [Hz]; ten times the bandwidth when omitted."),
    ] = None,
    false_alarms: Annotated[float, typer.Option(help="False alarms per hour for noise like that of the fit.")] = 0.01,
    hold: Annotated[float, typer.Option(help="Time for which the collision flag stays raised [s].")] = 0.25,
    rest: Annotated[float, typer.Option(help="Speed below which a joint counts as standing [rad/s, m/s].")] = 0.02,
    healthy: Annotated[
        list[Path] | None, typer.Option(help="Run in which nothing touched the robot: raises thresholds to its noise.")
    ] = None,
    absent: Absent = None,
    plot: Annotated[Path | None, typer.Option(help="Draw torques and thresholds of the first log to this file.")] = None,
    c: Annotated[Path | None, typer.Option("--c", help="Write the monitor as C99 to this folder.")] = None,
    described: RobotOptions = AS_WRITTEN,
    logged: LogOptions = AS_LOGGED,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 3 when something touched the robot.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Watch logs with an identified model: external torques, their thresholds, and when something touched the robot."""
    del debug
    for path, folder in ((plot, False), (c, True)):
        if path is not None:
            check_output(path, folder)
    mechanism = described.robot(robot)
    model = di.Fit.load(fit, mechanism)
    read = logged.reader(effort)
    options: dict[str, Any] = {"bandwidth": bandwidth, "cutoff": cutoff, "hold": hold, "rest": rest}
    options |= {"false_alarms": false_alarms, "absent": tuple(absent or ())}
    watching = di.monitor.Monitor(model, **options)
    for path in healthy or []:
        watching = watching.calibrated(read(path))
    if c is not None:
        watching.to_c(c)
        note(f"C99 of the monitor written to {c}")
    watched = [read(path) for path in logs]
    records = [watching.run(log) for log in watched]
    for log, record in zip(watched, records, strict=True):
        for body in _not_carried(model, log, record, options):
            note(f"log '{log.name}' looks as if '{body}' had not been carried; give absent={body}")
    if plot is not None:
        records[0].plot().savefig(plot, dpi=120)
    if as_json:
        print_json({"format": "dynident-monitor-1", "logs": [_record_data(record) for record in records]})
    else:
        out.print("\n\n".join(record.summary() for record in records))
    return NOT_OK if strict and any(record.events for record in records) else 0


def _not_carried(model: di.Fit, log: di.Log, record: di.monitor.MonitorRecord, options: dict[str, Any]) -> list[str]:
    """Return bodies of the fit, such as a payload, without which a log that is flagged half of the time is not."""
    known = [body.name for body in model.mechanism.bodies if body.separate and body.name not in options["absent"]]
    if record.flag.mean() < 0.5:
        return []
    lighter = {name: {**options, "absent": (*options["absent"], name)} for name in known}
    runs = {name: di.monitor.Monitor(model, **own).run(log) for name, own in lighter.items()}
    return [name for name, run in runs.items() if run.flag.mean() < 0.5 * record.flag.mean()]


def _record_data(record: di.monitor.MonitorRecord) -> dict[str, Any]:
    """Return a record without its samples."""
    return {
        "log": record.name,
        "duration": record.duration,
        "blind": record.blind,
        "level": record.level,
        "false_alarms_per_hour": record.false_alarms,
        "joints": record.numbers,
        "events": [asdict(event) for event in record.events],
        "notes": list(record.notes),
    }


@app.command(
    panel=MODEL,
    epilog="Example: dynident payload robot.urdf --unloaded empty.csv --loaded full.csv --effort joint_torque --link tool0",
)
def payload(
    robot: Robot,
    loaded: Annotated[list[Path] | None, typer.Option(help="Run with the load; may be given several times.")] = None,
    unloaded: Annotated[list[Path] | None, typer.Option(help="Run without the load; may be given several times.")] = None,
    fit: Annotated[Path | None, typer.Option(help="fit.json of the arm without the load, instead of runs without it.")] = None,
    wrench: Annotated[
        Path | None, typer.Option(help="Poses or a motion with a wrist sensor: columns of joints, fx fy fz tx ty tz, t.")
    ] = None,
    link: Annotated[str | None, typer.Option(help="Link that carries the load, or the sensor's frame.")] = None,
    tilt: Annotated[bool, typer.Option("--tilt", help="Estimate the direction of gravity too (wrist sensor).")] = False,
    reaction: Annotated[
        bool, typer.Option("--reaction", help="The sensor shows the wrench on the load, of the opposite sign.")
    ] = False,
    gain_std: Annotated[float, typer.Option(help="Relative deviation of the drive gains, 0.05 for five per cent.")] = 0.0,
    gains: Annotated[
        Path | None, typer.Option(help="File of `dynident gains -o`: corrects the logs, and its deviations go into the load's.")
    ] = None,
    reach: Annotated[
        float | None,
        typer.Option(help="Largest distance of the load's centre that is believed [m]; the robot's size when omitted."),
    ] = None,
    heaviest: Annotated[
        float | None, typer.Option(help="Largest mass that is believed [kg]; twice the described mass when omitted.")
    ] = None,
    effort: Effort = None,
    described: RobotOptions = AS_WRITTEN,
    logged: LogOptions = AS_LOGGED,
    projection: Projection = "gls",
    order: Order = None,
    essential: Essential = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the load to this JSON file.")] = None,
    save_fit: Annotated[
        Path | None, typer.Option(help="Write the fit of runs without and with the load, for validate and monitor.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 3 for a load that cannot be true.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Identify a load: from runs without and with it, on a known arm, or from a wrist sensor; for UR, Franka and KUKA too."""
    del debug
    for path in (output, save_fit):
        if path is not None:
            check_output(path)
    given = {"--save-fit": save_fit, "--gain-std": gain_std, "--gains": gains, "--essential": essential, "--order": order}
    _check_payload(unloaded, fit, wrench, loaded, [name for name, value in given.items() if value])
    mechanism = described.robot(robot)
    read = logged.reader(effort)
    full, empty = [read(path) for path in loaded or []], [read(path) for path in unloaded or []]
    limits: dict[str, Any] = {"reach": reach, "heaviest": heaviest}
    if wrench is not None:
        if link is None:
            raise DynidentError("--wrench needs --link, the link whose frame is the sensor's")
        motion, measured, independence = read_wrench(mechanism, wrench)
        sense = "reaction" if reaction else "load"
        options: dict[str, Any] = {"sense": sense, "gravity": tilt, "independence": independence, **limits}
        load = payload_from_wrench(mechanism, motion, measured, link, **options)
    elif fit is not None:
        load = payload_on_arm(di.Fit.load(fit, mechanism), full, link, **limits)
    else:
        how: dict[str, Any] = {"order": column_order(order), "projection": projection_of(projection)}
        known = None if gains is None else DriveGains.load(gains)
        if known is not None:
            empty, full = ([known.correct(log) for log in logs] for logs in (empty, full))
        evidence = payload_regression(mechanism, empty, full, link, **how)
        both = (
            with_gain_uncertainty(di.MAP(), evidence, gain_std if known is None else known)
            if essential is None
            else di.essential_parameters(evidence, di.WLS(), essential)
        )
        load = payload_of(both, **limits)
        if save_fit is not None:
            both.save(save_fit)
    data = {"format": "dynident-payload-1", **_payload_data(load)}
    if output is not None:
        write_atomic(output, to_json(data))
    if as_json:
        print_json(data)
    else:
        removed = [text for text in load.notes if text.startswith("removal ")]
        out.print("\n".join([*removed, in_options(load.summary()), *_conventions(load)]))
    return NOT_OK if strict and not load.plausible else 0


def _payload_data(load: Payload) -> dict[str, Any]:
    """Return a load by the names of its numbers."""
    shown = load.to_dict()
    keys = ("frame", "mass", "mass_std", "com", "com_std", "inertia", "inertia_std", "bias", "gravity", "plausible", "findings")
    rows = zip(load.names, load.values.tolist(), load.std.tolist(), strict=True)
    data = {key: shown[key] for key in (*keys, "notes")} | {
        "parameters": dict(zip(INERTIA_SYMBOLS, load.parameters.tolist(), strict=True)),
        "base_parameters": {name: {"value": value, "std": std} for name, value, std in rows},
    }
    return data | ({"conventions": load.conventions} if load.plausible else {})


def _check_payload(
    unloaded: list[Path] | None, fit: Path | None, wrench: Path | None, loaded: list[Path] | None, options: list[str]
) -> None:
    """Refuse options that do not go together."""
    if sum((bool(unloaded), fit is not None, wrench is not None)) != 1 or (wrench is None) != bool(loaded):
        raise DynidentError("say how: --loaded with --unloaded, --loaded with --fit, or --wrench alone")
    if options and not unloaded:
        raise DynidentError(f"{options[0]} is for runs without and with the load; give --unloaded and --loaded")
    apart = [name for name in ("--essential", "--gain-std", "--gains") if name in options]
    if len(apart) > 1:
        raise DynidentError(f"{' and '.join(apart)} do not go together; leave one out")


def _conventions(load: Any) -> list[str]:
    """Return a plausible load as controllers want it, one line each."""
    if not load.plausible:
        return []
    lines = []
    for maker, call in (("ur", "set_target_payload"), ("franka", "setLoad"), ("kuka", "$LOAD")):
        numbers = load.convention(maker)
        shown = {
            key: [float(f"{x:.6g}") for x in value] if isinstance(value, list) else float(f"{value:.6g}")
            for key, value in numbers.items()
        }
        lines.append(f"{call:<18} " + ", ".join(f"{key} = {value}" for key, value in shown.items()))
    return lines


@app.command(
    panel=MODEL,
    epilog="Example: dynident gains robot.urdf --unloaded empty.csv --loaded full.csv --effort motor_current --gain 0.12 "
    "--mass 5.02 --com 0,0,0.06 --link tool0",
)
def gains(
    robot: Robot,
    loaded: Annotated[list[Path], typer.Option(help="Run with the known load; may be given several times.")],
    unloaded: Annotated[list[Path], typer.Option(help="Run without it; may be given several times.")],
    mass: Annotated[float, typer.Option(help="Mass of the load [kg].")],
    com: Annotated[str | None, typer.Option(help="Its centre of mass in the frame of the link [m], as x,y,z.")] = None,
    inertia: Annotated[str | None, typer.Option(help="Ixx,Iyy,Izz about its centre of mass [kg m^2].")] = None,
    link: Annotated[str | None, typer.Option(help="Link that carries the load.")] = None,
    effort: Effort = None,
    described: RobotOptions = AS_WRITTEN,
    logged: LogOptions = AS_LOGGED,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the gains, for `dynident payload --gains`.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 3 for gains that are in doubt.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Estimate drive gains together with the robot, from runs without and with a load of known mass.

    The result are factors on the gains that were given (--gain, or the robot's actuators); --gain 1 where nothing is known.
    """
    del debug
    if output is not None:
        check_output(output)
    mechanism = described.robot(robot)
    read = logged.reader(effort)
    empty, full = ([read(path) for path in paths] for paths in (unloaded, loaded))
    evidence = payload_regression(mechanism, empty, full, link)
    found = estimate_gains(evidence, mass, three_numbers(com, "--com"), np.diag(three_numbers(inertia, "--inertia")))
    if as_json:
        rows = zip(found.joints, found.factors.tolist(), found.std.tolist(), strict=True)
        joints = {joint: {"factor": factor, "std": std} for joint, factor, std in rows}
        print_json({"format": "dynident-gains-1", "joints": joints, "findings": list(found.findings)})
    else:
        out.print(found.summary())
    if output is not None:
        found.save(output)
    return NOT_OK if strict and not found.plausible else 0
