"""The server of Lynx on TCP: sockets around `lynx_task`, in one thread; one client at a time."""

from __future__ import annotations

import contextlib
import selectors
import socket
import time

from dynident.errors import LinkError
from dynident.link import lynx_messages as x
from dynident.link.emulator import Emulator
from dynident.link.lynx_messages import Frame
from dynident.link.lynx_task import LynxTask
from dynident.link.messages import Framer
from dynident.link.sockets import Connection, Server, is_local, open_socket


class LynxServer(Server):
    """A controller that speaks Lynx.

    Parameters
    ----------
    emulator : Emulator
        The robot.
    host : str
        Address to listen on; one on the network needs a key.
    port : int
        Port; 0 lets the system choose.
    key : bytes
        Shared key; empty for none.
    """

    def __init__(self, emulator: Emulator, host: str = "127.0.0.1", port: int = 12000, key: bytes = b"") -> None:
        if not is_local(host) and not key:
            raise LinkError(f"host '{host}' is on the network; lynx needs a shared key there, give key= (--key-file)")
        self._listener = open_socket(host, port, socket.SOCK_STREAM)
        super().__init__(emulator, (self._listener,))
        self.port, self._key = self._listener.getsockname()[1], key
        self._client: Connection | None = None
        self._task: LynxTask | None = None
        self._framer = Framer()

    def start(self) -> LynxServer:
        """Serve in a thread, and return the emulator."""
        self._start()
        return self

    def _leave(self) -> None:
        self._drop()

    def _turn(self) -> None:
        for key, _ in self._events(0.002 if self._client else 0.01):
            if key.fileobj is self._listener:
                self._accept()
            else:
                self._receive()
        rows = self.emulator.due()
        if rows is not None and self._task is not None and self._task.acquire:
            self._send([self._task.measurements(rows)])
        elif self._client is not None and self._client.behind:
            self._send([])

    def _accept(self) -> None:
        try:
            sock, name = self._listener.accept()
        except OSError:
            return
        if self._client is not None:
            reason = f"another client ({self.emulator.client}) has this controller".encode()
            with contextlib.suppress(OSError):
                sock.send(x.encode(Frame(x.SESSION, x.REFUSED, data=reason)))
            sock.close()
            self.dropped += 1
            return
        self._client, self._task, self._framer = Connection(sock), LynxTask(self.emulator, self._key), Framer()
        self.emulator.client = f"{name[0]}:{name[1]}"
        self._selector.register(sock, selectors.EVENT_READ)
        self._send([self._task.hello()])

    def _receive(self) -> None:
        if self._client is None or (data := self._client.receive()) is None:
            return
        if not data:
            self._drop()
            return
        try:
            frames = self._framer.feed(data)
        except LinkError:
            self.dropped += 1
            self._drop()
            return
        for frame in frames:
            task = self._task
            if task is None:
                return
            before = task.malformed
            answers = task.receive(frame)
            self.dropped += task.malformed - before
            if task.state == "operation":
                self.emulator.pinged = time.monotonic()  # a client of Lynx says regularly that it is alive
            self._send(answers)
            if task.state == "terminate":
                self._drop()

    def _send(self, frames: list[bytes]) -> None:
        if self._client is None:
            return
        try:
            self._client.send(b"".join(frames))
        except OSError:
            self.dropped += 1
            self._drop()

    def _drop(self) -> None:
        if self._client is None:
            return
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(self._client.sock)
        self._client.sock.close()
        self._client = self._task = None
        self.emulator.client, self.emulator.pinged = "", 0.0
        if self.emulator.setpoints.moving:
            self.emulator.alarm(4003)
