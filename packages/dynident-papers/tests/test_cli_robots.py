"""Commands on robots of the literature by name: their limits, machines, published numbers, and the command reduction."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree
from zipfile import ZipFile

import numpy as np
import pytest

from dynident.cli import run as command
from dynident.errors import DynidentError

pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'dynident[report]'")

from benchmarks.nine_robots import deviations

import dynident as di
from dynident import cli
from dynident.__main__ import main
from dynident.cli.robots import find_machine, find_robot, known_robots
from dynident.mechanics.actuation import actuator_jacobian
from dynident.plugins import COMMANDS, PROVIDED, ROBOTS, entries
from dynident.trajectory import random_motion, sample, to_csv
from dynident_papers import robots
from dynident_papers.identify import reduction
from dynident_papers.reproduce.cft_identification import single_joint, true_friction
from dynident_papers.robots import cft, five_bar, rrr


def run(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr("sys.argv", ["dynident", *args])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_robot_of_the_literature_is_described_and_drawn(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "describe", "dualv", "--json", "--plot", "graph.svg") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["dof"] == 3
    assert data["base_parameters"]["rank"] == 40
    assert len(data["actuators"]) == 4
    root = ElementTree.parse("graph.svg").getroot()  # noqa: S314 - our own output
    assert root.tag.endswith("svg")


def test_redundancy_is_described(monkeypatch, capsys):
    assert run(monkeypatch, "describe", "dualv") == 0
    text = capsys.readouterr().out
    assert "redundant: 4 motors for 3 degrees of freedom, 1 of internal preload" in text
    assert "12 closure equations are redundant" in text
    assert "40 base parameters" in text


def test_robots_of_the_literature_by_name(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    args = ("prr2", "--criterion", "cond", "--iterations", "40", "--starts", "1", "-o", "plan", "--json")
    assert run(monkeypatch, "excite", *args) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["after"]["cond"] < data["before"]["cond"] and data["worst_margin"] >= 0.0
    assert "[Roldan2017, chapter 6]" in data["limits"]
    assert {"plan.json", "motion.csv", "design.json", "plan.html"} <= {path.name for path in Path("plan").iterdir()}
    assert run(monkeypatch, "excite", "prr2", "--criterion", "beauty", "--time-budget", "1") == 1
    assert "beauty" in capsys.readouterr().err


def test_cft_in_cartesian_coordinates_and_back_to_its_joints(monkeypatch, capsys, tmp_path):
    """The report's route: Fourier series of xc1 ... xc4 for its twelve parameters; the plan runs on the machine."""
    monkeypatch.chdir(tmp_path)
    args = ("cft_cartesian", "--criterion", "cond", "--iterations", "3", "--starts", "1", "-o", "plan", "--json")
    assert run(monkeypatch, "excite", *args) == 0
    data = json.loads(capsys.readouterr().out)
    assert len(data["parameters"]) == 12 and data["worst_margin"] >= 0.0
    assert data["after"]["cond"] < data["before"]["cond"]
    assert run(monkeypatch, "simulate", "plan", "--robot", "cft_cartesian", "-o", "run.npz", "--json") == 0
    told = capsys.readouterr()
    assert "0.2 kg m^2 are added to q4 and q5" in " ".join(told.err.split())
    assert max(joint["largest"] for joint in json.loads(told.out)["tracking"].values()) < 0.2
    assert run(monkeypatch, "identify", "cft", "run.npz", "-o", "out", "--quiet") == 0
    fit = di.load("out/fit.json")  # its motors turn screws: the log's channels are no joints
    assert fit.score(di.Log.read("run.npz"), allow_training=True).metrics.relative < 0.1


def test_an_unknown_name_lists_the_known_ones(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "excite", "prr3") == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "robot 'prr3' does not exist" in said and all(name in said for name in known_robots())


def test_terms_of_joints_and_constants_of_couplings_are_described(monkeypatch, capsys):
    """q7 = pi - q4 (54) in the report of CFT."""
    assert run(monkeypatch, "describe", "dualv") == 0
    assert "40 base parameters (with ia, fv, fc)" in capsys.readouterr().out
    assert run(monkeypatch, "describe", "cft_published") == 0
    assert "-1 q4 + 3.14159" in capsys.readouterr().out


@pytest.mark.parametrize("name", robots.ROBOTS)
def test_commands_share_coordinates_parameters_limits_and_the_name(name):
    """`excite`, `simulate`, `identify` and `track` take these four."""
    known = find_robot(name)
    mechanism, machine = known.mechanism(), known.machine()
    assert mechanism.name == machine.mechanism.name == name
    assert mechanism.coordinate_names == machine.mechanism.coordinate_names
    assert {actuator.name for actuator in mechanism.actuators} == {drive.actuator for drive in machine.drives}
    found = known.published(mechanism)
    assert found.limits.coordinates == mechanism.coordinate_names and found.source
    assert np.min(machine.sensors.effort_noise) > 0.0
    if name == "cft":
        assert {f"position of xc{i}" for i in range(1, 5)} <= set(found.limits.others[-1].names)


@pytest.mark.parametrize(
    ("name", "pose", "rpy"),
    [
        ("five_bar", "0.1,0.9,0", "0,0,0"),
        ("dualv", "0.05,0.02,0", "0,0,0.1"),
        ("prr2", "0.3,-0.2,0", "0,0,0"),
        ("replalink", "0.2,0.5,0", "0,0,0"),
        ("mast", "0,0,0.9", "0.05,0.1,0"),
        ("prs3", "0,0,0.08", "0.002,0.001,0"),
    ],
)
def test_ik_of_robots_with_loops_has_all_branches_in_closed_form(monkeypatch, capsys, name, pose, rpy):
    """One of the branches puts the platform of the mechanism at the target."""
    assert run(monkeypatch, "ik", name, "--position", pose, "--rpy", rpy, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    robot = find_robot(name).mechanism()
    assert len(data["branches"]) in (2, 4)
    assert data["joints"] == [joint for actuator in robot.actuators for joint in actuator.coupling]
    assert any(values is not None for values in data["branches"].values())
    if set(robot.coordinate_names) == {"x", "y"} or "platform.x" in robot.coordinate_names or "z" in robot.coordinate_names:
        place, turn = (np.array([float(x) for x in text.split(",")]) for text in (pose, rpy))
        wanted = {"five_bar": place[:2], "dualv": np.array([*place[:2], turn[2]])}.get(name, np.array([place[2], *turn[:2]]))
        tree = di.mechanics.closure.close_positions(robot, wanted[None])[0]
        q = [tree[robot.tree.coordinates.index(joint)] for joint in data["joints"]]
        away = [
            np.abs((np.subtract(values, q) + np.pi) % (2 * np.pi) - np.pi).max()
            for values in data["branches"].values()
            if values
        ]
        assert min(away) < 1e-9


def test_ik_of_the_cft_transposer_puts_its_tool_at_the_target_from_three_places_of_the_rail(monkeypatch, capsys):
    target = cft.tool_position(cft.joint_from_cartesian((-0.1, 0.3, 3.0, 0.1)))[0]
    assert run(monkeypatch, "ik", "cft", f"--position={','.join(map(str, target))}", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["joints"] == ["yr", "xr", "q2", "q1"] and len(data["branches"]) == 3
    for yr, xr, q2, q1 in data["branches"].values():
        tree = di.mechanics.closure.close_positions(cft.nuts(), np.array([[q1, q2, *pitch(xr, yr)]]))[0]
        found = dict(zip(cft.nuts().tree.coordinates, tree, strict=True))
        assert found["yr"] == pytest.approx(yr) and found["xr"] == pytest.approx(xr)  # the loop of the nuts closes there
        np.testing.assert_allclose(cft.tool_position([q1, q2, *pitch(xr, yr)])[0], target, atol=1e-12)


def pitch(xr: float, yr: float) -> tuple[float, float]:
    """q4 and q5 of the nuts by (52), (53)."""
    gamma, half = np.arctan2(yr, -xr), np.arccos(np.hypot(xr, yr) / 0.1)
    return 0.5 * np.pi - gamma - half, 2.0 * half


def test_ik_without_a_closed_form_is_numeric_and_says_so(monkeypatch, capsys, folder):
    five_bar.mechanism().save("loops.json")
    assert run(monkeypatch, "ik", "loops.json", "--position=0.1,0.9,0", "--frame", "platform") == 0
    told = capsys.readouterr()
    assert "solved numerically" in told.err and "numeric" in told.out


def test_a_ready_machine_runs_its_own_loops(monkeypatch, capsys, folder):
    to_csv("move.csv", five_bar.x_move(rate=200.0), ("x", "y"))
    assert run(monkeypatch, "simulate", "move.csv", "--robot", "five_bar") == 0
    told = capsys.readouterr()
    assert "times as fast as real time" in told.out and "motor1" in told.out
    assert "ideal drives" not in told.err


def test_bandwidth_is_measured_with_and_without_the_mechanism(monkeypatch, capsys, folder):
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


def test_a_tilt_swings_the_motors_as_far_as_the_heave_of_the_paper(monkeypatch, capsys):
    assert run(monkeypatch, "bandwidth", "mast", "--coordinate", "psi", "--frequencies", "5", "--no-alone", "--json") == 0
    found = json.loads(capsys.readouterr().out)["with mechanism"]
    assert found["saturated"] == [0.0] and found["ratio"][0] == pytest.approx(0.654, abs=0.03)  # as z: "almost identical"


def test_track_prints_a_table_and_writes_figures(monkeypatch, capsys, folder):
    assert run(monkeypatch, "track", "rrr", "-o", "out") == 0
    text = capsys.readouterr().out
    assert "published: ratio" in text and "lower with identified model [%]" in text
    data = json.loads(Path("out/tracking.json").read_text(encoding="utf-8"))
    lower = [row["reduction_largest"] for row in data["trials"] if row["controller"] == "identified model"]
    assert np.min(lower) > 40.0 and np.min(data["effort_ratio"]) > 1.5
    names = {path.name for path in Path("out").iterdir()}
    assert names == {"tracking.json", "errors_1.png", "largest_errors.png", "efforts.png"}


def test_bandwidth_without_rotors_leaves_the_actuators_alone_out(monkeypatch, capsys, folder):
    assert run(monkeypatch, "bandwidth", "cft", "--frequencies", "1", "--centre", "0.27,0,-0.99,1.98", "--json") == 0
    told = capsys.readouterr()
    assert "actuators alone are not computed: drive 'm1' has no inertia" in told.err
    data = json.loads(told.out)
    assert "with mechanism" in data and "actuators alone, linear" not in data
    assert run(monkeypatch, "bandwidth", "dualv", "--frequencies", "5", "--centre", "0.05") == 1
    assert "platform.y" in capsys.readouterr().err


def test_a_folder_with_the_name_of_a_machine_does_not_hide_it(monkeypatch, capsys, folder):
    Path("five_bar").mkdir()  # as dynident track five_bar -o five_bar makes it
    machine = five_bar.machine()
    names = machine.mechanism.coordinate_names
    x = [machine.mechanism.home[name] for name in names]
    to_csv("swing.csv", sample(random_motion(x, [0.02, 0.02], 1, 0.5), 500.0), (*names,))
    assert run(monkeypatch, "simulate", "swing.csv", "--robot", "five_bar", "-q") == 0
    assert run(monkeypatch, "describe", "five_bar") == 0
    assert "robot five_bar" in capsys.readouterr().out


def test_friction_of_a_joint_alone_is_found_behind_the_motors_of_a_robot_with_loops(monkeypatch, capsys, folder):
    """(29) of [Rodriguez2002] on the log of its own motors."""
    run_of_q4 = di.Motion(*single_joint(2, 20.0))
    machine = find_machine("cft")
    machine.simulate(run_of_q4).log.save(folder / "q4.npz")
    assert run(monkeypatch, "friction", "cft", "q4.npz", "--alone", "q4") == 0
    said = capsys.readouterr().out
    found = {float(v): float(f) for v, f in re.findall(r"([\d.]+): ([\d.]+)", said.splitlines()[0])}
    fast = np.array(sorted(found))[-2:]  # the shorter the record, the worse the slow part
    assert [found[v] for v in fast] == pytest.approx(true_friction(2, fast), rel=0.03)


def test_the_log_of_a_ready_machine_can_be_identified_by_its_name(monkeypatch, capsys, folder):
    names = rrr.machine().mechanism.coordinate_names
    to_csv("swing.csv", sample(random_motion([0.3, 0.2, 0.4], [0.8, 0.8, 0.8], 1, 4.0), 500.0), (*names,))
    assert run(monkeypatch, "simulate", "swing.csv", "--robot", "rrr", "-o", "run.parquet", "-q") == 0
    assert run(monkeypatch, "identify", "rrr", "run.parquet", "-o", "out", "-q") == 0
    assert {path.name for path in Path("out").iterdir()} == {"fit.json", "identified.json", "report.html", "verdict.json"}
    assert run(monkeypatch, "describe", "out/identified.json", "--json") == 0
    assert json.loads(capsys.readouterr().out)["coordinates"] == list(names)


@pytest.mark.parametrize("name", ["five_bar", "replalink", "rrr"])
def test_commands_without_options_give_correct_parameters(name, monkeypatch, capsys, folder):
    """excite, simulate, identify, validate and track; `benchmarks.nine_robots` runs all nine robots on two seeds."""
    for seed in ("0", "1"):
        short = ("--iterations", "10", "--starts", "1", "--seed", seed, "-q")  # of the search only
        assert run(monkeypatch, "excite", name, "-o", f"plan{seed}", *short) == 0
        assert run(monkeypatch, "simulate", f"plan{seed}", "-o", f"run{seed}.npz", "-q", "--seed", seed) == 0
    assert run(monkeypatch, "identify", name, "run0.npz", "-o", "out", "-q") == 0
    fit = di.load("out/fit.json")
    z = np.array(list(deviations(name, fit).values()))
    assert z.size >= 5 and np.sqrt(np.mean(z**2)) < 1.5 and np.abs(z).max() < 4.5
    capsys.readouterr()
    assert run(monkeypatch, "validate", "out/fit.json", "run1.npz", "--json") == 0
    checks = {check["name"]: check["value"] for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["held_out_error"] < 0.1
    assert run(monkeypatch, "track", name, "--fit", "out/fit.json", "--json", "-q") == 0
    size = {}
    for trial in json.loads(capsys.readouterr().out)["trials"]:
        size[trial["controller"]] = size.get(trial["controller"], 0.0) + float(np.sum(np.square(trial["rms"])))
    assert size["model of fit.json"] < 1.05 * size["feedback alone"]


def test_a_word_becomes_a_demanding_motion_that_simulate_runs(monkeypatch, capsys, folder):
    assert run(monkeypatch, "write", "om y", "-o", "motion.csv", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert max(a for _, a in found["largest"].values()) > 50.0  # rad/s^2: inertia counts beside gravity and friction
    assert run(monkeypatch, "simulate", "motion.csv", "--robot", "rrr", "-o", "run.csv", "-q") == 0
    assert run(monkeypatch, "write", "om y", "-o", "motion.csv", "--origin", "far") == 1
    assert "--origin is 'far'; give three numbers" in capsys.readouterr().err


def test_the_largest_acceleration_needs_its_motors_and_no_more(monkeypatch, capsys):
    """Motors at the limit give the acceleration of the forward dynamics; half the torque gives half of it in a plane."""
    assert run(monkeypatch, "acceleration", "dualv", "--direction", "1,1,0", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    robot = robots.dualv.machine().model
    A = actuator_jacobian(robot, np.zeros((1, 3)))[0]
    moved = di.forward_dynamics(robot, np.zeros((1, 3)), np.zeros((1, 3)), (A.T @ found["efforts"])[None])[0]
    assert moved[:2] == pytest.approx(found["largest"] / np.sqrt(2.0) * np.ones(2), rel=1e-6)
    assert run(monkeypatch, "acceleration", "dualv", "--direction", "1,1,0", "--limit", "63.5", "--json") == 0
    assert json.loads(capsys.readouterr().out)["largest"] == pytest.approx(0.5 * found["largest"], rel=1e-6)


def test_a_ready_machine_keeps_its_drives():
    for verb in ("track", "bandwidth"):
        with pytest.raises(di.errors.DynidentError, match="'mast' has drives of its own; leave it out"):
            cli.run([verb, "mast", "--drives", "drives.toml"])


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("simulate", "motion.csv", "--robot", "dualv"), "has no column q_platform.x"),
        (("bandwidth", "nope"), "a name: cft, cft_cartesian"),
        (("bandwidth", "mast", "--coordinate", "q"), "has z, psi, theta"),
        (("bandwidth", "mast", "--frequencies", "one"), "numbers in Hz"),
        (("bandwidth", "mast", "--figures", "motion.csv"), "give a folder"),
        (("track", "nope"), "a name: cft, cft_cartesian"),
        (("derive", "dualv", "--latex", "-o", "out"), "loops"),
        (("export", "rrr", "--for", "fmu", "-o", "arm.fmu", "--option", "controller=pd"), "machine 'rrr' has its own"),
        (("export", "rrr", "--for", "fmu", "-o", "arm.fmu", "--option", "drives=x.toml"), "has drives of its own"),
    ],
)
def test_bad_input_is_one_sentence(monkeypatch, capsys, folder, args, sentence):
    Path("motion.csv").write_text("t,q_shoulder,q_elbow\n0,0,0\n1,0,0\n", encoding="utf-8")
    assert run(monkeypatch, *args) == 1
    error = capsys.readouterr().err
    assert sentence in error and "Traceback" not in error
    assert sum(line.startswith("dynident:") for line in error.splitlines()) == 1


def test_a_machine_becomes_an_fmu_by_its_name(folder, capsys, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)  # without a compiler it is quick, and a note says so
    assert cli.run(["export", "rrr", "--for", "fmu", "-o", "rrr.fmu"]) == 0
    captured = capsys.readouterr()
    assert "rrr.fmu (FMI 3.0, co-simulation)" in captured.out
    assert "this FMU supports co-simulation only" in captured.err.replace("\n", " ")
    text = ZipFile("rrr.fmu").read("modelDescription.xml").decode()
    assert 'name="q_ref_' in text and "ModelExchange" not in text
    assert cli.run(["export", "rrr", "--for", "fmu", "-o", "rrr.fmu", "--option", "controller=torque"]) == 0
    assert "co-simulation and model exchange" in capsys.readouterr().out
    assert cli.run(["export", "cft", "--for", "fmu", "-o", "cft.fmu", "--option", "controller=voltage"]) == 0
    text = ZipFile("cft.fmu").read("modelDescription.xml").decode()
    assert cli.run(["export", "rrr", "--for", "fmu", "-o", "rrr.fmu", "--option", "controller=voltage"]) == 0
    assert 'name="xc_z"' in ZipFile("rrr.fmu").read("modelDescription.xml").decode()
    assert 'description="voltage of m1"' in text and 'name="xc4"' in text and 'name="status"' in text


def test_reduction_says_which_parameters_each_joint_sees(monkeypatch, capsys):
    assert run(monkeypatch, "reduction", "rrr", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert run(monkeypatch, "reduction", "rrr") == 0
    text = capsys.readouterr().out
    assert "diag(R) of every joint's regressor" in text and all(name in text for name in ("waist", "shoulder", "elbow"))
    assert data == json.loads(json.dumps(reduction(find_robot("rrr").mechanism()).to_dict()))


def test_reduction_leaves_out_parameters_until_a_motion_keeps_a_condition_number(folder, monkeypatch, capsys):
    words = ("reduction", "prr2", "--largest-condition", "20", "--iterations", "8", "-o", "plan.json", "--json")
    assert run(monkeypatch, *words) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["conditions"][0] > 20.0 >= data["conditions"][-1] == data["after"]["cond"]
    assert len(data["left_out"]) == len(data["conditions"]) - 1 > 0
    assert len(data["parameters"]) + len(data["left_out"]) == di.base_parameters(find_robot("prr2").mechanism()).rank
    assert di.load("plan.json").robot == "prr2"
    assert run(monkeypatch, "reduction", "prr2", "-o", "plan.json") == 1
    assert "give --largest-condition too" in capsys.readouterr().err


def test_the_core_knows_what_this_package_adds():
    for group in (COMMANDS, ROBOTS):
        mine = {
            name for name, entry in entries(group).items() if entry.dist is not None and entry.dist.name == "dynident-papers"
        }
        assert mine == set(PROVIDED[group]["papers"])
    assert set(robots.ROBOTS) < set(known_robots())


@pytest.mark.parametrize("name", PROVIDED[ROBOTS]["papers"])
def test_every_known_robot_has_a_machine_with_its_freedoms(name):
    assert find_robot(name).mechanism().dof == find_machine(name).mechanism.dof > 0


def test_cft_as_published_has_no_added_inertia():
    added, bare = (find_machine(name).mechanism.parameters.to_dict() for name in ("cft", "cft_published"))
    assert added == {**bare, "ia_q4": 0.2, "ia_q5": 0.2}
    assert find_robot("cft").notes and not find_robot("cft_published").notes


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("controller", "er3a_c60", "--drives", "mine.toml"), "has drives of its own"),
        (("reproduce", "cft-table-6", "--workers", "99999999999999999999"), "1 to 1024"),
    ],
)
def test_options_that_a_named_robot_or_table_refuses(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(DynidentError, match=sentence):
        command(words)


def test_reproduce_leaves_files_of_others_alone(tmp_path):
    for name in ("fit.json", "notes.txt", "cft-jk.json"):
        (tmp_path / name).write_text("mine")
    assert command(["reproduce", "thermal-table-4", "-o", str(tmp_path)]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fit.json", "notes.txt", "reproduce.html", "thermal-table-4.json"]
