"""Tables of named columns, as made by the file readers, and units; reading.py decides the meaning of columns.

Every reader is bounded: a file may take ``max(200 MB, 20 times its size)`` of memory and have 10 000 columns
and 16 levels; a larger one raises LogError before the memory is allocated. Channels are converted to SI on reading, and every
conversion is noted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import LogError

_RAD = {"rad": 1.0, "deg": math.pi / 180.0, "rev": 2.0 * math.pi, "mrad": 1e-3}
_METRE = {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "in": 0.0254}
_COUNT_NAMES = ("count", "counts", "tick", "ticks", "inc", "increments")
#: quantity -> unit name -> factor to SI. Counts are absent: their factor is the user's counts_per_unit.
FACTORS: dict[str, dict[str, float]] = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0},
    "position": {**_RAD, **_METRE},
    "velocity": {f"{k}/s": f for k, f in {**_RAD, **_METRE}.items()} | {"rpm": 2.0 * math.pi / 60.0},
    "acceleration": {f"{k}/s2": f for k, f in {**_RAD, **_METRE}.items()},
    "temperature": {"degC": 1.0, "C": 1.0, "K": 1.0},
    "reference": {**_RAD, **_METRE},
}
#: effort kind -> unit name -> factor to SI (a joint effort is in Nm on a revolute joint, in N on a prismatic one).
_TORQUE = {"Nm": 1.0, "mNm": 1e-3, "Ncm": 1e-2, "kNm": 1e3}
_FORCE = {"N": 1.0, "mN": 1e-3, "kN": 1e3}
EFFORT_FACTORS: dict[str, dict[str, float]] = {
    "joint_torque": {**_TORQUE, **_FORCE},
    "joint_force": _FORCE,
    "motor_torque": {**_TORQUE, **_FORCE},
    "motor_current": {"A": 1.0, "mA": 1e-3},
    "voltage": {"V": 1.0, "mV": 1e-3},
    "none": {},
}
_ALIASES = {
    **dict.fromkeys(("°", "degree", "degrees"), "deg"),
    **dict.fromkeys(("radian", "radians"), "rad"),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("msec", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("usec", "microsecond", "microseconds"), "us"),
    **dict.fromkeys(("nsec", "nanosec", "nanosecs", "nanosecond", "nanoseconds"), "ns"),
    **dict.fromkeys(("°c", "celsius"), "degC"),
    **dict.fromkeys(("revs", "revolutions", "turns"), "rev"),
    **dict.fromkeys(("1/min", "u/min", "rev/min", "min^-1"), "rpm"),
    **dict.fromkeys(("amp", "amps", "ampere"), "A"),
    **dict.fromkeys(("volt", "volts"), "V"),
}


def canonical(unit: str) -> str:
    """Return the spelling used in the tables: 'N·m', 'N*m', 'N m' -> 'Nm'; 'rad/s^2', 'rad/s/s' -> 'rad/s2'."""
    text = unit.strip()
    text = _ALIASES.get(text.lower(), text)
    replaced = (("·", ""), ("⋅", ""), ("*", ""), ("s^-1", "/s"), ("s^-2", "/s2"), ("^", ""), ("²", "2"), ("µ", "u"), ("μ", "u"))
    for old, new in (*replaced, ("_per_", "/"), ("sec", "s"), ("°", "deg"), ("grees", "g"), ("ians", ""), (" ", ""), (".", "")):
        text = text.replace(old, new)
    text = re.sub(r"^(deg|rad|rev|mm|m)[_p]s", r"\1/s", text).replace("_", "")
    return re.sub(r"/s/s$", "/s2", text)


def is_unit(text: str) -> bool:
    """Whether `text` is the name of a unit of any quantity, perhaps in brackets."""
    name = canonical(text.strip().strip("[]()"))
    tables = [*FACTORS.values(), *EFFORT_FACTORS.values()]
    return name.partition("/")[0] in _COUNT_NAMES or any(_in_table(name, table) is not None for table in tables)


def is_time_unit(text: str) -> bool:
    """Whether `text` is the name of a unit of time."""
    return _in_table(canonical(text), FACTORS["time"]) is not None


def _in_table(name: str, table: Mapping[str, float]) -> float | None:
    """Return the factor of a unit; case is ignored where this is unambiguous."""
    if name in table:
        return table[name]
    found = [factor for known, factor in table.items() if known.lower() == name.lower()]
    return found[0] if len(found) == 1 else None


def _factor(quantity: str, unit: object, effort_kind: str | None, per_unit: object) -> float:
    """Factor that takes one channel to SI, or a LogError that lists the known names."""
    if isinstance(unit, bool):
        raise LogError(f"unit of {quantity} is {unit}; give a unit name or a factor to SI")
    if isinstance(unit, int | float):
        if not math.isfinite(unit) or unit == 0.0:
            raise LogError(f"unit of {quantity} is the factor {unit}; a factor to SI must be finite and not zero")
        return float(unit)
    if not isinstance(unit, str):
        raise LogError(f"unit of {quantity} is {unit!r}; give a unit name or a number (factor to SI)")
    name = canonical(unit)
    base, _, derivative = name.partition("/")
    if base in _COUNT_NAMES and quantity in ("position", "reference", "velocity", "acceleration"):
        if per_unit is None:
            told = f"unit of {quantity} is '{unit}', but the number per rad (or m) is unknown"
            raise LogError(f"{told}; give counts_per_unit=1303.8 for an encoder with 8192 counts per turn")
        if not isinstance(per_unit, int | float) or not math.isfinite(per_unit) or abs(per_unit) < 1e-300:
            raise LogError(f"counts_per_unit={per_unit} is not a number of counts; it must be finite and not zero")
        expected = {"position": "", "reference": "", "velocity": "s", "acceleration": "s2"}[quantity]
        if derivative != expected:
            raise LogError(f"unit of {quantity} is '{unit}'; for counts write 'counts{'/' * bool(expected)}{expected}'")
        return 1.0 / float(per_unit)
    if quantity == "effort":
        table = EFFORT_FACTORS[effort_kind] if effort_kind else {}
        factor = _in_table(name, table)
        if factor is None:
            raise LogError(
                f"unit of effort is '{unit}' but the effort kind is '{effort_kind}'; known units for it: "
                f"{', '.join(table)}, or a number (factor to SI)"
            )
        return factor
    table = FACTORS[quantity]
    factor = _in_table(name, table)
    if factor is None:
        raise LogError(f"unit of {quantity} is '{unit}', which is unknown; known: {', '.join(table)}, counts, or a number")
    return factor


def to_si(
    quantity: str,
    values: Array,
    unit: object,
    *,
    effort_kind: str | None = None,
    counts_per_unit: object = None,
) -> tuple[Array, list[str]]:
    """Convert (N,) or (N, n) channels of one quantity to SI: the values and one sentence per conversion.

    `unit` is a name or a factor to SI, one for all channels or a list; None means SI already, and keeps the bits.
    """
    if unit is None:
        return values, []
    width = 1 if values.ndim == 1 else values.shape[1]
    units = list(unit) if isinstance(unit, list | tuple) else [unit] * width
    counts = list(counts_per_unit) if isinstance(counts_per_unit, list | tuple) else [counts_per_unit] * width
    for label, entries in (("units", units), ("counts_per_unit values", counts)):
        if len(entries) != width:
            raise LogError(f"{quantity} has {width} channels but {len(entries)} {label} were given; give one or {width}")
    if quantity == "temperature" and any(u == "K" for u in units):
        values = values - np.where([u == "K" for u in units], 273.15, 0.0)
    factors = np.array([_factor(quantity, u, effort_kind, c) for u, c in zip(units, counts, strict=True)])
    if np.all(factors == 1.0):
        return values, [f"{quantity}: K minus 273.15 to degC"] if quantity == "temperature" and "K" in units else []
    same = len({str(u) for u in units}) == 1
    note = f"{quantity}: {units[0] if same else units} times {factors[0] if same else factors.tolist()} to SI"
    return np.asarray(values * (factors[0] if values.ndim == 1 else factors), dtype=np.float64), [note]


COLUMNS = 10_000  #: largest number of columns of a file
#: Memory limit of a file in bytes and in multiples of its size, and the size up to which a file is read at once.
ROOM, GROWTH, LARGEST = 200 << 20, 20, 2 << 30
#: Start of the note about other topics of a bag.
NOT_TAKEN = "topics not taken:"
#: Start of the note about an unreadable variable.
NOT_READ = "not read:"
#: Arrays of names, as npz, MATLAB and HDF5 files hold them.
LABELS = ("name", "names", "joint_names", "joints", "jointnames", "joint_name", "dof_names", "actuator_names")
#: Key columns of a row: the joint, the quantity, the run.
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
    """A column of texts: index of the text of every row (N,), and the few different texts."""

    rows: Any
    known: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Named columns of one file.

    Columns are float64 (N,) or (N, k), int64 for long stamps; `scalars` single numbers of the file (gains, rates); `metadata`
    written by dynident, if present; `units` and `labels` of the columns as stated in the file; `texts` text columns that may
    be row keys; `notes` on the interpretation.
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
    """Columns of a file by name, with metadata, units, labels, notes and texts."""

    columns: dict[str, Any]
    metadata: Mapping[str, Any] | None = None
    units: dict[str, str] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    texts: dict[str, Words] = field(default_factory=dict)


def plain_key(column: str) -> str:
    """The name of a column in the spelling of the key lists."""
    return column.lower().replace(" ", "_").replace("-", "_").strip("_")


def is_key(column: str) -> bool:
    """Whether a text column with this name may be a row key."""
    return plain_key(column) in (*JOINT_KEYS, *VARIABLE_KEYS, *EPISODES)


def texts_of(cells: Iterable[Any]) -> Words | None:
    """Number the different texts of a column in order of appearance; None if too many for joints or runs."""
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
        whole = values.dtype.kind in "iu" and values.ndim == 1 and values.size > 0
        if not whole or max(abs(int(values.min())), abs(int(values.max()))) <= 2**53:  # a float holds them exactly
            values = values.astype(np.float64, copy=values.ndim > 1 or is_time(name))  # channels are copied into arrays
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
    """Return complex numbers without imaginary parts as real ones; a channel must have none."""
    if values.dtype.kind != "c":
        return values
    if not np.any(values.imag):
        return values.real
    if parse_column(name) is not None:
        raise LogError(f"column '{name}' of '{label}' has complex numbers; give real ones")
    return values


def _of_topics(label: str, columns: dict[str, Any], topics: list[str]) -> dict[str, Any]:
    """Columns of some topics, and columns without a topic."""
    paths = tuple(topic.rstrip("/") + "/" for topic in topics)
    kept = {n: v for n, v in columns.items() if n.startswith(paths) or not n.startswith("/")}
    if not any(n.startswith(paths) for n in kept):
        raise LogError(f"'{label}' has no columns of the topic {', '.join(topics)}; it has {', '.join(list(columns)[:12])}")
    return kept


def short(error: Exception) -> str:
    """Return the kind of an error and its first line."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:160]}" if text else type(error).__name__


@contextmanager
def decoding(form: str) -> Iterator[None]:
    """Convert exceptions of another package's decoder for damaged content to LogError; wrap only its calls."""
    try:
        yield
    except LogError:
        raise
    except Exception as error:  # almost anything: struct, zlib, Index, Key, Memory, SyntaxError ...
        raise LogError(f"the file is damaged or not {form} ({short(error)})") from error


def decoded(items: Iterator[Any], form: str) -> Iterator[Any]:
    """Yield the items of another package's decoder."""
    while True:
        with decoding(form):
            item = next(items, None)
        if item is None:
            return
        yield item


def check_room(needed: float, room: int, what: str) -> None:
    """Raise LogError if more memory is needed than is allowed for the file."""
    if not 0 <= needed <= room:
        raise LogError(f"{what} would take {needed / 2**20:.3g} MB in memory; a file of this size may take {room >> 20} MB")


def printable(text: str, longest: int = 200) -> str:
    """Text from a file without control characters and direction marks, safe for terminals and pages."""
    shown = "".join(c if c.isprintable() else "?" for c in text[:longest])
    return shown if len(text) <= longest else shown + "..."


def own_metadata(line: str) -> Mapping[str, Any] | None:
    """The metadata of a file written by dynident, None for others."""
    if '"format": "dynident-log"' not in line:
        return None
    try:
        content = json.loads(line.lstrip("# "))
    except (ValueError, RecursionError) as error:
        raise LogError(f"the metadata line is damaged ({str(error)[:80]}); write the log again") from error
    return content if isinstance(content, dict) else None


ROLES = ("position", "velocity", "acceleration", "effort", "temperature", "reference")
#: role -> family -> words. A family is one way to measure the role: two families of effort are not interchangeable.
WORDS: dict[str, dict[str, tuple[str, ...]]] = {
    "position": {"position": ("positions?", "pos", "angles?", "qpos", "qm", "q", "theta", "winkel")},
    "velocity": {
        "velocity": ("velocity", "velocities", "speeds?", "vel", "qvel", "dq", "qd", "dtheta", "geschwindigkeit", "v")
    },
    "acceleration": {"acceleration": ("accelerations?", "acc", "qacc", "ddq", "qdd", "a")},
    "effort": {
        "torque": ("torques?", "moments?", r"tau_j(?!\d)", "tau", "trq", "tq", "drehmoment", "qfrc_actuator"),
        "force": ("forces?",),
        "current": ("currents?", "cur", "strom", "i"),
        "voltage": ("voltages?", "u"),
        "effort": ("efforts?", "eff"),
    },
    "temperature": {"temperature": ("temperatures?", "temperatur", "temps?")},
}
AS_COMMANDED = " (commanded)"
_MEASURED = (
    "actual",
    "act",
    "applied",
    "measured",
    "meas",
    "msr",
    "feedback",
    "fb",
    "present",
    "observation",
    "observed",
    "est",
    "estimated",
    "ai",
    "ma",
)
_COMMANDED = ("target", "desired", "des", "reference", "ref", "commanded", "command", "cmd", "setpoint", "goal")
_SEP = r"[_.\s/]"
_NO_QUANTITY = (*_MEASURED, "joint", "joints", "jnt", "motor", "axis")
_BEFORE = rf"(?:(?:(?P<commanded>{'|'.join(_COMMANDED)})|{'|'.join(_NO_QUANTITY)}){_SEP}*)*"
_NUMBER = rf"(?:{_SEP}*[\[({{]?(?P<number>\d+)[\])}}]?)"
#: A mark between the word and the number: q_meas[0], joint_position_measured[0], q_d[0] of libfranka ("d" is desired).
_MARK = re.compile(
    rf"(?P<head>.*[A-Za-z]){_SEP}(?P<mark>d|{'|'.join((*_MEASURED, *_COMMANDED))})(?P<number>[\[({{_.]\d+[\])}}]?)", re.I
)
#: External torques are not efforts of the motors.
_EXTERNAL = re.compile(rf"(^|{_SEP})(ext|external)({_SEP}|[\[(]|$)|^ext_?(tau|torque|trq|moment)", re.I)
#: Cartesian quantities, and the layout of a ROS array, have the same words but are not joints.
_CARTESIAN = re.compile(rf"(^|{_SEP})(tcp|tool|ee|cartesian|pose|wrench|imu|gps|layout)({_SEP}|$)|tcp", re.I)
#: Columns of LeRobot datasets: measured and commanded.
_LEROBOT = {"observation.state": ("position", "position"), "action": ("reference", "position")}
#: Units that an underscore may tie to a name; single letters (q_a, tau_m) would be mistaken for joints.
_SUFFIXES = (
    "deg|degrees?|rad|radians?|mrad|rev|mm|cm|um|rpm|N_?m|mN_?m|N_?cm|kN_?m|kN|mN|mA|mV|degC|celsius|counts?|ticks?"
    "|(?:deg|rad|rev|mm|m)(?:_per_|_|/|p)s(?:ec)?(?:_?\\^?2)?"
)
_TIME_SUFFIXES = "s|ms|us|ns|secs?|m?seconds?|msec|usec|nsecs?|nanosecs?|nanoseconds?|microseconds?|milliseconds?"
_UNIT = re.compile(_SUFFIXES, re.I)
_ELECTRIC, _EFFORT = (re.compile(units, re.I) for units in ("m[AV]", "[mk]?N(_?c?m)?|m[AV]"))
_SUFFIX = re.compile(rf"(?P<name>.*[A-Za-z0-9\])}}])[_\s]+(?P<unit>{_SUFFIXES})", re.I)
_TIME_SUFFIX = re.compile(rf"(?P<name>.*[A-Za-z])[_\s]+(?P<unit>{_TIME_SUFFIXES})", re.I)
_LETTER = re.compile(r"(?P<name>.*[0-9\])}])[_\s]+(?P<unit>[AVNKC])")  # after a number: tau1_N, current_2_A
_BRACKETS = re.compile(r"(?P<name>.*\S)\s*(?:\[(?P<a>[^\[\]]*[^\d\[\]][^\[\]]*)\]|\((?P<b>[^()]*[^\d()][^()]*)\))")
_TIME_NAMES = (
    "t|tm|times?|zeit|duration|tout|x_value|time_?stamps?|stamps?"
    "|seconds|secs?|ts|elapsed|elapsed[_ ]time|time_elapsed|date_?time|epoch"
    "|(?:robot|controller|ros)_time|header_stamp|rosbag_?timestamp"
)
_TICK = re.compile(r"(?:.*[./])?(?:time[_ ]?)?ticks?", re.I)  # a controller's count, mostly of ms
_TIME_NAME = re.compile(rf"(?P<path>.*[./])?(?P<name>{_TIME_NAMES})", re.I)


# ---------------------------------------------------------------------- meaning of names
def _patterns() -> list[tuple[str, str, str, str]]:
    """Role, family, plain word and expression; the joint is the text before or after the word."""
    result = []
    for role, families in WORDS.items():
        for family, words in families.items():
            for word in words:
                plain = re.sub(r"s\?$|\(.*\)$", "", word)
                # A bare letter is ambiguous (i is often a counter) and needs a joint; q alone is the array of all.
                bare = "?" if len(word) > 1 or word == "q" else ""
                after = rf"(?:{_NUMBER}(?:[_.\s]+(?P<mark>[a-z]+))?|[_.\s/]+(?P<joint>\S.*)){bare}"
                result.append((role, family, plain, rf"{_BEFORE}{word}{after}"))
                if not bare:
                    continue
                result.append((role, family, plain, rf"(?P<joint>.*[^_.\s/])[_.\s/]+{word}{_NUMBER}?"))
                if len(word) > 2:  # Joint1Angle
                    result.append((role, family, plain, rf"(?P<joint>(?:joint|axis|motor|j|a)\d+){word}"))
    return result


_PATTERNS = _patterns()
_ANY_WORD = "|".join(word for families in WORDS.values() for words in families.values() for word in words if len(word) > 2)
#: tau_q1 is the torque of joint q1, not a position; current_q1 is the present position.
_OTHER = (w for role in WORDS if role != "position" for words in WORDS[role].values() for w in words if len(w) > 1)
_OF_Q = rf"(?:{'|'.join(w for w in _OTHER if w != 'currents?')}){_SEP}+q\d"


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    """Return a compiled expression, on demand: compiling all of them takes as long as reading a log."""
    return re.compile(expression, re.I)


@dataclass(frozen=True)
class Name:
    """Meaning of a column name; the joint is "" for an array of all joints, "1", "2", ... for a numbered one."""

    role: str
    family: str
    joint: str
    unit: str | None


def parse_column(column: str) -> Name | None:
    """Return the meaning of a conventional column name, None for other names."""
    text = re.sub(r"^[^A-Za-z]+", "", column.strip())
    named = _parse_column(*split_unit(text))
    if named is None or named.unit is None or named.family.removesuffix(AS_COMMANDED) in ("current", "voltage", "effort"):
        return named
    not_its_own = _ELECTRIC if named.role == "effort" else _EFFORT
    return _parse_column(text, None) if not_its_own.fullmatch(named.unit) else named  # q_ma: as measured, not in milliamperes


def _parse_column(text: str, unit: str | None) -> Name | None:
    """Return the meaning of a name without its unit."""
    text = re.sub(r"[/.](data|values?)(?=[\[({]|$)", "", text, flags=re.I)  # the only field of a message
    if text.lower() in _LEROBOT:
        return Name(*_LEROBOT[text.lower()], "", unit)
    if _CARTESIAN.search(text):
        return None
    between = _MARK.fullmatch(text)
    plain = _parse_column(between["head"] + between["number"], unit) if between else None
    if between and plain is not None:
        return _commanded(plain) if between["mark"].lower() in ("d", *_COMMANDED) else plain
    lower = text.lower()
    for role, family, word, expression in _PATTERNS:
        match = _compiled(expression).fullmatch(text) if word.lower() in lower else None
        if not match:
            continue
        groups = match.groupdict()
        mark, commanded = (groups.get("mark") or "").lower(), groups.get("commanded") is not None
        if mark and mark not in (*_COMMANDED, *_MEASURED):
            continue
        joint, marked, inner = _without_marks(groups.get("joint") or "")
        if word == "q" and _compiled(_OF_Q).match(text):
            continue
        if "/" in joint and _compiled(_ANY_WORD).fullmatch(joint.rpartition("/")[2]):
            continue  # the last part of a path is the quantity: /torques/elbow/position
        number = groups.get("number")
        if number is not None:  # the text before a numbered word is a path, not a joint
            joint = f"{joint}/{number}" if joint else number
        if role == "effort" and _EXTERNAL.search(text):
            return None
        found = Name(role, family, joint, unit or inner)
        return _commanded(found) if commanded or marked or mark in _COMMANDED else found
    # out.q_meas, data/q_meas: the last part of a path is the quantity, the rest its source.
    path, dot, last = text.rpartition("/" if text.rfind("/") > text.rfind(".") else ".")
    known = parse_column(last) if dot and path else None
    return replace(known, joint=path, unit=unit) if known is not None and not known.joint else None


def _commanded(name: Name) -> Name | None:
    """Return the name of a commanded value: position becomes reference, effort a commanded effort; others are dropped."""
    if name.role == "position":
        return replace(name, role="reference")
    if name.role != "effort" or name.family.endswith(AS_COMMANDED):
        return name if name.role in ("effort", "reference") else None
    return replace(name, family=name.family + AS_COMMANDED)


def _without_marks(joint: str) -> tuple[str, bool, str | None]:
    """Strip "target", "actual", "deg", ... from both ends of a joint's name; return whether it was a command, and the unit."""
    commanded, unit = False, None
    for end, cut in ((r"^(?P<mark>[A-Za-z]+)(?:[_.\s/]+|$)", 0), (r"(?:^|[_.\s/]+)(?P<mark>[A-Za-z]+)$", -1)):
        match = re.search(end, joint)
        word = match["mark"].lower() if match else ""
        if match and word in (*_COMMANDED, *_MEASURED):
            commanded = commanded or word in _COMMANDED
            joint = joint[match.end() :] if cut == 0 else joint[: match.start()]
        elif match and cut == 0 and _UNIT.fullmatch(word) and match.end() < len(joint):
            unit, joint = match["mark"], joint[match.end() :]
    return joint.strip(), commanded, unit


def split_unit(column: str, time: bool = False) -> tuple[str, str | None]:
    """Return a column's name and the unit written in it: 'q1 [deg]', 'q1_deg', 'q1 (rad/s)', 'tau1, Nm', 'stamp_ns'."""
    text = column.strip()
    match = _BRACKETS.fullmatch(text)
    if match:
        unit = match["a"] if match["a"] is not None else match["b"]
        return match["name"].rstrip(" _"), unit.strip()
    match = (_TIME_SUFFIX if time else _SUFFIX).fullmatch(text) or (None if time else _LETTER.fullmatch(text))
    if match:
        return match["name"], match["unit"]
    name, comma, unit = text.rpartition(",")
    return (name.strip(), unit.strip()) if comma and is_unit(unit) else (text, None)


def time_name(column: str) -> tuple[int, str | None] | None:
    """Rank and unit of a column that names the clock, or None.

    0: the sensor's own stamp, 1: bare, 2: inside a structure, 3: ticks, as a last resort.
    """
    text = re.sub(r"^[^A-Za-z]+", "", column.strip())
    for name, unit in (split_unit(text, time=True), (text, None)):
        match = _TIME_NAME.fullmatch(name)
        if match and (unit is None or is_time_unit(unit)):
            stamp = re.search(r"header[./_]stamp$", name, re.I)
            return 0 if stamp else 2 if match["path"] else 1, unit
        if _TICK.fullmatch(name) and (unit is None or is_time_unit(unit)):
            return 3, unit
    return None


def is_time(column: str) -> bool:
    """Whether the column name denotes the clock."""
    return time_name(column) is not None


def time_column(columns: Mapping[str, Any], notes: list[str]) -> str | None:
    """The clock column: the sensor's own stamp if there is one, else the bare name, else one in a structure."""
    ranks: dict[int, list[str]] = {}
    for column in columns:
        known = time_name(column)
        if known:
            ranks.setdefault(known[0], []).append(column)
    for rank in sorted(ranks):
        found = ranks[rank]
        if rank == 2 and all(np.array_equal(columns[found[0]], columns[other]) for other in found[1:]):
            found = found[:1]  # Simulink writes the same times with every signal
        if len(found) == 1:
            if rank != 1 or len(ranks) > 1:
                notes.append(f"time: column '{found[0]}'")
            return found[0]
        if rank > 0:
            raise LogError(f"several columns look like time: {found[:8]}; choose with schema={{'time': ...}}")
    return None
