"""Samples for other tools: a table of text, and MCAP files that are written while a campaign runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynident.errors import LinkError, missing_extra
from dynident.files import write_atomic
from dynident.link.controller import Samples
from dynident.signals import Log

UNITS = {"joint_torque": "Nm or N", "joint_force": "N", "motor_torque": "Nm", "motor_current": "A", "voltage": "V"}
NUMBERS = {"type": "array", "items": {"type": ["number", "null"]}}
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "array", "items": {"type": "string"}},
        "clock": {"type": "number"},
        "motion": {"type": ["number", "null"]},
        **dict.fromkeys(("position", "velocity", "effort", "temperature"), NUMBERS),
    },
}


def export_text(log: Log, path: str | os.PathLike[str]) -> Path:
    """Write time, positions, velocities and efforts of a log as text.

    Parameters
    ----------
    log : Log
        What was measured.
    path : path-like
        File to write.

    Returns
    -------
    pathlib.Path
        The file.
    """
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
    """Return a listener that writes samples as MCAP, JSON messages on the topic ``/joint_states``.

    Parameters
    ----------
    path : path-like
        File to write, ending in .mcap.
    channels : sequence of str
        Names of the channels.
    facts : mapping of str to str, optional
        Metadata of the file.

    Returns
    -------
    object
        With `feed`, as a `Campaign` wants it, and `close`, which completes the file.
    """
    try:
        from mcap.writer import Writer  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise missing_extra("mcap", "ros", "writing MCAP files") from error
    if not str(path).endswith(".mcap"):
        raise LinkError(f"cannot write '{path}' as MCAP; the name must end in .mcap")
    return _McapFile(Writer, Path(path), tuple(channels), dict(facts or {}))


class _McapFile:
    """A listener that writes MCAP; times are those of the host."""

    def __init__(self, writer: Callable[[Any], Any], path: Path, channels: tuple[str, ...], facts: dict[str, str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("wb")
        self._writer, self._names = writer(self._file), channels
        self._writer.start(profile="", library="dynident")
        schema = self._writer.register_schema("dynident/JointSample", "jsonschema", json.dumps(SCHEMA).encode())
        self._channel = self._writer.register_channel("/joint_states", "json", schema)
        if facts:
            self._writer.add_metadata("dynident", facts)

    def feed(self, host: float, samples: Samples) -> None:
        """Write samples."""
        last = float(samples.clock[-1]) if len(samples) else 0.0
        for i in range(len(samples)):
            content = {
                "name": self._names,
                "clock": float(samples.clock[i]),
                "motion": _number(samples.motion[i]),
                **{
                    key: [_number(x) for x in getattr(samples, key)[i]]
                    for key in ("position", "velocity", "effort", "temperature")
                },
            }
            stamp = round((host - (last - float(samples.clock[i]))) * 1e9)
            self._writer.add_message(
                self._channel,
                log_time=stamp,
                publish_time=stamp,
                sequence=int(samples.index[i]) % (1 << 32),
                data=json.dumps(content).encode(),
            )

    def close(self) -> None:
        """Complete the file."""
        self._writer.finish()
        self._file.close()


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
