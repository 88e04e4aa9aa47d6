"""Following the branch of a robot with loops: closed tree positions along a motion of the independent coordinates.

    Newton    d := d - J_d^-1 Phi(q_i, d)        d: dependent coordinates, J_d = dPhi/dd

Between two samples the step of the independent coordinates is halved until Newton steps are short, so that the
branch cannot change unnoticed. The determinant of J_d keeps its sign on a branch: where it changes, the motion has passed
through a singularity, after which the branch is arbitrary. Only stations along the path are followed one after the
other; the samples between them start from a curve through the stations and are solved in one batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.graph.algebra import absolute, both, dot, eliminate, maximum, minimum, opposite, where
from dynident.graph.compiled import Compiled
from dynident.graph.expression import Function, Graph, Node, total
from dynident.graph.print_llvm import compile_routines
from dynident.graph.routine import Routine
from dynident.mechanics.actuation import TINY, least_squares
from dynident.mechanics.functions import cached
from dynident.mechanics.newton_euler import MovingTree
from dynident.mechanism.loops import REACH
from dynident.mechanism.mechanism import Mechanism

CLOSE = 1e-7  # size of a Newton step after which the next one would be of order 1e-14
STEPS = 20  # iterations of a solution within reach
FAR_STEP, FAR_STEPS = 0.1, 200  # from far away: largest step [rad or m], as short ones keep the branch; number of steps
APART = 48  # samples between two stations, at most
WAY = 0.05  # [rad or m] largest path of the independent coordinates between two stations


def stations(q: Array) -> NDArray[np.bool_]:
    """Return the samples of a motion (N, n) followed one after the other (stations), including both ends."""
    chosen = np.zeros(len(q), dtype=np.bool_)
    chosen[::APART] = True
    chosen[-4:] = chosen[:4] = True
    steps = np.abs(np.diff(np.ascontiguousarray(q.T))).max(axis=0, initial=0.0)
    changed = 1 + np.flatnonzero(np.diff(np.floor(np.cumsum(steps) / WAY), prepend=0.0))
    chosen[changed] = True
    chosen[np.maximum(changed - 1, 0)] = True
    return chosen


def curve(chosen: NDArray[np.int64], known: Array) -> Array:
    """Return all samples (N, n) of cubics through known samples at ascending indices from 0; slopes from parabolas."""
    steps = np.diff(chosen)
    h = steps[:, None].astype(np.float64)
    chords = np.diff(known, axis=0) / h
    slopes = np.concatenate([chords[:1], (h[1:] * chords[:-1] + h[:-1] * chords[1:]) / (h[1:] + h[:-1]), chords[-1:]])
    piece = np.append(np.repeat(np.arange(steps.size), steps), steps.size - 1)
    s = (np.arange(chosen[-1] + 1) - chosen[piece])[:, None]
    bend = (3.0 * chords - 2.0 * slopes[:-1] - slopes[1:]) / h
    twist = (slopes[:-1] + slopes[1:] - 2.0 * chords) / h**2
    return np.asarray(known[piece] + s * (slopes[piece] + s * (bend[piece] + s * twist[piece])))


def newton_step(x: MovingTree, bound: Sequence[int], name: str) -> Function:
    """Return the Newton step that closes the loops by moving some tree coordinates.

    From all positions ``q`` it makes the ``next`` ones and a ``report``: the ratio of the smallest to the largest pivot with
    the sign of the determinant, and the size of the step.
    """
    cuts = x.loops(x.mechanism.closure.selected)
    block = [[row[i] for i in bound] for row in cuts.derivatives]
    steps, ratio, side = eliminate(block, [[-phi] for phi in cuts.residuals])
    following, size = list(x.x), x.graph.zero
    for i, (step,) in zip(bound, steps, strict=True):
        following[i], size = following[i] + step, maximum(size, absolute(step))
    return Function(name, {"q": len(x.x)}, {"next": following, "report": [side * ratio, size]})


def motor_step(x: MovingTree, rows: Array, zero: Array, name: str) -> Function:
    """Return the Newton step to closed positions whose motors, rows q_t + zero, are at ``rho``; otherwise as `newton_step`.

    If over-actuated, the step is to the nearest motor positions. The ratio is only a sign, 0 at a singularity.
    """
    graph, A, closed = x.graph, [x.times_G(row) for row in rows], x.tree_q
    if x.mechanism.loops:
        closed = [q + gap for q, gap in zip(x.x, x.correction, strict=True)]
    left = []
    for rho, row, z in zip(graph.symbols("rho", len(A)), rows.tolist(), zero.tolist(), strict=True):
        left.append(rho - total([graph.const(z), *(q * c for q, c in zip(closed, row, strict=True) if c)]))
    if len(A) == x.mechanism.dof:
        solved, ok, side = eliminate(A, [[gap] for gap in left])
        step, side = [entry for (entry,) in solved], where(ok > TINY, side, 0.0)
    else:
        step, ok = least_squares(A, left)
        side = where(ok > 0.0, 1.0, graph.zero)
    if x.mechanism.loops:
        side = where(x.pivot > 0.0, side * x.branch, 0.0)
        following = [q + dot(row, step) for q, row in zip(closed, x.G or [], strict=True)]
    else:
        following = [q + d for q, d in zip(x.x, step, strict=True)]
    size = graph.zero
    for after, before in zip(following, x.x, strict=True):
        size = maximum(size, absolute(after - before))
    return Function(name, {"q": len(x.x), "rho": len(A)}, {"next": following, "report": [side, size]})


def closing_routine(newton: Function, name: str, far: bool = False) -> Routine:
    """Return close(q, ..., result), which repeats a step such as `newton_step` until the loops are closed.

    Further inputs are passed to the step. The result is the step's signed ratio, or 0 if the loops did not close within
    reach; `far` removes this limit of distance.
    """
    graph, more = Graph(), {given: given for given in newton.inputs if given != "q"}
    close = Routine(graph, name, ["q", *more, "result"])
    n = newton.inputs["q"]
    following, report, moved = close.local("following", n), close.local("report", 2), close.local("moved", 1)
    close.store("result", 0, 0.0)
    close.store(moved, 0, 0.0)
    with close.until(FAR_STEPS if far else STEPS):
        close.call(newton, q="q", next=following, report=report, **more)
        ratio, size = close.load_all(report, 0, 2)
        way, then = close.load(moved, 0) + size, close.load_all(following, 0, n)
        close.store(moved, 0, way)
        close.leave(opposite(both(way < (math.inf if far else REACH), absolute(ratio) > 0.0)))  # false for NaN
        if far:
            share = FAR_STEP / maximum(size, FAR_STEP)
            then = [x + share * (y - x) for x, y in zip(close.load_all("q", 0, n), then, strict=True)]
        close.store_all("q", 0, then)
        with close.when(size < CLOSE):
            close.store("result", 0, ratio)
        close.leave(size < CLOSE)
    return close


def branch_routine(mechanism: Mechanism, label: str = "") -> Routine:
    """Return follow(head, given, start, work, out) of a robot with loops, to be printed with other code.

    head[0] is the number of samples and head[1] must be -1; it becomes the first sample that cannot be reached.
    """
    names = mechanism.coordinate_names
    key = ("branch", names, label) if label else ("branch", names)
    return cached(mechanism, key, lambda: Branch(mechanism, names, label), frames=False).follow


class Branch:
    """Closed positions of one robot with loops, from some given tree coordinates; function names end with `label`."""

    def __init__(self, mechanism: Mechanism, given: Sequence[str], label: str = "") -> None:
        index = {name: i for i, name in enumerate(mechanism.tree.coordinates)}
        self.width = len(index)
        self.free = np.array([index[name] for name in given], dtype=np.int64)
        bound = [i for i in range(self.width) if i not in self.free]
        x = MovingTree(mechanism)
        newton = newton_step(x, bound, f"newton{label}")
        self._newton = Compiled(newton)
        self.follow = self._follow(closing_routine(newton, f"close{label}"), label)
        self.walk = compile_routines([self.follow], "loop closure")[self.follow.name]
        largest = x.graph.zero
        for phi in x.loops(mechanism.closure.arrays).residuals:
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
        """Return closed positions near guesses (N, n_tree), independently, and signed pivot ratios, 0 where none is near.

        Same as `closing_routine` for many samples at once. As long as every sample is within reach, all take each step.
        """
        now, after, report, moved = np.array(guess), np.empty(guess.shape), np.empty((len(guess), 2)), np.zeros(len(guess))
        for _ in range(STEPS):
            self._step(now, after, report)
            ratio, size = report[:, 0], report[:, 1]
            moved += size
            if not (np.max(moved, initial=0.0) < REACH and np.min(np.abs(ratio), initial=1.0) > 0.0):  # also for NaN
                break
            now, after = after, now
            if np.max(size, initial=0.0) < CLOSE:
                return now, ratio
        return self._one_by_one(np.array(guess))

    def _one_by_one(self, now: Array) -> tuple[Array, Array]:
        """Return the result of `side_by_side` if some samples are out of reach: the others continue without them."""
        moved, side, left = np.zeros(len(now)), np.zeros(len(now)), np.arange(len(now))
        for _ in range(STEPS):
            if not left.size:
                break
            after, report = np.empty((left.size, self.width)), np.empty((left.size, 2))
            self._step(now[left], after, report)
            ratio, size = report[:, 0], report[:, 1]
            moved[left] += size
            near = (moved[left] < REACH) & (np.abs(ratio) > 0.0)  # false for NaN too
            now[left[near]] = after[near]
            done = near & (size < CLOSE)
            side[left[done]] = ratio[done]
            left = left[near & ~done]
        return now, side

    def _step(self, q: Array, following: Array, report: Array) -> None:
        """Write the positions after a Newton step (N, n_tree), and signed pivot ratios and sizes of the steps (N, 2)."""
        self._newton(len(q), {"q": q, "next": following, "report": report})

    def _followed(self, x: Array, start: Array) -> tuple[Array, int]:
        """Follow the motion sample after sample."""
        out = np.empty((x.shape[0], self.width))
        head = np.array([float(x.shape[0]), -1.0])
        origin, work = np.array(start, dtype=np.float64), np.zeros(3 * self.width + 8)
        x = np.ascontiguousarray(x)
        self.walk(*(array.ctypes.data for array in (head, x, origin, work, out)))
        return out, int(head[1])

    def _between(self, x: Array, chosen: NDArray[np.int64], known: Array) -> Array | None:
        """Close all samples in one batch from a curve through the stations; None if the branch may have changed."""
        guess = curve(chosen, known)
        guess[:, self.free] = x
        now, side = self.side_by_side(guess)
        report = np.empty((1, 2))
        self._step(known[:1], np.empty((1, self.width)), report)
        same = side * report[0, 0] > 0.0
        near = np.max(np.abs(now - guess)) < 0.2 * REACH
        return now if near and same.all() else None

    def _follow(self, close: Routine, label: str) -> Routine:
        """Return follow(head, given, start, work, out): head[0] samples; head[1] becomes the first that fails."""
        n, r = self.width, self.free.size
        walk = Routine(close.graph, f"follow{label}", ["head", "given", "start", "work", "out"])
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
            walk.store("work", SMOOTH, s >= 4.0)  # the last four samples predict the next one to fourth order
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
                with walk.when(both(absolute(good) > 0.0, good * side >= 0.0)):
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
                # A far prediction is rejected: it could lead to another branch.
                far = absolute(value - walk.load("work", last + i)) >= 0.2 * REACH
                with walk.when(far):
                    walk.store("work", smooth, 0.0)
        with walk.when(walk.load("work", smooth) <= 0.0):
            walk.store_all("work", trial, walk.load_all("work", last, n))
