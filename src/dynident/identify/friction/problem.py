"""The separable problem: shape parameters eta are searched, everything linear is eliminated (variable projection).

    minimise over eta   min over x   sum_g || [W_g, Phi_g(eta_g)] x - tau_g ||^2 / sigma_g^2

x holds the base parameters of the bodies and the linear friction parameters of all joints, eta_g the shape parameters of
joint g. One pass over the samples reduces ``[W_g, Phi_g, dPhi_g/deta_g, tau_g]`` to one triangle per joint; residual,
Jacobian ([Golub1973]; [Roldan2017, eqs. 2.35-2.36]) and covariance then come from a few hundred rows, whatever
the weights. The triangle keeps all inner products, so nothing is approximated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dynident.errors import IdentificationError
from dynident.friction import FrictionLaw, State
from dynident.identify.factor import RowGroup, Tile, Workspace, accumulate

Array = NDArray[np.float64]
Piece = Callable[[], tuple[Array, Array]]
"""Returns the fixed columns (n, b, T) and the efforts (n, T) of one tile."""
Filter = Callable[[Array], Array]

#: Relative length of its orthogonal part below which a column is not excited by the data.
TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False)
class Projection:
    """The problem at one eta: the linear parameters are the best ones.

    Parameters
    ----------
    x : ndarray, (P,)
        Linear parameters; zero where the data do not show them.
    solved : ndarray of int, (r,)
        Those that were solved for.
    residual : ndarray, (M,)
        Weighted residual in reduced coordinates; its length is that of all rows.
    jacobian : ndarray, (M, S)
        Its exact derivative with respect to eta.
    direct : ndarray, (M, r + S)
        Weighted derivative of the prediction with respect to the solved x and eta, for the covariance.
    squares : ndarray, (groups,)
        Unweighted sum of squared residuals of each joint.
    """

    x: Array
    solved: NDArray[np.int64]
    residual: Array
    jacobian: Array
    direct: Array
    squares: Array


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows of one or more joints, ready to be reduced at any eta.

    Parameters
    ----------
    names : tuple of str
        Joints, one row group each.
    laws : tuple of FrictionLaw
        Friction law of each joint.
    fixed : int
        Number b of fixed columns, shared by all joints.
    seen : list of ndarray of int
        Fixed columns that each joint's rows see.
    pieces : list of callable
        Tiles of fixed columns and efforts, after filtering.
    states : list of list of State
        ``states[tile][joint]`` at the full rate.
    filters : list of callable or None
        Filter of each tile from the full rate to rows, ``(T, k) -> (T', k)``; None where every sample is a row.
    masks : list of ndarray (n, T') or None
        Rows to use per tile (1) or to leave out (0).
    counts : tuple of int
        Rows of each joint.
    independence : float
        Effective number of independent rows per row.
    """

    names: tuple[str, ...]
    laws: tuple[FrictionLaw, ...]
    fixed: int
    seen: list[NDArray[np.int64]]
    pieces: list[Piece]
    states: list[list[State]]
    filters: list[Filter | None]
    masks: list[Array] | None
    counts: tuple[int, ...]
    independence: float = 1.0

    @property
    def widths(self) -> list[int]:
        """Number of linear friction parameters of each joint."""
        return [len(law.linear) for law in self.laws]

    @property
    def linear(self) -> int:
        """Number P of linear parameters."""
        return self.fixed + sum(self.widths)

    @property
    def shapes(self) -> list[slice]:
        """Where the shape parameters of each joint are in eta."""
        ends = np.cumsum([0, *(len(law.shape) for law in self.laws)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def bent(self, eta: Array) -> list[list[tuple[int, int]]]:
        """Pairs (linear, shape) of each joint whose derivative is not zero.

        Parameters
        ----------
        eta : ndarray, (S,)
            Any shape parameters.

        Returns
        -------
        list of list of (int, int)
            Pairs per joint.
        """
        pairs = []
        for g, (law, where) in enumerate(zip(self.laws, self.shapes, strict=True)):
            found = np.zeros((len(law.linear), len(law.shape)), dtype=bool)
            if law.shape:
                for tile in self.states[:: max(1, len(self.states) // 8)]:
                    found |= (law.columns_dshape(tile[g], eta[where]) != 0.0).reshape(-1, *found.shape).any(axis=0)
            pairs.append([(int(k), int(s)) for k, s in np.argwhere(found)])
        return pairs

    def reduce(self, eta: Array, pairs: list[list[tuple[int, int]]]) -> tuple[RowGroup, ...]:
        """One pass over the samples.

        Parameters
        ----------
        eta : ndarray, (S,)
            Shape parameters.
        pairs : list of list of (int, int)
            Derivatives wanted, from `bent`; empty lists for none.

        Returns
        -------
        tuple of RowGroup
            Triangle of [W seen, Phi, dPhi, tau] of each joint.
        """
        sizes = [c.size + k + len(p) for c, k, p in zip(self.seen, self.widths, pairs, strict=True)]

        def tile(i: int, _: Workspace) -> Array:
            W, y = self.pieces[i]()
            blocks = []
            for g, (law, where) in enumerate(zip(self.laws, self.shapes, strict=True)):
                block = np.vstack([W[g, self.seen[g]], self._bend(i, g, law, eta[where], pairs[g]).T, y[g]])
                blocks.append(block if self.masks is None else block * self.masks[i][g])
            return np.ascontiguousarray(np.vstack(blocks))

        tiles: list[Tile] = [partial(tile, i) for i in range(len(self.pieces))]
        groups = accumulate(self.names, [np.arange(size) for size in sizes], tiles, self.independence)
        return tuple(replace(group, count=count) for group, count in zip(groups, self.counts, strict=True))

    def _bend(self, i: int, g: int, law: FrictionLaw, own: Array, pairs: list[tuple[int, int]]) -> Array:
        """Friction columns of one tile and joint and the wanted derivatives, filtered, (T', k + pairs)."""
        state, through = self.states[i][g], self.filters[i]
        columns = law.columns(state, own)
        if pairs:
            bend = law.columns_dshape(state, own)
            columns = np.concatenate([columns, np.stack([bend[..., k, s] for k, s in pairs], axis=-1)], axis=-1)
        return columns if through is None else through(columns)

    def project(self, eta: Array, groups: Sequence[RowGroup], pairs: list[list[tuple[int, int]]], sigma: Array) -> Projection:
        """Eliminate the linear parameters.

        Parameters
        ----------
        eta : ndarray, (S,)
            Shape parameters.
        groups : sequence of RowGroup
            What `reduce` returned for them.
        pairs : list of list of (int, int)
            Derivatives that the groups hold.
        sigma : ndarray, (groups,)
            Standard deviation of each joint's rows.

        Returns
        -------
        Projection
            Best linear parameters, residual and exact derivatives.
        """
        from scipy.linalg import qr, solve_triangular  # noqa: PLC0415 - scipy.linalg costs import time

        heights = [group.R.shape[0] for group in groups]
        tops = np.cumsum([0, *heights])
        A, y = np.zeros((tops[-1], self.linear)), np.zeros(tops[-1])
        bends: list[tuple[int, int, slice, Array]] = []
        first = self.fixed
        for g, group in enumerate(groups):
            rows, R = slice(int(tops[g]), int(tops[g + 1])), group.R / sigma[g]
            fixed, width = self.seen[g].size, self.widths[g]
            A[rows, self.seen[g]] = R[:, :fixed]
            A[rows, first : first + width] = R[:, fixed : fixed + width]
            y[rows] = R[:, -1]
            for j, (k, s) in enumerate(pairs[g]):
                bends.append((first + k, self.shapes[g].start + s, rows, R[:, fixed + width + j]))
            first += width
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
        bent, turned = np.zeros((y.size, eta.size)), np.zeros((self.linear, eta.size))
        for column, s, rows, d in bends:
            bent[rows, s] += d * x[column]
            turned[column, s] += d @ residual[rows]
        jacobian = -(bent - Q @ (Q.T @ bent))
        if bends:
            jacobian -= Q @ solve_triangular(R, turned[solved] / length[solved][:, None], trans="T")
        squares = np.array([residual[a:b] @ residual[a:b] for a, b in pairwise(tops)]) * sigma**2
        return Projection(x, solved, residual, jacobian, np.hstack([A[:, solved], bent]), squares)

    def thinned(self, rows: int) -> Problem:
        """The same problem on evenly spread rows, held in memory: good enough to choose starting points.

        Parameters
        ----------
        rows : int
            Rows to keep, about.

        Returns
        -------
        Problem
            Every so-manieth row.
        """
        step = max(1, max(self.counts) // rows)
        if step == 1:
            return self
        kept = [(W[:, :, ::step].copy(), y[:, ::step].copy()) for W, y in (piece() for piece in self.pieces)]
        masks = None if self.masks is None else [mask[:, ::step] for mask in self.masks]
        counts = tuple(-(-count // step) for count in self.counts)
        states, filters = self.states, [None if whole is None else _every(step, whole) for whole in self.filters]
        if all(whole is None for whole in self.filters):  # then the tiles can be put together, which is much faster
            thin = [[tile[g].take(slice(None, None, step)) for tile in states] for g in range(len(self.laws))]
            states, filters = [[State.join(tiles) for tiles in thin]], [None]
            kept = [(np.concatenate([W for W, _ in kept], axis=2), np.concatenate([y for _, y in kept], axis=1))]
            masks = None if masks is None else [np.concatenate(masks, axis=1)]
        pieces: list[Piece] = [partial(_given, *pair) for pair in kept]
        return replace(self, pieces=pieces, states=states, filters=filters, masks=masks, counts=counts, independence=1.0)

    def single(self, g: int) -> Problem:
        """One joint alone, with all fixed columns that it sees free for itself.

        Parameters
        ----------
        g : int
            Which joint.

        Returns
        -------
        Problem
            A problem of one row group.
        """

        def only(piece: Piece) -> Piece:
            def compute() -> tuple[Array, Array]:
                W, y = piece()
                return W[g : g + 1], y[g : g + 1]

            return compute

        return replace(
            self,
            names=(self.names[g],),
            laws=(self.laws[g],),
            seen=[self.seen[g]],
            pieces=[only(piece) for piece in self.pieces],
            states=[[tile[g]] for tile in self.states],
            masks=None if self.masks is None else [mask[g : g + 1] for mask in self.masks],
            counts=(self.counts[g],),
        )


def _given(W: Array, y: Array) -> tuple[Array, Array]:
    return W, y


def _every(step: int, whole: Filter) -> Filter:
    return lambda x: whole(x)[::step]
