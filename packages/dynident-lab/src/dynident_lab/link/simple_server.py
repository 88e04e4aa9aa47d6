"""A simple_message controller on TCP or UDP: sockets around `simple_task`, in one thread.

simple_message has no authentication: it listens on this computer only, or to peers that are named.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dynident.errors import LinkError
from dynident_lab.link import simple_messages as m
from dynident_lab.link.emulator import Emulator
from dynident_lab.link.simple_messages import Framer
from dynident_lab.link.simple_task import FeedbackTask, MotionTask, Task
from dynident_lab.link.sockets import MOST_CLIENTS, Connection, Server, check_address, is_local, open_socket

Array = NDArray[np.float64]
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
