"""Checks of arguments: one sentence each, naming the field, the value and the remedy.

Fields of a description (a law, a drive, a controller) raise `DescriptionError`, samples of a log `LogError`; both are
`DynidentError`. Modules with their own error class pass it as `kind`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import DescriptionError, DynidentError, LogError

Kind = type[DynidentError]

HUGE = 10**300  # integers beyond it are no float64
LARGEST = 2**53  # integers up to it are exact as float64
MOST = 1_000_000  # actuators or coordinates


def shown(value: object) -> str:
    """Return a value formatted for a message."""
    if isinstance(value, np.ndarray) and value.size > 4:
        return f"an array of shape {value.shape}"
    try:
        text = " ".join(repr(value).split())
    except Exception:  # integers of thousands of digits, objects whose repr fails
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= 60 else f"{text[:57]}..."


# ---- numbers of a description ------------------------------------------------------------------------------------------


def number(
    what: str,
    value: object,
    *,
    least: float | None = None,
    above: float | None = None,
    infinite: bool = False,
    unit: str = "",
    kind: Kind = DescriptionError,
) -> float:
    """Return one real number that is `least` or more, or `above` a value; infinity only if `infinite`."""
    wanted = f"a number{f' [{unit}]' if unit else ''}"
    if least is not None:
        wanted += f" of at least {least:g}"
    if above is not None:
        wanted += f" above {above:g}"
    given = plain(value)
    real = isinstance(given, int | float | np.integer | np.floating) and not isinstance(given, bool)
    if not real or (isinstance(given, int) and abs(given) > HUGE):
        raise kind(f"{what} is {shown(given)}; give {wanted}")
    result = float(given)
    finite = math.isfinite(result) or (infinite and not math.isnan(result))
    if not finite or (least is not None and result < least) or (above is not None and result <= above):
        raise kind(f"{what} is {result:g}; give {wanted}")
    return result


def whole(what: str, value: object, *, least: int = -LARGEST, most: float = LARGEST, kind: Kind = DynidentError) -> int:
    """Return one whole number from `least` to `most`, which may be infinite."""
    given = plain(value)
    good = isinstance(given, int | np.integer) and not isinstance(given, bool)
    if not good or not least <= given <= most:
        bounds = f" from {least} to {most}" if most < LARGEST or (good and given > most) else ""
        bounds = bounds or (f", {least} or more" if least > -LARGEST else "")
        raise kind(f"{what} is {shown(given)}; give a whole number{bounds}")
    return int(given)


def plain(value: Any) -> Any:
    """Return the number of an array without dimensions, which NumPy's functions return; other values unchanged."""
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value


def real(what: str, value: object) -> float:
    """Return one real number, which may be infinite or undefined."""
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise DescriptionError(f"{what} is {value!r}; give a number")
    return float(value)


def row(what: str, values: object, *, least: float | None = None, above: float | None = None) -> tuple[float, ...]:
    """Return a tuple of numbers; a single number becomes a tuple of one."""
    if isinstance(values, str | bytes | dict) or not isinstance(values, Iterable):
        values = (values,)
    return tuple(number(f"{what}[{i}]", value, least=least, above=above) for i, value in enumerate(values))


def gain(
    owner: str, field: str, value: ArrayLike, *, above: bool = False, infinite: bool = False, signed: bool = False
) -> float | tuple[float, ...]:
    """Return one number, or a tuple with one per actuator: zero or more, `above` zero, or `signed`."""
    array = numbers(value, f"{owner}: {field}")
    if np.asarray(value).dtype == np.bool_:
        raise DescriptionError(f"{owner}: {field} is {value!r}; give a number, or one per actuator")
    if array.ndim > 1 or array.size == 0:
        raise DescriptionError(f"{owner}: {field} has shape {array.shape}; give one number, or one per actuator")
    kind = "a finite number" if signed else ("a number above zero" if above else "zero or a number above it")
    flat = np.atleast_1d(array)
    good = np.isfinite(flat) if signed else (flat > 0.0 if above else flat >= 0.0)
    good &= np.isfinite(flat) | (infinite & (flat > 0.0))
    if not good.all():
        bad = float(flat[int(np.argmin(good))])
        raise DescriptionError(f"{owner}: {field} = {bad} must be {kind}; check its sign and unit")
    return float(array) if array.ndim == 0 else tuple(float(x) for x in array)


def is_finite(value: object) -> bool:
    """True for a finite number; other objects are False, so that the checks below refuse them, too."""
    try:
        return math.isfinite(value)  # type: ignore[arg-type]
    except (TypeError, OverflowError):
        return False


def positive(owner: str, **values: float) -> None:
    """Refuse fields that are not finite and above zero."""
    for name, value in values.items():
        if not (is_finite(value) and value > 0.0):
            raise DescriptionError(f"{owner}: {name} = {value} must be a number above zero; check its sign and unit")


def not_negative(owner: str, **values: float) -> None:
    """Refuse fields that are not finite or below zero."""
    for name, value in values.items():
        if not (is_finite(value) and value >= 0.0):
            raise DescriptionError(f"{owner}: {name} = {value} must be zero or a number above it; check its sign and unit")


def flag(owner: str, field: str, value: object) -> None:
    """Refuse values other than True or False."""
    if not isinstance(value, bool | np.bool_):
        raise DescriptionError(f"{owner}: {field} = {value!r} must be True or False; give one of them")


def choice(what: str, value: object, known: Iterable[str], kind: Kind = DescriptionError) -> str:
    """Return a word after checking that it is a known one."""
    words = tuple(known)
    if not isinstance(value, str) or value not in words:
        raise kind(f"{what} is {shown(value)}; it is one of {', '.join(words)}")
    return value


# ---- arrays ------------------------------------------------------------------------------------------------------------


def numbers(values: ArrayLike, what: str) -> Array:
    """Return values of any shape as float64 after checking that they are real numbers, not necessarily finite."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biufO":  # strings and complex numbers would be converted silently
            raise TypeError(f"it holds {array.dtype}")
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DynidentError(f"{what} is not an array of real numbers ({error}); give floating-point numbers") from error


def finite_rows(what: str, array: Array) -> Array:
    """Return an array, whose first axis are samples, after checking that it is finite."""
    # The sum of squares is finite unless a number is not, or is huge; it costs less than a test of every number.
    if not math.isfinite(np.vdot(array, array)) and not np.isfinite(array).all():
        raise DynidentError(
            f"{what} is not finite at sample {int(np.argwhere(~np.isfinite(array))[0][0])}; remove or interpolate it"
        )
    return array


def per_actuator(values: ArrayLike, count: int, what: str) -> Array:
    """Return a fresh array with one number per actuator or coordinate; a single number applies to all."""
    array = numbers(values, what)
    if not 0 <= count <= MOST:
        raise DynidentError(f"count is {count}; give the number of actuators or coordinates, at most {MOST}")
    if array.shape not in ((), (count,)):
        raise DynidentError(f"{what} has shape {array.shape}; give one number, or {count} (one per actuator or coordinate)")
    return np.broadcast_to(array, (count,)).copy()


def time_axis(t: ArrayLike) -> Array:
    """Return times [s], at least one, that increase strictly."""
    times = numbers(t, "t")
    if times.ndim != 1 or times.size == 0:
        raise LogError(f"t has the shape {times.shape}; give a one-dimensional array of at least one time")
    bad = np.flatnonzero(~np.isfinite(times))
    if bad.size:
        raise LogError(f"time at sample {bad[0]} is {times[bad[0]]}; every time must be finite, remove that row")
    back = np.flatnonzero(np.diff(times) <= 0.0)
    if back.size:
        k = int(back[0]) + 1
        raise LogError(
            f"time does not increase at sample {k} ({float(times[k - 1])!r} s then {float(times[k])!r} s, {back.size} "
            f"time{'s' * (back.size > 1)}); sort the rows, remove duplicates, or split the log where the clock restarts"
        )
    return times


def signal(name: str, values: ArrayLike, count: int) -> Array:
    """Return one finite value per time; a single number applies to all times."""
    array = numbers(values, name)
    if array.shape not in ((), (count,)):
        raise LogError(
            f"{name} has the shape {array.shape}, but there are {count} times; give one value per time or one number"
        )
    if not np.isfinite(array).all():
        where = "" if array.ndim == 0 else f"[{int(np.argmin(np.isfinite(array)))}]"
        raise LogError(f"{name}{where} is not a finite number; remove the sample or repair the signal")
    return np.broadcast_to(array, (count,))


def step_length(dt: float) -> float:
    """Return a time step [s] that is above zero."""
    if not (math.isfinite(dt) and dt > 0.0):
        raise LogError(f"dt = {dt} s must be above zero; give the sampling time in seconds")
    return float(dt)


def finite_times(t: ArrayLike) -> Array:
    """Return times as a vector of finite numbers."""
    array = np.atleast_1d(numbers(t, "t"))
    if array.ndim != 1 or not np.all(np.isfinite(array)):
        raise DynidentError(f"t has shape {array.shape}; give a vector of finite times in seconds")
    return array
