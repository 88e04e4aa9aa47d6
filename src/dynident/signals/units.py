"""Units and clocks: ``x_SI = factor x``, one factor per channel; ``t = (stamp - first stamp) factor``.

Every channel becomes SI on reading, and every conversion is written down.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.errors import LogError

Array = NDArray[np.float64]

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
#: Units that may follow a name by an underscore; single letters (q_a, tau_m) would be mistaken for joints.
_SUFFIXES = (
    "deg|degrees?|rad|radians?|mrad|rev|mm|cm|um|rpm|N_?m|mN_?m|N_?cm|kN_?m|kN|mN|mA|mV|degC|celsius|counts?|ticks?"
    "|(?:deg|rad|rev|mm|m)(?:_per_|_|/|p)s(?:ec)?(?:_?\\^?2)?"
)
_TIME_SUFFIXES = "s|ms|us|ns|secs?|m?seconds?|msec|usec|nsecs?|nanosecs?|nanoseconds?|microseconds?|milliseconds?"
_SUFFIX = re.compile(rf"(?P<name>.*[A-Za-z0-9\])}}])[_\s]+(?P<unit>{_SUFFIXES})", re.I)
_TIME_SUFFIX = re.compile(rf"(?P<name>.*[A-Za-z])[_\s]+(?P<unit>{_TIME_SUFFIXES})", re.I)
_LETTER = re.compile(r"(?P<name>.*[0-9\])}])[_\s]+(?P<unit>[AVNKC])")  # after a number: tau1_N, current_2_A
_BRACKETS = re.compile(r"(?P<name>.*\S)\s*(?:\[(?P<a>[^\[\]]*[^\d\[\]][^\[\]]*)\]|\((?P<b>[^()]*[^\d()][^()]*)\))")


def _canonical(unit: str) -> str:
    """Return the spelling used in the tables: 'N·m', 'N*m', 'N m' -> 'Nm'; 'rad/s^2', 'rad/s/s' -> 'rad/s2'."""
    text = unit.strip()
    text = _ALIASES.get(text.lower(), text)
    replaced = (("·", ""), ("⋅", ""), ("*", ""), ("s^-1", "/s"), ("s^-2", "/s2"), ("^", ""), ("²", "2"), ("µ", "u"), ("μ", "u"))
    for old, new in (*replaced, ("_per_", "/"), ("sec", "s"), ("°", "deg"), ("grees", "g"), ("ians", ""), (" ", ""), (".", "")):
        text = text.replace(old, new)
    text = re.sub(r"^(deg|rad|rev|mm|m)[_p]s", r"\1/s", text).replace("_", "")
    return re.sub(r"/s/s$", "/s2", text)


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


def is_unit(text: str) -> bool:
    """Whether `text` is the name of a unit of any quantity, perhaps in brackets."""
    name = _canonical(text.strip().strip("[]()"))
    tables = [*FACTORS.values(), *EFFORT_FACTORS.values()]
    return name.partition("/")[0] in _COUNT_NAMES or any(_in_table(name, table) is not None for table in tables)


def _in_table(name: str, table: Mapping[str, float]) -> float | None:
    """Return the factor of a unit; capitals do not matter where only one unit is meant."""
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
    name = _canonical(unit)
    base, _, derivative = name.partition("/")
    if base in _COUNT_NAMES and quantity in ("position", "reference", "velocity", "acceleration"):
        if per_unit is None:
            raise LogError(f"unit of {quantity} is '{unit}' but counts_per_unit is missing; give the counts per rad (or per m)")
        if not isinstance(per_unit, int | float) or not math.isfinite(per_unit) or per_unit == 0.0:
            raise LogError(f"counts_per_unit is {per_unit}; it must be finite and not zero")
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


# ---------------------------------------------------------------------- the clock
#: A median step this long (s) is no robot log; more likely the times are in ms, us or ns. One this short is none either.
SLOWEST_STEP, FASTEST_STEP = 0.5, 1e-6
#: Times beyond this (s) are counted from an epoch (1970), and are moved to start at zero.
EPOCH = 1e8
#: A clock since 1970 shows its unit by its size: these times lie between the years 2001 and 2100.
_SINCE_1970 = {"s": (1e9, 4.1e9), "ms": (1e12, 4.1e12), "us": (1e15, 4.1e15), "ns": (1e18, 4.1e18)}
_TIME_NAMES = (
    "t|times?|time_?stamps?|stamps?|seconds|secs?|ts|elapsed|elapsed[_ ]time|time_elapsed|date_?time|epoch"
    "|(?:robot|controller|ros)_time|header_stamp|rosbag_?timestamp"
)
_TIME_NAME = re.compile(rf"(?P<path>.*[./])?(?P<name>{_TIME_NAMES})", re.I)


def time_name(column: str) -> tuple[int, str | None] | None:
    """Rank and unit of a column that names the clock (0: the sensor's own stamp, 1: bare, 2: inside a structure), or None."""
    text = re.sub(r"^[^A-Za-z]+", "", column.strip())
    for name, unit in (split_unit(text, time=True), (text, None)):
        match = _TIME_NAME.fullmatch(name)
        if match and (unit is None or _in_table(_canonical(unit), FACTORS["time"]) is not None):
            stamp = re.search(r"header[./_]stamp$", name, re.I)
            return 0 if stamp else 2 if match["path"] else 1, unit
    return None


def is_time(column: str) -> bool:
    """Whether the name says that the column is the clock."""
    return time_name(column) is not None


def find_clock(
    columns: Mapping[str, Any], rules: Mapping[str, Any], samples: int, units: Mapping[str, str]
) -> tuple[Array, list[str], str]:
    """Return the times (s), what was converted, and the column ("" if only a rate is known)."""
    rate = rules.get("rate")
    if rate is not None and (isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < np.inf):
        raise LogError(f"rate is {rate!r}; give the sampling rate in Hz, a positive number")
    name = rules.get("time")
    if name is not None and (not isinstance(name, str) or name not in columns):
        raise LogError(f"time column '{name}' is not there; the columns are {', '.join(list(columns)[:40])}")
    notes: list[str] = []
    if name is None:
        name = _time_column(columns, notes)
    if name is None:
        if rate is None:
            raise LogError(
                f"no time column among {', '.join(list(columns)[:12])} ...; give rate= (--rate) in Hz, or the column by "
                "schema={'time': ...} (--schema)"
            )
        return np.arange(samples) / float(rate), [f"time: sample number / {rate} Hz (no time column)"], ""
    known = time_name(name)
    written = units.get(name) or (known[1] if known else split_unit(name, time=True)[1])
    t, said = _from_column(name, columns[name], rate, (rules.get("unit") or {}).get("time"), written)
    return t, notes + said, name


def _time_column(columns: Mapping[str, Any], notes: list[str]) -> str | None:
    """The column that is the clock: the sensor's own stamp if there is one, else the bare name, else one in a structure."""
    ranks: dict[int, list[str]] = {}
    for column in columns:
        known = time_name(column)
        if known:
            ranks.setdefault(known[0], []).append(column)
    for rank in sorted(ranks):
        found = ranks[rank]
        if len(found) == 1:
            if rank != 1 or len(ranks) > 1:
                notes.append(f"time: column '{found[0]}'")
            return found[0]
        if rank > 0:
            raise LogError(f"several columns look like time: {found[:8]}; say which with schema={{'time': ...}}")
    return None


def _from_column(name: str, raw: Any, rate: float | None, unit: object, written: str | None) -> tuple[Array, list[str]]:
    """Convert one time column; `unit` is the user's word, `written` what the file says."""
    bad = np.flatnonzero(~np.isfinite(raw))
    if bad.size:
        row = int(bad[0])
        raise LogError(f"time column '{name}' is {raw[row]} at row {row + 1}; every row needs a time, remove that row")
    # Stamps in ns since 1970 do not fit into a float: they are counted from the first one as whole numbers.
    first = raw[0] if raw.size else 0
    since = np.asarray(raw - first, dtype=np.float64)
    if written is not None and unit is None and _canonical(written) != "s":
        unit = written
    if unit is None and raw.size:
        unit = next((u for u, (low, high) in _SINCE_1970.items() if u != "s" and low < float(first) < high), None)
    step = np.diff(since)
    if raw.size > 2 and unit is None and np.all(step == 1.0) and first == np.floor(first):
        if rate is None:
            raise LogError(f"time column '{name}' counts samples ({first:.0f}, {raw[1]:.0f}, ...); give rate= (--rate) in Hz")
        return since / float(rate), [f"time: sample counter '{name}' / {rate} Hz"]
    factor = float(to_si("time", np.ones(1), unit)[0][0])
    notes = [] if unit is None else [f"time: '{name}' in {unit} times {factor:g} to s"]
    median = float(np.median(step)) * factor if step.size else 0.0
    if median >= SLOWEST_STEP and unit is None:
        raise LogError(
            f"time column '{name}' advances by {median:g} per sample, too slow for seconds; "
            "give units={'time': 'ms'} (or 'us', 'ns', 's')"
        )
    if 0.0 < median < FASTEST_STEP:
        raise LogError(
            f"time column '{name}' advances by {median:g} s per sample, too fast for a robot's log; "
            "give its unit, units={'time': 's'} (or 'ms', 'us', 'ns'), or a factor to s"
        )
    if rate is not None and median > 0 and abs(rate * median - 1.0) > 0.05:
        raise LogError(f"rate is {rate:g} Hz but time column '{name}' runs at {1 / median:g} Hz; leave out one of them")
    if abs(float(first)) * factor > EPOCH:
        return since * factor, [*notes, f"time: started at {float(first) * factor!r} s (epoch), moved to 0"]
    return (np.asarray(raw, dtype=np.float64) if factor == 1.0 else np.asarray(raw * factor, dtype=np.float64)), notes
