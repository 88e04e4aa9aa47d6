"""Listeners of a stream of samples: a monitor and a recursive fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from dynident.arrays import Array
from dynident.errors import LinkError
from dynident.mechanics import Motion
from dynident.mechanism import Mechanism
from dynident.monitor import Monitor, Reading
from dynident.signals import Log
from dynident.signals.matching import match
from dynident_lab.link.controller import Identity, Samples
from dynident_lab.link.recursive import RLS


class LiveFit:
    """Feeds a recursive fit of the robot with every sample.

    Positions and efforts are smoothed equally, by a raised cosine of `window` seconds, and the smoothed positions are
    differentiated, so the smoothing affects both sides of the equation equally.

    Parameters
    ----------
    estimator : RLS
        Estimator after ``RLS(memory=60).start(base, sigma)``; `estimator.coef_` is the newest estimate.
    identity : Identity
        Channels of the controller: names, side, kind of effort and gains.
    window : float
        Time over which samples are smoothed [s]; the estimate lags by half of it.
    standstill : float
        Speed below which the effort of a joint is left out, because friction is undetermined at rest [rad/s, m/s];
        windows in which the joint reverses are left out, too.

    Attributes
    ----------
    count : int
        Number of samples with a complete window.
    """

    def __init__(self, estimator: RLS, identity: Identity, window: float = 0.1, standstill: float = 0.02) -> None:
        if not hasattr(estimator, "base_"):
            raise LinkError("the estimator was not started; call start(base, sigma) before the stream begins")
        if not (0.0 < window < 10.0 and standstill >= 0.0):
            raise LinkError(
                f"window is {window} s and standstill {standstill}; give a window below 10 s and a speed of 0 or more"
            )
        self.estimator, self.window, self.standstill, self.count = estimator, window, standstill, 0
        mechanism = estimator.base_.mechanism
        self._position, self._effort, _ = _to_joints(mechanism, mechanism.coordinate_names, identity)
        self._recent: Array = np.empty((0, 0))

    def feed(self, host: float, samples: Samples) -> None:
        """Process samples; a gap in their time stamps begins a new window."""
        del host
        new = np.hstack([samples.clock[:, None], self._position(samples.position), self._effort(samples.effort)])
        rows = np.vstack([self._recent, new]) if self._recent.size else new
        steps = np.diff(rows[:, 0])
        if not steps.size:
            self._recent = rows
            return
        dt = float(np.median(steps))
        gaps = np.flatnonzero((steps < 0.5 * dt) | (steps > 1.5 * dt)) + 1
        for part in np.split(rows, gaps):
            self._recent = self._smoothed(part, dt)

    def _smoothed(self, rows: Array, dt: float) -> Array:
        """Use the samples with complete windows; return the rows that the next samples need."""
        half = max(int(0.5 * self.window / dt), 3)
        if len(rows) <= 2 * half:
            return rows
        value, rate, second, first, last = np.einsum(
            "dk,nck->dnc", _kernels(half, dt), sliding_window_view(rows[:, 1:], 2 * half + 1, axis=0)
        )
        n = len(self.estimator.base_.mechanism.coordinate_names)
        q, v, a, effort = value[:, :n], rate[:, :n], second[:, :n], value[:, n:]
        turning = (first[:, :n] * v <= 0.0) | (v * last[:, :n] <= 0.0)
        still = turning | (np.minimum(np.abs(first), np.abs(last))[:, :n] < self.standstill) | (np.abs(v) < self.standstill)
        effort = np.where(still if effort.shape == v.shape else still.any(axis=1, keepdims=True), np.nan, effort)
        if np.isfinite(effort).any():
            self.estimator.update(Motion(rows[half:-half, 0], q, v, a), effort)
        self.count += len(q)
        return rows[-2 * half :]


def _kernels(half: int, dt: float) -> Array:
    """Return rows (5, 2 half + 1): smoothed value, rate and second derivative in the middle; rates at both ends."""
    w = np.hanning(2 * half + 1)[1:-1] / np.hanning(2 * half + 1).sum()
    before, middle, after = np.pad(w, (0, 2)), np.pad(w, 1), np.pad(w, (2, 0))
    ends = np.zeros((2, 2 * half + 1))
    third = max(2 * half // 3, 1)
    ends[0, [0, third]] = ends[1, [-1 - third, -1]] = np.array([-1.0, 1.0]) / (third * dt)
    return np.vstack([middle, (after - before) / (2.0 * dt), (after - 2.0 * middle + before) / dt**2, ends])


class LiveMonitor:
    """Passes every sample to a monitor, which stops the motion on contact.

    Parameters
    ----------
    monitor : Monitor
        Monitor of this robot; it continues from its state.
    identity : Identity
        Channels of the controller: names, side, kind of effort and gains.
    stop : bool
        Whether a raised flag raises `LinkError`, which makes a campaign stop the robot; otherwise the event is only recorded.
    alarm : callable, optional
        Called before that with the `Reading` that raised the flag.

    Attributes
    ----------
    reading : Reading or None
        The newest reading.
    events : list of Reading
        The readings that raised the flag.
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
        self._position, self._effort, self._warmth = _to_joints(monitor.mechanism, monitor.joints, identity)
        self._count: int | None = None

    def feed(self, host: float, samples: Samples) -> None:
        """Process samples; a gap in their counter resets the filters."""
        del host
        q, tau = self._position(samples.position), self._effort(samples.effort)
        T = self._warmth(samples.temperature)
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
                f"possible collision: external torque of '{self.monitor.joints[i]}' is {reading.torque[i]:.3g}, threshold "
                f"{reading.threshold[i]:.3g} (t = {reading.t:.3f} s): stopped; after a false alarm, calibrate with "
                "--healthy RUN"
            )


Affine = Callable[[Array], Array]


def _to_joints(mechanism: Mechanism, joints: tuple[str, ...], identity: Identity) -> tuple[Affine, Affine, Affine]:
    """Return the maps of positions, efforts and temperatures from a controller's channels to the joints of a robot.

    All three are affine, so they follow from a log of unit vectors that is matched with the robot.
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
    matched = match(mechanism, log)
    if matched.mechanism.coordinate_names != joints:
        missing = ", ".join(sorted(set(joints) - set(matched.mechanism.coordinate_names)))
        raise LinkError(f"the controller does not measure {missing}, which the model contains; give the model of this robot")

    def affine(rows: Array | None) -> Affine:
        assert rows is not None
        shift, A = rows[0], rows[-k:] - rows[0]
        # Channels that are not measured make the joints that depend on them NaN, and no others.
        return lambda x: np.where(np.isnan(x) @ (A != 0.0), np.nan, np.nan_to_num(x) @ A + shift)

    return affine(matched.log.position), affine(matched.log.effort), affine(matched.log.temperature)
