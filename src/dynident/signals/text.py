"""Delimited text to columns: CSV, TSV and blanks, as spreadsheets, loggers, NumPy and ROS write them.

What is understood: a header or none, a header behind '#', 'sep=;', a row of units, quotes, decimal commas, cells with
lists, ISO dates, `ros2 topic echo --csv`, a last row that was cut short. pyarrow parses; a small reader stands in for it.
"""

from __future__ import annotations

import csv
import io
import json
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dynident.errors import LogError
from dynident.signals.units import is_unit

COLUMNS = 10_000  #: a file with more is refused
_CASES = (str.lower, str.upper, str.title)
_MISSING = ("", "-", "--", "#N/A", "NaN", *(case(x) for x in ("nan", "na", "n/a", "null", "none") for case in _CASES))
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.I | re.ASCII)


@dataclass
class Content:
    """Columns of a file by name, with what stands beside them."""

    columns: dict[str, Any]
    metadata: Mapping[str, Any] | None = None
    units: dict[str, str] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)


def printable(text: str, longest: int = 200) -> str:
    """Text from a file without control characters and direction marks, which would reach a terminal or a page raw."""
    shown = "".join(c if c.isprintable() else "?" for c in text[:longest])
    return shown if len(text) <= longest else shown + "..."


def own_metadata(line: str) -> Mapping[str, Any] | None:
    """The metadata of a file that dynident wrote, None for others."""
    if '"format": "dynident-log"' not in line:
        return None
    try:
        content = json.loads(line.lstrip("# "))
    except (ValueError, RecursionError) as error:
        raise LogError(f"the metadata line is damaged ({str(error)[:80]}); write the log again") from error
    return content if isinstance(content, dict) else None


def read_text(data: bytes, room: int) -> Content:
    """Read delimited text; `room` bounds the memory of the numbers (bytes)."""
    body = _checked_text(data, room)
    start = _line(body)
    content = Content({}, own_metadata(start))
    separator = re.match(r'"?sep=(.)"?\s*$', start, re.I)
    if separator:  # Excel's way to tell the separator
        body = body[len(start) + 1 :]
    comment, body, whole = _without_comments(body)
    first = _line(body)
    if not first:
        raise LogError("there are no rows in it")
    delimiter = separator[1] if separator else next((d for d in ("\t", ";", ",", "|") if d in first), None)
    if len(first) > 64 * COLUMNS:
        raise LogError(f"its first row has {len(first)} characters; at most {64 * COLUMNS} are read")
    if delimiter is None:
        body = b"\n".join(b" ".join(line.split()) for line in io.BytesIO(body))
        delimiter, first = " ", _line(body)
    names = _header(first, delimiter)
    echo = _is_echo(names)
    if echo:
        names = [str(k + 1) for k in range(len(names))]
        content.notes.append("text without a header, as 'ros2 topic echo --csv' writes a JointState")
    elif all(_NUMBER.fullmatch(c) for c in names):
        names = _header_behind_comment(comment, len(names), content.notes)
    else:
        body = _without_units(body[len(first.encode()) + 1 :].lstrip(b"\n"), names, delimiter, content)
    if not body.strip():
        raise LogError(f"it has a header ({', '.join(names[:6])} ...) but no rows")
    _check_names(names)
    cells_needed = (body.count(delimiter.encode()) + body.count(b"\n") + 1) * 8
    if cells_needed > room:
        raise LogError(f"its {cells_needed // 8} cells need more than the {room >> 20} MB that a file of this size may take")
    body, names = _even_ends(body, names, delimiter, whole, content.notes)
    comma = _decimal_comma(body, delimiter)
    try:
        columns = _parse(body, names, delimiter, comma, room)
    except ImportError:
        columns = _parse_plainly(body, names, delimiter, comma, room)
    columns.pop("", None)
    _interpret(columns, content)
    if echo:
        _name_echo(columns, content)
    return content


# ---------------------------------------------------------------------- rows around the numbers
def _checked_text(data: bytes, room: int) -> bytes:
    """The text after checking that it is one and has not too many lines, with plain line ends."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LogError(f"byte {error.start} is not UTF-8 text; is it really a CSV file?") from error
    lines = data.count(b"\n")
    if lines * 32 > room:
        raise LogError(f"its {lines} lines need more than the {room >> 20} MB that a file of this size may take")
    body = data.removeprefix(b"\xef\xbb\xbf")
    return body.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in body else body


def _without_units(body: bytes, names: list[str], delimiter: str, content: Content) -> bytes:
    """Take out a row of units below the header, and keep them."""
    row = _line(body)
    cells = _header(row, delimiter) if row else []
    if len(cells) != len(names) or not any(cells) or not all(not c or c == "-" or is_unit(c) for c in cells):
        return body
    content.units = {name: cell.strip("[]()") for name, cell in zip(names, cells, strict=True) if cell not in ("", "-")}
    content.notes.append("a row of units stands below the header")
    return body[len(row.encode()) + 1 :]


def _line(body: bytes) -> str:
    """The first line."""
    end = body.find(b"\n")
    return body[: len(body) if end < 0 else end].decode()


def _without_comments(body: bytes) -> tuple[str, bytes, bool]:
    """Take out blank lines and '#' comments; return the last comment before the first row, and whether the end is whole."""
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


def _header(line: str, delimiter: str) -> list[str]:
    """The cells of one line."""
    if line.count(delimiter) > COLUMNS:
        raise LogError(f"it has {line.count(delimiter) + 1} columns; at most {COLUMNS} are read")
    try:
        cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error as error:
        raise LogError(f"the line {line[:40]!r} ... cannot be split into cells ({error})") from error
    return [c.strip().strip('"').strip() for c in cells]


def _header_behind_comment(comment: str, width: int, notes: list[str]) -> list[str]:
    """Names of columns without a header of their own: those of the last comment if it has as many, else 1, 2, ..."""
    for delimiter in (",", ";", "\t", None):
        names = [c.strip().strip('"').strip() for c in comment.split(delimiter)]
        if len(names) == width and not all(_NUMBER.fullmatch(n) for n in names) and len(set(names)) == width:
            notes.append("the header stands behind '#'")
            return names
    return [str(k + 1) for k in range(width)]


def _check_names(names: list[str]) -> None:
    repeated = sorted(n for n, count in Counter(names).items() if count > 1 and n)
    if repeated:
        raise LogError(f"column names {repeated[:8]} are repeated; every column needs its own name")


def _even_ends(body: bytes, names: list[str], delimiter: str, whole: bool, notes: list[str]) -> tuple[bytes, list[str]]:
    """Allow a delimiter at the end of all rows, and take away a last row that was cut short."""
    first = _header(_line(body), delimiter)
    if len(first) == len(names) + 1 and not first[-1]:
        names = [*names, ""]
    body = body.rstrip(b"\n")
    start = body.rfind(b"\n") + 1
    last = _header(body[start:].decode(), delimiter)
    short = len(last) < len(names)
    broken = not whole and len(last) == len(names) and _cut_number(last[-1]) and all(not _cut_number(c) for c in last[:-1])
    if start and (short or broken):
        notes.append("the last row is cut short and was left out")
        body = body[: start - 1]
    return body + b"\n", names


def _cut_number(cell: str) -> bool:
    """Whether a cell is the beginning of a number only: '-', '1e', '1e-', or of a list."""
    return bool(re.fullmatch(r"[+-]|[+-]?(\d+[.,]?\d*|[.,]\d+)[eE][+-]?|\[[^\]]*", cell))


def _decimal_comma(body: bytes, delimiter: str) -> bool:
    """Whether numbers have a decimal comma anywhere; a file that has both is refused."""
    quoted = delimiter == ","
    comma = re.search(rb'"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*"' if quoted else rb"\d,\d|[^\w,],\d", body)
    if comma is None or b"[" in body:
        return False
    if re.search(rb"\d\.\d", body):
        row = body.count(b"\n", 0, comma.start()) + 1
        raise LogError(f"data row {row} has a decimal comma and others a decimal point; write all numbers in one way")
    return True


# ---------------------------------------------------------------------- numbers
def _parse(body: bytes, names: list[str], delimiter: str, comma: bool, room: int) -> dict[str, Any]:
    """Columns by pyarrow: float64, int64, booleans and dates as arrays, everything else as lists of text."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import csv as arrow  # noqa: PLC0415

    def refuse(row: Any) -> str:
        place = "" if row.number is None else f" {row.number}"
        wrong.append(
            f"data row{place} ({row.text[:40]!r}) has {row.actual_columns} cells but there are {row.expected_columns} columns; "
            "is it cut short?"
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
                null_values=list(_MISSING), strings_can_be_null=True, decimal_point="," if comma else "."
            ),
        )
    except pa.ArrowInvalid as error:
        raise LogError(wrong[0] if wrong else str(error).splitlines()[0][:200]) from error
    columns: dict[str, Any] = {}
    _check_texts(sum(pa.types.is_string(kind) for kind in table.schema.types) * table.num_rows, room)
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        if not column.null_count and column.num_chunks and (pa.types.is_int64(kind) or pa.types.is_float64(kind)):
            # pyarrow's own to_numpy imports pandas where it is installed, for nothing here.
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


def _check_texts(cells: int, room: int) -> None:
    if cells * 64 > room:
        raise LogError(
            f"it has {cells} cells with text, which would take more than the {room >> 20} MB for a file of this size"
        )


def _parse_plainly(body: bytes, names: list[str], delimiter: str, comma: bool, room: int) -> dict[str, Any]:
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
    known = {**dict.fromkeys(_MISSING, np.nan), **dict.fromkeys(("true", "True", "TRUE"), 1.0)}
    known |= dict.fromkeys(("false", "False", "FALSE"), 0.0)
    for i, row in enumerate(rows()):
        if len(row) != len(names):
            raise LogError(f"data row {i + 1} has {len(row)} cells but there are {len(names)} columns; is it cut short?")
        for k, cell in enumerate(row):
            if cell not in known and not _NUMBER.fullmatch(cell):
                texts.add(k)
            numbers[k].append(known[cell] if cell in known else np.nan if k in texts else float(cell))
    columns: dict[str, Any] = {name: np.frombuffer(values) for name, values in zip(names, numbers, strict=True)}
    _check_texts(len(texts) * len(numbers[0]), room)
    for k in texts:
        columns[names[k]] = _dates([None if row[k] in _MISSING else row[k] for row in rows()])
    return columns


def _dates(cells: list[str | None]) -> Any:
    """ISO dates as datetime64, anything else as it is."""
    if all(c and re.fullmatch(r"\d{4}-\d\d-\d\d[T ][\d:.]+Z?", c) for c in cells):
        return np.array([str(c).rstrip("Z").replace(" ", "T") for c in cells], dtype="datetime64[ns]")
    return cells


def _interpret(columns: dict[str, Any], content: Content) -> None:
    """Turn lists in cells into arrays and names; leave texts out; refuse numbers that are none."""
    texts = []
    for name, cells in columns.items():
        if not isinstance(cells, list):
            content.columns[name] = cells
            continue
        known = [c for c in cells if c is not None]
        if known and re.match(r"\s*(array\()?['\"]?\w?['\"]?,?\s*[\[(]", known[0]):
            _lists(name, cells, content)
            continue
        numbers = sum(1 for c in known if _NUMBER.fullmatch(c.strip()))
        if numbers:
            k = next(i for i, c in enumerate(cells) if c is not None and not _NUMBER.fullmatch(c.strip()))
            raise LogError(f"data row {k + 1}, column '{name}' is {cells[k][:40]!r}; numbers are needed (empty means missing)")
        texts.append(name)
    numbered = [columns[name] for name in texts if re.search(r"(^|[./_])name[_.]?\[?\d+\]?$", name)]
    listed = [cells for cells in numbered if len(set(cells)) == 1]
    if listed:  # one column of text per joint name, as rostopic echo -p writes them
        content.labels = tuple(str(cells[0]) for cells in listed)
    if not content.columns:
        cell = next((c for c in columns[texts[0]] if c), "") if texts else ""
        raise LogError(f"there are no numbers in it; data row 1, column '{texts[0] if texts else ''}' is {cell[:40]!r}")
    if texts:
        content.notes.append(f"text columns left out: {', '.join(texts[:8])}{' ...' if len(texts) > 8 else ''}")


def _lists(name: str, cells: list[str | None], content: Content) -> None:
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
        if len(row) != values.shape[1] or not all(_NUMBER.fullmatch(x) for x in row):
            raise LogError(f"data row {k + 1}, column '{name}' is {str(cell)[:40]!r}; {values.shape[1]} numbers are needed")
        values[k] = row
    if values.size:
        content.columns[name] = values


# ---------------------------------------------------------------------- ros2 topic echo --csv
def _is_echo(cells: list[str]) -> bool:
    """Whether a first line is a JointState without a header: seconds, nanoseconds, frame, n names, then 3 n numbers."""
    if len(cells) < 7 or not (cells[0].isdigit() and cells[1].isdigit()):
        return False
    numbers = [bool(_NUMBER.fullmatch(c)) for c in cells]
    texts = numbers.index(True, 2) - 2 if any(numbers[2:]) else 0
    return texts >= 2 and not any(numbers[3 : 2 + texts]) and all(numbers[2 + texts :])


def _name_echo(columns: dict[str, Any], content: Content) -> None:
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
