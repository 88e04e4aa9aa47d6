"""The command reduction: which parameters the torque of each joint shows."""

from __future__ import annotations

from dynident.cli.consoles import out, print_json
from dynident.cli.shared import AS_WRITTEN, MODEL, AsJson, Debug, Robot, RobotOptions, Terms, app
from dynident_papers.identify import reduction as reduce_parameters


@app.command(panel=MODEL, epilog="Example: dynident reduction robot.urdf --json")
def reduction(
    robot: Robot, described: RobotOptions = AS_WRITTEN, terms: Terms = None, as_json: AsJson = False, debug: Debug = False
) -> int:
    """Show which parameters the torque of each joint depends on, by QR and SVD of its regressor."""
    found = reduce_parameters(described.robot(robot, terms))
    if as_json:
        print_json(found.to_dict())
    else:
        out.print(found.summary())
    return 0
