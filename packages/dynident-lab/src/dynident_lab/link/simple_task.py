"""The tasks of a simple_message controller, without sockets: frames in, frames out [Pagani2022, Appendix A].

The motion task stores points in a buffer of 100 and answers each with its header; the answer to a point that does not fit yet
waits, so the controller sets the rate. A point that comes twice is answered twice and executed once; one that skips another is
refused.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from array import array
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dynident.errors import LinkError
from dynident_lab.link import simple_messages as m
from dynident_lab.link.emulator import Emulator
from dynident_lab.link.plant import VERSION
from dynident_lab.link.setpoints import Point
from dynident_lab.link.simple_messages import Message

Array = NDArray[np.float64]

OWN = (m.RESET, m.RELEASE, m.REST, m.REST_OVER)  # commands of who has the robot; anybody may press its emergency stop
SPECIAL = (m.START_DOWNLOAD, m.START_STREAMING, m.END, m.STOP)


class Task:
    """What both tasks answer: PING, GET_VERSION, IDENTITY and COMMAND; anything else with FAILURE."""

    def __init__(self, emulator: Emulator, order: str = "little") -> None:
        self.emulator, self.order = emulator, order
        self.malformed = self.refused = self.repeated = 0
        self.owner = False  # the client has the robot
        self.gone = False  # the client has said goodbye
        self.pings = False  # the client has pinged

    def receive(self, frame: bytes) -> list[bytes]:
        """Return the answers to one frame; what is malformed is counted and dropped."""
        try:
            message = m.decode(frame, self.order)
        except LinkError:
            self.malformed += 1
            return []
        if message.comm != m.REQUEST:
            return []
        try:
            return self.answer(message, frame)
        except LinkError as error:
            self.refused += 1
            return [self.reply(message.type, m.FAILURE, str(error).encode())]

    def reply(self, kind: int, code: int, data: bytes = b"") -> bytes:
        """Return a reply: the header alone when there is nothing to say."""
        return m.encode(Message(kind, m.REPLY, code, data=data), self.order)

    def answer(self, message: Message, frame: bytes) -> list[bytes]:
        """Return the answers to a request; `LinkError` becomes a FAILURE with that sentence."""
        del frame
        kind, core = message.type, self.emulator
        if kind == m.PING:
            self.pings = True
            return [self.reply(kind, m.SUCCESS, message.data)]
        if kind == m.GET_VERSION:
            return [self.reply(kind, m.SUCCESS, struct.pack(f"{m.ORDERS[self.order]}3i", *VERSION))]
        if kind == m.IDENTITY:
            return [self.reply(kind, m.SUCCESS, json.dumps({**core.identity, "yours": self.owner}).encode())]
        if kind == m.COMMAND:
            if len(message.data) not in (4, 12):
                raise LinkError(f"a COMMAND has {len(message.data)} bytes of data; it needs 4, or 12 with a duration")
            code = struct.unpack_from(f"{m.ORDERS[self.order]}i", message.data)[0]
            duration = struct.unpack_from(f"{m.ORDERS[self.order]}d", message.data, 4)[0] if message.data[4:] else math.inf
            actions: dict[int, Callable[[], None]] = {
                m.RESET: core.reset,
                m.EMERGENCY_STOP: core.emergency_stop,
                m.RELEASE: lambda: core.emergency_stop(False),
                m.GOODBYE: lambda: setattr(self, "gone", True),
                m.REST: lambda: core.rest(True, duration),
                m.REST_OVER: lambda: core.rest(False),
            }
            if code not in actions:
                raise LinkError(f"COMMAND {code} is unknown; it is 1 to 6")
            if code in OWN and not self.owner:
                raise LinkError(f"COMMAND {code} is for the client that has the robot; this one has not")
            actions[code]()
            return [self.reply(kind, m.SUCCESS)]
        raise LinkError(f"message type {kind} is not served on this port")


class MotionTask(Task):
    """Receives points of trajectories of one client."""

    def __init__(self, emulator: Emulator, order: str = "little", owner: bool = True) -> None:
        super().__init__(emulator, order)
        self.owner = owner
        self._next = 0
        self._time = 0.0
        self._known = array("L")  # checksums of the points of this trajectory that were taken over
        self._pending: tuple[Message, bytes] | None = None

    def answer(self, message: Message, frame: bytes) -> list[bytes]:
        """Return the answers to a request."""
        if message.type not in (m.JOINT_TRAJ_PT, m.JOINT_TRAJ_PT_FULL, m.JOINT_TRAJ, m.POINT):
            return super().answer(message, frame)
        if not self.owner:
            raise LinkError(f"another client ({self.emulator.client}) has this controller; close it first")
        if message.type == m.JOINT_TRAJ:
            return self._whole(message)
        if message.sequence == m.STOP:
            self.emulator.stop()
            self._forget()
            return [self.reply(message.type, m.SUCCESS)]
        if self._taken(message.sequence, frame) and not self._again(message):
            self.repeated += 1
            return [self.reply(message.type, m.SUCCESS)]
        if self._pending is not None and frame == self._pending[1]:
            self.repeated += 1
            return []  # its answer comes when there is room
        return self._point(message, frame)

    def poll(self) -> list[bytes]:
        """Return the answer to the point that has waited for room, if it fits now."""
        if self._pending is None:
            return []
        (message, frame), self._pending = self._pending, None
        try:
            return self._point(message, frame)
        except LinkError as error:
            self.refused += 1
            return [self.reply(message.type, m.FAILURE, str(error).encode())]

    def _taken(self, sequence: int, frame: bytes) -> bool:
        """Tell whether this very packet was taken over before."""
        place = {m.START_DOWNLOAD: 0, m.START_STREAMING: 0, m.END: len(self._known) - 1}.get(sequence, sequence)
        return 0 <= place < len(self._known) and self._known[place] == zlib.crc32(frame)

    def _again(self, message: Message) -> bool:
        """Tell whether a known first point starts the same trajectory once more, instead of being a copy of the packet."""
        return (
            message.sequence in (0, m.START_DOWNLOAD, m.START_STREAMING)
            and self._next > 1
            and not self.emulator.setpoints.moving
        )

    def _forget(self) -> None:
        self._next, self._time, self._known, self._pending = 0, 0.0, array("L"), None

    def _point(self, message: Message, frame: bytes) -> list[bytes]:
        core, sequence = self.emulator, message.sequence
        if sequence in (0, m.START_DOWNLOAD, m.START_STREAMING):
            core.begin(hold=sequence == m.START_DOWNLOAD, marked=message.type == m.POINT)
            self._forget()
        elif sequence < 0 and sequence not in SPECIAL:
            raise LinkError(f"sequence is {sequence}; special numbers are -1 to -4")
        elif sequence not in (self._next, m.END):
            raise LinkError(f"point {sequence} came where {self._next} is expected; no point may be skipped")
        point, at = self._read(message)
        if not core.push(point):
            if core.setpoints.held:
                core.stop()
                raise LinkError(f"the buffer holds {core.setpoints.capacity} points; stream a longer trajectory")
            self._pending = message, frame
            return []
        self._time = at
        self._next += 1
        self._known.append(zlib.crc32(frame))
        if sequence == m.END:
            core.finish()
        return [self.reply(message.type, m.SUCCESS)]

    def _read(self, message: Message) -> tuple[Point, float]:
        """Return a point with its time since the start of the trajectory."""
        n = len(self.emulator.limits.names)
        q = np.array(message.q[:n])
        if message.type == m.POINT and len(message.q) != n:
            raise LinkError(f"a POINT has {len(message.q)} joints; this robot has {n}")
        if message.type == m.JOINT_TRAJ_PT:
            if message.duration < 0.0 or not 0.0 <= message.velocity <= 1.0:
                raise LinkError(
                    f"a point has velocity {message.velocity:g} and duration {message.duration:g}; 0 to 1, and no less than 0"
                )
            at = self._time + message.duration
            return Point(at, q), at
        if not message.valid & m.TIME or not message.valid & m.POSITION:
            raise LinkError(f"valid_fields is {message.valid}; a point needs time (1) and position (2) at least")
        v = np.array(message.v[:n]) if message.valid & m.VELOCITY else None
        a = np.array(message.a[:n]) if v is not None and message.valid & m.ACCELERATION else None
        return Point(message.time, q, v, a), message.time

    def _whole(self, message: Message) -> list[bytes]:
        core = self.emulator
        if len(message.points) > core.setpoints.capacity:
            raise LinkError(
                f"a JOINT_TRAJ has {len(message.points)} points; the buffer holds {core.setpoints.capacity}, stream it"
            )
        core.begin(hold=True)
        self._forget()
        for part in message.points:
            point, self._time = self._read(part)
            core.push(point)
        core.finish()
        return [self.reply(message.type, m.SUCCESS)]


class FeedbackTask(Task):
    """Tells one client where the robot is, unasked; every sample to those that have subscribed."""

    def __init__(self, emulator: Emulator, order: str = "little", full: bool = False) -> None:
        super().__init__(emulator, order)
        self.full, self.subscribed = full, False
        self._sequence = 0

    def answer(self, message: Message, frame: bytes) -> list[bytes]:
        """Return the answers to a request."""
        if message.type == m.SUBSCRIBE:
            self.subscribed = True
            return [self.reply(message.type, m.SUCCESS)]
        return super().answer(message, frame)

    def topics(self, last: Array | None) -> list[bytes]:
        """Return the periodic topics; `last` is the newest row of `Samples.table`, None for none yet."""
        core = self.emulator
        out = []
        if last is not None and (last.size - 3) // 4 <= m.SLOTS:
            n = (last.size - 3) // 4
            q, v = tuple(last[3 : 3 + n]), tuple(last[3 + n : 3 + 2 * n])
            if self.full:
                valid = m.TIME | m.POSITION | m.VELOCITY
                out.append(Message(m.JOINT_FEEDBACK, m.TOPIC, valid=valid, time=float(last[1]), q=q, v=v))
            else:
                out.append(Message(m.JOINT_POSITION, m.TOPIC, sequence=self._sequence, q=q))
            self._sequence = (self._sequence + 1) % (1 << 31)
        out.append(Message(m.STATUS, m.TOPIC, status=core.glance()))  # samples do not wait for it
        return [m.encode(message, self.order) for message in out]
