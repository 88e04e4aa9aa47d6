"""Maintenance of a whole robot: every joint of a new test against the baseline of healthy ones [Pagani2022, section 5.2]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.results import Result
from dynident_lab.testbench.compensation import (
    Compensation,
    MeasuredTemperature,
    NoCompensation,
    ThermalPrediction,
    WarmupTime,
)
from dynident_lab.testbench.heating import CampaignStudy
from dynident_lab.testbench.history import FrictionHistory
from dynident_lab.testbench.maintenance import FaultDetector, Maintenance
from dynident_lab.testbench.study import FrictionStudy
from dynident_lab.thermal.models import ThermalModel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Study: TypeAlias = FrictionStudy | CampaignStudy

#: Methods of temperature compensation, by name.
COMPENSATIONS = ("temperature", "thermal", "time", "none")


@dataclass(frozen=True, eq=False)
class Checkup(Result):
    """Result of a maintenance check of all joints of a robot."""

    joints: tuple[Maintenance, ...]  # One per joint
    compensation: str  # Temperature compensation, one of COMPENSATIONS
    notes: tuple[str, ...] = ()  # Joints that could not be checked, with the reasons

    @property
    def alarms(self) -> tuple[str, ...]:
        """Joints whose friction differs from that of healthy ones."""
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
        raise DynidentError(
            f"joint '{wanted}' was not checked; checked joints are {', '.join(e.history.joint for e in self.joints)}"
        )


def check_robot(
    test: Study,
    baseline: Sequence[Study],
    *,
    compensation: str = "auto",
    false_alarm: float = 0.01,
    window: int = 3,
) -> Checkup:
    """Compare every joint of a test with healthy ones.

    Without temperature sensors, the thermal models of the healthy campaigns predict the temperatures of the joints.
    """
    if compensation not in ("auto", *COMPENSATIONS):
        raise DynidentError(f"compensation is '{compensation}'; give auto, {', '.join(COMPENSATIONS)}")
    if not baseline:
        raise DynidentError("the baseline is missing; give the study of at least one healthy test")
    new, healthy = _histories(test), [_histories(study) for study in baseline]
    found, notes = [], []
    measured = all(h.temperature is not None for tests in (new, *healthy) for h in tests.values())
    campaigns = all(isinstance(study, CampaignStudy) for study in (test, *baseline))
    usual = "temperature" if measured else "thermal" if campaigns else "time"
    how = usual if compensation == "auto" else compensation
    if how == "thermal" and not campaigns:
        raise DynidentError("thermal compensation needs the friction power; give campaigns, or their friction.json")
    for joint, history in new.items():
        before = [tests[joint] for tests in healthy if joint in tests]
        try:
            if not before:
                raise DynidentError("it is missing from all healthy tests")
            far = [h.speed for h in before if abs(h.speed - history.speed) > 0.05 * history.speed]
            if far:
                raise DynidentError(f"it was run at {history.speed:.4g}/s, the healthy test at {far[0]:.4g}/s")
            expectation = _compensation(how, joint, test, baseline)
            detector = FaultDetector(expectation, false_alarm=false_alarm, window=window).fit(before)
            found.append(detector.check(history))
        except DynidentError as error:
            notes.append(f"joint {joint} is not checked: {error}")
    if not found:
        raise DynidentError(f"no joint could be checked; first reason: {notes[0] if notes else 'the test has no joint'}")
    return Checkup(tuple(found), how, tuple(notes))


def _compensation(how: str, joint: str, test: Study, baseline: Sequence[Study]) -> Compensation:
    """Return the compensation of one joint."""
    if how != "thermal":
        plain: dict[str, type[Compensation]] = {"temperature": MeasuredTemperature, "time": WarmupTime, "none": NoCompensation}
        return plain[how]()
    studies = [study for study in (*baseline, test) if isinstance(study, CampaignStudy)]
    heating = [study.of(joint) for study in studies]
    healthy = heating[0]
    histories = [_histories(study)[joint] for study in studies]

    def power(history: FrictionHistory) -> tuple[Array, Array]:
        """Return the power in a test with the cold friction of the healthy joint."""
        healthy_one = (k for k, known in enumerate(histories[:-1]) if known is history)
        own = heating[next(healthy_one, -1)]  # the last is the test, whose friction may have been changed
        return own.power_t, own.power * (healthy.cold / own.cold)

    model = healthy.best.model
    if not isinstance(model, ThermalModel):
        raise DynidentError("its thermal model has no states; give another compensation")
    return ThermalPrediction(model, power)


def _histories(study: Study) -> dict[str, FrictionHistory]:
    plain = study.study if isinstance(study, CampaignStudy) else study
    return {entry.joint: entry.history for entry in plain.joints}
