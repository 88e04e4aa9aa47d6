"""Samples in time: when each is due, a process that runs before others, and the simulation in a process of its own.

Threads of one Python process take turns, so a simulation beside the thread that sends samples makes them late.
"""

from __future__ import annotations

import gc
import math
import multiprocessing as mp
import os
import signal
import sys
import threading
import time
from collections import deque
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError, LinkError
from dynident.mechanics import Motion
from dynident.simulate import VirtualRobot
from dynident_lab.link.plant import Plant

Array = NDArray[np.float64]
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
                f"this system does not let the process run before others ({error}); samples may be late, or run it as root"
            ) from error


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
        signals, self._still, self._here = answer
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
    if hasattr(os, "SCHED_FIFO") and os.sched_getscheduler(0) == os.SCHED_FIFO:  # as whoever started it
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(max(1, os.sched_getparam(0).sched_priority - 1)))
    try:
        plant = Plant(robot, q, period, seed)
        while True:
            name, argument = pipe.recv()
            answer: Any
            try:
                answer = getattr(plant, name)(argument), plant.still, plant.coordinates
            except DynidentError as error:
                answer = error
            pipe.send(answer)
    except DynidentError as error:
        pipe.recv()
        pipe.send(error)
    except (EOFError, OSError):
        pass
