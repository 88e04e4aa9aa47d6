"""Irregular clocks: a log at uniform times, by its stamps or in spite of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import NDArray

from dynident.errors import LogError
from dynident.signals.log import Log

Array = NDArray[np.float64]


def roughness(q: Array) -> Array:
    """Third differences (std, per channel): what remains of a smooth motion at the highest frequencies is noise."""
    return np.asarray(np.sqrt(np.mean(np.diff(q, 3, axis=0) ** 2, axis=0)))


def stamps_are_noise(log: Log) -> tuple[bool, float]:
    """Decide whether the sampling was uniform and only the time stamps jitter."""
    uniform = np.linspace(log.t[0], log.t[-1], len(log))
    as_stamped = scipy.interpolate.CubicSpline(log.t, log.position, axis=0)(uniform)
    even, stamped = roughness(log.position), roughness(as_stamped)
    use = (even > 0.0) & (stamped > 0.0)
    ratio = float(np.median(stamped[use] / even[use])) if use.any() else 1.0
    return ratio >= 1.0, ratio


def to_uniform(log: Log, rate: float) -> Log:
    """Interpolate to a uniform clock: positions by a cubic spline, the other channels linearly."""
    if log.duration * rate > max(100 * len(log), 10**6):
        raise LogError(f"{rate:g} Hz would make {log.duration * rate:.3g} samples of {len(log)}; give a lower rate")
    count = int(np.floor(log.duration * rate * (1.0 + 1e-12))) + 1
    t = log.t[0] + np.arange(count) / rate
    t[-1] = min(t[-1], log.t[-1])

    def linear(values: Array) -> Array:
        return np.column_stack([np.interp(t, log.t, values[:, j]) for j in range(values.shape[1])])

    return replace(
        log,
        t=t,
        position=scipy.interpolate.CubicSpline(log.t, log.position, axis=0)(t),
        effort=linear(log.effort),
        velocity=None if log.velocity is None else linear(log.velocity),
        acceleration=None if log.acceleration is None else linear(log.acceleration),
        temperature=None if log.temperature is None else linear(log.temperature),
        reference=None if log.reference is None else linear(log.reference),
    )
