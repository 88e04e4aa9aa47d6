"""What residuals and conditioning tell, as numbers: autocorrelation, independent samples, weak directions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynident.identify import Fit

Array = NDArray[np.float64]

LAGS = 60


def autocorrelation(e: Array, lags: int = LAGS) -> Array:
    """Return the autocorrelation of a residual."""
    x = e - e.mean()
    power = float(x @ x)
    most = min(lags, x.size - 1)
    if power == 0.0:
        return np.zeros(most + 1)
    length = 1 << (2 * x.size - 1).bit_length()  # zeros behind the signal keep its ends apart
    spectrum = np.fft.rfft(x, length)
    return np.asarray(np.fft.irfft(np.abs(spectrum) ** 2, length)[: most + 1] / power)


def independent_share(e: Array) -> float:
    """Return which share of the samples is worth an independent one, 1 / (1 + 2 sum of the leading positive correlations)."""
    r = autocorrelation(e, e.size // 2)[1:]
    first = int(np.argmax(r <= 0.0)) if np.any(r <= 0.0) else r.size
    return 1.0 / (1.0 + 2.0 * float(np.sum(r[:first])))


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
