"""Files to tables of named columns, delimited text first of all; what the columns mean is decided in reading.py.

Every reader is bounded: what a file may become in memory is ``max(200 MB, 20 times its size)``, it may have 10 000 columns
and 16 levels, and it is refused with a sentence before that memory is taken.

Of text is understood: a header or none, a header behind '#', 'sep=;', a row of units, quotes, decimal commas, cells with
lists, dates and times of day, `ros2 topic echo --csv`, lines above the header, a last row that was cut short. pyarrow parses;
without it cells.py does.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynident.errors import LogError, MissingExtraError
from dynident.files import read_regular
from dynident.signals.names import recognise
from dynident.signals.rows import (
    COLUMNS,
    DELIMITERS,
    NUMBER,
    cells_of,
    even_ends,
    first_line,
    header_behind_comment,
    plain_text,
    second_header,
    unit_row,
    without_comments,
    without_preamble,
)

#: Bytes that any file may become in memory, how many times its own size, and the size up to which a file is read at once.
ROOM, GROWTH, LARGEST = 200 << 20, 20, 2 << 30
#: Endings of files with text, and of those that formats.py reads.
TEXT = (".csv", ".tsv", ".txt", ".dat", ".log", ".lvm", ".yaml", ".yml")
#: How the note about other topics of a bag begins.
NOT_TAKEN = "topics not taken:"
#: What to do with files of other programs.
ELSEWHERE = {
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "save the sheet as CSV"),
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), "a pickle can run code and is never loaded: save CSV, npz or Parquet"),
    **dict.fromkeys((".feather", ".arrow"), "read it with pandas and give the DataFrame to Log.read"),
    **dict.fromkeys((".npy",), "save its columns by name, np.savez('run.npz', t=..., q=..., tau=...)"),
}
FORMATS = (*(f"{ending}.gz" for ending in TEXT), ".npz", ".mat", ".parquet", ".h5", ".hdf5", ".json", ".jsonl")
#: Arrays of names, as npz, MATLAB and HDF5 files hold them.
LABELS = ("name", "names", "joint_names", "joints", "jointnames", "joint_name", "dof_names", "actuator_names")
#: Columns that say what a row is of: the joint, the quantity, the run.
JOINT_KEYS = (
    *("joint", "joint_name", "jointname", "joint_id", "joint_index", "joint_nr", "axis", "axis_name", "axis_id", "axis_nr"),
    *("motor", "motor_name", "motor_id", "actuator", "actuator_name", "servo", "servo_id", "dxl_id", "can_id", "name", "id"),
)
VARIABLE_KEYS = (
    *("variable", "quantity", "signal", "signal_name", "measurement", "metric", "field", "channel", "key", "type"),
    *("parameter", "item", "name", "topic"),
)
EPISODES = ("episode_index", "episode", "episode_id", "trajectory_id", "trial", "trial_id", "run", "run_id", "run_index")
_CASES = (str.lower, str.upper, str.title)
MISSING = ("", "-", "--", "#N/A", "NaN", *(case(x) for x in ("nan", "na", "n/a", "null", "none") for case in _CASES))


@dataclass(frozen=True)
class Words:
    """A column of texts: for every row (N,) which of the few that it has."""

    rows: Any
    known: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Named columns of one file.

    Columns are float64 (N,) or (N, k), int64 for long stamps; `scalars` single numbers beside them (gains, rates); `metadata`
    that of a file that dynident wrote; `units` and `labels` what the file says of its columns; `texts` columns of text that may
    say what a row is of; `notes` what was understood.
    """

    label: str
    columns: Mapping[str, Any]
    scalars: Mapping[str, float] = field(default_factory=dict)
    metadata: Mapping[str, Any] | None = None
    sha256: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    texts: Mapping[str, Words] = field(default_factory=dict)


@dataclass
class Content:
    """Columns of a file by name, with what stands beside them."""

    columns: dict[str, Any]
    metadata: Mapping[str, Any] | None = None
    units: dict[str, str] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    texts: dict[str, Words] = field(default_factory=dict)


def plain_key(column: str) -> str:
    """The name of a column as the lists of keys write it."""
    return column.lower().replace(" ", "_").replace("-", "_").strip("_")


def is_key(column: str) -> bool:
    """Whether a column of texts with this name may say what a row is of."""
    return plain_key(column) in (*JOINT_KEYS, *VARIABLE_KEYS, *EPISODES)


def texts_of(cells: Iterable[Any]) -> Words | None:
    """Number the different texts of a column in the order they come; None where there are too many for joints or runs."""
    known: dict[str, int] = {}
    rows = [known.setdefault("" if c is None else str(c).strip(), len(known)) for c in cells]
    return Words(np.array(rows, dtype=np.int64), tuple(map(printable, known))) if len(known) <= COLUMNS else None


def read_table(path: str | os.PathLike[str], topics: list[str] | None = None) -> Table:
    """Read one file or bag into a `Table`, choosing the reader by the file name's ending.

    Parameters
    ----------
    path : path-like
        File, or folder of a bag.
    topics : list of str, optional
        Topics of a bag, the first of which gives the clock; its only topic of JointState messages when omitted.

    Returns
    -------
    Table
        Columns by name as the file has them, units not yet converted.
    """
    file = Path(path)
    suffix = _suffix(file)
    if is_bag(file):
        from dynident.signals.bags import read_bag  # noqa: PLC0415  (its libraries are an extra)

        bag: Table = guarded(file, suffix or "a bag", lambda: read_bag(file, topics))
        return bag
    if not suffix and not file.exists():
        raise LogError(f"cannot read '{file}': it does not exist; give a file, a bag or the folder of a campaign")
    if suffix not in (*TEXT, *FORMATS):
        known = ", ".join((*TEXT, ".gz of them", *(f for f in FORMATS if not f.endswith(".gz")), ".mcap", ".db3", ".bag"))
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
    read: Callable[[bytes, int], Content] = read_text
    if suffix not in TEXT:
        from dynident.signals.formats import READERS  # noqa: PLC0415  (it stands on this file)

        read = READERS[suffix]
    content: Content = guarded(file, suffix, lambda: read(data, room))
    return replace(table_of(file.name, content, topics), sha256=hashlib.sha256(data).hexdigest())


def is_bag(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a ROS bag or MCAP file, by its ending."""
    return Path(path).is_dir() or _suffix(Path(path)) in (".mcap", ".db3", ".bag")


def guarded(file: Path, suffix: str, read: Callable[[], Any]) -> Any:
    """Read; turn whatever a damaged file makes a reader raise into a sentence."""
    try:
        return read()
    except MissingExtraError:
        raise
    except LogError as error:
        raise LogError(printable(f"cannot read '{file}': {error}", 2000)) from error
    except Exception as error:  # readers of damaged files raise almost anything: struct, zlib, Index, Key, Memory ...
        raise LogError(
            printable(f"cannot read '{file}': the file is damaged or not {suffix} ({short(error)})", 2000)
        ) from error


def table_of(label: str, content: Content, topics: list[str] | None = None) -> Table:
    """Keep the numbers; a topic keeps the columns of its path only (PlotJuggler names columns by topic)."""
    columns: dict[str, Any] = {}
    scalars: dict[str, float] = {}
    units, labels, texts = dict(content.units), content.labels, dict(content.texts)
    if len(content.columns) > COLUMNS:
        raise LogError(f"'{label}' has {len(content.columns)} columns; at most {COLUMNS} are read")
    for given, raw in content.columns.items():
        name, values = printable(given), np.asarray(raw)
        if given in units and name != given:
            units[name] = units[given]
        if values.dtype.kind in "Mm":  # datetime64, timedelta64
            values = values.astype(f"{'datetime' if values.dtype.kind == 'M' else 'timedelta'}64[ns]").astype(np.int64)
            units[name] = "ns"
        if values.dtype.kind in "US" and values.size > 1 and name.rpartition(".")[2].lower() in LABELS:
            labels = labels or tuple(printable(str(v).strip()) for v in values.ravel()[:COLUMNS])
        if values.dtype.kind in "US" and values.ndim == 1 and is_key(name) and (words := texts_of(values.tolist())):
            texts[name] = words
        values = _real(label, name, values)
        if values.dtype.kind not in "biuf":
            continue
        if not (values.dtype.kind in "iu" and values.ndim == 1 and values.size and _beyond_float(values)):
            values = values.astype(np.float64)
        if 1 in values.shape and values.ndim > 1 and values.size > 1:
            values = np.squeeze(values)  # (N, 1), or (N, 1, n) of a simulator with one robot
        if values.size == 1:
            scalars[name] = float(values.ravel()[0])
        elif values.ndim in (1, 2) and values.size > 1:
            columns[name] = values
        elif values.ndim > 2:
            content.notes.append(f"array '{name}' of shape {values.shape} left out; give (samples, joints), of one robot")
    if topics is not None:
        columns = _of_topics(label, columns, topics)
    notes = tuple(printable(note, 1000) for note in content.notes)
    return Table(label, columns, scalars, content.metadata, "", units, tuple(map(printable, labels)), notes, texts)


def _real(label: str, name: str, values: Any) -> Any:
    """Return complex numbers without imaginary parts as real ones; those of a channel must have none."""
    if values.dtype.kind != "c":
        return values
    if not np.any(values.imag):
        return values.real
    if recognise(name) is not None:
        raise LogError(f"column '{name}' of '{label}' has complex numbers; give real ones")
    return values


def _of_topics(label: str, columns: dict[str, Any], topics: list[str]) -> dict[str, Any]:
    """Columns of some topics, and those of none."""
    paths = tuple(topic.rstrip("/") + "/" for topic in topics)
    kept = {n: v for n, v in columns.items() if n.startswith(paths) or not n.startswith("/")}
    if not any(n.startswith(paths) for n in kept):
        raise LogError(f"'{label}' has no columns of the topic {', '.join(topics)}; it has {', '.join(list(columns)[:12])}")
    return kept


def _beyond_float(values: Any) -> bool:
    """Whether whole numbers are too large for a float to hold exactly."""
    return bool(max(abs(int(values.min())), abs(int(values.max()))) > 2**53)


def short(error: Exception) -> str:
    """Return the kind of an error and its first line."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:160]}" if text else type(error).__name__


def _suffix(file: Path) -> str:
    parts = [s.lower() for s in file.suffixes]
    return "".join(parts[-2:]) if parts and parts[-1] == ".gz" else (parts[-1] if parts else "")


def check_room(needed: float, room: int, what: str) -> None:
    """Refuse what would need more memory than the file is allowed to become."""
    if not 0 <= needed <= room:
        raise LogError(f"{what} would take {needed / 2**20:.3g} MB in memory; a file of this size may take {room >> 20} MB")


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


# ---------------------------------------------------------------------- delimited text
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


# ---------------------------------------------------------------------- delimited text: the numbers
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
        if known and ":" in known[0]:
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
