"""Commands against those of an earlier commit, alternating in the same run, by processor time on one core."""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import dynident as di
import dynident_papers
from benchmarks.cases import Result
from benchmarks.processes import ROOT, command

COMMIT = "8b5defc7"  # before the split into three packages
DEMO = ROOT / "examples" / "demo"
ROBOT, TRAIN, HELD_OUT = (str(DEMO / name) for name in ("robot.urdf", "train.csv.gz", "validate.csv.gz"))
SEARCH = ["--iterations", "100", "--starts", "2"]
FIT = [ROBOT, TRAIN, "--validate", HELD_OUT]
ROWS = (
    ("dynident --help", ["--help"], 0.5),
    ("describe of the demo arm", ["describe", ROBOT], 0.75),
    ("identify of the demo arm", ["identify", *FIT, "-q", "-o", "fit"], 0.8),
    ("identify --friction auto of the demo arm", ["identify", *FIT, "--friction", "auto", "-q", "-o", "fit"], 0.5),
    ("compare of the demo arm", ["compare", *FIT], 0.5),
    (
        "excite, 6 axes, 2 starts of 100 steps",
        ["excite", ROBOT, "--iterations", "100", "--starts", "2", "-q", "-o", "plan"],
        0.5,
    ),
    ("track dualv", ["track", "dualv", "-q"], 0.5),
)
LOOP = "DualV closed loop, computed torque 1 kHz, RK4 8 kHz, 10 s"


@contextmanager
def earlier_sources() -> Iterator[Path]:
    """Check the commit out temporarily; yields the folder with its package."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", str(tree), COMMIT], check=True, capture_output=True)
        try:
            yield tree / "src"
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True, capture_output=True)


@contextmanager
def one_core() -> Iterator[None]:
    """Pin this process and its children to one core, if the system allows it."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def commands(repeats: int) -> list[Result]:
    """Return the ratio of processor times of commands, with warm caches, to the earlier commit."""
    try:
        with earlier_sources() as before, one_core(), tempfile.TemporaryDirectory() as folder:
            sources = {"then": before, "now": Path(di.__file__).parents[1]}
            for source in sources.values():
                compileall.compile_dir(source / "dynident", quiet=2)  # as an installation does
            rows = [_row(label, words, goal, sources, Path(folder), repeats) for label, words, goal in ROWS]
            return [*rows, _closed_loop(before, repeats)]
    except FileNotFoundError:
        reason = "git is not installed"
    except (subprocess.CalledProcessError, RuntimeError) as error:  # no clone, a shallow clone, or a missing dependency
        reason = f"commit {COMMIT} cannot be run here: {getattr(error, 'stderr', b'').decode() or error}"
    goals = [*((label, goal) for label, _, goal in ROWS), (LOOP, 0.5)]
    return [Result(f"{label}, over commit {COMMIT}", None, "of", goal, reason) for label, goal in goals]


def _row(label: str, words: list[str], goal: float, sources: dict[str, Path], folder: Path, repeats: int) -> Result:
    """Run a command of both versions in turn, once to fill the caches and then to measure."""
    times: dict[str, list[float]] = {which: [] for which in sources}
    for turn in range(1 + max(3, repeats)):
        for which, source in sources.items():
            processor, _ = command(words, str(folder / which), str(folder), source)
            if turn:
                times[which].append(processor)
    then, now = (median(times[which]) for which in ("then", "now"))
    detail = f"processor time on one core {now:.3f} s, {then:.3f} s then; caches warm"
    return Result(f"{label}, over commit {COMMIT}", now / then, "of", goal, detail)


def _closed_loop(before: Path, repeats: int) -> Result:
    """Simulate with both versions in turn, in processes of their own."""
    packages = [str(Path(str(package.__file__)).parents[1]) for package in (di, dynident_papers)]
    versions = {"then": (str(before), "dynident"), "now": (os.pathsep.join(packages), "dynident_papers")}
    times: dict[str, list[float]] = {which: [] for which in versions}
    for _ in range(max(3, repeats)):
        for which, (path, package) in versions.items():
            line = [sys.executable, str(Path(__file__).with_name("closed_loop.py")), package, "5"]
            done = subprocess.run(line, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=True)
            times[which].append(float(done.stdout))
    then, now = (min(times[which]) for which in ("then", "now"))
    detail = f"processor time {1e3 * now:.1f} ms, {1e3 * then:.1f} ms then"
    return Result(f"{LOOP}, over commit {COMMIT}", now / then, "of", 0.5, detail)


def main() -> None:
    """Print the rows alone: ``python -m benchmarks.baseline``."""
    for row in commands(9):
        print(row.what, "-" if row.value is None else f"{row.value:.2f}", f"(goal {row.target})", row.detail)


if __name__ == "__main__":
    sys.exit(main())
