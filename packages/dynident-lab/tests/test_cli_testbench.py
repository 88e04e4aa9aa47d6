"""The commands friction, on simulated logs of one axis that warms up, and repeatability."""

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
from dynident_lab.testbench import CycleFits

URDF = """<robot name="one"><link name="base"/><link name="arm"><inertial><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="axis" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/></joint></robot>"""


def run(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr("sys.argv", ["dynident", *args])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_friction_of_a_joint_that_moves_alone_knows_inertia_and_gravity(monkeypatch, capsys, tmp_path):
    arm = tmp_path / "arm.urdf"
    arm.write_text(URDF.replace('mass value="1"', 'mass value="2"').replace("<inertial>", '<inertial><origin xyz="0.3 0 0"/>'))
    arm.write_text(arm.read_text().replace('xyz="0 0 1"', 'xyz="0 1 0"'))  # it lifts its weight
    t = np.arange(0.0, 20.0, 1e-3)
    w = 2.0 * np.pi * np.array([0.1, 0.37, 0.83])
    phase = np.outer(t, w) + np.array([0.0, 1.0, 2.0])
    q, v, a = np.sin(phase) @ (0.5 / w), 0.5 * np.cos(phase).sum(axis=1), -np.sin(phase) @ (0.5 * w)
    rubbing = 0.5 * v + 1.5 * np.tanh(20.0 * v)
    robot = di.Mechanism.load(arm)
    tau = di.inverse_dynamics(robot, di.Motion(t, q[:, None], v[:, None], a[:, None]))[:, 0] + rubbing
    measured = q + 1e-6 * np.random.default_rng(0).normal(size=t.size)
    Log(t, ["axis"], measured[:, None], tau[:, None], "joint_torque").save(tmp_path / "alone.csv")
    assert run(monkeypatch, "friction", str(arm), str(tmp_path / "alone.csv"), "--alone", "axis", "--json") == 0
    p = json.loads(capsys.readouterr().out)
    speed = np.linspace(0.1, 1.2, 12)
    found = p["Bv"] * speed + p["Bf1"] * np.tanh(p["w1"] * speed) + p["Bf2"] * np.tanh(p["w2"] * speed)
    assert found == pytest.approx(0.5 * speed + 1.5 * np.tanh(20.0 * speed), rel=0.02)
    assert run(monkeypatch, "friction", str(arm), str(tmp_path / "alone.csv"), "--alone", "wrist") == 1
    assert "joint 'wrist' is not in the log; it has axis" in capsys.readouterr().err


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


def cycles(folder: Path, name: str, mass: float, seed: int) -> Path:
    t = np.arange(12.0) * 300.0
    friction = 10.0 + 4.0 * np.exp(-t / 1500.0)
    values = np.column_stack([np.full(t.size, mass), friction]) + 0.002 * np.random.default_rng(seed).normal(size=(t.size, 2))
    fits = CycleFits(
        "arm", name, "cubic", tuple(range(12)), t, ("my_link_3R", "a0_joint_1"), values, 0.002 + 0 * values, 0 * t, 0 * t
    )
    (folder / name).mkdir(parents=True)
    fits.save(folder / name / "cycles.json")
    return folder / name / "cycles.json"


def test_robots_that_differ_are_told_from_days_that_differ(monkeypatch, capsys, tmp_path):
    files = [str(cycles(tmp_path, f"day_{k}", 1.0 if k < 4 else 1.05, k)) for k in range(8)]
    words = ("repeatability", *files, "--robots", "A,A,A,A,B,B,B,B", "-o", str(tmp_path / "out"))
    assert run(monkeypatch, *words, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    mass = next(entry for entry in found["parameters"] if entry["name"] == "my_link_3R")
    assert mass["spread"]["robots"] == pytest.approx(0.05 / np.sqrt(2.0), rel=0.05)
    assert mass["spread"]["robots_p"] < 1e-6 and mass["spread"]["tests"] < 0.002
    friction = di.load(tmp_path / "out" / "repeatability.json")["a0_joint_1"]
    assert friction.spread.robots_p > 0.01 and friction.mix is not None
    assert friction.mix.change == pytest.approx(0.4, rel=0.03)
    assert (tmp_path / "out" / "repeat_my_link_3R.png").exists()
    assert run(monkeypatch, "repeatability", *files, "--robots", "A,B") == 1
    assert "--robots names 2 robots for 8 campaigns" in capsys.readouterr().err
    assert run(monkeypatch, "repeatability", str(tmp_path / "none.json")) == 1
    assert "there is no file" in capsys.readouterr().err
