"""Options of the commands that read logs: topics, units, rates, and the note of what was understood."""

from __future__ import annotations

import sys

import bad_input_corpus as corpus
import numpy as np
import pytest

import dynident as di
from dynident.__main__ import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A robot, its fit, and one held-out run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.urdf").write_text(corpus.URDF, encoding="utf-8")
    robot = di.Mechanism.from_urdf("robot.urdf")
    for name, seed in (("run.csv", 1), ("other.csv", 2)):
        (tmp_path / name).write_text(corpus.table(robot, seed), encoding="utf-8")
    log = di.Log.read("run.csv", effort="joint_torque")
    di.WLS().fit(di.Regression.from_log(robot, log)).result_.save(tmp_path / "fit.json")
    return tmp_path


@pytest.fixture
def validate(folder, monkeypatch, capsys):
    def call(*args: str, code: int = 0) -> tuple[str, str]:
        command = ["dynident", "validate", "fit.json", *args, "--effort", "joint_torque"]
        monkeypatch.setattr(sys, "argv", command)
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main()
        out, err = capsys.readouterr()
        assert stopped.value.code == code, err
        return out, err

    return call


def test_units_and_rates_are_options(validate):
    other = di.Log.read("other.csv", effort="joint_torque")
    expected, silent = validate("other.csv")
    assert silent == ""
    np.savez("other.npz", q=np.degrees(other.position), tau=other.effort * 1e3)
    out, err = validate("other.npz", "--unit", "position=deg", "--unit", "effort=mNm", "--rate", "100")
    assert out == expected
    for words in ("other.npz: ", "channels joint_1 to joint_2, in this order", "deg times", "sample number / 100"):
        assert words in err
    _, err = validate("other.npz", "--unit", "deg", code=1)
    assert "--unit is 'deg'; give a quantity and its unit, such as position=deg" in err


def test_encoder_counts_are_an_option(validate):
    other = di.Log.read("other.csv", effort="joint_torque")
    expected, _ = validate("other.csv")
    np.savez("counts.npz", t=other.t, q=other.position * 2.0**40, tau=other.effort)  # a power of two loses no bit
    asked = ("counts.npz", "--unit", "position=counts")
    out, _ = validate(*asked, "--counts-per-unit", str(2.0**40))
    assert out.replace("'counts'", "'other'") == expected
    _, err = validate(*asked, code=1)
    assert "give --counts-per-unit 1303.8 for an encoder with 8192 counts per turn" in err
    _, err = validate(*asked, "--counts-per-unit", "0", code=1)
    assert "--counts-per-unit 0.0 is not a number of counts" in err


def test_topics_are_an_option(validate):
    pytest.importorskip("mcap")
    pytest.importorskip("rosbags.typesys")
    expected, _ = validate("other.csv")
    di.Log.read("other.csv", effort="joint_torque").save("other.mcap")
    out, err = validate("other.mcap", "--topic", "/joint_states")
    assert out == expected
    assert "stamps in the headers" in err
    _, err = validate("other.mcap", "--topic", "/none", code=1)
    assert "it holds /joint_states" in err


def test_an_episode_is_an_option(validate):
    expected, _ = validate("other.csv")
    logs = [di.Log.read(f"{name}.csv", effort="joint_torque") for name in ("run", "other")]
    joined = {"t": np.concatenate([log.t for log in logs]), "q": np.vstack([log.position for log in logs])}
    joined |= {"tau": np.vstack([log.effort for log in logs]), "episode_index": np.repeat([0, 1], [len(log) for log in logs])}
    np.savez("both.npz", **joined)
    out, err = validate("both.npz", "--episode", "1")
    assert out.replace("'both'", "'other'") == expected and "episode 1: " in err
    _, err = validate("both.npz", code=1)
    assert "it contains 2 episodes (column 'episode_index': 0, 1); choose one with --episode" in err


def test_a_joint_that_is_not_in_the_log_can_stand_elsewhere(folder):
    log = di.Log.read("other.csv", effort="joint_torque").select(["joint2"])
    robot = di.Mechanism.from_urdf("robot.urdf")
    (note,) = (n.sentence for n in di.Regression.from_log(robot, log).notes if n.kind == "joints_held")
    assert "fixed at zero: joint1; give" in note and "robot.lock({'joint1': 0.5}) (--lock joint1=0.5)" in note
    assert not any(n.kind == "joints_held" for n in di.Regression.from_log(robot.lock({"joint1": 0.5}), log).notes)


def test_what_a_file_needs_is_said_before_the_work(folder, monkeypatch, capsys):
    monkeypatch.setattr("dynident.signals.writers.find_spec", lambda name: None)
    for command in (["simulate", "nowhere", "--robot", "robot.urdf", "-o", "x.parquet"], ["convert", "nowhere.csv", "x.mcap"]):
        monkeypatch.setattr(sys, "argv", ["dynident", *command])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == 1 and "pip install 'dynident[" in capsys.readouterr().err
