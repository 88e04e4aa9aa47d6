"""What the two case studies of the thesis share: checks of inputs, and the Fourier motion (6.18) to (6.20)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.mechanics import Motion

Array = NDArray[np.float64]


def samples_of(n: int, **given: ArrayLike) -> list[Array]:
    """Return arrays (N, n) after checking that they are finite numbers of as many samples; one sample may be a vector."""
    arrays: dict[str, Array] = {}
    for what, values in given.items():
        array = numbers(values, what)
        array = array[None] if array.ndim == 1 else array
        if array.ndim != 2 or array.shape[1] != n:
            raise DynidentError(f"{what} has shape {np.shape(values)}; give (samples, {n})")
        if not np.all(np.isfinite(array)):
            raise DynidentError(f"{what} is not finite at sample {int(np.argwhere(~np.isfinite(array))[0][0])}; remove it")
        arrays[what] = array
    if len({len(array) for array in arrays.values()}) > 1:
        sizes = ", ".join(f"{what} {len(array)}" for what, array in arrays.items())
        raise DynidentError(f"numbers of samples differ ({sizes}); give as many of each")
    return list(arrays.values())


def choice(value: str, known: tuple[str, ...], what: str) -> int:
    """Return the place of a word in a list of known ones."""
    if value not in known:
        raise DynidentError(f"{what} is {value!r}; it must be one of {', '.join(known)}")
    return known.index(value)


def parameter_values(given: Mapping[str, float] | None, names: tuple[str, ...], default: Mapping[str, float]) -> Array:
    """Return a parameter vector: the defaults with some numbers changed, 0 where there is no default."""
    changed = dict(given or {})
    for name, value in changed.items():
        if name not in names:
            raise DynidentError(f"unknown parameter '{name}'; parameters are {', '.join(names)}")
        if not np.isfinite(value):
            raise DynidentError(f"parameter '{name}' is {value}; give a finite number")
    return np.array([changed.get(name, default.get(name, 0.0)) for name in names])


def fourier(t: ArrayLike, start: ArrayLike, C: ArrayLike, D: ArrayLike, frequency: float) -> Motion:
    """Return the periodic motion (6.18) to (6.20); C and D are amplitudes of the velocity.

        q = q0 + sum_i (C_i sin(w_i t) - D_i cos(w_i t)) / w_i,    w_i = 2 pi f i

    Parameters
    ----------
    t : array_like, (N,)
        Time [s].
    start : array_like, (n,)
        q0 [m or rad].
    C, D : array_like, (n, n_h)
        Amplitudes of each harmonic [m/s or rad/s].
    frequency : float
        Fundamental frequency f [Hz].

    Returns
    -------
    Motion
        N samples.
    """
    time, cos_part, sin_part = (np.asarray(numbers(x, label)) for x, label in ((t, "t"), (C, "C"), (D, "D")))
    origin = numbers(start, "start")
    if cos_part.shape != sin_part.shape or cos_part.ndim != 2 or origin.shape != cos_part.shape[:1]:
        raise DynidentError(
            f"C, D and start have shapes {cos_part.shape}, {sin_part.shape} and {origin.shape}; "
            "give (n, harmonics) twice and (n,)"
        )
    if not frequency > 0.0:
        raise DynidentError(f"frequency is {frequency}; give a fundamental frequency above zero")
    w = 2.0 * np.pi * frequency * np.arange(1, cos_part.shape[1] + 1)
    s, c = np.sin(time[:, None] * w), np.cos(time[:, None] * w)
    q = origin + s @ (cos_part / w).T - c @ (sin_part / w).T
    return Motion(time, q, c @ cos_part.T + s @ sin_part.T, c @ (sin_part * w).T - s @ (cos_part * w).T)
