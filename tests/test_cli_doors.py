"""Commands for a robot of one's own: tracking, bandwidth, joints held, the base freed, files converted, shells completed."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import dynident as di
from dynident.cli import run
from dynident.robots import own_case

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
    assert f"lowers the rms tracking error by {lower:.0f} % compared with the feedback alone" in proof.conclusion()
    assert np.all(identified < catalogue)


def test_bandwidth_of_my_robot(folder, capsys):
    text, notes = call(capsys, "bandwidth", "robot.urdf", "--coordinate", "j2", "--frequencies", "1,40", "--no-alone")
    assert "ideal drives and a controller 'cascade' of 10 Hz are assumed" in notes
    last = text.splitlines()[-1]
    assert last.startswith("conclusion: j2 of 'two' follows its command up to ") and last.endswith("Hz (-3 dB)")


def test_joints_are_held_and_the_base_is_freed(folder, capsys):
    for options, coordinates in (
        (("--lock", "j2=0.5"), ["j1"]),
        (("--keep", "j2"), ["j2"]),
        (("--floating",), [*(f"floating_base.{c}" for c in ("x", "y", "z", "rx", "ry", "rz")), "j1", "j2"]),
    ):
        data = json.loads(call(capsys, "describe", "robot.urdf", "--json", *options)[0])
        assert data["coordinates"] == coordinates
    with pytest.raises(di.errors.DynidentError, match="--lock is 'j2=x'"):
        run(["describe", "robot.urdf", "--lock", "j2=x"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell):
    words = {"COMP_WORDS": "dynident ex", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "dynident ex"}
    if shell == "fish":
        words["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    environment = {**os.environ, **words, "_DYNIDENT_COMPLETE": f"complete_{shell}"}
    code = "import sys; sys.argv = ['dynident']; from dynident.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert "excite" in done.stdout and "export" in done.stdout and "describe" not in done.stdout


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "npz", "parquet", "mat", "mcap"])
def test_a_log_is_converted(ending, folder, capsys):
    """What another program wrote with degrees and numbers for names arrives in SI in every format."""
    if ending in ("parquet", "mcap"):
        pytest.importorskip("pyarrow" if ending == "parquet" else "mcap")
    t = np.arange(50) / 100.0
    rows = np.column_stack([t, 90.0 * t, 3.0 * t])
    (folder / "run.csv").write_text(
        "time [s],q1 [deg],tau1 [Nm]\n" + "\n".join(",".join(map(repr, row)) for row in rows.tolist())
    )
    text, notes = call(capsys, "convert", "run.csv", f"out.{ending}", "--effort", "joint_torque", "--start", "0.1")
    assert f"written: out.{ending}" in text and "deg" in notes
    log = di.Log.read(f"out.{ending}")
    np.testing.assert_allclose(log.position[:, 0], np.pi / 2 * t[10:], atol=1e-12)
    np.testing.assert_allclose(log.t, t[10:], atol=1e-9)
    with pytest.raises(di.errors.DynidentError, match="give one of"):
        run(["convert", "run.csv", "out.xlsx", "--effort", "joint_torque"])
