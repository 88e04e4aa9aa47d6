"""Does the friction dissipate? Friction must take power, ``f(v) v >= 0``; an identified law need not.

The sigmoid laws printed in [Rodriguez2002, Table 4] feed energy into the motion near zero speed on three of four joints:
a simulated robot then never comes to rest. Detect it before using a law.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import DescriptionError
from dynident.friction.law import Friction, State
from dynident.results import Result

#: Speeds looked at per direction, and the lowest one over the highest one.
POINTS = 2000
LOWEST = 1e-7
#: Friction against the motion that is negative by less than this part of its largest value is round-off.
ROUNDOFF = 1e-12


@dataclass(frozen=True)
class Dissipation(Result):
    """Where a friction law takes power and where it feeds it."""

    active: tuple[tuple[float, float], ...]
    lowest: float  # Lowest friction against the motion, ``min f(v) sgn(v)`` [N m or N]; negative where the law is active
    at: float  # Velocity of that minimum
    speed: float  # Largest speed looked at
    derived = ("dissipative",)

    @property
    def dissipative(self) -> bool:
        """True if the friction opposes the motion at every speed looked at."""
        return not self.active

    def summary(self) -> str:
        """Say the finding in one sentence."""
        if self.dissipative:
            return f"dissipative up to a speed of {self.speed:g}"
        spans = ", ".join(f"{low:.4g} to {high:.4g}" for low, high in self.active)
        worst = f"lowest friction against the motion {self.lowest:.4g} at {self.at:.4g}"
        return f"active (feeds energy) at velocities {spans}; {worst}"


def dissipation(
    friction: Friction, speed: float, q: float | None = None, tau: float | None = None, T: float | None = None
) -> Dissipation:
    """Check ``f(v) v >= 0`` for all velocities up to `speed` in both directions.

    Speeds are looked at on a grid that is fine near zero; the ends of every active interval are then found by a root search.

    Parameters
    ----------
    friction : Friction
        Law with numbers.
    speed : float
        Largest speed [rad/s or m/s], above zero.
    q, tau, T : float, optional
        Position, load and temperature at which to look, where the law needs them.

    Returns
    -------
    Dissipation
        Active intervals and the lowest friction against the motion.
    """
    if not (np.isfinite(speed) and speed > 0.0):
        raise DescriptionError(f"speed = {speed} must be above zero; give the largest absolute speed of interest")

    from scipy.optimize import brentq  # noqa: PLC0415 - costs import time

    held = [None if value is None else np.asarray(value, dtype=np.float64) for value in (q, tau, T)]

    def against(speeds: ArrayLike, sign: float, more: float = 0.0) -> Array:
        v = sign * np.asarray(speeds)
        return np.asarray(friction(State(v, *held)) * np.sign(v) + more)

    grid = np.union1d(np.geomspace(LOWEST * speed, speed, POINTS), np.linspace(0.0, speed, POINTS + 1)[1:])
    active: list[tuple[float, float]] = []
    lowest, at = np.inf, 0.0
    for sign in (1.0, -1.0):
        force = against(grid, sign)
        roundoff = ROUNDOFF * float(np.abs(force).max())
        negative = force + roundoff < 0.0
        edges = np.flatnonzero(negative[1:] != negative[:-1])
        roots = [brentq(against, grid[i], grid[i + 1], (sign, roundoff), xtol=1e-300, rtol=1e-15) for i in edges]
        bounds = [0.0] * bool(negative[0]) + roots + [speed] * bool(negative[-1])
        spans = [(sign * low + 0.0, sign * high + 0.0) for low, high in zip(bounds[0::2], bounds[1::2], strict=True)]
        active += [(min(span), max(span)) for span in spans]
        k = int(np.argmin(force))
        low, high = grid[max(k - 1, 0)], grid[min(k + 1, grid.size - 1)]
        for _ in range(4):
            near = np.linspace(low, high, 101)
            force = against(near, sign)
            k = int(np.argmin(force))
            low, high = near[max(k - 1, 0)], near[min(k + 1, 100)]
        if force[k] < lowest:
            lowest, at = float(force[k]), float(sign * near[k])
    return Dissipation(tuple(sorted(active)), lowest, at, speed)
