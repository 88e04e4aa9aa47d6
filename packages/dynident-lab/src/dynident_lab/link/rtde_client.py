"""Client of a Universal Robots controller: setpoints through RTDE registers to our program, samples through RTDE outputs.

The program holds one setpoint, so the robot sets the pace: every sample contains the number of the next wanted setpoint, and
the client answers with it and a heartbeat. If the client stops answering, the robot stops.
"""

from __future__ import annotations

import contextlib
import math
import queue
import socket
import struct
import threading
import time
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import LinkError
from dynident.mechanics import Motion
from dynident_lab.link import rtde_messages as x
from dynident_lab.link.controller import Identity, RemoteController, Samples, Status, UnreachableError
from dynident_lab.link.setpoints import through
from dynident_lab.link.sockets import open_connection

TIMEOUT = 5.0  # longest wait for an answer, and for the start of the program [s]
BEAT = 0.01  # least time between two heartbeats [s]
JOINTS = 6
SPEED, RANGE = math.pi, 2.0 * math.pi  # limits of all joints of these robots, if the plan has none
MARGIN = 1.2  # ratio of the speed scale to the fastest setpoint
MOVING = 1e-4  # target speed above which a robot moves [rad/s]
NEEDED = (
    *("timestamp", "actual_q", "actual_qd", "actual_current", "joint_temperatures", "target_q", "target_qd"),
    *("safety_mode", "robot_status_bits", x.EXECUTED, x.STATE, x.WANTED),
)
EXTRA = ("target_current", "target_moment", "payload", "payload_cog")  # recorded if the controller has them
SAFETY = {3: 4016, 4: 4016, 5: 4017, 6: 4012, 7: 4012, 8: 4018, 9: 4018}  # alarms of safety modes
POWERED, PLAYING = 1, 2  # bits of robot_status_bits


class RtdeClient(RemoteController):
    """A Universal Robots controller, CB3 (125 Hz) or e-Series (500 Hz).

    Parameters
    ----------
    host : str
        Address of the controller.
    port, script : int
        Ports of RTDE and of scripts.
    rate : float
        Samples per second [Hz]; 0 for the maximum of the controller.
    """

    def __init__(self, host: str, port: int = x.RTDE_PORT, script: int | str = x.SCRIPT_PORT, rate: float | str = 0.0) -> None:
        super().__init__()
        try:
            self.host, self.port, self.script, self.rate = host, port, int(script), float(rate)
        except ValueError as error:
            raise LinkError(f"rtde://{host}: script and rate are numbers ({error})") from error
        if not (self.rate == 0.0 or 1.0 <= self.rate <= 500.0):
            raise LinkError(f"rtde://{host}: rate is {self.rate:g} Hz; give 1 to 500 Hz")
        self._sock: socket.socket | None = None
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self.patience = TIMEOUT  # for the start of the program [s]

    # ------------------------------------------------------------------ connection
    def connect(self) -> Identity:
        """Open the connection and negotiate the exchanged fields."""
        where = f"{self.host}:{self.port}"
        self._sock = open_connection(self.host, self.port)
        self._closed, self._queue, self._framer = threading.Event(), queue.Queue(), x.framer()
        self._waiting: list[tuple[int, bytes]] = []
        self._points: Array | None = None
        self._next, self._wanted, self._beat, self._scale = x.HOLD, x.HOLD, 0, 0.0
        self._beating = self._running = self.sending = self.cut = False
        self._idle = x.HOLD  # number sent while no motion runs
        self._origin, self.failure = math.nan, None
        try:
            self.identity = self._agree(where)
            self._newest = self._outputs.unpack([self._answer(x.DATA)])[-1]
        except (LinkError, OSError, struct.error) as error:
            self.close()
            if isinstance(error, LinkError):
                raise
            raise UnreachableError(f"the server at {where} does not use RTDE ({error}); check the port") from error
        self._sock.settimeout(BEAT)
        threading.Thread(target=self._listen, args=(self._sock, self._closed), name="rtde client", daemon=True).start()
        return self.identity

    def _agree(self, where: str) -> Identity:
        """Negotiate version and recipes, and start the samples."""
        if self._ask(x.VERSION, struct.pack(">H", x.PROTOCOL)) != b"\1":
            raise LinkError(f"the controller at {where} does not support RTDE version 2; update its software")
        version = struct.unpack(">4I", self._ask(x.CONTROL_VERSION))
        rate = self.rate or (500.0 if version[0] >= 5 else 125.0)
        names: list[str] = [*NEEDED, *EXTRA, x.SPEED]
        for _ in range(2):  # again without the fields that it lacks
            answer = self._ask(x.OUTPUTS, struct.pack(">d", rate) + ",".join(names).encode())
            types = answer[1:].decode().split(",")
            if x.NOT_FOUND not in types:
                break
            missing = [name for name, kind in zip(names, types, strict=True) if kind == x.NOT_FOUND]
            if lost := [name for name in missing if name in NEEDED]:
                raise LinkError(f"the controller at {where} has no {', '.join(lost)}; update its software")
            names = [name for name in names if name not in missing]
        self._outputs = x.Recipe(answer[0], names, types)
        answer = self._ask(x.INPUTS, ",".join(x.SENT).encode())
        types = answer[1:].decode().split(",")
        if x.IN_USE in types:
            raise UnreachableError(f"another client writes the registers of the controller at {where}; close it first")
        self._inputs = x.Recipe(answer[0], x.SENT, types)
        if self._ask(x.START) != b"\1":
            raise LinkError(f"the controller at {where} does not send samples; check its log")
        self._extras = [name for name in EXTRA if name in names]
        wide = {name: self._outputs.body[name].shape for name in self._extras}
        columns = [f"{name}_{i + 1}" if shape else name for name, shape in wide.items() for i in range(*shape or (1,))]
        return Identity(
            coordinates=self.identity.coordinates,  # a campaign has set the names of its plan
            channels=self.identity.channels,
            extras=tuple(columns),
            lower=np.full(JOINTS, -RANGE),
            upper=np.full(JOINTS, RANGE),
            velocity=np.full(JOINTS, SPEED),
            effort_kind="motor_current",
            period=1.0 / rate,
            firmware="URControl " + ".".join(map(str, version[:3])),
            version=str(x.PROTOCOL),
            virtual=x.SPEED in names,
            speed=float(self._outputs.unpack([self._answer(x.DATA)])[x.SPEED][0]) if x.SPEED in names else 1.0,
        )

    def _ask(self, kind: int, payload: bytes = b"") -> bytes:
        assert self._sock is not None
        self._sock.sendall(x.frame(kind, payload))
        return self._answer(kind)

    def _answer(self, kind: int) -> bytes:
        """Return the payload of the next message of a type; others are skipped."""
        assert self._sock is not None
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            while self._waiting:
                found, payload = self._waiting.pop(0)
                if found == kind:
                    return payload
            if not (data := self._sock.recv(1 << 16)):
                raise ConnectionError("it has closed the connection")
            self._waiting += map(x.message, self._framer.feed(data))
        raise ConnectionError("it does not answer")

    def close(self) -> None:
        """Close the connection; the program stops a moving robot, and ends."""
        self._closed.set()
        sock, self._sock = self._sock, None
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    # ------------------------------------------------------------------ samples and setpoints
    def _listen(self, sock: socket.socket, closed: threading.Event) -> None:
        try:
            while not closed.is_set():
                found = [payload for kind, payload in self._waiting if kind == x.DATA]
                self._waiting = []
                if found:
                    rows = self._outputs.unpack(found)
                    self._newest = rows[-1]
                    self.deliver(self._samples(rows))
                self._respond(sock)
                with contextlib.suppress(TimeoutError):
                    if not (data := sock.recv(1 << 18)):
                        break
                    self._waiting = [x.message(one) for one in self._framer.feed(data)]
        except (OSError, LinkError):
            pass
        if not closed.is_set():
            self.cut = True
            self.deliver(None)

    def _samples(self, rows: Any) -> Samples:
        clock, number = rows["timestamp"].astype(np.float64), rows[x.EXECUTED].astype(np.float64)
        if math.isnan(self._origin):
            self._origin = float(clock[0])
        signals = ("actual_q", "actual_qd", "actual_current", "joint_temperatures")
        q, v, current, heat = (rows[name].astype(np.float64) for name in signals)
        return Samples(
            np.round((clock - self._origin) / self.identity.period).astype(np.int64),
            clock,
            np.where(number < 0.0, np.nan, number * self.identity.period),
            *(q, v, current, heat),
            np.column_stack([rows[name] for name in self._extras] or [np.empty((len(rows), 0))]).astype(np.float64),
        )

    def _respond(self, sock: socket.socket) -> None:
        """Send the wanted setpoints, or only a heartbeat."""
        with self._lock:
            if self._running and (reason := self._ended()):
                self._beating = self._running = self.sending = False
                self.failure = reason
            if not self._beating:
                return
            packages = []
            if self._points is not None:
                last, wanted = len(self._points) - 1, int(self._newest[x.WANTED])
                if self._next > last:  # the last one was sent with an earlier answer
                    self._points, self._idle, self.sending = None, x.HOLD, False
                while self._points is not None and self._next <= min(last, wanted):
                    packages.append(self._package(self._next, self._points[self._next]))
                    self._next += 1
            if not packages:
                held = self._idle if self._points is None else self._next - 1
                packages.append(self._package(held, self._here if self._points is None or held < 0 else self._points[held]))
            data = b"".join(packages)
        sock.settimeout(TIMEOUT)
        sock.sendall(data)
        sock.settimeout(BEAT)

    def _ended(self) -> str | None:
        """Return why the program on the robot has ended; None while it runs."""
        row = self._newest
        state, bits = row[x.STATE], int(row["robot_status_bits"])
        self.cut = state == x.SILENT
        if state == x.JUMPED:
            return "the program on the robot received a setpoint that is too far away and stopped the robot; check the plan"
        if self.cut or not bits & PLAYING:
            return "the program on the robot has " + ("lost this client" if self.cut else "been stopped; look at the robot")
        return None

    def _package(self, number: int, q: Array) -> bytes:
        self._beat = (self._beat + 1) % (1 << 30)
        return self._inputs.pack(1, dict(zip(x.SENT, (self._beat, number, *q, self._scale), strict=True)))

    @property
    def _here(self) -> Array:
        return np.array(self._newest["target_q"], dtype=np.float64)

    # ------------------------------------------------------------------ interface of a controller
    def state(self) -> Status:
        """Return the controller's state, from the newest sample."""
        row = self._newest
        bits, safety = int(row["robot_status_bits"]), int(row["safety_mode"])
        alarm = SAFETY.get(safety, 0)
        moving = row[x.EXECUTED] >= 0 or np.abs(row["target_qd"]).max() > MOVING
        powered = bool(bits & POWERED)
        return Status(powered, alarm == 4012, moving or self.sending, powered and not alarm, alarm)

    def position(self) -> Array:
        """Return the commanded position, (n,) in the order of its coordinates."""
        return self._here

    def send(self, motion: Motion) -> None:
        """Accept a motion, and start the program on the robot if it does not run."""
        self._start()
        period, t = self.identity.period, motion.t - motion.t[0]
        at = np.minimum(np.arange(math.ceil(t[-1] / period - 1e-6) + 1) * period, t[-1])
        with self._lock:
            self.failure, self.cut = None, False
            self._loaded = through(t, motion.q, motion.v, motion.a, at)[0]
            fastest = float(np.abs(np.diff(self._loaded, axis=0)).max(initial=0.0)) / period
            self._scale = min(1.0, MARGIN * fastest / x.TOP_SPEED)

    def _start(self) -> None:
        """Send the program and wait until it runs."""
        status = self.state()
        if not status.possible:
            why = f"it is in {status.why}" if status.alarm else "its drives are off"
            raise LinkError(f"the robot cannot move: {why}; release it on the teach pendant and resume")
        if self._running:
            return
        with self._lock:
            self._beating, self._idle = True, x.HOLD
        with self._send_program():
            end = time.monotonic() + self.patience
            while time.monotonic() < end:
                playing = int(self._newest["robot_status_bits"]) & PLAYING
                if playing and self._newest[x.STATE] == x.RUNNING:
                    with self._lock:
                        self._running = True
                    return
                time.sleep(0.002)
        raise LinkError(
            "the robot does not start the program; switch it to remote control on the teach pendant, and end other programs"
        )

    def _send_program(self) -> socket.socket:
        """Return the connection that sent the program; it is closed once the program runs, because its data are not read."""
        try:
            script = socket.create_connection((self.host, self.script), timeout=TIMEOUT)
            script.sendall(x.PROGRAM.encode())
        except (OSError, OverflowError) as error:
            raise UnreachableError(f"{self.host}:{self.script} does not accept programs ({error})") from error
        return script

    def run(self) -> None:
        """Start the sent motion; returns at once."""
        with self._lock:
            self._points, self._next, self.sending = self._loaded, 0, True

    def stop(self) -> None:
        """Bring the robot to rest, with the next heartbeat."""
        with self._lock:
            self._points, self._idle, self.sending = None, x.STOP, False

    def reset(self) -> None:
        """Do nothing: the user releases a stopped robot on the teach pendant."""
