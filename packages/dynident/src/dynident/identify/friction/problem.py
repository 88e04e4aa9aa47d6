"""The separable problem: shape parameters eta are searched, everything linear is eliminated (variable projection).

    minimise over eta   min over x   sum_g || [W_g, Phi_g(eta)] x - y_g ||^2 / sigma_g^2  (+ ||T x - t||^2, a belief)

x holds the base parameters of the bodies and the linear friction parameters of all joints. One pass over the samples reduces
``[W_g, Phi_g, dPhi_g/deta, y_g]`` to one triangle per row group; residual, Jacobian ([Golub1973]; [Roldan2017, eqs.
2.35-2.36]) and covariance then come from a few hundred rows, whatever the weights. The triangle keeps all inner products, so
nothing is approximated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dynident.errors import IdentificationError
from dynident.identify.factor import RowGroup, Tile, Workspace, accumulate

Array = NDArray[np.float64]
Pair = tuple[int, int]
Blocks = Callable[[Array, int, Sequence[int]], list[Array]]
"""``blocks(eta, step, groups)``: [W, Phi, dPhi, y] of row groups of one tile, (k + 1, T); every step-th row only."""

#: Relative length of its orthogonal part below which a column is not excited by the data.
TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False)
class Projection:
    """The problem at one eta: the linear parameters are the best ones."""

    x: Array  # (P,) linear parameters; zero where the data do not show them
    solved: NDArray[np.int64]  # (r,) those that were solved for
    residual: Array  # (M,) weighted, in reduced coordinates; its length is that of all rows
    jacobian: Array  # (M, S) its exact derivative with respect to eta
    direct: Array  # (M, r + S) weighted derivative of the prediction by the solved x and eta, for the covariance
    squares: Array  # (groups,) unweighted sum of squared residuals of each row group
    used: float  # parameters that the rows of the data determine


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows of one or more row groups, ready to be reduced at any eta."""

    names: tuple[str, ...]  # row groups: joints, or projected equations
    columns: list[NDArray[np.int64]]  # linear parameters that the rows of each group hold, in their order
    bends: list[list[Pair]]  # (linear, shape) of the derivatives that follow them
    linear: int  # number P of linear parameters
    shapes: int  # number S of shape parameters
    tiles: list[Blocks]
    families: list[list[int]]  # shape parameters of each joint
    counts: tuple[int, ...]  # rows of each group
    independence: float = 1.0  # independent rows per row
    masks: list[Array] | None = None  # (groups, T) per tile: rows to use (1) or to leave out (0)
    step: int = 1  # every so-manieth row is used
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
        sizes = [c.size + len(p) for c, p in zip(self.columns, self.bends, strict=True)]

        def tile(i: int, _: Workspace) -> Array:
            return np.ascontiguousarray(np.vstack(self.blocks(eta, i)))

        tiles: list[Tile] = [partial(tile, i) for i in range(len(self.tiles))]
        groups = accumulate(self.names, [np.arange(size) for size in sizes], tiles, self.independence)
        return tuple(replace(group, count=count) for group, count in zip(groups, self.counts, strict=True))

    def project(self, eta: Array, groups: Sequence[RowGroup], sigma: Array) -> Projection:
        """Eliminate the linear parameters; `groups` is what `reduce` returned for eta, sigma that of each group's rows."""
        from scipy.linalg import qr, solve_triangular  # noqa: PLC0415 - scipy.linalg costs import time

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
            A = np.vstack([A, np.pad(T, ((0, 0), (0, self.linear - T.shape[1])))])
            y = np.concatenate([y, t])
        length = np.linalg.norm(A, axis=0)
        usable = np.flatnonzero(length > 1e-12 * max(float(length.max()), 1e-300))
        if not usable.size:
            raise IdentificationError("no parameter is excited by these data: nothing moves, or all efforts are unusable")
        Q, R, order = qr(A[:, usable] / length[usable], mode="economic", pivoting=True)
        diagonal = np.abs(np.diag(R))
        rank = int(np.count_nonzero(diagonal > TOLERANCE * diagonal[0]))
        Q, R, solved = Q[:, :rank], R[:rank, :rank], usable[order[:rank]]
        x = np.zeros(self.linear)
        x[solved] = solve_triangular(R, Q.T @ y) / length[solved]
        residual = y - A @ x
        slopes, turned = np.zeros((y.size, eta.size)), np.zeros((self.linear, eta.size))
        for column, s, rows, d in bent:
            slopes[rows, s] += d * x[column]
            turned[column, s] += d @ residual[rows]
        jacobian = -(slopes - Q @ (Q.T @ slopes))
        if bent:
            jacobian -= Q @ solve_triangular(R, turned[solved] / length[solved][:, None], trans="T")
        squares = np.array([residual[a:b] @ residual[a:b] for a, b in pairwise(tops)]) * sigma**2
        used = float(np.sum(Q[: tops[-1]] ** 2))
        return Projection(x, solved, residual, jacobian, np.hstack([A[:, solved], slopes]), squares, used)

    def errors(self, eta: Array, x: Array) -> Array:
        """Return y - [W, Phi(eta)] x of all rows, masks or not, (groups, rows)."""
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
        """Return the problem of some row groups alone, with all columns that they hold free for themselves."""
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
