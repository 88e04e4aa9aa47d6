"""Optimisers: sequential quadratic programming from many feasible starts in parallel, pattern search, CMA-ES, evolution.

Starts are explored with a smoothed cost, the better ones refined with a sharper one (`sqp`). What is returned is checked on
a dense grid and scaled down if need be.
"""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.excitation.budget import Budget
from dynident.excitation.equations import RobotEquations
from dynident.excitation.objective import Objective
from dynident.excitation.problem import Problem
from dynident.excitation.search import cma_es, evolution, pattern_search
from dynident.excitation.sqp import SLACK, Descent
from dynident.excitation.starts import check_start, feasible_start, typical
from dynident.identify.factor import one_blas_thread
from dynident.mechanics.batch import cores

Array = NDArray[np.float64]
Progress = Callable[[dict[str, Any]], None]
METHODS = ("sqp", "pattern", "cma", "evolution")
SEARCHES: dict[str, Callable[..., Array]] = {"pattern": pattern_search, "cma": cma_es, "evolution": evolution}
SCREENED = 10  # random motions from which a start is chosen
Stage = tuple[float, float, int]
"""Smoothing power of the condition number, width of signs of friction, most steps."""


class Rung(NamedTuple):
    """What runs do until a share of the time, or of the steps, is over.

    Parameters
    ----------
    end : float
        Share of the time, or of the steps, at which it ends.
    share : float
        Share of the runs that climb it, the better ones; when the time is limited, at least as many as can run at once.
    stages : tuple of Stage
        Descents one after the other.
    kicks : int
        How often the motion is disturbed and descends again by `AGAIN`; what is better is kept.
    """

    end: float
    share: float
    stages: tuple[Stage, ...]
    kicks: int = 0


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
    """One descent or search, as far as it has come.

    Parameters
    ----------
    start : ndarray (n * size,) or None
        Feasible start; drawn at random when None.
    seed : int
        Seed.
    x : ndarray, (n * size,)
        Best feasible motion.
    cost : float
        Its cost.
    rank : float
        Smoothed cost where the descent stands, by which runs are chosen to go on.
    descent : Descent, optional
        Where the descent stands.
    spent : int
        Steps taken.
    """

    start: Array | None
    seed: int
    x: Array
    cost: float = np.inf
    rank: float = np.inf
    descent: Descent | None = None
    spent: int = 0


@dataclass(frozen=True, eq=False)
class Optimum:
    """What an optimiser found.

    Parameters
    ----------
    x : ndarray, (n * size,)
        Parameters, feasible on the dense grid.
    cost : float
        Cost with the smoothed signs.
    start : ndarray, (n * size,)
        Feasible start from which it was found.
    starts : int
        Starts that were tried to an end.
    seconds : float
        Time taken.
    """

    x: Array
    cost: float
    start: Array
    starts: int
    seconds: float


Report = Callable[[Run], None]


def smoothed(objective: Objective, power: float, width: float) -> Objective:
    """Return the objective with fewer edges: a smooth bound of the condition number, wider signs of friction.

    Parameters
    ----------
    objective : Objective
        The true one.
    power : float
        Smoothing of "cond", see `Criterion`; others stay as they are.
    width : float
        How many times wider signs of friction are.

    Returns
    -------
    Objective
        The same with smoothed edges.
    """
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


def penalised(problem: Problem) -> Callable[[Array], float]:
    """Return the cost for searches without gradient: feasible motions by cost, others by how far they are outside.

    Parameters
    ----------
    problem : Problem
        Cost and limits.

    Returns
    -------
    callable
        Parameters to a number.
    """

    def value(x: Array) -> float:
        excess = problem.excess(x) + problem.limits.margin + SLACK
        out = float(np.sum(np.maximum(excess, 0.0)))
        if out > 0.0:
            return 1e3 + out
        try:
            cost = problem.objective.cost(x)
        except DynidentError:
            return 1e4
        return cost if np.isfinite(cost) else 999.0

    return value


def _promising(problem: Problem, generator: np.random.Generator, budget: Budget) -> Array:
    """Return the best of a few random feasible motions."""
    tried = [feasible_start(problem, generator)]
    while len(tried) < SCREENED and not budget.over:
        tried.append(feasible_start(problem, generator))
    return min(tried, key=problem.objective.cost)


def _go_on(problem: Problem, method: str, run: Run, rung: int, limit: Budget) -> Run:
    """Return a run after one rung, or after the whole search of a method without gradients."""
    generator = np.random.default_rng(run.seed)
    budget = replace(limit, steps=limit.steps - run.spent)
    with one_blas_thread():
        if run.start is None:
            first = _promising(problem, generator, budget)
            run = replace(run, start=first, x=first, cost=problem.objective.cost(first))
        if method == "sqp":
            run = _climb(problem, run, RUNGS[rung], budget)
            return replace(run, spent=run.spent + budget.spent)
        x = SEARCHES[method](penalised(problem), run.x, 0.3 * typical(problem), generator, lambda: not budget.spend())
        repaired = problem.shrink(x)
        x = run.x if repaired is None else repaired
        return replace(run, x=x, cost=problem.objective.cost(x))


def _all(problem: Problem, method: str, runs: list[Run], rung: int, limit: Budget, many: int, report: Report) -> list[Run]:
    """Let runs go on in up to `many` processes, or one after the other; report each, and return them in the same order."""
    count, found = min(many, len(runs)), list(runs)
    if count > 1 and "fork" in multiprocessing.get_all_start_methods():
        _SHARED[:] = [problem]
        try:
            with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("fork")) as pool:
                waiting = {pool.submit(_worker, method, run, rung, limit): i for i, run in enumerate(runs)}
                for future in as_completed(waiting):
                    found[waiting[future]] = future.result()
                    report(future.result())
        finally:
            _SHARED.clear()
        return found
    for i, run in enumerate(runs):
        if i and limit.over:
            return found[:i] if rung == 0 else found
        found[i] = _go_on(problem, method, run, rung, limit)
        report(found[i])
    return found


_SHARED: list[Problem] = []  # handed to forked workers, which inherit it: a problem may hold functions that cannot be sent


def _worker(method: str, run: Run, rung: int, limit: Budget) -> Run:
    return _go_on(_SHARED[0], method, run, rung, limit)


def optimise(
    problem: Problem,
    method: str = "sqp",
    starts: int = 8,
    time_budget: float = 30.0,
    seed: int = 0,
    workers: int | None = None,
    start: ArrayLike | None = None,
    progress: Progress | None = None,
    iterations: int | None = None,
) -> Optimum:
    """Find a motion with little cost inside all limits.

    Results are reproducible by seed when `iterations` limits the search, and otherwise as long as the time budget is not what
    ends it.

    Parameters
    ----------
    problem : Problem
        Cost and limits.
    method : {"sqp", "pattern", "cma", "evolution"}
        Optimiser; the last three need no gradient.
    starts : int
        Number of random feasible starts.
    time_budget : float
        When to stop [s], counted from the first feasible motion; compilation after installation comes before.
    seed : int
        Seed of starts and searches.
    workers : int, optional
        Parallel processes; one per core when omitted, 1 keeps everything in this process.
    start : array_like (n * size,), optional
        A start of the user's, tried first; it must be inside the limits.
    progress : callable, optional
        Called after every run with ``done``, ``seconds``, and of the best motion so far ``cost``, ``values`` of its criteria,
        ``limit`` that is tightest and its ``margin``.
    iterations : int, optional
        Most steps of every start, instead of the time budget: steps of the descent with "sqp", polls or generations of the
        other methods.

    Returns
    -------
    Optimum
        The best motion.
    """
    if method not in METHODS:
        raise DynidentError(f"method is '{method}'; use one of {', '.join(METHODS)}")
    if starts < 1 or not time_budget > 0.0:
        raise DynidentError(f"starts is {starts} and time_budget {time_budget}; give at least one start and some seconds")
    if iterations is not None and iterations < 1:
        raise DynidentError(f"iterations is {iterations}; give at least one step, or leave it out to search for time_budget")
    given = None if start is None else np.array(start, dtype=np.float64)
    if given is not None:
        check_start(problem, given)
    first = feasible_start(problem, np.random.default_rng(seed))  # fails here, with a sentence, when there is none
    if method == "sqp":  # compiles, after installation, what workers then inherit: that is not the search's time
        problem.objective(first)
        problem.slopes(first, list(problem.peaks(first)))
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
    runs = [] if given is None else [Run(given, seed, given, problem.objective.cost(given))]
    best += runs  # a search may not end worse than the user's start
    runs += [Run(None, seed + 1000 * k, none) for k in range(starts - len(runs))]
    many = max(1, cores() if workers is None else workers)
    least = many if iterations is None else 1  # how many go on must not depend on the machine when steps are counted
    for k, rung in enumerate(RUNGS if method == "sqp" else RUNGS[-1:]):
        if k:  # the better ones, best first
            runs = sorted(runs, key=lambda r: r.rank)[: max(least, int(np.ceil(rung.share * len(runs))))]
        limit = Budget(began + rung.end * time_budget) if iterations is None else Budget(steps=math.ceil(rung.end * iterations))
        runs = _all(problem, method, runs, k, limit, many, report)
    top = best[0]
    assert top.start is not None
    return Optimum(top.x, top.cost, top.start, starts, monotonic() - began)
