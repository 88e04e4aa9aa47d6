"""Sums of sines with given phases, faded in and out: harmonic sines [Pagani2022, eq. 62] and multisines with random phases.

    q = q0 + w(t) sum_k A_k sin(2 pi f_k t + phi_k)

w rises from 0 to 1 like the quintic of `Quintic` and falls likewise, so that the motion starts and ends at rest; the amplitudes
A_k and the offset are the parameters. Between the fades the motion is periodic when the frequencies have a common divisor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.trajectory.family import Described, Trajectory, finite_times, positive

Array = NDArray[np.float64]

MOST_HARMONICS = 100_000

# Quintic 10 u^3 - 15 u^4 + 6 u^5 and its derivatives by u, highest power first.
RAMP = tuple(np.polyder(np.array([6.0, -15.0, 10.0, 0.0, 0.0, 0.0]), m) if m else np.array([6.0, -15.0, 10.0, 0.0, 0.0, 0.0])
             for m in range(4))  # fmt: skip
STEEPEST = (1.875, 10.0 / 3.0**0.5)  # largest first and second derivative of the quintic by u


@dataclass(frozen=True)
class Multisine(Described):
    """The family of faded sums of sines.

    Parameters
    ----------
    frequencies : sequence of float
        f_k [Hz].
    phases : sequence of float
        phi_k [rad].
    duration : float
        How long it takes, fades included [s].
    fade : float
        How long it takes to fade in, and out [s].
    """

    _kind = "multisine"

    frequencies: tuple[float, ...]
    phases: tuple[float, ...]
    duration: float
    fade: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "frequencies", tuple(float(f) for f in self.frequencies))
        object.__setattr__(self, "phases", tuple(float(p) for p in self.phases))
        if not self.frequencies or len(self.frequencies) != len(self.phases):
            raise DynidentError(f"{len(self.frequencies)} frequencies but {len(self.phases)} phases; give one phase each")
        for f in self.frequencies:
            positive("frequency", f)
        positive("duration", self.duration)
        positive("fade", self.fade)
        if 2.0 * self.fade > self.duration:
            raise DynidentError(f"fade is {self.fade} s but the motion lasts {self.duration} s; fade in at most half of it")

    @property
    def size(self) -> int:
        """Number of parameters of each coordinate: the offset and one amplitude per sine."""
        return 1 + len(self.frequencies)

    @property
    def highest(self) -> float:
        """Highest frequency [Hz]."""
        return max(self.frequencies)

    def window(self, t: ArrayLike, order: int = 0) -> Array:
        """Return a derivative of the window w."""
        time, F = finite_times(t), self.fade
        rise, fall = time / F, (self.duration - time) / F
        value = np.full(time.size, 1.0 if order == 0 else 0.0)
        for u, sense in ((rise, 1.0), (fall, -1.0)):
            inside = u < 1.0
            ramp = np.polyval(RAMP[order], np.clip(u[inside], 0.0, 1.0)) * (sense / F) ** order
            value[inside] = np.where(u[inside] < 0.0, 0.0, ramp)
        return value

    def basis(self, t: ArrayLike, order: int = 0) -> Array:
        """Return a derivative of Phi."""
        time = finite_times(t)
        w = 2.0 * np.pi * np.array(self.frequencies)
        angle = np.outer(time, w) + np.array(self.phases)
        out = np.zeros((time.size, self.size))
        out[:, 0] = 1.0 if order == 0 else 0.0
        for m in range(order + 1):  # Leibniz's rule
            wave = w ** (order - m) * np.sin(angle + 0.5 * np.pi * (order - m))
            out[:, 1:] += comb(order, m) * self.window(time, m)[:, None] * wave
        return np.asarray(out)

    def bounds(self, coefficients: ArrayLike) -> tuple[Array, Array, Array]:
        """Return what positions, velocities and accelerations cannot exceed [Pagani2022, eqs. 64-69], fades included.

            |q - q0| <= sum_k |A_k|,   |v| <= sum_k |A_k| (w1 + w_k),   |a| <= sum_k |A_k| (w2 + 2 w1 w_k + w_k^2)

        w_k = 2 pi f_k; w1 and w2 are the largest slope and curvature of the window.
        """
        c = numbers(coefficients, "coefficients")
        if c.ndim != 2 or c.shape[1] != self.size:
            raise DynidentError(
                f"coefficients have shape {c.shape}; give (n, {self.size}): offset and amplitudes of each coordinate"
            )
        A, w = np.abs(c[:, 1:]), 2.0 * np.pi * np.array(self.frequencies)
        w1, w2 = STEEPEST[0] / self.fade, STEEPEST[1] / self.fade**2
        return A.sum(axis=1), A @ (w1 + w), A @ (w2 + 2.0 * w1 * w + w**2)

    def constant(self) -> Array:
        """Return the parameters of q = 1: positions that hold before the coefficients add to them."""
        return np.asarray(np.eye(self.size)[0])


def harmonic_sines(
    frequency: float, multiples: Sequence[int] = (1, 2, 4), periods: int = 1, fade: float | None = None
) -> Multisine:
    """Return the harmonic sines of [Pagani2022], q = sum a_k sin(k w t) with harmonics 1, 2, 4 (eq. 72), faded in and out.

    The document's own version starts with a jump in velocity, which is why it was given up there.

    Parameters
    ----------
    frequency : float
        Fundamental [Hz].
    multiples : sequence of int
        Which harmonics.
    periods : int
        Periods between the fades.
    fade : float, optional
        Fade in and out [s]; half a period when omitted.

    Returns
    -------
    Multisine
        The family.
    """
    F = 0.5 / positive("frequency", frequency) if fade is None else fade
    return Multisine(tuple(frequency * k for k in multiples), tuple(0.0 for _ in multiples), periods / frequency + 2.0 * F, F)


def sines_within(
    position: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike, multiples: Sequence[int] = (1, 2, 4), periods: int = 1
) -> Trajectory:
    """Return harmonic sines of equal amplitudes that stay within limits whatever they add up to: no search is needed.

        a_k = q_max / N [Pagani2022, eq. 70],      f the highest fundamental whose `Multisine.bounds` keep the limits

    Equation (71) says the same with the highest harmonic in the place of each, which is slower; its root is lost in print.

    Parameters
    ----------
    position : array_like, (n,)
        How far each coordinate may go from zero [rad or m].
    velocity, acceleration : array_like, (n,)
        Largest velocities and accelerations.
    multiples : sequence of int
        Which harmonics.
    periods : int
        Periods between the fades.

    Returns
    -------
    Trajectory
        The motion about zero; its family is a `Multisine`.
    """
    far, fast, hard = (
        np.atleast_1d(numbers(x, name))
        for x, name in ((position, "position"), (velocity, "velocity"), (acceleration, "acceleration"))
    )
    if not far.shape == fast.shape == hard.shape or far.ndim != 1 or not all(np.all(x > 0.0) for x in (far, fast, hard)):
        raise DynidentError(
            f"position, velocity and acceleration have shapes {far.shape}, {fast.shape} and {hard.shape}; give one number "
            "above zero for each coordinate"
        )
    c = np.column_stack([np.zeros(far.size), np.repeat(far[:, None] / len(multiples), len(multiples), axis=1)])
    _, v, a = harmonic_sines(1.0, multiples).bounds(c)  # at 1 Hz; they grow with f and f^2, since fades last half a period
    highest = float(min((fast / v).min(), np.sqrt(hard / a).min()))
    return Trajectory(harmonic_sines(highest, multiples, periods), c)


def random_multisine(
    frequency: float, harmonics: int | Sequence[int], seed: int = 0, periods: int = 1, fade: float | None = None
) -> Multisine:
    """Return a multisine with random phases.

    Parameters
    ----------
    frequency : float
        Fundamental [Hz].
    harmonics : int or sequence of int
        How many harmonics, or which.
    seed : int
        Seed of the phases.
    periods : int
        Periods between the fades.
    fade : float, optional
        Fade in and out [s]; half a period when omitted.

    Returns
    -------
    Multisine
        The family.
    """
    if isinstance(harmonics, int) and not 1 <= harmonics <= MOST_HARMONICS:
        raise DynidentError(f"harmonics is {harmonics}; give 1 to {MOST_HARMONICS}, or which ones")
    multiples = range(1, harmonics + 1) if isinstance(harmonics, int) else harmonics
    F = 0.5 / positive("frequency", frequency) if fade is None else fade
    phases = np.random.default_rng(seed).uniform(0.0, 2.0 * np.pi, len(multiples))
    return Multisine(tuple(frequency * k for k in multiples), tuple(phases.tolist()), periods / frequency + 2.0 * F, F)
