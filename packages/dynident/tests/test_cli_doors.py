"""Commands for a robot of one's own: joints held, the base freed, files converted, shells completed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

import dynident as di
from dynident.cli import application, arguments_of, command_names, commands, option_names, run
from dynident.cli.words import OPTIONS, in_options
from dynident.drive import read_drives

BASH = shutil.which("bash")
INERTIA = """<inertial><origin xyz="0 0 0.2"/><mass value="2"/>
<inertia ixx="0.03" iyy="0.03" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial>"""
URDF = f"""<robot name="two"><link name="base"/><link name="a">{INERTIA}</link><link name="b">{INERTIA}</link>
<joint name="j1" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" velocity="2" effort="60"/><dynamics damping="0.5" friction="0.8"/></joint>
<joint name="j2" type="revolute"><parent link="a"/><child link="b"/><origin xyz="0 0 0.4"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" velocity="2" effort="30"/><dynamics damping="0.2" friction="0.4"/></joint></robot>"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "robot.urdf").write_text(URDF)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(capsys, *args: str) -> tuple[str, str]:
    assert run(args) == 0
    printed = capsys.readouterr()
    return printed.out, printed.err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the file is empty"),
        ("[drive]\nx = 1", r"give tables that begin with \[\[drive\]\]"),
        ('[[drive]]\nactuator = "j9"', "there is no actuator 'j9'; robot 'two' has j1, j2"),
        ('[[drive]]\nactuator = "j1"\nmotor = { torque_constant = 1.0 }', "has no entry for j2"),
        ("[[drive]]\ngear = { ratio = 5.0 }", "drive 'j1': motor has no torque_constant"),
        (
            "[[drive]]\nmotor = { torque_constant = 1.0, colour = 3 }",
            "motor: unknown key 'colour'; known keys are torque_const",
        ),
        ("[[drive]]\nmotor = { torque_constant = 'x' }", "torque_constant is 'x'; give a number"),
        ("[[drive]]\nmotor = { torque_constant = 1.0 }\nencoder = { counts = 0 }", "encoder counts is 0"),
        ("[[drive]]\nmotor = { torque_constant = 1.0 }\nfriction = { law = 'coulomb' }", "friction: values is None"),
        ("[[drive]]\nmotor = 3", r"motor is 3; give a table in braces"),
        ("[[drive]]\n[[drive]]", "is the second table without an actuator"),
    ],
)
def test_wrong_drives_get_a_sentence(folder, text, sentence):
    (folder / "drives.toml").write_text(text)
    with pytest.raises(di.errors.DescriptionError, match=sentence):
        read_drives("drives.toml", di.Mechanism.from_urdf("robot.urdf"))


def test_a_base_with_legs_is_said_to_be_held(folder, capsys):
    legs = URDF.replace('<link name="base"/>', f'<link name="base">{INERTIA}</link>').replace(
        '<parent link="a"/><child link="b"/>', '<parent link="base"/><child link="b"/>'
    )
    (folder / "legs.urdf").write_text(legs)
    sentence = "the base 'base' of robot 'two' is held still; --floating frees it"
    assert sentence in call(capsys, "describe", "legs.urdf")[1]
    for args in (("legs.urdf", "--floating"), ("robot.urdf",)):
        assert "held still" not in call(capsys, "describe", *args)[1]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("give rate= (--rate) in Hz", "give --rate in Hz"),
        ("the channels' names: joints=, --joints)", "the channels' names: --joints)"),
        ("name its folder with --search (search=[...])", "name its folder with --search"),
        ("say which with schema={'time': ...}", "say which with the key 'time' of a --schema file"),
        ("give units={'time': 'ms'} (or 'us')", "give --unit time=ms (or 'us')"),
        ("a higher cutoff= (duration", "a higher --cutoff (duration"),
        ("give decimation=1", "give --decimation 1"),
        ("use projection='gls'", "use --projection gls"),
        ("degrees taken for radians (position=deg)?", "degrees taken for radians (--unit position=deg)?"),
        ("milliseconds taken for seconds (time=ms)?", "milliseconds taken for seconds (--unit time=ms)?"),
        ("standstill=0.1 (--standstill 0.1) leaves it out", "--standstill 0.1 leaves it out"),
        ("add it with separate=True", "add it with separate=True"),
        ("--lock is 'j2=x'; give name=position", "--lock is 'j2=x'; give name=position"),
    ],
)
def test_sentences_name_options(said, told):
    token = OPTIONS.set(option_names(arguments_of(["identify"])))
    try:
        assert in_options(said) == told
    finally:
        OPTIONS.reset(token)
    assert in_options(said) == said


def test_joints_are_held_and_the_base_is_freed(folder, capsys):
    for options, coordinates in (
        (("--lock", "j2=0.5"), ["j1"]),
        (("--keep", "j2"), ["j2"]),
        (("--floating",), [*(f"floating_base.{c}" for c in ("x", "y", "z", "rx", "ry", "rz")), "j1", "j2"]),
    ):
        data = json.loads(call(capsys, "describe", "robot.urdf", "--json", *options)[0])
        assert data["coordinates"] == coordinates
    with pytest.raises(di.errors.DynidentError, match="--lock is 'j2=x'"):
        run(["describe", "robot.urdf", "--lock", "j2=x"])


def test_help_speaks_no_python(capsys):
    for name in command_names():
        assert run([name, "--help-all"]) == 0
        said = capsys.readouterr().out
        assert not any(word in said for word in ("STR", "INT ", "FLOAT", "None", "list[")), name
        if name == "fleet":  # a group of commands
            continue
        arguments = application(name)[name].assemble_argument_collection(parse_docstring=True)
        nameless = [argument.name for argument in arguments.filter_by(show=True) if not argument.parameter.help]
        assert not nameless, (name, nameless)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_options_and_values(shell, tmp_path):
    script = tmp_path / "completion"
    assert run(["--install-completion", "--shell", shell, "-o", str(script)]) == 0
    text = script.read_text()
    assert all(word in text for word in ("describe", "excite", "identify", "estimator", "output-error", "motor_current"))


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("typed", "offered", "others"),
    [
        ("dynident ex", {"excite", "export"}, {"describe"}),
        ("dynident identify robot.urdf --eff", {"--effort"}, {"--estimator"}),
        ("dynident identify robot.urdf run.csv --effort motor_", {"motor_current", "motor_torque"}, {"joint_torque"}),
        ("dynident describe rob", {"robot.urdf"}, {"completion"}),
    ],
)
def test_bash_completes_what_is_typed(typed, offered, others, folder):
    """The installed function runs in a real shell, which calls it as it does when a user presses the tab key."""
    assert run(["--install-completion", "--shell", "bash", "-o", str(folder / "completion")]) == 0
    words = typed.split()
    code = f"""source ./completion
complete -p dynident | grep -q -- '-F _dynident' || exit 1
COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; COMP_LINE='{typed}'; COMP_POINT={len(typed)}
_dynident dynident '{words[-1]}' '{words[-2]}'
printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run([BASH, "--norc", "-c", code], cwd=folder, capture_output=True, text=True, timeout=60, check=True)
    found = set(done.stdout.split())
    assert offered <= found and not others & found, done.stderr


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "npz", "parquet", "mat", "mcap"])
def test_a_log_is_converted(ending, folder, capsys):
    """What another program wrote with degrees and numbers for names arrives in SI in every format."""
    if ending in ("parquet", "mcap"):
        pytest.importorskip("pyarrow" if ending == "parquet" else "mcap")
    t = np.arange(50) / 100.0
    rows = np.column_stack([t, 90.0 * t, 3.0 * t])
    (folder / "run.csv").write_text(
        "time [s],q1 [deg],tau1 [Nm]\n" + "\n".join(",".join(map(repr, row)) for row in rows.tolist())
    )
    text, notes = call(capsys, "convert", "run.csv", f"out.{ending}", "--effort", "joint_torque", "--start", "0.1")
    assert f"written: out.{ending}" in text and "deg" in notes
    log = di.Log.read(f"out.{ending}")
    np.testing.assert_allclose(log.position[:, 0], np.pi / 2 * t[10:], atol=1e-12)
    np.testing.assert_allclose(log.t, t[10:], atol=1e-9)
    with pytest.raises(di.errors.DynidentError, match="must end in"):
        run(["convert", "run.csv", "out.xlsx", "--effort", "joint_torque"])


def test_the_list_of_commands_repeats_the_first_sentence_of_each() -> None:
    listed = {**commands.OWN, **commands.OTHERS}
    for name in command_names():
        if name in listed:
            assert application(name)[name].help.splitlines()[0] == listed[name][1].splitlines()[0], name


def test_every_help_begins_with_an_example_and_fits_on_a_page(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name in command_names():
        lines = call(capsys, name, "--help")[0].splitlines()
        example = next((i for i, line in enumerate(lines) if line.startswith(f"Example: dynident {name}")), len(lines))
        assert example <= 6, name  # after the usage and one sentence
        assert len(lines) <= (50 if name == "identify" else 60), (name, len(lines))


def test_rare_options_are_in_the_whole_help_only(capsys) -> None:
    short, whole = (call(capsys, "identify", word)[0] for word in ("--help", "--help-all"))
    assert "--effort" in short and "--cutoff" not in short and "--search" not in short
    assert all(option in whole for option in option_names(arguments_of(["identify"])))


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("descibe",), "there is no command 'descibe' (did you mean 'describe'?)"),
        (("describe", "robot.urdf", "--sidecr", "x"), "Unknown option: --sidecr. Did you mean --sidecar?"),
        (("describe", "robot.urdf", "--reduction"), "has no option --reduction: did you mean 'dynident reduction ROBOT'?"),
        (("identify", "robot.urdf", "tests/", "--cycle=3"), "did you mean 'dynident cycles ROBOT CAMPAIGN'?"),
        (("export", "robot.urdf", "--for", "fmu", "--controller", "pd"), "did you mean '--option controller=LAW'?"),
        (("describe", "robot.xacro", "--trust"), "has no option --trust: xacro files are evaluated without running code"),
        (("describe",), "ROBOT is missing"),
        (("describe", "robot.urdf", "run.csv"), "unexpected argument 'run.csv'"),
        (("export", "fit.json", "--for"), "--for needs a value"),
        (("describe", "robot.urdf", "--rank-tolerance", "much"), 'unable to convert "much" into float'),
    ],
)
def test_wrong_usage_is_one_line_with_a_hint(words, hint, capsys) -> None:
    assert run(words) == 2
    told = capsys.readouterr()
    assert told.out == "" and hint in told.err and told.err.count("\n") == 1


def test_former_options_are_no_options_of_today() -> None:
    for name, options in commands.FORMER.items():
        assert not set(options) & option_names(arguments_of([name]))


def test_the_list_of_commands_imports_no_command() -> None:
    code = "import sys; from dynident.cli import run; run(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert not {"numpy", "dynident.cli.identify", "dynident_lab", "dynident_papers"} & set(done.stderr.split())


def test_no_two_options_of_a_command_have_one_name() -> None:
    for name in command_names():
        if name != "fleet":  # a group of commands
            words = [word for argument in arguments_of([name]) if not argument.children for word in argument.names]
            assert len(words) == len(set(words)), (name, sorted(words))
