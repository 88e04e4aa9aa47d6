"""The command gains."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import Parameter

from dynident.cli.consoles import out, print_json
from dynident.cli.options import (
    AS_LOGGED,
    AS_WRITTEN,
    NOT_OK,
    AsJson,
    LogOptions,
    OptionalFolder,
    Robot,
    RobotOptions,
    check_output,
    three_numbers,
)
from dynident.identify import (
    estimate_gains,
    payload_regression,
)


def gains(
    robot: Robot,
    /,
    *,
    loaded: list[Path],
    unloaded: list[Path],
    mass: Annotated[float, Parameter(metavar="KG")],
    com: str | None = None,
    inertia: str | None = None,
    link: str | None = None,
    logged: LogOptions = AS_LOGGED,
    described: RobotOptions = AS_WRITTEN,
    output: OptionalFolder = None,
    strict: bool = False,
    as_json: AsJson = False,
) -> int:
    """Estimate drive gains together with the robot, from runs without and with a load of known mass.

    Example: dynident gains robot.urdf --unloaded empty.csv --loaded full.csv --effort motor_current --gain 0.12 --mass
    5.02 --link tool0

    The result are factors on the gains that were given (--gain, or the robot's actuators); --gain 1 where nothing is known.

    Parameters
    ----------
    loaded
        Run with the known load; may be given several times.
    unloaded
        Run without it; may be given several times.
    mass
        Mass of the load [kg].
    com
        Its centre of mass in the frame of the link [m], as x,y,z; estimated when omitted.
    inertia
        Ixx,Iyy,Izz about its centre of mass [kg m^2], with --com; estimated when omitted.
    link
        Link that carries the load.
    output
        Write the gains, for `dynident payload --gains`.
    strict
        Exit with 3 for gains that are in doubt.
    """
    if output is not None:
        check_output(output)
    mechanism = described.robot(robot)
    read = logged.reader()
    empty, full = ([read(path) for path in paths] for paths in (unloaded, loaded))
    evidence = payload_regression(mechanism, empty, full, link)
    centre = None if com is None else three_numbers(com, "--com")
    about = None if inertia is None else np.diag(three_numbers(inertia, "--inertia"))
    found = estimate_gains(evidence, mass, centre, about)
    if as_json:
        rows = zip(found.joints, found.factors.tolist(), found.std.tolist(), strict=True)
        joints = {joint: {"factor": factor, "std": std} for joint, factor, std in rows}
        print_json({"format": "dynident-gains-1", "joints": joints, "findings": list(found.findings)})
    else:
        out.print(found.summary())
    if output is not None:
        found.save(output)
    return NOT_OK if strict and not found.plausible else 0
