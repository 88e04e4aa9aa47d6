"""From trajectory parameters to the criterion and its gradient, and the expected accuracy of every base parameter.

    R^T R = sum_i W_i^T W_i / noise_i^2 + prior,      cost(R),      d cost = sum_i <B_i, dW_i>,   B_i = W_i Gamma / noise_i^2

With the singular values s and right vectors V of R (R^T R = M, lambda = s^2), every criterion is a cost f of the eigenvalues
of the information matrix M, Gamma = 2 V diag(df/dlambda) V^T. All quantities are computed from R, not from M, whose condition
number is squared.

    name         reported value                            cost that is minimised
    cond         s_max / s_min                             log of it
    sigma_min    s_min                                     - log of it
    e            lambda_min(M)                             - log of it / 2
    d            log det M                                 - log det M / b
    inverse_det  1 / det M                                 - log det M / b
    a            trace M^-1                                log of it
    correlation  mean variance inflation: trace of the     log of it
                 inverse of M with unit columns, over b

Samples pass in tiles, once for R and once for B, so that memory does not grow with the motion. R is the Cholesky factor of the
sum where the columns of W are far from dependent, which is three times as fast; otherwise Householder triangles are stacked,
whose error grows with the condition number and not with its square.

Rows W along a motion, and the derivatives of any weighted sum of them:

    s = sum B W(q, v, a)        ds/dq, ds/dv, ds/da at every sample, whatever the number of trajectory parameters

For a robot both are machine code of one set of expressions (`mechanics.equations`): the entries of W, and their reverse sweep,
which takes the weights B as inputs. With loops the sweep gives the derivative by all tree positions x; since dx/dq = G, the
derivative by the independent ones is G^T times it. Signs of friction are smoothed to tanh(v / eps).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array, lapack
from dynident.checks import choice, number, numbers, shown, whole
from dynident.errors import DynidentError
from dynident.graph.algebra import absolute, dot
from dynident.graph.compiled import Compiled, Products
from dynident.graph.expression import reverse
from dynident.identify.base import BaseParameters
from dynident.identify.regression.factor import triangle
from dynident.identify.regression.regression import Regression
from dynident.identify.regression.rows import Projection, Rows, projected
from dynident.mechanics.closure import close_positions
from dynident.mechanics.equations import Equations as Expressions
from dynident.mechanics.equations import opaque_columns
from dynident.mechanics.functions import Motion, MotionLike, as_motion, cached, declared, entering
from dynident.mechanism.mechanism import Mechanism
from dynident.parallel import SMALL, cores, one_blas_thread
from dynident.trajectory.curves import Family

MOST = 12_000_000  # numbers per array: two million samples of six axes
CYCLES = 1_000_000
LARGEST = 1e9  # rad, m and their rates: larger than in any robot, and polynomials would overflow


def text(value: Any, what: str) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise DynidentError(f"{what} is {shown(value)}; give a text")
    return value


def motion_curve(value: Any, what: str) -> None:
    """Raise an error unless a value is a motion of `dynident.trajectory`."""
    if isinstance(value, type) or not callable(value) or not all(hasattr(value, name) for name in ("duration", "dof")):
        raise DynidentError(f"{what} is {shown(value)}; give a motion of dynident.trajectory")


def motion_family(value: Any, what: str) -> None:
    """Raise an error unless a value is a family of motions of `dynident.trajectory`."""
    if isinstance(value, type) or not all(hasattr(value, name) for name in ("basis", "duration", "highest", "size")):
        raise DynidentError(f"{what} is {shown(value)}; give a family of dynident.trajectory, such as Fourier(0.1, 5)")


def per_coordinate(value: Any, n: int, what: str) -> Array:
    """Return n numbers that are not NaN; a single one counts for all."""
    array = numbers(value, what)
    if array.shape not in ((), (1,), (n,)):
        raise DynidentError(f"{what} has shape {array.shape}; give {n} numbers, or one for all")
    if np.isnan(array).any():
        raise DynidentError(f"{what} holds NaN; give numbers")
    return np.array(np.broadcast_to(array, (n,)))


def fits(seconds: float, rate: float, columns: int, what: str) -> None:
    """Raise an error for a motion with an implausible number of samples."""
    if not seconds * rate * columns <= MOST:
        raise DynidentError(
            f"{what} of {seconds:.6g} s at {rate:.6g} samples per second has more than {MOST // columns} samples, the most for "
            f"{columns} coordinates; lower the rate or shorten it"
        )


Slopes = tuple[Array, Array, Array]

STEP = 1e-5  # of central differences; rows are of order one and smooth over angles of order one
SINGULAR = 1e-7  # pivot ratio of the closure below which the independent coordinates no longer determine the others


class Group(NamedTuple):
    """Indices of the entries of one equation among the rows, and its columns."""

    own: slice
    columns: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class RobotEquations:
    """Rows W beta = y of a robot as functions of its motion: its base regressor, projected when it has loops."""

    base: BaseParameters  # Base parameters and the robot
    eps: float = 0.0  # Speed over which signs of friction are smoothed [rad/s or m/s]; 0 for true signs
    projection: Projection = "gls"  # Equations of a robot with loops, see `dynident.identify.regression.rows`
    dof: int = field(init=False)
    names: tuple[str, ...] = field(init=False)
    seen: NDArray[np.bool_] = field(init=False)  # (rows, b), entries of W that are not zero by structure

    def __post_init__(self) -> None:
        seen = np.asarray(Rows(self.mechanism, self.projection).seen(self.base.seen))
        for name, value in (("dof", self.mechanism.dof), ("names", self.base.names), ("seen", seen)):
            object.__setattr__(self, name, value)

    @property
    def mechanism(self) -> Mechanism:
        """The robot."""
        return self.base.mechanism

    @cached_property
    def exact(self) -> bool:
        """True when derivatives are exact: always, except with columns known only numerically."""
        return not opaque_columns(self.mechanism)

    @cached_property
    def groups(self) -> list[Group]:
        """Rows and columns of every equation."""
        columns = [np.flatnonzero(own) for own in self.seen]
        ends = np.cumsum([0, *(c.size for c in columns)]).tolist()
        return [Group(slice(i, j), c) for (i, j), c in zip(pairwise(ends), columns, strict=True)]

    @cached_property
    def blocks(self) -> NDArray[np.intp]:
        """Flat indices in M of the products of the columns of every equation, one equation after the other."""
        b = len(self.names)
        return np.concatenate([(b * group.columns[:, None] + group.columns).ravel() for group in self.groups])

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "products"}  # machine code is compiled again

    @cached_property
    def products(self) -> Products:
        """Sums of the products of the rows of every equation."""
        return Products.of([np.arange(group.own.start, group.own.stop) for group in self.groups])

    def positions(self, q: Array) -> Array:
        """Return the positions (N, m) for `rows` and `pullback`: q (N, n), or with loops all tree positions."""
        return np.ascontiguousarray(close_positions(self.mechanism, q) if self.mechanism.loops else q)

    def rows(self, x: Array, v: Array, a: Array, out: Array | None = None) -> Array:
        """Return the entries of W that are not zero by structure, (k, N), ``W[seen] = rows``; memory for them may be given."""
        arrays = self._arrays(x, v, a)
        W = np.empty((int(self.seen.sum()), len(x))) if out is None else out
        pivot = np.empty((len(x), 1))
        self._function("excitation_rows")(len(x), {**arrays, "W": W, "pivot": pivot}, threads=False)
        if self.mechanism.loops:
            self._check(W, pivot[:, 0])
        return W

    def pullback(self, x: Array, v: Array, a: Array, B: Array, shares: Array | None = None) -> Slopes:
        """Return dq, dv, da (N, n) of sum B W, weights B (k, N) of `rows`: exact, or by differences for opaque columns.

        With `shares` (2, k, r), B holds the entries of W: the weights of those of an equation are shares[1] W^T shares[0].
        """
        if not self.exact:
            return self._differences((x, v, a), B)
        slopes = {name: np.empty((len(x), self.dof)) for name in ("dq", "dv", "da")}
        arrays = {**self._arrays(x, v, a), "B": np.ascontiguousarray(B), **slopes}
        if shares is not None:
            arrays["shares"] = shares.ravel()
        rank = 0 if shares is None else shares.shape[2]
        self._function("excitation_slopes", rank)(len(x), arrays, threads=False)
        return slopes["dq"], slopes["dv"], slopes["da"]

    def _differences(self, state: Slopes, B: Array) -> Slopes:
        """Return the slopes of sum B W by central differences of all samples at once."""
        found = [np.zeros_like(y) for y in state]
        for i, j in np.ndindex(3, self.dof):
            sides = []
            for h in (STEP, -STEP):
                moved = [y.copy() if k == i else y for k, y in enumerate(state)]
                moved[i][:, j] += h
                sides.append(np.sum(B * self.rows(*moved), axis=0))
            found[i][:, j] = (sides[0] - sides[1]) / (2.0 * STEP)
        return found[0], found[1], found[2]

    def _arrays(self, x: Array, v: Array, a: Array) -> dict[str, Array]:
        """Return the inputs of the compiled functions."""
        return inputs_of(self.mechanism, x, v, a) | ({"width": np.array([self.eps])} if self.eps > 0.0 else {})

    def _check(self, W: Array, pivot: Array) -> None:
        """Raise an error for samples at which the closure or the projection is singular."""
        if np.min(pivot, initial=1.0) >= SINGULAR and np.isfinite(W).all():
            return
        raise DynidentError(
            f"robot '{self.mechanism.name}' passes a singularity, where its coordinates do not determine its other joints or "
            "its motors do not hold it; keep the motion away from it"
        )

    def _function(self, name: str, rank: int = 0) -> Compiled:
        """Return the machine code of the entries, or of their reverse sweep, whose weights may have a low rank."""
        columns, entries = self.base.columns, np.argwhere(self.seen)
        smooth, sweep = self.eps > 0.0, name == "excitation_slopes"

        def build() -> Compiled:
            robot = Expressions(self.mechanism)
            if smooth:
                robot.width = robot.graph.symbols("width", 1)[0]
            Y = robot.regressor(columns.tolist())
            if self.mechanism.loops:
                Y = projected(robot, Rows(self.mechanism, self.projection), Y)[0]
            W = [Y[i][j] for i, j in entries]
            shared = {"width": 1} if smooth else {}
            if not sweep:
                outputs = {"W": W, "pivot": [absolute(robot.pivot) if self.mechanism.loops else robot.graph.one]}
                return Compiled(declared(self.mechanism, name, outputs, frozenset({"W"}), shared=shared))
            n, count = self.dof, len(W)
            weights = B = robot.graph.symbols("B", count)
            if rank:
                shared["shares"] = 2 * count * rank
                V, share = np.array(robot.graph.symbols("shares", 2 * count * rank), dtype=object).reshape(2, count, rank)
                sums = [[dot(B[g.own], list(V[g.own, r])) for r in range(rank)] for g in self.groups]
                weights = [dot(sums[i], list(share[e])) for e, i in enumerate(entries[:, 0])]
            slopes = reverse(W, weights, [*robot.x, *robot.v, *robot.a])
            by_x = slopes[: len(robot.x)]
            dq = robot.project(by_x) if self.mechanism.loops else by_x
            outputs = {"dq": dq, "dv": slopes[-2 * n : -n], "da": slopes[-n:]}
            return Compiled(declared(self.mechanism, name, outputs, frozenset({"B"}), {"B": count}, shared=shared))

        projection = self.projection if self.mechanism.loops else ""
        return cached(self.mechanism, (name, tuple(columns.tolist()), self.seen.tobytes(), projection, smooth, rank), build)


def inputs_of(mechanism: Mechanism, x: Array, v: Array, a: Array) -> dict[str, Array]:
    """Return the inputs of a robot's compiled functions for positions (closed, with loops) and rates."""
    if opaque_columns(mechanism):
        return entering(mechanism, Motion(np.arange(float(len(x))), x, v, a))
    arrays = {name: np.ascontiguousarray(y) for name, y in (("q", x), ("v", v), ("a", a))}
    return arrays | ({"law": mechanism.law_values} if mechanism.law_values.size else {})


NAMES = ("cond", "sigma_min", "e", "d", "inverse_det", "a", "correlation")


def _spectral(name: str, eigen: Array, power: float) -> tuple[float, float, Array]:
    """Return value, cost and df/dlambda of a criterion; eigenvalues are descending."""
    b, big, small = eigen.size, eigen[0], eigen[-1]
    slope = np.zeros(b)
    if name == "cond":
        value = float(np.sqrt(big / small))
        if np.isfinite(power):  # smooth bound of log cond: p-norms of M and of its inverse
            up, down = (eigen / big) ** power, (small / eigen) ** power
            cost = (np.log(big / small) + (np.log(up.sum()) + np.log(down.sum())) / power) / 2.0
            return value, float(cost), 0.5 * (up / up.sum() - down / down.sum()) / eigen
        slope[0], slope[-1] = 0.5 / big, -0.5 / small
        return value, float(np.log(value)), slope
    if name in ("sigma_min", "e"):
        slope[-1] = -0.5 / small
        return float(np.sqrt(small) if name == "sigma_min" else small), float(-0.5 * np.log(small)), slope
    if name in ("d", "inverse_det"):
        total = float(np.sum(np.log(eigen)))
        return (total if name == "d" else float(np.exp(-total))), -total / b, -1.0 / (b * eigen)
    trace = float(np.sum(1.0 / eigen))
    return (trace / b if name == "correlation" else trace), float(np.log(trace / b)), -(1.0 / eigen**2) / trace


NEARLY_SINGULAR = 1e-10  # reciprocal condition below which singular values decide
FEW = 2  # eigenvectors passed directly to machine code, instead of weights of all entries
WELL_CONDITIONED = 1e-4  # reciprocal condition above which two iterations from eigenvectors of R^T R are exact


def _regular(R: Array, least: float) -> bool:
    """Whether R is an upper triangle whose reciprocal condition number is above a bound."""
    if R.shape[0] != R.shape[1] or np.tril(R, -1).any() or not np.isfinite(R).all():
        return False
    return bool(lapack().dtrcon(R)[0] > least)


def _extremes(R: Array) -> tuple[Array, Array]:
    """Return the largest and the smallest singular value of a regular triangle and their right vectors (b, 2)."""
    routines, b = lapack(), len(R)
    reflections, diagonal, beside, sizes, _ = routines.dsytrd(R.T @ R, lower=1)
    V = np.hstack([routines.dstemr(diagonal, np.append(beside, 0.0), 2, 0.0, 0.0, i, i)[2][:, :1] for i in (b, 1)])
    V[1:] = routines.dormqr("L", "N", reflections[1:, :-1], sizes, V[1:], 64 * b)[0]
    for _ in range(2):  # inverse iterations with R, whose condition number is not squared
        small = routines.dtrtrs(R, routines.dtrtrs(R, V[:, 1], trans=1)[0])[0]
        V[:, 1] = small / np.linalg.norm(small)
    return np.linalg.norm(R @ V, axis=0), V


@dataclass(frozen=True, eq=False)
class Slope:
    """Gamma = V diag(sizes) V^T + diag(diagonal), d cost = <W Gamma, dW>: a few columns of V where few eigenvalues count."""

    vectors: Array  # V (b, r)
    sizes: Array
    diagonal: Array

    def matrix(self) -> Array:
        """Return Gamma (b, b)."""
        return np.asarray((self.vectors * self.sizes) @ self.vectors.T + np.diag(self.diagonal))

    def weights(self, W: Array, equations: RobotEquations, noise: Array) -> tuple[Array, Array | None]:
        """Return Gamma W / noise^2 of all rows W (k, N), or W itself and the shares of `RobotEquations.pullback`."""
        if self.sizes.size <= FEW and equations.exact and not self.diagonal.any():
            which, columns = np.nonzero(equations.seen)
            V = self.vectors[columns]
            return W, np.array([V, V * self.sizes / noise[which, None] ** 2])
        out = _memory("B", *W.shape)
        for group, size in zip(equations.groups, noise, strict=True):
            own = self.vectors[group.columns]
            part = ((own * self.sizes) @ own.T + np.diag(self.diagonal[group.columns])) / size**2
            np.matmul(part, W[group.own], out=out[group.own])
        return out, None


@dataclass(frozen=True)
class Criterion:
    """A weighted sum of criteria."""

    weights: tuple[tuple[str, float], ...]  # Criteria and the weights of their costs; one criterion alone has weight 1
    scale: str | tuple[float, ...] | None = None
    goal: tuple[int, ...] = ()  # Only these parameters count; the others are unknown and also estimated (Schur complement)
    power: float = np.inf  # Smoothing of "cond"; infinity is the condition number itself

    def __post_init__(self) -> None:
        for name, weight in self.weights:
            choice("criterion", name, NAMES)
            number(f"weight of criterion '{name}'", weight, above=0.0)
        if not self.weights:
            raise DynidentError(f"no criterion is given; name at least one of {', '.join(NAMES)}")
        if isinstance(self.scale, str) and self.scale != "column":
            raise DynidentError(f"scale is '{self.scale}'; use 'column', numbers, or nothing")

    @classmethod
    def parse(
        cls,
        text: str | Mapping[str, float] | Criterion,
        scale: str | Sequence[float] | None = None,
        goal: Sequence[int] = (),
    ) -> Criterion:
        """Return a criterion from its name, from "cond:1,d:0.5", or from a mapping of weights."""
        if isinstance(text, Criterion):
            return text
        if not isinstance(text, str | Mapping):
            raise DynidentError(
                f"criterion is {shown(text)}; give a name, weights such as 'cond:1,d:0.5', or a mapping of weights"
            )
        sizes = scale if scale is None or isinstance(scale, str) else tuple(np.atleast_1d(numbers(scale, "scale")).tolist())
        which = tuple(whole("goal", i) for i in goal)
        if isinstance(text, Mapping):
            return cls(tuple(text.items()), sizes, which)
        pairs = []
        for part in text.split(","):
            name, _, weight = part.strip().partition(":")
            try:
                pairs.append((name, float(weight) if weight else 1.0))
            except ValueError:
                raise DynidentError(f"weight of criterion '{name}' is '{weight}'; give a number") from None
        return cls(tuple(pairs), sizes, which)

    @property
    def label(self) -> str:
        """Short text, as in cond or cond:1,d:0.5."""
        if len(self.weights) == 1:
            return self.weights[0][0]
        return ",".join(f"{name}:{weight:g}" for name, weight in self.weights)

    def evaluate(self, R: Array) -> tuple[dict[str, float], float, Array]:
        """Return values by name, cost (infinite where M is singular) and Gamma (b, b) of a factor R (m, b), R^T R = M."""
        values, cost, slope = self.differentiate(R)
        return values, cost, slope.matrix()

    def differentiate(self, R: Array) -> tuple[dict[str, float], float, Slope]:
        """Return the result of `evaluate`, with Gamma as its factors."""
        found = [(name, weight, *self._one(name, R)) for name, weight in self.weights]
        slope = Slope(
            np.hstack([own.vectors for *_, own in found]),
            np.concatenate([weight * own.sizes for _, weight, *_, own in found]),
            np.sum([weight * own.diagonal for _, weight, *_, own in found], axis=0),
        )
        cost = sum(weight * part for _, weight, _, part, _ in found)
        return {name: value for name, _, value, *_ in found}, cost, slope

    def _one(self, name: str, R: Array) -> tuple[float, float, Slope]:
        b = R.shape[1]
        unit = name == "correlation" or self.scale == "column"
        size = np.ones(b)
        if unit:
            length = np.linalg.norm(R, axis=0)
            size = 1.0 / np.where(length > 0.0, length, 1.0)
        elif self.scale is not None:
            size = np.asarray(self.scale, dtype=np.float64)
            if size.shape != (b,):
                raise DynidentError(f"scale has {size.size} numbers but there are {b} parameters; give one each")
        scaled = R * size
        if name in ("d", "inverse_det") and not self.goal and _regular(scaled, NEARLY_SINGULAR):
            inverse = np.asarray(lapack().dtrtri(scaled)[0])
            total = -2.0 * float(np.sum(np.log(np.abs(np.diag(inverse)))))
            value = total if name == "d" else float(np.exp(-total))
            diagonal = np.full(b, 2.0 / b) * size**2 if unit else np.zeros(b)  # the scale itself depends on the columns
            return value, -total / b, Slope(inverse * size[:, None], np.full(b, -2.0 / b), diagonal)
        few = name in ("cond", "sigma_min", "e") and not self.goal and np.isinf(self.power)
        if few and b > 1 and _regular(scaled, WELL_CONDITIONED):
            S, V = _extremes(scaled)
        else:
            S, Vt = np.linalg.svd(scaled)[1:]
            V = Vt.T
            if S.size < b or not np.all(np.isfinite(S)) or S[-1] <= 1e-13 * S[0]:
                lost = {"d": -np.inf, "sigma_min": 0.0, "e": 0.0}.get(name, np.inf)
                return lost, np.inf, Slope(np.zeros((b, 0)), np.zeros(0), np.zeros(b))
        eigen = S**2
        if self.goal:
            value, cost, X, sizes = self._goal(name, eigen, V)
        else:
            value, cost, slope = _spectral(name, eigen, self.power)
            used = np.flatnonzero(slope)
            X, sizes = V[:, used], 2.0 * slope[used]
        diagonal = np.zeros(b)
        if unit:  # the scale itself depends on the columns
            diagonal = -np.sum(scaled.T @ scaled * ((X * sizes) @ X.T), axis=1)
        return value, cost, Slope(X * size[:, None], sizes, diagonal * size**2)

    def _goal(self, name: str, eigen: Array, V: Array) -> tuple[float, float, Array, Array]:
        """Return value, cost and Gamma's factors of the parameters of the goal: eigenvalues of (M^-1)_gg inverted."""
        g = list(self.goal)
        if max(g) >= V.shape[0] or min(g) < 0 or len(set(g)) < len(g):
            raise DynidentError(f"goal is {self.goal}; name different parameters out of {V.shape[0]}")
        C = (V[:, :] / eigen) @ V[g].T  # columns g of M^-1
        spread, U = np.linalg.eigh(C[g])
        information = 1.0 / spread  # descending
        value, cost, slope = _spectral(name, information, self.power)
        X = C @ U
        return value, cost, X, 2.0 * slope * information**2


Result = TypeVar("Result")

TILE = 1024  # samples
SAFE = 1e5  # largest condition number of W^T W, columns of unit length, for a Cholesky factor accurate to about 1e-11


def _over_tiles(samples: int, work: Callable[[int, int], Result]) -> list[Result]:
    """Return ``work(first, last)`` of all tiles of a motion in order, threads sharing those of a long one."""
    tiles = [(i, min(i + TILE, samples)) for i in range(0, samples, TILE)]
    if samples < SMALL or cores() == 1:
        return [work(*tile) for tile in tiles]
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(lambda tile: work(*tile), tiles))


class _Rows:
    """The rows of every tile of a motion; those of a single tile are computed once."""

    def __init__(self, equations: RobotEquations, x: Array, v: Array, a: Array) -> None:
        self.equations, self.state, self.groups = equations, (x, v, a), equations.groups
        self.only: Array | None = None

    def __call__(self, i: int, j: int) -> Array:
        if self.only is not None:
            return self.only
        x, v, a = self.state
        W = self.equations.rows(x[i:j], v[i:j], a[i:j], _memory("W", self.groups[-1].own.stop, j - i))
        if j - i == len(x):
            self.only = W
        return W


_arrays = threading.local()


def _memory(name: str, rows: int, samples: int) -> Array:
    """Return a reusable array of this thread: allocation would cost more time than the computation."""
    array: Array | None = getattr(_arrays, name, None)
    if array is None or array.size < rows * samples:
        array = np.empty(rows * samples)
        setattr(_arrays, name, array)
    return array[: rows * samples].reshape(rows, samples)


def factor(rows: _Rows, noise: Array, prior: Array | None) -> Array:
    """Return R (b, b) with R^T R = sum_i W_i^T W_i / noise_i^2 + prior^T prior; fewer rows when there are fewer samples."""
    products, samples, b = rows.equations.products, len(rows.state[0]), len(rows.equations.names)

    def sums(i: int, j: int) -> Array:
        found = products.sums(1)
        products.adding(rows(i, j), found)(0, 0, j - i)
        return found

    found = products.matrices(sum(_over_tiles(samples, sums), products.sums(1)))
    weights = np.concatenate([own.ravel() / size**2 for own, size in zip(found, noise, strict=True)])
    M = np.asarray(np.bincount(rows.equations.blocks, weights, b * b), dtype=np.float64).reshape(b, b)
    if prior is not None:
        M += prior.T @ prior
    if not np.all(np.isfinite(M)):
        raise DynidentError("the regression holds numbers that are not finite; keep the motion away from singularities")
    length = np.sqrt(np.diag(M))
    if np.all(length > 0.0):
        unit = M / length / length[:, None]
        R, fault = lapack().dpotrf(unit)
        if not fault and lapack().dpocon(R, np.abs(unit).sum(axis=0).max())[0] > 1.0 / SAFE:
            return np.asarray(R * length)

    def triangles(i: int, j: int) -> Array:
        W, parts = rows(i, j), []
        for group, size in zip(rows.groups, noise, strict=True):
            part = triangle(W[group.own].T)
            parts.append(np.zeros((len(part), b)))
            parts[-1][:, group.columns] = part / size
        return np.vstack(parts)

    return triangle(np.vstack([*([] if prior is None else [prior]), *_over_tiles(samples, triangles)]))


def _check_prior(prior: Any, equations: RobotEquations) -> None:
    """Raise an error for recorded data of another robot."""
    if prior is not None and numbers(prior, "prior").shape[1:] != (len(equations.names),):
        raise DynidentError(
            f"the recorded data has shape {np.shape(prior)} but the design has {len(equations.names)} base parameters; use the "
            "same robot and base="
        )


def information(equations: RobotEquations, motion: Motion, noise: Array, prior: Array | None = None) -> Array:
    """Return the factor R of the information of a motion."""
    with one_blas_thread():
        return factor(_Rows(equations, equations.positions(motion.q), motion.v, motion.a), noise, prior)


def prior_factor(recorded: Regression, noise: ArrayLike) -> Array:
    """Return the factor of recorded data, for a design that completes it (sequential design)."""
    sizes = per_coordinate(noise, len(recorded.groups), "noise")
    parts = []
    for group, size in zip(recorded.groups, sizes, strict=True):
        part = np.zeros((group.R.shape[0], recorded.base.rank))
        part[:, group.columns] = group.R[:, :-1] * np.sqrt(group.independence) / size
        parts.append(part)
    return triangle(np.vstack(parts))


@dataclass(frozen=True, eq=False)
class Objective:
    """The cost of a trajectory's parameters, with its gradient."""

    equations: RobotEquations  # Rows of the regression
    family: Family  # Trajectories to choose from, q = Phi c
    criterion: Criterion  # Cost to be minimised
    t: Array  # Times at which it is evaluated [s]
    noise: Any = None  # Standard deviation of each equation [N m or N]; all equal when omitted
    prior: Array | None = None  # Factor of recorded data in units of the noise, see `prior_factor`

    def __post_init__(self) -> None:
        rows = self.equations.seen.shape[0]
        noise = np.ones(rows) if self.noise is None else np.atleast_1d(numbers(self.noise, "noise"))
        if noise.shape != (rows,) or not np.all(np.isfinite(noise) & (noise > 0.0)):
            raise DynidentError(f"noise is {np.asarray(self.noise).tolist()}; give {rows} standard deviations above zero")
        object.__setattr__(self, "noise", noise)
        _check_prior(self.prior, self.equations)

    @cached_property
    def basis(self) -> tuple[Array, Array, Array]:
        """Phi, Phi' and Phi'' at the times, (N, size) each."""
        return self.family.basis(self.t, 0), self.family.basis(self.t, 1), self.family.basis(self.t, 2)

    def states(self, x: Array) -> tuple[Array, Array, Array]:
        """Return q, v, a, (N, n) each, of parameters (n * size,), coordinate after coordinate."""
        c = x.reshape(-1, self.family.size).T
        q, v, a = (phi @ c for phi in self.basis)
        return q, v, a

    def factor(self, x: Array) -> Array:
        """Return the factor R (b, b) of the whole information, an upper triangle, of parameters (n * size,)."""
        return information(self.equations, Motion(self.t, *self.states(x)), self.noise, self.prior)

    def value(self, x: Array) -> dict[str, float]:
        """Return the values of the criterion by name."""
        return self.criterion.evaluate(self.factor(x))[0]

    def cost(self, x: Array) -> float:
        """Return the cost alone, which is minimised."""
        return self.criterion.evaluate(self.factor(x))[1]

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Return cost and gradient (n * size,); the gradient is zero where the cost is infinite."""
        q, v, a = self.states(x)
        equations = self.equations
        with one_blas_thread():
            p = equations.positions(q)
            rows = _Rows(equations, p, v, a)
            _, cost, slope = self.criterion.differentiate(factor(rows, self.noise, self.prior))
            if not np.isfinite(cost):
                return cost, np.zeros_like(x)

            def slopes(i: int, j: int) -> Array:
                bars = equations.pullback(p[i:j], v[i:j], a[i:j], *slope.weights(rows(i, j), equations, self.noise))
                return np.asarray(sum(phi[i:j].T @ bar for phi, bar in zip(self.basis, bars, strict=True)))

            gradient = sum(_over_tiles(len(q), slopes), np.zeros((self.family.size, equations.dof)))
        return cost, np.ascontiguousarray(gradient.T).ravel()


def expected_deviations(equations: RobotEquations, motion: MotionLike, noise: ArrayLike, prior: Array | None = None) -> Array:
    """Return the expected standard deviation of each parameter after a motion, sqrt(diag (W^T W)^-1), rows over noise."""
    motion = as_motion(motion)
    _check_prior(prior, equations)
    sizes = per_coordinate(noise, equations.seen.shape[0], "noise")
    R = information(equations, motion, sizes, prior)
    if R.shape[0] < R.shape[1]:
        return np.full(R.shape[1], np.inf)
    length = np.linalg.norm(R, axis=0)
    S, Vt = np.linalg.svd(R / np.where(length > 0.0, length, 1.0))[1:]
    if S[-1] <= 1e-12 * S[0]:
        return np.full(R.shape[1], np.inf)
    return np.asarray(np.sqrt(np.sum((Vt / S[:, None]) ** 2, axis=0)) / length)
