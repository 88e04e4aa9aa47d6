"""Lynx: a client/server controller of parallel robots over TCP [Roldan2017, appendix A] (with our own encoding).

    LENGTH u32 | COMM u8  KIND u8  TASK u16  SEQUENCE u32  CRC32 u32 | data        little endian, LENGTH = bytes after itself

COMM 0 opens and closes tasks and ends the server, 2 carries trajectories and measurements, 4 the commands of the open task.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
import zlib
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.errors import LinkError
from dynident_lab.link.controller import Samples

SESSION, DATA, COMMAND = 0, 2, 4  # COMM; 1 and 3 are reserved
# KIND of COMM 0
OPEN, CLOSE, SHUTDOWN, OPENED, CLOSED, REFUSED, HELLO, PROOF, ALIVE = 1, 2, 3, 4, 5, 6, 7, 8, 9
# KIND of COMM 2
BLOCK, MEASUREMENTS, TAKEN, END = 1, 2, 3, 4
# KIND of COMM 4
IDENTITY, HOME, JOG, RUN, STOP, ACQUIRE, QUICK_STOP, RELEASE, RESET, REST, CONFIGURE = range(1, 12)
DONE = 100
# TASK
CONFIGURATION, HOMING, JOGGING, CONTROL = 1, 2, 3, 4
TASKS = {CONFIGURATION: "configuration", HOMING: "homing", JOGGING: "jog", CONTROL: "control"}
INDICATORS = ("loading", "ready", "sending trajectory", "target reading", "receiving data", "executing")
VERSION = 1
MOST_ROWS = 500  # rows of a block
HEAD = struct.Struct("<BBHII")
# Status, indicator, homed, task in progress, lower and upper limit switches (one bit per coordinate).
STATE = struct.Struct("<7iBBHII")


@dataclass(frozen=True)
class Frame:
    """One message of Lynx."""

    comm: int
    kind: int
    task: int = 0
    sequence: int = 0
    data: bytes = b""


def encode(frame: Frame) -> bytes:
    """Return the bytes of a frame with its LENGTH."""
    head = HEAD.pack(frame.comm, frame.kind, frame.task, frame.sequence, zlib.crc32(frame.data))
    return struct.pack("<I", len(head) + len(frame.data)) + head + frame.data


def decode(data: bytes) -> Frame:
    """Return the frame of some bytes, LENGTH included; `LinkError` for malformed data."""
    if len(data) < 4 + HEAD.size or struct.unpack_from("<I", data)[0] != len(data) - 4:
        raise LinkError(f"a packet of {len(data)} bytes is not a Lynx message")
    comm, kind, task, sequence, crc = HEAD.unpack_from(data, 4)
    body = data[4 + HEAD.size :]
    if zlib.crc32(body) != crc:
        raise LinkError("the checksum of a Lynx message is wrong")
    if comm not in (SESSION, DATA, COMMAND):
        raise LinkError(f"COMM is {comm}; it is 0, 2 or 4")
    return Frame(comm, kind, task, sequence, body)


def proof(key: bytes, nonce: bytes) -> bytes:
    """Return the proof that a client has the key."""
    return hmac.new(key, b"lynx client" + nonce, hashlib.sha256).digest()


def encode_rows(table: Array) -> bytes:
    """Return a table: columns and rows (u32), then float64."""
    return struct.pack("<II", table.shape[1], table.shape[0]) + np.ascontiguousarray(table, dtype="<f8").tobytes()


def decode_rows(data: bytes) -> Array:
    """Return the table of some bytes; `LinkError` for a wrong size."""
    if len(data) < 8:
        raise LinkError(f"a table of {len(data)} bytes has no size")
    columns, rows = struct.unpack_from("<II", data)
    if not 0 < columns <= 10_000 or len(data) != 8 + 8 * rows * columns:
        raise LinkError(f"a table declares {rows} rows of {columns} numbers but has {len(data)} bytes")
    return np.frombuffer(data, "<f8", offset=8).astype(np.float64).reshape(rows, columns)


@dataclass(frozen=True)
class State:
    """State that the server sends with every measurement."""

    status: tuple[int, ...]
    indicator: str
    homed: bool
    task: int
    lower: int = 0
    upper: int = 0

    def pack(self) -> bytes:
        """Return the bytes of the state."""
        return STATE.pack(*self.status, INDICATORS.index(self.indicator), self.homed, self.task, self.lower, self.upper)


def decode_measurements(data: bytes) -> tuple[State, Samples]:
    """Return state and samples of a message; `LinkError` for a malformed message."""
    if len(data) < STATE.size:
        raise LinkError(f"measurements of {len(data)} bytes have no state")
    *status, indicator, homed, task, lower, upper = STATE.unpack_from(data)
    table = decode_rows(data[STATE.size :])
    if indicator >= len(INDICATORS) or table.shape[1] < 7 or (table.shape[1] - 3) % 4 or not np.isfinite(table[:, :2]).all():
        raise LinkError("measurements of the wrong form")
    return State(tuple(status), INDICATORS[indicator], bool(homed), task, lower, upper), Samples.from_table(table)
