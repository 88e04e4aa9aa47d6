"""The public names: those promised are there, they work together in a short script, and importing them is cheap."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dynident as di

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "examples" / "demo"
VERBS = ("judge", "hold_out", "write_urdf", "write_report", "VirtualRobot", "design", "derive", "tracking_proof")
PROMISED = ("Mechanism", "Motion", "inverse_dynamics", "regressor", "base_parameters", "Log", "Regression", "OLS", "WLS")
OF_A_MECHANISM = ("from_urdf", "from_mjcf", "from_dh", "parameters", "joint_names", "dof", "actuators", "with_payload")
SCRIPT = """
import dynident as di

robot = di.Mechanism.from_urdf(demo / "robot.urdf")
print(robot.joint_names, robot.dof, [actuator.name for actuator in robot.actuators])
base = di.base_parameters(robot)
print(base.rank, base.expressions[0])
log = di.Log.read(demo / "train.csv.gz")
fit = di.WLS().fit(di.Regression.from_log(robot, log)).result_
score = fit.score(di.Log.read(demo / "validate.csv.gz"))
print(score.summary())
loaded = robot.with_payload(2.0, com=(0.0, 0.0, 0.1))
motion = di.Motion(0.0, [0.1] * 6, [0.0] * 6, [0.0] * 6)
Y, tau = di.regressor(loaded, motion), di.inverse_dynamics(loaded, motion, loaded.parameters)
"""


FRESH = """
import sys
for room in {rooms}:  # each as if it were the first
    for name in [name for name in sys.modules if name.partition(".")[0] == "dynident"]:
        del sys.modules[name]
    import dynident as di
    print(getattr(di, room).__name__)
"""


def process(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(di.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_promised_names_are_there() -> None:
    for name in PROMISED:
        assert name in di.__all__
        assert callable(getattr(di, name))
    for name in OF_A_MECHANISM:
        assert hasattr(di.Mechanism, name) or name in di.Mechanism.__dataclass_fields__
    assert list(inspect.signature(di.Motion).parameters) == ["t", "q", "v", "a"]
    assert list(inspect.signature(di.inverse_dynamics).parameters)[:3] == ["mechanism", "motion", "parameters"]
    assert list(inspect.signature(di.regressor).parameters)[:2] == ["mechanism", "motion"]
    assert "convention" in inspect.signature(di.Mechanism.from_dh).parameters


@pytest.mark.parametrize("name", [name for name in di.__all__ if name != "__version__"])
def test_every_public_name_can_be_imported_and_called(name: str) -> None:
    thing = getattr(di, name)
    assert callable(thing)
    assert inspect.getdoc(thing)
    module = importlib.import_module(thing.__module__)
    assert getattr(module, thing.__name__) is thing
    assert name in dir(di)


def test_the_verbs_of_the_readme_are_there() -> None:
    assert set(VERBS) <= set(di.__all__)


def test_rooms_are_attributes_and_each_top_level_name_has_one_meaning() -> None:
    folders = {folder.name for folder in Path(di.__file__).parent.iterdir() if (folder / "__init__.py").is_file()}
    rooms = sorted(folders - {"cli"})  # the command line needs an extra
    assert process(FRESH.format(rooms=rooms)).split() == [f"dynident.{room}" for room in rooms]
    assert set(rooms) <= set(dir(di))
    files = {file.stem for file in Path(di.__file__).parent.glob("*.py")}
    assert not (folders | files) & set(di.__all__)


def test_all_is_sorted_out() -> None:
    assert len(set(di.__all__)) == len(di.__all__)
    assert isinstance(di.__version__, str)
    with pytest.raises(AttributeError, match="no attribute 'ghost'"):
        _ = di.ghost


def test_fifteen_lines_use_all_of_it() -> None:
    assert len([line for line in SCRIPT.splitlines() if line.strip()]) <= 15
    space: dict[str, object] = {"demo": DEMO, "print": lambda *_: None}
    exec(compile(SCRIPT, "script", "exec"), space)
    assert space["score"].metrics.relative < 0.03
    loaded, Y, tau = space["loaded"], space["Y"], space["tau"]
    np.testing.assert_allclose(Y[0] @ loaded.parameters.values, tau[0], rtol=1e-9, atol=1e-9)


def test_the_two_conventions_of_dh_tables() -> None:
    table = [(0.3, 0.1, 0.2, 0.4), (0.2, -0.3, 0.1, 0.2)]
    for convention in ("standard", "modified"):
        assert di.Mechanism.from_dh(table, convention=convention).dof == 2


def test_importing_is_cheap() -> None:
    """What costs time (llvmlite, scipy, plots, the command line) is loaded when first used."""
    heavy = ("llvmlite", "scipy", "matplotlib", "typer", "rich", "cvxpy", "pandas")
    assert process(f"import sys, dynident; print([m for m in {heavy} if m in sys.modules])") == "[]"
    use = "import sys, dynident as di; di.Mechanism, di.Log, di.Motion"
    assert process(f"{use}; print([m for m in ('llvmlite', 'scipy.signal') if m in sys.modules])") == "[]"


def test_a_verdict_does_not_load_the_whole_house() -> None:
    code = "import sys; from dynident.validate import judge; print(*(m for m in sys.modules if m.startswith('dynident.')))"
    loaded = process(code).split()
    assert len(loaded) < 100
    assert {name.split(".")[1] for name in loaded}.isdisjoint(
        {"simulate", "control", "drive", "trajectory", "report", "robots"}
    )


def test_the_command_line_is_the_module() -> None:
    code = "import runpy, sys; sys.argv = ['dynident', '--help']; runpy.run_module('dynident', run_name='__main__')"
    assert "identify" in process(code)


def test_what_takes_a_motion_takes_its_arrays_too() -> None:
    """But what looks at the time, and what every tile of samples passes (`Rows`, `entering`)."""
    timed = {
        "link": (
            *("Emulator.load", "LynxClient.send", "Plant.advance", "Plant.follow", "RemoteController.send"),
            *("SimpleClient.messages", "SimpleClient.send"),
        ),
        "identify": ("RLS.update", "Rows.equations", "Rows.targets"),
        "mechanics": ("entering",),
        "simulate": ("tracking_error", "size_motors"),
        "trajectory": ("to_csv", "to_ros", "to_ros_json"),
    }
    found = set()
    for room in di.ROOMS:
        door = importlib.import_module(f"dynident.{room}")
        for name in door.__all__:
            thing = getattr(door, name)
            own = vars(thing) if isinstance(thing, type) else {}
            methods = {f"{name}.{key}": value for key, value in own.items() if inspect.isfunction(value) and key[0] != "_"}
            for label, function in (methods or {name: thing}).items():
                hints = getattr(inspect.unwrap(function), "__annotations__", {}) if inspect.isfunction(function) else {}
                kinds = [set(re.findall(r"\w+", str(hint))) for argument, hint in hints.items() if argument != "return"]
                if any("Motion" in kind and "ArrayLike" not in kind for kind in kinds):
                    found.add(f"{room} {label}")
    assert found == {f"{room} {label}" for room, labels in timed.items() for label in labels}
