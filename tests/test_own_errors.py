"""An error of our own below a reader is not called the file's: it comes out as it is, and ends a command with exit code 70."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any

import pytest
from fuzz.samples import good_files

import dynident as di
from dynident.drive import read_drives
from dynident.errors import DynidentError
from dynident.excitation import Plan, read_limits
from dynident.mechanism import apply_sidecar
from dynident.mechanism.files import read_robot

PLANTED = "planted by a test"
PER_READER = 30


def log(path: str) -> Callable[[], Any]:
    return lambda: di.Log.read(path, effort="joint_torque")


def robot() -> di.Mechanism:
    return di.Mechanism.from_urdf("robot.urdf")


READERS: dict[str, Callable[[], Any]] = {
    **{name: log(name) for name in ("other.csv", "log.csv.gz", "log.npz", "log.mat", "log73.mat", "plain.mat", "log.h5")},
    **{name: log(name) for name in ("log.parquet", "log.mcap", "log.bag", "log.db3", "lerobot.parquet")},
    "URDF": robot,
    "MJCF": lambda: read_robot("arm.xml"),
    "SDF": lambda: read_robot("arm.sdf"),
    "xacro": lambda: read_robot("whole.xacro"),
    "sidecar": lambda: apply_sidecar(robot(), "sidecar.toml"),
    "limits": lambda: read_limits("limits.toml", robot()),
    "limits of MoveIt": lambda: read_limits("joint_limits.yaml", robot()),
    "drives": lambda: read_drives("drives.toml", robot()),
    "plan": lambda: Plan.load("plan.json"),
    "fit": lambda: di.load("fit.json"),
    "evidence": lambda: di.Regression.load("evidence.npz", robot()),
    "campaign": lambda: di.Log.read("campaign"),
    "score": lambda: di.load("score.json"),
    "verdict": lambda: di.load("verdict.json"),
}
FOLDERS = (
    "signals",
    "mechanism",
    "excitation",
    "trajectory",
    "drive",
    "results",
    "files",
    "friction",
    "plugins",
    "identify",
    "campaigns",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("good")
    good_files(place)
    return place


@contextmanager
def replaced(function: FunctionType, other: Callable[..., Any]) -> Iterator[None]:
    """Put another function in place of one of ours, in every module and class that has it."""
    owners: list[Any] = [
        m for name, m in sys.modules.items() if name.startswith(("dynident.", "dynident_lab.")) and isinstance(m, ModuleType)
    ]
    owners += [c for m in owners for c in vars(m).values() if isinstance(c, type) and c.__module__ == m.__name__]
    held = [(owner, name) for owner in owners for name, value in list(vars(owner).items()) if value is function]
    try:
        for owner, name in held:
            setattr(owner, name, other)
        yield
    finally:
        for owner, name in held:
            setattr(owner, name, function)


def called(read: Callable[[], Any]) -> list[FunctionType]:
    """Return the functions of ours that a reader calls."""
    codes = set()

    def look(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            codes.add(frame.f_code)

    sys.setprofile(look)
    try:
        read()
    finally:
        sys.setprofile(None)
    known: dict[Any, FunctionType] = {}
    for name, module in list(sys.modules.items()):
        if name.startswith(("dynident.", "dynident_lab.")) and name.split(".")[1] in FOLDERS:
            owners = [module, *(c for c in vars(module).values() if isinstance(c, type) and c.__module__ == name)]
            for value in [v for owner in owners for v in vars(owner).values() if isinstance(v, FunctionType)]:
                if value.__module__ == name:
                    known[value.__code__] = value
    return sorted((known[code] for code in codes if code in known), key=lambda f: (f.__module__, f.__qualname__))


@pytest.mark.parametrize("name", READERS)
def test_an_error_of_ours_is_not_called_the_files(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    read = READERS[name]
    read()  # loads what is imported on first use
    below = [f for f in called(read) if not f.__name__.startswith("__")]
    assert len(below) >= 5
    draw = random.Random(name)
    relabelled, planted = [], 0
    for function in draw.sample(below, min(PER_READER, len(below))):
        kind = draw.choice((ValueError, IndexError, TypeError, KeyError))
        used: list[object] = []

        def fail(*_: object, kind: type[Exception] = kind, used: list[object] = used, **__: object) -> None:
            used.append(1)
            raise kind(PLANTED)

        try:
            with replaced(function, fail):
                read()
        except DynidentError as error:
            relabelled.append(f"{function.__module__}.{function.__qualname__} ({kind.__name__}): {error}")
        except (ValueError, IndexError, TypeError, KeyError) as error:
            assert PLANTED in str(error)
        planted += bool(used)
    assert planted >= 3
    assert not relabelled, "\n".join(relabelled)
