"""Are the efforts of a log late or early beside the positions.

A commanded torque acts some milliseconds later, a filtered sensor tells it later; positions have delays of their own. With the
efforts late by d, tau(t) = w(t - d) beta; to first order about an estimate of d

    tau(t + d) = W(t) beta - tau'(t + d) dd,

which is linear in beta and the correction dd. The deviation of d is that of estimates without each stretch of time, so that
dependent residuals and errors of the model are in it. A delay is told if it is at least a sample, differs from zero by
four deviations, and predicts left-out stretches better by more than a standard error. It is not used unasked (``delay=`` of
`Log.read`): a model of shifted efforts predicts shifted efforts, and whoever uses it must know.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.identify.regression.factor import BLOCKS
from dynident.signals.preparation import Prepared
from dynident.signals.quality import Finding
from dynident.validate.diagnosis.sample import Sample

STEPS = 6
SETTLED = 1e-3  # of a sample
DOUBT = 4.0  # deviations
FURTHEST = 0.25  # periods of the band: the expansion holds no further
RIDGE = 1e-10  # of a column's square: directions that these samples do not show stay near zero
FLOOR = 1e-6  # of the torque: smaller residuals are not believed


def delay_finding(sample: Sample, prepared: Prepared, dead: Sequence[str]) -> list[Finding]:
    """Return the finding about efforts that are late or early as a whole; none where the data do not show it."""
    record = Record(sample, prepared, dead)
    found = delay_of([record], FURTHEST / prepared.decimator.cutoff)
    if found is None:
        return []
    delay, deviation = found
    said = (
        f"efforts are {1e3 * abs(delay):.3g} +- {1e3 * deviation:.2g} ms {'late' if delay > 0.0 else 'early'} beside the "
        f"positions: delay={delay:.3g} (Log.read, --delay) brings them to the same time"
    )
    return [Finding("delay", "effort", "warning", said, delay)]


class Record:
    """Some hundred samples of one log, with its efforts at all times."""

    def __init__(self, sample: Sample, prepared: Prepared, dead: Sequence[str]) -> None:
        alive = np.array([name not in dead for name in sample.names])
        self.rate, self.t, self.record = prepared.rate, prepared.motion.t, prepared.filtered * alive
        self.slope = np.gradient(self.record, 1.0 / self.rate, axis=0)
        self.at, self.W = sample.motion.t, sample.equations(sample.motion).transpose(2, 0, 1)
        self.known = sample.effort - self._seen(self.record, 0.0)

    def _seen(self, record: Array, delay: float) -> Array:
        return np.stack([np.interp(self.at + delay, self.t, column) for column in record.T], axis=1)

    def efforts(self, delay: float) -> tuple[Array, Array]:
        """Return the efforts that belong to the samples if they are late by `delay`, and their slopes, (S, n)."""
        return self._seen(self.record, delay) + self.known, self._seen(self.slope, delay)


def delay_of(records: Sequence[Record], furthest: float) -> tuple[float, float] | None:
    """Return the delay of the efforts and its standard deviation [s], or None where it may be nothing."""
    W = np.concatenate([record.W for record in records])
    size = np.sqrt(np.sum(W**2, axis=(0, 1)))
    W = W / np.where(size > 0.0, size, 1.0)
    per = max(2, -(-BLOCKS // len(records)))
    stretch = [k * per + np.arange(len(r.W)) * per // len(r.W) for k, r in enumerate(records)]
    edges = np.flatnonzero(np.diff(np.concatenate(stretch), prepend=-1))
    rate = min(record.rate for record in records)
    effort, slope = _efforts(records, 0.0)
    square = np.sqrt(np.sum(effort**2, axis=0))
    alive, square = square > 0.0, np.where(square > 0.0, square, 1.0)
    weight, delay = alive / square, 0.0
    for _ in range(STEPS):
        x = _solution(_products(W, slope, effort, weight, edges).sum(axis=0))
        residual = np.sqrt(np.sum((effort - W @ x[:-1] + x[-1] * slope) ** 2, axis=0))
        weight = alive / np.maximum(residual, FLOOR * square)
        delay += float(x[-1])
        if abs(delay) > furthest:
            return None
        effort, slope = _efforts(records, delay)
        if abs(x[-1]) * rate < SETTLED:
            break
    if abs(delay) * rate < 1.0:
        return None
    after, corrections = _left_out(_products(W, slope, effort, weight, edges))
    before, _ = _left_out(_products(W, np.zeros_like(slope), _efforts(records, 0.0)[0], weight, edges))
    K, gain = len(after), before - after
    deviation = float(np.sqrt((K - 1) * np.var(corrections)))
    better = gain.mean() > gain.std(ddof=1) / np.sqrt(K)
    return (delay, deviation) if better and abs(delay) > DOUBT * deviation else None


def _efforts(records: Sequence[Record], delay: float) -> tuple[Array, Array]:
    """Return the efforts of all records that belong to their samples, and the slopes."""
    effort, slope = zip(*(record.efforts(delay) for record in records), strict=True)
    return np.concatenate(effort), np.concatenate(slope)


def _left_out(products: Array) -> tuple[Array, Array]:
    """Return ||e||^2 of every stretch under the solution of the others, and their corrections of the delay, (K,) each."""
    whole = products.sum(axis=0)
    x = np.array([[*_solution(whole - one), -1.0] for one in products])
    return np.einsum("ki,kij,kj->k", x, products, x), x[:, -2]


def _products(W: Array, slope: Array, effort: Array, weight: Array, edges: NDArray[np.int64]) -> Array:
    """Return X^T X of X = [W, -slope, effort], each joint with its weight, of every stretch: (K, b + 2, b + 2)."""
    X = np.concatenate([W, -slope[:, :, None], effort[:, :, None]], axis=2) * weight[:, None]
    parts = [part.reshape(-1, X.shape[2]) for part in np.split(X, edges[1:])]
    return np.array([part.T @ part for part in parts])


def _solution(G: Array) -> Array:
    """Return the least squares solution of products; columns that are zero get zero."""
    size = np.sqrt(np.diagonal(G)[:-1])
    size = np.where(size > 0.0, size, 1.0)
    A = G[:-1, :-1] / np.outer(size, size) + RIDGE * np.eye(size.size)
    A[np.diag_indices(size.size)] += np.diagonal(A) <= RIDGE
    return np.asarray(np.linalg.solve(A, G[:-1, -1] / size) / size)
