"""Groups of plateaus: those of one temperature, or those of one sweep through the speeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident_lab.testbench.plateaus import SpeedPlateau, nearest_level, speed_levels

Groups = list[NDArray[np.int64]]

#: Temperatures closer than this form one group [K]; sensors of robots resolve about 1 K.
NARROWEST = 2.0
#: Largest number of curves if the width is chosen from the data.
MOST = 6
#: A temperature that reverses by more than this is not monotonic [K].
TURN = 2.0
#: Ratio to the usual pause above which a pause ends a sweep.
PAUSE = 4.0


def group_plateaus(
    items: Sequence[SpeedPlateau], top: float, by: str, width: float | None
) -> tuple[Groups, list[str], list[str]]:
    """Group plateaus."""
    if by not in ("auto", "temperature", "time", "all"):
        raise IdentificationError(f"by = {by!r}; plateaus are grouped by 'auto', 'temperature', 'time' or 'all'")
    if width is not None and not (np.isfinite(width) and width > 0.0):
        raise IdentificationError(f"width = {width} of a group of plateaus must be above zero; give K or s, or leave it out")
    heat = np.array([p.temperature for p in items])
    measured = bool(np.all(np.isfinite(heat)))
    notes = []
    if by == "temperature" and not measured:
        missing = int(np.count_nonzero(~np.isfinite(heat)))
        raise IdentificationError(
            f"by = 'temperature', but {missing} of {len(items)} plateaus have no measured temperature; use by='time'"
        )
    if measured and by in ("auto", "temperature"):
        up, down = _turns(heat)
        if min(up, down) > TURN:
            turned = f"the temperature rises by {up:.1f} K and falls by {down:.1f} K during the test"
            why = "the sensor lags the friction surfaces, so heating and cooling differ at the same reading"
            if by == "auto":
                notes.append(f"{turned}: curves are grouped by time, because {why}")
                by = "time"
            else:
                notes.append(f"{turned}: each curve mixes heating and cooling, although {why}")
        elif by == "auto":
            by = "temperature"
    if by == "all":
        return [np.arange(len(items))], ["all plateaus"], notes
    if by == "temperature":
        return (*_by_temperature(heat, width), notes)
    return (*_by_time(items, top, width), notes)


def _turns(heat: Array) -> tuple[float, float]:
    """Return the largest rise and the largest fall of a series, in either order."""
    rise = float(np.max(heat - np.minimum.accumulate(heat)))
    return rise, float(np.max(np.maximum.accumulate(heat) - heat))


def _by_temperature(heat: Array, width: float | None) -> tuple[Groups, list[str]]:
    low, span = float(heat.min()), float(np.ptp(heat))
    step = width or max(NARROWEST, span / MOST)
    number = np.minimum(((heat - low) / step).astype(int), max(int(np.ceil(span / step)) - 1, 0))
    groups = [np.flatnonzero(number == k) for k in np.unique(number)]
    return groups, [f"{heat[g].mean():.1f} degC" for g in groups]


def _by_time(items: Sequence[SpeedPlateau], top: float, width: float | None) -> tuple[Groups, list[str]]:
    t = np.array([p.t for p in items])
    if width is not None:
        number = ((t - t[0]) / width).astype(int)
        groups = [np.flatnonzero(number == k) for k in np.unique(number)]
    else:
        groups = _sweeps(items, top)
    return groups, [_span(t[g]) for g in groups]


def _sweeps(items: Sequence[SpeedPlateau], top: float) -> Groups:
    """Divide at long pauses, and after all speeds when the first one recurs."""
    v = np.array([p.speed for p in items])
    keys = [(int(k), bool(s > 0.0)) for k, s in zip(nearest_level(v, speed_levels(v, top)), v, strict=True)]
    everything = set(keys)
    ends = np.array([p.t + 0.5 * p.duration for p in items])
    starts = np.array([p.t - 0.5 * p.duration for p in items])
    pause = starts[1:] - ends[:-1]
    usual = float(np.median(pause + ends[1:] - starts[1:])) if pause.size else 0.0
    groups, current, seen = [], [0], {keys[0]}
    for i in range(1, len(items)):
        restarted = seen == everything and keys[i] == keys[current[0]]
        if pause[i - 1] > PAUSE * usual or restarted:
            groups.append(np.array(current))
            current, seen = [], set()
        current.append(i)
        seen.add(keys[i])
    groups.append(np.array(current))
    return groups


def _span(t: Array) -> str:
    scale, unit = (60.0, "min") if t.max() >= 120.0 else (1.0, "s")
    a, b = t.min() / scale, t.max() / scale
    return f"{a:.3g} {unit}" if b - a < 0.05 * max(b, 1e-9) else f"{a:.3g} to {b:.3g} {unit}"
