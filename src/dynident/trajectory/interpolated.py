"""A sampled motion as a curve: quintics between the samples, so that q, v and a are met at each and never jump.

This is how motions from inverse kinematics (lines, circles, letters, sines in the workspace) enter joins and plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.mechanics.motion import Motion
from dynident.trajectory.family import sample, times
from dynident.trajectory.polynomial import hermite

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Interpolated:
    """The curve through a motion's samples; between them the error falls with the sixth power of their distance.

    Parameters
    ----------
    motion : Motion
        Samples, at least two, in increasing time.
    """

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

    def __call__(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return q, v, a.

        Parameters
        ----------
        t : array_like, (N,)
            Time since the first sample [s].

        Returns
        -------
        q, v, a : ndarray, (N, n)
            Positions, velocities and accelerations; at rest outside.
        """
        m = self.motion
        knots = m.t - m.t[0]
        time = np.clip(times(t), 0.0, knots[-1])
        k = np.clip(np.searchsorted(knots, time, side="right") - 1, 0, knots.size - 2)
        h = np.diff(knots)[k][:, None]
        u = (time - knots[k]) / h[:, 0]
        ends = [m.q[k], m.v[k] * h, m.a[k] * h**2, m.q[k + 1], m.v[k + 1] * h, m.a[k + 1] * h**2]
        out = []
        for order in range(3):
            weights = hermite(u, order)
            out.append(np.asarray(sum(weights[:, i : i + 1] * x for i, x in enumerate(ends)) / h**order))
        outside = np.abs(np.asarray(t, dtype=np.float64).ravel() - time) > 1e-9 * (1.0 + knots[-1])
        out[1][outside] = out[2][outside] = 0.0
        return out[0], out[1], out[2]

    def sample(self, rate: float) -> Motion:
        """Return the motion at another rate.

        Parameters
        ----------
        rate : float
            Samples per second [Hz].

        Returns
        -------
        Motion
            Positions, velocities and accelerations.
        """
        return sample(self, rate)

    def spec(self) -> dict[str, Any]:
        """Return plain data.

        Returns
        -------
        dict
            Plain data, which `from_spec` reads back.
        """
        m = self.motion
        return {"kind": "interpolated", **{key: getattr(m, key).tolist() for key in ("t", "q", "v", "a")}}
