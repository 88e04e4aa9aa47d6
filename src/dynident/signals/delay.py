"""The delay between two records of the same signal, to a fraction of a sample, with its uncertainty."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Largest delay looked for, s.
LONGEST = 0.5
#: Smallest delay worth reporting, samples: a backward difference has half a sample of its own.
SMALLEST = 0.75
#: Smallest delay worth reporting, as a velocity error: omega times delay.
PHASE = 0.02
#: Part of the difference in power between the two signals that the shift must take away.
EXPLAINED = 0.1


@dataclass(frozen=True)
class Delay:
    """Delay of the second signal behind the first.

    Parameters
    ----------
    delay : float
        s, positive if the second signal comes later.
    deviation : float
        Standard deviation of the delay, s.
    correlation, at_zero : float
        Correlation with and without the shift.
    significant : bool
        More than 3 deviations, more than 0.75 samples, a phase error of more than 2 % at the signal's mean frequency, and at
        least a tenth of the difference between the signals.
    """

    delay: float
    deviation: float
    correlation: float
    at_zero: float
    significant: bool


def delay_between(first: Array, second: Array, rate: float) -> Delay | None:
    """Find the shift that aligns `second` with `first`.

    The peak of the cross-correlation is refined by the parabola through its three highest points. For correlation r at
    the peak, root mean square frequency omega and 2 B T independent samples, the deviation of the delay is
    ``sqrt((1 - r^2) / (2 B T)) / (r omega)``.

    Parameters
    ----------
    first, second : ndarray, shape (N,)
        Two records of the same signal.
    rate : float
        Sampling rate in Hz.

    Returns
    -------
    Delay or None
        None if the two are not the same signal at all (correlation below 0.5), or one is constant.
    """
    x, y = first - first.mean(), second - second.mean()
    if not (np.any(x) and np.any(y)):
        return None
    reach = min(int(LONGEST * rate), x.size // 4)
    lags = np.arange(-reach, reach + 1)
    # Each shift is normalised by what overlaps: in a short record the samples shifted out would hide the peak.
    begin, end = np.maximum(-lags, 0), x.size - np.maximum(lags, 0)
    power = [np.concatenate([[0.0], np.cumsum(z * z)]) for z in (x, y)]
    norm = np.sqrt((power[0][end] - power[0][begin]) * (power[1][end + lags] - power[1][begin + lags]))
    full = scipy.signal.correlate(y, x, mode="full", method="fft")
    window = full[x.size - 1 + lags] / np.maximum(norm, np.finfo(float).tiny)
    k = int(np.argmax(window))
    best = float(window[k])
    if best < 0.5 or k in (0, window.size - 1):
        return None
    left, right = float(window[k - 1]), float(window[k + 1])
    shift = float(lags[k] + 0.5 * (left - right) / (left - 2.0 * best + right))
    derivative = np.diff(x)
    omega = math.sqrt(float(derivative @ derivative) / float(x @ x)) * rate
    independent = max(omega * x.size / rate / math.pi, 1.0)  # 2 B T with B taken as the mean frequency
    deviation = math.sqrt(max(1.0 - best**2, 1e-12) / independent) / (best * omega)
    delay = shift / rate
    at_zero = float(window[reach])
    explains = 1.0 - best**2 < (1.0 - EXPLAINED) * (1.0 - max(at_zero, 0.0) ** 2)
    significant = abs(delay) > 3.0 * deviation and abs(shift) > SMALLEST and omega * abs(delay) > PHASE and explains
    return Delay(delay, deviation, best, at_zero, bool(significant))
