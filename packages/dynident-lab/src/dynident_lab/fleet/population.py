"""Fleet statistics: nominal robot with its spread, deviating robots with their parameters, drift."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.identify import BaseParameters, Population, recover_standard
from dynident.parallel import one_core
from dynident_lab.fleet.alarms import Alarms, alarms_of, check_rate, normal, own_deviates, probability
from dynident_lab.fleet.drift import drifts_of
from dynident_lab.fleet.effect import FEWEST, RANGE, Effect, Fleet, estimate, scaled, scores
from dynident_lab.fleet.results import Deviation, FleetType, RobotEstimate, alike

Flags = NDArray[np.bool_]

TOLD = 5  # largest number of deviations per robot


def questions(robots: Sequence[RobotEstimate], base: BaseParameters, false_alarms: float = 0.01) -> FleetType:
    """Compute fleet statistics: nominal robot with its spread, deviating robots with their parameters, drift.

    Parameters
    ----------
    robots : sequence of RobotEstimate
        Robots of one type.
    base : BaseParameters
        Base parameters of that type.
    false_alarms : float
        Probability of one false alarm or more in a fleet in which no robot deviates; mean share of false alarms among the
        robots named when some do.

    Returns
    -------
    FleetType
        The answers; with fewer than five robots a note instead.
    """
    check_rate(false_alarms)
    name = robots[0].robot if robots else base.mechanism.name
    names = base.mechanism.parameters.names
    p = len(names)
    if len(robots) < FEWEST:
        note = f"{len(robots)} of the {FEWEST} robots required for spread, deviations and a shared prior"
        return FleetType(name, None, names, np.full(p, np.nan), false_alarms=false_alarms, notes=(note,))
    with one_core():
        notes: list[str] = []
        fleet = scaled(robots, base, notes)
        K = base.regrouping / fleet.unit[:, None]
        alarms = alarms_of(fleet, K, false_alarms)
        effect, kept = alarms.effect, int((~alarms.named).sum())
        if not alarms.majority:
            notes.append(f"at least half of the {len(robots)} robots differ from each other; at most half are reported")
        mean = effect.coefficients[0] * fleet.unit
        T = effect.T * np.outer(fleet.unit, fleet.unit)
        population = Population(name, base.names, mean, T * (1.0 + 1.0 / kept), len(robots), base.fingerprint())
        nominal = recover_standard(base, mean, np.eye(base.rank)).values
        teller = _Teller(fleet, alarms, K, base, nominal)
        found = {r: teller.named(r, robots[r]) for r in np.flatnonzero(alarms.named).tolist()}
        largest = np.max(np.abs(alarms.z), axis=1)
        near = [r for r in np.argsort(-largest).tolist() if probability(largest[r], alarms.tests) <= false_alarms]
        watched = [teller.watched(r, robots[r]) for r in near if not alarms.named[r]]
        drifts, drift_limit, slopes = drifts_of(robots, base, false_alarms, nominal)
    scored = {robot.serial: float(z) for robot, z in zip(robots, largest, strict=True)}
    return FleetType(
        name,
        population,
        names,
        nominal,
        tuple(sorted((d for own in found.values() for d in own), key=lambda d: -abs(d.z))),
        drifts,
        alarms.limit,
        drift_limit,
        false_alarms,
        scored,
        slopes or _temperature(effect, fleet, base, robots),
        tuple(notes),
        tuple(watched),
        alarms.tests,
        alarms.detectable,
        base.mechanism.parameters.units,
    )


class _Teller:
    """Finds the parameters in which robots differ."""

    def __init__(self, fleet: Fleet, alarms: Alarms, K: Array, base: BaseParameters, nominal: Array) -> None:
        self.fleet, self.alarms, self.K, self.parameters, self.nominal = fleet, alarms, K, base.mechanism.parameters, nominal

    def _told(self, robot: RobotEstimate, r: int, h: Array, z: Array, t: Array, among: Flags) -> tuple[Deviation, Array]:
        """Return the parameter among `among` that explains a robot best, and the score vector without its change.

        The tests include the robot in T, equally for all, to decide whether it deviates. Its deviating parameter is found with
        the T of the others, which does not contain the deviation: d^T S^-1 d falls most by the change of the best parameter.
        """
        alone = Fleet(self.fleet.H[[r]], h[None], self.fleet.unit, self.fleet.X[[r]], self.fleet.acts)
        others = ~self.alarms.named
        effect = self.alarms.effect
        if others[r]:
            others[r] = False
            effect = estimate(self.fleet.part(others), effect)
        pull, size = (x[0] for x in scores(alone, effect, self.K))
        x = np.divide(pull, np.sqrt(size), out=np.zeros_like(pull), where=size > 0.0)
        explained = normal(x, max(1, int(others.sum()) - self.fleet.X.shape[1]))
        best = int(np.argmax(np.where(among, np.abs(explained), -1.0)))
        change = float(pull[best] / size[best])
        found = Deviation(
            robot.serial,
            robot.robot,
            self.parameters.names[best],
            self.parameters.units[best],
            change,
            abs(change / float(t[best])),
            float(self.nominal[best]),
            float(z[best]),
            tuple(self.parameters.names[k] for k in alike(explained, best)),
            probability(z[best], self.alarms.tests),
        )
        return found, h - self.fleet.H[r] @ self.K[:, best] * change

    def watched(self, r: int, robot: RobotEstimate) -> Deviation:
        """Return the parameter with the largest deviation of a robot that is not named."""
        z = self.alarms.z[r]
        return self._told(robot, r, self.fleet.h[r], z, self.alarms.t[r], np.abs(z) == np.max(np.abs(z)))[0]

    def named(self, r: int, robot: RobotEstimate) -> list[Deviation]:
        """Return the parameters that explain one robot, the best first; each is removed before searching the next."""
        found: list[Deviation] = []
        h = self.fleet.h[r]
        z, t = self.alarms.z[r], self.alarms.t[r]
        while len(found) < TOLD and np.max(np.abs(z)) > self.alarms.limit:
            deviation, h = self._told(robot, r, h, z, t, np.abs(z) > self.alarms.limit)
            found.append(deviation)
            z, t = own_deviates(self.fleet, ~self.alarms.named, self.alarms.effect, r, h, self.K)
        return found


def _temperature(effect: Effect, fleet: Fleet, base: BaseParameters, robots: Sequence[RobotEstimate]) -> dict[str, float]:
    """Return the change of base parameters per degree from differences between robots, if temperature was compensated."""
    x = np.array([r.temperature for r in robots])
    if fleet.X.shape[1] < 2 or not np.all(np.isfinite(x)) or np.ptp(x) <= RANGE:
        return {}
    slope = effect.coefficients[1] * fleet.unit / float(np.std(x))
    return {name: float(s) for name, s, used in zip(base.names, slope, fleet.acts[1], strict=True) if used}
