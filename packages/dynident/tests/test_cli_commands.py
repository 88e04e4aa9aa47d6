"""The commands end to end on the demo: what they write, print and return."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynident as di
from dynident.__main__ import main
from dynident.cli.consoles import notes
from dynident.errors import IdentificationError

pytest.importorskip("matplotlib", reason="reports are an extra: pip install 'dynident[report]'")

ROOT = Path(__file__).resolve().parents[3]
DEMO = ROOT / "examples" / "demo"
ROBOT, TRAIN, HELD_OUT = (str(DEMO / name) for name in ("robot.urdf", "train.csv.gz", "validate.csv.gz"))
OUTPUTS = {"fit.json", "identified.urdf", "report.html", "verdict.json"}


def strict_json(text: str) -> Any:
    """Read JSON as every reader in the world does: without NaN and Infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def process(*args: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m dynident`` in another folder, with this very package."""
    variables = {**os.environ, "PYTHONPATH": str(Path(di.__file__).parents[1]), **environment}
    command = [sys.executable, "-m", "dynident", *args]
    return subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, timeout=600, check=False)


class Runner:
    """Calls `main` in this process; reports are replaced by a stub unless asked for, since drawing is slow."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.folder, self.capsys, self.patch = folder, capsys, patch
        self.reports: list[tuple[Any, ...]] = []
        patch.chdir(folder)

    def without_drawing(self) -> None:
        def stub(path: Path, *content: Any, command: str = "") -> Path:
            assert command == "" or command.startswith("dynident ")
            self.reports.append(content)
            path.write_text("<html></html>", encoding="utf-8")
            return path

        self.patch.setattr("dynident.report.report.write_report", stub)

    def __call__(self, *args: str | Path, code: int = 0) -> str:
        self.patch.setattr(sys, "argv", ["dynident", *map(str, args)])
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main()
        output, self.errors = self.capsys.readouterr()
        assert exit_.value.code == code, self.errors
        return output


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Runner:
    return Runner(tmp_path, capsys, monkeypatch)


@pytest.fixture
def quick(run: Runner) -> Runner:
    run.without_drawing()
    return run


@pytest.fixture(scope="module")
def fit_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    robot = di.Mechanism.from_urdf(ROBOT)
    path = tmp_path_factory.mktemp("fit") / "fit.json"
    return di.WLS(recovery="physical").fit(di.Regression.from_log(robot, di.Log.read(TRAIN))).result_.save(path)


def plain_csv(source: str, path: Path) -> Path:
    """Write a log of ours as an ordinary CSV file: no metadata line, plain column names."""
    log = di.Log.read(source)
    head = ",".join(["t", *(f"q_{j}" for j in log.joints), *(f"tau_{j}" for j in log.joints)])
    rows = np.column_stack([log.t, log.position, log.effort])
    path.write_text(head + "\n" + "\n".join(",".join(repr(float(x)) for x in row) for row in rows) + "\n", encoding="utf-8")
    return path


def test_the_first_example_of_the_readme_by_command(tmp_path: Path) -> None:
    shutil.copy(ROBOT, tmp_path / "robot.urdf")
    plain_csv(TRAIN, tmp_path / "run.csv")
    plain_csv(HELD_OUT, tmp_path / "other.csv")
    command = "identify robot.urdf run.csv --effort joint_torque --validate other.csv -o out/"
    done = process(*command.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "VALIDATED (" in done.stdout and len(done.stdout.splitlines()) <= 15
    assert done.stdout.splitlines()[-1].endswith("dynident export out/fit.json --for mujoco -o out/mujoco")
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == OUTPUTS
    verdict = strict_json((out / "verdict.json").read_text())
    assert verdict["ok"]
    assert verdict["scores"][0]["relative"] < 0.03
    fit = strict_json((out / "fit.json").read_text())
    identified = di.Mechanism.from_urdf(out / "identified.urdf")
    assert identified.parameters["m_link2"] == pytest.approx(fit["standard_parameters"]["m_link2"], rel=1e-12)
    assert all(verdict.ok for verdict in identified.check_consistency())
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "TRAINING" in page.upper()


def test_the_module_and_its_help_run_as_a_process(tmp_path: Path) -> None:
    done = process("--help", cwd=tmp_path)
    assert done.returncode == 0
    for word in ("describe", "identify", "validate", "export", "report", "Exit codes", "130"):
        assert word in done.stdout
    wrong = process("describe", "x.urdf", cwd=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "cannot read URDF file 'x.urdf'" in wrong.stderr


@pytest.mark.parametrize("command", ["describe", "identify", "validate", "export", "report"])
def test_every_help_has_an_example(command: str, run: Runner) -> None:
    text = run(command, "--help")
    assert f"Example: dynident {command} " in " ".join(text.split())
    assert "--json" in text


def test_no_command_shows_the_help_and_is_wrong_usage(run: Runner) -> None:
    text = run(code=2)
    assert "Start here" in text and "identify" in text
    assert run("--version").splitlines()[0] == f"dynident {di.__version__}"


def test_describe(run: Runner) -> None:
    text = run("describe", ROBOT)
    data = strict_json(run("describe", ROBOT, "--json"))
    base = di.base_parameters(di.Mechanism.from_urdf(ROBOT))
    assert data["dof"] == 6
    assert data["base_parameters"]["rank"] == base.rank
    assert "robot arm6: 6 degrees of freedom" in text
    for expression in base.expressions:  # those that are regrouped in full, the others by name
        assert expression in text or expression.partition(" = ")[0] in text
    robot = di.Mechanism.from_urdf(ROBOT)
    assert f"link2 {robot.parameters['m_link2']:.4g}" in text and "together" in text
    rigid = strict_json(run("describe", ROBOT, "--json", "--terms", ""))
    assert rigid["terms"] == []
    assert rigid["base_parameters"]["rank"] < base.rank


def test_describe_a_robot_with_odd_names(run: Runner) -> None:
    text = Path(ROBOT).read_text().replace("joint1", "[/red]関節:smile:")
    Path("робот.urdf").write_text(text, encoding="utf-8")
    assert "[/red]関節:smile:" in run("describe", "робот.urdf")


def test_describe_a_robot_with_a_loop(run: Runner) -> None:
    Path("bars.xml").write_text(
        """<mujoco model="bars"><option gravity="0 -9.81 0"/><worldbody>
        <body name="crank"><joint name="q1" axis="0 0 1"/><inertial pos=".05 0 0" mass="1" diaginertia=".01 .01 .01"/>
          <body name="coupler" pos="0 .1 0"><joint name="q2" axis="0 0 1"/>
            <inertial pos=".15 0 0" mass="1" diaginertia=".02 .02 .02"/></body></body>
        <body name="rocker" pos=".3 -.1 0"><joint name="q3" axis="0 0 1"/>
          <inertial pos=".1 0 0" mass="1" diaginertia=".01 .01 .01"/></body>
        </worldbody></mujoco>""",
        encoding="utf-8",
    )
    Path("loop.toml").write_text(
        """terms = []
        [[loop]]
        name = "cut"
        kind = "revolute"
        body_a = "coupler"
        body_b = "rocker"
        xyz_a = [0.3, 0.05, 0.0]
        xyz_b = [0.0, 0.25, 0.0]
        [[actuator]]
        name = "motor"
        coupling = { q1 = 1.0 }
        """,
        encoding="utf-8",
    )
    data = strict_json(run("describe", "bars.xml", "--sidecar", "loop.toml", "--json"))
    assert data["dof"] == data["closure"]["dof"] == 1
    assert data["closure"]["independent"] == ["q1"]
    assert sorted(data["closure"]["dependent"]) == ["q2", "q3"]
    assert data["closure"]["redundant_equations"] == 3  # a revolute cut of a planar robot: five equations, two of them count
    assert data["base_parameters"]["rank"] > 0
    text = run("describe", "bars.xml", "--sidecar", "loop.toml")
    assert "q1 independent" in text
    assert data["base_parameters"]["expressions"][0] in text


def test_identify_shows_the_training_data_too(quick: Runner) -> None:
    quick("identify", ROBOT, TRAIN, "--validate", HELD_OUT, "--recovery", "prior", "-o", "out", "-q")
    (_, shown, verdict), *more = quick.reports
    assert not more
    assert [(score.name, score.training) for score in shown] == [("validate", False), ("train", True)]
    assert len(verdict.scores) == 1


def test_python_writes_the_files_of_the_command(quick: Runner) -> None:
    quick("identify", ROBOT, TRAIN, "--validate", HELD_OUT, "-o", "command", "-q")
    written = di.identify(ROBOT, TRAIN, validate=HELD_OUT).write("python", ROBOT)
    assert {path.name for path in written} == OUTPUTS
    for name in OUTPUTS - {"report.html"}:
        assert Path("python", name).read_text() == Path("command", name).read_text(), name


def test_identify_with_several_logs(quick: Runner) -> None:
    log = di.Log.read(TRAIN)
    half = len(log) // 2
    for name, part in (("a", log.rows(0, half)), ("b", log.rows(half, len(log)))):
        part.save(f"{name}.csv")
    verdict = strict_json(quick("identify", ROBOT, "a.csv", "b.csv", "--validate", HELD_OUT, "--json"))
    assert verdict["ok"]
    fit = strict_json(Path("dynident_out/fit.json").read_text())
    assert len(fit["sources"]) == 2
    assert {path.name for path in Path("dynident_out").iterdir()} == OUTPUTS
    assert len(quick.reports[0][1]) == 3


@pytest.mark.parametrize(
    ("options", "check"),
    [
        (["--estimator", "ols", "--recovery", "prior"], lambda fit: fit["estimator"].startswith("OLS")),
        (["--terms", "ia,fv", "--recovery", "prior"], lambda fit: fit["terms"] == ["ia", "fv"]),
        (["--terms", "ia,fvp,fvn,fcp,fcn", "--recovery", "prior"], lambda fit: "fcn_joint1" in fit["standard_parameters"]),
        (
            ["--terms", "joint1=ia,fv", "--friction", "joint2=tanh + viscous"],
            lambda fit: (
                fit["joint_terms"] == {"joint1": ["ia", "fv"]}
                and fit["friction"][0]["law"] == "tanh + viscous"
                and "tanh.beta_joint2" in fit["standard_parameters"]
            ),
        ),
        (["--estimator", "wls", "--recovery", "minimum_norm"], lambda fit: "minimum_norm" in fit["standard_provenance"]),
        (["--recovery", "physical"], lambda fit: "physically consistent" in fit["standard_provenance"]),
        (["--recovery", "prior"], lambda fit: "prior" in fit["standard_provenance"]),
        (
            ["--essential", "10", "--recovery", "prior"],
            lambda fit: any(row["verdict"] == "dropped" for row in fit["base_parameters"]),
        ),
        (
            ["--contributing", "0.02", "--recovery", "prior"],
            lambda fit: any(row["verdict"] == "dropped" for row in fit["base_parameters"]),
        ),
        (["--estimator", "tukey"], lambda fit: fit["estimator"].startswith("IRLS(") and "loss='tukey'" in fit["estimator"]),
        (["--causal", "--filter-order", "3"], lambda fit: fit["options"] == {"order": 3, "phase": "causal"}),
        (
            ["--cutoff", "8", "--decimation", "4", "--recovery", "prior"],
            lambda fit: fit["options"] == {"cutoff": 8.0, "decimation": 4},
        ),
    ],
)
def test_options_of_identify(options: list[str], check: Any, quick: Runner) -> None:
    output = quick("identify", ROBOT, TRAIN, "-o", "out", "--hold-out", "0", *options)
    fit = strict_json(Path("out/fit.json").read_text())
    assert check(fit)
    if "--friction" in options:  # the description and its sidecar are the identified robot, laws and all
        robot = di.Mechanism.from_urdf("out/identified.urdf", "out/identified.toml")
        assert {name: robot.parameters[name] for name in fit["standard_parameters"]} == pytest.approx(
            fit["standard_parameters"], rel=1e-9, abs=1e-12
        )
    assert "NOT VALIDATED" in output
    assert "Files: out" in output
    if {"prior", "minimum_norm"} & set(
        options
    ):  # these bodies are not physically possible: a check fails, and the log is suspected
        assert output.splitlines()[-1].startswith(f"next:  dynident inspect {TRAIN} --robot {ROBOT}")
    else:
        assert output.splitlines()[-1] == "next:  dynident validate out/fit.json OTHER_LOG"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--estimator", "best"], "--estimator is 'best'; it must be one of map, wls"),
        (["--estimator", "didim"], "--estimator didim simulates the robot with its controller; say which one with --loop"),
        (["--estimator", "gls", "--essential", "10"], "--essential works with the estimators map, wls and ols, not with 'gls'"),
        (["--essential", "10", "--contributing", "0.1"], "--essential and --contributing exclude each other"),
    ],
)
def test_options_that_do_not_go_together(options: list[str], sentence: str, quick: Runner) -> None:
    quick("identify", ROBOT, TRAIN, "-o", "out", *options, code=1)
    assert sentence in " ".join(quick.errors.split())


def test_parameters_that_a_urdf_cannot_hold_are_told(quick: Runner) -> None:
    quick("identify", ROBOT, TRAIN, "-o", "out", "--estimator", "wls", "--recovery", "minimum_norm")
    standard = strict_json(Path("out/fit.json").read_text())["standard_parameters"]
    assert standard["m_link1"] == 0.0  # it turns about a vertical axis: no torque shows its mass, on any processor
    assert not Path("out/identified.urdf").exists()
    assert "identified.urdf is not written" in quick.errors


def test_currents_and_gains(quick: Runner) -> None:
    """Torques divided by a gain and declared as currents give the same fit."""
    log, gains = di.Log.read(TRAIN), [40.0, 50.0, 30.0, 10.0, 10.0, 5.0]
    current = di.Log(log.t, log.joints, log.position, log.effort / gains, "motor_current", name="run")
    current.save("run.csv")
    quick("identify", ROBOT, "run.csv", "--gain", ",".join(map(str, gains)), "--recovery", "prior", "-o", "a", "-q")
    quick("identify", ROBOT, TRAIN, "--recovery", "prior", "-o", "b", "-q")
    gripper = [np.column_stack([x, np.full(len(log), 0.1)]) for x in (log.position, log.effort / gains)]  # moves nothing
    di.Log(log.t, (*log.joints, "gripper"), *gripper, "motor_current", name="run").save("more.csv")
    named = ",".join(f"{name}={gain}" for name, gain in reversed(list(zip(log.joints, gains, strict=True))))
    quick("identify", ROBOT, "more.csv", "--gain", named, "--recovery", "prior", "-o", "c", "-q")
    quick("identify", ROBOT, "more.csv", "--gain", ",".join(map(str, [*gains, 1.0])), "--recovery", "prior", "-o", "d", "-q")
    assert "gripper" in Path("d/fit.json").read_text()  # the note about the channel that was left out
    a, *others = ([row["value"] for row in strict_json(Path(f"{x}/fit.json").read_text())["base_parameters"]] for x in "abcd")
    for other in others:
        np.testing.assert_allclose(other, a, rtol=1e-6, atol=1e-9)


def test_a_schema(quick: Runner, fit_file: Path) -> None:
    text = plain_csv(HELD_OUT, Path("x.csv")).read_text().replace("q_joint", "enc").replace("tau_joint", "drive")
    Path("x.csv").write_text(text, encoding="utf-8")
    Path("schema.toml").write_text(
        'time = "t"\njoints = ["joint1", "joint2", "joint3", "joint4", "joint5", "joint6"]\nposition = "enc{index}"\n'
        'effort = "drive{index}"\neffort_kind = "joint_torque"\n',
        encoding="utf-8",
    )
    by_schema = strict_json(quick("validate", fit_file, "x.csv", "--schema", "schema.toml", "--json"))
    directly = strict_json(quick("validate", fit_file, HELD_OUT, "--json"))
    assert by_schema["scores"][0]["rmse"] == directly["scores"][0]["rmse"]


def test_validate(run: Runner, fit_file: Path) -> None:
    text = run("validate", fit_file, HELD_OUT, "--strict")
    assert "(held out)" in text
    assert "validated and all checks passed" in text
    verdict = strict_json(run("validate", fit_file, HELD_OUT, HELD_OUT, "--json"))
    assert verdict["validated"]
    assert len(verdict["scores"]) == 2
    text = run("validate", fit_file, TRAIN, "--allow-training", "--strict", code=3)
    assert "TRAINING DATA" in text
    assert "NOT VALIDATED" in text


def test_strict_identify_without_validation(quick: Runner) -> None:
    verdict = strict_json(quick("identify", ROBOT, TRAIN, "--recovery", "prior", "-o", "out", "--strict", "--json", code=3))
    assert not verdict["ok"]
    assert {path.name for path in Path("out").iterdir()} == OUTPUTS


def test_export(run: Runner, fit_file: Path) -> None:
    fit = di.Fit.load(fit_file, di.Mechanism.from_urdf(ROBOT))
    assert run("export", ROBOT, fit_file, "-o", "deep/x.urdf") == "written: deep/x.urdf\n"
    read = di.Mechanism.from_urdf("deep/x.urdf").parameters
    np.testing.assert_allclose(read.values[:60], fit.standard.values[:60], rtol=1e-9, atol=1e-12)
    answer = strict_json(run("export", ROBOT, fit_file, "-o", "p.json", "--json"))
    assert answer["written"] == ["p.json"]
    assert len(answer["impossible"]) == sum(not c.ok for c in fit.consistency())
    for file in ("p.json", fit_file):  # a robot in JSON, and a fit in its place
        described = strict_json(run("describe", file, "--json"))
        assert described["dof"] == 6
    assert di.mechanism.read_robot("p.json").parameters.to_dict() == fit.model.parameters.to_dict()
    assert di.mechanism.read_robot(fit_file).parameters.to_dict() == fit.model.parameters.to_dict()


def test_report(run: Runner, fit_file: Path) -> None:
    answer = strict_json(run("report", fit_file, HELD_OUT, "-o", "r.html", "--json"))
    assert answer["written"] == "r.html"
    assert answer["verdict"]["ok"]
    assert "</html>" in Path("r.html").read_text(encoding="utf-8")


MJCF = """<mujoco model="arm3"><!-- kept --><compiler angle="radian"/><worldbody>
  <body name="a"><joint name="a1" axis="0 0 1"/><inertial pos=".1 0 0" mass="4" diaginertia=".05 .06 .06"/>
    <body name="b" pos=".3 0 .2"><joint name="b1" axis="0 1 0"/><inertial pos=".15 0 .02" mass="2.5" diaginertia=".02 .04 .04"/>
      <body name="c" pos=".3 0 0"><joint name="c1" axis="0 1 0"/><inertial pos=".1 .01 0" mass="1" diaginertia=".005 .01 .01"/>
  </body></body></body></worldbody></mujoco>"""


def test_an_mjcf_robot_from_log_to_description(quick: Runner) -> None:
    Path("arm.xml").write_text(MJCF, encoding="utf-8")
    robot = di.Mechanism.from_mjcf("arm.xml")
    rng = np.random.default_rng(0)
    truth = robot.parameters.replace(robot.parameters.values * rng.uniform(0.9, 1.1, len(robot.parameters)))
    truth = truth.replace({f"{term}_{joint}": 0.4 for term in ("ia", "fv", "fc") for joint in robot.joint_names})
    for seed, name in enumerate(("run", "other")):
        t = np.arange(0.0, 12.0, 0.005)
        w = 2 * np.pi * np.array([0.2, 0.45, 0.8])
        angle = t[:, None, None] * w + np.random.default_rng(seed).uniform(0, 6, (3, 3))
        motion = di.Motion(t, *(0.5 * s.sum(axis=2) for s in (np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle))))
        effort = di.inverse_dynamics(robot, motion, truth) + rng.normal(0.0, 0.02, motion.q.shape)
        di.Log(t, robot.joint_names, motion.q, effort, "joint_torque", name=name).save(f"{name}.npz")
    quick("identify", "arm.xml", "run.npz", "--validate", "other.npz", "-o", "out", "--strict")
    assert {path.name for path in Path("out").iterdir()} == (OUTPUTS - {"identified.urdf"}) | {"identified.xml"}
    text = Path("out/identified.xml").read_text(encoding="utf-8")
    assert "<!-- kept -->" in text
    fit = strict_json(Path("out/fit.json").read_text())
    read = di.Mechanism.from_mjcf("out/identified.xml")
    assert read.parameters["m_b"] == pytest.approx(fit["standard_parameters"]["m_b"], rel=1e-9)
    quick("export", "arm.xml", "out/fit.json", "-o", "again.xml")
    assert Path("again.xml").read_text(encoding="utf-8") == text
    assert strict_json(quick("describe", "again.xml", "--json"))["possible"]


@pytest.mark.parametrize("stage", ["report", "model", "score"])
def test_a_failing_run_keeps_what_was_there(stage: str, quick: Runner) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise IdentificationError("made to fail by the test, on purpose")

    out = Path("out")
    out.mkdir()
    for name in OUTPUTS:
        (out / name).write_text("old", encoding="utf-8")
    if stage == "report":
        quick.patch.setattr("dynident.report.report.write_report", fail)
    elif stage == "model":
        quick.patch.setattr(sys.modules["dynident.identify.fit"], "write_robot", fail)
    else:
        quick.patch.setattr(di.Fit, "score", fail)
    quick("identify", ROBOT, TRAIN, "--recovery", "prior", "-o", "out", code=1)
    assert quick.errors == "dynident: made to fail by the test, on purpose\n"
    assert {path.name: path.read_text() for path in out.iterdir()} == dict.fromkeys(OUTPUTS, "old")
    quick("identify", ROBOT, TRAIN, "--recovery", "prior", "-o", "new/deep", code=1)
    assert not Path("new").exists()


def test_interrupts_and_bugs(quick: Runner) -> None:
    def fail(error: BaseException) -> None:
        def raise_(*_: Any) -> None:
            raise error

        quick.patch.setattr("dynident.cli.options.read_robot", raise_)

    fail(KeyboardInterrupt())
    quick("describe", ROBOT, code=130)
    assert quick.errors == "dynident: interrupted; no file was left incomplete\n"
    fail(ZeroDivisionError("two\nlines"))
    quick("describe", ROBOT, code=70)
    assert quick.errors.startswith("dynident: internal error (ZeroDivisionError: two lines)")
    assert quick.errors.count("\n") == 1
    fail(OSError(28, "No space left on device"))
    quick("describe", ROBOT, code=1)
    assert "No space left" in quick.errors
    fail(MemoryError())
    quick("describe", ROBOT, code=1)
    assert "MemoryError" in quick.errors
    fail(ZeroDivisionError("seen"))
    quick.patch.setattr(sys, "argv", ["dynident", "describe", ROBOT, "--debug"])
    with pytest.raises(ZeroDivisionError):
        main()


def test_a_terminal_without_the_letters(tmp_path: Path) -> None:
    (tmp_path / "r.urdf").write_text(Path(ROBOT).read_text().replace("joint1", "関節"), encoding="utf-8")
    done = process("describe", "r.urdf", "--terms", "", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "\\u95a2" in done.stdout


def test_numbers_that_json_does_not_have_are_written_as_text(fit_file: Path, tmp_path: Path) -> None:

    from dynident.identify import evaluate
    from dynident.validate import judge

    robot = di.Mechanism.from_urdf(ROBOT)
    fit = di.Fit.load(fit_file, robot)
    odd = fit.altered(condition=float("inf"), training_relative=float("nan"), solved=np.zeros(fit.base.rank, dtype=bool))
    data = strict_json(odd.save(tmp_path / "odd.json").read_text())
    assert data["condition"] == "inf"
    assert data["training_relative"] == "nan"
    assert data["base_parameters"][0]["std"] == "inf"
    back = di.Fit.load(tmp_path / "odd.json", robot)
    assert back.condition == np.inf
    assert np.isnan(back.training_relative)
    assert not back.solved.any()
    checks = {check["name"]: check for check in strict_json(judge(odd).save(tmp_path / "verdict.json").read_text())["checks"]}
    assert checks["condition"]["value"] == "inf"
    assert not checks["condition"]["ok"]
    still = evaluate(np.zeros((5, 1)), np.ones((5, 1)), ("a",))
    assert strict_json(still.save(tmp_path / "still.json").read_text())["relative"] == "nan"


def test_progress_is_shown_on_terminals_only(quick: Runner, fit_file: Path) -> None:
    quick("validate", fit_file, HELD_OUT)
    assert quick.errors == ""
    with quick.patch.context() as patch:
        patch.setattr(notes, "_force_terminal", True)
        patch.setattr(notes, "is_interactive", True)
        patch.setenv("TERM", "xterm")
        quick("validate", fit_file, HELD_OUT)
    assert "validating on validate.csv.gz" in quick.errors
