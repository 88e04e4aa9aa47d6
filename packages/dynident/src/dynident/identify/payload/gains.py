"""Drive gains from a known load, and the effect of uncertain gains on a fit.

    y_j = (W_j beta + W_lj beta_l) / k_j          y_j: effort by the nominal gain of joint j,  k_j: true over nominal gain

Without a load of known mass, k_j and beta could grow together; beta_l fixes the scale [Gautier2014]. The noise is that of y,
so c_j = 1/k_j multiplies the model and not the measurement. About (beta, c) the equations are linear,

    y_j + c_j W_j beta = [c_j W_j,  W_j beta + W_lj beta_l] (beta, c_j),

rows of the same data, whose stretches of time show the correlation of residuals and the scatter of estimates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.errors import IdentificationError, require
from dynident.identify.base import columns_of
from dynident.identify.fit import Fit
from dynident.identify.payload.load import inverse_of
from dynident.identify.posterior.posterior import at_least_jackknife, inflation, least_squares_left_out
from dynident.identify.regression.factor import RowGroup, triangle, weighted_rows
from dynident.identify.regression.regression import Regression
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import from_com
from dynident.results import Result
from dynident.signals.log import Log
from dynident.signals.quality import note

PASSES, CLOSE = 100, 1e-10
LOOSE = 0.25  # relative deviation above which a gain is not determined
STEP = 1e-4  # of an effort, for the derivative of a fit by a gain


@dataclass(frozen=True, eq=False)
class DriveGains(Result):
    """Drive gains, relative to the nominal gains of the logs."""

    joints: tuple[str, ...]  #: Joints with efforts
    factors: Array  #: (n,), true over nominal gain
    covariance: Array  #: (n, n), covariance of the factors
    values: Array  #: (b,), base parameters of the robot with its load, efforts by the true gains
    sigma: Array  #: (n,), residual of every joint, by its nominal gain [N m or N]
    derived = ("std", "plausible", "findings")

    @property
    def std(self) -> Array:
        """Standard deviation of the factors, (n,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def findings(self) -> tuple[str, ...]:
        """Doubtful results, one sentence each."""
        loose = self.std > LOOSE * self.factors
        if loose.all():
            return ("no gain is determined: the efforts do not show the load; give runs that lift and turn it",)
        return tuple(
            f"the gain of '{joint}' is not determined: give runs in which it lifts or turns the load"
            for joint, unseen in zip(self.joints, loose, strict=True)
            if unseen
        )

    @property
    def plausible(self) -> bool:
        """Whether all gains are determined."""
        return not self.findings

    def __repr__(self) -> str:
        return f"DriveGains({', '.join(f'{j} {k:.4g}' for j, k in zip(self.joints, self.factors, strict=True))})"

    def summary(self) -> str:
        """Return the gains as text. One line per joint."""
        width = max(len(joint) for joint in self.joints)
        lines = ["gain, true over nominal"]
        lines += [f"  {j:<{width}}  {k:.4f} +- {s:.2g}" for j, k, s in zip(self.joints, self.factors, self.std, strict=True)]
        return "\n".join([*lines, *(f"doubtful: {text}" for text in self.findings)])

    def correct(self, log: Log) -> Log:
        """Return a log, read with the nominal gains, with the true ones: `gain` for currents and voltages, scaled torques."""
        require(log, Log, "log")
        known = dict(zip(self.joints, self.factors.tolist(), strict=True))
        factor = np.array([known.get(joint, 1.0) for joint in log.joints])
        if log.gain is not None:
            return replace(log, gain=log.gain * factor)
        return replace(log, effort=log.effort * factor)


def estimate_gains(
    data: Regression,
    mass: float,
    com: ArrayLike | None = None,
    inertia: ArrayLike | None = None,
    name: str = "payload",
) -> DriveGains:
    """Estimate the drive gains together with the robot from runs without and with a load of known mass.

    Parameters
    ----------
    data : Regression
        Result of `payload_regression`, efforts by nominal gains; a tree robot with one motor per joint.
    mass : float
        Mass of the load [kg].
    com : array_like (3,), optional
        Its centre of mass in the frame of the link that carries it [m]; estimated when omitted.
    inertia : array_like (3, 3), optional
        Its inertia about its centre of mass [kg m^2], with `com`; estimated when omitted.
    name : str
        Name of the load.

    Returns
    -------
    DriveGains
        Factors with their uncertainty.
    """
    require(data, Regression, "data")
    if not 1e-6 <= mass <= 1e6:
        raise IdentificationError(f"mass is {mass:g}; give the mass of the load, between 1e-6 and 1e6 kg")
    robot, base = data.mechanism, data.base
    _one_motor_each(robot)
    if com is None and inertia is not None:
        raise IdentificationError("inertia of the load is given without its centre of mass; give com= too, or neither")
    columns = np.array(columns_of(robot, (name,)))
    phi = np.zeros(len(robot.parameters))
    phi[columns] = from_com(mass, np.zeros(3) if com is None else com, np.zeros((3, 3)) if inertia is None else inertia)
    known = 1 if com is None else 4 if inertia is None else 10  # of m, mx my mz, Ixx ... Izz
    load = base.values(phi)
    own = np.isin(base.columns, columns)
    if np.any(load[~own] != 0.0):
        raise IdentificationError(f"'{name}' is not a separate body in the regression data; use payload_regression")
    arm = np.flatnonzero(~own | np.any(base.regrouping[:, columns[known:]] != 0.0, axis=1))  # and the unknown part of the load
    load[arm] = 0.0
    if not np.any(load):
        raise IdentificationError(
            f"the mass of '{name}' is seen only together with its centre of mass or inertia; give com= and inertia= too"
        )
    n, size = len(data.groups), arm.size + len(data.groups)
    x, sigma = np.append(np.zeros(arm.size), np.ones(n)), np.ones(n)
    x[: arm.size] = _solve(_linear(data, arm, load, x), size, sigma)[1][: arm.size]
    for _ in range(PASSES):
        groups = _linear(data, arm, load, x)
        root, new = _solve(groups, size, sigma)
        change = new - x
        x[: arm.size] = new[: arm.size]
        x[arm.size :] *= np.exp(np.clip(change[arm.size :] / x[arm.size :], -0.5, 0.5))  # gains stay positive
        before, sigma = sigma, _residuals(_linear(data, arm, load, x), x, size)
        if np.allclose(before, sigma, rtol=1e-6) and np.max(np.abs(change[arm.size :])) < CLOSE:
            break
    groups = _linear(data, arm, load, x)
    covariance = (root @ root.T) * inflation(groups, x, sigma)[0]
    covariance = at_least_jackknife(covariance, least_squares_left_out(groups, size, sigma, np.arange(size)))
    values, inverse = load.copy(), x[arm.size :]
    values[arm] = x[: arm.size]
    spread = covariance[arm.size :, arm.size :] / np.outer(inverse**2, inverse**2)  # of k = 1 / inverse
    return DriveGains(tuple(group.name for group in data.groups), 1.0 / inverse, spread, values, sigma)


def _linear(data: Regression, arm: NDArray[np.int64], load: Array, x: Array) -> list[RowGroup]:
    """Return the data about (beta, c) near a value of them, with the same stretches of time."""
    place = np.full(data.base.rank, -1)
    place[arm] = np.arange(arm.size)
    beta = load.copy()
    beta[arm] = x[: arm.size]
    result = []
    for j, group in enumerate(data.groups):
        k, c = group.columns.size, x[arm.size + j]
        own = np.flatnonzero(place[group.columns] >= 0)
        T = np.zeros((k + 1, own.size + 2))  # from the columns of [W, y]
        T[own, np.arange(own.size)] = c
        T[:k, -2] = beta[group.columns]
        T[own, -1], T[k, -1] = c * beta[group.columns[own]], 1.0
        columns = np.append(place[group.columns[own]], arm.size + j)
        products = T.T @ group.products @ T
        result.append(
            RowGroup(group.name, columns, triangle(group.R @ T), group.count, group.independence, products, group.counts)
        )
    return result


def _solve(groups: list[RowGroup], size: int, sigma: Array) -> tuple[Array, Array]:
    """Return a root of the covariance for independent residuals, and the unknowns of weighted least squares."""
    A = weighted_rows(groups, 1.0 / sigma, size)
    root, _ = inverse_of(A[:, :-1], CLOSE)
    return root, root @ A[:, -1]


def _residuals(groups: list[RowGroup], x: Array, size: int) -> Array:
    out = []
    for group in groups:
        free = max(group.count * group.independence - size / len(groups), 1.0)
        out.append(np.sqrt(max(group.residual(x) / free, 1e-26 * group.effort_square / group.count)))
    return np.array(out)


def _one_motor_each(robot: Mechanism) -> None:
    mixed = [motor.name for motor in robot.actuators if len(motor.coupling) != 1]
    if robot.loops or mixed or len(robot.actuators) != robot.dof:
        raise IdentificationError(
            f"robot '{robot.name}' does not have one motor per joint, so gains cannot be estimated; give them"
        )


def with_gain_uncertainty(estimator: Any, data: Regression, std: float | Mapping[str, float] | DriveGains) -> Fit:
    """Return the fit of a tree robot whose drive gains are uncertain.

        cov = cov_noise + D S D^T,       D: derivatives of the estimate by the logarithms of the gains, S: their covariance

    Parameters
    ----------
    estimator : estimator
        Such as `WLS()`.
    data : Regression
        Regression data to fit.
    std : float, mapping or DriveGains
        Relative deviation of the gains, such as 0.05: one for all, or by joint (0 where not named). `DriveGains` include
        their covariance, for logs corrected by them.
    """
    require(data, Regression, "data")
    names = [group.name for group in data.groups]
    S, text = _relative(std, names)
    fit: Fit = estimator.fit(data).result_
    D = np.zeros((fit.values.size, len(names)))
    for j in np.flatnonzero(np.diag(S)):
        sides = [_refit(estimator, data, int(j), 1.0 + way * STEP) for way in (1.0, -1.0)]
        D[:, j] = (sides[0] - sides[1]) / (2.0 * STEP)
    said = note("gain_deviation", f"deviations of the drive gains are in the covariance: {text}")
    return fit.altered(covariance=fit.covariance + D @ S @ D.T).noted(said)


def _relative(std: float | Mapping[str, float] | DriveGains, names: list[str]) -> tuple[Array, str]:
    """Return the covariance of the logarithms of the gains, (n, n), and the deviations in words."""
    if isinstance(std, DriveGains):
        whole = std.covariance / np.outer(std.factors, std.factors)
        given = dict(zip(std.joints, np.sqrt(np.diag(whole)).tolist(), strict=True))
    else:
        given = dict.fromkeys(names, float(std)) if isinstance(std, int | float) else dict(std)
        whole = np.diag(np.square(np.array(list(given.values()), dtype=np.float64)))
    if large := [value for value in given.values() if value > 1e3]:
        raise IdentificationError(f"the deviation of a gain is {large[0]:g}; give it relative to the gain, as 0.05 for 5 %")
    unknown = [name for name in given if name not in names]
    if unknown or not all(np.isfinite(x) and x >= 0.0 for x in given.values()):
        wrong = f"'{unknown[0]}' is not a joint with efforts" if unknown else "deviations are numbers of at least zero"
        raise IdentificationError(f"std of the gains: {wrong}; the joints are {', '.join(names)}")
    at = [names.index(name) for name in given]
    S = np.zeros((len(names), len(names)))
    S[np.ix_(at, at)] = whole
    return S, ", ".join(f"{name} {100 * x:.3g} %" for name, x in given.items() if x > 0.0)


def _refit(estimator: Any, data: Regression, j: int, factor: float) -> Array:
    """Return the base parameters with the efforts of one joint scaled."""
    groups = []
    for i, group in enumerate(data.groups):
        scale = np.ones(group.R.shape[1])
        scale[-1] = factor if i == j else 1.0
        products = group.products * scale[:, None] * scale
        groups.append(
            RowGroup(group.name, group.columns, group.R * scale, group.count, group.independence, products, group.counts)
        )
    values: Array = estimator.fit(replace(data, groups=tuple(groups))).result_.values
    return values
