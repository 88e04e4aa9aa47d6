"""An installed third-party package adds a log reader, a robot reader, a friction law and a kind of result."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cli_plugins import install

import dynident as di
from dynident import plugins
from dynident.errors import DescriptionError, LogError, warn
from dynident.friction import law_of
from dynident.friction.text import law_text
from dynident.mechanism import read_robot

MODULE = '''
"""A package that knows nothing of the tests."""
import json
from dataclasses import dataclass

import numpy as np

import dynident as di
from dynident.friction import FrictionLaw
from dynident.results import Result


class Logs:
    """Logs in files *.dump and in folders with a dump."""

    @staticmethod
    def matches(path):
        return path.suffix == ".dump" or (path / "run.dump").is_file()

    @staticmethod
    def read(path, **options):
        file = path / "run.dump" if path.is_dir() else path
        table = np.array(json.loads(file.read_text()))
        return di.Log(table[:, 0], ("a",), table[:, 1], table[:, 2], options["effort"], name=options.get("name", "dump"))


class Robots:
    """Arms of which a file *.arm has the link lengths."""

    @staticmethod
    def matches(path):
        return path.suffix == ".arm"

    @staticmethod
    def read(path, **options):
        return di.Mechanism.from_dh([(float(a), 0, 0, 0) for a in path.read_text().split()])


@dataclass(frozen=True)
class Square(FrictionLaw):
    """Friction that grows with the square of the speed."""

    name = "square"
    linear = ("c",)

    def torque(self, x, p):
        return p["c"] * x.v * x.v


@dataclass(frozen=True)
class Wear(Result):
    """A result of this package."""

    hours: float
    law: FrictionLaw
'''
ENTRIES = """
[dynident.log_readers]
dump = thirdparty_readers:Logs
broken = thirdparty_readers_missing

[dynident.robot_readers]
arm = thirdparty_readers:Robots

[dynident.friction]
square = thirdparty_readers:Square
number = math:pi
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install the package into a folder of the path."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "thirdparty_readers.py").write_text(MODULE)
    install(site, "thirdparty-readers", "1.0", ENTRIES)
    monkeypatch.syspath_prepend(str(site))
    plugins.forget()
    yield
    sys.modules.pop("thirdparty_readers", None)
    monkeypatch.undo()
    plugins.forget()


@pytest.mark.usefixtures("package")
def test_logs_of_another_package_are_read_by_ending_and_by_folder(tmp_path: Path) -> None:
    rows = [[0.01 * k, math.sin(k), math.cos(k)] for k in range(50)]
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "run.dump").write_text(json.dumps(rows))
    with pytest.warns(plugins.PluginWarning, match=r"plug-in 'broken' of package 'thirdparty-readers' cannot be loaded"):
        log = di.Log.read(folder / "run.dump", effort="joint_torque", name="mine")
    assert (log.name, log.effort_kind, len(log)) == ("mine", "joint_torque", 50)
    np.testing.assert_array_equal(di.Log.read(folder, effort="motor_current").position[:, 0], [row[1] for row in rows])
    with pytest.raises(LogError, match=r"ending '.other' is not one of"):
        di.Log.read(tmp_path / "run.other", effort="joint_torque")


def test_without_the_package_its_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "run.dump").write_text("[]")
    (tmp_path / "long.arm").write_text("1 2")
    with pytest.raises(LogError, match=r"ending '.dump' is not one of"):
        di.Log.read(tmp_path / "run.dump", effort="joint_torque")
    with pytest.raises(DescriptionError, match=r"ending '.arm'; known endings are"):
        read_robot(tmp_path / "long.arm")


@pytest.mark.usefixtures("package")
def test_a_robot_of_another_format_takes_a_sidecar_as_ours_do(tmp_path: Path) -> None:
    (tmp_path / "long.arm").write_text("0.3 0.2")
    side = tmp_path / "side.toml"
    side.write_text('[[coupling]]\njoint = "joint_2"\nof = { joint_1 = -1.0 }\n')
    assert read_robot(tmp_path / "long.arm").dof == 2
    assert read_robot(tmp_path / "long.arm", side).dof == 1


@pytest.mark.usefixtures("package")
def test_identified_numbers_of_a_robot_of_another_format_are_written_as_urdf(tmp_path: Path) -> None:
    file = tmp_path / "long.arm"
    file.write_text("0.3 0.2")
    robot = read_robot(file)
    masses = {name: 1.25 for name in robot.parameters.names if name.startswith("m_")}
    robot.with_parameters(robot.parameters.replace(masses)).save(tmp_path / "identified.urdf")
    found = read_robot(tmp_path / "identified.urdf").parameters
    assert [found[name] for name in found.names if name.startswith("m_")] == [1.25, 1.25]


@pytest.mark.usefixtures("package")
def test_a_law_of_another_package_is_known_by_name() -> None:
    law = law_of("coulomb + square")
    assert law.parameters == ("coulomb.fc", "square.c")
    assert law_of(law_text(law)) == law
    np.testing.assert_allclose(law_of("square").value(np.array([-2.0, 3.0]), {"c": 0.5}), [2.0, 4.5])
    with pytest.raises(DescriptionError, match="plug-in 'number' is not a friction law"):
        law_of("number")
    with pytest.raises(DescriptionError, match=r"known laws are .*square"):
        law_of("cubic")


@pytest.mark.usefixtures("package")
def test_a_result_of_another_package_is_read_back(tmp_path: Path) -> None:
    third = import_module("thirdparty_readers")
    path = third.Wear(3.0, law_of("coulomb + square")).save(tmp_path / "wear.json")
    assert di.load(path) == third.Wear(3.0, law_of("coulomb + square"))


def test_a_result_of_a_package_without_plug_ins_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hidden_package.py").write_text("raise SystemExit")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "x.json").write_text('{"kind": "hidden_package.Wear"}')
    with pytest.raises(di.DynidentError, match="does not know"):
        di.load(tmp_path / "x.json")


@pytest.mark.parametrize("module", ["dynident.x", "dynident_lab.x", "dynident_papers.x"])
def test_a_warning_points_to_the_program_that_called_us(module: str) -> None:
    space: dict[str, Any] = {"__name__": module, "warn": warn, "DynidentWarning": di.DynidentWarning}
    exec("def call():\n    warn('look', DynidentWarning)", space)  # a module of ours that warns
    with pytest.warns(di.DynidentWarning, match="look") as caught:
        space["call"]()
    assert caught[0].filename == __file__
