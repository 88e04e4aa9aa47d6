"""Motions for simulated identification of DualV: [Briot2015] prints none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.mechanics import Motion
from dynident.robots.dualv.dynamics import preload_direction
from dynident.robots.dualv.geometry import Geometry

Array = NDArray[np.float64]

BOX = (0.08, 0.05, 0.6)
"""Half-widths of the box of poses around home [m, m, rad]; with 0.4 to 0.5 rad the paper's nine parameters do not come out."""


def excitation(
    seed: int = 0,
    box: Sequence[float] = BOX,
    duration: float = 1.0,
    rate: float = 250.0,
    harmonics: int = 4,
) -> Motion:
    """Return a random periodic motion of the platform that fills a box, x_k = sum_h s_h sin(2 pi h t / T + phase_h).

    Parameters
    ----------
    seed : int
        Seed of amplitudes and phases; another one is another trajectory.
    box : sequence of float, (3,)
        Largest |x|, |y|, |phi| [m, m, rad].
    duration : float
        One period T [s]; the frequencies are 1/T to harmonics/T.
    rate : float
        Samples per second [Hz].
    harmonics : int
        Number of harmonics.

    Returns
    -------
    Motion
        Samples of x, y, phi with exact derivatives.
    """
    limits = np.asarray(box, dtype=np.float64)
    if limits.shape != (3,) or not np.all(limits > 0.0) or not duration > 0.0 or not rate * duration >= 2.0 or harmonics < 1:
        raise DynidentError(
            f"DualV: box {tuple(box)}, duration {duration}, rate {rate}, harmonics {harmonics}; give three positive "
            "half-widths, at least two samples and one harmonic"
        )
    generator = np.random.default_rng(seed)
    t = np.arange(round(duration * rate)) / rate
    w = 2.0 * np.pi * np.arange(1, harmonics + 1) / duration
    size = generator.uniform(0.3, 1.0, (harmonics, 3)) / np.arange(1, harmonics + 1)[:, None]
    angle = w[:, None] * t + generator.uniform(0.0, 2.0 * np.pi, (3, harmonics, 1))  # (3, harmonics, N)

    def summed(wave: Array, order: int) -> Array:
        return np.asarray(np.einsum("hk,kht->tk", size * w[:, None] ** order, wave))

    x = summed(np.sin(angle), 0)
    scale = limits / np.max(np.abs(x), axis=0)
    return Motion(t, scale * x, scale * summed(np.cos(angle), 1), -scale * summed(np.sin(angle), 2))


def preload(t: ArrayLike, x: ArrayLike, geometry: Geometry | None = None) -> Array:
    """Return motor torques that only stress the robot, (5 + 2 sin 3 t) N m along the null vector.

    Parameters
    ----------
    t : array_like, (N,)
        Time [s].
    x : array_like, (N, 3)
        Poses.
    geometry : Geometry, optional
        Lengths and working mode.

    Returns
    -------
    ndarray, (N, 4)
        Torques [N m] with J_inv^T tau = 0.
    """
    size = 5.0 + 2.0 * np.sin(3.0 * np.asarray(t, dtype=np.float64))
    return np.asarray(size[:, None] * preload_direction(x, geometry))
