"""All solutions for individual parameters from `subsets.py`: their mean and spread, and the best combination."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


KEEP = ("all", "values", "solutions")


@dataclass(frozen=True, eq=False)
class Statistics(Result):
    """Mean and spread of every parameter over the solvable subsets.

    Parameters
    ----------
    names : tuple of str
        Parameters.
    count : ndarray of int, (p,)
        Number of values used.
    mean, std : ndarray, (p,)
        Mean and sample standard deviation (n - 1); NaN without values, std NaN with one.
    low, high : ndarray, (p,)
        Range of the values used.
    residual : ndarray, (b,)
        K mean - beta: means over different subsets do not satisfy the base equations exactly.
    """

    names: tuple[str, ...]
    count: NDArray[np.int64]
    mean: Array
    std: Array
    low: Array
    high: Array
    residual: Array


@dataclass(frozen=True, eq=False)
class Individual(Result):
    """All solutions of the solvable subsets."""

    names: tuple[str, ...]  # Parameters that act (columns)
    regrouping: Array  # K of the solved equations
    beta: Array  # beta of the solved equations
    considered: int  # Number of subsets
    solutions: Array  # One row per solvable subset
    held: NDArray[np.bool_]  # Parameters held at their trusted (or known) value in each solution
    weights: Array  # Jacobi's weights, sum 1
    covariance: Array
    positive: NDArray[np.bool_]  # Parameters that must be above zero

    def __post_init__(self) -> None:
        p, b, k = len(self.names), np.size(self.beta), len(np.atleast_1d(self.solutions))
        wanted = {"regrouping": (b, p), "beta": (b,), "solutions": (k, p), "held": (k, p), "weights": (k,), "positive": (p,)}
        for name, shape in wanted.items():
            if np.shape(getattr(self, name)) != shape:
                raise IdentificationError(f"{name} has shape {np.shape(getattr(self, name))}; give {shape}")

    @property
    def solvable(self) -> int:
        """Number of solvable subsets."""
        return len(self.solutions)

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Mask (k,) of solutions in which all positive parameters are above zero."""
        return np.asarray(np.all((self.solutions > 0.0) | ~self.positive, axis=1))

    @property
    def best(self) -> Array:
        """Weighted mean (p,) of all solutions: least mean squared error among those with K phi = beta."""
        return np.asarray(self.weights @ self.solutions)

    @property
    def best_std(self) -> Array:
        """Standard deviation (p,) of `best`."""
        return np.sqrt(np.clip(np.diag(self.covariance), 0.0, None))

    def plot(self) -> Figure:
        """Draw every solution of each parameter, physically possible ones in colour, and the best estimate."""
        from dynident.figures import BLUE, MUTED, ORANGE, finish, label, new_figure  # noqa: PLC0415 - matplotlib is an extra

        figure = new_figure(9.0, 0.9 + 0.27 * len(self.names))
        axes = figure.add_axes((0.14, 0.12, 0.84, 0.82))
        size = np.maximum(np.median(np.abs(self.solutions), axis=0), 1e-12)
        at = np.arange(len(self.names))
        for row, possible in zip(self.solutions / size, self.feasible, strict=True):
            axes.plot(row, at, ".", color=BLUE if possible else MUTED, markersize=3.0)
        axes.plot(self.best / size, at, "|", color=ORANGE, markersize=12.0, markeredgewidth=2.0)
        axes.set_xscale("symlog")
        axes.set_yticks(at, [label(name) for name in self.names], fontsize=8)
        axes.invert_yaxis()
        finish(axes, "over the median of its size; orange is the best", "", f"{len(self.solutions)} solvable subsets")
        return figure

    def statistics(self, include_held: bool = False, keep: str = "all") -> Statistics:
        """Return mean, standard deviation and range of every parameter.

        [Roldan2017] has two conventions: Table 6.2 is the default, Table 6.4 is ``include_held=True, keep="values"``.
        """
        if keep not in KEEP:
            raise IdentificationError(f"keep is {keep!r}; it must be one of {', '.join(KEEP)}")
        use = np.ones_like(self.held, dtype=np.bool_) if include_held else ~self.held.astype(np.bool_)
        if keep == "values":
            use &= (self.solutions > 0.0) | ~self.positive
        elif keep == "solutions":
            use &= self.feasible[:, None]
        count = use.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(use, self.solutions, 0.0).sum(axis=0) / count
            square = np.where(use, (self.solutions - mean) ** 2, 0.0).sum(axis=0)
            std = np.where(count > 1, np.sqrt(square / (count - 1)), np.nan)
        low = np.where(count > 0, np.min(np.where(use, self.solutions, np.inf), axis=0), np.nan)
        high = np.where(count > 0, np.max(np.where(use, self.solutions, -np.inf), axis=0), np.nan)
        return Statistics(self.names, count, mean, std, low, high, self.regrouping @ mean - self.beta)

    def bounded(self, information: ArrayLike, keep: str = "values", lower: ArrayLike | None = None) -> Array:
        """Return the parameters inside the ranges of the subsets that fit the data best (the optimisation of [Roldan2017]).

            minimise (K phi - beta)^T H (K phi - beta)   with   low <= phi <= high of `statistics`

        With H = W^T W this is the squared error of the predicted torques, up to a constant. Undetermined
        directions stay as close to `best` as possible.
        """
        from scipy.optimize import lsq_linear  # noqa: PLC0415 - scipy.optimize costs import time

        H = np.asarray(information, dtype=np.float64)
        if H.shape != 2 * (self.beta.size,):
            raise IdentificationError(
                f"information has shape {H.shape}; it must be {2 * (self.beta.size,)}, one row per equation"
            )
        try:
            root = np.linalg.cholesky(H).T
        except np.linalg.LinAlgError:
            raise IdentificationError("information is not positive definite; give W^T W of independent base columns") from None
        ranges = self.statistics(include_held=True, keep=keep)
        low = np.where(np.isnan(ranges.low), self.best, ranges.low if lower is None else np.asarray(lower, dtype=np.float64))
        high = np.where(np.isnan(ranges.high), self.best, ranges.high)
        span = np.maximum(high - low, 1e-9 * np.maximum(1.0, np.abs(high)))
        # x = (phi - low)/span in [0, 1]; the small second block determines only the null space of the first.
        fit = root @ self.regrouping * span
        tie = 1e-6 * float(np.linalg.norm(fit, 2)) * np.eye(span.size)
        goal = np.concatenate([root @ (self.beta - self.regrouping @ low), tie @ ((self.best - low) / span)])
        x = lsq_linear(np.vstack([fit, tie]), goal, (0.0, 1.0), method="bvls", tol=1e-14).x
        return np.asarray(np.minimum(low + span * x, np.maximum(high, low)))
