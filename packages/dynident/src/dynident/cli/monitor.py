"""The command monitor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dynident as di
from dynident.cli.consoles import note, out, print_json
from dynident.cli.options import (
    AS_LOGGED,
    NOT_OK,
    Absent,
    AsJson,
    FitFile,
    LogOptions,
    OwnRobot,
    check_output,
    read_fit,
)
from dynident.monitor.monitor import not_carried


def monitor(
    fit: FitFile,
    logs: list[Path],
    /,
    *,
    logged: LogOptions = AS_LOGGED,
    bandwidth: float | None = None,
    cutoff: float | None = None,
    false_alarms: float = 0.01,
    hold: float = 0.25,
    rest: float = 0.02,
    healthy: list[Path] | None = None,
    absent: Absent = None,
    plot: Path | None = None,
    c: Path | None = None,
    robot: OwnRobot = None,
    strict: bool = False,
    as_json: AsJson = False,
) -> int:
    """Monitor logs with an identified model: external torques, thresholds and contact events.

    Example: dynident monitor out/fit.json run.csv --effort joint_torque --plot run.png

    Parameters
    ----------
    logs
        Logs to watch.
    bandwidth
        Bandwidth of the observer [Hz]; that of the fit when omitted.
    cutoff
        Cut-off of the low-pass of positions and efforts [Hz]; ten times the bandwidth when omitted.
    false_alarms
        False alarms per hour for noise like that of the fit.
    hold
        Time for which the collision flag stays raised [s].
    rest
        Speed below which a joint counts as standing [rad/s, m/s].
    healthy
        Run in which nothing touched the robot: raises thresholds to its noise.
    plot
        Draw torques and thresholds of the first log to this file.
    c
        Write the monitor as C99 to this folder.
    strict
        Exit with 3 when something touched the robot.
    """
    for path, folder in ((plot, False), (c, True)):
        if path is not None:
            check_output(path, folder)
    model = read_fit(fit, robot)
    read = logged.reader()
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
        for body in not_carried(model, log, record, **options):
            note(f"log '{log.name}' seems to be without '{body}'; give absent={body}")
    if plot is not None:
        records[0].plot().savefig(plot, dpi=120)
    if as_json:
        print_json({"format": "dynident-monitor-1", "logs": [record.overview() for record in records]})
    else:
        out.print("\n\n".join(record.summary() for record in records))
    return NOT_OK if strict and any(record.events for record in records) else 0
