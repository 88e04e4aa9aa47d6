"""The command validate."""

from __future__ import annotations

from pathlib import Path

from dynident.cli.consoles import out, print_json
from dynident.cli.options import (
    AS_LOGGED,
    NOT_OK,
    Absent,
    Accept,
    AllowTraining,
    AsJson,
    FitFile,
    LogOptions,
    OwnRobot,
    Strict,
    read_fit,
)
from dynident.cli.progress import progress
from dynident.cli.words import in_options
from dynident.validate.verdict import judge


def validate(
    fit: FitFile,
    logs: list[Path],
    /,
    *,
    logged: LogOptions = AS_LOGGED,
    robot: OwnRobot = None,
    absent: Absent = None,
    allow_training: AllowTraining = False,
    accept: Accept = None,
    strict: Strict = False,
    as_json: AsJson = False,
) -> int:
    """Compare an identified model with logs it was not fitted to.

    Example: dynident validate out/fit.json other.csv --effort joint_torque --strict

    Parameters
    ----------
    logs
        Held-out logs.
    """
    read = logged.reader()
    with progress(len(logs) + 1) as step:
        step("reading the fit")
        model = read_fit(fit, robot).without(*(absent or ()))
        scores = []
        for path in logs:
            step(f"validating on {path.name}")
            scores.append(model.score(read(path), allow_training))
    verdict = judge(model, scores, accept or ())
    if as_json:
        print_json(verdict.to_dict())
    else:
        out.print(in_options("\n\n".join([*(score.summary() for score in scores), verdict.summary()])))
    return NOT_OK if strict and not verdict.ok else 0
