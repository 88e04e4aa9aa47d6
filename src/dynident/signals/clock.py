"""The clock of a log: its column and unit, stamps in two parts, rows that repeat, signals that were sampled at other times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.errors import LogError
from dynident.signals.names import split_unit, time_name
from dynident.signals.units import canonical, to_si

Array = NDArray[np.float64]
#: A sample of one quantity that stands in a row of its own has all others missing; of fewer rows than this it is an accident.
SPARSE = 0.9
#: A median step this long (s) is no robot log; more likely the times are in ms, us or ns. One this short is none either.
SLOWEST_STEP, FASTEST_STEP = 0.5, 1e-6
#: Times beyond this (s) are counted from an epoch (1970), and are moved to start at zero.
EPOCH = 1e8
#: A clock since 1970 shows its unit by its size: these times lie between the years 2001 and 2100.
_SINCE_1970 = {"s": (1e9, 4.1e9), "ms": (1e12, 4.1e12), "us": (1e15, 4.1e15), "ns": (1e18, 4.1e18)}


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
        name = time_column(columns, notes)
    if name is None:
        if rate is None:
            from dynident.signals.campaign import COLUMNS  # noqa: PLC0415 - a campaign reads logs itself

            if set(COLUMNS) <= set(columns):
                raise LogError("this is one recording of a campaign; give its folder, where campaign.json says what it holds")
            among = f" among {', '.join(list(columns)[:12])} ..." if columns else ""
            raise LogError(
                f"no time column{among}; give rate= (--rate) in Hz, or the column by schema={{'time': ...}} (--schema)"
            )
        return np.arange(samples) / float(rate), [f"time: sample number / {rate} Hz (no time column)"], ""
    known = time_name(name)
    written = units.get(name) or (known[1] if known else split_unit(name, time=True)[1])
    t, said = _from_column(name, columns[name], rate, (rules.get("unit") or {}).get("time"), written)
    return t, notes + said, name


def time_column(columns: Mapping[str, Any], notes: list[str]) -> str | None:
    """The column that is the clock: the sensor's own stamp if there is one, else the bare name, else one in a structure."""
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
    if written is not None and unit is None and canonical(written) != "s":
        unit = written
    if unit is None and raw.size:
        unit = next((u for u, (low, high) in _SINCE_1970.items() if u != "s" and low < float(first) < high), None)
    step = np.diff(since)
    if raw.size > 2 and unit is None and np.all(step == 1.0) and first == np.floor(first):
        if rate is None:
            raise LogError(f"time column '{name}' counts samples ({first:.0f}, {raw[1]:.0f}, ...); give rate= (--rate) in Hz")
        return since / float(rate), [f"time: sample counter '{name}' / {rate} Hz"]
    factor, notes = 1.0, list[str]()
    if unit is not None:
        factor = float(to_si("time", np.ones(1), unit)[0][0])
        notes.append(f"time: '{name}' in {unit} times {factor:g} to s")
    median = float(np.median(step)) * factor if step.size else 0.0
    if np.any(step == 0.0):  # repeated rows, or stamps that are coarser than the samples
        median = float(np.mean(step)) * factor
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
