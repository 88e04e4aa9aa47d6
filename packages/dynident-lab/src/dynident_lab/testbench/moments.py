"""Friction power of a log from moments of the speed, the sufficient data of a cycle [Pagani2022, eqs. 35, 129, 155].

W = f_cold(v) v = sum_k a_k |v|^(k+1),        mean W = sum_k a_k mean |v|^(k+1)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident.signals import Log
from dynident_lab.testbench.detection import smooth_speeds

BIN = 15.0  # averaging time of friction power [s]
SMOOTH = 0.25  # shortest plateau assumed in the smoothing of speeds [s]
DEGREE = 3  # degree of the cold law


@dataclass(frozen=True, eq=False)
class SpeedMoments:
    """Means of powers of the speed over time intervals: sufficient for friction power."""

    joints: tuple[str, ...]  # Channels
    t: Array  # Edges of the intervals [s]
    moments: Array  # Means of |v|, |v|^2, ... and |v|^8 over each interval

    @classmethod
    def of(cls, log: Log, width: float = BIN) -> SpeedMoments:
        """Return the moments of a log."""
        if not width > 0.0:
            raise IdentificationError(f"width = {width} of a segment must be above zero; 15 s is usual")
        v = np.abs(smooth_speeds(log, SMOOTH)[0])
        count = max(1, round(log.duration / width))
        edges = np.linspace(log.t[0], log.t[-1], count + 1)
        at = np.unique(np.clip(np.searchsorted(log.t, edges[:-1]), 0, len(log) - 1))
        size = np.diff(np.append(at, len(log)))
        means = [np.add.reduceat(v**k, at, axis=0) / size[:, None] for k in range(1, 2 * DEGREE + 3)]
        return cls(log.joints, np.append(log.t[at], log.t[-1]), np.stack(means, axis=-1))

    def power(self, joint: str, coefficients: Sequence[float]) -> Array:
        """Return the mean friction power of a joint in every interval."""
        a = np.asarray(coefficients, dtype=np.float64)
        return np.asarray(self._of(joint)[:, : a.size] @ a)

    def rms_power(self, joint: str, coefficients: Sequence[float]) -> Array:
        """Return the root mean square of the friction power of a joint in every interval [Pagani2022, eq. 155]."""
        square = np.convolve(coefficients, coefficients)  # coefficients of the powers |v|^2, |v|^3, ...
        return np.sqrt(np.maximum(self._of(joint)[:, 1 : square.size + 1] @ square, 0.0))

    def _of(self, joint: str) -> Array:
        if joint not in self.joints:
            raise IdentificationError(f"no speeds of joint '{joint}'; available joints are {', '.join(self.joints)}")
        return np.asarray(self.moments[:, self.joints.index(joint)])


def friction_power(log: Log, joint: str, coefficients: Sequence[float]) -> float:
    """Return the mean friction power of a joint during a log [Pagani2022, eq. 129]."""
    found = SpeedMoments.of(log)
    return float(found.power(joint, coefficients) @ np.diff(found.t) / (found.t[-1] - found.t[0]))
