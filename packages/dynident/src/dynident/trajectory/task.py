"""Motions of the tip: paths with velocity profiles one after the other, and the joint motion that makes them.

x(t) = path(s(t)),   x' = path' s',   x'' = path'' s'^2 + path' s''
q = IK(x),           J q' = x',       J q'' = x'' - J' q'            exact, no differences are taken
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.mechanics.inverse_kinematics_closed import choose_posture
from dynident.mechanics.inverse_kinematics_damped import inverse_kinematics_numeric, pose_targets, robot_size
from dynident.mechanics.kinematics import end_frame, forward_kinematics, frame_motion, jacobian
from dynident.mechanics.motion import Motion
from dynident.mechanism.mechanism import Mechanism
from dynident.trajectory.paths import Path, joined
from dynident.trajectory.profiles import Profile, Quintic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
ProfileMaker = Callable[[float, float, float], Profile]

SINGULAR = 1e-6  # smallest over largest singular value of the scaled Jacobian below which rates are meaningless
JUMP = 0.1  # rad, m (per second) by which positions and velocities may leave what their rates say before it counts as a jump


@dataclass(frozen=True)
class Segment:
    """A path and how fast to go along it."""

    path: Path  # Where to go
    profile: Profile  # How fast; its distance must be the path's length
    pen: bool = True  # True while the pen is down

    def __post_init__(self) -> None:
        if abs(self.path.length - self.profile.distance) > 1e-9 * max(self.path.length, 1e-3):
            raise DynidentError(
                f"the profile goes {self.profile.distance} m but the path is {self.path.length} m long; "
                "make the profile for the path's length"
            )


@dataclass(frozen=True, eq=False)
class TipMotion:
    """A sampled motion of the tip."""

    t: Array  # Time [s]
    x: Array  # Position, velocity and acceleration in the base frame [m, m/s, m/s^2]
    v: Array  # Position, velocity and acceleration in the base frame [m, m/s, m/s^2]
    a: Array  # Position, velocity and acceleration in the base frame [m, m/s, m/s^2]
    pen: NDArray[np.bool_]  # True while the pen is down

    def plot(self) -> Figure:
        """Draw the path in the two directions in which it is widest, and the speed over time; dashed where the pen is up."""
        from dynident.figures import BLUE, MUTED, finish, new_figure  # noqa: PLC0415 - matplotlib is an extra

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

    segments: Sequence[Segment]  # What to do, in order; each starts where the one before it ends

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
        """How long it takes [s]."""
        return float(sum(segment.profile.duration for segment in self.segments))

    def sample(self, rate: float) -> TipMotion:
        """Return the tip's motion at a fixed rate."""
        if not (np.isfinite(rate) and rate > 0.0):
            raise DynidentError(f"rate is {rate}; give samples per second above zero")
        # The last sample is at or just after the end, where the tip rests: a sampled motion ends at rest too.
        t = np.arange(int(np.ceil(self.duration * rate * (1.0 - 1e-12))) + 1) / rate
        starts = np.concatenate([[0.0], np.cumsum([segment.profile.duration for segment in self.segments])])
        which = np.clip(np.searchsorted(starts, t, side="right") - 1, 0, len(self.segments) - 1)
        x, v, a, pen = np.empty((t.size, 3)), np.empty((t.size, 3)), np.empty((t.size, 3)), np.empty(t.size, dtype=np.bool_)
        for i, segment in enumerate(self.segments):
            mine = which == i
            s, ds, dds = (y[:, None] for y in segment.profile(t[mine] - starts[i]))
            p, d, e = segment.path(s[:, 0])
            x[mine], v[mine], a[mine], pen[mine] = p, d * ds, e * ds**2 + d * dds, segment.pen
        return TipMotion(t, x, v, a, pen)


def speed_limit(path: Path, speed: float, acceleration: float) -> float:
    """Return the speed at which the sharpest bend of a path costs no more than the acceleration: v^2 curvature = a."""
    bend = float(np.max(np.linalg.norm(path(np.linspace(0.0, path.length, 201))[2], axis=1)))
    return min(speed, float(np.sqrt(acceleration / bend))) if bend > 0.0 and acceleration > 0.0 else speed


def along(paths: Sequence[Path], speed: float, acceleration: float, profile: ProfileMaker = Quintic.within) -> Task:
    """Return the task that goes along paths, resting where one ends and the next starts.

    Parameters
    ----------
    paths : sequence of Path
        Paths that meet.
    speed : float
        Largest speed along the path [m/s].
    acceleration : float
        Largest acceleration along the path, and largest across it in bends, which are taken slower [m/s^2].
    profile : callable
        Makes a profile from distance, speed and acceleration, such as ``Trapezoid.within``.

    Returns
    -------
    Task
        One segment per path.
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
    """Return the joint motion that moves a link as asked, with exact velocities and accelerations.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    tip : TipMotion
        What the link's origin does.
    rotation : array_like (3, 3), optional
        Orientation that the link keeps; None when only its position matters.
    posture : str
        Branch of the closed-form inverse, see `choose_posture`.
    start : array_like (n,), optional
        First guess for the numeric inverse, which is then used instead of the closed form.
    frame : str, optional
        Link name; the only end when omitted.

    Returns
    -------
    Motion
        Joint positions, velocities and accelerations.
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
            f"robot '{mechanism.name}' has {mechanism.dof} coordinates but the task fixes {rows}, so joint velocities are not "
            "determined; lock joints with mechanism.lock or give a rotation"
        )
    scale = np.r_[np.ones(3), np.full(rows - 3, robot_size(mechanism))]
    J = jacobian(mechanism, q, name, "world")[:, :rows] * scale[:, None]
    U, sizes, Vt = np.linalg.svd(J, full_matrices=False)
    near = sizes[:, -1] / sizes[:, 0]
    if near.min() < SINGULAR:
        i = int(np.argmin(near))
        raise DynidentError(
            f"the path meets a singularity at t = {tip.t[i]:.6g} s (sample {i}, joints {np.round(q[i], 4).tolist()}), where "
            "joint velocities are not defined; move the path or choose another posture"
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
    """Refuse positions or velocities that do not follow from their rates: a singularity lies between two samples."""
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
