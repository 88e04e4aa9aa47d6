"""The ways out of the command line: export --for, derive, and the example that comes with the package."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident import cli


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with robot.urdf, run.csv and other.csv of the example, and a fit of it."""
    place = tmp_path_factory.mktemp("exits")
    arm = di.examples.arm6(place)
    di.WLS(recovery="prior").fit(di.Regression.from_log(arm.robot, arm.run)).result_.save(place / "fit.json")
    return place


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


def test_the_example_has_files_logs_and_truth(here: Path) -> None:
    arm = di.examples.arm6()
    assert set(arm.truth) == set(arm.robot.parameters.names)
    plain = di.Log.read(here / "run.csv", effort="joint_torque")
    np.testing.assert_array_equal(plain.effort, arm.run.effort)
    assert not np.array_equal(arm.run.effort, arm.other.effort)
    assert (here / "robot.urdf").read_bytes() == arm.source.read_bytes()


def test_export_for_a_program_says_how_well_it_agrees(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["export", "robot.urdf", "fit.json", "--for", "gazebo", "-o", "out", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["difference"] < 1e-9
    assert sorted(path.name for path in (here / "out").iterdir()) == ["arm6.urdf", "load_arm6.py"]
    assert cli.run(["export", "robot.urdf", "fit.json", "--for", "gazebo", "-o", "out"]) == 0  # once more into the folder
    assert di.Fit.load("fit.json").export("again", "gazebo", "robot.urdf").difference < 1e-9


def test_derive_with_a_fit_writes_the_model(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["derive", "fit.json", "--numpy", "-o", "model"]) == 0
    space: dict[str, object] = {}
    exec((here / "model" / "arm6.py").read_text(), space)
    q, v, a = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 4, 6))
    wanted = di.inverse_dynamics(di.Fit.load("fit.json").model, di.Motion(np.arange(4.0), q, v, a))
    torque = space["inverse_dynamics"](q, v, a) + space["friction"](q, v)  # type: ignore[operator]
    np.testing.assert_allclose(torque, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["derive", "robot.urdf", "--casadi"], "give fit.json in place of the description"),
        (["derive", "fit.json", "--latex"], "closed forms of trees"),
        (["export", "robot.urdf", "fit.json", "--for", "webots", "-o", "x"], "it is one of pinocchio, mujoco, gazebo, drake"),
        (["export", "robot.urdf", "-o", "x.dae"], "known endings are .urdf"),
        (
            ["export", "robot.urdf", "fit.json", "-o", "x.urdf", "--option", "a=1"],
            "only targets of other packages",
        ),
    ],
)
@pytest.mark.usefixtures("here")
def test_wrong_calls_are_told(arguments: list[str], sentence: str) -> None:
    with pytest.raises(di.DynidentError, match=sentence):
        cli.run(arguments)
