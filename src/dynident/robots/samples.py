"""Reading the arguments of closed forms: samples first, one sample as one row."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.errors import DynidentError

Array = NDArray[np.float64]


def columns(values: ArrayLike, width: int, what: str) -> Array:
    """Return numbers as (N, width), one sample as one row."""
    array = numbers(values, what)
    array = array[None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[1] != width:
        raise DynidentError(f"{what} has shape {np.shape(values)}; give (samples, {width})")
    if not np.all(np.isfinite(array)):
        raise DynidentError(f"{what} is not finite at sample {int(np.argwhere(~np.isfinite(array))[0][0])}")
    return array
