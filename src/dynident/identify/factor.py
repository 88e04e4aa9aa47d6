"""Triangular factors: the whole evidence of many samples about one row group, in one small matrix.

For the rows [W, tau] of a joint (or of a projected equation) the factor is the R of their QR decomposition,

    [W, tau]^T [W, tau] = R^T R,

so ||W beta - tau|| = ||R[:, :k] beta - R[:, k]|| for every beta, and two logs are merged by one QR of their stacked factors.
Samples pass in tiles and are never stored; the Gram matrix, which would square the condition number, is never formed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.mechanics.batch import cores

Array = NDArray[np.float64]
FEW = 16  # tiles that are folded by LAPACK, so that a short log does not wait for a compilation
Tile = tuple[Array, Array]
"""Rows of one tile: base regressor (n, b, T) and effort (n, T)."""


@lru_cache(maxsize=1)
def _blas() -> Any:
    """Return the controller of all BLAS libraries in the process; SciPy has one of its own, so it must be loaded first."""
    import scipy.linalg  # noqa: F401, PLC0415 - costs import time
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 - costs import time

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS keeps to one thread.

    On matrices of a few hundred rows its threads only wait for each other: 5 ms become 100 ms on a busy machine.

    Returns
    -------
    context manager
        For a ``with`` statement.
    """
    context: AbstractContextManager[Any] = _blas().limit(limits=1)
    return context


def triangle(rows: Array) -> Array:
    """Return R of the QR decomposition of `rows`.

    Parameters
    ----------
    rows : ndarray, (N, k)
        Any rows.

    Returns
    -------
    ndarray, (min(N, k), k)
        Upper triangle with R^T R = rows^T rows.
    """
    return np.asarray(np.linalg.qr(rows, mode="r"))


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Evidence of one row group (one joint of a tree robot).

    Parameters
    ----------
    name : str
        Joint, or projected row.
    columns : ndarray of int, (k,)
        Base parameters that this row sees at all.
    R : ndarray, (m, k + 1) with m <= k + 1
        Triangular factor of [W, tau] over all samples.
    count : int
        Number of rows it stands for.
    independence : float
        Effective number of independent rows per row; below 1 when the rows were low-passed together.
    """

    name: str
    columns: NDArray[np.int64]
    R: Array
    count: int
    independence: float = 1.0

    def residual(self, beta: Array) -> float:
        """Return ||W beta - tau||^2.

        Parameters
        ----------
        beta : ndarray, (b,)
            All base parameters.

        Returns
        -------
        float
            Sum of squares over this group's rows.
        """
        e = self.R[:, :-1] @ beta[self.columns] - self.R[:, -1]
        return float(e @ e)

    @property
    def effort_square(self) -> float:
        """||tau||^2 of this group's rows."""
        return float(self.R[:, -1] @ self.R[:, -1])

    def merge(self, other: RowGroup) -> RowGroup:
        """Return the evidence of both.

        Parameters
        ----------
        other : RowGroup
            Same row group of another log.

        Returns
        -------
        RowGroup
            Factor of the stacked factors, counts added.
        """
        R = triangle(np.vstack([self.R, other.R]))
        count = self.count + other.count
        independence = (self.count * self.independence + other.count * other.independence) / count
        return RowGroup(self.name, self.columns, R, count, independence)


def _fold(tiles: int) -> Callable[[Array, Array, NDArray[np.int64], Array], None]:
    """Return the function that folds rows into a triangle: compiled for long logs, LAPACK for short ones.

    The compiled one is twice as fast, but compiling it takes seconds when it is used for the first time.
    """
    if tiles > FEW:
        from dynident.identify.kernels import fold  # noqa: PLC0415 - numba is imported on first use

        compiled: Callable[[Array, Array, NDArray[np.int64], Array], None] = fold
        return compiled

    def plain(R: Array, W: Array, columns: NDArray[np.int64], y: Array) -> None:
        width = columns.size + 1
        rows = np.empty((width + y.size, width))
        rows[:width], rows[width:, :-1], rows[width:, -1] = R[:, :width], W[columns].T, y
        R[:, :width] = triangle(rows)

    return plain


def accumulate(
    names: Iterable[str], columns: list[NDArray[np.int64]], tiles: list[Callable[[], Tile]], independence: float = 1.0
) -> tuple[RowGroup, ...]:
    """Reduce tiles of rows to one factor per group, all cores at work.

    Parameters
    ----------
    names : iterable of str
        Row groups.
    columns : list of ndarray of int
        Base columns each group sees; others are zero in its rows.
    tiles : list of callable
        Each returns base regressor (n, b, T) and effort (n, T) of some samples. They are called once each, in parallel.
    independence : float
        Effective number of independent rows per row.

    Returns
    -------
    tuple of RowGroup
        One per name.
    """
    fold = _fold(len(tiles))
    labels = tuple(names)
    workers = max(1, min(cores(), len(tiles)))

    def reduce(share: list[Callable[[], Tile]]) -> tuple[list[Array], int]:
        factors = [np.zeros((c.size + 1, c.size + 4)) for c in columns]  # as `fold` wants them
        count = 0
        for tile in share:
            W, tau = tile()
            count += tau.shape[1]
            for i, c in enumerate(columns):
                fold(factors[i], W[i], c, tau[i])
        return factors, count

    # Several BLAS threads on matrices this small get in each other's way; the tiles are what is parallel.
    with one_blas_thread():
        if workers == 1:
            parts = [reduce(tiles)]
        else:
            with ThreadPoolExecutor(workers) as pool:
                parts = list(pool.map(reduce, [tiles[i::workers] for i in range(workers)]))
        merged = [triangle(np.vstack([part[0][i][:, : c.size + 1] for part in parts])) for i, c in enumerate(columns)]
    total = sum(part[1] for part in parts)
    return tuple(RowGroup(label, c, R, total, independence) for label, c, R in zip(labels, columns, merged, strict=True))
