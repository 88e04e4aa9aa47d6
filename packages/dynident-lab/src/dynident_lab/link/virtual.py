"""A campaign on a virtual robot, as fast as possible: it writes the same folder as `dynident record`.

Cycles run one after the other at constant memory; temperatures continue through all of them. The state of the machine is
saved after every cycle, so a killed run continues without a difference.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.errors import DynidentError, LinkError
from dynident.excitation import Plan
from dynident.files import BYTES, ContentError, parsed, read_regular, write_atomic
from dynident.friction import Friction
from dynident.mechanics import Motion
from dynident.results import stored
from dynident.signals import Log
from dynident.simulate import VirtualRobot
from dynident_lab.link.controller import Identity, Samples, approach
from dynident_lab.link.plant import MOST_SETTLING, SHORTEST, Plant, facts_of, settling_periods
from dynident_lab.link.recorder import Recorder, check_new, create_folder, lock_folder, open_folder
from dynident_lab.link.schedule import Settings, cycle_motion, seconds, steps_of, warmest_of
from dynident_lab.link.setpoints import on_ticks, sampled, standing

STATE = "state.json"
PIECE = 5.0  # simulated at a time: bounds the memory and the record of a run [s]
COOLING_STEP = 60.0  # interval of the temperature checks of a cooling robot [s]
LONGEST_COOLING = 86400.0  # longest cooling [s]


@dataclass(frozen=True)
class Fault:
    """A change of the friction of one joint."""

    joint: str  # Name of the joint
    factor: float  # Friction over that of the healthy joint, above zero
    onset: float = 0.0  # Time of the change since the start of the campaign [s]

    def __post_init__(self) -> None:
        if not (np.isfinite(self.factor) and self.factor > 0.0 and np.isfinite(self.onset) and self.onset >= 0.0):
            raise LinkError(f"fault of '{self.joint}': factor {self.factor} and onset {self.onset} s; give numbers above zero")

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Return the fault of a text such as joint_1=1.32@60min."""
        found = re.fullmatch(r"\s*([^=]+?)\s*=\s*([0-9.eE+-]+)\s*(?:@\s*(.+))?", text)
        try:
            assert found is not None
            return cls(found.group(1), float(found.group(2)), seconds(found.group(3), "its time") if found.group(3) else 0.0)
        except (AssertionError, ValueError) as error:
            reason = f" ({error})" if isinstance(error, LinkError) else ""
            raise LinkError(f"fault is '{text}'{reason}; give joint=factor@time, such as joint_1=1.32@60min") from None


def with_faults(robot: VirtualRobot, faults: Sequence[Fault], now: float) -> VirtualRobot:
    """Return the robot with the faults that have occurred; its friction laws keep their form."""
    laws = dict(robot.friction)
    for fault in faults:
        law = laws.get(fault.joint)
        if not isinstance(law, Friction):
            known = ", ".join(name for name, kept in laws.items() if isinstance(kept, Friction)) or "none"
            raise LinkError(f"fault: joint '{fault.joint}' has no friction law of its own; those with one are {known}")
        if fault.onset <= now + 1e-9:
            count = len(law.law.linear)
            scale = np.concatenate([np.full(count, fault.factor), np.ones(law.values.size - count)])
            laws[fault.joint] = replace(law, values=law.values * scale)
    return replace(robot, friction=laws)


def simulate_campaign(
    folder: str | os.PathLike[str],
    plan: Plan,
    robot: VirtualRobot,
    settings: Settings | None = None,
    *,
    period: float = 0.004,
    seed: int = 0,
    faults: Sequence[Fault] = (),
    progress: Callable[[int, int], object] | None = None,
    start: ArrayLike | None = None,
) -> int:
    """Run a plan on a virtual robot, cycle by cycle, into the folder of a campaign; continue an interrupted call.

    Parameters
    ----------
    folder : path-like
        New or empty folder, or the folder of an interrupted call.
    plan : Plan
        Plan of a cycle.
    robot : VirtualRobot
        The machine.
    settings : Settings, optional
        Repetitions, pauses and start conditions; the plan's own when omitted.
    period : float
        Time between two samples [s].
    seed : int
        Seed of all noise.
    faults : sequence of Fault
        Changes of the friction during the campaign.
    progress : callable, optional
        Called with the number of completed cycles and of all cycles.
    start : array_like (n,), optional
        Position before the first cycle; zero, moved into its ranges, when omitted.

    Returns
    -------
    int
        Number of cycles run by this call; `Log.read` of the folder returns the log.
    """
    place, how = Path(folder), settings or Settings.of(plan, {})
    plant = Plant(with_faults(robot, faults, -1.0), start, period, seed)
    identity = Identity.of(
        {**facts_of(plant, plant.coordinates), "buffer": 0, "speed": 1.0, "acceleration": [None] * plant.robot.mechanism.dof}
    )
    motion, steps = on_ticks(cycle_motion(plan, identity), robot.step), steps_of(plan, how)
    asked = {"seed": seed, "period": period, "faults": [[f.joint, f.factor, f.onset] for f in faults]}
    if (place / "campaign.json").exists():
        _same(place, plan, how, identity)
    else:
        check_new(place)
        create_folder(place, plan, how, identity, "")
        _save_state(place, {"asked": asked, "done": 0, "clock": 0.0, "plant": None})
    lock = lock_folder(place)
    recorder = None
    try:
        done, clock, memory = _state(place, asked)
        _drop_unfinished(place, done)
        recorder = Recorder(place, identity.channels, interval=3600.0)
        machine = _Machine(recorder, plant, robot, faults)
        if memory is not None:
            plant.remember(memory)
        known = {e["cycle"] for e in recorder.journal.events if e["event"] == "cycle done"}
        if done and done - 1 not in known:  # interrupted between the state and the journal
            recorder.journal.note("cycle done", cycle=done - 1, attempt=_attempts(recorder, done - 1) - 1)
        for step in steps[done:]:
            if not step.number:
                plant.rest(how.idle)
                clock += how.idle
            if step.first and how.below is not None:
                clock += _cool_down(plant, how.below)
            if not step.number:
                clock = machine.approach(motion, identity, clock)
            clock, settled = machine.cycle(step.number, motion, clock)
            pause = max(settled, round(step.pause / period))  # both in periods
            plant.rest((pause - settled) * period)
            clock += pause * period
            _save_state(place, {"asked": asked, "done": step.number + 1, "clock": clock, "plant": plant.memory()})
            recorder.journal.note("cycle done", cycle=step.number, attempt=_attempts(recorder, step.number) - 1)
            if progress is not None:
                progress(step.number + 1, len(steps))
        return len(steps) - done
    finally:
        if recorder is not None:
            recorder.close()
        os.close(lock)


def _save_state(folder: Path, state: dict[str, Any]) -> None:
    write_atomic(folder / STATE, json.dumps(state).encode())


def _drop_unfinished(folder: Path, done: int) -> None:
    """Remove recordings of cycles that will be run again: in the time of the virtual robot they did not happen."""
    for file in (*folder.glob("*_cycle_*"), *folder.glob("*_approach_*")):
        number = file.name.split("_")[2]
        if number.isdecimal() and int(number) >= done:
            file.unlink()


def _same(folder: Path, plan: Plan, settings: Settings, identity: Identity) -> None:
    """Refuse to continue with another campaign."""
    about, before, began = open_folder(folder)
    own = [(name, getattr(settings, name), getattr(before, name)) for name in (field.name for field in fields(Settings))]
    for what, now, then in (
        ("plan", plan.identity, began.identity),
        *own,
        ("robot", identity.identity, about["controller"]["identity"]),
    ):
        if now != then:
            raise LinkError(
                f"'{folder}' contains a campaign with {what} {then}, not {now}; give the same value, or a new folder"
            )


def _state(folder: Path, asked: dict[str, Any]) -> tuple[int, float, Any]:
    """Return completed cycles, clock and machine of an existing campaign; zeros and None for a new one."""
    file = folder / STATE
    if not file.exists():
        return 0, 0.0, None
    try:
        state = parsed(json.loads, read_regular(file, BYTES))
        then = stored(state, "asked", Mapping[str, Any], "state")
        hints = {"done": int, "clock": float, "plant": Any}
        done, clock, plant = (stored(state, key, hint, "state") for key, hint in hints.items())
    except (OSError, ContentError, DynidentError) as error:
        raise LinkError(f"'{file}' cannot be read ({error}); start again in a new folder") from error
    differ = [f"{key} {then.get(key)}, not {value}" for key, value in asked.items() if then.get(key) != value]
    if differ or then != asked:
        raise LinkError(
            f"'{folder}' was started with {'; '.join(differ) or 'other options'}; give the same values, or a new folder"
        )
    return done, clock, plant


def _attempts(recorder: Recorder, cycle: int) -> int:
    return sum(e["event"] == "cycle begun" and e["cycle"] == cycle for e in recorder.journal.events)


def _cool_down(plant: Plant, limit: float) -> float:
    """Let the robot stand until all temperatures are below a limit [degree Celsius]; return the time taken [s]."""
    for waited in range(0, round(LONGEST_COOLING), round(COOLING_STEP)):
        warmest = warmest_of(plant.rest(COOLING_STEP if waited else 0.0)[3], limit)
        if warmest < limit:
            return float(waited)
    raise LinkError(
        f"the robot still has {warmest:.3g} degC after {LONGEST_COOLING / 3600.0:g} h of rest, but must start below "
        f"{limit:g} degC; give a limit above the ambient temperature"
    )


@dataclass(frozen=True, eq=False)
class _Machine:
    """A virtual robot with recorded motions, and with friction that changes over time."""

    recorder: Recorder
    plant: Plant
    robot: VirtualRobot
    faults: Sequence[Fault]

    def approach(self, motion: Motion, identity: Identity, clock: float) -> float:
        """Move slowly to the start of the cycles, as on a controller; return the clock, which counts from the first cycle."""
        way = approach(self.plant.coordinates, motion.q[0], identity)
        if way is None:
            return clock
        way, period = on_ticks(way, self.robot.step), self.plant.period
        self.recorder.open("approach", 0, 0, "0")
        before = (round(way.t[-1] / period) + settling_periods(period)) * period
        end, settled = self.move(way, clock - before)
        return end + settled * period

    def cycle(self, number: int, motion: Motion, clock: float) -> tuple[float, int]:
        """Run one cycle; return the clock at its end, and the periods until rest."""
        attempt = _attempts(self.recorder, number)
        self.recorder.journal.note("cycle begun", cycle=number, attempt=attempt, session=0)
        self.recorder.new_session()
        self.recorder.open("cycle", number, attempt, "0")
        return self.move(motion, clock)

    def move(self, motion: Motion, clock: float) -> tuple[float, int]:
        """Run a motion piece by piece until the robot stands; return the clock at its end, and the periods until rest."""
        plant, robot, period = self.plant, self.robot, self.plant.period
        ticks, last = round(period / robot.step), round(motion.t[-1] / period)
        onsets = {round((f.onset - clock) / period) for f in self.faults}
        for begin, end in pairwise(_cuts(last, round(PIECE / period), onsets)):
            plant.robot = with_faults(robot, self.faults, clock + begin * period)
            setpoints = sampled(motion, begin * ticks, end * ticks, robot.step)
            self.recorder.append(clock + begin * period, _samples(plant.follow(setpoints), begin, end - begin, clock, period))
        rows, settled = settling_periods(period), 0
        while not settled or (not plant.still and settled < MOST_SETTLING * rows):
            log = plant.follow(standing(setpoints.q[-1], rows * period))
            if not settled:
                self.recorder.append(clock + last * period, _samples(log, last, 1, clock, period))
            settled += rows
        self.recorder.close_segment()
        return clock + last * period, settled


def _cuts(last: int, piece: int, onsets: set[int]) -> list[int]:
    """Return the divisions of a cycle: at all onsets of faults, and so that no piece is too long or too short."""
    known = [k for k in sorted(onsets) if SHORTEST <= k <= last - SHORTEST]
    fixed = [0, *(b for a, b in pairwise([0, *known]) if b - a >= SHORTEST), last]
    regular = {k for k in range(piece, last, piece) if min(abs(k - x) for x in fixed) >= SHORTEST}
    return sorted({*fixed, *regular})


def _samples(log: Log, begin: int, count: int, clock: float, period: float) -> Samples:
    """Return the first samples of a piece that begins at a given period of the cycle."""
    rows = np.arange(count)
    missing = np.full((count, len(log.joints)), np.nan)
    motion = np.asarray((begin + rows) * period, dtype=np.float64)
    signals = [missing if x is None else x[rows] for x in (log.position, log.velocity, log.effort, log.temperature)]
    return Samples(np.round((clock + motion) / period).astype(np.int64), np.asarray(clock + motion), motion, *signals)
