"""The commands controller and record, as a person types them: two processes on this computer, what they refuse in this one."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from link_process import plan

import dynident as di
from dynident.__main__ import main
from dynident.cli import run as here
from dynident.examples import arm6
from dynident.excitation import Plan, Stage
from dynident_lab.thermal import friction_plateaus

ROBOT = str(arm6().source)
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(di.__file__).parents[1])}


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "dynident", *map(str, words)]


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), env=ENVIRONMENT, capture_output=True, text=True, timeout=900, check=False)


@pytest.fixture(scope="module")
def address():
    words = command("controller", ROBOT, "--motion-port", 0, "--state-port", 0, "--speed", 20, "--json", "--quiet")
    with subprocess.Popen(words, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        text = ""
        for line in process.stdout or ():
            text += line
            if line.startswith("}"):
                break
        yield json.loads(text)["address"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0


def rough_fit() -> di.Fit:
    """Return a fit of the robot with so much noise that its monitor stays calm."""
    robot, rng = di.Mechanism.from_urdf(ROBOT), np.random.default_rng(0)
    motion = di.Motion(np.arange(600.0), *(rng.uniform(-x, x, (600, 6)) for x in (3.0, 2.0, 8.0)))
    effort = di.inverse_dynamics(robot, motion) + 30.0 * rng.normal(size=(600, 6))
    return di.WLS().fit(di.Regression.from_motion(robot, motion, effort)).result_


def test_a_plan_is_recorded_by_two_commands(address, tmp_path, capsys) -> None:
    plan(1).save(tmp_path / "plan" / "plan.json")
    rough_fit().save(tmp_path / "fit.json")
    watched = ("--model", ROBOT, "--monitor", tmp_path / "fit.json", "--live-fit", tmp_path / "live.json")
    done = run("record", tmp_path / "plan", "--controller", address, "-o", tmp_path / "campaign", "--json", *watched)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["cycles"] == 1
    assert result["gaps"] == 0
    live = json.loads((tmp_path / "live.json").read_text(encoding="utf-8"))
    assert live["samples"] > 500
    assert len(live["names"]) == len(live["values"]) == len(live["deviations"])
    log = di.Log.read(tmp_path / "campaign")
    assert set(log.stages()) == {"excitation", "warming"}
    assert here(("record", "--resume", str(tmp_path / "campaign"))) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-2].startswith("1 cycle complete")
    words = shlex.split(said[-1].removeprefix("next:"))
    assert words[:3] == ["dynident", "identify", "ROBOT"]  # a campaign that is resumed does not know the file
    assert here([ROBOT if word == "ROBOT" else word for word in words[1:]]) == 0
    assert (tmp_path / "campaign_out" / "fit.json").exists()


def test_a_plan_a_controller_and_a_record_make_a_friction_study(address, tmp_path) -> None:
    """The whole study in small: two cycles of plateaus of all joints become a page and a file about every joint."""
    low, high = np.array([[-1.0], [1.0]]) * np.full(6, 0.9)
    stage = Stage("friction", "friction", friction_plateaus(low, high, np.ones(6), np.full(6, 8.0), (0.3, 0.9), 0.5))
    joints = tuple(f"joint{i}" for i in range(1, 7))
    Plan("arm6", joints, [stage], 2, 125.0, 3.0, 10.0, np.zeros(6)).save(tmp_path / "plan" / "plan.json")
    done = run("record", tmp_path / "plan", "--controller", address, "-o", tmp_path / "campaign", "--json")
    assert done.returncode == 0, done.stderr
    files = str(tmp_path / "campaign"), "--by", "all", "-o", str(tmp_path / "study")
    assert here(("friction", ROBOT, *files, "--quiet")) == 0
    assert (tmp_path / "study" / "friction.html").exists()
    found = json.loads((tmp_path / "study" / "friction.json").read_text(encoding="utf-8"))
    assert all(name in json.dumps(found) for name in joints)


def test_a_dry_run_says_what_and_how_long(tmp_path, capsys) -> None:
    plan(3).save(tmp_path / "plan.json")
    options = "--repetitions", "2", "--rest", "8h", "--start-below", "22", "--dry-run"
    assert here(("record", str(tmp_path / "plan.json"), *options)) == 0
    said = capsys.readouterr().out
    for words in ("6 cycles", "below 22 degC", "excitation", "8 h 00 min"):
        assert words in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["controller", "nobody"], "nobody"),
        (["controller", ROBOT, "--protocol", "morse"], "it must be one of simple_message, lynx"),
        (["controller", ROBOT, "--rate", "0"], "--rate is 0"),
        (["controller", ROBOT, "--key-file", "missing"], "cannot be read"),
        (["controller", ROBOT, "--duration", "1e30"], "--duration is 1e+30; give 0 to"),
        (["controller", ROBOT, "--feedback", "nan"], "--feedback is nan"),
        (["track", ROBOT, "--seed=-1"], "--seed is -1"),
        (["schedule", ROBOT, "--joint", "joint4", "--interval", "1e-30", "-o", "x"], "a time of at least 1 s"),
        (["record"], "give a plan"),
        (["record", "missing"], "does not exist"),
        (["record", "--resume", "missing"], "is not a campaign"),
        (["record", "--tell", "dance"], "it must be one of pause, continue, abort"),
        (["record", "plan", "--healthy", "before"], "--healthy sets the thresholds of --monitor; give both"),
    ],
)
def test_wrong_words_are_one_sentence(words, sentence, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["dynident", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    told = capsys.readouterr().err
    assert sentence in told
    assert "Traceback" not in told
    assert len(told.strip().splitlines()) == 1
