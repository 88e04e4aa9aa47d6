"""Interface of a controller, independent of its protocol: small, so that a further protocol needs one file only."""

from __future__ import annotations

import contextlib
import json
import math
import queue
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.errors import LinkError
from dynident.mechanics import Motion
from dynident.plugins import CONTROLLERS, entries, load
from dynident.trajectory import Quintic

APPROACH = 0.2  # share of the top speeds for homing, jogging, and approaching a start

ALARMS = {
    4000: "the address of the server is wrong",
    4002: "the port cannot be opened",
    4003: "receiving has failed",
    4004: "sending has failed",
    4010: "a setpoint is outside the limits",
    4011: "following error",
    4012: "emergency stop",
    4013: "watchdog: the client is silent",
    4014: "the buffer ran dry while the robot moved",
    4015: "the drives have failed",
    4016: "protective stop",
    4017: "safeguard stop",
    4018: "safety violation or fault",
}


class UnreachableError(LinkError):
    """No answer, or another client has the controller: a later attempt may succeed."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples of a controller in the order of their creation.

    Parameters
    ----------
    index : ndarray of int, (N,)
        Counter of the controller, without gaps.
    clock : ndarray, (N,)
        Clock of the controller [s].
    motion : ndarray, (N,)
        Time since the running trajectory began [s]; NaN when none runs.
    position, velocity, effort, temperature : ndarray, (N, n)
        As the controller reports them, in SI; NaN if not reported.
    extra : ndarray, (N, m), optional
        Other signals, named in `Identity.extras`.
    """

    index: NDArray[np.int64]
    clock: Array
    motion: Array
    position: Array
    velocity: Array
    effort: Array
    temperature: Array
    extra: Array | None = None

    def __len__(self) -> int:
        return int(self.index.size)

    @property
    def table(self) -> Array:
        """All numbers, (N, 3 + 4 n + m): index, clock, motion, positions, velocities, efforts, temperatures, others."""
        parts = (self.index.astype(np.float64), self.clock, self.motion)
        other = () if self.extra is None else (self.extra,)
        return np.column_stack([*parts, self.position, self.velocity, self.effort, self.temperature, *other])

    def first(self, n: int) -> Samples:
        """Return the samples of the first n joints: messages of fixed length have unused slots."""
        parts = (self.position, self.velocity, self.effort, self.temperature)
        return Samples(self.index, self.clock, self.motion, *(part[:, :n] for part in parts))

    @classmethod
    def from_table(cls, table: Array) -> Samples:
        """Return the samples of a `table` (N, 3 + 4 n) without other signals."""
        n = (table.shape[1] - 3) // 4
        blocks = [table[:, 3 + k * n : 3 + (k + 1) * n] for k in range(4)]
        return cls(table[:, 0].astype(np.int64), table[:, 1], table[:, 2], *blocks)

    def row(self, i: int) -> Samples:
        """Return one sample."""
        one = slice(i, i + 1)
        other = None if self.extra is None else self.extra[one]
        q, v, effort, heat = (x[one] for x in (self.position, self.velocity, self.effort, self.temperature))
        return Samples(self.index[one], self.clock[one], self.motion[one], q, v, effort, heat, other)


def decode_json(data: bytes) -> dict[str, Any]:
    """Return the content of an IDENTITY reply."""
    try:
        found = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise LinkError(
            f"the controller's identity cannot be read ({error}); update the older of controller and client"
        ) from error
    if not isinstance(found, dict):
        raise LinkError("the controller's identity is not a table; update the older of controller and client")
    return found


@dataclass(frozen=True, eq=False)
class Identity:
    """Identity and properties of a controller.

    Parameters
    ----------
    robot : str
        Name of the robot; empty if the controller does not report it.
    coordinates : tuple of str
        Names of the commanded coordinates, in order; empty if not reported.
    channels : tuple of str
        Names of the measured channels.
    extras : tuple of str
        Names of other signals that are recorded.
    lower, upper, velocity, acceleration : ndarray, (n,)
        Limits of the coordinates, infinite if unknown.
    effort_kind : str
        Meaning of the efforts; empty if none are sent.
    position_side : str
        Side of the position measurement, "joint" or "motor".
    gain : tuple of float or None
        Drive gains.
    period : float
        Time between two samples [s]; 0 when unknown.
    buffer : int
        Capacity of its buffer in points; 0 if unknown.
    home : ndarray, (n,)
        Home position.
    firmware, version, identity : str
        Firmware, version of the messages, and sixteen digits that identify it.
    virtual : bool
        True for a simulated robot, which may move without confirmation.
    speed : float
        Seconds of the robot per second of the host.
    """

    robot: str = ""
    coordinates: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    lower: Array | None = None
    upper: Array | None = None
    velocity: Array | None = None
    effort_kind: str = ""
    position_side: str = "joint"
    gain: tuple[float, ...] | None = None
    period: float = 0.0
    buffer: int = 0
    home: Array | None = None
    firmware: str = "unknown"
    version: str = ""
    identity: str = ""
    virtual: bool = False
    speed: float = 1.0
    acceleration: Array | None = None
    extras: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Identity:
        """Return the identity from the plain data of a dynident controller."""
        try:
            n = len(data["coordinates"])
            missing = {"lower": -np.inf, "upper": np.inf, "velocity": np.inf, "acceleration": np.inf, "home": 0.0}
            facts: dict[str, Any] = {
                key: np.array([none if x is None else float(x) for x in data[key]]) for key, none in missing.items()
            }
            if any(x.shape != (n,) for x in facts.values()):
                raise LinkError("the controller's identity has limits of another number of joints")
            facts |= {key: str(data[key]) for key in ("robot", "effort_kind", "position_side", "firmware", "identity")}
            facts |= {key: tuple(map(str, data[key])) for key in ("coordinates", "channels")}
            facts |= {key: float(data[key]) for key in ("period", "speed")}
            gain = None if data.get("gain") is None else tuple(map(float, data["gain"]))
            version = ".".join(map(str, data["version"]))
            return cls(**facts, gain=gain, version=version, buffer=int(data["buffer"]), virtual=bool(data["virtual"]))
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, LinkError):
                raise
            raise LinkError(
                f"the controller's identity cannot be used ({error!r}); update the older of controller and client"
            ) from error

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for a record: names, versions and rates."""
        names = ("robot", "effort_kind", "position_side", "period", "firmware", "version", "identity", "virtual", "speed")
        return {name: getattr(self, name) for name in names} | {
            "coordinates": list(self.coordinates),
            "channels": list(self.channels),
            "extras": list(self.extras),
            "gain": None if self.gain is None else list(self.gain),
        }


@dataclass(frozen=True)
class Status:
    """State reported by a controller.

    Parameters
    ----------
    powered, e_stopped, moving, possible : bool
        Drives on, emergency stop pressed, in motion, ready to move.
    alarm : int
        Code of its alarm; 0 for none.
    """

    powered: bool = True
    e_stopped: bool = False
    moving: bool = False
    possible: bool = True
    alarm: int = 0

    @classmethod
    def of(cls, numbers: Sequence[int]) -> Status:
        """Return the state from the seven numbers of a STATUS message; -1 is unknown."""
        powered, stopped, code, error, moving, _, possible = numbers
        return cls(powered != 0, stopped == 1, moving == 1, possible != 0, code if error == 1 else 0)

    @property
    def why(self) -> str:
        """The alarm in words, as in "alarm 4012 (emergency stop)"."""
        return f"alarm {self.alarm} ({ALARMS[self.alarm]})" if self.alarm in ALARMS else f"alarm {self.alarm}"


class RemoteController(ABC):
    """A remote controller.

    The order is: `connect`, then `send` and `run` for every motion with frequent calls of `samples`, `stop` at any time,
    `close`. Methods raise `LinkError` with one sentence; `ConnectionError` or `TimeoutError` only if the connection is lost.
    """

    identity: Identity
    sending: bool = False  # True while the last motion is still being sent
    failure: str | None = None  # reason why the last motion could not be sent
    cut: bool = False  # True if the connection caused the failure

    def __init__(self) -> None:
        self.identity = Identity()
        self._queue: queue.Queue[tuple[float, Samples] | None] = queue.Queue()  # received samples; None after a lost connection

    @abstractmethod
    def connect(self) -> Identity:
        """Open the connection and return the controller's identity."""

    @abstractmethod
    def state(self) -> Status:
        """Return the newest known state of the controller."""

    @abstractmethod
    def position(self) -> Array:
        """Return the commanded position, (n,) in the order of its coordinates."""

    @abstractmethod
    def send(self, motion: Motion) -> None:
        """Send a motion, which starts at the robot's position and ends at rest."""

    @abstractmethod
    def run(self) -> None:
        """Start the sent motion; returns at once."""

    @abstractmethod
    def stop(self) -> None:
        """Bring the robot to rest at once."""

    @abstractmethod
    def reset(self) -> None:
        """Reset alarms."""

    def deliver(self, samples: Samples | None) -> None:
        """Pass on received samples, from any thread; None if the other side has closed the connection, not after `close`."""
        self._queue.put(None if samples is None else (time.time(), samples))

    def samples(self, timeout: float) -> list[tuple[float, Samples]]:
        """Return the samples received since the last call."""
        out = []
        with contextlib.suppress(queue.Empty):
            out.append(self._queue.get(timeout=timeout) if timeout > 0.0 else self._queue.get_nowait())
            while True:
                out.append(self._queue.get_nowait())
        if None in out:
            raise ConnectionError("the controller has closed the connection")
        return [item for item in out if item is not None and len(item[1])]

    @abstractmethod
    def close(self) -> None:
        """Close the connection, if one is open; `connect` may follow."""

    def rest(self, resting: bool, duration: float = math.inf) -> None:
        """Announce a standstill: a virtual robot then runs its time faster; other controllers ignore it."""
        del resting, duration

    def approach(self, q: ArrayLike) -> Motion | None:
        """Return a slow motion from the robot's position to a pose, at rest at both ends."""
        there = np.atleast_1d(np.asarray(q, dtype=np.float64))
        return approach(self.position()[: there.size], there, self.identity)


def approach(here: Array, there: Array, identity: Identity) -> Motion | None:
    """Return a slow motion of a controller between two poses, at rest at both ends; None for equal poses."""
    if np.abs(there - here).max() < 1e-6:
        return None
    top = np.ones(here.size) if identity.velocity is None else identity.velocity
    return straight(here, there - here, slow_duration(there - here, top, identity.acceleration), identity.period or 0.02)


def slow_duration(way: Array, top: Array, acceleration: Array | None = None) -> float:
    """Return the duration of a move with a quintic profile at `APPROACH` of the top speeds [s]."""
    cruise = 1.875 * np.abs(way) / (APPROACH * np.where(np.isfinite(top), top, 1.0))
    # The largest acceleration of the quintic is 10 / sqrt(3) times way / duration^2.
    start = 0.0 if acceleration is None else np.sqrt(10.0 / math.sqrt(3.0) * np.abs(way) / acceleration)
    return max(0.5, float(np.maximum(cruise, start).max()))


def straight(here: Array, way: Array, duration: float, period: float) -> Motion:
    """Return a straight motion from rest to rest, in whole periods and at most about fifty points, to fit into any buffer."""
    step = period * np.ceil(duration / 50.0 / period)
    t = np.arange(round(np.ceil(duration / step)) + 1) * step
    share, rate, change = (np.reshape(x, (-1, 1)) for x in Quintic(1.0, float(t[-1]))(t))
    return Motion(t, here + share * way, rate * way, change * way)


# ---- addresses -------------------------------------------------------------------------------------------------------


def open_controller(address: str, **options: Any) -> RemoteController:
    """Return the controller of an address, not connected.

    Parameters
    ----------
    address : str
        ``simple_message://127.0.0.1:11000``, ``lynx://127.0.0.1:12000`` or ``rtde://192.168.0.2``; options follow a question
        mark, as in ``?state=11002&transport=udp&order=big&mode=download``. Other protocols are classes of installed packages
        in the group ``dynident.controllers``; they are called with the host, the port if given, and the options.
    **options
        The same options as keywords, and ``key`` (bytes) for lynx.

    Returns
    -------
    RemoteController
        Ready to `connect`.
    """
    scheme, _, rest = address.partition("://")
    try:
        parts = urlsplit(f"//{rest}")  # urllib does not accept schemes with an underscore
        port = parts.port
        given: dict[str, Any] = {
            name: values[-1] for name, values in parse_qs(parts.query, strict_parsing=bool(parts.query)).items()
        }
    except ValueError as error:
        raise LinkError(f"controller '{address}' is not an address ({error}); give simple_message://127.0.0.1:11000") from error
    make = load(CONTROLLERS, scheme) if scheme in entries(CONTROLLERS) else None
    if make is None or not parts.hostname or parts.path not in ("", "/"):
        known = ", ".join(entries(CONTROLLERS))
        raise LinkError(
            f"controller '{address}' is not an address of a known protocol ({known}); give one such as "
            "simple_message://127.0.0.1:11000"
        )
    place = (parts.hostname,) if port is None else (parts.hostname, port)
    try:
        return make(*place, **{**given, **options})  # type: ignore[no-any-return]
    except TypeError as error:
        raise LinkError(f"controller '{address}' has an option that its protocol does not know ({error})") from error
