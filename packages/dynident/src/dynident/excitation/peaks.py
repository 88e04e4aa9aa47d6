"""Limits where they are nearly or quite exceeded: the peaks that the optimiser sees, and their derivatives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dynident.excitation.limits import Box, Limit, State
from dynident.excitation.problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Pick = tuple[int, int, int]
"""Limit, its column, sample."""

NEAR = 1.0  # peaks with a smaller margin are handed to the optimiser
MOST = 6  # peaks of one limit
STEP = 1e-6  # of differences of limits by the state


def peaks(problem: Problem, x: Array) -> set[Pick]:
    """Return the samples where limits are exceeded or nearly so: local maxima of each column."""
    state = problem.state(x)
    found: set[Pick] = set()
    for i, limit in enumerate(problem.limits.all):
        e = limit.excess(state)
        padded = np.vstack([np.full(e.shape[1], -np.inf), e, np.full(e.shape[1], -np.inf)])
        top = (e >= padded[:-2]) & (e > padded[2:]) & (e > -NEAR)
        for k in range(e.shape[1]):
            samples = np.flatnonzero(top[:, k])
            for s in samples[np.argsort(-e[samples, k])][:MOST]:
                found.add((i, k, int(s)))
    return found


def at(problem: Problem, x: Array, picks: list[Pick]) -> Array:
    """Return the excess at given samples."""
    state = problem.state(x)
    out = np.empty(len(picks))
    for limit, rows, columns, samples in _by_limit(problem, picks):
        if limit.follows:
            out[rows] = limit.excess(state)[samples, columns]
        else:
            out[rows] = limit.excess(State(*(y[samples] for y in state)))[np.arange(len(rows)), columns]
    return out


def slopes(problem: Problem, x: Array, picks: list[Pick]) -> Array:
    """Return the derivatives of `at`: exact for positions and rates, by central differences in the state otherwise."""
    state, size = problem.state(x), problem.family.size
    out = np.zeros((len(picks), problem.dof, size))
    for limit, rows, columns, samples in _by_limit(problem, picks):
        if isinstance(limit, Box):
            joints, gains, _ = limit.columns
            out[rows, joints[columns]] = gains[columns, None] * problem.grid[limit.order][samples]
            continue
        for order in limit.orders:
            slope = _by_state(limit, state, order, samples, columns)  # (rows, n)
            out[rows] += slope[:, :, None] * problem.grid[order][samples][:, None, :]
    return out.reshape(len(picks), -1)


def _by_limit(problem: Problem, picks: list[Pick]) -> Iterator[tuple[Limit, Index, Index, Index]]:
    """Return limits, which of the picks are theirs, and the columns and samples of these."""
    table = np.array(picks, dtype=np.int64).reshape(-1, 3)
    for i, limit in enumerate(problem.limits.all):
        rows = np.flatnonzero(table[:, 0] == i)
        if rows.size:
            yield limit, rows, table[rows, 1], table[rows, 2]


def _by_state(limit: Limit, state: State, order: int, samples: Index, columns: Index) -> Array:
    """Return the derivative of a limit at samples by q, v, a or jerk of the same samples, (m, n)."""
    n, m = state.q.shape[1], samples.size
    steps = [(j, h) for j in range(n) for h in (STEP, -STEP)]
    if limit.follows:
        values = []
        for j, h in steps:
            moved = state[order].copy()
            moved[:, j] += h
            values.append(limit.excess(state._replace(**{"qvaj"[order]: moved}))[samples, columns])
        found = np.array(values)
    else:  # samples stand for themselves: all of them moved every way in one call
        places, where = np.unique(samples, return_inverse=True)
        chosen = State(*(np.tile(y[places], (2 * n, 1)) for y in state))
        moved = chosen[order].reshape(2 * n, places.size, n)
        for k, (j, h) in enumerate(steps):
            moved[k, :, j] += h
        found = limit.excess(chosen).reshape(2 * n, places.size, -1)[:, where, columns]
    return np.asarray((found[0::2] - found[1::2]).T.reshape(m, n) / (2.0 * STEP))
