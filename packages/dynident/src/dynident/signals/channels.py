"""The channels of a log: columns by role and joint, from their names or the schema; angles without jumps.

A schema is a mapping (or a TOML file) with these keys, all optional where the names are conventional::

    time = "t"                      # column of the clock; without one, give rate
    rate = 1000                     # Hz, for files without a clock or with a sample counter
    joints = ["slide"]              # channel names, in the order wanted
    position = ["qm"]               # a column, a list, an array's name, "array[0]", or a pattern "q_{joint}", "q{index}"
    effort = ["vir"]                # likewise velocity, acceleration, temperature, reference
    effort_kind = "voltage"         # required: joint_torque, joint_force, motor_torque, motor_current, voltage
    gain = [35.15]                  # drive gain per channel, or the name of a single number in the file
    delay = 0.004                   # seconds by which efforts are later than positions, one number or one per channel
    position_side = "motor"         # "joint" by default
    counts_per_unit = 8192          # encoder counts per rad or m, for unit "counts"
    name = "EMPS"
    topic = ["/joint_states"]       # for bags: the first one gives the clock, the others are interpolated to it
    episode = 3                     # for data sets with a column episode_index
    files = ["a.csv", "b.csv"]      # or {position = "a.csv", effort = "b.csv"}, relative to the schema file
    [unit]
    position = "deg"                # name, factor to SI, or a list per channel
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.checks import shown
from dynident.errors import LogError
from dynident.files import read_toml
from dynident.signals.tables import AS_COMMANDED, NOT_READ, NOT_TAKEN, ROLES, Name, Table, is_time, parse_column, split_unit

REQUIRED = ("position", "effort")
#: effort kind -> possible families of columns.
FAMILIES_OF_KIND: dict[str, tuple[str, ...]] = {
    "joint_torque": ("torque", "effort"),
    "joint_force": ("force", "effort"),
    "motor_torque": ("torque", "effort"),
    "motor_current": ("current", "effort"),
    "voltage": ("voltage", "effort"),
    "none": (),
}
TURN = 2.0 * np.pi
#: Largest joint speed (rad/s): a step of a whole turn plus or minus this speed is a jump, not motion.
FASTEST = 50.0
BLOCK = 1 << 15  #: samples processed together: avoids a second copy of a long log
MOVED = 1e-3  #: smallest range of a moving joint, in any unit
#: A column whose name is only a joint name.
_AXIS = re.compile(
    r"(?:(?:feedback|actual|measured)[_ ]*)?(?:joints?[_ ]+)?(?P<joint>(?:joint|axis|achse|motor|j|a)[_ ]?\d+)", re.I
)


@dataclass(frozen=True)
class Channel:
    """One measured signal, the unit in its column name, and the column."""

    values: Array
    unit: str | None
    column: str


Channels = dict[str, Channel]


@dataclass(frozen=True)
class Found:
    """Joint names; per role the (N, n) samples, their column units and columns; notes on omitted columns."""

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

    `row_units` are units from a row below the header or from the file's metadata.
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
    names = {column: name for column in every if (name := parse_column(column)) is not None}
    for role in ROLES:
        pool = source.get(role, columns)
        if rules.get(role) is not None:
            maps[role] = named_channels(role, rules[role], pool, wanted)
        elif role in source:
            maps[role] = _automatic(role, pool, names, kind, labels, notes) or _split(dict(pool), labels)
        elif not source:
            maps[role] = _automatic(role, pool, names, kind, labels, notes)
    files = ", ".join(t.label for t in tables)
    maps = _measured(maps, kind)
    for role in REQUIRED:
        if not maps.get(role):
            notes_ = [note for t in tables for note in t.notes]
            topics = [f"{note} (topic=, --topic); " for note in notes_ if note.startswith(NOT_TAKEN)]
            topics += [f"{note}; " for note in notes_ if note.startswith(NOT_READ)]
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
    maps = {role: _same_numbers(channels, maps["position"]) for role, channels in maps.items()}
    maps["effort"] = _with_unmeasured(maps["position"], maps["effort"], wanted, notes)
    if wanted is None:
        maps = {role: _labelled(channels, labels) for role, channels in maps.items()}
    maps["temperature"] = _in_order("temperature", maps.get("temperature", {}), maps["position"], notes)
    keys = _common_joints(maps, files)
    joints, keys = _rename(keys, wanted)
    left = [j for role in REQUIRED for j in maps[role] if j not in keys]
    if left and wanted is None:
        notes.append(f"ignored because position or effort is missing: {', '.join(dict.fromkeys(left))}")
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
    """(N, n) array of columns; without a copy if they are the columns of one array in its order."""
    whole, (rows,) = columns[0].base, columns[0].shape
    if isinstance(whole, np.ndarray) and whole.dtype == np.float64 and whole.ndim == 2 and whole.shape[1] == len(columns):
        start, over = divmod(_address(columns[0]) - _address(whole), max(whole.strides[0], 1))
        one = all(c.base is whole and c.strides == whole.strides[:1] for c in columns)
        if one and not over and [_address(c) - _address(columns[0]) for c in columns] == [8 * k for k in range(len(columns))]:
            return np.asarray(whole[start : start + rows])
    return np.column_stack(columns)


def _address(values: Array) -> int:
    """Address of the first number."""
    return int(values.__array_interface__["data"][0])


def _measured(maps: dict[str, Channels], kind: str) -> dict[str, Channels]:
    """Return the channels of every role; with effort kind "none", efforts are zero even if the file has some."""
    if kind != "none":
        return maps
    zeros = {key: Channel(np.zeros_like(c.values), None, c.column) for key, c in maps.get("position", {}).items()}
    return {**maps, "effort": zeros}


def _with_unmeasured(position: Channels, effort: Channels, wanted: list[str] | None, notes: list[str]) -> Channels:
    """Add zero efforts to moving joints without effort; they count as dead channels, whose rows are not used.

    Without its positions the joint would count as stationary, which falsifies the other joints.
    """
    known = {key: c for key, c in effort.items() if not np.isnan(c.values).all()}
    without = [key for key, c in position.items() if key not in known and _moves(c.values) and (not wanted or key in wanted)]
    if not known or not without or 2 * len(without) >= len(position):
        return effort
    notes.append(f"no effort of {', '.join(without)}: its position is used, but the joint has no equation")
    return known | {key: Channel(np.zeros_like(position[key].values), None, position[key].column) for key in without}


def _moves(values: Array) -> bool:
    known = values[np.isfinite(values)]
    return bool(known.size and np.ptp(known) > MOVED)


def _numbered_to_named(channels: Channels, wanted: list[str] | None) -> Channels:
    """Give the requested names to channels 1, 2, ..., n; keep other channel names."""
    if wanted is None or len(wanted) != len(channels) or not all(key.isdigit() for key in channels):
        return channels
    return {name: channels[key] for name, key in zip(wanted, sorted(channels, key=int), strict=True)}


def _same_start(role: str, channels: Channels, position: Channels, notes: list[str]) -> Channels:
    """Number channels like the positions: quantities may count from 0 or from 1, which would pair wrong joints."""
    bases = []
    for some in (position, channels):
        numbers = sorted(int(key) for key in some if key.isdigit())
        bases.append(numbers[0] if numbers and numbers == list(range(numbers[0], numbers[0] + len(some))) else None)
    if None in bases or bases[0] == bases[1] or len(position) != len(channels) or not {*bases} <= {0, 1}:
        return channels
    notes.append(f"{role} is numbered from {bases[1]} and position from {bases[0]}: taken in the same order")
    return {str(int(key) + (1 if bases[0] else -1)): channel for key, channel in channels.items()}


def _same_numbers(channels: Channels, position: Channels) -> Channels:
    """Give the joints' names to channels with other names that end with the same numbers: tau_J1 belongs to q1."""
    ends = [{m[0]: key for key in some if (m := re.search(r"\d+$", key))} for some in (position, channels)]
    if {*channels} & {*position} or ends[0].keys() != ends[1].keys() or any(len(e) != len(position) for e in ends):
        return channels
    return {ends[0][number]: channels[key] for number, key in ends[1].items()}


def _labelled(channels: Channels, labels: tuple[str, ...]) -> Channels:
    """Give the names listed in the file to channels that are only numbered, if the counts match."""
    numbers = sorted(int(key) for key in channels if key.isdigit())
    if not numbers or len(channels) != len(labels) or numbers not in ([*range(len(labels))], [*range(1, len(labels) + 1)]):
        return channels
    return {name: channels[str(number)] for name, number in zip(labels, numbers, strict=True)}


def _in_order(role: str, channels: Channels, position: Channels, notes: list[str]) -> Channels:
    """Give the joints' names to channels that are only numbered, such as an array in another topic."""
    ordered = _labelled(channels, tuple(position))
    if ordered is not channels:
        notes.append(f"{role}: numbered channels taken in the order of the positions, {some_of(ordered)}")
    return ordered


def _common_joints(maps: Mapping[str, Channels], files: str) -> list[str]:
    """Joints with both a position and an effort; channels given as plain lists are matched by index."""
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
    """Public names and their keys."""
    if wanted is None:
        return [f"joint_{j}" if j.isdigit() else j for j in found], found
    if all(j in found for j in wanted):
        return wanted, wanted
    if len(wanted) == len(found) and not any(j in found for j in wanted):
        return wanted, found  # new names, in the order of the file
    raise LogError(
        f"joints {', '.join(wanted)} are not the {len(found)} channels of the file, {', '.join(found)}; name them, or give as "
        "many names"
    )


def _automatic(
    role: str, pool: Mapping[str, Array], names: Mapping[str, Name], kind: str, labels: tuple[str, ...], notes: list[str]
) -> Channels:
    """Channels of a role by column names; two columns for one channel raise LogError."""
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
        # Commanded efforts are used only where no measured ones were logged.
        for mark in ("", AS_COMMANDED):
            fitting = [f + mark for f in FAMILIES_OF_KIND[kind] if f + mark in families]
            if fitting:
                break
        chosen = fitting or list(families)
        if len(chosen) > 1:
            listed = "; ".join(f"{f}: {some_of({x.column: 0 for x in families[f].values()})}" for f in chosen)
            raise LogError(f"several kinds of {role} columns found ({listed}); choose in schema={{'{role}': ...}}")
        if chosen[0].endswith(AS_COMMANDED):
            first = next(iter(families[chosen[0]].values())).column
            notes.append(f"effort: '{first}', ... is commanded; the file has no measured effort of this kind")
        return families[chosen[0]]
    if role == "position" and not families:
        # J1, J2, ... without other candidates for positions.
        axes = {c: _AXIS.fullmatch(split_unit(c)[0]) for c, v in pool.items() if v.ndim == 1}
        bare = {c: match["joint"] for c, match in axes.items() if match}
        families = {"position": {joint: Channel(pool[c], split_unit(c)[1], c) for c, joint in bare.items()}} if bare else {}
        if bare:
            notes.append(f"position: '{next(iter(bare))}', ..., columns that name a joint and no quantity")
    return next(iter(families.values()), {})


def _parts(joint: str, values: Array, labels: tuple[str, ...]) -> Iterable[tuple[str, Array]]:
    """Channels of one column: itself, or those of an array, named by the labels of the file or numbered from 1."""
    if values.ndim == 1:
        return [(joint or "1", values)]
    width = values.shape[1]
    names = labels if len(labels) == width else [str(k + 1) for k in range(width)]
    return [(f"{joint}/{name}" if joint else name, values[:, k]) for k, name in enumerate(names)]


def _without_common_path(channels: Channels) -> Channels:
    """Remove the common path of all channels: 'joint_states/elbow' -> 'elbow', 'log/3' -> '3'."""
    while True:
        heads = {key.partition("/")[0] if "/" in key else None for key in channels}
        if len(heads) != 1 or None in heads:
            break
        channels = {key.partition("/")[2]: channel for key, channel in channels.items()}
    # A dot may belong to the joint (ball.x, ball.y, ball.z are coordinates of one): it is removed only from longer names.
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


def unwrap(clock: Array, arrays: dict[str, Any], joints: list[str], notes: list[str]) -> None:
    """Unwrap angles that jump by whole turns, and add a note."""
    for role in ("position", "reference"):
        if role in arrays:
            arrays[role], jumping = _unwrapped(clock, arrays[role])
            if jumping:
                names = ", ".join(joints[k] for k in jumping)
                notes.append(f"{role} of {names} jumps by whole turns of 2 pi rad: made continuous")


def _unwrapped(clock: Array, angles: Array) -> tuple[Array, list[int]]:
    """Return angles (N, n) in rad without jumps of a whole turn between neighbouring samples, and the channels that had them.

        q_k = w_k - 2 pi sum_(j <= k) s_j,   s_j = +-1 where |w_j - w_(j-1) -+ 2 pi| <= 50 rad/s (t_j - t_(j-1)) < pi, else 0

    Channels with a range above one turn were not wrapped and stay unchanged. Missing samples (NaN) are skipped.
    """
    result, channels = angles, list[int]()
    for k in np.flatnonzero(_may_jump(angles)):
        column = angles[:, k]
        known = np.flatnonzero(np.isfinite(column))
        step, room = np.diff(column[known]), FASTEST * np.diff(clock[known])
        jump = (np.abs(np.abs(step) - TURN) <= room) & (room < np.pi)
        if not jump.any() or np.ptp(column[known]) > (1.0 + 1e-6) * TURN:
            continue
        result = angles.copy() if result is angles else result
        turns = np.cumsum(np.where(jump, np.sign(step), 0.0))
        result[known[1:], k] -= TURN * turns
        channels.append(int(k))
    return result, channels


def _may_jump(angles: Array) -> Array:
    """Whether each channel (n,) has a step of more than half a turn, the least that counts, or misses samples."""
    found = np.zeros(angles.shape[1], dtype=bool)
    for start in range(0, len(angles), BLOCK):
        step = np.diff(angles[start : start + BLOCK + 1], axis=0)
        found |= ~(np.abs(step) < np.pi).all(axis=0)  # NaN too
    return found


PathLike = str | os.PathLike[str]
KEYS = (
    *(*ROLES, "time", "rate", "joints", "effort_kind", "gain", "delay", "position_side", "counts_per_unit"),
    *("name", "topic", "episode", "files", "unit"),
)


def rules_of(schema: PathLike | Mapping[str, object] | None, overrides: Mapping[str, object]) -> tuple[dict[str, Any], Path]:
    """The schema, overridden by the arguments, and the folder of its file."""
    rules, folder = _load_schema(schema)
    kinds = {str(k) for k in (rules.get("effort_kind"), overrides.get("effort_kind")) if k is not None}
    if len(kinds) > 1:
        raise LogError(f"the schema and the argument name different effort kinds {sorted(kinds)}; keep one")
    rules = {**rules, **overrides}
    if "unit" in rules:
        rules["unit"] = _check_units(rules["unit"])
    return rules, folder


def _load_schema(schema: PathLike | Mapping[str, object] | None) -> tuple[dict[str, Any], Path]:
    if schema is None:
        return {}, Path()
    if isinstance(schema, Mapping):
        rules, folder, label = dict(schema), Path(), "the schema"
    else:
        file = Path(schema)
        folder, label = file.parent, f"schema '{file}'"
        rules = read_toml(file, "the schema", LogError)
    unknown = sorted(set(rules) - set(KEYS))
    if unknown:
        raise LogError(f"{label} has unknown keys {shown(unknown)}; known keys are {', '.join(KEYS)}")
    return rules, folder


def _check_units(units: object) -> Mapping[str, object]:
    if not isinstance(units, Mapping):
        raise LogError(f"units is {units!r}; give a mapping such as {{'position': 'deg'}}")
    unknown = sorted(set(units) - {*ROLES, "time"})
    if unknown:
        raise LogError(f"units are given for {', '.join(map(str, unknown))}; quantities are time, {', '.join(ROLES)}")
    return units


def files_beside(files: object, folder: Path) -> object:
    """File names of a schema are relative to the folder of the path given, or of the schema file."""
    base = folder if folder.is_dir() or folder == Path() else folder.parent
    if isinstance(files, Mapping):
        return {role: base / str(name) for role, name in files.items()}
    names = [files] if isinstance(files, str) else files
    return [base / str(name) for name in names] if isinstance(names, list | tuple) else names


def named_channels(role: str, entry: object, pool: Mapping[str, Array], joints: list[str] | None) -> Channels:
    """Channels named by the schema: pattern, column, array, array[k], or a list of those."""
    entries = [entry] if isinstance(entry, str | int) else entry
    if not isinstance(entries, list | tuple) or not entries:
        raise LogError(f"schema key '{role}' is {entry!r}; give a column name, a pattern such as 'q_{{joint}}', or a list")
    if len(entries) == 1 and isinstance(entries[0], str) and re.search(r"\{(joint|index)\}", entries[0]):
        return _pattern(role, entries[0], pool, joints)
    parts: list[Channel] = []
    for name in map(str, entries):
        values = _lookup(role, name, pool)
        columns = [values] if values.ndim == 1 else [values[:, k] for k in range(values.shape[1])]
        parts += [Channel(x, split_unit(name)[1], name) for x in columns]
    if joints is not None and len(joints) != len(parts):
        raise LogError(f"schema gives {len(parts)} {role} channels for {len(joints)} joints {joints}; give as many")
    return {str(k + 1) if joints is None else joints[k]: channel for k, channel in enumerate(parts)}


def _pattern(role: str, pattern: str, pool: Mapping[str, Array], joints: list[str] | None) -> Channels:
    if joints is not None:
        names = [pattern.replace("{joint}", j).replace("{index}", str(k + 1)) for k, j in enumerate(joints)]
        found = {j: (_lookup(role, name, pool), name) for j, name in zip(joints, names, strict=True)}
    else:
        expression = re.escape(pattern).replace(r"\{joint\}", "(.+)").replace(r"\{index\}", r"(\d+)")
        found = {m.group(1): (v, name) for name, v in pool.items() if v.ndim == 1 and (m := re.fullmatch(expression, name))}
    if not found:
        raise LogError(f"schema pattern '{pattern}' for {role} fits no column; the columns are {some_of(pool)}")
    return {joint: Channel(values, split_unit(name)[1], name) for joint, (values, name) in found.items()}


def _lookup(role: str, name: str, pool: Mapping[str, Array]) -> Array:
    if name in pool:
        return pool[name]
    match = re.fullmatch(r"(.+)\[(\d{1,9})\]", name)
    if match and match.group(1) in pool:
        values, k = pool[match.group(1)], int(match.group(2))
        if values.ndim == 2 and k < values.shape[1]:
            return values[:, k]
        raise LogError(f"schema names {role} column '{name}', but '{match.group(1)}' has shape {values.shape}")
    raise LogError(f"schema names {role} column '{name}', which is not there; the columns are {some_of(pool)}")
