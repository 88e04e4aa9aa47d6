"""The virtual robot one chunk after the other: each run starts in the state in which the last one ended.

`advance` simulates a chunk of setpoints, `rest` a pause in which nothing moves and only temperatures change. Threads of one
Python process take turns, so a simulation beside the thread that sends samples makes them late: in real time it runs in a
process of its own.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import math
import multiprocessing as mp
import os
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident import __version__
from dynident.arrays import Array
from dynident.errors import DynidentError, LinkError, SimulationWarning
from dynident.mechanics import Motion
from dynident.signals import Log
from dynident.simulate import VirtualRobot
from dynident.simulate.record import End
from dynident_lab.link.setpoints import JointLimits, on_ticks, sampled, standing

VERSION = (1, 2, 0)  # of our own messages
COOLING = 1.0  # between two temperatures of a rest [s]
COLD = 1e-9  # change of temperature that is none [K]
SETTLING = 0.5  # for which a robot is simulated after a motion, again while it moves [s]
MOST_SETTLING = 20  # times that; friction that pushes near rest never lets a robot stand
SHORTEST = 3  # periods of a run: a log has four samples at least


class _Later:
    """Setpoints at every step of the machine, as a trajectory that begins at one of its steps; at rest after its end."""

    def __init__(self, setpoints: Motion, begin: int, step: float) -> None:
        self._rows, self._begin, self._step = setpoints, begin, step
        self.length = (len(setpoints) - 1) * step
        self.duration, self.dof = begin * step + self.length, setpoints.dof

    def __call__(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        row = np.rint(np.asarray(t, dtype=np.float64) / self._step).astype(np.int64) - self._begin
        last = len(self._rows) - 1
        after, row = (row > last)[:, None], np.clip(row, 0, last)
        return self._rows.q[row], np.where(after, 0.0, self._rows.v[row]), np.where(after, 0.0, self._rows.a[row])


class Plant:
    """A virtual robot that goes on from where it was."""

    def __init__(self, robot: VirtualRobot, q: ArrayLike | None = None, period: float = 0.004, seed: int = 0) -> None:
        self.robot, self.period, self.seed = robot, period, seed
        n = robot.mechanism.dof
        self.q = start_pose(robot) if q is None else np.array(q, dtype=np.float64)
        if self.q.shape != (n,):
            raise LinkError(f"the start has {self.q.size} numbers; robot '{robot.mechanism.name}' has {n} coordinates")
        self._end: End | None = None
        self._rested = 0  # periods of rest that the machine does not know yet
        self._heat: Array | None = None  # temperatures now, behind every actuator
        self._told = 0  # periods of rest at which they were computed
        self.deviation = np.zeros(n)  # largest distance between setpoints and robot in the last chunk
        self.advance(standing(self.q, 1.0))  # loops settle

    def advance(self, setpoints: Motion) -> tuple[Array, Array, Array, Array]:
        """Follow setpoints from t = 0 to their end, and return what the sensors say after each period."""
        log = self.follow(setpoints)
        velocity = np.gradient(log.position, self.period, axis=0) if log.velocity is None else log.velocity
        heat = np.full_like(log.position, np.nan) if log.temperature is None else log.temperature
        return log.position[:-1], velocity[:-1], log.effort[:-1], heat[:-1]

    def follow(self, setpoints: Motion) -> Log:
        """Follow setpoints and return the log, whose first sample is where the last one ended.

        Cut in any way, the samples are those of one run.
        """
        self._cool()
        start: Any = {"q": self.q} if self._end is None else self._end
        step = self.robot.step
        steps, last = on_ticks(setpoints, step), round((setpoints.t[-1] - setpoints.t[0]) / step)
        if last != len(steps) - 1:
            steps = sampled(steps, 0, last, step)
        wanted = _Later(steps, 0 if self._end is None else round(self._end.time / step), step)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SimulationWarning)  # limits are watched by the controller itself
            run = self.robot.simulate(wanted, start=start, duration=wanted.length, log_cycle=self.period, seed=self.seed)
        self._end = run.end
        self._last = run.log.position[-1], run.log.effort[-1]
        self.deviation = np.asarray(np.abs(run.truth.motion.q - run.reference.q).max(axis=0))
        return run.log

    def rest(self, duration: float) -> tuple[Array, Array, Array, Array]:
        """Stand still for some time in whole periods; the joints cool down."""
        assert self._end is not None
        self._rested += round(duration / self.period)
        if self._heat is None or (self._rested - self._told) * self.period >= COOLING:
            heat = self._rest_of(self._end).heat
            self._heat, self._told = None if heat is None else heat.temperature, self._rested
        position, effort = self._last
        shown = np.full(position.shape, np.nan) if self._heat is None else self._heat
        return position[None], np.zeros_like(position)[None], effort[None], shown[None]

    def memory(self) -> dict[str, Any]:
        """Return the state as plain data, for `remember`."""
        self._cool()
        assert self._end is not None
        return {"end": self._end.to_dict(), "last": [x.tolist() for x in self._last]}

    def remember(self, memory: Mapping[str, Any]) -> None:
        """Go on from a state that `memory` returned."""
        self._end, self._rested, self._told, self._heat = End.from_dict(memory["end"], self.robot), 0, 0, None
        position, effort = (np.array(x, dtype=np.float64) for x in memory["last"])
        self._last = position, effort

    def _rest_of(self, end: End) -> End:
        """Return the state after the rest; what has cooled down stays as it is, to the last bit."""
        if not self._rested or end.heat is None:
            return end
        cooled = end.rested(self._rested * self.period)
        assert cooled.heat is not None
        before, now = end.heat.zones(), cooled.heat.zones()
        return end if all(np.abs(now[name] - before[name]).max() < COLD for name in now) else cooled

    def _cool(self) -> None:
        """Let the machine know how long the robot has rested: in one step, so that it does not matter who has looked."""
        if self._end is not None:
            self._end = self._rest_of(self._end)
        self._rested, self._told, self._heat = 0, 0, None

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the channels of a sample."""
        mechanism = self.robot.mechanism
        if self.robot.sensors.side == "joint" and not mechanism.loops:
            return mechanism.coordinate_names
        return tuple(actuator.name for actuator in mechanism.actuators)

    @property
    def still(self) -> bool:
        """True when nothing moves."""
        return self._end is not None and float(np.abs(self._end.state["v"]).max()) < 1e-4

    @property
    def coordinates(self) -> Array:
        """Where the robot is, (n,)."""
        if self._end is None:
            return self.q
        mechanism, q = self.robot.mechanism, self._end.state["q"]
        return np.asarray(q[mechanism.closure.independent] if mechanism.loops else q)


def settling_periods(period: float) -> int:
    """Return how many periods a robot is simulated after a motion before it is asked whether it stands still."""
    return max(SHORTEST, round(SETTLING / period))


def tick_of(robot: VirtualRobot, period: float) -> float:
    """Return the time between two setpoints: a step of the machine, of which the period is a whole number."""
    steps = round(period / robot.step)
    if steps < 1 or abs(period / robot.step - steps) > 1e-6:
        raise LinkError(
            f"the sample period {period:g} s is not a whole number of steps of {robot.step:g} s; choose another rate"
        )
    return robot.step


def start_pose(robot: VirtualRobot) -> Array:
    """Return a pose in which the robot can stand: zero moved into its ranges."""
    lower, upper = robot.mechanism.position_limits
    zero = np.zeros(robot.mechanism.dof)
    home = getattr(robot.mechanism, "home", None)
    if robot.mechanism.loops and home:
        zero = np.array([dict(home).get(name, 0.0) for name in robot.mechanism.coordinate_names])
    return np.asarray(np.clip(zero, lower, upper))


def velocity_limits(robot: VirtualRobot) -> Array:
    """Return the largest speeds of the coordinates, infinite where there are none."""
    found = {joint.name: joint.limits for joint in robot.mechanism.joints}
    limits = [found.get(name) for name in robot.mechanism.coordinate_names]
    return np.array([np.inf if x is None or not x.velocity else x.velocity for x in limits])


def joint_limits(robot: VirtualRobot, acceleration: ArrayLike | None = None) -> JointLimits:
    """Return what the coordinates may do."""
    names = robot.mechanism.coordinate_names
    largest = np.full(len(names), np.inf) if acceleration is None else np.asarray(acceleration, dtype=np.float64)
    if largest.shape not in ((), (len(names),)) or not np.all(largest > 0.0):
        raise LinkError(f"acceleration is {largest}; give one number above zero, or {len(names)}")
    return JointLimits(names, *robot.mechanism.position_limits, velocity_limits(robot), np.broadcast_to(largest, len(names)))


def facts_of(plant: Plant, home: Array) -> dict[str, Any]:
    """Return the identity of a virtual robot: names, limits, rates, versions, and a hash of sixteen digits."""
    robot, (lower, upper) = plant.robot, plant.robot.mechanism.position_limits
    currents = robot.sensors.effort == "motor_current"
    facts: dict[str, Any] = {
        "robot": robot.mechanism.name,
        "title": robot.name or robot.mechanism.name,
        "coordinates": list(robot.mechanism.coordinate_names),
        "channels": list(plant.channels),
        "lower": [finite(x) for x in lower],
        "upper": [finite(x) for x in upper],
        "velocity": [finite(x) for x in velocity_limits(robot)],
        "effort_kind": robot.sensors.effort,
        "position_side": robot.sensors.side,
        "gain": [drive.motor.torque_constant for drive in robot.drives] if currents else None,
        "period": plant.period,
        "home": [round(x, 6) for x in home.tolist()],
        "firmware": f"dynident {__version__} virtual",
        "virtual": True,
        "version": list(VERSION),
    }
    facts["identity"] = hashlib.sha256(repr(sorted(facts.items())).encode()).hexdigest()[:16]
    return facts


def finite(x: float) -> float | None:
    """Return a number as it is sent: None for an infinite one."""
    return float(x) if math.isfinite(x) else None


# ---- a plant in real time --------------------------------------------------------------------------------------------


Signals = tuple[Array, Array, Array, Array]

SWITCH = 5e-6  # after which a thread that computes lets the others run [s]
PRIORITY = 10  # of a real-time process, 1 to 99


def prepare_timing(real_time: bool = False, priority: int = PRIORITY) -> None:
    """Let this process send samples in time: no long collections of garbage, and short turns of its threads.

    Parameters
    ----------
    real_time : bool
        True lets all its threads, present and future, run before other processes (SCHED_FIFO); a sentence where the system
        does not allow that.
    priority : int
        Among real-time processes, 1 to 99.
    """
    sys.setswitchinterval(SWITCH)
    gc.collect()
    gc.freeze()  # what exists now is never looked at again
    if real_time:
        try:
            for thread in threading.enumerate():
                os.sched_setscheduler(thread.native_id or 0, os.SCHED_FIFO, os.sched_param(priority))
        except (AttributeError, OSError, ValueError) as error:
            raise LinkError(
                f"real-time priority is not available ({error}), so samples may be late; run as root to avoid this"
            ) from error


def prefer_thread() -> None:
    """Let this thread, which must be on time and computes little, run before other processes where the system allows it.

    Under load, a thread of ordinary priority waits its turn for milliseconds: samples are late, and several go out together.
    """
    with contextlib.suppress(AttributeError, OSError):
        if os.sched_getscheduler(0) == os.SCHED_OTHER:  # not one that is preferred already
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


class Outbox:
    """Samples that wait until they are due; its lock is its own, so that they do not wait while setpoints are computed."""

    def __init__(self) -> None:
        self._queue: deque[tuple[float, float, Array]] = deque()  # due time of the first row, spacing, rows
        self._lock = threading.Lock()

    def put(self, due: float, spacing: float, rows: Array) -> None:
        """Add samples with the time at which the first is due and the time between two [s, host]."""
        with self._lock:
            self._queue.append((due, spacing, rows))

    def until_due(self) -> float:
        """Return the time until the next sample is due [s, host]; infinite when none waits."""
        with self._lock:
            return self._queue[0][0] - time.monotonic() if self._queue else math.inf

    def due(self, most: int = 500) -> Array | None:
        """Return the samples whose time has come, rows as in `Samples.table`, and forget them; None when there are none."""
        with self._lock:
            now, out = time.monotonic(), list[Array]()
            while self._queue and len(out) < 4:
                first, spacing, rows = self._queue[0]
                ripe = len(rows) if spacing == 0.0 else min(len(rows), math.floor((now - first) / spacing) + 1)
                if ripe <= 0:
                    break
                ripe = min(ripe, most)
                out.append(rows[:ripe])
                if ripe < len(rows):
                    self._queue[0] = (first + ripe * spacing, spacing, rows[ripe:])
                    break
                self._queue.popleft()
        return np.concatenate(out) if out else None


class PlantProcess(Plant):
    """A plant whose simulation runs in a process of its own, next in priority to the one that sends its samples."""

    def __init__(self, robot: VirtualRobot, q: ArrayLike | None = None, period: float = 0.004, seed: int = 0) -> None:
        self.robot, self.period, self.seed = robot, period, seed
        self._still, self._here = True, np.zeros(robot.mechanism.dof)
        self.deviation = np.zeros(robot.mechanism.dof)
        self._rest: Signals | None = None
        context = mp.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_simulate, args=(other, robot, q, period, seed), name="plant", daemon=True)
        self._process.start()
        other.close()
        self._ask("rest", 0.0)
        gc.collect()
        gc.freeze()  # with what has come since `prepare_timing`

    def _ask(self, name: str, argument: Any) -> Signals:
        try:
            self._pipe.send((name, argument))
            answer = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise LinkError("the process of the simulation has ended; start the controller again") from error
        if isinstance(answer, DynidentError):
            raise answer
        signals, self._still, self._here, self.deviation = answer
        position, velocity, effort, heat = signals
        self._rest = position[-1:], velocity[-1:], effort[-1:], heat[-1:]
        return position, velocity, effort, heat

    def advance(self, setpoints: Motion) -> Signals:
        """Follow setpoints from t = 0 to their end, and return what the sensors say after each period."""
        return self._ask("advance", setpoints)

    def rest(self, duration: float) -> Signals:
        """Stand still for some time; the joints cool down."""
        try:
            return self._ask("rest", duration)
        except LinkError:
            if self._rest is None:
                raise
            return self._rest

    @property
    def still(self) -> bool:
        """True when nothing moves."""
        return self._still

    @property
    def coordinates(self) -> Array:
        """Where the robot is, (n,)."""
        return self._here

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join(timeout=5.0)


def _simulate(pipe: Connection, robot: VirtualRobot, q: ArrayLike | None, period: float, seed: int) -> None:
    """Serve a plant until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a person ends the controller, which ends this
    if hasattr(os, "SCHED_FIFO") and os.sched_getscheduler(0) == os.SCHED_FIFO:  # inherited from the parent process
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(max(1, os.sched_getparam(0).sched_priority - 1)))
    try:
        plant = Plant(robot, q, period, seed)
        while True:
            name, argument = pipe.recv()
            answer: Any
            try:
                answer = getattr(plant, name)(argument), plant.still, plant.coordinates, plant.deviation
            except DynidentError as error:
                answer = error
            pipe.send(answer)
    except DynidentError as error:
        pipe.recv()
        pipe.send(error)
    except (EOFError, OSError):
        pass
