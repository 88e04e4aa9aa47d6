"""Files to tables by their ending, and tables to a `Log`: the clock, the channels of every quantity, and all of it in SI.

In tables in long format a column states the joint, the quantity or the run of each row:

    time, joint, position, effort   ->  time, position_elbow, position_wrist, ..., effort_elbow, ...
    time, variable, value           ->  time, q1, q2, ..., tau1, ...
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import LogError, missing_extra
from dynident.files import read_regular
from dynident.plugins import LOG_READERS, reader_of
from dynident.signals.channels import REQUIRED, Found, files_beside, find_channels, rules_of, unwrap
from dynident.signals.clock import aligned, join_stamps, on_one_clock, without_repeats
from dynident.signals.formats import READERS, TEXT, joints_of, read_frame
from dynident.signals.log import FIELDS, Log, check_effort_kind
from dynident.signals.tables import (
    EPISODES,
    GROWTH,
    JOINT_KEYS,
    LARGEST,
    NOT_READ,
    ROLES,
    ROOM,
    VARIABLE_KEYS,
    Table,
    Words,
    canonical,
    is_key,
    is_time,
    parse_column,
    plain_key,
    printable,
    split_unit,
    table_of,
    time_column,
    time_name,
    to_si,
)

UR_EFFORT = (  # [UniversalRobots2026]
    "Universal Robots drivers log motor_current [A], or joint_torque [N m] on PolyScope 5.23, 10.11 or newer if "
    "use_currents_as_efforts is false"
)

VALUES = ("value", "values", "val", "reading")
FEWEST = 3  #: rows per joint or run, below which a column is something else: a counter, a checksum
SHOWN = 12  #: names in a sentence
#: Remedies for files of other programs.
ELSEWHERE = {
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "save the sheet as CSV"),
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), "a pickle can run code and is never loaded: save CSV, npz or Parquet"),
    **dict.fromkeys((".feather", ".arrow"), "read it with pandas and give the DataFrame to Log.read"),
    **dict.fromkeys((".npy",), "save its columns by name, np.savez('run.npz', t=..., q=..., tau=...)"),
}


# ---------------------------------------------------------------------- files
def read_table(path: str | os.PathLike[str], topics: list[str] | None = None) -> Table:
    """Read one file or bag into a `Table`, choosing the reader by the file name's ending; units are not yet converted.

    `topics` of a bag: the first one gives the clock; its only topic of JointState messages when omitted.
    """
    file = Path(path)
    suffix = _suffix(file)
    if is_bag(file):
        with naming(file):
            tables: list[Table] = list(bags(file).bag_tables(file, topics, None))
        return tables[0]
    if not suffix and not file.exists():
        raise LogError(f"cannot read '{file}': it does not exist; give a file, a bag or a folder")
    if suffix not in READERS:
        others = (ending for ending in READERS if ending not in TEXT and not ending.endswith(".gz"))
        known = ", ".join((*TEXT, ".gz of them", *others, ".mcap", ".db3", ".bag"))
        hint = f"; {ELSEWHERE[suffix]}" if suffix in ELSEWHERE else ""
        raise LogError(f"cannot read '{file}': ending '{suffix}' is not one of {known}{hint}")
    try:
        if file.is_file() and (size := file.stat().st_size) > LARGEST:
            raise LogError(f"cannot read '{file}': it has {size >> 20} MB; at most {LARGEST >> 20} MB are read, split the file")
        data = read_regular(file)
    except OSError as error:
        raise LogError(f"cannot read '{file}': {error.strerror or error}") from error
    if not data:
        raise LogError(f"cannot read '{file}': the file is empty")
    room = max(ROOM, GROWTH * len(data))
    with naming(file):
        content = READERS[suffix](data, room)
    checksum = hashlib.sha256(data).hexdigest()
    del data  # columns are gathered into arrays below
    return replace(table_of(file.name, content, topics), sha256=checksum)


def is_bag(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a ROS bag or MCAP file, by its ending."""
    return Path(path).is_dir() or _suffix(Path(path)) in (".mcap", ".db3", ".bag")


def has_pieces(path: Path) -> bool:
    """Whether a file can be read piece by piece, by its ending."""
    return path.is_file() and (is_bag(path) or _suffix(path) == ".parquet")


def has_format(path: Path) -> bool:
    """Whether `read_table` reads a file by its ending; a folder may be anything."""
    return not path.is_dir() and (is_bag(path) or _suffix(path) in READERS)


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Add the file name to errors."""
    try:
        yield
    except LogError as error:
        raise LogError(printable(f"cannot read '{file}': {error}", 2000)) from error
    except OSError as error:
        raise LogError(printable(f"cannot read '{file}': {error.strerror or error}", 2000)) from error


def _suffix(file: Path) -> str:
    parts = [s.lower() for s in file.suffixes]
    return "".join(parts[-2:]) if parts and parts[-1] == ".gz" else (parts[-1] if parts else "")


def is_data_set(path: str | os.PathLike[str]) -> bool:
    """Whether a path is the folder of a LeRobot data set."""
    return (Path(path) / "meta" / "info.json").is_file() and (Path(path) / "data").is_dir()


def read_data_set(path: str | os.PathLike[str]) -> Table:
    """Read the only data file of a data set; several files raise an error that asks for one of them."""
    folder = Path(path)
    files = sorted(folder.glob("data/*/*.parquet"))
    if not files:
        raise LogError(f"cannot read '{folder}': it has no file data/*/*.parquet; download its data too")
    if len(files) > 1:
        some = ", ".join(str(f.relative_to(folder)) for f in files[:3])
        raise LogError(f"cannot read '{folder}': it has {len(files)} files of numbers ({some} ...); give one of them")
    return replace(read_table(files[0]), labels=joints_of(folder / "meta" / "info.json"))


def bags(path: Path) -> ModuleType:
    """Return the module that reads bags, whose libraries are an extra; `path` is named in the error."""
    try:
        from dynident.signals import bags as module  # noqa: PLC0415 - its libraries are an extra
    except ImportError as error:
        raise missing_extra(error.name or "rosbags", "ros", f"reading '{path.name}' as a ROS bag or MCAP file") from error
    return module


# ---------------------------------------------------------------------- long format


def words_of(values: Array) -> Words | None:
    """Whole numbers as names; None for other numbers, or too many for joints and runs."""
    if values.ndim != 1 or not np.all(np.isfinite(values)) or np.any(values != np.floor(values)):
        return None
    known, rows = np.unique(values, return_inverse=True)
    return Words(rows, tuple(str(int(x)) for x in known)) if FEWEST * known.size <= values.size else None


def _key(names: tuple[str, ...], columns: Mapping[str, Any], texts: Mapping[str, Words], several: bool = True) -> str | None:
    """The first column with such a name and several texts or whole numbers."""
    for name in names:
        for column in (*texts, *columns):
            words = (texts.get(column) or words_of(columns[column])) if plain_key(column) == name else None
            if words is not None and (len(words.known) > 1 or not several):
                return column
    return None


# ---------------------------------------------------------------------- several runs in one table
def episodes_of(columns: Mapping[str, Any], texts: Mapping[str, Words]) -> tuple[str, Words] | None:
    """The column that separates runs, and its values; None for one run.

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
            raise LogError(f"episode {wanted!r} is requested, but no column such as 'episode_index' separates the runs")
        return dict(columns), dict(texts)
    column, words = found
    names = _listed(words.known)
    if wanted is None and len(words.known) > 1:
        raise LogError(
            f"it contains {len(words.known)} episodes (column '{column}': {names}); choose one with episode= (--episode), "
            "or read all with Log.read_episodes"
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

    `time` is the column named by the user; new columns inherit the units.
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
    group, parts = _groups([words for key in keys if (words := texts.get(key) or words_of(flat[key]))])
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
        f"one row per {' and '.join(repr(key) for key in keys)}, converted to columns: {len(labels)} of them "
        f"({_listed(tuple(labels))}), {len(times)} samples"
    )
    return result


def _groups(keys: list[Words]) -> tuple[Any, list[list[str]]]:
    """Number every combination of keys that occurs; return the numbers by row and the words of each combination."""
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
    notes.append(f"rows have separate times: linear interpolation to those of '{labels[0]}'")
    since = np.asarray(times - first, dtype=np.float64)
    own = [np.asarray(clock[r] - first, dtype=np.float64) for r in rows]
    return times, {(c, k): np.interp(since, own[k], v[r]) for c, v in columns.items() for k, r in enumerate(rows)}


PathLike = str | os.PathLike[str]
#: LeRobot data sets hold degrees or parts of the range, distinguished by an angle above this (rad).
LARGEST_ANGLE = 4.0 * np.pi
#: Longest and shortest plausible median step (s); beyond them the times are probably in ms, us or ns.
SLOWEST_STEP, FASTEST_STEP = 0.5, 1e-6
#: Times beyond this (s) are counted from an epoch (1970), and are moved to start at zero.
EPOCH = 1e8
#: The size of times since 1970 shows their unit: these lie between the years 2001 and 2100.
_SINCE_1970 = {"s": (1e9, 4.1e9), "ms": (1e12, 4.1e12), "us": (1e15, 4.1e15), "ns": (1e18, 4.1e18)}


RULES = {"effort": "effort_kind", "units": "unit"}  # arguments of Log.read with another name in a schema


def read_any(path: object, options: Mapping[str, Any]) -> Log:
    """Read with the arguments of `Log.read`; registered readers get folders, unknown endings and files that ours reject."""
    place = Path(path) if isinstance(path, str | os.PathLike) else None
    ours = place is None or has_format(place)
    if place is not None and not ours and (reader := reader_of(LOG_READERS, place)):
        return reader.read(place, **options)  # type: ignore[no-any-return]
    try:
        return read_log(path, options.get("schema"), {RULES.get(k, k): v for k, v in options.items() if k != "schema"})
    except LogError:
        if place is None or not ours or not (reader := reader_of(LOG_READERS, place)):
            raise
    return reader.read(place, **options)  # type: ignore[no-any-return]


def read_log(path: object, schema: PathLike | Mapping[str, object] | None, overrides: Mapping[str, object]) -> Log:
    """Read files and apply a schema; `overrides`, the arguments of `Log.read` under their schema names, win over it."""
    rules, files, folder = dict(overrides), path, Path()
    if schema is not None or "unit" in overrides:
        rules, folder = rules_of(schema, overrides)
    if rules.get("files") is not None:
        files = files_beside(rules["files"], Path(os.fspath(path)) if isinstance(path, str | os.PathLike) else folder)
    tables, by_role = _tables(files, topics_of(rules))
    return log_of(tables, by_role, rules, own=schema is None)


def read_episodes(path: object, schema: PathLike | Mapping[str, object] | None, overrides: Mapping[str, object]) -> list[Log]:
    """Read every run of a table that holds one or several."""
    rules, _ = rules_of(schema, overrides)
    tables, by_role = _tables(path, topics_of(rules))
    found = episodes_of(_columns(tables, {}), tables[0].texts) if len(tables) == 1 else None
    if found is None:
        return [log_of(tables, by_role, rules, own=schema is None)]
    name = str(rules.get("name") or tables[0].label.split(".")[0])
    return [
        log_of(tables, by_role, {**rules, "episode": episode, "name": f"{name} {episode}"}, own=False)
        for episode in found[1].known
    ]


def log_of(tables: list[Table], by_role: Mapping[str, Table], rules: Mapping[str, Any], own: bool) -> Log:
    """Convert tables to a log by the rules; with `own`, files written by dynident use their metadata instead."""
    log = _as_logged(tables, by_role, rules, own)
    if rules.get("delay") is None:
        return log
    return aligned(log, rules["delay"])


def _as_logged(tables: list[Table], by_role: Mapping[str, Table], rules: Mapping[str, Any], own: bool) -> Log:
    """Convert tables to a log with every channel at its logged time."""
    if own and len(tables) == 1 and tables[0].metadata is not None:
        return _own_log(tables[0], rules)
    kind = _effort_kind(tables, rules.get("effort_kind"))
    notes = [note for t in tables for note in t.notes]
    row_units = {name: unit for t in tables for name, unit in t.units.items()}
    texts = tables[0].texts if len(tables) == 1 else {}
    columns = _columns(tables, row_units)
    if rules.get("episode") is not None or any(map(is_key, (*columns, *texts))):
        columns, texts = one_episode(columns, texts, rules.get("episode"), notes)
        columns = wide(columns, texts, rules.get("time"), row_units, notes)
    source = {role: {n: x for n, x in table.columns.items() if not is_time(n)} for role, table in by_role.items()}
    flat = {k: v for k, v in columns.items() if v.ndim == 1}
    said: list[str] = []
    name = rules["time"] if rules.get("time") is not None else time_column(flat, said)
    if rules.get("rate") is None and name is None:
        rules = {**rules, **_rate_of(tables, notes)}
    unread = "".join(f"{note}; " for t in tables for note in t.notes if note.startswith(NOT_READ))
    clock, converted = find_clock(flat, name, rules, _rows(columns, tables), row_units, unread)
    columns = _orient(columns, clock.size)
    source = {role: _orient(part, clock.size) for role, part in source.items()}
    found = find_channels(columns, source, rules, kind, row_units, tables)
    notes += said + converted + found.notes + _understood(found, [c for c in columns if c != name])
    arrays = _in_si(found, kind, rules, notes)
    if np.any(clock[1:] == clock[:-1]) or not all(np.isfinite(values).all() for values in arrays.values()):
        clock, arrays = on_one_clock(clock, arrays, notes)
        clock, arrays = without_repeats(clock, arrays, rules.get("rate"), name or "", notes)
    unwrap(clock, arrays, found.joints, notes)
    first = tables[0].label
    return Log(
        t=clock,
        joints=tuple(found.joints),
        effort_kind=kind,
        gain=_gain(rules.get("gain"), tables),
        position_side=rules.get("position_side") or "joint",
        name=str(rules.get("name") or first.split(".")[0]),
        provenance={
            "files": [t.label for t in tables],
            **({"sha256": [t.sha256 for t in tables]} if all(t.sha256 for t in tables) else {}),
            "rows": int(clock.size),
            "time_column": name or "",
            "columns": {role: list(names) for role, names in found.columns.items()},
            "units": {role: [unit or "" for unit in units] for role, units in found.units.items()},
            "conversions": notes,
        },
        **arrays,
    )


def _effort_kind(tables: list[Table], kind: object) -> str:
    """Return the effort kind; if it is missing, the error states the kind for a known driver."""
    try:
        return check_effort_kind(kind)
    except LogError as error:
        if kind is None and any("shoulder_pan_joint" in name for name in _columns(tables, {})):
            raise LogError(f"{error}. {UR_EFFORT}") from None
        raise


def _understood(found: Found, columns: list[str]) -> list[str]:
    """Return notes on the names of numbered channels and on unused numeric columns."""
    notes = []
    if all(re.fullmatch(r"joint_\d+", name) for name in found.joints):
        first, last = found.columns["position"][0], found.columns["position"][-1]
        what = f"array '{first}'" if first == last else f"numbered columns '{first}' to '{last}'"
        notes.append(f"{what}: channels {found.joints[0]} to {found.joints[-1]}, in this order")
    if "reference" in found.arrays:
        notes.append(f"reference: '{found.columns['reference'][0]}', ...")
    used = {c for names in found.columns.values() for c in names}
    left = [c for c in columns if c not in used and ":" not in c and not is_time(c)]
    if left:
        shown = _families(left)
        notes.append(f"not used: {', '.join(shown[:8])}{f', ... ({len(left)} in all)' if len(shown) > 8 else ''}")
    return notes


def _families(columns: list[str]) -> list[str]:
    """Return names of columns; names that differ only by a number, as Cur1 to Cur7, are joined."""
    members: dict[str, list[str]] = {}
    for name in columns:
        members.setdefault(re.sub(r"\d+", "#", name), []).append(name)
    return [own[0] if len(own) == 1 else f"{own[0]} to {own[-1]}" for own in members.values()]


def _in_si(found: Found, kind: str, rules: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    """All channels in SI: by the given units, else the columns' units, else unchanged."""
    given = rules.get("unit") or {}
    lerobot = found.columns["position"][0].lower() == "observation.state"
    arrays: dict[str, Any] = {}
    for role, values in found.arrays.items():
        unit = given.get(role)
        written = found.units[role]
        if unit is None and any(written):
            unit = [u or 1.0 for u in written]
        beyond = lerobot and np.nanmax(np.abs(found.arrays["position"]), initial=0.0) > LARGEST_ANGLE
        if unit is None and beyond and role in ("position", "reference"):
            unit = "deg"
            notes.append(f"{role}: a LeRobot data set with values beyond {LARGEST_ANGLE:.4g} is taken to be in degrees")
        if unit is None:
            arrays[role] = values
            continue
        try:
            arrays[role], said = to_si(role, values, unit, effort_kind=kind, counts_per_unit=rules.get("counts_per_unit"))
        except LogError as error:
            if role in REQUIRED or given.get(role) is not None:
                raise
            notes.append(f"{role} left out: {error}")
            continue
        notes += said
    return arrays


# ---------------------------------------------------------------------- the clock
def find_clock(
    columns: Mapping[str, Any],
    name: str | None,
    rules: Mapping[str, Any],
    samples: int,
    units: Mapping[str, str],
    unread: str,
) -> tuple[Array, list[str]]:
    """Return the times (s) from the time column, else from the sampling rate, and notes on conversions."""
    rate = rules.get("rate")
    if rate is not None and (isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < np.inf):
        raise LogError(f"rate is {rate!r}; give the sampling rate in Hz, a positive number")
    if name is not None and (not isinstance(name, str) or name not in columns):
        raise LogError(f"time column '{name}' is not there; the columns are {', '.join(list(columns)[:40])}")
    if name is None:
        if rate is None:
            among = f" among {', '.join(list(columns)[:12])} ..." if columns else ""
            remedy = "give rate= (--rate) in Hz, or the column by schema={'time': ...} (--schema)"
            raise LogError(f"no time column{among}; {unread}{'or ' * bool(unread)}{remedy}")
        return np.arange(samples) / float(rate), [f"time: sample number / {rate} Hz (no time column)"]
    known = time_name(name)
    written = units.get(name) or (known[1] if known else split_unit(name, time=True)[1])
    return _from_column(name, columns[name], rate, (rules.get("unit") or {}).get("time"), written)


def _from_column(name: str, raw: Any, rate: float | None, unit: object, written: str | None) -> tuple[Array, list[str]]:
    """Convert one time column; `unit` is from the user, `written` from the file."""
    bad = np.flatnonzero(~np.isfinite(raw))
    if bad.size:
        row = int(bad[0])
        raise LogError(f"time column '{name}' is {raw[row]} at row {row + 1}; every row needs a time, remove that row")
    # Stamps in ns since 1970 do not fit into a float: they are counted from the first one as whole numbers.
    first = raw[0] if raw.size else 0
    since = np.asarray(raw - first, dtype=np.float64)
    if written is not None and unit is None and canonical(written) != "s":
        unit = written
    if unit is None and raw.size:
        unit = next((u for u, (low, high) in _SINCE_1970.items() if u != "s" and low < float(first) < high), None)
    step = np.diff(since)
    if raw.size > 2 and unit is None and np.all(step == 1.0) and first == np.floor(first):
        if rate is None:
            raise LogError(f"time column '{name}' counts samples ({first:.0f}, {raw[1]:.0f}, ...); give rate= (--rate) in Hz")
        return since / float(rate), [f"time: sample counter '{name}' / {rate} Hz"]
    factor, notes = 1.0, list[str]()
    if unit is not None:
        factor = float(to_si("time", np.ones(1), unit)[0][0])
        notes.append(f"time: '{name}' in {unit} times {factor:g} to s")
    median = float(np.median(step)) * factor if step.size else 0.0
    if np.any(step == 0.0):  # repeated rows, or stamps coarser than the sampling
        median = float(np.mean(step)) * factor
    if median >= SLOWEST_STEP and unit is None:
        raise LogError(
            f"time column '{name}' advances by {median:g} per sample, too slow for seconds; "
            "give units={'time': 'ms'} (or 'us', 'ns', 's')"
        )
    if 0.0 < median < FASTEST_STEP:
        raise LogError(
            f"time column '{name}' advances by {median:g} s per sample, too short for a robot log; give its unit, "
            "units={'time': 's'} (or 'ms', 'us', 'ns')"
        )
    if rate is not None and median > 0 and abs(rate * median - 1.0) > 0.05:
        raise LogError(f"rate is {rate:g} Hz but time column '{name}' runs at {1 / median:g} Hz; leave out one of them")
    if abs(float(first)) * factor > EPOCH:
        return since * factor, [*notes, f"time: started at {float(first) * factor!r} s (epoch), moved to 0"]
    return (np.asarray(raw, dtype=np.float64) if factor == 1.0 else np.asarray(raw * factor, dtype=np.float64)), notes


# ---------------------------------------------------------------------- columns of all files
def topics_of(rules: Mapping[str, Any]) -> list[str] | None:
    """The requested topics."""
    topic = rules.get("topic")
    if topic is None:
        return None
    topics = [topic] if isinstance(topic, str) else topic
    if not isinstance(topics, list | tuple) or not topics or not all(isinstance(t, str) and t for t in topics):
        raise LogError(f"topic is {topic!r}; give a name such as '/joint_states', or a list of names")
    return list(topics)


def _tables(path: object, topics: list[str] | None) -> tuple[list[Table], dict[str, Table]]:
    """Read every file once; the second value maps a role to its file."""
    if isinstance(path, Mapping) and path and not any(isinstance(p, str | os.PathLike) for p in path.values()):
        return [read_frame(path)], {}
    if isinstance(path, Mapping):
        unknown = sorted(set(map(str, path)) - {*ROLES, "time"})
        if unknown or not path:
            raise LogError(f"files are given for {unknown}; the known quantities are time, {', '.join(ROLES)}")
        if not all(isinstance(p, str | os.PathLike) for p in path.values()):
            raise LogError("the mapping mixes files and arrays; give one or the other")
        unique = {str(p): read_table(p, topics) for p in path.values()}
        return list(unique.values()), {role: unique[str(p)] for role, p in path.items() if role != "time"}
    if isinstance(path, str | os.PathLike):
        return [read_data_set(path) if is_data_set(path) else read_table(path, topics)], {}
    if isinstance(path, list | tuple):
        if not path or not all(isinstance(p, str | os.PathLike) for p in path):
            raise LogError(f"path is a list of {len(path)} things that are not all files; give names of files")
        return [read_table(p, topics) for p in path], {}
    if path is None or isinstance(path, int | float | bytes):
        raise LogError(f"path is {path!r}; give a file, a list of files, a mapping from quantity to file, or a table")
    return [read_frame(path)], {}


def _columns(tables: list[Table], units: dict[str, str]) -> dict[str, Array]:
    """Columns of all files, stamps in two parts joined; their units are added."""
    columns = _merge(tables)
    if any(re.search("nano|nsec", name, re.I) for name in columns):
        columns = join_stamps(columns, units)
    return columns


def _merge(tables: list[Table]) -> dict[str, Array]:
    """Columns of all files; a name found in several files is kept once if equal, else as 'file:name'."""
    if len(tables) == 1:
        return dict(tables[0].columns)
    merged: dict[str, Array] = {}
    for table in tables:
        for name, values in table.columns.items():
            others = [t.columns[name] for t in tables if t is not table and name in t.columns]
            if is_time(name):
                for other in others:
                    slack = 1e-3 * float(np.median(np.abs(np.diff(values)))) if values.ndim == 1 and values.size > 1 else 0.0
                    if other.shape != values.shape or not np.allclose(other, values, rtol=0.0, atol=slack):
                        raise LogError(
                            f"the clocks of the files differ (column '{name}' has {values.shape[0]} and {other.shape[0]} "
                            "rows or other values); bring them to one clock first"
                        )
            merged.setdefault(name, values)
            merged[f"{table.label.split('.')[0]}:{name}"] = values
    return merged


def _rate_of(tables: list[Table], notes: list[str]) -> dict[str, float]:
    """The sampling rate (Hz) from a single number of the file: dt, rate, fs."""
    for name, value in ((n.rpartition(".")[2].lower(), v) for t in tables for n, v in t.scalars.items()):
        step = name in ("dt", "ts", "timestep", "time_step", "sample_time")
        if (step or name in ("rate", "fs", "sample_rate", "sampling_rate", "frequency")) and 0.0 < value < np.inf:
            notes.append(f"time: the file says {name} = {value:g} {'s' if step else 'Hz'}")
            return {"rate": 1.0 / value if step else value}
    return {}


def _rows(columns: Mapping[str, Array], tables: list[Table]) -> int:
    """Number of samples: the longest axis of the numeric content."""
    if not columns:
        said = "".join(f"; {note}" for t in tables for note in t.notes)
        raise LogError(f"no numeric columns in {', '.join(t.label for t in tables)}; a log needs position and effort{said}")
    return int(max(max(v.shape) for v in columns.values()))


def _orient(columns: Mapping[str, Array], samples: int) -> dict[str, Array]:
    """Keep columns with one value per sample; arrays stored as (joints, samples) are transposed."""
    result = {}
    for name, values in columns.items():
        if values.shape[0] == samples:
            result[name] = values
        elif values.ndim == 2 and values.shape[1] == samples:
            result[name] = np.ascontiguousarray(values.T)
    return result


def _gain(gain: object, tables: list[Table]) -> Array | None:
    if gain is None:
        return None
    scalars = {name: value for table in tables for name, value in table.scalars.items()}
    entries = list(gain) if isinstance(gain, list | tuple | np.ndarray) else [gain]
    values = []
    for entry in entries:
        if isinstance(entry, str):
            if entry not in scalars:
                raise LogError(f"gain '{entry}' is not a single number in the file; it has {sorted(scalars)}")
            values.append(scalars[entry])
        elif isinstance(entry, int | float | np.number) and not isinstance(entry, bool):
            values.append(float(entry))
        else:
            raise LogError(f"gain has the entry {entry!r}; give numbers, or names of single numbers in the file")
    return np.array(values) if isinstance(gain, list | tuple | np.ndarray) else np.array(values[0])


# ---------------------------------------------------------------------- our own files
def _own_log(table: Table, rules: Mapping[str, Any]) -> Log:
    """Rebuild a log from a file written by `Log.save`."""
    meta = table.metadata or {}
    try:
        kind, joints, fields = meta["effort_kind"], list(meta["joints"]), list(meta["fields"])
    except (KeyError, TypeError) as error:
        raise LogError(f"cannot read '{table.label}': its dynident metadata is incomplete ({error})") from error
    check_effort_kind(kind)
    if not joints or not all(isinstance(name, str) for name in joints):
        raise LogError(f"cannot read '{table.label}': its metadata names the joints {str(joints)[:60]}; names are needed")
    if not set(REQUIRED) <= set(map(str, fields)) <= set(FIELDS):
        raise LogError(
            f"cannot read '{table.label}': its metadata names the fields {fields}; {' and '.join(REQUIRED)} are needed, "
            f"and of {', '.join(FIELDS)} each may be there"
        )
    asked = rules.get("effort_kind")
    if asked is not None and check_effort_kind(asked) != kind:
        raise LogError(f"effort kind '{asked}' was given, but '{table.label}' says its effort is '{kind}'; leave it out")
    other = sorted(set(rules) & {"unit", "counts_per_unit", "rate"})
    if other:
        raise LogError(f"{other} were given, but '{table.label}' was written by dynident in SI with its clock; leave them out")
    arrays = {}
    for name in fields:
        keys = [name] if name in table.columns else [f"{FIELDS.get(name, name)}_{j}" for j in joints]
        missing = [k for k in keys if k not in table.columns]
        if missing or "t" not in table.columns:
            raise LogError(f"cannot read '{table.label}': columns {missing or ['t']} named in its metadata are missing")
        arrays[name] = table.columns[name] if keys == [name] else np.column_stack([table.columns[k] for k in keys])
    log = Log(
        t=table.columns["t"],
        joints=tuple(joints),
        effort_kind=kind,
        gain=rules.get("gain", meta.get("gain")),
        position_side=rules.get("position_side") or meta.get("position_side", "joint"),
        name=str(rules.get("name") or meta.get("name", "log")),
        provenance=dict(found) if isinstance(found := meta.get("provenance"), Mapping) else {},
        truth=meta.get("truth"),
        **arrays,
    )
    return log.select(rules["joints"]) if rules.get("joints") is not None else log
