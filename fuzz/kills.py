"""Kills: a command is ended with SIGKILL at a random moment; its results are all old or all new, and the next run cleans up."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from fuzz.samples import good_files
from fuzz.watch import Tally

VERBS: dict[str, tuple[str, ...]] = {
    "identify": ("identify", "robot.urdf", "run.csv", "--effort", "joint_torque", "--recovery", "prior", "-o", "out"),
    "simulate": ("simulate", "motion.csv", "--robot", "robot.urdf", "-o", "out/sim.csv", "--truth", "out/truth.npz"),
    "excite": ("excite", "robot.urdf", "--limits", "limits.toml", "--iterations", "2", "--starts", "2", "-o", "out"),
}
OLD = "old\n"


def _command(args: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-m", "dynident", *args]


def _state(folder: Path, names: set[str]) -> str:
    """Say whether a result folder holds the old set, a new one, or a mixture."""
    found = {path.name: path.read_bytes() for path in folder.iterdir()} if folder.is_dir() else {}
    if set(found) == names and all(data == OLD.encode() for data in found.values()):
        return "old"
    whole = set(found) == names and all(data and data != OLD.encode() for data in found.values())
    return "new" if whole else f"mixed: {', '.join(sorted(found))}"


def fuzz_kills(count: int, seed: int = 0, worker: int = 0, workers: int = 1) -> list[Tally]:
    """Kill `count` runs, in turn of every verb, every `workers`-th of them here."""
    rng, tallies = np.random.default_rng([seed, worker]), {verb: Tally(f"kill {verb}") for verb in VERBS}
    with tempfile.TemporaryDirectory(prefix="dynident-fuzz-") as name:
        bench = Path(name)
        good_files(bench, every=False)
        lengths, sets = {}, {}
        for k in range(worker, count, workers):
            verb = tuple(VERBS)[k % len(VERBS)]
            if verb not in sets:
                shutil.rmtree(bench / "out", ignore_errors=True)
                started = os.times().elapsed
                subprocess.run(_command(VERBS[verb]), cwd=bench, check=True, capture_output=True, timeout=300)
                lengths[verb] = os.times().elapsed - started
                sets[verb] = {path.name for path in (bench / "out").iterdir()}
            outcome = _kill_once(bench, verb, sets[verb], lengths[verb] * float(rng.uniform(0.3, 1.1)))
            tallies[verb].add("mixed" if outcome.startswith("mixed") else "success", outcome, f"kill {k} of seed {seed}")
        for verb in sets:
            subprocess.run(_command(VERBS[verb]), cwd=bench, check=True, capture_output=True, timeout=300)
        left = [path.name for path in bench.iterdir() if path.name.startswith(".")]
        tallies["identify"].add("mixed" if left else "success", f"left behind: {left}", "after all kills and one more run")
    return list(tallies.values())


def _kill_once(bench: Path, verb: str, names: set[str], delay: float) -> str:
    """Run a verb over old results, kill it after `delay` seconds, and return what its folder holds."""
    out = bench / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    for name in names:
        (out / name).write_text(OLD, encoding="utf-8")
    process = subprocess.Popen(_command(VERBS[verb]), cwd=bench, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(delay)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
    return _state(out, names)
