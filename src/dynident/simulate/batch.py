"""Many runs of a virtual robot on all cores: the same noise for the same seed, whatever the number of cores."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from dynident.errors import DynidentError, SimulationError, require
from dynident.parallel import cores
from dynident.simulate.record import Run
from dynident.simulate.robot import VirtualRobot

Vary = Callable[[np.random.Generator, VirtualRobot], VirtualRobot]


def simulate(robot: VirtualRobot, reference: object, **options: Any) -> Run:
    """Run a virtual robot; the same as ``robot.simulate(reference, ...)``.

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    reference : Motion, trajectory, Plan or path-like
        What it is asked to do.
    **options
        Passed to `VirtualRobot.simulate`.

    Returns
    -------
    Run
        Log and truth.
    """
    require(robot, VirtualRobot, "robot")
    return robot.simulate(reference, **options)


def monte_carlo(
    robot: VirtualRobot,
    reference: object,
    runs: int,
    *,
    seed: int = 0,
    vary: Vary | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    failure: str = "raise",
    **options: Any,
) -> list[Run]:
    """Run a virtual robot many times with noise of its own each time, and with other numbers where wanted.

    Run i has the i-th child of the seed; neither the number of cores nor the other runs change it. Threads are used: the
    compiled plant releases the interpreter lock. A controller written in Python is called by one thread at a time.

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    reference : Motion, trajectory, Plan or path-like
        What it is asked to do.
    runs : int
        How many.
    seed : int
        Seed of all of them.
    vary : callable, optional
        ``vary(rng, robot)`` returns the machine of one run, such as one with other friction drawn from ``rng``.
    workers : int, optional
        Threads; one per core when omitted.
    progress : callable, optional
        ``progress(done, runs)`` after every run, in the order in which they end.
    failure : {"raise", "skip"}
        What to do when a run becomes unstable: an error that names it, or leave it out.
    **options
        Passed to `VirtualRobot.simulate`.

    Returns
    -------
    list of Run
        In the order of their seeds.
    """
    require(robot, VirtualRobot, "robot")
    for label, value in (("runs", runs), ("workers", workers)):
        if value is None and label == "workers":
            continue
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise SimulationError(f"{label} is {value!r}; give a whole number, 1 or more")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise SimulationError(f"seed is {seed!r}; give a whole number, 0 or above")
    if failure not in ("raise", "skip"):
        raise SimulationError(f"failure is {failure!r}; give 'raise' or 'skip'")
    for label, call in (("vary", vary), ("progress", progress)):
        if call is not None and not callable(call):
            raise SimulationError(f"{label} is a {type(call).__name__}; give a function")
    children = np.random.SeedSequence(int(seed)).spawn(int(runs))
    wanted = robot.reference(reference)  # read and checked once, not by every thread
    done, failed = [0], list[SimulationError]()
    lock = threading.Lock()

    def one(i: int) -> Run | None:
        choice, noise = children[i].spawn(2)
        try:
            machine = robot if vary is None else vary(np.random.default_rng(choice), robot)
            require(machine, VirtualRobot, "what vary returns")
            result: Run | None = machine.simulate(wanted, seed=noise, **options)
        except SimulationError as error:
            failed.append(error)
            if failure == "raise":
                raise SimulationError(f"run {i}: {error}") from error
            result = None
        except DynidentError as error:
            raise type(error)(f"run {i}: {error}") from error
        if progress is not None:
            with lock:
                done[0] += 1
                progress(done[0], int(runs))
        return result

    with ThreadPoolExecutor(workers or cores()) as pool:
        found = list(pool.map(one, range(int(runs))))
    kept = [run for run in found if run is not None]
    if not kept:  # a wrong setting fails everywhere: an empty list would hide it
        raise SimulationError(f"all {int(runs)} runs failed; the first: {failed[0]}")
    return kept
