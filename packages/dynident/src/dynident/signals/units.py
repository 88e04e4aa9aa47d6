"""Units: names and factors to SI, for columns that name a unit or have one given.

Every channel becomes SI on reading, and every conversion is written down.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

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
    name = canonical(unit)
    base, _, derivative = name.partition("/")
    if base in _COUNT_NAMES and quantity in ("position", "reference", "velocity", "acceleration"):
        if per_unit is None:
            told = f"unit of {quantity} is '{unit}', but nothing says how many make a rad (or m)"
            raise LogError(f"{told}; give counts_per_unit=1303.8 for an encoder with 8192 counts per turn")
        if not isinstance(per_unit, int | float) or not math.isfinite(per_unit) or abs(per_unit) < 1e-300:
            raise LogError(f"counts_per_unit={per_unit} is no number of counts; it must be finite and not zero")
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
