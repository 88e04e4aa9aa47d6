"""Operation of one controller: motions and rests are recorded, watched, and passed to listeners.

    |effort - predicted(motion)| > tolerance max|predicted|   for several samples in a row: stop, something is in the way

Channels near standstill are excluded: dry friction then balances any effort up to its own size.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import LinkError
from dynident.mechanics import Motion
from dynident_lab.link.controller import Identity, RemoteController, Samples
from dynident_lab.link.recorder import Recorder

Predict = Callable[[Motion], Array]

SILENCE = 5.0  # time without samples after which the connection counts as lost [s]
STUCK = 30.0  # time without progress of a motion, or without samples of a controller with its own feedback rate [s]
REPORTED = 2.0  # time within which a controller reports its alarm [s]
REST_PERIOD = 1.0  # time between two samples kept of a rest [s, controller]
LOST = (4003, 4004, 4013, 4014)  # alarms due to a lost or slow connection
IN_A_ROW = 5  # consecutive samples before a residual counts
SLACK = 0.02  # tolerance of position limits [rad, m]
HARDLY = 0.05  # share of its largest speed below which a channel counts as standing
SETTLING = 0.1  # time after a standstill in which friction still changes [s]
FASTER = 1.3  # ratio of speed to its limit at which the motion stops

Tell = Callable[[str, float, float, Samples], None]


class Listener(Protocol):
    """A receiver of live samples: monitor, estimator, MCAP file."""

    def feed(self, host: float, samples: Samples) -> None:
        """Take samples."""


@dataclass(frozen=True, eq=False)
class Progress:
    """Progress of a campaign."""

    what: str  # "cycle", "approach", "rest", "waiting", "paused", "no connection", "disk full"
    done: int  # Completed cycles
    total: int  # All cycles
    motion: float = 0.0  # Time in the running motion [s]
    duration: float = 0.0  # Length of the running motion [s]
    left: float = 0.0  # Estimated remaining time [s, host]
    samples: Samples | None = None  # Newest sample
    acknowledged: int = 0  # Samples on the disk
    gaps: int = 0  # Gaps in their counter
    text: str = ""  # Message, or empty


class Watch:
    """Checks the samples of one motion."""

    def __init__(self, identity: Identity, motion: Motion, predict: Predict | None = None, tolerance: float = 0.5) -> None:
        self.identity, self._t = identity, motion.t - motion.t[0]
        self._predicted = None if predict is None else np.asarray(predict(motion), dtype=np.float64)
        if self._predicted is not None and self._predicted.shape != (len(motion), len(identity.channels)):
            raise LinkError(
                f"the model predicts efforts of shape {self._predicted.shape} for {len(identity.channels)} measured channels; "
                "give the model of this robot"
            )
        self._bound = np.inf if self._predicted is None else tolerance * np.maximum(np.abs(self._predicted).max(axis=0), 1e-9)
        self._moves = moving(motion, len(identity.channels))
        self._row = np.zeros(len(identity.channels), dtype=np.int64)
        self._plain = identity.position_side == "joint" and identity.channels == identity.coordinates
        self.residual = np.zeros(len(identity.channels))  # largest share of the bound so far

    def check(self, samples: Samples) -> None:
        """Raise an error that names the first violation by the samples."""
        one = self.identity
        if self._plain and one.lower is not None and one.upper is not None and one.velocity is not None:
            q, v = samples.position, samples.velocity
            low, high = np.nanmin(q, axis=0, initial=np.inf), np.nanmax(q, axis=0, initial=-np.inf)
            outside = (low < one.lower - SLACK) | (high > one.upper + SLACK)
            if outside.any():
                i = int(outside.argmax())
                raise LinkError(
                    f"joint '{one.channels[i]}' is outside its limits {one.lower[i]:.4g} to {one.upper[i]:.4g}: stopped"
                )
            fast = np.nanmax(np.abs(v), axis=0, initial=0.0) > FASTER * one.velocity + SLACK
            if fast.any():
                i = int(fast.argmax())
                raise LinkError(f"joint '{one.channels[i]}' is faster than its limit {one.velocity[i]:.4g}/s: stopped")
        if self._predicted is not None:
            self._residuals(samples)

    def _residuals(self, samples: Samples) -> None:
        assert self._predicted is not None
        rows = np.flatnonzero(np.isfinite(samples.motion) & np.isfinite(samples.effort).all(axis=1))
        if not rows.size:
            return
        wanted = np.column_stack([np.interp(samples.motion[rows], self._t, column) for column in self._predicted.T])
        share = np.abs(samples.effort[rows] - wanted) / self._bound
        near = np.clip(np.searchsorted(self._t, samples.motion[rows]), 0, self._t.size - 1)
        self.residual = np.maximum(self.residual, np.where(self._moves[near], share, 0.0).max(axis=0))
        for k, beyond in enumerate((share > 1.0) & self._moves[near]):
            self._row = np.where(beyond, self._row + 1, 0)
            if (self._row >= IN_A_ROW).any():
                i = int(self._row.argmax())
                raise LinkError(
                    f"possible collision: effort of '{self.identity.channels[i]}' is {samples.effort[rows[k], i]:.4g}, "
                    f"predicted {wanted[k, i]:.4g} (t = {samples.motion[rows[k]]:.3f} s of the cycle): stopped"
                )


def moving(motion: Motion, channels: int) -> NDArray[np.bool_]:
    """Return a mask of the points at which each channel has moved for some time, (N, channels)."""
    speed = np.abs(motion.v)
    slow = speed < HARDLY * np.maximum(speed.max(axis=0), 1e-12)
    if channels != motion.dof:  # channels are motors coupled to several coordinates
        slow = np.repeat(slow.all(axis=1)[:, None], channels, axis=1)
    wide = max(1, round(SETTLING / float(np.median(np.diff(motion.t)))))
    out: NDArray[np.bool_] = ~slow
    for k in range(1, wide + 1):
        out[k:] &= ~slow[:-k]
        out[:-k] &= ~slow[k:]
    return out


class Follower:
    """Moves or rests a connected robot, and records it."""

    def __init__(
        self,
        controller: RemoteController,
        recorder: Recorder,
        listeners: Sequence[Listener],
        asked: Callable[[], None],
        tell: Tell,
    ) -> None:
        self.controller, self.recorder, self.listeners, self._asked, self._tell = controller, recorder, listeners, asked, tell
        self.identity = Identity()
        self.session = -1
        self.warmest = np.nan
        self._heard = time.monotonic()

    def begin(self, identity: Identity) -> None:
        """Continue with a new connection."""
        self.identity = identity
        self.session += 1
        self.recorder.new_session()
        self._heard = time.monotonic()

    def settle(self) -> None:
        """Bring the robot to rest, and reset alarms left by a lost connection."""
        self.controller.stop()
        self.controller.rest(True, 0.0)
        begin = time.monotonic()
        while time.monotonic() - begin < 10.0:
            self.controller.samples(0.05)
            if time.monotonic() - begin > 0.3 and not self.controller.state().moving:  # reported after the stop
                break
        if self.controller.state().alarm in LOST:
            self.controller.reset()
        if (status := self.controller.state()).alarm:
            raise LinkError(f"the controller is in {status.why}; check the robot, reset the controller and resume")

    def halt(self) -> None:
        """Bring the robot to rest and close the segment."""
        with contextlib.suppress(LinkError, OSError):
            self.controller.stop()
            end = time.monotonic() + 5.0
            while time.monotonic() < end:
                self.controller.samples(0.1)
                if not self.controller.state().moving:
                    break
        with contextlib.suppress(LinkError, OSError):
            self.recorder.close_segment()

    def take(self, timeout: float) -> list[tuple[float, Samples]]:
        """Return new samples, after passing them to all listeners."""
        found = self.controller.samples(timeout)
        for host, rows in found:
            for listener in self.listeners:
                listener.feed(host, rows)
            heat = rows.temperature[-1:]
            if np.isfinite(heat).any():
                self.warmest = float(np.nanmax(heat))
        if found:
            self._heard = time.monotonic()
        elif time.monotonic() - self._heard > (longest := SILENCE if self.identity.period else STUCK):
            raise ConnectionError(f"no sample for {longest:g} s")
        return found

    def drain(self, timeout: float) -> None:
        """Pass on samples that are not recorded; a lost connection shows later."""
        with contextlib.suppress(OSError):
            self.take(timeout)

    def follow(self, motion: Motion, watch: Watch, kind: str, cycle: int, attempt: int) -> None:
        """Execute one motion, and record it."""
        length = float(motion.t[-1] - motion.t[0])
        self.recorder.open(kind, cycle, attempt, f"{self.session}")
        self.controller.send(motion)
        self._before()
        self.controller.run()
        began, reached, moved, over = time.time(), 0.0, time.monotonic(), not self.identity.period
        while True:
            self._asked()
            for host, rows in self.take(0.1):
                known = rows if self.identity.period else _by_host(rows, host - began)
                watch.check(known)
                self.recorder.append(host, known)
                running = known.motion[np.isfinite(known.motion)]
                if running.size and running.max() > reached:
                    reached, moved = float(running.max()), time.monotonic()
                over = not self.identity.period or bool(np.isnan(known.motion[-1]))
                self._tell(kind, reached, length, known)
            self.recorder.sync(force=False)
            status = self.controller.state()
            if status.alarm in LOST:
                raise ConnectionError(f"the controller has lost this client (alarm {status.alarm})")
            if status.alarm or status.e_stopped:
                raise LinkError(
                    f"the controller is in {status.why} in {kind} {cycle}; check the robot, reset the controller and resume"
                )
            if self.controller.failure:
                lost = self.controller.cut or self._alarm() in LOST
                raise (ConnectionError if lost else LinkError)(self.controller.failure)
            done = reached >= length - 1.5 * self.identity.period and not status.moving and not self.controller.sending
            if done and (over or time.monotonic() - moved > REPORTED):  # the last sample has arrived
                break
            if time.monotonic() - moved > STUCK:
                raise ConnectionError(f"the robot has not moved for {STUCK:g} s")
        self.recorder.close_segment()

    def _alarm(self) -> int:
        """Return the alarm behind a refusal, possibly reported a little later; 0 for none."""
        end = time.monotonic() + REPORTED
        while not self.controller.state().alarm and time.monotonic() < end:
            self.drain(0.1)
        return self.controller.state().alarm

    def _before(self) -> None:
        """Record the remaining samples before a motion, until the robot reports that no motion runs."""
        end = time.monotonic() + SILENCE
        while self.identity.period and time.monotonic() < end:
            idle = False
            for host, rows in self.take(0.1):
                idle = bool(np.isnan(rows.motion[-1]))
                self.recorder.append(host, replace(rows, motion=np.full(len(rows), np.nan)))  # of an earlier motion
            if idle:
                return

    def rest(self, cycle: int, until: float, what: str, duration: float = np.inf, below: float = -np.inf) -> None:
        """Stand still until a time of the host, or until the robot is cold; one sample per second is kept.

        The controller is informed when the rest ends after the last motion [s, controller].
        """
        over = time.time() >= until
        if over and not 0.0 < duration < np.inf:
            return
        if not over:
            self.recorder.open("rest", cycle, 0, f"{self.session}")
        self.controller.rest(True, duration)
        kept = -np.inf
        while time.time() < until and not self.warmest < below:  # NaN: not known yet
            self._asked()
            for host, rows in self.take(0.1):
                keep = []
                for i, clock in enumerate(rows.clock):
                    if clock - kept >= REST_PERIOD or clock < kept:
                        kept = clock
                        keep.append(i)
                if keep:
                    self.recorder.new_session()  # thinned deliberately: no gaps
                    for i in keep:
                        self.recorder.append(host, rows.row(i))
                        self.recorder.new_session()
                left = max(0.0, until - time.time())
                self._tell(what, 0.0, left, rows)
            self.recorder.sync(force=False)
        self.controller.rest(False)
        self.recorder.close_segment()


def _by_host(rows: Samples, since: float) -> Samples:
    """Return samples timed by the host, for a controller that does not report the start of its motion."""
    return replace(rows, motion=np.full(len(rows), since))
