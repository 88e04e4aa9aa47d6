"""What a column means: role (position, effort, ...), joint and unit, read from its name or said by the schema.

    q_elbow, Position3, /joint_states/elbow/position, actual_q_0, observation.state, tau1 [mNm]  ->  role, joint, unit

A name is a role's word with the joint before or after it; words such as "target" make it a reference or a commanded
effort, words such as "actual" say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.errors import LogError
from dynident.signals.tables import NOT_TAKEN, Table
from dynident.signals.units import is_time_unit, is_unit

Array = NDArray[np.float64]
ROLES = ("position", "velocity", "acceleration", "effort", "temperature", "reference")
REQUIRED = ("position", "effort")
#: role -> family -> words. A family is one way to measure the role: two families of effort are not interchangeable.
WORDS: dict[str, dict[str, tuple[str, ...]]] = {
    "position": {"position": ("positions?", "pos", "angles?", "qpos", "qm", "q", "theta")},
    "velocity": {"velocity": ("velocity", "velocities", "speeds?", "vel", "qvel", "dq", "qd", "dtheta", "v")},
    "acceleration": {"acceleration": ("accelerations?", "acc", "qacc", "ddq", "qdd", "a")},
    "effort": {
        "torque": ("torques?", "moments?", "tau_j", "tau", "trq", "qfrc_actuator"),
        "force": ("forces?",),
        "current": ("currents?", "cur", "i"),
        "voltage": ("voltages?", "u"),
        "effort": ("efforts?", "eff"),
    },
    "temperature": {"temperature": ("temperatures?", "temps?")},
}
#: effort kind -> families of columns that can hold it.
FAMILIES_OF_KIND: dict[str, tuple[str, ...]] = {
    "joint_torque": ("torque", "effort"),
    "joint_force": ("force", "effort"),
    "motor_torque": ("torque", "effort"),
    "motor_current": ("current", "effort"),
    "voltage": ("voltage", "effort"),
    "none": (),
}
_AS_COMMANDED = " (commanded)"
MOVED = 1e-3  #: a joint that was moved by more, in whatever unit, is one that moves
_MEASURED = ("actual", "act", "applied", "measured", "meas", "msr", "feedback", "fb", "present", "observation", "observed")
_COMMANDED = ("target", "desired", "des", "reference", "ref", "commanded", "command", "cmd", "setpoint", "goal")
_SEP = r"[_.\s/]"
_BEFORE = rf"(?:(?:(?P<commanded>{'|'.join(_COMMANDED)})|{'|'.join((*_MEASURED, 'joint', 'joints', 'motor', 'axis'))}){_SEP}*)*"
_NUMBER = rf"(?:{_SEP}*[\[({{]?(?P<number>\d+)[\])}}]?)"
#: Cartesian quantities, and the layout of a ROS array, have the same words and are no joints.
_CARTESIAN = re.compile(rf"(^|{_SEP})(tcp|tool|ee|cartesian|pose|wrench|imu|gps|layout)({_SEP}|$)|tcp", re.I)
#: Columns of LeRobot datasets: what was measured, and what was asked for.
_LEROBOT = {"observation.state": ("position", "position"), "action": ("reference", "position")}
#: Units that an underscore may tie to a name; single letters (q_a, tau_m) would be mistaken for joints.
_SUFFIXES = (
    "deg|degrees?|rad|radians?|mrad|rev|mm|cm|um|rpm|N_?m|mN_?m|N_?cm|kN_?m|kN|mN|mA|mV|degC|celsius|counts?|ticks?"
    "|(?:deg|rad|rev|mm|m)(?:_per_|_|/|p)s(?:ec)?(?:_?\\^?2)?"
)
_TIME_SUFFIXES = "s|ms|us|ns|secs?|m?seconds?|msec|usec|nsecs?|nanosecs?|nanoseconds?|microseconds?|milliseconds?"
_UNIT = re.compile(_SUFFIXES, re.I)
_SUFFIX = re.compile(rf"(?P<name>.*[A-Za-z0-9\])}}])[_\s]+(?P<unit>{_SUFFIXES})", re.I)
_TIME_SUFFIX = re.compile(rf"(?P<name>.*[A-Za-z])[_\s]+(?P<unit>{_TIME_SUFFIXES})", re.I)
_LETTER = re.compile(r"(?P<name>.*[0-9\])}])[_\s]+(?P<unit>[AVNKC])")  # after a number: tau1_N, current_2_A
_BRACKETS = re.compile(r"(?P<name>.*\S)\s*(?:\[(?P<a>[^\[\]]*[^\d\[\]][^\[\]]*)\]|\((?P<b>[^()]*[^\d()][^()]*)\))")
_TIME_NAMES = (
    "t|times?|tout|time_?stamps?|stamps?|seconds|secs?|ts|elapsed|elapsed[_ ]time|time_elapsed|date_?time|epoch"
    "|(?:robot|controller|ros)_time|header_stamp|rosbag_?timestamp"
)
_TIME_NAME = re.compile(rf"(?P<path>.*[./])?(?P<name>{_TIME_NAMES})", re.I)


# ---------------------------------------------------------------------- what a name says
def _patterns() -> list[tuple[str, str, str, str]]:
    """Role, family, plain word and expression; the joint is what remains before or after the word."""
    result = []
    for role, families in WORDS.items():
        for family, words in families.items():
            for word in words:
                # A bare letter says too little (i is often a counter): it needs a joint; q alone is the array of all.
                bare = "?" if len(word) > 1 or word == "q" else ""
                after = rf"(?:{_NUMBER}(?:[_.\s]+(?P<mark>[a-z]+))?|[_.\s/]+(?P<joint>\S.*)){bare}"
                result.append((role, family, word.removesuffix("s?"), rf"{_BEFORE}{word}{after}"))
                if not bare:
                    continue
                result.append((role, family, word.removesuffix("s?"), rf"(?P<joint>.*[^_.\s/])[_.\s/]+{word}{_NUMBER}?"))
                if len(word) > 2:  # Joint1Angle
                    result.append((role, family, word.removesuffix("s?"), rf"(?P<joint>(?:joint|axis|motor|j|a)\d+){word}"))
    return result


_PATTERNS = _patterns()
_ANY_WORD = "|".join(word for families in WORDS.values() for words in families.values() for word in words if len(word) > 2)


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    """Return an expression ready for use: compiling all of them takes as long as reading a log."""
    return re.compile(expression, re.I)


@dataclass(frozen=True)
class Name:
    """What the name of a column says; the joint is "" for an array of all joints, "1", "2", ... for a numbered one."""

    role: str
    family: str
    joint: str
    unit: str | None


def recognise(column: str) -> Name | None:
    """Return what a conventional column name says, None if it says nothing."""
    text = re.sub(r"^[^A-Za-z]+", "", column.strip())
    text, unit = split_unit(text)
    text = re.sub(r"[/.](data|values?)(?=[\[({]|$)", "", text)  # the only field of a message
    if text.lower() in _LEROBOT:
        return Name(*_LEROBOT[text.lower()], "", unit)
    if _CARTESIAN.search(text):
        return None
    lower = text.lower()
    for role, family, word, expression in _PATTERNS:
        match = _compiled(expression).fullmatch(text) if word.lower() in lower else None
        if not match:
            continue
        groups = match.groupdict()
        mark, commanded = (groups.get("mark") or "").lower(), groups.get("commanded") is not None
        if mark and mark not in (*_COMMANDED, *_MEASURED):
            continue
        joint, marked, inner = _without_marks(groups.get("joint") or "")
        if "/" in joint and _compiled(_ANY_WORD).fullmatch(joint.rpartition("/")[2]):
            continue  # the last part of a path says what it is: /torques/elbow/position
        number = groups.get("number")
        if number is not None:  # what stands before a numbered word is a path, not a joint
            joint = f"{joint}/{number}" if joint else number
        commanded = commanded or marked or mark in _COMMANDED
        if commanded and role in ("velocity", "acceleration", "temperature"):
            return None
        if commanded and role == "position":
            return Name("reference", family, joint, unit or inner)
        return Name(role, family + _AS_COMMANDED if commanded else family, joint, unit or inner)
    return None


def _without_marks(joint: str) -> tuple[str, bool, str | None]:
    """Take "target", "actual", "deg", ... off both ends of a joint's name; say whether it was a command, and the unit."""
    commanded, unit = False, None
    for end, cut in ((r"^(?P<mark>[A-Za-z]+)(?:[_.\s/]+|$)", 0), (r"(?:^|[_.\s/]+)(?P<mark>[A-Za-z]+)$", -1)):
        match = re.search(end, joint)
        word = match["mark"].lower() if match else ""
        if match and word in (*_COMMANDED, *_MEASURED):
            commanded = commanded or word in _COMMANDED
            joint = joint[match.end() :] if cut == 0 else joint[: match.start()]
        elif match and cut == 0 and _UNIT.fullmatch(word) and match.end() < len(joint):
            unit, joint = match["mark"], joint[match.end() :]
    return joint.strip(), commanded, unit


def split_unit(column: str, time: bool = False) -> tuple[str, str | None]:
    """Return a column's name and the unit written in it: 'q1 [deg]', 'q1_deg', 'q1 (rad/s)', 'tau1, Nm', 'stamp_ns'."""
    text = column.strip()
    match = _BRACKETS.fullmatch(text)
    if match:
        unit = match["a"] if match["a"] is not None else match["b"]
        return match["name"].rstrip(" _"), unit.strip()
    match = (_TIME_SUFFIX if time else _SUFFIX).fullmatch(text) or (None if time else _LETTER.fullmatch(text))
    if match:
        return match["name"], match["unit"]
    name, comma, unit = text.rpartition(",")
    return (name.strip(), unit.strip()) if comma and is_unit(unit) else (text, None)


def time_name(column: str) -> tuple[int, str | None] | None:
    """Rank and unit of a column that names the clock (0: the sensor's own stamp, 1: bare, 2: inside a structure), or None."""
    text = re.sub(r"^[^A-Za-z]+", "", column.strip())
    for name, unit in (split_unit(text, time=True), (text, None)):
        match = _TIME_NAME.fullmatch(name)
        if match and (unit is None or is_time_unit(unit)):
            stamp = re.search(r"header[./_]stamp$", name, re.I)
            return 0 if stamp else 2 if match["path"] else 1, unit
    return None


def is_time(column: str) -> bool:
    """Whether the name says that the column is the clock."""
    return time_name(column) is not None


# ---------------------------------------------------------------------- the channels of all roles
@dataclass(frozen=True)
class Channel:
    """One measured signal, the unit its column names, and the column."""

    values: Array
    unit: str | None
    column: str


Channels = dict[str, Channel]


@dataclass(frozen=True)
class Found:
    """Joint names; per role the (N, n) samples, the units their columns name and the columns; what was left out."""

    joints: list[str]
    arrays: dict[str, Array]
    units: dict[str, list[str | None]]
    columns: dict[str, list[str]]
    notes: list[str]


def find_channels(
    columns: Mapping[str, Array],
    source: Mapping[str, Mapping[str, Array]],
    rules: Mapping[str, Any],
    kind: str,
    row_units: Mapping[str, str],
    tables: list[Table],
) -> Found:
    """Find the channels of every role in the columns, or in the file the role was assigned to (`source`).

    `row_units` are those that stand below the header or beside the columns.
    """
    wanted = rules.get("joints")
    listed = isinstance(wanted, list | tuple | np.ndarray)
    if wanted is not None and (not listed or not all(isinstance(j, str) for j in wanted)):
        raise LogError(f"joints is {wanted!r}; give a list of names")
    wanted = None if wanted is None else list(wanted)
    labels = next((t.labels for t in tables if t.labels), ())
    notes: list[str] = []
    maps: dict[str, Channels] = {}
    every = {column for pool in (columns, *source.values()) for column in pool if ":" not in column and not is_time(column)}
    names = {column: name for column in every if (name := recognise(column)) is not None}
    for role in ROLES:
        pool = source.get(role, columns)
        if rules.get(role) is not None:
            from dynident.signals.schema import named_channels  # noqa: PLC0415  (it stands on this file)

            maps[role] = named_channels(role, rules[role], pool, wanted)
        elif role in source:
            maps[role] = _automatic(role, pool, names, kind, labels, notes) or _split(dict(pool), labels)
        elif not source:
            maps[role] = _automatic(role, pool, names, kind, labels, notes)
    files = ", ".join(t.label for t in tables)
    maps = _measured(maps, kind)
    for role in REQUIRED:
        if not maps.get(role):
            topics = [f"{note} (topic=, --topic); " for t in tables for note in t.notes if note.startswith(NOT_TAKEN)]
            raise LogError(
                f"no {role} columns recognised in {files}; {''.join(topics)}the columns are {some_of(columns)}; "
                f"name them with schema={{'{role}': [...], 'joints': [...]}} or a TOML file"
            )
    maps = {role: _numbered_to_named(channels, wanted) for role, channels in maps.items()}
    arrays = {role: {c.column for c in maps[role].values()} for role in REQUIRED}
    if all(len(columns_) == 1 for columns_ in arrays.values()) and len(maps["position"]) != len(maps["effort"]):
        sizes = " and ".join(f"'{next(iter(arrays[role]))}' {len(maps[role])}" for role in REQUIRED)
        raise LogError(f"arrays {sizes} channels wide do not fit; position and effort need the same joints")
    maps = {role: _same_start(role, channels, maps["position"], notes) for role, channels in maps.items()}
    maps["effort"] = _with_unmeasured(maps["position"], maps["effort"], wanted, notes)
    if wanted is None:
        maps = {role: _labelled(channels, labels) for role, channels in maps.items()}
    keys = _common_joints(maps, files)
    joints, keys = _rename(keys, wanted)
    left = [j for role in REQUIRED for j in maps[role] if j not in keys]
    if left and wanted is None:
        notes.append(f"left out because position or effort is missing: {', '.join(dict.fromkeys(left))}")
    found = Found(joints, {}, {}, {}, notes)
    for role, channels in maps.items():
        if channels and all(k in channels for k in keys):
            chosen = [channels[k] for k in keys]
            found.arrays[role] = _side_by_side([c.values for c in chosen])
            found.units[role] = [row_units.get(c.column) or c.unit for c in chosen]
            found.columns[role] = [c.column for c in chosen]
        elif rules.get(role) is not None or role in source:
            missing = [k for k in keys if k not in channels]
            raise LogError(f"{role} has no channel for {missing}; it has {list(channels)}")
    return found


def _side_by_side(columns: list[Array]) -> Array:
    """(N, n) array of columns; where they are those of one array in its order, its rows and no copy of them."""
    whole, (rows,) = columns[0].base, columns[0].shape
    if isinstance(whole, np.ndarray) and whole.dtype == np.float64 and whole.ndim == 2 and whole.shape[1] == len(columns):
        start, over = divmod(_address(columns[0]) - _address(whole), max(whole.strides[0], 1))
        one = all(c.base is whole and c.strides == whole.strides[:1] for c in columns)
        if one and not over and [_address(c) - _address(columns[0]) for c in columns] == [8 * k for k in range(len(columns))]:
            return np.asarray(whole[start : start + rows])
    return np.column_stack(columns)


def _address(values: Array) -> int:
    """Where the first number is in memory."""
    return int(values.__array_interface__["data"][0])


def _measured(maps: dict[str, Channels], kind: str) -> dict[str, Channels]:
    """Return the channels of every role; zeros as effort where none was measured, whatever the file has."""
    if kind != "none":
        return maps
    zeros = {key: Channel(np.zeros_like(c.values), None, c.column) for key, c in maps.get("position", {}).items()}
    return {**maps, "effort": zeros}


def _with_unmeasured(position: Channels, effort: Channels, wanted: list[str] | None, notes: list[str]) -> Channels:
    """Give joints that move and have no effort zeros for it, which count as a dead channel: its rows are not used.

    Without its positions the joint would be taken to stand still, and the others would be wrong.
    """
    known = {key: c for key, c in effort.items() if not np.isnan(c.values).all()}
    without = [key for key, c in position.items() if key not in known and _moves(c.values) and (not wanted or key in wanted)]
    if not known or not without or 2 * len(without) >= len(position):
        return effort
    notes.append(f"no effort of {', '.join(without)}: the position is used, the joint's own equation is not")
    return known | {key: Channel(np.zeros_like(position[key].values), None, position[key].column) for key in without}


def _moves(values: Array) -> bool:
    known = values[np.isfinite(values)]
    return bool(known.size and np.ptp(known) > MOVED)


def _numbered_to_named(channels: Channels, wanted: list[str] | None) -> Channels:
    """Give the wanted names to channels 1, 2, ..., n; leave channels that have names of their own."""
    if wanted is None or len(wanted) != len(channels) or not all(key.isdigit() for key in channels):
        return channels
    return {name: channels[key] for name, key in zip(wanted, sorted(channels, key=int), strict=True)}


def _same_start(role: str, channels: Channels, position: Channels, notes: list[str]) -> Channels:
    """Number channels as the positions are: one quantity may count from 0 and another from 1, which would pair wrong joints."""
    bases = []
    for some in (position, channels):
        numbers = sorted(int(key) for key in some if key.isdigit())
        bases.append(numbers[0] if numbers and numbers == list(range(numbers[0], numbers[0] + len(some))) else None)
    if None in bases or bases[0] == bases[1] or len(position) != len(channels) or not {*bases} <= {0, 1}:
        return channels
    notes.append(f"{role} is numbered from {bases[1]} and position from {bases[0]}: taken in the same order")
    return {str(int(key) + (1 if bases[0] else -1)): channel for key, channel in channels.items()}


def _labelled(channels: Channels, labels: tuple[str, ...]) -> Channels:
    """Give the names that the file lists to channels that are only numbered, when there are as many."""
    numbers = sorted(int(key) for key in channels if key.isdigit())
    if not numbers or len(channels) != len(labels) or numbers not in ([*range(len(labels))], [*range(1, len(labels) + 1)]):
        return channels
    return {name: channels[str(number)] for name, number in zip(labels, numbers, strict=True)}


def _common_joints(maps: Mapping[str, Channels], files: str) -> list[str]:
    """Joints with both a position and an effort; channels given as plain lists are matched by place."""
    position, effort = maps["position"], maps["effort"]
    common = [j for j in position if j in effort]
    if not common:
        raise LogError(
            f"position channels are named {some_of(position)} and effort channels {some_of(effort)} in "
            f"{files}; no name is in both, give schema= with lists in the same order"
        )
    if all(j.isdigit() for j in common):
        common.sort(key=int)
    return common


def _rename(found: list[str], wanted: list[str] | None) -> tuple[list[str], list[str]]:
    """Public names and the keys they are found under."""
    if wanted is None:
        return [f"joint_{j}" if j.isdigit() else j for j in found], found
    if all(j in found for j in wanted):
        return wanted, wanted
    if len(wanted) == len(found) and not any(j in found for j in wanted):
        return wanted, found  # new names, in the order of the file
    raise LogError(f"joints {wanted} are not the {len(found)} channels of the file, {found}; name them, or give as many names")


def _automatic(
    role: str, pool: Mapping[str, Array], names: Mapping[str, Name], kind: str, labels: tuple[str, ...], notes: list[str]
) -> Channels:
    """Channels of a role by the names of the columns; two columns for one channel are refused."""
    families: dict[str, Channels] = {}
    for column, values in pool.items():
        known = names.get(column)
        if known is None or known.role != role:
            continue
        channels = families.setdefault(known.family, {})
        for joint, part in _parts(known.joint, values, labels):
            if joint in channels:
                raise LogError(
                    f"columns '{channels[joint].column}' and '{column}' both look like the {role} of '{joint}'; "
                    f"say which in schema={{'{role}': ...}}"
                )
            channels[joint] = Channel(part, known.unit, column)
    families = {f: _without_common_path(c) for f, c in families.items() if c}
    if role == "effort" and families:
        # Commanded efforts are taken where nothing else was logged.
        for mark in ("", _AS_COMMANDED):
            fitting = [f + mark for f in FAMILIES_OF_KIND[kind] if f + mark in families]
            if fitting:
                break
        chosen = fitting or list(families)
        if len(chosen) > 1:
            listed = "; ".join(f"{f}: {some_of({x.column: 0 for x in families[f].values()})}" for f in chosen)
            raise LogError(f"several kinds of {role} columns found ({listed}); say which in schema={{'{role}': ...}}")
        if chosen[0].endswith(_AS_COMMANDED):
            first = next(iter(families[chosen[0]].values())).column
            notes.append(f"effort: '{first}', ... is what was commanded; the file has no measured effort of this kind")
        return families[chosen[0]]
    return next(iter(families.values()), {})


def _parts(joint: str, values: Array, labels: tuple[str, ...]) -> Iterable[tuple[str, Array]]:
    """Channels of one column: itself, or those of an array, named by the labels of the file or numbered from 1."""
    if values.ndim == 1:
        return [(joint or "1", values)]
    width = values.shape[1]
    names = labels if len(labels) == width else [str(k + 1) for k in range(width)]
    return [(f"{joint}/{name}" if joint else name, values[:, k]) for k, name in enumerate(names)]


def _without_common_path(channels: Channels) -> Channels:
    """Take off the path that all channels share: 'joint_states/elbow' -> 'elbow', 'log/3' -> '3'."""
    while True:
        heads = {key.partition("/")[0] if "/" in key else None for key in channels}
        if len(heads) != 1 or None in heads:
            break
        channels = {key.partition("/")[2]: channel for key, channel in channels.items()}
    # A dot may belong to the joint (ball.x, ball.y, ball.z are the coordinates of one): only longer names are freed of it.
    tails = [key.rpartition(".") for key in channels]
    if len(tails) > 1 and len({head for head, _, _ in tails}) == 1 and all(dot and len(tail) > 2 for _, dot, tail in tails):
        channels = {tail: channel for (_, _, tail), channel in zip(tails, channels.values(), strict=True)}
    return channels


def _split(pool: Mapping[str, Array], labels: tuple[str, ...]) -> Channels:
    """One channel per column of a file that holds one role only; the columns of an array are numbered from 1."""
    result: Channels = {}
    for name, values in pool.items():
        if values.ndim == 1:
            result[name] = Channel(values, split_unit(name)[1], name)
        else:
            parts = _parts("", values, labels)
            result |= {str(len(result) + 1) if j.isdigit() else j: Channel(x, None, name) for j, x in parts}
    return result


def some_of(pool: Mapping[str, object], limit: int = 40) -> str:
    """Return the first names, for a message."""
    names = [n for n in pool if ":" not in n] or list(pool)
    return ", ".join(names[:limit]) + (f", ... ({len(names)} in all)" if len(names) > limit else "")
