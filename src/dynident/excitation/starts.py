"""Feasible starts: random motions scaled into the limits, or a sentence that names the limit that cannot be kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError
from dynident.excitation.problem import OUTSIDE, Problem

Array = NDArray[np.float64]

POSTURES = 200  # tried before giving up


def typical(problem: Problem) -> Array:
    """Return the size of every parameter that makes its joint use about a tenth of its limits, (n * size,).

    Parameters
    ----------
    problem : Problem
        Limits and family.

    Returns
    -------
    ndarray, (n * size,)
        Sizes above zero.
    """
    t = problem.objective.t
    peaks = [np.abs(problem.family.basis(t, k)).max(axis=0) for k in range(4)]
    limits = problem.limits
    reach = [0.5 * (limits.upper - limits.lower), limits.velocity, limits.acceleration, limits.jerk]
    with np.errstate(divide="ignore"):
        sizes = np.min([np.where(p > 1e-12, r[:, None] / p, np.inf) for p, r in zip(peaks, reach, strict=True)], axis=0)
    return np.asarray(0.3 * sizes).ravel()


def posture(problem: Problem, generator: np.random.Generator) -> Array:
    """Return a random position at which standing still keeps all limits.

    Parameters
    ----------
    problem : Problem
        Limits.
    generator : Generator
        Random numbers.

    Returns
    -------
    ndarray, (n,)
        Position.
    """
    limits = problem.limits
    middle = 0.5 * (limits.lower + limits.upper) if problem.home is None else problem.home
    least = np.full(len(problem.names), np.inf)
    broken = np.zeros(len(problem.names))
    for k in range(POSTURES):
        share = 0.0 if k == 0 and problem.home is None else generator.uniform(0.0, 1.0)
        q = middle + share * (generator.uniform(limits.lower, limits.upper) - middle)
        if k == 1:
            q = middle
        excess = problem.excess(problem.still(q))
        if np.all(excess <= -limits.margin):
            return np.asarray(q)
        least = np.minimum(least, excess)
        broken += excess > -limits.margin
    worst = int(np.argmax(least))
    if least[worst] <= -limits.margin:
        worst = int(np.argmax(broken))
        reason = f"it is exceeded at {broken[worst] / POSTURES:.0%} of the positions, and the others elsewhere"
    elif least[worst] >= OUTSIDE:
        raise DynidentError(
            "no feasible motion: the robot cannot be closed at any position tried; give a home inside the limits"
        )
    else:
        reason = f"even at rest it is exceeded by {least[worst] + limits.margin:.3g} of its size at every position tried"
    raise DynidentError(
        f"no feasible motion: limit '{problem.names[worst]}' cannot be kept with a margin of {limits.margin:g}: {reason}"
    )


def feasible_start(problem: Problem, generator: np.random.Generator) -> Array:
    """Return a random motion inside all limits.

    Parameters
    ----------
    problem : Problem
        Limits and family.
    generator : Generator
        Random numbers.

    Returns
    -------
    ndarray, (n * size,)
        Parameters.
    """
    size = typical(problem)
    for _ in range(20):
        rest = problem.still(posture(problem, generator))
        move = generator.normal(size=size.size) * size
        low, high = 0.0, 1.0
        for _ in range(8):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if problem.feasible(rest + middle * move) else (low, middle)
        if low > 0.01:
            return np.asarray(rest + 0.95 * low * move)
    excess = problem.excess(rest + 0.01 * move)
    worst = problem.names[int(np.argmax(excess))]
    raise DynidentError(f"no feasible motion: limit '{worst}' leaves no room to move around any position tried; relax it")


def check_start(problem: Problem, x: Array) -> None:
    """Refuse a start outside the limits.

    Parameters
    ----------
    problem : Problem
        Limits.
    x : ndarray, (n * size,)
        Parameters of the start.
    """
    if x.shape != (problem.dof * problem.family.size,) or not np.all(np.isfinite(x)):
        raise DynidentError(
            f"start has shape {x.shape}; give {problem.dof * problem.family.size} finite numbers, "
            f"{problem.family.size} for each of {problem.dof} coordinates"
        )
    excess = problem.excess(x, True)
    if excess.max() > 1e-9:
        worst = int(np.argmax(excess))
        raise DynidentError(
            f"the start breaks limit '{problem.names[worst]}' by {excess[worst]:.3g} of its size; start inside the limits, or "
            "leave the start out"
        )
