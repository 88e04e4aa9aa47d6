"""Common parts of clients and servers: ports, connections, and one thread that serves them."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import select
import selectors
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, Self, TypeVar

from dynident.errors import LinkError
from dynident_lab.link.controller import UnreachableError
from dynident_lab.link.emulator import Emulator
from dynident_lab.link.plant import prefer_thread
from dynident_lab.link.simple_messages import HANDSHAKE, Framer

TIMEOUT = 3.0  # longest wait for an answer [s]
REPEAT = 0.04  # interval of repeated UDP requests [s], grows to five times this value
OUTBOX = 8 << 20  # pending bytes of a slow client before it is dropped
MOST_CLIENTS, MOST_PER_ADDRESS = 64, 32
BACKLOG = 512  # pending connections
MOST_ACCEPTED = 8  # accepted connections per turn, so that others are served in between
KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}  # detects computers that were switched off [s, s, -]
TURN = 0.001  # shortest time between two batches of samples [s]
MOST_HANDLES = 1024  # limit of select

Address = tuple[str, int]
TaskT = TypeVar("TaskT")
log = logging.getLogger(__name__)


class BusyError(UnreachableError):
    """Another client has the controller."""


class Wire:
    """One port of the controller, TCP or UDP: sends and receives frames."""

    def __init__(self, host: str, port: int, transport: str, order: str) -> None:
        self.transport, self.order, self.name = transport, order, f"{host}:{port}"
        self._framer, self._frames = Framer(order), list[bytes]()
        self.sock = open_connection(host, port, TIMEOUT, transport)
        if transport == "udp":
            self._handshake()

    def _handshake(self) -> None:
        """Send one byte until the controller returns it."""
        end, pause = time.monotonic() + TIMEOUT, REPEAT
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                self.sock.send(bytes([HANDSHAKE]))
                if self.receive(pause) == bytes([HANDSHAKE]):
                    return
            time.sleep(0.005)  # the controller polls every 5 ms
            pause = min(1.0, 2.0 * pause)
        self.sock.close()
        raise UnreachableError(f"no controller answers the handshake at {self.name}; check address, port and transport")

    def send(self, frame: bytes) -> None:
        """Send one frame."""
        self.sock.settimeout(TIMEOUT)
        self.sock.send(frame) if self.transport == "udp" else self.sock.sendall(frame)

    def receive(self, timeout: float) -> bytes | None:
        """Return the next frame, or None; `ConnectionError` if the connection is lost."""
        end = time.monotonic() + timeout
        while not self._frames:
            left = end - time.monotonic()
            if left <= 0.0:
                return None
            self.sock.settimeout(max(left, 1e-4))
            try:
                data = self.sock.recv(1 << 18)
            except TimeoutError:
                return None
            if self.transport == "udp":
                return data
            if not data:
                raise ConnectionError("the controller has closed the connection")
            self._frames += self._framer.feed(data)
        return self._frames.pop(0)

    def close(self) -> None:
        """Close it."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


def check_address(host: str, what: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address; the error names its owner if it is invalid."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        raise LinkError(f"alarm 4000: '{host}' is not an IP address of {what}; give one such as 127.0.0.1") from None


def is_local(host: str) -> bool:
    """Return whether an address is local to this computer; the error for an invalid one names alarm 4000."""
    return check_address(host, "this computer").is_loopback


def allowed_peers(host: str, peers: Iterable[str], protocol: str) -> set[str]:
    """Return the addresses that may connect; a server on the network without authentication requires at least one."""
    allowed = {str(check_address(peer, "a peer")) for peer in peers}
    if not is_local(host) and not allowed:
        raise LinkError(
            f"host '{host}' is reachable from the network and {protocol} has no authentication; list the allowed addresses "
            "with peers= (--peer)"
        )
    return allowed


def open_connection(host: str, port: int, timeout: float = 5.0, transport: str = "tcp") -> socket.socket:
    """Return a connection to a controller that sends small messages at once."""
    try:
        if transport == "tcp":
            sock = socket.create_connection((host, port), timeout=timeout)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            info = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
            sock = socket.socket(info[0], socket.SOCK_DGRAM)
            sock.connect(info[4])
        return sock
    except (OSError, OverflowError) as error:
        raise UnreachableError(
            f"no controller answers at {host}:{port} ({error}); check address, port and that it runs"
        ) from error


def open_socket(host: str, port: int, kind: socket.SocketKind) -> socket.socket:
    """Return a bound socket; the error for an unavailable port names alarm 4002."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind)
    try:
        if kind == socket.SOCK_STREAM:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        if kind == socket.SOCK_STREAM:
            sock.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        sock.close()
        raise LinkError(f"alarm 4002: port {port} of {host} cannot be opened ({error}); choose another port") from error
    sock.setblocking(False)
    return sock


def open_sockets(host: str, ports: Iterable[int], kind: socket.SocketKind) -> list[socket.socket]:
    """Return bound sockets; all are closed if one port is unavailable."""
    with contextlib.ExitStack() as opened:
        found = [opened.enter_context(open_socket(host, port, kind)) for port in ports]
        opened.pop_all()
        return found


class Connection:
    """One TCP client: data are sent at once, and wait only if the client is slow."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self._waiting = sock, bytearray()
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEPALIVE.items():
            if hasattr(socket, name):  # not on every system
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def receive(self) -> bytes | None:
        """Return the received data, or None; empty if the client has left."""
        try:
            return self.sock.recv(1 << 18)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def send(self, data: bytes = b"") -> None:
        """Send data after the pending ones; `OSError` if the client has left, or is too slow."""
        if self._waiting:
            self._waiting += data
            data = bytes(self._waiting[: 1 << 18])
        try:
            sent = self.sock.send(data) if data else 0
        except BlockingIOError:
            sent = 0
        if self._waiting:
            del self._waiting[:sent]
        elif sent < len(data):
            self._waiting += data[sent:]
        if len(self._waiting) > OUTBOX:
            raise ConnectionAbortedError("the client does not read its data")

    @property
    def behind(self) -> bool:
        """True while data are pending."""
        return bool(self._waiting)


@dataclass(eq=False)
class Client(Generic[TaskT]):
    """One client of one port."""

    port: socket.socket
    key: tuple[int, Address]  # handle of its socket, which is that of the port for UDP, and its address
    framer: Framer | None  # None for a stream without messages
    heard: float  # time of its last message [s, host]
    wire: Connection | None = None  # None for UDP
    spoke: bool = False  # True after its first whole message
    gone: bool = False
    task: TaskT = field(init=False)

    @property
    def name(self) -> str:
        """Address and port."""
        return f"{self.key[1][0]}:{self.key[1][1]}"


class Server(ABC, Generic[TaskT]):
    """A thread that serves a robot on some ports.

    A client may be silent for any time. If one address, or all addresses together, have too many clients of a port,
    the client silent for longest is dropped for the next, but never the one that has the robot.
    """

    def __init__(
        self,
        emulator: Emulator,
        ports: Iterable[socket.socket],
        order: str = "little",
        peers: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.emulator, self._ports, self.order, self.allowed, self.clock = emulator, tuple(ports), order, set(peers), clock
        self.ignored: Counter[str] = Counter()  # messages and clients not served, by reason
        self._clients: dict[tuple[int, Address], Client[TaskT]] = {}
        self._owner: Client[TaskT] | None = None  # client that has the robot
        self._selector = selectors.DefaultSelector()
        for sock in self._ports:
            self._selector.register(sock, selectors.EVENT_READ, sock)
        self._deadline = 0.0  # of the last turn for samples [s, host]
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def dropped(self) -> int:
        """Number of messages and clients not served."""
        return self.ignored.total()

    def ignore(self, reason: str, who: str, detail: str = "") -> None:
        """Count messages and clients not served; the 1st, 10th, 100th ... of each reason is logged."""
        self.ignored[reason] += 1
        if str(self.ignored[reason]).strip("0") == "1":
            log.warning("%s from %s%s (%d so far)", reason, who, detail and f": {detail}", self.ignored[reason])

    def start(self) -> Self:
        """Serve in a thread, and return the server."""
        self.emulator.start()
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop serving and bring the robot to rest."""
        self._done.set()
        if self._thread is not None:
            self._thread.join(timeout=5.0)
        for client in list(self._clients.values()):
            self._drop(client)
        for sock in self._ports:
            sock.close()
        self._selector.close()
        self.emulator.close()

    # ------------------------------------------------------------------ the loop
    def _run(self) -> None:
        prefer_thread()
        while not self._done.is_set():
            self._turn()

    def _turn(self) -> None:
        """Process received data, and send due data."""
        for key, events in self._events(self._longest()):
            if isinstance(key.data, Client):
                self._serve(key.data, events)
            elif key.data.type == socket.SOCK_STREAM:
                self._accept(key.data)
            else:
                self._datagrams(key.data)
        self._tell()

    def _events(self, longest: float) -> list[tuple[selectors.SelectorKey, int]]:
        """Return the events, at the latest when samples are due, which are sent at most once per millisecond."""
        now = time.monotonic()
        deadline = max(
            now + self.emulator.outbox.until_due(), self._deadline + TURN
        )  # absolute: a late turn does not delay the next
        wait = min(longest, max(deadline - now, 0.0))
        handle = self._selector.fileno() if hasattr(self._selector, "fileno") else MOST_HANDLES
        if 0.0 < wait < 2.0 * TURN and handle < MOST_HANDLES:  # epoll counts milliseconds, select microseconds
            select.select([handle], [], [], wait)
            wait = 0.0
        events = self._selector.select(wait)
        if (now := time.monotonic()) >= deadline:
            self._deadline = max(deadline, now - TURN)
        return events

    def _longest(self) -> float:
        """Return the longest time that the next turn may wait for events [s]."""
        return 0.002 if self._clients else 0.01

    @abstractmethod
    def _tell(self) -> None:
        """Send due data."""

    @abstractmethod
    def _handle(self, client: Client[TaskT], frame: bytes) -> None:
        """Answer one frame of a client, as its framer returns it."""

    def _framer(self, port: socket.socket) -> Framer | None:
        """Return the framer for the stream of a new client of a port."""
        del port
        return Framer(self.order)

    @abstractmethod
    def _task(self, port: socket.socket, client: Client[TaskT]) -> TaskT:
        """Return the task of a new client."""

    # ------------------------------------------------------------------ clients
    def _admit(self, port: socket.socket, name: Address, wire: Connection | None = None) -> Client[TaskT] | None:
        """Return a new client; None for an address without permission."""
        if self.allowed and name[0] not in self.allowed:
            self.ignore("client of an address that is not a peer", f"{name[0]}:{name[1]}")
            return None
        all_ = [client for client in self._clients.values() if client.port is port]
        same = [client for client in all_ if client.key[1][0] == name[0]]
        for group, most in ((same, MOST_PER_ADDRESS), (all_, MOST_CLIENTS)):
            if len(group) >= most:
                silent = min((c for c in group if c is not self._owner), key=lambda c: (c.spoke, c.heard))
                self.ignore("too many clients: the longest idle client is disconnected", silent.name)
                self._drop(silent)
        handle = (wire.sock if wire is not None else port).fileno()
        client = Client[TaskT](port, (handle, name), self._framer(port), self.clock(), wire)
        client.task = self._task(port, client)
        self._clients[client.key] = client
        return client

    def _accept(self, port: socket.socket) -> None:
        for _ in range(MOST_ACCEPTED):
            try:
                sock, name = port.accept()
            except OSError:
                return
            client = self._admit(port, name, Connection(sock))
            if client is None:
                sock.close()
            else:
                self._selector.register(sock, selectors.EVENT_READ, client)
                self._greet(client)
                self._serve(client, selectors.EVENT_READ)  # process its data at once, so that it does not count as silent

    def _greet(self, client: Client[TaskT]) -> None:
        """Send the greeting of the protocol, if any."""

    def _datagrams(self, port: socket.socket) -> None:
        raise NotImplementedError

    def _serve(self, client: Client[TaskT], events: int) -> None:
        if client.gone or client.wire is None:
            return
        if events & selectors.EVENT_WRITE:
            self._send(client, [])
        if not events & selectors.EVENT_READ or (data := client.wire.receive()) is None:
            return
        if not data:
            self._drop(client)
            return
        try:
            frames = [data] if client.framer is None else client.framer.feed(data)
        except LinkError as error:  # the rest of the stream cannot be read
            self.ignore("stream that is not a sequence of messages", client.name, str(error))
            self._drop(client)
            return
        for frame in frames:
            if not client.gone:
                client.heard = self.clock()
                self._handle(client, frame)

    def _send(self, client: Client[TaskT], frames: list[bytes]) -> None:
        wire = client.wire
        if client.gone or wire is None:
            return
        data, behind = frames[0] if len(frames) == 1 else b"".join(frames), wire.behind
        if not data and not behind:
            return
        try:
            wire.send(data)
        except OSError as error:
            self.ignore("client that disconnected or does not read", client.name, str(error))
            self._drop(client, 4004)
            return
        if wire.behind != behind:
            self._selector.modify(wire.sock, selectors.EVENT_READ | (selectors.EVENT_WRITE if wire.behind else 0), client)

    def _claim(self, client: Client[TaskT]) -> bool:
        """Give the robot to a client unless another one has it."""
        if self._owner is None:
            self._own(client)
        return self._owner is client

    def _own(self, client: Client[TaskT]) -> None:
        """Give the robot to a client; it has no watchdog until it requests one."""
        self._owner, self.emulator.client, self.emulator.watchdog = client, client.name, 0.0

    def _drop(self, client: Client[TaskT], alarm: int = 4003) -> None:
        """Remove a client; a robot left in motion stops with an alarm."""
        client.gone = True
        self._clients.pop(client.key, None)
        if client.wire is not None:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(client.wire.sock)
            client.wire.sock.close()
        if client is self._owner:
            self._owner, self.emulator.client, self.emulator.watchdog = None, "", 0.0
            if self.emulator.setpoints.moving:
                self.emulator.alarm(alarm)
