"""The whole workflow by commands: every printed ``next:`` command runs as printed, and plans judge the fits of their logs."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
import small_robots

import dynident as di
import dynident.cli
from dynident.cli import run
from dynident.excitation import Plan, refer
from dynident.workflow import divide

ARM = """<robot name="two bars"><link name="base"/>
<link name="upper"><inertial><origin xyz="0.15 0 0"/><mass value="2"/>
<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link>
<link name="fore"><inertial><origin xyz="0.1 0.02 0"/><mass value="1"/>
<inertia ixx="0.004" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.6"/><axis xyz="0 1 0"/>
<limit lower="-1.5" upper="1.5" velocity="2" effort="80"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0.3 0 0"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" velocity="3" effort="40"/></joint></robot>"""


def call(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    assert run([str(word) for word in words]) == code, capsys.readouterr().err
    return capsys.readouterr().out


def next_command(output: str) -> list[str]:
    (line,) = [line for line in output.splitlines() if line.startswith("next:")]
    words = shlex.split(line.removeprefix("next:"))
    assert words[0] == "dynident"
    return words[1:]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with blanks in the names of its files."""
    monkeypatch.chdir(tmp_path)
    Path("my robot").mkdir()
    Path("my robot/two bars.urdf").write_text(ARM, encoding="utf-8")
    return tmp_path


def test_every_next_command_runs_as_printed_from_design_to_another_program(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    robot = "my robot/two bars.urdf"
    said = call(capsys, "excite", robot, "--iterations", 5, "--starts", 2, "-o", "my plan")
    said = call(capsys, *next_command(said), "--noise", 0.01)  # simulate
    words = next_command(said)
    checked = call(capsys, "inspect", words[2], "--robot", robot)
    assert "excitation" in checked.splitlines()[0] and next_command(checked)[:3] == words[:3]
    said = call(capsys, *words)  # identify
    assert "held out: stage" in said and "VALIDATED (" in said and len(said.splitlines()) <= 15
    words = next_command(said)  # export
    said = call(capsys, *words)
    assert "read back by MuJoCo" in said or "not installed" in said
    assert Path(words[words.index("-o") + 1]).is_dir()


def test_all_commands_that_print_a_next_one_are_tried_here() -> None:
    folder = Path(di.cli.__file__).parent
    found = {path.stem for path in folder.glob("*.py") if "print_next(" in path.read_text(encoding="utf-8")}
    assert found == {"consoles", "excite", "simulate", "inspect", "identify"}


def test_next_command_of_an_unvalidated_fit_is_complete_but_for_the_log(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arm = di.examples.arm6()
    di.examples.arm6("demo files")
    said = call(
        capsys,
        "identify",
        "demo files/robot.urdf",
        "demo files/run.csv",
        "--effort",
        "joint_torque",
        "--hold-out",
        0,
        "-o",
        "a b",
    )
    assert "NOT VALIDATED" in said and "training error" in said
    words = next_command(said)
    assert words.count("OTHER_LOG") == 1
    said = call(capsys, *("demo files/other.csv" if word == "OTHER_LOG" else word for word in words))
    assert "validated and all checks passed" in said
    assert arm.robot.dof == 6


def test_next_command_of_a_failed_verdict_inspects_the_log(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    di.examples.arm6("demo files")
    log = di.Log.read("demo files/run.csv", effort="joint_torque")
    effort = log.effort * np.where(np.arange(6) == 2, -1.0, 1.0)
    di.Log(log.t, log.joints, log.position, effort, "joint_torque", name="turned").save("turned log.csv")
    said = call(capsys, "identify", "demo files/robot.urdf", "turned log.csv", "-o", "out")
    assert "checks failed" in said and len(said.splitlines()) <= 18
    said = call(capsys, *next_command(said), code=3)
    assert "joint3" in said


def test_plan_of_a_plain_log_divides_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "excite", "my robot/two bars.urdf", "--iterations", 3, "--starts", 2, "-o", "plan", "-q")
    robot = di.Mechanism.from_urdf("my robot/two bars.urdf")
    motion = Plan.load("plan/plan.json").motion()
    noise = np.random.default_rng(0).normal(0.0, 0.05, motion.q.shape)
    lines = [",".join(["t", *(f"q_{j}" for j in robot.joint_names), *(f"tau_{j}" for j in robot.joint_names)])]
    table = np.column_stack([motion.t, motion.q, di.inverse_dynamics(robot, motion) + noise])
    Path("run.csv").write_text("\n".join([*lines, *(",".join(map(repr, row)) for row in table.tolist())]), encoding="utf-8")
    words = ("identify", "my robot/two bars.urdf", "run.csv", "--effort", "joint_torque", "-o", "out")
    verdict = json.loads(call(capsys, *words, "--plan", "plan", "--json"))
    assert verdict["validated"] and [score["log"] for score in verdict["scores"]] == ["run/validation"]
    fit = di.Fit.load("out/fit.json")
    (source,) = fit.sources
    (entry,) = [entry for entry in Plan.load("plan/plan.json").schedule() if entry["purpose"] == "training"]
    assert source["start"] >= entry["start"] - 0.01 and source["end"] <= entry["end"] + 0.01


def test_plan_of_another_motion_or_another_robot_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    di.examples.arm6("demo")
    for robot, plan in (("my robot/two bars.urdf", "other robot"), ("demo/robot.urdf", "other motion")):
        call(capsys, "excite", robot, "--iterations", 1, "--starts", 1, "-o", plan, "-q")
    words = ("identify", "demo/robot.urdf", "demo/run.csv", "--effort", "joint_torque", "--plan")
    for plan, sentence in (
        ("other robot", "moves shoulder, elbow, which robot 'arm6' does not have"),
        ("other motion", "does not"),
    ):
        with pytest.raises(di.DynidentError, match=sentence):
            run([*words, plan])


def test_share_of_one_log_is_its_end_and_of_several_logs_whole_logs() -> None:
    run_ = di.examples.arm6().run
    (first,), (last,), how = divide([run_], [], 1 / 3)
    assert len(last) == pytest.approx(len(run_) / 3, abs=2) and first.t[-1] < last.t[0] and how.startswith("last 6.")
    thirds = [run_.rows(k * 600, (k + 1) * 600) for k in range(3)]
    training, held_out, _ = divide(thirds, [], 1 / 3)
    assert (len(training), len(held_out)) == (2, 1) and held_out[0] is thirds[2]
    assert divide([run_], [], 0.0)[1] == []
    with pytest.raises(di.DynidentError, match="from 0 to below 1"):
        divide([run_], [], 1.0)


def test_repeated_motion_is_repeatability_only_and_says_what_would_prove_more() -> None:
    arm = di.examples.arm6()
    motion = di.signals.prepare(arm.run).motion
    generator = np.random.default_rng(3)

    def again(name: str) -> di.Log:
        effort = di.inverse_dynamics(arm.robot, motion) + generator.normal(0.0, 0.2, motion.q.shape)
        return di.Log(motion.t, arm.run.joints, motion.q, effort, "joint_torque", name=name)

    done = di.identify(arm.robot, [again("first"), again("second")])
    assert not done.verdict.validated and "REPEATABILITY ONLY" in done.summary()
    assert "record another motion" in done.summary()


def test_refit_uses_all_data_and_keeps_the_verdict() -> None:
    arm = di.examples.arm6()
    plain, refitted = (di.identify(arm.robot, arm.run, refit=refit) for refit in (False, True))
    assert refitted.verdict.to_dict() == plain.verdict.to_dict()
    spans = [sum(source["end"] - source["start"] for source in done.fit.sources) for done in (plain, refitted)]
    assert spans[1] == pytest.approx(arm.run.duration, rel=0.05) and spans[0] == pytest.approx(spans[1] * 2 / 3, rel=0.05)
    assert "fitted again to all data" in refitted.summary()
    with pytest.raises(di.DynidentError, match="needs held-out data"):
        di.identify(arm.robot, arm.run, validate=0, refit=True)


def test_gains_of_a_log_are_those_of_the_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arm, gains = di.examples.arm6(), np.array([12.0, 12.0, 9.0, 5.0, 5.0, 4.0])
    for log, name in ((arm.run, "run"), (arm.other, "other")):
        table = np.column_stack([log.t, log.position, log.effort / gains])
        heads = ",".join(["t", *(f"q_{j}" for j in log.joints), *(f"current_{j}" for j in log.joints)])
        np.savetxt(f"{name}.csv", table, delimiter=",", header=heads, comments="")
    arm.robot.save("arm.urdf")
    given = ",".join(f"{joint}={gain:g}" for joint, gain in zip(arm.run.joints, gains, strict=True))
    call(capsys, "identify", "arm.urdf", "run.csv", "--effort", "motor_current", "--gain", given, "-o", "out", "-q")
    assert [motor.gain for motor in di.Fit.load("out/fit.json").model.actuators] == gains.tolist()
    assert "validated" in call(capsys, "validate", "out/fit.json", "other.csv", "--effort", "motor_current")
    call(capsys, "derive", "out/fit.json", "--c", "-o", "controller")
    assert "arm6_currents(" in Path("controller/arm6.h").read_text(encoding="utf-8")


def test_gains_by_name_must_name_every_motor_of_the_robot(folder: Path) -> None:
    di.examples.arm6("demo")
    words = ["identify", "demo/robot.urdf", "demo/run.csv", "--effort", "motor_current"]
    with pytest.raises(di.DynidentError, match="no number for joint6 of robot 'arm6'"):
        run([*words, "--gain", "joint1=1,joint2=1,joint3=1,joint4=1,joint5=1"])


@pytest.mark.parametrize("given", [3.0, None])
def test_what_is_no_log_is_refused_in_a_sentence(given: object) -> None:
    with pytest.raises(di.DynidentError, match="give a Log, a file, a data frame, or a list of these"):
        di.identify(di.examples.arm6().robot, given)


def test_data_frames_are_logs() -> None:
    pandas = pytest.importorskip("pandas")
    arm = di.examples.arm6()
    names = ["t", *(f"q_{j}" for j in arm.run.joints), *(f"tau_{j}" for j in arm.run.joints)]
    frame = pandas.DataFrame(np.column_stack([arm.run.t, arm.run.position, arm.run.effort]), columns=names)
    done = di.identify(arm.robot, frame, effort="joint_torque")
    reference = di.identify(arm.robot, arm.run)
    assert done.fit.values == pytest.approx(reference.fit.values, rel=1e-9)


def test_stages_survive_every_log_format(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "excite", "my robot/two bars.urdf", "--iterations", 1, "--starts", 1, "-o", "plan", "-q")
    robot, plan = di.Mechanism.from_urdf("my robot/two bars.urdf"), Plan.load("plan/plan.json")
    motion = plan.motion()
    log = di.Log(motion.t, plan.coordinates, motion.q, di.inverse_dynamics(robot, motion), "joint_torque", name="run")
    for ending in (".csv", ".npz", ".mat", ".mcap"):
        pytest.importorskip("mcap") if ending == ".mcap" else None
        refer(log, plan).save(f"run{ending}")
        training, held_out, _ = divide([di.Log.read(f"run{ending}")], [], 1 / 3)
        assert [part.name for part in (*training, *held_out)] == ["run/excitation", "run/validation"], ending


@pytest.mark.parametrize(("kind", "gain"), [("joint_torque", ()), ("motor_current", ("--gain", "1,1,1,1,1,1,1"))])
def test_channels_that_the_robot_does_not_have_are_left_out_with_a_note(
    folder: Path, capsys: pytest.CaptureFixture[str], kind: str, gain: tuple[str, ...]
) -> None:
    arm = di.examples.arm6()
    arm.robot.save("arm.urdf")
    names = [*arm.run.joints, "gripper_finger"]
    table = np.column_stack([arm.run.t, arm.run.position, np.sin(arm.run.t), arm.run.effort, np.cos(arm.run.t)])
    heads = ",".join(["t", *(f"q_{j}" for j in names), *(f"tau_{j}" for j in names)])
    np.savetxt("run.csv", table, delimiter=",", header=heads, comments="")
    assert run(["identify", "arm.urdf", "run.csv", "--effort", kind, *gain, "--estimator", "wls", "-o", "out"]) == 0
    assert "gripper_finger moved, which the model ignores" in " ".join(capsys.readouterr().err.split())


def test_next_command_of_a_robot_with_loops_writes_its_controller(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small_robots.platform().save("my platform.json")  # a planar joint, which MuJoCo does not have
    Path("limits.toml").write_text("[default]\nlower = -0.05\nupper = 0.05\nvelocity = 0.5\n", encoding="utf-8")
    said = call(
        capsys, "excite", "my platform.json", "--limits", "limits.toml", "--iterations", 2, "--starts", 1, "-o", "my plan"
    )
    said = call(capsys, *next_command(said), "--noise", 0.01)
    said = call(capsys, *next_command(said))
    assert "VALIDATED (" in said
    words = next_command(said)
    assert words[0] == "derive" and "platform.h" in call(capsys, *words)
