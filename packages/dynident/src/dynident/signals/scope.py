"""TwinCAT Scope exports: a block of lines per signal above pairs of columns, time in ms and value.

The lines of the block are "Name, ActPos1, Name, ActPos2, ...", "SampleTime[ms], 2, SampleTime[ms], 2, ..." and so on; the rows
below are "0, 0.31, 0, -1.2, ...".
"""

from __future__ import annotations

from dynident.errors import LogError
from dynident.signals.rows import DELIMITERS, NUMBER, cells_of
from dynident.signals.tables import COLUMNS


def plain_scope(body: bytes, notes: list[str]) -> bytes:
    """Return a scope export as plain delimited text with one header, anything else as it is."""
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
