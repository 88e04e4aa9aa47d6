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
    """Write the HTML report of a fit.

    Example: dynident report out/fit.json other.csv --effort joint_torque -o report.html

    Parameters
    ----------
    logs
        Held-out logs to show.
    output
        HTML file to write.
    """
    check_output(output)
    read = logged.reader()
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
