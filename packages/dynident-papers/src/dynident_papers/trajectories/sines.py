"""Sinusoids in the workspace: the tip swings about a point, faded in and out; joints follow by inverse kinematics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.trajectory import Multisine
from dynident.trajectory.family import grid
from dynident.trajectory.task import TipMotion


def workspace_sines(
    centre: ArrayLike,
    amplitudes: ArrayLike,
    frequencies: Sequence[float],
    duration: float,
    rate: float,
    phases: Sequence[float] | None = None,
    fade: float | None = None,
) -> TipMotion:
    """Return a tip motion of sines; `joint_motion` turns it into joint motion, as it does lines, circles and letters."""
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
