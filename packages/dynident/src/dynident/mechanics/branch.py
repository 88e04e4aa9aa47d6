"""Following the branch of a robot with loops: closed tree positions along a motion of the independent coordinates.

    Newton    d := d - J_d^-1 Phi(q_i, d)        d: dependent coordinates, J_d = dPhi/dd

Between two samples the independent coordinates are walked in halves as often as Newton would have to reach far, so that the
branch cannot change unnoticed. The determinant of J_d keeps its sign on a branch: where it changes, the motion has passed
through a singularity, and which branch it took there is chance. Only stations along the way are followed one after the
other; the samples between them start from a curve through the stations and are solved side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynident.graph.compiled import Compiled
from dynident.graph.elementary import absolute, maximum, minimum
from dynident.graph.elementary import both as both_hold
from dynident.graph.expression import Graph, Node
from dynident.graph.function import Function
from dynident.graph.print_routine import compile_routines
from dynident.graph.routine import Routine
from dynident.mechanics.equations import Equations
from dynident.mechanics.functions import cached
from dynident.mechanics.solving import eliminate
from dynident.mechanism.mechanism import Mechanism

Array = NDArray[np.float64]

REACH = 0.5  # largest change of a dependent coordinate [rad or m] that one Newton solve may bridge
CLOSE = 1e-7  # size of a Newton step after which the next one would be of order 1e-14
APART = 48  # samples between two stations, at most
WAY = 0.05  # [rad or m] way of the independent coordinates between two stations, at most


def stations(q: Array) -> NDArray[np.bool_]:
    """Return which samples of a motion (N, n) are followed one after the other: ends, and enough between."""
    chosen = np.zeros(len(q), dtype=np.bool_)
    chosen[::APART] = True
    chosen[-4:] = chosen[:4] = True
    steps = np.abs(np.diff(np.ascontiguousarray(q.T))).max(axis=0, initial=0.0)
    changed = 1 + np.flatnonzero(np.diff(np.floor(np.cumsum(steps) / WAY), prepend=0.0))
    chosen[changed] = True
    chosen[np.maximum(changed - 1, 0)] = True
    return chosen


def curve(chosen: NDArray[np.int64], known: Array) -> Array:
    """Return all samples (N, n) of cubics between those known at ascending numbers, from 0 on; slopes of parabolas."""
    steps = np.diff(chosen)
    h = steps[:, None].astype(np.float64)
    chords = np.diff(known, axis=0) / h
    slopes = np.concatenate([chords[:1], (h[1:] * chords[:-1] + h[:-1] * chords[1:]) / (h[1:] + h[:-1]), chords[-1:]])
    piece = np.append(np.repeat(np.arange(steps.size), steps), steps.size - 1)
    s = (np.arange(chosen[-1] + 1) - chosen[piece])[:, None]
    bend = (3.0 * chords - 2.0 * slopes[:-1] - slopes[1:]) / h
    twist = (slopes[:-1] + slopes[1:] - 2.0 * chords) / h**2
    return np.asarray(known[piece] + s * (slopes[piece] + s * (bend[piece] + s * twist[piece])))


def branch_routine(mechanism: Mechanism, label: str = "") -> Routine:
    """Return follow(head, given, start, work, out) of a robot with loops, to be printed with other code.

    head[0] is the number of samples and head[1] must be -1; it becomes the first sample that cannot be reached.
    """
    names = mechanism.coordinate_names
    key = ("branch", names, label) if label else ("branch", names)
    return cached(mechanism, key, lambda: Branch(mechanism, names, label)).follow


class Branch:
    """Closed positions of one robot with loops, some coordinates of whose tree are given; `label` ends its functions' names."""

    def __init__(self, mechanism: Mechanism, given: Sequence[str], label: str = "") -> None:
        closure = mechanism.closure
        index = {name: i for i, name in enumerate(mechanism.tree.coordinates)}
        self.width = len(index)
        self.free = np.array([index[name] for name in given], dtype=np.int64)
        self.bound = np.setdiff1d(np.arange(self.width), self.free)
        x = Equations(mechanism)
        cuts = x.loops(closure.selected)
        block = [[row[int(i)] for i in self.bound] for row in cuts.derivatives]
        steps, size, side = eliminate(block, [[-phi] for phi in cuts.residuals])
        ratio = side * size
        size = x.graph.zero
        for step in steps:
            size = maximum(size, absolute(step[0]))
        following = list(x.x)
        for i, step in zip(self.bound, steps, strict=True):
            following[int(i)] = following[int(i)] + step[0]
        newton = Function(f"newton{label}", {"q": self.width}, {"next": following, "report": [ratio, size]})
        self._newton = Compiled(newton)
        self.follow = self._follow(x.graph, newton, label)
        self._walk = compile_routines([self.follow], "loop closure")[self.follow.name]
        rest = x.loops(closure.arrays).residuals
        largest = x.graph.zero
        for phi in rest:
            largest = maximum(largest, absolute(phi))
        self._gap = Compiled(Function("gap", {"q": self.width}, {"gap": [largest]}))

    def gaps(self, q: Array) -> Array:
        """Return the largest residual of all closure equations at closed positions (N, n_tree)."""
        out = np.empty((q.shape[0], 1))
        self._gap(q.shape[0], {"q": np.ascontiguousarray(q), "gap": out})
        return out[:, 0]

    def close(self, x: Array, start: Array) -> tuple[Array, int]:
        """Return closed tree positions (N, n_tree) and the first sample that cannot be reached, or -1."""
        chosen = np.flatnonzero(stations(x))
        if chosen.size * 2 > len(x):
            return self._followed(x, start)
        known, bad = self._followed(x[chosen], start)
        if bad < 0:
            out = self._between(x, chosen, known)
            if out is not None:
                return out, -1
        return self._followed(x, start)

    def side_by_side(self, guess: Array) -> tuple[Array, Array]:
        """Return closed positions near guesses (N, n_tree), each on its own, and signed pivot ratios, 0 where none is near."""
        now, moved, side = np.array(guess), np.zeros(len(guess)), np.zeros(len(guess))
        open_ = np.arange(len(guess))
        for _ in range(20):
            if not open_.size:
                break
            following, report = np.empty((open_.size, self.width)), np.empty((open_.size, 2))
            self._newton(open_.size, {"q": np.ascontiguousarray(now[open_]), "next": following, "report": report})
            moved[open_] += report[:, 1]
            near = (moved[open_] < REACH) & (np.abs(report[:, 0]) > 0.0)  # false for NaN too
            now[open_[near]] = following[near]
            done = near & (report[:, 1] < CLOSE)
            side[open_[done]] = report[done, 0]
            open_ = open_[near & ~done]
        return now, side

    def _followed(self, x: Array, start: Array) -> tuple[Array, int]:
        """Follow the motion sample after sample."""
        out = np.empty((x.shape[0], self.width))
        head = np.array([float(x.shape[0]), -1.0])
        origin, work = np.array(start, dtype=np.float64), np.zeros(3 * self.width + 8)
        x = np.ascontiguousarray(x)
        self._walk(*(array.ctypes.data for array in (head, x, origin, work, out)))
        return out, int(head[1])

    def _between(self, x: Array, chosen: NDArray[np.int64], known: Array) -> Array | None:
        """Close all samples side by side from a curve through the stations; None where the branch could have been left."""
        guess = curve(chosen, known)
        guess[:, self.free] = x
        now, following, report = guess, np.empty_like(guess), np.empty((len(x), 2))
        side = np.empty((1, 2))
        self._newton(1, {"q": known[:1], "next": np.empty_like(known[:1]), "report": side})
        for _ in range(6):
            self._newton(len(x), {"q": now, "next": following, "report": report})
            if not np.max(report[:, 1]) < REACH:
                return None
            now, following = following, now if now is not guess else np.empty_like(guess)
            if np.max(report[:, 1]) < CLOSE:
                break
        else:
            return None
        same = report[:, 0] * side[0, 0] > 0.0
        near = np.max(np.abs(now - guess)) < 0.2 * REACH
        return now if near and same.all() else None

    def _follow(self, graph: Graph, newton: Function, label: str) -> Routine:
        """Return follow(head, given, start, work, out): head[0] samples; head[1] becomes the first that fails."""
        n, r = self.width, self.free.size
        close = self._close_one(graph, newton, label)
        walk = Routine(graph, f"follow{label}", ["head", "given", "start", "work", "out"])
        trial, last = 0, n  # places in `work`
        SIDE, DONE, SHARE, SMOOTH, GOOD = (2 * n + k for k in range(5))
        start = walk.load_all("start", 0, n)
        walk.store_all("work", trial, start)
        walk.store_all("work", last, start)
        walk.call(close, q=("work", trial), result=("work", GOOD))
        walk.store("work", SIDE, walk.load("work", GOOD))
        with walk.repeat(walk.load("head", 0)) as s:
            walk.store("work", DONE, 0.0)
            walk.store("work", SHARE, 1.0)
            walk.store("work", SMOOTH, s >= 4.0)  # four samples behind us predict the next one to fourth order
            with walk.until(100_000):
                done = walk.load("work", DONE)
                walk.leave(done >= 1.0)
                share = walk.load("work", SHARE)
                target = minimum(done + share, 1.0)
                self._predict(walk, s, trial, last, SMOOTH)
                for k, i in enumerate(self.free):
                    goal = walk.load("given", s * float(r) + float(k))
                    with walk.when(s > 0.0):
                        origin = walk.load("out", (s - 1.0) * float(n) + float(i))
                        walk.store("work", trial + int(i), origin + target * (goal - origin))
                    with walk.otherwise():
                        origin = walk.load("start", int(i))
                        walk.store("work", trial + int(i), origin + target * (goal - origin))
                    with walk.when(target >= 1.0):
                        walk.store("work", trial + int(i), goal)
                walk.call(close, q=("work", trial), result=("work", GOOD))
                good, side = walk.load("work", GOOD), walk.load("work", SIDE)
                with walk.when(both_hold(absolute(good) > 0.0, good * side >= 0.0)):
                    walk.store("work", SIDE, good)
                    walk.store_all("work", last, walk.load_all("work", trial, n))
                    walk.store("work", DONE, target)
                    walk.store("work", SHARE, 2.0 * share)
                with walk.otherwise():
                    walk.store("work", SMOOTH, 0.0)
                    walk.store("work", SHARE, 0.5 * share)
                walk.leave(walk.load("work", SHARE) < 1e-4)
            failed = walk.load("work", DONE) < 1.0
            with walk.when(failed):
                walk.store("head", 1, s)
            walk.leave(failed)
            walk.store_all("out", s * float(n), walk.load_all("work", last, n))
        return walk

    @staticmethod
    def _predict(walk: Routine, s: Node, trial: int, last: int, smooth: int) -> None:
        """Put a guess of the next configuration into `trial`: a cubic through four samples, or the last one."""
        n = last - trial
        with walk.when(walk.load("work", smooth)):
            for i in range(n):
                x = [walk.load("out", (s - float(k)) * float(n) + float(i)) for k in (1, 2, 3, 4)]
                value = 4.0 * (x[0] + x[2]) - 6.0 * x[1] - x[3]
                walk.store("work", trial + i, value)
                # A far prediction is none: it could lead to another branch.
                far = absolute(value - walk.load("work", last + i)) >= 0.2 * REACH
                with walk.when(far):
                    walk.store("work", smooth, 0.0)
        with walk.when(walk.load("work", smooth) <= 0.0):
            walk.store_all("work", trial, walk.load_all("work", last, n))

    def _close_one(self, graph: Graph, newton: Function, label: str) -> Routine:
        """Return close(q, result): Newton from q; result is the signed pivot ratio, 0 when it did not close within reach."""
        n = self.width
        close = Routine(graph, f"close{label}", ["q", "result"])
        following, report, moved = close.local("following", n), close.local("report", 2), close.local("moved", 1)
        close.store("result", 0, 0.0)
        close.store(moved, 0, 0.0)
        with close.until(20):
            close.call(newton, q="q", next=following, report=report)
            size, ratio = close.load(report, 1), close.load(report, 0)
            way = close.load(moved, 0) + size
            close.store(moved, 0, way)
            close.leave(graph.one - both_hold(way < REACH, absolute(ratio) > 0.0))
            for i in self.bound:
                close.store("q", int(i), close.load(following, int(i)))
            with close.when(size < CLOSE):
                close.store("result", 0, ratio)
            close.leave(size < CLOSE)
        return close
