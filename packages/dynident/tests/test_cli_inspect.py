"""The command inspect: faults of a log before it is fitted, most serious first, and what a script learns from its exit code."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.cli import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("inspect")
    di.examples.arm6(place)
    return place


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


def changed(name: str, **values: object) -> str:
    """Write the example's log with other values, and return its file name."""
    replace(di.examples.arm6().run, **values).save(name)
    return name


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 3) -> dict[str, str]:
    """Return the severity of each kind that a command finds, most serious first."""
    assert run(["inspect", *words, "--json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert found["usable"] is (code == 0)
    assert [f["severity"] for f in found["findings"]] == sorted(
        (f["severity"] for f in found["findings"]), key=("error", "warning", "info").index
    )
    return {f["kind"]: f["severity"] for f in reversed(found["findings"])}


@pytest.mark.usefixtures("here")
def test_a_good_log_has_nothing_serious(capsys: pytest.CaptureFixture[str]) -> None:
    plain = ("run.csv", "--effort", "joint_torque")
    assert run(["inspect", *plain]) == run(["inspect", *plain, "--robot", "robot.urdf"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith("looked for: clock, gaps, units, saturation, dead channels") and "excitation" in said[2]
    assert said[1] == said[3] == "log 'run': nothing suspicious"
    assert said[4] == "next:  dynident identify robot.urdf run.csv --effort joint_torque -o run_out"


@pytest.mark.usefixtures("here")
def test_the_robot_shows_signs_and_gains(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("run.csv", "--effort", "joint_torque", "--robot", "robot.urdf")
    assert told(capsys, *words, "--gain=-1,1,1,1,1,1") == {"sign": "error"}
    assert told(capsys, *words, "--gain", "2,1,1,1,1,1") == {"gain": "error"}
    assert told(capsys, "run.csv", "--effort", "joint_torque", "--gain=-1,1,1,1,1,1", code=0) == {}  # no robot to ask
    assert run(["inspect", *words, "--gain=-1,1,1,1,1,1"]) == 3
    text = capsys.readouterr().out
    assert "1 finding" in text and "the efforts of joint1 have the opposite sign" in text and "--gain" in text


@pytest.mark.usefixtures("here")
def test_signals_alone_show_gaps_limits_and_dead_channels(capsys: pytest.CaptureFixture[str]) -> None:
    log = di.examples.arm6().run
    t, effort = log.t.copy(), log.effort.copy()
    t[2000:] += 0.5
    effort[:, 1] = 0.0
    limit = 0.5 * np.abs(effort[:, 2]).max()
    effort[:, 2] = np.clip(effort[:, 2], -limit, limit)
    found = told(capsys, changed("faulty.csv", t=t, effort=effort))
    assert {"dead": "error", "gap": "warning", "saturated": "warning"}.items() <= found.items()


@pytest.mark.usefixtures("here")
def test_degrees_for_radians_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    name = changed("degrees.csv", position=np.rad2deg(di.examples.arm6().run.position))
    found = told(capsys, name, "--robot", "robot.urdf")
    assert next(reversed(found)) == "unit"


@pytest.mark.usefixtures("here")
def test_a_log_that_shows_too_little_is_pointless(capsys: pytest.CaptureFixture[str]) -> None:
    log = di.examples.arm6().run
    log.rows(0, 40).save("short.csv")
    assert told(capsys, "short.csv") == told(capsys, "short.csv", "--robot", "robot.urdf") == {"excitation": "error"}
    log.rows(0, 100).save("blink.csv")  # 0.4 s: some parameters do not act at all
    assert next(reversed(told(capsys, "blink.csv", "--robot", "robot.urdf"))) == "excitation"
    still = changed("still.csv", position=np.repeat(log.position[:1], len(log), axis=0))
    assert told(capsys, still)["excitation"] == "error"
    one = log.position.copy()
    one[:, 1:] = one[0, 1:]  # five of six joints stand still
    sentence = di.inspect(replace(log, position=one), di.examples.arm6().robot).of("excitation")[0].sentence
    assert "base parameters are not excited" in sentence and "dynident excite" in sentence
