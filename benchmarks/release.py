"""The last release as a peer: its sources from git, installed into an environment of their own, the same tasks run by both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.cases import Result

RELEASE = "9d8ce82"  # the tree that was released as 0.1.0
HERE = Path(__file__).parent
TARGETS = {"DualV: closure, evidence and WLS": 6.0, "DualV: computed torque, 10 s": 3.0}


def environment() -> Path:
    """Return the Python of the last release, installed when it is not there yet."""
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


def run(python: str | Path, samples: int, repeats: int) -> dict[str, float]:
    """Return the times of all tasks with one interpreter."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(python), str(HERE / "release_tasks.py"), str(samples), str(repeats)]
    done = subprocess.run(command, env=clean, cwd=HERE, check=True, capture_output=True, text=True)
    times: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return times


def release(samples: int, repeats: int) -> list[Result]:
    """Return how many times faster this tree is than the last release."""
    try:
        old = run(environment(), samples, repeats)
    except (subprocess.CalledProcessError, OSError) as error:
        return [Result("last release", None, "x", None, f"could not be installed or run: {error}")]
    new = run(sys.executable, samples, repeats)
    return [
        Result(
            f"{task}, against the last release",
            old[task] / new[task],
            "x",
            TARGETS.get(task),
            f"{1e3 * old[task]:.0f} ms, now {1e3 * new[task]:.0f} ms; {samples} samples",
        )
        for task in new
    ]
