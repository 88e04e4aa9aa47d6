"""The rows of delimited text: encoding, comments, lines before the header, the header itself, units below it, both ends."""

from __future__ import annotations

import csv
import io
import re

from dynident.errors import LogError

COLUMNS = 10_000  #: a file with more is refused
DELIMITERS = ("\t", ";", ",", "|")
NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.I | re.ASCII)
#: Lines in which the header is looked for.
PREAMBLE = 200
#: Bytes that a text does not have.
_CONTROL = bytes(set(range(32)) - {*b"\t\n\v\f\r"})


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
