"""Samples as an MCAP file: one JSON message per sample, in the fields of sensor_msgs/JointState."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dynident.link.messages import Samples

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


class McapFile:
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
