"""The excite command: design the motion that makes the parameters visible, and write the plan of the experiment."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

import dynident as di
from dynident.cli.shared import (
    AsJson,
    Debug,
    Quiet,
    Robot,
    Sidecar,
    Terms,
    app,
    check_output,
    out,
    print_json,
    progress,
    robot_of,
    with_terms,
)
from dynident.files import write_atomic


@app.command(epilog="Example: dynident excite robot.urdf --limits limits.toml --criterion d --time-budget 30 -o plan/")
def excite(
    robot: Robot,
    limits: Annotated[Path | None, typer.Option(help="TOML file with limits; those of the description when absent.")] = None,
    criterion: Annotated[str, typer.Option(help="d, cond, a, e, sigma_min, inverse_det, correlation, or a:1,d:2.")] = "d",
    time_budget: Annotated[float, typer.Option(help="Time for the search [s].")] = 30.0,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Folder for the plan, the motion and figures.")] = None,
    method: Annotated[str, typer.Option(help="sqp, pattern, cma or evolution.")] = "sqp",
    seed: Annotated[int, typer.Option(help="Seed of the starts.")] = 0,
    sidecar: Sidecar = None,
    terms: Terms = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Design an exciting motion within limits; prints criterion values, margins and expected standard deviations."""
    from dynident.excitation import design, read_limits  # noqa: PLC0415 - only this command needs it

    if output is not None:
        check_output(output, folder=True)
    mechanism = with_terms(robot_of(robot, sidecar), terms)
    options = _published(str(robot), mechanism) if limits is None else {"limits": read_limits(limits, mechanism)}
    with progress(3, quiet) as step:
        step("searching")
        found = design(mechanism, criterion=criterion, time_budget=time_budget, method=method, seed=seed, **options)
        step("writing the plan")
        files = [] if output is None else _write(found, output)
    if as_json:
        print_json(found.to_json())
    elif not quiet:
        out.print(_text(found.to_dict()))
        if files:
            out.print("written: " + ", ".join(str(path) for path in files))
    return 0


def _text(data: dict[str, Any]) -> str:
    """Return criterion values before and after, the tightest limits and the time as lines."""
    lines = [f"{'criterion':<14} {'before':>12} {'after':>12}"]
    lines += [f"{name:<14} {data['before'][name]:>12.5g} {value:>12.5g}" for name, value in data["after"].items()]
    tight = sorted(data["margins"].items(), key=lambda item: item[1])[:5]
    lines += ["tightest limits (margin, relative):", *(f"  {name:<32} {value:.2e}" for name, value in tight)]
    return "\n".join([*lines, f"{data['seconds']:.1f} s"])


def _write(found: Any, folder: Path) -> list[Path]:
    """Write plan, motion and figures; all are made before the first is written."""
    from dynident.trajectory import to_csv  # noqa: PLC0415 - only this command needs it

    with tempfile.TemporaryDirectory() as temporary:
        staged = Path(temporary)
        found.plan().save(staged / "plan.json")
        to_csv(staged / "motion.csv", found.motion(), found.mechanism.coordinate_names)
        (staged / "design.json").write_text(found.to_json(), encoding="utf-8")
        for name, figure in found.figures().items():
            figure.savefig(staged / f"{name}.png", dpi=120)
        return [write_atomic(folder / path.name, path.read_bytes()) for path in sorted(staged.iterdir())]


def _published(name: str, mechanism: di.Mechanism) -> dict[str, Any]:
    """Return the limits and the motion family of the literature for its robots; nothing for others."""
    from dynident import robots  # noqa: PLC0415 - only this command needs it
    from dynident.trajectory import Fourier  # noqa: PLC0415 - only this command needs it

    if name not in ("prr2", "replalink"):
        return {}
    data = getattr(robots, name)
    limits: dict[str, Any] = {"default": {"acceleration": data.ACCELERATION_LIMIT}, "margin": 0.0}
    if name == "replalink":
        limits["singularity"] = 0.02
    base = di.base_parameters(mechanism, order=[data.STANDARD_NAMES[leader] for leader in data.BASE_LEADERS])
    return {"limits": limits, "family": Fourier(data.FUNDAMENTAL, data.HARMONICS, rest=False), "base": base}
