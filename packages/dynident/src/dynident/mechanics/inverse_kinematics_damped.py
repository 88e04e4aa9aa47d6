"""Numeric inverse kinematics: damped least squares with joint limits, for robots of any structure.

Each step solves (J^T J + lambda diag(J^T J)) dq = J^T e with the pose error e = (p* - p, L log(R* R^T)), where L is the size
of the robot, so that metres and radians have equal weight. lambda shrinks after a successful step and grows otherwise
[Levenberg1944] [Marquardt1963]; a joint that pushes against its limit is held during the step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.checks import finite_rows, numbers
from dynident.errors import DynidentError
from dynident.mechanics.dynamics import end_frame, forward_kinematics, jacobian
from dynident.mechanics.functions import coordinates
from dynident.mechanism.mechanism import Mechanism

STEPS = 200  # per target, at most
# Largest error of a reached target, in parts of the robot's size; 1e4 times this if rounding prevents convergence.
REACHED = 1e-12
TOGETHER = 64  # random starts tried at once: a step of many samples costs little more than a step of one


def pose_targets(rotation: ArrayLike | None, position: ArrayLike) -> tuple[Array | None, Array]:
    """Return targets as batches after checking them."""
    p = np.atleast_2d(numbers(position, "position"))
    if p.ndim != 2 or p.shape[1] != 3:
        raise DynidentError(f"position has shape {np.shape(position)}; give (samples, 3) in metres")
    finite_rows("position", p)
    if rotation is None:
        return None, p
    R = numbers(rotation, "rotation")
    if R.shape[-2:] != (3, 3) or R.ndim not in (2, 3) or (R.ndim == 3 and len(R) not in (1, len(p))):
        raise DynidentError(f"rotation has shape {R.shape} but there are {len(p)} positions; give (samples, 3, 3) or (3, 3)")
    R = np.array(np.broadcast_to(R, (len(p), 3, 3)))
    wrong = np.abs(R @ np.swapaxes(R, 1, 2) - np.eye(3)).max(axis=(1, 2)) + (np.linalg.det(R) < 0.0)
    if not np.all(wrong < 1e-6):
        bad = int(np.argmax(~(wrong < 1e-6)))
        raise DynidentError(f"rotation at sample {bad} is not a rotation matrix (R R^T = 1, det R = 1); normalise it")
    return R, p


def middle_of(lower: Array, upper: Array) -> Array:
    """Return the middle of the limits; where one or both are infinite, the allowed position nearest to zero."""
    bounded = np.isfinite(lower) & np.isfinite(upper)
    low, high = np.where(bounded, lower, 0.0), np.where(bounded, upper, 0.0)
    return np.where(bounded, 0.5 * (low + high), np.clip(0.0, lower, upper))


def pose_error(rotation: Array | None, position: Array, R: Array, p: Array) -> Array:
    """Return (p* - p, log(R* R^T)) in base axes."""
    linear = position - p
    if rotation is None:
        return linear
    D = rotation @ np.swapaxes(R, 1, 2)
    axial = 0.5 * np.stack([D[:, 2, 1] - D[:, 1, 2], D[:, 0, 2] - D[:, 2, 0], D[:, 1, 0] - D[:, 0, 1]], axis=1)
    sine, cosine = np.linalg.norm(axial, axis=1), 0.5 * (np.trace(D, axis1=1, axis2=2) - 1.0)
    angle = np.arctan2(sine, cosine)
    vector = axial * np.where(sine > 1e-8, angle / np.maximum(sine, 1e-300), 1.0)[:, None]
    half = (sine <= 1e-8) & (cosine < 0.0)  # half a turn: the axis is the largest column of D + 1
    if half.any():
        columns = D[half] + np.eye(3)
        largest = np.argmax(columns[:, range(3), range(3)], axis=1)
        axis = columns[np.arange(len(columns)), :, largest]
        vector[half] = np.pi * axis / np.linalg.norm(axis, axis=1, keepdims=True)
    return np.hstack([linear, vector])


@dataclass(frozen=True, eq=False)
class PoseTask:
    """Target poses and joint limits."""

    mechanism: Mechanism
    frame: str
    rotation: Array | None
    position: Array
    lower: Array
    upper: Array
    size: float

    def rows(self, keep: NDArray[np.int64]) -> PoseTask:
        """Return the task for some of the targets."""
        rotation = None if self.rotation is None else self.rotation[keep]
        return replace(self, rotation=rotation, position=self.position[keep])

    def error(self, q: Array) -> Array:
        """Return the pose error, angles times the size [m]."""
        e = pose_error(self.rotation, self.position, *forward_kinematics(self.mechanism, q, self.frame))
        e[:, 3:] *= self.size
        return e

    def slope(self, q: Array) -> Array:
        """Return the Jacobian of the error."""
        J = jacobian(self.mechanism, q, self.frame, "world")
        if self.rotation is None:
            return J[:, :3]
        J[:, 3:] *= self.size
        return J


def damped_least_squares(task: PoseTask, start: Array, tolerance: float, iterations: int) -> tuple[Array, Array]:
    """Return the positions reached and the remaining error [m] of each sample."""
    q = np.clip(start, task.lower, task.upper)
    e = task.error(q)
    left, damping = np.linalg.norm(e, axis=1), np.full(len(q), 1e-3)
    busy = left > tolerance
    for _ in range(iterations):
        if not busy.any():
            break
        i = np.flatnonzero(busy).astype(np.int64)
        now = task.rows(i)
        J, x = now.slope(q[i]), q[i]
        g = np.einsum("nij,ni->nj", J, e[i])
        held = ((x <= task.lower) & (g < 0.0)) | ((x >= task.upper) & (g > 0.0))
        J, g = np.where(held[:, None], 0.0, J), np.where(held, 0.0, g)
        H = np.swapaxes(J, 1, 2) @ J
        diagonal = np.einsum("njj->nj", H)
        floor = 1e-9 * diagonal.max(axis=1, keepdims=True) + 1e-300
        H = H + np.eye(H.shape[1]) * (damping[i, None] * np.maximum(diagonal, floor))[:, None]
        step = np.linalg.solve(H, g[..., None])[..., 0]
        trial = np.clip(x + step, task.lower, task.upper)
        after = now.error(trial)
        size = np.linalg.norm(after, axis=1)
        better = size < left[i]
        good = i[better]
        q[good], e[good], left[good] = trial[better], after[better], size[better]
        damping[i] = np.where(better, np.maximum(damping[i] * 0.1, 1e-15), np.maximum(damping[i] * 8.0, 1e-9))
        # A sample is also done when its steps have become negligible.
        stuck = (damping[i] > 1e9) | (np.abs(step).max(axis=1) < 1e-16)
        busy[i] = (left[i] > tolerance) & ~stuck
    return q, left


def inverse_kinematics_numeric(
    mechanism: Mechanism,
    rotation: ArrayLike | None,
    position: ArrayLike,
    start: ArrayLike | None = None,
    frame: str | None = None,
    path: bool = False,
    restarts: int = 100,
    failure: str = "raise",
) -> Array:
    """Return joint positions that bring a link to the given poses: FK(q) = (R, p), within the joint limits.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates; couplings are respected.
    rotation : array_like (N, 3, 3) or (3, 3), or None
        Orientations of the link in the base frame; None when only its position matters.
    position : array_like, (N, 3) or (3,)
        Positions of the link's origin [m].
    start : array_like (n,) or (N, n), optional
        First guess; the middle of the limits (0 where there are none) when omitted.
    frame : str, optional
        Link name; the only end when omitted.
    path : bool
        True when the targets form a path: each starts at the previous solution and has no restarts, so
        that the joints move continuously.
    restarts : int
        Number of random starts (always the same) for a target that is not reached.
    failure : {"raise", "nan"}
        Result for a target that is not reached: an error that states the remaining distance, or a row of NaN.
    """
    if failure not in ("raise", "nan"):
        raise DynidentError(f"failure is {failure!r}; give 'raise' or 'nan'")
    name = end_frame(mechanism, frame)
    R, p = pose_targets(rotation, position)
    lower, upper = mechanism.position_limits
    middle = middle_of(lower, upper)
    first = coordinates(mechanism, middle if start is None else start, "start")
    if len(first) not in (1, len(p)):
        raise DynidentError(f"start has {len(first)} rows but there are {len(p)} targets; give one row, or one per target")
    task = PoseTask(mechanism, name, R, p, lower, upper, robot_size(mechanism))
    done = REACHED * task.size
    q = np.array(np.broadcast_to(first, (len(p), mechanism.dof)))
    if path:
        left = np.empty(len(p))
        for i in range(len(p)):
            guess = q[i : i + 1] if i == 0 or len(first) > 1 else q[i - 1 : i]
            q[i : i + 1], left[i : i + 1] = damped_least_squares(task.rows(np.array([i])), guess, done, STEPS)
    else:
        q, left = damped_least_squares(task, q, done, STEPS)
        generator = np.random.default_rng(0)
        low, high = np.maximum(lower, middle - np.pi), np.minimum(upper, middle + np.pi)
        tries = 0
        while tries < restarts and (left > 1e4 * done).any():
            again = np.flatnonzero(left > 1e4 * done).astype(np.int64)
            each = min(restarts - tries, max(1, TOGETHER // again.size))
            rows = np.repeat(again, each)
            begin = generator.uniform(low, high, (rows.size, mechanism.dof))
            tried, after = damped_least_squares(task.rows(rows), begin, done, STEPS)
            best = np.argmin(after.reshape(again.size, each), axis=1) + each * np.arange(again.size)
            better = after[best] < left[again]
            q[again[better]], left[again[better]] = tried[best[better]], after[best[better]]
            tries += each
    missed = np.flatnonzero(left > 1e4 * done)
    if missed.size and failure == "raise":
        raise DynidentError(_complaint(task, q, int(missed[0]), missed.size))
    q[missed] = np.nan
    return q


def robot_size(mechanism: Mechanism) -> float:
    """Return the size of a robot: the sum of the distances between neighbouring joints."""
    shifts = [np.linalg.norm(joint.placement.translation) for joint in mechanism.joints]
    return float(np.sum(shifts)) or 1.0


def _complaint(task: PoseTask, q: Array, i: int, count: int) -> str:
    """Return the error for a target that was not reached."""
    one = task.rows(np.array([i]))
    e = one.error(q[i : i + 1])[0]
    away = f"{np.linalg.norm(e[:3]):.4g} m"
    if task.rotation is not None:
        away += f" and {np.linalg.norm(e[3:]) / task.size:.4g} rad"
    at_limit = [
        name
        for name, x, low, high in zip(task.mechanism.coordinate_names, q[i], task.lower, task.upper, strict=True)
        if x in (low, high)
    ]
    why = f" with {', '.join(at_limit)} at the limit" if at_limit else ""
    return (
        f"target {i} of {len(q)} (position {task.position[i].tolist()}) is not reached: nearest pose {away} away{why}, "
        f"{count - 1} more targets fail; give another start, more restarts or failure='nan'"
    )
