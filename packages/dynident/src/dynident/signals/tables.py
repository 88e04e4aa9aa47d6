"""Tables of named columns, as the readers of files make them; what the columns mean is decided in reading.py.

Every reader is bounded: what a file may become in memory is ``max(200 MB, 20 times its size)``, it may have 10 000 columns
and 16 levels, and it is refused with a sentence before that memory is taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dynident.errors import LogError
from dynident.signals.column_names import parse_column

COLUMNS = 10_000  #: a file with more is refused
#: Bytes that any file may become in memory, how many times its own size, and the size up to which a file is read at once.
ROOM, GROWTH, LARGEST = 200 << 20, 20, 2 << 30
#: How the note about other topics of a bag begins.
NOT_TAKEN = "topics not taken:"
#: How the note about a variable that cannot be read begins.
NOT_READ = "not read:"
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
    if parse_column(name) is not None:
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
