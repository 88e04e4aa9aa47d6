"""Assignment of logs to robots: tables, patterns and fleet.toml.

A line of a fleet's table is ``robot, serial, date, log, temperature, load, use``: type and serial number of the robot, date and
file of the recording, and so on. A pattern ``data/{robot}/{serial}/{date}_*.parquet`` takes the same fields from the path.
"""

from __future__ import annotations

import csv
import datetime
import io
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from dynident.errors import DynidentError
from dynident.files import read_text, read_toml
from dynident.mechanism import Mechanism, read_robot
from dynident.signals import prepare
from dynident.signals.tables import printable
from dynident_lab.fleet.results import file_name
from dynident_lab.fleet.storage import matching

FIELDS = ("robot", "serial", "date", "log", "temperature", "load", "use")
USES = ("fit", "validate")
TABLES = (".csv", ".tsv", ".txt")
_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, order=True)
class LogEntry:
    """One log of a fleet."""

    robot: str  # Type of the robot, a name in `robots`
    serial: str  # The robot itself
    date: str  # Day of the recording as YYYY-MM-DD; empty if unknown, which excludes it from drift
    log: str  # Path, or an address that fsspec reads (s3://, gs://, az://, ...)
    temperature: float | None = None  # Temperature of the robot [degree Celsius], to compensate friction
    load: float | None = None  # Mass at the flange [kg], to compensate its effect
    use: str = "fit"  # Whether it is fitted, or held out to judge the fit

    @property
    def day(self) -> int | None:
        """Day of the recording as a number, None when unknown."""
        return datetime.date.fromisoformat(self.date).toordinal() if self.date else None


@dataclass(frozen=True, eq=False)
class FleetFile:
    """Content of a fleet.toml."""

    robots: Mapping[str, Mechanism]  # Types of robots
    entries: tuple[LogEntry, ...]  # Logs
    reading: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)  # Options of `dynident.signals.prepare`
    questions: Mapping[str, Any] = field(default_factory=dict)


def read_fleet(path: str | os.PathLike[str]) -> FleetFile:
    """Read fleet.toml; paths in it are relative to its folder."""
    file = Path(path)
    data = read_toml(file, "a fleet")
    known = ("robots", "fleet", "reading", "prepare", "questions")
    for key, value in data.items():
        if key not in known or not isinstance(value, dict):
            raise DynidentError(f"fleet '{file}': '{key}' is not one of the tables {', '.join(f'[{k}]' for k in known)}")
    if not data.get("robots"):
        raise DynidentError(f"fleet '{file}' names no robot; add a table such as [robots.arm] with description = \"arm.urdf\"")
    robots = {name: _robot(file, name, table) for name, table in data["robots"].items()}
    listed = data.get("fleet", {}).get("logs", [])
    sources = [listed] if isinstance(listed, str) else listed
    if not sources or not isinstance(sources, list) or not all(isinstance(source, str) for source in sources):
        raise DynidentError(
            f"fleet '{file}': logs in [fleet] is {_short(listed)}; give a table such as \"logs.csv\", or patterns"
        )
    reading = dict(data.get("reading", {}))
    if isinstance(reading.get("schema"), str):
        reading["schema"] = str(file.parent / reading["schema"])
    entries = entries_of([_beside(file, source) for source in sources], robots)
    options, names = data.get("prepare", {}), list(signature(prepare).parameters)
    for key in options:
        if key not in names:
            raise DynidentError(f"fleet '{file}': [prepare] has an unknown key '{_short(key)}'; known are {', '.join(names)}")
    return FleetFile(robots, entries, reading, options, data.get("questions", {}))


def _short(value: object) -> str:
    """Return a value of a file, shortened for a message."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def entries_of(logs: Any, robots: Mapping[str, Mechanism]) -> tuple[LogEntry, ...]:
    """Return the logs of tables, patterns, rows or entries, checked, and sorted in the order of merging."""
    one = isinstance(logs, str | os.PathLike | LogEntry | Mapping) or hasattr(logs, "columns")
    items = [logs] if one or (isinstance(logs, np.ndarray) and not logs.ndim) else list(logs)
    found: list[LogEntry] = []
    for item in items:
        found += _entries(item, robots)
    if not found:
        raise DynidentError("the fleet has no log; give a table of logs, or a pattern that files match")
    return _checked(found, robots)


def _entries(item: Any, robots: Mapping[str, Mechanism]) -> list[LogEntry]:
    if isinstance(item, LogEntry):
        return [item]
    if isinstance(item, Mapping):
        return [_entry(item, robots, "a row of logs")]
    if hasattr(item, "columns") and hasattr(item, "to_dict"):  # a DataFrame of pandas
        return [_entry(row, robots, f"row {i} of logs") for i, row in enumerate(item.to_dict(orient="records"))]
    if isinstance(item, str | os.PathLike):
        text = os.fspath(item)
        return _table(text, robots) if text.lower().endswith(TABLES) and not _PLACE.search(text) else _pattern(text, robots)
    raise DynidentError(f"logs has a {type(item).__name__}; give paths of tables, patterns, rows as dicts, or LogEntry")


def _table(path: str, robots: Mapping[str, Mechanism]) -> list[LogEntry]:
    """Return the logs of a CSV table; paths in it are relative to its folder."""
    text = read_text(path, "the table of logs")
    separator = "\t" if path.lower().endswith(".tsv") else ","
    rows = csv.DictReader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    names = [name.strip() for name in rows.fieldnames or []]
    missing = [name for name in ("serial", "log") if name not in names]
    if missing or any(name not in FIELDS for name in names):
        raise DynidentError(
            f"the table of logs '{path}' has the columns {printable(', '.join(names), 300) or 'none'}; it needs serial and "
            f"log, and may have {', '.join(name for name in FIELDS if name not in ('serial', 'log'))}"
        )
    rows.fieldnames = names
    entries = []
    for row in rows:
        where = f"line {rows.line_num} of '{path}'"
        if None in row or None in row.values():
            raise DynidentError(f"{where} has a different number of fields than the header; give one field per column")
        row["log"] = _beside(Path(path), row["log"].strip())
        entries.append(_entry(row, robots, where))
    return entries


def _beside(file: Path, path: str) -> str:
    """Return a path relative to a file's folder; addresses and absolute paths are unchanged."""
    return path if "://" in path or Path(path).is_absolute() else str(file.parent / path)


def _entry(row: Mapping[str, Any], robots: Mapping[str, Mechanism], where: str) -> LogEntry:
    given = {str(key): "" if value is None else str(value).strip() for key, value in row.items()}
    unknown = [key for key in given if key not in FIELDS]
    if unknown:
        raise DynidentError(f"{where}: unknown field '{_short(unknown[0])}'; the fields are {', '.join(FIELDS)}")
    if "robot" not in given and len(robots) == 1:
        given["robot"] = next(iter(robots))
    for key in ("robot", "serial", "log"):
        if not given.get(key):
            raise DynidentError(f"{where}: {key} is empty; every log needs robot, serial and log")
    day = given.get("date", "")[:10]
    try:
        datetime.date.fromisoformat(day or "2000-01-01")
    except ValueError:
        raise DynidentError(f"{where}: date is '{_short(given['date'])}'; write it as YYYY-MM-DD") from None
    numbers = {key: _number(given.get(key, ""), key, where) for key in ("temperature", "load")}
    use = given.get("use", "") or "fit"
    if use not in USES:
        raise DynidentError(f"{where}: use is '{_short(use)}'; it must be one of {', '.join(USES)}")
    return LogEntry(given["robot"], given["serial"], day, given["log"], numbers["temperature"], numbers["load"], use)


def _number(text: str, key: str, where: str) -> float | None:
    if text in ("", "nan", "None"):
        return None
    try:
        value = math.nan if "_" in text else float(text)  # Python reads 1_0 as 10
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DynidentError(f"{where}: {key} is '{_short(text)}'; give a number, or leave it empty")
    return value


def _pattern(pattern: str, robots: Mapping[str, Mechanism]) -> list[LogEntry]:
    """Return the logs whose paths match a pattern with fields in braces."""
    places = _PLACE.findall(pattern)
    for place in places:
        if place not in FIELDS or place == "log":
            raise DynidentError(f"pattern '{pattern}': unknown field '{place}'; use {', '.join(set(FIELDS) - {'log'})}")
    if "serial" not in places:
        raise DynidentError(f"pattern '{pattern}' has no serial; write it as in 'data/{{serial}}/*.parquet'")
    found = matching(_PLACE.sub("*", pattern))
    if not found:
        raise DynidentError(f"no file matches the pattern '{pattern}'; check the folder and the ending")
    seen: set[str] = set()
    text = ""
    for part in re.split(r"(\{\w+\}|\*\*/?|\*|\?)", pattern.rpartition("://")[2]):
        name = part[1:-1]
        if part.startswith("{"):
            text += f"(?P={name})" if name in seen else f"(?P<{name}>[^/]+?)"
            seen.add(name)
        else:
            text += {"*": "[^/]*", "?": "[^/]", "**": ".*", "**/": "(?:.*/)?"}.get(part, re.escape(part))
    match = re.compile(text + "$")
    entries = []
    for path in found:
        fields = match.search(path)
        if fields:
            entries.append(_entry({**fields.groupdict(), "log": path}, robots, f"'{path}'"))
    return entries


def _checked(entries: Sequence[LogEntry], robots: Mapping[str, Mechanism]) -> tuple[LogEntry, ...]:
    """Return entries sorted, after refusing duplicates, logs of two robots, and entries with equal file names."""
    types: dict[str, str] = {}
    _check_names("types", robots)
    seen: dict[str, LogEntry] = {}
    for entry in entries:
        if entry.robot not in robots:
            raise DynidentError(
                f"log '{entry.log}' belongs to robot '{entry.robot}', which is not in the fleet; robots are {', '.join(robots)}"
            )
        if types.setdefault(entry.serial, entry.robot) != entry.robot:
            raise DynidentError(
                f"serial '{entry.serial}' is listed for robots '{types[entry.serial]}' and '{entry.robot}'; use one robot "
                "type per serial"
            )
        if entry.log in seen:
            whose = seen[entry.log].serial
            both = "twice" if whose == entry.serial else f"of '{whose}' and of '{entry.serial}'"
            raise DynidentError(f"log '{entry.log}' is listed {both}; list every log once")
        seen[entry.log] = entry
    _check_names("serials", types)
    return tuple(sorted(entries, key=lambda e: (e.robot, e.serial, e.date, e.log)))


def _check_names(what: str, names: Iterable[str]) -> None:
    """Refuse names that differ in capitals only: their files coincide on some file systems."""
    files: dict[str, str] = {}
    for name in names:
        first = files.setdefault(file_name(name).lower(), name)
        if first != name:
            raise DynidentError(
                f"the {what} '{first}' and '{name}' differ only in capital letters, so some disks would mix their files; "
                "use one spelling or different names"
            )


def _robot(file: Path, name: str, table: Any) -> Mechanism:
    if not isinstance(table, dict) or not isinstance(table.get("description"), str):
        raise DynidentError(f"fleet '{file}': [robots.{name}] needs description = \"...\", the file of the robot")
    unknown = [key for key in table if key not in ("description", "sidecar", "terms", "search")]
    if unknown:
        raise DynidentError(f"fleet '{file}': [robots.{name}] has an unknown key '{unknown[0]}'")
    texts = {"sidecar": [table.get("sidecar", "")], "search": table.get("search", []), "terms": table.get("terms", [])}
    for key, given in texts.items():
        if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
            raise DynidentError(f"fleet '{file}': {key} of [robots.{name}] is {_short(table[key])}; give strings in quotes")
    sidecar = file.parent / table["sidecar"] if table.get("sidecar") else None
    robot = read_robot(file.parent / table["description"], sidecar, [file.parent / x for x in table.get("search", [])])
    return robot if "terms" not in table else robot.with_terms(table["terms"])
