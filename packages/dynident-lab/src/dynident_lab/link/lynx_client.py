"""Client of a Lynx controller: tasks are opened and closed, trajectories sent in blocks, measurements received."""

from __future__ import annotations

import contextlib
import math
import queue
import socket
import struct
import threading
import time

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import LinkError
from dynident.mechanics import Motion
from dynident_lab.link import lynx_messages as x
from dynident_lab.link.controller import APPROACH, Identity, RemoteController, Status, UnreachableError, decode_json
from dynident_lab.link.lynx_messages import Frame, State
from dynident_lab.link.simple_messages import Framer
from dynident_lab.link.sockets import open_connection

TIMEOUT = 5.0  # longest wait for an answer [s]
HEARTBEAT = 0.5  # [s]
WATCHDOG = 2.0  # silence of this client after which the server stops a motion [s]


class LynxClient(RemoteController):
    """A controller with the Lynx protocol.

    Parameters
    ----------
    host : str
        Address of the controller.
    port : int
        Port of the controller.
    key : bytes or str
        Shared key; empty for none.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 12000, key: bytes | str = b"") -> None:
        self.host, self.port = host, port
        self._key = key.encode() if isinstance(key, str) else key
        super().__init__()
        self._sock: socket.socket | None = None
        self._answers: queue.Queue[Frame | None] = queue.Queue()
        self._state: State | None = None
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._sequence = 0
        self._task = 0

    @property
    def indicator(self) -> str:
        """State of the server: loading, ready, sending trajectory, target reading, receiving data or executing."""
        return "loading" if self._state is None else self._state.indicator

    @property
    def limit_switches(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the coordinates with closed lower and upper limit switches."""
        if self._state is None:
            return (), ()
        names = self.identity.coordinates
        bits = (self._state.lower, self._state.upper)
        low, high = (tuple(name for i, name in enumerate(names) if bit >> i & 1) for bit in bits)
        return low, high

    # ------------------------------------------------------------------ connection
    def connect(self) -> Identity:
        """Open the connection, prove the key, and return the controller's identity."""
        where = f"{self.host}:{self.port}"
        self._sock = open_connection(self.host, self.port)
        self._sock.settimeout(0.5)
        self._closed = threading.Event()
        self._answers, self._queue, self._task, self._state = queue.Queue(), queue.Queue(), 0, None
        threading.Thread(target=self._listen, args=(self._sock, self._closed), name="lynx client", daemon=True).start()
        try:
            hello = self._answer(where)
            if hello.kind == x.REFUSED:
                raise UnreachableError(f"the controller refuses: {hello.data.decode(errors='replace')}")
            if hello.kind != x.HELLO or len(hello.data) != 21:
                raise LinkError(f"the server at {where} does not use the lynx protocol; check the port")
            version, needs = struct.unpack_from("<IB", hello.data)
            if version != x.VERSION:
                raise LinkError(f"the controller uses lynx version {version}, this client {x.VERSION}; update the older one")
            if needs:
                if not self._key:
                    raise LinkError(f"the controller at {where} needs a key; give it with key= (--key-file)")
                self._ask(Frame(x.SESSION, x.PROOF, data=x.proof(self._key, hello.data[5:])))
            self.identity = Identity.of(self._facts())
            self._ask(Frame(x.COMMAND, x.ACQUIRE, data=b"\1"))
        except (LinkError, OSError) as error:
            self.close()
            if isinstance(error, LinkError):
                raise
            raise UnreachableError(f"the server at {where} does not use the lynx protocol ({error}); check the port") from error
        end = time.monotonic() + TIMEOUT
        while self._state is None and time.monotonic() < end:
            time.sleep(0.005)  # the first measurement contains the state
        threading.Thread(target=self._beat, args=(self._closed,), name="lynx heartbeat", daemon=True).start()
        return self.identity

    def _facts(self) -> dict[str, object]:
        return decode_json(self._ask(Frame(x.COMMAND, x.IDENTITY)).data)

    def close(self) -> None:
        """Close the connection."""
        self._closed.set()
        if self._sock is not None:
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)
            self._sock.close()
            self._sock = None

    def shutdown(self) -> None:
        """End the session: the robot comes to rest and the server closes the connection."""
        self._ask(Frame(x.SESSION, x.SHUTDOWN))
        self.close()

    def _listen(self, sock: socket.socket, closed: threading.Event) -> None:
        framer, answers, samples = Framer(), self._answers, self._queue
        try:
            while not closed.is_set():
                try:
                    data = sock.recv(1 << 18)
                except TimeoutError:
                    continue
                if not data:
                    break
                for raw in framer.feed(data):
                    frame = x.decode(raw)
                    if frame.comm == x.DATA and frame.kind == x.MEASUREMENTS:
                        self._state, rows = x.decode_measurements(frame.data)
                        samples.put((time.time(), rows))
                    else:
                        answers.put(frame)
        except (OSError, LinkError):
            pass
        answers.put(None)
        if not closed.is_set():
            samples.put(None)

    def _beat(self, closed: threading.Event) -> None:
        while not closed.wait(HEARTBEAT):
            try:
                self._ask(Frame(x.SESSION, x.ALIVE, data=struct.pack("<d", WATCHDOG)))
            except (LinkError, OSError):
                return

    # ------------------------------------------------------------------ requests
    def _answer(self, where: str) -> Frame:
        try:
            frame = self._answers.get(timeout=TIMEOUT)
        except queue.Empty:
            raise ConnectionError(f"the controller at {where} does not answer") from None
        if frame is None:
            raise ConnectionError(f"the controller at {where} has closed the connection")
        return frame

    def _ask(self, frame: Frame, number: int | None = None) -> Frame:
        """Send a frame and return its answer; a refusal raises an error with the server's message."""
        with self._lock:
            if self._sock is None:
                raise ConnectionError("the connection is closed")
            self._sequence = (self._sequence + 1) % (1 << 32)
            mine = self._sequence if number is None else number
            self._sock.sendall(x.encode(Frame(frame.comm, frame.kind, frame.task, mine, frame.data)))
            end = time.monotonic() + TIMEOUT
            while time.monotonic() < end:
                answer = self._answer(f"{self.host}:{self.port}")
                if answer.sequence == mine:
                    break
        if answer.kind == x.REFUSED and answer.comm == x.SESSION:
            raise LinkError(f"the controller refuses: {answer.data.decode(errors='replace')}")
        return answer

    def open(self, task: int) -> None:
        """Open a task; another open one is closed first."""
        if self._task == task:
            return
        if self._task:
            self._ask(Frame(x.SESSION, x.CLOSE, self._task))
            self._task = 0
        self._ask(Frame(x.SESSION, x.OPEN, task))
        self._task = task

    # ------------------------------------------------------------------ interface of a controller
    def state(self) -> Status:
        """Return the controller's state, from the last measurement."""
        return Status() if self._state is None else Status.of(self._state.status)

    def position(self) -> Array:
        """Return the commanded position, (n,) in the order of its coordinates."""
        return np.array(self._facts()["setpoint"], dtype=np.float64)

    def configure(self, home: ArrayLike, share: float = APPROACH) -> None:
        """Set the home position and the speed of homing; the robot must be homed again."""
        self.open(x.CONFIGURATION)
        values = np.array([share, *np.atleast_1d(home)], dtype="<f8")
        self._ask(Frame(x.COMMAND, x.CONFIGURE, x.CONFIGURATION, data=values.tobytes()))
        self.identity = Identity.of(self._facts())

    def home(self) -> None:
        """Home the robot; returns at the home position."""
        self.open(x.HOMING)
        self._ask(Frame(x.COMMAND, x.HOME, x.HOMING))
        self._wait(120.0)

    def jog(self, speed: ArrayLike, duration: float) -> None:
        """Move at a speed for a time; returns at rest. Limit switches end it early."""
        self.open(x.JOGGING)
        self._ask(Frame(x.COMMAND, x.JOG, x.JOGGING, data=np.array([duration, *np.atleast_1d(speed)], dtype="<f8").tobytes()))
        self._wait(duration + 30.0)

    def _wait(self, timeout: float) -> None:
        """Wait for rest; samples stay in the queue."""
        begin, seen = time.monotonic(), False
        while time.monotonic() - begin < timeout:
            status = self.state()
            if status.alarm:
                raise LinkError(f"the controller is in {status.why}; reset it")
            seen |= status.moving
            if not status.moving and (seen or time.monotonic() - begin > 1.0):
                return
            time.sleep(0.01)
        raise LinkError(f"the robot did not stop within {timeout:g} s; check the robot")

    def send(self, motion: Motion) -> None:
        """Send a motion in blocks; a robot that is not homed is homed first."""
        if self._state is not None and not self._state.homed:
            self.home()
        self.open(x.CONTROL)
        rows = np.column_stack([motion.t - motion.t[0], motion.q, motion.v, motion.a])
        for number, first in enumerate(range(0, len(rows), x.MOST_ROWS)):
            self._ask(Frame(x.DATA, x.BLOCK, x.CONTROL, data=x.encode_rows(rows[first : first + x.MOST_ROWS])), number)
        self._ask(Frame(x.DATA, x.END, x.CONTROL))

    def run(self) -> None:
        """Start the sent motion; returns at once."""
        self._ask(Frame(x.COMMAND, x.RUN, x.CONTROL))

    def stop(self) -> None:
        """Bring the robot to rest at once."""
        self._ask(Frame(x.COMMAND, x.STOP))

    def rest(self, resting: bool, duration: float = math.inf) -> None:
        """Announce a standstill of the robot."""
        self._ask(Frame(x.COMMAND, x.REST, data=struct.pack("<?d", resting, duration)))

    def quick_stop(self) -> None:
        """Stop and switch the drives off; `release` and `reset` before the next motion."""
        self._ask(Frame(x.COMMAND, x.QUICK_STOP))

    def release(self) -> None:
        """Release the quick stop."""
        self._ask(Frame(x.COMMAND, x.RELEASE))

    def reset(self) -> None:
        """Reset alarms."""
        self._ask(Frame(x.COMMAND, x.RESET))
        end = time.monotonic() + TIMEOUT
        while self.state().alarm and time.monotonic() < end:
            time.sleep(0.005)  # until a measurement confirms it
