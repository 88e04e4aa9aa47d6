"""The command line on a robot with loops: a URDF four-bar with its sidecar and a log of its motor, end to end."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from test_loops_forms import urdf_robot

import dynident as di
from dynident.__main__ import main
from dynident.mechanics import actuator_torques

pytest.importorskip("matplotlib", reason="reports are an extra: pip install 'dynident[report]'")


def record(robot: di.Mechanism, path: Path, seed: int) -> None:
    """Write a log of the motor: position, and torque with friction and noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(4000) * 2e-3
    q, v, a = np.ones_like(t), np.zeros_like(t), np.zeros_like(t)
    for i in range(1, 6):
        w, size, phase = 0.5 * np.pi * i, 0.8 / i, rng.uniform(0.0, 6.0)
        q += size * (np.sin(w * t + phase) - np.sin(phase))
        v += size * w * np.cos(w * t + phase)
        a -= size * w**2 * np.sin(w * t + phase)
    motion = di.Motion(t, q[:, None], v[:, None], a[:, None])
    tau = actuator_torques(robot, motion.q, di.inverse_dynamics(robot, motion)) + rng.normal(0.0, 0.002, (t.size, 1))
    np.savetxt(path, np.column_stack([t, q, tau[:, 0]]), delimiter=",", header="t,q_motor,tau_motor", comments="")


class Command:
    """Calls `main` as the shell does and returns what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.capsys, self.patch = capsys, patch

    def __call__(self, *args: str, code: int = 0) -> str:
        self.patch.setattr(sys, "argv", ["dynident", *args])
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main()
        output, errors = self.capsys.readouterr()
        assert exit_.value.code == code, errors
        return errors if code else output


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(capsys, monkeypatch)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    robot = urdf_robot(tmp_path)
    for seed, name in enumerate(("train.csv", "test.csv")):
        record(robot, tmp_path / name, seed)
    monkeypatch.chdir(tmp_path)
    return tmp_path


LOGGED = ("--effort", "motor_torque", "--joints", "motor")
ABOUT = ("--sidecar", "bar.toml", *LOGGED)


def test_identify_validate_and_report(folder: Path, run: Command) -> None:
    more = ("--validate", "test.csv", "--recovery", "prior", "-o", "out", "--projection", "motor")
    run("identify", "bar.urdf", "train.csv", *ABOUT, *more)
    written = {path.name for path in (folder / "out").iterdir()}
    # A URDF has neither loops nor gravity.
    assert written == {"fit.json", "identified.urdf", "identified.toml", "report.html", "verdict.json"}
    robot = di.Mechanism.from_urdf(folder / "bar.urdf", sidecar=folder / "bar.toml")
    fit = di.Fit.load(folder / "out" / "fit.json", robot)
    assert fit.projection == ("motor",)
    verdict = json.loads(run("validate", "out/fit.json", "test.csv", *LOGGED, "--json"))
    held_out = next(check for check in verdict["checks"] if "held-out data" in check["sentence"])
    assert held_out["ok"], verdict
    run("report", "out/fit.json", "test.csv", *LOGGED, "-o", "again.html")
    for words in (("out/fit.json",), ("out/identified.urdf", "--sidecar", "out/identified.toml")):  # the same robot
        assert json.loads(run("describe", *words, "--json"))["dof"] == robot.dof
    assert (folder / "again.html").stat().st_size > 10_000


def test_a_wrong_projection_is_one_sentence(folder: Path, run: Command) -> None:
    said = run("identify", "bar.urdf", "train.csv", *ABOUT, "--projection", "q7", "-o", str(folder / "out"), code=1)
    assert "projection is q7; name 1 different ones of motor" in said
