"""Gravity torque of one axis, and the single-axis model.

    tau = J a + Q_a cos q - Q_b sin q + f(v)        [Pagani2022, eqs. 86-94]

`plateau_gravity` fits Q_a and Q_b to the course of the torque WITHIN plateaus, each with its own constant for the
friction at its speed and temperature ([Pagani2022, eq. 84]: P_y = Q_a, P_x = -Q_b). Friction may then depend on anything but
the position. `single_axis` fits everything at once to a whole motion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident.friction import FrictionLaw, Polynomial
from dynident.results import Result
from dynident.signals import Log, prepare
from dynident.signals.dependence import effective_samples
from dynident_lab.testbench.plateaus import Plateaus, SpeedPlateau

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Joint chi-square limit of (Q_a, Q_b) above which gravity is significant: 0.1 % of axes without gravity exceed it.
SIGNIFICANT = 13.8
#: Speeds below this share of the largest one are left out of the single-axis fit.
SLOW = 0.02


@dataclass(frozen=True, eq=False)
class Gravity:
    """Gravity torque ``Q_a cos q - Q_b sin q`` of one axis.

    Parameters
    ----------
    Qa, Qb : float
        Coefficients [N m].
    covariance : ndarray, (2, 2)
        Covariance of (Qa, Qb) [N^2 m^2].
    removed : bool
        Whether gravity is significant and removed.
    """

    Qa: float
    Qb: float
    covariance: Array
    removed: bool
    derived: ClassVar[tuple[str, ...]] = ("std",)

    @property
    def std(self) -> Array:
        """Standard deviations of Qa and Qb [N m]."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def torque(self, q: Array) -> Array:
        """Return the gravity torque [N m] at positions [rad]; zero if not significant."""
        return np.asarray(self.Qa * np.cos(q) - self.Qb * np.sin(q)) if self.removed else np.zeros_like(q)

    def mean(self, plateau: SpeedPlateau) -> tuple[float, float]:
        """Return the mean gravity torque of a plateau and its standard deviation [N m]."""
        if not self.removed:
            return 0.0, 0.0
        x = np.array([np.cos(plateau.q).mean(), -np.sin(plateau.q).mean()])
        return float(x @ (self.Qa, self.Qb)), float(np.sqrt(max(x @ self.covariance @ x, 0.0)))


NO_GRAVITY = Gravity(0.0, 0.0, np.zeros((2, 2)), removed=False)


def plateau_gravity(plateaus: Plateaus | Sequence[SpeedPlateau], joint: str = "") -> Gravity:
    """Fit gravity to the course of the torque within plateaus.

    tau_k(i) - mean tau_k = Q_a [cos q_k(i) - mean] - Q_b [sin q_k(i) - mean] + noise
    """
    items = plateaus.items if isinstance(plateaus, Plateaus) else tuple(plateaus)
    good = [p for p in items if not p.saturated]
    if not good:
        raise IdentificationError(
            f"joint '{joint}' has no plateau without saturated torque, so gravity cannot be fitted; reduce speed or load"
        )
    gram, moment, square, rows = np.zeros((2, 2)), np.zeros(2), 0.0, 0
    centred = []
    for p in good:
        X = np.column_stack([np.cos(p.q), -np.sin(p.q)])
        X = X - X.mean(axis=0)
        y = p.tau - p.tau.mean()
        centred.append((X, y))
        gram += X.T @ X
        moment += X.T @ y
        square += float(y @ y)
        rows += y.size
    free = rows - len(good) - 2
    scale = np.sqrt(np.diag(gram))
    if free < 1 or scale.min() <= 1e-6 * np.sqrt(rows) or np.linalg.cond(gram / np.outer(scale, scale)) > 1e10:
        return NO_GRAVITY
    Q = np.linalg.solve(gram, moment)
    residuals = [y - X @ Q for X, y in centred]
    # Torque ripple is correlated in time: the median plateau gives the number of samples per independent one.
    worth = float(np.median([e.size / effective_samples(e) for e in residuals]))
    variance = sum(float(e @ e) for e in residuals) / free * worth
    covariance: Array = np.asarray(variance * np.linalg.inv(gram), dtype=np.float64)
    statistic = float(Q @ np.linalg.solve(covariance, Q)) if variance > 0.0 else np.inf
    return Gravity(float(Q[0]), float(Q[1]), covariance, removed=bool(statistic > SIGNIFICANT and np.any(Q != 0.0)))


@dataclass(frozen=True, eq=False)
class SingleAxis(Result):
    """Identified model of one axis."""

    joint: str  # Name of the joint
    names: tuple[str, ...]  # Parameters: ``J, Qa, Qb`` and the linear parameters of the friction law
    units: tuple[str, ...]  # Their units
    values: Array  # Estimates
    std: Array  # Standard deviations
    relative: float  # ``||e|| / ||tau||`` of the samples in motion; a training error, not a validation
    condition: float  # Condition number of the scaled regressor

    def __getitem__(self, name: str) -> float:
        return float(self.values[self.names.index(name)])

    def summary(self) -> str:
        """Return the parameters as text, one line each."""
        rows = zip(self.names, self.values, self.std, self.units, strict=True)
        head = f"single axis {self.joint}: training error {100 * self.relative:.2f} %, condition {self.condition:.3g}"
        return "\n".join([head, *(f"  {n:4} {x:12.5g} +- {s:.2g} {u}" for n, x, s, u in rows)])

    def plot(self) -> Figure:
        """Draw the parameters with their standard deviations."""
        from dynident_lab.testbench.plots import plot_values  # noqa: PLC0415 - matplotlib is an extra

        return plot_values(self.names, self.values, self.std, f"single axis {self.joint}")


def single_axis(log: Log, joint: str, law: FrictionLaw | None = None, **options: object) -> SingleAxis:
    """Fit inertia, gravity and friction of one axis to a whole motion [Pagani2022, eqs. 90-94]."""
    law = law or Polynomial()
    if law.shape:
        raise IdentificationError(
            f"law '{law.name}' has shape parameters {', '.join(law.shape)}, which single_axis does not fit; use "
            "dynident.identify.friction"
        )
    prepared = prepare(log.select([joint]), **options)  # type: ignore[arg-type]
    q, v, a = prepared.motion.q[:, 0], prepared.motion.v[:, 0], prepared.motion.a[:, 0]
    # Near rest the sign of the speed is uncertain: the filter smooths the jump of friction.
    smear = 2 * int(np.ceil(0.5 * prepared.rate / prepared.cutoff.frequency)) + 1
    slow = (np.abs(v) <= SLOW * np.abs(v).max()).astype(np.float64)
    moving = np.convolve(slow, np.ones(smear), mode="same") < 0.5
    W = np.column_stack([a, np.cos(q), -np.sin(q), law.columns(v)])[moving]
    tau = prepared.effort[moving, 0]
    length = np.linalg.norm(W, axis=0)
    names = ("J", "Qa", "Qb", *law.linear)
    blind = [n for n, size in zip(names, length, strict=True) if size == 0.0]
    if blind or W.shape[0] <= W.shape[1]:
        what = f"nothing excites {', '.join(blind)}" if blind else f"{W.shape[0]} rows are too few"
        raise IdentificationError(f"single-axis model of joint '{joint}': {what}; move it longer, at several speeds")
    condition = float(np.linalg.cond(W / length))
    solution = np.linalg.lstsq(W / length, tau, rcond=None)[0]
    e = tau - (W / length) @ solution
    variance = float(e @ e) / (W.shape[0] - W.shape[1]) * e.size / effective_samples(e)
    std = np.sqrt(variance * np.diag(np.linalg.pinv((W / length).T @ (W / length)))) / length
    units = ("kg m^2", "N m", "N m", *(f"N m (s/rad)^{k}" for k in range(len(law.linear))))
    if not isinstance(law, Polynomial):
        units = (*units[:3], *("N m" for _ in law.linear))
    relative = float(np.linalg.norm(e) / np.linalg.norm(tau))
    return SingleAxis(joint, names, units, solution / length, std, relative, condition)
