# ruff: noqa: T201 - this is a command; its output is its result
"""Rehearse a release: `python tests/release.py dist` checks the wheel in a folder as a stranger would use it.

The wheel is installed into an empty environment outside of this repository. There `dynident --version` must say what the source
says, two links must be identified from torques that they really have, and the program of the README and every line of the quick
start, of Python and of the shell, must run as printed. CHANGELOG.md must have a place for the version.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
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


def quick_start() -> str:
    """Return the program of the README, as it runs with what a plain install has."""
    (code,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.M | re.S)
    return str(code)


def quick_start_page() -> tuple[list[list[str]], str]:
    """Return the commands of the quick start, those that write its files first, and its Python blocks as one program."""
    page = (ROOT / "docs/quickstart.md").read_text("utf-8")
    shell = "".join(re.findall(r"^```sh\n(.*?)^```$", page, re.M | re.S))
    commands = [shlex.split(line, comments=True)[1:] for line in shell.splitlines() if line.startswith("dynident ")]
    return commands, "\n".join(re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S))


def source_version() -> str:
    """Return the version that src/dynident/__init__.py says, the only place where it is written."""
    found = re.search(r'^__version__ = "(\d+\.\d+\.\d+\S*)"$', (ROOT / "src/dynident/__init__.py").read_text("utf-8"), re.M)
    if not found:
        raise SystemExit("src/dynident/__init__.py has no version of the form 1.2.3")
    return found[1]


def check_changelog(version: str) -> None:
    """Stop unless the changelog has a section for a version or for what is not released yet."""
    sections = re.findall(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    if version not in sections and "Unreleased" not in sections:
        raise SystemExit(f"CHANGELOG.md has neither [{version}] nor [Unreleased]; its sections are {sections}")


def check_content(wheel: Path) -> None:
    """Stop if the wheel lacks its type marker, or holds what is not the package."""
    names = zipfile.ZipFile(wheel).namelist()
    strange = [name for name in names if not name.startswith(("dynident/", "dynident-"))]
    if strange or "dynident/py.typed" not in names:
        raise SystemExit(
            f"{wheel.name} holds {strange[:5]}; py.typed is {'in' if 'dynident/py.typed' in names else 'not in'} it"
        )


def main(folder: Path) -> None:
    """Check the one wheel of a folder."""
    version = source_version()
    check_changelog(version)
    (wheel,) = folder.glob(f"dynident-{version}-*.whl")
    check_content(wheel)
    with tempfile.TemporaryDirectory() as place:
        venv.create(place, with_pip=True)
        python = Path(place) / ("Scripts" if os.name == "nt" else "bin") / "python"
        settings = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

        def run(*command: str) -> str:
            print("$ python", *(command if command[0] == "-m" else ("-c", "...")), flush=True)
            return subprocess.run(
                [str(python), *command], cwd=place, env=settings, check=True, text=True, stdout=subprocess.PIPE
            ).stdout

        pinned = ("-c", str(ROOT / "constraints.txt"))
        run("-m", "pip", "install", "-qq", "--disable-pip-version-check", *pinned, str(wheel.resolve()))
        said = run("-m", "dynident", "--version").strip()
        if version not in said:
            raise SystemExit(f"dynident --version says {said!r}, the source {version}")
        print(said)
        print(run("-c", TINY).strip())
        commands, program = quick_start_page()
        for k, command in enumerate(commands):
            run("-m", "dynident", *command)
            if k == 0:  # the files are there
                print(run("-c", quick_start()).strip())
                run("-c", program)
    print(f"{wheel.name} ({wheel.stat().st_size // 1000} kB) can be released: git tag v{version}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path, help="where the wheel is")
    sys.exit(main(parser.parse_args().folder))
