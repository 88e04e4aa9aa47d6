"""The command describe."""

from __future__ import annotations

from pathlib import Path

import dynident as di
from dynident.cli.consoles import note, out, print_json
from dynident.cli.options import (
    AS_WRITTEN,
    RANK_TOLERANCE,
    AsJson,
    RankTolerance,
    Robot,
    RobotOptions,
    check_output,
    check_tolerance,
)
from dynident.errors import IdentificationError
from dynident.mechanism.describe import description, description_text


def describe(
    robot: Robot,
    /,
    *,
    described: RobotOptions = AS_WRITTEN,
    rank_tolerance: RankTolerance = RANK_TOLERANCE,
    plot: Path | None = None,
    as_json: AsJson = False,
) -> int:
    """Describe a robot: bodies, joints, physical consistency of its inertias, and the identifiable parameters.

    Example: dynident describe robot.urdf --sidecar drives.toml --json

    Parameters
    ----------
    plot
        Draw the links in space and the graph of bodies, joints and loops to this file.
    """
    check_tolerance(rank_tolerance)
    mechanism = described.robot(robot)
    data = description(mechanism)
    if plot is not None:
        check_output(plot)
        mechanism.plot().savefig(plot, dpi=120)
    if mechanism.dof:
        try:
            base = di.base_parameters(mechanism, tolerance=rank_tolerance)
        except IdentificationError as error:  # too large
            note(str(error))
        else:
            data["base_parameters"] = {"rank": base.rank, "rank_gap": base.rank_gap, "expressions": list(base.expressions)}
            data["unidentifiable"] = list(base.unidentifiable)
    if as_json:
        print_json(data)
    else:
        out.print(description_text(data))
    return 0
