"""The command export: an identified robot for other programs; other packages add targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

import dynident as di
from dynident.cli.consoles import note, out, print_json
from dynident.cli.options import AS_WRITTEN, AsJson, Folder, Robot, RobotOptions, check_output
from dynident.errors import DynidentError
from dynident.files import write_atomic
from dynident.mechanism.files import is_mjcf
from dynident.plugins import EXPORTERS, PluginError, entries, not_installed, require

PROGRAMS = ("pinocchio", "mujoco", "gazebo", "drake")


@dataclass(frozen=True)
class ExportRequest:
    """What the target of ``export --for`` shall write."""

    robot: str  # As given: a path, or the name of a known robot
    mechanism: di.Mechanism  # The identified robot where there is a fit, else the described one
    fit: di.Fit | None
    output: Path
    options: Mapping[str, str]  # Of --option NAME=VALUE, only those that the exporter knows


@dataclass(frozen=True)
class Exporter:
    """A target of ``export --for``. An entry of the group ``dynident.exporters`` is one of these.

    Parameters
    ----------
    write : callable
        Writes the output of an `ExportRequest`; returns what was done as data (for ``--json``) and as text.
    folder : bool
        Whether the output is a folder, not a file.
    needs_fit : bool
        Whether the target is for identified robots only.
    options : tuple of str
        Names that ``--option NAME=VALUE`` may have.
    """

    write: Callable[[ExportRequest], tuple[dict[str, Any], str]]
    folder: bool = True
    needs_fit: bool = True
    options: tuple[str, ...] = ()


def _exporter(target: str) -> Exporter:
    """Return the exporter of a plug-in by the name of its target."""
    if target not in entries(EXPORTERS):
        known = ", ".join((*PROGRAMS, *entries(EXPORTERS)))
        missing = not_installed(EXPORTERS, target)
        raise DynidentError(f"target {missing}" if missing else f"--for is '{target}'; it is one of {known}")
    found = require(EXPORTERS, target)
    if not isinstance(found, Exporter):
        raise PluginError(f"target '{target}' of a plug-in is a {type(found).__name__}, not a dynident.cli.export.Exporter")
    return found


def _options(texts: list[str] | None, target: str | None, known: Sequence[str]) -> dict[str, str]:
    """Return the settings of --option, of which the target must know every one."""
    found = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            hint = f"--for {target} knows {', '.join(known)}" if known else "only targets of other packages have settings"
            raise DynidentError(f"--option is '{text}'; give NAME=VALUE ({hint})")
        found[name] = value
    return found


def _write(fit: di.Fit, target: str | None, robot: Path, output: Path, described: RobotOptions) -> tuple[dict[str, Any], str]:
    """Write the identified robot, for a program or as a description; return what was done as data and as text."""
    if target is None:
        path = _described(fit, robot, output, described)
        return {"written": str(path)}, f"written: {path}"
    source = robot if robot.is_file() else None
    arguments = described.arguments()
    done = fit.export(output, target, source, search=described.search, arguments=arguments)
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
    """Write the identified robot: a copy of its URDF or MJCF, its parameters (.json), or files for another program (--for).

    Example: dynident export robot.urdf out/fit.json --for pinocchio -o exported/

    Parameters
    ----------
    output
        File like the robot's, or .json; with --for the folder of the files.
    fit
        fit.json written by identify; some targets can do without.
    target
        Program it is for, read back and compared; or a target of another package, such as fmu (dynident-lab).
    option
        Setting of a target of another package, as controller=pd for fmu; may be given several times.
    """
    exporter = None if target is None or target in PROGRAMS else _exporter(target)
    options = _options(option, target, () if exporter is None else exporter.options)
    if fit is None and (exporter is None or exporter.needs_fit):
        raise DynidentError("the fit is missing; give fit.json of identify after the robot")
    if target is None:
        endings = (".xml", ".mjcf", ".json") if is_mjcf(robot) else (".urdf", ".xml", ".json")
        if output.suffix.lower() not in endings:
            raise DynidentError(
                f"output '{output}' has the ending '{output.suffix}'; for this robot it is {', '.join(endings)}, or a folder "
                "with --for"
            )
    check_output(output, folder=target is not None if exporter is None else exporter.folder)
    mechanism = described.robot(robot)
    model = None if fit is None else di.Fit.load(fit, mechanism)
    impossible = [] if model is None else [c.sentence for c in model.consistency() if not c.ok]
    for sentence in impossible:
        note(sentence)
    if exporter is not None:
        identified = mechanism if model is None else model.model
        data, text = exporter.write(ExportRequest(str(robot), identified, model, output, options))
    else:
        assert model is not None, "checked above"
        data, text = _write(model, target, robot, output, described)
    if as_json:
        print_json(data | {"impossible": impossible})
    else:
        out.print(text)
    return 0


def _described(model: di.Fit, robot: Path, output: Path, described: RobotOptions) -> Path:
    """Write a description with identified parameters, or these alone."""
    if output.suffix.lower() == ".json":
        return write_atomic(output, model.standard.to_json())
    path, *beside = model.write_description(robot, output, described.search, described.arguments())
    for sidecar in beside:
        note(f"what the description cannot hold is in '{sidecar}': give it as --sidecar")
    return path
