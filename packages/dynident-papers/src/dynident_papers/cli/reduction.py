"""The command reduction: which parameters the torque of each joint shows."""

from __future__ import annotations

from dynident.cli.consoles import out, print_json
from dynident.cli.options import AS_WRITTEN, AsJson, Robot, RobotOptions
from dynident_papers.identify import reduction as reduce_parameters


def reduction(
    robot: Robot,
    /,
    *,
    described: RobotOptions = AS_WRITTEN,
    as_json: AsJson = False,
) -> int:
    """Show which parameters the torque of each joint depends on, by QR and SVD of its regressor.

    Example: dynident reduction robot.urdf --json
    """
    found = reduce_parameters(described.robot(robot))
    if as_json:
        print_json(found.to_dict())
    else:
        out.print(found.summary())
    return 0
