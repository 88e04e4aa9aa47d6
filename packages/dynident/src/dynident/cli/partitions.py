"""The command partitions."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynident.cli.consoles import out, print_json
from dynident.cli.machines import read_plan
from dynident.cli.options import AS_WRITTEN, AsJson, Robot, RobotOptions
from dynident.mechanics.partitions import rank_partitions
from dynident.trajectory.reference import reference_of

SAMPLES = 1000  # poses along a motion in the ranking of motors


def partitions(
    robot: Robot,
    plan: Path,
    /,
    *,
    described: RobotOptions = AS_WRITTEN,
    as_json: AsJson = False,
) -> int:
    """Rank the sets of motors onto which the torques of an over-actuated robot can be projected, along a motion.

    Example: dynident partitions dualv plan/

    Parameters
    ----------
    plan
        Folder or plan.json of excite, or a motion as CSV (t, q_JOINT, v_JOINT, a_JOINT).
    """
    mechanism = described.robot(robot)
    wanted = reference_of(read_plan(plan, mechanism), mechanism)
    found = rank_partitions(mechanism, wanted.sample(np.linspace(0.0, wanted.duration, SAMPLES)))
    if as_json:
        print_json(found.to_dict())
    else:
        out.print(found.summary())
    return 0
