"""Commands of the virtual robot: simulate a plan, measure the bandwidth, prove a model in closed loop."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

import dynident as di
from dynident.cli.shared import AsJson, Debug, Quiet, Sidecar, app, check_output, note, out, print_json, progress, robot_of
from dynident.errors import DynidentError
from dynident.files import write_atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dynident.simulate import Run, VirtualRobot

LOGS = (".parquet", ".csv", ".csv.gz", ".npz")

RobotOption = Annotated[
    Path, typer.Option("--robot", help="Ready machine such as dualv, or a URDF, xacro or MJCF file.", show_default=False)
]
Machine = Annotated[str, typer.Argument(help="Ready machine, such as mast or dualv.", show_default=False)]
Seed = Annotated[int, typer.Option(help="Seed of all noise.")]
Figures = Annotated[Path | None, typer.Option(help="Folder for figures (PNG).")]


def ready_machines() -> tuple[str, ...]:
    """Return the names of robots that are complete machines, with drives, control and sensors.

    Returns
    -------
    tuple of str
        Names in `dynident.robots`.
    """
    from dynident import robots  # noqa: PLC0415 - rarely needed

    return tuple(name for name in robots.__all__ if hasattr(getattr(robots, name), "machine"))


def ready_machine(name: str, **options: Any) -> VirtualRobot:
    """Return a ready machine by name.

    Parameters
    ----------
    name : str
        Name in `dynident.robots`.
    **options
        Passed to its ``machine``.

    Returns
    -------
    VirtualRobot
        The machine.
    """
    from dynident import robots  # noqa: PLC0415 - rarely needed

    names = ready_machines()
    if name not in names:
        raise DynidentError(f"there is no machine '{name}'; machines are {', '.join(names)}")
    machine: VirtualRobot = getattr(robots, name).machine(**options)
    return machine


def read_motion(path: Path, mechanism: di.Mechanism) -> di.Motion:
    """Read a motion from a table with the columns t and q_, v_, a_ of every coordinate, as excite writes motion.csv.

    Parameters
    ----------
    path : pathlib.Path
        CSV, npz or Parquet file; velocities and accelerations are those of a spline through the positions when absent.
    mechanism : Mechanism
        Robot whose coordinates the columns name.

    Returns
    -------
    Motion
        The motion.
    """
    from dynident.signals.readers import read_table  # noqa: PLC0415 - only this command needs it

    table = read_table(path)
    names = mechanism.coordinate_names
    missing = [name for name in ("t", *(f"q_{name}" for name in names)) if name not in table.columns]
    if missing:
        raise DynidentError(
            f"motion '{path}' has no column {', '.join(missing)}; it needs t and q_ of {', '.join(names)} (v_ and a_ may follow)"
        )
    t = table.columns["t"]
    q, v, a = (
        np.column_stack([table.columns[f"{kind}_{name}"] for name in names])
        if all(f"{kind}_{name}" in table.columns for name in names)
        else None
        for kind in "qva"
    )
    if v is None or a is None:
        from scipy.interpolate import make_interp_spline  # noqa: PLC0415 - scipy is heavy

        if t.size < 6 or not np.all(np.diff(t) > 0.0) or not np.isfinite(q).all():
            raise DynidentError(f"motion '{path}' cannot be made smooth: give at least 6 finite samples at increasing times")
        spline = make_interp_spline(t, q, k=5)
        v, a = spline(t, 1), spline(t, 2)
    return di.Motion(t, q, v, a)


def read_plan(path: Path, mechanism: di.Mechanism) -> Any:
    """Return the plan or the motion of a file, or the plan of a folder of excite.

    Parameters
    ----------
    path : pathlib.Path
        Folder or file.
    mechanism : Mechanism
        Robot.

    Returns
    -------
    Plan or Motion
        What to do.
    """
    from dynident.excitation import Plan  # noqa: PLC0415 - only this command needs it

    file = path / "plan.json" if path.is_dir() else path
    if not file.exists():
        raise DynidentError(f"plan '{path}' does not exist; give a folder or plan.json of dynident excite, or a motion as CSV")
    return Plan.load(file) if file.suffix.lower() == ".json" else read_motion(file, mechanism)


def write_figures(figures: Mapping[str, Figure], folder: Path) -> list[Path]:
    """Write figures as PNG; all are drawn before the first is written.

    Parameters
    ----------
    figures : mapping of str to matplotlib.figure.Figure
        Figures by name.
    folder : pathlib.Path
        Where to.

    Returns
    -------
    list of pathlib.Path
        The files.
    """
    with tempfile.TemporaryDirectory() as temporary:
        staged = Path(temporary)
        for name, figure in figures.items():
            figure.savefig(staged / f"{name}.png", dpi=120)
        return [write_atomic(folder / path.name, path.read_bytes()) for path in sorted(staged.iterdir())]
