"""The command `demo`: the main job on the bundled example."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

import dynident as di
from dynident.cli.consoles import out
from dynident.cli.options import Folder, check_output
from dynident.cli.progress import progress
from dynident.mechanism.urdf_writer import write_urdf


def demo(
    *,
    output: Folder = Path("demo_out"),
    files: bool = False,
) -> int:
    """Identify a simulated 6-axis arm that comes with dynident: compare with the truth, validate, write the report.

    Example: dynident demo -o demo_out/

    Parameters
    ----------
    output
        Folder for the results.
    files
        Only write the files of the quick start: robot.urdf, run.csv, other.csv.
    """
    check_output(output, folder=True)
    if files:
        di.examples.arm6(output)
        out.print(f"written: {', '.join(str(output / name) for name in ('robot.urdf', 'run.csv', 'other.csv'))}")
        return 0
    with progress(4) as step:
        step("reading the example")
        arm = di.examples.arm6()
        step("identifying")
        fit = di.MAP().fit(di.Regression.from_logs(arm.robot, [arm.run])).result_
        step("validating")
        score = fit.score(arm.other)
        verdict = di.judge(fit, [score])
        step("writing the results")
        fit.save(output / "fit.json")
        verdict.save(output / "verdict.json")
        write_urdf(arm.source, fit.mechanism, fit.standard, output / "identified.urdf")
        page = di.write_report(output / "report.html", fit, [score], verdict, truth=dict(arm.truth)).resolve().as_uri()
    out.print(_table(fit, arm))
    out.print(score.summary())
    out.print("\n" + verdict.summary())
    out.print(f"\nOpen the report: {page}")
    return 0


def _table(fit: di.Fit, arm: di.examples.Example) -> Table:
    """Return true, described and identified base parameters."""
    true_base = fit.base.values([arm.truth[name] for name in fit.mechanism.parameters.names])
    cad_base = fit.base.values(fit.mechanism.parameters.values)
    table = Table("base parameter", "true", "CAD", "identified", "std", "(id - true) / std", title="Base parameters")
    for name, true, cad, value, std in zip(fit.base.names, true_base, cad_base, fit.values, fit.std, strict=True):
        table.add_row(name, f"{true:.4f}", f"{cad:.4f}", f"{value:.4f}", f"{std:.4f}", f"{(value - true) / std:+.2f}")
    return table
