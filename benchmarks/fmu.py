"""Differences between the FMUs of machines of the literature and their simulations: `python -m benchmarks.fmu [machine ...]`.

Encoders are ideal if the resolution makes the loop chaotic: DualV diverges after a start error of 1e-14 m.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

import dynident as di
from dynident.graph.printing import identifiers
from dynident.simulate import VirtualRobot
from dynident.simulate.run import loop_cycles
from dynident_lab.fmu import write_fmu
from dynident_papers.robots import ready_machine

Array = NDArray[np.float64]

# Size of the motion [rad, m] and its duration [s].
CASES = {
    "rrr": (0.3, 2.0),
    "er3a_c60": (0.4, 5.0),
    "dualv": (0.02, 2.0),
    "five_bar": (0.05, 2.0),
    "prr2": (0.02, 1.0),
    "mast": (0.01, 1.0),
    "cft": (0.02, 1.0),
    "replalink": (0.05, 1.0),
    "prs3": (0.01, 1.0),
}
CHAOTIC = ("dualv",)


def wave(q: Array, size: float, seconds: float) -> di.Motion:
    """Return sines of different frequencies that start at rest at q."""
    t = 0.005 * np.arange(round(seconds / 0.005) + 1)[:, None]
    w = 2.5 * (1.0 + 0.3 * np.arange(q.size))
    return di.Motion(t[:, 0], q + size * (1.0 - np.cos(w * t)), size * w * np.sin(w * t), size * w**2 * np.cos(w * t))


def played(machine: VirtualRobot, file: Path, wanted: di.Motion, every: int, cycle: float) -> Array:
    """Return q and v of an FMU in FMPy after every `every` cycles."""
    from fmpy import extract, read_model_description
    from fmpy.fmi3 import FMU3Slave

    folder = extract(str(file))
    text = read_model_description(folder)
    identifier = text.coSimulation.modelIdentifier
    fmu = FMU3Slave(guid=text.guid, unzipDirectory=folder, modelIdentifier=identifier, instanceName="machine")
    fmu.instantiate()
    fmu.enterInitializationMode()
    fmu.exitInitializationMode()
    at = {v.name: v.valueReference for v in text.modelVariables}
    inputs = [v.valueReference for v in text.modelVariables if v.causality == "input"]
    asked = [at[f"{symbol}_{name}"] for symbol in "qv" for name in identifiers(machine.mechanism.coordinate_names)]
    found = []
    for i, row in enumerate(np.hstack([wanted.q, wanted.v, wanted.a])):
        fmu.setFloat64(inputs, row.tolist())
        if i % every == 0:
            found.append(fmu.getFloat64(asked))
        fmu.doStep(i * cycle, cycle)
    return np.array(found)


def difference(name: str, folder: Path) -> str:
    """Return one row of the table."""
    from fmpy.validation import validate_fmu

    size, seconds = CASES[name]
    machine = ready_machine(name)
    sharp = {"resolution": 0.0} if name in CHAOTIC else {}
    quiet = [replace(drive, encoder=replace(drive.encoder, noise=0.0, **sharp)) for drive in machine.drives]
    machine = replace(machine, drives=quiet)
    closure = machine.mechanism.closure if machine.mechanism.loops else None
    home = np.zeros(machine.mechanism.dof) if closure is None else np.array(closure.home[closure.independent])
    motion = wave(home, size, seconds)
    truth = machine.simulate(motion).truth
    begun = perf_counter()
    file = write_fmu(machine, folder / f"{name}.fmu", q=home)
    made = perf_counter() - begun
    cycle = min(loop_cycles(machine.controller).values())
    every = round(float(truth.t[1] - truth.t[0]) / cycle)
    wanted = machine.reference(motion).sample(cycle * np.arange((truth.t.size - 1) * every + 1))
    found, n = played(machine, file, wanted, every, cycle), home.size
    gaps = np.abs(found[:, :n] - truth.motion.q).max(), np.abs(found[:, n:] - truth.motion.v).max()
    valid = "valid" if validate_fmu(str(file)) == [] else "refused"
    return f"{name:<10} {seconds:4.1f} s   q {gaps[0]:.1e}   v {gaps[1]:.1e}   {valid}, made in {made:.1f} s"


def main() -> None:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or CASES:
            print(difference(name, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
