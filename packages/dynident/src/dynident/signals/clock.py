"""Clocks that need care: stamps in two parts, rows that repeat, quantities that were sampled at other times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.errors import LogError

Array = NDArray[np.float64]
#: A sample of one quantity that stands in a row of its own has all others missing; of fewer rows than this it is an accident.
SPARSE = 0.9


def without_repeats(
    clock: Array, arrays: dict[str, Any], rate: float | None, name: str, notes: list[str]
) -> tuple[Array, dict[str, Any]]:
    """Leave out rows that repeat the one before; of stamps that are coarser than the samples take the number of the sample."""
    same = np.diff(clock) == 0.0
    if not same.any() or np.all(same):
        return clock, arrays
    for values in arrays.values():
        same &= np.all((values[1:] == values[:-1]) | np.isnan(values[1:]) & np.isnan(values[:-1]), axis=1)
    kept = np.concatenate([[True], ~same])
    if same.any():
        notes.append(f"{int(same.sum())} rows that repeat the one before, time and all, left out")
        clock, arrays = clock[kept], {role: values[kept] for role, values in arrays.items()}
    coarse = np.flatnonzero(np.diff(clock) == 0.0)
    if coarse.size and np.all(np.diff(clock) >= 0.0):
        if rate is None:
            raise LogError(
                f"time column '{name}' has {float(clock[coarse[0]])!r} s in two different rows ({coarse.size} such places); "
                "if the samples are evenly spaced give rate= (--rate) in Hz, otherwise remove one of the rows"
            )
        notes.append(f"time: sample number / {rate} Hz, since the stamps of '{name}' repeat")
        clock = clock[0] + np.arange(clock.size) / float(rate)
    return clock, arrays


def join_stamps(columns: Mapping[str, Any], units: dict[str, str]) -> dict[str, Any]:
    """Join seconds and nanoseconds of a stamp, exactly, into one column of nanoseconds."""
    result = dict(columns)
    for name in columns:
        match = re.fullmatch(r"(?P<path>.*?)[./_]?(nanosecs?|nsecs?|nanoseconds)", name, re.I)
        if not match:
            continue
        for seconds in ("sec", "secs", "seconds"):
            wanted = re.sub(r"(nanosecs?|nsecs?|nanoseconds)$", seconds, name, flags=re.I).lower()
            other = next((c for c in columns if c.lower() == wanted), None)
            if other is not None and columns[other].ndim == 1 and columns[name].ndim == 1:
                parts = [result.pop(n) for n in (other, name)]
                if all(np.all(np.isfinite(p)) and np.all(np.abs(p) < 2e9) and np.all(p == np.floor(p)) for p in parts):
                    label = match["path"] or "stamp"
                    result[label] = parts[0].astype(np.int64) * 10**9 + parts[1].astype(np.int64)
                    units[label] = "ns"
                else:
                    raise LogError(f"columns '{other}' and '{name}' are not whole seconds and nanoseconds; check them")
                break
    return result


def on_one_clock(clock: Array, arrays: dict[str, Any], notes: list[str]) -> tuple[Array, dict[str, Any]]:
    """Bring quantities with rows of their own to the times of the position, by linear interpolation between their rows.

    PlotJuggler joins topics that way: a row has the numbers of one topic, and nothing of the others.
    """
    there = {role: np.isfinite(values).all(axis=1) for role, values in arrays.items()}
    position = there["position"]
    apart = [role for role, rows in there.items() if rows.sum() > 1 and (rows & ~position).sum() > SPARSE * rows.sum()]
    if not apart or position.sum() < 2 or not np.all(np.diff(clock) >= 0.0):
        return clock, arrays
    first = max(clock[there[role]][0] for role in ("position", *apart))
    last = min(clock[there[role]][-1] for role in ("position", *apart))
    kept = position & (clock >= first) & (clock <= last)
    result = {role: values[kept] for role, values in arrays.items()}
    for role in apart:
        known = there[role]
        result[role] = np.column_stack([np.interp(clock[kept], clock[known], column[known]) for column in arrays[role].T])
        notes.append(
            f"{role}: {int(known.sum())} rows of their own, interpolated to the {int(kept.sum())} times of the position"
        )
    return clock[kept], result
