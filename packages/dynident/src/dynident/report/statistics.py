"""How well posed the regression was, rebuilt from a fit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynident.identify.fit import Fit

Array = NDArray[np.float64]


def weak_directions(fit: Fit) -> tuple[Array, Array, NDArray[np.int64]] | None:
    """Return singular values (largest first), right vectors (columns) and the base parameters they belong to.

    With cov = (W^T W)^-1 for the weighted W and D its column lengths, W D^-1 has the singular values
    sqrt(eig(D^-1 cov^-1 D^-1)).
    """
    solved = np.flatnonzero(fit.solved)
    if not solved.size:
        return None
    try:
        information = np.linalg.inv(fit.covariance[np.ix_(solved, solved)])
    except np.linalg.LinAlgError:
        return None
    length = np.sqrt(np.abs(np.diag(information)))
    if not np.all(np.isfinite(information)) or np.any(length == 0.0):
        return None
    squares, vectors = np.linalg.eigh(information / np.outer(length, length))
    if squares[0] <= 0.0:
        return None
    values = np.sqrt(squares[::-1])
    if not np.isclose(values[0] / values[-1], fit.condition, rtol=0.02):
        return None
    return values, vectors[:, ::-1], solved
