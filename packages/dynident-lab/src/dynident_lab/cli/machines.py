"""Shared parts of the commands of a single machine: its argument, its folder of results, and the machine itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from dynident.cli.groups import OUTPUT
from dynident.cli.machines import drives_of, no_drives
from dynident.cli.options import RobotOptions
from dynident.cli.robots import is_known, ready_machine
from dynident.simulate.robot import standard_machine

if TYPE_CHECKING:
    from dynident.simulate import VirtualRobot

Machine = Annotated[str, Parameter(help="Description of your robot, or a known machine such as mast or dualv.")]
Results = Annotated[
    Path | None,
    Parameter(
        name=("--output", "--figures"), alias="-o", help="Folder for the numbers (JSON) and figures (PNG).", group=OUTPUT
    ),
]


def any_machine(
    name: str, controller: str, bandwidth: float, described: RobotOptions, drives: Path | None = None
) -> VirtualRobot:
    """Return a known machine by name, or the standard machine of a description, and note the assumptions."""
    if is_known(name):
        no_drives(name, drives)
        return ready_machine(name)
    mechanism = described.robot(Path(name))
    own = drives_of(drives, mechanism, name, controller, bandwidth)
    return standard_machine(mechanism, drives=own, controller=controller, bandwidth=bandwidth)
