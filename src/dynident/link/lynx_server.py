"""The server of Lynx on TCP: sockets around `lynx_task`, in one thread; one client at a time."""

from __future__ import annotations

import contextlib
import ipaddress
import selectors
import socket
import threading
import time

from dynident.errors import LinkError
from dynident.link import lynx_messages as x
from dynident.link.emulator import Emulator
from dynident.link.lynx_messages import Frame
from dynident.link.lynx_task import LynxTask
from dynident.link.messages import Framer
from dynident.link.simple_server import OUTBOX, open_socket


class LynxServer:
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
        self.emulator, self._key = emulator, key
        self._listener = open_socket(host, port, socket.SOCK_STREAM)
        if not ipaddress.ip_address(host).is_loopback and not key:
            self._listener.close()
            raise LinkError(f"host '{host}' is on the network; lynx needs a shared key there, give key= (--key-file)")
        self.port = self._listener.getsockname()[1]
        self.dropped = 0
        self._client: socket.socket | None = None
        self._task: LynxTask | None = None
        self._framer, self._outbox = Framer(), bytearray()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> LynxServer:
        """Serve in a thread.

        Returns
        -------
        LynxServer
            Itself.
        """
        self.emulator.start()
        self._thread = threading.Thread(target=self._run, name="lynx", daemon=True)
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop serving and bring the robot to rest."""
        self._done.set()
        if self._thread is not None:
            self._thread.join(timeout=5.0)
        self._drop()
        self._listener.close()
        self._selector.close()
        self.emulator.close()

    def _run(self) -> None:
        while not self._done.is_set():
            for key, events in self._selector.select(0.001 if self._client else 0.01):
                if key.fileobj is self._listener:
                    self._accept()
                elif events & selectors.EVENT_READ:
                    self._receive()
            rows = self.emulator.due()
            if rows is not None and self._task is not None and self._task.acquire:
                self._send([self._task.measurements(rows)])
            self._flush()

    def _accept(self) -> None:
        try:
            sock, name = self._listener.accept()
        except OSError:
            return
        if self._client is not None:
            with contextlib.suppress(OSError):
                sock.send(
                    x.encode(
                        Frame(
                            x.SESSION, x.REFUSED, data=f"another client ({self.emulator.client}) has this controller".encode()
                        )
                    )
                )
            sock.close()
            self.dropped += 1
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client, self._task, self._framer = sock, LynxTask(self.emulator, self._key), Framer()
        self._outbox.clear()
        self.emulator.client = f"{name[0]}:{name[1]}"
        self._selector.register(sock, selectors.EVENT_READ)
        self._send([self._task.hello()])

    def _receive(self) -> None:
        if self._client is None or self._task is None:
            return
        try:
            data = self._client.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
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
                self._flush()
                self._drop()

    def _send(self, frames: list[bytes]) -> None:
        self._outbox += b"".join(frames)
        if len(self._outbox) > OUTBOX:
            self.dropped += 1
            self._drop()
        self._flush()

    def _flush(self) -> None:
        if self._client is None or not self._outbox:
            return
        try:
            del self._outbox[: self._client.send(self._outbox)]
        except BlockingIOError:
            pass
        except OSError:
            self._drop()

    def _drop(self) -> None:
        if self._client is None:
            return
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(self._client)
        self._client.close()
        self._client = self._task = None
        self.emulator.client, self.emulator.pinged = "", 0.0
        if self.emulator.setpoints.moving:
            self.emulator.alarm(4003)
