"""A sampled motion as a curve: quintics between the samples, so that q, v and a are met at each and never jump.

This is how motions from inverse kinematics (lines, circles, letters, sines in the workspace) enter joins and plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError
from dynident.mechanics.motion import Motion
from dynident.trajectory.family import CurveBase, State, plain
from dynident.trajectory.polynomial import hermite

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Interpolated(CurveBase):
    """The curve through a motion's samples; between them the error falls with the sixth power of their distance.

    Parameters
    ----------
    motion : Motion
        Samples, at least two, in increasing time.
    """

    _kind = "interpolated"

    motion: Motion

    def __post_init__(self) -> None:
        if not isinstance(self.motion, Motion) or self.motion.t.size < 2 or not np.all(np.diff(self.motion.t) > 0.0):
            raise DynidentError("motion must have at least two samples in increasing time")

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return float(self.motion.t[-1] - self.motion.t[0])

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return self.motion.dof

    def _at(self, t: Array) -> State:
        m = self.motion
        knots = m.t - m.t[0]
        time = np.clip(t, 0.0, knots[-1])
        k = np.clip(np.searchsorted(knots, time, side="right") - 1, 0, knots.size - 2)
        h = np.diff(knots)[k][:, None]
        u = (time - knots[k]) / h[:, 0]
        ends = [m.q[k], m.v[k] * h, m.a[k] * h**2, m.q[k + 1], m.v[k + 1] * h, m.a[k + 1] * h**2]
        out = []
        for order in range(3):
            weights = hermite(u, order)
            out.append(np.asarray(sum(weights[:, i : i + 1] * x for i, x in enumerate(ends)) / h**order))
        outside = np.abs(t - time) > 1e-9 * (1.0 + knots[-1])
        out[1][outside] = out[2][outside] = 0.0
        return out[0], out[1], out[2]

    def _plain(self) -> dict[str, Any]:
        return {key: plain(getattr(self.motion, key)) for key in ("t", "q", "v", "a")}
