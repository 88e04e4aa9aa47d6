"""Drive gains from a known load, and what a gain that is not known exactly does to a fit.

    y_j = (W_j beta + W_lj beta_l) / k_j          y_j: effort by the nominal gain of joint j,  k_j: true over nominal gain

Without a load of known mass, k_j and beta could grow together; beta_l fixes the scale [Gautier2014]. The noise is that of y,
so 1/k_j multiplies the model and not the measurement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import IdentificationError, require
from dynident.identify.base import columns_of
from dynident.identify.factor import RowGroup
from dynident.identify.fit import Fit
from dynident.identify.regression import Regression
from dynident.mechanism import Mechanism, from_com
from dynident.results import Result
from dynident.signals import Log

Array = NDArray[np.float64]

PASSES, CLOSE = 100, 1e-10
STEP = 1e-4  # of an effort, for the derivative of a fit by a gain


@dataclass(frozen=True, eq=False)
class DriveGains(Result):
    """Drive gains, relative to those that the logs were read with.

    Parameters
    ----------
    joints : tuple of str
        Joints with efforts.
    factors : ndarray, (n,)
        True over nominal gain.
    covariance : ndarray, (n, n)
        Of the factors.
    values : ndarray, (b,)
        Base parameters of the robot with its load, efforts by the true gains.
    sigma : ndarray, (n,)
        Residual of every joint, by its nominal gain [N m or N].
    """

    joints: tuple[str, ...]
    factors: Array
    covariance: Array
    values: Array
    sigma: Array
    derived = ("std",)

    @property
    def std(self) -> Array:
        """Standard deviation of the factors, (n,)."""
        return np.sqrt(np.diag(self.covariance))

    def __repr__(self) -> str:
        return f"DriveGains({', '.join(f'{j} {k:.4g}' for j, k in zip(self.joints, self.factors, strict=True))})"

    def summary(self) -> str:
        """Return the gains as text. One line per joint."""
        width = max(len(joint) for joint in self.joints)
        lines = ["gain, true over nominal"]
        lines += [f"  {j:<{width}}  {k:.4f} +- {s:.2g}" for j, k, s in zip(self.joints, self.factors, self.std, strict=True)]
        return "\n".join(lines)

    def correct(self, log: Log) -> Log:
        """Return a log with the true gains.

        Parameters
        ----------
        log : Log
            Log whose channels are named after the joints, read with the nominal gains.

        Returns
        -------
        Log
            The same, with `gain` set for currents and voltages, efforts scaled for torques.
        """
        require(log, Log, "log")
        known = dict(zip(self.joints, self.factors.tolist(), strict=True))
        factor = np.array([known.get(joint, 1.0) for joint in log.joints])
        if log.gain is not None:
            return replace(log, gain=log.gain * factor)
        return replace(log, effort=log.effort * factor)


def estimate_gains(
    evidence: Regression,
    mass: float,
    com: ArrayLike = (0.0, 0.0, 0.0),
    inertia: ArrayLike | None = None,
    name: str = "payload",
) -> DriveGains:
    """Estimate the drive gains together with the robot from runs without and with a load of known mass.

    Parameters
    ----------
    evidence : Regression
        Of `payload_regression`, efforts by nominal gains; a tree robot with one motor per joint.
    mass : float
        Mass of the load [kg].
    com : array_like, (3,)
        Its centre of mass in the frame of the link that carries it [m].
    inertia : array_like (3, 3), optional
        Its inertia about its centre of mass [kg m^2]; a point mass when omitted.
    name : str
        Name of the load.

    Returns
    -------
    DriveGains
        Factors with their uncertainty.
    """
    require(evidence, Regression, "evidence")
    if not 1e-6 <= mass <= 1e6:
        raise IdentificationError(f"mass is {mass:g}; give the mass of the load, between 1e-6 and 1e6 kg")
    robot, base = evidence.mechanism, evidence.base
    _one_motor_each(robot)
    columns = columns_of(robot, (name,))
    phi = np.zeros(len(robot.parameters))
    phi[columns] = from_com(mass, com, np.zeros((3, 3)) if inertia is None else inertia)
    load = base.values(phi)
    own = np.isin(base.columns, columns)
    arm = np.flatnonzero(~own)
    if np.any(load[arm] != 0.0):
        raise IdentificationError(f"the evidence does not know '{name}' apart from the robot; make it with payload_regression")
    blocks = []
    for group in evidence.groups:
        R = np.zeros((group.R.shape[0], base.rank))
        R[:, group.columns] = group.R[:, :-1]
        blocks.append((R[:, arm], R @ load, group.R[:, -1]))
    inverse, sigma = np.ones(len(blocks)), np.ones(len(blocks))
    beta, covariance = np.zeros(arm.size), np.zeros((0, 0))
    for _ in range(PASSES):
        rows, right = [], []
        for j, (W, known, y) in enumerate(blocks):
            model = W @ beta + known
            slope = np.zeros((y.size, len(blocks)))
            slope[:, j] = model
            rows.append(np.hstack([inverse[j] * W, slope]) / sigma[j])
            right.append((y - inverse[j] * model) / sigma[j])
        A, e = np.vstack(rows), np.concatenate(right)
        size = np.linalg.norm(A, axis=0)
        size = np.where(size > 0.0, size, 1.0)
        step = np.linalg.lstsq(A / size, e, rcond=CLOSE)[0] / size
        beta = beta + step[: arm.size]
        inverse = inverse * np.exp(np.clip(step[arm.size :] / inverse, -0.5, 0.5))  # gains stay positive
        root = np.linalg.pinv(A / size, rcond=CLOSE) / size[:, None]
        covariance = (root @ root.T)[arm.size :, arm.size :]
        new = _residuals(evidence, blocks, beta, inverse)
        done = np.allclose(new, sigma, rtol=1e-6) and np.max(np.abs(step[arm.size :])) < CLOSE
        sigma = new
        if done:
            break
    values = load.copy()
    values[arm] = beta
    spread = covariance / np.outer(inverse**2, inverse**2)  # of k = 1 / inverse
    return DriveGains(tuple(group.name for group in evidence.groups), 1.0 / inverse, spread, values, sigma)


def _residuals(evidence: Regression, blocks: list[tuple[Array, Array, Array]], beta: Array, inverse: Array) -> Array:
    out = []
    for group, (W, known, y), c in zip(evidence.groups, blocks, inverse, strict=True):
        free = max(group.count * group.independence - (beta.size + inverse.size) / len(blocks), 1.0)
        rest = float(np.sum((y - c * (W @ beta + known)) ** 2))
        out.append(np.sqrt(max(rest / free, 1e-26 * group.effort_square / group.count)))
    return np.array(out)


def _one_motor_each(robot: Mechanism) -> None:
    mixed = [motor.name for motor in robot.actuators if len(motor.coupling) != 1]
    if robot.loops or mixed or len(robot.actuators) != robot.dof:
        raise IdentificationError(
            f"robot '{robot.name}' does not have one motor per joint, so a joint's effort is not of one gain; give the gains"
        )


def with_gain_uncertainty(estimator: Any, evidence: Regression, std: float | Mapping[str, float]) -> Fit:
    """Fit evidence whose drive gains are known to some relative deviation only, and let the covariance say so.

        cov = cov_noise + sum_j s_j^2 d_j d_j^T,       d_j: derivative of the estimate by the logarithm of gain j

    Parameters
    ----------
    estimator : estimator
        Such as ``WLS()``.
    evidence : Regression
        Evidence; efforts of a tree robot.
    std : float or mapping of str to float
        Relative standard deviation of the gains: 0.05 for five per cent; one for all, or one per joint (0 where not named).

    Returns
    -------
    Fit
        Same estimate, larger covariance.
    """
    require(evidence, Regression, "evidence")
    names = [group.name for group in evidence.groups]
    given = dict.fromkeys(names, float(std)) if isinstance(std, int | float) else dict(std)
    if large := [value for value in given.values() if value > 1e3]:
        raise IdentificationError(f"the deviation of a gain is {large[0]:g}; give it relative to the gain, as 0.05 for 5 %")
    unknown = [name for name in given if name not in names]
    if unknown or not all(np.isfinite(x) and x >= 0.0 for x in given.values()):
        wrong = f"'{unknown[0]}' is not a joint with efforts" if unknown else "deviations are numbers of at least zero"
        raise IdentificationError(f"std of the gains: {wrong}; the joints are {', '.join(names)}")
    fit: Fit = estimator.fit(evidence).result_
    covariance = fit.covariance.copy()
    for j, name in enumerate(names):
        if given.get(name, 0.0) > 0.0:
            sides = [_refit(estimator, evidence, j, 1.0 + way * STEP) for way in (1.0, -1.0)]
            slope = (sides[0] - sides[1]) / (2.0 * STEP)
            covariance += given[name] ** 2 * np.outer(slope, slope)
    text = ", ".join(f"{name} {100 * x:.3g} %" for name, x in given.items() if x > 0.0)
    return replace(
        fit, covariance=covariance, notes=(*fit.notes, f"deviations of the drive gains are in the covariance: {text}")
    )


def _refit(estimator: Any, evidence: Regression, j: int, factor: float) -> Array:
    """Return the base parameters with the efforts of one joint scaled."""
    groups = []
    for i, group in enumerate(evidence.groups):
        R = group.R.copy()
        R[:, -1] *= factor if i == j else 1.0
        groups.append(RowGroup(group.name, group.columns, R, group.count, group.independence))
    values: Array = estimator.fit(replace(evidence, groups=tuple(groups))).result_.values
    return values
