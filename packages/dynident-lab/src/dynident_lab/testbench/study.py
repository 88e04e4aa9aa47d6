"""A whole friction study: logs of one or more robots in, curves, warm-up and time constants per joint out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from dynident.errors import DynidentError, IdentificationError
from dynident.mechanism import Mechanism
from dynident.results import Result
from dynident.signals import Log
from dynident.signals.matching import match
from dynident_lab.figures import per_second
from dynident_lab.testbench.curves import FrictionCurves, friction_curves
from dynident_lab.testbench.history import FrictionHistory
from dynident_lab.testbench.plateaus import Plateaus, SpeedPlateau, find_plateaus
from dynident_lab.testbench.warmup import Warmup, fit_warmup

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class JointStudy(Result):
    """Friction of one joint of one robot."""

    robot: str  # Name of the robot
    joint: str  # Name of the joint
    curves: FrictionCurves  # Friction against speed per temperature, gravity, plateaus
    history: FrictionHistory  # Friction over time at the level of the study
    warmups: tuple[Warmup, ...]  # Drifts fitted to it, best first; empty with too few points

    def summary(self) -> str:
        """Return curves and warm-up of the joint as text."""
        lines = [f"[{self.robot}] {self.curves.summary()}"]
        if self.warmups:
            speed = f"{self.history.speed:.4g} {per_second(self.curves.unit)}"
            lines.append(f"  warm-up at {speed}: {self.warmups[0].summary()}")
        return "\n".join(lines)

    def plot(self) -> Figure:
        """Draw friction against speed, one curve per temperature."""
        return self.curves.plot()


@dataclass(frozen=True)
class Failure:
    """A joint that could not be studied."""

    robot: str  # Name of the robot
    joint: str  # Name of the joint
    sentence: str  # Reason


@dataclass(frozen=True, eq=False)
class FrictionStudy(Result):
    """Friction of all joints that have plateaus."""

    mechanism: str  # Name of the robot's description
    level: float  # Speed of the histories, as a share of the top speed
    tolerance: float  # Permitted remaining drift after the warm-up, as a share of the settled friction
    joints: tuple[JointStudy, ...]  # Results, robot by robot
    failures: tuple[Failure, ...]  # Joints that could not be studied, with the reasons
    logs: tuple[str, ...]  # Names of the logs
    derived: ClassVar[tuple[str, ...]] = ("warmup_times",)

    @property
    def robots(self) -> tuple[str, ...]:
        """Robots, in the order of the logs."""
        return tuple(dict.fromkeys(entry.robot for entry in self.joints))

    def of(self, joint: str, robot: str | None = None) -> JointStudy:
        """Return one joint of one robot."""
        for entry in self.joints:
            if entry.joint == joint and robot in (None, entry.robot):
                return entry
        known = ", ".join(f"{entry.joint} of {entry.robot}" for entry in self.joints)
        raise DynidentError(f"the friction study has no joint '{joint}' of robot '{robot or 'any'}'; it has {known}")

    @property
    def warmup_times(self) -> tuple[tuple[float, float], ...]:
        """Recommended warm-up of each joint and its standard deviation [s]; NaN without enough points."""
        fits = [entry.warmups[0] if entry.warmups else None for entry in self.joints]
        nan = float("nan")
        return tuple(
            (nan, nan) if w is None else (w.warmup_time(self.tolerance), w.warmup_time_std(self.tolerance)) for w in fits
        )

    def numbers(self) -> dict[str, Any]:
        """Return the study as plain values, without the samples: `to_dict` without plateaus and covariances."""
        data = self.to_dict()
        for entry in data["joints"]:
            del entry["curves"]["plateaus"], entry["curves"]["friction"], entry["curves"]["std"]
            for warmup in entry["warmups"]:
                del warmup["covariance"], warmup["t"], warmup["y"]
        return data

    def summary(self) -> str:
        """Return the study as text, a few lines per joint."""
        lines = [f"friction study of {self.mechanism}: {len(self.joints)} joints from {len(self.logs)} logs"]
        for entry, (wait, spread) in zip(self.joints, self.warmup_times, strict=True):
            lines.append(entry.summary())
            if entry.warmups and entry.warmups[0].order:
                times = f"{wait / 60.0:.3g} +- {spread / 60.0:.2g} min"
                seen = "" if entry.warmups[0].complete else "; extrapolated because the test was too short"
                lines.append(f"  recommended warm-up to within {100 * self.tolerance:g} %: {times}{seen}")
        return "\n".join([*lines, *(f"[{f.robot}] joint {f.joint}: {f.sentence}" for f in self.failures)])

    def plot(self, joint: str | None = None) -> Figure:
        """Draw friction against speed of one joint."""
        return self.of(joint or self.joints[0].joint).curves.plot()


def friction_study(
    mechanism: Mechanism,
    logs: Sequence[Log],
    *,
    joints: Sequence[str] | None = None,
    robots: Sequence[str] | None = None,
    starts: Sequence[float] | None = None,
    by: str = "auto",
    level: float = 0.6,
    tolerance: float = 0.02,
    shortest: float = 0.25,
) -> FrictionStudy:
    """Find plateaus, remove gravity, draw curves per temperature and fit the warm-up, for every joint that moves.

    Parameters
    ----------
    mechanism : Mechanism
        Robot without loops; gives names, gears, kinds of joints and largest speeds.
    logs : sequence of Log
        Logs of friction trajectories, in time order.
    joints : sequence of str, optional
        Joints to study; all if not given.
    robots : sequence of str, optional
        Robot of each log; one robot when omitted.
    starts : sequence of float, optional
        Time since the cold start at which each log's clock is zero [s]. When omitted, clocks are unchanged, except that a
        log that starts before the end of the previous one of its robot is shifted after it.
    by : {"auto", "temperature", "time", "all"}
        Grouping of plateaus into curves, see `friction_curves`.
    level : float
        Speed of the friction over time, as a share of the top speed.
    tolerance : float
        Permitted remaining drift after the recommended warm-up.
    shortest : float
        Shortest plateau [s].

    Returns
    -------
    FrictionStudy
        Studied joints, and the reasons for joints that could not be studied.
    """
    if not logs:
        raise IdentificationError("the friction study got no logs; give at least one with plateaus in both directions")
    if mechanism.loops:
        raise IdentificationError(f"robot '{mechanism.name}' has loops, so no joint can move alone; study its legs separately")
    owner = [mechanism.name] * len(logs) if robots is None else list(robots)
    for name, given in (("robots", owner), ("starts", starts)):
        if given is not None and len(given) != len(logs):
            raise IdentificationError(f"{name} has {len(given)} entries for {len(logs)} logs; give one per log")
    if not 0.0 < level <= 1.0 or not 0.0 < tolerance < 1.0:
        raise IdentificationError(f"level = {level} and tolerance = {tolerance} must be parts between 0 and 1")
    matched = [match(mechanism, log).log for log in logs]
    shift = _shifts(matched, owner, starts)
    names = (
        [n for n in mechanism.coordinate_names if any(n in log.joints for log in matched)] if joints is None else list(joints)
    )
    found, failures = [], []
    for robot in dict.fromkeys(owner):
        for name in names:
            mine = [(log, s) for log, o, s in zip(matched, owner, shift, strict=True) if o == robot and name in log.joints]
            try:
                found.append(_joint_study(mechanism, robot, name, mine, by, level, shortest))
            except DynidentError as error:
                failures.append(Failure(robot, name, str(error)))
    if not found:
        raise IdentificationError(f"no joint could be studied; first reason: {failures[0].sentence if failures else 'none'}")
    return FrictionStudy(mechanism.name, level, tolerance, tuple(found), tuple(failures), tuple(log.name for log in logs))


def _shifts(logs: Sequence[Log], owner: Sequence[str], starts: Sequence[float] | None) -> list[float]:
    """Return the shift of each log's clock."""
    if starts is not None:
        return [float(s) for s in starts]
    ended: dict[str, float] = {}
    shift = []
    for log, robot in zip(logs, owner, strict=True):
        first = float(log.t[0])
        s = 0.0 if first >= ended.get(robot, first) else ended[robot] - first
        ended[robot] = float(log.t[-1]) + s
        shift.append(s)
    return shift


def _joint_study(
    mechanism: Mechanism, robot: str, name: str, logs: Sequence[tuple[Log, float]], by: str, level: float, shortest: float
) -> JointStudy:
    kind = next((j.kind for j in mechanism.joints if name in j.coordinates), None)
    if kind is None or not logs:
        raise IdentificationError(f"robot '{mechanism.name}' or its logs have no joint '{name}'")
    unit = "N" if kind == "prismatic" else "N m"
    items: list[SpeedPlateau] = []
    notes: list[str] = []
    problems = []
    for log, seconds in logs:
        try:
            part = find_plateaus(log, name, shortest=shortest, unit=unit)
        except DynidentError as error:
            problems.append(str(error))
            continue
        items += [p.later(seconds) for p in part.items]
        notes += part.notes
    if not items:
        raise IdentificationError(problems[0])
    if problems:
        notes.append(f"{len(problems)} of {len(logs)} logs have no plateaus and are omitted")
    limit = mechanism.joint(name).limits.velocity if name in mechanism.joint_names else float("inf")
    fastest = max(abs(p.speed) for p in items)
    top = limit if fastest <= 1.05 * limit < float("inf") else fastest
    ordered = tuple(sorted(items, key=lambda p: p.t))
    plateaus = Plateaus(name, unit, ordered, top, tuple(dict.fromkeys(notes)))
    curves = friction_curves(plateaus, by=by, gravity=kind != "prismatic")
    history = curves.history(level, robot)
    fits = []
    for order in (1, 2):
        try:
            fits.append(fit_warmup(history.t, history.friction, orders=(order,), std=history.std))
        except DynidentError:
            continue  # too few points for this order; the history itself is kept
    return JointStudy(robot, name, curves, history, tuple(sorted(fits, key=lambda w: w.aicc)))
