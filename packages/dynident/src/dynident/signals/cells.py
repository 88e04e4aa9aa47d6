"""Cells of delimited text that are no plain numbers, as lists and times of day, and reading without pyarrow."""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from dynident.errors import LogError
from dynident.signals.rows import MISSING, NUMBER, check_texts
from dynident.signals.tables import Content

DAY = 86_400 * 10**9  # ns
_CLOCK = re.compile(
    r"(?P<date>\d[\d./-]*(?:[a-z]{3}[./-]?\d*)?\d)?[T _]?\s*(?P<h>\d{1,2}):(?P<m>\d\d):(?P<s>\d\d)(?:[.,](?P<f>\d{1,9}))?"
    r"\s*(?P<half>[AP]M)?\s*(?:Z|UTC|[+-]\d\d:?\d\d)?",
    re.I | re.ASCII,
)
_DURATION = re.compile(r"(?P<n>\d{1,18}(?:\.\d*)?)\s*(?P<unit>sec|min|hr)", re.ASCII)  # as MATLAB prints its durations
_NANOSECONDS = {"sec": 10**9, "min": 60 * 10**9, "hr": 3600 * 10**9}


def read_lists(name: str, cells: list[str | None], content: Content) -> None:
    """A column whose cells are lists: numbers become a 2-D array, one unchanging list of names the labels of arrays."""
    missing = sum(c is None for c in cells)
    if missing:
        raise LogError(f"column '{name}' has {missing} empty cells among its lists; remove those rows")
    if re.search(r"[A-Za-z]", re.sub(r"array|nan|inf|\d[eE][+-]?\d|'d',", "", str(cells[0]))):
        names = tuple(a or b for a, b in re.findall(r"'([^']*)'|\"+([^\"]+)\"+", str(cells[0])))
        names = names or tuple(n.strip() for n in str(cells[0]).strip("[]() ").split(","))
        if len(set(cells)) > 1:
            raise LogError(f"column '{name}' lists other names from row to row; split the file by its kinds of messages")
        content.labels = names
        return
    values: Any = None
    for k, cell in enumerate(cells):
        plain = re.sub(r"array\(|'d',|[\[\](),]", " ", str(cell))
        row = plain.split()
        if values is None:
            values = np.empty((len(cells), len(row)))
        if len(row) != values.shape[1] or not all(NUMBER.fullmatch(x) for x in row):
            raise LogError(f"data row {k + 1}, column '{name}' is {str(cell)[:40]!r}; {values.shape[1]} numbers are needed")
        values[k] = row
    if values.size:
        content.columns[name] = values


def name_echo(columns: dict[str, Any], content: Content) -> None:
    """Give the columns of a headerless JointState their names."""
    texts = [values for values in columns.values() if isinstance(values, list)]
    empty = [n for n, v in content.columns.items() if v.dtype.kind == "f" and np.isnan(v).all()]  # a frame without a name
    names = [values[0] for values in texts][-(len(texts) + len(empty) - 1) :]
    data = [v for n, v in list(content.columns.items())[2:] if n not in empty]
    if any(len(set(values)) > 1 for values in texts[len(texts) - len(names) :]):
        raise LogError("the joint names change from row to row; record topics with one set of joints")
    if len(data) != 3 * len(names):
        raise LogError(
            f"a row has {len(names)} joint names and {len(data)} numbers; position, velocity and effort of each are needed"
        )
    seconds, nanoseconds = list(content.columns.values())[:2]
    n = len(names)
    blocks = {role: np.column_stack(data[k * n : (k + 1) * n]) for k, role in enumerate(("position", "velocity", "effort"))}
    content.notes = [n for n in content.notes if not n.startswith("text columns")]
    content.labels = tuple(map(str, names))
    content.columns = {"header.stamp.sec": seconds, "header.stamp.nanosec": nanoseconds, **blocks}


def parse_plainly(body: bytes, names: list[str], delimiter: str, comma: bool, room: int) -> dict[str, Any]:
    """The same without pyarrow: numbers in one sweep if there is nothing else, cell by cell otherwise."""
    if b'"' not in body and b"_" not in body:
        try:
            text = body.replace(b",", b".") if comma else body
            block = np.loadtxt(io.BytesIO(text), delimiter=delimiter, ndmin=2, comments=None)
            if block.shape[1] == len(names):
                return {name: block[:, k] for k, name in enumerate(names)}
        except ValueError:
            pass  # empty cells, text, rows of unequal length: looked at one by one below

    def rows() -> Iterator[list[str]]:
        for row in csv.reader(io.TextIOWrapper(io.BytesIO(body), "utf-8"), delimiter=delimiter, skipinitialspace=True):
            yield [c.strip().replace(",", ".") if comma else c.strip() for c in row]

    numbers, texts = [array("d") for _ in names], set()
    known = {**dict.fromkeys(MISSING, np.nan), **dict.fromkeys(("true", "True", "TRUE"), 1.0)}
    known |= dict.fromkeys(("false", "False", "FALSE"), 0.0)
    for i, row in enumerate(rows()):
        if len(row) != len(names):
            raise LogError(f"data row {i + 1} has {len(row)} cells but there are {len(names)} columns; is it cut short?")
        for k, cell in enumerate(row):
            if cell not in known and not NUMBER.fullmatch(cell):
                texts.add(k)
            numbers[k].append(known[cell] if cell in known else np.nan if k in texts else float(cell))
    columns: dict[str, Any] = {name: np.frombuffer(values) for name, values in zip(names, numbers, strict=True)}
    check_texts(len(texts) * len(numbers[0]), room)
    for k in texts:
        columns[names[k]] = [None if row[k] in MISSING else row[k] for row in rows()]
    return columns


def clock_of(cells: list[str | None]) -> Any:
    """Times of day with or without a date, in ns from the first midnight on (int64), or durations; None for other cells.

    Dates are only compared with the one before, so that their order of day, month and year does not matter.
    """
    if cells and cells[0] and _DURATION.fullmatch(cells[0].strip()):
        passed = [_DURATION.fullmatch(c.strip()) if c else None for c in cells]
        return np.array([round(float(p["n"]) * _NANOSECONDS[p["unit"]]) for p in passed if p]) if all(passed) else None
    found = [_CLOCK.fullmatch(c.strip()) if c else None for c in cells]
    if not all(found):
        return None
    times, dates = np.empty(len(found), dtype=np.int64), []
    for k, match in enumerate(found):
        part = match.groupdict(default="")  # type: ignore[union-attr]
        hour = int(part["h"]) % 12 + 12 * (part["half"].upper() == "PM") if part["half"] else int(part["h"])
        times[k] = ((hour * 60 + int(part["m"])) * 60 + int(part["s"])) * 10**9 + int(part["f"].ljust(9, "0"))
        dates.append(part["date"])
    midnight = [b != a for a, b in pairwise(dates)] if any(dates) else np.diff(times) < -(DAY // 2)
    return times + DAY * np.concatenate([[0], np.cumsum(midnight, dtype=np.int64)])
