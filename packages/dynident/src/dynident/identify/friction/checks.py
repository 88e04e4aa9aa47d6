"""What friction data cannot show: directions that were not driven, efforts that hit their limit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Part of the samples that must move in a direction for it to count as driven.
DRIVEN = 0.01
#: Consecutive samples at the largest effort that are a limit and not a peak, and the part of all samples they make up;
#: above it the effort is simply constant (pure Coulomb friction without noise).
STUCK = 3
LIMITED = (0.002, 0.7)


def direction_note(name: str, v: Array) -> str | None:
    """Say when a joint was driven in one direction only."""
    slow = 1e-3 * float(np.max(np.abs(v), initial=0.0))
    forward, backward = float(np.mean(v > slow)), float(np.mean(v < -slow))
    if min(forward, backward) >= DRIVEN:
        return None
    way = "no" if max(forward, backward) < DRIVEN else "one"
    return (
        f"joint '{name}' was driven in {way} direction ({100 * forward:.1f} % of the samples forward, {100 * backward:.1f} % "
        "backward): its Coulomb friction cannot be told from an offset or gravity; drive it both ways"
    )


def limited(effort: Array) -> NDArray[np.bool_]:
    """Find samples at which the effort was cut off at a limit."""
    result = np.zeros(effort.size, dtype=bool)
    for end in (effort.max(), effort.min()):
        near = np.abs(effort - end) <= 1e-9 * max(abs(float(end)), 1e-300)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], near.astype(np.int8), [0]])))
        for first, last in zip(edges[::2], edges[1::2], strict=True):
            if last - first >= STUCK:
                result[first:last] = True
    return result if LIMITED[0] <= result.mean() <= LIMITED[1] else np.zeros_like(result)


def limit_note(name: str, cut: NDArray[np.bool_], used: bool) -> str:
    """Say what was done about a saturated effort."""
    what = "they bias the fit: cut them from the log" if used else "they were left out"
    return f"effort of joint '{name}' is saturated in {int(cut.sum())} samples ({100 * cut.mean():.1f} %); {what}"
