# ruff: noqa: T201 - this is a command; its output is its result
"""Rehearse a release: `python tests/release.py dist` checks the three wheels in a folder as a user would install them.

The core wheel is installed alone into an empty environment outside the repository. There the program of the README, the quick
start page, `--help` of every command and the core tests must run; tests that need optional packages skip. Then lab and papers
are added, and a command of each must run. `--no-tests` leaves out the core tests, which take most of the time.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("dynident", "dynident_lab", "dynident_papers")
CORE = (
    *("demo", "describe", "identify", "validate", "report", "compare", "excite", "simulate", "export", "derive", "ik"),
    *("partitions", "monitor", "payload", "gains", "convert", "cache", "inspect"),
)
TINY = """
import numpy as np, dynident as di
robot = di.Mechanism.from_dh([(0.3, 0, 0, 0), (0.2, 0, 0, 0)], gravity=(0, -9.81, 0)).with_terms(("fv", "fc"))
rng = np.random.default_rng(0)
truth = robot.with_parameters(robot.parameters.replace(rng.uniform(0.5, 2.0, len(robot.parameters))))
motion = di.Motion(np.arange(400.0), *rng.normal(size=(3, 400, 2)))
fit = di.WLS().fit(di.Regression.from_motion(robot, motion, di.inverse_dynamics(truth, motion))).result_
assert np.abs(fit.values - fit.base.values(truth.parameters.values)).max() < 1e-9
print("identified", fit.base.rank, "base parameters with", di.__file__)
"""
HELP = f"""
import contextlib, io
from dynident.cli import command_names, run
names = set(command_names())
assert names == set({CORE!r}), names ^ set({CORE!r})
for name in sorted(names):
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        assert run((name, "--help")) == 0, name
    assert name in shown.getvalue()
print("help of", len(names), "commands")
"""
TEST_TOOLS = ("pytest", "pytest-xdist", "hypothesis")


class Environment:
    """An empty virtual environment in a folder, and the programs that run there."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder / "env", with_pip=True)
        self.folder, self.python = folder, folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
        self.settings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(self, *words: str, folder: Path | None = None) -> str:
        """Run Python with some arguments; return what it printed."""
        print("$ python", *(words if words[0] == "-m" else ("-c", "...")), flush=True)
        done = subprocess.run(
            [str(self.python), *words],
            cwd=folder or self.folder,
            env=self.settings,
            text=True,
            stdout=subprocess.PIPE,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{done.stdout[-5000:]}\npython {' '.join(words)[:500]}: exit code {done.returncode}")
        return done.stdout.strip()

    def install(self, *what: str) -> None:
        """Install wheels or packages, with the pinned versions of the repository."""
        pinned = ("-c", str(ROOT / "constraints.txt"))
        self.run("-m", "pip", "install", "-qq", "--disable-pip-version-check", *pinned, *what)


def quick_start() -> str:
    """Return the program of the README."""
    (code,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.M | re.S)
    return str(code)


def quick_start_page() -> tuple[list[list[str]], str]:
    """Return the commands of the first tutorial, those that write its files first, and its cells as one program."""
    page = (ROOT / "docs/tutorials/arm.md").read_text("utf-8")
    shell = "".join(re.findall(r"^```sh\n(.*?)^```$", page, re.M | re.S))
    commands = [shlex.split(line, comments=True)[1:] for line in shell.splitlines() if line.startswith("dynident ")]
    cells = re.findall(r"^```\{code-cell\} python\n(.*?)^```$", page, re.M | re.S)
    return commands, "\n".join(
        cell for cell in cells if not re.search(r"^:tags:|\.plot\(|to_frame", cell)
    )  # figures and tables are extras


def check_changelog(version: str) -> None:
    """Stop unless the changelog has a section for a version or for what is not released yet."""
    sections = re.findall(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    if version not in sections and "Unreleased" not in sections:
        raise SystemExit(f"CHANGELOG.md has neither [{version}] nor [Unreleased]; its sections are {sections}")


def check_content(wheel: Path, package: str) -> None:
    """Stop if a wheel lacks its type marker, or holds files outside its package."""
    names = zipfile.ZipFile(wheel).namelist()
    strange = [name for name in names if not name.startswith((f"{package}/", f"{package}-"))]
    if strange or f"{package}/py.typed" not in names:
        raise SystemExit(f"{wheel.name} holds {strange[:5]}; it must hold {package}/py.typed and nothing outside {package}/")


def check_documents(core: Environment) -> None:
    """Run the README, the quick start page and the help of every command with the core alone."""
    print(core.run("-c", TINY))
    print(core.run("-c", HELP))
    commands, program = quick_start_page()
    for k, command in enumerate(commands):
        core.run("-m", "dynident", *command)
        if k == 0:  # it wrote the files
            core.run("-c", quick_start())
            core.run("-c", program)


def check_tests(core: Environment) -> None:
    """Run the core tests outside the repository, with the core alone."""
    tree = core.folder / "tree"
    shutil.copytree(ROOT / "packages/dynident/tests", tree / "packages/dynident/tests")
    for folder in ("examples", "benchmarks", "fuzz"):  # robots, logs and texts that tests share with them
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("out", "__pycache__"))
    shutil.copy(ROOT / "conftest.py", tree)
    options = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]
    settings = {**options, "testpaths": ["packages/dynident/tests"], "pythonpath": [".", "packages/dynident/tests"]}
    listed = {name: value if isinstance(value, str) else "\n  ".join(value) for name, value in settings.items()}
    (tree / "pytest.ini").write_text("\n".join(["[pytest]", *(f"{name} = {value}" for name, value in listed.items())]) + "\n")
    core.install(*TEST_TOOLS)
    words = ("-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal", "-r", "fE")
    core.settings |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "DYNIDENT_CORE_ONLY": "1"}
    print(core.run(*words, folder=tree).splitlines()[-1])


def main(folder: Path, tests: bool) -> None:
    """Check the three wheels of a folder."""
    version = str(tomllib.loads((ROOT / "packages/dynident/pyproject.toml").read_text("utf-8"))["project"]["version"])
    check_changelog(version)
    wheels = {}
    for package in PACKAGES:
        (wheels[package],) = folder.resolve().glob(f"{package}-{version}-*.whl")
        check_content(wheels[package], package)
    with tempfile.TemporaryDirectory() as place:
        core = Environment(Path(place))
        core.install(str(wheels["dynident"]))
        said = core.run("-m", "dynident", "--version")
        if said != f"dynident {version}":
            raise SystemExit(f"dynident --version prints {said!r}; expected dynident {version}")
        check_documents(core)
        if tests:
            check_tests(core)
        core.install(*map(str, wheels.values()))
        said = core.run("-m", "dynident", "--version")
        if said.split() != [word for name in PACKAGES for word in (name.replace("_", "-"), version)]:
            raise SystemExit(f"dynident --version prints {said!r}; expected three packages of version {version}")
        core.run("-m", "dynident", "describe", "dualv")
        core.run("-m", "dynident", "bandwidth", "robot.urdf", "--frequencies", "1,2", "--no-alone")
        core.run("-m", "dynident", "reproduce", "--list")
    sizes = ", ".join(f"{wheel.name} ({wheel.stat().st_size // 1000} kB)" for wheel in wheels.values())
    print(f"{sizes} can be released: git tag v{version}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path, help="folder of the three wheels")
    parser.add_argument("--no-tests", action="store_true", help="leave out the core tests")
    given = parser.parse_args()
    sys.exit(main(given.folder, not given.no_tests))
