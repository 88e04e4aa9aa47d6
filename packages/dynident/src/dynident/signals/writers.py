"""Writing logs: CSV for people, npz for speed, Parquet for tables, MATLAB, and MCAP for Foxglove and PlotJuggler.

All carry the metadata and come back exactly; in MCAP, whose stamps count ns, times come back to half a nanosecond.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
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
_STAMP = "builtin_interfaces/Time stamp\nstring frame_id\n"
_TIME = "MSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"
_BAR = "=" * 80 + "\n"
_HEADER = f"{_BAR}MSG: std_msgs/Header\n{_STAMP}{_BAR}{_TIME}"
#: Message definitions of ROS 2.
_DEFINITIONS = {
    "sensor_msgs/msg/JointState": "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\n"
    f"float64[] effort\n{_HEADER}",
    "control_msgs/msg/DynamicJointState": "std_msgs/Header header\nstring[] joint_names\n"
    f"control_msgs/InterfaceValue[] interface_values\n{_BAR}MSG: control_msgs/InterfaceValue\nstring[] interface_names\n"
    f"float64[] values\n{_HEADER}",
    "trajectory_msgs/msg/JointTrajectory": "std_msgs/Header header\nstring[] joint_names\n"
    f"trajectory_msgs/JointTrajectoryPoint[] points\n{_BAR}MSG: trajectory_msgs/JointTrajectoryPoint\nfloat64[] positions\n"
    "float64[] velocities\nfloat64[] accelerations\nfloat64[] effort\nbuiltin_interfaces/Duration time_from_start\n"
    f"{_BAR}MSG: builtin_interfaces/Duration\nint32 sec\nuint32 nanosec\n{_HEADER}",
}


class _Cdr:
    """Plain CDR, little-endian: numbers at multiples of their size, texts and arrays behind their length."""

    def __init__(self) -> None:
        self.data = bytearray(b"\0\1\0\0")

    def put(self, form: str, size: int, *values: float) -> None:
        """Add numbers of one type."""
        self.data += bytes((4 - len(self.data)) % size)
        self.data += struct.pack(f"<{len(values)}{form}", *values)

    def texts(self, texts: tuple[str, ...]) -> None:
        """Add an array of texts."""
        self.put("I", 4, len(texts))
        for text in texts:
            self.text(text)

    def text(self, text: str) -> None:
        """Add a text, which ends with a zero."""
        raw = text.encode() + b"\0"
        self.put("I", 4, len(raw))
        self.data += raw

    def array(self, values: Any) -> None:
        """Add an array of float64."""
        self.put("I", 4, len(values))
        if len(values):
            self.put("d", 8, *values)

    def header(self, stamp: int) -> None:
        """Add a std_msgs/Header without a frame."""
        self.put("i", 4, stamp // 10**9)
        self.put("I", 4, stamp % 10**9)
        self.text("")


class McapWriter:
    """An MCAP file of ROS 2: JointState messages, and the rest as DynamicJointState, sample by sample."""

    def __init__(self, file: IO[bytes], joints: tuple[str, ...], facts: Mapping[str, Mapping[str, str]]) -> None:
        try:
            from mcap.writer import Writer  # noqa: PLC0415
        except ImportError as error:
            raise missing_extra("mcap", "ros", "writing MCAP files") from error
        self.joints, self.count = joints, 0
        self.writer = Writer(file)
        self.writer.start(profile="ros2", library="dynident")
        for name, entry in facts.items():
            self.writer.add_metadata(name, dict(entry))
        self.channels = {}
        for topic, type_ in zip(("/joint_states", "/dynamic_joint_states", "/joint_trajectory"), _DEFINITIONS, strict=True):
            schema = self.writer.register_schema(type_, "ros2msg", _DEFINITIONS[type_].encode())
            self.channels[topic] = self.writer.register_channel(topic, "cdr", schema)

    def add(
        self, stamp: int, state: Sequence[Sequence[float]], others: Mapping[str, Sequence[float]], arrived: int | None = None
    ) -> None:
        """Write one sample."""
        when = stamp if arrived is None else arrived
        message = self.begin(stamp)
        for row in state:
            message.array(row)
        self.writer.add_message(self.channels["/joint_states"], when, bytes(message.data), stamp, self.count)
        if others:
            message = self.begin(stamp)
            message.put("I", 4, len(self.joints))
            for j in range(len(self.joints)):
                message.texts(tuple(others))
                message.array([row[j] for row in others.values()])
            self.writer.add_message(self.channels["/dynamic_joint_states"], when, bytes(message.data), stamp, self.count)
        self.count = (self.count + 1) % (1 << 32)

    def begin(self, stamp: int) -> _Cdr:
        """Return a message with its header and the names of the joints."""
        message = _Cdr()
        message.header(stamp)
        message.texts(self.joints)
        return message

    def finish(self) -> None:
        """Complete the file."""
        self.writer.finish()  # type: ignore[no-untyped-call]


def _write_mcap(log: Log, path: str | os.PathLike[str]) -> Path:
    """Write `log` as MCAP: JointState messages, the reference as a JointTrajectory, the rest as DynamicJointState."""
    # Stamps cannot be negative: such a clock is moved by whole seconds.
    start = max(0, -int(np.floor(log.t[0]))) * 10**9
    stamps = [start + round(t * 1e9) for t in log.t.tolist()]
    buffer = io.BytesIO()
    writer = McapWriter(buffer, log.joints, {KEY: {"json": metadata(log, start_ns=start)}})
    if log.reference is not None:
        message = writer.begin(stamps[0])
        message.put("I", 4, len(stamps))
        for stamp, row in zip(stamps, log.reference.tolist(), strict=True):
            for values in (row, (), (), ()):
                message.array(values)
            message.put("i", 4, (stamp - stamps[0]) // 10**9)
            message.put("I", 4, (stamp - stamps[0]) % 10**9)
        writer.writer.add_message(writer.channels["/joint_trajectory"], stamps[0], bytes(message.data), stamps[0])
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


#: Packages that a format needs, their extra and what for.
_NEEDS = {".parquet": ("pyarrow", "parquet", "writing Parquet files"), ".mcap": ("mcap", "ros", "writing MCAP files")}


def check_log_file(path: str | os.PathLike[str]) -> str:
    """Refuse a file that no log can be written to, before the work that makes the log."""
    ending = next((ending for ending in WRITERS if str(path).lower().endswith(ending)), None)
    if ending is None:
        raise LogError(f"cannot write a log to '{path}'; the name must end in {', '.join(WRITERS)}")
    if ending in _NEEDS and find_spec(_NEEDS[ending][0]) is None:
        raise missing_extra(*_NEEDS[ending])
    return ending


def write_log(log: Log, path: str | os.PathLike[str]) -> Path:
    """Write a log in the format that the ending of the file names; `Log.save` is the public way."""
    return WRITERS[check_log_file(path)](log, path)
