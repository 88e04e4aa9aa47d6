"""The separable problem: shape parameters eta are searched, everything linear is eliminated (variable projection).

    minimise over eta   min over x   sum_g || [W_g, Phi_g(eta)] x - y_g ||^2 / sigma_g^2  (+ ||T x - t||^2, a prior)

x holds the base parameters of the bodies and the linear friction parameters of all joints. One pass over the samples reduces
``[W_g, Phi_g, dPhi_g/deta, y_g]`` to one triangle per row group; residual, Jacobian ([Golub1973]; [Roldan2017, eqs.
2.35-2.36]) and covariance then come from a few hundred rows, with any weights. The triangle keeps all inner products, so the
result is exact.

The search has many starts per joint on thinned data, then one exact search over all joints together. Rows of a tree's joint
hold only that joint's shape parameters, so good starting points are found joint by joint; the final search is one, since the
bodies are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import IdentificationError, SignalWarning, warn
from dynident.friction.law import CHANNELS, Friction, FrictionLaw, Point
from dynident.graph.compiled import Compiled
from dynident.graph.expression import Function, Graph, derivative
from dynident.identify.base import BaseParameters, base_parameters
from dynident.identify.regression.factor import (
    RowGroup,
    Samples,
    Tile,
    Workspace,
    accumulate,
    factors_of,
    moving_rows,
    triangle,
)
from dynident.identify.regression.regression import Regression
from dynident.identify.regression.rows import LAW_SIGNALS, CompiledRows, Rows, Signals, projected
from dynident.mechanics.closure import close_positions, closure_starts
from dynident.mechanics.equations import Equations
from dynident.mechanics.functions import Motion, cached, declared, entering, tree_motion
from dynident.mechanism.mechanism import Mechanism
from dynident.parallel import one_blas_thread
from dynident.signals.filters import Decimator
from dynident.signals.quality import Finding, note

T = TypeVar("T")
Pair = tuple[int, int]
Blocks = Callable[[Array, int, Sequence[int]], list[Array]]
"""``blocks(eta, step, groups)``: [W, Phi, dPhi, y] of row groups of one tile, (k + 1, T); every step-th row only."""

#: Relative length of its orthogonal part below which a column is not excited by the data.
TOLERANCE = 1e-8
FEW = 512  # rows for which reflections are faster than cross products, whose rounding must be checked


@dataclass(frozen=True, eq=False)
class Projection:
    """The problem at one eta with optimal linear parameters."""

    x: Array  # (P,) linear parameters; zero if the data do not determine them
    solved: NDArray[np.int64]  # (r,) parameters solved for
    residual: Array  # (M,) weighted, in reduced coordinates; its length is that of all rows
    jacobian: Array  # (M, S) its exact derivative with respect to eta
    direct: Array  # (M, r + S) weighted derivative of the prediction by the solved x and eta, for the covariance
    squares: Array  # (groups,) unweighted sum of squared residuals of each row group
    used: float  # parameters that the rows of the data determine


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows of one or more row groups, ready to be reduced at any eta."""

    names: tuple[str, ...]  # row groups: joints, or projected equations
    columns: list[NDArray[np.int64]]  # linear parameters in the rows of each group, in their order
    bends: list[list[Pair]]  # (linear, shape) of the derivatives that follow them
    linear: int  # number P of linear parameters
    shapes: int  # number S of shape parameters
    tiles: list[Blocks]
    families: list[list[int]]  # shape parameters of each joint
    counts: tuple[int, ...]  # rows of each group
    independence: float = 1.0  # independent rows per row
    masks: list[Array] | None = None  # (groups, T) per tile: rows to use (1) or to leave out (0)
    step: int = 1  # every step-th row is used
    groups: tuple[int, ...] = ()  # numbers of the row groups in the tiles; all when empty
    belief: tuple[Array, Array] | None = None  # T (k, b), t (k,): T x = t of the first b linear parameters, in deviations

    def _rows(self, eta: Array, i: int) -> list[Array]:
        return self.tiles[i](eta, self.step, self.groups or range(len(self.names)))

    def blocks(self, eta: Array, i: int) -> list[Array]:
        """Return [W, Phi, dPhi, y] of every group of one tile, rows that are left out at zero."""
        found = self._rows(eta, i)
        if self.masks is None:
            return found
        return [block * mask[:: self.step] for block, mask in zip(found, self.masks[i], strict=True)]

    def reduce(self, eta: Array) -> tuple[RowGroup, ...]:
        """Return one triangle of [W, Phi, dPhi, y] per group, by one pass over the samples."""
        sizes = [np.arange(c.size + len(p)) for c, p in zip(self.columns, self.bends, strict=True)]
        if len(self.tiles) == 1 and (blocks := self.blocks(eta, 0))[0].shape[1] <= FEW:
            own = zip(self.names, sizes, blocks, self.counts, strict=True)
            return tuple(RowGroup(name, c, triangle(block.T), count, self.independence) for name, c, block, count in own)

        def tile(i: int, _: Workspace) -> Array:
            return np.ascontiguousarray(np.vstack(self.blocks(eta, i)))

        tiles: list[Tile] = [partial(tile, i) for i in range(len(self.tiles))]
        groups = accumulate(self.names, sizes, tiles, self.independence)
        return tuple(replace(group, count=count) for group, count in zip(groups, self.counts, strict=True))

    def project(self, eta: Array, groups: Sequence[RowGroup], sigma: Array) -> Projection:
        """Eliminate the linear parameters; `groups` is the result of `reduce` for eta, sigma the deviation of each group."""
        heights = [group.R.shape[0] for group in groups]
        tops = np.cumsum([0, *heights])
        A, y = np.zeros((tops[-1], self.linear)), np.zeros(tops[-1])
        bent: list[tuple[int, int, slice, Array]] = []
        for g, group in enumerate(groups):
            rows, R, own = slice(int(tops[g]), int(tops[g + 1])), group.R / sigma[g], self.columns[g]
            A[rows, own] = R[:, : own.size]
            y[rows] = R[:, -1]
            bent += [(k, s, rows, R[:, own.size + j]) for j, (k, s) in enumerate(self.bends[g])]
        if self.belief is not None:
            T, t = self.belief
            A, y = np.concatenate([A, np.zeros((t.size, self.linear))]), np.concatenate([y, t])
            A[tops[-1] :, : T.shape[1]] = T
        length = np.sqrt(np.einsum("ij,ij->j", A, A))
        usable = np.flatnonzero(length > 1e-12 * max(float(length.max()), 1e-300))
        if not usable.size:
            raise IdentificationError("no parameter is excited by these data: nothing moves, or all efforts are unusable")
        scaled = A[:, usable] / length[usable]
        Q, R, order = scipy.linalg.qr(scaled, overwrite_a=True, mode="economic", pivoting=True, check_finite=False)
        diagonal = np.abs(np.diag(R))
        rank = int(np.count_nonzero(diagonal > TOLERANCE * diagonal[0]))
        Q, R, solved = Q[:, :rank], R[:rank, :rank], usable[order[:rank]]
        x = np.zeros(self.linear)
        x[solved] = scipy.linalg.solve_triangular(R, Q.T @ y, check_finite=False) / length[solved]
        residual = y - A @ x
        slopes, turned = np.zeros((y.size, eta.size)), np.zeros((self.linear, eta.size))
        for column, s, rows, d in bent:
            slopes[rows, s] += d * x[column]
            turned[column, s] += d @ residual[rows]
        jacobian = -(slopes - Q @ (Q.T @ slopes))
        if bent:
            jacobian -= Q @ scipy.linalg.solve_triangular(
                R, turned[solved] / length[solved][:, None], trans="T", check_finite=False
            )
        squares = np.array([residual[a:b] @ residual[a:b] for a, b in pairwise(tops)]) * sigma**2
        used = float(np.sum(Q[: tops[-1]] ** 2))
        return Projection(x, solved, residual, jacobian, np.hstack([A[:, solved], slopes]), squares, used)

    def errors(self, eta: Array, x: Array) -> Array:
        """Return y - [W, Phi(eta)] x of all rows, regardless of masks, (groups, rows)."""
        found = []
        for i in range(len(self.tiles)):
            blocks = zip(self._rows(eta, i), self.columns, strict=True)
            found.append(np.stack([block[-1] - x[own] @ block[: own.size] for block, own in blocks]))
        return np.concatenate(found, axis=1)

    def thinned(self, rows: int) -> Problem:
        """Return the same problem on evenly spread rows: good enough to choose starting points."""
        step = max(1, max(self.counts) // rows)
        if step == 1:
            return self
        counts = tuple(max(1, count // step) for count in self.counts)
        return replace(self, step=self.step * step, counts=counts, independence=1.0)

    def only(self, groups: Sequence[int]) -> Problem:
        """Return the problem of some row groups alone, with separate parameters for all of their columns."""
        keep, known = list(groups), self.groups or tuple(range(len(self.names)))
        return replace(
            self,
            names=tuple(self.names[g] for g in keep),
            columns=[self.columns[g] for g in keep],
            bends=[self.bends[g] for g in keep],
            groups=tuple(known[g] for g in keep),
            masks=None if self.masks is None else [mask[keep] for mask in self.masks],
            counts=tuple(self.counts[g] for g in keep),
        )

    def using(self, rows: NDArray[np.bool_]) -> Problem:
        """Return the problem without some rows; rows (all rows,) are in the order of time, the same for all groups."""
        masks, first = [], 0
        widths = [self._rows(np.ones(self.shapes), i)[0].shape[1] for i in range(len(self.tiles))]
        old = self.masks or [np.ones((len(self.names), width)) for width in widths]
        for width, mask in zip(widths, old, strict=True):
            masks.append(mask * rows[first : first + width])
            first += width
        counts = tuple(int(c) for c in np.sum([mask.sum(axis=1) for mask in masks], axis=0))
        return replace(self, masks=masks, counts=counts)


#: Rows on which starting points are compared, and the number of best points to continue from.
THIN = 4000
FOLLOWED = 3
ROUGH = 1e-4  # relative gain of a step below which a starting point is good enough
#: Damping that a search begins with, and the longest step in parts of the interval.
DAMPING, LONGEST = 1e-3, 0.25
REWEIGHTINGS = 5
SETTLED = 1e-3  # relative change of weights that is negligible
SLOWEST = 0.01  # share of the moving samples
SMALL = 0.01  # of the efforts: residuals with which weights begin


@dataclass(frozen=True, eq=False)
class Found:
    """Result of the search."""

    eta: Array  # (S,) shape parameters
    projection: Projection  # the problem there
    sigma: Array  # (groups,) standard deviation of each joint's rows
    at_bound: NDArray[np.bool_]  # (S,) shape parameters at the end of their interval: undetermined by the data
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
        self._last: tuple[Array, Projection] | None = None  # weights and the problem at `_at`

    def projection(self, u: Array) -> Projection:
        """The problem at u."""
        eta = self.scale.eta(u)
        if self._at is None or not np.array_equal(self._at, u):
            self._groups = self.problem.reduce(eta)
            self._at, self._last = u.copy(), None
            self.passes += 1
        if self._last is None or not np.array_equal(self._last[0], self.sigma):
            self._last = self.sigma, self.problem.project(eta, self._groups, self.sigma)
        return self._last[1]

    def search(self, u: Array, tolerance: float, passes: int) -> Array:
        """Search from u by damped Gauss-Newton steps within the bounds, until the predicted gain is below the tolerance."""
        low, high = self.scale.bounds[self.free].T
        margin, reach = 1e-9 * (high - low), LONGEST * (high - low)
        low, high = low + margin, high - margin  # the exponential of a bound may be outside by rounding
        u = _placed(u, self.free, np.clip(u[self.free], low, high))
        found, damping, last = self.projection(u), DAMPING, self.passes + passes - 1
        while self.passes < last:
            w, J = u[self.free], (found.jacobian * self.scale.slope(u))[:, self.free]
            gradient, H = J.T @ found.residual, J.T @ J
            size = np.diagonal(H)
            inner = (size > 0.0) & ~((w <= low) & (gradient > 0.0)) & ~((w >= high) & (gradient < 0.0))
            step = np.zeros(w.size)
            damped = H + damping * np.diag(size)
            step[inner] = -np.linalg.solve(damped[np.ix_(inner, inner)], gradient[inner])
            step = np.clip(w + np.clip(step, -reach, reach), low, high) - w
            cost = float(found.residual @ found.residual)
            if -(2.0 * gradient + H @ step) @ step <= tolerance * cost or np.max(np.abs(step)) < 1e-7:
                break
            trial = self.projection(_placed(u, self.free, w + step))
            if float(trial.residual @ trial.residual) < cost:
                u, found, damping = _placed(u, self.free, w + step), trial, 0.1 * damping
            else:
                damping *= 10.0
        return u

    def settle(self, u: Array) -> None:
        """Weight the rows by their residuals at u: the prior is in deviations, so unit weights would be wrong."""
        if self.problem.belief is None:
            self.sigma = row_sigma(self.problem, self.projection(u))
            return
        self.projection(u)
        self.sigma = SMALL * np.array([np.sqrt(g.effort_square / max(g.count, 1)) for g in self._groups])
        self.sigma = np.maximum(self.sigma, SMALL * float(self.sigma.max(initial=0.0)) or 1.0)
        for _ in range(REWEIGHTINGS):
            previous, self.sigma = self.sigma, row_sigma(self.problem, self.projection(u))
            if np.max(np.abs(self.sigma / previous - 1.0)) < SETTLED:
                break


def row_sigma(problem: Problem, projection: Projection) -> Array:
    """Standard deviation of each joint's rows, charged with its share of the parameters."""
    counts = np.array(problem.counts, dtype=np.float64) * problem.independence
    used = (projection.used + projection.jacobian.shape[1]) * counts / counts.sum()
    variance = projection.squares / np.maximum(counts - used, 1.0)
    # A residual of exactly zero must not give an infinite weight.
    floor = 1e-26 * max(float(variance.max()), 1e-26)
    return np.asarray(np.sqrt(np.maximum(variance, floor)))


def starting_points(problem: Problem, bounds: Array, starts: int, held: Mapping[int, float] | None = None) -> Array:
    """Starting values of shape parameters on thinned rows, joint by joint; the others at mid-interval or already found."""
    generator = np.random.default_rng(0)
    thin, known = problem.thinned(THIN), dict(held or {})
    scale = Scale(bounds)
    u = scale.u(_placed(scale.eta(scale.bounds.mean(axis=1)), list(known), np.array(list(known.values()))))
    for family in problem.families:
        own = [s for s in family if s not in known]
        # The rows of a tree's joint contain only its own shapes; projected rows contain those of all motors.
        seen = [g for g, pairs in enumerate(problem.bends) if {s for _, s in pairs} & set(own)]
        if not own or not seen:
            continue
        low, high = scale.bounds[own].T
        inner = Evaluator(thin.only(seen), scale, np.ones(len(seen)), own)
        if problem.belief is not None:
            inner.settle(u)
        # One parameter: a uniform grid. More: the same number of points per parameter, in a Latin hypercube.
        size, count = len(own), starts * len(own)
        cells = np.stack([generator.permutation(count) for _ in range(size)], axis=1) if size > 1 else np.arange(count)[:, None]
        trials = [_placed(u, own, w) for w in low + (high - low) * (cells + 0.5) / count]
        costs = np.array([np.sum(inner.projection(w).residual ** 2) for w in trials])
        # A grid point next to a lower one converges to the same minimum.
        lowest = [i for i in np.argsort(costs) if size > 1 or costs[i] <= costs[max(i - 1, 0) : i + 2].min()]
        ends = [inner.search(trials[i], ROUGH, 60) for i in lowest[:FOLLOWED]]
        left = [float(np.sum(inner.projection(w).residual ** 2)) for w in ends]
        u = ends[int(np.argmin(left))]
    return scale.eta(u)


def _placed(u: Array, own: Sequence[int], values: Array) -> Array:
    """Return u with other values of some of its entries."""
    result = u.copy()
    result[list(own)] = values
    return result


@one_blas_thread()
def search(
    problem: Problem,
    bounds: Array,
    start: Array | None,
    starts: int,
    passes: int,
    held: Mapping[int, float] | None = None,
    sigma: Array | None = None,
    tolerance: float = 1e-9,
) -> Found:
    """Find the shape parameters of all joints except those held at a known value; `sigma` are initial deviations."""
    total = sum(problem.counts) * problem.independence
    believed = 0 if problem.belief is None else problem.belief[0].shape[1]
    shown = {s for pairs in problem.bends for _, s in pairs}
    free = [s for s in range(problem.shapes) if s in shown and s not in (held or {})]
    unknown = len({int(c) for own in problem.columns for c in own if c >= believed}) + len(free)
    if total <= unknown:
        raise IdentificationError(
            f"{total:.0f} independent equations cannot determine {unknown} parameters; record a longer log or choose simpler "
            "laws"
        )
    scale = Scale(bounds)
    u = scale.u(starting_points(problem, bounds, starts, held) if start is None else start)
    evaluator = Evaluator(problem, scale, np.ones(len(problem.names)) if sigma is None else sigma, free)
    if sigma is None:
        evaluator.settle(u)
    settled = max(SETTLED, np.sqrt(tolerance))
    for _ in range(REWEIGHTINGS):
        if free and evaluator.passes < passes:
            u = evaluator.search(u, tolerance, passes - evaluator.passes)
        sigma = row_sigma(problem, evaluator.projection(u))
        if np.max(np.abs(sigma / evaluator.sigma - 1.0)) < settled:
            break
        evaluator.sigma = sigma
    low, high = scale.bounds.T
    near = 1e-4 * (high - low)
    at_bound = ((u < low + near) | (u > high - near)) & np.isin(np.arange(u.size), free)
    return Found(scale.eta(u), evaluator.projection(u), evaluator.sigma, at_bound, evaluator.passes)


def shape_bounds(laws: Sequence[FrictionLaw], velocities: Sequence[Array], names: Sequence[str]) -> Array:
    """Intervals in which to search, from the largest speed of each joint and the slowest hundredth of its moving samples.

    A hump at lower speeds (of the Stribeck law) would fit the few samples at reversals, with any height.
    """
    parts = [np.zeros((0, 2))]
    for law, v, name in zip(laws, velocities, names, strict=True):
        if not law.shape:
            continue
        speed = float(np.max(np.abs(v), initial=0.0))
        if speed == 0.0:
            raise IdentificationError(f"joint '{name}' never moves, so its friction law cannot be fitted; omit it")
        slow = float(np.quantile(np.abs(v[v != 0.0]), SLOWEST))
        (low, high), (_, resolved) = law.shape_range(speed).T, law.shape_range(slow).T
        parts.append(np.stack([np.where((low > 0.0) & (resolved < high), np.maximum(low, resolved), low), high], axis=1))
    return np.concatenate(parts)


def covariance(problem: Problem, found: Found, known: Collection[int] = ()) -> Array:
    """Covariance of linear and shape parameters together, ``(D^T D)^-1`` with D the weighted derivative; zero where known."""
    size = problem.linear + found.eta.size
    result = np.diag(np.full(size, np.inf))
    given = np.isin(np.arange(found.eta.size), list(known))
    result[problem.linear + np.flatnonzero(given), problem.linear + np.flatnonzero(given)] = 0.0
    shapes, solved = np.flatnonzero(~found.at_bound & ~given), found.projection.solved
    index = np.concatenate([solved, problem.linear + shapes])
    D = found.projection.direct[:, np.concatenate([np.arange(solved.size), solved.size + shapes])]
    length = np.linalg.norm(D, axis=0)
    alive = length > 0.0
    index, D, length = index[alive], D[:, alive], length[alive]
    _, s, V = np.linalg.svd(D / length, full_matrices=False)
    good = s > 1e-10 * s[0]
    spread = (V[good].T / s[good]) / length[:, None]
    block = spread @ spread.T
    hidden = np.sum(V[~good] ** 2, axis=0) > 1e-6
    block[hidden, hidden] = np.inf
    result[np.ix_(index, index)] = block
    return result


ROWS = 1024
#: Fixed columns below this size [bytes] are kept between passes instead of being computed again.
CACHE = 256e6


@dataclass(frozen=True, eq=False)
class Recording:
    """A uniformly sampled motion of a robot with its efforts, as input of `fit_friction`."""

    motion: Motion  #: Motion of N samples
    effort: Array  #: (N, k), efforts of the joints; motor torques of a robot with loops [N m or N]
    #: Low-pass and decimation of the rows; none by default
    decimator: Decimator = field(default_factory=lambda: Decimator(1, 1.0))
    skip: tuple[str, ...] = ()  #: Joints whose efforts are not used
    moving: NDArray[np.bool_] | None = None  #: (N, k), samples in which each joint moves; rows of others are not used
    temperature: Array | None = None  #: (N, k), temperatures [degree Celsius], for laws that depend on them
    #: (N, k), torques of the bodies on the joints, for laws that depend on them; by the model of a fit without laws when
    #: omitted
    load: Array | None = None
    stretches: int | None = None  #: Number of stretches of time whose data are kept apart
    logged: Array | None = None  #: (N, k), efforts before any filter, to detect saturation

    def compressed(self, rows: Rows, base: BaseParameters) -> tuple[Regression, dict[str, list[float]]]:
        """Return the regression data of the recording, and the residuals at rest."""
        signals = rows.signals(self.temperature, self.load, self.motion)
        samples = Samples.of(self.motion, self.effort, signals, self.decimator, self.moving)
        groups, rests = factors_of(rows, base, samples, self.skip, self.stretches)
        return Regression(base, groups, projection=rows.projection), rests


class Shares:
    """Positions and velocities of friction laws, and the coefficients of their torques in every equation."""

    def __init__(self, rows: Rows, coordinates: Sequence[str]) -> None:
        robot, x = rows.mechanism, Equations(rows.mechanism)
        places = [robot.tree.coordinates.index(name) for name in coordinates]
        made = [x.project([x.graph.one if i == d else x.graph.zero for i in range(len(x.tree_q))]) for d in places]
        table = [[column[i] for column in made] for i in range(robot.dof)]
        if robot.loops:
            table = projected(x, rows, table)[0]
        # Equations that contain each law: its own joint's, or with a projection all of them.
        self.seen = [[i for i in range(robot.dof) if not table[i][k].is_const(0.0)] for k in range(len(places))]
        self.first = np.cumsum([2 * len(places), *map(len, self.seen)])
        wanted = [table[i][k] for k, own in enumerate(self.seen) for i in own]
        entries = {"W": [*(x.tree_q[d] for d in places), *(x.tree_v[d] for d in places), *wanted]}
        self._function = Compiled(declared(robot, "shares", entries, frozenset({"W"})))

    def __call__(self, arrays: dict[str, Array], samples: int) -> Array:
        """Return positions, velocities and shares of all laws, (rows, N)."""
        out = np.empty((int(self.first[-1]), samples))
        self._function(samples, {**arrays, "W": out}, threads=False)
        return out


@lru_cache(maxsize=64)
def columns_of(law: FrictionLaw) -> Compiled:
    """Return the code of a law's columns and their derivatives by its shape parameters, for v, q, load and temperature."""
    graph = Graph()
    x, eta = graph.symbols("x", len(CHANNELS)), graph.symbols("eta", len(law.shape))
    linear = {name: graph.symbol(name) for name in law.linear}
    torque = law.expression(graph, Point(*x), {**linear, **dict(zip(law.shape, eta, strict=True))})
    columns = [derivative(torque, node) for node in linear.values()]
    entries = [*columns, *(derivative(column, node) for column in columns for node in eta)]
    return Compiled(Function("friction_law", {"x": len(x)}, {"W": entries}, {"eta": len(eta)}, frozenset({"x", "W"})))


@dataclass(frozen=True, eq=False)
class Assembly:
    """The rows of a robot with friction laws: linear unknowns and shape parameters.

    Linear unknowns are the base parameters of the robot without its laws, then the linear parameters of one law after the
    other.
    """

    robot: Mechanism  # with friction laws
    rows: Rows
    used: tuple[int, ...]  # equations with usable efforts
    recordings: tuple[Recording, ...]
    shared: dict[Hashable, Any]  # shared with other assemblies of these recordings, with laws of the same joints

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return an object shared by all laws of these joints, created once."""
        if key not in self.shared:
            self.shared[key] = make()
        found: T = self.shared[key]
        return found

    @property
    def bare(self) -> Rows:
        """The equations without the laws."""
        return self.once("bare", lambda: Rows(self.robot.without_friction(), self.rows.projection))

    @property
    def base(self) -> BaseParameters:
        """Base parameters of bodies and terms."""
        bare = self.bare.mechanism
        key = "base of bodies and terms", tuple(bare.known_columns.tolist())
        return self.once("base", lambda: cached(bare, key, lambda: base_parameters(bare)))

    @property
    def code(self) -> CompiledRows:
        """The compiled rows of bodies and terms."""
        return self.once("code", lambda: self.bare.compiled(self.base.columns))

    @property
    def shares(self) -> Shares:
        """Coefficients of the laws' torques in the equations."""
        return self.once("shares", lambda: Shares(self.bare, list(self.robot.friction)))

    @cached_property
    def laws(self) -> list[FrictionLaw]:
        """The laws, in the order of their joints."""
        return [friction.law for friction in self.robot.friction.values()]

    @cached_property
    def firsts(self) -> list[int]:
        """Number of the first linear parameter of each law."""
        widths = [len(friction.law.linear) for friction in self.robot.friction.values()]
        return [self.base.rank + int(n) for n in np.cumsum([0, *widths])[:-1]]

    @cached_property
    def shapes(self) -> list[slice]:
        """Slices of the shape parameters of each law in eta."""
        ends = np.cumsum([0, *(len(f.law.shape) for f in self.robot.friction.values())])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def frictions(self, eta: Array, x: Array) -> dict[str, Friction]:
        """Return the laws with their values."""
        found = {}
        for first, own, (name, friction) in zip(self.firsts, self.shapes, self.robot.friction.items(), strict=True):
            rho = x[first : first + len(friction.law.linear)]
            found[name] = replace(friction, values=np.concatenate([rho, eta[own]]))
        return found

    def speeds(self) -> list[Array]:
        """Return the velocity of every joint that has a law, over all recordings."""
        still = self.robot.altered(friction={}, forces=())
        v = self.once("v", lambda: np.concatenate([tree_motion(still, r.motion).v for r in self.recordings]))
        return [v[:, self.robot.tree.coordinates.index(name)] for name in self.robot.friction]

    def problem(self) -> tuple[Problem, list[Finding]]:
        """Return the separable problem of all recordings, and notes about the data."""
        code = self.code
        seen, bends = [], []
        for i in self.used:
            own, pairs = [*code.seen[i].tolist()], []
            for law, equations, first, where in zip(self.laws, self.shares.seen, self.firsts, self.shapes, strict=True):
                if i in equations:
                    own += range(first, first + len(law.linear))
                    pairs += [(first + k, s) for k in range(len(law.linear)) for s in range(where.start, where.stop)]
            seen.append(np.array(own, dtype=np.int64))
            bends.append(pairs)
        tiles: list[Blocks] = []
        masks: list[Array] = []
        notes: list[Finding] = []
        counts = np.zeros(len(self.used), dtype=np.int64)
        size = 8.0 * sum(r.decimator.length(len(r.motion)) for r in self.recordings) * code.height
        for number, recording in enumerate(self.recordings):
            keep = self._keep(recording, notes)
            spans = list(recording.decimator.tiles(len(recording.motion), ROWS))
            starts: Sequence[Array | None] = [None] * len(spans)
            if self.robot.loops:  # the branch is followed once through all samples; tiles are then independent
                begins = [inside.start for inside, _ in spans]
                starts = self.once(("starts", number), partial(closure_starts, self.robot, recording.motion.q, begins))
            signals = self.rows.signals(recording.temperature, recording.load, recording.motion) or {}
            for (inside, outside), start in zip(spans, starts, strict=True):
                own_signals = {name: values[inside] for name, values in signals.items()}
                tiles.append(_Tile(self, number, inside, start, own_signals, size < CACHE))
                masks.append(keep[:, outside].astype(np.float64))
            counts += keep.sum(axis=1)
        for name, v in zip(self.robot.friction, self.speeds(), strict=True):
            notes += direction_note(name, v)
        lengths = [r.decimator.length(len(r.motion)) for r in self.recordings]
        problem = Problem(
            tuple(self.rows.names[i] for i in self.used),
            seen,
            bends,
            self.base.rank + sum(len(law.linear) for law in self.laws),
            int(self.shapes[-1].stop) if self.shapes else 0,
            tiles,
            [list(range(where.start, where.stop)) for where in self.shapes],
            tuple(int(c) for c in counts),
            float(np.average([r.decimator.independence for r in self.recordings], weights=lengths)),
            masks if any((mask == 0.0).any() for mask in masks) else None,
        )
        return problem, notes

    def _keep(self, recording: Recording, notes: list[Finding]) -> NDArray[np.bool_]:
        """Return the mask of usable rows: without dead or saturated efforts and without standstill."""
        whole, length = recording.decimator.factor == 1, recording.decimator.length(len(recording.motion))
        alive = [k for k, i in enumerate(self.used) if self.rows.names[i] not in recording.skip]
        own = [self.used[k] for k in alive]
        names = [self.rows.names[i] for i in own]
        keep = np.zeros((len(self.used), length), dtype=bool)
        keep[alive] = True
        if not self.robot.loops:
            logged = recording.effort if recording.logged is None else recording.logged  # a filter would hide the limit
            cut = np.stack([limited(logged[:, i]) for i in own])
            for row, name in zip(cut, names, strict=True):
                if row.any():
                    notes.append(limit_note(name, row, used=not whole))
                    warn(notes[-1].sentence, SignalWarning)
            keep[alive] &= ~cut if whole else True
        if recording.moving is not None:
            usable = self.rows.usable(recording.moving)[:, own]
            keep[alive] &= moving_rows(usable, recording.decimator, names).T
        return keep


class _Tile:
    """Rows of one stretch; parts independent of the shape parameters are kept if small."""

    def __init__(self, of: Assembly, number: int, span: slice, start: Array | None, signals: Signals, keep: bool) -> None:
        recording = of.recordings[number]
        self.of, self.decimator, self.keep, self.key = of, recording.decimator, keep, (number, span.start)
        self.motion, self.effort, self.signals = recording.motion[span], recording.effort[span], signals
        self.start, self.first = start, span.start
        self._last: tuple[Hashable, list[Array]] = None, []

    @cached_property
    def _shares(self) -> Array:
        """Positions, velocities and shares of the laws, with closed positions."""

        def made() -> Array:
            robot = self.of.bare.mechanism
            closed = close_positions(robot, self.motion.q, self.start, first=self.first) if robot.loops else None
            return self.of.shares(entering(robot, self.motion, closed), len(self.motion))

        return self.of.once(("shares", self.key), made) if self.keep else made()

    def _rows(self) -> Array:
        def made() -> Array:
            return self.decimator.apply_rows(self.of.code.whole(self.motion, self.effort, self.start, self.first))

        return self.of.once(("rows", self.key), made) if self.keep else made()

    def __call__(self, eta: Array, step: int, groups: Sequence[int]) -> list[Array]:
        if not self.keep:
            return self._blocks(eta, step, groups)
        asked = eta.tobytes(), step, tuple(groups)  # repeated for every held-out part of the data
        if asked != self._last[0]:
            self._last = asked, self._blocks(eta, step, groups)
        return self._last[1]

    def _blocks(self, eta: Array, step: int, groups: Sequence[int]) -> list[Array]:
        of, code, seen = self.of, self.of.code, self.of.shares.seen
        wanted = [of.used[g] for g in groups]
        skip = step if self.decimator.factor == 1 else 1  # without a filter only the requested rows are computed
        shares, joints = self._shares[:, ::skip], len(of.laws)
        found: dict[tuple[int, int], Array] = {}  # columns and derivatives by equation and law
        for k, law in enumerate(of.laws):
            own = [i for i in seen[k] if i in wanted]
            if not own:
                continue
            x = np.zeros((len(CHANNELS), shares.shape[1]))
            x[:2] = shares[joints + k], shares[k]
            for name, values in self.signals.items():
                x[CHANNELS.index(LAW_SIGNALS[name])] = values[::skip, k]
            columns = np.empty((len(law.linear) * (1 + len(law.shape)), x.shape[1]))
            columns_of(law)(x.shape[1], {"x": x, "eta": eta[of.shapes[k]], "W": columns}, threads=False)
            for i in own:
                share = shares[of.shares.first[k] + seen[k].index(i)]
                found[i, k] = self.decimator.apply_rows(columns * share)[:, :: step // skip]
        fixed = self._rows()[:, ::step]
        blocks = []
        for i in wanted:
            first, count = code.first[i], code.seen[i].size
            laws = [(len(of.laws[k].linear), found[i, k]) for k in range(joints) if (i, k) in found]
            linear, slopes = [made[:m] for m, made in laws], [made[m:] for m, made in laws]
            blocks.append(np.vstack([fixed[first : first + count], *linear, *slopes, fixed[first + count]]))
        return blocks


def usual_projection(robot: Mechanism) -> str | tuple[str, ...]:
    """Return one row per motor if a robot with loops has as many motors as degrees of freedom, otherwise "gls"."""
    motors = tuple(actuator.name for actuator in robot.actuators)
    return motors if robot.loops and len(motors) == robot.dof else "gls"


def skipped(recordings: Sequence[Recording]) -> set[str]:
    """Return the joints with unused efforts in all recordings."""
    return set.intersection(*(set(recording.skip) for recording in recordings))


def assemble(
    robot: Mechanism,
    recordings: Sequence[Recording],
    projection: str | tuple[str, ...],
    shared: dict[Hashable, Any] | None = None,
) -> Assembly:
    """Assemble recordings of a robot with friction laws; `shared` is of another assembly with laws of the same joints."""
    rows = Rows(robot, projection)
    dead = skipped(recordings)
    used = tuple(i for i, name in enumerate(rows.names) if name not in dead)
    if not used:
        raise IdentificationError("all effort channels are dead or skipped; nothing can be identified")
    if robot.loops and (missing := {name for recording in recordings for name in recording.skip}):
        raise IdentificationError(f"efforts of {', '.join(missing)} are missing; a projection needs the efforts of all motors")
    for recording in recordings:
        if recording.motion.dof != robot.dof:
            raise IdentificationError(
                f"the motion has {recording.motion.dof} coordinates but robot '{robot.name}' has {robot.dof}; they must agree"
            )
        wanted = (len(recording.motion), len(rows.efforts))
        if recording.effort.shape != wanted or not np.isfinite(recording.effort).all():
            raise IdentificationError(
                f"effort has shape {recording.effort.shape}; it must be finite and have the shape {wanted} of the motion"
            )
        if recording.decimator.length(len(recording.motion)) < 1:
            raise IdentificationError(
                f"{len(recording.motion)} samples are too few for a decimation by {recording.decimator.factor}"
            )
    return Assembly(robot, rows, used, tuple(recordings), {} if shared is None else shared)


#: Part of the samples that must move in a direction for it to count as driven.
DRIVEN = 0.01
#: Consecutive samples at the largest effort that are a limit and not a peak, and the part of all samples they make up;
#: above it the effort is simply constant (pure Coulomb friction without noise).
STUCK = 3
LIMITED = (0.002, 0.7)


def direction_note(name: str, v: Array) -> list[Finding]:
    """Return a note if a joint was driven in one direction only."""
    slow = 1e-3 * float(np.max(np.abs(v), initial=0.0))
    forward, backward = float(np.mean(v > slow)), float(np.mean(v < -slow))
    if min(forward, backward) >= DRIVEN:
        return []
    way = "no" if max(forward, backward) < DRIVEN else "one"
    text = (
        f"joint '{name}' moved in {way} direction ({100 * forward:.1f} % forward, {100 * backward:.1f} % backward): Coulomb "
        "friction is not separable from an offset; move it in both directions"
    )
    return [note("one_direction", text, "warning", f"position:{name}")]


def limited(effort: Array) -> NDArray[np.bool_]:
    """Find samples with saturated effort."""
    result = np.zeros(effort.size, dtype=bool)
    for end in (effort.max(), effort.min()):
        near = np.abs(effort - end) <= 1e-9 * max(abs(float(end)), 1e-300)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], near.astype(np.int8), [0]])))
        for first, last in zip(edges[::2], edges[1::2], strict=True):
            if last - first >= STUCK:
                result[first:last] = True
    return result if LIMITED[0] <= result.mean() <= LIMITED[1] else np.zeros_like(result)


def limit_note(name: str, cut: NDArray[np.bool_], used: bool) -> Finding:
    """Return the note about the handling of a saturated effort."""
    what = "they bias the fit: remove them from the log" if used else "they were left out"
    text = f"effort of joint '{name}' is saturated in {int(cut.sum())} samples ({100 * cut.mean():.1f} %); {what}"
    return note("saturated", text, "warning", f"effort:{name}")
