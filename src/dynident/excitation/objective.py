"""From trajectory parameters to the criterion and its gradient, and the expected accuracy of every base parameter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.excitation.criteria import Criterion
from dynident.excitation.equations import Equations
from dynident.identify.factor import one_blas_thread, triangle
from dynident.identify.regression import Regression
from dynident.mechanics import Motion
from dynident.mechanics.motion import numbers
from dynident.trajectory.family import Family

Array = NDArray[np.float64]


def factor(W: Array, seen: NDArray[np.bool_], noise: Array, prior: Array | None = None) -> Array:
    """Return R with R^T R = sum_i W_i^T W_i / noise_i^2 + prior^T prior.

    Parameters
    ----------
    W : ndarray, (rows, b, N)
        Rows of the regression.
    seen : ndarray of bool, (rows, b)
        Columns that an equation sees at all; the others are zero.
    noise : ndarray, (rows,)
        Standard deviation of each equation.
    prior : ndarray (k, b), optional
        Factor of what is known already.

    Returns
    -------
    ndarray, (b, b) or fewer rows
        Upper triangle.
    """
    from dynident.identify.kernels import fold  # noqa: PLC0415 - numba is imported on first use

    b, none = W.shape[1], np.zeros(W.shape[2])
    parts = [] if prior is None else [prior]
    for i in range(W.shape[0]):
        columns = np.flatnonzero(seen[i])
        R = np.zeros((columns.size + 1, columns.size + 4))
        fold(R, W[i], columns, none)
        full = np.zeros((columns.size, b))
        full[:, columns] = R[:-1, : columns.size] / noise[i]
        parts.append(full)
    return triangle(np.vstack(parts))


def prior_factor(evidence: Regression, noise: ArrayLike) -> Array:
    """Return the factor of recorded data, for a design that completes it (sequential design).

    Parameters
    ----------
    evidence : Regression
        Recorded data of the same robot with the same base parameters and projection.
    noise : array_like, (groups,)
        Standard deviation of each equation.

    Returns
    -------
    ndarray, (k, b)
        Factor in units of the noise; rows that were low-passed together count as fewer.
    """
    sizes = np.broadcast_to(np.asarray(noise, dtype=np.float64), (len(evidence.groups),))
    parts = []
    for group, size in zip(evidence.groups, sizes, strict=True):
        part = np.zeros((group.R.shape[0], evidence.base.rank))
        part[:, group.columns] = group.R[:, :-1] * np.sqrt(group.independence) / size
        parts.append(part)
    return triangle(np.vstack(parts))


@dataclass(frozen=True, eq=False)
class Objective:
    """The cost of a trajectory's parameters, with its gradient.

    Parameters
    ----------
    equations : Equations
        Rows of the regression.
    family : Family
        Trajectories to choose from, q = Phi c.
    criterion : Criterion
        What to minimise.
    t : array_like, (N,)
        Times at which it is evaluated [s].
    noise : array_like (rows,), optional
        Standard deviation of each equation [N m or N]; all equal when omitted.
    prior : ndarray (k, b), optional
        Factor of recorded data in units of the noise, see `prior_factor`.
    """

    equations: Equations
    family: Family
    criterion: Criterion
    t: Array
    noise: Array | None = None
    prior: Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "t", np.array(numbers(self.t, "t")))
        rows = self.equations.seen.shape[0]
        noise = np.ones(rows) if self.noise is None else np.atleast_1d(numbers(self.noise, "noise"))
        if noise.shape != (rows,) or not np.all(np.isfinite(noise) & (noise > 0.0)):
            raise DynidentError(f"noise is {np.asarray(self.noise).tolist()}; give {rows} standard deviations above zero")
        object.__setattr__(self, "noise", noise)
        if self.prior is not None and self.prior.shape[1] != len(self.equations.names):
            raise DynidentError(
                f"the recorded data has {self.prior.shape[1]} base parameters but the design has {len(self.equations.names)}; "
                "use the same robot and base="
            )

    @cached_property
    def basis(self) -> tuple[Array, Array, Array]:
        """Phi, Phi' and Phi'' at the times, (N, size) each."""
        return self.family.basis(self.t, 0), self.family.basis(self.t, 1), self.family.basis(self.t, 2)

    def states(self, x: Array) -> tuple[Array, Array, Array]:
        """Return q, v, a of flat parameters.

        Parameters
        ----------
        x : ndarray, (n * size,)
            Parameters, coordinate after coordinate.

        Returns
        -------
        q, v, a : ndarray, (N, n)
            Motion.
        """
        c = x.reshape(-1, self.family.size).T
        q, v, a = (phi @ c for phi in self.basis)
        return q, v, a

    def factor(self, x: Array) -> Array:
        """Return the factor R of the whole information.

        Parameters
        ----------
        x : ndarray, (n * size,)
            Parameters.

        Returns
        -------
        ndarray, (b, b)
            Upper triangle.
        """
        assert self.noise is not None
        with one_blas_thread():
            return factor(self.equations.rows(*self.states(x)), self.equations.seen, self.noise, self.prior)

    def value(self, x: Array) -> dict[str, float]:
        """Return the values of the criterion.

        Parameters
        ----------
        x : ndarray, (n * size,)
            Parameters.

        Returns
        -------
        dict of str to float
            Values by name.
        """
        return self.criterion.evaluate(self.factor(x))[0]

    def cost(self, x: Array) -> float:
        """Return the cost alone.

        Parameters
        ----------
        x : ndarray, (n * size,)
            Parameters.

        Returns
        -------
        float
            What is minimised.
        """
        return self.criterion.evaluate(self.factor(x))[1]

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Return cost and gradient.

        Parameters
        ----------
        x : ndarray, (n * size,)
            Parameters.

        Returns
        -------
        cost : float
            What is minimised.
        gradient : ndarray, (n * size,)
            Its derivative, exact for robots without loops.
        """
        with one_blas_thread():
            return self._differentiate(x)

    def _differentiate(self, x: Array) -> tuple[float, Array]:
        assert self.noise is not None
        q, v, a = self.states(x)
        W = self.equations.rows(q, v, a)
        _, cost, gamma = self.criterion.evaluate(factor(W, self.equations.seen, self.noise, self.prior))
        if not np.isfinite(cost):
            return cost, np.zeros_like(x)
        B = np.matmul(gamma / self.noise[:, None, None] ** 2, W)
        bars = self.equations.pullback(q, v, a, B)
        gradient = sum(phi.T @ bar for phi, bar in zip(self.basis, bars, strict=True))
        return cost, np.ascontiguousarray(np.asarray(gradient).T).ravel()


def expected_deviations(equations: Equations, motion: Motion, noise: ArrayLike, prior: Array | None = None) -> Array:
    """Return the standard deviation that each parameter will have after a motion, sqrt(diag (W^T W)^-1), rows over noise.

    Parameters
    ----------
    equations : Equations
        Rows of the regression, with true signs.
    motion : Motion
        N samples.
    noise : array_like, (rows,)
        Standard deviation of each equation's effort, independent from sample to sample.
    prior : ndarray (k, b), optional
        Factor of recorded data.

    Returns
    -------
    ndarray, (b,)
        Standard deviations; infinite where the motion does not show a parameter.
    """
    sizes = np.broadcast_to(np.asarray(noise, dtype=np.float64), (equations.seen.shape[0],))
    R = factor(equations.rows(motion.q, motion.v, motion.a), equations.seen, sizes, prior)
    if R.shape[0] < R.shape[1]:
        return np.full(R.shape[1], np.inf)
    length = np.linalg.norm(R, axis=0)
    S, Vt = np.linalg.svd(R / np.where(length > 0.0, length, 1.0))[1:]
    if S[-1] <= 1e-12 * S[0]:
        return np.full(R.shape[1], np.inf)
    return np.asarray(np.sqrt(np.sum((Vt / S[:, None]) ** 2, axis=0)) / length)
