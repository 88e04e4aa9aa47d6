"""Optimiser: sequential quadratic programming from many feasible starts in parallel.

Starts are explored with a smoothed cost, the better ones refined with a sharper one (`sqp`). What is returned is checked on
a dense grid and scaled down if need be.
"""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import number, numbers, shown, whole
from dynident.errors import DynidentError, require
from dynident.excitation.equations import RobotEquations
from dynident.excitation.objective import Objective
from dynident.excitation.peaks import peaks, slopes
from dynident.excitation.problem import Problem, check_start, feasible_start, typical
from dynident.excitation.sqp import Budget, Descent
from dynident.parallel import WINDOW, completed, cores, one_blas_thread

Array = NDArray[np.float64]
Progress = Callable[[dict[str, Any]], None]
STARTS = 1_000_000  # most that can be asked for
SCREENED = 10  # random motions from which a start is chosen
Stage = tuple[float, float, int]
"""Smoothing power of the condition number, width of signs of friction, most steps."""


class Rung(NamedTuple):
    """What runs do until a share of the time, or of the steps, is over."""

    end: float  # share of the time, or of the steps, at which it ends
    share: float  # of the runs that climb it, the better ones; when the time is limited, at least as many as can run at once
    stages: tuple[Stage, ...]  # descents one after the other
    kicks: int = 0  # how often the motion is disturbed and descends again by `AGAIN`; what is better is kept


AGAIN: tuple[Stage, ...] = ((4.0, 40.0, 15), (8.0, 10.0, 20), (16.0, 3.0, 30))
RUNGS = (
    Rung(0.25, 1.0, ((4.0, 40.0, 40),)),
    Rung(0.5, 0.5, ((8.0, 10.0, 40), (16.0, 3.0, 40))),
    Rung(0.85, 0.01, (), 8),
    Rung(1.0, 1.0, ((64.0, 1.0, 100), (np.inf, 1.0, 60))),
)
"""The sharp edges of the condition number and of friction make many local optima; approached through smooth ones, and by
kicks out of them, better ones are found."""
KICK = 0.3  # size of a kick, relative to the parameters' typical size
LEAST_TRUST = 0.1  # with which a stage begins, likewise


@dataclass(frozen=True, eq=False)
class Run:
    """One descent, as far as it has come."""

    start: Array | None  # feasible; drawn at random when None
    seed: int
    x: Array  # best feasible motion
    cost: float = np.inf
    rank: float = np.inf  # smoothed cost where the descent stands, by which runs are chosen to go on
    descent: Descent | None = None
    spent: int = 0  # steps
    cut: bool = False  # whether time ended it


@dataclass(frozen=True, eq=False)
class Optimum:
    """What an optimiser found."""

    x: Array  # Parameters, feasible on the dense grid
    cost: float  # Cost with the smoothed signs
    start: Array  # Feasible start from which it was found
    starts: int  # Starts that were tried
    seconds: float  # Time taken
    cut: bool = False


Report = Callable[[Run], None]


def smoothed(objective: Objective, power: float, width: float) -> Objective:
    """Return the objective with fewer edges: a smooth bound of the condition number, signs of friction so many times wider."""
    equations = objective.equations
    if isinstance(equations, RobotEquations) and equations.eps > 0.0:
        equations = replace(equations, eps=width * equations.eps)
    sharp = min(power, objective.criterion.power)
    return replace(objective, equations=equations, criterion=replace(objective.criterion, power=sharp))


def _descend(problem: Problem, run: Run, stages: tuple[Stage, ...], budget: Budget) -> Run:
    """Return a run after some descents."""
    objective = problem.objective
    edged = any(name == "cond" for name, _ in objective.criterion.weights)
    best, cost, rank, descent = run.x, run.cost, run.rank, run.descent
    assert descent is not None
    for power, width, steps in stages:
        current = smoothed(objective, power if edged else np.inf, width)
        descent.trust = max(descent.trust, LEAST_TRUST)
        descent.run(problem, current, steps, budget)
        for towards in (None, best):  # rest, or the best so far: whichever leaves more of the motion
            x = problem.shrink(descent.x, towards=towards)
            if x is None:
                continue
            value, rank = objective.cost(x), current.cost(x)
            if value < cost:
                best, cost = x, value
            break
        if budget.over:
            break
    return replace(run, x=best, cost=cost, rank=rank, descent=descent)


def _climb(problem: Problem, run: Run, rung: Rung, budget: Budget) -> Run:
    """Return a run after one rung."""
    size = typical(problem)
    if run.descent is None:
        run = replace(run, descent=Descent(problem.limits, size, run.x))
    run = _descend(problem, run, rung.stages, budget)
    generator = np.random.default_rng(run.seed)
    for _ in range(rung.kicks):
        if budget.over:
            break
        assert run.descent is not None
        x = run.descent.x + KICK * size * generator.normal(size=size.size)
        other = _descend(problem, replace(run, descent=Descent(problem.limits, size, x, KICK)), AGAIN, budget)
        kept = other if other.rank < run.rank else run
        run = replace(kept, x=other.x, cost=other.cost)  # the best motion in any case
    return run


def _promising(problem: Problem, generator: np.random.Generator, budget: Budget) -> Array:
    """Return the best of a few random feasible motions."""
    tried = [feasible_start(problem, generator)]
    while len(tried) < SCREENED and not budget.over:
        tried.append(feasible_start(problem, generator))
    return min(tried, key=problem.objective.cost)


def _go_on(problem: Problem, run: Run, rung: int, limit: Budget) -> Run:
    """Return a run after one rung of `RUNGS`."""
    generator = np.random.default_rng(run.seed)
    budget = replace(limit, steps=limit.steps - run.spent)
    with one_blas_thread():
        if run.start is None:
            first = _promising(problem, generator, budget)
            run = replace(run, start=first, x=first, cost=problem.objective.cost(first))
        run = _climb(problem, run, RUNGS[rung], budget)
    return replace(run, spent=run.spent + budget.spent, cut=run.cut or monotonic() > budget.deadline)


def _all(
    problem: Problem, runs: Iterable[Run], rung: int, limit: Budget, many: int, report: Report, client: Any = None
) -> list[Run]:
    """Let runs go on in up to `many` processes, or one after the other, and report each; none begins when the time is over.

    Returns the runs in the same order; in the first rung without those that did not begin.
    """
    found: dict[int, Run] = {}
    waiting = enumerate(runs)

    def following() -> Iterator[Run]:
        while not (found and limit.over) and (entry := next(waiting, None)) is not None:
            yield entry[1]

    def take(i: int, run: Run) -> None:
        found[i] = run
        report(run)

    if client is not None:
        items = ((problem, run, rung, limit, limit.deadline - monotonic()) for run in following())
        for i, future in completed(client, _remote, items, many):
            take(i, future.result())
    elif many > 1 and "fork" in multiprocessing.get_all_start_methods():
        _SHARED[:] = [problem]
        try:
            with ProcessPoolExecutor(many, mp_context=multiprocessing.get_context("fork")) as pool:
                for i, future in completed(pool, _worker, ((run, rung, limit) for run in following()), many):
                    take(i, future.result())
        finally:
            _SHARED.clear()
    else:
        for i, run in enumerate(following()):
            take(i, _go_on(problem, run, rung, limit))
    if rung:
        found |= {i: replace(run, cut=True) for i, run in waiting}
    elif next(waiting, None) is not None:
        found = {i: replace(run, cut=True) for i, run in found.items()}
    return [found[i] for i in sorted(found)]


_SHARED: list[Problem] = []  # handed to forked workers, which inherit it: a problem may hold functions that cannot be sent


def _worker(run: Run, rung: int, limit: Budget) -> Run:
    return _go_on(_SHARED[0], run, rung, limit)


def _remote(problem: Problem, run: Run, rung: int, limit: Budget, left: float) -> Run:
    """Go on in a process whose clock may be another one."""
    return _go_on(problem, run, rung, replace(limit, deadline=monotonic() + left))


def optimise(
    problem: Problem,
    starts: int = 8,
    time_budget: float = 30.0,
    seed: int = 0,
    workers: int | None = None,
    start: ArrayLike | None = None,
    progress: Progress | None = None,
    iterations: int | None = None,
    client: Any = None,
) -> Optimum:
    """Find a motion with little cost inside all limits.

    Results are reproducible by seed when `iterations` limits the search, and otherwise as long as the time budget is not what
    ends it.
    """
    require(problem, Problem, "problem")
    if progress is not None and not callable(progress):
        raise DynidentError(f"progress is {shown(progress)}; give a function, or nothing")
    whole("starts", starts, least=1, most=STARTS)
    number("time_budget", time_budget, above=0.0, unit="s")
    if iterations is not None:
        whole("iterations", iterations, least=1)
    given = None if start is None else np.array(numbers(start, "start"))
    if given is not None:
        check_start(problem, given)
    whole("seed", seed, least=0, most=np.inf)
    first = feasible_start(problem, np.random.default_rng(seed))  # fails here, with a sentence, when there is none
    problem.objective(first)  # compiles what workers then inherit: that is not the search's time
    slopes(problem, first, list(peaks(problem, first)))
    began = monotonic()
    best: list[Run] = []
    done = 0

    def report(run: Run) -> None:
        nonlocal done
        done += 1
        best[:] = [min([*best, run], key=lambda r: r.cost)]
        if progress is not None:
            excess = problem.excess(best[0].x)
            worst = int(np.argmax(excess))
            told = {"cost": best[0].cost, "values": problem.objective.value(best[0].x), "margin": -float(excess[worst])}
            progress({"done": done, **told, "limit": problem.names[worst], "seconds": monotonic() - began})

    none = np.zeros(0)
    best += [] if given is None else [Run(given, seed, given, problem.objective.cost(given))]  # never worse than this
    runs: Iterable[Run] = chain(best[:], (Run(None, seed + 1000 * k, none) for k in range(starts - len(best))))
    many = max(1, min(starts, cores() if workers is None else whole("workers", workers)))
    if client is not None:
        many = max(1, min(starts, WINDOW))
    least = many if iterations is None else 1  # how many go on must not depend on the machine when steps are counted
    tried, cut = 0, False
    for k, rung in enumerate(RUNGS):
        if k:  # the better ones, best first
            ranked = sorted(runs, key=lambda r: r.rank)
            runs = ranked[: max(least, math.ceil(rung.share * len(ranked)))]
        limit = Budget(began + rung.end * time_budget) if iterations is None else Budget(steps=math.ceil(rung.end * iterations))
        climbed = _all(problem, runs, k, limit, many, report, client)
        runs, tried, cut = climbed, tried or len(climbed), cut or any(run.cut for run in climbed)
    top = best[0]
    assert top.start is not None
    return Optimum(top.x, top.cost, top.start, tried, monotonic() - began, cut)
