"""The friction command on simulated logs: one axis, warming up."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'dynident[report]'")

from test_testbench_plateaus import campaign

import dynident as di
from dynident.__main__ import main
from dynident.signals import Log

URDF = """<robot name="one"><link name="base"/><link name="arm"><inertial><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="axis" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/></joint></robot>"""


def run(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr("sys.argv", ["dynident", *args])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_friction_of_logs_is_studied_and_reported(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("robot.urdf").write_text(URDF, encoding="utf-8")
    names = []
    for i, log in enumerate(campaign(np.random.default_rng(3), cycles=12)):
        names.append(f"cycle{i:02d}.npz")
        log.save(names[-1])
    assert run(monkeypatch, "friction", "robot.urdf", *names, "-o", "out", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["joints"][0]["joint"] == "axis"
    assert data["joints"][0]["curves"]["gravity"]["Qa"] == pytest.approx(12.0, rel=0.02)
    assert "Friction against speed" in Path("out/friction.html").read_text(encoding="utf-8")
    assert di.load("out/friction.json").numbers() == data


def test_a_log_without_plateaus_is_one_sentence(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("robot.urdf").write_text(URDF, encoding="utf-8")
    t = np.arange(0.0, 20.0, 0.004)
    Log(t, ("axis",), np.sin(2.0 * t), np.cos(2.0 * t), "joint_torque").save("sine.npz")
    assert run(monkeypatch, "friction", "robot.urdf", "sine.npz", "-o", "out") == 1
    error = capsys.readouterr().err
    assert "no joint could be studied" in error
    assert "Traceback" not in error
    assert not Path("out").exists()
