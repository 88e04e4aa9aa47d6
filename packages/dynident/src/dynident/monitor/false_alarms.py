"""How high a threshold must be for a stated rate of false alarms.

    rate = sum_i 2 nu_i exp(-z^2 / 2),    nu = K / (2 pi sqrt(2))           [Rice1945]

nu is how often white noise behind Butterworth's filter of third order and bandwidth K crosses zero upward: the second moment
of its spectrum 1 / (1 + (w / K)^6) is K^2 / 2 of the zeroth. Sampling only makes crossings rarer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynident.errors import DescriptionError

HOUR = 3600.0


def false_alarm_rate(z: float, gains: ArrayLike) -> float:
    """Return the false alarms per hour of all joints, observed with `gains` (n,) [1/s], at a threshold of `z` deviations."""
    K = np.asarray(gains, dtype=np.float64)
    return float(HOUR * np.sum(K) / (np.sqrt(2.0) * np.pi) * np.exp(-0.5 * z * z))


def alarm_threshold(rate: float, gains: ArrayLike) -> float:
    """Return the threshold in standard deviations for a `rate` of false alarms per hour, the inverse of `false_alarm_rate`.

    `gains` (n,) are those of the observers [1/s].
    """
    most = false_alarm_rate(0.0, gains)
    if not 0.0 < rate < most:
        raise DescriptionError(f"false_alarms is {rate:g} per hour; give a number above 0 and below {most:.3g}")
    return float(np.sqrt(2.0 * np.log(most / rate)))
