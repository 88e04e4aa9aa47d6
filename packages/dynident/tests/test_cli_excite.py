"""The excite command: what it prints and writes, robots by name, and bad input in one sentence with nothing written."""

from __future__ import annotations

import io
import json
import logging
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'dynident[report]'")

from optional import optional
from rich.progress import Progress

import dynident as di
from dynident.__main__ import main
from dynident.cli.excite import searching
from dynident.cli.progress import progress
from dynident.errors import DynidentError
from dynident.excitation import Plan, check_plan, limits_of, read_limits
from dynident.signals import Log
from dynident.trajectory import Fourier, Trajectory

yaml = optional("yaml")

INERTIA = """<inertial><mass value="2"/><origin xyz="0.1 0.05 0.02"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>"""
LIMIT = '<limit lower="-1.5" upper="1.5" velocity="2" effort="100"/>'
URDF = f"""<robot name="two"><link name="base"/><link name="upper">{INERTIA}</link><link name="fore">{INERTIA}</link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>{LIMIT}</joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0.4 0 0"/>
<axis xyz="0 1 0"/>{LIMIT}</joint></robot>"""
FILES = {"plan.json", "plan.html", "design.json", "motion.csv", "motion_ros.json", "joint_trajectory_controller.yaml"}
QUICK = ("--iterations", "20", "--starts", "1", "--frequency", "0.25", "--harmonics", "4")


def run(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr("sys.argv", ["dynident", "excite", *args])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("robot.urdf").write_text(URDF, encoding="utf-8")
    Path("limits.toml").write_text("margin = 0.02\nbandwidth = 3.0\n[default]\nacceleration = 8\n", encoding="utf-8")
    return tmp_path


def test_json_files_and_plan(folder, monkeypatch, capsys):
    assert run(monkeypatch, "robot.urdf", "--limits", "limits.toml", "--criterion", "d", *QUICK, "-o", "plan", "--json") == 0
    printed = capsys.readouterr()
    data = json.loads(printed.out)
    assert not printed.err
    assert data["after"]["d"] > data["before"]["d"] and data["after"]["cond"] >= 1.0
    assert data["worst_margin"] == min(data["margins"].values()) >= 0.02 - 1e-6
    assert data["seconds"] > 0.0 and data["worst_limit"] in data["margins"] and "torque of shoulder" in data["margins"]
    assert {p.name for p in Path("plan").iterdir()} == FILES == {Path(f).name for f in data["files"]}
    plan = Plan.load("plan/plan.json")
    assert plan.identity == data["plans"]["plan"]["identity"] and plan.coordinates == ("shoulder", "elbow")
    assert [s.purpose for s in plan.stages] == ["training", "validation"]
    limits = read_limits("limits.toml", di.Mechanism.from_urdf("robot.urdf"))
    assert min(check_plan(plan, limits).values()) >= -1e-6
    message = json.loads(Path("plan/motion_ros.json").read_text())
    assert message["joint_names"] == ["shoulder", "elbow"]
    first, *_, last = [p["time_from_start"]["sec"] + 1e-9 * p["time_from_start"]["nanosec"] for p in message["points"]]
    assert first >= 3.0  # from where the robot stands
    assert last - first >= plan.curve.duration - 1e-9  # the whole plan
    controller = yaml.safe_load(Path("plan/joint_trajectory_controller.yaml").read_text())
    assert controller["joint_trajectory_controller"]["ros__parameters"]["joints"] == ["shoulder", "elbow"]
    table = np.genfromtxt("plan/motion.csv", delimiter=",", names=True)
    assert np.abs(table["q_elbow"]).max() <= 1.5 and table["v_elbow"][0] == pytest.approx(0.0, abs=1e-12)
    assert [p["name"] for p in data["parameters"]] and all(p["deviation"] > 0.0 for p in data["parameters"])


def test_text_and_the_same_seed(folder, monkeypatch, capsys):
    args = ("robot.urdf", "--limits", "limits.toml", *QUICK[:4], "--criterion", "correlation")
    assert run(monkeypatch, *args) == 0
    text = capsys.readouterr()
    assert "correlation" in text.out and "tightest limits" in text.out and "one cycle" in text.out
    assert "note: limits: the description's, completed by limits.toml" in text.err
    assert run(monkeypatch, *args, "--quiet") == 0
    assert capsys.readouterr().out == ""


def test_the_complete_test_names_the_package_that_provides_it(folder, monkeypatch, capsys):
    monkeypatch.setattr("dynident.excitation.experiment.entries", lambda group: {})
    assert run(monkeypatch, "robot.urdf", "--limits", "limits.toml", *QUICK, "-o", "plan", "--complete") == 1
    assert "'complete' is part of dynident-lab, which is not installed" in capsys.readouterr().err
    assert not Path("plan").exists()


def test_repetitions(folder, monkeypatch):
    assert run(monkeypatch, "robot.urdf", "--limits", "limits.toml", *QUICK, "-o", "plan", "-q", "--repetitions", "3") == 0
    assert Plan.load("plan/plan.json").stages[0].repetitions == 3


def test_sequential_design_and_payload(folder, monkeypatch, capsys):
    robot = di.Mechanism.from_urdf("robot.urdf")
    rest = Fourier(0.2, 4)
    motion = Trajectory(rest, 0.15 * np.random.default_rng(0).normal(size=(2, rest.size))).sample(200.0)
    effort = di.inverse_dynamics(robot, motion) + np.random.default_rng(1).normal(0.0, 0.1, motion.q.shape)
    Log(motion.t, robot.coordinate_names, motion.q, effort, "joint_torque").save("run.npz")
    args = ("robot.urdf", "--limits", "limits.toml", *QUICK, "--criterion", "a")
    assert run(monkeypatch, *args, "--json") == 0
    alone = json.loads(capsys.readouterr().out)
    assert run(monkeypatch, *args, "--recorded", "run.npz", "--json") == 0
    added = json.loads(capsys.readouterr().out)
    assert len(added["parameters"]) == len(alone["parameters"])
    assert np.mean([p["deviation"] for p in added["parameters"]]) < np.mean([p["deviation"] for p in alone["parameters"]])
    assert run(monkeypatch, *args, "--payload", "1.5", "--recorded", "run.npz", "-o", "plan", "-q") == 0
    without, loaded = (Plan.load(f"plan/plan_{name}.json") for name in ("without", "with"))
    assert {s.payload for s in without.stages} == {""} and {s.payload for s in loaded.stages} == {"payload"}
    assert run(monkeypatch, *args, "--payload", "1.5", "--json") == 0
    goal = json.loads(capsys.readouterr().out)
    assert goal["parameters"] and all("payload" in p["name"] for p in goal["parameters"])


def test_a_plan_is_a_start(folder, monkeypatch, capsys):
    args = ("robot.urdf", "--limits", "limits.toml", *QUICK[:4])
    assert run(monkeypatch, *args, "--frequency", "0.25", "--harmonics", "4", "-o", "one", "-q") == 0
    assert run(monkeypatch, *args, "--start", "one/plan.json", "--json") == 0
    first, second = json.loads(Path("one/design.json").read_text()), json.loads(capsys.readouterr().out)
    assert second["before"]["d"] == pytest.approx(first["after"]["d"]) and second["after"]["d"] >= first["after"]["d"] - 1e-9
    Path("tight.toml").write_text("[default]\nacceleration = 8\nlower = -0.01\nupper = 0.01\n", encoding="utf-8")
    assert run(monkeypatch, "robot.urdf", "--limits", "tight.toml", "--start", "one/plan.json", "-o", "two") == 1
    assert "the start breaks limit 'position of" in capsys.readouterr().err and not Path("two").exists()
    assert run(monkeypatch, "robot.urdf", "--start", "robot.urdf") == 1
    assert "holds no motion" in capsys.readouterr().err
    assert run(monkeypatch, *args, "--start", "one/plan.json", "--harmonics", "3") == 1
    assert "omit --frequency and --harmonics" in capsys.readouterr().err


def test_the_bar_shows_the_best_value_and_the_tightest_limit(monkeypatch):
    from rich.console import Console

    terminal = {"TERM": "xterm"}  # where tests run there may be none, and then no bar either
    console = Console(force_terminal=True, width=120, record=True, file=io.StringIO(), _environ=terminal)
    monkeypatch.setattr("dynident.cli.consoles.notes", console)
    monkeypatch.setattr("dynident.cli.progress.notes", console)
    compiler = logging.getLogger("dynident.graph.machine")
    with searching(10.0, quiet=False) as tell:
        tell({"values": {"cond": 21.5}, "limit": "velocity of rho1", "margin": 0.012})
        compiler.info("compiling the equations, about 3 s")
    shown = console.export_text()
    assert "note: compiling the equations, about 3 s" in shown
    assert "best cond 21.5" in shown and "tightest limit: velocity of rho1, 1.2% left" in shown
    with searching(10.0, quiet=True) as tell:
        tell({"values": {"cond": 21.5}, "limit": "velocity of rho1", "margin": 0.012})
        compiler.info("compiling the equations, about 3 s")
    compiler.info("compiling the equations, about 3 s")  # nobody shows it after the work
    assert console.export_text() == ""


def test_the_bar_of_a_command_counts_what_is_done(monkeypatch):
    from rich.console import Console

    monkeypatch.setattr(
        "dynident.cli.progress.notes", Console(force_terminal=True, file=io.StringIO(), _environ={"TERM": "xterm"})
    )
    bars = []
    original = Progress.add_task
    monkeypatch.setattr(Progress, "add_task", lambda bar, *a, **k: bars.append(bar) or original(bar, *a, **k))
    with progress(3) as step:
        for text, advance in (("read", 1), ("fit", 1), ("fit, second band", 0), ("write", 1)):
            step(text, advance) if advance == 0 else step(text)
        (task,) = bars[0].tasks
        assert (task.completed, task.total, task.description) == (2, 3, "write")  # two are done, the third is under way


OPEN = URDF.replace("revolute", "continuous").replace(LIMIT, "")


@pytest.mark.parametrize(
    ("toml", "args", "words"),
    [
        ("[default]\nlower = 1\nupper = -1\n", (), "which is empty"),
        ("[default]\nacceleration = 8\ntorque = 0.01\n", (), "limit 'torque of .*' cannot be kept"),
        ('[tool]\nframe = "fore"\nheight = 9\n', (), "fore.z' cannot be kept"),
        ("bandwidth = 0.4\n", (), "the drives follow 0.4 Hz"),
        ("margin = 0.01\n", ("--rate", "0.9"), r"Nyquist"),
        ("margin = 0.01\n", ("--harmonics", "400", "--frequency", "1"), r"Nyquist"),
        ("margin = 0.01\n", ("--harmonics", "0"), "harmonics is 0"),
        ("margin = 0.01\n", ("--frequency", "-1"), "frequency is -1"),
        ("[default\n", (), "cannot read limits"),
        ("[default]\nspeed = 1\n", (), "unknown field 'speed'"),
        ("speed = 1\n", (), "unknown entry 'speed'"),
        ("[joints.knee]\nlower = 1\n", (), "unknown joint 'knee'"),
        ("margin = 0.01\n", ("--time-budget", "-3"), "--time-budget is -3"),
        ("margin = 0.01\n", ("--time-budget", "nan"), "--time-budget is nan"),
        ("margin = 0.01\n", ("--iterations", "0"), "--iterations is 0"),
        ("margin = 0.01\n", ("--starts", "0"), "--starts is 0"),
        ("margin = 0.01\n", ("--repetitions", "0"), "--repetitions is 0"),
        ("margin = 0.01\n", ("--criterion", "nice"), "criterion is 'nice'"),
        ("margin = 0.01\n", ("--scale", "row"), "scale is 'row'"),
        ("margin = 0.01\n", ("--payload", "-1"), "payload mass is -1"),
        ("margin = 0.01\n", ("--payload", "1", "--complete"), "different experiments"),
        ("margin = 0.01\n", ("--recorded", "nothing.csv", "--effort", "joint_torque"), "nothing.csv"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(folder, monkeypatch, capsys, toml, args, words):
    Path("limits.toml").write_text(toml, encoding="utf-8")
    assert run(monkeypatch, "robot.urdf", "--limits", "limits.toml", *args, "-o", "plan") == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and error.startswith("dynident: ") and "Traceback" not in error
    assert re.search(words, error), error
    assert not Path("plan").exists()


def test_joints_without_limits_are_named(folder, monkeypatch, capsys):
    Path("open.urdf").write_text(OPEN, encoding="utf-8")
    assert run(monkeypatch, "open.urdf", *QUICK, "--criterion", "a") == 0
    told = capsys.readouterr().err
    assert "positions within 3.14 rad assumed for shoulder" in told and "stay above the robot's base; --floor" in told
    assert run(monkeypatch, "open.urdf", "--limits", "missing.toml") == 1
    assert "cannot read limits from 'missing.toml'" in capsys.readouterr().err
    assert run(monkeypatch, "robot.urdf", "--output", "robot.urdf") == 1
    assert "is a file; give a folder" in capsys.readouterr().err
    with pytest.raises(DynidentError, match="no position limits"):
        limits_of(di.Mechanism.from_urdf("open.urdf"))
