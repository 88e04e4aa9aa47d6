"""The commands of the virtual robot, run as a user would."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'dynident[report]'")

import dynident as di
from dynident.__main__ import main
from dynident.trajectory import random_motion, sample, to_csv

URDF = """<robot name="two"><link name="base"/>
<link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="3"/>
<inertia ixx="0.02" iyy="0.05" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="lower"><inertial><origin xyz="0.15 0 0"/><mass value="1.5"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" effort="150" velocity="5"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0.4 0 0"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" effort="60" velocity="5"/></joint></robot>"""


def run(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr("sys.argv", ["dynident", *args])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("robot.urdf").write_text(URDF, encoding="utf-8")
    motion = sample(random_motion([0.2, -0.5], [0.8, 0.7], 1, 4.0), 200.0)
    to_csv("motion.csv", motion, ("shoulder", "elbow"))
    return tmp_path


def test_a_motion_on_a_description_becomes_a_log_that_identifies_it(monkeypatch, capsys, folder: Path) -> None:
    args = ("simulate", "motion.csv", "--robot", "robot.urdf", "-o", "run.parquet", "--noise", "0.01", "--seed", "3")
    assert run(monkeypatch, *args, "--truth", "truth.npz", "--figures", "figures", "--json") == 0
    told = capsys.readouterr()
    data = json.loads(told.out)
    assert "computed_torque" in told.err and "ideal drives" in told.err
    assert data["settings"]["seed"] == 3 and data["samples"] == 4001 and data["real_time_factor"] > 0.0
    assert set(data["tracking"]) == {"shoulder", "elbow"} and data["tracking"]["elbow"]["largest"] < 1e-3
    assert {Path(path).name for path in data["written"]} == {"run.parquet", "truth.npz", "tracking.png"}
    assert Path("figures/tracking.png").read_bytes().startswith(b"\x89PNG")
    log = di.Log.read("run.parquet")
    assert log.effort_kind == "joint_torque" and log.truth is not None
    robot = di.Mechanism.from_urdf("robot.urdf")
    fit = di.WLS().fit(di.Regression.from_log(robot, log)).result_
    truth = fit.base.regrouping @ robot.parameters.values
    large = np.abs(truth) > 0.1 * np.abs(truth).max()
    np.testing.assert_allclose(fit.values[large], truth[large], rtol=0.02)
    with np.load("truth.npz", allow_pickle=False) as signals:
        noise = log.effort - signals["motor_torque"]
        ratio = noise.std(axis=0) / np.sqrt(np.mean(signals["motor_torque"] ** 2, axis=0))
    np.testing.assert_allclose(ratio, 0.01, rtol=0.1)


def test_controllers_methods_and_steps_can_be_chosen(monkeypatch, capsys, folder: Path) -> None:
    found = {}
    for name, options in {
        "own": (),
        "decoupled": ("--method", "decoupled"),
        "pd": ("--controller", "pd"),
        "cascade": ("--controller", "cascade", "--bandwidth", "8"),
        "fine": ("--step", "1.25e-4"),
    }.items():
        assert run(monkeypatch, "simulate", "motion.csv", "--robot", "robot.urdf", "--json", *options) == 0
        found[name] = json.loads(capsys.readouterr().out)
    largest = {name: data["tracking"]["shoulder"]["largest"] for name, data in found.items()}
    assert largest["decoupled"] == pytest.approx(largest["own"], rel=1e-6)
    assert largest["pd"] > 10.0 * largest["own"]  # nothing carries the weight
    assert found["cascade"]["settings"]["controller"] == "Cascade" and largest["cascade"] < 0.01
    assert found["fine"]["settings"]["step"] == 1.25e-4
    assert largest["fine"] == pytest.approx(largest["own"], rel=0.05)


def test_positions_alone_are_enough_for_a_motion(monkeypatch, capsys, folder: Path) -> None:
    motion = sample(random_motion([0.2, -0.5], [0.8, 0.7], 1, 4.0), 200.0)
    header = "t,q_elbow,q_shoulder"  # columns are found by name
    np.savetxt("bare.csv", np.column_stack([motion.t, motion.q[:, ::-1]]), delimiter=",", header=header, comments="")
    assert run(monkeypatch, "simulate", "bare.csv", "--robot", "robot.urdf", "--json", "-o", "a.csv.gz") == 0
    bare = json.loads(capsys.readouterr().out)
    assert run(monkeypatch, "simulate", "motion.csv", "--robot", "robot.urdf", "--json", "-o", "b.npz") == 0
    whole = json.loads(capsys.readouterr().out)
    assert bare["tracking"]["elbow"]["largest"] == pytest.approx(whole["tracking"]["elbow"]["largest"], rel=0.01)
    np.testing.assert_allclose(di.Log.read("a.csv.gz").position, di.Log.read("b.npz").position, atol=1e-4)


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("simulate", "motion.csv", "--robot", "nope"), "robot 'nope' does not exist"),
        (("simulate", "nope", "--robot", "robot.urdf"), "plan 'nope' does not exist"),
        (("simulate", "motion.csv", "--robot", "robot.urdf", "-o", "run.txt"), "must end in .csv"),
        (("simulate", "motion.csv", "--robot", "robot.urdf", "--truth", "run.csv"), "it is written as .npz"),
        (("simulate", "motion.csv", "--robot", "robot.urdf", "--controller", "magic"), "it must be one of computed_torque"),
        (("simulate", "motion.csv", "--robot", "robot.urdf", "--method", "odd"), "coupled, decoupled"),
        (("simulate", "motion.csv", "--robot", "robot.urdf", "--step", "3e-4"), "not a whole multiple"),
        (("simulate", "motion.csv", "--robot", "robot.urdf", "--noise", "-1"), "at least 0"),
        (("simulate", "few.csv", "--robot", "robot.urdf"), "at least 6 finite samples"),
    ],
)
def test_bad_input_is_one_sentence(monkeypatch, capsys, folder: Path, args: tuple[str, ...], sentence: str) -> None:
    Path("few.csv").write_text("t,q_shoulder,q_elbow\n0,0,0\n1,0,0\n", encoding="utf-8")
    assert run(monkeypatch, *args) == 1
    error = capsys.readouterr().err
    assert sentence in error and "Traceback" not in error
    assert sum(line.startswith("dynident:") for line in error.splitlines()) == 1


def test_positions_of_other_coordinates_are_told(monkeypatch, capsys, folder: Path) -> None:
    to_csv("three.csv", sample(random_motion([0.2, -0.5, 0.0], [0.8, 0.7, 0.1], 1, 0.5), 200.0), ("shoulder", "elbow", "wrist"))
    assert run(monkeypatch, "simulate", "three.csv", "--robot", "robot.urdf", "-q") == 0
    assert "has positions of wrist too" in capsys.readouterr().err
