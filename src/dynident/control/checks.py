"""Checks of the numbers of a controller: one sentence each, naming the field, the value and the remedy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.errors import DynidentError, DynidentWarning, require
from dynident.mechanism import Mechanism

Array = NDArray[np.float64]
Numbers = float | tuple[float, ...]

WHOLE = 1e-6  # how far the ratio of two cycle times may be from a whole number


class ControlWarning(DynidentWarning):
    """The loops can be made as asked, but they will be close to their limits (small margins, slow cycles)."""


def per_actuator(values: ArrayLike, count: int, what: str) -> Array:
    """Return one number per actuator (or coordinate): a scalar holds for all of them.

    Parameters
    ----------
    values : array_like, () or (k,)
        Gain, limit or share.
    count : int
        Number of actuators k.
    what : str
        How to name it in an error.

    Returns
    -------
    ndarray, (k,)
        A fresh array.
    """
    array = numbers(values, what)
    if array.shape not in ((), (count,)):
        raise DynidentError(f"{what} has shape {array.shape}; give one number, or {count} (one per actuator or coordinate)")
    return np.broadcast_to(array, (count,)).copy()


def gain(
    owner: str, field: str, value: ArrayLike, *, above: bool = False, infinite: bool = False, signed: bool = False
) -> Numbers:
    """Return a scalar as float and a sequence as tuple, after checking finiteness and sign."""
    array = numbers(value, f"{owner}: {field}")
    if np.asarray(value).dtype == np.bool_:
        raise DynidentError(f"{owner}: {field} is {value!r}; give a number, or one per actuator")
    if array.ndim > 1 or array.size == 0:
        raise DynidentError(f"{owner}: {field} has shape {array.shape}; give one number, or one per actuator")
    kind = "a finite number" if signed else ("a number above zero" if above else "zero or a number above it")
    flat = np.atleast_1d(array)
    good = np.isfinite(flat) if signed else (flat > 0.0 if above else flat >= 0.0)
    good &= np.isfinite(flat) | (infinite & (flat > 0.0))
    if not good.all():
        bad = float(flat[int(np.argmin(good))])
        raise DynidentError(f"{owner}: {field} = {bad} must be {kind}; check its sign and unit")
    return float(array) if array.ndim == 0 else tuple(float(x) for x in array)


def cycle_time(owner: str, field: str, value: float) -> float:
    """Return a cycle time after checking that it is one number above zero."""
    checked = gain(owner, field, value, above=True)
    if not isinstance(checked, float):
        raise DynidentError(f"{owner}: {field} has {len(checked)} numbers; give one cycle time in seconds for all actuators")
    return checked


def dead_time(owner: str, field: str, value: float) -> float:
    """Return a delay after checking that it is one number, zero or above it."""
    checked = gain(owner, field, value)
    if not isinstance(checked, float):
        raise DynidentError(f"{owner}: {field} has {len(checked)} numbers; give one delay in seconds for all actuators")
    return checked


def no_room(owner: str, preload: ArrayLike, mechanism: Mechanism) -> None:
    """Refuse a preload on a robot that has no more motors than freedoms: no torques press it against itself."""
    k, n = len(mechanism.actuators), mechanism.dof
    if np.any(np.asarray(preload, dtype=np.float64)) and k <= n:
        raise DynidentError(
            f"{owner}: preload needs more motors than freedoms, but robot '{mechanism.name}' has {k} for {n}; leave it out"
        )


def whole_ratio(owner: str, slow: tuple[str, float], fast: tuple[str, float]) -> int:
    """Return how many cycles of the inner loop fit into one of the outer loop, a whole number of at least one."""
    ratio = slow[1] / fast[1]
    if ratio < 1.0 - WHOLE:
        raise DynidentError(
            f"{owner}: {fast[0]} = {fast[1]} s is longer than {slow[0]} = {slow[1]} s; the inner loop must not be slower"
        )
    if abs(ratio - round(ratio)) > WHOLE * ratio:
        raise DynidentError(
            f"{owner}: {slow[0]} = {slow[1]} s is {ratio:.6g} times {fast[0]} = {fast[1]} s; make it a whole multiple"
        )
    return round(ratio)


def optional_model(owner: str, field: str, value: object) -> None:
    """Refuse a model that is neither None nor a Mechanism."""
    if value is not None:
        require(value, Mechanism, f"{owner}: {field}")


def flag(owner: str, field: str, value: object) -> None:
    """Refuse what is not True or False."""
    if not isinstance(value, bool | np.bool_):
        raise DynidentError(f"{owner}: {field} = {value!r} must be True or False; give one of them")


def finite_scalar(owner: str, field: str, value: float) -> float:
    """Return one finite number."""
    array = numbers(value, f"{owner}: {field}")
    if array.ndim != 0 or not math.isfinite(float(array)):
        raise DynidentError(f"{owner}: {field} = {value} must be one finite number; give one")
    return float(array)
