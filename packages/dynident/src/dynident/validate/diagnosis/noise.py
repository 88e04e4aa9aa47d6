"""Noise of the efforts, from differences between repetitions or from the spectrum above the band.

A motion with a period of p samples shows its noise in the band of the fit,

    sigma^2 = mean (tau(t + p) - tau(t))^2 / 2.

Otherwise the noise density above the cut-off f_c of the motion is assumed in the band up to f_b too,

    sigma^2 = mean (tau - low-passed tau)^2 f_b / (f_N - f_c),                    f_N: half the sampling rate.
"""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array
from dynident.signals.filters import low_passed
from dynident.signals.preparation import Prepared, period_of

LEAST = 5e-4  # of the efforts: less noise indicates filtered efforts or commands
MEDIAN = 0.455  # of squared normal numbers: robust to jumps of friction
ABOVE = 1.25  # times the cut-off of the motion: half the sampling rate must be higher for a spectrum above it


def noise_floor(prepared: Prepared) -> tuple[float, str]:
    """Return the relative noise of the efforts in the band of the rows, and its origin; NaN if not visible."""
    rate, band = prepared.rate, prepared.decimator.cutoff
    whole = float(np.sum(np.mean(prepared.effort**2, axis=0)))
    period = period_of(prepared.motion.q, prepared.motion.v)
    if whole == 0.0:
        return float("nan"), ""
    if np.isfinite(period) and len(prepared) > 1.2 * period + 2.0 * rate / band:
        smooth, edge = _low(prepared.effort, rate, min(band, 0.45 * rate)), int(rate / band)
        at = np.arange(edge, len(prepared) - edge - round(period))
        later = np.stack([np.interp(at + period, np.arange(len(x)), x) for x in smooth.T], axis=1)
        square = np.median((later - smooth[at]) ** 2, axis=0) / MEDIAN
        return float(np.sqrt(0.5 * np.sum(square) / whole)), "repetitions of the motion"
    cutoff = prepared.cutoff.frequency
    if ABOVE * cutoff > 0.5 * rate:
        return float("nan"), ""
    removed = prepared.effort - _low(prepared.effort, rate, cutoff)
    density = np.median(removed**2, axis=0) / MEDIAN / (0.5 * rate - cutoff)
    floor = float(np.sqrt(np.sum(density) * min(band, cutoff) / whole))
    return (floor, "the spectrum above the motion") if floor > LEAST else (float("nan"), "")


def _low(x: Array, rate: float, cutoff: float) -> Array:
    return low_passed(x, 1.0 / rate, cutoff)
