"""A simple_message controller on TCP or UDP: tasks (frames in, frames out) and the sockets around them, in one thread.

The motion task stores points in a buffer of 100 and answers each with its header [Pagani2022, Appendix A]; the answer to a
point that does not fit yet is delayed, so the controller sets the rate. A repeated point is answered again and executed
once; a point after a gap is refused. Points may come as requests or, from a downloader, as topics, which have no answer.

A client that only listens is served while the port is open. The robot belongs to the client that sent the first
point; a connection alone reserves nothing.

simple_message has no authentication: the server listens on this computer only, or to named peers.
"""

from __future__ import annotations

import contextlib
import json
import math
import socket
import struct
import time
import zlib
from array import array
from collections.abc import Callable

import numpy as np

from dynident.arrays import Array
from dynident.errors import LinkError
from dynident_lab.link import simple_messages as m
from dynident_lab.link.emulator import Emulator
from dynident_lab.link.plant import VERSION
from dynident_lab.link.setpoints import Point
from dynident_lab.link.simple_messages import Message
from dynident_lab.link.sockets import Client, Server, allowed_peers, open_sockets

OWN = (m.RESET, m.RELEASE, m.REST, m.REST_OVER, m.WATCHDOG)  # COMMAND of the client with the robot; any client may stop it
STARTS = (0, m.START_DOWNLOAD, m.START_STREAMING)
SPECIAL = (m.START_DOWNLOAD, m.START_STREAMING, m.END, m.STOP)
POINTS = (m.JOINT_TRAJ_PT, m.JOINT_TRAJ_PT_FULL, m.JOINT_TRAJ)

Ignore = Callable[[str, str], None]  # with the reason and the details of this message


class Task:
    """Common answers of both tasks: PING, GET_VERSION, IDENTITY and COMMAND; other messages get FAILURE."""

    as_topics: tuple[int, ...] = ()  # types that may come as topics

    def __init__(self, emulator: Emulator, order: str = "little", ignore: Ignore = lambda *_: None) -> None:
        self.emulator, self.order, self._ignore = emulator, order, ignore
        self.malformed = self.refused = self.repeated = 0
        self.owner = False  # the client has the robot
        self.gone = False  # the client has said goodbye

    def receive(self, frame: bytes) -> list[bytes]:
        """Return the answers to one frame; unanswerable frames are counted and logged."""
        try:
            message = m.decode(frame, self.order)
        except LinkError as error:
            self.malformed += 1
            self._ignore("malformed message", str(error))
            return []
        if message.comm != m.REQUEST and not (message.comm == m.TOPIC and message.type in self.as_topics):
            self._ignore("message that is not a request", f"type {message.type}, COMM_TYPE {message.comm}")
            return []
        return self.respond(message, lambda: self.answer(message, frame))

    def respond(self, message: Message, action: Callable[[], list[bytes]]) -> list[bytes]:
        """Execute the request of a message, and return the answers; a topic has none."""
        try:
            answers = action()
        except LinkError as error:
            self.refused += 1
            if message.comm == m.TOPIC:
                self._ignore("refused topic", str(error))
                self.abandon()
            answers = [self.reply(message.type, m.FAILURE, str(error).encode())]
        return answers if message.comm == m.REQUEST else []

    def abandon(self) -> None:
        """Abandon a motion started by topics: their sender cannot know that one of them was refused."""

    def reply(self, kind: int, code: int, data: bytes = b"") -> bytes:
        """Return a reply: only the header without data."""
        return m.encode(Message(kind, m.REPLY, code, data=data), self.order)

    def answer(self, message: Message, frame: bytes) -> list[bytes]:
        """Return the answers to a request; `LinkError` becomes a FAILURE with its message."""
        del frame
        kind, core = message.type, self.emulator
        if kind == m.PING:
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
                m.WATCHDOG: lambda: core.watch(duration),
            }
            if code not in actions:
                raise LinkError(f"COMMAND {code} is unknown; it is 1 to 7")
            if code in OWN and not self.owner:
                raise LinkError(f"COMMAND {code} is for the client that owns the robot; this client does not")
            actions[code]()
            return [self.reply(kind, m.SUCCESS)]
        raise LinkError(f"message type {kind} is not served on this port")


class MotionTask(Task):
    """Receives trajectory points of one client; `claim` requests the robot, which another client may have."""

    as_topics = POINTS

    def __init__(
        self,
        emulator: Emulator,
        order: str = "little",
        ignore: Ignore = lambda *_: None,
        claim: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__(emulator, order, ignore)
        self._claim = claim
        self._next = 0
        self._time = 0.0
        self._known = array("L")  # checksums of the accepted points of this trajectory
        self._pending: tuple[Message, bytes] | None = None

    def answer(self, message: Message, frame: bytes) -> list[bytes]:
        """Return the answers to a request."""
        if message.type in (*POINTS, m.POINT, m.IDENTITY):
            self.owner = self.owner or self._claim()
        if message.type not in (*POINTS, m.POINT):
            return super().answer(message, frame)
        if not self.owner:
            raise LinkError(f"another client ({self.emulator.client}) controls this robot; close it first")
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
            return []  # its answer follows when there is space
        return self._point(message, frame)

    def poll(self) -> list[bytes]:
        """Return the answer to the point that waits for space, if it fits now."""
        if self._pending is None:
            return []
        (message, frame), self._pending = self._pending, None
        return self.respond(message, lambda: self._point(message, frame))

    def abandon(self) -> None:
        """Stop a trajectory with a missing point."""
        if self.owner and not self.emulator.setpoints.ended:
            self.emulator.stop()
            self._forget()

    def _taken(self, sequence: int, frame: bytes) -> bool:
        """Return whether this packet was accepted before."""
        place = {m.START_DOWNLOAD: 0, m.START_STREAMING: 0, m.END: len(self._known) - 1}.get(sequence, sequence)
        return 0 <= place < len(self._known) and self._known[place] == zlib.crc32(frame)

    def _again(self, message: Message) -> bool:
        """Return whether a known first point starts the same trajectory again, instead of being a copy of the packet."""
        return message.sequence in STARTS and self._next > 1 and not self.emulator.setpoints.moving

    def _forget(self) -> None:
        self._next, self._time, self._known, self._pending = 0, 0.0, array("L"), None

    def _point(self, message: Message, frame: bytes) -> list[bytes]:
        core, sequence = self.emulator, message.sequence
        if sequence in STARTS:
            core.begin(hold=sequence == m.START_DOWNLOAD, marked=message.type == m.POINT)
            self._forget()
        elif sequence < 0 and sequence not in SPECIAL:
            raise LinkError(f"sequence is {sequence}; special numbers are -1 to -4")
        elif sequence not in (self._next, m.END):
            raise LinkError(f"point {sequence} came where {self._next} is expected; no point may be skipped")
        elif self._pending is not None:
            raise LinkError(f"the buffer holds {core.setpoints.capacity} points and is full; wait for the last answer")
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
    """Sends one client periodic states of the robot, and every sample after a subscription."""

    def __init__(self, emulator: Emulator, order: str = "little", ignore: Ignore = lambda *_: None, full: bool = False) -> None:
        super().__init__(emulator, order, ignore)
        self.full, self.subscribed = full, False
        self._sequence = 0

    def answer(self, message: Message, frame: bytes) -> list[bytes]:
        """Return the answers to a request."""
        if message.type == m.SUBSCRIBE:
            self.subscribed = True
            return [self.reply(message.type, m.SUCCESS)]
        return super().answer(message, frame)

    def topics(self, last: Array | None) -> list[bytes]:
        """Return the periodic topics; `last` is the newest row of `Samples.table`, or None."""
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
        out.append(Message(m.STATUS, m.TOPIC, status=core.glance()))  # samples do not wait for the status
        return [m.encode(message, self.order) for message in out]


DATAGRAM = 1400  # bytes
EXPIRY = 10.0  # silence of a UDP client after which SAMPLES, an extension, must be subscribed again [s]
TAKEOVER = 0.5  # silence of a UDP client after which another one may get the robot, if it is at rest [s]


class SimpleServer(Server[Task]):
    """A controller with the simple_message protocol.

    Parameters
    ----------
    emulator : Emulator
        Virtual robot to serve.
    transport : {"tcp", "udp"}
        Transport protocol.
    host : str
        Address to listen on.
    motion_port, state_port : int
        Ports; 0 lets the system choose.
    order : {"little", "big"}
        Byte order.
    feedback : float
        Time between two topics, from 0.001 [s].
    full : bool
        True sends JOINT_FEEDBACK instead of JOINT_POSITION.
    peers : tuple of str
        Addresses that may connect; needed when `host` is on the network.
    clock : callable
        Clock of the host [s], for silence and the time between topics.
    """

    def __init__(
        self,
        emulator: Emulator,
        transport: str = "tcp",
        host: str = "127.0.0.1",
        motion_port: int = 11000,
        state_port: int = 11002,
        *,
        order: str = "little",
        feedback: float = 0.05,
        full: bool = False,
        peers: tuple[str, ...] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if transport not in ("tcp", "udp"):
            raise LinkError(f"transport is '{transport}'; it is tcp or udp")
        if order not in m.ORDERS:
            raise LinkError(f"order is '{order}'; it is little or big")
        allowed = allowed_peers(host, peers, "simple_message")
        kind = socket.SOCK_STREAM if transport == "tcp" else socket.SOCK_DGRAM
        self.transport, self.feedback, self.full = transport, feedback, full
        self._motion, self._state = open_sockets(host, (motion_port, state_port), kind)
        self.motion_port, self.state_port = self._motion.getsockname()[1], self._state.getsockname()[1]
        super().__init__(emulator, (self._motion, self._state), order, allowed, clock)
        self._last: Array | None = None
        self._topics = FeedbackTask(emulator, order, full=full)  # the same topics for all
        self._next_topic = -math.inf

    # ------------------------------------------------------------------ periodic output
    def _longest(self) -> float:
        return max(0.0, min(super()._longest(), self._next_topic - self.clock()))

    def _tell(self) -> None:
        """Send due data: delayed answers, samples, topics."""
        now, listeners = self.clock(), []
        for client in list(self._clients.values()):
            if isinstance(client.task, MotionTask):
                self._send(client, client.task.poll())
            elif isinstance(client.task, FeedbackTask):
                listeners.append(client)
                client.task.subscribed &= self.transport == "tcp" or now - client.heard <= EXPIRY
        rows = self.emulator.outbox.due()
        if rows is not None:
            self._last = rows[-1]
            subscribed = [c for c in listeners if isinstance(c.task, FeedbackTask) and c.task.subscribed]
            most = 500 if self.transport == "tcp" else max(1, (DATAGRAM - 24) // (8 * rows.shape[1]))
            frames = [m.encode_samples(rows[i : i + most], self.order) for i in range(0, len(rows), most) if subscribed]
            for client in subscribed:  # the same bytes for all
                self._send(client, frames)
        if now >= self._next_topic:
            due = self._next_topic + self.feedback  # absolute: a late turn does not delay the next one
            self._next_topic = due if due > now else now + self.feedback
            topics = self._topics.topics(self._last) if listeners else []
            for client in listeners:
                self._send(client, topics)

    # ------------------------------------------------------------------ input
    def _task(self, port: socket.socket, client: Client[Task]) -> Task:
        def ignore(reason: str, detail: str) -> None:
            self.ignore(reason, client.name, detail)

        if port is self._state:
            return FeedbackTask(self.emulator, self.order, ignore, self.full)
        return MotionTask(self.emulator, self.order, ignore, lambda: self._claim(client))

    def _handle(self, client: Client[Task], frame: bytes) -> None:
        client.spoke = True
        self._send(client, client.task.receive(frame))
        if client is self._owner:
            self.emulator.heard = time.monotonic()
        if client.task.gone:
            self._drop(client)

    def _claim(self, client: Client[Task]) -> bool:
        """Give the robot to a client unless another one has it; over UDP, unless that client was active recently."""
        owner, free = self._owner, self.transport == "udp" and not self.emulator.setpoints.moving
        if owner is not None and free and self.clock() - owner.heard > TAKEOVER:
            owner.task.owner, self._owner = False, None
        return super()._claim(client)

    # ------------------------------------------------------------------ UDP
    def _datagrams(self, port: socket.socket) -> None:
        for _ in range(256):  # bounded, so that samples are not late under a flood
            try:
                data, name = port.recvfrom(65536)
            except BlockingIOError:
                return
            except OSError:
                continue  # an ICMP answer to an earlier packet
            client = self._clients.get((port.fileno(), name))
            if client is None and len(data) != 1:
                self.ignore("datagram without a handshake", f"{name[0]}:{name[1]}")
                continue
            client = client or self._admit(port, name)
            if client is None:
                continue
            client.heard = self.clock()
            if len(data) == 1:  # handshake
                with contextlib.suppress(OSError):
                    port.sendto(data, name)
            else:
                self._handle(client, data)

    def _send(self, client: Client[Task], frames: list[bytes]) -> None:
        if client.wire is not None:
            super()._send(client, frames)
            return
        for frame in frames:
            try:
                client.port.sendto(frame, client.key[1])
            except BlockingIOError:
                self.ignore("datagram rejected by the network", client.name)
            except OSError as error:
                self.ignore("client that disconnected or does not read", client.name, str(error))
                self._drop(client, 4004)
                return
