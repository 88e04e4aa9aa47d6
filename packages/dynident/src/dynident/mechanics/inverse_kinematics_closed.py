"""Inverse kinematics in closed form: every branch of q with FK(q) = (R, p), for arms whose axes allow it.

The structure is found from the joint axes, not from a name: parallel axes make planar arms and SCARAs, a waist before two
parallel axes makes an elbow arm, and three more axes through one point form a wrist; three parallel axes after the waist
and two more that intersect make an arm as from Universal Robots.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.mechanics.dynamics import end_frame
from dynident.mechanics.inverse_kinematics_arms import (
    EXACT,
    PARALLEL,
    Arm,
    Chain,
    ElbowArm,
    ParallelArm,
    PlanarArm,
    WristArm,
    chain_of,
)
from dynident.mechanics.inverse_kinematics_damped import (
    PoseTask,
    damped_least_squares,
    pose_targets,
    robot_size,
)
from dynident.mechanism.mechanism import Mechanism

STARTS, STEPS = 16, 300  # of the search for the pose nearest to an unreachable target
STRICT = 1e4  # weight of orientation relative to position, in units of the robot's size
SMALL = 1e-6  # of the robot's size, or rad: largest error of a reached target


def arm_structure(mechanism: Mechanism, frame: str | None = None) -> Arm:
    """Return the family of arms to which a robot belongs, recognised from its joint axes at q = 0.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    frame : str, optional
        Link to be placed; the only end when omitted.

    Returns
    -------
    Arm
        A `PlanarArm`, `ElbowArm`, `WristArm` or `ParallelArm`, with `kind`, `postures` and `singularities(q)`.
    """
    chain = chain_of(mechanism, frame)
    n, turns = len(chain.joints), int(chain.revolute.sum())
    skew = [_angle(chain.axes[0], k) for k in chain.axes]
    missing = []
    if max(skew) < PARALLEL and 1 <= turns <= 3 and n - turns <= 1:
        arm = PlanarArm(chain, max(skew))
        links = arm._target(chain.rotation[None] if turns == 3 else None, chain.position[None])[0]
        if np.abs(links).min() > 1e-9 * chain.length:
            return arm
        missing.append("no two axes (nor the last axis and the frame) of a planar arm may coincide")
    elif n <= 4:
        missing.append(f"all axes parallel (planar arm or SCARA): they are {max(skew):.3g} rad apart")
    if n == 6 and turns == n and max(_angle(chain.axes[1], k) for k in chain.axes[2:4]) < PARALLEL:
        found = _parallel_arm(chain)
        if found is not None:
            return found
    if n in (3, 6) and turns == n:
        centre, gap = (chain.position, 0.0) if n == 3 else _meeting_point(chain.axes[3:], chain.points[3:])
        lack = _not_an_elbow(chain, centre)
        if n == 6 and gap > PARALLEL * chain.length:
            lack.append(f"axes 4, 5 and 6 meeting in one point (spherical wrist): they pass it at {gap:.3g} m")
        if n == 6 and min(_angle(*chain.axes[3:5]), _angle(*chain.axes[4:6])) < PARALLEL:
            lack.append("wrist axes that follow each other not parallel")
        if not lack:
            mismatch = max(_angle(*chain.axes[1:3]), gap / chain.length)
            return ElbowArm(chain, mismatch, centre) if n == 3 else WristArm(chain, mismatch, centre)
        missing += lack
    elif n > 4 or not missing:
        missing.append(f"3 or 6 revolute joints: there are {turns} revolute and {n - turns} sliding ones")
    raise DynidentError(
        f"robot '{mechanism.name}' has no closed-form inverse here, because it lacks {'; '.join(missing)}: use "
        "inverse_kinematics_numeric (dynident ik --numeric), which needs no particular structure"
    )


def inverse_kinematics(
    mechanism: Mechanism, rotation: ArrayLike | None, position: ArrayLike, frame: str | None = None
) -> Array:
    """Return all joint positions that bring a link to the given poses: FK(q) = (R, p).

    Branches come in the order of ``arm_structure(mechanism, frame).postures``. Where the description is rounded (right
    angles of 1.5708 rad) the closed form is polished, so that FK(q) is nevertheless exact.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates.
    rotation : array_like (N, 3, 3) or (3, 3), or None
        Orientations of the link in the base frame; None for arms that place a point only (3R, planar 2R).
    position : array_like, (N, 3) or (3,)
        Positions of the link's origin in the base frame [m].
    frame : str, optional
        Link name; the only end when omitted.

    Returns
    -------
    ndarray, (N, branches, n)
        Joint positions, angles in [-pi, pi); a row is NaN where its branch does not exist. Limits are ignored.

    Examples
    --------
    >>> import dynident as di
    >>> from dynident.mechanics import inverse_kinematics
    >>> arm = di.Mechanism.from_dh([(0.5, 0, 0, 0), (0.5, 0, 0, 0)])
    >>> inverse_kinematics(arm, None, [0.5, 0.5, 0.0]).round(4)
    array([[[ 1.5708, -1.5708],
            [ 0.    ,  1.5708]]])
    """
    arm = arm_structure(mechanism, frame)
    R, p = _targets(arm, rotation, position)
    q = arm.solve(R, p)
    if arm.mismatch <= EXACT:
        return q
    found = np.argwhere(np.isfinite(q).all(axis=2))
    free = np.full(mechanism.dof, np.inf)
    pick = found[:, 0]
    task = PoseTask(
        mechanism, end_frame(mechanism, frame), None if R is None else R[pick], p[pick], -free, free, robot_size(mechanism)
    )
    polished, left = damped_least_squares(task, q[tuple(found.T)], 1e-14 * task.size, 30)
    q[tuple(found.T)] = np.where((left < 1e-9 * task.size)[:, None], polished, np.nan)
    return q


@dataclass(frozen=True, eq=False)
class Reach:
    """Reachability of targets, and the distance of unreachable ones from the workspace."""

    reachable: NDArray[np.bool_]  # True where at least one branch exists
    distance: Array  # Distance to the nearest reachable position with the same orientation [m]
    tilt: Array  # Angle between requested and nearest reachable orientation [rad]


def reach(mechanism: Mechanism, rotation: ArrayLike | None, position: ArrayLike, frame: str | None = None) -> Reach:
    """Return the distance of targets from the workspace of a `mechanism` with a closed-form inverse, without limits.

    `rotation`, `position` and `frame` as in `inverse_kinematics`.
    """
    arm = arm_structure(mechanism, frame)
    R, p = _targets(arm, rotation, position)
    reachable = np.any(np.isfinite(arm.solve(R, p)).all(axis=2), axis=1)
    distance, tilt = np.zeros(len(p)), np.zeros(len(p))
    for i in np.flatnonzero(~reachable):
        distance[i], tilt[i] = _shortfall(mechanism, frame, None if R is None else R[i], p[i])
    return Reach(reachable, distance, tilt)


def _shortfall(mechanism: Mechanism, frame: str | None, rotation: Array | None, position: Array) -> tuple[float, float]:
    """Return distance [m] and angle [rad] between a target and the nearest pose; the orientation has priority."""
    free, size = np.full((1, mechanism.dof), np.inf), robot_size(mechanism)
    R = None if rotation is None else np.tile(rotation, (STARTS, 1, 1))
    task = PoseTask(mechanism, end_frame(mechanism, frame), R, np.tile(position, (STARTS, 1)), -free, free, STRICT * size)
    starts = np.random.default_rng(0).uniform(-np.pi, np.pi, (STARTS, mechanism.dof))
    q, left = damped_least_squares(task, starts, 0.0, STEPS)
    e = task.error(q)[np.argmin(left)]
    distance, tilt = float(np.linalg.norm(e[:3])), float(np.linalg.norm(e[3:])) / task.size
    return distance if distance > SMALL * size else 0.0, tilt if tilt > SMALL else 0.0


def _targets(arm: Arm, rotation: ArrayLike | None, position: ArrayLike) -> tuple[Array | None, Array]:
    if arm.needs_rotation and rotation is None:
        raise DynidentError(
            f"rotation is missing: this {arm.kind} reaches poses; give it as (samples, 3, 3) or one (3, 3), or --rpy"
        )
    if not arm.needs_rotation and rotation is not None:
        raise DynidentError(f"rotation is given, but this {arm.kind} can only place a point; give rotation=None")
    return pose_targets(rotation, position)


def singularities(mechanism: Mechanism, q: ArrayLike, frame: str | None = None) -> dict[str, Array]:
    """Return the distance of a `mechanism` at `q` (N, n) from each kind of singularity, (N,): 0 at it, 1 at most.

    "elbow": stretched or folded; "shoulder": point on the first axis; "wrist": axes 4 and 6 collinear; `frame` is
    the only end when omitted.
    """
    arm = arm_structure(mechanism, frame)
    values = np.atleast_2d(numbers(q, "q"))
    if values.ndim != 2 or values.shape[1] != mechanism.dof:
        raise DynidentError(f"q has shape {np.shape(q)} but robot '{mechanism.name}' has {mechanism.dof} coordinates")
    return arm.singularities(values)


def _angle(a: Array, b: Array) -> float:
    """Return the angle between two lines, 0 to pi/2."""
    return float(np.arctan2(np.linalg.norm(np.cross(a, b)), abs(a @ b)))


def _meeting_point(axes: Array, points: Array) -> tuple[Array, float]:
    """Return the point nearest to some axes, and its largest distance from them."""
    projectors = [np.eye(3) - np.outer(k, k) for k in axes]
    right = [P @ o for P, o in zip(projectors, points, strict=True)]
    point = np.linalg.lstsq(np.vstack(projectors), np.concatenate(right), rcond=None)[0]
    return point, max(float(np.linalg.norm(P @ point - r)) for P, r in zip(projectors, right, strict=True))


def _parallel_arm(chain: Chain) -> ParallelArm | None:
    """Return the arm with three parallel axes after the waist and two last ones that intersect; None for other arms."""
    k1, k2, k3, k4, k5, k6 = chain.axes
    points = chain.points
    meeting, away = _meeting_point(chain.axes[4:], points[4:])
    gap = away / chain.length
    across = np.eye(3) - np.outer(k2, k2)
    links = [float(np.linalg.norm(across @ (points[i + 1] - points[i]))) for i in (1, 2)]
    turned_away = min(_angle(k1, k2), _angle(k2, k5), _angle(k5, k6)) > PARALLEL
    if gap > PARALLEL or not turned_away or min(links) < 1e-9 * chain.length:
        return None
    return ParallelArm(chain, max(_angle(k2, k3), _angle(k2, k4), gap), meeting)


def _not_an_elbow(chain: Chain, point: Array) -> list[str]:
    """Return the violated conditions for an elbow arm whose first three joints place `point`."""
    k1, k2, k3 = chain.axes[:3]
    lack = []
    if _angle(k2, k3) > PARALLEL:
        lack.append(f"axes 2 and 3 parallel (elbow arm): they are {_angle(k2, k3):.3g} rad apart")
    if _angle(k1, k2) < PARALLEL:
        lack.append("axis 1 across axis 2: they are parallel")
    across = np.eye(3) - np.outer(k2, k2)
    for o, target, what in (
        (chain.points[1], chain.points[2], "axes 2 and 3"),
        (chain.points[2], point, "axis 3 and the wrist"),
    ):
        if np.linalg.norm(across @ (target - o)) < 1e-9 * chain.length:
            lack.append(f"a distance between {what}: they coincide")
    return lack
