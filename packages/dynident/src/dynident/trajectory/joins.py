"""Concatenation with smooth joins, and lead-ins and lead-outs of periodic motions without rest.

A join is a quintic that matches position, velocity and acceleration of both curves. A lead follows the motion's own path
with a slowed clock:

    q = c(s(t)),    s' = 3 u^2 - 2 u^3 (in) or 1 minus it (out),    u = t / T,    T = k periods

Its positions are those of the motion itself, so it keeps every limit on positions (joints, tool, collisions, loops), and
speeds are never higher. s runs over T / 2, so a lead-in starts, and a lead-out ends, at the same place c(k P / 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.trajectory.curves import HERMITE, Curve, CurveBase, State, hermite, positive
from dynident.trajectory.profiles import Quintic

SAME = 1e-9  # difference of states [rad, rad/s, rad/s^2] below which no join is needed
TOUCH = 1e-9  # share of a limit by which rounding may exceed it
SHORTEST = 0.05  # join [s]
LARGEST = 1e12  # positions, their rates, and times [s]: larger values are implausible, and polynomials overflow


@dataclass(frozen=True, eq=False)
class Bridge(CurveBase):
    """The quintic from one state to another."""

    _kind = "bridge"

    start: State  # q, v, a at both ends
    end: State  # q, v, a at both ends
    duration: float  # Duration [s]; 0 for none

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return int(np.size(self.start[0]))

    @property
    def _ends(self) -> Array:
        """Both states as derivatives with respect to t / T, (6, n)."""
        return np.array([x * self.duration**k for state in (self.start, self.end) for k, x in enumerate(state)])

    def at(self, t: Array) -> State:
        """Return q, v, a at checked times."""
        T, ends = self.duration, self._ends
        u = np.clip(t / T, 0.0, 1.0)
        return hermite(u, 0) @ ends, hermite(u, 1) @ ends / T, hermite(u, 2) @ ends / T**2

    def extremes(self) -> list[tuple[Array, Array]]:
        """Return the lowest and highest position, velocity, acceleration and jerk of every coordinate, exactly."""
        T = self.duration
        powers = (HERMITE @ self._ends).T[:, ::-1]  # highest power first
        found: list[tuple[list[float], list[float]]] = [([], []) for _ in range(4)]
        for polynomial in powers:
            derivatives = [polynomial]
            for _ in range(4):
                derivatives.append(np.polyder(derivatives[-1]))
            for order, (low, high) in enumerate(found):
                roots = np.roots(derivatives[order + 1])
                inner = roots.real[(np.abs(roots.imag) < 1e-6) & (roots.real > 0.0) & (roots.real < 1.0)]
                values = np.polyval(derivatives[order], np.r_[0.0, 1.0, inner]) / T**order
                low.append(float(values.min()))
                high.append(float(values.max()))
        return [(np.array(low), np.array(high)) for low, high in found]


@dataclass(frozen=True, eq=False)
class Room:
    """Limits of joins, (n,) each; infinite without a limit."""

    speed: Array  # Largest rates, above zero
    acceleration: Array  # Largest rates, above zero
    lower: Array | None = None  # Range of positions
    upper: Array | None = None  # Range of positions
    jerk: Array | None = None  # Largest jerk

    def excess(self, move: Bridge) -> tuple[Array, Array]:
        """Return the largest relative excess of rates and of positions of a bridge over their limits; negative inside."""
        peaks = move.extremes()
        n = move.dof
        rates = np.full(n, -1.0)
        for limit, (low, high) in zip((self.speed, self.acceleration, self.jerk), peaks[1:], strict=True):
            if limit is not None:
                rates = np.maximum(rates, np.maximum(-low, high) / np.broadcast_to(limit, (n,)) - 1.0)
        places = np.full(n, -np.inf)
        if self.lower is not None and self.upper is not None:
            half = 0.5 * np.maximum(np.broadcast_to(self.upper, (n,)) - self.lower, 1e-12)
            half = np.where(np.isfinite(half), half, 1.0)
            places = np.maximum(self.lower - peaks[0][0], peaks[0][1] - self.upper) / half
        return rates, places


def bridge(start: State, end: State, room: Room) -> Bridge | None:
    """Return the shortest quintic (to a few percent) between two states that keeps the limits; None for equal states."""
    if all(np.max(np.abs(x - y)) < SAME for x, y in zip(start, end, strict=True)):
        return None
    top, push = (
        np.broadcast_to(numbers(x, label), start[0].shape)
        for x, label in ((room.speed, "speed"), (room.acceleration, "acceleration"))
    )
    if not (np.all(top > 0.0) and np.all(push > 0.0)):
        raise DynidentError("speed and acceleration of a join must be above zero for every coordinate")
    if not np.all(np.abs([*start, *end]) < LARGEST):
        raise DynidentError(f"a motion begins or ends beyond {LARGEST:g}; give positions in radians or metres")
    way = np.abs(end[0] - start[0])
    fast, hard = Quintic.peaks
    T = max(SHORTEST, float(np.max(fast * way / top)), float(np.max(np.sqrt(hard * (way / push)))))
    if not T < LARGEST:
        raise DynidentError(f"a join would take {T:.3g} s; raise the limits of speed and acceleration")
    outside = None  # coordinate that leaves its range in the first join that keeps the rates
    for _ in range(200):
        candidate = Bridge(start, end, T)
        rates, places = room.excess(candidate)
        if np.all(rates <= TOUCH):
            if np.all(places <= TOUCH):
                return candidate
            outside = int(np.argmax(places)) if outside is None else outside
        T *= 1.05
    text = f"no join from {np.round(start[0], 4).tolist()} to {np.round(end[0], 4).tolist()} keeps the limits"
    if outside is not None:
        raise DynidentError(
            f"{text}: coordinate {outside} leaves its range; let the pieces start and end at rest, or further in"
        )
    raise DynidentError(f"{text} of speed, acceleration and jerk; raise them, or let the pieces start and end at rest")


@dataclass(frozen=True, eq=False)
class Joined(CurveBase):
    """Curves one after the other."""

    _kind = "joined"

    pieces: Sequence[Curve]  # Curves that meet in position, velocity and acceleration

    def __post_init__(self) -> None:
        object.__setattr__(self, "pieces", tuple(self.pieces))
        if not self.pieces:
            raise DynidentError("there is no piece to join; give at least one curve")
        if len({piece.dof for piece in self.pieces}) > 1:
            raise DynidentError(f"pieces have {[p.dof for p in self.pieces]} coordinates; they must agree")

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return float(sum(piece.duration for piece in self.pieces))

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return self.pieces[0].dof

    @property
    def starts(self) -> Array:
        """Start time of each piece, and the end time of the last one [s]."""
        return np.concatenate([[0.0], np.cumsum([piece.duration for piece in self.pieces])])

    def at(self, t: Array) -> State:
        """Return q, v, a at checked times."""
        starts = self.starts
        which = np.clip(np.searchsorted(starts, t, side="right") - 1, 0, len(self.pieces) - 1)
        out = tuple(np.empty((t.size, self.dof)) for _ in range(3))
        for i in np.unique(which):
            mine = which == i
            for array, values in zip(out, self.pieces[i](t[mine] - starts[i]), strict=True):
                array[mine] = values
        return out[0], out[1], out[2]


def ends(curve: Curve) -> tuple[State, State]:
    """Return q, v, a at the start and at the end of a curve."""
    q, v, a = curve([0.0, curve.duration])
    return (q[0], v[0], a[0]), (q[1], v[1], a[1])


def join(
    curves: Sequence[Curve],
    speed: ArrayLike,
    acceleration: ArrayLike,
    rest: ArrayLike | None = None,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    jerk: ArrayLike | None = None,
) -> Joined:
    """Return `curves` with quintic joins between them that keep every limit; position, velocity and acceleration never jump.

    Parameters
    ----------
    curves
        Curves in order.
    speed, acceleration, jerk, lower, upper : array_like, (n,)
        Limits of the joins; joins between curves at rest stay between their ends in any case.
    rest : array_like (n,), optional
        Position at rest at start and end; without it the motion starts and ends with the first and the last curve.
    """
    if not curves:
        raise DynidentError("there is no curve to join; give at least one")
    bounds = [None if x is None else numbers(x, label) for x, label in ((lower, "lower"), (upper, "upper"), (jerk, "jerk"))]
    room = Room(numbers(speed, "speed"), numbers(acceleration, "acceleration"), *bounds)
    pieces: list[Curve] = []
    last: State | None = None
    if rest is not None:
        q = np.asarray(numbers(rest, "rest"), dtype=np.float64)
        last = (q, np.zeros_like(q), np.zeros_like(q))
    home = last
    for curve in curves:
        start, end = ends(curve)
        if last is not None:
            between = bridge(last, start, room)
            pieces += [between] if between is not None else []
        pieces.append(curve)
        last = end
    if home is not None and last is not None:
        between = bridge(last, home, room)
        pieces += [between] if between is not None else []
    return Joined(pieces)


STEPS = (1, 2, 4, 8, 16)  # candidate lengths of a lead, in periods
GRID = 1000  # samples per period on which accelerations are checked


@dataclass(frozen=True, eq=False)
class Slowed(CurveBase):
    """A curve at a share of its speed: q(s t), s v(s t), s^2 a(s t)."""

    _kind = "slowed"

    curve: Curve
    speed: float

    def __post_init__(self) -> None:
        if not 0.0 < positive("speed", self.speed) <= 1.0:
            raise DynidentError(f"speed is {self.speed:g}; give a share above 0 and up to 1")

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return self.curve.duration / self.speed

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return self.curve.dof

    def at(self, t: Array) -> State:
        """Return q, v, a at checked times."""
        q, v, a = self.curve(self.speed * t)
        return q, self.speed * v, self.speed**2 * a


@dataclass(frozen=True, eq=False)
class Lead(CurveBase):
    """A periodic motion with a start from rest, or an end at rest."""

    _kind = "lead"

    curve: Curve  # One period of the motion; its final state equals its initial state
    periods: int = 1  # Length k of the lead
    out: bool = False  # True to come to rest, False to start from it

    def __post_init__(self) -> None:
        if self.periods < 1:
            raise DynidentError(f"periods of a lead is {self.periods}; give at least 1")
        if not periodic(self.curve):
            raise DynidentError("a lead needs a periodic motion; join other motions instead")

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return self.periods * self.curve.duration

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return self.curve.dof

    def at(self, t: Array) -> State:
        """Return q, v, a at checked times."""
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
    """Return whether the final state of a curve equals its initial state."""
    return all(np.max(np.abs(x[1] - x[0])) <= 1e-9 * (1.0 + np.max(np.abs(x))) for x in curve([0.0, curve.duration]))


def resting(curve: Curve) -> bool:
    """Return whether a curve starts and ends at rest."""
    _, v, a = curve([0.0, curve.duration])
    return bool(np.max(np.abs(v)) < 1e-9 and np.max(np.abs(a)) < 1e-9)


def leads(curve: Curve, acceleration: ArrayLike) -> tuple[Lead, Lead]:
    """Return the shortest lead-in and lead-out of `curve`, one period of a motion, that keep `acceleration` (n,)."""
    push = np.broadcast_to(numbers(acceleration, "acceleration"), (curve.dof,))
    for k in STEPS:
        pair = Lead(curve, k), Lead(curve, k, True)
        t = np.linspace(0.0, pair[0].duration, GRID * k + 1)
        used = np.max([np.abs(lead(t)[2]).max(axis=0) for lead in pair], axis=0)
        if np.all(used <= push * (1.0 + 1e-9)):
            return pair
    worst = int(np.argmax(used / push))
    raise DynidentError(
        f"the motion cannot start from rest: coordinate {worst} needs an acceleration of {used[worst]:.6g}, limit "
        f"{push[worst]:.6g}; design it with a margin, or from rest to rest"
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
    """Return one cycle from rest at `home` and back: repeated `curves`, joined; with leads for curves without rest.

    `speed`, `acceleration`, `jerk`, `lower` and `upper` (n,) limit the joins, `acceleration` also the leads.
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
    """Return the position of the robot at rest before a curve: c(0), or the start of the lead-in if c has no rest."""
    first = leads(curve, acceleration)[0] if not resting(curve) and periodic(curve) else curve
    return np.asarray(first([0.0])[0][0])
