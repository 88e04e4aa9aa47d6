"""Maintenance of a whole robot: every joint of a new test against the baseline of healthy ones [Pagani2022, section 5.2]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynident.errors import DynidentError
from dynident.results import Result
from dynident_lab.testbench.compensation import Compensation, MeasuredTemperature, NoCompensation, WarmupTime
from dynident_lab.testbench.heating import CampaignStudy
from dynident_lab.testbench.history import FrictionHistory
from dynident_lab.testbench.maintenance import FaultDetector, Maintenance
from dynident_lab.testbench.study import FrictionStudy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: How the temperature is compensated, by name.
COMPENSATIONS: dict[str, type[Compensation]] = {
    "temperature": MeasuredTemperature,
    "time": WarmupTime,
    "none": NoCompensation,
}


@dataclass(frozen=True, eq=False)
class Checkup(Result):
    """What the joints of a robot say about their health."""

    joints: tuple[Maintenance, ...]  # One per joint
    compensation: str  # How the temperature was compensated: "temperature", "time" or "none"
    notes: tuple[str, ...] = ()  # Joints that could not be checked, and why

    @property
    def alarms(self) -> tuple[str, ...]:
        """Joints whose friction is not that of healthy ones."""
        return tuple(entry.history.joint for entry in self.joints if entry.alarm)

    def summary(self) -> str:
        """Return the check as text."""
        return "\n".join([*(entry.summary() for entry in self.joints), *self.notes])

    def plot(self, joint: str | None = None) -> Figure:
        """Draw one joint: measured and expected friction, and the residual."""
        wanted = joint or (self.alarms or (self.joints[0].history.joint,))[0]
        for entry in self.joints:
            if entry.history.joint == wanted:
                return entry.plot()
        raise DynidentError(f"joint '{wanted}' was not checked; {', '.join(e.history.joint for e in self.joints)} were")


def check_robot(
    test: FrictionStudy | CampaignStudy,
    baseline: Sequence[FrictionStudy | CampaignStudy],
    *,
    compensation: str = "auto",
    false_alarm: float = 0.01,
    window: int = 3,
) -> Checkup:
    """Compare every joint of a test with healthy ones."""
    if compensation not in ("auto", *COMPENSATIONS):
        raise DynidentError(f"compensation is '{compensation}'; give auto, {', '.join(COMPENSATIONS)}")
    if not baseline:
        raise DynidentError("there is no baseline; give the study of at least one healthy test")
    new, healthy = _histories(test), [_histories(study) for study in baseline]
    found, notes = [], []
    measured = all(h.temperature is not None for tests in (new, *healthy) for h in tests.values())
    how = ("temperature" if measured else "time") if compensation == "auto" else compensation
    for joint, history in new.items():
        before = [tests[joint] for tests in healthy if joint in tests]
        try:
            if not before:
                raise DynidentError("no healthy test has it")
            far = [h.speed for h in before if abs(h.speed - history.speed) > 0.05 * history.speed]
            if far:
                raise DynidentError(f"it was run at {history.speed:.4g}/s, the healthy test at {far[0]:.4g}/s")
            detector = FaultDetector(COMPENSATIONS[how](), false_alarm=false_alarm, window=window).fit(before)
            found.append(detector.check(history))
        except DynidentError as error:
            notes.append(f"joint {joint} is not checked: {error}")
    if not found:
        raise DynidentError(f"no joint could be checked; the first reason is: {notes[0] if notes else 'the test has no joint'}")
    return Checkup(tuple(found), how, tuple(notes))


def _histories(study: FrictionStudy | CampaignStudy) -> dict[str, FrictionHistory]:
    plain = study.study if isinstance(study, CampaignStudy) else study
    return {entry.joint: entry.history for entry in plain.joints}
