"""Watching every sample: limits, and the residual between measured and predicted efforts.

    |effort - predicted(motion)| > tolerance max|predicted|   for several samples in a row: stop, something is in the way

A channel that hardly moves is left out: dry friction then holds any effort up to its own size.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dynident.errors import LinkError
from dynident.link.controller import Identity
from dynident.link.messages import Samples
from dynident.mechanics import Motion

Array = NDArray[np.float64]
Predict = Callable[[Motion], Array]

IN_A_ROW = 5  # samples before a residual counts
SLACK = 0.02  # of positions beyond their limits [rad, m]
HARDLY = 0.05  # of its largest speed, below which a channel counts as standing
SETTLING = 0.1  # after a standstill, in which friction still changes [s]
FASTER = 1.3  # speed over its limit at which the motion stops


class Watch:
    """Checks the samples of one motion.

    Parameters
    ----------
    identity : Identity
        Limits and channels of the controller.
    motion : Motion
        What the robot is asked to do.
    predict : callable, optional
        Returns the efforts (N, channels) of a motion, in the order and unit of the channels.
    tolerance : float
        Share of the largest predicted effort.
    """

    def __init__(self, identity: Identity, motion: Motion, predict: Predict | None = None, tolerance: float = 0.5) -> None:
        self.identity, self._t = identity, motion.t - motion.t[0]
        self._predicted = None if predict is None else np.asarray(predict(motion), dtype=np.float64)
        if self._predicted is not None and self._predicted.shape != (len(motion), len(identity.channels)):
            raise LinkError(
                f"the model predicts {self._predicted.shape[-1]} efforts for {len(identity.channels)} measured channels; "
                "give the model of this robot"
            )
        self._bound = np.inf if self._predicted is None else tolerance * np.maximum(np.abs(self._predicted).max(axis=0), 1e-9)
        self._moves = _moving(motion, len(identity.channels))
        self._row = np.zeros(len(identity.channels), dtype=np.int64)
        self._plain = identity.position_side == "joint" and identity.channels == identity.coordinates
        self.residual = np.zeros(len(identity.channels))  # largest share of the bound so far

    def check(self, samples: Samples) -> None:
        """Raise the sentence that says what is wrong with some samples.

        Parameters
        ----------
        samples : Samples
            What was measured.
        """
        one = self.identity
        if self._plain and one.lower is not None and one.upper is not None and one.velocity is not None:
            q, v = samples.position, samples.velocity
            low, high = np.nanmin(q, axis=0, initial=np.inf), np.nanmax(q, axis=0, initial=-np.inf)
            outside = (low < one.lower - SLACK) | (high > one.upper + SLACK)
            if outside.any():
                i = int(outside.argmax())
                raise LinkError(
                    f"joint '{one.channels[i]}' is outside its limits {one.lower[i]:.4g} to {one.upper[i]:.4g}: stopped"
                )
            fast = np.nanmax(np.abs(v), axis=0, initial=0.0) > FASTER * one.velocity + SLACK
            if fast.any():
                i = int(fast.argmax())
                raise LinkError(f"joint '{one.channels[i]}' is faster than its limit {one.velocity[i]:.4g}/s: stopped")
        if self._predicted is not None:
            self._residuals(samples)

    def _residuals(self, samples: Samples) -> None:
        assert self._predicted is not None
        rows = np.flatnonzero(np.isfinite(samples.motion) & np.isfinite(samples.effort).all(axis=1))
        if not rows.size:
            return
        wanted = np.column_stack([np.interp(samples.motion[rows], self._t, column) for column in self._predicted.T])
        share = np.abs(samples.effort[rows] - wanted) / self._bound
        near = np.clip(np.searchsorted(self._t, samples.motion[rows]), 0, self._t.size - 1)
        self.residual = np.maximum(self.residual, np.where(self._moves[near], share, 0.0).max(axis=0))
        for k, beyond in enumerate((share > 1.0) & self._moves[near]):
            self._row = np.where(beyond, self._row + 1, 0)
            if (self._row >= IN_A_ROW).any():
                i = int(self._row.argmax())
                raise LinkError(
                    f"collision? effort of '{self.identity.channels[i]}' is {samples.effort[rows[k], i]:.4g}, predicted are "
                    f"{wanted[k, i]:.4g} (t = {samples.motion[rows[k]]:.3f} s of the cycle): stopped"
                )


def _moving(motion: Motion, channels: int) -> NDArray[np.bool_]:
    """Tell at which points each channel moves and has done so for a while, (N, channels)."""
    speed = np.abs(motion.v)
    slow = speed < HARDLY * np.maximum(speed.max(axis=0), 1e-12)
    if channels != motion.dof:  # channels are motors that turn with several coordinates
        slow = np.repeat(slow.all(axis=1)[:, None], channels, axis=1)
    wide = max(1, round(SETTLING / float(np.median(np.diff(motion.t)))))
    out: NDArray[np.bool_] = ~slow
    for k in range(1, wide + 1):
        out[k:] &= ~slow[:-k]
        out[:-k] &= ~slow[k:]
    return out
