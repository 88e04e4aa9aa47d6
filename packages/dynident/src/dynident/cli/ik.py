"""The command ik."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from cyclopts import Parameter

import dynident as di
from dynident.arrays import Array
from dynident.cli.consoles import note, out, print_json
from dynident.cli.options import AS_WRITTEN, AsJson, Robot, RobotOptions
from dynident.cli.robots import find_robot, is_known
from dynident.errors import DynidentError
from dynident.mechanics.inverse_kinematics_closed import arm_structure, inverse_kinematics, reach
from dynident.mechanics.inverse_kinematics_damped import inverse_kinematics_numeric


def ik(
    robot: Robot,
    /,
    *,
    position: Annotated[str, Parameter(metavar="X,Y,Z")],
    rpy: str | None = None,
    frame: str | None = None,
    numeric: bool = False,
    start: str | None = None,
    described: RobotOptions = AS_WRITTEN,
    as_json: AsJson = False,
) -> int:
    """Solve inverse kinematics: all branches in closed form, or one solution numerically.

    Example: dynident ik robot.urdf --position 0.4,0.1,0.5 --rpy 0,3.14,0 --frame tool0

    Parameters
    ----------
    position
        Target position x,y,z in the base frame [m].
    rpy
        Target orientation roll,pitch,yaw [rad]; position only when absent.
    frame
        Link to place; the last one when absent.
    numeric
        Use the numeric solver (damped least squares).
    start
        Start of the numeric solver: comma-separated joint positions.
    """
    mechanism = described.robot(robot)
    target = _numbers(position, 3, "--position")
    rotation = None if rpy is None else di.Placement.from_rpy((0.0, 0.0, 0.0), _numbers(rpy, 3, "--rpy")).rotation
    joints = mechanism.coordinate_names
    closed = find_robot(str(robot)).branches if is_known(robot) and described.sidecar is None else None
    if mechanism.loops and closed is None and not numeric:
        note(f"robot '{mechanism.name}' has loops and no closed form here: solved numerically")
        numeric = True
    if closed is not None and not numeric:
        joints = tuple(joint for actuator in mechanism.actuators for joint in actuator.coupling)
        found = closed(target, np.zeros(3) if rpy is None else _numbers(rpy, 3, "--rpy"))
        solutions, names = np.array(list(found.values())), list(found)
        if np.all(np.isnan(solutions)):
            raise DynidentError(f"the target {position} is out of reach of robot '{mechanism.name}'")
    elif numeric:
        begin = None if start is None else _numbers(start, mechanism.dof, "--start")
        solved = inverse_kinematics_numeric(mechanism, rotation, target, start=begin, frame=frame)
        solutions, names = np.atleast_2d(solved), ["numeric"]
    else:
        solutions = inverse_kinematics(mechanism, rotation, target, frame=frame)[0]
        names = list(arm_structure(mechanism, frame).postures)
        if np.all(np.isnan(solutions)):
            away = reach(mechanism, rotation, target, frame=frame)
            raise DynidentError(
                f"the target {position} is out of reach of robot '{mechanism.name}' by {float(away.distance[0]):.4g} m"
            )
    rows = {name: None if np.isnan(q).any() else q.tolist() for name, q in zip(names, solutions, strict=True)}
    if as_json:
        print_json({"joints": list(joints), "branches": rows})
    else:
        out.print(f"{'':<20} {'  '.join(f'{joint:>9}' for joint in joints)}")
        for name, values in rows.items():
            text = "does not exist" if values is None else "  ".join(f"{x:+.6f}" for x in values)
            out.print(f"{name:<20} {text}")
    return 0


def _numbers(text: str, count: int, option: str) -> Array:
    try:
        values = np.array([float(x) for x in text.split(",")])
    except ValueError:
        raise DynidentError(f"{option} is '{text}'; give {count} numbers separated by commas") from None
    if values.size != count:
        raise DynidentError(f"{option} has {values.size} numbers; give {count}, separated by commas")
    return values
