"""Robot files of all formats: one function reads any description, one writes it."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dynident.errors import DescriptionError, DescriptionWarning, warn
from dynident.files import write_atomic
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import Parameters
from dynident.mechanism.xml import read_bytes
from dynident.plugins import ROBOT_READERS, reader_of
from dynident.results import DESCRIPTIONS, Result, load

URDF_SUFFIXES = (".urdf", ".xacro")
MJCF_SUFFIXES = (".xml", ".mjcf")
SDF_SUFFIXES = (".sdf", ".world")
SUFFIXES = (*DESCRIPTIONS, ".json")


def is_mjcf(path: str | os.PathLike[str]) -> bool:
    """Return whether a description file is MJCF (its root element is `mujoco`) rather than URDF."""
    file = Path(path)
    if file.suffix.lower() in (*URDF_SUFFIXES, *SDF_SUFFIXES, ".json") or reader_for(file):
        return False
    if file.suffix.lower() not in MJCF_SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise DescriptionError(f"robot file '{file}' has the ending '{file.suffix}'; known endings are {known}")
    return _root_tag(read_bytes(file, "robot").decode("utf-8", errors="replace")) == "mujoco"


def is_sdf(path: str | os.PathLike[str]) -> bool:
    """Return whether a description file is SDF, by its ending or its root element."""
    file = Path(path)
    if file.suffix.lower() in SDF_SUFFIXES:
        return True
    return file.suffix.lower() == ".xml" and _root_tag(read_bytes(file, "robot").decode("utf-8", errors="replace")) == "sdf"


def reader_for(path: str | os.PathLike[str]) -> Any:
    """Return the reader that another package registers for the file's ending, or None if the ending is built in or unknown."""
    return None if Path(path).suffix.lower() in SUFFIXES else reader_of(ROBOT_READERS, path)


def is_patched(path: str | os.PathLike[str]) -> bool:
    """Return whether identified numbers are written into a copy of the file (URDF, MJCF); other files become a URDF."""
    return Path(path).suffix.lower() != ".json" and not is_sdf(path) and not reader_for(path)


def read_text_robot(text: str) -> Mechanism:
    """Read a description in memory; the root element decides the format."""
    if not isinstance(text, str) or not text.lstrip().startswith("<"):
        raise DescriptionError(f"the description is {str(text)[:40]!r} ...; give the text of a URDF, MJCF or SDF")
    ending = {"mujoco": ".xml", "sdf": ".sdf"}.get(_root_tag(text), ".urdf")
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"description{ending}"
        file.write_text(text, encoding="utf-8")
        return read_robot(file)


def _root_tag(text: str) -> str:
    """Return the tag of the first element, which is the root; a URDF may have a <mujoco> element inside."""
    at = text.find("<")
    while text.startswith(("<!", "<?"), at):
        if text.startswith("<!--", at):
            at = text.find("-->", at + 4)
            if at < 0:  # an unterminated comment hides the rest
                return ""
        at = text.find("<", at + 1)
    found = re.compile(r"<\s*([A-Za-z_][\w.:-]*)").match(text, at) if at >= 0 else None
    return found[1] if found else ""


def read_robot(
    path: str | os.PathLike[str],
    sidecar: str | os.PathLike[str] | None = None,
    search: Sequence[str | os.PathLike[str]] = (),
    arguments: Mapping[str, object] | None = None,
) -> Mechanism:
    """Read a URDF, xacro, MJCF, SDF or JSON file, or a format that an installed package registers (`dynident.robot_readers`).

    JSON is a robot that `Mechanism.save` wrote, or a fit, of which the identified robot is returned.

    Parameters
    ----------
    path : path-like
        Description file.
    sidecar : path-like, optional
        TOML file with content that the description format cannot express.
    search : sequence of path-like
        Further folders that the robot may read from.
    arguments : mapping of str to object, optional
        Values of ``<xacro:arg>``.

    Returns
    -------
    Mechanism
        The robot.
    """
    from dynident.mechanism.sidecar import apply_sidecar  # noqa: PLC0415 - readers import Mechanism

    if Path(path).suffix.lower() == ".json":
        robot = _saved_robot(path)
        return robot if sidecar is None else apply_sidecar(robot, sidecar)
    if reader := reader_for(path):
        mechanism: Mechanism = reader.read(Path(path), search=search, arguments=arguments)
        return mechanism if sidecar is None else apply_sidecar(mechanism, sidecar)
    if is_sdf(path):
        return Mechanism.from_sdf(path, sidecar)
    if is_mjcf(path):
        mechanism = Mechanism.from_mjcf(path, search=search)
        return mechanism if sidecar is None else apply_sidecar(mechanism, sidecar)
    return Mechanism.from_urdf(path, sidecar=sidecar, search=search, arguments=arguments)


def _saved_robot(path: str | os.PathLike[str]) -> Mechanism:
    """Return the robot of a JSON file: a mechanism, or the identified robot of a fit."""
    found = load(path)
    robot = getattr(found, "model", found)
    if not isinstance(robot, Mechanism):
        raise DescriptionError(f"'{path}' holds a {type(found).__name__}; give a robot that Mechanism.save wrote, or fit.json")
    return robot


def save_robot(mechanism: Mechanism, path: str | os.PathLike[str]) -> list[Path]:
    """Write a robot in the format of the ending; `Mechanism.save` is the public way. Returns the files, a sidecar last."""
    from dynident.mechanism.text_writers import MJCF_LOOPS, mjcf_text, urdf_text  # noqa: PLC0415 - writers import readers

    file = Path(path)
    if file.suffix.lower() == ".json":
        return [Result.save(mechanism, file)]
    if file.suffix.lower() not in (".urdf", *MJCF_SUFFIXES):
        raise DescriptionError(f"cannot write a robot to '{file}'; known endings are .urdf, .xml, .mjcf and .json")
    if file.suffix.lower() == ".urdf":
        text = urdf_text(mechanism)
    else:  # loops that MJCF cannot close, or with a pose that it cannot hold, go to the sidecar
        single = all(len(joint.coordinates) <= 1 for joint in mechanism.joints)
        loops = tuple(x for x in mechanism.loops if x.kind in MJCF_LOOPS and single)
        written = mechanism
        if len(loops) < len(mechanism.loops):  # with fewer loops the independent coordinates differ; the home is the same
            home = dict(zip(mechanism.tree.coordinates, mechanism.closure.home, strict=True))
            written = replace(mechanism, loops=loops, independent=(), home=home)
        text = mjcf_text(written)
    return completed(mechanism, write_atomic(file, text))


def completed(mechanism: Mechanism, file: Path, sidecar: str | os.PathLike[str] | None = None) -> list[Path]:
    """Write the content that a description `file` lacks to a sidecar of the same name; return file and sidecar.

    Keys and comments of another `sidecar` of this robot are kept. The pair is read back and compared.
    """
    from dynident.mechanism.sidecar import write_sidecar  # noqa: PLC0415 - it imports Mechanism

    # The coordinates are named because other motors or another order of joints would change the choice.
    whole = mechanism.altered(independent=mechanism.coordinate_names) if mechanism.loops else mechanism
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)
        plain = read_robot(file)
        beside = write_sidecar(whole, file.with_suffix(".toml"), plain, sidecar)
        again = plain if beside is None else read_robot(file, beside)
    if set(again.coordinate_names) != set(mechanism.coordinate_names):
        there, here = (", ".join(robot.coordinate_names) for robot in (again, mechanism))
        warn(
            f"'{file.name}' does not hold all of robot '{mechanism.name}': its coordinates are {there}, not {here}; .json does",
            DescriptionWarning,
        )
    return [file] if beside is None else [file, beside]


def write_robot(
    source: str | os.PathLike[str],
    mechanism: Mechanism,
    parameters: Parameters,
    path: str | os.PathLike[str],
    search: Sequence[str | os.PathLike[str]] = (),
    arguments: Mapping[str, object] | None = None,
) -> Path:
    """Write a copy of a description `source` of a `mechanism` with identified `parameters` to `path`.

    `source` is a URDF or MJCF file (`is_patched`); a .xacro is written expanded. `search` and `arguments` are those of
    `read_robot`.
    """
    from dynident.mechanism.mjcf_writer import write_mjcf  # noqa: PLC0415 - writers import readers
    from dynident.mechanism.urdf_writer import write_urdf  # noqa: PLC0415 - writers import readers

    if is_mjcf(source):
        return write_mjcf(source, mechanism, parameters, path, search)
    return write_urdf(source, mechanism, parameters, path, search, arguments)
