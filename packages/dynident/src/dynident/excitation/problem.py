"""The design problem: choose trajectory parameters x with the least cost inside all limits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynident.arrays import Array
from dynident.errors import DynidentError, require
from dynident.excitation.limits import State, all_excess, all_names, least_margins
from dynident.excitation.limits_file import MotionLimits
from dynident.excitation.objective import Objective
from dynident.trajectory.family import Family

FINE = 48  # samples of the limits per period of the highest harmonic
DENSE = 4  # samples of the final check per sample of the optimisation
CENTRED = 5  # starts that are tried around the middle of the ranges
POSTURES = 200  # tried before giving up
OUTSIDE = 1e6  # excess of a motion that the robot cannot follow at all


@dataclass(frozen=True, eq=False)
class Problem:
    """Cost, limits and the grid on which both are taken."""

    objective: Objective  # Cost with gradient
    limits: MotionLimits  # Limits and the margin to keep from them
    home: Array | None = None  # Position from which postures are tried first; the middle of the ranges when omitted

    def __post_init__(self) -> None:
        require(self.objective, Objective, "objective")
        require(self.limits, MotionLimits, "limits")
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
        """Phi and its derivatives up to the third where the optimiser sees the limits, (samples, size) each."""
        t = np.linspace(0.0, self.family.duration, self._count + 1)
        return tuple(self.family.basis(t, k) for k in range(4))

    @cached_property
    def _count(self) -> int:
        """Steps of the grid on which the optimiser sees the limits: samples reach 99.8 % of the highest harmonic's peaks."""
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
        """Return how far each limit (k,) is exceeded at its worst sample; OUTSIDE for all when the robot cannot follow."""
        try:
            return np.asarray(all_excess(self.limits.all, self.state(x, dense)).max(axis=0))
        except DynidentError:
            return np.full(len(self.names), OUTSIDE)

    def feasible(self, x: Array, dense: bool = False) -> bool:
        """Return whether all limits are kept with the margin."""
        return self._over(x, dense) <= 0.0

    def margins(self, x: Array) -> dict[str, float]:
        """Return the smallest margin of every limit on the dense grid: the share of it that is left, by name."""
        return least_margins(self.names, self.excess(x, True))

    def still(self, posture: Array) -> Array:
        """Return the parameters (n * size,) of standing still at a position (n,)."""
        return np.outer(posture, self.family.constant()).ravel()

    def shrink(self, x: Array, towards: Array | None = None) -> Array | None:
        """Return the motion scaled down towards another (rest at its mean place) until it keeps all limits; None if never."""
        rest = self.still(self.state(x).q.mean(axis=0)) if towards is None else towards
        worst = self._over(x, True)
        if worst <= 0.0:
            return x
        low, high, found = 0.0, 1.0, None
        below, above = self._over(rest, True), worst
        for k in range(8):
            if below > 0.0 or not np.isfinite(above):  # rest itself is outside, or the motion cannot be followed
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
                above *= 0.7  # Illinois: do not let the other end stand still
            else:
                high, above = middle, value
                below *= 0.7
        return found

    def _over(self, x: Array, dense: bool) -> float:
        """Return how far the margin is used up at the worst limit; not above zero when the motion is accepted."""
        return float(self.excess(x, dense).max()) + self.limits.margin - 1e-9


def check_frequencies(family: Family, bandwidth: float, rate: float) -> None:
    """Refuse motions faster than the drives or than the sampling can follow."""
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
    """Return the size of every parameter that makes its joint use about a tenth of its limits, (n * size,)."""
    t = problem.objective.t
    peaks = [np.abs(problem.family.basis(t, k)).max(axis=0) for k in range(4)]
    limits = problem.limits
    reach = [0.5 * (limits.upper - limits.lower), limits.velocity, limits.acceleration, limits.jerk]
    with np.errstate(divide="ignore"):
        sizes = np.min([np.where(p > 1e-12, r[:, None] / p, np.inf) for p, r in zip(peaks, reach, strict=True)], axis=0)
    return np.asarray(0.3 * sizes).ravel()


def posture(problem: Problem, generator: np.random.Generator, centred: bool = True) -> Array:
    """Return a position at which standing still keeps all limits: a random one, or first the middle of the ranges."""
    limits = problem.limits
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


def feasible_start(problem: Problem, generator: np.random.Generator) -> Array:
    """Return the parameters (n * size,) of a random motion inside all limits."""
    require(problem, Problem, "problem")
    require(generator, np.random.Generator, "generator")
    size = typical(problem)
    for k in range(POSTURES):
        rest = problem.still(posture(problem, generator, k < CENTRED))
        move = generator.normal(size=size.size) * size
        if not problem.feasible(rest + 0.01 * move):  # friction may exceed at once what rest leaves
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
        f"no feasible motion: limit '{worst}' leaves no room to move around any position tried; relax it, "
        "or hold the joint (lock, --lock)"
    )


def check_start(problem: Problem, x: Array) -> None:
    """Refuse a start outside the limits."""
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
