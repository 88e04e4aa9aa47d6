"""Which column is which channel: by the schema, by the file it was assigned to, or by its conventional name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.errors import LogError
from dynident.signals.naming import FAMILIES_OF_KIND, ROLES, discover
from dynident.signals.readers import Table

Array = NDArray[np.float64]


def find_channels(
    columns: Mapping[str, Array],
    source: Mapping[str, Mapping[str, Array]],
    rules: Mapping[str, Any],
    kind: str,
    tables: list[Table],
) -> tuple[list[str], dict[str, Array], list[str]]:
    """Joint names, one (N, n) array per role, and notes about what was left out."""
    wanted = rules.get("joints")
    listed = isinstance(wanted, list | tuple | np.ndarray)
    if wanted is not None and (not listed or not all(isinstance(j, str) for j in wanted)):
        raise LogError(f"joints is {wanted!r}; give a list of names")
    wanted = None if wanted is None else list(wanted)
    maps: dict[str, dict[str, Array]] = {}
    for role in ROLES:
        pool = source.get(role, columns)
        if rules.get(role) is not None:
            maps[role] = _explicit(role, rules[role], pool, wanted)
        elif role in source:
            maps[role] = _automatic(role, pool, kind) or dict(_split(pool))
        elif not source:
            maps[role] = _automatic(role, pool, kind)
    for role in ("position", "effort"):
        if not maps.get(role):
            raise LogError(
                f"no {role} columns recognised in {', '.join(t.path.name for t in tables)}; the columns are "
                f"{_listed(columns)}; name them with schema={{'{role}': [...], 'joints': [...]}} or a TOML file"
            )
    maps = {role: _numbered_to_named(channels, wanted) for role, channels in maps.items()}
    found = _common_joints(maps, tables)
    names, keys = _rename(found, wanted)
    notes = []
    left = [j for role in ("position", "effort") for j in maps[role] if j not in found]
    if left:
        notes.append(f"left out because position or effort is missing: {', '.join(dict.fromkeys(left))}")
    arrays = {}
    for role, channels in maps.items():
        if all(k in channels for k in keys):
            arrays[role] = np.column_stack([channels[k] for k in keys])
        elif rules.get(role) is not None or role in source:
            missing = [k for k in keys if k not in channels]
            raise LogError(f"{role} has no channel for {missing}; it has {list(channels)}")
    return names, arrays, notes


def _numbered_to_named(channels: dict[str, Array], wanted: list[str] | None) -> dict[str, Array]:
    """Give the wanted names to channels 1, 2, ..., n; leave channels that have names of their own."""
    if wanted is None or len(wanted) != len(channels) or not all(key.isdigit() for key in channels):
        return channels
    return {name: channels[key] for name, key in zip(wanted, sorted(channels, key=int), strict=True)}


def _common_joints(maps: Mapping[str, Mapping[str, Array]], tables: list[Table]) -> list[str]:
    """Joints with both a position and an effort; channels given as plain lists are matched by place."""
    position, effort = list(maps["position"]), list(maps["effort"])
    common = [j for j in position if j in effort]
    if not common:
        raise LogError(
            f"position channels are named {position} and effort channels {effort} in "
            f"{', '.join(t.path.name for t in tables)}; no name is in both, give schema= with lists in the same order"
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


def _automatic(role: str, pool: Mapping[str, Array], kind: str) -> dict[str, Array]:
    families = discover(pool).get(role, {})
    if role == "effort":
        families = {f: v for f, v in families.items() if f in FAMILIES_OF_KIND[kind]} or families
    if len(families) > 1:
        listed = "; ".join(f"{f}: {', '.join(c.values())}" for f, c in families.items())
        raise LogError(f"several kinds of {role} columns found ({listed}); say which in schema={{'{role}': ...}}")
    for channels in families.values():
        if "" in channels:
            return dict(_split({"": pool[channels[""]]}))
        return {joint: pool[column] for joint, column in channels.items() if pool[column].ndim == 1}
    return {}


def _split(pool: Mapping[str, Array]) -> list[tuple[str, Array]]:
    """One entry per channel; the columns of an array are numbered from 1."""
    result: list[tuple[str, Array]] = []
    for name, values in pool.items():
        if values.ndim == 1:
            result.append((name or str(len(result) + 1), values))
        else:
            result += [(str(len(result) + 1 + k), values[:, k]) for k in range(values.shape[1])]
    return result


def _explicit(role: str, entry: object, pool: Mapping[str, Array], joints: list[str] | None) -> dict[str, Array]:
    """Channels named by the schema: pattern, column, array, array[k], or a list of those."""
    entries = [entry] if isinstance(entry, str | int) else entry
    if not isinstance(entries, list | tuple) or not entries:
        raise LogError(f"schema key '{role}' is {entry!r}; give a column name, a pattern such as 'q_{{joint}}', or a list")
    if len(entries) == 1 and isinstance(entries[0], str) and re.search(r"\{(joint|index)\}", entries[0]):
        return _pattern(role, entries[0], pool, joints)
    parts: list[Array] = []
    for name in entries:
        values = _lookup(role, str(name), pool)
        parts += [values] if values.ndim == 1 else [values[:, k] for k in range(values.shape[1])]
    if joints is not None and len(joints) != len(parts):
        raise LogError(f"schema gives {len(parts)} {role} channels for {len(joints)} joints {joints}; give as many")
    return {str(k + 1) if joints is None else joints[k]: values for k, values in enumerate(parts)}


def _pattern(role: str, pattern: str, pool: Mapping[str, Array], joints: list[str] | None) -> dict[str, Array]:
    if joints is not None:
        names = [pattern.replace("{joint}", j).replace("{index}", str(k + 1)) for k, j in enumerate(joints)]
        return {j: _lookup(role, name, pool) for j, name in zip(joints, names, strict=True)}
    expression = re.escape(pattern).replace(r"\{joint\}", "(.+)").replace(r"\{index\}", r"(\d+)")
    found = {m.group(1): v for name, v in pool.items() if v.ndim == 1 and (m := re.fullmatch(expression, name))}
    if not found:
        raise LogError(f"schema pattern '{pattern}' for {role} fits no column; the columns are {_listed(pool)}")
    return found


def _lookup(role: str, name: str, pool: Mapping[str, Array]) -> Array:
    if name in pool:
        return pool[name]
    match = re.fullmatch(r"(.+)\[(\d+)\]", name)
    if match and match.group(1) in pool:
        values, k = pool[match.group(1)], int(match.group(2))
        if values.ndim == 2 and k < values.shape[1]:
            return values[:, k]
        raise LogError(f"schema names {role} column '{name}', but '{match.group(1)}' has shape {values.shape}")
    raise LogError(f"schema names {role} column '{name}', which is not there; the columns are {_listed(pool)}")


def _listed(pool: Mapping[str, object], limit: int = 40) -> str:
    names = [n for n in pool if ":" not in n] or list(pool)
    return ", ".join(names[:limit]) + (f", ... ({len(names)} in all)" if len(names) > limit else "")
