"""What makes a motion good: numbers of the information matrix M = W^T W, each with its exact derivative.

With the singular values s and right vectors V of the factor R of W (R^T R = M, lambda = s^2), every criterion is a cost f of
the eigenvalues, d cost = <W Gamma, dW> with Gamma = 2 V diag(df/dlambda) V^T. Everything is taken from R, never from M, whose
condition number is squared.

    name         reported value                            cost that is minimised
    cond         s_max / s_min                             log of it
    sigma_min    s_min                                     - log of it
    e            lambda_min(M)                             - log of it / 2
    d            log det M                                 - log det M / b
    inverse_det  1 / det M                                 - log det M / b
    a            trace M^-1                                log of it
    correlation  mean variance inflation: trace of the     log of it
                 inverse of M with unit columns, over b
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.checks import choice, number, numbers, shown, whole
from dynident.errors import DynidentError

Array = NDArray[np.float64]

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


@dataclass(frozen=True, eq=False)
class Slope:
    """Gamma = V diag(sizes) V^T + diag(diagonal), d cost = <W Gamma, dW>: a few columns of V where few eigenvalues count."""

    vectors: Array  # V (b, r)
    sizes: Array
    diagonal: Array

    def matrix(self) -> Array:
        """Return Gamma (b, b)."""
        return np.asarray((self.vectors * self.sizes) @ self.vectors.T + np.diag(self.diagonal))

    def weigh(self, W: Array, columns: NDArray[np.intp], variance: float, out: Array) -> None:
        """Write Gamma W / variance of the rows W (k, N) of some columns."""
        V = self.vectors[columns]
        if 2 * V.shape[1] < len(V) and not self.diagonal.any():
            np.matmul(V * (self.sizes / variance), V.T @ W, out=out)
        else:
            np.matmul(((V * self.sizes) @ V.T + np.diag(self.diagonal[columns])) / variance, W, out=out)


@dataclass(frozen=True)
class Criterion:
    """A weighted sum of criteria."""

    weights: tuple[tuple[str, float], ...]  # Criteria and the weights of their costs; one criterion alone has weight 1
    scale: str | tuple[float, ...] | None = None
    goal: tuple[int, ...] = ()  # Only these parameters matter; the others are unknown and estimated along (Schur complement)
    power: float = np.inf  # Smoothing of "cond"; infinity is the condition number itself

    def __post_init__(self) -> None:
        if not isinstance(self.weights, tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in self.weights):
            raise DynidentError(f"weights are {shown(self.weights)}; give pairs of a criterion and its weight")
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
        if not isinstance(goal, Sequence) or isinstance(goal, str):
            raise DynidentError(f"goal is {shown(goal)}; give the numbers of parameters")
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
        """Return what `evaluate` does, Gamma by its factors."""
        if np.ndim(R) != 2:
            raise DynidentError(f"R has the shape {np.shape(R)}; give a factor, rows by parameters")
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
        S, Vt = np.linalg.svd(R * size)[1:]
        if S.size < b or not np.all(np.isfinite(S)) or S[-1] <= 1e-13 * S[0]:
            lost = {"d": -np.inf, "sigma_min": 0.0, "e": 0.0}.get(name, np.inf)
            return lost, np.inf, Slope(np.zeros((b, 0)), np.zeros(0), np.zeros(b))
        eigen, V = S**2, Vt.T
        if self.goal:
            value, cost, X, sizes = self._goal(name, eigen, V)
        else:
            value, cost, slope = _spectral(name, eigen, self.power)
            used = np.flatnonzero(slope)
            X, sizes = V[:, used], 2.0 * slope[used]
        diagonal = np.zeros(b)
        if unit:  # the scale itself moves with the columns
            diagonal = -np.sum((V * eigen) @ V.T * ((X * sizes) @ X.T), axis=1)
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
