"""Into and out of a periodic motion that has no rest: along its own path, with the clock slowed down.

    q = c(s(t)),    s' = 3 u^2 - 2 u^3 (in) or 1 minus it (out),    u = t / T,    T = k periods

Positions are those of the motion itself, so every limit of places (joints, tool, collisions, loops) is kept as it keeps them,
and speeds are never higher. s runs over T / 2, so a lead-in starts, and a lead-out ends, at c(k P / 2): the same place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.trajectory.family import Curve, CurveBase, State
from dynident.trajectory.join import Joined, join

Array = NDArray[np.float64]

STEPS = (1, 2, 4, 8, 16)  # lengths of a lead that are tried, in periods
GRID = 1000  # samples per period on which accelerations are checked


@dataclass(frozen=True, eq=False)
class Lead(CurveBase):
    """A periodic motion entered from rest, or left to rest."""

    _kind = "lead"

    curve: Curve  # One period of the motion; it ends in the state in which it starts
    periods: int = 1  # Length k of the lead
    out: bool = False  # True to come to rest, False to start from it

    def __post_init__(self) -> None:
        if self.periods < 1:
            raise DynidentError(f"periods of a lead is {self.periods}; give at least 1")
        if not periodic(self.curve):
            raise DynidentError(
                "a lead needs a periodic motion, which ends in the state in which it starts; join others instead"
            )

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return self.periods * self.curve.duration

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return self.curve.dof

    def _at(self, t: Array) -> State:
        T = self.duration
        u = np.clip(t / T, 0.0, 1.0)
        s = T * (u**3 - 0.5 * u**4)
        ds, dds = u**2 * (3.0 - 2.0 * u), 6.0 * u * (1.0 - u) / T
        if self.out:
            s, ds, dds = T * u - s, 1.0 - ds, -dds
        else:
            s = s - 0.5 * T
        q, v, a = self.curve(np.mod(s, self.curve.duration))
        return q, v * ds[:, None], a * ds[:, None] ** 2 + v * dds[:, None]


def periodic(curve: Curve) -> bool:
    """Return whether a curve ends in the state in which it starts."""
    return all(np.max(np.abs(x[1] - x[0])) <= 1e-9 * (1.0 + np.max(np.abs(x))) for x in curve([0.0, curve.duration]))


def resting(curve: Curve) -> bool:
    """Return whether a curve starts and ends at rest."""
    _, v, a = curve([0.0, curve.duration])
    return bool(np.max(np.abs(v)) < 1e-9 and np.max(np.abs(a)) < 1e-9)


def leads(curve: Curve, acceleration: ArrayLike) -> tuple[Lead, Lead]:
    """Return the shortest lead-in and lead-out that keep the accelerations.

    Parameters
    ----------
    curve : Curve
        One period of a motion.
    acceleration : array_like, (n,)
        Largest accelerations.

    Returns
    -------
    into, out : Lead
        To run before and after the motion.
    """
    push = np.broadcast_to(numbers(acceleration, "acceleration"), (curve.dof,))
    for k in STEPS:
        pair = Lead(curve, k), Lead(curve, k, True)
        t = np.linspace(0.0, pair[0].duration, GRID * k + 1)
        used = np.max([np.abs(lead(t)[2]).max(axis=0) for lead in pair], axis=0)
        if np.all(used <= push * (1.0 + 1e-9)):
            return pair
    worst = int(np.argmax(used / push))
    raise DynidentError(
        f"the motion cannot be entered from rest: coordinate {worst} would need an acceleration of {used[worst]:.6g} but "
        f"{push[worst]:.6g} is allowed; design it with a margin, or with a family that rests at both ends"
    )


def cycle(
    curves: Sequence[tuple[Curve, int]],
    speed: ArrayLike,
    acceleration: ArrayLike,
    home: ArrayLike,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    jerk: ArrayLike | None = None,
) -> Joined:
    """Return curves with their repetitions from home to home: joined, and with leads around periodic ones that have no rest.

    Parameters
    ----------
    curves : sequence of tuple (Curve, int)
        What to do, and how often in a row.
    speed, acceleration : array_like, (n,)
        Largest rates of joins, and largest acceleration of leads.
    home : array_like, (n,)
        Where to start and end at rest.
    lower, upper, jerk : array_like (n,), optional
        Range and largest jerk of joins.

    Returns
    -------
    Joined
        The whole cycle.
    """
    pieces: list[Curve] = []
    for curve, repetitions in curves:
        repeated = [curve] * repetitions
        if not resting(curve) and periodic(curve):
            into, out = leads(curve, acceleration)
            repeated = [into, *repeated, out]
        pieces += repeated
    return join(pieces, speed, acceleration, home, lower, upper, jerk)


def resting_place(curve: Curve, acceleration: ArrayLike) -> Array:
    """Return where the robot rests before a curve: c(0), or where its lead-in starts if c has no rest."""
    first = leads(curve, acceleration)[0] if not resting(curve) and periodic(curve) else curve
    return np.asarray(first([0.0])[0][0])
