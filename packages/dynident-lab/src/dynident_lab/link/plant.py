"""The virtual robot chunk by chunk: each run starts in the final state of the previous one.

`advance` simulates a chunk of setpoints, `rest` a pause in which only temperatures change. Threads of one Python process
take turns, so a simulation in the process that sends samples makes them late: in real time it runs in a
separate process.
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
COOLING = 1.0  # time between two temperatures of a rest [s]
COLD = 1e-9  # negligible change of temperature [K]
SETTLING = 0.5  # time simulated after a motion, repeated while the robot moves [s]
MOST_SETTLING = 20  # limit of these times; with friction that adds energy near rest a robot never stands
SHORTEST = 3  # shortest run in periods: a log has at least four samples


class _Later:
    """Setpoints at every step of the machine, as a trajectory that begins at one of its steps and ends at rest."""

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
    """A virtual robot that continues from its last state."""

    def __init__(self, robot: VirtualRobot, q: ArrayLike | None = None, period: float = 0.004, seed: int = 0) -> None:
        self.robot, self.period, self.seed = robot, period, seed
        n = robot.mechanism.dof
        self.q = start_pose(robot) if q is None else np.array(q, dtype=np.float64)
        if self.q.shape != (n,):
            raise LinkError(f"the start has {self.q.size} numbers; robot '{robot.mechanism.name}' has {n} coordinates")
        self._end: End | None = None
        self._rested = 0  # periods of rest not yet applied to the machine
        self._heat: Array | None = None  # temperatures now, behind every actuator
        self._told = 0  # periods of rest included in these temperatures
        self.deviation = np.zeros(n)  # largest distance between setpoints and robot in the last chunk
        self.advance(standing(self.q, 1.0))  # loops settle

    def advance(self, setpoints: Motion) -> tuple[Array, Array, Array, Array]:
        """Follow setpoints from t = 0 to their end, and return the sensor signals after each period."""
        log = self.follow(setpoints)
        velocity = np.gradient(log.position, self.period, axis=0) if log.velocity is None else log.velocity
        heat = np.full_like(log.position, np.nan) if log.temperature is None else log.temperature
        return log.position[:-1], velocity[:-1], log.effort[:-1], heat[:-1]

    def follow(self, setpoints: Motion) -> Log:
        """Follow setpoints and return the log, with the end of the previous one as its first sample.

        The samples of consecutive chunks equal those of one run.
        """
        self._cool()
        start: Any = {"q": self.q} if self._end is None else self._end
        step = self.robot.step
        steps, last = on_ticks(setpoints, step), round((setpoints.t[-1] - setpoints.t[0]) / step)
        if last != len(steps) - 1:
            steps = sampled(steps, 0, last, step)
        wanted = _Later(steps, 0 if self._end is None else round(self._end.time / step), step)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SimulationWarning)  # the controller itself monitors limits
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
        """Continue from a state returned by `memory`."""
        self._end, self._rested, self._told, self._heat = End.from_dict(memory["end"], self.robot), 0, 0, None
        position, effort = (np.array(x, dtype=np.float64) for x in memory["last"])
        self._last = position, effort

    def _rest_of(self, end: End) -> End:
        """Return the state after the rest; cooled-down temperatures remain bit-identical."""
        if not self._rested or end.heat is None:
            return end
        cooled = end.rested(self._rested * self.period)
        assert cooled.heat is not None
        before, now = end.heat.zones(), cooled.heat.zones()
        return end if all(np.abs(now[name] - before[name]).max() < COLD for name in now) else cooled

    def _cool(self) -> None:
        """Apply the rest to the machine in one step, so that the result is independent of reads of the temperatures."""
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
        """True if nothing moves."""
        return self._end is not None and float(np.abs(self._end.state["v"]).max()) < 1e-4

    @property
    def coordinates(self) -> Array:
        """Position of the robot, (n,)."""
        if self._end is None:
            return self.q
        mechanism, q = self.robot.mechanism, self._end.state["q"]
        return np.asarray(q[mechanism.closure.independent] if mechanism.loops else q)


def settling_periods(period: float) -> int:
    """Return the number of periods simulated after a motion before the check for standstill."""
    return max(SHORTEST, round(SETTLING / period))


def tick_of(robot: VirtualRobot, period: float) -> float:
    """Return the time between two setpoints: a step of the machine, which divides the period."""
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
    """Return the largest speeds of the coordinates, infinite without a limit."""
    found = {joint.name: joint.limits for joint in robot.mechanism.joints}
    limits = [found.get(name) for name in robot.mechanism.coordinate_names]
    return np.array([np.inf if x is None or not x.velocity else x.velocity for x in limits])


def joint_limits(robot: VirtualRobot, acceleration: ArrayLike | None = None) -> JointLimits:
    """Return the limits of the coordinates."""
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
    """Return a number for sending: None for an infinite one."""
    return float(x) if math.isfinite(x) else None


# ---- a plant in real time --------------------------------------------------------------------------------------------


Signals = tuple[Array, Array, Array, Array]

SWITCH = 5e-6  # time after which a computing thread lets the others run [s]
PRIORITY = 10  # of a real-time process, 1 to 99


def prepare_timing(real_time: bool = False, priority: int = PRIORITY) -> None:
    """Prepare this process for sending samples in time: no long garbage collections, and short turns of its threads.

    Parameters
    ----------
    real_time : bool
        True gives all its threads, present and future, priority over other processes (SCHED_FIFO); an error if the system
        does not allow that.
    priority : int
        Priority among real-time processes, 1 to 99.
    """
    sys.setswitchinterval(SWITCH)
    gc.collect()
    gc.freeze()  # existing objects are never examined again
    if real_time:
        try:
            for thread in threading.enumerate():
                os.sched_setscheduler(thread.native_id or 0, os.SCHED_FIFO, os.sched_param(priority))
        except (AttributeError, OSError, ValueError) as error:
            raise LinkError(
                f"real-time priority is not available ({error}), so samples may be late; run as root to avoid this"
            ) from error


def prefer_thread() -> None:
    """Give this thread, which must be on time and computes little, priority over other processes, if the system allows it.

    Under load, a thread of ordinary priority waits its turn for milliseconds: samples are late, and several go out together.
    """
    with contextlib.suppress(AttributeError, OSError):
        if os.sched_getscheduler(0) == os.SCHED_OTHER:  # not if it already has priority
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


class Outbox:
    """Samples until they are due; the separate lock keeps them on time while setpoints are computed."""

    def __init__(self) -> None:
        self._queue: deque[tuple[float, float, Array]] = deque()  # due time of the first row, spacing, rows
        self._lock = threading.Lock()

    def put(self, due: float, spacing: float, rows: Array) -> None:
        """Add samples with the due time of the first and the time between two [s, host]."""
        with self._lock:
            self._queue.append((due, spacing, rows))

    def until_due(self) -> float:
        """Return the time until the next sample is due [s, host]; infinite without samples."""
        with self._lock:
            return self._queue[0][0] - time.monotonic() if self._queue else math.inf

    def due(self, most: int = 500) -> Array | None:
        """Remove and return the samples that are due, rows as in `Samples.table`; None without any."""
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
    """A plant with its simulation in a separate process, of lower priority than the thread that sends its samples."""

    def __init__(self, robot: VirtualRobot, q: ArrayLike | None = None, period: float = 0.004, seed: int = 0) -> None:
        self.robot, self.period, self.seed = robot, period, seed
        self._still, self._here = True, np.zeros(robot.mechanism.dof)
        self.deviation = np.zeros(robot.mechanism.dof)
        self._newest: Signals | None = None  # newest sample
        self._rest: Signals | None = None  # sample of a robot that stands, until it moves
        self._owed = 0.0  # rest not yet sent to the process [s]
        context = mp.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_simulate, args=(other, robot, q, period, seed), name="plant", daemon=True)
        self._process.start()
        other.close()
        self._ask("rest", 0.0)
        gc.collect()
        gc.freeze()  # including objects created since `prepare_timing`

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
        self._newest = position[-1:], velocity[-1:], effort[-1:], heat[-1:]
        return position, velocity, effort, heat

    def advance(self, setpoints: Motion) -> Signals:
        """Follow setpoints from t = 0 to their end, and return the sensor signals after each period."""
        owed, self._owed, self._rest = self._owed, 0.0, None
        if owed:
            self._ask("rest", owed)
        return self._ask("advance", setpoints)

    def rest(self, duration: float) -> Signals:
        """Stand still for some time; only temperatures change, so the process, which may be late, is called once per second."""
        self._owed += duration
        if self._rest is None or self._owed >= COOLING:
            try:
                owed, self._owed = self._owed, 0.0
                self._rest = self._ask("rest", owed)
            except LinkError:
                if self._newest is None:
                    raise
                return self._newest
        return self._rest

    @property
    def still(self) -> bool:
        """True if nothing moves."""
        return self._still

    @property
    def coordinates(self) -> Array:
        """Position of the robot, (n,)."""
        return self._here

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join(timeout=5.0)


def _simulate(pipe: Connection, robot: VirtualRobot, q: ArrayLike | None, period: float, seed: int) -> None:
    """Serve a plant until the other side is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the user ends the controller, which ends this process
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
