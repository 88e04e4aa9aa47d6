"""Results of a fleet: robots, logs, deviations, drift, and the nominal robot of every type."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.identify import Fit, Population, Regression, base_parameters
from dynident.mechanism import Mechanism
from dynident.pages import several
from dynident.results import Result, load
from dynident.validate import Verdict
from dynident_lab.fleet.storage import fingerprint

ALIKE = 4.0  # difference of z^2 up to which parameters are not distinguished


@dataclass(frozen=True)
class LogRecord:
    """Processing record of one log."""

    path: str  # Log, type and robot
    robot: str  # Log, type and robot
    serial: str  # Log, type and robot
    counted: bool  # True if its data are in the result
    rows: int = 0  # Equations and samples
    samples: int = 0  # Equations and samples
    sha256: str = ""  # Hash of its content
    key: str = ""  # Name of its factors in the store
    sentence: str = ""  # Reason why it was not counted, else empty
    date: str = ""  # Day of the recording, empty if unknown


@dataclass(frozen=True, eq=False)
class RobotPeriod:
    """One period (a month) of one robot."""

    name: str  # Such as "2026-03"
    day: float  # Mean day of its logs
    temperature: float  # Mean temperature [degree Celsius], NaN if unknown
    change: Array  # Change of each standard parameter alone that explains the difference from all periods together
    precision: Array  # Inverse variance of the change


@dataclass(frozen=True, eq=False)
class RobotEstimate(Result):
    """Identification result of one robot."""

    serial: str  # The robot and its type
    robot: str  # The robot and its type
    logs: tuple[str, ...]  # Counted logs
    rows: int  # Equations
    information: Array
    score: Array
    values: Array  # Base parameters of its fit
    std: Array  # Their standard deviations
    training: float  # Relative error on its logs
    held_out: float  # Relative error on its held-out logs (NaN without any)
    verdict: Verdict  # Checks
    temperature: float = math.nan  # Mean of its logs; NaN if unknown
    payload: float = math.nan  # Mean of its logs; NaN if unknown
    periods: tuple[RobotPeriod, ...] = ()  # Months, if there are several
    inflation: float = 1.0  # Divisor of `information`: variance inflation due to correlated residuals


@dataclass(frozen=True)
class Deviation:
    """A robot that differs from its type in a parameter, or a parameter that drifts."""

    serial: str  # The robot and its type
    robot: str  # The robot and its type
    parameter: str  # Standard parameter that explains the difference best alone
    unit: str  # Unit of the parameter
    change: float  # Difference from the nominal robot; for drift, change per year
    std: float  # Standard deviation of the change
    nominal: float  # Value of the nominal robot
    z: float
    alike: tuple[str, ...] = ()  # Other parameters that these data do not distinguish from it
    probability: float = math.nan  # Probability that a robot without a fault differs as much in any parameter

    @property
    def chance(self) -> str:
        """The probability as text; empty if unknown. Extreme tails are not realistic for any fleet."""
        if math.isnan(self.probability):
            return ""
        return f"{self.probability:.1g}" if self.probability >= 1e-9 else "< 1e-9"

    @property
    def relative(self) -> float:
        """The difference over the nominal value; NaN if the latter is zero."""
        return self.change / abs(self.nominal) if self.nominal else math.nan


@dataclass(frozen=True, eq=False)
class FleetType(Result):
    """Common properties of robots of one type, and the deviating robots."""

    robot: str  # Name of the type
    population: Population | None  # Nominal parameters with their spread; None with fewer than five robots
    parameters: tuple[str, ...]  # Names of the standard parameters
    nominal: Array  # Standard parameters of the nominal robot
    deviations: tuple[Deviation, ...] = ()  # Deviations beyond the limit, largest first
    drifts: tuple[Deviation, ...] = ()  # Drifts beyond the limit, largest first
    limit: float = math.nan  # Limit of deviations in standard deviations
    drift_limit: float = math.nan  # Limit of drifts in standard deviations
    false_alarms: float = 0.01
    scores: Mapping[str, float] = field(default_factory=dict)  # Largest |z| of every robot
    temperature: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # Missing results with their reasons
    watched: tuple[Deviation, ...] = ()
    tests: float = math.nan  # Equivalent number of independent tests of a robot's correlated parameters
    detectable: Array = field(default_factory=lambda: np.zeros(0))
    units: tuple[str, ...] = ()  # Units of the standard parameters

    @property
    def detectable_relative(self) -> Array:
        """Smallest changes over the nominal values, (p,); NaN if unobservable or the nominal value is zero."""
        size = np.abs(self.nominal[: self.detectable.size])
        return np.divide(self.detectable, size, out=np.full_like(self.detectable, np.nan), where=size > 0.0)


@dataclass(frozen=True, eq=False)
class FleetResult(Result):
    """Result of a fleet; the fits of its robots are in files next to it."""

    robots: tuple[RobotEstimate, ...]  # One per robot, sorted by type and serial
    logs: tuple[LogRecord, ...]  # One per log, sorted equally
    types: tuple[FleetType, ...]  # One per type
    bands: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # Cut-off and band [Hz] of every type
    failed: Mapping[str, str] = field(default_factory=dict)  # Robots that could not be fitted, with the reason
    counters: Mapping[str, float] = field(default_factory=dict)
    folder: str = ""  # Folder of the files; empty if none were written

    def robot(self, serial: str) -> RobotEstimate:
        """Return the result of one robot."""
        for found in self.robots:
            if found.serial == serial:
                return found
        raise DynidentError(f"the fleet has no fitted robot '{serial}': {self.failed.get(serial, 'it is not among its logs')}")

    def type(self, robot: str) -> FleetType:
        """Return the result of one type."""
        for found in self.types:
            if found.robot == robot:
                return found
        raise DynidentError(f"the fleet has no type '{robot}'; it has {', '.join(t.robot for t in self.types)}")

    def fit(self, serial: str) -> Fit:
        """Return the fit of one robot."""
        self.robot(serial)
        if not self.folder:
            raise DynidentError("the fits are in files; give a folder to fleet.identify (output=)")
        found = load(Path(self.folder) / "robots" / f"{file_name(serial)}.fit.json")
        assert isinstance(found, Fit)
        return found

    def regression(self, robot: Mechanism, serial: str | None = None, period: str = "") -> Regression:
        """Return the merged regression data of a robot, of a type or of a period, from the stored factors."""
        if not self.folder:
            raise DynidentError("the factors are in files; give a folder to fleet.identify (output=)")
        chosen = [
            record
            for record in self.logs
            if record.counted and serial in (None, record.serial) and record.date.startswith(period)
        ]
        if not chosen:
            raise DynidentError(f"no counted log is of serial {serial!r} and period '{period}'")
        base, level = base_parameters(robot), list[Regression]()
        for n, record in enumerate(chosen, 1):  # a tree with only its unfinished branches in memory
            part = (Path(self.folder) / "factors" / record.key[:2] / f"{record.key}.npz").read_bytes()
            level.append(Regression.from_bytes(part, robot, base))
            while n % 2 == 0:
                level[-2:] = [level[-2] + level[-1]]
                n //= 2  # noqa: PLW2901 - as many branches end as n has factors of two
        while len(level) > 1:
            level[-2:] = [level[-2] + level[-1]]
        return level[0]

    @property
    def refused(self) -> tuple[LogRecord, ...]:
        """Logs that were not counted, with the reasons."""
        return tuple(record for record in self.logs if not record.counted)

    def summary(self) -> str:
        """Return the result as text."""
        counted = sum(record.counted for record in self.logs)
        good = sum(robot.verdict.ok for robot in self.robots)
        lines = [
            f"{several(len(self.robots), 'robot')} from {counted} of {several(len(self.logs), 'log')}; "
            f"the models of {good} pass all checks"
            + (f"; {several(len(self.failed), 'robot')} could not be fitted" if self.failed else "")
        ]
        for own in self.types:
            lines += [f"{own.robot}: {note}" for note in own.notes]
            lines += [told(d, "") for d in own.deviations] + [told(d, " per year") for d in own.drifts]
            if own.watched:
                count, chance = several(len(own.watched), "robot"), f"{own.false_alarms * len(own.scores):.2g}"
                lines.append(
                    f"{own.robot}: {count} to watch below the limit of {own.limit:.2f} ({chance} expected by chance), first "
                    f"{told(own.watched[0], '')}"
                )
            lines += [f"{own.robot}: {sentence}" for sentence in shown_by(own)]
        lines += [f"robot '{serial}': {sentence}" for serial, sentence in self.failed.items()]
        lines += [f"not counted: {record.path}: {record.sentence}" for record in self.refused]
        return "\n".join(lines)

    def to_table(self) -> list[dict[str, Any]]:
        """Return one row per robot."""
        scores = {serial: z for own in self.types for serial, z in own.scores.items()}
        return [
            {
                "serial": r.serial,
                "robot": r.robot,
                "logs": len(r.logs),
                "rows": r.rows,
                "training": r.training,
                "held_out": r.held_out,
                "ok": r.verdict.ok,
                "deviation": scores.get(r.serial, math.nan),
            }
            for r in self.robots
        ]


def alike(z: Array, best: int) -> list[int]:
    """Return up to four parameters that the data hardly distinguish from the best one, the closest first."""
    close = [int(k) for k in np.argsort(-np.abs(z)) if k != best and z[best] ** 2 - z[k] ** 2 < ALIKE]
    return close[:4]


def told(deviation: Deviation, unit: str) -> str:
    """Return a deviation as a sentence."""
    share = f" ({100 * deviation.relative:+.0f} %)" if math.isfinite(deviation.relative) else ""
    close = f"; not distinguished from {', '.join(deviation.alike)}" if deviation.alike else ""
    size = f"{deviation.change:+.4g} +- {deviation.std:.2g} {deviation.unit}{share}{unit}"
    chance = f" (by chance {deviation.chance})" if deviation.chance else ""
    return f"{deviation.serial}: {deviation.parameter} {size}, {abs(deviation.z):.1f} standard deviations{chance}{close}"


def shown_by(own: FleetType) -> list[str]:
    """Return a sentence on the detectable changes; empty with too few robots."""
    seen, relative = int(np.isfinite(own.detectable).sum()), own.detectable_relative
    small, large = (int(np.sum(relative <= share)) for share in (0.1, 0.3))
    text = f"of {seen} parameters that these logs determine, a change of 10 % in one robot would be reported for"
    return [f"{text} {small}, of 30 % for {large} (in 9 of 10 cases)"] if seen else []


def file_name(serial: str) -> str:
    """Return a file name for a robot: its serial, with characters that have a meaning in paths written as code."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else f"%{ord(c):x}" for c in serial)
    return plain if 0 < len(plain) <= 100 else f"{plain[:80]}-{fingerprint(serial)[:16]}"
