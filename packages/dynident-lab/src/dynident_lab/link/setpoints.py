"""Setpoints of a controller: a buffer of trajectory points, quintics between them, and a ramp to rest.

    q(t) between two points: the quintic with their q, v, a; the cubic with their q, v; a Catmull-Rom cubic with q alone

This module knows neither time nor sockets: a protocol pushes points, the emulator takes chunks.
Times are whole ticks since the start of the trajectory, so that setpoints are bit-identical for any division into chunks.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import LinkError
from dynident.mechanics import Motion
from dynident.trajectory.curves import hermite

START_TOLERANCE = 2e-3  # largest distance of the first point from the commanded position [rad, m]
SLACK = 1e-4  # relative tolerance of limits: points arrive as float32
ROUNDING = 2.0**-23  # relative rounding of the distance between two such points
NODES = np.linspace(0.0, 1.0, 33)  # of a span, for the check of its speed and acceleration
AT_REST = 1e-6  # speed below which a point counts as rest [rad/s, m/s]
FASTEST_BRAKE = 0.02  # shortest ramp to rest, used near a limit [s]
LONGEST = 1e8  # longest trajectory [s]
NEAR = 1e-12  # tolerance of the time of a point [s]


@dataclass(eq=False)
class Point:
    """One point of a trajectory: time since its start [s], position, and velocity and acceleration if known."""

    t: float
    q: Array
    v: Array | None = None
    a: Array | None = None
    asked: float = np.nan  # time given by the client; `t` is the next tick [s]

    def __post_init__(self) -> None:
        self.asked = self.t


@dataclass(frozen=True, eq=False)
class JointLimits:
    """Limits of the setpoints, (n,) each."""

    names: tuple[str, ...]
    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array

    def check(self, q: Array, begun: Array | None = None) -> None:
        """Raise an error that names the limit that a position violates; a motion that began outside may return."""
        slack = SLACK * (1.0 + np.abs(q))
        first = np.clip(q, self.lower, self.upper) if begun is None else begun
        low, high = q < np.minimum(self.lower, first) - slack, q > np.maximum(self.upper, first) + slack
        if (bad := low | high).any():
            i = int(bad.argmax())
            what, limit = ("below its lower limit", self.lower[i]) if low[i] else ("above its upper limit", self.upper[i])
            raise LinkError(f"setpoint of joint '{self.names[i]}' is {q[i]:.6g}, {what} {limit:.6g}; change the plan")

    def check_span(self, a: Point, b: Point) -> None:
        """Raise an error that names a joint that is too fast, or accelerates too much, between two points.

        Only the mean speed is known for a point without a velocity.
        """
        h, way = b.asked - a.asked, b.q - a.q
        if a.v is None or b.v is None:
            peaks = np.array([way / h, 0.0 * way])
        else:
            whole = a.a is not None and b.a is not None
            with np.errstate(over="ignore", invalid="ignore"):  # implausible numbers of a client
                ends = np.array([way, a.v * h, b.v * h, *((a.a * h * h, b.a * h * h) if whole else ())])  # type: ignore[operator]
                peaks = _largest((QUINTIC if whole else CUBIC) @ ends) / [[h], [h * h]]
        limits = np.array([self.velocity, self.acceleration])
        # An error e of the distance changes the curve's speed by up to 3 e / h and its acceleration by up to 12 e / h^2.
        error = ROUNDING * np.maximum(np.abs(a.q), np.abs(b.q))
        bad = ~(np.abs(peaks) <= limits * (1.0 + SLACK) + SLACK + error * [[3.0 / h], [12.0 / h**2]])  # NaN is bad too
        if bad.any():
            k, i = np.unravel_index(int(bad.argmax()), bad.shape)
            unit = ("/s", "/s^2")[k]
            raise LinkError(
                f"setpoint of joint '{self.names[i]}' needs {peaks[k, i]:.6g}{unit}, above its limit "
                f"{limits[k, i]:.6g}{unit}; change the plan"
            )


class Setpoints:
    """The buffer between a protocol and the robot."""

    def __init__(self, q: Array, limits: JointLimits, capacity: int = 100, brake_time: float = 0.25) -> None:
        self.limits, self.capacity, self.brake_time = limits, capacity, brake_time
        self.q, self.v = np.array(q), np.zeros_like(q)  # commanded position and velocity
        self._points: deque[Point] = deque()
        self.now = 0.0  # time since the trajectory's start [s]
        self.held = False  # True while a download is incomplete
        self.ended = True  # no further point will follow
        self._marked, self._begun = False, self.q.copy()
        self.braking, self._left = False, 0.0  # and the time until rest [s]
        self.count = 0  # points accepted since the trajectory's start
        self._arrived = np.nan  # end of a trajectory that coincides with the start of the next chunk [s]

    # ------------------------------------------------------------------ filling
    def begin(self, hold: bool = False, marked: bool = False) -> None:
        """Remove the last trajectory and wait for the points of another; `hold` keeps it from running until `finish`.

        With `marked` it ends only with `finish`; otherwise a point of rest may be its last.
        """
        if self.moving:
            raise LinkError("the robot still moves; wait until it rests, or stop it")
        self._points.clear()
        self.now, self.count, self.ended, self.held, self.braking = 0.0, 0, False, hold, False
        self._marked, self._begun = marked, self.q.copy()

    @property
    def waiting(self) -> int:
        """Number of points not reached yet."""
        reached = 0
        for p in self._points:  # at most two of them are kept
            if p.t > self.now:
                break
            reached += 1
        return len(self._points) - reached

    @property
    def room(self) -> bool:
        """True if another point fits."""
        return self.waiting < self.capacity

    def push(self, point: Point) -> None:
        """Accept one more point, after checking that the robot can follow."""
        if self.ended:
            raise LinkError("no trajectory is open; start one with sequence 0, -1 or -2")
        if point.t > LONGEST:
            raise LinkError(f"a point at t = {point.t:.6g} s; a trajectory is at most {LONGEST:g} s long")
        self.limits.check(point.q, self._begun)
        if not self._points:
            far = np.abs(point.q - self.q)
            if point.t <= 0.0 and far.max() > START_TOLERANCE:
                i = int(far.argmax())
                raise LinkError(
                    f"the trajectory starts with joint '{self.limits.names[i]}' at {point.q[i]:.6g} but it is at "
                    f"{self.q[i]:.6g}; move there first"
                )
            if point.t > 0.0:
                self._points.append(Point(0.0, self.q.copy(), np.zeros_like(self.q), np.zeros_like(self.q)))
            else:
                point = Point(0.0, point.q, point.v if point.v is not None else np.zeros_like(point.q), point.a)
        if self._points:
            last = self._points[-1]
            if point.t <= last.t:
                raise LinkError(f"point at t = {point.t:.6g} s follows one at {last.t:.6g} s; times must increase")
            if last.v is None:
                last.v = _parabola(self._points[-2], last, point)
                self.limits.check_span(self._points[-2], last)
            self.limits.check_span(last, point)
        self._points.append(point)
        self.count += 1

    def finish(self) -> None:
        """Mark the trajectory as complete."""
        self.rest_here()
        self.ended, self.held = True, False

    def rest_here(self) -> None:
        """Turn the last point into one of rest, because no other has followed for a while."""
        if self._points and self._points[-1].v is None:
            self._points[-1].v = np.zeros_like(self.q)
            self.limits.check_span(self._points[-2], self._points[-1])  # the first point always has a velocity

    # ------------------------------------------------------------------ running
    @property
    def moving(self) -> bool:
        """True while setpoints change."""
        return self.braking or (not self.held and self.covered > self.now)

    @property
    def covered(self) -> float:
        """Time until which setpoints are known [s]."""
        if not self._points:
            return self.now
        if self._points[-1].v is not None:
            return self._points[-1].t
        return self._points[-2].t if len(self._points) > 1 else self.now

    @property
    def dry(self) -> bool:
        """True if more points must follow: the last known one is not the last of its trajectory, or not at rest."""
        if self.ended or not self._points or self.held:
            return False
        last = self._points[-1]
        return self._marked or last.v is None or float(np.abs(last.v).max()) > AT_REST

    def stop(self) -> None:
        """Remove all points; the robot brakes from its present state, faster near a limit."""
        if not self.braking:
            self.braking, self._left = float(np.abs(self.v).max()) > AT_REST, self._time_to_brake()
            if not self.braking:
                self.v = np.zeros_like(self.v)
        self._points.clear()
        self.ended, self.held, self._arrived = True, False, np.nan

    def _time_to_brake(self) -> float:
        """Return the time of a ramp to rest that ends within the limits [s]; its distance is half of speed times time."""
        room = np.where(self.v > 0.0, self.limits.upper - self.q, self.q - self.limits.lower)
        times = 2.0 * np.maximum(room, 0.0) / np.maximum(np.abs(self.v), AT_REST)
        return float(np.clip(times.min(), FASTEST_BRAKE, self.brake_time))

    def take(self, duration: float, tick: float, wait: bool = False) -> tuple[Motion, Array]:
        """Return and remove the next chunk of setpoints, with the trajectory time of each [s] (NaN: none).

        With `wait` the robot stands and the trajectory does not advance.
        """
        t = np.arange(round(duration / tick) + 1) * tick
        n = self.q.size
        q, v, a = np.tile(self.q, (t.size, 1)), np.zeros((t.size, n)), np.zeros((t.size, n))
        since = np.full(t.size, np.nan)
        since[0], self._arrived = self._arrived, np.nan
        if self.braking:
            T = self._left
            u = np.minimum(t, T)[:, None]
            q = self.q + self.v * (u - u**2 / (2.0 * T))
            v = self.v * (1.0 - u / T)
            a = np.where(t[:, None] < T, -self.v / T, 0.0)
            self._left = T - duration
            self.braking = self._left > 1e-9
        elif self.moving and not wait:
            end = self.covered
            at = (round(self.now / tick) + np.arange(t.size)) * tick
            inside = at <= end + 1e-9
            q[inside], v[inside], a[inside] = self._curve(np.minimum(at[inside], end))
            since[inside] = at[inside]
            self.now = float(at[-1])
            if not inside.all():
                q[~inside] = self._curve(np.array([end]))[0]
                self.now = end
            elif not self.moving:
                self._arrived = self.now
            while len(self._points) > 2 and self._points[1].t <= self.now:
                self._points.popleft()
        self.q, self.v = q[-1].copy(), v[-1].copy()
        return Motion(t, q, v, a), since

    def _curve(self, t: Array) -> tuple[Array, Array, Array]:
        """Return q, v, a between the points, at times within their range."""
        points = []
        for p in self._points:
            points.append(p)
            if len(points) > 2 and points[-2].t > t[-1]:  # one more than needed, for the velocity of the last
                break
        if len(points) == 1:
            return (
                np.tile(points[0].q, (t.size, 1)),
                np.zeros((t.size, points[0].q.size)),
                np.zeros((t.size, points[0].q.size)),
            )
        times = np.array([p.t for p in points])
        first, last = _left(times, t[[0, -1]])
        last += 2
        unknown = np.full(self.q.size, np.nan)
        q = np.array([p.q for p in points[first:last]])
        v = np.array([np.zeros_like(p.q) if p.v is None else p.v for p in points[first:last]])
        a = np.array([unknown if p.a is None else p.a for p in points[first:last]])
        return through(times[first:last], q, v, a, t)


def _parabola(before: Point, p: Point, after: Point) -> Array:
    """Return the velocity at a point from the parabola through it and its neighbours."""
    h, k = p.t - before.t, after.t - p.t
    return np.asarray(((p.q - before.q) / h * k + (after.q - p.q) / k * h) / (h + k))


def _largest(rates: Array) -> Array:
    """Return speed and acceleration of largest magnitude for every joint, (2, n), from the output of `_rates`."""
    found = rates.reshape(2, NODES.size, -1)
    low, high = found.min(axis=1), found.max(axis=1)
    return np.asarray(np.where(-low > high, low, high))


def standing(q: Array, duration: float) -> Motion:
    """Return setpoints of rest."""
    return Motion([0.0, duration], *(np.tile(x, (2, 1)) for x in (q, 0.0 * q, 0.0 * q)))


def on_ticks(motion: Motion, tick: float) -> Motion:
    """Return a motion from t = 0 on with its points on whole ticks."""
    return Motion(np.round((motion.t - motion.t[0]) / tick) * tick, motion.q, motion.v, motion.a)


def sampled(motion: Motion, first: int, last: int, tick: float) -> Motion:
    """Return the setpoints of a motion on ticks, from one tick to another."""
    at = np.asarray(np.arange(first, last + 1) * tick, dtype=np.float64)
    begin, end = _left(motion.t, at[[0, -1]])
    part = slice(begin, end + 2)
    return Motion(at - at[0], *through(motion.t[part], motion.q[part], motion.v[part], motion.a[part], at))


def through(t: Array, q: Array, v: Array, a: Array, at: Array) -> tuple[Array, Array, Array]:
    """Return q, v, a of the Hermite quintics through points, at increasing times in their range; cubics where a is NaN."""
    left = _left(t, at)
    h = np.diff(t)[left, None]
    way, v0, v1 = (q[left + 1] - q[left]), h * v[left], h * v[left + 1]
    a0, a1 = h * h * a[left], h * h * a[left + 1]
    cubic = np.isnan(a0) | np.isnan(a1)
    a0 = np.where(cubic, 6.0 * way - 4.0 * v0 - 2.0 * v1, a0)
    a1 = np.where(cubic, 2.0 * v0 + 4.0 * v1 - 6.0 * way, a1)
    u = (at - t[left]) / h[:, 0]
    value, rate, second = (
        sum(w[:, None] * x for w, x in zip(hermite(u, order).T[1:], (v0, a0, way, v1, a1), strict=True)) for order in range(3)
    )
    return q[left] + value, rate / h, second / h**2


def _left(t: Array, at: Array) -> NDArray[np.int64]:
    """Return the number of the point before each time, the last but one at most."""
    return np.clip(np.searchsorted(t, at + NEAR, side="right") - 1, 0, t.size - 2)


def _rates(count: int) -> Array:
    """Return the matrix from distance and end values to speeds and accelerations at `NODES` of a span of length 1.

    The end values are v0, v1 and, for a count of 5, a0, a1.
    """
    way, v0, v1, a0, a1 = np.vstack([np.eye(count), np.full((5 - count, count), np.nan)])
    zero = np.zeros(count)
    _, v, a = through(np.array([0.0, 1.0]), np.array([zero, way]), np.array([v0, v1]), np.array([a0, a1]), NODES)
    return np.vstack([v, a])


QUINTIC, CUBIC = _rates(5), _rates(3)
