"""The command report."""

from __future__ import annotations

from pathlib import Path

from dynident.cli.consoles import out, print_json
from dynident.cli.options import (
    AS_LOGGED,
    AllowTraining,
    AsJson,
    FitFile,
    Folder,
    LogOptions,
    OwnRobot,
    check_output,
    read_fit,
)
from dynident.cli.progress import progress
from dynident.cli.words import COMMAND
from dynident.report.comparison import write_comparison
from dynident.report.report import write_report
from dynident.validate.verdict import judge


def report(
    fit: FitFile,
    logs: list[Path] | None = None,
    /,
    *,
    output: Folder = Path("report.html"),
    logged: LogOptions = AS_LOGGED,
    robot: OwnRobot = None,
    allow_training: AllowTraining = False,
    as_json: AsJson = False,
) -> int:
    """Write the HTML report of a fit, or, given two fits, the page that compares them.

    Example: dynident report out/fit.json other.csv --effort joint_torque -o report.html; two fits: dynident
    report before.json after.json -o comparison.html

    Parameters
    ----------
    logs
        Held-out logs to show; first the second of two fits.
    output
        HTML file to write.
    """
    check_output(output)
    read = logged.reader()
    if logs and logs[0].suffix.lower() == ".json":
        with progress(2) as step:
            step("reading the fits")
            fits = dict(zip(_apart(fit, logs[0]), (read_fit(fit, robot), read_fit(logs[0], robot)), strict=True))
            step("comparing them")
            page = write_comparison(output, fits, [read(path) for path in logs[1:]])
        if as_json:
            print_json({"written": str(page)})
        else:
            out.print(f"written: {page}")
        return 0
    with progress(len(logs or []) + 2) as step:
        step("reading the fit")
        model = read_fit(fit, robot)
        scores = []
        for path in logs or []:
            step(f"comparing with {path.name}")
            scores.append(model.score(read(path), allow_training))
        step("drawing the report")
        verdict = judge(model, scores)
        written = write_report(output, model, scores, verdict, command=COMMAND.get())
    if as_json:
        print_json({"written": str(written), "verdict": verdict.to_dict()})
    else:
        out.print(f"written: {written}")
    return 0


def _apart(one: Path, two: Path) -> tuple[str, str]:
    """Return short names of two files, what their paths do not share: spring and autumn of spring/fit.json, autumn/fit.json."""
    a, b = list(one.with_suffix("").parts), list(two.with_suffix("").parts)
    for end in (-1, 0):
        while min(len(a), len(b)) > 1 and a[end] == b[end]:
            del a[end], b[end]
    return "/".join(a), "/".join(b)
