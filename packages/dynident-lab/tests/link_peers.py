"""Peers of the link's protocols, written with plain struct from the specification and knowing nothing of the package."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time


def point(sequence: int, joints: list[float], velocity: float, duration: float, order: str = "<", comm: int = 2) -> bytes:
    """JOINT_TRAJ_PT, 68 bytes: LENGTH, type 11, request (2) or topic (1), no reply code, then its data."""
    slots = [*joints, *[0.0] * (10 - len(joints))]
    return struct.pack(order + "iiiii10fff", 64, 11, comm, 0, sequence, *slots, velocity, duration)


def full_point(sequence: int, t: float, q: list[float], v: list[float], a: list[float], order: str = "<") -> bytes:
    """JOINT_TRAJ_PT_FULL, 152 bytes."""
    rows = [x for part in (q, v, a) for x in [*part, *[0.0] * (10 - len(part))]]
    return struct.pack(order + "iiiiiiif30f", 148, 14, 2, 0, 0, sequence, 15, t, *rows)


def receive_frame(sock: socket.socket, order: str = "<") -> bytes:
    head = b""
    while len(head) < 4:
        part = sock.recv(4 - len(head))
        if not part:
            raise ConnectionError("closed")
        head += part
    length = struct.unpack(order + "i", head)[0]
    body = b""
    while len(body) < length:
        part = sock.recv(length - len(body))
        if not part:
            raise ConnectionError("closed")
        body += part
    return head + body


class StyleServer:
    """A ROS-Industrial style controller: answers requests with their data again, and tells the last point as its position."""

    def __init__(self, echo: bool = True, fail_at: int | None = None, version: bytes = b"", mute: bool = False) -> None:
        self.mute = mute  # what it does not know has no answer
        self.echo, self.fail_at, self.version, self.points, self.other = echo, fail_at, version, [], []
        self.joints = (0.0,) * 10
        self.motion, self.state = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
        self.ports = self.motion.getsockname()[1], self.state.getsockname()[1]
        self._done = threading.Event()
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._serve, self._tell)]
        for thread in self._threads:
            thread.start()

    def _serve(self) -> None:
        while not self._done.is_set():
            try:
                sock, _ = self.motion.accept()
            except OSError:
                return
            with sock:
                sock.settimeout(60.0)
                try:
                    while not self._done.is_set():
                        sock.sendall(self._answer(receive_frame(sock)))
                except OSError:
                    pass  # the client has left; the next one may come

    def _answer(self, frame: bytes) -> bytes:
        _, kind, comm, _ = struct.unpack_from("<4i", frame)
        assert comm == 2
        code = 1
        if kind in (11, 14):
            sequence = struct.unpack_from("<i", frame, 16 if kind == 11 else 20)[0]
            self.points.append((kind, sequence, frame))
            if sequence >= 0:
                self.joints = struct.unpack_from("<10f", frame, 20 if kind == 11 else 32)
            if sequence == self.fail_at:
                code, self.fail_at = 2, None
        elif self.mute:
            return b""
        elif kind != 2:
            self.other.append(kind)
            code = 2
        body = frame[16:] if self.echo and kind in (11, 14) else self.version if kind == 2 else b""
        return struct.pack("<4i", 12 + len(body), kind, 3, code) + body

    def _tell(self) -> None:
        while not self._done.is_set():
            try:
                sock, _ = self.state.accept()
            except OSError:
                return
            with sock:
                try:
                    while not self._done.wait(0.01):
                        sock.sendall(struct.pack("<5i10f", 56, 10, 1, 0, 0, *self.joints))
                        sock.sendall(struct.pack("<11i", 40, 13, 1, 0, 1, 0, 0, 0, 0, 2, 1))
                except OSError:
                    pass

    def close(self) -> None:
        self._done.set()
        for sock in (self.motion, self.state):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()


class PrintedController:
    """The controller program of [Pagani2022, Appendix A.5] over UDP: each port answers one handshake and then loops.

    The motion task answers every packet with a header, the feedback task never reads again.
    """

    def __init__(self, interval: float) -> None:
        self.interval, self.handshakes, self.points, self.short = interval, [0, 0], [], 0
        self.joints = [0.0] * 10
        self._path: list[tuple[float, tuple[float, ...]]] = []
        self._began = 0.0
        self._lock, self._done = threading.Lock(), threading.Event()
        self.sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
        for sock in self.sockets:
            sock.bind(("127.0.0.1", 0))
            sock.settimeout(0.05)
        self.ports = [sock.getsockname()[1] for sock in self.sockets]
        for task in (self._motion, self._state):
            threading.Thread(target=task, daemon=True).start()

    def _handshake(self, task: int) -> tuple[str, int]:
        while True:
            data, name = self._receive(task)
            if data:
                self.handshakes[task] += 1
                self.sockets[task].sendto(data, name)
                return name

    def _receive(self, task: int) -> tuple[bytes, tuple[str, int]]:
        while not self._done.is_set():
            with contextlib.suppress(TimeoutError):
                return self.sockets[task].recvfrom(152)
        raise OSError("closed")

    def _motion(self) -> None:
        with contextlib.suppress(OSError):
            self._handshake(0)
            while True:
                data, name = self._receive(0)
                kind = struct.unpack_from("<4i", data)[1] if len(data) >= 16 else 0
                self.short += len(data) < 16
                if kind == 14:
                    sequence, t = struct.unpack_from("<i4xf", data, 20)
                    self._take(sequence, t, struct.unpack_from("<10f", data, 32))
                elif kind == 11 and struct.unpack_from("<i", data, 16)[0] == -4:
                    with self._lock:
                        self._path.clear()
                self.sockets[0].sendto(struct.pack("<4i", 12, kind, 3, 1), name)

    def _take(self, sequence: int, t: float, joints: tuple[float, ...]) -> None:
        with self._lock:
            if sequence == 0:
                self._path, self._began = [], time.monotonic()
            self._path.append((t, joints))
            self.points.append((sequence, joints))

    def _state(self) -> None:
        with contextlib.suppress(OSError):
            name, count = self._handshake(1), 0
            while not self._done.wait(self.interval):
                with self._lock:
                    now = time.monotonic() - self._began
                    reached = [joints for t, joints in self._path if t <= now]
                    self.joints = list(reached[-1]) if reached else self.joints
                self.sockets[1].sendto(struct.pack("<5i10f", 56, 10, 1, 0, count, *self.joints), name)
                count += 1

    def close(self) -> None:
        self._done.set()
        time.sleep(0.1)
        for sock in self.sockets:
            sock.close()


class LossyRelay:
    """Passes UDP datagrams between clients and a server, losing, doubling and delaying some of both directions."""

    def __init__(self, port: int, rng, share: float) -> None:
        self.target, self.rng, self.share = ("127.0.0.1", port), rng, share
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind(("127.0.0.1", 0))
        self.front.settimeout(0.05)
        self.port = self.front.getsockname()[1]
        self.lost = self.doubled = self.swapped = 0
        self._backs: dict[tuple[str, int], socket.socket] = {}
        self._lock = threading.Lock()
        self._done = threading.Event()
        threading.Thread(target=self._forward, daemon=True).start()

    def _pass(self, send, data: bytes, held: list) -> None:
        with self._lock:
            luck = self.rng.random()
        if luck < self.share:
            self.lost += 1
            return
        if luck < 2 * self.share:
            self.doubled += 1
            send(data)
        elif luck < 3 * self.share and not held:
            self.swapped += 1
            held.append(data)  # goes out after the next one
            return
        send(data)
        while held:
            send(held.pop())

    def _forward(self) -> None:
        held: list[bytes] = []
        while not self._done.is_set():
            try:
                data, name = self.front.recvfrom(65536)
            except OSError:
                continue
            if name not in self._backs:
                back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                back.connect(self.target)
                back.settimeout(0.05)
                self._backs[name] = back
                threading.Thread(target=self._back, args=(back, name), daemon=True).start()
            back = self._backs[name]
            self._pass(back.send, data, held)

    def _back(self, back: socket.socket, name: tuple[str, int]) -> None:
        held: list[bytes] = []
        while not self._done.is_set():
            try:
                data = back.recv(65536)
            except OSError:
                continue
            self._pass(lambda part: self.front.sendto(part, name), data, held)

    def close(self) -> None:
        self._done.set()
        time.sleep(0.1)
        for sock in (self.front, *self._backs.values()):
            sock.close()
