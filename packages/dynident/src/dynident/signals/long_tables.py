"""Tables in long format: a column states the joint, the quantity or the run of each row.

time, joint, position, effort   ->  time, position_elbow, position_wrist, ..., effort_elbow, ...
time, variable, value           ->  time, q1, q2, ..., tau1, ...
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import LogError
from dynident.signals.tables import EPISODES, JOINT_KEYS, VARIABLE_KEYS, Words, parse_column, plain_key, split_unit, time_column

VALUES = ("value", "values", "val", "reading")
FEWEST = 3  #: rows per joint or run, below which a column is something else: a counter, a checksum
SHOWN = 12  #: names in a sentence


def words_of(values: Array) -> Words | None:
    """Whole numbers as names; None where they are none, or too many for joints and runs."""
    if values.ndim != 1 or not np.all(np.isfinite(values)) or np.any(values != np.floor(values)):
        return None
    known, rows = np.unique(values, return_inverse=True)
    return Words(rows, tuple(str(int(x)) for x in known)) if FEWEST * known.size <= values.size else None


def _key(names: tuple[str, ...], columns: Mapping[str, Any], texts: Mapping[str, Words], several: bool = True) -> str | None:
    """The first column of such a name with several texts or whole numbers in it."""
    for name in names:
        for column in (*texts, *columns):
            words = (texts.get(column) or words_of(columns[column])) if plain_key(column) == name else None
            if words is not None and (len(words.known) > 1 or not several):
                return column
    return None


# ---------------------------------------------------------------------- several runs in one table
def episodes_of(columns: Mapping[str, Any], texts: Mapping[str, Words]) -> tuple[str, Words] | None:
    """The column that tells runs apart and what it says, None for one run.

    `episode_index` of LeRobot always does; others only where the clock starts again, since 'run' may be a flag.
    """
    column = _key(EPISODES, columns, texts, several=False)
    if column is None:
        return None
    words = texts.get(column) or words_of(columns[column])
    if words is None:
        return None
    if plain_key(column) != EPISODES[0]:
        clock = time_column({k: v for k, v in columns.items() if v.ndim == 1}, [])
        inside = words.rows[1:] == words.rows[:-1]
        if clock is None or not np.any((np.diff(columns[clock]) < 0.0) & ~inside):
            return None
    return column, words


def one_episode(
    columns: Mapping[str, Any], texts: Mapping[str, Words], wanted: object, notes: list[str]
) -> tuple[dict[str, Any], dict[str, Words]]:
    """Rows of one run of a table that holds several."""
    found = episodes_of(columns, texts)
    if found is None:
        if wanted is not None:
            raise LogError(f"episode {wanted!r} is asked for, but no column such as 'episode_index' tells runs apart")
        return dict(columns), dict(texts)
    column, words = found
    names = _listed(words.known)
    if wanted is None and len(words.known) > 1:
        raise LogError(
            f"it holds {len(words.known)} episodes (column '{column}': {names}); say which, episode= (--episode), or take all "
            "of them with Log.read_episodes in Python"
        )
    if wanted is None:
        return dict(columns), dict(texts)
    name = str(int(wanted)) if isinstance(wanted, float) and wanted == int(wanted) else str(wanted)
    if name not in words.known:
        raise LogError(f"episode is {wanted!r}; the file has {names}")
    rows = words.rows == words.known.index(name)
    notes.append(f"episode {name}: {int(rows.sum())} rows")
    kept = {k: v[rows] if v.shape[0] == rows.size else v for k, v in columns.items() if k != column}
    return kept, {k: Words(w.rows[rows], w.known) for k, w in texts.items() if k != column and w.rows.size == rows.size}


def _listed(names: tuple[str, ...]) -> str:
    """Names for a sentence: '0 to 49' where they are consecutive numbers."""
    numbers = [int(n) for n in names if re.fullmatch(r"\d{1,9}", n)]
    if len(numbers) == len(names) > 3 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(names[:SHOWN]) + (f", ... ({len(names)} in all)" if len(names) > SHOWN else "")


# ---------------------------------------------------------------------- one row per joint
def wide(
    columns: Mapping[str, Any], texts: Mapping[str, Words], time: object, units: dict[str, str], notes: list[str]
) -> dict[str, Any]:
    """One column per joint and quantity of a table that has one row per joint; other tables as they are.

    `time` is the column that the user named; units of columns go over to those made of them.
    """
    flat = {name: values for name, values in columns.items() if values.ndim == 1}
    variable = _key(VARIABLE_KEYS, {}, texts)
    value = next((c for c in flat if plain_key(c) in VALUES), None)
    joint = _key(JOINT_KEYS, flat, {k: w for k, w in texts.items() if k != variable or value is None})
    if value is None or variable is None:
        variable = None
        bare = [c for c in flat if (known := parse_column(c)) and known.role == "position" and not known.joint]
        if joint is None or not bare:
            return dict(columns)
    clock = time if isinstance(time, str) and time in flat else time_column(flat, [])
    keys = [key for key in (variable, joint) if key is not None]
    group, parts = _groups([texts.get(key) or _numbered(flat[key]) for key in keys])
    labels = ["_".join(part) for part in parts]
    order = np.argsort(group, kind="stable")
    rows = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    measured = [value] if variable is not None and value is not None else [c for c in flat if c not in (*keys, clock)]
    result: dict[str, Any] = {}
    times, values = _on_one_clock({c: flat[c] for c in measured}, rows, None if clock is None else flat[clock], labels, notes)
    if clock is not None:
        result[clock] = times
    for (column, k), channel in values.items():
        quantity, *rest = parts[k] if variable is not None else (column, *parts[k])
        name, unit = split_unit(quantity)
        label = "_".join((name, *rest)) + (f" [{unit}]" if unit else "")
        result[label] = channel
        if column in units:
            units[label] = units[column]
    notes.append(
        f"one row per {' and '.join(repr(key) for key in keys)}, brought side by side: {len(labels)} of them "
        f"({_listed(tuple(labels))}), {len(times)} samples"
    )
    return result


def _numbered(values: Array) -> Words:
    found = words_of(values)
    return found if found is not None else Words(np.zeros(values.size, dtype=np.int64), ("",))


def _groups(keys: list[Words]) -> tuple[Any, list[list[str]]]:
    """Number every combination of keys that occurs; what each key says in it."""
    code = np.zeros(keys[0].rows.size, dtype=np.int64)
    for key in keys:
        code = code * len(key.known) + key.rows
    known, group = np.unique(code, return_inverse=True)
    parts = []
    for number in known.tolist():
        words: list[str] = []
        for key in reversed(keys):
            number, k = divmod(number, len(key.known))  # noqa: PLW2901 - the digits of a number, last first
            words.insert(0, key.known[k])
        parts.append(words)
    return group, parts


def _on_one_clock(
    columns: Mapping[str, Array], rows: list[Any], clock: Array | None, labels: list[str], notes: list[str]
) -> tuple[Array, dict[tuple[str, int], Array]]:
    """Values of every group at the times of the first one, by linear interpolation where others have their own."""
    if clock is None:
        if len({len(r) for r in rows}) > 1:
            raise LogError(
                f"{labels[0]} has {len(rows[0])} rows and others more or fewer, and there is no time column; add one"
            )
        return np.arange(float(len(rows[0]))), {(c, k): v[r] for c, v in columns.items() for k, r in enumerate(rows)}
    times = clock[rows[0]]
    if all(np.array_equal(clock[r], times) for r in rows):
        return times, {(c, k): v[r] for c, v in columns.items() for k, r in enumerate(rows)}
    for k, r in enumerate(rows):
        if np.any(np.diff(clock[r]) <= 0):
            raise LogError(f"the rows of '{labels[k]}' are not in the order of their times, or two have one time; sort them")
    first, last = max(clock[r[0]] for r in rows), min(clock[r[-1]] for r in rows)
    times = times[(times >= first) & (times <= last)]
    notes.append(f"rows have times of their own: brought to those of '{labels[0]}' by linear interpolation")
    since = np.asarray(times - first, dtype=np.float64)
    own = [np.asarray(clock[r] - first, dtype=np.float64) for r in rows]
    return times, {(c, k): np.interp(since, own[k], v[r]) for c, v in columns.items() for k, r in enumerate(rows)}
