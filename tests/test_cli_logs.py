"""Options of the commands that read logs: topics, units, rates, and the note of what was understood."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import bad_input_corpus as corpus
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
        command = ["dynident", "validate", "robot.urdf", "fit.json", *args, "--effort", "joint_torque"]
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
