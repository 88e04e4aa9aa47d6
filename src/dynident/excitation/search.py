"""Searches without gradients: pattern search, CMA-ES and differential evolution, each a few dozen lines."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Cost = Callable[[Array], float]
Over = Callable[[], bool]


def pattern_search(cost: Cost, x: Array, size: Array, generator: np.random.Generator, over: Over, least: float = 1e-4) -> Array:
    """Poll every coordinate in both directions; double the mesh after success, halve it after failure (document 4, 5.3).

    Parameters
    ----------
    cost : callable
        What to minimise.
    x : ndarray, (p,)
        Start.
    size : ndarray, (p,)
        First mesh of every coordinate.
    generator : Generator
        Order of the polls.
    over : callable
        True when the time is over.
    least : float
        Mesh, relative to the first, at which to stop.

    Returns
    -------
    ndarray, (p,)
        Best point.
    """
    best, here, mesh = cost(x), x.copy(), 1.0
    while mesh > least:
        moved = False
        for k in generator.permutation(x.size):
            for sign in (1.0, -1.0):
                if over():
                    return here
                trial = here.copy()
                trial[k] += sign * mesh * size[k]
                value = cost(trial)
                if value < best:
                    best, here, moved = value, trial, True
                    break
        mesh *= 2.0 if moved and mesh < 1.0 else 1.0 if moved else 0.5
    return here


def cma_es(
    cost: Cost, x: Array, size: Array, generator: np.random.Generator, over: Over, generations: int = 4000, spread: float = 0.3
) -> Array:
    """Covariance matrix adaptation (Hansen, "The CMA evolution strategy: a tutorial", 2016).

    Parameters
    ----------
    cost : callable
        What to minimise.
    x : ndarray, (p,)
        Start.
    size : ndarray, (p,)
        Scale of every coordinate.
    generator : Generator
        Random numbers.
    over : callable
        True when the time is over.
    generations : int
        Most generations.
    spread : float
        First step, relative to `size`.

    Returns
    -------
    ndarray, (p,)
        Best point.
    """
    n = x.size
    many = 4 + int(3 * np.log(n))
    half = many // 2
    w = np.log(half + 0.5) - np.log(np.arange(1, half + 1))
    w /= w.sum()
    mu = 1.0 / np.sum(w**2)
    cs, cc = (mu + 2) / (n + mu + 5), (4 + mu / n) / (n + 4 + 2 * mu / n)
    c1 = 2 / ((n + 1.3) ** 2 + mu)
    cmu = min(1 - c1, 2 * (mu - 2 + 1 / mu) / ((n + 2) ** 2 + mu))
    damp = 1 + 2 * max(0.0, np.sqrt((mu - 1) / (n + 1)) - 1) + cs
    chi = np.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))
    mean, step = np.zeros(n), spread
    C, B, D = np.eye(n), np.eye(n), np.ones(n)
    ps, pc = np.zeros(n), np.zeros(n)
    best, here = cost(x), x.copy()
    for g in range(generations):
        y = (generator.normal(size=(many, n)) * D) @ B.T
        values = np.empty(many)
        for i in range(many):
            if over():
                return here
            trial = x + size * (mean + step * y[i])
            values[i] = cost(trial)
            if values[i] < best:
                best, here = float(values[i]), trial
        order = np.argsort(values)[:half]
        yw = w @ y[order]
        mean = mean + step * yw
        ps = (1 - cs) * ps + np.sqrt(cs * (2 - cs) * mu) * (B @ ((B.T @ yw) / D))
        slow = np.linalg.norm(ps) / np.sqrt(1 - (1 - cs) ** (2 * (g + 1))) < (1.4 + 2 / (n + 1)) * chi
        pc = (1 - cc) * pc + slow * np.sqrt(cc * (2 - cc) * mu) * yw
        C = (1 - c1 - cmu) * C + c1 * np.outer(pc, pc) + cmu * (y[order].T * w) @ y[order]
        step *= float(np.exp(cs / damp * (np.linalg.norm(ps) / chi - 1)))
        if g % 5 == 0:
            eigen, B = np.linalg.eigh(0.5 * (C + C.T))
            D = np.sqrt(np.maximum(eigen, 1e-20))
        if step * D.max() < 1e-7:
            break
    return here


def evolution(
    cost: Cost, x: Array, size: Array, generator: np.random.Generator, over: Over, generations: int = 2000, many: int = 40
) -> Array:
    """Differential evolution, best/1/bin with dither: a population of motions that mixes.

    Parameters
    ----------
    cost : callable
        What to minimise.
    x : ndarray, (p,)
        Start; it is in the first population.
    size : ndarray, (p,)
        Spread of the first population.
    generator : Generator
        Random numbers.
    over : callable
        True when the time is over.
    generations : int
        Most generations.
    many : int
        Size of the population.

    Returns
    -------
    ndarray, (p,)
        Best point.
    """
    people = x + generator.normal(size=(many, x.size)) * size * generator.uniform(0.0, 2.0, (many, 1))
    people[0] = x
    values = np.full(many, np.inf)
    for i in range(many):
        if over():
            break
        values[i] = cost(people[i])
    for _ in range(generations):
        for i in range(many):
            if over():
                return np.asarray(people[int(np.argmin(values))])
            a, b = people[generator.choice(many, 2, replace=False)]
            mutant = people[int(np.argmin(values))] + generator.uniform(0.4, 0.9) * (a - b)
            trial = np.where(generator.uniform(size=x.size) < 0.8, mutant, people[i])
            value = cost(trial)
            if value <= values[i]:
                people[i], values[i] = trial, value
    return np.asarray(people[int(np.argmin(values))])
