"""Concatenation with smooth joins: between two curves a quintic that meets position, velocity and acceleration of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.mechanics.motion import Motion, numbers
from dynident.trajectory.family import Curve, sample, times
from dynident.trajectory.polynomial import hermite

Array = NDArray[np.float64]
State = tuple[Array, Array, Array]

SAME = 1e-9  # difference of states [rad, rad/s, rad/s^2] below which no join is needed


@dataclass(frozen=True, eq=False)
class Bridge:
    """The quintic from one state to another.

    Parameters
    ----------
    start, end : tuple of array_like (n,)
        q, v, a at both ends.
    duration : float
        How long it takes [s]; 0 for none.
    """

    start: State
    end: State
    duration: float

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return int(np.size(self.start[0]))

    def __call__(self, t: ArrayLike) -> State:
        """Return q, v, a.

        Parameters
        ----------
        t : array_like, (N,)
            Time since the start [s].

        Returns
        -------
        q, v, a : ndarray, (N, n)
            Positions, velocities and accelerations.
        """
        T = self.duration
        u = np.clip(times(t) / T, 0.0, 1.0)
        ends = np.array([x * T**k for state in (self.start, self.end) for k, x in enumerate(state)])
        return hermite(u, 0) @ ends, hermite(u, 1) @ ends / T, hermite(u, 2) @ ends / T**2

    def spec(self) -> dict[str, Any]:
        """Return plain data.

        Returns
        -------
        dict
            Plain data, which `from_spec` reads back.
        """
        plain = [[np.asarray(x).tolist() for x in state] for state in (self.start, self.end)]
        return {"kind": "bridge", "start": plain[0], "end": plain[1], "duration": self.duration}


def bridge(start: State, end: State, speed: ArrayLike, acceleration: ArrayLike) -> Bridge | None:
    """Return the shortest quintic (to a few percent) between two states that keeps the limits; None when they are the same.

    Parameters
    ----------
    start, end : tuple of array_like (n,)
        q, v, a at both ends; each within the limits.
    speed : array_like, (n,)
        Largest speeds.
    acceleration : array_like, (n,)
        Largest accelerations.

    Returns
    -------
    Bridge or None
        The join.
    """
    if all(np.max(np.abs(x - y)) < SAME for x, y in zip(start, end, strict=True)):
        return None
    top, push = (
        np.broadcast_to(numbers(x, label), start[0].shape) for x, label in ((speed, "speed"), (acceleration, "acceleration"))
    )
    if not (np.all(top > 0.0) and np.all(push > 0.0)):
        raise DynidentError("speed and acceleration of a join must be above zero for every coordinate")
    way = np.abs(end[0] - start[0])
    T = max(0.05, float(np.max(15.0 / 8.0 * way / top)), float(np.max(np.sqrt(10.0 / np.sqrt(3.0) * way / push))))
    for _ in range(200):
        candidate = Bridge(start, end, T)
        _, v, a = candidate(np.linspace(0.0, T, 101))
        if np.all(np.abs(v) <= top * (1.0 + 1e-9)) and np.all(np.abs(a) <= push * (1.0 + 1e-9)):
            return candidate
        T *= 1.05
    raise DynidentError(
        f"no join from {np.round(start[0], 4).tolist()} to {np.round(end[0], 4).tolist()} keeps the limits of speed and "
        "acceleration; raise them, or let the pieces start and end at rest"
    )


@dataclass(frozen=True, eq=False)
class Joined:
    """Curves one after the other.

    Parameters
    ----------
    pieces : sequence of Curve
        Curves that meet in position, velocity and acceleration.
    """

    pieces: Sequence[Curve]

    def __post_init__(self) -> None:
        object.__setattr__(self, "pieces", tuple(self.pieces))
        if not self.pieces:
            raise DynidentError("there is no piece to join; give at least one curve")
        if len({piece.dof for piece in self.pieces}) > 1:
            raise DynidentError(f"pieces have {[p.dof for p in self.pieces]} coordinates; they must agree")

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return float(sum(piece.duration for piece in self.pieces))

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return self.pieces[0].dof

    @property
    def starts(self) -> Array:
        """When each piece starts [s], and when the last one ends."""
        return np.concatenate([[0.0], np.cumsum([piece.duration for piece in self.pieces])])

    def __call__(self, t: ArrayLike) -> State:
        """Return q, v, a.

        Parameters
        ----------
        t : array_like, (N,)
            Time since the start [s].

        Returns
        -------
        q, v, a : ndarray, (N, n)
            Positions, velocities and accelerations.
        """
        time, starts = times(t), self.starts
        which = np.clip(np.searchsorted(starts, time, side="right") - 1, 0, len(self.pieces) - 1)
        out = tuple(np.empty((time.size, self.dof)) for _ in range(3))
        for i in np.unique(which):
            mine = which == i
            for array, values in zip(out, self.pieces[i](time[mine] - starts[i]), strict=True):
                array[mine] = values
        return out[0], out[1], out[2]

    def sample(self, rate: float) -> Motion:
        """Return the motion at a fixed rate.

        Parameters
        ----------
        rate : float
            Samples per second [Hz].

        Returns
        -------
        Motion
            Positions, velocities and accelerations.
        """
        return sample(self, rate)

    def spec(self) -> dict[str, Any]:
        """Return plain data.

        Returns
        -------
        dict
            Plain data, which `from_spec` reads back.
        """
        return {"kind": "joined", "pieces": [piece.spec() for piece in self.pieces]}


def ends(curve: Curve) -> tuple[State, State]:
    """Return q, v, a at the start and at the end of a curve.

    Parameters
    ----------
    curve : Curve
        Any.

    Returns
    -------
    start, end : tuple of ndarray (n,)
        States.
    """
    q, v, a = curve([0.0, curve.duration])
    return (q[0], v[0], a[0]), (q[1], v[1], a[1])


def join(curves: Sequence[Curve], speed: ArrayLike, acceleration: ArrayLike, rest: ArrayLike | None = None) -> Joined:
    """Concatenate curves with quintic joins, so that position, velocity and acceleration never jump.

    Parameters
    ----------
    curves : sequence of Curve
        What to do, in order.
    speed : array_like, (n,)
        Largest speed of the joins.
    acceleration : array_like, (n,)
        Largest acceleration of the joins.
    rest : array_like (n,), optional
        Position at rest from which to start and to which to return; without it the first and last curve are the ends.

    Returns
    -------
    Joined
        Curves and joins.
    """
    if not curves:
        raise DynidentError("there is no curve to join; give at least one")
    pieces: list[Curve] = []
    last: State | None = None
    if rest is not None:
        q = np.asarray(numbers(rest, "rest"), dtype=np.float64)
        last = (q, np.zeros_like(q), np.zeros_like(q))
    home = last
    for curve in curves:
        start, end = ends(curve)
        if last is not None:
            between = bridge(last, start, speed, acceleration)
            pieces += [between] if between is not None else []
        pieces.append(curve)
        last = end
    if home is not None and last is not None:
        between = bridge(last, home, speed, acceleration)
        pieces += [between] if between is not None else []
    return Joined(pieces)
