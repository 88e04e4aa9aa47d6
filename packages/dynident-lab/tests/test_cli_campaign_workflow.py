"""A campaign ends with a verdict: excite, simulate-campaign, identify; the same as MCAP."""

import json
from pathlib import Path

import pytest

import dynident as di
import dynident_lab
from dynident.cli import run

ROBOT = """<robot name="bar"><link name="base"/><link name="arm"><inertial><origin xyz="0.2 0 0.05"/><mass value="2"/>
<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.03"/></inertial></link>
<joint name="lift" type="revolute"><parent link="base"/><child link="arm"/><origin xyz="0 0 0.6"/><axis xyz="0 1 0"/>
<limit lower="-1.2" upper="1.2" velocity="2" effort="80"/></joint></robot>"""


def test_commands_that_print_a_next_one_are_tried() -> None:
    folder = Path(dynident_lab.__file__).parent / "cli"
    found = {path.stem for path in folder.glob("*.py") if "print_next(" in path.read_text(encoding="utf-8")}
    assert found == {"campaigns", "link"}  # below, and in test_cli_link.py


def test_stages_of_a_campaign_and_of_its_mcap_are_fitted_and_judge(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bar.urdf").write_text(ROBOT, encoding="utf-8")
    assert run(["excite", "bar.urdf", "--iterations", "2", "--starts", "1", "-o", "plan", "-q"]) == 0
    assert run(["simulate-campaign", "plan", "--robot", "bar.urdf", "--cycles", "2", "-o", "tests"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("next:")]
    assert run([*line.split()[2:], "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)
    names = ["tests/cycle 0/validation", "tests/cycle 1/validation"]
    assert verdict["validated"] and [score["log"] for score in verdict["scores"]] == names
    fit = di.Fit.load("tests_out/fit.json")
    assert [source["name"] for source in fit.sources] == ["tests/cycle 0/excitation", "tests/cycle 1/excitation"]
    assert {path.name for path in Path("tests_out").iterdir()} >= {"report.html", "verdict.json", "identified.urdf"}
    pytest.importorskip("mcap")
    di.Log.read("tests").save("tests.mcap")
    assert run(["identify", "bar.urdf", "tests.mcap", "-o", "again", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["validated"] and len(again["scores"]) == 2
    assert again["scores"][0]["relative"] == pytest.approx(verdict["scores"][0]["relative"], rel=1e-3)
