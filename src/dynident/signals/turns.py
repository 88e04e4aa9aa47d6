"""Angles that were wrapped into one turn, made continuous again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
TURN = 2.0 * np.pi
#: No joint is faster (rad/s): a step that is a whole turn give or take this speed is none of the motion.
FASTEST = 50.0
#: Samples that are looked at together: a long log needs no second copy of itself.
BLOCK = 1 << 15


def unwrapped(clock: Array, angles: Array) -> tuple[Array, list[int]]:
    """Return angles (N, n) in rad without jumps of a whole turn between neighbouring samples, and the channels that had them.

        q_k = w_k - 2 pi sum_(j <= k) s_j,   s_j = +-1 where |w_j - w_(j-1) -+ 2 pi| <= 50 rad/s (t_j - t_(j-1)) < pi, else 0

    Channels that leave one turn were not wrapped into it, and stay. Samples that are missing (NaN) are passed over.
    """
    result, channels = angles, list[int]()
    for k in np.flatnonzero(_may_jump(angles)):
        column = angles[:, k]
        known = np.flatnonzero(np.isfinite(column))
        step, room = np.diff(column[known]), FASTEST * np.diff(clock[known])
        jump = (np.abs(np.abs(step) - TURN) <= room) & (room < np.pi)
        if not jump.any() or np.ptp(column[known]) > (1.0 + 1e-6) * TURN:
            continue
        result = angles.copy() if result is angles else result
        turns = np.cumsum(np.where(jump, np.sign(step), 0.0))
        result[known[1:], k] -= TURN * turns
        channels.append(int(k))
    return result, channels


def _may_jump(angles: Array) -> Array:
    """Whether each channel (n,) has a step of more than half a turn, the least that counts, or misses samples."""
    found = np.zeros(angles.shape[1], dtype=bool)
    for start in range(0, len(angles), BLOCK):
        step = np.diff(angles[start : start + BLOCK + 1], axis=0)
        found |= ~(np.abs(step) < np.pi).all(axis=0)  # NaN too
    return found
