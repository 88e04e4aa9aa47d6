"""Commands of motions: a word to write, and the largest acceleration of a machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import Parameter

from dynident.cli.consoles import out, print_json
from dynident.cli.options import AsJson, check_output
from dynident.cli.robots import find_machine, find_robot
from dynident.errors import DynidentError
from dynident.simulate.robot import home_of
from dynident.trajectory import to_csv
from dynident_lab.tool_paths import joint_motion
from dynident_papers.trajectories.letters import write as letters
from dynident_papers.workspace.acceleration import largest_acceleration

TASKS = {"rrr": ((0.1, -0.4, 0.5), "front up")}  # origin of the base line [m], posture
LINKS = {"dualv": "platform", "five_bar": "platform", "mast": "platform", "prs3": "platform"}


def write(
    text: str,
    /,
    *,
    output: Annotated[Path, Parameter(name=("--output", "-o"))],
    robot: str = "rrr",
    height: float = 0.06,
    speed: float = 2.0,
    acceleration: float = 25.0,
    lift: float = 0.0,
    origin: str | None = None,
    posture: str | None = None,
    rate: float = 1000.0,
    as_json: AsJson = False,
) -> int:
    """Write a text with the tool of a robot in a vertical plane: a demanding motion for simulate.

    Example: dynident write "om y" --robot rrr -o motion.csv

    Parameters
    ----------
    text
        Small letters and blanks.
    output
        Motion to write (CSV: t, q, v, a).
    robot
        Known robot with a closed-form inverse and three coordinates.
    height
        Height of an x [m].
    speed
        Largest speed along a stroke [m/s].
    acceleration
        Largest acceleration along and across a stroke [m/s^2].
    lift
        How high the pen is lifted between strokes [m].
    origin
        Where the base line starts [m], as x,y,z.
    posture
        Branch of the inverse kinematics.
    rate
        Samples per second.
    """
    check_output(output)
    mechanism, usual = find_robot(robot).mechanism(), TASKS.get(robot, ((0.0, 0.0, 0.0), ""))
    if origin is None and robot not in TASKS:
        raise DynidentError(f"robot '{robot}' has no default origin for writing; give --origin x,y,z")
    begin = usual[0] if origin is None else _triple(origin, "--origin")
    task = letters(text, height, begin, speed=speed, acceleration=acceleration, lift=lift)
    motion = joint_motion(mechanism, task.sample(rate), posture=usual[1] if posture is None else posture)
    to_csv(output, motion, mechanism.coordinate_names)
    peaks = {
        name: (float(v), float(a)) for name, v, a in zip(mechanism.coordinate_names, *_peaks(motion.v, motion.a), strict=True)
    }
    duration = float(motion.t[-1] - motion.t[0])
    if as_json:
        print_json({"duration": duration, "largest": peaks, "written": str(output)})
    else:
        listed = ", ".join(f"{name} {v:.3g} and {a:.3g}" for name, (v, a) in peaks.items())
        out.print(f"{duration:.3g} s; largest speed and acceleration [rad, m, s]: {listed}\nwritten: {output}")
        out.print(f"next:  dynident simulate {output} --robot {robot} -o {output.with_suffix('')}_run.csv")
    return 0


def acceleration(
    machine: str,
    /,
    *,
    direction: str = "1,0,0",
    limit: float | None = None,
    turning: bool = False,
    as_json: AsJson = False,
) -> int:
    """Find the largest acceleration of a known machine's tool from rest at home, within the torques of its motors.

    Example: dynident acceleration dualv --direction 1,0,0

    Parameters
    ----------
    machine
        Known machine, such as dualv.
    direction
        Direction in base axes, as x,y,z.
    limit
        Limit of every motor behind its gear [N m, N]; that of its drive when absent.
    turning
        Let the tool turn meanwhile.
    """
    robot = find_machine(machine)
    own = [drive.motor.current_limit * drive.motor.torque_constant * abs(drive.transmission.ratio) for drive in robot.drives]
    limits = np.array(own if limit is None else [limit] * len(own))
    if not np.all(np.isfinite(limits)):
        raise DynidentError(f"the drives of '{machine}' have no limits; give --limit")
    q = home_of(robot.model)
    found = largest_acceleration(robot.model, limits, _triple(direction, "--direction"), q, LINKS.get(machine), turning)
    if as_json:
        print_json(found.to_dict())
    else:
        out.print(found.summary())
    return 0


def _peaks(*signals: np.ndarray) -> list[np.ndarray]:
    return [np.abs(x).max(axis=0) for x in signals]


def _triple(text: str, option: str) -> tuple[float, float, float]:
    """Return the three numbers of an option."""
    try:
        x, y, z = (float(part) for part in text.split(","))
    except ValueError:
        raise DynidentError(f"{option} is '{text}'; give three numbers, as 0.1,-0.4,0.5") from None
    return x, y, z
