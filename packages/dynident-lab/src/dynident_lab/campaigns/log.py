"""A recorded campaign: the folder of `dynident record` as one log, and as logs by stage and cycle.

The folder has campaign.json (plan, robot, host and software), and one segment per cycle and attempt. Times of
the log are the controller's; after a restart of its clock, the host's clock gives the time in between.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import DynidentError, LogError
from dynident.excitation.plan import stage_intervals
from dynident.files import BYTES, ContentError, parsed, read_regular
from dynident.results import stored
from dynident.signals import Log
from dynident.signals.log import MINIMUM_SAMPLES
from dynident_lab.campaigns.segments import LogSegment, read_segment

FORMAT = "dynident-campaign-1"
ABOUT = "campaign.json"
CONTROLLER: Mapping[str, Any] = {  # properties of the controller needed to read a campaign
    "period": float,
    "channels": list[str],
    "effort_kind": str | None,
    "gain": list[float] | float | None,
    "position_side": str,
}
COLUMNS = ("host", "index", "clock", "motion", "flag")
SIGNALS = ("position", "velocity", "effort", "temperature")
UNEXPLAINED = 0.1  # share of target moments that a drive gain may leave unexplained
GAP, REPEATED, CUT_OFF = 1, 2, 4  # flags of a sample: gap before it, repeated sample, interrupted recording


def campaign_columns(channels: tuple[str, ...], extras: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the columns of a campaign's segments."""
    return (*COLUMNS, *(f"{signal}_{channel}" for signal in SIGNALS for channel in channels), *extras)


def is_campaign(path: object) -> bool:
    """Return whether a path is the folder of a campaign."""
    return isinstance(path, str | os.PathLike) and (Path(path) / ABOUT).is_file()


def matches(path: Path) -> bool:
    """Return whether a path is a campaign or one of its recordings: this module is an entry of `dynident.log_readers`."""
    return is_campaign(path) or (path.suffix in (".seg", ".parquet") and is_campaign(path.parent))


def read(path: Path, **options: Any) -> CampaignLog:
    """Read the folder of a campaign for `Log.read`."""
    if not is_campaign(path):
        raise LogError(f"'{path}' is one recording of a campaign; give the campaign folder that contains {ABOUT}")
    log = read_campaign(path)
    effort = options.pop("effort", None)
    if options or effort not in (None, log.effort_kind):
        given = ", ".join(options) or f"effort '{effort}'"
        raise LogError(f"{given} cannot be given because '{path / ABOUT}' describes the signals of the campaign; omit it")
    return log


@dataclass(frozen=True, eq=False)
class Recording:
    """One segment of a campaign."""

    file: str  # Name of the segment
    kind: str  # "cycle", or "rest" and "approach" between cycles
    cycle: int  # Number of the cycle
    attempt: int  # Number of the attempt
    complete: bool  # True for a completed cycle
    rows: slice  # Its rows in the log
    motion: Array  # Time since the start of the cycle's motion [s]
    flag: NDArray[np.int64]  # `GAP`, `REPEATED` or 0
    host: Array  # Clock of the host [s since 1970]


def _stage_rows(part: Recording, about: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], NDArray[np.int64]]]:
    """Yield the schedule entries within a recording, and their rows in it."""
    slack = 0.5 * float(about["controller"]["period"])
    for entry in about.get("schedule", ()):
        rows = np.flatnonzero((part.motion >= entry["start"] - slack) & (part.motion < entry["end"] - slack))
        if rows.size >= MINIMUM_SAMPLES:
            yield entry, rows


@dataclass(frozen=True, eq=False, repr=False)
class CampaignLog(Log):
    """All samples of a campaign as one log; `cycles` and `stages` return its parts."""

    recordings: tuple[Recording, ...] = ()  # Segments in order
    about: Mapping[str, Any] = field(default_factory=dict)  # campaign.json: plan, robot, controller, software

    def rows(self, start: int, stop: int) -> Log:
        """Return a stretch of samples as a plain log."""
        names = ("joints", "effort_kind", "gain", "position_side", "name", "provenance", "truth")
        signals = ("t", "position", "effort", "velocity", "acceleration", "temperature", "reference")
        whole: dict[str, Any] = {name: getattr(self, name) for name in (*names, *signals)}
        return Log(**whole).rows(start, stop)

    def cycles(self) -> dict[int, Log]:
        """Return the log of every complete cycle.

        The keys are cycle numbers from 0; the provenance of each log names its plan and cycle.
        """
        out = {}
        for part in self._complete():
            running = np.flatnonzero(np.isfinite(part.motion))
            if running.size >= MINIMUM_SAMPLES:
                first = part.rows.start
                out[part.cycle] = self._named(first + running[0], first + running[-1] + 1, part, f"cycle {part.cycle}")
        return out

    def stages(self) -> dict[str, list[Log]]:
        """Return the logs of every recorded stage by name, in the order of cycles and repetitions."""
        out: dict[str, list[Log]] = {}
        for part in self._complete():
            for entry, rows in _stage_rows(part, self.about):
                if entry["record"]:
                    first, label = part.rows.start, f"cycle {part.cycle}/{entry['name']}"
                    log = self._named(first + rows[0], first + rows[-1] + 1, part, label)
                    out.setdefault(entry["name"], []).append(log)
        return out

    def _complete(self) -> list[Recording]:
        return [part for part in self.recordings if part.kind == "cycle" and part.complete]

    def _named(self, start: int, stop: int, part: Recording, label: str) -> Log:
        log = self.rows(int(start), int(stop))
        facts = {"cycle": part.cycle, "attempt": part.attempt, "gaps": int(np.sum(part.flag & GAP > 0))}
        return replace(log, name=f"{self.name}/{label}", provenance={**log.provenance, **facts})


def read_campaign(path: str | os.PathLike[str]) -> CampaignLog:
    """Read the folder of a campaign, finished or in progress."""
    folder = Path(path)
    with _explained(folder):
        about = read_about(folder)
        parts = list(_parts(folder, about))
        if sum(len(t) for _, t, _ in parts) < MINIMUM_SAMPLES:
            raise LogError(
                f"campaign '{folder}' has only {sum(len(t) for _, t, _ in parts)} samples so far; wait until the "
                "robot has moved"
            )
        return _log(folder, about, parts)


def read_cycles(path: str | os.PathLike[str]) -> Iterator[CampaignLog]:
    """Read a campaign cycle by cycle: each complete cycle is a separate campaign, and only one is in memory at a time."""
    folder = Path(path)
    with _explained(folder):
        about = read_about(folder)
        for part in _parts(folder, about):
            recording, t, _ = part
            if recording.kind == "cycle" and recording.complete and len(t) >= MINIMUM_SAMPLES:
                yield _log(folder, about, [part])


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Name the unreadable campaign in errors raised inside."""
    try:
        yield
    except LogError:
        raise
    except (OSError, ContentError, DynidentError) as error:
        raise LogError(f"campaign '{folder}' cannot be read: {error}; restore it from a backup") from error


def read_about(folder: Path) -> dict[str, Any]:
    """Return the content of campaign.json, after checking the entries needed to read a campaign."""
    about: dict[str, Any] = parsed(json.loads, read_regular(folder / ABOUT, BYTES))
    if stored(about, "format", Any, "campaign") != FORMAT:
        raise LogError(f"'{folder / ABOUT}' has the format {about['format']!r}; this version reads {FORMAT}")
    controller = stored(about, "controller", Mapping[str, Any], "campaign")
    for name, hint in CONTROLLER.items():
        stored(controller, name, hint, "controller")
    for entry in stored(about, "schedule", list[Mapping[str, Any]], "campaign") if "schedule" in about else ():
        for name, hint in {"name": str, "purpose": str, "payload": str, "record": bool, "start": float, "end": float}.items():
            stored(entry, name, hint, "schedule")
    return about


def _parts(folder: Path, about: dict[str, Any]) -> Iterator[tuple[Recording, Array, Array]]:
    """Yield description, times and rows of each segment."""
    controller = about["controller"]
    width = len(campaign_columns(tuple(controller["channels"]), tuple(controller.get("extras", ()))))
    period = float(controller["period"])
    ended = [e for e in read_journal(folder) if e["event"] == "cycle done"]
    done = {tuple(stored(e, name, int, "journal") for name in ("cycle", "attempt")) for e in ended}
    origin = _Clock()
    for file, segment in _segments(folder):
        if segment.table.shape[1] != width:
            raise LogError(f"'{file}' of campaign '{folder}' has {segment.table.shape[1]} columns, not {width}; copy it again")
        table = segment.table[segment.table[:, 4] != REPEATED]
        if not len(table):
            continue
        t = origin.times(table, str(segment.header.get("session", "")), period)
        later = np.concatenate([[True], np.diff(t) > 0.0])
        table, t = table[later], t[later]
        head = segment.header
        kind, cycle, attempt = (
            stored(head, "kind", str, "header"),
            *(stored(head, k, int, "header") for k in ("cycle", "attempt")),
        )
        columns = (table[:, 3], table[:, 4].astype(np.int64), table[:, 0])
        yield Recording(file, kind, cycle, attempt, (cycle, attempt) in done, slice(0, len(t)), *columns), t, table


def _log(folder: Path, about: dict[str, Any], parts: Sequence[tuple[Recording, Array, Array]]) -> CampaignLog:
    """Return segments as one log."""
    controller, joints = about["controller"], tuple(about["controller"]["channels"])
    n, count, recordings, stages = len(joints), 0, [], []
    period = float(controller["period"])
    for recording, t, _ in parts:
        if recording.kind == "cycle" and recording.complete:
            found = ((float(t[rows[0]]), float(t[rows[-1]]) + period, entry) for entry, rows in _stage_rows(recording, about))
            own = stage_intervals(found)
            stages += [{**entry, "name": f"cycle {recording.cycle}/{entry['name']}"} for entry in own]
        recordings.append(replace(recording, rows=slice(count, count + len(t))))
        count += len(t)
    whole = np.concatenate([np.column_stack([t, table]) for _, t, table in parts])
    signals = {name: whole[:, 6 + k * n : 6 + (k + 1) * n] for k, name in enumerate(SIGNALS)}
    optional: dict[str, Any] = {name: signals[name] for name in ("velocity", "temperature") if np.isfinite(signals[name]).any()}
    gain, source = drive_gains(whole[:, 6 + 4 * n :], controller)
    kept: dict[str, Any] = {key: about[key] for key in ("plan", "robot", "software") if key in about}
    sha256 = hashlib.sha256(whole.tobytes()).hexdigest()
    return CampaignLog(
        t=whole[:, 0],
        joints=joints,
        position=signals["position"],
        effort=signals["effort"],
        effort_kind=controller["effort_kind"] or "joint_torque",
        gain=gain,
        position_side=controller["position_side"],
        name=folder.name,
        provenance={"campaign": folder.name, "sha256": sha256, **kept, "controller": controller, "stages": stages, **source},
        recordings=tuple(recordings),
        about=about,
        **optional,
    )


def drive_gains(extra: Array, controller: Mapping[str, Any]) -> tuple[Any, dict[str, str]]:
    """Return the drive gains of a campaign, and a note for the provenance if they differ from the controller's.

    The gain of a channel is the least-squares slope of its target moments over its target currents.
    """
    if controller["gain"] is not None or controller["effort_kind"] != "motor_current":
        return controller["gain"], {}
    names, channels = list(controller.get("extras", ())), controller["channels"]
    wanted = [[f"target_{signal}_{i + 1}" for i in range(len(channels))] for signal in ("current", "moment")]
    if not {*wanted[0], *wanted[1]} <= set(names):
        return None, {"gain": "unknown: the controller has not sent both target moments and target currents"}
    current, moment = (extra[:, [names.index(name) for name in group]] for group in wanted)
    power = (current**2).sum(axis=0)
    slope = (current * moment).sum(axis=0) / np.where(power > 0.0, power, np.nan)
    rest = np.sqrt(((moment - slope * current) ** 2).sum(axis=0) / np.maximum((moment**2).sum(axis=0), 1e-300))
    bad = [name for name, k, left in zip(channels, slope, rest, strict=True) if not (k > 0.0 and left < UNEXPLAINED)]
    if bad:
        return None, {"gain": f"unknown: target moments of {', '.join(bad)} are not proportional to target currents"}
    return slope.tolist(), {"gain": "target moments over target currents of the controller"}


def read_journal(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return the events of a campaign up to the first incomplete line."""
    import zlib  # noqa: PLC0415 - only here

    file, out = Path(folder) / "journal.jsonl", []
    for line in read_regular(file).split(b"\n") if file.exists() else []:
        text, _, crc = line.rpartition(b" ")
        if crc != b"%08x" % zlib.crc32(text):
            break
        try:
            event = parsed(json.loads, text)
        except ContentError:
            break
        if not isinstance(event, dict) or not isinstance(event.get("event"), str):
            break
        out.append(event)
    return out


def _segments(folder: Path) -> Iterator[tuple[str, LogSegment]]:
    """Yield all segments in order; for one that is being sealed, the sealed file."""
    for stem in sorted({p.stem for p in folder.iterdir() if p.suffix in (".seg", ".parquet") and not p.name.startswith(".")}):
        for suffix in (".parquet", ".seg"):
            try:
                yield stem, read_segment(folder / f"{stem}{suffix}")
                break
            except FileNotFoundError:  # not sealed yet, or sealed just now
                continue
            except LogError:  # cut before its header was written
                continue
        else:
            if (folder / f"{stem}.parquet").exists():
                yield stem, read_segment(folder / f"{stem}.parquet")


class _Clock:
    """Converts the clocks of all sessions with a controller to one increasing time axis."""

    def __init__(self) -> None:
        self._session: str | None = None
        self._shift = self._t = self._host = 0.0

    def times(self, table: Array, session: str, period: float) -> Array:
        clock, host = table[:, 2], table[:, 0]
        if self._session is None:
            self._shift = -float(clock[0])
        elif session != self._session or clock[0] + self._shift <= self._t:
            later = max(float(host[0]) - self._host, period)
            self._shift = self._t + later - float(clock[0])
        self._session = session
        self._t, self._host = float(clock[-1]) + self._shift, float(host[-1])
        return np.asarray(clock + self._shift)
