"""Command of work-space maps: where a robot can go, and how near it comes to singularities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from cyclopts import Parameter

import dynident as di
from dynident.cli.consoles import out, print_json, save_figures
from dynident.cli.options import AS_WRITTEN, AsJson, Robot, RobotOptions, check_output
from dynident.cli.robots import is_known
from dynident.errors import DynidentError
from dynident.mechanics.dynamics import end_frame
from dynident.outputs import output_set
from dynident_lab.cli.machines import Results
from dynident_papers.workspace.workspace import workspace_map

#: Default map of robots whose first two coordinates are unsuitable or have no limits: two coordinates and ranges [m, rad].
USUAL: dict[str, dict[str, tuple[float, float]]] = {
    "cft": {"q1": (-0.5, 0.0), "q4": (-np.pi, np.pi)},
    "dualv": {"platform.x": (-0.45, 0.45), "platform.y": (-0.45, 0.45)},
    "five_bar": {"x": (-1.35, 1.35), "y": (-1.35, 1.35)},
    "mast": {"psi": (-0.52, 0.52), "theta": (-0.52, 0.52)},
    "prs3": {"psi": (-0.5, 0.5), "theta": (-0.5, 0.5)},
}
TOOLS = ("platform", "tool", "tool0")  # default links of robots with several ends


def workspace(
    robot: Robot,
    /,
    *,
    frame: str | None = None,
    over: str | None = None,
    ranges: Annotated[list[str] | None, Parameter(name="--range")] = None,
    held: list[str] | None = None,
    size: int = 61,
    outputs: Annotated[str, Parameter(choices=("pose", "position"))] = "pose",
    output: Results = None,
    described: RobotOptions = AS_WRITTEN,
    as_json: AsJson = False,
) -> int:
    """Map the workspace over two coordinates, with singularities of type 1 (serial) and 2 (parallel).

    Example: dynident workspace five_bar --over x,y --range x=-1:1 --range y=0:1 -o out/

    Parameters
    ----------
    frame
        Link that is the platform or tool; found when absent.
    over
        The two coordinates of the map, by a comma.
    ranges
        Range of one of them, as name=low:high [m, rad]; twice.
    held
        Where another coordinate stays, as name=value; repeatable.
    size
        Cells along each coordinate.
    outputs
        Outputs of the platform: its pose or its position.
    """
    if output is not None:
        check_output(output, folder=True)
    mechanism = described.robot(robot)
    usual = USUAL.get(str(robot), {}) if is_known(robot) and described.sidecar is None else {}
    given = {name: _pair(text) for name, text in map(_named, ranges or ())}
    names = [name.strip() for name in over.split(",")] if over else list(given) or list(usual) or None
    known = {body.name for body in mechanism.bodies}
    link = frame or next((name for name in TOOLS if name in known), None) or end_frame(mechanism, None)
    found = workspace_map(
        mechanism,
        link,
        names,
        _ranges(mechanism, names or mechanism.coordinate_names[:2], {**usual, **given}),
        held={name: _value(text) for name, text in map(_named, held)} if held else None,
        size=size,
        outputs=outputs,
    )
    files = []
    if output is not None:
        with output_set(output, ("workspace.json", "workspace.png", "workspace_frame.png")) as stage:
            found.save(stage / "workspace.json")
            save_figures(lambda: {"workspace": found.plot(), "workspace_frame": found.plot("frame")}, stage)
            files = [output / file.name for file in sorted(stage.iterdir())]
    if as_json:
        print_json(found.to_dict())
    else:
        out.print(found.summary())
        if files:
            out.print("written: " + ", ".join(map(str, files)))
    return 0


def _named(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise DynidentError(f"'{text}' has no name; give --range name=low:high, --held name=value")
    return name.strip(), value


def _value(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DynidentError(f"--held has '{text}'; give name=value, in radians or metres") from None


def _pair(text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(":"))
    except ValueError:
        raise DynidentError(f"--range has '{text}'; give name=low:high, in radians or metres") from None
    return low, high


def _ranges(
    mechanism: di.Mechanism, names: Sequence[str], known: Mapping[str, tuple[float, float]]
) -> list[tuple[float, float]]:
    """Return the ranges of the coordinates: given ones, limits of the joints, or a full turn of unlimited revolute joints."""
    joints = {joint.name: joint for joint in mechanism.joints}
    found = []
    for name in names:
        limits = joints[name].limits if name in joints else None
        low, high = known.get(name) or ((limits.lower, limits.upper) if limits is not None else (-np.inf, np.inf))
        if not np.isfinite([low, high]).all() and name in joints and joints[name].kind in ("revolute", "continuous"):
            low, high = -np.pi, np.pi
        if not np.isfinite([low, high]).all():
            raise DynidentError(f"coordinate '{name}' has no limits; give --range {name}=low:high")
        found.append((low, high))
    return found
