"""A virtual robot behind RTDE, as a controller of Universal Robots serves it; the only program that it knows is ours.

Setpoints are positions alone, as servoj takes them; the virtual robot finds velocity and acceleration from five of them:

    v_k = (q_{k-2} - 8 q_{k-1} + 8 q_{k+1} - q_{k+2}) / 12 h
    a_k = (-q_{k-2} + 16 q_{k-1} - 30 q_k + 16 q_{k+1} - q_{k+2}) / 12 h^2

A robot in its own time can wait for setpoints, so it wants some more than those of the next cycle, and needs every one.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np

from dynident.arrays import Array
from dynident.errors import LinkError
from dynident_lab.link import rtde_messages as x
from dynident_lab.link.controller import Samples
from dynident_lab.link.emulator import Emulator
from dynident_lab.link.setpoints import Point
from dynident_lab.link.sockets import Connection, check_address, is_local, open_socket

MOST_CLIENTS = 32
LONGEST_TURN = 0.005  # [s]
AHEAD = 3  # chunks of setpoints that are wanted
SOFTWARE = {500: (5, 23, 0, 0), 125: (3, 15, 8, 0)}  # versions of controllers by rate
STENCIL = np.array([[1.0, -8.0, 0.0, 8.0, -1.0], [-1.0, 16.0, -30.0, 16.0, -1.0]]) / 12.0
POWER_OFF, ROBOT_RUNNING, JOINT_RUNNING = 3, 7, 253  # robot and joint modes
NORMAL, PROTECTIVE, EMERGENCY = 1, 3, 7  # safety modes


class _Client:
    """One RTDE client: its connection, recipes and rate."""

    def __init__(self, wire: Connection) -> None:
        self.wire, self.framer = wire, x.RtdeFramer()
        self.version, self.started, self.every = 1, False, 1
        self.outputs: x.Recipe | None = None
        self.inputs: x.Recipe | None = None


class RtdeProgram:
    """What the program does on a virtual robot: setpoints in, motion out. Knows no sockets."""

    def __init__(self, emulator: Emulator, silence: float, clock: Callable[[], float]) -> None:
        self.emulator, self.silence, self.clock = emulator, silence, clock
        self.state = 0
        self.window = AHEAD * round(emulator.chunk / emulator.period) + 10
        emulator.setpoints.capacity = max(emulator.setpoints.capacity, 2 * self.window)
        emulator.setpoints.brake_time = x.BRAKE
        n = len(emulator.limits.names)
        self._dynamics, self._moment = emulator.robot.mechanism.compiled("inverse_dynamics"), np.empty(n)
        self._heard, self._last, self._open = 0.0, x.HOLD, False
        self._q: list[Array] = []
        self._targets: list[Array] = []  # q, v, a and moment of every setpoint of the motion

    def start(self) -> None:
        """Run, if the robot can move."""
        with contextlib.suppress(LinkError):
            self.emulator.ready()
            self.emulator.stop()
            self.state, self._heard, self._last, self._open = x.RUNNING, self.clock(), x.HOLD, False

    def receive(self, number: int, q: Array, scale: float) -> None:
        """Take over what the registers say."""
        self._heard = self.clock()
        if self.state != x.RUNNING:
            return
        try:
            if number >= 0 and number != self._last:
                self._setpoint(number, q, scale)
            elif number == x.HOLD:
                self._finish()
            elif number == x.STOP:
                self._end(self.state)
        except LinkError:  # the emulator has raised its alarm
            self._end(x.JUMPED)

    def watch(self) -> None:
        """End when the client is silent, or the robot cannot go on."""
        if self.emulator.alarms:
            self.state, self._open, self._last = 0, False, x.HOLD
        elif self.state == x.RUNNING and self.clock() - self._heard > self.silence:
            self.lost()

    def lost(self) -> None:
        """Stop the robot because nobody sends heartbeats any more."""
        if self.state == x.RUNNING:
            self._end(x.SILENT)

    def _end(self, state: int) -> None:
        self.state, self._open, self._last = state, False, x.HOLD
        self.emulator.stop()

    def _setpoint(self, number: int, q: Array, scale: float) -> None:
        if number != self._last + 1 or not np.isfinite(q).all():
            raise LinkError("a setpoint is missing")
        if not self._open:
            self.emulator.begin(marked=True)
            self._open, self._q, self._targets = True, [self.emulator.setpoints.q.copy()] * 2, []
        if np.abs(q - self._q[-1]).max() > 2.0 * scale * x.TOP_SPEED * self.emulator.period:
            raise LinkError("a setpoint is too far away")
        self._last = number
        self._q.append(q)
        if len(self._q) >= 5:
            self._push()

    def _push(self, resting: bool = False) -> None:
        """Hand the newest setpoint on whose neighbours are known."""
        h, k = self.emulator.period, len(self._targets)
        q = self._q[k + 2]
        v, a = STENCIL @ np.array(self._q[k : k + 5]) / np.array([[h], [h * h]])
        if k == 0 or resting:
            v, a = np.zeros_like(q), np.zeros_like(q)
        self._targets.append(self._target(q, v, a))
        self.emulator.push(Point(k * h, q, v, a))

    def _finish(self) -> None:
        """Close the motion: no further setpoint comes."""
        if self._open:
            self._q += [self._q[-1]] * 2
            while len(self._targets) <= self._last:
                self._push(resting=len(self._targets) == self._last)
            self.emulator.finish()
        self._open, self._last = False, x.HOLD

    def _target(self, q: Array, v: Array, a: Array) -> Array:
        self._dynamics(q, v, a, out=self._moment)
        return np.concatenate([q, v, a, self._moment])

    def targets(self, number: Array) -> Array:
        """Return q, v, a and moment that the robot was asked for, (N, 4 n), by the numbers of setpoints."""
        points = self.emulator.setpoints
        rest = self._target(points.q, points.v if points.braking else 0.0 * points.q, 0.0 * points.q)
        last = len(self._targets) - 1
        return np.array([rest if k < 0 or last < 0 else self._targets[min(int(k), last)] for k in number])

    @property
    def wanted(self) -> int:
        """Number of the newest setpoint that is wanted."""
        done = round(self.emulator.setpoints.now / self.emulator.period) if self._open else 0
        return done + self.window if self.state == x.RUNNING else x.HOLD


class RtdeServer:
    """A controller of a robot with six joints that speaks RTDE.

    Parameters
    ----------
    emulator : Emulator
        Robot, whose efforts are currents; its period is 2 or 8 ms.
    host : str
        Address to listen on.
    port, script_port : int
        Ports of RTDE and of programs; 0 for any that is free.
    silence : float
        Time for which the clock of the virtual robot waits for a silent client [s, host]; then the robot stops as the program
        on a real one does.
    peers : iterable of str
        Addresses that may connect; needed on a network, because RTDE has no authentication.
    clock : callable
        Clock of the host [s].
    """

    def __init__(
        self,
        emulator: Emulator,
        host: str = "127.0.0.1",
        port: int = x.RTDE_PORT,
        script_port: int = x.SCRIPT_PORT,
        *,
        silence: float = 2.0,
        peers: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        sensors, rate = emulator.robot.sensors, round(1.0 / emulator.period)
        if len(emulator.limits.names) != 6 or sensors.effort != "motor_current" or sensors.side != "joint":
            raise LinkError(f"robot '{emulator.robot.mechanism.name}' is none of Universal Robots; RTDE serves ur5e")
        if rate not in SOFTWARE:
            raise LinkError(f"a controller of Universal Robots has 125 or 500 samples per second, not {rate}; give one of them")
        self._peers = {str(check_address(peer, "a peer")) for peer in peers}
        if not is_local(host) and not self._peers:
            raise LinkError(
                f"host '{host}' is on the network and RTDE has no authentication; name who may connect with peers (--peer)"
            )
        self.emulator, self.program = emulator, RtdeProgram(emulator, silence, clock)
        self.remote = True  # remote-control mode: programs from the network run
        self.dropped = 0
        self._rtde, self._scripts = (open_socket(host, p, socket.SOCK_STREAM) for p in (port, script_port))
        self.port, self.script_port = (s.getsockname()[1] for s in (self._rtde, self._scripts))
        self._software, self._gain = SOFTWARE[rate], np.array([drive.motor.torque_constant for drive in emulator.robot.drives])
        self._clients: dict[socket.socket, _Client] = {}
        self._senders: dict[socket.socket, bytes] = {}  # of programs, with what has come
        self._owner: _Client | None = None  # writes the registers
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> Self:
        """Serve in a thread, and return the server."""
        self.emulator.start()
        self._thread = threading.Thread(target=self._run, name="rtde server", daemon=True)
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop serving and bring the robot to rest."""
        self._done.set()
        if self._thread is not None:
            self._thread.join(timeout=5.0)
        for sock in (*self._clients, *self._senders):
            self._drop(sock)
        self._rtde.close()
        self._scripts.close()
        self.emulator.close()

    def _run(self) -> None:
        while not self._done.is_set():
            self.turn()

    def turn(self) -> None:
        """Serve what has come, and send what is due."""
        wait = min(LONGEST_TURN, max(0.0, self.emulator.outbox.until_due()))
        ready = select.select([self._rtde, self._scripts, *self._clients, *self._senders], [], [], wait)[0]
        for sock in ready:
            if sock in (self._rtde, self._scripts):
                self._accept(sock)
            elif sock in self._senders:
                self._script(sock)
            elif sock in self._clients:
                self._receive(sock)
        self.program.watch()
        rows = self.emulator.outbox.due()
        if rows is not None:
            self._tell(Samples.from_table(rows))

    # ------------------------------------------------------------------ connections
    def _accept(self, port: socket.socket) -> None:
        try:
            sock, name = port.accept()
        except OSError:
            return
        if (self._peers and name[0] not in self._peers) or len(self._clients) + len(self._senders) >= MOST_CLIENTS:
            self.dropped += 1
            sock.close()
        elif port is self._rtde:
            self._clients[sock] = _Client(Connection(sock))
        else:
            sock.setblocking(False)
            self._senders[sock] = b""

    def _drop(self, sock: socket.socket) -> None:
        """Forget a client; the program notices that its heartbeats are missing."""
        client = self._clients.pop(sock, None)
        self._senders.pop(sock, None)
        sock.close()
        if client is not None and client is self._owner:
            self._owner, self.emulator.client = None, ""
            self.program.lost()

    def _script(self, sock: socket.socket) -> None:
        """Start our program; any other text is refused."""
        try:
            data = sock.recv(1 << 16)
        except OSError:
            data = b""
        text, wanted = self._senders[sock] + data, x.PROGRAM.encode()
        if not data or not wanted.startswith(text):
            self.dropped += bool(data)
            self._drop(sock)
        elif text == wanted:
            self._senders[sock] = b""
            if self.remote:
                self.program.start()
        else:
            self._senders[sock] = text

    def _receive(self, sock: socket.socket) -> None:
        client = self._clients[sock]
        data = client.wire.receive()
        if data is None:
            return
        if not data:
            self._drop(sock)
            return
        try:
            answers = [answer for kind, payload in client.framer.feed(data) for answer in self._answer(client, kind, payload)]
            client.wire.send(b"".join(answers))
        except (LinkError, struct.error, UnicodeDecodeError, OSError):  # not RTDE, or gone
            self.dropped += 1
            self._drop(sock)

    # ------------------------------------------------------------------ messages
    def _answer(self, client: _Client, kind: int, payload: bytes) -> list[bytes]:
        if kind == x.DATA:
            self._registers(client, payload)
        elif kind == x.VERSION:
            (wanted,) = struct.unpack(">H", payload)
            client.version = x.PROTOCOL if wanted == x.PROTOCOL else client.version
            return [x.frame(kind, bytes([wanted == x.PROTOCOL]))]
        elif kind == x.CONTROL_VERSION:
            return [x.frame(kind, struct.pack(">4I", *self._software))]
        elif kind in (x.OUTPUTS, x.INPUTS):
            return [x.frame(kind, self._recipe(client, kind, payload))]
        elif kind in (x.START, x.PAUSE):
            client.started = kind == x.START and client.outputs is not None and client.version == x.PROTOCOL
            return [x.frame(kind, bytes([kind == x.PAUSE or client.started]))]
        elif kind != x.TEXT:
            raise LinkError(f"a message of type {kind}")
        return []

    def _recipe(self, client: _Client, kind: int, payload: bytes) -> bytes:
        """Return the answer to a list of fields: number and types."""
        if kind == x.OUTPUTS:
            (rate,) = struct.unpack_from(">d", payload)
            if not 1.0 <= rate <= 1000.0:
                raise LinkError(f"{rate:g} samples per second")
            client.every, known = max(1, round(1.0 / (rate * self.emulator.period))), {**x.FIELDS, x.SPEED: "DOUBLE"}
        else:
            known = x.INPUT_FIELDS
        listed = payload[8 if kind == x.OUTPUTS else 0 :].decode("ascii").split(",")
        names = [name for name in listed if name]  # some clients end the list with a comma
        types = [known.get(name, x.NOT_FOUND) for name in names]
        if kind == x.INPUTS and self._owner not in (None, client):
            types = [x.IN_USE for _ in names]
        recipe = x.Recipe(1, names, types) if set(types) <= set(x.TYPES) else None
        if kind == x.OUTPUTS:
            client.outputs = recipe
        elif recipe is not None:
            client.inputs, self._owner = recipe, client
            self.emulator.client = "rtde"
        return bytes([recipe is not None]) + ",".join(types).encode()

    def _registers(self, client: _Client, payload: bytes) -> None:
        if client.inputs is None:
            self.dropped += 1
            return
        row = client.inputs.unpack([payload])[0]
        if set(x.SENT) <= set(client.inputs.names):
            values = [float(row[name]) for name in x.SENT]
            self.program.receive(int(values[1]), np.array(values[2:8]), values[8])

    # ------------------------------------------------------------------ samples
    def _tell(self, samples: Samples) -> None:
        number = np.where(np.isnan(samples.motion), x.HOLD, np.round(samples.motion / self.emulator.period))
        fields = self._fields(samples, number)
        for sock, client in list(self._clients.items()):
            if client.outputs is None or not client.started:
                continue
            chosen = np.flatnonzero(samples.index % client.every == 0)
            values = {name: value[chosen] if isinstance(value, np.ndarray) else value for name, value in fields.items()}
            try:
                client.wire.send(client.outputs.pack(len(chosen), values))
            except OSError:
                self.dropped += 1
                self._drop(sock)

    def _fields(self, samples: Samples, number: Array) -> dict[str, Any]:
        """Return the fields of some samples: arrays by sample, or one value for all."""
        core, n = self.emulator, samples.position.shape[1]
        targets = self.program.targets(number)
        q, v, a, moment = (targets[:, i * n : (i + 1) * n] for i in range(4))
        playing = self.program.state == x.RUNNING
        powered, stopped, code = core.glance()[:3]
        safety = EMERGENCY if stopped else PROTECTIVE if code else NORMAL
        heat = np.where(np.isnan(samples.temperature), core.robot.ambient, samples.temperature)
        return {
            "timestamp": samples.clock,
            **{"actual_q": samples.position, "actual_qd": samples.velocity, "actual_current": samples.effort},
            **{"target_q": q, "target_qd": v, "target_qdd": a, "target_moment": moment, "target_current": moment / self._gain},
            **{"joint_temperatures": heat, "joint_mode": JOINT_RUNNING, "speed_scaling": 1.0, "target_speed_fraction": 1.0},
            **{"robot_mode": ROBOT_RUNNING if powered else POWER_OFF, "safety_mode": safety, "safety_status": safety},
            **{"robot_status_bits": int(bool(powered)) + 2 * playing, "safety_status_bits": 1 << (safety - 1)},
            **{"runtime_state": 2 if playing else 1, x.SPEED: core.speed},
            **{x.EXECUTED: number, x.STATE: self.program.state, x.WANTED: self.program.wanted},
        }
