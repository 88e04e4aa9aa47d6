"""Log: measured signals of one run, with names, units, effort kind and clock."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import numbers, time_axis
from dynident.errors import LogError
from dynident.figures import BLUE, GREEN, INK, MUTED, ORANGE, WIDTH, extremes, label, new_figure, plain_axes
from dynident.results import Tabular

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dynident.signals.stream import LogStream

PathLike = str | os.PathLike[str]

#: Effort kinds; there is no default because a file does not show the kind.
EFFORT_KINDS = ("joint_torque", "joint_force", "motor_torque", "motor_current", "voltage", "none")
POSITION_SIDES = ("joint", "motor")
LARGEST = 1e30  # products of a few such numbers stay within floating point


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


def check_effort_kind(kind: object) -> str:
    """Return `kind` if it is one of `EFFORT_KINDS`, else raise an error that lists them."""
    if kind is None:
        raise LogError(
            "effort kind is missing; state what the effort channels are with effort= (--effort), one of: "
            f"{', '.join(EFFORT_KINDS)}"
        )
    if not isinstance(kind, str) or kind not in EFFORT_KINDS:
        raise LogError(f"effort kind is {kind!r}; it must be one of: {', '.join(EFFORT_KINDS)}")
    return kind


def _array(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return a read-only float64 array of the given shape, copied unless already read-only."""
    if _is_frozen(values):
        result = values
    else:
        try:
            result = np.array(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise LogError(f"log field '{name}' is not numeric ({error}); give an array of numbers") from error
    if result.ndim == 1 and len(shape) == 2 and shape[1] == 1:
        result = result[:, None]
    if result.shape != shape:
        raise LogError(f"log field '{name}' has shape {result.shape}, but {shape} is needed (samples, joints)")
    if result.size and max(np.fmax.reduce(result, axis=None), -np.fmin.reduce(result, axis=None)) > LARGEST:
        absurd = (np.abs(result) > LARGEST) & np.isfinite(result)
        if absurd.any():
            raise LogError(f"log field '{name}' has the value {result[absurd][0]:g}; no robot measures more than {LARGEST:g}")
    result.flags.writeable = False
    return result


def _is_frozen(values: object) -> TypeGuard[Array]:
    """Return whether something is a float64 array that is read-only, as is its base array."""
    if not isinstance(values, np.ndarray) or values.dtype != np.float64 or not values.flags.c_contiguous:
        return False
    owner = values if values.base is None else values.base
    return isinstance(owner, np.ndarray) and not owner.flags.writeable and not values.flags.writeable


@dataclass(frozen=True, eq=False)
class Log(Tabular):
    """Measured signals of one run.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.arange(100) / 100
    >>> log = Log(t=t, joints=["a"], position=np.sin(t), effort=np.cos(t), effort_kind="joint_torque")
    >>> log.duration
    0.99
    """

    t: Array  #: (N,), sample times in s, strictly increasing; need not be uniform
    joints: tuple[str, ...]  #: Channel names: joints, or actuators when the positions are measured on the motor side
    #: (N, n), rad or m, raw. NaN marks a missing sample, reported by `diagnose` and handled by `prepare`.
    position: Array
    effort: Array  #: (N, n), as logged, in SI units of `effort_kind`: Nm, N, A or V
    #: {"joint_torque", "joint_force", "motor_torque", "motor_current", "voltage", "none"}: Required. "joint_torque" is the
    #: generalised effort: Nm on a revolute joint, N on a prismatic one. "none": no effort was measured; `effort` may
    #: be None, and only `Regression.without_effort` takes such a log.
    effort_kind: str
    gain: Array | None = None  #: (n,), drive gain, effort unit to Nm or N on the side of the positions: torque = effort * gain
    velocity: Array | None = None  #: (N, n), logged velocities [rad/s or m/s]
    acceleration: Array | None = None  #: (N, n), logged accelerations [rad/s^2 or m/s^2]
    temperature: Array | None = None  #: (N, n), temperatures [degC]
    #: {"joint", "motor"}: Where the positions are measured; on "motor", channels are actuator coordinates (before the gears)
    position_side: str = "joint"
    name: str = "log"  #: Short name for reports
    provenance: Mapping[str, object] = field(default_factory=dict)  #: File, sha256, rows, columns, conversions done
    truth: Mapping[str, object] | None = None  #: Only for simulated logs: parameters that generated the data
    reference: Array | None = None  #: (N, n), commanded positions, in the unit of `position`

    def __post_init__(self) -> None:
        if isinstance(self.joints, str) or not isinstance(self.joints, Iterable):
            raise LogError(f"joints is {self.joints!r}; give a list of names")
        joints = tuple(self.joints)
        for joint in joints:
            if not isinstance(joint, str) or not joint:
                raise LogError(f"joint name {joint!r} is not a name; every channel needs a non-empty text")
        repeated = sorted({j for j in joints if joints.count(j) > 1})
        if repeated or not joints:
            what = f"names {repeated} are repeated" if joints else "list of names is empty"
            raise LogError(f"joints: the {what}; give one different name per channel")
        t = np.asarray(self.t)
        if t.ndim == 2 and t.shape[1] == 1:
            t = t[:, 0]
        if t.ndim != 1 or t.size < MINIMUM_SAMPLES:
            raise LogError(f"log field 't' has shape {t.shape}; at least {MINIMUM_SAMPLES} samples in one row are needed")
        set_ = object.__setattr__
        set_(self, "joints", joints)
        set_(self, "t", _array("t", t, t.shape))
        time_axis(self.t)
        shape = (t.size, len(joints))
        if self.effort is None and self.effort_kind == "none":
            set_(self, "effort", np.zeros(shape))
        for name in FIELDS:
            values = getattr(self, name)
            if values is not None or name in ("position", "effort"):
                set_(self, name, _array(name, values, shape))
        check_effort_kind(self.effort_kind)
        if self.gain is not None:
            gain = numbers(self.gain, "gain")
            if gain.shape not in ((), (len(joints),)):
                raise LogError(
                    f"gain: {gain.size} given for {len(joints)} channels; give one number for all, one for each of "
                    f"{', '.join(joints)}, or numbers by name (--gain {joints[0]}=12,...)"
                )
            gain = _array("gain", np.broadcast_to(gain, (len(joints),)), (len(joints),))
            set_(self, "gain", gain)
            if not np.all(np.isfinite(gain)) or np.any(gain == 0.0):
                raise LogError(f"gain is {gain.tolist()}; every drive gain must be finite and not zero")
        if self.position_side not in POSITION_SIDES:
            raise LogError(f"position_side is {self.position_side!r}; it must be 'joint' or 'motor'")

    # ------------------------------------------------------------------ reading and writing
    @classmethod
    def read(
        cls,
        path: PathLike | Sequence[PathLike] | Mapping[str, Any] | object,
        effort: str | None = None,
        *,
        topic: str | Sequence[str] | None = None,
        episode: int | str | None = None,
        schema: PathLike | Mapping[str, object] | None = None,
        joints: Sequence[str] | None = None,
        units: Mapping[str, object] | None = None,
        counts_per_unit: float | Sequence[float] | None = None,
        gain: float | Sequence[float] | None = None,
        delay: float | Sequence[float] | None = None,
        rate: float | None = None,
        position_side: str | None = None,
        name: str | None = None,
    ) -> Log:
        """Read a log from a file, a ROS bag or MCAP, or a table in memory.

        Files are CSV (also .gz, .tsv), npz, MATLAB, Parquet and HDF5. Installed packages add other files and folders through
        the group `dynident.log_readers`: with dynident-lab, the folder of a recorded campaign.
        """
        from dynident.signals.reading import read_any  # noqa: PLC0415  (only loaded when something is read)

        options: dict[str, object] = {
            "effort": effort,
            "topic": topic,
            "episode": episode,
            "schema": schema,
            "joints": joints,
            "units": units,
            "counts_per_unit": counts_per_unit,
            "gain": gain,
            "delay": delay,
            "rate": rate,
            "position_side": position_side,
            "name": name,
        }
        return read_any(path, {k: v for k, v in options.items() if v is not None})

    @classmethod
    def read_episodes(
        cls,
        path: PathLike | object,
        effort: str | None = None,
        *,
        schema: PathLike | Mapping[str, object] | None = None,
        joints: Sequence[str] | None = None,
        units: Mapping[str, object] | None = None,
        gain: float | Sequence[float] | None = None,
        rate: float | None = None,
    ) -> list[Log]:
        """Read all runs of a table that holds several, such as the episodes of a LeRobot data set."""
        from dynident.signals.reading import read_episodes  # noqa: PLC0415  (only loaded when something is read)

        given = {"effort_kind": effort, "joints": joints, "unit": units, "gain": gain, "rate": rate}
        return read_episodes(path, schema, {k: v for k, v in given.items() if v is not None})

    @staticmethod
    def stream(
        path: PathLike,
        effort: str | None = None,
        *,
        samples: int = 100_000,
        topic: str | Sequence[str] | None = None,
        schema: PathLike | Mapping[str, object] | None = None,
        joints: Sequence[str] | None = None,
        units: Mapping[str, object] | None = None,
        gain: float | Sequence[float] | None = None,
        rate: float | None = None,
    ) -> LogStream:
        """Read a long ROS bag, MCAP or Parquet file as logs one after the other, with one piece in memory at a time."""
        from dynident.signals.stream import LogStream  # noqa: PLC0415  (only loaded when something is read)

        given = {"effort_kind": effort, "topic": topic, "joints": joints, "unit": units, "gain": gain, "rate": rate}
        return LogStream(path, samples, schema, {k: v for k, v in given.items() if v is not None})

    def save(self, path: PathLike) -> Path:
        """Write a file that `Log.read` reads back exactly without options."""
        from dynident.signals.writers import write_log  # noqa: PLC0415

        return write_log(self, path)

    # ------------------------------------------------------------------ views
    @property
    def rate(self) -> float:
        """Sampling rate in Hz: one over the mean time step, gaps left out."""
        step = np.diff(self.t)
        return float(1.0 / np.mean(step[step <= 1.75 * np.median(step)]))

    @property
    def duration(self) -> float:
        """Time from the first to the last sample, in s."""
        return float(self.t[-1] - self.t[0])

    def __len__(self) -> int:
        return int(self.t.size)

    def __repr__(self) -> str:
        return (
            f"Log({self.name!r}: {len(self)} samples, {self.duration:.6g} s at {self.rate:.6g} Hz, "
            f"{len(self.joints)} {self.position_side} channels {', '.join(self.joints)}; effort is {self.effort_kind})"
        )

    def _columns(self) -> dict[str, Any]:
        """Time and every signal, one column per channel."""
        columns: dict[str, Any] = {"t": self.t}
        for name in ("position", "velocity", "acceleration", "effort", "temperature", "reference"):
            values = getattr(self, name)
            if values is not None:
                columns |= {f"{name} {joint}": values[:, j] for j, joint in enumerate(self.joints)}
        return columns

    def _view(self) -> dict[str, Any]:
        """Range of every channel."""
        columns: dict[str, Any] = {"channel": self.joints}
        for name in ("position", "effort"):
            values = getattr(self, name)
            columns[f"{name} from"], columns[f"{name} to"] = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
        return columns

    def plot(self, joints: Sequence[str] | None = None) -> Figure:
        """Draw positions, speeds (differences of positions where not logged) and efforts over time."""
        return plot_log(self if joints is None else self.select(joints))

    def torque(self) -> Array:
        """Return effort * gain (N, n) [N m or N] on the side of the positions; currents and voltages need a drive gain."""
        gain = self.drive_gain()
        return self.effort if gain is None else np.asarray(self.effort * gain)

    def drive_gain(self) -> Array | None:
        """Return the gain from efforts to torques, None if efforts are torques; raise if it is unknown."""
        if self.effort_kind == "none":
            raise LogError(
                f"log '{self.name}' has no effort; fit its positions with OutputError and Regression.without_effort(robot, log)"
            )
        if self.gain is None and self.effort_kind in ("motor_current", "voltage"):
            unit = "Nm/A" if self.effort_kind == "motor_current" else "Nm/V"
            raise LogError(
                f"log '{self.name}': effort is {self.effort_kind} and no drive gain is known; "
                f"give gain= (--gain) in {unit} for {len(self.joints)} channels ({', '.join(self.joints)})"
            )
        return self.gain

    def checksum(self) -> str:
        """Return the hash that identifies this recording; a part of a log has the hash of the whole.

        sha256 of the file (of all files, as JSON, when there are several), or of the data of a log made in memory.
        """
        known = self.provenance.get("sha256")
        if known:
            return known if isinstance(known, str) else json.dumps(known, sort_keys=True)
        return self._sha256

    @cached_property
    def _sha256(self) -> str:
        data = hashlib.sha256()
        for values in (self.position, self.effort):
            data.update(np.ascontiguousarray(values).data)
        return data.hexdigest()

    # ------------------------------------------------------------------ parts
    def select(self, joints: Sequence[str]) -> Log:
        """Return a log of selected channels."""
        names = [joints] if isinstance(joints, str) else list(joints)
        unknown = [j for j in names if j not in self.joints]
        if unknown:
            raise LogError(f"log '{self.name}' has no channel {', '.join(map(str, unknown))}; it has {', '.join(self.joints)}")
        index = [self.joints.index(j) for j in names]
        parts: dict[str, Any] = {key: None if (values := getattr(self, key)) is None else values[:, index] for key in FIELDS}
        gain = None if self.gain is None else self.gain[index]
        return replace(self, joints=tuple(names), gain=gain, provenance=origin(self), **parts)

    def named_like(self, *names: Sequence[str]) -> Log:
        """Return the log with its channels named as a robot names its joints or motors.

        Spelling variants are accepted where unambiguous (joint_1, Joint1 and joint1 are one name). Channels that are only
        numbered (joint_1, joint_2, ..., A1, A2, ..., or from 0) get the robot's names in order if their count matches.
        """
        if any(set(self.joints) <= set(known) for known in names):
            return self
        plain = [re.sub(r"[^a-z0-9]", "", joint.lower()) for joint in self.joints]
        for known in names:
            spelt: dict[str, list[str]] = {}
            for name in known:
                spelt.setdefault(re.sub(r"[^a-z0-9]", "", name.lower()), []).append(name)
            if len(set(plain)) == len(plain) and all(len(spelt.get(p, ())) == 1 for p in plain):
                return self._renamed([spelt[p][0] for p in plain], "by their spelling")
        parts = [re.fullmatch(r"(.*?)(\d{1,6})\]?", joint) for joint in self.joints]
        numbers = [int(m[2]) if m else -1 for m in parts]
        alike = len({m[1] if m else "" for m in parts}) == 1
        if alike and numbers[0] in (0, 1) and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
            fitting = next((known for known in names if len(known) == len(self.joints)), None)
            if fitting is not None:
                return self._renamed(list(fitting), "in this order, because they are only numbered")
        return self

    def _renamed(self, names: list[str], why: str) -> Log:
        note = f"channels {self.joints[0]} ... {self.joints[-1]} are taken for {', '.join(names)}, {why}"
        before = self.provenance.get("conversions")
        notes = [*before, note] if isinstance(before, list) else [note]
        return replace(self, joints=tuple(names), provenance={**origin(self), "conversions": notes})

    def rows(self, start: int, stop: int) -> Log:
        """Return a range of samples (no negative indices, no silent clipping)."""
        if not 0 <= start < stop <= len(self):
            raise LogError(f"rows {start}:{stop} are not inside the log '{self.name}', which has {len(self)} samples")
        parts: dict[str, Any] = {
            key: None if (values := getattr(self, key)) is None else values[start:stop] for key in ("t", *FIELDS)
        }
        return replace(self, provenance={**origin(self), "rows_taken": [start, stop]}, **parts)

    def between(self, t0: float, t1: float) -> Log:
        """Return the samples with t0 <= t <= t1."""
        start, stop = int(np.searchsorted(self.t, t0, "left")), int(np.searchsorted(self.t, t1, "right"))
        if stop - start < MINIMUM_SAMPLES:
            raise LogError(
                f"between {t0} and {t1} s the log '{self.name}' has {max(stop - start, 0)} samples; "
                f"it runs from {self.t[0]} to {self.t[-1]} s"
            )
        return self.rows(start, stop)


def origin(log: Log) -> dict[str, object]:
    """Return the provenance for a part of a log, with a hash by which training data are recognised."""
    return {"sha256": log.checksum(), **log.provenance}


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
