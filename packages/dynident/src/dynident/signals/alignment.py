"""Efforts that were logged later than the positions, brought to the same time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from dynident.checks import per_actuator
from dynident.errors import LogError
from dynident.signals.log import Log


def aligned(log: Log, delay: ArrayLike) -> Log:
    """Return the log with efforts effort(t + delay), linear between samples; times that they do not cover are left out."""
    late = per_actuator(delay, len(log.joints), "delay")
    if not np.isfinite(late).all() or np.max(np.abs(late)) >= log.duration:
        raise LogError(f"delay is {late.tolist()} s; give seconds, less than the log has ({log.duration:.4g} s)")
    effort = np.stack([np.interp(log.t + d, log.t, y) for d, y in zip(late, log.effort.T, strict=True)], axis=1)
    covered = np.flatnonzero((log.t + min(late.min(), 0.0) >= log.t[0]) & (log.t + max(late.max(), 0.0) <= log.t[-1]))
    told = f"efforts are taken {', '.join(f'{d:g}' for d in np.unique(late))} s later"
    notes = log.provenance.get("conversions")
    provenance = {**log.provenance, "conversions": [*(notes if isinstance(notes, list) else []), told]}
    return replace(log, effort=effort, provenance=provenance).rows(int(covered[0]), int(covered[-1]) + 1)
