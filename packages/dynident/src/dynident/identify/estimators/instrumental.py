"""Instrumental variables: rows of the same motion with independent noise serve as instruments [Janot2014].

    beta = (W^T P W)^-1 W^T P y,      P = Z (Z^T Z)^-1 Z^T,      rows of every joint divided by their standard deviation
    cov = A cov(Z^T e) A^T,     A = (W^T P W)^-1 W^T Z (Z^T Z)^-1,     e autoregressive (`statistics.py`)

Z = W(q, v, a of another motion): the reference, the same motion in the other periods, or a simulated motion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import DynidentWarning, IdentificationError, warn
from dynident.identify.estimators.least_squares import WLS, LeastSquares
from dynident.identify.estimators.statistics import embedded, influence_covariance, placed
from dynident.identify.regression.factor import RowGroup, Solution, solve
from dynident.identify.regression.logs import robot_motion
from dynident.identify.regression.regression import Regression, Stretch, rows_along, sampled
from dynident.mechanics.functions import Motion

Instruments = str | Motion | Callable[[int, Stretch], Motion]

CONVERGED = 1e-4  # relative change of the joints' standard deviations at which to stop
WEAK = 0.1  # smallest singular value of the scaled Q_Z^T W over that of W, below which instruments are not informative


@dataclass(kw_only=True, eq=False)
class IV(LeastSquares):
    """Instrumental variables: consistent where noise of the positions, or feedback, makes least squares biased.

        beta = (W^T P W)^-1 W^T P y,     P = projection on the rows Z of another motion

    Parameters
    ----------
    instruments : {"reference", "periods"}, Motion or callable
        Motion of the instruments: the commanded motion (the log's `reference`), the mean of the other periods of a
        periodic motion, one given for the only log, or ``instruments(i, stretch)``, which returns that of log i, such as
        `simulated_instruments`.
    period : float, optional
        Period of the motion [s], for "periods".
    iterations : int
        Largest number of estimations of the joints' standard deviations.
    recovery, tolerance
        As of `OLS`.
    """

    instruments: Instruments = "reference"
    period: float | None = None
    iterations: int = 5

    def _estimate(self, regression: Regression, active: NDArray[np.bool_]) -> tuple[Solution, Array]:
        evidence = sampled(regression, "IV")
        self._check_least(iterations=1)
        Z = [rows_along(evidence, part, self._motion(evidence, i, part)) for i, part in enumerate(evidence.stretches)]
        _, first = WLS(tolerance=self.tolerance)._estimate(regression, active)
        solution, sigma = self._reweighted(
            regression, first, lambda sigma: self._solve(evidence, Z, sigma, active), self.iterations, CONVERGED
        )
        self.influence_ = self._influence(evidence, Z, sigma, solution)
        self.weakness_ = ""
        if self.strength_ < WEAK:
            self.weakness_ = (
                f"the instruments hardly resemble the measured motion (strength {self.strength_:.2g} of 1; {WEAK:g} "
                "needed); check that they are the reference of this log"
            )
        return solution, sigma

    def _covariance(self, regression: Regression, solution: Solution, sigma: Array) -> Array:
        """Return the covariance from the influence of every time on the estimate; warn of weak instruments."""
        evidence = sampled(regression, "IV")
        if self.weakness_:
            warn(f"IV: {self.weakness_}", DynidentWarning)
        return embedded(influence_covariance(evidence, solution.beta, self.influence_), solution)

    def _solve(self, evidence: Regression, Z: list[list[Array]], sigma: Array, active: NDArray[np.bool_]) -> Solution:
        """Solve Q^T W beta = Q^T y with Q an orthonormal basis of the weighted instruments."""
        weighted, W = _weighted(evidence, Z, sigma), _weighted(evidence, [part.W for part in evidence.stretches], sigma)
        y = np.concatenate([own / s for part in evidence.stretches for own, s in zip(part.y, sigma, strict=True)])
        length = np.linalg.norm(weighted, axis=0)
        seen = length > 1e-12 * np.max(length)
        Q = _basis(weighted[:, seen] / length[seen], self.tolerance)
        every = np.arange(evidence.base.rank)
        projected = RowGroup("instruments", every, np.column_stack([Q.T @ W, Q.T @ y]), evidence.rows)
        solution = solve(Regression(evidence.base, (projected,)), np.ones(1), active, self.tolerance)
        kept = W[:, solution.solved] / np.linalg.norm(W[:, solution.solved], axis=0)
        smallest = np.linalg.svd(kept, compute_uv=False)[-1]
        self.strength_ = float(np.linalg.svd(Q.T @ kept, compute_uv=False)[-1] / smallest) if smallest > 0.0 else 0.0
        return solution

    def _influence(self, evidence: Regression, Z: list[list[Array]], sigma: Array, solution: Solution) -> list[list[Array]]:
        """Return the influence of every row on the solved parameters, (W^T P W)^-1 W^T Z (Z^T Z)^-1 z."""
        weighted, W = _weighted(evidence, Z, sigma), _weighted(evidence, [part.W for part in evidence.stretches], sigma)
        ZZ, ZW = weighted.T @ weighted, weighted.T @ W
        size = np.sqrt(np.diag(ZZ))
        size[size == 0.0] = 1.0
        first = np.linalg.lstsq(ZZ / np.outer(size, size), ZW[:, solution.solved] / size[:, None], rcond=1e-14)[0]
        A = first.T / size  # W^T Z (Z^T Z)^-1
        covariance = solution.covariance()[np.ix_(solution.solved, solution.solved)]
        return [[full @ (A.T @ covariance) for full in placed(evidence, own, sigma**2)] for own in Z]

    def _motion(self, evidence: Regression, i: int, part: Stretch) -> Motion:
        """Return the motion of the instruments of a stretch."""
        if isinstance(self.instruments, Motion):
            if len(evidence.stretches) > 1:
                raise IdentificationError("IV: one motion of instruments was given for several logs; give a function instead")
            return resampled(self.instruments, part.motion.t)
        if callable(self.instruments):
            return resampled(self.instruments(i, part), part.motion.t)
        if self.instruments == "reference":
            if part.reference is None:
                raise IdentificationError(
                    "IV: the log has no reference; log it as q_ref, give its motion as instruments=, or use "
                    "instruments='periods' with period="
                )
            return part.reference
        if self.instruments == "periods":
            return other_periods(evidence, part, self.period)
        raise IdentificationError(
            f"IV: instruments is {self.instruments!r}; it must be 'reference', 'periods', a Motion or a function"
        )


def _weighted(evidence: Regression, rows: Sequence[Sequence[Array]], sigma: Array) -> Array:
    """Return rows of all logs and groups on all base parameters, divided by the deviations of the groups."""
    return np.vstack([full for own in rows for full in placed(evidence, own, sigma)])


def _basis(Z: Array, tolerance: float) -> Array:
    """Return an orthonormal basis of the columns of Z."""
    Q, R, _ = scipy.linalg.qr(Z, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(R))
    return np.asarray(Q[:, : int(np.count_nonzero(diagonal > tolerance * diagonal[0]))])


def resampled(motion: Motion, t: Array) -> Motion:
    """Return a motion at other times within it, by cubic Hermite curves."""
    if len(motion) == t.size and np.allclose(motion.t, t, rtol=0.0, atol=1e-9):
        return motion
    slack = 1.5 * (motion.t[-1] - motion.t[0]) / (len(motion) - 1)
    if t[0] < motion.t[0] - slack or t[-1] > motion.t[-1] + slack:
        raise IdentificationError(
            f"the motion of the instruments lasts from {motion.t[0]:g} to {motion.t[-1]:g} s, the log from {t[0]:g} to "
            f"{t[-1]:g} s; it must cover the log"
        )
    return Motion(t, *(scipy.interpolate.CubicSpline(motion.t, x)(t) for x in (motion.q, motion.v, motion.a)))


def other_periods(evidence: Regression, part: Stretch, period: float | None) -> Motion:
    """Return at every time the mean of the motion one or more whole periods away, with independent noise."""
    if period is None or not period > 0.0:
        raise IdentificationError(f"IV: period is {period}; give the period of the motion in s for instruments='periods'")
    m, step = part.measured, 1.0 / part.rate
    shift = period / step
    if not 0.5 < shift <= 0.5 * len(m) + 0.05 or abs(shift - round(shift)) > 0.05 or len(m) < 2 * round(shift):
        raise IdentificationError(
            f"IV: a period of {period:g} s must be a whole number of samples ({step:g} s) and be in the log at least twice; "
            f"the log has {len(m) * step / period:.3g} periods; resample= makes it fit"
        )
    n = round(shift)
    phase = np.arange(len(m)) % n
    count = np.bincount(phase, minlength=n)[phase] - 1
    if np.any(count == 0):  # the end of an incomplete last period uses all periods available
        raise IdentificationError(
            f"IV: some phases of the motion are in the log only once; it needs two periods of {period:g} s"
        )
    mean = []
    for x in (m.q, m.v, m.a):
        total = np.zeros((n, x.shape[1]))
        np.add.at(total, phase, x)
        mean.append((total[phase] - x) / count[:, None])
    return robot_motion(evidence.mechanism, Motion(m.t, *mean))
