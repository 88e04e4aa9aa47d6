"""The virtual robot as a controller in real time, independent of the protocol.

A thread takes chunks of setpoints, lets the plant follow them, and releases every sample at its time. One chunk is simulated
while the previous one is released, so samples are late by exactly one chunk.

The behaviour depends only on commands and the seed: after a motion the robot settles for a fixed time, a rest announced by a
client has the announced duration, and a delay of a few seconds between two motions has no effect.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import DynidentError, LinkError
from dynident.mechanics import Motion
from dynident.simulate import VirtualRobot
from dynident_lab.link.controller import ALARMS, APPROACH
from dynident_lab.link.plant import (
    MOST_SETTLING,
    SHORTEST,
    Outbox,
    Plant,
    PlantProcess,
    facts_of,
    finite,
    joint_limits,
    prefer_thread,
    settling_periods,
    tick_of,
)
from dynident_lab.link.setpoints import ROUNDING, Point, Setpoints

PATIENCE = 0.3  # silence after which the newest point becomes one of rest [s, host]
STARVED = 5.0  # longest wait of a moving robot for its next point [s, host]
CHUNK = 0.05  # simulated at once if its setpoints are known, times the speed up to 40 [s]
THINKING = 10.0  # standstill between two motions during which no joint cools down [s]
LONGEST_REST = 1e8  # longest rest that a client can announce [s]
CATCH_UP = 2.0  # largest lag of the clock of a robot in real time before it is reset [s, host]
FOLLOWING = 0.1  # largest distance between setpoint and robot [rad, m]
FULL_RATE = 20.0  # speed up to which a robot at rest sends all samples; above, one per chunk


@dataclass(frozen=True)
class Alarm:
    """An alarm of the controller with its message."""

    code: int
    text: str


class Emulator:
    """A virtual robot that runs in its own time and follows commands.

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    q : array_like (n,), optional
        Initial position.
    period : float
        Time between two samples [s].
    speed : float
        Seconds of the robot per second of the host, in motion and in announced rests; otherwise a waiting robot runs at most at
        the host's speed, so that it does not cool down between motions. On a slow computer, the robot's clock lags.
    seed : int
        Seed of all noise.
    capacity : int
        Capacity of the buffer.
    following : float
        Largest distance between setpoint and robot [rad, m].
    acceleration : array_like (n,) or float, optional
        Largest accelerations of the setpoints; a mechanism has no such limits [rad/s^2, m/s^2].
    real_time : bool
        True simulates in a separate process, so that samples are not late; see `prepare_timing`.
    """

    def __init__(
        self,
        robot: VirtualRobot,
        q: ArrayLike | None = None,
        *,
        period: float = 0.004,
        speed: float = 1.0,
        seed: int = 0,
        capacity: int = 100,
        following: float = FOLLOWING,
        acceleration: ArrayLike | None = None,
        real_time: bool = False,
    ) -> None:
        if not 1e-3 <= speed <= 1e6:
            raise LinkError(f"speed is {speed}; give seconds of the robot per second of the host, above zero: 0.001 to 1e6")
        if not following > 0.0:
            raise LinkError(f"following is {following}; give the largest distance between setpoint and robot, above zero")
        self.robot, self.speed, self.period, self.following = robot, speed, period, following
        self.plant = (PlantProcess if real_time else Plant)(robot, q, period, seed)
        self.limits = joint_limits(robot, acceleration)
        self.setpoints = Setpoints(self.plant.coordinates.copy(), self.limits, capacity)
        self.home, self.homing_speed = self.plant.coordinates.copy(), APPROACH  # share of the top speed
        self.tick = tick_of(robot, period)
        self.chunk = period * max(SHORTEST, round(CHUNK * min(max(speed, 1.0), 40.0) / period))
        self.lock = threading.RLock()
        self.alarms: deque[Alarm] = deque(maxlen=20)
        self.powered, self.e_stopped, self.homed = True, False, False
        self._settle = 0  # periods until the check for standstill
        self._stood = self._thought = 0  # periods since its last motion, and those of short delays between motions
        self._rest_until: float = 0  # periods after its last motion at which an announced rest ends
        self._skipped = 0  # periods of a rest that ended early
        self.client = ""  # client that has the motion port
        self.watchdog = 0.0  # silence of the client after which the motion stops [s, host]; 0 for none
        self.heard = 0.0  # time of its last message [s, host]
        self.touched = time.monotonic()
        self.clock = 0.0
        self._index = 0
        self.outbox = Outbox()
        self._done = threading.Event()
        self._moved = threading.Condition(self.lock)
        self._thread: threading.Thread | None = None
        self._told: tuple[int, ...] = ()
        self._told = self.status

    # ------------------------------------------------------------------ identity and status
    @property
    def identity(self) -> dict[str, Any]:
        """Robot, names, limits, rates and versions, the content of an IDENTITY reply."""
        facts = facts_of(self.plant, self.home)
        with self.lock:
            now = {"buffer": self.setpoints.capacity, "client": self.client, "setpoint": self.setpoints.q.tolist()}
            largest = [finite(x) for x in self.limits.acceleration]
            return {**facts, **now, "speed": self.speed, "acceleration": largest}

    @property
    def status(self) -> tuple[int, ...]:
        """The seven numbers of a STATUS message."""
        with self.lock:
            code = self.alarms[-1].code if self.alarms else 0
            moving = self.setpoints.moving or self._settle > 0 or not self._standing
            possible = self.powered and not self.e_stopped and not code
            self._told = int(self.powered), int(self.e_stopped), code, int(bool(code)), int(moving), 2, int(possible)
            return self._told

    def glance(self) -> tuple[int, ...]:
        """Return the status without waiting: the last known one while setpoints are computed."""
        if not self.lock.acquire(blocking=False):
            return self._told
        try:
            return self.status
        finally:
            self.lock.release()

    def alarm(self, code: int, text: str = "", stop: bool = True) -> None:
        """Raise an alarm and bring the robot to rest."""
        with self.lock:
            if not (self.alarms and self.alarms[-1].code == code):
                self.alarms.append(Alarm(code, text or ALARMS[code]))
            if stop:
                self.setpoints.stop()
                self._moved.notify_all()

    def reset(self) -> None:
        """Clear the alarms; refused while the emergency stop is pressed."""
        with self.lock:
            if self.e_stopped:
                raise LinkError("the emergency stop is pressed; release it first")
            self.alarms.clear()
            self.powered = True

    def emergency_stop(self, pressed: bool = True) -> None:
        """Press or release the emergency stop."""
        with self.lock:
            self.e_stopped = pressed
            if pressed:
                self.alarm(4012)
                self.powered = False

    # ------------------------------------------------------------------ motion
    def ready(self) -> None:
        """Raise an error with the reason if no motion is possible."""
        if self.alarms:
            last = self.alarms[-1]
            raise LinkError(f"the controller is in alarm {last.code} ({last.text}); reset it")
        if self.e_stopped or not self.powered:
            raise LinkError("the drives are off; release the emergency stop and reset the controller")

    def begin(self, hold: bool = False, marked: bool = False) -> None:
        """Open a trajectory."""
        with self.lock:
            self.ready()
            self.setpoints.begin(hold, marked)
            self.touched = time.monotonic()

    def push(self, point: Point) -> bool:
        """Accept a point."""
        with self.lock:
            self.ready()
            points = self.setpoints
            if not points.room and points.covered - points.now > self.period * (SHORTEST - 0.5):
                return False
            point.t = round(point.t / self.tick) * self.tick  # float32 times of a long motion are coarse
            if abs(point.asked - point.t) <= ROUNDING * point.t:
                point.asked = point.t
            try:
                self.setpoints.push(point)
            except LinkError as error:
                if not points.ended:
                    self.alarm(4010, str(error))
                raise
            if points.now > 0.0:  # it continues
                self._settle = 0
            self.touched = time.monotonic()
            self._moved.notify_all()
            return True

    def finish(self) -> None:
        """Close the trajectory; a download starts to run."""
        with self.lock:
            points = self.setpoints
            waits = points.now > 0.0 and points.dry and not points.moving
            try:
                points.finish()
            except LinkError as error:
                self.alarm(4010, str(error))
                raise
            if waits and not points.moving:  # all points were used before the end of the trajectory was known
                self._stood, self._settle = 0, settling_periods(self.period)
            self._moved.notify_all()

    def load(self, motion: Motion) -> None:
        """Accept a whole trajectory at once; it waits for `finish`.

        Parameters
        ----------
        motion : Motion
            From the commanded position to rest.
        """
        with self.lock:
            self.begin(hold=True)
            capacity, self.setpoints.capacity = self.setpoints.capacity, len(motion)
            try:
                for i in range(len(motion)):
                    self.push(Point(float(motion.t[i] - motion.t[0]), motion.q[i], motion.v[i], motion.a[i]))
            finally:
                self.setpoints.capacity = capacity

    def stop(self) -> None:
        """Bring the robot to rest."""
        with self.lock:
            self.setpoints.stop()
            self._moved.notify_all()

    def watch(self, silence: float) -> None:
        """Stop a motion if the client is silent for longer than this [s, host]; 0 for no limit."""
        if not 0.0 <= silence <= LONGEST_REST:
            raise LinkError(f"a watchdog of {silence:g} s; give 0 to {LONGEST_REST:g} s")
        self.heard, self.watchdog = time.monotonic(), silence

    def rest(self, resting: bool, duration: float = math.inf) -> None:
        """Let time pass at the robot's speed while it stands."""
        if not (0.0 <= duration <= LONGEST_REST or duration == math.inf):
            raise LinkError(f"a rest of {duration:g} s; give 0 to {LONGEST_REST:g} s")
        with self.lock:
            if resting:
                self._rest_until, self._thought = duration if duration == math.inf else round(duration / self.period), 0
            elif self._resting:
                left = self._rest_until - self._stood
                self._skipped += 0 if left == math.inf else int(left)
                self._rest_until = 0

    @property
    def _standing(self) -> bool:
        """True if nothing moves, or only for a short time since the last motion."""
        return self.plant.still or self._stood >= MOST_SETTLING * settling_periods(self.period)

    @property
    def _resting(self) -> bool:
        return self._stood < self._rest_until

    # ------------------------------------------------------------------ time
    def start(self) -> None:
        """Start the time of the robot, in a thread."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="plant", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop the time of the robot."""
        self._done.set()
        with self.lock:
            self._moved.notify_all()
        if self._thread is not None:
            self._thread.join(timeout=10.0)
        if isinstance(self.plant, PlantProcess):
            self.plant.close()

    def _run(self) -> None:
        if isinstance(self.plant, PlantProcess):  # this thread computes nothing, so that servers get the interpreter
            prefer_thread()
        begin = time.monotonic()  # earliest host time of the next chunk
        while not self._done.is_set():
            with self.lock:
                duration = self._next_chunk()
                if duration <= 0.0:  # the client is slower than the robot: wait for points
                    self._moved.wait(0.002)
                    begin = max(begin, time.monotonic())
                    continue
                length = duration / self._pace()
                rows = round(duration / self.period)
                passed, self._skipped = self._skipped, 0
                self._stood += passed
                self.clock += passed * self.period
                taken = self._take(rows)
            table = self._chunk(rows, passed, taken)
            self.outbox.put(begin + length, length / len(table), table)  # after a stall all late samples are sent at once
            begin = max(begin + length, time.monotonic() - (CATCH_UP if self.speed <= 1.0 else CHUNK))
            wait = begin - time.monotonic()
            if wait > 0.0:
                self._done.wait(wait)

    def _next_chunk(self) -> float:
        """Return the length of the next chunk [s]; 0 to wait for points."""
        points, quiet = self.setpoints, time.monotonic() - self.touched
        if self.watchdog and points.moving and time.monotonic() - self.heard > self.watchdog:
            self.alarm(4013)
        if self._settle:
            return self._part(self._settle)
        ahead = points.covered - points.now
        if points.braking or points.held or points.ended:
            return self._part(ahead / self.period) if points.moving and not points.braking else self._idle_chunk()
        if quiet > PATIENCE:
            try:
                points.rest_here()
            except LinkError as error:
                self.alarm(4010, str(error))
                return self._idle_chunk()
            ahead = points.covered - points.now
        if ahead >= self.chunk - 1e-9:
            return self.chunk if points.dry else self._part(ahead / self.period)
        if points.dry:
            if not points.room and ahead > self.period * (SHORTEST - 0.5):  # the buffer is full: run its points
                return self.period * math.floor(ahead / self.period + 1e-6)
            if quiet > STARVED:
                self.alarm(4014)
                return self._idle_chunk()
            return 0.0  # the time of a virtual robot can wait
        if points.now == 0.0 and quiet < PATIENCE and ahead > 0.0:
            return 0.0  # the motion has just begun: let the buffer fill
        return self._part(ahead / self.period) if ahead > 0.0 else self._idle_chunk()

    def _part(self, left: float) -> float:
        """Return the length of the next chunk of `left` periods [s]; neither it nor the rest is too short for a run."""
        periods, most = math.ceil(left - 1e-6), round(self.chunk / self.period)
        return self.period * max(SHORTEST, periods if periods < most + SHORTEST else most)

    def _pace(self) -> float:
        """Return the present speed: seconds of the robot per second of the host."""
        busy = self._resting or self._settle or self.setpoints.moving or not self._standing
        return self.speed if busy else min(1.0, self.speed)

    def _idle_chunk(self) -> float:
        if self.setpoints.moving or not self._standing:
            return self.chunk
        return self.period * max(SHORTEST, round(0.02 * self._pace() / self.period))

    def _chunk(self, rows: int, passed: int, taken: tuple[Motion, Array] | int) -> Array:
        """Let the robot follow setpoints, or stand, after `passed` periods of a rest; return its samples."""
        duration, motion = rows * self.period, None
        try:
            if isinstance(taken, int):
                count = rows if self.speed <= FULL_RATE else 1
                signals = self.plant.rest((passed + taken) * self.period)
                signals = tuple(np.repeat(x, count, axis=0) for x in signals)  # type: ignore[assignment]
                when = np.full(count, np.nan)
            else:
                if passed:
                    self.plant.rest(passed * self.period)
                motion, since = taken
                signals = self.plant.advance(motion)
                when = since[: -1 : round(self.period / self.tick)]
                with self.lock:
                    if not (self._settle or self.setpoints.moving or self.setpoints.dry or self._standing):
                        self._settle = settling_periods(self.period)
        except DynidentError as error:
            self.alarm(4015, f"{ALARMS[4015]}: {error}")
            self.powered = False
            signals = self.plant.rest(duration)
            when = np.full(1, np.nan)
        count = len(when)
        with self.lock:
            index = self._index + np.arange(count)
            clock = self.clock + np.arange(count) * (duration / count)
            self._index, self.clock = self._index + count, self.clock + duration
            if motion is not None:
                apart = self.plant.deviation
                if apart.max() > self.following:
                    i = int(apart.argmax())
                    text = f"following error of joint '{self.limits.names[i]}' is {apart[i]:.3g}, above {self.following:g}"
                    self.alarm(4011, text)
        return np.column_stack([index.astype(np.float64), clock, when, *signals])

    def _take(self, rows: int) -> tuple[Motion, Array] | int:
        """Return the setpoints of some periods with settling; for a standing robot, the number of periods that cool it."""
        if not self._settle and not self.setpoints.moving and self._standing:
            return self._cooled(rows)
        points, settling = self.setpoints, self._settle > 0
        ended = points.covered if points.moving and not points.braking else points.now
        left = math.ceil((ended - points.now) / self.period - 1e-6)
        moved = points.moving and not settling
        motion, since = points.take(rows * self.period, self.tick, wait=settling)
        if settling:
            self._stood += rows
            self._settle = max(0, self._settle - rows)
        elif moved:
            self._stood, self._rest_until, self._thought = 0, 0, 0
            if not (points.moving or points.dry):  # otherwise it waits for the next point, and its time waits, too
                self._stood = rows - left
                self._settle = max(SHORTEST, settling_periods(self.period) - self._stood)
        return motion, since

    def _cooled(self, rows: int) -> int:
        """Return the number of periods of a standstill in which joints cool: zero during a short delay of the client."""
        if self._resting:
            cooled = int(min(rows, self._rest_until - self._stood))
        elif not self.client:
            cooled = rows
        else:
            before, self._thought = self._thought, self._thought + rows
            most = round(THINKING / self.period)
            cooled = 0 if self._thought <= most else rows if before > most else self._thought
        self._stood += cooled
        return cooled
