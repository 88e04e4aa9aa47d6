"""How far a loop is from instability and how fast it is: margins of the open loop, cut-off frequency of the closed one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import number, numbers
from dynident.errors import DynidentError
from dynident.results import Result

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
Response = Callable[[Array], Complex]

POINTS = 4000  # of the logarithmic frequency grid on which crossings are looked for


@dataclass(frozen=True)
class Margins(Result):
    """Stability margins of an open loop L(f); the closed loop is L / (1 + L)."""

    gain: float
    phase: float  # Phase that may be lost [deg], 180 + arg L where |L| = 1; infinite when |L| never is 1
    gain_frequency: float  # Where the phase is -180 degrees [Hz]; NaN when it never is
    phase_frequency: float  # Where |L| = 1 (crossover) [Hz]; NaN when it never is

    @property
    def delay(self) -> float:
        """Dead time that may be added until the closed loop is unstable [s]."""
        return self.phase / 360.0 / self.phase_frequency


def margins(response: Response, lowest: float, highest: float) -> Margins:
    """Return the margins of an open loop, the smallest of each kind between two frequencies.

    Parameters
    ----------
    response : callable
        L(f) of frequencies (N,) [Hz].
    lowest, highest : float
        Range of frequencies [Hz]; for a sampled loop the highest is half the sampling frequency.

    Returns
    -------
    Margins
        Gain and phase margin.
    """
    f = _grid(lowest, highest)
    L = response(f)
    crossings = [_root(lambda x: np.log(np.abs(response(x))), f[i], f[i + 1]) for i in _changes(np.log(np.abs(L)))]
    # Where L changes sign from one side of the real axis to the other, it does so left of zero (-180 degrees) or right of it.
    flips = [_root(lambda x: np.imag(response(x)), f[i], f[i + 1]) for i in _changes(L.imag)]
    if abs(L[-1].imag) < 1e-6 * abs(L[-1]):  # half the sampling frequency: L is real there
        flips.append(float(f[-1]))
    real = [(float(response(np.array([x]))[0].real), x) for x in flips]
    gains = [(-1.0 / value, x) for value, x in real if value < 0.0]
    gain = min(gains, key=lambda pair: abs(np.log(pair[0])), default=(float("inf"), float("nan")))
    phases = [(_wrapped(response, x), x) for x in crossings]
    phase = min(phases, key=lambda pair: abs(pair[0]), default=(float("inf"), float("nan")))
    return Margins(gain[0], phase[0], gain[1], phase[1])


def cutoff_frequency(response: Response, lowest: float, highest: float, level: float = 1.0 / np.sqrt(2.0)) -> float:
    """Return the frequency at which the amplitude falls below a level for the first time, -3 dB when not said."""
    f = _grid(lowest, highest)
    size = np.abs(response(f))
    if not (np.isfinite(level) and 0.0 < level < 1.0):
        raise DynidentError(f"level is {level}; give an amplitude between 0 and 1")
    below = np.flatnonzero(size < level * size[0])
    if below.size == 0:
        return float("inf")
    i = int(below[0])
    return _root(lambda x: np.abs(response(x)) - level * size[0], f[i - 1], f[i])


def delayed_integrator(gain: float, delay: float, frequency: ArrayLike) -> Complex:
    """Return the closed loop of a position controller in front of an ideal drive with dead time.

    T = k e^{-s d} / (s + k e^{-s d}),    s = 2 pi i f
    """
    if not (np.isfinite(gain) and gain > 0.0 and np.isfinite(delay) and delay >= 0.0):
        raise DynidentError(f"gain is {gain} and delay {delay} s; give a gain above zero and a delay of zero or more")
    s = 2j * np.pi * np.atleast_1d(numbers(frequency, "frequency"))
    late = gain * np.exp(-s * delay)
    return np.asarray(late / (s + late))


def _grid(lowest: float, highest: float) -> Array:
    low = number("lowest", lowest, above=0.0, unit="Hz")
    return np.geomspace(low, number("highest", highest, above=low, unit="Hz"), POINTS)


def _changes(values: Array) -> list[int]:
    return [int(i) for i in np.flatnonzero(np.diff(np.signbit(values)))]


def _root(function: Callable[[Array], Array], low: float, high: float) -> float:
    """Return the zero between two frequencies by bisection."""
    sign = bool(np.signbit(function(np.array([low]))[0]))
    for _ in range(60):
        middle = 0.5 * (low + high)
        if bool(np.signbit(function(np.array([middle]))[0])) == sign:
            low = middle
        else:
            high = middle
    return float(0.5 * (low + high))


def _wrapped(response: Response, frequency: float) -> float:
    """Return the phase margin [deg] at a crossover, between -180 and 180."""
    return float((np.degrees(np.angle(response(np.array([frequency]))[0])) + 360.0) % 360.0 - 180.0)
