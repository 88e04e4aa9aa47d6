"""Fresh processes: import, first use of every command with empty caches and again, a humanoid, memory.

Ratios use processor time, which a busy machine does not stretch.
"""

from __future__ import annotations

import compileall
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

import dynident as di
from benchmarks.arms import URDF, arm, record
from benchmarks.cases import Result
from benchmarks.simulate import START, sine

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path(di.__file__).resolve().parent.parent


def variables(source: Path = SOURCE, **more: str) -> dict[str, str]:
    """Return the environment in which a new process finds this package, with bytecode as compiled by pip."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": os.pathsep.join([str(ROOT), str(source)]), **more}


def worker(*arguments: str, **more: str) -> dict[str, float]:
    """Run benchmarks.worker in a fresh process and return its measurement."""
    command = [sys.executable, "-m", "benchmarks.worker", *arguments]
    done = subprocess.run(command, env=variables(**more), cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[2:])} failed:\n{done.stderr}")
    return dict(json.loads(done.stdout))


def command(arguments: list[str], cache: str, folder: str, source: Path = SOURCE) -> tuple[float, float]:
    """Return the processor and the clock time [s] of one command in a fresh process, of the package in `source`."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    line = [sys.executable, "-m", "dynident", *arguments]
    found = variables(source, DYNIDENT_CACHE=cache)
    done = subprocess.run(line, env=found, cwd=folder, capture_output=True, text=True, check=False)
    after, clock = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"dynident {' '.join(arguments)} failed:\n{done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, clock


def table(path: Path, columns: Mapping[str, np.ndarray], names: tuple[str, ...]) -> str:
    """Write a CSV of the columns t and x_joint, and return its path."""
    head = ["t", *(f"{symbol}_{name}" for symbol in columns if symbol != "t" for name in names)]
    np.savetxt(path, np.column_stack(list(columns.values())), delimiter=",", header=",".join(head), comments="")
    return str(path)


def first_use(quick: bool, repeats: int) -> list[Result]:
    """Every command with an empty cache against a warm cache, alternating."""
    robot, results = arm(), []
    compileall.compile_dir(Path(di.__file__).parent, quiet=2)  # as an installation does
    with tempfile.TemporaryDirectory() as folder:
        place, names = Path(folder), robot.coordinate_names
        identify = []
        for samples in (1000, 20_000):
            data = record(robot, samples)
            log = table(place / f"{samples}.csv", {"t": data.motion.t, "q": data.motion.q, "tau": data.effort}, names)
            identify.append(["identify", str(URDF), log, "--effort", "joint_torque", "-q", "-o", "fit"])
        motion = sine(START, 10.0, 0.3)
        plan = table(place / "motion.csv", {"t": motion.t, "q": motion.q, "v": motion.v, "a": motion.a}, names)
        run = ["--robot", str(URDF), "--controller", "computed_torque", "-q", "-o", "run.csv"]
        excite = ["excite", str(URDF), "--iterations", "20", "--starts", "4"]
        rows = [
            ("describe, 6 axes", ["describe", str(URDF)], 3.0),
            ("identify, 6 axes, 1000 samples", identify[0], 3.0),
            ("identify, 6 axes, 20 000 samples", identify[1], 3.0),
            ("excite, 6 axes, 4 starts of 20 steps", [*excite, "-q", "-o", "plan"], None),
            ("simulate, 6 axes, 10 s", ["simulate", plan, *run], None),
            ("track dualv", ["track", "dualv", "-q"], None),
        ]
        for label, arguments, limit in rows[:2] if quick else rows:
            cold, warm = [], []
            for turn in range(1 if quick else max(2, repeats // 2)):
                cache = str(place / f"cache {label} {turn}")
                cold.append(command(arguments, cache, folder))
                warm.append(command(arguments, cache, folder))
            (first, clock), (again, later) = ((median(x) for x in zip(*times, strict=True)) for times in (cold, warm))
            detail = (
                f"processor time {first:.2f} s with an empty cache, {again:.2f} s warm; clock {clock:.2f} and {later:.2f} s"
            )
            results.append(Result(f"first use: {label}, over the same warm", first / again, "of", 1.3, detail))
            if limit is not None:
                results.append(Result(f"first use: {label}, in all", first, "s", limit, "processor time, empty cache"))
    return results


def startup(repeats: int) -> list[Result]:
    """Import, each time in a fresh process."""
    imports = [worker("import") for _ in range(repeats)]
    return [
        Result("import dynident", min(r["package"] for r in imports), "s", 1.0, "names load on first use"),
        Result("import of every public name", min(r["names"] for r in imports), "s", None, "without scipy"),
    ]


def memory(sizes: tuple[int, ...]) -> list[Result]:
    """Peak memory of the identification beyond its input, each in a fresh process with compiled functions."""
    results = []
    for samples in sizes:
        extra = worker("memory", "ours", str(samples)).get("extra")
        results.append(Result(f"memory of the identification, {samples} samples", extra, "MB", 20.0, "peak beyond the input"))
    extra = worker("memory", "peer", str(sizes[0])).get("extra")
    results.append(Result(f"memory of the usual way, {sizes[0]} samples", extra, "MB", None, "Pinocchio loop + QR + lstsq"))
    return results


def humanoid(samples: int) -> list[Result]:
    """A humanoid of 32 axes with an empty cache: its description, base parameters and regression data."""
    what = f"talos_reduced, 32 axes, description to regression data of {samples} samples, empty cache"
    with tempfile.TemporaryDirectory() as cache:
        found = worker("humanoid", str(samples), DYNIDENT_CACHE=cache)
    if not found:
        return [Result(what, None, "s", 15.0, "example-robot-data is not installed")]
    detail = (
        f"processor time; {found['axes']:.0f} axes, {found['rank']:.0f} base parameters; {found['clock']:.1f} s by the clock"
    )
    return [Result(what, found["processor"], "s", 15.0, detail)]
