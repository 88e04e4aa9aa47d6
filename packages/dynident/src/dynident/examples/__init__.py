"""Examples that come with the package: robots with their logs, to try everything without your own files."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dynident.errors import DynidentError
from dynident.files import write_atomic
from dynident.mechanism.mechanism import Mechanism
from dynident.signals.log import Log

__all__ = ["Example", "arm6"]

_HERE = Path(__file__).parent


@dataclass(frozen=True, eq=False)
class Example:
    """A robot and two of its logs."""

    robot: Mechanism  # The robot as its description has it, with the errors of a CAD model
    run: Log  # A log to fit and another one to judge the result
    other: Log  # A log to fit and another one to judge the result
    truth: Mapping[str, float]  # Standard parameters that made the logs, by name
    source: Path  # The description, a URDF file


def arm6(folder: str | os.PathLike[str] | None = None) -> Example:
    """Return a simulated 6-axis arm with two logs of 20 s: noise, encoders, friction, a CAD model that is wrong."""
    here = _HERE / "arm6"
    if folder is not None:
        if not isinstance(folder, str | os.PathLike):
            raise DynidentError(f"folder is {folder!r}; give the path of a folder")
        write_atomic(Path(folder) / "robot.urdf", (here / "robot.urdf").read_bytes())
        for source, name in (("train", "run"), ("validate", "other")):
            # As another program would write it: without the first line, in which dynident notes what the columns are.
            text = gzip.decompress((here / f"{source}.csv.gz").read_bytes()).split(b"\n", 1)[1]
            write_atomic(Path(folder) / f"{name}.csv", text)
    run, other = (Log.read(here / f"{name}.csv.gz") for name in ("train", "validate"))
    truth = json.loads((here / "truth.json").read_text(encoding="utf-8"))
    return Example(Mechanism.from_urdf(here / "robot.urdf"), run, other, truth, here / "robot.urdf")
