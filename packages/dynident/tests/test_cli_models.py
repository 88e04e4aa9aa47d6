"""Commands about models: describe --svg, named robots, derive, ik."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dynident as di
from dynident.__main__ import main

ROBOT = str(Path(__file__).parents[3] / "examples" / "demo" / "robot.urdf")


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Return a function that runs the command line in an empty folder and returns (code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["dynident", *args])
        with pytest.raises(SystemExit) as end:
            main()
        shown = capsys.readouterr()
        return int(end.value.code or 0), shown.out, shown.err

    return run


def test_derive_writes_what_is_asked_for(call):
    code, text, _ = call("derive", ROBOT, "--c", "-o", "out")
    assert code == 0
    assert "numeric Newton-Euler" in text
    assert {path.suffix for path in Path("out").iterdir()} == {".c", ".h"}
    code, text, _ = call("derive", ROBOT, "--latex", "--numpy", "--json", "-o", "more")
    assert code == 0
    assert json.loads(text)["base_parameters"] == 58
    assert {path.suffix for path in Path("more").iterdir()} == {".tex", ".py"}


def test_ik_gives_all_branches_or_says_how_far_away(call):
    code, text, _ = call("ik", ROBOT, "--position", "0.5,0.1,0.6", "--rpy", "0,3,0", "--json")
    assert code == 0
    branches = json.loads(text)["branches"]
    assert len(branches) == 8
    assert sum(q is not None for q in branches.values()) >= 4
    code, _, error = call("ik", ROBOT, "--position", "5,0,0.6", "--rpy", "0,3,0")
    assert code == 1
    assert "out of reach" in error
    assert " m\n" in error


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("ik", ROBOT, "--position", "1,2"), "give 3"),
        (("ik", ROBOT, "--position", "a,b,c"), "numbers separated by commas"),
        (("describe", "nobot"), "nobot"),
    ],
)
def test_bad_calls_are_one_sentence(call, args, word):
    code, _, error = call(*args)
    assert code == 1
    assert word in error
    assert error.count("\n") == 1
    assert "Traceback" not in error


XACRO = """<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arg name="joint" default="j"/><link name="a"/>
<xacro:include filename="{}"/><joint name="$(arg joint)" type="revolute"><parent link="a"/><child link="b"/></joint></robot>"""
PART = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><link name="b"><inertial><mass value="${1 + 1}"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""


def test_a_xacro_takes_arguments_and_search_paths(call, tmp_path):
    for folder in ("robot", "parts"):
        (tmp_path / folder).mkdir()
    (tmp_path / "parts" / "part.xacro").write_text(PART)
    (tmp_path / "robot" / "r.XACRO").write_text(XACRO.format("../parts/part.xacro"))
    code, _, said = call("describe", "robot/r.XACRO")
    assert code == 1
    assert "outside the robot's folder" in said
    assert "--search" in said
    code, shown, _ = call("describe", "robot/r.XACRO", "--search", "parts", "--arg", "joint:=elbow", "--json")
    assert code == 0
    assert "elbow" in shown
    code, _, said = call("describe", "robot/r.XACRO", "--search", "parts", "--arg", "joint")
    assert code == 1
    assert "--arg is 'joint'; give name:=value" in said


def test_every_command_that_reads_a_robot_has_the_same_options(call):
    for command in ("describe", "identify", "export", "derive", "ik", "excite", "simulate"):
        code, shown, _ = call(command, "--help-all")
        assert code == 0
        assert all(option in shown for option in ("--sidecar", "--search", "--arg")), command


def test_a_xacro_does_not_ask_the_computer(call, tmp_path, monkeypatch):
    monkeypatch.setenv("DYNIDENT_TEST_JOINT", "shoulder")
    text = XACRO.replace("$(arg joint)", "$(env DYNIDENT_TEST_JOINT)")
    (tmp_path / "part.xacro").write_text(PART)
    (tmp_path / "r.xacro").write_text(text.format("part.xacro"))
    code, _, said = call("describe", "r.xacro")
    assert code == 1
    assert "depends on this computer" in said and "shoulder" not in said


def test_identify_holds_the_shapes_that_a_sidecar_calls_known(call):
    di.examples.arm6("demo")
    values = "{ fc = 0, fs = 0, vs = 0.05 }"
    Path("own.toml").write_text(f'[[friction]]\njoint = "joint2"\nlaw = "stribeck"\nvalues = {values}\nknown = ["vs"]\n')
    code, _, _ = call("identify", ROBOT, "demo/run.csv", "--effort", "joint_torque", "--sidecar", "own.toml", "-q", "-o", "out")
    assert code == 0
    found = di.load("out/fit.json").friction["joint2"]
    assert found.known == ("vs",)
    assert found.parameters["vs"] == pytest.approx(0.05, rel=1e-12)
