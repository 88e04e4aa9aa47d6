"""The command export: an identified robot for other programs; other packages add targets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

import dynident as di
from dynident.cli.consoles import note, out, print_json
from dynident.cli.options import AS_WRITTEN, AsJson, Folder, Robot, RobotOptions, check_output, fit_in
from dynident.errors import DynidentError
from dynident.export.robot import export_robot, read_back
from dynident.mechanism.files import is_mjcf, is_patched, save_robot
from dynident.plugins import EXPORTERS, PluginError, entries, not_installed, require

PROGRAMS = ("pinocchio", "mujoco", "gazebo", "drake")


@dataclass(frozen=True)
class ExportRequest:
    """Input of a target of ``export --for``."""

    robot: str  # As typed: a path, or the name of a known robot
    mechanism: di.Mechanism  # The identified robot if there is a fit, else the described one
    fit: di.Fit | None
    output: Path
    options: Mapping[str, str]  # From --option NAME=VALUE, checked against `Exporter.options`


@dataclass(frozen=True)
class Exporter:
    """A target of ``export --for``: the type of entries of the group ``dynident.exporters``."""

    #: Writes the output of an `ExportRequest`; returns a summary as data (for ``--json``) and as text
    write: Callable[[ExportRequest], tuple[dict[str, Any], str]]
    folder: bool = True  #: Whether the output is a folder, not a file
    needs_fit: bool = True  #: Whether the target is for identified robots only
    options: tuple[str, ...] = ()  #: Names permitted in ``--option NAME=VALUE``


def _exporter(target: str) -> Exporter:
    """Return the exporter that a plug-in registers for a target."""
    if target not in entries(EXPORTERS):
        known = ", ".join((*PROGRAMS, *entries(EXPORTERS)))
        missing = not_installed(EXPORTERS, target)
        raise DynidentError(f"target {missing}" if missing else f"--for is '{target}'; it is one of {known}")
    found = require(EXPORTERS, target)
    if not isinstance(found, Exporter):
        raise PluginError(f"target '{target}' of a plug-in is a {type(found).__name__}, not a dynident.cli.export.Exporter")
    return found


def _options(texts: list[str] | None, target: str | None, known: Sequence[str]) -> dict[str, str]:
    """Return the settings of --option after checking that the target knows them."""
    found = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            hint = f"--for {target} knows {', '.join(known)}" if known else "only targets of other packages have settings"
            raise DynidentError(f"--option is '{text}'; give NAME=VALUE ({hint})")
        found[name] = value
    return found


def _write(
    model: di.Mechanism | di.Fit, target: str, robot: Path, output: Path, described: RobotOptions
) -> tuple[dict[str, Any], str]:
    """Write a robot for a program; return a summary as data and as text."""
    source = robot if robot.is_file() and is_patched(robot) else None
    arguments = described.arguments()
    write = model.export if isinstance(model, di.Fit) else partial(export_robot, model)
    done = write(output, target, source, search=described.search, arguments=arguments)
    return done.to_dict(), done.summary()


def export(
    robot: Robot,
    fit: Path | None = None,
    /,
    *,
    output: Folder,
    target: Annotated[str | None, Parameter(name="--for")] = None,
    option: list[str] | None = None,
    described: RobotOptions = AS_WRITTEN,
    as_json: AsJson = False,
) -> int:
    """Write a robot in another format, or files for another program (--for), optionally with identified parameters.

    Example: dynident export out/fit.json --for pinocchio -o exported/; dynident export robot.urdf -o robot.xml

    Parameters
    ----------
    output
        .urdf, .xml or .json file; what URDF or MJCF cannot hold goes to a sidecar beside it. With --for a folder.
    fit
        fit.json of this robot: its URDF or MJCF file is copied with the identified numbers, pictures and comments stay.
    target
        Program it is for, read back and compared; or a target of another package, such as fmu (dynident-lab).
    option
        Setting of a target of another package, as controller=pd for fmu; may be given several times.
    """
    exporter = None if target is None or target in PROGRAMS else _exporter(target)
    options = _options(option, target, () if exporter is None else exporter.options)
    mechanism = described.robot(robot)
    model = fit_in(robot) if fit is None else di.Fit.load(fit, mechanism)
    if model is None and exporter is not None and exporter.needs_fit:
        raise DynidentError(f"--for {target} is for identified robots; give fit.json of identify")
    check_output(output, folder=target is not None if exporter is None else exporter.folder)
    impossible = [] if model is None else [c.sentence for c in model.consistency() if not c.ok]
    for sentence in impossible:
        note(sentence)
    identified = mechanism if model is None else model.model
    if exporter is not None:
        data, text = exporter.write(ExportRequest(str(robot), identified, model, output, options))
    elif target is not None:
        data, text = _write(identified if model is None else model, target, robot, output, described)
    else:
        endings = (".xml", ".mjcf") if is_mjcf(robot) else (".urdf",)
        copied = fit is not None and robot.is_file() and is_patched(robot) and output.suffix.lower() in endings
        if copied and model is not None:
            files = model.write_description(robot, output, described.search, described.arguments(), described.sidecar)
        else:
            files = save_robot(identified, output)
        difference = read_back(identified, files)
        data = {"written": [str(path) for path in files], "difference": None if math.isnan(difference) else difference}
        text = f"written: {', '.join(map(str, files))}"
    if as_json:
        print_json(data | {"impossible": impossible})
    else:
        out.print(text)
    return 0
