"""The clock of a file: a time column, a sample counter with a rate, or a rate alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.errors import LogError
from dynident.signals.naming import is_time
from dynident.signals.units import to_si

Array = NDArray[np.float64]
#: A median step this long (s) is no robot log; more likely the times are in ms, us or ns.
SLOWEST_STEP = 0.5
#: Times beyond this (s) are counted from an epoch (1970), and are moved to start at zero.
EPOCH = 1e8


def clock_from_file(columns: Mapping[str, Array], rules: Mapping[str, Any], samples: int) -> tuple[Array, list[str], str]:
    """Find the sample times.

    Parameters
    ----------
    columns : mapping of str to ndarray, shape (N,)
        One-dimensional columns of the file(s).
    rules : mapping
        Schema; the keys "time", "rate" and "unit" are used.
    samples : int
        Number of samples, for a file without a time column.

    Returns
    -------
    t : ndarray, shape (N,)
        Times in s.
    notes : list of str
        Conversions done.
    column : str
        Name of the time column, "" if there is none.
    """
    rate = rules.get("rate")
    if rate is not None and (isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < np.inf):
        raise LogError(f"rate is {rate!r}; give the sampling rate in Hz, a positive number")
    name = rules.get("time")
    if name is not None and (not isinstance(name, str) or name not in columns):
        raise LogError(f"time column '{name}' is not there; the columns are {', '.join(list(columns)[:40])}")
    if name is None:
        candidates = [c for c in columns if is_time(c)]
        if len(candidates) > 1:
            raise LogError(f"several columns look like time: {candidates}; say which with schema={{'time': ...}}")
        name = candidates[0] if candidates else None
    if name is None:
        if rate is None:
            raise LogError(
                f"no time column among {', '.join(list(columns)[:12])} ...; give rate= in Hz, or schema={{'time': ...}}"
            )
        return np.arange(samples) / float(rate), [f"time: sample number / {rate} Hz (no time column)"], ""
    return (*_from_column(name, columns[name], rate, (rules.get("unit") or {}).get("time")), name)


def _from_column(name: str, raw: Array, rate: float | None, unit: object) -> tuple[Array, list[str]]:
    finite = raw[np.isfinite(raw)]
    if finite.size != raw.size:
        bad = int(np.flatnonzero(~np.isfinite(raw))[0])
        raise LogError(f"time column '{name}' is {raw[bad]} at row {bad + 1}; every row needs a time, remove that row")
    step = np.diff(raw)
    if raw.size > 2 and unit is None and np.all(step == 1.0) and raw[0] == np.floor(raw[0]):
        if rate is None:
            raise LogError(f"time column '{name}' counts samples ({raw[0]:.0f}, {raw[1]:.0f}, ...); give rate= in Hz")
        return (raw - raw[0]) / float(rate), [f"time: sample counter '{name}' / {rate} Hz"]
    t, notes = to_si("time", raw, unit)
    median = float(np.median(np.diff(t))) if t.size > 1 else 0.0
    if median >= SLOWEST_STEP and unit is None:
        raise LogError(
            f"time column '{name}' advances by {median:g} per sample, too slow for seconds; "
            "give units={'time': 'ms'} (or 'us', 'ns', 's')"
        )
    if rate is not None and median > 0 and abs(rate * median - 1.0) > 0.05:
        raise LogError(f"rate is {rate:g} Hz but time column '{name}' runs at {1 / median:g} Hz; leave out one of them")
    if t.size and abs(t[0]) > EPOCH:
        notes.append(f"time: started at {float(t[0])!r} s (epoch), moved to 0")
        t = t - t[0]
    return t, notes
