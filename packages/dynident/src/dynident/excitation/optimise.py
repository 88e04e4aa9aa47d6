"""The design problem, least cost inside all limits, and its optimiser: quadratic programs from many feasible starts.

The limits hold at every instant (a semi-infinite program). Every step solves a quadratic program: the cost to second order
(damped BFGS, kept from step to step), the limits to first order at the peaks of the current motion. Peaks are
found again at every step, so none is missed. A merit function, cost + mu * (sum over limits of the worst excess), determines
the step length.

Starts are explored with a smoothed cost, the better ones refined with a sharper one. The result is checked on a dense grid and
scaled down if necessary.
"""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array, lapack
from dynident.checks import number, numbers, whole
from dynident.errors import DynidentError
from dynident.excitation.limits import Box, Limit, State, all_excess, all_names, least_margins
from dynident.excitation.limits_file import MotionLimits
from dynident.excitation.objective import Objective
from dynident.parallel import WINDOW, completed, cores, one_blas_thread
from dynident.trajectory.curves import Family

FINE = 48  # samples of the limits per period of the highest harmonic
DENSE = 4  # samples of the final check per sample of the optimisation
CENTRED = 5  # number of starts around the middle of the ranges
POSTURES = 200  # largest number of trials
OUTSIDE = 1e6  # excess assigned to an infeasible motion (singular or out of reach)
HELD = 1e-9  # relative size of a parameter that must not change


@dataclass(frozen=True, eq=False)
class Problem:
    """Cost, limits and their grid of times."""

    objective: Objective  # Cost with gradient
    limits: MotionLimits  # Limits and the margin to keep from them
    home: Array | None = None  # Position from which postures are tried first; the middle of the ranges when omitted
    offsets: Array | None = None  # Positions about which all motions move; free when omitted

    def __post_init__(self) -> None:
        n = self.objective.equations.dof
        if len(self.limits.coordinates) != n:
            raise DynidentError(f"there are limits of {len(self.limits.coordinates)} coordinates but the robot has {n}")
        check_frequencies(self.family, self.limits.bandwidth, 1.0 / float(np.min(np.diff(self.objective.t))))

    @property
    def family(self) -> Family:
        """Trajectories to choose from."""
        return self.objective.family

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return self.objective.equations.dof

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all limits' columns."""
        return all_names(self.limits.all)

    @cached_property
    def grid(self) -> tuple[Array, ...]:
        """Phi and its derivatives up to the third on the optimiser's grid of the limits, (samples, size) each."""
        t = np.linspace(0.0, self.family.duration, self._count + 1)
        return tuple(self.family.basis(t, k) for k in range(4))

    @cached_property
    def _count(self) -> int:
        """Steps of the optimiser's grid of the limits: samples reach 99.8 % of the highest harmonic's peaks."""
        return max(self.objective.t.size, int(np.ceil(FINE * self.family.highest * self.family.duration)))

    @cached_property
    def _dense(self) -> tuple[Array, ...]:
        t = np.linspace(0.0, self.family.duration, DENSE * self._count + 1)
        return tuple(self.family.basis(t, k) for k in range(4))

    def state(self, x: Array, dense: bool = False) -> State:
        """Return the motion of parameters (n * size,), on the optimiser's grid or on the dense one of the final check."""
        c = x.reshape(self.dof, -1).T
        return State(*(phi @ c for phi in (self._dense if dense else self.grid)))

    def excess(self, x: Array, dense: bool = False) -> Array:
        """Return the largest excess over each limit (k,); OUTSIDE for all when the robot cannot follow."""
        try:
            return np.asarray(all_excess(self.limits.all, self.state(x, dense)).max(axis=0))
        except DynidentError:
            return np.full(len(self.names), OUTSIDE)

    def feasible(self, x: Array, dense: bool = False) -> bool:
        """Return whether all limits are kept with the margin."""
        return self._over(x, dense) <= 0.0

    def margins(self, x: Array) -> dict[str, float]:
        """Return the smallest margin of every limit on the dense grid, as a share of the limit, by name."""
        return least_margins(self.names, self.excess(x, True))

    def still(self, posture: Array) -> Array:
        """Return the parameters (n * size,) of rest at a position (n,)."""
        return np.outer(posture, self.family.constant()).ravel()

    def shrink(self, x: Array, towards: Array | None = None) -> Array | None:
        """Return the motion scaled down towards another (rest at its mean place) until it keeps all limits; None if never."""
        centre = self.state(x).q.mean(axis=0) if self.offsets is None else self.offsets
        rest = self.still(centre) if towards is None else towards
        worst = self._over(x, True)
        if worst <= 0.0:
            return x
        low, high, found = 0.0, 1.0, None
        below, above = self._over(rest, True), worst
        for k in range(8):
            if below > 0.0 or not np.isfinite(above):  # rest itself violates a limit, or the motion is infeasible
                middle = 0.5 * (low + high)
            else:  # regula falsi: limits are nearly straight lines over the scale
                middle = low + (high - low) * np.clip(-below / (above - below), 0.05, 0.95)
                middle -= 0.002 * (middle - low)
            candidate = rest + middle * (x - rest)
            value = self._over(candidate, True)
            if value <= 0.0:
                low, found, below = middle, candidate, value
                if k and value > -0.005:
                    break
                above *= 0.7  # Illinois: avoids a stationary end of the interval
            else:
                high, above = middle, value
                below *= 0.7
        return found

    def _over(self, x: Array, dense: bool) -> float:
        """Return the excess over the margin at the worst limit; at most zero when the motion is accepted."""
        return float(self.excess(x, dense).max()) + self.limits.margin - 1e-9


def check_frequencies(family: Family, bandwidth: float, rate: float) -> None:
    """Raise an error for motions too fast for the drives or the sampling."""
    if family.highest > bandwidth * (1.0 + 1e-9):
        raise DynidentError(
            f"the motion holds frequencies up to {family.highest:.4g} Hz but the drives follow {bandwidth:.4g} Hz only; use "
            "fewer harmonics or a lower fundamental"
        )
    if family.highest >= 0.5 * rate:
        raise DynidentError(
            f"the motion holds frequencies up to {family.highest:.4g} Hz but {rate:.4g} samples per second show less than "
            f"{0.5 * rate:.4g} Hz (Nyquist); raise the rate or use fewer harmonics"
        )


def typical(problem: Problem) -> Array:
    """Return the size of every parameter for which its joint uses about a tenth of its limits, (n * size,)."""
    t = problem.objective.t
    peaks = [np.abs(problem.family.basis(t, k)).max(axis=0) for k in range(4)]
    limits = problem.limits
    reach = [0.5 * (limits.upper - limits.lower), limits.velocity, limits.acceleration, limits.jerk]
    with np.errstate(divide="ignore"):
        sizes = np.min([np.where(p > 1e-12, r[:, None] / p, np.inf) for p, r in zip(peaks, reach, strict=True)], axis=0)
    held = 0.0 if problem.offsets is None else problem.family.constant()
    return np.asarray(0.3 * sizes * np.where(held, HELD, 1.0)).ravel()


def posture(problem: Problem, generator: np.random.Generator, centred: bool = True) -> Array:
    """Return a position at which rest keeps all limits: a random one, or first the middle of the ranges."""
    limits = problem.limits
    if problem.offsets is not None:
        return problem.offsets
    middle = 0.5 * (limits.lower + limits.upper) if problem.home is None else problem.home
    least = np.full(len(problem.names), np.inf)
    broken = np.zeros(len(problem.names))
    for k in range(POSTURES):
        share = 0.0 if centred and k == 0 and problem.home is None else generator.uniform(0.0, 1.0)
        q = middle + share * (generator.uniform(limits.lower, limits.upper) - middle)
        if centred and k == 1:
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


def feasible_start(problem: Problem, generator: np.random.Generator, around: Array | None = None, spread: float = 1.0) -> Array:
    """Return the parameters (n * size,) of a random motion inside all limits, near the position `around` (n,) if given.

    `spread` scales the random distance of its middle from there.
    """
    size = typical(problem) * np.tile(np.where(problem.family.constant() != 0.0, spread, 1.0), problem.dof)
    for k in range(POSTURES):
        rest = problem.still(posture(problem, generator, k < CENTRED) if around is None else around)
        move = generator.normal(size=size.size) * size
        if not problem.feasible(rest + 0.01 * move):  # friction alone may exceed the margin at rest
            continue
        low, high = 0.0, 1.0
        for _ in range(8):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if problem.feasible(rest + middle * move) else (low, middle)
        if low > 0.01:
            return np.asarray(rest + 0.95 * low * move)
    excess = problem.excess(rest + 0.01 * move)
    worst = problem.names[int(np.argmax(excess))]
    raise DynidentError(
        f"no feasible motion: limit '{worst}' permits no motion around any position tried; relax it, "
        "or hold the joint (lock, --lock)"
    )


def check_start(problem: Problem, x: Array) -> None:
    """Raise an error for a start outside the limits."""
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


Index = NDArray[np.int64]
Pick = tuple[int, int, int]
"""Limit, its column, sample."""

NEAR = 1.0  # peaks with a smaller margin are passed to the optimiser
MOST = 6  # peaks of one limit
STEP = 1e-6  # of differences of limits by the state


def peaks(problem: Problem, x: Array) -> set[Pick]:
    """Return the active or nearly active limit samples: local maxima of each column."""
    state = problem.state(x)
    found: set[Pick] = set()
    for i, limit in enumerate(problem.limits.all):
        e = limit.excess(state)
        padded = np.vstack([np.full(e.shape[1], -np.inf), e, np.full(e.shape[1], -np.inf)])
        top = (e >= padded[:-2]) & (e > padded[2:]) & (e > -NEAR)
        columns, samples = np.nonzero(top.T)
        order = np.lexsort((-e[samples, columns], columns))  # column by column, the highest peaks first
        columns, samples = columns[order], samples[order]
        rank = np.arange(columns.size) - np.searchsorted(columns, columns)
        kept = rank < MOST
        found |= {(i, k, s) for k, s in zip(columns[kept].tolist(), samples[kept].tolist(), strict=True)}
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
    """Return limits with the indices of their picks, and the columns and samples of these."""
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
    else:  # samples are independent: all of them are perturbed in one call
        places, where = np.unique(samples, return_inverse=True)
        chosen = State(*(np.tile(y[places], (2 * n, 1)) for y in state))
        moved = chosen[order].reshape(2 * n, places.size, n)
        for k, (j, h) in enumerate(steps):
            moved[k, :, j] += h
        found = limit.excess(chosen).reshape(2 * n, places.size, -1)[:, where, columns]
    return np.asarray((found[0::2] - found[1::2]).T.reshape(m, n) / (2.0 * STEP))


SLACK = 0.0003  # of every limit, kept between the optimiser's grid and the dense one
ENOUGH = 0.05  # smallest share of the predicted improvement for an accepted step
LEAST = 1e-3  # smallest trust region, relative to the parameters' typical size
LARGEST = 3.0  # largest trust region
CORRECTIONS, TRIALS = 2, 6  # attempts at a step with new peaks, and in all
MEMORY = 8  # steps for which peaks are remembered


def quadratic_program(B: Array, g: Array, A: Array, b: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Minimise d^T B d / 2 + g^T d with A d <= b and low <= d <= high (Mehrotra's predictor-corrector method)."""
    d = 0.5 * (low + high)
    span = high - low
    open_rows = A @ d + 0.5 * np.abs(A) @ span > b  # the other constraints hold everywhere between low and high
    if not open_rows.all():
        multipliers = np.zeros(b.size)
        d, multipliers[open_rows] = quadratic_program(B, g, A[open_rows], b[open_rows], low, high)
        return d, multipliers
    n, m = g.size, b.size
    right = np.concatenate([b, high, -low])

    def rows(x: Array) -> Array:
        return np.concatenate([A @ x, x, -x])

    def columns(y: Array) -> Array:
        return np.asarray(A.T @ y[:m] + y[m : m + n] - y[m + n :])

    scale = max(1.0, float(np.abs(g).max()))
    s = np.maximum(right - rows(d), 0.1 * float(np.median(span)))
    y = np.full(m + 2 * n, 0.1 * scale)
    for _ in range(40):
        dual = B @ d + g + columns(y)
        primal = rows(d) + s - right
        gap = float(s @ y) / s.size
        if gap < 1e-8 * scale and np.abs(dual).max() < 1e-6 * scale and np.abs(primal).max() < 1e-7:
            break
        w = y / s
        K = B + (A.T * w[:m]) @ A
        K[np.diag_indices(n)] += w[m : m + n] + w[m + n :]
        L, fault = lapack().dpotrf(K, lower=1)
        if fault:
            break
        centre = -s * y
        for corrected in (False, True):  # Newton's step to the solution; then again, centred and to second order
            dd = lapack().dpotrs(L, -dual - columns(w * primal + centre / s), lower=1)[0]
            ds = -primal - rows(dd)
            dy = (centre - y * ds) / s
            here, there = _reach(s, ds), _reach(y, dy)
            if not corrected:
                after = float((s + here * ds) @ (y + there * dy)) / s.size
                centre = (after / gap) ** 3 * gap - s * y - ds * dy
        d, s, y = d + 0.995 * here * dd, s + 0.995 * here * ds, y + 0.995 * there * dy
    return np.clip(d, low, high), y[:m]


def _reach(x: Array, dx: Array) -> float:
    """Return the largest t, at most 1, for which x + t dx stays above zero."""
    return min(1.0, 1.0 / max(1e-300, float(np.max(-dx / x))))


def update(B: Array, s: Array, y: Array) -> Array:
    """Return the BFGS update of B, damped so that it stays positive definite (Powell)."""
    Bs = B @ s
    bend = float(s @ Bs)
    if bend <= 1e-16:
        return B
    along = float(s @ y)
    if along < 0.2 * bend:
        share = 0.8 * bend / (bend - along)
        y = share * y + (1.0 - share) * Bs
        along = float(s @ y)
    out = B - np.outer(Bs, Bs) / bend + np.outer(y, y) / along
    return np.asarray(0.5 * (out + out.T))


@dataclass
class Budget:
    """Budget of a search: time until `deadline` of the monotonic clock [s], and `steps`; `spent` steps are used."""

    deadline: float = np.inf
    steps: float = np.inf
    spent: int = 0

    def spend(self) -> bool:
        """Take one step if time and steps allow it; return whether they did."""
        if self.over:
            return False
        self.spent += 1
        return True

    @property
    def over(self) -> bool:
        """Whether time or steps are used up."""
        return self.spent >= self.steps or monotonic() > self.deadline


class Descent:
    """One descent; second derivatives are kept, so that it can continue with a sharper cost."""

    def __init__(self, limits: MotionLimits, size: Array, x: Array, trust: float = 1.0) -> None:
        self.margin, self.size = limits.margin + SLACK, size
        self.z, self.trust = x / size, trust
        self.B: Array | None = None
        self.mu = 1.0
        self.picks: dict[Pick, int] = {}
        self.age = 0

    @property
    def x(self) -> Array:
        """Current parameters of the descent."""
        return np.asarray(self.z * self.size)

    def _beyond(self, problem: Problem, z: Array) -> Array:
        """Return the excess over the margin of each limit, (k,)."""
        return np.asarray(np.maximum(problem.excess(z * self.size) + self.margin, 0.0))

    def run(self, problem: Problem, objective: Objective, iterations: int, budget: Budget, tolerance: float = 1e-5) -> int:
        """Descend until convergence, or until iterations or budget are used up."""
        found = _evaluate(objective, self.x)
        if found is None:
            return 0
        cost, g = found[0], found[1] * self.size
        beyond = self._beyond(problem, self.z)
        n, small = self.z.size, 0
        for turn in range(iterations):
            if not budget.spend():
                return turn
            self._look(problem, self.z)
            B = np.eye(n) * float(np.linalg.norm(g)) / np.sqrt(n) if self.B is None else self.B
            taken, model, length = None, 0.0, 0.0
            for attempt in range(TRIALS):
                if monotonic() > budget.deadline:
                    return turn
                if attempt < CORRECTIONS:  # a step that meets a new peak is planned again with this peak
                    try:
                        c, A = self._limits(problem)
                    except DynidentError:
                        return turn
                    d, multipliers = self._step(B, g, A, c)
                    self.mu = max(self.mu, 1.5 * float(multipliers.sum()))
                else:
                    d = 0.4 * d
                start = cost + self.mu * float(beyond.sum())
                model = float(g @ d + 0.5 * d @ B @ d) - self.mu * float(beyond.sum()) * (1.0 if attempt < CORRECTIONS else 0.4)
                length = float(np.abs(d).max())
                z = self.z + d
                over = self._beyond(problem, z)
                outside = self.mu * float(over.sum())
                hope = 3.0 * min(float(g @ d), 0.0) + cost  # lower costs are implausible: skip the evaluation
                if hope + outside <= start + ENOUGH * model:
                    found = _evaluate(objective, z * self.size)
                    if found is not None and found[0] + outside <= start + ENOUGH * model:
                        taken = found[0], found[1] * self.size
                        break
                if attempt + 1 < CORRECTIONS:
                    self._look(problem, z)
            if -model < tolerance:
                small += 1
                if small > 1:
                    return turn
            if taken is None:
                self.trust, self.B = 0.2 * min(self.trust, length), None
                if self.trust < LEAST:
                    return turn
                continue
            value, slope = taken
            gain = start - value - outside
            if attempt < CORRECTIONS and gain > 0.5 * -model and length > 0.9 * self.trust:
                self.trust = min(2.0 * self.trust, LARGEST)
            elif attempt >= CORRECTIONS or gain < 0.2 * -model:
                self.trust = max(length, 2.0 * LEAST)
            s, y = z - self.z, slope - g
            if self.B is None and float(s @ y) > 0.0:
                B = np.eye(n) * float(y @ y) / float(s @ y)
            self.B = update(B, s, y)
            small = small if gain < tolerance else 0
            self.z, cost, g, beyond = z, value, slope, over
            self.age += 1
        return iterations

    def _look(self, problem: Problem, z: Array) -> None:
        """Add the peaks of a motion to the watched ones; remove peaks not seen for `MEMORY` iterations."""
        try:
            found = peaks(problem, z * self.size)
        except DynidentError:
            return
        self.picks = {pick: age for pick, age in self.picks.items() if age > self.age - MEMORY}
        self.picks |= dict.fromkeys(found, self.age)

    def _limits(self, problem: Problem) -> tuple[Array, Array]:
        """Return the excess over the limits at the watched peaks (negative inside) and its slopes."""
        picks = sorted(self.picks)
        c = at(problem, self.x, picks) + self.margin
        return c, slopes(problem, self.x, picks) * self.size

    def _step(self, B: Array, g: Array, A: Array, c: Array) -> tuple[Array, Array]:
        """Return the step of the quadratic program and the multipliers; violated limits are reduced as far as possible."""
        n = g.size
        low, high = np.full(n, -self.trust), np.full(n, self.trust)
        broken = c > 0.0
        if not broken.any():
            return quadratic_program(B, g, A, -c, low, high)
        # One more unknown t from 0 to 1: the remaining share of the violations, at a high cost.
        wide = np.zeros((n + 1, n + 1))
        wide[:n, :n], wide[n, n] = B, 1e-6
        rows = np.column_stack([A, np.where(broken, -c, 0.0)])
        price = 10.0 * (self.mu * float(c[broken].sum()) + 1.0)
        d, multipliers = quadratic_program(
            wide, np.append(g, price), rows, -c, np.append(low, -1e-3), np.append(high, 1.0 + 1e-3)
        )
        return d[:n], np.minimum(multipliers, 10.0 * self.mu)


def _evaluate(objective: Objective, x: Array) -> tuple[float, Array] | None:
    try:
        value, gradient = objective(x)
    except DynidentError:  # the robot cannot follow
        return None
    return (value, gradient) if np.isfinite(value) else None


Progress = Callable[[dict[str, Any]], None]
STARTS = 1_000_000  # largest number of starts
SCREENED = 10  # random motions from which a start is chosen
Phase = tuple[float, float, int]
"""Smoothing power of the condition number, width of signs of friction, most steps."""


class Level(NamedTuple):
    """Schedule of runs until a share of the time, or of the steps, is used up."""

    end: float  # share of the time, or of the steps, at which it ends
    share: float  # share of the best runs that continue; with a time limit, at least one run per worker
    phases: tuple[Phase, ...]  # descents one after the other
    kicks: int = 0  # number of disturbances, each followed by a descent with `AGAIN`; improvements are kept


AGAIN: tuple[Phase, ...] = ((4.0, 40.0, 15), (8.0, 10.0, 20), (16.0, 3.0, 30))
LEVELS = (
    Level(0.25, 1.0, ((4.0, 40.0, 40),)),
    Level(0.5, 0.5, ((8.0, 10.0, 40), (16.0, 3.0, 40))),
    Level(0.85, 0.01, (), 8),
    Level(1.0, 1.0, ((64.0, 1.0, 100), (np.inf, 1.0, 60))),
)
"""Kinks of the condition number and of friction cause many local optima; smoothing at first, and kicks, find
better ones."""
KICK = 0.3  # size of a kick, relative to the parameters' typical size
LEAST_TRUST = 0.1  # with which a phase begins, likewise


@dataclass(frozen=True, eq=False)
class Run:
    """State of one descent."""

    start: Array | None  # feasible; drawn at random when None
    seed: int
    x: Array  # best feasible motion
    cost: float = np.inf
    rank: float = np.inf  # smoothed cost of the current parameters, which selects the runs to continue
    descent: Descent | None = None
    spent: int = 0  # steps
    cut: bool = False  # whether it was ended by the time limit


@dataclass(frozen=True, eq=False)
class Optimum:
    """Result of an optimiser."""

    x: Array  # Parameters, feasible on the dense grid
    cost: float  # Cost with the smoothed signs
    start: Array  # Feasible start from which it was found
    starts: int  # Starts that were tried
    seconds: float  # Time taken
    cut: bool = False


Report = Callable[[Run], None]


def smoothed(objective: Objective, power: float, width: float) -> Objective:
    """Return a smoother objective: a smooth bound of the condition number, friction signs smoothed over a wider range."""
    equations = objective.equations
    if equations.eps > 0.0:
        equations = replace(equations, eps=width * equations.eps)
    sharp = min(power, objective.criterion.power)
    return replace(objective, equations=equations, criterion=replace(objective.criterion, power=sharp))


def _descend(problem: Problem, run: Run, phases: tuple[Phase, ...], budget: Budget) -> Run:
    """Return a run after some descents."""
    objective = problem.objective
    edged = any(name == "cond" for name, _ in objective.criterion.weights)
    best, cost, rank, descent = run.x, run.cost, run.rank, run.descent
    assert descent is not None
    for power, width, steps in phases:
        current = smoothed(objective, power if edged else np.inf, width)
        descent.trust = max(descent.trust, LEAST_TRUST)
        descent.run(problem, current, steps, budget)
        for towards in (None, best):  # towards rest or towards the best so far, whichever keeps more of the motion
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


def _climb(problem: Problem, run: Run, level: Level, budget: Budget) -> Run:
    """Return a run after one level."""
    size = typical(problem)
    if run.descent is None:
        run = replace(run, descent=Descent(problem.limits, size, run.x))
    run = _descend(problem, run, level.phases, budget)
    generator = np.random.default_rng(run.seed)
    for _ in range(level.kicks):
        if budget.over:
            break
        assert run.descent is not None
        x = run.descent.x + KICK * size * generator.normal(size=size.size)
        other = _descend(problem, replace(run, descent=Descent(problem.limits, size, x, KICK)), AGAIN, budget)
        kept = other if other.rank < run.rank else run
        run = replace(kept, x=other.x, cost=other.cost)  # the best motion in any case
    return run


def _promising(problem: Problem, generator: np.random.Generator, budget: Budget) -> Array:
    """Return the best of a few random feasible motions."""
    tried = [feasible_start(problem, generator)]
    while len(tried) < SCREENED and not budget.over:
        tried.append(feasible_start(problem, generator))
    return min(tried, key=problem.objective.cost)


def _go_on(problem: Problem, run: Run, level: int, limit: Budget) -> Run:
    """Return a run after one level of `LEVELS`."""
    generator = np.random.default_rng(run.seed)
    budget = replace(limit, steps=limit.steps - run.spent)
    with one_blas_thread():
        if run.start is None:
            first = _promising(problem, generator, budget)
            run = replace(run, start=first, x=first, cost=problem.objective.cost(first))
        run = _climb(problem, run, LEVELS[level], budget)
    return replace(run, spent=run.spent + budget.spent, cut=run.cut or monotonic() > budget.deadline)


def _all(
    problem: Problem, runs: Iterable[Run], level: int, limit: Budget, many: int, report: Report, client: Any = None
) -> list[Run]:
    """Let runs go on in up to `many` processes, or one after the other, and report each; none begins when the time is over.

    Returns the runs in the same order; in the first level without runs that did not begin.
    """
    found: dict[int, Run] = {}
    waiting = enumerate(runs)

    def following() -> Iterator[Run]:
        while not (found and limit.over) and (entry := next(waiting, None)) is not None:
            yield entry[1]

    def take(i: int, run: Run) -> None:
        found[i] = run
        report(run)

    if client is not None:
        items = ((problem, run, level, limit, limit.deadline - monotonic()) for run in following())
        for i, future in completed(client, _remote, items, many):
            take(i, future.result())
    elif many > 1 and "fork" in multiprocessing.get_all_start_methods():
        _SHARED[:] = [problem]
        try:
            with ProcessPoolExecutor(many, mp_context=multiprocessing.get_context("fork")) as pool:
                for i, future in completed(pool, _worker, ((run, level, limit) for run in following()), many):
                    take(i, future.result())
        finally:
            _SHARED.clear()
    else:
        for i, run in enumerate(following()):
            take(i, _go_on(problem, run, level, limit))
    if level:
        found |= {i: replace(run, cut=True) for i, run in waiting}
    elif next(waiting, None) is not None:
        found = {i: replace(run, cut=True) for i, run in found.items()}
    return [found[i] for i in sorted(found)]


_SHARED: list[Problem] = []  # handed to forked workers, which inherit it: a problem may hold functions that cannot be sent


def _worker(run: Run, level: int, limit: Budget) -> Run:
    return _go_on(_SHARED[0], run, level, limit)


def _remote(problem: Problem, run: Run, level: int, limit: Budget, left: float) -> Run:
    """Continue in a process whose clock may differ."""
    return _go_on(problem, run, level, replace(limit, deadline=monotonic() + left))


def optimise(
    problem: Problem,
    starts: int = 8,
    time_budget: float = 30.0,
    seed: int = 0,
    workers: int | None = None,
    start: ArrayLike | None = None,
    progress: Progress | None = None,
    iterations: int | None = None,
    client: Any = None,
) -> Optimum:
    """Find a motion with little cost inside all limits.

    Results are reproducible by seed when `iterations` limits the search, and otherwise unless the search ends by the time
    budget.
    """
    whole("starts", starts, least=1, most=STARTS)
    number("time_budget", time_budget, above=0.0, unit="s")
    if iterations is not None:
        whole("iterations", iterations, least=1)
    given = None if start is None else np.array(numbers(start, "start"))
    if given is not None:
        check_start(problem, given)
    whole("seed", seed, least=0, most=np.inf)
    first = feasible_start(problem, np.random.default_rng(seed))  # raises an error when there is none
    problem.objective(first)  # compiles functions that workers inherit, before the time is measured
    slopes(problem, first, list(peaks(problem, first)))
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
            told = {
                "x": best[0].x,
                "cost": best[0].cost,
                "values": problem.objective.value(best[0].x),
                "margin": -float(excess[worst]),
            }
            progress({"done": done, **told, "limit": problem.names[worst], "seconds": monotonic() - began})

    none = np.zeros(0)
    best += [] if given is None else [Run(given, seed, given, problem.objective.cost(given))]  # never worse than this
    runs: Iterable[Run] = chain(best[:], (Run(None, seed + 1000 * k, none) for k in range(starts - len(best))))
    many = max(1, min(starts, cores() if workers is None else whole("workers", workers, least=1)))
    if client is not None:
        many = max(1, min(starts, WINDOW))
    least = many if iterations is None else 1  # with a step limit, the number of continued runs must not depend on the machine
    tried, cut = 0, False
    for k, level in enumerate(LEVELS):
        if k:  # the better ones, best first
            ranked = sorted(runs, key=lambda r: r.rank)
            runs = ranked[: max(least, math.ceil(level.share * len(ranked)))]
        limit = (
            Budget(began + level.end * time_budget) if iterations is None else Budget(steps=math.ceil(level.end * iterations))
        )
        climbed = _all(problem, runs, k, limit, many, report, client)
        runs, tried, cut = climbed, tried or len(climbed), cut or any(run.cut for run in climbed)
    top = best[0]
    assert top.start is not None
    return Optimum(top.x, top.cost, top.start, tried, monotonic() - began, cut)
