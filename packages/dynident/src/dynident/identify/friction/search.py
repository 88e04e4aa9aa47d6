"""Searching the shape parameters: many starts per joint on thinned data, then one exact search over all joints together.

Rows of a tree's joint hold only that joint's shape parameters, so good starting points are found joint by joint; the final
search is one, since the bodies are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident.friction.law import FrictionLaw
from dynident.identify.friction.problem import Problem, Projection
from dynident.parallel import one_blas_thread

Progress = Callable[[str, int, int], object]  # what is done, how much of it, of how much

#: Rows on which starting points are compared, and how many of the best of them are followed.
THIN = 4000
FOLLOWED = 3
REWEIGHTINGS = 5
SLOWEST = 0.01  # share of the moving samples
SMALL = 0.01  # of the efforts: residuals with which weights begin


@dataclass(frozen=True, eq=False)
class Found:
    """Where the search ended."""

    eta: Array  # (S,) shape parameters
    projection: Projection  # the problem there
    sigma: Array  # (groups,) standard deviation of each joint's rows
    at_bound: NDArray[np.bool_]  # (S,) shape parameters at the end of their interval: the data do not show them
    passes: int  # over all samples


class Scale:
    """Search variables u: the logarithm of shape parameters whose interval is positive, the parameter itself otherwise."""

    def __init__(self, bounds: Array) -> None:
        self.logarithmic = bounds[:, 0] > 0.0
        self.bounds = np.where(self.logarithmic[:, None], np.log(np.where(bounds > 0.0, bounds, 1.0)), bounds)

    def eta(self, u: Array) -> Array:
        """Shape parameters at u."""
        return np.where(self.logarithmic, np.exp(np.where(self.logarithmic, u, 0.0)), u)

    def u(self, eta: Array) -> Array:
        """Search variables at eta."""
        return np.where(self.logarithmic, np.log(np.where(self.logarithmic, np.abs(eta), 1.0)), eta)

    def slope(self, u: Array) -> Array:
        """Derivative of eta with respect to u."""
        return np.where(self.logarithmic, self.eta(u), 1.0)


class Evaluator:
    """Residual and Jacobian at the last u, so that one pass serves both; `sigma` may be changed between searches."""

    def __init__(self, problem: Problem, scale: Scale, sigma: Array, free: Sequence[int] | None = None) -> None:
        self.problem, self.scale, self.sigma = problem, scale, sigma
        self.free = list(range(problem.shapes)) if free is None else list(free)
        self.passes = 0
        self._at: Array | None = None
        self._groups: Any = None

    def projection(self, u: Array) -> Projection:
        """The problem at u."""
        eta = self.scale.eta(u)
        if self._at is None or not np.array_equal(self._at, u):
            self._groups = self.problem.reduce(eta)
            self._at = u.copy()
            self.passes += 1
        with one_blas_thread():
            return self.problem.project(eta, self._groups, self.sigma)

    def search(self, u: Array, tolerance: float, passes: int) -> Array:
        """Search with bounds from u by trust regions: coordinates turn with u, but every step uses those of one u only."""
        low, high = self.scale.bounds[self.free].T
        margin = 1e-9 * (high - low)

        def slopes(w: Array) -> Array:
            at = _placed(u, self.free, w)
            return np.asarray((self.projection(at).jacobian * self.scale.slope(at))[:, self.free])

        found = scipy.optimize.least_squares(
            lambda w: self.projection(_placed(u, self.free, w)).residual,
            np.clip(u[self.free], low + margin, high - margin),
            slopes,
            bounds=(low, high),
            ftol=tolerance,
            xtol=1e-7,
            gtol=1e-12,
            max_nfev=passes,
            x_scale=1.0,
        )
        return _placed(u, self.free, found.x)

    def settle(self, u: Array) -> None:
        """Weigh the rows by their residuals at u: a belief is in deviations, so that ones would be no weights."""
        if self.problem.belief is None:
            self.sigma = row_sigma(self.problem, self.projection(u))
            return
        self.projection(u)
        self.sigma = SMALL * np.array([np.sqrt(g.effort_square / max(g.count, 1)) for g in self._groups])
        self.sigma = np.maximum(self.sigma, SMALL * float(self.sigma.max(initial=0.0)) or 1.0)
        for _ in range(REWEIGHTINGS):
            self.sigma = row_sigma(self.problem, self.projection(u))


def row_sigma(problem: Problem, projection: Projection) -> Array:
    """Standard deviation of each joint's rows, charged with its share of the parameters."""
    counts = np.array(problem.counts, dtype=np.float64) * problem.independence
    used = (projection.used + projection.jacobian.shape[1]) * counts / counts.sum()
    variance = projection.squares / np.maximum(counts - used, 1.0)
    # A residual of exactly zero must not become an infinite weight.
    floor = 1e-26 * max(float(variance.max()), 1e-26)
    return np.asarray(np.sqrt(np.maximum(variance, floor)))


def starting_points(
    problem: Problem,
    bounds: Array,
    starts: int,
    seed: int,
    held: Mapping[int, float] | None = None,
    progress: Progress | None = None,
) -> Array:
    """Good shape parameters on thinned rows, those of one joint after the other, the others in the middle or already found."""
    generator = np.random.default_rng(seed)
    thin, known = problem.thinned(THIN), dict(held or {})
    scale = Scale(bounds)
    u = scale.u(_placed(scale.eta(scale.bounds.mean(axis=1)), list(known), np.array(list(known.values()))))
    for done, family in enumerate(problem.families):
        if progress is not None:
            progress("searching shapes", done, len(problem.families))
        own = [s for s in family if s not in known]
        # The rows of a tree's joint hold only its own shapes; projected rows hold those of all motors.
        seen = [g for g, pairs in enumerate(problem.bends) if {s for _, s in pairs} & set(own)]
        if not own or not seen:
            continue
        low, high = scale.bounds[own].T
        inner = Evaluator(thin.only(seen), scale, np.ones(len(seen)), own)
        if problem.belief is not None:
            inner.settle(u)
        # One parameter: an even grid. More: as many random points per parameter, in a Latin hypercube.
        size, count = len(own), starts * len(own)
        cells = np.stack([generator.permutation(count) for _ in range(size)], axis=1) if size > 1 else np.arange(count)[:, None]
        trials = [_placed(u, own, w) for w in low + (high - low) * (cells + 0.5) / count]
        costs = [float(np.sum(inner.projection(w).residual ** 2)) for w in trials]
        ends = [inner.search(trials[i], 1e-8, 60) for i in np.argsort(costs)[:FOLLOWED]]
        left = [float(np.sum(inner.projection(w).residual ** 2)) for w in ends]
        u = ends[int(np.argmin(left))]
    return scale.eta(u)


def _placed(u: Array, own: Sequence[int], values: Array) -> Array:
    """Return u with other values of some of its entries."""
    result = u.copy()
    result[list(own)] = values
    return result


def search(
    problem: Problem,
    bounds: Array,
    start: Array | None,
    starts: int,
    seed: int,
    passes: int,
    held: Mapping[int, float] | None = None,
    progress: Progress | None = None,
) -> Found:
    """Find the shape parameters of all joints, but for those held at a known value."""
    total = sum(problem.counts) * problem.independence
    believed = 0 if problem.belief is None else problem.belief[0].shape[1]
    unknown = len({int(c) for own in problem.columns for c in own if c >= believed}) + len(bounds) - len(held or {})
    if total <= unknown:
        raise IdentificationError(
            f"{total:.0f} independent equations cannot determine {unknown} parameters; record a longer log or choose simpler "
            "laws"
        )
    if start is None:
        eta = starting_points(problem, bounds, starts, seed, held, progress)
    else:
        eta = np.asarray(start, dtype=np.float64)
    free = [s for s in range(problem.shapes) if s not in (held or {})]
    inside = eta.shape == (len(bounds),) and not ((eta < bounds[:, 0]) | (eta > bounds[:, 1]))[free].any()
    if not inside:
        raise IdentificationError(f"start is {eta.tolist()}; give {len(bounds)} shape parameters within {bounds.tolist()}")
    scale = Scale(bounds)
    u = scale.u(eta)
    evaluator = Evaluator(problem, scale, np.ones(len(problem.names)), free)
    evaluator.settle(u)
    for _ in range(REWEIGHTINGS):
        if free and evaluator.passes < passes:
            u = evaluator.search(u, 1e-9, passes - evaluator.passes)
        previous, evaluator.sigma = evaluator.sigma, row_sigma(problem, evaluator.projection(u))
        if np.max(np.abs(evaluator.sigma / previous - 1.0)) < 1e-3:
            break
    if progress is not None:
        progress("searching shapes", len(problem.families), len(problem.families))
    low, high = scale.bounds.T
    near = 1e-4 * (high - low)
    at_bound = ((u < low + near) | (u > high - near)) & np.isin(np.arange(u.size), free)
    return Found(scale.eta(u), evaluator.projection(u), evaluator.sigma, at_bound, evaluator.passes)


def shape_bounds(laws: Sequence[FrictionLaw], velocities: Sequence[Array], names: Sequence[str]) -> Array:
    """Intervals in which to search, from the largest speed of each joint and the slowest hundredth of its moving samples.

    A hump below that (a Stribeck speed; its interval ends at the speed it is asked for) is decided by a few samples at
    reversals: it would fit them, with any height.
    """
    parts = [np.zeros((0, 2))]
    for law, v, name in zip(laws, velocities, names, strict=True):
        if not law.shape:
            continue
        speed = float(np.max(np.abs(v), initial=0.0))
        if speed == 0.0:
            raise IdentificationError(
                f"joint '{name}' never moves, so the shape of its friction cannot be seen; leave its law out"
            )
        slow = float(np.quantile(np.abs(v[v != 0.0]), SLOWEST))
        (low, high), (_, resolved) = law.shape_range(speed).T, law.shape_range(slow).T
        parts.append(np.stack([np.where((low > 0.0) & (resolved < high), np.maximum(low, resolved), low), high], axis=1))
    return np.concatenate(parts)
