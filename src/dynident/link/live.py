"""The stream of samples as it comes: a monitor, a recursive fit, the thermal state, and a file for other tools.

K = P x / (l + x' P x),   b += K (y - x' b),   P = (P - K x' P) / l           recursive least squares with forgetting l
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import LinkError, missing_extra
from dynident.identify import match
from dynident.link.controller import Identity
from dynident.link.messages import Samples
from dynident.monitor import Monitor, Reading
from dynident.signals import Log

Array = NDArray[np.float64]


class RecursiveFit:
    """Least squares that goes on with every sample: effort of one channel = row(q, v) b.

    Parameters
    ----------
    channel : int
        Which effort.
    row : callable
        ``row(position, velocity)`` with (n,) each returns the regressor row (p,); by default friction: sign(v), v, 1.
    forgetting : float
        Weight of a sample over that of the next, just below 1.
    moving : float
        Speed below which a sample is left out [rad/s, m/s].

    Attributes
    ----------
    values : ndarray, (p,)
        Estimate.
    deviation : ndarray, (p,)
        Its standard deviation.
    """

    def __init__(
        self,
        channel: int,
        row: Callable[[Array, Array], ArrayLike] | None = None,
        forgetting: float = 0.9995,
        moving: float = 0.02,
    ) -> None:
        if not 0.9 <= forgetting <= 1.0:
            raise LinkError(f"forgetting is {forgetting}; give a number from 0.9 to 1")
        self.channel, self.forgetting, self.moving = channel, forgetting, moving
        self._row = row or (lambda _, v: (np.sign(v[channel]), v[channel], 1.0))
        self.values: Array = np.empty(0)
        self._P: Array = np.empty((0, 0))
        self._noise, self.count = 0.0, 0

    def feed(self, host: float, samples: Samples) -> None:
        """Take samples.

        Parameters
        ----------
        host : float
            Not needed.
        samples : Samples
            What was measured.
        """
        del host
        for q, v, y in zip(samples.position, samples.velocity, samples.effort[:, self.channel], strict=True):
            if abs(v[self.channel]) < self.moving or not np.isfinite(y):
                continue
            x = np.asarray(self._row(q, v), dtype=np.float64)
            if not self.values.size:
                self.values, self._P = np.zeros(x.size), 1e6 * np.eye(x.size)
            Px = self._P @ x
            error = float(y - x @ self.values)
            scale = float(self.forgetting + x @ Px)
            self.values = self.values + Px * (error / scale)
            self._P = (self._P - np.outer(Px, Px) / scale) / self.forgetting
            self.count += 1
            self._noise += (error * error * self.forgetting / scale - self._noise) / min(
                self.count, 1.0 / (1.0 - self.forgetting + 1e-9)
            )

    @property
    def deviation(self) -> Array:
        """Standard deviation of the estimate, (p,)."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self._P) * self._noise, 0.0)))


class ThermalObserver:
    """Follows the thermal state of one joint from its friction power, sample by sample.

    Parameters
    ----------
    model : ThermalModel
        `SecondOrder` or another model of finite order.
    friction : callable
        ``friction(v)`` returns the cold friction torque at a velocity.
    channel : int
        Which joint.
    ambient : float
        Temperature of the surroundings [degree Celsius].

    Attributes
    ----------
    state : ndarray
        State of the model [degree Celsius].
    """

    def __init__(self, model: Any, friction: Callable[[float], float], channel: int, ambient: float = 20.0) -> None:
        self.model, self.friction, self.channel, self.ambient = model, friction, channel, ambient
        self.state: Array = np.array(model.simulate([0.0, 1.0], 0.0, None, ambient).state[0])
        self._clock: float | None = None

    def feed(self, host: float, samples: Samples) -> None:
        """Take samples.

        Parameters
        ----------
        host : float
            Not needed.
        samples : Samples
            What was measured.
        """
        del host
        if not len(samples):
            return
        last = self._clock if self._clock is not None else float(samples.clock[0])
        span = float(samples.clock[-1]) - last
        self._clock = float(samples.clock[-1])
        if span > 0.0:
            v = samples.velocity[:, self.channel]
            power = float(np.mean([self.friction(float(x)) * x for x in v]))
            self.state = np.asarray(self.model.advance(self.state, power, span, self.ambient))

    @property
    def temperature(self) -> float:
        """Temperature of the rubbing parts [degree Celsius]."""
        return float(self.state[0])


class LiveMonitor:
    """Hands every sample to a monitor, which stops the motion when something touches the robot.

    Parameters
    ----------
    monitor : Monitor
        Monitor of this robot; it goes on from where it is.
    identity : Identity
        Channels of the controller: names, side, kind of effort and gains.
    stop : bool
        Whether a raised flag raises `LinkError`, at which a campaign brings the robot to rest; otherwise it is only kept.
    alarm : callable, optional
        Called with the `Reading` at which the flag was raised, before that.

    Attributes
    ----------
    reading : Reading or None
        The newest.
    events : list of Reading
        The readings at which the flag was raised.
    """

    def __init__(
        self,
        monitor: Monitor,
        identity: Identity,
        stop: bool = True,
        alarm: Callable[[Reading], object] | None = None,
    ) -> None:
        self.monitor, self.stop, self.alarm = monitor, stop, alarm
        self.reading: Reading | None = None
        self.events: list[Reading] = []
        self._position, self._effort, self._warmth = _to_joints(monitor, identity)
        self._count: int | None = None

    def feed(self, host: float, samples: Samples) -> None:
        """Take samples; a gap in their counter starts the monitor anew.

        Parameters
        ----------
        host : float
            Not needed.
        samples : Samples
            What was measured.
        """
        del host
        q, tau = self._position(samples.position), self._effort(samples.effort)
        T = self._warmth(np.nan_to_num(samples.temperature))
        for k, index in enumerate(samples.index.tolist()):
            if self._count is not None and index != self._count + 1:
                self.monitor.reset()
            self._count = index
            before = self.reading is not None and self.reading.flag
            reading = self.reading = self.monitor.update(float(samples.clock[k]), q[k], tau[k], T[k])
            if reading.flag and not before:
                self._raise(reading)

    def _raise(self, reading: Reading) -> None:
        self.events.append(reading)
        if self.alarm is not None:
            self.alarm(reading)
        if self.stop:
            i = int(np.argmax(np.abs(reading.torque / reading.threshold)))
            raise LinkError(
                f"collision? external torque of '{self.monitor.joints[i]}' is {reading.torque[i]:.3g}, the model explains "
                f"{reading.threshold[i]:.3g} at most (t = {reading.t:.3f} s of the controller): stopped"
            )


Affine = Callable[[Array], Array]


def _to_joints(monitor: Monitor, identity: Identity) -> tuple[Affine, Affine, Affine]:
    """Return what brings positions, efforts and temperatures of a controller's channels to the joints of a monitor.

    All three are affine, so a log of the unit vectors that is matched with the robot shows them.
    """
    k = len(identity.channels)
    unit = np.vstack([np.zeros((max(1, 4 - k), k)), np.eye(k)])
    log = Log(
        t=np.arange(float(len(unit))),
        joints=identity.channels,
        position=unit,
        effort=unit,
        temperature=unit,
        effort_kind=identity.effort_kind,
        gain=None if identity.gain is None else np.array(identity.gain),
        position_side=identity.position_side,
        name="controller",
    )
    matched = match(monitor.mechanism, log)
    if matched.mechanism.coordinate_names != monitor.joints:
        missing = ", ".join(sorted(set(monitor.joints) - set(matched.mechanism.coordinate_names)))
        raise LinkError(f"the controller does not measure {missing}, which the model has; give the model of this robot")

    def affine(rows: Array | None) -> Affine:
        assert rows is not None
        shift, A = rows[0], rows[-k:] - rows[0]
        return lambda x: x @ A + shift

    return affine(matched.log.position), affine(matched.log.effort), affine(matched.log.temperature)


class Callback:
    """Hands every batch of samples to a function, for a monitor of one's own.

    Parameters
    ----------
    function : callable
        Called with the host's clock [s since 1970] and `Samples`.
    """

    def __init__(self, function: Callable[[float, Samples], None]) -> None:
        self.feed = function


def mcap_writer(path: str | os.PathLike[str], channels: Sequence[str], facts: Mapping[str, str] | None = None) -> Any:
    """Return a listener that writes samples as MCAP, JSON messages on the topic ``/joint_states``.

    Parameters
    ----------
    path : path-like
        File to write, ending in .mcap.
    channels : sequence of str
        Names of the channels.
    facts : mapping of str to str, optional
        Metadata of the file.

    Returns
    -------
    object
        With `feed`, as a `Campaign` wants it, and `close`, which completes the file.
    """
    try:
        from mcap.writer import Writer  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise missing_extra("mcap", "ros", "writing MCAP files") from error
    from dynident.link.mcap_file import McapFile  # noqa: PLC0415 - needs the extra

    if not str(path).endswith(".mcap"):
        raise LinkError(f"cannot write '{path}' as MCAP; the name must end in .mcap")
    return McapFile(Writer, Path(path), tuple(channels), dict(facts or {}))
