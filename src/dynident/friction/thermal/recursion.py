"""Recursions over time: ``x[k+1] = A[k] x[k] + b[k]``, and the fractional equation ``d^nu x / dt^nu = gain x + drive``."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.graph import Graph, Routine, compile_routines, total

Array = NDArray[np.float64]


def affine(transition: Array, drive: Array, start: Array) -> Array:
    """Return the states (N, n) from transitions (N - 1, n, n), drives (N - 1, n) and the first state (n,)."""
    steps, n = drive.shape
    states = np.empty((steps + 1, n))
    states[0] = start
    arrays = np.ascontiguousarray(transition), np.ascontiguousarray(drive), np.array([float(steps)]), states
    _sweep(n)(*(array.ctypes.data for array in arrays))
    return states


@lru_cache(maxsize=8)
def _sweep(n: int) -> Any:
    graph = Graph()
    sweep = Routine(graph, "affine", ("transition", "drive", "steps", "states"))
    with sweep.repeat(sweep.load("steps")) as k:
        x, b = sweep.load_all("states", n * k, n), sweep.load_all("drive", n * k, n)
        A = sweep.load_all("transition", n * n * k, n * n)
        after = [total([b[i], *(A[n * i + j] * x[j] for j in range(n))]) for i in range(n)]
        sweep.store_all("states", n * (k + 1.0), after)
    return compile_routines([sweep], "affine recursion")["affine"]


def caputo(t: Array, gain: Array, drive: Array, start: float, nu: float) -> Array:
    """Return x (N,) on any increasing times; gain and drive (N - 1,) hold from sample to sample.

    L1 scheme, implicit: x is linear between samples, so that its fractional derivative is a sum over all slopes so far.
    """
    scale = math.gamma(2.0 - nu)
    x, slopes = np.empty(t.size), np.empty(t.size - 1)
    x[0] = start
    for n in range(1, t.size):
        memory = slopes[: n - 1] @ -np.diff((t[n] - t[:n]) ** (1.0 - nu)) / scale
        dt = t[n] - t[n - 1]
        weight = dt**-nu / scale
        x[n] = (weight * x[n - 1] + drive[n - 1] - memory) / (weight - gain[n - 1])
        slopes[n - 1] = (x[n] - x[n - 1]) / dt
    return x
