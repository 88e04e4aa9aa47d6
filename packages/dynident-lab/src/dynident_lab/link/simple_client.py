"""Client of a simple_message controller: streamer or downloader of points, receiver of samples.

    streamer     0, 1, 2, ...       the next point only after the reply to the last
    downloader   -1, 1, 2, ..., -3  the robot starts with the end marker

dynident controllers get POINT messages in float64: the motion equals that of the plan bit by bit.

Over UDP a request is repeated until it is answered. Replies have no number, so one may be a copy of an older one: a dynident
controller refuses an unexpected point, and the client returns to the last accepted one. Other
controllers may execute a copy as another point, so requests to them are repeated only when an answer is long overdue.
"""

from __future__ import annotations

import contextlib
import math
import queue
import struct
import threading
import time

import numpy as np

from dynident.arrays import Array
from dynident.errors import LinkError
from dynident.mechanics import Motion
from dynident_lab.link import simple_messages as m
from dynident_lab.link.controller import Identity, RemoteController, Samples, Status, UnreachableError, decode_json
from dynident_lab.link.plant import VERSION
from dynident_lab.link.simple_messages import Message
from dynident_lab.link.sockets import REPEAT, TIMEOUT, BusyError, Wire

BUFFER_TIMEOUT = 30.0  # longest wait for the answer to a point, which may wait for buffer space [s]
HEARTBEAT = 0.5  # between pings while a motion runs [s]
WATCHDOG = 2.0  # silence of this client after which a dynident controller stops the motion [s]
FEEDBACK = 10.0  # longest wait for the position of the robot [s]
OVERDUE = 1.0  # time before a request is repeated to a controller that may execute it twice [s]
BACK = 32  # largest number of points that a streamer goes back
QUIET = 0.03  # silence after which no answer is pending [s]


class SimpleClient(RemoteController):
    """A controller with the simple_message protocol."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 11000,
        state: int | str | None = None,
        transport: str = "tcp",
        order: str = "little",
        mode: str = "stream",
        points: str = "auto",
    ) -> None:
        for label, value, choices in (
            ("transport", transport, ("tcp", "udp")),
            ("order", order, tuple(m.ORDERS)),
            ("mode", mode, ("stream", "download")),
            ("points", points, ("auto", "full", "short")),
        ):
            if value not in choices:
                raise LinkError(f"{label} is '{value}'; it is {' or '.join(choices)}")
        try:
            self.host, self.port, self.state_port = host, port, port + 2 if state is None else int(state)
        except ValueError:
            raise LinkError(f"state is '{state}'; give the number of the state port") from None
        self.transport, self.order, self.mode, self.points = transport, order, mode, points
        super().__init__()
        self._motion: Wire | None = None
        self._feedback: Wire | None = None
        self._ours = False
        self._status = Status()
        self._here: Array | None = None
        self._lock = threading.RLock()
        self._halt = threading.Event()
        self._closed = threading.Event()
        self._told, self._placed = threading.Event(), threading.Event()
        self._loaded: Motion | None = None
        self._counter = 0

    # ------------------------------------------------------------------ connection
    def connect(self) -> Identity:
        """Open both ports and return the controller's identity; without names for other than dynident controllers."""
        try:
            return self._open()
        except BusyError:
            time.sleep(1.0)  # the last client may be leaving, which UDP shows by silence only
            return self._open()

    def _open(self) -> Identity:
        self._status, self._ours = Status(), False
        self._motion = Wire(self.host, self.port, self.transport, self.order)
        try:
            try:
                reply = self._ask(Message(m.GET_VERSION), 2.0 * TIMEOUT)
            except TimeoutError:
                reply = Message(m.GET_VERSION)  # some controllers ignore unknown requests
            if reply.reply == m.SUCCESS and len(reply.data) == 12:
                version = struct.unpack(f"{m.ORDERS[self.order]}3i", reply.data)
                reply = self._ask(Message(m.IDENTITY), TIMEOUT)
                self._ours = reply.reply == m.SUCCESS and bool(reply.data)
                if self._ours and version[:2] != VERSION[:2]:
                    theirs, ours = (".".join(map(str, numbers[:2])) for numbers in (version, VERSION))
                    raise LinkError(
                        f"the controller speaks version {theirs} of these messages, this client {ours}; update the older one"
                    )
            if self._ours:
                data = decode_json(reply.data)
                self.identity, self._here = Identity.of(data), np.array(data["setpoint"])
                if not data["yours"] and not data["client"]:
                    raise LinkError(f"port {self.port} of {self.host} is not a motion port; exchange it with the state port")
                if not data["yours"]:
                    raise BusyError(f"another client ({data['client']}) controls this robot; close it first")
            self._feedback = Wire(self.host, self.state_port, self.transport, self.order)
            if self._ours:
                self._subscribe()
                self._command(m.WATCHDOG, "a watchdog", struct.pack(f"{m.ORDERS[self.order]}d", WATCHDOG))
        except (LinkError, OSError) as error:
            self.close()
            if isinstance(error, LinkError):
                raise
            raise UnreachableError(
                f"the controller at {self._motion.name} does not answer as simple_message ({error}); check port, byte order "
                "and access rights of this computer"
            ) from error
        self._queue, self._closed = queue.Queue(), threading.Event()
        self._told, self._placed = threading.Event(), threading.Event()
        listener = (self._feedback, self._queue, self._closed)
        threading.Thread(target=self._listen, args=listener, name="feedback", daemon=True).start()
        if not self._ours and not self._placed.wait(FEEDBACK):
            self.close()
            raise UnreachableError(f"the state port {self._feedback.name} sends no robot position; check the port")
        self._told.wait(TIMEOUT if self._ours else 0.5)  # wait for the first STATUS, if any
        return self.identity

    def _subscribe(self) -> None:
        assert self._feedback is not None
        for _ in range(20):
            self._feedback.send(m.encode(Message(m.SUBSCRIBE), self.order))
            end = time.monotonic() + 0.25
            while time.monotonic() < end:
                frame = self._feedback.receive(0.1)
                if frame is not None and len(frame) > 1 and self._safe(frame).type == m.SUBSCRIBE:
                    return
        raise LinkError(f"the state port {self._feedback.name} sends no samples; check the port")

    def _safe(self, frame: bytes) -> Message:
        try:
            return m.decode(frame, self.order)
        except LinkError:
            return Message(0)

    def close(self) -> None:
        """Close both ports."""
        self._halt.set()
        self._closed.set()
        if self._lossy and self._motion is not None:
            with contextlib.suppress(OSError):
                self._motion.send(
                    m.encode(Message(m.COMMAND, data=struct.pack(f"{m.ORDERS[self.order]}i", m.GOODBYE)), self.order)
                )
        for wire in (self._motion, self._feedback):
            if wire is not None:
                wire.close()

    # ------------------------------------------------------------------ requests
    def _ask(self, message: Message, timeout: float, drain: bool = True) -> Message:
        """Send a request and return its reply; `TimeoutError` without a reply."""
        wire = self._motion
        if wire is None:
            raise LinkError("the controller is not connected; call connect first")
        frame = m.encode(message, self.order)
        with self._lock:
            udp = self.transport == "udp"
            while udp and drain and wire.receive(1e-4) is not None:
                pass  # copies of older answers
            wire.send(frame)
            once = message.type in (m.JOINT_TRAJ_PT, m.JOINT_TRAJ_PT_FULL) and not self._ours
            end, pause = time.monotonic() + timeout, OVERDUE if once else REPEAT
            again = time.monotonic() + pause
            while (now := time.monotonic()) < end:
                try:
                    data = wire.receive(min(again, end) - now if udp else end - now)
                except ConnectionRefusedError:
                    data = None
                if data is not None and len(data) > 1:
                    reply = self._safe(data)
                    same = message.type != m.PING or reply.data[: len(message.data)] == message.data
                    if reply.comm == m.REPLY and reply.type == message.type and same:
                        return reply
                if udp and time.monotonic() >= again:
                    wire.send(frame)
                    pause = OVERDUE if once else min(5.0 * REPEAT, 1.5 * pause)
                    again = time.monotonic() + pause
        raise TimeoutError(f"the controller at {wire.name} does not answer")

    def _request(self, message: Message, what: str) -> Message:
        reply = self._ask(message, TIMEOUT)
        if reply.reply != m.SUCCESS:
            reason = reply.data.decode(errors="replace") if self._ours and reply.data else "it says no more"
            raise LinkError(f"the controller refuses {what}: {reason}")
        return reply

    def _command(self, code: int, what: str, more: bytes = b"") -> None:
        self._request(Message(m.COMMAND, data=struct.pack(f"{m.ORDERS[self.order]}i", code) + more), what)

    def reset(self) -> None:
        """Reset alarms."""
        self._command(m.RESET, "to forget its alarms")
        self._status = Status()

    def emergency_stop(self, pressed: bool = True) -> None:
        """Press or release the emergency stop of a dynident controller."""
        self._command(m.EMERGENCY_STOP if pressed else m.RELEASE, "the emergency stop")

    def rest(self, resting: bool, duration: float = math.inf) -> None:
        """Announce a standstill of the robot."""
        if self._ours:
            length = struct.pack(f"{m.ORDERS[self.order]}d", duration) if resting else b""
            self._command(m.REST if resting else m.REST_OVER, "to rest", length)

    def ping(self, data: bytes = b"") -> bytes:
        """Return the echo of the controller."""
        return self._request(Message(m.PING, data=data), "a ping").data

    def state(self) -> Status:
        """Return the controller's state, from its last STATUS topic."""
        return self._status

    def position(self) -> Array:
        """Return the commanded position; all ten slots if the joints have no names."""
        if self._ours:
            data = decode_json(self._request(Message(m.IDENTITY), "to say where it is").data)
            self._here = np.array(data["setpoint"], dtype=np.float64)
        if self._here is None:
            raise LinkError("the controller has not reported the robot's position yet; wait for its feedback")
        return self._here[: len(self.identity.coordinates) or None]

    def samples(self, timeout: float) -> list[tuple[float, Samples]]:
        """Return the samples since the last call, reduced to the robot's joints if their names are known."""
        n = len(self.identity.coordinates)
        found = super().samples(timeout)
        return [(host, rows.first(n)) for host, rows in found] if n and not self._ours else found

    # ------------------------------------------------------------------ motion
    def send(self, motion: Motion) -> None:
        """Accept a motion; `run` sends its points."""
        exact = self._kind == m.POINT
        if motion.dof > m.SLOTS and not exact:
            raise LinkError(f"the motion has {motion.dof} joints; simple_message has {m.SLOTS} slots, use protocol lynx")
        if motion.t[-1] - motion.t[0] > 2048.0 and not exact:
            raise LinkError(
                f"the motion lasts {motion.t[-1] - motion.t[0]:.0f} s; a float32 clock counts to 2048 s, send it in parts"
            )
        if self.mode == "download" and 0 < self.identity.buffer < len(motion):
            raise LinkError(f"the motion has {len(motion)} points; the buffer holds {self.identity.buffer}, use mode=stream")
        self._loaded = motion

    def run(self) -> None:
        """Start the accepted motion; returns at once."""
        if self._loaded is None:
            raise LinkError("there is no motion to run; send one first")
        if self.sending:
            raise LinkError("a motion is still being sent; wait or stop")
        frames = self.messages(self._loaded)
        self.sending, self.failure, self.cut = True, None, False
        self._halt.clear()
        threading.Thread(target=self._stream, args=(frames,), name="streamer", daemon=True).start()

    def messages(self, motion: Motion) -> list[Message]:
        """Return the messages of a motion that `run` sends."""
        limits = np.full(motion.dof, np.inf) if self.identity.velocity is None else self.identity.velocity
        return m.trajectory_messages(motion, limits, download=self.mode == "download", kind=self._kind)

    @property
    def _kind(self) -> int:
        """Type of the message for a point."""
        if self.points == "short":
            return m.JOINT_TRAJ_PT
        return m.POINT if self._ours and self.points == "auto" else m.JOINT_TRAJ_PT_FULL

    def _stream(self, points: list[Message]) -> None:
        """Send all points, each after the reply to the previous one; go back after an unexpected point."""
        try:
            i, back, beat, furthest = 0, 0, time.monotonic(), 0
            while i < len(points) and not self._halt.is_set():
                reply = self._ask(points[i], BUFFER_TIMEOUT)
                if reply.reply == m.SUCCESS:
                    i += 1
                    if i > furthest:
                        furthest, back = i, 0
                    if i == len(points) and self._lossy and not self._certain(points[-1]):
                        i = max(0, len(points) - 2)
                elif self._lossy and i > 0 and back < BACK:
                    i, back = i - 1, back + 1
                else:
                    reason = reply.data.decode(errors="replace") if self._ours and reply.data else f"point {i} failed"
                    raise LinkError(f"the controller refuses the motion: {reason}")
                if self._ours and time.monotonic() - beat > HEARTBEAT:
                    beat = time.monotonic()
                    self.ping(struct.pack("<d", beat))
            self.sending = False
            while self._ours and not self._halt.wait(HEARTBEAT) and self._status.moving:
                self.ping(struct.pack("<d", time.monotonic()))  # keeps the controller's watchdog from expiring
        except (LinkError, OSError) as error:
            if not self._halt.is_set():
                self.cut, self.failure = isinstance(error, OSError), str(error)
        finally:
            self.sending = False

    @property
    def _lossy(self) -> bool:
        """True if answers may be missing or old, and a repeated point is executed once."""
        return self.transport == "udp" and self._ours

    def _certain(self, last: Message) -> bool:
        """Return whether the last point was really accepted: ask again when no older answer can be pending."""
        assert self._motion is not None
        with self._lock:
            for _ in range(3):
                while self._motion.receive(QUIET) is not None:
                    pass
                if self._ask(last, BUFFER_TIMEOUT).reply != m.SUCCESS:
                    return False
        return True

    def stop(self) -> None:
        """Bring the robot to rest at once."""
        self._halt.set()
        end = time.monotonic() + TIMEOUT
        while self.sending and time.monotonic() < end:
            time.sleep(0.002)
        self._request(Message(m.JOINT_TRAJ_PT, sequence=m.STOP, q=()), "to stop")

    # ------------------------------------------------------------------ feedback
    def _listen(self, wire: Wire, out: queue.Queue[tuple[float, Samples] | None], closed: threading.Event) -> None:
        """Receive topics until the connection is closed."""
        beat = time.monotonic()
        try:
            while not closed.is_set():
                frame = wire.receive(0.2)
                if self._lossy and time.monotonic() - beat > 1.0:
                    beat = time.monotonic()
                    wire.send(bytes([m.HANDSHAKE]))  # renews the subscription to SAMPLES
                if frame is not None and len(frame) > 1:
                    self._topic(frame)
        except (OSError, LinkError):
            pass
        if not closed.is_set():
            out.put(None)

    def _topic(self, frame: bytes) -> None:
        try:
            message = m.decode(frame, self.order)
            if message.type == m.SAMPLES:
                self.deliver(m.decode_samples(message.data, self.order))
            elif message.type == m.STATUS:
                self._status = Status.of(message.status)
                self._told.set()
            elif message.type in (m.JOINT_POSITION, m.JOINT_FEEDBACK) and not self._ours:
                self._plain(message)
        except LinkError:
            pass  # dropped: the next topic follows

    def _plain(self, message: Message) -> None:
        """Convert the topic of another controller to a sample without efforts."""
        row = np.full((1, 3 + 4 * m.SLOTS), np.nan)
        row[0, :2] = self._counter, message.time if message.valid & m.TIME else time.time()
        row[0, 3 : 3 + m.SLOTS] = message.q
        if message.valid & m.VELOCITY:
            row[0, 3 + m.SLOTS : 3 + 2 * m.SLOTS] = message.v
        self._here = np.array(message.q)
        self._counter += 1
        self.deliver(Samples.from_table(row))
        self._placed.set()
