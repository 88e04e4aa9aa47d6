"""A third-party package adds a command, a robot and an exporter; one that cannot be imported breaks nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dynident as di

MODULE = '''
from dataclasses import replace
from pathlib import Path

import dynident as di
from dynident.cli.consoles import out
from dynident.cli.export import Exporter
from dynident.cli.robots import KnownRobot
from dynident.cli.options import AS_WRITTEN, Robot, RobotOptions


def wave(robot: Robot, /, *, described: RobotOptions = AS_WRITTEN) -> int:
    """Wave a robot's hand."""
    out.print(f"{described.robot(robot).name} waves")
    return 0


def bar() -> di.Mechanism:
    return replace(di.Mechanism.from_dh([(0.5, 0.0, 0.0, 0.0)]), name="bar")


def write(request):
    request.output.write_text(f"{request.mechanism.name} {request.options['ink']}")
    return {"written": str(request.output)}, f"drew {request.output}"


robot = KnownRobot(mechanism=bar)
exporter = Exporter(write, folder=False, needs_fit=False, options=("ink",))
'''
ENTRIES = """[dynident.commands]
wave = thirdparty_arm:wave
shout = thirdparty_arm.missing:shout
[dynident.robots]
bar_arm = thirdparty_arm:robot
no_arm = thirdparty_arm:nothing
odd_arm = thirdparty_arm:bar
[dynident.exporters]
drawing = thirdparty_arm:exporter
"""


def install(folder: Path, name: str, version: str, entries: str) -> None:
    """Write the metadata of a distribution."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(entries)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    (folder / "thirdparty_arm.py").write_text(MODULE)
    install(folder, "thirdparty-arm", "1.0", ENTRIES)
    return folder


def dynident(*words: str, path: Path, cwd: Path, isolated: bool = False) -> subprocess.CompletedProcess[str]:
    """Run the command line with the packages of a folder; isolated: as if lab and papers were not installed."""
    sources = os.pathsep.join((str(path), str(Path(di.__file__).parents[1])))
    hide = """import importlib.metadata as m
    found = m.entry_points
    m.entry_points = lambda **by: [e for e in found(**by) if e.dist.name not in ("dynident-lab", "dynident-papers")]"""
    start = "from dynident.__main__ import main; main()"
    code = f"{hide.replace('    ', '')}\n{start}" if isolated else start
    environment = {**os.environ, "PYTHONPATH": sources, "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-c", code, *words], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_a_third_party_package_adds_a_command_a_robot_and_an_exporter(place: Path, tmp_path: Path) -> None:
    waved = dynident("wave", "bar_arm", path=place, cwd=tmp_path)
    assert (waved.returncode, waved.stdout, waved.stderr) == (0, "bar waves\n", "")
    described = dynident("describe", "bar_arm", "--json", path=place, cwd=tmp_path)
    assert json.loads(described.stdout)["dof"] == 1 and described.stderr == ""
    drawn = dynident("export", "bar_arm", "--for", "drawing", "--option", "ink=red", "-o", "bar.txt", path=place, cwd=tmp_path)
    assert (drawn.returncode, drawn.stdout) == (0, "drew bar.txt\n"), drawn.stderr
    assert (tmp_path / "bar.txt").read_text() == "bar red"


def test_a_plugin_that_cannot_be_imported_costs_one_line(place: Path, tmp_path: Path) -> None:
    broken = "plug-in 'shout' of package 'thirdparty-arm' cannot be loaded (ModuleNotFoundError: "
    shown = dynident("--help", path=place, cwd=tmp_path)
    assert shown.returncode == 0 and "Wave a robot's hand" in shown.stdout and "Identify a robot from its logs" in shown.stdout
    assert shown.stderr.startswith(f"note: {broken}") and shown.stderr.count("\n") == 1
    called = dynident("shout", path=place, cwd=tmp_path)
    assert called.returncode == 1 and called.stderr.startswith(f"dynident: {broken}") and called.stderr.count("\n") == 1
    for name, sentence in {"no_arm": "cannot be loaded (AttributeError: ", "odd_arm": "is a function; it must be a "}.items():
        asked = dynident("describe", name, path=place, cwd=tmp_path)
        assert asked.returncode == 1 and sentence in asked.stderr and asked.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (
            ("record", "plan"),
            2,
            "command 'record' is part of dynident-lab, which is not installed; run pip install 'dynident[lab]'",
        ),
        (
            ("reproduce", "--list"),
            2,
            "command 'reproduce' is part of dynident-papers, which is not installed; run pip install",
        ),
        (("describe", "dualv"), 1, "robot 'dualv' is part of dynident-papers, which is not installed; run pip install"),
        (
            ("export", "bar_arm", "--for", "fmu", "-o", "x.fmu"),
            1,
            "target 'fmu' is part of dynident-lab, which is not installed",
        ),
        (
            ("describe", "nobot"),
            1,
            "robot 'nobot' does not exist; give a file with its ending, or a name: bar_arm, no_arm, odd_arm",
        ),
        (("jump",), 2, "there is no command 'jump'"),
    ],
)
def test_what_is_not_installed_is_named(place: Path, tmp_path: Path, words: tuple[str, ...], code: int, sentence: str) -> None:
    done = dynident(*words, path=place, cwd=tmp_path, isolated=True)
    assert done.returncode == code and done.stdout == ""
    assert done.stderr.startswith(f"dynident: {sentence}") and done.stderr.count("\n") == 1


def test_packages_of_different_versions_are_refused(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    install(site, "dynident-lab", "0.1.0", "[dynident.commands]\nrecord = dynident_lab.cli.link:record\n")
    repair = f"run pip install dynident=={di.__version__} dynident-lab=={di.__version__}"
    for words in (("--version",), ("record", "--dry-run")):
        done = dynident(*words, path=site, cwd=tmp_path)
        assert done.returncode == 1 and repair in done.stderr and done.stderr.count("\n") == 1
    assert dynident("cache", path=site, cwd=tmp_path).returncode == 0


def test_the_version_lists_installed_packages(place: Path, tmp_path: Path) -> None:
    done = dynident("--version", path=place, cwd=tmp_path)
    assert done.stdout.splitlines()[0] == f"dynident {di.__version__}" and done.stderr == ""


def test_a_command_of_the_core_imports_no_plugin(place: Path, tmp_path: Path) -> None:
    (tmp_path / "robot.urdf").write_text('<robot name="r"><link name="a"/></robot>')
    code = (
        "import sys; from dynident.cli import run; assert run(['describe', 'robot.urdf']) == 0; "
        "print([name for name in sys.modules if name.startswith(('dynident_lab', 'dynident_papers', 'thirdparty'))])"
    )
    environment = {**os.environ, "PYTHONPATH": str(place)}
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr
