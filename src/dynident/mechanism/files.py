"""Robot files by their kind: one function to read any description, one to write it back."""

from __future__ import annotations

import os
import re
from pathlib import Path

from dynident.errors import DescriptionError
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import Parameters
from dynident.mechanism.xml import read_bytes

URDF_SUFFIXES = (".urdf", ".xacro")
MJCF_SUFFIXES = (".xml", ".mjcf")


def is_mjcf(path: str | os.PathLike[str]) -> bool:
    """Return whether a description file is MJCF (its root element is `mujoco`) rather than URDF.

    Parameters
    ----------
    path : path-like
        Description file.

    Returns
    -------
    bool
        True for MJCF.
    """
    file = Path(path)
    if file.suffix.lower() in URDF_SUFFIXES:
        return False
    if file.suffix.lower() not in MJCF_SUFFIXES:
        known = ", ".join((*URDF_SUFFIXES, *MJCF_SUFFIXES))
        raise DescriptionError(f"robot file '{file}' has the ending '{file.suffix}'; known endings are {known}")
    text = read_bytes(file, "robot").decode("utf-8", errors="replace")
    # The first element is the root; a URDF may have a <mujoco> element inside.
    root = re.search(r"<\s*([A-Za-z_][\w.:-]*)", re.sub(r"<!--.*?-->", "", text, flags=re.S))
    return root is not None and root.group(1) == "mujoco"


def read_robot(path: str | os.PathLike[str], sidecar: str | os.PathLike[str] | None = None) -> Mechanism:
    """Read a URDF, xacro or MJCF file.

    Parameters
    ----------
    path : path-like
        Description file.
    sidecar : path-like, optional
        TOML file with what the description cannot say.

    Returns
    -------
    Mechanism
        The robot.
    """
    if is_mjcf(path):
        from dynident.mechanism.sidecar import apply_sidecar  # noqa: PLC0415 - readers import Mechanism

        mechanism = Mechanism.from_mjcf(path)
        return mechanism if sidecar is None else apply_sidecar(mechanism, sidecar)
    return Mechanism.from_urdf(path, sidecar=sidecar)


def write_robot(
    source: str | os.PathLike[str], mechanism: Mechanism, parameters: Parameters, path: str | os.PathLike[str]
) -> Path:
    """Write a copy of a description with identified parameters.

    Parameters
    ----------
    source : path-like
        The file the robot was read from.
    mechanism : Mechanism
        The robot.
    parameters : Parameters
        Its identified standard parameters.
    path : path-like
        File to write.

    Returns
    -------
    pathlib.Path
        The file written.
    """
    from dynident.mechanism.mjcf_writer import write_mjcf  # noqa: PLC0415 - writers import readers
    from dynident.mechanism.urdf_writer import write_urdf  # noqa: PLC0415 - writers import readers

    write = write_mjcf if is_mjcf(source) else write_urdf
    return write(source, mechanism, parameters, path)
