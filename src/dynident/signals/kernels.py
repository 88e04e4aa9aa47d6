"""The two sweeps of a Rauch-Tung-Striebel smoother whose gains are given, as machine code.

    forward    x := F x, then x := x + K (q - x_0)                F = [[1, w, w^2/2], [0, 1, w], [0, 0, 1]]
    backward   x_k := x_k + G (x_{k+1} - F x_k)

The state is ``(q, q', q'')`` in natural time, one step is w.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.graph import Graph, Node, Routine, compile_routines, minimum, total

Array = NDArray[np.float64]


def rts_sweeps(values: Array, w: float, start: Array, forward: Array, backward: Array) -> Array:
    """Return smoothed states (3, N, n) of measured positions (N, n) from a state (3, n) before the first.

    Kalman gains (m, 3) and smoother gains (m, 3, 3) are those of the first m samples; the last ones hold for the rest.
    """
    count, channels = values.shape
    states = np.empty((channels, count, 3))
    head = np.array([float(channels), float(count), float(len(forward) - 1), w])
    given = [np.ascontiguousarray(array) for array in (values.T, start.T, forward, backward)]
    _sweeps()(*(array.ctypes.data for array in (head, *given, states)))
    return states.transpose(2, 1, 0)


@lru_cache(maxsize=1)
def _sweeps() -> Any:
    graph = Graph()
    sweeps = Routine(graph, "sweeps", ("head", "values", "start", "forward", "backward", "states"))
    channels, count, last, w = sweeps.load_all("head", 0, 4)

    def ahead(x: list[Node]) -> list[Node]:
        return [x[0] + w * x[1] + 0.5 * w * w * x[2], x[1] + w * x[2], x[2]]

    with sweeps.repeat(channels) as c:
        x = sweeps.local("x", 3)
        sweeps.store_all(x, 0, sweeps.load_all("start", 3.0 * c, 3))
        with sweeps.repeat(count) as k:
            here, m = c * count + k, minimum(k, last)
            with sweeps.when(k > 0.0):
                sweeps.store_all(x, 0, ahead(sweeps.load_all(x, 0, 3)))
            known, gain = sweeps.load_all(x, 0, 3), sweeps.load_all("forward", 3.0 * m, 3)
            innovation = sweeps.load("values", here) - known[0]
            filtered = [known[i] + gain[i] * innovation for i in range(3)]
            sweeps.store_all(x, 0, filtered)
            sweeps.store_all("states", 3.0 * here, filtered)
        with sweeps.repeat(count - 1.0) as back:
            k = count - 2.0 - back
            here, m = c * count + k, minimum(k, last)
            filtered, G = sweeps.load_all("states", 3.0 * here, 3), sweeps.load_all("backward", 9.0 * m, 9)
            later = zip(sweeps.load_all("states", 3.0 * here + 3.0, 3), ahead(filtered), strict=True)
            change = [smoothed - predicted for smoothed, predicted in later]
            smoothed = [total([filtered[i], *(G[3 * i + j] * change[j] for j in range(3))]) for i in range(3)]
            sweeps.store_all("states", 3.0 * here, smoothed)
    machine = compile_routines([sweeps], "smoother")
    call = machine.function("sweeps", [ctypes.c_void_p] * 6)
    call.machine = machine  # the code lives as long as its machine
    return call
