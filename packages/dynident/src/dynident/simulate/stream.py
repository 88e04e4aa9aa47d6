"""Runs of any length: pieces that go on from each other, each written to disk before the next begins."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynident.errors import SimulationError
from dynident.files import to_json, write_atomic
from dynident.signals.log import MINIMUM_SAMPLES, Log
from dynident.simulate.run import run_machine
from dynident.simulate.schedule import log_every

if TYPE_CHECKING:
    from dynident.simulate.inputs import Reference
    from dynident.simulate.record import Run, Truth
    from dynident.simulate.robot import VirtualRobot
    from dynident.simulate.schedule import End, Options

Array = NDArray[np.float64]

ROWS = 20_000  # samples of the log per piece
INDEX, FORMAT = "stream.json", "dynident-stream-1"


@dataclass(frozen=True, eq=False, repr=False)
class StreamedRun:
    """A long run on disk: pieces of its log and of its truth, in order.

    Parameters
    ----------
    folder : pathlib.Path
        Where the pieces are; ``stream.json`` there lists them.
    logs, truths : tuple of pathlib.Path
        One npz file per piece; no sample is in two of them.
    duration : float
        How long the run was [s].
    samples : int
        Samples of the log.
    saturation : mapping of str to float
        Share of time that each actuator was at a limit.
    energy : mapping of str to ndarray (k,)
        Energies by kind, as of `Run` [J].
    notes : tuple of str
        What needs attention, one sentence each.
    end : End
        From where to go on.
    """

    folder: Path
    logs: tuple[Path, ...]
    truths: tuple[Path, ...]
    duration: float
    samples: int
    saturation: Mapping[str, float]
    energy: Mapping[str, Array]
    notes: tuple[str, ...]
    end: End

    def __repr__(self) -> str:
        return f"StreamedRun('{self.folder}': {len(self.logs)} pieces, {self.samples} samples, {self.duration:g} s)"

    def log(self, piece: int) -> Log:
        """Return the log of a piece.

        Parameters
        ----------
        piece : int
            Its number, from 0 on.

        Returns
        -------
        Log
            As `Run.log` has it.
        """
        return Log.read(self.logs[piece])

    def truth(self, piece: int) -> dict[str, Array]:
        """Return the true signals of a piece.

        Parameters
        ----------
        piece : int
            Its number, from 0 on.

        Returns
        -------
        dict of str to ndarray
            By the names of `Truth.arrays`.
        """
        with np.load(self.truths[piece], allow_pickle=False) as content:
            return {name: content[name] for name in content.files}


def stream(robot: VirtualRobot, reference: Reference, options: Options, folder: str | os.PathLike[str]) -> StreamedRun:
    """Run a robot piece by piece, at constant memory."""
    path = Path(folder)
    if (path / INDEX).exists():
        raise SimulationError(f"'{path}' holds a run already; give an empty folder")
    path.mkdir(parents=True, exist_ok=True)
    whole = reference.duration if options.duration is None else float(options.duration)
    every = log_every(robot, options)
    rows = int(np.floor(whole / robot.step * (1.0 + 1e-12) + 1e-9)) // every
    count = max(1, min(-(-rows // ROWS), rows // MINIMUM_SAMPLES))
    edges = [rows * i // count for i in range(count + 1)]
    start, saturated, energy, notes = options.start, None, dict[str, Array](), dict[str, None]()
    logs, truths, samples = list[Path](), list[Path](), 0
    progress = options.progress
    for i in range(count):
        before = edges[i] * every * robot.step
        report = None if progress is None else (lambda done, _, b=before: progress(b + done, whole))
        length = (edges[i + 1] - edges[i]) * every * robot.step
        piece = replace(options, start=start, duration=length, progress=report)
        run = run_machine(robot, reference, piece)
        log, truth = _but_the_last(run) if i + 1 < count else (run.log, run.truth)
        logs.append(log.save(path / f"log_{i:05d}.npz"))
        truths.append(truth.save(path / f"truth_{i:05d}.npz"))
        share = np.array(list(run.saturation.values())) * (edges[i + 1] - edges[i]) / rows
        saturated = share if saturated is None else saturated + share
        energy = {kind: values + energy.get(kind, 0.0) for kind, values in run.energy.items()}
        notes |= dict.fromkeys(run.notes)
        samples, start = samples + len(log), run.end
        content = {"format": FORMAT, "logs": [file.name for file in logs], "truths": [file.name for file in truths]}
        content["settings"] = json.loads(to_json(dict(run.settings)))
        write_atomic(path / INDEX, to_json(content).encode())
    names = [drive.actuator for drive in robot.drives]
    saturation = dict(zip(names, np.asarray(saturated).tolist(), strict=True))
    end: Any = start
    return StreamedRun(path, tuple(logs), tuple(truths), whole, samples, saturation, energy, tuple(notes), end)


def _but_the_last(run: Run) -> tuple[Log, Truth]:
    """Return log and truth without their last sample, which is the first of the next piece."""
    keep, t = slice(0, -1), run.truth
    fields: dict[str, Any] = {name: values[keep] for name, values in vars(t).items() if isinstance(values, np.ndarray)}
    for name in ("wrenches", "zones"):
        fields[name] = {label: values[keep] for label, values in getattr(t, name).items()}
    motion = type(t.motion)(t.t[keep], t.motion.q[keep], t.motion.v[keep], t.motion.a[keep])
    return run.log.rows(0, len(run.log) - 1), replace(t, motion=motion, **fields)
