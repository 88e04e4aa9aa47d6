"""The plan of an experiment: every motion with its purpose, in one JSON file that a recorder can run and a log can name.

Stages follow each other inside a cycle, joined smoothly; cycles repeat. Its identity is a hash of the motions, not of the
notes or of the time and place of the design. `stage_logs` and `average_log` lead from a recording back to the plan's stages.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dynident.arrays import Array
from dynident.checks import choice, number, shown, whole
from dynident.errors import DynidentError
from dynident.excitation.objective import CYCLES, LARGEST, fits, motion_curve, per_coordinate, text
from dynident.figures import label, one_axes
from dynident.files import read_json, to_json
from dynident.mechanics.functions import Motion
from dynident.results import Result, stored
from dynident.signals.log import Log
from dynident.trajectory.curves import Curve, positive
from dynident.trajectory.export import REPETITIONS, bound_from_spec, from_spec
from dynident.trajectory.joins import Joined, Slowed, cycle

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FORMAT = "dynident-plan-1"
PURPOSES = ("training", "validation", "friction", "warming", "payload")
STAGE = ("name", "purpose", "repetitions", "payload", "record")  # fields of a stage other than its curve
TOGETHER = 1e-3  # time between repetitions that are one stretch [s]
VECTORS = ("speed", "acceleration", "home")
BOUNDS = ("lower", "upper", "jerk")


@dataclass(frozen=True, eq=False)
class Stage:
    """One motion of a plan."""

    name: str  #: Name
    purpose: str  #: Purpose of the data, one of `PURPOSES`
    curve: Curve  #: The motion
    repetitions: int = 1  #: Number of consecutive runs; a periodic motion is then averaged over periods
    payload: str = ""  #: Name of the payload that must be mounted; empty for none
    record: bool = True  #: False for moves whose data are not needed

    def __post_init__(self) -> None:
        label = f"stage {shown(text(self.name, 'name of a stage'))}"
        choice(f"{label}: purpose", self.purpose, PURPOSES)
        motion_curve(self.curve, f"{label}: curve")
        whole(f"{label}: repetitions", self.repetitions, least=1, most=REPETITIONS)
        text(self.payload, f"{label}: payload")
        if not isinstance(self.record, bool):
            raise DynidentError(f"{label}: record is {shown(self.record)}; give true or false")

    @property
    def duration(self) -> float:
        """Duration with all repetitions [s]."""
        return self.repetitions * self.curve.duration


class PlanEntry(NamedTuple):
    """A part of a cycle: one repetition of a stage, or the join or lead before or after it (stage None)."""

    stage: Stage | None  # The stage; None for a join or a lead
    repetition: int  # Number of the repetition, from 0
    start: float  # Start time in the cycle [s]
    end: float  # End time in the cycle [s]
    curve: Curve  # The motion; its time starts at `start`


@dataclass(frozen=True, eq=False)
class Plan(Result):
    """An experiment."""

    robot: str  #: Name of the robot
    coordinates: tuple[str, ...]  #: Names of the coordinates
    stages: Sequence[Stage]  #: Stages of a cycle, in order
    cycles: int  #: Number of cycles
    rate: float  #: Samples per second at which motions are sent and recorded [Hz]
    speed: Array  #: (n,), speed limits of the joins between stages
    acceleration: Array  #: (n,), acceleration limits of the joins
    home: Array  #: (n,), rest position before and after each cycle
    period: float = 0.0  #: Length of a cycle with its pause at the end [s]; 0 for no pause
    notes: Mapping[str, Any] = field(default_factory=dict)  #: Other information: design values, conditions
    lower: Array | None = None  #: (n,), lowest positions of the joins
    upper: Array | None = None  #: (n,), highest positions of the joins
    jerk: Array | None = None  #: (n,), largest jerk of the joins

    def __post_init__(self) -> None:
        names = self.coordinates
        if isinstance(names, str) or not isinstance(names, Sequence) or not names or len(set(map(shown, names))) < len(names):
            raise DynidentError(f"coordinates of the plan are {shown(names)}; give a list of different names")
        object.__setattr__(self, "coordinates", tuple(text(name, "a coordinate of the plan") for name in names))
        text(self.robot, "robot of the plan")
        n = len(names)
        for bound in (*VECTORS, *BOUNDS):
            value = getattr(self, bound)
            if value is None and bound in BOUNDS:
                continue
            array = per_coordinate(value, n, f"{bound} of the plan")
            if bound == "home" and not np.all(np.abs(array) <= LARGEST):
                raise DynidentError(f"home of the plan is {shown(array.tolist())}; give a position in radians or metres")
            object.__setattr__(self, bound, array)
        if not isinstance(self.stages, Sequence) or not all(isinstance(stage, Stage) for stage in self.stages):
            raise DynidentError(f"stages of the plan are {shown(self.stages)}; give a list of Stage")
        object.__setattr__(self, "stages", tuple(self.stages))
        if not self.stages:
            raise DynidentError("the plan has no stage; give at least one motion")
        whole("cycles of the plan", self.cycles, least=1, most=CYCLES)
        number("rate of the plan", self.rate, above=0.0, unit="1/s")
        number("period of the plan", self.period, least=0.0, unit="s")
        if not isinstance(self.notes, Mapping):
            raise DynidentError(f"notes of the plan are {shown(self.notes)}; give a table")
        for stage in self.stages:
            if stage.curve.dof != n:
                raise DynidentError(f"stage '{stage.name}' moves {stage.curve.dof} coordinates but the plan has {n}")
        fits(sum(stage.duration for stage in self.stages), self.rate, n, "a cycle of the plan")  # before they are joined
        fits(max(self.curve.duration, self.period), self.rate, n, "a cycle of the plan")
        if self.period and self.period < self.curve.duration:
            raise DynidentError(
                f"a cycle takes {self.curve.duration:.1f} s but is planned every {self.period:.1f} s; shorten a stage"
            )

    @cached_property
    def curve(self) -> Joined:
        """One cycle: all stages with their repetitions, from home to home, with smooth joins that keep the limits."""
        curves = [(stage.curve, stage.repetitions) for stage in self.stages]
        return cycle(curves, self.speed, self.acceleration, self.home, self.lower, self.upper, self.jerk)

    @property
    def duration(self) -> float:
        """Duration of the whole experiment [s]."""
        return self.cycles * max(self.period, self.curve.duration)

    def entries(self) -> list[PlanEntry]:
        """Return one cycle part by part, in order: stages, joins and leads. They follow each other without a gap."""
        waiting = [(stage, k) for stage in self.stages for k in range(stage.repetitions)]
        out: list[PlanEntry] = []
        for curve, begin in zip(self.curve.pieces, self.curve.starts, strict=False):
            mine = bool(waiting) and waiting[0][0].curve is curve
            stage, k = waiting.pop(0) if mine else (None, 0)
            out.append(PlanEntry(stage, k, float(begin), float(begin) + curve.duration, curve))
        return out

    def schedule(self) -> list[dict[str, Any]]:
        """Return the schedule of the stages in a cycle.

        ``name``, ``purpose``, ``payload``, ``repetition``, ``record``, ``start``, ``end`` [s], in order, without joins.
        """
        return [
            {
                "name": piece.stage.name,
                "purpose": piece.stage.purpose,
                "payload": piece.stage.payload,
                "repetition": piece.repetition,
                "record": piece.stage.record,
                "start": piece.start,
                "end": piece.end,
            }
            for piece in self.entries()
            if piece.stage is not None
        ]

    def motion(self, rate: float | None = None, cycles: int = 1) -> Motion:
        """Return cycles at a fixed rate, each with its pause."""
        f = self.rate if rate is None else positive("rate", rate)
        whole("cycles", cycles, least=1)
        step = max(self.period, self.curve.duration) if cycles > 1 else self.curve.duration
        fits(cycles * step, f, len(self.coordinates), "a motion")
        # The last sample is at or just after the end, where the robot rests.
        t = np.arange(int(np.ceil(cycles * step * f * (1.0 - 1e-12))) + 1) / f
        since = t - step * np.minimum(np.floor(t / step + 1e-12), cycles - 1)
        q, v, a = self.curve(np.minimum(since, self.curve.duration))
        still = since >= self.curve.duration
        v[still] = a[still] = 0.0
        return Motion(t, q, v, a)

    def slowed(self, speed: float) -> Plan:
        """Return the same motions at a share of their speed (above 0 up to 1), for example for a first run."""
        stages = [replace(stage, curve=Slowed(stage.curve, speed)) for stage in self.stages]
        return replace(
            self,
            stages=stages,
            speed=speed * self.speed,
            acceleration=speed**2 * self.acceleration,
            jerk=None if self.jerk is None else speed**3 * self.jerk,
            period=self.period / speed,
            notes={**self.notes, "slowed": speed},
        )

    def summary(self) -> str:
        """Return the plan as text. One line per stage."""
        times = f"{self.cycles} {'cycles' if self.cycles > 1 else 'cycle'}"
        head = f"plan {self.identity} of {self.robot}: {times} of {self.curve.duration:.4g} s at {self.rate:g} Hz"
        rows = [f"  {s.name}: {s.purpose}, {s.repetitions} x {s.curve.duration:.4g} s" for s in self.stages]
        return "\n".join([head, *rows])

    def plot(self) -> Figure:
        """Draw the positions of one cycle over time."""
        figure, axes = one_axes(9.0, 3.6, "time [s]", "position [rad, m]", f"{label(self.robot)}: one cycle")
        t = np.linspace(0.0, self.curve.duration, 2000)
        for name, q in zip(self.coordinates, self.curve(t)[0].T, strict=True):
            axes.plot(t, q, linewidth=0.9, label=label(name))
        axes.legend(frameon=False, fontsize=8, ncols=4)
        return figure

    def _motions(self) -> dict[str, Any]:
        """Motions of the robot as plain data."""
        stages = [{key: getattr(s, key) for key in STAGE} | {"motion": s.curve.spec()} for s in self.stages]
        values = {label: getattr(self, label) for label in (*VECTORS, *BOUNDS)}
        vectors = {label: None if value is None else value.tolist() for label, value in values.items()}
        head = {"format": FORMAT, "robot": self.robot, "coordinates": list(self.coordinates), "rate": self.rate}
        return {**head, "cycles": self.cycles, "period": self.period, **vectors, "stages": stages}

    def _content(self) -> dict[str, Any]:
        return {**self._motions(), "notes": dict(self.notes), "identity": self.identity}

    @property
    def identity(self) -> str:
        """Hash of sixteen digits by which a log refers to this plan; it excludes notes."""
        content = json.dumps(json.loads(to_json(self._motions())), sort_keys=True)  # same values as after reading a file
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Read a file written by `save`."""
        data = read_json(path, "a plan")
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise DynidentError(f"'{path}' is not a plan; make one with dynident excite")
        try:
            return cls.from_dict(data)
        except DynidentError as error:
            raise DynidentError(f"cannot read a plan from '{path}': {error}") from error

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        """Return the plan from the result of `to_dict`."""
        stages = []
        for each in stored(data, "stages", list[Mapping[str, Any]], "plan"):
            curve = from_spec(stored(each, "motion", Any, "stage"))
            stages.append(Stage(curve=curve, **{key: stored(each, key, Any, "stage") for key in STAGE}))
        given = [key for key in (*VECTORS, *BOUNDS) if key in VECTORS or data.get(key) is not None]
        vectors: dict[str, Any] = {key: bound_from_spec(data, key) for key in given}
        others = ("robot", "coordinates", "cycles", "rate", "period", "notes")
        plan = cls(stages=stages, **{key: stored(data, key, Any, "plan") for key in others}, **vectors)
        if "identity" in data and data["identity"] != plan.identity:
            raise DynidentError(
                f"the plan was changed after it was made (its identity is {data['identity']}, its content's "
                f"{plan.identity}); remove its line 'identity' to make it a new plan, or take the original"
            )
        return plan


def refer(log: Log, plan: Plan, cycle: int = 0) -> Log:
    """Return a recording of one cycle of `plan` that names the plan and its stages in its provenance.

    ``provenance["stages"]`` has name, purpose, start and end of the recorded stages in the clock of the log; `identify` fits
    stages for training and is judged by stages for validation.

    Parameters
    ----------
    log : Log
        Recording whose first sample is the start of a cycle; a reference to another plan raises an error.
    plan : Plan
        Executed plan.
    cycle : int
        Number of the cycle, from 0.
    """
    _check_plan(log, plan)
    zero = float(log.t[0])
    stages = stage_intervals((zero + e["start"], zero + e["end"], e) for e in plan.schedule())
    origin = {"sha256": log.checksum(), **log.provenance}
    return replace(log, provenance={**origin, "plan": plan.identity, "cycle": cycle, "stages": stages})


def stage_intervals(entries: Iterable[tuple[float, float, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return recorded stages without payload; `entries` are start, end and entry of a schedule, repetitions become one."""
    found: list[dict[str, Any]] = []
    for start, end, entry in entries:
        if not entry["record"] or entry["payload"]:
            continue
        last = found[-1] if found else None
        if last is not None and last["name"] == entry["name"] and abs(last["end"] - start) < TOGETHER:
            last["end"] = end
        else:
            found.append({"name": entry["name"], "purpose": entry["purpose"], "start": start, "end": end})
    return found


def purpose_logs(log: Log) -> dict[str, list[Log]]:
    """Return the stretches of a log by the purpose of their stages, from its recorder or `refer`; {} if unknown."""
    found: dict[str, list[Log]] = {}
    stages = log.provenance.get("stages")
    for i, entry in enumerate(stages if isinstance(stages, list) else []):
        where = f"stage {i} of log '{log.name}'"
        name, purpose = (stored(entry, key, str, where) for key in ("name", "purpose"))
        start, end = (stored(entry, key, float, where) for key in ("start", "end"))
        part = _whole_stretch(log, start, end)
        if part is not None:
            known = {key: value for key, value in part.provenance.items() if key != "stages"}
            found.setdefault(purpose, []).append(replace(part, name=f"{log.name}/{name}", provenance=known))
    return found


def _whole_stretch(log: Log, begin: float, end: float) -> Log | None:
    """Return the samples from `begin` up to, not including, `end`; None if the log does not hold all of them."""
    slack = 0.5 * float(np.median(np.diff(log.t)))
    if end > log.t[-1] + 2.0 * slack or begin < log.t[0] - 2.0 * slack:
        return None
    return log.between(begin - slack, end - slack)  # the last instant is the first one of the next stretch


def _check_plan(log: Log, plan: Plan) -> None:
    """Raise an error for a log that refers to another plan."""
    named = plan_identity(log)
    if named is not None and named != plan.identity:
        raise DynidentError(
            f"log '{log.name}' refers to plan {named}, not to {plan.identity}; give the plan it was recorded with"
        )


def stage_logs(log: Log, plan: Plan) -> dict[str, list[Log]]:
    """Return the stretches of a log that the plan records, by stage and repetition.

    Parameters
    ----------
    log : Log
        Recording of one cycle, from its start.
    plan : Plan
        Executed plan; a log that refers to another plan raises an error.

    Returns
    -------
    dict of str to list of Log
        One log per repetition of every stage with ``record``; stages that end after the log are left out.
    """
    _check_plan(log, plan)
    zero = float(log.t[0])
    found: dict[str, list[Log]] = {}
    for entry in plan.schedule():
        part = _whole_stretch(log, zero + entry["start"], zero + entry["end"]) if entry["record"] else None
        if part is not None:
            found.setdefault(entry["name"], []).append(replace(part, name=f"{log.name}/{entry['name']}"))
    if not found:
        raise DynidentError(
            f"log '{log.name}' of {log.duration:.1f} s holds no whole stage of the plan, whose cycle lasts "
            f"{plan.curve.duration:.1f} s; give the whole recording"
        )
    return found


def plan_identity(log: Log) -> str | None:
    """Return the identity of a log's plan, from its recorder or virtual robot, or None."""
    named = log.provenance.get("plan")
    if named is None:
        source = log.provenance.get("reference")
        named = source.get("plan") if isinstance(source, Mapping) else None
    return named if isinstance(named, str) and named else None


def average_log(log: Log, plan: Plan, stage: str = "excitation", skip: int = 0) -> Log:
    """Return the mean over the repetitions of a stage: noise falls with the root of their number, the motion does not.

    `log` is a recording of one cycle of `plan` at its rate, `stage` the name; the first repetitions are left out (`skip`,
    transients). ``provenance["averaged"]`` is the number of repetitions.
    """
    parts = stage_logs(log, plan).get(stage, [])[skip:]
    if not parts:
        raise DynidentError(f"log '{log.name}' holds no repetition of stage '{stage}' after the first {skip}; record more")
    count = min(len(part) for part in parts)
    if max(len(part) for part in parts) > count + 1:
        raise DynidentError(f"repetitions of stage '{stage}' have different numbers of samples; record at one steady rate")
    means: dict[str, Any] = {}
    for key in ("position", "effort", "velocity", "acceleration", "temperature"):
        arrays = [getattr(part, key) for part in parts]
        means[key] = None if arrays[0] is None else np.mean([array[:count] for array in arrays], axis=0)
    first = parts[0].rows(0, count)
    return replace(first, provenance={**first.provenance, "averaged": len(parts)}, **means)
