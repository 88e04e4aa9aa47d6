"""Parts of a log, and its figure: some channels, channels under a robot's names, a stretch of samples or of time.

These functions are the methods of `Log` of the same names; a log itself never changes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.errors import LogError
from dynident.figures import BLUE, GREEN, INK, MUTED, ORANGE, WIDTH, extremes, label, new_figure, plain_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dynident.signals.log import Log

#: Fields with one value per sample and channel, and the prefix of their columns in our own files.
FIELDS = {
    "position": "q",
    "velocity": "dq",
    "acceleration": "ddq",
    "effort": "effort",
    "temperature": "temperature",
    "reference": "q_ref",
}
MINIMUM_SAMPLES = 4


def origin(log: Log) -> dict[str, object]:
    """Return the provenance for a part of a log: with a hash, so that training data are known again."""
    return {"sha256": log.checksum(), **log.provenance}


def select(self: Log, joints: Sequence[str]) -> Log:
    """Return the log of some channels."""
    names = [joints] if isinstance(joints, str) else list(joints)
    unknown = [j for j in names if j not in self.joints]
    if unknown:
        raise LogError(f"log '{self.name}' has no channel {unknown}; it has {list(self.joints)}")
    index = [self.joints.index(j) for j in names]
    parts: dict[str, Any] = {key: None if (values := getattr(self, key)) is None else values[:, index] for key in FIELDS}
    gain = None if self.gain is None else self.gain[index]
    return replace(self, joints=tuple(names), gain=gain, provenance=origin(self), **parts)


def named_like(self: Log, *names: Sequence[str]) -> Log:
    """Return the log with its channels named as a robot names its joints or motors.

    Spelling is forgiven where it leaves no doubt (joint_1, Joint1 and joint1 are one name). Channels that are only
    numbered (joint_1, joint_2, ..., A1, A2, ..., or from 0) are taken in the order of the robot when there are as many.
    """
    if any(set(self.joints) <= set(known) for known in names):
        return self
    plain = [re.sub(r"[^a-z0-9]", "", joint.lower()) for joint in self.joints]
    for known in names:
        spelt: dict[str, list[str]] = {}
        for name in known:
            spelt.setdefault(re.sub(r"[^a-z0-9]", "", name.lower()), []).append(name)
        if len(set(plain)) == len(plain) and all(len(spelt.get(p, ())) == 1 for p in plain):
            return _renamed(self, [spelt[p][0] for p in plain], "by their spelling")
    parts = [re.fullmatch(r"(.*?)(\d{1,6})\]?", joint) for joint in self.joints]
    numbers = [int(m[2]) if m else -1 for m in parts]
    alike = len({m[1] if m else "" for m in parts}) == 1
    if alike and numbers[0] in (0, 1) and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        fitting = next((known for known in names if len(known) == len(self.joints)), None)
        if fitting is not None:
            return _renamed(self, list(fitting), "in this order, because they are only numbered")
    return self


def _renamed(self: Log, names: list[str], why: str) -> Log:
    note = f"channels {self.joints[0]} ... {self.joints[-1]} are taken for {', '.join(names)}, {why}"
    before = self.provenance.get("conversions")
    notes = [*before, note] if isinstance(before, list) else [note]
    return replace(self, joints=tuple(names), provenance={**origin(self), "conversions": notes})


def rows(self: Log, start: int, stop: int) -> Log:
    """Return a stretch of samples (no negative indices, no silent clipping)."""
    if not 0 <= start < stop <= len(self):
        raise LogError(f"rows {start}:{stop} are not inside the log '{self.name}', which has {len(self)} samples")
    parts: dict[str, Any] = {
        key: None if (values := getattr(self, key)) is None else values[start:stop] for key in ("t", *FIELDS)
    }
    return replace(self, provenance={**origin(self), "rows_taken": [start, stop]}, **parts)


def between(self: Log, t0: float, t1: float) -> Log:
    """Return the samples with t0 <= t <= t1."""
    start, stop = int(np.searchsorted(self.t, t0, "left")), int(np.searchsorted(self.t, t1, "right"))
    if stop - start < MINIMUM_SAMPLES:
        raise LogError(
            f"between {t0} and {t1} s the log '{self.name}' has {max(stop - start, 0)} samples; "
            f"it runs from {self.t[0]} to {self.t[-1]} s"
        )
    return self.rows(start, stop)


UNITS = {"joint_torque": "N m or N", "joint_force": "N", "motor_torque": "N m", "motor_current": "A", "voltage": "V"}


def plot_log(log: Log) -> Figure:
    """Draw three panels per channel."""
    row, head = 1.15, 0.45
    height = head + row * len(log.joints) + 0.45
    figure = new_figure(WIDTH, height)
    speed = np.gradient(log.position, log.t, axis=0) if log.velocity is None else log.velocity
    panels = [("position [rad or m]", log.position, BLUE), ("speed [rad/s or m/s]", np.asarray(speed), GREEN)]
    if log.effort_kind != "none":
        panels.append((f"effort [{UNITS.get(log.effort_kind, '')}]", log.effort, ORANGE))
    for column, (title, values, colour) in enumerate(panels):
        left = 0.075 + 0.315 * column
        figure.text(left, 1.0 - 0.22 / height, title, fontsize=9.5, color=MUTED, va="center")
        for j, joint in enumerate(log.joints):
            bottom = (height - head - row * (j + 1) + 0.18) / height
            axes = figure.add_axes((left, bottom, 0.265, (row - 0.25) / height))
            axes.plot(*extremes(log.t, np.nan_to_num(values[:, j])), color=colour, linewidth=0.9)
            if column == 0 and log.reference is not None:
                axes.plot(*extremes(log.t, log.reference[:, j]), color=INK, linewidth=0.6, linestyle="--")
            plain_axes(axes)
            axes.locator_params(axis="y", nbins=4)
            if j + 1 < len(log.joints):
                axes.set_xticklabels([])
            else:
                axes.set_xlabel("time [s]", fontsize=9, color=INK)
            if column == 0:
                axes.set_ylabel(label(joint, 14), fontsize=9, color=INK)
    return figure
