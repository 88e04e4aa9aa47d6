"""From trajectory parameters to the criterion and its gradient, and the expected accuracy of every base parameter.

    R^T R = sum_i W_i^T W_i / noise_i^2 + prior,      cost(R),      d cost = sum_i <B_i, dW_i>,   B_i = W_i Gamma / noise_i^2

Samples pass in tiles, once for R and once for B, so that memory does not grow with the motion. R is the Cholesky factor of the
sum where the columns of W are far from dependent, which is three times as fast; otherwise Householder triangles are stacked,
whose error grows with the condition number and not with its square.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.errors import DynidentError, require
from dynident.excitation.checks import motion_family, vector
from dynident.excitation.criteria import Criterion
from dynident.excitation.equations import ExcitationEquations
from dynident.graph.products import Products
from dynident.identify.regression.factor import triangle
from dynident.identify.regression.regression import Regression
from dynident.mechanics.motion import Motion, MotionLike, as_motion
from dynident.parallel import SMALL, cores, one_blas_thread
from dynident.trajectory.family import Family

Array = NDArray[np.float64]
Result = TypeVar("Result")

TILE = 1024  # samples
SAFE = 1e5  # condition of W^T W, columns of unit length, up to which its Cholesky factor is good to about 1e-11


def _over_tiles(equations: ExcitationEquations, samples: int, work: Callable[[int, int], Result]) -> list[Result]:
    """Return ``work(first, last)`` of all tiles of a motion in order, threads sharing those of a long one."""
    tiles = [(i, min(i + TILE, samples)) for i in range(0, samples, TILE)]
    if not equations.threads or samples < SMALL or cores() == 1:
        return [work(*tile) for tile in tiles]
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(lambda tile: work(*tile), tiles))


class _Group(NamedTuple):
    """Where the entries of one equation are among the rows, and its columns."""

    own: slice
    columns: NDArray[np.intp]


class _Rows:
    """The rows of every tile of a motion (of a single tile computed once), and which rows and columns each equation has."""

    def __init__(self, equations: ExcitationEquations, x: Array, v: Array, a: Array) -> None:
        self.equations, self.state = equations, (x, v, a)
        self.only: Array | None = None
        columns = [np.flatnonzero(own) for own in equations.seen]
        ends = np.cumsum([0, *(c.size for c in columns)])
        self.groups = [_Group(slice(i, j), c) for (i, j), c in zip(pairwise(ends.tolist()), columns, strict=True)]

    def __call__(self, i: int, j: int) -> Array:
        if self.only is not None:
            return self.only
        x, v, a = self.state
        W = self.equations.rows(x[i:j], v[i:j], a[i:j], _memory("W", int(self.equations.seen.sum()), j - i))
        if j - i == len(x):
            self.only = W
        return W


_arrays = threading.local()


def _memory(name: str, rows: int, samples: int) -> Array:
    """Return an array that this thread uses again and again: fresh memory costs more time than what is computed in it."""
    array: Array | None = getattr(_arrays, name, None)
    if array is None or array.size < rows * samples:
        array = np.empty(rows * samples)
        setattr(_arrays, name, array)
    return array[: rows * samples].reshape(rows, samples)


def factor(rows: _Rows, noise: Array, prior: Array | None) -> Array:
    """Return R (b, b) with R^T R = sum_i W_i^T W_i / noise_i^2 + prior^T prior; fewer rows when there are fewer samples."""
    from scipy.linalg.lapack import dpocon, dpotrf  # noqa: PLC0415 - scipy is heavy

    equations, samples = rows.equations, len(rows.state[0])
    b = len(equations.names)

    products = Products.of([np.arange(group.own.start, group.own.stop) for group in rows.groups])

    def sums(i: int, j: int) -> Array:
        found = products.sums(1)
        products.adding(rows(i, j), found)(0, 0, j - i)
        return found

    M = np.zeros((b, b)) if prior is None else prior.T @ prior
    found = products.matrices(sum(_over_tiles(equations, samples, sums), products.sums(1)))
    for group, size, own in zip(rows.groups, noise, found, strict=True):
        M[group.columns[:, None], group.columns] += own[0] / size**2
    if not np.all(np.isfinite(M)):
        raise DynidentError("the regression holds numbers that are not finite; keep the motion away from singularities")
    length = np.sqrt(np.diag(M))
    if np.all(length > 0.0):
        unit = M / length / length[:, None]
        R, fault = dpotrf(unit)
        if not fault and dpocon(R, np.abs(unit).sum(axis=0).max())[0] > 1.0 / SAFE:
            return np.asarray(R * length)

    def triangles(i: int, j: int) -> Array:
        W, parts = rows(i, j), []
        for group, size in zip(rows.groups, noise, strict=True):
            part = triangle(W[group.own].T)
            parts.append(np.zeros((len(part), b)))
            parts[-1][:, group.columns] = part / size
        return np.vstack(parts)

    return triangle(np.vstack([*([] if prior is None else [prior]), *_over_tiles(equations, samples, triangles)]))


def _check_prior(prior: Any, equations: ExcitationEquations) -> None:
    """Refuse recorded data of another robot."""
    if prior is not None and numbers(prior, "prior").shape[1:] != (len(equations.names),):
        raise DynidentError(
            f"the recorded data has shape {np.shape(prior)} but the design has {len(equations.names)} base parameters; use the "
            "same robot and base="
        )


def information(equations: ExcitationEquations, motion: Motion, noise: Array, prior: Array | None = None) -> Array:
    """Return the factor R of the information of a motion."""
    with one_blas_thread():
        return factor(_Rows(equations, equations.positions(motion.q), motion.v, motion.a), noise, prior)


def prior_factor(evidence: Regression, noise: ArrayLike) -> Array:
    """Return the factor of recorded data, for a design that completes it (sequential design)."""
    require(evidence, Regression, "evidence")
    sizes = vector(noise, len(evidence.groups), "noise")
    parts = []
    for group, size in zip(evidence.groups, sizes, strict=True):
        part = np.zeros((group.R.shape[0], evidence.base.rank))
        part[:, group.columns] = group.R[:, :-1] * np.sqrt(group.independence) / size
        parts.append(part)
    return triangle(np.vstack(parts))


@dataclass(frozen=True, eq=False)
class Objective:
    """The cost of a trajectory's parameters, with its gradient."""

    equations: ExcitationEquations  # Rows of the regression
    family: Family  # Trajectories to choose from, q = Phi c
    criterion: Criterion  # What to minimise
    t: Array  # Times at which it is evaluated [s]
    noise: Any = None  # Standard deviation of each equation [N m or N]; all equal when omitted
    prior: Array | None = None  # Factor of recorded data in units of the noise, see `prior_factor`

    def __post_init__(self) -> None:
        require(self.equations, ExcitationEquations, "equations")
        motion_family(self.family, "family")
        require(self.criterion, Criterion, "criterion")
        object.__setattr__(self, "t", np.array(numbers(self.t, "t")))
        if self.t.ndim != 1 or self.t.size < 2 or not np.all(np.diff(self.t) > 0.0):
            raise DynidentError(f"t has shape {self.t.shape}; give at least two times that rise")
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
                W = rows(i, j)
                B = _memory("B", *W.shape)
                for group, size in zip(rows.groups, self.noise, strict=True):
                    slope.weigh(W[group.own], group.columns, size**2, B[group.own])
                bars = equations.pullback(p[i:j], v[i:j], a[i:j], B)
                return np.asarray(sum(phi[i:j].T @ bar for phi, bar in zip(self.basis, bars, strict=True)))

            gradient = sum(_over_tiles(equations, len(q), slopes), np.zeros((self.family.size, equations.dof)))
        return cost, np.ascontiguousarray(gradient.T).ravel()


def expected_deviations(
    equations: ExcitationEquations, motion: MotionLike, noise: ArrayLike, prior: Array | None = None
) -> Array:
    """Return the standard deviation that each parameter will have after a motion, sqrt(diag (W^T W)^-1), rows over noise."""
    require(equations, ExcitationEquations, "equations")
    motion = as_motion(motion)
    _check_prior(prior, equations)
    sizes = vector(noise, equations.seen.shape[0], "noise")
    R = information(equations, motion, sizes, prior)
    if R.shape[0] < R.shape[1]:
        return np.full(R.shape[1], np.inf)
    length = np.linalg.norm(R, axis=0)
    S, Vt = np.linalg.svd(R / np.where(length > 0.0, length, 1.0))[1:]
    if S[-1] <= 1e-12 * S[0]:
        return np.full(R.shape[1], np.inf)
    return np.asarray(np.sqrt(np.sum((Vt / S[:, None]) ** 2, axis=0)) / length)
