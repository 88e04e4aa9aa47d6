"""Finite Fourier series, the classical excitation, and the rest-to-rest subspace of it.

    q = q0 + sum_l [a_l sin(l w t) - b_l cos(l w t)] / (l w),    w = 2 pi f     convention "velocity": a, b in rad/s
    q = q0 + sum_l [a_l sin(l w t) - b_l cos(l w t)]                            convention "position": a, b in rad

"velocity" is [Rodriguez2002, eq. 43], [Pagani2022, eq. 78] and [Roldan2017, eq. 5.32]; "position" is how
[Rodriguez2002, Table 3] must be read. A plain series starts with velocity sum a_l and acceleration sum l w b_l. With
``rest=True`` the parameters span only the series for which both are zero, so that the motion starts and ends at rest by
construction and repeats without a jump.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.trajectory.family import Described, Trajectory, finite_times, positive

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Fourier(Described):
    """The family of finite Fourier series.

    Parameters
    ----------
    frequency : float
        Fundamental f [Hz]; one period is 1/f.
    harmonics : int
        Number of harmonics N.
    rest : bool
        True for series that start and end with zero velocity and acceleration; needs at least two harmonics.
    convention : {"velocity", "position"}
        What a and b are amplitudes of.
    periods : int
        How many periods the motion lasts.
    """

    _kind = "fourier"

    frequency: float
    harmonics: int
    rest: bool = True
    convention: str = "velocity"
    periods: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "frequency", positive("frequency", self.frequency))
        if self.harmonics < (2 if self.rest else 1):
            raise DynidentError(f"harmonics is {self.harmonics}; give at least 1, or 2 for a motion from rest to rest")
        if self.convention not in ("velocity", "position"):
            raise DynidentError(f"convention is {self.convention!r}; use 'velocity' or 'position'")
        if self.periods < 1:
            raise DynidentError(f"periods is {self.periods}; give at least 1")

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return self.periods / self.frequency

    @property
    def highest(self) -> float:
        """Frequency of the last harmonic [Hz]."""
        return self.frequency * self.harmonics

    @property
    def size(self) -> int:
        """Number of parameters of each coordinate: 2 N + 1, two less with `rest`."""
        return 2 * self.harmonics + (-1 if self.rest else 1)

    @cached_property
    def _free(self) -> Array:
        """Z (2 N + 1, size): all coefficients from the parameters."""
        N = self.harmonics
        if not self.rest:
            return np.eye(2 * N + 1)
        order: Array = np.arange(1.0, N + 1.0)
        power = 0 if self.convention == "velocity" else 1
        Z = np.zeros((2 * N + 1, 2 * N - 1))
        Z[0, 0] = 1.0
        for first, weight in ((0, order**power), (1, order ** (power + 1))):
            # Orthonormal basis of weight . x = 0, by the full QR of the weight.
            null = np.linalg.qr(weight[:, None], mode="complete")[0][:, 1:]
            Z[1 + first :: 2, 1 + first * (N - 1) : 1 + (first + 1) * (N - 1)] = null
        return Z

    def basis(self, t: ArrayLike, order: int = 0) -> Array:
        """Return a derivative of Phi."""
        time = finite_times(t)
        full = np.zeros((time.size, 2 * self.harmonics + 1))
        full[:, 0] = 1.0 if order == 0 else 0.0
        w = 2.0 * np.pi * self.frequency * np.arange(1.0, self.harmonics + 1.0)
        angle = np.outer(time, w) + 0.5 * np.pi * order  # every derivative is a quarter of a turn
        size = w ** (order - 1 if self.convention == "velocity" else order)
        full[:, 1::2] = size * np.sin(angle)
        full[:, 2::2] = -size * np.cos(angle)
        return np.asarray(full @ self._free)

    def constant(self) -> Array:
        """Return the parameters of q = 1: positions that hold before the coefficients add to them."""
        return np.asarray(np.eye(self.size)[0])

    def amplitudes(self, coefficients: ArrayLike) -> tuple[Array, Array, Array]:
        """Return q0, a and b of parameters."""
        full = np.atleast_2d(np.asarray(coefficients, dtype=np.float64)) @ self._free.T
        return full[:, 0], full[:, 1::2], full[:, 2::2]

    def from_amplitudes(self, q0: ArrayLike, a: ArrayLike, b: ArrayLike) -> Array:
        """Return the parameters of given offsets and amplitudes; with `rest` they are projected on the rest-to-rest series."""
        offset, sines, cosines = (np.asarray(x, dtype=np.float64) for x in (q0, a, b))
        if sines.shape != cosines.shape or sines.shape != (offset.size, self.harmonics):
            raise DynidentError(
                f"q0, a and b have shapes {offset.shape}, {sines.shape} and {cosines.shape}; give (n,) and twice "
                f"(n, {self.harmonics})"
            )
        full = np.zeros((offset.size, 2 * self.harmonics + 1))
        full[:, 0], full[:, 1::2], full[:, 2::2] = offset, sines, cosines
        return np.asarray(full @ self._free)


def random_motion(
    centre: ArrayLike, box: ArrayLike, seed: int = 0, duration: float = 10.0, harmonics: int = 5, periods: int = 1
) -> Trajectory:
    """Return a random Fourier motion from rest to rest that fills a box around a pose.

    Parameters
    ----------
    centre : array_like, (n,)
        Where it starts and ends.
    box : array_like, (n,)
        Largest distance from there.
    seed : int
        Seed of the coefficients.
    duration : float
        One period [s].
    harmonics : int
        Number of harmonics.
    periods : int
        How many periods.

    Returns
    -------
    Trajectory
        The motion.
    """
    start, width = np.asarray(centre, dtype=np.float64), np.asarray(box, dtype=np.float64)
    if start.shape != width.shape or start.ndim != 1 or not np.all(width > 0.0):
        raise DynidentError(f"box is {width.tolist()} around {start.tolist()}; give one half-width above zero per coordinate")
    family = Fourier(1.0 / duration, harmonics, rest=True, periods=periods)
    draw = np.random.default_rng(seed).normal(size=(family.size, start.size))
    shape = family.basis(np.linspace(0.0, duration, 400)) @ draw
    shape0 = family.basis(np.zeros(1)) @ draw
    scale = width / np.max(np.abs(shape - shape0), axis=0)
    return Trajectory(family, (scale * draw + np.outer(family.constant(), start - scale * shape0[0])).T)
