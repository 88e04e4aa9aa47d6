"""The whole study through a controller: ``python -m benchmarks.link_study [FOLDER] [--cycles 24] [--speed 20]``.

excite -> controller -> record -> friction, and in parallel `simulate-campaign` of the same plan: both logs must agree to the
resolution of the sensors. Existing files in the folder are kept; a stopped campaign continues.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.campaign import run
from dynident.excitation import Plan
from dynident_lab.campaigns import read_cycles
from dynident_papers.robots import er3a_c60

PERIOD = 0.004
COUNT = er3a_c60.ASSUMPTIONS["encoder"].value / np.array([drive.transmission.ratio for drive in er3a_c60.machine().drives])
NOISE = np.array(er3a_c60.ASSUMPTIONS["noise"].value)


def record(folder: Path, cycles: int, speed: float) -> float:
    """Serve the virtual robot, record the plan on it, and return the duration [s]."""
    ports = ("--motion-port", "0", "--state-port", "0")
    words = ("controller", "er3a_c60", *ports, "--speed", f"{speed:g}", "--seed", "1", "--buffer", "500", "--json", "--quiet")
    with subprocess.Popen([sys.executable, "-m", "dynident", *words], stdout=subprocess.PIPE, text=True) as server:
        text = ""
        for line in server.stdout or ():
            text += line
            if line.startswith("}"):
                break
        address = json.loads(text)["address"]
        begin = time.monotonic()
        try:
            if (folder / "recorded/campaign.json").exists():
                run(folder, "record", "--resume", "recorded", "--controller", address)
            else:
                run(folder, "record", "plan", "--controller", address, "--cycles", str(cycles), "-o", "recorded")
        finally:
            server.send_signal(signal.SIGTERM)
        return time.monotonic() - begin


def compare(recorded: Path, simulated: Path) -> dict[str, Any]:
    """Compare two campaigns sample by sample; positions in counts of the encoders, efforts in deviations of their noise."""
    counts, efforts, warmth, missing, cycles, samples = [], [], [], 0, 0, 0
    for ours, truth in zip(read_cycles(recorded), read_cycles(simulated), strict=True):
        when, known = (np.concatenate([part.motion for part in log.recordings]) for log in (ours, truth))
        rows = np.flatnonzero(np.isfinite(when))
        at = np.round(when[rows] / PERIOD).astype(int)
        missing += known.size - np.unique(at).size
        counts.append(np.abs(ours.position[rows] - truth.position[at]) / COUNT)
        efforts.append(np.abs(ours.effort[rows] - truth.effort[at]) / NOISE)
        assert ours.temperature is not None
        assert truth.temperature is not None
        warmth.append(np.abs(ours.temperature[rows] - truth.temperature[at]).max())
        cycles, samples = cycles + 1, samples + rows.size
    shares = (50, 99, 99.9, 100)
    return {
        "cycles": cycles,
        "samples": samples,
        "missing": missing,
        "position_counts": {f"{q} %": float(np.percentile(np.concatenate(counts), q)) for q in shares},
        "effort_deviations": {f"{q} %": float(np.percentile(np.concatenate(efforts), q)) for q in shares},
        "temperature_K": float(np.max(warmth)),
        "by_cycle_counts": [float(part.max()) for part in counts],
    }


def main() -> None:
    """Run the study and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="Where; a temporary folder when absent.")
    parser.add_argument("--cycles", type=int, default=24)
    parser.add_argument("--speed", type=float, default=20.0)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "plan/plan.json").exists():
        search = ("--criterion", "cond", "--iterations", "30", "--starts", "2")
        run(folder, "excite", "er3a_c60", *search, "--complete", "-o", "plan")
    took = record(folder, given.cycles, given.speed)
    run(folder, "simulate-campaign", "plan", "--cycles", str(given.cycles), "--seed", "1", "-o", "simulated")
    run(folder, "friction", "er3a_c60", "recorded", "-o", "study")
    found = compare(folder / "recorded", folder / "simulated")
    plan = Plan.load(folder / "plan/plan.json")
    lived = found["cycles"] * max(plan.period, plan.curve.duration)
    print(json.dumps({**found, "record_s": took, "times_real_time": lived / took}, indent=1))


if __name__ == "__main__":
    main()
