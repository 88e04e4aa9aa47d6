"""Many runs of a virtual robot on all cores, with noise of their own (`monte_carlo`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np

from dynident.checks import choice, whole
from dynident.errors import DynidentError, SimulationError, require
from dynident.parallel import completed, threads
from dynident.simulate.record import Run
from dynident.simulate.robot import VirtualRobot

Vary = Callable[[np.random.Generator, VirtualRobot], VirtualRobot]
MOST = 1_000_000  # runs or workers


def monte_carlo(
    robot: VirtualRobot,
    reference: object,
    runs: int,
    *,
    seed: int = 0,
    vary: Vary | None = None,
    workers: int | None = None,
    client: Any = None,
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
    client : dask.distributed.Client or concurrent.futures.Executor, optional
        Where to compute; threads of this process when omitted (see `dynident_lab.fleet.connect`).
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
    whole("runs", runs, least=1, most=MOST, kind=SimulationError)
    if workers is not None:
        whole("workers", workers, least=1, most=MOST, kind=SimulationError)
    whole("seed", seed, least=0, most=np.inf, kind=SimulationError)
    choice("failure", failure, ("raise", "skip"), SimulationError)
    for name, call in (("vary", vary), ("progress", progress)):
        if call is not None and not callable(call):
            raise SimulationError(f"{name} is a {type(call).__name__}; give a function")
    children = np.random.SeedSequence(int(seed)).spawn(int(runs))
    wanted = robot.reference(reference)  # read and checked once, not by every thread
    items = ((robot, wanted, i, child, vary, options) for i, child in enumerate(children))
    found: dict[int, Run | SimulationError] = {}
    with threads(workers) if client is None else nullcontext(client) as pool:
        for i, future in completed(pool, _one_run, items):
            result: Run | SimulationError = future.result()
            if isinstance(result, SimulationError) and failure == "raise":
                raise result
            found[i] = result
            if progress is not None:
                progress(len(found), int(runs))
    kept = [run for i in sorted(found) if isinstance(run := found[i], Run)]
    if not kept:  # a wrong setting fails everywhere: an empty list would hide it
        raise SimulationError(f"all {int(runs)} runs failed; the first: {found[0]}")
    return kept


def _one_run(
    robot: VirtualRobot,
    wanted: Any,
    i: int,
    child: np.random.SeedSequence,
    vary: Vary | None,
    options: Mapping[str, Any],
) -> Run | SimulationError:
    """Run one machine with the noise of its own seed; a run that becomes unstable gives its sentence."""
    choice, noise = child.spawn(2)
    try:
        machine = robot if vary is None else vary(np.random.default_rng(choice), robot)
        require(machine, VirtualRobot, "what vary returns")
        return machine.simulate(wanted, seed=noise, **options)
    except SimulationError as error:
        return SimulationError(f"run {i}: {error}")
    except DynidentError as error:
        raise type(error)(f"run {i}: {error}") from error
