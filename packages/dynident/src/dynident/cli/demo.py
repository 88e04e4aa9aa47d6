"""The command `demo`: the main job on the bundled example."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import Parameter
from rich.table import Table

import dynident as di
from dynident.arrays import Array
from dynident.cli.consoles import out
from dynident.cli.groups import OUTPUT
from dynident.cli.options import Folder, check_output
from dynident.cli.progress import progress


def demo(
    *,
    output: Folder = Path("demo_out"),
    files: bool = False,
    table: Annotated[bool, Parameter(group=OUTPUT)] = False,
) -> int:
    """Identify a simulated 6-axis arm that comes with dynident: compare with the truth, validate, write the report.

    Example: dynident demo -o demo_out/

    Parameters
    ----------
    output
        Folder for the results.
    files
        Only write the files of the quick start: robot.urdf, run.csv, other.csv.
    table
        Print all base parameters beside the true ones, and all checks.
    """
    check_output(output, folder=True)
    if files:
        di.examples.arm6(output)
        out.print(f"written: {', '.join(str(output / name) for name in ('robot.urdf', 'run.csv', 'other.csv'))}")
        return 0
    with progress(3) as step:
        step("reading the example")
        arm = di.examples.arm6()
        step("identifying")
        done = di.identify(arm.robot, arm.run, validate=arm.other)
        step("writing the results")
        done.write(output, arm.source)
        fit, score = done.fit, done.scores[0]
        page = di.write_report(output / "report.html", fit, [score], done.verdict, truth=dict(arm.truth)).resolve().as_uri()
    true = fit.base.values([arm.truth[name] for name in fit.mechanism.parameters.names])
    if table:
        out.print(_table(fit, true))
        out.print(score.summary() + "\n\n" + done.verdict.summary() + "\n")
    near = np.mean(np.abs(fit.values - true) <= 2.0 * fit.std)
    out.print(done.summary())
    out.print(f"\nThe truth is known here: {near:.0%} of the parameters are within two standard deviations of it (--table).")
    out.print(f"Open the report: {page}")
    return 0


def _table(fit: di.Fit, true_base: Array) -> Table:
    """Return true, described and identified base parameters."""
    cad_base = fit.base.values(fit.mechanism.parameters.values)
    table = Table("base parameter", "true", "CAD", "identified", "std", "(id - true) / std", title="Base parameters")
    for name, true, cad, value, std in zip(fit.base.names, true_base, cad_base, fit.values, fit.std, strict=True):
        table.add_row(name, f"{true:.4f}", f"{cad:.4f}", f"{value:.4f}", f"{std:.4f}", f"{(value - true) / std:+.2f}")
    return table
