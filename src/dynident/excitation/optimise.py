"""Optimisers: sequential quadratic programming from many feasible starts in parallel, pattern search, CMA-ES, evolution.

Starts are explored with a smoothed cost, the better half is refined with the true one (`sqp`). What is returned is checked on
a dense grid and scaled down if need be.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
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
Job = tuple[str, int, Array | None, float, bool]
"""Method, seed, start, deadline, whether to refine."""

METHODS = ("sqp", "pattern", "cma", "evolution")
SEARCHES: dict[str, Callable[..., Array]] = {"pattern": pattern_search, "cma": cma_es, "evolution": evolution}
TRUST = (1.0, 0.2)  # first steps relative to the parameters' typical size: exploring, refining
AGAIN = 0.1  # the same after the cost has become sharper
SCREENED = 10  # random motions from which a start is chosen
STAGES = (((4.0, 40.0, 40), (4.0, 10.0, 40)), ((16.0, 3.0, 60), (64.0, 1.0, 100), (np.inf, 1.0, 40)))
"""Exploring and refining: smoothing power of the condition number, width of signs of friction, steps. The sharp edges of both
make many local optima; approached through smooth ones, better optima are found."""
EXPLORE = 0.5  # share of the time for trying starts; the rest refines the best of them


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


def _sqp(problem: Problem, start: Array, deadline: float, refine: bool) -> tuple[float, Array]:
    """Return cost and parameters of the best feasible motion found from a start."""
    objective = problem.objective
    edged = any(name == "cond" for name, _ in objective.criterion.weights)
    best_cost, best = objective.cost(start), start
    descent = Descent(problem, typical(problem), start, TRUST[refine])
    for power, width, iterations in STAGES[refine]:
        descent.run(smoothed(objective, power if edged else np.inf, width), iterations, deadline)
        for towards in (None, best):  # rest, or the best so far: whichever leaves more of the motion
            x = problem.shrink(descent.x, towards=towards)
            cost = np.inf if x is None else objective.cost(x)
            if x is not None and cost < best_cost:
                best_cost, best = cost, x
        if monotonic() > deadline:
            break
        descent.trust = max(descent.trust, AGAIN)
    return best_cost, best


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


def _promising(problem: Problem, generator: np.random.Generator, deadline: float) -> Array:
    """Return the best of a few random feasible motions."""
    tried = [feasible_start(problem, generator)]
    while len(tried) < SCREENED and monotonic() < deadline:
        tried.append(feasible_start(problem, generator))
    return min(tried, key=problem.objective.cost)


def _run(
    problem: Problem, method: str, seed: int, start: Array | None, deadline: float, refine: bool = False
) -> tuple[float, Array, Array]:
    """Return cost, parameters and start of one run."""
    generator = np.random.default_rng(seed)
    with one_blas_thread():
        first = _promising(problem, generator, deadline) if start is None else start
        if method == "sqp":
            cost, x = _sqp(problem, first, deadline, refine)
            return cost, x, first
        x = SEARCHES[method](penalised(problem), first, 0.3 * typical(problem), generator, lambda: monotonic() > deadline)
        repaired = problem.shrink(x)
        x = first if repaired is None else repaired
        return problem.objective.cost(x), x, first


def _all(problem: Problem, jobs: list[Job], many: int, report: Callable[[tuple[float, Array, Array]], None]) -> None:
    """Run jobs in up to `many` processes, or one after the other, and report each result."""
    count = min(many, len(jobs))
    if count > 1 and "fork" in multiprocessing.get_all_start_methods():
        _SHARED[:] = [problem]
        try:
            with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("fork")) as pool:
                waiting: set[Future[tuple[float, Array, Array]]] = {pool.submit(_worker, job) for job in jobs}
                while waiting:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        report(future.result())
        finally:
            _SHARED.clear()
        return
    for i, job in enumerate(jobs):
        if i and monotonic() > job[3]:
            break
        report(_run(problem, *job))


_SHARED: list[Problem] = []  # handed to forked workers, which inherit it: a problem may hold functions that cannot be sent


def _worker(job: Job) -> tuple[float, Array, Array]:
    return _run(_SHARED[0], *job)


def optimise(
    problem: Problem,
    method: str = "sqp",
    starts: int = 12,
    time_budget: float = 30.0,
    seed: int = 0,
    workers: int | None = None,
    start: ArrayLike | None = None,
    progress: Progress | None = None,
) -> Optimum:
    """Find a motion with little cost inside all limits.

    Results are reproducible by seed as long as the time budget is not what ends the search.

    Parameters
    ----------
    problem : Problem
        Cost and limits.
    method : {"sqp", "pattern", "cma", "evolution"}
        Optimiser; the last three need no gradient.
    starts : int
        Number of random feasible starts.
    time_budget : float
        When to stop [s].
    seed : int
        Seed of starts and searches.
    workers : int, optional
        Parallel processes; one per core when omitted, 1 keeps everything in this process.
    start : array_like (n * size,), optional
        A start of the user's, tried first; it must be inside the limits.
    progress : callable, optional
        Called after every run with ``done``, ``seconds``, and of the best motion so far ``cost``, ``values`` of its criteria,
        ``limit`` that is tightest and its ``margin``.

    Returns
    -------
    Optimum
        The best motion.
    """
    if method not in METHODS:
        raise DynidentError(f"method is '{method}'; use one of {', '.join(METHODS)}")
    if starts < 1 or not time_budget > 0.0:
        raise DynidentError(f"starts is {starts} and time_budget {time_budget}; give at least one start and some seconds")
    began = monotonic()
    deadline = began + time_budget
    given = None if start is None else np.array(start, dtype=np.float64)
    if given is not None:
        check_start(problem, given)
    feasible_start(problem, np.random.default_rng(seed))  # fails here, with a sentence, when there is none
    found: list[tuple[float, Array, Array]] = []

    def report(result: tuple[float, Array, Array]) -> None:
        found.append(result)
        if progress is not None:
            best = min(found, key=lambda f: f[0])
            excess = problem.excess(best[1])
            worst = int(np.argmax(excess))
            told = {"cost": best[0], "values": problem.objective.value(best[1]), "margin": -float(excess[worst])}
            progress({"done": len(found), **told, "limit": problem.names[worst], "seconds": monotonic() - began})

    two = method == "sqp"
    first_end = began + EXPLORE * time_budget if two else deadline
    jobs: list[Job] = [] if given is None else [(method, seed, given, first_end, False)]
    jobs += [(method, seed + 1000 * k, None, first_end, False) for k in range(starts - len(jobs))]
    many = max(1, cores() if workers is None else workers)
    _all(problem, jobs, many, report)
    if two:  # refine the better half, best first, as long as there is time
        chosen = sorted(found, key=lambda f: f[0])[: max(many, -(-len(found) // 2))]
        origin = {k: start_of for k, (_, _, start_of) in enumerate(chosen)}

        def refined(result: tuple[float, Array, Array]) -> None:
            k = next((k for k, (_, best, _) in enumerate(chosen) if np.array_equal(best, result[2])), 0)
            report((result[0], result[1], origin[k]))

        _all(problem, [(method, k, best, deadline, True) for k, (_, best, _) in enumerate(chosen)], many, refined)
    cost, x, first = min(found, key=lambda f: f[0])
    return Optimum(x, cost, first, len(jobs), monotonic() - began)
