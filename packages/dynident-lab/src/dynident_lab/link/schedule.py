"""Schedule of a campaign: repetitions of a plan's cycles, pauses, rests and start conditions.

duty D:  a cycle of motion T is followed by a pause of T (1 - D) / D;  without D the plan's period gives the pause
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import LinkError
from dynident.excitation import Plan
from dynident.mechanics import Motion
from dynident_lab.link.controller import Identity

MOST_CYCLES = 100_000  # limit for a campaign: months
UNITS = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True)
class Settings:
    """Schedule settings of a campaign.

    Parameters
    ----------
    repetitions : int
        Number of runs of all cycles of the plan.
    rest : float
        Rest between two repetitions [s].
    below : float or None
        Every repetition starts only when all temperatures are below this value [degree Celsius].
    idle : float
        Least time from the last motion to the start of every repetition; for the first one of a robot that has not
        moved yet, from the creation of the campaign [s]. It starts together with `rest`, so the longer of both counts.
    duty : float or None
        Share of time in motion, above 0 and up to 1; the plan's own period if None.
    cycles : int or None
        Cycles of a repetition; the plan's if None.
    tolerance : float
        Residual between measured and predicted effort, over the largest predicted one, at which the motion stops.
    """

    repetitions: int = 1
    rest: float = 0.0
    below: float | None = None
    idle: float = 0.0
    duty: float | None = None
    cycles: int | None = None
    tolerance: float = 0.5

    def __post_init__(self) -> None:
        for label, count in (("repetitions", self.repetitions), ("cycles", 1 if self.cycles is None else self.cycles)):
            if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_CYCLES:
                raise LinkError(f"{label} is {count!r:.60}; give a whole number from 1 to {MOST_CYCLES}")
        for label in ("rest", "idle", "tolerance"):
            value = getattr(self, label)
            if not (isinstance(value, int | float) and math.isfinite(value) and value >= 0.0):
                raise LinkError(f"{label} is {value!r}; give a number, 0 or above")
        if self.below is not None and not (isinstance(self.below, int | float) and math.isfinite(self.below)):
            raise LinkError(f"below is {self.below!r}; give a temperature")
        if self.duty is not None and not 0.0 < self.duty <= 1.0:
            raise LinkError(f"duty is {self.duty}; give a share of time above 0 and up to 1")

    @classmethod
    def of(cls, plan: Plan, given: Mapping[str, Any]) -> Settings:
        """Return the settings in a plan's notes under "campaign", overridden by given ones."""
        noted = plan.notes.get("campaign", {})
        known = {f.name for f in fields(cls)}
        if not isinstance(noted, Mapping) or set(noted) - known:
            raise LinkError(f"notes of the plan have the campaign {noted!r}; known are {', '.join(sorted(known))}")
        return cls(**{**noted, **{key: value for key, value in given.items() if value is not None}})

    def to_dict(self) -> dict[str, Any]:
        """Return the settings by name as plain data."""
        return asdict(self)


def seconds(text: str, label: str) -> float:
    """Return a time such as 90, 90s, 5min, 8h or 1d in seconds; `label` names it in an error."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*", text)
    if found is None or found.group(2) not in UNITS:
        raise LinkError(f"{label} is '{text}'; give a time such as 90s, 5min or 8h")
    return float(found.group(1)) * UNITS[found.group(2)]


def cycle_motion(plan: Plan, identity: Identity) -> Motion:
    """Return one cycle in the order of the controller's coordinates, after checking that the controller can execute it."""
    names = identity.coordinates or plan.coordinates
    if set(names) != set(plan.coordinates) or len(names) != len(plan.coordinates):
        raise LinkError(
            f"the plan moves {', '.join(plan.coordinates)} but the controller has {', '.join(names)}; connect the right one"
        )
    if identity.robot and identity.robot != plan.robot:
        raise LinkError(
            f"the plan is for robot '{plan.robot}' but the controller drives '{identity.robot}'; connect the right one"
        )
    rate = plan.rate
    if identity.period:
        rate = 1.0 / (identity.period * max(1, round(1.0 / (plan.rate * identity.period))))
    made = plan.motion(rate)
    order = [plan.coordinates.index(name) for name in names]
    motion = Motion(made.t, made.q[:, order], made.v[:, order], made.a[:, order])
    if identity.lower is not None and identity.upper is not None and identity.velocity is not None:
        _within(motion, names, identity.lower, identity.upper, identity.velocity)
    return motion


def _within(motion: Motion, names: tuple[str, ...], lower: Array, upper: Array, velocity: Array) -> None:
    if len(names) != lower.size:
        raise LinkError(f"the plan moves {len(names)} joints but the controller has {lower.size}; connect the right one")
    checks = (
        ("goes down to", motion.q.min(axis=0), lower, -1.0),
        ("goes up to", motion.q.max(axis=0), upper, 1.0),
        ("is as fast as", np.abs(motion.v).max(axis=0), velocity, 1.0),
    )
    for what, found, limit, sign in checks:
        bad = sign * (found - limit) > 1e-4 * (1.0 + np.abs(limit))
        if bad.any():
            i = int(np.argmax(bad))
            raise LinkError(
                f"the plan {what} {found[i]:.6g} with joint '{names[i]}', beyond the controller's limit {limit[i]:.6g}; "
                "make a plan within it"
            )


@dataclass(frozen=True)
class Step:
    """One cycle of a campaign."""

    number: int  # Number over all repetitions
    repetition: int  # Number of the repetition
    pause: float  # Pause after it [s]; after the last one of a repetition, until the start of the next one
    first: bool  # True for the first cycle of a repetition, which waits for the start conditions


def steps_of(plan: Plan, settings: Settings) -> list[Step]:
    """Return the cycles of a campaign in order."""
    cycles, motion = settings.cycles or plan.cycles, plan.curve.duration
    if cycles * settings.repetitions > MOST_CYCLES:
        raise LinkError(
            f"the campaign has {settings.repetitions:.6g} repetitions of {cycles:.6g} cycles, above the limit of "
            f"{MOST_CYCLES}; lower repetitions or cycles"
        )
    pause = max(0.0, plan.period - motion) if settings.duty is None else motion * (1.0 / settings.duty - 1.0)
    out = []
    for repetition in range(settings.repetitions):
        for cycle in range(cycles):
            last = cycle == cycles - 1
            between = max(settings.rest, settings.idle) if repetition < settings.repetitions - 1 else 0.0
            after = between if last else pause
            out.append(Step(repetition * cycles + cycle, repetition, after, cycle == 0))
    return out


def warmest_of(temperatures: ArrayLike, limit: float) -> float:
    """Return the largest of some temperatures, at least one of which must be known for a start limit [degree Celsius]."""
    known = np.asarray(temperatures, dtype=np.float64)
    if not np.isfinite(known).any():
        raise LinkError(
            f"the start waits for temperatures below {limit:g} degC but the controller reports none; omit the temperature"
        )
    return float(np.nanmax(known))


def describe(plan: Plan, settings: Settings) -> str:
    """Return a description of a campaign with its duration.

    Parameters
    ----------
    plan : Plan
        Plan of a cycle.
    settings : Settings
        Repetitions and pauses.

    Returns
    -------
    str
        A few lines.
    """
    steps = steps_of(plan, settings)
    moving, resting = len(steps) * plan.curve.duration, settings.idle + sum(step.pause for step in steps)
    lines = [f"plan {plan.identity} for robot '{plan.robot}': {', '.join(plan.coordinates)}"]
    for entry in plan.schedule():
        kept = "" if entry["record"] else ", not kept as a stage"
        lines.append(f"  {entry['start']:8.1f} s to {entry['end']:8.1f} s  {entry['name']} ({entry['purpose']}{kept})")
    again = f" in {settings.repetitions} repetitions" if settings.repetitions > 1 else ""
    lines.append(f"{len(steps)} {'cycles' if len(steps) > 1 else 'cycle'} of {plan.curve.duration:.1f} s{again}")
    if settings.below is not None:
        lines.append(f"each repetition waits until all temperatures are below {settings.below:g} degC")
    if settings.idle:
        lines.append(f"each repetition waits until {clock_text(settings.idle)} after the last motion")
    lines.append(f"in motion {clock_text(moving)}, pauses and rests {clock_text(resting)}")
    lines.append(f"in all {clock_text(moving + resting)}" + (" plus cooling time" if settings.below is not None else ""))
    return "\n".join(lines)


def clock_text(duration: float) -> str:
    """Return a duration as readable text, as in 2 h 05 min 00 s."""
    whole = round(duration)
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    if hours:
        return f"{hours} h {minutes:02d} min {left:02d} s"
    return f"{minutes} min {left:02d} s" if minutes else f"{duration:.1f} s"
