"""What a user says of a file: where the channels are, which units they have, and what the clock is.

A schema is a mapping (or a TOML file) with these keys, all optional where the names are conventional::

    time = "t"                      # column of the clock; without one, give rate
    rate = 1000                     # Hz, for files without a clock or with a sample counter
    joints = ["slide"]              # channel names, in the order wanted
    position = ["qm"]               # a column, a list, an array's name, "array[0]", or a pattern "q_{joint}", "q{index}"
    effort = ["vir"]                # likewise velocity, acceleration, temperature, reference
    effort_kind = "voltage"         # required: joint_torque, joint_force, motor_torque, motor_current, voltage
    gain = [35.15]                  # drive gain per channel, or the name of a single number in the file
    delay = 0.004                   # seconds by which efforts are later than positions, one number or one per channel
    position_side = "motor"         # "joint" unless said otherwise
    counts_per_unit = 8192          # encoder counts per rad or m, for unit "counts"
    name = "EMPS"
    topic = ["/joint_states"]       # of a bag: the first one gives the clock, the others are interpolated to it
    episode = 3                     # of a data set with a column episode_index
    files = ["a.csv", "b.csv"]      # or {position = "a.csv", effort = "b.csv"}, beside the schema file
    [unit]
    position = "deg"                # name, factor to SI, or a list per channel
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.checks import shown
from dynident.errors import LogError
from dynident.files import read_toml
from dynident.signals.channels import Channel, Channels, some_of
from dynident.signals.names import ROLES, split_unit

Array = NDArray[np.float64]
PathLike = str | os.PathLike[str]
KEYS = (
    *(*ROLES, "time", "rate", "joints", "effort_kind", "gain", "delay", "position_side", "counts_per_unit"),
    *("name", "topic", "episode", "files", "unit"),
)


def rules_of(schema: PathLike | Mapping[str, object] | None, overrides: Mapping[str, object]) -> tuple[dict[str, Any], Path]:
    """The schema with the arguments that win over it, and the folder of its file."""
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
        raise LogError(f"units are given for {unknown}, which are no quantities; known: time, {', '.join(ROLES)}")
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
