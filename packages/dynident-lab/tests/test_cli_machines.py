"""Commands of lab for a robot of one's own: track, bandwidth, FMU, simulate-campaign and cycles."""

from __future__ import annotations

import json
import shutil
import sys
from zipfile import ZipFile

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'dynident[report]'")

import dynident as di
from dynident.cli import run
from dynident.drive import read_drives
from dynident.plugins import COMMANDS, EXPORTERS, PLANS, PROVIDED, ROBOTS, entries
from dynident.trajectory import random_motion, sample, to_csv
from dynident_lab.testbench import own_case

INERTIA = """<inertial><origin xyz="0 0 0.2"/><mass value="2"/>
<inertia ixx="0.03" iyy="0.03" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial>"""
URDF = f"""<robot name="two"><link name="base"/><link name="a">{INERTIA}</link><link name="b">{INERTIA}</link>
<joint name="j1" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" velocity="2" effort="60"/><dynamics damping="0.5" friction="0.8"/></joint>
<joint name="j2" type="revolute"><parent link="a"/><child link="b"/><origin xyz="0 0 0.4"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" velocity="2" effort="30"/><dynamics damping="0.2" friction="0.4"/></joint></robot>"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "robot.urdf").write_text(URDF)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(capsys, *args: str) -> tuple[str, str]:
    assert run(args) == 0
    printed = capsys.readouterr()
    return printed.out, printed.err


def test_track_proves_the_model_of_my_robot_and_ends_in_a_sentence(folder, capsys):
    text, _ = call(capsys, "track", "robot.urdf", "--lock", "j2")
    assert "ideal drives" in text
    case = own_case(di.Mechanism.from_urdf("robot.urdf").lock({"j2": 0.0}))
    proof = case.run()

    def rms(name):
        return np.array([np.sqrt(np.mean(proof.trial(name, motion).error ** 2, axis=0)) for motion in proof.motions])

    alone, catalogue, identified = (rms(name) for name in proof.controllers)
    lower = 100 * (1 - np.sqrt(np.mean((identified / alone) ** 2)))
    assert text.splitlines()[-1] == proof.conclusion()
    assert lower > 99.0
    assert "lowers the rms tracking error by more than 99 % compared with the feedback alone" in proof.conclusion()
    lower = 100 * (1 - np.sqrt(np.mean((identified / alone) ** 2)) / np.sqrt(np.mean((catalogue / alone) ** 2)))
    assert f"catalogue model it lowers the rms tracking error by {lower:.0f} %" in proof.conclusion()
    assert np.all(identified < catalogue)


def test_bandwidth_of_my_robot(folder, capsys):
    text, notes = call(capsys, "bandwidth", "robot.urdf", "--coordinate", "j2", "--frequencies", "1,40", "--no-alone")
    assert "ideal drives and a controller 'cascade' of 10 Hz are assumed" in notes
    last = text.splitlines()[-1]
    assert last.startswith("conclusion: j2 of 'two' follows its command up to ") and "Hz (-3 dB)" in last


DRIVES = """[[drive]]
actuator = "j1"
motor = { torque_constant = 0.1, inertia = 2e-4, current_limit = 20.0 }
gear = { ratio = 60.0 }
encoder = { counts = 8192, side = "motor", filter = 300.0 }
friction = { law = "coulomb + viscous", values = { fc = 0.01, fv = 1e-4 } }

[[drive]]
motor = { torque_constant = 0.05, inertia = 1e-4 }
gear = { ratio = 50.0, inertias = [1e-5], stiffness = [20.0], damping = [0.02] }
"""


def test_track_and_bandwidth_take_my_drives(folder, capsys):
    (folder / "drives.toml").write_text(DRIVES)
    text, _ = call(capsys, "track", "robot.urdf", "--drives", "drives.toml")
    assert "ideal drives" not in text
    assert "drive 'j2' is elastic" in text
    assert "the identified model lowers the rms tracking error by " in text.splitlines()[-1]
    robot = di.Mechanism.from_urdf("robot.urdf")
    drives = read_drives("drives.toml", robot)
    case = own_case(robot, drives=drives)
    # Rotors are in the robot that is to be identified, seen at the joints; friction that was described is not counted again.
    known = case.machine.model.parameters.to_dict()
    assert known["ia_j1"] == pytest.approx(60.0**2 * 2e-4)
    assert known["ia_j2"] == pytest.approx(50.0**2 * (1e-4 + 1e-5))
    assert known["fc_j1"] == pytest.approx(max(0.8, 60.0 * 0.01))
    assert known["fv_j1"] == pytest.approx(max(0.5, 60.0**2 * 1e-4))
    found = case.run().fit.model.parameters.to_dict()
    assert found["fc_j1"] == pytest.approx(known["fc_j1"], rel=0.05)
    options = ("--coordinate", "j1", "--frequencies", "1,40", "--no-alone", "--drives", "drives.toml")
    text, notes = call(capsys, "bandwidth", "robot.urdf", *options)
    assert "a controller 'cascade' of 10 Hz is assumed" in notes and "ideal" not in notes
    assert text.splitlines()[-1].startswith("conclusion: j1 of 'two'")


def test_numbers_are_written_without_matplotlib(folder, capsys, monkeypatch):
    import dynident.figures

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    _, notes = call(capsys, "track", "robot.urdf", "--lock", "j2", "-o", "out")
    assert "no figures were written: drawing figures needs the package 'matplotlib'" in notes
    assert [path.name for path in (folder / "out").iterdir()] == ["tracking.json"]
    assert dynident.figures


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)  # without a compiler an FMU is quick, and a note says so


@pytest.mark.usefixtures("quick")
def test_a_robot_becomes_an_fmu(folder, capsys):
    text, notes = call(capsys, "export", "robot.urdf", "--for", "fmu", "-o", "arm.fmu")
    assert "arm.fmu (FMI 3.0, co-simulation and model exchange)" in text
    assert "no C compiler found" in notes
    call(
        capsys,
        "export",
        "robot.urdf",
        "--for",
        "fmu",
        "-o",
        "arm.fmu",
        "--option",
        "controller=cascade",
        "--option",
        "bandwidth=5",
    )
    assert 'name="q_ref_j1"' in ZipFile(folder / "arm.fmu").read("modelDescription.xml").decode()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("-o", "arm.zip"), "name it .fmu"),
        (("-o", "arm.fmu", "--option", "controller=pi"), "it is one of torque"),
        (("-o", "arm.fmu", "--option", "controller=pd", "--option", "bandwidth=-1"), "give a frequency above 0 Hz"),
        (("-o", "arm.fmu", "--option", "colour=red"), "--for fmu knows controller, drives, bandwidth"),
    ],
)
def test_wrong_settings_of_an_fmu_are_one_sentence(folder, words, sentence):
    with pytest.raises(di.DynidentError, match=sentence):
        run(["export", "robot.urdf", "--for", "fmu", *words])


def test_a_campaign_is_simulated_and_identified_cycle_by_cycle(folder, capsys):
    call(capsys, "excite", "robot.urdf", "--iterations", "5", "--starts", "1", "-o", "plan", "-q")
    words = ("simulate-campaign", "plan", "--robot", "robot.urdf", "--cycles", "2", "-o", "campaign")
    text, _ = call(capsys, *words)
    assert "2 cycles in 'campaign', 2 new" in text
    assert "2 cycles in 'campaign', 0 new" in call(capsys, *words)[0]  # it goes on where it was
    data = json.loads(call(capsys, "cycles", "robot.urdf", "campaign", "-o", "fits", "--json")[0])
    assert data["cycles"] == [0, 1]
    assert {"cycles.json", "fit.json"} <= {path.name for path in (folder / "fits").iterdir()}
    assert di.load("fits/cycles.json").to_dict() == data
    text, _ = call(capsys, "identify", "robot.urdf", "campaign")  # all cycles are one fit, judged by their validation stages
    assert "held out: stage campaign/cycle 0/validation, stage campaign/cycle 1/validation" in text
    with pytest.raises(di.DynidentError, match="--estimator is 'tls'; it must be one of map, wls, ols"):
        run(["cycles", "robot.urdf", "campaign", "--estimator", "tls"])
    to_csv("motion.csv", sample(random_motion([0.2, -0.5], [0.5, 0.5], 1, 1.0), 200.0), ("j1", "j2"))
    with pytest.raises(di.DynidentError, match="a campaign needs a plan"):
        run(["simulate-campaign", "motion.csv", "--robot", "robot.urdf", "-o", "other"])


def test_the_core_knows_what_this_package_adds():
    for group in (COMMANDS, EXPORTERS, PLANS, ROBOTS):
        mine = {name for name, entry in entries(group).items() if entry.dist is not None and entry.dist.name == "dynident-lab"}
        assert mine == set(PROVIDED[group]["lab"])


def test_options_of_the_robot_are_those_of_the_core(capsys):
    for command in ("friction", "cycles", "maintenance", "schedule", "simulate-campaign", "track", "bandwidth"):
        text, _ = call(capsys, command, "--help-all")
        assert all(option in text for option in ("--sidecar", "--search", "--arg")), command


def test_a_group_without_its_command_shows_its_commands(capsys):
    assert run(["fleet"]) == 2
    assert "identify" in capsys.readouterr().out
    assert run(["fleet", "--help"]) == 0
    assert "dynident fleet report out/" in call(capsys, "fleet", "report", "--help")[0]
    assert run(["fleet", "reprt"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
