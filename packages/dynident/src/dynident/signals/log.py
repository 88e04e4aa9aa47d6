"""Log: what was measured on one robot during one run, with its names, units, effort kind and clock."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers, time_axis
from dynident.errors import LogError
from dynident.signals import log_parts
from dynident.signals.log_parts import FIELDS, MINIMUM_SAMPLES
from dynident.tabular import Tabular

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dynident.signals.stream import LogStream

Array = NDArray[np.float64]
PathLike = str | os.PathLike[str]

#: What an effort channel can be; there is no default because nothing in a file can tell.
EFFORT_KINDS = ("joint_torque", "joint_force", "motor_torque", "motor_current", "voltage", "none")
POSITION_SIDES = ("joint", "motor")
LARGEST = 1e30  # products of a few such numbers stay within floating point


def check_effort_kind(kind: object) -> str:
    """Return `kind` if it is one of `EFFORT_KINDS`, else raise the sentence that lists them."""
    if kind is None:
        raise LogError(
            "effort kind is missing; say what the effort channels are by effort= (commands: --effort), one of: "
            f"{', '.join(EFFORT_KINDS)}"
        )
    if not isinstance(kind, str) or kind not in EFFORT_KINDS:
        raise LogError(f"effort kind is {kind!r}; it must be one of: {', '.join(EFFORT_KINDS)}")
    return kind


def _array(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return a read-only float64 array of the given shape, a copy unless nobody can write to it."""
    try:
        result = values if _is_frozen(values) else np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise LogError(f"log field '{name}' is not numeric ({error}); give an array of numbers") from error
    if result.ndim == 1 and len(shape) == 2 and shape[1] == 1:
        result = result[:, None]
    if result.shape != shape:
        raise LogError(f"log field '{name}' has shape {result.shape}, but {shape} is needed (samples, joints)")
    absurd = np.abs(result) > LARGEST
    if absurd.any() and (absurd := absurd & np.isfinite(result)).any():
        raise LogError(f"log field '{name}' has the value {result[absurd][0]:g}; no robot measures more than {LARGEST:g}")
    result.flags.writeable = False
    return result


def _is_frozen(values: object) -> TypeGuard[Array]:
    """Tell whether something is an array of float64 that neither it nor what it is a part of lets anybody change."""
    if not isinstance(values, np.ndarray) or values.dtype != np.float64 or not values.flags.c_contiguous:
        return False
    owner = values if values.base is None else values.base
    return isinstance(owner, np.ndarray) and not owner.flags.writeable and not values.flags.writeable


@dataclass(frozen=True, eq=False)
class Log(Tabular):
    """Measured signals of one run.

    Parameters
    ----------
    t : array, shape (N,)
        Sample times in s, strictly increasing; need not be uniform.
    joints : sequence of str, length n
        Channel names: joints, or actuators when the positions are measured on the motor side.
    position : array, shape (N, n)
        rad or m, raw. NaN marks a missing sample; `diagnose` reports it and `prepare` deals with it knowingly.
    effort : array, shape (N, n)
        As logged, in SI units of `effort_kind`: Nm, N, A or V.
    effort_kind : {"joint_torque", "joint_force", "motor_torque", "motor_current", "voltage", "none"}
        Required. "joint_torque" is the generalised effort: Nm on a revolute joint, N on a prismatic one. "none" says that no
        effort was measured: `effort` may be None, and only `SampledRegression.without_effort` takes such a log.
    gain : array, shape (n,), optional
        Drive gain, effort unit to Nm or N on the side of the positions: torque = effort * gain.
    velocity, acceleration, temperature : array, shape (N, n), optional
        rad/s or m/s; rad/s^2 or m/s^2; degC.
    position_side : {"joint", "motor"}
        Where the positions are measured; on "motor", channels are actuator coordinates (before the gears).
    name : str
        Short name for reports.
    provenance : mapping
        File, sha256, rows, columns, conversions done.
    truth : mapping, optional
        Only for simulated logs: what generated the data.
    reference : array, shape (N, n), optional
        Positions that were asked for, in the unit of `position`.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.arange(100) / 100
    >>> log = Log(t=t, joints=["a"], position=np.sin(t), effort=np.cos(t), effort_kind="joint_torque")
    >>> log.duration
    0.99
    """

    t: Array
    joints: tuple[str, ...]
    position: Array
    effort: Array
    effort_kind: str
    gain: Array | None = None
    velocity: Array | None = None
    acceleration: Array | None = None
    temperature: Array | None = None
    position_side: str = "joint"
    name: str = "log"
    provenance: Mapping[str, object] = field(default_factory=dict)
    truth: Mapping[str, object] | None = None
    reference: Array | None = None

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
                    f"gain: {gain.size} given for {len(joints)} channels; give one number for all, or one for each of "
                    f"{', '.join(joints)}"
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
    ) -> LogStream:
        """Read a long ROS bag or MCAP file as logs one after the other, with one piece in memory at a time."""
        from dynident.signals.stream import LogStream  # noqa: PLC0415  (only loaded when something is read)

        given = {"effort_kind": effort, "topic": topic, "joints": joints, "unit": units, "gain": gain}
        return LogStream(path, samples, schema, {k: v for k, v in given.items() if v is not None})

    def save(self, path: PathLike) -> Path:
        """Write a file that `Log.read` takes back exactly, with no options."""
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
        """Draw positions, speeds and efforts over time.

        Speeds that were not logged are differences of the positions.
        """
        from dynident.signals.log_parts import plot_log  # noqa: PLC0415 - matplotlib is an extra

        return plot_log(self if joints is None else self.select(joints))

    def torque(self) -> Array:
        """Return the effort in Nm or N: effort * gain.

        A current or a voltage without a drive gain is refused: it cannot be fitted as a torque.

        Returns
        -------
        ndarray, shape (N, n)
            Torques or forces on the side of the positions.
        """
        if self.effort_kind == "none":
            raise LogError(
                f"log '{self.name}' has no effort; its positions can be fitted by OutputError on "
                "SampledRegression.without_effort(robot, log)"
            )
        if self.gain is not None:
            return np.asarray(self.effort * self.gain)
        if self.effort_kind in ("motor_current", "voltage"):
            unit = "Nm/A" if self.effort_kind == "motor_current" else "Nm/V"
            raise LogError(
                f"log '{self.name}': effort is {self.effort_kind} and no drive gain is known; "
                f"give gain= (--gain) in {unit} for {len(self.joints)} channels ({', '.join(self.joints)})"
            )
        return self.effort

    def checksum(self) -> str:
        """Return what tells this recording from every other; a part of a log has the hash of the whole.

        sha256 of the file (of all files, as JSON, when there are several), or of the data of a log made in memory.
        """
        known = self.provenance.get("sha256")
        if known:
            return known if isinstance(known, str) else json.dumps(known, sort_keys=True)
        return hashlib.sha256(self.position.tobytes() + self.effort.tobytes()).hexdigest()

    # ------------------------------------------------------------------ parts
    select = log_parts.select
    named_like = log_parts.named_like
    rows = log_parts.rows
    between = log_parts.between
