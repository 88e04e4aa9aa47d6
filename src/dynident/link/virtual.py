"""A campaign on a virtual robot, as fast as the computer can: the folder that `dynident record` would have written.

One cycle after the other at constant memory; temperatures go on through all of them. What the machine carries is on the disk
after every cycle, so a run that was killed goes on as if it had not been.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dynident.errors import LinkError
from dynident.excitation import Plan
from dynident.files import BYTES, parsed, read_regular, write_atomic
from dynident.friction import Friction
from dynident.link.controller import Identity, Samples
from dynident.link.emulator import facts_of
from dynident.link.plant import Plant
from dynident.link.recorder import Recorder, check_new, create_folder, lock_folder, open_folder
from dynident.link.schedule import Settings, Step, cycle_motion, seconds, steps_of
from dynident.mechanics import Motion
from dynident.signals import Log
from dynident.simulate import VirtualRobot

STATE = "state.json"
PIECE = 60.0  # simulated at a time: bounds the memory [s]


@dataclass(frozen=True)
class Fault:
    """A change of the friction of one joint.

    Parameters
    ----------
    joint : str
        Which joint.
    factor : float
        Friction over that of the healthy joint, above zero.
    onset : float
        From when on, since the start of the campaign [s].
    """

    joint: str
    factor: float
    onset: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.factor) and self.factor > 0.0 and np.isfinite(self.onset) and self.onset >= 0.0):
            raise LinkError(f"fault of '{self.joint}': factor {self.factor} and onset {self.onset} s; give numbers above zero")

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Return the fault that a text such as joint_1=1.32@60min describes.

        Parameters
        ----------
        text : str
            Joint, factor, and when.

        Returns
        -------
        Fault
            The fault.
        """
        found = re.fullmatch(r"\s*([^=]+?)\s*=\s*([0-9.eE+-]+)\s*(?:@\s*(.+))?", text)
        try:
            assert found is not None
            return cls(found.group(1), float(found.group(2)), seconds(found.group(3), "its time") if found.group(3) else 0.0)
        except (AssertionError, ValueError) as error:
            reason = f" ({error})" if isinstance(error, LinkError) else ""
            raise LinkError(f"fault is '{text}'{reason}; give joint=factor@time, such as joint_1=1.32@60min") from None


def with_faults(robot: VirtualRobot, faults: Sequence[Fault], now: float) -> VirtualRobot:
    """Return the robot with the faults that have begun; its friction laws keep their form."""
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
) -> int:
    """Run a plan on a virtual robot, cycle by cycle, into the folder of a campaign; go on where an earlier call was stopped.

    Parameters
    ----------
    folder : path-like
        New or empty folder, or one in which the same campaign was begun.
    plan : Plan
        What a cycle is.
    robot : VirtualRobot
        The machine.
    settings : Settings, optional
        How often and with which pauses; the plan's own when omitted. ``idle`` is spent energised before each repetition.
    period : float
        Time between two samples [s].
    seed : int
        Of all noise.
    faults : sequence of Fault
        Changes of the friction on the way.
    progress : callable, optional
        Called with the number of cycles done and of all.

    Returns
    -------
    int
        Cycles that were run by this call; `Log.read` of the folder gives the log.
    """
    place, how = Path(folder), settings or Settings.of(plan, {})
    plant = Plant(with_faults(robot, faults, -1.0), plan.home, period, seed)
    identity = Identity.of({**facts_of(plant, plan.home), "buffer": 0, "speed": 1.0})
    motion, steps = cycle_motion(replace(plan, rate=1.0 / period), identity), steps_of(plan, how)
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
        if memory is not None:
            plant.remember(memory)
        known = {e["cycle"] for e in recorder.journal.events if e["event"] == "cycle done"}
        if done and done - 1 not in known:  # stopped between the state and the journal
            recorder.journal.note("cycle done", cycle=done - 1, attempt=_attempts(recorder, done - 1) - 1)
        for step in steps[done:]:
            if step.first and how.idle:
                plant.rest(how.idle)
                clock += how.idle
            clock = _cycle(recorder, plant, step, motion, clock, robot, faults)
            plant.rest(step.pause)
            clock += step.pause
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
    """Remove what was recorded of cycles that will be run again: in the time of the virtual robot they never were."""
    for file in folder.glob("*_cycle_*"):
        number = file.name.split("_")[2]
        if number.isdecimal() and int(number) >= done:
            file.unlink()


def _same(folder: Path, plan: Plan, settings: Settings, identity: Identity) -> None:
    """Refuse to go on with another campaign."""
    about, before, began = open_folder(folder)
    own = [(name, getattr(settings, name), getattr(before, name)) for name in (field.name for field in fields(Settings))]
    for what, now, then in (
        ("plan", plan.identity, began.identity),
        *own,
        ("robot", identity.identity, about["controller"]["identity"]),
    ):
        if now != then:
            raise LinkError(f"'{folder}' holds a campaign with {what} {then}, not {now}; give the same, or a new folder")


def _state(folder: Path, asked: dict[str, Any]) -> tuple[int, float, Any]:
    """Return cycles done, clock and machine of a campaign that was begun; zeros and None for a new one."""
    file = folder / STATE
    if not file.exists():
        return 0, 0.0, None
    try:
        state = parsed(json.loads, read_regular(file, BYTES).decode())
        if state["asked"] != asked:
            other = [f"{key} {state['asked'].get(key)}, not {value}" for key, value in asked.items()]
            differ = [text for text, (key, value) in zip(other, asked.items(), strict=True) if state["asked"].get(key) != value]
            raise LinkError(f"'{folder}' was begun with {'; '.join(differ)}: give the same, or a new folder")
        return int(state["done"]), float(state["clock"]), state["plant"]
    except (ValueError, LookupError, TypeError) as error:
        if isinstance(error, LinkError):
            raise
        raise LinkError(f"'{file}' cannot be read ({error}); begin again in a new folder") from error


def _attempts(recorder: Recorder, cycle: int) -> int:
    return sum(e["event"] == "cycle begun" and e["cycle"] == cycle for e in recorder.journal.events)


def _cycle(
    recorder: Recorder, plant: Plant, step: Step, motion: Motion, clock: float, robot: VirtualRobot, faults: Sequence[Fault]
) -> float:
    """Run one cycle piece by piece; return the clock at its end."""
    attempt, period = _attempts(recorder, step.number), plant.period
    recorder.journal.note("cycle begun", cycle=step.number, attempt=attempt, session=0)
    recorder.new_session()
    recorder.open("cycle", step.number, attempt, "0")
    last = len(motion) - 1
    onsets = {round((f.onset - clock) / period) for f in faults}
    cuts = sorted({0, last, *range(0, last, round(PIECE / period)), *(k for k in onsets if 0 < k < last)})
    for begin, end in pairwise(cuts):
        plant.robot = with_faults(robot, faults, clock + begin * period)
        part = slice(begin, end + 1)
        log = plant.follow(Motion(motion.t[part] - motion.t[begin], motion.q[part], motion.v[part], motion.a[part]))
        recorder.append(clock + begin * period, _samples(log, begin, clock, period, first=begin == 0))
    recorder.close_segment()
    return clock + last * period


def _samples(log: Log, begin: int, clock: float, period: float, first: bool) -> Samples:
    """Return the samples of a piece; its first one belongs to the piece before, where there is one."""
    rows = np.arange(0 if first else 1, len(log.t))
    missing = np.full((rows.size, len(log.joints)), np.nan)
    motion = np.asarray((begin + rows) * period, dtype=np.float64)
    signals = [missing if x is None else x[rows] for x in (log.position, log.velocity, log.effort, log.temperature)]
    return Samples(np.round((clock + motion) / period).astype(np.int64), np.asarray(clock + motion), motion, *signals)
