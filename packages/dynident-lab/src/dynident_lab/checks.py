"""Checks of arguments of thermal models and fits of single axes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import is_finite, numbers
from dynident.errors import DescriptionError, DynidentError


def finite(owner: str, **values: float) -> None:
    """Refuse fields that are not finite."""
    for name, value in values.items():
        if not is_finite(value):
            raise DescriptionError(f"{owner}: {name} = {value} is not a finite number; give a finite one")


def samples(what: str, values: ArrayLike, count: int | None = None) -> Array:
    """Return a one-dimensional signal that is finite and has the given number of samples."""
    array = numbers(values, what)
    if array.ndim != 1 or array.size == 0 or (count is not None and array.size != count):
        wanted = "a one-dimensional array" if count is None else f"{count} values, one per sample"
        raise DynidentError(f"{what} has the shape {array.shape}; give {wanted}")
    if not np.isfinite(array).all():
        raise DynidentError(f"{what}[{int(np.argmin(np.isfinite(array)))}] is not a finite number; remove the sample")
    return array
