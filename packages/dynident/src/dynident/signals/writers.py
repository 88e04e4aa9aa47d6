"""Writing logs: readable CSV, fast npz, Parquet for tables, MATLAB, and MCAP for Foxglove and PlotJuggler.

All include the metadata and are read back exactly, except times in MCAP, which are rounded to ns.
"""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast

from dynident.arrays import Array
from dynident.errors import LogError, missing_extra
from dynident.files import jsonable, write_atomic
from dynident.signals.log import FIELDS, Log

MARK = "dynident-log"
VERSION = 1
KEY = "dynident_log"  # of the metadata in npz, Parquet, MATLAB and MCAP files


def metadata(log: Log, **more: object) -> str:
    """Everything of the log except the samples, as one line of JSON (floats by repr, hence exact)."""
    content = {
        "format": MARK,
        "version": VERSION,
        "name": log.name,
        "effort_kind": log.effort_kind,
        "joints": list(log.joints),
        "gain": None if log.gain is None else log.gain.tolist(),
        "position_side": log.position_side,
        "fields": [name for name in FIELDS if getattr(log, name) is not None],
        "units": "SI: s, rad or m, rad/s or m/s, rad/s2 or m/s2, degC; effort Nm, N, A or V after its kind",
        "provenance": jsonable(log.provenance, str),
        "truth": jsonable(log.truth, str),
        **more,
    }
    return json.dumps(content, ensure_ascii=True)


def _arrays(log: Log) -> dict[str, Array]:
    """The samples by field."""
    return {name: values for name in FIELDS if (values := getattr(log, name)) is not None}


def _table(log: Log) -> tuple[list[str], Array]:
    """Return the columns' names and the samples, one column per field and joint."""
    fields = _arrays(log)
    header = ["t"] + [f"{FIELDS[name]}_{joint}" for name in fields for joint in log.joints]
    return header, np.column_stack([log.t, *fields.values()])


def _write_csv(log: Log, path: str | os.PathLike[str]) -> Path:
    """Write `log` as CSV: one comment line of metadata, a header, then repr-exact numbers."""
    for joint in log.joints:
        if any(c in joint for c in ',;"\t\n\r'):
            raise LogError(f"joint name {joint!r} has a comma, semicolon, quote, tab or line break; rename it or write npz")
    header, block = _table(log)
    lines = [f"# {metadata(log)}", ",".join(header)]
    lines += [",".join(map(repr, row)) for row in block.tolist()]
    data = ("\n".join(lines) + "\n").encode("utf-8")
    # mtime=0: the same log gives the same bytes.
    return write_atomic(path, gzip.compress(data, mtime=0) if str(path).endswith(".gz") else data)


def _write_npz(log: Log, path: str | os.PathLike[str]) -> Path:
    """Write `log` as compressed npz: one array per field, metadata as a text array (no pickle)."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, t=log.t, **_arrays(log), **{KEY: np.array(metadata(log))})
    return write_atomic(path, buffer.getvalue())


def _write_mat(log: Log, path: str | os.PathLike[str]) -> Path:
    """Write `log` as a MATLAB file (version 5): t, one array per field, the joint names and the metadata as text."""
    buffer = io.BytesIO()
    names = np.array(log.joints, dtype=object)
    content = {"t": log.t[:, None], **_arrays(log), "joint_names": names, KEY: metadata(log)}
    scipy.io.savemat(buffer, content, do_compression=True)
    data = bytearray(buffer.getvalue())
    data[:116] = b"MATLAB 5.0 MAT-file, written by dynident".ljust(116)  # without the date: the same log gives the same bytes
    return write_atomic(path, bytes(data))


def _write_parquet(log: Log, path: str | os.PathLike[str]) -> Path:
    """Write `log` as Parquet: one column per field and joint as in CSV, metadata in the file's schema."""
    import pyarrow.parquet  # noqa: PLC0415 - an extra

    header, block = _table(log)
    table = pyarrow.table(dict(zip(header, block.T, strict=True))).replace_schema_metadata({KEY: metadata(log)})
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer)
    return write_atomic(path, buffer.getvalue())


# ---------------------------------------------------------------------- MCAP
_STATE, _DYNAMIC, _TRAJECTORY = (
    "sensor_msgs/msg/JointState",
    "control_msgs/msg/DynamicJointState",
    "trajectory_msgs/msg/JointTrajectory",
)
#: Messages of ROS 2 that rosbags does not have.
_MORE = {
    "control_msgs/msg/InterfaceValue": "string[] interface_names\nfloat64[] values\n",
    _DYNAMIC: "std_msgs/Header header\nstring[] joint_names\ncontrol_msgs/InterfaceValue[] interface_values\n",
}


class McapWriter:
    """An MCAP file of ROS 2: JointState messages, and the rest as DynamicJointState, sample by sample."""

    def __init__(self, file: IO[bytes], joints: tuple[str, ...], facts: Mapping[str, Mapping[str, str]]) -> None:
        try:
            from mcap.writer import Writer  # noqa: PLC0415
            from rosbags.typesys import Stores, get_types_from_msg, get_typestore  # noqa: PLC0415
        except ImportError as error:
            raise missing_extra(error.name or "mcap", "ros", "writing MCAP files") from error
        self.joints, self.count = list(joints), 0
        self.store = get_typestore(Stores.LATEST)
        for name, text in _MORE.items():
            self.store.register(get_types_from_msg(text, name))
        self.writer = Writer(file)
        self.writer.start(profile="ros2", library="dynident")
        for name, entry in facts.items():
            self.writer.add_metadata(name, dict(entry))
        self.channels = {}
        topics = {_STATE: "/joint_states", _DYNAMIC: "/dynamic_joint_states", _TRAJECTORY: "/joint_trajectory"}
        for type_, topic in topics.items():
            schema = self.writer.register_schema(type_, "ros2msg", self.store.generate_msgdef(type_, ros_version=2)[0].encode())
            self.channels[type_] = self.writer.register_channel(topic, "cdr", schema)

    def add(self, stamp: int, state: Sequence[Sequence[float]], others: Mapping[str, Sequence[float]]) -> None:
        """Write one sample."""
        self._put(_STATE, stamp, self.joints, *(np.asarray(row, dtype=np.float64) for row in state))
        if others:
            value, names = self.store.types["control_msgs/msg/InterfaceValue"], list(others)
            each = [value(names, np.array(row, dtype=np.float64)) for row in zip(*others.values(), strict=True)]
            self._put(_DYNAMIC, stamp, self.joints, each)
        self.count = (self.count + 1) % (1 << 32)

    def add_trajectory(self, stamps: Sequence[int], rows: Array) -> None:
        """Write the commanded positions as one message at the first time."""
        point, none = self.store.types["trajectory_msgs/msg/JointTrajectoryPoint"], np.zeros(0)
        after = [self._time("Duration", stamp - stamps[0]) for stamp in stamps]
        points = [point(row, none, none, none, time) for row, time in zip(rows, after, strict=True)]
        self._put(_TRAJECTORY, stamps[0], self.joints, points)

    def _time(self, kind: str, nanoseconds: int) -> Any:
        return self.store.types[f"builtin_interfaces/msg/{kind}"](nanoseconds // 10**9, nanoseconds % 10**9)

    def _put(self, type_: str, stamp: int, *fields: Any) -> None:
        """Write one message with a header."""
        header = self.store.types["std_msgs/msg/Header"](self._time("Time", stamp), "")
        data = self.store.serialize_cdr(self.store.types[type_](header, *fields), type_)
        self.writer.add_message(self.channels[type_], stamp, bytes(data), stamp, self.count)

    def finish(self) -> None:
        """Complete the file."""
        self.writer.finish()  # type: ignore[no-untyped-call]


def _write_mcap(log: Log, path: str | os.PathLike[str]) -> Path:
    """Write `log` as MCAP: JointState messages, the reference as a JointTrajectory, the rest as DynamicJointState."""
    # Stamps cannot be negative: such a clock is shifted by whole seconds.
    start = max(0, -int(np.floor(log.t[0]))) * 10**9
    stamps = [start + round(t * 1e9) for t in log.t.tolist()]
    buffer = io.BytesIO()
    writer = McapWriter(buffer, log.joints, {KEY: {"json": metadata(log, start_ns=start)}})
    if log.reference is not None:
        writer.add_trajectory(stamps, log.reference)
    others = {name: values.tolist() for name in ("acceleration", "temperature") if (values := getattr(log, name)) is not None}
    state = [None if values is None else values.tolist() for values in (log.position, log.velocity, log.effort)]
    for k, stamp in enumerate(stamps):
        rows = [() if values is None else values[k] for values in state]
        writer.add(stamp, rows, {name: values[k] for name, values in others.items()})
    writer.finish()
    return write_atomic(path, buffer.getvalue())


WRITERS = {
    ".csv": _write_csv,
    ".csv.gz": _write_csv,
    ".npz": _write_npz,
    ".mat": _write_mat,
    ".parquet": _write_parquet,
    ".mcap": _write_mcap,
}


#: Packages required by a format, their extra and purpose.
_NEEDS = {".parquet": ("pyarrow", "parquet", "writing Parquet files"), ".mcap": ("mcap", "ros", "writing MCAP files")}


def check_log_file(path: str | os.PathLike[str]) -> str:
    """Raise an error if no log can be written to a file, before the log is computed."""
    ending = next((ending for ending in WRITERS if str(path).lower().endswith(ending)), None)
    if ending is None:
        raise LogError(f"cannot write a log to '{path}'; the name must end in {', '.join(WRITERS)}")
    if ending in _NEEDS and find_spec(_NEEDS[ending][0]) is None:
        raise missing_extra(*_NEEDS[ending])
    return ending


def write_log(log: Log, path: str | os.PathLike[str]) -> Path:
    """Write a log in the format that the ending of the file names; `Log.save` is the public way."""
    return WRITERS[check_log_file(path)](log, path)
