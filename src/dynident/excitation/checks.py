"""What users give, checked once: one sentence with the field, the value and what to do."""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.checks import numbers
from dynident.errors import DynidentError

Array = NDArray[np.float64]

MOST = 12_000_000  # numbers per array: two million samples of six axes
CYCLES = 1_000_000
BYTES = 64 << 20  # of a limits, plan or design file
LARGEST = 1e9  # rad, m and their rates: beyond it nothing is a robot, and polynomials overflow


def shown(value: object) -> str:
    """Return a value as it is shown in a sentence."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print very long integers
        return "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."


def read_text(path: str | os.PathLike[str], what: str) -> str:
    """Return the content of a plain file of bounded size."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):  # a pipe would wait for ever
            raise DynidentError(f"cannot read {what} from '{path}': it is not a plain file")
        with Path(path).open(encoding="utf-8") as stream:
            content = stream.read(BYTES + 1)
    except (OSError, UnicodeDecodeError, TypeError) as error:
        raise DynidentError(f"cannot read {what} from '{path}': {getattr(error, 'strerror', None) or error}") from error
    if len(content) > BYTES:
        raise DynidentError(f"cannot read {what} from '{path}': it holds more than {BYTES >> 20} MB; this cannot be meant")
    return content


def read_json(path: str | os.PathLike[str], what: str) -> Any:
    """Return the plain data of a JSON file."""
    try:
        return json.loads(read_text(path, what))
    except RecursionError:
        raise DynidentError(f"cannot read {what} from '{path}': its lists are nested too deeply") from None
    except ValueError as error:
        if isinstance(error, DynidentError):
            raise
        raise DynidentError(f"cannot read {what} from '{path}': {error}") from error


def whole(value: Any, what: str) -> int:
    """Return a whole number."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or abs(int(value)) > 2**53:
        raise DynidentError(f"{what} is {shown(value)}; give a whole number")
    return int(value)


def real(value: Any, what: str, infinite: bool = False) -> float:
    """Return a number, finite unless infinity is allowed."""
    good = isinstance(value, int | float | np.number) and not isinstance(value, bool | complex | np.complexfloating)
    if not good or (isinstance(value, int) and abs(value) > 10**300) or math.isnan(value):
        raise DynidentError(f"{what} is {shown(value)}; give a number")
    if not infinite and math.isinf(value):
        raise DynidentError(f"{what} is {value}; give a finite number")
    return float(value)


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


def vector(value: Any, n: int, what: str) -> Array:
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
