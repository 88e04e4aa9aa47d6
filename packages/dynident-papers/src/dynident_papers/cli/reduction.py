"""The command reduction: which parameters the torque of each joint shows, and which a motion within limits determines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from dynident.cli.consoles import note, out, print_json
from dynident.cli.excite import limits_for
from dynident.cli.options import AS_WRITTEN, AsJson, Robot, RobotOptions, check_output
from dynident.cli.published import published_limits
from dynident.cli.robots import is_known
from dynident.errors import DynidentError
from dynident_papers.identify import design_within
from dynident_papers.identify import reduction as reduce_parameters


def reduction(
    robot: Robot,
    /,
    *,
    largest_condition: float | None = None,
    designs: int = 1,
    limits: Path | None = None,
    iterations: int = 30,
    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
    described: RobotOptions = AS_WRITTEN,
    as_json: AsJson = False,
) -> int:
    """Show which parameters the torque of each joint depends on, by QR and SVD of its regressor.

    Example: dynident reduction robot.urdf --largest-condition 100 -o plan.json

    Parameters
    ----------
    largest_condition
        Design motions instead, and leave out parameters until the condition number is at most this.
    designs
        Motions to design for every set of parameters; of those that keep the condition number, the fastest is taken.
    limits
        limits.toml for the motions; it completes the description's limits.
    iterations
        Steps of every search.
    output
        Plan of the motion to write (JSON).
    """
    mechanism = described.robot(robot)
    if largest_condition is None:
        if output is not None:
            raise DynidentError("--output is for the plan of a motion; give --largest-condition too")
        done = reduce_parameters(mechanism)
        data, text = done.to_dict(), done.summary()
    else:
        if not (largest_condition > 1.0 and 1 <= designs <= 1000 and iterations >= 1):
            raise DynidentError("--largest-condition must be above 1, --designs 1 to 1000 and --iterations at least 1")
        if output is not None:
            check_output(output)
        known = published_limits(str(robot), mechanism) if is_known(robot) else None
        options: dict[str, Any] = {"family": known and known.family, "base": known and known.base, "iterations": iterations}
        found = design_within(mechanism, limits_for(robot, mechanism, limits), largest_condition, seeds=designs, **options)
        left, numbers = ", ".join(found.left_out) or "none", ", ".join(f"{x:.4g}" for x in found.conditions)
        data = {**found.design.numbers(), "left_out": list(found.left_out), "conditions": list(found.conditions)}
        text = f"{found.design.summary()}\nleft out: {left}\ncondition numbers: {numbers}"
        if output is not None:
            found.design.plan().save(output)
            note(f"written: {output}")
    if as_json:
        print_json(data)
    else:
        out.print(text)
    return 0
