"""What clients and servers of both protocols share: ports, connections, and one thread that serves them."""

from __future__ import annotations

import contextlib
import ipaddress
import select
import selectors
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Self

from dynident.errors import LinkError
from dynident_lab.link.controller import UnreachableError
from dynident_lab.link.emulator import Emulator
from dynident_lab.link.simple_messages import HANDSHAKE, Framer

TIMEOUT = 3.0  # of an answer [s]
REPEAT = 0.04  # of a UDP request without an answer [s], grows to five times that
OUTBOX = 8 << 20  # bytes that wait for a slow client before it is dropped
MOST_CLIENTS = 64
TURN = 0.001  # least time between two batches of samples [s]
MOST_HANDLES = 1024  # that select can watch


class BusyError(UnreachableError):
    """Another client has the controller."""


class Wire:
    """One port of the controller: frames out, frames in; TCP or UDP."""

    def __init__(self, host: str, port: int, transport: str, order: str) -> None:
        self.transport, self.order, self.name = transport, order, f"{host}:{port}"
        kind = socket.SOCK_STREAM if transport == "tcp" else socket.SOCK_DGRAM
        try:
            info = socket.getaddrinfo(host, port, type=kind)[0]
            self.sock = socket.socket(info[0], kind)
            self.sock.settimeout(TIMEOUT)
            self.sock.connect(info[4])
        except (OSError, OverflowError) as error:
            raise UnreachableError(
                f"no controller answers at {self.name} ({error}); check address, port and that it runs"
            ) from error
        self._framer, self._frames = Framer(order), []  # type: ignore[var-annotated]
        if transport == "tcp":
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            self._handshake()

    def _handshake(self) -> None:
        """Send one byte until it comes back."""
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
        """Return the next frame, None when nothing has come; `ConnectionError` when the wire is cut."""
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
        return bytes(self._frames.pop(0))

    def close(self) -> None:
        """Close it."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


def check_address(host: str, what: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address; the sentence says whose it was, when it is none."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        raise LinkError(f"alarm 4000: '{host}' is no IP address of {what}; give one such as 127.0.0.1") from None


def is_local(host: str) -> bool:
    """Tell whether an address is one of this computer alone; the sentence names alarm 4000 when it is none."""
    return check_address(host, "this computer").is_loopback


def open_socket(host: str, port: int, kind: socket.SocketKind) -> socket.socket:
    """Return a bound socket; the sentence names alarm 4002 for a port that cannot be opened."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind)
    try:
        if kind == socket.SOCK_STREAM:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        if kind == socket.SOCK_STREAM:
            sock.listen(MOST_CLIENTS)
    except (OSError, OverflowError) as error:
        sock.close()
        raise LinkError(f"alarm 4002: port {port} of {host} cannot be opened ({error}); choose another port") from error
    sock.setblocking(False)
    return sock


class Connection:
    """One TCP client: what is sent goes out at once, and waits only where the client is slow."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self._waiting = sock, bytearray()
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def receive(self) -> bytes | None:
        """Return what has come, None when nothing has; empty when the client has left."""
        try:
            return self.sock.recv(1 << 18)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def send(self, data: bytes = b"") -> None:
        """Send some bytes after those that wait; `OSError` when the client has left, or is so slow that it is given up."""
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
            raise ConnectionAbortedError("the client does not read what it is sent")

    @property
    def behind(self) -> bool:
        """True while bytes wait."""
        return bool(self._waiting)


class Server(ABC):
    """A thread that serves a robot on some ports."""

    def __init__(self, emulator: Emulator, ports: Iterable[socket.socket]) -> None:
        self.emulator, self._ports = emulator, tuple(ports)
        self.dropped = 0  # packets of strangers, malformed ones, slow clients
        self._selector = selectors.DefaultSelector()
        for sock in self._ports:
            self._selector.register(sock, selectors.EVENT_READ, sock)
        self._deadline = 0.0  # of the last turn for samples [s, host]
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

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
        self._leave()
        for sock in self._ports:
            sock.close()
        self._selector.close()
        self.emulator.close()

    def _events(self, longest: float) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what has come, at the latest when samples are due; they go out once per millisecond at most."""
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

    def _run(self) -> None:
        while not self._done.is_set():
            self._turn()

    @abstractmethod
    def _turn(self) -> None:
        """Serve what has come, and send what is due."""

    @abstractmethod
    def _leave(self) -> None:
        """Drop all clients."""
