"""Robots of one type as a random effect: nominal parameters, their spread, and who deviates.

    beta_r = mu + B x_r + u_r,  u_r ~ N(0, T),        evidence of robot r:  H_r beta_r = h_r + noise of covariance H_r

x_r are temperature and load where they are known. mu, B and T maximise the likelihood by expectation and maximisation, in
the form of normal equations, so that a robot that shows some parameters only badly, or not at all, needs no special case.
Robots far out weigh less (as under Student's t), and those that deviate are left out of T. A change d of standard parameter p
moves beta by k_p d (k_p: column of K); with S_r = H_r^-1 + T its score and deviation are

    z_p = k_p^T S^-1 (beta_r - mu) / sqrt(k_p^T S^-1 k_p),      d_p = z_p / sqrt(k_p^T S^-1 k_p).

z is centred and scaled by what the fleet shows; `limit_of` holds the stated rate of false alarms over all robots and
parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError
from dynident.fleet.results import Deviation, FleetType, RobotEstimate
from dynident.friction import term_of
from dynident.identify import BaseParameters, Population, recover_standard
from dynident.parallel import one_core

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

FEWEST = 5  # robots: fewer tell no spread
MANY = 50  # robots from which on the fleet's own scatter of z is trusted also where it is below 1
STEPS, CONVERGED = 60, 0.01
FREEDOM = 5.0  # of Student's t that weighs robots
ROUNDS = 4  # of leaving out robots that deviate
TOLD = 5  # deviations of one robot at most
ALIKE = 4.0  # difference of z^2 up to which parameters are not told apart
USUAL = 3.0  # deviations up to which a robot's own measure of dependent residuals is taken for its scatter
PARALLEL = 1e-9  # one less the cosine of directions that no data tell apart
RANGE = 2.0  # degree Celsius: a smaller range tells nothing about temperature


@dataclass(frozen=True, eq=False)
class _Fleet:
    """Normal equations of all robots in units in which the mean information of every parameter is 1."""

    H: Array
    h: Array
    unit: Array
    X: Array
    acts: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Effect:
    """Mean of every robot (R, b), coefficients (k, b), spread T; `wider` (R,): T times what the mean's uncertainty adds."""

    mean: Array
    coefficients: Array
    T: Array
    wider: Array

    def precision(self, r: int) -> Array:
        """Return one over the spread of a robot about its mean."""
        return np.asarray(np.linalg.inv(self.T) / self.wider[r], dtype=np.float64)


def questions(robots: Sequence[RobotEstimate], base: BaseParameters, false_alarms: float = 0.01) -> FleetType:
    """Answer what only a fleet can: nominal robot with its spread, who deviates in what, and who drifts.

    Parameters
    ----------
    robots : sequence of RobotEstimate
        Robots of one type.
    base : BaseParameters
        Of that type.
    false_alarms : float
        Probability of one false alarm or more in a fleet in which no robot deviates; mean share of false alarms among the
        robots named when some do.

    Returns
    -------
    FleetType
        The answers; with fewer than five robots a note instead.
    """
    check_rate(false_alarms)
    from dynident.fleet.drift import drifts_of  # noqa: PLC0415 - it stands on this module

    name = robots[0].robot if robots else base.mechanism.name
    names = base.mechanism.parameters.names
    p = len(names)
    if len(robots) < FEWEST:
        note = f"{len(robots)} of {FEWEST} robots that are needed to tell a spread, deviations and a shared prior"
        return FleetType(name, None, names, np.full(p, np.nan), false_alarms=false_alarms, notes=(note,))
    with one_core():
        notes: list[str] = []
        fleet = _scaled(robots, base, notes)
        if len(robots) < base.rank:
            notes.append(
                f"{len(robots)} robots tell the spread of {base.rank} parameters only roughly: take deviations as a hint"
            )
        kept = np.ones(len(robots), dtype=bool)
        K = base.regrouping / fleet.unit[:, None]
        for turn in range(ROUNDS):
            # The first turn takes medians only: a robot far out must not hide itself in the spread.
            effect = _estimate(fleet, kept, STEPS if turn else 0)
            z = _scores(fleet, effect, K)
            centre, scale = _calibration(z, kept, robust=turn == 0)
            z = (z - centre) / scale
            largest = np.max(np.abs(z), axis=1)
            limit = limit_of(false_alarms, largest, _directions(K[:, np.any(z != 0.0, axis=0)]))
            outside = largest > limit
            if turn and (np.array_equal(~outside, kept) or np.sum(~outside) < FEWEST):
                break
            if np.sum(~outside) < max(FEWEST, len(robots) // 2):
                continue
            kept = ~outside
        mean = effect.coefficients[0] * fleet.unit
        T = effect.T * np.outer(fleet.unit, fleet.unit)
        population = Population(
            name, base.names, mean, T * (1.0 + 1.0 / max(int(kept.sum()), 1)), len(robots), base.fingerprint()
        )
        nominal = recover_standard(base, mean, np.eye(base.rank)).values
        found: list[Deviation] = []
        for r in np.flatnonzero(outside).tolist():
            found += _explained(fleet, effect, K, r, (centre, scale), limit, robots[r], base, nominal)
        drifts, drift_limit, slopes = drifts_of(robots, base, false_alarms, nominal)
    scores = {robot.serial: float(np.max(np.abs(own))) for robot, own in zip(robots, z, strict=True)}
    return FleetType(
        name,
        population,
        names,
        nominal,
        tuple(sorted(found, key=lambda d: -abs(d.z))),
        drifts,
        limit,
        drift_limit,
        false_alarms,
        scores,
        slopes or _temperature(effect, fleet, base, robots),
        tuple(notes),
    )


def check_rate(false_alarms: float) -> None:
    """Refuse what is no rate of false alarms."""
    if not isinstance(false_alarms, float | int) or not 0.0 < false_alarms < 0.5:
        raise DynidentError(f"false_alarms is {false_alarms!r}; give a probability between 0 and 0.5, such as 0.01")


def limit_of(false_alarms: float, largest: Array, parameters: int) -> float:
    """Return the deviations from which on a robot is named, for the largest |z| (R,) of robots over so many parameters.

    Robots are tested step up [Benjamini1995]: with k robots beyond it the limit is that which one of R / k robots without a
    fault exceeds in any parameter (Sidak) with the stated probability, by Student's t. When no robot deviates that is the
    probability of one false alarm in the fleet; otherwise the mean share of false alarms among the robots named.
    """
    from scipy.special import stdtrit  # noqa: PLC0415 - scipy costs import time

    R = largest.size
    share = false_alarms * np.arange(1, R + 1) / R
    single = -np.expm1(np.log1p(-share) / max(parameters, 1))
    limits = -stdtrit(max(R - 1, 1), single / 2.0)
    beyond = np.flatnonzero(np.sort(largest)[::-1] > limits)
    return float(limits[beyond[-1] if beyond.size else 0])


def _directions(K: Array) -> int:
    """Return in how many directions parameters move beta: those that are parallel have the same z and are one test."""
    unit = K / np.sqrt(np.sum(K**2, axis=0))
    alike = np.abs(unit.T @ unit) > 1.0 - PARALLEL
    return int(np.sum(~np.any(np.tril(alike, -1), axis=1)))


def _scaled(robots: Sequence[RobotEstimate], base: BaseParameters, notes: list[str]) -> _Fleet:
    H, h = np.array([r.information for r in robots]), np.array([r.score for r in robots])
    factor = _own_inflation(np.array([r.inflation for r in robots]))
    H, h = H * factor[:, None, None], h * factor[:, None]
    diagonal = np.einsum("rii->i", H) / len(robots)
    unit = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    names = base.mechanism.parameters.names
    joint_terms = np.array([term_of(name) is not None for name in names])
    acts = [np.ones(base.rank, dtype=bool)]
    columns = [np.ones(len(robots))]
    for label, least, mask in (
        ("temperature", RANGE, np.any((base.regrouping != 0.0) & joint_terms, axis=1)),
        ("payload", 1e-6, np.ones(base.rank, dtype=bool)),
    ):
        x = np.array([getattr(r, label) for r in robots])
        if np.all(np.isfinite(x)) and np.ptp(x) > least and len(robots) >= 2 * FEWEST:
            columns.append((x - np.median(x)) / max(float(np.std(x)), 1e-12))
            acts.append(mask)
            notes.append(f"{label} is compensated, {np.min(x):.3g} to {np.max(x):.3g} over the robots")
    return _Fleet(H * np.outer(unit, unit), h * unit, unit, np.column_stack(columns), np.array(acts))


def _own_inflation(c: Array) -> Array:
    """Return c over the fleet's: a robot's own is an uncertain estimate, and kept only where it is out of the common."""
    usual = float(np.median(c))
    scatter = 1.4826 * float(np.median(np.abs(np.log(c / usual))))
    return np.asarray(np.where(np.abs(np.log(c / usual)) <= USUAL * scatter, c / usual, 1.0))


def _regressed(fleet: _Fleet, m: Array, weights: Array) -> tuple[Array, Array]:
    """Return coefficients (k, b) of the robots' parameters on their covariates, and the mean of every robot."""
    B = np.zeros((fleet.X.shape[1], m.shape[1]))
    root = np.sqrt(weights)[:, None]
    for columns in {tuple(own) for own in fleet.acts.T.tolist()}:
        own = np.all(np.array(columns) == fleet.acts.T, axis=1)
        used = np.flatnonzero(columns)
        B[np.ix_(used, np.flatnonzero(own))] = np.linalg.lstsq(fleet.X[:, used] * root, m[:, own] * root, rcond=None)[0]
    return B, fleet.X @ B


def _estimate(fleet: _Fleet, kept: Flags, steps: int) -> _Effect:
    """Maximise the likelihood of mean and spread over the robots that are kept, beginning with medians."""
    H, h = fleet.H[kept], fleet.h[kept]
    R, b = h.shape
    part = _Fleet(H, h, fleet.unit, fleet.X[kept], fleet.acts)
    ridge = 1e-9 * np.eye(b)
    start = np.linalg.solve(H.sum(axis=0) + R * ridge, h.sum(axis=0))
    weak = 1e-3 * np.eye(b)
    spread = np.linalg.inv(H + weak)
    free = np.asarray(np.einsum("rij,rj->ri", spread, h + weak @ start), dtype=np.float64)
    middle = np.median(free, axis=0)
    found = (1.4826 * np.median(np.abs(free - middle), axis=0)) ** 2
    # What data alone would scatter by is taken off: from above the steps below approach a small spread very slowly.
    T = np.diag(np.maximum(found - np.median(np.einsum("rii->ri", spread), axis=0), 0.02 * found) + 1e-6)
    near = np.sum((free - middle) ** 2 / np.diag(T), axis=1)
    B, mean = _regressed(part, free, (near <= np.median(near)).astype(float))
    for _ in range(steps):
        P = np.linalg.inv(T)
        C = np.linalg.inv(H + P)
        m = np.einsum("rij,rj->ri", C, h + mean @ P)
        u = m - mean
        distance = np.einsum("ri,ij,rj->r", u, P, u) + np.einsum("ij,rji->r", P, C)
        weights = 1.0 / (FREEDOM + distance)
        weights /= weights.mean()  # who counts less than others; the size of T is that of the robots
        B, mean = _regressed(part, m, weights)
        u = m - mean
        S = (np.einsum("r,rij->ij", weights, C) + (u * weights[:, None]).T @ u) / R
        # As many robots as parameters must agree before correlations are believed.
        new = (R * S + b * np.diag(np.diag(S))) / (R + b) + 1e-12 * np.eye(b)
        change = float(np.max(np.abs(np.log(np.diag(new) / np.diag(T)))))
        T = new
        if change < CONVERGED:
            break
    leverage = np.einsum("rk,kl,rl->r", fleet.X, np.linalg.pinv(part.X.T @ part.X), fleet.X)
    return _Effect(fleet.X @ B, B, T, 1.0 + leverage)


def _precision(H: Array, P: Array) -> Array:
    """Return S^-1 = (H^-1 + T)^-1 = H - H (H + T^-1)^-1 H of one robot; H need not be invertible."""
    return np.asarray(H - H @ np.linalg.solve(H + P, H))


def _scores(fleet: _Fleet, effect: _Effect, K: Array) -> Array:
    """Return z of every robot and standard parameter, (R, p); zero where nothing is seen."""
    rows = zip(fleet.H, fleet.h, effect.mean, strict=True)
    return np.array([_score(H, h - H @ mean, effect.precision(r), K)[0] for r, (H, h, mean) in enumerate(rows)])


def _score(H: Array, g: Array, P: Array, K: Array) -> tuple[Array, Array]:
    N = _precision(H, P)
    pull = K.T @ (g - H @ np.linalg.solve(H + P, g))
    size = np.einsum("ip,ij,jp->p", K, N, K)
    seen = np.einsum("ip,ij,jp->p", K, H, K) > 1e-9
    seen &= size > 0.0
    return np.where(seen, pull / np.sqrt(np.where(seen, size, 1.0)), 0.0), np.where(seen, size, 0.0)


def _calibration(z: Array, kept: Flags, robust: bool) -> tuple[Array, Array]:
    """Return middle and scatter of every parameter's z over the fleet; once robots far out are gone, by mean squares."""
    centre = np.median(z[kept], axis=0)
    scale = 1.4826 * np.median(np.abs(z[kept] - centre), axis=0) if robust else np.std(z[kept], axis=0, ddof=1)
    return centre, np.where(scale > (1.0 if kept.sum() < MANY else 0.1), scale, 1.0)


def _explained(
    fleet: _Fleet,
    effect: _Effect,
    K: Array,
    r: int,
    calibration: tuple[Array, Array],
    limit: float,
    robot: RobotEstimate,
    base: BaseParameters,
    nominal: Array,
) -> list[Deviation]:
    """Return the parameters that explain one robot, the best first; each is taken out before the next is sought."""
    centre, scale = calibration
    P, H = effect.precision(r), fleet.H[r]
    g = fleet.h[r] - H @ effect.mean[r]
    found: list[Deviation] = []
    parameters = base.mechanism.parameters
    for _ in range(TOLD):
        raw, size = _score(H, g, P, K)
        z = (raw - centre) / scale
        best = int(np.argmax(np.abs(z)))
        if abs(z[best]) <= limit:
            break
        close = [k for k in np.argsort(-np.abs(z)) if k != best and z[best] ** 2 - z[k] ** 2 < ALIKE]
        change, std = raw[best] / math.sqrt(size[best]), scale[best] / math.sqrt(size[best])
        found.append(
            Deviation(
                robot.serial,
                robot.robot,
                parameters.names[best],
                parameters.units[best],
                float(change),
                float(std),
                float(nominal[best]),
                float(z[best]),
                tuple(parameters.names[k] for k in close[:4]),
            )
        )
        g = g - H @ K[:, best] * change
    return found


def _temperature(effect: _Effect, fleet: _Fleet, base: BaseParameters, robots: Sequence[RobotEstimate]) -> dict[str, float]:
    """Return the change of base parameters per degree from robot to robot, where temperature was compensated."""
    x = np.array([r.temperature for r in robots])
    if fleet.X.shape[1] < 2 or not np.all(np.isfinite(x)) or np.ptp(x) <= RANGE:
        return {}
    slope = effect.coefficients[1] * fleet.unit / float(np.std(x))
    return {name: float(s) for name, s, used in zip(base.names, slope, fleet.acts[1], strict=True) if used}
