"""Checks of numbers given to a drive: one sentence each, naming the field, the value and the remedy."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.errors import DescriptionError, DynidentError

Array = NDArray[np.float64]


def number(
    what: str, value: object, *, least: float | None = None, above: float | None = None, infinite: bool = False, unit: str = ""
) -> float:
    """Return a number after checking that it is one, and that it is large enough."""
    wanted = f"a number{f' [{unit}]' if unit else ''}"
    if least is not None:
        wanted += f" of at least {least:g}"
    if above is not None:
        wanted += f" above {above:g}"
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise DescriptionError(f"{what} is {value!r}; give {wanted}")
    result = float(value)
    finite = math.isfinite(result) or (infinite and result == math.inf)
    if not finite or (least is not None and result < least) or (above is not None and result <= above):
        raise DescriptionError(f"{what} is {result:g}; give {wanted}")
    return result


def row(what: str, values: object, *, least: float | None = None, above: float | None = None) -> tuple[float, ...]:
    """Return a tuple of checked numbers; a single number becomes a tuple of one."""
    if isinstance(values, str | bytes | dict) or not isinstance(values, Iterable):
        values = (values,)
    return tuple(number(f"{what}[{i}]", value, least=least, above=above) for i, value in enumerate(values))


def samples(what: str, values: ArrayLike, count: int | None = None) -> Array:
    """Return a one-dimensional signal after checking its length and that it is finite."""
    array = numbers(values, what)
    if array.ndim != 1 or array.size == 0 or (count is not None and array.size != count):
        wanted = "a one-dimensional array" if count is None else f"{count} values, one per sample"
        raise DynidentError(f"{what} has the shape {array.shape}; give {wanted}")
    if not np.isfinite(array).all():
        raise DynidentError(f"{what}[{int(np.argmin(np.isfinite(array)))}] is not a finite number; remove the sample")
    return array
