"""Checks of numbers given to a friction model: one sentence each, naming the field, the value and the remedy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DescriptionError, LogError

Array = NDArray[np.float64]


def check_positive(model: str, **values: float) -> None:
    """Refuse values that are not finite and above zero.

    Parameters
    ----------
    model : str
        Name of the model, for the message.
    **values : float
        Values by field name.
    """
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0.0):
            raise DescriptionError(f"{model}: {name} = {value} must be a number above zero; check its sign and unit")


def check_not_negative(model: str, **values: float) -> None:
    """Refuse values that are not finite or below zero.

    Parameters
    ----------
    model : str
        Name of the model, for the message.
    **values : float
        Values by field name.
    """
    for name, value in values.items():
        if not (math.isfinite(value) and value >= 0.0):
            raise DescriptionError(f"{model}: {name} = {value} must be zero or a number above it; check its sign and unit")


def check_finite(model: str, **values: float) -> None:
    """Refuse values that are not finite.

    Parameters
    ----------
    model : str
        Name of the model, for the message.
    **values : float
        Values by field name.
    """
    for name, value in values.items():
        if not math.isfinite(value):
            raise DescriptionError(f"{model}: {name} = {value} is not a finite number; give a finite one")


def time_axis(t: ArrayLike) -> Array:
    """Return the times as an array after checking that they increase.

    Parameters
    ----------
    t : array_like, shape (N,)
        Times [s], strictly increasing, N >= 1.

    Returns
    -------
    ndarray, shape (N,)
        The same times.
    """
    times = np.asarray(t, dtype=np.float64)
    if times.ndim != 1 or times.size == 0:
        raise LogError(f"t has the shape {times.shape}; give a one-dimensional array of at least one time")
    if not np.isfinite(times).all():
        raise LogError(f"t[{int(np.argmin(np.isfinite(times)))}] is not a finite number; remove the sample")
    steps = np.diff(times)
    if (steps <= 0.0).any():
        k = int(np.argmax(steps <= 0.0))
        raise LogError(
            f"t must increase, but t[{k}] = {times[k]} s and t[{k + 1}] = {times[k + 1]} s; sort or split the samples"
        )
    return times


def signal(name: str, values: ArrayLike, count: int) -> Array:
    """Return one value per time after checking size and finiteness; a single number is held over all times.

    Parameters
    ----------
    name : str
        Name of the signal, for the message.
    values : array_like, shape (N,) or scalar
        The values.
    count : int
        Number of times N.

    Returns
    -------
    ndarray, shape (N,)
        The values, one per time.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.shape not in ((), (count,)):
        raise LogError(
            f"{name} has the shape {array.shape}, but there are {count} times; give one value per time or one number"
        )
    if not np.isfinite(array).all():
        where = "" if array.ndim == 0 else f"[{int(np.argmin(np.isfinite(array)))}]"
        raise LogError(f"{name}{where} is not a finite number; remove the sample or repair the signal")
    return np.broadcast_to(array, (count,))


def step_length(dt: float) -> float:
    """Return the time step after checking that it is above zero.

    Parameters
    ----------
    dt : float
        Time step [s].

    Returns
    -------
    float
        The same step.
    """
    if not (math.isfinite(dt) and dt > 0.0):
        raise LogError(f"dt = {dt} s must be above zero; give the sampling time in seconds")
    return float(dt)
