"""Units of measured channels: every channel becomes SI on reading, and the conversion is recorded."""

from __future__ import annotations

import math

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
}

_ALIASES = {"°": "deg", "degree": "deg", "degrees": "deg", "radian": "rad", "radians": "rad", "°/s": "deg/s"}


def _canonical(unit: str) -> str:
    """Return the spelling used in the tables: 'N·m', 'N*m', 'N m' -> 'Nm'; 'rad/s^2', 'rad/s/s' -> 'rad/s2'."""
    text = unit.strip()
    text = _ALIASES.get(text.lower(), text)
    for old, new in (("·", ""), ("*", ""), (".", ""), (" ", ""), ("^", ""), ("²", "2"), ("/s/s", "/s2"), ("µ", "u")):
        text = text.replace(old, new)
    return text


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
    if base in _COUNT_NAMES and quantity in ("position", "velocity", "acceleration"):
        if per_unit is None:
            raise LogError(f"unit of {quantity} is '{unit}' but counts_per_unit is missing; give the counts per rad (or per m)")
        if not isinstance(per_unit, int | float) or not math.isfinite(per_unit) or per_unit == 0.0:
            raise LogError(f"counts_per_unit is {per_unit}; it must be finite and not zero")
        expected = {"position": "", "velocity": "s", "acceleration": "s2"}[quantity]
        if derivative != expected:
            raise LogError(f"unit of {quantity} is '{unit}'; for counts write 'counts{'/' * bool(expected)}{expected}'")
        return 1.0 / float(per_unit)
    if quantity == "effort":
        table = EFFORT_FACTORS[effort_kind] if effort_kind else {}
        if name not in table:
            raise LogError(
                f"unit of effort is '{unit}' but the effort kind is '{effort_kind}'; known units for it: "
                f"{', '.join(table)}, or a number (factor to SI)"
            )
        return table[name]
    table = FACTORS[quantity]
    if name not in table:
        raise LogError(f"unit of {quantity} is '{unit}', which is unknown; known: {', '.join(table)}, counts, or a number")
    return table[name]


def to_si(
    quantity: str,
    values: Array,
    unit: object,
    *,
    effort_kind: str | None = None,
    counts_per_unit: object = None,
) -> tuple[Array, list[str]]:
    """Convert the channels of one quantity to SI.

    Parameters
    ----------
    quantity : {"time", "position", "velocity", "acceleration", "effort", "temperature"}
        What the channels are.
    values : ndarray, shape (N,) or (N, n)
        Channels as read.
    unit : str, float, list of those, or None
        Unit name or factor to SI, one for all channels or one per channel; None means SI already.
    effort_kind : str, optional
        Needed to know the units that make sense for an effort.
    counts_per_unit : float or list of float, optional
        Encoder counts per rad or per m, for the unit "counts".

    Returns
    -------
    ndarray, list of str
        Values in SI (the same bits where the unit is SI already) and one sentence per conversion done.
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
    notes = [] if np.all(factors == 1.0) else [f"{quantity}: {unit} times {factors.tolist()} to SI"]
    if not notes:
        return values, [f"{quantity}: K minus 273.15 to degC"] if quantity == "temperature" and "K" in units else []
    return np.asarray(values * (factors[0] if values.ndim == 1 else factors), dtype=np.float64), notes
