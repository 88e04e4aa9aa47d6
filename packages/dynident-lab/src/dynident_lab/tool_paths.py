"""Tool paths with velocity profiles, and joint motions along them.

A path is called with s in [0, length] and returns (x, x', x''), each (N, 3). Lines, arcs and splines are parametrised by
arc length (|x'| = 1), so that the profile's speed is the tip's speed.

    x(t) = path(s(t)),   x' = path' s',   x'' = path'' s'^2 + path' s''
    q = IK(x),           J q' = x',       J q'' = x'' - J' q'            exact, without finite differences
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.figures import BLUE, MUTED, finish, new_figure
from dynident.mechanics.dynamics import end_frame, forward_kinematics, frame_motion, jacobian
from dynident.mechanics.functions import Motion
from dynident.mechanics.inverse_kinematics_damped import inverse_kinematics_numeric, pose_targets, robot_size
from dynident.mechanism.mechanism import Mechanism
from dynident.trajectory.profiles import Profile, Quintic
from dynident_lab.postures import choose_posture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Arc", "Hop", "Line", "Segment", "Spline", "Task", "TipMotion", "along", "joint_motion"]


class Path(Protocol):
    """Interface of a path."""

    @property
    def length(self) -> float:
        """Range of the parameter, for most paths the length [m]."""

    def __call__(self, s: ArrayLike) -> tuple[Array, Array, Array]:
        """Return x, x', x'' at s."""


def _point(value: ArrayLike, what: str) -> Array:
    point = numbers(value, what)
    if point.shape != (3,) or not np.isfinite(point).all():
        raise DynidentError(f"{what} is {np.asarray(value).tolist()}; give three finite numbers in metres")
    return point


def _direction(value: ArrayLike, what: str) -> Array:
    vector = _point(value, what)
    size = float(np.linalg.norm(vector))
    if size < 1e-12:
        raise DynidentError(f"{what} is {vector.tolist()}; give a direction that is not zero")
    return vector / size


class Line:
    """A straight line from one point to another.

    Parameters
    ----------
    start, end : array_like, (3,)
        Points [m].
    """

    def __init__(self, start: ArrayLike, end: ArrayLike) -> None:
        self.start, self.end = _point(start, "start"), _point(end, "end")
        self.length = float(np.linalg.norm(self.end - self.start))

    def __call__(self, s: ArrayLike) -> tuple[Array, Array, Array]:
        """Return x, x', x''."""
        way = np.atleast_1d(np.asarray(s, dtype=np.float64))[:, None]
        along = (self.end - self.start) / self.length if self.length else np.zeros(3)
        return self.start + way * along, np.tile(along, (len(way), 1)), np.zeros((len(way), 3))


class Arc:
    """An arc of a circle; a whole circle by default.

    Parameters
    ----------
    start : array_like, (3,)
        Start point [m].
    centre : array_like, (3,)
        Centre of the circle [m].
    normal : array_like, (3,)
        Axis of the turn, right-handed; it must be perpendicular to the radius.
    angle : float
        Angle of the arc [rad]; negative for the opposite direction.
    """

    def __init__(self, start: ArrayLike, centre: ArrayLike, normal: ArrayLike, angle: float = 2.0 * np.pi) -> None:
        self.start, self.centre = _point(start, "start"), _point(centre, "centre")
        self.normal = _direction(normal, "normal")
        spoke = self.start - self.centre
        self.radius = float(np.linalg.norm(spoke))
        if self.radius < 1e-12 or abs(spoke @ self.normal) > 1e-9 * self.radius:
            raise DynidentError(
                f"normal is {self.normal.tolist()}; give a non-zero vector perpendicular to the radius {spoke.tolist()}"
            )
        if not (np.isfinite(angle) and angle != 0.0):
            raise DynidentError(f"angle is {angle}; give a finite angle that is not zero")
        self.angle = float(angle)
        self.length = self.radius * abs(self.angle)

    def __call__(self, s: ArrayLike) -> tuple[Array, Array, Array]:
        """Return x, x', x''."""
        sense = np.sign(self.angle)
        phi = (np.atleast_1d(np.asarray(s, dtype=np.float64)) * sense / self.radius)[:, None]
        e = (self.start - self.centre) / self.radius
        f = np.cross(self.normal, e)
        out = np.cos(phi) * e + np.sin(phi) * f
        return self.centre + self.radius * out, sense * (np.cos(phi) * f - np.sin(phi) * e), -out / self.radius


class Spline:
    """A smooth curve through points (cubic, twice continuously differentiable), parametrised by arc length.

    The curve is c(u), cubic between points; its arc length is s(u) = integral |c'|, by Gauss-Legendre quadrature on
    short spans and inverted by Newton, so that s is exact to rounding.

    Parameters
    ----------
    points : array_like, (k, 3)
        Points in order [m], at least two; a closed curve ends at its first point.
    """

    def __init__(self, points: ArrayLike) -> None:
        nodes = numbers(points, "points")
        if nodes.ndim != 2 or nodes.shape[1] != 3 or len(nodes) < 2 or not np.isfinite(nodes).all():
            raise DynidentError(f"points have shape {nodes.shape}; give at least two finite points of three coordinates")
        gaps = np.linalg.norm(np.diff(nodes, axis=0), axis=1)
        if not np.all(gaps > 0.0):
            raise DynidentError(f"point {int(np.argmin(gaps)) + 1} equals the one before it; remove it")
        closed = bool(np.all(nodes[0] == nodes[-1])) and len(nodes) > 3
        # Centripetal parameters keep the curve free of loops between unevenly spaced points.
        u = np.concatenate([[0.0], np.cumsum(np.sqrt(gaps))])
        self._curve = scipy.interpolate.CubicSpline(u, nodes, bc_type="periodic" if closed else "natural")
        self._breaks = np.unique(np.concatenate([np.linspace(a, b, 17) for a, b in pairwise(u)]))
        self._ways = np.concatenate([[0.0], np.cumsum(self._way(self._breaks[:-1], self._breaks[1:]))])
        self.length = float(self._ways[-1])

    def _way(self, a: ArrayLike, b: ArrayLike) -> Array:
        """Return the length of the curve from parameter a to parameter b, both in one span."""
        knots, weights = np.polynomial.legendre.leggauss(12)
        low, half = np.asarray(a, dtype=np.float64), 0.5 * (np.asarray(b, dtype=np.float64) - np.asarray(a, dtype=np.float64))
        u = low[..., None] + half[..., None] * (1.0 + knots)
        return np.asarray(half * (np.linalg.norm(self._curve(u, 1), axis=-1) @ weights))

    def __call__(self, s: ArrayLike) -> tuple[Array, Array, Array]:
        """Return x, x', x''."""
        way = np.clip(np.atleast_1d(np.asarray(s, dtype=np.float64)), 0.0, self.length)
        i = np.clip(np.searchsorted(self._ways, way, side="right") - 1, 0, len(self._breaks) - 2)
        a, b = self._breaks[i], self._breaks[i + 1]
        u = a + (b - a) * (way - self._ways[i]) / (self._ways[i + 1] - self._ways[i])
        for _ in range(6):  # |c'| hardly changes within a span, so Newton's method converges quickly
            u = u - (self._ways[i] + self._way(a, u) - way) / np.linalg.norm(self._curve(u, 1), axis=1)
        c, d, e = (np.asarray(self._curve(u, k)) for k in range(3))
        speed = np.linalg.norm(d, axis=1, keepdims=True)
        tangent = d / speed
        return c, tangent, (e - np.sum(e * tangent, axis=1, keepdims=True) * tangent) / speed**2


class Hop:
    """A curve from one point to another over a hump, with the pen lifted: x = a + (b - a) f(u) + h n 64 u^3 (1 - u)^3.

    f is the quintic of `Quintic`; the curve is parallel to n at its ends, and u = s / length, which is not arc length.
    """

    def __init__(self, start: ArrayLike, end: ArrayLike, normal: ArrayLike, height: float) -> None:
        self.start, self.end = _point(start, "start"), _point(end, "end")
        self.normal = _direction(normal, "normal")
        if not (np.isfinite(height) and height > 0.0):
            raise DynidentError(f"height is {height}; give a height above zero in metres")
        self.height = float(height)
        self.length = float(np.linalg.norm(self.end - self.start)) + 2.0 * self.height

    def __call__(self, s: ArrayLike) -> tuple[Array, Array, Array]:
        """Return x, x', x''."""
        u = (np.atleast_1d(np.asarray(s, dtype=np.float64)) / self.length)[:, None]
        w, L = u * (1.0 - u), self.length
        shift = self.end - self.start
        hump = 64.0 * self.height * self.normal
        x = self.start + shift * (u**3 * (10.0 - 15.0 * u + 6.0 * u**2)) + hump * w**3
        dx = shift * (30.0 * w**2) + hump * (3.0 * w**2 * (1.0 - 2.0 * u))
        ddx = shift * (60.0 * w * (1.0 - 2.0 * u)) + hump * (6.0 * w * (1.0 - 2.0 * u) ** 2 - 6.0 * w**2)
        return x, dx / L, ddx / L**2


def joined(paths: Sequence[Path]) -> list[bool]:
    """Return for each path whether it starts at the end of the previous one, so that the pen may stay down."""
    ends = [(path(0.0)[0][0], path(path.length)[0][0]) for path in paths]
    return [False] + [bool(np.linalg.norm(b[0] - a[1]) < 1e-9) for a, b in pairwise(ends)]


ProfileMaker = Callable[[float, float, float], Profile]

SINGULAR = 1e-6  # smallest over largest singular value of the scaled Jacobian below which rates are meaningless
JUMP = 0.1  # rad, m (per second): larger deviations of positions and velocities from their rates are jumps


@dataclass(frozen=True)
class Segment:
    """A path with its velocity profile."""

    path: Path  # Path of the tip
    profile: Profile  # Velocity profile; its distance must equal the path's length
    pen: bool = True  # True while the pen is down

    def __post_init__(self) -> None:
        if abs(self.path.length - self.profile.distance) > 1e-9 * max(self.path.length, 1e-3):
            raise DynidentError(
                f"the profile covers {self.profile.distance} m but the path is {self.path.length} m long; create the "
                "profile for this length"
            )


@dataclass(frozen=True, eq=False)
class TipMotion:
    """A sampled motion of the tip."""

    t: Array  # Time [s]
    x: Array  # Position in the base frame [m]
    v: Array  # Velocity in the base frame [m/s]
    a: Array  # Acceleration in the base frame [m/s^2]
    pen: NDArray[np.bool_]  # True while the pen is down

    def plot(self) -> Figure:
        """Draw the path in its two widest directions, and the speed over time; dashed while the pen is up."""
        figure = new_figure(11.0, 3.6)
        path, over = figure.add_axes((0.07, 0.16, 0.4, 0.76)), figure.add_axes((0.56, 0.16, 0.42, 0.76))
        wide = np.sort(np.argsort(np.ptp(self.x, axis=0))[1:])
        speed = np.linalg.norm(self.v, axis=1)
        for down, colour, style, name in ((True, BLUE, "-", "pen down"), (False, MUTED, "--", "pen up")):
            if np.any(self.pen == down):
                shown = np.where((self.pen == down)[:, None], self.x[:, wide], np.nan)
                path.plot(*shown.T, style, color=colour, linewidth=1.2, label=name)
                over.plot(self.t, np.where(self.pen == down, speed, np.nan), style, color=colour, linewidth=1.2)
        finish(path, f"{'xyz'[wide[0]]} [m]", f"{'xyz'[wide[1]]} [m]", "path of the tip")
        finish(over, "time [s]", "speed [m/s]", "")
        path.set_aspect("equal", adjustable="datalim")
        path.legend(frameon=False, fontsize=8)
        return figure


@dataclass(frozen=True, eq=False)
class Task:
    """Segments one after the other, each from rest to rest."""

    segments: Sequence[Segment]  # Segments in order; each starts at the end of the previous one

    def __post_init__(self) -> None:
        object.__setattr__(self, "segments", tuple(self.segments))
        if not self.segments:
            raise DynidentError("the task has no segment; give at least one path with a profile")
        meets = joined([segment.path for segment in self.segments])
        if not all(meets[1:]):
            bad = meets.index(False, 1)
            raise DynidentError(f"segment {bad} does not start where segment {bad - 1} ends; put a line or a hop between them")

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return float(sum(segment.profile.duration for segment in self.segments))

    def sample(self, rate: float) -> TipMotion:
        """Return the tip's motion at a fixed rate."""
        if not (np.isfinite(rate) and rate > 0.0):
            raise DynidentError(f"rate is {rate}; give samples per second above zero")
        # The last sample is at or just after the end, where the tip rests, so that a sampled motion ends at rest, too.
        t = np.arange(int(np.ceil(self.duration * rate * (1.0 - 1e-12))) + 1) / rate
        starts = np.concatenate([[0.0], np.cumsum([segment.profile.duration for segment in self.segments])])
        first = np.append(np.searchsorted(t, starts[:-1]), t.size)
        x, v, a, pen = np.empty((t.size, 3)), np.empty((t.size, 3)), np.empty((t.size, 3)), np.empty(t.size, dtype=np.bool_)
        for i, segment in enumerate(self.segments):
            mine = slice(first[i], first[i + 1])
            s, ds, dds = (y[:, None] for y in segment.profile(t[mine] - starts[i]))
            p, d, e = segment.path(s[:, 0])
            x[mine], v[mine], a[mine], pen[mine] = p, d * ds, e * ds**2 + d * dds, segment.pen
        return TipMotion(t, x, v, a, pen)


def speed_limit(path: Path, speed: float, acceleration: float) -> float:
    """Return the speed with a centripetal acceleration equal to `acceleration` at the sharpest bend: v^2 curvature = a."""
    bend = float(np.max(np.linalg.norm(path(np.linspace(0.0, path.length, 201))[2], axis=1)))
    return min(speed, float(np.sqrt(acceleration / bend))) if bend > 0.0 and acceleration > 0.0 else speed


def along(paths: Sequence[Path], speed: float, acceleration: float, profile: ProfileMaker = Quintic.within) -> Task:
    """Return the task that follows `paths`, one segment each, at rest between them.

    `speed` [m/s] and `acceleration` [m/s^2] limit the motion along the path and, in bends, across it; `profile` is, e.g.,
    ``Trapezoid.within``.
    """
    return Task([Segment(path, profile(path.length, speed_limit(path, speed, acceleration), acceleration)) for path in paths])


def joint_motion(
    mechanism: Mechanism,
    tip: TipMotion,
    rotation: ArrayLike | None = None,
    posture: str = "",
    start: ArrayLike | None = None,
    frame: str | None = None,
) -> Motion:
    """Return the joint motion for a motion of a link, with exact velocities and accelerations.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    tip : TipMotion
        Motion of the link's origin.
    rotation : array_like (3, 3), optional
        Constant orientation of the link; None if only its position matters.
    posture : str
        Branch of the closed-form inverse, see `choose_posture`.
    start : array_like (n,), optional
        First guess for the numeric inverse, which is then used instead of the closed form.
    frame : str, optional
        Link name; the only end when omitted.
    """
    name = end_frame(mechanism, frame)
    R, _ = pose_targets(rotation, tip.x)
    if start is None:
        q = choose_posture(mechanism, R, tip.x, posture, name)
    else:
        q = inverse_kinematics_numeric(mechanism, R, tip.x, start, name, path=True)
    rows = 3 if R is None else 6
    if mechanism.dof > rows:
        raise DynidentError(
            f"robot '{mechanism.name}' has {mechanism.dof} coordinates but the task fixes {rows}, so joint velocities are "
            "undetermined; lock joints with mechanism.lock or give a rotation"
        )
    scale = np.r_[np.ones(3), np.full(rows - 3, robot_size(mechanism))]
    J = jacobian(mechanism, q, name, "world")[:, :rows] * scale[:, None]
    U, sizes, Vt = np.linalg.svd(J, full_matrices=False)
    near = sizes[:, -1] / sizes[:, 0]
    if near.min() < SINGULAR:
        i = int(np.argmin(near))
        raise DynidentError(
            f"the path meets a singularity at t = {tip.t[i]:.6g} s (sample {i}, joints {np.round(q[i], 4).tolist()}); move "
            "the path or choose another posture"
        )

    def rates(x: Array) -> Array:
        full = np.zeros((len(x), rows))
        full[:, : x.shape[1]] = x
        return np.asarray(np.einsum("nji,nj,nkj,nk->ni", Vt, 1.0 / sizes, U, full * scale))

    v = rates(tip.v)
    still = Motion(tip.t, q, v, np.zeros_like(v))
    _, bias = frame_motion(mechanism, still, name)
    turn = forward_kinematics(mechanism, q, name)[0]
    drift = np.hstack([np.einsum("nij,nj->ni", turn, bias[:, :3]), np.einsum("nij,nj->ni", turn, bias[:, 3:])])[:, :rows]
    wanted = -drift
    wanted[:, :3] += tip.a
    motion = Motion(tip.t, q, v, rates(wanted))
    _continuous(mechanism, motion)
    return motion


def _continuous(mechanism: Mechanism, motion: Motion) -> None:
    """Refuse positions or velocities inconsistent with their rates: a singularity lies between two samples."""
    for what, y, rate in (("position", motion.q, motion.v), ("velocity", motion.v, motion.a)):
        step = np.diff(motion.t)[:, None]
        off = np.abs(np.diff(y, axis=0) - 0.5 * (rate[1:] + rate[:-1]) * step)
        bad = np.argwhere(off > JUMP + 2.0 * np.maximum(np.abs(rate[1:]), np.abs(rate[:-1])) * step)
        if bad.size:
            i, j = (int(k) for k in bad[0])
            raise DynidentError(
                f"the {what} of joint '{mechanism.coordinate_names[j]}' jumps by {y[i + 1, j] - y[i, j]:.4g} after t = "
                f"{motion.t[i]:.6g} s: the path crosses a singularity between two samples; move the path or choose another "
                "posture"
            )
