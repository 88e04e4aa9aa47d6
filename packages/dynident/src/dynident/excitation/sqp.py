"""Sequential quadratic programming for motions inside limits that hold at every instant (a semi-infinite program).

Every step solves a quadratic program: the cost to second order (damped BFGS, kept from step to step), the limits to first
order at the peaks that the motion has at this moment. Peaks are found anew at every step, so none is forgotten. A merit
function, cost + mu * (sum over limits of how far the worst sample is beyond), decides how far to go along the step.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError
from dynident.excitation.limits_file import MotionLimits
from dynident.excitation.objective import Objective
from dynident.excitation.peaks import Pick, at, peaks, slopes
from dynident.excitation.problem import Problem

Array = NDArray[np.float64]

SLACK = 0.0003  # of every limit, kept between the optimiser's grid and the dense one
ENOUGH = 0.05  # share of the predicted improvement that a step must reach
LEAST = 1e-3  # smallest trust region, relative to the parameters' typical size
LARGEST = 3.0  # largest trust region
CORRECTIONS, TRIALS = 2, 6  # attempts at a step with new peaks, and in all
MEMORY = 8  # steps for which peaks are remembered


def quadratic_program(B: Array, g: Array, A: Array, b: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Minimise d^T B d / 2 + g^T d with A d <= b and low <= d <= high (Mehrotra's predictor-corrector method)."""
    from scipy.linalg.lapack import dpotrf, dpotrs  # noqa: PLC0415 - scipy is heavy

    n, m = g.size, b.size
    d = 0.5 * (low + high)
    span = high - low
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
        L, fault = dpotrf(K, lower=1)
        if fault:
            break
        centre = -s * y
        for corrected in (False, True):  # Newton's step to the solution; then again, centred and to second order
            dd = dpotrs(L, -dual - columns(w * primal + centre / s), lower=1)[0]
            ds = -primal - rows(dd)
            dy = (centre - y * ds) / s
            here, there = _reach(s, ds), _reach(y, dy)
            if not corrected:
                after = float((s + here * ds) @ (y + there * dy)) / s.size
                centre = (after / gap) ** 3 * gap - s * y - ds * dy
        d, s, y = d + 0.995 * here * dd, s + 0.995 * here * ds, y + 0.995 * there * dy
    return np.clip(d, low, high), y[:m]


def _reach(x: Array, dx: Array) -> float:
    """Return how far x + t dx stays above zero, at most 1."""
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
    """What a search may spend: time until `deadline` of the monotonic clock [s], and `steps`, of which `spent` are taken."""

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
    """One descent; it remembers second derivatives, so that it can go on with a sharper cost."""

    def __init__(self, limits: MotionLimits, size: Array, x: Array, trust: float = 1.0) -> None:
        self.margin, self.size = limits.margin + SLACK, size
        self.z, self.trust = x / size, trust
        self.B: Array | None = None
        self.mu = 1.0
        self.picks: dict[Pick, int] = {}
        self.age = 0

    @property
    def x(self) -> Array:
        """Where the descent stands."""
        return np.asarray(self.z * self.size)

    def _beyond(self, problem: Problem, z: Array) -> Array:
        """Return how far each limit's margin is overrun, (k,)."""
        return np.asarray(np.maximum(problem.excess(z * self.size) + self.margin, 0.0))

    def run(self, problem: Problem, objective: Objective, iterations: int, budget: Budget, tolerance: float = 1e-5) -> int:
        """Descend until nothing is gained, iterations or budget are over."""
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
                if attempt < CORRECTIONS:  # a step that runs into a peak it did not see is planned again, with that peak
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
                hope = 3.0 * min(float(g @ d), 0.0) + cost  # a cost below this is not to be expected: do not even look
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
        """Add the peaks of a motion to those that are watched; forget those not seen for a while."""
        try:
            found = peaks(problem, z * self.size)
        except DynidentError:
            return
        self.picks = {pick: age for pick, age in self.picks.items() if age > self.age - MEMORY}
        self.picks |= dict.fromkeys(found, self.age)

    def _limits(self, problem: Problem) -> tuple[Array, Array]:
        """Return what is left of the limits at the watched peaks (negative inside) and its slopes."""
        picks = sorted(self.picks)
        c = at(problem, self.x, picks) + self.margin
        return c, slopes(problem, self.x, picks) * self.size

    def _step(self, B: Array, g: Array, A: Array, c: Array) -> tuple[Array, Array]:
        """Return the step of the quadratic program and the multipliers; where limits are broken, as much as can be mended."""
        n = g.size
        low, high = np.full(n, -self.trust), np.full(n, self.trust)
        broken = c > 0.0
        if not broken.any():
            return quadratic_program(B, g, A, -c, low, high)
        # One more unknown t from 0 to 1: the share of what is broken that is left so, at a high price.
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
