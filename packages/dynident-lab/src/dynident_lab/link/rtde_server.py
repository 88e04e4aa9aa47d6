"""A virtual robot behind RTDE, like a controller of Universal Robots; it runs only the program of `rtde_messages`.

Setpoints are positions only, as for servoj; the virtual robot computes velocity and acceleration from five of them:

    v_k = (q_{k-2} - 8 q_{k-1} + 8 q_{k+1} - q_{k+2}) / 12 h
    a_k = (-q_{k-2} + 16 q_{k-1} - 30 q_k + 16 q_{k+1} - q_{k+2}) / 12 h^2

A robot in its own time can wait for setpoints, so it requests several cycles in advance, and needs every setpoint.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import LinkError
from dynident_lab.link import rtde_messages as x
from dynident_lab.link.controller import Samples
from dynident_lab.link.emulator import Emulator
from dynident_lab.link.setpoints import Point
from dynident_lab.link.simple_messages import Framer
from dynident_lab.link.sockets import Client, Server, allowed_peers, open_sockets

AHEAD = 3  # chunks of setpoints requested in advance
SOFTWARE = {500: (5, 23, 0, 0), 125: (3, 15, 8, 0)}  # versions of controllers by rate
STENCIL = np.array([[1.0, -8.0, 0.0, 8.0, -1.0], [-1.0, 16.0, -30.0, 16.0, -1.0]]) / 12.0
POWER_OFF, ROBOT_RUNNING, JOINT_RUNNING = 3, 7, 253  # robot and joint modes
NORMAL, PROTECTIVE, EMERGENCY = 1, 3, 7  # safety modes


@dataclass(eq=False)
class RtdeTask:
    """One client: of RTDE with its recipes and rate, or the sender of a program with its text."""

    version: int = 1
    started: bool = False
    every: int = 1  # number of samples per sent one
    outputs: x.Recipe | None = None
    inputs: x.Recipe | None = None
    text: bytes = b""


class RtdeProgram:
    """The program on a virtual robot: setpoints in, motion out, independent of sockets."""

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
        """Start, if the robot can move."""
        with contextlib.suppress(LinkError):
            self.emulator.ready()
            self.emulator.stop()
            self.state, self._heard, self._last, self._open = x.RUNNING, self.clock(), x.HOLD, False

    def receive(self, number: int, q: Array, scale: float) -> None:
        """Process the values of the registers."""
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
        """End if the client is silent, or the robot cannot continue."""
        if self.emulator.alarms:
            self.state, self._open, self._last = 0, False, x.HOLD
        elif self.state == x.RUNNING and self.clock() - self._heard > self.silence:
            self.lost()

    def lost(self) -> None:
        """Stop the robot: heartbeats are missing."""
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
        """Pass on the newest setpoint with known neighbours."""
        h, k = self.emulator.period, len(self._targets)
        q = self._q[k + 2]
        v, a = STENCIL @ np.array(self._q[k : k + 5]) / np.array([[h], [h * h]])
        if k == 0 or resting:
            v, a = np.zeros_like(q), np.zeros_like(q)
        self._targets.append(self._target(q, v, a))
        self.emulator.push(Point(k * h, q, v, a))

    def _finish(self) -> None:
        """Close the motion: no more setpoints follow."""
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
        """Return the commanded q, v, a and moment, (N, 4 n), by the numbers of setpoints."""
        points = self.emulator.setpoints
        rest = self._target(points.q, points.v if points.braking else 0.0 * points.q, 0.0 * points.q)
        last = len(self._targets) - 1
        return np.array([rest if k < 0 or last < 0 else self._targets[min(int(k), last)] for k in number])

    @property
    def wanted(self) -> int:
        """Number of the newest requested setpoint."""
        done = round(self.emulator.setpoints.now / self.emulator.period) if self._open else 0
        return done + self.window if self.state == x.RUNNING else x.HOLD


class RtdeServer(Server[RtdeTask]):
    """A controller of a six-joint robot with RTDE.

    Parameters
    ----------
    emulator : Emulator
        Robot with currents as efforts; its period is 2 or 8 ms.
    host : str
        Address to listen on.
    port, script_port : int
        Ports of RTDE and of programs; 0 for any that is free.
    silence : float
        Time for which the clock of the virtual robot waits for a silent client [s, host]; then the robot stops like a real one.
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
            raise LinkError(f"robot '{emulator.robot.mechanism.name}' is not a Universal Robots arm; RTDE serves ur5e")
        if rate not in SOFTWARE:
            raise LinkError(f"rate is {rate} Hz; Universal Robots controllers use 125 or 500 Hz")
        allowed = allowed_peers(host, peers, "RTDE")
        self.program = RtdeProgram(emulator, silence, clock)
        self.remote = True  # remote-control mode: programs from the network run
        ports = open_sockets(host, (port, script_port), socket.SOCK_STREAM)
        self.port, self.script_port = (s.getsockname()[1] for s in ports)
        self._scripts = ports[1]
        self._software, self._gain = SOFTWARE[rate], np.array([drive.motor.torque_constant for drive in emulator.robot.drives])
        super().__init__(emulator, ports, peers=allowed, clock=clock)

    # ------------------------------------------------------------------ connections
    def _framer(self, port: socket.socket) -> Framer | None:
        return None if port is self._scripts else x.framer()

    def _task(self, port: socket.socket, client: Client[RtdeTask]) -> RtdeTask:
        del port, client
        return RtdeTask()

    def _drop(self, client: Client[RtdeTask], alarm: int = 4003) -> None:
        """Remove a client; without its heartbeats the program stops the robot, and no alarm is raised."""
        if client is self._owner:
            self._owner, self.emulator.client = None, ""
            self.program.lost()
        super()._drop(client, alarm)

    def _refuse(self, client: Client[RtdeTask], reason: str, detail: str = "") -> None:
        self.ignore(reason, client.name, detail)
        self._drop(client)

    def _script(self, client: Client[RtdeTask], data: bytes) -> None:
        """Start our program; any other text is refused."""
        task, wanted = client.task, x.PROGRAM.encode()
        task.text += data
        if not wanted.startswith(task.text):
            self._refuse(client, "program that is not ours")
        elif task.text == wanted:
            task.text = b""
            if self.remote:
                self.program.start()

    def _handle(self, client: Client[RtdeTask], frame: bytes) -> None:
        client.spoke = True
        if client.port is self._scripts:
            self._script(client, frame)
            return
        try:
            self._send(client, self._answer(client, *x.message(frame)))
        except (LinkError, struct.error, UnicodeDecodeError) as error:
            self._refuse(client, "malformed message", str(error))

    # ------------------------------------------------------------------ messages
    def _answer(self, client: Client[RtdeTask], kind: int, payload: bytes) -> list[bytes]:
        task = client.task
        if kind == x.DATA:
            self._registers(client, payload)
        elif kind == x.VERSION:
            (wanted,) = struct.unpack(">H", payload)
            task.version = x.PROTOCOL if wanted == x.PROTOCOL else task.version
            return [x.frame(kind, bytes([wanted == x.PROTOCOL]))]
        elif kind == x.CONTROL_VERSION:
            return [x.frame(kind, struct.pack(">4I", *self._software))]
        elif kind in (x.OUTPUTS, x.INPUTS):
            return [x.frame(kind, self._recipe(client, kind, payload))]
        elif kind in (x.START, x.PAUSE):
            task.started = kind == x.START and task.outputs is not None and task.version == x.PROTOCOL
            return [x.frame(kind, bytes([kind == x.PAUSE or task.started]))]
        elif kind != x.TEXT:
            raise LinkError(f"a message of type {kind}")
        return []

    def _recipe(self, client: Client[RtdeTask], kind: int, payload: bytes) -> bytes:
        """Return the answer to a list of fields: recipe number and types."""
        task = client.task
        if kind == x.OUTPUTS:
            (rate,) = struct.unpack_from(">d", payload)
            if not 1.0 <= rate <= 1000.0:
                raise LinkError(f"{rate:g} samples per second")
            task.every, known = max(1, round(1.0 / (rate * self.emulator.period))), {**x.FIELDS, x.SPEED: "DOUBLE"}
        else:
            known = x.INPUT_FIELDS
        listed = payload[8 if kind == x.OUTPUTS else 0 :].decode("ascii").split(",")
        names = [name for name in listed if name]  # some clients end the list with a comma
        types = [known.get(name, x.NOT_FOUND) for name in names]
        if kind == x.INPUTS and self._owner not in (None, client):
            types = [x.IN_USE for _ in names]
        recipe = x.Recipe(1, names, types) if set(types) <= set(x.TYPES) else None
        if kind == x.OUTPUTS:
            task.outputs = recipe
        elif recipe is not None:
            task.inputs, self._owner = recipe, client
            self.emulator.client = "rtde"
        return bytes([recipe is not None]) + ",".join(types).encode()

    def _registers(self, client: Client[RtdeTask], payload: bytes) -> None:
        task = client.task
        if task.inputs is None:
            self.ignore("registers without a recipe", client.name)
            return
        row = task.inputs.unpack([payload])[0]
        if set(x.SENT) <= set(task.inputs.names):
            values = [float(row[name]) for name in x.SENT]
            self.program.receive(int(values[1]), np.array(values[2:8]), values[8])

    # ------------------------------------------------------------------ samples
    def _tell(self) -> None:
        """Send the samples that are due."""
        self.program.watch()
        rows = self.emulator.outbox.due()
        if rows is None:
            return
        samples = Samples.from_table(rows)
        number = np.where(np.isnan(samples.motion), x.HOLD, np.round(samples.motion / self.emulator.period))
        fields = self._fields(samples, number)
        for client in list(self._clients.values()):
            task = client.task
            if task.outputs is not None and task.started:
                chosen = np.flatnonzero(samples.index % task.every == 0)
                values = {name: value[chosen] if isinstance(value, np.ndarray) else value for name, value in fields.items()}
                self._send(client, [task.outputs.pack(len(chosen), values)])
        self._sent(samples)

    def _sent(self, samples: Samples) -> None:
        """Do nothing: sent samples need no further action."""

    def _fields(self, samples: Samples, number: Array) -> dict[str, Any]:
        """Return the fields of some samples: arrays by sample, or one value for all samples."""
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
