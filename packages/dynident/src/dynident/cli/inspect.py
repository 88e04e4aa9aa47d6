"""The command inspect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dynident as di
from dynident.cli.consoles import out, print_json, print_next
from dynident.cli.estimators import AS_NEEDED, FilterOptions
from dynident.cli.options import AS_LOGGED, AS_WRITTEN, NOT_OK, AsJson, LogOptions, RobotOptions, typed
from dynident.cli.words import in_options

SIGNALS = "clock, gaps, units, saturation, dead channels"
EQUATIONS = "order, sign, gain, zero, delay, mounting, excitation"


def inspect(
    log: Path,
    /,
    *,
    robot: Path | None = None,
    logged: LogOptions = AS_LOGGED,
    described: RobotOptions = AS_WRITTEN,
    filtered: FilterOptions = AS_NEEDED,
    as_json: AsJson = False,
) -> int:
    """Check a log before it is fitted: clock, gaps, units, channels; with a robot also delay, signs and gains.

    Example: dynident inspect run.csv --robot robot.urdf --effort joint_torque

    The most serious finding comes first. Exits with 3 when a fit of this log would be worthless.

    Parameters
    ----------
    log
        Log: CSV, npz, MATLAB, Parquet, HDF5, bag or MCAP.
    robot
        URDF, xacro, MJCF or SDF file, or the name of a known robot. Its equations show wrong order, signs, gains, zeros,
        delays and mounting.
    """
    read = logged.reader()(log)
    mechanism = None if robot is None else described.robot_of_log(robot, read)
    found = di.inspect(read, mechanism, **filtered.options())
    if as_json:
        print_json({**found.to_dict(), "log": _reading(read)})
    else:
        signals_alone = mechanism is None or mechanism.loops or read.effort_kind == "none"
        looked = SIGNALS if signals_alone else f"{SIGNALS}, {EQUATIONS}"
        out.print(f"{read.duration:.1f} s at {read.rate:.4g} Hz, {len(read.joints)} joints; looked for: {looked}")
        out.print(in_options(found.summary()))
        if found.usable and robot is not None:
            print_next(
                "identify",
                robot,
                log,
                *typed(described),
                *typed(logged),
                *typed(filtered),
                "-o",
                f"{log.name.split('.')[0]}_out",
            )
    return 0 if found.usable else NOT_OK


def _reading(log: di.Log) -> dict[str, Any]:
    """Return the interpretation of a log: channels, kind of effort, and the column and unit of every signal."""
    keys = ("time_column", "columns", "units", "conversions")
    known = {"joints": list(log.joints), "effort_kind": log.effort_kind, "position_side": log.position_side}
    return {**known, "samples": len(log), "rate": log.rate, **{key: log.provenance.get(key) for key in keys}}
