"""The convert command: a log of any format to another one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynident.cli.consoles import out, print_json
from dynident.cli.shared import AS_LOGGED, FILES, AsJson, Debug, Effort, LogOptions, app, check_output
from dynident.signals.writers import check_log_file


@app.command(panel=FILES, epilog="Example: dynident convert bag/ run.csv --effort joint_torque --topic /joint_states")
def convert(
    source: Annotated[Path, typer.Argument(help="Log: CSV, npz, MATLAB, Parquet, HDF5, bag or MCAP.", show_default=False)],
    target: Annotated[
        Path, typer.Argument(help="File to write: .csv, .csv.gz, .npz, .parquet, .mat or .mcap.", show_default=False)
    ],
    effort: Effort = None,
    logged: LogOptions = AS_LOGGED,
    start: Annotated[float | None, typer.Option(help="Leave out what is before this time [s].")] = None,
    end: Annotated[float | None, typer.Option(help="Leave out what is after this time [s].")] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Convert a log: read any format, write CSV, npz, Parquet, MATLAB or MCAP in SI units, with what was understood inside."""
    check_log_file(target)
    check_output(target)
    log = logged.reader(effort)(source)
    if start is not None or end is not None:
        log = log.between(log.t[0] if start is None else start, log.t[-1] if end is None else end)
    written = log.save(target)
    if as_json:
        print_json({"written": str(written), "samples": len(log), "joints": list(log.joints), "rate": log.rate})
    else:
        out.print(f"{log!r}\nwritten: {written}")
    return 0
