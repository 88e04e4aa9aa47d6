"""Test of a fault by errors of left-out stretches, with additional smooth friction that the model lacks.

A sample is cut into K stretches of time; a periodic motion is cut by phase. Each stretch is predicted by the model of the
others,

    y = W beta + sum_m h_m(v_i) gamma_im + e,

where h_m represent smooth friction as a function of the joint's speed and load, as in `delay.py`, with normal gammas of a
deviation of `FRICTION` of its effort. g_k is the logarithm of the ratio of squared errors of stretch k, as logged over
corrected. A fault is accepted if the mean of g_k exceeds `FALL`, and t of its standard errors, where t is the quantile of
Student's distribution at which one of M hypotheses is accepted by chance in `CHANCE` of all healthy logs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy  # its sub-packages load on first use
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.mechanics.functions import Motion
from dynident.signals.preparation import period_of
from dynident.signals.quality import Finding
from dynident.validate.diagnosis.delay import FRICTION, SLOW, friction_functions

CHANCE = 0.01
FALL = 0.1  # a smaller fall has many explanations
STRETCHES, FEWEST = 40, 8
PASSES = 3  # iterations of the weights
RIDGE = 1e-8  # of a column's square sum
FLOOR = 1e-9  # of the squared effort: smaller errors are not credible


def stretches(motion: Motion) -> NDArray[np.int64]:
    """Return the stretch of every sample."""
    count = len(motion)
    period = min(period_of(motion.q, motion.v), count)
    return np.asarray(np.arange(count) % period * min(STRETCHES, int(period) // 4) // period, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Flexible:
    """Columns W of n joints with, for each joint, flexible friction and its effort as the last column."""

    Z: Array  # (n, S, b + m + 1), zero for slow samples
    used: NDArray[np.bool_]  # (S, n)
    scale: Array  # (n,) RMS efforts
    b: int
    m: int

    @classmethod
    def of(cls, W: Array, effort: Array, motion: Motion, friction: bool = True) -> Flexible:
        """Return the columns for rows W (n, b, S) and efforts (S, n)."""
        n, b, samples = W.shape
        size = np.sqrt(np.mean(effort**2, axis=0))
        scale = np.where(size > 0.0, size, 1.0)
        rms = np.sqrt(np.mean(motion.v**2, axis=0))
        v = motion.v / np.where(rms > 0.0, rms, 1.0)
        h = np.zeros((samples, n, 0))
        column = np.sqrt(np.sum(W**2, axis=(0, 2)))
        W = W / np.where(column > 0.0, column, 1.0)[:, None]
        if friction:
            load = np.abs(np.einsum("nbt,b->tn", W, weighted(W, effort)[0])) / scale
            h = friction_functions(v, load) * scale[:, None]
        used = ((np.abs(v) > SLOW) | (rms == 0.0)) & (size > 0.0)
        Z = np.concatenate([W.transpose(0, 2, 1), h.transpose(1, 0, 2), effort.T[:, :, None]], axis=2)
        return cls(Z * used.T[:, :, None], used, scale, b, h.shape[2])

    def left_out(self, stretch: NDArray[np.int64]) -> tuple[Array, Array]:
        """Return the solutions (K, n, b + m + 1) without each stretch, and the squared errors (K, n) of these stretches.

        Friction of a joint acts in its own rows only.
        """
        parts = [self.Z[:, stretch == k] for k in range(int(stretch.max()) + 1)]
        G = np.stack([part.transpose(0, 2, 1) @ part for part in parts])
        total = G.sum(axis=0)
        weight = self._solved(total)[1]
        x = np.stack([_solved(total - own, self.b, self.scale, weight)[0] for own in G])
        return x, np.maximum(np.einsum("kni,knij,knj->kn", x, G, x), FLOOR * self.scale**2)

    def residual(self) -> Array:
        """Return the residuals (S, n), zero for slow samples."""
        return np.asarray(-np.einsum("nsi,ni->sn", self.Z, self._solved(self.Z.transpose(0, 2, 1) @ self.Z)[0]))

    def over_noise(self) -> Array:
        """Return the mean square residuals over those of the noise, (n,), from random differences of neighbouring samples.

        Errors of another robot or motion are smooth over neighbouring samples. Second differences of the residuals have six
        times the variance of the noise, and little of smooth errors.
        """
        residual = self.residual()
        inside = self.used[2:] & self.used[1:-1] & self.used[:-2]
        rough = np.sum(inside * np.diff(residual, 2, axis=0) ** 2, axis=0) / np.maximum(6 * inside.sum(axis=0), 1)
        whole = np.sum(residual**2, axis=0) / np.maximum(self.used.sum(axis=0), 1)
        least = FLOOR * self.scale**2
        return np.asarray(np.maximum(whole, least) / np.maximum(rough, least))

    def _solved(self, G: Array) -> tuple[Array, Array]:
        return _solved(G, self.b, self.scale, 1.0 / (self.scale**2 * len(self.used)))


def left_out_errors(W: Array, effort: Array, motion: Motion, friction: bool = True) -> Array:
    """Return the squared errors (K, n) of left-out stretches, with rows W (n, b, S) and efforts (S, n)."""
    return Flexible.of(W, effort, motion, friction).left_out(stretches(motion))[1]


def estimated(W: Array, effort: Array, motion: Motion, column: Array) -> tuple[float, float]:
    """Return the coefficient of an additional column (S, n), and its standard deviation by the jackknife over stretches."""
    size = max(float(np.linalg.norm(column)), 1e-300)
    flexible = Flexible.of(np.concatenate([W, column.T[:, None] / size], axis=1), effort, motion)
    x = flexible.left_out(stretches(motion))[0][:, 0, W.shape[1]] / size
    return float(x.mean()), float(np.sqrt((x.size - 1) * np.var(x)))


def only_noise(W: Array, effort: Array, motion: Motion) -> bool:
    """Return whether the model itself leaves so little besides noise that no correction could be believed."""
    over = Flexible.of(W, effort, motion, friction=False).over_noise()
    return bool(np.sum(np.log(over)) < fall_of(over.size)) and int(stretches(motion).max()) >= FEWEST - 1


def weighted(W: Array, effort: Array) -> tuple[Array, Array]:
    """Return the parameters and the residual variances of joints, which weight the fit."""
    P, C = W @ W.transpose(0, 2, 1), np.einsum("nbt,tn->nb", W, effort)
    variance = np.maximum(np.mean(effort**2, axis=0), 1e-300)
    x = np.zeros(W.shape[1])
    for _ in range(PASSES):
        A = np.tensordot(1.0 / variance, P, axes=1)
        x = np.linalg.solve(A + RIDGE * np.diag(np.diagonal(A) + 1e-300), (1.0 / variance) @ C)
        left = np.mean((effort - np.einsum("nbt,b->tn", W, x)) ** 2, axis=0)
        variance = np.maximum(left, FLOOR * np.mean(effort**2, axis=0) + 1e-300)
    return x, variance


def _solved(G: Array, b: int, scale: Array, weight: Array) -> tuple[Array, Array]:
    """Return solutions (n, b + m + 1), with -1 for the effort, and the weights (n,) from the residuals."""
    n, m = len(G), G.shape[1] - b - 1
    count = np.maximum(np.trace(G[:, -1:, -1:], axis1=1, axis2=2), 1e-300)  # sums of squared efforts
    x = np.zeros((n, b + m + 1))
    x[:, -1] = -1.0
    for _ in range(PASSES):
        A = np.zeros((b + n * m, b + n * m))
        y = np.zeros(b + n * m)
        for i in range(n):
            own = slice(b + i * m, b + (i + 1) * m)
            A[:b, :b] += weight[i] * G[i, :b, :b]
            A[:b, own] = weight[i] * G[i, :b, b:-1]
            A[own, :b] = A[:b, own].T
            A[own, own] = weight[i] * G[i, b:-1, b:-1] + np.eye(m) / FRICTION**2
            y[:b] += weight[i] * G[i, :b, -1]
            y[own] = weight[i] * G[i, b:-1, -1]
        solution = np.linalg.solve(A + RIDGE * np.diag(np.diagonal(A) + 1e-300), y)
        x[:, :b] = solution[:b]
        x[:, b:-1] = solution[b:].reshape(n, m)
        left = np.einsum("ni,nij,nj->n", x, G, x)
        share = np.maximum(left / count, FLOOR)
        weight = 1.0 / (share * scale**2)
    return x, weight


def falls(before: Array, after: Array) -> tuple[float, float, int]:
    """Return the mean of g_k, its standard error, and the number of stretches; joints are weighted by their errors after it."""
    weight = 1.0 / after.mean(axis=0)
    fall = np.log((before @ weight) / (after @ weight))
    return float(fall.mean()), float(fall.std(ddof=1) / np.sqrt(fall.size)), fall.size


def fall_of(n: float, least: float = FALL) -> float:
    """Return the decrease of L of n joints for a mean of g_k of `least`, all of it in one joint's error.

    With 1 / n: the mean of g_k of n joints if one of them decreases by `least`.
    """
    return float(np.log1p(n * np.expm1(least)))


def believed(before: Array, after: Array, hypotheses: int, least: float = FALL) -> bool:
    """Return whether left-out stretches of time accept a fault, one of `hypotheses`; their errors fall by at least `least`."""
    mean, error, count = falls(before, after)
    if count < FEWEST:
        return False
    return mean > max(least, limit_of(count, hypotheses) * error)


def limit_of(count: int, hypotheses: int) -> float:
    """Return the limit of Student's t for one of `hypotheses` about `count` stretches."""
    return float(scipy.special.stdtrit(count - 1, 1.0 - CHANCE / hypotheses))


def judged(finding: Finding, before: Array, after: Array, hypotheses: int, supported: bool = True) -> list[Finding]:
    """Return a finding, `supported` by the description: an error if left-out stretches prove it, none if they refute it."""
    if believed(after, before, 1) or not (supported or believed(before, after, 1, 0.0)):
        return []
    return [finding if believed(before, after, hypotheses) else replace(finding, severity="warning")]
