"""The convert command: a log of any format to another one."""

from __future__ import annotations

from pathlib import Path

from dynident.cli.consoles import out, print_json
from dynident.cli.options import AS_LOGGED, AsJson, LogOptions, check_output
from dynident.signals.writers import check_log_file


def convert(
    source: Path,
    target: Path,
    /,
    *,
    logged: LogOptions = AS_LOGGED,
    start: float | None = None,
    end: float | None = None,
    as_json: AsJson = False,
) -> int:
    """Convert a log from any supported format to CSV, npz, Parquet, MATLAB or MCAP in SI units.

    Example: dynident convert bag/ run.csv --effort joint_torque --topic /joint_states

    Parameters
    ----------
    source
        Log: CSV, npz, MATLAB, Parquet, HDF5, bag or MCAP.
    target
        File to write: .csv, .csv.gz, .npz, .parquet, .mat or .mcap.
    start
        Leave out what is before this time [s].
    end
        Leave out what is after this time [s].
    """
    check_log_file(target)
    check_output(target)
    log = logged.reader()(source)
    if start is not None or end is not None:
        log = log.between(log.t[0] if start is None else start, log.t[-1] if end is None else end)
    written = log.save(target)
    if as_json:
        print_json({"written": str(written), "samples": len(log), "joints": list(log.joints), "rate": log.rate})
    else:
        out.print(f"{log!r}\nwritten: {written}")
    return 0
