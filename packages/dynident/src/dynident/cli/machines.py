"""Shared parts of the commands of the virtual robot: ready machines, plans and motions, logs and figures to write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from cyclopts import Parameter

import dynident as di
from dynident.arrays import Array
from dynident.cli.consoles import note
from dynident.cli.groups import RARE
from dynident.cli.options import RobotOptions
from dynident.cli.robots import find_robot, is_known, known_robots, ready_machine
from dynident.drive.drives_file import read_drives
from dynident.errors import DynidentError
from dynident.files import read_json
from dynident.signals.reading import read_table
from dynident.simulate.robot import poses_of, standard_controller, standard_machine
from dynident.trajectory.reference import reference_of

if TYPE_CHECKING:
    from dynident.simulate.robot import VirtualRobot


DrivesFile = Annotated[
    Path | None,
    Parameter(
        name="--drives", help="TOML file with motors, gears, encoders and friction of your robot's drives; ideal when absent."
    ),
]
CONTROLLERS = ("computed_torque", "feedforward", "pd", "p", "cascade")
Controller = Annotated[str, Parameter(help="Controller of a robot without drives of its own.", choices=CONTROLLERS)]
Bandwidth = Annotated[float, Parameter(help="Bandwidth of that controller [Hz].")]
Seed = Annotated[int, Parameter(help="Seed of all noise.", group=RARE)]


def no_drives(name: str, drives: Path | None) -> None:
    """Refuse drives for a machine that has its own."""
    if drives is not None:
        raise DynidentError(f"--drives is '{drives}', but machine '{name}' has drives of its own; leave it out")


def drives_of(file: Path | None, mechanism: di.Mechanism, name: str, controller: str, bandwidth: float) -> Any:
    """Return the drives of a file, None for ideal ones, and note the assumptions."""
    law = f"a controller '{controller}' of {bandwidth:g} Hz"
    if file is not None:
        note(f"{law} is assumed")
        return read_drives(file, mechanism)
    note(f"'{name}' has no drives of its own: ideal drives and {law} are assumed; --drives names a file with yours")
    return None


def read_motion(path: Path, mechanism: di.Mechanism) -> di.Motion:
    """Read a motion from a table with the columns t and q_, v_, a_ of every coordinate, as excite writes motion.csv."""
    table = read_table(path)
    names = mechanism.coordinate_names
    missing = [name for name in ("t", *(f"q_{name}" for name in names)) if name not in table.columns]
    if missing:
        raise DynidentError(
            f"motion '{path}' has no column {', '.join(missing)}; it needs t and q_ of {', '.join(names)}; v_ and a_ may follow"
        )
    t = table.columns["t"]
    others = [column[2:] for column in table.columns if column.startswith("q_") and column[2:] not in names]
    if others:
        note(f"motion '{path}' has positions of {', '.join(others)} too; robot '{mechanism.name}' has no such coordinates")

    def block(kind: str) -> Array:
        return np.column_stack([table.columns[f"{kind}_{name}"] for name in names])

    q = block("q")
    if all(f"{kind}_{name}" in table.columns for kind in "va" for name in names):
        return di.Motion(t, q, block("v"), block("a"))
    if t.size < 6 or not np.all(np.diff(t) > 0.0) or not np.isfinite(q).all():
        raise DynidentError(f"motion '{path}' cannot be made smooth: give at least 6 finite samples at increasing times")
    spline = scipy.interpolate.make_interp_spline(t, q, k=5)
    return di.Motion(t, q, spline(t, 1), spline(t, 2))


def read_plan(path: Path, mechanism: di.Mechanism) -> Any:
    """Return the plan or the motion of a file, or the plan of a folder of excite."""
    file = path / "plan.json" if path.is_dir() else path
    if path.is_dir() and not file.exists() and (path / "plan_with.json").exists():
        raise DynidentError(
            f"plan '{path}' is of two runs; give {path / 'plan_without.json'}, then {path / 'plan_with.json'} with --payload"
        )
    if not file.exists():
        raise DynidentError(f"plan '{path}' does not exist; give a folder or plan.json of dynident excite, or a motion as CSV")
    if file.suffix.lower() != ".json":
        return read_motion(file, mechanism)
    return di.Plan.load(file)


def robot_of_plan(path: Path) -> Path:
    """Return the name of the known robot of a plan."""
    file = path / "plan.json" if path.is_dir() else path
    if not file.exists():
        raise DynidentError(f"plan '{path}' does not exist; give a folder or plan.json of dynident excite, or a motion as CSV")
    data = read_json(file, "a plan") if file.suffix.lower() == ".json" else {}
    wanted = str(data.get("robot", "")) if isinstance(data, dict) else ""
    found = [name for name in known_robots() if name.lower().replace("_", "-") == wanted.lower().replace("_", "-")]
    if not found:
        raise DynidentError(f"'{path}' names no known robot; give one with --robot")
    return Path(found[0])


def machine_of(
    robot: Path, plan: Path, controller: str | None, bandwidth: float, described: RobotOptions, drives: Path | None = None
) -> tuple[VirtualRobot, Any]:
    """Return a known machine by name, or the standard machine of a description, and its reference motion or plan."""
    machine = ready_machine(str(robot)) if is_known(robot) and described.sidecar is None else None
    mechanism = described.robot(robot) if machine is None else machine.mechanism
    wanted = read_plan(plan, mechanism)
    if machine is not None:
        no_drives(str(robot), drives)
        convert = find_robot(str(robot)).reference
        wanted = wanted if convert is None or isinstance(wanted, di.Motion) else convert(wanted)
    if machine is None:
        kind = controller or "computed_torque"
        q = poses_of(reference_of(wanted, mechanism))
        own = drives_of(drives, mechanism, str(robot), kind, bandwidth)
        machine = standard_machine(mechanism, q, drives=own, controller=kind, bandwidth=bandwidth)
    elif controller is not None:
        q = poses_of(machine.reference(wanted))
        law = standard_controller(controller, machine.model, q, drives=machine.drives, bandwidth=bandwidth)
        machine = replace(machine, controller=law)
    return machine, wanted
