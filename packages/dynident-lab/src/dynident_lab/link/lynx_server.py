"""The server of Lynx: `LynxTask` turns frames into frames, `LynxServer` is its socket; one client has the robot.

    initialization -> operation {configuration | homing | jog | control, one open at a time} -> terminate

Commands of other tasks are refused. Quick stop is accepted in every state. The robot belongs to the client that first
proves the key, or sends a message if no key is needed; a silent connection is closed after some time.
"""

from __future__ import annotations

import json
import math
import secrets
import socket
import struct
import time
from collections.abc import Callable

import numpy as np

from dynident.arrays import Array
from dynident.errors import LinkError
from dynident.mechanics import Motion
from dynident_lab.link import lynx_messages as x
from dynident_lab.link.controller import APPROACH, slow_duration, straight
from dynident_lab.link.emulator import Emulator
from dynident_lab.link.lynx_messages import Frame, State
from dynident_lab.link.sockets import Client, Server, is_local, open_socket

MOST_POINTS = 2_000_000  # limit for the points of a trajectory
SWITCH = 1e-3  # distance to a limit at which its switch closes [rad, m]
PATIENCE = 5.0  # for the proof of a client, or its first message if no key is needed [s]


class LynxTask:
    """One client of a Lynx server."""

    def __init__(self, emulator: Emulator, key: bytes = b"", claim: Callable[[], bool] = lambda: True) -> None:
        self.emulator, self._key, self._claim = emulator, key, claim
        self.state = "initialization"
        self.task = 0
        self.acquire = False
        self.malformed = 0
        self._nonce = secrets.token_bytes(16)
        self._rows: list[Array] = []
        self._loaded = self._receiving = False

    def hello(self) -> bytes:
        """Return the first frame of the server: version, whether a key is needed, nonce."""
        body = struct.pack("<IB", x.VERSION, bool(self._key)) + self._nonce
        return x.encode(Frame(x.SESSION, x.HELLO, data=body))

    def receive(self, data: bytes) -> list[bytes]:
        """Return the answers to one frame; malformed frames are counted and dropped."""
        try:
            frame = x.decode(data)
        except LinkError:
            self.malformed += 1
            return []
        try:
            return [x.encode(answer) for answer in self._answer(frame)]
        except LinkError as error:
            return [x.encode(Frame(x.SESSION, x.REFUSED, frame.task, frame.sequence, str(error).encode()))]

    def _answer(self, frame: Frame) -> list[Frame]:
        if self.state == "initialization":
            self.state = "terminate"
            proved = (frame.comm, frame.kind) == (x.SESSION, x.PROOF)
            if self._key and not (proved and secrets.compare_digest(frame.data, x.proof(self._key, self._nonce))):
                raise LinkError("the key is wrong; give the key of this controller")
            if not self._claim():
                raise LinkError(busy(self.emulator))
            self.state = "operation"
            if self._key:
                return [self._ok(frame)]
        if frame.comm == x.COMMAND and frame.kind == x.QUICK_STOP:
            self.emulator.emergency_stop()
            return [self._ok(frame)]
        if frame.comm == x.SESSION:
            return self._session(frame)
        return self._data(frame) if frame.comm == x.DATA else self._command(frame)

    def _ok(self, frame: Frame, data: bytes = b"") -> Frame:
        return Frame(x.COMMAND, x.DONE, frame.task, frame.sequence, data)

    # ------------------------------------------------------------------ COMM 0
    def _session(self, frame: Frame) -> list[Frame]:
        if frame.kind == x.ALIVE:
            if len(frame.data) not in (0, 8):
                raise LinkError(f"ALIVE has {len(frame.data)} bytes; it needs none, or 8 with the time of a watchdog")
            if frame.data:
                self.emulator.watch(struct.unpack("<d", frame.data)[0])
            return [self._ok(frame)]
        if frame.kind == x.SHUTDOWN:
            self.emulator.stop()
            self.state, self.task = "terminate", 0
            return [self._ok(frame)]
        if frame.kind == x.OPEN:
            if frame.task not in x.TASKS:
                raise LinkError(f"there is no task {frame.task}; tasks are 1 configuration, 2 homing, 3 jog, 4 control")
            if self.task not in (0, frame.task):
                raise LinkError(f"task {x.TASKS[self.task]} is open; close it before {x.TASKS[frame.task]}")
            self.task = frame.task
            return [Frame(x.SESSION, x.OPENED, frame.task, frame.sequence)]
        if frame.kind == x.CLOSE:
            if self.task != frame.task:
                raise LinkError(f"task {x.TASKS.get(frame.task, frame.task)} is not open")
            if self.emulator.setpoints.moving:
                raise LinkError("the robot moves; stop it before closing the task")
            self.task = 0
            return [Frame(x.SESSION, x.CLOSED, frame.task, frame.sequence)]
        raise LinkError(f"COMM 0 has no kind {frame.kind}")

    # ------------------------------------------------------------------ COMM 2
    def _data(self, frame: Frame) -> list[Frame]:
        self._need(x.CONTROL, frame)
        if frame.kind == x.BLOCK:
            rows = x.decode_rows(frame.data)
            n = len(self.emulator.limits.names)
            if rows.shape[1] != 1 + 3 * n or not np.isfinite(rows).all() or len(rows) > x.MOST_ROWS:
                raise LinkError(f"a block has {rows.shape[1]} columns; this robot needs {1 + 3 * n}: t, q, v, a, all finite")
            if frame.sequence == 0:
                self._rows, self._loaded = [], False
            if frame.sequence < len(self._rows):
                return [Frame(x.DATA, x.TAKEN, frame.task, frame.sequence)]  # a repeated block
            if frame.sequence > len(self._rows) or sum(map(len, self._rows)) > MOST_POINTS:
                raise LinkError(
                    f"block {frame.sequence} came where {len(self._rows)} is expected, or the trajectory is too long"
                )
            self._rows.append(rows)
            self._receiving = True
            return [Frame(x.DATA, x.TAKEN, frame.task, frame.sequence)]
        if frame.kind == x.END:
            self._receiving = False
            rows = np.concatenate(self._rows) if self._rows else np.empty((0, 1))
            if len(rows) < 2:
                raise LinkError("the trajectory has fewer than two points")
            n = len(self.emulator.limits.names)
            self.emulator.load(Motion(rows[:, 0], *(rows[:, 1 + k * n : 1 + (k + 1) * n] for k in range(3))))
            self._loaded, self._rows = True, []
            return [Frame(x.DATA, x.TAKEN, frame.task, frame.sequence)]
        raise LinkError(f"COMM 2 has no kind {frame.kind} for the server")

    # ------------------------------------------------------------------ COMM 4
    def _need(self, task: int, frame: Frame) -> None:
        if self.task != task:
            raise LinkError(f"task {x.TASKS[task]} is not open; open it first")
        if frame.task != task:
            raise LinkError(
                f"COMM {frame.comm} KIND {frame.kind} belongs to task {task} ({x.TASKS[task]}), but TASK of the frame is "
                f"{frame.task}; send TASK {task}"
            )

    def _command(self, frame: Frame) -> list[Frame]:
        core = self.emulator
        actions: dict[int, tuple[int, Callable[[Frame], bytes | None]]] = {
            x.IDENTITY: (0, lambda _: json.dumps(core.identity).encode()),
            x.ACQUIRE: (0, self._acquire),
            x.STOP: (0, lambda _: core.stop()),
            x.RELEASE: (0, lambda _: core.emergency_stop(False)),
            x.RESET: (0, lambda _: core.reset()),
            x.REST: (0, self._rest),
            x.CONFIGURE: (x.CONFIGURATION, self._configure),
            x.HOME: (x.HOMING, lambda _: self._home()),
            x.JOG: (x.JOGGING, self._jog),
            x.RUN: (x.CONTROL, lambda _: self._run()),
        }
        if frame.kind not in actions:
            raise LinkError(f"COMM 4 has no kind {frame.kind}")
        task, action = actions[frame.kind]
        if task:
            self._need(task, frame)
        return [self._ok(frame, action(frame) or b"")]

    def _acquire(self, frame: Frame) -> None:
        self.acquire = frame.data != b"\0"

    def _rest(self, frame: Frame) -> None:
        if len(frame.data) not in (1, 9):
            raise LinkError(f"a rest has {len(frame.data)} bytes; it needs 1, or 9 with its duration")
        duration = struct.unpack_from("<d", frame.data, 1)[0] if frame.data[1:] else math.inf
        self.emulator.rest(frame.data[:1] != b"\0", duration)

    def _numbers(self, frame: Frame, what: str) -> Array:
        """Return one number and one per coordinate."""
        n = len(self.emulator.limits.names)
        if len(frame.data) != 8 * (n + 1):
            raise LinkError(f"{what} {len(frame.data)} bytes; 8 for each of 1 + {n} numbers are needed")
        values = np.frombuffer(frame.data, "<f8")
        if not np.isfinite(values).all():
            raise LinkError(f"{what} a number that is not finite")
        return values

    def _configure(self, frame: Frame) -> None:
        """Accept the settings of homing: share of the top speed, and home position; the robot must be homed again."""
        core, values = self.emulator, self._numbers(frame, "homing settings have")
        if not 0.0 < values[0] <= APPROACH:
            raise LinkError(f"homing at {100 * values[0]:g} % of the top speed; give up to {APPROACH:.0%}")
        core.limits.check(values[1:])
        core.homing_speed, core.home, core.homed = float(values[0]), values[1:].copy(), False

    def _home(self) -> None:
        core = self.emulator
        way = core.home - core.setpoints.q
        self._move(way, slow_duration(way, core.limits.velocity * core.homing_speed / APPROACH, core.limits.acceleration))
        core.homed = True

    def _jog(self, frame: Frame) -> None:
        """Move at a speed for a time; a limit switch ends it early."""
        core, values = self.emulator, self._numbers(frame, "a jog has")
        duration, speed = float(values[0]), values[1:]
        if not 0.05 <= duration <= 60.0:
            raise LinkError(f"a jog of {duration:g} s; give 0.05 to 60 s")
        limits = core.limits
        if (np.abs(speed) > APPROACH * limits.velocity + 1e-12).any():
            raise LinkError(f"a jog is at most {100 * APPROACH:.0f} % of the top speed")
        way = np.clip(core.setpoints.q + speed * duration / 1.875, limits.lower, limits.upper) - core.setpoints.q
        self._move(way, duration)

    def _move(self, way: Array, duration: float) -> None:
        core = self.emulator
        core.load(straight(core.setpoints.q, way, duration, core.period))
        core.finish()

    def _run(self) -> None:
        if not self.emulator.homed:
            raise LinkError("the robot is not homed; open homing and home it first")
        if not self._loaded:
            raise LinkError("no trajectory is loaded; send one first")
        self.emulator.ready()
        self._loaded = False
        self.emulator.finish()

    # ------------------------------------------------------------------ measurements
    def measurements(self, rows: Array) -> bytes:
        """Return a frame of measurements with the state of the server."""
        return x.encode(Frame(x.DATA, x.MEASUREMENTS, self.task, data=self.snapshot().pack() + x.encode_rows(rows)))

    def snapshot(self) -> State:
        """Return the state of the server: status, indicator, limit switches."""
        core = self.emulator
        q, limits = core.setpoints.q, core.limits
        low = int(sum(1 << i for i in np.flatnonzero(q <= limits.lower + SWITCH) if i < 32))
        high = int(sum(1 << i for i in np.flatnonzero(q >= limits.upper - SWITCH) if i < 32))
        if self.state != "operation":
            indicator = "loading"
        elif core.setpoints.moving and not core.setpoints.held:
            indicator = "executing"
        elif self._receiving:
            indicator = "sending trajectory"
        elif self._loaded:
            indicator = "target reading"
        else:
            indicator = "receiving data" if self.acquire else "ready"
        return State(core.glance(), indicator, core.homed, self.task, low, high)


def busy(emulator: Emulator) -> str:
    """Return the error message for a second client."""
    return f"another client ({emulator.client}) controls this robot; close it first"


class LynxServer(Server[LynxTask]):
    """A controller with the Lynx protocol."""

    def __init__(
        self,
        emulator: Emulator,
        host: str = "127.0.0.1",
        port: int = 12000,
        key: bytes = b"",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not is_local(host) and not key:
            raise LinkError(
                f"host '{host}' is reachable from the network, where lynx needs a shared key; give key= (--key-file)"
            )
        listener = open_socket(host, port, socket.SOCK_STREAM)
        super().__init__(emulator, (listener,), clock=clock)
        self.port, self._key = listener.getsockname()[1], key

    def _tell(self) -> None:
        """Send measurements, and close silent connections."""
        rows, owner = self.emulator.outbox.due(), self._owner
        if rows is not None and owner is not None and owner.task.acquire:
            self._send(owner, [owner.task.measurements(rows)])
        for client in list(self._clients.values()):
            if client is not self._owner and self.clock() - client.heard > PATIENCE:
                self.ignore("connection without any message", client.name)
                self._drop(client)

    def _task(self, port: socket.socket, client: Client[LynxTask]) -> LynxTask:
        del port
        return LynxTask(self.emulator, self._key, lambda: self._claim(client))

    def _greet(self, client: Client[LynxTask]) -> None:
        if self._owner is None:
            self._send(client, [client.task.hello()])
            return
        self.ignore("client of a controller that is in use", client.name)
        self._send(client, [x.encode(Frame(x.SESSION, x.REFUSED, data=busy(self.emulator).encode()))])
        self._drop(client)

    def _handle(self, client: Client[LynxTask], frame: bytes) -> None:
        task = client.task
        before = task.malformed
        answers = task.receive(frame)
        if task.malformed > before:
            self.ignore("malformed message", client.name)
        if client is self._owner:
            client.spoke, self.emulator.heard = True, time.monotonic()
        self._send(client, answers)
        if task.state == "terminate":
            self._drop(client)
