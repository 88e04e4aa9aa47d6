"""A whole campaign by commands alone, against the truth: ``python -m benchmarks.campaign [FOLDER] [--cycles 24]``.

excite -> simulate (healthy, and with a fault) -> friction -> identify per cycle -> maintenance. Every command is a
separate process, to measure its memory and time. Existing simulations are not repeated.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import dynident as di
from dynident_lab.campaigns import read_cycles
from dynident_papers.robots import er3a_c60

FAULT, ONSET = "joint_1", 3600.0  # joint and time of the friction increase by 32 %, [Pagani2022, section 5.2] [s]
SLOW, FAST, POINTS, MEMORY = 0.07, 0.15, 0.03, 1000.0  # allowed errors of time constants and of cold / hot; memory [MB]


def run(folder: Path, *words: str) -> tuple[float, float]:
    """Run a command; return its processor time [s] and its peak memory [MB]."""
    begin = time.perf_counter()
    with (folder / "commands.log").open("a", encoding="utf-8") as log:
        log.write(f"$ dynident {' '.join(words)}\n")
        log.flush()
        child = subprocess.Popen([sys.executable, "-m", "dynident", *words], cwd=folder, stdout=log, stderr=log)
        _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"dynident {' '.join(words)} failed; see {folder / 'commands.log'}")
    seconds, memory = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024.0
    wall = time.perf_counter() - begin
    print(f"{seconds:8.1f} s processor {wall:8.1f} s wall {memory:7.0f} MB   dynident {' '.join(words)}", flush=True)
    return seconds, memory


def truth(campaign: Path, study: Any) -> dict[str, tuple[float, float, float]]:
    """Return true time constants at the mean power, and true cold / hot - 1 at the times of the last sweeps."""
    hot: dict[str, list[float]] = {joint: [] for joint in er3a_c60.JOINTS}
    for cycle in read_cycles(campaign):
        assert cycle.temperature is not None
        for j, joint in enumerate(er3a_c60.JOINTS):
            inside = study.of(joint).t[(study.of(joint).t >= cycle.t[0]) & (study.of(joint).t <= cycle.t[-1])]
            if inside.size:
                hot[joint].append(float(np.interp(inside[0], cycle.t, cycle.temperature[:, j])))
    found = {}
    for joint, model in zip(er3a_c60.JOINTS, er3a_c60.thermal_models(), strict=True):
        slow, fast = model.time_constants(study.of(joint).mean_power)
        last = hot[joint][-max(1, len(hot[joint]) // 10) :]
        found[joint] = float(slow), float(fast), float(model.beta / np.mean(model.ratio(last)) - 1.0)
    return found


def main() -> None:
    """Run the campaign and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="Where; a temporary folder when absent.")
    parser.add_argument("--cycles", type=int, default=24)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    n, memory = str(given.cycles), []
    if not (folder / "plan/plan.json").exists():
        search = ("--criterion", "cond", "--iterations", "30", "--starts", "2")
        memory.append(run(folder, "excite", "er3a_c60", *search, "--complete", "-o", "plan")[1])
    memory.append(run(folder, "simulate-campaign", "plan", "--cycles", n, "--seed", "1", "-o", "healthy")[1])
    fault = ("--fault", f"{FAULT}={er3a_c60.FAULT}@{ONSET:g}s")
    memory.append(run(folder, "simulate-campaign", "plan", "--cycles", n, "--seed", "2", *fault, "-o", "faulty")[1])
    memory.append(run(folder, "friction", "er3a_c60", "healthy", "-o", "study")[1])
    memory.append(run(folder, "cycles", "er3a_c60", "healthy", "-o", "fits")[1])
    words = ("maintenance", "er3a_c60", "faulty", "--baseline", "study/friction.json", "-o", "check")
    memory.append(run(folder, *words)[1])

    study, check = di.load(folder / "study/friction.json"), di.load(folder / "check/maintenance.json")
    fits = di.load(folder / "fits/cycles.json")
    ok = max(memory) < MEMORY
    print(f"\n{'joint':<10}{'slow [min]':>22}{'fast [min]':>22}{'cold over hot [%]':>24}")
    for joint, (slow, fast, ratio) in truth(folder / "healthy", study).items():
        entry = study.of(joint)
        (a, _), (b, _) = entry.best.constants.values()
        own = entry.cold_over_hot
        ok &= abs(a / slow - 1.0) < SLOW and abs(b / fast - 1.0) < FAST and abs(own - ratio) < POINTS
        cells = (f"{a / 60:.2f} ({slow / 60:.2f})", f"{b / 60:.3f} ({fast / 60:.3f})", f"{100 * own:.1f} ({100 * ratio:.1f})")
        print(f"{joint:<10}{cells[0]:>22}{cells[1]:>22}{cells[2]:>24}")
    print(f"in brackets: the truth; held out per cycle: {100 * fits.held_out.min():.2f} to {100 * fits.held_out.max():.2f} %")
    print(check.summary())
    if given.cycles * 300.0 > ONSET:
        found = next(entry for entry in check.joints if entry.history.joint == FAULT)
        ok &= check.alarms == (FAULT,) and abs(found.onset - ONSET) < 300.0 and abs(found.size + 1.0 - er3a_c60.FAULT) < POINTS
    print(f"largest memory {max(memory):.0f} MB; goals {'reached' if ok else 'MISSED'}")


if __name__ == "__main__":
    main()
