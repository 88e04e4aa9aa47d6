"""Compiled steps of the continuous-discrete extended Kalman filter of one axis [Rodriguez2002, eqs. 30-38].

    a = s [tau - Qa cos q + Qb sin q - off - f(v)] / m        f: sigmoid law with Bv, Bf_i and w_i = exp(log w_i)
    x' = [v, a, 0]        P' = F P + P F^T + Q        F = [[0, 1, 0], [da/dq, da/dv, da/dp], [0, 0, 0]]

s = m / m(q) of every sample is 1 for a constant inertia. State x = [q, v, p[free]] with the parameters
p = [m, Qa, Qb, off, Bv, Bf_1 .. Bf_n, log w_1 .. log w_n]. Only the first two rows of its transition differ from the unit
matrix, so one step costs a few hundred operations.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from dynident.arrays import Array
from dynident.friction import Sigmoid
from dynident.friction.law import Point
from dynident.graph import (
    Graph,
    absolute,
    cos,
    derivative,
    equal,
    exp,
    floor,
    maximum,
    minimum,
    opposite,
    reverse,
    sin,
    sqrt,
    where,
)
from dynident.graph.expression import Node, total
from dynident.graph.print_llvm import compile_routines
from dynident.graph.routine import Routine

Matrix = list[list[Node]]

#: Product of the stiffness |da/dv| and the step of integration, and the largest number of such steps per sample.
STIFF = 0.3
MOST = 64
#: Size of a diverged state.
HUGE = 1e300


class Steps:
    """The filter for a number of sigmoids and a choice of free parameters (in increasing order), as machine code."""

    def __init__(self, terms: int, free: tuple[int, ...]) -> None:
        self.law, self.free, self.size = Sigmoid(terms), free, 2 + len(free)
        self.graph = Graph()
        sample = self._sample()
        code = compile_routines([sample, self._run(sample)], "Kalman filter")
        self._one, self._all = code["sample"], code["run"]

    def bound(self, filter_: tuple[Array, ...], now: Array, score: Array) -> Callable[[], None]:
        """Return a call that processes the sample ``now`` [tau, dt, q, v, s] with the filter (x, P, p, Q, limit, noise).

        It writes the scaled innovation to ``score``. The memory addresses of all arrays are determined once.
        """
        one, arrays = self._one, (*filter_, now, score)
        places = [ctypes.c_void_p(array.ctypes.data) for array in arrays]

        def sample(_arrays: object = arrays) -> None:  # keeps the arrays alive as long as the call
            one(*places)

        return sample

    def run(
        self,
        signals: tuple[Array, ...],
        filter_: tuple[Array, ...],
        every: int,
        history: Array,
        spread: Array,
        scores: Array,
    ) -> bool:
        """Process all samples (t, tau, q, v, s) with the filter (x, P, p, Q, limit, noise); return whether it stayed finite."""
        head = np.array([float(scores.size), float(every), 1.0])
        self._all(*(array.ctypes.data for array in (head, *signals, *filter_, history, spread, scores)))
        return bool(head[2])

    def acceleration(self, q: Node, v: Node, tau: Node, s: Node, p: list[Node]) -> Node:
        """Return a(q, v, tau, s, p)."""
        rest = [*p[4 : 5 + self.law.terms], *(exp(w) for w in p[5 + self.law.terms :])]
        friction = self.law.expression(self.graph, Point(v, q, tau, 0.0), dict(zip(self.law.parameters, rest, strict=True)))
        force: Node = tau - p[1] * cos(q) + p[2] * sin(q) - p[3] - friction
        return s * force / p[0]

    def _load(self, routine: Routine) -> tuple[list[Node], Matrix]:
        """Return the state and the covariance; only its upper half is read."""
        n = self.size
        x, P = routine.load_all("x", 0, n), [[self.graph.zero] * n for _ in range(n)]
        for i in range(n):
            for j in range(i, n):
                P[i][j] = P[j][i] = routine.load("P", n * i + j)
        return x, P

    def _store(self, routine: Routine, x: list[Node], P: Matrix) -> None:
        routine.store_all("x", 0, x)
        routine.store_all("P", 0, [entry for row in P for entry in row])

    def _predict(self, routine: Routine, tau: Node, s: Node, dt: Node) -> None:
        """Advance state and covariance by dt at constant effort."""
        p = routine.load_all("p", 0, 5 + 2 * self.law.terms)
        v = routine.load("x", 1)
        stiff = absolute(derivative(self.acceleration(routine.load("x", 0), v, tau, s, p), v)) * dt / STIFF
        steps = where(stiff < MOST - 1.0, floor(stiff) + 1.0, float(MOST))
        h = dt / steps
        noise = [0.5 * h * routine.load("Q", i) for i in range(self.size)]
        with routine.repeat(where(dt > 0.0, steps, 0.0)):
            x, P = self._load(routine)
            middle = x[0] + 0.5 * h * x[1], x[1] + 0.5 * h * self.acceleration(x[0], x[1], tau, s, p)
            a = self.acceleration(*middle, tau, s, p)
            aq, av, *ap = reverse([a], [1.0], [*middle, *(p[i] for i in self.free)])
            # Rows of q and v of the transition to second order, from the derivatives at the middle of the step.
            half = 0.5 * h * h
            gain = h + half * av
            top = [1.0 + half * aq, gain, *(half * g for g in ap)]
            low = [gain * aq, 1.0 + h * av + half * (aq + av * av), *(gain * g for g in ap)]
            # Half of the noise is added before the transition and half after it, which is of second order.
            for i, q in enumerate(noise):
                P[i][i] = P[i][i] + q
            upper, lower = ([_dot(row, column) for column in P] for row in (top, low))
            P[0], P[1] = [_dot(top, upper), _dot(low, upper), *upper[2:]], [_dot(low, upper), _dot(low, lower), *lower[2:]]
            for i in range(2, self.size):
                P[i][:2] = [upper[i], lower[i]]
            for i, q in enumerate(noise):
                P[i][i] = P[i][i] + q
            self._store(routine, [x[0] + h * middle[1], x[1] + h * a, *x[2:]], P)

    def _correct(self, routine: Routine, i: int, y: Node, R: Node) -> Node:
        """Process a measurement of state i: P := A P A^T + K R K^T, A = 1 - K H (Joseph); return the scaled innovation."""
        n = self.size
        x, P = self._load(routine)
        S, e = P[i][i] + R, y - x[i]
        K = [P[j][i] / S for j in range(n)]
        rest = 1.0 - K[i]
        after = [[self.graph.zero] * n for _ in range(n)]
        for j in range(n):
            AP = [rest * entry if j == i else entry - K[j] * above for entry, above in zip(P[j], P[i], strict=True)]
            for k in range(j, n):
                after[j][k] = after[k][j] = (rest * AP[i] if k == i else AP[k] - AP[i] * K[k]) + K[j] * R * K[k]
        self._store(routine, [value + gain * e for value, gain in zip(x, K, strict=True)], after)
        scaled: Node = e / sqrt(S)
        return scaled

    def _sample(self) -> Routine:
        """Return sample(...): predict over dt, correct with the position and, if its noise is given, the velocity."""
        one = Routine(self.graph, "sample", ("x", "P", "p", "Q", "limit", "noise", "now", "score"))
        tau, dt, q, v, s = one.load_all("now", 0, 5)
        Rq, Rv = one.load_all("noise", 0, 2)
        slowest, fastest, lightest = one.load_all("limit", 0, 3)
        self._predict(one, tau, s, dt)
        one.store("score", 0, self._correct(one, 0, q, Rq))
        with one.when(Rv > 0.0):
            self._correct(one, 1, v, Rv)
        for k, i in enumerate(self.free):
            value = one.load("x", 2 + k)
            if i >= 5 + self.law.terms:  # transitions stay within the speeds of the data
                value = minimum(maximum(value, slowest), fastest)
            elif i == 0:
                value = maximum(value, lightest)
            one.store("x", 2 + k, value)
            one.store("p", i, value)
        return one

    def _run(self, sample: Routine) -> Routine:
        """Return run(...): all samples of a record; effort and s between two samples are their means."""
        signals, inner = ("t", "tau", "q", "v", "s"), ("x", "P", "p", "Q", "limit", "noise")
        run = Routine(self.graph, "run", ("head", *signals, *inner, "history", "spread", "scores"))
        now, n = run.local("now", 5), self.size
        count, every = run.load_all("head", 0, 2)
        with run.repeat(count) as k:
            before = maximum(k - 1.0, 0.0)
            held, s = (0.5 * (run.load(name, k) + run.load(name, before)) for name in ("tau", "s"))
            dt = run.load("t", k) - run.load("t", before)
            run.store_all(now, 0, [held, dt, run.load("q", k), run.load("v", k), s])
            run.call(sample, **{name: name for name in inner}, now=now, score=("scores", k))
            x = run.load_all("x", 0, n)
            diverged = opposite(total([absolute(value) for value in x]) < HUGE)  # also for NaN
            with run.when(diverged):
                run.store("head", 2, 0.0)
            run.leave(diverged)
            row = floor(k / every)
            with run.when(equal(k, row * every)):
                run.store_all("history", n * row, x)
                run.store_all("spread", n * row, [sqrt(maximum(run.load("P", (n + 1) * j), 0.0)) for j in range(n)])
        return run


steps_of = lru_cache(maxsize=16)(Steps)


def _dot(x: list[Node], y: list[Node]) -> Node:
    return total([a * b for a, b in zip(x, y, strict=True)])
