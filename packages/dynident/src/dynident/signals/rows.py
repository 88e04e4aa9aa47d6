"""Delimited text to columns: its encoding and comments, the header and the units below it, the numbers, both ends.

Understood is: a header or none, a header behind '#', 'sep=;', a row of units, quotes, decimal commas, cells with lists, dates
and times of day, `ros2 topic echo --csv`, lines above the header, a last row that was cut short. pyarrow parses; without it
cells.py does.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from typing import Any

import numpy as np

from dynident.errors import LogError
from dynident.signals.tables import COLUMNS, Content, is_key, own_metadata, texts_of

DELIMITERS = ("\t", ";", ",", "|")
NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.I | re.ASCII)
_CASES = (str.lower, str.upper, str.title)
MISSING = ("", "-", "--", "#N/A", "NaN", *(case(x) for x in ("nan", "na", "n/a", "null", "none") for case in _CASES))
#: Lines in which the header is looked for.
PREAMBLE = 200
#: Bytes that a text does not have.
_CONTROL = bytes(set(range(32)) - {*b"\t\n\v\f\r"})


def read_text(data: bytes, room: int) -> Content:
    """Read delimited text; `room` bounds the memory of the numbers (bytes)."""
    content = Content({})
    body = plain_text(data, room, content.notes)
    start = first_line(body)
    content.metadata = own_metadata(start)
    separator = re.match(r'"?sep=(.)"?\s*$', start, re.I)
    if separator:  # Excel's way to tell the separator
        body = body[len(start) + 1 :]
    comment, body, whole = without_comments(body)
    body = without_preamble(body, content.notes)
    first = first_line(body)
    if not first:
        raise LogError("there are no rows in it")
    if first.strip() in ("---", "header:"):
        from dynident.signals.records import read_echo  # noqa: PLC0415  (it stands on this file)

        return read_echo(body, room, content)
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
        from dynident.signals.cells import parse_plainly  # noqa: PLC0415  (it stands on this file)

        columns = parse_plainly(body, names, delimiter, comma, room)
    columns.pop("", None)
    _interpret(columns, content)
    if echo:
        from dynident.signals.cells import name_echo  # noqa: PLC0415  (it stands on this file)

        name_echo(columns, content)
    return content


def _decimal_comma(body: bytes, delimiter: str) -> bool:
    """Whether numbers have a decimal comma anywhere; a file that has both is refused."""
    quoted = delimiter == ","
    comma = re.search(rb'"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*"' if quoted else rb"\d,\d|[^\w,],\d", body)
    if comma is None or b"[" in body:
        return False
    if re.search(rb"(?<![\d.:])\d+\.\d+(?![\d.:])", body):  # dates and times of day have points too
        row = body.count(b"\n", 0, comma.start()) + 1
        raise LogError(f"data row {row} has a decimal comma and others a decimal point; write all numbers in one way")
    return True


# ---------------------------------------------------------------------- the rows
def plain_text(data: bytes, room: int, notes: list[str]) -> bytes:
    """The text as UTF-8 with plain line ends, after checking that it is one and has not too many lines.

    Excel's "Unicode text" is UTF-16 with its mark; text that is neither, and has letters only, is Windows-1252.
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
        notes.append("letters read as Windows-1252, since they are not UTF-8")
    lines = data.count(b"\n")
    if lines * 32 > room:
        raise LogError(f"its {lines} lines need more than the {room >> 20} MB that a file of this size may take")
    body = data.removeprefix(b"\xef\xbb\xbf")
    return body.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in body else body


def without_preamble(body: bytes, notes: list[str]) -> bytes:
    """Take out what recorders write above the header: lines that have fewer cells than the rows further down.

    LabVIEW ends two headers of its own by a mark, and adds a column for comments that the rows need not have.
    """
    if body.startswith(b"LabVIEW Measurement"):
        notes.append("a LabVIEW measurement file")
        body = body[: 64 * COLUMNS].rpartition(b"***End_of_Header***")[2].partition(b"\n")[2] + body[64 * COLUMNS :]
        return body.replace(b"\tComment\n", b"\n", 1)
    if body.startswith(b"Name"):
        from dynident.signals.scope import plain_scope  # noqa: PLC0415  (it stands on this file)

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
    """Take out a row of units below the header; return what remains, and the units by column."""
    row = first_line(body)
    cells = cells_of(row, delimiter) if row else []
    if len(cells) != len(names) or not any(cells) or any(NUMBER.fullmatch(c) for c in cells):
        return body, {}
    from dynident.signals.units import is_unit  # noqa: PLC0415  (few files have such a row)

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
    """Names of columns without a header of their own: those of the last comment if it has as many, else 1, 2, ..."""
    for delimiter in (",", ";", "\t", None):
        names = [c.strip().strip('"').strip() for c in comment.split(delimiter)]
        if len(names) == width and not all(NUMBER.fullmatch(n) for n in names) and len(set(names)) == width:
            notes.append("the header stands behind '#'")
            return names
    return [str(k + 1) for k in range(width)]


def even_ends(body: bytes, names: list[str], delimiter: str, whole: bool, notes: list[str]) -> tuple[bytes, list[str]]:
    """Allow a delimiter at the end of all rows, and take away a last row that was cut short."""
    first = cells_of(first_line(body), delimiter)
    if len(first) == len(names) + 1 and not first[-1]:
        names = [*names, ""]
    body = body.rstrip(b"\n")
    start = body.rfind(b"\n") + 1
    last = cells_of(body[start:].decode(), delimiter)
    short = len(last) < len(names)
    broken = not whole and len(last) == len(names) and _cut_number(last[-1]) and all(not _cut_number(c) for c in last[:-1])
    if start and (short or broken):
        notes.append("the last row is cut short and was left out")
        body = body[: start - 1]
    return body + b"\n", names


def _cut_number(cell: str) -> bool:
    """Whether a cell is the beginning of a number only: '-', '1e', '1e-', or of a list."""
    return bool(re.fullmatch(r"[+-]|[+-]?(\d+[.,]?\d*|[.,]\d+)[eE][+-]?|\[[^\]]*", cell))


# ---------------------------------------------------------------------- the numbers
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


def check_texts(cells: int, room: int) -> None:
    """Refuse texts that would take more memory than the file is allowed to."""
    if cells * 64 > room:
        raise LogError(
            f"it has {cells} cells with text, which would take more than the {room >> 20} MB for a file of this size"
        )


def _interpret(columns: dict[str, Any], content: Content) -> None:
    """Turn lists in cells into arrays and names; leave texts out; refuse numbers that are none."""
    texts = []
    for name, cells in columns.items():
        if not isinstance(cells, list):
            content.columns[name] = cells
            continue
        known = [c for c in cells if c is not None]
        if known and re.match(r"\s*(array\()?['\"]?\w?['\"]?,?\s*[\[(]", known[0]):
            from dynident.signals.cells import read_lists  # noqa: PLC0415  (it stands on this file)

            read_lists(name, cells, content)
            continue
        if known and (":" in known[0] or known[0].rstrip().endswith(("sec", "min", "hr"))):
            from dynident.signals.cells import clock_of  # noqa: PLC0415  (it stands on this file)

            times = clock_of(cells)
            if times is not None:
                content.columns[name], content.units[name] = times, "ns"
                continue
        numbers = sum(1 for c in known if NUMBER.fullmatch(c.strip()))
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
        content.notes.append(f"text columns left out: {', '.join(texts[:8])}{' ...' if len(texts) > 8 else ''}")


def _is_echo(cells: list[str]) -> bool:
    """Whether a first line is a JointState without a header: seconds, nanoseconds, frame, n names, then 3 n numbers."""
    if len(cells) < 7 or not (cells[0].isdigit() and cells[1].isdigit()):
        return False
    numbers = [bool(NUMBER.fullmatch(c)) for c in cells]
    texts = numbers.index(True, 2) - 2 if any(numbers[2:]) else 0
    return texts >= 2 and not any(numbers[3 : 2 + texts]) and all(numbers[2 + texts :])
