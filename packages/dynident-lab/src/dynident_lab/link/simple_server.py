"""A simple_message controller on TCP or UDP: tasks (frames in, frames out) and the sockets around them, in one thread.

The motion task stores points in a buffer of 100 and answers each with its header [Pagani2022, Appendix A]; the answer to a
point that does not fit yet waits, so the controller sets the rate. A point that comes twice is answered twice and executed
once; one that skips another is refused.

simple_message has no authentication: it listens on this computer only, or to peers that are named.
"""

from __future__ import annotations

import contextlib
import json
import math
import selectors
import socket
import struct
import time
import zlib
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dynident.arrays import Array
from dynident.errors import LinkError
from dynident_lab.link import simple_messages as m
from dynident_lab.link.emulator import Emulator
from dynident_lab.link.plant import VERSION
from dynident_lab.link.setpoints import Point
from dynident_lab.link.simple_messages import Framer, Message
from dynident_lab.link.sockets import MOST_CLIENTS, Connection, Server, check_address, is_local, open_socket

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


Address = tuple[str, int]

DATAGRAM = 1400  # bytes
EXPIRY = 10.0  # silence after which a UDP peer is forgotten [s]
TAKEOVER = 0.5  # silence after which another UDP peer may have the motion, if the robot rests [s]


@dataclass(eq=False)
class _Peer:
    """One client of one port."""

    name: Address
    task: Task
    framer: Framer
    wire: Connection | None = None  # None for UDP
    heard: float = field(default_factory=time.monotonic)


class SimpleServer(Server):
    """A controller that speaks simple_message.

    Parameters
    ----------
    emulator : Emulator
        The robot.
    transport : {"tcp", "udp"}
        How.
    host : str
        Address to listen on.
    motion_port, state_port : int
        Ports; 0 lets the system choose.
    order : {"little", "big"}
        Byte order.
    feedback : float
        Time between two topics [s].
    full : bool
        True sends JOINT_FEEDBACK instead of JOINT_POSITION.
    peers : tuple of str
        Addresses that may connect; needed when `host` is on the network.
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
    ) -> None:
        if transport not in ("tcp", "udp"):
            raise LinkError(f"transport is '{transport}'; it is tcp or udp")
        if order not in m.ORDERS:
            raise LinkError(f"order is '{order}'; it is little or big")
        if not is_local(host) and not peers:
            raise LinkError(
                f"host '{host}' is on the network; simple_message has no key, so name who may speak with peers= (--peer)"
            )
        for peer in peers:
            check_address(peer, "a peer")
        kind = socket.SOCK_STREAM if transport == "tcp" else socket.SOCK_DGRAM
        self.transport, self.order, self.feedback, self.full = transport, order, feedback, full
        self.allowed = set(peers)
        self._motion = open_socket(host, motion_port, kind)
        try:
            self._state = open_socket(host, state_port, kind)
        except LinkError:
            self._motion.close()
            raise
        self.motion_port, self.state_port = self._motion.getsockname()[1], self._state.getsockname()[1]
        super().__init__(emulator, (self._motion, self._state))
        self._peers: dict[tuple[int, Address], _Peer] = {}
        self._last: Array | None = None
        self._topics = FeedbackTask(emulator, order, full)  # says the same to all
        self._next_topic = 0.0

    def _leave(self) -> None:
        for peer in list(self._peers.values()):
            self._drop(peer)

    # ------------------------------------------------------------------ the loop
    def _turn(self) -> None:
        for key, events in self._events(0.002 if self._peers else 0.005):
            if isinstance(key.data, _Peer):
                self._serve(key.data, events)
            elif self.transport == "tcp":
                self._accept(key.data)
            else:
                self._datagrams(key.data)
        self._tell()

    def _tell(self) -> None:
        """Send what is due: waiting answers, samples, topics."""
        now = time.monotonic()
        for peer in list(self._peers.values()):
            if isinstance(peer.task, MotionTask):
                self._send(peer, peer.task.poll())
            if self.transport == "udp" and now - peer.heard > EXPIRY:
                self._drop(peer)
        rows = self.emulator.outbox.due()
        if rows is not None:
            self._last = rows[-1]
            listeners = [p for p in self._peers.values() if isinstance(p.task, FeedbackTask) and p.task.subscribed]
            if listeners:
                most = 500 if self.transport == "tcp" else max(1, (DATAGRAM - 24) // (8 * rows.shape[1]))
                frames = [m.encode_samples(rows[i : i + most], self.order) for i in range(0, len(rows), most)]
                for peer in listeners:  # the same bytes for all
                    self._send(peer, frames)
        if now >= self._next_topic:
            self._next_topic = now + self.feedback
            told = [p for p in self._peers.values() if isinstance(p.task, FeedbackTask)]
            topics = self._topics.topics(self._last) if told else []
            for peer in told:
                self._send(peer, topics)

    def _task(self, sock: socket.socket, name: Address) -> Task:
        if sock is self._state:
            return FeedbackTask(self.emulator, self.order, self.full)
        task = MotionTask(self.emulator, self.order, owner=False)
        if not self.emulator.client:
            self._own(task, name)
        return task

    def _own(self, task: MotionTask, name: Address) -> None:
        task.owner, self.emulator.client, self.emulator.pinged = True, f"{name[0]}:{name[1]}", 0.0

    def _handle(self, peer: _Peer, frame: bytes) -> None:
        peer.heard = time.monotonic()
        if isinstance(peer.task, MotionTask) and not peer.task.owner and not self.emulator.client:
            self._own(peer.task, peer.name)  # who had the robot has left
        before = peer.task.malformed
        answers = peer.task.receive(frame)
        self.dropped += peer.task.malformed - before
        if isinstance(peer.task, MotionTask) and peer.task.owner and (self.emulator.pinged or peer.task.pings):
            self.emulator.pinged = peer.heard  # who pings is expected to go on
        self._send(peer, answers)
        if peer.task.gone:
            self._drop(peer)

    # ------------------------------------------------------------------ TCP
    def _accept(self, listener: socket.socket) -> None:
        try:
            sock, name = listener.accept()
        except OSError:
            return
        if (self.allowed and name[0] not in self.allowed) or len(self._peers) >= MOST_CLIENTS:
            self.dropped += 1
            sock.close()
            return
        peer = _Peer(name, self._task(listener, name), Framer(self.order), Connection(sock))
        self._peers[sock.fileno(), name] = peer
        self._selector.register(sock, selectors.EVENT_READ, peer)

    def _serve(self, peer: _Peer, events: int) -> None:
        assert peer.wire is not None
        if events & selectors.EVENT_WRITE:
            self._send(peer, [])
        if not events & selectors.EVENT_READ or (data := peer.wire.receive()) is None:
            return
        if not data:
            self._drop(peer)
            return
        try:
            for frame in peer.framer.feed(data):
                if not peer.task.gone:
                    self._handle(peer, frame)
        except LinkError:  # the stream is lost: nothing after it can be read
            self.dropped += 1
            self._drop(peer)

    # ------------------------------------------------------------------ UDP
    def _datagrams(self, sock: socket.socket) -> None:
        for _ in range(256):  # bounded, so that samples are not late under a flood
            try:
                data, name = sock.recvfrom(65536)
            except BlockingIOError:
                return
            except OSError:
                continue  # an ICMP answer to something sent before
            if self.allowed and name[0] not in self.allowed:
                self.dropped += 1
                continue
            peer = self._peers.get((sock.fileno(), name))
            if len(data) == 1:  # handshake
                peer = peer or self._greet(sock, name)
                if peer is not None:
                    peer.heard = time.monotonic()
                    with contextlib.suppress(OSError):
                        sock.sendto(data, name)
            elif peer is None:
                self.dropped += 1
            else:
                self._handle(peer, data)

    def _greet(self, sock: socket.socket, name: Address) -> _Peer | None:
        if len(self._peers) >= MOST_CLIENTS:
            self.dropped += 1
            return None
        if sock is self._motion and not self.emulator.setpoints.moving:
            for old in [p for p in self._peers.values() if isinstance(p.task, MotionTask) and p.task.owner]:
                if time.monotonic() - old.heard > TAKEOVER:
                    self._drop(old)
        peer = _Peer(name, self._task(sock, name), Framer(self.order))
        self._peers[sock.fileno(), name] = peer
        return peer

    # ------------------------------------------------------------------ both
    def _send(self, peer: _Peer, frames: list[bytes]) -> None:
        if peer.wire is not None:
            self._write(peer, peer.wire, frames[0] if len(frames) == 1 else b"".join(frames))
            return
        sock = self._motion if isinstance(peer.task, MotionTask) else self._state
        for frame in frames:
            try:
                sock.sendto(frame, peer.name)
            except BlockingIOError:
                self.dropped += 1
            except OSError:
                self._lost(peer, 4004)
                return

    def _write(self, peer: _Peer, wire: Connection, data: bytes) -> None:
        behind = wire.behind
        if not data and not behind:
            return
        try:
            wire.send(data)
        except OSError:
            self.dropped += 1
            self._lost(peer, 4004)
            return
        if wire.behind != behind:
            self._selector.modify(wire.sock, selectors.EVENT_READ | (selectors.EVENT_WRITE if wire.behind else 0), peer)

    def _lost(self, peer: _Peer, code: int) -> None:
        if isinstance(peer.task, MotionTask) and peer.task.owner and self.emulator.setpoints.moving:
            self.emulator.alarm(code)
        self._drop(peer)

    def _drop(self, peer: _Peer) -> None:
        self._peers = {key: other for key, other in self._peers.items() if other is not peer}
        if isinstance(peer.task, MotionTask) and peer.task.owner:
            self.emulator.client, self.emulator.pinged = "", 0.0
            if self.emulator.setpoints.moving:
                self.emulator.alarm(4003)  # a client that leaves a moving robot
        if peer.wire is not None:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(peer.wire.sock)
            peer.wire.sock.close()
