"""Clock corrections: stamps in two parts, repeated rows, other sampling times, irregular steps, delayed efforts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import per_actuator
from dynident.errors import LogError
from dynident.signals.log import Log

#: Smallest share of samples in rows without positions for which a quantity counts as logged in separate rows.
SPARSE = 0.9


def without_repeats(
    clock: Array, arrays: dict[str, Any], rate: float | None, name: str, notes: list[str]
) -> tuple[Array, dict[str, Any]]:
    """Remove rows that repeat the previous one; replace time stamps coarser than the sampling by sample numbers."""
    same = np.diff(clock) == 0.0
    if not same.any() or np.all(same):
        return clock, arrays
    for values in arrays.values():
        same &= np.all((values[1:] == values[:-1]) | np.isnan(values[1:]) & np.isnan(values[:-1]), axis=1)
    kept = np.concatenate([[True], ~same])
    if same.any():
        notes.append(f"{int(same.sum())} duplicate rows removed")
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
    """Interpolate quantities logged in separate rows linearly to the times of the position.

    PlotJuggler writes such files: each row has values of one topic only.
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


def roughness(q: Array) -> Array:
    """RMS of the third differences per channel: at the highest frequencies a smooth motion contains only noise."""
    return np.asarray(np.sqrt(np.mean(np.diff(q, 3, axis=0) ** 2, axis=0)))


def stamps_are_noise(log: Log) -> tuple[bool, float]:
    """Return whether the sampling was uniform with jittering stamps, and the ratio of roughness."""
    uniform = np.linspace(log.t[0], log.t[-1], len(log))
    as_stamped = scipy.interpolate.CubicSpline(log.t, log.position, axis=0)(uniform)
    even, stamped = roughness(log.position), roughness(as_stamped)
    use = (even > 0.0) & (stamped > 0.0)
    ratio = float(np.median(stamped[use] / even[use])) if use.any() else 1.0
    return ratio >= 1.0, ratio


def to_uniform(log: Log, rate: float) -> Log:
    """Interpolate to a uniform clock: positions by a cubic spline, the other channels linearly."""
    if log.duration * rate > max(100 * len(log), 10**6):
        raise LogError(f"{rate:g} Hz would make {log.duration * rate:.3g} samples of {len(log)}; give a lower rate")
    count = int(np.floor(log.duration * rate * (1.0 + 1e-12))) + 1
    t = log.t[0] + np.arange(count) / rate
    t[-1] = min(t[-1], log.t[-1])

    def linear(values: Array) -> Array:
        return np.column_stack([np.interp(t, log.t, values[:, j]) for j in range(values.shape[1])])

    return replace(
        log,
        t=t,
        position=scipy.interpolate.CubicSpline(log.t, log.position, axis=0)(t),
        effort=linear(log.effort),
        velocity=None if log.velocity is None else linear(log.velocity),
        acceleration=None if log.acceleration is None else linear(log.acceleration),
        temperature=None if log.temperature is None else linear(log.temperature),
        reference=None if log.reference is None else linear(log.reference),
    )


def aligned(log: Log, delay: ArrayLike) -> Log:
    """Return the log with efforts effort(t + delay), linearly interpolated; times outside their range are removed."""
    late = per_actuator(delay, len(log.joints), "delay")
    if not np.isfinite(late).all() or np.max(np.abs(late)) >= log.duration:
        raise LogError(f"delay is {late.tolist()} s; give seconds, less than the log has ({log.duration:.4g} s)")
    effort = np.stack([np.interp(log.t + d, log.t, y) for d, y in zip(late, log.effort.T, strict=True)], axis=1)
    covered = np.flatnonzero((log.t + min(late.min(), 0.0) >= log.t[0]) & (log.t + max(late.max(), 0.0) <= log.t[-1]))
    told = f"efforts are shifted by {', '.join(f'{d:g}' for d in np.unique(late))} s"
    notes = log.provenance.get("conversions")
    provenance = {**log.provenance, "conversions": [*(notes if isinstance(notes, list) else []), told]}
    return replace(log, effort=effort, provenance=provenance).rows(int(covered[0]), int(covered[-1]) + 1)
