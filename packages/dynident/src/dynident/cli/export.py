"""The command export: an identified robot, or a machine, for other programs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any
from zipfile import ZipFile

import numpy as np
import typer

import dynident as di
from dynident.checks import choice
from dynident.cli.consoles import note, out, print_json
from dynident.cli.machines import Bandwidth, DrivesFile, drives_of, is_ready, no_drives, ready_machine
from dynident.cli.shared import AS_WRITTEN, AsJson, Debug, Robot, RobotOptions, app, check_output, xacro_arguments
from dynident.cli.structure import choices
from dynident.errors import DynidentError
from dynident.files import write_atomic
from dynident.mechanism.files import is_mjcf
from dynident.mechanism.sidecar import write_sidecar
from dynident_lab.fmu import write_fmu

PROGRAMS = ("pinocchio", "mujoco", "gazebo", "drake", "fmu")
LAWS = ("torque", "computed_torque", "feedforward", "pd", "cascade")


def _driven(
    robot: Path, fit: di.Fit | None, described: RobotOptions, drives: Path | None, law: str | None, hertz: float
) -> Any:
    """Return what the FMU is made of: a ready machine, a robot with drives and a control law, or the robot alone."""
    from dynident.simulate.standard import standard_machine  # noqa: PLC0415 - only some commands need it

    if law is not None:
        choice("--controller", law, LAWS)
    if fit is None and is_ready(robot):
        no_drives(str(robot), drives)
        if law not in (None, "torque"):
            raise DynidentError(
                f"--controller is {law}, but machine '{robot}' has a controller of its own; torque leaves it out"
            )
        machine = ready_machine(str(robot))
    else:
        mechanism = described.robot(robot) if fit is None else fit.identified
        if drives is None and law in (None, "torque"):
            return mechanism
        kind = "pd" if law == "torque" else law or "computed_torque"
        own = drives_of(drives, mechanism, str(robot), kind, hertz)
        machine = standard_machine(mechanism, drives=own, controller=kind, bandwidth=hertz)
    if law == "torque":
        machine = replace(machine, controller=di.control.OpenLoop(torque=np.zeros(len(machine.drives))))
    return machine


def _as_fmu(content: Any, output: Path) -> tuple[dict[str, Any], str]:
    """Write an FMU; return what was done as data and as text."""
    path = write_fmu(content, output)
    with ZipFile(path) as parts:
        names, description = parts.namelist(), parts.read("modelDescription.xml").decode()
    if not any(name.startswith("binaries/") for name in names):
        note("no C compiler is installed here: the FMU holds its sources only, and the importing program must compile them")
    kinds = ["co-simulation", *(["model exchange"] if "<ModelExchange" in description else [])]
    if len(kinds) == 1:
        note("a control law, a delay or friction with a memory counts steps: this FMU is for co-simulation, not model exchange")
    return {"written": str(path), "kinds": kinds}, f"written: {path} (FMI 3.0, {' and '.join(kinds)})"


def _for_program(fit: di.Fit, target: str, robot: Path, output: Path, described: RobotOptions) -> tuple[dict[str, Any], str]:
    """Write the identified robot for another program; return what was done as data and as text."""
    source = robot if robot.is_file() else None
    arguments = xacro_arguments(described.arg)
    done = fit.export(output, target, source, search=described.search or (), arguments=arguments)
    return done.to_dict(), done.summary()


@app.command(
    epilog="Example: dynident export robot.urdf out/fit.json --for pinocchio -o exported/; a machine: dynident export dualv "
    "--for fmu -o dualv.fmu"
)
def export(
    robot: Robot,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="File like the robot's, or .json; with --for the folder of the files.")
    ],
    fit: Annotated[
        Path | None, typer.Argument(help="fit.json written by identify; an FMU can do without.", show_default=False)
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--for",
            help="Program it is for, read back and compared; fmu is FMI 3.",
            metavar=f"[{'|'.join(PROGRAMS)}]",
            autocompletion=lambda: list(PROGRAMS),
        ),
    ] = None,
    drives: DrivesFile = None,
    controller: Annotated[
        str | None,
        choices("Of an FMU: its control law, whose inputs are the wanted motion; torque takes the torques instead.", *LAWS),
    ] = None,
    bandwidth: Bandwidth = 10.0,
    described: RobotOptions = AS_WRITTEN,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Write the identified robot: a copy of its URDF or MJCF, its parameters (.json), or files for another program (--for).

    An FMU is for co-simulation, and without control law, delay and friction with a memory for model exchange too.
    """
    if target != "fmu":
        if fit is None:
            raise DynidentError("the fit is missing; give fit.json of identify after the robot, or --for fmu for a machine")
        if drives is not None or controller is not None:
            raise DynidentError("--drives and --controller are for an FMU; add --for fmu, or leave them out")
    if target is None:
        endings = (".xml", ".mjcf", ".json") if is_mjcf(robot) else (".urdf", ".xml", ".json")
        if output.suffix.lower() not in endings:
            raise DynidentError(
                f"output '{output}' has the ending '{output.suffix}'; for this robot it is {', '.join(endings)}, or a folder "
                "with --for"
            )
    check_output(output, folder=target not in (None, "fmu"))
    model = None if fit is None else di.Fit.load(fit, described.robot(robot))
    impossible = [] if model is None else [c.sentence for c in model.consistency() if not c.ok]
    for sentence in impossible:
        note(sentence)
    if target == "fmu" or model is None:
        data, text = _as_fmu(_driven(robot, model, described, drives, controller, bandwidth), output)
    elif target is not None:
        data, text = _for_program(model, target, robot, output, described)
    else:
        path = _described(model, robot, output, described)
        data, text = {"written": str(path)}, f"written: {path}"
    if as_json:
        print_json(data | {"impossible": impossible})
    else:
        out.print(text)
    return 0


def _described(model: di.Fit, robot: Path, output: Path, described: RobotOptions) -> Path:
    """Write a description with identified parameters, or these alone."""
    if output.suffix.lower() == ".json":
        return write_atomic(output, model.standard.to_json())
    path = described.write(robot, model, output)
    if model.mechanism.friction or model.mechanism.forces:
        beside = write_sidecar(model.identified, output.with_suffix(".toml"), structure=False)
        note(f"friction laws and force elements are in '{beside}': give it as --sidecar")
    return path
