"""Text files to columns: delimited text, TwinCAT Scope exports, JSON, JSON lines and output of `ros2 topic echo`.

Delimited text may have a header or none, a header behind '#', 'sep=;', a row of units, quotes, decimal commas, cells with
lists, dates and times of day, `ros2 topic echo --csv`, lines above the header, a truncated last row. Its parser is pyarrow
or, without pyarrow, `parse_plainly`. A scope export is a block of lines per signal ("Name, ActPos1, Name, ActPos2, ...",
"SampleTime[ms], 2, ...") above pairs of columns, time in ms and value. JSON is

    {"t": 0.004, "q": [...], "tau": [...]}     one record per sample (a list of them, or one per line), or
    {"t": [...], "q": [[...], ...], ...}       one list per quantity

Records are added to columns one after the other, so that only the numbers of a line stay in memory.
"""

from __future__ import annotations

import csv
import io
import json
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from dynident.errors import LogError
from dynident.signals.tables import COLUMNS, LABELS, Content, check_room, is_key, is_unit, own_metadata, printable, texts_of

DELIMITERS = ("\t", ";", ",", "|")
NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.I | re.ASCII)
_CASES = (str.lower, str.upper, str.title)
MISSING = ("", "-", "--", "#N/A", "NaN", *(case(x) for x in ("nan", "na", "n/a", "null", "none") for case in _CASES))
#: Lines searched for the header.
PREAMBLE = 200
#: Bytes that do not occur in text.
_CONTROL = bytes(set(range(32)) - {*b"\t\n\v\f\r"})


def read_text(data: bytes, room: int) -> Content:
    """Read delimited text; `room` bounds the memory of the numbers (bytes)."""
    content = Content({})
    body = plain_text(data, room, content.notes)
    start = first_line(body)
    content.metadata = own_metadata(start)
    separator = re.match(r'"?sep=(.)"?\s*$', start, re.I)
    if separator:  # Excel's declaration of the separator
        if not separator[1].isascii() or separator[1] in '"\r\n\0':
            raise LogError(
                f"its first line names {separator[1]!r} as the separator of its cells; use a comma, a semicolon or a tab"
            )
        body = body[len(start) + 1 :]
    comment, body, whole = without_comments(body)
    body = without_preamble(body, content.notes)
    first = first_line(body)
    if not first:
        raise LogError("there are no rows in it")
    if first.strip() in ("---", "header:"):
        content.notes.append("messages as 'ros2 topic echo' prints them")
        return columns_of(_messages(body.decode()), room, content)
    delimiter = separator[1] if separator else next((d for d in DELIMITERS if d in first), None)
    if len(first) > 64 * COLUMNS:
        raise LogError(f"its first row has {len(first)} characters; at most {64 * COLUMNS} are read")
    if delimiter is None:
        body = b"\n".join(b" ".join(line.split()) for line in io.BytesIO(body))
        delimiter, first = " ", first_line(body)
    names = cells_of(first, delimiter)
    echo = _is_echo(names)
    if echo:
        names = [str(k + 1) for k in range(len(names))]
        content.notes.append("text without a header, as 'ros2 topic echo --csv' writes a JointState")
    elif all(NUMBER.fullmatch(c) for c in names):
        names = header_behind_comment(comment, len(names), content.notes)
    else:
        body = body[len(first.encode()) + 1 :].lstrip(b"\n")
        body, names = second_header(body, names, delimiter)
        body, content.units = unit_row(body, names, delimiter, content.notes)
    if not body.strip():
        raise LogError(f"it has a header ({', '.join(names[:6])} ...) but no rows")
    if repeated := sorted(name for name, count in Counter(names).items() if count > 1 and name):
        raise LogError(f"column names {repeated[:8]} are repeated; every column needs its own name")
    cells_needed = (body.count(delimiter.encode()) + body.count(b"\n") + 1) * 8
    if cells_needed > room:
        raise LogError(f"its {cells_needed // 8} cells need more than the {room >> 20} MB that a file of this size may take")
    body, names = even_ends(body, names, delimiter, whole, content.notes)
    comma = _decimal_comma(body, delimiter)
    try:
        columns = _parse(body, names, delimiter, comma, room)
    except ImportError:
        columns = parse_plainly(body, names, delimiter, comma, room)
    columns.pop("", None)
    _interpret(columns, content)
    if echo:
        name_echo(columns, content)
    return content


def _decimal_comma(body: bytes, delimiter: str) -> bool:
    """Whether numbers have a decimal comma; a file with commas and points raises LogError."""
    quoted = delimiter == ","
    comma = re.search(rb'"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*"' if quoted else rb"\d,\d|[^\w,],\d", body)
    if comma is None or b"[" in body:
        return False
    if re.search(rb"(?<![\d.:])\d+\.\d+(?![\d.:])", body):  # dates and times of day have points too
        row = body.count(b"\n", 0, comma.start()) + 1
        raise LogError(f"data row {row} has a decimal comma and others a decimal point; use one format")
    return True


# ---------------------------------------------------------------------- the rows
def plain_text(data: bytes, room: int, notes: list[str]) -> bytes:
    """Return text as UTF-8 with plain line ends; raise LogError for other content or too many lines.

    Excel's "Unicode text" is UTF-16 with a byte order mark; other text without control characters is Windows-1252.
    """
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            data = data.decode("utf-16").encode()
        else:
            data.decode("utf-8")
    except UnicodeDecodeError as error:
        if len(data.translate(None, _CONTROL)) < len(data):
            raise LogError(f"byte {error.start} is not UTF-8 text; is it really a CSV file?") from error
        try:
            data = data.decode("cp1252").encode()
        except UnicodeDecodeError:
            raise LogError(f"byte {error.start} is not UTF-8 text; save it as UTF-8") from error
        notes.append("text decoded as Windows-1252 because it is not UTF-8")
    lines = data.count(b"\n")
    if lines * 32 > room:
        raise LogError(f"its {lines} lines need more than the {room >> 20} MB that a file of this size may take")
    body = data.removeprefix(b"\xef\xbb\xbf")
    return body.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in body else body


def without_preamble(body: bytes, notes: list[str]) -> bytes:
    """Remove the lines of a recorder above the header, which have fewer cells than the rows below.

    LabVIEW writes two headers that end with a mark, and a comment column that rows may omit.
    """
    if body.startswith(b"LabVIEW Measurement"):
        notes.append("a LabVIEW measurement file")
        body = body[: 64 * COLUMNS].rpartition(b"***End_of_Header***")[2].partition(b"\n")[2] + body[64 * COLUMNS :]
        return body.replace(b"\tComment\n", b"\n", 1)
    if body.startswith(b"Name"):
        body = plain_scope(body, notes)
    lines = [line.decode(errors="replace") for line in body[: 64 * COLUMNS].split(b"\n", PREAMBLE)[:-1]]
    delimiter = next((d for d in DELIMITERS if len(lines) > 2 and d in lines[-1]), None)
    if delimiter is None or lines[0].count(delimiter) == lines[-1].count(delimiter):
        return body
    widths = [len(cells_of(line, delimiter)) for line in lines]
    # A row may end in one delimiter more than its header; the last one may be cut short.
    above = next(k for k, width in enumerate(widths) if width >= widths[-2] - 1)
    if above == 0 or widths[-2] < 3 or all(NUMBER.fullmatch(c) for c in cells_of(lines[above], delimiter)):
        return body
    notes.append(f"{above} line{'s' * (above > 1)} above the header left out")
    return body[sum(len(line.encode()) + 1 for line in lines[:above]) :]


def unit_row(body: bytes, names: list[str], delimiter: str, notes: list[str]) -> tuple[bytes, dict[str, str]]:
    """Remove a row of units below the header; return the remaining text and the units by column."""
    row = first_line(body)
    cells = cells_of(row, delimiter) if row else []
    if len(cells) != len(names) or not any(cells) or any(NUMBER.fullmatch(c) for c in cells):
        return body, {}
    if not all(not c or c == "-" or is_unit(c) for c in cells):
        return body, {}
    notes.append("a row of units stands below the header")
    units = {name: cell.strip("[]()") for name, cell in zip(names, cells, strict=True) if cell not in ("", "-")}
    return body[len(row.encode()) + 1 :], units


def second_header(body: bytes, names: list[str], delimiter: str) -> tuple[bytes, list[str]]:
    """Join names that are repeated with the row below: pandas writes quantities above joints."""
    row = first_line(body)
    cells = cells_of(row, delimiter) if row else []
    if len(set(names)) == len(names) or len(cells) != len(names) or any(NUMBER.fullmatch(c) for c in cells):
        return body, names
    return body[len(row.encode()) + 1 :], ["_".join(filter(None, pair)) for pair in zip(names, cells, strict=True)]


def first_line(body: bytes) -> str:
    """The first line."""
    end = body.find(b"\n")
    return body[: len(body) if end < 0 else end].decode()


def without_comments(body: bytes) -> tuple[str, bytes, bool]:
    """Remove blank lines and '#' comments; return the last comment before the first row, and whether the end is complete."""
    whole = body.endswith(b"\n")
    body = body.lstrip(b"\n") if whole else body.lstrip(b"\n") + b"\n"
    comment = b""
    if body.startswith((b"#", b" ", b"\t")) or any(mark in body for mark in (b"\n\n", b"\n#", b"\n ", b"\n\t")):
        rows, before = io.BytesIO(), True
        for line in io.BytesIO(body):
            kept = line.strip()
            if kept.startswith(b"#"):
                comment = kept if before and kept.strip(b"# ") else comment
            elif kept:
                before = False
                rows.write(line)
        body = rows.getvalue()
    return comment.decode().strip("# \t"), body, whole


def cells_of(line: str, delimiter: str) -> list[str]:
    """The cells of one line."""
    if line.count(delimiter) > COLUMNS:
        raise LogError(f"it has {line.count(delimiter) + 1} columns; at most {COLUMNS} are read")
    try:
        cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error as error:
        raise LogError(f"the line {line[:40]!r} ... cannot be split into cells ({error})") from error
    return [c.strip().strip('"').strip() for c in cells]


def header_behind_comment(comment: str, width: int, notes: list[str]) -> list[str]:
    """Column names of a table without a header: from the last comment if its count matches, else 1, 2, ..."""
    for delimiter in (",", ";", "\t", None):
        names = [c.strip().strip('"').strip() for c in comment.split(delimiter)]
        if len(names) == width and not all(NUMBER.fullmatch(n) for n in names) and len(set(names)) == width:
            notes.append("the header stands behind '#'")
            return names
    return [str(k + 1) for k in range(width)]


def even_ends(body: bytes, names: list[str], delimiter: str, whole: bool, notes: list[str]) -> tuple[bytes, list[str]]:
    """Allow a delimiter at the end of all rows, and remove a truncated last row."""
    first = cells_of(first_line(body), delimiter)
    if len(first) == len(names) + 1 and not first[-1]:
        names = [*names, ""]
    body = body.rstrip(b"\n")
    start = body.rfind(b"\n") + 1
    last = cells_of(body[start:].decode(), delimiter)
    short = len(last) < len(names)
    broken = not whole and len(last) == len(names) and _cut_number(last[-1]) and all(not _cut_number(c) for c in last[:-1])
    if start and (short or broken):
        notes.append("the last row is incomplete and ignored")
        body = body[: start - 1]
    return body + b"\n", names


def _cut_number(cell: str) -> bool:
    """Whether a cell is a truncated number ('-', '1e', '1e-') or list."""
    return bool(re.fullmatch(r"[+-]|[+-]?(\d+[.,]?\d*|[.,]\d+)[eE][+-]?|\[[^\]]*", cell))


# ---------------------------------------------------------------------- the numbers
def _parse(body: bytes, names: list[str], delimiter: str, comma: bool, room: int) -> dict[str, Any]:
    """Columns by pyarrow: float64, int64, booleans and dates as arrays, everything else as lists of text."""
    import pyarrow.csv  # noqa: PLC0415 - an extra

    pa, arrow = pyarrow, pyarrow.csv

    def refuse(row: Any) -> str:
        place = "" if row.number is None else f" {row.number}"
        wrong.append(
            f"data row{place} ({row.text[:40]!r}) has {row.actual_columns} cells but there are {row.expected_columns} "
            "columns; correct or remove it"
        )
        return "error"

    wrong: list[str] = []
    block = max(1 << 20, 2 * body.find(b"\n"))  # a row must fit into one
    try:
        table = arrow.read_csv(
            pa.BufferReader(body),
            read_options=arrow.ReadOptions(column_names=names, use_threads=False, block_size=block),
            parse_options=arrow.ParseOptions(delimiter=delimiter, invalid_row_handler=refuse),
            convert_options=arrow.ConvertOptions(
                null_values=list(MISSING), strings_can_be_null=True, decimal_point="," if comma else "."
            ),
        )
    except pa.ArrowInvalid as error:
        raise LogError(wrong[0] if wrong else str(error).splitlines()[0][:200]) from error
    columns: dict[str, Any] = {}
    check_texts(sum(pa.types.is_string(kind) for kind in table.schema.types) * table.num_rows, room)
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        if not column.null_count and column.num_chunks and (pa.types.is_int64(kind) or pa.types.is_float64(kind)):
            # pyarrow's own to_numpy imports pandas where it is installed, which is not needed here.
            columns[name] = np.concatenate([np.from_dlpack(chunk) for chunk in column.chunks])
        elif pa.types.is_integer(kind) and not column.null_count:
            columns[name] = column.to_numpy()
        elif pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
            columns[name] = column.cast(pa.float64()).to_numpy()
        elif pa.types.is_timestamp(kind):
            columns[name] = column.cast(pa.timestamp("ns")).to_numpy()
        else:
            columns[name] = column.cast(pa.string()).to_pylist()
    return columns


def check_texts(cells: int, room: int) -> None:
    """Raise LogError if texts need more memory than is allowed for the file."""
    if cells * 64 > room:
        raise LogError(
            f"it has {cells} cells with text, which would take more than the {room >> 20} MB for a file of this size"
        )


def _interpret(columns: dict[str, Any], content: Content) -> None:
    """Convert lists in cells to arrays and names; omit texts; raise LogError for invalid numbers."""
    texts = []
    for name, cells in columns.items():
        if not isinstance(cells, list):
            content.columns[name] = cells
            continue
        known = [c for c in cells if c is not None]
        if known and re.match(r"\s*(array\()?['\"]?\w?['\"]?,?\s*[\[(]", known[0]):
            read_lists(name, cells, content)
            continue
        if known and (":" in known[0] or known[0].rstrip().endswith(("sec", "min", "hr"))):
            times = clock_of(cells)
            if times is not None:
                content.columns[name], content.units[name] = times, "ns"
                continue
        numbers = sum(1 for c in known if NUMBER.fullmatch(c.strip()))
        if known and numbers == len(known):  # with non-ASCII blanks, such as a non-breaking space
            content.columns[name] = np.array([np.nan if c is None else float(c.strip().replace(",", ".")) for c in cells])
            continue
        if numbers:
            k = next(i for i, c in enumerate(cells) if c is not None and not NUMBER.fullmatch(c.strip()))
            raise LogError(f"data row {k + 1}, column '{name}' is {cells[k][:40]!r}; numbers are needed (empty means missing)")
        texts.append(name)
    numbered = [columns[name] for name in texts if re.search(r"(^|[./_])name[_.]?\[?\d+\]?$", name)]
    listed = [cells for cells in numbered if len(set(cells)) == 1]
    if listed:  # one column of text per joint name, as rostopic echo -p writes them
        content.labels = tuple(str(cells[0]) for cells in listed)
    content.texts |= {name: words for name in texts if is_key(name) and (words := texts_of(columns[name]))}
    if not content.columns:
        cell = next((c for c in columns[texts[0]] if c), "") if texts else ""
        raise LogError(f"there are no numbers in it; data row 1, column '{texts[0] if texts else ''}' is {cell[:40]!r}")
    texts = [name for name in texts if name not in content.texts]
    if texts:
        content.notes.append(f"text columns ignored: {', '.join(texts[:8])}{' ...' if len(texts) > 8 else ''}")


def _is_echo(cells: list[str]) -> bool:
    """Whether a first line is a JointState without a header: seconds, nanoseconds, frame, n names, then 3 n numbers."""
    if len(cells) < 7 or not (cells[0].isdigit() and cells[1].isdigit()):
        return False
    numbers = [bool(NUMBER.fullmatch(c)) for c in cells]
    texts = numbers.index(True, 2) - 2 if any(numbers[2:]) else 0
    return texts >= 2 and not any(numbers[3 : 2 + texts]) and all(numbers[2 + texts :])


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
    """The same without pyarrow: in one call if all cells are numbers, cell by cell otherwise."""
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
            raise LogError(f"data row {i + 1} has {len(row)} cells but there are {len(names)} columns; correct or remove it")
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

    Dates are only compared with the previous one, so that their order of day, month and year does not matter.
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


def plain_scope(body: bytes, notes: list[str]) -> bytes:
    """Return a scope export as plain delimited text with one header; other text unchanged."""
    lines = [line.decode(errors="replace") for line in body[: 64 * COLUMNS].split(b"\n", 100)[:-1]]
    for k, line in enumerate(lines[:-2]):
        delimiter = next((d for d in DELIMITERS if line.startswith(f"Name{d}")), None)
        block = cells_of(line, delimiter) if delimiter else []
        if delimiter and len(block) > 3 and set(block[::2]) - {""} == {"Name"}:
            return _joined(body, lines, k, delimiter, notes)
    return body


def _joined(body: bytes, lines: list[str], start: int, delimiter: str, notes: list[str]) -> bytes:
    """Names and units of the block behind one header; all signals must have one clock."""
    names, units, end = cells_of(lines[start], delimiter)[1::2], list[str](), start
    while end < len(lines) and not all(NUMBER.fullmatch(c) for c in cells_of(lines[end], delimiter) if c):
        cells = cells_of(lines[end], delimiter)
        units = cells[1::2] if cells and cells[0].lower() == "unit" else units
        end += 1
    rows = body.split(b"\n", end)[-1].rstrip().removesuffix(b"EOF").rstrip() + b"\n"
    for row in (rows[: rows.find(b"\n")], rows[rows.rfind(b"\n", 0, -1) + 1 : -1]):
        clocks = {c for c in cells_of(row.decode(errors="replace"), delimiter)[: 2 * len(names) : 2] if c}
        if len(clocks) > 1:
            raise LogError(f"its signals have times of their own ({', '.join(sorted(clocks)[:3])} ms); export one sample time")
    written = [u.strip("()[] ") for u in units] + [""] * len(names)
    titles = [f"{n} [{u}]" if u and u.lower() != "none" else n for n, u in zip(names, written, strict=False)]
    notes.append("a TwinCAT Scope export: pairs of time in ms and value")
    head = delimiter.join(cell for k, title in enumerate(titles) for cell in ("Time [ms]" if k == 0 else "", title))
    return head.encode() + b"\n" + rows


MOST_LEVELS = 16
LARGEST_JSON = 64 << 20  #: largest file (bytes) read as one JSON value, which takes about 20 times the memory


def read_json(data: bytes, room: int) -> Content:
    """Read one JSON value, or one per line."""
    content = Content({})
    body = plain_text(data, room, content.notes)
    start = body.lstrip()[:1]
    first = body.lstrip().split(b"\n", 1)[0]
    if start == b"{" and first.rstrip().endswith(b"}") and body.count(b"\n") > 1:
        content.notes.append("one record per line")
        return columns_of(_lines(body), room, content)
    if len(body) > LARGEST_JSON:
        raise LogError(
            f"it has {len(body) >> 20} MB of JSON; at most {LARGEST_JSON >> 20} MB are read at once, write a record per line"
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
    if len(inner) == 1:  # the other entries describe the recording
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
    """The records of JSON lines; a truncated last line is omitted."""
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
    """Values of a record by path, such as 'header.stamp.sec', or 'motor_state.q[3]' for a list of records."""
    if depth > MOST_LEVELS:
        raise LogError(f"'{prefix[:60]}' is more than {MOST_LEVELS} levels deep")
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
        content.notes.append(f"'{printable(name, 60)}' ignored: it is not a list of numbers, or its rows differ in length")


def _add_texts(name: str, cells: list[str], content: Content) -> None:

    times = clock_of(list(cells)) if ":" in cells[0] else None
    words = texts_of(cells) if is_key(name) else None
    if times is not None:
        content.columns[name], content.units[name] = times, "ns"
    elif words is not None:
        content.texts[name] = words


# ---------------------------------------------------------------------- ros2 topic echo
_FIELD = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z_]\w*):(?:\s+(?P<value>.*))?")


def _messages(text: str) -> Iterator[dict[str, Any]]:
    parts = re.split(r"^---\s*$", text, flags=re.M)
    for k, part in enumerate(parts):
        record = _message(part)
        if k and k == len(parts) - 1:  # a stopped recording ends within a message, or behind the last mark
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
