"""Weighted least squares with a prior whose strength the data choose.

    minimise  sum_g ||W_g K phi - tau_g||^2 / (c_g sigma_g^2) + sum_k x_k^2 / s_f(k)^2,      phi = phi0 + d x

c_g is the variance inflation due to correlated residuals, s_f the scale of a family. The scales maximise the
marginal likelihood of the data, by MacKay's fixed point

    s_f^2 = (sum x_k^2 + h_f) / (gamma_f + h_f),        gamma_f = sum (1 - var(x_k) / s_f^2),

the number of well determined parameters. h_f is the weight of the assumption that d is the right size, in observations: one for
bodies; nearly zero for joint terms, whose d is only a bound. With good data the second sum is negligible; where the data
determine nothing, x stays at zero and phi at the description.

The prior is the description, in units of the robot itself.

    phi = phi0 + d x,        x_k ~ N(0, s_f^2) for every parameter k of a family f

d are plausible errors of the parameters: m, m r and m r^2 of every body (r: distance of its mass from its origin), and for
friction and rotor terms the value that explains all of a joint's torque. The scales s_f, one per family, are estimated from
the data.

All friction of a joint is one family, and its offset belongs to it: friction that differs between the directions and takes
energy in both has an offset between -fc and fc, so the offset's unit is fc / sqrt(3), the deviation of a uniform distribution.
A joint that moves in one direction only shows their sum. In separate families one of them would absorb the sum, with a
deviation that is too small.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident.files import read_toml
from dynident.friction.terms import TERMS
from dynident.identify.base import BaseParameters, joint_terms
from dynident.identify.regression.factor import FEWEST_BLOCKS, FEWEST_ROWS, RowGroup, triangle, weighted_rows
from dynident.identify.regression.regression import Regression
from dynident.mechanism.loop_closures import is_loop_closures
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import Parameters, natural_spread
from dynident.results import Result

Value = float | tuple[float, float]
"""A number, or a number with its standard deviation."""

DESCRIBED, UNDESCRIBED = "bodies of the description", "bodies without a description"
FRICTION, OTHER = "friction and offsets", "other terms"
ASYMMETRY = 3.0**-0.5  # offset over friction
EXACT = 1e-4  # relative deviation of a known value that is given without one
CENTRE = 1e-3  # deviation of a known centre of mass [m]
NEGLIGIBLE = 1e-4  # of the first moment that explains all of a joint's torque: robot bodies are heavier
BEYOND = 1e9  # no mass [kg] and no distance [m] of a robot


@dataclass(frozen=True)
class Knowledge:
    """Knowledge about the bodies in addition to their description.

    Examples
    --------
    >>> Knowledge(masses={"forearm": (3.2, 0.05)}, without=("cable",)).without
    ('cable',)
    """

    #: Weighed masses by body [kg], with their standard deviation where it is not negligible
    masses: Mapping[str, Value] = field(default_factory=dict)
    total_mass: Value | None = None  #: Mass of all moving bodies together [kg]
    #: Centres of mass in the link frame [m]; known to a millimetre
    centres: Mapping[str, Sequence[float]] = field(default_factory=dict)
    without: Sequence[str] = ()  #: Bodies without separate parameters: too light, or part of another body
    #: Distribution over robots of the type: for little data, a better prior than the description
    population: Population | None = None
    #: Values of joint terms and friction laws before these data, by parameter, if the robot holds later ones
    terms: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for body, mass in self.masses.items():
            _pair(mass, f"the mass of '{body}'", 0.0)
        if self.total_mass is not None:
            _pair(self.total_mass, "the total mass", 0.0)

    @classmethod
    def from_sidecar(cls, path: str | os.PathLike[str]) -> Knowledge:
        """Read the table [known] of a sidecar."""
        table = {} if is_loop_closures(path) else read_toml(path, "the sidecar", IdentificationError).get("known", {})
        if not isinstance(table, dict):
            raise IdentificationError(f"sidecar '{path}': known is {table!r}; write it as a table [known]")
        fields = {"masses": dict, "total_mass": (int, float, list), "centres": dict, "without": list}
        for key, value in table.items():
            if key not in fields:
                raise IdentificationError(
                    f"sidecar '{path}': unknown key '{key}' in [known]; known keys are {', '.join(fields)}"
                )
            if not isinstance(value, fields[key]) or isinstance(value, bool):  # type: ignore[arg-type]
                raise IdentificationError(
                    f"sidecar '{path}': {key} in [known] is {value!r}; see the documentation of the sidecar"
                )
        return cls(**table)


@dataclass(frozen=True, eq=False)
class Prior:
    """The prior: description, units, families, and rows of further knowledge."""

    mean: Array  # phi0 and d
    unit: Array  # phi0 and d
    families: tuple[str, ...]  # Name of the families
    family: NDArray[np.int64]  # Family of every parameter; -1 for one that is held at its mean
    rows: Array  # rows phi = values, in units of their standard deviation
    values: Array  # rows phi = values, in units of their standard deviation


def prior_of(regression: Regression, known: Knowledge | None = None) -> Prior:
    """Return the prior of a robot, with the units of its joint terms from the size of its torques."""
    robot = regression.mechanism
    known = known or Knowledge()
    bodies, names = robot.tree.bodies, robot.parameters.names
    inertial = robot.tree.inertias.size
    mean, unit = robot.parameters.values.copy(), natural_spread(robot)
    largest = _largest(regression)
    mass = robot.tree.inertias.reshape(-1, 10)[:, 0]
    silent = not np.any(mass) or _says_nothing(unit[:inertial], largest[:inertial])
    label: list[str] = []
    for m in mass:
        label += 10 * [DESCRIBED if m > 0.0 and not silent else UNDESCRIBED]
    terms = joint_terms(robot)
    for k, term in terms.items():
        alike = [largest[i] for i, other in terms.items() if other is term and largest[i] > 0.0]
        if alike:  # a joint that did not move is assumed to be like those that did
            unit[k] = largest[k] if largest[k] > 0.0 else float(np.median(alike))
        if term is None:
            label.append(OTHER)
        elif term.friction:
            label.append(FRICTION)
        elif term is TERMS["off"]:
            label.append(FRICTION)
            unit[k] *= ASYMMETRY
        else:
            label.append(term.meaning)
    if silent:
        _units_of_data(unit[:inertial], largest[:inertial])
    for name, value in known.terms.items():
        if name not in names[inertial:]:
            raise IdentificationError(f"terms of the knowledge name '{name}'; the robot has {', '.join(names[inertial:])}")
        mean[names.index(name)] = value
    families = tuple(dict.fromkeys(label))
    family = np.array([families.index(each) for each in label], dtype=np.int64)
    family[robot.known_columns] = -1
    for body in known.without:
        own = _columns(robot, body)
        mean[own], family[own] = 0.0, -1
    rows, values = _known_rows(robot, known, bodies)
    if known.population is not None:
        shown, seen = known.population.rows(regression.base)
        rows, values = np.vstack([rows, shown]), np.append(values, seen)
    return Prior(mean, unit, families, family, rows, values)


def _says_nothing(unit: Array, largest: Array) -> bool:
    """Return whether all described bodies are far too light for these efforts, as placeholders are."""
    moment, most = unit.reshape(-1, 10)[:, 1], largest.reshape(-1, 10)[:, 1:4]
    seen = most > 0.0
    return bool(np.any(seen)) and not np.any(seen & (moment[:, None] > NEGLIGIBLE * most))


def _units_of_data(unit: Array, largest: Array) -> None:
    """Give bodies of a robot without any description the mass that explains all of the torque of the joints they act on.

    Masses decrease along an arm, and so do the torques of its joints: one mass for all would constrain the first bodies too
    much and the last too little. The size r of the bodies, from the distances between joints, stays.
    """
    phi, most = unit.reshape(-1, 10), largest.reshape(-1, 10)
    r = phi[:, 1] / phi[:, 0]
    moment = np.min(np.where(most[:, 1:4] > 0.0, most[:, 1:4], np.inf), axis=1)  # along the most visible axis
    seen = np.isfinite(moment)
    if not np.any(seen):
        return
    moment = np.where(seen, moment, np.max(moment[seen]))  # the first body may show its inertia only
    mass = moment / r
    phi[:, 0], phi[:, 1:4], phi[:, 4:] = mass, (mass * r)[:, None], (mass * r**2)[:, None]


def _largest(regression: Regression) -> Array:
    """Return for every standard parameter the value that explains all of the torque of the joints it acts on; 0 if unseen."""
    base = regression.base
    torque, column = np.zeros(base.rank), np.zeros(base.rank)
    for group in regression.groups:
        squares = np.sum(group.R[:, :-1] ** 2, axis=0) / max(group.count, 1)
        acting = squares > 0.0
        torque[group.columns[acting]] += group.effort_square / max(group.count, 1)
        column[group.columns] += squares
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(column > 0.0, np.sqrt(torque / column), 0.0)
    result = np.zeros(len(regression.mechanism.parameters))
    for k in range(result.size):  # a term that is regrouped acts through the columns of others
        through = np.abs(base.regrouping[:, k])
        used = (through > 0.0) & (each > 0.0)
        result[k] = float(np.min(each[used] / through[used])) if np.any(used) else 0.0
    return result


def _columns(robot: Mechanism, body: str) -> NDArray[np.int64]:
    if body not in robot.tree.bodies:
        raise IdentificationError(f"there is no body '{body}' that moves; the bodies are {', '.join(robot.tree.bodies)}")
    first = 10 * robot.tree.bodies.index(body)
    return np.arange(first, first + 10)


def _pair(value: Value, what: str, smallest: float) -> tuple[float, float]:
    """Return a known number and its deviation, checked."""
    try:
        pair = np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        pair = np.full(1, np.nan)
    if pair.shape not in ((1,), (2,)) or not np.all((pair >= 0.0) & (pair <= BEYOND)):
        raise IdentificationError(
            f"{what} is {value!r}; give a number from 0 to {BEYOND:g} kg, or a number and its standard deviation"
        )
    deviation = float(pair[1]) if pair.size == 2 else EXACT * float(pair[0])
    return float(pair[0]), max(deviation, smallest)


def _known_rows(robot: Mechanism, known: Knowledge, bodies: Sequence[str]) -> tuple[Array, Array]:
    """Return the knowledge as rows phi = values of unit deviation."""
    p = len(robot.parameters)
    rows: list[Array] = []
    values: list[float] = []
    for body, value in known.masses.items():
        mass, deviation = _pair(value, f"the mass of '{body}'", 1e-9)
        row = np.zeros(p)
        row[_columns(robot, body)[0]] = 1.0 / deviation
        rows.append(row)
        values.append(mass / deviation)
    if known.total_mass is not None:
        mass, deviation = _pair(known.total_mass, "the total mass", 1e-9)
        row = np.zeros(p)
        row[0 : 10 * len(bodies) : 10] = 1.0 / deviation
        rows.append(row)
        values.append(mass / deviation)
    for body, centre in known.centres.items():
        own = _columns(robot, body)
        try:
            c = np.asarray(centre, dtype=np.float64)
        except (TypeError, ValueError):
            c = np.full(1, np.nan)
        if c.shape != (3,) or not np.all(np.abs(c) <= BEYOND):
            raise IdentificationError(f"the centre of mass of '{body}' is {centre!r}; give three numbers [m] up to {BEYOND:g}")
        typical = robot.tree.inertias[own[0]] or 1.0
        for axis in range(3):
            row = np.zeros(p)
            row[own[1 + axis]], row[own[0]] = 1.0, -c[axis]
            rows.append(row / (CENTRE * typical))
            values.append(0.0)
    return np.array(rows).reshape(-1, p), np.array(values)


SHARPEST = 1e-12  # lower bound of the eigenvalues of the scaled covariance


@dataclass(frozen=True, eq=False)
class Population(Result):
    """Base parameters of robots of one type: mean and spread.

    `dynident_lab.fleet.identify` finds it; ``MAP(known=Knowledge(population=...))`` uses it for a robot with little data.
    """

    robot: str  #: Name of the type
    names: tuple[str, ...]  #: Base parameters
    mean: Array  #: (b,), base parameters of the nominal robot
    covariance: Array  #: (b, b), covariance of a new robot's parameters about the mean
    robots: int  #: Number of identified robots
    fingerprint: Array  #: Fingerprint of the robot's geometry (`BaseParameters.fingerprint`)

    @property
    def spread(self) -> Array:
        """Standard deviation of each base parameter from robot to robot, (b,)."""
        return np.asarray(np.sqrt(np.clip(np.diag(self.covariance), 0.0, None)))

    def summary(self) -> str:
        """Return the nominal parameters with their spread as text. One line per base parameter."""
        width = max(map(len, self.names), default=0)
        rows = zip(self.names, self.mean, self.spread, strict=True)
        lines = [f"{name:<{width}}  {value:>12.5g}  +- {deviation:.3g}" for name, value, deviation in rows]
        return "\n".join([f"{self.robot}: {self.robots} robots, nominal parameters and their spread", *lines])

    def rows(self, base: BaseParameters) -> tuple[Array, Array]:
        """Return the prior as rows of unit deviation about the standard parameters."""
        if base.names != self.names or not base.fits(self.fingerprint):
            raise IdentificationError(
                f"the population of robot '{self.robot}' ({len(self.names)} base parameters) does not match robot "
                f"'{base.mechanism.name}'; use the population of the same type"
            )
        size = np.where(self.spread > 0.0, self.spread, 1.0)
        values, vectors = np.linalg.eigh(self.covariance / np.outer(size, size))
        W = (vectors / np.sqrt(np.maximum(values, SHARPEST * max(values[-1], SHARPEST)))).T / size
        return W @ base.regrouping, W @ self.mean


FLOOR = 1e-6  # of the torque: smaller residuals are not plausible
REWEIGHTINGS = 8
CORRECTED = 2  # re-weighting after which the inflation is corrected by left-out stretches
UNSURE = 0.05  # part of the noise by which errors of left-out stretches may differ for reasons other than parameters
SCALES = 60
CONVERGED = 1e-3
LARGEST, SMALLEST = 1e3, 1e-3  # scales, in units of d
DETERMINED = 0.5  # of the prior deviation: data determine a parameter with a smaller posterior deviation
SIZE_OF_BODIES, SIZE_OF_TERMS = 1.0, 0.01  # h: without the second, a family that the data do not show would have no scale


@dataclass(frozen=True, eq=False)
class Posterior:
    """Estimated parameters with their uncertainty: b base and p standard parameters, one group of rows per joint."""

    values: Array  # base parameters (b,)
    covariance: Array  # of the base parameters (b, b)
    standard: Parameters  # standard parameters that give the same torques
    solved: NDArray[np.bool_]  # estimated individually (b,)
    active: NDArray[np.bool_]  # included in the fit; others were dropped as not essential (b,)
    # E (k, b): the data determine only E beta. Rows of the unit matrix for `solved` parameters; other rows are sums of
    # parameters that these data do not separate; `values` has the sum in one and zero in the others.
    combinations: Array
    sigma: Array  # residual standard deviation of each joint [N m or N]
    condition: float  # condition number of the scaled, weighted regression
    estimator: str  # name and settings of the estimator
    training_relative: float = float("nan")  # ||e|| / ||tau|| on the data it was fitted to; not a validation
    free: Array | None = None  # base parameters of least squares alone, without prior and physical consistency (b,)
    unconstrained: Array | None = None  # base parameters with the prior but without physical consistency (b,)
    free_relative: float = float("nan")  # training error of `free` ...
    description_relative: float = float("nan")  # ... and of the untouched description
    standard_std: Array | None = None  # standard deviation of the standard parameters, where a prior makes it finite (p,)
    determined: NDArray[np.bool_] | None = None  # standard parameters that the data determine (p,)
    scales: Mapping[str, float] = field(default_factory=dict)  # distance of families of parameters from the description
    inflation: Array | None = None  # variance inflation due to correlated residuals, per joint
    training_std: Array | None = None  # RMS share of the parameters in `Prediction.std` over the training data, per joint
    marginal_std: Array | None = None  # deviations of the base parameters that count held friction shapes or pruning (b,)
    calibration: Array | None = None  # factor with which bands hold 95 % of the left-out stretches, per joint
    training_columns: Array | None = None  # RMS of the columns w_k over the training data, per joint (groups, b)
    growing: Array | None = None  # share of the residual variance that grows with the terms of the model, per joint
    speeds: Mapping[str, float] = field(default_factory=dict)  # RMS speed of joints in the training data
    before: Array | None = None  # base parameters of the description, where it lacks the numbers of friction laws (b,)


@dataclass(frozen=True, eq=False)
class MapEstimate:
    """Estimate in the units of the prior."""

    prior: Prior  # The prior
    scale: Array  # s of every parameter; 0 for one that is held
    x: Array  # (phi - phi0) / d, without physical consistency
    root: Array  # Triangle T and t: the cost is ||T x - t||^2 up to a constant
    target: Array  # Triangle T and t: the cost is ||T x - t||^2 up to a constant
    sigma: Array  # Residual standard deviation of a row, in the sense of `group_sigma`
    inflation: Array  # c_g
    left_out: Array  # Base parameters of the fit without each of the K stretches of time
    left_out_covariance: Array  # ... and their covariance, (K, b, b)
    held_out: Array  # Root mean square of the residuals of stretches that were left out of the fit, per row
    scales: dict[str, float]  # s_f by family

    @property
    def free(self) -> NDArray[np.bool_]:
        """Estimated parameters; the others are held."""
        return self.scale > 0.0

    def standard(self, x: Array | None = None) -> Array:
        """Return phi of x."""
        return np.asarray(self.prior.mean + self.prior.unit * (self.x if x is None else x))

    def covariance(self) -> Array:
        """Return the covariance of phi, (p, p)."""
        free = np.flatnonzero(self.free)
        inverse = self.prior.unit[free][:, None] * np.linalg.inv(self.root[np.ix_(free, free)])
        result = np.zeros((self.x.size, self.x.size))
        result[np.ix_(free, free)] = inverse @ inverse.T
        return result


def estimate(regression: Regression, prior: Prior, sigma: Array) -> MapEstimate:
    """Return the posterior of the standard parameters, starting from the residual deviations `sigma` of a free fit."""
    base = regression.base
    floor = np.array([FLOOR * np.sqrt(g.effort_square / max(g.count, 1)) for g in regression.groups])
    floor = np.where(floor > 0.0, floor, max(float(floor.max(initial=0.0)), 1e-12))
    sigma = np.maximum(sigma, floor)
    held = prior.family < 0
    M = base.regrouping * prior.unit * ~held
    beta0 = base.values(prior.mean)
    extra = prior.rows * prior.unit * ~held
    rest = prior.values - prior.rows @ prior.mean
    s2 = np.ones(len(prior.families))
    h = np.array([SIZE_OF_BODIES if each in (DESCRIBED, UNDESCRIBED) else SIZE_OF_TERMS for each in prior.families])
    beta, correction = None, 1.0
    for turn in range(REWEIGHTINGS):
        c = np.ones(len(sigma)) if beta is None else inflation(regression.groups, beta, sigma, correction)
        T = triangle(weighted_rows(regression.groups, 1.0 / (sigma * np.sqrt(c)), base.rank))
        A = np.vstack([T[:, :-1] @ M, extra])
        y = np.concatenate([T[:, -1] - T[:, :-1] @ beta0, rest])
        x, s2 = _evidence(A, y, prior.family, s2, h)
        beta = beta0 + M @ x
        previous, sigma = sigma, np.maximum(_sigma(regression, beta, M, A, s2[prior.family], sigma, c, held), floor)
        scale = np.where(held, 0.0, np.sqrt(s2[prior.family]))
        if turn == CORRECTED:
            *_, correction = _left_out(regression, sigma, c, M, beta0, extra, rest, scale)
        elif turn > CORRECTED and np.max(np.abs(sigma / previous - 1.0)) < CONVERGED:
            break
    scale = np.where(held, 0.0, np.sqrt(s2[prior.family]))
    free = np.flatnonzero(~held)
    stacked = np.zeros((A.shape[0] + free.size, x.size + 1))
    stacked[: A.shape[0], :-1], stacked[: A.shape[0], -1] = A, y
    stacked[A.shape[0] :, free] = np.diag(1.0 / scale[free])
    R = triangle(stacked[:, [*free, x.size]])
    root, target = np.eye(x.size), np.zeros(x.size)
    root[np.ix_(free, free)], target[free] = R[: free.size, :-1], R[: free.size, -1]
    betas, spreads, _ = _left_out(regression, sigma, c, M, beta0, extra, rest, scale)
    out = np.sqrt([squares(g, betas[: len(g.counts)]).sum() / max(g.count, 1) for g in regression.groups])
    scales = dict(zip(prior.families, np.sqrt(s2).tolist(), strict=True))
    return MapEstimate(prior, scale, x, root, target, sigma, c, betas, spreads, out, scales)


def _evidence(A: Array, y: Array, family: NDArray[np.int64], s2: Array, h: Array) -> tuple[Array, Array]:
    """Return x and the squared scales of maximum marginal likelihood; `h` is the weight of d per family."""
    U, d, Vt = np.linalg.svd(A, full_matrices=False)
    project = U.T @ y
    free = family >= 0
    member = [np.flatnonzero(family == f) for f in range(s2.size)]
    for _ in range(SCALES):
        s = np.where(free, np.sqrt(s2[family]), 0.0)
        # (A S)(A S)^T + 1 is as small as the number of equations; its singular value decomposition gives mean and variance.
        B = (d[:, None] * Vt) * s
        u, w, vt = np.linalg.svd(B, full_matrices=False)
        x = s * (vt.T @ (w / (w**2 + 1.0) * (u.T @ project)))
        gamma = np.einsum("ik,i->k", vt**2, w**2 / (w**2 + 1.0))
        own, shown = (np.array([float(np.sum(each[m])) for m in member]) for each in (x**2, gamma))
        new = np.clip((own + h) / (shown + h), SMALLEST**2, LARGEST**2)
        change = float(np.max(np.abs(np.log(new / s2))))
        s2 = new
        if change < 2.0 * CONVERGED:
            break
    return x, s2


def _sigma(
    regression: Regression, beta: Array, M: Array, A: Array, s2: Array, sigma: Array, c: Array, held: NDArray[np.bool_]
) -> Array:
    """Return sigma_g^2 = RSS_g / (independent rows - trace of the joint's part of the hat matrix)."""
    s = np.where(held, 0.0, np.sqrt(s2))
    S = A * s
    w, V = np.linalg.eigh(S.T @ S)
    N = (M * s) @ (V / np.sqrt(np.clip(w, 0.0, None) + 1.0))
    result = []
    for group, deviation, inflated in zip(regression.groups, sigma, c, strict=True):
        used = float(np.sum((group.R[:, :-1] @ N[group.columns]) ** 2)) / (deviation**2 * inflated)
        rows = group.count * group.independence
        result.append(np.sqrt(group.residual(beta) / max(rows - used, 0.1 * rows, 1.0)))
    return np.array(result)


def _left_out(
    regression: Regression, sigma: Array, c: Array, M: Array, beta0: Array, extra: Array, rest: Array, scale: Array
) -> tuple[Array, Array, float]:
    """Return the base parameters without each stretch of time, their covariances, and a correction of the inflation.

    The squared errors of left-out stretches consist of noise and the uncertainty of the parameters; the correction is the ratio
    of the actual second part to that of the covariance.
    """
    parts = stretch_products(regression.groups, regression.base.rank, 1.0 / (sigma**2 * c))
    N, E = M * scale, extra * scale
    whole = N.T @ parts[:, :-1, :-1].sum(axis=0) @ N + E.T @ E + np.eye(N.shape[1])
    right = (parts[:, :-1, -1] - parts[:, :-1, :-1] @ beta0) @ N
    total = right.sum(axis=0) + E.T @ rest
    if len(parts) < FEWEST_BLOCKS:
        inverse = N @ np.linalg.inv(whole)
        return np.array([beta0 + inverse @ total] * len(parts)), np.array([inverse @ N.T] * len(parts)), 1.0
    betas, spreads = [], []
    for part, own in zip(parts, right, strict=True):
        others = whole - N.T @ part[:-1, :-1] @ N
        size = 1.0 / np.sqrt(np.maximum(np.diagonal(others), 1.0))  # round-off of large entries may make it singular
        inverse = _solved(others * np.outer(size, size), (N * size).T).T * size
        betas.append(beta0 + inverse @ (total - own))
        spreads.append(inverse @ N.T)
    said = c[0] * float(np.sum(spreads * parts[:, :-1, :-1]))
    if max(group.count for group in regression.groups) < ENOUGH_ROWS:
        return np.array(betas), np.array(spreads), 1.0
    noise = sum(group.count * group.independence for group in regression.groups)
    found = sum(
        float(squares(group, np.array(betas)).sum()) / deviation**2
        for group, deviation in zip(regression.groups, sigma, strict=True)
    )
    correction = max(1.0, (found - noise + UNSURE * noise) / (said + UNSURE * noise))
    return np.array(betas), np.array(spreads), correction


def _solved(A: Array, right: Array) -> Array:
    """Return A^-1 times a matrix of a symmetric A with unit diagonal, by the pseudo-inverse if A is nearly singular."""
    try:
        if np.diagonal(np.linalg.cholesky(A)).min() ** 2 > RANK:
            return np.asarray(np.linalg.solve(A, right))
    except np.linalg.LinAlgError:  # not positive definite
        pass
    return np.asarray(np.linalg.pinv(A, hermitian=True) @ right)


ENOUGH_ROWS = FEWEST_BLOCKS * FEWEST_ROWS  # fewest rows for the correlation of residuals between stretches
RANK = 1e-9  # of a unit diagonal: smaller pivots are round-off
# Quantile of Student's distribution over that of Gauss at two deviations, by powers of 1/nu (Cornish and Fisher's expansion).
STUDENT = (0.9218, 1.4297, 1.53125, 1.25, 1.0)


def inflation(groups: Sequence[RowGroup], beta: Array, sigma: Array, correction: float = 1.0) -> Array:
    """Return c >= 1 of every joint, equal for all, since residuals already weight the joints relative to each other.

    The stretches of a very short log show the scatter of estimates (see `jackknife`) but are too short to show correlation.
    """
    found, expected = 0.0, 0.0
    for group, deviation in zip(groups, sigma, strict=True):
        if len(group.counts) >= FEWEST_BLOCKS and group.count >= ENOUGH_ROWS and group.columns.size:
            own, wanted, _ = scores(group.products, beta[group.columns])
            found, expected = found + own / deviation**2, expected + wanted
    return np.full(len(sigma), max(1.0, correction * found / expected) if expected >= 1.0 else 1.0)


def scores(products: Array, beta: Array, errors: Array | float = 0.0) -> tuple[float, float, float]:
    """Return sum_b g_b^T G^-1 g_b of one joint, and its expectations for two kinds of residuals.

    The first is that of independent residuals of variance 1, the second, sum_b tr(G^-1 G_b E G_b), that of parameters which
    differ from stretch to stretch with the variances E = `errors`.
    """
    G = products[:, :-1, :-1]
    score = G @ beta - products[:, :-1, -1]
    size = np.sqrt(np.diagonal(G.sum(axis=0)))
    size = np.where(size > 0.0, size, 1.0)
    values, vectors = np.linalg.eigh(G.sum(axis=0) / np.outer(size, size))
    kept = values > RANK * values[-1]
    root = vectors[:, kept] / np.sqrt(values[kept]) / size[:, None]  # root root^T = G^-1
    z = score @ root
    each = G @ root
    shares = root.T @ each
    white = float(kept.sum() - np.sum(shares * shares.transpose(0, 2, 1)))
    return float(np.sum(z**2)), white, float(np.sum(np.sum(each**2, axis=(0, 2)) * errors))


def stretch_products(groups: Sequence[RowGroup], b: int, weights: Array) -> Array:
    """Return sum_g weight_g [W, tau]^T [W, tau] of every stretch on all b parameters, (K, b + 1, b + 1)."""
    K = max(len(group.counts) for group in groups)
    total = np.zeros((K, b + 1, b + 1))
    for group, weight in zip(groups, weights, strict=True):
        at = np.append(group.columns, b)
        total[np.ix_(np.arange(len(group.counts)), at, at)] += weight * group.products
    return total


def squares(group: RowGroup, betas: Array) -> Array:
    """Return ||W_b beta_b - tau_b||^2 of every stretch of a joint under its own parameters, (K, b) -> (K,)."""
    full = np.concatenate([betas[:, group.columns], np.full((len(betas), 1), -1.0)], axis=1)
    return np.asarray(np.clip(np.einsum("ki,kij,kj->k", full, group.products, full), 0.0, None))


def jackknife(left_out: Array) -> Array:
    """Return the variances (K - 1)/K sum_b (beta_b - mean)^2 t^2 of estimates without each stretch, (K, b) -> (b,)."""
    K = len(left_out)
    return np.asarray((K - 1) / K * np.sum((left_out - left_out.mean(axis=0)) ** 2, axis=0) * student(K - 1) ** 2)


def student(freedom: float) -> float:
    """Return t, the quantile of Student's distribution over that of Gauss at two deviations."""
    return float(np.polyval(STUDENT, 1.0 / max(freedom, 1.0)))


def at_least_jackknife(covariance: Array, left_out: Array) -> Array:
    """Return the covariance with no deviation below that of the jackknife.

    One number c for all parameters hides that some depend on a few stretches only, such as when motors of a robot with loops
    pass a singularity or a log is a single move; the estimates without each stretch show it.
    """
    if len(left_out) < FEWEST_BLOCKS:
        return covariance
    spread = jackknife(left_out)
    own = np.diag(covariance)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.sqrt(np.where(own > 0.0, np.maximum(1.0, spread / own), 1.0))
    return np.asarray(covariance * np.outer(scale, scale))


def parameter_covariance(regression: Regression, found: MapEstimate) -> Array:
    """Return the covariance of the standard parameters, with the scatter of estimates without each stretch of time.

        var beta_k = C_kk - D_k + max(J_k t(P - 1)^2, (D_k + J_k) / 2 t(2 P - 2)^2),       D = diag(C G C)

    C is the covariance of the base parameters and G the information of the data. D, the variance due to the noise of the data,
    is valid if residuals are equally correlated for all parameters. J, the jackknife, assumes nothing but uses only
    P stretches; those at the same phase of a periodic motion repeat the errors of the model and count as one. If J is
    smaller, residuals alternate and cancel: the mean of both is used, since each may be wrong.
    """
    phi, K = found.covariance(), regression.base.regrouping
    phases = np.unique(max((group.phases for group in regression.groups), key=len), return_inverse=True)[1]
    P = int(phases.max()) + 1
    if P < FEWEST_BLOCKS:
        return phi
    C = K @ phi @ K.T
    W = weighted_rows(regression.groups, 1.0 / (found.sigma * np.sqrt(found.inflation)), len(K))[:, :-1]
    D = np.minimum(np.sum((W @ C) ** 2, axis=0), np.diag(C))  # near the limits of possible bodies C may be the smaller one
    changes = np.zeros((P, len(K)))
    np.add.at(changes, phases, found.left_out - found.left_out.mean(axis=0))
    J = (P - 1) / P * np.sum(changes**2, axis=0)
    wanted = np.maximum(J * student(P - 1) ** 2, 0.5 * (D + J) * student(2 * (P - 1)) ** 2)
    std = np.sqrt(np.diag(C))
    size = np.where(std > 0.0, std, 1.0)
    scale = np.sqrt(1.0 + (wanted - D) / size**2)
    # The distribution of standard parameters given the base parameters does not change.
    follow = _solved(C / np.outer(size, size), K @ phi / size[:, None]) / size[:, None]
    return np.asarray(phi + follow.T @ (C * np.outer(scale, scale) - C) @ follow)


def base_covariance(regression: Regression, found: MapEstimate) -> tuple[Array, NDArray[np.bool_]]:
    """Return the covariance of the base parameters, and the mask of those that the data determine better than the prior."""
    K = regression.base.regrouping
    covariance = K @ parameter_covariance(regression, found) @ K.T
    believed = K**2 @ (found.prior.unit * found.scale) ** 2
    return covariance, np.diag(covariance) < DETERMINED**2 * believed


def least_squares_left_out(groups: Sequence[RowGroup], b: int, sigma: Array, solved: NDArray[np.int64]) -> Array:
    """Return the b parameters of weighted least squares without each stretch of time, (K, b)."""
    parts = stretch_products(groups, b, 1.0 / sigma**2)
    whole = parts.sum(axis=0)
    at = np.ix_(solved, solved)
    result = np.zeros((len(parts), b))
    for k, part in enumerate(parts):
        rest = whole - part
        size = np.sqrt(np.diagonal(rest)[solved])
        size = np.where(size > 0.0, size, 1.0)
        x = np.linalg.lstsq(rest[at] / np.outer(size, size), rest[solved, b] / size, rcond=None)[0]
        result[k, solved] = x / size
    return result
