"""Samples for other tools: a table of text, and MCAP files that are written while a campaign runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynident.errors import LinkError, MissingExtraError
from dynident.files import check_replaceable, write_atomic
from dynident.signals import Log
from dynident.signals.writers import McapWriter
from dynident_lab.link.controller import Samples

UNITS = {"joint_torque": "Nm or N", "joint_force": "N", "motor_torque": "Nm", "motor_current": "A", "voltage": "V"}


def export_text(log: Log, path: str | os.PathLike[str]) -> Path:
    """Write time, positions, velocities and efforts of a log as text."""
    label = {"motor_current": "current", "voltage": "voltage"}.get(log.effort_kind, "torque")
    blocks = [
        ("position", log.position, "rad or m"),
        ("velocity", log.velocity, "rad/s or m/s"),
        (label, log.effort, UNITS[log.effort_kind]),
    ]
    given = [(name, values, unit) for name, values, unit in blocks if values is not None]
    header = ["t [s]", *(f"{name} {joint} [{unit}]" for name, _, unit in given for joint in log.joints)]
    table = np.column_stack([log.t, *(values for _, values, _ in given)])
    lines = ["\t".join(header), *("\t".join(f"{x:.9g}" for x in row) for row in table.tolist())]
    return write_atomic(path, "\n".join(lines) + "\n")


def mcap_writer(path: str | os.PathLike[str], channels: Sequence[str], facts: Mapping[str, str] | None = None) -> Any:
    """Return a listener that writes samples as MCAP: JointState on ``/joint_states``, temperatures as DynamicJointState.

    Stamps are the controller's clock, which continues when a controller is restarted; the times of the
    file are the host's. It has `feed`, as a `Campaign` wants it, and `close`, which completes the file.
    """
    if not str(path).endswith(".mcap"):
        raise LinkError(f"cannot write '{path}' as MCAP; the name must end in .mcap")
    return _McapFile(Path(path), tuple(channels), dict(facts or {}))


class _McapFile:
    """A listener that writes MCAP."""

    def __init__(self, path: Path, channels: tuple[str, ...], facts: dict[str, str]) -> None:
        check_replaceable(path)  # a pipe would wait for its reader
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("wb")
        try:
            self._writer = McapWriter(self._file, channels, {"dynident": facts} if facts else {})
        except MissingExtraError:
            self._file.close()
            path.unlink()
            raise
        self._last = self._shift = 0

    def feed(self, host: float, samples: Samples) -> None:
        """Write samples."""
        arrived = round(host * 1e9)
        for i, clock in enumerate(samples.clock.tolist()):
            stamp = self._shift + round(clock * 1e9)
            if stamp <= self._last:  # another clock: go on a millisecond later
                self._shift += self._last + 10**6 - stamp
                stamp = self._last + 10**6
            self._last = stamp
            state = [block[i].tolist() for block in (samples.position, samples.velocity, samples.effort)]
            heat = samples.temperature[i]
            self._writer.add(stamp, state, {"temperature": heat.tolist()} if np.isfinite(heat).any() else {}, arrived)

    def close(self) -> None:
        """Complete the file."""
        self._writer.finish()
        self._file.close()
