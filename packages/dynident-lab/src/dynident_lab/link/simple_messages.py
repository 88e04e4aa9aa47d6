"""simple_message of ROS-Industrial: conversion of bytes to messages and back, as pure functions.

    LENGTH | MSG_TYPE COMM_TYPE REPLY_CODE | data          LENGTH = bytes after itself, all fields have 4 bytes

Always ten joint slots; unused ones are zero [Pagani2022, Appendix A]. Types from 9000 on are extensions
(`docs/reference/protocols.md`): the standard has no message for torques, temperatures, names and limits. Their numbers have
8 bytes, without rounding.

A motion consists of the messages of its points: 0, 1, 2, ... for a streamer, -1, 1, 2, ..., -3 for a downloader.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from dynident.arrays import Array
from dynident.errors import LinkError
from dynident.mechanics import Motion
from dynident_lab.link.controller import Samples

SLOTS = 10  # joint slots of every message
LARGEST = 1 << 20  # bytes of one message; a JOINT_TRAJ of 200 points has 10 kB
MOST_POINTS = 200  # largest number of points of a JOINT_TRAJ
MINIMUM = 3  # smallest number of points of a download

PING, GET_VERSION = 1, 2
JOINT_POSITION, JOINT_TRAJ_PT, JOINT_TRAJ, STATUS, JOINT_TRAJ_PT_FULL, JOINT_FEEDBACK = 10, 11, 12, 13, 14, 15
IDENTITY, SAMPLES, SUBSCRIBE, COMMAND, POINT = 9000, 9001, 9002, 9003, 9004  # extensions
INVALID, TOPIC, REQUEST, REPLY = 0, 1, 2, 3  # COMM_TYPE
SUCCESS, FAILURE = 1, 2  # REPLY_CODE
START_DOWNLOAD, START_STREAMING, END, STOP = -1, -2, -3, -4  # special sequence numbers
TIME, POSITION, VELOCITY, ACCELERATION = 1, 2, 4, 8  # valid_fields
EVERYTHING = TIME | POSITION | VELOCITY | ACCELERATION
RESET, EMERGENCY_STOP, RELEASE, GOODBYE, REST, REST_OVER, WATCHDOG = 1, 2, 3, 4, 5, 6, 7  # of COMMAND
SIZES = {JOINT_POSITION: 44, JOINT_TRAJ_PT: 52, STATUS: 28, JOINT_TRAJ_PT_FULL: 136, JOINT_FEEDBACK: 132}  # bytes of data
ORDERS = {"little": "<", "big": ">"}
HANDSHAKE = 142  # the byte that a UDP client repeats until the server returns it


@dataclass(frozen=True)
class Message:
    """One message; fields that its type does not carry keep their default."""

    type: int  # MSG_TYPE
    comm: int = REQUEST  # COMM_TYPE
    reply: int = 0  # REPLY_CODE
    sequence: int = 0  # Index of a point, or a special number
    robot: int = 0  # robot_id
    valid: int = 0  # valid_fields
    time: float = 0.0  # Since the start [s]
    velocity: float = 0.0  # Share of the top speed
    duration: float = 0.0  # Duration of the move [s]
    q: tuple[float, ...] = ()  # Ten joint slots, as v and a
    v: tuple[float, ...] = ()
    a: tuple[float, ...] = ()
    status: tuple[int, ...] = ()  # The seven numbers of STATUS
    points: tuple[Message, ...] = field(default=())  # Points of a JOINT_TRAJ
    data: bytes = b""  # Bytes of PING, GET_VERSION, of a reply and of extensions


def encode(message: Message, order: str = "little") -> bytes:
    """Return the bytes of a message with its LENGTH."""
    mark = ORDERS[order]
    body = _body(message, mark)
    return struct.pack(f"{mark}4i", 12 + len(body), message.type, message.comm, message.reply) + body


def _body(m: Message, mark: str) -> bytes:
    if m.type == POINT and m.comm == REQUEST:
        return struct.pack(f"{mark}2i{1 + 3 * len(m.q)}d", m.sequence, len(m.q), m.time, *m.q, *m.v, *m.a)
    if m.comm == REPLY or m.data or m.type in (PING, GET_VERSION) or m.type >= IDENTITY:
        return m.data  # a reply is the header only, or has data of the controller
    if m.type == JOINT_POSITION:
        return struct.pack(f"{mark}i10f", m.sequence, *_slots(m.q))
    if m.type == JOINT_TRAJ_PT:
        return _point(m, mark)
    if m.type == JOINT_TRAJ:
        if len(m.points) > MOST_POINTS:
            raise LinkError(f"a JOINT_TRAJ message has {len(m.points)} points; it holds at most {MOST_POINTS}, stream the rest")
        return b"".join(_point(p, mark) for p in m.points) + struct.pack(f"{mark}i", len(m.points))
    if m.type == STATUS:
        return struct.pack(f"{mark}7i", *m.status)
    rows = (*_slots(m.q), *_slots(m.v), *_slots(m.a))
    if m.type == JOINT_TRAJ_PT_FULL:
        return struct.pack(f"{mark}3i31f", m.robot, m.sequence, m.valid, m.time, *rows)
    if m.type == JOINT_FEEDBACK:
        return struct.pack(f"{mark}2i31f", m.robot, m.valid, m.time, *rows)
    raise LinkError(f"message type {m.type} is unknown; it is one of 1, 2, 10 to 15 or 9000 to 9004")


def _point(m: Message, mark: str) -> bytes:
    return struct.pack(f"{mark}i12f", m.sequence, *_slots(m.q), m.velocity, m.duration)


def _slots(values: Sequence[float]) -> tuple[float, ...]:
    if len(values) > SLOTS:
        raise LinkError(f"{len(values)} joints do not fit into a simple_message, which has {SLOTS} slots; use protocol lynx")
    return (*values, *(0.0,) * (SLOTS - len(values)))


def decode(frame: bytes, order: str = "little") -> Message:
    """Return the message of one whole frame, LENGTH included.

    A reply may be the header only or repeat the request's data: both exist, and only its header matters.
    """
    mark = ORDERS[order]
    if len(frame) < 16:
        raise LinkError(f"a packet of {len(frame)} bytes is not a simple_message, which has 16 at least")
    length, kind, comm, reply = struct.unpack_from(f"{mark}4i", frame)
    if length != len(frame) - 4:
        raise LinkError(f"LENGTH is {length} but {len(frame) - 4} bytes follow; check the byte order")
    if comm not in (TOPIC, REQUEST, REPLY):
        raise LinkError(f"COMM_TYPE is {comm}; it is 1, 2 or 3")
    body = frame[16:]
    if kind == POINT and comm == REQUEST:
        return _read_exact(body, mark)
    if comm == REPLY or kind in (PING, GET_VERSION) or kind >= IDENTITY:
        return Message(kind, comm, reply, data=body)
    if len(body) != SIZES.get(kind, len(body)):
        raise LinkError(f"message type {kind} has {len(body)} bytes of data; it needs {SIZES[kind]}")
    if kind == JOINT_POSITION:
        sequence, *q = struct.unpack(f"{mark}i10f", body)
        return Message(kind, comm, reply, sequence=sequence, q=_finite(q, kind))
    if kind == JOINT_TRAJ_PT:
        return _read_point(body, mark, comm, reply)
    if kind == JOINT_TRAJ:
        return _read_trajectory(body, mark, comm, reply)
    if kind == STATUS:
        return Message(kind, comm, reply, status=struct.unpack(f"{mark}7i", body))
    if kind == JOINT_TRAJ_PT_FULL:
        robot, sequence, valid, *rest = struct.unpack(f"{mark}3i31f", body)
    elif kind == JOINT_FEEDBACK:
        (robot, valid, *rest), sequence = struct.unpack(f"{mark}2i31f", body), 0
    else:
        return Message(kind, comm, reply, data=body)  # type of a vendor: the controller answers with FAILURE
    if valid & EVERYTHING != EVERYTHING:  # fields not marked in valid_fields are undefined
        flags = (TIME, *(POSITION,) * SLOTS, *(VELOCITY,) * SLOTS, *(ACCELERATION,) * SLOTS)
        rest = [x if valid & flag else 0.0 for x, flag in zip(rest, flags, strict=True)]
    x = _finite(rest, kind)
    return Message(kind, comm, reply, sequence, robot, valid, x[0], q=x[1:11], v=x[11:21], a=x[21:31])


def _read_point(body: bytes, mark: str, comm: int, reply: int) -> Message:
    sequence, *rest = struct.unpack(f"{mark}i12f", body)
    x = _finite(rest, JOINT_TRAJ_PT)
    return Message(JOINT_TRAJ_PT, comm, reply, sequence=sequence, q=x[:10], velocity=x[10], duration=x[11])


def _read_exact(body: bytes, mark: str) -> Message:
    """Return a POINT: sequence and number of joints n (int32), then time, q[n], v[n], a[n] (float64)."""
    if len(body) < 8:
        raise LinkError(f"a POINT has {len(body)} bytes of data; it needs 8 at least")
    sequence, n = struct.unpack_from(f"{mark}2i", body)
    if not 0 <= n <= 1000 or len(body) != 16 + 24 * n:
        raise LinkError(f"a POINT declares {n} joints but has {len(body)} bytes of data")
    x = _finite(struct.unpack_from(f"{mark}{1 + 3 * n}d", body, 8), POINT)
    q, v, a = (x[1 + k * n : 1 + (k + 1) * n] for k in range(3))
    return Message(POINT, sequence=sequence, valid=EVERYTHING, time=x[0], q=q, v=v, a=a)


def _read_trajectory(body: bytes, mark: str, comm: int, reply: int) -> Message:
    if len(body) < 4 or (len(body) - 4) % 52:
        raise LinkError(f"a JOINT_TRAJ has {len(body)} bytes of data; it needs 52 for every point and 4 for their number")
    count = struct.unpack_from(f"{mark}i", body, len(body) - 4)[0]
    if count != (len(body) - 4) // 52 or count > MOST_POINTS:
        raise LinkError(f"a JOINT_TRAJ declares {count} points but has {(len(body) - 4) // 52}; at most {MOST_POINTS} fit")
    points = tuple(_read_point(body[52 * i : 52 * i + 52], mark, comm, reply) for i in range(count))
    return Message(JOINT_TRAJ, comm, reply, points=points)


def _finite(values: Sequence[float], kind: int) -> tuple[float, ...]:
    if not all(map(math.isfinite, values)):
        raise LinkError(f"message type {kind} has a number that is not finite; every joint slot needs a number")
    return tuple(values)


class Framer:
    """Divides a byte stream into frames that begin with their length, which does not count `more` bytes, or counts all."""

    def __init__(self, order: str = "little", head: str = "i", more: int = 4, least: int = 12) -> None:
        self._head, self._more, self._least = struct.Struct(ORDERS[order] + head), more, least
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames completed by `data`; `LinkError` if the stream contains no messages."""
        if not isinstance(data, bytes | bytearray | memoryview):
            raise LinkError(f"data is a {type(data).__name__}; give the bytes that were received")
        self._buffer += data
        frames, at = [], 0
        while len(self._buffer) - at >= self._head.size:
            length = self._head.unpack_from(self._buffer, at)[0]
            if not self._least <= length <= LARGEST:
                self._buffer.clear()
                raise LinkError(f"LENGTH is {length}, which no message has; check protocol, port and byte order")
            end = at + self._more + length
            if len(self._buffer) < end:
                break
            frames.append(bytes(self._buffer[at:end]))
            at = end
        del self._buffer[:at]
        return frames


# ---------------------------------------------------------------------- extensions
def encode_samples(table: Array, order: str = "little") -> bytes:
    """Return a SAMPLES topic: number of joints and of samples (int32), then float64 rows as in `Samples.table`."""
    rows, width = table.shape
    body = struct.pack(f"{ORDERS[order]}2i", (width - 3) // 4, rows) + table.astype(f"{ORDERS[order]}f8").tobytes()
    return encode(Message(SAMPLES, TOPIC, data=body), order)


def decode_samples(data: bytes, order: str = "little") -> Samples:
    """Return the samples of a SAMPLES topic; `LinkError` for a wrong size or wrong counters."""
    if len(data) < 8:
        raise LinkError(f"a SAMPLES message has {len(data)} bytes of data; it needs 8 at least")
    joints, rows = struct.unpack_from(f"{ORDERS[order]}2i", data)
    width = 3 + 4 * joints
    if not (0 < joints <= 1000 and rows >= 0) or len(data) != 8 + 8 * rows * width:
        raise LinkError(f"a SAMPLES message declares {rows} samples of {joints} joints but has {len(data)} bytes of data")
    table = np.frombuffer(data, f"{ORDERS[order]}f8", offset=8).astype(np.float64).reshape(rows, width)
    if not (np.isfinite(table[:, :2]).all() and (np.abs(table[:, 0]) < 2.0**53).all()):
        raise LinkError("a SAMPLES message has an index or a clock that is not finite")
    return Samples.from_table(table)


def critical_velocity(v: Iterable[float], limits: Iterable[float]) -> float:
    """Return the velocity of a JOINT_TRAJ_PT: max |v_i| / limit_i, at most 1 [Pagani2022, Appendix A]."""
    pairs = list(zip(v, limits, strict=True))
    if not all(limit > 0.0 for _, limit in pairs):
        raise LinkError(f"limits are {[limit for _, limit in pairs]}; give numbers above 0")
    return min(1.0, max((abs(x) / limit for x, limit in pairs), default=0.0))


def trajectory_messages(
    motion: Motion, limits: Array, *, download: bool = False, kind: int = JOINT_TRAJ_PT_FULL
) -> list[Message]:
    """Return the messages of a motion: JOINT_TRAJ_PT, JOINT_TRAJ_PT_FULL, or POINT, whose streams also end with the marker."""
    t = motion.t - motion.t[0]
    step = float(t[-1] - t[-2]) if len(motion) > 1 else 0.01
    extra = max(0, MINIMUM - len(motion)) if download else 0
    at = np.concatenate([t, t[-1] + step * np.arange(1, extra + 1)])
    last, out = len(at) - 1, []
    for k, when in enumerate(at):
        i = min(k, len(motion) - 1)
        number = START_DOWNLOAD if download and k == 0 else END if k == last and (download or kind == POINT) else k
        q, v, a = tuple(motion.q[i].tolist()), tuple(motion.v[i].tolist()), tuple(motion.a[i].tolist())
        if kind == JOINT_TRAJ_PT:
            duration = float(when - at[k - 1]) if k else 0.0
            out.append(Message(kind, sequence=number, q=q, velocity=critical_velocity(v, limits), duration=duration))
        else:
            out.append(Message(kind, sequence=number, valid=EVERYTHING, time=float(when), q=q, v=v, a=a))
    return out
