"""The last release as a peer: its sources from git, installed into a separate environment, the same tasks run by both.

Both programs stay open and alternate, task by task, so a busy machine affects both equally; medians of processor time are
compared, because both use the same threads.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from statistics import median

from benchmarks.cases import Result
from benchmarks.processes import variables

RELEASE = "9d8ce82"  # the tree of release 0.1.0
HERE = Path(__file__).parent
TARGETS = {"DualV: closure, regression data and WLS": 6.0, "DualV: computed torque, 10 s": 3.0}


def environment() -> Path:
    """Return the Python of the last release, installed on first use."""
    home = HERE / "out" / f"release-{RELEASE}"
    python = home / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    if (home / "complete").exists():
        return python
    sources = home / "sources"
    sources.mkdir(parents=True, exist_ok=True)
    packed = subprocess.run(["git", "archive", RELEASE], cwd=HERE.parent, check=True, capture_output=True).stdout
    subprocess.run(["tar", "x", "-C", str(sources)], input=packed, check=True)
    venv.create(home / "env", with_pip=True)
    install = [str(python), "-m", "pip", "install", "-qq", "-c", str(sources / "constraints.txt"), str(sources)]
    subprocess.run(install, check=True)
    (home / "complete").touch()
    return python


class Program:
    """One version of dynident that runs tasks on request."""

    def __init__(self, python: str | Path, samples: int, own: bool) -> None:
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = [str(python), str(HERE / "release_tasks.py"), str(samples)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, env=variables() if own else clean, cwd=HERE, stdin=pipe, stdout=pipe, text=True
        )
        self.tasks: list[str] = self._answer()

    def _answer(self) -> list[str]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise OSError("the program ended; see its messages above")
        found: list[str] = json.loads(line)
        return found

    def run(self, task: str) -> tuple[float, float]:
        """Return processor and clock time [s] of one run of a task."""
        assert self._process.stdin is not None
        self._process.stdin.write(task + "\n")
        self._process.stdin.flush()
        processor, clock = (float(x) for x in self._answer())
        return processor, clock

    def close(self) -> None:
        """End the program."""
        self._process.communicate()


def release(samples: int, repeats: int) -> list[Result]:
    """Return the speed of this tree relative to the last release."""
    try:
        old = Program(environment(), samples, own=False)
    except (subprocess.CalledProcessError, OSError) as error:
        return [Result("last release", None, "x", None, f"could not be installed or run: {error}")]
    new = Program(sys.executable, samples, own=True)
    results = []
    for task in new.tasks:
        for program in (old, new):
            program.run(task)  # compiles
        turns = [(old.run(task), new.run(task)) for _ in range(repeats)]
        before, now = ((median(x) for x in zip(*times, strict=True)) for times in zip(*turns, strict=True))
        (work, clock), (less, shorter) = before, now
        detail = (
            f"processor time {1e3 * work:.0f} ms, now {1e3 * less:.0f} ms; by the clock {1e3 * clock:.0f} and "
            f"{1e3 * shorter:.0f} ms, {clock / shorter:.1f} x"
        )
        results.append(Result(f"{task}, against the last release", work / less, "x", TARGETS.get(task), detail))
    for program in (old, new):
        program.close()
    return results
