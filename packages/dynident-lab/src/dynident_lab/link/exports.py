"""Logs as tables of text, for programs that read nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from dynident.files import write_atomic
from dynident.signals import Log

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
