"""Point to point in joint space: all coordinates leave and arrive together, along a quintic, a cycloid or a trapezoid of speed.

    q = p + (p' - p) s(t / T),    T = max over coordinates of  c_v |p' - p| / speed  and  sqrt(c_a |p' - p| / acceleration)

The trapezoid's ramps are rounded, 3 u^2 - 2 u^3, because the acceleration of a plain trapezoid jumps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.trajectory.family import CurveBase, State
from dynident.trajectory.plateaus import Plateau
from dynident.trajectory.profiles import Cycloid, Profile, Quintic

Array = NDArray[np.float64]

UNITS: dict[str, tuple[Profile, float, float]] = {
    "quintic": (Quintic(1.0, 1.0), *Quintic.peaks),
    "cycloid": (Cycloid(1.0, 1.0), *Cycloid.peaks),
    "trapezoid": (Plateau(1.0, 1.5, 1.0 / 3.0), 1.5, 6.75),
}
"""Profiles of unit distance and time with their peaks of speed c_v and acceleration c_a."""


def _unit(profile: str) -> tuple[Profile, float, float]:
    if profile not in UNITS:
        raise DynidentError(f"profile is {profile!r}; use one of {', '.join(UNITS)}")
    return UNITS[profile]


@dataclass(frozen=True, eq=False)
class Moves(CurveBase):
    """Rest, move, rest, move: through points, with a pause of zero at each.

    Parameters
    ----------
    points : array_like, (k, n)
        Where to rest [rad or m], in order.
    durations : array_like, (k - 1,)
        How long each move takes [s].
    profile : {"quintic", "cycloid", "trapezoid"}
        How the speed goes.
    """

    _kind = "moves"

    points: Array
    durations: Array
    profile: str = "quintic"

    def __post_init__(self) -> None:
        p, T = np.array(numbers(self.points, "points")), np.array(numbers(self.durations, "durations"))
        if p.ndim != 2 or len(p) < 2 or not np.all(np.isfinite(p)):
            raise DynidentError(f"points have shape {p.shape}; give at least two rows of finite coordinates")
        if T.shape != (len(p) - 1,) or not np.all(np.isfinite(T) & (T > 0.0)):
            raise DynidentError(f"durations are {T.tolist()}; give {len(p) - 1} times above zero in seconds")
        _unit(self.profile)
        object.__setattr__(self, "points", p)
        object.__setattr__(self, "durations", T)

    @classmethod
    def within(cls, points: ArrayLike, speed: ArrayLike, acceleration: ArrayLike, profile: str = "quintic") -> Moves:
        """Return the fastest moves that keep both limits."""
        way = np.abs(np.diff(numbers(points, "points"), axis=0))
        _, fast, hard = _unit(profile)
        top, push = numbers(speed, "speed"), numbers(acceleration, "acceleration")
        if not (np.all(top > 0.0) and np.all(push > 0.0)):
            raise DynidentError("speed and acceleration must be above zero for every coordinate")
        T = np.max(np.maximum(fast * way / top, np.sqrt(hard * way / push)), axis=1)
        return cls(np.asarray(points, dtype=np.float64), T, profile)

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return float(np.sum(self.durations))

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return int(self.points.shape[1])

    def _at(self, t: Array) -> State:
        begin = np.concatenate([[0.0], np.cumsum(self.durations)[:-1]])
        which = np.clip(np.searchsorted(begin, t, side="right") - 1, 0, len(begin) - 1)
        T = self.durations[which]
        s, ds, dds = UNITS[self.profile][0]((t - begin[which]) / T)
        way = np.diff(self.points, axis=0)[which]
        return self.points[which] + way * s[:, None], way * (ds / T)[:, None], way * (dds / T**2)[:, None]
