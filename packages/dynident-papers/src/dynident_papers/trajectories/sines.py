"""Sums of sines: the tip swings about a point in the workspace; joints swing within limits [Pagani2022, section 2.3.1]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.trajectory import Multisine, Trajectory
from dynident.trajectory.curves import grid, positive
from dynident_lab.tool_paths import TipMotion

STEEPEST = (1.875, 10.0 / 3.0**0.5)  # largest first and second derivative of the fading quintic, by u


def harmonic_sines(
    frequency: float, multiples: Sequence[int] = (1, 2, 4), periods: int = 1, fade: float | None = None
) -> Multisine:
    """Return the sines of [Pagani2022, eq. 72]: `multiples` of `frequency` [Hz], `periods` between fades of `fade` seconds."""
    F = 0.5 / positive("frequency", frequency) if fade is None else fade
    return Multisine(tuple(frequency * k for k in multiples), tuple(0.0 for _ in multiples), periods / frequency + 2.0 * F, F)


def workspace_sines(
    centre: ArrayLike,
    amplitudes: ArrayLike,
    frequencies: Sequence[float],
    duration: float,
    rate: float,
    phases: Sequence[float] | None = None,
    fade: float | None = None,
) -> TipMotion:
    """Return a tip motion of sines; `joint_motion` converts it to joint motion, like lines, circles and letters."""
    A, x0 = numbers(amplitudes, "amplitudes"), numbers(centre, "centre")
    if A.shape != (3, len(frequencies)) or x0.shape != (3,):
        raise DynidentError(
            f"amplitudes have shape {A.shape} and centre {x0.shape}; give (3, {len(frequencies)}) and three coordinates"
        )
    angles = [0.0] * len(frequencies) if phases is None else phases
    family = Multisine(tuple(frequencies), tuple(angles), duration, 0.1 * duration if fade is None else fade)
    t = grid(duration, rate)
    c = np.column_stack([x0, A])
    x, v, a = (family.basis(t, order) @ c.T for order in range(3))
    return TipMotion(t, x, v, a, np.ones(t.size, dtype=np.bool_))


def sine_bounds(family: Multisine, coefficients: ArrayLike) -> tuple[Array, Array, Array]:
    """Return upper bounds of positions, velocities and accelerations [Pagani2022, eqs. 64-69], fades included.

        |q - q0| <= sum_k |A_k|,   |v| <= sum_k |A_k| (w1 + w_k),   |a| <= sum_k |A_k| (w2 + 2 w1 w_k + w_k^2)

    w_k = 2 pi f_k; w1 and w2 are the largest slope and curvature of the window.
    """
    c = numbers(coefficients, "coefficients")
    A, w = np.abs(c[:, 1:]), 2.0 * np.pi * np.array(family.frequencies)
    w1, w2 = STEEPEST[0] / family.fade, STEEPEST[1] / family.fade**2
    return A.sum(axis=1), A @ (w1 + w), A @ (w2 + 2.0 * w1 * w + w**2)


def sines_within(
    position: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike, multiples: Sequence[int] = (1, 2, 4), periods: int = 1
) -> Trajectory:
    """Return harmonic sines of equal amplitudes about zero within limits by construction, without a search.

        a_k = q_max / N [Pagani2022, eq. 70],      f the highest fundamental whose `sine_bounds` keep the limits

    Equation (71) uses the highest harmonic in place of each, which is slower; its root is lost in print.

    Parameters
    ----------
    position, velocity, acceleration : array_like, (n,)
        Largest distances from zero [rad or m], velocities and accelerations.
    multiples, periods
        Harmonics, and periods between the fades.
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
    _, v, a = sine_bounds(
        harmonic_sines(1.0, multiples), c
    )  # at 1 Hz; they grow with f and f^2, since fades last half a period
    highest = float(min((fast / v).min(), np.sqrt(hard / a).min()))
    return Trajectory(harmonic_sines(highest, multiples, periods), c)
