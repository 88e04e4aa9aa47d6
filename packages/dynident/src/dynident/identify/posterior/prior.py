"""What is believed about a robot before its data: its description, in units of the robot itself.

    phi = phi0 + d x,        x_k ~ N(0, s_f^2) for every parameter k of a family f

d are units in which a parameter may plausibly be off: m, m r and m r^2 of every body (r: distance of its mass from its origin),
and for friction and rotor terms what would explain all of a joint's torque. The scales s_f, one per family, are not chosen
here: the data choose them (`dynident.identify.posterior.posterior`).

All friction of a joint is one family, and its offset belongs to it: friction that differs between the directions and takes
energy in both has an offset between -fc and fc, so the offset's unit is fc / sqrt(3), the deviation of a uniform distribution.
A joint that moves in one direction only shows the sum of both. As families of their own one of them would take it all, with a
deviation that claims to know it.
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
from dynident.identify.base import BaseParameters, joint_terms, natural_spread
from dynident.identify.regression.regression import Regression
from dynident.mechanism.mechanism import Mechanism
from dynident.results import Result

Value = float | tuple[float, float]
"""A number, or a number with its standard deviation."""

DESCRIBED, UNDESCRIBED = "bodies of the description", "bodies without a description"
FRICTION, OTHER = "friction and offsets", "other terms"
ASYMMETRY = 3.0**-0.5  # offset over friction
EXACT = 1e-4  # relative deviation of a known value that is given without one
CENTRE = 1e-3  # deviation of a known centre of mass [m]
NEGLIGIBLE = 1e-4  # of the first moment that would make all of a joint's torque: no body of a robot is that light
BEYOND = 1e9  # no mass [kg] and no distance [m] of a robot


@dataclass(frozen=True)
class Knowledge:
    """What is known about the bodies beside their description.

    Parameters
    ----------
    masses : mapping of str to float or (float, float)
        Weighed masses by body [kg], with their standard deviation where it is not negligible.
    total_mass : float or (float, float), optional
        Mass of all moving bodies together [kg].
    centres : mapping of str to sequence of 3 floats
        Centres of mass in the link frame [m]; known to a millimetre.
    without : sequence of str
        Bodies that have no parameters of their own: too light, or part of another one.
    population : Population, optional
        What other robots of the type have shown: a far better belief for a robot with little data than its description.
    terms : mapping of str to float
        Numbers of joint terms and friction laws before these data, by parameter, where the robot holds later ones.

    Examples
    --------
    >>> Knowledge(masses={"forearm": (3.2, 0.05)}, without=("cable",)).without
    ('cable',)
    """

    masses: Mapping[str, Value] = field(default_factory=dict)
    total_mass: Value | None = None
    centres: Mapping[str, Sequence[float]] = field(default_factory=dict)
    without: Sequence[str] = ()
    population: Population | None = None
    terms: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for body, mass in self.masses.items():
            _pair(mass, f"the mass of '{body}'", 0.0)
        if self.total_mass is not None:
            _pair(self.total_mass, "the total mass", 0.0)

    @classmethod
    def from_sidecar(cls, path: str | os.PathLike[str]) -> Knowledge:
        """Read the table [known] of a sidecar."""
        table = read_toml(path, "the sidecar", IdentificationError).get("known", {})
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
    """The belief: description, units, families, and rows of what is known beside it."""

    mean: Array  # phi0 and d
    unit: Array  # phi0 and d
    families: tuple[str, ...]  # Name of the families
    family: NDArray[np.int64]  # Family of every parameter; -1 for one that is held at its mean
    rows: Array  # rows phi = values, in units of their standard deviation
    values: Array  # rows phi = values, in units of their standard deviation


def prior_of(regression: Regression, known: Knowledge | None = None) -> Prior:
    """Return the belief about a robot, with the units of its joint terms from the size of its torques."""
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
        if alike:  # a joint that did not move is believed to be like those that did
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
    """Return whether all described bodies are far too light for these efforts: numbers that only stand in for a description."""
    moment, most = unit.reshape(-1, 10)[:, 1], largest.reshape(-1, 10)[:, 1:4]
    seen = most > 0.0
    return bool(np.any(seen)) and not np.any(seen & (moment[:, None] > NEGLIGIBLE * most))


def _units_of_data(unit: Array, largest: Array) -> None:
    """Give bodies of a robot without any description the mass that would make all of the torque of the joints they act on.

    Bodies fall in mass along an arm, and so do the torques of its joints: one mass for all would hold the first bodies too
    tight and let go of the last. The size r of the bodies, from the distances between joints, stays.
    """
    phi, most = unit.reshape(-1, 10), largest.reshape(-1, 10)
    r = phi[:, 1] / phi[:, 0]
    moment = np.min(np.where(most[:, 1:4] > 0.0, most[:, 1:4], np.inf), axis=1)  # along the axis that these data show best
    seen = np.isfinite(moment)
    if not np.any(seen):
        return
    moment = np.where(seen, moment, np.max(moment[seen]))  # the first body may show its inertia only
    mass = moment / r
    phi[:, 0], phi[:, 1:4], phi[:, 4:] = mass, (mass * r)[:, None], (mass * r**2)[:, None]


def _largest(regression: Regression) -> Array:
    """Return for every standard parameter the value that would make all of the torque of the joints it acts on; 0 if unseen."""
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
    """Return what is known as rows phi = values of unit deviation."""
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


SMALLEST = 1e-12  # eigenvalues of the scaled covariance: none is known better than this


@dataclass(frozen=True, eq=False)
class Population(Result):
    """Base parameters of robots of one type: mean and spread.

    `dynident_lab.fleet.identify` finds it; ``MAP(known=Knowledge(population=...))`` uses it for a robot with little data.

    Parameters
    ----------
    robot : str
        Name of the type.
    names : tuple of str, length b
        Base parameters.
    mean : ndarray, (b,)
        Those of the nominal robot.
    covariance : ndarray, (b, b)
        Covariance of a new robot's parameters about the mean.
    robots : int
        Number of robots it rests on.
    fingerprint : ndarray
        What tells the robot's geometry (`BaseParameters.fingerprint`).
    """

    robot: str
    names: tuple[str, ...]
    mean: Array
    covariance: Array
    robots: int
    fingerprint: Array

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
        """Return the belief as rows of unit deviation about the standard parameters."""
        if base.names != self.names or not base.fits(self.fingerprint):
            raise IdentificationError(
                f"the population is of robot '{self.robot}' with {len(self.names)} base parameters, which is another robot "
                f"than '{base.mechanism.name}' (joints, geometry, gravity or terms differ); use that of the same type"
            )
        size = np.where(self.spread > 0.0, self.spread, 1.0)
        values, vectors = np.linalg.eigh(self.covariance / np.outer(size, size))
        W = (vectors / np.sqrt(np.maximum(values, SMALLEST * max(values[-1], SMALLEST)))).T / size
        return W @ base.regrouping, W @ self.mean
