"""The command compare-fits."""

from __future__ import annotations

from pathlib import Path

from dynident.cli.consoles import out, print_json
from dynident.cli.options import AS_LOGGED, AsJson, FitFile, Folder, LogOptions, OwnRobot, check_output, read_fit
from dynident_lab.fit_comparison import write_comparison


def compare_fits(
    before: FitFile,
    after: Path,
    logs: list[Path] | None = None,
    /,
    *,
    output: Folder = Path("comparison.html"),
    logged: LogOptions = AS_LOGGED,
    robot: OwnRobot = None,
    as_json: AsJson = False,
) -> int:
    """Write a page that compares two fits of a robot: errors, parameters that changed, predictions on the same logs.

    Example: dynident compare-fits spring/fit.json autumn/fit.json other.csv --effort joint_torque -o comparison.html

    Parameters
    ----------
    after
        The other fit.
    logs
        Logs on which both are shown.
    output
        HTML file to write.
    """
    check_output(output)
    read = logged.reader()
    fits = dict(zip(_apart(before, after), (read_fit(before, robot), read_fit(after, robot)), strict=True))
    page = write_comparison(output, fits, [read(path) for path in logs or []])
    if as_json:
        print_json({"written": str(page)})
    else:
        out.print(f"written: {page}")
    return 0


def _apart(one: Path, two: Path) -> tuple[str, str]:
    """Return short names of two files, the parts in which their paths differ: spring and autumn of {spring,autumn}/fit.json."""
    a, b = list(one.with_suffix("").parts), list(two.with_suffix("").parts)
    for end in (-1, 0):
        while min(len(a), len(b)) > 1 and a[end] == b[end]:
            del a[end], b[end]
    return "/".join(a), "/".join(b)
