"""The commands of the virtual robot, run as a user would: simulate, bandwidth, track."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'dynident[report]'")

import dynident as di
from dynident.__main__ import main
from dynident.trajectory import random_motion, sample, to_csv
from dynident_papers.robots import five_bar, rrr

URDF = """<robot name="two"><link name="base"/>
<link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="3"/>
<inertia ixx="0.02" iyy="0.05" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="lower"><inertial><origin xyz="0.15 0 0"/><mass value="1.5"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" effort="150" velocity="5"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0.4 0 0"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" effort="60" velocity="5"/></joint></robot>"""


def run(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr("sys.argv", ["dynident", *args])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("robot.urdf").write_text(URDF, encoding="utf-8")
    motion = sample(random_motion([0.2, -0.5], [0.8, 0.7], 1, 4.0), 200.0)
    to_csv("motion.csv", motion, ("shoulder", "elbow"))
    return tmp_path


def test_a_motion_on_a_description_becomes_a_log_that_identifies_it(monkeypatch, capsys, folder: Path) -> None:
    args = ("simulate", "motion.csv", "--robot", "robot.urdf", "-o", "run.parquet", "--noise", "0.01", "--seed", "3")
    assert run(monkeypatch, *args, "--truth", "truth.npz", "--figures", "figures", "--json") == 0
    told = capsys.readouterr()
    data = json.loads(told.out)
    assert "computed_torque" in told.err and "ideal drives" in told.err
    assert data["settings"]["seed"] == 3 and data["samples"] == 4001 and data["real_time_factor"] > 0.0
    assert set(data["tracking"]) == {"shoulder", "elbow"} and data["tracking"]["elbow"]["largest"] < 1e-3
    assert {Path(path).name for path in data["written"]} == {"run.parquet", "truth.npz", "tracking.png", "torque_split.png"}
    assert Path("figures/tracking.png").read_bytes().startswith(b"\x89PNG")
    log = di.Log.read("run.parquet")
    assert log.effort_kind == "joint_torque" and log.truth is not None
    robot = di.Mechanism.from_urdf("robot.urdf")
    fit = di.WLS().fit(di.Regression.from_log(robot, log)).result_
    truth = fit.base.regrouping @ robot.parameters.values
    large = np.abs(truth) > 0.1 * np.abs(truth).max()
    np.testing.assert_allclose(fit.values[large], truth[large], rtol=0.02)
    with np.load("truth.npz", allow_pickle=False) as signals:
        noise = log.effort - signals["motor_torque"]
        ratio = noise.std(axis=0) / np.sqrt(np.mean(signals["motor_torque"] ** 2, axis=0))
    np.testing.assert_allclose(ratio, 0.01, rtol=0.1)


def test_controllers_methods_and_steps_can_be_chosen(monkeypatch, capsys, folder: Path) -> None:
    found = {}
    for name, options in {
        "own": (),
        "decoupled": ("--method", "decoupled"),
        "pd": ("--controller", "pd"),
        "cascade": ("--controller", "cascade", "--bandwidth", "8"),
        "fine": ("--step", "1.25e-4"),
    }.items():
        assert run(monkeypatch, "simulate", "motion.csv", "--robot", "robot.urdf", "--json", *options) == 0
        found[name] = json.loads(capsys.readouterr().out)
    largest = {name: data["tracking"]["shoulder"]["largest"] for name, data in found.items()}
    assert largest["decoupled"] == pytest.approx(largest["own"], rel=1e-6)
    assert largest["pd"] > 10.0 * largest["own"]  # nothing carries the weight
    assert found["cascade"]["settings"]["controller"] == "Cascade" and largest["cascade"] < 0.01
    assert found["fine"]["settings"]["step"] == 1.25e-4
    assert largest["fine"] == pytest.approx(largest["own"], rel=0.05)


def test_positions_alone_are_enough_for_a_motion(monkeypatch, capsys, folder: Path) -> None:
    motion = sample(random_motion([0.2, -0.5], [0.8, 0.7], 1, 4.0), 200.0)
    header = "t,q_elbow,q_shoulder"  # columns are found by name
    np.savetxt("bare.csv", np.column_stack([motion.t, motion.q[:, ::-1]]), delimiter=",", header=header, comments="")
    assert run(monkeypatch, "simulate", "bare.csv", "--robot", "robot.urdf", "--json", "-o", "a.csv.gz") == 0
    bare = json.loads(capsys.readouterr().out)
    assert run(monkeypatch, "simulate", "motion.csv", "--robot", "robot.urdf", "--json", "-o", "b.npz") == 0
    whole = json.loads(capsys.readouterr().out)
    assert bare["tracking"]["elbow"]["largest"] == pytest.approx(whole["tracking"]["elbow"]["largest"], rel=0.01)
    np.testing.assert_allclose(di.Log.read("a.csv.gz").position, di.Log.read("b.npz").position, atol=1e-4)


def test_a_ready_machine_runs_its_own_loops(monkeypatch, capsys, folder: Path) -> None:
    to_csv("move.csv", five_bar.x_move(rate=200.0), ("x", "y"))
    assert run(monkeypatch, "simulate", "move.csv", "--robot", "five_bar") == 0
    told = capsys.readouterr()
    assert "times as fast as real time" in told.out and "motor1" in told.out
    assert "ideal drives" not in told.err


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("simulate", "motion.csv", "--robot", "nope"), "there is no machine 'nope'"),
        (("simulate", "nope", "--robot", "robot.urdf"), "plan 'nope' does not exist"),
        (("simulate", "motion.csv", "--robot", "dualv"), "has no column q_platform.x"),
        (("simulate", "motion.csv", "--robot", "robot.urdf", "-o", "run.txt"), "must end in .csv"),
        (("simulate", "motion.csv", "--robot", "robot.urdf", "--truth", "run.csv"), "it is written as .npz"),
        (("simulate", "motion.csv", "--robot", "robot.urdf", "--controller", "magic"), "it is one of computed_torque"),
        (("simulate", "motion.csv", "--robot", "robot.urdf", "--method", "odd"), "coupled, decoupled"),
        (("simulate", "motion.csv", "--robot", "robot.urdf", "--step", "3e-4"), "not a whole multiple"),
        (("simulate", "motion.csv", "--robot", "robot.urdf", "--noise", "-1"), "at least 0"),
        (("simulate", "few.csv", "--robot", "robot.urdf"), "at least 6 finite samples"),
        (("simulate", "motion.csv", "--robot", "robot.urdf", "--added-inertia", "0.2"), "is for the machine cft"),
        (("simulate", "motion.csv", "--robot", "dualv", "--added-inertia", "0.2"), "it is for 'cft' only"),
        (("bandwidth", "nope"), "a name: cft, dualv"),
        (("bandwidth", "mast", "--coordinate", "q"), "has z, psi, theta"),
        (("bandwidth", "mast", "--frequencies", "one"), "numbers in Hz"),
        (("bandwidth", "mast", "--figures", "robot.urdf"), "give a folder"),
        (("track", "nope"), "a name: cft, dualv"),
    ],
)
def test_bad_input_is_one_sentence(monkeypatch, capsys, folder: Path, args: tuple[str, ...], sentence: str) -> None:
    Path("few.csv").write_text("t,q_shoulder,q_elbow\n0,0,0\n1,0,0\n", encoding="utf-8")
    assert run(monkeypatch, *args) == 1
    error = capsys.readouterr().err
    assert sentence in error and "Traceback" not in error
    assert sum(line.startswith("dynident:") for line in error.splitlines()) == 1


def test_bandwidth_is_measured_with_and_without_the_mechanism(monkeypatch, capsys, folder: Path) -> None:
    args = ("bandwidth", "mast", "--frequencies", "1,5", "--figures", "figures", "--json")
    assert run(monkeypatch, *args) == 0
    data = json.loads(capsys.readouterr().out)
    attached, alone = data["with mechanism"], data["actuators alone, linear"]
    assert attached["mechanism"] and not alone["mechanism"] and data["coordinate"] == "z"
    assert 1.0 < attached["bandwidth"] < alone["bandwidth"] < 5.0
    assert data["published"]["5"] == {"ratio": 0.654, "phase": -62.5}
    assert attached["ratio"][1] == pytest.approx(0.654, abs=0.03) and attached["phase"][1] == pytest.approx(-62.5, abs=5.0)
    keys = "robot coordinate amplitude mechanism bandwidth frequency ratio phase scatter distortion saturated actuators"
    assert list(attached) == keys.split() and all(set(x) == {"ratio", "phase"} for x in attached["actuators"].values())
    assert Path("figures/bandwidth.png").stat().st_size > 10_000


def test_a_tilt_swings_the_motors_as_far_as_the_heave_of_the_paper(monkeypatch, capsys) -> None:
    assert run(monkeypatch, "bandwidth", "mast", "--coordinate", "psi", "--frequencies", "5", "--no-alone", "--json") == 0
    found = json.loads(capsys.readouterr().out)["with mechanism"]
    assert found["saturated"] == [0.0] and found["ratio"][0] == pytest.approx(0.654, abs=0.03)  # as z: "almost identical"


def test_track_prints_a_table_and_writes_figures(monkeypatch, capsys, folder: Path) -> None:
    assert run(monkeypatch, "track", "rrr", "-o", "out") == 0
    text = capsys.readouterr().out
    assert "published: ratio" in text and "lower with identified model [%]" in text
    data = json.loads(Path("out/tracking.json").read_text(encoding="utf-8"))
    lower = [row["reduction_largest"] for row in data["trials"] if row["controller"] == "identified model"]
    assert np.min(lower) > 40.0 and np.min(data["effort_ratio"]) > 1.5
    names = {path.name for path in Path("out").iterdir()}
    assert names == {"tracking.json", "errors_1.png", "largest_errors.png", "efforts.png"}


def test_bandwidth_without_rotors_leaves_the_actuators_alone_out(monkeypatch, capsys, folder: Path) -> None:
    assert run(monkeypatch, "bandwidth", "cft", "--frequencies", "1", "--centre", "0.27,0,-0.99,1.98", "--json") == 0
    told = capsys.readouterr()
    assert "actuators alone are left out: drive 'm1' has no inertia" in told.err
    data = json.loads(told.out)
    assert "with mechanism" in data and "actuators alone, linear" not in data
    assert run(monkeypatch, "bandwidth", "dualv", "--frequencies", "5", "--centre", "0.05") == 1
    assert "platform.y" in capsys.readouterr().err


def test_a_folder_with_the_name_of_a_machine_does_not_hide_it(monkeypatch, capsys, folder: Path) -> None:
    Path("five_bar").mkdir()  # as dynident track five_bar -o five_bar makes it
    machine = five_bar.machine()
    names = machine.mechanism.coordinate_names
    x = [machine.mechanism.home[name] for name in names]
    to_csv("swing.csv", sample(random_motion(x, [0.02, 0.02], 1, 0.5), 500.0), (*names,))
    assert run(monkeypatch, "simulate", "swing.csv", "--robot", "five_bar", "-q") == 0
    assert run(monkeypatch, "describe", "five_bar") == 0
    assert "robot five-bar" in capsys.readouterr().out


def test_positions_of_other_coordinates_are_told(monkeypatch, capsys, folder: Path) -> None:
    to_csv("three.csv", sample(random_motion([0.2, -0.5, 0.0], [0.8, 0.7, 0.1], 1, 0.5), 200.0), ("shoulder", "elbow", "wrist"))
    assert run(monkeypatch, "simulate", "three.csv", "--robot", "robot.urdf", "-q") == 0
    assert "has positions of wrist too" in capsys.readouterr().err


def test_the_log_of_a_ready_machine_can_be_identified_by_its_name(monkeypatch, capsys, folder: Path) -> None:
    names = rrr.machine().mechanism.coordinate_names
    to_csv("swing.csv", sample(random_motion([0.3, 0.2, 0.4], [0.8, 0.8, 0.8], 1, 4.0), 500.0), (*names,))
    assert run(monkeypatch, "simulate", "swing.csv", "--robot", "rrr", "-o", "run.parquet", "-q") == 0
    assert run(monkeypatch, "identify", "rrr", "run.parquet", "-o", "out", "-q") == 0
    assert "'rrr' is not a file; fit.json has" in capsys.readouterr().err
    assert {path.name for path in Path("out").iterdir()} == {"fit.json", "report.html", "verdict.json"}
