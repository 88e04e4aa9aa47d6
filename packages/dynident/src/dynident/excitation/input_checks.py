"""Checks of what users pass to excitation: a message with the field, the value and the remedy."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.checks import numbers, shown
from dynident.errors import DynidentError

MOST = 12_000_000  # numbers per array: two million samples of six axes
CYCLES = 1_000_000
LARGEST = 1e9  # rad, m and their rates: beyond it nothing is a robot, and polynomials overflow


def text(value: Any, what: str) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise DynidentError(f"{what} is {shown(value)}; give a text")
    return value


def motion_curve(value: Any, what: str) -> None:
    """Refuse what is not a motion of `dynident.trajectory`."""
    if isinstance(value, type) or not callable(value) or not all(hasattr(value, name) for name in ("duration", "dof")):
        raise DynidentError(f"{what} is {shown(value)}; give a motion of dynident.trajectory")


def motion_family(value: Any, what: str) -> None:
    """Refuse what is not a family of motions of `dynident.trajectory`."""
    if isinstance(value, type) or not all(hasattr(value, name) for name in ("basis", "duration", "highest", "size")):
        raise DynidentError(f"{what} is {shown(value)}; give a family of dynident.trajectory, such as Fourier(0.1, 5)")


def per_coordinate(value: Any, n: int, what: str) -> Array:
    """Return n numbers that are not NaN; a single one counts for all."""
    array = numbers(value, what)
    if array.shape not in ((), (1,), (n,)):
        raise DynidentError(f"{what} has shape {array.shape}; give {n} numbers, or one for all")
    if np.isnan(array).any():
        raise DynidentError(f"{what} holds NaN; give numbers")
    return np.array(np.broadcast_to(array, (n,)))


def fits(seconds: float, rate: float, columns: int, what: str) -> None:
    """Refuse a motion that has more samples than can be meant."""
    if not seconds * rate * columns <= MOST:
        raise DynidentError(
            f"{what} of {seconds:.6g} s at {rate:.6g} samples per second has more than {MOST // columns} samples, the most for "
            f"{columns} coordinates; lower the rate or shorten it"
        )
