"""Logs as records: JSON, JSON lines, and what `ros2 topic echo` prints.

    {"t": 0.004, "q": [...], "tau": [...]}     one record per sample (a list of them, or one per line), or
    {"t": [...], "q": [[...], ...], ...}       one list per quantity

Records are taken one after the other into columns, so that of a line nothing stays but its numbers.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from dynident.errors import LogError
from dynident.signals.rows import NUMBER, plain_text
from dynident.signals.tables import COLUMNS, LABELS, Content, check_room, is_key, printable, texts_of

DEPTH = 16
LARGEST = 64 << 20  #: bytes of a file that is read as one JSON value, which takes about 20 times as much


def read_json(data: bytes, room: int) -> Content:
    """Read one JSON value, or one per line."""
    content = Content({})
    body = plain_text(data, room, content.notes)
    start = body.lstrip()[:1]
    first = body.lstrip().split(b"\n", 1)[0]
    if start == b"{" and first.rstrip().endswith(b"}") and body.count(b"\n") > 1:
        content.notes.append("one record per line")
        return columns_of(_lines(body), room, content)
    if len(body) > LARGEST:
        raise LogError(
            f"it has {len(body) >> 20} MB of JSON; at most {LARGEST >> 20} MB are read at once, write a record per line"
        )
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise LogError(f"it is not JSON ({str(error)[:80]})") from error
    while isinstance(value, dict) and len(value) == 1 and isinstance(next(iter(value.values())), dict | list):
        value = next(iter(value.values()))
    if _is_records(value):
        return columns_of(value, room, content)
    inner = [v for v in value.values() if _is_records(v)] if isinstance(value, dict) else []
    if len(inner) == 1:  # beside what is said about the recording
        return columns_of(inner[0], room, content)
    if not isinstance(value, dict):
        raise LogError("its JSON is neither a list of records nor an object with a list per quantity")
    for name, entry in _flat(value):
        if isinstance(entry, list) and entry:
            _add_list(name, entry, content)
        elif isinstance(entry, int | float):
            content.columns[name] = np.array([float(entry)])
    return content


def _is_records(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(record, dict) for record in value)


def _lines(body: bytes) -> Iterator[dict[str, Any]]:
    """The records of JSON lines; a last line that was cut short is left out by the caller's count of it."""
    lines = [line for line in body.split(b"\n") if line.strip()]
    for k, line in enumerate(lines):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            if k == len(lines) - 1 and k:
                return  # cut short
            raise LogError(f"line {k + 1} is not JSON ({str(error)[:80]})") from error
        if not isinstance(record, dict):
            raise LogError(f"line {k + 1} is not a record in braces")
        yield record


def _flat(record: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Values of a record by their path, as 'header.stamp.sec'; of a list of records as 'motor_state.q[3]'."""
    if depth > DEPTH:
        raise LogError(f"'{prefix[:60]}' is more than {DEPTH} levels deep")
    for key, value in record.items():
        name = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(value, dict):
            yield from _flat(value, name, depth + 1)
        elif _is_records(value):
            for k, entry in enumerate(value):
                yield from ((f"{inner}[{k}]", x) for inner, x in _flat(entry, name, depth + 1))
        else:
            yield name, value


def columns_of(records: Iterable[Mapping[str, Any]], room: int, content: Content) -> Content:
    """Columns of records that have the same fields; a list of numbers becomes the row of an array."""
    numbers: dict[str, array[float]] = {}
    widths: dict[str, int | None] = {}
    texts: dict[str, list[str]] = {}
    count = cells = 0
    for k, record in enumerate(records):
        count += 1
        for name, value in _flat(record):
            listed = isinstance(value, list)
            entries = value if listed else [value]
            if all(isinstance(x, str) for x in entries) and entries:
                if listed and name.rpartition(".")[2].lower() in LABELS:
                    content.labels = content.labels or tuple(printable(x) for x in entries[:COLUMNS])
                    if k and list(content.labels) != entries:
                        raise LogError(f"record {k + 1} lists other names than the first; keep messages with one set of joints")
                elif not listed and (name in texts or is_key(name) or ":" in value):
                    cells += 1 if name in texts else k + 1
                    check_room(64 * cells, room, f"{k + 1} records")
                    texts.setdefault(name, [""] * k).append(value)
                continue
            if not all(x is None or isinstance(x, int | float) for x in entries):
                continue
            width = widths.setdefault(name, len(entries) if listed else None)
            if (len(entries) if listed else None) != width:
                raise LogError(
                    f"'{printable(name, 60)}' of record {k + 1} has {len(entries)} numbers; the first has {width or 1}"
                )
            column = numbers.setdefault(name, array("d"))
            missing = (width or 1) * k - len(column)  # records without this field
            cells += missing + len(entries)
            check_room(8 * cells, room, f"{k + 1} records")
            column.extend([np.nan] * missing)
            column.extend([np.nan if x is None else float(x) for x in entries])
        if len(numbers) > COLUMNS:
            raise LogError(f"its records have more than {COLUMNS} fields")
    if not count:
        raise LogError("there are no records in it")
    for name, column in numbers.items():
        width = widths[name]
        column.extend([np.nan] * ((width or 1) * count - len(column)))
        whole = np.frombuffer(column)
        if width != 0:
            content.columns[name] = whole if width is None else whole.reshape(count, width)
    for name, cells_ in texts.items():
        _add_texts(name, cells_ + [""] * (count - len(cells_)), content)
    return content


def _add_list(name: str, entry: list[Any], content: Content) -> None:
    """A list per quantity: numbers, rows of numbers, names, or times."""
    if all(isinstance(x, str) for x in entry):
        if name.rpartition(".")[2].lower() in LABELS:
            content.labels = tuple(printable(x) for x in entry[:COLUMNS])
        else:
            _add_texts(name, entry, content)
        return
    try:
        content.columns[name] = np.array([[np.nan] if x is None else x for x in entry], dtype=np.float64)
    except (TypeError, ValueError):
        content.notes.append(f"'{printable(name, 60)}' left out: it is no list of numbers, or its rows are not equally long")


def _add_texts(name: str, cells: list[str], content: Content) -> None:
    from dynident.signals.cells import clock_of  # noqa: PLC0415  (few files have such a column)

    times = clock_of(list(cells)) if ":" in cells[0] else None
    words = texts_of(cells) if is_key(name) else None
    if times is not None:
        content.columns[name], content.units[name] = times, "ns"
    elif words is not None:
        content.texts[name] = words


# ---------------------------------------------------------------------- ros2 topic echo
_FIELD = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z_]\w*):(?:\s+(?P<value>.*))?")


def read_echo(body: bytes, room: int, content: Content) -> Content:
    """Read what `ros2 topic echo` prints: messages in YAML, '---' between them; only the plain kinds that it writes."""
    content.notes.append("messages as 'ros2 topic echo' prints them")
    return columns_of(_messages(body.decode()), room, content)


def _messages(text: str) -> Iterator[dict[str, Any]]:
    parts = re.split(r"^---\s*$", text, flags=re.M)
    for k, part in enumerate(parts):
        record = _message(part)
        if k and k == len(parts) - 1:  # a recording that was stopped ends within a message, or behind the last mark
            return
        if record:
            yield record


def _message(text: str) -> dict[str, Any]:
    """One message: its fields by path, lists of numbers and texts."""
    record: dict[str, Any] = {}
    path: list[tuple[int, str]] = []
    for line in text.split("\n"):
        item = line.lstrip(" ")
        if item.startswith("- ") and path:
            name = ".".join(key for _, key in path)
            record.setdefault(name, [])
            if isinstance(record[name], list):
                record[name].append(_scalar(item[2:]))
            continue
        match = _FIELD.fullmatch(line.rstrip())
        if not match:
            continue
        indent = len(match["indent"])
        path = [(i, key) for i, key in path if i < indent] + [(indent, match["key"])]
        name, value = ".".join(key for _, key in path), match["value"]
        if value is not None and value.startswith("["):
            record[name] = [_scalar(x) for x in value.strip("[]").split(",") if x.strip()]
        elif value:
            record[name] = _scalar(value)
    return record


def _scalar(text: str) -> Any:
    text = text.strip().strip("'\"")
    plain = text.replace(".nan", "nan").replace(".inf", "inf")
    if re.fullmatch(r"[+-]?\d{1,18}", plain):
        return int(plain)
    return float(plain) if NUMBER.fullmatch(plain) and "," not in plain else text
