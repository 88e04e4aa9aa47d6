"""The main job on the bundled example: identify a 6-axis arm, compare with the truth, validate, report.

Run ``make demo``, or ``python examples/demo/demo.py OUTPUT_FOLDER``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import dynident as di
from dynident.mechanism import write_urdf
from dynident.report import write_report
from dynident.validate import judge

HERE = Path(__file__).parent


def main(folder: Path) -> None:
    """Identify, compare, validate and write the report into `folder`."""
    console = Console(width=120)
    robot = di.Mechanism.from_urdf(HERE / "robot.urdf")
    train, held_out = di.Log.read(HERE / "train.csv.gz"), di.Log.read(HERE / "validate.csv.gz")
    fit = di.MAP().fit(di.Regression.from_logs(robot, [train])).result_
    score = fit.score(held_out)

    truth = json.loads((HERE / "truth.json").read_text(encoding="utf-8"))
    true_base = fit.base.values([truth[name] for name in robot.parameters.names])
    cad_base = fit.base.values(robot.parameters.values)
    table = Table("base parameter", "true", "CAD", "identified", "std", "(id - true) / std", title="Base parameters")
    for name, true, cad, value, std in zip(fit.base.names, true_base, cad_base, fit.values, fit.std, strict=True):
        table.add_row(name, f"{true:.4f}", f"{cad:.4f}", f"{value:.4f}", f"{std:.4f}", f"{(value - true) / std:+.2f}")
    console.print(table)
    verdict = judge(fit, [score])
    console.print(score.summary(), markup=False, highlight=False)
    console.print("\n" + verdict.summary(), markup=False, highlight=False)

    fit.save(folder / "fit.json")
    verdict.save(folder / "verdict.json")
    write_urdf(HERE / "robot.urdf", robot, fit.standard, folder / "identified.urdf")
    report = write_report(folder / "report.html", fit, [score], verdict, truth=truth)
    console.print(f"\nOpen the report: {report.resolve().as_uri()}", markup=False, highlight=False)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo_out"))
