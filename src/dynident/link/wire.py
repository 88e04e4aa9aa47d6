"""One port of a simple_message controller: frames out, frames in, over TCP or UDP."""

from __future__ import annotations

import contextlib
import socket
import time

from dynident.link import messages as m
from dynident.link.controller import UnreachableError
from dynident.link.messages import Framer

TIMEOUT = 3.0  # of an answer [s]
REPEAT = 0.04  # of a UDP request without an answer [s], grows to five times that


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
                self.sock.send(bytes([m.HANDSHAKE]))
                if self.receive(pause) == bytes([m.HANDSHAKE]):
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
